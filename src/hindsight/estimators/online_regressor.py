"""What online regressors share."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from ..online.run import unchanged_on_error
from ..validation import whole
from .mixins.linear import LinearRegressorMixin
from .mixins.runs import CoverageMixin
from .online import OnlineEstimator


class OnlineRegressor(CoverageMixin, LinearRegressorMixin, OnlineEstimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the online regressors: a single run on targets that are numbers."""

    def _fit(self, X: Any, y: Any, sample_weight: Any, passes: int | None = None) -> None:
        passes = whole("passes", self.passes) if passes is None else passes
        X = self._matrix(X, reset=True)
        targets = self._seen(X, y)
        self._begin(X.shape[1], 1)
        self._play(X, targets, sample_weight, passes)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Continue learning from these rows, once over; if it raises, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows, in the order in which they are learnt.
        y : array-like of shape (n_rows,)
            Targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, which multiplies its loss; None is 1.

        Returns
        -------
        self : object
            The estimator.
        """
        if self.__sklearn_is_fitted__():
            X = self._matrix(X, reset=False)
            targets = self._seen(X, y)
            with unchanged_on_error(self.runs_):
                self._play(X, targets, sample_weight, 1)
            self._drop_certificate()
        else:
            with self._all_or_nothing():
                self._fit(X, y, sample_weight, passes=1)
        return self

    def learn_one(self, x: Any, y: float, weight: float = 1.0) -> Self:
        """Learn one row; if it raises, the estimator is unchanged.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row: a mapping of feature names to values, or all values in order.
        y : float
            Its target.
        weight : float, default=1.0
            Its weight, which multiplies the loss.

        Returns
        -------
        self : object
            The estimator.
        """
        y = float(y)
        if not self._swiftly_learnt(self.__dict__.get("_swift"), x, y, weight):
            self._alone(self._learn_row, x, y, weight)
        return self

    def _learn_row(self, x: Any, y: float, weight: float) -> None:
        if self.__sklearn_is_fitted__():
            self._learn_one(x, [y], weight)
        else:
            with self._all_or_nothing():
                self._first_row(x, 1)
                self._learn_one(x, [y], weight)

    def predict_one(self, x: Any) -> float:
        """Return the prediction for one row.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row. Names that were never learnt are ignored.

        Returns
        -------
        prediction : float
        """
        z = self._swift_margin(self.__dict__.get("_swift"), x)
        if not -math.inf < z < math.inf:
            z = self._alone(self._margins_one, x)[0]
        mean: float = self.runs_[0].learner.loss.mean(z)
        return mean

    def predict_interval(self, X: Any) -> np.ndarray:
        """Return a prediction interval for each row.

        About the fraction `interval` of the rows is covered, whatever the rows, if each one is learnt after it was
        predicted.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        intervals : ndarray of shape (n_rows, 2)
            The lowest and the highest value; infinite if no finite interval would keep the guarantee.
        """
        half = self._tracker.half
        middle = self.predict(X)
        return np.column_stack([middle - half, middle + half])

    def predict_interval_one(self, x: Any) -> tuple[float, float]:
        """Return a prediction interval for one row.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row. Names that were never learnt are ignored.

        Returns
        -------
        low, high : float
        """
        half = self._tracker.half
        middle: float = self.predict_one(x)
        return middle - half, middle + half
