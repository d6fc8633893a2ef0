"""Certificates of Isotron and of GLM-tron over epochs.

Sums over the rows verify that they are those of the model. The rounds are run again, which gives the potential after
every round. A planted w* is checked on the data; without one, no data can show that y = u(w* . x).
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...batch.isotonic import argsort, take
from ...batch.isotron import GivenLink, History, SingleIndexProblem, run_rounds
from ...errors import MismatchError
from ...kernels.floats import Floats
from ...rows.table import check_known
from .. import theorems
from ..applied import AppliedTheorem, Band, Judged, Lemma
from ..best.comparator import descend
from ..best.predictor import closeness
from ..certificate import Assumption, Comparator
from ..course import Course
from ..outcome import NOT_CONVEX, of_matching_loss, of_squares
from ..theorems import GLM_TRON_MEAN, ISOTRON, MATCHING_LOSS, Verdict
from .convex import PLANTED, shape_of_link

if TYPE_CHECKING:
    from ..certificate import Certificate

KEPT = 1 << 23  # margins of a run up to which a link of the user's own is looked at
QUANTITY = "mean squared error, summed over the rounds,"


def certify_rounds(
    problem: SingleIndexProblem, history: History, *, planted: Any = None, u: Any = None, label: str | None = None
) -> Certificate:
    """Return the certificate of the rounds of `history` over the rows of `problem`.

    Parameters
    ----------
    problem : SingleIndexProblem
        The rows, the link and the step.
    history : History
        The rounds to certify.
    planted : array_like, default None
        The w* with y = u(w* . x) for the rows as given, the intercept's weight last; it is checked on the data.
    u : array_like, default None
        For GLM-tron without a planted w*, a comparator to use instead of the best in hindsight.
    label : str, default None
        The class, in one-vs-rest.
    """
    if problem.width != history.last.size:
        raise MismatchError(f"the model has {history.last.size} coordinates, these rows have {problem.width}")
    check_known(history.known_by, problem.measured.known_by())
    if planted is not None:
        w = problem.check(planted) * problem.scale
        problem = _watched(problem)
        case = _planted(problem, _rerun(problem, history, w), w)
    elif problem.link.integral is not None:
        case = _matching(problem, history, u)
    else:
        case = _without_theorem(problem, _rerun(problem, history, None))
    total, bound, rounds = case.measured, case.bound, len(history.loss)
    slack = 0.0 if case.band is None else case.band.rounding
    found, equality = theorems.verdict(total, bound, rounds * problem.squared_targets(), slack)
    broken = None
    if any(need.met is False for need in case.assumptions):
        found, equality, bound = Verdict.VOID, False, math.nan
    elif any(need.met is None for need in case.assumptions):
        found, equality = Verdict.UNCHECKABLE, False
    elif found is Verdict.HOLDS:
        assert case.lemma is not None
        over = case.lemma.change > case.lemma.allowed + 1e-12 * case.lemma.size()
        if over.any():
            found, equality, bound, broken = Verdict.UNCHECKABLE, False, math.nan, int(over.argmax()) + 1
    if case.theorem is MATCHING_LOSS:
        known = of_matching_loss(problem, rounds, total)
    else:
        known = of_squares(problem, rounds, total, None if planted is None else case.comparator)
    notes = _notes(problem, history.loss, case, found, broken)
    if known is not None and known.best is None:
        notes = (*notes, NOT_CONVEX)
    return Judged(case, found, bound, equality, case.assumptions, notes).certificate(rounds, label, known)


def _course(measured: Floats, own: float, bound: Any) -> Course:
    """The course of what is measured in each round, with a comparator whose loss is the same in every round."""
    rounds = np.arange(1, len(measured) + 1)
    return Course(rounds, np.cumsum(measured), own * rounds, np.broadcast_to(bound, rounds.shape))


@dataclass(frozen=True)
class WatchedLink(GivenLink):
    """A user-defined link that records the margins of the rounds and its predictions there, up to `KEPT` of them."""

    met: list[tuple[Floats, Floats]] = field(default_factory=list)

    def fit(self, z: Floats, y: Floats, weight: Floats | None) -> tuple[Floats, Any]:
        """Return what the link predicts."""
        mean, _ = super().fit(z, y, weight)
        if (len(self.met) + 2) * z.size <= KEPT:
            self.met.append((z, mean))
        return mean, None

    def shape(self, z: Floats, rounds: int) -> Assumption:
        """The assumption that it is nondecreasing and Lipschitz over the margins of all rounds and of w*."""
        if sum(met.size for met, _ in self.met) < rounds * z.size:
            text = f"u is nondecreasing and {self.lipschitz:g}-Lipschitz: the margins of {rounds:,} rounds are too many"
            return Assumption(f"{text} to compare (at most {KEPT:,})", None)
        margins, means = zip(*self.met, (z, self.at(None, z)), strict=True)
        return shape_of_link(self.lipschitz, np.concatenate(margins), np.concatenate(means))


def _watched(problem: SingleIndexProblem) -> SingleIndexProblem:
    """The problem, with its link wrapped in a `WatchedLink` if that is user-defined."""
    link = problem.link
    if not link.known or link.integral is not None:
        return problem
    again = copy(problem)
    again.link = WatchedLink(link.function, link.lipschitz)
    return again


def _rerun(problem: SingleIndexProblem, history: History, comparator: Floats | None) -> History:
    """Run the rounds again; they must end at the weights of the model."""
    again = run_rounds(problem, len(history.loss), history.start, comparator=comparator)
    far = float(np.abs(again.last - history.last).max())
    if not far <= 1e-9 * max(1e-300, float(np.abs(history.last).max())):
        raise MismatchError(
            f"the model was not trained on these rows: its last weights differ by {far:.3g} from what they give; "
            f"its mean squared errors add up to {history.loss.sum():.9g}, here to {again.loss.sum():.9g}"
        )
    return again


def _planted(problem: SingleIndexProblem, history: History, w: Floats) -> AppliedTheorem:
    """Apply Isotron's theorem, or GLM-tron's: by Jensen's inequality for the mean update they have one form."""
    eta, x2, constant = problem.eta, problem.x2**2, float(problem.link.lipschitz)
    keep = problem.c > 0.0
    z = problem.margins(w)
    link = problem.link
    mean = link.at(None, z) if link.known else link.fit(z, problem.y, problem.weight)[0]
    width = float(z[keep].max() - z[keep].min())
    step = eta * constant * x2
    needs = [Assumption(f"ηλX₂² = {step:.6g}, which must be below 2 (λ = {constant:g})", step < 2.0)]
    if link.known:
        far = float(np.abs(mean - problem.y)[keep].max())
        text = f"y = u(w*·x): largest difference {far:.3g}, at most {PLANTED:g} allowed"
        needs.append(Assumption(text, far <= PLANTED))
        if isinstance(link, WatchedLink):
            needs.append(link.shape(z, len(history.loss)))
    else:
        falls, steep = _realisable(z[keep], problem.y[keep], constant)
        text = f"y never falls along w*·x: by {falls:.3g}, at most {PLANTED:g} allowed"
        needs.append(Assumption(text, falls <= PLANTED))
        text = f"y is {constant:g}-Lipschitz along w*·x: {steep:.3g} too steep, at most {PLANTED:g} allowed"
        needs.append(Assumption(text, steep <= PLANTED))
        least, most = float(problem.y[keep].min()), float(problem.y[keep].max())
        needs.append(Assumption(f"y lies in [0, 1]: {least:g} to {most:g}", least >= 0.0 and most <= 1.0))
    distance = float((w - history.start) @ (w - history.start))
    bound = theorems.glm_tron(eta, x2, constant, distance)
    change = eta**2 * history.gradient - 2.0 * eta * history.along
    allowed = theorems.lemma_single_index(eta, x2, constant, history.loss)
    own = problem.mean((problem.y - mean) ** 2)
    rounds = len(history.loss)
    # With y = u(w*.x) + e the inner product of the lemma is off by at most |e| (range of w*.x + 2 |y - yhat|/lambda).
    largest = float(np.abs(problem.y[keep]).max()) + float(np.abs(mean[keep]).max()) + 1.0
    off = 2.0 * eta * PLANTED * (width + 2.0 * largest / constant)
    size = 1.0 + np.abs(change) + np.abs(allowed) + 2.0 * eta * np.abs(history.along) + off / 1e-12
    gain = theorems.single_index_gain(eta, x2, constant)
    return AppliedTheorem(
        GLM_TRON_MEAN if problem.link.known else ISOTRON,
        QUANTITY,
        _course(history.loss, own, bound),
        Comparator(w / problem.scale, rounds * own, float(np.linalg.norm(w)), 0.0, "planted"),
        tuple(needs),
        Lemma(change, allowed, distance, lambda: size),
        theorems.single_index_best_rate(x2, constant),
        band=Band(0.0, rounds * off / gain if gain > 0.0 else 0.0),  # of planted rows that are off by PLANTED
    )


