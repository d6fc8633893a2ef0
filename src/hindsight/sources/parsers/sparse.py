"""Rows of names, or indices, and values: the loop over the lines of any grammar.

A grammar is a NamedTuple with

- `lookup`, which gives each name or index its column;
- `most_values(size)`, the most values that so many bytes can hold;
- `starts_comment(c)`, whether a line that starts with this byte has no row;
- `parse_row(buf, i, end, final, out, r, n, deferreds)`, which parses row r from position i on and puts its values from
  `out.data[n]` on. It returns where it stopped, the new counts of values and of deferred fields, a status (WHOLE,
  FULL, or what is wrong), and where the field stands that is.
"""

from typing import NamedTuple

import numpy as np

from ...kernels.compiler import inlined, kernel
from .bits import CR, LF, byte
from .records import (
    DONE,
    NO_ROOM,
    STATUS,
    add_bad,
    add_row,
    count,
    ends_line,
    is_blank,
    line_end,
)

LABEL, IMPORTANCE = -1, -2  # in `deferred`, instead of the place of a value in `data`
WHOLE, FULL = -1, -2  # FULL: no room for another name
(
    NOT_A_PAIR, INDEX_TOO_LOW, INDEX_TOO_HIGH, NOT_ASCENDING, REPEATED_INDEX,
    NO_BAR, NO_NAME, INITIAL_PREDICTION, NO_NAMESPACE, BAD_SCALE,
) = range(10)  # fmt: skip


class SparseRows(NamedTuple):
    """Room for what is parsed: rows in CSR form with their labels and weights, then what `records` lists."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    rows: np.ndarray
    deferred: np.ndarray
    bad: np.ndarray


@inlined
def token_end(buf, i, end):
    """The position of the first white space from i on, or the end."""
    while i < end and not is_blank(byte(buf, i)) and not ends_line(byte(buf, i)):
        i += 1
    return i


@inlined
def has_room(out, n, deferreds, most):
    """Whether so many more values have room, even if they, the label and the importance are all deferred."""
    return n + most <= out.data.size and deferreds + most + 2 <= out.deferred.shape[0]


@kernel
def parse_sparse(grammar, buf, i, end, final, line, out, counts):
    """Whole rows from buf[i:end]; the columns of a row stand in the order of the text.

    out.deferred : row, place in `data` (or LABEL, IMPORTANCE), first byte and end of what is not a plain number.
    out.bad : first byte, end, line, what is wrong, first byte and end of the field that is.
    """
    r, n, deferreds, bads, known = 0, 0, 0, 0, grammar.lookup.used[0]
    counts[STATUS] = DONE
    while r < out.rows.shape[0] and bads < out.bad.shape[0]:
        first = i
        while i < end and (is_blank(byte(buf, i)) or byte(buf, i) == CR):
            i += 1
        if i < end and grammar.starts_comment(byte(buf, i)):
            i = line_end(buf, i, end)
        if i < end and byte(buf, i) == LF:
            line += 1
            i += 1
            continue
        if i >= end:
            i = i if final else first
            break
        n_before, deferreds_before, known = n, deferreds, grammar.lookup.used[0]
        if not has_room(out, n, deferreds, grammar.most_values(end - i)):
            if not has_room(out, n, deferreds, grammar.most_values(line_end(buf, i, end) - i)):
                i = first
                break
        i, n, deferreds, status, at = grammar.parse_row(buf, i, end, final, out, r, n, deferreds)
        if status == FULL:
            counts[STATUS] = NO_ROOM
        else:
            i = line_end(buf, i, end)
        if status == FULL or (i >= end and not final):
            i, n, deferreds = first, n_before, deferreds_before
            break
        stop = i
        while stop > first and ends_line(byte(buf, stop - 1)):
            stop -= 1
        if status == WHOLE:
            r = add_row(out.rows, r, first, stop, line)
            out.indptr[r] = n
        else:
            bads = add_bad(out.bad, bads, first, stop, line, status, at, token_end(buf, at, end))
            n, deferreds = n_before, deferreds_before
        if i < end:
            line += 1
            i += 1
        known = grammar.lookup.used[0]
    count(counts, r, i, line, deferreds, bads, known)
