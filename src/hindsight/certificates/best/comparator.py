"""The comparator of a loss bound: the u that makes it smallest in hindsight.

Each of these bounds is, up to terms that do not depend on u,

    F(u) = Sigma_t a_t phi(u . x_t, y_t) + kappa D(u, w_1)

| bound | phi | a_t | kappa |
|---|---|---|---|
| Widrow-Hoff, exponentiated gradient | (z - y)^2 | c_t / (1 - eta c_t V_t), V_t of the round | 2 / eta |
| implicit Widrow-Hoff | (z - y)^2 | c_t | 2 / eta |
| descent on a convex loss | the loss | c_t | 1 / eta |

At changing rates eta is the last one, and w_1 is moved (`around`) to where the distances along the run pull it.
Any u gives a true bound, so a comparator found approximately loosens a certificate and never falsifies it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...kernels.floats import EPS, Floats
from ...online.margins import each_loss
from ...rows.data import Data
from .ascent import Loss, solve
from .ridge import ridge
from .spaces import Geometry, space

GRAM = 2000  # widths up to which ridge regression forms the Gram matrix


@dataclass(frozen=True)
class LossComparator:
    """A comparator in hindsight.

    Attributes
    ----------
    u : ndarray
        Its weights, the intercept's last; inside its geometry's set.
    loss : float
        Sigma_t c_t phi(u . x_t, y_t): its own loss, with the rows' weights and no other factor.
    divergence : float
        D(u, w_1).
    objective : float
        F(u).
    gap : float
        At least F(u) - min F; infinite where nothing is known.
    passes : int
        How often the rows were read.
    notes : tuple of str
        Rank and condition number, or that the limit on passes ended the search.
    """

    u: Floats
    loss: float
    divergence: float
    objective: float
    gap: float
    passes: int
    notes: tuple[str, ...] = ()

    @property
    def norm(self) -> float:
        """|u|_2."""
        return float(np.linalg.norm(self.u))

    @property
    def lower(self) -> float:
        """A lower bound on the objective of every u."""
        return self.objective - self.gap


def best(
    data: Data, loss: Loss, geometry: Geometry, kappa: float, a: ArrayLike | None = None,
    start: Floats | None = None, tol: float = 0.01, max_passes: int = 300, around: Floats | None = None,
) -> LossComparator:  # fmt: skip
    """Return the u that minimises Sigma a_t phi(u . x_t, y_t) + kappa D(u, w_1), up to a relative gap.

    Parameters
    ----------
    data : Data
        The rows.
    loss : a loss of `kernels`
        phi.
    geometry : a geometry of `kernels`
        It determines the set of u and D; one that is unknown here is taken as Euclidean.
    kappa : float
        The divergence's factor, above 0. A value of 0 is allowed for a quadratic loss in the Euclidean geometry, up to
        2000 coordinates: least squares of minimum norm.
    a : array_like of shape (m,), default None
        Factors, at least 0; None is the rows' weights c_t.
    start : ndarray, default None
        w_1; None is the geometry's default.
    tol : float, default 0.01
        The gap to reach, relative to the objective.
    max_passes : int, default 300
        Limit on the passes; the gap reached by then is reported.
    around : ndarray, default None
        A v; D is then to the point that v . u + D(u, w_1) is smallest at, and so are the divergences reported.

    Examples
    --------
    >>> from hindsight.kernels import Euclidean, Square
    >>> data = Data(np.array([[1.0], [1.0]]), [1.0, 3.0])
    >>> best(data, Square(2.0), Euclidean(1.0), kappa=4.0).u
    array([1.])
    """
    factors = _factors(data, a)
    where = space(geometry, data.width, start)
    if around is not None:
        where = where.around(around)
    begun = data.passes
    if loss.quadratic and where.quadratic and data.width <= GRAM:
        if not kappa >= 0.0:
            raise ValueError(f"kappa, the divergence's factor, must be at least 0, got {kappa}")
        fit = ridge(data, factors, loss.scale, kappa, where.start, tol)
        own = float(data.c @ each_loss(loss, fit.z, data.y))
        notes = fit.notes
        return LossComparator(fit.u, own, where.divergence(fit.u), fit.objective, fit.gap, data.passes - begun, notes)
    found = solve(data, loss, where, factors, kappa, tol, max_passes)
    own = float(data.c @ each_loss(loss, found.z, data.y))
    passes = data.passes - begun
    notes = () if found.done else (f"stopped at {passes} passes, gap {found.gap:.3g} of {found.objective:.3g}",)
    return LossComparator(found.u, own, found.divergence, found.objective, found.gap, passes, notes)


def fixed(
    data: Data, loss: Loss, geometry: Geometry, u: ArrayLike, kappa: float, a: ArrayLike | None = None,
    start: Floats | None = None, lower: float = -np.inf,
) -> LossComparator:  # fmt: skip
    """Return a given u as a rival, checked to be inside the geometry's set and evaluated in one pass.

    `lower` is a known lower bound on the objective (another comparator's `lower`); without one the gap is infinite.
    """
    factors = _factors(data, a)
    where = space(geometry, data.width, start)
    point = data.check(u)
    where.check(point)
    begun = data.passes
    each = each_loss(loss, data.margins(point), data.y)
    divergence = where.divergence(point)
    weighted = factors * each
    objective = float(weighted.sum()) + kappa * divergence
    gap = max(objective - lower, 0.0) + 4.0 * EPS * float(np.abs(weighted).sum())
    return LossComparator(point, float(data.c @ each), divergence, objective, gap, data.passes - begun, ("given",))


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