def _realisable(z: Floats, y: Floats, constant: float) -> tuple[float, float]:
    """Return the largest decrease of y and its largest increase beyond the Lipschitz constant, over pairs ordered by z.

    Half of the first is the smallest e such that some nondecreasing function is within e of every y. Half of the second
    is the same for Lipschitz functions.
    """
    order = argsort(z)
    z, y = take(z, order), take(y, order)
    # Among points of equal z the largest y may come first as well as last.
    first = np.concatenate(([True], z[1:] != z[:-1]))
    group = np.flatnonzero(first)
    high, low, at = np.maximum.reduceat(y, group), np.minimum.reduceat(y, group), z[group]
    falls = float((np.maximum.accumulate(high) - low).max())
    steep = float((high - constant * at - np.minimum.accumulate(low - constant * at)).max())
    return max(0.0, falls), max(0.0, steep)


def _matching(problem: SingleIndexProblem, history: History, given: Any) -> AppliedTheorem:
    """Apply the bound of descent to the mean matching loss F, which is convex whatever the data."""
    eta, rounds = problem.eta, len(history.loss)
    if given is None:
        u, value, gap = descend(problem.matching_loss, history.start, 1.0 / (eta * rounds))
        how = closeness(gap, value)
    else:
        u, gap, how = problem.check(given) * problem.scale, math.inf, "given"
    again = _rerun(problem, history, u)
    own = problem.matching_loss(u)[0]
    distance = float((u - history.start) @ (u - history.start))
    bound = theorems.matching_loss(eta, own, distance, again.gradient)
    change = 0.5 * eta**2 * again.gradient - eta * again.along
    allowed = theorems.lemma_matching_loss(eta, own, again.match, again.gradient)
    size = 1.0 + np.abs(change) + eta * (np.abs(again.match) + abs(own) + np.abs(again.along))
    needs = (Assumption("the matching loss is convex and every gradient was met; nothing is asked of the data", True),)
    return AppliedTheorem(
        MATCHING_LOSS,
        "mean matching loss, summed over the rounds,",
        _course(again.match, own, bound),
        Comparator(u / problem.scale, rounds * own, float(np.linalg.norm(u)), gap * rounds, how),
        needs,
        Lemma(change, allowed, 0.5 * distance, lambda: size),
        theorems.descent_best_rate(distance, float(again.gradient.sum())),
    )


