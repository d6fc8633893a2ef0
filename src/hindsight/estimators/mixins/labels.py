"""Class labels, and class weights, which multiply the weights of the rows of a class.

Balanced weights give all K classes the same total weight: a row of a class with n_k of n rows has the weight n/(K n_k).
`fit` counts all its rows. For rows that come later, or one by one, the counts are those of the rows so far including
the row itself, and K is the number of classes seen. Rows of weight 0 are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ...errors import RowError
from ...rows.labels import encode_labels, run_count, targets_of_runs
from ...storage.fields import is_count
from ...storage.registry import want
from ...validation import at_least_0, refuse_masked
from .rows import require_y

COUNTS = ("class_counts_", "fit_counts_")  # of the rows so far, and of those of `fit`
FITTED = {"runs_", "histories_", "halfspaces_", "threshold_", "classifier_"}  # what is there with the classes only


class LabelsMixin:
    """Labels, read and encoded by their index in `classes_`."""

    classes_: np.ndarray

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        classes: Any = fields.get("classes_")
        if classes is not None or FITTED & set(fields):
            known = isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.size > 0
            want(known and len(set(classes.tolist())) == classes.size, "`classes_` must be different labels")

    def _labels(self, X: Any, y: Any, known: bool = False) -> np.ndarray:
        """The labels as an array; if the classes are `known`, invalid labels are found by encoding them."""
        require_y(self, y)
        refuse_masked(y, "y")
        y = np.asarray(column_or_1d(y, warn=True))
        check_consistent_length(X, y)
        if y.dtype.kind in "fMm" and not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y))[0])
            raise RowError(row, f": label {y[row]} is not finite")
        whole = y.dtype.kind in "biu" or (y.dtype.kind == "f" and bool((y == np.trunc(y)).all()))
        if not known and not whole:  # it sorts them, which takes longer than a small learner
            check_classification_targets(y)
        return y

    def _set_classes(self, labels: Any) -> None:
        """Declare the classes that occur in the labels; there must be at least two."""
        known = isinstance(labels, np.ndarray) and labels.dtype.kind in "biuf"  # checked by `_labels`
        self.classes_ = np.unique(labels) if known else unique_labels(labels)
        if len(self.classes_) < 2:
            raise ValueError(f"there must be at least two classes, got one class: {self.classes_.item(0)!r}")

    def _same_classes(self, classes: Any) -> None:
        """Refuse classes other than those declared before."""
        if classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
            raise ValueError(f"classes={classes!r} is not the same as declared before: {self.classes_.tolist()}")

    def _codes(self, y: np.ndarray) -> np.ndarray:
        """The index of each label in `classes_`."""
        codes = encode_labels(y, self.classes_)
        if codes.size and codes.min() < 0:
            row = int(codes.argmin())
            raise RowError(row, f": class {y[row].item()!r} was not declared (classes={self.classes_.tolist()})")
        return codes

    def _run_targets(self, y: np.ndarray, targets: str, runs: int | None = None) -> list[np.ndarray]:
        """The targets of each run, as -1 and 1 ("sign") or 0 and 1 ("unit")."""
        return targets_of_runs(self._codes(y), len(self.classes_), targets, runs)

    def _run_labels(self) -> list[str | None]:
        """The label of each run in certificates."""
        return [None] if run_count(len(self.classes_)) == 1 else [str(label) for label in self.classes_]


class Weigher:
    """Weights of rows by their class, for rows that come in chunks.

    Parameters
    ----------
    each : ndarray or None
        The weight of each class; None stands for balanced weights.
    counts : ndarray
        Earlier rows of each class.
    fit_counts : ndarray
        Rows of each class in `fit`.
    fit_rows : int, default=0
        How many of the following rows are those of `fit`.
    """

    def __init__(self, each: np.ndarray | None, counts: np.ndarray, fit_counts: np.ndarray, fit_rows: int = 0) -> None:
        self.each, self.counts, self.fit_counts, self.fit_rows = each, counts.astype(np.float64), fit_counts, fit_rows

    def weigh(self, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The weights of rows of these classes, multiplied by the given weights."""
        own = np.ones(codes.size) if weight is None else np.asarray(weight, np.float64)
        if self.each is not None:
            return own * self.each[codes]
        fitted = min(self.fit_rows, codes.size)
        self.fit_rows -= fitted
        first, rest = self.of_fit(codes[:fitted], own[:fitted]), self.later(codes[fitted:], own[fitted:])
        return own * np.concatenate((first, rest))

    def of_fit(self, codes: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Weights by the class counts of all rows of `fit`."""
        self.counts = self.counts + np.bincount(codes[own > 0.0], minlength=self.counts.size)
        met = self.fit_counts > 0.0
        each = np.divide(self.fit_counts.sum(), met.sum() * self.fit_counts, out=np.zeros(met.size), where=met)
        out: np.ndarray = each[codes]
        return out

    def later(self, codes: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Weights by the class counts of the rows so far."""
        out, on = np.zeros(codes.size), own > 0.0
        some = codes[on]
        order = np.argsort(some, kind="stable")
        sizes = np.bincount(some, minlength=self.counts.size)
        nth = np.empty(some.size)
        nth[order] = np.arange(some.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        before = self.counts[some]
        met = np.count_nonzero(self.counts) + np.cumsum((nth == 0.0) & (before == 0.0))
        out[on] = (self.counts.sum() + np.arange(1.0, some.size + 1.0)) / (met * (before + nth + 1.0))
        self.counts = self.counts + sizes
        return out


class ClassWeightMixin:
    """Class weights; without the parameter `class_weight` all are 1."""

    class_weight: Any = None
    classes_: np.ndarray
    class_counts_: np.ndarray
    fit_counts_: np.ndarray
    fit_rows_: int

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        shape = getattr(fields.get("classes_"), "shape", None)
        for name in COUNTS:
            counts = fields.get(name)
            known = isinstance(counts, np.ndarray) and counts.dtype == np.float64 and counts.shape == shape
            want(counts is None or (known and bool((counts >= 0.0).all())), f"`{name}` must have one count per class")
        want(is_count(fields.get("fit_rows_", 0)), "`fit_rows_` must be a count")

    def _weighs_classes(self) -> bool:
        return self.class_weight is not None

    def _weigher(self, fresh: bool) -> Weigher:
        """The `Weigher` of the next rows; if `fresh`, of all rows from the first one on, as they were weighted."""
        none = np.zeros(len(self.classes_))
        fit_counts = getattr(self, "fit_counts_", none)
        if fresh:
            return Weigher(self._weight_of_each(), none, fit_counts, getattr(self, "fit_rows_", 0))
        return Weigher(self._weight_of_each(), getattr(self, "class_counts_", none), fit_counts)

    def _weight_of_each(self) -> np.ndarray | None:
        """The weight of each class, 1 by default; None if they are balanced."""
        given = self.class_weight
        if isinstance(given, str) and given == "balanced":
            return None
        if not isinstance(given, Mapping):
            raise ValueError(f"class_weight must be None, 'balanced' or a dict of weights by class; got {given!r}")
        for label, weight in given.items():
            at_least_0(f"the weight of class {label!r}", weight)
        return np.array([float(given.get(label, 1.0)) for label in self.classes_.tolist()])

    def _check_class_weight(self) -> None:
        """Refuse weights of unknown classes."""
        if isinstance(self.class_weight, Mapping):
            unknown = set(self.class_weight) - set(self.classes_.tolist())
            if unknown:
                raise ValueError(
                    f"class_weight has the class {min(unknown, key=repr)!r}, not one of {self.classes_.tolist()}"
                )

    def _begin_counts(self, codes: np.ndarray, weight: np.ndarray | None) -> None:
        """Count the rows of a fit before they are weighted."""
        on = slice(None) if weight is None else weight > 0.0
        self.fit_counts_ = np.bincount(codes[on], minlength=len(self.classes_)).astype(np.float64)
        self.fit_rows_ = codes.size

    def _place_counts(self, before: np.ndarray) -> None:
        """Reorder the counts after classes were added to those `before`."""
        places = np.searchsorted(self.classes_, before)
        for name in COUNTS:
            if name in self.__dict__:
                counts = np.zeros(len(self.classes_))
                counts[places] = self.__dict__[name]
                setattr(self, name, counts)
