"""The loops of gradient descent: a gradient of all rows from one read of them, and steps on rows drawn at random."""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from .compiler import INLINE, helper, kernel
from .rows import Dense, add, inner
from .simd import prefetch

AHEAD = 8  # draws that a row is fetched before it is played
DECAY = 2.0**-10  # the scale of lazily decayed weights below which they are written out


class DescentState(NamedTuple):
    """The state of a descent; a scalar is an array of one number, which compiled code can write to.

    The weights are w = scale theta, so that l2 decays them without touching every coordinate, and the sum of the
    iterates weighted by their rates is rate_sum theta - moment.

    Attributes
    ----------
    theta, moment : ndarray of shape (width,)
        See above.
    gradient : ndarray of shape (width,)
        The gradient of the current round; zeros between rounds on drawn rows.
    rounds : ndarray of shape (1,)
        Rounds played.
    scale, rate_sum : ndarray of shape (1,)
        See above.
    square : ndarray of shape (1,)
        |w|^2, kept up to date only for drawn rows with l2.
    touched : ndarray of shape (1,)
        Coordinates changed since |w|^2 was last recomputed.
    """

    theta: np.ndarray
    gradient: np.ndarray
    moment: np.ndarray
    rounds: np.ndarray
    scale: np.ndarray
    rate_sum: np.ndarray
    square: np.ndarray
    touched: np.ndarray


def begin_descent(width: int, start: np.ndarray | None) -> DescentState:
    """Return the state before the first round, at w = start (None is 0)."""
    state = DescentState(*np.zeros((3, width)), *np.zeros((5, 1)))
    if start is not None:
        state.theta[:] = start
    state.scale[0], state.square[0] = 1.0, state.theta @ state.theta
    return state


def fetch_ahead(rows, pairs, t):
    """Prefetch row t, its target and its factor, which are needed soon."""


@overload(fetch_ahead, jit_options=INLINE)
def _fetch_ahead(rows, pairs, t):
    if issubclass(rows.instance_class, Dense):

        def dense(rows, pairs, t):
            prefetch(pairs, 16 * t)
            n, size = rows.values.shape[1], rows.values.itemsize
            for k in range(0, n + 31, 32):  # the processor continues a run of cache lines once it has begun
                prefetch(rows.values, (t * n + min(k, n - 1)) * size)

        return dense

    def sparse(rows, pairs, t):
        prefetch(pairs, 16 * t)
        first, last = np.int64(rows.indptr[t]), np.int64(rows.indptr[t + 1])
        for k in range(first, last, 32):
            prefetch(rows.data, k * rows.data.itemsize)
            prefetch(rows.indices, k * rows.indices.itemsize)

    return sparse


@kernel
def add_gradient(rows, y, a, loss, w, gradient, total):
    """`total` + Sigma a_t loss_t at w; the gradient is added to `gradient`. One read of the rows."""
    for t in range(y.size):
        if a[t] == 0.0:
            continue
        z = inner(w, rows, t)[0]
        total += a[t] * loss.value(z, y[t])
        d = a[t] * loss.slope(z, y[t])
        if d != 0.0:
            add(gradient, rows, t, d)
    return total


@kernel
def add_losses(rows, y, a, loss, w, total):
    """`total` + Sigma a_t loss_t at w."""
    for t in range(y.size):
        if a[t] != 0.0:
            total += a[t] * loss.value(inner(w, rows, t)[0], y[t])
    return total


@helper
def squared_norm(rows, drawn, d, gradient):
    """|Sigma d x|^2 over the drawn rows, as Sigma d (x . Sigma d x); `gradient` is zeros before and after."""
    for k in range(drawn.size):
        add(gradient, rows, drawn[k], d[k])
    square = 0.0
    for k in range(drawn.size):
        square += d[k] * inner(gradient, rows, drawn[k])[0]
    for k in range(drawn.size):
        first, last = rows.span(drawn[k])
        for j in range(first, last):
            gradient[rows.index(j)] = 0.0
    gradient[gradient.size - 1] = 0.0
    return square


