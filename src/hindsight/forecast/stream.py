"""Scores of several forecasters along a stream: sums that can be added over chunks, shards and resumed streams."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..kernels.compiler import inlined, kernel
from ..validation import whole
from .mixtures import ORDERS, Side
from .scores import Score, columns, same_length, weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GROWTH = 1.02  # from one point of the path to the next, once there are a hundred
ROUNDING = 1e-15  # a range that is smaller than this part of the losses is their rounding error, and taken for 0
BLOCK = 8192  # rows whose losses are held at a time
# The sums of a pair: c d, its lowest and highest values; and, in units of the first range above 0 so that nothing
# underflows, V, (c d - g)^2, and the latter times R^j for either side.
SUM, LOW, HIGH, PROXY, MOMENT = range(5)
UPPER, LOWER = MOMENT + 1, MOMENT + ORDERS
SUMS = MOMENT + 2 * ORDERS - 1


@inlined
def add(sums, at, x):  # type: ignore[no-untyped-def]
    """sums[0, at] += x, with the rounding error accumulated in sums[1, at] (compensated summation)."""
    s = sums[0, at]
    t = s + x
    sums[1, at] += (s - t) + x if abs(s) >= abs(x) else (x - t) + s
    sums[0, at] = t


@kernel
def tally(losses, corners, c, stream, sums, known, reach, first, unbounded):  # type: ignore[no-untyped-def]
    """Add rounds to the sums of c, of c times the loss of each forecaster, and of each pair.

    A term is c d, where d is the difference of two losses; its guess is c times the mean difference so far, clipped to
    the range of the term. A range that is not finite marks the pair and is left out; a range of the size of rounding
    errors is treated as 0. With interleaved streams, `known` has for each stream the sums of c and of c d after its
    last round, and guesses use these; if `known` has no rows they use all rounds so far.
    """
    k, ends, lagged = losses.shape[1], corners.shape[2], known.shape[0] > 0
    for t in range(c.size):
        before = known[stream[t], 0] if lagged else sums[0, 0] + sums[1, 0]
        scale = c[t] / before if c[t] < 1e300 * before else 0.0
        add(sums, 0, c[t])
        pair = 0
        for i in range(k):
            if losses[t, i] < math.inf:
                add(sums, 1 + i, c[t] * losses[t, i])
            for j in range(i + 1, k):
                low, high, size = math.inf, -math.inf, 0.0
                for q in range(ends):
                    one, two = corners[t, i, q], corners[t, j, q]
                    d = 0.0 if one == two else c[t] * (one - two)
                    low = d if not d >= low else low
                    high = d if not d <= high else high
                    if one != two:
                        size = max(size, abs(one), abs(two))
                if size < math.inf and high - low <= ROUNDING * size * c[t]:
                    low = high = 0.5 * (low + high)
                if not high - low < math.inf:
                    unbounded[pair] = True
                    d = c[t] * (losses[t, i] - losses[t, j])
                    if abs(d) < math.inf:
                        add(sums, 1 + k + pair * SUMS, d)
                elif high > low or low != 0.0:
                    at = 1 + k + pair * SUMS
                    d = 0.0 if losses[t, i] == losses[t, j] else c[t] * (losses[t, i] - losses[t, j])
                    g = scale * (known[stream[t], 1 + pair] if lagged else sums[0, at] + sums[1, at])
                    g = min(max(g, low), high)
                    if first[pair] == 0.0:
                        first[pair] = high - low
                    add(sums, at + SUM, d)
                    sums[0, at + LOW] += low
                    sums[0, at + HIGH] += high
                    if first[pair] == 0.0:
                        pair += 1
                        continue
                    unit = first[pair]
                    wide, off, up, down = (high - low) / unit, (d - g) / unit, (g - low) / unit, (high - g) / unit
                    sums[0, at + PROXY] += 0.25 * wide * wide
                    power_up = power_down = off * off
                    sums[0, at + MOMENT] += power_up
                    for order in range(ORDERS - 1):
                        power_up *= up
                        power_down *= down
                        sums[0, at + UPPER + order] += power_up
                        sums[0, at + LOWER + order] += power_down
                    reach[pair, 0] = max(reach[pair, 0], up)
                    reach[pair, 1] = max(reach[pair, 1], down)
                pair += 1
        if lagged:
            known[stream[t], 0] = sums[0, 0] + sums[1, 0]
            for pair in range(first.size):
                at = 1 + k + pair * SUMS
                known[stream[t], 1 + pair] = sums[0, at] + sums[1, at]


class Waiting(NamedTuple):
    """A row whose outcome is not yet known.

    Attributes
    ----------
    row : int
        Its number, from 0.
    named : bool
        Whether an id was given; otherwise the number of the row is its id.
    forecasts : tuple of ndarray
        The forecasts of the row.
    weight : float
        Its weight.
    """

    row: int
    named: bool
    forecasts: tuple[np.ndarray, ...]
    weight: float


class Totals(NamedTuple):
    """The sums after a number of rounds, with weights c and differences d of losses.

    Attributes
    ----------
    rounds : int
        Number of rounds.
    weight : float
        Sum of c.
    losses : ndarray of shape (n_forecasters,)
        Sums of c times the loss.
    pairs : ndarray of shape (n_pairs, SUMS)
        The sums of each pair, in the order of the constants of this module.
    reach : ndarray of shape (n_pairs, 2)
        Largest distance of the guess from the lowest and from the highest value of a term, in units of `first`.
    first : ndarray of shape (n_pairs,)
        First range above 0.
    """

    rounds: int
    weight: float
    losses: np.ndarray
    pairs: np.ndarray
    reach: np.ndarray
    first: np.ndarray

    @property
    def differences(self) -> np.ndarray:
        """The sum of c d of each pair."""
        return self.pairs[..., SUM]

    def side(self, upper: bool, lag: int = 1) -> Side:
        """The statistics for the mixtures to bound each sum from above or below its estimand: means over streams."""
        start = UPPER if upper else LOWER
        at = [MOMENT, *range(start, start + ORDERS - 1)]
        moments = np.moveaxis(self.pairs[..., at], -1, 0)
        return Side(self.pairs[..., PROXY] / lag, moments / lag, self.reach[..., 0 if upper else 1])


class Scores:
    """Scores of K forecasters along a stream, updated chunk by chunk.

    The results do not depend, to the bit, on how the rows are split into chunks. ``a + b`` is the scores of the rounds
    of a followed by those of b; the guesses used by empirical Bernstein restart with b, which is also valid. Rows of
    weight 0 are not rounds. A row with a missing outcome (NaN) is counted, and becomes a round when its outcome is
    passed to `bring`.

    Parameters
    ----------
    names : sequence of str
        Names of the forecasters.
    loss : str, default "square"
        As in `Score`.
    lag : int, default 1
        How many rounds before its outcome a forecast was fixed, see `LaggedScores`; 1 is the next round.
    **declared
        `bounds`, `quantile`, `coverage` or `classes`, as in `Score`.

    Attributes
    ----------
    means : dict of str to float
        Mean loss of each forecaster.
    rows, rounds : int
        Number of rows, and of rows with a weight above 0.
    pairs : list of (int, int)
        The pairs of forecasters, by their indices.
    identical : ndarray of bool of shape (n_pairs,)
        Whether the forecasts of a pair never differed.
    unbounded : ndarray of bool of shape (n_pairs,)
        Whether the difference of a pair had no known range in some round.
    infinite : ndarray of int of shape (n_forecasters,)
        Number of infinite log losses, which the sums exclude.
    broken : str
        The first outcome outside the declared bounds, in words; empty if there is none.
    waiting : dict
        The rows whose outcomes are missing, by their ids.

    Examples
    --------
    >>> scores = Scores(["A", "B"])
    >>> scores.update([1, 0], {"A": [0.8, 0.5], "B": [0.5, 0.5]}).means
    {'A': 0.145, 'B': 0.25}
    """

    def __init__(self, names: Sequence[str], loss: str = "square", *, lag: int = 1, **declared: Any) -> None:
        self.names = [str(name) for name in names]
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"names must be at least one, and all different; got {self.names}")
        self.score = Score(loss, **declared)
        k = len(self.names)
        self.pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
        self.rows = self.rounds = 0
        self.weighted = False
        self.infinite = np.zeros(k, np.int64)
        self.identical = np.ones(len(self.pairs), bool)
        self.unbounded = np.zeros(len(self.pairs), bool)
        self.broken = ""
        self.sums = np.zeros((2, 1 + k + SUMS * len(self.pairs)))
        self.lag = whole("lag", lag)
        self.known = np.zeros((lag if lag > 1 else 0, 1 + len(self.pairs)))
        self.reach, self.first = np.zeros((len(self.pairs), 2)), np.zeros(len(self.pairs))
        self.points: list[Totals] = []
        self.waiting: dict[Any, Waiting] = {}

    def update(self, outcomes: Any, forecasts: Any, weight: Any = None, ids: Any = None) -> Self:
        """Add rows to the scores; on an error nothing is changed.

        Parameters
        ----------
        outcomes : array-like of shape (n_rows,)
            The outcomes; NaN if missing.
        forecasts : mapping, dataframe or array-like of shape (n_rows, n_forecasters)
            One column per forecaster; those of an array in the order of `names`. With classes, or for intervals, a
            forecast is a row of numbers: a 2-D array under its name, or columns ``A:rain``, ``A:sun`` or ``A:low``,
            ``A:high``.
        weight : array-like of shape (n_rows,) or None, default None
            Importance of each row, fixed before its outcome; None is 1.
        ids : array-like of shape (n_rows,) or None, default None
            Ids by which `bring` identifies rows with missing outcomes; None uses the number of the row, from 0.

        Returns
        -------
        self
        """
        y, made, c = self._checked(outcomes, forecasts, weight)
        missing = np.isnan(y)
        waiting = self._without_outcome(np.flatnonzero(missing & (c > 0.0)), made, c, ids) if missing.any() else {}
        place = np.flatnonzero((c > 0.0) & ~missing)
        rows, some = self.rows + place, slice(None) if place.size == y.size else place
        self._play(rows, y[some], [h[some] for h in made], c[some], lambda t: f"row {rows[t]}")
        self.waiting |= waiting
        self.rows += y.size
        return self

    def bring(self, ids: Any, outcomes: Any) -> Self:
        """Add outcomes that were missing; their rows become rounds now, in this order.

        Parameters
        ----------
        ids : array-like of shape (n_rows,)
            The ids given to `update`, or the numbers of the rows, from 0.
        outcomes : array-like of shape (n_rows,)
            Their outcomes.

        Returns
        -------
        self

        Examples
        --------
        >>> scores = Scores("AB").update([1, np.nan], {"A": [0.8, 0.5], "B": [0.5, 0.5]})
        >>> len(scores.waiting), scores.bring([1], [0]).means
        (1, {'A': 0.145, 'B': 0.25})
        """
        y, keys = self.score.outcomes(outcomes), np.asarray(ids).tolist()
        if len(keys) != y.size:
            raise ValueError(f"{len(keys)} ids were given, but there are {y.size} outcomes")
        if len(set(keys)) < len(keys):
            raise ValueError(f"id {next(k for k in keys if keys.count(k) > 1)!r} was given twice")
        lost = [key for key in keys if key not in self.waiting]
        if lost:
            raise ValueError(f"no row with the id {lost[0]!r} waits for its outcome")
        found = [self.waiting[key] for key in keys]
        made = [np.array([row.forecasts[k] for row in found]) for k in range(len(self.names))]
        if found:
            rows, c = np.array([row.row for row in found]), np.array([row.weight for row in found])
            self._play(rows, y, made, c, lambda t: f"id {keys[t]!r}")
        for key in keys:
            del self.waiting[key]
        return self

    def _checked(self, outcomes: Any, forecasts: Any, weight: Any) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """The outcomes, the forecasts of each forecaster, and the weights, checked."""
        y = self.score.outcomes(outcomes, missing=True)
        found = columns(forecasts, self.names, self.score.parts)
        given = {k: self.score.forecasts(v, k) for k, v in found.items()}
        for name, h in given.items():
            same_length(h, y.size, name)
        return y, list(given.values()), weights(weight, y.size)

    def _without_outcome(self, rows: np.ndarray, made: list[np.ndarray], c: np.ndarray, ids: Any) -> dict[Any, Waiting]:
        """Rows that wait, by their ids, which must be new."""
        keys = [self.rows + int(t) for t in rows] if ids is None else np.asarray(ids)[rows].tolist()
        twice = [key for key in keys if key in self.waiting]
        if twice or len(set(keys)) < len(keys):
            twice = twice or [key for key in keys if keys.count(key) > 1]
            raise ValueError(f"two rows with missing outcomes have the id {twice[0]!r}")
        each = ((t, tuple(h[t].copy() for h in made)) for t in rows.tolist())
        made_rows = [Waiting(self.rows + t, ids is not None, forecasts, float(c[t])) for t, forecasts in each]
        return dict(zip(keys, made_rows, strict=True))

    def _play(
        self, rows: np.ndarray, y: np.ndarray, made: list[np.ndarray], c: np.ndarray, name: Callable[[int], str]
    ) -> None:
        """Add the rounds of some rows to the sums; `name` gives the place of a row in words."""
        outside = self.score.outside(y)
        if outside.any() and not self.broken:
            (low, high), t = self.score.bounds or (math.nan, math.nan), int(outside.argmax())
            self.broken = f"{name(t)}, column 'outcome': {float(y[t])!r} lies outside the declared [{low}, {high}]"
        for p, (i, j) in enumerate(self.pairs):
            self.identical[p] &= np.array_equal(made[i], made[j])
        self.weighted |= bool((c != 1.0).any())
        for start in range(0, y.size, BLOCK):
            part = slice(start, start + BLOCK)
            stream = rows[part] % self.lag if self.lag > 1 else rows[part]
            self._add(stream, y[part], np.stack([h[part] for h in made], axis=1), c[part])

    def _add(self, stream: np.ndarray, y: np.ndarray, h: np.ndarray, c: np.ndarray) -> None:
        each, corners = self.score.rounds(y[:, None], h), self.score.corners(h)
        if not math.isfinite(each.sum()):
            self.infinite += np.isinf(each).sum(axis=0)
        a = 0
        while a < c.size:
            mark = next_point(self.points[-1].rounds if self.points else 0)
            b = min(c.size, a + mark - self.rounds)
            rounds = (each[a:b], corners[a:b], c[a:b], stream[a:b])
            tally(*rounds, self.sums, self.known, self.reach, self.first, self.unbounded)
            self.rounds += b - a
            a = b
            if self.rounds == mark:
                self.points.append(self.totals())

    def __add__(self, other: Scores) -> Scores:
        if (self.names, self.score, self.lag) != (other.names, other.score, other.lag):
            raise ValueError("only scores of the same forecasters by the same loss, with the same lag, add up")
        joined, here = deepcopy(self), self.totals()
        later = np.roll(other.known, self.rows, axis=0)  # by the streams of the joined rows
        joined.known = np.where(later[:, :1] > 0.0, later + np.append(here.weight, here.differences), self.known)
        joined.points += [_joined(here, there) for there in other.points]
        k, (factors, reach, joined.first) = len(self.names), _units(self.first, other.first)
        scaled = other.sums.copy()
        scaled[:, 1 + k :] *= factors.ravel()
        for at in range(self.sums.shape[1]):
            add(joined.sums, at, scaled[0, at])
            add(joined.sums, at, scaled[1, at])
        joined.reach = np.maximum(self.reach, reach * other.reach)
        joined.rows, joined.rounds = self.rows + other.rows, self.rounds + other.rounds
        joined.weighted = self.weighted or other.weighted
        joined.infinite, joined.identical = self.infinite + other.infinite, self.identical & other.identical
        joined.unbounded = self.unbounded | other.unbounded
        joined.broken = self.broken or other.broken
        for key, row in other.waiting.items():
            key = key if row.named else self.rows + key
            if key in joined.waiting:
                raise ValueError(f"two rows with missing outcomes have the id {key!r}")
            joined.waiting[key] = row._replace(row=self.rows + row.row)
        return joined

    def totals(self) -> Totals:
        """The sums so far."""
        k, sums = len(self.names), self.sums.sum(axis=0)
        pairs = sums[1 + k :].reshape(-1, SUMS)
        return Totals(self.rounds, float(sums[0]), sums[1 : 1 + k], pairs, self.reach.copy(), self.first.copy())

    def path(self) -> list[Totals]:
        """The sums after 1, 2, 3, ... rounds, with increasing steps later, and after the last round."""
        points = list(self.points)
        return points if points and points[-1].rounds == self.rounds else [*points, self.totals()]

    @property
    def means(self) -> dict[str, float]:
        """The mean loss of each forecaster; infinite if one of its log losses is."""
        if self.rounds == 0:
            raise ValueError("there is no row with a weight above 0")
        now = self.totals()
        return {
            name: math.inf if self.infinite[k] else float(now.losses[k]) / now.weight
            for k, name in enumerate(self.names)
        }


def next_point(last: int) -> int:
    """The number of rounds at the next point of a path: 1, 2, 3, ..., with increasing steps later."""
    return last + 1 if last < 100 else math.ceil(last * GROWTH)


def _units(here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The factors that convert sums and reaches in units of `there` to the common unit, and that unit."""
    unit = np.where(here > 0.0, here, there)
    ratio = np.where(there > 0.0, there / np.where(unit > 0.0, unit, 1.0), 1.0)
    powers = np.array([0, 0, 0, 2, 2, *range(3, ORDERS + 2), *range(3, ORDERS + 2)])
    return ratio[:, None] ** powers, ratio[:, None], unit


def _joined(here: Totals, there: Totals) -> Totals:
    """The sums of some rounds followed by others."""
    factors, reach, unit = _units(here.first, there.first)
    return Totals(
        here.rounds + there.rounds,
        here.weight + there.weight,
        here.losses + there.losses,
        here.pairs + factors * there.pairs,
        np.maximum(here.reach, reach * there.reach),
        unit,
    )


# ---------------------------------------------------------------- several rounds ahead


class LaggedScores(Scores):
    """Scores of forecasts that were fixed at least `lag` rounds before their outcomes.

    When row t is forecast, the outcomes of rows t - lag and before are known, and those between are not. Rows t, t +
    lag, t + 2 lag, ... are a stream in which each forecast is fixed before its outcome and after the one before it. The
    sums are over all streams, with guesses based on what was known at the last round of each stream; the means of the
    sums over the streams give one combined test (docs/theory.md#scoring).

    Parameters
    ----------
    names, loss, lag, **declared
        As in `Scores`.
    """
