"""From a run and its rows to a certificate.

The rows are read again: the run is replayed, which shows that these are the rows it was trained on and gives the
margins and the step of every round; then the comparator in hindsight is sought, and its losses are taken from residuals
over the rows. Which theorem speaks of the run is what its learner declares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MismatchError
from ..online.panel import PanelRun
from . import adaptive, theorems
from .certificate import Certificate
from .convex import convex, no_theorem
from .convex import planted as planted_theorem
from .milestones import milestones
from .panel import certify_panel
from .mistakes import perceptron, winnow
from .replay import replay
from .square import exponentiated_gradient, implicit_widrow_hoff, widrow_hoff
from .theorems import Verdict

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .applied import AppliedTheorem

FAMILIES = {  # what a learner may declare as its theorem
    "perceptron": perceptron,
    "winnow": winnow,
    "widrow-hoff": widrow_hoff,
    "implicit-widrow-hoff": implicit_widrow_hoff,
    "exponentiated-gradient": exponentiated_gradient,
    "convex-descent": convex,
    "running": adaptive.running,
    "ridge": adaptive.ridge,
    "vaw": adaptive.forecaster,
    "newton": adaptive.newton,
    "glm-tron": convex,  # on its matching loss; with a planted w* its own
}


def certify_run(
    run: Run, data: Data, *, u: Any = None, planted: Any = None, tol: float = 0.01, label: str | None = None
) -> Certificate:
    """The certificate of a run over its rows.

    Parameters
    ----------
    run : Run
        The run.
    data : Data
        The rows it was trained on, with targets as it saw them and the same intercept.
    u : array of float, default None
        A comparator to take instead of the best in hindsight.
    planted : array of float, default None
        For GLM-tron, the w* with y = u(w*.x); without one the regret in the matching loss is certified.
    tol : float, default 0.01
        Relative gap to which the comparator is sought.
    label : str, default None
        The class this run stands for.

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
    if isinstance(run, PanelRun):
        return certify_panel(run, data, FAMILIES, u, tol, label)
    apply = applied_theorem(run, planted)
    rounds = replay(run, data)
    case = apply(run, data, rounds, u, tol)
    scale = float((rounds.c * rounds.y**2).sum())
    measured, bound = float(case.measured.sum()), float(case.bound[-1])
    found, equality = theorems.verdict(measured, bound, scale)
    notes = case.notes
    if case.theorem is theorems.NONE:
        found, equality = Verdict.UNCHECKABLE, False
    elif any(need.met is False for need in case.assumptions) or found is Verdict.VOID:
        found, equality, bound = Verdict.VOID, False, math.nan
        if not math.isfinite(measured):
            notes = (*notes, f"the measured quantity is {measured}: it overflowed")
    else:
        broken, more = _checks(case, scale)
        notes = (*notes, *more)
        if broken:
            found, equality = Verdict.BROKEN, False
        elif np.isnan(case.change).any():
            found, equality, bound = Verdict.UNCHECKABLE, False, math.nan
            where = run.learner.geometry.name
            notes = (*notes, f"the {where} geometry does not say what its steps do to the potential")
    path = milestones(case.measured, case.rival, case.bound, case.potential, case.change, found)
    return Certificate(
        found, case.theorem, case.quantity, measured, bound, case.comparator, case.assumptions, run.rounds,
        case.best_eta, equality, path, notes, label,
    )  # fmt: skip


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


def _checks(case: AppliedTheorem, scale: float) -> tuple[bool, tuple[str, ...]]:
    """Whether the steps taken break the theorem's lemma or its sharper form, and what to say of both."""
    notes: list[str] = []
    broken = _lemma_breaks(case)
    if broken is not None:
        notes.append(f"the per-round lemma is broken in round {broken + 1}: the step taken is not the theorem's")
    if case.sharper is not None:
        left, right, text = case.sharper
        if theorems.verdict(left, right, scale)[0] is Verdict.HOLDS:
            notes.append(f"sharper: {text} = {left:.6g} ≤ {right:.6g}")
        else:
            return True, (*notes, f"the sharper form is broken: {text} = {left:.6g} > {right:.6g}")
    return broken is not None, tuple(notes)


def _lemma_breaks(case: AppliedTheorem) -> int | None:
    """The first round in which the potential fell by less than the lemma says, beyond rounding."""
    if not (case.change > case.allowed).any():  # then the size of the terms need not be known
        return None
    bad = np.flatnonzero(case.change > case.allowed + 1e-12 * case.size())
    return int(bad[0]) if bad.size else None
