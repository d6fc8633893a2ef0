"""Half-widths of intervals for a mean of bounded differences: at one time, and at every time.

Round i has a difference x_i with |x_i| <= 1, fixed but for its outcome, and m_i = E[x_i | past]. The rounds need not be
identically distributed and may depend on the past. The estimand after t rounds is the running mean (1/t) Sigma m_i,
which changes where the data drifts, so intervals of different times must not be intersected. The statements are proved
in docs/theory.md#scoring.
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

    Hoeffding's lemma for x in [-1, 1], multiplied over the rounds (Azuma); the weights c are fixed in advance.

    Parameters
    ----------
    alpha : float
        The probability of an error on either side.
    squares : float
        Sigma c^2.

    Returns
    -------
    float
        The half-width.
    """
    return math.sqrt(2.0 * math.log(2.0 / alpha) * squares)


def uniform(alpha: float, count: int, squares: float) -> float:
    """Half-width sqrt(ln(2K/alpha) Sigma c^2 / 2) for K sums of losses in [0, 1] at once (Hoeffding, union bound).

    Parameters
    ----------
    alpha : float
        The probability of an error in any of the sums.
    count : int
        K.
    squares : float
        Sigma c^2, with weights c fixed in advance.

    Returns
    -------
    float
        The half-width of each sum.
    """
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

    Parameters
    ----------
    v : array-like
        Sigma x^2.
    alpha : float
        The probability of an error at any time, on one side.
    tunes : sequence of float, default (10.0,)
        Values of v at which u is to be tight.

    Returns
    -------
    ndarray
        u(v), of the shape of v.

    References
    ----------
    Fan, Grama and Liu (2015) for the first inequality; Howard, Ramdas, McAuliffe and Sekhon (2021) for the mixture;
    Choe and Ramdas (2023), who use both to compare forecasters. They centre x at its running mean; here it is centred
    at 0, so that Sigma x^2 adds up over chunks in any order. See docs/bibliography.md.

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
    return high  # the side on which the boundary is not too low


def anytime(alpha: float, v: Any, scale: float) -> np.ndarray:
    """Half-width of a confidence sequence: both sides, at every time at once.

    Parameters
    ----------
    alpha : float
        The probability of an error at any time.
    v : array-like
        The sum of the squares of the terms.
    scale : float
        Largest size of a term.

    Returns
    -------
    ndarray
        Half-width for the sum of the terms, of the shape of v.
    """
    return scale * boundary(np.asarray(v) / scale**2, alpha / 2.0)


def bernstein(alpha: float, v: Any, scale: float, rounds: float) -> np.ndarray:
    """Half-width of an empirical-Bernstein interval at one time, a number of rounds fixed in advance.

    The squares of m terms sum to at most m, so a few tunings cover all sums there can be: the interval is tight for
    small and for large differences. Up to ``WIDER * TUNE`` rounds it is the confidence sequence.

    Parameters
    ----------
    alpha : float
        The probability of an error.
    v : array-like
        The sum of the squares of the terms.
    scale : float
        Largest size of a term.
    rounds : float
        The number of rounds.

    Returns
    -------
    ndarray
        Half-width for the sum of the terms, of the shape of v.
    """
    tunes = [TUNE]
    while tunes[-1] * WIDER < rounds:
        tunes.append(tunes[-1] * WIDER)
    return scale * boundary(np.asarray(v) / scale**2, alpha / 2.0, tunes)
