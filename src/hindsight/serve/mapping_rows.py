"""Rows of a service with named features, numbers or categories, which may appear at any time."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from ..rows.labels import MAX_WHOLE
from ..sources.arrow_types import is_plain_number
from ..sources.base import Chunk
from ..sources.columns import fill_columns, new_names
from ..sources.labels import merge_labels
from ..sources.mappings import FieldError, Key, MappingBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..sources.base import ReadOptions
    from .requests import Limits, Part


@dataclass
class RequestRows(Chunk):
    """Rows of one or more requests that are played together; `spans` has (request, first row, last row)."""

    y: np.ndarray
    spans: list[tuple[int, int, int]] = field(default_factory=list)


def check_features(width: int, limits: Limits) -> None:
    """Raise an error if there are too many features."""
    if width > limits.features:
        raise SourceError(f"there would be {width:,} features, at most {limits.features:,} are taken")


def in_row(t: int, error: FieldError) -> SourceError:
    """The error for a value that cannot be used, with its row."""
    column = f", column {error.column!r}" if error.column else ""
    return SourceError(f"row {t}{column}: {error.reason}")


class MappingRows(MappingBuilder):
    """Rows as mappings from names to values, as `hindsight learn` reads JSON lines.

    A number is a feature, text a category and null a missing value; an unknown name is a new feature.

    Parameters
    ----------
    options : ReadOptions
        Target, weight, features to ignore, and what to do with missing values.
    limits : Limits
        How many features there may be.
    """

    kind = "sparse"

    def __init__(self, options: ReadOptions, limits: Limits) -> None:
        super().__init__(replace(options, strict=True))  # a row without a target is refused
        self.limits, self.eager = limits, True

    def resolved_options(self) -> dict[str, Any]:
        """Empty, because no column types are inferred."""
        return {}

    # ------------------------------------------------------------ to learn

    def encode(self, parts: Sequence[Part]) -> list[RequestRows]:
        """The rows of several requests in as few pieces as possible; a ValueError if one cannot be learnt."""
        pieces: list[RequestRows] = []
        spans: list[tuple[int, int, int]] = []
        self.clear()
        for k, part in enumerate(parts):
            rows = part.parse(self.limits)
            if isinstance(rows, list):
                self._check_room(rows)
                first = len(self.y)
                self._each(rows, self.add)
                check_features(self.width, self.limits)
                spans.append((k, first, len(self.y)))
            else:
                self._finish(pieces, spans)
                spans = []
                X, y, weight = self._columns(rows)
                pieces.append(RequestRows(X, y, weight, spans=[(k, 0, len(y))]))
        self._finish(pieces, spans)
        return pieces

    def _finish(self, pieces: list[RequestRows], spans: list[tuple[int, int, int]]) -> None:
        if spans:
            X, y, weight, _ = self.finish()
            assert y is not None
            pieces.append(RequestRows(X, y, weight, spans=spans))
        self.clear()

    def _each(self, rows: list[dict[str, Any]], add: Callable[[dict[str, Any]], bool]) -> None:
        """Add each row; a SourceError if one is bad, or lacks a required value."""
        for t, row in enumerate(rows):
            try:
                if not add(row):
                    raise SourceError(f"row {t}: a value is missing")
            except FieldError as error:
                raise in_row(t, error) from None

    def _check_room(self, rows: list[dict[str, Any]]) -> None:
        """Raise an error if there are too many new features, before adding any."""
        known, room = self.known, self.limits.features - self.width
        if sum(map(len, rows)) <= room:
            return
        new: set[Any] = set()
        for row in rows:
            keys = ((name, value) if isinstance(value, str) else name for name, value in row.items())
            new.update(key for key in keys if key not in known)
            if len(new) > room + 2:  # the target and the weight are none
                raise SourceError(
                    f"there would be more than {self.limits.features:,} features, the most that are taken"
                )

    def _columns(self, table: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Rows, targets and weights from the columns of a table, with the same result as adding the rows one by one."""
        target, weight = self.options.target, self.options.weight
        columns = {str(name): column for name, column in zip(table.column_names, table.columns, strict=True)}
        for name in (target, weight):
            if name is not None and name not in columns:
                raise SourceError(f"there is no column {name!r}")
        y = self._targets(columns[target]) if target is not None else np.zeros(table.num_rows)
        c = None if weight is None else self._weights(columns[weight])
        cells, known = self._cells_of(table), self.known
        try:
            for key in new_names(((cell.rows, cell.codes, cell.keys) for cell in cells), known):
                self.columns([key])
        except FieldError as error:
            raise SourceError(f"column {error.column!r}: {error.reason}") from None
        check_features(self.width, self.limits)
        return rows_of_cells(cells, known, table.num_rows, self.width), y, c

    def _targets(self, column: Any) -> np.ndarray:
        import pyarrow as pa

        target = self.options.target
        if is_plain_number(column.type) and not column.null_count:
            y = float_column(column)
            if not np.isfinite(y).all():
                t = int(np.argmin(np.isfinite(y)))
                raise SourceError(f"row {t}, column {target!r}: {y[t]} is not finite")
            whole = pa.types.is_integer(column.type) and self.options.labels is not False
            if not whole or np.abs(y).max(initial=0.0) <= MAX_WHOLE:
                return y
        y, texts, read = np.zeros(len(column)), {}, functools.cache(self.target)
        for t, value in enumerate(column.to_pylist()):
            try:
                y[t], text = read(value) if isinstance(value, Hashable) else self.target(value)
            except FieldError as error:
                raise in_row(t, error) from None
            if text is not None:
                texts[t] = text
        merged = merge_labels(y, texts, self.options)
        assert merged is not None
        return merged

    def _weights(self, column: Any) -> np.ndarray:
        weight = float_column(column)
        good = np.isfinite(weight) & (weight >= 0.0)
        if not good.all():
            t = int(np.argmin(good))
            why = f"weight {weight[t]!r} must be at least 0" if column[t].is_valid else "the weight is missing"
            raise SourceError(f"row {t}, column {self.options.weight!r}: {why}")
        return weight

    # ------------------------------------------------------------ to predict

    def look_up(self, parsed: Any, width: int) -> Any:
        """Rows to predict, with the features below `width`; others are unknown and left out."""
        if not isinstance(parsed, list):
            return csr_of(rows_of_cells(self._cells_of(parsed), self.known, parsed.num_rows, width))
        from scipy.sparse import csr_matrix

        builder = copy.copy(self)  # with lists of its own
        builder.clear()
        self._each(parsed, lambda row: builder.add_known(row, width))
        ids, ends = np.array(builder.indices, np.int32), np.array(builder.ends, np.int32)
        X = csr_matrix((np.array(builder.data, np.float64), ids, ends), (len(parsed), width))
        if not X.has_canonical_format:
            raise SourceError("a row has two values for the same feature")
        return X

    def _cells_of(self, table: Any) -> list[ColumnCells]:
        """The values of all columns that are features."""
        columns = zip(table.column_names, table.columns, strict=True)
        found = (features_of(name, c, self.options.missing) for name, c in columns if name not in self.unread)
        return [cell for cells in found for cell in cells]


