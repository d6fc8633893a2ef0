"""Calibration by isotonic regression: what a forecast should have said, and how its mean loss splits (CORP).

The recalibrated forecast is the isotonic fit of the outcomes on the forecasts (N4's PAV): among all nondecreasing
functions of the forecast it has the least mean loss, by every proper loss at once. With the mean outcome as a forecast
that knows nothing,

    mean loss = miscalibration - discrimination + uncertainty

where miscalibration = loss(forecast) - loss(recalibrated), discrimination = loss(mean outcome) - loss(recalibrated) and
uncertainty = loss(mean outcome); the first two are never negative (Dimitriadis, Gneiting and Jordan 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..batch.isotonic import Pools, isotonic
from ..validation import choice, number
from .resample import resampled
from .scores import Score, same_length, weights

BLOCK = 16384  # rows
POINTS = 512  # at most so many forecasts at which a band is found
KINDS = ("consistency", "confidence")


class Band(NamedTuple):
    """Where a share `level` of the resampled fits lies, at each of the forecasts `at` by itself.

    A consistency band is where the recalibrated forecast of a calibrated forecaster would lie: outside of it there is
    evidence of miscalibration. A confidence band is where it lies when outcomes are drawn from the recalibrated
    forecast itself; it holds for many rounds, not exactly for few.
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
    """A forecast against its recalibrated self.

    Attributes
    ----------
    score, miscalibration, discrimination, uncertainty : the mean loss and its parts, see the module.
    recalibrated : what each forecast should have been, in the order of the rows.
    pools : the levels of the fit: `pools.left` to `pools.right` in forecasts, `pools.value` the outcome's mean there.
    mean : the mean outcome.
    forecast, weight : as given, weight None where every row counts 1.
    """

    loss: str
    rounds: int
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
        """A band for the reliability diagram: isotonic fits of outcomes drawn anew for the same forecasts.

        Parameters
        ----------
        kind : "consistency" draws outcomes with the forecasts as probabilities, "confidence" with the recalibrated.
        level : share of the fits inside, at each forecast by itself.
        resamples : how many times outcomes are drawn.
        seed : of the draws; the same seed gives the same band.
        """
        choice("kind", kind, KINDS)
        if self.loss == "quadratic":
            raise ValueError("bands need outcomes 0 and 1; there is no distribution to draw other numbers from")
        if not number("level", level, 0) < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}")
        for name, value in (("resamples", resamples), ("seed", seed)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < (name == "resamples"):
                raise ValueError(f"{name} must be a whole number, at least {int(name == 'resamples')}; got {value!r}")
        c = np.ones(self.forecast.size) if self.weight is None else self.weight
        z, p = self.forecast, self.forecast if kind == "consistency" else self.recalibrated
        order = np.flatnonzero(c)[np.argsort(z[c > 0.0], kind="stable")]
        z, p, c = z[order], p[order], c[order]
        first = np.flatnonzero(np.append(True, z[1:] > z[:-1]))
        at = first[np.unique(np.linspace(0, first.size - 1, min(first.size, POINTS)).astype(np.int64))]
        fits = resampled(z, p, c, at, int(resamples), int(seed))
        low, high = np.quantile(np.ascontiguousarray(fits.T), [0.5 - level / 2, 0.5 + level / 2], axis=1)
        return Band(kind, float(level), int(resamples), int(seed), z[at], low, high)

    def lines(self) -> list[str]:
        """The decomposition to be read aloud."""
        return [
            f"mean {self.loss} loss {self.score:.6g} = miscalibration {self.miscalibration:.6g}"
            f" - discrimination {self.discrimination:.6g} + uncertainty {self.uncertainty:.6g}",
            f"{self.rounds:,} rounds, mean outcome {self.mean:.6g}, {self.pools.value.size:,} levels",
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """The decomposition and the levels as plain numbers, for JSON; None is infinite."""
        parts = ("score", "miscalibration", "discrimination", "uncertainty", "mean")
        numbers: dict[str, Any] = {k: v if np.isfinite(v := getattr(self, k)) else None for k in parts}
        levels = {k: getattr(self.pools, k).tolist() for k in ("left", "right", "value", "weight", "count")}
        return {"loss": self.loss, "rounds": self.rounds, **numbers, "pools": levels}


def reliability(outcomes: Any, forecast: Any, weight: Any = None, *, loss: str = "square") -> Reliability:
    """Recalibrate a forecast and split its mean loss; equal forecasts share one level, in whatever order they come.

    Parameters
    ----------
    outcomes : 0 and 1; for the quadratic loss any numbers.
    forecast : of every row.
    weight : importance of each row; None is 1.
    loss : "square", "log" or "quadratic". A log loss may be infinite, and with it the miscalibration.

    Examples
    --------
    >>> found = reliability([0, 1, 0, 1], [0.5, 0.5, 0.25, 0.75])
    >>> found.recalibrated
    array([0.5, 0.5, 0. , 1. ])
    >>> print(found.lines()[0])
    mean square loss 0.15625 = miscalibration 0.03125 - discrimination 0.125 + uncertainty 0.25
    """
    score = Score(loss)
    y, h = score.outcomes(outcomes), score.forecasts(forecast, "forecast")
    same_length(h, y.size, "forecast")
    c = None if weight is None else weights(weight, y.size)
    if y.size == 0 or (c is not None and not c.any()):
        raise ValueError("there is no row with a weight above 0")
    found = isotonic(h, y, c)
    fit, pools = found.fit, found.pools
    mean = float(y.mean() if c is None else c @ y / c.sum())
    if loss != "quadratic":
        mean = min(1.0, mean)  # rounding could put it above
    parts = np.zeros(4)
    for first in range(0, y.size, BLOCK):  # a block's losses stay in cache
        part: Any = slice(first, first + BLOCK)
        if c is not None:
            part = first + np.flatnonzero(c[part])
        lost, best, least = (
            score.rounds(y[part], said) for said in (h[part], fit[part], np.broadcast_to(mean, y[part].shape))
        )
        for k, each in enumerate((lost, lost - best, least - best, least)):
            parts[k] += each.sum() if c is None else c[part] @ each
    rounds, total = (y.size, y.size) if c is None else (np.count_nonzero(c), c.sum())
    mine, missed, told, unknown = (parts / total).tolist()
    return Reliability(loss, int(rounds), mine, missed, told, unknown, mean, fit, pools, h, c)
