"""svmlight and Vowpal Wabbit text: sparse rows with a label of their own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import BadRow, EncodedRows, Position, ReadOptions, without_faults
from .labels import label_fault, merge_labels, read_target
from .names import HashedNames, IndexNames, NameDictionary
from .parsers.records import BAD, DEFERRED, DONE, LINE, NO_SPACE, ROWS, STATUS, STOP, WIDTH
from .parsers.sparse import (
    BAD_SCALE,
    IMPORTANCE,
    INDEX_TOO_HIGH,
    INDEX_TOO_LOW,
    INITIAL_PREDICTION,
    LABEL,
    NO_BAR,
    NO_NAME,
    NO_NAMESPACE,
    NOT_A_PAIR,
    NOT_ASCENDING,
    REPEATED_INDEX,
    SparseRows,
    parse_sparse,
)
from .parsers.svmlight import SvmlightGrammar
from .parsers.vowpal_wabbit import VowpalWabbitGrammar
from .sparse import Features, SparseSource, make_canonical, max_columns, select_features
from .text import ParsedRows, TextSource, text_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MAX_HASHED_INDEX = 10**18 - 1
REASONS = {
    NOT_A_PAIR: "{!r} is not index:value",
    INDEX_TOO_LOW: "the index of {!r} is too low: indices start at 1 (at 0 with zero_based)",
    INDEX_TOO_HIGH: "the index of {!r}",
    NOT_ASCENDING: "the index of {!r} is not above the one before it",
    REPEATED_INDEX: "the index of {!r} appears twice in the row",
    NO_BAR: "there is no '|' before the features",
    NO_NAME: "{!r} has no name before the colon",
    INITIAL_PREDICTION: "{!r} is a third number before the '|': an initial prediction is not supported",
    NO_NAMESPACE: "{!r}: a namespace with a value needs a name",
    BAD_SCALE: "{!r}: the value of a namespace is not a number",
}


class SparseTextSource(SparseSource, TextSource):
    """Rows of names (or indices) and values."""

    value_bytes = 4  # of text that a value takes, about
    unsorted, weighted = True, True

    def __init__(self, paths: Sequence[str], options: ReadOptions, features: Features) -> None:
        self.features = features
        if options.categorical:
            raise SourceError("categorical columns are those of a table; this format has none")
        super().__init__(paths, options)
        self.selection = select_features(features, options)

    def _grammar(self, room: int) -> Any:
        """The grammar for a block of up to `room` values."""
        raise NotImplementedError

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int, at: Position) -> ParsedRows:
        size = end - begin
        room, lines = size // self.value_bytes + 16, size // 2 + 2
        counts = np.empty(7, np.int64)
        while True:
            found = self._room(room, lines)
            parse_sparse(self._grammar(room), buf, begin, end, final, line, found, counts)
            if counts[STATUS] == DONE or counts[STOP] > begin:
                break
            if counts[STATUS] == NO_SPACE:
                room *= 2
            else:
                assert isinstance(self.features, NameDictionary)  # other lookups have room for all names
                self.features.grow()
        builder = SparseRowBuilder(self.options, found, int(counts[ROWS]))
        deferred = found.deferred[: counts[DEFERRED]].tolist()
        builder.set_deferred((t, k, text_at(buf, a, b)) for t, k, a, b in deferred)
        at["width"] = width = self._width(int(counts[WIDTH]), builder)
        rows = builder.finish(width, self.unsorted, self.weighted, self._name)
        if self.selection is not None:
            rows = rows._replace(X=self.selection.take(rows.X, width))
        bad = [self._bad_row(buf, *fault) for fault in found.bad[: counts[BAD]].tolist()]
        places = found.rows[: counts[ROWS]]
        return ParsedRows(rows, places, int(counts[STOP]), int(counts[LINE]), bad)

    def _room(self, values: int, lines: int) -> SparseRows:
        """Allocate arrays for `values` values and `lines` lines."""
        take = self.pool.take
        found = SparseRows(
            data=take("data", values),
            indices=take("indices", values, np.int32),
            indptr=take("ends", lines + 1, np.int32),
            y=take("y", lines),
            weight=take("weight", lines),
            rows=take("rows", (lines, 3), np.int64),
            deferred=take("deferred", (values, 4), np.int64),
            bad=take("bad", (1024, 6), np.int64),
        )
        found.indptr[0] = 0
        return found

    def _width(self, counted: int, builder: SparseRowBuilder) -> int:
        """The number of columns so far, as counted by the parser."""
        return counted

    def _name(self, column: int) -> str:
        return str(self.features.names(column + 1)[column]) if column >= 0 else ""

    def _bad_row(self, buf: np.ndarray, first: int, stop: int, line: int, what: int, a: int, b: int) -> BadRow:
        reason = REASONS[what].format(text_at(buf, a, b)) + self._advice(what)
        return BadRow(line, "", reason, text_at(buf, first, stop))

    def _advice(self, reason: int) -> str:
        return ""


class SvmlightSource(SparseTextSource):
    """Rows "label index:value ...", indices ascending, with comments after #."""

    def __init__(self, paths: Sequence[str], options: ReadOptions) -> None:
        self.base = 0 if options.zero_based else 1
        if options.weight is not None:
            raise SourceError(f"{paths[0]}: svmlight has no column of weights")
        super().__init__(paths, options, HashedNames(options.hash_bits) if options.hash_bits else IndexNames(self.base))
        self.unsorted, self.weighted = options.hash_bits is not None, False
        self.max_index = MAX_HASHED_INDEX if options.hash_bits else max_columns() - 1 + self.base

    def _grammar(self, room: int) -> Any:
        return SvmlightGrammar(self.features.lookup, self.base, self.max_index)

    def _width(self, counted: int, builder: SparseRowBuilder) -> int:
        """The number of columns so far, without those of rejected rows."""
        return self.features.widen(builder.columns()) if isinstance(self.features, IndexNames) else counted

    def _advice(self, reason: int) -> str:
        if reason != INDEX_TOO_HIGH:
            return ""
        hint = (
            ""
            if self.options.hash_bits
            else ", the most that memory has room for: hash the indices (hash_bits, --hash)"
        )
        return f" is above {self.max_index:,}{hint}"


