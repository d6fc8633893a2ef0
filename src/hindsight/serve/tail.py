"""Feeding a file or a pipe to a service."""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from ..errors import SourceError
from ..rows.labels import parse_float
from ..sources.opening import ENDINGS
from .client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMS = ("csv", "tsv", "jsonl")
IDLE = 0.5  # seconds between reads of a followed file


def tail(
    path: str,
    client: Client,
    *,
    form: str | None = None,
    batch: int = 1000,
    follow: bool = False,
    name: str | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> int:
    """Send the rows of a file to a service, starting at the first row that it does not have.

    Parameters
    ----------
    path : str
        A file of CSV, TSV or JSON lines; "-" is standard input, which is always sent from its first row.
    client : Client
        The client of the service.
    form : {"csv", "tsv", "jsonl"} or None, default None
        The format; None infers it from the name.
    batch : int, default 1000
        Rows in a request.
    follow : bool, default False
        Whether to wait for rows appended to the file.
    name : str or None, default None
        The name of the stream in the service; None uses the absolute path.
    notify : callable, default does nothing
        Called with a line of text about the progress.

    Returns
    -------
    int
        How many rows were sent.
    """
    form = form or ENDINGS.get(os.path.splitext(path)[1].lower())
    if form not in FORMS:
        raise SourceError(f"{path}: the name does not show the format: --format csv, tsv or jsonl")
    source = None if path == "-" and name is None else name or os.path.abspath(path)
    done = 0 if source is None else int(client.model()["sources"].get(source, 0))
    if done:
        notify(f"{done:,} rows of {source} are there already")
    at = done
    for rows in batches(rows_in_file(path, form, follow), batch, done):
        client.learn(b"\n".join(rows), source=source, start=at, predictions=False)
        at += len(rows)
    return at - done


def rows_in_file(path: str, form: str, follow: bool) -> Iterator[bytes | None]:
    """Yield the rows of a file as JSON, and None when no more are available for now."""
    lines = lines_of_file(path, follow)
    if form == "jsonl":
        yield from (line and line.strip() for line in lines if line is None or line.strip())
        return
    texts = ("" if line is None else line.decode("utf-8-sig") for line in lines)
    reader = csv.reader(texts, delimiter="\t" if form == "tsv" else ",")
    names: list[str] = []
    for cells in reader:
        if not cells:
            yield None
        elif not names:
            names = cells
        elif len(cells) != len(names):
            raise SourceError(f"{path}, line {reader.line_num}: {len(cells)} fields, {len(names)} expected")
        else:
            yield json.dumps({name: value_of(cell) for name, cell in zip(names, cells, strict=True)}).encode()


def value_of(cell: str) -> Any:
    """The value of a CSV cell: a number if it parses as one, null if it is empty, otherwise text."""
    text = cell.strip()
    if not text:
        return None
    try:
        value = parse_float(text)
    except ValueError:
        return text
    return value if value - value == 0.0 else text


def lines_of_file(path: str, follow: bool) -> Iterator[bytes | None]:
    """Yield complete lines of a file; with `follow`, never ends and yields None when no more are available."""
    file = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    try:
        rest = b""
        while True:
            line = file.readline()
            if line.endswith(b"\n"):
                yield rest + line
                rest = b""
            elif line:
                rest += line
            elif follow and path != "-":
                yield None
                time.sleep(IDLE)
            else:
                if rest:
                    yield rest
                return
    finally:
        file.close()


def batches(rows: Iterator[bytes | None], size: int, skip: int) -> Iterator[list[bytes]]:
    """Yield rows after the first `skip` in batches of `size`, or fewer if no more are available for now."""
    held: list[bytes] = []
    for row in rows:
        if row is not None and skip > 0:
            skip -= 1
        elif row is not None:
            held.append(row)
        if held and (row is None or len(held) == size):
            yield held
            held = []
    if held:
        yield held
