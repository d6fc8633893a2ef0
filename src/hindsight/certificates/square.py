"""The square loss: Widrow-Hoff, explicit and implicit, at a constant rate or not, and exponentiated gradient."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.losses import Square
from . import theorems
from .applied import AppliedTheorem, divergence_change, seek, size_of_terms
from .certificate import Assumption, Comparator
from .convex import convex, no_theorem

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
    """L <= L_u/(1 - eta X^2) + 2 D(u, w_1)/eta, whose potential is `factor` D(u, w)."""
    scale = run.learner.loss.scale
    eta = t.eta * scale
    rate, x2 = float(eta[0]), float((t.c * q).max())
    largest = max(rate * x2, float((eta * t.c * q).max()))  # the same but for rounding
    a = t.c / (1.0 - largest) if largest < 1.0 else t.c
    u, divergence, gap, how, notes = seek(run, data, t, Square(2.0), 2.0 / rate, a, u, tol)
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
    return AppliedTheorem(
        theorem,
        "squared error",
        t.c * error**2,
        own,
        bound,
        Comparator(u, float(own.sum()), float(np.linalg.norm(u)), gap, how),
        (_below_one(run, t, largest, "η"),),
        factor * divergence_change(t, z),
        allowed,
        factor * divergence,
        lambda: size_of_terms(step, q, t.z, z, step * error, allowed, step * t.y),
        theorems.best_rate(x2, float(own.sum()), distance) / scale,
        notes=notes,
    )


def _changing_rates(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Sigma eta l^2 <= |u - w_1|^2 + Sigma eta g^2/(1 - eta |x|^2)."""
    eta = t.eta * run.learner.loss.scale
    largest = float((eta * t.c * t.q).max())
    shrink = 1.0 - eta * t.c * t.q if largest < 1.0 else np.ones(t.z.size)
    a = t.c * eta / shrink
    u, divergence, gap, how, notes = seek(run, data, t, Square(2.0), 2.0, a, u, tol)
    z = data.margins(u)[t.row]
    error, miss = t.z - t.y, z - t.y
    step = eta * t.c * error
    rival = t.c * eta * miss**2
    allowed = np.full(t.z.size, math.nan)
    if largest < 1.0:
        allowed = theorems.lemma_widrow_hoff(eta, t.c, t.q, error, miss)
    return AppliedTheorem(
        theorems.WIDROW_HOFF_RATES,
        "squared error times its rate",
        t.c * error**2 * eta,
        rival,
        theorems.widrow_hoff_rates(np.cumsum(a * miss**2), 2.0 * divergence),
        Comparator(u, float(rival.sum()), float(np.linalg.norm(u)), gap, how),
        (_below_one(run, t, largest, "ηₜ"),),
        2.0 * divergence_change(t, z),
        allowed,
        2.0 * divergence,
        lambda: size_of_terms(step, t.q, t.z, z, step * error, allowed, step * t.y),
        notes=notes,
    )


def _below_one(run: Run, t: Rounds, largest: float, eta: str) -> Assumption:
    """The condition on the largest eta |x|^2 met, weights included."""
    norm = run.learner.geometry.norm
    norm = f"({norm})²" if norm.startswith("U") else f"{norm}²"
    weighted = " (weights included)" if t.c.max() != 1.0 else ""
    return Assumption(f"max {eta}·{norm} = {largest:.6g}{weighted}, which must be below 1", largest < 1.0)


def implicit_widrow_hoff(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Implicit steps at a constant rate, which need no condition."""
    if not run.learner.rate.is_constant():
        return no_theorem(run, data, t, u, tol)
    scale = run.learner.loss.scale
    eta = t.eta * scale
    rate, x2 = float(eta[0]), float((t.c * t.q).max())
    u, divergence, gap, how, notes = seek(run, data, t, Square(2.0), 2.0 / rate, t.c, u, tol)
    z = data.margins(u)[t.row]
    error, miss = t.z - t.y, z - t.y
    own, distance = t.c * miss**2, 2.0 * divergence
    total, grow = float(own.sum()), theorems.implicit_factor(rate, x2)
    bound = theorems.implicit(rate, x2, np.cumsum(own), distance)
    damped = float((t.c * error**2 / (1.0 + eta * t.c * t.q)).sum())
    best_eta = math.sqrt(distance / (total * x2)) if total * x2 > 0.0 else math.nan
    step, allowed = eta * t.c * error, theorems.lemma_implicit(eta, t.c, t.q, error, miss)
    return AppliedTheorem(
        theorems.IMPLICIT,
        "squared error",
        t.c * error**2,
        own,
        bound,
        Comparator(u, total, float(np.linalg.norm(u)), gap * grow, how),
        (Assumption(f"η = {rate:g} > 0 is all it needs; max |x|₂ = {run.facts.x2:.6g}", True),),
        2.0 * divergence_change(t, z),
        allowed,
        2.0 * divergence,
        lambda: size_of_terms(step, t.q, t.z, z, step * error, allowed, step * t.y),
        best_eta / scale,
        (damped, float(bound[-1]) / grow, "Σ ℓ²/(1 + η|x|²)"),
        notes,
    )
