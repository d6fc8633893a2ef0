"""What each column of a table is, and its rows put together: the same for CSV, Parquet, Arrow and data frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from . import parsers
from .base import Options, label_text, nearest
from .names import Dictionary
from .text import Bad

if TYPE_CHECKING:
    from collections.abc import Sequence


GONE = frozenset(("", "NA", "N/A", "na", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?"))  # missing numbers
TURN = 1024  # rows that columns are turned into at a time, so that they stay in cache


def is_number(text: str) -> bool:
    """Whether Python takes it for a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


class Plan:
    """Columns sorted out: features, categories (whose values become features "column=value"), target, weight."""

    def __init__(self, names: Sequence[str], options: Options, where: str, texts: Sequence[str]) -> None:
        self.columns, self.options, self.where = list(names), options, where
        if options.hash_bits is not None:
            raise SourceError(f"{where}: hash_bits is for sparse text and JSON lines; the columns of a table are fixed")
        for k, name in enumerate(names):
            if name in names[:k]:
                raise SourceError(f"{where}: column {name!r} appears twice in the header")
        chosen = [options.categorical] if isinstance(options.categorical, str) else list(options.categorical)
        special = [name for name in (options.target, options.weight) if name is not None]
        auto = options.categorical == "auto"
        for name in [*special, *(options.features or ()), *options.ignore, *(() if auto else chosen)]:
            if name not in names:
                raise SourceError(f"{where}: there is no column {name!r}{nearest(name, names)}")
        if len(set(special)) < len(special):
            raise SourceError(f"{where}: column {special[0]!r} cannot be both target and weight")
        used = names if options.features is None else options.features
        used = [name for name in used if name not in special and name not in options.ignore]
        if not used:
            raise SourceError(f"{where}: there is no column beside the target {options.target!r}")
        if auto:
            chosen = [name for name in texts if name in used]
        self.numeric = [name for name in used if name not in chosen]
        self.categorical = [name for name in used if name in chosen]
        self.features, self.categories = len(self.numeric), len(self.categorical)
        self.kind = "sparse" if self.categorical else "dense"
        self.kinds = np.full(len(names), parsers.IGNORE, np.int64)
        self.dest = np.zeros(len(names), np.int64)
        for j, name in enumerate(self.numeric):
            self._put(name, parsers.FEATURE, j)
        for j, name in enumerate(self.categorical):
            self._put(name, parsers.CATEGORY, j)
        if options.target is not None:
            self._put(options.target, parsers.TARGET, 0)
        if options.weight is not None:
            self._put(options.weight, parsers.WEIGHT, 0)
        self.dictionary = Dictionary(self.numeric, self.categorical, "=")

    def _put(self, name: str, kind: int, dest: int) -> None:
        j = self.columns.index(name)
        self.kinds[j], self.dest[j] = kind, dest

    def names(self, width: int) -> Sequence[str]:
        """The features: numbers first, then indicators in order of first sight."""
        return self.dictionary.names(max(width, self.features))

    def state(self, width: int) -> dict[str, Any]:
        """How the features are numbered, for `restore`."""
        return self.dictionary.state(max(width, self.features))

    def restore(self, state: dict[str, Any]) -> int:
        """Number features as they were before; how many there are."""
        if state["names"][: self.features] != self.numeric or state["spaces"] != self.categorical:
            raise SourceError(f"{self.where}: its features are not those read before")
        self.dictionary.restore(state)
        return len(state["names"])


