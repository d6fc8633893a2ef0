"""Losses of forecasts, per round and on average, and checks of the input.

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
from scipy.special import xlogy

from ..errors import RowError
from ..validation import check_weights, choice, number

LOSSES = ("square", "log", "quadratic", "poisson", "pinball", "winkler")
NUMERIC = LOSSES[2:]  # losses of outcomes that are any numbers
NEEDS_BOUNDS = ("quadratic", "poisson")
SUM = 0.01  # how far from 1 the probabilities of the classes may add up, as those that were rounded do


@dataclass(frozen=True)
class Score:
    """A loss, with the parameters that must be declared for it.

    Parameters
    ----------
    loss : {"square", "log", "quadratic", "poisson", "pinball", "winkler"}, default "square"
        "square" is (h - y)^2 for outcomes 0 and 1 (the Brier score), and with `classes` the sum of that over the
        classes; "log" is -ln of the probability given to the outcome. For outcomes that are any numbers and forecasts
        of their mean, "quadratic" is (h - y)^2 and "poisson" the Poisson deviance 2 (y ln(y/h) - y + h), for counts.
        "pinball" is the loss of a quantile, max(q (y - h), (q - 1) (y - h)), and "winkler" that of an interval [l, u],
        u - l + 2/(1 - coverage) times the distance of y from it.
    bounds : (float, float) or None, default None
        Bounds on all outcomes, whatever the forecasts are. Without them differences of quadratic and Poisson losses
        have no known range; with them the ranges of differences of pinball and Winkler losses may be narrower.
    quantile : float or None, default None
        For the pinball loss: the quantile that is forecast, between 0 and 1.
    coverage : float or None, default None
        For the Winkler loss: the nominal coverage of the intervals, with equal probability of missing on either side.
    classes : sequence or None, default None
        For the square and log losses: the labels of K >= 2 classes. A forecast is then K probabilities in their order.
        They must sum to 1 up to 0.01, to allow for rounding, and are scored without normalisation.

    References
    ----------
    Brier (1950); Winkler (1972); Gneiting and Raftery (2007). See docs/bibliography.md.

    Examples
    --------
    >>> Score("quadratic", bounds=(0, 10)).corners(np.array([[4.0]]))
    array([[[16., 36.]]])
    """

    loss: str = "square"
    bounds: tuple[float, float] | None = None
    quantile: float | None = None
    coverage: float | None = None
    classes: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        choice("loss", self.loss, LOSSES)
        for name, losses in (("quantile", ("pinball",)), ("coverage", ("winkler",))):
            value = getattr(self, name)
            if (value is not None) != (self.loss in losses):
                verb = "needs" if value is None else "takes no"
                raise ValueError(f"loss={self.loss!r} {verb} {name}")
            if value is not None:
                object.__setattr__(self, name, open_unit(name, value))
        if self.bounds is not None:
            if self.loss not in NUMERIC:
                raise ValueError(f"bounds belong to loss='quadratic' and others of numbers, not to {self.loss!r}")
            low, high = (number("bounds", b) for b in _two(self.bounds))
            if not low < high:
                raise ValueError(f"bounds must be (low, high) with low < high, got {self.bounds!r}")
            if self.loss == "poisson" and low < 0.0:
                raise ValueError(f"loss='poisson' is for outcomes from 0 on, but the bounds are {self.bounds!r}")
            object.__setattr__(self, "bounds", (low, high))
        if self.classes is not None:
            if self.loss in NUMERIC:
                raise ValueError(f"classes belong to loss='square' and 'log', not to {self.loss!r}")
            given = tuple(self.classes)
            if len(given) < 2 or len(set(map(str, given))) < len(given):
                raise ValueError(f"classes must be at least two, and all different; got {list(given)}")
            object.__setattr__(self, "classes", given)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the numbers that a forecast consists of; empty if it is a single number."""
        if self.loss == "winkler":
            return ("low", "high")
        return tuple(str(label) for label in self.classes or ())

    @property
    def missing(self) -> str:
        """The parameters that are missing for differences of losses to have a known range; empty if none."""
        if self.loss in NEEDS_BOUNDS and self.bounds is None:
            return f"{self.loss} losses are unbounded: declare bounds (low, high) of the outcomes"
        return ""

    @property
    def unbounded(self) -> str:
        """Why a difference may have no known range although everything was declared."""
        if self.loss == "poisson":
            return "a forecast of exactly 0 can have an infinite Poisson loss, so the difference has no known range"
        return "a forecast of exactly 0 or 1 can have an infinite log loss, so the difference has no known range"

    @property
    def ranges(self) -> str:
        """Why each difference has a range known before its outcome even without declared bounds."""
        if self.loss in NUMERIC:
            return f"a difference of {self.loss} losses has a range known before its outcome, whatever that is"
        which = "one of the declared classes" if self.classes else "0 or 1"
        return f"outcomes are {which}, so each difference has a range known before its outcome"

    def corners(self, h: np.ndarray) -> np.ndarray:
        """Losses at the outcomes at which the difference of any two forecasters attains its extremes, one column each.

        The losses are up to a constant that is the same for every forecaster of a row. For outcomes 0 and 1 and for
        classes these are all possible outcomes. A difference of two quadratic or Poisson losses is linear in the
        outcome, so its extremes are at the bounds; without bounds the losses are NaN. A difference of two pinball
        losses is monotone in the outcome and constant beyond both forecasts, so its extremes are at the bounds, or
        without them at both infinities. A difference of two Winkler losses is linear between the ends of the intervals
        and constant beyond, so its extremes are at these ends, clipped to the bounds.

        Parameters
        ----------
        h : ndarray of shape (n_rows, n_forecasters) or (n_rows, n_forecasters, n_parts)
            The forecasts.

        Returns
        -------
        ndarray of shape (n_rows, n_forecasters, n_outcomes)
            The losses.
        """
        if self.classes is not None:
            return self._of_classes(h)
        if self.loss == "log":
            with np.errstate(divide="ignore"):
                return 0.0 - np.log(np.stack([1.0 - h, h], axis=-1))
        if self.loss == "winkler":
            knots = h.reshape(len(h), 1, -1)
            return self._winkler(knots if self.bounds is None else np.clip(knots, *self.bounds), h[:, :, None, :])
        ends = (0.0, 1.0) if self.loss == "square" else self.bounds
        if ends is None and self.quantile is not None:
            return np.stack([(1.0 - self.quantile) * h, -self.quantile * h], axis=-1)
        at = np.array(ends or (math.nan, math.nan))
        if self.loss == "poisson":
            return 2.0 * (h[..., None] - xlogy(at, h[..., None]))
        return self.rounds(at, h[..., None])

    def _of_classes(self, h: np.ndarray) -> np.ndarray:
        """The loss of each class as the outcome."""
        if self.loss == "log":
            with np.errstate(divide="ignore"):
                return 0.0 - np.log(h)
        return np.square(h).sum(axis=-1, keepdims=True) - 2.0 * h + 1.0

    def _winkler(self, y: np.ndarray, h: np.ndarray) -> np.ndarray:
        low, high = h[..., 0], h[..., 1]
        out = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        return (high - low) + 2.0 / (1.0 - (self.coverage or 0.0)) * out

    def outcomes(self, values: Any, name: str = "outcome", *, missing: bool = False) -> np.ndarray:
        """Check outcomes and convert them to float64; errors name the column `name`.

        Classes become their indices. With `missing`, outcomes may be NaN (for classes also None or the empty string)
        and become NaN.
        """
        y = numbers(values, name) if self.classes is None else self._indices(values, name, missing)
        known = ~np.isnan(y) if missing else True
        if self.loss in NUMERIC:
            _refuse(known & ~np.isfinite(y), y, name, "must be finite")
            if self.loss == "poisson":
                _refuse(known & (y < 0.0), y, name, "must be at least 0 for the Poisson loss")
        elif self.classes is None:
            hint = "; numbers want loss='quadratic'" if self.loss == "square" else ""
            _refuse(known & (y != 0.0) & (y != 1.0), y, name, f"must be 0 or 1{hint}")
        return y

    def _indices(self, values: Any, name: str, missing: bool) -> np.ndarray:
        """The index of each outcome among the classes, whose labels may be text or numbers."""
        given = np.asarray(values)
        if given.ndim != 1:
            raise ValueError(f"column {name!r} must have one dimension, got shape {given.shape}")
        if given.dtype.kind == "O":
            given = np.array([label_text(value) for value in given.tolist()], np.str_)
        labels = [label_text(label) for label in self.classes or ()]
        if given.dtype.kind in "biuf":
            known: list[Any] = [float(label) if is_number(label) else math.nan for label in labels]
            empty = np.isnan(given.astype(np.float64))
        else:
            known, empty = labels, np.isin(given, ("", "nan", "None"))
        y = np.full(given.size, math.nan)
        for k, label in enumerate(known):
            y[given == label] = k
        strange = np.isnan(y) & ~(empty & missing)
        if strange.any():
            row = int(strange.argmax())
            among = ", ".join(self.parts)
            raise RowError(
                row, f", column {name!r}: {label_text(given[row].item())!r} is not one of the classes {among}"
            )
        return y

    def taken(
        self, outcomes: Any, forecast: Any, name: str = "forecast", *, missing: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Outcomes and forecasts of equal length, checked and converted to float64."""
        y, h = self.outcomes(outcomes, missing=missing), self.forecasts(forecast, name)
        same_length(h, y.size, name)
        return y, h

    def forecasts(self, values: Any, name: str) -> np.ndarray:
        """Check forecasts and convert them to float64; errors name the column `name`."""
        parts = self.parts
        if not parts:
            return self._column(values, name)
        given = np.asarray(values)
        if given.ndim != 2 or given.shape[1] != len(parts):
            wanted = f"{len(parts)} numbers in each row ({', '.join(parts)})"
            raise ValueError(f"column {name!r} must have {wanted}, got shape {given.shape}")
        h = np.stack([self._column(given[:, k], f"{name}:{part}") for k, part in enumerate(parts)], axis=1)
        if self.loss == "winkler":
            _refuse(h[:, 0] > h[:, 1], h[:, 0], f"{name}:low", "is above the high end of the interval")
        else:
            total = h.sum(axis=1)
            why = f"is the sum of the probabilities, which must be 1 (±{SUM:g})"
            _refuse(np.abs(total - 1.0) > SUM + 1e-9, total, name, why)
        return h

    def _column(self, values: Any, name: str) -> np.ndarray:
        """One number of each forecast, checked."""
        h = numbers(values, name)
        if self.loss == "poisson":
            _refuse(~((h >= 0.0) & (h < math.inf)), h, name, "is not the mean of counts: it must be at least 0")
        elif self.loss in NUMERIC:
            _refuse(~np.isfinite(h), h, name, "must be finite")
        else:
            _refuse(~((h >= 0.0) & (h <= 1.0)), h, name, "is not a probability: it must lie in [0, 1]")
        return h

    def rounds(self, y: np.ndarray, h: np.ndarray) -> np.ndarray:
        """The loss of every round; a log or Poisson loss may be infinite.

        Parameters
        ----------
        y : ndarray
            The outcomes; for classes their indices.
        h : ndarray
            The forecasts, of a shape to which `y` can be broadcast; forecasts of several numbers have an additional
            axis.
        """
        if self.classes is not None:
            at = np.broadcast_to(y, h.shape[:-1])[..., None].astype(np.int64)
            return np.take_along_axis(self._of_classes(h), at, axis=-1)[..., 0]
        if self.loss == "log":
            with np.errstate(divide="ignore"):
                return 0.0 - np.log(np.where(y == 1.0, h, 1.0 - h))
        if self.loss == "winkler":
            return self._winkler(y, h)
        if self.loss == "poisson":
            return 2.0 * (xlogy(y, y) - xlogy(y, h) - y + h)
        if self.loss == "pinball":
            return np.maximum((self.quantile or 0.0) * (y - h), ((self.quantile or 0.0) - 1.0) * (y - h))
        return np.square(h - y)

    def outside(self, y: np.ndarray) -> np.ndarray:
        """Which outcomes lie outside the declared bounds."""
        if self.bounds is None:
            return np.zeros(y.shape, bool)
        return ~((y >= self.bounds[0]) & (y <= self.bounds[1]))


def label_text(value: Any) -> str:
    """A label as text; a whole number without its decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def numbers(values: Any, name: str) -> np.ndarray:
    """A column of numbers as float64; strings are parsed, and an error names the row of an invalid value."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise ValueError(f"column {name!r} must have one dimension, got shape {given.shape}")
    try:
        return np.ascontiguousarray(given, np.float64)
    except (TypeError, ValueError):
        row = next(t for t, value in enumerate(given) if not is_number(value))
        raise RowError(row, f", column {name!r}: {str(given[row])!r} is not a number") from None


def weights(values: Any, rows: int) -> np.ndarray:
    """The weights as float64, 1 by default; zeros are allowed."""
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
    """The log loss of every round: -ln of the probability given to the outcome; infinite if that was 0.

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
    """The quadratic loss (h - y)^2 of every round, for numeric outcomes.

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


def losses(outcomes: Any, forecast: Any, loss: str = "square", **declared: Any) -> np.ndarray:
    """The loss of every round.

    Parameters
    ----------
    outcomes, forecast : array-like of shape (n_rounds,)
        The outcomes and the forecasts; with classes or for intervals a forecast is a row of numbers.
    loss : str, default "square"
        As in `Score`.
    **declared
        `quantile`, `coverage` or `classes`, as in `Score`.

    Returns
    -------
    ndarray of shape (n_rounds,)
        The losses.

    Examples
    --------
    >>> losses([1, 0], [1, 0.5], "log").round(3)
    array([0.   , 0.693])
    >>> losses(["sun", "rain"], [[0.2, 0.8], [0.5, 0.5]], classes=["rain", "sun"]).round(3)
    array([0.08, 0.5 ])
    >>> losses([12, 3], [[5, 10], [2, 4]], "winkler", coverage=0.8)
    array([25.,  2.])
    """
    score = Score(loss, **declared)
    return score.rounds(*score.taken(outcomes, forecast))


def mean_loss(outcomes: Any, forecast: Any, weight: Any = None, loss: str = "square", **declared: Any) -> float:
    """The mean loss, Sigma c loss / Sigma c with weights c.

    Parameters
    ----------
    outcomes, forecast : array-like of shape (n_rounds,)
        The outcomes and the forecasts.
    weight : array-like of shape (n_rounds,) or None, default None
        Importance of each row; None is 1.
    loss : str, default "square"
        As in `Score`.
    **declared
        `quantile`, `coverage` or `classes`, as in `Score`.

    Returns
    -------
    float
        The mean; infinite if a row of positive weight has an infinite log loss.

    Examples
    --------
    >>> mean_loss([1, 0], [0.75, 0.5], weight=[3, 1])
    0.109375
    """
    each = losses(outcomes, forecast, loss, **declared)
    c = weights(weight, each.size)
    some_weight(c)
    each, c = each[c > 0.0], c[c > 0.0]
    return math.fsum(c * each) / math.fsum(c) if np.isfinite(each).all() else math.inf


def columns(forecasts: Any, names: list[str] | None = None, parts: tuple[str, ...] = ()) -> dict[str, Any]:
    """The forecasts by name, from a mapping, a dataframe, an array with one column per forecaster, or a list.

    `names` names the columns if they have no names, and otherwise selects columns. A forecast of several `parts` is a
    2-D array under its name, or one column for each part with a name such as ``A:part``.
    """
    frame = nw.from_native(forecasts, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        forecasts = {name: frame[name].to_numpy() for name in frame.columns}
    if isinstance(forecasts, Mapping):
        found = put_together({str(name): values for name, values in forecasts.items()}, parts)
        lost = [name for name in names or [] if name not in found]
        if lost:
            raise ValueError(f"there is no forecast {lost[0]!r} (there are: {', '.join(found)})")
        return found if names is None else {name: found[name] for name in names}
    is_table = isinstance(forecasts, np.ndarray) and forecasts.ndim >= 2
    each = list(np.moveaxis(forecasts, 1, 0)) if is_table else list(forecasts)
    if names is None:
        names = [f"forecast {k}" for k in range(len(each))]
    if len(each) != len(names):
        raise ValueError(f"{len(each)} columns of forecasts were given, but there are {len(names)} forecasters")
    return dict(zip(names, each, strict=True))


def put_together(found: dict[str, Any], parts: tuple[str, ...]) -> dict[str, Any]:
    """Columns ``A:part`` joined into a 2-D array under ``A`` if all parts are there; others are unchanged."""
    last = f":{parts[0]}" if parts else ""
    out: dict[str, Any] = {}
    for name, values in found.items():
        stem = name.removesuffix(last)
        each = [f"{stem}:{part}" for part in parts]
        if last and name.endswith(last) and all(column in found for column in each):
            out[stem] = np.stack([np.asarray(found[column]) for column in each], axis=1)
        else:
            out[name] = values
    taken = {f"{stem}:{part}" for stem in out for part in parts}
    return {name: values for name, values in out.items() if name not in taken}


def some_weight(c: np.ndarray) -> None:
    """Raise an error if no weight is above 0."""
    if not c.any():
        raise ValueError("there is no row with a weight above 0")


def waiting_words(count: int) -> str:
    """How many rows have no outcome yet, as the beginning of a sentence."""
    return "1 row has no outcome yet:" if count == 1 else f"{count:,} rows have no outcome yet:"


def open_unit(name: str, value: Any) -> float:
    """`value` as a float if it lies strictly between 0 and 1; otherwise an error."""
    if not number(name, value, 0) < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return float(value)


def same_length(values: np.ndarray, rows: int, name: str) -> None:
    """Raise an error if a column and the outcomes differ in length."""
    if len(values) != rows:
        raise ValueError(f"column {name!r} has {len(values)} rows, but there are {rows} outcomes")


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
