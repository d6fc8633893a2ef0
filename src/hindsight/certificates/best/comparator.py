"""The comparator of a loss bound: the u that makes it smallest in hindsight.

Each of these bounds is, up to terms that do not depend on u,

    F(u) = Sigma_t a_t phi(u . x_t, y_t) + kappa D(u, w_1)

| bound | phi | a_t | kappa |
|---|---|---|---|
| Widrow-Hoff, exponentiated gradient | (z - y)^2 | c_t / (1 - eta c_t V_t), V_t of the round | 2 / eta |
| implicit Widrow-Hoff | (z - y)^2 | c_t | 2 / eta |
| descent on a convex loss | the loss | c_t | 1 / eta |

With changing rates eta is the last rate, and w_1 is replaced (`around`) by the point that the distances along the run
lead to. Any u gives a valid bound, so an approximate comparator makes a certificate looser but never false.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from ...kernels.euclidean import Euclidean
from ...kernels.floats import EPS, Floats
from ...online.margins import each_loss, each_slope
from ...rows.data import Data, divided
from ...rows.pieces import in_pieces
from ...rows.spread import SpreadRows
from ...rows.stripes import MANY
from .ascent import Loss, solve
from .newton import CONDITION, TRIES, Inverse, ScaledStep, newton
from .objective import Objective, Point, Smooth, inverse
from .predictor import closeness
from .spaces import Geometry, space

GRAM = 2000  # widths up to which ridge regression forms the Gram matrix
SPECTRUM = 500  # widths up to which the eigenvalues are computed, for the rank
SECOND = 600  # widths up to which Newton's method takes the second derivatives of a smooth loss
ALIKE = 1.2  # ratio of the largest to the smallest up to which factors count as nearly a multiple of the weights
REFINED = 4  # solutions of a square loss that are tried, each with the gradient of the last
STEPS = 200  # of L-BFGS at most
ENOUGH = 1e-9  # relative gap up to which the comparator in a metric is sought, if not asked for less


class LossComparator(NamedTuple):
    """A comparator in hindsight.

    Attributes
    ----------
    u : ndarray
        Its weights, the intercept's last; inside its geometry's set.
    divergence : float
        D(u, w_1).
    objective : float
        F(u).
    gap : float
        An upper bound on F(u) - min F; infinite if none is known.
    notes : tuple of str
        Rank and condition number, or that the limit on passes ended the search.
    given : bool
        Whether it was given by the user.
    """

    u: Floats
    divergence: float
    objective: float
    gap: float
    notes: tuple[str, ...] = ()
    given: bool = False

    @property
    def how(self) -> str:
        """How it was found, in words."""
        return "given" if self.given else closeness(self.gap, self.objective)


def best(
    data: Any, loss: Loss, geometry: Geometry, kappa: float, a: ArrayLike | None = None,
    start: Floats | None = None, tol: float = 0.01, max_passes: int = 300, around: Floats | None = None,
) -> LossComparator:  # fmt: skip
    """Return the u that minimises Sigma a_t phi(u . x_t, y_t) + kappa D(u, w_1), up to a relative gap.

    Parameters
    ----------
    data : Data or SpreadRows
        The rows.
    loss : a loss of `kernels`
        phi.
    geometry : a geometry of `kernels`
        It determines the set of u and D; a geometry that is unknown here is treated as Euclidean.
    kappa : float
        The factor of the divergence, above 0. A value of 0 is allowed for a quadratic loss in the Euclidean geometry
        with up to 2000 coordinates, and gives least squares of minimum norm.
    a : array_like of shape (m,), default None
        Factors, at least 0; None uses the weights c_t of the rows.
    start : ndarray, default None
        w_1; None uses the default of the geometry.
    tol : float, default 0.01
        The gap to reach, relative to the objective.
    max_passes : int, default 300
        The largest number of passes; the gap reached by then is reported.
    around : ndarray, default None
        A vector v. Divergences are then measured from the u that minimises v . u + D(u, w_1) instead of from w_1.

    Examples
    --------
    >>> from hindsight.kernels import Euclidean, Square
    >>> data = Data(np.array([[1.0], [1.0]]), [1.0, 3.0])
    >>> best(data, Square(2.0), Euclidean(1.0), kappa=4.0).u
    array([1.])
    """
    where = space(geometry, data.width, start)
    if isinstance(data, SpreadRows):
        return by_gradients(data, loss, kappa, a, where.start)
    factors = _factors(data, a)
    if around is not None:
        where = where.around(around)
    begun = data.passes
    if loss.quadratic and where.quadratic and data.width <= GRAM:
        if not kappa >= 0.0:
            raise ValueError(f"kappa, the divergence's factor, must be at least 0, got {kappa}")
        near = penalised(*in_pieces(data, factors), loss, np.full(data.width, float(kappa)), where.start, tol)
        notes = spectrum(near.gram, near.step.inverse)
        return LossComparator(near.point.u, where.divergence(near.point.u), near.point.value, near.gap, notes)
    found = solve(data, loss, where, factors, kappa, tol, max_passes)
    stopped = f"stopped at {data.passes - begun} passes, gap {found.gap:.3g} of {found.objective:.3g}"
    return LossComparator(found.u, found.divergence, found.objective, found.gap, () if found.done else (stopped,))


def by_gradients(data: Any, loss: Any, kappa: float, a: Any, start: Floats) -> LossComparator:
    """Return the u that minimises Sigma a_t phi(u . x_t, y_t) + kappa/2 |u - w_1|^2 for `SpreadRows`."""

    def at(u: Floats) -> tuple[float, Floats]:
        z = data.margins(u)
        return float(a @ each_loss(loss, z, data.y)), data.combine(a * each_slope(loss, z, data.y))

    u, value, gap = descend(at, start, kappa)
    return LossComparator(u, 0.5 * float((u - start) @ (u - start)), value, gap)


def descend(at: Callable[[Floats], tuple[float, Floats]], start: Floats, kappa: float) -> tuple[Floats, float, float]:
    """Return the u that minimises G(u) + kappa/2 |u - w_1|^2, its value, and an upper bound on its gap.

    L-BFGS starts at w_1; `at` gives G and its gradient. The objective is kappa-strongly convex, so it is at most
    |gradient|^2 / (2 kappa) above its minimum.
    """
    from scipy.optimize import minimize

    def objective(u: Floats) -> tuple[float, Floats]:
        (value, slope), off = at(np.ascontiguousarray(u)), u - start
        return value + 0.5 * kappa * float(off @ off), slope + kappa * off

    u = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "gtol": 1e-10}).x
    value, slope = objective(u)
    return u, value, float(slope @ slope) / (2.0 * kappa)


def fixed(
    data: Data, loss: Loss, geometry: Geometry, u: ArrayLike, kappa: float, a: ArrayLike | None = None,
    start: Floats | None = None,
) -> LossComparator:  # fmt: skip
    """Return a given u as a comparator, checked to be inside the geometry's set and evaluated in one pass."""
    factors, where, point = _factors(data, a), space(geometry, data.width, start), data.check(u)
    where.check(point)
    divergence = where.divergence(point)
    objective = float((factors * each_loss(loss, data.margins(point), data.y)).sum()) + kappa * divergence
    return LossComparator(point, divergence, objective, np.inf, given=True)


