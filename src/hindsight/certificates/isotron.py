"""Certificates of sweeps: GLM-tron over epochs (11, and 4 on its matching loss) and Isotron (13).

The rounds are played again over the rows, which shows that they are those of the model and gives every round's
potential. A planted w* is checked on the data; without one no data can show that y = u(w*.x).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..batch.isotonic import argsort, taken
from ..batch.isotron import History, Known, Sweep, play_rounds
from ..batch.links import Link
from ..errors import MismatchError
from . import theorems
from .certificate import Assumption, Certificate, Comparator, Milestone
from .certify import PLANTED, closeness
from .theorems import Theorem, Verdict

Floats = NDArray[np.float64]

ISOTRON = Theorem(
    "Isotron", "N4 Theorem 3.1", "Σ L̂(uₜ, wₜ) ≤ |w* − w₁|²/(η(2/λ − ηX₂²)); λ²X₂²|w*|² from 0 at η = 1/(λX₂²)"
)
GLM_TRON = Theorem("GLM-tron with the mean update", "N4 Theorem 1.1, Lemma 3.3", "Σ L̂(wₜ) ≤ |w* − w₁|²/(η(2/λ − ηX₂²))")
MATCHING = Theorem("descent on the matching loss", "N2, N4", "Σ F(wₜ) ≤ Σ F(u) + |u − w₁|²/(2η) + (η/2) Σ|∇F(wₜ)|²")


@dataclass(frozen=True)
class Case:
    """A theorem applied to the rounds: each round's measure, its rival's, the change of the potential, the lemma's."""

    theorem: Theorem
    quantity: str
    measured: Floats
    rival: Floats
    bound: Floats
    opponent: Comparator
    assumptions: tuple[Assumption, ...]
    change: Floats
    allowed: Floats
    size: Floats
    potential: float
    off: float  # by which planted data that is off by PLANTED may exceed the bound
    best_eta: float
    history: History


def certify_sweep(
    sweep: Sweep, history: History, *, planted: Any = None, u: Any = None, label: str | None = None
) -> Certificate:
    """The certificate of the rounds of `history` over the rows of `sweep`.

    Parameters
    ----------
    planted : the w* with y = u(w*.x), on the rows as given (the intercept's weight last); checked on the data.
    u : for GLM-tron without a planted w*, a comparator to take instead of the best in hindsight.
    label : the class, one-vs-rest.
    """
    glm = isinstance(sweep.part, Known)
    if planted is not None:
        w = sweep.parts[0].check(planted) * sweep.scale
        case = _planted(sweep, _again(sweep, history, w), w, glm)
    elif glm and sweep.part.link.integral is not None:
        case = _matching(sweep, history, u)
    else:
        case = _nothing(sweep, _again(sweep, history, None))
    total = float(case.measured.sum())
    bound = float(case.bound[-1])
    scale = len(case.measured) * sweep.mean(sweep.y**2)
    found, equality = theorems.verdict(total, bound, scale + 1e9 * case.off)
    broken = None
    if any(need.met is False for need in case.assumptions):
        found, equality, bound = Verdict.VOID, False, math.nan
    elif any(need.met is None for need in case.assumptions):
        found, equality = Verdict.UNCHECKABLE, False
    elif found is Verdict.HOLDS:
        over = case.change > case.allowed + 1e-12 * case.size
        if over.any():
            found, broken = Verdict.BROKEN, int(over.argmax()) + 1
    notes = _notes(sweep, case, found, broken)
    return Certificate(
        found, case.theorem, case.quantity, total, bound, case.opponent, case.assumptions, len(case.measured),
        case.best_eta, equality, _path(case, found), notes, label,
    )  # fmt: skip


def _again(sweep: Sweep, history: History, watch: Floats | None) -> History:
    """The rounds played again, which must end where the model's did."""
    if sweep.width != history.last.size:
        raise MismatchError(f"the model has {history.last.size} coordinates, these rows have {sweep.width}")
    again = play_rounds(sweep, len(history.loss), history.start, watch=watch)
    far = float(np.abs(again.last - history.last).max())
    if not far <= 1e-9 * max(1e-300, float(np.abs(history.last).max())):
        raise MismatchError(
            f"the model was not trained on these rows: its last weights differ by {far:.3g} from what they give; "
            f"its mean squared errors add up to {history.loss.sum():.9g}, here to {again.loss.sum():.9g}"
        )
    return again


