"""The whole command against whole programs: cold processes, from file to model, two cores allowed to all.

Run it from anywhere: ``python benchmarks/command.py [--quick] [--markdown]``; minutes, or seconds with --quick.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from common import Row, Seconds, installed, interleave, table, users_environment

PEAKS: dict[str, float] = {}
WIDROW_HOFF = ("--learner", "widrow-hoff", "--eta", 0.01)  # as the peers step
SVM = """
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file("t.svm")
X.indices, X.indptr = X.indices.astype("i4"), X.indptr.astype("i4")  # it takes no others
model = SGDClassifier(loss="perceptron", penalty=None, learning_rate="constant", eta0=1.0, shuffle=False)
model.partial_fit(X, y, [-1, 1])
"""
TABLE = """
import polars as pl
from sklearn.linear_model import SGDRegressor
frame = pl.read_{form}("t.{form}")
X, y = frame.drop("y").to_numpy(), frame["y"].to_numpy()
SGDRegressor(penalty=None, learning_rate="constant", eta0=0.01, shuffle=False).partial_fit(X, y)
"""


def cold(name: str, folder: Path, *command: object) -> Callable[[], Seconds]:
    """A process from start to end, and the most memory it held."""

    def run() -> Seconds:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            cwd=folder,
            env=users_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        error = process.stderr.read() if process.stderr is not None else b""
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        if status:
            raise SystemExit(f"{name} failed: {error.decode()[-500:]}")
        PEAKS[name] = max(PEAKS.get(name, 0.0), usage.ru_maxrss / 1024)
        return Seconds(wall)

    return run


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the command from file to model.")
    parser.add_argument("--quick", action="store_true", help="ten times smaller, once")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    size, repetitions = (100_000, 1) if options.quick else (1_000_000, 3)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # in a process of its own: a child's peak of memory starts at what its parent held
        code = f"from pathlib import Path; from sources import write; write(Path({name!r}), {size})"
        subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)
        learn = ("-m", "hindsight", "learn")
        work = {
            "ours svm": (*learn, "t.svm", "--learner", "perceptron", "--progress", "none"),
            "sklearn svm": ("-c", SVM),
            "ours csv": (*learn, "t.csv", "--target", "y", *WIDROW_HOFF, "--progress", "none"),
            "polars csv": ("-c", TABLE.format(form="csv")),
            "ours parquet": (*learn, "t.parquet", "--target", "y", *WIDROW_HOFF, "--progress", "none"),
            "polars parquet": ("-c", TABLE.format(form="parquet")),
        }
        if installed("vowpalwabbit"):
            plain = ("--sgd", "--power_t", 0, "--quiet")
            work["vw svm"] = ("-m", "vowpalwabbit", "-d", "t.vw", "--loss_function", "hinge", *plain)
            work["vw csv"] = ("-m", "vowpalwabbit", "-d", "columns.vw", "-l", 0.005, *plain)
        times = interleave({name: cold(name, folder, *command) for name, command in work.items()}, repetitions)
    rows = []
    for ours, peer, what, asked in (
        ("ours svm", "sklearn svm", "scikit-learn load_svmlight_file + SGDClassifier", 10.0),
        ("ours svm", "vw svm", "Vowpal Wabbit, text", 2.0),
        ("ours csv", "polars csv", "polars + SGDRegressor", 2.0),
        ("ours csv", "vw csv", "Vowpal Wabbit, text", 1.3),
        ("ours parquet", "polars parquet", "polars + SGDRegressor", 2.0),
    ):
        if peer in times:
            memory = f" ({PEAKS[ours]:.0f} MiB against {PEAKS[peer]:.0f})"
            rows.append(
                Row(f"learn {ours.removeprefix('ours ')}{memory}", times[ours], what, times[peer], "faster", asked)
            )
    print(table(rows, options.markdown))


if __name__ == "__main__":
    main()
