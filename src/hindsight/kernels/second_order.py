"""Second order: online ridge regression, Vovk, Azoury and Warmuth's forecaster, and its logistic sibling.

All keep A = Lambda + sum C x x' as a triangle, A = factor' factor, and the right side b of the least squares problem as
`right` = factor'^-1 b, so that for a row x and image = factor'^-1 x

    x' A^-1 x = |image|^2        x' A^-1 b = image . right

A row is added by rotations of the triangle, which lose no digits for any scaling or collinearity of the columns. The
prior Lambda, kappa M_i^2 in coordinate i, is centred at the start and grows with M_i, the largest |x_i| so far; its
increases are added as rows, too. The squared residual that a rotation leaves of the right side is the rise of the
smallest value of the ridge objective. A row may have an offset, which is part of its margin and is subtracted from its
target.

The rotations of a row of weight C follow from its image p alone: with t_k = 1 + C (p_1^2 + ... + p_k^2) and the residue
r^(k) = x - p_1 factor_1 - ... - p_k factor_k,

    factor_k  <-  (t_k factor_k + C p_k r^(k)) / sqrt(t_k t_(k-1))

and the same for the right side. Each column is apart from the others so: they are taken eight at a time, in blocks that
end with the last. This loses digits as sqrt(t_n) grows; the prior holds p to a small size, and where a row is so heavy
that it does not help, the rotations are taken one after another. Where p_k = 0 nothing changes, and nothing is done:
with the columns in an order that leaves most of the triangle 0, rows with few entries are cheap.

With a window of N rounds the weight of everything before the current row is multiplied by gamma = 1 - 1/N in each
round: the triangle and its right side are multiplied by the square root of gamma, and the prior by gamma.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from .compiler import helper, inlined
from .geometries import geometry_part
from .ledger import newton_price
from .losses import sigmoid
from .rows import ascends, write_row
from .running import meet_target
from .simd import fuse, lane, larger, load, lower, minus, only, plus, smaller, spread, store, times, upper
from .state import matrix, scalar, vector

STEEP = 100.0  # sqrt(t_n) from which on the rotations are taken one after another


class SecondOrderState(NamedTuple):
    """The triangle with its right side and prior; fields `new_` are the same with the prior that the row needs."""

    factor: Annotated[np.ndarray, matrix()]
    right: Annotated[np.ndarray, vector(odd=True)]
    prior: Annotated[np.ndarray, vector()]
    new_factor: Annotated[np.ndarray, matrix(scratch=True)]
    new_right: Annotated[np.ndarray, vector(odd=True, scratch=True)]
    new_prior: Annotated[np.ndarray, vector(scratch=True)]
    row: Annotated[np.ndarray, vector(scratch=True)]
    image: Annotated[np.ndarray, vector(scratch=True)]
    inverse: Annotated[np.ndarray, vector(scratch=True)]
    drop: Annotated[np.ndarray, scalar()]
    new_drop: Annotated[np.ndarray, scalar(scratch=True)]
    grown: Annotated[np.ndarray, scalar(scratch=True)]
    objective: Annotated[np.ndarray, scalar()]
    base: Annotated[np.ndarray, scalar()]
    low: Annotated[np.ndarray, scalar()]
    high: Annotated[np.ndarray, scalar()]
    steep: Annotated[np.ndarray, scalar()]
    heaviest: Annotated[np.ndarray, scalar()]
    begun: Annotated[np.ndarray, scalar()]


@inlined
def length(a, b):
    """sqrt(a^2 + b^2), also where a square would overflow or underflow."""
    total = a * a + b * b
    return math.sqrt(total) if 1e-280 < total < 1e280 else math.hypot(a, b)


@helper
def rotate(factor, right, row, rest, first):
    """Add a row with the right side `rest` to the triangle, from column `first` on; return the residual of `rest`.

    The row is overwritten.
    """
    n = right.size
    for k in range(first, n):
        below = row[k]
        if below == 0.0:
            continue
        size = length(factor[k, k], below)
        cosine, sine = factor[k, k] / size, below / size
        factor[k, k] = size
        for j in range(k + 1, n):
            above = factor[k, j]
            factor[k, j] = cosine * above + sine * row[j]
            row[j] = cosine * row[j] - sine * above
        above = right[k]
        right[k] = cosine * above + sine * rest
        rest = cosine * rest - sine * above
    return rest


@inlined
def settle(rest, k, factor, at, image, inverse, first):
    """Entry k of a block of the image, from what is left of the row there; what it leaves of the others."""
    p = lane(rest, k) * inverse[first + k]
    image[first + k] = p
    return fuse(spread(-p), load(rest, factor, at), rest)


@inlined
def settle_block(rest, factor, at, image, inverse, first):
    """The eight entries of a block of the image, whose first column is `first`; `at` is where its corner lies."""
    n = factor.shape[1]
    rest = settle(rest, 0, factor, at, image, inverse, first)
    rest = settle(rest, 1, factor, at + n, image, inverse, first)
    rest = settle(rest, 2, factor, at + 2 * n, image, inverse, first)
    rest = settle(rest, 3, factor, at + 3 * n, image, inverse, first)
    rest = settle(rest, 4, factor, at + 4 * n, image, inverse, first)
    rest = settle(rest, 5, factor, at + 5 * n, image, inverse, first)
    rest = settle(rest, 6, factor, at + 6 * n, image, inverse, first)
    settle(rest, 7, factor, at + 7 * n, image, inverse, first)


@inlined
def add_row(sums, factor, at, image, k):
    """`sums` with row k of the triangle, from place `at` of its memory on, times entry k of the image."""
    return fuse(spread(image[k]), load(sums, factor, at), sums)


@inlined
def total(lanes):
    """The sum of eight lanes."""
    four = plus(lower(lanes), upper(lanes))
    two = plus(lower(four), upper(four))
    return only(plus(lower(two), upper(two)))


@inlined
def add_rows(factor, first, places, a, b, image):
    """Rows of the triangle, at `places` a..b, times their entries of the image, in the columns of the block `first`."""
    n = factor.shape[1]
    one, two, three, four = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    while a + 4 <= b:
        i, j, k, m = np.int64(places[a]), np.int64(places[a + 1]), np.int64(places[a + 2]), np.int64(places[a + 3])
        one, two = add_row(one, factor, i * n + first, image, i), add_row(two, factor, j * n + first, image, j)
        three, four = add_row(three, factor, k * n + first, image, k), add_row(four, factor, m * n + first, image, m)
        a += 4
    while a < b:
        i = np.int64(places[a])
        one = add_row(one, factor, i * n + first, image, i)
        a += 1
    return plus(plus(one, two), plus(three, four))


@helper
def solve_row(factor, row, image, inverse):
    """image = factor'^-1 row; `inverse` has the reciprocals of the diagonal (see `reciprocals`)."""
    n = row.size
    head = n % 8
    for j in range(head):
        rest = row[j]
        for k in range(j):
            rest -= factor[k, j] * image[k]
        image[j] = rest * inverse[j]
    for first in range(head, n, 8):
        one, two, three, four = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
        k, at = 0, first
        while k + 4 <= first:
            one, two = add_row(one, factor, at, image, k), add_row(two, factor, at + n, image, k + 1)
            three, four = (
                add_row(three, factor, at + 2 * n, image, k + 2),
                add_row(four, factor, at + 3 * n, image, k + 3),
            )
            k += 4
            at += 4 * n
        while k < first:
            one = add_row(one, factor, at, image, k)
            k += 1
            at += n
        rest = minus(load(one, row, first), plus(plus(one, two), plus(three, four)))
        settle_block(rest, factor, at, image, inverse, first)


