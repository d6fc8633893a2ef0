"""Text read block by block; every row knows its line, and every chunk the byte after it."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import SourceError
from .base import BadRow, Chunk, EncodedRows, Position, ReadOptions, Source, first_position
from .parsers.bits import PAD
from .pool import ArrayPool
from .streams import ByteStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LINE_END = re.compile(rb"\r\n|\n|\r|\Z")
MAX_RECORD = 1 << 28  # bytes of one record; a longer one is refused


class ParsedRows(NamedTuple):
    """Rows parsed from a block; `places` has the first byte, end and line of each, `bad` lists further, bad rows."""

    rows: EncodedRows
    places: np.ndarray
    stop: int
    line: int
    bad: Sequence[BadRow] = ()


class TextSource(Source):
    """A source of text. A subclass has `_parse`, and `_read_header` if something precedes the rows."""

    unit = "line"  # counts that locate a row

    def __init__(self, paths: Sequence[str], options: ReadOptions) -> None:
        super().__init__("standard input" if paths[0] == "-" else paths[0], options)
        self.paths, self.file = paths, self.where  # the file being read
        self.reread = "-" not in paths
        try:
            self.size = sum(os.stat(path).st_size for path in paths) if self.reread else None
        except OSError as error:
            raise SourceError(f"{error.filename}: {error.strerror}") from None
        self.pool = ArrayPool()
        self._opened: BlockReader | None = self._start(0)
        if self.reread:
            self._opened.stream.close()
            self._opened = None

    def _start(self, k: int) -> BlockReader:
        """A reader of file k, positioned before its first row."""
        stream = self._open(self.paths[k])
        try:
            reader = BlockReader(stream, self.options.chunk, self.pool)
            self._read_header(reader)
        except BaseException:
            stream.close()
            raise
        return reader

    def _open(self, path: str) -> ByteStream:
        """The bytes of a file, as UTF-8."""
        return ByteStream(path)

    def _read_header(self, reader: BlockReader) -> None:
        """Read what precedes the rows of a file."""
        reader.skip_bom()

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int, at: Position) -> ParsedRows:
        """Parse whole rows from buf[begin:end]; `stop` is `begin` if there is none. Counts and the width go to `at`."""
        raise NotImplementedError

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        hasher = Hasher() if self.options.digest else None
        try:
            yield from self._files(start, hasher)
        finally:
            if hasher is not None:
                hasher.thread.shutdown(wait=False)

    def _files(self, start: Position | None, hasher: Hasher | None) -> Iterator[Chunk]:
        at = first_position(start, file=0, line=1, read=0)
        if start is not None:
            self._verify(start, hasher)
        for k in range(at["file"], len(self.paths)):
            reader, self._opened = self._opened, None
            if start is not None and k == start["file"] and at["offset"]:
                self._start(k).stream.close()
                reader = BlockReader(self._open(self.paths[k]), self.options.chunk, self.pool, at["offset"], at["line"])
            else:
                reader = self._start(k) if reader is None else reader
                if hasher is not None:
                    hasher.update(reader.header)
            with reader.stream:
                at |= {"file": k}
                yield from self._rows(reader, hasher, at)

    def _verify(self, start: Position, hasher: Hasher | None) -> None:
        """Raise an error if a file has changed before `start`."""
        if hasher is None:
            return
        for k in range(start["file"] + 1):
            with self._open(self.paths[k]) as stream:
                stream.skip(start["offset"] if k == start["file"] else None, hasher)
        self._refuse_changed(start, hasher.last, f": its first {start['offset']:,} bytes differ")

    def _rows(self, reader: BlockReader, hasher: Hasher | None, at: Position) -> Iterator[Chunk]:
        where = self.file = reader.stream.where
        for buf, end, final in reader.blocks():
            while reader.begin < end and not (reader.begin and reader.incomplete()):
                begin = reader.begin
                known = at["width"]
                parsed = self._parse(buf, begin, end, final, reader.line, at)
                if parsed.stop == begin:
                    at["width"] = known
                    break
                if hasher is not None:
                    at["digest"] = hasher.add(buf[begin : parsed.stop])
                reader.take(parsed.stop, parsed.line)
                at |= {"offset": reader.offset, "line": reader.line, "read": reader.stream.consumed}
                numbers, raw, read = parsed.places[:, 2], _raw(parsed.places, buf), self._bytes_read(at)
                chunk = self._as_chunk(parsed.rows, numbers, raw, at, read, where, self.unit, parsed.bad)
                if len(chunk) or chunk.rejects or at["width"] > known:  # skipped rows may have added names
                    yield chunk

    def _bytes_read(self, at: Position) -> int:
        return sum(os.stat(path).st_size for path in self.paths[: at["file"]]) + int(at["read"])


def _raw(rows: np.ndarray, buf: np.ndarray) -> Any:
    return lambda i: text_at(buf, rows[i, 0], rows[i, 1])


def text_at(buf: np.ndarray, begin: int, end: int) -> str:
    """Bytes as text; those that are not UTF-8 as escapes."""
    return buf[begin:end].tobytes().decode("utf-8", "backslashreplace")


class Hasher:
    """The SHA-256 of what was consumed, computed in a thread, at most one block behind the reader."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.sum, self.thread = hashlib.sha256(), ThreadPoolExecutor(1, "digest")
        self.last: Callable[[], str] = self.sum.hexdigest

    def update(self, data: Any) -> None:
        """Add bytes, and wait until they are hashed."""
        self.add(data)()

    def add(self, data: Any) -> Callable[[], str]:
        """Add bytes; returns a function that waits for the digest up to here."""

        def work() -> str:
            self.sum.update(data)
            return self.sum.hexdigest()

        self.last()  # at most one block waits
        self.last = self.thread.submit(work).result
        return self.last


