"""Rows, sample weights and numeric targets, as scikit-learn's estimators take them."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from ...errors import RowError
from ...rows.matrices import checked
from ...validation import check_numbers, check_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOATS = [np.float64, np.float32]


class RowsMixin(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Rows from arrays, sparse matrices and dataframes, with their targets; checks the number and names of features."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    _takes_sparse = False  # whether rows may be a sparse matrix
    _bounds_loss = False  # whether theorems give a bound, not a good score on any data with default parameters

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        if self._bounds_loss:
            (tags.regressor_tags or tags.classifier_tags).poor_score = True
        return tags

    def _read(self, X: Any, reset: bool, *, ordered: bool = True, **checks: Any) -> Any:
        """X as a float array or CSR matrix, without a copy if it is one already; `reset` records its features.

        A sparse matrix is `checked` before it is read, and its column indices as well unless `ordered` is False.
        """
        checks |= {"accept_sparse": "csr" if self._takes_sparse else False, "dtype": FLOATS}
        if self._takes_sparse and hasattr(X, "tocsr"):
            X = checked(X, ordered)
        frame = X if isinstance(X, np.ndarray) else nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            check_numbers(X, "X")
            return validate_data(self, X, reset=reset, **checks)
        validate_data(self, X, reset=reset, skip_check_array=True)
        check_columns(frame)
        return check_array(frame.to_numpy(), **checks)

    def _matrix(self, X: Any, reset: bool) -> Any:
        """X as `_read` returns it, without checks for finite values and sorted indices.

        Learning checks both while it reads the rows; another pass over them would double the time.
        """
        return self._read(X, reset, ordered=False, ensure_all_finite=False)

    @property
    def _feature_names(self) -> Sequence[Any] | None:
        """Names of the features for error messages; None if they have none."""
        return getattr(self, "feature_names_in_", None)

    def _target(self, X: Any, y: Any) -> np.ndarray:
        """The targets as numbers, one per row."""
        require_y(self, y)
        if not (type(y) is np.ndarray and y.ndim == 1 and y.dtype in FLOATS):  # those need no check
            check_numbers(y, "y")
            y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False), warn=True)
        check_consistent_length(X, y)
        return np.ascontiguousarray(y, np.float64)


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
