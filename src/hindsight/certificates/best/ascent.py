"""Dual coordinate ascent: one solver for every loss, geometry and storage.

The problem of a loss bound's comparator and its dual are

    min_u  F(u) = Sigma_t a_t phi(u . x_t, y_t) + kappa D(u, w_1)
    max_alpha   Sigma_t -a_t phi*(alpha_t / a_t) + min_u [ v . u + kappa D(u, w_1) ],     v = Sigma_t alpha_t x_t

and every alpha gives a lower bound on F. For a row t the margin at u(v) changes by at most q_t |d|/kappa when alpha_t
changes by d, q_t the squared dual norm of x_t. So the best alpha_t, exactly in the Euclidean geometry and for a
minorant of the dual in the others, is a_t times the *implicit* slope of the loss,

    g = phi'(z'),   z' = z + (alpha_t - a_t g) q_t / kappa,     alpha_t <- a_t g,     theta <- theta - x_t d / kappa

which the losses have in closed form. The Fenchel equality -phi*(g) = phi(z') - g z' then gives the value of the dual
without a table of conjugates. Each pass reduces the gap of an L-smooth loss by a factor of about
1/(1 + L max q / kappa), independent of the spectrum; kappa is at least 1/eta, so a few passes suffice.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.ascent import ascend
from ...kernels.compiler import for_parts
from ...kernels.floats import EPS, Floats
from ...kernels.geometries import begin
from ...online.margins import each_loss, each_slope
from ...rows.data import Data
from ..certificate import Best
from . import clock
from .least_squares import LONGER, passes_for
from .objective import column_sizes, inverse, target_size
from .predictor import above_floor, beyond, percent
from .spaces import Reach, Space, space

SOUGHT = "the comparator of the promise"
Loss = Any  # one of the losses of `kernels`


class DualSolution(NamedTuple):
    """The best u and the best lower bound found, with the dual point alpha of the last pass."""

    u: Floats
    z: Floats
    divergence: float
    objective: float
    lower: float
    rounding: float
    alpha: Floats
    done: bool

    @property
    def gap(self) -> float:
        """An upper bound on the distance of the objective from its minimum."""
        return max(self.objective - self.lower, 0.0) + self.rounding


class Ascent:
    """The state of an ascent: alpha and v = Sigma alpha_t x_t. `kappa` may be changed between passes."""

    def __init__(self, data: Data, loss: Loss, space: Space, a: Floats, kappa: float) -> None:
        if not kappa > 0.0:
            raise ValueError(f"kappa, the divergence's factor, must be above 0, got {kappa}")
        self.data, self.loss, self.space, self.a, self.kappa = data, loss, space, a, kappa
        self.curvature = space.curvature(data)
        self.alpha, self.conjugates = np.zeros(data.rounds), np.zeros(data.rounds)
        self.v = np.zeros(data.width)
        self._state = begin(space.geometry, data.width, None, False)
        self._ascend = for_parts(ascend, loss)
        self._random = np.random.default_rng(0)

    def run_passes(self, count: int = 1) -> None:
        """Ascend over the rows `count` times, in random order within each chunk, then recompute v."""
        self.space.geometry.place_dual(self._state, self.space.theta(self.v, self.kappa))
        b = self.curvature / self.kappa
        for _ in range(count):
            for first, rows, size in self.data.blocks():
                part = slice(first, first + size)
                self._ascend(
                    rows, self._order(size), self.data.y[part], self.a[part], b[part], self.loss,
                    self.space.geometry, self.kappa, self._state, self.alpha[part], self.conjugates[part],
                )  # fmt: skip
        self.v = self.data.combine(self.alpha)

    def _order(self, count: int) -> NDArray[np.int64]:
        """Return a random order; many rows are kept in runs of neighbours, which are read three times faster."""
        run = max(1, min(32, count // 4096))
        starts = self._random.permutation(-(-count // run)) * run
        order = (starts[:, None] + np.arange(run)).ravel()
        return order[order < count]

    def evaluate(self) -> DualSolution:
        """Return the primal and the dual value at the current point; one pass."""
        u, divergence = self.space.point(self.v, self.kappa)
        z = self.data.margins(u)
        weighted = self.a * each_loss(self.loss, z, self.data.y)
        objective = float(weighted.sum()) + self.kappa * divergence
        lower = float(self.conjugates.sum()) + self.space.conjugate(self.v, self.kappa)
        size = np.abs(weighted).sum() + np.abs(self.conjugates).sum() + np.abs(self.alpha * z).sum()
        size += self.kappa * divergence + self.space.size(self.v, self.kappa)
        rounding = 4.0 * EPS * float(size)
        return DualSolution(u, z, divergence, objective, lower, rounding, self.alpha, False)


def solve(
    data: Data, loss: Loss, space: Space, a: Floats, kappa: float, tol: float, max_passes: int,
    alpha: Floats | None = None,
) -> DualSolution:  # fmt: skip
    """Ascend until the gap is at most tol times the objective, or negligible compared with the losses at u = 0."""
    ascent = Ascent(data, loss, space, a, kappa)
    if alpha is not None:
        ascent.alpha[:] = alpha
        ascent.v = data.combine(alpha)
    zeros = np.zeros(data.rounds)
    scale = float((a * (np.abs(each_loss(loss, zeros, data.y)) + np.abs(each_slope(loss, zeros, data.y)))).sum())
    goal = max(1e-9 * tol, 4.0 * EPS) * scale
    begun, done, wait = data.passes, 0, 1 if max_passes < 5 else 2
    best: DualSolution | None = None
    last = np.inf
    while True:
        ascent.run_passes(wait)
        done += wait
        seen = ascent.evaluate()
        gap = seen.gap
        if best is not None:
            lower = max(best.lower, seen.lower)
            seen = (seen if seen.objective <= best.objective else best)._replace(lower=lower)
        enough = max(tol * abs(seen.objective), goal, 1.5 * seen.rounding)
        clock.notify(SOUGHT, seen.gap / abs(seen.objective) if seen.objective else 0.0)
        if seen.gap <= enough:
            return seen._replace(done=True, alpha=ascent.alpha)
        if clock.late():
            return seen._replace(alpha=ascent.alpha)
        # Evaluation costs two passes: wait as long as the last contraction predicts, at most half of the passes so far.
        rate = np.log(gap / last) / wait if best is not None and gap < last else -np.inf
        wait = int(min(max(1.0, np.ceil(np.log(enough / gap) / rate) if np.isfinite(rate) else 1.0), 1 + done // 2))
        best, last = seen, gap
        wait = min(wait, max_passes - (data.passes - begun) - 2)
        if wait < 1:
            return best._replace(alpha=ascent.alpha)


# ---------------------------------------------------------------- the best fixed predictor


def by_ascent(data: Data, loss: Any, a: Floats, geometry: Any, tol: float) -> Best:
    """The u of least loss over the set of the geometry, by ascents on L(u) + kappa D(u, w_1) with decreasing kappa.

    The slopes alpha_t/a_t are a dual point of L itself, so that L(u) >= Sigma_t -a_t phi*(alpha_t / a_t) + v . u.
    """
    where: Any = space(geometry, data.width)
    sizes = column_sizes(data, a) if where.quadratic else np.zeros(0)
    shrink, unit = inverse(sizes), target_size(data, a, loss)
    best_u, start = where.start, float((a * each_loss(loss, data.margins(where.start), data.y)).sum())
    least, gap, reach = start, math.inf, math.inf
    ascent = Ascent(data, loss, where, a, _first_kappa(data, a, where, tol, least))
    duals: list[tuple[float, Floats]] = []  # the conjugates' sum and v of each dual point that may be the best
    wait, done, limit = 1, 0, passes_for(data)
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
        if where.quadratic:
            reach = LONGER * max(float(np.linalg.norm(sizes * best_u)), unit)
        within = Reach(shrink, reach) if where.quadratic else where
        lows = [value + within.least(v) for value, v in duals]
        duals = [duals[int(np.argmax(lows))], duals[-1]] if len(duals) > 1 else duals
        gap = max(0.0, least - max(lows)) + seen.rounding
        clock.notify("the best fixed predictor", gap / least if least > 0.0 else 0.0)
        if gap <= tol * abs(least) or least <= 1e-12 * start or done >= limit or clock.late():
            break
        if seen.gap <= 0.25 * gap:
            ascent.kappa *= 0.25
            wait = 1
        else:
            wait = max(1, min(done // 4, limit - done))
    found = above_floor(Best(best_u, least, gap, "", reach), loss)
    where_said = "" if where.quadratic else f", {where.words()}"
    return replace(found, found=f"{percent(found.gap, found.loss)}{where_said}{beyond(found.reach)}")


def _first_kappa(data: Data, a: Floats, where: Any, tol: float, scale: float) -> float:
    """The kappa of the first ascent."""
    if where.quadratic:
        return max(float((a * where.curvature(data)).max()), 1e-12)
    return max(0.5 * tol * scale / math.log(2.0 * data.width + 1.0), 1e-12)
