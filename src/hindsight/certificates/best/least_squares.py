"""The best fixed predictor of the square loss: least squares, of minimum norm where not unique.

    L(u) = scale/2 Sigma_t a_t (u . x_t - y_t)^2,    L(u) - min L = 1/2 g . H^-1 g,    g and H its derivatives

Columns are scaled to unit size. With few columns the solution is computed from the Gram matrix if that is well
conditioned, otherwise from the rows themselves if they are few, which still distinguishes columns that are collinear to
1e-8. In directions that are collinear to rounding, the gap holds over a finite reach. With many columns, conjugate
gradients are used.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...kernels.floats import EPS
from ..certificate import Best
from . import clock
from .newton import Inverse
from .objective import FAR, column_sizes, inverse, sum_rounding, target_size
from .predictor import above_floor, beyond, percent

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

SMALL = 4_000_000  # numbers in the rows up to which they are decomposed
CONDITION = 1e-9  # reciprocal condition number from which the Gram matrix is trusted
REFINED = 4  # solutions tried, each with the gradient of the last
LONGER = 10.0  # the reach of conjugate gradients, in lengths of the predictor found
PASSES = 300  # over the rows at most
TINY_WORK = 20_000_000  # numbers read in all that are always allowed


class Units(NamedTuple):
    """The total weight of the rows, and the nonzero columns with the factors that scale them to unit size."""

    weight: float
    on: Any
    shrink: Floats


def least_squares(data: Data, loss: Any, a: Floats) -> Best:
    """The u that minimises the weighted square loss with few coordinates, of minimum norm, with its rank."""
    gram, cross = data.moments(a, a * data.y)
    weight = max(float(a.sum()), 1e-300)
    shrink = inverse(np.sqrt(np.maximum(np.diagonal(gram), 0.0) / weight))
    on = np.flatnonzero(shrink)
    if not on.size:
        value = 0.5 * loss.scale * float(a @ data.y**2)
        return Best(np.zeros(data.width), value, 0.0, f"least squares, rank 0 of {data.width}")
    unit = Units(weight, on, shrink[on])
    S = gram[np.ix_(on, on)] * np.outer(unit.shrink, unit.shrink) / weight
    v, solver, doubt = first_solution(data, a, unit, S, cross[on] * unit.shrink / weight)
    whole = solver.rank == on.size
    reach = math.inf if whole else FAR * target_size(data, a, loss)
    u, best = np.zeros(data.width), None
    u[on] = unit.shrink * v
    for _ in range(REFINED):
        length = u[on] / unit.shrink
        value, half, rounding, off = _value(data, loss, a, u, float(np.abs(length).sum()))
        g, off = half[on] * unit.shrink / weight, math.sqrt(on.size) * off
        step = solver.solve(g)
        size = math.sqrt(max(0.0, float(g @ step))) + off / math.sqrt(solver.least)
        gap = 0.5 * doubt * loss.scale * weight * size * size + rounding
        if not whole:
            rest = float(np.linalg.norm(g - solver.vectors @ (solver.vectors.T @ g))) + off
            gap += loss.scale * weight * rest * (reach + float(np.linalg.norm(length)))
        gap = min(value, gap)
        if best is None or value < best.loss:
            best = Best(u, value, gap, "", reach)
        if gap <= 1e-12 * value or gap <= 4.0 * rounding:
            break
        u = u.copy()
        u[on] -= unit.shrink * step
    assert best is not None
    rank = f"{'' if whole else 'of minimum norm, '}rank {solver.rank} of {data.width}"
    best = replace(best, reach=math.inf) if best.gap == best.loss else best
    return replace(best, found=_words(best, rank, best.loss <= 1e-20 * float(a @ data.y**2)))


def first_solution(data: Data, a: Floats, unit: Units, S: Floats, b: Floats) -> tuple[Floats, Inverse, float]:
    """The solution v of S v = b on columns of unit size, the inverse of S, and a factor by which that may be too small.

    The computed eigenvalues are exact for a matrix that differs from S by at most half of the threshold above which an
    eigenvalue is kept.
    """
    solver = Inverse(S, CONDITION)
    if solver.trusted:
        return solver.solve(b), solver, 1.01
    if data.rounds * data.width > SMALL:
        values, V = np.linalg.eigh(S)
        noise = 4.0 * EPS * max(unit.on.size, 64) * values.max()  # of the products, and of the decomposition
        solver.keep(values, V, values > 2.0 * noise)
        v, doubt = solver.solve(b), 1.0 / (1.0 - noise / solver.least)
    else:
        root = np.sqrt(a / unit.weight)
        A = data.matrix()[:, unit.on] * unit.shrink * root[:, None]
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        noise = 4.0 * EPS * max(A.shape) * s.max(initial=0.0)
        kept = s > 2.0 * noise
        solver.keep(s**2, Vt.T, kept)
        v = solver.vectors @ ((U.T @ (root * data.y))[kept] / s[kept])
        doubt = 1.0 / (1.0 - noise / s[kept].min(initial=math.inf)) ** 2
    if solver.rank < unit.on.size:  # the shortest u with the same margins: its part along the rows, which D V spans
        Q, _ = np.linalg.qr(solver.vectors / unit.shrink[:, None])
        v = (Q @ (Q.T @ (unit.shrink * v))) / unit.shrink
    return v, solver, doubt


def _value(data: Data, loss: Any, a: Floats, u: Floats, terms: float) -> tuple[float, Floats, float, float]:
    """L(u), Sigma a (z - y) x, and the rounding errors of L and of each entry of the gradient on unit columns.

    `terms` is Sigma_i |u_i| D_i, which is at least the root mean square of Sigma_i |u_i x_i|. The terms of a margin may
    cancel, so z has an error of a few EPS times that.
    """
    z, half = data.residual_gradient(u, a)
    miss, weight = z - data.y, max(float(a.sum()), 1e-300)
    square = float((a * miss) @ miss)
    off = (8.0 + data.width) * EPS * (terms + math.sqrt(float(a @ data.y**2) / weight))
    mean = math.sqrt(square / weight)
    rounding = loss.scale * weight * (mean * off + 0.5 * off * off + 32.0 * EPS * mean * mean)
    return 0.5 * loss.scale * square, half, rounding, off + 64.0 * EPS * mean


def _words(best: Best, rank: str, exact: bool) -> str:
    """How the solution was found, and how close to the best it is."""
    told = percent(best.gap, best.loss) if best.loss > 0.0 else "the best"
    near = "" if told == "the best" else f", {told}"
    if best.gap >= best.loss:  # an exact fit but for rounding, or columns too alike to say
        near = "" if exact else ", how near the best cannot be told"
    return f"least squares, {rank}{near}{beyond(best.reach)}"


def passes_for(data: Data) -> int:
    """The largest number of passes over the rows; more if they are few."""
    return max(PASSES, min(3000, TINY_WORK // max(1, data.rounds * min(data.width, 100))))


def by_conjugate_gradients(data: Data, loss: Any, a: Floats, tol: float) -> Best:
    """Least squares in many coordinates, with one pass per step.

    The pass evaluates u + p, the full step; margins and gradients at u and u + p give those at all points between. The
    final loss and gap are computed from the rows, not from sums along the search.
    """
    sizes = column_sizes(data, a)
    shrink, unit = inverse(sizes), target_size(data, a, loss)
    start = 0.5 * loss.scale * float(a @ data.y**2)

    def at(u: Floats, miss: Floats, half: Floats, reach: float) -> Best:
        value = 0.5 * loss.scale * float((a * miss) @ miss)
        size = loss.scale * (float(np.linalg.norm(shrink * half)) + sum_rounding(a, miss, data.width))
        gap = size * reach + loss.scale * abs(float(half @ u)) + 16.0 * EPS * (value + start)
        return Best(u, value, gap, "", reach)

    u, p, last = np.zeros(data.width), np.zeros(data.width), 0.0
    miss, half = -data.y, data.combine(-a * data.y)
    found = Best(u, start, start, "")
    for _ in range(passes_for(data)):
        seen = at(u, miss, half, LONGER * max(float(np.linalg.norm(sizes * u)), unit))
        if seen.loss <= found.loss:
            found = replace(seen, gap=min(seen.gap, seen.loss))
        g = shrink * half
        square = float(g @ g)
        clock.notify("the best fixed predictor", found.gap / seen.loss if seen.loss > 0.0 else 0.0)
        if found.gap <= tol * seen.loss or seen.loss <= 1e-12 * start or square == 0.0 or clock.late():
            break
        p = -g + (square / last if last > 0.0 else 0.0) * p
        z, beyond_half = data.residual_gradient(u + shrink * p, a)
        along, turn = z - data.y - miss, beyond_half - half
        length = square / max(float((a * along) @ along), 1e-300)
        u = u + length * shrink * p
        miss, half, last = miss + length * along, half + length * turn, square
    z, half = data.residual_gradient(found.u, a)
    found = above_floor(at(found.u, z - data.y, half, found.reach), loss)
    near = "the best" if found.loss <= 1e-12 * start else percent(found.gap, found.loss)
    return replace(found, found=f"least squares, {near}{beyond(found.reach)}")