@dataclass
class ColumnCells:
    """Values of a column in some rows, for one feature, or for the category given by `codes`."""

    rows: np.ndarray
    values: np.ndarray
    keys: list[Key]
    codes: np.ndarray | None


def features_of(name: str, column: Any, missing: str) -> list[ColumnCells]:
    """The values of a column, with marks of missing values if there are any."""
    import pyarrow as pa

    kind, n = column.type, len(column)
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    everywhere = np.arange(n)
    found: list[ColumnCells] = []
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        coded = pa.chunked_array(column.cast(pa.large_string())).combine_chunks().dictionary_encode()
        gone = np.asarray(coded.indices.is_null())
        rows = everywhere[~gone]
        codes = coded.indices.drop_null().to_numpy()
        keys: list[Key] = [(name, text) for text in coded.dictionary.to_pylist()]
        found.append(ColumnCells(rows, np.ones(len(rows)), keys, codes))
    elif pa.types.is_null(kind):
        gone = np.ones(n, bool)
    elif is_plain_number(kind):
        values = float_column(column)
        if math.isfinite(values.sum()):  # then each is
            return [ColumnCells(everywhere, values, [name], None)]
        gone = np.isnan(values)
        rows, values = (everywhere, values) if not gone.any() else (everywhere[~gone], values[~gone])
        if not np.isfinite(values).all():
            t = int(np.argmin(np.isfinite(values)))
            raise SourceError(f"row {rows[t]}, column {name!r}: {float(values[t])!r} is not finite")
        found.append(ColumnCells(rows, values, [name], None))
    else:
        raise SourceError(f"column {name!r} holds {kind}, not numbers or text")
    if gone.any():
        if missing in ("error", "skip"):
            raise SourceError(f"row {int(np.argmax(gone))}, column {name!r}: the value is missing")
        if missing in ("indicator", "mean"):
            rows = everywhere[gone]
            found.append(ColumnCells(rows, np.ones(len(rows)), [f"{name} is missing"], None))
    return found


def rows_of_cells(cells: list[ColumnCells], known: dict[Key, int], n: int, width: int) -> Any:
    """Cells as sparse rows; features at `width` and beyond are left out."""
    from scipy.sparse import csr_matrix

    columns = [np.array([known.get(key, width) for key in cell.keys], np.int32) for cell in cells]
    full = all(cell.codes is None and len(cell.rows) == n for cell in cells)
    if full:  # every row has the same features
        ids = np.array([each[0] for each in columns], np.int32)
        order = [int(k) for k in np.argsort(ids, kind="stable") if ids[k] < width]
        data = np.empty((n, len(order)))
        fill_columns(data, enumerate(cells[k].values for k in order))
        return data if len(order) == width else csr_of(data, ids[order], width)
    where = [
        each[0] + np.zeros(len(cell.rows), np.int32) if cell.codes is None else each[cell.codes]
        for cell, each in zip(cells, columns, strict=True)
    ]
    rows, ids = np.concatenate([cell.rows for cell in cells]), np.concatenate(where)
    values = np.concatenate([cell.values for cell in cells])
    keep = ids < width
    out = csr_matrix((values[keep], (rows[keep], ids[keep])), shape=(n, width))
    out.sort_indices()
    return out


def csr_of(X: Any, ids: np.ndarray | None = None, width: int = 0) -> Any:
    """Dense rows, with every feature or those in `ids`, as a sparse matrix; sparse rows are unchanged."""
    from scipy.sparse import csr_matrix

    if hasattr(X, "tocsr"):
        return X
    n, k = X.shape
    ids = np.arange(k, dtype=np.int32) if ids is None else ids
    ends = np.arange(n + 1, dtype=np.int64) * k
    kind = np.int32 if n * k < 1 << 31 else np.int64
    return csr_matrix((X.ravel(), np.tile(ids.astype(kind), n), ends.astype(kind)), shape=(n, width or k))


def float_column(column: Any) -> np.ndarray:
    """A column of numbers or booleans as float64; NaN if missing."""
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
