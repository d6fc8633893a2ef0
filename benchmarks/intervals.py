"""How wide intervals are at 90 %, against MAPIE's adaptive conformal method and the best fixed interval in hindsight.

Run it from anywhere: ``python benchmarks/intervals.py [--quick] [--peer] [--write]``. All make intervals of the same
predictions, those of `AutoRegressor`, each made before its row was learnt. With --peer, which takes minutes, MAPIE
(``pip install mapie``) predicts row by row, over the first 20,000 rows, at the rate 0.005 of its authors; the first
tenth of them (at most 1,000) calibrates it and is not counted. --write puts the table into docs/intervals.md. The
environment variable HINDSIGHT_STREAMS may name a folder of streams; `streams` says how they are written.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from common import about, installed  # before numpy: it sets the number of threads

# isort: split
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from hindsight import AutoRegressor
from hindsight.online.coverage import Coverage
from streams import Stream, from_scikit_learn, generated, in_folder

ASKED, RATE, MOST, WIDER, NANOSECONDS = 0.9, 0.005, 20_000, 1.05, 100.0
PAGE = Path(__file__).resolve().parents[1] / "docs" / "intervals.md"


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


def compare(stream: Stream, peer: bool) -> tuple[list[float], list[str]]:
    """Our mean width over those of the others, and the cells of the stream's line in the table."""
    z = AutoRegressor(keep_margins=True).fit(stream.X, stream.y).margins_[1:]
    y = stream.y[1:]
    off = np.abs(y - z)
    half = Coverage(ASKED).add(off, np.ones(off.size))
    fixed = np.quantile(off, ASKED, method="inverted_cdf")
    ratios = [float(half.mean() / fixed)]
    cells = [stream.name, f"{off.size:,d}", f"{100 * (off <= half).mean():.2f} %", f"{2 * half.mean():.4g}"]
    cells.append(f"{ratios[0]:.3f}")
    if peer:
        first, last = max(50, min(1000, y.size // 10)), min(y.size, MOST)
        width, covered = adaptive(z[:last], y[:last], first)
        ratios.append(float(2.0 * half[first:last].mean() / width))
        cells += [f"{100 * covered:.2f} %", f"{ratios[1]:.3f}"]
    return ratios, cells


def nanoseconds() -> float:
    """Of the processor's time, for a row."""
    scores, c = np.abs(np.random.default_rng(0).standard_normal(1_000_000)), np.ones(1_000_000)
    took = []
    for _ in range(5):
        tracker, began = Coverage(ASKED), time.process_time()
        tracker.add(scores, c)
        took.append(time.process_time() - began)
    return min(took) * 1e9 / scores.size


def written(page: str, table: list[str]) -> str:
    """The page with the table between its two marks."""
    marked = r"(?s)(<!-- benchmarks/intervals\.py -->\n).*?(<!-- end -->)"
    return re.sub(marked, lambda found: found[1] + "\n" + "\n".join(table) + "\n\n" + found[2], page)


def main() -> int:
    """Print the table; 1 if intervals are wider, or rows take longer, than they may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small streams")
    parser.add_argument("--peer", action="store_true", help="compare with MAPIE as well")
    parser.add_argument("--write", action="store_true", help="write the table into docs/intervals.md")
    options = parser.parse_args()
    folder, version = os.environ.get("HINDSIGHT_STREAMS"), installed("mapie") if options.peer else None
    found = in_folder(Path(folder)) if folder else [*from_scikit_learn(), *generated(500 if options.quick else 5000)]
    heads = ["stream", "rows", "covered", "mean width", "over the best fixed width"]
    heads += [f"MAPIE {version} covered", "over MAPIE's width"] if version else []
    table = [f"{about()}.", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    each = []
    for stream in found:
        if not stream.labels:
            ratios, cells = compare(stream, bool(version))
            each.append(ratios)
            table.append(f"| {' | '.join(cells)} |")
            print(table[-1], flush=True)
    means, took = np.exp(np.log(each).mean(axis=0)), nanoseconds()
    cells = ["geometric mean", "", "", "", f"{means[0]:.3f}", *(["", f"{means[1]:.3f}"] if version else [])]
    table += [f"| {' | '.join(cells)} |", "", f"A row takes {took:.0f} ns."]
    print("\n".join(["", *table]))
    print(f"wider at most {WIDER} times, a row at most {NANOSECONDS:.0f} ns", file=sys.stderr)
    if options.write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
    return int(means[-1] > WIDER or took > NANOSECONDS)


if __name__ == "__main__":
    sys.exit(main())
