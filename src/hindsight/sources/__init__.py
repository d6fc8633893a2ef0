"""Data as chunks of rows, from files of any common form, pipes, and objects in memory.

::

    source = open_source("data.csv.gz", target="y", weight="w", ignore=["id"])
    for chunk in source.chunks():
        chunk.X, chunk.y, chunk.weight  # rows as the kernel takes them; y is text where not every target is a number
        chunk.place(3), chunk.raw(3)  # "data.csv.gz, line 17" and that line, for errors
        kept = chunk.position, source.state()  # JSON-able

    source = open_source("data.csv.gz", target="y", weight="w", ignore=["id"])
    source.restore(kept[1])
    for chunk in source.chunks(start=kept[0]):  # goes on; refuses a file whose prefix has changed (digest=True)
        ...

`source.kind` is "dense" (2-D arrays) or "sparse" (CSR with ascending, unique indices). `source.names` are the names of
the features, up to the last chunk given: fixed for a dense table, growing in order of first sight for sparse ones.
`source.reread` is False for standard input. `source.size` is the number of bytes in all, or None; `chunk.read` how many
of them have been read. `source.digest` is the SHA-256 of what was consumed, up to the last chunk given (digest=True);
it is also in `chunk.position`. With rejects=True bad rows are passed over: `chunk.rejects` lists them (a chunk may have
no good row at all), `source.rejected` counts them. Otherwise a bad row is a `SourceError` of one line.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import SourceError
from .base import CHUNK, MISSING, Chunk, Options, Reject, Source, label_text, nearest
from .samples import Table, columns, sample

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Chunk",
    "Reject",
    "Source",
    "SourceError",
    "Table",
    "columns",
    "label_text",
    "open_source",
    "sample",
]


def open_source(
    data: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    format: str | None = None,
    header: bool = True,
    separator: str | None = None,
    categorical: Sequence[str] | str = (),
    missing: str = "error",
    labels: bool | None = None,
    zero_based: bool = False,
    hash_bits: int | None = None,
    rejects: bool = False,
    chunk: int = CHUNK,
    ahead: bool = True,
    digest: bool = False,
) -> Source:
    """Open data to be read chunk by chunk.

    Parameters
    ----------
    data : a path, "-" for standard input, a list of paths, a folder of files of one format, or an object in memory.
    target : the column to predict; None reads rows without targets (`chunk.y` is None). svmlight and VW text have their
        own place for it: any name but None asks for it there.
    weight : the column with the importance of each row. VW text has its own place for it.
    features : the features to read, in this order; None is all but target, weight and `ignore`.
    ignore : columns (or sparse features) to leave out.
    format : csv, tsv, parquet, arrow, jsonl, svmlight, vw, npy or npz; None goes by the name of the file.
    header : whether the first record of CSV or TSV names the columns; without one they are "1", "2", ...
    separator : of CSV, one character; None is a comma (a tab for TSV).
    categorical : columns whose values become indicator features "column=value" (the rows are then sparse); "auto" takes
        those that hold text in the first row.
    missing : what to do where a value is missing: "error", "zero" (the value is 0), or "skip" (the row is left out).
    labels : True gives every target as text, False every target as a number (text is a bad row), None numbers while all
        of a chunk are numbers. As text, numbers are written the shortest way: "+1" and "1.0" are "1".
    zero_based : whether the indices of svmlight start at 0.
    hash_bits : map names to 2^hash_bits columns by a hash instead of a dictionary.
    rejects : pass over bad rows and list them in `chunk.rejects`.
    chunk : bytes of text, or of the values of a table, that make a chunk. Results do not depend on it.
    ahead : read the next chunk in a thread while the current one is used.
    digest : keep the SHA-256 of what was consumed, so that a changed prefix is refused on going on.
    """
    if missing not in MISSING:
        raise SourceError(f"missing must be one of {', '.join(MISSING)}; got {missing!r}")
    if hash_bits is not None and not 1 <= hash_bits <= 31:
        raise SourceError(f"hash_bits must be between 1 and 31; got {hash_bits!r}")
    if format is not None and format not in FORMATS:
        raise SourceError(f"there is no format {format!r}{nearest(format, FORMATS)}")
    if chunk < 1:
        raise SourceError(f"chunk must be at least 1 byte; got {chunk!r}")
    options = Options(
        target, weight, features, tuple(ignore), format, header, separator, categorical, missing, labels, zero_based,
        hash_bits, rejects, chunk, ahead, digest,
    )  # fmt: skip
    return _memory(data, options) if not _is_path(data) else _files(data, options)


FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl", "svmlight", "vw", "npy", "npz")
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".npy": "npy",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".vw": "vw",
}


def _is_path(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(item, (str, os.PathLike)) for item in data)
    return isinstance(data, (str, os.PathLike))


def files_of(data: Any, form: str | None) -> list[str]:
    """The paths that data names: itself, a list, or the data files in a folder, in order."""
    paths = [os.fspath(item) for item in (data if isinstance(data, (list, tuple)) else [data])]
    if len(paths) == 1 and os.path.isdir(paths[0]):
        folder = paths[0]
        paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name[0] not in "._"]
        paths = [path for path in paths if os.path.isfile(path)]
        if form is None:
            kinds = {ending(path) for path in paths} - {None}
            if len(kinds) > 1:
                raise SourceError(f"{folder}: a folder of several formats ({', '.join(sorted(map(str, kinds)))})")
            paths = [path for path in paths if ending(path) is not None]
        if not paths:
            raise SourceError(f"{folder}: a folder without data files")
    for path in paths:
        if path != "-" and not os.path.exists(path):
            raise SourceError(f"{path}: No such file or directory")
        if os.path.isdir(path):
            raise SourceError(f"{path}: this is a folder within a list of files")
    return paths


def _files(data: Any, options: Options) -> Source:
    paths = files_of(data, options.format)
    form = options.format or ending(paths[0])
    if form is None:
        hint = "say which: " + ", ".join(FORMATS)
        if paths[0] == "-":
            raise SourceError(f"standard input has no name to tell its format by; {hint}")
        raise SourceError(f"{paths[0]}: the name does not tell the format; {hint}")
    if form in ("npy", "npz"):
        from . import arrays

        if len(paths) > 1 or paths[0] == "-":
            raise SourceError(f"{form}: one file at a time, and no standard input")
        return (arrays.npy if form == "npy" else arrays.npz)(paths[0], options)
    if form in ("csv", "tsv"):
        from .csv import Delimited

        return Delimited(paths, options, "\t" if form == "tsv" else ",")
    if form in ("svmlight", "vw"):
        from .sparse_text import Svmlight, Wabbit

        return Svmlight(paths, options) if form == "svmlight" else Wabbit(paths, options)
    if form == "jsonl":
        from .json_rows import JsonLines

        return JsonLines(paths, options)
    from .parquet_arrow import Arrow, Parquet

    return Parquet(paths, options) if form == "parquet" else Arrow(paths, options)


def ending(path: str) -> str | None:
    """The format that the name of a file tells, .gz and .zst aside."""
    stem, end = os.path.splitext(path)
    if end.lower() in (".gz", ".zst", ".zstd"):
        stem, end = os.path.splitext(stem)
    return ENDINGS.get(end.lower())


def _memory(data: Any, options: Options) -> Source:
    """Rows in memory: an array, a CSR matrix, a data frame, dicts; or (rows, targets[, weights])."""
    import numpy as np

    from .arrays import Arrays

    X, y, weight = (*data, None)[:3] if isinstance(data, tuple) else (data, None, None)
    if isinstance(X, np.ndarray) or hasattr(X, "tocsr"):
        return Arrays(X, y, weight, options)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__"):
        from .parquet_arrow import Frame, arrow_of

        return Frame(arrow_of(X, y, weight, options), options)
    if hasattr(X, "__iter__"):
        from .json_rows import Dicts

        return Dicts(X, y, weight, options)
    raise SourceError(f"data: rows cannot be read from {type(X).__name__}")
