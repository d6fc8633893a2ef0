"""The rival of a bound whose divergence has a factor of its own for every coordinate.

    F(u) = Sigma_t a_t phi(u . x_t, y_t) + 1/2 Sigma_i m_i (u_i - w_i)^2

With columns divided by sqrt(m) this is the rival of the Euclidean geometry. A coordinate of the factor 0 is one that no
row has: there u = w.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ...kernels.euclidean import Euclidean
from ...kernels.floats import Floats
from ...kernels.rows import CSR
from ...rows.data import Data
from .loss import Rival, best, fixed


def best_in_metric(data: Data, loss: Any, metric: Floats, factors: Floats, start: Floats, tol: float) -> Rival:
    """Return the u that minimises F, up to a relative gap; its divergence is 1/2 Sigma m (u - w)^2."""
    with np.errstate(divide="ignore"):
        shrink = np.where(metric > 0.0, 1.0 / np.sqrt(metric), 0.0)
    n = data.width - (1 if data.bias != 0.0 else 0)
    shift = data.margins(start)  # the rival is sought as a difference from the start, which the metric measures

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
    if loss.quadratic:
        scaled = Data.from_chunks(lambda: ((X, y, c) for X, y, c in _moved(chunks(), shift)), bias)
        found = best(scaled, loss, Euclidean(1.0), 1.0, factors, None, tol)
        u = _unscaled(found.u, shrink, data, bias) + start
    else:
        scaled = Data.from_chunks(chunks, bias)
        inner = np.zeros(scaled.width)
        found = best(scaled, loss, Euclidean(1.0), 1.0, factors, inner, tol)
        u = _unscaled(found.u, shrink, data, bias) + start
    given = fixed(data, loss, Euclidean(1.0), u, 0.0, factors)
    half = 0.5 * float(metric @ (u - start) ** 2)
    return Rival(u, given.loss, half, given.objective + half, found.gap, found.passes, found.notes)


def _moved(chunks: Any, shift: Floats) -> Any:
    """The same rows with what the start predicts taken from the targets."""
    first = 0
    for X, y, c in chunks:
        yield X, y - shift[first : first + len(y)], c
        first += len(y)


def _unscaled(v: Floats, shrink: Floats, data: Data, bias: float) -> Floats:
    """The rival in the units of the columns."""
    u = np.zeros(data.width)
    if data.bias != 0.0 and bias == 0.0:  # the scaled rows have no intercept
        u[:-1] = v * shrink[:-1]
    else:
        u[:] = v * shrink
    return u
