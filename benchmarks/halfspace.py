"""The pocket perceptron against plain online passes over the same rows, and what the exact ways cost.

Run it from anywhere: ``python benchmarks/halfspace.py [--quick] [--markdown]``; a minute, or seconds with --quick.
"""

from __future__ import annotations

import argparse
import math

from common import Row, interleave, table  # before numpy: it sets the number of threads

# isort: split
import numpy as np

from hindsight import PerceptronClassifier
from hindsight.batch.perceptron import hard_halfspace
from hindsight.batch.separability import separate
from hindsight.estimators.perceptron import BatchPerceptronClassifier

COLUMNS, PASSES = 50, 30


def labelled(m: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows with the labels of a teacher, a share of them turned."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, COLUMNS))
    y = np.where(X @ rng.standard_normal(COLUMNS) > 0, 1, -1)
    y[rng.random(m) < noise] *= -1
    return X, y


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the batch perceptron with its pocket.")
    parser.add_argument("--quick", action="store_true", help="ten times fewer rows, once: a smoke test")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    m, repetitions = (10_000, 1) if options.quick else (100_000, 5)
    rows = []
    for noise in (0.0005, 0.05, 0.2):
        X, y = labelled(m, noise)
        plain, pocket = PerceptronClassifier(passes=PASSES), BatchPerceptronClassifier(PASSES)
        work = {"plain": lambda p=plain, X=X, y=y: p.fit(X, y), "pocket": lambda p=pocket, X=X, y=y: p.fit(X, y)}
        times = interleave(work, repetitions)
        what = f"{PASSES} scans with pocket, {m:,}×{COLUMNS}, {100 * noise:g} % noise"
        rows.append(Row(what, times["pocket"], "our online passes", times["plain"], "slower", 3.0))
    X, y = labelled(m // 10, 0.0005)
    plain, pocket = PerceptronClassifier(passes=PASSES), BatchPerceptronClassifier(PASSES, effort=math.inf)
    times = interleave({"plain": lambda: plain.fit(X, y), "pocket": lambda: pocket.fit(X, y)}, repetitions)
    what = f"the same, {m // 10:,} rows, every hypothesis counted"
    rows.append(Row(what, times["pocket"], "our online passes", times["plain"], "slower", 3.0))
    d = 8 if options.quick else 11
    A, b = hard_halfspace(d)
    hard = BatchPerceptronClassifier(None, max_updates=10**8, fit_intercept=False)
    times = interleave({"lp": lambda: separate(A, b, fit_intercept=False), "loop": lambda: hard.fit(A, b)}, repetitions)
    what = f"linear program on the hard family, d = {d}"
    rows.append(Row(what, times["lp"], f"perceptron, {hard.n_updates_:,} updates", times["loop"], "faster", 1.0))
    print(table(rows, options.markdown))


if __name__ == "__main__":
    main()
