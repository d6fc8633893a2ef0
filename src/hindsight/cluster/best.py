"""The best fixed predictor and the best constant in hindsight over partitions, from sums that the workers send.

    L(u) = Sigma_t c_t phi(u . x_t, y_t)

A smooth loss with few coordinates: Newton's method, each step from the sums of losses, gradients and second derivatives
of all partitions; for the square loss these are its Gram matrix, and one step is least squares. Weights of a simplex or
an L1 ball: projected gradient steps with momentum. Otherwise: L-BFGS. All of them need one reduction per step, and show
what they found by L(v) >= L(u) + g . (v - u) for every v, g the gradient at u.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..batch.gradient_descent import MeanLoss
from ..certificates.best.fixed import WIDTH, not_sought
from ..certificates.best.newton import ScaledStep, newton
from ..certificates.best.objective import FAR, Objective, Smooth, column_sizes, inverse
from ..certificates.best.predictor import NEAR, FixedPredictor, beyond, percent
from ..certificates.best.spaces import SPACES, Mixtures, space
from ..kernels.floats import EPS
from ..kernels.losses import Square
from ..online.margins import each_loss, each_slope

if TYPE_CHECKING:
    from ..kernels.floats import Floats
    from ..rows.data import Data
    from ..rows.table import Table
    from .rows import RunTable

MANY_STEPS = 300  # of methods that take gradients alone
HALVINGS = 100
FEW = 1000  # different targets that are counted one by one


# ---------------------------------------------------------------- the best fixed predictor


def best_fixed(table: Table, loss: Any, geometry: Any) -> FixedPredictor:
    """Return the u that minimises the loss of all rows over the set of a geometry, and its gap."""
    width, mean = table.width, MeanLoss(table, loss, 1.0)
    outside = loss.targets == "unit" and not table.sum(all_between, 0.0, 1.0, add=min)
    if outside or not loss.convex:
        u = np.zeros(width)
        return not_sought(u, mean.at(u)[0], outside)
    if geometry.name in SPACES:
        return _in_set(mean, geometry, width)
    measured = table.measured("real")
    reach = FAR * (1.0 if loss.targets != "real" else math.sqrt(measured.squares / measured.weight))
    if width <= WIDTH and (loss.quadratic or hasattr(loss, "curvature")):
        return _by_newton(Summed(table, loss), reach)
    return _by_gradients(mean, math.sqrt(measured.x2), reach)


class SummedPoint(NamedTuple):
    """L at u, its derivatives, and the sums of squared slopes and of squared columns."""

    u: Floats
    value: float
    gradient: Floats
    gram: Floats
    slopes: float
    columns: Floats


class Summed(NamedTuple):
    """L over all partitions: what Newton's method asks of a u, from one reduction."""

    table: Table
    loss: Any

    def at(self, u: Floats) -> SummedPoint:
        """L at u."""
        sums, n = self.table.sum(derivatives, self.loss, u), u.size
        value, gradient, slopes, columns, gram = np.split(sums, [1, n + 1, n + 2, 2 * n + 2])
        return SummedPoint(u, float(value[0]), gradient, gram.reshape(n, n), float(slopes[0]), columns)


def _by_newton(losses: Summed, reach: float) -> FixedPredictor:
    width, weight, loss = losses.table.width, losses.table.weight, losses.loss
    step_of = ScaledStep(np.zeros(width))

    def direction(point: SummedPoint) -> Floats:
        step_of.shrink = inverse(np.sqrt(point.columns / weight))
        return step_of(point)

    for point, step in newton(losses.at, np.zeros(width), direction):
        off = 16.0 * EPS * (math.sqrt(width * weight * point.slopes) + abs(point.value))
        far = reach + float(np.linalg.norm(point.u * inverse(step_of.shrink)))
        gap = (float(np.linalg.norm(step_of.shrink * point.gradient)) + off) * far + off
        half = -0.5 * float(point.gradient @ step)  # for the square loss L(u) - min L, if the rank is full
        if loss.quadratic and step_of.inverse.rank == np.count_nonzero(step_of.shrink):
            gap = min(gap, 1.01 * half + off * max(1.0, far / reach))
            if gap <= NEAR * point.value or gap <= 4.0 * off:
                reach = math.inf
                break
        elif half <= 1e-3 * NEAR * point.value:
            break
    found = FixedPredictor(point.u, point.value, gap, "", reach).above_floor(loss)
    how = f"{percent(found.gap, found.loss)}, rank {step_of.inverse.rank} of {width}{beyond(found.reach)}"
    return found._replace(how=f"least squares, {how}" if loss.quadratic else how)


