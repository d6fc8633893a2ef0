"""Isotonic regression and Isotron against scipy, scikit-learn and two matrix-vector products.

Run it from anywhere: ``python benchmarks/isotonic.py [--quick] [--markdown]``; minutes, or seconds with --quick.
Ours is the whole call: checks, order, ties, pools and the fit in the order given. scipy takes values that are in order
already and knows no ties. Rows that say "two threads" let us use two; all else runs on one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from common import Row, Seconds, installed, interleave, table  # before numpy: it sets the number of threads

# isort: split
import numba
import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression

from hindsight.batch.isotonic import isotonic
from hindsight.batch.isotron import LearntLink, SingleIndexProblem, run_rounds
from hindsight.estimators.isotonic import IsotonicRegressor

SCIPY, SKLEARN = f"scipy {installed('scipy')}", f"scikit-learn {installed('scikit-learn')}"
ROUNDS = 3  # timed together, after a few others


@contextmanager
def threads(count: int) -> Iterator[None]:
    """As many threads for us inside."""
    before = numba.config.NUMBA_NUM_THREADS
    numba.config.NUMBA_NUM_THREADS = count
    yield
    numba.config.NUMBA_NUM_THREADS = before


def with_threads(count: int, work: Callable[[], Any]) -> Any:
    """The work, on so many threads."""
    with threads(count):
        return work()


def agree(what: str, a: np.ndarray, b: np.ndarray) -> None:
    """Stop where two peers did not do the same work."""
    apart = float(np.abs(a - b).max() / np.abs(b).max())
    if not apart <= 1e-12:
        raise SystemExit(f"{what}: fits differ by {apart:.2g} (relative)")


def sorted_rows(m: int, repetitions: int) -> list[Row]:
    """z ascends already: scipy is given y alone."""
    rng = np.random.default_rng(0)
    z = np.sort(rng.random(m))
    kinds = {
        "random": (rng.standard_normal(m), 1.0),
        "nearly monotone": (z + 0.1 * rng.standard_normal(m), 1.0),
        "decreasing": (-z, 1.3),
    }
    rows = []
    for kind, (y, asked) in kinds.items():
        agree(kind, isotonic(z, y).fit, isotonic_regression(y).x)
        times = interleave({"ours": partial(isotonic, z, y), "peer": partial(isotonic_regression, y)}, repetitions)
        peer = f"{SCIPY} isotonic_regression"
        rows.append(Row(f"PAV, sorted {m:,}, {kind}", times["ours"], peer, times["peer"], "slower", asked))
    return rows


def unsorted_rows(m: int, repetitions: int) -> list[Row]:
    """Any order, with weights."""
    rng = np.random.default_rng(0)
    z, y, w = rng.random(m), rng.standard_normal(m), rng.random(m) + 0.1

    def theirs() -> np.ndarray:
        order = np.argsort(z)
        fit = np.empty(m)
        fit[order] = isotonic_regression(y[order], weights=w[order]).x
        return fit

    agree("unsorted", isotonic(z, y, w).fit, theirs())
    work = {
        "one": partial(isotonic, z, y, w),
        "two": lambda: with_threads(2, partial(isotonic, z, y, w)),
        "peer": theirs,
    }
    times, peer = interleave(work, repetitions), f"{SCIPY} + np.argsort"
    what = f"PAV, unsorted {m:,}, weights"
    return [
        Row(what, times["one"], peer, times["peer"], "slower", 0.7),
        Row(f"{what}, two threads", times["two"], peer, times["peer"], "slower", 0.7, 0.4),
    ]


def estimator_rows(m: int, repetitions: int) -> list[Row]:
    """`fit` as scikit-learn has it."""
    rng = np.random.default_rng(0)
    z, y = rng.random(m), rng.standard_normal(m)
    agree(
        "estimators", IsotonicRegressor().fit(z, y).predict(z[:1000]), IsotonicRegression().fit(z, y).predict(z[:1000])
    )
    work = {"ours": lambda: IsotonicRegressor().fit(z, y), "peer": lambda: IsotonicRegression().fit(z, y)}
    times = interleave(work, repetitions)
    what, peer = f"IsotonicRegressor.fit {m:,}", f"{SKLEARN} IsotonicRegression.fit"
    return [Row(what, times["ours"], peer, times["peer"], "faster", 6)]


def isotron_rows(m: int, n: int, repetitions: int) -> list[Row]:
    """A round after the first few, against X @ w and X.T @ r."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, n))
    X /= np.sqrt(n)
    w = rng.standard_normal(n)
    y = (rng.random(m) < 1.0 / (1.0 + np.exp(-3.0 * (X @ w)))).astype(float)
    problem = SingleIndexProblem(X, y, None, LearntLink(np.inf, 1.0))
    start = run_rounds(problem, 4).last

    def rounds(count: int) -> Seconds:
        began = time.perf_counter()
        with_threads(count, lambda: run_rounds(problem, ROUNDS, start))
        return Seconds((time.perf_counter() - began) / ROUNDS)

    work = {"one": lambda: rounds(1), "two": lambda: rounds(2), "peer": lambda: (X @ start, X.T @ y)}
    times = interleave(work, repetitions)
    what, peer = f"Isotron round {m:,}×{n}", "X @ w and X.T @ r"
    return [
        Row(what, times["one"], peer, times["peer"], "slower", 4),
        Row(f"{what}, two threads", times["two"], peer, times["peer"], "slower", 4, 2.5),
    ]


def lipschitz_rows(m: int, repetitions: int) -> list[Row]:
    """L = 1 against plain pools, and the data that makes two stacks of corners quadratic."""
    rng = np.random.default_rng(0)
    z = rng.random(m)
    y, alternating = (rng.random(m) < z).astype(float), np.empty(m)
    alternating[np.argsort(z)] = np.arange(m) % 2
    growth = np.empty(m)
    growth[np.argsort(z)] = 1.01 ** (np.arange(m) % 60_000)
    work = {
        "plain": partial(isotonic, z, y),
        "lipschitz": partial(isotonic, z, y, lipschitz=1.0),
        "hard": partial(isotonic, z, alternating, growth, lipschitz=1.0),
    }
    times = interleave(work, repetitions)
    hard = "alternating y, weights growing geometrically"
    plain, usual = "plain PAV, sort included", "0 and 1 at random"
    return [
        Row(f"Lipschitz PAV {m:,}, L = 1", times["lipschitz"], plain, times["plain"], "slower", 10),
        Row(f"Lipschitz PAV {m:,}, {hard}", times["hard"], usual, times["lipschitz"], "slower", 3),
    ]


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description="Time isotonic regression and Isotron against their peers.")
    parser.add_argument("--quick", action="store_true", help="ten times fewer rows, once: a smoke test")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    scale, repetitions = (10, 1) if options.quick else (1, 7)
    rows = []
    for m in (100_000, 1_000_000, 10_000_000):
        rows += sorted_rows(m // scale, repetitions)
    rows += unsorted_rows(10_000_000 // scale, min(5, repetitions))
    rows += estimator_rows(1_000_000 // scale, repetitions)
    rows += isotron_rows(1_000_000 // scale, 50, repetitions)
    rows += lipschitz_rows(1_000_000 // scale, repetitions)
    print(table(rows, options.markdown))


if __name__ == "__main__":
    main()
