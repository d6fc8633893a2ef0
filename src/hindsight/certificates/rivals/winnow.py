"""The comparators of Winnow's mistake bounds, plain and balanced.

For u in the set (radius r: the simplex, or the ball |u|_1 <= r with doubled coordinates), margin delta, and weights,

    M <= (RE(u || w_1) + eta H_delta(u)) / (eta delta - l),    l = ln cosh(eta c_max r X_inf) / c_max,

H_delta = Sigma c_t max(0, delta - y_t u . x_t) over rows that contain the mistakes. As for the perceptron, over the
mistakes alone the smallest value is M itself (delta to infinity at u = w_1), so the comparator is sought over all rows.
"""

import numpy as np

from ...kernels.floats import Floats
from ...kernels.losses import Hinge
from ...rows.data import Data
from ..theorems import ln_cosh
from . import clock
from .ascent import SOUGHT, solve
from .mistakes import MistakeRival, check_labels
from .spaces import Geometry, Space, space

TRIVIAL = "trivial: the bound is one mistake per round"


def winnow(
    data: Data, geometry: Geometry, eta: float, start: Floats | None = None, top: float | None = None,
    heaviest: float | None = None, tol: float = 0.01, max_passes: int = 2000,
) -> MistakeRival:  # fmt: skip
    """Return the (u, delta) that make the bound for any data smallest, with H over the rows of `data`.

    For a fixed delta the denominator is a constant and u solves the family's problem with the hinge of margin delta.
    The least value R(delta) is quasiconvex; its slope has the sign of B - R, B = Sigma c_t beta_t the dual's mass.
    For any beta in [0, 1] with v = Sigma c_t beta_t y_t x_t and L(b) = ln Sigma_i p_i e^(b eta r v_i),

        L(b) <= b B l   implies   every (u, delta) has a value of at least b B,

    so the largest such b <= 1 gives a lower bound over all u and delta at once.

    Parameters
    ----------
    data : Data
        All rows played, with labels -1 and 1.
    geometry : Simplex or Balanced
        It determines the set of u.
    eta : float
        The rate, above 0.
    start : ndarray, default None
        w_1; None is the geometry's default.
    top, heaviest : float, default None
        X_inf and c_max over the rounds played; None takes them from `data`.
    tol, max_passes : float and int
        As for `best`.
    """
    check_labels(data)
    if not eta > 0.0:
        raise ValueError(f"eta must be above 0, got {eta}")
    begun = data.passes
    where = space(geometry, data.width, start)
    heaviest = float(data.c.max()) if heaviest is None else heaviest
    width = geometry.radius * (float(data.row_norms_inf().max()) if top is None else top)
    total = float(data.c.sum())
    ell = ln_cosh(eta * heaviest * width) / heaviest if heaviest > 0.0 else 0.0
    floor = ell / eta
    found = MistakeRival(
        where.start, np.inf, np.inf, 0.0, total, 0.0, 0, (TRIVIAL, "no u and δ were found that promise less")
    )
    if width == 0.0 or total == 0.0:
        return MistakeRival(found.u, np.inf, np.inf, 0.0, total, total, data.passes - begun, found.notes)
    lower, alpha, a, inner = 0.0, None, eta * data.c, 0.2 * tol
    lo, hi = floor, width
    sides: dict[bool, tuple[Floats, float]] = {}  # v and mass at the last delta below the best one, and above it
    while True:
        delta = 0.5 * (lo + hi)
        left = max_passes - (data.passes - begun)
        part = solve(data, Hinge(delta), where, a, 1.0, inner, left, alpha)
        alpha = part.alpha
        ratio = part.objective / (eta * delta - ell)
        if ratio < found.bound:
            hinge = float(data.c @ np.maximum(0.0, delta - data.y * part.z))
            bound = (part.divergence + eta * hinge) / (eta * delta - ell)
            found = MistakeRival(part.u, delta, hinge, part.divergence, bound, 0.0, 0)
        mass = float(np.abs(alpha).sum()) / eta
        above = mass > ratio
        sides[above] = data.combine(alpha), mass
        lower = max(lower, _lower(where, *sides[above], ell), _between(where, sides, found.bound, ell))
        lo, hi = (lo, delta) if above else (delta, hi)
        passes = data.passes - begun
        done = found.bound - lower <= tol * found.bound
        clock.tell(SOUGHT, (found.bound - lower) / found.bound if found.bound > 0.0 else 0.0)
        if done or passes >= max_passes or clock.late():
            notes = (
                found.notes if done else (*found.notes, f"stopped at {passes} passes, gap {found.bound - lower:.3g}")
            )
            bound, lower = found.bound, min(lower, found.bound)
            return MistakeRival(found.u, found.margin, found.hinge, found.divergence, bound, lower, passes, notes)
        if hi - lo <= 1e-9 * (hi - floor):  # an inexact mass misled the bisection
            lo, hi, inner = floor, width, 0.1 * inner


def _between(where: Space, sides: dict[bool, tuple[Floats, float]], bound: float, ell: float) -> float:
    """Return the lower bound of a mixture of both sides: at the best delta the mass jumps across the bound."""
    if len(sides) < 2:
        return 0.0
    (v0, m0), (v1, m1) = sides[False], sides[True]
    p = min(1.0, max(0.0, (bound - m0) / (m1 - m0))) if m1 > m0 else 0.0
    return _lower(where, (1.0 - p) * v0 + p * v1, (1.0 - p) * m0 + p * m1, ell)


def _lower(where: Space, v: Floats, mass: float, ell: float) -> float:
    """Return the largest b B, 0 <= b <= 1, with L(b) <= b B l: an interval of b, as L is convex with L(0) = 0."""

    def holds(b: float) -> bool:
        return -where.conjugate(b * v, 1.0) <= b * mass * ell

    if holds(1.0):
        return mass
    lo, hi = 0.0, 1.0
    for _ in range(60):
        mid = 0.5 * (lo + hi)
        lo, hi = (mid, hi) if holds(mid) else (lo, mid)
    return lo * mass
