"""A uniform random permutation of rows, in memory or through temporary files if they do not fit.

Each row gets a random key that depends only on the seed and on its number, and rows are returned in the order of their
keys. The order therefore does not depend on the sizes of chunks or on memory. Rows that do not fit in memory are split
into files by the leading bits of their keys, and the files are sorted one after another.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import SourceError
from ..rows.matrices import joined_weights, stacked
from ..sources import Chunk
from ..sources.base import CHUNK
from .prepare import alike, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedRandom

MEMORY = 1 << 27  # bytes of rows that are held
BITS = 8  # 2^BITS files


class KeyedRows(NamedTuple):
    """Rows with their keys and their numbers."""

    keys: np.ndarray
    numbers: np.ndarray
    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None

    def taken(self, which: Any) -> KeyedRows:
        """A selection of the rows."""
        y, weight = (None if values is None else values[which] for values in (self.y, self.weight))
        return KeyedRows(self.keys[which], self.numbers[which], self.X[which], y, weight)

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        X = self.X
        cells = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        return int(cells + 32 * len(self.keys) + (0 if self.y is None else self.y.nbytes))


def shuffled(
    read: Callable[[], Iterator[Chunk]],
    seed: int,
    start: dict[str, Any] | None = None,
    memory: int = MEMORY,
    first_row: int = 0,
) -> Iterator[Chunk]:
    """The rows of chunks in a uniformly random order.

    Parameters
    ----------
    read : callable
        Returns the chunks from their beginning; called again only to locate a bad row for an error.
    seed : int
        The seed in [0, 2^64) of the order.
    start : dict or None, default None
        The position of a chunk yielded earlier, to resume after it; all rows are read and sorted again.
    memory : int, default 2**27
        Bytes of rows to hold in memory; the order does not depend on it.
    first_row : int, default 0
        The number of the first row if these are part of a table; their order is then the one they have in the shuffled
        table.

    Yields
    ------
    Chunk
        The first one is empty, but has the rejected rows and, in its position, the counts of the source.

    Raises
    ------
    SourceError
        If `start` is a position in other rows.

    Examples
    --------
    >>> from hindsight import open_source
    >>> data = np.arange(8.0).reshape(4, 2)
    >>> chunks = shuffled(lambda: open_source(data, "2").chunks(), seed=1)
    >>> np.concatenate([chunk.y for chunk in chunks]).tolist()
    [1.0, 7.0, 5.0, 3.0]
    """
    done = 0 if start is None else start["shuffled"]
    with ExitStack() as files:
        deal = Dealt(files, seed, memory, first_row)
        rejects: list[Any] = []
        last: Chunk | None = None
        for last in read():
            rejects += last.rejects
            deal.add(last)
        if last is None:
            return
        if start is not None and start.get("digest") != last.position.get("digest"):
            raise SourceError("the rows have changed since the checkpoint was written")
        position = {name: value for name, value in last.position.items() if name != "width"}
        width = 0 if deal.width is None else deal.width
        if start is None:
            select(last, slice(0))
            yield replace(last, first=0, position=position | {"shuffled": 0}, rejects=rejects)
        row = 0
        for rows in deal.in_order():
            step = max(1, CHUNK * len(rows.keys) // max(1, rows.size))
            for a in range(max(0, done - row), len(rows.keys), step):
                part = rows.taken(slice(a, a + step))
                if not isinstance(part.X, np.ndarray):
                    part.X.resize((part.X.shape[0], width))
                first = row + a
                at = position | {"shuffled": first + len(part.keys)}
                place, raw = (located(read, part.numbers, what) for what in ("place", "raw"))
                yield Chunk(part.X, part.y, part.weight, first, at, last.read, place, raw)
            row += len(rows.keys)


def located(read: Callable[[], Iterator[Chunk]], numbers: np.ndarray, what: str) -> Callable[[int], str]:
    """An attribute of a row, from the chunk that it came from, found by reading up to the row."""

    def find(i: int) -> str:
        first = 0
        try:
            for chunk in read():
                if numbers[i] < first + len(chunk):
                    return str(getattr(chunk, what)(int(numbers[i]) - first))
                first += len(chunk)
        except SourceError:  # standard input
            pass
        return f"row {numbers[i] + 1:,}"

    return find


def keys(seed: int, first: int, count: int) -> np.ndarray:
    """The random keys of rows, by their numbers; independent of what `sampled` draws with the same seed."""
    skip = first % 4  # the generator makes four numbers at a time
    return np.asarray(np.random.Philox(key=seed + (1 << 64)).advance(first // 4).random_raw(skip + count)[skip:])


class Dealt:
    """Rows held in memory, and moved to files if they become too many."""

    def __init__(self, stack: ExitStack, seed: int, memory: int, first_row: int = 0) -> None:
        self.stack, self.seed, self.memory, self.first_row = stack, seed, memory, first_row
        self.held: list[KeyedRows] = []
        self.size = self.count = 0
        self.width: int | None = None
        self.files: list[BufferedRandom] = []

    def add(self, chunk: Chunk) -> None:
        """Take the rows of a chunk."""
        if not len(chunk):
            return
        numbers = np.arange(self.count, self.count + len(chunk))
        X = chunk.X.copy()  # the source may overwrite it
        y, weight = (None if values is None else values.copy() for values in (chunk.y, chunk.weight))
        rows = KeyedRows(keys(self.seed, self.first_row + self.count, len(chunk)), numbers, X, y, weight)
        if not isinstance(X, np.ndarray):
            self.width = max(self.width or 0, X.shape[1])
        self.held.append(rows)
        self.size, self.count = self.size + rows.size, self.count + len(chunk)
        if self.size > self.memory:
            self.write()

    def write(self) -> None:
        """Move the rows in memory to the files."""
        if not self.files:
            folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="hindsight-shuffle-"))
            for k in range(1 << BITS):
                self.files.append(self.stack.enter_context(Path(folder, str(k)).open("w+b")))  # noqa: SIM115
        rows = in_key_order(self.held)
        bounds = np.arange(1, 1 << BITS, dtype=np.uint64) << np.uint64(64 - BITS)
        ends = [0, *np.searchsorted(rows.keys, bounds).tolist(), len(rows.keys)]
        for k, file in enumerate(self.files):
            if ends[k] < ends[k + 1]:
                write_rows(file, rows.taken(slice(ends[k], ends[k + 1])))
        self.held, self.size = [], 0

    def in_order(self) -> Iterator[KeyedRows]:
        """Yield all rows in order, in parts."""
        if not self.files:
            if self.held:
                yield in_key_order(self.held)
            return
        if self.held:
            self.write()
        for file in self.files:
            parts = list(read_rows(file))
            if parts:
                yield in_key_order(parts)


def in_key_order(parts: list[KeyedRows]) -> KeyedRows:
    """Concatenate parts and sort them by key."""
    ys: list[Any] = [part.y for part in parts]
    whole = KeyedRows(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.numbers for part in parts]),
        stacked([part.X for part in parts]),
        None if ys[0] is None else np.concatenate(alike(ys)),
        joined_weights([part.weight for part in parts], [len(part.keys) for part in parts]),
    )
    return whole.taken(np.lexsort((whole.numbers, whole.keys)))


def write_rows(file: BufferedRandom, rows: KeyedRows) -> None:
    """Append rows to a file: their arrays one after another, missing ones as empty arrays."""
    nothing, X = np.empty(0), rows.X
    arrays = [rows.keys, rows.numbers, nothing if rows.y is None else rows.y]
    arrays.append(nothing if rows.weight is None else rows.weight)
    arrays += [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr, np.array(X.shape)]
    for array in (np.array([len(arrays)]), *arrays):
        np.save(file, array, allow_pickle=False)


def read_rows(file: BufferedRandom) -> Iterator[KeyedRows]:
    """Read the rows written by `write_rows`."""
    from scipy.sparse import csr_matrix

    end = file.tell()
    file.seek(0)
    while file.tell() < end:
        count = int(np.load(file)[0])
        numbers, rows, y, weight, *cells = (np.load(file) for _ in range(count))
        X = cells[0] if count == 5 else csr_matrix((cells[0], cells[1], cells[2]), shape=tuple(cells[3].tolist()))
        yield KeyedRows(numbers, rows, X, y if y.size else None, weight if weight.size else None)
