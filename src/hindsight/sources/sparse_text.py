"""svmlight and Vowpal Wabbit text: sparse rows with a label of their own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from . import parsers
from .base import Options, label_text
from .names import Buckets, Dictionary, Numbers
from .text import Bad, Batch, Text, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


MARKED = 1 << 20  # columns at most that are put in order by marks
MOST = 2**31 - 1  # the largest index of svmlight; beyond it a hash is needed
REASONS = {
    parsers.NOT_A_PAIR: "{!r} is not index:value",
    parsers.INDEX_TOO_LOW: "index of {!r} is too low: indices start at 1 (zero_based starts them at 0)",
    parsers.INDEX_TOO_HIGH: f"index of {{!r}} is above {MOST:,}: map indices by a hash (hash_bits)",
    parsers.NOT_ASCENDING: "index of {!r} is not above the one before it",
    parsers.REPEATED_INDEX: "index of {!r} stands twice in the row",
    parsers.NO_BAR: "there is no '|' before the features",
    parsers.NO_NAME: "{!r} has no name before the colon",
    parsers.INITIAL_PREDICTION: "{!r} is a third number before the '|': an initial prediction is not supported",
    parsers.NO_NAMESPACE: "{!r}: a namespace with a value needs a name",
    parsers.BAD_SCALE: "{!r}: the value of a namespace is not a number",
}


class Sparse(Text):
    """Rows of names (or indices) and values."""

    kind = "sparse"
    least_bytes = 4  # of a value in the text

    def __init__(self, paths: Sequence[str], options: Options, keys: Any) -> None:
        self.keys = keys
        if options.categorical:
            raise SourceError("categorical columns are those of a table; this format has none")
        super().__init__(paths, options)
        self.chosen = Chosen(keys, options) if options.features is not None or options.ignore else None

    @property
    def names(self) -> Sequence[str]:
        return self.keys.names(self.width) if self.chosen is None else self.chosen.names(self.width)

    @property
    def collisions(self) -> int | None:
        """Columns that more than one name is mapped to; None without a hash."""
        return self.keys.collisions if isinstance(self.keys, Buckets) else None

    def state(self) -> dict[str, Any]:
        return self.keys.state(self.width)

    def restore(self, state: dict[str, Any]) -> None:
        self.keys.restore(state)
        self.width = int(self.keys.keys.used[0])

    def _grammar(self, size: int) -> Any:
        """The grammar of a block of so many bytes."""
        raise NotImplementedError

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int) -> Batch:
        size = end - begin
        room, lines = size // self.least_bytes + 16, size // 2 + 2
        take = self.pool.take
        data, indices, indptr = take("data", room), take("indices", room, np.int32), take("ends", lines + 1, np.int32)
        y, weight, rows = take("y", lines), take("weight", lines), take("rows", (lines, 3), np.int64)
        slow, bad, out = take("slow", (room, 4), np.int64), take("bad", (1024, 6), np.int64), np.empty(7, np.int64)
        indptr[0] = 0
        while True:
            parsed = parsers.SparseRows(data, indices, indptr, y, weight, rows, slow, bad)
            parsers.parse_sparse(self._grammar(size), buf, begin, end, final, line, parsed, out)
            if out[parsers.STATUS] != parsers.NO_ROOM or out[parsers.STOP] > begin:
                break
            self.keys.grow()
        r, width = int(out[parsers.ROWS]), int(out[parsers.WIDTH])
        faults = [self._fault(buf, fault) for fault in bad[: out[parsers.BAD]]]
        done = Raw(self.options, data, indices, indptr[: r + 1], y[:r], weight[:r], rows[:r])
        done.slow((t, k, text_of(buf, a, b)) for t, k, a, b in slow[: out[parsers.DEFERRED]].tolist())
        X, targets, weights, rows, more = done.finish(width, self._unsorted, self._weighted, self._column)
        if self.chosen is not None:
            X = self.chosen.take(X, width)
        faults = sorted(faults + more, key=lambda fault: fault.row[0])
        stop, line = int(out[parsers.STOP]), int(out[parsers.LINE])
        return Batch(X, targets, weights, rows, stop, line, width, faults)

    _unsorted, _weighted = True, True

    def _column(self, k: int) -> str:
        return str(self.keys.names(k + 1)[k])

    def _fault(self, buf: np.ndarray, fault: np.ndarray) -> Bad:
        return Bad(fault[:3].tolist(), "", REASONS[int(fault[3])].format(text_of(buf, fault[4], fault[5])))


class Svmlight(Sparse):
    """Rows "label index:value ...", indices ascending, with comments after #."""

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        self.base = 0 if options.zero_based else 1
        if options.weight is not None:
            raise SourceError(f"{paths[0]}: svmlight has no column of weights")
        super().__init__(paths, options, Buckets(options.hash_bits) if options.hash_bits else Numbers(self.base))
        self._unsorted, self._weighted = options.hash_bits is not None, False

    def _grammar(self, size: int) -> Any:
        most = MOST if self.options.hash_bits is None else 10**18
        return parsers.SvmlightGrammar(self.keys.keys, self.base, most)


