"""The regret of a run along its rounds: its mean loss so far, beside that of the best fixed predictor of all rounds."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .certificate import RegretCurve

if TYPE_CHECKING:
    from ..kernels.floats import Floats

PIECES = 128  # of equal length, of which the last round and those of the least and the most regret are kept
STEPS = 8  # rounds that are kept besides, from each power of 2 to the next


def regret_curve(weight: Floats, lost: Floats, best: Floats, bound: Floats | None = None) -> RegretCurve | None:
    """Return the curve of a run, of at most 700 points, which keep the extremes of the regret per round.

    Parameters
    ----------
    weight : ndarray
        The weight of each round; rounds before the first that weighs something are left out.
    lost, best : ndarray
        What the run and the best fixed predictor pay in each round.
    bound : ndarray, default None
        What was promised after each round in all, NaN where that is not known; None where nothing is.

    Returns
    -------
    RegretCurve or None
        None where no round weighs anything.

    Examples
    --------
    >>> curve = regret_curve(np.ones(4), np.array([4.0, 1.0, 1.0, 2.0]), np.ones(4))
    >>> curve.rounds.tolist(), curve.regret.tolist()
    ([1, 2, 3, 4], [3.0, 1.5, 1.0, 1.0])
    """
    mass = np.cumsum(weight)
    first = int(np.searchsorted(mass, 0.0, side="right"))
    if first == mass.size:
        return None
    mass = mass[first:]
    mine, other = np.cumsum(lost)[first:] / mass, np.cumsum(best)[first:] / mass
    at = kept_places(mine - other, first)
    promised = np.full(at.size, np.nan) if bound is None else bound[first:][at] / mass[at]
    return RegretCurve(at + first + 1, mine[at], other[at], promised)


def even_rounds(last: int) -> list[int]:
    """The rounds that a curve of so many keeps whatever happens in them: `STEPS` from each power of 2 to the next, and
    the last one of each piece.

    Examples
    --------
    >>> even_rounds(5)
    [1, 2, 3, 4, 5]
    """
    powers = 2 ** np.arange(last.bit_length())
    steps = (powers[:, None] * (1.0 + np.arange(STEPS) / STEPS)).astype(np.int64).ravel()
    ends = np.linspace(0, last, PIECES + 1).astype(np.int64)[1:]
    return [r for r in np.unique(np.concatenate([steps, ends])).tolist() if 0 < r <= last]


def kept_places(values: Floats, before: int) -> np.ndarray:
    """The places that a curve keeps, where `before` rounds come before its first one.

    They are the first one, the even rounds, and the lowest and the highest value of each of many pieces.
    """
    even = np.array(even_rounds(values.size + before)) - before - 1
    ends = np.unique(np.linspace(0, values.size, PIECES + 1).astype(np.int64))
    known = np.where(np.isfinite(values), values, np.nan)
    keep = [np.array([0]), even[even >= 0]]
    for a, b in pairwise(ends.tolist()):
        piece = known[a:b]
        if not np.isnan(piece).all():
            keep.append(a + np.array([np.nanargmin(piece), np.nanargmax(piece)]))
    return np.unique(np.concatenate(keep))
