"""The folder of a service: an SQLite database with everything acknowledged, and files for large bodies.

``service.db`` is in WAL mode with ``synchronous=FULL``, so a committed transaction survives a power cut. Its tables:

* ``requests``: what was learnt, in order. Requests with the same ``commit_id`` were played together; ``first`` is the
  number of their first row. A body of a MiB or more is stored in ``bodies/ID``, and ``body`` is NULL.
* ``keys``: idempotency keys with their answers. Here and in ``kept``, ``row`` is the number of rows at that time.
* ``sources``: which rows of a stream were learnt.
* ``kept``: rows that wait for their outcome; ``outcome`` is the number of the row once it was learnt.
* ``snapshots``: the model after a commit, as a sealed file of bytes (NULL: in ``bodies/snapshot-COMMIT``).

``settings.json`` says what is learnt. ``lock`` is locked by the process that writes, and holds the number of the newest
commit. A database that ends before that commit has lost data, for example because ``service.db-wal`` was removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import struct
import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from ..errors import ModelError, SourceError
from ..storage import checkpoint
from ..storage.container import sync_folder, write_text
from .requests import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAME = "service.db"
VERSION = 2  # version 1 had folders with frames in segments, see `convert`
LARGE = 1 << 20  # bytes from which a body is stored in a separate file
CACHE = 1000  # pages of the WAL after which it is written to the database
NEWEST = struct.Struct("<QI")  # the number of the newest commit, and its CRC-32
SCHEMA = """
CREATE TABLE requests (
    id INTEGER PRIMARY KEY, commit_id INTEGER NOT NULL, time REAL NOT NULL, first INTEGER NOT NULL,
    rows INTEGER NOT NULL, form TEXT NOT NULL, crc INTEGER NOT NULL, body BLOB);
CREATE INDEX commits ON requests (commit_id);
CREATE TABLE keys (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, digest TEXT NOT NULL, row INTEGER NOT NULL, answer TEXT NOT NULL);
CREATE TABLE sources (
    source TEXT NOT NULL, start INTEGER NOT NULL, rows INTEGER NOT NULL, first INTEGER NOT NULL,
    PRIMARY KEY (source, start)) WITHOUT ROWID;
CREATE TABLE kept (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, row INTEGER NOT NULL, outcome INTEGER,
    content TEXT NOT NULL);
