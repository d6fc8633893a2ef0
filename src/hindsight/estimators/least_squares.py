"""Exact least squares."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..batch.least_squares import Factor, LeastSquaresSolution, normal_equations, solve_sparse
from ..rows.data import Data
from ..storage.registry import want
from ..validation import at_least_0, check_targets, number
from .mixins.estimator import Estimator
from .mixins.rows import read_weights
from .progress import progress_bar

WIDE = 500  # columns above which sparse rows are solved by iteration


def of_solution(name: str, words: str) -> property:
    """An attribute of the solution."""
    return property(lambda model: getattr(model._solution(), name), doc=words)


class LeastSquares(Estimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Exact linear least squares: the w and b that minimise sum_t c_t (w.x_t + b - y_t)^2 + l2 |w|^2.

    The solution is unique if the rows have full column rank; otherwise it is the minimum-norm w, as given by the
    pseudoinverse. The intercept enters neither the penalty nor this norm. With ``l2=0`` the solution is the best fixed
    predictor of a stream in hindsight.

    For dense rows `fit` uses the Gram matrix, with iterative refinement, if its condition number allows it, and
    otherwise a blocked QR factorisation [1]_. `partial_fit`, and `fit` on rows that come in chunks, use the QR
    factorisation in one pass. Sparse rows of more than 500 columns are solved by LSMR [2]_.

    Parameters
    ----------
    l2 : float, default=0.0
        Ridge penalty, at least 0; 0 is plain least squares.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    rcond : float or None, default=None
        Singular values of at most ``rcond`` times the largest are treated as 0; None is 8 eps max(n, sqrt(rows)).
    tol : float, default=1e-12
        Tolerance of LSMR, which stops when |M^T r| <= tol |M| |r|, where r is the residual.
    verbose : bool, default=False
        Whether to show a progress bar on stderr while reading chunks.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        The weights w.
    intercept_ : float
        The intercept b; 0 without one.
    rank_ : int or None
        Rank of the rows, centred if there is an intercept; None from LSMR.
    condition_ : float
        Ratio of the largest singular value to the smallest one that is not treated as 0, including the penalty; from
        LSMR an estimate.
    loss_ : float
        The minimal weighted sum of squares, without the penalty.
    method_ : {"cholesky", "qr", "lsmr"}
        The method that was used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition, Johns Hopkins University Press, 2013.
    .. [2] D. C.-L. Fong and M. Saunders, "LSMR: an iterative algorithm for sparse least-squares problems", SIAM Journal
       on Scientific Computing 33(5), 2011.

    Examples
    --------
    >>> from hindsight import LeastSquares
    >>> model = LeastSquares().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(12), round(model.intercept_, 12), model.rank_
    (array([2.]), 1.0, 1)
    >>> LeastSquares(fit_intercept=False).fit([[1.0, 1.0]], [2.0]).coef_.round(12)  # the shortest of many
    array([1., 1.])
    """

    _takes_sparse = True
    _factor: Annotated[Factor | None, "a factor"]
    _iterated: Annotated[LeastSquaresSolution | None, "a solution"]
    l2: Annotated[float, "a number"]
    rcond: Annotated[float | None, "a number"]
    tol: Annotated[float, "a number"]

    def __init__(
        self,
        l2: float = 0.0,
        fit_intercept: bool = True,
        *,
        rcond: float | None = None,
        tol: float = 1e-12,
        verbose: bool = False,
    ) -> None:
        self._take_parameters(locals())

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        if "_factor" not in fields:
            return
        factor, found, features = fields["_factor"], fields["_iterated"], fields.get("n_features_in_")
        want(factor is not None or found is not None, "there is no solution")
        sizes = [*([] if factor is None else [factor.features]), *([] if found is None else [found.coef.size])]
        want(sizes == [features] * len(sizes), f"a solution has {sizes[0]} features, `n_features_in_` is {features!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_factor")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Solve for these rows; if it raises, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features), or callable
            Rows; or a callable that returns an iterator of (X, y, sample_weight or None), for rows that do not fit in
            memory.
        y : array-like of shape (n_rows,), default=None
            Targets; None with a callable.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row; None is 1.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with self._all_or_nothing():
            self.__dict__.pop("_factor", None)
            self._options()
            if callable(X):
                self._read_chunks(X)
            else:
                self._solve(X, y, sample_weight)
            self._solution()  # now, so that an error comes from here
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows by a blocked QR factorisation; the result does not depend, to the bit, on how rows are split into
        chunks.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row; None is 1.

        Returns
        -------
        self : object
            The estimator.
        """
        with self._all_or_nothing():
            self._options()
            self._add(X, y, sample_weight)
        return self

    def _read_chunks(self, chunks: Any) -> None:
        with progress_bar(self.verbose, "rows", None) as update:
            for rows, target, weight in chunks():
                self._add(rows, target, weight)
                update(advance=rows.shape[0])
        if not hasattr(self, "_factor"):
            raise ValueError("the source gave no chunk of rows")

    def _options(self) -> None:
        at_least_0("l2", self.l2)
        if self.rcond is not None:
            at_least_0("rcond", self.rcond)
        number("tol", self.tol, 0)

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, np.ndarray, np.ndarray | None]:
        X = self._read(X, reset, ensure_all_finite=False)
        target = self._target(X, y)
        check_targets("real", target)
        return X, target, read_weights(sample_weight, X)

    def _solve(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, target, weight = self._rows(X, y, sample_weight, reset=True)
        names = self._feature_names
        self._factor, self._iterated = None, None
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
        if fresh:
            self._factor, self._iterated = Factor(X.shape[1], self.fit_intercept), None
        if self._factor is None:
            raise ValueError("a fit by iteration keeps no factor of its rows to add to: begin with partial_fit")
        if self._factor.intercept != bool(self.fit_intercept):
            raise ValueError(f"the rows so far were taken in with fit_intercept={self._factor.intercept}")
        self._factor.add(X, target, weight, self._feature_names)

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

    intercept_ = of_solution("intercept", "The intercept; 0 without one.")
    rank_ = of_solution("rank", "The rank of the rows; None if it is not known.")
    condition_ = of_solution(
        "condition", "Ratio of the largest singular value to the smallest one that is not treated as 0."
    )
    loss_ = of_solution("loss", "The minimal weighted sum of squares.")
    method_ = of_solution("method", "The method that was used.")

    def predict(self, X: Any) -> np.ndarray:
        """Return w.x + b for each row.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        predictions : ndarray of shape (n_rows,)
        """
        found = self._solution()
        return np.asarray(self._read(X, reset=False) @ found.coef + found.intercept)
