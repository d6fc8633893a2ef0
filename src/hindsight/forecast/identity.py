"""The identity behind scoring, checked on data with known probabilities: E[(h - p)^2] = E[(h - y)^2] - E[(p - y)^2]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .intervals import hoeffding
from .scores import Score, open_unit, some_weight, weights


@dataclass(frozen=True)
class Identity:
    """Both sides of the scoring identity for a forecast h and the true p, as means over the rounds.

    Attributes
    ----------
    distance : float
        Mean of (h - p)^2, the distance to the truth.
    loss : float
        Mean of (h - y)^2, the loss.
    intrinsic : float
        Mean of (p - y)^2, the intrinsic randomness, which is the same for every h.
    expected_loss, expected_intrinsic : float
        The expectations of these two over y given p; `distance` is their difference.
    gap : float
        loss - intrinsic - distance, which is 0 in expectation.
    half_width : float
        |gap| is at most this with probability 1 - alpha if p is the true probability, and h and p were fixed in
        advance.
    alpha : float
        The probability that |gap| exceeds `half_width`.
    holds : bool
        Whether |gap| is at most `half_width`.
    """

    distance: float
    loss: float
    intrinsic: float
    expected_loss: float
    expected_intrinsic: float
    gap: float
    half_width: float
    alpha: float
    holds: bool

    def __str__(self) -> str:
        verdict = (
            "as it must be" if self.holds else f"so p is not the truth (this happens by chance at most {self.alpha:g})"
        )
        return (
            f"squared distance to the truth {self.distance:.6g} = loss {self.expected_loss:.6g}"
            f" - intrinsic randomness {self.expected_intrinsic:.6g} in expectation\n"
            f"on these outcomes: loss {self.loss:.6g} - intrinsic randomness {self.intrinsic:.6g}"
            f" = {self.loss - self.intrinsic:.6g}, off by {self.gap:.3g} (at most {self.half_width:.3g}), {verdict}"
        )


def identity(outcomes: Any, forecast: Any, p: Any, weight: Any = None, *, alpha: float = 0.05) -> Identity:
    """Check the scoring identity on outcomes 0 and 1 drawn with known probabilities, as in a simulation.

    (h - y)^2 - (p - y)^2 = (h - p)^2 + 2 (h - p)(p - y), where the last term has mean 0 given the past and a range
    of 2 |h - p|. If h, p and the weights c are all fixed in advance, as in a simulation, its mean stays within
    sqrt(2 ln(2/alpha) Sigma c^2 (h - p)^2) / Sigma c with probability 1 - alpha (Hoeffding's inequality). See
    docs/theory.md#scoring.

    Parameters
    ----------
    outcomes : array-like of shape (n_rounds,)
        The outcomes y, 0 or 1.
    forecast : array-like of shape (n_rounds,)
        The forecasts h.
    p : array-like of shape (n_rounds,)
        The true probabilities.
    weight : array-like of shape (n_rounds,) or None, default None
        Importance of each row; None is 1.
    alpha : float, default 0.05
        The probability, between 0 and 1, that |gap| exceeds `Identity.half_width`.

    Returns
    -------
    Identity
        Both sides of the identity.

    Examples
    --------
    >>> print(identity([1, 0], [0.5, 0.5], [0.75, 0.25]))
    squared distance to the truth 0.0625 = loss 0.25 - intrinsic randomness 0.1875 in expectation
    on these outcomes: loss 0.25 - intrinsic randomness 0.0625 = 0.1875, off by 0.125 (at most 0.48), as it must be
    """
    open_unit("alpha", alpha)
    score = Score()
    (y, h), (_, truth) = score.taken(outcomes, forecast), score.taken(outcomes, p, "p")
    c = weights(weight, y.size)
    some_weight(c)

    def mean(values: np.ndarray) -> float:
        return math.fsum(c * values) / math.fsum(c)

    loss, intrinsic, distance = mean(np.square(h - y)), mean(np.square(truth - y)), mean(np.square(h - truth))
    expected = mean(truth * np.square(h - 1.0) + (1.0 - truth) * np.square(h))
    randomness = mean(truth * (1.0 - truth))
    gap = mean(2.0 * (h - truth) * (truth - y))
    half = hoeffding(alpha, math.fsum(np.square(c * (h - truth)))) / math.fsum(c)
    return Identity(distance, loss, intrinsic, expected, randomness, gap, half, alpha, abs(gap) <= half)
