"""Comparing learners of one pass: in the same units, and as forecasters of each row before it is learnt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.wording import MISTAKES, SQUARES, Scores
from ..errors import OptionError
from ..online.margins import each_mean
from .state import in_squares, judged_in_logs, log_loss_of_constant

if TYPE_CHECKING:
    from ..forecast.comparison import Comparison
    from ..online.run import Run
    from .session import PlayedChunk
    from .state import TrainingState


def scores_of(state: TrainingState, k: int) -> Scores:
    """The figures of a learner for its type of target, and those of the best constant."""
    return scores_of_runs(state.runs[k], state.labels, state.mistakes[k], state.constant)


def scores_of_runs(runs: list[Run], labels: list[str] | None, mistakes: int, constant: np.ndarray | None) -> Scores:
    """Like `scores_of`, from one learner's runs, its mistakes and the sums that give the best constant."""
    facts = runs[0].facts
    weight = facts.weight or 1.0
    if labels is None:
        other = math.nan if constant is None or not constant[0] else float(constant[2] / constant[0])
        return Scores(square=facts.square / weight, square_of_constant=other)
    right = 1.0 - (facts.mistake_weight / weight if len(runs) == 1 else mistakes / (facts.rounds or 1))
    if constant is None:
        return Scores(right=right)
    top = int(np.argmax(constant))
    return Scores(right=right, right_of_constant=float(constant[top] / (constant.sum() or 1.0)), label=labels[top])


def losses_of(state: TrainingState, k: int) -> tuple[str, dict[str, float]]:
    """The unit of a learner's loss, and the mean losses of the learner and of the best constant, if known."""
    runs, unknown = state.runs[k], {"best": math.nan, "guaranteed": math.nan}
    learner = runs[0].learner
    own, constant = state.losses()[k] / (runs[0].facts.weight or 1.0), math.nan
    if state.labels is None:
        unit = SQUARES if in_squares(learner) else f"{learner.loss.name} loss"
        constant = state.mean_of_constant() if unit == SQUARES else math.nan
    elif judged_in_logs(learner):
        constant = log_loss_of_constant(state.constant) / state.weight
        unit = "log loss" if len(runs) == 1 else f"log loss (summed over the {len(runs)} labels)"
    else:
        unit, own = MISTAKES, 1.0 - scores_of(state, k).right
    return unit, {"loss": own, "constant": constant} | unknown


def figures(state: TrainingState) -> list[dict[str, float]]:
    """The comparable figures of each learner and, last, of the best constant; NaN if undefined.

    For labels: accuracy, and the log loss if margins give probabilities (with several labels, the sum of the losses of
    each against the rest). For numbers: RMSE and R².
    """
    out = list[dict[str, float]]()
    each = [scores_of(state, k) for k in range(len(state.runs))]
    if state.labels is None:
        out = [{"RMSE": math.sqrt(found.square), "R²": found.r2} for found in each]
        return [*out, {"RMSE": math.sqrt(each[0].square_of_constant), "R²": 0.0}]
    for found, runs in zip(each, state.runs, strict=True):
        logs = judged_in_logs(runs[0].learner)
        loss = sum(run.facts.loss for run in runs) / state.weight if logs else math.nan
        out.append({"accuracy": found.right, "log loss": loss})
    beside = log_loss_of_constant(state.constant) / state.weight
    return [*out, {"accuracy": each[0].right_of_constant, "log loss": beside}]


class LearnerScores:
    """Row-by-row scores of the learners of a session as forecasters.

    The forecast for two labels is the probability of the second if the loss gives one, otherwise 1 or 0. Numbers are
    forecast by the prediction of the margin and scored by the squared error, whose intervals need bounds on the
    targets.

    Parameters
    ----------
    state : TrainingState
        Where training starts.
    names : sequence of str
        A name for each learner.
    bounds : (float, float) or None, default None
        Bounds on the targets if they are numbers.

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
        from ..forecast.stream import Scores  # few runs need it, and importing takes a quarter of a second

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
        """The comparison of every pair, valid at all times."""
        from ..forecast.comparison import comparison

        return comparison(self.scores, anytime=True)
