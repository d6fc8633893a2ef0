"""How far the values of each column spread: by it weights are compared, since a weight times it moves a prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

WHOLE = 1024  # rows of which none is left out; then some 500 of twice as many as before


class ColumnSpread:
    """The standard deviation of each column, from some of the rows: the same ones however they come in chunks.

    Of rows that are numbered from 1024 on, every third is taken, from 2048 on every fifth, then every ninth, and so on;
    each stands for those that were left out.
    """

    def __init__(self) -> None:
        self.weight = 0.0
        self.sums, self.squares, self.origin = np.zeros(0), np.zeros(0), np.zeros(0)

    def add(self, first: int, X: Any) -> None:
        """Add the rows of an array or a CSR matrix, of which the first has the number `first`, from 0 on."""
        m, at = X.shape[0], first
        while at < first + m:
            level = max(0, (at // WHOLE).bit_length())
            end, step = min(first + m, WHOLE << level), (1 << level) + (level > 0)
            start = -(-at // step) * step
            if start < end:
                self._add(X[start - first : end - first : step], float(step))
            at = end

    def _add(self, X: Any, stands_for: float) -> None:
        sparse = hasattr(X, "tocsr")
        if not sparse:
            X = np.asarray(X, np.float64)
        grown = X.shape[1] - self.sums.size
        if grown > 0:
            self.sums, self.squares, self.origin = (
                np.concatenate([each, np.zeros(grown)]) for each in (self.sums, self.squares, self.origin)
            )
            if not sparse and self.weight == 0.0:
                self.origin = X[0].copy()  # of dates, say, only the differences count
        if sparse:
            X, n = X.tocsr(), X.shape[1]
            values = X.data.astype(np.float64)
            total, squares = (np.bincount(X.indices, each, n) for each in (values, values**2))
        else:
            off = X - self.origin[: X.shape[1]]
            total, squares = off.sum(axis=0), np.einsum("ij,ij->j", off, off)
        self.sums[: total.size] += stands_for * total
        self.squares[: total.size] += stands_for * squares
        self.weight += stands_for * X.shape[0]

    @property
    def deviations(self) -> np.ndarray:
        """The standard deviation of each column."""
        mean = self.sums / (self.weight or 1.0)
        return np.sqrt(np.maximum(self.squares / (self.weight or 1.0) - mean**2, 0.0))