@helper
def step_weights(rows, drawn, d, factor, state):
    """theta -= factor d x for the drawn rows, and update the moment; return how many entries were touched."""
    touched = 0
    for k in range(drawn.size):
        step = -factor * d[k]
        if step != 0.0:
            add(state.theta, rows, drawn[k], step)
            add(state.moment, rows, drawn[k], step * state.rate_sum[0])
            first, last = rows.span(drawn[k])
            touched += np.int64(last) - np.int64(first) + 1
    return touched


@helper
def write_decay(state):
    """Write out the decay: theta becomes w, and the moment minus the sum so far."""
    for j in range(state.theta.size):
        state.moment[j] -= state.rate_sum[0] * state.theta[j]
        state.theta[j] *= state.scale[0]
    state.scale[0], state.rate_sum[0] = 1.0, 0.0


@helper
def recompute_square(state):
    """Recompute |w|^2."""
    total = 0.0
    for j in range(state.theta.size):
        total += state.theta[j] * state.theta[j]
    state.square[0], state.touched[0] = state.scale[0] * state.scale[0] * total, 0.0


@kernel
def descend(rows, order, pairs, batch, loss, rate, l2, state, facts, d):
    """Play the rows of `order`, `batch` per round; a step costs O(values in its rows), also with l2 and averaging.

    `pairs` has the target and the factor of each row, in one cache line; `d` has room for one slope per row of the
    batch. Returns the rounds played, fewer than given if a margin or a step was not finite.
    """
    rounds = order.size // batch
    f = facts[0]
    sums = f.loss, f.gradient, f.rate, f.rate_loss, f.rate_gradient
    for i in range(rounds):
        eta = rate.at(state.rounds[0] + 1.0)
        value, along, square = 0.0, 0.0, 0.0
        for k in range(i * batch, (i + 1) * batch):
            t = order[k]
            fetch_ahead(rows, pairs, order[min(k + AHEAD, order.size - 1)])
            dot, q, _ = inner(state.theta, rows, t)
            z = state.scale[0] * dot
            y, c = pairs[t, 0], pairs[t, 1] / batch
            slope = c * loss.slope(z, y)
            d[k - i * batch] = slope
            value += c * loss.value(z, y)
            along += slope * z
            square += slope * slope * q
        drawn = order[i * batch : (i + 1) * batch]
        if batch > 1:
            square = squared_norm(rows, drawn, d, state.gradient)
        value += 0.5 * l2 * state.square[0]
        length = square + 2.0 * l2 * along + l2 * l2 * state.square[0]  # |v_t|^2
        if not abs(value) + eta * eta * length < np.inf:
            f.loss, f.gradient, f.rate, f.rate_loss, f.rate_gradient = sums
            return i
        total, gradients, rates, rate_losses, rate_gradients = sums
        sums = (
            total + value,
            gradients + length,
            rates + eta,
            rate_losses + eta * value,
            rate_gradients + eta * eta * length,
        )
        state.rounds[0] += 1.0
        state.rate_sum[0] += eta * state.scale[0]
        if l2 != 0.0:
            decay = 1.0 - eta * l2
            moved = decay * decay * state.square[0] - 2.0 * decay * eta * along + eta * eta * square
            state.square[0] = max(0.0, moved)
            state.scale[0] *= decay
            if not DECAY < abs(state.scale[0]) < 1.0 / DECAY:
                write_decay(state)
        touched = step_weights(rows, drawn, d, eta / state.scale[0], state)
        if l2 != 0.0:
            state.touched[0] += touched
            if state.touched[0] > state.theta.size:
                recompute_square(state)
    f.loss, f.gradient, f.rate, f.rate_loss, f.rate_gradient = sums
    return rounds
