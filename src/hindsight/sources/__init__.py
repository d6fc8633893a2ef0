"""Data as chunks of rows, from files in common formats, pipes, and objects in memory.

::

    source = open_source("data.csv.gz", target="y", weight="w", ignore=["id"])
    for chunk in source.chunks():
        chunk.X, chunk.y, chunk.weight  # rows as the kernels take them; y is text where not every target is a number
        chunk.place(3), chunk.raw(3)  # "data.csv.gz, line 17" and that line, for errors
        kept = chunk.position, source.state()  # JSON-able

    source = open_source("data.csv.gz", target="y", weight="w", ignore=["id"])
    source.restore(kept[1])
    for chunk in source.chunks(start=kept[0]):  # resumes; with digest=True a changed prefix is refused
        ...

`source.kind` is "dense" (2-D arrays) or "sparse" (CSR with ascending, unique indices). `source.names` are the names of
the features up to the last chunk yielded: fixed for a dense table, in order of first appearance for sparse rows.
`source.reread` is False for standard input. `source.size` is the total number of bytes, or None, and `chunk.read` the
number of bytes read so far. With digest=True, `source.digest` is the SHA-256 of the data up to the last chunk yielded;
it is also in `chunk.position`. With rejects=True bad rows are skipped: `chunk.rejects` lists them (a chunk may have no
good row at all), and `source.rejected` counts them. Otherwise a bad row raises a one-line `SourceError`.
"""

from ..errors import SourceError
from .base import Chunk, Reject, Source
from .column_reader import read_columns
from .labels import label_text
from .opening import file_format, found_format, open_source
from .samples import SampleSource, load_sample

__all__ = [
    "Chunk",
    "Reject",
    "SampleSource",
    "Source",
    "SourceError",
    "file_format",
    "found_format",
    "label_text",
    "load_sample",
    "open_source",
    "read_columns",
]
