"""The output of a run: predictions, rejected rows and checkpoints during the run, and results at the end.

A resumed run continues each file where its checkpoint left it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ..errors import OptionError
from ..rows.labels import chosen_codes
from ..storage.container import sync
from ..storage.fields import Count, check_value
from .plan import short_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..online.run import Run
    from .options import ResultOptions
    from .session import PlayedChunk
    from .state import TrainingState

REJECTS = ("file", "line", "column", "reason", "raw")
FILES = ("save", "report", "predictions", "rejects")  # what a run writes
GROUP = 1 << 16  # rows of a row group of Parquet, at least
SET = "|"  # between the labels of a set
REPLACED = ("save", "report")  # those that are written at the end, atomically


class WrittenFile(TypedDict):
    """The number of bytes written to a file, and their SHA-256."""

    length: Count
    digest: str


class CheckpointContent(TypedDict):
    """What a checkpoint holds."""

    files: dict[str, WrittenFile]
    state: dict[str, Any]


def check_files(results: ResultOptions, data: Any) -> None:
    """Raise a one-line ValueError if a file cannot be written at its place, or would overwrite another.

    Parameters
    ----------
    results : ResultOptions
        The files to write.
    data : object
        What will be read.
    """
    if results.resume and results.checkpoint is None:
        raise OptionError("resume", "needs the folder of the checkpoints: --checkpoint DIR")
    paths = {name: getattr(results, name) for name in FILES if getattr(results, name) is not None}
    check_outputs(paths, data)
    if results.checkpoint is None:
        return
    check_folder(results.checkpoint)
    for name, path in paths.items():
        folder, base = os.path.split(os.path.realpath(path))
        if folder == os.path.realpath(results.checkpoint) and base.endswith(".checkpoint"):
            raise OptionError(name, f"{path}: that is the name of a checkpoint")
        if name not in REPLACED and is_special(path):
            raise OptionError(name, f"{path}: not a regular file: a run with checkpoints could not continue it")


def newest_checkpoint(results: ResultOptions) -> dict[str, Any] | None:
    """The checkpoint to resume from, if any; a ValueError if it is missing, or would be overwritten."""
    if results.checkpoint is None:
        return None
    from ..storage import checkpoint

    found = checkpoint.latest(results.checkpoint) if results.resume else None
    if results.resume and found is None:
        raise ValueError(f"{results.checkpoint}: there is no checkpoint to resume from")
    if not results.resume and checkpoint.generations(results.checkpoint):
        raise ValueError(f"{results.checkpoint}: holds checkpoints already: resume from them, or take another folder")
    if found is not None:
        check_checkpoint(results, found)
    return found


def check_checkpoint(results: ResultOptions, found: dict[str, Any]) -> None:
    """Raise an error if a checkpoint does not record, for each file, how much of it was written."""
    check_value("a checkpoint", found, CheckpointContent)
    files, done = found["files"], found["state"].get("rows_done", 0)
    for name in FILES:
        if name not in REPLACED and getattr(results, name) is not None and name not in files and done:
            raise OptionError(
                name,
                f"was not given when the checkpoint was written after {done:,} rows, which would be missing: "
                "resume without it, or start anew",
            )


def check_outputs(outputs: Mapping[str, str | None], *inputs: Any) -> None:
    """Raise a ValueError if a file cannot be written, or is also an input or another output, or a link to one.

    Parameters
    ----------
    outputs : mapping of str to str or None
        The path that each option writes to, or None.
    *inputs : object
        What is read: paths, lists of paths, folders, ``"-"`` for standard input; anything else is in memory.
    """
    folders, taken = set(), {}
    for data in inputs:
        for path in data if isinstance(data, (list, tuple)) else [data]:
            if not isinstance(path, (str, os.PathLike)) or str(path).startswith("sample:"):
                continue
            if os.path.isdir(path):
                folders.add(os.path.realpath(path))
                for entry in os.scandir(os.fspath(path)):
                    taken[identity(entry.path)] = f"{entry.path} is read"
            else:
                taken[identity(path)] = f"{path} is read"
    for name, path in outputs.items():
        if path is None or is_special(path):
            continue
        here = identity(path)
        if here in taken:
            raise OptionError(name, f"{path} would be overwritten: {taken[here]}: write elsewhere")
        if os.path.dirname(os.path.realpath(path)) in folders and os.path.basename(path)[0] not in "._":
            raise OptionError(name, f"{path}: every file of this folder is read: write elsewhere")
        taken[here] = f"--{name} writes the same file"
    for name, path in outputs.items():
        if path is not None:
            check_destination(path, replaced=name in REPLACED)


def identity(path: str | os.PathLike[str]) -> tuple[Any, ...]:
    """A key that is equal for all names of a file: hard links, symbolic links, and names of a file not yet made."""
    try:
        found = os.fstat(0) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        return (os.path.realpath(path),)
    return found.st_dev, found.st_ino


def is_special(path: str) -> bool:
    """Whether the path exists and is neither a regular file nor a folder, but a pipe, a device or the like."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def one_line(path: str) -> Iterator[None]:
    """Turn an OSError into a one-line ValueError about a file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror or error}") from None


def check_destination(path: str, replaced: bool = False) -> None:
    """Raise a one-line ValueError if a file cannot be written at `path`; nothing is left there.

    Parameters
    ----------
    path : str
        Where the file is to be.
    replaced : bool, default False
        Whether an existing file will be replaced by a new one, rather than opened and overwritten.
    """
    target = os.path.realpath(path)
    with one_line(path):
        mode = os.stat(target).st_mode if os.path.exists(target) else 0
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(0, "Is a directory")
        if replaced and is_special(target):
            raise OSError(0, "it exists and is not a regular file")
        if mode and not os.access(target, os.W_OK):
            raise PermissionError(0, "Permission denied")
        if is_special(target):
            return  # opening a pipe or a device may have side effects
        if mode and not replaced:
            with open(target, "ab"):
                return
        with tempfile.TemporaryFile(dir=os.path.dirname(target)):
            pass


def check_folder(path: str) -> None:
    """Raise a one-line ValueError if files cannot be written in a folder, which may not exist yet."""
    folder = os.path.realpath(path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    with one_line(path), tempfile.TemporaryFile(dir=folder):
        pass


class ResumableFile:
    """A growing file of CSV or JSON lines that can be truncated to its content at a checkpoint.

    Parameters
    ----------
    path : str
        Where it is.
    header : iterable of str
        The names of its columns.
    kept : dict or None, default None
        What `flush` returned: the part of the existing file to keep. None starts a new file.
    """

    def __init__(self, path: str, header: Iterable[str], kept: Mapping[str, Any] | None = None) -> None:
        self.path, self.length, self.sum = path, 0, hashlib.sha256()
        self.header, self.lines = list(header), path.lower().endswith((".jsonl", ".ndjson"))
        with one_line(path):
            self.file = open(path, "r+b" if kept else "wb")  # noqa: SIM115  # closed by `close`
        try:
            if kept:
                self._continue(kept)
            else:
                if not self.lines:
                    self._write(as_csv([self.header]))
                self.flush()  # so that a full disk, or a device that takes nothing, is seen before the first row
        except BaseException:
            with suppress(OSError):
                self.file.close()
            raise

    def _continue(self, kept: Mapping[str, Any]) -> None:
        """Truncate the file to its content at the checkpoint; an error if that has changed."""
        with one_line(self.path):
            while self.length < kept["length"]:
                block = self.file.read(min(1 << 20, kept["length"] - self.length))
                if not block:
                    raise ValueError(
                        f"{self.path}: shorter than when the checkpoint was written: it cannot be continued"
                    )
                self.sum.update(block)
                self.length += len(block)
            if self.sum.hexdigest() != kept["digest"]:
                raise ValueError(
                    f"{self.path}: not what it was when the checkpoint was written: it cannot be continued"
                )
            self.file.truncate(self.length)
            self.file.seek(self.length)

    def add(self, columns: Iterable[Any]) -> None:
        """Append rows, given their columns."""
        records = zip(*map(listed, columns), strict=True)
        self._write(as_lines(self.header, records, "low" not in self.header) if self.lines else as_csv(records))

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")
        with one_line(self.path):
            self.file.write(data)
        self.length += len(data)
        self.sum.update(data)

    def flush(self) -> dict[str, Any]:
        """Sync the file to disk; returns its length and SHA-256."""
        with one_line(self.path):
            self.file.flush()
            sync(self.file.fileno())
        return {"length": self.length, "digest": self.sum.hexdigest()}

    def close(self) -> None:
        """Close the file."""
        with one_line(self.path):
            self.file.close()


def as_csv(records: Iterable[Iterable[Any]]) -> str:
    """Records as CSV; numbers are written so that they read back bit for bit."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(records)
    return out.getvalue()


