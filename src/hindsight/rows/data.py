"""The rows of a run as a linear operator that can be read again.

Comparators need u -> (u . x_t)_t, its transpose r -> Sigma_t r_t x_t and, for few coordinates, the Gram matrix. Rows
are not copied: they stay in an array, in a CSR matrix, or in chunks that are read again for every pass. The intercept
is the last coordinate, of the constant value `bias`, and is never written into the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RowError
from ..kernels import operators
from ..kernels.floats import Floats
from ..kernels.rows import CSR, Dense
from .checksum import RowChecksum
from .matrices import checked, explain, rows_of, unsealed
from .one_thread import WIDE, one_thread
from .stripes import add_up
from .table import Measured, check_coordinates, measure

Chunk = tuple[Any, ArrayLike, ArrayLike | None]
Rows = Any  # `Dense` or `CSR` rows of the kernels

BLOCK = 1 << 19  # numbers in a block that is copied, scaled or converted: 4 MB, so that it stays in cache


def _as_rows(X: Any, bias: float) -> Rows:
    """Return the rows of a checked matrix as the loops read them; dense ones without a copy (see `_contiguous`)."""
    return Dense(unsealed(X), bias) if isinstance(X, np.ndarray) else rows_of(X, bias)


def _contiguous(rows: Rows, first: int) -> Iterator[tuple[int, Rows, int]]:
    """Yield the rows as a whole, or in copied blocks if they are not C-contiguous."""
    if isinstance(rows, CSR):
        yield first, rows, rows.indptr.size - 1
        return
    count, columns = rows.values.shape
    size = count if rows.values.flags.c_contiguous else max(1, BLOCK // max(1, columns))
    for k in range(0, count, max(1, size)):
        part = np.ascontiguousarray(rows.values[k : k + size])
        yield first + k, Dense(part, rows.bias), part.shape[0]


def _vector(values: ArrayLike | None, count: int, name: str) -> Floats:
    out = np.ones(count) if values is None else np.array(values, dtype=np.float64)
    if out.shape != (count,):
        raise ValueError(f"{name} must have one number per row: {count} rows, got shape {out.shape}")
    if not np.isfinite(out).all():
        row = int(np.flatnonzero(~np.isfinite(out))[0])
        raise ValueError(f"{name} must be finite, got {out[row]} in row {row}")
    return out


class Data:
    """Rows x_t with targets y_t and weights c_t as a linear operator, readable any number of times.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (m, d)
        The rows, which `checked` verifies; plain float32 or float64 is not copied. Sums are in float64.
    y : array_like of shape (m,)
        Targets.
    weight : array_like of shape (m,), default None
        Weights, at least 0; None is 1 for every row.
    bias : float, default 0.0
        The value of an intercept coordinate, which comes last; 0 means none.

    Attributes
    ----------
    rounds, width : int
        The number of rows, and of coordinates with the intercept.
    y, c : ndarray of shape (m,)
        Targets and weights.
    passes : int
        How often the rows were read so far.

    Examples
    --------
    >>> data = Data(np.array([[1.0, 2.0], [3.0, 4.0]]), [1.0, -1.0], bias=1.0)
    >>> data.margins(np.array([1.0, 0.0, 10.0]))
    array([11., 13.])
    >>> data.combine(np.array([1.0, 1.0]))
    array([4., 6., 2.])
    """

    def __init__(self, X: Any, y: ArrayLike, weight: ArrayLike | None = None, bias: float = 0.0) -> None:
        self._X: Any = checked(X)
        self._rows: Rows | None = _as_rows(self._X, float(bias))
        self._read: list[int] | None = None  # the checksum of the first reading of chunks
        self._source: Callable[[], Iterable[Chunk]] | None = None
        self._set(self._X.shape[0], self._X.shape[1], y, weight, bias)

    @classmethod
    def from_chunks(cls, chunks: Callable[[], Iterable[Chunk]], bias: float = 0.0) -> Data:
        """Return the data of a callable that returns a new iterator of (X, y, weight or None) at each call.

        Targets and weights are kept (16 bytes per row); the rows are read again for every pass.
        """
        data = cls.__new__(cls)
        labels, weights, widths, read = [], [], set(), RowChecksum()
        for X, y, weight in chunks():
            read.add(checked(X), y, weight)
            labels.append(_vector(y, X.shape[0], "y"))
            weights.append(_vector(weight, X.shape[0], "weight"))
            widths.add(X.shape[1])
        if len(widths) != 1:
            raise ValueError(f"chunks must all have the same number of columns, got {sorted(widths) or 'no chunk'}")
        data._X, data._rows, data._source, data._read = None, None, chunks, read.counts
        y_all = np.concatenate(labels)
        data._set(y_all.size, widths.pop(), y_all, np.concatenate(weights), bias)
        data.passes = 1
        return data

    @classmethod
    def of_parts(cls, parts: Sequence[Chunk], bias: float = 0.0) -> Data:
        """Return the data of rows in memory in several parts of the same width, without copying them."""
        data = cls.__new__(cls)
        data._X, data._rows, data._source, data._read = None, None, lambda: parts, None
        labels = [_vector(y, X.shape[0], "y") for X, y, _ in parts]
        weights = [_vector(weight, X.shape[0], "weight") for X, _, weight in parts]
        y_all = np.concatenate(labels)
        data._set(y_all.size, parts[0][0].shape[1], y_all, np.concatenate(weights), bias)
        return data

    def _set(self, rounds: int, columns: int, y: ArrayLike, weight: ArrayLike | None, bias: float) -> None:
        self.bias = float(bias)
        self.rounds, self.width = int(rounds), int(columns) + (1 if bias != 0.0 else 0)
        self.y, self.c = _vector(y, rounds, "y"), _vector(weight, rounds, "weight")
        if self.c.size and self.c.min() < 0.0:
            raise ValueError(f"weights must be at least 0, got {self.c.min()} in row {int(self.c.argmin())}")
        self._keep_nothing()

    def _keep_nothing(self) -> None:
        """Begin without results that are kept for the next call."""
        self.passes = 0
        self._factors: tuple[float, Floats] | None = None
        self._norms: tuple[Floats, Floats] | None = None
        self._last: tuple[Floats, Floats] | None = None
        self._moments: tuple[Floats, Floats, Floats, Floats] | None = None
        self._leading: Data | None = None

    def __repr__(self) -> str:
        where = "chunks" if self._rows is None else type(self._rows).__name__
        return f"Data({self.rounds} x {self.width}, {where}, bias={self.bias})"

    @property
    def stays(self) -> bool:
        """Whether all rows stay in memory as the loops read them, so that each pass finds the same arrays."""
        if self._source is not None and self._read is not None:  # chunks are made anew
            return False
        parts = [self._X] if self._source is None else [X for X, _, _ in self._source()]
        return all(X is not None and (not isinstance(X, np.ndarray) or X.flags.c_contiguous) for X in parts)

    def blocks(self) -> Iterator[tuple[int, Rows, int]]:
        """Read the rows once, as tuples of the first row's number, rows as the loops read them, and their number.

        Dense rows are C-contiguous. Chunks are checked against the first pass.
        """
        self.passes += 1
        if self._rows is not None:
            yield from _contiguous(self._rows, 0)
            return
        assert self._source is not None
        first, columns, read = 0, self.width - (1 if self.bias != 0.0 else 0), RowChecksum()
        for X, y, weight in self._source():
            X = checked(X)
            count = X.shape[0]
            if self._read is None:  # parts in memory
                yield from _contiguous(_as_rows(X, self.bias), first)
                first += count
                continue
            read.add(X, y, weight)
            if X.shape[1] != columns:
                raise ValueError(f"a chunk has {X.shape[1]} columns, on the first reading all had {columns}")
            known = self.y[first : first + count]
            if known.size < count or not np.array_equal(known, np.asarray(y, dtype=np.float64)):
                raise ValueError(
                    f"the source gave other rows on a second reading, from row {first} on; "
                    "a certificate reads the rows several times: give a callable that starts again from the first row"
                )
            yield from _contiguous(_as_rows(X, self.bias), first)
            first += count
        if first != self.rounds:
            raise ValueError(
                f"the source gave {first} rows on a second reading and {self.rounds} on the first; a certificate reads "
                "the rows several times: give a callable that returns a new iterator at each call, or rows in memory"
            )
        if self._read is not None and read.differs_from(self._read):
            raise ValueError("the source gave other rows on a second reading: they, or their order, changed meanwhile")

    @property
    def weight(self) -> float:
        """The total weight of the rows."""
        return float(self.c.sum())

    def sum(self, work: Callable[..., Any], *shared: Any, add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return work(data, *shared), since all rows are one block (see `rows.table`)."""
        return work(self, *shared)

    def measured(self, kind: str, names: Sequence[Any] | None = None) -> Measured:
        """Return sums and maxima of the rows, or refuse rows that cannot be learnt."""
        return measure(self, kind, names).checked()

    def factors(self, total: float) -> Floats:
        """Return the weights divided by a number; do not write to the result, which is kept for the next call."""
        if self._factors is None or self._factors[0] != total:
            self._factors = total, self.c / total
        return self._factors[1]

    def margins(self, u: Floats) -> Floats:
        """Return u . x_t for every row; do not write to the result, which may be kept for the next call."""
        w, out = self.check(u), np.empty(self.rounds)
        if self._last is not None and np.array_equal(self._last[0], w):
            return self._last[1]

        def work(part: slice, rows: Rows) -> None:
            operators.margins(rows, w, out[part])

        self._add_up(work)
        return out

    def _add_up(self, work: Callable[..., None], *sums: Floats) -> None:
        """Let work(part, rows, *sums) add to the sums, in one pass over all rows."""
        for first, rows, count in self.blocks():
            add_up(work, first, rows, count, *sums)

    def kept_margins(self, u: Floats) -> Floats:
        """Return `margins`, and keep them for the next call."""
        z = self.margins(u)
        self._last = u.copy(), z
        return z

    def margin_sizes(self, u: Floats) -> Floats:
        """Return Sigma_i |u_i x_ti| for every row, the scale of rounding errors in a margin."""
        w, out = self.check(u), np.empty(self.rounds)

        def work(part: slice, rows: Rows) -> None:
            operators.margin_sizes(rows, w, out[part])

        self._add_up(work)
        return out

    def combine(self, r: Floats) -> Floats:
        """Return Sigma_t r_t x_t; rows with r_t = 0 are skipped."""
        total: Floats = np.zeros(self.width)
        r = np.ascontiguousarray(r, dtype=np.float64)

        def work(part: slice, rows: Rows, total: Floats) -> None:
            operators.combine(rows, r[part], total)

        self._add_up(work, total)
        return total

    def residual_gradient(self, u: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Return the margins u . x_t, and Sigma_t a_t (u . x_t - y_t) x_t, half the gradient of squares; one pass."""
        w, out, gradient = self.check(u), np.empty(self.rounds), np.zeros(self.width)

        def work(part: slice, rows: Rows, gradient: Floats) -> None:
            operators.residual_gradient(rows, w, self.y[part], a[part], out[part], gradient)

        self._add_up(work, gradient)
        self._last = w.copy(), out
        return out, gradient

    def half_gradient(self, u: Floats, a: Floats) -> Floats:
        """Return the second of `residual_gradient`; the margins are kept for the next call."""
        return self.residual_gradient(u, a)[1]

    def column_squares(self, a: Floats) -> Floats:
        """Return Sigma_t a_t x_ti^2 of every column; one pass."""
        n = self.width - (1 if self.bias != 0.0 else 0)
        sums = np.zeros(self.width)
        for first, rows, count in self.blocks():
            part = a[first : first + count]
            if isinstance(rows, CSR):
                operators.combine(rows._replace(data=np.square(rows.data, dtype=np.float64)), part, sums)
            else:
                size = max(1, BLOCK // max(1, n))
                for k in range(0, count, size):  # squares of a block stay in cache
                    sums[:n] += part[k : k + size] @ np.square(rows.values[k : k + size], dtype=np.float64)
        if self.bias != 0.0:
            sums[-1] = self.bias**2 * a.sum()
        return sums

    def moments(self, a: Floats, r: Floats) -> tuple[Floats, Floats]:
        """Return Sigma_t a_t x_t x_t^T, with a_t >= 0, and Sigma_t r_t x_t; one pass.

        The last result is kept, and used again for the same a and r, or for multiples of both by one number.
        """
        kept = self._moments
        if kept is not None:
            factor = multiple(a, kept[0])
            if factor is not None and multiple(r, kept[1]) == factor:
                return factor * kept[2], factor * kept[3]
        with one_thread(self.width):
            gram, sums = self._sum_moments(a, r)
        self._moments = a.copy(), r.copy(), gram, sums
        return gram.copy(), sums.copy()

    def _sum_moments(self, a: Floats, r: Floats) -> tuple[Floats, Floats]:
        n = self.width - (1 if self.bias != 0.0 else 0)
        gram, ends, sums = np.zeros((self.width, self.width)), np.zeros(self.width), np.zeros(self.width)

        def work(part: slice, rows: Rows, gram: Floats, ends: Floats, sums: Floats) -> None:
            if isinstance(rows, CSR):
                operators.outer(rows, a[part], gram)
                operators.combine(rows, r[part], sums)
                if self.bias != 0.0:
                    operators.combine(rows, a[part], ends)
            else:
                into = (gram[:n, :n], ends[:n] if self.bias != 0.0 else None, sums[:n])
                _dense_moments(rows.values, a[part], r[part], *into)
                if self.bias != 0.0:
                    sums[-1] += self.bias * r[part].sum()

        if self.width < WIDE:
            self._add_up(work, gram, ends, sums)
        else:  # the products have threads of their own, and many sums would not fit
            for first, rows, count in self.blocks():
                work(slice(first, first + count), rows, gram, ends, sums)
        lower = np.tril_indices(n, -1)
        gram[lower] = gram.T[lower]
        if self.bias != 0.0:
            gram[-1, :n] = gram[:n, -1] = self.bias * ends[:n]
            gram[-1, -1] = self.bias**2 * a.sum()
        return gram, sums

    def row_norms2(self) -> Floats:
        """Return |x_t|_2^2 of every row, the intercept included."""
        return self._norm_pair()[0]

    def row_norms_inf(self) -> Floats:
        """Return |x_t|_inf of every row, the intercept included."""
        return self._norm_pair()[1]

    def finite_norms2(self, names: Sequence[Any] | None = None) -> Floats:
        """Return `row_norms2`, or raise a RowError for the first row with an entry or a norm that is not finite.

        Parameters
        ----------
        names : sequence, default None
            Names of the columns, for the error.
        """
        q = self.row_norms2()
        if not np.isfinite(q).all():
            row = int(np.flatnonzero(~np.isfinite(q))[0])
            if self._X is not None:
                explain(self._X, row, float(self.y[row]), 0.0, float(q[row]), self._X.shape[1], names)
            raise RowError(row, ": a value is not finite, or its square overflows")
        return q

    def _norm_pair(self) -> tuple[Floats, Floats]:
        if self._norms is None:
            self.margins_and_norms(np.zeros(self.width))
        assert self._norms is not None
        return self._norms

    def margins_and_norms(self, w: Floats) -> Floats:
        """Return w . x_t for every row, from a pass that also computes the norms and keeps them."""
        z, q, top = np.empty(self.rounds), np.empty(self.rounds), np.empty(self.rounds)
        for first, rows, count in self.blocks():
            part = slice(first, first + count)
            operators.norms(rows, w, z[part], q[part], top[part])
        self._norms = q, top
        return z

    def subset(self, keep: NDArray[np.bool_]) -> Data:
        """Return the rows where `keep` is True: a copy of them, or a filter over the chunks."""
        keep = np.asarray(keep, dtype=bool)
        if keep.shape != (self.rounds,):
            raise ValueError(f"keep must have one boolean per row: {self.rounds} rows, got shape {keep.shape}")
        if self._X is not None:
            return Data(self._X[np.flatnonzero(keep)], self.y[keep], self.c[keep], self.bias)
        source = self._source
        assert source is not None

        def kept() -> Iterator[Chunk]:
            first = 0
            for X, y, weight in source():
                part = np.flatnonzero(keep[first : first + X.shape[0]])
                yield X[part], np.asarray(y)[part], None if weight is None else np.asarray(weight)[part]
                first += X.shape[0]

        return Data.from_chunks(kept, self.bias)

    def leading(self, width: int) -> Data:
        """Return the same rows with `width` coordinates: the first columns, and the intercept.

        Examples
        --------
        >>> Data(np.array([[1.0, 2.0], [3.0, 4.0]]), [1.0, -1.0], bias=1.0).leading(2).matrix()
        array([[1., 1.],
               [3., 1.]])
        """
        if width == self.width:
            return self
        if self._leading is None or self._leading.width != width:
            columns = width - (1 if self.bias != 0.0 else 0)
            self._leading = ChangedRows(self, partial(_first_columns, columns), columns, self.y, self.bias)
        return self._leading

    def check(self, u: ArrayLike) -> Floats:
        """Return u as float64, or raise a ValueError if its length is not the width or a number is not finite."""
        return check_coordinates(u, self.width, self.bias)

    def matrix(self) -> Floats:
        """Return the rows as one dense array, the intercept included: for small problems only."""
        from scipy.sparse import csr_matrix

        out = np.full((self.rounds, self.width), self.bias)
        n = self.width - (1 if self.bias != 0.0 else 0)
        for first, rows, count in self.blocks():
            if isinstance(rows, CSR):
                indices, indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
                out[first : first + count, :n] = csr_matrix((rows.data, indices, indptr), shape=(count, n)).toarray()
            else:
                out[first : first + count, :n] = rows.values
        return out


class ChangedRows(Data):
    """The rows of `whole` with other columns and targets: each block is changed again in every pass, none is stored."""

    def __init__(self, whole: Data, change: Callable[[Rows], Rows], columns: int, y: Floats, bias: float) -> None:
        self.whole, self.change = whole, change
        self._X = self._rows = self._source = self._read = None
        self._set(whole.rounds, columns, y, whole.c, bias)

    def blocks(self) -> Iterator[tuple[int, Rows, int]]:
        """Read the rows once, as `Data` does."""
        self.passes += 1
        for first, rows, _ in self.whole.blocks():
            yield from _contiguous(self.change(rows), first)

    def subset(self, keep: NDArray[np.bool_]) -> Data:
        """Return the rows where `keep` is True, changed in the same way."""
        columns = self.width - (1 if self.bias != 0.0 else 0)
        return ChangedRows(self.whole.subset(keep), self.change, columns, self.y[keep], self.bias)


def _first_columns(columns: int, rows: Rows) -> Rows:
    """The first columns of rows, and the intercept."""
    if not isinstance(rows, CSR):
        return rows._replace(values=rows.values[:, :columns])
    keep = rows.indices < columns
    before = np.concatenate((np.zeros(1, np.uint64), np.cumsum(keep, dtype=np.uint64)))
    return CSR(rows.data[keep], rows.indices[keep], before[rows.indptr], rows.bias)


def divided(data: Data, sizes: Floats, y: Floats) -> Data:
    """Return the rows with targets y and each column divided by its size, the intercept's last; rows are not stored."""
    n, bias = data.width - (1 if data.bias != 0.0 else 0), 0.0
    if data.bias != 0.0:
        bias = float(data.bias / sizes[-1])

    def change(rows: Rows) -> Rows:
        if isinstance(rows, CSR):
            return rows._replace(data=rows.data / sizes[rows.indices], bias=bias)
        return Dense(rows.values / sizes[:n], bias)

    return ChangedRows(data, change, n, y, bias)


def multiple(a: Floats, of: Floats) -> float | None:
    """The factor by which `a` is a multiple of another array, up to rounding; None if it is not a multiple."""
    if a is of or np.array_equal(a, of):
        return 1.0
    k = int(np.argmax(np.abs(of))) if of.size else 0
    if not of.size or of[k] == 0.0:
        return None
    factor, parts = float(a[k] / of[k]), (slice(first, first + BLOCK) for first in range(0, a.size, BLOCK))
    same = (np.allclose(a[part], factor * of[part], rtol=4e-16, atol=0.0) for part in parts)
    return factor if all(same) else None


def _dense_moments(X: NDArray[Any], a: Floats, r: Floats, gram: Floats, ends: Floats | None, sums: Floats) -> None:
    """Add X^T diag(a) X to `gram`, X^T a to `ends` (unless None) and X^T r to `sums`, block by block.

    A block is scaled by sqrt(a), or used as it is where a is constant.
    """
    size = max(1, BLOCK // max(1, X.shape[1]))
    plain = bool(a.size) and a.min() == a.max()
    # one buffer for all blocks: new memory would cost more than the scaling
    scratch = np.empty((0 if plain else min(size, X.shape[0]), X.shape[1]))
    for first in range(0, X.shape[0], size):
        part = slice(first, first + size)
        rows = np.asarray(X[part], dtype=np.float64)
        sums += r[part] @ rows
        if ends is not None:
            ends += a[part] @ rows
        if plain:
            gram += a[0] * (rows.T @ rows)
        else:
            scaled = np.multiply(rows, np.sqrt(a[part])[:, None], out=scratch[: rows.shape[0]])
            gram += scaled.T @ scaled
