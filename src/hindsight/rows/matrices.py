"""Checks of matrices for compiled code, their rows as the loops read them, and errors for rows that cannot be played.

Compiled code trusts `indptr` and the column indices. A matrix whose arrays do not fit together would be misread, or
accessed out of bounds, so every matrix goes through `checked` before compiled code sees it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..errors import RowError
from ..kernels.compiler import kernel
from ..kernels.online import MOST
from ..kernels.rows import CSR, Dense, Spaced, Strided
from ..validation import check_numbers

REAL = (np.dtype(np.float64), np.dtype(np.float32))
WHOLE = (np.dtype(np.int64), np.dtype(np.int32))
ONE = np.uint64(1)


def checked(X: Any, ordered: bool = True) -> Any:
    """Return a matrix that compiled code can trust: `X` itself if it is one, otherwise a copy; `X` is never changed.

    Such a matrix is a 2-D array of float32 or float64, or a CSR matrix of these with contiguous arrays as long as
    `indptr` says, `indptr` ascending from 0, and strictly ascending column indices below the width in each row.
    Unsorted indices are sorted, and values at equal indices are added. The arrays themselves are inspected, since the
    flags that scipy caches may be out of date.

    Parameters
    ----------
    X : array_like, or sparse matrix or array of any format
        The rows.
    ordered : bool, default True
        Whether to check the column indices, in one pass over them. The loop that learns checks them itself and stops
        at a row whose indices are not in order; then call `in_order`.

    Raises
    ------
    ValueError
        If there are not two dimensions, the entries are not real numbers, or the arrays do not fit together.
    RowError
        If a column index lies outside the width.
    """
    if not hasattr(X, "tocsr"):
        check_numbers(X, "X")
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if isinstance(X, np.ndarray):
        return _plain(X, REAL)
    X = _as_csr(X)
    size = _entries(X, X.shape[0])
    arrays = _plain(X.data[:size], REAL), _plain(X.indices[:size], WHOLE), _plain(X.indptr, WHOLE)
    if any(not _same(a, b) for a, b in zip(arrays, (X.data, X.indices, X.indptr), strict=True)):
        X = type(X)(arrays, shape=X.shape)
    return in_order(X) if ordered else X


def _plain(array: np.ndarray, kinds: tuple[np.dtype[Any], ...]) -> np.ndarray:
    """The array, or an aligned copy, of one of these types (the first if it has none); vectors are contiguous."""
    if array.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, got {array.dtype}")
    dtype = array.dtype.newbyteorder("=")
    return np.require(array, dtype if dtype in kinds else kinds[0], ["C", "A"] if array.ndim == 1 else ["A"])


def _same(array: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays share the same memory with the same type and strides."""
    return array is other or array.__array_interface__ == other.__array_interface__


def _as_csr(X: Any) -> Any:
    """A sparse matrix as CSR; other formats are checked first, since scipy trusts them when it converts."""
    if X.format == "csr":
        return X
    m, n = X.shape
    if X.format == "coo":
        for name, at, size in (("row", X.row, m), ("column", X.col, n)):
            if len(at) != len(X.data) or (len(at) and not 0 <= at.min() <= at.max() < size):
                raise ValueError(f"X has {len(X.data)} values, but not as many {name} indices in 0..{size - 1}")
    elif X.format in ("csc", "bsr"):
        R, C = getattr(X, "blocksize", (1, 1))
        count, size = (n, m) if X.format == "csc" else (m // R, n // C)
        used = X.indices[: _entries(X, count)]
        if used.size and not 0 <= used.min() <= used.max() < size:
            bad = used[(used < 0) | (used >= size)][0]
            raise ValueError(f"X.indices must lie in 0..{size - 1}, got {bad}")
    return X.tocsr()


def _entries(X: Any, count: int) -> int:
    """The number of entries of a compressed matrix with `count` rows (CSC: columns); an error if arrays are shorter."""
    for name in ("indices", "indptr"):
        array = getattr(X, name)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"X.{name} must be a vector of integers, got {array.dtype} of shape {array.shape}")
    indptr = X.indptr
    if indptr.size != count + 1 or indptr[0] != 0:
        what = f"{indptr.size} numbers" if indptr.size != count + 1 else f"{indptr[0]} first"
        raise ValueError(f"X.indptr must have {count + 1} numbers for shape {X.shape}, 0 first; got {what}")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        t = int(falls.argmax())
        raise ValueError(f"X.indptr must ascend, but {indptr[t + 1]} comes after {indptr[t]} (X.indptr[{t + 1}])")
    for name in ("data", "indices"):
        if len(getattr(X, name)) < indptr[-1]:
            raise ValueError(f"X.{name} has {len(getattr(X, name))} entries, but X.indptr ends at {indptr[-1]}")
    return int(indptr[-1])


