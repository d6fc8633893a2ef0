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
SAFE = 0.1  # of an estimated reciprocal condition, which may be too large
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
            norm = float(np.abs(S).sum(axis=0).max())
            condition = float(lapack.dpocon(factor[0], norm, uplo="L")[0])
            trusted = condition >= CONDITION
        except linalg.LinAlgError:
            trusted = False
        if trusted:
            least = SAFE * condition * norm
            return _full_rank(data, loss, a, shrink, on, lambda v: linalg.cho_solve(factor, v), b, least)
    elif not on.size:
        return _of_zero_columns(data, loss, a)
    return _deficient(data, loss, a, shrink, on, S, b)


def _of_zero_columns(data: Data, loss: Any, a: Floats) -> FixedPredictor:
    value = 0.5 * loss.scale * float(a @ data.y**2)
    return FixedPredictor(np.zeros(data.width), value, 0.0, f"least squares, rank 0 of {data.width}")


def _value(data: Data, loss: Any, a: Floats, u: Floats, terms: float) -> tuple[float, Floats, float, float]:
    """L(u), Sigma a (z - y) x, what rounding may have changed L by, and each entry of the gradient on unit columns.

    `terms` is Sigma_i |u_i| D_i, at least the root mean square of what the terms of the margins add up to: so much of
    them may cancel, and z is off by some EPS of it.
    """
    z, half = data.residual_gradient(u, a)
    miss, weight = z - data.y, max(float(a.sum()), 1e-300)
    square = float((a * miss) @ miss)
    off = (8.0 + data.width) * EPS * (terms + math.sqrt(float(a @ data.y**2) / weight))
    mean = math.sqrt(square / weight)
    rounding = loss.scale * weight * (mean * off + 0.5 * off * off + 32.0 * EPS * mean * mean)
    return 0.5 * loss.scale * square, half, rounding, off + 64.0 * EPS * mean


def _full_rank(
    data: Data, loss: Any, a: Floats, shrink: Floats, on: Any, solve: Any, b: Floats, least: float
) -> FixedPredictor:
    """From the Gram matrix, whose eigenvalues are at least `least`."""
    weight = max(float(a.sum()), 1e-300)
    u, best = np.zeros(data.width), None
    u[on] = shrink[on] * solve(b)
    for _ in range(REFINED):
        value, half, rounding, off = _value(data, loss, a, u, float(np.abs(u[on] / shrink[on]).sum()))
        g = half[on] * shrink[on] / weight
        step = solve(g)
        size = math.sqrt(max(0.0, float(g @ step))) + math.sqrt(on.size / least) * off
        gap = min(value, 0.505 * loss.scale * weight * size * size + rounding)
        if best is None or value < best.loss:
            best = FixedPredictor(u, value, gap, "")
        if gap <= 1e-12 * value or gap <= 4.0 * rounding:
            break
        u = u.copy()
        u[on] -= shrink[on] * step
    assert best is not None
    rank = f"rank {on.size} of {data.width}"
    return best._replace(how=_words(best, rank, _is_exact(best, data, a)))


def _deficient(data: Data, loss: Any, a: Floats, shrink: Floats, on: Any, S: Floats, b: Floats) -> FixedPredictor:
    """The same in singular vectors, of the rows if they are few."""
    weight = max(float(a.sum()), 1e-300)
    values, V, inner, doubt = _spectrum(data, a, shrink, on, S, b)
    seen = values > 0.0
    V, values, inner = V[:, seen], values[seen], inner[seen]
    whole = V.shape[1] == on.size
    u, best = np.zeros(data.width), None
    u[on] = shrink[on] * (V @ (inner / values))
    if not whole:
        u = _shortest(u, on, shrink, V)
    reach = math.inf if whole else FAR * target_size(data, a, loss)
    for _ in range(REFINED):
        value, half, rounding, off = _value(data, loss, a, u, float(np.abs(u[on] / shrink[on]).sum()))
        g, off = half[on] * shrink[on] / weight, math.sqrt(on.size) * off
        along = V.T @ g
        rest = 0.0 if whole else float(np.linalg.norm(g - V @ along)) + off
        size = math.sqrt(float((along**2 / values).sum())) + off / math.sqrt(values.min(initial=math.inf))
        gap = 0.5 * doubt * loss.scale * weight * size * size + rounding
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
    return best._replace(how=_words(best, rank, _is_exact(best, data, a)))


def _is_exact(best: FixedPredictor, data: Data, a: Floats) -> bool:
    """Whether all targets are met but for rounding."""
    return best.loss <= 1e-20 * float(a @ data.y**2)


def _spectrum(
    data: Data, a: Floats, shrink: Floats, on: Any, S: Floats, b: Floats
) -> tuple[Floats, Floats, Floats, float]:
    """Eigenvalues of the scaled Gram matrix, 0 where they are rounding, its eigenvectors, and the coordinates of b.

    The last is a factor by which the inverse may be larger than these make it: they are exact for a matrix that differs
    by half of what an eigenvalue must have to be kept, at most.
    """
    weight = max(float(a.sum()), 1e-300)
    if data.rounds * data.width > SMALL:
        values, V = np.linalg.eigh(S)
        noise = 4.0 * EPS * max(on.size, 64) * values.max()  # of the products, and of the decomposition
        values = np.where(values > 2.0 * noise, values, 0.0)
        least = values[values > 0.0].min(initial=math.inf)
        return values, V, V.T @ b, 1.0 / (1.0 - noise / least)
    root = np.sqrt(a / weight)
    A = data.matrix()[:, on] * shrink[on] * root[:, None]
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    noise = 4.0 * EPS * max(A.shape) * s.max(initial=0.0)
    s = np.where(s > 2.0 * noise, s, 0.0)
    least = s[s > 0.0].min(initial=math.inf)
    return s**2, Vt.T, s * (U.T @ (root * data.y)), 1.0 / (1.0 - noise / least) ** 2


def _shortest(u: Floats, on: Any, shrink: Floats, V: Floats) -> Floats:
    """The shortest u with the same margins: its part along the rows, which D V spans."""
    Q, _ = np.linalg.qr(V / shrink[on][:, None])
    out = u.copy()
    out[on] = Q @ (Q.T @ u[on])
    return out


def _words(best: FixedPredictor, rank: str, exact: bool) -> str:
    """Least squares, and how near."""
    told = percent(best.gap, best.loss) if best.loss > 0.0 else "the best"
    near = "" if told == "the best" else f", {told}"
    if best.gap >= best.loss:  # an exact fit but for rounding, or columns too alike to say
        near = "" if exact else ", how near the best cannot be told"
    return f"least squares, {rank}{near}{beyond(best.reach)}"
