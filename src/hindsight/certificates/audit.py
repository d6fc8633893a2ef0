"""Replay of a run over its rows, which verifies that they are its rows and records what happened in every round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MismatchError
from ..online.facts import same_sums
from ..online.panel import PanelRun
from ..online.run import BLOCK
from ..online.together import Single, together
from .course import Course, marks_of, summed
from .families.adaptive import add_terms
from .ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..online.run import Run
    from ..rows.data import Data


@dataclass(frozen=True)
class Rounds:
    """The rounds of a run (rows of weight 0 left out, passes one after another), one array each.

    Attributes
    ----------
    row : the index of the row; None if each row is one round, in their order.
    rows : the number of rows.
    y, c, eta : label, weight and rate.
    z : margin before the update.
    q, top : |x|_2^2 and |x|_inf.
    step : the step d that was taken, theta += d x.
    change : how much the step added to the conjugate of the potential, as the state reports it, so that D(u, w) rose by
        change - step (u . x); NaN for geometries that do not report it.
    after : margin after the update.
    rounding : how much rounding in the step may have added to `after`; in the multiplicative geometries, how much it
        may have changed the logarithm of a weight.
    """

    row: np.ndarray | None
    rows: int
    y: np.ndarray
    c: np.ndarray
    eta: np.ndarray
    z: np.ndarray
    q: np.ndarray
    top: np.ndarray
    step: np.ndarray
    change: np.ndarray
    after: np.ndarray
    rounding: np.ndarray

    @cached_property
    def marks(self) -> np.ndarray:
        """The rounds at which sums are kept."""
        return marks_of(self.z.size)

    def of(self, each: np.ndarray) -> np.ndarray:
        """What was computed for each row, in the rounds of that row."""
        return each if self.row is None else each[self.row]

    def by_row(self, each: np.ndarray) -> np.ndarray:
        """The sum, for each row, over the rounds in which it was played."""
        return each if self.row is None else np.bincount(self.row, each, self.rows)

    def course(self, measured: np.ndarray, rival: np.ndarray, bound: np.ndarray) -> Course:
        """The course, from what is measured in each round, what a comparator loses in it, and the bound after it."""
        return Course(self.marks, summed(measured, self.marks), summed(rival, self.marks), self.bounded(bound))

    def bounded(self, bound: np.ndarray) -> np.ndarray:
        """The values at the marks of `bound`, which has one value per round."""
        return bound[self.marks - 1]


def _weights_may_differ(run: Run, rounding: float) -> float:
    """How much weights may differ between dense and sparse rows. Additive weights may be differences of larger ones."""
    if run.learner.geometry.multiplicative:
        return float(run.learner.geometry.radius * (1e-9 + 4.0 * rounding))
    return float(1e-9 * max(run.progress[0].reach, np.abs(run.weights).max()))


def replay(run: Run, data: Data) -> Rounds:
    """Play the run again from its start over the rows, as many passes as it took, and check that it is the same run."""
    return replay_all([run], data)[0]


def play_again(run: Run, data: Data) -> Ledger:
    """Play a run or a panel again from its start over the rows, check that it is the same, and return its ledger."""
    passes = passes_over(run, data)
    again = run.fresh()
    ledger = Ledger(again, add_terms)
    if isinstance(again, PanelRun):
        again.watcher = ledger

    def play(p: int, part: slice, rows: Any, a: int, b: int) -> int:
        return play_noted(again, ledger, rows, a, b, data.y[part], data.c[part])

    play_over(data, passes, play)
    for old, new in zip(members_of(run), members_of(again), strict=True):
        check_same(old, new, 0.0)
    if isinstance(run, PanelRun) and not run.left and not same_loss(run, again):
        raise MismatchError(other_rows(run, again))
    ledger.rows_seen = 0  # these are the rows: weights and facts have shown it
    return ledger


def play_over(data: Data, passes: int, play: Callable[[int, slice, Any, int, int], int]) -> None:
    """Play rows block by block, given the number of the pass and their positions; refuse rows that cannot be played."""
    for p in range(passes):
        for first, rows, count in data.blocks():
            for a in range(0, count, BLOCK):
                b = min(count, a + BLOCK)
                played = play(p, slice(first + a, first + b), rows, a, b)
                if played < b - a:
                    row = first + a + played
                    raise MismatchError(f"row {row} cannot be played: these are not the rows of the run")


def other_rows(run: Run, again: Run) -> str:
    """The error message for rows on which a replay has another loss than the run."""
    lost = f"its loss was {run.facts.loss:.9g}, here it is {again.facts.loss:.9g}"
    return f"the model was not trained on these rows in this order: {lost}"


def same_loss(run: Run, again: Run) -> bool:
    """Whether the losses of two runs agree to nine digits."""
    return bool(np.isclose(again.tally[0].loss, run.tally[0].loss, rtol=1e-9, atol=1e-12))


def play_noted(run: Run, ledger: Ledger, rows: Any, a: int, b: int, y: np.ndarray, c: np.ndarray) -> int:
    """Play rows a..b with a run that a ledger follows, and return how many were played."""
    if isinstance(run, PanelRun):
        return run.play_block(rows, a, b, y, c, np.empty((3, b - a)))
    own = np.empty((1, 4, b - a))
    played = Single(run, 0).play(rows, a, b, y, c, own)
    on = c[:played] > 0.0
    ledger.add(own[:, :, :played][:, :, on], y[:played][on], c[:played][on])
    return played


def members_of(run: Run) -> list[Run]:
    """The members of a panel, or the run itself."""
    return run.members if isinstance(run, PanelRun) else [run]


def replay_all(runs: list[Run], data: Data) -> list[Rounds]:
    """Replay several runs over the same rows; `change` and `after` are not recorded for runs that play together."""
    counted, passes = int(np.count_nonzero(data.c)), passes_over(runs[0], data)
    again = [each.fresh() for each in runs]
    parties = together(again)
    out = np.zeros((len(runs), 7, passes, data.rounds))

    def play(p: int, part: slice, rows: Any, a: int, b: int) -> int:
        own = np.zeros((len(runs), 7, b - a))
        own[:, 4:6] = np.nan  # of members that play together this is not known
        played = min(party.play(rows, a, b, data.y[part], data.c[part], own) for party in parties)
        out[:, :, p, part] = own
        return played

    play_over(data, passes, play)
    for old, new, noted in zip(runs, again, out, strict=True):
        check_same(old, new, float(noted[-1].sum()))
    if counted == data.rounds and passes == 1:  # nothing to pick or repeat, so nothing to copy
        rates = (each.learner.rate.of_rounds(counted) for each in runs)
        return [Rounds(None, counted, data.y, data.c, eta, *noted[:, 0]) for eta, noted in zip(rates, out, strict=True)]
    keep = data.c > 0.0
    row = np.tile(np.flatnonzero(keep), passes)
    y, c = data.y[row], data.c[row]
    return [
        Rounds(row, data.rounds, y, c, each.learner.rate.of_rounds(row.size), *(v[:, keep].ravel() for v in out[k]))
        for k, each in enumerate(runs)
    ]


def passes_over(run: Run, data: Data) -> int:
    """The number of passes of a run over the rows, which must be a whole number."""
    counted = int(np.count_nonzero(data.c))
    passes, rest = divmod(run.rounds, counted) if counted else (0, 0)
    if data.width != run.width:
        raise MismatchError(f"the model has {run.width} coordinates, these rows have {data.width}")
    if passes == 0 or rest:
        raise MismatchError(
            f"the model was trained on {run.rounds:,} rounds, which is not a whole number of passes over these "
            f"{counted:,} rows: certify it on the rows it was trained on"
        )
    return passes


def check_same(run: Run, again: Run, rounding: float) -> None:
    """Refuse a replay that ends with different weights or facts."""
    far = float(np.abs(run.weights - again.weights).max())
    if not same_sums(run.tally, again.tally) or not far <= _weights_may_differ(run, rounding):
        raise MismatchError(f"{other_rows(run, again)}, and weights differ by {far:.3g}")
