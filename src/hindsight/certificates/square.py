"""The square loss: Widrow-Hoff, explicit and implicit, at a constant rate or not, and exponentiated gradient."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.losses import Square
from . import theorems
from .applied import AppliedTheorem, Lemma, divergence_change, rounding, seek, size_of_terms, slack
from .certificate import Assumption, Comparator
from .convex import convex
from .proximal import implicit_descent

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .replay import Rounds


def widrow_hoff(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Explicit steps. A loss of scale s at rate eta takes Widrow-Hoff's steps at s eta."""
    if not run.learner.rate.is_constant():
        return _changing_rates(run, data, t, u, tol)
    return _explicit(run, data, t, u, tol, theorems.WIDROW_HOFF, 2.0, t.q)


def exponentiated_gradient(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """The same in a multiplicative geometry; at changing rates it is descent on a convex loss."""
    if not run.learner.rate.is_constant():
        return convex(run, data, t, u, tol)
    return _explicit(run, data, t, u, tol, theorems.EG, 1.0, run.learner.geometry.dual_norm(t.q, t.top))


def _explicit(
    run: Run, data: Data, t: Rounds, u: Any, tol: float, theorem: theorems.Theorem, factor: float, q: np.ndarray
) -> AppliedTheorem:
    """L <= L_u/(1 - eta X^2) + 2 D(u, w_1)/eta, whose potential is `factor` D(u, w), and the form as met.

    u is the one that makes the latter smallest, but for its last distance.
    """
    scale = run.learner.loss.scale
    eta = t.eta * scale
    rate, x2 = float(eta[0]), float((t.c * q).max())
    largest = max(rate * x2, float((eta * t.c * q).max()))  # the same but for rounding
    square = _squares_met(run, t, q)
    most = float((eta * t.c * square).max())
    a = t.c / (1.0 - eta * t.c * square) if most < 1.0 else t.c
    u, divergence, gap, how, notes = seek(run, data, t, Square(2.0), 2.0 / scale, a, u, tol)
    z = data.margins(u)[t.row]
    error, miss = t.z - t.y, z - t.y
    own, distance = t.c * miss**2, 2.0 * divergence
    step = eta * t.c * error
    bound = np.full(t.z.size, math.nan)
    if largest < 1.0:
        bound = theorems.widrow_hoff(rate, x2, np.cumsum(own), distance)
    if factor == 2.0:
        allowed = np.full(t.z.size, math.nan)  # the lemma asks for less than 1
        if largest < 1.0:
            allowed = theorems.lemma_widrow_hoff(eta, t.c, q, error, miss)
    else:
        allowed = -step * (error - miss) + 0.5 * step**2 * q
    case = AppliedTheorem(
        theorem,
        "squared error",
        t.course(t.c * error**2, own, bound),
        Comparator(u, float(own.sum()), float(np.linalg.norm(u)), gap, how),
        (_below_one(run, t, largest, "η"),),
        lemma := Lemma(
            factor * divergence_change(t, z),
            allowed,
            factor * divergence,
            lambda: size_of_terms(step, q, t.z, z, step * error, allowed, step * t.y),
        ),
        theorems.best_rate(x2, float(own.sum()), distance) / scale,
        notes=notes,
    )
    if not most < 1.0:
        return case
    rise, off = 2.0 / factor * lemma.change, 2.0 / factor * slack(run, t, case)
    bound = theorems.met(theorems.stretched(eta, t.c, square, miss), rise, off, eta)
    met = replace(case, course=case.course._replace(bound=t.bounded(bound)))
    if factor == 2.0:
        return replace(case, met=replace(met, theorem=theorems.WIDROW_HOFF_MET))
    text = f"max ηV = {most:.6g}, which must be below 1, V ≤ ({run.learner.geometry.norm})² from the normalisers met"
    return replace(case, met=replace(met, theorem=theorems.EG_MET, assumptions=(Assumption(text, True),)))


def _squares_met(run: Run, t: Rounds, q: np.ndarray) -> np.ndarray:
    """What each round has for X^2: |x|_2^2, or V from the normaliser that a multiplicative step met."""
    geometry = run.learner.geometry
    if not geometry.multiplicative:
        return q
    cumulant = np.maximum(0.0, t.change - t.step * t.z) + rounding(run, t, geometry.radius)
    return theorems.effective_square(t.step, cumulant, q)


def _changing_rates(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Sigma eta l^2 <= |u - w_1|^2 + Sigma eta g^2/(1 - eta |x|^2), and the plain loss with the distances met.

    u is the one that makes the latter smallest, but for its last distance.
    """
    scale = run.learner.loss.scale
    eta = t.eta * scale
    largest = float((eta * t.c * t.q).max())
    shrink = 1.0 - eta * t.c * t.q if largest < 1.0 else np.ones(t.z.size)
    a = t.c / shrink
    u, divergence, gap, how, notes = seek(run, data, t, Square(2.0), 2.0 / scale, a, u, tol)
    z = data.margins(u)[t.row]
    error, miss = t.z - t.y, z - t.y
    step = eta * t.c * error
    rival = t.c * eta * miss**2
    allowed = np.full(t.z.size, math.nan)
    if largest < 1.0:
        allowed = theorems.lemma_widrow_hoff(eta, t.c, t.q, error, miss)
    case = AppliedTheorem(
        theorems.WIDROW_HOFF_RATES,
        "squared error times its rate",
        t.course(
            t.c * error**2 * eta,
            rival,
            theorems.widrow_hoff_rates(np.cumsum(a * eta * miss**2), 2.0 * divergence),
        ),
        Comparator(u, float(rival.sum()), float(np.linalg.norm(u)), gap, how),
        (_below_one(run, t, largest, "ηₜ"),),
        lemma := Lemma(
            2.0 * divergence_change(t, z),
            allowed,
            2.0 * divergence,
            lambda: size_of_terms(step, t.q, t.z, z, step * error, allowed, step * t.y),
        ),
        notes=notes,
    )
    if not largest < 1.0:
        return case
    own = t.c * miss**2
    met = replace(
        case,
        theorem=theorems.WIDROW_HOFF_PLAIN,
        quantity="squared error",
        course=t.course(
            t.c * error**2,
            own,
            theorems.met(theorems.stretched(eta, t.c, t.q, miss), lemma.change, slack(run, t, case), eta),
        ),
        comparator=replace(case.comparator, loss=float(own.sum())),
    )
    return replace(case, met=met)


def _below_one(run: Run, t: Rounds, largest: float, eta: str) -> Assumption:
    """The condition on the largest eta |x|^2 met, weights included."""
    norm = run.learner.geometry.norm
    norm = f"({norm})²" if norm.startswith("U") else f"{norm}²"
    weighted = " (weights included)" if t.c.max() != 1.0 else ""
    return Assumption(f"max {eta}·{norm} = {largest:.6g}{weighted}, which must be below 1", largest < 1.0)


def implicit_widrow_hoff(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Implicit steps at a constant rate, which need no condition; at others they are descent on a convex loss."""
    if not run.learner.rate.is_constant():
        return implicit_descent(run, data, t, u, tol)
    scale = run.learner.loss.scale
    eta = t.eta * scale
    rate, x2 = float(eta[0]), float((t.c * t.q).max())
    u, divergence, gap, how, notes = seek(run, data, t, Square(2.0), 2.0 / scale, t.c, u, tol)
    z = data.margins(u)[t.row]
    error, miss = t.z - t.y, z - t.y
    own, distance = t.c * miss**2, 2.0 * divergence
    total, grow = float(own.sum()), theorems.implicit_factor(rate, x2)
    bound = theorems.implicit(rate, x2, np.cumsum(own), distance)
    damped = float((t.c * error**2 / (1.0 + eta * t.c * t.q)).sum())
    best_eta = math.sqrt(distance / (total * x2)) if total * x2 > 0.0 else math.nan
    step, allowed = eta * t.c * error, theorems.lemma_implicit(eta, t.c, t.q, error, miss)
    case = AppliedTheorem(
        theorems.IMPLICIT,
        "squared error",
        t.course(t.c * error**2, own, bound),
        Comparator(u, total, float(np.linalg.norm(u)), gap * grow, how),
        (Assumption(f"η = {rate:g} > 0 is all it needs; max |x|₂ = {run.facts.x2:.6g}", True),),
        lemma := Lemma(
            2.0 * divergence_change(t, z),
            allowed,
            2.0 * divergence,
            lambda: size_of_terms(step, t.q, t.z, z, step * error, allowed, step * t.y),
        ),
        best_eta / scale,
        (damped, float(bound[-1]) / grow, "Σ ℓ²/(1 + η|x|²)"),
        notes,
    )
    course = case.course._replace(bound=t.bounded(grow * theorems.met(own, lemma.change, slack(run, t, case), eta)))
    return replace(case, met=replace(case, theorem=theorems.IMPLICIT_MET, course=course))
