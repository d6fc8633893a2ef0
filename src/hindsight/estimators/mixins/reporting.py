"""How estimators write reports."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from ...storage.registry import PACKAGE


class ReportMixin:
    """A report as one page."""

    def report(self, path: str | os.PathLike[str], X: Any, y: Any, sample_weight: Any = None) -> None:
        """Write a report of the training as one HTML page that loads nothing.

        The rows are played again, for the certificate, which is kept as ``certificate_``, and for the course of the
        run.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced.
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
            If the file cannot be written, or the model has met a single class.
        """
        import_module(PACKAGE).report(self, path, X, y, sample_weight)
