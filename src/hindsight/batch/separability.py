"""The halfspace with the fewest errors: linear programs for separable rows, integer programs for the rest.

With a_i = y_i x_i, exactly one of these holds (Gordan's theorem): some w has a_i . w > 0 for all i, or some alpha >= 0
of sum 1 has Sigma alpha_i a_i = 0. `separate` finds one of them by linear programs over a few rows, to which violated
rows are added. Columns and rows are first divided by powers of two, which does not change the answer. Since solvers
round and fail, both answers are verified: the margins of w are compared with a bound on their rounding, and alpha is
solved for again in integers (floating-point numbers are integers times a power of two), which makes it a proof. If
neither can be verified, separability is not decided at this precision.

`fewest_mistakes` is empirical risk minimisation for the 0-1 loss. It removes as few rows as possible such that every
known proof of non-separability loses a row. Proofs are added until the remaining rows are separable (Benders' cuts), so
neither a big-M constant nor a smallest margin is needed. The proofs give the lower bound, and counted errors the upper
bound.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.floats import EPS, Floats
from ..rows.data import Data
from ..storage.registry import storable

Rows = NDArray[np.int64]

EXACT = 100  # rows of a proof up to which it is solved in integers
TINY = float(np.finfo(np.float64).tiny)
SQUARE = 2.0**54 * TINY
SOLVED, STOPPED, INFEASIBLE = range(3)  # how a solver ended: with a solution, at a limit, without
UNDECIDED = "not decided at this precision whether the rows are separable"


@storable
@dataclass(frozen=True)
class Separation:
    """Whether some w classifies every row correctly, with a proof.

    Attributes
    ----------
    separable : bool or None
        True (shown by `w`), False (shown by `rows` and `alpha`), or None (not decided at this precision).
    w : ndarray or None
        Weights, the intercept's last, with y (w . x) > 0 on every row by more than rounding.
    rows : ndarray of int
        Rows over which Sigma alpha_i y_i x_i = 0; empty if separable.
    alpha : ndarray
        Positive numbers of sum 1, one for each of these rows, verified in integers.
    notes : tuple of str
        Remarks, such as how the answer was proved.
    """

    separable: bool | None
    w: Floats | None = None
    rows: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    alpha: Floats = field(default_factory=lambda: np.zeros(0))
    notes: tuple[str, ...] = ()


def halfspace_data(X: Any, y: Any, fit_intercept: bool) -> Data:
    """Return finite rows and labels of two classes, the larger label being 1, as `Data`; or raise a ValueError."""
    X = X if hasattr(X, "tocsr") else np.asarray(X, np.float64)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have rows and columns, got shape {X.shape}")
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise ValueError(f"y must have one label per row: {X.shape[0]} rows, got shape {labels.shape}")
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError(f"y must have two classes, got {len(classes)}: {classes[:5].tolist()}")
    data = Data(X, np.where(labels == classes[1], 1.0, -1.0), None, 1.0 if fit_intercept else 0.0)
    data.finite_norms2()
    return data


def rounding(data: Data, w: Floats) -> Floats:
    """Return a bound on the rounding error of each row's margin."""
    q, top = data.row_norms2(), math.sqrt(data.width) * data.row_norms_inf()
    sizes = np.where(q > SQUARE, np.sqrt(q), top)  # a smaller square has lost digits
    with np.errstate(over="ignore", invalid="ignore"):
        out: Floats = 2.0 * (data.width + 2) * EPS * float(np.linalg.norm(w)) * sizes + data.width * TINY
    return out


