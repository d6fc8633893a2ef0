"""Rows that come one at a time, as dicts or 1-D arrays, at the price of one compiled call.

Numba's dispatcher costs several times more than a small row does, so each kind of row keeps its arguments and calls
the compiled function itself.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RowError
from ..kernels import dicts
from ..kernels.compiler import entry_point, for_parts
from ..kernels.dicts import DONE
from ..kernels.online import UNWATCHED, margin, play
from ..kernels.rows import CSR, Dense
from ..rows.matrices import explain

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from .run import Run


PLAIN = (dict, defaultdict, Counter)  # dicts whose items come in the order in which they are stored


def is_number(value: Any) -> bool:
    """Whether a value is a number that float64 can hold."""
    try:
        array("d", [value])
    except (TypeError, OverflowError):
        return False
    return True


class Arrays:
    """The row of the last 1-D array given."""

    def __init__(self, features: int, bias: float) -> None:
        self.values = np.zeros((1, features))
        self.rows = Dense(self.values, bias)

    def put(self, x: Any) -> None:
        x = np.asarray(x)
        if x.shape != self.values.shape[1:]:
            raise ValueError(f"x must have {self.values.shape[1]} features, got shape {x.shape}")
        self.values[0] = x

    def matrix(self) -> Any:
        return self.values


class Dicts:
    """The row of the last dict given. Names get their column at first sight; rows are played in ascending column.

    `column` maps each name to its column, and is shared with whoever gave it; `forget` tells that names left it.
    """

    def __init__(self, column: dict[Hashable, int], bias: float) -> None:
        self.column, self.bias = column, bias
        self._room(16)
        self.lay: Any = entry_point(dicts.lay, (0, 0, False, *self.work)) if dicts.READABLE else None

    def _room(self, size: int) -> None:
        """Room for rows of so many values."""
        self.data, self.indices, self.indptr = np.zeros(size), np.zeros(size, np.uint32), np.zeros(2, np.uint64)
        self.rows = CSR(self.data, self.indices, self.indptr, self.bias)
        self.forget()

    def forget(self) -> None:
        """Read the names and their columns anew."""
        self.table = np.zeros((4 << max(4, len(self.column).bit_length()), 3), np.int64)
        self.cursor, size = np.zeros(4, np.int64), self.data.size
        self.plain = dicts.READABLE and dicts.fill(id(self.column), dicts.KINDS, self.cursor, self.table)
        work = self.cursor, np.zeros((4, size), np.int64), np.zeros(size), np.zeros(size, np.int64)
        self.work = (dicts.KINDS, *work, self.table, self.data, self.indices, self.indptr)

    def put(self, x: Mapping[Hashable, float], grow: bool = False) -> None:
        """Lay the row out. A name without a column gets the next one with `grow`, and is left out without."""
        if type(x) in PLAIN and self.plain and self.lay(id(x), id(self.column), grow, *self.work) == DONE:
            return
        self._put(x, grow)

    def _put(self, x: Mapping[Hashable, float], grow: bool) -> None:
        """The same for names and numbers of any type."""
        column = self.column
        if grow:
            for name in x:
                if name not in column:
                    column[name] = len(column)
                    self._meet(name)
        found = [(column[name], value) for name, value in x.items() if name in column]
        try:
            values = np.array(array("d", [value for _, value in found]))
        except (TypeError, OverflowError):
            name, value = next((k, v) for k, v in x.items() if not is_number(v))
            raise ValueError(f"feature {name!r}: value {value!r} is not a number, or too large") from None
        if len(found) > self.data.size:
            self._room(2 * len(found))
        columns = np.array([j for j, _ in found], np.uint32)
        order = np.argsort(columns)
        self.data[: len(found)], self.indices[: len(found)] = values[order], columns[order]
        self.indptr[1] = len(found)

    def _meet(self, name: Hashable) -> None:
        """Let compiled code know a name that just got its column."""
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


class One:
    """One run on rows of one kind."""

    play: Any
    margin_of: Any

    def __init__(self, runs: list[Run], which: int, row: Any, old: One | None = None) -> None:
        run = runs[which]
        learner = run.learner
        self.runs, self.run, self.row, self.state, self.rows = runs, run, row, run.state, row.rows
        self.targets = learner.targets
        self.y, self.c, self.z, self.q, self.top = np.zeros(1), np.ones(1), np.zeros(1), np.zeros(1), np.zeros(1)
        out = self.z, self.q, self.top, run.tally, UNWATCHED
        self.args = (row.rows, 0, 1, self.y, self.c, *run.parts(), *out)
        self.margin_args = (row.rows, learner.geometry, run.state)
        if old is not None and type(old.row) is type(row) and old.run is run:  # with other arrays of the same types
            self.play, self.margin_of = old.play, old.margin_of
        else:
            parts = run.parts()[:3]
            self.play = entry_point(for_parts(play, *parts), self.args)
            self.margin_of = entry_point(for_parts(margin, *parts), self.margin_args)

    def stale(self) -> bool:
        """Whether the arrays it was made for have been replaced."""
        return self.state is not self.run.state or self.rows is not self.row.rows

    def swift(self) -> bool:
        """Whether it is the only run, on dicts, and no count of rates limits it."""
        return len(self.runs) == 1 and isinstance(self.row, Dicts) and not self.run.learner.rate.rates.size

    def lay(self, runs: list[Run], row: Any, x: Any, grow: bool) -> bool:
        """Lay out a dict where compiled code can and all is as when this was made; whether it did."""
        return (
            type(x) in PLAIN
            and self.row is row
            and row.plain
            and self.runs is runs
            and self.state is self.run.state
            and self.rows is row.rows
            and row.lay(id(x), id(row.column), grow, *row.work) == DONE
        )

    def learn(self, y: float, weight: float) -> None:
        """Play the row that was put, or raise and leave the run as it was."""
        self.y[0], self.c[0] = y, weight
        if self.play(*self.args) == 0:
            names = list(self.row.column) if isinstance(self.row, Dicts) else None
            explain(self.row.matrix(), 0, y, self.z[0], self.q[0], self.run.features, names)

    def margin(self) -> float:
        """The margin of the row that was put."""
        z: float = self.margin_of(*self.margin_args)
        if not abs(z) < np.inf:
            raise RowError(0, f": the margin is {z}: a value is not finite, or too large")
        return z
