"""Sums over all rows that tell what every fixed predictor loses in squares: of c x x', c x y and c y^2."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST = 256  # features up to which the sums are kept
TOGETHER = 4096  # rows that are added at a time, while they are in the cache


class Gram:
    """The sums of c z z' over rows z = (x, 1, y), or without the 1.

    Parameters
    ----------
    intercept : bool
        Whether a constant coordinate 1 joins every row.

    Attributes
    ----------
    sums : ndarray
        The sums, the features first, then the constant, then the target.
    """

    def __init__(self, intercept: bool) -> None:
        self.intercept = intercept
        self.sums = np.zeros((1 + intercept, 1 + intercept))

    def add(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> bool:
        """Add rows; False where there are too many features for it."""
        n, width = X.shape
        if width > MOST:
            return False
        more = width - (len(self.sums) - 1 - self.intercept)
        if more > 0:
            self._grow(more)
        c = np.ones(n) if weight is None else weight
        step = n if hasattr(X, "tocsr") else TOGETHER
        for a in range(0, n, step):
            b = a + step
            self._add(X if step == n else X[a:b], y[a:b], c[a:b], weight is None)
        return True

    def _add(self, X: Any, y: np.ndarray, c: np.ndarray, plain: bool) -> None:
        width = X.shape[1]
        scaled = X if plain else (X.multiply(c[:, None]).tocsr() if hasattr(X, "tocsr") else X * c[:, None])
        inner, cy = X.T @ scaled, c * y
        cross = [X.T @ c, X.T @ cy][1 - self.intercept :]
        ends = [c.sum(), cy.sum(), cy @ y]
        sums, at = self.sums, len(self.sums) - len(cross)
        sums[:width, :width] += inner.toarray() if hasattr(inner, "toarray") else inner
        for k, each in enumerate(cross, at):
            sums[:width, k] += each
            sums[k, :width] += each
        sums[at:, at:] += np.array([ends[:2], ends[1:]]) if self.intercept else ends[2]

    def _grow(self, more: int) -> None:
        """Room for more features, all zero so far."""
        size, ends = len(self.sums), 1 + self.intercept
        old = np.r_[: size - ends, size - ends + more : size + more]
        sums = np.zeros((size + more, size + more))
        sums[np.ix_(old, old)] = self.sums
        self.sums = sums
