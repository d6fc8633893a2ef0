"""Rows as the loops read them: dense, of any strides, and sparse.

Row t consists of the entries k in span(t), each at coordinate index(k), and of the intercept coordinate of the value
`bias` (0: none), the last one of the weights. Entries are accessed one by one, since a view of the row would cost
reference counting in every round.
"""

from typing import NamedTuple

import numpy as np

from .compiler import inlined, part
from .losses import PLAIN_SUM
from .row_loops import (
    ascending_within,
    axpy_dense,
    axpy_sparse,
    exponents_dense,
    exponents_sparse,
    inner_dense,
    inner_sparse,
    prefetch_row,
)
from .simd import larger


def dense_inner(self, w, t):
    return inner_dense(self, w, t)


def dense_axpy(self, loss, w, t, d):
    axpy_dense(self, loss, w, t, d)


def dense_exponents(self, loss, geometry, theta, numerator, t, d, mass, shift):
    """The mass of the coordinates that the row does not touch, and of those it does after the step."""
    return 0.0, exponents_dense(self, loss, geometry, theta, numerator, t, d, shift)


def every_column(self, k):
    return k


def every_index(self, t, width):
    return True


def own_offset(self, t):
    return self.offset[t] if self.offset.size > 0 else 0.0


def no_offset(self, t):
    return 0.0


NOTHING, MANY = np.empty(0), 2**62


@part
class Dense(NamedTuple):
    """C-contiguous rows. For second-order geometries the margin of row t includes offset[t], if there is one."""

    values: np.ndarray
    bias: float
    offset: np.ndarray = NOTHING

    def ready(self, t):
        prefetch_row(self.values, t * self.values.strides[0], self.values.strides[0])

    def span(self, t):
        return 0, self.values.shape[1]

    def line(self, t):
        n = self.values.shape[1]
        return self.values, t * n, n

    def entry(self, t, k):
        return self.values[t, k]

    index, inner, axpy, step_exponents = every_column, dense_inner, dense_axpy, dense_exponents
    ascending, begins_at = every_index, own_offset


@part
class Spaced(NamedTuple):
    """Rows each of which is contiguous: some columns of a matrix, every other row, overlapping windows of a signal.

    `memory` is the memory that contains them, as a vector; each row begins `apart` numbers after the previous one.
    """

    memory: np.ndarray
    columns: int
    apart: int
    bias: float

    def ready(self, t):
        pass

    def span(self, t):
        return 0, self.columns

    def line(self, t):
        return self.memory, t * self.apart, self.columns

    def entry(self, t, k):
        return self.memory[t * self.apart + k]

    index, inner, axpy, step_exponents = every_column, dense_inner, dense_axpy, dense_exponents
    ascending, begins_at = every_index, no_offset


@part
class Strided(NamedTuple):
    """Rows of any strides; each is copied to a contiguous scratch row, so that sums run as for `Dense`.

    Row t begins at number `first` + t `down` of `memory`, and its columns lie `across` numbers apart. The first `skip`
    columns are not there, and 0. For the offset see `Dense`.
    """

    memory: np.ndarray
    scratch: np.ndarray
    first: int
    down: int
    across: int
    bias: float
    offset: np.ndarray = NOTHING
    skip: int = 0

    def ready(self, t):
        at = self.first + t * self.down
        for j in range(self.skip, self.scratch.size):
            self.scratch[j] = self.memory[at + j * self.across]

    def span(self, t):
        return 0, self.scratch.size

    def line(self, t):
        return self.scratch, 0, self.scratch.size

    def entry(self, t, k):
        return self.scratch[k]

    index, inner, axpy, step_exponents = every_column, dense_inner, dense_axpy, dense_exponents
    ascending, begins_at = every_index, own_offset


