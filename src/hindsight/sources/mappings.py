"""Mappings from names to values, built into sparse rows, for JSON lines, dicts and the service."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..rows.labels import MAX_WHOLE, label_type
from .base import EncodedRows
from .columns import repeated_name
from .labels import is_unicode, label_fault, merge_labels, read_target, reads_as_number
from .names import HashedNames, NameDictionary
from .sparse import make_canonical, select_features

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .base import Position, ReadOptions

LAYOUTS = 1000  # sets of names that are remembered
NUMBERS = frozenset({int, float})


class FieldError(ValueError):
    """A value that cannot be used: its column ("" for the whole row) and the reason."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(reason)
        self.column, self.reason = column, reason


Key = str | tuple[str, str]  # a feature: its name, or a column and the category there


def full_name(key: Key) -> str:
    """The name of a feature."""
    return key if isinstance(key, str) else "=".join(key)


def clash(key: Key, other: Key) -> FieldError:
    """The error for two features with the same name."""
    one, two = (f"feature {k!r}" if isinstance(k, str) else f"value {k[1]!r} of {k[0]!r}" for k in (key, other))
    return FieldError(key if isinstance(key, str) else key[0], f"{one} and {two} have the same name")


def _check_new(keys: list[Key], taken: dict[str, Key]) -> dict[str, Key]:
    """New features by name; raises an error if two features have the same name."""
    new: dict[str, Key] = {}
    for key in keys:
        name = full_name(key)
        if not is_unicode(name):
            raise FieldError(name, f"{name!r} is not Unicode text")
        other = taken.get(name, new.get(name))
        if other is not None:
            raise clash(key, other)
        new[name] = key
    return new


class Places(NamedTuple):
    """Where to put the values of rows of numbers that have the same names.

    Attributes
    ----------
    columns : list of int
        The columns of the features, ascending, all below `width`.
    order : list of int
        The position in the row of each feature's value; the target is left out.
    target : int
        The position of the target in the row; -1 if there is none.
    """

    columns: list[int]
    order: list[int]
    target: int
    width: int


