"""Helpers shared by the parsers of rows: kinds of bytes, and lists of rows, bad rows and deferred fields."""

from ...kernels.compiler import inlined
from .bits import CR, LF, SPACE, TAB, byte

# What a parser counts, in `counts`: rows, the position and the line where it stopped, deferred fields, bad rows,
# columns, whether it stopped for want of room (for another name, or for what was parsed), and rows that were too short.
ROWS, STOP, LINE, DEFERRED, BAD, WIDTH, STATUS, SHORT = range(8)
DONE, NO_ROOM, NO_SPACE = range(3)


@inlined
def is_blank(c):
    """Whether a byte separates fields within a row."""
    return c == SPACE or c == TAB


@inlined
def ends_line(c):
    """Whether a byte ends a line."""
    return c == LF or c == CR


@inlined
def is_space(c):
    """Whether a byte is white space of any kind."""
    return is_blank(c) or ends_line(c)


@inlined
def skip_blanks(buf, i, end):
    """The position of the first byte from i on that is not blank, or the end."""
    while i < end and is_blank(byte(buf, i)):
        i += 1
    return i


@inlined
def line_end(buf, i, end):
    """The position of the byte that ends the line, or the end."""
    while i < end and not ends_line(byte(buf, i)):
        i += 1
    return i


@inlined
def cut_off(buf, i, end, final):
    """Whether the line that ends at i may continue in the next block, with more text or a line feed."""
    return not final and (i >= end or (byte(buf, i) == CR and i + 1 >= end))


@inlined
def next_line(buf, i):
    """The position after the end of a line at i: a line feed, a carriage return, or both."""
    return i + 2 if byte(buf, i) == CR and byte(buf, i + 1) == LF else i + 1


@inlined
def add_row(rows, count, first, stop, line):
    """List a row: its first byte, its end and its line. Returns the new count."""
    rows[count, 0], rows[count, 1], rows[count, 2] = first, stop, line
    return count + 1


@inlined
def add_bad(bad, count, first, stop, line, reason, a, b):
    """List a bad row: its place as in `add_row`, what is wrong, and two numbers about it. Returns the new count."""
    bad[count, 0], bad[count, 1], bad[count, 2] = first, stop, line
    bad[count, 3], bad[count, 4], bad[count, 5] = reason, a, b
    return count + 1


@inlined
def defer(deferred, count, row, place, a, b):
    """List a field that is left to Python: its row, its place there, and buf[a:b]. Returns the new count.

    Fields beyond the room for them are counted but not listed, which `parse_sparse` notices.
    """
    if count < deferred.shape[0]:
        deferred[count, 0], deferred[count, 1], deferred[count, 2], deferred[count, 3] = row, place, a, b
    return count + 1


@inlined
def count(counts, rows, stop, line, deferred, bad, width):
    """Set the counts of a parser, except for the status."""
    counts[ROWS], counts[STOP], counts[LINE] = rows, stop, line
    counts[DEFERRED], counts[BAD], counts[WIDTH] = deferred, bad, width
