"""Rows that come one at a time, as dicts or 1-D arrays, at the cost of one compiled call.

Numba's dispatcher costs several times more than a small row, so each kind of row keeps its arguments and calls the
compiled function directly. A lock would cost as much; a call on a dict needs none (see `One`).
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import RowError
from ..kernels import dicts
from ..kernels.compiler import compiled as compiled_with
from ..kernels.compiler import entry_point, for_parts
from ..kernels.dicts import DONE
from ..kernels.online import NO_NOTES, margin, moderate, play
from ..kernels.rows import CSR, Dense
from ..rows.matrices import explain
from ..validation import check_numbers
from .stack import Stages

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from .run import Run


FLOAT, INFINITY, NAN = np.dtype(np.float64), float("inf"), float("nan")
LOCKED = getattr(sys, "_is_gil_enabled", lambda: True)()  # whether a call can keep the interpreter's lock
PLAIN = (dict, defaultdict, Counter)  # dicts whose items come in the order in which they are stored


def is_vector(x: Any) -> bool:
    """Whether a row is an array that compiled code can read without conversion."""
    return type(x) is np.ndarray and x.dtype is FLOAT and x.ndim == 1 and x.flags.carray


def is_number(value: Any) -> bool:
    """Whether a value is a number that float64 can hold."""
    try:
        array("d", [value])
    except (TypeError, OverflowError):
        return False
    return True


# ---------------------------------------------------------------- a row in one call, with the interpreter's lock

PLAYED, NOT_PUT = 1, -1
ROW = np.int64(0)  # the only one; a plain 0 is a type of its own to numba, and would compile the loop again
held = compiled_with()


@held
def play_dict(  # type: ignore[no-untyped-def]
    x, column, room, target, alive, kinds, cursor, items, numbers, order, table, rows, y, c, loss, update, geometry,
    rate, state, progress, z, q, top, facts, notes,
):  # fmt: skip
    """Copy the dict at address x into a row and play it, if there are at most `room` names; alive[1] counts them."""
    if alive[0] == 0:
        return NOT_PUT
    row = rows.data, rows.indices, rows.indptr
    if dicts.lay(x, column, True, kinds, cursor, items, numbers, order, table, *row) != DONE or cursor[3] > room:
        return NOT_PUT
    y[0] = target
    played = play(rows, ROW, ROW + 1, y, c, loss, update, geometry, rate, state, progress, z, q, top, facts, notes)
    if played == PLAYED:
        alive[1] = cursor[3]
    return played


@held
def margin_of_dict(  # type: ignore[no-untyped-def]
    x, column, alive, kinds, cursor, items, numbers, order, table, rows, geometry, state
):
    """The margin of the dict at address x; NaN if it cannot be copied into a row."""
    if alive[0] == 0:
        return np.nan
    room = rows.data, rows.indices, rows.indptr
    if dicts.lay(x, column, False, kinds, cursor, items, numbers, order, table, *room) != DONE:
        return np.nan
    return margin(rows, geometry, state)


@held
def play_array(  # type: ignore[no-untyped-def]
    x, known, target, alive, rows, y, c, loss, update, geometry, rate, state, progress, z, q, top, facts, notes
):
    """Copy a vector and play it."""
    if alive[0] == 0 or x.size != rows.values.shape[1]:
        return NOT_PUT
    for j in range(x.size):
        rows.values[0, j] = x[j]
    y[0] = target
    return play(rows, ROW, ROW + 1, y, c, loss, update, geometry, rate, state, progress, z, q, top, facts, notes)


@held
def margin_of_array(x, alive, rows, geometry, state):  # type: ignore[no-untyped-def]
    """The margin of a vector; NaN if its size is wrong."""
    if alive[0] == 0 or x.size != rows.values.shape[1]:
        return np.nan
    for j in range(x.size):
        rows.values[0, j] = x[j]
    return margin(rows, geometry, state)


# ---------------------------------------------------------------- rows of each kind


class Arrays:
    """A row buffer filled from 1-D arrays."""

    plain, work = LOCKED, ()

    def __init__(self, features: int, bias: float) -> None:
        self.values = np.zeros((1, features))
        self.rows = Dense(self.values, bias)

    def put(self, x: Any) -> None:
        if not is_vector(x):
            check_numbers(x, "x")
        x = np.asarray(x)
        if x.shape != self.values.shape[1:]:
            raise ValueError(f"x must have {self.values.shape[1]} features, got shape {x.shape}")
        self.values[0] = x

    def matrix(self) -> Any:
        return self.values


class Dicts:
    """A row buffer filled from dicts. A name gets its column when it is first seen; entries are sorted by column.

    `column` maps each name to its column, and is shared with the caller; call `forget` after removing names from it.
    """

    def __init__(self, column: dict[Hashable, int], bias: float) -> None:
        self.column, self.address, self.bias = column, id(column), bias
        self._room(16)
        self.lay: Any = entry_point(dicts.lay, (0, 0, False, *self.work)) if dicts.READABLE else None

    def _room(self, size: int) -> None:
        """Make room for rows of this number of values."""
        self.data, self.indices, self.indptr = np.zeros(size), np.zeros(size, np.uint32), np.zeros(2, np.uint64)
        self.rows = CSR(self.data, self.indices, self.indptr, self.bias)
        self.forget()

    def forget(self) -> None:
        """Read the names and their columns again."""
        self.table = np.zeros((4 << max(4, len(self.column).bit_length()), 3), np.int64)
        self.cursor, size = np.zeros(4, np.int64), self.data.size
        self.plain = LOCKED and dicts.READABLE and dicts.fill(self.address, dicts.KINDS, self.cursor, self.table)
        work = self.cursor, np.zeros((4, size), np.int64), np.zeros(size), np.zeros(size, np.int64)
        self.work = (dicts.KINDS, *work, self.table, self.data, self.indices, self.indptr)

    def put(self, x: Mapping[Hashable, float], grow: bool = False) -> None:
        """Copy a dict into the row. A name without a column gets the next one if `grow`, and is left out otherwise."""
        if type(x) not in PLAIN:
            x = dict(x)
        if self.plain and self.lay(id(x), self.address, grow, *self.work) == DONE:
            return
        self._put(x, grow)

    def _put(self, x: Mapping[Hashable, float], grow: bool) -> None:
        """The same for names and numbers of any type."""
        column = self.column
        if not grow:
            x = {name: value for name, value in x.items() if name in column}
        try:
            values = np.array(array("d", x.values()))
        except (TypeError, OverflowError):
            name, value = next((k, v) for k, v in x.items() if not is_number(v))
            raise ValueError(f"feature {name!r}: value {value!r} is not a number, or too large") from None
        for name in x:
            if name not in column:
                column[name] = len(column)
                self._meet(name)
        if len(x) > self.data.size:
            self._room(2 * len(x))
        columns = np.array([column[name] for name in x], np.uint32)
        order = np.argsort(columns)
        self.data[: len(x)], self.indices[: len(x)] = values[order], columns[order]
        self.indptr[1] = len(x)

    def _meet(self, name: Hashable) -> None:
        """Tell compiled code about a name that just got its column."""
        if type(name) not in dicts.NAMES:
            self.plain = False
        elif self.plain and 2 * len(self.column) > len(self.table):
            self.forget()
        elif self.plain:
            dicts.enter(id(name), len(self.column) - 1, self.cursor, self.table)

    def matrix(self) -> Any:
        from scipy.sparse import csr_matrix

        k = int(self.indptr[1])
        width = max(len(self.column), 1)
        return csr_matrix((self.data[:k], self.indices[:k].astype(np.int32), [0, k]), shape=(1, width))


class BoundRun:
    """A run bound to single rows of one kind, which are put into `row`."""

    swift = False  # whether one call can put and play a row
    room = 0  # names for which there is room; 0 where no new one may join without being asked

    def __init__(self, runs: list[Any], which: int, row: Any) -> None:
        run = runs[which]
        self.runs, self.run, self.row, self.state, self.work = runs, run, row, run.state, row.work
        self.targets, self.alive = run.learner.targets, np.zeros(2, np.int64)
        self.y, self.c = np.zeros(1), np.ones(1)

    def stale(self) -> bool:
        """Whether the arrays that it was made for have been replaced."""
        return self.state is not self.run.state or self.work is not self.row.work

    def refuse(self, y: float, z: float, q: float) -> NoReturn:
        """Say why the row, of this margin and squared norm, could not be played."""
        names = list(self.row.column) if isinstance(self.row, Dicts) else None
        explain(self.row.matrix(), 0, y, z, q, self.run.features, names)


class One(BoundRun):
    """One run on rows of one kind.

    A row is first put and then learnt or predicted, and the caller must keep other threads out between the two. Or a
    single compiled call does both (`learn_whole`, `margin_whole`); it holds the interpreter's lock, so no other thread
    can interfere. It does nothing unless `alive` is 1; `alive` is 0 while a row is put, and after runs or classes have
    changed. `names_learnt` is the number of names after the rows that were learnt in this way.
    """

    play: Any
    look: Any
    play_whole: Any
    look_whole: Any

    def __init__(self, runs: list[Run], which: int, row: Any, old: One | None = None) -> None:
        super().__init__(runs, which, row)
        run, learner = self.run, self.run.learner
        self.z, self.q, self.top = np.zeros(1), np.zeros(1), np.zeros(1)
        out = self.z, self.q, self.top, run.tally, NO_NOTES
        self.args = (row.rows, 0, 1, self.y, self.c, *run.parts(), *out)
        self.margin_args = (row.rows, learner.geometry, run.state)
        self.named, laying = isinstance(row, Dicts), row.work[:-3]  # the last three are in the rows
        self.whole_args = (self.alive, *laying, row.rows, self.y, self.c, *run.parts(), *out)
        self.whole_margin_args = (self.alive, *laying, *self.margin_args)
        parts = run.parts()[:3]
        # It is swift where one call can do it all: for the only run, if no count of rates limits it. Kernels that call
        # others call the cached ones, which are not for parts from outside the package.
        only = len(runs) == 1 and not learner.rate.rates.size
        self.swift = bool(row.plain and only and for_parts(play, *parts) is play)
        if old is not None and type(old.row) is type(row) and old.run is run and old.swift >= self.swift:
            self.play, self.look = old.play, old.look  # with other arrays of the same types
            self.play_whole, self.look_whole = old.play_whole, old.look_whole
            return
        self.play = entry_point(for_parts(play, *parts), self.args)
        self.look = entry_point(for_parts(margin, *parts), self.margin_args)
        self.play_whole = self.look_whole = None
        if self.swift:
            given: tuple[Any, ...] = (0, 0) if self.named else (row.values[0],)
            plays, looks = (play_dict, margin_of_dict) if self.named else (play_array, margin_of_array)
            self.play_whole = entry_point(plays, (*given, 0, 0.0, *self.whole_args))
            self.look_whole = entry_point(looks, (*given, *self.whole_margin_args))

    def current(self, runs: list[Run], row: Any) -> bool:
        """Whether runs and rows are the same as when this was made."""
        return self.row is row and self.runs is runs and self.work is row.work and self.state is self.run.state

    @property
    def names_learnt(self) -> int:
        """The number of names after the last row that `learn_whole` learnt."""
        return int(self.alive[1])

    def learn_whole(self, x: Any, y: float, room: int) -> bool:
        """Learn a row in one call, if there are at most `room` names with it; otherwise nothing changes but names."""
        if self.named:
            played = type(x) in PLAIN and self.play_whole(id(x), self.row.address, room, y, *self.whole_args)
        else:
            played = is_vector(x) and self.play_whole(x, room, y, *self.whole_args)
        return bool(played == PLAYED)

    def margin_whole(self, x: Any) -> float:
        """The margin of a row in one call; NaN if that is not possible."""
        if self.named:
            return self.look_whole(id(x), self.row.address, *self.whole_margin_args) if type(x) in PLAIN else NAN
        return self.look_whole(x, *self.whole_margin_args) if is_vector(x) else NAN

    def learn(self, y: float, weight: float) -> None:
        """Play the row that was put, or raise and leave the run as it was."""
        self.y[0], self.c[0] = y, weight
        played = self.play(*self.args)
        self.c[0] = 1.0
        if played != PLAYED:
            self.refuse(y, self.z[0], self.q[0])

    def margin(self) -> float:
        """The margin of the row that was put."""
        z: float = self.look(*self.margin_args)
        if not -INFINITY < z < INFINITY:
            raise RowError(0, f": the margin is {z}: a value is not finite, or too large")
        return z


class PanelOne(BoundRun):
    """A panel on rows of one kind: the members bound to the row, several of a kind together, then the mixture."""

    def __init__(self, runs: list[Any], which: int, row: Any, old: Any = None) -> None:
        super().__init__(runs, which, row)
        run = self.run
        count, self.parties = len(run.members), run.parties()
        self.own, self.margins, self.out = np.empty((count, 3, 1)), np.empty((1, count)), np.empty((3, 1))
        self.z = self.out[0]
        kept = isinstance(old, PanelOne) and old.run is run and type(old.row) is type(row)
        kept = kept and len(old.plays) == len(self.parties)
        wide, self.cells = row.rows, run.cells
        if self.cells is not None:
            wide = self.cells.room(1, row.matrix().shape[1] if isinstance(row, Arrays) else row.data.size, run.bias)
            kernel, self.expanding = self.cells.call(row.rows, 0, 1, self.c, wide)
            self.expand = old.expand if kept else entry_point(kernel, self.expanding)
        given = [wide if run.sees_cells(party) else row.rows for party in self.parties]
        parties = zip(self.parties, given, strict=True)
        self.args = [party.arguments(rows, 0, 1, self.y, self.c, self.own) for party, rows in parties]
        kernels = zip(self.parties, self.args, strict=True)
        self.plays = old.plays if kept else [entry_point(party.kernel, args) for party, args in kernels]
        self.stages = Stages(run, self.margins, self.y, self.c, self.out)
        self.mixes = old.mixes if kept else [entry_point(*call) for call in reversed(self.stages.calls()[:2])]
        self.moderate = entry_point(moderate, (row.rows,))

    def stale(self) -> bool:
        """Whether the arrays that it was made for have been replaced."""
        return super().stale() or self.parties is not self.run.parties()

    def learn(self, y: float, weight: float) -> None:
        """Play the row that was put, or raise and leave the run as it was."""
        fine = self.moderate(self.row.rows) and abs(y) < 1e30 and 1e-20 < weight < 1e20
        before = None if fine else self.run.snapshot()  # a row of such numbers cannot fail after its first member
        try:
            self._play(y, weight)
        except BaseException:
            if before is not None:
                self.run.restore(before)
            raise
        self.stages.run(*self.mixes)

    def margin(self) -> float:
        """The margin of the row that was put."""
        self._play(0.0, 0.0)
        self.stages.run(*self.mixes)
        return float(self.out[0, 0])

    def _play(self, y: float, weight: float) -> None:
        self.y[0], self.c[0] = y, weight
        if self.cells is not None:
            self.expand(*self.expanding)
            self.cells.pass_epoch()
        for party_plays, args in zip(self.plays, self.args, strict=True):
            if party_plays(*args) != PLAYED:
                bad = int(np.argmax(~np.isfinite(self.own[:, 0, 0])))
                self.refuse(y, self.own[bad, 0, 0], self.own[bad, 1, 0])
        self.margins[0], self.out[1:] = self.own[:, 0, 0], self.own[0, 1:]
