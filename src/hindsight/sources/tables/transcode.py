"""A stream of another encoding, quote or separator, read as UTF-8 with quotes and single separators."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any

from ...errors import SourceError
from ..streams import ByteStream

if TYPE_CHECKING:
    from .sniff import Dialect

BLOCK = 1 << 20
SWAP = str.maketrans("'\"", "\"'")


class Transcoded(ByteStream):
    """The bytes of a file as UTF-8, with runs of blanks as one space where those separate fields."""

    def __init__(self, path: str, dialect: Dialect) -> None:
        super().__init__(path)
        self.plain = dialect.encoding == "utf-8"
        self.encoding, self.white, self.swap = dialect.encoding, dialect.separator == " ", dialect.quote == "'"
        self.decoder = codecs.getincrementaldecoder("utf-8-sig" if self.plain else dialect.encoding)(
            "surrogateescape" if self.plain else "strict"
        )
        self.ready, self.text, self.raw_read = b"", "", 0

    @property
    def consumed(self) -> int:
        return self.counter.count if self.compressed else self.raw_read

    @property
    def finished(self) -> bool:
        return self.ended and not self.ready

    def readinto(self, view: Any) -> int:
        """Fill the view as far as there are bytes; returns how many, 0 at the end."""
        filled, view = 0, memoryview(view)
        while filled < len(view):
            if not self.ready:
                if self.ended:
                    break
                self._advance()
                continue
            part = self.ready[: len(view) - filled]
            view[filled : filled + len(part)] = part
            self.ready, filled = self.ready[len(part) :], filled + len(part)
        self.delivered += filled
        return filled

    def _advance(self) -> None:
        """Read and transcode the next block."""
        room, before = bytearray(BLOCK), self.delivered
        n = super().readinto(room)
        self.delivered = before
        self.raw_read += n
        try:
            text = self.decoder.decode(bytes(room[:n]), final=self.ended)
        except UnicodeDecodeError as error:
            at = self.raw_read - n + error.start
            raise SourceError(
                f"{self.where}: byte 0x{error.object[error.start]:02x} near byte {at:,} is not {self.encoding}: say "
                "what the file is with --encoding, as latin-1 (which every byte is)"
            ) from None
        text = text.removeprefix("\ufeff") if self.raw_read == n else text
        if self.swap:
            text = text.translate(SWAP)
        if self.white:
            text = self._with_single_blanks(text)
        self.ready = text.encode("utf-8", "surrogateescape")

    def _with_single_blanks(self, text: str) -> str:
        """Whole lines with one space between fields, and none around them."""
        text = self.text + text
        cut = len(text) if self.ended else text.rfind("\n") + 1
        text, self.text = text[:cut], text[cut:]
        return re.sub(r"(?m)^ | $| (?=\r)", "", re.sub(r"[ \t]+", " ", text))

    def skip(self, size: int | None, hasher: Any) -> None:
        """Skip the first bytes, as they are given (None: all), adding them to the hash if there is one."""
        room = bytearray(BLOCK)
        while size is None or self.delivered < size:
            view = memoryview(room)[: None if size is None else size - self.delivered]
            n = self.readinto(view)
            if not n:
                if size is None:
                    return
                raise SourceError(f"{self.where}: has {self.delivered:,} bytes, but {size:,} were read from it before")
            if hasher is not None:
                hasher.update(bytes(view[:n]))
