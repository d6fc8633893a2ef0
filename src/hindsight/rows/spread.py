"""The rows of a table with the interface of `Data`, and vectors with one entry per row that are never gathered.

Searches in hindsight are written for arrays: margins, slopes and weights of all rows. For rows in several blocks the
same code works on `PerRow`, a lazy expression that is evaluated in each block when a sum or a maximum over the rows is
requested. No vector leaves its block, and every such number is one sum over the table.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..kernels.floats import Floats
    from .data import Data


class Expression(NamedTuple):
    """A lazy expression to evaluate in a block: a function of other expressions, or a method of its rows."""

    function: Callable[..., Any] | str
    args: tuple[Any, ...]

    def on(self, data: Data) -> Any:
        """Return its value on the rows of a block."""
        args = [arg.on(data) if isinstance(arg, Expression) else arg for arg in self.args]
        if not isinstance(self.function, str):
            return self.function(*args)
        found = getattr(data, self.function)
        return found(*args) if callable(found) else found


def expression(arg: Any) -> Any:
    """Return the expression of a vector; anything else as it is."""
    return arg.expression if isinstance(arg, PerRow) else arg


def value(data: Data, expression: Expression) -> Any:
    """Return the value of an expression on the rows of a block."""
    return expression.on(data)


def add_pairs(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the sums of the entries of two tuples."""
    return tuple(map(operator.add, a, b))


class PerRow(np.lib.mixins.NDArrayOperatorsMixin):
    """A vector with one entry per row of a table, which numpy's elementwise functions accept as an array."""

    def __init__(self, table: SpreadRows, function: Callable[..., Any] | str, *args: Any) -> None:
        self.table, self.expression = table, Expression(function, tuple(map(expression, args)))

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **options: Any) -> Any:
        if function is np.matmul:
            return self._over(np.add, np.matmul, *args)
        return PerRow(self.table, function, *args)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function is np.max:
            return self.max()
        return PerRow(self.table, functools.partial(function, **options), *args)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("the entries of this vector are spread over blocks, and cannot be copied to one array")

    def __bool__(self) -> bool:
        raise TypeError("a vector has no truth value: ask for any() or all()")

    def __getitem__(self, key: Any) -> PerRow:
        return PerRow(self.table, operator.getitem, self, key)

    def _over(self, add: Callable[[Any, Any], Any], function: Callable[..., Any], *args: Any) -> Any:
        return self.table.sum(value, Expression(function, tuple(map(expression, args))), add=add)

    def sum(self) -> Any:
        """Return the sum over all rows."""
        return self._over(np.add, np.sum, self)

    def any(self) -> Any:
        """Return whether any entry is true."""
        return self._over(np.logical_or, np.any, self)

    def all(self) -> Any:
        """Return whether all entries are true."""
        return self._over(np.logical_and, np.all, self)

    def min(self, initial: float = math.inf) -> Any:
        """Return the smallest entry."""
        return self._over(np.minimum, functools.partial(np.min, initial=initial), self)

    def max(self, initial: float = -math.inf) -> Any:
        """Return the largest entry."""
        return self._over(np.maximum, functools.partial(np.max, initial=initial), self)


def per_row(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of arrays that returns one number per row accept vectors of a table as well."""

    @functools.wraps(function)
    def taking(*args: Any) -> Any:
        table = next((arg.table for arg in args if isinstance(arg, PerRow)), None)
        return function(*args) if table is None else PerRow(table, taking, *args)

    return taking


class SpreadRows:
    """A table with the interface of `Data`, whose vectors are `PerRow`; subclasses implement the methods of `Table`.

    Attributes
    ----------
    y, c : PerRow
        Targets and weights.
    rounds : float
        Infinity: too many rows to be copied.
    passes : int
        0: passes are not counted.
    stays : bool
        False: they are in pieces already.
    """

    rounds, passes, stays = math.inf, 0, False
    width: int
    sum: Callable[..., Any]

    @property
    def y(self) -> PerRow:
        """Targets."""
        return PerRow(self, "y")

    @property
    def c(self) -> PerRow:
        """Weights."""
        return PerRow(self, "c")

    def margins(self, u: Floats) -> PerRow:
        """Return u . x_t for every row."""
        return PerRow(self, "kept_margins", u)

    def combine(self, r: Any) -> Floats:
        """Return Sigma_t r_t x_t."""
        return self._sum_of("combine", r)

    def column_squares(self, a: Any) -> Floats:
        """Return Sigma_t a_t x_ti^2 of every column."""
        return self._sum_of("column_squares", a)

    def moments(self, a: Any, r: Any) -> tuple[Floats, Floats]:
        """Return Sigma_t a_t x_t x_t^T, and Sigma_t r_t x_t."""
        found: tuple[Floats, Floats] = self._sum_of("moments", a, r, add=add_pairs)
        return found

    def residual_gradient(self, u: Floats, a: Any) -> tuple[PerRow, Floats]:
        """Return the margins, and Sigma_t a_t (u . x_t - y_t) x_t."""
        return self.margins(u), self._sum_of("half_gradient", u, a)

    def _sum_of(self, method: str, *args: Any, add: Callable[[Any, Any], Any] = np.add) -> Any:
        return self.sum(value, Expression(method, tuple(map(expression, args))), add=add)
