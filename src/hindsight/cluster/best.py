"""The best fixed predictor and the best constant in hindsight over partitions, from sums that the workers send.

    L(u) = Sigma_t c_t phi(u . x_t, y_t)

A smooth loss with few coordinates: Newton's method, each step from the sums of losses, gradients and second derivatives
of all partitions; for the square loss these are its Gram matrix, and one step is least squares. Weights of a simplex or
an L1 ball: projected gradient steps with momentum. Otherwise: L-BFGS. All of them need one reduction per step, and show
what they found by L(v) >= L(u) + g . (v - u) for every v, g the gradient at u.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.best.fixed import WIDTH
from ..certificates.best.predictor import (
    FAR,
    NEAR,
    FixedPredictor,
    beyond,
    column_sizes,
    floor_of,
    inverse,
    percent,
)
from ..certificates.best.spaces import SPACES
from ..certificates.best.unpenalised import solved
from ..kernels.floats import EPS
from ..kernels.losses import Square
from ..online.margins import each_curvature, each_loss, each_slope
from .descent import MeanLoss

if TYPE_CHECKING:
    from ..kernels.floats import Floats
    from .blocks import Block, Targets
    from .rows import ClusterRows, Measured

STEPS = 60  # of Newton's method at most
MANY_STEPS = 300  # of methods that take gradients alone
HALVINGS = 100
FEW = 1000  # different targets that are counted one by one


# ---------------------------------------------------------------- the best fixed predictor


def best_fixed(
    rows: ClusterRows, targets: Targets, bias: float, loss: Any, geometry: Any, width: int
) -> FixedPredictor:
    """Return the u that minimises the loss of all rows over the set of a geometry, and its gap."""
    measured, _ = rows.measure(targets, bias)
    mean = MeanLoss(rows, targets, bias, loss, 1.0)
    outside = loss.targets == "unit" and not rows.engine.reduce(all_between, targets, bias, 0.0, 1.0, add=min)
    if outside or not loss.convex:
        why = "targets are outside [0, 1]" if outside else "the loss is not convex"
        u = np.zeros(width)
        return FixedPredictor(u, mean.at(u)[0], math.inf, f"u = 0, none was sought: {why}")
    if geometry.name in SPACES:
        return _in_set(mean, geometry, width)
    if width <= WIDTH and (loss.quadratic or hasattr(loss, "curvature")):
        return _by_newton(rows, targets, bias, loss, measured, width)
    return _by_gradients(mean, measured, width)


def _by_newton(
    rows: ClusterRows, targets: Targets, bias: float, loss: Any, measured: Measured, width: int
) -> FixedPredictor:
    u = step = best_u = np.zeros(width)
    least, gap, rank, shrink = math.inf, math.inf, 0, np.zeros(width)
    reach = FAR * (1.0 if loss.targets != "real" else math.sqrt(measured.squares / measured.weight))
    for _ in range(STEPS):
        sums = rows.engine.reduce(derivatives, targets, bias, loss, u)
        value, gradient, gram = sums[0], sums[1 : width + 1], sums[2 * width + 2 :].reshape(width, width)
        if not value < least:
            if not np.abs(step).max(initial=0.0) > 1e-14 * np.abs(best_u).max(initial=1e-300):
                break
            step = 0.5 * step
            u = best_u + step
            continue
        shrink = inverse(np.sqrt(sums[width + 2 : 2 * width + 2] / measured.weight))
        least, best_u, g = float(value), u, shrink * gradient
        direction, rank = solved(gram * np.outer(shrink, shrink), g)
        step = -shrink * direction
        off = 16.0 * EPS * (math.sqrt(width * measured.weight) * math.sqrt(float(sums[width + 1])) + abs(least))
        far = reach + float(np.linalg.norm(u * inverse(shrink)))
        gap = (float(np.linalg.norm(g)) + off) * far + off
        full = rank == np.count_nonzero(shrink)
        if loss.quadratic and full:  # L(u) - min L = g . H^-1 g / 2
            gap = min(gap, 0.505 * float(g @ direction) + off * max(1.0, far / reach))
            if gap <= NEAR * least or gap <= 4.0 * off:
                reach = math.inf
                break
        elif 0.5 * float(g @ direction) <= 1e-3 * NEAR * least:
            break
        u = best_u + step
    gap, reach = _below(loss, least, gap, reach)
    how = f"{percent(gap, least)}, rank {rank} of {width}{beyond(reach)}"
    return FixedPredictor(best_u, least, gap, f"least squares, {how}" if loss.quadratic else how, reach)


def _below(loss: Any, least: float, gap: float, reach: float) -> tuple[float, float]:
    """The gap and its reach, or what the least that the loss can be leaves."""
    most = least - floor_of(loss)
    return (most, math.inf) if most <= gap else (gap, reach)


def _by_gradients(mean: MeanLoss, measured: Measured, width: int) -> FixedPredictor:
    from scipy.optimize import minimize

    first, slope = mean.at(np.zeros(width))
    found = minimize(
        lambda v: mean.at(np.ascontiguousarray(v)), np.zeros(width), jac=True, method="L-BFGS-B",
        options={"maxiter": MANY_STEPS, "gtol": 1e-10 * float(np.abs(slope).max(initial=0.0)), "ftol": 1e-13},
    )  # fmt: skip
    u = found.x if found.fun < first else np.zeros(width)
    value, slope = mean.at(u)
    size = math.sqrt(measured.x2) or 1.0  # no column is larger than the longest row
    reach = FAR * (1.0 if mean.loss.targets != "real" else math.sqrt(measured.squares / measured.weight))
    gap = float(np.linalg.norm(slope)) * (reach / size + float(np.linalg.norm(u)))
    gap, reach = _below(mean.loss, value, gap, reach)
    return FixedPredictor(u, value, gap, f"{percent(gap, value)}, by {found.nit} steps of L-BFGS{beyond(reach)}", reach)


def _in_set(mean: MeanLoss, geometry: Any, width: int) -> FixedPredictor:
    """By projected gradients with momentum; the linear bound at u is least at a corner of the set."""
    radius = float(getattr(geometry, "radius", 1.0))
    signed = geometry.name == "balanced"
    u = before = np.zeros(width) if signed else np.full(width, radius / width)
    best = FixedPredictor(u, math.inf, math.inf, "")
    t, size, lower = 1.0, 1.0, -math.inf
    for _ in range(MANY_STEPS):
        value, slope = mean.at(u)
        corner = -radius * float(np.abs(slope).max()) if signed else radius * float(slope.min())
        lower = max(lower, value - float(slope @ u) + corner)
        if value < best.loss:
            best = FixedPredictor(u, value, 0.0, "")
        if best.loss - lower <= 1e-9 * abs(best.loss):
            break
        while True:  # a step that the curvature along it allows
            w = projected(u - slope / size, radius, signed)
            after, move = mean.at(w)[0], w - u
            if after <= value + float(slope @ move) + 0.5 * size * float(move @ move) + 1e-12 * abs(value):
                break
            size *= 2.0
        if after < best.loss:
            best = FixedPredictor(w, after, 0.0, "")
        momentum = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        u, before, t = projected(w + (t - 1.0) / momentum * (w - before), radius, signed), w, momentum
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


def fewest_mistakes(
    rows: ClusterRows, targets: Targets, bias: float, geometry: Any, at_hand: list[Floats]
) -> FixedPredictor:
    """Return that of some predictors which makes the fewest mistakes on all rows."""
    if geometry.name not in SPACES and at_hand[0].size <= WIDTH:  # and the least squares fit of the labels
        measured, _ = rows.measure(targets, bias)
        at_hand = [*at_hand, _by_newton(rows, targets, bias, Square(2.0), measured, at_hand[0].size).u]
    wrong = [float(rows.engine.reduce(weight_wrong, targets, bias, u)) for u in at_hand]
    k = int(np.argmin(wrong))
    return FixedPredictor(at_hand[k], wrong[k], wrong[k], "the fewest of a few predictors: none was sought")


# ---------------------------------------------------------------- the best constant


def best_constant(rows: ClusterRows, targets: Targets, bias: float, loss: Any) -> float:
    """Return the least of Sigma c phi(z, y) over all constants z, or the limit that it tends to."""
    from ..certificates.best import constant
    from .rounds import target_sums

    if loss.quadratic:
        measured, _ = rows.measure(targets, bias)
        total, _ = rows.engine.reduce(target_sums, targets, bias, 0.0)
        _, squares = rows.engine.reduce(target_sums, targets, bias, total / measured.weight)
        return 0.5 * float(loss.scale) * float(squares)
    each = rows.engine.each(different_targets, targets, bias)
    if all(found is not None for found in each):
        y, c = (np.concatenate([found[k] for found in each]) for k in (0, 1))
        y, place = np.unique(y, return_inverse=True)
        return constant.best_constant(loss, y, np.bincount(place.ravel(), c))
    low, high = rows.target_range()
    low, high = low - 1.0, high + 1.0
    if loss.targets == "unit":
        low, high = -1e3, 1e3
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        slope = rows.engine.reduce(at_constant, targets, bias, loss, middle)[1]
        low, high = (low, middle) if slope >= 0.0 else (middle, high)
    return float(min(rows.engine.reduce(at_constant, targets, bias, loss, z)[0] for z in (low, high)))


def fewest_of_constant(rows: ClusterRows, targets: Targets, bias: float) -> float:
    """Return the mistakes of the better label."""
    return float(rows.engine.reduce(weight_of_signs, targets, bias).min())


def spread_of_columns(rows: ClusterRows, targets: Targets, bias: float) -> float:
    """Return the largest feature over the smallest, by their root mean squares."""
    sums = rows.engine.reduce(squares_of_columns, targets, bias)[: rows.features]
    sums = sums[sums > 0.0]
    return math.sqrt(float(sums.max() / sums.min())) if sums.size else 1.0


# ---------------------------------------------------------------- in the workers


def squares_of_columns(block: Block, targets: Targets, bias: float) -> Floats:
    """Return the sum of the squares of each column of a block."""
    data = block.data(targets, bias)
    return np.asarray(column_sizes(data, data.c) ** 2 * data.c.sum())


def derivatives(block: Block, targets: Targets, bias: float, loss: Any, u: Floats) -> Floats:
    """Return the losses of a block at u, its gradient, and sums of squared slopes, squared columns and curvatures."""
    data = block.data(targets, bias)
    if not data.rounds:
        return np.zeros(u.size * (u.size + 2) + 2)
    z = data.margins(u)
    slope, each = each_slope(loss, z, data.y), each_loss(loss, z, data.y)
    curvature = np.full(z.size, float(loss.scale)) if loss.quadratic else each_curvature(loss, z)
    gram, gradient = data.moments(data.c * curvature, data.c * slope)
    sizes = squares_of_columns(block, targets, bias)
    return np.concatenate(([data.c @ each], gradient, [data.c @ slope**2], sizes, gram.ravel()))


def all_between(block: Block, targets: Targets, bias: float, low: float, high: float) -> bool:
    """Return whether the targets of a block that count lie in a range."""
    data = block.data(targets, bias)
    return bool(((data.y >= low) & (data.y <= high))[data.c > 0.0].all())


def weight_wrong(block: Block, targets: Targets, bias: float, u: Floats) -> Floats:
    """Return the weight of the rows of a block that u is wrong on; a margin of 0 is."""
    data = block.data(targets, bias)
    return np.asarray(data.c[data.y * data.margins(u) <= 0.0].sum())


def weight_of_signs(block: Block, targets: Targets, bias: float) -> Floats:
    """Return the weight of the rows of either sign."""
    data = block.data(targets, bias)
    return np.array([data.c[data.y > 0.0].sum(), data.c[data.y <= 0.0].sum()])


def different_targets(block: Block, targets: Targets, bias: float) -> tuple[Floats, Floats] | None:
    """Return the different targets of a block and their weights; None where they are many."""
    data = block.data(targets, bias)
    on = data.c > 0.0
    found, place = np.unique(data.y[on], return_inverse=True)
    return None if found.size > FEW else (found, np.bincount(place.ravel(), data.c[on], found.size))


def at_constant(block: Block, targets: Targets, bias: float, loss: Any, z: float) -> Floats:
    """Return what a constant loses on a block, and the slope of that."""
    data = block.data(targets, bias)
    at = np.full(data.rounds, z)
    return np.array([data.c @ each_loss(loss, at, data.y), data.c @ each_slope(loss, at, data.y)])
