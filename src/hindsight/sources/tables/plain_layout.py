"""Tables that are read strictly: columns of plain numbers, and columns named as categories."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SourceError
from ...rows.labels import number_text
from ..arrow_types import is_number, is_text
from ..base import ReadOptions, check_known
from ..columns import repeated_name
from ..labels import label_fault, merge_labels, read_target, reads_as_number
from ..parsers.csv import CATEGORY
from .cells import HARD_WORDS
from .decisions import ColumnDecision
from .encoders import CategoryEncoder, Encoded, Encoder, Indicators, NumericEncoder
from .layout import TableLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cells import Cells

MISSING_TEXTS = frozenset(HARD_WORDS)


class PlainNumberEncoder(NumericEncoder):
    """Numbers as Python reads them."""

    def __init__(self, name: str) -> None:
        super().__init__(ColumnDecision(name, "number", soft=False))

    def parse(self, texts: Any) -> np.ndarray:
        return np.array([read_target(text, False)[0] for text in texts.to_pylist()])

    def reason(self, text: str) -> str:
        return f"{text!r} is not {'finite' if reads_as_number(text) else 'a number'}"


class PlainTargetEncoder(PlainNumberEncoder):
    """Numbers, and labels as named values; with `labels` every text is a label but "" and "nan", without it none is."""

    def __init__(self, name: str, labels: bool | None) -> None:
        super().__init__(name)
        self.labels = labels
        if labels:
            self.na = tuple(word for word in self.na if not word or reads_as_number(word))

    def encode(self, cells: Cells) -> Encoded:
        if not len(cells.rows):
            return Encoded(cells.numbers, cells.rows)
        missing, rows, texts = self._given(cells)
        out, found = Encoded(cells.numbers, missing), {}
        cells.numbers[missing] = 0.0
        for t, text in zip(rows.tolist(), texts.to_pylist(), strict=True):
            cells.numbers[t], label = read_target(text, self.labels)
            if label is not None:
                found[t] = label
                if fault := label_fault(label):
                    out.faults[t] = fault
            elif not math.isfinite(cells.numbers[t]):
                out.faults[t] = self.reason(text)
        if found:
            out.named.append(Indicators("", np.array(list(found)), np.arange(len(found)), list(found.values())))
        return out


class PlainCategoryEncoder(CategoryEncoder):
    """An indicator "column=value" for every value but the empty one."""

    role = CATEGORY

    def __init__(self, name: str) -> None:
        super().__init__(ColumnDecision(name, "category"))
        self.na = ("",)

    def encode(self, cells: Cells) -> Encoded:
        if cells.ids is None:
            return super().encode(cells)
        rows = np.flatnonzero(cells.ids >= 0)
        return Encoded(None, cells.rows, [Indicators(self.spaces[0], rows, cells.ids[rows], None)])


class PlainLayout(TableLayout):
    """The role of each column: a feature, a category (whose values become features "column=value"), target, weight."""

    decided = False

    def __init__(
        self, names: Sequence[str], options: ReadOptions, where: str, text_columns: Sequence[str] = ()
    ) -> None:
        self.swapped = False
        if options.hash_bits is not None:
            raise SourceError(f"{where}: hash_bits is for sparse text and JSON lines; the columns of a table are fixed")
        if len(set(names)) < len(names):
            raise SourceError(f"{where}: column {repeated_name(names)!r} appears twice in the header")
        chosen = [options.categorical] if isinstance(options.categorical, str) else list(options.categorical)
        special = [name for name in (options.target, options.weight) if name is not None]
        auto = options.categorical == "auto"
        check_known([*special, *(options.features or ()), *options.ignore, *(() if auto else chosen)], names, where)
        if len(set(special)) < len(special):
            raise SourceError(f"{where}: column {special[0]!r} cannot be both target and weight")
        used = names if options.features is None else options.features
        out = {*special, *options.ignore}
        used = [name for name in used if name not in out]
        if not used:
            raise SourceError(f"{where}: there is no column besides the target {options.target!r}")
        if len(set(used)) < len(used):
            raise SourceError(f"{where}: feature {repeated_name(used)!r} is asked for twice")
        categorical = frozenset(text_columns if auto else chosen)
        encoders: dict[str, Encoder] = {
            name: PlainCategoryEncoder(name) if name in categorical else PlainNumberEncoder(name) for name in used
        }
        if options.target is not None:
            encoders[options.target] = PlainTargetEncoder(options.target, options.labels)
        if options.weight is not None:
            encoders[options.weight] = PlainNumberEncoder(options.weight)
        self._number(encoders, names, options, where, False)
        self._check_names()
        self.find_columns(names)

    def _check_names(self) -> None:
        """Refuse columns whose features could have the same name, such as "a=b" beside the categorical column "a"."""
        categorical = frozenset(self.spaces)
        for name in (*self.fixed, *self.spaces) if categorical else ():
            for k in (k for k, c in enumerate(name) if c == "="):
                if name[:k] in categorical:
                    raise SourceError(
                        f"{self.where}: column {name!r} could be mistaken for value {name[k + 1 :]!r} of the "
                        f"categorical column {name[:k]!r}: rename one, or leave it out with ignore"
                    )

    def state(self, width: int, sums: Sequence[str]) -> dict[str, Any]:
        return self.dictionary.state(max(width, len(self.fixed)))

    def resolved_options(self) -> dict[str, Any]:
        return {"features": [*self.fixed, *self.spaces], "ignore": [], "categorical": self.spaces}

    def check_schema(self, schema: Any, where: str) -> None:
        super().check_schema(schema, where)
        kinds = dict(zip(schema.names, schema.types, strict=True))
        for name in self.used:
            if not (is_text(kinds[name]) or is_number(kinds[name])):
                raise SourceError(
                    f"{where}: column {name!r} holds {kinds[name]}, not numbers or text; leave it out with ignore"
                )
        if len(kinds) < len(schema.names):
            raise SourceError(f"{where}: column {repeated_name(schema.names)!r} appears twice in the header")

    def _column(self, batch: Any, name: str) -> Any:
        """A column of a batch; numbers that are categories as text that does not depend on their type."""
        import pyarrow as pa

        column = batch.column(name)
        if name not in self.spaces or is_text(column.type):
            return column
        coded = column.dictionary_encode()
        texts = [None if v is None or v != v else number_text(v) for v in coded.dictionary.to_pylist()]
        return pa.DictionaryArray.from_arrays(coded.indices, pa.array(texts, pa.string()))

    def _targets(
        self, n: int, cells: dict[str, Cells], found: dict[str, Encoded]
    ) -> tuple[np.ndarray | None, np.ndarray]:
        unlabelled = np.zeros(n, bool)
        if self.options.target is None:
            return None, unlabelled
        out = found[self.options.target]
        assert out.values is not None
        labels: dict[int, str] = {}
        for named in out.named:
            labels |= zip(named.rows.tolist(), named.texts or (), strict=True)
        return merge_labels(out.values, labels, self.options), unlabelled
