"""The best fixed predictor of a smooth loss with few coordinates, by Newton's method on columns scaled to one size.

Any r with Sigma_t a_t r_t x_t = 0 shows that no u loses less than -Sigma_t a_t phi*(r_t): the slopes at u are such r up
to their sum, and one step of Newton's method takes that sum off them. Without the conjugate in closed form, or where
columns are collinear to rounding, the slopes themselves bound the loss over a finite reach.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.floats import EPS
from ...online.margins import each_curvature, each_loss, each_slope
from . import clock
from .predictor import (
    FAR,
    NEAR,
    FixedPredictor,
    beyond,
    floor_of,
    inverse,
    percent,
    rounding_of,
    sum_rounding,
    target_size,
)

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

STEPS = 60  # of Newton's method at most
ZERO = 1e-12  # share of the loss at u = 0 that counts as nothing left


def smooth(data: Data, loss: Any, factors: Floats) -> FixedPredictor:
    """The u that minimises Sigma a phi(u . x, y) for a convex phi with a second derivative.

    Parameters
    ----------
    data : Data
        The rows.
    loss : part
        phi.
    factors : ndarray
        The weight a of each row.
    """
    conjugate = conjugate_of(loss)
    weight = max(float(factors.sum()), 1e-300)
    gram, _ = data.moments(factors, np.zeros(data.rounds))
    shrink = inverse(np.sqrt(np.maximum(np.diagonal(gram), 0.0) / weight))
    on = factors > 0.0
    u = best_u = step = np.zeros(data.width)
    least, lower, rank, dual, first = math.inf, -math.inf, 0, None, math.inf
    for _ in range(STEPS):
        z = data.margins(u)
        value = float(factors @ each_loss(loss, z, data.y))
        if not value < least:
            if not np.abs(step).max(initial=0.0) > 1e-14 * np.abs(best_u).max(initial=1e-300):
                break
            step = 0.5 * step
            u = best_u + step
            continue
        least, best_u = value, u
        curvature, slope = each_curvature(loss, z), each_slope(loss, z, data.y)
        gram, gradient = data.moments(factors * curvature, factors * slope)
        direction, rank = solved(gram * np.outer(shrink, shrink), shrink * gradient)
        step = -shrink * direction
        if conjugate is not None:
            dual = slope + curvature * data.margins(step)
            lower = max(lower, -float((factors[on] * conjugate(dual, data.y)[on]).sum()))
        clock.tell("the best fixed predictor", (least - lower) / least if least > 0.0 else 0.0)
        first = least if math.isinf(first) else first
        approached = floor_of(loss) == 0.0 and least <= ZERO * first  # the rows are separable, or fitted
        if least - lower <= NEAR * least or approached or clock.late():
            break
        u = best_u + step
    found = FixedPredictor(best_u, least, max(0.0, least - lower), "")
    off = math.inf
    if math.isfinite(found.gap) and rank == np.count_nonzero(shrink) and dual is not None:
        off = repaired(data, factors, shrink, gram, dual, curvature, best_u)
    found = found._replace(gap=found.gap + off)
    if not math.isfinite(found.gap):
        found = over_reach(data, loss, factors, shrink, found, dual)
    if separates(loss, data, on, found.u):
        found = found._replace(gap=math.inf)
    found = bounded_below(loss, found)
    return found._replace(how=words(loss, data, on, found, rank))


def repaired(data: Data, a: Floats, shrink: Floats, gram: Floats, dual: Floats, curvature: Floats, u: Floats) -> float:
    """What it costs to make Sigma a r x exactly 0, with margins for rounding; infinite where r may leave its range.

    With H the Gram matrix of weights a times the curvature, v = H^-1 Sigma a r x and r - curvature (v . x) that sum is
    0. As the curvature is p (1 - p), a small |v . x| leaves p in [0, 1] and costs about curvature |v . x| |z| in phi*.
    """
    H = gram * np.outer(shrink, shrink)
    left = data.combine(a * dual)
    v, _ = solved(H, shrink * left)
    weight = float(a.sum())
    least = float(np.linalg.eigvalsh(H[np.ix_(shrink > 0.0, shrink > 0.0)]).min(initial=math.inf))
    longest = math.sqrt(data.width * weight / float(a[a > 0.0].min()))  # no row is longer on columns of unit size
    z = np.abs(data.margins(shrink * v)) + sum_rounding(data, a, dual) * longest / least if least > 0.0 else math.inf
    if not (least > 0.0 and float(np.max(z)) <= 1e-3):
        return math.inf
    cost = a * curvature * z * (np.abs(data.margins(u)) + 2.0)
    return 2.0 * float(cost.sum()) + 8.0 * EPS * float(a @ np.abs(dual)) * (1.0 + float(np.abs(data.margins(u)).max()))


def over_reach(
    data: Data, loss: Any, a: Floats, shrink: Floats, found: FixedPredictor, dual: Floats | None
) -> FixedPredictor:
    """The same with the gap that slopes show over a finite reach: those at u, or others where phi* is known."""
    z = data.margins(found.u)
    each, slope = each_loss(loss, z, data.y), each_slope(loss, z, data.y)
    length, reach = float(np.linalg.norm(found.u * inverse(shrink))), FAR * target_size(data, a, loss)
    rounding = rounding_of(a, each, slope, z)

    def size(r: Floats) -> float:
        return float(np.linalg.norm(shrink * data.combine(a * r))) + sum_rounding(data, a, r)

    gap = size(slope) * (reach + length) + rounding  # L(v) >= L(u) + g . (v - u)
    if dual is not None:
        on = a > 0.0
        below = -float((a[on] * conjugate_of(loss)(dual, data.y)[on]).sum())
        if math.isfinite(below):
            gap = min(gap, max(0.0, found.loss - below) + size(dual) * reach + rounding)
    return found._replace(gap=gap, reach=reach)


def bounded_below(loss: Any, found: FixedPredictor) -> FixedPredictor:
    """The same with no larger a gap than the least that the loss can be leaves, whatever the reach."""
    most = found.loss - floor_of(loss)
    return found._replace(gap=most, reach=math.inf) if most <= found.gap else found


def conjugate_of(loss: Any) -> Any:
    """phi*(r) for each r and y; infinite where r is no slope; None for losses that have none here."""
    if loss.quadratic:
        return lambda r, y: r * r / (2.0 * loss.scale) + r * y
    if loss.link == "logistic" and loss.targets == "unit":
        from scipy.special import xlogy

        def conjugate(r: Floats, y: Floats) -> Any:
            p, q = y + r / loss.scale, (1.0 - y) - r / loss.scale  # both to all digits where they are small
            inside = (p >= 0.0) & (q >= 0.0)
            p, q = np.clip(p, 0.0, 1.0), np.clip(q, 0.0, 1.0)
            near, far = np.minimum(p, q), np.maximum(p, q)
            return np.where(inside, loss.scale * (xlogy(near, near) + far * np.log1p(-near)), math.inf)

        return conjugate
    return None


def solved(H: Floats, g: Floats) -> tuple[Floats, int]:
    """The shortest v that solves H v = g where H is not 0, and the rank of H."""
    values, vectors = np.linalg.eigh(H)
    seen = values > 8.0 * np.finfo(np.float64).eps * H.shape[0] * max(values.max(initial=0.0), 0.0)
    inner = vectors.T @ g
    return vectors[:, seen] @ (inner[seen] / values[seen]), int(seen.sum())


def separates(loss: Any, data: Data, on: Any, u: Floats) -> bool:
    """Whether u is right on all rows that count, so that longer multiples of it lose as little as one likes."""
    sign = 2.0 * data.y - 1.0
    right = (np.abs(sign) == 1.0) & (sign * data.margins(u) > 0.0)
    return loss.targets == "unit" and floor_of(loss) == 0.0 and bool(right[on].all())


def words(loss: Any, data: Data, on: Any, found: FixedPredictor, rank: int) -> str:
    """How good the predictor is on the rows that count, in words."""
    if separates(loss, data, on, found.u):
        return f"the rows are separable: 0 is approached, not attained; {found.loss:.3g} was reached"
    return f"{percent(found.gap, found.loss)}, rank {rank} of {data.width}{beyond(found.reach)}"
