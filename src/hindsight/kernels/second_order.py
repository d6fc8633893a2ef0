"""Second order: online ridge regression, Vovk, Azoury and Warmuth's forecaster, and its logistic sibling.

All keep A = Lambda + sum C x x' as a triangle, A = factor' factor, and the right side b of the least squares problem as
`right` = factor'^-1 b, so that for a row x and image = factor'^-1 x

    x' A^-1 x = |image|^2        x' A^-1 b = image . right

A row joins by rotations of the triangle, which lose no digits however its columns are scaled or aligned. The prior
Lambda grows with the largest |x_i| so far, by rows of its own: kappa M_i^2 in coordinate i, drawn to the start. What a
rotation leaves over of the right side, squared, is by how much the smallest value of the ridge objective rose.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from .compiler import helper, inlined
from .geometries import geometry_part
from .losses import sigmoid
from .rows import ascends, write_row
from .running import meet_target
from .state import matrix, scalar, vector


class SecondOrderState(NamedTuple):
    """The triangle with its right side and prior, as they are and, `new_`, with the prior that the row needs."""

    factor: Annotated[np.ndarray, matrix()]
    right: Annotated[np.ndarray, vector(odd=True)]
    prior: Annotated[np.ndarray, vector()]
    new_factor: Annotated[np.ndarray, matrix(scratch=True)]
    new_right: Annotated[np.ndarray, vector(odd=True, scratch=True)]
    new_prior: Annotated[np.ndarray, vector(scratch=True)]
    row: Annotated[np.ndarray, vector(scratch=True)]
    image: Annotated[np.ndarray, vector(scratch=True)]
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
    """Join a row, with `rest` on its right side, to the triangle from column `first` on; what is left of `rest`.

    The row is used up.
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


@helper
def rotate_both(factor, right, image, row, rest):
    """The same with the image, below which a 0 is rotated: if it was factor'^-1 x before, it is that after."""
    n, under = right.size, 0.0
    for k in range(n):
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
        above = image[k]
        image[k] = cosine * above + sine * under
        under = cosine * under - sine * above


@helper
def solve_row(factor, row, image):
    """image = factor'^-1 row. A coordinate never seen has no diagonal, and no entry in the row."""
    n = row.size
    for k in range(n):
        image[k] = row[k]
    for k in range(n):
        if image[k] != 0.0:
            image[k] /= factor[k, k]
            for j in range(k + 1, n):
                image[j] -= factor[k, j] * image[k]


@helper
def copy_triangle(factor, right, prior, new_factor, new_right, new_prior):
    for k in range(right.size):
        new_right[k], new_prior[k] = right[k], prior[k]
        for j in range(k, right.size):
            new_factor[k, j] = factor[k, j]


@helper
def grow_prior(kappa, state):
    """The triangle with the prior that the row needs, in the fields `new_`; whether it had to grow."""
    n, heavy = state.row.size, state.heaviest[0] if state.heaviest[0] > 0.0 else 1.0
    grown = False
    for i in range(n):
        if kappa * heavy * state.row[i] * state.row[i] > state.prior[i]:
            grown = True
    if not grown:
        return False
    copy_triangle(state.factor, state.right, state.prior, state.new_factor, state.new_right, state.new_prior)
    state.new_drop[0] = 0.0
    for i in range(n):
        wanted = kappa * heavy * state.row[i] * state.row[i]
        if wanted > state.prior[i]:
            for j in range(n):
                state.image[j] = 0.0
            state.image[i] = math.sqrt(wanted - state.prior[i])
            left = rotate(state.new_factor, state.new_right, state.image, 0.0, i)
            state.new_drop[0] += left * left
            state.new_prior[i] = wanted
    return True


@inlined
def leverage(kappa, state, rows, t):
    """(x . (w - w_1), x' A^-1 x, |x|_inf) of row t, with its image; NaN where it is not finite."""
    if not ascends(rows, t, state.row.size):
        return np.nan, np.inf, 0.0
    write_row(rows, t, state.row)
    top, check = 0.0, 0.0
    for k in range(state.row.size):
        if state.row[k] * state.row[k] == 0.0:  # a square that underflows is 0
            state.row[k] *= 0.0
        top = max(top, abs(state.row[k]))
        check += state.row[k] * state.row[k]
    if not check < np.inf:
        return np.nan, np.inf, top
    state.grown[0] = 1.0 if grow_prior(kappa, state) else 0.0
    along, q = 0.0, 0.0
    if state.grown[0] == 1.0:
        solve_row(state.new_factor, state.row, state.image)
        for k in range(state.row.size):
            along += state.image[k] * state.new_right[k]
            q += state.image[k] * state.image[k]
    else:
        solve_row(state.factor, state.row, state.image)
        for k in range(state.row.size):
            along += state.image[k] * state.right[k]
            q += state.image[k] * state.image[k]
    return along, q, top


