"""The discriminative approach of N0 at its simplest: a height above which a person is called male."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import type_of_target, unique_labels
from sklearn.utils.validation import check_is_fitted

from ..errors import RowError
from .base import SaveMixin
from .classify import OnlineClassifier
from .generative import matrix


class ThresholdClassifier(SaveMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """The threshold on one feature that errs least on the rows given: exact empirical risk minimisation.

    Of the n features looked at, either side may be either class. On i.i.d. rows, with probability 1 − δ and for all
    thresholds, sides and features at once, |R − R̂| ≤ √(2 ln(4n/δ)/m): the errors are a sum of two (sub-)distribution
    functions, each within √(ln(2/δ')/(2m)) of its sample's (DKW), and a union of 2n of them. i.i.d. no data can show.

    Ties go to the lowest feature, then to classes_[1] above the threshold, then to the smallest threshold. It lies
    midway between two values seen, or at −inf or inf where one class for all errs least.

    Parameters
    ----------
    feature : the place or the name of the feature, chosen beforehand (then n = 1); None takes the best of all.
    delta : δ, between 0 and 1.

    Attributes
    ----------
    feature_, threshold_, above_ : the feature, the threshold, and the class of values above it.
    errors_, risk_, bound_ : mistakes on the rows, their share R̂, and R̂ + √(2 ln(4n/δ)/m).

    Examples
    --------
    >>> model = ThresholdClassifier().fit([[160.0], [165.0], [175.0], [180.0]], list("ffmm"))
    >>> model.threshold_, model.above_, model.errors_
    (170.0, 'm', 0)
    """

    classes_: np.ndarray
    n_features_in_: int

    def __init__(self, feature: int | str | None = None, *, delta: float = 0.05) -> None:
        self.feature = feature
        self.delta = delta

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # one threshold on one feature is all it has
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Find the threshold; on an error everything is as before the call."""
        kept = dict(self.__dict__)
        try:
            return self._fit(X, y)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(kept)
            raise

    def _fit(self, X: Any, y: Any) -> Self:
        if not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta must lie between 0 and 1, got {self.delta!r}")
        X = matrix(self, X, reset=True)
        finite(X)
        y = OnlineClassifier._labels(self, X, y)
        self.classes_ = unique_labels(y)
        if len(self.classes_) > 2:
            kind = type_of_target(y, input_name="y")
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        places = range(X.shape[1]) if self.feature is None else [self._place()]
        ones = y == self.classes_[-1] if len(self.classes_) == 2 else np.zeros(len(y), bool)
        best: tuple[int, int, bool, float] | None = None
        for j in places:
            for above in (True, False):
                errors, threshold = least(X[:, j], ones if above else ~ones)
                if best is None or errors < best[0]:
                    best = errors, j, above, threshold
        assert best is not None
        self.errors_, self.feature_, above, self.threshold_ = best
        self.above_ = self.classes_.item(-1 if above else 0)
        self._above, self._below = (self.classes_[-1], self.classes_[0])[:: 1 if above else -1]
        self.risk_ = self.errors_ / len(y)
        self.bound_ = self.risk_ + math.sqrt(2.0 * math.log(4.0 * len(places) / self.delta) / len(y))
        return self

    def _place(self) -> int:
        names = getattr(self, "feature_names_in_", np.array([])).tolist()
        if isinstance(self.feature, str):
            if self.feature not in names:
                raise ValueError(f"there is no feature {self.feature!r} (features: {names or 'without names'})")
            return int(names.index(self.feature))
        if not isinstance(self.feature, (int, np.integer)) or not 0 <= self.feature < self.n_features_in_:
            raise ValueError(f"feature must be a name or lie in 0..{self.n_features_in_ - 1}, got {self.feature!r}")
        return int(self.feature)

    def decision_function(self, X: Any) -> np.ndarray:
        """How far the feature is on the side of classes_[1]: above 0 there, at most 0 on the other."""
        check_is_fitted(self, "threshold_")
        X = matrix(self, X, reset=False)
        finite(X)
        x = X[:, self.feature_].astype(np.float64)
        high = x > self.threshold_
        with np.errstate(invalid="ignore"):
            far = np.abs(x - self.threshold_)
        far = np.where(np.isfinite(far), np.maximum(far, np.finfo(float).tiny), np.finfo(float).max)
        return np.asarray(np.where(high == (self._above == self.classes_[-1]), far, -far))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        high = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[np.where(high, len(self.classes_) - 1, 0)])


def least(x: np.ndarray, ones: np.ndarray) -> tuple[int, float]:
    """The fewest errors of "one above the threshold", and the smallest threshold that has them."""
    order = np.argsort(x, kind="stable")
    x, ones = x[order].astype(np.float64), ones[order]
    # threshold after the k smallest: ones at or below it and zeros above it are wrong
    errors = np.concatenate([[0], np.cumsum(np.where(ones, 1, -1))]) + int((~ones).sum())
    allowed = np.concatenate([[True], x[1:] > x[:-1], [True]])
    k = int(np.flatnonzero(allowed)[errors[allowed].argmin()])
    if k in (0, x.size):
        return int(errors[k]), -math.inf if k == 0 else math.inf
    low, high = float(x[k - 1]), float(x[k])
    middle = low + 0.5 * (high - low) if high - low < math.inf else 0.5 * low + 0.5 * high
    return int(errors[k]), middle if low <= middle < high else low


def finite(X: np.ndarray) -> None:
    """One error for the first value that is not finite."""
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0].tolist()
        value = "NaN" if np.isnan(X[row, column]) else repr(float(X[row, column]))
        raise RowError(row, f", column {column}: value {value} is not finite")
