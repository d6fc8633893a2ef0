"""Linear weights and their fit, the attributes derived from them, and predictions through the link of a loss."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ...online.margins import each_mean
from ...online.run import predicted
from ...rows.labels import chosen_codes, class_probabilities
from ...storage.registry import PACKAGE
from .estimator import Estimator, all_rows
from .labels import LabelsMixin

if TYPE_CHECKING:
    import os
    from collections.abc import Callable


class LinearEstimator(Estimator):
    """Weights, one row per run, and `fit` from scratch: either it succeeds, or the estimator is unchanged.

    Subclasses implement `_fit`, which learns from scratch, `_weights`, with the intercept's last, and `certify`.
    """

    certificate_: Any
    certify: Callable[..., Any]

    _takes_sparse = True

    def _weights(self) -> np.ndarray:
        raise NotImplementedError

    @property
    def _intercept(self) -> bool:
        return bool(getattr(self, "fit_intercept", False))

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, one row per run."""
        return self._weights()[:, : self.n_features_in_]

    @property
    def intercept_(self) -> Any:
        """Weight of the constant coordinate, one per run; 0 without one."""
        w = self._weights()
        return w[:, -1] if self._intercept else np.zeros(len(w))

    def _margins(self, X: Any) -> np.ndarray:
        """The margin of each row, one column per run."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        runs = getattr(self, "runs_", [])
        if runs and not getattr(runs[0].learner.geometry, "linear", True) and getattr(self, "average", None) is None:
            return predicted(runs, X, self._feature_names)
        w = self._weights()
        z = X @ w[:, : self.n_features_in_].T
        return np.asarray(z + w[:, -1] if self._intercept else z)

    # ---- learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, certify: bool = False) -> Self:
        """Learn from these rows, forgetting any earlier ones; if it raises, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features), or source
            Rows, in the order in which they are learnt; a source from `hindsight.open_source` is read into memory.
        y : array-like of shape (n_rows,), default=None
            Targets or labels; None with a source that has them.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, which multiplies its loss; None is 1.
        certify : bool, default=False
            Whether to also compute the certificate and store it as ``certificate_``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if y is None and callable(getattr(X, "chunks", None)):
            X, y, sample_weight = all_rows(X)
        with self._all_or_nothing():
            self._drop_certificate()
            if not self._resumes():
                self._forget_fit()
            self._fit(X, y, sample_weight)
            if certify:
                self.certificate_ = self.certify(X, y, sample_weight)
        return self

    def _resumes(self) -> bool:
        """Whether `fit` continues from the previous fit."""
        return False

    def _drop_certificate(self) -> None:
        """Drop a certificate that does not cover all rounds any more."""
        self.__dict__.pop("certificate_", None)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        raise NotImplementedError

    def report(self, path: str | os.PathLike[str], X: Any, y: Any, sample_weight: Any = None) -> None:
        """Write a report of the training as one self-contained HTML page.

        The run is replayed over the rows to compute the certificate, which is stored as ``certificate_``, and the
        curves.

        Parameters
        ----------
        path : str or path-like
            The file; an existing one is overwritten.
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            The rows the model was trained on, in that order (all `partial_fit` calls together).
        y : array-like of shape (n_rows,)
            Targets as in training.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights as in training.

        Raises
        ------
        MismatchError
            If these are not the rows of the run.
        ValueError
            If the file cannot be written, or the model has seen only one class.
        """
        import_module(PACKAGE).report(self, path, X, y, sample_weight)


class LinearRegressorMixin(LinearEstimator):
    """The weights of a single run, and predictions from its margin through the link of its loss."""

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features."""
        return super().coef_[0]

    @property
    def intercept_(self) -> float:
        """Weight of the constant coordinate; 0 without one."""
        return float(super().intercept_[0])

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction for each row: its margin, through the link of the loss if it has one.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        predictions : ndarray of shape (n_rows,)
        """
        margins = self._margins(X)  # says so where the estimator is not fitted
        return each_mean(self.runs_[0].learner.loss, margins[:, 0])


class MarginClassifierMixin(LabelsMixin, LinearEstimator):
    """Prediction of classes from margins."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the margins of rows.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        margins : ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes one per row, which is above 0 for ``classes_[1]``; otherwise one per row and class.
        """
        z = self._margins(X)
        if len(self.classes_) == 2:
            return z[:, 0] if z.shape[1] == 1 else z[:, 1] - z[:, 0]
        return z

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
        """
        z = self.decision_function(X)
        return np.asarray(self.classes_[chosen_codes(z) if len(self.classes_) > 1 else np.zeros(len(z), int)])


def loss_gives_probabilities(estimator: Any) -> bool:
    """Whether the loss of a classifier gives probabilities; raises an error if not."""
    if estimator.loss != "logistic":
        raise AttributeError(f"probabilities need loss='logistic', not {estimator.loss!r}")
    return True


class LogisticProbabilityMixin(MarginClassifierMixin):
    """Probabilities of the classes, for the logistic loss."""

    @available_if(loss_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes through the logistic link.

        The probabilities of one-vs-rest runs are normalised to sum to 1. Only with ``loss="logistic"``.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class, in the order of ``classes_``.
        """
        z = np.atleast_2d(self.decision_function(X).T).T
        if len(self.classes_) == 1:  # rows learnt one at a time may have had no other yet
            return np.ones(z.shape)
        loss = self.runs_[0].learner.loss
        return class_probabilities(np.stack([each_mean(loss, z[:, k]) for k in range(z.shape[1])], axis=1))
