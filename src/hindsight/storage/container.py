"""Sealed files: safetensors with a checksum, replaced atomically.

A file is a safetensors file (8 bytes of header size, a JSON header, the tensors) of F64, I64 and U8 tensors. Its
metadata are the schema, the kind and a JSON document; its last tensor is the SHA-256 of every byte before it. Sizes are
checked against limits, against each other and against the size of the file before memory is allocated for them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import stat
import time
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ..errors import ModelError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

SCHEMA = 2
DTYPES: dict[str, np.dtype[Any]] = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8"), "U8": np.dtype("u1")}
HEADER = 32 << 20  # bytes of the header at most
TENSORS = 1 << 16  # at most
PIECE = 1 << 20  # bytes written or hashed at a time
SEAL = "sha256"
HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]  # in the names of temporary files
OLD = 24 * 3600  # seconds after which a temporary file of another host counts as abandoned


# ---------------------------------------------------------------- replacing a file atomically


@contextmanager
def replacing(path: str) -> Iterator[int]:
    """Replace a file atomically: at every moment, even after a power cut, the old file or the new one is there.

    A temporary file in the same folder is written, synced to disk and renamed over the target, and the folder is
    synced. On any error the target is unchanged and the temporary file is removed. The temporary file is locked while
    it is written. One left by a killed process is therefore recognised, and removed by the next write to that folder
    from the same host, or from any host after a day.

    Parameters
    ----------
    path : str
        The file; symbolic links are followed, and permissions are kept.

    Yields
    ------
    int
        The descriptor of the temporary file.

    Raises
    ------
    ModelError
        If the file cannot be written.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    try:
        mode = _mode(path, target)
        _remove_stale(folder)
        temporary, file = _temporary(folder)
        try:
            with open(os.dup(file), "wb", buffering=0):  # this keeps the lock until the file is renamed
                try:
                    if mode is not None:
                        os.chmod(temporary, mode)
                    yield file
                    os.fsync(file)
                finally:
                    os.close(file)
                os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(folder)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from None


def replace(path: str, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file atomically, as `replacing` does, with the bytes of some pieces."""
    with replacing(path) as file:
        for block in _blocks(pieces):
            _write(file, block)


def _mode(path: str, target: str) -> int | None:
    """The permissions of the file to be replaced; None if it does not exist."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"{path}: cannot be written: it exists and is not a regular file")
    if not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "Permission denied")
    return stat.S_IMODE(found.st_mode)


def _temporary(folder: str) -> tuple[str, int]:
    """Create a file that is locked while it is open; returns its path and descriptor."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = os.path.join(folder, f".hindsight-{HOST}-{os.urandom(4).hex()}.tmp")
        file = os.open(path, flags, 0o666)
        try:
            if fcntl is not None:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(file, fcntl.LOCK_EX)
            if fcntl is None or os.fstat(file).st_nlink > 0:  # it was not removed before it was locked
                return path, file
        except BaseException:
            os.close(file)
            with suppress(OSError):
                os.unlink(path)
            raise
        os.close(file)


def _remove_stale(folder: str) -> None:
    """Remove temporary files that no process is writing.

    Locks show this for processes on this host. Locks of other hosts may be invisible, so their files must also be old.
    """
    if fcntl is None:
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return  # a folder that can be written but not listed
    for name in names:
        found = re.fullmatch(r"\.hindsight-(\w{1,16})-[0-9a-f]{8}\.tmp", name)
        if found is None:
            continue
        path = os.path.join(folder, name)
        with suppress(OSError):
            file = os.open(path, os.O_RDWR)
            try:
                if found[1] == HOST or time.time() - os.fstat(file).st_mtime > OLD:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
            finally:
                os.close(file)


def _blocks(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The same bytes in blocks of about PIECE."""
    small = bytearray()
    for piece in pieces:
        if len(small) + len(piece) <= PIECE:
            small += piece
            continue
        yield bytes(small)
        small = bytearray()
        for a in range(0, len(piece), PIECE):
            yield piece[a : a + PIECE]
    yield bytes(small)


