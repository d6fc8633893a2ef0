"""Isotron over partitions: the rounds of `batch.isotron`, with a link fitted to the points of all workers.

A round of GLM-tron is one sum over a table. A round of Isotron splits the margins by value into as many ranges as there
are partitions. Each point is sent to the slot of its range, which pools the points of the range; few points are one
range. The pools of all ranges are sent to every slot, which merges them and adds up the residuals of its
partitions under the merged link. A round is submitted as a whole, and only its sums are returned.

Pooling each range first, and then fitting all these pools, is exact. Let B be a pool of the isotonic regression of a
set S of consecutive points (points with equal z count as one, so a cut by value never separates them). Then the
regression f of all points is constant on B:

  In a pool of any isotonic regression the mean of every prefix is at least the pool's value, and that of every suffix
  at most: otherwise moving that part alone would lower the sum of squares. Suppose f takes several values on B, a on a
  first part U of it and b > a on a last part V. Points with f = a form a pool of f, of which U is a suffix, since it
  ends inside B: so mean(U) <= a. In the same way V is a prefix of a pool of f, and mean(V) >= b. But U is a prefix and
  V a suffix of B, a pool of the regression of S: mean(U) >= mean(B) >= mean(V). So a >= b, a contradiction.

Among functions that are constant on each pool, Sigma_B Sigma_{i in B} w_i (y_i - f_B)^2 differs from
Sigma_B W_B (mean_B - f_B)^2 by a constant. Hence f is the isotonic regression of the points (mean_B, W_B).
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..batch.isotonic import ALL, Pools, fit_pools, interpolate
from ..batch.isotron import IndexProblem, RoundSums, check_margins, round_sums
from ..kernels import isotonic as kernels
from ..rows.matrices import joined_weights
from .engine import on_group
from .rows import RunTable, on_data

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..kernels.floats import Floats
    from ..rows.data import Data
    from .blocks import Block, View
    from .engine import Nodes
    from .rows import ClusterRows

RANGES = 64  # of margins at most
FEW = 50_000  # points that are pooled together
Points = tuple["Floats", "Floats", "Floats | None"]  # z, y, and weights above 0 (None: all 1)


class ClusterProblem(IndexProblem):
    """Rounds over partitions, with a given or learnt link.

    Parameters
    ----------
    rows : ClusterRows
        The rows.
    view : View
        The rows as seen by the run.
    link : GivenLink or LearntLink
        The link, given or learnt.
    eta : float or None
        The step; None is 1/(lambda X2^2).
    unit : bool
        Whether to divide the rows by X2.
    """

    def __init__(self, rows: ClusterRows, view: View, link: Any, eta: float | None, unit: bool) -> None:
        if not link.known and link.constant < math.inf:
            raise ValueError("lipschitz is not for a cluster: Lipschitz isotonic regression needs all points at once")
        table = RunTable(rows, view)
        super().__init__(table, link, eta, unit=unit)
        self.rows, self.engine, self.view = rows, rows.engine, view
        self.data, self.y, self.proportion = table, table.y, table.c / table.weight
        few = self.measured.counted <= FEW  # whatever the number of slots, so that sums have the same bits
        self.ranges = 1 if few else min(RANGES, len(self.engine.blocks))
        self.sample = rows.sample() if not link.known and self.ranges > 1 else None

    def round(self, w: Floats, t: int) -> RoundSums:
        """Return the sums of round t at w; a learnt link is represented by futures of its pools."""
        if self.link.known:
            return super().round(w, t)
        v = w / self.scale
        self.engine.refresh()
        pools = self.pool(v, t)
        sums = self.engine.over_groups(round_of_group, np.add, self.view, v, self.measured.weight, pools)
        return self.checked_sums(sums, t, pools)

    def learnt(self, link: Any) -> Any:
        """Return the pools of a link from their futures."""
        return pools_of_slots(self.engine.gather(link)) if isinstance(link, list) else link

    def pool(self, v: Floats, t: int) -> list[Any]:
        """Return futures of the pools of all margins of round t, each of some ranges in order."""
        submit, groups, pools = self.engine.submit, self.engine.held(), []
        cuts = np.zeros(0) if self.sample is None else choose_cuts(self._sampled_margins(v, t), self.ranges)
        for mine in shared_out(cuts.size + 1, self._pooling_slots()):
            pieces = [submit(margins_in, blocks, self.view, v, cuts, t, self.eta, mine) for blocks in groups]
            pools.append(submit(pool_ranges, pieces))
        return pools

    def _pooling_slots(self) -> int:
        """Return in how many slots the ranges are pooled; the choice does not affect sums.

        With W slots of which k pool, pooling m points takes about m/k times 1e-7 s, and scheduling their W k pieces
        1e-3 s each. The total is smallest at k = sqrt(1e-4 m/W).
        """
        return max(1, min(self.engine.used, round(math.sqrt(1e-4 * self.measured.counted / self.engine.used))))

    def _sampled_margins(self, v: Floats, t: int) -> Floats:
        z = np.asarray(self.sample @ v[: self.rows.features], np.float64)
        z = z + self.view.bias * v[-1] if self.view.bias else z
        check_margins(float(kernels.largest(z)), t, self.eta)
        return z


def shared_out(ranges: int, slots: int) -> list[range]:
    """Distribute consecutive ranges over slots; slots without ranges are left out.

    Examples
    --------
    >>> shared_out(3, 2), shared_out(1, 2)
    ([range(0, 1), range(1, 3)], [range(0, 1)])
    """
    each = (range(i * ranges // slots, (i + 1) * ranges // slots) for i in range(slots))
    return [some for some in each if len(some)]


# ---------------------------------------------------------------- in the workers


def margins_in(
    blocks: Sequence[Block], view: View, v: Floats, cuts: Floats, t: int, eta: float, ranges: range
) -> list[list[Points]]:
    """Return the points of a group in some ranges, as a list over blocks for each range."""
    each = []
    for block in blocks:
        with block.explained():
            data, key = block.data(view), (view, v.tobytes(), cuts.tobytes())
            check_margins(float(kernels.largest(data.kept_margins(v))), t, eta)
            each.append(block.keep("ranges", key, partial(split_margins, data, v, cuts)))
    return [[points[r] for points in each] for r in ranges]


def split_margins(data: Data, v: Floats, cuts: Floats) -> list[Points]:
    """Return the points of rows with positive weight, split by range."""
    z, y, c = data.kept_margins(v), data.y, data.c
    if not c.all():
        on = c > 0.0
        z, y, c = z[on], y[on], c[on]
    return split_by_range((z, y, None if (c == 1.0).all() else c), cuts)


def pool_ranges(pieces: Sequence[Sequence[Sequence[Points]]]) -> list[Pools | None]:
    """Return the pools of the ranges of a slot, from the pieces of every group."""
    ranges = len(pieces[0])
    return [pool_range([points for piece in pieces for points in piece[r]]) for r in range(ranges)]


class Knots(NamedTuple):
    """A learnt link: linear between its knots, constant beyond them."""

    at: Floats
    value: Floats
    integral: None = None

    def fit(self, z: Floats, y: Floats, weight: Floats | None) -> tuple[Floats, None]:
        """Return the predictions of the link."""
        return interpolate(self.at, self.value, z), None


def round_of_group(
    places: Sequence[int], count: int, add: Callable[[Any, Any], Any], blocks: Sequence[Block], view: View, v: Floats,
    total: float, pools: Sequence[Any],
) -> Nodes:  # fmt: skip
    """Return the sums of a round over a group, under the link given by the pools of all slots."""
    for block in blocks:
        block.drop("ranges")
    link = Knots(*pools_of_slots(pools).knots())
    return on_group(places, count, add, blocks, on_data, view, round_sums, v, total, link)


def pools_of_slots(slots: Sequence[Sequence[Pools | None]]) -> Pools:
    """Return the pools of all margins, from the pools of each slot's ranges."""
    return merge_pools([pools for slot in slots for pools in slot])


# ---------------------------------------------------------------- pools of ranges


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


def split_by_range(points: Points, cuts: Floats) -> list[Points]:
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
