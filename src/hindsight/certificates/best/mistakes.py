"""The comparators of mistake bounds: the perceptron's, and Winnow's.

With w_1 = 0 the perceptron ends at w = Sigma over mistakes of c_t y_t x_t. On a mistake y_t w_t . x_t <= 0, hence
|w|^2 <= S = Sigma over mistakes of c_t^2 |x_t|^2; and u . w >= Sigma c_t (1 - h_t) = M - H with
h_t = max(0, 1 - y_t u . x_t), M and H weighted by c_t. So for every u

    M <= H(u) + |u| sqrt(S)                                                     (sharp)
    M <= ((a + sqrt(a^2 + 4 H(u))) / 2)^2,   a = R |u|,  R^2 = max c_t |x_t|^2     (plain; S <= R^2 M)

H may run over the mistakes or over any rows that contain them. Over the mistakes *alone* both forms are smallest at
u = 0, where they read M <= M, which says nothing. A useful u is therefore sought over all rows, where u = 0 costs T,
and its bound is then evaluated over the mistakes, which can only make it smaller.

For Winnow, plain and balanced, with u in the set (radius r: the simplex, or the ball |u|_1 <= r with doubled
coordinates), a margin delta, and weights,

    M <= (RE(u || w_1) + eta H_delta(u)) / (eta delta - l),    l = ln cosh(eta c_max r X_inf) / c_max,

H_delta = Sigma c_t max(0, delta - y_t u . x_t) over rows that contain the mistakes. As for the perceptron, over the
mistakes alone the smallest value is M itself (delta to infinity at u = w_1), so the comparator is sought over all rows.
"""

import math
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ...kernels.ascent import hinge_along
from ...kernels.euclidean import Euclidean
from ...kernels.floats import Floats
from ...kernels.losses import Hinge
from ...rows.data import Data
from ..theorems import ln_cosh
from . import clock
from .ascent import SOUGHT, Ascent, solve
from .spaces import Geometry, Space, space

TRIVIAL = "trivial: the bound is one mistake per round"


class MistakeComparator(NamedTuple):
    """A comparator for a mistake bound.

    Attributes
    ----------
    u : ndarray
        Its weights, the intercept's last.
    margin : float
        The margin of its hinge losses: 1 for the perceptron, delta for Winnow.
    bound : float
        The bound on the mistakes, with H over the rows it was computed from.
    lower : float
        A lower bound on that bound for every u and every margin.
    notes : tuple of str
        Why the search stopped, if the tolerance was not reached.
    """

    u: Floats
    margin: float
    bound: float
    lower: float
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """An upper bound on the distance of the bound from the smallest one."""
        return max(0.0, self.bound - self.lower)


def check_labels(data: Data) -> None:
    """Refuse labels other than -1 and 1, the only ones that mistake bounds apply to."""
    bad = np.abs(data.y) != 1.0
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"labels must be -1 or 1 for a mistake bound, got {data.y[row]} in row {row}")


def largest_norm(data: Data) -> float:
    """Return R = max sqrt(c_t) |x_t|_2 over the rows."""
    return float(np.sqrt((data.c * data.row_norms2()).max())) if data.rounds else 0.0


def plain_bound(hinge: float, a: float) -> float:
    """Return ((a + sqrt(a^2 + 4 H)) / 2)^2."""
    return float((0.5 * (a + np.sqrt(a * a + 4.0 * hinge))) ** 2)


def _best_length(m: Floats, c: Floats, R: float) -> tuple[float, float]:
    """Return the (bound, rho) of the smallest plain bound along a unit direction: quasiconvex, so by bisection."""
    found = math.inf, 0.0

    def rising(rho: float) -> bool:
        nonlocal found
        hinge, slope = hinge_along(m, c, rho)
        bound = plain_bound(hinge, R * rho)
        found = min(found, (bound, rho), key=itemgetter(0))
        return bool(slope + R * bound**0.5 >= 0.0)

    up, lo, hi = rising(0.0), 0.0, 1.0 / R
    while not up:
        up = rising(hi)
        lo, hi = (lo, hi) if up else (hi, 2.0 * hi)
    for _ in range(60):
        mid = 0.5 * (lo + hi)
        if hi - lo <= 1e-9 * hi:
            break
        lo, hi = (lo, mid) if rising(mid) else (mid, hi)
    return found


