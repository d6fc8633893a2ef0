"""Checkpoints of a long run: a folder with its two newest states, each one sealed file.

    write("folder", {"runs": runs, "names": names, "offset": offset, "digest": digest})
    state = latest("folder")

A state is plain values, text, lists, dicts, arrays, runs and random generators, and comes back bit for bit.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from . import container as files
from .codec import decode
from .model import save

if TYPE_CHECKING:
    from collections.abc import Mapping


KEPT = 2
NAME = re.compile(r"(\d{10})\.checkpoint")


def generations(folder: str | os.PathLike[str]) -> list[int]:
    """The numbers of the checkpoints in a folder, the newest last; none where there is no folder."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ModelError(f"{os.fspath(folder)}: cannot be read: {error.strerror}") from None
    return sorted(int(found[1]) for name in names if (found := NAME.fullmatch(name)))


def path_of(folder: str | os.PathLike[str], number: int) -> str:
    """The file of a checkpoint."""
    return os.path.join(folder, f"{number:010d}.checkpoint")


def write(folder: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Add a checkpoint; once it is safe on disk, all but it and the one before are removed."""
    try:
        made = not os.path.isdir(folder)
        os.makedirs(folder, exist_ok=True)
        if made:
            files.sync_folder(os.path.dirname(os.path.realpath(folder)))
    except OSError as error:
        raise ModelError(f"{os.fspath(folder)}: cannot be written: {error.strerror}") from None
    old = generations(folder)
    save(path_of(folder, old[-1] + 1 if old else 1), "checkpoint", state)
    for number in old[: max(0, len(old) + 1 - KEPT)]:
        with suppress(OSError):
            os.unlink(path_of(folder, number))


def latest(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The newest whole state in the folder; None where there is no checkpoint, an error where none is whole."""
    trouble = None
    for number in reversed(generations(folder)):
        try:
            return read(path_of(folder, number))
        except ModelError as error:
            trouble = trouble or error
    if trouble is not None:
        raise trouble
    return None


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state of one checkpoint file."""
    _, document, tensors = files.read(path, ("checkpoint",))
    try:
        state = decode(document, tensors)
    except ModelError as error:
        raise ModelError(f"{os.fspath(path)}: {error}") from None
    if not isinstance(state, dict):
        raise ModelError(f"{os.fspath(path)}: its document is no state")
    return state