def _by_gradients(mean: MeanLoss, longest: float, reach: float) -> FixedPredictor:
    from scipy.optimize import minimize

    width = mean.table.width
    first, slope = mean.at(np.zeros(width))
    found = minimize(
        lambda v: mean.at(np.ascontiguousarray(v)), np.zeros(width), jac=True, method="L-BFGS-B",
        options={"maxiter": MANY_STEPS, "gtol": 1e-10 * float(np.abs(slope).max(initial=0.0)), "ftol": 1e-13},
    )  # fmt: skip
    u = found.x if found.fun < first else np.zeros(width)
    value, slope = mean.at(u)
    size = longest or 1.0  # no column is larger than the longest row
    gap = float(np.linalg.norm(slope)) * (reach / size + float(np.linalg.norm(u)))
    best = FixedPredictor(u, value, gap, "", reach).above_floor(mean.loss)
    return best._replace(how=f"{percent(best.gap, value)}, by {found.nit} steps of L-BFGS{beyond(best.reach)}")


def _in_set(mean: MeanLoss, geometry: Any, width: int) -> FixedPredictor:
    """By projected gradients with momentum; the linear bound at u is least at a corner of the set."""
    where = space(geometry, width)
    assert isinstance(where, Mixtures)
    u = before = where.start
    best = FixedPredictor(u, math.inf, math.inf, "")
    t, size, lower = 1.0, 1.0, -math.inf
    for _ in range(MANY_STEPS):
        value, slope = mean.at(u)
        lower = max(lower, value - float(slope @ u) + where.least(slope))
        if value < best.loss:
            best = FixedPredictor(u, value, 0.0, "")
        if best.loss - lower <= 1e-9 * abs(best.loss):
            break
        while True:  # a step that the curvature along it allows
            w = projected(u - slope / size, where.radius, where.signed)
            after, move = mean.at(w)[0], w - u
            if after <= value + float(slope @ move) + 0.5 * size * float(move @ move) + 1e-12 * abs(value):
                break
            size *= 2.0
        if after < best.loss:
            best = FixedPredictor(w, after, 0.0, "")
        momentum = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        u = projected(w + (t - 1.0) / momentum * (w - before), where.radius, where.signed)
        before, t = w, momentum
        size *= 0.9
    gap = max(0.0, best.loss - lower)
    return best._replace(gap=gap, how=f"{percent(gap, best.loss)} of this set, by projected gradients")


def projected(v: Floats, radius: float, signed: bool) -> Floats:
    """Return the nearest point of the simplex, or of the L1 ball, of a radius.

    Examples
    --------
    >>> projected(np.array([3.0, -1.0]), 2.0, True), projected(np.array([0.5, 0.0]), 1.0, False)
    (array([2., 0.]), array([0.75, 0.25]))
    """
    size = np.abs(v) if signed else v
    if signed and size.sum() <= radius:
        return v
    down = np.sort(size)[::-1]
    excess = (np.cumsum(down) - radius) / np.arange(1, v.size + 1)
    cut = excess[np.flatnonzero(down > excess)[-1]]
    kept = np.maximum(size - cut, 0.0)
    return np.sign(v) * kept + 0.0 if signed else kept


