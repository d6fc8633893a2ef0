"""Kill workers of a cluster at random times, and learn from more rows than a worker has memory for.

python tests/cluster_torture.py --kills 50      every run must give the same bits as one that nothing happened to
python tests/cluster_torture.py --memory        rows of 1 GB, workers of 700 MB: read again for every pass
python tests/cluster_torture.py --exhaust       a partition that is held and does not fit: one clear line
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hindsight
from hindsight import cluster

MODELS = (
    hindsight.IsotronRegressor(rounds=12),
    hindsight.GLMtronBatchRegressor(rounds=20),
    hindsight.GradientDescentRegressor(rounds=20),
    hindsight.LeastSquares(),
)


def write(folder: str, rows: int, columns: int, files: int, group: int) -> None:
    """Write rows of a single-index model to Parquet files."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=columns) / 4.0
    for k in range(files):
        X = rng.normal(size=(rows // files, columns))
        y = 1.0 / (1.0 + np.exp(-X @ w)) + 0.1 * rng.normal(size=len(X))
        table = pa.table({f"x{j}": X[:, j] for j in range(columns)} | {"y": y})
        pq.write_table(table, os.path.join(folder, f"part{k:03d}.parquet"), row_group_size=group, compression="none")


def learnt(folder: str, model: object, client: object, rows: int = 5000) -> bytes:
    """The bits of a fit, from reading on."""
    read = cluster.read(folder, "y", client=client, partition_rows=rows)
    found = cluster.fit(type(model)(**model.get_params()), read)
    return found.coef_.tobytes() + np.float64(found.intercept_).tobytes()


def kill_one(client: object, after: float) -> threading.Thread:
    """Kill a worker after so many seconds."""
    pids = client.run(os.getpid, on_error="ignore")  # the scheduler may still know one that was just killed
    pid = random.choice(list(pids.values()))

    def work() -> None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def torture(kills: int, seed: int) -> int:
    """The number of runs that gave other bits; every ten of them have a cluster of their own."""
    random.seed(seed)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 80_000, 6, 8, 5000)  # so many that Isotron pools them by ranges
        known, seconds = {}, {}
        with cluster.start(2) as client:
            for model in MODELS:
                known[model] = learnt(folder, model, client)
                began = time.perf_counter()
                assert learnt(folder, model, client) == known[model]
                seconds[model] = time.perf_counter() - began
        for first in range(0, kills, 10):
            with cluster.start(2) as client:
                for run in range(first, min(kills, first + 10)):
                    client.wait_for_workers(2, timeout=300)  # a nanny takes its time on a busy machine
                    model = MODELS[run % len(MODELS)]
                    wrong += not survives(run, folder, model, client, known[model], seconds[model])
    return wrong


def survives(run: int, folder: str, model: object, client: object, known: bytes, seconds: float) -> bool:
    """Whether a run has the same bits although a worker was killed in it."""
    after, began = random.uniform(0.0, seconds), time.perf_counter()
    thread = kill_one(client, after)
    same = learnt(folder, model, client) == known
    thread.join()
    took, name = time.perf_counter() - began, type(model).__name__
    print(f"{run + 1:>4} {name:<26} killed at {after:.3f} s, done in {took:.1f} s: {'same' if same else 'OTHER'}")
    sys.stdout.flush()
    return same


def memory() -> None:
    """Learn from 1 GB of rows with workers of 700 MB, 300 MB of which are the interpreter and its libraries."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 6_250_000, 20, 25, 62_500)
        with cluster.start(2, memory_limit="700MB") as client:
            began = time.perf_counter()
            rows = cluster.read(folder, "y", client=client, partition_rows=62_500)
            size = sum(shape.size for shape in rows.shapes)
            told = f"{rows.rows:,} rows in {len(rows.shapes)} partitions, {size / 1e6:.0f} MB of them held"
            assert not rows.held
            print(f"{told}, read in {time.perf_counter() - began:.1f} s", flush=True)
            for model in (hindsight.LeastSquares(), hindsight.IsotronRegressor(rounds=2)):
                found = cluster.fit(model, rows)
                seconds = time.perf_counter() - began
                print(f"{model}: {seconds:.1f} s, |w| = {np.linalg.norm(found.coef_):.12g}", flush=True)


def exhaust() -> None:
    """Give workers a partition that does not fit, and show what is said."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, 3_000_000, 20, 1, 3_000_000)
        with cluster.start(1, memory_limit="400MB") as client:
            try:
                cluster.read(folder, "y", client=client, partition_rows=3_000_000, held=True)
            except cluster.ClusterError as error:
                print(f"one line: {error}")
            else:
                raise SystemExit("nothing was said")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--exhaust", action="store_true")
    options = parser.parse_args()
    if options.memory:
        memory()
    if options.exhaust:
        exhaust()
    if options.kills:
        wrong = torture(options.kills, options.seed)
        print(f"{options.kills} runs, {wrong} with other bits")
        sys.exit(wrong > 0)
