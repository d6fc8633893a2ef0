"""svmlight and Vowpal Wabbit text: sparse rows with a label of their own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from . import parsers
from .base import BadRow, ReadOptions
from .labels import merge_labels
from .names import HashedNames, IndexNames, NameDictionary
from .sparse import Features, SparseSource, make_canonical, select_features
from .text import ParsedRows, TextSource, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_INDEX = 2**31 - 1  # of svmlight; larger ones must be hashed
MAX_HASHED_INDEX = 10**18
REASONS = {
    parsers.NOT_A_PAIR: "{!r} is not index:value",
    parsers.INDEX_TOO_LOW: "the index of {!r} is too low: indices start at 1 (at 0 with zero_based)",
    parsers.INDEX_TOO_HIGH: f"the index of {{!r}} is above {MAX_INDEX:,}: hash the indices (hash_bits)",
    parsers.NOT_ASCENDING: "the index of {!r} is not above the one before it",
    parsers.REPEATED_INDEX: "the index of {!r} appears twice in the row",
    parsers.NO_BAR: "there is no '|' before the features",
    parsers.NO_NAME: "{!r} has no name before the colon",
    parsers.INITIAL_PREDICTION: "{!r} is a third number before the '|': an initial prediction is not supported",
    parsers.NO_NAMESPACE: "{!r}: a namespace with a value needs a name",
    parsers.BAD_SCALE: "{!r}: the value of a namespace is not a number",
}


class SparseTextSource(SparseSource, TextSource):
    """Rows of names (or indices) and values."""

    value_bytes = 4  # that a value takes at least
    unsorted, weighted = True, True

    def __init__(self, paths: Sequence[str], options: ReadOptions, features: Features) -> None:
        self.features = features
        if options.categorical:
            raise SourceError("categorical columns are those of a table; this format has none")
        super().__init__(paths, options)
        self.selection = select_features(features, options)

    def _grammar(self, size: int) -> Any:
        """The grammar for a block of so many bytes."""
        raise NotImplementedError

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int) -> ParsedRows:
        size = end - begin
        room, lines = size // self.value_bytes + 16, size // 2 + 2
        take = self.pool.take
        found = parsers.SparseRows(
            data=take("data", room),
            indices=take("indices", room, np.int32),
            indptr=take("ends", lines + 1, np.int32),
            y=take("y", lines),
            weight=take("weight", lines),
            rows=take("rows", (lines, 3), np.int64),
            deferred=take("deferred", (room, 4), np.int64),
            bad=take("bad", (1024, 6), np.int64),
        )
        counts = np.empty(7, np.int64)
        found.indptr[0] = 0
        while True:
            parsers.parse_sparse(self._grammar(size), buf, begin, end, final, line, found, counts)
            if counts[parsers.STATUS] != parsers.NO_ROOM or counts[parsers.STOP] > begin:
                break
            assert isinstance(self.features, NameDictionary)  # others have room for all names
            self.features.grow()
        width = int(counts[parsers.WIDTH])
        builder = SparseRowBuilder(self.options, found, int(counts[parsers.ROWS]))
        deferred = found.deferred[: counts[parsers.DEFERRED]].tolist()
        builder.set_deferred((t, k, decode(buf, a, b)) for t, k, a, b in deferred)
        X, y, weight, rows = builder.finish(width, self.unsorted, self.weighted)
        if self.selection is not None:
            X = self.selection.take(X, width)
        bad = [self._bad_row(buf, fault) for fault in found.bad[: counts[parsers.BAD]].tolist()]
        for t, (column, reason) in builder.faults.items():
            bad.append(BadRow(tuple(found.rows[t].tolist()), self._name(column), reason))
        bad.sort(key=lambda row: row.place)
        return ParsedRows(X, y, weight, rows, int(counts[parsers.STOP]), int(counts[parsers.LINE]), width, bad)

    def _name(self, column: int) -> str:
        return str(self.features.names(column + 1)[column]) if column >= 0 else ""

    def _bad_row(self, buf: np.ndarray, fault: list[int]) -> BadRow:
        first, stop, line, reason, a, b = fault
        return BadRow((first, stop, line), "", REASONS[reason].format(decode(buf, a, b)))


class SvmlightSource(SparseTextSource):
    """Rows "label index:value ...", indices ascending, with comments after #."""

    def __init__(self, paths: Sequence[str], options: ReadOptions) -> None:
        self.base = 0 if options.zero_based else 1
        if options.weight is not None:
            raise SourceError(f"{paths[0]}: svmlight has no column of weights")
        super().__init__(paths, options, HashedNames(options.hash_bits) if options.hash_bits else IndexNames(self.base))
        self.unsorted, self.weighted = options.hash_bits is not None, False

    def _grammar(self, size: int) -> Any:
        max_index = MAX_INDEX if self.options.hash_bits is None else MAX_HASHED_INDEX
        return parsers.SvmlightGrammar(self.features.lookup, self.base, max_index)


