"""The one online loop, and the parts it is made of.

Every online learner of the notes is one rule: keep a dual vector theta, read the weights through
the geometry, step on the loss::

    w_t = weights(theta_t)    z_t = w_t . x_t    theta_{t+1} = theta_t - eta_t * c_t * slope(z_t, y_t) * x_t

A learner is four parts. A **rule** is a loss in z, its slope, its implicit slope, the mean it predicts and how its
steps are rounded. An **update** says where the slope is taken (at the old or at the new weights). A **geometry** turns
theta into weights and takes the step. A **step** gives the rate of round t. Rows come as a fifth part. Parts are
NamedTuples whose methods numba dispatches by type, so each combination compiles to one tight loop, is cached across
processes, and also runs as plain Python (`play.py_func`). Parts and loop share this file: a part elsewhere would leave
a stale cache behind (`lanes`, the vector operations they are written in, hardly ever changes: save this file after it).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.core.types import BaseNamedTuple
from numba.extending import overload_method

from .lanes import (
    ROUND,
    alike,
    ascend,
    doubled,
    fuse,
    gather,
    gather_some,
    halved,
    load,
    load_some,
    lower,
    minus,
    only,
    peak,
    plus,
    prefetch,
    scatter,
    spread,
    store,
    times,
    upper,
    wide,
)

LN2_HI = 0.693147180369123816490  # 33 significant bits, so that k * LN2_HI is exact
LN2_LO = 1.90821492927058770002e-10
LOG2_E = 1.4426950408889634
ONE, EIGHT = np.uint64(1), np.uint64(8)

ROOT_HALF, BELL = 0.7071067811865476, 0.3989422804014327  # 1/sqrt(2) and 1/sqrt(2 pi)
LINE, PAGE, PAGES = 64, 4096, 8 * 4096  # bytes of a cache line, of a page, and of as many pages as are read at once
SOON, AHEAD = 1600, 4096  # how far ahead memory is asked for, in bytes

# Scalars of a learner's state. `v` holds its vectors, a row each (the intercept in the last column):
# theta (+ moments of it for averaging), and for the multiplicative geometries the numerators of w
# (+ their running sum and the clock at which each was last brought up to date).
ROUNDS, REACH, MASS, BASE, TOUCHED, CLOCK, SHIFT, SCALARS = range(8)

# Without reference counts (nothing here allocates) and with every part inlined, a round costs a third of what it
# would otherwise; division by zero gives an infinity, which the loop looks for, rather than an exception.
BARE = {"error_model": "numpy", "_nrt": False}
INLINE = {**BARE, "forceinline": True}
kernel = njit(cache=True, nogil=True, **BARE)
inlined = njit(cache=True, **INLINE)


# The methods of parts, and their arguments; numba takes the method of the part's own class.
METHODS = {
    # rules
    "slope": "self, z, y",
    "loss": "self, z, y",
    "mean": "self, z",
    "error": "self, z, y",
    "wrong": "self, z, y",
    "bend": "self, z",
    "implicit": "self, z, y, a",
    "moved": "self, w, d, x",
    # updates and steps
    "pull": "self, rule, geometry, v, s, rows, t, z, q, y, a",
    "rate": "self, t",
    # rows
    "ready": "self, t",
    "span": "self, t",
    "index": "self, k",
    "value": "self, t, k",
    "line": "self, t",
    "inner": "self, v, i, t",
    "add": "self, rule, v, i, t, d",
    "move": "self, rule, geometry, v, t, d, mass, shift",
    # geometries
    "dot": "self, v, s, rows, t",
    "tick": "self, s",
    "step": "self, rule, v, s, rows, t, d",
    "solve": "self, rule, v, s, rows, t, z, q, y, a",
    "share": "self, theta, shift",
    "height": "self, theta",
    "norm": "self, q, top",
    "reach": "self, v, s",
    "limit": "self",
}
for _name, _args in METHODS.items():
    overload_method(BaseNamedTuple, _name, jit_options=INLINE)(eval(f"lambda {_args}: self.instance_class.{_name}"))


# ---------------------------------------------------------------- rules


# Smooth rules round a step once. Those with a kink round it twice: from 0, -d then takes d back to 0, so that the
# ties there are stay ties.


class Twice(NamedTuple):
    """What a sum of rows takes for a rule."""

    none: float

    def moved(self, w, d, x):
        return plus(w, times(d, x))


TWICE = Twice(0.0)


class Square(NamedTuple):
    """scale/2 (z - y)^2. Scale 2 is the square loss; scale 1 drops the gradient's 2 as Widrow-Hoff and EG do."""

    scale: float

    def slope(self, z, y):
        return self.scale * (z - y)

    def loss(self, z, y):
        return 0.5 * self.scale * (z - y) * (z - y)

    def mean(self, z):
        return z

    def error(self, z, y):
        return z - y

    def wrong(self, z, y):
        return y * z <= 0.0

    def implicit(self, z, y, a):
        return self.scale * (z - y) / (1.0 + self.scale * a)

    def moved(self, w, d, x):
        return fuse(d, x, w)