@helper
def solve_few(factor, new_factor, low, row, image, inverse):
    """The same for a row of few entries; rows of the triangle from `low` on, where a block begins, are `new_factor`'s.

    Reciprocals that were used are overwritten by the places where the image is not 0: `count` so far, `old` before low.
    """
    n, count, old = row.size, 0, 0
    head = n % 8
    for j in range(head):
        rest = row[j]
        for k in range(j):
            rest -= (factor[k, j] if k < low else new_factor[k, j]) * image[k]
        image[j] = rest * inverse[j]
        inverse[count] = j
        count += 1 if image[j] != 0.0 else 0
        old = count if j < low else old
    for first in range(head, n, 8):
        sums = add_rows(factor, first, inverse, 0, old, image)
        if old < count:
            sums = plus(sums, add_rows(new_factor, first, inverse, old, count, image))
        rest = minus(load(sums, row, first), sums)
        if (
            old != first and total(times(rest, rest)) == 0.0
        ):  # squares that underflow are 0, and what is not a number is not
            store(image, first, spread(0.0))
            continue
        own, at = factor if first < low else new_factor, first * n + first
        settle_block(rest, own, at, image, inverse, first)
        for k in range(first, first + 8):
            inverse[count] = k
            count += 1 if image[k] != 0.0 else 0
        old = count if first < low else old


