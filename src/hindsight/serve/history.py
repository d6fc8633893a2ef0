"""The history of learning: the loss over time and that of the best constant, recent mistakes, and intervals."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.coverage import covered_so_far
from ..rows.labels import chosen_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..training.state import TrainingState
    from .live import PlayedRequest, PlayedRows

POINTS = 256  # at most; then every second one is left out
MISTAKES = 20
RANGES = 60  # rows that are shown with their intervals
FAR = 4.0  # times the recent mean loss; a larger loss is a mistake


class ServiceHistory:
    """Points [row, mean loss, mean loss of the best constant so far, time] of the loss curve, and recent rows.

    Attributes
    ----------
    points : list of list of float
        The loss curve. With intervals, each point also has the fraction of rows covered and the bounds on it.
    ranges : deque of list of float
        The newest rows with intervals as [row, target, low, high], with None for an infinite end.
    mistakes : deque of dict
        The newest rows with a wrong prediction or, for numbers, a large loss; without the values of the features.
    """

    def __init__(self) -> None:
        self.points: list[list[float]] = []
        self.step = 1
        self.mistakes: deque[dict[str, Any]] = deque(maxlen=MISTAKES)
        self.ranges: deque[list[float | None]] = deque(maxlen=RANGES)

    def add(self, state: TrainingState, first: int, played: Sequence[PlayedRequest], time: float) -> None:
        """Add the results of a commit; `state` is that after it, and `first` the number of its first row."""
        far = self.far()
        for piece in dict.fromkeys(each.piece for each in played):
            self._add_mistakes(first, piece, far)
            self._add_intervals(first, piece)
            first += len(piece.y)
        self._add_point(state, first - 1, time)

    def _add_point(self, state: TrainingState, sequence: int, time: float) -> None:
        """Add a point to the curve if one is due."""
        if self.points and sequence < self.points[-1][0] + self.step:
            return
        tracker = state.tracker
        covered = covered_so_far(tracker) if tracker is not None and tracker.sums[0].weight else ()
        losses = state.compared_losses()[0] / state.weight, state.mean_of_constant()
        self.points.append([sequence, *losses, time, *covered])
        if len(self.points) > POINTS:
            self.points = self.points[1::2]
            self.step *= 2

    def _add_mistakes(self, first: int, piece: PlayedRows, far: float) -> None:
        """Record badly predicted rows; `first` is the number of the first row, and losses above `far` are large."""
        losses, y, codes = piece.losses, piece.y, piece.codes
        wrong = losses > (far if codes is None else 0.0)
        if codes is not None:
            wrong &= chosen_codes(piece.z) != codes
        at = np.flatnonzero(wrong)[-MISTAKES:]
        if not at.size:
            return
        for k, value in zip(at.tolist(), piece.model.predictions(piece.z[at]).tolist(), strict=True):
            mistake = {"sequence": first + k, "predicted": value, "target": y[k].item(), "loss": float(losses[k])}
            self.mistakes.append(mistake)

    def _add_intervals(self, first: int, piece: PlayedRows) -> None:
        """Record the newest rows with their intervals, if any; `first` is the number of the first row."""
        if piece.half is None or piece.model.labels is not None:
            return
        count = len(piece.y)
        last, said = slice(max(0, count - RANGES), count), piece.said
        each = zip(range(first, first + count)[last], piece.y[last], said["low"][last], said["high"][last], strict=True)
        self.ranges.extend([row, float(y), low, high] for row, y, low, high in each)

    def far(self) -> float:
        """A threshold for large losses, from the mean loss of the newer half of the rows; 0 if there are few points."""
        if len(self.points) < 2:
            return 0.0
        rows, mean = self.points[-1][:2]
        old = next((point for point in reversed(self.points) if 2 * point[0] <= rows), self.points[0])
        return FAR * max(0.0, (rows * mean - old[0] * old[1]) / (rows - old[0]))

    def to_plain(self) -> dict[str, Any]:
        """The history as plain values."""
        return {"points": self.points, "step": self.step, "mistakes": list(self.mistakes), "ranges": list(self.ranges)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> ServiceHistory:
        """Restore a history from `to_plain`."""
        out = cls()
        out.points, out.step = list(plain["points"]), int(plain["step"])
        out.mistakes.extend(plain["mistakes"])
        out.ranges.extend(plain.get("ranges", ()))  # earlier versions keep none
        return out