class MappingBuilder:
    """Builds sparse rows from mappings, with features in order of first appearance.

    Rows of numbers that have the same, known names take a fast path that writes all values at once.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.features = HashedNames(options.hash_bits) if options.hash_bits else NameDictionary(link="=")
        self.selection = select_features(self.features, options)
        self.ignored = frozenset(options.ignore)
        self.auto = options.categorical == "auto"
        named = options.categorical
        self.categorical = frozenset((named,) if isinstance(named, str) else named)
        self.unread = self.ignored | {name for name in (options.target, options.weight) if name is not None}
        self.known: dict[Key, int] = {}  # the column of a feature
        self.taken: dict[str, Key] = {}  # by name: the feature that has it, if two could
        self.spaces: dict[str, int] = {}  # by column with categories: its namespace
        self.layouts: dict[tuple[Any, ...], Places] = {}  # by the names of a row
        self.eager = False  # whether to make the places at the first row, rather than when two rows have the same names
        self.last: tuple[Any, ...] = ()  # the names of the last row
        self.clear()

    @property
    def width(self) -> int:
        """The number of columns so far."""
        return len(self.features)

    @property
    def names(self) -> Sequence[str]:
        """The features, in order of first appearance."""
        return self.features.names(self.width)

    def state(self) -> dict[str, Any]:
        """How names are mapped to columns, for `restore`."""
        return self.features.state(self.width)

    def restore(self, state: dict[str, Any]) -> None:
        """Map names to columns as in a state."""
        self.features.restore(state)
        if isinstance(self.features, HashedNames):
            return
        self.known, self.taken, self.layouts = {}, {}, {}
        self.spaces = {space: k for k, space in enumerate(state["spaces"], 1)}
        for j, (k, name) in enumerate(self.features.parts(state)):
            self._keep((state["spaces"][k - 1], name) if k else name, state["names"][j], j)

    def mark(self) -> tuple[int, int]:
        """A mark of the current state, for `undo`."""
        return self.width, len(self.spaces)

    def undo(self, mark: tuple[int, int]) -> None:
        """Forget the names added since the mark; other threads may look up the remaining ones meanwhile."""
        if mark == self.mark():
            return
        width, spaces = mark
        while self.known and next(reversed(self.known.values())) >= width:
            self.taken.pop(full_name(self.known.popitem()[0]), None)
        while len(self.spaces) > spaces:
            self.spaces.popitem()
        self.layouts = {}
        state = self.features.state(width)
        self.features.restore(state | {"spaces": state["spaces"][:spaces]})

    def clear(self) -> None:
        """Start a new chunk."""
        self.data: list[float] = []
        self.indices: list[int] = []
        self.ends = [0]
        self.y: list[float] = []
        self.labels: dict[int, str] = {}
        self.types: set[type] = set()  # of the targets
        self.weight: list[float] = []
        self.unlabelled: list[int] = []
        self.keep: list[bool] = []
        self.faults: dict[int, tuple[str, str]] = {}

    def reject(self, error: FieldError) -> None:
        """Count a row that is bad."""
        self.faults[len(self.keep)] = error.column, error.reason
        self.keep.append(False)

    def take(self, at: Position) -> EncodedRows:
        """The rows since `clear`, counted in a position, without the bad and the skipped ones; starts a new chunk."""
        X, y, weight, at["width"] = self.finish()
        if self.unlabelled:
            at["unlabelled"] = at.get("unlabelled", 0) + len(self.unlabelled)
        at["label_type"] = label_type(self.types, at.get("label_type"))
        rows = EncodedRows(X, y, weight, np.array(self.keep, bool), self.faults)
        self.clear()
        return rows

    def columns(self, keys: list[Key]) -> list[int]:
        """The columns of a row's features, new ones added; none is added if two have the same name."""
        if len(set(keys)) < len(keys):
            repeated = repeated_name(keys)
            raise clash(repeated, repeated)
        if isinstance(self.features, HashedNames):
            _check_new(keys, {})
            return [self.features.add(full_name(key)) for key in keys]
        found = [self.known.get(key, -1) for key in keys]
        if -1 in found:
            new = [key for key, k in zip(keys, found, strict=True) if k < 0]
            for name, key in _check_new(new, self.taken).items():
                self._keep(key, name, self._add(key))
            found = [self.known[key] for key in keys]
        return found

    def _add(self, key: Key) -> int:
        assert isinstance(self.features, NameDictionary)
        if isinstance(key, str):
            return self.features.add(key)
        column, value = key
        if column not in self.spaces:
            self.spaces[column] = self.features.add_space(column)
        return self.features.add(value, self.spaces[column])

    def _keep(self, key: Key, name: str, k: int) -> None:
        self.known[key] = k
        if "=" in name:
            self.taken[name] = key

    def cells(
        self, row: Mapping[Any, Any], y: Any = None, weight: Any = None
    ) -> tuple[list[Key], list[float], Any, Any] | None:
        """The features of a row with their values, its target and weight; None if it is skipped for a missing value."""
        options = self.options
        data: list[float] = []
        keys: list[Key] = []
        for key, value in row.items():
            name = str(key)
            if name == options.target and y is None:
                y = value
            elif name == options.weight and weight is None:
                weight = value
            elif name not in self.ignored:
                if value is None or value is math.nan or value != value:
                    if options.missing == "skip":
                        return None
                    if options.missing == "error":
                        raise FieldError(name, "the value is missing")
                    if options.missing in ("indicator", "mean"):
                        keys.append(f"{name} is missing")
                        data.append(1.0)
                elif isinstance(value, str):
                    if not self.auto and name not in self.categorical:
                        raise FieldError(name, f"{value!r} is not a number")
                    keys.append((name, value))
                    data.append(1.0)
                else:
                    keys.append(name)
                    data.append(finite_float(name, value))
        return keys, data, y, weight

    def add(self, row: Mapping[Any, Any], y: Any = None, weight: Any = None) -> bool:
        """Add a row; returns False if it is skipped because a value is missing."""
        options = self.options
        if type(row) is dict and y is None and weight is None and options.weight is None:
            names = tuple(row)
            if names != self.last and not self.eager:  # it does not pay if all rows have different names
                self.last = names
            elif self._add_numbers(names, row, self.width, options.target is not None):
                return True
        found = self.cells(row, y, weight)
        if found is None:
            return False
        keys, data, y, weight = found
        unlabelled = not options.strict and options.target is not None and is_gone(y)
        label, text = (0.0, None) if unlabelled else self.target(y)
        if weight is not None or options.weight is not None:
            column = options.weight or "weight"
            if weight is None:
                raise FieldError(column, "the weight is missing")
            weight = finite_float(column, weight)
            if weight < 0.0:
                raise FieldError(column, f"weight {weight!r} must be at least 0")
        columns = self.columns(keys)
        if weight is not None:
            self.weight.append(weight)
        if unlabelled:
            self.unlabelled.append(len(self.y))
        if text is not None:
            self.labels[len(self.y)] = text
        self.y.append(label)
        self.indices += columns
        self.data += data
        self.ends.append(len(self.data))
        return True

    def add_known(self, row: Mapping[Any, Any], width: int) -> bool:
        """Add a row to be predicted, using only columns below `width`; returns False if it is skipped."""
        if type(row) is dict and self._add_numbers(tuple(row), row, width, False):
            return True
        found = self.cells(row)
        if found is None:
            return False
        pairs = ((self.known.get(key, width), value) for key, value in zip(*found[:2], strict=True))
        for column, value in sorted(pair for pair in pairs if pair[0] < width):
            self.indices.append(column)
            self.data.append(value)
        self.ends.append(len(self.data))
        return True

    def _add_numbers(self, names: tuple[Any, ...], row: Mapping[Any, Any], width: int, learnt: bool) -> bool:
        """Add a row of numbers whose names are known; returns False if it must be handled value by value."""
        values = list(row.values())
        if not NUMBERS.issuperset(map(type, values)):
            self.last = ()
            return False
        places = self.layouts.get(names) or self._places(names)
        if places is None or places.width > width or (places.target >= 0) != learnt:
            return False
        try:
            if not math.isfinite(sum(values)):
                return False
            y = values.pop(places.target) if learnt else 0.0
            if abs(y) >= MAX_WHOLE and self.options.labels is not False:
                return False
            target, data = float(y), [float(values[k]) for k in places.order]
        except OverflowError:
            return False
        if learnt:
            self.types.add(type(y))
        self.y.append(target)
        self.data += data
        self.indices += places.columns
        self.ends.append(len(self.data))
        return True

    def _places(self, names: tuple[Any, ...]) -> Places | None:
        """Where to put the values of rows with these names, if all but the target are known features."""
        target = self.options.target
        features = [name for name in names if name != target]
        known = {} if self.unread.intersection(features) else self.known
        columns = [known.get(name, -1) if type(name) is str else -1 for name in features]
        if min(columns, default=-1) < 0:
            return None
        if len(self.layouts) >= LAYOUTS:
            self.layouts.clear()
        order = sorted(range(len(columns)), key=columns.__getitem__)
        at = names.index(target) if target in names else -1
        self.layouts[names] = found = Places(sorted(columns), order, at, max(columns) + 1)
        return found

    def target(self, y: Any) -> tuple[float, str | None]:
        """A target as a number, and as text if it is not a number or cannot be represented in float64."""
        target = self.options.target
        if target is None:
            return 0.0, None
        if is_gone(y):
            raise FieldError(target, "the target is missing")
        self.types.add(type(y))
        if not isinstance(y, str):
            value = finite_float(target, y)
            exact = self.options.labels is False or not isinstance(y, (int, np.integer)) or int(value) == y
            return value, None if exact else str(y)
        value, label = read_target(y, self.options.labels)
        if label is None and not reads_as_number(y):
            raise FieldError(target, f"{y!r} is not a number")
        if label is not None and (fault := label_fault(label)):
            raise FieldError(target, fault)
        return (finite_float(target, value), None) if label is None else (0.0, label)

    def finish(self) -> tuple[Any, np.ndarray | None, np.ndarray | None, int]:
        """Rows, targets, weights and the number of columns so far."""
        from scipy.sparse import csr_matrix

        data, indices = np.array(self.data), np.array(self.indices, np.int32)
        indptr = np.array(self.ends, np.int32)
        width = self.width
        n = make_canonical(data, indices, indptr, width)
        X = csr_matrix((data[:n], indices[:n], indptr), shape=(len(self.y), width))
        if self.selection is not None:
            X = self.selection.take(X, width)
        weight = np.array(self.weight) if self.weight else None
        y = merge_labels(np.array(self.y, np.float64), self.labels, self.options)
        if self.unlabelled and y is not None:
            y[self.unlabelled] = np.nan if y.dtype.kind == "f" else ""
            weight = np.ones(len(y)) if weight is None else weight
            weight[self.unlabelled] = 0.0
        return X, y, weight, width


def is_gone(y: Any) -> bool:
    """Whether the target is missing."""
    return bool(y is None or y == "" or y != y)


def finite_float(column: str, value: Any) -> float:
    """The value as a finite float."""
    try:
        v = float(value)
    except (TypeError, ValueError):
        raise FieldError(column, f"{type(value).__name__} {str(value)[:40]!r} is not a number") from None
    except OverflowError:
        raise FieldError(column, f"{str(value)[:40]}... is too large") from None
    if not math.isfinite(v):
        raise FieldError(column, f"{value!r} is not finite")
    return v
