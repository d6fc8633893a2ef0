"""A mean of supermartingales over a grid of rates: a single test with nearly the power of the best of them.

Round i adds a term x_i, known before its outcome to lie in [low_i, high_i]; g_i in that interval is a guess at it from
the past alone. With m_i = E[x_i | past], s = Sigma (x_i - m_i) and a rate l > 0 two supermartingales start at 1:

    by the ranges        exp(l s - l^2 V / 2),  V = Sigma (high_i - low_i)^2 / 4
    empirical Bernstein  exp(l s - Sigma psi(l R_i) (x_i - g_i)^2 / R_i^2),  R_i = g_i - low_i

with psi(a) = -ln(1 - a) - a, the second while l R_i < 1. psi is replaced by a polynomial that is at least psi up to
`REACH`, so that a few sums
Sigma (x_i - g_i)^2 R_i^j serve all rates at once; a rate with l R_i > REACH is given up (its supermartingale is set to
0, at a moment known before the outcome). Terms are measured in units of the first range above 0, which is known before
any outcome that matters. The lower side is the same with -x_i. Proofs are in docs/theory.md#scoring.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

REACH = 0.9  # largest l R at which the polynomial bounds psi
ORDERS = 5  # number of sums Sigma (x - g)^2 R^j
HALF = 40  # rates on either side of the middle one, each twice the one before
SPREAD = 4.0  # prior weights fall as 1 / (1 + (k / SPREAD)^2)
MIDDLE = 4.0  # the middle rate is MIDDLE / sqrt(horizon)
STEPS = 50  # most Newton steps; about six are needed
KINDS = ("mixture", "ranges", "bernstein")


def _coefficients() -> np.ndarray:
    """psi(a) <= a^2 Sigma_j q_j a^j on [0, REACH]: the series of psi, the last coefficient raised to make up the rest.

    psi(a) / a^2 = Sigma a^j / (j + 2), and what is left of it beyond a^3, divided by a^4, increases in a.
    """
    first = 1.0 / np.arange(2.0, ORDERS + 1.0)
    rest = (-math.log1p(-REACH) - REACH) / REACH**2 - float(first @ REACH ** np.arange(ORDERS - 1))
    return np.append(first, rest / REACH ** (ORDERS - 1))


COEFFICIENTS = _coefficients()


class Side(NamedTuple):
    """Statistics of the terms for one side; every array has the same shape, `moments` with an additional leading axis.

    Attributes
    ----------
    proxy : ndarray
        V = Sigma (high - low)^2 / 4.
    moments : ndarray of shape (ORDERS, ...)
        Sigma (x - g)^2 R^j for j = 0, 1, ...
    reach : ndarray
        The largest R.
    """

    proxy: np.ndarray
    moments: np.ndarray
    reach: np.ndarray


def exponents(side: Side, horizon: float, kind: str = "mixture") -> tuple[np.ndarray, np.ndarray]:
    """Rates l, and the amount subtracted from l s in each exponent: ln(1/prior) plus the term of the rounds.

    Parameters
    ----------
    side : Side
        The statistics of the terms so far.
    horizon : float
        The number of rounds for which the rates are centred, fixed in advance.
    kind : {"mixture", "ranges", "bernstein"}, default "mixture"
        Which supermartingales to use: both, or one of the two, chosen in advance.

    Returns
    -------
    rates, prices : ndarray of shape (n_components, ...)
        ln of the mixture at s is ln Sigma exp(rates * s - prices).
    """
    k = np.arange(-HALF, HALF + 1.0)
    prior = 1.0 / (1.0 + np.square(k / SPREAD))
    prior /= prior.sum()
    shape = (-1, *(1,) * np.ndim(side.proxy))
    rates = np.broadcast_to(MIDDLE / math.sqrt(horizon) * np.exp2(k).reshape(shape), (k.size, *np.shape(side.proxy)))
    cost = -np.log(prior if kind != "mixture" else prior / 2.0).reshape(shape)
    parts = []
    if kind != "bernstein":
        parts.append(cost + 0.5 * np.square(rates) * side.proxy)
    if kind != "ranges":
        price = np.zeros_like(rates)
        for q, moment in zip(COEFFICIENTS[::-1], side.moments[::-1], strict=True):
            price = price * rates + q * moment
        parts.append(np.where(rates * side.reach <= REACH, cost + np.square(rates) * price, np.inf))
    return np.concatenate([rates] * len(parts)), np.concatenate(parts)


def log_mixture(total: Any, side: Side, horizon: float, kind: str = "mixture") -> np.ndarray:
    """ln of the mixture at s = `total`.

    Parameters
    ----------
    total : array-like
        s. With a number that never exceeds s under a null hypothesis, the mixture is an e-process.
    side, horizon, kind
        As in `exponents`.

    Returns
    -------
    ndarray
        The logarithm of the mixture, of the shape of the arrays of `side`.
    """
    rates, prices = exponents(side, horizon, kind)
    return np.asarray(np.logaddexp.reduce(rates * np.asarray(total) - prices, axis=0))


def boundary(alpha: float, side: Side, horizon: float, kind: str = "mixture") -> np.ndarray:
    """u such that P(Sigma (x_i - m_i) >= u at any time) <= alpha.

    ln of the mixture is convex and increases in s, and u solves mixture(u) = 1/alpha. Newton's method starts above u,
    at the smallest s at which one component alone reaches 1/alpha, and never falls below u.

    Parameters
    ----------
    alpha : float
        The one-sided probability of an error at any time.
    side, horizon, kind
        As in `exponents`.

    Returns
    -------
    ndarray
        The boundary u, of the shape of the arrays of `side`.
    """
    rates, prices = exponents(side, horizon, kind)
    level = -math.log(alpha)
    s = np.min((level + prices) / rates, axis=0)
    for _ in range(STEPS):
        each = rates * s - prices
        top = each.max(axis=0)
        each = np.exp(each - top)
        mass = each.sum(axis=0)
        step = (top + np.log(mass) - level) * mass / (each * rates).sum(axis=0)
        s = s - np.maximum(step, 0.0)
        if (step <= 1e-12 * np.abs(s)).all():
            break
    return np.asarray(s)