def _planted(sweep: Sweep, history: History, w: Floats, glm: bool) -> Case:
    """Theorems 11 and 13. With Jensen's inequality for the mean update the two have one form."""
    eta, x2, constant = sweep.eta, sweep.x2**2, float(sweep.part.lipschitz)
    keep = sweep.c > 0.0
    z = sweep.margins(w)
    mean, _ = sweep.part.fit(z, sweep.y, sweep.weight)
    spread = float(z[keep].max() - z[keep].min())
    step = eta * constant * x2
    needs = [Assumption(f"ηλX₂² = {step:.6g}, which must be below 2 (λ = {constant:g})", step < 2.0)]
    if glm:
        far = float(np.abs(mean - sweep.y)[keep].max())
        text = f"y = u(w*·x): largest difference {far:.3g}, at most {PLANTED:g} allowed"
        needs.append(Assumption(text, far <= PLANTED))
        if sweep.part.link.integral is None:
            text = f"u is nondecreasing and {constant:g}-Lipschitz, as it was at all margins seen"
            needs.append(Assumption(text, True))
    else:
        falls, steep = _realisable(z[keep], sweep.y[keep], constant)
        text = f"y never falls along w*·x: by {falls:.3g}, at most {PLANTED:g} allowed"
        needs.append(Assumption(text, falls <= PLANTED))
        text = f"y is {constant:g}-Lipschitz along w*·x: {steep:.3g} too steep, at most {PLANTED:g} allowed"
        needs.append(Assumption(text, steep <= PLANTED))
        least, most = float(sweep.y[keep].min()), float(sweep.y[keep].max())
        needs.append(Assumption(f"y lies in [0, 1]: {least:g} to {most:g}", least >= 0.0 and most <= 1.0))
    distance = float((w - history.start) @ (w - history.start))
    bound = theorems.glm_tron(eta, x2, constant, distance)
    change = eta**2 * history.gradient - 2.0 * eta * history.along
    allowed = -eta * (2.0 / constant - eta * x2) * history.loss
    own = sweep.mean((sweep.y - mean) ** 2)
    rounds = len(history.loss)
    # With y = u(w*.x) + e the inner product of the lemma is off by at most |e| (spread of w*.x + 2 |y - yhat|/lambda).
    reach = float(np.abs(sweep.y[keep]).max()) + float(np.abs(mean[keep]).max()) + 1.0
    off = 2.0 * eta * PLANTED * (spread + 2.0 * reach / constant)
    size = 1.0 + np.abs(change) + np.abs(allowed) + 2.0 * eta * np.abs(history.along) + off / 1e-12
    room = eta * (2.0 / constant - eta * x2)
    opponent = Comparator(w / sweep.scale, rounds * own, float(np.linalg.norm(w)), 0.0, "planted")
    return Case(
        GLM_TRON if glm else ISOTRON, QUANTITY, history.loss, np.full(rounds, own), np.full(rounds, bound), opponent,
        tuple(needs), change, allowed, size, distance, rounds * off / room if room > 0.0 else 0.0,
        1.0 / (constant * x2) if x2 > 0.0 else math.nan, history,
    )  # fmt: skip


QUANTITY = "mean squared error, summed over the rounds,"


def _realisable(z: Floats, y: Floats, constant: float) -> tuple[float, float]:
    """By how much y falls, and rises beyond the constant, between any two points in order of z.

    Halves of them are the least e such that a nondecreasing (a Lipschitz) function is within e of every y.
    """
    order = argsort(z)
    z, y = taken(z, order), taken(y, order)
    # Points of equal z: the largest y may stand first as well as last.
    first = np.concatenate(([True], z[1:] != z[:-1]))
    group = np.flatnonzero(first)
    high, low, at = np.maximum.reduceat(y, group), np.minimum.reduceat(y, group), z[group]
    falls = float((np.maximum.accumulate(high) - low).max())
    steep = float((high - constant * at - np.minimum.accumulate(low - constant * at)).max())
    return max(0.0, falls), max(0.0, steep)


