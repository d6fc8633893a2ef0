"""Certificates of gradient descent on all rows, and of stochastic gradient descent."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...batch.gradient_descent import Descent
from ...errors import MismatchError
from ...kernels.floats import Floats
from ...online.facts import same_sums
from ...rows.table import check_known
from .. import theorems
from ..best import clock, comparator
from ..certificate import Assumption, Certificate, Comparator, Milestone
from ..outcome import of_descent
from ..theorems import GRADIENT_DESCENT, STOCHASTIC_GRADIENT_DESCENT, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...online.facts import Facts
    from ...rows.data import Data


AFTER = "mean-after"  # the mean of the weights after each step


def certify_descent(
    descent: Descent, data: Data, output: str, *, u: Any = None, tol: float = 0.01, label: str | None = None
) -> Certificate:
    """Return the certificate of a descent's output over its rows.

    The descent is played again, which verifies that these are its rows and gives the gradients. The comparator
    minimises f(u) + |u - w_s|^2 / (2 Sigma eta); with l2 this is again a loss plus a squared distance, to a start that
    is scaled down. The best fixed predictor, which minimises f alone, is reported as well.

    Parameters
    ----------
    descent : Descent
        The descent.
    data : Data
        The rows it was played on, with targets as it saw them and the same intercept.
    output : {"mean", "mean-after", "last", "best"}
        Which weights the certificate is about. The mean after the steps is the mean of a descent that starts after the
        first step and has one more gradient, and is certified as such.
    u : array_like, default None
        A comparator to use instead of the best in hindsight.
    tol : float, default 0.01
        The relative gap to which the comparator is computed.
    label : str, default None
        The class, in one-vs-rest.

    Raises
    ------
    MismatchError
        If these are not the rows of the descent.
    """
    if descent.rounds == 0:
        raise MismatchError("the model has played no round yet")
    weights = descent.output(output)
    facts, marks = _replay(descent, data)
    if output == AFTER:
        first = descent.restarted()
        first.play(data, 1)
        rounds, descent = descent.rounds, first.begun_here()
        marks = _play(descent, data, rounds)
        facts = descent.facts
    loss, start = descent.learner.loss, descent.first
    kappa = 1.0 / facts.rate
    factors, curvature = data.c / data.c.sum(), descent.l2 + kappa
    if u is None:
        with clock.timed(0.5 * clock.left()):  # the other half is for the best fixed predictor
            middle = start * (kappa / curvature)
            rival = comparator.best(data, loss, descent.learner.geometry, curvature, factors, middle, tol)
    else:
        rival = comparator.given(data.check(u))
    objective, u, notes = partial(descent.objective, data), rival.u, rival.notes
    own, distance = objective(u), float((u - start) @ (u - start))
    measured = objective(weights)
    bound = theorems.gradient_descent(own, distance, facts.rate, facts.rate_gradient)
    theorem = GRADIENT_DESCENT
    scale = abs(objective(start))
    verdict, equality = theorems.verdict(measured, bound, scale)
    began = "wₛ, where the first step led, first" if output == AFTER else "wₛ first"
    text = f"f is convex and every gradient was met; {began}, {descent.rounds:,} rounds, Σ η = {facts.rate:.6g}"
    need = Assumption(text, True)
    uncovered = _uncovered(descent, output)
    if uncovered is not None:
        theorem, bound, verdict, equality = theorems.NONE, math.nan, Verdict.UNCHECKABLE, False
        need = Assumption(uncovered, None)
    elif descent.batch is not None:
        theorem, equality = STOCHASTIC_GRADIENT_DESCENT, False
        verdict = Verdict.UNCHECKABLE if math.isfinite(bound) else Verdict.VOID
        need = Assumption("rows drawn uniformly with replacement: a bound on the mean over all draws, not on one", None)
        notes = (*notes, f"in expectation, with the |vₜ|² of these draws: f ≤ {bound:.6g}; measured {measured:.6g}")
    best_eta = math.nan
    if facts.rate_max == facts.rate_min and math.isfinite(bound):
        best_eta = theorems.descent_best_rate(distance, facts.gradient)
    path: tuple[Milestone, ...] = ()
    if verdict in (Verdict.HOLDS, Verdict.BROKEN):
        path = tuple(_milestone(objective, mark, output, u, own, distance) for mark in marks)
        if any(theorems.verdict(m.measured, m.bound, scale)[0] is Verdict.BROKEN for m in path):
            verdict, notes = Verdict.BROKEN, (*notes, "the bound is broken in an earlier round")
    quantity = f"f, the mean {loss.name} loss{' with l2' if descent.l2 else ''}, of the {output} iterate"
    return Certificate(
        verdict, theorem, quantity, measured, bound,
        Comparator(u, own, float(np.linalg.norm(u)), rival.gap, rival.how), (need,), descent.rounds, best_eta,
        equality, path, notes, label, **of_descent(descent, data, measured, tol)._asdict(),
    )  # fmt: skip


def _uncovered(descent: Descent, output: str) -> str | None:
    """Return the reason why no theorem covers the output; None if one does."""
    if descent.learner.theorem is None:
        return "this learner names no theorem"
    if output == "last":
        return "for the last iterate there is no theorem here: take output='mean'"
    if output == "best" and descent.batch is not None:
        return "for the best of some iterates of drawn rows there is no theorem here: take output='mean'"
    return None


class DescentMark(NamedTuple):
    """A full-batch descent after some rounds: its mean and last weights, the smallest f, and its sums of rates."""

    rounds: int
    mean: Floats
    weights: Floats
    rate: float
    rate_gradient: float
    best: float


def _replay(descent: Descent, data: Data) -> tuple[Facts, list[DescentMark]]:
    """Play the descent again, check that it is the same, and return its facts and its marks."""
    if data.width != descent.width:
        raise MismatchError(f"the model has {descent.width} coordinates, these rows have {data.width}")
    again = descent.restarted()
    try:
        marks = _play(again, data, descent.rounds)
    except ValueError as error:
        raise MismatchError(f"{error}: these are not the rows of the run") from error
    check_known(descent.known_by, again.known_by, descent.ordered)
    pairs = (descent.weights, again.weights), (descent.mean, again.mean)
    far = max(float(np.abs(a - b).max()) for a, b in pairs)
    size = max(np.abs(descent.weights).max(), np.abs(descent.mean).max(), np.abs(descent.first).max())
    if not same_sums(descent.tally, again.tally) or not far <= 1e-9 * size:
        raise MismatchError(
            "the model was not trained on these rows: the sum of f along its iterates was "
            f"{descent.facts.loss:.9g}, here it is {again.facts.loss:.9g}, and weights differ by {far:.3g}"
        )
    return again.facts, marks


def _play(descent: Descent, data: Data, rounds: int) -> list[DescentMark]:
    """Play `rounds` rounds; for a full batch, return the marks after 1, 2, 4, ... rounds and after the last."""
    marks: list[DescentMark] = []

    def add(_: int) -> None:
        t = descent.rounds
        if descent.batch is None and (t & (t - 1) == 0 or t == rounds):
            sums = float(descent.tally[0].rate), float(descent.tally[0].rate_gradient)
            marks.append(DescentMark(t, descent.mean, descent.weights, *sums, min(descent.values)))

    descent.play(data, rounds, notify=add)
    return marks


def _milestone(
    objective: Callable[[Floats], float], mark: DescentMark, output: str, u: Floats, own: float, distance: float
) -> Milestone:
    measured = mark.best if output == "best" else objective(mark.mean)
    bound = theorems.gradient_descent(own, distance, mark.rate, mark.rate_gradient)
    apart = mark.weights - u
    return Milestone(mark.rounds, measured, own, bound, float(apart @ apart))
