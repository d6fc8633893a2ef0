"""The best fixed predictor in hindsight: the u of least total loss, without any penalty.

It depends only on the rows, the loss and the set of u, so all learners and rates of one loss share it. Its gap bounds
how much less another u may lose. With few coordinates it is found by Newton's method. A loss with a kink is replaced by
Moreau envelopes of decreasing width; with few rows a linear program gives the limit directly.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.euclidean import Euclidean
from ...kernels.floats import EPS
from ...online.margins import each_loss, each_slope
from ...rows.pieces import in_pieces
from ...rows.spread import SpreadRows
from ...rows.stripes import MANY
from ..certificate import Best
from . import clock
from .ascent import by_ascent
from .least_squares import by_conjugate_gradients, least_squares
from .newton import TRIES, ScaledStep, StepInSet, newton
from .objective import (
    FAR,
    KINKS,
    Objective,
    Point,
    Smooth,
    column_sizes,
    conjugate_of,
    envelope_of,
    inverse,
    sum_rounding,
    target_size,
)
from .predictor import NEAR, above_floor, beyond, floor_of, percent
from .spaces import SPACES, Mixtures, Reach

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data
    from .objective import Envelope

GRAM = 2000  # coordinates up to which least squares takes the Gram matrix
WIDTH = 600  # coordinates up to which Newton's method takes second derivatives
PROGRAM = 40_000  # numbers in the rows up to which a linear program is solved
STAGES = 14  # envelopes at most, each a fifth as wide as the one before
TRIES_EACH = 100  # points of Newton's method for each of them
ENOUGH = {True: 1e-7, False: 1e-6}  # relative gap at which the search in a set ends, and that over R^n
DAMP = {True: 1e-9, False: 1e-10}  # of the curvature of envelopes, added where few rows are near their kink
ZERO = 1e-12  # share of the loss at u = 0 that counts as nothing left
MANY_STEPS = 300  # of a method that takes gradients alone
SEARCHED = "the best fixed predictor"


def best_fixed(
    data: Data, loss: Any, factors: Floats, geometry: Any = None, tol: float = 0.01, near: Floats | None = None
) -> Best:
    """The u that minimises Sigma a phi(u . x, y) over the set of a geometry.

    Parameters
    ----------
    data : Data
        The rows.
    loss : a loss of `kernels`
        phi; if it is not convex, no gap is known.
    factors : ndarray
        The weight a of each row.
    geometry : a geometry of `kernels`, default None
        It determines the set: the simplex, the L1 ball, or all of R^n.
    tol : float, default 0.01
        Relative gap to reach where the solution is not exact.
    near : ndarray, default None
        The initial point for a smooth loss over many rows; None is 0.

    Examples
    --------
    >>> from hindsight.kernels import Square
    >>> from hindsight.rows.data import Data
    >>> best_fixed(Data(np.array([[1.0], [1.0]]), [1.0, 3.0]), Square(2.0), np.ones(2)).u
    array([2.])
    """
    whole = geometry is None or geometry.name not in SPACES
    outside = loss.targets == "unit" and not ((data.y >= 0.0) & (data.y <= 1.0))[factors > 0.0].all()
    if outside or not loss.convex:
        u = np.zeros(data.width)
        return not_sought(u, float(factors @ each_loss(loss, data.margins(u), data.y)), outside)
    if not factors.any():
        return Best(np.zeros(data.width), 0.0, 0.0, "no row counts")
    if whole and (loss.quadratic or hasattr(loss, "curvature")):
        data, factors = in_pieces(data, factors)
    spread = isinstance(data, SpreadRows)
    if spread and not (data.width <= WIDTH and (hasattr(loss, "curvature") or loss.quadratic or type(loss) in KINKS)):
        return by_gradients(data, loss, factors, None if whole else geometry)
    if whole and loss.quadratic:
        if data.width <= GRAM:
            return least_squares(data, loss, factors)
        return by_conjugate_gradients(data, loss, factors, tol)
    if whole and data.width <= WIDTH and hasattr(loss, "curvature"):
        return smooth(data, loss, factors, near if data.rounds * data.width >= MANY else None)
    if data.width <= WIDTH and (type(loss) in KINKS or hasattr(loss, "curvature")):
        found = kinked(data, loss, factors) if whole else in_set(data, loss, factors, geometry)
        if spread and whole and found.gap > tol * abs(found.loss):
            found = min(found, by_gradients(data, loss, factors, None), key=lambda f: f.loss)
        if whole or spread or found.gap <= tol * abs(found.loss) or clock.late():
            return found
        other = by_ascent(data, loss, factors, geometry, tol)
        return min(found, other, key=lambda f: f.gap if math.isfinite(f.gap) else math.inf)
    return by_ascent(data, loss, factors, Euclidean(1.0) if whole else geometry, tol)


def not_sought(u: Floats, value: float, outside: bool) -> Best:
    """u = 0 with an infinite gap; matching losses of targets outside [0, 1] may be unbounded below."""
    why = "targets are outside [0, 1]" if outside else "the loss is not convex"
    return Best(u, value, math.inf, f"u = 0, none was sought: {why}")


def by_gradients(data: Data, loss: Any, a: Floats, geometry: Any) -> Best:
    """The u that L-BFGS finds for rows spread over blocks, with many coordinates; in a set, its centre."""
    from scipy.optimize import minimize

    def at(u: Floats) -> tuple[float, Floats]:
        z = data.margins(np.ascontiguousarray(u))
        return float(a @ each_loss(loss, z, data.y)), data.combine(a * each_slope(loss, z, data.y))

    u = np.zeros(data.width)
    if geometry is not None:
        u = Mixtures(geometry, data.width, None).start
        return Best(u, at(u)[0], math.inf, "none was sought: too many coordinates")
    value, slope = at(u)
    steps = {"maxiter": MANY_STEPS, "gtol": 1e-10 * float(np.abs(slope).max(initial=0.0)), "ftol": 1e-13}
    found = minimize(at, u, jac=True, method="L-BFGS-B", options=steps)
    if found.fun < value:
        u = found.x
        value, slope = at(u)
    sizes, reach = column_sizes(data, a), FAR * target_size(data, a, loss)
    gap = float(np.linalg.norm(inverse(sizes) * slope)) * (reach + float(np.linalg.norm(sizes * u)))
    best = above_floor(Best(u, value, gap, "", reach), loss)
    return replace(best, found=f"{percent(best.gap, value)}, by {found.nit} steps of L-BFGS{beyond(best.reach)}")


# ---------------------------------------------------------------- in a set, and losses with a kink


class Search:
    """The best u and the best lower bound so far, over a set: `Mixtures`, or `Reach`."""

    def __init__(self, data: Data, loss: Any, a: Floats, where: Any, start: Floats) -> None:
        self.data, self.loss, self.a, self.where = data, loss, a, where
        self.bounded = isinstance(where, Mixtures)  # not all of R^n
        self.u, self.least, self.lower = start, math.inf, -math.inf
        self.kinked = type(loss) in KINKS
        self.phi: Any = envelope_of(loss, data.y) if self.kinked else Smooth(loss, data.y)

    def at(self, u: Floats) -> Point:
        """The point of u, which is stored if it is the best so far."""
        point = Objective(self.data, self.phi, self.a).at(u)
        value = float(self.a @ each_loss(self.loss, point.z, self.data.y)) if self.kinked else point.loss
        if value < self.least:
            self.u, self.least = u, value
        return point

    def below(self, z: Floats, r: Floats, v: Floats) -> None:
        """Store the lower bound of slopes r at margins z, with v = Sigma a r x, if it is the best so far."""
        terms, sizes = self.phi.dual(z, r)
        rounding = 8.0 * EPS * float(self.a @ sizes) + self.where.rounding(v, self.a, r)
        self.lower = max(self.lower, float(self.a @ terms) + self.where.least(v) - rounding)

    @property
    def gap(self) -> float:
        return max(0.0, self.least - self.lower)

    @property
    def done(self) -> bool:
        return self.least < math.inf and (self.gap <= ENOUGH[self.bounded] * abs(self.least) or clock.late())

    def notify(self) -> None:
        """Report the current relative gap."""
        clock.notify(SEARCHED, self.gap / self.least if self.least > 0.0 else 0.0)

    def by_program(self) -> None:
        """The u and the slopes of a linear program."""
        found = kinked_program(self.data.matrix(), self.a, self.phi, self.where)
        if found is not None:
            r, tried = found
            self.below(np.zeros(0), r, self.data.combine(self.a * r))
            for u in tried:
                if np.isfinite(u).all():
                    self.at(u)

    def by_newton(self) -> None:
        """Newton's method, on each envelope where the loss has a kink."""
        u = self.u
        if self.kinked:
            self.phi = self.phi._replace(width=max(target_size(self.data, self.a, self.loss), 1e-300))
        for _ in range(STAGES if self.kinked else 1):
            for point, step in newton(self.at, u, self.direction(), TRIES_EACH):
                self.below(point.z, point.slope, point.slopes)
                u, fall = point.u, -float(point.gradient @ step)
                if not self.kinked:
                    self.notify()
                if self.done or (self.kinked and fall <= 1e-10 * abs(point.value)):
                    break
            self.notify()
            if self.done:
                return
            if self.kinked:
                self.phi = self.phi._replace(width=0.2 * self.phi.width)

    def direction(self) -> Any:
        """Newton's step over the set."""
        damp = DAMP[self.bounded] if self.kinked else 0.0
        if self.bounded:
            return StepInSet(self.where, damp)
        return ScaledStep(self.where.shrink, damp * float(self.a.sum()) / self.phi.width)


