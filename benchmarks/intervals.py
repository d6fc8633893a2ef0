"""How wide intervals are at 90 %, against MAPIE's adaptive conformal method and the best fixed interval in hindsight.

Run it from anywhere: ``python benchmarks/intervals.py [--quick] [--peer]``. All make intervals of the same predictions,
those of `AutoRegressor`, each made before its row was learnt. With --peer, which takes minutes, MAPIE (``pip install
mapie``) looks at each row by itself, after a first tenth of them (at most 1,000) by which it is calibrated, over the
first 20,000 rows, at the rate 0.005 of its authors. The environment variable HINDSIGHT_STREAMS may name a folder of
streams; `streams` says how they are written.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from common import installed  # before numpy: it sets the number of threads

# isort: split
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from hindsight import AutoRegressor
from hindsight.online.coverage import Coverage
from streams import Stream, from_scikit_learn, generated, in_folder

ASKED, RATE, MOST, WIDER, NANOSECONDS = 0.9, 0.005, 20_000, 1.05, 100.0


class Given(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What predicts its only column."""

    def fit(self, X: Any, y: Any) -> Given:
        """Nothing is to be learnt."""
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The column."""
        return np.asarray(X)[:, 0]


def adaptive(z: np.ndarray, y: np.ndarray, first: int) -> tuple[float, float]:
    """The mean width and the coverage of MAPIE's method after the first rows."""
    from mapie.regression import TimeSeriesRegressor

    X = z[:, None]
    ends = np.empty((y.size - first, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = TimeSeriesRegressor(Given().fit(X, y), method="aci", cv="prefit").fit(X[:first], y[:first])
        for t in range(first, y.size):
            row, target = X[t : t + 1], y[t : t + 1]
            ends[t - first] = peer.predict(row, confidence_level=ASKED, allow_infinite_bounds=True)[1][0, :, 0]
            peer.adapt_conformal_inference(row, target, gamma=RATE, confidence_level=ASKED)
            peer.update(row, target)
    inside = (ends[:, 0] <= y[first:]) & (y[first:] <= ends[:, 1])
    return float(np.diff(ends).mean()), float(inside.mean())


def compare(stream: Stream, peer: bool) -> tuple[list[float], str]:
    """Our mean width over those of the others, and a line of the table."""
    z = AutoRegressor(keep_margins=True).fit(stream.X, stream.y).margins_[1:]
    y = stream.y[1:]
    off = np.abs(y - z)
    half = Coverage(ASKED).add(off, np.ones(off.size))
    fixed = np.quantile(off, ASKED, method="inverted_cdf")
    ratios = [float(half.mean() / fixed)]
    line = (
        f"{stream.name:18s} {off.size:7,d} {100 * (off <= half).mean():8.2f} {2 * half.mean():10.4g} {ratios[0]:8.3f}"
    )
    if peer:
        first, last = max(50, min(1000, y.size // 10)), min(y.size, MOST)
        width, covered = adaptive(z[:last], y[:last], first)
        ratios.append(float(2.0 * half[first:last].mean() / width))
        line += f" {100 * covered:9.2f} {ratios[1]:8.3f}"
    return ratios, line


def nanoseconds() -> float:
    """Of the processor's time, for a row."""
    scores, c = np.abs(np.random.default_rng(0).standard_normal(1_000_000)), np.ones(1_000_000)
    took = []
    for _ in range(5):
        tracker, began = Coverage(ASKED), time.process_time()
        tracker.add(scores, c)
        took.append(time.process_time() - began)
    return min(took) * 1e9 / scores.size


def main() -> int:
    """Print the table; 1 if intervals are wider, or rows take longer, than they may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small streams")
    parser.add_argument("--peer", action="store_true", help="compare with MAPIE as well")
    options = parser.parse_args()
    folder, version = os.environ.get("HINDSIGHT_STREAMS"), installed("mapie") if options.peer else None
    found = in_folder(Path(folder)) if folder else [*from_scikit_learn(), *generated(500 if options.quick else 5000)]
    title = f"{'stream':18s} {'rows':>7s} {'covered':>8s} {'width':>10s} {'/ fixed':>8s}"
    print(title + (f" {'covered':>9s} {'/ MAPIE':>8s}" if version else ""))
    each = []
    for stream in found:
        if not stream.labels:
            ratios, line = compare(stream, bool(version))
            each.append(ratios)
            print(line, flush=True)
    means = np.exp(np.log(each).mean(axis=0))
    took = nanoseconds()
    names = ["the best fixed interval in hindsight", f"MAPIE {version}"]
    for name, mean in zip(names, means, strict=False):
        print(f"mean width against {name}: {mean:.3f} times, the geometric mean")
    print(f"{took:.0f} ns a row, asked at most {NANOSECONDS:.0f}; wider at most {WIDER} times")
    return int(means[-1] > WIDER or took > NANOSECONDS)


if __name__ == "__main__":
    sys.exit(main())
