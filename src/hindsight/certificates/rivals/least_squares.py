"""The best fixed predictor of the square loss with few coordinates: least squares, of minimum norm where not unique.

    L(u) = scale/2 Sigma_t a_t (u . x_t - y_t)^2,    L(u) - min L = 1/2 g . H^-1 g,    g and H its derivatives

Columns are scaled to one size. From the Gram matrix where its condition allows that, else from the rows themselves if
they are few: columns that are collinear to 1e-8 are then still told apart. Along what is collinear to rounding the gap
is over a finite reach.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.floats import EPS
from .predictor import FAR, FixedPredictor, beyond, inverse, percent, target_size

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

SMALL = 4_000_000  # numbers in the rows up to which they are decomposed
CONDITION = 1e-9  # reciprocal condition number from which the Gram matrix is trusted
REFINED = 4  # solutions tried, each with the gradient of the last


def least_squares(data: Data, loss: Any, a: Floats) -> FixedPredictor:
    """The u that minimises the weighted square loss, of minimum norm, with its rank."""
    from scipy import linalg
    from scipy.linalg import lapack

    gram, cross = data.moments(a, a * data.y)
    weight = max(float(a.sum()), 1e-300)
    sizes = np.sqrt(np.maximum(np.diagonal(gram), 0.0) / weight)
    shrink = inverse(sizes)
    on = np.flatnonzero(shrink)
    S = gram[np.ix_(on, on)] * np.outer(shrink[on], shrink[on]) / weight
    b = cross[on] * shrink[on] / weight
    if on.size:
        try:
            factor = linalg.cho_factor(S, lower=True)
            trusted = float(lapack.dpocon(factor[0], np.abs(S).sum(axis=0).max(), uplo="L")[0]) >= CONDITION
        except linalg.LinAlgError:
            trusted = False
        if trusted:
            return _full_rank(data, loss, a, shrink, on, lambda v: linalg.cho_solve(factor, v), b)
    elif not on.size:
        return _of_zero_columns(data, loss, a)
    return _deficient(data, loss, a, shrink, on, S, b)


def _of_zero_columns(data: Data, loss: Any, a: Floats) -> FixedPredictor:
    value = 0.5 * loss.scale * float(a @ data.y**2)
    return FixedPredictor(np.zeros(data.width), value, 0.0, f"least squares, rank 0 of {data.width}")


def _value(data: Data, loss: Any, a: Floats, u: Floats) -> tuple[float, Floats, float]:
    """L(u), Sigma a (z - y) x, and what rounding may have changed L by."""
    z, half = data.residual_gradient(u, a)
    miss = z - data.y
    value = 0.5 * loss.scale * float((a * miss) @ miss)
    size = float((a * np.abs(miss)) @ (np.abs(z) + np.abs(data.y)))
    return value, half, loss.scale * 8.0 * EPS * size


def _full_rank(data: Data, loss: Any, a: Floats, shrink: Floats, on: Any, solve: Any, b: Floats) -> FixedPredictor:
    weight = max(float(a.sum()), 1e-300)
    u, best = np.zeros(data.width), None
    u[on] = shrink[on] * solve(b)
    for _ in range(REFINED):
        value, half, rounding = _value(data, loss, a, u)
        g = half[on] * shrink[on] / weight
        step = solve(g)
        gap = min(value, 0.505 * loss.scale * weight * max(0.0, float(g @ step)) + rounding)
        if best is None or value < best.loss:
            best = FixedPredictor(u, value, gap, "")
        if gap <= 1e-12 * value or gap <= 4.0 * rounding:
            break
        u = u.copy()
        u[on] -= shrink[on] * step
    assert best is not None
    rank = f"rank {on.size} of {data.width}"
    return best._replace(how=_words(best, rank))


def _deficient(data: Data, loss: Any, a: Floats, shrink: Floats, on: Any, S: Floats, b: Floats) -> FixedPredictor:
    """The same in singular vectors, of the rows if they are few."""
    weight = max(float(a.sum()), 1e-300)
    values, V, inner = _spectrum(data, a, shrink, on, S, b)
    seen = values > 0.0
    V, values, inner = V[:, seen], values[seen], inner[seen]
    whole = V.shape[1] == on.size
    u, best = np.zeros(data.width), None
    u[on] = shrink[on] * (V @ (inner / values))
    if not whole:
        u = _shortest(u, on, shrink, V)
    reach = math.inf if whole else FAR * target_size(data, a, loss)
    for _ in range(REFINED):
        value, half, rounding = _value(data, loss, a, u)
        g = half[on] * shrink[on] / weight
        along = V.T @ g
        rest = 0.0 if whole else float(np.linalg.norm(g - V @ along)) + 16.0 * EPS * math.sqrt(on.size * value / weight)
        gap = 0.505 * loss.scale * weight * float((along**2 / values).sum()) + rounding
        far = reach + float(np.linalg.norm(u[on] / shrink[on])) if not whole else 0.0
        gap = min(value, gap + loss.scale * weight * rest * far)
        if best is None or value < best.loss:
            best = FixedPredictor(u, value, gap, "", reach)
        if gap <= 1e-12 * value or gap <= 4.0 * rounding:
            break
        u = u.copy()
        u[on] -= shrink[on] * (V @ (along / values))
    assert best is not None
    rank = f"{'' if whole else 'of minimum norm, '}rank {V.shape[1]} of {data.width}"
    best = best._replace(reach=math.inf) if best.gap == best.loss else best
    return best._replace(how=_words(best, rank))


def _spectrum(data: Data, a: Floats, shrink: Floats, on: Any, S: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Eigenvalues of the scaled Gram matrix, 0 where they are rounding, its eigenvectors, and the coordinates of b."""
    weight = max(float(a.sum()), 1e-300)
    if data.rounds * data.width > SMALL:
        values, V = np.linalg.eigh(S)
        values = np.where(values > 8.0 * EPS * on.size * values.max(), values, 0.0)
        return values, V, V.T @ b
    root = np.sqrt(a / weight)
    A = data.matrix()[:, on] * shrink[on] * root[:, None]
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    s = np.where(s > 8.0 * EPS * max(A.shape) * s.max(initial=0.0), s, 0.0)
    return s**2, Vt.T, s * (U.T @ (root * data.y))


def _shortest(u: Floats, on: Any, shrink: Floats, V: Floats) -> Floats:
    """The shortest u with the same margins: its part along the rows, which D V spans."""
    Q, _ = np.linalg.qr(V / shrink[on][:, None])
    out = u.copy()
    out[on] = Q @ (Q.T @ u[on])
    return out


def _words(best: FixedPredictor, rank: str) -> str:
    """Least squares, and how near."""
    told = percent(best.gap, best.loss) if best.loss > 0.0 else "the best"
    near = "" if told == "the best" or best.gap >= best.loss else f", {told}"
    return f"least squares, {rank}{near}{beyond(best.reach)}"