def as_lines(header: list[str], records: Iterable[Iterable[Any]], finite: bool = False) -> str:
    """Records as JSON lines; null for a number that is not `finite`, text for values that JSON lacks."""
    rows = (dict(zip(header, each, strict=True)) for each in records)
    if not finite:
        from ..formatting import _plain

        rows = (_plain(row) for row in rows)
    return "".join(f"{json.dumps(row, ensure_ascii=False, default=str)}\n" for row in rows)


class ParquetFile:
    """A growing Parquet file; it cannot be resumed, and is complete only when closed.

    Parameters
    ----------
    path : str
        Where it is.
    header : iterable of str
        The names of its columns.
    into : file object or None, default None
        Where to write instead of the file at `path`.
    """

    def __init__(self, path: str, header: Iterable[str], into: Any = None) -> None:
        self.path, self.header, self.into = path, list(header), into
        self.writer: Any = None
        self.held: list[Any] = []  # rows of the next row group

    def add(self, columns: Iterable[Any]) -> None:
        """Append rows, given their columns."""
        import pyarrow as pa

        self.held.append(pa.table(list(columns), names=self.header))
        if sum(part.num_rows for part in self.held) >= GROUP:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        group = pa.concat_tables(self.held, promote_options="default")
        with one_line(self.path):
            if self.writer is None:
                self.writer = pq.ParquetWriter(self.path if self.into is None else self.into, group.schema)
            self.writer.write_table(group.cast(self.writer.schema))  # a column may have no value in some rows
        self.held = []

    def flush(self) -> dict[str, Any]:
        """Return an empty record, because a Parquet file cannot be resumed."""
        return {"length": 0, "digest": ""}

    def close(self) -> None:
        """Write the end of the file."""
        if self.held:
            self._write()
        if self.writer is not None:
            self.writer.close()