class Absolute(NamedTuple):
    """scale |z - y|, with slope 0 at z = y."""

    scale: float

    def slope(self, z, y):
        return self.scale if z > y else (-self.scale if z < y else 0.0)

    def loss(self, z, y):
        return self.scale * abs(z - y)

    def mean(self, z):
        return z

    def error(self, z, y):
        return z - y

    def wrong(self, z, y):
        return y * z <= 0.0

    def implicit(self, z, y, a):
        return self.slope(z, y) if abs(z - y) >= self.scale * a else (z - y) / a

    def moved(self, w, d, x):
        return plus(w, times(d, x))


class Logistic(NamedTuple):
    """scale (ln(1 + e^z) - y z) for y in [0, 1]: the logistic loss, and the matching loss of the logistic link."""

    scale: float

    def slope(self, z, y):
        return self.scale * logit_slope(z, y)

    def loss(self, z, y):
        return self.scale * (max(z, 0.0) - y * z + math.log1p(math.exp(-abs(z))))

    def mean(self, z):
        return sigmoid(z)

    def error(self, z, y):
        return logit_slope(z, y)

    def wrong(self, z, y):
        return (y - 0.5) * z <= 0.0

    def bend(self, z):
        return self.scale * sigmoid(z) * sigmoid(-z)

    def implicit(self, z, y, a):
        return implicit_smooth(self, z, y, a)

    def moved(self, w, d, x):
        return fuse(d, x, w)


class Tanh(NamedTuple):
    """The matching loss of the link u(z) = (1 + tanh z)/2, the logistic one twice as steep, for y in [0, 1]."""

    scale: float

    def slope(self, z, y):
        return self.scale * logit_slope(2.0 * z, y)

    def loss(self, z, y):
        return self.scale * (max(z, 0.0) - y * z + 0.5 * math.log1p(math.exp(-2.0 * abs(z))))

    def mean(self, z):
        return sigmoid(2.0 * z)

    def error(self, z, y):
        return logit_slope(2.0 * z, y)

    def wrong(self, z, y):
        return (y - 0.5) * z <= 0.0

    def bend(self, z):
        return self.scale * 2.0 * sigmoid(2.0 * z) * sigmoid(-2.0 * z)

    def implicit(self, z, y, a):
        return implicit_smooth(self, z, y, a)

    def moved(self, w, d, x):
        return fuse(d, x, w)


class Probit(NamedTuple):
    """The matching loss of the link u(z) = Phi(z), the normal distribution function, for y in [0, 1]."""

    scale: float

    def slope(self, z, y):
        return self.scale * ((1.0 - y) * normal(z) - y * normal(-z))

    def loss(self, z, y):
        return self.scale * (max(z, 0.0) - y * z + bell(z) - abs(z) * normal(-abs(z)))

    def mean(self, z):
        return normal(z)

    def error(self, z, y):
        return (1.0 - y) * normal(z) - y * normal(-z)

    def wrong(self, z, y):
        return (y - 0.5) * z <= 0.0

    def bend(self, z):
        return self.scale * bell(z)

    def implicit(self, z, y, a):
        return implicit_smooth(self, z, y, a)

    def moved(self, w, d, x):
        return fuse(d, x, w)


