"""Text tables of any dialect and with inferred column types; plain ones are read by the strict parser."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SourceError
from ..base import FIRST_ROWS, ReadOptions, check_known
from ..csv import CsvSource
from ..names import NameDictionary
from ..parsers.csv import FEATURE, TEXT
from ..parsers.records import LINE, STOP
from ..streams import ByteStream, Rewritten, standard_input
from ..text import BlockReader
from .cells import SWAP, text_cells
from .decided import DecidedTable, Decisions, strict_options
from .decisions import COUNT_NAME, FEW, ID_NAME
from .sniff import HEAD, sniff_dialect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..csv import Records
    from .evidence import ColumnEvidence
    from .sniff import Dialect

FIRST_LINES = 20  # lines of standard input to wait for
BLOCK = 1 << 20  # bytes that are transcoded at a time
SAMPLE = 1 << 22  # bytes searched for the first rows


def read_head(path: str) -> bytes:
    """The first bytes of a file, decompressed; of standard input, what is available."""
    if path == "-":
        return standard_input().peek(HEAD, lines=FIRST_LINES)
    with ByteStream(path) as stream:
        room = bytearray(HEAD)
        return bytes(room[: stream.readinto(room)])


class TextTable(DecidedTable, CsvSource):
    """A text table whose dialect and column types are inferred."""

    strict = False  # stray quotes in the header are taken

    def __init__(self, paths: Sequence[str], options: ReadOptions, separator: str = ",") -> None:
        self.asked = options
        named = [n for n in (options.target, options.weight, *(options.features or ()), *options.ignore) if n]
        self.dialect = sniff_dialect(
            read_head(paths[0]), named, options.encoding, options.separator, options.header, separator
        )
        self.swapped = self.dialect.quote == "'"
        super().__init__(paths, replace(strict_options(options), header=self.dialect.header), self.dialect.separator)

    # ---------------------------------------------------------------- what is decided

    def _open(self, path: str) -> ByteStream:
        d = self.dialect
        if d.encoding == "utf-8" and d.quote == '"' and d.separator != " ":
            return ByteStream(path)
        return Transcoded(path, d)

    def _skip_comments(self, reader: BlockReader) -> None:
        if self.dialect.comments:
            skip_comments(reader)

    def _names(self, names: list[str], reader: BlockReader) -> list[str]:
        return self._clean(with_row_names(names, self._record(reader)[0]))

    def _clean(self, names: list[str]) -> list[str]:
        """The names of the columns: blank ones become their number, repeated ones are numbered."""
        taken: set[str] = set(names)
        out: list[str] = []
        renamed, unnamed = [], set()
        for j, name in enumerate(names):
            new, k = name or str(j + 1), 2
            while (new != name and new in taken) or new in out:
                new, k = f"{name or j + 1}.{k}", k + 1
            if new != name:
                renamed.append(f"column {j + 1} ({name!r}) is called {new!r}")
            if not name:
                unnamed.add(new)
            taken.add(new)
            out.append(new)
        self.renamed, self.unnamed = renamed, unnamed
        return out

    def _assign_roles(self, reader: BlockReader) -> None:
        """Infer the layout from the first rows (or all), and apply it."""
        check_known((self.options.target, self.options.weight), self.header, self.where)
        evidence: dict[str, ColumnEvidence] = {}
        given, complete = self.asked.state is not None, self.asked.scan == 0
        if not given and not (self._may_be_plain and self.asked.scan == FIRST_ROWS and self._is_surely_plain()):
            evidence, complete = self.look(reader)
        if any(e.rows for e in evidence.values()):
            self.decide(evidence, complete)
        else:  # a state is applied once this is done; without any row, the strict reader has the best message
            self.decisions = Decisions({}, ".", complete or bool(evidence))
            self._use(self._plain_layout())

    @property
    def _may_be_plain(self) -> bool:
        """Whether the strict reader supports all the options given."""
        return super()._may_be_plain and self.dialect.quote == '"' and self.asked.decimal != "," and not self.renamed

    @property
    def _grows(self) -> bool:
        return not self.reread

    def _is_surely_plain(self) -> bool:
        """Whether the compiled parser reads every cell in the first rows of a file as a number; a quick test."""
        if not self.reread or any(map(ID_NAME.match, self.header)):
            return False
        self.looking = True
        try:
            with self._open(self.paths[0]) as stream:
                some = BlockReader(stream, SAMPLE, self.pool)
                self._read_header(some)
                roles = np.full(len(self.header), FEATURE)
                found = self._cells_in(some.buf, some.begin, some.end, some.final, some.line, roles)
        finally:
            self.looking = False
        if COUNT_NAME.match(self.header[0]) and (np.diff(found.X[:FEW, 0]) == 1.0).all():  # it may count the rows
            return False
        return len(found.rows) > 0 and not len(found.bad) and not (found.deferred[:, 0] < self.asked.scan).any()

    def resolved_options(self) -> dict[str, Any]:
        return super().resolved_options() | {"header": self.dialect.header}

    def look(self, reader: BlockReader | None = None, file: int = 0) -> tuple[dict[str, ColumnEvidence], bool]:
        """Statistics of each column over the first rows from a file on, and whether those are all the rows."""
        evidence = self._nothing_seen()
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
        """Add the cells of a block to the statistics; consumes it if the source can be reread. Returns its rows."""
        begin, line, seen = reader.begin, reader.line, 0
        roles = np.full(len(evidence), TEXT)
        while begin < reader.end and seen < most:
            found = self._cells_in(reader.buf, begin, reader.end, reader.final, line, roles)
            if found.counts[STOP] == begin:
                break
            begin, line = int(found.counts[STOP]), int(found.counts[LINE])
            n = min(len(found.rows), most - seen)
            try:
                columns = text_cells(reader.buf, found, n, list(evidence), roles, roles, self.swapped)
            except ValueError as error:
                raise SourceError(f"{self.where}, near line {line}: {error}: say --encoding cp1252") from None
            for name, cells in columns.items():
                evidence[name].add(cells)
            seen += n
        if self.reread:
            reader.take(begin, line)
        return seen

    # ---------------------------------------------------------------- what is read

    def _cells_in(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int, roles: np.ndarray) -> Records:
        """Parse whole records into numbers and cells of text."""
        dest, width = np.arange(len(roles)), int((roles == FEATURE).sum())
        return self._split(buf, begin, end, final, line, roles, dest, width, _NAMES, pad=True)


class Transcoded(Rewritten):
    """The bytes of a file as UTF-8, with runs of blanks as one space where those separate fields."""

    def __init__(self, path: str, dialect: Dialect) -> None:
        super().__init__(path)
        self.plain = dialect.encoding == "utf-8"
        self.encoding, self.white, self.swap = dialect.encoding, dialect.separator == " ", dialect.quote == "'"
        self.decoder = codecs.getincrementaldecoder("utf-8-sig" if self.plain else dialect.encoding)(
            "surrogateescape" if self.plain else "strict"
        )
        self.text = ""

    def _advance(self) -> None:
        """Read and transcode the next block."""
        block = self._read_block(BLOCK)
        n = len(block)
        try:
            text = self.decoder.decode(block, final=self.ended)
        except UnicodeDecodeError as error:
            at = self.raw_read - n + error.start
            raise SourceError(
                f"{self.where}: byte 0x{error.object[error.start]:02x} near byte {at:,} is not {self.encoding}: say "
                "what the file is with --encoding, as latin-1 (which every byte is)"
            ) from None
        text = text.removeprefix("\ufeff") if self.raw_read == n else text
        if self.swap:
            text = text.translate(SWAP)
        if self.white:
            text = self._with_single_blanks(text)
        self.ready = text.encode("utf-8", "surrogateescape")

    def _with_single_blanks(self, text: str) -> str:
        """Whole lines with one space between fields, and none around them."""
        text = self.text + text
        cut = len(text) if self.ended else text.rfind("\n") + 1
        text, self.text = text[:cut], text[cut:]
        return re.sub(r"(?m)^ | $| (?=\r)", "", re.sub(r"[ \t]+", " ", text))


def with_row_names(names: list[str], first: list[str]) -> list[str]:
    """The names of the columns, with "" added if there is one name fewer than fields in the first row.

    R writes such tables: the column of row names comes first and has no name. If the row ends with a separator, the
    last column is empty and has no name.
    """
    if len(first) != len(names) + 1:
        return names
    return ["", *names] if first[-1].strip() else [*names, ""]


def skip_comments(reader: BlockReader) -> None:
    """Skip the lines before the table that begin with #."""
    while reader.begin < reader.end and reader.buf[reader.begin] == ord("#"):
        rest = reader.buf[reader.begin : reader.end].tobytes()
        size = len(rest.splitlines(keepends=True)[0])
        reader.take_header(reader.begin + size, reader.line + 1)


_NAMES = NameDictionary()
