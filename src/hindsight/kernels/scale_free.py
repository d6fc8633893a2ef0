"""The scale-free geometry: each coordinate is measured relative to its largest absolute value so far.

With theta the sum of the steps and M_i the largest |x_i| so far, including the current row, the weights are
w_i = theta_i / M_i^2. Changing the units of a column changes its weight but not the predictions. It corresponds to the
Euclidean geometry on columns divided by their largest absolute value, without knowing that value in advance.
"""

from typing import Annotated, NamedTuple

import numpy as np

from .compiler import inlined
from .geometries import geometry_part
from .rows import ascends
from .simd import larger
from .state import vector


class ScaleFreeState(NamedTuple):
    """The dual vector and the largest |x| of each coordinate."""

    theta: Annotated[np.ndarray, vector(odd=True)]
    largest_x: Annotated[np.ndarray, vector()]


@inlined
def measured(state, j, x):
    """(w_j x, (x / M_j)^2) with the largest size of coordinate j, this row's included."""
    if x * x == 0.0:  # a square that underflows is 0
        return 0.0, 0.0
    top = larger(state.largest_x[j], abs(x))
    unit = x / top if top > 0.0 else np.nan
    return state.theta[j] / top * unit, unit * unit


@geometry_part
class ScaleFree(NamedTuple):
    """w = theta / M^2."""

    radius: float
    State = ScaleFreeState
    name = "scale-free"
    linear = False  # a row may raise the size it is measured by
    norm = "|x/M|₂"

    def dot(self, state, rows, t):
        if not ascends(rows, t, state.theta.size):
            return np.nan, np.inf, 0.0
        z, q, top, last = 0.0, 0.0, 0.0, state.theta.size - 1
        a, b = rows.span(t)
        for k in range(a, b):
            x = np.float64(rows.entry(t, k))
            top = larger(top, abs(x))
            along, across = measured(state, rows.index(k), x)
            z += along
            q += across
        if rows.bias != 0.0:
            top = larger(top, rows.bias)
            along, across = measured(state, last, rows.bias)
            z += along
            q += across
        return z, q, top

    def solve(self, loss, state, rows, t, z, q, y, a):
        return loss.implicit(z, y, a * q)

    def step(self, loss, state, rows, t, z, y, c, d):
        a, b = rows.span(t)
        for k in range(a, b):
            j, x = rows.index(k), np.float64(rows.entry(t, k))
            if x * x != 0.0:
                state.largest_x[j] = larger(state.largest_x[j], abs(x))
                state.theta[j] += d * x
        if rows.bias != 0.0:
            last = state.theta.size - 1
            state.largest_x[last] = larger(state.largest_x[last], rows.bias)
            state.theta[last] += d * rows.bias

    def weights(self, state: ScaleFreeState) -> np.ndarray:
        """The current weights; a row with larger values than all before may lower those of its coordinates."""
        top = np.where(state.largest_x > 0.0, state.largest_x, 1.0)
        return state.theta / top / top
