"""Linear weights, and what is read off them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...online.run import predicted
from ...rows.labels import chosen_codes
from .rows import RowsMixin


class LinearMixin(RowsMixin):
    """Margins of rows by weights that `_weights` gives, one row per run, the intercept's last."""

    def _weights(self) -> np.ndarray:
        raise NotImplementedError

    @property
    def _intercept(self) -> bool:
        return bool(getattr(self, "fit_intercept", False))

    def _margins(self, X: Any) -> np.ndarray:
        """The margin of each row, one column per run."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        runs = getattr(self, "runs_", [])
        if runs and not getattr(runs[0].learner.geometry, "linear", True) and getattr(self, "average", None) is None:
            return predicted(runs, X, getattr(self, "_feature_names", None))
        w = self._weights()
        z = X @ w[:, : self.n_features_in_].T
        return np.asarray(z + w[:, -1] if self._intercept else z)


class LinearRegressorMixin(LinearMixin):
    """The weights of a single run."""

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features."""
        return self._weights()[0, : self.n_features_in_]

    @property
    def intercept_(self) -> float:
        """Weight of the constant coordinate; 0 without one."""
        return float(self._weights()[0, -1]) if self._intercept else 0.0


class LinearClassifierMixin(LinearMixin):
    """The weights of one run for two classes, of one run per class for more."""

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, one row per run."""
        return self._weights()[:, : self.n_features_in_]

    @property
    def intercept_(self) -> np.ndarray:
        """Weight of the constant coordinate, one per run; 0 without one."""
        w = self._weights()
        return w[:, -1] if self._intercept else np.zeros(len(w))


class MarginClassifierMixin(LinearClassifierMixin):
    """The class that margins choose."""

    classes_: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the margins of rows.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        margins : ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes one per row, above 0 for ``classes_[1]``; otherwise one per row and class.
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
