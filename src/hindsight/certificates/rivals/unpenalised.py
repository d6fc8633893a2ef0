"""The best fixed predictor in hindsight: the u of least total loss, with nothing added for its size.

For the square and the logistic loss with few coordinates, by Newton's method on columns scaled to one size. Any r with
Sigma_t a_t r_t x_t = 0 shows that no u loses less than -Sigma_t a_t phi*(r_t), phi* the conjugate of the loss: the
slopes at u are such r up to their sum, and one step of Newton's method takes that sum off them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from ...online.margins import each_curvature, each_loss, each_slope

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

WIDTH = 600  # coordinates up to which it is sought
STEPS = 60  # of Newton's method at most
NEAR = 1e-9  # relative gap at which it is found


class FixedPredictor(NamedTuple):
    """A fixed predictor: its weights, what it loses, by how much that may exceed the least, and how it was found.

    The gap is infinite where columns are collinear to rounding: what lies along their difference is not looked for.
    """

    u: Floats
    loss: float
    gap: float
    how: str


def best_fixed(data: Data, loss: Any, factors: Floats) -> FixedPredictor | None:
    """The u that minimises Sigma a phi(u . x, y), or None where it is not sought.

    Parameters
    ----------
    data : Data
        The rows.
    loss : part
        The square loss, or the logistic one for targets in [0, 1].
    factors : ndarray
        The weight a of each row.
    """
    conjugate = conjugate_of(loss)
    if conjugate is None or data.width > WIDTH:
        return None
    gram, _ = data.moments(factors, np.zeros(data.rounds))
    with np.errstate(divide="ignore"):
        shrink = np.where(np.diagonal(gram) > 0.0, 1.0 / np.sqrt(np.diagonal(gram)), 0.0)
    on = factors > 0.0
    u = best_u = step = np.zeros(data.width)
    least, lower, rank = math.inf, -math.inf, 0
    for _ in range(STEPS):
        z = data.margins(u)
        value = float(factors @ each_loss(loss, z, data.y))
        if not value < least:
            if not np.abs(step).max(initial=0.0) > 1e-14 * np.abs(best_u).max(initial=1e-300):
                break
            step = 0.5 * step
            u = best_u + step
            continue
        least, best_u = value, u
        curvature, slope = each_curvature(loss, z), each_slope(loss, z, data.y)
        gram, gradient = data.moments(factors * curvature, factors * slope)
        direction, rank = solved(gram * np.outer(shrink, shrink), shrink * gradient)
        step = -shrink * direction
        dual = slope + curvature * data.margins(step)
        lower = max(lower, -float((factors[on] * conjugate(dual, data.y)[on]).sum()))
        if least - lower <= NEAR * least:
            break
        u = best_u + step
    gap = max(0.0, least - lower) if rank == np.count_nonzero(shrink) else math.inf
    return FixedPredictor(best_u, least, gap, words(loss, data, on, best_u, least, lower, rank))


def conjugate_of(loss: Any) -> Any:
    """phi*(r) for each r and y; infinite where r is no slope; None for losses that have none here."""
    if loss.quadratic:
        return lambda r, y: r * r / (2.0 * loss.scale) + r * y
    if loss.link == "logistic" and loss.targets == "unit":

        def conjugate(r: Floats, y: Floats) -> Any:
            p = r / loss.scale + y
            inside = (p >= 0.0) & (p <= 1.0)
            p = np.clip(p, 0.0, 1.0)
            return np.where(inside, loss.scale * (xlogy(p, p) + xlogy(1.0 - p, 1.0 - p)), math.inf)

        return conjugate
    return None


def solved(H: Floats, g: Floats) -> tuple[Floats, int]:
    """The shortest v that solves H v = g where H is not 0, and the rank of H."""
    values, vectors = np.linalg.eigh(H)
    seen = values > 8.0 * np.finfo(np.float64).eps * H.shape[0] * max(values.max(initial=0.0), 0.0)
    inner = vectors.T @ g
    return vectors[:, seen] @ (inner[seen] / values[seen]), int(seen.sum())


def words(loss: Any, data: Data, on: Any, u: Floats, least: float, lower: float, rank: int) -> str:
    """How good the predictor is on the rows that count, in words."""
    sure = (np.abs(2.0 * data.y - 1.0) == 1.0) & ((2.0 * data.y - 1.0) * data.margins(u) > 0.0)
    if loss.link == "logistic" and bool(sure[on].all()):
        return "the rows are separable: 0 is approached, not attained"
    if least - lower <= NEAR * abs(least):
        return f"{'least squares' if loss.quadratic else 'the best'}, rank {rank} of {data.width}"
    if math.isfinite(lower):
        return f"within {100.0 * (least - lower) / least:.2g} % of the best"
    return "found"
