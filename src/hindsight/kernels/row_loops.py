"""Operations on one row: its inner product and norms, and a step along it.

A row is processed eight numbers at a time, a dense one with two sets of sums; then the sums are reduced to one, and the
remainder of a dense row is added on the way. The weights of a sparse row are loaded one by one, since gather
instructions are slow.
"""

import numpy as np
from llvmlite import binding
from numba import config

from .compiler import inlined
from .simd import (
    ascending,
    fuse,
    gather,
    gather_some,
    load,
    load_some,
    lower,
    only,
    peak,
    plus,
    prefetch,
    spread,
    store,
    upper,
)
from .state import LINE

ONE, EIGHT = np.uint64(1), np.uint64(8)
PAGE, PAGES = 4096, 8 * 4096  # bytes of a page, and of as many pages as are read at once
SOON, AHEAD = 1600, 4096  # how far ahead memory is asked for, in bytes
# AMD's processors prefetch well by themselves: there the lines asked for here would only be in the way.
ASKS = not (config.CPU_NAME or binding.get_host_cpu_name()).startswith(("znver", "bdver", "btver"))


# ---------------------------------------------------------------- the inner product and the norms


@inlined
def accumulate(sums, x, a, w, b):
    """Add the numbers from x[a] on, against those from w[b] on, to the sums for the dot, |x|_2^2 and |x|_inf."""
    dot, q, top = sums
    here = load(dot, x, a)
    return fuse(here, load(dot, w, b), dot), fuse(here, here, q), peak(top, here)


@inlined
def merge(sums, more):
    return plus(sums[0], more[0]), plus(sums[1], more[1]), peak(sums[2], more[2])


@inlined
def halve(sums):
    dot, q, top = sums
    return merge((lower(dot), lower(q), lower(top)), (upper(dot), upper(q), upper(top)))


@inlined
def inner_dense(rows, w, t):
    """w . x_t, |x_t|_2^2 and |x_t|_inf."""
    x, a, n = rows.line(t)
    b, end = 0, a + n
    none = spread(0.0)
    sums, more = (none, none, none), (none, none, none)
    if n >= 16:
        while a + 32 <= end:
            sums, more = accumulate(sums, x, a, w, b), accumulate(more, x, a + 8, w, b + 8)
            sums, more = accumulate(sums, x, a + 16, w, b + 16), accumulate(more, x, a + 24, w, b + 24)
            a += 32
            b += 32
        if n & 16:
            sums, more = accumulate(sums, x, a, w, b), accumulate(more, x, a + 8, w, b + 8)
            a += 16
            b += 16
        sums = merge(sums, more)
    if n & 8:
        sums = accumulate(sums, x, a, w, b)
        a += 8
        b += 8
    sums = halve(sums)
    if n & 4:
        sums = accumulate(sums, x, a, w, b)
        a += 4
        b += 4
    sums = halve(sums)
    if n & 2:
        sums = accumulate(sums, x, a, w, b)
        a += 2
        b += 2
    sums = halve(sums)
    if n & 1:
        sums = accumulate(sums, x, a, w, b)
    return only(sums[0]), only(sums[1]), only(sums[2])


