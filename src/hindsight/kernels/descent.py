"""The loops of sweeps: a gradient of all rows from one read of them, and steps on rows drawn at random.

The rules, rows and steps are those of `kernels`.
"""

import numpy as np
from numba.extending import overload

from .compiler import INLINE, kernel
from .rows import Dense, add, inner
from .simd import prefetch

AHEAD = 8  # draws that a row is fetched before it is played
DECAY = 2.0**-10  # the scale of lazily decayed weights at which they are written out

# Scalars of a sweep: w = SCALE theta, Sigma eta w = SUM theta - moment, and, where drawn rows meet l2, |w|^2.
ROUNDS, SCALE, SUM, SQUARE, TOUCHED, SCALARS = range(6)


def ahead(rows, pairs, t):
    """Ask for row t, its target and its factor, which will be played soon."""


@overload(ahead, jit_options=INLINE)
def _ahead(rows, pairs, t):
    if issubclass(rows.instance_class, Dense):

        def dense(rows, pairs, t):
            prefetch(pairs, 16 * t)
            n, size = rows.values.shape[1], rows.values.itemsize
            for k in range(0, n + 31, 32):  # the processor follows a run of lines once it has begun
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
def gather(rows, y, a, rule, v, total):
    """`total` and Sigma a_t loss_t at w = v[0]; the gradient is added to v[1]. One read of the rows."""
    for t in range(y.size):
        if a[t] == 0.0:
            continue
        z = inner(v[0], rows, t)[0]
        total += a[t] * rule.value(z, y[t])
        d = a[t] * rule.slope(z, y[t])
        if d != 0.0:
            add(v[1], rows, t, d)
    return total


@kernel
def value(rows, y, a, rule, v, total):
    """`total` and Sigma a_t loss_t at w = v[0]."""
    for t in range(y.size):
        if a[t] != 0.0:
            total += a[t] * rule.value(inner(v[0], rows, t)[0], y[t])
    return total


@kernel
def together(rows, drawn, d, v):
    """|Sigma d x|^2 over the drawn rows, as Sigma d (x . Sigma d x); v[1] is zeros before and after."""
    for k in range(drawn.size):
        add(v, 1, rows, drawn[k], d[k])
    square = 0.0
    for k in range(drawn.size):
        square += d[k] * inner(v, 1, rows, drawn[k])[0]
    for k in range(drawn.size):
        first, last = rows.span(drawn[k])
        for j in range(first, last):
            v[1, rows.index(j)] = 0.0
    v[1, v.shape[1] - 1] = 0.0
    return square


@kernel
def move(rows, drawn, d, scale, v, s):
    """theta -= scale d x for the drawn rows, and the moment with it; how many numbers that touched."""
    touched = 0
    for k in range(drawn.size):
        far = -scale * d[k]
        if far != 0.0:
            add(v, 0, rows, drawn[k], far)
            add(v, 2, rows, drawn[k], far * s[SUM])
            first, last = rows.span(drawn[k])
            touched += np.int64(last) - np.int64(first) + 1
    return touched


@kernel
def rebase(v, s):
    """Write out the decay: theta becomes w, and the moment minus the sum so far."""
    for j in range(v.shape[1]):
        v[2, j] -= s[SUM] * v[0, j]
        v[0, j] *= s[SCALE]
    s[SCALE], s[SUM] = 1.0, 0.0


@kernel
def settle(v, s):
    """|w|^2 anew."""
    total = 0.0
    for j in range(v.shape[1]):
        total += v[0, j] * v[0, j]
    s[SQUARE], s[TOUCHED] = s[SCALE] * s[SCALE] * total, 0.0


@kernel
def descend(rows, order, pairs, batch, rule, step, l2, v, s, f, d):
    """Play the rows of `order`, `batch` a round; every step costs O(values in its rows), also with l2 and the mean.

    `pairs` holds the target and the factor of each row, on one line of memory; v holds theta, a workspace of zeros
    and the moment; d room for a slope a row of the batch. Returns the rounds played, fewer than asked where a
    margin or a step was not finite.
    """
    rounds = order.size // batch
    loss, gradient, rate, rate_loss, rate_gradient = f[2], f[8], f[9], f[10], f[11]
    for i in range(rounds):
        eta = step.at(s[ROUNDS] + 1.0)
        paid, along, square = 0.0, 0.0, 0.0
        for k in range(i * batch, (i + 1) * batch):
            t = order[k]
            ahead(rows, pairs, order[min(k + AHEAD, order.size - 1)])
            dot, q, _ = inner(v[0], rows, t)
            z = s[SCALE] * dot
            y, c = pairs[t, 0], pairs[t, 1] / batch
            pull = c * rule.slope(z, y)
            d[k - i * batch] = pull
            paid += c * rule.value(z, y)
            along += pull * z
            square += pull * pull * q
        drawn = order[i * batch : (i + 1) * batch]
        if batch > 1:
            square = together(rows, drawn, d, v)
        paid += 0.5 * l2 * s[SQUARE]
        length = square + 2.0 * l2 * along + l2 * l2 * s[SQUARE]  # |v_t|^2
        if not abs(paid) + eta * eta * length < np.inf:
            f[2], f[8], f[9], f[10], f[11] = loss, gradient, rate, rate_loss, rate_gradient
            return i
        loss += paid
        gradient += length
        rate += eta
        rate_loss += eta * paid
        rate_gradient += eta * eta * length
        s[ROUNDS] += 1.0
        s[SUM] += eta * s[SCALE]
        if l2 != 0.0:
            keep = 1.0 - eta * l2
            s[SQUARE] = max(0.0, keep * keep * s[SQUARE] - 2.0 * keep * eta * along + eta * eta * square)
            s[SCALE] *= keep
            if not DECAY < abs(s[SCALE]) < 1.0 / DECAY:
                rebase(v, s)
        touched = move(rows, drawn, d, eta / s[SCALE], v, s)
        if l2 != 0.0:
            s[TOUCHED] += touched
            if s[TOUCHED] > v.shape[1]:
                settle(v, s)
    f[2], f[8], f[9], f[10], f[11] = loss, gradient, rate, rate_loss, rate_gradient
    return rounds
