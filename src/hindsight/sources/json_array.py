"""A JSON array of objects, read as one object per line."""

from __future__ import annotations

import codecs
import json
import re

from ..errors import SourceError
from .streams import ByteStream, Rewritten, standard_input

BLOCK = 1 << 20
BETWEEN = re.compile(r"\s*,?\s*")


class JsonArray(Rewritten):
    """The objects of an array, each in a line of its own."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.decoder, self.scanner = codecs.getincrementaldecoder("utf-8-sig")(), json.JSONDecoder()
        self.text, self.block, self.begun, self.over, self.objects = "", BLOCK, False, False, 0

    def _advance(self) -> None:
        """Read the next block, and take the objects that are whole; a longer one makes the next block larger."""
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
    """Whether a text begins as a JSON array of objects does."""
    if path == "-":
        head = standard_input().peek(256)
    else:
        with ByteStream(path) as stream:
            room = bytearray(256)
            head = bytes(room[: stream.readinto(room)])
    return re.match(rb"\s*\[\s*\{", head.removeprefix(codecs.BOM_UTF8)) is not None


def open_json(path: str) -> ByteStream:
    """JSON lines, also where the file holds an array of objects."""
    return JsonArray(path) if holds_array(path) else ByteStream(path)
