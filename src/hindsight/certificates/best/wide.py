"""The best fixed predictor with many coordinates, or in the set of a multiplicative geometry, up to a relative gap.

Square losses over all of R^n: conjugate gradients on columns scaled to one size. All others: dual coordinate ascent on
L(u) + kappa D(u, w_1) for smaller and smaller kappa. Its slopes alpha_t/a_t are a dual point of L itself, so that

    L(u) >= Sigma_t -a_t phi*(alpha_t / a_t) + min over the set of v . u,     v = Sigma_t alpha_t x_t,

where the minimum is r min v_i on the simplex, -r max |v_i| on the L1 ball, and -reach |D^-1 v|_2 for a finite reach.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.floats import EPS
from ...online.margins import each_loss
from . import clock
from .ascent import Ascent
from .predictor import FixedPredictor, beyond, column_sizes, inverse, percent, sum_rounding, target_size
from .spaces import space
from .unpenalised import bounded_below

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

LONGER = 10.0  # the reach, in lengths of the predictor found
PASSES = 300  # over the rows at most
TINY_WORK = 20_000_000  # numbers read in all that are always allowed


def passes_for(data: Data) -> int:
    """How often the rows may be read: more often if they are few."""
    return max(PASSES, min(3000, TINY_WORK // max(1, data.rounds * min(data.width, 100))))


def by_conjugate_gradients(data: Data, loss: Any, a: Floats, tol: float) -> FixedPredictor:
    """Least squares in many coordinates, with one pass a step.

    The pass is over u + p, the whole step: margins and gradients at u and there give those of all points between.
    """
    sizes = column_sizes(data, a)
    shrink, unit = inverse(sizes), target_size(data, a, loss)
    u, p = np.zeros(data.width), np.zeros(data.width)
    miss, half = -data.y, data.combine(-a * data.y)
    last, start = 0.0, 0.5 * loss.scale * float(a @ data.y**2)
    found = FixedPredictor(u, start, start, "")
    for _ in range(passes_for(data)):
        g = shrink * half
        square = float(g @ g)
        value = 0.5 * loss.scale * float((a * miss) @ miss)
        reach = LONGER * max(float(np.linalg.norm(sizes * u)), unit)
        size = loss.scale * (math.sqrt(square) + sum_rounding(data, a, miss))
        gap = size * reach + loss.scale * abs(float(half @ u)) + 16.0 * EPS * (value + start)
        if value <= found.loss:
            found = FixedPredictor(u, value, min(gap, value), "", reach)
        clock.tell("the best fixed predictor", found.gap / value if value > 0.0 else 0.0)
        if found.gap <= tol * value or value <= 1e-12 * start or square == 0.0 or clock.late():
            break
        p = -g + (square / last if last > 0.0 else 0.0) * p
        z, beyond_half = data.residual_gradient(u + shrink * p, a)
        along, turn = z - data.y - miss, beyond_half - half
        length = square / max(float((a * along) @ along), 1e-300)
        u = u + length * shrink * p
        miss, half, last = miss + length * along, half + length * turn, square
    return _settled(data, loss, a, found, shrink, start)


def _settled(data: Data, loss: Any, a: Floats, found: FixedPredictor, shrink: Floats, start: float) -> FixedPredictor:
    """The same with the loss and the gap taken from the rows, not from sums along the search."""
    z, half = data.residual_gradient(found.u, a)
    miss = z - data.y
    value = 0.5 * loss.scale * float((a * miss) @ miss)
    size = loss.scale * (float(np.linalg.norm(shrink * half)) + sum_rounding(data, a, miss))
    gap = size * found.reach + loss.scale * abs(float(half @ found.u)) + 16.0 * EPS * (value + start)
    found = bounded_below(loss, found._replace(loss=value, gap=gap))
    near = "the best" if value <= 1e-12 * start else percent(found.gap, value)
    return found._replace(how=f"least squares, {near}{beyond(found.reach)}")


def by_ascent(data: Data, loss: Any, a: Floats, geometry: Any, tol: float) -> FixedPredictor:
    """Any convex loss, over the set of the geometry."""
    where = space(geometry, data.width)
    radius = None if where.quadratic else float(where.radius)  # type: ignore[attr-defined]
    sizes = column_sizes(data, a) if where.quadratic else np.zeros(0)
    shrink, unit = inverse(sizes), target_size(data, a, loss)
    zero = where.start
    at_start = a * each_loss(loss, data.margins(zero), data.y)
    best_u, least = zero, float(at_start.sum())
    ascent = Ascent(data, loss, where, a, _first_kappa(data, a, where, tol, least))
    duals: list[tuple[float, Floats]] = []  # the conjugates' sum and v of each dual point that may be the best
    wait, done, limit = 1, 0, passes_for(data)
    gap, reach = math.inf, math.inf
    while True:
        ascent.run_passes(wait)
        done += wait
        if not np.isfinite(where.point(ascent.v, ascent.kappa)[0]).all():
            break  # kappa is too small for floating point
        seen = ascent.evaluate()
        loss_there = float(a @ each_loss(loss, seen.z, data.y))
        if loss_there < least:
            best_u, least = seen.u, loss_there
        size = float(np.abs(ascent.conjugates).sum() + np.abs(ascent.alpha * seen.z).sum())
        duals.append((float(ascent.conjugates.sum()) - 8.0 * EPS * size, ascent.v.copy()))
        length = max(float(np.linalg.norm(sizes * best_u)), unit) if where.quadratic else math.inf
        reach = LONGER * length
        lows = [value + _least_product(v, where, radius, reach, shrink) for value, v in duals]
        duals = [duals[int(np.argmax(lows))], duals[-1]] if len(duals) > 1 else duals
        gap = max(0.0, least - max(lows)) + seen.rounding
        clock.tell("the best fixed predictor", gap / least if least > 0.0 else 0.0)
        if gap <= tol * abs(least) or least <= 1e-12 * float(at_start.sum()) or done >= limit or clock.late():
            break
        if seen.gap <= 0.25 * gap:
            ascent.kappa *= 0.25
            wait = 1
        else:
            wait = max(1, min(done // 4, limit - done))
    found = bounded_below(loss, FixedPredictor(best_u, least, gap, "", reach))
    where_said = "" if where.quadratic else f", |u|₁ {'=' if where.geometry.name == 'simplex' else '≤'} {radius:g}"
    return found._replace(how=f"{percent(found.gap, found.loss)}{where_said}{beyond(found.reach)}")


def _first_kappa(data: Data, a: Floats, where: Any, tol: float, scale: float) -> float:
    """A factor of the divergence that leaves room for the gap."""
    if where.quadratic:
        return max(float((a * where.curvature(data)).max()), 1e-12)
    return max(0.5 * tol * scale / math.log(2.0 * data.width + 1.0), 1e-12)


def _least_product(v: Floats, where: Any, radius: float | None, reach: float, shrink: Floats) -> float:
    """The least of v . u over the set."""
    if radius is None:
        return -reach * float(np.linalg.norm(shrink * v)) if reach > 0.0 else 0.0
    return radius * float(v.min() if where.geometry.name == "simplex" else -np.abs(v).max())
