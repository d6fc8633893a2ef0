"""Compiled parsers of text: numbers, names, CSV, svmlight and Vowpal Wabbit lines.

A block of text is a uint8 array with at least PAD zero bytes after its `end`, so that eight bytes can be read at once
from any place. A parser takes whole rows from it and says where it stopped. It never judges what is not plain: such
fields are listed by place (`slow`) for Python to look at, so every number equals Python's `float` of the same text, bit
for bit. Everything also runs as plain Python, where each index is checked (`NUMBA_DISABLE_JIT=1`).
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.types import BaseNamedTuple
from numba.extending import intrinsic, overload, overload_method

from ..kernels.simd import prefetch

PAD = 32
LF, CR, TAB, SPACE, QUOTE, HASH, PLUS, MINUS, DOT, ZERO, COLON, BAR, E = (ord(c) for c in '\n\r\t "#+-.0:|e')
APOSTROPHE, CARET, NINE, QUERY, QUERY_2, QUERY_3 = (ord(c) for c in "'^9qid")

U = np.uint64
ZEROS, CARRY, HIGH = U(0x3030303030303030), U(0x7676767676767676), U(0x8080808080808080)
PAIRS, HUNDREDS, TENS = U(0x000000FF000000FF), U(0x000F424000000064), U(0x0000271000000001)
ONE, TWO, THREE, EIGHT, TEN, B16, B32, B63 = (U(v) for v in (1, 2, 3, 8, 10, 16, 32, 63))
COLONS, BARS, LOWS, ONES = (U(0x0101010101010101 * v) for v in (COLON, BAR, 0x21, 1))
NONE, ALL = U(0), U(0xFFFFFFFFFFFFFFFF)
LOW32, UPPER = U(0xFFFFFFFF), U(0xFFFFFFFF00000000)
SPREAD = U(0x9E3779B97F4A7C15)
EXACT = U(1 << 53)
ROUNDED = U(0x1FF)  # bits of the product that decide the rounding
HIDDEN, FULL53 = U(1 << 52), U(1 << 53)
SHARED = 0xFFFE
RUN, PLACE, SPARSEST = 12, 0xFFFFFFFF, 16
FNV_START, FNV_PRIME = U(0xCBF29CE484222325), U(0x100000001B3)

POWERS = 10.0 ** np.arange(23)  # exact
TENTHS = np.array([10**k for k in range(20)], np.uint64)
TENS_BY = 10 ** np.arange(9)
LEAST, MOST = -342, 308


def _fives() -> np.ndarray:
    """The first 128 bits of 5^q, q = LEAST..MOST: truncated, but rounded up where q < 0."""
    table = np.empty((MOST - LEAST + 1, 2), np.uint64)
    for q in range(LEAST, MOST + 1):
        if q >= 0:
            five = 5**q
            shift = 128 - five.bit_length()
            bits = five << shift if shift >= 0 else five >> -shift
        else:
            five = 5**-q
            bits = (1 << (five.bit_length() + 127)) // five + 1
        table[q - LEAST] = bits >> 64, bits & 0xFFFFFFFFFFFFFFFF
    return table


FIVES = _fives()

compiled = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inlined = njit(cache=True, error_model="numpy", _nrt=False, forceinline=True)


# ---------------------------------------------------------------- eight bytes at once


def word(buf, i):
    """Eight bytes from place i, the first one lowest."""
    return U(int.from_bytes(bytes(buf[i : i + 8]).ljust(8, b"\0"), "little") if 0 <= i <= len(buf) - 8 else len(buf[i]))


def byte(buf, i):
    """The byte at place i, without numba's test for places counted from the end."""
    return int(buf[i]) if i >= 0 else len(buf[i])


def real(bits):
    """The float with these bits."""
    return np.array(bits, np.uint64).view(np.float64)[()]


def trailing(bits):
    """Zero bits below the lowest one."""
    return (int(bits) & -int(bits)).bit_length() - 1 if bits else 64


def leading(bits):
    """Zero bits above the highest one."""
    return 64 - int(bits).bit_length()


def high(a, b):
    """The upper half of the product."""
    return U(int(a) * int(b) >> 64)


