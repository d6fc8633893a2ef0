"""The rivals of Winnow's mistake bounds, plain and balanced (THEORY.md 6; N3).

For u in the set (radius r: the simplex, or the ball |u|_1 <= r with doubled coordinates), margin delta, and weights,

    M <= (RE(u || w_1) + eta H_delta(u)) / (eta delta - l),    l = ln cosh(eta c_max r X_inf) / c_max,

H_delta = Sigma c_t max(0, delta - y_t u . x_t) over rows that contain the mistakes. As for the perceptron, over the
mistakes alone the smallest value is M itself (delta to infinity at u = w_1), so the rival is sought over all rows.
"""

from dataclasses import dataclass

import numpy as np

from ...kernels.geometries import Balanced, Simplex
from ...kernels.losses import Hinge
from ...rows.matrices import Data, Floats
from .ascent import solve
from .mistakes import MistakeRival, check_labels
from .spaces import Space, space

LARGE = 4_000_000  # numbers in the linear program's matrix above which a first-order method takes over


def ln_cosh(x: float) -> float:
    """ln cosh x = ln(1 + 2 sinh^2(x/2)), without cancellation for small x nor overflow for large."""
    x = abs(x)
    return (
        float(np.log1p(2.0 * np.sinh(0.5 * x) ** 2)) if x < 1.0 else x + float(np.log1p(np.exp(-2.0 * x)) - np.log(2.0))
    )


def winnow(
    data: Data, geometry: Simplex | Balanced, eta: float, start: Floats | None = None, top: float | None = None,
    heaviest: float | None = None, tol: float = 0.01, max_passes: int = 2000,
) -> MistakeRival:  # fmt: skip
    """The (u, delta) that make the noisy bound smallest, H over the rows of `data`.

    For a fixed delta the denominator is a constant and u solves the family's problem with the hinge of margin delta.
    The least value R(delta) is quasiconvex; its slope has the sign of B - R, B = Sigma c_t beta_t the dual's mass.
    For any beta in [0, 1] with v = Sigma c_t beta_t y_t x_t and L(b) = ln Sigma_i p_i e^(b eta r v_i),

        L(b) <= b B l   implies   every (u, delta) has a value of at least b B,

    so the largest such b <= 1 gives a lower bound over all u and delta at once.

    Parameters
    ----------
    data : Data
        All rows played. Labels -1 and 1.
    geometry : Simplex or Balanced
    eta : float > 0
    start : w_1 or None
    top, heaviest : float or None
        X_inf and c_max over the rounds played; None takes them over `data`.
    tol, max_passes : as for `best`
    """
    check_labels(data)
    if not eta > 0.0:
        raise ValueError(f"eta must be > 0, got {eta}")
    begun = data.passes
    where = space(geometry, data.width, start)
    heaviest = float(data.c.max()) if heaviest is None else heaviest
    width = geometry.radius * (float(data.row_tops().max()) if top is None else top)
    total = float(data.c.sum())
    ell = ln_cosh(eta * heaviest * width) / heaviest if heaviest > 0.0 else 0.0
    floor = ell / eta
    found = MistakeRival(
        where.start, np.inf, np.inf, 0.0, total, 0.0, 0, ("no better than the start with delta to infinity",)
    )
    if width == 0.0 or total == 0.0:
        return MistakeRival(found.u, np.inf, np.inf, 0.0, total, total, data.passes - begun, found.notes)
    lower, alpha, a, inner = 0.0, None, eta * data.c, 0.2 * tol
    lo, hi = floor, width
    sides: dict[bool, tuple[Floats, float]] = {}  # v and mass at the last delta below the best one, and above it
    while True:
        delta = 0.5 * (lo + hi)
        left = max_passes - (data.passes - begun)
        part = solve(data, Hinge(delta), geometry, where, a, 1.0, inner, left, alpha)
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
        if done or passes >= max_passes:
            notes = (
                found.notes if done else (*found.notes, f"stopped at {passes} passes, gap {found.bound - lower:.3g}")
            )
            bound, lower = found.bound, min(lower, found.bound)
            return MistakeRival(found.u, found.margin, found.hinge, found.divergence, bound, lower, passes, notes)
        if hi - lo <= 1e-9 * (hi - floor):  # an inexact mass misled the bisection
            lo, hi, inner = floor, width, 0.1 * inner


def _between(where: Space, sides: dict[bool, tuple[Floats, float]], bound: float, ell: float) -> float:
    """At the best delta the mass jumps across the bound; the dual point that shows it mixes both sides."""
    if len(sides) < 2:
        return 0.0
    (v0, m0), (v1, m1) = sides[False], sides[True]
    share = min(1.0, max(0.0, (bound - m0) / (m1 - m0))) if m1 > m0 else 0.0
    return _lower(where, (1.0 - share) * v0 + share * v1, (1.0 - share) * m0 + share * m1, ell)


def _lower(where: Space, v: Floats, mass: float, ell: float) -> float:
    """The largest b B, 0 <= b <= 1, with L(b) <= b B l; L is convex with L(0) = 0, so the b that do are an interval."""

    def holds(b: float) -> bool:
        return -where.conjugate(b * v, 1.0) <= b * mass * ell

    if holds(1.0):
        return mass
    lo, hi = 0.0, 1.0
    for _ in range(60):
        mid = 0.5 * (lo + hi)
        lo, hi = (mid, hi) if holds(mid) else (lo, mid)
    return lo * mass


