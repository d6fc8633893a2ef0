"""Exact least squares."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ..batch.least_squares import Factor, LeastSquaresSolution, normal_equations, solve_sparse
from ..rows.data import Data
from ..rows.matrices import explain
from ..validation import check_targets, check_weights, number
from .base import OnlineEstimator, SaveMixin
from .regress import OnlineRegressor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WIDE = 500  # columns above which sparse rows are solved by iteration


@contextmanager
def progress(show: bool, what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on the error stream, moved by the function it gives; nothing unless asked to show."""
    if not show:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


def at_least_0(name: str, value: Any) -> float:
    """`value` as a float if it is a finite number, at least 0."""
    if number(name, value) < 0.0:
        raise ValueError(f"{name} must be at least 0, got {value!r}")
    return float(value)


def weights_of(sample_weight: Any, X: Any) -> np.ndarray | None:
    """The weights of the rows; None stands for 1."""
    if sample_weight is None:
        return None
    given = np.asarray(sample_weight)
    if given.ndim == 1:
        check_weights(given.astype(np.float64))
    return np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=False))


class LeastSquares(SaveMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Exact least squares (N1 1.1): the w and b that minimise Sigma c_t (w.x_t + b - y_t)^2 + l2 |w|^2.

    The solution is unique where the rows have full column rank; otherwise it is the shortest w (the pseudoinverse's).
    The intercept is free: it counts neither in the penalty nor in that norm. Dense rows go through their Gram matrix,
    refined from residuals, where its condition allows it, and otherwise through a blocked QR factorisation; so do
    `partial_fit` and rows that come in chunks, in one pass. Sparse rows of more than 500 columns are solved by LSMR.
    Where l2 = 0 this is the best fixed predictor in hindsight of a stream.

    Parameters
    ----------
    l2 : ridge penalty, at least 0; 0 is plain least squares.
    fit_intercept : whether there is a b.
    rcond : singular values of at most rcond times the largest count as 0; None is 8 eps max(n, sqrt(rows)).
    tol : of LSMR, which stops where |M^T r| <= tol |M| |r|, r the residual.
    verbose : show a bar on the error stream while reading chunks.

    Attributes
    ----------
    coef_, intercept_ : w and b.
    rank_ : of the rows, less their mean where there is an intercept; None from LSMR.
    condition_ : largest over smallest singular value that counts, with the penalty; an estimate from LSMR.
    loss_ : Sigma c_t (w.x_t + b - y_t)^2.
    method_ : "cholesky", "qr" or "lsmr".

    Examples
    --------
    >>> model = LeastSquares().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(12), round(model.intercept_, 12), model.rank_
    (array([2.]), 1.0, 1)
    >>> LeastSquares(fit_intercept=False).fit([[1.0, 1.0]], [2.0]).coef_.round(12)  # the shortest of many
    array([1., 1.])
    """

    _factor: Factor | None
    _iterated: LeastSquaresSolution | None

    def __init__(
        self,
        l2: float = 0.0,
        fit_intercept: bool = True,
        *,
        rcond: float | None = None,
        tol: float = 1e-12,
        verbose: bool = False,
    ) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.rcond = rcond
        self.tol = tol
        self.verbose = verbose

    _read, _kept, _restore = OnlineEstimator._read, OnlineEstimator._kept, OnlineEstimator._restore
    _targets = OnlineRegressor._targets

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_factor")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Solve for these rows; on an error everything is as before the call.

        Parameters
        ----------
        X : rows: array, CSR matrix or dataframe; or a callable that returns an iterator of
            (X, y, sample_weight or None), for rows that do not fit in memory.
        y, sample_weight : targets, and importance of each row; not with a callable.
        """
        kept = self._kept()
        self.__dict__.pop("_factor", None)
        try:
            self._options()
            if callable(X):
                with progress(self.verbose, "rows", None) as tell:
                    for rows, target, weight in X():
                        self._add(rows, target, weight)
                        tell(rows.shape[0])
                if not hasattr(self, "_factor"):
                    raise ValueError("the source gave no chunk of rows")
            else:
                self._solve(X, y, sample_weight)
            self._solution()  # now, so that an error comes from here
        except BaseException:
            self._restore(kept)
            raise
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take in more rows by a blocked QR factorisation; chunks give the same bits as the whole."""
        kept = self._kept()
        try:
            self._options()
            self._add(X, y, sample_weight)
        except BaseException:
            self._restore(kept)
            raise
        return self

    def _options(self) -> None:
        at_least_0("l2", self.l2)
        if self.rcond is not None:
            at_least_0("rcond", self.rcond)
        number("tol", self.tol, 0)

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, np.ndarray, np.ndarray | None]:
        X = self._read(X, reset, ensure_all_finite=False)
        (target,) = self._targets(X, y)
        check_targets("real", target)
        return X, target, weights_of(sample_weight, X)

    def _solve(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, target, weight = self._rows(X, y, sample_weight, reset=True)
        names = getattr(self, "feature_names_in_", None)
        self._factor, self._iterated = None, None
        check_indices(X)
        if not isinstance(X, np.ndarray) and X.shape[1] > WIDE:
            self._iterated = solve_sparse(X, target, weight, self.fit_intercept, float(self.l2), self.tol, names)
            if not self._iterated.converged:
                warnings.warn("LSMR reached its cap on iterations: raise tol", ConvergenceWarning, stacklevel=3)
            return
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are factored, which names what is wrong
            self._factor = normal_equations(Data(X, target, weight, float(self.fit_intercept)))
        if self._factor is None:
            self._factor = Factor(X.shape[1], self.fit_intercept)
            self._factor.add(X, target, weight, names)

    def _add(self, X: Any, y: Any, sample_weight: Any) -> None:
        fresh = not hasattr(self, "_factor")
        X, target, weight = self._rows(X, y, sample_weight, reset=fresh)
        check_indices(X)
        if fresh:
            self._factor, self._iterated = Factor(X.shape[1], self.fit_intercept), None
        if self._factor is None:
            raise ValueError("a fit by iteration keeps no factor of its rows to add to: begin with partial_fit")
        if self._factor.intercept != bool(self.fit_intercept):
            raise ValueError(f"the rows so far were taken in with fit_intercept={self._factor.intercept}")
        self._factor.add(X, target, weight, getattr(self, "feature_names_in_", None))

    def _solution(self) -> LeastSquaresSolution:
        check_is_fitted(self)
        if self._iterated is not None:
            return self._iterated
        assert self._factor is not None
        return self._factor.solve(float(self.l2), self.rcond)

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features."""
        return self._solution().coef.copy()

    @property
    def intercept_(self) -> float:
        """The intercept; 0 without one."""
        return self._solution().intercept

    @property
    def rank_(self) -> int | None:
        """The rank of the rows; None where it was not found."""
        return self._solution().rank

    @property
    def condition_(self) -> float:
        """Largest over smallest singular value that counts."""
        return self._solution().condition

    @property
    def loss_(self) -> float:
        """The least sum of weighted squares."""
        return self._solution().loss

    @property
    def method_(self) -> str:
        """How it was found."""
        return self._solution().method

    def predict(self, X: Any) -> np.ndarray:
        """w.x + b for each row."""
        found = self._solution()
        return np.asarray(self._read(X, reset=False) @ found.coef + found.intercept)


def check_indices(X: Any) -> None:
    """Refuse a sparse matrix with a column index outside its width: loops over it would leave their memory."""
    if isinstance(X, np.ndarray) or not X.indices.size:
        return
    if X.indices.min() < 0 or X.indices.max() >= X.shape[1]:
        bad = int(np.flatnonzero((X.indices < 0) | (X.indices >= X.shape[1]))[0])
        explain(X, int(np.searchsorted(X.indptr, bad, "right")) - 1, 0.0, 0.0, 0.0, X.shape[1], None)
