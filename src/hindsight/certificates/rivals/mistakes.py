"""The comparators of the perceptron's mistake bounds.

With w_1 = 0 the perceptron ends at w = Sigma over mistakes of c_t y_t x_t. On a mistake y_t w_t . x_t <= 0, hence
|w|^2 <= S = Sigma over mistakes of c_t^2 |x_t|^2; and u . w >= Sigma c_t (1 - h_t) = M - H with
h_t = max(0, 1 - y_t u . x_t), M and H weighted by c_t. So for every u

    M <= H(u) + |u| sqrt(S)                                                     (sharp)
    M <= ((a + sqrt(a^2 + 4 H(u))) / 2)^2,   a = R |u|,  R^2 = max c_t |x_t|^2     (plain; S <= R^2 M)

H may run over the mistakes or over any rows that contain them. Over the mistakes *alone* both forms are smallest at
u = 0, where they read M <= M: hindsight proves nothing there. The one worth having is therefore sought over all rows,
where u = 0 costs T, and its bound is then evaluated over the mistakes, which can only make it smaller.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...batch.separability import UNDECIDED, Separation, separate
from ...kernels.ascent import hinge_along
from ...kernels.euclidean import Euclidean
from ...kernels.floats import EPS, Floats
from ...kernels.losses import Hinge
from ...rows.data import Data
from . import clock
from .ascent import SOUGHT, Ascent
from .spaces import space

NNLS = 500  # widths up to which the hard margin is exact, by non-negative least squares on few rows
PROOF = 32  # widths up to which a proof in integers takes a few hundredths of a second
FAINT = 1e-14  # 1/(1 + B^2) from which on B is beyond the range of floating point
TINY = float(np.finfo(np.float64).tiny)
HARD = 2.0**200  # a hinge loss of this weight is a constraint
_known: WeakKeyDictionary[Data, dict[tuple[float, int], "HardMargin"]] = WeakKeyDictionary()  # of rows seen before


@dataclass(frozen=True)
class MistakeRival:
    """A comparator for a mistake bound.

    Attributes
    ----------
    u : ndarray
        Its weights, the intercept's last.
    margin : float
        The margin of its hinge losses: 1 for the perceptron, delta for Winnow.
    hinge : float
        H(u) over the rows it was computed from.
    divergence : float
        1/2 |u|^2, or RE(u || w_1).
    bound : float
        The bound on the mistakes, with H over the rows it was computed from.
    lower : float
        A lower bound on that bound for every u and every margin.
    passes : int
        How often the rows were read.
    notes : tuple of str
        Why it stopped, if short of the tolerance.
    """

    u: Floats
    margin: float
    hinge: float
    divergence: float
    bound: float
    lower: float
    passes: int
    notes: tuple[str, ...] = ()

    @property
    def norm(self) -> float:
        """|u|_2."""
        return float(np.linalg.norm(self.u))

    @property
    def gap(self) -> float:
        """At least the bound's distance from the smallest one."""
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


def _best_length(m: Floats, c: Floats, R: float) -> tuple[float, float, float]:
    """Return the (rho, H, bound) of the smallest plain bound along a unit direction: quasiconvex, so by bisection."""

    def rising(rho: float) -> tuple[bool, float, float]:
        hinge, slope = hinge_along(m, c, rho)
        bound = plain_bound(hinge, R * rho)
        return slope + R * bound**0.5 >= 0.0, hinge, bound

    up, hinge, bound = rising(0.0)
    found = (0.0, hinge, bound)
    lo, hi = 0.0, 1.0 / R
    while not up:
        up, hinge, bound = rising(hi)
        found = min(found, (hi, hinge, bound), key=lambda f: f[2])
        lo, hi = (lo, hi) if up else (hi, 2.0 * hi)
    for _ in range(60):
        mid = 0.5 * (lo + hi)
        if hi - lo <= 1e-9 * hi:
            break
        up, hinge, bound = rising(mid)
        found = min(found, (mid, hinge, bound), key=lambda f: f[2])
        lo, hi = (lo, mid) if up else (mid, hi)
    return found


