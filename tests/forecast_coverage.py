"""Coverage of every interval and sequence, and means of e-values, over thousands of streams; the suite runs a part.

Run ``python tests/forecast_coverage.py [streams] [rounds] [part...]``, by default 5,040 streams of 10,000 rounds for
each line (for e-values and lags a fifth of the rounds). The parts are square, log, evidence, "lag 2", "lag 7" and the
other kinds, by name.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parent))
import naive_forecast
import test_calibrated
import test_comparison as suite
import test_kinds_of_forecasts as kinds
from hindsight.forecast import Intervals, Score, Scores, calibration_test, compare
from hindsight.forecast.intervals import Promise, stacked

OTHERS = {kind: "classes" if "classes" in options else "numbers" for kind, options in kinds.KINDS.items()}
NAMES = [f"{by} {when}" for by in Intervals._fields for when in ("at the end", "anywhere")]


def chance(missed: int, streams: int, alpha: float = suite.ALPHA) -> str:
    """How likely so many misses are, or more, where the probability of one is alpha."""
    return f"p = {binomtest(missed, streams, alpha, alternative='greater').pvalue:.3g}"


def binary(loss: str, streams: int, rounds: int) -> None:
    """Nature and forecasters of eight sorts, that drift and react to the past."""
    sorts = len(naive_forecast.KINDS)
    found, each = np.zeros((sorts, len(NAMES)), int), streams // sorts
    for k in range(each * sorts):
        found[k % sorts] += suite.misses(k % sorts, rounds, 13 * k + 5, loss)[:-1]
    for at, name in enumerate(NAMES):
        total, worst = int(found[:, at].sum()), int(found[:, at].max())
        print(f"{loss:16} {name:22} {total:4} of {each * sorts}, worst sort {worst} of {each}, {chance(worst, each)}")


def other(kind: str, streams: int, rounds: int) -> None:
    """Classes, quantiles, intervals and counts, whose distribution differs from round to round."""
    loss, score = kind.split()[0], Score(kind.split()[0], **kinds.KINDS[kind])
    found = np.zeros(len(NAMES), int)
    for k in range(streams):
        _, labels, p, y, h = kinds.made(kind, np.random.default_rng(k), rounds)
        h = np.stack([h["A"], h["B"]], axis=1)
        every = np.arange(float(labels.size)) if score.classes else labels
        each = np.stack([score.rounds(np.full((rounds, 1), v), h) for v in every], axis=-1)
        truth = np.cumsum(((each[:, 0] - each[:, 1]) * p).sum(axis=1))
        scores = Scores("AB", loss, **kinds.KINDS[kind]).update(y, h)
        at = stacked(scores.path()[:: -suite.THIN][::-1])
        mean = truth[at.rounds - 1] / at.weight
        last = stacked([scores.totals()])
        for j, by in enumerate(Intervals._fields):
            for anytime, where in ((False, last), (True, at)):
                low, high = (end[:, 0] for end in Promise(suite.ALPHA, 1000, anytime).ends(where, by))
                seen = mean[-low.size :]
                found[2 * j + anytime] += ((seen < low - 1e-12) | (seen > high + 1e-12)).any()
    for name, missed in zip(NAMES, found.tolist(), strict=True):
        print(f"{kind:16} {name:22} {missed:4} of {streams}, {chance(missed, streams)}")


def evidence(streams: int, rounds: int) -> None:
    """E-values of pairs and against calibration at stopping times, where there is nothing to find."""

    def pairs(rng: np.random.Generator) -> np.ndarray:
        a, b = rng.random(rounds), rng.random(rounds)
        path = compare(rng.random(rounds) < (a + b) / 2.0, {"A": a, "B": b}).path()
        return path.log_first if rng.random() < 0.5 else path.log_second

    def calibrated(make: object) -> object:
        def path(rng: np.random.Generator) -> np.ndarray:
            y, h, options = make(rng, rounds)
            return calibration_test(y, h, **options).log_e

        return path

    cases = {"of pairs": pairs}
    for name in ("bounded", "quantiles", "atoms"):
        cases[f"calibrated, {name}"] = calibrated(test_calibrated.NULLS[name])
    cases["calibrated, fair"] = calibrated(fair)
    for name, draw in cases.items():
        rng, stopped, over = np.random.default_rng(1), [], 0
        for _ in range(streams):
            log_e = draw(rng)
            stopped.append(math.exp(suite.when_stopped(log_e, rng)))
            over += log_e.max() >= math.log(20.0)
        error = np.std(stopped) / math.sqrt(streams)
        mean = f"mean {np.mean(stopped):.3f} ± {error:.3f} when stopped"
        print(f"e {name:22} {mean}, ever 20: {over} of {streams}, {chance(over, streams, 0.05)}", flush=True)


def lagged(lag: int, streams: int, rounds: int) -> None:
    """Forecasts made several rounds ahead, of which A is among the best at every time and worse in one residue class.

    How often each interval, the p-value and the set go wrong, and how often those do that take no account of the lag.
    """
    rng, found, plain = np.random.default_rng(lag), np.zeros(len(NAMES) + 2, int), np.zeros(len(NAMES) + 2, int)
    for k in range(streams):
        y, h = suite.worse_in_one_class(rounds, lag, rng, k % 2)
        truth = np.cumsum(np.square(h["A"] - 0.5) - np.square(h["B"] - 0.5))
        for out, ahead in ((found, lag), (plain, 1)):
            made = compare(y, h, lag=ahead)
            at, last = stacked(made.points[:: -suite.THIN][::-1]), stacked(made.points[-1:])
            for j, by in enumerate(Intervals._fields):
                for anytime, where in ((False, last), (True, at)):
                    low, high = (end[:, 0] for end in Promise(suite.ALPHA, 1000, anytime, ahead).ends(where, by))
                    mean = truth[where.rounds - 1] / where.weight
                    out[2 * j + anytime] += ((mean < low - 1e-12) | (mean > high + 1e-12)).any()
            out[-2:] += (made.pairs[0].second_better.p <= suite.ALPHA, "A" not in made.best.by_evidence)
    for name, missed, other in zip([*NAMES, "p-value", "set"], found.tolist(), plain.tolist(), strict=True):
        words = f"{missed:4} of {streams}, {chance(missed, streams)}"
        print(f"lag {lag:<12} {name:22} {words}; with lag 1 {other}", flush=True)


def fair(rng: np.random.Generator, rounds: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """Outcomes drawn with the probabilities that were forecast, rare ones among them."""
    h = np.where(rng.random(rounds) < 0.3, 0.01, rng.random(rounds))
    return (rng.random(rounds) < h).astype(float), h, {}


def main(streams: int = 5040, rounds: int = 10_000, *chosen: str) -> None:
    """Print how often each interval missed, and the p-value of "at most alpha"."""
    start = time.time()
    parts = {loss: (binary, loss, streams, rounds) for loss in ("square", "log")}
    parts["evidence"] = (evidence, streams, rounds // 5)
    parts |= {f"lag {lag}": (lagged, lag, streams, rounds // 5) for lag in (2, 7)}
    parts |= {f"{kind}, {what}": (other, kind, streams, rounds) for kind, what in OTHERS.items()}
    for name, (run, *given) in parts.items():
        if not chosen or name in chosen:
            run(*given)
            print(f"{name}: {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:3]), *sys.argv[3:])