class Rough:
    """Rows of numbers and categories as they were read, to be checked and put together."""

    def __init__(self, plan: Plan, X: np.ndarray, y: np.ndarray, weight: np.ndarray, ids: np.ndarray) -> None:
        self.plan, self.X, self.y, self.weight, self.ids = plan, X, y, weight, ids
        self.faults: dict[int, tuple[str, str]] = {}  # of a row: column and reason
        self.left: set[int] = set()  # rows to leave out without a word
        self.labels: dict[int, str] = {}  # of a row: its target, where it is text
        self.whole: list[tuple[int, np.ndarray]] = []  # columns of X that are sound throughout

    def fault(self, t: int, column: str, reason: str) -> None:
        """A row is bad; what was said first stays."""
        self.faults.setdefault(t, (column, reason))

    def field(self, t: int, c: int, text: str) -> None:
        """Column c of row t stands as this text, which is no plain number."""
        plan, options = self.plan, self.plan.options
        kind, name, text = plan.kinds[c], plan.columns[c], text.strip()
        target = kind == parsers.TARGET
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        wanted = text not in GONE if options.labels is None else options.labels
        if target and text and wanted and not is_number(text):
            self.labels[t] = text
        elif math.isfinite(value):
            self._set(t, c, value)
        elif text in GONE:
            self.missing(t, c)
        else:
            self.fault(t, name, f"{text!r} is not {'finite' if is_number(text) else 'a number'}")

    def numbers(self, c: int, values: np.ndarray, given: np.ndarray | None) -> None:
        """Column c has these values in the rows where they are given (None: in all); NaN is missing."""
        kind, name = self.plan.kinds[c], self.plan.columns[c]
        place = self.X[:, self.plan.dest[c]] if kind == parsers.FEATURE else self.y
        place = self.weight if kind == parsers.WEIGHT else place
        if given is None:
            if np.isfinite(values).all() and kind == parsers.FEATURE:
                self.whole.append((int(self.plan.dest[c]), values))
                return
            place[:] = values
            given = np.ones(len(values), bool)
        else:
            place[given] = values[given]
        for t in np.flatnonzero(given & ~np.isfinite(values)).tolist():
            if np.isnan(values[t]):
                self.missing(t, c)
            else:
                self.fault(t, name, f"'{values[t]}' is not finite")

    def missing(self, t: int, c: int) -> None:
        """Column c of row t has no value."""
        kind, name, rule = self.plan.kinds[c], self.plan.columns[c], self.plan.options.missing
        if rule == "skip":
            self.left.add(t)
        elif rule == "zero" and kind == parsers.FEATURE:
            self._set(t, c, 0.0)
        elif rule == "zero" and kind == parsers.CATEGORY:
            self.ids[t, self.plan.dest[c]] = -1
        else:
            what = {parsers.TARGET: "the target", parsers.WEIGHT: "the weight"}.get(int(kind), "the value")
            self.fault(t, name, f"{what} is missing")

    def _set(self, t: int, c: int, value: float) -> None:
        kind = self.plan.kinds[c]
        if kind == parsers.FEATURE:
            self.X[t, self.plan.dest[c]] = value
        elif kind == parsers.TARGET:
            self.y[t] = value
        else:
            self.weight[t] = value

    def finish(
        self, rows: np.ndarray, width: int
    ) -> tuple[Any, np.ndarray | None, np.ndarray | None, np.ndarray, list[Bad]]:
        """Rows, targets and weights without the bad rows, and those."""
        plan, options = self.plan, self.plan.options
        for a in range(0, len(self.X), TURN):
            for j, values in self.whole:
                self.X[a : a + TURN, j] = values[a : a + TURN]
        if options.weight is not None:
            for t in np.flatnonzero(~(self.weight >= 0.0)).tolist():
                self.fault(t, options.weight, f"weight {float(self.weight[t])!r} must be at least 0")
        gone = self.left | self.faults.keys()
        bad = [Bad(rows[t], *self.faults[t]) for t in self.faults if t not in self.left]
        y: np.ndarray | None = None
        if options.target is not None:
            y = self.y
            if options.labels or self.labels:
                y = label_text(y)
                if self.labels:
                    size = max(map(len, self.labels.values()))
                    y = y.astype(f"<U{max(size, y.dtype.itemsize // 4)}")
                    for t, text in self.labels.items():
                        y[t] = text
        X, ids, weight = self.X, self.ids, self.weight
        if gone:
            keep = np.ones(len(rows), bool)
            keep[list(gone)] = False
            X, ids, weight, rows = X[keep], ids[keep], weight[keep], rows[keep]
            y = None if y is None else y[keep]
        return (
            X if plan.kind == "dense" else indicators(X, ids, width, plan.where),
            y,
            weight if options.weight is not None else None,
            rows,
            bad,
        )


def indicators(X: np.ndarray, ids: np.ndarray, width: int, where: str) -> Any:
    """Numbers and indicators as sparse rows; -1 is no indicator."""
    from scipy.sparse import csr_matrix

    n = X.shape[1]
    ids = np.sort(ids, axis=1)
    real = ids >= 0
    if (ids[real] < n).any() or ((ids[:, 1:] == ids[:, :-1]) & real[:, 1:]).any():
        raise SourceError(f"{where}: two columns give features of the same name")
    keep = np.hstack([np.ones(X.shape, bool), real])
    indices = np.hstack([np.broadcast_to(np.arange(n, dtype=np.int32), X.shape), ids.astype(np.int32)])[keep]
    data = np.hstack([X, np.ones(ids.shape)])[keep]
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).astype(np.int32)
    return csr_matrix((data, indices, indptr), shape=(len(X), width))
