"""The gap between a predictor and the best one, and its description."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...kernels.losses import Absolute, Hinge, Logistic, Probit, Square, Tanh

if TYPE_CHECKING:
    from ..certificate import Best

NEAR = 1e-9  # relative gap at which the search for a smooth loss ends
SAID = 1e-6  # relative gap up to which a predictor is called the best
NONNEGATIVE = (Square, Absolute, Hinge, Logistic, Tanh, Probit)


def above_floor(best: Best, loss: Any) -> Best:
    """The same predictor with the gap to the lower bound of the loss, if that is smaller; it holds for any reach."""
    most = best.loss - floor_of(loss)
    return replace(best, gap=most, reach=math.inf) if most <= best.gap else best


def floor_of(loss: Any) -> float:
    """A lower bound on the loss: 0, or minus infinity."""
    return 0.0 if isinstance(loss, NONNEGATIVE) else -math.inf


def percent(gap: float, loss: float) -> str:
    """A gap in words."""
    if gap <= SAID * abs(loss):
        return "the best"
    return f"within {100.0 * gap / abs(loss):.2g} % of the best" if 0.0 < gap < abs(loss) < math.inf else "found"


def closeness(gap: float, objective: float, where: str = "") -> str:
    """The gap of a comparator's objective in words."""
    share = gap / abs(objective) if objective else 0.0
    return f"the smallest{where}" if share < 1e-6 else f"within {100 * share:.2g} % of the smallest{where}"


def beyond(reach: float) -> str:
    """A remark on a finite reach; empty for an infinite one."""
    return "" if reach == math.inf else f"; sought up to |u| = {reach:.2g} on columns of unit size"
