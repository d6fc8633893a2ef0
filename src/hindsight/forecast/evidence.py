"""Evidence that one forecaster is better than another: e-processes, and p-values that hold at every time.

The e-process against "A is not better than B" is the mixture of docs/theory.md#scoring at s = -Sigma c d, where d is
the loss of A minus the loss of B. While the mean of E[d | past] is not below 0, it is bounded by a supermartingale that
starts at 1. From these e-values follows a set of forecasters that contains the best ones at every time with probability
1 - alpha.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import mixtures

if TYPE_CHECKING:
    from .stream import Totals

GRADES = ((100.0, "decisive"), (10**1.5, "very strong"), (10.0, "strong"), (10**0.5, "substantial"))  # Jeffreys


class Evidence(NamedTuple):
    """Evidence that one forecaster is better than another on average.

    Attributes
    ----------
    log_e : float
        Natural logarithm of the current e-value. Under the null hypothesis the expectation of an e-value at any
        stopping time is at most 1: an e-value of 20 is as surprising as multiplying a stake by 20 in a fair game. For
        forecasts made several rounds ahead this holds at times fixed in advance; the probability of ever reaching 20 is
        at most 1/20 in all cases.
    log_sup : float
        The largest value of `log_e` so far, over the points of the path.
    p : float
        The p-value min(1, 1 / largest e-value so far), valid at every time.
    words : str
        The strength of the evidence in words.
    """

    log_e: float
    log_sup: float
    p: float
    words: str

    @property
    def size(self) -> str:
        """The current e-value, the largest so far if different, and the p-value."""
        now, most = shown(self.log_e), shown(self.log_sup)
        return f"e = {now}{'' if now == most else f', {most} at its largest'}, p = {self.p:.3g} at every time"


def log_e_values(at: Totals, horizon: float, lag: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """ln of the e-values for "the first is better" and for "the second is better", of each pair.

    Parameters
    ----------
    at : Totals
        The sums; their arrays may have additional leading axes.
    horizon : float
        The number of rounds for which the mixtures are tuned, fixed in advance.
    lag : int, default 1
        How many rounds ahead forecasts were made. The combined e-value of the interleaved streams is divided by their
        number, so that the probability of ever reaching a level is bounded as for one stream.

    Returns
    -------
    first, second : ndarray
        Arrays of the shape of ``at.first``; -ln(lag) for pairs that have never differed.
    """
    differ, tuned = at.first > 0.0, max(1.0, horizon / lag)
    total = at.differences / (lag * np.where(differ, at.first, 1.0))
    second = mixtures.log_mixture(total, at.side(True, lag), tuned)
    first = mixtures.log_mixture(-total, at.side(False, lag), tuned)
    return np.where(differ, first, 0.0) - math.log(lag), np.where(differ, second, 0.0) - math.log(lag)


def evidence(path: np.ndarray) -> Evidence:
    """The evidence at the end of a path of ln e."""
    log_e, log_sup = float(path[-1]), float(path.max())
    return Evidence(log_e, log_sup, math.exp(min(0.0, -log_sup)), grade(log_e))


def grade(log_e: float) -> str:
    """The strength of an e-value in words, on Jeffreys' scale.

    Examples
    --------
    >>> grade(math.log(20.0))
    'strong'
    """
    return next((words for least, words in GRADES if log_e >= math.log(least)), "no more than weak")


def shown(log_e: float) -> str:
    """An e-value as text, even if it is too large for a float.

    Examples
    --------
    >>> shown(math.log(20.0)), shown(5000.0)
    ('20', '1e2171')
    """
    if log_e == math.inf:
        return "infinite"
    if abs(log_e) < 600.0:
        return f"{math.exp(log_e):.3g}"
    return f"1e{math.floor(log_e / math.log(10.0))}"


# ---------------------------------------------------------------- which of K forecasters may be the best


def against_each(log_first: np.ndarray, log_second: np.ndarray, pairs: list[tuple[int, int]], count: int) -> Any:
    """ln of the e-value against "forecaster i is among the best": the mean over the others of the e-values that they
    are better.

    Parameters
    ----------
    log_first, log_second : ndarray of shape (..., n_pairs)
        ln of the e-values for "the first is better" and for "the second is better" of each pair.
    pairs : list of (int, int)
        The pairs by the indices of their forecasters.
    count : int
        K, at least 2.

    Returns
    -------
    ndarray of shape (..., K)
        ln e.
    """
    worse: list[list[np.ndarray]] = [[] for _ in range(count)]
    for k, (i, j) in enumerate(pairs):
        worse[i].append(log_second[..., k])
        worse[j].append(log_first[..., k])
    return np.stack([np.logaddexp.reduce(each) - math.log(count - 1) for each in worse], axis=-1)


def closed(log_e: np.ndarray) -> np.ndarray:
    """ln of the e-values after closure: rejecting those of at least 1/alpha rejects a true hypothesis with probability
    at most alpha.

    Hypothesis i is rejected if every intersection that contains it is, where each intersection is tested by the mean of
    its e-values. For a given number of hypotheses the smallest mean is that of i and the smallest others.

    Parameters
    ----------
    log_e : ndarray of shape (..., K)
        ln of the e-value against each hypothesis.

    Returns
    -------
    ndarray of shape (..., K)
        ln of the e-value after closure.

    Examples
    --------
    >>> np.exp(closed(np.log([100.0, 1.0, 30.0]))).round(2)
    array([43.67,  1.  , 15.5 ])
    """
    count = log_e.shape[-1]
    order = np.argsort(log_e, axis=-1, kind="stable")
    ascending, out = np.take_along_axis(log_e, order, axis=-1), np.empty_like(log_e)
    for i in range(count):
        others = ascending[order != i].reshape(*log_e.shape[:-1], count - 1)
        sums = np.logaddexp.accumulate(np.concatenate([log_e[..., i : i + 1], others], axis=-1), axis=-1)
        out[..., i] = (sums - np.log(np.arange(1.0, count + 1.0))).min(axis=-1)
    return out
