"""Forecasts made several rounds ahead: interleaved streams, each of which is scored by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

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
    names, loss, **declared
        As in `Scores`.
    lag : int, default 1
        How many rounds ahead forecasts were made; 1 is the next round.
    """

    def __init__(self, names: Sequence[str], loss: str = "square", *, lag: int = 1, **declared: Any) -> None:
        super().__init__(names, loss, **declared)
        if not isinstance(lag, (int, np.integer)) or isinstance(lag, bool) or lag < 1:
            raise ValueError(f"lag must be a whole number, at least 1; got {lag!r}")
        self.parts = [Scores(names, loss, **declared) for _ in range(lag)]
        self.by_stream: list[tuple[Totals, ...]] = []

    def update(self, outcomes: Any, forecasts: Any, weight: Any = None, ids: Any = None) -> Self:
        """Add rows, as `Scores.update` does; on an error nothing has changed."""
        y, made, c = self._checked(outcomes, forecasts, weight)
        start = self.rows
        super().update(outcomes, forecasts, weight, ids)
        a = 0
        while a < y.size:
            b = min(y.size, max(a + 1, math.ceil((start + a) * STEP) - start))
            self._share(np.arange(start + a, start + b), y[a:b], [h[a:b] for h in made], c[a:b])
            a = b
        return self

    def bring(self, ids: Any, outcomes: Any) -> Self:
        """Bring outcomes that were missing, as `Scores.bring` does."""
        y, keys = self.score.outcomes(outcomes), np.asarray(ids).tolist()
        found = [self.waiting[key] for key in keys if key in self.waiting]
        super().bring(ids, outcomes)
        if found:
            made = [np.array([row.forecasts[k] for row in found]) for k in range(len(self.names))]
            self._share(np.array([row.row for row in found]), y, made, np.array([row.weight for row in found]))
        return self

    def _share(self, rows: np.ndarray, y: np.ndarray, made: list[np.ndarray], c: np.ndarray) -> None:
        """Add rows whose outcomes are known to the streams they belong to."""
        for r, part in enumerate(self.parts):
            mine = np.flatnonzero((rows % len(self.parts) == r) & ~np.isnan(y))
            given = dict(zip(self.names, (h[mine] for h in made), strict=True))
            part.update(self._outcomes(y[mine]), given, c[mine])
        self.by_stream.append(tuple(part.totals() for part in self.parts))

    def _outcomes(self, y: np.ndarray) -> Any:
        """Outcomes as they are given, where classes have become indices."""
        if self.score.classes is None:
            return y
        return np.array([str(label) for label in self.score.classes], np.str_)[y.astype(np.int64)]

    def streams(self) -> list[tuple[Totals, ...]]:
        """The sums of every stream at ever longer steps, from where some row had a weight."""
        return [point for point in self.by_stream if any(part.rounds for part in point)]
