"""JSON lines, also from an array of objects, and dicts in memory."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import Chunk, Position, ReadOptions, first_position
from .columns import repeated_name
from .mappings import FieldError, MappingBuilder
from .sparse import SparseSource
from .streams import ByteStream, Rewritten, standard_input
from .text import LINE_END, ParsedRows, TextSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


BLOCK = 1 << 20
BETWEEN = re.compile(r"\s*,?\s*")


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
        builder, a = self.builder, 0
        builder.clear()
        places: list[tuple[int, int, int]] = []
        for b, after in _line_ends(text, final):
            raw = text[a:b].strip()
            if raw:
                places.append((begin + a, begin + b, line))
                try:
                    builder.keep.append(builder.add(parse_object(raw)))
                except FieldError as error:
                    builder.reject(error)
            line += after > b
            a = after
        return ParsedRows(builder.take(at), np.array(places, np.int64).reshape(-1, 3), begin + a, line)


def _line_ends(text: bytes, final: bool) -> Iterator[tuple[int, int]]:
    """The end of each complete line, and the start of the next line."""
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
    """The pairs as a dict; a FieldError if a name appears twice."""
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
        at, builder = first_position(start), self.builder
        begin = at["offset"]
        builder.clear()
        held: list[Mapping[Any, Any]] = []
        size = max(1, self.options.chunk // 1024)  # rows: a dict is assumed to take a KiB
        for t, row in enumerate(self.items):
            if t < begin:
                continue
            held.append(row)
            try:
                y = None if self.y is None else self.y[t]
                builder.keep.append(builder.add(row, y, None if self.weight is None else self.weight[t]))
            except FieldError as error:
                builder.reject(error)
            if len(held) >= size or (builder.faults and not self.options.rejects):
                yield from self._chunk(at, held)
                held = []
        yield from self._chunk(at, held)

    def _chunk(self, at: Position, held: list[Any]) -> Iterator[Chunk]:
        rows = self.builder.take(at)
        numbers = at["offset"] + np.arange(len(held))
        at["offset"] += len(held)
        if rows.keep.any() or rows.faults:
            yield self._as_chunk(rows, numbers, lambda t: str(held[t]), at, 0, self.where)


class JsonArray(Rewritten):
    """The objects of a JSON array as JSON lines."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.decoder, self.scanner = codecs.getincrementaldecoder("utf-8-sig")(), json.JSONDecoder()
        self.text, self.block, self.begun, self.over, self.objects = "", BLOCK, False, False, 0

    def _advance(self) -> None:
        """Read the next block and take its complete objects; a larger object enlarges the next block."""
        try:
            text = self.text + self.decoder.decode(self._read_block(self.block), final=self.ended)
        except UnicodeDecodeError as error:
            raise SourceError(f"{self.where}: byte 0x{error.object[error.start]:02x} is not UTF-8") from None
        at, lines = 0, []
        if not self.begun:
            at, self.begun = text.index("[") + 1, True
        while True:
            between = BETWEEN.match(text, at)
            assert between is not None
            at = between.end()
            if not self.over and text[at : at + 1] == "]":
                at, self.over = at + 1, True
            if self.over and (rest := text[at:].strip()):
                raise SourceError(f"{self.where}: {rest[:20]!r} follows the end of the JSON array")
            if self.over:
                at = len(text)
                break
            try:
                _, end = self.scanner.raw_decode(text, at)
            except (ValueError, RecursionError) as error:
                if self.ended:
                    raise SourceError(f"{self.where}, object {self.objects + 1}: this is not JSON: {error}") from None
                break
            lines.append(re.sub(r"[\r\n]", " ", text[at:end]))
            self.objects += 1
            at = end
        self.text, self.block = text[at:], BLOCK if lines else 2 * self.block
        self.ready = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def holds_array(path: str) -> bool:
    """Whether a file begins like a JSON array of objects."""
    if path == "-":
        head = standard_input().peek(256)
    else:
        with ByteStream(path) as stream:
            room = bytearray(256)
            head = bytes(room[: stream.readinto(room)])
    return re.match(rb"\s*\[\s*\{", head.removeprefix(codecs.BOM_UTF8)) is not None


def open_json(path: str) -> ByteStream:
    """Open JSON lines, or an array of objects read as JSON lines."""
    return JsonArray(path) if holds_array(path) else ByteStream(path)
