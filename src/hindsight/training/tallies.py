"""Sums over scored rows, from which the figures of an evaluation are computed.

Rows are added in blocks of a fixed size, so that sums do not depend on the chunks in which rows were read. All sums are
kept for each slice of the rows; slice 0 contains all rows.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ..rows.labels import encode_labels, numbers_of
from ..sources import label_text

BLOCK = 1 << 16  # rows that are added at a time
LISTED = 1000  # labels that the model does not know, counted one by one


class ScoredLabels(NamedTuple):
    """The predictions of a classifier, with one column per class (a single column of margins for two classes).

    Attributes
    ----------
    chosen : ndarray of int of shape (n_rows,)
        The index of the predicted class.
    margins : ndarray of shape (n_rows, n_runs)
        The score that ranks rows for each class; for two classes, one column with the score of the second.
    probabilities : ndarray of shape (n_rows, n_classes) or None
        The probability of each class; None if the model gives none.
    """

    chosen: np.ndarray
    margins: np.ndarray
    probabilities: np.ndarray | None


class Slices:
    """The values of a column, numbered from 1 in order of first appearance."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def codes(self, values: Any) -> np.ndarray:
        """The number of each value."""
        met, back = np.unique(np.asarray(values, str), return_inverse=True)
        numbers = [self.known.setdefault(text, len(self.known) + 1) for text in met.tolist()]
        return np.array(numbers, np.int64)[back]

    @property
    def values(self) -> list[str]:
        """The values in the order of their numbers."""
        return list(self.known)


class Kept:
    """Arrays of all rows, block by block."""

    def __init__(self) -> None:
        self.parts: list[tuple[np.ndarray, ...]] = []

    def add(self, *arrays: np.ndarray) -> None:
        """Keep a copy of these arrays."""
        self.parts.append(tuple(np.array(array) for array in arrays))

    def joined(self) -> list[np.ndarray]:
        """The concatenated arrays."""
        return [np.concatenate(each) for each in zip(*self.parts, strict=True)]


def sums(codes: np.ndarray, count: int, values: np.ndarray) -> np.ndarray:
    """The sum of the values in each slice; the first is that of all rows."""
    out = np.bincount(codes, values, count) if codes.any() else np.zeros(count)
    out[0] = values.sum()
    return out


def grown(array: np.ndarray, count: int) -> np.ndarray:
    """The array, padded with rows of zeros to at least `count` rows."""
    if count <= len(array):
        return array
    return np.concatenate([array, np.zeros((max(count, 2 * len(array)) - len(array), *array.shape[1:]), array.dtype)])


class CoverageTally:
    """The coverage and width of intervals, which are ranges of numbers or sets of labels.

    Parameters
    ----------
    asked : float
        The fraction of rows that they should cover.
    half : float
        Half the width of each, or the largest score at which a label is in the set.
    keep : bool
        Whether to keep the targets, for the best constant interval.
    """

    def __init__(self, asked: float, half: float, keep: bool) -> None:
        self.asked, self.half, self.kept = asked, half, Kept() if keep else None
        self.weight = self.covered = self.width = self.score = 0.0

    def add(self, y: np.ndarray, said: Any, weight: np.ndarray) -> None:
        """Add rows, given their targets (or the indices of their labels) and the predictions."""
        if isinstance(said, ScoredLabels):
            taken = 1.0 - np.asarray(said.probabilities) <= self.half
            self.covered += float(weight @ ((y >= 0) & taken[np.arange(len(y)), y]))
            self.width += float(weight @ taken.sum(axis=1))
        else:
            off = np.abs(said - y)
            self.covered += float(weight @ (off <= self.half))
            self.width += float(2.0 * self.half * weight.sum())
            self.score += float(weight @ interval_scores(off - self.half, 2.0 * self.half, self.asked))
        self.weight += float(weight.sum())
        if self.kept is not None:
            self.kept.add(y, weight)

    def figures(self, labels: bool) -> dict[str, tuple[float, float]]:
        """The figures, each with that of the best constant interval or set in hindsight."""
        best = (math.nan,) * 3
        if self.kept is not None:
            y, weight = self.kept.joined()
            best = best_interval(y, weight, self.asked, labels)
        names = ("coverage", "set_size") if labels else ("coverage", "width", "interval_score")
        sums = (self.covered, self.width, self.score)
        return {name: (total / self.weight, value) for name, total, value in zip(names, sums, best, strict=False)}


