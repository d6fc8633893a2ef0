"""Targets that are real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from ...validation import check_numbers
from .rows import FLOATS


def require_y(estimator: Any, y: Any) -> None:
    """Refuse a missing y in the words that scikit-learn asks for."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")


class TargetsMixin:
    """Targets as numbers, for one run."""

    def _target(self, X: Any, y: Any) -> np.ndarray:
        """The targets as float64, one per row."""
        require_y(self, y)
        if not (type(y) is np.ndarray and y.ndim == 1 and y.dtype in FLOATS):  # those need no check
            check_numbers(y, "y")
            y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False), warn=True)
        check_consistent_length(X, y)
        return np.ascontiguousarray(y, np.float64)

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        """For each run, the targets as it sees them."""
        return [self._target(X, y)]
