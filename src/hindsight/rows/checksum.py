"""Whether rows are those that were read before, and whether they are those of a run.

`RowChecksum` compares two readings of the same source, `add_played` and `word_of_each` the rows of a run as it played
them with rows in any storage. They notice what is changed, moved, left out or added by accident, but for an even number
of values that differ in one bit alone (see `kernels.checksum`); whoever wants to can make other rows that match.
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


# ---------------------------------------------------------------- the rounds of a run

BLOCK = 4096  # rows whose words are held at a time
NARROW = 32  # columns up to which contiguous rows are summed without words of their own
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
        kernels.dense_words(values, _factors(1, values.shape[1])[0], begin, begin + last - first, out)


def add_played(
    sums: Sequence[Words], rows: Any, first: int, last: int, targets: Sequence[np.ndarray], weight: np.ndarray | None
) -> None:
    """Add rounds to the checksums of several runs: the same rows and weights, targets of its own for each.

    Parameters
    ----------
    sums : sequence of ndarray
        The checksum of each run.
    rows : Dense, Strided or CSR
        Rows as the loops read them.
    first, last : int
        Which of them.
    targets, weight : sequence of ndarray, and ndarray or None
        Their targets for each run and their weights, as many as there are rounds; None is 1.

    Examples
    --------
    >>> dense, sparse, y = begin_played(), begin_played(), np.array([1.0, -1.0])
    >>> add_played([dense], Dense(np.array([[0.0, 2.0], [3.0, 0.0]]), 1.0), 0, 2, [y], None)
    >>> add_played([sparse], CSR(np.array([2.0, 3.0]), np.array([1, 0]), np.array([0, 1, 2]), 1.0), 0, 2, [y], None)
    >>> (dense == sparse).all(), int(dense[0])
    (np.True_, 2)
    """
    narrow = isinstance(rows, Dense) and 0 < rows.values.shape[1] <= NARROW and (weight is None or weight.all())
    if narrow:
        _add_narrow(sums, rows.values[first:last])
    words, none = np.zeros(min(last - first, BLOCK), np.uint64), np.zeros(0)
    for a in range(0, last - first, BLOCK):
        b = min(last - first, a + BLOCK)
        if not narrow:
            word_of_each(rows, first + a, first + b, words)
        for each, y in zip(sums, targets, strict=True):
            kernels.add_rounds(words[: b - a], y[a:b], none if weight is None else weight[a:b], each)


def _add_narrow(sums: Sequence[Words], values: np.ndarray) -> None:
    """Add contiguous rows to checksums, their targets and weights not yet."""
    width, flat = values.shape[1], values.reshape(-1)
    known: dict[int, Any] = {}
    for each in sums:
        start = int(each[ROUNDS])
        if start not in known:
            known[start] = kernels.narrow_rows(flat, np.uint64(width), _factors(64, width).ravel(), np.uint64(start))
        each[PLAYED : PLAYED + 1] += np.uint64(known[start])


@lru_cache(64)
def _factors(rounds: int, width: int) -> Words:
    """The factors of columns, for so many rounds."""
    columns = kernels.factors(np.arange(max(rounds, width), dtype=np.uint64))
    return columns[:rounds, None] * columns[:width]


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