def _write(file: int, block: bytes | memoryview) -> None:
    rest = memoryview(block)
    while rest:
        done = os.write(file, rest)
        if done == 0:
            raise OSError(errno.EIO, "nothing could be written")
        rest = rest[done:]


def sync(file: int) -> None:
    """Sync a file to disk; ignores pipes, devices and folders that cannot be synced."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):
            raise


def sync_folder(folder: str) -> None:
    """Sync the entries of a folder to disk."""
    if os.name != "posix":
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        sync(file)
    finally:
        os.close(file)


def write_text(path: str, texts: Iterable[str]) -> None:
    """Write text to a file, atomically; a pipe or a device is written directly.

    Parameters
    ----------
    path : str
        The file.
    texts : iterable of str
        The content.

    Raises
    ------
    ModelError
        If the file cannot be written.
    """
    pieces = (text.encode("utf-8", "surrogateescape") for text in texts)
    try:
        special = not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path)
    except OSError:
        special = False
    if not special:
        replace(path, pieces)
        return
    try:
        with open(path, "wb") as file:
            for block in _blocks(pieces):
                file.write(block)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from None


# ---------------------------------------------------------------- the container


def write(path: str | os.PathLike[str], kind: str, document: str, tensors: Mapping[str, np.ndarray]) -> None:
    """Write a document and its tensors as one sealed file, replacing one that exists.

    Parameters
    ----------
    path : str or path-like
        The file.
    kind : str
        What the file holds: "model", "estimator", "density" or "checkpoint".
    document : str
        JSON.
    tensors : mapping of str to ndarray
        Arrays of float64, int64 or uint8.

    Raises
    ------
    ModelError
        If there is an array of another type, a limit is exceeded, or the file cannot be written.
    """
    path = os.fspath(path)
    replace(path, pieces_of(path, kind, document, tensors))


def pieces_of(path: str, kind: str, document: str, tensors: Mapping[str, np.ndarray]) -> Iterator[bytes | memoryview]:
    """The bytes of a sealed file; `path` is for messages."""
    metadata = {"format": "hindsight", "schema": str(SCHEMA), "kind": kind, "document": document}
    head: dict[str, Any] = {"__metadata__": metadata}
    arrays = sorted(tensors.items(), key=lambda item: item[1].dtype.itemsize, reverse=True)  # keeps numbers aligned
    place, data = 0, []
    for name, array in [*arrays, (SEAL, np.zeros(32, np.uint8))]:
        dtype = next((d for d, known in DTYPES.items() if known == array.dtype), None)
        if dtype is None or name in head:
            raise ModelError(f"{path}: tensor {name!r} of {array.dtype} cannot be saved")
        head[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
        data.append(np.ascontiguousarray(array, DTYPES[dtype]).reshape(-1).view(np.uint8).data)
    text = json.dumps(head, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER or len(data) > TENSORS:
        raise ModelError(
            f"{path}: a header of {len(text):,} bytes for {len(data):,} tensors exceeds the limits "
            f"of {HEADER:,} and {TENSORS:,}"
        )
    return _sealed([len(text).to_bytes(8, "little"), text, *data[:-1]])


def _sealed(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    seal = hashlib.sha256()
    for piece in pieces:
        seal.update(piece)
        yield piece
    yield seal.digest()


def read(path: str | os.PathLike[str], kinds: Collection[str]) -> tuple[str, str, dict[str, np.ndarray]]:
    """Return the content of a sealed file.

    Parameters
    ----------
    path : str or path-like
        The file.
    kinds : collection of str
        The kinds of file that are expected.

    Returns
    -------
    kind : str
        One of `kinds`.
    document : str
        JSON, not parsed.
    tensors : dict of str to ndarray
        The arrays.

    Raises
    ------
    ModelError
        If the file cannot be read, is not complete, is damaged, or is of another kind.
    """
    path = os.fspath(path)
    try:
        # Opening a pipe or a device could block: it is opened without blocking, and then refused.
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(file, "rb", buffering=0) as stream:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise ModelError(f"{path}: not a regular file")
            return read_stream(path, stream, found.st_size, kinds)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    except MemoryError:
        raise ModelError(f"{path}: does not fit in memory") from None


def read_stream(
    path: str, stream: BinaryIO, size: int, kinds: Collection[str]
) -> tuple[str, str, dict[str, np.ndarray]]:
    """Read the content of a sealed file of `size` bytes, like `read`; `path` is for messages."""

    def bad(what: str) -> ModelError:
        return ModelError(f"{path}: not a complete model file: {what}")

    seal = hashlib.sha256()
    start = np.zeros(8, np.uint8)
    if size < 8 or not _fill(stream, start, seal):
        raise bad(f"it has {size} bytes")
    length = int.from_bytes(start.tobytes(), "little")
    if length > min(HEADER, size - 8):
        raise bad("it does not start with the size of a header")
    text = np.zeros(length, np.uint8)
    if not _fill(stream, text, seal):
        raise bad("it ends within the header")
    metadata, entries = _header(text.tobytes(), size - 8 - length, bad)
    if metadata["kind"] not in kinds:
        raise bad(f"its kind is {metadata['kind'][:40]!r}, {' or '.join(kinds)} expected")
    schema = metadata["schema"]
    if schema != str(SCHEMA):
        advice = "train it again" if schema in map(str, range(SCHEMA)) else "upgrade hindsight"
        raise ModelError(f"{path}: its schema is {schema[:20]!r}, and this version reads {SCHEMA}: {advice}")
    tensors = {}
    for name, dtype, shape in entries:
        try:
            tensors[name] = np.empty(shape, dtype)
        except ValueError:
            raise bad(f"tensor {name[:40]!r} has shape {shape}") from None
        digest = seal.digest()
        if not _fill(stream, tensors[name].reshape(-1).view(np.uint8), seal):
            raise bad(f"it ends within tensor {name!r}")
    if tensors.pop(SEAL).tobytes() != digest:
        raise bad("its SHA-256 does not match: the file is damaged")
    return metadata["kind"], metadata["document"], tensors


def _fill(stream: BinaryIO, out: np.ndarray, seal: Any) -> bool:
    """Fill the array from the stream and hash its bytes; False if the stream ends first."""
    rest = memoryview(out.data)
    while rest:
        got = stream.readinto(rest[:PIECE])  # type: ignore[attr-defined]
        if not got:
            return False
        seal.update(rest[:got])
        rest = rest[got:]
    return True


def _header(text: bytes, room: int, bad: Callable[[str], ModelError]) -> tuple[dict[str, str], list[Any]]:
    """The metadata and the tensors (name, dtype, shape) of a header, in file order; they must fill `room` bytes."""
    try:
        head = json.loads(text.decode("ascii"), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise bad("its header is not valid JSON") from None
    metadata: Any = head.pop("__metadata__", None) if isinstance(head, dict) else None
    fields = ("document", "format", "kind", "schema")
    known = isinstance(metadata, dict) and sorted(metadata) == list(fields)
    if not known or not all(isinstance(metadata[k], str) for k in fields) or metadata["format"] != "hindsight":
        raise bad("it was not written by hindsight")
    if len(head) > TENSORS:
        raise bad(f"it has {len(head):,} tensors, at most {TENSORS:,} allowed")
    entries, place = [], 0
    for name, entry in head.items():
        if not isinstance(entry, dict) or sorted(entry) != ["data_offsets", "dtype", "shape"]:
            raise bad(f"tensor {name[:40]!r} must have data_offsets, dtype and shape")
        dtype, shape, span = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise bad(f"tensor {name[:40]!r} has dtype {str(dtype)[:20]!r}, {', '.join(DTYPES)} expected")
        if not _counts(shape) or not _counts(span) or len(shape) > 8 or len(span) != 2:
            raise bad(f"tensor {name[:40]!r} has an invalid shape or offset")
        count = DTYPES[dtype].itemsize
        for n in shape:
            count *= n
        if span != [place, place + count] or place + count > room:
            raise bad(f"tensor {name[:40]!r} has wrong offsets")
        place += count
        entries.append((name, DTYPES[dtype], shape))
    if place != room or not entries or entries[-1] != (SEAL, DTYPES["U8"], [32]):
        raise bad("its tensors do not fill the file")
    return metadata, entries


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated names."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(n) is int and 0 <= n < 1 << 48 for n in values)