def in_set(data: Data, loss: Any, a: Floats, geometry: Any) -> Best:
    """The u that minimises Sigma a phi(u . x, y) over the set of a geometry, for a smooth loss or one with a kink."""
    where = Mixtures(geometry, data.width, None)
    search = Search(data, loss, a, where, where.start)
    if search.kinked and data.rounds * data.width <= PROGRAM:
        search.by_program()
    if not search.done:
        search.by_newton()
    return Best(search.u, search.least, search.gap, f"{percent(search.gap, search.least)}, {where.words()}")


def kinked(data: Data, loss: Any, a: Floats) -> Best:
    """The u that minimises Sigma a phi(u . x, y) over R^n for a loss with a kink, up to a gap."""
    reach = FAR * target_size(data, a, loss)
    search = Search(data, loss, a, Reach(inverse(column_sizes(data, a)), reach), np.zeros(data.width))
    phi, u = search.phi, search.u
    search.at(u)
    r = np.where((phi.low <= 0.0) & (phi.high >= 0.0), 0.0, phi.low)  # u = 0 and nothing known
    search.below(np.zeros(0), r, data.combine(a * r))
    if data.rounds * data.width <= PROGRAM:
        search.by_program()
    if not search.done:
        search.by_newton()
    reach = math.inf if farthest(search) <= reach else reach
    found = above_floor(Best(search.u, search.least, search.gap, "", reach), loss)
    return replace(found, found=f"{percent(found.gap, found.loss)}{beyond(found.reach)}")


