"""Intervals that cover: ranges of predictions, and sets of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from ...certificates.coverage import CoverageCertificate


class CoverageMixin:
    """What regressors and classifiers share: a tracker at the first run, if `interval` asks for one."""

    interval: float | None = None
    average: str | None
    runs_: list[Any]

    def _cover(self) -> None:
        """Have new runs make intervals, where they are asked for."""
        if self.interval is not None:
            from ...online.coverage import cover

            if self.average is not None:
                raise ValueError("interval follows what the last weights predict: leave average out")
            cover(self.runs_, self.interval)

    @property
    def _tracker(self) -> Any:
        check_is_fitted(self)
        if self.runs_[0].coverage is None:
            raise AttributeError("intervals were not asked for: begin with interval=0.9, say")
        return self.runs_[0].coverage

    @property
    def coverage_(self) -> CoverageCertificate:
        """How the intervals of all rows so far covered, each made before its row was learnt; see
        `hindsight.CoverageCertificate`."""
        from ...certificates.coverage import certify_coverage

        return certify_coverage(self._tracker)


class IntervalsMixin(CoverageMixin):
    """Ranges of the predictions of a regressor."""

    def predict_interval(self, X: Any) -> np.ndarray:
        """Return a range for the target of each row: of rows that are learnt from afterwards, one after the other, the
        part `interval` lies within theirs.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        intervals : ndarray of shape (n_rows, 2)
            The lowest and the highest value; infinite where no finite range would keep the promise.
        """
        half = self._tracker.half
        middle = self.predict(X)  # type: ignore[attr-defined]
        return np.column_stack([middle - half, middle + half])

    def predict_interval_one(self, x: Any) -> tuple[float, float]:
        """Return a range for the target of one row.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row. A name that was never learnt has weight 0.

        Returns
        -------
        low, high : float
        """
        half = self._tracker.half
        middle: float = self.predict_one(x)  # type: ignore[attr-defined]
        return middle - half, middle + half


class SetsMixin(CoverageMixin):
    """Sets of labels, of a classifier that gives probabilities."""

    classes_: np.ndarray

    def predict_set(self, X: Any) -> list[tuple[Any, ...]]:
        """Return a set of labels for each row: of rows that are learnt from afterwards, one after the other, the part
        `interval` has its label among its own.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        sets : list of tuple
            The labels, in the order of ``classes_``; there may be none.
        """
        half = self._tracker.half
        return self._sets(np.atleast_2d(self.decision_function(X).T).T, half)  # type: ignore[attr-defined]

    def predict_set_one(self, x: Any) -> tuple[Any, ...]:
        """Return a set of labels for one row.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row. A name that was never learnt has weight 0.

        Returns
        -------
        labels : tuple
            In the order of ``classes_``; there may be none.
        """
        half = self._tracker.half
        z, _ = self._alone(lambda: (self._margins_one(x), self.classes_))  # type: ignore[attr-defined]
        return self._sets(np.array([z]), half)[0]

    def _sets(self, z: np.ndarray, half: float) -> list[tuple[Any, ...]]:
        from ...online.coverage import sets_of

        return sets_of(self.runs_[0].learner.loss, z, half, self.classes_.tolist())
