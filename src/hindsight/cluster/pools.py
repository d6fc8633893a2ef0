"""Isotonic regression over ranges of z: first the pools of each range, then one fit over all these pools.

This is exact. Let B be a pool of the isotonic regression of a set S of consecutive points (points with equal z count as
one, so a cut by value never separates them). Then the regression f of all points is constant on B:

  In a pool of any isotonic regression the mean of every prefix is at least the pool's value, and that of every suffix
  at most: otherwise moving that part alone would lower the sum of squares. Suppose f takes several values on B, a on a
  first part U of it and b > a on a last part V. Points with f = a form a pool of f, of which U is a suffix, since it
  ends inside B: so mean(U) <= a. In the same way V is a prefix of a pool of f, and mean(V) >= b. But U is a prefix and
  V a suffix of B, a pool of the regression of S: mean(U) >= mean(B) >= mean(V). So a >= b, a contradiction.

Among functions that are constant on each pool, Sigma_B Sigma_{i in B} w_i (y_i - f_B)^2 differs from
Sigma_B W_B (mean_B - f_B)^2 by a constant. Hence f is the isotonic regression of the points (mean_B, W_B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..batch.isotonic import ALL, Pools, fit_pools
from ..kernels import isotonic as kernels
from ..rows.matrices import joined_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..kernels.floats import Floats

Points = tuple["Floats", "Floats", "Floats | None"]  # z, y, and weights above 0 (None: all 1)


def choose_cuts(sample: Floats, ranges: int) -> Floats:
    """Return at most `ranges` - 1 distinct values that split a sample into ranges of about equal size.

    A point z is in range ``searchsorted(cuts, z, "right")``, so points with equal z are never separated.

    Examples
    --------
    >>> choose_cuts(np.array([3.0, 1.0, 2.0, 4.0]), 2), choose_cuts(np.zeros(9), 4)
    (array([3.]), array([0.]))
    """
    at = np.sort(sample)[np.arange(1, ranges) * sample.size // ranges]
    return np.unique(at)


def split(points: Points, cuts: Floats) -> list[Points]:
    """Return the points of each range."""
    z, y, w = points
    if not cuts.size:
        return [points]
    which = np.searchsorted(cuts, z, "right").astype(np.uint8 if cuts.size < 256 else np.uint16)
    order = np.argsort(which, kind="stable")  # a radix sort
    ends = np.cumsum(np.bincount(which, minlength=cuts.size + 1))[:-1]
    columns = [np.split(values[order], ends) for values in (z, y)]
    weights = [None] * (cuts.size + 1) if w is None else np.split(w[order], ends)
    return list(zip(*columns, weights, strict=True))


def pool_range(pieces: Sequence[Points]) -> Pools | None:
    """Return the pools of one range from the points of each partition in it; None without any."""
    z, y = (np.concatenate([piece[k] for piece in pieces]) for k in (0, 1))
    w = joined_weights([piece[2] for piece in pieces], [piece[0].size for piece in pieces])
    return fit_pools(z, y, w, 1.0, np.inf, values=False)[1] if z.size else None


def merge_pools(ranges: Sequence[Pools | None]) -> Pools:
    """Return the pools of all points, from the pools of ranges in ascending order.

    Examples
    --------
    >>> low = pool_range([(np.array([0.0, 1.0]), np.array([0.0, 4.0]), None)])
    >>> high = pool_range([(np.array([2.0, 3.0]), np.array([2.0, 5.0]), None)])
    >>> merge_pools([low, high]).value
    array([0., 3., 5.])
    """
    pools = [pool for pool in ranges if pool is not None]
    if len(pools) == 1:
        return pools[0]
    left, right, value, weight = (
        np.concatenate([getattr(pool, name) for pool in pools]) for name in ("left", "right", "value", "weight")
    )
    fit, mass, start = np.empty(value.size), np.empty(value.size), np.empty(value.size + 1, np.uint64)
    count = kernels.pav(value[:0], value, weight, ALL, 1.0, fit, mass, start)
    first = start[: count + 1].astype(np.int64)
    counts = np.add.reduceat(np.concatenate([pool.count for pool in pools]), first[:-1])
    return Pools(left[first[:-1]], right[first[1:] - 1], fit[:count].copy(), mass[:count].copy(), counts)
