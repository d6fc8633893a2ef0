"""The sums that the theorems of learners without a rate need, accumulated while a run is played.

A ledger follows a run, or all members of a panel, block by block, either while it learns or while it is played again;
the sums are bit for bit the same. What depends on a comparator is summed afterwards over the rows by `against`, in one
pass for all comparators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import MismatchError
from ..kernels import operators
from ..kernels.compiler import for_parts
from ..kernels.ledger import FIELDS, LARGEST, LENGTHS, LOST, meet
from ..online.margins import each_loss
from ..online.panel import PanelRun
from ..online.together import Single
from ..rows.stripes import do_all, part_of
from .course import marks_between, marks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..online.run import Run
    from ..rows.data import Data

PIECE = 4096  # rows that comparators are tried on in turn, while they are in the cache


class SomeRounds(NamedTuple):
    """Some rounds of a run: margins, norms, steps, targets, weights (0 for a row that only sets the start), the range
    of the targets before each round, and the positions of the marks."""

    z: np.ndarray
    q: np.ndarray
    step: np.ndarray
    y: np.ndarray
    c: np.ndarray
    low: np.ndarray
    high: np.ndarray
    places: np.ndarray


class Terms(NamedTuple):
    """The sums of a ledger.

    Attributes
    ----------
    paid : the losses.
    size : how much rounding in the margins may change the losses, in units of that rounding.
    price : the cost of the rounds in excess of any comparator's loss.
    spent : how much the steps may have added to the potential, if the theorem tracks it.
    off, stray : how far the slopes of steps were from the slope of the loss, and the same times the margin.
    """

    paid: np.ndarray
    size: np.ndarray
    price: np.ndarray
    spent: np.ndarray
    off: np.ndarray
    stray: np.ndarray


class Mark(NamedTuple):
    """A panel after some rounds: its loss; the mixture's rate, price, number of rounds after which weight was shared,
    weights and (if counted) losses of the members as used; and the price of the stack.
    """

    rounds: int
    loss: float
    rate: float
    gap: float
    shared: float
    shares: np.ndarray
    used: np.ndarray | None
    corrected: float


class Ledger:
    """The sums of a run, or of the members of a panel, at its marks.

    Parameters
    ----------
    run : Run
        The run, or the panel, before its first round.
    add_terms : callable
        Called with a member, a block of its rounds, its sums so far, which it updates, and an array that it fills with
        the sums at the marks of the block.

    Attributes
    ----------
    rounds : int
        The number of rounds added. Rows of weight 0 do not count.
    """

    def __init__(self, run: Run, add_terms: Callable[[Run, SomeRounds, np.ndarray, np.ndarray], None]) -> None:
        self.run: Any = run
        self.add_terms, panel = add_terms, isinstance(run, PanelRun)
        self.members = run.members if isinstance(run, PanelRun) else [run]
        self.opens = starts_with_target(run) if panel else opens(run)
        self.rounds = 0
        self.mass = np.zeros(1)
        self.totals = np.zeros((len(self.members), FIELDS))
        self.range = [0.0, 0.0]
        self.at: list[np.ndarray] = []
        self.masses: list[np.ndarray] = []
        self.sums: list[np.ndarray] = []
        self.each: list[np.ndarray] = []
        self.course: list[Mark] = []
        self.rows_seen, self.sketch = 0, 0.0

    def add(self, own: np.ndarray, y: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Add rounds of positive weight; `own` has the margins, norms, largest |x| and steps of each member.

        Returns the positions of the marks among these rounds.
        """
        if y.size == 0:
            return np.empty(0, np.int64)
        weight = c
        if self.rounds == 0 and self.opens:
            weight = c.copy()
            weight[0] = 0.0
        low, high = self._ranges(y)
        places = marks_between(self.rounds, self.rounds + y.size) - self.rounds - 1
        sums = np.zeros((len(self.members), places.size, FIELDS))
        for k, member in enumerate(self.members):
            mine = weight if opens(member) else c
            block = SomeRounds(own[k, 0], own[k, 1], own[k, 3], y, mine, low, high, places)
            self.add_terms(member, block, self.totals[k], sums[k])
        if getattr(self.run.learner, "drift", 0.0):
            self.each.append(self._used(own[:, 0], y, weight, low, high)[:, weight > 0.0].T)
        mass = np.cumsum(np.concatenate((self.mass, weight)))
        self.mass = mass[-1:]
        self.masses.append(mass[places + 1])
        self.at.append(places + self.rounds + 1)
        self.sums.append(sums)
        self.rounds += int(y.size)
        return places

    def _used(self, z: np.ndarray, y: np.ndarray, c: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The loss of each member in each round, as the mixture used it."""
        clips = isinstance(self.run, PanelRun) and getattr(self.run.mixture, "clips", 0.0) != 0.0
        loss = self.run.learner.loss
        return np.stack([c * each_loss(loss, np.clip(own, low, high) if clips else own, y) for own in z])

    def follow(self, own: np.ndarray, y: np.ndarray, c: np.ndarray) -> Iterator[slice]:
        """Add rows that the members of a panel have played, and yield them in slices that end at marks.

        The caller mixes a slice before it asks for the next one.
        """
        on = c > 0.0
        before, first = self.rounds, 0
        places = self.add(own[:, :, on], y[on], c[on])
        for place, rounds in zip(np.flatnonzero(on)[places].tolist(), (places + before + 1).tolist(), strict=True):
            yield slice(first, place + 1)
            self.course.append(mark_of(self.run, rounds))
            first = place + 1
        if first < y.size:
            yield slice(first, y.size)

    def _ranges(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The range of the targets before each round. It starts at the first target, or at 0 without an intercept."""
        if self.rounds == 0:
            self.range = [y[0], y[0]] if self.members[0].intercept else [0.0, 0.0]
        low, high = ranges_before(y, *self.range)
        self.range = [low[-1], high[-1]]
        return low[:-1], high[:-1]

    def see(self, rows: Any, first: int, y: np.ndarray, c: np.ndarray) -> None:
        """Add rows that were learnt to the sum that identifies the rows of the run."""
        along = direction(self.run.width, self.run.bias)
        self.sketch = operators.ordered_sum(rows, first, along, y, c, self.rows_seen, self.sketch)
        self.rows_seen += y.size

    def sums_at(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The marks, the cumulative weight at each, and the sums of each member there."""
        marks, at = marks_of(self.rounds), np.concatenate(self.at)
        mass, sums = np.concatenate(self.masses), np.concatenate(self.sums, axis=1)
        if at.size < marks.size:
            mass, sums = np.append(mass, self.mass), np.append(sums, self.totals[:, None], axis=1)
        return marks, mass, sums


def ranges_before(y: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """The range of the targets before each row and after the last; `low` and `high` are the range before the first."""
    return np.minimum.accumulate(np.r_[low, y]), np.maximum.accumulate(np.r_[high, y])


FROM_FIRST_TARGET = ("running", "ridge", "windowed-ridge", "vaw")  # theorems of runs that a target may start


def starts_with_target(run: Run) -> bool:
    """Whether the first target may set the start of a run, in which case the first row does nothing else."""
    return run.learner.targets == "real" and run.intercept


def opens(run: Run) -> bool:
    """Whether the first row of a run of a single learner only sets its start."""
    return run.learner.theorem in FROM_FIRST_TARGET and starts_with_target(run)


def mark_of(run: Any, rounds: int) -> Mark:
    """The current state of a panel as a mark."""
    state = run.state
    shared = float(state.shared[0]) if run.learner.drift else 0.0
    used = state.lost.copy() if hasattr(state, "lost") else None
    sums = float(run.tally[0].loss), float(state.rate[0]), float(state.gap[0])
    return Mark(rounds, *sums, shared, run.mixture.shares(state), used, price_of_two(run))


def price_of_two(run: Any) -> float:
    """The price of choosing between the mixture and its correction by the stack; 0 without a stack."""
    if run.stack is None:
        return 0.0
    state = run.stack.state
    return math.log(2.0) / float(state.rate[0]) + float(state.gap[0])


def direction(width: int, bias: float) -> np.ndarray:
    """Coefficients between 1 and 2 of the columns in the sum that identifies rows; the intercept's is 1."""
    along: np.ndarray = 1.0 + np.modf(0.6180339887498949 * np.arange(1.0, width + 1.0))[0]
    if bias != 0.0:
        along[-1] = 1.0
    return along


def factors_of_rows(data: Data, passes: int, opening: bool) -> np.ndarray:
    """The weight of each row over all passes, without a round that only sets the start."""
    factors = passes * data.c
    if opening:
        first = int(np.argmax(data.c > 0.0))
        factors[first] -= data.c[first]
    return factors


@dataclass
class Opponent:
    """A comparator whose losses are summed over the rows of a run.

    Attributes
    ----------
    u : ndarray
        Its weights.
    opens : bool
        Whether the first round only set the start of the run, so that it does not count.
    member : Run or None
        A fresh run of the learner that it is the comparator of, to be played again over the same rows; None if that is
        not needed.
    terms : callable
        Called with the opponent, that member, a block of its rounds and the margins of u; returns one additional term
        per round.
    lost, more : ndarray
        The sums of its losses, and of the additional terms, at each mark.
    sums, total : ndarray
        The sums of the loop over the rows so far, and the sum of the additional terms.
    faults : tuple of str
        Violations of the assumptions of its theorem that were seen.
    """

    u: np.ndarray
    opens: bool = False
    member: Run | None = None
    terms: Callable[[Opponent, Run, SomeRounds, np.ndarray], np.ndarray] | None = None
    lost: np.ndarray = field(default_factory=lambda: np.empty(0))
    more: np.ndarray = field(default_factory=lambda: np.empty(0))
    sums: np.ndarray = field(default_factory=lambda: np.zeros(3))
    total: np.ndarray = field(default_factory=lambda: np.zeros(1))
    faults: tuple[str, ...] = ()

    @property
    def size(self) -> float:
        """How much rounding in its margins may change its losses, in units of that rounding."""
        return float(self.sums[LENGTHS])

    @property
    def largest(self) -> float:
        """Its largest |margin|."""
        return float(self.sums[LARGEST])

    def meets(self, loss: Any, rows: Any, y: np.ndarray, c: np.ndarray, opened: np.ndarray, places: np.ndarray) -> None:
        """Add the losses on some rows, with marks at `places`; `opened` are the weights without a round that only set
        the start."""
        z, at, mine = np.empty(y.size), np.zeros((places.size, 3)), opened if self.opens else c
        for_parts(meet, loss)(rows, y, mine, loss, self.u, places, self.sums, at, z)
        self.lost = np.concatenate((self.lost, at[:, LOST]))
        if self.member is not None and self.terms is not None:
            each = self.terms(self, self.member, played_again(self.member, rows, y, c), z)
            added = np.cumsum(np.concatenate((self.total, np.where(mine > 0.0, each, 0.0))))
            self.more, self.total = np.concatenate((self.more, added[places + 1])), added[-1:]


def against(data: Data, loss: Any, opponents: Sequence[Opponent], rounds: int) -> float:
    """Sum the losses of all opponents over the rows of a run, with one pass over the rows for each pass of the run.

    Returns the sum that identifies the rows to a ledger.
    """
    marks, done = marks_of(rounds), 0
    along, seen, sketch = direction(data.width, data.bias), 0, 0.0
    while done < rounds:
        for part, rows in pieces(data):
            y, c = data.y[part], data.c[part]
            sketch = operators.ordered_sum(rows, 0, along, y, c, seen, sketch)
            seen += y.size
            on = np.flatnonzero(c > 0.0)
            opened = c
            if done == 0 and on.size:
                opened = c.copy()
                opened[on[0]] = 0.0
            places = on[marks[(marks > done) & (marks <= done + on.size)] - done - 1]
            done += on.size
            do_all([partial(one.meets, loss, rows, y, c, opened, places) for one in opponents])
    return float(sketch)


def pieces(data: Data) -> Iterator[tuple[slice, Any]]:
    """The rows in chunks of a few thousand, with their positions."""
    for first, rows, count in data.blocks():
        for a in range(0, count, PIECE):
            b = min(count, a + PIECE)
            yield slice(first + a, first + b), part_of(rows, a, b)


def played_again(run: Run, rows: Any, y: np.ndarray, c: np.ndarray) -> SomeRounds:
    """Play rows with a fresh run and return them as a block, without target ranges and marks."""
    own = np.zeros((1, 4, y.size))
    if Single(run, 0).play(rows, 0, y.size, y, c, own) < y.size:
        raise MismatchError("a row cannot be played: these are not the rows of the run")
    return SomeRounds(own[0, 0], own[0, 1], own[0, 3], y, c, y, y, np.empty(0, np.int64))
