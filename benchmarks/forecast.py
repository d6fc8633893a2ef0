"""Forecasts: comparison and calibration of five forecasters, CORP against model-diagnostics, bands against scipy.

Run it from anywhere: ``python benchmarks/forecast.py [--quick] [--markdown]``. Peers do the same work and must agree.
The bands are timed against resampling as the R package reliabilitydiag does it (forecasts drawn anew, outcomes drawn,
an isotonic fit, its values at every forecast), and against the least work that gives what ours does (outcomes alone
drawn anew, values at 512 forecasts); both with scipy's isotonic_regression.
"""

from __future__ import annotations

import argparse

from common import Row, installed, interleave, table  # before numpy: it sets the number of threads

# isort: split
import numpy as np
from model_diagnostics.scoring import SquaredError, decompose
from scipy.optimize import isotonic_regression

from hindsight.forecast import calibration_test, compare, reliability

LEVELS = [0.05, 0.95]
PEER = f"model-diagnostics {installed('model-diagnostics')}"
SCIPY = f"scipy {installed('scipy')} isotonic_regression"


def weather(m: int, k: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Outcomes, and forecasters who see the truth through more and more noise."""
    rng = np.random.default_rng(0)
    p = rng.random(m)
    y = (rng.random(m) < p).astype(float)
    logit = np.log(p) - np.log1p(-p)
    return y, {f"forecaster {j}": 1 / (1 + np.exp(-logit - 0.3 * j * rng.normal(size=m))) for j in range(k)}


def like_reliabilitydiag(x: np.ndarray, times: int) -> np.ndarray:
    """A consistency band as that package makes it; x ascends."""
    rng = np.random.default_rng(0)
    fits = np.empty((times, x.size))
    for b in range(times):
        drawn = np.sort(rng.choice(x, x.size))
        fit = isotonic_regression((rng.random(x.size) < drawn).astype(float)).x
        fits[b] = fit[np.maximum(np.searchsorted(drawn, x, side="right") - 1, 0)]
    return np.quantile(fits, LEVELS, axis=0)


def least(x: np.ndarray, times: int, at: np.ndarray) -> np.ndarray:
    """The same band as ours at the places `at`; x ascends and has no ties."""
    rng = np.random.default_rng(0)
    fits = np.empty((times, at.size))
    for b in range(times):
        fits[b] = isotonic_regression((rng.random(x.size) < x).astype(float)).x[at]
    return np.quantile(fits, LEVELS, axis=0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time comparisons and calibration.")
    parser.add_argument("--quick", action="store_true", help="ten times smaller, once")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    scale, repetitions = (10, 1) if options.quick else (1, 5)
    rows = []

    m = 1_000_000 // scale
    y, h = weather(m, 5)
    times = interleave({"ours": lambda: compare(y, h), "read": lambda: [v.sum() for v in h.values()]}, repetitions)
    rows.append(Row(f"compare {m:,} outcomes × 5 forecasters", times["ours"], "reading", times["read"], "total", 5.0))

    def everything() -> None:
        compare(y, h)
        for each in h.values():
            reliability(y, each)
            calibration_test(y, each)

    times = interleave({"ours": everything, "read": lambda: [v.sum() for v in h.values()]}, min(3, repetitions))
    what = f"the same, with CORP and a test of calibration for each, {m:,} outcomes"
    rows.append(Row(what, times["ours"], "reading", times["read"], "total", 3.0))

    one = h["forecaster 1"]
    ours, theirs = reliability(y, one), decompose(y, one, scoring_function=SquaredError())
    if not abs(ours.miscalibration - theirs["miscalibration"][0]) < 1e-12:
        raise SystemExit(f"miscalibration {ours.miscalibration} is not {theirs['miscalibration'][0]}")
    work = {
        "ours": lambda: reliability(y, one),
        "peer": lambda: decompose(y, one, scoring_function=SquaredError()),
    }
    times = interleave(work, repetitions)
    rows.append(Row(f"CORP, {m:,} outcomes", times["ours"], PEER, times["peer"], "faster", 5.0))

    m, resamples = 10_000 // scale, 1000 // scale
    y, h = weather(m, 1)
    x = np.sort(h["forecaster 0"])
    found = reliability(y, h["forecaster 0"])
    band = found.band(resamples=resamples)
    at = np.searchsorted(x, band.at)
    off = np.abs(least(x, resamples, at) - [band.low, band.high]).mean()
    if not off < 0.01 * scale:
        raise SystemExit(f"bands differ by {off:.3g} in the mean")
    work = {
        "ours": lambda: found.band(resamples=resamples),
        "like": lambda: like_reliabilitydiag(x, resamples),
        "least": lambda: least(x, resamples, at),
    }
    times = interleave(work, min(3, repetitions))
    what = f"consistency band, {m:,} outcomes, {resamples:,} resamples"
    rows.append(Row(what, times["ours"], f"as reliabilitydiag, {SCIPY}", times["like"], "faster", 10.0))
    rows.append(Row(what, times["ours"], f"the least work, {SCIPY}", times["least"], "faster", 1.0))
    print(table(rows, options.markdown))


if __name__ == "__main__":
    main()
