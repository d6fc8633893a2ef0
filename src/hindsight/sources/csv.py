"""CSV and TSV."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import SourceError
from .base import BadRow, Position, ReadOptions
from .columns import TableSource
from .labels import reads_as_number
from .parsers.csv import AFTER_QUOTE, CATEGORY, OPEN_QUOTE, parse_table
from .parsers.records import BAD, DEFERRED, LINE, NO_ROOM, ROWS, STATUS, STOP
from .tables.plain_layout import PlainLayout
from .text import LINE_END, BlockReader, ParsedRows, TextSource, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .names import NameDictionary


def _lines(data: bytes, ends: list[int]) -> Iterator[str]:
    """Yield the lines of the data, line ends included, and append the position after each to `ends`."""
    while ends[-1] < len(data):
        begin = ends[-1]
        end = LINE_END.search(data, begin)
        assert end is not None
        ends.append(end.end())
        yield data[begin : end.end()].decode("utf-8")


class Records(NamedTuple):
    """What the compiled parser found in a block; see `parsers.csv.parse_table`."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    ids: np.ndarray
    rows: np.ndarray
    deferred: np.ndarray
    bad: np.ndarray
    counts: np.ndarray


class CsvSource(TableSource, TextSource):
    """Records of separated fields; quoted fields may hold newlines."""

    strict = True  # whether stray quotes in the header are refused
    looking = False  # whether it is only looked at

    def __init__(self, paths: Sequence[str], options: ReadOptions, separator: str = ",") -> None:
        self.separator = options.separator or separator
        if len(self.separator) != 1 or self.separator in '"\r\n' or ord(self.separator) > 127:
            raise SourceError(f"separator must be one ASCII character, not a quote; got {self.separator!r}")
        self.header: list[str] = []
        super().__init__(paths, options)

    def _read_header(self, reader: BlockReader) -> None:
        reader.skip_bom()
        self._skip_comments(reader)
        where, strict = reader.stream.where, self.strict and bool(self.options.header)
        record, stop, line = self._record(reader, strict)
        while not record and stop > reader.begin:  # blank lines
            reader.take_header(stop, line)
            record, stop, line = self._record(reader, strict)
        if not record:
            raise SourceError(f"{where}: the file is empty")
        if self.options.header:
            reader.take_header(stop, line)
            names = self._names([name.strip() for name in record], reader)
        else:
            names = [str(j + 1) for j in range(len(record))]
        if not self.header:
            self.header = names
            self._assign_roles(reader)
        elif names != self.header and not self.looking:
            k = next((k for k, pair in enumerate(zip(names, self.header, strict=False)) if pair[0] != pair[1]), -1)
            difference = (
                f"{names[k]!r} in place of {self.header[k]!r}" if k >= 0 else f"{len(names)}, not {len(self.header)}"
            )
            raise SourceError(f"{where}: its columns are not those of {self.where}: {difference}")

    def _skip_comments(self, reader: BlockReader) -> None:
        """Skip lines above the header that do not belong to the table."""

    def _names(self, names: list[str], reader: BlockReader) -> list[str]:
        """The names of the columns, from those of the header."""
        return names

    def _assign_roles(self, reader: BlockReader) -> None:
        """Assign the roles of the columns; the reader stands before the first row."""
        auto = self.options.categorical == "auto"
        text_columns = self._text_columns(self.header, self._record(reader)[0]) if auto else []
        self._use(PlainLayout(self.header, self.options, self.where, text_columns))

    def _text_columns(self, names: list[str], first: list[str]) -> list[str]:
        """Columns that hold text in the first row."""
        return [name for name, value in zip(names, first, strict=False) if value.strip() and not reads_as_number(value)]

    def _record(self, reader: BlockReader, strict: bool = False) -> tuple[list[str], int, int]:
        """Peek at the next record; returns it, the byte after it and the line there. `strict` refuses stray quotes."""
        where, line = reader.stream.where, reader.line
        while True:
            data = reader.buf[reader.begin : reader.end].tobytes()
            ends: list[int] = [0]
            records = csv.reader(_lines(data, ends), delimiter=self.separator, skipinitialspace=True, strict=strict)
            fault, record = "", []
            try:
                record = next(records, [])
            except UnicodeDecodeError as error:
                fault = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
            except csv.Error as error:
                fault = str(error)
            if reader.final or ends[-1] < len(data):
                break
            reader.block *= 2  # the record, or a line feed after its carriage return, may go on in the next block
            reader.fill()
        if fault:
            raise SourceError(f"{where}, line {line + len(ends) - 2}: {fault}")
        return record, reader.begin + ends[-1], line + len(ends) - 1

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int, at: Position) -> ParsedRows:
        layout = self.layout
        columns = layout.roles, layout.dest, len(layout.fixed), layout.dictionary
        found = self._split(buf, begin, end, final, line, *columns, pad=layout.decided)
        rows = layout.encode_records(buf, found, at, self.file)
        bad = [self._bad_row(buf, *fault) for fault in found.bad.tolist()]
        stop, line = found.counts[[STOP, LINE]].tolist()
        return ParsedRows(rows, found.rows, stop, line, bad)

    def _split(
        self, buf: np.ndarray, begin: int, end: int, final: bool, line: int, roles: np.ndarray, dest: np.ndarray,
        width: int, names: NameDictionary, pad: bool,
    ) -> Records:  # fmt: skip
        """Parse whole records: numbers, places of rows, fields left to Python, and bad records."""
        fields, size = len(roles), end - begin
        categories = int((roles == CATEGORY).sum())
        room, take = size // max(1, 2 * fields - pad) + 2, self.pool.take
        X, y, weight = take("X", (room, width)), take("y", room), take("weight", room)
        ids, rows = take("ids", (room, categories), np.int64), take("rows", (room, 3), np.int64)
        some = room * fields if pad else room + 4096  # text is always deferred
        deferred, bad = take("deferred", (some + fields, 4), np.int64), take("bad", (1024, 6), np.int64)
        counts, scratch = np.empty(8, np.int64), take("scratch", size + 8 if categories else 8, np.uint8)
        while True:
            parse_table(
                buf, begin, end, final, line, ord(self.separator), pad, roles, dest, names.lookup, scratch,
                X, y, weight, ids, rows, deferred, bad, counts,
            )  # fmt: skip
            if counts[STATUS] != NO_ROOM or counts[STOP] > begin:
                break
            names.grow()
        r = int(counts[ROWS])
        deferred, bad = deferred[: counts[DEFERRED]], bad[: counts[BAD]]
        return Records(X[:r], y[:r], weight[:r], ids[:r], rows[:r], deferred, bad, counts)

    def _bad_row(self, buf: np.ndarray, first: int, stop: int, line: int, what: int, fields: int, _: int) -> BadRow:
        reasons = {
            OPEN_QUOTE: "a quote is opened but not closed",
            AFTER_QUOTE: "text follows a closing quote",
        }
        count = f"{fields} field{'s' if fields != 1 else ''}, but there are {len(self.header)} columns"
        return BadRow(line, "", reasons.get(what, count), text_at(buf, first, stop))