def _without_theorem(problem: SingleIndexProblem, history: History) -> AppliedTheorem:
    """Measure the loss if no w* was declared; there is no bound."""
    rounds = len(history.loss)
    own = problem.target_variance()
    if problem.link.known:
        text = "y = u(w*·x) for some w*: none was declared, and the integral of the link is unknown"
        theorem = GLM_TRON_MEAN
    else:
        text = "y = u(w*·x) for some w* and a nondecreasing Lipschitz u: none was declared"
        theorem = ISOTRON
    mean = Comparator(np.zeros(problem.width), rounds * own, 0.0, math.inf, "the mean of y")
    return AppliedTheorem(theorem, QUANTITY, _course(history.loss, own, math.nan), mean, (Assumption(text, None),))


def _notes(
    problem: SingleIndexProblem, loss: Floats, case: AppliedTheorem, found: Verdict, broken: int | None
) -> tuple[str, ...]:
    k = int(loss.argmin())
    best = f"the best of {len(loss):,} iterates is round {k + 1:,}: mean squared error {loss[k]:.6g}"
    if found is Verdict.HOLDS and case.theorem is not MATCHING_LOSS:
        best += f", promised at most {case.bound / len(loss):.6g}"
    notes = [best]
    if problem.scale != 1.0:
        notes.append(f"rows divided by X₂ = {problem.scale:.6g}; norms here are those of weights of the divided rows")
    if broken is not None:
        notes.append(f"the per-round lemma fails in round {broken}: that step is not the theorem's")
    return tuple(notes)
