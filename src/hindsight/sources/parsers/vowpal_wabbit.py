"""Rows of Vowpal Wabbit text: "label importance 'tag |namespace:scale feature:value feature |..."."""

from typing import Any, NamedTuple

import numpy as np

from ...kernels.compiler import inlined, part
from .bits import APOSTROPHE, BAR, COLON, HIGH, NONE, U, byte, trailing_zeros, word
from .numbers import MAX_WHOLE, parse_number
from .records import defer, ends_line, is_blank, skip_blanks
from .sparse import BAD_SCALE, CRAMPED, FULL, INITIAL_PREDICTION, LABEL, NO_BAR, NO_NAME, NO_NAMESPACE, WHOLE

COLONS, BARS, LOWS, ONES = (U(0x0101010101010101 * v) for v in (COLON, BAR, 0x21, 1))


@inlined
def ends_value(c):
    """Whether a byte ends a name or a value."""
    return is_blank(c) or ends_line(c) or c == BAR


@inlined
def before_bar(buf, i, end):
    """Whether position i is before the first bar of a row."""
    return i < end and byte(buf, i) != BAR and not ends_line(byte(buf, i))


@inlined
def name_end(buf, i, end):
    """Where the name that starts at i ends."""
    while True:
        w = word(buf, i)
        x, y = w ^ COLONS, w ^ BARS
        hits = (((w - LOWS) & ~w) | ((x - ONES) & ~x) | ((y - ONES) & ~y)) & HIGH
        if hits == NONE:
            i += 8
            continue
        i += trailing_zeros(hits) >> 3
        if i >= end or ends_value(byte(buf, i)) or byte(buf, i) == COLON:
            return min(i, end)
        i += 1  # a control character


@part
class VowpalWabbitGrammar(NamedTuple):
    """Features named namespace^feature; `lookup` is a `NameLookup` or a `HashLookup`.

    A tag starts with an apostrophe or touches the first bar. All names of a namespace are hashed first and looked up
    afterwards, so that their slots are already in the cache; `hashed` has room for the hash, first byte and end of
    each.
    """

    lookup: Any
    hashed: np.ndarray

    def starts_comment(self, c):
        """Whether a line that starts with this byte has no row: there are no comments."""
        return False

    def parse_row(self, buf, i, end, final, out, r, n, deferreds):
        """Row r from position i on, its values from out.data[n] on."""
        status, a = WHOLE, i
        # label, importance, tag
        fields, out.y[r], out.weight[r] = 0, 0.0, 1.0
        while before_bar(buf, i, end):
            a = i
            v, j, good = parse_number(buf, i)
            if not is_blank(byte(buf, j)):
                good = 0
                while before_bar(buf, j, end) and not is_blank(byte(buf, j)):
                    j += 1
            i = j
            if byte(buf, j) == BAR or byte(buf, a) == APOSTROPHE:
                while before_bar(buf, i, end):
                    status = status if is_blank(byte(buf, i)) else NO_BAR
                    i += 1
                break
            if fields == 0:
                out.y[r] = v
                good = good if abs(v) < MAX_WHOLE else 0
            elif fields == 1:
                out.weight[r] = v
            else:
                k = j
                while before_bar(buf, k, end):
                    k += 1
                status = INITIAL_PREDICTION if byte(buf, k) == BAR else NO_BAR
                break
            if not good:
                deferreds = defer(out.deferred, deferreds, r, LABEL - fields, a, j)
            fields += 1
            i = skip_blanks(buf, i, end)
        if fields == 0:
            deferreds = defer(out.deferred, deferreds, r, LABEL, i, i)
        if status == WHOLE and (i >= end or byte(buf, i) != BAR):
            status, a = NO_BAR, i
        # namespaces and their features
        while status == WHOLE and i < end and byte(buf, i) == BAR:
            i += 1
            p = i
            while i < end and not ends_value(byte(buf, i)) and byte(buf, i) != COLON:
                i += 1
            q = i
            scale = 1.0
            if i >= end and not final:
                break  # the name may continue in the next block
            space = self.lookup.namespace(buf, p, q)
            if space < 0:
                status = FULL
                break
            h = self.lookup.hash_space(buf, p, q)
            if byte(buf, i) == COLON and i < end:
                a = p
                scale, j, good = parse_number(buf, i + 1)
                if q == p:
                    status = NO_NAMESPACE
                    break
                if not good or not (ends_value(byte(buf, j)) or j >= end):
                    status = BAD_SCALE
                    break
                i = j
            start = n
            while True:
                i = skip_blanks(buf, i, end)
                if not before_bar(buf, i, end):
                    break
                a = i
                i = name_end(buf, i, end)
                b = i
                if a == b:
                    status = NO_NAME
                    break
                if n >= out.data.size or n - start >= self.hashed.shape[0]:
                    status = CRAMPED
                    break
                out.data[n] = scale
                if byte(buf, i) == COLON and i < end:
                    v, j, good = parse_number(buf, i + 1)
                    i += 1
                    if good and (ends_value(byte(buf, j)) or j >= end):
                        out.data[n] = v * scale
                    else:
                        j = i
                        while j < end and not ends_value(byte(buf, j)):
                            j += 1
                        deferreds = defer(out.deferred, deferreds, r, n, i, j)
                    i = j
                if i >= end and not final:
                    break  # the name or the value may continue in the next block
                m = n - start
                self.hashed[m, 0] = self.lookup.hash_name(space, h, buf, a, b)
                self.hashed[m, 1], self.hashed[m, 2] = U(a), U(b)
                n += 1
            for m in range(n - start):
                k = self.lookup.find_or_add(
                    space, self.hashed[m, 0], buf, np.int64(self.hashed[m, 1]), np.int64(self.hashed[m, 2])
                )
                if k < 0:
                    status = FULL
                    break
                out.indices[start + m] = k
        return i, n, deferreds, status, a
