"""Tables that are read strictly: columns of plain numbers, and columns named as categories."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from ..rows.labels import MAX_WHOLE, number_text
from .arrow_types import is_number, is_plain_number, is_text
from .base import EncodedRows, ReadOptions, check_known, select_rows
from .columns import Layout, fill_columns, new_names, repeated_name
from .labels import label_fault, merge_labels, read_target, reads_as_number
from .names import NameDictionary
from .parsers.bits import QUOTE
from .parsers.csv import CATEGORY, FEATURE, IGNORE, TARGET, WEIGHT
from .parsers.records import WIDTH
from .pool import ArrayPool
from .tables.cells import HARD_WORDS
from .text import text_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .base import Position
    from .csv import Records

MISSING_TEXTS = frozenset(HARD_WORDS)


class ColumnLayout(Layout):
    """The role of each column: a feature, a category (whose values become features "column=value"), target, weight."""

    def __init__(self, names: Sequence[str], options: ReadOptions, where: str, text_columns: Sequence[str]) -> None:
        self.columns, self.options, self.where = list(names), options, where
        self.pool = ArrayPool()
        if options.hash_bits is not None:
            raise SourceError(f"{where}: hash_bits is for sparse text and JSON lines; the columns of a table are fixed")
        place = {name: j for j, name in enumerate(names)}
        if len(place) < len(names):
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
        self.fixed = [name for name in used if name not in categorical]
        self.spaces = [name for name in used if name in categorical]
        self._check_names()
        self.kind = "sparse" if self.spaces else "dense"
        self.roles = np.full(len(names), IGNORE, np.int64)
        self.dest = np.zeros(len(names), np.int64)
        for role, group in (
            (FEATURE, self.fixed),
            (CATEGORY, self.spaces),
            (TARGET, [] if options.target is None else [options.target]),
            (WEIGHT, [] if options.weight is None else [options.weight]),
        ):
            for j, name in enumerate(group):
                self.roles[place[name]], self.dest[place[name]] = role, j
        self.used = [name for name, role in zip(names, self.roles, strict=True) if role != IGNORE]
        self.dictionary = NameDictionary(self.fixed, self.spaces, "=")

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

    def encode_records(self, buf: np.ndarray, found: Records, at: Position, where: str) -> EncodedRows:
        builder = RowBuilder(self, found.X, found.y, found.weight, found.ids)
        for t, c, a, b in found.deferred.tolist():
            text = text_at(buf, a, b)
            builder.set_text(t, c, text.replace('""', '"') if a and buf[a - 1] == QUOTE else text)
        at["width"] = int(found.counts[WIDTH])
        return builder.finish(at["width"])

    def encode_batch(self, batch: Any, at: Position, where: str) -> EncodedRows:
        n = batch.num_rows
        X = self.pool.take("X", (n, len(self.fixed)))
        builder = RowBuilder(self, X, np.zeros(n), np.zeros(n), np.full((n, len(self.spaces)), -1))
        categories = []
        for c, role in enumerate(self.roles):
            if role == CATEGORY:
                categories.append((c, *_coded(batch.column(self.columns[c]))))
            elif role != IGNORE:
                builder.set_column(c, batch.column(self.columns[c]))
        self._set_categories(builder, categories)
        at["width"] = self.width
        return builder.finish(at["width"])

    def _set_categories(self, builder: RowBuilder, columns: list[tuple[int, list[str], np.ndarray]]) -> None:
        """Number new indicators in the order of the rows, as a row-wise reader would, and set those of each row."""
        found = []
        for c, texts, codes in columns:
            space = int(self.dest[c]) + 1
            found.append((c, codes, [(text, space) if text else None for text in texts]))
        for name in new_names((range(len(codes)), codes, names) for _, codes, names in found):
            self.dictionary.add(*name)
        for c, codes, names in found:
            ids = np.full(len(names), -1, np.int64)
            for k in np.unique(codes).tolist():
                if (name := names[k]) is not None:
                    ids[k] = self.dictionary.add(*name)
            builder.ids[:, self.dest[c]] = ids[codes]
            for t in np.flatnonzero(ids[codes] < 0).tolist():
                builder.set_missing(t, c)


class RowBuilder:
    """Collects the numbers and categories of rows as they are read, checks them and builds the rows."""

    def __init__(self, layout: ColumnLayout, X: np.ndarray, y: np.ndarray, weight: np.ndarray, ids: np.ndarray) -> None:
        self.layout, self.X, self.y, self.weight, self.ids = layout, X, y, weight, ids
        self.faults: dict[int, tuple[str, str]] = {}  # by row: column and reason
        self.skipped: set[int] = set()  # rows to leave out silently
        self.labels: dict[int, str] = {}  # by row: its target, where it is text
        self.complete: list[tuple[int, np.ndarray]] = []  # columns of X without a missing or bad value

    def add_fault(self, t: int, column: str, reason: str) -> None:
        """Mark row t as bad; only the first reason is kept."""
        self.faults.setdefault(t, (column, reason))

    def set_text(self, t: int, c: int, text: str) -> None:
        """Set column c of row t to a text that is not a plain number."""
        layout, options = self.layout, self.layout.options
        role, name, text = layout.roles[c], layout.columns[c], text.strip()
        some = text and (options.labels or text not in MISSING_TEXTS)
        value, label = read_target(text, options.labels if role == TARGET and some else False)
        if label is not None:
            self.labels[t] = label
            if fault := label_fault(label):
                self.add_fault(t, name, fault)
        elif math.isfinite(value):
            self._column(c)[t] = value
        elif text in MISSING_TEXTS:
            self.set_missing(t, c)
        else:
            self.add_fault(t, name, f"{text!r} is not {'finite' if reads_as_number(text) else 'a number'}")

    def set_column(self, c: int, column: Any) -> None:
        """Set column c of all rows to an Arrow array of numbers or texts; null and NaN are missing."""
        import pyarrow as pa

        gone = np.zeros(0, bool)
        if column.null_count:
            gone = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
            for t in np.flatnonzero(gone).tolist():
                self.set_missing(t, c)
        if not is_plain_number(column.type):
            for t, value in enumerate(column.to_pylist()):
                if value is not None:
                    self.set_text(t, c, str(value))
            return
        numbers = column if column.type == pa.float64() else column.cast(pa.float64(), safe=False)
        # to_numpy would import pandas if it is installed: 0.3 s
        values = numbers.to_numpy(zero_copy_only=False) if len(gone) else np.from_dlpack(numbers)
        role, place = self.layout.roles[c], self._column(c)
        if not len(gone) and role == FEATURE and np.isfinite(values).all():
            self.complete.append((int(self.layout.dest[c]), values))
            return
        given = ~gone if len(gone) else np.ones(len(values), bool)
        place[given] = values[given]
        for t in np.flatnonzero(given & ~np.isfinite(values)).tolist():
            if np.isnan(values[t]):
                self.set_missing(t, c)
            else:
                self.add_fault(t, self.layout.columns[c], f"'{values[t]}' is not finite")
        if role == TARGET and pa.types.is_integer(column.type):
            for t in np.flatnonzero(np.abs(self.y) >= MAX_WHOLE).tolist():
                self.set_text(t, c, str(column[t].as_py()))

    def set_missing(self, t: int, c: int) -> None:
        """Mark the value of column c in row t as missing."""
        role, name, rule = self.layout.roles[c], self.layout.columns[c], self.layout.options.missing
        if rule == "skip":
            self.skipped.add(t)
        elif rule == "zero" and role == FEATURE:
            self._column(c)[t] = 0.0
        elif rule == "zero" and role == CATEGORY:
            self.ids[t, self.layout.dest[c]] = -1
        else:
            what = {TARGET: "the target", WEIGHT: "the weight"}.get(int(role), "the value")
            self.add_fault(t, name, f"{what} is missing")

    def _column(self, c: int) -> np.ndarray:
        """The array that holds the numbers of column c."""
        if self.layout.roles[c] == FEATURE:
            return self.X[:, self.layout.dest[c]]
        return self.y if self.layout.roles[c] == TARGET else self.weight

    def finish(self, width: int) -> EncodedRows:
        """Return rows, targets and weights without the bad rows, and the faults of those."""
        layout, options = self.layout, self.layout.options
        fill_columns(self.X, self.complete)
        if options.weight is not None:
            for t in np.flatnonzero(~(self.weight >= 0.0)).tolist():
                self.add_fault(t, options.weight, f"weight {float(self.weight[t])!r} must be at least 0")
        keep = np.ones(len(self.X), bool)
        keep[list(self.skipped | self.faults.keys())] = False
        weight = None if options.weight is None else self.weight
        X, y, weight, ids = select_rows(keep, self.X, merge_labels(self.y, self.labels, options), weight, self.ids)
        X = X if layout.kind == "dense" else indicators(X, ids, width, layout.where)
        return EncodedRows(X, y, weight, keep, {t: why for t, why in self.faults.items() if t not in self.skipped})


def indicators(X: np.ndarray, ids: np.ndarray, width: int, where: str) -> Any:
    """Numbers and indicators as sparse rows; -1 means no indicator."""
    from scipy.sparse import csr_matrix

    n = X.shape[1]
    ids = np.sort(ids, axis=1)
    given = ids >= 0
    if (ids[given] < n).any() or ((ids[:, 1:] == ids[:, :-1]) & given[:, 1:]).any():
        raise SourceError(f"{where}: two columns give features of the same name")
    keep = np.hstack([np.ones(X.shape, bool), given])
    indices = np.hstack([np.broadcast_to(np.arange(n, dtype=np.int32), X.shape), ids.astype(np.int32)])[keep]
    data = np.hstack([X, np.ones(ids.shape)])[keep]
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).astype(np.int32)
    return csr_matrix((data, indices, indptr), shape=(len(X), width))


def _coded(column: Any) -> tuple[list[str], np.ndarray]:
    """The distinct values as text, followed by "" for a missing value, and for each row the index of its value."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return [""], np.zeros(len(column), np.int64)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    texts = [*map(_category, column.dictionary.to_pylist()), ""]
    codes = column.indices.cast(pa.int64()).fill_null(len(texts) - 1)
    return texts, np.from_dlpack(codes)


def _category(value: Any) -> str:
    """A value as text, independent of the column's type; "" if it is missing."""
    if value is None or value != value:
        return ""
    return value.strip() if isinstance(value, str) else number_text(value)