def perceptron(data: Data, R: float | None = None, tol: float = 0.01, max_passes: int = 300) -> MistakeRival:
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
    zero = MistakeRival(np.zeros(data.width), 1.0, total, 0.0, total, 0.0, 0)
    if R == 0.0 or total == 0.0:
        return MistakeRival(zero.u, 1.0, total, 0.0, total, total, 0, ("all rows are 0",))
    ascent = Ascent(data, Hinge(1.0), space(Euclidean(1.0), data.width), data.c, 4.0 * R * R)
    v, weight = data.combine(-data.y * data.c), total  # the dual point of u = 0, the best over mistakes alone
    found, lower, count, wait = zero, 0.0, 0, 1
    size, power, seen = 0.0, 1.5, (np.nan, np.nan)
    while True:
        size = float(np.linalg.norm(v))
        lower = max(lower, min(weight, (weight * R / size) ** 2) if size > 0.0 else weight)
        if size > 0.0:
            d = -v / size
            rho, hinge, bound = _best_length(data.y * data.margins(d), data.c, R)
            if bound < found.bound:
                found = MistakeRival(rho * d, 1.0, hinge, 0.5 * rho * rho, bound, 0.0, 0)
        passes = data.passes - begun
        done = found.bound - lower <= max(tol, 1e-14) * found.bound
        clock.tell(SOUGHT, (found.bound - lower) / found.bound if found.bound > 0.0 else 0.0)
        if done or passes + wait + 2 > max_passes or clock.late():
            notes = () if done else (f"stopped at {passes} passes, gap {found.bound - lower:.3g} of {found.bound:.3g}",)
            bound, lower = found.bound, min(lower, found.bound)
            return MistakeRival(found.u, 1.0, found.hinge, found.divergence, bound, lower, passes, notes)
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


@dataclass(frozen=True)
class HardMargin:
    """The smallest norm B of a u with y_t u . x_t >= 1 on all rows.

    Attributes
    ----------
    separable : bool or None
        True (shown by `u`, or by a linear program), False (proved as `notes` say), or None (not decided at this
        precision, or within the limit on passes).
    u : ndarray or None
        Scaled so that its smallest margin, as computed, is at least 1.
    norm : float
        |u|, at least B; infinite without `u`.
    lower : float
        A lower bound on B.
    passes : int
        How often the rows were read.
    notes : tuple of str
        Why there is no `u`, or why it stopped short of the tolerance.
    """

    separable: bool | None
    u: Floats | None
    norm: float
    lower: float
    passes: int
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> str:
        """What `u` is, in words."""
        return "of largest margin" if self.norm <= 1.01 * self.lower else "right on every row"


def hard_margin(data: Data, tol: float = 1e-3, max_passes: int = 300) -> HardMargin:
    """Return B = min |u| such that y_t u . x_t >= 1 for all rows of positive weight, the hard-margin norm.

    For few coordinates it is exact on a working set of rows, to which the most violated are added; the B of a working
    set is a lower bound. Where X2 B is too large for floating point, about 1e7, a linear program answers. For many
    coordinates it is found by dual coordinate ascent, with B >= A/|v| for any alpha >= 0.
    """
    known = _known.setdefault(data, {})
    if (tol, max_passes) not in known:
        known[tol, max_passes] = _hard_margin(data, tol, max_passes)
    return known[tol, max_passes]


def _hard_margin(data: Data, tol: float, max_passes: int) -> HardMargin:
    check_labels(data)
    begun = data.passes
    data = data if data.c.all() else data.subset(data.c > 0.0)
    return _few(data, tol, max_passes, begun) if data.width <= NNLS else _many(data, tol, max_passes, begun)


def _feasible(data: Data, u: Floats) -> tuple[Floats | None, float, Floats]:
    """Return u scaled so that its smallest margin is at least 1 however sums are rounded, its norm, and the margins."""
    m = data.y * data.margins(u)
    with np.errstate(over="ignore", invalid="ignore"):
        rounding = (data.width + 8) * EPS * float(np.linalg.norm(u))
        least = float((m - rounding * np.sqrt(data.row_norms2())).min())
        u = u / least if least > 0.0 else u
        norm = float(np.linalg.norm(u))
    return (u, norm, m) if least > 0.0 and norm < np.inf else (None, np.inf, m)


