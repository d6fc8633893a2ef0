"""JSON lines, and dicts in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import BadRow, Chunk, Position, ReadOptions, Reject, first_position
from .columns import repeated_name
from .json_array import JsonArray, open_json
from .mappings import FieldError, MappingBuilder
from .sparse import SparseSource
from .text import LINE_END, ParsedRows, TextSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .streams import ByteStream


class MappingSource(SparseSource):
    """A source of mappings."""

    def _build(self, options: ReadOptions) -> None:
        self.builder = MappingBuilder(options)
        self.features, self.selection = self.builder.features, self.builder.selection

    def restore(self, state: dict[str, Any]) -> None:
        self.builder.restore(state)
        self.width = self.builder.width


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
        row = json.loads(raw, object_pairs_hook=unique_names)
    except FieldError:
        raise
    except UnicodeDecodeError as error:
        raise FieldError("", f"byte 0x{raw[error.start]:02x} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise FieldError("", f"this is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise FieldError("", "this is not a JSON object")
    return row


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as a dict; a FieldError where a name appears twice."""
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