@part
class CSR(NamedTuple):
    """Sparse rows. Unsigned indices avoid numba's test for negative indices."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    bias: float

    def ready(self, t):
        pass

    def span(self, t):
        return self.indptr[t], self.indptr[t + 1]

    def index(self, k):
        return self.indices[k]

    def entry(self, t, k):
        return self.data[k]

    begins_at = no_offset

    def ascending(self, t, width):
        return ascending_within(self, t, width)

    def inner(self, w, t):
        return inner_sparse(self, w, t)

    def axpy(self, loss, w, t, d):
        axpy_sparse(self, loss, w, t, d)

    def step_exponents(self, loss, geometry, theta, numerator, t, d, mass, shift):
        old, new = exponents_sparse(self, loss, geometry, theta, numerator, t, d, shift)
        return mass - old, new


@part
class Backwards(NamedTuple):
    """The first columns of sparse rows, in reverse order (see `backwards`)."""

    rows: CSR
    columns: int
    bias: float

    def ready(self, t):
        pass

    def span(self, t):
        a, b = self.rows.span(t)
        for k in range(a, b):
            if np.int64(self.rows.index(k)) >= self.columns:
                return a, k
        return a, b

    def index(self, k):
        return self.columns - 1 - np.int64(self.rows.index(k))

    def entry(self, t, k):
        return self.rows.entry(t, k)

    def ascending(self, t, width):
        return self.rows.ascending(t, MANY)

    begins_at = no_offset


def strided(rows):
    """Dense rows of any kind as `Strided` ones, with a scratch row of their own."""
    if isinstance(rows, Strided):
        return rows._replace(scratch=np.zeros_like(rows.scratch))
    if isinstance(rows, Spaced):
        memory, down, columns, offset = rows.memory, rows.apart, rows.columns, NOTHING
    else:
        memory, down, columns, offset = rows.values.reshape(-1), rows.values.shape[1], rows.values.shape[1], rows.offset
    return Strided(memory, np.zeros(columns, memory.dtype), 0, down, 1, rows.bias, offset)


def backwards(rows, columns):
    """The first columns of rows, in reverse order, so that the rarest come first if names get columns as they occur.

    This makes second order cheap, as a row changes the triangle only from its first entry on.
    """
    if isinstance(rows, CSR):
        return Backwards(rows, columns, rows.bias)
    rows = strided(rows)
    first, missing = rows.first + (columns - 1) * rows.across, max(0, columns - rows.scratch.size)
    scratch = np.zeros(columns, rows.scratch.dtype)
    return rows._replace(scratch=scratch, first=first, across=-rows.across, skip=missing)


@inlined
def ascends(rows, t, width):
    """Whether the indices of row t ascend and are below the width, the intercept's coordinate included."""
    return rows.ascending(t, width - (1 if rows.bias != 0.0 else 0))


@inlined
def inner(w, rows, t):
    """The inner product and the two norms of a row with its intercept coordinate."""
    dot, q, top = rows.inner(w, t)
    if rows.bias != 0.0:
        dot += rows.bias * w[w.size - 1]
        q += rows.bias * rows.bias
        top = larger(top, rows.bias)
    return dot, q, top


@inlined
def size_of_margin(u, rows, t):
    """Sigma |u_i x_i|, the scale of rounding errors in the margin of row t."""
    a, b = rows.span(t)
    size = abs(rows.bias * u[u.size - 1]) if rows.bias != 0.0 else 0.0
    for k in range(a, b):
        size += abs(u[rows.index(k)] * rows.entry(t, k))
    return size


@inlined
def axpy(loss, w, rows, t, d):
    """w += d x_t, with the intercept coordinate, rounded as the loss requires."""
    rows.axpy(loss, w, t, d)
    if rows.bias != 0.0:
        w[w.size - 1] = loss.rounded_step(w[w.size - 1], d, rows.bias)


@inlined
def add(w, rows, t, d):
    """The same, rounded twice."""
    axpy(PLAIN_SUM, w, rows, t, d)


@inlined
def write_row(rows, t, out):
    """Row t with its intercept coordinate, every coordinate written out."""
    out[:] = 0.0
    a, b = rows.span(t)
    for k in range(a, b):
        out[rows.index(k)] = rows.entry(t, k)
    if rows.bias != 0.0:
        out[out.size - 1] = rows.bias


@inlined
def product(a, b):
    """The inner product of two vectors, summed in order."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total
