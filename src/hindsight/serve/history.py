"""How learning went: the loss along the way, against the best constant, and the newest mistakes."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any

from ..rows.labels import number_text

if TYPE_CHECKING:
    from ..training.state import TrainingState
    from .live import Played

POINTS = 256  # at most; then every second one is left out
MISTAKES = 20
FAR = 4.0  # times the mean loss of late: from there on a number is far from its target


class History:
    """Points of the path: [row, mean loss, mean loss of the best constant so far, time]; and rows predicted badly.

    Attributes
    ----------
    points : list of list of float
        The path.
    mistakes : deque of dict
        The newest rows whose prediction was wrong, or for numbers far from the target: without their values.
    """

    def __init__(self) -> None:
        self.points: list[list[float]] = []
        self.step = 1
        self.mistakes: deque[dict[str, Any]] = deque(maxlen=MISTAKES)

    def add(self, state: TrainingState, sequence: int, time: float) -> None:
        """Take note of where learning stands, if it is time."""
        if self.points and sequence < self.points[-1][0] + self.step:
            return
        self.points.append([sequence, state.compared_losses()[0] / state.weight, state.mean_of_constant(), time])
        if len(self.points) > POINTS:
            self.points = self.points[1::2]
            self.step *= 2

    def add_mistakes(self, state: TrainingState, first: int, played: Played) -> None:
        """Take note of rows that were predicted badly."""
        from .live import predictions_of

        piece, a, b = played.piece, played.a, played.b
        assert piece is not None
        least = FAR * self.points[-1][1] if self.points and state.labels is None else 0.0
        start = max(a, b - MISTAKES)
        losses = piece.losses[start:b].tolist()
        if max(losses) <= least:
            return
        said = predictions_of(state, piece.z[start:b])
        for k, loss in enumerate(losses):
            target = piece.y[start + k].item()
            if least < loss < math.inf and (state.labels is None or said[k] != text(target)):
                at = first + start - a + k
                self.mistakes.append({"sequence": at, "predicted": said[k], "target": target, "loss": loss})

    def to_plain(self) -> dict[str, Any]:
        """As plain values."""
        return {"points": self.points, "step": self.step, "mistakes": list(self.mistakes)}

    @classmethod
    def from_plain(cls, told: dict[str, Any]) -> History:
        """What `to_plain` told."""
        out = cls()
        out.points, out.step = list(told["points"]), int(told["step"])
        out.mistakes.extend(told["mistakes"])
        return out


def text(target: Any) -> str:
    """A target as a label."""
    return number_text(target) if isinstance(target, float) else str(target)
