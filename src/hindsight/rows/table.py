"""Tables: rows that can be summed over, in memory or in partitions, for methods that read all rows in each round.

A sum is taken block by block, in an order that depends only on the blocks. `Data` is one block, whose rows are added in
their order; partitions are added along the tree of `cluster.engine`. So the bits of a sum do not depend on who adds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import MismatchError
from ..kernels import operators
from ..validation import check_targets, check_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..kernels.floats import Floats
    from .data import Data

IN_ANY, IN_ORDER = slice(3, 5), slice(5, 7)  # of the sums of `Measured`: those by which rows are known again
SAME = 1e-11  # relative difference of such sums of the same rows
OTHER_ROWS = (-1.0, -1.0, -1.0)  # of a model that was trained on different rows in turn: no rows have it


class Table(Protocol):
    """Rows with targets and weights."""

    @property
    def width(self) -> int:
        """The number of coordinates with the intercept."""

    @property
    def weight(self) -> float:
        """The total weight of the rows."""

    def sum(self, work: Callable[..., Any], *shared: Any, add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return the sum of work(data, *shared) over the blocks of rows; `work` is a module-level function."""

    def check(self, u: Any) -> Floats:
        """Return u as float64, or raise a ValueError if its length is not the width or a number is not finite."""

    def measured(self, kind: str, names: Sequence[Any] | None = None) -> Measured:
        """Return the result of `measure` for all rows, or refuse rows that cannot be learnt."""


class Measured:
    """Sums and maxima of the rows of a run, over one block or over all blocks.

    Attributes
    ----------
    weight, squares : float
        Sums of c and of c y^2.
    counted : int
        The number of rows of positive weight.
    x2, xinf, largest : float
        The largest |x|_2^2, |x|_inf and |y| of these rows.
    """

    def __init__(self, sums: Floats, maxima: Floats) -> None:
        self.sums, self.maxima = sums, maxima
        self.weight, self.squares, self.counted = float(sums[0]), float(sums[1]), int(sums[2])
        self.x2, self.xinf, self.largest = map(float, maxima)

    def __add__(self, other: Measured) -> Measured:
        sums = self.sums + other.sums
        sums[IN_ORDER] += self.counted * other.sums[IN_ANY]
        return Measured(sums, np.maximum(self.maxima, other.maxima))

    def known_by(self, ordered: bool = True) -> tuple[float, ...]:
        """Return the sums that identify the rows: their number, and sums of values and of targets.

        Parameters
        ----------
        ordered : bool, default True
            Whether the sums depend on the order of the rows: each row is then multiplied by its number.
        """
        return float(self.counted), *map(float, self.sums[IN_ORDER if ordered else IN_ANY])

    def checked(self) -> Measured:
        """Return the same, or refuse rows that all have weight 0."""
        if not self.counted:
            raise ValueError("all weights are zero: there is nothing to learn")
        return self


def measure(data: Data, kind: str, names: Sequence[Any] | None = None) -> Measured:
    """Check rows, targets of a kind and weights, and compute the sums and maxima that a fit needs."""
    check_targets(kind, data.y)
    check_weights(data.c, idle=True)
    along = np.sin(np.arange(1.0, data.width + 1.0))  # any vector, so that the order of columns counts
    z, q, top = data.margins_and_norms(along), data.finite_norms2(names), data.row_norms_inf()
    with np.errstate(over="ignore"):  # who divides by them looks at them
        sums = [data.c.sum(), data.c @ data.y**2, np.count_nonzero(data.c > 0.0)]
    marks, maxima = np.empty(4), np.empty(3)
    operators.measure(z, q, top, data.y, data.c, float(np.linalg.norm(along)), marks, maxima)
    return Measured(np.concatenate((sums, marks)), maxima)


def same_rows(known: tuple[float, ...], found: tuple[float, ...]) -> tuple[bool, ...]:
    """Return whether the numbers, the values and the targets of rows are the same, up to rounding."""
    return tuple(math.isclose(a, b, rel_tol=SAME) for a, b in zip(known, found, strict=True))


def joined(known: tuple[float, ...], found: tuple[float, ...]) -> tuple[float, ...]:
    """Return the sums that identify the rows of a model that continues: `found` if it had none, otherwise `known`, or
    `OTHER_ROWS` if the two differ."""
    return found if not known else known if all(same_rows(known, found)) else OTHER_ROWS


def check_known(known: tuple[float, ...], found: tuple[float, ...], ordered: bool = True) -> None:
    """Raise a MismatchError unless rows are those that a model learnt; the message says in which part they differ.

    Parameters
    ----------
    known : tuple of three numbers, or empty
        The sums that identify the rows of the model; empty for a model from a file of an earlier version.
    found : tuple of three numbers
        The same sums of the given rows.
    ordered : bool, default True
        Whether the order of the rows counts.
    """
    same = same_rows(known, found) if known else ()
    if not all(same):
        differ = [name for name, alike in zip(("values or weights", "targets"), same[1:], strict=True) if not alike]
        order = " in this order" if ordered else ""
        what = " and ".join(differ) or "their numbers"
        raise MismatchError(f"the model was not trained on these rows{order}: {what} differ from those it learnt")


def check_coordinates(u: Any, width: int, bias: float) -> Floats:
    """Return u as float64, or raise a ValueError if its length is not the width or a number is not finite."""
    out = np.ascontiguousarray(u, dtype=np.float64)
    if out.shape != (width,):
        more = " (the last one the intercept)" if bias != 0.0 else ""
        raise ValueError(f"u must have {width} coordinates{more}, got shape {out.shape}")
    if not np.isfinite(out).all():
        k = int(np.flatnonzero(~np.isfinite(out))[0])
        raise ValueError(f"u must be finite, got {out[k]} at coordinate {k}")
    return out
