"""From a run and its rows to a certificate.

The run is played again over the rows, which gives the margins and the step of every round, and must end in the same
weights and facts; then the comparator that makes its bound smallest is sought, and its
losses are taken from residuals over the rows. Which theorem speaks of the run is what its learner declares. Beside it
stand the best fixed predictor in hindsight and the best constant, which no theorem needs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MismatchError
from ..online.panel import PanelRun
from ..rows.one_thread import one_thread
from . import adaptive, theorems
from .applied import AppliedTheorem, Judged, rounding
from .band import band
from .best import clock
from .certificate import Assumption, Certificate
from .convex import convex, no_theorem
from .convex import planted as planted_theorem
from .milestones import milestones
from .mistakes import perceptron, winnow
from .outcome import outcome
from .panel import certify_panel
from .penalties import penalised_descent
from .proximal import implicit_descent
from .replay import replay
from .scale_free import scale_free_perceptron
from .square import exponentiated_gradient, implicit_widrow_hoff, widrow_hoff
from .theorems import Verdict

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .band import Band
    from .replay import Rounds

DOUBT, LOST = 1e-6, 1e-3  # errors of the logarithms of weights: from where they are said, and void a certificate
FAMILIES = {  # what a learner may declare as its theorem
    "perceptron": perceptron,
    "winnow": winnow,
    "widrow-hoff": widrow_hoff,
    "implicit-widrow-hoff": implicit_widrow_hoff,
    "exponentiated-gradient": exponentiated_gradient,
    "convex-descent": convex,
    "running": adaptive.running,
    "scale-free": adaptive.scale_free,
    "penalised-descent": penalised_descent,
    "implicit-descent": implicit_descent,
    "scale-free-perceptron": scale_free_perceptron,
    "ridge": adaptive.ridge,
    "vaw": adaptive.forecaster,
    "newton": adaptive.newton,
    "glm-tron": convex,  # on its matching loss; with a planted w* its own
}


def certify_run(
    run: Run,
    data: Data,
    *,
    u: Any = None,
    planted: Any = None,
    tol: float = 0.01,
    label: str | None = None,
    seek_best: bool = True,
) -> Certificate:
    """The certificate of a run over its rows.

    Parameters
    ----------
    run : Run
        The run.
    data : Data
        The rows it was trained on, with targets as it saw them and the same intercept.
    u : array of float, default None
        A comparator to take instead of the one that makes the bound smallest.
    planted : array of float, default None
        For GLM-tron, the w* with y = u(w*.x); without one the regret in the matching loss is certified.
    tol : float, default 0.01
        Relative gap to which the comparator and, where it is not exact, the best fixed predictor are sought.
    label : str, default None
        The class this run stands for.
    seek_best : bool, default True
        Whether the best fixed predictor and the best constant are sought too.

    Returns
    -------
    Certificate

    Raises
    ------
    MismatchError
        If these are not the rows of the run.
    """
    if run.rounds == 0:
        raise MismatchError("the model has played no round yet")
    with one_thread(data.width):
        if isinstance(run, PanelRun):
            return certify_panel(run, data, judge, u, tol, label)
        apply = applied_theorem(run, planted)
        rounds = replay(run, data)
        with clock.timed(0.5 * clock.left()):  # the other half is for the best fixed predictor
            case, found, bound, equality, assumptions, notes = judge(run, data, rounds, u, tol, apply)
        promised = found in (Verdict.HOLDS, Verdict.BROKEN)
        known = outcome(run, data, rounds, case, tol, promised)._asdict() if seek_best else {}
    path = milestones(case.measured, case.rival, case.bound, case.potential, case.change, found)
    return Certificate(
        found, case.theorem, case.quantity, float(case.measured.sum()), bound, case.comparator, assumptions, run.rounds,
        case.best_eta, equality, path, notes, label, **known,
    )  # fmt: skip


def judge(run: Run, data: Data, rounds: Rounds, u: Any, tol: float, apply: Any = None) -> Judged:
    """What the theorem of a run says of it, if its assumptions are met and the steps taken are the theorem's.

    A run is judged alike by itself and as a member of a panel. `apply` applies another theorem than its learner's.
    """
    case = smallest(plain := (apply or applied_theorem(run))(run, data, rounds, u, tol))
    if case is not plain and not _lemma(case, run, rounds)[2]:  # then what the steps took off is not shown
        case = plain
    sizes = band(run, data, rounds, case)
    measured, bound = float(case.measured.sum()), float(case.bound[-1])
    found, equality = theorems.verdict(measured, bound, *sizes)
    assumptions, notes = (*case.assumptions, *_digits(run, rounds)), case.notes
    if case.theorem is theorems.NONE:
        found, equality = Verdict.UNCHECKABLE, False
    elif any(need.met is False for need in assumptions) or found is Verdict.VOID:
        found, equality, bound = Verdict.VOID, False, math.nan
        if not math.isfinite(measured):
            notes = (*notes, f"the measured quantity is {measured}: it overflowed")
    elif any(need.met is None for need in assumptions):
        found, equality = Verdict.UNCHECKABLE, False
    else:
        fault, more = _steps(case, run, rounds, sizes)
        notes = (*notes, *more)
        if fault and (found is Verdict.HOLDS or np.isnan(case.change).any()):
            found, equality, bound = Verdict.UNCHECKABLE, False, math.nan
    return Judged(case, found, bound, equality, assumptions, notes)


def applied_theorem(run: Run, w: Any = None) -> Any:
    """The function that applies the theorem which the run's learner declares, or one for runs without a theorem."""
    name = run.learner.theorem
    if w is not None:
        if name != "glm-tron":
            raise ValueError(f"a planted w* is for glm-tron, not for {run.learner.name}")
        return lambda run, data, t, u, tol: planted_theorem(run, data, t, w)
    if name is None:
        return no_theorem
    if name not in FAMILIES:
        raise ValueError(f"{run.learner.name} declares the theorem {name!r}, which is none of {', '.join(FAMILIES)}")
    return FAMILIES[name]


