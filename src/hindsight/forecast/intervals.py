"""Intervals for the estimand of each pair, from the sums of a stream: three kinds, at one time and at every time.

Hoeffding's interval at one time is narrower than the normal mixture, which holds at every time, and assumes for it that
forecasts do not react to outcomes. The other two kinds assume nothing of the sort, and are the same at one time and at
every time: forecasters who agree from some moment on keep the difference of their losses where it is, so that what
holds at one time for all forecasters holds at every moment at which they may stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import mixtures, sequences
from .stream import HIGH, LOW, PROXY, Totals

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
    """

    alpha: float
    horizon: float
    anytime: bool

    def ends(self, at: Totals, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the intervals of one kind.

        Parameters
        ----------
        at : Totals
            Sums whose arrays may have further axes in front, of which the last counts interleaved streams: each has an
            equal share of alpha, and their half-widths add up.
        kind : {"mixture", "ranges", "bernstein"}
            The kind.

        Returns
        -------
        low, high : ndarray of shape (..., n_pairs)
            The ends, cut to where every mean of expected differences must lie.
        """
        below, above = (self._reach(at, kind, upper).sum(axis=-2) for upper in (True, False))
        sums, weight = at.pairs.sum(axis=-3), np.sum(at.weight, axis=-1)[..., None]
        middle = at.differences.sum(axis=-2)
        low = np.maximum(sums[..., LOW], middle - below) / weight
        high = np.minimum(sums[..., HIGH], middle + above) / weight
        return low, high

    def _reach(self, at: Totals, kind: str, upper: bool) -> np.ndarray:
        """How far each sum may lie above its estimand (or below it)."""
        streams = at.pairs.shape[-3]
        alpha, horizon = self.alpha / streams, max(1.0, self.horizon / streams)
        if kind != "ranges":
            made = mixtures.boundary(alpha / 2.0, at.side(upper), horizon, kind)
        elif self.anytime:
            made = sequences.normal(alpha, at.pairs[..., PROXY], sequences.tuned(alpha, horizon / 4.0))
        else:
            made = sequences.hoeffding(alpha, at.pairs[..., PROXY])
        return np.asarray(at.first * made)

    def intervals(self, now: Sequence[Totals]) -> list[Intervals]:
        """The intervals of every pair."""
        at = stacked([now])
        each = [np.stack(self.ends(at, kind), axis=-1)[0].tolist() for kind in Intervals._fields]
        return [Intervals(*(Interval(*both) for both in pair)) for pair in zip(*each, strict=True)]


def stacked(points: Sequence[Sequence[Totals]]) -> Totals:
    """Sums of several times and interleaved streams as one, with two axes more: times, and streams."""

    def all_of(name: str) -> Any:
        return np.array([[getattr(part, name) for part in parts] for parts in points])

    return Totals(*(all_of(name) for name in Totals._fields))