def given(u: Floats) -> LossComparator:
    """Return a comparator for a u about which nothing else is known."""
    return LossComparator(u, np.nan, np.nan, np.inf, given=True)


class PenalisedPoint(NamedTuple):
    """A minimiser of F with a metric, its gap, the last step of Newton's method and, for a square loss, the Hessian."""

    point: Point
    gap: float
    step: ScaledStep
    gram: Floats | None


def penalised(
    data: Any, factors: Any, loss: Any, metric: Floats, start: Floats, tol: float, first: Floats | None = None
) -> PenalisedPoint:
    """The u that minimises F with a metric, by Newton's method from `first`, or from the solution for a square loss.

    Parameters
    ----------
    data, factors, loss : Data or SpreadRows, a vector of these, and a loss with a second derivative
        The rows, a and phi.
    metric, start : ndarray
        m, at least 0, and w.
    tol : float
        Relative gap to reach.
    first : ndarray, default None
        The initial point; None is w.
    """
    distance, n = bool(metric.any()), data.width
    shrink = inverse(np.sqrt(metric)) if distance else np.ones(n)  # a distance is the identity on such columns
    u, tries, gram, doubt = start if first is None else first, TRIES, None, 1.0
    if loss.quadratic:
        products, cross, doubt = _moments(data, factors)
        gram = loss.scale * products
    step = ScaledStep(shrink, float(distance), gram, n * EPS, EPS)
    if gram is not None:
        u, tries = start - step.solve(loss.scale * _half_gradient(data, factors, start, cross)), REFINED
    objective = Objective(data, Smooth(loss, data.y), factors, metric, start)
    enough = max(tol if doubt == 1.0 else min(tol, ENOUGH), 8.0 * EPS)
    for point, _ in newton(objective.at, u, step, tries, halve=gram is None):
        gap = gap_above(shrink * point.gradient, None if gram is None else step.inverse, distance, doubt)
        gap += 4.0 * EPS * abs(point.value)
        if gap <= enough * abs(point.value):
            break
    return PenalisedPoint(point, gap, step, gram)


def _moments(data: Data, factors: Floats) -> tuple[Floats, Floats, float]:
    """Sigma a x x', Sigma a y x, and a factor by which the first may exceed the exact sum.

    With many rows the sums use the weights of the rows, scaled, if the factors are nearly a multiple of these; the best
    fixed predictor then shares the same sums. A step of Newton's method still reduces an error to at most a tenth.
    """
    if data.rounds * data.width >= MANY:
        on = data.c > 0.0
        ratio, mean = factors[on] / data.c[on], float(factors.sum()) / float(data.c.sum())
        if 0.0 < ratio.max(initial=0.0) <= ALIKE * ratio.min(initial=np.inf):
            products, cross = data.moments(data.c, data.c * data.y)
            return mean * products, mean * cross, mean / float(ratio.min())
    return *data.moments(factors, factors * data.y), 1.0


