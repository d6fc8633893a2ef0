"""Certificates of the batch perceptron."""

from __future__ import annotations

import math

import numpy as np

from ...batch.perceptron import BatchPerceptron
from ...batch.separability import Separation, rounding, separate
from ...kernels.floats import Floats
from ...rows.data import Data
from .. import theorems
from ..best.separator import hard_margin
from ..certificate import UPDATES, Assumption, Certificate, Comparator
from ..outcome import of_pocket
from ..theorems import BATCH_PERCEPTRON, BATCH_PERCEPTRON_STARTED, Verdict

SMALL = 4_000_000  # numbers in the rows up to which the hard margin is computed


def certify_batch_perceptron(model: BatchPerceptron, data: Data, label: str | None = None) -> Certificate:
    """Return the certificate of a batch perceptron: its updates against (R|u|)^2, with u of largest margin.

    If the start w_s is not 0, the bound depends on it as well, and u is the known separator with the smallest bound.

    Parameters
    ----------
    model : BatchPerceptron
        The perceptron.
    data : Data
        The rows it was trained on.
    label : str, default None
        The class, in one-vs-rest.

    Raises
    ------
    MismatchError
        If these are not its rows.
    """
    model.replay(data)
    R = math.sqrt(float(data.row_norms2().max()))
    start = np.zeros(data.width) if model.first is None else model.first
    started = bool(start.any())
    theorem = BATCH_PERCEPTRON_STARTED if started else BATCH_PERCEPTRON
    u, lower, found, shown = _separator(model, data, R, start)
    steps = Assumption(
        f"w = {'wₛ' if started else '0'} at first, and w += y x on violated rows alone; R = max |x|₂ = {R:.6g}", True
    )
    best = "the fewest of all hypotheses visited" if model.all_counted else "the fewest of the hypotheses counted"
    pocket = f"the pocket has {model.errors:,} training errors of {data.rounds:,}, {best}"
    if u is None:
        known = shown.separable is False
        need = Assumption("some u must be right on every row: " + "; ".join(shown.notes), False if known else None)
        rival = Comparator(
            model.pocket, float(model.errors), float(np.linalg.norm(model.pocket)), math.inf, "the pocket"
        )
        verdict, bound, equality = Verdict.VOID if known else Verdict.UNCHECKABLE, math.nan, False
        ended = "a cap stopped it"
    else:
        least, norm = float((data.y * data.margins(u)).min()), float(np.linalg.norm(u))
        bound = _bound(R, u, start)
        need = Assumption(f"least y(u·x) = {least:.9g}, which must be at least 1", least >= 1.0)
        verdict, equality = theorems.verdict(float(model.updates), bound, 0.0) if need.met else (Verdict.VOID, False)
        least_bound = 0.0 if started else theorems.batch_perceptron(R, lower)
        rival = Comparator(u, 0.0, norm, max(0.0, bound - least_bound), found)
        ended = "it stopped by itself: every row is right"
        if not model.converged:
            ended = "a cap stopped it; the bound holds at any time"
    return Certificate(
        verdict, theorem, UPDATES, float(model.updates), bound, rival, (need, steps), model.visits,
        equality=equality, notes=(ended, pocket), label=label, **of_pocket(model, data, u)._asdict(),
    )  # fmt: skip


def _bound(R: float, u: Floats, start: Floats) -> float:
    """Return the bound for u, from this start."""
    along = float(u @ start)
    across = float(np.linalg.norm(start - u * (along / float(u @ u))))
    return theorems.batch_perceptron(R, float(np.linalg.norm(u)), along, across)


def _separator(
    model: BatchPerceptron, data: Data, R: float, start: Floats
) -> tuple[Floats | None, float, str, Separation]:
    """Return the known u with y (u . x) >= 1 on all rows and the least bound, a lower bound on |u|, how, and a proof.

    From a start of 0, the shortest such u has the least bound.
    """
    known: list[tuple[Floats, str]] = []
    hardest = ""
    lower, shown = 0.0, Separation(None)
    if data.rounds * data.width <= SMALL:
        hard = hard_margin(data)
        if hard.u is not None:
            known.append((hard.u, hard.found))
            lower, hardest = hard.lower, hard.found
    if model.converged:
        known.append((model.weights, "the perceptron's own"))
    if not known:
        shown = separate(data)
        if shown.w is not None:
            known.append((shown.w, "of the linear program"))
    fit = []
    for w, found in known:
        least, error = float((data.y * data.margins(w)).min()), float(rounding(data, w).max())
        if least > 2.0 * error:  # scaled so that rounding keeps the least margin at 1 or more
            u = w if least >= 1.0 and found == hardest else w * ((1.0 + 4.0 * error / least) / least)
            fit.append((_bound(R, u, start), u, found))
    if not fit:
        return None, 0.0, "", shown
    _, u, found = min(fit, key=lambda f: f[0])
    return u, lower, found, shown
