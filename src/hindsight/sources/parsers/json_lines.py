"""Lines of JSON that are objects of numbers, all with the same names in the same order."""

from ...kernels.compiler import inlined, kernel
from .bits import COLON, CR, DOT, LF, MINUS, NINE, QUOTE, SPACE, TAB, ZERO, E
from .numbers import MAX_WHOLE, parse_number

OPEN, CLOSE, COMMA = (ord(c) for c in "{},")


@inlined
def after_blanks(buf, i):
    """The next byte that is neither a space nor a tab."""
    while buf[i] == SPACE or buf[i] == TAB:
        i += 1
    return i


@inlined
def is_plain(buf, a, b, v):
    """Whether buf[a:b] is a JSON number with the value v; false for inexact whole numbers and for -0 (0 in Python)."""
    negative = buf[a] == MINUS
    a += negative
    if not ZERO <= buf[a] <= NINE or (buf[a] == ZERO and ZERO <= buf[a + 1] <= NINE):
        return False
    whole = True
    for i in range(a, b):
        if buf[i] == DOT:
            whole = False
            if not ZERO <= buf[i + 1] <= NINE:
                return False
        whole = whole and buf[i] | 32 != E
    return not whole or (abs(v) < MAX_WHOLE and not (negative and v == 0.0))


@kernel
def parse_number_lines(buf, end, names, ends, out):
    """Parse the lines in buf[:end] into `out`, one row per name; returns the number of lines and where it stopped.

    names, ends : the quoted contents of the names, concatenated, and the end of each.
    It stops before `end` at the first line that is no such object: that is left to Python.
    """
    i, r = 0, 0
    while True:
        while i < end and (buf[i] == LF or buf[i] == CR or buf[i] == SPACE or buf[i] == TAB):
            i += 1
        if i >= end or r >= out.shape[1] or buf[i] != OPEN:
            return r, i
        first, m = i, 0
        for j in range(ends.size):
            i = after_blanks(buf, i + 1)
            if buf[i] != QUOTE:
                return r, first
            i += 1
            while m < ends[j] and buf[i] == names[m]:
                i, m = i + 1, m + 1
            if m < ends[j] or buf[i] != QUOTE:
                return r, first
            i = after_blanks(buf, i + 1)
            if buf[i] != COLON:
                return r, first
            i = after_blanks(buf, i + 1)
            v, b, good = parse_number(buf, i)
            if not good or b > end or not is_plain(buf, i, b, v):
                return r, first
            out[j, r] = v
            i = after_blanks(buf, b)
            if buf[i] != (COMMA if j + 1 < ends.size else CLOSE):
                return r, first
        i = after_blanks(buf, i + 1)
        if i < end and buf[i] != LF and buf[i] != CR:
            return r, first
        r += 1
