"""Stacks: the mixture of a panel, corrected by a second-order learner on the predictions of its members.

Let p_k be the predictions of the members as they are used and m that of the mixture, both known before the target, and

    D = (p_k - m)_k        s = m + u . D

where u is learnt with the offset m: by ridge regression for the square loss, and by second order for the log loss, for
which D ends with a 1. u = 0 is the mixture and u = e_k is member k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import state as states
from ..kernels.compiler import for_parts
from ..kernels.facts import empty_facts
from ..kernels.online import NO_NOTES, play
from ..kernels.rows import Dense, strided
from ..storage.registry import storable, want
from .learners import newton, ridge
from .run import Run

if TYPE_CHECKING:
    from .panel import Panel, PanelRun

PRIOR, KAPPA = 0.1, 0.25  # of the correction: prior, times the square of the largest entry, and curvature
NOT_STACKED = np.empty(0, np.int64), np.empty((0, 0)), np.empty(0)


class Stack:
    """The correction of a panel's mixture: a second-order learner on the differences D, with the mixture as the offset.

    The mixture and its correction are then aggregated, too.

    Attributes
    ----------
    run : Run
        The run of the second-order learner, on one row per round of the panel.
    places : ndarray of int
        The coordinate of each member of the panel; those of removed members stay 0.
    mixture, state : the aggregation of mixture and correction, and its state.
    """

    def __init__(self, panel: Panel, members: int) -> None:
        self.run = Run(newton(KAPPA, PRIOR) if panel.in_logs else ridge(PRIOR), members, intercept=panel.in_logs)
        self.places = np.arange(members)
        self.mixture = panel.plain_mixture(2)
        self.state = states.empty(self.mixture.State, 2, False)

    def copy(self, run: Run) -> Stack:
        """A copy with its own state, and with the given run."""
        other: Stack = object.__new__(Stack)
        other.__dict__.update(self.__dict__, run=run, state=states.copied(self.state))
        return other

    def mirrored(self) -> Stack:
        """The stack for negated labels, which change the sign of all that it learns from except the constant."""
        other = self.copy(self.run.mirrored())
        other.run.state.factor[:-1, -1] *= -1.0
        other.run.state.right[:-1] *= -1.0
        return other

    @property
    def share(self) -> float:
        """The weight of the correction in the aggregation with the mixture."""
        return float(self.mixture.shares(self.state)[-1])

    def snapshot(self) -> tuple[Any, ...]:
        """A copy of the states, for `restore`."""
        return self.run.snapshot(), states.snapshot(self.state)

    def restore(self, kept: tuple[Any, ...]) -> None:
        """Go back to a snapshot."""
        self.run.restore(kept[0])
        states.restore(self.state, kept[1])


class Stages:
    """The stages that turn the members' predictions of some rows into those of the panel.

    These are kernel calls one after another over the same arrays: the mixture, its correction, the mixture of both.
    """

    rows: Any

    def __init__(self, panel: PanelRun, margins: np.ndarray, y: np.ndarray, c: np.ndarray, work: np.ndarray) -> None:
        parts = panel.learner.loss, panel.mixture, panel.members[0].learner.geometry
        stack, count = panel.stack, len(y)
        self.kernel, self.stack, self.y = panel._mix_kernel, stack, y
        if stack is None:
            self.first = margins, y, c, panel.bias, *parts, panel.state, *work[1:], panel.tally, work[0], *NOT_STACKED
            return
        self.mixed, self.counted, self.norms = np.empty(count), np.empty(count), np.empty((3, count))
        self.apart, self.both = np.zeros((count, stack.run.features)), np.empty((count, 2))
        self.rows = Dense(self.apart, stack.run.bias, self.mixed)
        if any(member.backwards for member in panel.members):  # a loop over such rows is compiled for them already
            self.rows = strided(self.rows)
        notes = stack.places, self.apart, self.counted
        loss, _, geometry = parts
        self.first = margins, y, c, panel.bias, *parts, panel.state, *work[1:], empty_facts(), self.mixed, *notes
        self.second = stack.run.parts(), stack.run.tally
        self.last = (
            self.both, y, c, panel.bias, loss, stack.mixture, geometry, stack.state, *work[1:], panel.tally, work[0],
            *NOT_STACKED,
        )  # fmt: skip

    def correction(self, first: int) -> tuple[Any, ...]:
        """The arguments that play the rows of the correction, starting with row `first`."""
        parts, facts = self.second
        rest = self.y[first:], self.counted[first:], *parts, *(v[first:] for v in self.norms)
        return self.rows, first, len(self.counted), *rest, facts, NO_NOTES

    def calls(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """All calls, to compile them."""
        if self.stack is None:
            return [(self.kernel, self.first)]
        second = for_parts(play, *self.second[0][:3])
        return [(second, self.correction(0)), (self.kernel, self.first), (self.kernel, self.last)]

    def run(self, mixes: Any, plays: Any = play) -> None:
        """Run all stages with these kernels."""
        mixes(*self.first)
        if self.stack is None:
            return
        done, count = 0, len(self.counted)
        while True:
            done += int(plays(*self.correction(done)))
            if done >= count:
                break
            # Where squares overflow all members count as the mixture; where that cannot be learnt either it is not.
            self.counted[done] *= self.apart[done].any()
            self.apart[done] = 0.0
        self.both[:, 0], self.both[:, 1] = self.mixed, self.norms[0]
        mixes(*self.last)


def check_stack(stack: Any, panel: Panel, count: int, members: list[Run]) -> None:
    """Refuse a stack that does not fit this panel with `count` members."""
    want(isinstance(stack, Stack), "the run's `stack` must be one")
    like = Stack(panel, count)
    same = type(stack.mixture) is type(like.mixture) and stack.mixture == like.mixture
    own, other = stack.run.learner.geometry, like.run.learner.geometry
    same = same and type(own) is type(other) and own == other and stack.run.width == like.run.width
    want(same and stack.run.bias == like.run.bias and stack.run.start is None, "the run's `stack` is not the panel's")
    stack.run.learner = like.run.learner
    places = stack.places
    known = isinstance(places, np.ndarray) and places.dtype == np.int64 and places.shape == (len(members),)
    want(known and set(places.tolist()) <= set(range(count)), "the places of a stack must be those of its members")
    wrong = states.fault(like.mixture.State, stack.state, 2, False)
    want(wrong is None, f"{wrong}")


def check_stack_fields(fields: dict[str, Any]) -> None:
    """Refuse a stack that lacks a field; the panel checks the fields."""
    want(set(fields) == {"run", "places", "mixture", "state"}, "a stack must have a run, places, a mixture and a state")
    want(isinstance(fields["run"], Run), "the stack's `run` must be one")


storable(Stack, check=check_stack_fields)
