"""Rows as mappings from names to values: JSON lines, and dicts in memory."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from ..rows.labels import label_number, label_type, parse_float
from .base import BadRow, Chunk, Position, ReadOptions, Reject, first_position
from .columns import repeated_name
from .json_array import JsonArray, open_json
from .labels import is_unicode, label_fault, merge_labels
from .names import HashedNames, NameDictionary
from .sparse import SparseSource, make_canonical, select_features
from .text import LINE_END, ParsedRows, TextSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .streams import ByteStream


class FieldError(ValueError):
    """A value that cannot be used: its column (or "" for the whole row), and why."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(reason)
        self.column, self.reason = column, reason


Key = str | tuple[str, str]  # a feature: its name, or a column and the category there


def full_name(key: Key) -> str:
    """The name of a feature."""
    return key if isinstance(key, str) else "=".join(key)


def clash(key: Key, other: Key) -> FieldError:
    """The error of two features that have the same name."""
    one, two = (f"feature {k!r}" if isinstance(k, str) else f"value {k[1]!r} of {k[0]!r}" for k in (key, other))
    return FieldError(key if isinstance(key, str) else key[0], f"{one} and {two} have the same name")


def _check_new(keys: list[Key], taken: dict[str, Key]) -> dict[str, Key]:
    """New features by name; an error where the name of one is that of another."""
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


