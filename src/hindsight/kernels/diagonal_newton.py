"""A diagonal second order: steps divided by a prior and the curvature met so far, coordinate by coordinate.

No theorem here speaks of it; in a panel it carries what the learners with a theorem then sign.
"""

from typing import Annotated, NamedTuple

import numpy as np

from .compiler import inlined
from .geometries import geometry_part
from .rows import ascends
from .running import meet_target
from .state import scalar, vector


class DiagonalNewtonState(NamedTuple):
    """Per coordinate the weight, its divisor, the curvature met and the largest |x|; `fresh` is the row's divisor."""

    w: Annotated[np.ndarray, vector(odd=True)]
    metric: Annotated[np.ndarray, vector()]
    curved: Annotated[np.ndarray, vector()]
    largest_x: Annotated[np.ndarray, vector()]
    fresh: Annotated[np.ndarray, vector(scratch=True)]
    base: Annotated[np.ndarray, scalar()]
    low: Annotated[np.ndarray, scalar()]
    high: Annotated[np.ndarray, scalar()]
    steep: Annotated[np.ndarray, scalar()]
    begun: Annotated[np.ndarray, scalar()]


@inlined
def weight_of(state, j, x):
    """The weight of coordinate j; a value larger than all before shrinks it, so that it predicts what it did."""
    size = abs(x)
    return state.w[j] * (state.largest_x[j] / size) if size > state.largest_x[j] else state.w[j]


@inlined
def divisor(prior, kappa, state, j, x, curvature):
    """x^2 over the divisor of coordinate j with this row, which goes to `fresh`."""
    if x * x == 0.0:
        return 0.0
    top = max(state.largest_x[j], abs(x))
    a = max(state.metric[j], prior * top * top + kappa * (state.curved[j] + curvature * x * x))
    state.fresh[j] = a
    return x * (x / a)


@inlined
def keep(state, j, x, curvature, d):
    """What a row leaves behind in coordinate j."""
    if x * x == 0.0:
        return
    state.w[j] = weight_of(state, j, x) + d * (x / state.fresh[j])
    state.metric[j] = state.fresh[j]
    state.largest_x[j] = max(state.largest_x[j], abs(x))
    state.curved[j] += curvature * x * x


@geometry_part
class DiagonalNewton(NamedTuple):
    """w -= s x/a with a_i = max(a_i, prior M_i^2 + kappa sum C x_i^2), C the curvature of the loss in each round."""

    prior: float
    kappa: float
    declared: float
    State = DiagonalNewtonState
    linear = False

    def dot(self, state, rows, t):
        if not ascends(rows, t, state.w.size):
            return np.nan, np.inf, 0.0
        z, q, top, last = state.base[0], 0.0, 0.0, state.w.size - 1
        a, b = rows.span(t)
        for k in range(a, b):
            x = np.float64(rows.entry(t, k))
            if x * x == 0.0:
                continue
            z += weight_of(state, rows.index(k), x) * x
            q += x * x
            top = max(top, abs(x))
        if rows.bias != 0.0:
            z += weight_of(state, last, rows.bias) * rows.bias
            q += rows.bias * rows.bias
            top = max(top, rows.bias)
        return z, q, top

    def opens(self, state, rows):
        return self.declared == 0.0 and state.begun[0] == 0.0 and rows.bias != 0.0

    def solve(self, loss, state, rows, t, z, q, y, a):
        if self.declared == 0.0:
            if state.begun[0] == 0.0 and rows.bias != 0.0:
                return 0.0
            z = min(max(z, state.low[0]), state.high[0])
        curvature, inside, last = a * loss.curvature(z), 0.0, state.w.size - 1
        first, end = rows.span(t)
        for k in range(first, end):
            inside += divisor(self.prior, self.kappa, state, rows.index(k), np.float64(rows.entry(t, k)), curvature)
        if rows.bias != 0.0:
            inside += divisor(self.prior, self.kappa, state, last, rows.bias, curvature)
        return loss.implicit(z, y, a * inside)

    def step(self, loss, state, rows, t, z, y, c, d):
        if self.declared == 0.0:
            z = min(max(z, state.low[0]), state.high[0])
        curvature, last = c * loss.curvature(z), state.w.size - 1
        if not meet_target(loss, state, rows, y, self.declared):
            return
        a, b = rows.span(t)
        for k in range(a, b):
            keep(state, rows.index(k), np.float64(rows.entry(t, k)), curvature, d)
        if rows.bias != 0.0:
            keep(state, last, rows.bias, curvature, d)

    def weights(self, state: DiagonalNewtonState) -> np.ndarray:
        """The weights as they stand."""
        w = state.w.copy()
        if state.base[0] != 0.0:  # then there is an intercept
            w[-1] += state.base[0]
        return w