def smallest(case: AppliedTheorem) -> AppliedTheorem:
    """The form of the theorem whose bound is smaller, with a note of the other; a bound on the plain loss comes first.

    Both are for the same u.
    """
    met = case.met
    if met is None or not met.applies or not math.isfinite(met.bound[-1]):
        return case
    if not case.applies:
        why = next((need.text for need in case.assumptions if need.met is False), "it is not finite")
        return replace(met, notes=(*met.notes, f"the classical form, {case.theorem.statement}, does not apply: {why}"))
    if met.quantity != case.quantity:
        told = f"{case.quantity}: {case.measured.sum():.6g} ≤ {case.bound[-1]:.6g}, by {case.theorem.statement}"
        return replace(met, notes=(*met.notes, told))
    if not met.bound[-1] < case.bound[-1]:
        return case
    told = f"the classical form, {case.theorem.statement}, promises at most {case.bound[-1]:.6g} for this u"
    return replace(met, notes=(*met.notes, told))


def _digits(run: Run, t: Rounds) -> tuple[Assumption, ...]:
    """That rounding left multiplicative weights their digits; nothing where six of them are beyond doubt."""
    moved = float(t.rounding.sum())
    if not run.learner.geometry.multiplicative or moved < DOUBT:
        return ()
    text = f"rounding moved the logarithm of no weight by more than {moved:.2g}, which must be below {LOST:.2g}"
    return (Assumption(text, moved < LOST),)


def _steps(case: AppliedTheorem, run: Run, t: Rounds, sizes: Band) -> tuple[bool, tuple[str, ...]]:
    """Whether the steps taken are not shown to be the theorem's, by its lemma and its sharper form, and what to say."""
    notes: list[str] = []
    if np.isnan(case.change).any():
        return True, (f"the {run.learner.geometry.name} geometry does not say what its steps do to the potential",)
    worst, over, explained = _lemma(case, run, t)
    fault = over > 0.0 and not explained
    if fault:
        notes.append(f"the per-round lemma fails in round {worst + 1} by {over:.2g}: that step is not the theorem's")
    elif over > 0.0:
        notes.append(f"the per-round lemma is off by {over:.2g} in round {worst + 1}, which rounding explains")
    if case.sharper is not None:
        left, right, text = case.sharper
        holds = theorems.verdict(left, right, *sizes)[0] is Verdict.HOLDS
        notes.append(f"sharper: {text} = {left:.6g} {'≤' if holds else '>'} {right:.6g}")
        fault = fault or not holds
    return fault, tuple(notes)


def _lemma(case: AppliedTheorem, run: Run, t: Rounds) -> tuple[int, float, bool]:
    """The round whose change of potential exceeds most what the lemma allows, by how much, and if rounding explains it.

    The excess is 0 where it is within 1e-12 of the terms of both.
    """
    if not (case.change > case.allowed).any():  # then the size of the terms need not be known
        return 0, 0.0, True
    over = case.change - case.allowed - 1e-12 * case.size()
    beyond = over - rounding(run, t, float(np.linalg.norm(case.comparator.u)))
    fault = bool((beyond > 0.0).any())
    worst = int((beyond if fault else over).argmax())
    return worst, max(0.0, float(over[worst])), not fault