class Outputs:
    """The files that are written during a run.

    Parameters
    ----------
    results : ResultOptions
        Where they are.
    state : TrainingState
        The state that is being learnt.
    kept : mapping of str to dict
        What `flush` returned for each file when the checkpoint was written; empty for a new run.
    """

    def __init__(self, results: ResultOptions, state: TrainingState, kept: Mapping[str, Any]) -> None:
        self.state, self.folder = state, results.checkpoint
        columns: tuple[str, ...] = ()
        if results.predictions is not None:
            none = np.zeros((0, sum(map(len, state.runs))))
            columns = ("target", *predicted(state, none, None if state.tracker is None else np.zeros(0)))
        files = (("predictions", results.predictions, columns), ("rejects", results.rejects, REJECTS))
        self.files: dict[str, ResumableFile | ParquetFile] = {}
        try:
            for name, path, head in files:
                if path is not None and path.lower().endswith((".parquet", ".pq")):
                    if self.folder is not None:
                        raise OptionError(name, f"{path}: Parquet cannot be continued from a checkpoint: take .csv")
                    self.files[name] = ParquetFile(path, head)
                elif path is not None:
                    self.files[name] = ResumableFile(path, head, kept.get(name))
        except BaseException:
            self.close()
            raise

    def add(self, chunk: PlayedChunk) -> None:
        """Write the results of some rows."""
        if "rejects" in self.files and chunk.rejects:
            self.files["rejects"].add(map(list, zip(*chunk.rejects, strict=True)))
        if "predictions" in self.files and len(chunk.y):
            columns = predicted(self.state, chunk.margins, chunk.half).values()
            self.files["predictions"].add([targets_as_read(self.state, chunk), *columns])

    def write_checkpoint(self, state: TrainingState) -> None:
        """Write a checkpoint if there is a folder for it."""
        if self.folder is not None:
            from ..storage import checkpoint

            checkpoint.write(self.folder, {"files": self.flush(), "state": state.to_checkpoint()})

    def flush(self) -> dict[str, dict[str, Any]]:
        """Sync all files to disk; returns the length and SHA-256 of each."""
        return {name: file.flush() for name, file in self.files.items()}

    def close(self) -> None:
        """Close the files."""
        for file in self.files.values():
            file.close()


