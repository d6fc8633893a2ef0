"""The Euclidean geometry: additive steps, weights that are the dual state itself."""

from typing import Annotated, NamedTuple

import numpy as np

from .geometries import geometry_part
from .rows import axpy, inner
from .state import scalar, vector


class EuclideanState(NamedTuple):
    """Weights, and for averages the sum of (round x step), so that the sum of w_1..w_T is T w_{T+1} - moment."""

    theta: Annotated[np.ndarray, vector(odd=True)]
    moment: Annotated[np.ndarray, vector(odd=True, averaging=True)]
    clock: Annotated[np.ndarray, scalar()]


@geometry_part
class Euclidean(NamedTuple):
    """w = theta, with the divergence 1/2 |u - w|^2."""

    radius: float
    State = EuclideanState
    averages = True

    def dot(self, state, rows, t):
        return inner(state.theta, rows, t)

    def tick(self, state):
        state.clock[0] += 1.0

    def step(self, loss, state, rows, t, z, y, c, d):
        if loss.moves(d):
            axpy(loss, state.theta, rows, t, d)
            if state.moment.size > 0:
                axpy(loss, state.moment, rows, t, d * state.clock[0])

    def solve(self, loss, state, rows, t, z, q, y, a):
        return loss.implicit(z, y, a * q)

    def reach(self, state):
        return 1.0 if state.moment.size == 0 else state.clock[0] + 1.0  # the moment moves round times as far

    def largest(self, state):
        found = 0.0
        for j in range(state.theta.size):
            found = max(found, abs(state.theta[j]))
        for j in range(state.moment.size):
            found = max(found, abs(state.moment[j]))
        return found

    def conjugate_change(self, state, mark, d, z, after):
        return 0.5 * d * (z + after)  # of 1/2 |theta|^2: d z + 1/2 d^2 |x|^2, with the margin after the step

    def place(self, state: EuclideanState, start: np.ndarray | None) -> None:
        """Put the weights at the start."""
        if start is not None:
            state.theta[:] = start

    def place_dual(self, state: EuclideanState, theta: np.ndarray) -> None:
        """Put the dual vector at a point."""
        state.theta[:] = theta

    def weights(self, state: EuclideanState) -> np.ndarray:
        """The weights."""
        return state.theta.copy()

    def iterate_sum(self, state: EuclideanState) -> np.ndarray:
        """The sum of w_t over the rounds played, w_1 included and w_{T+1} not."""
        return state.clock[0] * state.theta - state.moment
