"""The rows of one partition, held by a worker for as long as a fit takes.

Everything here is plain: where the rows come from, so that a worker that takes over can read them again; the rows; and
what is kept between two passes, which may be lost at any time.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RowError, SourceError
from ..rows.data import Data
from ..rows.labels import encode_labels, targets_of_runs
from ..sources import Chunk, label_text, open_source
from ..training.prepare import joined, stacked, targets_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kernels.floats import Floats


# ---------------------------------------------------------------- where rows come from


@dataclass(frozen=True)
class Partition:
    """Rows that `hindsight.open_source` reads: all of them, or some row groups of one Parquet file.

    Parameters
    ----------
    number : int
        Its number, from 0.
    data : object
        Files, or rows in memory.
    target : str or None
        The column to predict.
    reading : dict
        Further parameters of `hindsight.open_source`, the same for all partitions.
    state : dict or None
        How the source of all rows maps names to columns at its beginning.
    first : int, default 0
        The first row, at the beginning of a row group.
    count : int or None, default None
        How many rows, to the end of a row group; None takes all.
    """

    number: int
    data: Any
    target: str | None
    reading: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] | None = None
    first: int = 0
    count: int | None = None

    def read(self) -> tuple[list[Chunk], list[str]]:
        """Return the chunks, and the names of the features."""
        source = open_source(self.data, self.target, **self.reading)
        if self.state is not None:
            source.restore(self.state)
        chunks = []
        start = {"file": 0, "offset": self.first} if self.first else None
        for chunk in source.chunks(start):
            chunks.append(chunk)
            if self.count is not None and chunk.position["offset"] >= self.first + self.count:
                break
        return [chunk for chunk in chunks if len(chunk)] or chunks[:1], list(source.names)

    def load(self) -> Block:
        """Read the rows into a block."""
        with self.named():
            chunks, names = self.read()
        if not chunks:
            raise SourceError(f"{self.where}: there is no row to learn from")
        targets = [targets_of(chunk) for chunk in chunks]
        if any(y.dtype.kind == "U" for y in targets):
            targets = [label_text(y) if y.dtype.kind == "f" else y for y in targets]
        X, weight = stacked([chunk.X for chunk in chunks]), joined([chunk.weight for chunk in chunks])
        return Block(self, X, np.concatenate(targets), weight, names)

    @property
    def in_memory(self) -> bool:
        """Whether the rows are an object rather than files."""
        one = self.data[0] if isinstance(self.data, list) and self.data else self.data
        return not isinstance(one, str)

    @property
    def where(self) -> str:
        """Its name in messages."""
        if self.in_memory:
            return f"partition {self.number}"
        return self.data if isinstance(self.data, str) else str(self.data[0])

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say of rows in memory which partition they are from."""
        try:
            yield
        except SourceError as error:
            if not self.in_memory:
                raise
            raise SourceError(f"{self.where}: {error}") from None

    def place(self, row: int) -> str:
        """Say where a row stands; the rows are read again, which only an error is worth."""
        chunks, _ = self.read()
        for chunk in chunks:
            if row < len(chunk):
                return f"{self.where}: {chunk.place(row)}" if self.in_memory else chunk.place(row)
            row -= len(chunk)
        return self.where


@dataclass(frozen=True)
class Piece:
    """Rows that Dask computes: a piece of an array, or of a data frame."""

    number: int

    def place(self, row: int) -> str:
        """Say where a row stands."""
        return f"partition {self.number}, row {row}"


# ---------------------------------------------------------------- rows


@dataclass(frozen=True)
class Targets:
    """What one run takes as targets.

    Parameters
    ----------
    kind : {"real", "unit", "sign"}
        What its loss takes.
    classes : ndarray or None, default None
        The classes, where targets are labels.
    run : int, default 0
        Which of the runs, one-vs-rest.
    offset, scale : float
        Numbers become (y - offset) / scale.
    """

    kind: str = "real"
    classes: Any = None
    run: int = 0
    offset: float = 0.0
    scale: float = 1.0

    def of(self, y: np.ndarray) -> Floats:
        """Return the targets of rows."""
        if self.classes is None:
            return np.asarray((y.astype(np.float64, copy=False) - self.offset) / self.scale)
        if self.classes.dtype.kind == "U" and y.dtype.kind == "f":
            y = label_text(y)
        codes = encode_labels(y, self.classes)
        return targets_of_runs(codes, len(self.classes), self.kind)[self.run]

    def key(self) -> tuple[Any, ...]:
        """Return what tells it from others."""
        classes = None if self.classes is None else tuple(self.classes.tolist())
        return self.kind, classes, self.run, self.offset, self.scale


class Block:
    """The rows of a partition.

    Parameters
    ----------
    origin : Partition or Piece
        Where they come from.
    X : ndarray or csr_matrix
        The rows.
    y : ndarray
        Targets as they were read: numbers, or text.
    weight : ndarray or None
        Weights; None is 1.
    names : list of str
        Names of the features.
    """

    def __init__(self, origin: Any, X: Any, y: np.ndarray, weight: np.ndarray | None, names: list[str]) -> None:
        self.origin, self.X, self.y, self.weight, self.names = origin, X, y, weight, names
        self._kept: dict[str, tuple[Any, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}}

    def __sizeof__(self) -> int:
        parts = [self.X] if isinstance(self.X, np.ndarray) else [self.X.data, self.X.indices, self.X.indptr]
        kept = [self.y, *([] if self.weight is None else [self.weight])]
        return sum(array.nbytes for array in (*parts, *kept)) + 16 * len(self.y)  # targets and weights as played

    def keep(self, name: str, key: Any, make: Any) -> Any:
        """Return what was made under this name for this key, made now unless it was the last one."""
        known = self._kept.get(name)
        if known is None or known[0] != key:
            known = self._kept[name] = key, make()
        return known[1]

    def drop(self, name: str) -> None:
        """Forget what was made under this name."""
        self._kept.pop(name, None)

    def data(self, targets: Targets, bias: float) -> Data:
        """Return the rows with the targets of a run."""
        return self.keep("data", (targets.key(), bias), lambda: Data(self.X, targets.of(self.y), self.weight, bias))

    def margins(self, targets: Targets, bias: float, w: Floats) -> Floats:
        """Return w . x of every row, kept until it is asked for other weights."""
        data = self.data(targets, bias)
        return self.keep("margins", (bias, w.tobytes()), lambda: data.margins(w))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say of an error in a row where that row stands."""
        try:
            yield
        except RowError as error:
            raise SourceError(f"{self.origin.place(error.row)}{error.message}") from None


def load(partition: Partition) -> Block:
    """Return the block of a partition."""
    return partition.load()


def load_arrays(number: int, X: Any, y: Any, weight: Any) -> Block:
    """Return the block of arrays that Dask computed."""
    X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X.tocsr()
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    weight = None if weight is None else np.asarray(weight, np.float64)
    return Block(Piece(number), X, np.asarray(y), weight, [str(k) for k in range(X.shape[1])])


def load_frame(number: int, frame: Any, target: str, reading: dict[str, Any]) -> Block:
    """Return the block of a data frame that Dask computed."""
    return Partition(number, frame, target, reading).load()


def renamed(block: Block, columns: Any, names: list[str]) -> Block:
    """Return the block with each column moved to its new place, so that all blocks have the same features."""
    if columns is None:
        return block
    from scipy.sparse import csr_matrix

    X = block.X
    out = csr_matrix((X.data, columns[X.indices], X.indptr), shape=(X.shape[0], len(names)))
    out.sort_indices()
    return Block(block.origin, out, block.y, block.weight, names)