@inlined
def both_products(image, right):
    """(image . right, |image|^2), in eight sums each."""
    n, along, q = image.size, spread(0.0), spread(0.0)
    head = n % 8
    for first in range(head, n, 8):
        here = load(q, image, first)
        along, q = fuse(here, load(q, right, first), along), fuse(here, here, q)
    a, b = total(along), total(q)
    for j in range(head):
        a += image[j] * right[j]
        b += image[j] * image[j]
    return a, b


@inlined
def turn(rest, factor, at, p, keep, gain):
    """Row k of the triangle, from place `at` of its memory on, with the row joined; the row's residue after it."""
    above = load(rest, factor, at)
    rest = fuse(spread(-p), above, rest)
    store(factor, at, fuse(spread(gain), rest, times(spread(keep), above)))
    return rest


@inlined
def coefficients(image, weight, fade, keep, turned):
    """t_k/sqrt(t_k t_(k-1)) into `keep` and the image after the row has joined into `turned`; sqrt(t_n).

    Both are multiplied by `fade`, and so is what they make of the triangle.
    """
    n, sizes = image.size, 1.0
    for k in range(n):
        sizes += weight * image[k] * image[k]
        keep[k] = sizes
    for k in range(n):
        turned[k] = math.sqrt(keep[k])
    before = 1.0
    for k in range(n):
        if image[k] == 0.0:
            keep[k], turned[k] = fade, 0.0
            continue
        now = turned[k]
        each = fade / (now * before)
        keep[k], turned[k], before = keep[k] * each, image[k] * each, now
    return before


@inlined
def turn_corner(rest, factor, first, k, n, image, keep, gain):
    """The same for a row that begins within the block of columns that begins with `first`."""
    diagonal = keep[k] * factor[k, k]
    rest = turn(rest, factor, k * n + first, image[k], keep[k], gain)
    factor[k, k] = diagonal
    for j in range(first, k):
        factor[k, j] = 0.0
    return rest


@inlined
def turn_head(factor, row, image, weight, keep, turned):
    """Add a row to the first columns of the triangle, those before the blocks, and return their number."""
    head = row.size % 8
    for j in range(head):
        rest = row[j]
        for k in range(j):
            above = factor[k, j]
            rest -= image[k] * above
            factor[k, j] = keep[k] * above + weight * turned[k] * rest
        factor[j, j] *= keep[j]
    return head


@helper
def turn_all(factor, row, image, weight, keep, turned):
    """Add a row to the triangle: first to the columns before the blocks, then two blocks at a time."""
    n = row.size
    head = turn_head(factor, row, image, weight, keep, turned)
    first = head
    if (n - head) % 16 != 0:
        rest = load(spread(0.0), row, first)
        for k in range(first):
            rest = turn(rest, factor, k * n + first, image[k], keep[k], weight * turned[k])
        for k in range(first, first + 8):
            rest = turn_corner(rest, factor, first, k, n, image, keep, weight * turned[k])
        first += 8
    while first < n:
        one, two = load(spread(0.0), row, first), load(spread(0.0), row, first + 8)
        for k in range(first):
            p, kept, gain = image[k], keep[k], weight * turned[k]
            one = turn(one, factor, k * n + first, p, kept, gain)
            two = turn(two, factor, k * n + first + 8, p, kept, gain)
        for k in range(first, first + 8):
            one = turn_corner(one, factor, first, k, n, image, keep, weight * turned[k])
            two = turn(two, factor, k * n + first + 8, image[k], keep[k], weight * turned[k])
        for k in range(first + 8, first + 16):
            two = turn_corner(two, factor, first + 8, k, n, image, keep, weight * turned[k])
        first += 16