def separate(X: Any, y: Any = None, *, fit_intercept: bool = True) -> Separation:
    """Find weights that classify every row correctly, or a proof that there are none.

    Parameters
    ----------
    X : array_like or CSR matrix of shape (m, n), or Data
        The rows; `Data` includes the labels.
    y : array_like of shape (m,), default None
        Labels of two classes; the larger one counts as 1.
    fit_intercept : bool, default True
        Whether every row has a constant coordinate 1.

    Returns
    -------
    Separation
        The weights, or the proof.

    Raises
    ------
    ValueError
        If a value is not finite, or there are not two classes.

    Examples
    --------
    >>> separate([[0.0], [1.0], [2.0]], [0, 1, 1]).separable
    True
    >>> proof = separate([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> proof.separable, proof.rows.tolist(), proof.alpha.tolist()
    (False, [0, 1, 2], [0.25, 0.5, 0.25])
    """
    data = X if isinstance(X, Data) else halfspace_data(X, y, fit_intercept)
    step = data.width + 50
    work = np.unique(np.linspace(0, data.rounds - 1, min(data.rounds, step)).astype(np.int64))
    inside = np.zeros(data.rounds, bool)
    while True:
        inside[work] = True
        part = data.subset(inside)
        work = np.flatnonzero(inside)
        found = _separate_dense(part.matrix() * part.y[:, None])
        if found.separable is not True or found.w is None:
            return Separation(found.separable, None, work[found.rows], found.alpha, found.notes)
        margins = data.y * data.margins(found.w)
        worst = np.flatnonzero((margins <= rounding(data, found.w)) & ~inside)  # those inside are right
        if not worst.size:
            return Separation(True, found.w, notes=(f"separable: least margin {float(margins.min()):.6g}",))
        work = worst[np.argsort(margins[worst], kind="stable")[:step]]


def _separate_dense(A: Floats) -> Separation:
    """Do the same for a few rows a_i = y_i x_i, as a dense array."""
    if not len(A):
        return Separation(True, np.zeros(A.shape[1]))
    sizes = np.abs(A).max(axis=1)
    if not sizes.all():
        row = np.flatnonzero(sizes == 0.0)[:1]
        return Separation(False, None, row, np.ones(1), ("not separable: a row is 0",))
    scaled, powers = _scaled(A)
    w, failed = _feasible(scaled)
    if w is not None:
        w = np.ldexp(w, -powers)
        if _right(A, w).all():
            return Separation(True, w)
    rows, failed_too = _gordan(scaled)
    alpha = None if rows is None else null_vector(A[rows])
    if rows is None or alpha is None:
        return Separation(None, notes=(UNDECIDED, *failed, *failed_too))
    note = f"not separable: Σ α y x = 0 over {rows.size} rows, α > 0, in whole numbers"
    return Separation(False, None, rows, alpha, (note,))


