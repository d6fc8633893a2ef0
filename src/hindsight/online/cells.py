"""Cells: indicator features of binned columns and of pairs of binned columns; see `kernels.cells`.

Some members of a panel learn on cells in addition to the columns. After 8, 32, 128, 512, ... rows there is an epoch, at
which columns are cut into bins. The cut q_k of a column is entry floor(k m / 16), counted from 0, of its m values in
the sample of rows, sorted. The sample has all rows at first, and from 512 rows on between 128 and 512 evenly spaced
ones. A column that was nonzero in a quarter of the rows since the last epoch is watched from an epoch on, if a place is
free. At the next epoch it gets cuts if the sample has more than six different values of it; otherwise it loses its
place. Columns that got cuts at an epoch form pairs with each other and with earlier ones; if there is no room for all
pairs, evenly spaced ones are taken. Later epochs move the cuts of a column but never remove cuts or pairs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kernels.cells import BINS, DUE, GRID, HELD, MOST, PAIRS, PLACES, ROUNDS, STRIDE, WIDTH, CellState, expand
from ..kernels.rows import CSR
from ..kernels.state import copied, restore, snapshot
from ..rows.matrices import unshared
from ..storage.registry import storable, want
from .panel import numbers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST, TIMES = 8, 4  # the first epoch, and how many times later the next is
DISTINCT = 6  # values of a column that is not numeric, at most
QUARTER = 4  # of the rows: one in so many must not be 0


class CellTable(NamedTuple):
    """The bins of a column, or the cells of a pair of columns.

    Attributes
    ----------
    columns : the one or two columns.
    effect : how far the bins or cells move predictions from their mean, on average over the sample of rows.
    cuts : the cuts of each column.
    weights : the weights of the bins, or of the cells with one row per bin of the first column.
    """

    columns: tuple[Any, ...]
    effect: float
    cuts: tuple[np.ndarray, ...]
    weights: np.ndarray


class Cells:
    """The cells of a stream with a given number of features.

    Attributes
    ----------
    state : CellState
        The cuts, pairs and sampled values of the columns.
    """

    width = WIDTH  # coordinates, before those of the columns

    def __init__(self, features: int) -> None:
        free, nothing = np.full(PLACES, -1), np.full
        self.state = CellState(
            np.array([0, FIRST, 1]), np.zeros(features, np.int64), nothing(features, -1), free,
            nothing((PLACES, BINS - 1), np.nan), nothing((HELD, PLACES), np.nan), nothing((PAIRS, 2), -1),
            np.zeros(PLACES), np.zeros(PLACES, np.int64),
        )  # fmt: skip

    def copy(self) -> Cells:
        """A copy with its own arrays."""
        other: Cells = object.__new__(Cells)
        other.state = copied(self.state)
        return other

    def reader(self) -> Cells:
        """A reader that only predicts, and may do so in parallel with others."""
        other: Cells = object.__new__(Cells)
        other.state = self.state._replace(values=self.state.values.copy(), bins=self.state.bins.copy())
        return other

    def snapshot(self) -> tuple[np.ndarray, ...]:
        """A copy of the state, for `restore`."""
        return snapshot(self.state)

    def restore(self, kept: tuple[np.ndarray, ...]) -> None:
        """Go back to a snapshot."""
        restore(self.state, kept)

    def resize(self, features: int) -> None:
        """Make room for this number of features."""
        kept = min(features, self.state.met.size)
        met, place = np.zeros(features, np.int64), np.full(features, -1)
        met[:kept], place[:kept] = self.state.met[:kept], self.state.place[:kept]
        self.state = self.state._replace(met=met, place=place)

    def touched(self, features: np.ndarray) -> np.ndarray:
        """The coordinates that may change when the coordinates `features` of the columns change."""
        return np.concatenate((np.arange(WIDTH), WIDTH + features))

    def most(self, rows: int, numbers: int) -> int:
        """The largest number of entries of `rows` rows with their cells, given their number without cells."""
        return numbers + rows * MOST

    def room(self, rows: int, numbers: int, bias: float) -> CSR:
        """A CSR buffer for `rows` rows with `numbers` entries in all, and their cells."""
        size = self.most(rows, numbers)
        return CSR(np.empty(size), np.empty(size, np.uint32), np.zeros(rows + 1, np.uint64), bias)

    def call(self, rows: Any, first: int, last: int, c: np.ndarray, room: CSR) -> tuple[Any, tuple[Any, ...]]:
        """The function that writes rows first..last with their cells into `room`, up to an epoch, and its arguments."""
        return expand, (rows, first, last, c, self.state, room.data, room.indices, room.indptr)

    def expanded(self, rows: Any, first: int, bounds: list[tuple[int, int]], c: np.ndarray, readers: int) -> Pieces:
        """Pieces of rows with their cells, each of which is requested by `readers` readers."""
        return Pieces(self, rows, first, bounds, c, readers)

    def expand(self, rows: Any, first: int, last: int, c: np.ndarray, room: CSR) -> None:
        """Write rows first..last with their cells into `room`; those of weight above 0 are counted."""
        done = 0
        while done < last - first:
            part = room._replace(indptr=room.indptr[done:])
            kernel, args = self.call(rows, first + done, last, c[done:], part)
            done += int(kernel(*args))
            self.pass_epoch()

    def pass_epoch(self) -> None:
        """Make cuts if an epoch has been reached."""
        if self.state.clock[ROUNDS] == self.state.clock[DUE]:
            self.cut()

    def cut(self) -> None:
        """Run an epoch: make cuts and pairs, and watch further columns."""
        s = self.state
        rounds = int(s.clock[ROUNDS])
        since = rounds - (rounds // TIMES if rounds > FIRST else 0)
        dense = np.flatnonzero((s.place < 0) & (QUARTER * s.met >= since))
        before = ~np.isnan(s.cuts[:, 0])
        for p in np.flatnonzero(s.columns >= 0):
            values = np.sort(s.held[~np.isnan(s.held[:, p]), p])
            if before[p] or np.count_nonzero(values[1:] > values[:-1]) >= DISTINCT:
                s.cuts[p] = values[np.arange(1, BINS) * values.size // BINS]
            else:
                s.place[s.columns[p]], s.columns[p], s.held[:, p] = -1, -1, np.nan
        self._pair(before)
        if rounds >= HELD:
            s.held[: HELD // TIMES], s.held[HELD // TIMES :] = s.held[::TIMES].copy(), np.nan
            s.clock[STRIDE] *= TIMES
        free = np.flatnonzero(s.columns < 0)[: dense.size]
        s.columns[free], s.place[dense[: free.size]] = dense[: free.size], free
        s.met[:] = 0
        s.clock[DUE] *= TIMES

    def _pair(self, before: np.ndarray) -> None:
        """Add pairs for places that have cuts now and had none `before`."""
        s = self.state
        places, free = np.flatnonzero(~np.isnan(s.cuts[:, 0])).tolist(), np.flatnonzero(s.pairs[:, 0] < 0)
        new = [(i, j) for k, i in enumerate(places) for j in places[k + 1 :] if not (before[i] and before[j])]
        size = min(len(new), free.size)
        for k in range(size):
            s.pairs[free[k]] = new[k * len(new) // size]

    def tables(self, weights: np.ndarray, names: Sequence[Any] | None = None) -> list[CellTable]:
        """The bins and cells with these weights, sorted by how much they move predictions, largest first."""
        s, found = self.state, []
        used = [(p,) for p in np.flatnonzero(~np.isnan(s.cuts[:, 0])).tolist()]
        for k, places in enumerate((*used, *(tuple(pair) for pair in s.pairs[s.pairs[:, 0] >= 0].tolist()))):
            bins = BINS if len(places) == 1 else GRID
            at = places[0] * BINS if len(places) == 1 else PLACES * BINS + (k - len(used)) * GRID * GRID
            own = weights[at : at + bins ** len(places)].reshape((bins,) * len(places))
            held = s.held[~np.isnan(s.held[:, places]).any(axis=1)]
            cells = tuple(np.searchsorted(s.cuts[p], held[:, p]) * bins // BINS for p in places)
            moved = own[cells]
            effect = float(np.abs(moved - moved.mean()).mean()) if moved.size else 0.0
            cuts = tuple(s.cuts[p, BINS // bins - 1 :: BINS // bins].copy() for p in places)
            columns = tuple(int(s.columns[p]) for p in places)
            shown = columns if names is None else tuple(names[j] for j in columns)
            found.append(CellTable(shown, effect, cuts, own.copy()))
        return sorted(found, key=lambda table: -table.effect)


class Pieces:
    """The pieces of a block with their cells, each made when the first reader requests it."""

    def __init__(
        self, cells: Cells, rows: Any, first: int, bounds: list[tuple[int, int]], c: np.ndarray, readers: int
    ) -> None:
        self.cells, self.rows, self.first, self.bounds, self.c = cells, unshared(rows), first, bounds, c
        self.made: list[CSR | None] = []
        self.waiting, self.lock = [readers] * len(bounds), threading.Lock()

    def __getitem__(self, piece: int) -> CSR:
        with self.lock:
            while len(self.made) <= piece:
                i, j = self.bounds[len(self.made)]
                a, b = self.first + i, self.first + j
                room = self.cells.room(j - i, numbers_of(self.rows, a, b, self.cells.state.met.size), self.rows.bias)
                self.cells.expand(self.rows, a, b, self.c[i:j], room)
                self.made.append(room)
            found = self.made[piece]
            assert found is not None
            self.waiting[piece] -= 1
            if not self.waiting[piece]:
                self.made[piece] = None
        return found


def check_state(fields: dict[str, Any]) -> None:
    """Refuse cells whose arrays do not fit together, since the compiled loop relies on their sizes."""
    met = fields["met"]
    want(isinstance(met, np.ndarray) and met.ndim == 1, "the `met` of cells must be a vector")
    for name, like in Cells(met.size).state._asdict().items():
        values = fields[name]
        known = isinstance(values, np.ndarray) and values.dtype == like.dtype and values.shape == like.shape
        want(known and values.flags.c_contiguous, f"the `{name}` of cells must have the shape {like.shape}")
    rounds, due, stride = fields["clock"].tolist()
    want(0 <= rounds < due, "the `clock` of cells must count rows")
    epoch, step = FIRST, 1
    while epoch <= rounds:
        epoch, step = epoch * TIMES, step * (TIMES if epoch >= HELD else 1)
    want((due, stride) == (epoch, step), "the `clock` of cells must be that of its rows")
    columns, place, pairs = fields["columns"], fields["place"], fields["pairs"]
    taken = np.flatnonzero(columns >= 0)
    want(columns.min() >= -1 and columns.max() < met.size, "the `columns` of cells must be columns")
    other = np.full(met.size, -1)
    other[columns[taken]] = taken
    want(np.array_equal(place, other), "the `place` of columns of cells must be where they are")
    cut = ~np.isnan(fields["cuts"])
    want(bool((cut.all(axis=1) == cut.any(axis=1)).all()), "the `cuts` of cells must be numbers, or none")
    want(set(np.flatnonzero(cut[:, 0])) <= set(taken), "the `cuts` of cells must be those of columns")
    used = pairs[pairs.min(axis=1) >= 0]
    known = bool((pairs[len(used) :] == -1).all()) and set(used.ravel()) <= set(np.flatnonzero(cut[:, 0]))
    want(known, "the `pairs` of cells must be of columns that have cuts")


def width_of(cells: Any, features: int) -> int:
    """The number of coordinates of cells; refuse anything that is not cells of `features` features."""
    known = isinstance(cells, Cells) and cells.state.met.size == features
    want(known, "the run's `cells` must be cells of its features")
    return WIDTH


def check_cells(fields: dict[str, Any]) -> None:
    """Refuse cells without a state."""
    want(isinstance(fields.get("state"), CellState) and len(fields) == 1, "cells must have a state and nothing else")


storable(CellState, check=check_state, where=__name__)
storable(Cells, check=check_cells)