def farthest(search: Search) -> float:
    """An upper bound on |D u| for a better u, if both slopes of the loss are nonzero; infinite if none is known.

    With s the flatter slope, s Sigma a |z - k| <= L gives Sigma a |z| <= L/s + Sigma a |k|; and Sigma a |z| is at least
    Sigma a z^2 / max |z| >= l W |D u| / sqrt(n W / min a), l the least eigenvalue of the scaled Gram matrix over W.
    """
    data, a, on, phi, shrink = search.data, search.a, search.a > 0.0, search.phi, search.where.shrink
    flat = float(np.minimum(-phi.low, phi.high)[on].min())
    if not (flat > 0.0 and shrink.all()):
        return math.inf
    weight = float(a.sum())
    gram, _ = data.moments(a, 0.0 * a)
    least = float(np.linalg.eigvalsh(gram * np.outer(shrink, shrink))[0]) / weight - 1e-12
    if not least > 0.0:
        return math.inf
    most = search.least / flat + float(a @ np.abs(phi.kink))
    return most * math.sqrt(data.width * weight / float(a[on].min())) / (least * weight)


# ---------------------------------------------------------------- smooth losses over R^n


def smooth(data: Data, loss: Any, a: Floats, near: Floats | None = None) -> Best:
    """The u that minimises Sigma a phi(u . x, y) over R^n for a phi with a second derivative, sought from `near` on.

    Any r with Sigma_t a_t r_t x_t = 0 shows that no u loses less than -Sigma_t a_t phi*(r_t). For the slopes at u this
    sum is nearly 0, and one step of Newton's method corrects them to make it 0. Without the conjugate in closed form,
    or if columns are collinear to rounding, the slopes themselves bound the loss over a finite reach.
    """
    conjugate, on = conjugate_of(loss), a > 0.0
    step_of, lower, dual, start = ScaledStep(inverse(column_sizes(data, a))), -math.inf, None, np.zeros(data.width)
    first, objective = math.inf, Objective(data, Smooth(loss, data.y), a)
    if near is not None:
        first = objective.at(start).value
        start = near if objective.at(near).value < first else start
    for point, step in newton(objective.at, start, step_of, TRIES):
        if conjugate is not None:
            dual = point.slope + point.curvature * data.margins(step)
            lower = max(lower, -float((a[on] * conjugate(dual, data.y)[on]).sum()))
        least, first = point.value, min(first, point.value) if math.isinf(first) else first
        clock.notify(SEARCHED, (least - lower) / least if least > 0.0 else 0.0)
        approached = floor_of(loss) == 0.0 and least <= ZERO * first  # the rows are separable, or fitted
        if least - lower <= NEAR * least or approached or clock.late():
            break
    found = Best(point.u, least, max(0.0, least - lower), "")
    off = math.inf
    if math.isfinite(found.gap) and step_of.inverse.rank == np.count_nonzero(step_of.shrink) and dual is not None:
        off = repaired(data, a, step_of, dual, point)
    found = replace(found, gap=found.gap + off)
    if not math.isfinite(found.gap):
        found = over_reach(data, loss, a, step_of.shrink, point, dual)
    apart = separates(loss, data, on, found.u)
    found = above_floor(replace(found, gap=math.inf) if apart else found, loss)
    if apart:
        return replace(
            found, found=f"the rows are separable: 0 is approached, not attained; {found.loss:.3g} was reached"
        )
    how = f"{percent(found.gap, found.loss)}, rank {step_of.inverse.rank} of {data.width}{beyond(found.reach)}"
    return replace(found, found=how)


