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

from typing import TYPE_CHECKING, Any

from .base import CHUNK, MISSING, Chunk, Options, Reject, Source, SourceError
from .samples import Table, columns, read, sample

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Chunk", "Reject", "Source", "SourceError", "Table", "columns", "open_source", "read", "sample"]


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
    if chunk < 1:
        raise SourceError(f"chunk must be at least 1 byte; got {chunk!r}")
    options = Options(
        target, weight, features, tuple(ignore), format, header, separator, categorical, missing, labels, zero_based,
        hash_bits, rejects, chunk, ahead, digest,
    )  # fmt: skip
    from .delimited import Delimited

    return Delimited([str(data)], options)
