"""Checks of rows, targets and sample weights, as scikit-learn's estimators take them."""

from __future__ import annotations

from numbers import Number
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils.validation import check_array

from ...errors import RowError
from ...validation import check_numbers, check_weights


def require_y(estimator: Any, y: Any) -> None:
    """Refuse a missing y, in the words that scikit-learn requires."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")


def check_columns(frame: Any) -> None:
    """Refuse a dataframe with a column that is not numeric; the error names it."""
    for name, kind in frame.schema.items():
        if kind in (nw.String, nw.Categorical, nw.Enum, nw.Date, nw.Datetime, nw.Duration, nw.Time):
            held = next((value for value in frame[name].head(100).to_list() if value is not None), None)
            raise ValueError(
                f"column {name!r} holds {str(kind).lower()} values such as {held!r}, not numbers: encode it, or learn "
                "from the table with the command `hindsight learn`"
            )


def read_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """The sample weights as float64; None means that all are 1."""
    if sample_weight is None:
        return None
    count = X.shape[0]
    if isinstance(sample_weight, Number):
        sample_weight = np.full(count, sample_weight)
    check_numbers(sample_weight, "sample_weight")
    weight: np.ndarray = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="sample_weight", order="C"
    )
    if weight.shape != (count,):
        raise ValueError(f"sample_weight must have one number per row: expected shape ({count},), got {weight.shape}")
    check_weights(weight)
    return weight


def check_finite(X: np.ndarray) -> None:
    """Refuse an array with a value that is not finite; the error names its row and column."""
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0].tolist()
        value = "NaN" if np.isnan(X[row, column]) else repr(float(X[row, column]))
        raise RowError(row, f", column {column}: value {value} is not finite")
