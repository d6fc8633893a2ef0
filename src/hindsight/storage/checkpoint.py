"""Checkpoints of a long run: a folder with its two newest states, each one sealed file.

    write("folder", {"runs": runs, "names": names, "offset": offset, "digest": digest})
    state = latest("folder")

A state holds plain values, text, lists, dicts, arrays, random generators and objects of registered classes such as
runs. It is restored bit for bit.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from . import container
from .codec import decode, encode
from .model import save
from .registry import want

if TYPE_CHECKING:
    from collections.abc import Mapping


KEPT = 2
NAME = re.compile(r"(\d{10})\.checkpoint")


def generations(folder: str | os.PathLike[str]) -> list[int]:
    """Return the numbers of the checkpoints in a folder, the newest last; an empty list if there is no folder."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ModelError(f"{os.fspath(folder)}: cannot be read: {error.strerror}") from None
    return sorted(int(found[1]) for name in names if (found := NAME.fullmatch(name)))


def path_of(folder: str | os.PathLike[str], number: int) -> str:
    """Return the path of a checkpoint."""
    return os.path.join(folder, f"{number:010d}.checkpoint")


def write(folder: str | os.PathLike[str], state: Mapping[str, Any], kept: int = KEPT) -> None:
    """Add a checkpoint, sync it to disk, and then remove all but the newest ones.

    Parameters
    ----------
    folder : str or path-like
        The folder of the checkpoints; it is created if it does not exist.
    state : mapping of str to object
        Plain values, text, lists, dicts, arrays, random generators and objects of registered classes.
    kept : int, default 2
        The number of checkpoints to keep, including this one.

    Raises
    ------
    ModelError
        If a part of the state cannot be saved, or the folder cannot be written. The previous checkpoint is kept.
    """
    try:
        made = not os.path.isdir(folder)
        os.makedirs(folder, exist_ok=True)
        if made:
            container.sync_folder(os.path.dirname(os.path.realpath(folder)))
    except OSError as error:
        raise ModelError(f"{os.fspath(folder)}: cannot be written: {error.strerror}") from None
    old = generations(folder)
    save(path_of(folder, old[-1] + 1 if old else 1), "checkpoint", dict(state))
    for number in old[: max(0, len(old) + 1 - kept)]:
        with suppress(OSError):
            os.unlink(path_of(folder, number))


def latest(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the newest complete state in a folder.

    Parameters
    ----------
    folder : str or path-like
        The folder given to `write`.

    Returns
    -------
    dict or None
        The state, or None if there is no checkpoint.

    Raises
    ------
    ModelError
        If there are checkpoints and none of them can be read; the message is about the newest.
    """
    newest_error = None
    for number in reversed(generations(folder)):
        try:
            return read(path_of(folder, number))
        except ModelError as error:
            newest_error = newest_error or error
    if newest_error is not None:
        raise newest_error
    return None


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the state of one checkpoint file; a ModelError if it cannot be read."""
    return _state(os.fspath(path), *container.read(path, ("checkpoint",))[1:])


def to_bytes(name: str, state: Mapping[str, Any]) -> bytes:
    """The bytes of a checkpoint file with this state; a ModelError if a part of it cannot be saved."""
    try:
        return b"".join(container.pieces_of(name, "checkpoint", *encode(dict(state))))
    except TypeError as error:
        raise ModelError(f"{name}: cannot be saved: {error}") from None


def from_bytes(name: str, data: bytes) -> dict[str, Any]:
    """The state in the bytes of a checkpoint file; a ModelError if they are damaged."""
    return _state(name, *container.read_stream(name, io.BytesIO(data), len(data), ("checkpoint",))[1:])


def _state(name: str, document: str, tensors: dict[str, Any]) -> dict[str, Any]:
    try:
        state = decode(document, tensors)
        want(isinstance(state, dict), "the state must be a mapping")
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None
    return dict(state)
