"""Rows of a service that continues a model of a table, with the column types of that table."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from ..rows.labels import number_text
from ..sources.base import Position, ReadOptions, suggestion
from ..sources.mappings import finite_float
from ..sources.tables.decided import Decisions
from ..sources.tables.decisions import ColumnDecision
from ..sources.tables.layout import TableLayout
from ..training.prepare import columns_by_name
from .mapping_rows import RequestRows, check_features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..training.plan import Plan
    from .requests import Limits, Part

ROOM = 10_000  # unknown names that readers remember before they forget them


class TableRows:
    """Rows with the columns of a table. Rows that contradict column types are refused; new categories add features.

    Parameters
    ----------
    plan : Plan
        Target, weight and treatment of missing values.
    state : dict
        The numbering of features and the column types, from the source of the table.
    limits : Limits
        The limits on features.
    labels : list of str or None
        The labels.
    """

    def __init__(self, plan: Plan, state: dict[str, Any], limits: Limits, labels: list[str] | None) -> None:
        self.limits = limits
        reading = plan.reading
        self.target, self.weight = plan.target, reading.get("weight")
        self.plain = "table" not in state
        assert self.target is not None
        features: list[str] | None
        if self.plain:
            features = list(state["names"])
            kinds = dict.fromkeys(features, "number") | {self.target: "number" if labels is None else "category"}
            kinds |= {self.weight: "number"} if self.weight else {}
            self.decisions = Decisions({n: ColumnDecision(n, kind) for n, kind in kinds.items()}, ".", True)
        else:
            self.decisions = Decisions.from_state(state["table"])
            features = reading.get("features")
        missing = reading.get("missing", "error")
        self.options = ReadOptions(
            target=self.target, weight=self.weight, features=features, missing=missing,
            labels=None if labels is not None else False, strict=False,
        )  # fmt: skip
        self.layout = self._layout(state)
        self.kind = self.layout.kind
        self.lock = threading.Lock()
        self._reading: TableLayout | None = None

    def _layout(self, state: dict[str, Any]) -> TableLayout:
        layout = TableLayout(self.decisions, self.options, "rows")
        if self.plain:
            return layout
        layout.restore(state)
        layout.read_sums(state["sums"])
        return layout

    @property
    def width(self) -> int:
        """The number of features so far."""
        return self.layout.width

    @property
    def names(self) -> Sequence[str]:
        """The features."""
        return self.layout.names(self.width)

    def state(self) -> dict[str, Any]:
        """The numbering of features and the column types."""
        if self.plain:
            return {"names": list(self.names)}
        return self.layout.state(*self.mark())

    def resolved_options(self) -> dict[str, Any]:
        """Parameters of `open_source` to read files in the same way."""
        return self.layout.resolved_options()

    def encode(self, parts: Sequence[Part]) -> list[RequestRows]:
        """The rows of several requests; a ValueError if one cannot be learnt."""
        pieces = []
        for k, part in enumerate(parts):
            X, y, weight = self._encode(self.layout, part.parse(self.limits))
            pieces.append(RequestRows(X, y, weight, spans=[(k, 0, len(y))]))
        check_features(self.width, self.limits)
        return pieces

    def mark(self) -> tuple[int, list[str]]:
        """A mark of the current state, for `undo`."""
        return self.width, self.layout.write_sums()

    def undo(self, mark: tuple[int, list[str]]) -> None:
        """Forget the names added since the mark."""
        if not self.plain:
            self.layout = self._layout(self.layout.state(*mark))

    def _encode(self, layout: TableLayout, parsed: Any, learn: bool = True) -> tuple[Any, np.ndarray, Any]:
        outcome = () if learn else (self.target, self.weight)
        batch = self._batch(parsed, layout.used, outcome)
        at: Position = {}
        found, n = layout.encode_batch(batch, at, "rows"), batch.num_rows
        faults = {t: fault for t, fault in found.faults.items() if fault[0] not in outcome}
        for t, (column, reason) in sorted(faults.items()):
            message = f"row {t}, column {column!r}: {reason}"
            raise SourceError(message if self.decisions.complete else f"{message}, unlike all rows before")
        if learn and (at["unlabelled"] or at["skipped"]):
            raise SourceError("a row has no target" if at["unlabelled"] else "a value is missing")
        if found.X.shape[0] < n:
            raise SourceError("a value is missing")
        return found.X, found.y if found.y is not None else np.zeros(n), found.weight

    def _batch(self, parsed: Any, used: Sequence[str], outcome: Sequence[str | None]) -> Any:
        """The used columns as an Arrow batch, 0 for those of the outcome; an unknown column is an error."""
        import pyarrow as pa

        known = self.decisions.columns
        names = {name for row in parsed for name in row} if isinstance(parsed, list) else set(parsed.column_names)
        for name in sorted(names - set(known) - {self.target, self.weight}):
            raise SourceError(f"column {name!r} is not one that the model learnt from{suggestion(name, list(known))}")

        def column(name: str) -> Any:
            if name in outcome:
                return pa.array(np.zeros(n))
            if isinstance(parsed, list):
                return arrow_column([row.get(name) for row in parsed], name)
            return parsed.column(name).combine_chunks() if name in names else pa.nulls(n)

        n = len(parsed)
        return pa.record_batch([column(name) for name in used], names=list(used))

    def look_up(self, parsed: Any, width: int) -> Any:
        """Rows to predict, with the features below `width`."""
        with self.lock:
            layout = self._reading
            if layout is None or layout.width > self.width + ROOM:
                layout = self._reading = self._layout(self.state())
                layout.frozen = True
            layout.read_sums(self.layout.write_sums())
            X, _, _ = self._encode(layout, parsed, learn=False)
            if not hasattr(X, "tocsr"):
                return X
            names = self.layout.names(width)
            return columns_by_name(X, layout.names(layout.width), {name: j for j, name in enumerate(names)}, width)


def arrow_column(values: list[Any], name: str) -> Any:
    """The values of one column as an Arrow array; text if they have several types."""
    import pyarrow as pa

    for t, value in enumerate(values):
        if isinstance(value, (dict, list)):
            raise SourceError(f"row {t}, column {name!r}: {type(value).__name__} is neither a number nor text")
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        texts = [v if v is None or isinstance(v, str) else number_text(finite_float(name, v)) for v in values]
        return pa.array(texts, pa.string())
