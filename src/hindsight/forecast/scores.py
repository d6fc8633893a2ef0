"""Losses of forecasts, round by round and in the mean, and checks of the input.

A forecast h is fixed before its outcome y is seen. With p = E[y | past] the square loss measures the distance to p,
although p is never seen: E[(h - y)^2] = (h - p)^2 + E[(p - y)^2], and the last term is the same for every h
(docs/theory.md#scoring).
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
    """A loss, and the declared ranges that bound it.

    Parameters
    ----------
    loss : {"square", "log", "quadratic"}, default "square"
        "square" is (h - y)^2 for outcomes 0 and 1 (the Brier score); "log" is -ln of the probability given to the
        outcome; "quadratic" is (h - y)^2 for outcomes that are any numbers.
    bounds : (float, float) or None, default None
        For the quadratic loss: every outcome lies between these two, whatever the forecasts are.

    References
    ----------
    Brier (1950); Gneiting and Raftery (2007). See docs/bibliography.md.

    Examples
    --------
    >>> Score("quadratic", bounds=(0, 10)).corners(np.array([4.0]))
    array([[16., 36.]])
    """

    loss: str = "square"
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        choice("loss", self.loss, LOSSES)
        if self.bounds is not None:
            if self.loss != "quadratic":
                raise ValueError(f"bounds belong to loss='quadratic', not to {self.loss!r}")
            low, high = (number("bounds", b) for b in _two(self.bounds))
            if not low < high:
                raise ValueError(f"bounds must be (low, high) with low < high, got {self.bounds!r}")
            object.__setattr__(self, "bounds", (low, high))

    @property
    def missing(self) -> str:
        """What must still be declared for differences of losses to have a known range; empty if nothing."""
        if self.loss == "quadratic" and self.bounds is None:
            return "quadratic losses are unbounded: declare bounds (low, high) of the outcomes"
        return ""

    def corners(self, h: np.ndarray) -> np.ndarray:
        """The losses at outcomes between which a difference of two losses has its extremes, one column per outcome.

        For outcomes 0 and 1 these are all the outcomes. A difference of two quadratic losses is linear in the outcome,
        so its extremes are at the bounds; without bounds the losses are NaN.
        """
        if self.loss == "log":
            with np.errstate(divide="ignore"):
                return 0.0 - np.log(np.stack([1.0 - h, h], axis=-1))
        ends = (0.0, 1.0) if self.loss == "square" else self.bounds or (math.nan, math.nan)
        return np.square(h[..., None] - np.array(ends))

    def outcomes(self, values: Any, name: str = "outcome") -> np.ndarray:
        """Check outcomes and convert them to float64; errors name the column `name`."""
        y = numbers(values, name)
        if self.loss == "quadratic":
            _refuse(~np.isfinite(y), y, name, "must be finite")
        else:
            hint = "; numbers want loss='quadratic'" if self.loss == "square" else ""
            _refuse((y != 0.0) & (y != 1.0), y, name, f"must be 0 or 1{hint}")
        return y

    def forecasts(self, values: Any, name: str) -> np.ndarray:
        """Check forecasts and convert them to float64; errors name the column `name`."""
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

    def outside(self, y: np.ndarray) -> np.ndarray:
        """Which outcomes lie outside the declared bounds."""
        if self.bounds is None:
            return np.zeros(y.shape, bool)
        return ~((y >= self.bounds[0]) & (y <= self.bounds[1]))


def numbers(values: Any, name: str) -> np.ndarray:
    """A column of numbers as float64; strings are parsed, and an error names the row of a value that is no number."""
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
    """The square loss (h - y)^2 of every round, for outcomes 0 and 1 and probabilities h: the Brier score.

    Parameters
    ----------
    outcomes, forecast : array-like of shape (n_rounds,)
        The outcomes y, 0 or 1, and the probabilities h.

    Returns
    -------
    ndarray of shape (n_rounds,)
        The losses.

    References
    ----------
    Brier (1950), docs/bibliography.md.

    Examples
    --------
    >>> square_loss([1, 0], [0.8, 0.5])
    array([0.04, 0.25])
    """
    return losses(outcomes, forecast, "square")


def log_loss(outcomes: Any, forecast: Any) -> np.ndarray:
    """The log loss of every round: -ln of the probability given to the outcome, infinite where that was 0.

    Parameters
    ----------
    outcomes, forecast : array-like of shape (n_rounds,)
        The outcomes, 0 or 1, and the probabilities of the outcome 1.

    Returns
    -------
    ndarray of shape (n_rounds,)
        The losses in nats.

    See Also
    --------
    square_loss : Finite for every forecast.

    Examples
    --------
    >>> log_loss([1, 0], [0.8, 0.5]).round(3)
    array([0.223, 0.693])
    """
    return losses(outcomes, forecast, "log")


def quadratic_loss(outcomes: Any, forecast: Any) -> np.ndarray:
    """The quadratic loss (h - y)^2 of every round, for outcomes that are any numbers.

    Parameters
    ----------
    outcomes : array-like of shape (n_rounds,)
        The outcomes y.
    forecast : array-like of shape (n_rounds,)
        The forecasts h.

    Returns
    -------
    ndarray of shape (n_rounds,)
        The losses.

    Examples
    --------
    >>> quadratic_loss([3, -1], [1, 0])
    array([4., 1.])
    """
    return losses(outcomes, forecast, "quadratic")


def losses(outcomes: Any, forecast: Any, loss: str = "square") -> np.ndarray:
    """The loss of every round.

    Parameters
    ----------
    outcomes, forecast : array-like of shape (n_rounds,)
        The outcomes and the forecasts.
    loss : {"square", "log", "quadratic"}, default "square"
        As in `Score`.

    Returns
    -------
    ndarray of shape (n_rounds,)
        The losses.

    Examples
    --------
    >>> losses([1, 0], [1, 0.5], "log").round(3)
    array([0.   , 0.693])
    """
    score = Score(loss)
    y, h = score.outcomes(outcomes), score.forecasts(forecast, "forecast")
    same_length(h, y.size, "forecast")
    return score.rounds(y, h)


def mean_loss(outcomes: Any, forecast: Any, weight: Any = None, loss: str = "square") -> float:
    """The mean loss, Sigma c loss / Sigma c with weights c.

    Parameters
    ----------
    outcomes, forecast : array-like of shape (n_rounds,)
        The outcomes and the forecasts.
    weight : array-like of shape (n_rounds,) or None, default None
        Importance of each row; None is 1.
    loss : {"square", "log", "quadratic"}, default "square"
        As in `Score`.

    Returns
    -------
    float
        The mean; infinite where one log loss of a row with weight is.

    Examples
    --------
    >>> mean_loss([1, 0], [0.75, 0.5], weight=[3, 1])
    0.109375
    """
    each = losses(outcomes, forecast, loss)
    c = weights(weight, each.size)
    some_weight(c)
    each, c = each[c > 0.0], c[c > 0.0]
    return math.fsum(c * each) / math.fsum(c) if np.isfinite(each).all() else math.inf


def columns(forecasts: Any, names: list[str] | None = None) -> dict[str, Any]:
    """The forecasts by name, from a mapping, a dataframe, a 2-D array with one column per forecaster, or a list.

    `names` are the names of the columns where they have none, and those to select where they have.
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


def some_weight(c: np.ndarray) -> None:
    """Raise an error if no weight is above 0."""
    if not c.any():
        raise ValueError("there is no row with a weight above 0")


def open_unit(name: str, value: Any) -> float:
    """`value` as a float if it lies strictly between 0 and 1; otherwise an error."""
    if not number(name, value, 0) < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return float(value)


def same_length(values: np.ndarray, rows: int, name: str) -> None:
    """Raise an error if a column is not as long as the outcomes."""
    if values.size != rows:
        raise ValueError(f"column {name!r} has {values.size} rows, but there are {rows} outcomes")


def _refuse(bad: np.ndarray, values: np.ndarray, name: str, why: str) -> None:
    """Raise an error for the first bad value."""
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