def perceptron(data: Data, R: float | None = None, tol: float = 0.01, max_passes: int = 300) -> MistakeComparator:
    """Return the u that makes the plain bound smallest, with H over the rows of `data`.

    s = sqrt(bound) solves s^2 = min_u H(u) + s R |u|. As k |u| = min over kappa of kappa/2 |u|^2 + k^2/(2 kappa),
    passes of dual coordinate ascent on H + kappa/2 |u|^2 alternate with steps towards kappa = s R / |u|. For any
    0 <= alpha_t <= c_t, with A = Sigma alpha_t and v = Sigma alpha_t y_t x_t,

        min_u H(u) + s R |u| >= A min(1, s R / |v|),   hence   min_u bound >= min(A, (A R / |v|)^2).

    Parameters
    ----------
    data : Data
        All rows played, with labels -1 and 1; over the mistakes alone u = 0 would be best.
    R : float, default None
        At least max sqrt(c_t) |x_t| over the mistakes; None takes it from `data`.
    tol, max_passes : float and int
        As for `best`.

    Examples
    --------
    >>> found = perceptron(Data(np.array([[2.0], [-2.0]]), [1.0, -1.0]))
    >>> found.u, found.bound
    (array([0.5]), 1.0)
    """
    check_labels(data)
    begun = data.passes
    R = largest_norm(data) if R is None else float(R)
    total = float(data.c.sum())
    found = MistakeComparator(np.zeros(data.width), 1.0, total, 0.0)
    if R == 0.0 or total == 0.0:
        return found._replace(lower=total, notes=("all rows are 0",))
    ascent = Ascent(data, Hinge(1.0), space(Euclidean(1.0), data.width), data.c, 4.0 * R * R)
    v, weight = data.combine(-data.y * data.c), total  # the dual point of u = 0, the best over mistakes alone
    lower, count, wait = 0.0, 0, 1
    size, power, seen = 0.0, 1.5, (np.nan, np.nan)
    while True:
        size = float(np.linalg.norm(v))
        lower = max(lower, min(weight, (weight * R / size) ** 2) if size > 0.0 else weight)
        if size > 0.0:
            d = -v / size
            bound, rho = _best_length(data.y * data.margins(d), data.c, R)
            if bound < found.bound:
                found = MistakeComparator(rho * d, 1.0, bound, 0.0)
        passes = data.passes - begun
        done = found.bound - lower <= max(tol, 1e-14) * found.bound
        clock.notify(SOUGHT, (found.bound - lower) / found.bound if found.bound > 0.0 else 0.0)
        if done or passes + wait + 2 > max_passes or clock.late():
            notes = () if done else (f"stopped at {passes} passes, gap {found.bound - lower:.3g} of {found.bound:.3g}",)
            return found._replace(lower=min(lower, found.bound), notes=notes)
        if count and size > 0.0:
            # kappa is right where |v| = kappa |u| is s R. |v| grows like kappa^p, 0 <= p <= 1: a secant in logarithms.
            here = np.log(ascent.kappa), np.log(size)
            rise = (here[1] - seen[1]) / (here[0] - seen[0]) if abs(here[0] - seen[0]) > 1e-3 else 1.0 / power
            power = 1.0 / min(1.0, max(0.2, rise)) if np.isfinite(rise) else power
            seen = here
            ascent.kappa *= (R * found.bound**0.5 / size) ** power
        ascent.run_passes(wait)
        v, weight = ascent.v, float(np.abs(ascent.alpha).sum())
        count += wait
        wait = max(1, count // 8)


def winnow(
    data: Data, geometry: Geometry, eta: float, start: Floats | None = None, top: float | None = None,
    heaviest: float | None = None, tol: float = 0.01, max_passes: int = 2000,
) -> MistakeComparator:  # fmt: skip
    """Return the (u, delta) that make the bound for any data smallest, with H over the rows of `data`.

    For a fixed delta the denominator is constant, and u minimises the hinge loss of margin delta plus the divergence.
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
    trivial = TRIVIAL, "no u and δ were found that promise less"
    found = MistakeComparator(where.start, np.inf, total, 0.0, trivial)
    if width == 0.0 or total == 0.0:
        return found._replace(lower=total)
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
            found = MistakeComparator(part.u, delta, bound, 0.0)
        mass = float(np.abs(alpha).sum()) / eta
        above = mass > ratio
        sides[above] = data.combine(alpha), mass
        lower = max(lower, _lower(where, *sides[above], ell), _between(where, sides, found.bound, ell))
        lo, hi = (lo, delta) if above else (delta, hi)
        passes = data.passes - begun
        done = found.bound - lower <= tol * found.bound
        clock.notify(SOUGHT, (found.bound - lower) / found.bound if found.bound > 0.0 else 0.0)
        if done or passes >= max_passes or clock.late():
            stopped = f"stopped at {passes} passes, gap {found.bound - lower:.3g}"
            notes = found.notes if done else (*found.notes, stopped)
            return found._replace(lower=min(lower, found.bound), notes=notes)
        if hi - lo <= 1e-9 * (hi - floor):  # an inexact mass misled the bisection
            lo, hi, inner = floor, width, 0.1 * inner


def _between(where: Space, sides: dict[bool, tuple[Floats, float]], bound: float, ell: float) -> float:
    """Return the lower bound from a mixture of both dual points; at the best delta the mass jumps across the bound."""
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
