"""Losses, slopes, curvatures and predictions of arrays of margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compiler import for_parts
from ..kernels.online import curvatures, losses, means, slopes
from ..rows.spread import per_row


def _each(kernel: Any, loss: Any, z: np.ndarray, *targets: np.ndarray) -> np.ndarray:
    """What a kernel says of every margin."""
    out = np.empty(z.size)
    for_parts(kernel, loss)(loss, z, *targets, out)
    return out


@per_row
def each_loss(loss: Any, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The loss of every margin."""
    return _each(losses, loss, z, y)


@per_row
def each_slope(loss: Any, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The slope of the loss at every margin."""
    return _each(slopes, loss, z, y)


@per_row
def each_curvature(loss: Any, z: np.ndarray) -> np.ndarray:
    """The second derivative of the loss at every margin."""
    return _each(curvatures, loss, z)


@per_row
def each_mean(loss: Any, z: np.ndarray) -> np.ndarray:
    """The prediction of every margin through the link of the loss."""
    return _each(means, loss, np.ascontiguousarray(z, np.float64))
