"""Isotron and GLM-tron over partitions: the rounds of `batch.isotron`, with sums from workers.

A round of GLM-tron is one reduction. A round of Isotron cuts the margins by value into ranges, one for each partition;
sends each point to the slot of its range, which pools it there; sends the pools of all ranges to every slot, which
merges them (`pools`) and adds up the residuals of its partitions under the merged link. Few points of few slots are
sent to every slot instead, which pools them by itself: that is one step less to wait for. A round is submitted as a
whole, and only its sums come back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.isotonic import check_size, interpolate
from ..batch.isotron import SERIES, GivenLink, History, RoundSums, check_margins, run_rounds
from ..batch.links import LINK_FUNCTIONS
from ..kernels import isotonic as kernels
from ..rows.checksum import add_played, begin_played
from .engine import on_group
from .pools import choose_cuts, merge_pools, pool_range, split
from .rows import RunTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..batch.isotonic import Pools
    from ..kernels.floats import Floats
    from ..rows.data import Data
    from .blocks import Block, Targets
    from .pools import Points
    from .reduction import Nodes
    from .rows import ClusterRows

RANGES = 64  # of margins at most
FEW = 50_000  # points that are pooled together
SWAPPED = 4  # slots up to which each of them pools few points by itself


class ClusterProblem:
    """What `batch.isotron.run_rounds` asks of a problem, over partitions.

    Parameters
    ----------
    rows : ClusterRows
        The rows.
    targets : Targets
        The targets of the run.
    link : GivenLink or LearntLink
        The link, given or learnt.
    eta : float or None
        The step; None is 1/(lambda X2^2).
    bias : float
        The value of the intercept coordinate, 0 for none.
    unit : bool
        Whether to divide the rows by X2.
    """

    def __init__(
        self, rows: ClusterRows, targets: Targets, link: Any, eta: float | None, bias: float, unit: bool
    ) -> None:
        self.rows, self.engine, self.targets, self.link, self.bias = rows, rows.engine, targets, link, bias
        if not link.known and link.constant < math.inf:
            raise ValueError("lipschitz is not for a cluster: Lipschitz isotonic regression needs all points at once")
        self.table = RunTable(rows, targets, bias)
        self.measured = self.table.measured(targets.kind)
        check_size(self.measured.weight, self.measured.largest)
        self.width = self.table.width
        size = math.sqrt(self.measured.x2)
        self.scale = size if unit and size > 0.0 else 1.0
        self.x2, self.xinf = size / self.scale, self.measured.xinf / self.scale
        self.eta = eta if eta is not None else 1.0 / (link.lipschitz * (self.x2**2 or 1.0))
        self.ranges = min(RANGES, len(self.engine.blocks))
        self.few = self.measured.counted <= FEW  # whatever the number of slots, so that sums have the same bits
        self.sample = rows.sample() if not (link.known or self.few) and self.ranges > 1 else None
        self._checksum: tuple[int, ...] | None = None

    def check(self, u: Any) -> Floats:
        """Return weights as float64, or raise a ValueError if their number is not the width."""
        return check_weights_of(u, self.width)

    def matching_loss(self, u: Floats) -> tuple[float, Floats]:
        """Return the mean matching loss at u, and its gradient."""
        sums = self.round(u, 1)
        return sums.match, -sums.gradient

    def target_variance(self) -> float:
        """Return the mean of (y - mean of y)^2."""
        total, _ = self.table.sum(target_sums, 0.0)
        _, squares = self.table.sum(target_sums, total / self.measured.weight)
        return float(squares) / self.measured.weight

    def squared_targets(self) -> float:
        """Return the mean of y^2."""
        return self.measured.squares / self.measured.weight

    def largest_target(self) -> float:
        """Return the largest |y| of the rows with weight."""
        return self.measured.largest

    def checksum(self) -> tuple[int, ...]:
        """Return the checksum that one machine has of the rows in this order."""
        if self._checksum is None:
            self._checksum = tuple(map(int, played_checksum(self.table)))
        return self._checksum

    def round(self, w: Floats, t: int) -> RoundSums:
        """Return the sums of round t at w; a learnt link is given as handles of its pools."""
        v, total = w / self.scale, self.measured.weight
        self.engine.refresh()
        pools, known = (None, self._known()) if self.link.known else (self.pool(v, t), None)
        engine, count = self.engine, len(self.engine.blocks)
        settings = self.targets, self.bias, v, total, known
        parts = [
            engine.submit(round_of_group, group, count, engine.held(j), settings, pools, group=j)
            for j, group in enumerate(engine.groups)
        ]
        sums = engine.finish(engine.gather(parts))
        check_margins(0.0 if np.isfinite(sums).all() else math.inf, t, self.eta)
        match = math.nan if self.link.integral is None else float(sums[1])
        return RoundSums(float(sums[0]), match, sums[2:] / self.scale, pools)

    def _known(self) -> Any:
        """Return a link that is given: its name where the workers know it, otherwise its function."""
        name = self.link.function.name
        return name if LINK_FUNCTIONS.get(name) is self.link.function else self.link.function

    def pool(self, v: Floats, t: int) -> Any:
        """Return handles of the pools of all margins of round t, those of the ranges of one slot each; or of points."""
        engine, groups = self.engine, range(len(self.engine.groups))
        settings = self.targets, self.bias, v
        if self.few:
            points = [engine.submit(points_of, engine.held(j), *settings, t, self.eta, group=j) for j in groups]
            swap = len(engine.leaders()) <= SWAPPED
            return points if swap else [engine.submit(pool_all, points, group=0)]
        leaders = self._pooling_groups()
        cuts = np.zeros(0) if self.sample is None else choose_cuts(self._sampled_margins(v, t), self.ranges)
        pools = []
        for i, mine in enumerate(shared_out(cuts.size + 1, len(leaders))):
            more = cuts, t, self.eta, mine
            pieces = [engine.submit(margins_in, engine.held(j), *settings, *more, group=j) for j in groups]
            pools.append(engine.submit(pool_ranges, pieces, group=leaders[i]))
        return pools

    def _pooling_groups(self) -> list[int]:
        """Return the groups in whose slots ranges are pooled: a choice that sums do not depend on.

        With W slots and k of them pooling, m points take about m/k times 1e-7 s to pool, and their W k pieces 1e-3 s
        each to schedule; this is least at k = sqrt(1e-4 m/W).
        """
        leaders = self.engine.leaders()
        count = round(math.sqrt(1e-4 * self.measured.counted / len(leaders)))
        count = max(1, min(len(leaders), count))
        return [leaders[i * len(leaders) // count] for i in range(count)]

    def _sampled_margins(self, v: Floats, t: int) -> Floats:
        z = np.asarray(self.sample @ v[: self.rows.features], np.float64)
        z = z + self.bias * v[-1] if self.bias else z
        check_margins(float(kernels.largest(z)), t, self.eta)
        return z

    def gathered(self, history: History) -> History:
        """Return a history with the pools of its link, which are handles after `run_rounds`."""
        from dataclasses import replace

        link = history.link
        return replace(history, link=merged(self.engine.gather(link)) if isinstance(link, list) else link)


def play_rounds(
    problem: ClusterProblem, rounds: int, start: Floats | None, notify: Callable[[int, float], None] | None,
    history: History | None = None, every: int = 0, keep: Callable[[History], None] | None = None,
) -> History:  # fmt: skip
    """Run rounds, or go on after those of `history`; `keep` is called with the history after every so many."""
    done = 0 if history is None else len(history.loss)
    while done < rounds:
        leg = min(rounds - done, every or rounds)
        tell = None if notify is None else (lambda t, loss, before=done: notify(before + t, loss))
        begin = start if history is None else history.last
        more = problem.gathered(run_rounds(problem, leg, begin, notify=tell))  # type: ignore[arg-type]
        history = more if history is None else joined(history, more)
        done += leg
        if keep is not None and done < rounds:
            keep(history)
    assert history is not None
    return history


def joined(a: History, b: History) -> History:
    """Return the history of the rounds of a, then those of b."""
    loss, match, gradient, along = (np.concatenate([getattr(a, name), getattr(b, name)]) for name in SERIES)
    later = b.loss[b.best] < a.loss[a.best]
    best, of = (len(a.loss) + b.best, b) if later else (a.best, a)
    return History(loss, None, match, gradient, along, a.start, b.last, best, of.w, of.link, b.checksum)


def shared_out(ranges: int, slots: int) -> list[range]:
    """Return the ranges of each slot, consecutive ones; slots that would have none are left out.

    Examples
    --------
    >>> shared_out(3, 2), shared_out(1, 2)
    ([range(0, 1), range(1, 3)], [range(0, 1)])
    """
    each = (range(i * ranges // slots, (i + 1) * ranges // slots) for i in range(slots))
    return [some for some in each if len(some)]


# ---------------------------------------------------------------- in the workers


def margins_in(
    blocks: Sequence[Block], targets: Targets, bias: float, v: Floats, cuts: Floats, t: int, eta: float, ranges: range
) -> list[list[Points]]:
    """Return the points of a group in some ranges: for each range, those of each block."""
    each = []
    for block in blocks:
        with block.explained():
            key = targets.key(), bias, v.tobytes(), cuts.tobytes()
            each.append(block.keep("ranges", key, lambda block=block: split_margins(block, targets, bias, v, cuts)))
        check_margins(float(kernels.largest(block.margins(targets, bias, v))), t, eta)
    return [[points[r] for points in each] for r in ranges]


def split_margins(block: Block, targets: Targets, bias: float, v: Floats, cuts: Floats) -> list[Points]:
    """Return the points of a block that have weight, by ranges."""
    data, z = block.data(targets, bias), block.margins(targets, bias, v)
    y, weight = data.y, None if block.weight is None else data.c
    if weight is not None and not weight.all():
        on = weight > 0.0
        z, y, weight = z[on], y[on], weight[on]
    return split((z, y, weight), cuts)


def pool_ranges(pieces: Sequence[Sequence[Sequence[Points]]]) -> list[Pools | None]:
    """Return the pools of the ranges of a slot, from the pieces of every group."""
    ranges = len(pieces[0])
    return [pool_range([points for piece in pieces for points in piece[r]]) for r in range(ranges)]


def pool_all(points: Sequence[Points]) -> list[Pools | None]:
    """Return the pools of all points, as those of the only range of a slot."""
    return [pool_range(points)]


def points_of(blocks: Sequence[Block], targets: Targets, bias: float, v: Floats, t: int, eta: float) -> Points:
    """Return all points of a group."""
    nowhere = np.zeros(0)
    each = margins_in(blocks, targets, bias, v, nowhere, t, eta, range(1))[0]
    z, y = (np.concatenate([points[k] for points in each]) for k in (0, 1))
    weights = [np.ones(points[0].size) if points[2] is None else points[2] for points in each]
    return z, y, None if all(points[2] is None for points in each) else np.concatenate(weights)


def merged(slots: Sequence[Any]) -> Pools:
    """Return the pools of all margins, from those of the ranges of each slot or from the points of each group."""
    if isinstance(slots[0], tuple):
        found = pool_range(slots)
        assert found is not None
        return found
    return merge_pools([pools for slot in slots for pools in slot])


def round_of_group(
    places: Sequence[int], count: int, blocks: Sequence[Block], settings: tuple[Any, ...],
    pools: Sequence[Any] | None,
) -> Nodes:  # fmt: skip
    """Return the sums of a round over a group, under the link that the pools of all slots make or a given one."""
    knots = None if pools is None else merged(pools).knots()
    return on_group(round_sums, places, count, np.add, blocks, *settings, knots)


def round_sums(
    block: Block,
    targets: Targets,
    bias: float,
    v: Floats,
    total: float,
    known: Any,
    knots: tuple[Floats, Floats] | None,
) -> Floats:
    """Return the mean squared error of a block, its mean matching loss, and its part of g, for means over all rows."""
    data, z = block.data(targets, bias), block.margins(targets, bias, v)
    proportion, residual, match = data.c / total, np.empty(z.size), 0.0
    if known is None:
        assert knots is not None
        block.drop("ranges")
        mean = interpolate(*knots, z)
    else:
        function = LINK_FUNCTIONS[known] if isinstance(known, str) else known
        link = GivenLink(function, function.lipschitz)
        with np.errstate(over="ignore", invalid="ignore"):  # the sums are looked at
            mean = link.fit(z, data.y, None)[0] if np.isfinite(z).all() else np.full(z.size, math.nan)
            if link.integral is not None:
                match = float(kernels.weighted_sum(proportion, link.integral(z) - data.y * z))
    loss = kernels.residuals(data.y, mean, proportion, residual)
    return np.concatenate(([loss, match], data.combine(residual)))


def target_sums(data: Data, mean: float) -> Floats:
    """Return the sums of c (y - mean), and of c (y - mean)^2."""
    off = data.y - mean
    return np.array([data.c @ off, data.c @ off**2])


def check_weights_of(u: Any, width: int) -> Floats:
    """Return weights as float64, or raise a ValueError if their number is not the width, or one is not finite."""
    out = np.ascontiguousarray(u, np.float64)
    if out.shape != (width,) or not np.isfinite(out).all():
        raise ValueError(f"u must have {width} finite coordinates, the intercept's last; got shape {out.shape}")
    return out


def block_checksum(block: Block, targets: Targets, bias: float, before: dict[int, int]) -> Any:
    """Return the checksum of the rows of a block, as those that come after so many."""
    data = block.data(targets, bias)
    sums = begin_played()
    sums[0] = before[block.origin.number]
    for first, rows, count in data.blocks():
        part = slice(first, first + count)
        add_played(sums, rows, count, data.y[part], data.c[part])
    sums[0] -= np.uint64(before[block.origin.number])
    return sums


def played_checksum(table: RunTable) -> Any:
    """Return the checksum of all rows in their order."""
    rows, numbers = table.rows, (shape.number for shape in table.rows.shapes)
    before = dict(zip(numbers, table.before, strict=True))
    return rows.engine.reduce(block_checksum, table.targets, table.bias, before)
