"""The rows of a matrix as the compiled loops read them, and why a row cannot be played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..errors import RowError
from ..kernels.rows import CSR, Dense, Strided


def rows_of(X: Any, bias: float) -> Any:
    """Return the rows of a 2-D float array of any strides or a CSR matrix, as the loops read them, without a copy."""
    if isinstance(X, np.ndarray):
        if X.flags.c_contiguous:
            return Dense(X, bias)
        return Strided(X, np.empty(X.shape[1], X.dtype), bias)
    return CSR(X.data, X.indices.view(f"u{X.indices.itemsize}"), X.indptr.astype(np.uint64), bias)


def explain(X: Any, row: int, y: float, z: float, q: float, width: int, names: Sequence[Any] | None) -> NoReturn:
    """Raise the RowError that says why a row could not be played: the column, and the value there.

    Parameters
    ----------
    X : ndarray or CSR matrix
        The rows.
    row : int
        The row in question.
    y, z, q : float
        Its target, its margin before the update, and its squared norm.
    width : int
        Number of features.
    names : sequence or None
        Names of the columns.
    """

    def column(j: int) -> str:
        return f"column {j}" if names is None else f"column {j} ({names[j]!r})"

    if isinstance(X, np.ndarray):
        columns, values = np.arange(X.shape[1]), X[row]
    else:
        span = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = X.indices[span], X.data[span]
        for k, j in enumerate(columns):
            if not 0 <= j < width:
                raise RowError(row, f": column index {j} lies outside 0..{width - 1}")
            if k and j <= columns[k - 1]:
                what = "appears twice" if j == columns[k - 1] else f"comes after {columns[k - 1]}: sort the indices"
                raise RowError(row, f": column index {j} {what}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        k = int(bad[0])
        value = "NaN" if np.isnan(values[k]) else str(values[k])
        raise RowError(row, f", {column(int(columns[k]))}: value {value} is not finite")
    if not np.isfinite(q):
        k = int(np.abs(values).argmax())
        raise RowError(
            row, f", {column(int(columns[k]))}: |x|^2 overflows with value {values[k]:g}; scale the features"
        )
    raise RowError(
        row,
        f": the step here would make a weight non-finite (margin {z:g}, target {y:g}); "
        "take a smaller eta, update='implicit', or scale the features",
    )
