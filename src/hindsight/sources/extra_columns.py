"""Columns of a table beside those that are learnt from, row by row with its chunks: to keep, or to slice by."""

from __future__ import annotations

import copy
import csv
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import suggestion
from .csv import CsvSource
from .json_rows import DictSource, JsonLinesSource, parse_object
from .parquet_arrow import ColumnarSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .base import Chunk, Source

Columns = list[Any]  # for each name a list of values, or a pyarrow array


def extra_columns(source: Source, names: Sequence[str]) -> Callable[[Chunk], Columns]:
    """What gives any columns of a table for the rows of each of its chunks, which must be asked in their order.

    Parameters
    ----------
    source : Source
        A table: CSV, Parquet, Arrow, a data frame, JSON lines or dicts.
    names : sequence of str
        The columns; they may be features, the target, or neither.

    Returns
    -------
    callable
        Of a chunk, returns for each name the values of its rows: text as it stands in CSV, pyarrow arrays of a typed
        table, and for JSON lines and dicts the values, None where there is none.

    Raises
    ------
    SourceError
        If the table has no such column, or the rows are not those of a table.

    Examples
    --------
    >>> from hindsight import open_source
    >>> source = open_source([{"x": 1.0, "id": "007"}, {"x": 2.0, "id": "008"}], ignore=["id"])
    >>> beside = extra_columns(source, ["id"])
    >>> [beside(chunk) for chunk in source.chunks()]
    [[['007', '008']]]
    """
    if isinstance(source, CsvSource):
        return CsvColumns(source, names)
    if isinstance(source, ColumnarSource):
        return TypedColumns(source, names)
    if isinstance(source, JsonLinesSource):
        return lambda chunk: _pick([parse_object(chunk.raw(i).encode()) for i in range(len(chunk))], names)
    if isinstance(source, DictSource) and isinstance(source.items, (list, tuple)):
        rows = source.items
        return lambda chunk: _pick([rows[row] for row in row_numbers(chunk)], names)
    raise SourceError(f"{source.where}: there is no column {names[0]!r}: these rows are not those of a table")


def _pick(rows: list[Any], names: Sequence[str]) -> Columns:
    return [[row.get(name) for row in rows] for name in names]


def row_numbers(chunk: Chunk) -> list[int]:
    """The number of each row: its line in text, otherwise its row in the file or the data."""
    return [int(chunk.place(i).rpartition(" ")[2]) for i in range(len(chunk))]


def _check(names: Sequence[str], known: Sequence[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise SourceError(f"{where}: there is no column {name!r}{suggestion(name, known)}")


class CsvColumns:
    """Columns of CSV as text, from the records as they stand."""

    def __init__(self, source: CsvSource, names: Sequence[str]) -> None:
        known = source.header or []
        _check(names, known, source.where)
        self.places, self.separator = [known.index(name) for name in names], source.separator

    def __call__(self, chunk: Chunk) -> Columns:
        texts = (chunk.raw(i).strip("\r\n") for i in range(len(chunk)))
        records = list(csv.reader(texts, delimiter=self.separator, skipinitialspace=True))
        return [[record[j].strip() for record in records] for j in self.places]


class TypedColumns:
    """Columns of a table with types, read a second time beside the chunks."""

    def __init__(self, source: ColumnarSource, names: Sequence[str]) -> None:
        _check(names, source.schema.names, source.where)
        self.source, self.names = copy.copy(source), list(names)
        self.source.used = list(dict.fromkeys(names))
        self.part, self.row = -1, 0
        self.batches: Iterator[Any] = iter(())
        self.rest: Any = None

    def __call__(self, chunk: Chunk) -> Columns:
        if chunk.position["file"] != self.part:
            self.part, self.row, self.rest = chunk.position["file"], 0, None
            self.batches = self.source._valid_batches(self.part, 0, 1 << 16)
        first, table = self.row, self._take(chunk.position["offset"] - self.row)
        columns = [table.column(name).combine_chunks() for name in self.names]
        if table.num_rows == len(chunk):
            return columns
        taken = np.array(row_numbers(chunk), np.int64) - first  # rows with a missing value were left out
        return [column.take(taken) for column in columns]

    def _take(self, count: int) -> Any:
        """The next rows of the part."""
        import pyarrow as pa

        parts, have = ([], 0) if self.rest is None else ([self.rest], self.rest.num_rows)
        while have < count:
            batch = next(self.batches, None)
            if batch is None:
                raise SourceError(f"{self.source.where}: has changed while it was read")
            parts.append(batch)
            have += batch.num_rows
        table = pa.Table.from_batches(parts)
        self.row, self.rest = self.row + count, None
        if have > count:
            left = table.slice(count).combine_chunks().to_batches()
            self.rest = left[0]
        return table.slice(0, count)
