"""Descent with penalties: proximal steps on loss and penalty in the Euclidean geometry (docs/penalties.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...kernels.floats import EPS
from ...kernels.penalised import Penalised
from ...online.margins import each_loss, each_slope
from .. import theorems
from ..applied import Game, convexity
from ..best.comparator import best_in_metric
from ..best.predictor import closeness
from ..certificate import Assumption
from .adaptive import slope_error
from .convex import INEXACT

if TYPE_CHECKING:
    from ...online.run import Run
    from ...rows.data import Data
    from ..applied import AppliedTheorem
    from ..audit import Rounds

REWEIGHTED = 12  # times that |u| is replaced by a parabola above it


def penalised_descent(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Explicit steps, with the slope at the margin z, and implicit ones, with the slope at the margin after a step."""
    loss, geometry, fixed = run.learner.loss, run.learner.geometry, run.learner.rate.is_constant()
    if not isinstance(geometry, Penalised):
        raise ValueError(
            f"the theorem {theorems.PENALISED.name} is for the penalised geometry, not for {geometry.name}"
        )
    unit = float(t.eta[0]) if fixed else 1.0  # sums are in units of it
    weight = t.eta * t.c / unit
    factors, rounds = t.by_row(weight), float(t.eta.sum()) / unit
    goal = Goal(data, loss, factors, penalties(run, rounds), run.first, 1.0 / unit)
    point, gap, how = (data.check(u), math.inf, "given") if u is not None else goal.best(tol, run.weights)
    game = Game.beside(run, data, t, point, math.nan, gap, how)
    z = game.z
    paid, rival = weight * each_loss(loss, t.z, t.y), weight * each_loss(loss, z, t.y)
    at = t.after if run.learner.update.name == "implicit" else t.z
    reached = weight * each_loss(loss, at, t.y)
    s = -t.step / t.eta
    width = 8.0 * EPS * (np.abs(t.z) + np.abs(t.q * s) + np.abs(t.y))
    off, near = slope_error(loss, s, t.c, at, t.y, width)
    inexact = t.eta / unit * (off * np.abs(z - at) + near)
    exact = bool((off <= INEXACT * np.abs(t.step / t.eta).max()).all())
    price = theorems.penalised_price(paid, reached, t.step / unit, at, t.change / unit) + inexact
    distance = 0.5 * float((point - run.first) @ (point - run.first)) / unit
    penalty = goal.penalty(point) / rounds * t.eta / unit
    name, text = f"{loss.name} loss", "the loss is convex and the steps are proximal; nothing is asked of the data"
    allowed = unit * (rival - paid + price)
    return game.case(
        theorems.PENALISED if fixed else theorems.PENALISED_RATES,
        name if fixed else f"{name} times its rate",
        paid,
        rival,
        theorems.penalised_bound(rival, penalty, distance, price),
        (convexity(loss, t.y, text, t.z, z, at) if exact else Assumption("the steps must be proximal", False),),
        game.lemma(1.0, allowed, unit * rival, unit * paid, unit * reached, t.step * at, t.change),
        notes=(f"the penalty of u: {float(penalty.sum()):.6g}; the price met: {float(price.sum()):.6g}",),
        share=distance + float(penalty.sum()),
    )


def penalties(run: Run, rounds: float) -> Penalties:
    """The penalties of each coordinate, summed over all rounds; 0 for the intercept."""
    on = np.ones(run.width)
    if run.intercept:
        on[-1] = 0.0
    return Penalties(rounds * run.learner.geometry.l1 * on, rounds * run.learner.geometry.l2 * on)


class Penalties(NamedTuple):
    """The coefficients of |u_i| and of u_i^2/2 for each coordinate."""

    l1: np.ndarray
    l2: np.ndarray


class Goal(NamedTuple):
    """F(u) = Sigma a loss(u . x, y) + Sigma l1 |u| + Sigma l2/2 u^2 + kappa/2 |u - w_1|^2."""

    data: Data
    loss: Any
    a: np.ndarray
    penalties: Penalties
    start: np.ndarray
    kappa: float

    def penalty(self, u: np.ndarray) -> float:
        """The penalty of u."""
        return float(self.penalties.l1 @ np.abs(u) + 0.5 * self.penalties.l2 @ u**2)

    def value(self, u: np.ndarray) -> float:
        """F(u)."""
        paid = float(self.a @ each_loss(self.loss, self.data.margins(u), self.data.y))
        return paid + self.penalty(u) + 0.5 * self.kappa * float((u - self.start) @ (u - self.start))

    def lower(self, u: np.ndarray) -> float:
        """A lower bound on F: the minimum, coordinate by coordinate, with each loss replaced by its tangent at u."""
        z = self.data.margins(u)
        r = self.a * each_slope(self.loss, z, self.data.y)
        v = self.data.combine(r)
        curved = self.kappa + self.penalties.l2
        middle = (self.kappa * self.start - v) / curved
        w = np.sign(middle) * np.maximum(0.0, np.abs(middle) - self.penalties.l1 / curved)
        ends = v @ w + self.penalty(w) + 0.5 * self.kappa * float((w - self.start) @ (w - self.start))
        return float(self.a @ each_loss(self.loss, z, self.data.y) - r @ z) + float(ends)

    def best(self, tol: float, last: np.ndarray) -> tuple[np.ndarray, float, str]:
        """An approximate minimiser u of F, its gap, and the gap in words.

        With an l1 penalty, |u| is majorised by a parabola that touches it at the previous u.
        """
        l1, l2 = self.penalties
        found, least, lower = last, self.value(last), self.lower(last)
        size = np.full(last.size, np.inf)
        for _ in range(REWEIGHTED if l1.any() else 1):
            with np.errstate(divide="ignore"):
                metric = self.kappa + l2 + l1 / np.maximum(size, 1e-12)
            near = best_in_metric(self.data, self.loss, metric, self.a, self.kappa * self.start / metric, tol)
            u = np.where((l1 > 0.0) & (np.abs(near.u) <= 1e-9), 0.0, near.u)
            value = self.value(u)
            lower = max(lower, self.lower(u))
            if not l1.any():
                lower = max(lower, value - near.gap)
            if value < least:
                found, least = u, value
            if least - lower <= tol * abs(least):
                break
            size = np.abs(u)
        gap = max(0.0, least - lower)
        return found, gap, closeness(gap, least)
