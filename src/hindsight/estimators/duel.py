"""Comparison of generative and discriminative learners on one stream: each predicts every row before learning it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..validation import choice
from .class_densities import NAMES
from .descent import DescentClassifier
from .generative import GenerativeClassifier


@dataclass(frozen=True)
class DuelCurve:
    """The results of a learner row by row: its log loss, and whether its prediction was wrong."""

    name: str
    losses: np.ndarray
    mistakes: np.ndarray

    def mean(self, rows: int) -> float:
        """Mean log loss of the first rows, in nats."""
        return float(self.losses[:rows].mean())

    def errors(self, rows: int) -> int:
        """Mistakes among the first rows."""
        return int(self.mistakes[:rows].sum())


def duel(X: np.ndarray, y: np.ndarray, density: str = "gaussian", eta: float = 0.5) -> tuple[DuelCurve, DuelCurve]:
    """Return the curves of Bayes' rule with a density for each class, and of logistic regression by implicit descent.

    Logistic regression learns with rates η/√t from columns standardised by the mean and standard deviation of earlier
    rows; densities need no scaling. All classes are declared in advance.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> first, second = duel(X, X[:, 0] + X[:, 1] > 0)
    >>> first.name, second.name, first.errors(200) < 60
    ('generative', 'discriminative', True)
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"a duel needs two classes at least, got one class: {classes.item(0)!r}")
    log_p = GenerativeClassifier(density).progressive(X, codes, classes=np.arange(len(classes)))
    model = DescentClassifier("logistic", eta=eta, update="implicit", power=0.5, keep_margins=True)
    model.partial_fit(scaled(X), codes, classes=np.arange(len(classes)))
    return curve("generative", log_p, codes), curve("discriminative", logistic(model.margins_), codes)


def curve(name: str, log_p: np.ndarray, codes: np.ndarray) -> DuelCurve:
    """Losses and mistakes of log probabilities; ties go to the first class."""
    return DuelCurve(name, -log_p[np.arange(len(codes)), codes], log_p.argmax(axis=1) != codes)


def logistic(z: np.ndarray) -> np.ndarray:
    """Log probabilities from margins: one margin for two classes; for more classes they are normalised to sum to 1."""
    if z.ndim == 1:
        return np.stack([-np.logaddexp(0.0, z), -np.logaddexp(0.0, -z)], axis=1)
    log_p = -np.logaddexp(0.0, -z)
    return np.asarray(log_p - np.log(np.exp(log_p).sum(axis=1, keepdims=True)))


def scaled(X: np.ndarray) -> np.ndarray:
    """Each row standardised by the mean and standard deviation of the rows before it; 0 while these are not defined."""
    shift = X - X[0]
    before = np.arange(1.0, len(X))[:, None]
    mean = np.cumsum(shift[:-1], axis=0) / before
    square = np.maximum(np.cumsum(shift[:-1] ** 2, axis=0) / before - mean**2, 0.0)
    spread = np.sqrt(square)
    sound = spread > 1e-8 * np.sqrt(mean**2 + square)
    out = np.zeros_like(X)
    out[1:] = np.where(sound, (shift[1:] - mean) / np.where(sound, spread, 1.0), 0.0)
    return out


def stations(rows: int) -> list[int]:
    """10, 100, 1,000, ... and the last row."""
    return [*(10**k for k in range(1, int(math.log10(rows)) + 1) if 10**k < rows), rows]


def check_density(density: str) -> Any:
    """The name of a density, checked."""
    return choice("density", density, NAMES)
