"""Model files: safetensors, whole or refused, and written so that a reader sees the old file or the new one.

A file is a safetensors file (8 bytes of header size, a JSON header, the tensors) of F64, I64 and U8 tensors. Its
metadata hold the schema, the kind and a JSON document; its last tensor is the SHA-256 of every byte before it. The
sizes are checked against caps, and against each other and the size of the file, before anything they speak of is read.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
from ..errors import ModelError

SCHEMA = 1
DTYPES: dict[str, np.dtype[Any]] = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8"), "U8": np.dtype("u1")}
HEADER = 32 << 20  # bytes of the header at most
TENSORS = 1 << 16  # at most
PIECE = 1 << 20  # bytes written or hashed at a time
SEAL = "sha256"


# ---------------------------------------------------------------- replacing a file at one stroke


def replace(path: str, pieces: Iterable[bytes | memoryview]) -> None:
    """Write the file so that at every moment, even after a power cut, the old one or the new one stands there whole.

    A temporary file in the same folder is written, synced to disk and renamed over the target, and the folder is
    synced. On any error the target is as it was and the temporary file is gone; one left by a killed process is
    removed by the next write to that folder.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".hindsight-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        mode = _mode(path, target)
        _sweep(folder)
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            try:
                if mode is not None:
                    os.chmod(temporary, mode)
                for block in _blocks(pieces):
                    _write(file, block)
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


def _mode(path: str, target: str) -> int | None:
    """The permissions of the file that stands there; None for a new one."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"{path}: cannot be written: what stands there is no plain file")
    if not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "Permission denied")
    return stat.S_IMODE(found.st_mode)


def _sweep(folder: str) -> None:
    """Remove temporary files whose process is gone."""
    if os.name != "posix":
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return  # a folder that can be written but not listed
    for name in names:
        found = re.fullmatch(r"\.hindsight-(\d{1,9})-[0-9a-f]{8}\.tmp", name)
        if found is None:
            continue
        try:
            os.kill(int(found[1]), 0)
        except ProcessLookupError:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))
        except OSError:
            pass  # it runs, as someone else


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


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable."""
    if os.name != "posix":
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that syncs no folders
            raise
    finally:
        os.close(file)


# ---------------------------------------------------------------- the container


def write(path: str | os.PathLike[str], kind: str, document: str, tensors: Mapping[str, np.ndarray]) -> None:
    """Write a document and its tensors (float64, int64 or uint8) as one sealed file, replacing what is there."""
    path = os.fspath(path)
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
            f"{path}: a header of {len(text):,} bytes for {len(data):,} tensors is above the caps "
            f"of {HEADER:,} and {TENSORS:,}"
        )
    replace(path, _sealed([len(text).to_bytes(8, "little"), text, *data[:-1]]))


def _sealed(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    seal = hashlib.sha256()
    for piece in pieces:
        seal.update(piece)
        yield piece
    yield seal.digest()


def read(path: str | os.PathLike[str], kinds: Iterable[str]) -> tuple[str, str, dict[str, np.ndarray]]:
    """The kind, the document and the tensors of a file of one of these kinds, if it is whole."""
    path = os.fspath(path)
    try:
        # A pipe or a device must not keep us waiting: it is opened without blocking, and then refused.
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(file, "rb", buffering=0) as stream:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise ModelError(f"{path}: no plain file")
            return _read(path, stream, found.st_size, kinds)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    except MemoryError:
        raise ModelError(f"{path}: does not fit in memory") from None


def _read(path: str, stream: BinaryIO, size: int, kinds: Iterable[str]) -> tuple[str, str, dict[str, np.ndarray]]:
    def bad(what: str) -> ModelError:
        return ModelError(f"{path}: no whole model file: {what}")

    seal = hashlib.sha256()
    start = np.zeros(8, np.uint8)
    if size < 8 or not _fill(stream, start, seal):
        raise bad(f"it has {size} bytes")
    length = int.from_bytes(start.tobytes(), "little")
    if length > min(HEADER, size - 8):
        raise bad("it does not begin with the size of a header")
    text = np.zeros(length, np.uint8)
    if not _fill(stream, text, seal):
        raise bad("it ends within the header")
    metadata, entries = _header(text.tobytes(), size - 8 - length, bad)
    if metadata["format"] != "hindsight" or metadata["kind"] not in kinds:
        raise bad(f"its kind is {metadata['kind'][:40]!r}")
    schema = metadata["schema"]
    if schema != str(SCHEMA):
        raise ModelError(f"{path}: its schema is {schema[:20]!r}, and this version reads {SCHEMA}: upgrade hindsight")
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
        raise bad("its SHA-256 differs: the file is damaged")
    return metadata["kind"], metadata["document"], tensors


def _fill(stream: BinaryIO, out: np.ndarray, seal: Any) -> bool:
    """Fill the bytes from the stream and hash them; False where it ends before."""
    rest = memoryview(out.data)
    while rest:
        got = stream.readinto(rest[:PIECE])  # type: ignore[attr-defined]
        if not got:
            return False
        seal.update(rest[:got])
        rest = rest[got:]
    return True


def _header(text: bytes, room: int, bad: Callable[[str], ModelError]) -> tuple[dict[str, str], list[Any]]:
    """Metadata and tensors (name, dtype, shape) of a header, in the order of the file, that fill `room` bytes."""
    try:
        head = json.loads(text.decode("ascii"), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise bad("its header is no JSON") from None
    metadata = head.pop("__metadata__", None) if isinstance(head, dict) else None
    fields = ("document", "format", "kind", "schema")
    if not (isinstance(metadata, dict) and sorted(metadata) == list(fields)) or not all(
        isinstance(metadata[k], str) for k in fields
    ):
        raise bad("it was not written by hindsight")
    if len(head) > TENSORS:
        raise bad(f"{len(head):,} tensors")
    entries, place = [], 0
    for name, entry in head.items():
        if not isinstance(entry, dict) or sorted(entry) != ["data_offsets", "dtype", "shape"]:
            raise bad(f"tensor {name[:40]!r} is not described as one")
        dtype, shape, span = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise bad(f"tensor {name[:40]!r} is of type {str(dtype)[:20]!r}")
        if not _counts(shape) or not _counts(span) or len(shape) > 8 or len(span) != 2:
            raise bad(f"tensor {name[:40]!r} has no valid shape or place")
        count = DTYPES[dtype].itemsize
        for n in shape:
            count *= n
        if span != [place, place + count] or place + count > room:
            raise bad(f"tensor {name[:40]!r} is not where it belongs")
        place += count
        entries.append((name, DTYPES[dtype], shape))
    if place != room or not entries or entries[-1] != (SEAL, DTYPES["U8"], [32]):
        raise bad("tensors and file differ in size")
    return metadata, entries


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without repeated names."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(n) is int and 0 <= n < 1 << 48 for n in values)
