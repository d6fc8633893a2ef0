"""Isotron over partitions: the rounds of `batch.isotron`, with a link fitted to the points of all workers.

A round of GLM-tron is one sum over a table. A round of Isotron splits the margins by value into as many ranges as there
are partitions. Each point is sent to the slot of its range, which pools the points of the range; few points are one
range. The pools of all ranges are sent to every slot, which merges them (`pools`) and adds up the residuals of its
partitions under the merged link. A round is submitted as a whole, and only its sums are returned.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..batch.isotonic import interpolate
from ..batch.isotron import IndexProblem, RoundSums, check_margins, round_sums
from ..kernels import isotonic as kernels
from .engine import on_group
from .pools import choose_cuts, merge_pools, pool_range, split
from .rows import RunTable, on_data

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..batch.isotonic import Pools
    from ..kernels.floats import Floats
    from ..rows.data import Data
    from .blocks import Block, View
    from .engine import Nodes
    from .pools import Points
    from .rows import ClusterRows

RANGES = 64  # of margins at most
FEW = 50_000  # points that are pooled together


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
        return merged(self.engine.gather(link)) if isinstance(link, list) else link

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
    return split((z, y, None if (c == 1.0).all() else c), cuts)


def pool_ranges(pieces: Sequence[Sequence[Sequence[Points]]]) -> list[Pools | None]:
    """Return the pools of the ranges of a slot, from the pieces of every group."""
    ranges = len(pieces[0])
    return [pool_range([points for piece in pieces for points in piece[r]]) for r in range(ranges)]


def merged(slots: Sequence[Sequence[Pools | None]]) -> Pools:
    """Return the pools of all margins, from the pools of each slot's ranges."""
    return merge_pools([pools for slot in slots for pools in slot])


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
    link = Knots(*merged(pools).knots())
    return on_group(places, count, add, blocks, on_data, view, round_sums, v, total, link)