@helper
def turn_few(factor, row, image, weight, keep, turned, places, count):
    """The same where only the rows at `places` change, which are so many; `done` of them lie before what is at hand."""
    n, done = row.size, 0
    head = turn_head(factor, row, image, weight, keep, turned)
    for first in range(head, n, 8):
        rest = load(spread(0.0), row, first)
        while done < count and places[done] < first:
            done += 1
        for a in range(done):
            k = np.int64(places[a])
            rest = turn(rest, factor, k * n + first, image[k], keep[k], weight * turned[k])
        a = done
        while a < count and places[a] < first + 8:
            k = np.int64(places[a])
            rest = turn_corner(rest, factor, first, k, n, image, keep, weight * turned[k])
            a += 1


@helper
def join(factor, right, row, image, weight, target, fade, keep, turned, places):
    """Add a row of this weight, with its image, to the triangle; return the residual of its target times sqrt(weight).

    `turned` receives the image after that. It, the triangle and the right side are then multiplied by `fade`. The row
    may be overwritten.
    """
    n, root, last = right.size, math.sqrt(weight), coefficients(image, weight, fade, keep, turned)
    if not last < STEEP:
        for k in range(n):
            row[k] *= root
        left = rotate(factor, right, row, root * target, 0)
        if fade != 1.0:
            for k in range(n):
                right[k] *= fade
                for j in range(k, n):
                    factor[k, j] *= fade
        return left
    count = 0
    for k in range(n):
        places[count] = k
        count += 1 if keep[k] != 1.0 or image[k] != 0.0 else 0
    if 2 * count > n:
        turn_all(factor, row, image, weight, keep, turned)
    else:
        turn_few(factor, row, image, weight, keep, turned, places, count)
    for k in range(n):
        target -= image[k] * right[k]
        right[k] = keep[k] * right[k] + weight * turned[k] * target
    return root * target / last


@inlined
def copy_triangle(low, factor, right, prior, new_factor, new_right, new_prior):
    """Copy the triangle from row `low` on, and all of its right side and prior."""
    for k in range(right.size):
        new_right[k], new_prior[k] = right[k], prior[k]
        for j in range(k, right.size if k >= low else k):
            new_factor[k, j] = factor[k, j]


@inlined
def scale_of_prior(kappa, state):
    """The prior as a multiple of the largest square of each coordinate."""
    return kappa * (state.heaviest[0] if state.heaviest[0] > 0.0 else 1.0)


@inlined
def reciprocals(scale, factor, new_factor, low, row, inverse):
    """Write the reciprocals of the diagonal to `inverse`; for a new coordinate, that of the root of its first prior."""
    for k in range(low):
        inverse[k] = 1.0 / factor[k, k] if factor[k, k] != 0.0 else 0.0
    for k in range(low, row.size):
        inverse[k] = 1.0 / new_factor[k, k] if new_factor[k, k] != 0.0 else 0.0
    for k in range(row.size):
        if inverse[k] == 0.0 and row[k] != 0.0:
            inverse[k] = 1.0 / math.sqrt(scale * row[k] * row[k])


@inlined
def grow_prior(scale, slack, state):
    """The triangle with the prior that the row needs, in the fields `new_`, from a row on: that row, or n for none.

    A prior may be smaller than it is to be by the factor `slack` before it grows. That of a coordinate never seen is no
    more than its entry on the diagonal, for which nothing is copied (see `take_prior`).
    """
    n, low = state.row.size, state.row.size
    for i in range(n - 1, -1, -1):
        if scale * state.row[i] * state.row[i] > slack * state.prior[i] and state.factor[i, i] != 0.0:
            low = i
    if low == n:
        return low
    low -= (low - n) % 8
    if low < 0:
        low = 0
    copy_triangle(low, state.factor, state.right, state.prior, state.new_factor, state.new_right, state.new_prior)
    state.new_drop[0] = 0.0
    for i in range(n):
        wanted = scale * state.row[i] * state.row[i]
        if wanted > slack * state.prior[i] and state.factor[i, i] != 0.0:
            for j in range(n):
                state.image[j] = 0.0
            state.image[i] = math.sqrt(wanted - state.prior[i])
            left = rotate(state.new_factor, state.new_right, state.image, 0.0, i)
            state.new_drop[0] += left * left
            state.new_prior[i] = wanted
    return low


