"""The separator of largest margin: the shortest u with y_t u . x_t >= 1 on all rows.

|u| = B is the hard-margin norm of the perceptron's bound M <= (R B)^2.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...batch.separability import UNDECIDED, Separation, separate
from ...kernels.euclidean import Euclidean
from ...kernels.floats import EPS, Floats
from ...kernels.losses import Hinge
from ...rows.data import Data
from . import clock
from .ascent import Ascent
from .mistakes import check_labels
from .spaces import space

NNLS = 500  # widths up to which it is exact, by non-negative least squares on few rows
PROOF = 32  # widths up to which a proof in integers takes a few hundredths of a second
FAINT = 1e-14  # 1/(1 + B^2) from which on B is beyond the range of floating point
TINY = float(np.finfo(np.float64).tiny)
HARD = 2.0**200  # a hinge loss of this weight is a constraint
_known: WeakKeyDictionary[Data, dict[tuple[float, int], "HardMargin"]] = WeakKeyDictionary()  # of rows seen before


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
    notes : tuple of str
        Why there is no `u`, or why the search stopped before the tolerance was reached.
    """

    separable: bool | None
    u: Floats | None
    norm: float
    lower: float
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> str:
        """What `u` is, in words."""
        return "of largest margin" if self.norm <= 1.01 * self.lower else "right on every row"


def hard_margin(data: Data, tol: float = 1e-3, max_passes: int = 300) -> HardMargin:
    """Return B = min |u| such that y_t u . x_t >= 1 for all rows of positive weight, the hard-margin norm.

    For few coordinates it is solved exactly on a working set of rows, to which the most violated rows are added; the B
    of a working set is a lower bound. If X2 B is too large for floating point, about 1e7, a linear program decides. For
    many coordinates dual coordinate ascent is used, with B >= A/|v| for any alpha >= 0.
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
        return HardMargin(False, None, np.inf, np.inf, ("not separable: a row is 0",))
    if q.min() == 0.0:  # the squares underflow
        return _beyond(data, 0.0)
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
            return _beyond(data, max(lower, 1.0 / (size + 2.0 * sum(E.shape) * EPS) / scale))
        lower = max(lower, float(alpha.sum() / np.linalg.norm(E[:-1] @ alpha)) / scale)
        u, size, m = _feasible(data, -r[:-1] / (r[-1] * scale))
        if size < norm:
            best, norm = u, size
        passes = data.passes - begun
        worst = np.argsort(np.where(work, np.inf, m))[: data.width + 50]
        worst = worst[(m[worst] < 1.0) & ~work[worst]]
        if norm - lower <= tol * norm < np.inf:
            return HardMargin(True, best, norm, lower)
        if passes + 3 > max_passes or not worst.size or clock.late():
            return _stopped(best, norm, lower, passes)
        work[worst] = True


def _beyond(data: Data, lower: float) -> HardMargin:
    """Return what a linear program shows about rows whose B, at least `lower`, is too large for floating point.

    Floating-point numbers cannot distinguish a margin of 0 from a tiny one. Integers can, but are slow with many
    columns.
    """
    shown = separate(data) if data.width <= PROOF else Separation(None, notes=(UNDECIDED,))
    if shown.separable is False:
        return HardMargin(False, None, np.inf, np.inf, shown.notes)
    u, norm = (None, np.inf) if shown.w is None else _feasible(data, shown.w)[:2]
    if u is None:
        known = "separable, but" if shown.separable else f"{UNDECIDED}:"
        note = f"{known} B is at least {lower:.3g}, which is beyond floating point"
        return HardMargin(shown.separable, None, np.inf, lower, (note,))
    note = f"B is between {lower:.3g} and {norm:.6g}: no better is found at this precision"
    return HardMargin(True, u, norm, min(lower, norm), (note,))


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
            return HardMargin(True, best, norm, lower)
        clock.notify("a separator", (norm - lower) / norm if norm < np.inf else 1.0)
        if passes + wait + 2 > max_passes or clock.late():
            return _stopped(best, norm, lower, passes)


def _stopped(u: Any, norm: float, lower: float, passes: int) -> HardMargin:
    if u is None:
        return HardMargin(None, None, np.inf, lower, (f"not shown separable in {passes} passes",))
    note = f"stopped at {passes} passes, B between {lower:.6g} and {norm:.6g}"
    return HardMargin(True, u, norm, lower, (note,))
