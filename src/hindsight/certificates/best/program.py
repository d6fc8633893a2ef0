"""Linear programs: the best u for a loss with a kink, and nonnegative separators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .spaces import Mixtures

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from .objective import Envelope


def kinked_program(X: Floats, a: Floats, phi: Envelope, where: Any) -> tuple[Floats, list[Floats]] | None:
    """The optimal slopes r for a loss with a kink and candidates for u, one of which is optimal; None if the LP fails.

    The dual is solved, as its solution gives both: max -Sigma alpha k + t over a low <= alpha <= a high. Over a set, t
    is at most Sigma alpha z_j for the margins z_j of each corner, and the multipliers are the weights of the corners.
    Over R^n, t = 0 and Sigma alpha x = 0, and the multipliers are u up to sign.
    """
    from scipy.optimize import linprog

    on = np.flatnonzero(a > 0.0)
    weight, low, high, kink = a[on] / a.max(), phi.low[on], phi.high[on], phi.kink[on]
    size = float(np.abs(kink).max(initial=0.0)) or 1.0
    cost, bounds = kink / size, np.c_[weight * low, weight * high]
    if isinstance(where, Mixtures):
        Z = where.at_corners(X[on]) / size
        above = np.c_[-Z.T, np.ones(Z.shape[1])]
        bounds = np.r_[bounds, [[-np.inf, np.inf]]]
        found = linprog(np.r_[cost, -1.0], A_ub=above, b_ub=np.zeros(Z.shape[1]), bounds=bounds, method="highs-ds")
    else:
        A = (X[on] * where.shrink).T
        found = linprog(cost, A_eq=A, b_eq=np.zeros(A.shape[0]), bounds=bounds, method="highs-ds")
    if found.status != 0:
        return None
    r = np.zeros(a.size)
    r[on] = np.clip(found.x[: on.size] / weight, low, high)
    if not isinstance(where, Mixtures):
        u = size * where.shrink * found.eqlin.marginals
        return r, [u, -u]
    p = np.abs(found.ineqlin.marginals)
    return r, [where.mixed(p / p.sum())] if p.sum() > 0.0 else []


def nonnegative_separator(A: Floats) -> tuple[Floats | None, bool | None]:
    """A u >= 0 with A u > 0 in all rows, and whether one exists (None if unknown)."""
    from scipy.optimize import linprog

    scale = np.abs(A).max(axis=1, initial=0.0)
    if not (scale > 0.0).all():
        return None, False
    out = linprog(np.ones(A.shape[1]), A_ub=-A / scale[:, None], b_ub=-np.ones(A.shape[0]), method="highs-ds")
    return (out.x if out.status == 0 and out.x.any() else None), None
