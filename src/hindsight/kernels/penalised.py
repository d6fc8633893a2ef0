"""The Euclidean geometry with penalties: after each step weights shrink by l2 and move towards 0 by l1.

    w_{t+1} minimises  eta_t (c_t loss(w . x_t, y_t) + l1 |w|_1 + l2/2 |w|^2) + 1/2 |w - w_t|^2

with the loss itself (implicit steps) or its tangent at w_t (explicit ones). The intercept is not penalised. The
size of a weight that a row does not touch becomes max(0, |w| - eta l1)/(1 + eta l2) in the round. Over several rounds
that is max(0, |w| e^-D - C) with sums D and C that are the same for all weights. So weights are updated only when a row
touches them, and a round costs O(values in its row).
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from .compiler import inlined
from .geometries import geometry_part
from .rows import ascends
from .state import scalar, vector


class PenalisedState(NamedTuple):
    """The weight of each coordinate, and the values of `decay` and `cut` when it was written.

    `decay` is the sum of ln(1 + eta l2), and `cut` is how much l1 has reduced a weight that never reached 0. `fresh`
    has the updated weights of the current row, in its order; `pace` and `square` are its rate and |x|^2.
    """

    theta: Annotated[np.ndarray, vector(odd=True)]
    decays: Annotated[np.ndarray, vector()]
    cuts: Annotated[np.ndarray, vector()]
    fresh: Annotated[np.ndarray, vector(scratch=True)]
    decay: Annotated[np.ndarray, scalar()]
    cut: Annotated[np.ndarray, scalar()]
    pace: Annotated[np.ndarray, scalar(scratch=True)]
    square: Annotated[np.ndarray, scalar(scratch=True)]


@inlined
def up_to_date(state, j):
    """Weight j after the rounds that did not touch it."""
    w, cut = state.theta[j], state.cut[0] - state.cuts[j]
    if state.decays[j] != state.decay[0]:
        left = math.exp(state.decays[j] - state.decay[0])
        w, cut = w * left, state.cut[0] - state.cuts[j] * left
    return cut_by(w, max(cut, 0.0))  # rounded, the difference may be below 0


@inlined
def cut_by(w, cut):
    """w moved towards 0 by `cut`, but not past 0."""
    return max(w - cut, 0.0) + min(w + cut, 0.0)  # no branch: it could not be predicted


@inlined
def landing(self, state, rows, t, d):
    """The margin of row t after the step d on it, and how fast it grows with d."""
    cut, left, last = state.pace[0] * self.l1, 1.0 / (1.0 + state.pace[0] * self.l2), state.theta.size - 1
    z, growth = 0.0, 0.0
    a, b = rows.span(t)
    for k in range(a, b):
        x = np.float64(rows.entry(t, k))
        w = cut_by(state.fresh[k - a] + d * x, cut)
        if w != 0.0:
            z += left * w * x
            growth += left * x * x
    if rows.bias != 0.0:
        z += (state.theta[last] + d * rows.bias) * rows.bias
        growth += rows.bias * rows.bias
    return z, growth


@geometry_part
class Penalised(NamedTuple):
    """w = theta once it is up to date, with the divergence 1/2 |u - w|^2 and the penalties l1 |w|_1 + l2/2 |w|^2."""

    l1: float
    l2: float
    State = PenalisedState

    def dot(self, state, rows, t):
        if not ascends(rows, t, state.theta.size):
            return np.nan, np.inf, 0.0
        z, q, top, last = 0.0, 0.0, 0.0, state.theta.size - 1
        a, b = rows.span(t)
        for k in range(a, b):
            x = np.float64(rows.entry(t, k))
            state.fresh[k - a] = w = up_to_date(state, rows.index(k))
            z += w * x
            q += x * x
            top = max(top, abs(x))
        if rows.bias != 0.0:
            z += state.theta[last] * rows.bias
            q += rows.bias * rows.bias
            top = max(top, rows.bias)
        return z, q, top

    def keep_pace(self, state, eta):
        state.pace[0] = eta

    def solve(self, loss, state, rows, t, z, q, y, a):
        """The slope at the margin after the step; that margin is a decreasing piecewise linear function of the slope.

        Each iteration solves for the root on the line through the current point, and halves the bracket if that does
        not make progress.
        """
        s, low, high = loss.implicit(z, y, a * q), -np.inf, np.inf
        for i in range(200):
            after, growth = landing(self, state, rows, t, -a * s)
            new = loss.implicit(after + a * growth * s, y, a * growth)
            if abs(new - s) <= 4e-16 * abs(new):
                return new
            if new > s:
                low = s
            else:
                high = s
            if not low < new < high or (i > 6 and i % 2 == 0 and high - low < np.inf):
                new = 0.5 * (low + high)
                if not low < new < high:
                    return new
            s = new
        return s

    def step(self, loss, state, rows, t, z, y, c, d):
        cut, left, last = state.pace[0] * self.l1, 1.0 / (1.0 + state.pace[0] * self.l2), state.theta.size - 1
        decay = state.decay[0] + math.log1p(state.pace[0] * self.l2)
        total, square = (state.cut[0] + cut) * left, 0.0
        a, b = rows.span(t)
        for k in range(a, b):
            j, x = rows.index(k), np.float64(rows.entry(t, k))
            state.theta[j] = left * cut_by(state.fresh[k - a] + d * x, cut)
            state.decays[j], state.cuts[j] = decay, total
            square += x * x
        if rows.bias != 0.0:
            state.theta[last] += d * rows.bias
            state.decays[last], state.cuts[last] = decay, total
            square += rows.bias * rows.bias
        state.decay[0], state.cut[0], state.square[0] = decay, total, square

    def largest(self, state):
        found = 0.0
        for j in range(state.theta.size):
            found = max(found, abs(state.theta[j]))
        return found

    def conjugate_change(self, state, mark, d, z, after):
        """A bound on what the step adds to D(u, w), beyond -d (u . x) and the rate times the penalties of u minus w.

        It is d z' - 1/2 |w' - w|^2, and (z' - z)^2 <= |w' - w|^2 |x|^2.
        """
        return d * after - (0.5 * (z - after) * (z - after) / state.square[0] if state.square[0] > 0.0 else 0.0)

    def place(self, state: PenalisedState, start: np.ndarray | None) -> None:
        """Put the weights at the start."""
        if start is not None:
            state.theta[:] = start

    def weights(self, state: PenalisedState) -> np.ndarray:
        """The weights, all up to date."""
        left = np.exp(state.decays - state.decay[0])
        size = np.abs(state.theta) * left - np.maximum(state.cut[0] - state.cuts * left, 0.0)
        return np.copysign(np.maximum(size, 0.0), state.theta) + 0.0