@helper
def measure_row(kappa, slack, state):
    """(row . right of the least squares problem, row' A^-1 row, |row|_inf) of the row that the state holds.

    It and `join` are compiled once for all kinds of rows and of second order.
    """
    top, check, filled = 0.0, 0.0, 0
    for k in range(state.row.size):
        filled += 1 if state.row[k] != 0.0 else 0
        if state.row[k] * state.row[k] == 0.0:  # a square that underflows is 0
            state.row[k] *= 0.0
        top = larger(top, abs(state.row[k]))
        check += state.row[k] * state.row[k]
    if not check < np.inf:
        return np.nan, np.inf, top
    scale = scale_of_prior(kappa, state)
    low = grow_prior(scale, slack, state)
    state.grown[0] = state.row.size - low
    reciprocals(scale, state.factor, state.new_factor, low, state.row, state.inverse)
    if low == state.row.size and 2 * filled > low:
        solve_row(state.factor, state.row, state.image, state.inverse)
    else:
        solve_few(state.factor, state.new_factor, low, state.row, state.image, state.inverse)
    if state.grown[0] > 0.0:
        along, q = both_products(state.image, state.new_right)
    else:
        along, q = both_products(state.image, state.right)
    return along, q, top


@inlined
def leverage(kappa, slack, state, rows, t):
    """(w . x, x' A^-1 x, |x|_inf) of row t, with its image; NaN where it is not finite."""
    if not ascends(rows, t, state.row.size):
        return np.nan, np.inf, 0.0
    write_row(rows, t, state.row)
    along, q, top = measure_row(kappa, slack, state)
    return state.base[0] + along + rows.begins_at(t), q, top


@inlined
def take_prior(scale, state):
    """Make the prior that the row needed the prior of the state."""
    if state.grown[0] > 0.0:
        low = state.row.size - np.int64(state.grown[0])
        copy_triangle(low, state.new_factor, state.new_right, state.new_prior, state.factor, state.right, state.prior)
        state.drop[0] += state.new_drop[0]
        state.objective[0] += state.new_drop[0]
        state.grown[0] = 0.0
    for i in range(state.row.size):
        if state.prior[i] == 0.0 and state.row[i] != 0.0 and state.factor[i, i] == 0.0:
            state.prior[i] = scale * state.row[i] * state.row[i]
            state.factor[i, i] = math.sqrt(state.prior[i])


@inlined
def learn_square(kappa, loss, state, rows, t, y, c, fade):
    """Add row t with its target to the least squares problem, whose triangle is then multiplied by `fade`."""
    scale = scale_of_prior(kappa, state)
    state.heaviest[0] = larger(state.heaviest[0], c)
    if not meet_target(loss, state, rows, y, 0.0):
        return
    take_prior(scale, state)
    target = y - state.base[0] - rows.begins_at(t)
    keep, turned, places = state.inverse, state.new_right, state.new_prior
    left = join(state.factor, state.right, state.row, state.image, c, target, fade, keep, turned, places)
    state.objective[0] += left * left


def solved(state):
    """The weights of the least squares problem; 0 for coordinates that occurred in no row."""
    from ..triangular import solve_triangular

    seen = np.flatnonzero(np.diagonal(state.factor))
    w = np.zeros(state.right.size)
    if seen.size:
        w[seen] = solve_triangular(state.factor[np.ix_(seen, seen)], state.right[seen], check_finite=False)
    if state.base[0] != 0.0:  # then there is an intercept
        w[-1] += state.base[0]
    return w


def weights_of_state(self, state):
    """The weights."""
    return solved(state)


def opens_with_intercept(self, state, rows):
    return state.begun[0] == 0.0 and rows.bias != 0.0


@geometry_part
class Ridge(NamedTuple):
    """Least squares with the prior kappa M_i^2 (u_i - w_1,i)^2; z = w . x with the solution w on the earlier rows."""

    kappa: float
    State = SecondOrderState
    linear = False  # a row may raise the prior it is predicted with
    norm = "x'A⁻¹x"
    weights, opens = weights_of_state, opens_with_intercept

    def dot(self, state, rows, t):
        return leverage(self.kappa, 1.0, state, rows, t)

    def step(self, loss, state, rows, t, z, y, c, d):
        learn_square(self.kappa, loss, state, rows, t, y, c, 1.0)


