"""Streams to compare learners on: those of scikit-learn, generated ones, and every one in a folder.

A folder of streams holds one ``.npz`` file per stream, named after it: the rows, without an intercept and in the order
in which they are played, as the arrays ``data``, ``indices``, ``indptr`` and ``shape`` of a CSR matrix; ``y``, one
target per row; and ``kind``, "c" where the targets are labels -1 and 1, or "r" where they are numbers.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

WIDE = 128  # columns above which rows stay sparse
ROWS, COLUMNS = 5000, 20  # of a generated stream
SPARSE = 5000  # columns of the sparse ones, of which COLUMNS are not 0 in a row


@dataclass(frozen=True)
class Stream:
    """Rows and targets in the order played; labels are -1 and 1."""

    name: str
    X: np.ndarray | sp.csr_matrix
    y: np.ndarray
    labels: bool

    def same(self, other: Stream) -> bool:
        """Whether another stream has the same rows and targets."""
        if self.X.shape != other.X.shape or sp.issparse(self.X) != sp.issparse(other.X):
            return False
        return np.array_equal(self.y, other.y) and not (self.X != other.X).sum()

    def loss(self, margins: np.ndarray) -> float:
        """The sum of the losses of predictions; infinity where one is not a number."""
        with np.errstate(all="ignore"):
            each = np.logaddexp(0.0, -self.y * margins) if self.labels else ((self.y - margins) ** 2)[1:]
        return float(each.sum()) if np.isfinite(each).all() else math.inf

    def scaled(self, factors: np.ndarray) -> Stream:
        """The same stream with each column in other units."""
        X = (self.X @ sp.diags(factors)).tocsr() if sp.issparse(self.X) else self.X * factors
        return Stream(self.name, X, self.y, self.labels)


def from_scikit_learn() -> list[Stream]:
    """In the order of their files, but for wine, whose file is sorted by class."""
    X, y = load_breast_cancer(return_X_y=True)
    breast = Stream("breast", X, np.where(y > 0, 1.0, -1.0), True)
    X, y = load_digits(return_X_y=True)
    digits = Stream("digits_odd", X, np.where(y % 2 > 0, 1.0, -1.0), True)
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    wines = [Stream(f"wine_{k}", X[order], np.where(y[order] == k, 1.0, -1.0), True) for k in range(3)]
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return [breast, digits, *wines, Stream("diabetes", X, y, False)]


def generated(rows: int = ROWS) -> list[Stream]:
    """Each kind of stream once with numbers and once with labels."""
    streams = []
    for name, make in GENERATORS.items():
        for labels in (False, True):
            X, y = make(np.random.default_rng(0), rows, labels)
            streams.append(Stream(f"{name}_{'labels' if labels else 'numbers'}", X, y, labels))
    return streams


def targets(rng: np.random.Generator, signal: np.ndarray, labels: bool) -> np.ndarray:
    """Labels by chance, logistic in three times the standardised signal; or it with noise of half its size."""
    if not labels:
        return signal + signal.std() * (1.0 + 0.5 * rng.standard_normal(signal.size))
    chance = 1.0 / (1.0 + np.exp(-3.0 * (signal - signal.mean()) / signal.std()))
    return np.where(rng.random(signal.size) < chance, 1.0, -1.0)


def dense(rng: np.random.Generator, rows: int, labels: bool) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian columns."""
    X = rng.standard_normal((rows, COLUMNS))
    return X, targets(rng, X @ rng.standard_normal(COLUMNS), labels)


def sparse(rng: np.random.Generator, rows: int, labels: bool) -> tuple[sp.csr_matrix, np.ndarray]:
    """Few columns of many in a row, some often and most seldom, as words are."""
    often = 1.0 / (np.arange(SPARSE) + 10.0)
    columns = np.array([rng.choice(SPARSE, COLUMNS, replace=False, p=often / often.sum()) for _ in range(rows)])
    values = rng.exponential(size=columns.size)
    X = sp.csr_matrix((values, columns.ravel(), np.arange(rows + 1) * COLUMNS), shape=(rows, SPARSE))
    X.sort_indices()
    return X, targets(rng, X @ rng.standard_normal(SPARSE), labels)


def drifting(rng: np.random.Generator, rows: int, labels: bool) -> tuple[np.ndarray, np.ndarray]:
    """The weights turn once around a circle."""
    X = rng.standard_normal((rows, COLUMNS))
    a, b = np.linalg.qr(rng.standard_normal((COLUMNS, 2)))[0].T
    turn = 2.0 * np.pi * np.arange(rows) / rows
    return X, targets(rng, np.cos(turn) * (X @ a) + np.sin(turn) * (X @ b), labels)


def scales(rng: np.random.Generator, rows: int, labels: bool) -> tuple[np.ndarray, np.ndarray]:
    """Columns from 1e-6 to 1e6."""
    X, y = dense(rng, rows, labels)
    return X * np.logspace(-6, 6, COLUMNS), y


def heavy_tails(rng: np.random.Generator, rows: int, labels: bool) -> tuple[np.ndarray, np.ndarray]:
    """Columns and noise of Student's t with two degrees of freedom."""
    X = rng.standard_t(2, (rows, COLUMNS))
    y = X @ rng.standard_normal(COLUMNS) + 2.0 * rng.standard_t(2, rows)
    return X, np.where(y > 0.0, 1.0, -1.0) if labels else y


GENERATORS: dict[str, Callable[..., tuple[np.ndarray | sp.csr_matrix, np.ndarray]]] = {
    "dense": dense, "sparse": sparse, "drifting": drifting, "scales": scales, "heavy_tails": heavy_tails,
}  # fmt: skip


def in_folder(folder: Path) -> list[Stream]:
    """Every stream of a folder, by name."""
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise SystemExit(f"{folder}: no streams there (files .npz)")
    return [read(file) for file in files]


def read(file: Path) -> Stream:
    """One stream; a file that is none ends the run with one line."""
    try:
        with np.load(file, allow_pickle=False) as z:
            X = sp.csr_matrix((z["data"].astype(float), z["indices"], z["indptr"]), shape=tuple(z["shape"]))
            y, kind = z["y"].astype(float), str(z["kind"])
        X.check_format()
    except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise SystemExit(f"{file}: not a stream: {error}") from None
    if kind not in ("c", "r"):
        raise SystemExit(f"{file}: kind must be 'c' or 'r', got {kind!r}")
    if y.shape != (X.shape[0],) or y.size < 3:
        raise SystemExit(f"{file}: one target per row is needed, and three rows: {X.shape[0]} rows, y {y.shape}")
    for at in np.flatnonzero(~np.isfinite(X.data))[:1]:
        row = np.searchsorted(X.indptr, at, side="right") - 1
        raise SystemExit(f"{file}: row {row}, column {X.indices[at]}: value {X.data[at]} is not finite")
    for row in np.flatnonzero(~np.isfinite(y))[:1]:
        raise SystemExit(f"{file}: row {row}: target {y[row]} is not finite")
    if kind == "c" and set(np.unique(y)) != {-1.0, 1.0}:
        raise SystemExit(f"{file}: labels must be -1 and 1, both, got {np.unique(y)[:4].tolist()}")
    if kind == "r" and np.ptp(y[1:]) == 0.0:
        raise SystemExit(f"{file}: all targets are {y[1]} from row 1 on: a constant loses nothing")
    return Stream(file.stem, X if X.shape[1] > WIDE else X.toarray(), y, kind == "c")
