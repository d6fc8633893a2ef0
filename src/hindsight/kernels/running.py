"""The running geometry: each coordinate has its own scale, learnt as the rows come, and steps are lazy.

With theta the sum of the steps, the weights are w = w_1 + theta/a, where the metric a_i never decreases. Columns need
no scaling: changing the units of a column changes its weight but not the predictions. The metric of a coordinate is

    a = max(a, rms sqrt(S + (h G M)^2) / (eta R))

where M is the largest |x_i| so far, rms its root mean square over rows where it is not 0, S the sum of the squared
steps (s x_i)^2 before, h the largest weight of a row, R the range of the targets (of those seen, or declared), and G
how steep the loss is over that range. Everything but S counts the row at hand, whose target is not known yet.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from .compiler import inlined
from .geometries import geometry_part
from .rows import ascends
from .simd import larger, smaller
from .state import scalar, vector


class RunningState(NamedTuple):
    """The dual vector, the metric and its components for each coordinate; `fresh` is the metric of the current row."""

    theta: Annotated[np.ndarray, vector(odd=True)]
    metric: Annotated[np.ndarray, vector()]
    squares: Annotated[np.ndarray, vector()]
    largest_x: Annotated[np.ndarray, vector()]
    power: Annotated[np.ndarray, vector()]
    nonzeros: Annotated[np.ndarray, vector()]
    fresh: Annotated[np.ndarray, vector(scratch=True)]
    base: Annotated[np.ndarray, scalar()]
    low: Annotated[np.ndarray, scalar()]
    high: Annotated[np.ndarray, scalar()]
    steep: Annotated[np.ndarray, scalar()]
    heaviest: Annotated[np.ndarray, scalar()]
    begun: Annotated[np.ndarray, scalar()]


@inlined
def spread_of(state, j, x):
    """(root mean square, largest |x|) of coordinate j, including the current row."""
    return math.sqrt((state.power[j] + x * x) / (state.nonzeros[j] + 1.0)), larger(state.largest_x[j], abs(x))


@inlined
def refresh(scale, state, j, x, steep):
    """x theta/a and x^2/a with the metric of coordinate j for this row, in `fresh`; a square that underflows is 0."""
    if x * x == 0.0:
        return 0.0, 0.0
    mean, top = spread_of(state, j, x)
    reach = steep * top
    new = mean * math.sqrt(state.squares[j] + reach * reach) * scale
    a = new if new > state.metric[j] else state.metric[j]
    state.fresh[j] = a
    ratio = x / a
    return state.theta[j] * ratio, x * ratio


@inlined
def keep(state, j, x, d):
    """Update coordinate j after a row."""
    square = x * x
    if square == 0.0:
        return
    state.metric[j] = state.fresh[j]
    state.largest_x[j] = larger(state.largest_x[j], abs(x))
    state.power[j] += square
    state.nonzeros[j] += 1.0
    g = d * x
    state.theta[j] += g
    state.squares[j] += g * g


@inlined
def scales(state, declared):
    """(range of the targets, steepness of the loss times the largest weight) before the current row."""
    span = declared if declared > 0.0 else state.high[0] - state.low[0]
    steep = declared if declared > 0.0 else state.steep[0]
    return span, (steep * state.heaviest[0] if state.heaviest[0] > 0.0 else steep)


@inlined
def meet_target(loss, state, rows, y, declared):
    """Record a target: with an intercept the first one sets the start of the weights; the others extend the range.

    Returns whether the row is a round, which a row that sets the start is not.
    """
    first = state.begun[0] == 0.0
    state.begun[0] = 1.0
    if declared > 0.0:
        return True
    if first and rows.bias != 0.0:
        state.base[0] = state.low[0] = state.high[0] = y
        return False
    state.low[0], state.high[0] = smaller(state.low[0], y), larger(state.high[0], y)
    state.steep[0] = loss.steepness(state.high[0] - state.low[0])
    return True


@geometry_part
class Running(NamedTuple):
    """w = w_1 + theta/a. `declared` is the range of the targets if known in advance; 0 uses the targets seen.

    While all targets seen are equal, their range is 0 and no step is made.
    """

    eta: float
    declared: float
    State = RunningState
    linear = False  # a row may raise the metric it is predicted with
    norm = "Σx²/a"

    def dot(self, state, rows, t):
        if not ascends(rows, t, state.theta.size):
            return np.nan, np.inf, 0.0
        span, steep = scales(state, self.declared)
        scale = 1.0 / (self.eta * span)
        z, q, top, last = state.base[0], 0.0, 0.0, state.theta.size - 1
        a, b = rows.span(t)
        for k in range(a, b):
            x = np.float64(rows.entry(t, k))
            top = larger(top, abs(x))
            if span > 0.0:
                along, across = refresh(scale, state, rows.index(k), x, steep)
                z += along
                q += across
            else:
                q += 0.0 * x
        if rows.bias != 0.0:
            top = larger(top, rows.bias)
            if span > 0.0:
                along, across = refresh(scale, state, last, rows.bias, steep)
                z += along
                q += across
        return z, q, top

    def opens(self, state, rows):
        return self.declared == 0.0 and state.begun[0] == 0.0 and rows.bias != 0.0

    def solve(self, loss, state, rows, t, z, q, y, a):
        span = self.declared if self.declared > 0.0 else state.high[0] - state.low[0]
        return loss.implicit(z, y, a * q) if span > 0.0 else 0.0

    def step(self, loss, state, rows, t, z, y, c, d):
        last, known = state.theta.size - 1, self.declared > 0.0 or state.high[0] > state.low[0]
        state.heaviest[0] = larger(state.heaviest[0], c)
        if not meet_target(loss, state, rows, y, self.declared):
            return
        a, b = rows.span(t)
        for k in range(a, b):
            j, x = rows.index(k), np.float64(rows.entry(t, k))
            if not known:
                state.fresh[j] = state.metric[j]
            keep(state, j, x, d)
        if rows.bias != 0.0:
            if not known:
                state.fresh[last] = state.metric[last]
            keep(state, last, rows.bias, d)

    def weights(self, state: RunningState) -> np.ndarray:
        """The current weights; a row with larger values than all before may lower those of its coordinates."""
        seen = state.metric > 0.0
        w = np.divide(state.theta, state.metric, out=np.zeros(state.theta.size), where=seen)
        if state.base[0] != 0.0:  # then there is an intercept
            w[-1] += state.base[0]
        return w