def _few(data: Data, tol: float, max_passes: int, begun: int) -> HardMargin:
    from scipy.optimize import nnls

    q = data.row_norms2()
    scale = float(np.sqrt(q.max()))
    if data.row_norms_inf().min() == 0.0:
        return HardMargin(False, None, np.inf, np.inf, data.passes - begun, ("not separable: a row is 0",))
    if q.min() == 0.0:  # the squares underflow
        return _beyond(data, 0.0, begun)
    work = np.zeros(data.rounds, dtype=bool)
    work[np.linspace(0, data.rounds - 1, min(data.rounds, data.width + 50)).astype(int)] = True
    lower, best, norm = 0.0, None, np.inf
    while True:
        part = data.subset(work)
        E = np.vstack(((part.matrix() * (part.y / scale)[:, None]).T, np.ones(part.rounds)))
        target = np.zeros(data.width + 1)
        target[-1] = 1.0
        try:
            alpha, _ = nnls(E, target, maxiter=50 * (E.shape[0] + E.shape[1]))
        except RuntimeError:  # it reached its cap
            return _many(data, tol, max_passes, begun)
        r = target - E @ alpha
        size = float(np.linalg.norm(E[:-1] @ alpha) / max(alpha.sum(), TINY))  # no u has margins above size |u| X2
        if r[-1] <= FAINT and size * size > 2.0 * FAINT:  # |r|^2 = 1/(1 + B^2) <= size^2: nnls is wrong
            return _many(data, tol, max_passes, begun)
        if r[-1] <= FAINT:
            return _beyond(data, max(lower, 1.0 / (size + 2.0 * sum(E.shape) * EPS) / scale), begun)
        lower = max(lower, float(alpha.sum() / np.linalg.norm(E[:-1] @ alpha)) / scale)
        u, size, m = _feasible(data, -r[:-1] / (r[-1] * scale))
        if size < norm:
            best, norm = u, size
        passes = data.passes - begun
        worst = np.argsort(np.where(work, np.inf, m))[: data.width + 50]
        worst = worst[(m[worst] < 1.0) & ~work[worst]]
        if norm - lower <= tol * norm < np.inf:
            return HardMargin(True, best, norm, lower, passes)
        if passes + 3 > max_passes or not worst.size or clock.late():
            return _stopped(best, norm, lower, passes)
        work[worst] = True


def _beyond(data: Data, lower: float, begun: int) -> HardMargin:
    """Return what a linear program shows of rows whose B, at least `lower`, is beyond floating point.

    Floating-point numbers cannot tell a margin of 0 from a tiny one. Integers can, but take long with many columns.
    """
    shown = separate(data) if data.width <= PROOF else Separation(None, notes=(UNDECIDED,))
    if shown.separable is False:
        return HardMargin(False, None, np.inf, np.inf, data.passes - begun, shown.notes)
    u, norm = (None, np.inf) if shown.w is None else _feasible(data, shown.w)[:2]
    passes = data.passes - begun
    if u is None:
        known = "separable, but" if shown.separable else f"{UNDECIDED}:"
        note = f"{known} B is at least {lower:.3g}, which is beyond floating point"
        return HardMargin(shown.separable, None, np.inf, lower, passes, (note,))
    note = f"B is between {lower:.3g} and {norm:.6g}: no better is found at this precision"
    return HardMargin(True, u, norm, min(lower, norm), passes, (note,))


def _many(data: Data, tol: float, max_passes: int, begun: int) -> HardMargin:
    ascent = Ascent(data, Hinge(1.0), space(Euclidean(1.0), data.width), np.full(data.rounds, HARD), 1.0)
    lower, best, norm, count, wait = 0.0, None, np.inf, 0, 1
    while True:
        ascent.run_passes(wait)
        count += wait
        wait = max(1, count // 8)
        size, weight = float(np.linalg.norm(ascent.v)), float(np.abs(ascent.alpha).sum())
        lower = max(lower, weight / size if size > 0.0 else np.inf)
        u, length, _ = _feasible(data, -ascent.v)
        if length < norm:
            best, norm = u, length
        passes = data.passes - begun
        if norm - lower <= tol * norm < np.inf:
            return HardMargin(True, best, norm, lower, passes)
        clock.tell("a separator", (norm - lower) / norm if norm < np.inf else 1.0)
        if passes + wait + 2 > max_passes or clock.late():
            return _stopped(best, norm, lower, passes)


def _stopped(u: Any, norm: float, lower: float, passes: int) -> HardMargin:
    if u is None:
        return HardMargin(None, None, np.inf, lower, passes, (f"not shown separable in {passes} passes",))
    return HardMargin(
        True, u, norm, lower, passes, (f"stopped at {passes} passes, B between {lower:.6g} and {norm:.6g}",)
    )
