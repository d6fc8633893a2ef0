"""Half-widths that rest on ranges known before the outcome: at one time, and at every time.

Round i adds a term x_i to a sum. Before its outcome is seen, x_i is known to lie in an interval of length r_i, which
may depend on the past. With m_i = E[x_i | past] and V = Sigma r_i^2 / 4, exp(l Sigma (x_i - m_i) - l^2 V / 2) is a
supermartingale for every l (Hoeffding's lemma). The rounds need not be identically distributed. The estimand changes
where the data drifts, so intervals of different times must not be intersected. Proofs are in docs/theory.md#scoring.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def hoeffding(alpha: float, proxy: Any) -> Any:
    """Half-width sqrt(2 ln(2/alpha) V) at one time, where V was fixed in advance.

    V must not react to the outcomes: forecasters who agree from the moment at which their difference has gone far
    would make this interval miss as often as they like. `normal` and `Mixture` hold for them too.

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
    """The rho with which `normal` is about as narrow as it can be at V = `proxy` (Howard et al., 2021).

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
    """Half-width sqrt((V + rho) ln((V + rho)/(rho alpha^2))), both sides, at every time at once.

    The mixture of exp(l s - l^2 V / 2) over l normal with variance 1/rho is sqrt(rho/(V + rho)) exp(s^2/(2 (V + rho))),
    a supermartingale that starts at 1; by Ville's inequality it ever reaches 1/alpha with probability at most alpha.

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
