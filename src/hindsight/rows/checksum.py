"""Checksums that tell whether rows are those that were read before.

A checksum detects accidental changes, reordering, omissions and additions. It is no protection against rows that are
constructed to match.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.checksum import checksum

LABEL = 1 << 16  # positions for the characters of a label
ROWS, VALUES, SUM, TARGET_SUM = range(4)  # what is counted
X_VALUES, X_COLUMNS, X_SIZES, TARGETS, WEIGHTS = (part << 58 for part in range(5))  # the first position of each part


class RowChecksum:
    """The number of rows read so far and their checksums, which do not depend on the sizes of chunks.

    `counts` has the number of rows, the number of values, the checksum of rows and weights, and that of targets.

    Examples
    --------
    >>> X, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
    >>> whole, pieces = RowChecksum(), RowChecksum()
    >>> whole.add(X, y)
    >>> for t in range(3):
    ...     pieces.add(X[t : t + 1], y[t : t + 1])
    >>> whole.counts == pieces.counts
    True
    >>> other = RowChecksum()
    >>> other.add(X[[1, 0, 2]], y)
    >>> whole.counts == other.counts
    False
    """

    def __init__(self, counts: list[int] | None = None) -> None:
        self.counts = [0, 0, 0, 0] if counts is None else list(counts)

    def add(self, X: Any, y: Any = None, weight: Any = None) -> None:
        """Add the next rows: a 2-D array or a CSR matrix, targets (numbers or text) and weights."""
        rows, values = self.counts[:SUM]
        if hasattr(X, "tocsr"):
            X = X.tocsr()
            sizes = np.diff(X.indptr)
            stored = slice(int(X.indptr[0]), int(X.indptr[-1]))
            self._add(X.data[stored], X_VALUES + values)
            self._add(X.indices[stored], X_COLUMNS + values)
            self._add(sizes, X_SIZES + rows)
            self.counts[VALUES] += stored.stop - stored.start
        else:
            self._add(X, X_VALUES + values)
            self.counts[VALUES] += X.size
        if y is not None:
            y = np.asarray(y)
            self._add(y, TARGETS + rows * (LABEL if y.dtype.kind == "U" else 1), TARGET_SUM)
        if weight is not None:
            self._add(np.asarray(weight), WEIGHTS + rows)
        self.counts[ROWS] += X.shape[0]

    def differs_from(self, earlier: list[int]) -> bool:
        """Whether these rows differ from those of earlier counts, which may lack the targets."""
        return self.counts[: len(earlier)] != earlier

    def _add(self, array: np.ndarray, first: int, into: int = SUM) -> None:
        if not array.size:
            return
        words = np.ascontiguousarray(array)
        if words.dtype.kind == "U":
            words = words.view(np.uint32).reshape(len(words), -1)
        else:
            words = words.reshape(1, -1).view(f"u{min(8, words.itemsize)}")
        self.counts[into] = (self.counts[into] + int(checksum(words, first, LABEL))) % 2**64
