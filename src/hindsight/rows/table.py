"""Rows that can be summed over, wherever they lie: all that a method needs which goes through all rows in each round.

A sum is taken block by block, in an order that depends on the blocks alone: `Data` is one block, whose own rows are
added in their order; partitions are added in the tree of `cluster.engine`. So its bits do not depend on who adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..validation import check_targets, check_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..kernels.floats import Floats
    from .data import Data


class Table(Protocol):
    """Rows with targets and weights."""

    @property
    def width(self) -> int:
        """The number of coordinates with the intercept."""

    @property
    def weight(self) -> float:
        """The weight of all rows."""

    def sum(self, work: Callable[..., Any], *shared: Any, add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return the sum of work(data, *shared) over the blocks of rows; `work` is a function of a module."""

    def check(self, u: Any) -> Floats:
        """Return u as float64, or raise a ValueError if its length is not the width or a number is not finite."""

    def measured(self, kind: str, names: Sequence[Any] | None = None) -> Measured:
        """Return what `measure` adds up over all rows, or refuse rows that cannot be learnt."""


class Measured:
    """Sums and maxima of the rows of a run: over one block, or over all of them.

    Attributes
    ----------
    weight, squares : float
        Sums of c and of c y^2.
    counted : int
        Rows with weight.
    x2, xinf, largest : float
        The largest |x|_2^2, |x|_inf and |y| of these rows.
    """

    def __init__(self, sums: Floats, maxima: Floats) -> None:
        self.sums, self.maxima = sums, maxima
        self.weight, self.squares, self.counted = float(sums[0]), float(sums[1]), int(sums[2])
        self.x2, self.xinf, self.largest = map(float, maxima)

    def __add__(self, other: Measured) -> Measured:
        return Measured(self.sums + other.sums, np.maximum(self.maxima, other.maxima))

    def checked(self) -> Measured:
        """Return the same, or refuse rows of which none counts."""
        if not self.counted:
            raise ValueError("all weights are zero: there is nothing to learn")
        return self


def measure(data: Data, kind: str, names: Sequence[Any] | None = None) -> Measured:
    """Check rows, targets of a kind and weights, and add up what a fit needs to know of them."""
    check_targets(kind, data.y)
    check_weights(data.c, idle=True)
    q, top, on = data.finite_norms2(names), data.row_norms_inf(), data.c > 0.0
    with np.errstate(over="ignore"):  # who divides by them looks at them
        sums = np.array([data.c.sum(), data.c @ data.y**2, np.count_nonzero(on)])
    maxima = [values[on].max(initial=0.0) for values in (q, top, np.abs(data.y))]
    return Measured(sums, np.array(maxima))


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


def checksum_of(data: Data, ordered: bool) -> Any:
    """Return the checksum of rows, to be added to those of others of the same table."""
    return data.checksum(ordered)
