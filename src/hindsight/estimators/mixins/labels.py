"""Class labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ...errors import RowError
from ...rows.labels import encode_labels, run_count, targets_of_runs
from ...storage.registry import want
from ...validation import refuse_masked
from .rows import require_y

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
