"""Processor time to read files as chunks, without learning, against the readers of scikit-learn, polars and pyarrow.

Run it from anywhere: ``python benchmarks/sources.py [--quick] [--markdown]``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"

from sklearn.datasets import load_svmlight_file

from common import Row, Seconds, interleave, table  # before numpy: it sets the number of threads
from hindsight.sources import open_source
from online import dense, documents

RATE = 300e6  # bytes per second and core that a text parser must reach


def busy(work: Callable[[], object]) -> Callable[[], Seconds]:
    """The processor time of a piece of work: other processes do not count."""

    def timed() -> Seconds:
        began = time.process_time()
        work()
        return Seconds(time.process_time() - began)

    return timed


def drain(path: Path) -> None:
    """Read all chunks of a file, in this thread alone."""
    for _ in open_source(path, "y", ahead=False).chunks():
        pass


def write(folder: Path, size: int) -> None:
    """The same data in every form."""
    import polars as pl

    X, y = documents(size * 2 // 5)
    texts = [f"{v:.6f}" for v in X.data]
    for name, base, bar in (("t.svm", 1, ""), ("t.vw", 0, "| ")):
        with (folder / name).open("w") as file:
            for t in range(X.shape[0]):
                a, b = X.indptr[t], X.indptr[t + 1]
                pairs = " ".join(f"{j + base}:{v}" for j, v in zip(X.indices[a:b].tolist(), texts[a:b], strict=True))
                file.write(f"{y[t]:+.0f} {bar}{pairs}\n")
    X, y = dense(size, 20, "f8")
    frame = pl.DataFrame({**{f"x{j}": X[:, j].round(5) for j in range(20)}, "y": y.round(5)})
    frame.write_csv(folder / "t.csv")
    frame.write_parquet(folder / "t.parquet")
    line = pl.concat_str([pl.col("y"), pl.lit(" |"), *(p for j in range(20) for p in (pl.lit(f" {j}:"), f"x{j}"))])
    frame.select(line).write_csv(folder / "columns.vw", include_header=False, quote_style="never")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the reading of files.")
    parser.add_argument("--quick", action="store_true", help="ten times smaller")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    size, repetitions = (100_000, 1) if options.quick else (1_000_000, 3)
    import polars as pl

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, size)
        files = ("t.svm", "t.vw", "columns.vw", "t.csv", "t.parquet")
        work: dict[str, Callable[[], object]] = {file: partial(drain, folder / file) for file in files}
        work["sklearn"] = lambda: load_svmlight_file(str(folder / "t.svm"))
        work["polars csv"] = lambda: pl.read_csv(folder / "t.csv").to_numpy()
        work["polars parquet"] = lambda: pl.read_parquet(folder / "t.parquet").to_numpy()
        times = interleave({name: busy(do) for name, do in work.items()}, repetitions)
        rows = [Row("svmlight to chunks", times["t.svm"], "load_svmlight_file", times["sklearn"], "faster", 10.0)]
        for file in files[:4]:
            bytes_ = (folder / file).stat().st_size
            seconds = [bytes_ / RATE]
            what = f"{file}, {bytes_ / 2**20:.0f} MiB, to chunks"
            rows.append(Row(what, times[file], "300 MB/s", seconds, "faster", 1.0))
        rows.append(Row("CSV to chunks", times["t.csv"], "polars", times["polars csv"], "faster", 1.0))
        rows.append(Row("Parquet to chunks", times["t.parquet"], "polars", times["polars parquet"], "faster", 1.0))
        print(table(rows, options.markdown))


if __name__ == "__main__":
    main()
