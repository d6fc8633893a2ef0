"""Text tables of any dialect: sniffed, decided, and read by the strict parser where they are plain."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DisprovedError, SourceError
from .. import parsers
from ..base import FIRST_ROWS, BadRow, Position, ReadOptions, suggestion
from ..columns import ColumnLayout
from ..csv import CsvSource
from ..names import NameDictionary
from ..streams import ByteStream, standard_input
from ..text import BlockReader, ParsedRows, decode
from .cells import Cells, text_array
from .decisions import COUNT_NAME, FEW, ID_NAME
from .evidence import ColumnEvidence
from .layout import TableLayout
from .sniff import HEAD, sniff_dialect
from .table import DecidedTable, Decisions, first_sums, strict_options, with_help
from .transcode import SWAP, Transcoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..base import Chunk

FIRST_LINES = 20  # of standard input, that are waited for to look at
SAMPLE = 1 << 22  # bytes in which the first rows are looked for
TEXT = parsers.TEXT


def read_head(path: str) -> bytes:
    """The first bytes of a file, decompressed; of standard input, what is there already."""
    if path == "-":
        return standard_input().peek(HEAD, lines=FIRST_LINES)
    with ByteStream(path) as stream:
        room = bytearray(HEAD)
        return bytes(room[: stream.readinto(room)])


class TextTable(DecidedTable, CsvSource):
    """A text table whose dialect and types were found by looking at it."""

    def __init__(self, paths: Sequence[str], options: ReadOptions, separator: str = ",") -> None:
        self.asked = options
        named = [n for n in (options.target, options.weight, *(options.features or ()), *options.ignore) if n]
        self.dialect = sniff_dialect(
            read_head(paths[0]), named, options.encoding, options.separator, options.header, separator
        )
        self.table: TableLayout | None = None
        self.decisions: Decisions | None = None
        self.renamed: list[str] = []
        self.unnamed: set[str] = set()  # columns for which the header has no name
        self.sums: list[str] = []
        self.unlabelled = self.skipped = self.short = 0
        self.looking = self.follows = False
        super().__init__(paths, replace(strict_options(options), header=self.dialect.header), self.dialect.separator)

    # ---------------------------------------------------------------- what is decided

    def _open(self, path: str) -> ByteStream:
        d = self.dialect
        if d.encoding == "utf-8" and d.quote == '"' and d.separator != " ":
            return ByteStream(path)
        return Transcoded(path, d)

    def _read_header(self, reader: BlockReader) -> None:
        reader.skip_bom()
        where, header = reader.stream.where, self.dialect.header
        if self.dialect.comments:
            skip_comments(reader)
        record, stop, line = self._record(reader, False)
        while not record and stop > reader.begin:  # blank lines
            reader.take_header(stop, line)
            record, stop, line = self._record(reader, False)
        if not record:
            raise SourceError(f"{where}: the file is empty")
        if header:
            reader.take_header(stop, line)
            names = self._clean(with_row_names([name.strip() for name in record], self._record(reader)[0]))
        else:
            names = [str(j + 1) for j in range(len(record))]
        if self.looking:
            return
        if self.header is None:
            self.header = names
            for name in (self.options.target, self.options.weight):
                if name is not None and name not in names:
                    raise SourceError(f"{where}: there is no column {name!r}{suggestion(name, names)}")
            self._decide(reader)
        elif names != self.header:
            raise SourceError(f"{where}: its columns are not those of {self.where}")

    def _clean(self, names: list[str]) -> list[str]:
        """The names of the columns: blank ones become their number, repeated ones are numbered."""
        taken: set[str] = set(names)
        out: list[str] = []
        renamed = []
        self.unnamed = set()
        for j, name in enumerate(names):
            new, k = name or str(j + 1), 2
            while (new != name and new in taken) or new in out:
                new, k = f"{name or j + 1}.{k}", k + 1
            if new != name:
                renamed.append(f"column {j + 1} ({name!r}) is called {new!r}")
            if not name:
                self.unnamed.add(new)
            taken.add(new)
            out.append(new)
        self.renamed = renamed
        return out

    def _decide(self, reader: BlockReader) -> None:
        """Look at the first rows (or all), and take up the layout that they ask for."""
        given = self.asked.state is not None  # and taken up once this is done
        if given or (self._may_be_plain and self.asked.scan == FIRST_ROWS and self._is_surely_plain()):
            self.decisions = Decisions({}, ".", self.asked.scan == 0)
            self._take_plain()
            return
        evidence, complete = self.look(reader)
        if all(e.rows == 0 for e in evidence.values()):  # which the strict reader says best
            self.decisions = Decisions({}, ".", True)
            self._take_plain()
            return
        self.decide(evidence, complete)

    @property
    def _may_be_plain(self) -> bool:
        """Whether nothing was asked for that the strict reader does not do."""
        plain = self.dialect.quote == '"' and self.asked.decimal != "," and not self.renamed
        plain = plain and not self.asked.types and not self.asked.categorical and not self.asked.na
        return plain and not self.asked.cross

    def decide(self, evidence: dict[str, ColumnEvidence], complete: bool) -> None:
        """Take up the layout that the rows seen ask for."""
        self.decisions = Decisions.made(evidence, self.asked, complete, self.where, self.unnamed)
        if self._may_be_plain and self.decisions.is_plain(self.asked):
            self._take_plain()
        else:
            self._take(self.decisions)

    def _is_surely_plain(self) -> bool:
        """Whether the compiled parser takes every cell of the first rows of a file for a number, which is quick."""
        assert self.header is not None
        if not self.reread or any(map(ID_NAME.match, self.header)):
            return False
        self.looking = True
        try:
            with self._open(self.paths[0]) as stream:
                some = BlockReader(stream, SAMPLE, self.pool)
                self._read_header(some)
                roles = np.full(len(self.header), parsers.FEATURE)
                X, rows, cells, _, bad = self._split(some.buf, some.begin, some.end, some.final, some.line, roles)
        finally:
            self.looking = False
        if COUNT_NAME.match(self.header[0]) and (np.diff(X[:FEW, 0]) == 1.0).all():  # it may count the rows
            return False
        return len(rows) > 0 and not len(bad) and not (cells[:, 0] < self.asked.scan).any()

    def resolved_options(self) -> dict[str, Any]:
        return super().resolved_options() | {"header": self.dialect.header}

    def _take_plain(self) -> None:
        assert self.header is not None
        self.table = None
        self.layout = ColumnLayout(self.header, self.options, self.where, [])
        self.kind = self.layout.kind

    def _take(self, decisions: Decisions) -> None:
        assert self.header is not None
        self.decisions = decisions
        missing = {name for name in decisions.columns if name not in self.header} - {self.asked.target}
        used = decisions.layout(list(decisions.columns), self.asked, self.where, False).encoders
        for name in decisions.columns:
            if name in missing and name in used:
                raise SourceError(f"{self.where}: there is no column {name!r}{suggestion(name, self.header)}")
        self.table = decisions.layout(list(decisions.columns), self.asked, self.where, not self.reread)
        self.kind, self.width = self.table.kind, len(self.table.fixed)
        roles = []
        for name in self.header:
            encoder = self.table.encoder(name)
            roles.append(parsers.IGNORE if encoder is None else TEXT if encoder.as_text else parsers.FEATURE)
        self.roles = np.array(roles, np.int64)

    def look(self, reader: BlockReader | None = None, file: int = 0) -> tuple[dict[str, ColumnEvidence], bool]:
        """What the first rows from a file on show of each column, and whether those are all; with `scan` 0 they are."""
        assert self.header is not None
        evidence = {name: ColumnEvidence(name, tuple(self.asked.na), name != self.asked.target) for name in self.header}
        if not self.reread and reader is not None:
            while not self._add_evidence(evidence, reader, self.asked.scan or 1) and not reader.final:
                reader.fill()
            return evidence, False
        rows, most = 0, self.asked.scan
        self.looking = True
        try:
            for k in range(file, len(self.paths)):
                stream = self._open(self.paths[k])
                with stream:
                    some = BlockReader(stream, SAMPLE, self.pool)
                    self._read_header(some)
                    for _ in some.blocks():
                        rows += self._add_evidence(evidence, some, most - rows if most else 1 << 62)
                        if most and (rows >= most or not some.final):
                            return evidence, False
        finally:
            self.looking = False
        return evidence, True

    def _add_evidence(self, evidence: dict[str, ColumnEvidence], reader: BlockReader, most: int) -> int:
        """Count the cells of a block, which is taken where all rows are read; returns the rows."""
        begin, line, seen = reader.begin, reader.line, 0
        roles = np.full(len(evidence), TEXT)
        while begin < reader.end and seen < most:
            X, rows, deferred, counts, _ = self._split(reader.buf, begin, reader.end, reader.final, line, roles)
            if counts[parsers.STOP] == begin:
                break
            begin, line = int(counts[parsers.STOP]), int(counts[parsers.LINE])
            n = min(len(rows), most - seen)
            deferred = deferred[deferred[:, 0] < n]
            try:
                found = self._cells(reader.buf, X[:n], deferred, roles)
            except ValueError as error:
                raise SourceError(f"{self.where}, near line {line}: {error}: say --encoding cp1252") from None
            for name, cells in found.items():
                evidence[name].add(cells)
            seen += n
        if self.reread:
            reader.take(begin, line)
        return seen

    # ---------------------------------------------------------------- what is read

    def _split(
        self, buf: np.ndarray, begin: int, end: int, final: bool, line: int, roles: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Whole records: numbers, places of rows, cells that are text, counts, bad records."""
        fields, size = len(roles), end - begin
        dest = np.cumsum(roles == parsers.FEATURE) - 1
        room = size // max(1, 2 * fields - 1) + 2
        take = self.pool.take
        X, rows = take("X", (room, int((roles == parsers.FEATURE).sum()))), take("rows", (room, 3), np.int64)
        deferred = take("cells", (room * fields + fields, 4), np.int64)
        bad, counts = take("bad", (1024, 6), np.int64), np.empty(8, np.int64)
        nothing = np.empty(room)
        parsers.parse_table(
            buf, begin, end, final, line, ord(self.separator), True, roles, dest, _NAMES.lookup, np.zeros(8, np.uint8),
            X, nothing, nothing, np.empty((room, 0), np.int64), rows, deferred, bad, counts,
        )  # fmt: skip
        r = int(counts[parsers.ROWS])
        found, faults = deferred[: counts[parsers.DEFERRED]], bad[: counts[parsers.BAD]]
        return X[:r], rows[:r], found, counts, faults

    def _cells(self, buf: np.ndarray, X: np.ndarray, deferred: np.ndarray, roles: np.ndarray) -> dict[str, Cells]:
        """The cells of every column that is used."""
        assert self.header is not None
        import pyarrow.compute as pc

        order = np.argsort(deferred[:, 1], kind="stable")
        deferred = deferred[order]
        ends = np.searchsorted(deferred[:, 1], np.arange(len(roles) + 1))
        out, j = {}, 0
        for c, role in enumerate(roles.tolist()):
            if role == parsers.IGNORE:
                continue
            mine = deferred[ends[c] : ends[c + 1]]
            texts = text_array(buf, mine[:, 2], mine[:, 3])
            if self.dialect.quote == "'" and pc.any(pc.match_substring_regex(texts, "['\"]")).as_py():
                texts = type(texts).from_pandas([text.translate(SWAP) for text in texts.to_pylist()])
            numbers = X[:, j].copy() if role == parsers.FEATURE else np.zeros(len(X))
            j += role == parsers.FEATURE
            out[self.header[c]] = Cells(numbers, mine[:, 0], texts)
        return out

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int) -> ParsedRows:
        assert self.decisions is not None
        if self.table is None:
            parsed = super()._parse(buf, begin, end, final, line)
            for bad in parsed.bad:
                known = self.decisions.complete or bad.column == self.options.weight
                if not known and (bad.column or "but there are" in bad.reason):
                    raise self._disproved(bad)
            return parsed
        X, rows, deferred, counts, broken = self._split(buf, begin, end, final, line, self.roles)
        faults = [self._bad_record(*each) for each in broken.tolist()]
        try:
            cells = self._cells(buf, X, deferred, self.roles)
        except ValueError:
            return self._without_bad_bytes(buf, rows, counts, faults)
        found = self.table.encode(len(rows), cells)
        for t, (column, reason) in sorted(found.faults.items()):
            bad = BadRow(tuple(rows[t].tolist()), column, reason)
            if not self.decisions.settle(reason, column, self.asked):
                raise self._disproved(bad)
            faults.append(bad._replace(reason=with_help(reason, column, self.asked)))
        faults.sort(key=lambda row: row.place)
        self.unlabelled += found.unlabelled
        self.skipped += found.skipped
        self.short += int(counts[parsers.SHORT])
        more: Position = {"unlabelled": self.unlabelled, "skipped": self.skipped, "sums": self.table.write_sums()}
        more |= {"short": self.short} if self.short else {}
        stop, line = int(counts[parsers.STOP]), int(counts[parsers.LINE])
        kept = rows[found.keep]
        return ParsedRows(found.X, found.y, found.weight, kept, stop, line, self.table.width, faults, more)

    def _without_bad_bytes(
        self, buf: np.ndarray, rows: np.ndarray, counts: np.ndarray, faults: list[BadRow]
    ) -> ParsedRows:
        """The rows before the first that is not UTF-8, or that row as a bad one."""
        for place in rows.tolist():
            try:
                buf[place[0] : place[1]].tobytes().decode("utf-8")
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                reason = f"byte 0x{byte:02x} is not UTF-8: say what the file is with --encoding, as cp1252"
                shown = decode(buf, place[0], place[1])
                raise SourceError(f"{self.file}, line {place[2]}: {reason} (row: {shown[:120]!r})") from None
        raise AssertionError("text that Arrow refuses and Python does not")

    def _bad_record(self, first: int, stop: int, line: int, what: int, fields: int, _: int) -> BadRow:
        reasons = {
            parsers.OPEN_QUOTE: "a quote is opened but not closed",
            parsers.AFTER_QUOTE: "text follows a closing quote",
        }
        count = f"{fields} field{'s' if fields != 1 else ''}, but there are {len(self.roles)} columns"
        return BadRow((first, stop, line), "", reasons.get(what, count))

    def _disproved(self, bad: BadRow) -> DisprovedError:
        assert self.decisions is not None
        return self.decisions.disproved(self.file, "line", bad.place[2], bad.column, bad.reason)

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        if self.table is not None:
            at = start or {}
            self.unlabelled, self.skipped = at.get("unlabelled", 0), at.get("skipped", 0)
            self.short = at.get("short", 0)
            if not self.table.frozen:
                self.table.read_sums(at.get("sums") or first_sums(self))
        return super()._chunks(start)


def with_row_names(names: list[str], first: list[str]) -> list[str]:
    """The names of the columns; where there is one fewer than in the first row, that of the names of rows is missing.

    So R writes tables. A row that ends with a separator has nothing there, and its last column no name.
    """
    if len(first) != len(names) + 1:
        return names
    return ["", *names] if first[-1].strip() else [*names, ""]


def skip_comments(reader: BlockReader) -> None:
    """Take the lines before the table that begin with #."""
    while reader.begin < reader.end and reader.buf[reader.begin] == ord("#"):
        rest = reader.buf[reader.begin : reader.end].tobytes()
        size = len(rest.splitlines(keepends=True)[0])
        reader.take_header(reader.begin + size, reader.line + 1)


_NAMES = NameDictionary()
