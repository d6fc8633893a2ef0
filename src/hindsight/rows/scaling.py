"""Scaling of rows before they are played: each row by its norm, or columns by statistics from an earlier pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compiler import kernel
from ..storage.fields import is_finite, is_number, is_vector
from ..storage.registry import want

# kind: whether it needs a pass over the rows first
SCALES = {"none": False, "row-unit": False, "global-unit": True, "max-abs": True, "standard": True}


def norms(X: Any) -> np.ndarray:
    """Return |x|_2 of each row, computed from the row alone."""
    if isinstance(X, np.ndarray):
        return np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    squares = np.asarray(X.data, np.float64) ** 2
    sums = np.add.reduceat(np.append(squares, 0.0), X.indptr[:-1]) if X.shape[0] else np.zeros(0)
    return np.sqrt(np.where(np.diff(X.indptr) > 0, sums, 0.0))


@kernel  # type: ignore[untyped-decorator]
def spread(X: Any, c: Any, s: Any) -> None:
    """Add rows of weights c to s, row by row: the total weight, mean and sum of squared deviations of each column."""
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            s[0, j] += c[t]
            deviation = X[t, j] - s[1, j]
            s[1, j] += deviation * (c[t] / s[0, j])
            s[2, j] += c[t] * deviation * (X[t, j] - s[1, j])


class Measure:
    """Norms of rows, and ranges or deviations of columns, accumulated chunk by chunk."""

    def __init__(self) -> None:
        self.norm = 0.0
        self.top, self.spread = (
            np.zeros(0),
            np.zeros((3, 0)),
        )  # per column: largest |x|; weight, mean, squared deviations

    def add(self, X: Any, kind: str) -> None:
        """Add rows."""
        m, n = X.shape
        if m == 0:
            return
        if n > self.top.size:
            self.top = np.concatenate([self.top, np.zeros(n - self.top.size)])
        if kind == "global-unit":
            self.norm = max(self.norm, float(norms(X).max()))
        elif kind == "max-abs":
            if isinstance(X, np.ndarray):
                np.maximum(self.top, np.abs(X).max(axis=0), out=self.top)
            else:
                np.maximum.at(self.top, X.indices, np.abs(X.data))
        else:
            if not isinstance(X, np.ndarray):
                raise ValueError("sparse rows cannot be scaled by 'standard': a shift would fill them; take max-abs")
            if not self.spread.size:
                self.spread = np.zeros((3, n))
            spread(X, np.ones(m), self.spread)

    def join(self, other: Measure) -> None:
        """Add the measurements of other rows of the same columns."""
        n = max(self.top.size, other.top.size)
        top, more = (np.concatenate([each.top, np.zeros(n - each.top.size)]) for each in (self, other))
        self.norm, self.top = max(self.norm, other.norm), np.maximum(top, more)
        if not self.spread.size or not other.spread.size:
            self.spread = self.spread if self.spread.size else other.spread
            return
        (a, mean, squares), (b, later, more) = self.spread, other.spread
        apart = later - mean
        self.spread = np.array([a + b, mean + apart * b / (a + b), squares + more + apart**2 * a * b / (a + b)])

    def scale(self, kind: str) -> dict[str, Any]:
        """Return the scale for `scaled`; a column that is all zeros or constant is not divided."""
        if kind == "global-unit":
            return {"kind": kind, "by": self.norm or 1.0}
        if kind == "max-abs":
            return {"kind": kind, "by": np.where(self.top > 0.0, self.top, 1.0)}
        deviation = np.sqrt(self.spread[2] / np.maximum(1.0, self.spread[0]))
        return {"kind": kind, "by": np.where(deviation > 0.0, deviation, 1.0), "shift": self.spread[1].copy()}


def check_scale(scale: Any, features: int) -> None:
    """Refuse a scale from a file that `scaled` cannot use for this number of features."""
    if scale is None:
        return
    kind = scale.get("kind") if isinstance(scale, dict) else None
    want(isinstance(kind, str) and kind in SCALES, f"a scale must be one of {', '.join(SCALES)}")
    if not SCALES[scale["kind"]]:
        return
    by, shift = scale.get("by"), scale.get("shift")
    columns = is_vector(by) and by.size >= features
    want(columns or is_number(by), f"a scale must be one number, or one for each of {features} features")
    want(is_finite(by) and bool(np.all(by > 0.0)), "a scale must be above 0")
    shifts = is_vector(shift) and shift.size >= features and is_finite(shift)
    want(shift is None or shifts, f"a shift must be one number for each of {features} features")


def scaled(X: Any, scale: dict[str, Any] | None) -> Any:
    """Return the scaled rows: "row-unit" divides each by its norm unless it is 0, others give (x - shift) / by."""
    if not scale or scale["kind"] == "none":
        return X
    sparse = not isinstance(X, np.ndarray)
    values = np.asarray(X.data if sparse else X, np.float64)
    if scale["kind"] == "row-unit":
        by = norms(X)
        by[by == 0.0] = 1.0
        values = values / (np.repeat(by, np.diff(X.indptr)) if sparse else by[:, None])
    else:
        if scale.get("shift") is not None:
            if sparse:
                raise ValueError(f"sparse rows cannot be scaled by {scale['kind']!r}: a shift would fill them")
            values = values - scale["shift"]
        by = np.asarray(scale["by"], np.float64)
        values = values / (by[X.indices] if sparse and by.ndim else by)
    return type(X)((values, X.indices, X.indptr), X.shape) if sparse else values
