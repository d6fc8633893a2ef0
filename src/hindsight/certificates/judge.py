"""The verdict on a theorem applied to a run, from its bound, its assumptions and its per-round lemma."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.floats import EPS
from ..online.margins import each_loss, each_mean, each_slope
from . import theorems
from .applied import AppliedTheorem, Band, Judged, divergence_change, loss_as_measured, rounding
from .certificate import MISTAKES, WEIGHTED, Assumption
from .families.adaptive import TERMS, margins_of_start
from .families.convex import convex, implicit_descent, no_theorem
from .families.convex import planted as planted_theorem
from .families.mistakes import perceptron, scale_free_perceptron, winnow
from .families.penalised import penalised_descent
from .families.square import exponentiated_gradient, implicit_widrow_hoff, widrow_hoff
from .theorems import Verdict

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .audit import Rounds

DOUBT, LOST = 1e-6, 1e-3  # errors of the logarithms of weights: from where they are said, and void a certificate
FAMILIES = {  # what a learner may declare as its theorem, beside those that read a ledger
    "perceptron": perceptron,
    "winnow": winnow,
    "widrow-hoff": widrow_hoff,
    "implicit-widrow-hoff": implicit_widrow_hoff,
    "exponentiated-gradient": exponentiated_gradient,
    "convex-descent": convex,
    "scale-free": no_theorem,  # at rates that change
    "penalised-descent": penalised_descent,
    "implicit-descent": implicit_descent,
    "scale-free-perceptron": scale_free_perceptron,
    "glm-tron": convex,  # on its matching loss; with a planted w* its own
}


def judge(run: Run, data: Data, rounds: Rounds, u: Any, tol: float, apply: Any = None) -> Judged:
    """Apply the theorem of a run to its rounds and judge it; `apply` replaces the theorem that the learner declares."""
    case = smallest(plain := (apply or applied_theorem(run))(run, data, rounds, u, tol))
    if case is not plain and not _lemma(case, run, rounds)[2]:  # then what the steps took off is not shown
        case = plain
    return verdict_on(run, replace(case, band=band(run, data, rounds, case)), rounds)


def verdict_on(run: Run, case: AppliedTheorem, rounds: Rounds | None = None) -> Judged:
    """Return the verdict: whether the bound holds, the assumptions are met and the steps are those of the theorem.

    A run is judged in the same way by itself and as a member of a panel. `rounds` is needed if the theorem has a lemma.
    """
    assert case.band is not None
    sizes, measured, bound = case.band, case.measured, case.bound
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
        silent = case.lemma is not None and np.isnan(case.lemma.change).any()
        if fault and (found is Verdict.HOLDS or silent):
            found, equality, bound = Verdict.UNCHECKABLE, False, math.nan
    return Judged(case, found, bound, equality, assumptions, notes)


def applied_theorem(run: Run, w: Any = None) -> Any:
    """The function that applies the theorem declared by the run's learner, or `no_theorem`."""
    name = run.learner.theorem
    if w is not None:
        if name != "glm-tron":
            raise ValueError(f"a planted w* is for glm-tron, not for {run.learner.name}")
        return lambda run, data, t, u, tol: planted_theorem(run, data, t, w)
    if name is None:
        return no_theorem
    if name not in FAMILIES:
        known = ", ".join(str(each) for each in dict.fromkeys((*FAMILIES, *TERMS)))
        raise ValueError(f"{run.learner.name} declares the theorem {name!r}, which is not one of {known}")
    return FAMILIES[name]


def smallest(case: AppliedTheorem) -> AppliedTheorem:
    """The form of the theorem with the smaller bound, with a note on the other; a bound on the plain loss is preferred.

    Both forms have the same u.
    """
    met = case.met
    if met is None or not met.applies or not math.isfinite(met.bound):
        return case
    if not case.applies:
        why = next((need.text for need in case.assumptions if need.met is False), "it is not finite")
        return replace(met, notes=(*met.notes, f"the classical form, {case.theorem.statement}, does not apply: {why}"))
    if met.quantity != case.quantity:
        told = f"{case.quantity}: {case.measured:.6g} ≤ {case.bound:.6g}, by {case.theorem.statement}"
        return replace(met, notes=(*met.notes, told))
    if not met.bound < case.bound:
        return case
    told = f"the classical form, {case.theorem.statement}, promises at most {case.bound:.6g} for this u"
    return replace(met, notes=(*met.notes, told))


