"""Online classifiers: two classes with one run, more with one run a class over the same blocks of rows."""

from __future__ import annotations

import functools
import operator
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .. import kernels
from ..errors import RowError
from ..online.learners import Learner, descent, perceptron, winnow
from .base import FitMixin, OnlineEstimator
from .regress import COMMON


class OnlineClassifier(FitMixin, ClassifierMixin, OnlineEstimator):  # type: ignore[misc]
    """Base of the classifiers. classes_[0] is -1 and classes_[1] is 1; more classes are each 1 against the rest."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one pass in the given order promises mistakes, not a score
        return tags

    def _labels(self, X: Any, y: Any, known: bool = False) -> np.ndarray:
        """The labels as an array; with `known` classes, whether they are labels at all shows by itself."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = np.asarray(column_or_1d(y, warn=True))
        check_consistent_length(X, y)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y))[0])
            raise RowError(row, f": label {y[row]} is not finite")
        if not known:
            check_classification_targets(y)
        return y

    def _targets(self, y: np.ndarray) -> list[np.ndarray]:
        """For each run, its labels as the rule takes them; every label must be one of the classes."""
        low = 0.0 if self.runs_[0].learner.targets == "unit" else -1.0
        is_class = [y == label for label in self.classes_]
        found = functools.reduce(operator.or_, is_class)
        if not np.all(found):
            row = int(np.flatnonzero(~found)[0])
            raise RowError(row, f": class {y[row].item()!r} was not declared (classes={self.classes_.tolist()})")
        return [(1.0 - low) * ours + low for ours in (is_class[1:] if len(self.runs_) == 1 else is_class)]

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        return self._targets(self._labels(X, y))

    def _run_labels(self) -> list[str | None]:
        return [None] if len(self.runs_) == 1 else [str(label) for label in self.classes_]

    def _declare(self, classes: Any, features: int) -> None:
        self.classes_ = unique_labels(classes)
        if len(self.classes_) < 2:
            raise ValueError(f"there must be at least two classes, got one class: {self.classes_.item(0)!r}")
        self._begin(features, 1 if len(self.classes_) == 2 else len(self.classes_))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        passes = self._passes()
        X = self._matrix(X, reset=True)
        y = self._labels(X, y)
        self._declare(y, X.shape[1])
        self._play(X, self._targets(y), sample_weight, passes)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from these rows, once over; on an error everything is as before the call.

        The first call declares all classes (without `classes`, those in y).
        """
        kept = self._kept()
        try:
            fresh = not self.__sklearn_is_fitted__()
            X = self._matrix(X, reset=fresh)
            y = self._labels(X, y, known=not fresh or classes is not None)
            if fresh:
                self._declare(y if classes is None else classes, X.shape[1])
            elif classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
                raise ValueError(f"classes={classes!r} is not the same as declared before: {self.classes_.tolist()}")
            self._play(X, self._targets(y), sample_weight, 1)
        except BaseException:
            self._restore(kept)
            raise
        return self

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features, a row a run."""
        return self._coef()[:, : self.n_features_in_]

    def decision_function(self, X: Any) -> np.ndarray:
        """Margins: for two classes one a row (above 0 is classes_[1]), otherwise one a class."""
        z = self._margins(X)
        if len(self.classes_) == 2:
            return z[:, 0] if z.shape[1] == 1 else z[:, 1] - z[:, 0]
        return z

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        z = self.decision_function(X)
        return np.asarray(self.classes_[(z > 0).astype(int) if z.ndim == 1 else z.argmax(axis=1)])

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Self:
        """Play one row, a dict of names to values or a 1-D array; on an error everything is as before it.

        A class never seen starts a one-vs-rest learner of its own.
        """
        kept = None
        if not self.__sklearn_is_fitted__() or y not in self._place():
            kept = self._kept()
        try:
            if not self.__sklearn_is_fitted__():
                self._first_row(x, 1)
                self.classes_ = np.array([y])
            elif kept is not None:
                self._join(y)
            low = 0.0 if self.runs_[0].learner.targets == "unit" else -1.0
            place = self._place()[y]
            count = len(self.runs_)
            targets = [
                1.0 if place == (k if count > 1 or len(self.classes_) == 1 else 1) else low for k in range(count)
            ]
            self._learn_one(x, targets, weight)
        except BaseException:
            if kept is not None:
                self._restore(kept)
            raise
        return self

    def _place(self) -> dict[Any, int]:
        place = getattr(self, "_places", None)
        if place is None or place[0] is not self.classes_:
            place = self._places = (self.classes_, {label: k for k, label in enumerate(self.classes_.tolist())})
        return place[1]

    def _join(self, label: Any) -> None:
        """Give a new class its learner. Two classes share one run, of classes_[1]; a third makes it one each."""
        runs = list(self.runs_)
        if self.start is not None:
            raise ValueError(f"class {label!r} is new, but start gives the weights of {len(runs)} learners")
        if len(self.classes_) == 1 and not isinstance(runs[0].learner.geometry, kernels.Simplex):
            first = self.classes_.item(0)
            self.classes_ = np.array(sorted((first, label)))
            if first < label:
                self.runs_ = [runs[0].mirrored()]
            return
        if len(runs) == 1 and len(self.classes_) == 2:
            runs.insert(0, runs[0].mirrored())
        features = runs[0].v.shape[1] - self.fit_intercept
        runs.append(self._fresh(runs[0].learner, features))
        classes = np.array([*self.classes_.tolist(), label])
        order = np.argsort(classes, kind="stable")
        self.classes_, self.runs_ = classes[order], [runs[k] for k in order]

    def predict_one(self, x: Any) -> Any:
        """The class of one row; a name never seen has weight 0."""
        z = self._margins_one(x)
        if len(z) == 1 and len(self.classes_) == 2:
            return self.classes_.item(int(z[0] > 0))
        return self.classes_.item(max(range(len(z)), key=z.__getitem__))


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic":
        raise AttributeError(f"probabilities need loss='logistic', not {estimator.loss!r}")
    return True


