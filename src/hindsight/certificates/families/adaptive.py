"""Certificates of learners without a rate: lazy steps in the running geometry, online ridge, second order for log loss.

Each theorem has two parts: the terms that a round adds to the sums of a ledger, which do not depend on the comparator
(`TERMS`), and the bound that follows from these sums for a given comparator (`APPLIED`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...kernels import ledger
from ...kernels.compiler import for_parts
from ...kernels.floats import EPS
from ...kernels.losses import Logistic
from ...online.margins import each_loss, each_mean, each_slope
from ...online.run import Run
from .. import theorems
from ..applied import (
    AppliedTheorem,
    Band,
    convex_as_met,
    convexity_faults,
    measured_name,
    measured_unit,
    ours,
)
from ..best.comparator import best_in_metric
from ..certificate import FOR_ALL_ROUNDS, Assumption, Comparator
from ..course import Course
from ..ledger import Opponent, SomeRounds, Terms, opens

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...rows.data import Data

METRIC = "the loss is convex and the metric never fell; nothing is asked of the data"
BAND = 1e-6  # how far the ridge objective kept along the run may be from the one found in hindsight, relatively


# ---------------------------------------------------------------- what a round adds up to


def lazy_terms(run: Run, b: SomeRounds, sums: np.ndarray, kept: np.ndarray) -> None:
    """Add the terms of theorem R, for the slopes that were used."""
    eta, base = rate_and_base(run)
    loss = run.learner.loss
    for_parts(ledger.add_lazy, loss)(b.z, b.q, b.step, b.y, b.c, loss, eta, ahead(run), base, b.places, sums, kept)


def ridge_terms(run: Run, b: SomeRounds, sums: np.ndarray, kept: np.ndarray) -> None:
    """Add the terms of theorem V for the margins of ridge regression, in its exact form, which any prediction has."""
    for_parts(ledger.add_square, run.learner.loss)(b.z, b.z, b.q, b.y, b.c, run.learner.loss, b.places, sums, kept)


def forecaster_terms(run: Run, b: SomeRounds, sums: np.ndarray, kept: np.ndarray) -> None:
    """Add the terms of theorem V for Vovk, Azoury and Warmuth's forecaster: ridge margins follow from its margins."""
    middle = 0.5 * (b.low + b.high)
    z = middle + (b.z - middle) * (1.0 + b.q)
    for_parts(ledger.add_square, run.learner.loss)(b.z, z, b.q, b.y, b.c, run.learner.loss, b.places, sums, kept)


def newton_terms(run: Run, b: SomeRounds, sums: np.ndarray, kept: np.ndarray) -> None:
    """Add the terms of theorem N, which has quadratics in place of the log losses."""
    loss, kappa = run.learner.loss, float(run.learner.geometry.kappa)
    for_parts(ledger.add_newton, loss)(b.z, b.q, b.step, b.y, b.c, loss, kappa, b.places, sums, kept)


def newton_gap(one: Opponent, run: Run, b: SomeRounds, z: np.ndarray) -> np.ndarray:
    """By how much the quadratic of each round exceeds the loss at a comparator with margins z."""
    loss, p = run.learner.loss, each_mean(run.learner.loss, b.z)
    C = b.c * run.learner.geometry.kappa * p * (1.0 - p)
    paid, other = b.c * each_loss(loss, b.z, b.y), b.c * each_loss(loss, z, b.y)
    return theorems.quadratic_gap(paid, -b.step, C, z - b.z, other)


def rate_and_base(run: Run) -> tuple[float, float]:
    """The rate by which steps are divided to give slopes, and the margin of the starting weights."""
    if run.learner.theorem == "scale-free":
        return float(run.learner.rate.eta), 0.0
    return 1.0, float(run.state.base[0])


def ahead(run: Run) -> float:
    """1 where slopes are taken after the step, 0 where they are taken before."""
    return 1.0 if run.learner.update.name == "implicit" else 0.0