def in_order(X: Any) -> Any:
    """Return X if the indices of each row ascend and are below the width, otherwise a copy with this property."""
    if isinstance(X, np.ndarray):
        return X
    rows = rows_of(X, 0.0)
    t = first_disorder(rows.indices, rows.indptr, np.uint64(X.shape[1]))
    if t < 0:
        return X
    outside = (X.indices < 0) | (X.indices >= X.shape[1])
    if outside.any():
        k = int(outside.argmax())
        row = int(np.searchsorted(X.indptr, k, "right")) - 1
        raise RowError(row, f": column index {X.indices[k]} lies outside 0..{X.shape[1] - 1}")
    X = type(X)((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    X.sum_duplicates()
    return X


@kernel  # type: ignore[untyped-decorator]
def first_disorder(indices: Any, indptr: Any, width: Any) -> int:
    """The first row whose indices do not ascend, or are not below the width; -1 if there is none."""
    for t in range(indptr.size - 1):
        a, b = indptr[t], indptr[t + 1]
        wrong = a < b and indices[b - ONE] >= width
        for k in range(a + ONE, b):
            wrong |= indices[k - ONE] >= indices[k]
        if wrong:
            return t
    return -1


class _Unsealed:
    """The memory of an array in the array interface, without the read-only flag."""

    def __init__(self, array: np.ndarray) -> None:
        shown = array.__array_interface__
        self.array, self.__array_interface__ = array, {**shown, "data": (shown["data"][0], False)}


def unsealed(array: np.ndarray) -> np.ndarray:
    """Return a writeable view for loops that only read it, since a read-only array would make numba compile them again.

    Examples
    --------
    >>> sealed = np.frombuffer(bytes(16))
    >>> sealed.flags.writeable, unsealed(sealed).flags.writeable, np.shares_memory(sealed, unsealed(sealed))
    (False, True, True)
    """
    return array if array.flags.writeable else np.asarray(_Unsealed(array))


def rows_of(X: Any, bias: float) -> Any:
    """Return the rows of a checked matrix as the loops read them, without a copy."""
    if isinstance(X, np.ndarray):
        X = unsealed(X)
        if X.flags.c_contiguous:
            return Dense(X, bias)
        if any(stride % X.itemsize for stride in X.strides):  # fields of records: they lie between other numbers
            return Dense(np.ascontiguousarray(X), bias)
        down, across = (stride // X.itemsize for stride in X.strides)
        memory, first = _memory(X)
        if across == 1 and down >= 0:
            return Spaced(memory, X.shape[1], down, bias)
        return Strided(memory, np.empty(X.shape[1], X.dtype), first, down, across, bias)
    indices = unsealed(X.indices).view(f"u{X.indices.itemsize}")
    return CSR(unsealed(X.data), indices, X.indptr.astype(np.uint64), bias)


def _memory(X: np.ndarray) -> tuple[np.ndarray, int]:
    """The memory that contains an array as one vector, and the index of the array's first entry in it."""
    ends = [stride // X.itemsize * (size - 1) for stride, size in zip(X.strides, X.shape, strict=True)]
    first = -sum(min(0, end) for end in ends)
    low = X[tuple(slice(None, None, -1) if end < 0 else slice(None) for end in ends)]  # begins with the lowest address
    return as_strided(low, (first + sum(max(0, end) for end in ends) + 1,), (X.itemsize,)), first


def plain_vector(values: np.ndarray) -> np.ndarray:
    """Return a vector as loops read it, contiguous and writeable; they are compiled only for such vectors."""
    return unsealed(np.ascontiguousarray(values))


def unshared(rows: Any) -> Any:
    """Return the same rows for a loop that runs in parallel with others; a scratch row is not shared."""
    return rows._replace(scratch=np.empty_like(rows.scratch)) if isinstance(rows, Strided) else rows


def explain(X: Any, row: int, y: float, z: float, q: float, width: int, names: Sequence[Any] | None) -> NoReturn:
    """Raise a RowError that says why a row could not be played, with the column and the value.

    Parameters
    ----------
    X : ndarray or CSR matrix
        The rows.
    row : int
        The index of the row.
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
        if columns.size and columns[-1] >= width:
            raise RowError(row, f": column index {columns[-1]} lies outside 0..{width - 1}")
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
    if not abs(y) < math.sqrt(MOST):
        raise RowError(row, f": the square of target {y:g} overflows; scale the targets")
    raise RowError(
        row,
        f": the loss or the step here would be non-finite (margin {z:g}, target {y:g}); "
        "take a smaller eta, update='implicit', or scale the features",
    )


def stacked(rows: list[Any]) -> Any:
    """Chunks of rows as one array or CSR matrix; sparse ones may have grown wider."""
    if isinstance(rows[0], np.ndarray):
        return np.concatenate(rows)
    from scipy.sparse import vstack

    width = max(X.shape[1] for X in rows)
    for X in rows:
        X.resize((X.shape[0], width))
    return vstack(rows, format="csr")


def joined_weights(weights: Sequence[np.ndarray | None], sizes: Sequence[int]) -> np.ndarray | None:
    """The weights of chunks of these sizes as one array, 1 for a chunk without weights; None if no chunk has any."""
    if not any(weight is not None for weight in weights):
        return None
    return np.concatenate([np.ones(n) if w is None else w for w, n in zip(weights, sizes, strict=True)])
