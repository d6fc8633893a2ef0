"""What to do about a run that lost more than the best constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..online.panel import PanelRun
from .best.objective import column_sizes

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data

SPREAD = 100.0  # ratio of the sizes of columns from which scaling them is advised
SORTED = 0.1  # label changes, as a share of those of shuffled rows, below which rows count as sorted


def cure(run: Run, data: Data, best_eta: float) -> str:
    """Advice for a run that lost more than the best constant would have, from the facts of the run.

    Parameters
    ----------
    run, data : Run and Data
        The run and its rows.
    best_eta : float
        The rate that would have made the bound smallest; NaN if unknown.
    """
    advice: list[str] = []
    if run.learner.geometry.linear and spread(data) >= SPREAD:
        advice.append("scale the features (--scale standard)")
    eta = float(run.learner.rate.of_rounds(1)[0])
    if 0.0 < best_eta < 0.5 * eta and run.learner.rate.is_constant() and run.learner.theorem is not None:
        advice.append(f"take a smaller rate (--eta {best_eta:.2g})")
    if _is_sorted(data.y[data.c > 0.0]):
        advice.append("shuffle the rows: they are sorted by label")
    if not advice:
        panel = isinstance(run, PanelRun)
        advice.append("it may need more rows" if panel else "try --learner auto, which needs no rate and no scaling")
    return "; ".join(advice)


def spread(data: Data) -> float:
    """The ratio of the largest to the smallest root mean square of a column."""
    sizes = column_sizes(data, data.c)
    sizes = sizes[: data.width - (1 if data.bias != 0.0 else 0)]
    sizes = sizes[sizes > 0.0]
    return float(sizes.max() / sizes.min()) if sizes.size > 1 else float(max(sizes.max(initial=1.0), 1.0))


def _is_sorted(y: np.ndarray) -> bool:
    """Whether labels change far less often than they would in shuffled rows; False for numeric targets."""
    high, low = float(y.max()), float(y.min())
    if y.size < 20 or not ((y == high) | (y == low)).all() or high == low:
        return False
    share = float((y == high).mean())
    return float(np.mean(y[1:] != y[:-1])) < SORTED * 2.0 * share * (1.0 - share)
