"""Which halfspace errs least: linear programs for separable rows, integer programs for the rest (N2).

With a_i = y_i x_i, exactly one of these holds (Gordan): some w has a_i . w > 0 for all i, or some alpha >= 0 of sum 1
has Sigma alpha_i a_i = 0. `separate` finds either by linear programs over few rows, to which the violated ones are
added. Solvers round, so neither is believed: the margins of w are held against a bound on their rounding, and alpha is
solved for again in whole numbers (floating-point numbers are such, times a power of two), which makes it a proof.

`fewest_mistakes` is empirical risk minimisation for the 0-1 loss: choose as few rows to give up as possible such that
each proof of non-separability loses one. Proofs are added until what is left is separable (Benders' cuts), so there is
no big constant and no least margin; the lower bound stands on proofs and the upper one on counted errors.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows.data import Data
from ..storage.registry import storable

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

EPS = float(np.finfo(np.float64).eps)
EXACT = 100  # rows of a proof up to which it is solved in whole numbers


@storable
@dataclass(frozen=True)
class Separation:
    """Whether some w is right on every row, and what shows it.

    Attributes
    ----------
    separable : True (shown by w), False (shown by rows and alpha), or None (rounding leaves it open).
    w : weights, the intercept's last, with y (w.x) > 0 on every row beyond rounding; or None.
    rows, alpha : Sigma alpha_i y_i x_i = 0 over these rows, alpha > 0 of sum 1, shown in whole numbers; or empty.
    notes : the same in words.
    """

    separable: bool | None
    w: Floats | None = None
    rows: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    alpha: Floats = field(default_factory=lambda: np.zeros(0))
    notes: tuple[str, ...] = ()


def halfspace_data(X: Any, y: Any, fit_intercept: bool) -> Data:
    """Rows and labels of two classes (the larger label is 1) as `Data`, all finite; or one clear error."""
    from ..rows.matrices import explain

    X = X if hasattr(X, "tocsr") else np.asarray(X, np.float64)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have rows and columns, got shape {X.shape}")
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise ValueError(f"y must hold one label a row: {X.shape[0]} rows, got shape {labels.shape}")
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError(f"y must hold two classes, got {len(classes)}: {classes[:5].tolist()}")
    data = Data(X, np.where(labels == classes[1], 1.0, -1.0), None, 1.0 if fit_intercept else 0.0)
    q = data.row_norms2()
    if not np.isfinite(q).all():
        row = int(np.flatnonzero(~np.isfinite(q))[0])
        explain(X, row, data.y[row], 0.0, float(q[row]), X.shape[1], None)
    return data


def rounding(data: Data, w: Floats) -> Floats:
    """What the computed margin of each row may be off by."""
    out: Floats = 2.0 * (data.width + 2) * EPS * float(np.linalg.norm(w)) * np.sqrt(data.row_norms2())
    return out


def separate(X: Any, y: Any = None, *, fit_intercept: bool = True) -> Separation:
    """A w that is right on every row, or a proof that there is none.

    Parameters
    ----------
    X, y : rows, and labels of two classes (the larger one is 1); or rows as `Data` alone.
    fit_intercept : whether a constant coordinate 1 joins every row.

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
        found = _settle(part.matrix() * part.y[:, None])
        if found.separable is not True or found.w is None:
            return Separation(found.separable, None, work[found.rows], found.alpha, found.notes)
        margins = data.y * data.margins(found.w)
        short = margins <= rounding(data, found.w)
        if not short.any():
            return Separation(True, found.w, notes=(f"separable: least margin {float(margins.min()):.6g}",))
        worst = np.flatnonzero(short & ~inside)
        if not worst.size:
            return Separation(None, notes=("rounding leaves it open whether the rows are separable",))
        work = worst[np.argsort(margins[worst], kind="stable")[:step]]


def _settle(A: Floats) -> Separation:
    """The same for few rows a_i = y_i x_i written out."""
    sizes = np.abs(A).max(axis=1)
    if not sizes.all():
        row = np.flatnonzero(sizes == 0.0)[:1]
        return Separation(False, None, row, np.ones(1), ("not separable: a row is 0",))
    A = np.ldexp(A, -np.frexp(sizes)[1][:, None])  # exact, and the signs of margins stay
    w = _feasible(A)
    if w is not None:
        return Separation(True, w)
    proof = _gordan(A)
    if proof is None:
        return Separation(None, notes=("rounding leaves it open whether the rows are separable",))
    rows, alpha = proof
    alpha = np.ldexp(alpha, -np.frexp(sizes[rows])[1])  # the weights of the rows as they were
    note = f"not separable: Σ α y x = 0 over {rows.size} rows, α > 0, in whole numbers"
    return Separation(False, None, rows, alpha / alpha.sum(), (note,))


def _feasible(A: Floats) -> Floats | None:
    """The w of least L1 norm with A w >= 1, if its margins are surely above 0."""
    from scipy.optimize import linprog

    m, n = A.shape
    out = linprog(np.ones(2 * n), -np.hstack((A, -A)), -np.ones(m), bounds=(0, None), method="highs-ds")
    if out.x is None:
        return None
    w: Floats = out.x[:n] - out.x[n:]
    slack = 2.0 * (n + 2) * EPS * (np.abs(A) @ np.abs(w))
    return w if (A @ w > slack).all() else None


