"""Partitions of a table: which rows each of them has, and how they are read.

What the columns of a table hold is decided once, on the driver, from its first rows as on one machine; every partition
is read with these decisions. A row keeps the number that it has in the whole table, on which depends whether it is
drawn and where it comes in a random order.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from ..sources import file_format, open_source
from ..sources.opening import found_format, list_files
from ..sources.streams import PACKED
from ..training.prepare import labelled, limited, reindexed, sampled, select, targets_of
from ..training.shuffle import shuffled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..sources import Chunk, Source
    from .engine import Engine

ROWS = 1 << 20  # rows in a partition of a Parquet file, up to the end of a row group


@dataclass(frozen=True)
class Choice:
    """Which rows of a table are taken.

    Parameters
    ----------
    limit : int or None, default None
        The most rows to take.
    sample : float or None, default None
        The probability with which each row is taken.
    shuffle : bool, default False
        Whether the rows of each partition come in a random order: that which one machine would give them.
    seed : int, default 0
        The seed of what is drawn.
    """

    limit: int | None = None
    sample: float | None = None
    shuffle: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.limit is not None and self.shuffle:
            raise ValueError("limit and shuffle: the first rows of a random order are not those of any partition; "
                             "take sample instead of limit")  # fmt: skip
        if self.sample is not None and not 0.0 < self.sample <= 1.0:
            raise ValueError(f"sample must be above 0 and at most 1; got {self.sample!r}")

    def count(self, first: int, rows: int) -> int:
        """Return how many of so many rows from a number on are drawn."""
        if self.sample is None:
            return rows
        skip = first % 4
        draws = np.random.Generator(np.random.Philox(key=self.seed).advance(first // 4)).random(skip + rows)
        return int(np.count_nonzero(draws[skip:] < self.sample))


ALL = Choice()


@dataclass(frozen=True)
class Partition:
    """Rows that `hindsight.open_source` reads: all of them, one of several files, or some row groups of it.

    Parameters
    ----------
    number : int
        Its number, from 0.
    data : object
        Files, of which the first is that which shows how to read all of them; or rows in memory.
    target : str or None
        The column to predict.
    reading : dict
        Further parameters of `hindsight.open_source`, the same for all partitions.
    state : dict or None, default None
        How the source of all rows maps names to columns at its beginning, and what was decided about them.
    file : int, default 0
        Which of the files has its rows: the last.
    first : int, default 0
        The first row, at the beginning of a row group.
    count : int or None, default None
        How many rows, to the end of a row group; None takes all.
    choice : Choice
        Which rows are taken.
    before, taken : int, default 0
        How many rows of the table come before, and how many of them are taken.
    sums : list of str or None, default None
        The sums of the columns over the rows before, where missing values are filled with running means.
    """

    number: int
    data: Any
    target: str | None
    reading: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] | None = None
    file: int = 0
    first: int = 0
    count: int | None = None
    choice: Choice = ALL
    before: int = 0
    taken: int = 0
    sums: list[str] | None = None

    def open(self) -> Source:
        """Return the source of the rows."""
        return open_source(self.data, self.target, state=self.state, **self.reading)

    def chunks(self, source: Source, unlabelled: bool = False) -> Iterator[Chunk]:
        """Yield the rows that are taken, as they are learnt: those that have a target, unless others are wanted too."""
        choice = self.choice

        def read() -> Iterator[Chunk]:
            return limited(source, self._drawn(source), choice.limit, self.taken)

        with self.named():
            for chunk in shuffled(read, choice.seed, first_row=self.taken) if choice.shuffle else read():
                known = labelled(targets_of(chunk))
                if not known.all() and not unlabelled:
                    rows = np.flatnonzero(known)
                    select(chunk, rows)
                    chunk.place = reindexed(chunk.place, rows)
                yield chunk

    def _drawn(self, source: Source) -> Iterator[Chunk]:
        choice, chunks = self.choice, self.all_rows(source)
        return chunks if choice.sample is None else sampled(chunks, choice.sample, choice.seed)

    def all_rows(self, source: Source) -> Iterator[Chunk]:
        """Yield all rows of the partition, with their numbers in the table."""
        start: dict[str, Any] = {"file": self.file, "offset": self.first, "row": self.before}
        if self.sums is not None:
            table: Any = source
            start["sums"] = table.sums = self.sums
            table.follows = True
        for chunk in source.chunks(None if self.in_memory else start):
            chunk.first += self.before if self.in_memory else 0
            yield chunk
            if self.count is not None and chunk.position["offset"] >= self.first + self.count:
                break

    @property
    def in_memory(self) -> bool:
        """Whether the rows are an object rather than files."""
        one = self.data[0] if isinstance(self.data, list) and self.data else self.data
        return not isinstance(one, str)

    @property
    def path(self) -> str | None:
        """The file with its rows; None where they are in memory."""
        return None if self.in_memory else self.data if isinstance(self.data, str) else str(self.data[-1])

    @property
    def where(self) -> str:
        """Its name in messages."""
        return self.path or f"partition {self.number}"

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say of rows in memory which partition they are from."""
        try:
            yield
        except SourceError as error:
            if not self.in_memory:
                raise
            raise type(error)(f"{self.where}: {error}") from None

    def place(self, row: int) -> str:
        """Say where a row stands; the rows are read again, which only an error is worth."""
        for chunk in self.chunks(self.open()):
            if row < len(chunk):
                return f"{self.where}: {chunk.place(row)}" if self.in_memory else chunk.place(row)
            row -= len(chunk)
        return self.where

    def size(self, columns: int) -> int:
        """Return about how many bytes the rows take once they are read, from what is known without reading them."""
        if self.path is None:
            return 0
        if self.count is not None:
            return 8 * self.count * (columns + 1)
        packed = self.path.lower().endswith(PACKED)
        return os.path.getsize(self.path) * (10 if packed else 2)


