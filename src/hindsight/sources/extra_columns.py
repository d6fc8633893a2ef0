"""Further columns of a table, read along with its chunks, for example to copy to the output or to group by."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import check_known
from .csv import CsvSource
from .json_rows import DictSource, JsonLinesSource, parse_object
from .parquet_arrow import ColumnarSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .base import Chunk, Source

Columns = list[Any]  # for each name a list of values, or a pyarrow array


def extra_columns(source: Source, names: Sequence[str]) -> Callable[[Chunk], Columns]:
    """Return a function that gives further columns for each chunk of a table; call this before reading chunks.

    Parameters
    ----------
    source : Source
        A table: CSV, Parquet, Arrow, a data frame, JSON lines or dicts.
    names : sequence of str
        The columns; they may be features, the target, or neither.

    Returns
    -------
    callable
        Takes a chunk and returns the values of its rows for each name: raw text for CSV, pyarrow arrays for a typed
        table, and the values themselves for JSON lines and dicts, with None for missing ones.

    Raises
    ------
    SourceError
        If the table has no such column, or the rows are not those of a table.

    Examples
    --------
    >>> from hindsight import open_source
    >>> source = open_source([{"x": 1.0, "id": "007"}, {"x": 2.0, "id": "008"}], ignore=["id"])
    >>> extra = extra_columns(source, ["id"])
    >>> [extra(chunk) for chunk in source.chunks()]
    [[['007', '008']]]
    """
    if isinstance(source, CsvSource):
        return csv_columns(source, names)
    if isinstance(source, ColumnarSource):
        return typed_columns(source, names)
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


def csv_columns(source: CsvSource, names: Sequence[str]) -> Callable[[Chunk], Columns]:
    """Columns of CSV as raw text."""
    known = source.header
    check_known(names, known, source.where)
    places = [known.index(name) for name in names]

    def columns(chunk: Chunk) -> Columns:
        texts = (chunk.raw(i).strip("\r\n") for i in range(len(chunk)))
        records = list(csv.reader(texts, delimiter=source.separator, skipinitialspace=True))
        return [[record[j].strip() for record in records] for j in places]

    return columns


def typed_columns(source: ColumnarSource, names: Sequence[str]) -> Callable[[Chunk], Columns]:
    """Columns of a typed table; its chunks include them from now on."""
    check_known(names, source.schema.names, source.where)
    source.carried = [*source.carried, *names]

    def columns(chunk: Chunk) -> Columns:
        assert chunk.batch is not None
        batch, first = chunk.batch
        found = [batch.column(name) for name in names]
        if batch.num_rows == len(chunk):
            return found
        taken = np.array(row_numbers(chunk), np.int64) - first  # rows with a missing value were left out
        return [column.take(taken) for column in found]

    return columns
