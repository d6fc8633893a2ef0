"""The rival of a loss bound: the u that makes it smallest in hindsight (THEORY.md 1-4, 1', 4', 11).

Each of those bounds is, up to what does not depend on u,

    F(u) = Sigma_t a_t phi(u . x_t, y_t) + kappa D(u, w_1)

| bound | phi | a_t | kappa |
|---|---|---|---|
| 1 Widrow-Hoff | (z - y)^2 | c_t / (1 - eta X^2) | 2 / eta |
| 2 implicit Widrow-Hoff | (z - y)^2 | c_t | 2 / eta |
| 3 EG, EG+- | (z - y)^2 | c_t / (1 - eta X^2) | 2 / eta |
| 4 any convex loss | the loss | c_t | 1 / eta |
| 1' | (z - y)^2 | c_t eta_t / (1 - eta_t c_t |x_t|^2) | 2 |
| 4' | the loss | c_t eta_t | 1 |

Any u gives a true bound, so a rival found approximately loosens a certificate and never falsifies it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...kernels.ascent import EPS
from ...kernels.geometries import Euclidean
from ...kernels.losses import Square
from ...rows.matrices import Data, Floats
from .ascent import Rule, each_loss, solve
from .ridge import Moments, ridge, ridge_from_moments
from .spaces import Geometry, space

GRAM = 2000  # widths up to which ridge goes through the Gram matrix


@dataclass(frozen=True)
class Rival:
    """A comparator in hindsight.

    Attributes
    ----------
    u : ndarray
        In real coordinates, the intercept last; inside its geometry's set.
    loss : float
        Sigma_t c_t phi(u . x_t, y_t): its own loss, with the rows' weights and no other factor. From moments alone,
        which hold no weights apart, Sigma_t a_t phi.
    divergence : float
        D(u, w_1).
    objective : float
        F(u).
    gap : float
        At least F(u) - min F; infinite where nothing is known.
    passes : int
        How often the rows were read.
    notes : tuple of str
        Rank and condition, the rounding of moments, or that the cap on passes ended the search.
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
        """No u has an objective below this."""
        return self.objective - self.gap


def best(
    data: Data, rule: Rule, geometry: Geometry, kappa: float, a: ArrayLike | None = None,
    start: Floats | None = None, tol: float = 0.01, max_passes: int = 300,
) -> Rival:  # fmt: skip
    """The u that minimises Sigma a_t phi(u . x_t, y_t) + kappa D(u, w_1), to a relative gap.

    Parameters
    ----------
    data : Data
    rule : a rule of `kernels`
        Its `loss` is phi.
    geometry : Euclidean, Simplex or Balanced
        It fixes the set and D; the last two carry the radius.
    kappa : float > 0
        0 is allowed for the square rule in the Euclidean geometry, up to 2000 coordinates: least squares of least norm.
    a : array of one number >= 0 a row, or None for the weights c_t
    start : w_1, or None for the geometry's default
    tol : float > 0
        The gap asked for, relative to the objective.
    max_passes : int
        Where to stop short of it; the gap reached is reported.

    Examples
    --------
    >>> data = Data(np.array([[1.0], [1.0]]), [1.0, 3.0])
    >>> best(data, Square(2.0), Euclidean(1.0), kappa=4.0).u
    array([1.])
    """
    factors = _factors(data, a)
    where = space(geometry, data.width, start)
    begun = data.passes
    if isinstance(rule, Square) and isinstance(geometry, Euclidean) and data.width <= GRAM:
        if not kappa >= 0.0:
            raise ValueError(f"kappa, the divergence's factor, must be >= 0, got {kappa}")
        fit = ridge(data, factors, rule.scale, kappa, where.start, tol)
        loss = float(data.c @ each_loss(rule, fit.z, data.y))
        notes = fit.notes
        return Rival(fit.u, loss, where.divergence(fit.u), fit.objective, fit.gap, data.passes - begun, notes)
    found = solve(data, rule, geometry, where, factors, kappa, tol, max_passes)
    loss = float(data.c @ each_loss(rule, found.z, data.y))
    passes = data.passes - begun
    notes = () if found.done else (f"stopped at {passes} passes, gap {found.gap:.3g} of {found.objective:.3g}",)
    return Rival(found.u, loss, found.divergence, found.objective, found.gap, passes, notes)


def best_from_moments(moments: Moments, rule: Square, kappa: float, start: Floats | None = None) -> Rival:
    """The ridge rival from a Gram matrix accumulated while learning; its gap includes the cancellation error."""
    where = space(Euclidean(1.0), moments.cross.size, start)
    u, loss, objective, gap, notes = ridge_from_moments(moments, rule.scale, kappa, where.start)
    return Rival(u, 0.5 * rule.scale * loss, where.divergence(u), objective, gap, 0, notes)


def fixed(
    data: Data, rule: Rule, geometry: Geometry, u: ArrayLike, kappa: float, a: ArrayLike | None = None,
    start: Floats | None = None, lower: float = -np.inf,
) -> Rival:  # fmt: skip
    """A given u as a rival: checked to lie in the geometry's set, evaluated in one pass.

    `lower` is a known lower bound on the objective (another rival's `lower`); without one the gap is infinite.
    """
    factors = _factors(data, a)
    where = space(geometry, data.width, start)
    point = data.check(u)
    where.check(point)
    begun = data.passes
    each = each_loss(rule, data.margins(point), data.y)
    divergence = where.divergence(point)
    paid = factors * each
    objective = float(paid.sum()) + kappa * divergence
    gap = max(objective - lower, 0.0) + 4.0 * EPS * float(np.abs(paid).sum())
    return Rival(point, float(data.c @ each), divergence, objective, gap, data.passes - begun, ("given",))


def _factors(data: Data, a: ArrayLike | None) -> Floats:
    if a is None:
        return data.c
    out = np.array(a, dtype=np.float64)
    if out.shape != (data.rounds,):
        raise ValueError(f"a must hold one number a row: {data.rounds} rows, got shape {out.shape}")
    bad = ~(np.isfinite(out) & (out >= 0.0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"a must be finite and >= 0, got {out[row]} in row {row}")
    return out
