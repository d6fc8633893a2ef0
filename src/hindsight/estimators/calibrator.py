"""Recalibration by isotonic regression, of forecasts or of a classifier's probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, indexable

from ..batch.isotonic import interpolate, isotonic
from ..errors import RowError
from ..forecast.scores import Score, numbers, same_length, weights
from .base import SaveMixin

Knots = tuple[np.ndarray, np.ndarray]


def _wraps(estimator: Any) -> bool:
    if estimator.classifier is None:
        raise AttributeError("there is no classifier: Calibrator(classifier) has classes, Calibrator() transforms")
    return True


def _bare(estimator: Any) -> bool:
    if estimator.classifier is not None:
        raise AttributeError("with a classifier there is predict_proba; Calibrator() alone transforms forecasts")
    return True


class Calibrator(SaveMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Turn forecasts into calibrated ones: the isotonic fit of outcomes on forecasts (N4's PAV), ties pooled.

    Among all nondecreasing functions of the forecast it has the least loss on the rows it was fitted to, by every
    proper loss. Between the forecasts it has seen it is read on a straight line, beyond them it is level.

    Parameters
    ----------
    classifier : None to calibrate forecasts themselves: ``fit(forecasts, outcomes)``, then ``transform``. Otherwise any
        classifier with `predict_proba`: ``fit(X, y)`` calibrates what it predicts for rows held out in turn, and
        `predict_proba` is calibrated. A classifier already trained goes in as ``FrozenEstimator(classifier)``; give
        `fit` rows that it has not learnt from. With more than two classes each is calibrated against the rest, and the
        probabilities are scaled to sum to 1.
    folds : how many times rows are held out for a classifier.

    Examples
    --------
    >>> Calibrator().fit([0.1, 0.4, 0.4, 0.8], [0, 1, 0, 1]).transform([0.1, 0.4, 0.6])
    array([0.  , 0.5 , 0.75])
    """

    def __init__(self, classifier: Any = None, *, folds: int = 5) -> None:
        self.classifier = classifier
        self.folds = folds

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, TransformerTags, get_tags

        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self.classifier is None:
            tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
            tags.transformer_tags = TransformerTags()
        else:
            inner = get_tags(self.classifier)
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
            tags.input_tags = inner.input_tags
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "knots_")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to forecasts (one a row) and outcomes 0 or 1; with a classifier, to rows and labels."""
        if y is None:
            raise ValueError("Calibrator requires y to be passed, but the target y is None")
        if self.classifier is not None:
            return self._fit_classifier(X, y, sample_weight)
        h, outcome = _forecasts(X), Score().outcomes(y)
        same_length(h, outcome.size, "forecast")
        knots = _knots(h, outcome, None if sample_weight is None else weights(sample_weight, h.size))
        self.knots_: list[Knots] = [knots]
        self.n_features_in_ = 1
        return self

    @available_if(_bare)  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> np.ndarray:
        """The calibrated forecasts, shaped as they were given: one dimension, or one column."""
        check_is_fitted(self)
        calibrated = interpolate(*self.knots_[0], _forecasts(X))
        return calibrated if np.ndim(X) == 1 else calibrated[:, None]

    @available_if(_bare)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Fit, and the calibrated forecasts of the same rows."""
        return np.asarray(self.fit(X, y, sample_weight).transform(X))

    # ---- around a classifier

    def _fit_classifier(self, X: Any, y: Any, sample_weight: Any) -> Self:
        from sklearn.model_selection import cross_val_predict

        if not isinstance(self.folds, (int, np.integer)) or isinstance(self.folds, bool) or self.folds < 2:
            raise ValueError(f"folds must be a whole number, at least 2; got {self.folds!r}")
        X, y = indexable(X, y)
        y = np.asarray(column_or_1d(y, warn=True))
        if y.size == 0:
            raise ValueError("there is no row: got 0 samples")
        check_classification_targets(y)
        classes = unique_labels(y)
        if len(classes) < 2:
            raise ValueError(f"there must be at least two classes, got one class: {classes.item(0)!r}")
        c = None
        if sample_weight is not None:
            c = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        params = {} if c is None else {"sample_weight": c}
        model = clone(self.classifier).fit(X, y, **params)
        held_out = cross_val_predict(
            clone(self.classifier), X, y, cv=int(self.folds), method="predict_proba", params=params or None
        )
        which = [1] if len(classes) == 2 else range(len(classes))
        self.knots_ = [_knots(held_out[:, k], (y == classes[k]).astype(np.float64), c) for k in which]
        self.classes_, self.classifier_ = classes, model
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return self

    @available_if(_wraps)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Calibrated probabilities, a column a class."""
        check_is_fitted(self)
        raw = np.ascontiguousarray(self.classifier_.predict_proba(X).T, np.float64)
        if len(self.classes_) == 2:
            p = interpolate(*self.knots_[0], raw[1])
            return np.column_stack([1.0 - p, p])
        p = np.column_stack([interpolate(*knots, column) for knots, column in zip(self.knots_, raw, strict=True)])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / len(self.classes_))

    @available_if(_wraps)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @available_if(_wraps)  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted."""
        return float(ClassifierMixin.score(self, X, y, sample_weight))


def _forecasts(X: Any) -> np.ndarray:
    given = np.asarray(X)
    if given.ndim == 2:
        if given.shape[1] != 1:
            raise ValueError(f"forecasts must be one a row, got {given.shape[1]} columns; take predict_proba(X)[:, 1]")
        given = given[:, 0]
    h = numbers(given, "forecast")
    if not np.isfinite(h).all():
        row = int((~np.isfinite(h)).argmax())
        raise RowError(row, f", column 'forecast': {float(h[row])!r} must be finite")
    return h


def _knots(h: np.ndarray, outcome: np.ndarray, weight: np.ndarray | None) -> Knots:
    """The calibration curve: forecasts, and what they should have been."""
    if h.size == 0 or (weight is not None and not weight.any()):
        raise ValueError("there is no row with a weight above 0")
    return isotonic(h, outcome, weight).pools.knots()