@inlined
def take_prior(state):
    """Make the prior that the row needed the state's own."""
    if state.grown[0] == 1.0:
        copy_triangle(state.new_factor, state.new_right, state.new_prior, state.factor, state.right, state.prior)
        state.drop[0] += state.new_drop[0]
        state.objective[0] += state.new_drop[0]
        state.grown[0] = 0.0


@inlined
def learn_square(loss, state, rows, y, c):
    """Join a row with its target to the least squares problem."""
    state.heaviest[0] = max(state.heaviest[0], c)
    if not meet_target(loss, state, rows, y, 0.0):
        return
    take_prior(state)
    root = math.sqrt(c)
    for k in range(state.row.size):
        state.row[k] *= root
    left = rotate(state.factor, state.right, state.row, root * (y - state.base[0]), 0)
    state.objective[0] += left * left


def solved(state):
    """The weights of the least squares problem; 0 for coordinates that no row has shown."""
    from scipy.linalg import solve_triangular

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
    """Least squares with the prior kappa M_i^2 (u_i - w_1,i)^2: z = w . x with the solution w of the rows before."""

    kappa: float
    State = SecondOrderState
    linear = False  # a row may raise the prior it is predicted with
    norm = "x'A⁻¹x"
    weights, opens = weights_of_state, opens_with_intercept

    def dot(self, state, rows, t):
        along, q, top = leverage(self.kappa, state, rows, t)
        return state.base[0] + along, q, top

    def step(self, loss, state, rows, t, z, y, c, d):
        learn_square(loss, state, rows, y, c)


@geometry_part
class Forecaster(NamedTuple):
    """Vovk, Azoury and Warmuth's: the solution with the row at hand counted, its target at mid-range."""

    kappa: float
    State = SecondOrderState
    linear = False
    norm = "x'A⁻¹x"
    weights, opens = weights_of_state, opens_with_intercept

    def dot(self, state, rows, t):
        along, q, top = leverage(self.kappa, state, rows, t)
        middle = 0.5 * (state.low[0] + state.high[0])
        return middle + (state.base[0] + along - middle) / (1.0 + q), q, top

    def step(self, loss, state, rows, t, z, y, c, d):
        learn_square(loss, state, rows, y, c)


@helper
def shrunk(along, q):
    """The root z of z + q tanh(z/2) = along, by Newton's steps, halved where they leave the bracket."""
    low, high, z = min(0.0, along), max(0.0, along), along / (1.0 + 0.5 * q)
    for _ in range(100):
        t = math.tanh(0.5 * z)
        f = z + q * t - along
        if f > 0.0:
            high = z
        else:
            low = z
        new = z - f / (1.0 + 0.5 * q * (1.0 - t * t))
        if not low < new < high:
            new = 0.5 * (low + high)
        if f == 0.0 or abs(new - z) <= 1e-16 * abs(z):
            return z
        z = new
    return z


@geometry_part
class LogisticNewton(NamedTuple):
    """Quadratics of curvature kappa p (1 - p) in place of the log losses; z counts both labels of the row at hand."""

    prior: float
    kappa: float
    State = SecondOrderState
    linear = False
    norm = "x'A⁻¹x"
    weights = weights_of_state

    def dot(self, state, rows, t):
        along, q, top = leverage(self.prior, state, rows, t)
        return (shrunk(along, q) if q < np.inf else np.nan), q, top

    def step(self, loss, state, rows, t, z, y, c, d):
        state.heaviest[0] = max(state.heaviest[0], c)
        take_prior(state)
        p = sigmoid(z)
        root = math.sqrt(c * self.kappa * p * (1.0 - p))
        for k in range(state.row.size):
            state.row[k] *= root
        rotate_both(state.factor, state.right, state.image, state.row, root * z)
        for k in range(state.row.size):
            state.right[k] += d * state.image[k]
