"""Rows as mappings from names to values: JSON lines, and dicts in memory."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import Chunk, Options, Position, Reject, Source
from .names import Buckets, Dictionary
from .sparse_text import Chosen, settle, targets
from .text import Bad, Batch, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Faulty(ValueError):  # noqa: N818
    """A value that cannot be taken: the column, and why."""


class Rows:
    """Mappings laid out as sparse rows, names in order of first sight."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.keys: Any = Buckets(options.hash_bits) if options.hash_bits else Dictionary(options.features or ())
        self.chosen = Chosen(self.keys, options) if options.features is not None or options.ignore else None
        self.auto = options.categorical == "auto"
        named = options.categorical
        self.categorical = frozenset((named,) if isinstance(named, str) else named)
        self.known: dict[str, int] = {}
        self.clear()

    def clear(self) -> None:
        """Begin a chunk."""
        self.data: list[float] = []
        self.indices: list[int] = []
        self.ends = [0]
        self.y: list[float] = []
        self.labels: dict[int, str] = {}
        self.weight: list[float] = []

    def column(self, name: str) -> int:
        """The column of a name."""
        k = self.known.get(name)
        if k is None or isinstance(self.keys, Buckets):
            k = self.keys.add(name)
            self.known[name] = k
        return k

    def add(self, row: Mapping[Any, Any], y: Any = None, weight: Any = None) -> bool:
        """Lay a row out; False where it is left out because a value is missing."""
        options = self.options
        data: list[float] = []
        names: list[str] = []
        for key, value in row.items():
            name = str(key)
            if name == options.target and y is None:
                y = value
            elif name == options.weight and weight is None:
                weight = value
            elif name not in options.ignore:
                if value is None or value is math.nan or value != value:
                    if options.missing == "skip":
                        return False
                    if options.missing == "error":
                        raise Faulty(name, "the value is missing")
                elif isinstance(value, str):
                    if not self.auto and name not in self.categorical:
                        raise Faulty(name, f"{value!r} is not a number")
                    names.append(f"{name}={value}")
                    data.append(1.0)
                else:
                    names.append(name)
                    data.append(number(name, value))
        label, text = self._target(y)
        if weight is not None or options.weight is not None:
            if weight is None:
                raise Faulty(options.weight, "the weight is missing")
            weight = number(options.weight or "weight", weight)
            if weight < 0.0:
                raise Faulty(options.weight or "weight", f"weight {weight!r} must be at least 0")
            self.weight.append(weight)
        if text is not None:
            self.labels[len(self.y)] = text
        self.y.append(label)
        self.indices += [self.column(name) for name in names]
        self.data += data
        self.ends.append(len(self.data))
        return True

    def _target(self, y: Any) -> tuple[float, str | None]:
        target = self.options.target
        if target is None:
            return 0.0, None
        if y is None or y == "" or y != y:
            raise Faulty(target, "the target is missing")
        if isinstance(y, str):
            try:
                return number(target, float(y)), None
            except ValueError:
                if self.options.labels is False:
                    raise Faulty(target, f"{y!r} is not a number") from None
                return 0.0, y
        return number(target, y), None

    def finish(self) -> tuple[Any, np.ndarray | None, np.ndarray | None, int]:
        """Rows, targets, weights and the number of columns so far."""
        from scipy.sparse import csr_matrix

        data, indices = np.array(self.data), np.array(self.indices, np.int32)
        indptr = np.array(self.ends, np.int32)
        width = int(self.keys.keys.used[0])
        n = settle(data, indices, indptr, width)
        X = csr_matrix((data[:n], indices[:n], indptr), shape=(len(self.y), width))
        if self.chosen is not None:
            X = self.chosen.take(X, width)
        weight = np.array(self.weight) if self.weight else None
        return X, targets(np.array(self.y, np.float64), self.labels, self.options), weight, width


def number(name: str, value: Any) -> float:
    """The value as a finite float."""
    try:
        v = float(value)
    except (TypeError, ValueError):
        raise Faulty(name, f"{type(value).__name__} {str(value)[:40]!r} is not a number") from None
    except OverflowError:
        raise Faulty(name, f"{str(value)[:40]}... is too large") from None
    if not math.isfinite(v):
        raise Faulty(name, f"{value!r} is not finite")
    return v


