"""The course of a run in a certificate: where it stood after 1, 2, 4, ... rounds and at the end."""

from __future__ import annotations

import math

import numpy as np

from ..kernels.floats import Floats
from .certificate import Milestone
from .theorems import Verdict


def milestones(
    measured: Floats, rival: Floats, bound: Floats, potential: float, change: Floats, verdict: Verdict
) -> tuple[Milestone, ...]:
    """Return the milestones of a run.

    Parameters
    ----------
    measured, rival : ndarray
        What the run and its comparator pay in each round.
    bound : ndarray
        The bound after each round; shown only if the theorem applies.
    potential : float
        The potential at the start.
    change : ndarray
        Its change in each round.
    verdict : Verdict
        The certificate's.
    """
    total = len(measured)
    marks = sorted({min(total, 2**k) for k in range(total.bit_length() + 1)})
    measured, rival = np.cumsum(measured), np.cumsum(rival)
    potentials = potential + np.cumsum(change)
    if verdict not in (Verdict.HOLDS, Verdict.BROKEN):
        bound = np.full(total, math.nan)
    return tuple(
        Milestone(k, float(measured[k - 1]), float(rival[k - 1]), float(bound[k - 1]), float(potentials[k - 1]))
        for k in marks
    )