def in_odds(state: TrainingState, runs: list[Run]) -> bool:
    """Whether margins give the probability of the second of two labels."""
    learner = runs[0].learner
    return state.labels is not None and len(runs) == 1 and learner.targets == "unit" and learner.loss.link == "logistic"


def targets_as_read(state: TrainingState, chunk: PlayedChunk) -> list[Any]:
    """The targets: numbers or labels, None if a row has none."""
    gone = np.zeros(len(chunk.y), bool) if chunk.weight is None else chunk.unlabelled
    values = chunk.y.tolist() if chunk.codes is None or state.labels is None else [state.labels[c] for c in chunk.codes]
    return [None if absent else value for value, absent in zip(values, gone.tolist(), strict=True)]


def predicted(state: TrainingState, z: np.ndarray, half: np.ndarray | None = None) -> dict[str, Any]:
    """Columns by name: the predictions of each learner, and intervals of half width `half`, if any."""
    each, out = len(state.runs[0]), dict[str, Any]()
    names = [""] if len(state.runs) == 1 else short_names([runs[0].learner for runs in state.runs])
    for k, (runs, name) in enumerate(zip(state.runs, names, strict=True)):
        mine = z[:, k * each : (k + 1) * each]
        found = predictions(runs[0].learner.loss, state.labels, mine, half, odds=in_odds(state, runs))
        for column, values in found.items():
            out[column if not name else name if column == "prediction" else f"{name} {column}"] = values
    return out


def predictions(
    loss: Any, labels: list[str] | None, z: np.ndarray, half: Any = None, *, odds: bool = False
) -> dict[str, Any]:
    """Columns by name: the predictions of margins through the link, or the labels that they choose.

    Parameters
    ----------
    loss : loss
        The loss of the learner.
    labels : list of str or None
        The labels; None where targets are numbers.
    z : ndarray of shape (n_rows, n_runs)
        The margins.
    half : float, ndarray or None, default None
        Half the width of intervals, which adds columns with both ends, or with the labels of a set.
    odds : bool, default False
        Whether to add a column with the probability of the second of two labels.
    """
    from ..online.margins import each_mean

    mean = each_mean(loss, z[:, 0])
    out = {"prediction": mean if labels is None else [labels[code] for code in chosen_codes(z).tolist()]}
    if odds:
        out["probability"] = mean
    if half is not None and labels is None:
        out |= {"low": mean - half, "high": mean + half}
    elif half is not None and labels is not None:
        from ..online.coverage import sets_of

        out["labels"] = [SET.join(each) for each in sets_of(loss, z, half, labels)]
    return out


def listed(column: Any) -> list[Any]:
    """A column as a list of Python's own values."""
    if isinstance(column, list):
        return column
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column.tolist())
