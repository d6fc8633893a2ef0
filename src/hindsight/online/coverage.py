"""Prediction intervals with guaranteed coverage: a tracker that adapts their width to the requested frequency.

The tracker belongs to the first run of a learner and follows the progressive predictions. The score of a row is the
absolute error |y - y^| or, for labels, the predicted probability of all labels other than the true one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.coverage import COVERAGE, MEMBER, OCTAVES, PARTS, track
from ..rows.labels import class_probabilities
from ..storage.fields import check_record, is_finite
from ..storage.registry import storable, want
from ..validation import number
from .margins import each_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .run import Run

GAMMA = 0.02  # by which a miss moves the level: the guarantee is 1/(2 gamma) misses
RATES = (1.0, 0.25, 0.0625, 1.0)  # of the members, in units of their own widths
FADES = (0.0, 0.0, 0.0, 1.0)  # which of them fall as 1/sqrt(t)
NONE = np.zeros(1)


class Coverage:
    """A tracker that turns predictions into intervals and counts how often they cover.

    Parameters
    ----------
    asked : float
        The nominal coverage: the fraction of rows that intervals should cover, between 0 and 1.

    Attributes
    ----------
    members, sums : record arrays
        The trackers of the base width; the mixture, the level, and sums over the rounds.
    bins : ndarray
        A histogram of the scores: weights by size, and the weighted sums of the scores.
    """

    def __init__(self, asked: float) -> None:
        self.asked = asked
        self.members = np.zeros(len(RATES), MEMBER).view(np.recarray)
        self.members.pace, self.members.fades, self.members.chance = RATES, FADES, 1.0
        self.sums = np.zeros(1, COVERAGE).view(np.recarray)
        self.sums.pool, self.sums.hedge, self.sums.due, self.sums.level = len(RATES), np.inf, 4.0, 0.5
        self.bins = np.zeros((2, OCTAVES * PARTS))

    @property
    def alpha(self) -> float:
        """The fraction of rows that may be missed."""
        return 1.0 - self.asked

    @property
    def half(self) -> float:
        """Half the width of the next interval; infinite if no finite one would keep the guarantee."""
        return float(self.add(NONE, NONE)[0])

    def add(self, scores: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Learn from the scores of rows, and return the half-width that each had before."""
        half = np.empty(len(scores))
        track(scores, c, self.alpha, GAMMA, self.members, self.sums, self.bins, half)
        return half

    def follow(
        self, runs: Sequence[Run], z: np.ndarray, targets: Sequence[np.ndarray], c: np.ndarray, before: float
    ) -> np.ndarray:
        """Learn from rows that were just played, with these margins, and return the half-width that each had before.

        `before` is the number of rounds before these rows. A first row that only set the start of the runs is skipped.
        """
        scores = scores_of(runs, z, targets)
        played = c > 0.0
        if played.sum() > runs[0].tally[0].rounds - before:
            c = c.copy()
            c[played.argmax()] = 0.0
        return self.add(scores, c)

    def snapshot(self) -> tuple[np.ndarray, ...]:
        """A copy of all that rows change, for `restore`."""
        return self.members.copy(), self.sums.copy(), self.bins.copy()

    def restore(self, kept: tuple[np.ndarray, ...]) -> None:
        """Go back to a snapshot."""
        self.members[:], self.sums[:], self.bins[:] = kept


def check_coverage(fields: dict[str, Any]) -> None:
    """Refuse the fields of a saved tracker that do not have the sizes that the compiled loop relies on."""
    want(type(fields["asked"]) is float and 0.0 < fields["asked"] < 1.0, "`asked` must be between 0 and 1")
    check_record("sums", fields["sums"], COVERAGE, ("rounds",))
    check_record("members", fields["members"], MEMBER, (), len(RATES))
    bins = fields["bins"]
    fits = isinstance(bins, np.ndarray) and bins.dtype == np.float64 and bins.shape == (2, OCTAVES * PARTS)
    want(fits and bins.flags.c_contiguous and is_finite(bins), "`bins` must be sums of scores")


storable(Coverage, check=check_coverage)


def cover(runs: Sequence[Run], asked: Any) -> None:
    """Let the new runs of a learner predict with intervals that cover the fraction `asked` of the rows."""
    learner = runs[0].learner
    if not 0.0 < number("interval", asked) < 1.0:
        raise ValueError(f"interval, the part of rows to cover, must be between 0 and 1; got {asked!r}")
    if learner.targets == "sign" or (learner.targets == "unit" and learner.loss.link == "identity"):
        raise ValueError(f"interval needs probabilities of labels, which {learner.name} does not give: --loss logistic")
    runs[0].coverage = Coverage(float(asked))


def scores_of(runs: Sequence[Run], z: np.ndarray, targets: Sequence[np.ndarray]) -> np.ndarray:
    """The scores of rows: the absolute error, or the probability of all labels other than the true one."""
    loss = runs[0].learner.loss
    if runs[0].learner.targets != "unit":
        return np.abs(each_mean(loss, z[:, 0]) - targets[0])
    others = other_chances(loss, z)
    right = (targets[0] > 0.0).astype(int) if len(runs) == 1 else np.argmax(targets, axis=0)
    return np.ascontiguousarray(others[np.arange(len(others)), right])


def other_chances(loss: Any, z: np.ndarray) -> np.ndarray:
    """For each label the probability of all others, one column per label."""
    if z.shape[1] == 1:
        positive = each_mean(loss, z[:, 0])
        return np.column_stack([positive, each_mean(loss, -z[:, 0]) if loss.link == "logistic" else 1.0 - positive])
    each = class_probabilities(np.column_stack([each_mean(loss, z[:, k]) for k in range(z.shape[1])]))
    return np.maximum(0.0, 1.0 - each)


def sets_of(loss: Any, z: np.ndarray, half: float | np.ndarray, labels: Sequence[Any]) -> list[tuple[Any, ...]]:
    """For each row the labels whose score would be covered."""
    taken = other_chances(loss, z) <= np.reshape(half, (-1, 1))
    return [tuple(label for label, fits in zip(labels, row, strict=False) if fits) for row in taken.tolist()]