class VowpalWabbitSource(SparseTextSource):
    """Rows "label importance 'tag |namespace feature:value ..."."""

    value_bytes = 2

    def __init__(self, paths: Sequence[str], options: ReadOptions) -> None:
        bits = options.hash_bits
        super().__init__(paths, options, HashedNames(bits) if bits else NameDictionary(unique=True))

    def _grammar(self, room: int) -> Any:
        hashed = self.pool.take("hashed", (room, 3), np.uint64)
        return VowpalWabbitGrammar(self.features.lookup, hashed)


class SparseRowBuilder:
    """Checks parsed sparse rows and brings them into canonical form."""

    def __init__(self, options: ReadOptions, found: SparseRows, count: int) -> None:
        self.options, self.data, self.indices = options, found.data, found.indices
        self.indptr, self.y, self.weight = found.indptr[: count + 1], found.y[:count], found.weight[:count]
        self.faults: dict[int, tuple[int, str]] = {}  # by row: column or -1, and reason
        self.labels: dict[int, str] = {}  # by row, where the label is text

    def set_deferred(self, fields: Iterable[tuple[int, int, str]]) -> None:
        """Set fields that are not plain numbers, given by row, position of the value, and text."""
        for t, k, text in fields:
            value, label = read_target(text, self.options.labels if k == LABEL else False)
            column = int(self.indices[k]) if k >= 0 else -1
            if k == LABEL:
                self._set_label(t, text, value, label)
            elif not math.isfinite(value):
                what = "importance " if k == IMPORTANCE else ""
                self.faults.setdefault(t, (column, f"{what}{text!r} is not a finite number"))
            elif k == IMPORTANCE:
                self.weight[t] = value
            else:
                self.data[k] *= value

    def _set_label(self, t: int, text: str, value: float, label: str | None) -> None:
        if self.options.target is None:
            return
        if not text:
            self.faults.setdefault(t, (-1, "there is no label"))
        elif label is None and not math.isfinite(value):
            self.faults.setdefault(t, (-1, f"label {text!r} is not a finite number"))
        elif label is None:
            self.y[t] = value
        elif fault := label_fault(label):
            self.faults.setdefault(t, (-1, fault))
        else:
            self.labels[t] = label

    def columns(self) -> int:
        """One more than the highest column in rows without a fault; the columns of each row ascend."""
        good = np.diff(self.indptr) > 0
        good[list(self.faults)] = False
        return int(self.indices[self.indptr[1:][good] - 1].max(initial=-1)) + 1

    def finish(self, width: int, unsorted: bool, weighted: bool, name: Callable[[int], str]) -> EncodedRows:
        """Rows, targets and weights without the bad rows; `name` gives the name of a column."""
        from scipy.sparse import csr_matrix

        n = int(self.indptr[-1])
        if weighted:
            for t in np.flatnonzero(~(self.weight >= 0.0)).tolist():
                self.faults.setdefault(t, (-1, f"importance {float(self.weight[t])!r} must be at least 0"))
        if unsorted:
            n = make_canonical(self.data[:n], self.indices[:n], self.indptr, width)
            for k in np.flatnonzero(~np.isfinite(self.data[:n])).tolist():  # a product or a sum
                t = int(np.searchsorted(self.indptr, k, "right")) - 1
                self.faults.setdefault(t, (int(self.indices[k]), "the value overflows"))
        X = csr_matrix((len(self.y), width))  # the constructor would check the arrays and copy slices of larger ones
        X.data, X.indices, X.indptr = self.data[:n], self.indices[:n], self.indptr
        X.has_sorted_indices = X.has_canonical_format = True
        y = merge_labels(self.y, self.labels, self.options)
        faults = {t: (name(column), reason) for t, (column, reason) in self.faults.items()}
        return without_faults(X, y, self.weight if weighted else None, faults)
