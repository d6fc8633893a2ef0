"""Roles of the columns of a table, and rows built from them, for CSV, Parquet, Arrow and data frames."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import EncodedRows, ReadOptions, Source, check_known, select_rows
from .labels import label_fault, merge_labels, read_target, reads_as_number
from .names import NameDictionary
from .parsers.csv import CATEGORY, FEATURE, IGNORE, TARGET, WEIGHT
from .tables.cells import HARD_WORDS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

MISSING_TEXTS = frozenset(HARD_WORDS)
TRANSPOSED = 1024  # rows that are filled from columns at a time


class Layout:
    """The numbering of a table's features: the fixed ones first, then new ones in order of first appearance.

    `fixed` holds the names of the fixed features; `spaces` holds the namespaces of the others in `dictionary`.
    """

    where: str
    fixed: list[str]
    spaces: list[str]
    dictionary: NameDictionary

    @property
    def width(self) -> int:
        """The number of features so far."""
        return max(len(self.dictionary), len(self.fixed))

    def names(self, width: int) -> Sequence[str]:
        """The features up to a width."""
        return self.dictionary.names(max(width, len(self.fixed)))

    def state(self, width: int) -> dict[str, Any]:
        """How the features are numbered, for `restore`."""
        return self.dictionary.state(max(width, len(self.fixed)))

    def restore(self, state: dict[str, Any]) -> int:
        """Number the features as in a saved state; returns their number."""
        if state["names"][: len(self.fixed)] != list(self.names(0)) or state["spaces"] != self.spaces:
            raise SourceError(f"{self.where}: its features are not those that were read before")
        self.dictionary.restore(state)
        return len(state["names"])

    def resolved_options(self) -> dict[str, Any]:
        """Parameters of `open_source` to read other files in the same way."""
        raise NotImplementedError


class ColumnLayout(Layout):
    """The role of each column: a feature, a category (whose values become features "column=value"), target, weight."""

    def __init__(self, names: Sequence[str], options: ReadOptions, where: str, text_columns: Sequence[str]) -> None:
        self.columns, self.options, self.where = list(names), options, where
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
        """Parameters of `open_source` to read other files in the same way."""
        return {"features": [*self.fixed, *self.spaces], "ignore": [], "categorical": self.spaces}


def repeated_name(names: Sequence[Any]) -> Any:
    """The first name that appears twice."""
    counts = Counter(names)
    return next(name for name in names if counts[name] > 1)


class TableSource(Source):
    """A source whose columns have fixed roles."""

    layout: ColumnLayout

    @property
    def encoding(self) -> Layout:
        """What numbers the features."""
        return self.layout

    @property
    def names(self) -> Sequence[str]:
        return self.encoding.names(self.width)

    def state(self) -> dict[str, Any]:
        return self.encoding.state(self.width)

    def restore(self, state: dict[str, Any]) -> None:
        self.width = self.encoding.restore(state)

    def resolved_options(self) -> dict[str, Any]:
        return self.encoding.resolved_options()


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

    def set_numbers(self, c: int, values: np.ndarray, given: np.ndarray | None) -> None:
        """Set the values of column c in the rows where `given` is True (None: in all rows); NaN is missing."""
        role, name, place = self.layout.roles[c], self.layout.columns[c], self._column(c)
        if given is None:
            if np.isfinite(values).all() and role == FEATURE:
                self.complete.append((int(self.layout.dest[c]), values))
                return
            place[:] = values
            given = np.ones(len(values), bool)
        else:
            place[given] = values[given]
        for t in np.flatnonzero(given & ~np.isfinite(values)).tolist():
            if np.isnan(values[t]):
                self.set_missing(t, c)
            else:
                self.add_fault(t, name, f"'{values[t]}' is not finite")

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


def new_names(
    found: Iterable[tuple[Sequence[int] | np.ndarray, np.ndarray | None, Sequence[Any]]], known: Container[Any] = ()
) -> list[Any]:
    """Names that are not known yet, ordered by the row, then the column, in which they first appear.

    Each column has rows, ascending, the number of the name in each of them (None: all have the first), and its names;
    None is no name.
    """
    new = []
    for order, (rows, codes, names) in enumerate(found):
        if codes is None:
            met, first = [0][: len(rows)], [0]
        else:
            met, first = (each.tolist() for each in np.unique(codes, return_index=True))
        pairs = ((int(rows[at]), names[k]) for k, at in zip(met, first, strict=False))
        new += [(row, order, name) for row, name in pairs if name is not None and name not in known]
    return list(dict.fromkeys(name for *_, name in sorted(new)))


def fill_columns(X: np.ndarray, columns: Iterable[tuple[int, np.ndarray]]) -> None:
    """Fill columns of an array, given by their indices, a block of rows at a time so that it stays in the cache."""
    columns = list(columns)
    for a in range(0, len(X), TRANSPOSED):
        for j, values in columns:
            X[a : a + TRANSPOSED, j] = values[a : a + TRANSPOSED]


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
