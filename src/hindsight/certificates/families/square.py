"""The square loss: Widrow-Hoff, explicit and implicit, at a constant rate or not, and exponentiated gradient."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.losses import Square
from .. import theorems
from ..applied import rounding, seek
from ..certificate import Assumption
from .convex import convex, implicit_descent

if TYPE_CHECKING:
    from ...online.run import Run
    from ...rows.data import Data
    from ..applied import AppliedTheorem, Game, Lemma
    from ..audit import Rounds


def widrow_hoff(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Explicit steps. With a loss of scale s at rate eta they are Widrow-Hoff steps at rate s eta."""
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
    """L <= L_u/(1 - eta X^2) + 2 D(u, w_1)/eta, whose potential is `factor` D(u, w), and its data-dependent form.

    u minimises the latter without its last distance.
    """
    scale = run.learner.loss.scale
    eta = t.eta * scale
    pace = eta * t.c
    rate, x2 = float(eta[0]), float((t.c * q).max())
    largest = max(rate * x2, float((pace * q).max()))  # the same but for rounding
    square = _squares_met(run, t, q)
    share = pace * square
    most = float(share.max())
    a = t.c / (1.0 - share) if most < 1.0 else t.c
    game = seek(run, data, t, Square(2.0), 2.0 / scale, a, u, tol)
    error, miss = t.z - t.y, game.z - t.y
    own, distance = t.c * miss**2, 2.0 * game.divergence
    step = pace * error
    if factor == 2.0:
        allowed = theorems.lemma_widrow_hoff(eta, t.c, q, error, miss)
    else:
        allowed = -step * (error - miss) + 0.5 * step**2 * q
    case = game.case(
        theorem, "squared error", t.c * error**2, own,
        theorems.widrow_hoff(rate, x2, np.cumsum(own), distance),
        (_below_one(run, t, largest, "η"),),
        _lemma(game, eta, factor, allowed, q),
        best_eta=theorems.best_rate(x2, float(own.sum()), distance) / scale,
    )  # fmt: skip
    if not most < 1.0:
        return case
    bound = game.met(case, theorems.stretched(eta, t.c, square, miss), eta, 2.0 / factor)
    if factor == 2.0:
        return game.also(case, theorems.WIDROW_HOFF_MET, bound)
    text = f"max ηV = {most:.6g}, which must be below 1, V ≤ ({run.learner.geometry.norm})² from the normalisers met"
    return game.also(case, theorems.EG_MET, bound, assumptions=(Assumption(text, True),))


def _lemma(game: Game, eta: np.ndarray, factor: float, allowed: np.ndarray, q: np.ndarray | None = None) -> Lemma:
    """The lemma of steps along errors; implicit steps are shorter."""
    t = game.t
    step = eta * t.c * (t.z - t.y)
    return game.lemma(factor, allowed, step * (t.z - t.y), allowed, step * t.y, step=step, q=q)


def _squares_met(run: Run, t: Rounds, q: np.ndarray) -> np.ndarray:
    """What takes the place of X^2 in each round: |x|_2^2, or V from the normaliser of a multiplicative step."""
    geometry = run.learner.geometry
    if not geometry.multiplicative:
        return q
    cumulant = np.maximum(0.0, t.change - t.step * t.z) + rounding(run, t, geometry.radius)
    return theorems.effective_square(t.step, cumulant, q)


def _changing_rates(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Sigma eta l^2 <= |u - w_1|^2 + Sigma eta g^2/(1 - eta |x|^2), and a bound on the plain loss with distances met.

    u minimises the latter without its last distance.
    """
    scale = run.learner.loss.scale
    eta = t.eta * scale
    largest = float((eta * t.c * t.q).max())
    a = t.c / (1.0 - eta * t.c * t.q if largest < 1.0 else np.ones(t.z.size))
    game = seek(run, data, t, Square(2.0), 2.0 / scale, a, u, tol)
    error, miss = t.z - t.y, game.z - t.y
    case = game.case(
        theorems.WIDROW_HOFF_RATES, "squared error times its rate", t.c * error**2 * eta, t.c * eta * miss**2,
        theorems.widrow_hoff_rates(np.cumsum(a * eta * miss**2), 2.0 * game.divergence),
        (_below_one(run, t, largest, "ηₜ"),),
        _lemma(game, eta, 2.0, theorems.lemma_widrow_hoff(eta, t.c, t.q, error, miss)),
    )  # fmt: skip
    if not largest < 1.0:
        return case
    bound = game.met(case, theorems.stretched(eta, t.c, t.q, miss), eta)
    sums = t.c * error**2, t.c * miss**2
    return game.also(case, theorems.WIDROW_HOFF_PLAIN, bound, sums, quantity="squared error")


def _below_one(run: Run, t: Rounds, largest: float, eta: str) -> Assumption:
    """The assumption that the largest eta c |x|^2 is below 1."""
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
    game = seek(run, data, t, Square(2.0), 2.0 / scale, t.c, u, tol)
    error, miss = t.z - t.y, game.z - t.y
    own, distance = t.c * miss**2, 2.0 * game.divergence
    total, grow = float(own.sum()), theorems.implicit_factor(rate, x2)
    bound = theorems.implicit(rate, x2, np.cumsum(own), distance)
    damped = float((t.c * error**2 / (1.0 + eta * t.c * t.q)).sum())
    best_eta = math.sqrt(distance / (total * x2)) if total * x2 > 0.0 else math.nan
    case = game.case(
        theorems.IMPLICIT, "squared error", t.c * error**2, own, bound,
        (Assumption(f"η = {rate:g} > 0 is all it needs; max |x|₂ = {run.facts.x2:.6g}", True),),
        _lemma(game, eta, 2.0, theorems.lemma_implicit(eta, t.c, t.q, error, miss)),
        unit=grow,
        best_eta=best_eta / scale,
        sharper=(damped, float(bound[-1]) / grow, "Σ ℓ²/(1 + η|x|²)"),
    )  # fmt: skip
    return game.also(case, theorems.IMPLICIT_MET, grow * game.met(case, own, eta))
