"""What margins predict through the link of a loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from ...online.margins import each_mean
from ...rows.labels import class_probabilities


class MeanPredictionMixin:
    """Predictions of a regressor: the margin, through the link of its loss."""

    runs_: list[Any]

    def predict(self, X: Any) -> np.ndarray:
        """Return what the model predicts for each row: its margin, through the link where there is one.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        predictions : ndarray of shape (n_rows,)
        """
        margins: np.ndarray = self._margins(X)  # type: ignore[attr-defined]
        return each_mean(self.runs_[0].learner.loss, margins[:, 0])


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic":
        raise AttributeError(f"probabilities need loss='logistic', not {estimator.loss!r}")
    return True


class LogisticProbabilityMixin:
    """Probabilities of the classes, for the logistic loss."""

    runs_: list[Any]
    classes_: np.ndarray

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes through the logistic link.

        Those of one-vs-rest runs are scaled to sum to 1. Only with ``loss="logistic"``.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class, in the order of ``classes_``.
        """
        z = np.atleast_2d(self.decision_function(X).T).T  # type: ignore[attr-defined]
        if len(self.classes_) == 1:  # rows learnt one at a time may have had no other yet
            return np.ones(z.shape)
        loss = self.runs_[0].learner.loss
        return class_probabilities(np.stack([each_mean(loss, z[:, k]) for k in range(z.shape[1])], axis=1))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Return the probability of each class for one row.

        Those of one-vs-rest runs are scaled to sum to 1. Only with ``loss="logistic"``.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row. A name that was never learnt has weight 0.

        Returns
        -------
        probabilities : dict of object to float
            By class, in the order of ``classes_``.
        """
        one = self.__dict__.get("_swift")  # before the classes are looked at: it is dead once they have changed
        classes = self.__dict__.get("classes_")
        z = [self._swift_margin(one, x)]  # type: ignore[attr-defined]
        if classes is None or not -math.inf < z[0] < math.inf:
            z, classes = self._alone(lambda: (self._margins_one(x), self.classes_))  # type: ignore[attr-defined]
        if len(classes) == 1:
            return {classes.item(0): 1.0}
        mean = self.runs_[0].learner.loss.mean
        if len(z) == 1:
            p = mean(z[0])
            return {classes.item(0): 1.0 - p, classes.item(1): p}
        each = [mean(margin) for margin in z]
        total = sum(each)
        each = [p / total for p in each] if total > 0.0 else [1.0 / len(each)] * len(each)
        return dict(zip(classes.tolist(), each, strict=True))
