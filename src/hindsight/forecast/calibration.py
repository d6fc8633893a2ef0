"""Calibration by isotonic regression: recalibrated forecasts, and the decomposition of the mean loss (CORP).

The recalibrated forecast is the isotonic fit of the outcomes on the forecasts: among all nondecreasing functions of the
forecast it has the least mean loss, for every proper loss at once (docs/theory.md#isotonic-regression). With the mean
outcome as an uninformative forecast,

    mean loss = miscalibration - discrimination + uncertainty

where miscalibration = loss(forecast) - loss(recalibrated), discrimination = loss(mean outcome) - loss(recalibrated) and
uncertainty = loss(mean outcome); the first two are never negative (Dimitriadis, Gneiting and Jordan, 2021). For
quantile forecasts, the isotonic fit is an isotonic quantile regression, and the uninformative forecast is the quantile
of all outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..batch.isotonic import Pools, isotonic
from ..formatting import _plain
from ..kernels.isotonic import square_parts
from ..validation import choice, whole
from .quantiles import isotonic_quantile
from .quantiles import quantile as quantile_of
from .resample import resampled
from .scores import NUMERIC, Score, open_unit, some_weight, waiting_words, weights

BLOCK = 16384  # rows
POINTS = 512  # largest number of forecasts at which a band is computed
KINDS = ("consistency", "confidence")


class Band(NamedTuple):
    """A band for a reliability diagram that contains a fraction `level` of resampled fits, pointwise.

    A consistency band shows where the recalibrated forecast of a calibrated forecaster would lie: leaving it is
    evidence of miscalibration. A confidence band resamples outcomes from the recalibrated forecast itself; its level
    holds asymptotically, and only approximately for few rounds.

    Attributes
    ----------
    kind : str
        "consistency" or "confidence".
    level : float
        Fraction of the fits inside the band at each forecast.
    resamples : int
        Number of fits.
    seed : int
        Seed of the draws.
    at : ndarray
        The forecasts at which the band was computed, ascending.
    low, high : ndarray
        The lower and upper ends of the band there.
    """

    kind: str
    level: float
    resamples: int
    seed: int
    at: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Reliability:
    """A forecast, its recalibration, and the decomposition of its mean loss.

    Attributes
    ----------
    loss : str
        The loss, as in `Score`.
    rounds : int
        Number of rows with an outcome and a weight above 0.
    waiting : int
        Number of rows that have no outcome yet.
    score : float
        Mean loss = miscalibration - discrimination + uncertainty.
    miscalibration, discrimination, uncertainty : float
        The three terms.
    mean : float
        The best constant forecast: the mean outcome, or the quantile of the outcomes.
    recalibrated : ndarray of shape (n_rows,)
        The recalibrated forecast of each row.
    pools : Pools
        The levels of the fit: for forecasts from `pools.left` to `pools.right` the mean outcome (or the quantile of the
        outcomes) is `pools.value`.
    forecast : ndarray of shape (n_rows,)
        The forecasts as given.
    weight : ndarray of shape (n_rows,) or None
        The weights as given; None if all are 1.
    """

    loss: str
    rounds: int
    waiting: int
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    mean: float
    recalibrated: np.ndarray
    pools: Pools
    forecast: np.ndarray
    weight: np.ndarray | None

    def band(self, kind: str = "consistency", *, level: float = 0.9, resamples: int = 1000, seed: int = 0) -> Band:
        """Compute a band for the reliability diagram, from isotonic fits of redrawn outcomes.

        Parameters
        ----------
        kind : {"consistency", "confidence"}, default "consistency"
            Draw outcomes with the forecasts ("consistency") or the recalibrated forecasts ("confidence") as
            probabilities.
        level : float, default 0.9
            Fraction of the fits inside the band at each forecast, between 0 and 1.
        resamples : int, default 1000
            Number of times that outcomes are drawn.
        seed : int, default 0
            Seed of the draws; the same seed gives the same band.

        Returns
        -------
        Band
            The band.

        Raises
        ------
        ValueError
            For losses of numeric outcomes, whose distribution is not known.
        """
        choice("kind", kind, KINDS)
        if self.loss in NUMERIC:
            raise ValueError("bands need outcomes 0 and 1; there is no distribution to draw other numbers from")
        open_unit("level", level)
        resamples, seed = whole("resamples", resamples), whole("seed", seed, 0)
        c = np.ones(self.forecast.size) if self.weight is None else self.weight
        z, p = self.forecast, self.forecast if kind == "consistency" else self.recalibrated
        order = np.flatnonzero(c)[np.argsort(z[c > 0.0], kind="stable")]
        z, p, c = z[order], p[order], c[order]
        first = np.flatnonzero(np.append(True, z[1:] > z[:-1]))
        at = first[np.unique(np.linspace(0, first.size - 1, min(first.size, POINTS)).astype(np.int64))]
        fits = resampled(z, p, c, at, resamples, seed)
        low, high = np.quantile(np.ascontiguousarray(fits.T), [0.5 - level / 2, 0.5 + level / 2], axis=1)
        return Band(kind, float(level), resamples, seed, z[at], low, high)

    def lines(self) -> list[str]:
        """The decomposition as lines of text."""
        return [
            f"mean {self.loss} loss {self.score:.6g} = miscalibration {self.miscalibration:.6g}"
            f" - discrimination {self.discrimination:.6g} + uncertainty {self.uncertainty:.6g}",
            f"{self.rounds:,} rounds, {self.centre} {self.mean:.6g}, {self.pools.value.size:,} levels",
            *([f"{waiting_words(self.waiting)} not scored"] if self.waiting else []),
        ]

    @property
    def centre(self) -> str:
        """What `mean` is, in words."""
        return "quantile of the outcomes" if self.loss == "pinball" else "mean outcome"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """The decomposition and the levels as plain numbers, for JSON; infinite values are None."""
        numbers = ("score", "miscalibration", "discrimination", "uncertainty", "mean")
        levels = {k: getattr(self.pools, k).tolist() for k in ("left", "right", "value", "weight", "count")}
        out = {
            "loss": self.loss,
            "rounds": self.rounds,
            "waiting": self.waiting,
            **{k: getattr(self, k) for k in numbers},
            "pools": levels,
        }
        return dict(_plain(out))


def reliability(
    outcomes: Any, forecast: Any, weight: Any = None, *, loss: str = "square", quantile: float | None = None
) -> Reliability:
    """Recalibrate a forecast and decompose its mean loss.

    Equal forecasts share one level, whatever the order of the rows.

    Parameters
    ----------
    outcomes : array-like of shape (n_rows,)
        The outcomes: 0 and 1, or numbers for the quadratic, Poisson and pinball losses. Rows with a missing outcome
        (NaN) are not scored.
    forecast : array-like of shape (n_rows,)
        The forecasts.
    weight : array-like of shape (n_rows,) or None, default None
        Importance of each row; None is 1.
    loss : {"square", "log", "quadratic", "poisson", "pinball"}, default "square"
        As in `Score`. If a log or Poisson loss is infinite, so is the miscalibration.
    quantile : float or None, default None
        For the pinball loss: which quantile is forecast.

    Returns
    -------
    Reliability
        The recalibrated forecast and the decomposition.

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021); Gneiting and Resin (2023). See docs/bibliography.md.

    Examples
    --------
    >>> found = reliability([0, 1, 0, 1], [0.5, 0.5, 0.25, 0.75])
    >>> found.recalibrated
    array([0.5, 0.5, 0. , 1. ])
    >>> print(found.lines()[0])
    mean square loss 0.15625 = miscalibration 0.03125 - discrimination 0.125 + uncertainty 0.25
    """
    if loss == "winkler":
        raise ValueError("an interval is calibrated end by end: take loss='pinball' and the quantile that each end is")
    score = Score(loss, quantile=quantile)
    y, h, c, waiting = scored_rows(score, outcomes, forecast, weight)
    if quantile is None:
        found = isotonic(h, y, c)
        fit, pools = found.fit, found.pools
        mean = float(y.mean() if c is None else c @ y / c.sum())
    else:
        fit, pools = isotonic_quantile(h, y, c, quantile)
        mean = quantile_of(y, c, quantile)
    if loss not in NUMERIC:
        mean = min(1.0, mean)  # rounding could put it above
    rounds, total = (y.size, y.size) if c is None else (np.count_nonzero(c), c.sum())
    value, miscalibration, discrimination, uncertainty = (p / total for p in decomposed(score, y, h, fit, mean, c))
    parts = (value, miscalibration, discrimination, uncertainty)
    return Reliability(loss, int(rounds), waiting, *parts, mean, fit, pools, h, c)


def scored_rows(
    score: Score, outcomes: Any, forecast: Any, weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
    """Outcomes, forecasts and weights, checked; rows without an outcome have weight 0, and the last is their number."""
    y, h = score.taken(outcomes, forecast, missing=True)
    c, missing, waiting = None if weight is None else weights(weight, y.size), np.isnan(y), 0
    if missing.any():
        known = np.ones(y.size) if c is None else c
        waiting = int(np.count_nonzero(missing & (known > 0.0)))
        y, c = np.where(missing, 0.0, y), np.where(missing, 0.0, known)
    some_weight(np.ones(min(y.size, 1)) if c is None else c)
    return y, h, c, waiting


def decomposed(
    score: Score, y: np.ndarray, h: np.ndarray, fit: np.ndarray, mean: float, c: np.ndarray | None
) -> list[float]:
    """Weighted sums of the loss, of the miscalibration, the discrimination and the uncertainty."""
    if score.loss in ("square", "quadratic"):
        return list(square_parts(y, h, fit, mean, np.ones(y.size) if c is None else c))
    parts = np.zeros(4)
    for first in range(0, y.size, BLOCK):  # a block's losses stay in cache
        part: Any = slice(first, first + BLOCK)
        if c is not None:
            part = first + np.flatnonzero(c[part])
        lost, best, least = (
            score.rounds(y[part], made) for made in (h[part], fit[part], np.broadcast_to(mean, y[part].shape))
        )
        for k, each in enumerate((lost, lost - best, least - best, least)):
            parts[k] += each.sum() if c is None else c[part] @ each
    return list(parts.tolist())
