"""Learners without a rate: lazy steps in the running geometry, online ridge, and second order for the log loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kernels.floats import EPS
from ..kernels.losses import Logistic
from ..online.margins import each_loss, each_mean, each_slope
from . import adaptive_theorems as theorems
from .applied import AppliedTheorem, closeness, convexity, measured_name, measured_unit
from .best.comparator import best_in_metric
from .certificate import Assumption, Comparator
from .convex import no_theorem

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .replay import Rounds

METRIC = "the loss is convex and the metric never fell; nothing is asked of the data"
BAND = 1e-6  # how far the ridge objective kept along the run may be from the one found in hindsight, relatively
ROOT = 1e-12  # relative error of the roots that second order takes
FROM_FIRST_TARGET = ("running", "ridge", "vaw")  # theorems of runs whose start may be the first target


def start_of(run: Run) -> np.ndarray:
    """w_1: that of the run, with the first target as the intercept where the learner starts there."""
    start = run.first.copy()
    if run.intercept and hasattr(run.state, "base"):
        start[-1] = run.state.base[0]
    return start


def in_play(run: Run, t: Rounds) -> np.ndarray:
    """1 for the rounds of the game, 0 for the row that gave the start."""
    on = np.ones(t.row.size)
    if run.learner.targets == "real" and run.intercept:
        on[0] = 0.0
    return on


def weights_in_play(run: Run, t: Rounds) -> np.ndarray:
    """The weights of the rounds that the theorem of a run speaks of, 0 for the row that gave the start."""
    weights: np.ndarray = t.c * in_play(run, t) if run.learner.theorem in FROM_FIRST_TARGET else t.c
    return weights


def sought(
    run: Run, data: Data, t: Rounds, on: np.ndarray, metric: np.ndarray, u: Any, tol: float
) -> tuple[np.ndarray, float, float, str, tuple[str, ...]]:
    """The u that minimises Σ c loss(u.x, y) + ½ Σ metric (u − w_1)² over the rounds: u, the half, gap, words, notes."""
    loss, start = run.learner.loss, start_of(run)
    factors = np.bincount(t.row, t.c * on, data.rounds)
    if u is None:
        best = best_in_metric(data, loss, metric, factors, start, tol)
        return best.u, best.divergence, best.gap, closeness(best.gap, best.objective), best.notes
    point = data.check(u)
    return point, 0.5 * float(metric @ (point - start) ** 2), np.inf, "given", ()


def running(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Theorem R: lazy implicit steps in a metric that never falls."""
    on, state = in_play(run, t), run.state
    return lazy_steps(run, data, t, on, -t.step * on, t.q, Metric(state.metric, state.theta, state.base[0]), u, tol)


