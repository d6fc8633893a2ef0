"""Diagonal Newton steps: gradients divided by a prior plus the curvature so far, coordinate by coordinate.

No theorem here covers it. In a panel it improves the mixture, whose bound comes from members that have a theorem.
"""

from typing import Annotated, NamedTuple

import numpy as np

from .compiler import inlined
from .geometries import geometry_part
from .rows import ascends
from .running import meet_target
from .simd import larger, smaller
from .state import scalar, vector


class DiagonalNewtonState(NamedTuple):
    """The weight, the accumulated curvature and the largest |x| of each coordinate."""

    w: Annotated[np.ndarray, vector(odd=True)]
    curved: Annotated[np.ndarray, vector()]
    largest_x: Annotated[np.ndarray, vector()]
    base: Annotated[np.ndarray, scalar()]
    low: Annotated[np.ndarray, scalar()]
    high: Annotated[np.ndarray, scalar()]
    steep: Annotated[np.ndarray, scalar()]
    begun: Annotated[np.ndarray, scalar()]


@inlined
def shrinkage(state, j, x):
    """The factor on the weight of coordinate j; with it, a new largest value predicts what the previous largest did."""
    size = abs(x)
    return state.largest_x[j] / size if size > state.largest_x[j] else 1.0


@inlined
def divisor(prior, kappa, state, j, x, curvature):
    """x^2 over the divisor of coordinate j with this row."""
    if x * x == 0.0:
        return 0.0
    top = larger(state.largest_x[j], abs(x))
    return x * (x / (prior * top * top + kappa * (state.curved[j] + curvature * x * x)))


@inlined
def keep(prior, kappa, state, j, x, curvature, d):
    """Update coordinate j after a row."""
    if x * x == 0.0:
        return
    top, curved = larger(state.largest_x[j], abs(x)), state.curved[j] + curvature * x * x
    state.w[j] = state.w[j] * shrinkage(state, j, x) + d * (x / (prior * top * top + kappa * curved))
    state.largest_x[j], state.curved[j] = top, curved


@geometry_part
class DiagonalNewton(NamedTuple):
    """w -= s x/a with a_i = prior M_i^2 + kappa sum C x_i^2, C the curvature of the loss in each round."""

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
            z += state.w[rows.index(k)] * shrinkage(state, rows.index(k), x) * x
            q += x * x
            top = larger(top, abs(x))
        if rows.bias != 0.0:
            z += state.w[last] * shrinkage(state, last, rows.bias) * rows.bias
            q += rows.bias * rows.bias
            top = larger(top, rows.bias)
        return z, q, top

    def opens(self, state, rows):
        return self.declared == 0.0 and state.begun[0] == 0.0 and rows.bias != 0.0

    def solve(self, loss, state, rows, t, z, q, y, a):
        if self.declared == 0.0:
            if state.begun[0] == 0.0 and rows.bias != 0.0:
                return 0.0
            z = smaller(larger(z, state.low[0]), state.high[0])
        curvature, inside, last = a * loss.curvature(z), 0.0, state.w.size - 1
        first, end = rows.span(t)
        for k in range(first, end):
            inside += divisor(self.prior, self.kappa, state, rows.index(k), np.float64(rows.entry(t, k)), curvature)
        if rows.bias != 0.0:
            inside += divisor(self.prior, self.kappa, state, last, rows.bias, curvature)
        return loss.implicit(z, y, a * inside)

    def step(self, loss, state, rows, t, z, y, c, d):
        if self.declared == 0.0:
            z = smaller(larger(z, state.low[0]), state.high[0])
        curvature, last = c * loss.curvature(z), state.w.size - 1
        if not meet_target(loss, state, rows, y, self.declared):
            return
        a, b = rows.span(t)
        for k in range(a, b):
            keep(self.prior, self.kappa, state, rows.index(k), np.float64(rows.entry(t, k)), curvature, d)
        if rows.bias != 0.0:
            keep(self.prior, self.kappa, state, last, rows.bias, curvature, d)

    def weights(self, state: DiagonalNewtonState) -> np.ndarray:
        """The current weights."""
        w = state.w.copy()
        if state.base[0] != 0.0:  # then there is an intercept
            w[-1] += state.base[0]
        return w