def repaired(data: Data, a: Floats, step_of: ScaledStep, dual: Floats, point: Point) -> float:
    """The cost of making Sigma a r x exactly 0, with a margin for rounding; infinite if r may leave its range.

    Let H be the Gram matrix with weights a times the curvature, and v = H^-1 Sigma a r x. For the slopes
    r - curvature (v . x) the sum is 0. As the curvature is p (1 - p), a small |v . x| leaves p in [0, 1] and costs
    about curvature |v . x| |z| in phi*.
    """
    shrink, H = step_of.shrink, step_of.H
    v = step_of.inverse.solve(shrink * data.combine(a * dual))
    weight = float(a.sum())
    least = float(np.linalg.eigvalsh(H[np.ix_(shrink > 0.0, shrink > 0.0)]).min(initial=math.inf))
    if not least > 0.0:
        return math.inf
    longest = math.sqrt(data.width * weight / float(a[a > 0.0].min()))  # no row is longer on columns of unit size
    z = np.abs(data.margins(shrink * v)) + sum_rounding(a, dual, data.width) * longest / least
    if not float(np.max(z)) <= 1e-3:
        return math.inf
    cost = a * point.curvature * z * (np.abs(point.z) + 2.0)
    return 2.0 * float(cost.sum()) + 8.0 * EPS * float(a @ np.abs(dual)) * (1.0 + float(np.abs(point.z).max()))


