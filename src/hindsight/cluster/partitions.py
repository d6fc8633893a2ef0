"""Partitions of a table: their rows, and how they are read.

The driver infers the types of the columns once, from the first rows as on one machine, and every partition is read with
these types. A row keeps its number in the whole table, which determines whether it is sampled and its place in a random
order.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import SourceError
from ..sources import file_format, open_source
from ..sources.opening import found_format, list_files
from ..sources.streams import PACKED
from ..training.prepare import drawn, labelled, limited, reindexed, sampled, select, targets_of
from ..training.shuffle import shuffled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..sources import Chunk, Source
    from .engine import Engine

ROWS = 1 << 20  # rows in a partition of a Parquet file, up to the end of a row group


@dataclass(frozen=True)
class Partition:
    """Rows that `hindsight.open_source` reads: all of them, one of several files, or some row groups of it.

    Parameters
    ----------
    number : int
        Its number, from 0.
    data : object
        Files, the first of which determines how all are read; or rows in memory; None for a piece of a Dask array,
        which exists only after it is computed.
    target : str or None
        The column to predict.
    reading : dict
        Further parameters of `hindsight.open_source`, the same for all partitions.
    state : dict or None, default None
        The initial mapping of names to columns in the source of all rows, and the column types.
    file : int, default 0
        The index of the file with its rows, the last of `data`.
    first : int, default 0
        The first row, at the beginning of a row group.
    count : int or None, default None
        The number of rows, to the end of a row group; None takes all.
    limit : int or None, default None
        The maximum number of rows to take from the table.
    sample : float or None, default None
        The probability with which each row is taken.
    shuffle : bool, default False
        Whether to use a random order, the same as on one machine.
    seed : int, default 0
        The seed of `sample` and `shuffle`.
    before, taken : int, default 0
        The number of preceding rows of the table, and how many of those are taken.
    sums : list of str or None, default None
        The sums of the columns over the preceding rows, if missing values are filled with running means.
    """

    number: int
    data: Any
    target: str | None
    reading: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] | None = None
    file: int = 0
    first: int = 0
    count: int | None = None
    limit: int | None = None
    sample: float | None = None
    shuffle: bool = False
    seed: int = 0
    before: int = 0
    taken: int = 0
    sums: list[str] | None = None

    def open(self) -> Source:
        """Open the source of the rows."""
        return open_source(self.data, self.target, state=self.state, **self.reading)

    def chunks(self, source: Source, unlabelled: bool = False) -> Iterator[Chunk]:
        """Yield the selected rows as they are learnt; rows without a target only if `unlabelled`."""

        def read() -> Iterator[Chunk]:
            rows = self.all_rows(source)
            some = rows if self.sample is None else sampled(rows, self.sample, self.seed)
            return limited(source, some, self.limit, self.taken)

        for chunk in shuffled(read, self.seed, first_row=self.taken) if self.shuffle else read():
            known = labelled(targets_of(chunk))
            if not known.all() and not unlabelled:
                rows = np.flatnonzero(known)
                select(chunk, rows)
                chunk.place = reindexed(chunk.place, rows)
            yield chunk

    def all_rows(self, source: Source) -> Iterator[Chunk]:
        """Yield all rows of the partition, with their numbers in the table."""
        start: dict[str, Any] = {"file": self.file, "offset": self.first, "row": self.before}
        if self.sums is not None:
            table: Any = source
            start["sums"] = table.sums = self.sums
            table.follows = True
        if self.path is not None:
            for chunk in source.chunks(start):
                yield chunk
                if self.count is not None and chunk.position["offset"] >= self.first + self.count:
                    break
            return
        try:
            for chunk in source.chunks():
                chunk.first += self.before
                yield chunk
        except SourceError as error:
            raise type(error)(f"{self.where}: {error}") from None

    @property
    def path(self) -> str | None:
        """The file with its rows; None if they are in memory."""
        last = self.data[-1] if isinstance(self.data, list) and self.data else self.data
        return last if isinstance(last, str) else None

    @property
    def where(self) -> str:
        """Its name in messages."""
        return self.path or f"partition {self.number}"

    def place(self, row: int) -> str:
        """Return the place of a row for an error message; reads the rows again."""
        if self.data is None:
            return f"{self.where}, row {row}"
        for chunk in self.chunks(self.open()):
            if row < len(chunk):
                return chunk.place(row) if self.path is not None else f"{self.where}: {chunk.place(row)}"
            row -= len(chunk)
        return self.where

    def size(self, columns: int) -> int:
        """Estimate how many bytes the rows take in memory, without reading them."""
        if self.path is None:
            return 0
        if self.count is not None:
            return 8 * self.count * (columns + 1)
        packed = self.path.lower().endswith(PACKED)
        return os.path.getsize(self.path) * (10 if packed else 2)


# ---------------------------------------------------------------- how a table is split


class Split(NamedTuple):
    """A table in partitions: the source that determines how to read it, without its rows, and the partitions."""

    source: Source
    partitions: list[Partition]


def split_table(data: Any, target: str | None, reading: dict[str, Any], rows: int = ROWS, **taken: Any) -> Split:
    """Split files, or a list of anything that `open_source` reads, into partitions.

    The first rows determine which columns are read, their order and types. `taken` holds `limit`, `sample`, `shuffle`
    and `seed`, which select rows.
    """
    if taken.get("limit") is not None and taken.get("shuffle"):
        raise ValueError(
            "limit and shuffle: the first rows of a random order are not those of any partition; "
            "take sample instead of limit"
        )
    if taken.get("sample") is not None and not 0.0 < taken["sample"] <= 1.0:
        raise ValueError(f"sample must be above 0 and at most 1; got {taken['sample']!r}")
    if isinstance(data, list) and not all(isinstance(one, str) or hasattr(one, "__fspath__") for one in data):
        return _split_list(data, target, reading, taken)
    paths = list_files(data, reading.get("format"))
    if "-" in paths:
        raise SourceError("standard input cannot be read by workers: give a folder of files")
    form = reading.get("format") or file_format(paths[0])
    if form is None and not reading.get("strict", True):
        form = found_format(paths[0])
    reading = reading | {"format": form}
    source = open_source(paths, target, **reading | {"ahead": False})
    whole: list[tuple[int, int | None]] = [(0, None)]
    spans = [(path, *one) for path in paths for one in (_row_groups(path, rows) if form == "parquet" else whole)]
    if not spans:
        raise SourceError(f"{data}: there is no row to learn from")
    state, reading = source.state(), reading | source.resolved_options()
    parts = []
    for k, (path, first, count) in enumerate(spans):
        own = [path] if path == paths[0] else [paths[0], path]
        parts.append(Partition(k, own, target, reading, state, len(own) - 1, first, count, **taken))
    return Split(source, parts)


def _split_list(data: list[Any], target: str | None, reading: dict[str, Any], taken: dict[str, Any]) -> Split:
    if not data:
        raise SourceError("there is no partition")
    source = open_source(data[0], target, **reading | {"ahead": False})
    decisions, state = getattr(source, "decisions", None), None
    if decisions is not None:  # inferred from the first partition only
        decisions.complete = decisions.complete and len(data) == 1
        state, reading = source.state(), reading | source.resolved_options()
    return Split(source, [Partition(k, one, target, reading, state, **taken) for k, one in enumerate(data)])


def _row_groups(path: str, rows: int) -> list[tuple[int, int | None]]:
    """Return spans of whole row groups of a Parquet file with at least `rows` rows each, except perhaps the last."""
    import pyarrow.parquet as pq

    meta = pq.read_metadata(path)
    out: list[tuple[int, int | None]] = []
    first = size = 0
    for g in range(meta.num_row_groups):
        size += meta.row_group(g).num_rows
        if size >= rows or (g == meta.num_row_groups - 1 and size):
            out.append((first, size))
            first, size = first + size, 0
    return out


# ---------------------------------------------------------------- what needs a pass of its own


def with_first_rows(parts: list[Partition], engine: Engine) -> list[Partition]:
    """Return partitions with the number of the first row of each, if anything depends on it.

    The workers count rows, except those of Parquet files, whose metadata has the number. Partitions beyond the limit
    are left out; to find them, more and more partitions are counted.
    """
    one = parts[0]
    missing, limit, state = one.reading.get("missing"), one.limit, one.state
    mean = missing == "mean"
    if not (mean or one.shuffle or one.sample is not None or limit is not None):
        return parts
    in_metadata = missing not in ("mean", "skip") and all(part.count is not None for part in parts)
    out: list[Partition] = []
    before = taken = 0
    sums: list[str] | None = None
    wave = max(1, engine.slots)
    while len(out) < len(parts) and (limit is None or taken < limit):
        some = parts[len(out) : len(out) + (wave if limit is not None else len(parts))]
        found = [(part.count, None) for part in some] if in_metadata else engine.gather(
            engine.map([(count_rows, (part,)) for part in some])
        )  # fmt: skip
        for part, (rows, own) in zip(some, found, strict=True):
            out.append(replace(part, before=before, taken=taken, sums=sums if mean else None))
            taken += rows if part.sample is None else int(drawn(before, rows, part.sample, part.seed).sum())
            before += rows
            sums = own if sums is None else added(sums, own) if own else sums
        wave *= 2
    if mean and sums and state is not None and "table" in state:
        state = state | {"sums": sums}
    return [replace(p, state=state) for p in out if p is out[0] or limit is None or p.taken < limit]


def count_rows(partition: Partition) -> tuple[int, list[str] | None]:
    """Return the number of rows of a partition, and the sums of its columns."""
    source = partition.open()
    return sum(map(len, partition.all_rows(source))), getattr(source, "sums", None) or None


def added(a: list[str], b: list[str]) -> list[str]:
    """Add two sets of sums of columns.

    Examples
    --------
    >>> added(["0x1.0000000000000p+0 2"], ["0x1.8000000000000p+1 1"])
    ['0x1.0000000000000p+2 3']
    """
    pairs = [(one.split(), other.split()) for one, other in zip(a, b, strict=True)]
    return [f"{(float.fromhex(x[0]) + float.fromhex(y[0])).hex()} {int(x[1]) + int(y[1])}" for x, y in pairs]


def with_types_of_all(table: Split, engine: Engine) -> Split:
    """Return the table with column types inferred by the workers from all rows."""
    parts = table.partitions
    each = engine.gather(engine.map([(evidence_of, (part,)) for part in parts if part.first == 0]))
    evidence = each[0]
    for other in each[1:]:
        for name, seen in other.items():
            if name in evidence:
                evidence[name].join(seen)
    source: Any = table.source
    source.decide(evidence, True)
    state, reading = source.state(), parts[0].reading | source.resolved_options() | {"scan": 0}
    return Split(source, [replace(part, state=state, reading=reading) for part in parts])


def evidence_of(partition: Partition) -> dict[str, Any]:
    """Return the statistics of each column over all rows of a file."""
    opened: Any = replace(partition, reading=partition.reading | {"scan": 0}).open()
    found: dict[str, Any] = opened.look(file=partition.file)[0]
    return found
