"""Text read block by block: every row knows its line, and every chunk the byte after it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import Chunk, Options, Pool, Position, Reject, Source
from .parsers import PAD
from .streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LONGEST = 1 << 28  # bytes of one record; a longer one is refused
SHOWN = 120  # characters of a raw row in an error


class Bad(Exception):  # noqa: N818
    """A row that cannot be taken: its first byte, end and line, the column, and what is wrong."""

    def __init__(self, row: Sequence[int], column: str, reason: str) -> None:
        super().__init__(reason)
        self.row, self.column, self.reason = tuple(map(int, row)), column, reason


@dataclass
class Batch:
    """Rows that a format took from a block: `rows` has each one's first byte, end and line; `bad` are in order."""

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    rows: np.ndarray
    stop: int
    line: int
    width: int
    bad: list[Bad] = field(default_factory=list)


class Text(Source):
    """A source of text. A format has `_head`, which may take a header, and `_parse`."""

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        super().__init__("standard input" if paths[0] == "-" else paths[0], options)
        self.paths = paths
        self.reread = "-" not in paths
        try:
            self.size = sum(os.stat(path).st_size for path in paths) if self.reread else None
        except OSError as error:
            raise SourceError(f"{error.filename}: {error.strerror}") from None
        self.width, self.pool = 0, Pool()
        self._opened: Reading | None = self._start(0)
        if self.reread:
            self._opened.stream.close()
            self._opened = None

    def _start(self, k: int) -> Reading:
        """File k, read up to its rows."""
        stream = Stream(self.paths[k])
        try:
            reading = Reading(stream, self.options.chunk, self.pool)
            self._head(reading)
        except BaseException:
            stream.close()
            raise
        return reading

    def _head(self, reading: Reading) -> None:
        """Take what stands before the rows of a file."""
        reading.bom()

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int) -> Batch:
        """Whole rows from buf[begin:end]; `stop` is `begin` where there is no whole one."""
        raise NotImplementedError

    def _given(self, chunk: Chunk) -> None:
        self.width = chunk.position["width"]

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        hasher = Hasher() if self.options.digest else None
        try:
            yield from self._files(start, hasher)
        finally:
            if hasher is not None:
                hasher.thread.shutdown(wait=False)

    def _files(self, start: Position | None, hasher: Hasher | None) -> Iterator[Chunk]:
        at: Position = {
            "file": 0,
            "offset": 0,
            "line": 1,
            "row": 0,
            "rejected": 0,
            "width": 0,
            "digest": None,
            "read": 0,
        }
        if start is not None:
            at |= start
            self._verify(start, hasher)
        for k in range(at["file"], len(self.paths)):
            reading, self._opened = self._opened, None
            if start is not None and k == start["file"]:
                self._start(k).stream.close()
                reading = Reading(Stream(self.paths[k]), self.options.chunk, self.pool, at["offset"], at["line"])
            else:
                reading = self._start(k) if reading is None else reading
                if hasher is not None:
                    hasher.update(reading.taken)
            with reading.stream:
                at |= {"file": k}
                yield from self._rows(reading, hasher, at)
        if at["row"] == 0 and at["rejected"] == 0:
            raise SourceError(f"{self.where}: there is no row")

    def _verify(self, start: Position, hasher: Hasher | None) -> None:
        """Refuse files whose first part is not what it was."""
        if hasher is None:
            return
        for k in range(start["file"] + 1):
            with Stream(self.paths[k]) as stream:
                stream.skip(start["offset"] if k == start["file"] else None, hasher)
        if start["digest"] is not None and hasher.last() != start["digest"]:
            raise SourceError(f"{self.where}: has changed since: its first {start['offset']:,} bytes are not the same")

    def _rows(self, reading: Reading, hasher: Hasher | None, at: Position) -> Iterator[Chunk]:
        where = reading.stream.where
        for buf, end, final in reading.blocks():
            while reading.begin < end and not (reading.begin and reading.torn()):
                begin = reading.begin
                batch = self._parse(buf, begin, end, final, reading.line)
                if batch.stop == begin:
                    break
                if hasher is not None:
                    at["digest"] = hasher.add(buf[begin : batch.stop])
                reading.take(batch.stop, batch.line)
                rejects = [self._reject(bad, buf, where) for bad in batch.bad]
                first, known = at["row"], at["width"]
                at["row"] += len(batch.rows)
                at["rejected"] += len(rejects)
                at |= {"offset": reading.offset, "line": reading.line, "width": batch.width}
                at["read"] = reading.stream.consumed
                if len(batch.rows) or rejects or batch.width > known:  # rows left out may have brought names
                    place, raw = _place(batch.rows, where), _raw(batch.rows, buf)
                    yield Chunk(batch.X, batch.y, batch.weight, first, dict(at), self._read(at), place, raw, rejects)

    def _read(self, at: Position) -> int:
        return sum(os.stat(path).st_size for path in self.paths[: at["file"]]) + int(at["read"])

    def _reject(self, bad: Bad, buf: np.ndarray, where: str) -> Reject:
        begin, end, line = bad.row
        raw = text_of(buf, begin, end)
        if self.options.rejects:
            return Reject(where, line, bad.column, bad.reason, raw)
        column = f", column {bad.column!r}" if bad.column else ""
        shown = raw if len(raw) <= SHOWN else raw[:SHOWN] + "..."
        raise SourceError(f"{where}, line {line}{column}: {bad.reason} (row: {shown!r})") from None