def _digits(run: Run, t: Rounds | None) -> tuple[Assumption, ...]:
    """The assumption that rounding did not spoil multiplicative weights; empty if six digits are certainly correct."""
    moved = 0.0 if t is None else float(t.rounding.sum())
    if not run.learner.geometry.multiplicative or moved < DOUBT:
        return ()
    text = f"rounding moved the logarithm of no weight by more than {moved:.2g}, which must be below {LOST:.2g}"
    return (Assumption(text, moved < LOST),)


def _steps(case: AppliedTheorem, run: Run, t: Rounds | None, sizes: Band) -> tuple[bool, tuple[str, ...]]:
    """Check the steps by the lemma and the sharper form of the theorem: whether they fail, and notes."""
    notes: list[str] = []
    if case.lemma is not None and np.isnan(case.lemma.change).any():
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


def _lemma(case: AppliedTheorem, run: Run, t: Rounds | None) -> tuple[int, float, bool]:
    """The round that violates the lemma most, the excess of its change of potential, and whether rounding explains it.

    The excess is 0 where it is within 1e-12 of the terms of both.
    """
    lemma = case.lemma
    if lemma is None or not (lemma.change > lemma.allowed).any():  # then the size of the terms need not be known
        return 0, 0.0, True
    assert t is not None
    over = lemma.change - lemma.allowed - 1e-12 * lemma.size()
    beyond = over - rounding(run, t, float(np.linalg.norm(case.comparator.u)))
    fault = bool((beyond > 0.0).any())
    worst = int((beyond if fault else over).argmax())
    return worst, max(0.0, float(over[worst])), not fault


# ---------------------------------------------------------------- rounding


def band(run: Run, data: Data, t: Rounds, case: AppliedTheorem) -> Band:
    """The band of a theorem that was applied to a run: how far rounding may lift what was measured above its bound.

    It is 1e-9 times the bound plus the loss of the starting weights, which is Sigma c (y - base)^2 for squared errors
    and Sigma c |y - base| for losses that grow linearly, plus a bound on the rounding errors of margins, steps and
    sums. With targets far from 0, differences lose many digits, however small the losses are.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows makes a certificate void
        times = t.c * t.eta if case.quantity.endswith("times its rate") else t.c
        sums = 2.0 * EPS * t.z.size * float(np.abs(case.course.bound).max())
        lost = float((times * _start_loses(run, data, t, case)).sum())
        off = float((times * _margins(run, data, t, case)).sum())
        if run.learner.geometry.linear:
            loss, raw = run.learner.loss, run.learner.theorem == "glm-tron" or case.quantity.endswith("times its rate")
            share = 1.0 / float(loss.scale) if loss.quadratic and not raw else 1.0
            off += share * float(np.nansum(times / (t.c * t.eta) * _potentials(run, data, t, case)))  # NaN never holds
        return Band(lost, sums + off)


def _start_loses(run: Run, data: Data, t: Rounds, case: AppliedTheorem) -> np.ndarray:
    """The loss of the starting weights in each round, for weights c of 1."""
    if case.quantity in (MISTAKES, WEIGHTED):
        return np.ones(t.z.size)
    z = t.of(margins_of_start(run, data))
    if case.theorem is theorems.GLM_TRON:
        return (each_mean(run.learner.loss, z) - t.y) ** 2
    return np.abs(each_loss(loss_as_measured(run.learner), z, t.y))


def _margins(run: Run, data: Data, t: Rounds, case: AppliedTheorem) -> np.ndarray:
    """How much rounding in the margins of comparator and run may change the loss of each round, for weights c of 1."""
    u = case.comparator.u
    lanes = EPS * (8.0 + 0.125 * run.width)
    sizes = t.of(data.margin_sizes(u))
    if case.quantity in (MISTAKES, WEIGHTED):
        return lanes * sizes
    loss = loss_as_measured(run.learner)
    other = np.abs(each_slope(loss, t.of(data.margins(u)), t.y)) * (sizes + np.abs(t.y))
    return lanes * (other + np.abs(each_slope(loss, t.z, t.y)) * (np.abs(t.z) + np.abs(t.y)))


def _potentials(run: Run, data: Data, t: Rounds, case: AppliedTheorem) -> np.ndarray:
    """How much rounding in each step may add to the potential 2 D(u, w)."""
    u, first = case.comparator.u, run.first
    off = rounding(run, t, float(np.linalg.norm(u)))
    if run.learner.geometry.multiplicative:
        return off
    far = float((u - first) @ (u - first)) + 2.0 * np.cumsum(divergence_change(t, t.of(data.margins(u))))
    size = float(first @ first) + 2.0 * np.cumsum(t.change)
    return off + EPS * np.sqrt(np.maximum(0.0, size) * np.maximum(0.0, far))