_begun: WeakKeyDictionary[Data, tuple[Floats, Floats, Floats]] = WeakKeyDictionary()  # factors, start and gradient


def _half_gradient(data: Data, factors: Floats, start: Floats, cross: Floats) -> Floats:
    """Sigma a (w . x - y) x, from residuals, so that it is exactly 0 if w fits all rows.

    The last result is kept, since the members of a panel have the same start.
    """
    if not start.any():
        return -cross
    known = _begun.get(data)
    if known is None or known[0] is not factors or not np.array_equal(known[1], start):
        known = _begun[data] = factors, start.copy(), data.residual_gradient(start, factors)[1]
    return known[2]


def gap_above(g: Floats, quadratic: Inverse | None, distance: bool, doubt: float = 1.0) -> float:
    """An upper bound on F(u) - min F, from the gradient g on columns divided by sqrt(m).

    If F includes the distance, it is 1-strongly convex in these coordinates, and the gap is at most 1/2 |g|^2. For a
    quadratic loss the gap is 1/2 g . H^-1 g; a margin is added for the rounding of H, and H must be well conditioned.
    If the second derivatives are only known to be at least H/doubt, the gap is multiplied by `doubt`.
    """
    half = 0.5 * float(g @ g) if distance or not g.any() else np.inf
    if quadratic is None or quadratic.condition < CONDITION:
        return half
    return min(half, 0.505 * doubt * max(0.0, float(g @ quadratic.solve(g))))


def spectrum(gram: Floats, hessian: Inverse) -> tuple[str, ...]:
    """The rank of the rows and the condition number of the second derivatives, in words."""
    n = gram.shape[0]
    if not hessian.trusted:
        values = hessian.values
        ratio = float(values[-1] / values[0]) if values.size else 1.0
        return (f"rank {values.size} of {n}: the minimum-norm solution", f"condition {ratio:.3g} on its range")
    condition = f"condition about {1.0 / hessian.condition:.3g} with the penalty"
    if n > SPECTRUM:
        return (condition,)
    values = np.linalg.eigvalsh(gram)
    return (f"rank {int((values > n * EPS * max(float(values[-1]), 0.0)).sum())} of {n}", condition)


_found: WeakKeyDictionary[Data, tuple[Any, Floats, Floats]] = WeakKeyDictionary()  # loss, factors and u, the last


def best_in_metric(
    data: Data, loss: Any, metric: Floats, factors: Floats, start: Floats, tol: float, near: Floats | None = None
) -> LossComparator:
    """Return the u that minimises F with a metric, up to a relative gap; its divergence is 1/2 Sigma m (u - w)^2.

    A coordinate whose m is 0 occurs in no row, and there u = w. For a smooth loss the search starts at the u of the
    last search if that had the same rows, loss and factors, since the members of a panel differ only in their metrics.
    Otherwise it starts at w, or at `near` if there are many rows.
    """
    if hasattr(loss, "curvature") and data.width <= SECOND:
        known = _found.get(data)
        same = known is not None and known[0] == loss and np.array_equal(known[1], factors)
        first = near if data.rounds * data.width >= MANY else None
        if known is not None and same:
            first = known[2]
        found = penalised(*in_pieces(data, factors), loss, metric, start, min(tol, ENOUGH), first)
        _found[data] = loss, factors, found.point.u
        return LossComparator(found.point.u, found.point.divergence, found.point.value, found.gap)
    return _by_scaled_rows(data, loss, metric, factors, start, tol)


def _by_scaled_rows(
    data: Data, loss: Any, metric: Floats, factors: Floats, start: Floats, tol: float
) -> LossComparator:
    """The same, as the comparator of the Euclidean geometry for columns divided by sqrt(m)."""
    shrink = inverse(np.sqrt(metric))
    sizes = np.where(shrink > 0.0, np.sqrt(metric), np.inf)
    moves = loss.targets == "real"  # then the comparator is sought as a difference from the start
    rows = divided(data, sizes, data.y - data.margins(start) if moves else data.y)
    found = best(rows, loss, Euclidean(1.0), 1.0, factors, None, tol)
    u = start.copy()
    u[: found.u.size] += found.u * shrink[: found.u.size]  # without an intercept where the scaled rows have none
    given = fixed(data, loss, Euclidean(1.0), u, 0.0, factors)
    half = 0.5 * float(metric @ (u - start) ** 2)
    return LossComparator(u, half, given.objective + half, found.gap, found.notes)


def _factors(data: Data, a: ArrayLike | None) -> Floats:
    if a is None:
        return data.c
    out = np.array(a, dtype=np.float64)
    if out.shape != (data.rounds,):
        raise ValueError(f"a must have one number per row: {data.rounds} rows, got shape {out.shape}")
    bad = ~(np.isfinite(out) & (out >= 0.0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"a must be finite and at least 0, got {out[row]} in row {row}")
    return out