def slope_error(
    loss: Any, s: np.ndarray, c: np.ndarray, after: np.ndarray, y: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The distance of s from the slopes of c loss within `width` of a point, and how much the loss may change there."""
    low, high = c * each_slope(loss, after - width, y), c * each_slope(loss, after + width, y)
    off = np.maximum(0.0, np.maximum(low - s, s - high))
    return off, 2.0 * width * np.maximum(np.abs(s), np.maximum(np.abs(low), np.abs(high)))


# ---------------------------------------------------------------- what the sums say


class Beside(NamedTuple):
    """A run and a comparator: the sums of both at the marks, and the cost of the comparator's distance to the start.

    Attributes
    ----------
    marks : ndarray of int
        The numbers of rounds after which sums were kept.
    sums : ndarray
        The sums of the `Terms`, one row per mark.
    u : Opponent
        The comparator.
    half : float
        The cost of its distance: half its square.
    gap, how, notes : float, str and tuple of str
        How close it is to the comparator that makes the bound smallest, and how it was found.
    scale : float
        The loss of the starting weights.
    data, factors : Data and ndarray
        The rows, and the weight of each, summed over all passes.
    """

    marks: np.ndarray
    sums: np.ndarray
    u: Opponent
    half: float
    gap: float
    how: str
    notes: tuple[str, ...]
    scale: float
    data: Data
    factors: np.ndarray

    def terms(self) -> Terms:
        """The sums by name."""
        return Terms(*self.sums.T)

    def comparator(self, unit: float) -> Comparator:
        """The comparator as certificates show it."""
        return Comparator(
            self.u.u, unit * float(self.u.lost[-1]), float(np.linalg.norm(self.u.u)), unit * self.gap, self.how
        )

    def course(self, unit: float, price: np.ndarray) -> Course:
        """The course of L, of L_u, and of the bound: L_u + the cost of the distance + the price."""
        bound = theorems.with_price(self.u.lost, self.half, price)
        return Course(self.marks, unit * self.terms().paid, unit * self.u.lost, unit * bound)

    def case(
        self, run: Run, theorem: theorems.Theorem, course: Course, needs: tuple[Assumption, ...], note: str,
        unit: float = 1.0, **more: Any,
    ) -> AppliedTheorem:  # fmt: skip
        """The applied theorem; `more` sets further attributes of the `AppliedTheorem`."""
        rest: dict[str, Any] = {"share": unit * self.half, "band": self.band(run, course)} | more
        name, rival = measured_name(run.learner.loss), self.comparator(unit)
        return AppliedTheorem(theorem, name, course, rival, needs, notes=(*self.notes, note), **rest)

    def band(self, run: Run, course: Course) -> Band:
        """How far the measured value may exceed the bound because of rounding."""
        unit = measured_unit(run.learner.loss)
        lanes = EPS * (8.0 + 0.125 * run.width)
        sums = 2.0 * EPS * float(self.marks[-1]) * float(np.abs(course.bound).max())
        return Band(unit * self.scale, sums + lanes * unit * (self.u.size + float(self.terms().size[-1])))


def start_of(run: Run) -> np.ndarray:
    """w_1, the weights that the run starts from; the intercept is the first target where the learner starts there."""
    start = run.first.copy()
    if run.intercept and hasattr(run.state, "base"):
        start[-1] = run.state.base[0]
    return start


def margins_of_start(run: Run, data: Data) -> np.ndarray:
    """The margins of w_1 on all rows."""
    start = start_of(run)
    return data.margins(start) if start[: run.features].any() else np.full(data.rounds, data.bias * start[-1])


def lost_by_start(run: Run, data: Data, factors: np.ndarray) -> float:
    """The loss of the starting weights on all rows."""
    return float(factors @ np.abs(each_loss(run.learner.loss, margins_of_start(run, data), data.y)))


def distance_of(run: Run) -> np.ndarray:
    """The metric for which half the squared distance of a comparator to the start enters the bound."""
    state, name = run.state, run.learner.theorem
    if name == "windowed-ridge":
        return run.by_feature(2.0 * (state.prior + state.faded))
    if name == "running":
        return np.asarray(state.metric)
    if name == "scale-free":
        return np.asarray(state.largest_x**2 / run.learner.rate.eta)
    return run.by_feature(state.prior if name == "newton" else 2.0 * state.prior)


def sought(run: Run, data: Data, factors: np.ndarray, u: Any, tol: float) -> tuple[np.ndarray, float, float, str, Any]:
    """The u that minimises Σ c loss(u.x, y) + ½ Σ metric (u − w_1)², with the second term, the gap, words and notes."""
    loss, start, metric = run.learner.loss, start_of(run), distance_of(run)
    if u is None:
        exact = run.learner.theorem in ("ridge", "vaw", "windowed-ridge")
        best = best_in_metric(data, loss, metric, factors, start, min(tol, 1e-9) if exact else tol, run.weights)
        return best.u, best.divergence, best.gap, best.how, best.notes
    point = data.check(u)
    return point, 0.5 * float(metric @ (point - start) ** 2), np.inf, "given", ()


def apply_lazy_steps(run: Run, b: Beside) -> AppliedTheorem:
    """Apply theorem R: lazy steps in a metric that never decreases."""
    loss, unit, sums = run.learner.loss, measured_unit(run.learner.loss), b.terms()
    eta, _ = rate_and_base(run)
    metric, theta = distance_of(run), run.state.theta / eta
    price = sums.price + sums.off * b.u.largest + sums.stray
    seen = metric > 0.0
    potential = 0.5 * float((theta[seen] ** 2 / metric[seen]).sum())
    note = f"the metric's share of the bound: {unit * b.half:.6g}; the price met: {unit * price[-1]:.6g}"
    theta_text = "½ Σ θᵢ²/aᵢ" if unit == 1.0 else f"{unit:.6g}·½ Σ θᵢ²/aᵢ"
    return b.case(
        run, theorems.RUNNING, b.course(unit, price), (convex_as_met(loss, METRIC, b.u.faults),), note, unit,
        sharper=(unit * potential, unit * float(b.sums[-1, ledger.SPENT]), theta_text),
    )  # fmt: skip


def apply_ridge(run: Run, b: Beside) -> AppliedTheorem:
    """Σ c(y − p)² = min_u [L_u + Σ λ(u − w_1)²] + Σ c[(y − p)² − (y − z)²/(1 + cq)] for predictions p of any kind.

    The smallest value of the objective is computed twice, from the run and from the rows in hindsight. If the two
    differ, digits were lost to rounding, and nothing is certified.
    """
    loss, sums = run.learner.loss, b.terms()
    found, kept = float(b.u.lost[-1]) + b.half, float(run.state.objective[0])
    room, given = BAND * max(found, kept) + 1e-12 * b.scale, b.how == "given"
    whole = bool(loss.quadratic) and loss.scale == 2.0  # the theorem is of the square loss alone
    agrees = whole and (found >= kept - room if given else abs(found - kept) <= room)
    at = "at the given u" if given else "in hindsight"
    drops = f"the objective's smallest value: {kept:.9g} along the run, {found:.9g} {at}"
    theorem = theorems.FORECASTER if run.learner.theorem == "vaw" else theorems.RIDGE
    note = f"the prior's share of the bound: {b.half:.6g}; the price met: {sums.price[-1]:.6g}"
    return b.case(run, theorem, b.course(1.0, sums.price), (Assumption(drops, bool(agrees)),), note)


def apply_windowed_ridge(run: Run, b: Beside) -> AppliedTheorem:
    """Σ c(y − z)²/(1 + cq) + drops = m_T + (1 − γ) Σ m_t, m_t the smallest value of the objective after round t.

    m_T is computed twice, from the run and from the rows in hindsight. If the two differ, digits were lost to rounding,
    and nothing is certified. Nothing is certified either if a fixed u, with all that was added to its prior, makes the
    sum smaller.
    """
    loss, sums, state, gamma = run.learner.loss, b.terms(), run.state, float(run.learner.geometry.gamma)
    windows = theorems.windows(sums.paid, sums.price, float(state.drop[0]))
    fixed = theorems.with_price(b.u.lost, b.half, 0.0)
    kept, (found, scale) = float(state.objective[0]), last_window(run, b, gamma)
    whole = bool(loss.quadratic) and loss.scale == 2.0  # the theorem is of the square loss alone
    agrees = whole and abs(found - kept) <= BAND * max(found, kept) + 1e-12 * scale
    above = whole and windows[-1] <= fixed[-1] + BAND * fixed[-1] + 1e-12 * b.scale
    course = b.course(1.0, sums.price)
    bound = np.minimum(course.bound, theorems.with_price(windows, 0.0, sums.price))
    needs = (
        Assumption(f"the last window's smallest value: {kept:.9g} along the run, {found:.9g} in hindsight", agrees),
        Assumption(
            f"the best predictors of each window lose {windows[-1]:.9g} with their priors, no more than one for "
            f"all rounds with its own, {fixed[-1]:.9g}",
            bool(above),
        ),
    )
    note = (
        f"windows of about {1.0 / (1.0 - gamma):,.0f} rounds, of the weights 1, γ, γ², … from the last one back: "
        f"each round counts once in all of them together; the price met: {sums.price[-1]:.6g}"
    )
    band = b.band(run, course)  # of the bound that one predictor for all rounds has
    case = b.case(run, theorems.WINDOWED_RIDGE, course._replace(bound=bound), needs, note, share=math.nan, band=band)
    return case if b.how == "given" else replace(case, comparator=replace(case.comparator, found=FOR_ALL_ROUNDS))


def last_window(run: Run, b: Beside, gamma: float) -> tuple[float, float]:
    """The smallest value of the objective after the last round, from the rows, and the loss of the starting weights."""
    on = np.flatnonzero(b.data.c > 0.0)
    age = np.arange(on.size - 1.0, -1.0, -1.0)
    weights = np.zeros(b.data.c.size)
    for back in range(run.rounds // max(1, on.size)):  # passes
        weights[on] += b.data.c[on] * gamma ** (age + back * on.size)
    if opens(run):
        weights[on[0]] -= b.data.c[on[0]] * gamma ** (run.rounds - 1.0)
    weights, metric = np.maximum(0.0, weights), run.by_feature(2.0 * run.state.prior) / gamma
    best = best_in_metric(b.data, run.learner.loss, metric, weights, start_of(run), 1e-9)
    return best.objective, lost_by_start(run, b.data, weights)


def apply_newton(run: Run, b: Beside) -> AppliedTheorem:
    """Apply theorem N: quadratics replace the log losses, and the amount by which they exceed them at u is added."""
    loss, sums = run.learner.loss, b.terms()
    is_log_loss = type(loss) is Logistic and loss.scale == 1.0
    met = np.maximum(0.0, b.u.more)
    needs = (Assumption("the loss is the log loss; nothing is asked of the data", is_log_loss),)
    note = (
        f"the prior's share of the bound: {b.half:.6g}; the price met: {sums.price[-1]:.6g}; "
        f"what the quadratics exceed the losses by at u: {met[-1]:.6g}"
    )
    return b.case(run, theorems.NEWTON, b.course(1.0, sums.price + met), needs, note)


TERMS: dict[str | None, Callable[[Run, SomeRounds, np.ndarray, np.ndarray], None]] = {
    "running": lazy_terms,
    "scale-free": lazy_terms,
    "ridge": ridge_terms,
    "windowed-ridge": ridge_terms,
    "vaw": forecaster_terms,
    "newton": newton_terms,
}
APPLIED: dict[str | None, Callable[[Run, Beside], AppliedTheorem]] = {
    "running": apply_lazy_steps,
    "scale-free": apply_lazy_steps,
    "ridge": apply_ridge,
    "windowed-ridge": apply_windowed_ridge,
    "vaw": apply_ridge,
    "newton": apply_newton,
}


def in_ledger(run: Run) -> bool:
    """Whether the theorem of a run needs only the sums of a ledger."""
    learner = run.learner
    return learner.theorem in TERMS and (learner.theorem != "scale-free" or learner.rate.is_constant())


def add_terms(run: Run, b: SomeRounds, sums: np.ndarray, kept: np.ndarray) -> None:
    """Add some rounds to the sums of a ledger and keep the sums at marks; do nothing if the theorem reads no ledger."""
    if in_ledger(run):
        TERMS[run.learner.theorem](run, b, sums, kept)


def opponent_of(run: Run, u: np.ndarray) -> Opponent:
    """A comparator of a run. The run is played again beside it for Newton steps and for losses of the user's own."""
    if run.learner.theorem == "newton":
        return Opponent(u, opens(run), run.fresh(), newton_gap)
    if run.learner.theorem in ("running", "scale-free") and not ours(run.learner.loss):
        return Opponent(u, opens(run), run.fresh(), met_convexity)
    return Opponent(u, opens(run))


def met_convexity(one: Opponent, run: Run, b: SomeRounds, z: np.ndarray) -> np.ndarray:
    """Return zeros, and note in `faults` where the loss was not convex at the margins that occurred."""
    after = b.z + ahead(run) * (b.q * b.step)
    one.faults += convexity_faults(run.learner.loss, b.y, b.z, z, after)
    return np.zeros(z.size)
