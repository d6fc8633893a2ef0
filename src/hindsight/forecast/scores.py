"""Losses of forecasts, round by round and in the mean, and the checks on what is given.

A forecast is fixed before its outcome is seen. With p = E[y | past] the square loss measures the distance to p although
p is never seen: E[(h - y)^2] = (h - p)^2 + E[(p - y)^2] (N1 Theorem 1.2, N3 Theorem 3.1), and the last term is the same
for every h.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ..errors import RowError
from ..validation import check_weights, choice, number

LOSSES = ("square", "log", "quadratic")


@dataclass(frozen=True)
class Score:
    """A loss, and what is declared so that it is bounded.

    Parameters
    ----------
    loss : "square", (h - y)^2 for outcomes 0 and 1; "log", -ln of the probability given to what happened;
        "quadratic", (h - y)^2 for outcomes that are any numbers.
    epsilon : log: every forecast lies in [epsilon, 1 - epsilon].
    bounds : quadratic: every outcome and every forecast lies between these two.
    """

    loss: str = "square"
    epsilon: float | None = None
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        choice("loss", self.loss, LOSSES)
        if self.epsilon is not None:
            if self.loss != "log":
                raise ValueError(f"epsilon belongs to loss='log', not to {self.loss!r}")
            if not number("epsilon", self.epsilon, 0) < 0.5:
                raise ValueError(f"epsilon must lie between 0 and 1/2, got {self.epsilon!r}")
        if self.bounds is not None:
            if self.loss != "quadratic":
                raise ValueError(f"bounds belong to loss='quadratic', not to {self.loss!r}")
            low, high = (number("bounds", b) for b in _two(self.bounds))
            if not low < high:
                raise ValueError(f"bounds must be (low, high) with low < high, got {self.bounds!r}")
            object.__setattr__(self, "bounds", (low, high))

    @property
    def span(self) -> float:
        """Largest loss less the smallest, which also bounds every difference; NaN where nothing was declared."""
        if self.loss == "square":
            return 1.0
        if self.loss == "log":
            return math.nan if self.epsilon is None else math.log((1.0 - self.epsilon) / self.epsilon)
        return math.nan if self.bounds is None else (self.bounds[1] - self.bounds[0]) ** 2

    @property
    def missing(self) -> str:
        """What must be declared before anything can be promised; empty where nothing must."""
        if not math.isnan(self.span):
            return ""
        if self.loss == "log":
            return "log losses are unbounded: declare an epsilon such that all forecasts lie in [epsilon, 1 - epsilon]"
        return "quadratic losses are unbounded: declare bounds (low, high) of the outcomes and forecasts"

    @property
    def declared(self) -> str:
        """Where the values must lie."""
        low, high = self.bounds or (self.epsilon, 1.0 - (self.epsilon or 0.0))
        return f"the declared [{low}, {high}]"

    def outcomes(self, values: Any, name: str = "outcome") -> np.ndarray:
        """The outcomes as float64, checked; `name` is their column."""
        y = numbers(values, name)
        if self.loss == "quadratic":
            _refuse(~np.isfinite(y), y, name, "must be finite")
        else:
            hint = "; numbers want loss='quadratic'" if self.loss == "square" else ""
            _refuse((y != 0.0) & (y != 1.0), y, name, f"must be 0 or 1{hint}")
        return y

    def forecasts(self, values: Any, name: str) -> np.ndarray:
        """The forecasts as float64, checked; `name` is their column."""
        h = numbers(values, name)
        if self.loss == "quadratic":
            _refuse(~np.isfinite(h), h, name, "must be finite")
        else:
            _refuse(~((h >= 0.0) & (h <= 1.0)), h, name, "is not a probability: it must lie in [0, 1]")
        return h

    def rounds(self, y: np.ndarray, h: np.ndarray) -> np.ndarray:
        """The loss of every round; a log loss may be infinite."""
        if self.loss == "log":
            with np.errstate(divide="ignore"):
                return 0.0 - np.log(np.where(y == 1.0, h, 1.0 - h))
        return np.square(h - y)

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Which forecasts (or, for the quadratic loss, outcomes) are not as declared."""
        if self.loss == "log" and self.epsilon is not None:
            return ~((values >= self.epsilon) & (values <= 1.0 - self.epsilon))
        if self.bounds is not None:
            return ~((values >= self.bounds[0]) & (values <= self.bounds[1]))
        return np.zeros(values.shape, bool)


