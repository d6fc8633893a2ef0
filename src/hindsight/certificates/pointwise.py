"""A loss at many margins: its values, its slopes, and the means they predict."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compiler import for_parts
from ..kernels.floats import Floats
from ..kernels.online import losses, means, slopes


def each_loss(loss: Any, z: Floats, y: Floats) -> Floats:
    """Return the loss at each margin."""
    out = np.empty(z.size)
    for_parts(losses, loss)(loss, z, y, out)
    return out


def each_slope(loss: Any, z: Floats, y: Floats) -> Floats:
    """Return the slope of the loss at each margin."""
    out = np.empty(z.size)
    for_parts(slopes, loss)(loss, z, y, out)
    return out


def each_mean(loss: Any, z: Floats) -> Floats:
    """Return what each margin predicts."""
    out = np.empty(z.size)
    for_parts(means, loss)(loss, z, out)
    return out