# ---------------------------------------------------------------- how a table is split


@dataclass(frozen=True)
class Table:
    """A table in partitions: the source that shows how to read it, without its rows, and the partitions."""

    source: Source
    partitions: list[Partition]

    def with_state(self, state: dict[str, Any] | None, reading: dict[str, Any]) -> Table:
        """Return the table, to be read with other decisions."""
        parts = [replace(part, state=state, reading=reading) for part in self.partitions]
        return Table(self.source, parts)


def split(data: Any, target: str | None, reading: dict[str, Any], rows: int = ROWS, choice: Choice = ALL) -> Table:
    """Return the partitions of files, or of a list of anything that `open_source` reads.

    The first rows say which columns are read, in which order, and what they hold.
    """
    if isinstance(data, list) and not all(isinstance(one, str) or hasattr(one, "__fspath__") for one in data):
        return _split_list(data, target, reading, choice)
    paths = list_files(data, reading.get("format"))
    if "-" in paths:
        raise SourceError("standard input cannot be read by workers: give a folder of files")
    form = reading.get("format") or file_format(paths[0])
    if form is None and not reading.get("strict", True):
        form = found_format(paths[0])
    reading = reading | {"format": form}
    source = open_source(paths, target, **reading | {"ahead": False})
    state, options = source.state(), reading | source.resolved_options()
    spans: list[tuple[str, int, int | None]] = []
    for path in paths:
        spans += _row_groups(path, rows) if form == "parquet" else [(path, 0, None)]
    if not spans:
        raise SourceError(f"{data}: there is no row to learn from")
    files = [[path] if path == paths[0] else [paths[0], path] for path, _, _ in spans]
    parts = [
        Partition(k, own, target, options, state, len(own) - 1, first, count, choice)
        for k, (own, (_, first, count)) in enumerate(zip(files, spans, strict=True))
    ]
    return Table(source, parts)


def _split_list(data: list[Any], target: str | None, reading: dict[str, Any], choice: Choice) -> Table:
    if not data:
        raise SourceError("there is no partition")
    source = open_source(data[0], target, **reading | {"ahead": False})
    decisions, state = getattr(source, "decisions", None), None
    if decisions is not None:  # of which the first partition alone was looked at
        decisions.complete = decisions.complete and len(data) == 1
        state, reading = source.state(), reading | source.resolved_options()
    return Table(source, [Partition(k, one, target, reading, state, choice=choice) for k, one in enumerate(data)])


