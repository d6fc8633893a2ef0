"""The best u in hindsight: what minimises a loss, or a bound, over the rows once they are all known.

Every search minimises

    F(u) = Sigma_t a_t phi(u . x_t, y_t) + 1/2 Sigma_i m_i (u_i - w_i)^2 + kappa D(u, w_1)

over a set, and bounds it from below by the dual. `best_fixed` has nothing but the losses: the best fixed predictor.
`comparator` has the terms of a bound. The bounds hold for every u, so an inexact one loosens a certificate and never
falsifies it.
"""

from .fixed import best_fixed

__all__ = ["best_fixed"]
