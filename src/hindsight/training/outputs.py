"""What a run writes: predictions, rejected rows and checkpoints as it goes, and where its results go at the end.

A resumed run continues each file where its checkpoint left it.
"""

from __future__ import annotations

import csv
import io
import os
import stat
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np

    from .session import PlayedChunk
    from .state import TrainingState

REJECTS = ("file", "line", "column", "reason", "raw")


@dataclass(frozen=True)
class Destinations:
    """The files that a run writes; None where one is not wanted.

    Parameters
    ----------
    save : str or None, default None
        The model.
    report : str or None, default None
        A page in HTML with the certificates.
    predictions : str or None, default None
        The prediction of each row before it was learnt, as CSV.
    rejects : str or None, default None
        Bad rows and what is wrong with them, as CSV.
    checkpoint : str or None, default None
        The folder of the checkpoints.
    every : int, default 1_000_000
        Rows between two checkpoints.
    resume : bool, default False
        Whether to resume from the newest checkpoint.
    """

    save: str | None = None
    report: str | None = None
    predictions: str | None = None
    rejects: str | None = None
    checkpoint: str | None = None
    every: int = 1_000_000
    resume: bool = False

    def check(self) -> None:
        """Raise a ValueError of one line if a file cannot be written where it is to be."""
        for path in (self.save, self.report, self.predictions, self.rejects):
            if path is not None:
                check_destination(path, replaced=path == self.save)

    def newest_checkpoint(self) -> dict[str, Any] | None:
        """The checkpoint to resume from, if any; a ValueError where there is none, or one that would be overwritten."""
        if self.checkpoint is None:
            return None
        from ..storage import checkpoint

        found = checkpoint.latest(self.checkpoint) if self.resume else None
        if self.resume and found is None:
            raise ValueError(f"{self.checkpoint}: there is no checkpoint to resume from")
        if not self.resume and checkpoint.generations(self.checkpoint):
            raise ValueError(f"{self.checkpoint}: holds checkpoints already: resume from them, or take another folder")
        return found


def check_destination(path: str, replaced: bool = False) -> None:
    """Raise a ValueError of one line if a file cannot be written at `path`; nothing is left there.

    Parameters
    ----------
    path : str
        Where the file is to be.
    replaced : bool, default False
        Whether a file that is there will be replaced by a new one, rather than opened and overwritten.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    try:
        mode = os.stat(target).st_mode if os.path.exists(target) else 0
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(0, "Is a directory")
        if mode and not replaced:
            if not stat.S_ISREG(mode):
                return  # opening a pipe or a device may have effects
            with open(target, "ab"):
                return
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror}") from None


class ResumableFile:
    """A CSV file that grows, and that can be cut back to a length that it once had.

    Parameters
    ----------
    path : str
        Where it is.
    header : iterable of str
        The names of its columns.
    length : int or None
        The bytes to keep of the file that is there; None or 0 starts a new one.
    """

    def __init__(self, path: str, header: Iterable[str], length: int | None) -> None:
        self.path = path
        try:
            self.file = open(path, "r+b" if length else "wb")  # noqa: SIM115  # closed by `close`
            if length:
                if os.fstat(self.file.fileno()).st_size < length:
                    raise ValueError(f"{path}: shorter than when the checkpoint was written: it cannot be continued")
                self.file.truncate(length)
                self.file.seek(length)
            else:
                self.add([header])
        except OSError as error:
            raise ValueError(f"{path}: cannot be written: {error.strerror}") from None

    def add(self, records: Iterable[Iterable[Any]]) -> None:
        """Append records."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(records)
        try:
            self.file.write(out.getvalue().encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise ValueError(f"{self.path}: cannot be written: {error.strerror}") from None

    def flush(self) -> int:
        """The length of the file, once all of it is on disk."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise ValueError(f"{self.path}: cannot be written: {error.strerror}") from None
        return self.file.tell()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class Outputs:
    """The files that a run writes as it goes.

    Parameters
    ----------
    destinations : Destinations
        Where they are.
    state : TrainingState
        The state that is being learnt.
    titles : list of str
        Each learner in one line.
    lengths : mapping of str to int
        The length of each file when the checkpoint was written; empty for a new run.
    """

    def __init__(
        self, destinations: Destinations, state: TrainingState, titles: list[str], lengths: Mapping[str, int]
    ) -> None:
        self.state, self.folder = state, destinations.checkpoint
        columns = ["prediction"] if len(titles) == 1 else titles
        files = (("predictions", destinations.predictions, columns), ("rejects", destinations.rejects, REJECTS))
        self.files = {name: ResumableFile(path, head, lengths.get(name)) for name, path, head in files if path}

    def add(self, chunk: PlayedChunk) -> None:
        """Write what some rows gave."""
        if "rejects" in self.files and chunk.rejects:
            self.files["rejects"].add(chunk.rejects)
        if "predictions" in self.files and len(chunk.y):
            self.files["predictions"].add(zip(*predicted(self.state, chunk.margins), strict=True))

    def write_checkpoint(self, state: TrainingState) -> None:
        """Write a checkpoint, where there is a folder for it."""
        if self.folder is not None:
            from ..storage import checkpoint

            checkpoint.write(self.folder, {"lengths": self.flush(), "state": state.to_checkpoint()})

    def flush(self) -> dict[str, int]:
        """The length of each file, once all of it is on disk."""
        return {name: file.flush() for name, file in self.files.items()}

    def close(self) -> None:
        """Close the files."""
        for file in self.files.values():
            file.close()


def predicted(state: TrainingState, z: np.ndarray) -> list[list[str]]:
    """For each learner what its margins predict: numbers through the link, or labels."""
    from ..storage.model import means

    each, out = len(state.runs[0]), []
    for k, runs in enumerate(state.runs):
        mine = z[:, k * each : (k + 1) * each]
        if state.labels is None:
            out.append([repr(v) for v in means(runs[0].learner.loss, mine[:, 0]).tolist()])
        else:
            codes = (mine[:, 0] > 0).astype(int) if each == 1 else mine.argmax(axis=1)
            out.append([state.labels[c] for c in codes.tolist()])
    return out
