"""Recalibration by isotonic regression, of forecasts or of a classifier's probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, indexable

from ..batch.isotonic import check_knots, interpolate, isotonic
from ..errors import RowError
from ..forecast.scores import Score, numbers, same_length, weights
from ..rows.labels import class_probabilities
from ..storage.registry import want
from ..validation import whole
from .mixins.estimator import Estimator
from .mixins.labels import LabelsMixin
from .mixins.rows import read_weights, require_y

Knots = tuple[np.ndarray, np.ndarray]


def _wraps(estimator: Any) -> bool:
    if estimator.classifier is None:
        raise AttributeError("there is no classifier: Calibrator(classifier) has classes, Calibrator() transforms")
    return True


def _bare(estimator: Any) -> bool:
    if estimator.classifier is not None:
        raise AttributeError("with a classifier there is predict_proba; Calibrator() alone transforms forecasts")
    return True


class Calibrator(Estimator, LabelsMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Recalibrate forecasts, or the probabilities of a classifier, by isotonic regression of outcomes on forecasts.

    Among all nondecreasing functions of the forecast, the fit minimises every proper loss on the training rows [2]_. It
    is linear between the forecasts seen in training and constant beyond them. With more than two classes, each class is
    calibrated against the rest, and the probabilities are normalised to sum to 1 [1]_.

    Parameters
    ----------
    classifier : estimator or None, default=None
        None calibrates forecasts themselves: ``fit(forecasts, outcomes)``, then ``transform``. Otherwise any classifier
        with `predict_proba`: ``fit(X, y)`` learns the calibration from cross-validated predictions, and `predict_proba`
        is calibrated. To calibrate a classifier that is already trained, pass ``FrozenEstimator(classifier)`` and give
        `fit` rows that it has not learnt from.
    folds : int, default=5
        Number of cross-validation folds for a classifier, at least 2.

    Attributes
    ----------
    knots_ : list of tuple of two ndarray
        The calibration curves as pairs of forecasts and calibrated values: one curve for two classes, otherwise one per
        class.
    classifier_ : estimator
        The classifier fitted to all rows; only with a classifier.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted; only with a classifier.
    n_features_in_ : int
        Number of features: 1 for forecasts.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the classifier has them.

    References
    ----------
    .. [1] B. Zadrozny and C. Elkan, "Transforming classifier scores into accurate multiclass probability estimates",
       KDD 2002.
    .. [2] T. Dimitriadis, T. Gneiting and A. I. Jordan, "Stable reliability diagrams for probabilistic classifiers",
       Proceedings of the National Academy of Sciences 118(8), 2021.

    Examples
    --------
    >>> from hindsight import Calibrator
    >>> Calibrator().fit([0.1, 0.4, 0.4, 0.8], [0, 1, 0, 1]).transform([0.1, 0.4, 0.6])
    array([0.  , 0.5 , 0.75])
    """

    def __init__(self, classifier: Any = None, *, folds: int = 5) -> None:
        self._take_parameters(locals())

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        classifier, knots, classes = fields["classifier"], fields.get("knots_"), fields.get("classes_")
        want(classifier is None or hasattr(classifier, "predict_proba"), "`classifier` must be a classifier")
        if knots is None:
            return
        count = 1 if classes is None or classes.size == 2 else classes.size
        want(isinstance(knots, list) and len(knots) == count, f"`knots_` must be {count} curves")
        for curve in knots:
            check_knots(curve)
        known = hasattr(fields.get("classifier_"), "predict_proba") and classes is not None
        want(known if classifier is not None else "classifier_" not in fields, "`classifier_` must be the classifier")

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
        """Fit to forecasts and outcomes 0 or 1; with a classifier, to rows and labels.

        Parameters
        ----------
        X : array-like of shape (n_rows,) or (n_rows, 1), or rows as the classifier takes them
            Forecasts; with a classifier, rows.
        y : array-like of shape (n_rows,)
            Outcomes 0 or 1; with a classifier, labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights; None is 1.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        require_y(self, y)
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
        """Return the calibrated forecasts. Only without a classifier.

        Parameters
        ----------
        X : array-like of shape (n_rows,) or (n_rows, 1)
            Forecasts.

        Returns
        -------
        calibrated : ndarray of the same shape
        """
        check_is_fitted(self)
        calibrated = interpolate(*self.knots_[0], _forecasts(X))
        return calibrated if np.ndim(X) == 1 else calibrated[:, None]

    @available_if(_bare)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Fit, and return the calibrated forecasts of the same rows. Only without a classifier.

        Parameters
        ----------
        X : array-like of shape (n_rows,) or (n_rows, 1)
            Forecasts.
        y : array-like of shape (n_rows,)
            Outcomes 0 or 1.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights; None is 1.

        Returns
        -------
        calibrated : ndarray of the same shape as X
        """
        return np.asarray(self.fit(X, y, sample_weight).transform(X))

    # ---- around a classifier

    def _fit_classifier(self, X: Any, y: Any, sample_weight: Any) -> Self:
        from sklearn.model_selection import cross_val_predict

        whole("folds", self.folds, 2)
        X, y = indexable(X, y)
        y = self._labels(X, y)
        if y.size == 0:
            raise ValueError("there is no row: got 0 samples")
        weight = read_weights(sample_weight, y)
        params = {} if weight is None else {"sample_weight": weight}
        with self._all_or_nothing():
            self._set_classes(y)
            self.classifier_ = clone(self.classifier).fit(X, y, **params)
            held_out = cross_val_predict(
                clone(self.classifier), X, y, cv=int(self.folds), method="predict_proba", params=params or None
            )
            outcomes = self._run_targets(y, "unit")
            forecasts = held_out.T[-len(outcomes) :]
            self.knots_ = [_knots(h, outcome, weight) for h, outcome in zip(forecasts, outcomes, strict=True)]
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self.classifier_, name):
                    setattr(self, name, getattr(self.classifier_, name))
        return self

    @available_if(_wraps)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return calibrated probabilities of the classes. Only with a classifier.

        Parameters
        ----------
        X : rows as the classifier takes them
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class, in the order of ``classes_``.
        """
        check_is_fitted(self)
        raw = np.ascontiguousarray(self.classifier_.predict_proba(X).T, np.float64)[-len(self.knots_) :]
        columns = [interpolate(*knots, column) for knots, column in zip(self.knots_, raw, strict=True)]
        return class_probabilities(np.stack(columns, axis=1))

    @available_if(_wraps)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row. Only with a classifier.

        Parameters
        ----------
        X : rows as the classifier takes them
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @available_if(_wraps)  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of the predicted classes. Only with a classifier.

        Parameters
        ----------
        X : rows as the classifier takes them
            Rows.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights; None is 1.

        Returns
        -------
        accuracy : float
        """
        return float(ClassifierMixin.score(self, X, y, sample_weight))


def _forecasts(X: Any) -> np.ndarray:
    given = np.asarray(X)
    if given.ndim == 2:
        if given.shape[1] != 1:
            raise ValueError(f"forecasts must be one per row, not {given.shape[1]} columns: predict_proba(X)[:, 1]")
        given = given[:, 0]
    h = numbers(given, "forecast")
    if not np.isfinite(h).all():
        row = int((~np.isfinite(h)).argmax())
        raise RowError(row, f", column 'forecast': {float(h[row])!r} must be finite")
    return h


def _knots(h: np.ndarray, outcome: np.ndarray, weight: np.ndarray | None) -> Knots:
    """The calibration curve: forecasts and their calibrated values."""
    if h.size == 0 or (weight is not None and not weight.any()):
        raise ValueError("there is no row with a weight above 0")
    return isotonic(h, outcome, weight).pools.knots()
