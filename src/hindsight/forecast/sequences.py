"""How far a mean of bounded differences can be from what it estimates: at one time, and at every time.

Round i has a difference x_i with |x_i| <= 1, fixed but for its outcome, and m_i = E[x_i | past]. The rounds need not be
alike and may depend on all that went before. What is estimated after t rounds is the running mean (1/t) Sigma m_i,
which moves where the data drifts, so intervals of different times must not be intersected.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

TUNE = 10.0  # Sigma x^2 at which the confidence sequence is tightest
WIDER = 100.0  # at a fixed time: also at this many times as much, and so on, as far as the rounds allow


def hoeffding(alpha: float, squares: float) -> float:
    """Half-width sqrt(2 ln(2/alpha) Sigma c^2) of Sigma c x about Sigma c E[x | past], at one time fixed in advance.

    Hoeffding's lemma for x in [-1, 1] and Azuma's product over the rounds; the weights c are fixed in advance.
    """
    return math.sqrt(2.0 * math.log(2.0 / alpha) * squares)


def uniform(alpha: float, count: int, squares: float) -> float:
    """Half-width sqrt(ln(2K/alpha) Sigma c^2 / 2) for K sums of losses in [0, 1] at once (Chernoff and union)."""
    return math.sqrt(math.log(2.0 * count / alpha) * squares / 2.0)


def boundary(v: Any, alpha: float, tunes: Sequence[float] = (TUNE,)) -> np.ndarray:
    """u(v) such that P(Sigma (x_i - m_i) >= u(Sigma x_i^2) at any time t) <= alpha: empirical Bernstein, time-uniform.

    Proof. (ln(1 + s) - s)/s^2 increases in s > -1, so for x >= -1 and 0 <= l < 1, with psi(l) = -ln(1 - l) - l,

        exp(l x - psi(l) x^2) <= 1 + l x.

    Its expectation given the past is at most 1 + l m_i <= exp(l m_i), so exp(l Sigma (x_i - m_i) - psi(l) Sigma x_i^2)
    is a nonnegative supermartingale that starts at 1, whatever the m_i are. So is its mixture over l in (0, 1) with the
    density proportional to (1 - l)^(r - 1) e^(r l), which at Sigma (x_i - m_i) = s and Sigma x_i^2 = v is

        M(s, v) = r^r / g(r, r) * e^(s + v) * g(v + r, s + v + r) / (s + v + r)^(v + r),

    g the lower incomplete gamma function. By Ville's inequality P(M >= 1/alpha at any time) <= alpha; M increases in s,
    and u(v) solves M(u, v) = 1/alpha. Any r > 0 fixed in advance is valid, and so is the mean of several M; each of
    ``tunes`` sets an r for which u is tight there.

    Fan, Grama and Liu (2015) have the first inequality, Howard, Ramdas, McAuliffe and Sekhon (2021) the mixture, and
    Choe and Ramdas (2023) use both to compare forecasters; they centre x at its running mean, here it is centred at 0,
    so that Sigma x^2 adds up over chunks in any order.

    Examples
    --------
    >>> boundary([0.0, 10.0, 1000.0], 0.025).round(2)
    array([  5.08,  13.12, 120.62])
    """
    from scipy.special import gammainc, gammaln

    level = 2.0 * math.log(1.0 / alpha)
    v = np.asarray(v, np.float64)
    r = np.reshape(tunes, (-1,) + (1,) * v.ndim) / (level + math.log1p(level))
    a = v + r
    # all of ln M(s, v) that does not depend on s, and then the rest
    fixed = r * np.log(r) - gammaln(r) - np.log(gammainc(r, r)) + v + gammaln(a) - a * np.log(a)

    def excess(s: np.ndarray) -> np.ndarray:
        each = fixed + s + np.log(gammainc(a, s + a)) - a * np.log1p(s / a)
        return np.asarray(np.logaddexp.reduce(each) + math.log(alpha / len(tunes)))

    low, high = np.zeros_like(v), np.ones_like(v)
    while (short := excess(high) < 0.0).any():
        low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
    for _ in range(60):
        middle = 0.5 * (low + high)
        short = excess(middle) < 0.0
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high  # the side on which nothing is promised too much


def anytime(alpha: float, v: Any, scale: float) -> np.ndarray:
    """Half-width of a sum of terms at most `scale` in size whose squares sum to v, on both sides and at every time."""
    return scale * boundary(np.asarray(v) / scale**2, alpha / 2.0)


def bernstein(alpha: float, v: Any, scale: float, rounds: float) -> np.ndarray:
    """The same at one time only, a number of rounds fixed in advance: tight for small and for large differences.

    The squares of m terms sum to at most m, so that a few tunes cover all there can be; up to ten times `WIDER` rounds
    it is the confidence sequence.
    """
    tunes = [TUNE]
    while tunes[-1] * WIDER < rounds:
        tunes.append(tunes[-1] * WIDER)
    return scale * boundary(np.asarray(v) / scale**2, alpha / 2.0, tunes)