def over_reach(data: Data, loss: Any, a: Floats, shrink: Floats, point: Point, dual: Floats | None) -> Best:
    """The point with its gap over a finite reach, from the slopes at u, or from other slopes where phi* is known."""
    length, reach = float(np.linalg.norm(point.u * inverse(shrink))), FAR * target_size(data, a, loss)
    rounding = 8.0 * EPS * float(a @ (np.abs(point.each) + np.abs(point.slope * point.z)))

    def size(r: Floats) -> float:
        return float(np.linalg.norm(shrink * data.combine(a * r))) + sum_rounding(a, r, data.width)

    gap = size(point.slope) * (reach + length) + rounding  # L(v) >= L(u) + g . (v - u)
    if dual is not None:
        on = a > 0.0
        below = -float((a[on] * conjugate_of(loss)(dual, data.y)[on]).sum())
        if math.isfinite(below):
            gap = min(gap, max(0.0, point.value - below) + size(dual) * reach + rounding)
    return Best(point.u, point.value, gap, "", reach)


def separates(loss: Any, data: Data, on: Any, u: Floats) -> bool:
    """Whether u classifies all rows of positive weight correctly, so that the loss of its multiples tends to 0."""
    sign = 2.0 * data.y - 1.0
    right = (np.abs(sign) == 1.0) & (sign * data.margins(u) > 0.0)
    return loss.targets == "unit" and floor_of(loss) == 0.0 and bool(right[on].all())


# ---------------------------------------------------------------- linear programs


def kinked_program(X: Floats, a: Floats, phi: Envelope, where: Any) -> tuple[Floats, list[Floats]] | None:
    """The optimal slopes r for a loss with a kink and candidates for u, one of which is optimal; None if the LP fails.

    The dual is solved, as its solution gives both: max -Sigma alpha k + t over a low <= alpha <= a high. Over a set, t
    is at most Sigma alpha z_j for the margins z_j of each corner, and the multipliers are the weights of the corners.
    Over R^n, t = 0 and Sigma alpha x = 0, and the multipliers are u up to sign.
    """
    from scipy.optimize import linprog

    on = np.flatnonzero(a > 0.0)
    weight, low, high, kink = a[on] / a.max(), phi.low[on], phi.high[on], phi.kink[on]
    size = float(np.abs(kink).max(initial=0.0)) or 1.0
    cost, bounds = kink / size, np.c_[weight * low, weight * high]
    if isinstance(where, Mixtures):
        Z = where.at_corners(X[on]) / size
        above = np.c_[-Z.T, np.ones(Z.shape[1])]
        bounds = np.r_[bounds, [[-np.inf, np.inf]]]
        found = linprog(np.r_[cost, -1.0], A_ub=above, b_ub=np.zeros(Z.shape[1]), bounds=bounds, method="highs-ds")
    else:
        A = (X[on] * where.shrink).T
        found = linprog(cost, A_eq=A, b_eq=np.zeros(A.shape[0]), bounds=bounds, method="highs-ds")
    if found.status != 0:
        return None
    r = np.zeros(a.size)
    r[on] = np.clip(found.x[: on.size] / weight, low, high)
    if not isinstance(where, Mixtures):
        u = size * where.shrink * found.eqlin.marginals
        return r, [u, -u]
    p = np.abs(found.ineqlin.marginals)
    return r, [where.mixed(p / p.sum())] if p.sum() > 0.0 else []


def nonnegative_separator(A: Floats) -> tuple[Floats | None, bool | None]:
    """A u >= 0 with A u > 0 in all rows, and whether one exists (None if unknown)."""
    from scipy.optimize import linprog

    scale = np.abs(A).max(axis=1, initial=0.0)
    if not (scale > 0.0).all():
        return None, False
    out = linprog(np.ones(A.shape[1]), A_ub=-A / scale[:, None], b_ub=-np.ones(A.shape[0]), method="highs-ds")
    return (out.x if out.status == 0 and out.x.any() else None), None
