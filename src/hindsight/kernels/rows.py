"""Rows as the loops read them."""

from typing import NamedTuple

import numpy as np

from .compiler import inlined
from .losses import TWICE
from .simd import (
    ascend,
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
    scatter,
    spread,
    store,
    upper,
)

ONE, EIGHT = np.uint64(1), np.uint64(8)
LINE, PAGE, PAGES = 64, 4096, 8 * 4096  # bytes of a cache line, of a page, and of as many pages as are read at once
SOON, AHEAD = 1600, 4096  # how far ahead memory is asked for, in bytes


# ---------------------------------------------------------------- rows
#
# Row t is the values k in span(t), each at coordinate index(k), and the intercept coordinate with value `bias`
# (0: none) in the last column of the state. Values are reached one by one: a view of the row would cost
# reference counts in every round.


# A row is taken eight numbers at a time, a dense one in two lots; the sums are folded to one, and what is left of a
# dense row is taken on the way. Of a sparse row the weights are looked up one by one: the processor's own gathers are
# slow.


@inlined
def reckon(sums, x, a, v, b):
    """Add the numbers from x[a] on, against those from v[b] on, to the sums for the dot, |x|_2^2 and |x|_inf."""
    dot, q, top = sums
    here = load(dot, x, a)
    return fuse(here, load(dot, v, b), dot), fuse(here, here, q), peak(top, here)


@inlined
def merge(sums, more):
    return plus(sums[0], more[0]), plus(sums[1], more[1]), peak(sums[2], more[2])


@inlined
def halve(sums):
    dot, q, top = sums
    return merge((lower(dot), lower(q), lower(top)), (upper(dot), upper(q), upper(top)))


@inlined
def inner_dense(rows, v, i, t):
    """v[i] . x_t, |x_t|_2^2 and |x_t|_inf."""
    x, a, n = rows.line(t)
    b, end = i * v.shape[1], a + n
    none = spread(0.0)
    sums, more = (none, none, none), (none, none, none)
    if n >= 16:
        while a + 32 <= end:
            sums, more = reckon(sums, x, a, v, b), reckon(more, x, a + 8, v, b + 8)
            sums, more = reckon(sums, x, a + 16, v, b + 16), reckon(more, x, a + 24, v, b + 24)
            a += 32
            b += 32
        if n & 16:
            sums, more = reckon(sums, x, a, v, b), reckon(more, x, a + 8, v, b + 8)
            a += 16
            b += 16
        sums = merge(sums, more)
    if n & 8:
        sums = reckon(sums, x, a, v, b)
        a += 8
        b += 8
    sums = halve(sums)
    if n & 4:
        sums = reckon(sums, x, a, v, b)
        a += 4
        b += 4
    sums = halve(sums)
    if n & 2:
        sums = reckon(sums, x, a, v, b)
        a += 2
        b += 2
    sums = halve(sums)
    if n & 1:
        sums = reckon(sums, x, a, v, b)
    return only(sums[0]), only(sums[1]), only(sums[2])


@inlined
def advance(rule, by, x, a, v, b):
    """Add the numbers from x[a] on, times `by`, to those from v[b] on."""
    store(v, b, rule.moved(load(by, v, b), by, load(by, x, a)))


@inlined
def add_dense(rows, rule, v, i, t, d):
    """v[i] += d x_t."""
    x, a, n = rows.line(t)
    b, end = i * v.shape[1], a + n
    by = spread(d)
    while a + 32 <= end:
        advance(rule, by, x, a, v, b)
        advance(rule, by, x, a + 8, v, b + 8)
        advance(rule, by, x, a + 16, v, b + 16)
        advance(rule, by, x, a + 24, v, b + 24)
        a += 32
        b += 32
    while a + 8 <= end:
        advance(rule, by, x, a, v, b)
        a += 8
        b += 8
    by = lower(by)
    if n & 4:
        advance(rule, by, x, a, v, b)
        a += 4
        b += 4
    by = lower(by)
    if n & 2:
        advance(rule, by, x, a, v, b)
        a += 2
        b += 2
    if n & 1:
        advance(rule, lower(by), x, a, v, b)


