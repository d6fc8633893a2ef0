"""What the theorems of learners without a rate need of a run, added up while it is played.

A ledger follows a run, or all members of a panel, block by block, in the pass that learns or in one that plays the run
again; the sums are the same to the last bit. What depends on a comparator is added up afterwards, over the rows, by
`against`, for all comparators in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import MismatchError
from ..kernels import operators
from ..kernels.rows import CSR
from ..online.margins import each_loss, each_slope
from ..online.panel import PanelRun
from .course import marks_between, marks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..online.run import Run
    from ..rows.data import Data

PIECE = 4096  # rows that comparators are tried on in turn, while they are in the cache


class Block(NamedTuple):
    """Some rounds of a run: margins, norms and steps, targets, weights (0 for a row that only gives the start), and
    the range of the targets before each."""

    z: np.ndarray
    q: np.ndarray
    step: np.ndarray
    y: np.ndarray
    c: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Terms(NamedTuple):
    """What each round adds to the sums of a ledger.

    Attributes
    ----------
    paid : the loss.
    size : what rounding in the margin may change it by, in units of that rounding.
    price : what the round cost beyond the comparator, whoever that is.
    spent : what the step may have added to the potential, where the theorem follows it.
    off, stray : how far the slope of the step was from that of the loss, and times the margin it was taken at.
    """

    paid: np.ndarray
    size: np.ndarray
    price: np.ndarray
    spent: np.ndarray | float = 0.0
    off: np.ndarray | float = 0.0
    stray: np.ndarray | float = 0.0


class Mark(NamedTuple):
    """A mixture after so many rounds: loss, rate, price met, rounds after which weight was shared, and all weights."""

    rounds: int
    loss: float
    rate: float
    gap: float
    shared: float
    shares: np.ndarray


class Ledger:
    """The sums of a run, or of the members of a panel, at its marks.

    Parameters
    ----------
    run : Run
        The run, or the panel, before its first round.
    terms : callable
        From a member and a block to the `Terms` of its rounds; None for a member whose theorem needs none.

    Attributes
    ----------
    rounds : int
        Rounds that were added; rows of weight 0 are none.
    """

    def __init__(self, run: Run, terms: Callable[[Run, Block], Terms | None]) -> None:
        self.run, self.terms = run, terms
        self.members = run.members if isinstance(run, PanelRun) else [run]
        panel = isinstance(run, PanelRun)
        self.opens = starts_with_target(run) if panel else opens(run)
        self.rounds = 0
        self.mass = 0.0
        self.totals = np.zeros((len(self.members), len(Terms._fields)))
        self.lost = np.zeros(len(self.members))  # as the mixture used them
        self.range = [0.0, 0.0]
        self.at: list[np.ndarray] = []
        self.masses: list[np.ndarray] = []
        self.sums: list[np.ndarray] = []
        self.used: list[np.ndarray] = []
        self.each: list[np.ndarray] = []
        self.course: list[Mark] = []
        self.rows_seen, self.sketch = 0, 0.0

    def add(self, own: np.ndarray, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Add rounds of weight above 0: `own` has margins, norms, largest |x| and steps of each member.

        Returns which of them are marks, by their place.
        """
        weight = c
        if self.rounds == 0 and y.size and self.opens:
            weight = c.copy()
            weight[0] = 0.0
        low, high = self._ranges(y)
        places = marks_between(self.rounds, self.rounds + y.size) - self.rounds - 1
        sums = np.empty((places.size, len(self.members), len(Terms._fields)))
        used = np.empty((places.size, len(self.members)))
        each = np.empty((y.size, len(self.members)))
        clips = isinstance(self.run, PanelRun) and getattr(self.run.mixture, "clips", 0.0) != 0.0
        for k, member in enumerate(self.members):
            z = own[k, 0]
            found = self.terms(member, Block(z, own[k, 1], own[k, 3], y, weight if opens(member) else c, low, high))
            for f, values in enumerate(found or ()):
                sums[:, k, f] = self._running(self.totals[k], f, values, places, y.size)
            as_used = np.clip(z, low, high) if clips else z
            each[:, k] = weight * each_loss(member.learner.loss, as_used, y)
            used[:, k] = self._running(self.lost, k, each[:, k], places, y.size)
        if getattr(self.run.learner, "drift", 0.0):
            self.each.append(each[weight > 0.0])
        total = np.array([self.mass])
        self.masses.append(self._running(total, 0, weight, places, y.size))
        self.mass = float(total[0])
        self.at.append(places + self.rounds + 1)
        self.sums.append(sums)
        self.used.append(used)
        self.rounds += int(y.size)
        return places

    def follow(self, own: np.ndarray, y: np.ndarray, c: np.ndarray) -> Iterator[slice]:
        """Add rows that the members of a panel have played, in parts that end at marks.

        A part is mixed before the next one is asked for.
        """
        on = c > 0.0
        places, first = self.add(own[:, :, on], y[on], c[on]), 0
        for place, rounds in zip(np.flatnonzero(on)[places].tolist(), self.at[-1].tolist(), strict=True):
            yield slice(first, place + 1)
            self.course.append(mark_of(self.run, rounds))
            first = place + 1
        if first < y.size:
            yield slice(first, y.size)

    def _running(self, totals: np.ndarray, k: int, values: Any, places: np.ndarray, count: int) -> Any:
        """The sums up to each mark, in the order of the rounds; `totals[k]` is what came before and is advanced."""
        if isinstance(values, float) or count == 0:
            return totals[k]
        sums = np.cumsum(np.concatenate((totals[k : k + 1], values)))
        totals[k] = sums[-1]
        return sums[places + 1]

    def _ranges(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The range of the targets before each round: it begins at the first one, or at 0 without an intercept."""
        if self.rounds == 0:
            self.range = [y[0], y[0]] if self.members[0].intercept else [0.0, 0.0]
        low = np.minimum.accumulate(np.concatenate((self.range[:1], y)))
        high = np.maximum.accumulate(np.concatenate((self.range[1:], y)))
        self.range = [low[-1], high[-1]]
        return low[:-1], high[:-1]

    def see(self, rows: Any, first: int, last: int) -> None:
        """Take notice of rows that were learnt, so that others are not taken for them."""
        self.sketch = operators.ordered_sum(rows, first, last, direction(self.run.width), self.rows_seen, self.sketch)
        self.rows_seen += last - first

    def of_these(self, data: Data) -> bool:
        """Whether these are the rows that were learnt, so far as one number per row tells, and targets and weights."""
        sketch, seen = 0.0, 0
        for _, rows in pieces(data):
            count = (rows.indptr.size - 1) if isinstance(rows, CSR) else len(rows.values)
            sketch = operators.ordered_sum(rows, 0, count, direction(data.width), seen, sketch)
            seen += count
        return seen == self.rows_seen and sketch == self.sketch

    def sums_at(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The marks, the weight so far at each, the sums of each member's terms, and its losses as used."""
        marks = marks_of(self.rounds)
        at = np.concatenate([*self.at, np.empty(0, np.int64)]).astype(np.int64)
        mass, sums, used = np.concatenate(self.masses), np.concatenate(self.sums), np.concatenate(self.used)
        if at.size < marks.size:
            mass = np.append(mass, self.mass)
            sums, used = np.append(sums, self.totals[None], axis=0), np.append(used, self.lost[None], axis=0)
        return marks, mass, sums, used


FROM_FIRST_TARGET = ("running", "ridge", "vaw")  # theorems of runs whose start may be the first target


def starts_with_target(run: Run) -> bool:
    """Whether a target can be the start of a run: then its first row only gives that."""
    return run.learner.targets == "real" and run.intercept


def opens(run: Run) -> bool:
    """Whether the first row of a run of one learner only gives its start."""
    return run.learner.theorem in FROM_FIRST_TARGET and starts_with_target(run)


def mark_of(run: Any, rounds: int) -> Mark:
    """The mixture of a panel as it stands."""
    state = run.state
    shared = float(state.shared[0]) if run.learner.drift else 0.0
    return Mark(
        rounds, float(run.tally[0].loss), float(state.rate[0]), float(state.gap[0]), shared, run.mixture.shares(state)
    )


def direction(width: int) -> np.ndarray:
    """Numbers between 1 and 2 that rows are summed up with, to tell them from others."""
    return np.asarray(1.0 + np.modf(0.6180339887498949 * np.arange(1.0, width + 1.0))[0])


def factors_of_rows(data: Data, passes: int, opening: bool) -> np.ndarray:
    """The weight of each row over all passes, without a round that only gives the start."""
    factors = passes * data.c
    if opening:
        first = int(np.argmax(data.c > 0.0))
        factors[first] -= data.c[first]
    return factors


@dataclass
class Opponent:
    """A comparator beside a run: what it loses.

    Attributes
    ----------
    u : ndarray
        Its weights.
    member : Run or None
        A fresh run of the learner that it is the comparator of, to be played again beside it; None if that is not
        needed.
    terms : callable
        From the opponent, that member, a block of its rounds and the margins of u to one more number per round.
    lost, more : ndarray
        The sums of its losses, and of those numbers, at each mark.
    size : float
        What rounding in its margins may change its losses by, in units of that rounding.
    largest : float
        Its largest |margin|.
    faults : tuple of str
        What was seen on the way that its theorem excludes.
    """

    u: np.ndarray
    member: Run | None = None
    terms: Callable[[Opponent, Run, Block, np.ndarray], np.ndarray] | None = None
    lost: np.ndarray = field(default_factory=lambda: np.empty(0))
    more: np.ndarray = field(default_factory=lambda: np.empty(0))
    size: float = 0.0
    largest: float = 0.0
    faults: tuple[str, ...] = ()


def against(data: Data, loss: Any, opponents: Sequence[Opponent], rounds: int, opening: bool) -> None:
    """Let opponents meet the rows of a run of so many rounds, all in one pass over them for each of the run's."""
    marks, done, totals = marks_of(rounds), 0, np.zeros((len(opponents), 2))
    kept: list[list[np.ndarray]] = [[] for _ in opponents]
    while done < rounds:
        for part, rows in pieces(data):
            on = data.c[part] > 0.0
            y, c = data.y[part], data.c[part].copy()
            if not on.any():
                continue
            if done == 0 and opening:
                c[int(np.argmax(on))] = 0.0
            q, top = np.empty(y.size), np.empty(y.size)
            operators.norms(rows, opponents[0].u, q, top)
            last = done + int(np.count_nonzero(on))
            places = marks[(marks > done) & (marks <= last)] - done
            for k, one in enumerate(opponents):
                z = np.empty(y.size)
                operators.margins(rows, one.u, z)
                each = np.zeros((2, y.size))
                each[0] = c * each_loss(loss, z, y)
                if one.member is not None and one.terms is not None:
                    each[1] = one.terms(one, one.member, played_again(one.member, rows, y, c, on), z)
                slopes = c * np.abs(each_slope(loss, z, y))
                one.size += float(slopes @ (float(np.linalg.norm(one.u)) * np.sqrt(q) + np.abs(y)))
                one.largest = max(one.largest, float(np.abs(z).max()))
                sums = np.cumsum(np.concatenate((totals[k][:, None], each[:, on]), axis=1), axis=1)
                totals[k] = sums[:, -1]
                kept[k].append(sums[:, places])
            done = last
    for one, sums_at in zip(opponents, kept, strict=True):
        one.lost, one.more = np.concatenate(sums_at, axis=1)


def pieces(data: Data) -> Iterator[tuple[slice, Any]]:
    """The rows in pieces of a few thousand, with their places."""
    for first, rows, count in data.blocks():
        for a in range(0, count, PIECE):
            b = min(count, a + PIECE)
            if isinstance(rows, CSR):
                yield slice(first + a, first + b), rows._replace(indptr=rows.indptr[a : b + 1])
            else:
                yield slice(first + a, first + b), rows._replace(values=rows.values[a:b])


def played_again(run: Run, rows: Any, y: np.ndarray, c: np.ndarray, on: np.ndarray) -> Block:
    """Play rows with a fresh run, and return them as a block; ranges of targets are not given."""
    from ..online.together import Single

    own = np.zeros((1, 4, y.size))
    weight = np.where(on, np.maximum(c, 0.0), 0.0)
    if Single(run, 0).play(rows, 0, y.size, y, weight, own) < y.size:
        raise MismatchError("a row cannot be played: these are not the rows of the run")
    return Block(own[0, 0], own[0, 1], own[0, 3], y, c, y, y)