class Hinge(NamedTuple):
    """max(0, margin - y z) for y = -1 or 1. Margin 0 is the perceptron's loss, whose slope at z = 0 is -y."""

    margin: float

    def slope(self, z, y):
        return -y if y * z <= self.margin else 0.0

    def loss(self, z, y):
        return max(0.0, self.margin - y * z)

    def mean(self, z):
        return 1.0 if z > 0.0 else (-1.0 if z < 0.0 else 0.0)

    def error(self, z, y):
        return self.mean(z) - y

    def wrong(self, z, y):
        return y * z <= 0.0

    def implicit(self, z, y, a):
        short = self.margin - y * z
        return 0.0 if short < 0.0 else (-y if short >= a else -y * short / a)

    def moved(self, w, d, x):
        return plus(w, times(d, x))


class Clipped(NamedTuple):
    """The matching loss of the clipped linear link u(z) = min(1, max(0, z)): its slope is u(z) - y."""

    scale: float

    def slope(self, z, y):
        return self.scale * (min(1.0, max(0.0, z)) - y)

    def loss(self, z, y):
        u = min(1.0, max(0.0, z))
        return self.scale * (u * (z - 0.5 * u) - y * z)

    def mean(self, z):
        return min(1.0, max(0.0, z))

    def error(self, z, y):
        return self.mean(z) - y

    def wrong(self, z, y):
        return (y - 0.5) * (z - 0.5) <= 0.0

    def implicit(self, z, y, a):
        b = self.scale * a
        if z + b * y <= 0.0:  # it lands where the link is 0
            return -self.scale * y
        if z + b * (y - 1.0) >= 1.0:  # or where it is 1
            return self.scale * (1.0 - y)
        return self.scale * (z - y) / (1.0 + b)

    def moved(self, w, d, x):
        return plus(w, times(d, x))


@inlined
def sigmoid(z):
    e = math.exp(-abs(z))
    return 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)


@inlined
def logit_slope(z, y):
    """sigmoid(z) - y without cancellation, and exactly the negative of itself at (-z, 1 - y)."""
    return (1.0 - y) * sigmoid(z) - y * sigmoid(-z)


@inlined
def normal(z):
    """The normal distribution function, exact far out on either side."""
    return 0.5 * math.erfc(-z * ROOT_HALF)


@inlined
def bell(z):
    """The normal density."""
    return BELL * math.exp(-0.5 * z * z)


@kernel
def implicit_smooth(rule, z, y, a):
    """The slope g = slope(z - a g): Newton's steps, or bisection where they do not halve the bracket."""
    g = rule.slope(z, y)
    lo, hi = min(g, 0.0), max(g, 0.0)
    width = hi - lo
    for _ in range(200):
        f = g - rule.slope(z - a * g, y)
        if f > 0.0:
            hi = g
        else:
            lo = g
        new = g - f / (1.0 + a * rule.bend(z - a * g))
        if not lo < new < hi or hi - lo > 0.5 * width:
            new = 0.5 * (lo + hi)
        width = hi - lo
        if f == 0.0 or abs(new - g) <= 2e-16 * abs(g):
            return new if f != 0.0 else g
        g = new
    return g


# ---------------------------------------------------------------- updates


class Explicit(NamedTuple):
    """The slope at the weights that predicted."""

    scale: float

    def pull(self, rule, geometry, v, s, rows, t, z, q, y, a):
        return rule.slope(z, y)


class Implicit(NamedTuple):
    """The slope at the weights after the step (the notes' updates before their approximation)."""

    scale: float

    def pull(self, rule, geometry, v, s, rows, t, z, q, y, a):
        return geometry.solve(rule, v, s, rows, t, z, q, y, a)


class Step(NamedTuple):
    """The rate of round t = 1, 2, ...: rates[t - 1] where rates are given, else eta t^-power."""

    eta: float
    power: float
    rates: np.ndarray

    def rate(self, t):
        if self.rates.size > 0:
            return self.rates[int(t) - 1]
        return self.eta if self.power == 0.0 else self.eta * t**-self.power


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


