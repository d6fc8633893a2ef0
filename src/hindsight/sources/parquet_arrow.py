"""Tables of typed columns: Parquet, Arrow files and data frames, through pyarrow."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .arrow_types import PANDAS_INDEX, is_text, label_type_of, validated
from .base import Chunk, Position, ReadOptions, check_known, first_position
from .columns import TableSource
from .streams import FREE
from .tables.plain_layout import PlainLayout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .tables.layout import TableLayout

MAX_EXPANSION = 10_000  # a Parquet file may hold FREE bytes of values, or so many times its size


class ColumnarSource(TableSource):
    """Typed columns in one or more parts."""

    carried: Sequence[str] = ()  # extra columns in the batches of chunks, besides those that are used

    def __init__(self, parts: Sequence[Part], options: ReadOptions) -> None:
        super().__init__(parts[0].where, options)
        self.parts, self.size = parts, sum(part.size for part in parts)
        self.schema = schema = parts[0].schema()
        self.header = list(schema.names)
        self._assign_roles()
        if options.target in self.header:
            self.label_type = label_type_of(schema.field(options.target).type)

    def _assign_roles(self) -> None:
        """Assign the roles of the columns."""
        self._use(PlainLayout(self.header, self.options, self.where, self._text_columns()))

    def _use(self, layout: TableLayout) -> None:
        super()._use(layout)
        layout.check_schema(self.schema, self.where)

    def _text_columns(self) -> list[str]:
        """The columns of text, if categories are to be inferred; an all-null column is decided by a later part."""
        from pyarrow import types

        if self.options.categorical != "auto":
            return []
        text: list[str] = []
        unknown: list[str] = []
        for field in self.schema:
            (unknown if types.is_null(field.type) else text if is_text(field.type) else []).append(field.name)
        for part in self.parts[1:] if unknown else ():
            kinds = {field.name: field.type for field in part.schema() if not types.is_null(field.type)}
            text += [name for name in unknown if name in kinds and is_text(kinds[name])]
            unknown = [name for name in unknown if name not in kinds]
        return text + unknown

    @property
    def _read(self) -> list[str]:
        """The columns that are read."""
        return list(dict.fromkeys([*self.layout.used, *self.carried]))

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        hasher = hashlib.sha256() if self.options.digest else None
        at = first_position(start, file=0)
        if hasher is not None and start is not None:
            for part in self.parts[: start["file"] + 1]:
                part.hash(hasher)
            self._refuse_changed(start, hasher.hexdigest)
        width = max(1, len(self.layout.used))
        size = max(1, self.options.chunk // (4 * width))  # eight bytes a value: twice a chunk of text
        first = at["file"]
        for k, part in enumerate(self.parts[first:], first):
            if k > 0:
                schema = part.schema()
                self.layout.check_schema(schema, part.where)
                check_known(self.carried, schema.names, part.where)
            if hasher is not None and not (start is not None and k == first):
                part.hash(hasher)
            if k > first:
                at["offset"] = 0
            for batch in part.valid_batches(at["offset"], size, self._read):
                if batch.num_rows == 0:
                    continue
                known = at["width"]
                at |= {"file": k, "digest": hasher.hexdigest() if hasher else None}
                chunk = self._chunk(batch, k, at)
                if len(chunk) or chunk.rejects or at["width"] > known:
                    yield chunk

    def _chunk(self, batch: Any, k: int, at: Position) -> Chunk:
        base, part = at["offset"], self.parts[k]
        found, read = self.layout.encode_batch(batch, at, part.where), part.read + sum(p.size for p in self.parts[:k])
        at["offset"] += batch.num_rows
        numbers, raw = np.arange(base, at["offset"]), lambda t: self._raw(batch, t)
        chunk = self._as_chunk(found, numbers, raw, at, read, part.where)
        chunk.batch = batch, base
        return chunk

    def _raw(self, batch: Any, t: int) -> str:
        """Row t of a batch, without its extra columns."""
        row, used = batch.slice(t, 1).to_pylist()[0], self.layout.used
        return ",".join("" if row[n] is None else str(row[n]) for n in row if n in used or n not in self.carried)


class Part:
    """One of several tables that are read in turn. A subclass has `schema` and `batches`.

    Attributes
    ----------
    where : str
        Its name in messages.
    size : int
        Its bytes.
    read : int
        How many of them have been read.
    """

    where: str
    size: int
    read = 0

    def schema(self) -> Any:
        """The names and types of the columns."""
        raise NotImplementedError

    def batches(self, row: int, size: int, names: Sequence[str]) -> Iterator[Any]:
        """Yield record batches of the columns `names` from row `row` on, of about `size` rows each."""
        raise NotImplementedError

    def valid_batches(self, row: int, size: int, names: Sequence[str]) -> Iterator[Any]:
        """Yield the same batches after validating their offsets, lengths and text."""
        batches = self.batches(row, size, names)
        while True:
            with damage_in(self.where):
                batch = next(batches, None)
                if batch is None:
                    return
                batch = validated(batch)
            yield batch

    def hash(self, hasher: Any) -> None:
        """Add it to the digest."""


class Frame(Part):
    """A data frame or Arrow table in memory."""

    def __init__(self, table: Any, where: str = "data") -> None:
        self.table, self.where, self.size = table, where, table.nbytes

    def schema(self) -> Any:
        return self.table.schema

    def batches(self, row: int, size: int, names: Sequence[str]) -> Iterator[Any]:
        yield from self.table.select(names).slice(row).to_batches(max_chunksize=size)


class FilePart(Part):
    """A file."""

    def __init__(self, path: str) -> None:
        self.where = path
        if path == "-":
            raise SourceError("standard input: this format needs a file, whose end is read first")
        try:
            with open(path, "rb") as file:
                self.size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}") from None

    def hash(self, hasher: Any) -> None:
        with open(self.where, "rb") as file:
            while data := file.read(1 << 20):
                hasher.update(data)


class ParquetPart(FilePart):
    """A Parquet file, read by row groups."""

    def _file(self) -> Any:
        import pyarrow.parquet as pq

        with damage_in(self.where, "this is not a valid Parquet file"):
            file = pq.ParquetFile(self.where)
        meta = file.metadata
        held = sum(meta.row_group(g).total_byte_size for g in range(meta.num_row_groups))
        most = max(FREE, MAX_EXPANSION * self.size)
        held = max(held, 8 * meta.num_rows * max(1, meta.num_columns))
        if held > most:
            raise SourceError(
                f"{self.where}: {self.size:,} bytes that expand to {held:,}, more than {MAX_EXPANSION:,} times the "
                f"file (beyond {FREE >> 20} MiB)"
            )
        return file

    def schema(self) -> Any:
        file = self._file()
        with damage_in(self.where, "this is not a valid Parquet file"):
            return checked_schema(file.schema_arrow)

    def batches(self, row: int, size: int, names: Sequence[str]) -> Iterator[Any]:
        file = self._file()
        done, total = 0, max(1, file.metadata.num_rows)
        for g in range(file.metadata.num_row_groups):
            count = file.metadata.row_group(g).num_rows
            if done + count <= row:
                done += count
                continue
            for batch in file.iter_batches(size, row_groups=[g], columns=names):
                if done + batch.num_rows > row:
                    self.read = self.size * (done + batch.num_rows) // total
                    yield batch.slice(max(0, row - done))
                done += batch.num_rows
        if done != file.metadata.num_rows:
            raise SourceError(f"{self.where}: has {done:,} rows, but says that there are {file.metadata.num_rows:,}")


class ArrowPart(FilePart):
    """An Arrow IPC file or stream. It is read, not mapped: a mapped file that shrinks would end the process."""

    def _open(self, columns: Sequence[int] | None = None) -> tuple[Any, Any]:
        """The file, and a reader of some of its columns (None: all)."""
        import pyarrow as pa

        options = pa.ipc.IpcReadOptions(included_fields=None if columns is None else list(columns))
        with damage_in(self.where, "this is not a valid Arrow file"):
            file = pa.OSFile(self.where)
            magic = file.read(6)
            file.seek(0)
            return file, (pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream)(file, options=options)

    def schema(self) -> Any:
        _, reader = self._open()
        with damage_in(self.where, "this is not a valid Arrow file"):
            return checked_schema(reader.schema)

    def batches(self, row: int, size: int, names: Sequence[str]) -> Iterator[Any]:
        wanted = frozenset(names)
        file, reader = self._open([j for j, name in enumerate(self.schema().names) if name in wanted])
        done = 0
        whole: Iterator[Any]
        if hasattr(reader, "num_record_batches"):
            whole = (reader.get_batch(b) for b in range(reader.num_record_batches))
        else:
            whole = self._stream(file, reader)
        for batch in whole:
            for a in range(max(0, row - done), batch.num_rows, size):
                yield batch.slice(a, size)
            done += batch.num_rows

    def _stream(self, file: Any, reader: Any) -> Iterator[Any]:
        """Yield the batches of a stream; raises an error if it was truncated between two of them."""
        before = file.tell()
        for batch in reader:
            before = file.tell()
            yield batch
        if file.tell() == before:
            raise SourceError(f"{self.where}: the stream is cut short: the mark of its end is missing")
        if file.tell() < file.size():
            more = file.size() - file.tell()
            raise SourceError(f"{self.where}: {more:,} bytes follow the end of the stream")


def to_arrow(frame: Any, y: Any, weight: Any, options: ReadOptions) -> Any:
    """Convert a data frame of any library to an Arrow table; targets and weights become columns."""
    with damage_in("data"):
        return _to_arrow(frame, y, weight, options)


def _to_arrow(frame: Any, y: Any, weight: Any, options: ReadOptions) -> Any:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        table = frame
    elif isinstance(frame, pa.RecordBatch):
        table = pa.Table.from_batches([frame])
    elif hasattr(frame, "__arrow_c_stream__"):
        table = pa.table(frame)
    else:
        import narwhals.stable.v2 as nw

        table = nw.from_native(frame, eager_only=True).to_arrow()
    wanted = {options.target, options.weight, *(options.features or ())}
    table = table.drop_columns([name for name in table.column_names if PANDAS_INDEX.match(name) and name not in wanted])
    for values, name in ((y, options.target), (weight, options.weight)):
        if values is not None and name is not None:
            table = table.append_column(name, pa.array(values))
    return table


@contextmanager
def damage_in(where: Any, what: str = "cannot be read") -> Iterator[None]:
    """Turn pyarrow's errors about damaged data into a one-line SourceError."""
    import pyarrow as pa

    try:
        yield
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        lines = str(error).strip().splitlines()
        raise SourceError(f"{where}: {what}: {lines[0] if lines else type(error).__name__}") from None


def checked_schema(schema: Any) -> Any:
    """The schema, after checking that its names can be decoded."""
    assert len(schema.names) == len(schema)
    return schema
