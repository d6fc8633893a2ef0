"""Rows in partitions on workers: how they are loaded, described and scaled."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DisprovedError, SourceError
from ..rows.matrices import stacked
from ..rows.scaling import SCALES, Measure
from ..rows.spread import SpreadRows
from ..rows.table import Measured, check_coordinates, measure
from ..sources import label_text
from ..sources.tables.layout import LIMIT
from .blocks import Block, View, load, load_arrays, load_frame, renamed, rescaled, sizes_of
from .engine import Engine
from .partitions import ROWS, Split, split_table, with_first_rows, with_types_of_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..kernels.floats import Floats

LABELS = 1000  # distinct targets reported by a partition
SAMPLED = 4096  # rows from all partitions that the driver holds, to split margins into even ranges


@dataclass(frozen=True)
class Shape:
    """What the driver knows about a block.

    These are its rows and bytes, its features, the first LABELS + 1 of its labels, and the smallest and largest target
    of rows with positive weight.
    """

    rows: int
    names: list[str]
    space: list[int] | None
    sparse: bool
    weighted: bool
    text: bool
    labels: np.ndarray
    least: float
    most: float
    size: int
    counts: dict[str, int]


def shape_of(block: Block) -> Shape:
    """Return the shape of a block."""
    y, text = block.y, block.y.dtype.kind not in "fiub"
    found = np.unique(y)[: LABELS + 1]
    counted = y if block.weight is None else y[block.weight > 0.0]
    ends = (np.nan, np.nan) if text else (float(counted.min(initial=np.inf)), float(counted.max(initial=-np.inf)))
    weighted, size = block.weight is not None, block.__sizeof__()
    return Shape(len(y), block.names, block.space, block.sparse, weighted, text, found, *ends, size, block.counts)


def on_data(block: Block, view: View, work: Callable[..., Any], *shared: Any) -> Any:
    """Return work(data, *shared) for the rows of a block as seen by a run."""
    return work(block.data(view), *shared)


class RunTable(SpreadRows):
    """A `rows.table.Table` of all partitions with the targets of a run; each sum is one reduction.

    Parameters
    ----------
    rows : ClusterRows
        The rows.
    view : View
        The rows as seen by the run.
    """

    def __init__(self, rows: ClusterRows, view: View) -> None:
        self.rows, self.view, self.bias = rows, view, view.bias
        self.width = rows.features + int(view.bias != 0.0)
        each: list[Measured] = rows.engine.each(on_data, view, measure, view.kind, rows.names)
        self._measured = sum(each[1:], each[0]).checked()
        self.weight = self._measured.weight

    def sum(self, work: Callable[..., Any], *shared: Any, add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return the sum of work(data, *shared) over all partitions, in the fixed order of `engine`."""
        return self.rows.engine.reduce(on_data, self.view, work, *shared, add=add)

    def check(self, u: Any) -> Floats:
        """Return u as float64; a ValueError if its length is not the width, or a value is not finite."""
        return check_coordinates(u, self.width, self.bias)

    def measured(self, kind: str, names: Sequence[Any] | None = None) -> Measured:
        """Return sums and maxima over all rows, after checking the targets."""
        return self._measured


def evenly(rows: int, count: int) -> np.ndarray:
    """Return at most `count` evenly spaced indices of `rows` rows."""
    return np.unique(np.linspace(0, rows - 1, min(rows, count)).astype(np.int64))


def sample(block: Block, count: int) -> Any:
    """Return at most `count` evenly spaced rows."""
    taken, done, which = list[Any](), 0, evenly(len(block), count)
    for X, y, _ in block.parts():
        taken.append(X[which[(which >= done) & (which < done + len(y))] - done])
        done += len(y)
    return stacked(taken)