@dataclass(frozen=True)
class MaxMargin:
    """The largest margin delta = max_u min_t y_t u . x_t, a zero-sum game.

    Attributes
    ----------
    u : ndarray, inside the set
    margin : float
        u's own least margin, computed from the rows; not above 0 means that u separates nothing.
    upper : float
        No u has a larger one. Not above 0: the rows are not separable in this geometry.
    """

    u: Floats
    margin: float
    upper: float
    passes: int
    notes: tuple[str, ...] = ()


def max_margin(data: Data, geometry: Simplex | Balanced, tol: float = 0.01, max_passes: int = 2000) -> MaxMargin:
    """The best margin over the set: a linear program (HiGHS) over the rows that matter, or mirror-prox if large.

    Both give an upper bound from a mixture alpha of the rows: delta <= max_u u . Sigma alpha_t y_t x_t.
    """
    check_labels(data)
    begun = data.passes
    data = data if data.c.all() else data.only(data.c > 0.0)
    few = min(data.rounds, 2 * data.width + 200)
    if few * data.width > LARGE:
        return _prox(data, geometry, tol, max_passes, begun)
    return _program(data, geometry, tol, max_passes, begun, few)


def _top(v: Floats, geometry: Simplex | Balanced) -> float:
    """Max u . v over the set."""
    return geometry.radius * float(np.abs(v).max() if isinstance(geometry, Balanced) else v.max())


def _program(
    data: Data, geometry: Simplex | Balanced, tol: float, max_passes: int, begun: int, few: int
) -> MaxMargin:  # fmt: skip
    from scipy.optimize import linprog

    n, signed = data.width, isinstance(geometry, Balanced)
    scale = geometry.radius * float(data.row_tops().max())
    work = np.zeros(data.rounds, dtype=bool)
    work[np.linspace(0, data.rounds - 1, few).astype(int)] = True
    best, margin, upper = np.full(n, 0.0 if signed else geometry.radius / n), -np.inf, np.inf
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    while True:
        part = data.only(work)
        rows = part.y[:, None] * part.matrix()
        play = np.hstack((rows, -rows)) if signed else rows
        k = play.shape[1]
        result = linprog(
            np.append(np.zeros(k), -1.0),
            A_ub=np.hstack((-geometry.radius * play, np.ones((part.rounds, 1)))), b_ub=np.zeros(part.rounds),
            A_eq=np.append(np.ones(k), 0.0)[None, :], b_eq=[1.0],
            bounds=[(0.0, None)] * k + [(None, None)], method="highs", options=options,
        )  # fmt: skip
        if result.x is None:
            raise RuntimeError(f"the linear program of the margin failed: {result.message}")
        q = np.maximum(result.x[:k], 0.0)
        q /= q.sum()
        u = geometry.radius * (q[:n] - q[n:] if signed else q)
        alpha = np.maximum(-result.ineqlin.marginals, 0.0)
        upper = min(upper, _top((alpha / alpha.sum()) @ rows, geometry))
        m = data.y * data.margins(u)
        if m.min() > margin:
            best, margin = u, float(m.min())
        passes = data.passes - begun
        worst = np.argsort(np.where(work, np.inf, m))[:few]
        worst = worst[~work[worst] & (m[worst] < upper)]
        if upper - margin <= tol * abs(upper) or upper - margin <= 1e-9 * scale or not worst.size:
            return MaxMargin(best, margin, upper, passes)
        if passes + 3 > max_passes:
            return MaxMargin(best, margin, upper, passes, (f"stopped at {passes} passes",))
        work[worst] = True


def _prox(data: Data, geometry: Simplex | Balanced, tol: float, max_passes: int, begun: int) -> MaxMargin:
    """Mirror-prox for max_u min_alpha Sigma alpha_t y_t u . x_t: entropic steps for both, gap O(1/passes)."""
    where = space(geometry, data.width)
    scale = geometry.radius * float(data.row_tops().max())
    theta, rows = np.zeros(data.width), np.zeros(data.rounds)  # duals: u = where.point(-theta), alpha = softmax(-rows)
    u_sum, alpha_sum = np.zeros(data.width), np.zeros(data.rounds)
    best, margin, upper, count, look = where.start, -np.inf, np.inf, 0, 1
    while True:
        u, alpha = where.point(-theta, 1.0)[0], _softmax(-rows)
        d_rows, d_theta = data.y * data.margins(u), data.combine(alpha * data.y)
        u_mid, alpha_mid = where.point(-theta - d_theta / scale, 1.0)[0], _softmax(-rows - d_rows / scale)
        theta += data.combine(alpha_mid * data.y) / scale
        rows += data.y * data.margins(u_mid) / scale
        u_sum, alpha_sum, count = u_sum + u_mid, alpha_sum + alpha_mid, count + 1
        passes = data.passes - begun
        last = passes + 6 > max_passes
        if count < look and not last:
            continue
        look = count + max(1, count // 4)
        least = float((data.y * data.margins(u_sum / count)).min())
        if least > margin:
            best, margin = u_sum / count, least
        upper = min(upper, _top(data.combine(alpha_sum / alpha_sum.sum() * data.y), geometry))
        if upper - margin <= tol * abs(upper) or upper - margin <= 1e-9 * scale:
            return MaxMargin(best, margin, upper, data.passes - begun)
        if last:
            note = f"stopped at {data.passes - begun} passes, margin between {margin:.4g} and {upper:.4g}"
            return MaxMargin(best, margin, upper, data.passes - begun, (note,))


def _softmax(x: Floats) -> Floats:
    e: Floats = np.exp(x - x.max())
    e /= e.sum()
    return e
