"""Sums over scored rows, from which the figures of an evaluation are computed.

Rows are added in blocks of a fixed size, so that sums do not depend on the chunks in which rows were read. All sums are
kept for each slice of the rows; slice 0 contains all rows.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

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


def sums(slices: np.ndarray, count: int, values: np.ndarray) -> np.ndarray:
    """The sum of the values in each slice; the first is that of all rows."""
    out = np.bincount(slices, values, count) if slices.any() else np.zeros(count)
    out[0] = values.sum()
    return out


def padded(array: np.ndarray, count: int) -> np.ndarray:
    """The array with rows of zeros behind it, `count` rows in all."""
    return np.concatenate([array, np.zeros((count - len(array), *array.shape[1:]), array.dtype)])


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


class Tally:
    """Sums over scored rows, by slice.

    Parameters
    ----------
    labels : list of str or None
        The labels that the model knows; None where targets are numbers.
    keep : bool
        Whether to keep the target and the prediction of every row, for the AUC and the decomposition of the Brier
        score, or the absolute error of the best constant.

    Attributes
    ----------
    sums : dict of str to ndarray of shape (n_slices,)
        The number of "rows" and their "weight"; of labels and numbers what `label_sums` and `number_sums` give.
    confusion : ndarray of shape (n_labels + 1, n_labels)
        The weight of rows by their label and the predicted one; the last are labels that the model does not know.
    unknown : Counter
        The number of rows of each label that the model does not know.
    own_loss : float
        The sum of the model's own losses, over rows with a label that it knows.
    covered : CoverageTally or None
        The coverage of intervals, if the model gives any.
    """

    def __init__(self, labels: list[str] | None, keep: bool) -> None:
        k = len(labels or ())
        self.labels, self.kept = labels, Kept() if keep else None
        self.sums: dict[str, np.ndarray] = {}
        self.confusion = np.zeros((k + 1, k))
        self.unknown: Counter[str] = Counter()
        self.own_loss = 0.0
        self.covered: CoverageTally | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        return self.sums[name]

    def add(self, y: np.ndarray, said: Any, weight: np.ndarray, slices: np.ndarray, count: int) -> None:
        """Add rows with positive weight: targets (or indices of labels), predictions, and slices below `count`."""
        found = {"rows": sums(slices, count, np.ones(y.size)).astype(np.int64), "weight": sums(slices, count, weight)}
        if self.labels is None:
            self._join(found | number_sums(y, said, weight, slices, found["weight"]))
        else:
            k = len(self.labels)
            cells = np.bincount(y % (k + 1) * k + said.chosen, weight, (k + 1) * k)  # -1 % (k + 1) is k
            self.confusion += cells.reshape(k + 1, k)
            self._join(found | label_sums(y, said, weight, slices, count, k))
        if self.kept is not None:
            self.kept.add(*kept_of(y, said, weight))

    def join(self, other: Tally) -> None:
        """Add the sums over other rows; neither tally may keep single rows."""
        self._join(other.sums)
        self.confusion = self.confusion + other.confusion
        self.unknown += other.unknown
        self.own_loss += other.own_loss

    def _join(self, found: dict[str, np.ndarray]) -> None:
        if not self.sums:
            self.sums = {name: np.zeros_like(each) for name, each in found.items()}
        if not found:
            return
        count = max(len(self["rows"]), len(found["rows"]))
        a, b = ({name: padded(each, count) for name, each in of.items()} for of in (self.sums, found))
        self.sums = {name: a[name] + b[name] for name in a}
        if "mean" in a:  # of numbers, with the squared distances to it
            before, c = a["weight"], b["weight"]
            both = np.where(before + c > 0.0, before + c, 1.0)
            apart = np.where(c > 0.0, b["mean"] - a["mean"], 0.0)
            self.sums["squares"] = a["squares"] + (b["squares"] + apart * apart * before * c / both)
            self.sums["mean"] = a["mean"] + apart * c / both

    def count_unknown(self, y: np.ndarray) -> None:
        """Count rows with labels that the model does not know."""
        values, counts = np.unique(label_text(y), return_counts=True) if y.size else (np.array([], "<U1"), np.zeros(0))
        for text, count in zip(values.tolist(), counts.tolist(), strict=True):
            if text not in self.unknown and len(self.unknown) >= LISTED:
                text = "others"
            self.unknown[text] += int(count)


def number_sums(
    y: np.ndarray, said: np.ndarray, weight: np.ndarray, slices: np.ndarray, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """The mean of the targets in each slice of weight `weights`, their squared distances to it, and sums of errors."""
    count, error = len(weights), said - y
    mean = sums(slices, count, weight * y) / np.where(weights > 0.0, weights, 1.0)
    squares = np.bincount(slices, weight * np.square(y - mean[slices]), count)
    squares[0] = (weight * np.square(y - mean[0])).sum()
    square, absolute = (sums(slices, count, each) for each in (weight * error * error, weight * np.abs(error)))
    return {"mean": mean, "squares": squares, "square": square, "absolute": absolute}


def label_sums(
    codes: np.ndarray, said: ScoredLabels, weight: np.ndarray, slices: np.ndarray, count: int, labels: int
) -> dict[str, np.ndarray]:
    """The weight of rows in each slice that are predicted right, and of each label; labels not known come last.

    With probabilities also the sums of Brier scores and of finite log losses, the weight of rows with one, and the
    number of the others, whose label was given probability 0.
    """
    support = [sums(slices, count, weight * (codes == (k if k < labels else -1))) for k in range(labels + 1)]
    out = {"right": sums(slices, count, weight * (codes == said.chosen)), "support": np.column_stack(support)}
    p = said.probabilities
    if p is None:
        return out
    known = codes >= 0
    given = np.where(known, p[np.arange(codes.size), codes], 0.0)  # the probability of the label
    with np.errstate(divide="ignore"):
        lost = 0.0 - np.log(given)
    finite = np.isfinite(lost)
    if p.shape[1] == 2:  # half the sum over the classes, an unknown label being a third with probability 0
        other = np.where(codes == 0, p[:, 1], p[:, 0])
        brier = np.where(known, other * other, 0.5 * (1.0 + (p * p).sum(axis=1)))
    else:
        own = np.zeros(p.shape)
        own[known, codes[known]] = 1.0
        brier = np.square(p - own).sum(axis=1) + ~known
    losses = {"brier": weight * brier, "log_loss": weight * np.where(finite, lost, 0.0), "finite": weight * finite}
    losses |= {"infinite": 1.0 * ~finite}
    return out | {name: sums(slices, count, values) for name, values in losses.items()}


def kept_of(y: np.ndarray, said: Any, weight: np.ndarray) -> list[np.ndarray]:
    """What is kept of rows: targets, weights and predictions; of labels the scores, and of two a probability too."""
    if not isinstance(said, ScoredLabels):
        return [y, weight, said]
    p, codes = said.probabilities, y.astype(np.int32)
    if p is None:
        return [codes, weight, said.margins]
    return [codes, weight, said.margins, p[:, 1]] if p.shape[1] == 2 else [codes, weight, p]