@inlined
def inner_sparse(rows, v, i, t):
    """v[i] . x_t, |x_t|_2^2 and |x_t|_inf; NaN and infinity where the indices do not ascend within the width."""
    a, b = rows.span(t)
    base, width = i * v.shape[1], v.shape[1] - (1 if rows.bias != 0.0 else 0)
    dot, q, top = spread(0.0), spread(0.0), spread(0.0)
    while a + EIGHT < b:
        # Where nine ascend and the ninth lies within the width, so do the eight that are looked up now.
        if not ascend(rows.indices, a, 8) or rows.index(a + EIGHT) >= width:
            return np.nan, np.inf, 0.0
        prefetch(rows.data, np.int64(a) * rows.data.itemsize + AHEAD)
        prefetch(rows.indices, np.int64(a) * rows.indices.itemsize + AHEAD // 2)
        here = load(q, rows.data, a)
        dot, q, top = fuse(here, gather(q, v, base, rows.indices, a), dot), fuse(here, here, q), peak(top, here)
        a += EIGHT
    if a < b and (not ascend(rows.indices, a, b - a - ONE) or rows.index(b - ONE) >= width):
        return np.nan, np.inf, 0.0
    here = load_some(q, rows.data, a, b - a)
    dot = fuse(here, gather_some(q, v, base, rows.indices, a, b - a), dot)
    sums = halve(halve(halve((dot, fuse(here, here, q), peak(top, here)))))
    return only(sums[0]), only(sums[1]), only(sums[2])


@inlined
def add_sparse(rows, rule, v, i, t, d):
    """v[i] += d x_t."""
    a, b = rows.span(t)
    base, by = i * v.shape[1], spread(d)
    while a + EIGHT <= b:
        w = gather(by, v, base, rows.indices, a)
        scatter(v, base, rows.indices, a, rule.moved(w, by, load(by, rows.data, a)))
        a += EIGHT
    for k in range(a, b):
        j = rows.index(k)
        v[i, j] = rule.moved(v[i, j], d, np.float64(rows.value(t, k)))


@inlined
def turn(rule, geometry, v, b, x, a, by, shift):
    """Add the numbers from x[a] on, times `by`, to the theta from v[b] on, and write their numerators; their mass."""
    theta = rule.moved(load(by, v, b), by, load(by, x, a))
    store(v, b, theta)
    top, mass = geometry.share(theta, shift)
    store(v, b + v.shape[1], top)
    return mass


@inlined
def move_dense(rows, rule, geometry, v, t, d, shift):
    """theta += d x_t and the numerators anew; what all coordinates of the row weigh now."""
    x, a, n = rows.line(t)
    b, end = 0, a + n
    by, mass = spread(d), spread(0.0)
    while a + 8 <= end:
        mass = plus(mass, turn(rule, geometry, v, b, x, a, by, shift))
        a += 8
        b += 8
    by, mass = lower(by), plus(lower(mass), upper(mass))
    if n & 4:
        mass = plus(mass, turn(rule, geometry, v, b, x, a, by, shift))
        a += 4
        b += 4
    by, mass = lower(by), plus(lower(mass), upper(mass))
    if n & 2:
        mass = plus(mass, turn(rule, geometry, v, b, x, a, by, shift))
        a += 2
        b += 2
    by, mass = lower(by), plus(lower(mass), upper(mass))
    if n & 1:
        mass = plus(mass, turn(rule, geometry, v, b, x, a, by, shift))
    return only(mass)


@inlined
def move_sparse(rows, rule, geometry, v, t, d, shift):
    """theta += d x_t and the numerators anew; what the touched coordinates weighed before, and weigh now."""
    old, new = 0.0, 0.0
    a, b = rows.span(t)
    for k in range(a, b):
        j = rows.index(k)
        theta = v[0, j]
        old += geometry.share(theta, shift)[1]
        theta = rule.moved(theta, d, np.float64(rows.value(t, k)))
        v[0, j] = theta
        top, mass = geometry.share(theta, shift)
        v[1, j] = top
        new += mass
    return old, new


@inlined
def foresee(values, here, size):
    """Ask for memory ahead of a row of `size` bytes that begins at byte `here`.

    One stream of lines does not fill the bus: a processor prefetches page by page, and not far. So each line read asks
    for one of the next eight pages, its neighbour for one of the page after; each of the eight is met from its
    start to its end. That much lies in the second cache, so lines are asked for once more soon before they are needed.
    Rows of float32 leave the bus time enough as it is.
    """
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


class Dense(NamedTuple):
    """C-contiguous rows."""

    values: np.ndarray
    bias: float

    def ready(self, t):
        foresee(self.values, t * self.values.strides[0], self.values.strides[0])

    def span(self, t):
        return 0, self.values.shape[1]

    def line(self, t):
        n = self.values.shape[1]
        return self.values, t * n, n

    def index(self, k):
        return k

    def value(self, t, k):
        return self.values[t, k]

    def inner(self, v, i, t):
        return inner_dense(self, v, i, t)

    def add(self, rule, v, i, t, d):
        add_dense(self, rule, v, i, t, d)

    def move(self, rule, geometry, v, t, d, mass, shift):
        return 0.0, move_dense(self, rule, geometry, v, t, d, shift)


class Strided(NamedTuple):
    """Rows of any strides; each is copied to a contiguous scratch row, so that sums run as for `Dense`."""

    values: np.ndarray
    scratch: np.ndarray
    bias: float

    def ready(self, t):
        for j in range(self.scratch.size):
            self.scratch[j] = self.values[t, j]

    def span(self, t):
        return 0, self.scratch.size

    def line(self, t):
        return self.scratch, 0, self.scratch.size

    def index(self, k):
        return k

    def value(self, t, k):
        return self.scratch[k]

    def inner(self, v, i, t):
        return inner_dense(self, v, i, t)

    def add(self, rule, v, i, t, d):
        add_dense(self, rule, v, i, t, d)

    def move(self, rule, geometry, v, t, d, mass, shift):
        return 0.0, move_dense(self, rule, geometry, v, t, d, shift)


class CSR(NamedTuple):
    """Sparse rows. Unsigned indices spare numba's test for negative ones."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    bias: float

    def ready(self, t):
        pass

    def span(self, t):
        return self.indptr[t], self.indptr[t + 1]

    def index(self, k):
        return self.indices[k]

    def value(self, t, k):
        return self.data[k]

    def inner(self, v, i, t):
        return inner_sparse(self, v, i, t)

    def add(self, rule, v, i, t, d):
        add_sparse(self, rule, v, i, t, d)

    def move(self, rule, geometry, v, t, d, mass, shift):
        old, new = move_sparse(self, rule, geometry, v, t, d, shift)
        return mass - old, new


@inlined
def inner(v, i, rows, t):
    """The inner product and the two norms of a row with its intercept coordinate."""
    dot, q, top = rows.inner(v, i, t)
    if rows.bias != 0.0:
        dot += rows.bias * v[i, v.shape[1] - 1]
        q += rows.bias * rows.bias
        top = max(top, rows.bias)
    return dot, q, top


@inlined
def stride(rule, v, i, rows, t, d):
    """v[i] += d x_t, with the intercept coordinate, rounded as the rule has it."""
    rows.add(rule, v, i, t, d)
    if rows.bias != 0.0:
        v[i, v.shape[1] - 1] = rule.moved(v[i, v.shape[1] - 1], d, rows.bias)


@inlined
def add(v, i, rows, t, d):
    """The same, rounded twice."""
    stride(TWICE, v, i, rows, t, d)
