"""Descent on a convex loss in any geometry, and runs without a theorem, whose regret is only measured."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.links import link_fault
from ..kernels.floats import EPS
from ..online.margins import each_loss, each_mean, each_slope
from ..online.parts import LINKS
from . import theorems
from .applied import AppliedTheorem, Game, convexity, seek, size_of_losses, unit_of
from .certificate import Assumption

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .replay import Rounds

CONVEX = "the loss is convex and every gradient was met; nothing is asked of the data"
PLANTED = 1e-12  # how far y may be from u(w*.x) and still count as planted


def convex(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Explicit steps on a convex loss: the bound from the gradients met, and the form that also keeps the distances.

    u minimises the latter without its last distance.
    """
    loss, geometry, fixed = run.learner.loss, run.learner.geometry, run.learner.rate.is_constant()
    paid, slope = each_loss(loss, t.z, t.y), each_slope(loss, t.z, t.y)
    unit, name = unit_of(run.learner)
    weight = unit * (t.c if fixed else t.c * t.eta)
    game = seek(run, data, t, loss, 1.0, t.c, u, tol)
    z, divergence = game.z, game.divergence
    other = each_loss(loss, z, t.y)
    norm = geometry.dual_norm(t.q, t.top)
    gradient = (t.c * slope) ** 2 * norm
    rival, pace = weight * other, t.eta * t.c
    if fixed:
        bound = theorems.convex(float(t.eta[0]), np.cumsum(rival), unit * divergence, unit * np.cumsum(gradient))
    else:
        bound = theorems.convex_rates(np.cumsum(rival), unit * divergence, unit * np.cumsum(t.eta**2 * gradient))
    total = float(gradient.sum())
    allowed = -pace * (paid - other) + 0.5 * t.eta**2 * gradient
    case = game.case(
        theorems.CONVEX if fixed else theorems.CONVEX_RATES,
        name if fixed else f"{name} times its rate",
        weight * paid,
        rival,
        bound,
        (convexity(loss, t.y, CONVEX, t.z, z),),
        game.lemma(1.0, allowed, pace * paid, pace * other, size_of_losses(loss, t, t.z, z), q=norm),
        unit,
        best_eta=math.sqrt(2.0 * divergence / total) if fixed and total > 0.0 else math.nan,
    )
    own = unit * t.c * other
    bound = game.met(case, own + 0.5 * unit * t.eta * gradient, t.eta, unit)
    form = theorems.CONVEX_MET if fixed else theorems.CONVEX_PLAIN
    return game.also(case, form, bound, (unit * t.c * paid, own), quantity=name)


def shape_of_link(lipschitz: float, z: np.ndarray, mean: np.ndarray) -> Assumption:
    """The assumption that a link is nondecreasing and Lipschitz. The margins met can refute it, but not prove it."""
    fault = link_fault(z, mean, lipschitz)
    text = f"u is nondecreasing and {lipschitz:g}-Lipschitz at the {z.size:,} margins of the run and of w*"
    return Assumption(text if fault is None else f"{text}: it {fault}", True if fault is None else None)


def no_theorem(
    run: Run, data: Data, t: Rounds, u: Any, tol: float, why: str = "this learner names no theorem"
) -> AppliedTheorem:
    """Measure the regret, without a bound."""
    if run.learner.theorem is not None:
        why = f"the theorem {run.learner.theorem} speaks of a constant rate"
    elif run.learner.update.name == "implicit":
        why = "implicit steps of this loss in this geometry, or at rates that change in it, are covered by no theorem"
    case = convex(run, data, t, u, tol)
    return replace(
        case, theorem=theorems.NONE, assumptions=(Assumption(why, None),), best_eta=math.nan, met=None, lemma=None,
        course=case.course._replace(bound=np.full(t.marks.size, math.nan)),
    )  # fmt: skip


def planted(run: Run, data: Data, t: Rounds, w: Any) -> AppliedTheorem:
    """GLM-tron on rows with y = u(w*.x); deviations from it, with an allowance for rounding, are added to the bound."""
    loss, w = run.learner.loss, data.check(w)
    lipschitz = _lipschitz(loss)
    distance = float((w - run.first) @ (w - run.first))
    game = Game.beside(run, data, t, w, 0.5 * distance, 0.0, "planted")
    want, mean = each_mean(loss, game.z), each_mean(loss, t.z)
    error, far = mean - t.y, np.abs(want - t.y)
    eta, x2 = float(t.eta[0]), float((t.c * t.q).max())
    hidden = lipschitz * (8.0 + 0.125 * run.width) * np.sqrt(t.q) * float(np.linalg.norm(w)) + np.abs(want)
    extra = theorems.not_planted(t.eta, t.c, lipschitz, error, t.z - game.z, far + 4.0 * EPS * hidden)
    needs = (
        Assumption(
            f"y = u(w*·x): largest difference {far.max():.3g}, at most {PLANTED:g} allowed", bool(far.max() <= PLANTED)
        ),
        Assumption(
            f"ηλX² = {eta * lipschitz * x2:.6g}, which must be below 2 (λ = {lipschitz:g})", eta * lipschitz * x2 < 2.0
        ),
        Assumption("the rate is constant", run.learner.rate.is_constant()),
        *_own_link(loss, lipschitz, np.concatenate((t.z, game.z)), np.concatenate((mean, want))),
    )
    allowed = theorems.lemma_glm_tron(t.eta, t.c, t.q, lipschitz, error) + extra
    return game.case(
        theorems.GLM_TRON,
        "squared error",
        t.c * error**2,
        t.c * (want - t.y) ** 2,
        theorems.glm_tron(eta, x2, lipschitz, distance + np.cumsum(extra)),
        needs,
        game.lemma(2.0, allowed, t.step * t.y, allowed),
        best_eta=theorems.single_index_best_rate(x2, lipschitz),
    )


def _lipschitz(loss: Any) -> float:
    """The Lipschitz constant of the slope of a matching loss; raise a ValueError if the loss does not declare it."""
    if loss.link_lipschitz is None:
        raise ValueError(f"the loss {loss.name} must say the Lipschitz constant of its link, link_lipschitz")
    return float(getattr(loss, "scale", 1.0) * loss.link_lipschitz)


def _own_link(loss: Any, lipschitz: float, z: np.ndarray, mean: np.ndarray) -> tuple[Assumption, ...]:
    """The assumption that a user-defined link has the declared shape at all margins; empty for built-in links."""
    if any(type(loss) is type(known) for known in LINKS.values()):
        return ()
    return (shape_of_link(lipschitz, z, mean),)
