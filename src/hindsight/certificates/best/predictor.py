"""What a search for the best fixed predictor returns, and its words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ...kernels.losses import Absolute, Hinge, Logistic, Probit, Square, Tanh

if TYPE_CHECKING:
    from ...kernels.floats import Floats

NEAR = 1e-9  # relative gap at which the search for a smooth loss ends
SAID = 1e-6  # relative gap up to which a predictor is called the best
NONNEGATIVE = (Square, Absolute, Hinge, Logistic, Tanh, Probit)


class FixedPredictor(NamedTuple):
    """A fixed predictor: its weights, its loss, by how much that may exceed the least, how it was found, and the reach.

    No u with |D u|_2 <= reach loses less than loss - gap; a reach of infinity means no u at all.
    """

    u: Floats
    loss: float
    gap: float
    how: str
    reach: float = math.inf

    def above_floor(self, loss: Any) -> FixedPredictor:
        """The same with the gap that the least value of the loss leaves, for any reach, where that is smaller."""
        most = self.loss - floor_of(loss)
        return self._replace(gap=most, reach=math.inf) if most <= self.gap else self


def floor_of(loss: Any) -> float:
    """A number that the loss is never below: 0, or minus infinity."""
    return 0.0 if isinstance(loss, NONNEGATIVE) else -math.inf


def percent(gap: float, loss: float) -> str:
    """A gap in words."""
    if gap <= SAID * abs(loss):
        return "the best"
    return f"within {100.0 * gap / abs(loss):.2g} % of the best" if 0.0 < gap < abs(loss) < math.inf else "found"


def closeness(gap: float, objective: float, where: str = "") -> str:
    """How near a comparator's objective is to the smallest."""
    share = gap / abs(objective) if objective else 0.0
    return f"the smallest{where}" if share < 1e-6 else f"within {100 * share:.2g} % of the smallest{where}"


def beyond(reach: float) -> str:
    """What is said of a finite reach."""
    return "" if reach == math.inf else f"; sought up to |u| = {reach:.2g} on columns of unit size"