# ---------------------------------------------------------------- geometries


def aligned(rows: int, width: int) -> np.ndarray:
    """Zeros that begin at a cache line, so that eight of them are never spread over two."""
    room = np.zeros(rows * width + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    return room[first : first + rows * width].reshape(rows, width)


class Euclidean(NamedTuple):
    """w = theta. For averages the second row of v sums (round * step), so that Sigma w_t = T w_{T+1} - v[1]."""

    radius: float

    def dot(self, v, s, rows, t):
        return inner(v, 0, rows, t)

    def tick(self, s):
        pass

    def step(self, rule, v, s, rows, t, d):
        stride(rule, v, 0, rows, t, d)
        if v.shape[0] > 1:
            stride(rule, v, 1, rows, t, d * s[ROUNDS])

    def solve(self, rule, v, s, rows, t, z, q, y, a):
        return rule.implicit(z, y, a * q)

    def norm(self, q, top):
        return q

    def reach(self, v, s):
        return 1.0 if v.shape[0] == 1 else s[ROUNDS] + 1.0  # the moment moves round times as far

    def limit(self):
        return np.inf

    def begin(self, width: int, start: np.ndarray | None, average: bool) -> tuple[np.ndarray, np.ndarray]:
        v, s = aligned(2 if average else 1, width), np.zeros(SCALARS)
        if start is not None:
            v[0] = start
        s[REACH] = np.abs(v[0]).max()
        return v, s

    def weights(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
        return v[0].copy()

    def total(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Sigma_t w_t over the rounds played, w_1 included and w_{T+1} not."""
        return s[ROUNDS] * v[0] - v[1]


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


@inlined
def horner(a, x, c):
    """a x + c for a constant c."""
    return fuse(a, x, alike(a, c))


@inlined
def exponentials(theta, shift):
    """e^theta / 2^shift and e^-theta / 2^shift, of a number or of lanes: 0 far below 1, infinity far above.

    theta = k ln 2 + r; with e^r = even(r^2) + r odd(r^2), both signs share one polynomial.
    """
    k = minus(horner(theta, alike(theta, LOG2_E), ROUND), alike(theta, ROUND))
    r = fuse(k, alike(theta, -LN2_LO), fuse(k, alike(theta, -LN2_HI), theta))
    x = times(r, r)
    even = horner(alike(theta, 1 / 479001600), x, 1 / 3628800)
    even = horner(even, x, 1 / 40320)
    even = horner(even, x, 1 / 720)
    even = horner(even, x, 1 / 24)
    even = horner(even, x, 0.5)
    even = horner(even, x, 1.0)
    odd = horner(alike(theta, 1 / 6227020800), x, 1 / 39916800)
    odd = horner(odd, x, 1 / 362880)
    odd = horner(odd, x, 1 / 5040)
    odd = horner(odd, x, 1 / 120)
    odd = horner(odd, x, 1 / 6)
    odd = fuse(times(odd, x), r, r)
    return doubled(plus(even, odd), k, float(shift)), halved(minus(even, odd), k, float(shift))


@inlined
def catch_up(v, j, clock):
    """Bring one coordinate's running sum of weights up to the clock (the sum of 1/mass over the rounds)."""
    if clock != v[3, j]:  # a numerator just moved may be infinite until the mass is recomputed
        v[2, j] += v[1, j] * (clock - v[3, j])
        v[3, j] = clock


@kernel
def refresh(geometry, v, s):
    """Shift to the largest exponent and recompute mass and numerators; running sums are brought up to date."""
    if v.shape[0] > 2:
        for j in range(v.shape[1]):
            catch_up(v, j, s[CLOCK])
            v[3, j] = 0.0
    top = -np.inf
    for j in range(v.shape[1]):
        top = max(top, geometry.height(v[0, j]))
    shift = math.ceil(top * LOG2_E)
    mass, lost = 0.0, 0.0  # a compensated sum: a million equal roundings would add up
    for j in range(v.shape[1]):
        v[1, j], m = geometry.share(v[0, j], shift)
        part = m - lost
        total = mass + part
        lost = (total - mass) - part
        mass = total
    s[MASS], s[BASE], s[TOUCHED], s[CLOCK], s[SHIFT] = mass, mass, 0.0, 0.0, shift


def entropic_dot(self, v, s, rows, t):
    dot, q, top = inner(v, 1, rows, t)
    return self.radius * dot / s[MASS], q, top


def entropic_tick(self, s):
    s[CLOCK] += 1.0 / s[MASS]


def entropic_step(self, rule, v, s, rows, t, d):
    """One multiplicative step in O(nnz).

    The mass is tracked by differences. It is recomputed after as many touched coordinates as there are, and
    when it has moved 2^10-fold (differences of it, and of the clock, would cancel): both are told by the state
    alone, so the sizes of chunks change nothing.
    """
    a, b = rows.span(t)
    last = v.shape[1] - 1
    if v.shape[0] > 2:
        for k in range(a, b):
            catch_up(v, rows.index(k), s[CLOCK])
        if rows.bias != 0.0:
            catch_up(v, last, s[CLOCK])
    d *= self.radius
    rest, new = rows.move(rule, self, v, t, d, s[MASS], s[SHIFT])
    if rows.bias != 0.0:
        if rest != 0.0:
            rest -= self.share(v[0, last], s[SHIFT])[1]
        v[0, last] = rule.moved(v[0, last], d, rows.bias)
        v[1, last], mass = self.share(v[0, last], s[SHIFT])
        new += mass
    s[MASS] = rest + new
    if rest != 0.0:
        s[TOUCHED] += b - a + 1
    if s[TOUCHED] > v.shape[1] or not s[BASE] * 2.0**-10 < s[MASS] < s[BASE] * 2.0**10:
        refresh(self, v, s)


@kernel
def entropic_after(geometry, v, s, rows, t, d):
    """The margin of row t after a step d on it, without taking the step."""
    d *= geometry.radius
    a, b = rows.span(t)
    last = v.shape[1] - 1
    top = geometry.height(v[0, last] + d * rows.bias)
    for k in range(a, b):
        top = max(top, geometry.height(v[0, rows.index(k)] + d * rows.value(t, k)))
    shift = max(s[SHIFT], math.ceil(top * LOG2_E))
    old, new, dot = 0.0, 0.0, 0.0
    for k in range(a, b):
        theta, x = v[0, rows.index(k)], rows.value(t, k)
        old += geometry.share(theta, s[SHIFT])[1]
        e, mass = geometry.share(theta + d * x, shift)
        new += mass
        dot += e * x
    if rows.bias != 0.0:
        old += geometry.share(v[0, last], s[SHIFT])[1]
        e, mass = geometry.share(v[0, last] + d * rows.bias, shift)
        new += mass
        dot += e * rows.bias
    full = b - a == (last if rows.bias != 0.0 else last + 1)
    rest = 0.0 if full else s[MASS] - old
    return geometry.radius * dot / (rest * 2.0 ** (s[SHIFT] - shift) + new)


def entropic_solve(self, rule, v, s, rows, t, z, q, y, a):
    """The slope g = slope(margin after the step -a g): margins fall as g grows, so g lies between 0 and slope(z).

    False position and bisection take turns; a jump of the slope (hinge, absolute) is met by bisection.
    """
    g = rule.slope(z, y)
    near, far = 0.0, g
    f_near, f_far = -g, g - rule.slope(entropic_after(self, v, s, rows, t, -a * g), y)
    for i in range(120):
        if f_far == 0.0 or abs(far - near) <= 2e-16 * abs(far):
            break
        g = near - f_near * (far - near) / (f_far - f_near) if i % 2 == 0 else 0.5 * (near + far)
        f = g - rule.slope(entropic_after(self, v, s, rows, t, -a * g), y)
        if f * f_near > 0.0:
            near, f_near = g, f
        else:
            far, f_far = g, f
    return far


@kernel
def shares(geometry, theta, shift, out):
    """Numerator and mass of every coordinate."""
    for j in range(theta.size):
        out[0, j], out[1, j] = geometry.share(theta[j], shift)


def entropic_norm(self, q, top):
    return (self.radius * top) ** 2


def entropic_reach(self, v, s):
    return self.radius


def entropic_limit(self):
    return 2.0**48  # beyond it theta, and so e^theta, has lost its digits


def entropic_begin(self, width: int, start: np.ndarray | None, average: bool) -> tuple[np.ndarray, np.ndarray]:
    v, s = aligned(4 if average else 2, width), np.zeros(SCALARS)
    if start is not None:
        v[0] = self.dual(start)
    s[REACH] = np.abs(v[0][np.isfinite(v[0])]).max()
    refresh(self, v, s)
    return v, s


def entropic_weights(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
    out = np.empty((2, v.shape[1]))
    shares(self, v[0], s[SHIFT], out)
    return self.radius * out[0] / out[1].sum()


def entropic_total(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Sigma_t w_t over the rounds played, w_1 included and w_{T+1} not."""
    return self.radius * (v[2] + v[1] * (s[CLOCK] - v[3]))


class Simplex(NamedTuple):
    """w_i = radius e^theta_i / Sigma e^theta_j, in the log domain."""

    radius: float

    def share(self, theta, shift):
        up, down = exponentials(theta, shift)
        return up, up

    def height(self, theta):
        return theta

    def dual(self, w: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(w / self.radius)

    dot, tick, step, solve, norm = entropic_dot, entropic_tick, entropic_step, entropic_solve, entropic_norm
    begin, weights, total = entropic_begin, entropic_weights, entropic_total
    reach, limit = entropic_reach, entropic_limit


class Balanced(NamedTuple):
    """w_i = radius sinh theta_i / Sigma cosh theta_j: the simplex rule on radius (x, -x), one theta for both halves."""

    radius: float

    def share(self, theta, shift):
        up, down = exponentials(theta, shift)
        return minus(up, down), plus(up, down)

    def height(self, theta):
        return abs(theta)

    def dual(self, w: np.ndarray) -> np.ndarray:
        """theta with sinh theta_i = w_i S / radius and S = Sigma cosh theta_j, S found by bisection."""
        p = w / self.radius
        lo, hi = float(w.size), w.size / (1.0 - np.abs(p).sum())
        for _ in range(200):
            mid = 0.5 * (lo + hi)
            if np.sqrt(1.0 + (p * mid) ** 2).sum() > mid:
                lo = mid
            else:
                hi = mid
        return np.arcsinh(p * 0.5 * (lo + hi))

    dot, tick, step, solve, norm = entropic_dot, entropic_tick, entropic_step, entropic_solve, entropic_norm
    begin, weights, total = entropic_begin, entropic_weights, entropic_total
    reach, limit = entropic_reach, entropic_limit


# ---------------------------------------------------------------- the loop


@kernel
def largest(v):
    """The largest number of theta, and of its moment."""
    found = 0.0
    for i in range(min(2, v.shape[0])):
        for j in range(v.shape[1]):
            if np.isfinite(v[i, j]):
                found = max(found, abs(v[i, j]))
    return found


FACTS = 22  # the size of the array of facts; `facts.Facts` names its places


@kernel
def play(rows, first, last, y, c, rule, update, geometry, step, v, s, z, q, top, f):
    """Play rows first..last: for each, margin and norms into z, q = |x|_2^2 and top = |x|_inf, then the step.

    Returns how many were played: fewer than asked where a row or its step is not finite, or where its indices do
    not ascend within the width; the state is then as it was before that row. The facts of the rounds are added to f:
    plain sums in the order played, so that the sizes of chunks change nothing, and held in local names meanwhile.
    """
    wide()
    constant = step.power == 0.0 and step.rates.size == 0
    sums = (f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[12], f[13], f[14], f[15], f[16], f[19])
    played = last - first
    for i in range(last - first):
        t = first + i
        rows.ready(t)
        zi, qi, ti = geometry.dot(v, s, rows, t)
        z[i], q[i], top[i] = zi, qi, ti
        if not abs(zi) + qi < np.inf:
            played = i
            break
        if c[i] == 0.0:
            continue
        eta = step.rate(s[ROUNDS] + 1.0)
        a = eta * c[i]
        d = -a * update.pull(rule, geometry, v, s, rows, t, zi, qi, y[i], a)
        if d != 0.0:
            # REACH bounds the numbers of the state from above; it is made exact before a step is refused.
            far, reach = abs(d) * ti * geometry.reach(v, s), s[REACH]
            if not reach + far < geometry.limit():
                reach = largest(v)
                if not reach + far < geometry.limit():
                    played = i
                    break
            s[REACH] = reach + far
        s[ROUNDS] += 1.0
        geometry.tick(s)
        if d != 0.0:
            geometry.step(rule, v, s, rows, t, d)
        sums = tally(rule, geometry, zi, qi, ti, y[i], c[i], sums)
        if not constant:
            tally_rate(rule, geometry, zi, qi, ti, y[i], c[i], eta, f)
    f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[12], f[13], f[14], f[15], f[16], f[19] = sums
    if constant and f[0] > 0.0:
        eta = step.eta
        f[9], f[10], f[11], f[17], f[18] = eta * f[0], eta * f[2], eta * eta * f[8], eta * f[14], eta * f[15]
        f[20], f[21] = eta, -eta
    return played


@inlined
def tally(rule, geometry, zi, qi, ti, yi, ci, sums):
    """The sums and maxima of the facts with one more round."""
    rounds, weight, total, square, wrong, wrong_c, wrong_q, target, gradients = sums[:9]
    x2, xinf, cx2, cxinf, cmax, ymax = sums[9:]
    slope, error = ci * rule.slope(zi, yi), rule.error(zi, yi)
    miss = 1.0 if rule.wrong(zi, yi) else 0.0  # no branch: it could not be foreseen
    return (
        rounds + 1.0,
        weight + ci,
        fuse(ci, rule.loss(zi, yi), total),
        fuse(ci * error, error, square),
        wrong + miss,
        fuse(miss, ci, wrong_c),
        fuse(miss * ci, ci * qi, wrong_q),
        fuse(ci * yi, yi, target),
        fuse(slope * slope, geometry.norm(qi, ti), gradients),
        max(x2, qi),
        max(xinf, ti),
        max(cx2, ci * qi),
        max(cxinf, ci * ti * ti),
        max(cmax, ci),
        max(ymax, abs(yi)),
    )


@inlined
def tally_rate(rule, geometry, zi, qi, ti, yi, ci, eta, f):
    """The facts in which the rate stands, where it changes from round to round."""
    slope = ci * rule.slope(zi, yi)
    f[9] += eta
    f[10] += eta * (ci * rule.loss(zi, yi))
    f[11] += eta * eta * (slope * slope * geometry.norm(qi, ti))
    f[17], f[18] = max(f[17], eta * (ci * qi)), max(f[18], eta * (ci * ti * ti))
    f[20], f[21] = max(f[20], eta), max(f[21], -eta)


@kernel
def trace(rows, first, last, y, c, rule, update, geometry, step, v, s, z, q, top, f, drift):
    """`play`, noting how much each round changed ln Sigma_i e^theta_i, the normaliser of multiplicative weights."""
    for i in range(last - first):
        mass, shift, j, k = s[MASS], s[SHIFT], i + 1, first + i
        done = play(rows, k, k + 1, y[i:j], c[i:j], rule, update, geometry, step, v, s, z[i:j], q[i:j], top[i:j], f)
        if done == 0:
            return i
        drift[i] = math.log(s[MASS] / mass) + (s[SHIFT] - shift) * (LN2_HI + LN2_LO)
    return last - first


@kernel
def look(rows, geometry, v, s):
    """The margin of the one row of `rows`."""
    rows.ready(0)
    return geometry.dot(v, s, rows, 0)[0]


@kernel
def losses(rule, z, y, out):
    """The rule's loss of each round."""
    for t in range(z.size):
        out[t] = rule.loss(z[t], y[t])


@kernel
def slopes(rule, z, y, out):
    """The rule's slope in z of each round."""
    for t in range(z.size):
        out[t] = rule.slope(z[t], y[t])


@kernel
def means(rule, z, out):
    """What each margin predicts."""
    for t in range(z.size):
        out[t] = rule.mean(z[t])
