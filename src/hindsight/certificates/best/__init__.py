"""The best u in hindsight: the minimiser of a loss, or of a bound, over rows that are all known.

Every search minimises

    F(u) = Sigma_t a_t phi(u . x_t, y_t) + 1/2 Sigma_i m_i (u_i - w_i)^2 + kappa D(u, w_1)

over a set, and bounds it from below by the dual. `best_fixed` minimises the losses alone: the best fixed predictor.
`comparator` includes the terms of a bound. The theorems hold for every u, so an inexact one makes a certificate looser
but never false.
"""

from .fixed import best_fixed

__all__ = ["best_fixed"]
