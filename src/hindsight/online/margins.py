"""Losses, slopes, curvatures and predictions of arrays of margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compiler import for_parts
from ..kernels.online import curvatures, losses, means, slopes
from ..rows.spread import per_row


@per_row
def each_loss(loss: Any, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The loss of every margin."""
    out = np.empty(z.size)
    for_parts(losses, loss)(loss, z, y, out)
    return out


@per_row
def each_slope(loss: Any, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The slope of the loss at every margin."""
    out = np.empty(z.size)
    for_parts(slopes, loss)(loss, z, y, out)
    return out


@per_row
def each_curvature(loss: Any, z: np.ndarray) -> np.ndarray:
    """The second derivative of the loss at every margin."""
    out = np.empty(z.size)
    for_parts(curvatures, loss)(loss, z, out)
    return out


@per_row
def each_mean(loss: Any, z: np.ndarray) -> np.ndarray:
    """The prediction of every margin through the link of the loss."""
    z = np.ascontiguousarray(z, np.float64)
    out = np.empty(z.size)
    for_parts(means, loss)(loss, z, out)
    return out
