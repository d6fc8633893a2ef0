"""An append-only log of commits: what is in it survives a crash, and what is damaged is said.

A segment is a file named after its first commit. Each commit is one frame: magic, length, number and CRC-32 of the
header, then the payload and its CRC-32. One frame is written and synced at a time, so that after a crash or a power cut
only the last frame of the last segment can be incomplete. That one is cut off (it was never acknowledged); damage
anywhere else stops the reader, which names the place.
"""

from __future__ import annotations

import itertools
import os
import re
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SourceError
from ..storage.container import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAGIC = b"HSL1"
HEADER = struct.Struct("<4sIQI")  # magic, bytes of the payload, number of the commit, CRC-32 of these
CHECK = struct.Struct("<I")  # CRC-32 of the payload
NAME = re.compile(r"(\d{16})\.log")
LARGE = 1 << 16  # bytes from which on a piece of a commit is written by itself
SEGMENT = 64 << 20  # bytes after which a segment is closed


class LogError(SourceError):
    """A log that is damaged, or cannot be written any more: which file, and where."""


class Frame(NamedTuple):
    """One commit: its number, what it holds, and where it begins and ends."""

    commit: int
    payload: bytes
    path: str
    begin: int
    end: int


def frame_pieces(commit: int, payload: Sequence[bytes]) -> list[bytes]:
    """A commit as it stands in the log; its pieces are not copied."""
    start = HEADER.pack(MAGIC, sum(map(len, payload)), commit, 0)[:-4]
    check = 0
    for piece in payload:
        check = zlib.crc32(piece, check)
    return [start + CHECK.pack(zlib.crc32(start)), *payload, CHECK.pack(check)]


def large_pieces(pieces: Sequence[bytes]) -> Iterator[bytes]:
    """The same bytes in as few pieces as can be without a copy of large ones."""
    held: list[bytes] = []
    for piece in pieces:
        if len(piece) >= LARGE:
            yield b"".join(held)
            held = []
            yield piece
        else:
            held.append(piece)
    yield b"".join(held)