def _gordan(A: Floats, cost: Floats | None = None) -> tuple[Rows, Floats] | None:
    """Rows and alpha > 0 with Sigma alpha_i a_i = 0 in whole numbers: a vertex, so that no row can be spared."""
    from scipy.optimize import linprog

    m, n = A.shape
    equal = np.vstack((A.T, np.ones(m)))
    out = linprog(
        np.zeros(m) if cost is None else cost, A_eq=equal, b_eq=np.append(np.zeros(n), 1.0), method="highs-ds"
    )
    if out.x is None:
        return None
    rows = np.flatnonzero(out.x > 1e-9)
    if not 0 < rows.size <= min(n + 1, EXACT):
        return None
    alpha = null_vector(A[rows])
    return None if alpha is None else (rows, alpha)


def null_vector(A: Floats) -> Floats | None:
    """The alpha > 0 with alpha A = 0, if up to its length there is just one: by elimination in whole numbers.

    It is returned rounded, of sum 1.
    """
    from fractions import Fraction

    columns = [_whole(column) for column in A.T]
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


def _whole(values: Floats) -> list[int]:
    """The numbers times a power of two that makes them whole."""
    parts, powers = np.frexp(values)
    least = int(powers.min())
    return [int(p * 2.0**53) << (int(e) - least) for p, e in zip(parts, powers, strict=True)]


@storable
@dataclass(frozen=True)
class FewestMistakes:
    """A halfspace and how few training errors any can have.

    Attributes
    ----------
    w : weights, the intercept's last.
    errors : its training errors, counted; a zero margin is one.
    lower : no halfspace has fewer.
    proofs : how many proofs of non-separability the lower bound stands on.
    notes : why it stopped, where lower < errors.
    """

    w: Floats
    errors: int
    lower: int
    proofs: int
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> int:
        """How many errors fewer there may yet be: 0 means that w is optimal."""
        return self.errors - self.lower


def fewest_mistakes(X: Any, y: Any, *, fit_intercept: bool = True, time_limit: float = 60.0) -> FewestMistakes:
    """The halfspace with the fewest training errors (empirical risk minimisation for the 0-1 loss), for few rows.

    Parameters
    ----------
    X, y : rows, and labels of two classes (the larger one is 1).
    fit_intercept : whether a constant coordinate 1 joins every row.
    time_limit : seconds after which the best so far is returned with its gap.

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
    A = np.ldexp(A, -np.frexp(np.abs(A).max(axis=1))[1][:, None])
    best, errors = np.zeros(data.width), data.rounds
    cuts: list[Rows] = []
    notes: tuple[str, ...] = ()
    lower, left, tried = 0, np.arange(data.rounds), 0
    while True:
        apart = 0
        while (found := _settle(A[left])).separable is False:  # proofs that share no row: an error in each
            cuts.append(left[found.rows])
            left = np.delete(left, found.rows)
            apart += 1
        lower = max(lower, apart)
        if found.w is None:
            notes = found.notes
            break
        wrong = int((data.y * data.margins(found.w) <= rounding(data, found.w)).sum())
        if wrong < errors:
            best, errors = found.w, wrong
        if lower >= errors:
            break
        if len(cuts) == tried:  # nothing new, though the program was solved
            notes = ("rounding leaves open which margins are above 0",)
            break
        given, lower = _relaxed(A, cuts, errors, lower, end - time.monotonic())
        if lower >= errors:
            break
        if given is None or time.monotonic() >= end:
            notes = (f"stopped after {time_limit:g} s",)
            break
        left, tried = np.flatnonzero(~given), len(cuts)
    return FewestMistakes(best, errors, lower, len(cuts), notes)


def _relaxed(
    A: Floats, cuts: list[Rows], errors: int, lower: int, seconds: float
) -> tuple[NDArray[np.bool_] | None, int]:
    """The rows to give up, if zero margins were right and the cuts are kept; and how few rows can be given up.

    Variables: e (give row i up), w in the box [-1, 1]^n, and which side of the box w lies on (else w = 0 would do).
    Where row i is not given up a_i . w >= 0; where it is, a_i . w >= -|a_i|_1 says nothing. All of it holds for the
    best w, brought to the side of the box, so the least Sigma e is a lower bound, and tolerances only make it smaller.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array, csr_array, diags_array, eye_array

    m, n = A.shape
    sides, one = eye_array(n), np.ones((1, n))
    indptr = np.cumsum([0, *(cut.size for cut in cuts)])
    table = csr_array((np.ones(indptr[-1]), np.concatenate(cuts), indptr), shape=(len(cuts), m))
    parts = [
        [diags_array(np.abs(A).sum(axis=1)), csr_array(A), None, None],
        [None, sides, -2.0 * sides, None],  # w_j >= 1 on its upper side
        [None, -sides, None, -2.0 * sides],  # w_j <= -1 on its lower side
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
        options={"time_limit": max(0.01, seconds), "mip_rel_gap": 0.0},
    )
    if out.mip_dual_bound is not None and math.isfinite(out.mip_dual_bound):
        lower = max(lower, math.ceil(out.mip_dual_bound - 1e-6))
    return None if out.x is None else out.x[:m] > 0.5, lower
