"""What the searches for the best fixed predictor share: what they return, and how a lower bound is shown.

Let L(u) = Sigma_t a_t phi(u . x_t, y_t). For slopes r_t of phi at any margins, with v = Sigma_t a_t r_t x_t,

    L(u) >= -Sigma_t a_t phi*(r_t) + v . u        for every u,

phi* the conjugate; the least of v . u over the set of u makes that a lower bound. All of R^n has one only where v = 0,
which rounding seldom leaves. So where nothing better is known, the bound is over |D u|_2 <= reach, D the root mean
squares of the columns: u whose terms u_i x_i are as large as that together. It is then said what the reach is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...kernels import operators
from ...kernels.floats import EPS
from ...kernels.losses import Absolute, Hinge, Logistic, Probit, Square, Tanh
from ...kernels.rows import CSR

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

NEAR = 1e-9  # relative gap at which the search for a smooth loss ends
SAID = 1e-6  # relative gap up to which a predictor is called the best
FAR = 1e6  # the reach, in units of the targets, where rounding hides what lies beyond
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


def floor_of(loss: Any) -> float:
    """A number that the loss is never below: 0, or minus infinity."""
    return 0.0 if isinstance(loss, NONNEGATIVE) else -math.inf


def column_sizes(data: Data, a: Floats) -> Floats:
    """D: the root mean square of every column, with weights a; one pass."""
    n = data.width - (1 if data.bias != 0.0 else 0)
    sums = np.zeros(data.width)
    for first, rows, count in data.blocks():
        part = a[first : first + count]
        if isinstance(rows, CSR):
            operators.combine(rows._replace(data=np.square(rows.data, dtype=np.float64)), part, sums)
        else:
            values = np.asarray(rows.values, np.float64)
            sums[:n] += part @ (values * values)
    if data.bias != 0.0:
        sums[-1] = data.bias**2 * a.sum()
    return np.sqrt(sums / max(float(a.sum()), 1e-300))


def inverse(sizes: Floats) -> Floats:
    """1/D, and 0 for columns of zeros."""
    with np.errstate(divide="ignore", over="ignore"):
        found = np.where(sizes > 0.0, 1.0 / sizes, 0.0)
    return np.where(np.isfinite(found), found, 0.0)


def target_size(data: Data, a: Floats, loss: Any) -> float:
    """The unit of margins: the root mean square of real targets, or 1 for labels."""
    if loss.targets != "real":
        return 1.0
    return math.sqrt(float(a @ data.y**2) / max(float(a.sum()), 1e-300))


def rounding_of(a: Floats, each: Floats, slope: Floats, z: Floats) -> float:
    """What a sum of losses at computed margins may be off by."""
    return 8.0 * EPS * float(a @ (np.abs(each) + np.abs(slope * z)))


def sum_rounding(data: Data, a: Floats, slope: Floats) -> float:
    """What |D^-1 Sigma a r x|_2 may be off by: each coordinate is a sum of that size, in some order."""
    size = math.sqrt(float(a @ slope**2) * float(a.sum()))
    return 16.0 * EPS * math.sqrt(data.width) * size


def percent(gap: float, loss: float) -> str:
    """A gap in words."""
    if gap <= SAID * abs(loss):
        return "the best"
    return f"within {100.0 * gap / abs(loss):.2g} % of the best" if 0.0 < gap < abs(loss) < math.inf else "found"


def beyond(reach: float) -> str:
    """What is said of a finite reach."""
    return "" if reach == math.inf else f"; sought up to |u| = {reach:.2g} on columns of unit size"
