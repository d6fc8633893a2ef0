"""Confidence intervals for each pair, from the sums of a stream: three kinds, at a fixed time and at every time.

Hoeffding's interval at a fixed time is narrower than the normal mixture, which holds at every time, but it assumes that
forecasts do not react to outcomes. The other two kinds do not assume this, and are the same at a fixed time and at
every time. The reason: forecasters who agree from some moment on freeze the difference of their losses, so an interval
that holds at a fixed time for all forecasters holds at every moment at which they may do so. Forecasts that are made
several rounds ahead cannot react so soon, and have narrower intervals at a fixed time.

Half-widths from ranges alone: round i adds a term x_i to a sum. Before its outcome is seen, x_i is known to lie in an
interval of length r_i, which may depend on the past. With m_i = E[x_i | past] and V = Sigma r_i^2 / 4,
exp(l Sigma (x_i - m_i) - l^2 V / 2) is a supermartingale for every l (Hoeffding's lemma). The rounds need not be
identically distributed. The estimand changes if the data drifts, so intervals of different times must not be
intersected. Proofs are in docs/theory.md#scoring.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import mixtures
from .stream import HIGH, LOW, Totals

if TYPE_CHECKING:
    from collections.abc import Sequence

HORIZON = 1000  # rounds that what is valid at every time is tuned for, where no other number is named


class Interval(NamedTuple):
    """An interval for the estimand.

    Attributes
    ----------
    low, high : float
        The ends of the interval.
    """

    low: float
    high: float


class Intervals(NamedTuple):
    """Intervals of three kinds, one of which is chosen in advance.

    Attributes
    ----------
    mixture : Interval
        Based on the mean of the supermartingales of the other two kinds: nearly as narrow as the narrower one.
    ranges : Interval
        Based only on the ranges of the differences: Hoeffding's interval at a fixed time, a normal mixture at every
        time.
    bernstein : Interval
        Empirical Bernstein: narrow if differences are far from the ends of their ranges, as for rare events.
    """

    mixture: Interval
    ranges: Interval
    bernstein: Interval


class Promise(NamedTuple):
    """The parameters of intervals.

    Attributes
    ----------
    alpha : float
        The probability of an error for one pair.
    horizon : float
        The number of rounds for which they are tuned.
    anytime : bool
        Whether they hold at every time.
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
            The ends, clipped to the range of possible means of expected differences.
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
            made = normal(alpha, side.proxy, tuned(alpha, horizon / 4.0))
        else:
            made = hoeffding(alpha, side.proxy)
        return np.asarray(self.lag * at.first * made)

    def intervals(self, now: Totals) -> list[Intervals]:
        """The intervals of every pair."""
        each = [np.stack(self.ends(now, kind), axis=-1).tolist() for kind in Intervals._fields]
        return [Intervals(*(Interval(*both) for both in pair)) for pair in zip(*each, strict=True)]


def stacked(points: Sequence[Totals]) -> Totals:
    """The sums at several times stacked along an additional axis."""
    fields: list[Any] = [np.array(each) for each in zip(*points, strict=True)]
    return Totals(*fields)


def hoeffding(alpha: float, proxy: Any) -> Any:
    """Half-width sqrt(2 ln(2/alpha) V) at a fixed time, where V was fixed in advance.

    V must not depend on the outcomes: forecasters who agree from the moment at which their difference is large could
    make this interval miss arbitrarily often. `normal` and mixtures are valid for them, too.

    Parameters
    ----------
    alpha : float
        The probability of an error on either side.
    proxy : float or ndarray
        V.

    Returns
    -------
    float or ndarray
        The half-width.
    """
    return np.sqrt(2.0 * math.log(2.0 / alpha) * proxy)


def tuned(alpha: float, proxy: Any) -> Any:
    """The rho for which `normal` is nearly as narrow as possible at V = `proxy` (Howard et al., 2021).

    Parameters
    ----------
    alpha : float
        The probability of an error.
    proxy : float or ndarray
        V at the horizon.

    Returns
    -------
    float or ndarray
        rho.
    """
    level = 2.0 * math.log(1.0 / alpha)
    return proxy / (level + math.log1p(level))


def normal(alpha: float, proxy: Any, rho: Any) -> Any:
    """Two-sided half-width sqrt((V + rho) ln((V + rho)/(rho alpha^2))), valid at every time.

    The mixture of exp(l s - l^2 V / 2) over l normal with variance 1/rho is sqrt(rho/(V + rho)) exp(s^2/(2 (V + rho))),
    a supermartingale that starts at 1; by Ville's inequality the probability that it ever reaches 1/alpha is at most
    alpha.

    Parameters
    ----------
    alpha : float
        The probability of an error at any time.
    proxy : float or ndarray
        V.
    rho : float or ndarray
        Above 0 and fixed in advance; see `tuned`.

    Returns
    -------
    float or ndarray
        The half-width.

    References
    ----------
    Robbins (1970); Howard, Ramdas, McAuliffe and Sekhon (2021). See docs/bibliography.md.

    Examples
    --------
    >>> normal(0.05, np.array([1.0, 100.0]), tuned(0.05, 100.0)).round(2)
    array([ 9.08, 30.35])
    """
    wide = proxy + rho
    return np.sqrt(wide * (np.log(wide / rho) - 2.0 * math.log(alpha)))
