"""Isotonic regression of a quantile: the nondecreasing function of the forecast with the least mean pinball loss.

As for the mean, adjacent points that violate the order are pooled, and the value of a pool is the quantile of its
outcomes. If a quantile is not unique, neither is the optimal fit: the smallest and the largest one are computed, and
their midpoint is used (Jordan, Mühlemann and Ziegel, 2022).
"""

from __future__ import annotations

import numpy as np

from ..batch.isotonic import ALL, NONE, Pools, interpolate, stable_order, take
from ..kernels import isotonic as kernels
from ..kernels.floats import Floats

SLACK = 1e-12  # costs that differ by this part of the total weight are the same


def isotonic_quantile(z: Floats, y: Floats, weight: Floats | None, level: float) -> tuple[Floats, Pools]:
    """Fit the nondecreasing f that minimises the mean pinball loss of f(z).

    Parameters
    ----------
    z, y : ndarray of shape (m,)
        The forecasts and the outcomes; finite numbers.
    weight : ndarray of shape (m,) or None
        Weights, at least 0 and not all 0; None is 1. The value of a point of weight 0 is interpolated.
    level : float
        The quantile, between 0 and 1.

    Returns
    -------
    fit : ndarray of shape (m,)
        The fit, in the order of the rows.
    pools : Pools
        Its levels.

    Examples
    --------
    >>> isotonic_quantile(np.array([1.0, 2.0, 3.0]), np.array([5.0, 1.0, 7.0]), None, 0.5)[0]
    array([3., 3., 7.])
    """
    if weight is not None and not weight.all():
        keep = weight > 0.0
        fit = np.empty(z.size)
        fit[keep], pools = isotonic_quantile(z[keep], y[keep], weight[keep], level)
        fit[~keep] = interpolate(*pools.knots(), np.ascontiguousarray(z[~keep]))
        return fit, pools
    order = stable_order(z)[0]
    at, seen = take(z, order), take(y, order)
    c = None if weight is None else take(weight, order)
    begins = np.append(True, at[1:] > at[:-1])
    made = fitted(seen, c, begins, level)
    first = np.flatnonzero(np.append(True, made[1:] > made[:-1]))
    ends = np.append(first[1:], made.size)
    mass = np.diff(np.append(first, made.size)) * 1.0 if c is None else np.add.reduceat(c, first)
    out = np.empty(z.size)
    kernels.scatter(made, order, out)
    return out, Pools(at[first], at[ends - 1], made[first], mass, np.diff(np.append(first, made.size)))


def quantile(y: Floats, weight: Floats | None, level: float) -> float:
    """A quantile of outcomes: the midpoint of the values that minimise the mean pinball loss.

    Examples
    --------
    >>> quantile(np.array([1.0, 2.0, 5.0, 7.0]), None, 0.5)
    3.5
    """
    if weight is not None:
        y, weight = y[weight > 0.0], weight[weight > 0.0]
    return float(fitted(y, weight, np.append(True, np.zeros(y.size - 1, bool)), level)[0])


def fitted(y: Floats, weight: Floats | None, begins: np.ndarray, level: float) -> Floats:
    """The midpoint of the smallest and the largest fit, for points sorted by z."""
    values, rank = np.unique(y, return_inverse=True)
    c, mask = (np.ones(1), NONE) if weight is None else (weight, ALL)
    slack = SLACK * float(y.size if weight is None else weight.sum())
    todo, found = np.empty((4, 128), np.int64), np.empty((2, y.size), np.int64)
    for upper in (False, True):
        kernels.quantile_fit(rank, c, mask, begins, level, upper, slack, todo, found[int(upper)])
    return np.asarray(0.5 * values[found[0]] + 0.5 * values[found[1]])