class Wabbit(Sparse):
    """Rows "label importance 'tag |namespace feature:value ..."."""

    least_bytes = 2

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        super().__init__(paths, options, Buckets(options.hash_bits) if options.hash_bits else Dictionary())

    def _grammar(self, size: int) -> Any:
        return parsers.VowpalWabbitGrammar(self.keys.keys, self.pool.take("hashed", (size // 2 + 16, 3), np.uint64))


class Chosen:
    """Some of the features: those given, in that order, or all but those ignored, in order of first sight."""

    def __init__(self, keys: Any, options: Options) -> None:
        if isinstance(keys, Buckets):
            raise SourceError("features and ignore need names, which a hash does not keep")
        self.keys, self.ignored = keys, frozenset(options.ignore)
        self.wanted = None
        if options.features is not None:
            self.wanted = [name for name in options.features if name not in self.ignored]
            self.place = {name: j for j, name in enumerate(self.wanted)}
        self.map = np.zeros(0, np.int64)

    def _update(self, width: int) -> None:
        """Say of every column so far where it goes; -1 is nowhere."""
        known = len(self.map)
        if width <= known:
            return
        names = self.keys.names(width)
        if self.wanted is not None:
            more = [self.place.get(names[k], -1) for k in range(known, width)]
        else:
            next_one, more = int(self.map.max(initial=-1)) + 1, []
            for k in range(known, width):
                more.append(-1 if names[k] in self.ignored else next_one)
                next_one += more[-1] >= 0
        self.map = np.concatenate([self.map, np.array(more, np.int64)])

    def names(self, width: int) -> Sequence[str]:
        """The chosen names among the first columns."""
        if self.wanted is not None:
            return self.wanted
        self._update(width)
        names = self.keys.names(width)
        return [names[k] for k in range(width) if self.map[k] >= 0]

    def take(self, X: Any, width: int) -> Any:
        """The chosen columns."""
        from scipy.sparse import csr_matrix

        self._update(width)
        columns = self.map[X.indices]
        keep = columns >= 0
        indptr = np.concatenate([[0], np.cumsum(keep)])[X.indptr].astype(np.int32)
        data, indices = X.data[keep], columns[keep].astype(np.int32)
        count = len(self.wanted) if self.wanted is not None else int(self.map[:width].max(initial=-1)) + 1
        n = settle(data, indices, indptr, count)
        return csr_matrix((data[:n], indices[:n], indptr), shape=(X.shape[0], count))


class Raw:
    """Sparse rows as they were read, to be checked and put in order."""

    def __init__(
        self,
        options: Options,
        data: np.ndarray,
        indices: np.ndarray,
        indptr: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        rows: np.ndarray,
    ) -> None:
        self.options, self.data, self.indices, self.indptr = options, data, indices, indptr
        self.y, self.weight, self.rows = y, weight, rows
        self.faults: dict[int, tuple[int, str]] = {}  # of a row: column or -1, and reason
        self.labels: dict[int, str] = {}

    def slow(self, fields: Iterable[tuple[int, int, str]]) -> None:
        """Fields that are no plain numbers: the row, the place of the value, and the text."""
        for t, k, text in fields:
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            column = int(self.indices[k]) if k >= 0 else -1
            if k == parsers.LABEL:
                self._label(t, text, value)
            elif not math.isfinite(value):
                what = "importance " if k == parsers.IMPORTANCE else ""
                self.faults.setdefault(t, (column, f"{what}{text!r} is not a finite number"))
            elif k == parsers.IMPORTANCE:
                self.weight[t] = value
            else:
                self.data[k] *= value

    def _label(self, t: int, text: str, value: float) -> None:
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

    def finish(self, width: int, unsorted: bool, weighted: bool, name: Any) -> Any:
        """Rows, targets, weights, places, and what was bad."""
        from scipy.sparse import csr_matrix

        n = int(self.indptr[-1])
        if weighted:
            for t in np.flatnonzero(~(self.weight >= 0.0)).tolist():
                self.faults.setdefault(t, (-1, f"importance {float(self.weight[t])!r} must be at least 0"))
        if unsorted:
            n = settle(self.data[:n], self.indices[:n], self.indptr, width)
            for k in np.flatnonzero(~np.isfinite(self.data[:n])).tolist():  # a product or a sum
                t = int(np.searchsorted(self.indptr, k, "right")) - 1
                self.faults.setdefault(t, (int(self.indices[k]), "the value overflows"))
        X = csr_matrix((len(self.y), width))  # given its arrays, it would check them and copy parts of larger ones
        X.data, X.indices, X.indptr = self.data[:n], self.indices[:n], self.indptr
        X.has_sorted_indices = X.has_canonical_format = True
        y = targets(self.y, self.labels, self.options)
        weight, rows = self.weight if weighted else None, self.rows
        bad = [Bad(rows[t].tolist(), name(c) if c >= 0 else "", why) for t, (c, why) in self.faults.items()]
        if bad:
            keep = np.ones(len(rows), bool)
            keep[list(self.faults)] = False
            X, rows = X[keep], rows[keep]
            y = None if y is None else y[keep]
            weight = None if weight is None else weight[keep]
        return X, y, weight, rows, bad


def targets(y: np.ndarray, labels: dict[int, str], options: Options) -> np.ndarray | None:
    """Targets as numbers, or as text where some are."""
    if options.target is None:
        return None
    if not options.labels and not labels:
        return y
    y = label_text(y)
    if labels:
        size = max(map(len, labels.values()))
        y = y.astype(f"<U{max(size, y.dtype.itemsize // 4)}")
        for t, text in labels.items():
            y[t] = text
    return y


def settle(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, width: int) -> int:
    """Put rows in ascending order of their columns and add up what has the same one, in place; the new size."""
    n = data.size
    few = width <= MARKED
    words = -(-width // 64) if few else 0
    bits, sums = np.zeros(words - (-words // 64), np.uint64), np.empty(width if few else 0)
    return int(
        parsers.sort_and_sum(
            data, indices, indptr, len(indptr) - 1, np.empty(n), np.empty((2, n), np.int64), bits, sums
        )
    )
