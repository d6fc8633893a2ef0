"""Which of K forecasters may be the best: a set that contains them at every time with probability 1 - alpha."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


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
