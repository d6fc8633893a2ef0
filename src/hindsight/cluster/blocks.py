"""The rows of one partition, held by a worker during a fit, or read again for every pass.

A block is plain data: the origin of the rows, so that another worker can read them again; the rows, if they are held;
and a cache of what is kept between passes, which may be lost at any time.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.least_squares import Factor
from ..errors import RowError, SourceError
from ..rows.checksum import RowChecksum
from ..rows.data import Data
from ..rows.labels import encode_labels, targets_of_runs
from ..rows.matrices import joined_weights, stacked
from ..rows.scaling import Measure, scaled
from ..sources import label_text
from ..training.prepare import alike, bytes_of, targets_of
from .partitions import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..kernels.floats import Floats

LEFT_OUT = ("unlabelled", "skipped", "short")  # of which rows a position of a source counts
Rows = tuple[Any, np.ndarray, "np.ndarray | None"]  # rows, targets and weights


@dataclass(frozen=True)
class View:
    """The rows as seen by one run: its targets and the intercept.

    Parameters
    ----------
    kind : {"real", "unit", "sign"}
        The kind of targets of the loss.
    classes : tuple or None, default None
        The classes, if targets are labels.
    run : int, default 0
        The index of the run in one-vs-rest.
    offset, scale : float
        Targets that are numbers become (y - offset) / scale.
    bias : float, default 0.0
        The value of the intercept coordinate, 0 for none.
    """

    kind: str = "real"
    classes: tuple[Any, ...] | None = None
    run: int = 0
    offset: float = 0.0
    scale: float = 1.0
    bias: float = 0.0

    def targets(self, y: np.ndarray) -> Floats:
        """Return the targets of rows."""
        if self.classes is None:
            return np.asarray((y.astype(np.float64, copy=False) - self.offset) / self.scale)
        if isinstance(self.classes[0], str) and y.dtype.kind == "f":
            y = label_text(y)
        codes = encode_labels(y, self.classes)
        if codes.size and codes.min() < 0:
            row = int(codes.argmin())
            raise RowError(row, f": label {str(y[row])!r} is not one of {', '.join(map(str, self.classes))}")
        return targets_of_runs(codes, len(self.classes), self.kind)[self.run]


@dataclass(eq=False)
class Block:
    """The rows of a partition.

    Parameters
    ----------
    origin : Partition
        The partition that the rows come from.
    X : ndarray, csr_matrix or None
        The rows; None reads them again from the partition for every pass, chunk by chunk.
    y : ndarray
        Targets as they were read: numbers, or text.
    weight : ndarray or None
        Weights; None is 1.
    names : list of str
        Names of the features.
    space : list of int or None, default None
        The namespace of each name, if names have one.
    sparse : bool, default False
        Whether the rows are sparse.
    columns : ndarray or None, default None
        The destination of each column of the partition's source.
    scale : dict or None, default None
        The scaling of the rows.
    counts : dict of int
        The number of rows without a target, or skipped, by reason.
    """

    origin: Partition
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    names: list[str]
    space: list[int] | None = None
    sparse: bool = False
    columns: Any = None
    scale: dict[str, Any] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    _kept: dict[str, tuple[Any, Any]] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}}

    def __sizeof__(self) -> int:
        held = 0 if self.X is None else bytes_of(self.X)
        return held + self.y.nbytes + 24 * len(self.y)  # targets as they were read, and with weights as they are played

    def __len__(self) -> int:
        return len(self.y)

    def parts(self, y: np.ndarray | None = None) -> Iterator[Rows]:
        """Yield the prepared rows with their targets: those in `y`, or as read.

        They come in one part if they are held, and otherwise chunk by chunk.
        """
        y, done = self.y if y is None else y, 0
        if self.X is not None:
            yield self.X, y, self.weight
            return
        for chunk in self.origin.chunks(self.origin.open()):
            if len(chunk):
                part = slice(done, done + len(chunk))
                done += len(chunk)
                X = scaled(moved(chunk.X, self.columns, len(self.names)), self.scale)
                yield X, y[part], None if self.weight is None else self.weight[part]
        if done != len(y):
            raise SourceError(f"{self.origin.where}: has changed since it was read: {done:,} rows, not {len(y):,}")

    def over(self, work: Callable[[Any, np.ndarray, np.ndarray | None], None], y: np.ndarray | None = None) -> None:
        """Apply `work` to the parts of the rows, in order."""
        done = 0
        for X, own, weight in self.parts(y):
            try:
                work(X, own, weight)
            except RowError as error:
                raise RowError(done + error.row, error.message) from None
            done += len(own)

    def keep(self, name: str, key: Any, make: Callable[[], Any]) -> Any:
        """Return the cached value of this name, made anew if its key has changed."""
        known = self._kept.get(name)
        if known is None or known[0] != key:
            known = self._kept[name] = key, make()
        return known[1]

    def drop(self, name: str) -> None:
        """Remove the value of this name from the cache."""
        self._kept.pop(name, None)

    def data(self, view: View) -> Data:
        """Return the rows as seen by a run."""

        def make() -> Data:
            y = view.targets(self.y)
            if self.X is not None:
                return Data(self.X, y, self.weight, view.bias)
            return Data.from_chunks(lambda: self.parts(y), view.bias)

        data: Data = self.keep("data", view, make)
        return data

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Add the place of the row to errors about it."""
        try:
            yield
        except RowError as error:
            raise SourceError(f"{self.origin.place(error.row)}{error.message}") from None


