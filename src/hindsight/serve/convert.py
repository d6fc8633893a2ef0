"""Conversion of folders of earlier versions, whose log consisted of frames in segments, to a database.

A segment is a file named after its first commit. Each commit is one frame: magic, length, number and CRC-32 of the
header, then the payload and its CRC-32. A payload is a line of JSON that lists the requests, followed by their bodies.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import zlib
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from ..storage import checkpoint
from ..storage.container import sync_folder
from .requests import ANY, Limits, Part
from .store import ADVICE, NAME, Store, StoreError, lock, make_folder, read_settings, unpacked_json, write_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .service import Service

HEADER, CHECK = struct.Struct("<4sIQI"), struct.Struct("<I")
SEGMENT = re.compile(r"(\d{16})\.log")


def convert(path: str, notify: Callable[[str], None] = lambda _: None, rewinding: bool = False) -> None:
    """Convert a folder of an earlier version; its old files are moved to ``converted`` inside it.

    Parameters
    ----------
    path : str
        The folder; a folder of this version is left unchanged.
    notify : callable, default does nothing
        Called with a line of text about what was done.
    rewinding : bool, default False
        Whether to use a damaged log up to the damage, rather than raise an error.

    Raises
    ------
    StoreError
        If the log is damaged before its end.
    """
    if os.path.exists(os.path.join(path, NAME)) or not os.path.isdir(os.path.join(path, "log")):
        return
    from .service import Service

    temporary, aside = os.path.join(path, "converting"), os.path.join(path, "converted")
    held = lock(os.path.abspath(path))
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        base = first_snapshot(path)
        make_folder(temporary)
        write_settings(temporary, (read_settings(path) or {}) | {"model": base is not None and began(base)})
        service = Service(temporary, limits=replace(ANY, keys=Limits.keys))
        try:
            left_out = learn_all(path, service, base, rewinding)
            service.snapshot()
        finally:
            service.close()
        os.makedirs(aside, 0o700, exist_ok=True)
        shutil.rmtree(os.path.join(path, "bodies"), ignore_errors=True)
        for name in ("bodies", "settings.json", NAME):  # with the last it is done
            if os.path.exists(os.path.join(temporary, name)):
                os.replace(os.path.join(temporary, name), os.path.join(path, name))
        for name in ("log", "snapshots"):
            if os.path.exists(os.path.join(path, name)):
                os.rename(os.path.join(path, name), os.path.join(aside, name))
        shutil.rmtree(temporary)
        sync_folder(path)
    finally:
        os.close(held)
    count = f"{service.sequence:,} rows" + (f", without {left_out:,} that cannot be learnt" if left_out else "")
    notify(f"{path}: its log was converted to {NAME} ({count}); the files before are in {aside}")


def first_snapshot(path: str) -> dict[str, Any] | None:
    """The snapshot after which an old folder has all rows; None if it has them from the first on."""
    first, kept = next(iter(segments(path)), (None, ""))[0], snapshots(path)
    if first == 1 and not any(map(began, kept)):
        return None
    if first is not None:
        kept = [state for state in kept if first <= int(state["commit"]) + 1]
        if not kept:
            raise StoreError(f"{path}/log: the commits before {first:,} are in no snapshot that can be read: {ADVICE}")
        return kept[0]
    return kept[-1] if kept else None


def learn_all(path: str, service: Service, base: dict[str, Any] | None, rewinding: bool) -> int:
    """Learn the rows of an old folder; returns how many could not be learnt."""
    if base is not None:
        service.live.restore(base["model"])
        service.sequence = int(base["sequence"])
        take_tables(service.store, base)
    left_out = 0
    try:
        for head, parts, ids in commits(segments(path), 0 if base is None else int(base["commit"])):
            left_out += learn_commit(service, head["time"], parts, ids)
    except StoreError:
        if not rewinding:
            raise
    return left_out


def learn_commit(service: Service, time: float, parts: list[Part], ids: list[list[int]]) -> int:
    """Learn a commit and store its other contents; returns how many rows could not be learnt."""
    service.clock, store, left_out = (lambda: time), service.store, 0
    learnt = [k for k, part in enumerate(parts) if part.do == "learn"]
    answers = service.commit([replace(parts[k], key=None, source=None) for k in learnt]) if learnt else []
    with store.transaction():
        for k, answer in zip(learnt, answers, strict=True):
            part = parts[k]
            if isinstance(answer, Exception):
                left_out += part.rows
                continue
            if part.key is not None:
                store.add_key(part.key, part.digest, service.sequence, answer, service.limits.keys)
            if part.source is not None:
                store.add_place(part.source, part.start, part.rows, answer["sequence"])
            for row, number in enumerate(ids[k], answer["sequence"]):
                store.learnt(number, row)
        for part, numbers in zip(parts, ids, strict=True):
            if part.do == "keep":
                with suppress(ValueError):  # one that could never be learnt is left out
                    for number, content in zip(numbers, part.contents(), strict=True):
                        values = (number, time, service.sequence, content)
                        store.ask("INSERT INTO kept VALUES (?, ?, ?, NULL, ?)", values)
                    if part.key is not None:
                        answer = {"ids": numbers}
                        store.add_key(part.key, part.digest, service.sequence, answer, service.limits.keys)
    return left_out


def began(state: dict[str, Any]) -> bool:
    """Whether a snapshot comes from a service that started with a model."""
    return bool(state["model"] and state["model"].get("before"))


def snapshots(path: str) -> list[dict[str, Any]]:
    """The readable snapshots, oldest first."""
    folder, out = os.path.join(path, "snapshots"), []
    for number in checkpoint.generations(folder):
        try:
            out.append(checkpoint.read(checkpoint.path_of(folder, number)))
        except ModelError:
            continue
    return out


def take_tables(store: Store, state: dict[str, Any]) -> None:
    """Store the keys, stream positions and kept rows of a snapshot."""
    keys, pending, sources = (unpacked_json(state[n]) for n in ("keys", "pending", "sources"))
    row = int(state["sequence"])
    with store.transaction():
        for key, digest, answer in keys:
            store.add_key(key, digest, row, answer, ANY.keys)
        for source, place in sources.items():
            store.add_place(source, 0, place, row)
        for number, time, content in pending:
            store.ask("INSERT INTO kept VALUES (?, ?, ?, NULL, ?)", (number, time, row, content))
        store.ask("DELETE FROM sqlite_sequence")
        store.ask("INSERT INTO sqlite_sequence VALUES ('kept', ?)", (int(state["next_id"]),))


def commits(found: list[tuple[int, str]], after: int) -> Iterator[tuple[dict[str, Any], list[Part], list[list[int]]]]:
    """Yield the header and requests of each commit after `after`, with the numbers of kept rows."""
    expected = None
    for k, (first, path) in enumerate(found):
        if k + 1 < len(found) and found[k + 1][0] <= after + 1:
            continue
        if expected is not None and first != expected:
            raise StoreError(f"{path}: commits {expected} to {first - 1} are missing: restore a backup")
        expected = first
        for number, payload in frames(path, k + 1 == len(found)):
            if number != expected:
                raise StoreError(f"{path}: commit {expected} is missing: the next one is {number}: restore a backup")
            expected += 1
            if number > after:
                yield unpack_commit(payload)


def segments(path: str) -> list[tuple[int, str]]:
    """The first commit and the path of each segment of an old folder, in order."""
    folder = os.path.join(path, "log")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted((int(m[1]), os.path.join(folder, name)) for name in names if (m := SEGMENT.fullmatch(name)))


def frames(path: str, last: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the number and payload of each commit of a segment; an incomplete one at the very end is skipped."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        head = data[at : at + HEADER.size]
        good = len(head) == HEADER.size and head[:4] == b"HSL1" and CHECK.unpack(head[-4:])[0] == zlib.crc32(head[:-4])
        end = at + HEADER.size + (HEADER.unpack(head)[1] if good else 0)
        payload = data[at + HEADER.size : end]
        if not good or CHECK.unpack(data[end : end + 4].ljust(4, b"\0"))[0] != zlib.crc32(payload):
            if last and (end + 4 >= len(data) if good else b"HSL1" not in data[at + 1 :]):
                return
            raise StoreError(f"{path}, byte {at}: the log is damaged: {ADVICE}")
        yield HEADER.unpack(head)[2], payload
        at = end + 4


def unpack_commit(payload: bytes) -> tuple[dict[str, Any], list[Part], list[list[int]]]:
    """The header and requests of a commit, with the numbers of the kept rows that it keeps or learns."""
    line, _, rest = payload.partition(b"\n")
    head, parts, ids, at = json.loads(line), [], [], 0
    for each in head.pop("parts"):
        more = {name: each[name] for name in ("key", "digest", "quiet", "source", "start") if name in each}
        parts.append(Part(each["do"], each["form"], rest[at : at + each["bytes"]], each["rows"], **more))
        ids.append(each.get("ids", []))
        at += each["bytes"]
    return head, parts, ids