@intrinsic
def _word(typingctx, buf, i):
    def build(context, builder, signature, args):
        array = context.make_array(buf)(context, builder, args[0])
        place = builder.gep(array.data, [args[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(buf, types.int64), build


@intrinsic
def _byte(typingctx, buf, i):
    def build(context, builder, signature, args):
        array = context.make_array(buf)(context, builder, args[0])
        return builder.zext(builder.load(builder.gep(array.data, [args[1]])), ir.IntType(64))

    return types.int64(buf, types.int64), build


@intrinsic
def _real(typingctx, bits):
    def build(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), build


@intrinsic
def _trailing(typingctx, bits):
    def build(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), build


@intrinsic
def _leading(typingctx, bits):
    def build(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), build


@intrinsic
def _high(typingctx, a, b):
    def build(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), build


overload(word, jit_options={"forceinline": True})(lambda buf, i: lambda buf, i: _word(buf, i))
overload(byte, jit_options={"forceinline": True})(lambda buf, i: lambda buf, i: _byte(buf, i))
overload(real, jit_options={"forceinline": True})(lambda bits: lambda bits: _real(bits))
overload(trailing, jit_options={"forceinline": True})(lambda bits: lambda bits: _trailing(bits))
overload(leading, jit_options={"forceinline": True})(lambda bits: lambda bits: _leading(bits))
overload(high, jit_options={"forceinline": True})(lambda a, b: lambda a, b: _high(a, b))


# ---------------------------------------------------------------- numbers


@inlined
def count_digits(t):
    """How many of eight bytes, already xor-ed with '0', are digits before the first other byte."""
    other = ((t + CARRY) | t) & HIGH
    return trailing(other) >> 3


@inlined
def join_digits(t, n):
    """The number that the first n of eight digits make."""
    if n == 0:
        return NONE
    t = t << U((64 - 8 * n) & 63)
    t = t * TEN + (t >> EIGHT)
    return ((t & PAIRS) * HUNDREDS + ((t >> B16) & PAIRS) * TENS) >> B32


@compiled
def nearest_float(m, q):
    """The bits of the float nearest to m 10^q and 1, or 0 and 0 where this does not decide it (Lemire 2021)."""
    if q < LEAST or q > MOST:
        return NONE, 0
    shift = leading(m)
    m = m << U(shift)
    k = q - LEAST
    upper, lower = high(m, FIVES[k, 0]), m * FIVES[k, 0]
    if upper & ROUNDED == ROUNDED:
        more = high(m, FIVES[k, 1])
        lower = lower + more
        if more > lower:
            upper = upper + ONE
    if lower == ALL and (q < -27 or q > 55):
        return NONE, 0
    top = upper >> B63
    drop = top + U(9)
    mantissa = upper >> drop
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - shift + 1023
    if exponent <= 0:
        return NONE, 0
    if lower <= ONE and -4 <= q <= 23 and mantissa & THREE == ONE and mantissa << drop == upper:
        mantissa = mantissa - ONE  # halfway, and the even neighbour is below
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    if mantissa >= FULL53:
        mantissa, exponent = HIDDEN, exponent + 1
    if exponent >= 2047:
        return NONE, 0
    return (mantissa - HIDDEN) | (U(exponent) << U(52)), 1


@compiled
def significant(buf, a, b):
    """Digits from the first that is not zero on."""
    n = 0
    for i in range(a, b):
        if buf[i] != DOT and (n or buf[i] != ZERO):
            n += 1
    return n


@compiled
def any_number(buf, i):
    """`number` of any form."""
    negative = byte(buf, i) == MINUS
    if negative or byte(buf, i) == PLUS:
        i += 1
    start = i
    t = word(buf, i) ^ ZEROS
    n = count_digits(t)
    m, digits = join_digits(t, n), n
    i += n
    while n == 8:
        t = word(buf, i) ^ ZEROS
        n = count_digits(t)
        m, digits = m * TENTHS[n] + join_digits(t, n), digits + n
        i += n
    q = 0
    if byte(buf, i) == DOT:
        i += 1
        n = 8
        while n == 8:
            t = word(buf, i) ^ ZEROS
            n = count_digits(t)
            m, digits, q = m * TENTHS[n] + join_digits(t, n), digits + n, q - n
            i += n
    good = 0 < digits <= 19 or (digits > 19 and significant(buf, start, i) <= 19)
    if good and byte(buf, i) | 32 == E:
        i += 1
        below = byte(buf, i) == MINUS
        if below or byte(buf, i) == PLUS:
            i += 1
        t = word(buf, i) ^ ZEROS
        n = count_digits(t)
        power = np.int64(join_digits(t, n))
        i += n
        good = 0 < n < 8
        q = q - power if below else q + power
    v = 0.0
    if good:
        if m <= EXACT and -22 <= q <= 22:
            v = float(m) * POWERS[q] if q >= 0 else float(m) / POWERS[-q]
        elif m != NONE:
            bits, decided = nearest_float(m, q)
            v, good = real(bits), decided == 1
    return -v if negative else v, i, 1 if good else 0


@inlined
def number(buf, i):
    """The number that starts at i, where it ends, and 1; or 0 for the last where it is none or hard to round."""
    negative = byte(buf, i) == MINUS
    j = i + 1 if negative else i
    if byte(buf, j + 1) == DOT:  # most numbers are d.ddd
        d = byte(buf, j) ^ ZERO
        j += 2
        t = word(buf, j) ^ ZEROS
        n = count_digits(t)
        if d < 10 and 0 < n < 8 and byte(buf, j + n) | 32 != E:
            t = t << U(64 - 8 * n)
            t = t * TEN + (t >> EIGHT)
            m = np.int64(((t & PAIRS) * HUNDREDS + ((t >> B16) & PAIRS) * TENS) >> B32)
            v = float(d * TENS_BY[n] + m) / POWERS[n]
            return -v if negative else v, j + n, 1
    return any_number(buf, i)


# ---------------------------------------------------------------- names

for _name, _args in {
    "code": "self, space, h, buf, a, b",
    "entry": "self, space, code, buf, a, b",
    "space": "self, buf, a, b",
    "column": "self, index, buf, a, b",
}.items():
    overload_method(BaseNamedTuple, _name, jit_options={"forceinline": True})(
        eval(f"lambda {_args}: self.instance_class.{_name}")
    )


@inlined
def fnv(h, buf, a, b):
    """FNV-1a, 64 bits, of what was hashed to h and these bytes."""
    for i in range(a, b):
        h = (h ^ U(byte(buf, i))) * FNV_PRIME
    return h


@inlined
def first_word(buf, a, b):
    """The first eight of some bytes, zeros after their end."""
    if b - a >= 8:
        return word(buf, a)
    return word(buf, a) & (ALL >> U((64 - 8 * (b - a)) & 63)) if b > a else NONE


@inlined
def scatter(space, buf, a, b):
    """A hash of bytes in a space, eight bytes at a time; only the dictionary knows it."""
    h = (first_word(buf, a, b) ^ (U(space) * SPREAD) ^ U(b - a)) * SPREAD
    i = a + 8
    while i < b:
        h = (h ^ (h >> B32) ^ first_word(buf, i, b)) * SPREAD
        i += 8
    return h ^ (h >> B32)


@compiled
def same(ends, text, k, buf, a, b):
    """Whether item k of the text is these bytes."""
    i = ends[k]
    if ends[k + 1] - i != b - a:
        return False
    for j in range(a, b):
        if text[i] != byte(buf, j):
            return False
        i += 1
    return True


class Names(NamedTuple):
    """A dictionary of names within spaces (namespaces, columns), numbered in order of first sight.

    A slot has the first eight bytes of a name and its mark: the space, the length and the number plus 1 (24, 8 and 32
    bits); 0 is empty. `text` has the names one after another, name k from `ends[k]` to `ends[k + 1]`; likewise the
    spaces, of which number 0 is empty and stands for none. `used` has the counts of names and of spaces.
    """

    slots: np.ndarray
    hashes: np.ndarray
    marks: np.ndarray
    ends: np.ndarray
    text: np.ndarray
    space_ends: np.ndarray
    space_text: np.ndarray
    used: np.ndarray

    def space(self, buf, a, b):
        """The number of a space, entered if it is new; -1 where there is no room."""
        n = self.used[1]
        for k in range(n):
            if same(self.space_ends, self.space_text, k, buf, a, b):
                return k
        i = self.space_ends[n]
        if n + 1 >= self.space_ends.size or i + b - a > self.space_text.size:
            return -1
        for j in range(a, b):
            self.space_text[i] = byte(buf, j)
            i += 1
        self.space_ends[n + 1], self.used[1] = i, n + 1
        return n

    def code(self, space, h, buf, a, b):
        """The hash of the name buf[a:b] in a space; its slot is asked for, so that it is there when `entry` looks."""
        code = scatter(space, buf, a, b)
        prefetch(self.slots, 16 * np.int64(code & U(self.slots.shape[0] - 1)))
        return code

    def entry(self, space, code, buf, a, b):
        """The column of the name of this hash, entered if it is new; -1 where there is no room."""
        mask = self.slots.shape[0] - 1
        key = first_word(buf, a, b)
        mark = (U(space) << U(40)) | (U(min(b - a, 255)) << B32)
        slot = np.int64(code & U(mask))
        seen = self.slots[slot, 1]
        while seen != NONE:
            if self.slots[slot, 0] == key and seen & UPPER == mark:
                k = np.int64(seen & LOW32) - 1
                if b - a <= 8 or same(self.ends, self.text, k, buf, a, b):
                    return k
            slot = (slot + 1) & mask
            seen = self.slots[slot, 1]
        n = self.used[0]
        i = self.ends[n]
        if n >= self.hashes.size or i + b - a > self.text.size:
            return -1
        for j in range(a, b):
            self.text[i] = byte(buf, j)
            i += 1
        mark = mark | U(n + 1)
        self.slots[slot, 0], self.slots[slot, 1], self.hashes[n], self.marks[n] = key, mark, code, mark
        self.ends[n + 1], self.used[0] = i, n + 1
        return n


class Hashed(NamedTuple):
    """Columns by hash: the low bits of h ^ (h >> 32), h the FNV-1a hash of the name.

    `prints` has 16 other bits of the hash of the first name seen in a column, SHARED once a name of other bits came;
    `used` has the count of columns, as for names, then that of columns in use and that of shared ones.
    """

    prints: np.ndarray
    used: np.ndarray

    def space(self, buf, a, b):
        """Spaces are not told apart but by the hash."""
        return 0

    def code(self, space, h, buf, a, b):
        """The hash of the name whose beginning was hashed to h and goes on with these bytes."""
        h = fnv(h, buf, a, b)
        prefetch(self.prints, 2 * np.int64((h ^ (h >> B32)) & U(self.prints.size - 1)))
        return h

    def entry(self, space, code, buf, a, b):
        """The column of the name of this hash."""
        k = np.int64((code ^ (code >> B32)) & U(self.prints.size - 1))
        sign = (code >> U(40)) & U(0x7FFF) | ONE
        if self.prints[k] != sign:
            if self.prints[k] == 0:
                self.prints[k] = sign
                self.used[1] += 1
            elif self.prints[k] != SHARED:
                self.prints[k] = SHARED
                self.used[2] += 1
        return k

    def column(self, index, buf, a, b):
        """The column of an index by its digits."""
        while a + 1 < b and buf[a] == ZERO:
            a += 1
        return self.entry(0, fnv(FNV_START, buf, a, b), buf, a, b)


class Indices(NamedTuple):
    """Columns by index, the first of them `base`; `used` has the count of columns so far."""

    base: int
    used: np.ndarray

    def column(self, index, buf, a, b):
        """The column of an index."""
        k = index - self.base
        if k >= self.used[0]:
            self.used[0] = k + 1
        return k


@compiled
def enter(names, space, name, size):
    """The column of a name; the array has zeros after it."""
    return names.entry(space, names.code(space, FNV_START, name, 0, size), name, 0, size)


@compiled
def rehash(names):
    """Put every name into the emptied slots."""
    mask = names.slots.shape[0] - 1
    for k in range(names.used[0]):
        slot = np.int64(names.hashes[k] & U(mask))
        while names.slots[slot, 1] != NONE:
            slot = (slot + 1) & mask
        names.slots[slot, 0] = first_word(names.text, names.ends[k], names.ends[k + 1])
        names.slots[slot, 1] = names.marks[k]


# ---------------------------------------------------------------- CSV

ROWS, STOP, LINE, SLOWS, BADS, WIDTH, STATUS = range(7)  # what a parser says of its work
DONE, CROWDED = 0, 1  # CROWDED: no room for another name
IGNORE, FEATURE, TARGET, WEIGHT, CATEGORY = range(5)  # what a column is
FEW, MANY, OPEN, AFTER = range(4)  # what is wrong: fields too few or too many, a quote left open, text after a quote


@compiled
def table(buf, i, end, final, line, sep, kind, dest, names, scratch, X, y, weight, ids, rows, slow, bad, out):
    """Whole records of separated fields from buf[i:end].

    kind, dest : of each column, what it is and where it goes: of a feature the column of X, of a category that of ids,
    which is one below its space.
    rows : of each row its first byte, its end and its line. slow : row, column, first byte and end of fields that are
    no plain numbers, or empty. bad : first byte, end, line, what is wrong, and how many fields there are.
    """
    width, r, slows, bads = kind.size, 0, 0, 0
    blank = SPACE if sep != SPACE else TAB
    known = names.used[0]
    out[STATUS] = DONE
    while r < rows.shape[0] and slows + width <= slow.shape[0] and bads < bad.shape[0]:
        while i < end and (buf[i] == LF or buf[i] == CR) and (final or buf[i] == LF or i + 1 < end):
            line += buf[i] == LF or buf[i + 1] != LF
            i += 1
        if i >= end or buf[i] == CR:  # a line feed may be yet to come
            break
        known = names.used[0]
        first, began, at, c, wrong = i, slows, line, 0, -1
        whole = False
        while True:
            while i < end and (buf[i] == blank or buf[i] == SPACE) and buf[i] != sep:
                i += 1
            what = kind[c] if c < width else IGNORE
            a, b, good, v, twice = i, i, 0, 0.0, False
            if i < end and buf[i] == QUOTE:
                a, b = i + 1, i + 1
                while b < end:
                    if buf[b] == QUOTE:
                        if b + 1 < end and buf[b + 1] == QUOTE:
                            twice = True
                            b += 1
                        else:
                            break
                    line += buf[b] == LF
                    b += 1
                i = b + 1
                if b >= end:
                    wrong, i = OPEN, end
                while i < end and buf[i] != sep and buf[i] != LF and buf[i] != CR:
                    if buf[i] != SPACE and buf[i] != blank:
                        wrong = AFTER
                    i += 1
                while a < b and white(buf[a]):
                    a += 1
                while b > a and white(buf[b - 1]):
                    b -= 1
                if what != IGNORE and what != CATEGORY:
                    v, k, good = number(buf, a)
                    good = good if k == b else 0
            else:
                if what != IGNORE and what != CATEGORY:
                    v, i, good = number(buf, i)
                if i > end:
                    good, i = 0, a
                if not (i < end and (buf[i] == sep or buf[i] == LF or buf[i] == CR)):
                    good = good if i == end else 0
                    while i < end and buf[i] != sep and buf[i] != LF and buf[i] != CR:
                        i += 1
                b = i
                while b > a and (buf[b - 1] == SPACE or buf[b - 1] == blank):
                    b -= 1
            if not final and (i >= end or (buf[i] == CR and i + 1 >= end)):
                break  # the rest of the record is yet to come
            if what == FEATURE and good:
                X[r, dest[c]] = v
            elif what == CATEGORY:
                k = a
                if a == b:
                    k = -1
                elif twice:
                    m = 0
                    while k < b:
                        scratch[m] = buf[k]
                        m += 1
                        k += 2 if buf[k] == QUOTE else 1
                    for k in range(m, m + 8):
                        scratch[k] = 0
                    k = names.entry(dest[c] + 1, scatter(dest[c] + 1, scratch, 0, m), scratch, 0, m)
                else:
                    k = names.entry(dest[c] + 1, scatter(dest[c] + 1, buf, a, b), buf, a, b)
                if k < 0 and a < b:
                    out[STATUS] = CROWDED
                    break
                ids[r, dest[c]] = k
                if a == b:
                    slow[slows, 0], slow[slows, 1], slow[slows, 2], slow[slows, 3] = r, c, a, b
                    slows += 1
            elif what != IGNORE:
                if what == TARGET:
                    y[r] = v
                elif what == WEIGHT:
                    weight[r] = v
                if not good:
                    slow[slows, 0], slow[slows, 1], slow[slows, 2], slow[slows, 3] = r, c, a, b
                    slows += 1
            c += 1
            if i >= end or buf[i] != sep:
                whole = True
                break
            i += 1
        if not whole:
            i, line, slows = first, at, began
            break
        stop = i
        if i < end:
            i += 2 if buf[i] == CR and buf[i + 1] == LF else 1
            line += 1
        if wrong < 0 and c != width:
            wrong = FEW if c < width else MANY
        if wrong >= 0:
            bad[bads, 0], bad[bads, 1], bad[bads, 2], bad[bads, 3], bad[bads, 4] = first, stop, at, wrong, c
            bads, slows = bads + 1, began
        else:
            rows[r, 0], rows[r, 1], rows[r, 2] = first, stop, at
            r += 1
        known = names.used[0]
    out[ROWS], out[STOP], out[LINE], out[SLOWS], out[BADS], out[WIDTH] = r, i, line, slows, bads, known


# ---------------------------------------------------------------- sparse rows

LABEL, IMPORTANCE = -1, -2  # in `slow`, where a value's place in `data` would stand
UNREADABLE, LOW, HUGE, ORDER, REPEATED, NO_BAR, NAMELESS, BASE, COLON_BAR, SCALE = range(4, 14)


@inlined
def blank(c):
    """Whether a byte separates fields within a row."""
    return c == SPACE or c == TAB


@inlined
def over(c):
    """Whether a byte ends a row."""
    return c == LF or c == CR


@inlined
def white(c):
    """Whether a byte is a space of any kind."""
    return blank(c) or over(c)


@inlined
def rest_of_line(buf, i, end):
    """The place of the line feed, or the end."""
    while i < end and byte(buf, i) != LF:
        i += 1
    return i


@compiled
def svmlight(buf, i, end, final, line, keys, least, most, data, indices, indptr, y, rows, slow, bad, out):
    """Whole rows "label index:value ... # comment" from buf[i:end], unsorted where columns are.

    keys : how an index becomes a column; least, most : the indices allowed.
    slow : row, place in `data` (or LABEL), first byte and end of what is no plain number.
    bad : first byte, end, line, what is wrong, first byte and end of the field that is.
    """
    r, n, slows, bads, known = 0, 0, 0, 0, keys.used[0]
    room = data.size
    out[STATUS] = DONE
    while r < rows.shape[0] and bads < bad.shape[0]:
        first = i
        while i < end and (blank(byte(buf, i)) or byte(buf, i) == CR):
            i += 1
        if i < end and byte(buf, i) == HASH:
            i = rest_of_line(buf, i, end)
        if i < end and byte(buf, i) == LF:
            line += 1
            i += 1
            continue
        if i >= end:
            i = i if final else first
            break
        start, began, known, wrong, a, b = n, slows, keys.used[0], -1, i, i
        if n + (end - i) // 4 > room or slows + (end - i) // 4 + 1 > slow.shape[0]:
            stop = rest_of_line(buf, i, end)  # is there room for this row?
            if n + (stop - i) // 4 > room or slows + (stop - i) // 4 + 1 > slow.shape[0]:
                i = first
                break
        v, j, good = number(buf, i)
        if not blank(byte(buf, j)):
            while j < end and not blank(byte(buf, j)) and not over(byte(buf, j)) and byte(buf, j) != HASH:
                good = 0
                j += 1
        y[r] = v
        if not good:
            k = i
            while k < j and byte(buf, k) != COLON:
                k += 1
            j = j if k == j else i  # an index, so there is no label
            slow[slows, 0], slow[slows, 1], slow[slows, 2], slow[slows, 3] = r, LABEL, i, j
            slows += 1
        i = j
        while i < end and blank(byte(buf, i)):
            i += 1
        if (
            byte(buf, i) == QUERY
            and byte(buf, i + 1) == QUERY_2
            and byte(buf, i + 2) == QUERY_3
            and byte(buf, i + 3) == COLON
        ):
            while i < end and not blank(byte(buf, i)) and not over(byte(buf, i)) and byte(buf, i) != HASH:
                i += 1
        before = -1
        while True:
            while blank(byte(buf, i)) and i < end:
                i += 1
            if i >= end or over(byte(buf, i)) or byte(buf, i) == HASH:
                break
            a = i
            t = word(buf, i) ^ ZEROS
            c = count_digits(t)
            index = np.int64(join_digits(t, c))
            i += c
            while c == 8 and i - a < 18:
                t = word(buf, i) ^ ZEROS
                c = min(count_digits(t), 18 - (i - a))
                index = index * np.int64(TENTHS[c]) + np.int64(join_digits(t, c))
                i += c
            v, j, good = number(buf, i + 1)
            if i == a or byte(buf, i) != COLON or index < least or index > most or index <= before:
                wrong = UNREADABLE
                if i > a and ZERO <= byte(buf, i) <= NINE:
                    wrong = HUGE
                elif i > a and byte(buf, i) == COLON:
                    wrong = LOW if index < least else HUGE if index > most else ORDER
                    wrong = REPEATED if index == before else wrong
                break
            before = index
            data[n] = v
            indices[n] = keys.column(index, buf, a, i)
            i += 1
            if not good or not (blank(byte(buf, j)) or over(byte(buf, j)) or byte(buf, j) == HASH or j >= end):
                j = i
                while j < end and not (blank(byte(buf, j)) or over(byte(buf, j)) or byte(buf, j) == HASH):
                    j += 1
                data[n] = 1.0
                slow[slows, 0], slow[slows, 1], slow[slows, 2], slow[slows, 3] = r, n, i, j
                slows += 1
            i = j
            n += 1
        b = i
        if wrong >= 0:
            b = a
            while b < end and not blank(byte(buf, b)) and not over(byte(buf, b)):
                b += 1
        if i < end and byte(buf, i) != LF:
            i = rest_of_line(buf, i, end)
        if i >= end and not final:
            i, n, slows = first, start, began
            break
        stop = i
        while stop > first and over(byte(buf, stop - 1)):
            stop -= 1
        if wrong >= 0:
            bad[bads, 0], bad[bads, 1], bad[bads, 2], bad[bads, 3], bad[bads, 4], bad[bads, 5] = (
                first, stop, line, wrong, a, b
            )  # fmt: skip
            bads, n, slows = bads + 1, start, began
        else:
            rows[r, 0], rows[r, 1], rows[r, 2] = first, stop, line
            r += 1
            indptr[r] = n
        if i < end:
            line += 1
            i += 1
        known = keys.used[0]
    out[ROWS], out[STOP], out[LINE], out[SLOWS], out[BADS], out[WIDTH] = r, i, line, slows, bads, known


@inlined
def closes(c):
    """Whether a byte ends a name or a value of a Vowpal Wabbit line."""
    return blank(c) or over(c) or c == BAR


@inlined
def name_end(buf, i, end):
    """Where a name that starts at i ends."""
    while True:
        w = word(buf, i)
        x, y = w ^ COLONS, w ^ BARS
        hits = (((w - LOWS) & ~w) | ((x - ONES) & ~x) | ((y - ONES) & ~y)) & HIGH
        if hits == NONE:
            i += 8
            continue
        i += trailing(hits) >> 3
        if i >= end or closes(byte(buf, i)) or byte(buf, i) == COLON:
            return min(i, end)
        i += 1  # a control character


@compiled
def wabbit(buf, i, end, final, line, keys, met, data, indices, indptr, y, weight, rows, slow, bad, out):
    """Whole rows "label importance 'tag |namespace:value feature:value ... |..." from buf[i:end], unsorted.

    A feature of a namespace is named namespace^feature. What stands before the first bar without a space between, or
    starts with an apostrophe, is a tag. `slow` and `bad` are as in `svmlight`. The names of a namespace are first met
    all, and then looked up, by when memory has brought what that needs; `met` is room for them.
    """
    r, n, slows, bads, known = 0, 0, 0, 0, keys.used[0]
    room = data.size
    out[STATUS] = DONE
    while r < rows.shape[0] and bads < bad.shape[0]:
        first = i
        while i < end and (blank(byte(buf, i)) or byte(buf, i) == CR):
            i += 1
        if i < end and byte(buf, i) == LF:
            line += 1
            i += 1
            continue
        if i >= end:
            i = i if final else first
            break
        start, began, known, wrong, a, b = n, slows, keys.used[0], -1, i, i
        if n + (end - i) // 2 > room or slows + (end - i) // 2 + 2 > slow.shape[0]:
            stop = rest_of_line(buf, i, end)  # is there room for this row?
            if n + (stop - i) // 2 > room or slows + (stop - i) // 2 + 2 > slow.shape[0]:
                i = first
                break
        # label, importance, tag
        fields, y[r], weight[r] = 0, 0.0, 1.0
        while i < end and byte(buf, i) != BAR and not over(byte(buf, i)):
            a = i
            v, j, good = number(buf, i)
            if not blank(byte(buf, j)):
                good = 0
                while j < end and not blank(byte(buf, j)) and byte(buf, j) != BAR and not over(byte(buf, j)):
                    j += 1
            i = j
            if byte(buf, j) == BAR or byte(buf, a) == APOSTROPHE:
                while i < end and byte(buf, i) != BAR and not over(byte(buf, i)):
                    wrong = wrong if blank(byte(buf, i)) else NO_BAR
                    i += 1
                break
            if fields == 0:
                y[r] = v
            elif fields == 1:
                weight[r] = v
            else:
                k = j
                while k < end and byte(buf, k) != BAR and not over(byte(buf, k)):
                    k += 1
                wrong = BASE if byte(buf, k) == BAR else NO_BAR
                break
            if not good:
                slow[slows, 0], slow[slows, 1], slow[slows, 2], slow[slows, 3] = r, LABEL - fields, a, j
                slows += 1
            fields += 1
            while i < end and blank(byte(buf, i)):
                i += 1
        if fields == 0:
            slow[slows, 0], slow[slows, 1], slow[slows, 2], slow[slows, 3] = r, LABEL, i, i
            slows += 1
        if wrong < 0 and (i >= end or byte(buf, i) != BAR):
            wrong, a = NO_BAR, i
        # namespaces and their features
        crowded = False
        while wrong < 0 and i < end and byte(buf, i) == BAR:
            i += 1
            p = i
            while i < end and not closes(byte(buf, i)) and byte(buf, i) != COLON:
                i += 1
            q = i
            h, scale = FNV_START, 1.0
            if i >= end and not final:
                break  # the name may go on
            space = keys.space(buf, p, q)
            if space < 0:
                crowded = True
                break
            if q > p:
                h = (fnv(h, buf, p, q) ^ U(CARET)) * FNV_PRIME
            if byte(buf, i) == COLON and i < end:
                a = p
                scale, j, good = number(buf, i + 1)
                if q == p:
                    wrong = COLON_BAR
                    break
                if not good or not (closes(byte(buf, j)) or j >= end):
                    wrong = SCALE
                    break
                i = j
            before = n
            while True:
                while i < end and blank(byte(buf, i)):
                    i += 1
                if i >= end or over(byte(buf, i)) or byte(buf, i) == BAR:
                    break
                a = i
                i = name_end(buf, i, end)
                b = i
                if a == b:
                    wrong = NAMELESS
                    break
                data[n] = scale
                if byte(buf, i) == COLON and i < end:
                    v, j, good = number(buf, i + 1)
                    i += 1
                    if good and (closes(byte(buf, j)) or j >= end):
                        data[n] = v * scale
                    else:
                        j = i
                        while j < end and not closes(byte(buf, j)):
                            j += 1
                        slow[slows, 0], slow[slows, 1], slow[slows, 2], slow[slows, 3] = r, n, i, j
                        slows += 1
                    i = j
                if i >= end and not final:
                    break  # the name or the value may go on
                m = n - before
                met[m, 0], met[m, 1], met[m, 2] = keys.code(space, h, buf, a, b), U(a), U(b)
                n += 1
            for m in range(n - before):
                k = keys.entry(space, met[m, 0], buf, np.int64(met[m, 1]), np.int64(met[m, 2]))
                if k < 0:
                    crowded = True
                    break
                indices[before + m] = k
            if crowded:
                break
        if crowded:
            out[STATUS] = CROWDED
            i, n, slows = first, start, began
            break
        if wrong >= 0:
            b = a
            while b < end and not blank(byte(buf, b)) and not over(byte(buf, b)):
                b += 1
        i = rest_of_line(buf, i, end)
        if i >= end and not final:
            i, n, slows = first, start, began
            break
        stop = i
        while stop > first and over(byte(buf, stop - 1)):
            stop -= 1
        if wrong >= 0:
            bad[bads, 0], bad[bads, 1], bad[bads, 2], bad[bads, 3], bad[bads, 4], bad[bads, 5] = (
                first, stop, line, wrong, a, b
            )  # fmt: skip
            bads, n, slows = bads + 1, start, began
        else:
            rows[r, 0], rows[r, 1], rows[r, 2] = first, stop, line
            r += 1
            indptr[r] = n
        if i < end:
            line += 1
            i += 1
        known = keys.used[0]
    out[ROWS], out[STOP], out[LINE], out[SLOWS], out[BADS], out[WIDTH] = r, i, line, slows, bads, known


@compiled
def settle(data, indices, indptr, rows, value, key, bits, sums):
    """Put each row in ascending order of its columns and add up what has the same one, in place; the new size.

    Values are added in the order they stand in. Where rows are not too short for the number of columns, the columns of
    a row are marked in `bits`, added up in `sums` and read off in order; else keys are sorted: columns and, below them,
    places. `value`, `key` (two rows), `bits` and `sums` are work space: `bits` is zeros, first a bit a column, then a
    bit for each word of those; `sums` has a place a column, or none to sort always.
    """
    n, a, words = 0, indptr[0], -(-sums.size // 64)
    for r in range(rows):
        b = indptr[r + 1]
        in_order = True
        for k in range(a + 1, b):
            in_order &= indices[k - 1] < indices[k]
        size = b - a
        if in_order and n == a:  # it stands where it belongs
            n = a = b
            indptr[r + 1] = n
            continue
        if not in_order and 0 < bits.size - words <= SPARSEST * size:
            for k in range(a, b):
                j = np.int64(indices[k])
                w, bit = j >> 6, ONE << U(j & 63)
                if bits[w] & bit != NONE:
                    sums[j] += data[k]
                else:
                    bits[w] |= bit
                    bits[words + (w >> 6)] |= ONE << U(w & 63)
                    sums[j] = data[k]
            for group in range(words, bits.size):
                touched = bits[group]
                bits[group] = NONE
                while touched != NONE:
                    w = 64 * (group - words) + trailing(touched)
                    touched &= touched - ONE
                    marked = bits[w]
                    bits[w] = NONE
                    while marked != NONE:
                        j = 64 * w + trailing(marked)
                        data[n], indices[n] = sums[j], j
                        n += 1
                        marked &= marked - ONE
            indptr[r + 1] = n
            a = b
            continue
        if not in_order:
            for k in range(size):
                value[k] = data[a + k]
                key[0, k] = (np.int64(indices[a + k]) << 32) | k
            for left in range(0, size, RUN):
                for k in range(left + 1, min(left + RUN, size)):
                    moved, j = key[0, k], k
                    while j > left and key[0, j - 1] > moved:
                        key[0, j] = key[0, j - 1]
                        j -= 1
                    key[0, j] = moved
            width, here = RUN, 0
            while width < size:
                for left in range(0, size, 2 * width):
                    middle, right = min(left + width, size), min(left + 2 * width, size)
                    j, k = left, middle
                    for m in range(left, right):
                        if j < middle and (k >= right or key[here, j] < key[here, k]):
                            key[1 - here, m] = key[here, j]
                            j += 1
                        else:
                            key[1 - here, m] = key[here, k]
                            k += 1
                width, here = 2 * width, 1 - here
            for k in range(size):
                data[a + k], indices[a + k] = value[key[here, k] & PLACE], key[here, k] >> 32
        start = n
        for k in range(a, b):
            if n > start and indices[n - 1] == indices[k]:
                data[n - 1] += data[k]
            else:
                data[n], indices[n] = data[k], indices[k]
                n += 1
        indptr[r + 1] = n
        a = b
    return n
