"""The folder of a service: its lock, its settings and its snapshots."""

from __future__ import annotations

import json
import os
from typing import Any

from ..errors import ModelError, SourceError
from ..storage import checkpoint
from ..storage.container import sync_folder, write_text

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

VERSION = 1


class Folder:
    """A folder that one process at a time may write.

    Parameters
    ----------
    path : str
        The folder; it is made where there is none.

    Raises
    ------
    SourceError
        If another process has it, or it cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.log, self.snapshots = os.path.join(self.path, "log"), os.path.join(self.path, "snapshots")
        try:
            for each in (self.path, self.log, self.snapshots):
                make_folder(each)
            self.lock = os.open(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise SourceError(f"{path}: cannot be written: {error.strerror}") from None
        if fcntl is not None:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which ends with the process
            except OSError:
                os.close(self.lock)
                raise SourceError(f"{path}: another process serves or rewinds this folder") from None

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self.lock)

    def settings(self) -> dict[str, Any] | None:
        """What the service was started with; None where it never was."""
        return read_settings(self.path)

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Keep what the service was started with."""
        text = json.dumps({"version": VERSION} | settings, indent=2, ensure_ascii=False)
        write_text(os.path.join(self.path, "settings.json"), [text + "\n"])

    def write_snapshot(self, state: dict[str, Any], kept: int) -> None:
        """Add a snapshot, atomically."""
        checkpoint.write(self.snapshots, {"version": VERSION} | state, kept)

    def read_snapshots(self) -> list[tuple[int, dict[str, Any]]]:
        """The snapshots that can be read, by number, the oldest first; a ModelError if there are some and none can."""
        return read_snapshots(self.snapshots)


def make_folder(path: str) -> None:
    """Make a folder where there is none, and those it is in; their names are durable."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    make_folder(parent)
    os.mkdir(path, 0o700)
    sync_folder(parent)


def read_settings(folder: str) -> dict[str, Any] | None:
    """What the service of a folder was started with; None where it never was."""
    path = os.path.join(folder, "settings.json")
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict) or found.pop("version", None) != VERSION:
        raise ModelError(f"{path}: these are not the settings of a service of this version")
    return found


def read_snapshots(folder: str) -> list[tuple[int, dict[str, Any]]]:
    """The snapshots in a folder that can be read, by number; a ModelError if there are some and none can."""
    found: list[tuple[int, dict[str, Any]]] = []
    fault: ModelError | None = None
    for number in checkpoint.generations(folder):
        try:
            state = checkpoint.read(checkpoint.path_of(folder, number))
            if state.pop("version", None) != VERSION:
                raise ModelError(f"{folder}: snapshot {number} is of another version of the service")
            found.append((number, state))
        except ModelError as error:
            fault = error
    if not found and fault is not None:
        raise fault
    return found
