"""Dual coordinate ascent: one solver for every rule, geometry and storage.

The rival's problem (4 of THEORY.md; 1, 2, 3 with the square rule) and its dual are

    min_u  F(u) = Sigma_t a_t phi(u . x_t, y_t) + kappa D(u, w_1)
    max_alpha   Sigma_t -a_t phi*(alpha_t / a_t) + min_u [ v . u + kappa D(u, w_1) ],     v = Sigma_t alpha_t x_t

and every alpha gives a lower bound on F. For a row t the margin at u(v) moves by at most q_t |d|/kappa when alpha_t
moves by d, q_t the squared dual norm of x_t. So the best alpha_t, exactly in the Euclidean geometry and for a minorant
of the dual in the others, is a_t times the *implicit* slope of the rule,

    g = phi'(z'),   z' = z + (alpha_t - a_t g) q_t / kappa,     alpha_t <- a_t g,     theta <- theta - x_t d / kappa

which `kernels` has in closed form: the implicit online learner with a memory. The Fenchel equality
-phi*(g) = phi(z') - g z' then gives the dual's value with no table of conjugates. Each pass contracts the gap of an
L-smooth rule by about 1/(1 + L max q / kappa), whatever the spectrum; kappa is 1/eta or more, so a few passes do.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.ascent import EPS, ascend
from ...kernels.geometries import refresh
from ...kernels.online import losses, slopes
from ...rows.matrices import Data, Floats
from .spaces import Geometry, Space

Rule = Any  # one of the rules of `kernels`: loss, slope and implicit in (z, y)


class Solution(NamedTuple):
    """The best u and the best lower bound met."""

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
        return max(self.objective - self.lower, 0.0) + self.rounding


class Ascent:
    """The state of an ascent: alpha, and theta at v = Sigma alpha_t x_t. `kappa` may be changed between passes."""

    def __init__(self, data: Data, rule: Rule, geometry: Geometry, space: Space, a: Floats, kappa: float) -> None:
        if not kappa > 0.0:
            raise ValueError(f"kappa, the divergence's factor, must be > 0, got {kappa}")
        self.data, self.loss, self.geometry, self.space, self.a, self.kappa = data, rule, geometry, space, a, kappa
        self.curvature = space.curvature(data)
        self.alpha, self.conjugates = np.zeros(data.rounds), np.zeros(data.rounds)
        self.v = np.zeros(data.width)
        part: Any = geometry
        self._state, self._scalars = part.begin(data.width, None, False)
        self._random = np.random.default_rng(0)

    def sweep(self, times: int = 1) -> None:
        """Passes of ascent, in random order (within each chunk, where rows come in chunks), then v anew."""
        self._state[0] = self.space.theta(self.v, self.kappa)
        if self._state.shape[0] > 1:
            refresh(self.geometry, self._state, self._scalars)
        b = self.curvature / self.kappa
        for _ in range(times):
            for first, rows, count in self.data.blocks():
                part = slice(first, first + count)
                ascend(
                    rows, self._order(count), self.data.y[part], self.a[part], b[part], self.loss,
                    self.geometry, self.kappa, self._state, self._scalars, self.alpha[part], self.conjugates[part],
                )  # fmt: skip
        self.v = self.data.combine(self.alpha)

    def _order(self, count: int) -> NDArray[np.int64]:
        """A random order, in runs of neighbours where rows are many: memory is read three times faster so."""
        run = max(1, min(32, count // 4096))
        starts = self._random.permutation(-(-count // run)) * run
        order = (starts[:, None] + np.arange(run)).ravel()
        return order[order < count]

    def look(self) -> Solution:
        """Primal and dual value at the present point; one pass."""
        u, divergence = self.space.point(self.v, self.kappa)
        z = self.data.margins(u)
        paid = self.a * each_loss(self.loss, z, self.data.y)
        objective = float(paid.sum()) + self.kappa * divergence
        lower = float(self.conjugates.sum()) + self.space.conjugate(self.v, self.kappa)
        size = np.abs(paid).sum() + np.abs(self.conjugates).sum() + np.abs(self.alpha * z).sum()
        rounding = 4.0 * EPS * float(size + self.kappa * divergence)
        return Solution(u, z, divergence, objective, lower, rounding, self.alpha, False)


def solve(
    data: Data, rule: Rule, geometry: Geometry, space: Space, a: Floats, kappa: float, tol: float, max_passes: int,
    alpha: Floats | None = None,
) -> Solution:  # fmt: skip
    """Ascend until the gap is at most tol times the objective (or where that is 0, a share of the losses' size)."""
    ascent = Ascent(data, rule, geometry, space, a, kappa)
    if alpha is not None:
        ascent.alpha[:] = alpha
        ascent.v = data.combine(alpha)
    zeros = np.zeros(data.rounds)
    scale = float((a * (np.abs(each_loss(rule, zeros, data.y)) + np.abs(each_slope(rule, zeros, data.y)))).sum())
    goal = max(1e-9 * tol, 4.0 * EPS) * scale
    begun, sweeps, wait = data.passes, 0, 1 if max_passes < 5 else 2
    best: Solution | None = None
    last = np.inf
    while True:
        ascent.sweep(wait)
        sweeps += wait
        seen = ascent.look()
        gap = seen.gap
        if best is not None:
            lower = max(best.lower, seen.lower)
            seen = (seen if seen.objective <= best.objective else best)._replace(lower=lower)
        enough = max(tol * abs(seen.objective), goal, 1.5 * seen.rounding)
        if seen.gap <= enough:
            return seen._replace(done=True, alpha=ascent.alpha)
        # Looking costs two passes: wait as long as the last contraction says, never more than half as long again.
        rate = np.log(max(gap, EPS) / max(last, EPS)) / wait if best is not None and gap < last else -np.inf
        wait = int(min(max(1.0, np.ceil(np.log(enough / gap) / rate) if np.isfinite(rate) else 1.0), 1 + sweeps // 2))
        best, last = seen, gap
        wait = min(wait, max_passes - (data.passes - begun) - 2)
        if wait < 1:
            return best._replace(alpha=ascent.alpha)


def each_loss(rule: Rule, z: Floats, y: Floats) -> Floats:
    out = np.empty_like(z)
    losses(rule, z, y, out)
    return out


def each_slope(rule: Rule, z: Floats, y: Floats) -> Floats:
    out = np.empty_like(z)
    slopes(rule, z, y, out)
    return out
