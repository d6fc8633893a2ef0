"""The simplest discriminative classifier: a threshold on one feature."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import type_of_target, unique_labels
from sklearn.utils.validation import check_is_fitted

from ..storage.fields import is_count
from ..storage.registry import want
from .mixins.estimator import Estimator
from .mixins.labels import LabelsMixin
from .mixins.rows import check_finite


class ThresholdClassifier(LabelsMixin, Estimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Binary classifier by the threshold on one feature that makes the fewest errors on the training rows.

    This is exact empirical risk minimisation over all features, thresholds and sides [2]_: either class may be the one
    above the threshold. Ties go to the lowest feature index, then to ``classes_[1]`` above the threshold, then to the
    smallest threshold. The threshold lies midway between two observed values, or at −inf or inf if predicting one class
    for all rows is best.

    On i.i.d. rows, with probability 1 − δ and for all thresholds, sides and n features at once, the risk R and its
    estimate R̂ from m rows differ by at most √(2 ln(4n/δ)/m): the errors are a sum of two (sub-)distribution functions,
    each within √(ln(2/δ')/(2m)) of its empirical counterpart [1]_, and there are 2n of them. No data can show that rows
    are i.i.d.

    Parameters
    ----------
    feature : int, str or None, default=None
        The index or the name of the feature, chosen beforehand (then n = 1); None takes the best of all.
    delta : float, default=0.05
        δ, between 0 and 1.

    Attributes
    ----------
    feature_ : int
        Index of the feature.
    threshold_ : float
        The threshold.
    above_ : object
        The class predicted above the threshold.
    errors_ : int
        Mistakes on the training rows.
    risk_ : float
        Their fraction R̂.
    bound_ : float
        R̂ + √(2 ln(4n/δ)/m).
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted: two, or one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

    References
    ----------
    .. [1] P. Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Annals of Probability 18(3),
       1990.
    .. [2] S. Shalev-Shwartz and S. Ben-David, "Understanding Machine Learning: From Theory to Algorithms", Cambridge
       University Press, 2014, chapters 2 and 4.

    Examples
    --------
    >>> from hindsight import ThresholdClassifier
    >>> model = ThresholdClassifier().fit([[160.0], [165.0], [175.0], [180.0]], list("ffmm"))
    >>> model.threshold_, model.above_, model.errors_
    (170.0, 'm', 0)
    """

    _bounds_loss = True

    def __init__(self, feature: int | str | None = None, *, delta: float = 0.05) -> None:
        self._take_parameters(locals())

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        if "threshold_" in fields:
            place, features = fields["feature_"], fields.get("n_features_in_")
            want(is_count(place) and is_count(features) and place < features, "`feature_` must be one of the features")
            number = isinstance(fields["threshold_"], float) and fields["threshold_"] == fields["threshold_"]
            want(number and fields["classes_"].size <= 2, "`threshold_` must be a number, for at most two classes")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Find the best threshold; if it raises, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Labels of at most two classes.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with self._all_or_nothing():
            self._fit(X, y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        if not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta must lie between 0 and 1, got {self.delta!r}")
        X = self._matrix(X, reset=True)
        check_finite(X)
        y = self._labels(X, y)
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
        """Return the signed distance of the feature from the threshold: above 0 on the side of ``classes_[1]``,
        otherwise at most 0.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        distances : ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "threshold_")
        X = self._matrix(X, reset=False)
        check_finite(X)
        x = X[:, self.feature_].astype(np.float64)
        high = x > self.threshold_
        with np.errstate(invalid="ignore"):
            far = np.abs(x - self.threshold_)
        far = np.where(np.isfinite(far), np.maximum(far, np.finfo(float).tiny), np.finfo(float).max)
        return np.asarray(np.where(high == (self._above == self.classes_[-1]), far, -far))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
        """
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
