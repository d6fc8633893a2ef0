"""The comparator of a bound whose divergence has a factor of its own for every coordinate.

    F(u) = Sigma_t a_t phi(u . x_t, y_t) + 1/2 Sigma_i m_i (u_i - w_i)^2

With columns divided by sqrt(m) this is the comparator of the Euclidean geometry. A coordinate of the factor 0 is one
that no row has: there u = w.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ...kernels.euclidean import Euclidean
from ...kernels.floats import Floats
from ...kernels.rows import CSR
from ...online.margins import each_curvature, each_loss, each_slope
from ...rows.data import Data
from .comparator import LossComparator, best, fixed

SQUARE = 600  # coordinates up to which Newton's method takes the second derivatives of a smooth loss
STEPS = 60  # of Newton's method at most


def best_in_metric(data: Data, loss: Any, metric: Floats, factors: Floats, start: Floats, tol: float) -> LossComparator:
    """Return the u that minimises F, up to a relative gap; its divergence is 1/2 Sigma m (u - w)^2."""
    with np.errstate(divide="ignore"):
        shrink = np.where(metric > 0.0, 1.0 / np.sqrt(metric), 0.0)
    if hasattr(loss, "curvature") and data.width <= SQUARE:
        return by_newton(data, loss, metric, shrink, factors, start, tol)
    n = data.width - (1 if data.bias != 0.0 else 0)
    shift = data.margins(start)

    def chunks() -> Any:
        for first, rows, count in data.blocks():
            part = slice(first, first + count)
            if isinstance(rows, CSR):
                indices = rows.indices.astype(np.int64)
                indptr = rows.indptr.astype(np.int64)
                X: Any = csr_matrix((rows.data * shrink[indices], indices, indptr), shape=(count, n))
            else:
                X = rows.values * shrink[:n]
            yield X, data.y[part], data.c[part]

    bias = float(data.bias * shrink[-1]) if data.bias != 0.0 else 0.0
    moves = loss.targets == "real"  # then the comparator is sought as a difference from the start
    scaled = Data.from_chunks(lambda: _moved(chunks(), shift) if moves else chunks(), bias)
    found = best(scaled, loss, Euclidean(1.0), 1.0, factors, None, tol)
    u = _unscaled(found.u, shrink, data, bias) + start
    given = fixed(data, loss, Euclidean(1.0), u, 0.0, factors)
    half = 0.5 * float(metric @ (u - start) ** 2)
    return LossComparator(u, given.loss, half, given.objective + half, found.gap, found.passes, found.notes)


def by_newton(
    data: Data, loss: Any, metric: Floats, shrink: Floats, factors: Floats, start: Floats, tol: float
) -> LossComparator:
    """The same by Newton's method on a smooth loss, with steps halved until F falls.

    In units of 1/sqrt(m) F rises at least as fast as half a squared distance, so that F - min F is at most half the
    squared length of its gradient there.
    """
    from scipy.linalg import cho_factor, cho_solve

    begun, u, best_u = data.passes, start.copy(), start
    least, gap, notes = np.inf, np.inf, ()
    step = np.zeros(u.size)
    for _ in range(STEPS):
        z = data.margins(u)
        value = float(factors @ each_loss(loss, z, data.y)) + 0.5 * float(metric @ (u - start) ** 2)
        if not value < least:
            if np.abs(step * np.sqrt(metric)).max(initial=0.0) <= 1e-12 * np.sqrt(abs(least) + 1e-300):
                break
            step = 0.5 * step
            u = best_u + step
            continue
        least, best_u = value, u.copy()
        gram, slope = data.moments(factors * each_curvature(loss, z), factors * each_slope(loss, z, data.y))
        g = shrink * (slope + metric * (u - start))
        gap = 0.5 * float(g @ g)
        if gap <= min(tol, 1e-6) * max(least, 1e-300):
            break
        H = gram * np.outer(shrink, shrink)
        H[np.diag_indices(u.size)] += 1.0
        step = -shrink * cho_solve(cho_factor(H, lower=True), g)
        u = best_u + step
    given = fixed(data, loss, Euclidean(1.0), best_u, 0.0, factors)
    half = 0.5 * float(metric @ (best_u - start) ** 2)
    return LossComparator(best_u, given.loss, half, given.objective + half, gap, data.passes - begun, notes)


def _moved(chunks: Any, shift: Floats) -> Any:
    """The same rows with what the start predicts taken from the targets."""
    first = 0
    for X, y, c in chunks:
        yield X, y - shift[first : first + len(y)], c
        first += len(y)


def _unscaled(v: Floats, shrink: Floats, data: Data, bias: float) -> Floats:
    """The comparator in the units of the columns."""
    u = np.zeros(data.width)
    if data.bias != 0.0 and bias == 0.0:  # the scaled rows have no intercept
        u[:-1] = v * shrink[:-1]
    else:
        u[:] = v * shrink
    return u
