"""What a run lost, beside what the best constant and the best fixed predictor lose over the same rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kernels.losses import Square
from ..online.margins import each_loss, each_mean
from . import theorems
from .advice import cure
from .applied import loss_of
from .best import best_fixed
from .best.constant import best_constant, constant_point, fewest_of_constant
from .best.fewest import fewest
from .certificate import MISTAKES, WEIGHTED, Best
from .course import regret_curve, summed
from .ledger import Opponent, Terms
from .theorems import Verdict

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .applied import AppliedTheorem, Judged
    from .certificate import RegretCurve
    from .hindsight import Known
    from .ledger import Ledger
    from .replay import Rounds

SAME = 1e-9  # relative difference up to which what a theorem measures is the loss itself


class Outcome(NamedTuple):
    """What is known of a run in hindsight, whatever its theorem says."""

    best: Best | None
    constant: float
    lost: float
    weight: float
    advice: str = ""
    curve: RegretCurve | None = None


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what overflows is shown as that
def outcome(run: Run, data: Data, t: Rounds, case: AppliedTheorem, tol: float, promised: bool) -> Outcome:
    """The outcome of a run.

    Parameters
    ----------
    run, data, t : Run, Data and Rounds
        The run, its rows and its rounds.
    case : AppliedTheorem
        Its theorem, applied: what it measures tells whether mistakes are counted.
    tol : float
        Relative gap to which the best fixed predictor is sought where it is not exact.
    promised : bool
        Whether the bound of the theorem is a promise for this run.
    """
    c = t.c
    factors = np.bincount(t.row, c, data.rounds)
    measured = case.measured
    at_hand = {"the comparator": case.comparator.u, "the weights of the run": run.weights}
    if case.quantity in (MISTAKES, WEIGHTED):
        best = Best(*fewest(data, factors, run.learner.geometry, at_hand.values()))
        constant, lost, course = fewest_of_constant(t.y, c), measured, case.course.measured
        rival = c * (data.y * data.margins(best.u) <= 0.0)[t.row]
    elif case.theorem is theorems.GLM_TRON:  # squares of errors behind a link: not convex, and at least 0
        best = Best(case.comparator.u, case.comparator.loss, case.comparator.loss, case.comparator.found)
        constant, lost, course = best_constant(Square(2.0), t.y, c), measured, case.course.measured
        rival = c * (each_mean(run.learner.loss, data.margins(best.u)[t.row]) - t.y) ** 2
    else:
        loss = loss_of(run.learner)
        each = c * each_loss(loss, t.z, t.y)
        lost = float(each.sum())
        lost = measured if abs(lost - measured) <= SAME * abs(measured) else lost
        course = summed(each, t.marks)
        best = of_loss(data, loss, factors, run.learner.geometry, tol, at_hand)
        constant = best_constant(loss, t.y, c)
        rival = c * each_loss(loss, data.margins(best.u), data.y)[t.row]
    sums = t.marks, summed(c, t.marks), course, summed(rival, t.marks)
    return told(run, data, case, promised and lost == measured, best, constant, lost, *sums)


def told(
    run: Run, data: Data, case: AppliedTheorem, promised: bool, best: Best | None, constant: float, lost: float,
    marks: np.ndarray, mass: np.ndarray, course: np.ndarray, rival: np.ndarray,
) -> Outcome:  # fmt: skip
    """The outcome, with what to do about a run that lost more than the best constant, and its curve."""
    advice = cure(run, data, case.best_eta) if lost > constant * (1.0 + SAME) else ""
    curve = regret_curve(marks, mass, course, rival, case.course.bound if promised else None)
    return Outcome(best, constant, lost, float(mass[-1]), advice, curve)


def outcome_of_ledger(run: Run, data: Data, ledger: Ledger, known: Known, found: Judged) -> Outcome:
    """The outcome of a run that a ledger followed."""
    case, (marks, mass, sums) = found.case, ledger.sums_at()
    known.tried["the comparator"] = Opponent(case.comparator.u, lost=case.course.rival / known.unit)
    best, rival = known.best_of(("the comparator", "the weights of the run", "the best constant"))
    own, promised = known.unit * Terms(*sums[0].T).paid, found.verdict in (Verdict.HOLDS, Verdict.BROKEN)
    return told(run, data, case, promised, best, known.constant, case.measured, marks, mass, own, rival)


def of_loss(
    data: Data, loss: Any, factors: np.ndarray, geometry: Any, tol: float, at_hand: dict[str, np.ndarray] | None = None
) -> Best:
    """The best fixed predictor of a loss, as a certificate has it: none at hand, by name, nor a constant loses less."""
    best = Best(*best_fixed(data, loss, factors, geometry, tol))
    tried = (at_hand or {}) | constant_point(data, loss, factors, geometry)
    for name, u in tried.items():
        if np.isfinite(u).all():
            best = best.or_else(name, u, float(factors @ each_loss(loss, data.margins(u), data.y)))
    return best
