"""Class weights, which multiply the weights of the rows of a class.

Balanced weights give all K classes the same total weight: a row of a class with n_k of n rows has the weight n/(K n_k).
`fit` counts all its rows. For rows that come later, or one by one, the counts are those of the rows so far including
the row itself, and K is the number of classes seen. Rows of weight 0 are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..validation import at_least_0


class Weigher:
    """Weights of rows by their class, for rows that come in chunks.

    Parameters
    ----------
    each : ndarray or None
        The weight of each class; None stands for balanced weights.
    counts : ndarray
        Earlier rows of each class.
    fit_counts : ndarray
        Rows of each class in `fit`.
    fit_rows : int, default=0
        How many of the following rows are those of `fit`.
    """

    def __init__(self, each: np.ndarray | None, counts: np.ndarray, fit_counts: np.ndarray, fit_rows: int = 0) -> None:
        self.each, self.counts, self.fit_counts, self.fit_rows = each, counts.astype(np.float64), fit_counts, fit_rows

    def weigh(self, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The weights of rows of these classes, multiplied by the given weights."""
        own = np.ones(codes.size) if weight is None else np.asarray(weight, np.float64)
        if self.each is not None:
            return own * self.each[codes]
        fitted = min(self.fit_rows, codes.size)
        self.fit_rows -= fitted
        first, rest = self.of_fit(codes[:fitted], own[:fitted]), self.later(codes[fitted:], own[fitted:])
        return own * np.concatenate((first, rest))

    def of_fit(self, codes: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Weights by the class counts of all rows of `fit`."""
        self.counts = self.counts + np.bincount(codes[own > 0.0], minlength=self.counts.size)
        met = self.fit_counts > 0.0
        each = np.divide(self.fit_counts.sum(), met.sum() * self.fit_counts, out=np.zeros(met.size), where=met)
        out: np.ndarray = each[codes]
        return out

    def later(self, codes: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Weights by the class counts of the rows so far."""
        out, on = np.zeros(codes.size), own > 0.0
        some = codes[on]
        order = np.argsort(some, kind="stable")
        sizes = np.bincount(some, minlength=self.counts.size)
        nth = np.empty(some.size)
        nth[order] = np.arange(some.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        before = self.counts[some]
        met = np.count_nonzero(self.counts) + np.cumsum((nth == 0.0) & (before == 0.0))
        out[on] = (self.counts.sum() + np.arange(1.0, some.size + 1.0)) / (met * (before + nth + 1.0))
        self.counts = self.counts + sizes
        return out


def weight_of_each(given: Any, classes: list[Any]) -> np.ndarray | None:
    """The weight of each class, 1 by default; None if they are balanced."""
    if isinstance(given, str) and given == "balanced":
        return None
    if not isinstance(given, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict of weights by class; got {given!r}")
    for label, weight in given.items():
        at_least_0(f"the weight of class {label!r}", weight)
    return np.array([float(given.get(label, 1.0)) for label in classes])


def refuse_unknown(given: Any, classes: list[Any]) -> None:
    """Refuse weights of unknown classes."""
    unknown = set(given) - set(classes) if isinstance(given, Mapping) else None
    if unknown:
        raise ValueError(f"class_weight has the class {min(unknown, key=repr)!r}, not one of {classes}")
