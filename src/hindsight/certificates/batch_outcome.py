"""What methods over epochs lost, beside what the best constant and the best fixed predictor lose on the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.euclidean import Euclidean
from ..online.parts import LINKS
from .best import comparator
from .best.constant import best_constant, fewest_of_constant
from .best.fewest import SEPARATES, fewest
from .best.predictor import percent
from .certificate import Best
from .outcome import SAME, Outcome, of_loss

if TYPE_CHECKING:
    from ..batch.gradient_descent import Descent
    from ..batch.isotron import SingleIndexProblem
    from ..batch.perceptron import BatchPerceptron
    from ..kernels.floats import Floats
    from ..rows.data import Data
    from .certificate import Comparator

NOT_CONVEX = "squared errors behind a link are not convex: which fixed predictor loses least is not known"


def of_descent(descent: Descent, data: Data, measured: float, tol: float) -> Outcome:
    """The outcome of descent on f, a mean already: the least f of any u, and the mean loss of the best constant.

    A constant has no weights, so nothing is added to its loss for their size.
    """
    loss, geometry, l2 = descent.learner.loss, descent.learner.geometry, float(descent.l2)
    weight = float(data.c.sum())
    factors = data.c / weight
    if l2 == 0.0:
        best = of_loss(data, loss, factors, geometry, tol, {"the last weights": descent.weights})
    else:
        found = comparator.best(data, loss, geometry, l2, factors, np.zeros(data.width), tol)
        best = Best(found.u, found.objective, found.gap, percent(found.gap, found.objective))
    constant = best_constant(loss, data.y, data.c) / weight
    advice = ""
    if measured > constant * (1.0 + SAME):
        rose = len(descent.values) > 1 and descent.values[-1] > descent.values[0]
        advice = "take a smaller rate" if rose else "play more rounds, or take a larger rate"
    return Outcome(best, constant, measured, 1.0, advice)


def of_pocket(model: BatchPerceptron, data: Data, separator: Floats | None) -> Outcome:
    """The training errors of a pocket, beside the fewest of any fixed predictor."""
    if separator is None:
        best = Best(*fewest(data, data.c, Euclidean(1.0), (model.pocket, model.weights)))
    else:
        best = Best(separator, 0.0, 0.0, SEPARATES)
    return Outcome(best, fewest_of_constant(data.y, data.c), float(model.errors), float(data.rounds))


def of_matching_loss(problem: SingleIndexProblem, rounds: int, total: float, tol: float = 0.01) -> Outcome | None:
    """The outcome of rounds on a matching loss; None where the link has no name."""
    loss: Any = LINKS.get(problem.link.function.name)
    if loss is None:
        return None
    factors = rounds * problem.proportion
    best = of_loss(problem.data, loss, factors, None, tol)
    return Outcome(best, best_constant(loss, problem.y, factors), total, float(rounds))


def of_squares(problem: SingleIndexProblem, rounds: int, total: float, planted: Comparator | None) -> Outcome:
    """The outcome of rounds on squared errors behind a link, where only a planted predictor is known to be the best."""
    best = None if planted is None else Best(planted.u, planted.loss, planted.loss, planted.found)
    return Outcome(best, rounds * problem.target_variance(), total, float(rounds))