def numbers(values: Any, name: str) -> np.ndarray:
    """A column of numbers as float64; text is read, and anything else is refused with its row."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise ValueError(f"column {name!r} must have one dimension, got shape {given.shape}")
    try:
        return np.ascontiguousarray(given, np.float64)
    except (TypeError, ValueError):
        row = next(t for t, value in enumerate(given) if not is_number(value))
        raise RowError(row, f", column {name!r}: {str(given[row])!r} is not a number") from None


def weights(values: Any, rows: int) -> np.ndarray:
    """The weights as float64, 1 where none are given; zeros are allowed."""
    if values is None:
        return np.ones(rows)
    c = numbers(values, "weight")
    same_length(c, rows, "weight")
    if c.any():
        check_weights(c)
    return c


def square_loss(outcomes: Any, forecast: Any) -> np.ndarray:
    """(h - y)^2 of every round, for outcomes 0 and 1 and probabilities h: the Brier score.

    >>> square_loss([1, 0], [0.8, 0.5])
    array([0.04, 0.25])
    """
    return losses(outcomes, forecast, "square")


def log_loss(outcomes: Any, forecast: Any) -> np.ndarray:
    """-ln of the probability given to what happened, of every round; infinite where that was 0."""
    return losses(outcomes, forecast, "log")


def quadratic_loss(outcomes: Any, forecast: Any) -> np.ndarray:
    """(h - y)^2 of every round, for any numbers."""
    return losses(outcomes, forecast, "quadratic")


def losses(outcomes: Any, forecast: Any, loss: str = "square") -> np.ndarray:
    """The loss of every round."""
    score = Score(loss)
    y, h = score.outcomes(outcomes), score.forecasts(forecast, "forecast")
    same_length(h, y.size, "forecast")
    return score.rounds(y, h)


def mean_loss(outcomes: Any, forecast: Any, weight: Any = None, loss: str = "square") -> float:
    """The mean loss, Sigma c loss / Sigma c with weights c.

    >>> mean_loss([1, 0], [0.75, 0.5], weight=[3, 1])
    0.109375
    """
    each = losses(outcomes, forecast, loss)
    c = weights(weight, each.size)
    if not c.any():
        raise ValueError("there is no row with a weight above 0")
    each, c = each[c > 0.0], c[c > 0.0]
    return math.fsum(c * each) / math.fsum(c) if np.isfinite(each).all() else math.inf


def columns(forecasts: Any, names: list[str] | None = None) -> dict[str, Any]:
    """The forecasts by name: from a mapping, a dataframe, a 2-D array (a column a forecaster), or a list of columns.

    `names` are those of the columns where they carry none, and those wanted where they do.
    """
    frame = nw.from_native(forecasts, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        forecasts = {name: frame[name].to_numpy() for name in frame.columns}
    if isinstance(forecasts, Mapping):
        found = {str(name): values for name, values in forecasts.items()}
        lost = [name for name in names or [] if name not in found]
        if lost:
            raise ValueError(f"there is no forecast {lost[0]!r} (there are: {', '.join(found)})")
        return found if names is None else {name: found[name] for name in names}
    parts = list(forecasts.T) if isinstance(forecasts, np.ndarray) and forecasts.ndim == 2 else list(forecasts)
    if names is None:
        names = [f"forecast {k}" for k in range(len(parts))]
    if len(parts) != len(names):
        raise ValueError(f"{len(parts)} columns of forecasts were given, but there are {len(names)} forecasters")
    return dict(zip(names, parts, strict=True))


def same_length(values: np.ndarray, rows: int, name: str) -> None:
    """Refuse a column that is not as long as the outcomes."""
    if values.size != rows:
        raise ValueError(f"column {name!r} has {values.size} rows, but there are {rows} outcomes")


def _refuse(bad: np.ndarray, values: np.ndarray, name: str, why: str) -> None:
    """One clear error for the first bad value."""
    if bad.any():
        row = int(bad.argmax())
        raise RowError(row, f", column {name!r}: {float(values[row])!r} {why}")


def _two(bounds: Any) -> tuple[Any, Any]:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be (low, high), got {bounds!r}") from None
    return low, high


def is_number(value: Any) -> bool:
    """Whether a value can be read as a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