class VowpalWabbitSource(SparseTextSource):
    """Rows "label importance 'tag |namespace feature:value ..."."""

    value_bytes = 2

    def __init__(self, paths: Sequence[str], options: ReadOptions) -> None:
        super().__init__(paths, options, HashedNames(options.hash_bits) if options.hash_bits else NameDictionary())

    def _grammar(self, size: int) -> Any:
        hashed = self.pool.take("hashed", (size // self.value_bytes + 16, 3), np.uint64)
        return parsers.VowpalWabbitGrammar(self.features.lookup, hashed)


class SparseRowBuilder:
    """Sparse rows as they were parsed, to be checked and put in order."""

    def __init__(self, options: ReadOptions, found: parsers.SparseRows, count: int) -> None:
        self.options, self.data, self.indices = options, found.data, found.indices
        self.indptr, self.rows = found.indptr[: count + 1], found.rows[:count]
        self.y, self.weight = found.y[:count], found.weight[:count]
        self.faults: dict[int, tuple[int, str]] = {}  # by row: column or -1, and reason
        self.labels: dict[int, str] = {}  # by row, where the label is text

    def set_deferred(self, fields: Iterable[tuple[int, int, str]]) -> None:
        """Set fields that are not plain numbers, given by row, place of the value, and text."""
        for t, k, text in fields:
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            column = int(self.indices[k]) if k >= 0 else -1
            if k == parsers.LABEL:
                self._set_label(t, text, value)
            elif not math.isfinite(value):
                what = "importance " if k == parsers.IMPORTANCE else ""
                self.faults.setdefault(t, (column, f"{what}{text!r} is not a finite number"))
            elif k == parsers.IMPORTANCE:
                self.weight[t] = value
            else:
                self.data[k] *= value

    def _set_label(self, t: int, text: str, value: float) -> None:
        if self.options.target is None:
            return
        if not text:
            self.faults.setdefault(t, (-1, "there is no label"))
        elif math.isfinite(value):
            self.y[t] = value
        elif self.options.labels is False or not math.isnan(value) or text.lower().lstrip("+-") == "nan":
            self.faults.setdefault(t, (-1, f"label {text!r} is not a finite number"))
        else:
            self.labels[t] = text

    def finish(
        self, width: int, unsorted: bool, weighted: bool
    ) -> tuple[Any, np.ndarray | None, np.ndarray | None, np.ndarray]:
        """Rows, targets, weights and places without the bad rows, which are in `faults`."""
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
        X = csr_matrix((len(self.y), width))  # given its arrays, it would check them and copy parts of larger ones
        X.data, X.indices, X.indptr = self.data[:n], self.indices[:n], self.indptr
        X.has_sorted_indices = X.has_canonical_format = True
        y = merge_labels(self.y, self.labels, self.options)
        weight, rows = self.weight if weighted else None, self.rows
        if self.faults:
            keep = np.ones(len(rows), bool)
            keep[list(self.faults)] = False
            X, rows = X[keep], rows[keep]
            y = None if y is None else y[keep]
            weight = None if weight is None else weight[keep]
        return X, y, weight, rows