class BlockReader:
    """Reads a stream block by block, and keeps the position in the block with its offset and line."""

    def __init__(self, stream: ByteStream, chunk: int, pool: ArrayPool, offset: int = 0, line: int = 1) -> None:
        self.stream, self.pool = stream, pool
        self.chunk = self.block = chunk
        self.buf, self.begin, self.end, self.final = np.zeros(PAD, np.uint8), 0, 0, False
        self.offset, self.line = offset, line
        self.header = b""
        if offset:
            stream.skip(offset, None)
        self.fill()

    def fill(self) -> None:
        """Read the next block; unconsumed bytes stay at the front."""
        rest = self.end - self.begin
        if rest > MAX_RECORD:
            raise SourceError(f"{self.stream.where}, line {self.line}: longer than {MAX_RECORD >> 20} MiB")
        buf = self.pool.take("text", rest + self.block + PAD, np.uint8)
        buf[:rest] = self.buf[self.begin : self.end]
        n = self.stream.readinto(buf[rest:-PAD].data)
        self.final = self.stream.finished
        self.buf, self.begin, self.end = buf, 0, rest + n
        buf[self.end : self.end + PAD] = 0

    def incomplete(self) -> bool:
        """Whether the rest of the block certainly holds no complete record."""
        rest = self.buf[self.begin : min(self.end, self.begin + self.chunk)].tobytes()
        return not self.final and b"\n" not in rest and b"\r" not in rest

    def take(self, stop: int, line: int) -> None:
        """Continue from `stop`."""
        self.offset += stop - self.begin
        self.begin, self.line = stop, line

    def skip_bom(self) -> None:
        """Skip a byte order mark."""
        while self.end < 3 and not self.final:
            self.fill()
        head = self.buf[: min(3, self.end)].tobytes()
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise SourceError(f"{self.stream.where}: this is UTF-16; save it as UTF-8")
        if head == b"\xef\xbb\xbf":
            self.take_header(3, 1)

    def take_header(self, stop: int, line: int) -> None:
        """Take bytes that are not rows."""
        self.header += self.buf[self.begin : stop].tobytes()
        self.take(stop, line)

    def blocks(self) -> Iterator[tuple[np.ndarray, int, bool]]:
        """Blocks to parse from `begin` on; a record longer than the block makes the next one larger."""
        while True:
            before = self.begin
            yield self.buf, self.end, self.final
            if self.final:
                return
            stuck = self.begin == before and self.end - self.begin >= self.block
            self.block = 2 * self.block if stuck else self.chunk
            self.fill()