def scale_free(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Theorem R in the metric M²/η, for explicit and implicit steps at a constant rate."""
    if not run.learner.rate.is_constant():
        return no_theorem(run, data, t, u, tol)
    eta, state = float(t.eta[0]), run.state
    metric = Metric(state.largest_x**2 / eta, state.theta / eta, 0.0)
    return lazy_steps(run, data, t, np.ones(t.row.size), -t.step / eta, eta * t.q, metric, u, tol)


class Metric(NamedTuple):
    """The metric at the end, the sum of the steps, and the margins of the start."""

    a: np.ndarray
    theta: np.ndarray
    base: Any


def lazy_steps(
    run: Run, data: Data, t: Rounds, on: np.ndarray, s: np.ndarray, q: np.ndarray, metric: Metric, u: Any, tol: float
) -> AppliedTheorem:
    """Theorem R for the slopes s that were used, taken at z, or at z − q s where steps are implicit."""
    loss, c, unit = run.learner.loss, t.c * on, measured_unit(run.learner.loss)
    after = t.z - q * s if run.learner.update.name == "implicit" else t.z
    paid = c * each_loss(loss, t.z, t.y)
    u, half, gap, how, notes = sought(run, data, t, on, metric.a, u, tol)
    z = data.margins(u)[t.row]
    rival = c * each_loss(loss, z, t.y)
    off, near = slope_error(loss, s, c, after, t.y, 8.0 * EPS * (np.abs(t.z) + np.abs(q * s) + np.abs(t.y)))
    idle = (s == 0.0) & (off > 0.0)  # no step was made: the round is paid for
    price = theorems.running_price(paid, c * each_loss(loss, after, t.y), s, t.z - after, q)
    price = np.where(idle, paid, price + off * np.abs(z - after) + near)
    spent = float((-s * (t.z - metric.base) + 0.5 * q * s * s).sum())
    seen = metric.a > 0.0
    potential = 0.5 * float((metric.theta[seen] ** 2 / metric.a[seen]).sum())
    return AppliedTheorem(
        theorems.RUNNING,
        measured_name(loss),
        unit * paid,
        unit * rival,
        unit * (np.cumsum(rival) + half + np.cumsum(price)),
        Comparator(u, unit * float(rival.sum()), float(np.linalg.norm(u)), unit * gap, how),
        (convexity(loss, t.y, METRIC, t.z, z, *([] if after is t.z else [after])),),
        np.zeros(s.size),
        np.zeros(s.size),
        math.nan,
        lambda: np.ones(s.size),
        sharper=(unit * potential, unit * spent, "½ Σ θᵢ²/aᵢ" if unit == 1.0 else f"{unit:.6g}·½ Σ θᵢ²/aᵢ"),
        notes=(*notes, f"the metric's share of the bound: {unit * half:.6g}; the price met: {unit * price.sum():.6g}"),
        share=unit * half,
    )


def slope_error(
    loss: Any, s: np.ndarray, c: np.ndarray, after: np.ndarray, y: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How far s is from the slopes of c loss within a width of a point, and what the loss may change by on the way."""
    low, high = c * each_slope(loss, after - width, y), c * each_slope(loss, after + width, y)
    off = np.maximum(0.0, np.maximum(low - s, s - high))
    return off, 2.0 * width * np.maximum(np.abs(s), np.maximum(np.abs(low), np.abs(high)))


def ridge(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Theorem V for the margins of ridge regression, in the exact form that any prediction has."""
    return least_squares(run, data, t, t.z, u, tol, theorems.RIDGE)


def forecaster(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Theorem V for Vovk, Azoury and Warmuth's forecaster, whose margins give those of ridge regression back."""
    on, base = in_play(run, t), run.state.base[0]
    low = np.minimum.accumulate(np.r_[base, np.where(on > 0, t.y, base)])[:-1]
    high = np.maximum.accumulate(np.r_[base, np.where(on > 0, t.y, base)])[:-1]
    middle = 0.5 * (low + high)
    return least_squares(run, data, t, middle + (t.z - middle) * (1.0 + t.q), u, tol, theorems.FORECASTER)


def least_squares(run: Run, data: Data, t: Rounds, z: np.ndarray, u: Any, tol: float, theorem: Any) -> AppliedTheorem:
    """Σ c(y − p)² = min_u [L_u + Σ λ(u − w_1)²] + Σ c[(y − p)² − (y − z)²/(1 + cq)] for predictions p of any kind.

    z are the margins of ridge regression. The smallest value of the objective is known twice, from the run and from the
    rows in hindsight; where they differ digits were lost, and nothing is certified.
    """
    loss, state, on = run.learner.loss, run.state, in_play(run, t)
    c = t.c * on
    paid = c * each_loss(loss, t.z, t.y)
    u, half, gap, how, notes = sought(run, data, t, on, 2.0 * state.prior, u, min(tol, 1e-9))
    rival = c * each_loss(loss, data.margins(u)[t.row], t.y)
    price = theorems.ridge_price(paid, z, t.y, c, t.q)
    found, kept = float(rival.sum()) + half, float(state.objective[0])
    scale = float((c * (t.y - state.base[0]) ** 2).sum())
    room, given = BAND * max(found, kept) + 1e-12 * scale, how == "given"
    whole = bool(loss.quadratic) and loss.scale == 2.0  # the theorem is of the square loss alone
    agrees = whole and (found >= kept - room if given else abs(found - kept) <= room)
    at = "at the given u" if given else "in hindsight"
    drops = f"the objective's smallest value: {kept:.9g} along the run, {found:.9g} {at}"
    return AppliedTheorem(
        theorem,
        measured_name(loss),
        paid,
        rival,
        np.cumsum(rival) + half + np.cumsum(price),
        Comparator(u, float(rival.sum()), float(np.linalg.norm(u)), gap, how),
        (Assumption(drops, bool(agrees)),),
        np.zeros(c.size),
        np.zeros(c.size),
        math.nan,
        lambda: np.ones(c.size),
        notes=(*notes, f"the prior's share of the bound: {half:.6g}; the price met: {price.sum():.6g}"),
        share=half,
    )


def newton(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Theorem N: quadratics in place of the log losses, with what they exceed them by at u."""
    loss, state = run.learner.loss, run.state
    paid, G = t.c * each_loss(loss, t.z, t.y), -t.step
    p = each_mean(loss, t.z)
    C = t.c * run.learner.geometry.kappa * p * (1.0 - p)
    d = t.q * np.tanh(0.5 * t.z)
    u, half, gap, how, notes = sought(run, data, t, np.ones(t.row.size), state.prior, u, tol)
    z = data.margins(u)[t.row]
    rival = t.c * each_loss(loss, z, t.y)
    price = theorems.newton_price(t.q, G, C, d)
    price += np.abs(G) * ROOT * (np.abs(t.z) + np.abs(d))  # the root z was taken so exactly
    is_log_loss = type(loss) is Logistic and loss.scale == 1.0
    beyond = theorems.quadratic_gap(paid, G, C, z - t.z, rival)
    met = max(0.0, float(beyond.sum()))
    return AppliedTheorem(
        theorems.NEWTON,
        f"{loss.name} loss",
        paid,
        rival,
        np.cumsum(rival) + half + np.cumsum(price) + np.maximum(0.0, np.cumsum(beyond)),
        Comparator(u, float(rival.sum()), float(np.linalg.norm(u)), gap, how),
        (Assumption("the loss is the log loss; nothing is asked of the data", is_log_loss),),
        np.zeros(t.row.size),
        np.zeros(t.row.size),
        math.nan,
        lambda: np.ones(t.row.size),
        notes=(
            *notes,
            f"the prior's share of the bound: {half:.6g}; the price met: {price.sum():.6g}; "
            f"what the quadratics exceed the losses by at u: {met:.6g}",
        ),
        share=half,
    )
