"""Whether rows are those that were read before, and whether they are those of a batch method.

`RowChecksum` compares two readings of the same source, `add_played` the rows that a batch method learnt with rows in
any storage. They notice what is changed, moved, left out or added by accident; whoever wants to can make other rows
that match.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..errors import MismatchError
from ..kernels import checksum as kernels
from ..kernels.checksum import ROUNDS, checksum
from ..kernels.checksum import ROWS as PLAYED
from ..kernels.checksum import TARGETS as PLAYED_TARGETS
from ..kernels.rows import CSR, Dense, Spaced, Strided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

LABEL = 1 << 16  # positions for the characters of a label
ROWS, VALUES, SUM, TARGET_SUM = range(4)  # what is counted
X_VALUES, X_COLUMNS, X_SIZES, TARGETS, WEIGHTS = (part << 58 for part in range(5))  # the first position of each part


class RowChecksum:
    """The number of rows read so far and checksums of them, at the speed of memory; the sizes of chunks change nothing.

    `counts` has the numbers of rows and of values, the checksum of rows and weights, and that of targets.

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
        """Whether these are not the rows of earlier counts, which may lack the targets."""
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


# ---------------------------------------------------------------- the rows of a batch method

OTHER_ROWS = (-1, -1, -1)  # the checksum of a model that was trained on different rows in turn: no rows have it


def begin_played() -> Words:
    """The checksum of no round: the number of rounds, the sum of rows and weights, and that of targets."""
    return np.zeros(3, np.uint64)


def copied(rows: Spaced | Strided, first: int, last: int) -> np.ndarray:
    """These rows, one after another in memory."""
    spaced = isinstance(rows, Spaced)
    columns = rows.columns if spaced else rows.scratch.size
    begin, down, across = (0, rows.apart, 1) if spaced else (rows.first, rows.down, rows.across)
    step = rows.memory.itemsize
    here = rows.memory[begin + first * down :]
    return np.ascontiguousarray(as_strided(here, (last - first, columns), (down * step, across * step)))


def word_of_each(rows: Any, first: int, last: int, out: Words) -> None:
    """Write a word for each of these rows, the same in any storage, for `add_played` to add up.

    Parameters
    ----------
    rows : Dense, Strided or CSR
        The rows as the loops read them. Neither the intercept nor zeros count.
    first, last : int
        Which of them.
    out : ndarray of uint64
        The words.
    """
    if isinstance(rows, CSR):
        kernels.sparse_words(rows.data, rows.indices, rows.indptr, first, last, out)
    else:
        values = rows.values if isinstance(rows, Dense) else copied(rows, first, last)
        begin = first if isinstance(rows, Dense) else 0
        kernels.dense_words(values, _factors(values.shape[1]), begin, begin + last - first, out)


def add_played(sums: Words, rows: Any, count: int, y: np.ndarray, weight: np.ndarray, ordered: bool = True) -> None:
    """Add the first rows of a block to a checksum, with their targets and weights, in this order or in any.

    Examples
    --------
    >>> dense, sparse, y, c = begin_played(), begin_played(), np.array([1.0, -1.0]), np.ones(2)
    >>> add_played(dense, Dense(np.array([[0.0, 2.0], [3.0, 0.0]]), 1.0), 2, y, c)
    >>> add_played(sparse, CSR(np.array([2.0, 3.0]), np.array([1, 0]), np.array([0, 1, 2]), 1.0), 2, y, c)
    >>> (dense == sparse).all(), int(dense[0])
    (np.True_, 2)
    """
    words, add = np.empty(count, np.uint64), kernels.add_rounds if ordered else kernels.add_unordered
    word_of_each(rows, 0, count, words)
    add(words, y, weight, sums)


@lru_cache(64)
def _factors(width: int) -> Words:
    """The factors of so many columns."""
    return kernels.factors(np.arange(width, dtype=np.uint64))


def joined(known: tuple[int, ...], found: Words) -> tuple[int, ...]:
    """The checksum of a model that goes on with rows: theirs, if it knew no others before."""
    here = tuple(int(part) for part in found)
    return here if known in ((), here) else OTHER_ROWS


def check_played(known: Sequence[Any] | Words, found: Sequence[Any] | Words, ordered: bool = True) -> None:
    """Raise a MismatchError unless rows have the checksum that a model kept, saying in which part they differ.

    Parameters
    ----------
    known : sequence of three numbers, or empty
        What the model kept; nothing, where it is from a file that has none.
    found : sequence of three numbers
        That of the rows.
    ordered : bool, default True
        Whether they are checksums of rows in a certain order.
    """
    if len(known) == 0:
        return
    names = {PLAYED: "values or weights", PLAYED_TARGETS: "targets"}
    differ = [name for part, name in names.items() if known[part] != found[part]]
    if differ or known[ROUNDS] != found[ROUNDS]:
        order = " in this order" if ordered else ""
        what = " and ".join(differ) or "their numbers"
        raise MismatchError(f"the model was not trained on these rows{order}: {what} differ from those it learnt")
