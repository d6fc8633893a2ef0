"""The densities against River and scikit-learn.

Run it from anywhere: ``python benchmarks/density.py [--quick] [--markdown]``. River comes with the extra
``hindsight-learn[bench]``; without it its rows are left out. The same work is compared: the same means, variances and
counts must come out. River takes a row at a time, so its times are for one row and ours for one of a batch.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

from common import Row, installed, interleave, table

# isort: split
import numpy as np
from sklearn.naive_bayes import GaussianNB

from hindsight.density import Categorical, Exponential, Gaussian, Keyed, Poisson, Product
from hindsight.estimators.generative import GenerativeClassifier

SKLEARN, RIVER = (f"{name} {installed(name)}" for name in ("scikit-learn", "river"))
EXTRA = "pip install hindsight-learn[bench]"


def agree(what: str, a: Any, b: Any, tolerance: float = 1e-9) -> None:
    """Stop where two peers did not do the same work."""
    if not np.allclose(a, b, rtol=tolerance, atol=tolerance):
        raise SystemExit(f"{what}: {a} and {b} differ by more than {tolerance:g}")


def sklearn_rows(m: int, repetitions: int) -> list[Row]:
    """Bayes' rule with Gaussian columns, learnt in one call."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((m, 20)), rng.integers(0, 2, m)
    ours = GenerativeClassifier().partial_fit(X, y, classes=[0, 1])
    theirs = GaussianNB().partial_fit(X, y, classes=[0, 1])
    agree("means", [d.mean for d in ours.densities_], theirs.theta_)
    agree("variances", [d.variance for d in ours.densities_], theirs.var_, 1e-6)  # it adds 1e-9 of the largest
    times = interleave(
        {
            "ours": lambda: GenerativeClassifier().partial_fit(X, y, classes=[0, 1]),
            "peer": lambda: GaussianNB().partial_fit(X, y, classes=[0, 1]),
            "columns": lambda: Gaussian(columns=20).update(X),
        },
        repetitions,
    )
    peer = f"{SKLEARN} GaussianNB.partial_fit"
    return [
        Row(f"GenerativeClassifier.partial_fit {m:,}×20", times["ours"], peer, times["peer"], "faster", 5),
        Row(f"Gaussian(columns=20).update {m:,}×20", times["columns"], peer, times["peer"], "faster", 5),
    ]


def river_rows(m: int, repetitions: int) -> list[Row]:
    """Single columns, and rows of twenty, in batch against one row at a time."""
    from river import naive_bayes, proba

    rng = np.random.default_rng(1)
    symbols, values = rng.integers(0, 10, m), rng.standard_normal(m)
    as_list, floats = symbols.tolist(), values.tolist()

    def multinomial() -> Any:
        model = proba.Multinomial()
        for x in as_list:
            model.update(x)
        return model

    def multinomial_scored() -> float:
        model, loss = proba.Multinomial(), 0.0
        for x in as_list:
            loss -= math.log(model(x) or 0.1)
            model.update(x)
        return loss

    def gaussian() -> Any:
        model = proba.Gaussian()
        for x in floats:
            model.update(x)
        return model

    counts = multinomial()
    agree("counts", Categorical(10).update(symbols).state[0, :, 0], [counts.counts[k] for k in range(10)])
    moments, ours = gaussian(), Gaussian().update(values)
    agree("moments", [moments.mu, moments.sigma**2 * (m - 1) / m], [ours.mean[0], ours.variance[0]])
    X = rng.standard_normal((m // 10, 20))
    y = rng.integers(0, 2, m // 10)
    dicts, labels = [dict(enumerate(x)) for x in X.tolist()], y.tolist()

    def bayes() -> Any:
        model = naive_bayes.GaussianNB()
        for x, label in zip(dicts, labels, strict=True):
            model.learn_one(x, label)
        return model

    times = interleave(
        {
            "categorical": lambda: Categorical(10).update(symbols),
            "multinomial": multinomial,
            "scored": lambda: Categorical(10).progressive(symbols),
            "multinomial scored": multinomial_scored,
            "gaussian": lambda: Gaussian().update(values),
            "river gaussian": gaussian,
            "bayes": lambda: GenerativeClassifier().partial_fit(X, y, classes=[0, 1]),
            "river bayes": bayes,
        },
        repetitions,
    )
    scored = "Categorical.progressive, 10 symbols, a row"
    work = "GenerativeClassifier, 20 columns, a row"
    one, many = f"{RIVER} proba.Multinomial", f"{RIVER} naive_bayes.GaussianNB"
    return [
        Row(
            "Categorical.update, 10 symbols, a row",
            times["categorical"],
            one,
            times["multinomial"],
            "faster",
            10,
            per=m,
        ),
        Row(scored, times["scored"], one, times["multinomial scored"], "faster", 10, per=m),
        Row(
            "Gaussian.update, a row",
            times["gaussian"],
            f"{RIVER} proba.Gaussian",
            times["river gaussian"],
            "faster",
            10,
            per=m,
        ),
        Row(work, times["bayes"], many, times["river bayes"], "faster", 10, per=m // 10),
    ]


def keyed_rows(m: int, keys: int, repetitions: int) -> list[Row]:
    """A density a key over three columns, against 300,000 rows a second."""
    rng = np.random.default_rng(2)
    calls = {
        "customer": rng.integers(0, keys, m),
        "hour": rng.integers(0, 24, m),
        "minutes": rng.exponential(3.0, m),
        "calls": rng.poisson(2.0, m),
    }
    named = {**calls, "customer": np.array([f"customer {k}" for k in calls["customer"]])}
    card = Product({"hour": Categorical(24), "minutes": Exponential(), "calls": Poisson()})
    times = interleave(
        {
            "ours": lambda: Keyed(card, "customer").update(calls),
            "named": lambda: Keyed(card, "customer").update(named),
            "scored": lambda: Keyed(card, "customer").progressive(calls),
        },
        repetitions,
    )
    peer, theirs = "300,000 rows/s", [m / 300_000]
    what = f"Keyed product, 3 columns, {keys:,} keys, {m:,} rows, a row"
    return [
        Row(f"{what}: update", times["ours"], peer, theirs, "faster", 1, per=m),
        Row(f"{what}: update, keys as text", times["named"], peer, theirs, "faster", 1, per=m),
        Row(f"{what}: progressive", times["scored"], peer, theirs, "faster", 1, per=m),
    ]


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description="Time the densities against their peers.")
    parser.add_argument("--quick", action="store_true", help="ten times fewer rows, once: a smoke test")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    scale, repetitions = (10, 1) if options.quick else (1, 5)
    rows = sklearn_rows(1_000_000 // scale, repetitions)
    if installed("river"):
        rows += river_rows(200_000 // scale, repetitions)
    else:
        print(f"river is not installed, so its rows are left out: {EXTRA}", file=sys.stderr)
    rows += keyed_rows(1_000_000 // scale, 100_000, repetitions)
    print(table(rows, options.markdown))


if __name__ == "__main__":
    main()
