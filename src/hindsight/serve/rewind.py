"""Going back: the rows in a log, and a folder as it was after some row, with what came later put aside."""

from __future__ import annotations

import io
import itertools
import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import SourceError
from ..storage import checkpoint
from .folder import Folder
from .log import frame_pieces, read_log, segments
from .parts import ANY, Part, as_rows, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator


def rewind(path: str, sequence: int) -> dict[str, Any]:
    """Make a folder what it was after a row; later rows and snapshots are moved to a folder inside it.

    Parameters
    ----------
    path : str
        The folder of a service that is not running.
    sequence : int
        The number of the last row to keep; 0 keeps none.

    Returns
    -------
    dict
        ``"dropped"``, how many rows were put aside, and ``"aside"``, where they are.

    Raises
    ------
    SourceError
        If the folder is in use, or does not reach back so far.
    """
    if not os.path.isdir(os.path.join(path, "log")):
        raise SourceError(f"{path}: there is no service in this folder")
    folder = Folder(path)
    try:
        return _rewind(folder, sequence)
    finally:
        folder.close()


def _rewind(folder: Folder, sequence: int) -> dict[str, Any]:
    snapshots = folder.read_snapshots()
    kept = [(number, state) for number, state in snapshots if int(state["sequence"]) <= sequence]
    first = segments(folder.log)
    begins = int(kept[-1][1]["commit"]) if kept else 0
    if (first and first[0][0] > begins + 1) or (snapshots and not kept and not first):
        least = min([int(state["sequence"]) for _, state in snapshots], default=0)
        raise SourceError(f"{folder.path}: it reaches back to row {least:,} at the earliest: older rows are in no log")
    last = max([int(state["sequence"]) for _, state in snapshots], default=0)
    cut: tuple[str, int, bytes] | None = None
    for frame in read_log(folder.log, begins):
        head, parts = unpack(frame.payload)
        rows = sum(part.rows for part in parts if part.do != "keep")
        ends = head["first"] + rows - 1
        last = max(last, ends)
        if cut is None and ends > sequence:
            left = first_rows(parts, sequence - head["first"] + 1)
            cut = frame.path, frame.begin, b"".join(frame_pieces(frame.commit, pack(head, left))) if left else b""
    if sequence > last:
        raise SourceError(f"{folder.path}: it has {last:,} rows, so it cannot go back to row {sequence:,}")
    aside = aside_of(folder.path, sequence)
    for number, state in snapshots:
        if int(state["sequence"]) > sequence:
            name = os.path.basename(checkpoint.path_of(folder.snapshots, number))
            os.rename(checkpoint.path_of(folder.snapshots, number), os.path.join(aside, name))
    if cut is not None:
        path, begin, frame_kept = cut
        for _, other in segments(folder.log):
            if other > path:
                os.rename(other, os.path.join(aside, os.path.basename(other)))
        with open(path, "rb+") as file:
            file.seek(begin)
            rest = file.read()
            with open(os.path.join(aside, os.path.basename(path)), "wb") as copy:
                copy.write(rest)
                copy.flush()
                os.fsync(copy.fileno())
            file.seek(begin)
            file.truncate()
            file.write(frame_kept)
            file.flush()
            os.fsync(file.fileno())
    return {"dropped": last - sequence, "aside": aside}


def aside_of(path: str, sequence: int) -> str:
    """A new folder for what is put aside."""
    stem = os.path.join(path, f"rewound-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-to-{sequence}")
    for k in itertools.count(1):
        aside = stem if k == 1 else f"{stem}-{k}"
        try:
            os.mkdir(aside)
        except FileExistsError:
            continue
        return aside
    raise AssertionError


def rows_of(path: str, first: int = 1) -> Iterator[str]:
    """The rows in the log of a folder as JSON, from one on.

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
        If the log does not reach back so far.
    """
    folder = os.path.join(path, "log")
    if not os.path.isdir(folder):
        raise SourceError(f"{path}: there is no service in this folder")
    begun = False
    for frame in read_log(folder):
        head, parts = unpack(frame.payload)
        number = int(head["first"])
        if not begun and number > first:
            raise SourceError(f"{path}: its log begins at row {number:,}: older ones went when a snapshot covered them")
        begun = True
        for part in parts:
            if part.do == "keep":
                continue
            if number + part.rows > first:
                for row in as_rows(part.parse(ANY)):
                    if number >= first:
                        yield json.dumps(row, ensure_ascii=False)
                    number += 1
            else:
                number += part.rows


def first_rows(parts: list[Part], count: int) -> list[Part]:
    """The parts up to so many learnt rows."""
    out: list[Part] = []
    for part in parts:
        if part.do == "keep":
            out.append(part)
        elif part.rows <= count:
            out.append(part)
            count -= part.rows
        else:
            if count > 0:
                out.append(shortened(part, count))
            break
    return out


def shortened(part: Part, count: int) -> Part:
    """The first rows of a part."""
    parsed = part.parse(ANY)
    if part.form == "arrow":
        import pyarrow as pa

        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, parsed.schema) as stream:
            stream.write_table(parsed.slice(0, count))
        body = sink.getvalue()
    elif part.form == "lines":
        lines = [line for line in part.body.splitlines() if line.strip()]
        body = b"\n".join(lines[:count])
    else:
        body = json.dumps(as_rows(parsed)[:count]).encode()
    return replace(part, body=body, rows=count, key=None, ids=part.ids[:count], parsed=None)
