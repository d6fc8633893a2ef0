"""The area under the ROC curve: how often a row with outcome 1 has a larger score than a row with outcome 0.

The interval is that of DeLong, DeLong and Clarke-Pearson (1988) on the scale of the logit, which keeps it in (0, 1).
The *placement* of a row is the fraction of the rows of the other outcome relative to which it is ordered correctly, and
the area is the mean of the placements of either outcome. If the placements do not vary (for example because all pairs
are ordered correctly), or an outcome has fewer than 30 rows, their variance is not informative. The score interval of
Newcombe (2006, method 5) is then used, with the variance of Hanley and McNeil (1982).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .scores import Score, numbers, open_unit, same_length, weights

LEVEL = 0.95
FEW = 30  # effective rows of an outcome below which placements say little of their own variance


class Auc(NamedTuple):
    """An area under the ROC curve, with its interval.

    Attributes
    ----------
    value : float
        The area; NaN if one of the outcomes does not occur.
    low, high : float
        The interval.
    level : float
        Its confidence level.
    """

    value: float
    low: float
    high: float
    level: float


class Placements(NamedTuple):
    """An area, the influence of each row on it, and the effective number of rows of each outcome."""

    value: float
    influence: np.ndarray
    ones: float
    zeros: float

    @property
    def varied(self) -> bool:
        """Whether the influences give the variance of the area."""
        return min(self.ones, self.zeros) >= FEW and bool(self.influence.any())


def auc(outcomes: Any, scores: Any, weight: Any = None, *, level: float = LEVEL) -> Auc:
    """The area under the ROC curve, with an interval; a tie counts one half.

    Parameters
    ----------
    outcomes : array-like of shape (n_rows,)
        0 or 1.
    scores : array-like of shape (n_rows,)
        Any finite numbers: probabilities or margins.
    weight : array-like of shape (n_rows,) or None, default None
        Importance of each row; None is 1.
    level : float, default 0.95
        The confidence level of the interval, between 0 and 1.

    Returns
    -------
    Auc
        The area and its interval; NaN if one of the outcomes has no weight.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988); Hanley and McNeil (1982); Newcombe (2006). See docs/bibliography.md.

    Examples
    --------
    >>> found = auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.75, 0.227, 0.967)
    """
    y, s = Score("square").outcomes(outcomes), numbers(scores, "score")
    same_length(s, y.size, "score")
    if not np.isfinite(s).all():
        raise ValueError(f"row {int((~np.isfinite(s)).argmax())}, column 'score': a score must be finite")
    return interval(placements(y == 1.0, s, weights(weight, y.size)), open_unit("level", level))


def placements(ones: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> Placements | None:
    """The area and the influence of each row on it; None if one of the outcomes has no weight.

    Parameters
    ----------
    ones : ndarray of bool of shape (n_rows,)
        Whether the outcome is 1.
    scores, weight : ndarray of float of shape (n_rows,)
        The scores, and the importance of each row.
    """
    sizes = [(float(c.sum()), float(c @ c)) for c in (weight[ones], weight[~ones])]
    if not all(total > 0.0 for total, _ in sizes):
        return None
    (positive, _), (negative, _) = sizes
    effective = [total * total / squares for total, squares in sizes]
    order = np.argsort(scores, kind="stable")
    ranked, flags, c = scores[order], ones[order], weight[order]
    begins = np.append(True, ranked[1:] > ranked[:-1])  # of the groups of equal scores
    first, group = np.flatnonzero(begins), np.cumsum(begins) - 1
    in_ones, in_zeros = (np.add.reduceat(c * which, first) for which in (flags, ~flags))
    below = (np.cumsum(in_zeros) - 0.5 * in_zeros) / negative  # the part of the zeros below each score
    above = (positive - np.cumsum(in_ones) + 0.5 * in_ones) / positive  # the part of the ones above it
    value = min(1.0, max(0.0, float(in_ones @ below) / positive))  # rounding could put it outside
    spread = [math.sqrt(n / max(1.0, n - 1.0)) for n in effective]
    parts = [(v[group] - value) * s / t for v, s, t in zip((below, above), spread, (positive, negative), strict=True)]
    influence = np.empty(ones.size)
    influence[order] = c * np.where(flags, *parts)
    return Placements(value, influence, *effective)


def interval(found: Placements | None, level: float = LEVEL) -> Auc:
    """The area with its interval."""
    if found is None:
        return Auc(math.nan, math.nan, math.nan, level)
    if found.varied:
        return Auc(found.value, *logit_interval(found.value, float(np.linalg.norm(found.influence)), level), level)
    return Auc(found.value, *score_interval(found.value, found.ones, found.zeros, level), level)


def mean_auc(found: list[Placements | None]) -> Auc:
    """The mean of the areas of several classes, each against the rest over the same rows.

    The interval uses the mean influence of each row over the areas, so the areas may be dependent. If the interval of
    one of the areas is not based on influences, the result reaches from the mean of the lower ends to the mean of the
    upper ends.
    """
    known = [each for each in found if each is not None]
    if not known:
        return interval(None)
    value = float(np.mean([each.value for each in known]))
    deviation = float(np.linalg.norm(sum(each.influence for each in known))) / len(known)
    if all(each.varied for each in known) and deviation > 0.0:
        return Auc(value, *logit_interval(value, deviation, LEVEL), LEVEL)
    ends = [interval(each) for each in known]
    return Auc(value, float(np.mean([e.low for e in ends])), float(np.mean([e.high for e in ends])), LEVEL)


def logit_interval(value: float, deviation: float, level: float) -> tuple[float, float]:
    """An interval that is symmetric around the logit of the value."""
    from scipy.special import expit, logit, ndtri

    reach = float(ndtri(0.5 + level / 2)) * deviation / (value * (1.0 - value))
    return float(expit(logit(value) - reach)), float(expit(logit(value) + reach))


def score_interval(value: float, ones: float, zeros: float, level: float) -> tuple[float, float]:
    """All areas whose distance from the observed value is at most a number of *their* standard deviations."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z, half = float(ndtri(0.5 + level / 2)), max(0.0, (ones + zeros) / 2 - 1.0)

    def excess(area: float) -> float:
        spread = 1.0 + half * ((1.0 - area) / (2.0 - area) + area / (1.0 + area))
        return abs(value - area) - z * math.sqrt(area * (1.0 - area) * spread / (ones * zeros))

    inside = min(1.0 - 1e-12, max(1e-12, value))  # at 0 and 1 there is no spread, and excess is 0 there as well
    low = float(brentq(excess, 0.0, inside)) if value > 0.0 else 0.0
    return low, float(brentq(excess, inside, 1.0)) if value < 1.0 else 1.0
