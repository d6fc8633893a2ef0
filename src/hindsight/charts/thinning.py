"""Curves of at most so many points, which keep their extremes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..kernels.floats import Floats

POINTS = 2000


def thinned(x: Floats, y: Floats, points: int = POINTS) -> Iterator[tuple[float, float]]:
    """Give the points of a curve; of a long one the first, lowest, highest and last of each of many pieces, in order.

    Examples
    --------
    >>> x = np.arange(10_000.0)
    >>> y = np.where(x == 777, 5.0, 0.0)
    >>> kept = list(thinned(x, y, 100))
    >>> len(kept) <= 100, (777.0, 5.0) in kept
    (True, True)
    """
    if len(x) <= points:
        return zip(x.tolist(), y.tolist(), strict=True)
    edges = np.linspace(0, len(x), points // 4 + 1).astype(int)
    keep = set()
    for a, b in pairwise(edges):
        piece = y[a:b]
        known = np.flatnonzero(np.isfinite(piece))
        keep |= {int(a), int(b) - 1}
        if known.size:
            keep |= {int(a + known[piece[known].argmin()]), int(a + known[piece[known].argmax()])}
    order = np.array(sorted(keep))
    return zip(x[order].tolist(), y[order].tolist(), strict=True)
