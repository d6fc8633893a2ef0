"""Bytes from files and pipes, decompressed from gzip and zstd.

A compressed file may expand to FREE bytes, or to RATIO times what was read of it, whichever is more; beyond that it is
refused as a bomb.
"""

from __future__ import annotations

import gzip
import io
import select
import sys
import zlib
from typing import Any

from ..errors import SourceError

FREE = 1 << 28
RATIO = 1000
SKIP = 1 << 20  # bytes that are skipped at a time


class ByteStream(io.RawIOBase):
    """The bytes of a file, or of standard input for "-"."""

    def __init__(self, path: str) -> None:
        self.path, self.delivered, self.ended = path, 0, False
        self.file: Any = None
        self.raw: Any = None
        try:
            self.raw = standard_input() if path == "-" else open(path, "rb", buffering=0)  # noqa: SIM115
            if path == "-":
                head = self.raw.peek(4)
            else:
                head = self.raw.read(4)
                self.raw.seek(0)
        except OSError as error:
            raise SourceError(f"{self.where}: {error.strerror}") from None
        self.file = self.raw
        self.compressed = True
        if head[:2] == b"\x1f\x8b":
            self.counter = CountingReader(self.raw)
            self.file = gzip.GzipFile(fileobj=self.counter, mode="rb")  # type: ignore[call-overload]
        elif head == b"\x28\xb5\x2f\xfd":
            import pyarrow as pa

            self.counter = CountingReader(self.raw)
            self.file = pa.CompressedInputStream(pa.PythonFile(self.counter, mode="r"), "zstd")
        else:
            self.compressed = False

    @property
    def where(self) -> str:
        """Its name in messages."""
        return "standard input" if self.path == "-" else self.path

    @property
    def consumed(self) -> int:
        """Bytes read of the file as it is on disk."""
        return self.counter.count if self.compressed else self.delivered

    def readable(self) -> bool:
        return True

    @property
    def finished(self) -> bool:
        """Whether all bytes were given."""
        return self.ended

    def readinto(self, view: Any) -> int:
        """Fill the view as far as there are bytes, of a pipe as many as there are by now; how many, 0 at the end."""
        filled, view = 0, memoryview(view)
        try:
            while filled < len(view):
                n = self.file.readinto(view[filled:])
                if not n:
                    self.ended = True
                    break
                filled += n
                if self.raw is self.file and self.path == "-" and not self.raw.is_ready():
                    break
                if self.compressed and self.delivered + filled > max(FREE, RATIO * self.counter.count):
                    raise SourceError(
                        f"{self.where}: expands to more than {RATIO} times its size (beyond {FREE >> 20} MiB); "
                        "decompress it first if you trust it"
                    )
        except (EOFError, zlib.error) as error:
            raise SourceError(f"{self.where}: the compressed data is damaged or cut short: {error}") from None
        except OSError as error:
            raise SourceError(f"{self.where}: {error.strerror or error}") from None
        self.delivered += filled
        return filled

    def skip(self, size: int | None, hasher: Any) -> None:
        """Skip the first bytes (None: all), adding them to the hash if there is one."""
        if hasher is None and size is not None and not self.compressed and self.path != "-":
            self.raw.seek(size)
            self.delivered = size
            return
        room = bytearray(SKIP)
        while size is None or self.delivered < size:
            view = memoryview(room)[: None if size is None else size - self.delivered]
            n = self.readinto(view)
            if not n and size is None:
                return
            if not n:
                raise SourceError(f"{self.where}: has {self.delivered:,} bytes, but {size:,} were read from it before")
            if hasher is not None:
                hasher.update(view[:n])

    def close(self) -> None:
        """Close the file, if it could be opened; standard input stays open."""
        for file in (self.file, self.raw):
            if file is not None and self.path != "-" and not self.closed:
                file.close()
        super().close()


class StandardInput:
    """Standard input, of which one can look at the first lines."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.held = raw, b""
        self.ended = False

    def _more(self) -> None:
        data = self.raw.read1(1 << 16)
        self.held, self.ended = self.held + data, not data

    def peek(self, size: int, lines: int = 0) -> bytes:
        """The next bytes, at most `size` of them; it waits for so many lines, or one byte."""
        while not self.ended and len(self.held) < size and (not self.held or self.held.count(b"\n") < lines):
            self._more()
        return self.held[:size]

    def is_ready(self) -> bool:
        """Whether there are bytes, or the end, without waiting."""
        if self.held or self.ended:
            return True
        try:
            return bool(select.select([self.raw.fileno()], [], [], 0)[0])
        except (OSError, ValueError):  # not a file of the system
            return True

    def readinto(self, view: Any) -> int:
        """Some bytes; 0 at the end."""
        if not self.held and not self.ended:
            self._more()
        n = min(len(view), len(self.held))
        view[:n] = self.held[:n]
        self.held = self.held[n:]
        return n

    def read(self, size: int = -1) -> bytes:
        """Some bytes, for who decompresses them."""
        if not self.held and not self.ended:
            self._more()
        data, self.held = (self.held, b"") if size < 0 else (self.held[:size], self.held[size:])
        return data

    def close(self) -> None:
        """It stays open."""


_inputs: list[StandardInput] = []


def standard_input() -> StandardInput:
    """The one standard input of this process."""
    if not _inputs or _inputs[0].raw is not sys.stdin.buffer:
        _inputs[:] = [StandardInput(sys.stdin.buffer)]
    return _inputs[0]


class CountingReader:
    """A file that counts the bytes read from it."""

    def __init__(self, file: Any) -> None:
        self.file, self.count, self.closed = file, 0, False

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.file.read(size)
        self.count += len(data)
        return data

    def close(self) -> None:
        """The file itself is closed by whoever opened it."""

    def seekable(self) -> bool:
        return False

    def readable(self) -> bool:
        return True
