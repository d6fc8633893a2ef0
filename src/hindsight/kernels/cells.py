"""Rows with their cells: indicators of the bins of numeric columns, cut at quantiles of earlier rows, and of pairs.

A column that is watched has a place. If the place has cuts q_1 <= ... <= q_15, the bin of a value is the number of cuts
below it, and the row has a 1 at that bin. A pair of places has 8 x 8 cells, each of two by two bins. The new row has
the bins first, then the cells of pairs, then the original columns. Neither targets nor later rows are used.
"""

from typing import NamedTuple

import numpy as np

from .compiler import kernel

PLACES, BINS = 32, 16  # numeric columns that are cut, and bins of each
PAIRS, GRID = 60, 8  # pairs of them, and bins of a column in a pair
MOST = PLACES + PAIRS  # entries that a row gets
WIDTH = PLACES * BINS + PAIRS * GRID * GRID
HELD = 512  # rows spread over the past whose quantiles are the cuts
ROUNDS, DUE, STRIDE = range(
    3
)  # of the clock: rows noted, after how many cuts are next made, and one in how many is held


class CellState(NamedTuple):
    """The cuts and pairs of the columns, and the sample of earlier rows that determines them.

    Attributes
    ----------
    clock : the number of rows counted, the next epoch, and the sampling interval of rows.
    met : the number of rows since the last epoch in which each column was nonzero.
    place : the place of each column, or -1.
    columns : the column of each place, or -1.
    cuts : the cuts of each place; NaN if it has none yet.
    held : the values in the sample of rows, one column per place; NaN if missing.
    pairs : the two places of each pair, or -1.
    values, bins : the values and bins of the current row.
    """

    clock: np.ndarray
    met: np.ndarray
    place: np.ndarray
    columns: np.ndarray
    cuts: np.ndarray
    held: np.ndarray
    pairs: np.ndarray
    values: np.ndarray
    bins: np.ndarray


@kernel
def expand(rows, first, last, c, state, data, indices, indptr):
    """Write rows first..last with their cells, up to an epoch; count those of positive weight; return how many rows.

    `indptr[0]` is the position at which they begin in `data` and `indices`.
    """
    clock, values, bins, pairs = state.clock, state.values, state.bins, state.pairs
    for i in range(last - first):
        t, at = first + i, np.int64(indptr[i])
        rows.ready(t)
        a, b = rows.span(t)
        values[:] = 0.0
        for k in range(a, b):
            j = rows.index(k)
            if j < state.place.size and state.place[j] >= 0:
                values[state.place[j]] = rows.entry(t, k)
        for p in range(values.size):
            if state.cuts[p, 0] == state.cuts[p, 0]:
                count = 0
                for q in range(BINS - 1):
                    count += state.cuts[p, q] < values[p]
                bins[p] = count
                data[at], indices[at] = 1.0, p * BINS + count
                at += 1
        for p in range(len(pairs)):
            if pairs[p, 0] < 0:
                break
            row, column = bins[pairs[p, 0]] * GRID // BINS, bins[pairs[p, 1]] * GRID // BINS
            data[at], indices[at] = 1.0, PLACES * BINS + (p * GRID + row) * GRID + column
            at += 1
        for k in range(a, b):
            x = np.float64(rows.entry(t, k))
            if x != 0.0:
                data[at], indices[at] = x, WIDTH + np.int64(rows.index(k))
                at += 1
        indptr[i + 1] = at
        if c[i] > 0.0:
            for k in range(a, b):
                j = rows.index(k)
                if j < state.met.size and rows.entry(t, k) != 0.0:
                    state.met[j] += 1
            if clock[ROUNDS] % clock[STRIDE] == 0:
                for p in range(values.size):
                    if state.columns[p] >= 0:
                        state.held[clock[ROUNDS] // clock[STRIDE], p] = values[p]
            clock[ROUNDS] += 1
            if clock[ROUNDS] == clock[DUE]:
                return i + 1
    return last - first