CREATE INDEX waiting ON kept (time) WHERE outcome IS NULL;
CREATE TABLE snapshots (commit_id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, crc INTEGER NOT NULL, state BLOB);
"""


class StoreError(SourceError):
    """A damaged or incomplete database; the message names the file and says what to do."""


@dataclass(frozen=True)
class Commit:
    """Requests that were played together: the number of the commit, its time, and the number of its first row."""

    number: int
    time: float
    first: int
    parts: list[Part]

    @property
    def rows(self) -> int:
        """How many rows they have."""
        return sum(part.rows for part in self.parts)


class Store:
    """The folder of a service, open for reading or, by one process at a time, for writing.

    Parameters
    ----------
    path : str
        The folder; it is created if it is missing and `write` is set.
    write : bool, default False
        Whether to write.
    name : str, default "service.db"
        The file of the database.

    Attributes
    ----------
    bytes : int
        Bytes of bodies written since it was opened.
    sync_seconds : float
        Seconds that the last transaction took to reach the disk.

    Raises
    ------
    SourceError
        If another process writes to the folder, it cannot be written, or there is no service to read.
    StoreError
        If the database is damaged, or its newest commits are missing.
    """

    def __init__(self, path: str, write: bool = False, name: str = NAME) -> None:
        self.path, self.bytes, self.lock, self.sync_seconds = os.path.abspath(path), 0, -1, 0.0
        self.file, self.bodies = os.path.join(self.path, name), os.path.join(self.path, "bodies")
        if write:
            self.lock = lock(self.path)
        elif not os.path.isfile(self.file):
            if os.path.isdir(os.path.join(path, "log")):
                raise SourceError(f"{path}: is of an earlier version: hindsight serve converts it")
            raise SourceError(f"{path}: there is no service in this folder")
        try:
            self._open(write)
            if write and name == NAME:
                self._check_end()
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise self.damaged(error) from None
            raise

    def _open(self, write: bool) -> None:
        new = not os.path.exists(self.file)
        where = f"file:{quote(self.file)}?mode={'rwc' if write else 'ro'}"
        self.db = sqlite3.connect(where, 30.0, isolation_level=None, check_same_thread=False, uri=True)
        self.ask = self.db.execute
        if not write:
            return
        if new:
            os.chmod(self.file, 0o600)
        self.ask("PRAGMA journal_mode = WAL")
        self.ask("PRAGMA synchronous = FULL")
        self.ask(f"PRAGMA wal_autocheckpoint = {CACHE}")
        found = self.one("PRAGMA user_version")
        if found == 0:
            self.db.executescript(f"BEGIN IMMEDIATE;{SCHEMA}PRAGMA user_version = {VERSION};COMMIT")
            sync_folder(self.path)
        elif found != VERSION:
            raise ModelError(f"{self.file}: is of version {found}, and this version of hindsight reads {VERSION}")

    def close(self) -> None:
        """Close the database and unlock the folder."""
        if hasattr(self, "db"):
            with contextlib.suppress(sqlite3.Error):
                self.db.close()
        if self.lock >= 0:
            os.close(self.lock)
        self.lock = -1

    def one(self, query: str, *values: Any) -> Any:
        """The first value that a query finds, or None."""
        found = self.ask(query, values).fetchone()
        return None if found is None else found[0]

    def damaged(self, error: Exception) -> StoreError:
        """The StoreError for an error of the database."""
        return StoreError(f"{self.file}: cannot be read ({error}): {ADVICE}")

    # ------------------------------------------------------------ the newest commit

    def _check_end(self) -> None:
        """Raise a StoreError if the database ends before the newest commit."""
        found = os.pread(self.lock, NEWEST.size, 0)
        if len(found) < NEWEST.size:
            return
        number, check = NEWEST.unpack(found)
        last = self.one("SELECT commit_id FROM requests ORDER BY id DESC LIMIT 1") or 0
        last = max(last, self.one("SELECT max(commit_id) FROM snapshots") or 0)
        if check == zlib.crc32(found[:8]) and number > last:
            raise StoreError(
                f"{self.file}: commits {last + 1:,} to {number:,} are missing: {NAME}-wal was removed or is damaged: "
                f"{ADVICE}"
            )

    def note_newest(self, commit: int) -> None:
        """Record the newest commit in the lock file; not synced, because it may lag behind."""
        number = struct.pack("<Q", commit)
        os.pwrite(self.lock, number + struct.pack("<I", zlib.crc32(number)), 0)

    # ------------------------------------------------------------ transactions

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that is durable after the block, or rolled back if an exception leaves it."""
        self.ask("BEGIN IMMEDIATE")
        try:
            yield
            self.commit()
        except BaseException:
            if self.db.in_transaction:
                self.ask("ROLLBACK")
            raise

    def commit(self) -> None:
        """Make a transaction durable."""
        began = time.perf_counter()
        self.ask("COMMIT")
        self.sync_seconds = time.perf_counter() - began

    @contextlib.contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """A savepoint: part of a transaction that is rolled back if an exception leaves the block."""
        self.ask("SAVEPOINT step")
        try:
            yield
        except BaseException:
            if self.db.in_transaction:
                self.ask("ROLLBACK TO step")
                self.ask("RELEASE step")
            raise
        self.ask("RELEASE step")

    # ------------------------------------------------------------ requests

    def add_requests(self, commit: int, time: float, first: int, parts: Sequence[Part]) -> None:
        """Add requests that were played together."""
        number = (self.one("SELECT max(id) FROM requests") or 0) + 1
        values = []
        for k, part in enumerate(parts, number):
            check, body = zlib.crc32(part.body), self._put(str(k), part.body)
            values.append((k, commit, time, first, part.rows, part.form, check, body))
            first += part.rows
            self.bytes += len(part.body)
        self.db.executemany("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def commits(self, after: int = 0) -> Iterator[Commit]:
        """Yield the commits after `after`, in order.

        Raises
        ------
        StoreError
            If a request is damaged or missing: the message says which, and its rows.
        """
        held: Commit | None = None
        try:
            for number, time, first, part in self.requests(after):
                if held is not None and held.number != number:
                    yield held
                    held = None
                held = held or Commit(number, time, first, [])
                held.parts.append(part)
        except StoreError:
            if held is not None:  # what comes before the request that cannot be read
                yield held
            raise
        if held is not None:
            yield held

    def requests(self, after: int = 0) -> Iterator[tuple[int, float, int, Part]]:
        """Yield the requests after a commit: commit, time, number of the first row, and the part."""
        begin = "SELECT id FROM requests WHERE commit_id > ? ORDER BY id LIMIT 1"
        try:
            number = self.one(begin, after) if after else self.one("SELECT min(id) FROM requests")
            while number is not None:
                query = "SELECT commit_id, time, first, rows, form, crc, body FROM requests WHERE id = ?"
                found = self.ask(query, (number,)).fetchone()
                if found is None:
                    last = self.one("SELECT max(id) FROM requests")
                    if last is not None and last > number:
                        raise StoreError(f"{self.file}: request {number:,} of {last:,} is missing: {ADVICE}")
                    return
                commit, time, first, rows, form, crc, body = found
                where = f"request {number:,} (from row {first:,} on)"
                yield commit, time, first, Part("learn", form, self._get(str(number), body, crc, where), rows)
                number += 1
        except sqlite3.Error as error:
            raise self.damaged(error) from None

    def first_commit(self) -> int | None:
        """The oldest commit whose requests are stored, or None."""
        found: int | None = self.one("SELECT commit_id FROM requests ORDER BY id LIMIT 1")
        return found

    # ------------------------------------------------------------ keys, sources, kept rows

    def add_key(self, key: str, digest: str, row: int, answer: dict[str, Any], most: int) -> None:
        """Store the answer to a request, and delete the oldest answers beyond `most`."""
        self.ask("INSERT INTO keys (key, digest, row, answer) VALUES (?, ?, ?, ?)", (key, digest, row, dumped(answer)))
        self.ask("DELETE FROM keys WHERE id <= (SELECT max(id) FROM keys) - ?", (most,))

    def answer_to(self, key: str) -> tuple[str, dict[str, Any]] | None:
        """The digest and the answer of a key; None if it is unknown."""
        found = self.ask("SELECT digest, answer FROM keys WHERE key = ?", (key,)).fetchone()
        return None if found is None else (found[0], json.loads(found[1]))

    def place_in(self, source: str) -> int | None:
        """The number of rows learnt from a stream; None if it is unknown."""
        query = "SELECT start + rows FROM sources WHERE source = ? ORDER BY start DESC LIMIT 1"
        found: int | None = self.one(query, source)
        return found

    def places(self) -> dict[str, int]:
        """The number of rows learnt from each stream."""
        return dict(self.ask("SELECT source, max(start + rows) FROM sources GROUP BY source ORDER BY source"))

    def add_place(self, source: str, start: int, rows: int, first: int) -> None:
        """Record rows of a stream; `first` is the number of the first one."""
        self.ask("INSERT INTO sources VALUES (?, ?, ?, ?)", (source, start, rows, first))

    def keep(self, contents: Sequence[str], time: float, row: int) -> list[int]:
        """Store rows until their outcome is known; returns their ids."""
        query = "INSERT INTO kept (time, row, content) VALUES (?, ?, ?)"
        return [int(self.ask(query, (time, row, content)).lastrowid or 0) for content in contents]

    def kept(self, number: int) -> str | None:
        """A row that waits for its outcome, or None."""
        found: str | None = self.one("SELECT content FROM kept WHERE id = ? AND outcome IS NULL", number)
        return found

    def learnt(self, number: int, row: int) -> None:
        """Record that the outcome of a kept row has arrived."""
        self.ask("UPDATE kept SET outcome = ? WHERE id = ?", (row, number))

    def was_kept(self, number: int) -> bool:
        """Whether an id was ever given to a kept row."""
        most = self.one("SELECT seq FROM sqlite_sequence WHERE name = 'kept'") or 0
        return 0 < number <= most

    def waiting(self) -> int:
        """The number of rows that wait for their outcome."""
        return int(self.one("SELECT count(*) FROM kept WHERE outcome IS NULL"))

    def expire(self, before: float) -> int:
        """Delete rows kept before some time without an outcome; returns their number."""
        return self.ask("DELETE FROM kept WHERE outcome IS NULL AND time < ?", (before,)).rowcount

    # ------------------------------------------------------------ snapshots

    def add_snapshot(self, commit: int, sequence: int, state: dict[str, Any], keep_log: bool) -> None:
        """Add a snapshot and keep the newest two; without `keep_log`, delete the requests that the older one covers."""
        data = checkpoint.to_bytes(self.file, state)
        with self.transaction():
            body = self._put(f"snapshot-{commit}", data)
            values = (commit, sequence, zlib.crc32(data), body)
            self.ask("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", values)
            self.ask(
                "DELETE FROM snapshots WHERE commit_id NOT IN "
                "(SELECT commit_id FROM snapshots ORDER BY commit_id DESC LIMIT 2)"
            )
            if not keep_log:
                self._drop()
        self.remove_bodies()

    def _drop(self) -> None:
        """Delete the requests that the older of two snapshots covers."""
        (commit, row), *newer = self.snapshots()
        if not newer:
            return
        self.ask("DELETE FROM requests WHERE commit_id <= ?", (commit,))
        self.ask("DELETE FROM kept WHERE outcome <= ?", (row,))
        self.ask(
            "DELETE FROM sources AS old WHERE first <= ? AND EXISTS "
            "(SELECT 1 FROM sources WHERE source = old.source AND start > old.start AND first <= ?)",
            (row, row),
        )

    def snapshots(self) -> list[tuple[int, int]]:
        """The commit and the number of the last row of each snapshot, oldest first."""
        return list(self.ask("SELECT commit_id, sequence FROM snapshots ORDER BY commit_id"))

    def snapshot(self, commit: int) -> dict[str, Any]:
        """The state of a snapshot; a ModelError or a StoreError if it is damaged."""
        try:
            crc, body = self.ask("SELECT crc, state FROM snapshots WHERE commit_id = ?", (commit,)).fetchone()
        except sqlite3.Error as error:
            raise self.damaged(error) from None
        where = f"the snapshot of commit {commit:,}"
        return checkpoint.from_bytes(f"{self.file}, {where}", self._get(f"snapshot-{commit}", body, crc, where))

    # ------------------------------------------------------------ large bodies

    def _put(self, name: str, body: bytes) -> bytes | None:
        """The database value for a body; a large body is written to a file first."""
        if len(body) < LARGE:
            return body
        if not os.path.isdir(self.bodies):
            make_folder(self.bodies)
        file = os.open(os.path.join(self.bodies, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            rest = memoryview(body)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        finally:
            os.close(file)
        sync_folder(self.bodies)
        return None

    def _get(self, name: str, body: bytes | None, crc: int, where: str) -> bytes:
        """Return a body, with its checksum verified."""
        file = self.file
        if body is None:
            file = os.path.join(self.bodies, name)
            try:
                with open(file, "rb") as stream:
                    body = stream.read()
            except OSError as error:
                raise StoreError(f"{file}: {where} cannot be read ({error.strerror}): {ADVICE}") from None
        if zlib.crc32(body) != crc:
            raise StoreError(f"{file}: {where} is damaged, its CRC-32 differs: {ADVICE}")
        return body

    def unused_bodies(self) -> list[str]:
        """The body files that no request and no snapshot refers to."""
        names = os.listdir(self.bodies) if os.path.isdir(self.bodies) else []
        out = []
        for name in sorted(names):
            kind, _, number = name.rpartition("-")
            if kind not in ("", "snapshot") or not number.isdigit():
                continue
            where = "snapshots WHERE state IS NULL AND commit_id" if kind else "requests WHERE body IS NULL AND id"
            if self.one(f"SELECT 1 FROM {where} = ?", int(number)) is None:
                out.append(name)
        return out

    def remove_bodies(self) -> None:
        """Remove body files that are no longer referenced."""
        for name in self.unused_bodies():
            os.unlink(os.path.join(self.bodies, name))


ADVICE = "restore a backup, or go back to what can be read with hindsight rewind DIR"


def read_settings(folder: str) -> dict[str, Any] | None:
    """Read the settings of a folder's service; None if it was never started."""
    path = os.path.join(folder, "settings.json")
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict) or found.pop("version", None) not in (1, VERSION):
        raise ModelError(f"{path}: these are not the settings of a service of this version")
    return found


def write_settings(folder: str, settings: dict[str, Any]) -> None:
    """Write the settings of a folder's service."""
    text = json.dumps({"version": VERSION} | settings, indent=2, ensure_ascii=False)
    write_text(os.path.join(folder, "settings.json"), [text + "\n"])


def lock(path: str) -> int:
    """Lock a folder for writing, creating it if it is missing; returns the descriptor of the locked file."""
    import fcntl  # not on Windows, where folders can only be read

    try:
        make_folder(path)
        file = os.open(os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which ends with the process
    except OSError:
        os.close(file)
        raise SourceError(f"{path}: another process serves or rewinds this folder") from None
    return file


def make_folder(path: str) -> None:
    """Create a missing folder and its parents, and sync them to disk."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    make_folder(parent)
    os.mkdir(path, 0o700)
    sync_folder(parent)


def dumped(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":"))


def packed_json(value: Any) -> np.ndarray:
    """Plain values as an array of bytes, the form of long texts in snapshots."""
    return np.frombuffer(dumped(value).encode(), np.uint8).copy()


def unpacked_json(data: Any) -> Any:
    """Decode the result of `packed_json`; a TypeError or a ValueError if it is something else."""
    return json.loads(np.asarray(data, np.uint8).tobytes())
