"""The course of a run: its sums after selected rounds, the marks, which do not depend on how it was cut into chunks.

The marks are the first 64 rounds, then 32 rounds between each power of 2 and the next, and the last round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .certificate import Milestone, RegretCurve
from .theorems import Verdict

STEPS = 32  # marks from a power of 2 to the next


class Course(NamedTuple):
    """What a theorem measures, what its comparator loses, and the bound, each summed up to each mark."""

    rounds: np.ndarray
    measured: np.ndarray
    rival: np.ndarray
    bound: np.ndarray


def marks_between(first: int, last: int) -> np.ndarray:
    """The marks among the rounds first + 1 to last. The last round of a run is not treated as a mark here.

    Examples
    --------
    >>> marks_between(62, 70).tolist()
    [63, 64, 66, 68, 70]
    """
    found = [
        np.arange(2**k, min(2 ** (k + 1), last + 1), max(1, 2**k // STEPS))
        for k in range(max(0, (first + 1).bit_length() - 1), last.bit_length())
    ]
    marks = np.concatenate(found) if found else np.empty(0, np.int64)
    return marks[marks > first]


def marks_of(last: int) -> np.ndarray:
    """The marks of a run of `last` rounds."""
    return np.union1d(marks_between(0, last), [last]).astype(np.int64)


def summed(values: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """The cumulative sums, at each mark, of one value per round."""
    total: np.ndarray = np.cumsum(values)[marks - 1]
    return total


def milestones(course: Course, potential: np.ndarray | None, verdict: Verdict) -> tuple[Milestone, ...]:
    """The run after 1, 2, 4, ... rounds and at the end, with its bound if the theorem applies.

    Parameters
    ----------
    course : Course
        The course of the run.
    potential : ndarray or None
        The potential at each of its marks, if it is tracked.
    verdict : Verdict
        The verdict of the certificate.
    """
    promised = verdict in (Verdict.HOLDS, Verdict.BROKEN)
    rounds = course.rounds.tolist()
    return tuple(
        Milestone(
            k,
            float(course.measured[at]),
            float(course.rival[at]),
            float(course.bound[at]) if promised else math.nan,
            math.nan if potential is None else float(potential[at]),
        )
        for at, k in enumerate(rounds)
        if k & (k - 1) == 0 or k == rounds[-1]
    )


def regret_curve(
    rounds: np.ndarray, mass: np.ndarray, lost: np.ndarray, best: np.ndarray, bound: np.ndarray | None = None
) -> RegretCurve | None:
    """The running mean loss of a run and of the best fixed predictor of all rounds.

    Parameters
    ----------
    rounds : ndarray of int
        The marks.
    mass, lost, best : ndarray
        At each mark, the sums of the weights, of what the run lost and of what the best fixed predictor loses.
    bound : ndarray, default None
        The bound at each mark, NaN where it is not known; None if nothing is promised.

    Returns
    -------
    RegretCurve or None
        None if all weights are 0.

    Examples
    --------
    >>> sums = np.array([4.0, 5.0, 6.0, 8.0])
    >>> regret_curve(np.arange(1, 5), np.arange(1.0, 5.0), sums, np.arange(1.0, 5.0)).regret.tolist()
    [3.0, 1.5, 1.0, 1.0]
    """
    on = mass > 0.0
    if not on.any():
        return None
    mass, promised = mass[on], np.full(int(on.sum()), math.nan) if bound is None else bound[on]
    return RegretCurve(rounds[on].astype(np.int64), lost[on] / mass, best[on] / mass, promised / mass)
