"""Exact least squares: the w that minimises Sigma c_t (w . x_t + b - y_t)^2 + l2 |w|^2.

The intercept b is free: it counts neither in the penalty nor in the norm. There are three methods:

- `normal_equations`: the Gram matrix, its Cholesky factor, and refinement from residuals over the rows; the fastest,
  used only if the estimated condition number is small enough.
- `Factor`: the triangle R of a QR factorisation, to which blocks of rows are added; accurate at any condition number,
  in one pass, for streams.
- `solve_sparse`: LSMR, for sparse rows with many columns.

`normal_equations` returns a `Factor` too, so more rows can always be added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.floats import EPS
from ..rows.matrices import explain
from ..storage.fields import is_array, is_count, is_finite, is_vector
from ..storage.registry import storable, want
from ..validation import check_targets, check_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..rows.data import Data


LEAST_RCOND = 1e-9  # of the scaled Gram matrix, below which the rows themselves are factored
REFINEMENTS = 4  # passes over the rows that may refine a solution of the normal equations
BLOCK = 4096  # smallest number of rows that are factored at a time
LARGEST_R = 4e9  # bytes
ITERATIONS = 20_000  # of LSMR


@storable
@dataclass(frozen=True)
class LeastSquaresSolution:
    """A least-squares fit.

    Attributes
    ----------
    coef : ndarray
        w.
    intercept : float
        b.
    loss : float
        Sigma c_t (w . x_t + b - y_t)^2.
    rank : int or None
        The rank of the rows, minus their mean if there is an intercept; None if it was not computed.
    condition : float
        The ratio of the largest to the smallest singular value above the cutoff, including the penalty; 1 at rank 0.
    method : {"cholesky", "qr", "lsmr"}
        How it was computed.
    converged : bool
        False if the limit on iterations ended the search.
    """

    coef: np.ndarray
    intercept: float
    loss: float
    rank: int | None
    condition: float
    method: str
    converged: bool = True

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        want(is_vector(fields["coef"]) and is_finite(fields["coef"]), "`coef` must be a vector of finite numbers")


@storable
class Factor:
    """R with R^T R = Z^T Z for the rows Z = sqrt(c) (1, x, y), the 1 only with an intercept.

    The column of ones comes first, so that eliminating it subtracts the means from the others. Blocks have a fixed
    number of rows, so that the result does not depend on the sizes of the chunks, bit for bit.

    Parameters
    ----------
    features : int
        Number of columns of X.
    intercept : bool
        Whether there is an intercept.
    """

    def __init__(self, features: int, intercept: bool) -> None:
        self.features, self.intercept = features, intercept
        self.width = features + intercept + 1
        self.rows = 0
        self.method = "qr"
        self._R = np.zeros((0, self.width))
        self._pending: list[np.ndarray] = []
        self._solved: dict[tuple[float, float | None], LeastSquaresSolution] = {}

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        """Refuse a triangle or rows whose sizes do not match the number of features."""
        features, intercept, width = fields["features"], fields["intercept"], fields["width"]
        want(is_count(features) and features > 0, "`features` must be a count above 0")
        want(type(intercept) is bool and width == features + intercept + 1, "`width` must be that of the features")
        want(is_count(fields["rows"]), "`rows` must be a count")
        want(isinstance(fields["method"], str), "`method` must be a string")
        pending, triangle, solved = fields["_pending"], fields["_R"], fields["_solved"]
        want(isinstance(pending, list), "`_pending` must be a list of arrays")
        for Z in [*pending, triangle]:
            fits = is_array(Z, 2) and Z.shape[1] == width and is_finite(Z)
            want(fits, f"a factor must be arrays of {width} columns of finite numbers")
        want(len(triangle) <= width, "the triangle has more rows than columns")
        want(sum(map(len, pending)) < max(BLOCK, 2 * width), "`_pending` has more rows than a block")
        want(isinstance(solved, dict), "`_solved` must be a mapping")
        for key, found in solved.items():
            known = isinstance(key, tuple) and len(key) == 2 and isinstance(found, LeastSquaresSolution)
            want(known and found.coef.size == features, f"`_solved` must be solutions of {features} features")

    def add(self, X: Any, y: np.ndarray, weight: np.ndarray | None = None, names: Sequence[Any] | None = None) -> None:
        """Add rows, a dense array or a CSR matrix, or raise and change nothing; rows of weight 0 do not count."""
        check_targets("real", y)
        if weight is not None:
            check_weights(weight)
        kept = self.rows, self._R, list(self._pending)
        block = max(BLOCK, 2 * self.width)
        try:
            first = 0
            while first < X.shape[0]:
                part = slice(first, first + block - sum(map(len, self._pending)))
                rows = self._rows(X, y, weight, part, names)
                self.rows += len(rows)
                if min(self.rows, self.width) * self.width * 8 > LARGEST_R:
                    raise ValueError(
                        f"{self.features:,} features need a triangle of {8e-9 * self.width**2:.0f} GB: "
                        "fit them as one sparse matrix, which is solved by iteration"
                    )
                self._pending.append(rows)
                if sum(map(len, self._pending)) == block:
                    self.settle()
                first = part.stop
        except BaseException:
            self.rows, self._R, self._pending = kept
            raise
        self.method = "qr"
        self._solved.clear()

    def settle(self) -> Factor:
        """Include the rows so far in the triangle, and return the factor itself."""
        self._R, self._pending = self.triangle(), []
        return self

    def join(self, other: Factor) -> Factor:
        """Add the rows of another factor of the same columns, and return the factor itself.

        Z^T Z = R_1^T R_1 + R_2^T R_2, so the triangle of all rows is that of the stacked triangles: orthogonal steps
        keep the accuracy of one factorisation at any condition number, where a sum of Gram matrices would square it.
        """
        self._pending.append(other.triangle())
        self.rows, self.method = self.rows + other.rows, "qr"
        self._solved.clear()
        return self.settle()

    def _rows(self, X: Any, y: np.ndarray, weight: np.ndarray | None, part: slice, names: Any) -> np.ndarray:
        values = X[part] if isinstance(X, np.ndarray) else X[part].toarray()
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            row = part.start + int(np.flatnonzero(~finite)[0])
            explain(X, row, y[row], 0.0, 0.0, self.features, names)
        Z = np.ones((len(values), self.width))
        Z[:, self.intercept : -1] = values
        Z[:, -1] = y[part]
        if weight is not None:
            Z = Z[weight[part] > 0.0]
            Z *= np.sqrt(weight[part][weight[part] > 0.0])[:, None]
        return Z

    def triangle(self) -> np.ndarray:
        """Return R of all rows so far."""
        if not self._pending:
            return self._R
        from scipy import linalg

        rows = np.concatenate(self._pending)
        if not len(rows):
            return self._R
        if len(self._R) < self.width:
            (R,) = linalg.qr(np.concatenate([self._R, rows]), mode="r", overwrite_a=True, check_finite=False)
            R = np.ascontiguousarray(R[: self.width])
        else:  # a triangle above a rectangle: a third of the time
            nb = min(16, self.width)
            R = linalg.lapack.dtpqrt(0, nb, np.asfortranarray(self._R), np.asfortranarray(rows), overwrite_b=1)[0]
            R = np.ascontiguousarray(R)
        if not np.isfinite(R).all():
            raise ValueError("the rows' squared norms overflow: scale the features or the targets")
        return R

    def solve(self, l2: float = 0.0, rcond: float | None = None) -> LeastSquaresSolution:
        """Return the minimiser; if it is not unique, the one with the shortest w.

        Parameters
        ----------
        l2 : float, default 0.0
            The factor of the penalty.
        rcond : float, default None
            Singular values of at most `rcond` times the largest count as 0. None is 8 eps max(n, sqrt(rows)). With None
            the rank is full if it is full after columns are scaled to equal length.
        """
        key = l2, rcond
        if key not in self._solved:
            self._solved[key] = self._solve(l2, rcond)
        return self._solved[key]

    def _solve(self, l2: float, rcond: float | None) -> LeastSquaresSolution:
        from scipy import linalg

        R, k, n = self.triangle(), int(self.intercept), self.features
        largest = float(np.abs(R).max(initial=0.0))
        unit = math.ldexp(1.0, min(1023, math.frexp(largest)[1]))  # so that no square overflows
        R, l2 = R / unit, l2 / unit / unit
        cut = 8.0 * EPS * max(n, math.sqrt(self.rows))
        A, b = R[k:, k:-1].copy(), R[k:, -1]
        # A column that is constant up to rounding has nothing but rounding left after its mean is subtracted.
        length, before = np.linalg.norm(A, axis=0), np.linalg.norm(R[:, k:-1], axis=0)
        A[:, length <= cut * before] = 0.0
        length[length <= cut * before] = 0.0
        s = linalg.svdvals(A) if A.size else np.zeros(0)
        rank = int((s > (cut if rcond is None else rcond) * s.max(initial=0.0)).sum())
        full = rank == n
        if rcond is None and not full and len(A) >= n and length.all():
            reciprocal = linalg.lapack.dtrcon(A[:n] / length)[0]  # an estimate of that of the condition number
            full = reciprocal > cut * float((before / length).max())
            rank = n if full else rank
        if full and l2 == 0.0:
            w = linalg.solve_triangular(A[:n] / length, b[:n], check_finite=False) / length
        elif rank:
            U, s, Vt = linalg.svd(A, full_matrices=False)
            U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
            w = Vt.T @ ((U.T @ b) * (s / (s * s + l2)))
        else:
            w = np.zeros(n)
        counted = np.hypot(s[:rank] if l2 == 0.0 or full else np.append(s[:rank], 0.0), math.sqrt(l2))
        condition = float(counted[0] / counted[-1]) if rank else 1.0
        residual = b - A @ w
        intercept = float((R[0, -1] - R[0, 1:-1] @ w) / R[0, 0]) if k else 0.0
        return LeastSquaresSolution(
            w, intercept, float(residual @ residual) * unit * unit, rank, condition, self.method
        )


def normal_equations(data: Data) -> Factor | None:
    """Return the factor from the Gram matrix of rows in memory, or None if it would not be accurate.

    Refinement makes the solution as accurate as from the rows. If g is the gradient at u, computed from residuals, the
    loss at u is g . H^-1 g above the minimum, and each correction reduces that by a factor of (eps/rcond)^2.
    """
    from scipy.linalg import lapack

    intercept, n = bool(data.bias), data.width
    if np.count_nonzero(data.c) < 2 * n:
        return None
    gram, cross = data.moments(data.c, data.c * data.y)
    order = np.roll(np.arange(n), int(intercept))  # the ones first
    d = np.sqrt(np.diag(gram)[order])
    if not (np.isfinite(gram).all() and np.isfinite(cross).all() and d.all()):
        return None
    H, bad = lapack.dpotrf(gram[np.ix_(order, order)] / np.outer(d, d), clean=1)
    if bad:
        return None
    rcond = float(lapack.dpocon(H, 1.0 * np.abs(H.T @ H).sum(axis=0).max())[0])
    if rcond < LEAST_RCOND:
        return None

    def solve(g: np.ndarray) -> np.ndarray:
        out = np.empty(n)
        out[order] = lapack.dpotrs(H, g[order] / d)[0] / d
        return out

    u = solve(cross)
    size = float(data.c @ data.y**2)
    shrink = (64.0 * EPS * n / rcond) ** 2
    for _ in range(REFINEMENTS):
        z, g = data.residual_gradient(u, data.c)
        residual = z - data.y
        loss = float((data.c * residual) @ residual)
        step = solve(g)
        excess = float(g @ step)
        u = u - step
        if not math.isfinite(loss + excess):
            return None
        if shrink * excess <= 1e-18 * loss or excess <= (16.0 * EPS) ** 2 * size:
            break
    else:
        return None
    factor = Factor(n - intercept, intercept)
    factor.rows, factor.method = int(np.count_nonzero(data.c)), "cholesky"
    factor._R = np.zeros((n + 1, n + 1))
    factor._R[:n, :n] = H * d
    factor._R[:n, n] = factor._R[:n, :n] @ u[order]
    factor._R[n, n] = math.sqrt(max(loss - excess, 0.0))
    return factor


def solve_sparse(
    X: Any, y: np.ndarray, weight: np.ndarray | None, intercept: bool, l2: float, tol: float, names: Any = None
) -> LeastSquaresSolution:
    """Solve for sparse rows by LSMR from w = 0, which finds the shortest minimiser if there are several.

    It stops when |M^T r| <= tol |M| |r| or |r| <= tol (|M| |w| + |b|), where M are the rows minus their mean. The mean
    is subtracted within the products, never from the rows.
    """
    from scipy.sparse.linalg import LinearOperator, lsmr

    check_targets("real", y)
    if weight is not None:
        check_weights(weight)
    if not np.isfinite(X.data).all():
        row = int(np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data))[0], "right")) - 1
        explain(X, row, y[row], 0.0, 0.0, X.shape[1], names)
    X = X.astype(np.float64, copy=False)
    c = np.ones(X.shape[0]) if weight is None else weight
    root, total = np.sqrt(c), c.sum()
    mean = X.T @ c / total if intercept else np.zeros(X.shape[1])
    level = float(c @ y / total) if intercept else 0.0
    M = LinearOperator(
        X.shape,
        matvec=lambda w: root * (X @ w.ravel() - mean @ w.ravel()),
        rmatvec=lambda r: X.T @ (root * r.ravel()) - mean * (root @ r.ravel()),
        dtype=np.float64,
    )
    target = root * (y - level)
    w, stop, *_, condition, _ = lsmr(M, target, math.sqrt(l2), tol, tol, conlim=0.0, maxiter=ITERATIONS)
    if not np.isfinite(w).all():
        raise ValueError("the rows' squared norms overflow: scale the features or the targets")
    residual = M @ w - target
    loss, converged = float(residual @ residual), stop != 7
    return LeastSquaresSolution(w, level - float(mean @ w), loss, None, float(condition), "lsmr", converged)
