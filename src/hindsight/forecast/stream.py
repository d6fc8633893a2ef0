"""Scores of several forecasters along a stream: sums that add over chunks, shards and resumed streams."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..kernels.compiler import inlined, kernel
from .scores import Score, columns, same_length, weights

if TYPE_CHECKING:
    from collections.abc import Sequence

GROWTH = 1.02  # from one point of the path to the next, once there are a hundred


@inlined
def add(sums, at, x):  # type: ignore[no-untyped-def]
    """sums[0, at] += x, with the rounding error of that in sums[1, at] (compensated summation)."""
    s = sums[0, at]
    t = s + x
    sums[1, at] += (s - t) + x if abs(s) >= abs(x) else (x - t) + s
    sums[0, at] = t


@kernel
def tally(losses, c, sums):  # type: ignore[no-untyped-def]
    """Add rounds to the sums: c, c^2, c loss of each forecaster, c d of each pair, and (c d)^2 of each pair."""
    k = losses.shape[1]
    pairs = k * (k - 1) // 2
    for t in range(c.size):
        add(sums, 0, c[t])
        add(sums, 1, c[t] * c[t])
        at = 2 + k
        for i in range(k):
            add(sums, 2 + i, c[t] * losses[t, i])
            for j in range(i + 1, k):
                d = c[t] * (losses[t, i] - losses[t, j])
                add(sums, at, d)
                add(sums, at + pairs, d * d)
                at += 1


class Totals(NamedTuple):
    """The sums after some rounds, with weights c and differences d of losses.

    Attributes
    ----------
    rounds : int
        Number of rounds.
    weight, weight_squares : float
        Sums of c and of c^2.
    losses : ndarray of shape (n_forecasters,)
        Sums of c times the loss.
    differences, squares : ndarray of shape (n_pairs,)
        Sums of c d and of (c d)^2.
    """

    rounds: int
    weight: float
    weight_squares: float
    losses: np.ndarray
    differences: np.ndarray
    squares: np.ndarray


class Scores:
    """Scores of K forecasters along a stream, updated chunk by chunk.

    The numbers do not depend, to the bit, on how the rows are cut into chunks. ``a + b`` are the scores of a's rounds
    followed by b's. Rows of weight 0 are not rounds.

    Parameters
    ----------
    names : sequence of str
        Names of the forecasters.
    loss : {"square", "log", "quadratic"}, default "square"
        As in `Score`.
    epsilon : float or None, default None
        As in `Score`.
    bounds : (float, float) or None, default None
        As in `Score`.

    Attributes
    ----------
    means : dict of str to float
        Mean loss of each forecaster.
    rows, rounds : int
        Number of rows, and of rows with a weight above 0.
    pairs : list of (int, int)
        The pairs of forecasters, by their indices.
    identical : ndarray of bool of shape (n_pairs,)
        Whether a pair never gave different forecasts.
    infinite : ndarray of int of shape (n_forecasters,)
        Number of infinite log losses, which the sums leave out.
    broken : str
        The first value outside the declared range, in words; empty if there is none.

    Examples
    --------
    >>> scores = Scores(["A", "B"])
    >>> scores.update([1, 0], {"A": [0.8, 0.5], "B": [0.5, 0.5]}).means
    {'A': 0.145, 'B': 0.25}
    """

    def __init__(
        self,
        names: Sequence[str],
        loss: str = "square",
        *,
        epsilon: float | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        self.names = [str(name) for name in names]
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"names must be at least one, and all different; got {self.names}")
        self.score = Score(loss, epsilon, bounds)
        k = len(self.names)
        self.pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
        self.rows = self.rounds = 0
        self.max_weight, self.weighted = 0.0, False
        self.infinite = np.zeros(k, np.int64)
        self.identical = np.ones(len(self.pairs), bool)
        self.broken = ""
        self.sums = np.zeros((2, 2 + k + 2 * len(self.pairs)))
        self.points: list[tuple[int, np.ndarray]] = []

    def update(self, outcomes: Any, forecasts: Any, weight: Any = None) -> Self:
        """Add rows to the scores; on an error nothing has changed.

        Parameters
        ----------
        outcomes : array-like of shape (n_rows,)
            The outcomes.
        forecasts : mapping, dataframe or array-like of shape (n_rows, n_forecasters)
            One column per forecaster; those of an array in the order of `names`.
        weight : array-like of shape (n_rows,) or None, default None
            Importance of each row, fixed before its outcome; None is 1.

        Returns
        -------
        self
        """
        y = self.score.outcomes(outcomes)
        given = {k: self.score.forecasts(v, k) for k, v in columns(forecasts, self.names).items()}
        for name, h in given.items():
            same_length(h, y.size, name)
        c, rows = weights(weight, y.size), y.size
        place = np.flatnonzero(c)
        if place.size < rows:
            y, c, given = y[place], c[place], {k: h[place] for k, h in given.items()}
        each = np.empty((y.size, len(given)))
        for k, h in enumerate(given.values()):
            each[:, k] = self.score.rounds(y, h)
        self.broken = self.broken or self._first_broken(y, given, self.rows + place)
        endless = np.isinf(each)
        if endless.any():
            self.infinite += endless.sum(axis=0)
            each[endless] = 0.0
        made = list(given.values())
        for p, (i, j) in enumerate(self.pairs):
            self.identical[p] &= np.array_equal(made[i], made[j])
        self.max_weight = max(self.max_weight, c.max(initial=0.0))
        self.weighted |= bool((c != 1.0).any())
        self.rows += rows
        self._add(each, c)
        return self

    def _first_broken(self, y: np.ndarray, given: dict[str, np.ndarray], rows: np.ndarray) -> str:
        named = {"outcome": y, **given} if self.score.loss == "quadratic" else given
        for name, values in named.items():
            outside = self.score.outside(values)
            if outside.any():
                at = int(outside.argmax())
                return f"row {rows[at]}, column {name!r}: {float(values[at])!r} lies outside {self.score.declared}"
        return ""

    def _add(self, each: np.ndarray, c: np.ndarray) -> None:
        a = 0
        while a < c.size:
            last = self.points[-1][0] if self.points else 0
            mark = last + 1 if last < 100 else math.ceil(last * GROWTH)
            b = min(c.size, a + mark - self.rounds)
            tally(each[a:b], c[a:b], self.sums)
            self.rounds += b - a
            a = b
            if self.rounds == mark:
                self.points.append((mark, self.sums.sum(axis=0)))

    def __add__(self, other: Scores) -> Scores:
        if (self.names, self.score) != (other.names, other.score):
            raise ValueError("only scores of the same forecasters by the same loss add up")
        joined = deepcopy(self)
        shift = self.sums.sum(axis=0)
        joined.points += [(self.rounds + t, shift + sums) for t, sums in other.points]
        for at in range(self.sums.shape[1]):
            add(joined.sums, at, other.sums[0, at])
            add(joined.sums, at, other.sums[1, at])
        joined.rows, joined.rounds = self.rows + other.rows, self.rounds + other.rounds
        joined.max_weight, joined.weighted = max(self.max_weight, other.max_weight), self.weighted or other.weighted
        joined.infinite, joined.identical = self.infinite + other.infinite, self.identical & other.identical
        joined.broken = self.broken or other.broken
        return joined

    def totals(self) -> Totals:
        """The sums so far."""
        return self._split(self.rounds, self.sums.sum(axis=0))

    def path(self) -> list[Totals]:
        """The sums after 1, 2, 3, ... rounds, later at ever longer steps, and after the last."""
        points = [self._split(t, sums) for t, sums in self.points]
        return points if points and points[-1].rounds == self.rounds else [*points, self.totals()]

    def _split(self, rounds: int, sums: np.ndarray) -> Totals:
        k, p = len(self.names), len(self.pairs)
        losses, differences, squares = np.split(sums[2:], [k, k + p])
        return Totals(rounds, float(sums[0]), float(sums[1]), losses, differences, squares)

    @property
    def means(self) -> dict[str, float]:
        """The mean loss of each forecaster; infinite where one log loss is."""
        if self.rounds == 0:
            raise ValueError("there is no row with a weight above 0")
        now = self.totals()
        return {
            name: math.inf if self.infinite[k] else float(now.losses[k]) / now.weight
            for k, name in enumerate(self.names)
        }
