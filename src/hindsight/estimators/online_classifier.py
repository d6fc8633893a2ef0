"""What online classifiers share: one run for two classes, one run per class for more."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import unique_labels

from ..online.run import unchanged_on_error
from ..rows.labels import run_count, target_of_runs
from ..storage.fields import is_count
from ..storage.registry import want
from ..validation import whole
from .class_weights import Weigher, refuse_unknown, weight_of_each
from .mixins.linear import MarginClassifierMixin
from .mixins.rows import read_weights
from .online import OnlineEstimator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..rows.data import Data

COUNTS = ("class_counts_", "fit_counts_")  # of the rows so far, and of those of `fit`


class OnlineClassifier(MarginClassifierMixin, OnlineEstimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the online classifiers: ``classes_[1]`` is positive; more than two classes have one-vs-rest runs."""

    class_weight: Any = None  # all are 1, without the parameter
    class_counts_: np.ndarray
    fit_counts_: np.ndarray
    fit_rows_: int
    _places: tuple[np.ndarray, dict[Any, int]]  # the classes, and the place of each

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        shape = getattr(fields.get("classes_"), "shape", None)
        for name in COUNTS:
            counts = fields.get(name)
            known = isinstance(counts, np.ndarray) and counts.dtype == np.float64 and counts.shape == shape
            want(counts is None or (known and bool((counts >= 0.0).all())), f"`{name}` must have one count per class")
        want(is_count(fields.get("fit_rows_", 0)), "`fit_rows_` must be a count")

    def _targets(self, y: np.ndarray) -> list[np.ndarray]:
        """The targets of each run, as the loss takes them."""
        return self._run_targets(y, self.runs_[0].learner.targets, len(self.runs_))

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        return self._targets(self._labels(X, y))

    def _declare(self, labels: Any, features: int) -> None:
        self._set_classes(labels)
        refuse_unknown(self.class_weight, self.classes_.tolist())
        self._begin(features, run_count(len(self.classes_)))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        passes = whole("passes", self.passes)
        X = self._matrix(X, reset=True)
        y = self._labels(X, y)
        self._declare(y, X.shape[1])
        if self.class_weight is not None:
            weight = read_weights(sample_weight, X)
            codes = self._codes(y) if weight is None else self._codes(y)[weight > 0.0]
            self.fit_counts_ = np.bincount(codes, minlength=len(self.classes_)).astype(np.float64)
            self.fit_rows_ = y.size
        with self._weighed(y, sample_weight, fresh=True) as weight:
            self._play(X, self._targets(y), weight, passes)

    # ---- class weights

    def _weigher(self, fresh: bool) -> Weigher:
        """The `Weigher` of the next rows; if `fresh`, of all rows from the first one on, as they were weighted."""
        none, each = np.zeros(len(self.classes_)), weight_of_each(self.class_weight, self.classes_.tolist())
        fit_counts = getattr(self, "fit_counts_", none)
        if fresh:
            return Weigher(each, none, fit_counts, getattr(self, "fit_rows_", 0))
        return Weigher(each, getattr(self, "class_counts_", none), fit_counts)

    @contextmanager
    def _weighed(self, y: np.ndarray, weight: Any, fresh: bool = False) -> Iterator[Any]:
        """The weights of the next rows times those of their classes, which are counted if the block succeeds."""
        if self.class_weight is None:
            yield weight
            return
        weigher = self._weigher(fresh)
        yield weigher.weigh(self._codes(y), read_weights(weight, y))
        self.class_counts_ = weigher.counts

    def _data(self, k: int, X: Any, y: Any, sample_weight: Any) -> Data:
        if self.class_weight is None:
            return super()._data(k, X, y, sample_weight)
        if not callable(X):
            codes = self._codes(self._labels(X, y))
            return super()._data(k, X, y, self._weigher(fresh=True).weigh(codes, sample_weight))

        def chunks() -> Any:
            weigher = self._weigher(fresh=True)
            for rows, target, weight in X():
                yield rows, target, weigher.weigh(self._codes(self._labels(rows, target)), weight)

        return super()._data(k, chunks, None, None)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue learning from these rows, once over; if it raises, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows, in the order in which they are learnt.
        y : array-like of shape (n_rows,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All classes, declared by the first call; None takes those in y.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, which multiplies its loss; None is 1.

        Returns
        -------
        self : object
            The estimator.
        """
        if self.__sklearn_is_fitted__():
            X = self._matrix(X, reset=False)
            y = self._labels(X, y, known=True)
            self._same_classes(classes)
            with unchanged_on_error(self.runs_), self._weighed(y, sample_weight) as weight:
                self._play(X, self._targets(y), weight, 1)
            self._drop_certificate()
        else:
            with self._all_or_nothing():
                X = self._matrix(X, reset=True)
                y = self._labels(X, y, known=classes is not None)
                self._declare(y if classes is None else classes, X.shape[1])
                with self._weighed(y, sample_weight) as weight:
                    self._play(X, self._targets(y), weight, 1)
        return self

    # ---- one row at a time

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Self:
        """Learn one row; if it raises, the estimator is unchanged.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row: a mapping of feature names to values, or all values in order.
        y : object
            Its label. A new class starts its own one-vs-rest run.
        weight : float, default=1.0
            Its weight, which multiplies the loss.

        Returns
        -------
        self : object
            The estimator.
        """
        one = self.__dict__.get("_swift")  # before the classes are looked at: it is dead once they have changed
        known = one is not None and self.class_weight is None and y in self._place()
        if not known or not self._swiftly_learnt(one, x, self._targets_of(y)[0], weight):
            self._alone(self._learn_row, x, y, weight)
        return self

    def _learn_row(self, x: Any, y: Any, weight: float) -> None:
        if self.__sklearn_is_fitted__() and y in self._place():
            self._learn_weighed(x, y, weight)
            return
        with self._all_or_nothing():
            label = self._labels([x], [y])
            if self.__sklearn_is_fitted__():
                unique_labels(self.classes_, label)  # refuses text beside numbers
                before = self.classes_
                self._add_class(y)
                places = np.searchsorted(self.classes_, before)
                for name in {*COUNTS} & {*self.__dict__}:
                    counts = np.zeros(len(self.classes_))
                    counts[places] = self.__dict__[name]
                    setattr(self, name, counts)
            else:
                self._first_row(x, 1)
                self.classes_ = label
            self._learn_weighed(x, y, weight)

    def _learn_weighed(self, x: Any, y: Any, weight: float) -> None:
        """Learn one row of a known class, by the weight of that class."""
        targets = self._targets_of(y)
        if self.class_weight is None:
            self._learn_one(x, targets, weight)
            return
        self._check_one(targets, weight)
        weigher = self._weigher(fresh=False)
        own = weigher.weigh(np.array([self._place()[y]]), np.array([weight], np.float64))
        self._learn_one(x, targets, float(own[0]))
        self.class_counts_ = weigher.counts

    def _targets_of(self, y: Any) -> list[float]:
        """For each run, the target of one label."""
        runs = self.runs_
        return target_of_runs(self._place()[y], len(self.classes_), runs[0].learner.targets, len(runs))

    def _place(self) -> dict[Any, int]:
        """The index of each class, cached until the classes change."""
        kept = getattr(self, "_places", None)
        if kept is None or kept[0] is not self.classes_:
            kept = self._places = (self.classes_, {label: k for k, label in enumerate(self.classes_.tolist())})
        return kept[1]

    def _add_class(self, label: Any) -> None:
        """Add a run for a new class. Two classes share one run, of ``classes_[1]``; three or more have one each."""
        runs = list(self.runs_)
        if self.start is not None:
            raise ValueError(f"class {label!r} is new, but start gives the weights of {len(runs)} learners")
        if len(self.classes_) == 1 and runs[0].learner.geometry.signed:
            first = self.classes_.item(0)
            self.classes_ = np.array(sorted((first, label)))
            if first < label:
                self.runs_ = [runs[0].mirrored()]
            return
        if len(runs) == 1 and len(self.classes_) == 2:
            runs.insert(0, runs[0].mirrored())
        runs.append(self._new_run(runs[0].learner, runs[0].features))
        classes = np.array([*self.classes_.tolist(), label])
        order = np.argsort(classes, kind="stable")
        kept = next((run.coverage for run in self.runs_ if run.coverage is not None), None)
        self.classes_, self.runs_ = classes[order], [runs[k] for k in order]
        if kept is not None:
            self.runs_[0].coverage = kept

    def _margins_and_classes(self, x: Any) -> tuple[list[float], np.ndarray]:
        """The margins of one row, and the classes that they are of."""
        one = self.__dict__.get("_swift")  # first, as in `learn_one`
        classes = self.__dict__.get("classes_")
        z = self._swift_margin(one, x)
        if classes is not None and -math.inf < z < math.inf:
            return [z], classes
        found: tuple[list[float], np.ndarray] = self._alone(lambda: (self._margins_one(x), self.classes_))
        return found

    def predict_one(self, x: Any) -> Any:
        """Return the predicted class of one row.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row. Names that were never learnt are ignored.

        Returns
        -------
        label : object
        """
        z, classes = self._margins_and_classes(x)
        if len(z) == 1 and len(classes) == 2:
            return classes.item(int(z[0] > 0))
        return classes.item(max(range(len(z)), key=z.__getitem__))
