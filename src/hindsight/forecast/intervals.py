"""Intervals for the estimand of each pair, from the sums of a stream: three kinds, at one time and at every time.

Hoeffding's interval at one time is narrower than the normal mixture, which holds at every time, and assumes for it that
forecasts do not react to outcomes. The other two kinds assume nothing of the sort, and are the same at one time and at
every time: forecasters who agree from some moment on keep the difference of their losses where it is, so that what
holds at one time for all forecasters holds at every moment at which they may stop. Forecasts that are made several
rounds ahead cannot react so soon, and have narrower intervals at one time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import mixtures, sequences
from .stream import HIGH, LOW, Totals

if TYPE_CHECKING:
    from collections.abc import Sequence

HORIZON = 1000  # rounds that what is valid at every time is tuned for, where no other number is named


class Interval(NamedTuple):
    """An interval for the estimand.

    Attributes
    ----------
    low, high : float
        Its ends.
    """

    low: float
    high: float


class Intervals(NamedTuple):
    """Intervals of three kinds, of which one is chosen in advance.

    Attributes
    ----------
    mixture : Interval
        By the mean of the supermartingales of the other two: nearly as narrow as the narrower one.
    ranges : Interval
        By the ranges of the differences alone: Hoeffding's interval at one time, a normal mixture at every time.
    bernstein : Interval
        Empirical Bernstein: narrow where differences are far from the ends of their ranges, as for rare events.
    """

    mixture: Interval
    ranges: Interval
    bernstein: Interval


class Promise(NamedTuple):
    """What intervals rest on.

    Attributes
    ----------
    alpha : float
        The probability of an error for one pair.
    horizon : float
        The number of rounds that they are tuned for.
    anytime : bool
        Whether they hold at every time at once.
    lag : int, default 1
        How many rounds ahead forecasts were made.
    """

    alpha: float
    horizon: float
    anytime: bool
    lag: int = 1

    def ends(self, at: Totals, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the intervals of one kind.

        Parameters
        ----------
        at : Totals
            Sums whose arrays may have further axes in front.
        kind : {"mixture", "ranges", "bernstein"}
            The kind.

        Returns
        -------
        low, high : ndarray of shape (..., n_pairs)
            The ends, cut to where every mean of expected differences must lie.
        """
        below, above = (self._reach(at, kind, upper) for upper in (True, False))
        weight = np.asarray(at.weight)[..., None]
        low = np.maximum(at.pairs[..., LOW], at.differences - below) / weight
        high = np.minimum(at.pairs[..., HIGH], at.differences + above) / weight
        return low, high

    def _reach(self, at: Totals, kind: str, upper: bool) -> np.ndarray:
        """How far each sum may lie above its estimand (or below it)."""
        side, horizon = at.side(upper, self.lag), max(1.0, self.horizon / self.lag)
        alpha = self.alpha / self.lag if self.anytime else self.alpha
        if kind != "ranges":
            made = mixtures.boundary(alpha / 2.0, side, horizon, kind)
        elif self.anytime:
            made = sequences.normal(alpha, side.proxy, sequences.tuned(alpha, horizon / 4.0))
        else:
            made = sequences.hoeffding(alpha, side.proxy)
        return np.asarray(self.lag * at.first * made)

    def intervals(self, now: Totals) -> list[Intervals]:
        """The intervals of every pair."""
        each = [np.stack(self.ends(now, kind), axis=-1).tolist() for kind in Intervals._fields]
        return [Intervals(*(Interval(*both) for both in pair)) for pair in zip(*each, strict=True)]


def stacked(points: Sequence[Totals]) -> Totals:
    """Sums of several times as one, with one axis more."""
    fields: list[Any] = [np.array(each) for each in zip(*points, strict=True)]
    return Totals(*fields)
