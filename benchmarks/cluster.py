"""Rounds over partitions on Dask: two workers against one, what a round costs beside its work, and what is sent.

Run it from anywhere: ``python benchmarks/cluster.py [--rows 1000000] [--markdown]``.
A round of each method over the same Parquet files, with one worker and with two, each of one thread; the median over
rounds after the first few. The price of the engine is a round over next to no rows in sixteen partitions. Bytes for up
to 64 workers are counted by playing the same rounds in one process, as so many workers would. Where dask-glm is
installed, a round of its gradient descent for logistic regression is timed on the same rows and workers, with ours.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hindsight
from hindsight import cluster

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from in_process import InProcess

MODELS = (hindsight.GradientDescentRegressor, hindsight.GLMtronBatchRegressor, hindsight.IsotronRegressor)
PEER_ROWS = 1_250_000
SKIPPED = 3  # rounds in which workers load what they need


def rows_of(rows: int, columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a single-index model with noise."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(rows, columns)), np.random.default_rng(99).normal(size=columns) / 4.0
    return X, 1.0 / (1.0 + np.exp(-X @ w)) + 0.1 * rng.normal(size=rows)


def write(folder: str, rows: int, columns: int, files: int) -> None:
    """Write such rows to Parquet files."""
    for k in range(files):
        X, y = rows_of(rows // files, columns, k)
        table = pa.table({f"x{j}": X[:, j] for j in range(columns)} | {"y": y})
        pq.write_table(table, os.path.join(folder, f"part{k:03d}.parquet"))


def seconds_per_round(model: Any, rows: Any) -> float:
    """The median over rounds."""
    marks: list[float] = []
    cluster.fit(model, rows, notify=lambda t, loss: marks.append(time.perf_counter()))
    return statistics.median(b - a for a, b in list(pairwise(marks))[SKIPPED:])


def timed(folder: str, workers: int, rounds: int) -> dict[str, float]:
    """Seconds of reading, and of a round of each method."""
    with cluster.start(workers) as client:
        began = time.perf_counter()
        rows = cluster.read(folder, "y", client=client)
        out = {"read": time.perf_counter() - began}
        before = sum(client.run(received).values())
        for kind in MODELS:
            out[kind.__name__] = seconds_per_round(kind(rounds=rounds), rows)
            now = sum(client.run(received).values())
            out[f"{kind.__name__} bytes"] = (now - before) / rounds
            before = now
    return out


def peer(folder: str, columns: int, rounds: int) -> tuple[int, str, float, float]:
    """The rows of the first files, the version of dask-glm, and seconds of a round of its gradient descent and of ours.

    Its round reads the rows twice: for the gradient, and along it for the size of the step. What it does before the
    first round is left out by timing few rounds and many.
    """
    import dask
    import dask.array as da
    from dask_glm.algorithms import gradient_descent

    files = sorted(Path(folder).iterdir())
    sizes = [pq.read_metadata(file).num_rows for file in files]
    few = max(2, int(np.searchsorted(np.cumsum(sizes), PEER_ROWS)))  # of millions of rows a round takes it minutes
    files, sizes = files[:few], sizes[:few]
    read = [dask.delayed(numbers_of)(str(file), columns) for file in files]
    with cluster.start(2) as client:
        parts = [da.from_delayed(one, (rows, columns + 1), float) for one, rows in zip(read, sizes, strict=True)]
        whole = da.concatenate(parts).persist()
        X, y = dask.persist(whole[:, :columns], (whole[:, columns] > 0.5).astype(float))
        gradient_descent(X, y, max_iter=2, tol=0.0)
        marks = []
        for count in (2, 2 + rounds):
            began = time.perf_counter()
            gradient_descent(X, y, max_iter=count, tol=0.0)
            marks.append(time.perf_counter() - began)
        theirs = (marks[1] - marks[0]) / rounds
        rows = cluster.read(X, y, client=client)
        own = seconds_per_round(hindsight.GradientDescentClassifier(rounds=rounds), rows)
    return sum(sizes), version("dask-glm"), theirs, own


def numbers_of(file: str, columns: int) -> np.ndarray:
    """The rows of a file, the targets last."""
    table = pq.read_table(file)
    return np.column_stack([table[name].to_numpy() for name in (*(f"x{j}" for j in range(columns)), "y")])


def received(dask_worker: Any) -> int:
    """The bytes that a worker has had from others."""
    return sum(int(each["total"]) for each in dask_worker.transfer_incoming_log)


def counted(kind: Any, workers: int, rows: int, columns: int, partitions: int) -> tuple[int, int, int]:
    """Bytes, messages and bytes to the driver of the last round."""
    X, y = rows_of(rows, columns)
    ends = np.linspace(0, rows, partitions + 1).astype(int)
    engine, counts = InProcess(workers), list[tuple[int, int, int]]()
    read = cluster.read([(X[a:b], y[a:b]) for a, b in pairwise(ends)], "y", client=engine)

    def note(t: int, loss: float) -> None:
        counts.append((engine.sent, engine.messages, engine.to_driver))

    cluster.fit(kind(rounds=3), read, notify=note)
    sent, messages, to_driver = (b - a for a, b in zip(*counts[-2:], strict=True))
    return sent, messages, to_driver


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=3, help="the best of so many is taken")
    parser.add_argument("--markdown", action="store_true", help="accepted as in the other benchmarks: it always is")
    parser.add_argument("--counts", action="store_true", help="count messages alone")
    options = parser.parse_args()
    if not options.counts:
        with tempfile.TemporaryDirectory() as folder:
            large, small = Path(folder, "large"), Path(folder, "small")
            for place, rows in ((large, options.rows), (small, 1600)):
                place.mkdir()
                write(str(place), rows, options.columns, options.files)
            runs = [
                {workers: timed(str(large), workers, options.rounds) for workers in (1, 2)}
                for _ in range(options.repetitions)
            ]
            price = timed(str(small), 2, 3 * options.rounds)
            what = f"{options.rows:,} × {options.columns}, {options.files} files"
            print(f"| {what} | one worker | two | ratio | empty round |")
            print("|---|---|---|---|---|")
            for name in ("read", *(kind.__name__ for kind in MODELS)):
                one, two = (min(run[workers][name] for run in runs) for workers in (1, 2))
                empty = "" if name == "read" else f"{1e3 * price[name]:.1f} ms"
                print(f"| {name} | {1e3 * one:.1f} ms | {1e3 * two:.1f} ms | {one / two:.2f} | {empty} |")
            for kind in MODELS:
                sent = runs[0][2][f"{kind.__name__} bytes"]
                print(f"{kind.__name__}: {sent:,.0f} bytes between two workers per round", flush=True)
            try:
                version("dask-glm")
            except PackageNotFoundError:
                print("dask-glm is not installed: no comparison")
            else:
                rows, told, theirs, own = peer(str(large), options.columns, min(10, options.rounds))
                print(f"logistic regression of {rows:,} rows by gradient descent, a round with two workers: "
                      f"dask-glm {told} {1e3 * theirs:.1f} ms, hindsight {1e3 * own:.1f} ms: "
                      f"ratio {theirs / own:.2f}")  # fmt: skip
    sys.stdout.flush()
    print("| a round | workers | bytes sent | messages | bytes to the driver |")
    print("|---|---|---|---|---|")
    for kind in MODELS:
        for workers in (1, 2, 8, 64):
            sent, messages, to_driver = counted(kind, workers, 1_000_000, options.columns, 256)
            print(f"| {kind.__name__} | {workers} | {sent:,} | {messages:,} | {to_driver:,} |")


if __name__ == "__main__":
    main()
