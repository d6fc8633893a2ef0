"""The loss of the best constant prediction in hindsight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...online.margins import each_loss, each_slope
from ...rows.spread import PerRow
from .objective import KINKS, envelope_of
from .spaces import SPACES

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

HALVINGS = 200
PART = 1 << 16  # rows whose losses are computed at once


def best_constant(loss: Any, y: Floats, c: Floats) -> float:
    """The minimum, or infimum, of Sigma c phi(z, y) over all constants z.

    Parameters
    ----------
    loss : a loss of `kernels`
        phi.
    y, c : ndarray
        Targets and weights.

    Examples
    --------
    >>> from hindsight.kernels import Square
    >>> best_constant(Square(2.0), np.array([1.0, 3.0]), np.ones(2))
    2.0
    """
    if not c.any():
        return 0.0
    y, c = counted(y, c)
    z, many = constant_margin(loss, y, c), not isinstance(y, PerRow)
    parts = [slice(k, k + PART) for k in range(0, y.size, PART)] if many else [slice(None)]
    return sum(float(c[part] @ each_loss(loss, np.full_like(y[part], z), y[part])) for part in parts)


def counted(y: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Targets and weights of the rows of positive weight, copied only if others stand between them."""
    on = c > 0.0
    if on.all():
        return y, c
    if isinstance(y, PerRow):
        return y[on], c[on]
    between = slice(int(np.argmax(on)), on.size - int(np.argmax(on[::-1])))
    return (y[between], c[between]) if on[between].all() else (y[on], c[on])


def constant_margin(loss: Any, y: Floats, c: Floats) -> float:
    """The z that minimises Sigma c phi(z, y), or a large z if the infimum is not attained; c is not 0 for all y."""
    if loss.quadratic:
        return float(c @ y) / float(c.sum())
    if isinstance(y, PerRow):  # which cannot be sorted
        return _root(loss, y, c)
    on = c > 0.0
    low, high = float(y.min(where=on, initial=np.inf)), float(y.max(where=on, initial=-np.inf))
    upper = y == high
    if (upper | (y == low) | ~on).all():  # labels need no sorting
        sums = {low: float(c.sum(where=~upper))} | {high: float(c.sum(where=upper))}
        y, c = np.array(list(sums)), np.array(list(sums.values()))
    else:
        y, place = np.unique(y[on], return_inverse=True)
        c = np.bincount(place.ravel(), c[on])
    return _best_kink(loss, y, c) if type(loss) in KINKS else _root(loss, y, c)


def constant_point(data: Data, loss: Any, c: Floats, geometry: Any) -> dict[str, Floats]:
    """The u of the best constant, by name; empty without an intercept or rows, or if u is not in the set."""
    if data.bias == 0.0 or (geometry is not None and geometry.name in SPACES) or not c.any():
        return {}
    u = np.zeros(data.width)
    u[-1] = constant_margin(loss, data.y, c) / data.bias
    return {"the best constant": u}


def fewest_of_constant(y: Floats, c: Floats) -> float:
    """The mistakes of always predicting the better label."""
    return min(float(c[y > 0.0].sum()), float(c[y <= 0.0].sum()))


def _best_kink(loss: Any, y: Floats, c: Floats) -> float:
    """The kink at which the slope of the sum turns positive."""
    phi = envelope_of(loss, y)
    order = np.argsort(phi.kink)
    slope = float(c @ phi.low) + np.cumsum((c * (phi.high - phi.low))[order])
    return float(phi.kink[order][min(int(np.searchsorted(slope, 0.0)), y.size - 1)])


def _root(loss: Any, y: Floats, c: Floats) -> float:
    """The z at which the slope of the sum is 0, or a large z if the slope never changes sign."""

    def slope(z: float) -> float:
        return float(c @ each_slope(loss, np.full_like(y, z), y))

    far = 1e3 * (1.0 + float(np.abs(y).max()))
    low, high = -far, far
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (low, middle) if slope(middle) >= 0.0 else (middle, high)
    return 0.5 * (low + high)
