"""The learner without a rate: whole commands against Vowpal Wabbit, then calls, and memory a coordinate.

Run it from anywhere: ``python benchmarks/auto.py [--quick] [--markdown]``; minutes, or seconds with --quick.
All may use two cores. Vowpal Wabbit comes with the extra ``hindsight-learn[bench]``; without it only our times are
shown, against a limit in seconds.
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

from command import cold
from common import Row, Seconds, installed, interleave, table

# isort: split
import numpy as np

import hindsight
from hindsight.online.panel import PanelRun
from hindsight.online.panel import auto as auto_panel

FITTED, CALL, BYTES = 6.0, 25e-6, 250  # seconds for a million rows of 100, seconds for a call, bytes a coordinate
COMMANDS = (
    ("regression, CSV", "t.csv", "columns.vw", "squared", 1.0),
    ("classification, CSV", "labels.csv", "labels.vw", "logistic", 1.5),
    ("classification, svmlight", "t.svm", "t.vw", "logistic", 1.5),
)
WRITE = """
from pathlib import Path
import polars as pl
from sources import write
folder = Path({folder!r})
write(folder, {size})
frame = pl.read_csv(folder / "t.csv").with_columns((pl.col("y") > 0).cast(int))
frame.write_csv(folder / "labels.csv")
columns = [c for c in frame.columns if c != "y"]
label = (2 * pl.col("y") - 1).cast(str)
line = pl.concat_str([label, pl.lit(" |"), *(p for j, c in enumerate(columns) for p in (pl.lit(f" {{j}}:"), c))])
frame.select(line).write_csv(folder / "labels.vw", include_header=False, quote_style="never")
"""


def command_rows(size: int, repetitions: int) -> list[Row]:
    """From file to model, in cold processes."""
    peer = installed("vowpalwabbit")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        code = WRITE.format(folder=name, size=size)
        subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)
        work = {}
        for what, ours, theirs, loss, _ in COMMANDS:
            target = ("--target", "y") if ours.endswith("csv") else ()
            work[what] = cold(what, folder, "-m", "hindsight", "learn", ours, *target, "--progress", "none")
            if peer:
                given = ("-d", theirs, "--loss_function", loss, "--quiet")
                work[f"vw {what}"] = cold(f"vw {what}", folder, "-m", "vowpalwabbit", *given)
        times = interleave(work, repetitions)
    return [
        Row(f"learn: {what}", times[what], f"Vowpal Wabbit {peer}", times[f"vw {what}"], "slower", asked)
        if peer
        else Row(f"learn: {what}", times[what], "Vowpal Wabbit is not installed", [asked], "total", np.inf)
        for what, _, _, _, asked in COMMANDS
    ]


def fit_rows(size: int, repetitions: int) -> list[Row]:
    """Dense rows in memory."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((size, 100))
    y = X @ rng.standard_normal(100) + rng.standard_normal(size)
    times = interleave({"fit": lambda: hindsight.AutoRegressor().partial_fit(X, y)}, repetitions)
    asked = FITTED * size / 1_000_000
    return [Row(f"AutoRegressor.partial_fit, {size:,} × 100", times["fit"], "limit", [asked], "total", asked)]


def one_rows(calls: int, repetitions: int) -> list[Row]:
    """Dicts of 20 features, one at a time."""
    rng = np.random.default_rng(0)
    rows = [{f"x{j}": v for j, v in enumerate(x)} for x in rng.standard_normal((calls, 20)).tolist()]
    model = hindsight.AutoRegressor()

    def learn() -> Seconds:
        began = time.perf_counter()
        for row in rows:
            model.learn_one(row, row["x0"] - row["x1"])
        return Seconds(time.perf_counter() - began)

    times, asked = interleave({"one": learn}, repetitions)["one"], CALL * calls
    return [Row("AutoRegressor.learn_one, 20 names", times, "limit", [asked], "slower", 1.0, per=calls)]


def bytes_held(width: int = 100_000) -> float:
    """Bytes a coordinate of all members' states, scratch included, without second order."""
    run = PanelRun(auto_panel("square", "no"), width - 1)
    run.parties()
    held = {}
    for values in (v for member in run.members for v in (*member.state, member.first)):
        owner = values if values.base is None else values.base
        held[id(owner)] = owner.nbytes
    return sum(held.values()) / width


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the learner without a rate.")
    parser.add_argument("--quick", action="store_true", help="ten times smaller, once")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    size, repetitions = (100_000, 1) if options.quick else (1_000_000, 3)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.pop(name, None)
    parts: list[Callable[[], list[Row]]] = [
        lambda: command_rows(size, repetitions),
        lambda: fit_rows(size, repetitions),
        lambda: one_rows(size // 100, 3 * repetitions),
    ]
    print(table([row for part in parts for row in part()], options.markdown))
    held = bytes_held()
    print(
        f"\nmemory of all members: {held:.0f} bytes a coordinate, asked ≤ {BYTES}: {'yes' if held <= BYTES else 'NO'}"
    )


if __name__ == "__main__":
    main()
