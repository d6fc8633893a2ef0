"""Forecasts made several rounds ahead: the sums of interleaved streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .stream import Scores

if TYPE_CHECKING:
    from collections.abc import Sequence


class LaggedScores(Scores):
    """Scores of forecasts that were fixed `lag` rounds before their outcomes, at the latest.

    When row t is forecast, the outcomes of rows t - lag and before are known, and those between are not. Rows t, t +
    lag, t + 2 lag, ... are a stream in which each forecast is fixed before its outcome and after the one before it. The
    sums are those of all streams together, with guesses from what was known when a stream had its last round; one test
    of them all is made of their means over the streams (docs/theory.md#scoring).

    Parameters
    ----------
    names, loss, **declared
        As in `Scores`.
    lag : int, default 1
        How many rounds ahead forecasts were made; 1 is the next round.
    """

    def __init__(self, names: Sequence[str], loss: str = "square", *, lag: int = 1, **declared: Any) -> None:
        super().__init__(names, loss, **declared)
        self.lag = whole_lag(lag)
        if lag > 1:
            self.known = np.zeros((lag, 1 + len(self.pairs)))


def whole_lag(lag: Any) -> int:
    """A number of rounds ahead, checked."""
    if not isinstance(lag, (int, np.integer)) or isinstance(lag, bool) or lag < 1:
        raise ValueError(f"lag must be a whole number, at least 1; got {lag!r}")
    return int(lag)