def _matching(sweep: Sweep, history: History, given: Any) -> Case:
    """Theorem 4 on the mean matching loss F, convex whatever the data: |u - w|^2/2 falls by eta (F(w) - F(u)) - ..."""
    eta, rounds, link = sweep.eta, len(history.loss), sweep.part.link
    if given is None:
        u, gap, how = _rival(sweep, link, 1.0 / (eta * rounds), history.start)
    else:
        u, gap, how = sweep.parts[0].check(given) * sweep.scale, math.inf, "given"
    again = _again(sweep, history, u)
    own = _match(sweep, link, u)[0]
    distance = 0.5 * float((u - history.start) @ (u - history.start))
    half = 0.5 * eta * again.gradient
    bound = np.cumsum(own + half) + distance / eta
    change = 0.5 * eta**2 * again.gradient - eta * again.along
    allowed = -eta * (again.match - own) + 0.5 * eta**2 * again.gradient
    size = 1.0 + np.abs(change) + eta * (np.abs(again.match) + abs(own) + np.abs(again.along))
    total = float(again.gradient.sum())
    needs = (Assumption("the matching loss is convex and every gradient was met; nothing is asked of the data", True),)
    opponent = Comparator(u / sweep.scale, rounds * own, float(np.linalg.norm(u)), gap * rounds, how)
    return Case(
        MATCHING, "mean matching loss, summed over the rounds,", again.match, np.full(rounds, own), bound, opponent,
        needs, change, allowed, size, distance, 0.0, math.sqrt(2.0 * distance / total) if total > 0.0 else math.nan,
        again,
    )  # fmt: skip


def _match(sweep: Sweep, link: Link, u: Floats) -> tuple[float, Floats]:
    """F(u) and its gradient."""
    assert link.integral is not None
    z = sweep.margins(u)
    value = sweep.mean(link.integral(z) - sweep.y * z)
    return value, sweep.combine(sweep.share * (link.u(z) - sweep.y))


def _rival(sweep: Sweep, link: Link, kappa: float, start: Floats) -> tuple[Floats, float, str]:
    """The u that makes F(u) + kappa |u - w_1|^2/2 smallest, and how far its objective is from the least at most."""
    from scipy.optimize import minimize

    def objective(v: Floats) -> tuple[float, Floats]:
        value, slope = _match(sweep, link, v)
        return value + 0.5 * kappa * float((v - start) @ (v - start)), slope + kappa * (v - start)

    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 200, "gtol": 1e-10})
    value, slope = objective(found.x)
    gap = float(slope @ slope) / (2.0 * kappa)  # the objective is kappa-strongly convex
    return found.x, gap, closeness(gap, value)


def _nothing(sweep: Sweep, history: History) -> Case:
    """No w* was declared: the loss is measured, nothing is promised."""
    rounds = len(history.loss)
    mean = sweep.mean(sweep.y)
    own = sweep.mean((sweep.y - mean) ** 2)
    if isinstance(sweep.part, Known):
        text, theorem = "y = u(w*·x) for some w*: none was declared, and the integral of the link is unknown", GLM_TRON
    else:
        text, theorem = "y = u(w*·x) for some w* and a nondecreasing Lipschitz u: none was declared", ISOTRON
    opponent = Comparator(np.zeros(sweep.width), rounds * own, 0.0, math.inf, "the mean of y")
    nan = np.full(rounds, math.nan)
    return Case(
        theorem, QUANTITY, history.loss, np.full(rounds, own), nan, opponent, (Assumption(text, None),), nan, nan, nan,
        math.nan, 0.0, math.nan, history,
    )  # fmt: skip


def _notes(sweep: Sweep, case: Case, found: Verdict, broken: int | None) -> tuple[str, ...]:
    loss = case.history.loss
    k = int(loss.argmin())
    best = f"the best of {len(loss):,} iterates is round {k + 1:,}: mean squared error {loss[k]:.6g}"
    if found is Verdict.HOLDS and case.theorem is not MATCHING:
        best += f", promised at most {case.bound[-1] / len(loss):.6g}"
    notes = [best]
    if sweep.scale != 1.0:
        notes.append(f"rows divided by X₂ = {sweep.scale:.6g}; norms here are those of weights of the divided rows")
    if broken is not None:
        notes.append(f"the per-round lemma is broken in round {broken}")
    return tuple(notes)


def _path(case: Case, found: Verdict) -> tuple[Milestone, ...]:
    total = len(case.measured)
    marks = sorted({min(total, 2**k) for k in range(total.bit_length() + 1)})
    measured, rival = np.cumsum(case.measured), np.cumsum(case.rival)
    potential = case.potential + np.cumsum(case.change)
    bound = case.bound if found in (Verdict.HOLDS, Verdict.BROKEN) else np.full(total, math.nan)
    return tuple(
        Milestone(k, float(measured[k - 1]), float(rival[k - 1]), float(bound[k - 1]), float(potential[k - 1]))
        for k in marks
    )