class ClusterRows:
    """Rows in partitions that the workers hold, or read again for every pass.

    Attributes
    ----------
    names : list of str
        The features.
    rows, features : int
        The number of rows and of features in all partitions.
    engine : Engine
        The engine that runs work on them.
    reading : dict
        Parameters of `hindsight.open_source` for reading other files in the same way.
    table : Split or None
        The files and their column types; None for Dask's arrays and data frames.
    held : bool
        Whether the workers hold the rows; otherwise they read them again for every pass.
    scale : dict or None
        How the rows are scaled; None leaves them as they are.
    """

    def __init__(
        self, engine: Engine, named: bool = False, table: Split | None = None, held: bool = True, where: str = "data"
    ) -> None:
        self.engine, self.named, self.table, self.held = engine, named, table, held
        self.reading = {} if table is None else table.partitions[0].reading
        self.scale: dict[str, Any] | None = None
        self.shapes: list[Shape] = engine.each(shape_of)
        self.rows = sum(shape.rows for shape in self.shapes)
        if not self.rows:
            raise SourceError(f"{where}: there is no row to learn from")
        if any(shape.rows == 0 for shape in self.shapes):  # they would be shards that learn nothing
            engine.blocks = [block for block, shape in zip(engine.blocks, self.shapes, strict=True) if shape.rows]
            self.shapes = [shape for shape in self.shapes if shape.rows]
        engine.place([shape.size for shape in self.shapes])
        kinds = {shape.sparse for shape in self.shapes}
        if len(kinds) > 1:
            raise SourceError("some partitions are dense and others sparse: give them one form")
        self.sparse = kinds.pop()
        self.names = self._join_names()
        self.features = len(self.names)
        self.text = any(shape.text for shape in self.shapes)
        self.weighted = any(shape.weighted for shape in self.shapes)

    def _join_names(self) -> list[str]:
        """Give all blocks the same features, in the order of their appearance in one pass over all rows."""
        place: dict[str, int] = {}
        for shape in self.shapes:
            for name in shape.names:
                place.setdefault(name, len(place))
        names = list(place)
        if all(shape.names == names for shape in self.shapes):
            return names
        if not self.sparse:
            other = next(shape for shape in self.shapes if shape.names != self.shapes[0].names)
            raise SourceError(f"partitions have different columns: {self.shapes[0].names} and {other.names}")
        if len(names) > LIMIT and any(shape.space is not None for shape in self.shapes):
            raise SourceError(
                f"the partitions have {len(names):,} different features together, more than {LIMIT:,}: leave out the "
                "columns with the most values (--types NAME:ignore)"
            )
        columns = [
            None if shape.names == names else np.array([place[name] for name in shape.names], np.int32)
            for shape in self.shapes
        ]
        self.engine.change(renamed, columns, [names] * len(columns))
        return names

    def state(self) -> dict[str, Any] | None:
        """Return the numbering of features and the column types, for a model; None without both.

        It is the state of a source that has read all partitions.
        """
        if self.table is None or (state := self.table.partitions[0].state) is None or "table" not in state:
            return None
        space: dict[str, int] = {}
        for shape in self.shapes:
            space.update(zip(shape.names, shape.space or (), strict=False))
        return state | {"names": self.names, "space": [space.get(name, 0) for name in self.names]}

    def rescale(self, kind: str) -> None:
        """Scale the rows of all partitions, as `hindsight learn --scale` does.

        Parameters
        ----------
        kind : {"none", "row-unit", "global-unit", "max-abs", "standard"}
            How.
        """
        if kind not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {kind!r}")
        if kind == "none":
            return
        self.scale = {"kind": kind}
        if SCALES[kind]:
            total = Measure()
            for each in self.engine.each(sizes_of, kind):
                total.join(each)
            self.scale = total.scale(kind)
        self.engine.change(rescaled, [self.scale] * len(self.shapes))

    def counts(self) -> dict[str, int]:
        """Return the number of rows that have no target or were skipped, by reason."""
        return dict(sum((Counter(shape.counts) for shape in self.shapes), Counter[str]()))

    def labels(self) -> np.ndarray:
        """Return the distinct targets of all partitions, sorted; as text if some are text."""
        if any(shape.labels.size > LABELS for shape in self.shapes):
            raise ValueError(f"the target has more than {LABELS} values: these are numbers, not classes")
        found = [shape.labels for shape in self.shapes]
        if self.text:
            found = [label_text(values) if values.dtype.kind == "f" else values for values in found]
        return np.unique(np.concatenate(found))

    def target_range(self) -> tuple[float, float]:
        """Return the smallest and the largest target of rows with positive weight."""
        return min(shape.least for shape in self.shapes), max(shape.most for shape in self.shapes)

    def sample(self) -> Any:
        """Return a few rows of every partition."""
        return stacked(self.engine.each(sample, max(8, SAMPLED // len(self.shapes))))


def read(
    data: Any,
    target: Any = None,
    *,
    client: Any = None,
    weight: Any = None,
    partition_rows: int = ROWS,
    retries: int = 3,
    labels: bool | None = None,
    limit: int | None = None,
    sample: float | None = None,
    shuffle: bool = False,
    seed: int = 0,
    scale: str = "none",
    held: bool | None = None,
    notify: Callable[[str], None] = lambda _: None,
    **reading: Any,
) -> ClusterRows:
    """Let workers read rows, and hold them if there is enough memory.

    With ``strict=False``, the types of the columns of ordinary tables are inferred as on one machine: from the first
    rows and, if a later row contradicts them, by the workers from all rows.

    Parameters
    ----------
    data : str, list, dask.array.Array or dask.dataframe.DataFrame
        A folder of files, or one file; a list with one entry per partition, each anything that `hindsight.open_source`
        reads; or a Dask array or data frame, whose pieces become the partitions. Paths must name the same files on all
        workers.
    target : str or dask.array.Array
        The column to predict; of an array, its targets.
    client : distributed.Client, default None
        The cluster; None takes the current client.
    weight : str or dask.array.Array, default None
        The column with the importance of each row; of an array, its weights.
    partition_rows : int, default 2**20
        Parquet files are split at the ends of row groups into partitions of at least `partition_rows` rows; other files
        are one partition each. Results depend on the partitions only through rounding, and not on the number of
        workers.
    retries : int, default 3
        How often failed work is retried.
    labels : bool, default None
        As in `hindsight.open_source`: True returns every target as text, False every target as a number.
    limit : int, default None
        The maximum number of rows; the first ones are taken.
    sample : float, default None
        The probability with which each row is taken; the selected rows are the same as on one machine.
    shuffle : bool, default False
        Put the rows of each partition in a random order, the one that they would have among all rows on one machine.
        Partitions are learnt at the same time and so have no order. Cannot be combined with `limit`.
    seed : int, default 0
        The seed of `sample` and `shuffle`.
    scale : {"none", "row-unit", "global-unit", "max-abs", "standard"}, default "none"
        How to scale the rows.
    held : bool, default None
        Whether workers hold the rows, or read them again for every pass. None holds them if, judging by the sizes of
        the files, they take less than two fifths of the memory of all workers.
    notify : callable, default does nothing
        Called with a line of text if reading starts again.
    **reading
        Further parameters of `hindsight.open_source`.

    Returns
    -------
    ClusterRows

    Raises
    ------
    SourceError
        If a row is bad; the error is that of the first partition with one, as in `hindsight.open_source`.
    ClusterError
        If `dask.distributed` is missing, or workers are lost.
    """
    engine = Engine.of(client, retries)
    module = type(data).__module__.partition(".")[0]
    if module == "dask" or module.startswith("dask_"):
        if not reading.get("strict", True) or limit is not None or sample is not None or shuffle:
            raise ValueError("strict=False, limit, sample and shuffle are for files, and for lists of partitions")
        rows = _read_dask(engine, data, target, weight, reading | {"labels": labels})
        rows.rescale(scale)
        return rows
    options, taken = (
        reading | {"weight": weight, "labels": labels},
        {"sample": sample, "shuffle": shuffle, "seed": seed},
    )
    table = split_table(data, target, options, partition_rows, limit=limit, **taken)
    where = data if isinstance(data, str) else table.partitions[0].where
    try:
        rows = _load(engine, table, held, where)
    except DisprovedError as error:
        if table.partitions[0].reading.get("scan") == 0:
            raise
        notify(f"{error}; starting again, having looked at all rows")
        rows = _load(engine, with_types_of_all(table, engine), held, where)
    rows.rescale(scale)
    return rows


def _load(engine: Engine, table: Split, held: bool | None, where: str) -> ClusterRows:
    """Let the workers read a table."""
    parts = with_first_rows(table.partitions, engine)
    if held is None:
        sizes = [part.size(len(table.source.names)) for part in parts]
        together, one = engine.capacity()
        held = sum(sizes) <= together and max(sizes) <= one
    engine.blocks = engine.map([(load, (part, held)) for part in parts])
    return ClusterRows(engine, table=Split(table.source, parts), held=held, where=where)


def _read_dask(engine: Engine, data: Any, target: Any, weight: Any, reading: dict[str, Any]) -> ClusterRows:
    """Compute the pieces of a Dask array or data frame on their workers, and hold them as blocks."""
    client = engine.client
    if hasattr(data, "columns"):
        pieces = client.compute(list(data.to_delayed()))
        options = reading | {"weight": weight}
        engine.blocks = engine.map([(load_frame, (k, piece, target, options)) for k, piece in enumerate(pieces)])
        return ClusterRows(engine, named=True)
    columns = [values for values in (data, target, weight) if values is not None]
    if data.numblocks[1] > 1:
        columns[0] = data.rechunk({1: -1})
    if any(values.chunks[0] != columns[0].chunks[0] for values in columns):
        raise ValueError("rows, targets and weights must have the same chunks of rows: rechunk them")
    futures: list[Sequence[Any]] = [client.compute(values.to_delayed().ravel().tolist()) for values in columns]
    if weight is None:
        futures.append([None] * len(futures[0]))
    pieces = list(zip(*futures, strict=True))
    engine.blocks = engine.map([(load_arrays, (k, *piece)) for k, piece in enumerate(pieces)])
    return ClusterRows(engine)
