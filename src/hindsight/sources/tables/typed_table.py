"""Tables of typed columns, with text, categories, dates and missing values: Parquet, Arrow files and data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SourceError
from .. import parsers
from ..base import Chunk, Position, ReadOptions, suggestion
from ..parquet_arrow import ArrowSource, ColumnarSource, FrameSource, ParquetSource, _is_number, _raw
from .cells import Cells, as_floats, as_mask
from .evidence import ColumnEvidence
from .layout import TableLayout
from .table import DecidedTable, Decisions, first_sums, strict_options, with_help

if TYPE_CHECKING:
    from collections.abc import Iterator


class TypedTable(DecidedTable, ColumnarSource):
    """A table of typed columns; what its columns hold is found by their types, and text by looking at it."""

    def __init__(self, source: Any, options: ReadOptions) -> None:
        self.asked = options
        self.table: TableLayout | None = None
        self.decisions: Decisions | None = None
        self.sums: list[str] = []
        self.follows = False
        self.unlabelled = self.skipped = 0
        self.renamed: list[str] = []
        super().__init__(source, strict_options(options))  # type: ignore[call-arg]

    def _check_columns(self, k: int, schema: Any) -> None:
        """Decide what the columns of the first part hold, and refuse a part that lacks one of them."""
        if k == 0 and self.decisions is None:
            self.header = list(schema.names)
            for name in (self.asked.target, self.asked.weight):
                if name is not None and name not in self.header:
                    raise SourceError(f"{self.where}: there is no column {name!r}{suggestion(name, self.header)}")
            if self.asked.state is not None:  # and taken up once this is done
                self.decisions = Decisions({}, ".", self.asked.scan == 0)
                return
            self.decide(*self.look())
            return
        if self.table is None:
            super()._check_columns(k, schema)
            return
        for name in self.used:
            if name not in schema.names:
                raise SourceError(f"{self._where(k)}: there is no column {name!r}, but {self.where} has it")

    def decide(self, evidence: dict[str, ColumnEvidence], complete: bool) -> None:
        """Take up the layout that the rows seen ask for."""
        self.decisions = Decisions.made(evidence, self.asked, complete, self.where, ("",))
        kinds = dict(zip(self.schema.names, self.schema.types, strict=True))
        plain = all(_is_number(kinds[n]) or n == self.asked.target for n in self.used)
        plain = plain and not self.asked.types and not self.asked.categorical and not self.asked.na
        if plain and self.decisions.is_plain(self.asked):
            super()._check_columns(0, self.schema)
        else:
            self._take(self.decisions)

    def _take(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.table = decisions.layout(list(decisions.columns), self.asked, self.where, False)
        self.kind, self.width = self.table.kind, len(self.table.fixed)
        self.used = [name for name in self.table.columns if self.table.encoder(name) is not None]
        for name in self.used:
            if name not in self.schema.names:
                raise SourceError(f"{self.where}: there is no column {name!r}{suggestion(name, self.schema.names)}")

    def look(self, file: int = 0) -> tuple[dict[str, ColumnEvidence], bool]:
        """What the first rows from a file on show of each column, and whether those are all; with `scan` 0 they are."""
        known = {name: ColumnEvidence(name, tuple(self.asked.na), name != self.asked.target) for name in self.header}
        used, self.used = self.used, self.header
        rows, most = 0, self.asked.scan
        try:
            for k in range(file, len(self.parts)):
                for batch in self._valid_batches(k, 0, most or 1 << 16):
                    if most:
                        batch = batch.slice(0, most - rows)
                    for name in self.header:
                        known[name].add(cells_of(batch.column(name), self.where, name))
                    rows += batch.num_rows
                    if most and rows >= most:
                        return known, False
        finally:
            self.used = used
        return known, True

    def _chunk(self, batch: Any, k: int, at: Position) -> Chunk:
        assert self.decisions is not None
        if self.table is None:
            return self._plain_chunk(batch, k, at)
        n, base, where = batch.num_rows, at["offset"], self._where(k)
        cells = {name: cells_of(batch.column(name), where, name) for name in self.used}
        found = self.table.encode(n, cells)
        rejects = []
        for t, (column, reason) in sorted(found.faults.items()):
            if not self.decisions.settle(reason, column, self.asked):
                raise self.decisions.disproved(where, "row", base + t, column, reason)
            reason = with_help(reason, column, self.asked)
            rejects.append(self._reject(where, "row", base + t, column, reason, _raw(batch, t)))
        numbers = base + np.flatnonzero(found.keep)
        first = at["row"]
        at["row"] += len(numbers)
        at["offset"] += n
        at["rejected"] += len(rejects)
        at["unlabelled"] = at.get("unlabelled", 0) + found.unlabelled
        at["skipped"] = at.get("skipped", 0) + found.skipped
        at |= {"width": self.table.width, "sums": self.table.write_sums()}
        return Chunk(
            found.X, found.y, found.weight, first, {}, self._bytes_read(k, at), lambda i: f"{where}, row {numbers[i]}",
            lambda i: _raw(batch, int(numbers[i]) - base), rejects,
        )  # fmt: skip

    def _plain_chunk(self, batch: Any, k: int, at: Position) -> Chunk:
        """Rows of numbers alone; one that is missing disproves that."""
        assert self.decisions is not None
        if not self.decisions.complete and self.options.missing == "error":
            for name in self.used:
                column = batch.column(name)
                gone = as_mask(column.is_null(nan_is_null=True))
                if gone.any():
                    t = int(np.argmax(gone))
                    raise self.decisions.disproved(
                        self._where(k), "row", at["offset"] + t, name, "the value is missing"
                    )
        return super()._chunk(batch, k, at)

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        if self.table is not None and not self.table.frozen:
            self.table.read_sums((start or {}).get("sums") or first_sums(self))
        return super()._chunks(start)

    def _take_plain(self) -> None:
        if self.table is not None:
            self.table = None
            self.kind = self.layout.kind
            roles = zip(self.schema.names, self.layout.roles, strict=True)
            self.used = [name for name, role in roles if role != parsers.IGNORE]
            super()._check_columns(0, self.schema)


class ParquetTable(TypedTable, ParquetSource):
    """Parquet files of any columns."""


class ArrowTable(TypedTable, ArrowSource):
    """Arrow files of any columns."""


class FrameTable(TypedTable, FrameSource):
    """A data frame of any columns."""


def cells_of(column: Any, where: str, name: str) -> Cells:
    """The cells of a typed column: numbers as they are, dates and other values as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n, kind = len(column), column.type
    if pa.types.is_dictionary(kind):
        values = column.dictionary if _is_number(kind.value_type) else column.dictionary.cast(pa.string())
        column = pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()
        kind = column.type
    if pa.types.is_boolean(kind):
        column = pc.if_else(column, "true", "false")
        kind = column.type
    if _is_number(kind):
        numbers = column.cast(pa.float64(), safe=False)
        gone = np.flatnonzero(as_mask(numbers.is_null(nan_is_null=True)))
        values = np.where(np.isnan(as_floats(numbers)), 0.0, as_floats(numbers))
        return Cells(values, gone, pa.array([""] * len(gone), pa.string()))
    try:
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("s"), safe=False)
        texts = pc.fill_null(column.cast(pa.string()), "")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise SourceError(
            f"{where}: column {name!r} holds {kind}, not numbers, text or dates: --ignore {name}"
        ) from None
    return Cells(np.zeros(n), np.arange(n), pc.utf8_trim_whitespace(texts))
