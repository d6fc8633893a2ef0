"""Coverage of every interval and sequence over thousands of streams; the suite runs a small part of it.

Run ``python tests/forecast_coverage.py [streams] [rounds]``, by default 5,040 streams of 10,000 rounds.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parent))
import naive_forecast
import test_comparison as suite
from hindsight.forecast import Intervals


def main(streams: int = 5040, rounds: int = 10_000) -> None:
    """Print how often each interval missed, and the p-value of "at most alpha" where that was more often."""
    suite.THIN = 1
    names = [f"{by} {when}" for by in Intervals._fields for when in ("at the end", "anywhere")]
    kinds = len(naive_forecast.KINDS)
    for loss in ("square", "log"):
        found = np.zeros((kinds, len(names)), int)
        each = streams // (2 * kinds)
        for k in range(each * kinds):
            found[k % kinds] += suite.misses(k % kinds, rounds, 13 * k + 5, loss)[:-1]
        for at, name in enumerate(names):
            total = int(found[:, at].sum())
            worst = int(found[:, at].max())
            p = binomtest(worst, each, suite.ALPHA, alternative="greater").pvalue
            print(
                f"{loss:7} {name:22} {total:5} of {each * kinds}, worst kind {worst} of {each}, p = {p:.3g}", flush=True
            )


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
