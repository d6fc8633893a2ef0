"""CSV and TSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from . import parsers
from .base import Options
from .columns import Plan, Rough, is_number
from .text import Bad, Batch, Reading, Text, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class Delimited(Text):
    """Records of separated fields, quoted newlines included."""

    plan: Plan

    def __init__(self, paths: Sequence[str], options: Options, separator: str = ",") -> None:
        self.separator = options.separator or separator
        if len(self.separator) != 1 or self.separator in '"\r\n' or ord(self.separator) > 127:
            raise SourceError(f"separator must be one ASCII character, not a quote; got {self.separator!r}")
        self.header: list[str] | None = None
        super().__init__(paths, options)
        self.kind = self.plan.kind

    def _head(self, reading: Reading) -> None:
        reading.bom()
        where = reading.stream.where
        record, stop, line = self._record(reading)
        while not record and stop > reading.begin:  # blank lines
            reading.header(stop, line)
            record, stop, line = self._record(reading)
        if not record:
            raise SourceError(f"{where}: the file is empty")
        names = [name.strip() for name in record]
        if self.options.header:
            reading.header(stop, line)
        else:
            names = [str(j + 1) for j in range(len(record))]
        if self.header is None:
            texts: list[str] = []
            if self.options.categorical == "auto":
                texts = self._texts(names, self._record(reading)[0])
            self.plan = Plan(names, self.options, where, texts)
            self.header = names
        elif names != self.header:
            k = next((k for k, pair in enumerate(zip(names, self.header, strict=False)) if pair[0] != pair[1]), -1)
            raise SourceError(
                f"{where}: its columns are not those of {self.where}: "
                + (
                    f"{names[k]!r} in place of {self.header[k]!r}"
                    if k >= 0
                    else f"{len(names)}, not {len(self.header)}"
                )
            )

    def _texts(self, names: list[str], first: list[str]) -> list[str]:
        """Columns that hold text in the first row."""
        return [name for name, value in zip(names, first, strict=False) if value.strip() and not is_number(value)]

    def _record(self, reading: Reading) -> tuple[list[str], int, int]:
        """The next record, the byte after it and the line there; nothing is taken."""
        while True:
            stop, quoted, lines = reading.begin, False, 0
            data = reading.buf[reading.begin : reading.end].tobytes()
            at = 0
            while True:
                end = data.find(b"\n", at)
                piece = data[at : end if end >= 0 else len(data)]
                quoted ^= piece.count(b'"') % 2 == 1
                if end < 0:
                    break
                lines, at = lines + 1, end + 1
                if not quoted:
                    break
            if end < 0 and not reading.final:
                reading.more *= 2
                reading.fill()
                continue
            stop += at if end >= 0 else len(data)
            break
        raw = data[: stop - reading.begin]
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = raw[error.start]
            raise SourceError(f"{reading.stream.where}, line {reading.line}: byte 0x{byte:02x} is not UTF-8") from None
        records = list(csv.reader(io.StringIO(text, newline=""), delimiter=self.separator, skipinitialspace=True))
        return (records[0] if records else []), stop, reading.line + lines

    @property
    def names(self) -> Sequence[str]:
        return self.plan.names(self.width)

    def state(self) -> dict[str, Any]:
        return self.plan.state(self.width)

    def restore(self, state: dict[str, Any]) -> None:
        self.width = self.plan.restore(state)

    def _parse(self, buf: np.ndarray, begin: int, end: int, final: bool, line: int) -> Batch:
        plan, size = self.plan, end - begin
        fields = len(plan.kinds)
        room = size // (2 * fields) + 2
        take = self.pool.take
        X, y, weight = take("X", (room, plan.features)), take("y", room), take("weight", room)
        ids, rows = take("ids", (room, plan.categories), np.int64), take("rows", (room, 3), np.int64)
        slow, bad = take("slow", (room + 4096 + fields, 4), np.int64), take("bad", (1024, 6), np.int64)
        out, scratch = np.empty(7, np.int64), take("scratch", size + 8 if plan.categories else 8, np.uint8)
        while True:
            parsers.parse_table(
                buf, begin, end, final, line, ord(self.separator), plan.kinds, plan.dest, plan.dictionary.keys,
                scratch, X, y, weight, ids, rows, slow, bad, out,
            )  # fmt: skip
            if out[parsers.STATUS] != parsers.NO_ROOM or out[parsers.STOP] > begin:
                break
            plan.dictionary.grow()
        r = int(out[parsers.ROWS])
        faults = [self._fault(fault) for fault in bad[: out[parsers.BAD]]]
        rough = Rough(plan, X[:r], y[:r], weight[:r], ids[:r])
        for t, c, a, b in slow[: out[parsers.DEFERRED]].tolist():
            text = text_of(buf, a, b)
            rough.field(t, c, text.replace('""', '"') if a and buf[a - 1] == parsers.QUOTE else text)
        matrix, targets, weights, rows, more = rough.finish(rows[:r], int(out[parsers.WIDTH]))
        faults = sorted(faults + more, key=lambda fault: fault.row[0])
        stop, line, width = (int(out[k]) for k in (parsers.STOP, parsers.LINE, parsers.WIDTH))
        return Batch(matrix, targets, weights, rows, stop, line, width, faults)

    def _fault(self, fault: np.ndarray) -> Bad:
        what, count = int(fault[3]), int(fault[4])
        wants = f"{count} field{'s' if count != 1 else ''}, but there are {len(self.plan.kinds)} columns"
        reasons = {
            parsers.OPEN_QUOTE: "a quote is opened but not closed",
            parsers.AFTER_QUOTE: "text follows a closing quote",
        }
        return Bad(fault[:3].tolist(), "", reasons.get(what, wants))