@inlined
def inner_sparse(rows, w, t):
    """w . x_t, |x_t|_2^2 and |x_t|_inf; NaN and infinity if the indices do not ascend or are not below the width."""
    a, b = rows.span(t)
    width = w.size - (1 if rows.bias != 0.0 else 0)
    dot, q, top = spread(0.0), spread(0.0), spread(0.0)
    while a + EIGHT < b:
        # Where nine ascend and the ninth lies within the width, so do the eight that are looked up now.
        if not ascending(rows.indices, a, 8) or rows.index(a + EIGHT) >= width:
            return np.nan, np.inf, 0.0
        prefetch(rows.data, np.int64(a) * rows.data.itemsize + AHEAD)
        prefetch(rows.indices, np.int64(a) * rows.indices.itemsize + AHEAD // 2)
        here = load(q, rows.data, a)
        dot, q, top = fuse(here, gather(q, w, 0, rows.indices, a), dot), fuse(here, here, q), peak(top, here)
        a += EIGHT
    if a < b and (not ascending(rows.indices, a, b - a - ONE) or rows.index(b - ONE) >= width):
        return np.nan, np.inf, 0.0
    here = load_some(q, rows.data, a, b - a)
    dot = fuse(here, gather_some(q, w, 0, rows.indices, a, b - a), dot)
    sums = halve(halve(halve((dot, fuse(here, here, q), peak(top, here)))))
    return only(sums[0]), only(sums[1]), only(sums[2])


@inlined
def ascending_within(rows, t, width):
    """Whether the indices of a sparse row ascend and are below the width."""
    a, b = rows.span(t)
    least = np.uint64(0)  # what the next index must not be below
    for k in range(a, b):
        j = np.uint64(rows.index(k))
        if j < least:
            return False
        least = j + ONE
    return least <= np.uint64(width)


# ---------------------------------------------------------------- a step in the weights


@inlined
def step_along(loss, by, x, a, w, b):
    """Add the numbers from x[a] on, times `by`, to those from w[b] on."""
    store(w, b, loss.rounded_step(load(by, w, b), by, load(by, x, a)))


@inlined
def axpy_dense(rows, loss, w, t, d):
    """w += d x_t."""
    x, a, n = rows.line(t)
    b, end = 0, a + n
    by = spread(d)
    while a + 32 <= end:
        step_along(loss, by, x, a, w, b)
        step_along(loss, by, x, a + 8, w, b + 8)
        step_along(loss, by, x, a + 16, w, b + 16)
        step_along(loss, by, x, a + 24, w, b + 24)
        a += 32
        b += 32
    while a + 8 <= end:
        step_along(loss, by, x, a, w, b)
        a += 8
        b += 8
    by = lower(by)
    if n & 4:
        step_along(loss, by, x, a, w, b)
        a += 4
        b += 4
    by = lower(by)
    if n & 2:
        step_along(loss, by, x, a, w, b)
        a += 2
        b += 2
    if n & 1:
        step_along(loss, lower(by), x, a, w, b)


@inlined
def axpy_sparse(rows, loss, w, t, d):
    """w += d x_t."""
    a, b = rows.span(t)
    for k in range(a, b):
        j = rows.index(k)
        w[j] = loss.rounded_step(w[j], d, np.float64(rows.entry(t, k)))


# ---------------------------------------------------------------- a step in the exponents of multiplicative weights


@inlined
def step_exponents(loss, geometry, theta, numerator, b, x, a, by, shift):
    """Add the numbers from x[a] on, times `by`, to those from theta[b] on; write numerators and return their mass."""
    new = loss.rounded_step(load(by, theta, b), by, load(by, x, a))
    store(theta, b, new)
    top, mass = geometry.numerator_and_mass(new, shift)
    store(numerator, b, top)
    return mass


@inlined
def exponents_dense(rows, loss, geometry, theta, numerator, t, d, shift):
    """theta += d x_t; recompute the numerators, and return the mass of all coordinates of the row."""
    x, a, n = rows.line(t)
    b, end = 0, a + n
    by, mass = spread(d), spread(0.0)
    while a + 8 <= end:
        mass = plus(mass, step_exponents(loss, geometry, theta, numerator, b, x, a, by, shift))
        a += 8
        b += 8
    by, mass = lower(by), plus(lower(mass), upper(mass))
    if n & 4:
        mass = plus(mass, step_exponents(loss, geometry, theta, numerator, b, x, a, by, shift))
        a += 4
        b += 4
    by, mass = lower(by), plus(lower(mass), upper(mass))
    if n & 2:
        mass = plus(mass, step_exponents(loss, geometry, theta, numerator, b, x, a, by, shift))
        a += 2
        b += 2
    by, mass = lower(by), plus(lower(mass), upper(mass))
    if n & 1:
        mass = plus(mass, step_exponents(loss, geometry, theta, numerator, b, x, a, by, shift))
    return only(mass)


@inlined
def exponents_sparse(rows, loss, geometry, theta, numerator, t, d, shift):
    """theta += d x_t; recompute the numerators, and return the mass of the touched coordinates before and after."""
    old, new = 0.0, 0.0
    a, b = rows.span(t)
    for k in range(a, b):
        j = rows.index(k)
        old += geometry.numerator_and_mass(theta[j], shift)[1]
        theta[j] = loss.rounded_step(theta[j], d, np.float64(rows.entry(t, k)))
        numerator[j], mass = geometry.numerator_and_mass(theta[j], shift)
        new += mass
    return old, new


# ---------------------------------------------------------------- memory


@inlined
def prefetch_row(values, here, size):
    """Prefetch memory ahead of a row of `size` bytes that begins at byte `here`.

    A single stream of cache lines does not use the full memory bandwidth, as the hardware prefetcher works within a
    page and not far ahead. So each line read prefetches a line of one of the next eight pages, its neighbour a line of
    the page after that, and each of the eight pages is fetched from start to end. These lines reach the second-level
    cache, so they are prefetched again shortly before they are needed. Rows of float32 do not need this.
    """
    if not ASKS:
        return
    if values.itemsize == 4:
        for k in range(here + AHEAD, here + size + AHEAD, LINE):
            prefetch(values, k)
        return
    start, step = np.int64(values.ctypes.data), PAGE + LINE // 8  # eight steps are eight pages and a line
    pages, place = (start + here & -PAGES) + PAGES - start, (start + here) // LINE * step
    for k in range(0, size - LINE, 2 * LINE):
        prefetch(values, pages + (place & PAGES - 1))
        prefetch(values, pages + (place + step & PAGES - 1))
        prefetch(values, here + k + SOON)
        prefetch(values, here + k + LINE + SOON)
        place += 2 * step
    prefetch(values, pages + (place & PAGES - 1))
    prefetch(values, here + size + SOON)
