"""Rows that come one at a time, as dicts or 1-D arrays, at the price of one compiled call.

Numba's dispatcher costs several times more than a small row does, so each kind of row keeps its arguments and calls
the compiled function itself.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import typeof

from . import kernels
from .kernels import CSR, Dense
from .run import RowError, explain

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from .run import Run


def compiled(function: Any, args: tuple[Any, ...]) -> Any:
    """The compiled form of a kernel for arguments of these types."""
    types = tuple(typeof(a) for a in args)  # type: ignore[no-untyped-call]
    function.compile(types)
    return function.overloads[types].entry_point


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

    `column` maps each name to its column, and is shared with whoever gave it.
    """

    def __init__(self, column: dict[Hashable, int], bias: float) -> None:
        self.column, self.bias = column, bias
        self.keys: tuple[Hashable, ...] | None = None  # of the last row looked up, and their columns
        self.columns: list[Any] = []
        self.known = False  # whether all of them have one
        self.ordered = False  # whether they ascend
        self.packers: dict[int, tuple[Any, Any]] = {}
        self._room(16)

    def _room(self, size: int) -> None:
        self.data, self.indices, self.indptr = np.zeros(size), np.zeros(size, np.uint32), np.zeros(2, np.uint64)
        self.buffers = self.data.data, self.indices.data
        self.rows = CSR(self.data, self.indices, self.indptr, self.bias)
        self.sort = compiled(kernels.sort_row, (self.data, self.indices, 0))

    def find(self, x: Mapping[Hashable, float]) -> bool:
        """Look the names up; whether each has a column."""
        keys = tuple(x)
        if keys != self.keys:  # looking 75 names up takes longer than all the rest
            self.columns = list(map(self.column.get, keys))
            self.keys, self.known, self.ordered = keys, None not in self.columns, False
        return self.known

    def put(self, x: Mapping[Hashable, float], grow: bool = False) -> None:
        """Lay the row out. A name without a column gets the next one with `grow`, and is left out without."""
        if self.find(x):
            columns, values = self.columns, x.values()
        elif grow:
            column = self.column
            pairs = zip(x, self.columns, strict=True)
            self.columns = [column.setdefault(k, len(column)) if j is None else j for k, j in pairs]
            self.known = True
            columns, values = self.columns, x.values()
        else:
            columns = [j for j in self.columns if j is not None]
            values = [v for j, v in zip(self.columns, x.values(), strict=True) if j is not None]  # type: ignore[assignment]
        count = len(columns)
        if count > self.data.size:
            self._room(2 * count)
        if count not in self.packers:
            self.packers[count] = struct.Struct(f"{count}d").pack_into, struct.Struct(f"{count}I").pack_into
        pack, pack_columns = self.packers[count]
        try:
            pack(self.buffers[0], 0, *values)
        except struct.error:
            name, value = next((k, v) for k, v in x.items() if not isinstance(v, (int, float, np.number)))
            raise ValueError(f"feature {name!r}: value {value!r} is not a number") from None
        self.indptr[1] = count
        if not self.ordered:
            pack_columns(self.buffers[1], 0, *columns)
            self.ordered = self.sort(self.data, self.indices, count) and self.known

    def matrix(self) -> Any:
        from scipy.sparse import csr_matrix

        k = int(self.indptr[1])
        width = max(len(self.column), 1)
        return csr_matrix((self.data[:k], self.indices[:k].astype(np.int32), [0, k]), shape=(1, width))


class One:
    """One run on rows of one kind."""

    def __init__(self, run: Run, row: Arrays | Dicts) -> None:
        learner = run.learner
        self.run, self.row, self.v, self.rows = run, row, run.v, row.rows
        self.y, self.c, self.z, self.q, self.top = np.zeros(1), np.ones(1), np.zeros(1), np.zeros(1), np.zeros(1)
        self.rates = learner.step.rates.size
        parts = (learner.rule, learner.update, learner.geometry, learner.step)
        self.args = (row.rows, 0, 1, self.y, self.c, *parts, run.v, run.s, self.z, self.q, self.top, run.f)
        self.play = compiled(kernels.play, self.args)
        self.glance = (row.rows, learner.geometry, run.v, run.s)
        self.look = compiled(kernels.look, self.glance)

    def stale(self) -> bool:
        """Whether the arrays it was made for have been replaced."""
        return self.v is not self.run.v or self.rows is not self.row.rows

    def spent(self) -> bool:
        """Whether rates were given and all are used up."""
        return 0 < self.rates <= self.run.s[0]

    def learn(self, y: float, weight: float) -> None:
        """Play the row that was put, or raise and leave the run as it was."""
        self.y[0], self.c[0] = y, weight
        if self.play(*self.args) == 0:
            width = self.v.shape[1] - bool(self.run.bias)
            names = list(self.row.column) if isinstance(self.row, Dicts) else None
            explain(self.row.matrix(), 0, y, self.z[0], self.q[0], width, names)

    def margin(self) -> float:
        """The margin of the row that was put."""
        z: float = self.look(*self.glance)
        if not abs(z) < np.inf:
            raise RowError(0, f": the margin is {z}: a value is not finite, or too large")
        return z
