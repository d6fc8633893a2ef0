"""Bytes from files and pipes, decompressed from gzip, zstd and zip.

A compressed file may expand to FREE bytes or RATIO times the bytes read so far, whichever is more. Beyond that it is
refused as a decompression bomb.
"""

from __future__ import annotations

import gzip
import io
import select
import sys
import zipfile
import zlib
from typing import Any, NoReturn

from ..errors import SourceError

FREE = 1 << 28
RATIO = 1000
SKIP = 1 << 20  # bytes that are skipped at a time
PACKED = (".gz", ".zst", ".zstd", ".zip")  # endings of names
SAVE_AS_CSV = "save its sheet as CSV, and give that"


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
            self.file = gzip.GzipFile(fileobj=self.raw, mode="rb")
        elif head == b"\x28\xb5\x2f\xfd":
            import pyarrow as pa

            self.file = pa.CompressedInputStream(pa.PythonFile(self.raw, mode="r"), "zstd")
        elif head == b"PK\x03\x04":
            self._open_member()
        elif head == b"\xd0\xcf\x11\xe0":
            self._refuse(f"this is a workbook of Excel (.xls): {SAVE_AS_CSV}")
        else:
            self.compressed = False

    def _open_member(self) -> None:
        """Open the only file in a zip file; numpy's .npz files are left as they are."""
        if self.path == "-":
            raise SourceError(f"{self.where}: this is a zip file, which is read from its end: unpack it first")
        try:
            archive = zipfile.ZipFile(self.raw)
        except (zipfile.BadZipFile, OSError) as error:
            self._refuse(f"the zip file is damaged: {error}")
        members = [m for m in archive.infolist() if not m.is_dir() and m.filename[:9] != "__MACOSX/"]
        names = [member.filename for member in members]
        if any(name.endswith(".npy") for name in names):
            self.raw.seek(0)
            self.compressed = False
            return
        if "[Content_Types].xml" in names or "mimetype" in names:
            kind = "a workbook of Excel (.xlsx)" if "[Content_Types].xml" in names else "an OpenDocument file (.ods)"
            self._refuse(f"this is {kind}: {SAVE_AS_CSV}")
        if len(names) != 1:
            shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            self._refuse(f"a zip file of {len(names)} files ({shown}): unpack it, and give one of them")
        if members[0].flag_bits & 1:
            self._refuse("the zip file is encrypted: unpack it first")
        self.file = archive.open(members[0])

    def _refuse(self, why: str) -> NoReturn:
        """Close the file and raise an error."""
        self.close()
        raise SourceError(f"{self.where}: {why}")

    @property
    def where(self) -> str:
        """Its name in messages."""
        return "standard input" if self.path == "-" else self.path

    @property
    def consumed(self) -> int:
        """Bytes read of the file as it is on disk."""
        return self._place() if self.compressed else self.delivered

    def _place(self) -> int:
        """The position in the file on disk."""
        return 0 if self.raw.closed else int(self.raw.tell())

    def readable(self) -> bool:
        return True

    @property
    def finished(self) -> bool:
        """Whether all bytes were returned."""
        return self.ended

    def readinto(self, view: Any) -> int:
        """Fill the view, with what is available if it is a pipe; returns the number of bytes, 0 at the end."""
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
                if self.compressed and self.delivered + filled > max(FREE, RATIO * self._place()):
                    raise SourceError(
                        f"{self.where}: expands to more than {RATIO} times its size (beyond {FREE >> 20} MiB); "
                        "decompress it first if you trust it"
                    )
        except (EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError) as error:
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
        self._skip_all(size, hasher)

    def _skip_all(self, size: int | None, hasher: Any) -> None:
        """Skip the first bytes by reading them."""
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


class Rewritten(ByteStream):
    """The bytes of a file, converted on the fly. A subclass has `_advance`, which puts the next bytes into `ready`."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.ready, self.raw_read = b"", 0

    @property
    def consumed(self) -> int:
        return self._place() if self.compressed else self.raw_read

    @property
    def finished(self) -> bool:
        return self.ended and not self.ready

    def _advance(self) -> None:
        """Read and convert the next block."""
        raise NotImplementedError

    def _read_block(self, size: int) -> bytes:
        """Read the next bytes of the file, unconverted."""
        room, before = bytearray(size), self.delivered
        n = super().readinto(room)
        self.delivered = before
        self.raw_read += n
        return bytes(room[:n])

    def readinto(self, view: Any) -> int:
        """Fill the view as far as there are bytes; returns how many, 0 at the end."""
        filled, view = 0, memoryview(view)
        while filled < len(view):
            if not self.ready:
                if self.ended:
                    break
                self._advance()
                continue
            part = self.ready[: len(view) - filled]
            view[filled : filled + len(part)] = part
            self.ready, filled = self.ready[len(part) :], filled + len(part)
        self.delivered += filled
        return filled

    def skip(self, size: int | None, hasher: Any) -> None:
        """Skip the first converted bytes (None: all), adding them to the hash if there is one."""
        self._skip_all(size, hasher)


class StandardInput(io.RawIOBase):
    """Standard input, whose first lines can be peeked at; it stays open."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.held, self.given = raw, b"", 0
        self.ended = False

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        """The number of bytes returned so far."""
        return self.given

    def _more(self) -> None:
        data = self.raw.read(1 << 16)
        self.held, self.ended = self.held + data, not data

    def peek(self, size: int, lines: int = 0) -> bytes:
        """Peek at the next bytes, at most `size`; waits for `lines` lines, or for one byte."""
        while not self.ended and len(self.held) < size and (not self.held or self.held.count(b"\n") < lines):
            self._more()
        return self.held[:size]

    def is_ready(self) -> bool:
        """Whether reading would return, bytes or the end, without waiting."""
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
        self.held, self.given = self.held[n:], self.given + n
        return n

    def close(self) -> None:
        """Do nothing."""


_inputs: list[StandardInput] = []


def standard_input() -> StandardInput:
    """The one standard input of this process."""
    raw = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)  # a thread that waits in a buffer has it locked at exit
    if not _inputs or _inputs[0].raw is not raw:
        _inputs[:] = [StandardInput(raw)]
    return _inputs[0]
