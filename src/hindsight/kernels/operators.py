"""Rows as a linear operator: products with a vector and with their transpose, norms and the Gram matrix."""

import math

from .compiler import kernel
from .rows import add, inner, size_of_margin

BLOCK = 4096  # rows whose sums are added to those before


@kernel
def margins(rows, w, out):  # type: ignore[no-untyped-def]
    """w . x_t of every row."""
    for t in range(out.size):
        out[t] = inner(w, rows, t)[0]


@kernel
def margin_sizes(rows, w, out):  # type: ignore[no-untyped-def]
    """Sigma_i |w_i x_ti| of every row."""
    for t in range(out.size):
        out[t] = size_of_margin(w, rows, t)


@kernel
def combine(rows, r, total):  # type: ignore[no-untyped-def]
    """Add Sigma r_t x_t to `total`."""
    for t in range(r.size):
        if r[t] != 0.0:
            add(total, rows, t, r[t])


@kernel
def residual_gradient(rows, w, y, a, out, gradient):  # type: ignore[no-untyped-def]
    """The margins w . x_t, and Sigma a_t (w . x_t - y_t) x_t added to `gradient`."""
    for t in range(out.size):
        out[t] = inner(w, rows, t)[0]
        if a[t] != 0.0:
            add(gradient, rows, t, a[t] * (out[t] - y[t]))


@kernel
def ordered_sum(rows, first, w, y, c, before, total):  # type: ignore[no-untyped-def]
    """Add w . x + 3 y + 5 c of each row, times its number, to `total`; `before` is the number of rows before these.

    The result is bit for bit the same for the same rows, in any chunks.
    """
    for i in range(y.size):
        rows.ready(first + i)
        total += (before + i + 1.0) * (inner(w, rows, first + i)[0] + 3.0 * y[i] + 5.0 * c[i])
    return total


@kernel
def norms(rows, w, z, q, top):  # type: ignore[no-untyped-def]
    """w . x_t, |x_t|_2^2 and |x_t|_inf of every row."""
    for t in range(q.size):
        z[t], q[t], top[t] = inner(w, rows, t)


@kernel
def measure(z, q, top, y, c, size, sums, maxima):  # type: ignore[no-untyped-def]
    """The largest norms and targets of rows of positive weight, and the sums that identify the rows.

    These are the sums of c (size |x|_2 + z), with z = w . x and |w|_2 = `size`, and of c (2 |y| + y), and of both times
    the number of the row. All terms are at least 0, so that none cancel.
    """
    t, largest, widest, far = 0.0, 0.0, 0.0, 0.0
    sums[:] = 0.0
    for first in range(0, c.size, BLOCK):  # roundings that are alike would add up in one long sum
        values, targets, values_in_order, targets_in_order = 0.0, 0.0, 0.0, 0.0
        for i in range(first, min(c.size, first + BLOCK)):
            if c[i] > 0.0:
                t += 1.0
                value, target = c[i] * (size * math.sqrt(q[i]) + z[i]), c[i] * (2.0 * abs(y[i]) + y[i])
                values += value
                targets += target
                values_in_order += t * value
                targets_in_order += t * target
                largest, widest, far = max(largest, q[i]), max(widest, top[i]), max(far, abs(y[i]))
        sums[0] += values
        sums[1] += targets
        sums[2] += values_in_order
        sums[3] += targets_in_order
    maxima[0], maxima[1], maxima[2] = largest, widest, far


@kernel
def outer(rows, a, gram):  # type: ignore[no-untyped-def]
    """Add Sigma a_t x_t x_t^T, the upper triangle without the intercept, to `gram`."""
    for t in range(a.size):
        first, last = rows.span(t)
        for k in range(first, last):
            scaled = a[t] * rows.entry(t, k)
            for j in range(k, last):
                gram[rows.index(k), rows.index(j)] += scaled * rows.entry(t, j)