WindowedState = NamedTuple(  # and how much of the prior has faded so far
    "WindowedState", [*SecondOrderState.__annotations__.items(), ("faded", Annotated[np.ndarray, vector()])]
)
TINY = 2.0**-1022  # the smallest number of full precision
WORN = 2.0  # how far a prior may fade before it is put back: seldom enough to cost nothing


@geometry_part
class WindowedRidge(NamedTuple):
    """The same with weights 1, gamma, gamma^2, ... of rounds and their priors, from the last round backwards."""

    kappa: float
    gamma: float
    State = WindowedState
    linear = False
    norm = "x'A⁻¹x"
    weights, opens = weights_of_state, opens_with_intercept

    def dot(self, state, rows, t):
        return leverage(self.kappa, WORN, state, rows, t)

    def step(self, loss, state, rows, t, z, y, c, d):
        state.objective[0] *= self.gamma
        learn_square(self.kappa, loss, state, rows, t, y, c, math.sqrt(self.gamma))
        for k in range(state.prior.size):
            faded = (1.0 - self.gamma) * state.prior[k]
            state.faded[k] += faded
            state.prior[k] -= faded
            if state.factor[k, k] < TINY:  # its reciprocal will overflow: nothing is left of the coordinate
                state.right[k] = 0.0
                for j in range(k, state.prior.size):
                    state.factor[k, j] = 0.0


@geometry_part
class Forecaster(NamedTuple):
    """Vovk, Azoury and Warmuth's forecaster: the solution including the current row, with its target at mid-range."""

    kappa: float
    State = SecondOrderState
    linear = False
    norm = "x'A⁻¹x"
    weights, opens = weights_of_state, opens_with_intercept

    def dot(self, state, rows, t):
        along, q, top = leverage(self.kappa, 1.0, state, rows, t)
        middle = 0.5 * (state.low[0] + state.high[0])
        return middle + (along - middle) / (1.0 + q), q, top

    def step(self, loss, state, rows, t, z, y, c, d):
        learn_square(self.kappa, loss, state, rows, t, y, c, 1.0)


@helper
def shrunk(along, q):
    """The root z of z + q tanh(z/2) = along, by Halley's steps, halved where they leave the bracket."""
    low, high, z = smaller(0.0, along), larger(0.0, along), along / (1.0 + 0.5 * q)
    for _ in range(100):
        t = math.tanh(0.5 * z)
        f = z + q * t - along
        if f > 0.0:
            high = z
        else:
            low = z
        bend = 0.5 * q * (1.0 - t * t)
        slope = 1.0 + bend
        new = z - f / (slope + 0.5 * f * t * bend / slope)
        if not low < new < high:
            new = 0.5 * (low + high)
        if f == 0.0:
            return z
        if abs(new - z) <= 1e-6 * abs(z):  # the next error is the third power of this
            return new
        z = new
    return z


@geometry_part
class LogisticNewton(NamedTuple):
    """Quadratics of curvature kappa p (1 - p) in place of the log losses; z accounts for both labels of the row."""

    prior: float
    kappa: float
    State = SecondOrderState
    linear = False
    norm = "x'A⁻¹x"
    weights = weights_of_state

    def dot(self, state, rows, t):
        along, q, top = leverage(self.prior, 1.0, state, rows, t)
        return (shrunk(along, q) if q < np.inf else np.nan), q, top

    def step(self, loss, state, rows, t, z, y, c, d):
        scale = scale_of_prior(self.prior, state)
        state.heaviest[0] = larger(state.heaviest[0], c)
        state.objective[0] -= 0.5 * state.new_drop[0] if state.grown[0] > 0.0 else 0.0  # it counts half the squares
        take_prior(scale, state)
        p, offset = sigmoid(z), rows.begins_at(t)
        weight = c * self.kappa * p * (1.0 - p)
        along, q = both_products(state.image, state.right)
        state.objective[0] += c * loss.value(z, y) - newton_price(q, -d, weight, offset + along - z)
        keep, turned, places = state.inverse, state.new_right, state.new_prior
        factor, right = state.factor, state.right
        join(factor, right, state.row, state.image, weight, z - offset, 1.0, keep, turned, places)
        for k in range(state.row.size):
            state.right[k] += d * state.new_right[k]
