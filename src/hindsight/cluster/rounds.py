"""Isotron over partitions: the rounds of `batch.isotron`, with a link fitted to the points of all workers.

A round of GLM-tron is one sum over a table. A round of Isotron splits the margins by value into as many ranges as there
are partitions. Each point is sent to the slot of its range, which pools the points of the range. The pools of all
ranges are sent to every slot, which merges them (`pools`) and adds up the residuals of its partitions under the merged
link. If there are few points and few slots, all points are sent to every slot instead, which pools them itself; that
saves a step. A round is submitted as a whole, and only its sums are returned.
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
from .pools import choose_cuts, joined_points, merge_pools, pool_range, split
from .rows import RunTable, on_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..batch.isotonic import Pools
    from ..kernels.floats import Floats
    from ..rows.data import Data
    from .blocks import Block, View
    from .engine import Nodes
    from .pools import Points
    from .rows import ClusterRows

RANGES = 64  # of margins at most
FEW = 50_000  # points that are pooled together
SWAPPED = 4  # slots up to which each of them pools few points by itself


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
        self.ranges = min(RANGES, len(self.engine.blocks))
        self.few = self.measured.counted <= FEW  # whatever the number of slots, so that sums have the same bits
        self.sample = rows.sample() if not (link.known or self.few) and self.ranges > 1 else None

    def round(self, w: Floats, t: int) -> RoundSums:
        """Return the sums of round t at w; a learnt link is represented by futures of its pools."""
        if self.link.known:
            return super().round(w, t)
        v, engine = w / self.scale, self.engine
        engine.refresh()
        pools, count = self.pool(v, t), len(engine.blocks)
        parts = [
            engine.submit(
                round_of_group, group, count, engine.held(j), self.view, v, self.measured.weight, pools, group=j
            )
            for j, group in enumerate(engine.groups)
        ]
        return self.checked_sums(engine.finish(parts), t, pools)

    def learnt(self, link: Any) -> Any:
        """Return the pools of a link from their futures."""
        return merged(self.engine.gather(link)) if isinstance(link, list) else link

    def pool(self, v: Floats, t: int) -> Any:
        """Return futures of the pools of all margins of round t, one per pooling slot; or of the points themselves."""
        engine, groups, view = self.engine, range(len(self.engine.groups)), self.view
        if self.few:
            points = [engine.submit(points_of, engine.held(j), view, v, t, self.eta, group=j) for j in groups]
            swap = len(engine.leaders()) <= SWAPPED
            return points if swap else [engine.submit(pool_all, points, group=0)]
        leaders = self._pooling_groups()
        cuts = np.zeros(0) if self.sample is None else choose_cuts(self._sampled_margins(v, t), self.ranges)
        pools = []
        for i, mine in enumerate(shared_out(cuts.size + 1, len(leaders))):
            more = view, v, cuts, t, self.eta, mine
            pieces = [engine.submit(margins_in, engine.held(j), *more, group=j) for j in groups]
            pools.append(engine.submit(pool_ranges, pieces, group=leaders[i]))
        return pools

    def _pooling_groups(self) -> list[int]:
        """Return the groups whose slots pool the ranges; the choice does not affect sums.

        With W slots of which k pool, pooling m points takes about m/k times 1e-7 s, and scheduling their W k pieces
        1e-3 s each. The total is smallest at k = sqrt(1e-4 m/W).
        """
        leaders = self.engine.leaders()
        count = round(math.sqrt(1e-4 * self.measured.counted / len(leaders)))
        count = max(1, min(len(leaders), count))
        return [leaders[i * len(leaders) // count] for i in range(count)]

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


def pool_all(points: Sequence[Points]) -> list[Pools | None]:
    """Return the pools of all points, as one range."""
    return [pool_range(points)]


def points_of(blocks: Sequence[Block], view: View, v: Floats, t: int, eta: float) -> Points:
    """Return all points of a group."""
    return joined_points(margins_in(blocks, view, v, np.zeros(0), t, eta, range(1))[0])


def merged(slots: Sequence[Any]) -> Pools:
    """Return the pools of all margins, from the pools of each slot's ranges or the points of each group."""
    if isinstance(slots[0], tuple):
        found = pool_range(slots)
        assert found is not None
        return found
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
    places: Sequence[int], count: int, blocks: Sequence[Block], view: View, v: Floats, total: float,
    pools: Sequence[Any],
) -> Nodes:  # fmt: skip
    """Return the sums of a round over a group, under the link given by the pools of all slots."""
    for block in blocks:
        block.drop("ranges")
    link = Knots(*merged(pools).knots())
    return on_group(places, count, np.add, blocks, on_data, view, round_sums, v, total, link)
