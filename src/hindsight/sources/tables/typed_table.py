"""Tables of typed columns, with text, categories, dates and missing values: Parquet, Arrow files and data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SourceError
from ...rows.labels import MAX_WHOLE
from ..base import Position, ReadOptions, check_known
from ..parquet_arrow import ColumnarSource, _is_number
from .cells import Cells, as_floats, as_mask
from .decided import DecidedTable, Decisions, strict_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..base import EncodedRows
    from ..parquet_arrow import Part
    from .evidence import ColumnEvidence


class TypedTable(DecidedTable, ColumnarSource):
    """A table of typed columns; what its columns hold is inferred from their types, and for text from the values."""

    unnamed = ("",)

    def __init__(self, parts: Sequence[Part], options: ReadOptions) -> None:
        self.asked = options
        super().__init__(parts, strict_options(options))

    def _check_columns(self, where: str, schema: Any) -> None:
        """Decide what the columns of the first part hold, and raise an error for a part that lacks one of them."""
        if self.decisions is None:
            self.header = list(schema.names)
            check_known((self.asked.target, self.asked.weight), self.header, self.where)
            if self.asked.state is not None:  # applied once this is done
                self.decisions = Decisions({}, ".", self.asked.scan == 0)
                return
            self.decide(*self.look())
        if self.table is None:
            super()._check_columns(where, schema)
            return
        for name in self.used:
            if name not in schema.names:
                raise SourceError(f"{where}: there is no column {name!r}, but {self.where} has it")

    @property
    def _may_be_plain(self) -> bool:
        kinds = dict(zip(self.schema.names, self.schema.types, strict=True))
        return super()._may_be_plain and all(_is_number(kinds[n]) or n == self.asked.target for n in self.used)

    def _take(self, decisions: Decisions) -> None:
        super()._take(decisions)
        assert self.table is not None
        self.used = [name for name in self.table.columns if self.table.encoder(name) is not None]
        check_known(self.used, self.schema.names, self.where)

    def look(self, file: int = 0) -> tuple[dict[str, ColumnEvidence], bool]:
        """Statistics of each column over the first rows from a file on, and whether those are all the rows."""
        known, rows, most = self._nothing_seen(), 0, self.asked.scan
        for part in self.parts[file:]:
            for batch in part.valid_batches(0, most or 1 << 16, list(known)):
                if most:
                    batch = batch.slice(0, most - rows)
                for name in known:
                    known[name].add(cells_of(batch.column(name), self.where, name))
                rows += batch.num_rows
                if most and rows >= most:
                    return known, False
        return known, True

    def _encode(self, batch: Any, where: str, at: Position) -> EncodedRows:
        if self.table is None:
            return super()._encode(batch, where, at)
        cells = {name: cells_of(batch.column(name), where, name, self.table.is_exact(name)) for name in self.used}
        return self._encode_cells(batch.num_rows, cells, at)

    def _disproves(self, column: str, reason: str) -> bool:
        of_row = self.table is None and not (self.options.missing == "error" and "missing" in reason)
        return not of_row and super()._disproves(column, reason)

    def _take_plain(self) -> None:
        if self.table is not None:
            self.table = None
            self._use_layout()
            super()._check_columns(self.where, self.schema)


def cells_of(column: Any, where: str, name: str, exact: bool = False) -> Cells:
    """The cells of a typed column: numbers as they are, dates and other values as text.

    With `exact`, whole numbers that float64 may not represent become text too.
    """
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
        rows, texts = gone, pa.array([""] * len(gone), pa.string())
        if exact and pa.types.is_integer(kind) and (large := np.abs(values) >= MAX_WHOLE).any():
            rows = np.union1d(gone, np.flatnonzero(large))
            texts = pc.fill_null(column.take(rows).cast(pa.string()), "")
        return Cells(values, rows, texts)
    try:
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("s"), safe=False)
        texts = pc.fill_null(column.cast(pa.string()), "")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise SourceError(
            f"{where}: column {name!r} holds {kind}, not numbers, text or dates: --ignore {name}"
        ) from None
    return Cells(np.zeros(n), np.arange(n), pc.utf8_trim_whitespace(texts))