class Named(Source):
    """What sources of mappings share."""

    kind = "sparse"
    rows: Rows
    width = 0

    @property
    def names(self) -> Sequence[str]:
        rows = self.rows
        return rows.keys.names(self.width) if rows.chosen is None else rows.chosen.names(self.width)

    @property
    def collisions(self) -> int | None:
        """Columns that more than one name is mapped to; None without a hash."""
        return self.rows.keys.collisions if isinstance(self.rows.keys, Buckets) else None

    def state(self) -> dict[str, Any]:
        return self.rows.keys.state(self.width)

    def restore(self, state: dict[str, Any]) -> None:
        self.rows.keys.restore(state)
        self.width = int(self.rows.keys.keys.used[0])

    def _given(self, chunk: Chunk) -> None:
        self.width = chunk.position["width"]


class JsonLines(Named, Text):
    """One JSON object a line."""

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        self.rows = Rows(options)
        Text.__init__(self, paths, options)

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int) -> Batch:
        text = buf[begin:end].tobytes()
        last = len(text) if final else text.rfind(b"\n") + 1
        self.rows.clear()
        rows: list[tuple[int, int, int]] = []
        bad: list[Bad] = []
        a = 0
        while a < last:
            b = text.find(b"\n", a)
            b = last if b < 0 else b
            raw = text[a:b].strip()
            if raw:
                place = (begin + a, begin + b, line)
                try:
                    if self.rows.add(parse(raw)):
                        rows.append(place)
                except Faulty as fault:
                    bad.append(Bad(place, fault.args[0] or "", fault.args[1]))
            line += b < len(text)
            a = b + 1
        X, y, weight, width = self.rows.finish()
        places = np.array(rows, np.int64).reshape(-1, 3)
        return Batch(X, y, weight, places, begin + min(a, last), line, width, bad)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise Faulty(twice, f"{twice!r} stands twice in the row")
    return row


def parse(raw: bytes) -> dict[str, Any]:
    """The object on a line."""
    try:
        row = json.loads(raw, object_pairs_hook=_pairs)
    except Faulty:
        raise
    except UnicodeDecodeError as error:
        raise Faulty("", f"byte 0x{raw[error.start]:02x} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Faulty("", f"this is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise Faulty("", "this is not a JSON object")
    return row


class Dicts(Named):
    """Mappings in memory, or any iterable of them (which can then be read once only)."""

    def __init__(self, rows: Iterable[Mapping[Any, Any]], y: Any, weight: Any, options: Options) -> None:
        super().__init__("data", options)
        self.rows = Rows(options)
        self.items, self.y, self.weights = rows, y, weight
        self.reread = hasattr(rows, "__len__")

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        at: Position = {"offset": 0, "row": 0, "rejected": 0, "width": 0, "digest": None} | (start or {})
        begin = at["offset"]
        self.rows.clear()
        numbers: list[int] = []
        raws: list[Mapping[Any, Any]] = []
        rejects: list[Reject] = []
        size = max(1, self.options.chunk // 1024)
        for t, row in enumerate(self.items):
            if t < begin:
                continue
            try:
                y = None if self.y is None else self.y[t]
                if self.rows.add(row, y, None if self.weights is None else self.weights[t]):
                    numbers.append(t)
                    raws.append(row)
            except Faulty as fault:
                column, reason = fault.args
                if not self.options.rejects:
                    raise SourceError(f"data, row {t}, column {column!r}: {reason} (row: {str(row)[:120]!r})") from None
                rejects.append(Reject("data", t, column, reason, str(row)))
            if len(numbers) + len(rejects) >= size:
                yield self._chunk(t + 1, at, numbers, raws, rejects)
                numbers, raws, rejects = [], [], []
        if numbers or rejects:
            yield self._chunk(t + 1, at, numbers, raws, rejects)
        if at["row"] == 0 and at["rejected"] == 0:
            raise SourceError("data: there is no row")

    def _chunk(self, end: int, at: Position, numbers: list[int], raws: list[Any], rejects: list[Reject]) -> Chunk:
        X, y, weight, width = self.rows.finish()
        self.rows.clear()
        first = at["row"]
        at |= {"offset": end, "row": first + len(numbers), "rejected": at["rejected"] + len(rejects), "width": width}
        place = lambda i: f"data, row {numbers[i]}"  # noqa: E731
        return Chunk(X, y, weight, first, dict(at), 0, place, lambda i: str(raws[i]), rejects)
