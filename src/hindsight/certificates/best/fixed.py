"""The best fixed predictor in hindsight: the u of least total loss, with nothing added for its size.

It is a matter of the rows, the loss and the set of u alone: all learners and rates of one loss share it. Its gap says
by how much another u may lose less.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.euclidean import Euclidean
from ...online.margins import each_loss
from . import clock
from .constrained import in_set
from .kinked import KINKS, kinked
from .least_squares import least_squares
from .predictor import FixedPredictor
from .spaces import SPACES
from .unpenalised import smooth
from .wide import by_ascent, by_conjugate_gradients

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

GRAM = 2000  # coordinates up to which least squares takes the Gram matrix
WIDTH = 600  # coordinates up to which Newton's method takes second derivatives


def best_fixed(data: Data, loss: Any, factors: Floats, geometry: Any = None, tol: float = 0.01) -> FixedPredictor:
    """The u that minimises Sigma a phi(u . x, y) over the set of a geometry.

    Parameters
    ----------
    data : Data
        The rows.
    loss : a loss of `kernels`
        phi; of one that is not convex nothing is shown.
    factors : ndarray
        The weight a of each row.
    geometry : a geometry of `kernels`, default None
        It determines the set: the simplex, the L1 ball, or all of R^n.
    tol : float, default 0.01
        Relative gap to reach where it is not exact.

    Examples
    --------
    >>> from hindsight.kernels import Square
    >>> from hindsight.rows.data import Data
    >>> best_fixed(Data(np.array([[1.0], [1.0]]), [1.0, 3.0]), Square(2.0), np.ones(2)).u
    array([2.])
    """
    factors = np.ascontiguousarray(factors, np.float64)
    whole = geometry is None or geometry.name not in SPACES
    beyond = loss.targets == "unit" and not ((data.y >= 0.0) & (data.y <= 1.0))[factors > 0.0].all()
    if beyond or not loss.convex:  # matching losses of such targets may have no least value
        u = np.zeros(data.width)
        value = float(factors @ each_loss(loss, data.margins(u), data.y))
        why = "targets are outside [0, 1]" if beyond else "the loss is not convex"
        return FixedPredictor(u, value, math.inf, f"u = 0, none was sought: {why}")
    if not factors.any():
        return FixedPredictor(np.zeros(data.width), 0.0, 0.0, "no row counts")
    if whole and loss.quadratic and data.width <= GRAM:
        return least_squares(data, loss, factors)
    if whole and loss.quadratic:
        return by_conjugate_gradients(data, loss, factors, tol)
    if whole and data.width <= WIDTH and hasattr(loss, "curvature"):
        return smooth(data, loss, factors)
    if whole and data.width <= WIDTH and type(loss) in KINKS:
        return kinked(data, loss, factors)
    if not whole and data.width <= WIDTH and (type(loss) in KINKS or hasattr(loss, "curvature")):
        found = in_set(data, loss, factors, geometry)
        if found.gap <= tol * abs(found.loss) or clock.late():
            return found
        other = by_ascent(data, loss, factors, geometry, tol)
        return min(found, other, key=lambda f: f.gap if math.isfinite(f.gap) else math.inf)
    return by_ascent(data, loss, factors, Euclidean(1.0) if whole else geometry, tol)
