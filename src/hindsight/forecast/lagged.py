"""Forecasts made several rounds ahead: interleaved streams, each of which is scored by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .scores import columns, same_length, weights
from .stream import Scores, Totals

if TYPE_CHECKING:
    from collections.abc import Sequence

STEP = 1.1  # from one point of the path to the next


class LaggedScores(Scores):
    """Scores of forecasts that were fixed `lag` rounds before their outcomes, at the latest.

    When row t is forecast, the outcomes of rows t - lag and before are known, and those between are not. Rows t, t +
    lag, t + 2 lag, ... are a stream in which each forecast is fixed before its outcome and after the one before it.

    Parameters
    ----------
    names, loss, bounds
        As in `Scores`.
    lag : int, default 1
        How many rounds ahead forecasts were made; 1 is the next round.
    """

    def __init__(
        self,
        names: Sequence[str],
        loss: str = "square",
        *,
        bounds: tuple[float, float] | None = None,
        lag: int = 1,
    ) -> None:
        super().__init__(names, loss, bounds=bounds)
        if not isinstance(lag, (int, np.integer)) or isinstance(lag, bool) or lag < 1:
            raise ValueError(f"lag must be a whole number, at least 1; got {lag!r}")
        self.parts = [Scores(names, loss, bounds=bounds) for _ in range(lag)]
        self.by_stream: list[tuple[Totals, ...]] = []

    def update(self, outcomes: Any, forecasts: Any, weight: Any = None) -> Self:
        """Add rows, as `Scores.update` does; on an error nothing has changed."""
        y = self.score.outcomes(outcomes)
        given = {k: self.score.forecasts(v, k) for k, v in columns(forecasts, self.names).items()}
        for name, h in given.items():
            same_length(h, y.size, name)
        c, lag, start = weights(weight, y.size), len(self.parts), self.rows
        super().update(y, given, c)
        a = 0
        while a < y.size:
            b = min(y.size, max(a + 1, math.ceil((start + a) * STEP) - start))
            for r, part in enumerate(self.parts):
                rows = slice(a + (r - start - a) % lag, b, lag)
                part.update(y[rows], {k: h[rows] for k, h in given.items()}, c[rows])
            self.by_stream.append(tuple(part.totals() for part in self.parts))
            a = b
        return self

    def streams(self) -> list[tuple[Totals, ...]]:
        """The sums of every stream at ever longer steps, from where some row had a weight."""
        return [point for point in self.by_stream if any(part.rounds for part in point)]