def segments(folder: str) -> list[tuple[int, str]]:
    """The first commit and the path of each segment, in order."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [(int(match[1]), os.path.join(folder, name)) for name in names if (match := NAME.fullmatch(name))]
    return sorted(found)


def read_segment(path: str, first: int, last: bool) -> Iterator[Frame]:
    """The commits of a segment.

    Parameters
    ----------
    path : str
        The file.
    first : int
        The number of its first commit.
    last : bool
        Whether it is the last segment: then an incomplete frame at its end is left out.

    Raises
    ------
    LogError
        If a frame is damaged that is not the last of all, or commits are missing.
    """
    size, at, commit = os.path.getsize(path), 0, first
    with open(path, "rb") as file:
        while at < size:
            head = file.read(HEADER.size)
            length = _length(head)
            if length is None:
                if last and not _frame_after(path, at + 1):
                    return
                raise LogError(f"{path}, byte {at}: the log is damaged: this is not the header of a commit")
            payload, check = file.read(length), file.read(CHECK.size)
            end = at + HEADER.size + length + CHECK.size
            if len(check) < CHECK.size or CHECK.unpack(check)[0] != zlib.crc32(payload):
                if last and end >= size:
                    return
                raise LogError(f"{path}, byte {at}: the log is damaged: commit {commit} has another checksum")
            number = HEADER.unpack(head)[2]
            if number != commit:
                raise LogError(f"{path}, byte {at}: commit {commit} is missing: the next one is {number}")
            yield Frame(commit, payload, path, at, end)
            at, commit = end, commit + 1


def _length(head: bytes) -> int | None:
    """The size of the payload that a header announces; None where it is no header."""
    if len(head) < HEADER.size or head[:4] != MAGIC or CHECK.unpack(head[-4:])[0] != zlib.crc32(head[:-4]):
        return None
    return int(HEADER.unpack(head)[1])


def _frame_after(path: str, at: int) -> bool:
    """Whether a header stands anywhere after this byte."""
    with open(path, "rb") as file:
        file.seek(at)
        rest = file.read()
    found = rest.find(MAGIC)
    while found >= 0:
        if _length(rest[found : found + HEADER.size]) is not None:
            return True
        found = rest.find(MAGIC, found + 1)
    return False


def read_log(folder: str, after: int = 0) -> Iterator[Frame]:
    """The commits after one, from all segments.

    Raises
    ------
    LogError
        If a commit is damaged or missing.
    """
    found = segments(folder)
    for k, (first, path) in enumerate(found):
        following = found[k + 1][0] if k + 1 < len(found) else None
        if following is not None and following <= after + 1:
            continue
        commit = first - 1
        for frame in read_segment(path, first, following is None):
            commit = frame.commit
            if commit > after:
                yield frame
        if following is not None and following != commit + 1:
            raise LogError(f"{path}: commits {commit + 1} to {following - 1} are missing from the log")


class Log:
    """The log of a folder, open for writing at its end.

    Parameters
    ----------
    folder : str
        Where the segments are; it must exist.
    commit : int
        The newest commit that is known, from a snapshot.
    segment : int, default 64 MiB
        Bytes after which a segment is closed.

    Attributes
    ----------
    commit : int
        The newest commit.
    cut : str or None
        What was cut off at the end when it was opened, in words.
    broken : str or None
        Why nothing can be written any more.
    bytes : int
        Bytes written since it was opened.
    """

    def __init__(self, folder: str, commit: int, segment: int = SEGMENT) -> None:
        self.folder, self.commit, self.segment = folder, commit, segment
        self.cut: str | None = None
        self.broken: str | None = None
        self.bytes = 0
        self.file = -1
        found = segments(folder)
        if found:
            first, path = found[-1]
            end, last = 0, first - 1
            for frame in read_segment(path, first, True):
                end, last = frame.end, frame.commit
            self._open(path, end)
            if last < commit:
                self._close()
            self.commit = max(last, commit)

    def _open(self, path: str, end: int) -> None:
        """Open a segment for writing after `end`; what stands there is moved to a file of its own."""
        self.path, self.end = path, end
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        size = os.fstat(self.file).st_size
        if size > end:
            os.lseek(self.file, end, os.SEEK_SET)
            rest = os.read(self.file, size - end)
            aside = f"{path}.cut-at-{end}"
            with open(aside, "wb") as file:
                file.write(rest)
            os.ftruncate(self.file, end)
            os.fsync(self.file)
            self.cut = (
                f"{path}: an incomplete commit of {size - end} bytes at byte {end} was cut off, and put in {aside}"
            )

    def _close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
        self.file = -1

    def close(self) -> None:
        """Close the segment being written."""
        self._close()

    def write(self, *payload: bytes) -> None:
        """Write the next commit, not yet durable: `sync` makes it so.

        Raises
        ------
        OSError
            If it cannot be written, as when the disk is full: the log is as it was before, and may be written later.
        LogError
            If the log is broken.
        """
        if self.broken:
            raise LogError(self.broken)
        if self.file < 0 or self.end >= self.segment:
            self.roll()
        done = 0
        try:
            for piece in large_pieces(frame_pieces(self.commit + 1, payload)):
                data = memoryview(piece)
                while data:
                    written = os.pwrite(self.file, data, self.end + done)
                    data, done = data[written:], done + written
        except OSError:
            self._forget()
            raise
        self.written = done

    def _forget(self) -> None:
        """Leave out what was written after the last commit."""
        try:
            os.ftruncate(self.file, self.end)
        except OSError as error:
            self.broken = f"{self.path}: cannot be written any more ({error.strerror}): start the service again"

    def sync(self) -> None:
        """Make what was written durable.

        Raises
        ------
        LogError
            If the disk does not say that it is: what it holds is then unknown, and nothing more is written.
        """
        try:
            os.fdatasync(self.file)
        except OSError as error:
            self.broken = f"{self.path}: could not be synced ({error.strerror}): start the service again"
            raise LogError(self.broken) from None
        self.commit += 1
        self.end += self.written
        self.bytes += self.written

    def roll(self) -> None:
        """Begin a new segment."""
        self._close()
        path = os.path.join(self.folder, f"{self.commit + 1:016d}.log")
        self._open(path, 0)
        os.fsync(self.file)
        sync_folder(self.folder)

    def drop(self, covered: int) -> None:
        """Remove the segments all of whose commits are at most `covered`."""
        found = segments(self.folder)
        for (_, path), (following, _) in itertools.pairwise(found):
            if following <= covered + 1:
                os.unlink(path)