def interval_scores(outside: np.ndarray, width: float, asked: float) -> np.ndarray:
    """The width plus 2/(1 - asked) times the distance of a target outside; true quantiles minimise it."""
    return width + 2.0 / (1.0 - asked) * np.maximum(outside, 0.0)


def best_interval(y: np.ndarray, weight: np.ndarray, asked: float, labels: bool) -> tuple[float, float, float]:
    """The coverage, width and score of the best constant interval; of labels, of the smallest set that covers."""
    total = float(weight.sum())
    if labels:
        shares = np.sort(np.bincount(y + 1, weight)[1:])[::-1].cumsum() / total
        count = min(int(np.searchsorted(shares, asked * (1.0 - 1e-12))) + 1, shares.size)
        return (float(shares[count - 1]) if count else 0.0), float(count), math.nan
    order = np.argsort(y)
    below = np.cumsum(weight[order])
    low, high = (y[order][np.searchsorted(below, q * total)] for q in (0.5 - 0.5 * asked, 0.5 + 0.5 * asked))
    scores = interval_scores(np.maximum(low - y, y - high), high - low, asked)
    return float(weight @ ((low <= y) & (y <= high))) / total, float(high - low), float(weight @ scores) / total


class LabelTally:
    """Sums over rows with labels.

    Parameters
    ----------
    labels : list of str
        The labels that the model knows.
    keep : bool
        Whether to keep the scores of every row, for the AUC and the decomposition of the Brier score.

    Attributes
    ----------
    rows : ndarray of int of shape (n_slices,)
        Rows with a weight above 0.
    weight, right, brier : ndarray of shape (n_slices,)
        The weight of the rows, of those predicted correctly, and the sum of their Brier scores.
    log_loss, finite : ndarray of shape (n_slices,)
        The sum of the finite log losses, and the weight of their rows.
    infinite : ndarray of int of shape (n_slices,)
        The number of rows whose label was given probability 0.
    support : ndarray of shape (n_slices, n_labels + 1)
        The weight of each label; the last is that of labels that the model does not know.
    confusion : ndarray of shape (n_labels + 1, n_labels)
        The weight of rows by their label and the predicted one.
    unknown : Counter
        The number of rows of each label that the model does not know.
    own_loss : float
        The sum of the model's own losses over rows with a label that it knows.
    """

    def __init__(self, labels: list[str], keep: bool) -> None:
        k = len(labels)
        self.labels, self.kept = labels, Kept() if keep else None
        self.rows, self.infinite = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.weight, self.right, self.brier, self.log_loss, self.finite = np.zeros((5, 1))
        self.support, self.confusion = np.zeros((1, k + 1)), np.zeros((k + 1, k))
        self.unknown: Counter[str] = Counter()
        self.own_loss = 0.0
        self.covered: CoverageTally | None = None

    def codes(self, y: np.ndarray) -> np.ndarray:
        """The index of each label, -1 if the model does not know it."""
        numeric = y.dtype.kind == "f"
        return encode_labels(y, numbers_of(self.labels) if numeric else self.labels).astype(np.int64)

    def add(self, codes: np.ndarray, said: ScoredLabels, weight: np.ndarray, slices: np.ndarray, count: int) -> None:
        """Add rows with positive weight, by the index of their label; `slices` has the slice of each, below `count`."""
        names = ("rows", "infinite", "weight", "right", "brier", "log_loss", "finite", "support")
        for name in names:
            setattr(self, name, grown(getattr(self, name), count))
        wide = len(self.rows)
        self.rows += sums(slices, wide, np.ones(codes.size)).astype(np.int64)
        self.weight += sums(slices, wide, weight)
        self.right += sums(slices, wide, weight * (codes == said.chosen))
        k = len(self.labels)
        cells = np.bincount(codes % (k + 1) * k + said.chosen, weight, (k + 1) * k)  # -1 % (k + 1) is k
        self.confusion += cells.reshape(k + 1, k)
        for label in range(k + 1):
            self.support[:, label] += sums(slices, wide, weight * (codes == (label if label < k else -1)))
        if said.probabilities is not None:
            self._add_losses(codes, said.probabilities, weight, slices, wide)
        if self.kept is not None:
            scores = said.margins if k == 2 or said.probabilities is None else said.probabilities
            more = [] if k > 2 or said.probabilities is None else [said.probabilities[:, 1]]
            self.kept.add(codes.astype(np.int32), weight, scores, *more)

    def join(self, other: LabelTally) -> None:
        """Add the sums over other rows; both tallies must have one slice and keep no single rows."""
        for name in ("rows", "infinite", "weight", "right", "brier", "log_loss", "finite", "support", "confusion"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.unknown += other.unknown
        self.own_loss += other.own_loss

    def count_unknown(self, y: np.ndarray) -> None:
        """Count rows with labels that the model does not know."""
        values, counts = np.unique(label_text(y), return_counts=True) if y.size else (np.array([], "<U1"), np.zeros(0))
        for text, count in zip(values.tolist(), counts.tolist(), strict=True):
            if text not in self.unknown and len(self.unknown) >= LISTED:
                text = "others"
            self.unknown[text] += int(count)

    def _add_losses(self, codes: np.ndarray, p: np.ndarray, weight: np.ndarray, slices: np.ndarray, wide: int) -> None:
        known = codes >= 0
        given = np.where(known, p[np.arange(codes.size), codes], 0.0)  # the probability of the label
        with np.errstate(divide="ignore"):
            lost = 0.0 - np.log(given)
        finite = np.isfinite(lost)
        self.infinite += sums(slices, wide, 1.0 * ~finite).astype(np.int64)
        self.finite += sums(slices, wide, weight * finite)
        self.log_loss += sums(slices, wide, weight * np.where(finite, lost, 0.0))
        if p.shape[1] == 2:  # half the sum over the classes, an unknown label being a third with probability 0
            other = np.where(codes == 0, p[:, 1], p[:, 0])
            brier = np.where(known, other * other, 0.5 * (1.0 + (p * p).sum(axis=1)))
        else:
            own = np.zeros(p.shape)
            own[known, codes[known]] = 1.0
            brier = np.square(p - own).sum(axis=1) + ~known
        self.brier += sums(slices, wide, weight * brier)


class NumberTally:
    """Sums over rows with numbers as targets.

    Parameters
    ----------
    keep : bool
        Whether to keep the target and the prediction of every row, for the absolute error of the best constant.

    Attributes
    ----------
    rows : ndarray of int of shape (n_slices,)
        Rows with a weight above 0.
    weight, mean, squares : ndarray of shape (n_slices,)
        The weight of the rows, the mean of their targets, and the sum of the squared distances to it.
    square, absolute : ndarray of shape (n_slices,)
        Sums of squared and absolute errors.
    own_loss : float
        The sum of the model's own losses.
    """

    def __init__(self, keep: bool) -> None:
        self.kept = Kept() if keep else None
        self.rows = np.zeros(1, np.int64)
        self.weight, self.mean, self.squares, self.square, self.absolute = np.zeros((5, 1))
        self.own_loss = 0.0
        self.covered: CoverageTally | None = None

    def add(self, y: np.ndarray, said: np.ndarray, weight: np.ndarray, slices: np.ndarray, count: int) -> None:
        """Add rows with positive weight; `slices` has the slice of each row, below `count`."""
        for name in ("rows", "weight", "mean", "squares", "square", "absolute"):
            setattr(self, name, grown(getattr(self, name), count))
        wide, error, part = len(self.rows), said - y, NumberTally(False)
        part.rows = sums(slices, wide, np.ones(y.size)).astype(np.int64)
        part.square = sums(slices, wide, weight * error * error)
        part.absolute = sums(slices, wide, weight * np.abs(error))
        part.weight = sums(slices, wide, weight)
        part.mean = sums(slices, wide, weight * y) / np.where(part.weight > 0.0, part.weight, 1.0)
        squares: np.ndarray = np.bincount(slices, weight * np.square(y - part.mean[slices]), wide)
        part.squares = squares
        part.squares[0] = (weight * np.square(y - part.mean[0])).sum()
        self.join(part)
        if self.kept is not None:
            self.kept.add(y, said, weight)

    def join(self, other: NumberTally) -> None:
        """Add the sums over other rows; both tallies must have one slice and keep no single rows."""
        before, c = self.weight, other.weight
        both = np.where(before + c > 0.0, before + c, 1.0)
        apart = np.where(c > 0.0, other.mean - self.mean, 0.0)
        self.squares = self.squares + (other.squares + apart * apart * before * c / both)
        self.mean = self.mean + apart * c / both
        for name in ("rows", "weight", "square", "absolute", "own_loss"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def median_error(self) -> float:
        """The mean absolute error of the best constant, a weighted median; NaN if rows were not kept."""
        if self.kept is None:
            return math.nan
        y, _, weight = self.kept.joined()
        order = np.argsort(y)
        below = np.cumsum(weight[order])
        median = y[order][np.searchsorted(below, 0.5 * below[-1])]
        return float(weight @ np.abs(y - median) / below[-1])
