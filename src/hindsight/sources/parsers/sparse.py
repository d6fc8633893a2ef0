"""Rows of names, or indices, and values: the loop over the lines of any grammar.

A grammar is a NamedTuple with

- `lookup`, which gives each name or index its column;
- `starts_comment(c)`, whether a line that starts with this byte has no row;
- `parse_row(buf, i, end, final, out, r, n, deferreds)`, which parses row r from position i on and puts its values from
  `out.data[n]` on, never beyond its end. It returns where it stopped, the new counts of values and of deferred fields,
  a status (WHOLE, FULL, CRAMPED, or an error code), and the place of the field at fault.

The number of values is not known beforehand. A row that does not fit is undone, and the caller enlarges the arrays.
"""

from typing import NamedTuple

import numpy as np

from ...kernels.compiler import inlined, kernel
from .bits import byte
from .records import (
    DONE,
    NO_ROOM,
    NO_SPACE,
    STATUS,
    add_bad,
    add_row,
    count,
    cut_off,
    ends_line,
    is_blank,
    line_end,
    next_line,
    skip_blanks,
)

LABEL, IMPORTANCE = -1, -2  # in `deferred`, instead of the place of a value in `data`
WHOLE, FULL, CRAMPED = -1, -2, -3  # FULL: no room for another name; CRAMPED: none for another value
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


@kernel
def parse_sparse(grammar, buf, i, end, final, line, out, counts):
    """Parse whole rows from buf[i:end]; the columns of a row are in the order of the text.

    out.deferred : row, place in `data` (or LABEL, IMPORTANCE), first byte and end of each field left to Python.
    out.bad : first byte, end and line of the row, the error code, and first byte and end of the field at fault.
    """
    r, n, deferreds, bads, known = 0, 0, 0, 0, grammar.lookup.used[0]
    counts[STATUS] = DONE
    while r < out.rows.shape[0] and bads < out.bad.shape[0]:
        first = i
        i = skip_blanks(buf, i, end)
        if i < end and grammar.starts_comment(byte(buf, i)):
            i = line_end(buf, i, end)
        if i < end and ends_line(byte(buf, i)):
            if cut_off(buf, i, end, final):
                i = first
                break
            line += 1
            i = next_line(buf, i)
            continue
        if i >= end:
            i = i if final else first
            break
        n_before, deferreds_before, known = n, deferreds, grammar.lookup.used[0]
        i, n, deferreds, status, at = grammar.parse_row(buf, i, end, final, out, r, n, deferreds)
        if status == CRAMPED or deferreds > out.deferred.shape[0]:
            counts[STATUS] = NO_SPACE
        elif status == FULL:
            counts[STATUS] = NO_ROOM
        else:
            i = line_end(buf, i, end)
        if counts[STATUS] != DONE or cut_off(buf, i, end, final):
            i, n, deferreds = first, n_before, deferreds_before
            break
        stop = i
        if status == WHOLE:
            r = add_row(out.rows, r, first, stop, line)
            out.indptr[r] = n
        else:
            bads = add_bad(out.bad, bads, first, stop, line, status, at, token_end(buf, at, end))
            n, deferreds = n_before, deferreds_before
        if i < end:
            line += 1
            i = next_line(buf, i)
        known = grammar.lookup.used[0]
    count(counts, r, i, line, deferreds, bads, known)