class MappingBuilder:
    """Mappings put together as sparse rows, names in order of first appearance."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.features = HashedNames(options.hash_bits) if options.hash_bits else NameDictionary(link="=")
        self.selection = select_features(self.features, options)
        self.ignored = frozenset(options.ignore)
        self.auto = options.categorical == "auto"
        named = options.categorical
        self.categorical = frozenset((named,) if isinstance(named, str) else named)
        self.known: dict[Key, int] = {}  # the column of a feature
        self.taken: dict[str, Key] = {}  # by name: the feature that has it, where two could
        self.spaces: dict[str, int] = {}  # by column with categories: its namespace
        self.types: set[type] = set()  # of the targets since `clear`
        self.clear()

    def restore(self, state: dict[str, Any]) -> None:
        """Know the features of a state that `features` was restored from."""
        if isinstance(self.features, HashedNames):
            return
        self.known, self.taken = {}, {}
        self.spaces = {space: k for k, space in enumerate(state["spaces"], 1)}
        for j, (name, k) in enumerate(zip(state["names"], state["space"], strict=True)):
            column = state["spaces"][k - 1] if k else ""
            self._keep((column, name[len(column) + 1 :]) if k else name, name, j)

    def clear(self) -> None:
        """Begin a chunk."""
        self.data: list[float] = []
        self.indices: list[int] = []
        self.ends = [0]
        self.y: list[float] = []
        self.labels: dict[int, str] = {}
        self.types.clear()
        self.weight: list[float] = []
        self.unlabelled: list[int] = []

    def columns(self, keys: list[Key]) -> list[int]:
        """The columns of the features of a row; none is added where two have the same name."""
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
        """The features of a row, their values, its target and weight; None if a missing value makes it be skipped."""
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
        """Add a row; False if it is skipped because a value is missing."""
        found, options = self.cells(row, y, weight), self.options
        if found is None:
            return False
        keys, data, y, weight = found
        unlabelled = not options.strict and options.target is not None and is_gone(y)
        label, text = (0.0, None) if unlabelled else self._target(y)
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

    def _target(self, y: Any) -> tuple[float, str | None]:
        target = self.options.target
        if target is None:
            return 0.0, None
        if is_gone(y):
            raise FieldError(target, "the target is missing")
        numbers = self.options.labels is False
        self.types.add(type(y))
        if not isinstance(y, str):
            value = finite_float(target, y)
            exact = numbers or not isinstance(y, (int, np.integer)) or int(value) == y
            return value, None if exact else str(y)
        try:
            value = parse_float(y)
        except ValueError:
            if numbers:
                raise FieldError(target, f"{y!r} is not a number") from None
            if fault := label_fault(y):
                raise FieldError(target, fault) from None
            return 0.0, y
        exact = numbers or not math.isnan(label_number(y))
        return finite_float(target, value), None if exact else y

    def count(self, at: Position) -> None:
        """Tell a position how many rows had no target since `clear`, and of which type the targets are."""
        if self.unlabelled:
            at["unlabelled"] = at.get("unlabelled", 0) + len(self.unlabelled)
        at["label_type"] = label_type(self.types, at.get("label_type"))

    def finish(self) -> tuple[Any, np.ndarray | None, np.ndarray | None, int]:
        """Rows, targets, weights and the number of columns so far."""
        from scipy.sparse import csr_matrix

        data, indices = np.array(self.data), np.array(self.indices, np.int32)
        indptr = np.array(self.ends, np.int32)
        width = len(self.features)
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
    """Whether there is no target."""
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


class MappingSource(SparseSource):
    """A source of mappings."""

    def _build(self, options: ReadOptions) -> None:
        self.builder = MappingBuilder(options)
        self.features, self.selection = self.builder.features, self.builder.selection

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.builder.restore(state)


class JsonLinesSource(MappingSource, TextSource):
    """One JSON object per line, or an array of them."""

    def __init__(self, paths: Sequence[str], options: ReadOptions) -> None:
        self._build(options)
        super().__init__(paths, options)

    def _open(self, path: str) -> ByteStream:
        stream = open_json(path)
        self.unit = "object" if isinstance(stream, JsonArray) else "line"
        return stream

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int, at: Position) -> ParsedRows:
        text = buf[begin:end].tobytes()
        self.builder.clear()
        rows: list[tuple[int, int, int]] = []
        bad: list[BadRow] = []
        a = 0
        for b, after in _line_ends(text, final):
            raw = text[a:b].strip()
            if raw:
                place = (begin + a, begin + b, line)
                try:
                    if self.builder.add(parse_object(raw)):
                        rows.append(place)
                except FieldError as error:
                    bad.append(BadRow(place, error.column, error.reason))
            line += after > b
            a = after
        X, y, weight, width = self.builder.finish()
        places = np.array(rows, np.int64).reshape(-1, 3)
        self.builder.count(at)
        return ParsedRows(X, y, weight, places, begin + a, line, width, bad)


def _line_ends(text: bytes, final: bool) -> Iterator[tuple[int, int]]:
    """Where each whole line ends, and where the next one begins."""
    size = len(text)
    for end in LINE_END.finditer(text):
        b, after = end.span()
        if not final and (after == b or (after == size and text[b:] == b"\r")):  # more may follow in the next block
            return
        if after > b or (b and text[b - 1] not in b"\r\n"):
            yield b, after


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object on a line."""
    try:
        row = json.loads(raw, object_pairs_hook=_unique)
    except FieldError:
        raise
    except UnicodeDecodeError as error:
        raise FieldError("", f"byte 0x{raw[error.start]:02x} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise FieldError("", f"this is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise FieldError("", "this is not a JSON object")
    return row


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        repeated = repeated_name([name for name, _ in pairs])
        raise FieldError(repeated, f"{repeated!r} appears twice in the row")
    return row


class DictSource(MappingSource):
    """Mappings in memory, or any iterable of them (which can then be read only once)."""

    def __init__(self, rows: Iterable[Mapping[Any, Any]], y: Any, weight: Any, options: ReadOptions) -> None:
        super().__init__("data", options)
        self._build(options)
        self.items, self.y, self.weight = rows, y, weight
        self.reread = hasattr(rows, "__len__")

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        at = first_position(start)
        begin = at["offset"]
        self.builder.clear()
        numbers: list[int] = []
        raws: list[Mapping[Any, Any]] = []
        rejects: list[Reject] = []
        size = max(1, self.options.chunk // 1024)  # rows: a dict is taken to be worth a KiB
        for t, row in enumerate(self.items):
            if t < begin:
                continue
            try:
                y = None if self.y is None else self.y[t]
                if self.builder.add(row, y, None if self.weight is None else self.weight[t]):
                    numbers.append(t)
                    raws.append(row)
            except FieldError as error:
                rejects.append(self._reject(self.where, "row", t, error.column, error.reason, str(row)))
            if len(numbers) + len(rejects) >= size:
                yield self._chunk(t + 1, at, numbers, raws, rejects)
                numbers, raws, rejects = [], [], []
        if numbers or rejects:
            yield self._chunk(t + 1, at, numbers, raws, rejects)
        if at["row"] == 0 and at["rejected"] == 0:
            raise SourceError(f"{self.where}: there is no row")

    def _chunk(self, end: int, at: Position, numbers: list[int], raws: list[Any], rejects: list[Reject]) -> Chunk:
        X, y, weight, width = self.builder.finish()
        self.builder.count(at)
        self.builder.clear()
        at |= {"offset": end, "width": width}
        return self._as_chunk((X, y, weight), at, 0, self.where, numbers, lambda i: str(raws[i]), rejects)
