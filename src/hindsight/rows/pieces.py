"""Many rows in memory as a table of pieces: searches in hindsight run on all processors, and no vector is formed.

The pieces are consecutive rows, which are not copied. Their number depends on the rows alone, and sums over them are
added in their order, so results are bit for bit the same on every machine.
"""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from .data import BLOCK, Data, multiple
from .one_thread import WIDE
from .spread import Expression, PerRow, SpreadRows, add_pairs
from .stripes import do_all, part_of
from .table import check_coordinates

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..kernels.floats import Floats

FEW = 4_000_000  # numbers in the rows up to which vectors of all rows are formed


class Piece(Data):
    """Consecutive rows of other data. Moments are not kept, as their factors would take as much room as targets."""

    def __init__(self, whole: Data, rows: Any, part: slice) -> None:
        self.bias, self.width, self.part = whole.bias, whole.width, part
        self.rounds, self.y, self.c = part.stop - part.start, whole.y[part], whole.c[part]
        self._X, self._rows, self._source, self._read = None, rows, None, None
        self._keep_nothing()

    def own(self, values: Floats) -> Floats:
        """Return the entries of these rows of a vector of all rows."""
        return values[self.part]

    def moments(self, a: Floats, r: Floats) -> tuple[Floats, Floats]:
        """Return Sigma_t a_t x_t x_t^T and Sigma_t r_t x_t."""
        return self._sum_moments(a, r)


class RowPieces(SpreadRows):
    """The rows of `Data` in memory, in pieces that stay in cache while they are scaled or converted.

    Parameters
    ----------
    data : Data
        The rows.

    Examples
    --------
    >>> data = Data(np.array([[1.0, 2.0], [3.0, 4.0]]), [1.0, -1.0], bias=1.0)
    >>> pieces = RowPieces(data)
    >>> pieces.combine(pieces.vector(np.array([1.0, 1.0])) * pieces.y)
    array([-2., -2.,  0.])
    """

    def __init__(self, data: Data) -> None:
        self.bias, self.width, self.weights = data.bias, data.width, data.c
        size, self.pieces = max(1, BLOCK // max(1, data.width)), list[Piece]()
        for first, rows, count in data.blocks():
            for a in range(0, count, size):
                b = min(count, a + size)
                self.pieces.append(Piece(data, part_of(rows, a, b), slice(first + a, first + b)))
        self._vectors: list[tuple[Floats, PerRow]] = []
        self._known: tuple[Any, Any, Floats, Floats] | None = None

    def check(self, u: Any) -> Floats:
        """Return u as float64, or raise a ValueError if its length is not the width or a number is not finite."""
        return check_coordinates(u, self.width, self.bias)

    def vector(self, values: Floats) -> PerRow:
        """Return a vector with one entry per row; the same one for the same array."""
        for known, found in self._vectors:
            if known is values:
                return found
        factor = multiple(values, self.weights)
        found = PerRow(self, "own", values) if factor is None else PerRow(self, np.multiply, factor, self.c)
        self._vectors.append((values, found))
        return found

    def sum(self, work: Callable[..., Any], *shared: Any, add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return the sum of work(piece, *shared), in the order of the pieces."""
        found: list[Any] = [None] * len(self.pieces)

        def do(k: int) -> None:
            found[k] = work(self.pieces[k], *shared)

        do_all([partial(do, k) for k in range(len(found))])
        return functools.reduce(add, found)

    def moments(self, a: PerRow, r: PerRow) -> tuple[Floats, Floats]:
        """Return Sigma_t a_t x_t x_t^T and Sigma_t r_t x_t; the last result is kept, also for multiples of a and r."""
        (scale, own), (times, other) = factor_of(a.expression), factor_of(r.expression)
        known = self._known
        if known is None or not (same_expression(known[0], own) and same_expression(known[1], other)):
            sums = self._sum_of("moments", *(PerRow(self, np.asarray, each) for each in (own, other)), add=add_pairs)
            known = self._known = own, other, *sums
        return scale * known[2], times * known[3]


def factor_of(e: Expression) -> tuple[float, Expression]:
    """The number by which an expression, or the first of two that it multiplies, is multiplied; and the rest."""
    if e.function is not np.multiply:
        return 1.0, e
    first, second = e.args
    if isinstance(first, float):
        return first, second
    factor, rest = factor_of(first) if isinstance(first, Expression) else (1.0, first)
    return factor, Expression(np.multiply, (rest, second))


def same_expression(a: Any, b: Any) -> bool:
    """Whether two expressions, or two of their arguments, are certainly the same."""
    if isinstance(a, Expression) and isinstance(b, Expression):
        return a.function == b.function and len(a.args) == len(b.args) and all(map(same_expression, a.args, b.args))
    return a is b or (isinstance(a, float) and isinstance(b, float) and a == b)


_cut: WeakKeyDictionary[Data, RowPieces] = WeakKeyDictionary()


def in_pieces(data: Data, factors: Floats) -> tuple[Any, Any]:
    """Return many narrow rows in memory as `RowPieces`, with factors as a vector of these; other rows as they are."""
    if data.rounds * data.width <= FEW or data.width >= WIDE or not data.stays:
        return data, factors
    if data not in _cut:
        _cut[data] = RowPieces(data)
    return _cut[data], _cut[data].vector(factors)