def _place(rows: np.ndarray, where: str) -> Any:
    return lambda i: f"{where}, line {rows[i, 2]}"


def _raw(rows: np.ndarray, buf: np.ndarray) -> Any:
    return lambda i: text_of(buf, rows[i, 0], rows[i, 1])


def text_of(buf: np.ndarray, begin: int, end: int) -> str:
    """Bytes as text; those that are not UTF-8 as escapes."""
    return buf[begin:end].tobytes().decode("utf-8", "backslashreplace")


class Hasher:
    """The SHA-256 of what was consumed; what is added is hashed in a thread while reading goes on, one block behind."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.sum, self.thread = hashlib.sha256(), ThreadPoolExecutor(1, "digest")
        self.last: Callable[[], str] = self.sum.hexdigest

    def update(self, data: Any) -> None:
        """Add bytes, and wait until they are."""
        self.add(data)()

    def add(self, data: Any) -> Callable[[], str]:
        """Add bytes; what gives the digest up to here once it is known."""

        def work() -> str:
            self.sum.update(data)
            return self.sum.hexdigest()

        self.last()  # so that no more than one block waits
        self.last = self.thread.submit(work).result
        return self.last


class Reading:
    """A stream as it is read: the block, the place in it, the offset and the line there."""

    def __init__(self, stream: Stream, chunk: int, pool: Pool, offset: int = 0, line: int = 1) -> None:
        self.stream, self.pool = stream, pool
        self.chunk = self.more = chunk
        self.buf, self.begin, self.end, self.final = np.zeros(PAD, np.uint8), 0, 0, False
        self.offset, self.line = offset, line
        self.taken = b""
        if offset:
            stream.skip(offset, None)
        self.fill()

    def fill(self) -> None:
        """Read on; what was not taken stays at the front."""
        rest = self.end - self.begin
        if rest > LONGEST:
            raise SourceError(f"{self.stream.where}, line {self.line}: longer than {LONGEST >> 20} MiB")
        buf = self.pool.take("text", rest + self.more + PAD, np.uint8)
        buf[:rest] = self.buf[self.begin : self.end]
        n = self.stream.readinto(buf[rest:-PAD].data)
        self.final = n < self.more
        self.buf, self.begin, self.end = buf, 0, rest + n
        buf[self.end : self.end + PAD] = 0

    def torn(self) -> bool:
        """Whether what is left of the block is surely no whole record."""
        rest = self.buf[self.begin : min(self.end, self.begin + self.chunk)].tobytes()
        return not self.final and b"\n" not in rest and b"\r" not in rest

    def take(self, stop: int, line: int) -> None:
        """Go on after the byte before `stop`."""
        self.offset += stop - self.begin
        self.begin, self.line = stop, line

    def bom(self) -> None:
        """Pass over a byte order mark."""
        while self.end < 3 and not self.final:
            self.fill()
        head = self.buf[: min(3, self.end)].tobytes()
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise SourceError(f"{self.stream.where}: this is UTF-16; save it as UTF-8")
        if head == b"\xef\xbb\xbf":
            self.header(3, 1)

    def header(self, stop: int, line: int) -> None:
        """Take bytes that are no rows."""
        self.taken += self.buf[self.begin : stop].tobytes()
        self.take(stop, line)

    def blocks(self) -> Iterator[tuple[np.ndarray, int, bool]]:
        """Blocks to parse from `begin` on; a record that no block holds makes the next one larger."""
        while True:
            before = self.begin
            yield self.buf, self.end, self.final
            if self.final:
                return
            self.more = self.chunk if self.begin > before else 2 * self.more
            self.fill()
