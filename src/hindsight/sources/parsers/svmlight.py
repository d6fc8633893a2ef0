"""Rows of svmlight text: "label qid:1 index:value index:value ... # comment"."""

from typing import Any, NamedTuple

import numpy as np

from ...kernels.compiler import inlined, part
from .bits import COLON, HASH, NINE, ZERO, U, byte, word
from .numbers import MAX_WHOLE, UNSIGNED_POWERS, ZEROS, count_digits, join_digits, parse_number
from .records import defer, ends_line, is_blank, skip_blanks
from .sparse import (
    CRAMPED,
    INDEX_TOO_HIGH,
    INDEX_TOO_LOW,
    LABEL,
    NOT_A_PAIR,
    NOT_ASCENDING,
    REPEATED_INDEX,
    WHOLE,
)

QUERY, QUERY_MASK = U(int.from_bytes(b"qid:", "little")), U(0xFFFFFFFF)


@inlined
def ends_field(c):
    """Whether a byte ends a field."""
    return is_blank(c) or ends_line(c) or c == HASH


@inlined
def field_end(buf, i, end):
    """Where the field at i ends."""
    while i < end and not ends_field(byte(buf, i)):
        i += 1
    return i


@part
class SvmlightGrammar(NamedTuple):
    """Indices from `min_index` to `max_index`, ascending; `lookup` is an `IndexLookup` or a `HashLookup`."""

    lookup: Any
    min_index: int
    max_index: int

    def starts_comment(self, c):
        """Whether a line that starts with this byte has no row."""
        return c == HASH

    def parse_row(self, buf, i, end, final, out, r, n, deferreds):
        """Row r from position i on, its values from out.data[n] on."""
        v, j, good = parse_number(buf, i)
        if not is_blank(byte(buf, j)):
            stop = field_end(buf, j, end)
            good = good if stop == j else 0
            j = stop
        out.y[r] = v
        if not good or abs(v) >= MAX_WHOLE:
            k = i
            while k < j and byte(buf, k) != COLON:
                k += 1
            j = j if k == j else i  # a pair, so there is no label
            deferreds = defer(out.deferred, deferreds, r, LABEL, i, j)
        i = skip_blanks(buf, j, end)
        if word(buf, i) & QUERY_MASK == QUERY:
            i = field_end(buf, i, end)
        status, before, a, room = WHOLE, self.min_index - 1, i, out.data.size
        while True:
            while is_blank(byte(buf, i)) and i < end:
                i += 1
            if i >= end or ends_line(byte(buf, i)) or byte(buf, i) == HASH:
                break
            a = i
            t = word(buf, i) ^ ZEROS
            c = count_digits(t)
            index = np.int64(join_digits(t, c))
            i += c
            while c == 8 and i - a < 18:
                t = word(buf, i) ^ ZEROS
                c = min(count_digits(t), 18 - (i - a))
                index = index * np.int64(UNSIGNED_POWERS[c]) + np.int64(join_digits(t, c))
                i += c
            v, j, good = parse_number(buf, i + 1)
            if i == a or byte(buf, i) != COLON or index > self.max_index or index <= before or n >= room:
                status = NOT_A_PAIR
                if i > a and ZERO <= byte(buf, i) <= NINE:
                    status = INDEX_TOO_HIGH
                elif i > a and byte(buf, i) == COLON:
                    if index < self.min_index:
                        status = INDEX_TOO_LOW
                    elif index > self.max_index:
                        status = INDEX_TOO_HIGH
                    elif index > before:
                        status = CRAMPED
                    else:
                        status = REPEATED_INDEX if index == before else NOT_ASCENDING
                break
            before = index
            out.data[n] = v
            out.indices[n] = self.lookup.column_of_index(index, buf, a, i)
            i += 1
            if not good or not (ends_field(byte(buf, j)) or j >= end):
                j = field_end(buf, i, end)
                out.data[n] = 1.0
                deferreds = defer(out.deferred, deferreds, r, n, i, j)
            i = j
            n += 1
        return i, n, deferreds, status, a
