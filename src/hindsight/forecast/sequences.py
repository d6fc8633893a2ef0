"""Half-widths of intervals based on ranges known before the outcome: at a fixed time, and at every time.

Round i adds a term x_i to a sum. Before its outcome is seen, x_i is known to lie in an interval of length r_i, which
may depend on the past. With m_i = E[x_i | past] and V = Sigma r_i^2 / 4, exp(l Sigma (x_i - m_i) - l^2 V / 2) is a
supermartingale for every l (Hoeffding's lemma). The rounds need not be identically distributed. The estimand changes if
the data drifts, so intervals of different times must not be intersected. Proofs are in docs/theory.md#scoring.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def hoeffding(alpha: float, proxy: Any) -> Any:
    """Half-width sqrt(2 ln(2/alpha) V) at a fixed time, where V was fixed in advance.

    V must not depend on the outcomes: forecasters who agree from the moment at which their difference is large could
    make this interval miss arbitrarily often. `normal` and `Mixture` are valid for them, too.

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
