"""A stream of another encoding, quote or separator, read as UTF-8 with quotes and single separators."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from ...errors import SourceError
from ..streams import Rewritten

if TYPE_CHECKING:
    from .sniff import Dialect

BLOCK = 1 << 20
SWAP = str.maketrans("'\"", "\"'")


class Transcoded(Rewritten):
    """The bytes of a file as UTF-8, with runs of blanks as one space where those separate fields."""

    def __init__(self, path: str, dialect: Dialect) -> None:
        super().__init__(path)
        self.plain = dialect.encoding == "utf-8"
        self.encoding, self.white, self.swap = dialect.encoding, dialect.separator == " ", dialect.quote == "'"
        self.decoder = codecs.getincrementaldecoder("utf-8-sig" if self.plain else dialect.encoding)(
            "surrogateescape" if self.plain else "strict"
        )
        self.text = ""

    def _advance(self) -> None:
        """Read and transcode the next block."""
        block = self._read_block(BLOCK)
        n = len(block)
        try:
            text = self.decoder.decode(block, final=self.ended)
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