def fewest_mistakes(table: Table, geometry: Any, at_hand: list[Floats]) -> FixedPredictor:
    """Return that of some predictors which makes the fewest mistakes on all rows."""
    if geometry.name not in SPACES and at_hand[0].size <= WIDTH:  # and the least squares fit of the labels
        at_hand = [*at_hand, _by_newton(Summed(table, Square(2.0)), FAR).u]
    wrong = [float(table.sum(weight_wrong, u)) for u in at_hand]
    k = int(np.argmin(wrong))
    return FixedPredictor(at_hand[k], wrong[k], wrong[k], "the fewest of a few predictors: none was sought")


# ---------------------------------------------------------------- the best constant


def best_constant(table: RunTable, loss: Any) -> float:
    """Return the least of Sigma c phi(z, y) over all constants z, or the limit that it tends to."""
    from ..certificates.best import constant
    from .rounds import target_sums

    if loss.quadratic:
        total, _ = table.sum(target_sums, 0.0)
        _, squares = table.sum(target_sums, total / table.weight)
        return 0.5 * float(loss.scale) * float(squares)
    each = table.each(different_targets)
    if all(found is not None for found in each):
        y, c = (np.concatenate([found[k] for found in each]) for k in (0, 1))
        y, place = np.unique(y, return_inverse=True)
        return constant.best_constant(loss, y, np.bincount(place.ravel(), c))
    low, high = table.rows.target_range()
    low, high = low - 1.0, high + 1.0
    if loss.targets == "unit":
        low, high = -1e3, 1e3
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        slope = table.sum(at_constant, loss, middle)[1]
        low, high = (low, middle) if slope >= 0.0 else (middle, high)
    return float(min(table.sum(at_constant, loss, z)[0] for z in (low, high)))


def fewest_of_constant(table: Table) -> float:
    """Return the mistakes of the better label."""
    return float(table.sum(weight_of_signs).min())


def spread_of_columns(table: RunTable) -> float:
    """Return the largest feature over the smallest, by their root mean squares."""
    sums = table.sum(squares_of_columns)[: table.rows.features]
    sums = sums[sums > 0.0]
    return math.sqrt(float(sums.max() / sums.min())) if sums.size else 1.0


# ---------------------------------------------------------------- in the workers


def squares_of_columns(data: Data) -> Floats:
    """Return the sum of the squares of each column of rows."""
    return np.asarray(column_sizes(data, data.c) ** 2 * data.c.sum())


def derivatives(data: Data, loss: Any, u: Floats) -> Floats:
    """Return the losses of rows at u, its gradient, and sums of squared slopes, squared columns and curvatures."""
    if not data.rounds:
        return np.zeros(u.size * (u.size + 2) + 2)
    point = Objective(data, Smooth(loss, data.y), data.c).at(u)
    sizes = squares_of_columns(data)
    return np.concatenate(([point.value], point.gradient, [data.c @ point.slope**2], sizes, point.gram.ravel()))


def all_between(data: Data, low: float, high: float) -> bool:
    """Return whether the targets of rows that count lie in a range."""
    return bool(((data.y >= low) & (data.y <= high))[data.c > 0.0].all())


def weight_wrong(data: Data, u: Floats) -> Floats:
    """Return the weight of the rows of rows that u is wrong on; a margin of 0 is."""
    return np.asarray(data.c[data.y * data.margins(u) <= 0.0].sum())


def weight_of_signs(data: Data) -> Floats:
    """Return the weight of the rows of either sign."""
    return np.array([data.c[data.y > 0.0].sum(), data.c[data.y <= 0.0].sum()])


def different_targets(data: Data) -> tuple[Floats, Floats] | None:
    """Return the different targets of rows and their weights; None where they are many."""
    on = data.c > 0.0
    found, place = np.unique(data.y[on], return_inverse=True)
    return None if found.size > FEW else (found, np.bincount(place.ravel(), data.c[on], found.size))


def at_constant(data: Data, loss: Any, z: float) -> Floats:
    """Return what a constant loses on rows, and the slope of that."""
    at = np.full(data.rounds, z)
    return np.array([data.c @ each_loss(loss, at, data.y), data.c @ each_slope(loss, at, data.y)])
