"""Rewinding a folder to its content after some row, setting the rest aside; and listing the rows of a folder."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import time
import zlib
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import ModelError, SourceError
from ..storage.container import sync_folder
from .client import arrow_stream
from .convert import convert
from .replay import Replay
from .requests import Part
from .store import NAME, NEWEST, SCHEMA, VERSION, Store, StoreError, read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

NEW = "rewound.db"
REST = {  # what is copied of the tables other than requests and snapshots
    "keys (key, digest, row, answer)": "SELECT key, digest, row, answer FROM keys WHERE row <= :row ORDER BY id",
    "sources": "SELECT source, start, min(rows, :row - first + 1), first FROM sources WHERE first <= :row",
    "kept": "SELECT id, time, row, CASE WHEN outcome <= :row THEN outcome END, content FROM kept WHERE row <= :row",
}


def rewind(path: str, sequence: int | None = None) -> dict[str, Any]:
    """Rewind a folder to its content after a row; the current database is moved to a folder inside it.

    All that is readable is copied row by row to a new database, so that nothing before a damaged place is lost.

    Parameters
    ----------
    path : str
        The folder of a service that is not running.
    sequence : int or None, default None
        The number of the last row to keep; 0 keeps none, None keeps all that can be read and learnt.

    Returns
    -------
    dict
        ``"row"``, the last remaining row; ``"dropped"``, the number of rows set aside, as far as known; and
        ``"aside"``, the folder with them.

    Raises
    ------
    SourceError
        If the folder is in use, or cannot be rewound to that row.
    """
    if not os.path.isfile(os.path.join(path, "settings.json")):
        raise SourceError(f"{path}: there is no service in this folder")
    convert(path, rewinding=True)
    remove(os.path.join(path, NEW))
    new = Store(path, write=True, name=NEW)
    try:
        old = open_damaged(new.path)
        try:
            found = copy_all(old, new, sequence)
            moved = new.unused_bodies()
        finally:
            old.close()
            if old.file != os.path.join(new.path, NAME):
                remove(old.file)
        new.ask("PRAGMA journal_mode = DELETE")  # so that the file is all of it
        new.db.close()
        return found | {"aside": exchange(new, moved, found["row"])}
    finally:
        remove(new.file)
        new.close()


def exchange(new: Store, moved: list[str], row: int) -> str:
    """Replace the old database by a new one; the old one is moved to a folder."""
    stem = f"rewound-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-to-{row}-"
    aside, file = tempfile.mkdtemp("", stem, new.path), os.path.join(new.path, NAME)
    os.link(file, os.path.join(aside, NAME))
    for name in (f"{NAME}-wal", f"{NAME}-shm"):  # they are the old database's, and must not be taken for the new one's
        with suppress(FileNotFoundError):
            os.rename(os.path.join(new.path, name), os.path.join(aside, name))
    os.replace(new.file, file)
    for name in moved:
        os.rename(os.path.join(new.bodies, name), os.path.join(aside, name))
    sync_folder(new.path)
    os.pwrite(new.lock, bytes(NEWEST.size), 0)
    return aside


def open_damaged(path: str) -> Store:
    """Open the store of a folder for reading, even if it is damaged.

    The first page of a database lists its tables. If it differs from that of a new database, a copy with the first page
    of a new database is opened instead.
    """
    file = os.path.join(path, NAME)
    copy, fresh = f"{file}.copy", f"{file}.fresh"
    for each in (copy, fresh):
        remove(each)
    db = sqlite3.connect(fresh, isolation_level=None)
    db.executescript(f"PRAGMA journal_mode = WAL;{SCHEMA}PRAGMA user_version = {VERSION}")
    size = int(db.execute("PRAGMA page_size").fetchone()[0])
    db.close()
    with open(fresh, "rb") as template, open(file, "rb") as there:
        page, found = bytearray(template.read(size)), there.read(size)
    remove(fresh)
    if found[:24] == page[:24] and found[100:] == page[100:]:
        return Store(path)
    for end in ("", "-wal"):
        with suppress(FileNotFoundError):
            shutil.copyfile(file + end, copy + end)
    page[28:32] = (os.path.getsize(copy) // size).to_bytes(4, "big")
    with open(copy, "rb+") as damaged:
        damaged.write(page)
    return Store(path, name=f"{NAME}.copy")


def copy_all(old: Store, new: Store, sequence: int | None) -> dict[str, Any]:
    """Copy everything up to a row, or as far as possible; returns the last row copied and the number of later rows."""
    with new.transaction():
        last, base = copy_snapshots(old, new, sequence)
        last = max(last, copy_requests(old, new, sequence))
        row, why = reach(new, base)
        if row is None or (sequence is not None and row < sequence):
            least = next(readable(old, "SELECT min(sequence) FROM snapshots"), (None,))[0] or 0
            if row is None or (sequence or 0) < least:
                raise SourceError(f"{old.path}: it reaches back to row {least:,} at the earliest: older rows are gone")
            raise SourceError(f"{old.path}: {why or f'it has {last:,} rows'}, so it cannot go back to row {sequence:,}")
        new.ask("DELETE FROM requests WHERE first > ?", (row,))
        copy_rest(old, new, row)
    return {"row": row, "dropped": max(0, last - row)}


def copy_snapshots(old: Store, new: Store, sequence: int | None) -> tuple[int, int | None]:
    """Copy the readable snapshots up to a row; returns the last row of any, and the commit of the newest."""
    last, base = 0, None
    for commit, row in list(readable(old, "SELECT commit_id, sequence FROM snapshots ORDER BY commit_id")):
        last = max(last, row)
        with suppress(SourceError, ModelError):
            old.snapshot(commit)
            if sequence is None or row <= sequence:
                for values in readable(old, "SELECT * FROM snapshots WHERE commit_id = ?", (commit,)):
                    new.ask("INSERT INTO snapshots VALUES (?, ?, ?, ?)", values)
                base = commit
    return last, base


def copy_requests(old: Store, new: Store, sequence: int | None) -> int:
    """Copy the readable requests up to a row; returns the last row of any."""
    low, high = (next(readable(old, f"SELECT {each}(id) FROM requests"), (None,))[0] for each in ("min", "max"))
    last, number = 0, low or 1
    while high is None or number <= high:
        found = next(readable(old, "SELECT * FROM requests WHERE id = ?", (number,)), None)
        if found is None and high is None:
            break
        if found is not None:
            _, commit, at, first, rows, form, crc, body = found
            last = max(last, first + rows - 1)
            with suppress(SourceError):
                part = Part("learn", form, old._get(str(number), body, crc, ""), rows)
                if sequence is not None and last > sequence >= first:
                    part = shortened(part, sequence - first + 1)
                    found = (number, commit, at, first, part.rows, part.form, zlib.crc32(part.body), part.body)
                if sequence is None or first <= sequence:
                    new.ask("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?)", found)
        number += 1
    return last


def reach(store: Store, base: int | None) -> tuple[int | None, str | None]:
    """The last row that a start from a snapshot or the first row would reach, and the error that stops it there."""
    if base is None and ((read_settings(store.path) or {}).get("model") or store.first_commit() not in (1, None)):
        return None, None
    again = Replay.begin(store, base)
    try:
        for _ in again.commits():
            pass
    except StoreError as error:
        return again.row, f"the rows after {again.row:,} cannot be learnt ({error})"
    return again.row, None


def copy_rest(old: Store, new: Store, row: int) -> None:
    """Copy keys, stream positions and kept rows as of a row, as far as they are readable."""
    for table, query in REST.items():
        for values in readable(old, query, {"row": row}):
            new.ask(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(values))})", values)
    for values in readable(old, "SELECT name, seq FROM sqlite_sequence"):  # ids are never reused
        new.ask("DELETE FROM sqlite_sequence")
        new.ask("INSERT INTO sqlite_sequence VALUES (?, ?)", values)


def readable(store: Store, query: str, values: Any = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the results of a query up to the first unreadable one."""
    with suppress(sqlite3.Error):
        yield from store.ask(query, values)


def remove(file: str) -> None:
    """Remove a database if it exists."""
    for end in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(file + end)


def rows_of(path: str, first: int = 1) -> Iterator[str]:
    """Yield the rows in a folder as JSON.

    Parameters
    ----------
    path : str
        The folder; the service may be running.
    first : int, default 1
        The number of the first row.

    Yields
    ------
    str
        A row, with its target.

    Raises
    ------
    SourceError
        If the folder does not have the first row.
    """
    with closing(Store(path)) as store:
        for n, (_, _, number, part) in enumerate(store.requests()):
            if n == 0 and number > first:
                raise SourceError(f"{path}: its rows begin at {number:,}: older ones went when a snapshot covered them")
            if number + part.rows > first:
                for row in part.mappings()[max(0, first - number) :]:
                    yield json.dumps(row, ensure_ascii=False)


def shortened(part: Part, count: int) -> Part:
    """The first rows of a part."""
    if part.form == "arrow":
        body = arrow_stream(part.parse().slice(0, count))
        return replace(part, body=body, rows=count, parsed=None)
    body = json.dumps(part.mappings()[:count]).encode()
    return replace(part, form="json", body=body, rows=count, parsed=None)