class PerceptronClassifier(OnlineClassifier):
    """The perceptron (N2): w += y x whenever y (w.x) <= 0; a zero margin is a mistake.

    It makes at most (X2 |u|)^2 mistakes for any u with y_t u.x_t >= 1 throughout, and
    M <= ((a + sqrt(a^2 + 4H))/2)^2 for every u, with a = X2 |u| and H its hinge loss over the mistakes.

    Parameters
    ----------

    Examples
    --------
    >>> model = PerceptronClassifier(fit_intercept=False).fit([[1.0, 0.0], [0.0, 1.0]], ["yes", "no"])
    >>> model.predict([[2.0, 1.0]])
    array(['yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        average: str | None = None,
        fit_intercept: bool = True,
        passes: int = 1,
        start: Any = None,
        keep_margins: bool = False,
    ) -> None:
        self.average = average
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.start = start
        self.keep_margins = keep_margins

    def _learner(self) -> Learner:
        return perceptron()


class WinnowClassifier(OnlineClassifier):
    """Winnow (N3): multiply w_i by e^(eta y x_i) on a mistake and normalise; balanced for signed weights.

    With |x|_inf <= 1 and a u in the simplex of margin delta it makes at most
    RE(u||w_1)/(eta delta - ln cosh eta) mistakes, 2 ln N/delta^2 at N3's eta: many features cost little.

    Parameters
    ----------
    eta : rate, above 0.
    margin : a margin delta between 0 and 1 that sets N3's eta = ln((1 + delta)/(1 - delta))/2.
    balanced : signed weights (N3's doubled features) or, if False, weights on the simplex.
    features : names of the features, needed before dicts are learnt one at a time.

    Examples
    --------
    >>> WinnowClassifier(margin=0.5, fit_intercept=False).fit([[1, -1], [-1, 1]], [1, 0]).coef_.round(3)
    array([[ 0.25, -0.25]])
    """

    def __init__(
        self,
        eta: float = 0.1,
        margin: float | None = None,
        balanced: bool = True,
        *,
        features: Any = None,
        power: float = 0.0,
        rates: Any = None,
        average: str | None = None,
        fit_intercept: bool = True,
        passes: int = 1,
        start: Any = None,
        keep_margins: bool = False,
    ) -> None:
        self.eta = eta
        self.margin = margin
        self.balanced = balanced
        self.features = features
        self.power = power
        self.rates = rates
        self.average = average
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.start = start
        self.keep_margins = keep_margins

    def _learner(self) -> Learner:
        return winnow(self.eta, self.margin, self.balanced, self.power)


class DescentClassifier(OnlineClassifier):
    """Online gradient descent or exponentiated gradient on a general loss of labels (N0, N2).

    The explicit step promises Sigma loss(w_t) - Sigma loss(u) <= D(u, w_1)/eta + (eta/2) Sigma |g_t|*^2 for every u,
    with the gradients really met. ``DescentClassifier("perceptron", eta=1)`` is the perceptron.

    Parameters
    ----------
    loss : "logistic", "hinge", "perceptron", "square" or "absolute".
    geometry : "euclidean", "simplex" or "balanced" (signed weights of L1 norm `radius`).
    eta : rate, above 0.
    update : "explicit" or "implicit".
    radius : of the multiplicative geometries.
    features : names of the features, needed before dicts are learnt one at a time in a multiplicative geometry.

    Examples
    --------
    >>> model = DescentClassifier(eta=1.0, fit_intercept=False).fit([[1.0], [-1.0]], [1, 0])
    >>> model.predict_proba([[0.0]])
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        loss: str = "logistic",
        geometry: str = "euclidean",
        eta: float = 0.1,
        update: str = "explicit",
        *,
        radius: float = 1.0,
        features: Any = None,
        power: float = 0.0,
        rates: Any = None,
        average: str | None = None,
        fit_intercept: bool = True,
        passes: int = 1,
        start: Any = None,
        keep_margins: bool = False,
    ) -> None:
        self.loss = loss
        self.geometry = geometry
        self.eta = eta
        self.update = update
        self.radius = radius
        self.features = features
        self.power = power
        self.rates = rates
        self.average = average
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.start = start
        self.keep_margins = keep_margins

    def _learner(self) -> Learner:
        if self.loss == "perceptron" and self.update == "implicit" and self.start is None:
            raise ValueError(
                "the implicit step on the perceptron's loss never leaves w = 0: "
                "take update='explicit', loss='hinge', or give a start"
            )
        return descent(self.loss, self.geometry, self.eta, self.update, self.radius, self.power)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes through the logistic link; one-vs-rest ones are scaled to sum to 1."""
        z = np.atleast_2d(self.decision_function(X).T).T.astype(np.float64)
        p = np.empty_like(z)
        for k in range(z.shape[1]):
            column = np.empty(len(z))
            kernels.means(self.runs_[0].learner.loss, np.ascontiguousarray(z[:, k]), column)
            p[:, k] = column
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])


for _class in (PerceptronClassifier, WinnowClassifier, DescentClassifier):
    _head, _examples = str(_class.__doc__).split("\n\n    Examples\n")
    _common = COMMON if "eta :" in _head else COMMON[COMMON.index("    average") :]
    _class.__doc__ = _head + "\n" + _common.strip("\n") + "\n\n    Examples\n" + _examples