def load(partition: Partition, held: bool = True) -> Block:
    """Return the block of a partition, with or without its rows."""
    source, rows, targets, weights = partition.open(), list[Any](), list[Any](), list[Any]()
    position: dict[str, Any] = {}
    for chunk in partition.chunks(source):
        position = chunk.position
        if len(chunk):
            rows.append(chunk.X if held else None)
            targets.append(targets_of(chunk))
            weights.append(chunk.weight)
    y = np.concatenate(alike(targets)) if targets else np.zeros(0)
    X, names = stacked(rows) if held and rows else None, list(source.names)
    if X is not None and X.shape[1] < len(names):
        X.resize((X.shape[0], len(names)))
    space = source.state().get("space") if source.decided else None
    counts = {name: position[name] for name in LEFT_OUT if position.get(name)}
    weight = joined_weights(weights, [len(each) for each in targets])
    return Block(partition, X, y, weight, names, space, source.kind == "sparse", counts=counts)


def load_arrays(number: int, X: Any, y: Any, weight: Any) -> Block:
    """Return the block of arrays that Dask computed."""
    X = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X.tocsr()
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    weight = None if weight is None else np.asarray(weight, np.float64)
    names, sparse = [str(k) for k in range(X.shape[1])], not isinstance(X, np.ndarray)
    return Block(Partition(number, None, None), X, np.asarray(y), weight, names, None, sparse)


def load_frame(number: int, frame: Any, target: str, reading: dict[str, Any]) -> Block:
    """Return the block of a data frame that Dask computed."""
    return load(Partition(number, frame, target, reading))


def renamed(block: Block, columns: Any, names: list[str]) -> Block:
    """Return the block with each column moved to its new place, so that all blocks have the same features."""
    if columns is None:
        return block
    X = None if block.X is None else moved(block.X, columns, len(names))
    return replace(block, X=X, names=names, space=None, sparse=True, columns=columns)


def moved(X: Any, columns: Any, features: int) -> Any:
    """Return rows with each column moved to its new position among `features` columns."""
    if isinstance(X, np.ndarray):
        return X
    from scipy.sparse import csr_matrix

    out = csr_matrix((X.data, X.indices if columns is None else columns[X.indices], X.indptr), (X.shape[0], features))
    out.sort_indices()
    return out


def rescaled(block: Block, scale: dict[str, Any]) -> Block:
    """Return the block with its rows scaled."""
    return replace(block, X=None if block.X is None else scaled(block.X, scale), scale=scale)


def sizes_of(block: Block, kind: str) -> Measure:
    """Return the statistics of a block that a scaling needs, including rows without a target."""
    out = Measure()
    if block.counts.get("unlabelled"):
        for chunk in block.origin.chunks(block.origin.open(), unlabelled=True):
            out.add(moved(chunk.X, block.columns, len(block.names)), kind)
    else:
        block.over(lambda X, y, weight: out.add(X, kind))
    return out


def checksum_of(block: Block) -> list[int]:
    """Return the checksum of the rows of a block, as read."""
    read = RowChecksum()
    block.over(read.add)
    return read.counts


def factor(block: Block, intercept: bool) -> Factor:
    """Return the triangular factor of the rows of a block."""
    out = Factor(len(block.names), intercept)
    block.over(lambda X, y, weight: out.add(X, y, weight, block.names), block.y.astype(float, copy=False))
    return out.settle()
