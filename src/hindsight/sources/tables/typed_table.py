"""Tables of typed columns, with text, categories, dates and missing values: Parquet, Arrow files and data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arrow_types import is_number
from ..parquet_arrow import ColumnarSource
from .cells import typed_cells
from .decided import DecidedTable, Decisions, strict_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..base import ReadOptions
    from ..parquet_arrow import Part
    from .evidence import ColumnEvidence


class TypedTable(DecidedTable, ColumnarSource):
    """A table of typed columns; what its columns hold is inferred from their types, and for text from the values."""

    unnamed = ("",)

    def __init__(self, parts: Sequence[Part], options: ReadOptions) -> None:
        self.asked = options
        super().__init__(parts, strict_options(options))

    def _assign_roles(self) -> None:
        """Infer what the columns hold, unless a state is applied once this is done."""
        self.layout = self._plain_layout()
        if self.asked.state is None:
            self.decide(*self.look())
        else:
            self.decisions = Decisions({}, ".", self.asked.scan == 0)

    @property
    def _may_be_plain(self) -> bool:
        kinds, used = dict(zip(self.schema.names, self.schema.types, strict=True)), self._plain_layout().used
        return super()._may_be_plain and all(is_number(kinds[name]) or name == self.asked.target for name in used)

    def look(self, file: int = 0) -> tuple[dict[str, ColumnEvidence], bool]:
        """Statistics of each column over the first rows from a file on, and whether those are all the rows."""
        known, rows, most = self._nothing_seen(), 0, self.asked.scan
        for part in self.parts[file:]:
            for batch in part.valid_batches(0, most or 1 << 16, list(known)):
                if most:
                    batch = batch.slice(0, most - rows)
                for name in known:
                    known[name].add(typed_cells(batch.column(name), self.where, name))
                rows += batch.num_rows
                if most and rows >= most:
                    return known, False
        return known, True

    def _disproves(self, column: str, reason: str) -> bool:
        of_row = not self.decided and not (self.options.missing == "error" and "missing" in reason)
        return not of_row and super()._disproves(column, reason)