def _row_groups(path: str, rows: int) -> list[tuple[str, int, int | None]]:
    """Return the spans of a Parquet file, each of whole row groups with at least so many rows, the last maybe fewer."""
    import pyarrow.parquet as pq

    meta = pq.read_metadata(path)
    out: list[tuple[str, int, int | None]] = []
    first = size = 0
    for g in range(meta.num_row_groups):
        size += meta.row_group(g).num_rows
        if size >= rows or (g == meta.num_row_groups - 1 and size):
            out.append((path, first, size))
            first, size = first + size, 0
    return out


# ---------------------------------------------------------------- what needs a pass of its own


def numbered(table: Table, engine: Engine) -> Table:
    """Return the table with the number of the first row of each partition, where something depends on it.

    Rows are counted by the workers, unless Parquet files say how many they have. Partitions beyond the limit are left
    out; to find them, ever more partitions are counted.
    """
    parts = table.partitions
    choice, reading = parts[0].choice, parts[0].reading
    mean = reading.get("missing") == "mean"
    if not (mean or choice.shuffle or choice.sample is not None or choice.limit is not None):
        return table
    told = not mean and reading.get("missing") != "skip" and all(part.count is not None for part in parts)
    out: list[Partition] = []
    before = taken = 0
    sums: list[str] | None = None
    wave = max(1, engine.slots)
    while len(out) < len(parts) and (choice.limit is None or taken < choice.limit):
        some = parts[len(out) : len(out) + (wave if choice.limit is not None else len(parts))]
        counting = [(count_rows, (part,)) for part in some]
        found = [(part.count, None) for part in some] if told else engine.gather(engine.map(counting))
        for part, (rows, own) in zip(some, found, strict=True):
            out.append(replace(part, before=before, taken=taken, sums=sums if mean else None))
            taken += choice.count(before, rows)
            before += rows
            sums = own if sums is None else added(sums, own) if own else sums
        wave *= 2
    state = table.partitions[0].state
    if mean and sums and state is not None and "table" in state:
        state = state | {"sums": sums}
    wanted = [part for part in out if part is out[0] or choice.limit is None or part.taken < choice.limit]
    return Table(table.source, [replace(part, state=state) for part in wanted])


def count_rows(partition: Partition) -> tuple[int, list[str] | None]:
    """Return the number of rows of a partition, and the sums of its columns."""
    source = partition.open()
    with partition.named():
        rows = sum(len(chunk) for chunk in partition.all_rows(source))
    return rows, getattr(source, "sums", None) or None


def added(a: list[str], b: list[str]) -> list[str]:
    """Return the sums of the columns over the rows of both.

    Examples
    --------
    >>> added(["0x1.0000000000000p+0 2"], ["0x1.8000000000000p+1 1"])
    ['0x1.0000000000000p+2 3']
    """
    pairs = [(one.split(), other.split()) for one, other in zip(a, b, strict=True)]
    return [f"{(float.fromhex(x[0]) + float.fromhex(y[0])).hex()} {int(x[1]) + int(y[1])}" for x, y in pairs]


def looked_at(table: Table, engine: Engine) -> Table:
    """Return the table with decisions about its columns from all rows, which the workers look at."""
    whole = [part for part in table.partitions if part.first == 0]
    each = engine.gather(engine.map([(evidence_of, (part,)) for part in whole]))
    evidence = each[0]
    for other in each[1:]:
        for name, seen in other.items():
            if name in evidence:
                evidence[name].join(seen)
    source: Any = table.source
    source.decide(evidence, True)
    reading = table.partitions[0].reading | source.resolved_options() | {"scan": 0}
    return table.with_state(source.state(), reading)


def evidence_of(partition: Partition) -> dict[str, Any]:
    """Return what all rows of a file show of each column."""
    opened: Any = replace(partition, reading=partition.reading | {"scan": 0}).open()
    found: dict[str, Any] = opened.look(file=partition.file)[0]
    return found