def _scaled(A: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """Return A with columns, then rows, divided by powers of two so that maxima are near 1, and the columns' powers.

    With weights multiplied by the powers of the columns, margins keep their signs.
    """
    columns = np.frexp(np.abs(A).max(axis=0))[1]
    out = np.ldexp(A, -columns)
    return np.ldexp(out, -np.frexp(np.abs(out).max(axis=1))[1][:, None]), columns


def _right(A: Floats, w: Floats) -> NDArray[np.bool_]:
    """Return for each row whether its margin is above 0 by more than rounding."""
    slack = 2.0 * (w.size + 2) * EPS * (np.abs(A) @ np.abs(w)) + w.size * TINY
    right: NDArray[np.bool_] = A @ w > slack
    return right


def _feasible(A: Floats) -> tuple[Floats | None, tuple[str, ...]]:
    """Return the solver's w of smallest L1 norm with A w >= 1, and its message if it failed."""
    m, n = A.shape
    x, failed = _solved(c=np.ones(2 * n), A_ub=-np.hstack((A, -A)), b_ub=-np.ones(m))
    return None if x is None else x[:n] - x[n:], failed


def _gordan(A: Floats) -> tuple[Rows | None, tuple[str, ...]]:
    """Return rows with Sigma alpha_i a_i = 0 for some alpha > 0, from a vertex of the LP, so that none is redundant."""
    m, n = A.shape
    x, failed = _solved(c=np.zeros(m), A_eq=np.vstack((A.T, np.ones(m))), b_eq=np.append(np.zeros(n), 1.0))
    rows = np.flatnonzero(x > 1e-9) if x is not None else np.zeros(0, np.int64)
    return rows if 0 < rows.size <= min(n + 1, EXACT) else None, failed


def _solved(**program: Any) -> tuple[Floats | None, tuple[str, ...]]:
    """Return the solution of a linear program, or None if there is none or the solver failed, and the message then."""
    from scipy.optimize import linprog

    out = linprog(**program, method="highs-ds")
    return out.x, () if out.status in (SOLVED, INFEASIBLE) else (f"the solver stopped: {out.message}",)


def null_vector(A: Floats) -> Floats | None:
    """Return the alpha > 0 of sum 1 with alpha A = 0, rounded; None unless it is unique.

    It is found by elimination in integers.
    """
    from fractions import Fraction

    columns = [_integers(column) for column in A.T]
    k = A.shape[0]
    pivots: list[tuple[list[int], int]] = []
    for column in columns:  # Bareiss: every division is exact
        row, divisor = column, 1
        for pivot, at in pivots:
            here, top = row[at], pivot[at]
            row = [(top * a - here * b) // divisor for a, b in zip(row, pivot, strict=True)]
            divisor = top
        lead = next((j for j, v in enumerate(row) if v), None)
        if lead is not None:
            pivots.append((row, lead))
    if len(pivots) != k - 1:
        return None
    free = (set(range(k)) - {at for _, at in pivots}).pop()
    value: dict[int, Fraction] = {free: Fraction(1)}
    for pivot, at in reversed(pivots):
        value[at] = -sum((pivot[j] * v for j, v in value.items()), Fraction(0)) / pivot[at]
    if min(value.values()) <= 0:
        return None
    total = sum(value.values())
    return np.array([float(value[j] / total) for j in range(k)])


def _integers(values: Floats) -> list[int]:
    """Return the numbers multiplied by a power of two that makes them integers."""
    parts, powers = np.frexp(values)
    least = int(powers.min())
    return [int(p * 2.0**53) << (int(e) - least) for p, e in zip(parts, powers, strict=True)]


@storable
@dataclass(frozen=True)
class FewestMistakes:
    """A halfspace with few training errors, and a lower bound for all halfspaces.

    Attributes
    ----------
    w : ndarray
        Weights, the intercept's last.
    errors : int
        Its training errors, counted; a zero margin is an error.
    lower : int
        No halfspace has fewer errors.
    proofs : int
        The number of proofs of non-separability from which the lower bound follows.
    notes : tuple of str
        Why the search stopped, if lower < errors.
    """

    w: Floats
    errors: int
    lower: int
    proofs: int
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> int:
        """How many fewer errors another halfspace may have; 0 means that w is optimal."""
        return self.errors - self.lower


def fewest_mistakes(X: Any, y: Any, *, fit_intercept: bool = True, time_limit: float = 60.0) -> FewestMistakes:
    """Find the halfspace with the fewest training errors: empirical risk minimisation for the 0-1 loss, for few rows.

    Parameters
    ----------
    X : array_like or CSR matrix of shape (m, n)
        The rows.
    y : array_like of shape (m,)
        Labels of two classes; the larger one counts as 1.
    fit_intercept : bool, default True
        Whether every row has a constant coordinate 1.
    time_limit : float, default 60.0
        Seconds after which the best halfspace so far is returned, with its gap.

    Returns
    -------
    FewestMistakes
        The halfspace, its errors, and a lower bound for all halfspaces.

    Raises
    ------
    ValueError
        If a value is not finite, there are not two classes, or `time_limit` is not above 0.

    Examples
    --------
    >>> best = fewest_mistakes([[0.0], [1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1, 1])
    >>> best.errors, best.gap
    (1, 0)
    """
    if isinstance(time_limit, bool) or not time_limit > 0.0:
        raise ValueError(f"time_limit must be above 0 seconds, got {time_limit!r}")
    end = time.monotonic() + time_limit
    data = halfspace_data(X, y, fit_intercept)
    A = data.matrix() * data.y[:, None]
    best, errors = np.zeros(data.width), data.rounds
    cuts: list[Rows] = []
    notes: tuple[str, ...] = ()
    lower, left, tried = 0, np.arange(data.rounds), 0
    while True:
        apart = 0
        while (found := _separate_dense(A[left])).separable is False:  # proofs over disjoint rows: one error in each
            cuts.append(left[found.rows])
            left = np.delete(left, found.rows)
            apart += 1
        lower = max(lower, apart)
        if found.w is None:
            notes = found.notes
            break
        wrong = int((~_right(A, found.w)).sum())
        if wrong < errors:
            best, errors = found.w, wrong
        if lower >= errors:
            break
        if len(cuts) == tried:  # nothing new, although the program was solved
            notes = ("not decided at this precision which margins are above 0",)
            break
        removed, lower, failed = _relaxed(_scaled(A)[0], cuts, errors, lower, end - time.monotonic())
        if lower >= errors:
            break
        if removed is None or time.monotonic() >= end:
            notes = failed or (f"stopped after {time_limit:g} s",)
            break
        left, tried = np.flatnonzero(~removed), len(cuts)
    return FewestMistakes(best, errors, lower, len(cuts), notes)


def _relaxed(
    A: Floats, cuts: list[Rows], errors: int, lower: int, seconds: float
) -> tuple[NDArray[np.bool_] | None, int, tuple[str, ...]]:
    """Return the rows to remove if zero margins count as correct and the cuts hold, and a lower bound on their number.

    The third value is the message of the solver if it failed.

    Variables: e (remove row i), w in the box [-1, 1]^n, and which face of the box w is on (otherwise w = 0 would do).
    If row i is not removed, a_i . w >= 0; if it is, a_i . w >= -|a_i|_1 is no constraint. All of this holds for the
    best w, scaled to a face of the box, so the smallest Sigma e is a lower bound, and tolerances only make it smaller.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array, csr_array, diags_array, eye_array

    m, n = A.shape
    faces, one = eye_array(n), np.ones((1, n))
    indptr = np.cumsum([0, *(cut.size for cut in cuts)])
    table = csr_array((np.ones(indptr[-1]), np.concatenate(cuts), indptr), shape=(len(cuts), m))
    parts = [
        [diags_array(np.abs(A).sum(axis=1)), csr_array(A), None, None],
        [None, faces, -2.0 * faces, None],  # w_j >= 1 on its upper face
        [None, -faces, None, -2.0 * faces],  # w_j <= -1 on its lower face
        [None, None, one, one],
        [table, None, None, None],
        [np.ones((1, m)), None, None, None],
    ]
    floor = np.concatenate((np.zeros(m), -np.ones(2 * n), [1.0], np.ones(len(cuts)), [lower]))
    ceiling = np.full(floor.size, np.inf)
    ceiling[m + 2 * n], ceiling[-1] = 1.0, errors
    out = milp(
        np.repeat((1.0, 0.0), (m, 3 * n)),
        integrality=np.repeat((1, 0, 1), (m, n, 2 * n)),
        bounds=Bounds(np.repeat((0.0, -1.0, 0.0), (m, n, 2 * n)), 1.0),
        constraints=LinearConstraint(block_array(parts, format="csc"), floor, ceiling),
        # for few rows it is as fast without presolving, after which it may print a line of its own
        options={"time_limit": max(0.01, seconds), "mip_rel_gap": 0.0, "presolve": m > 100},
    )
    if out.mip_dual_bound is not None and math.isfinite(out.mip_dual_bound):
        lower = max(lower, math.ceil(out.mip_dual_bound - 1e-6))
    failed = () if out.status in (SOLVED, STOPPED) else (f"the solver stopped: {out.message}",)
    return None if out.x is None else out.x[:m] > 0.5, lower, failed
