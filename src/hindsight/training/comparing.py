"""Learners of one pass beside each other: in the same units, and compared as forecasters of each row before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError
from ..online.margins import each_mean
from .state import log_loss_of_constant

if TYPE_CHECKING:
    from ..forecast.comparison import Comparison
    from .session import PlayedChunk
    from .state import TrainingState


def figures(state: TrainingState) -> list[dict[str, float | None]]:
    """For each learner, and last for the best constant, the figures that can be compared; None where there is none.

    Labels: the log loss (where margins give probabilities; of several labels the sum of each against the rest) and the
    error rate. Numbers: the mean squared error.
    """
    weight = state.weight
    out: list[dict[str, float | None]] = []
    rows = state.runs[0][0].facts.rounds or 1
    for runs, mistakes in zip(state.runs, state.mistakes, strict=True):
        learner = runs[0].learner
        if state.labels is None:
            out.append({"mean squared error": sum(run.facts.square for run in runs) / weight})
            continue
        logs = learner.targets == "unit" and learner.loss.link == "logistic" and learner.score == "loss"
        loss = sum(run.facts.loss for run in runs) / weight if logs else None
        out.append({"log loss": loss, "error rate": mistakes / rows})
    if state.labels is None:
        out.append({"mean squared error": float(state.constant[2]) / weight})
    else:
        c = state.constant
        out.append({"log loss": log_loss_of_constant(c) / weight, "error rate": float(1.0 - c.max() / c.sum())})
    return out


class LearnerScores:
    """Scores of the learners of a session as forecasters, row by row.

    Two labels are forecast by the probability of the second where the loss gives one, otherwise by 1 or 0; numbers by
    what the margin predicts, in the quadratic loss, whose intervals need bounds of the targets.

    Parameters
    ----------
    state : TrainingState
        Where training starts.
    names : sequence of str
        A name for each learner.
    bounds : (float, float) or None, default None
        Numbers: all targets lie between these.

    Raises
    ------
    OptionError
        If there is nothing to compare, or more than two labels.
    """

    def __init__(self, state: TrainingState, names: list[str], bounds: tuple[float, float] | None = None) -> None:
        if len(names) < 2:
            raise OptionError("compare", "needs at least two learners or rates: --learner A,B or --eta 0.01,0.1")
        if state.plan.passes > 1:
            raise OptionError("compare", "takes one pass: a later one predicts rows that it has learnt")
        if state.labels is not None and len(state.labels) > 2:
            raise OptionError("compare", f"takes two labels or numbers; there are {len(state.labels)} labels")
        from ..forecast.stream import Scores  # which few runs need, and which takes a quarter of a second

        self.losses = [runs[0].learner.loss for runs in state.runs]
        self.labels, self.names = state.labels, names
        self.scores = Scores(names, "square" if self.labels else "quadratic", bounds=None if self.labels else bounds)

    def add(self, chunk: PlayedChunk) -> None:
        """Score the rows of a chunk."""
        z = chunk.margins
        made = {name: self._forecast(k, np.ascontiguousarray(z[:, k])) for k, name in enumerate(self.names)}
        y = np.asarray(chunk.y if chunk.codes is None else chunk.codes, np.float64)
        self.scores = self.scores.update(y, made, chunk.weight)

    def _forecast(self, k: int, z: np.ndarray) -> np.ndarray:
        loss: Any = self.losses[k]
        if self.labels is not None and loss.link != "logistic":
            return (z > 0.0).astype(np.float64)
        return each_mean(loss, z)

    def comparison(self) -> Comparison:
        """The findings for every pair, valid at every time."""
        from ..forecast.comparison import comparison

        return comparison(self.scores, anytime=True)
