"""Explicit and implicit steps on a convex loss in any geometry, and runs without a theorem."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...batch.links import link_fault
from ...kernels.floats import EPS
from ...online.margins import each_loss, each_mean, each_slope
from ...online.parts import LINKS
from .. import theorems
from ..applied import AppliedTheorem, Game, convexity, divergence_change, rounding, seek, size_of_losses, unit_and_name
from ..certificate import Assumption
from .adaptive import slope_error

if TYPE_CHECKING:
    from ...online.run import Run
    from ...rows.data import Data
    from ..applied import AppliedTheorem
    from ..audit import Rounds

CONVEX = "the loss is convex and every gradient was met; nothing is asked of the data"
PLANTED = 1e-12  # how far y may be from u(w*.x) and still count as planted


def convex(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Explicit steps on a convex loss: the bound from the gradients met, and the form that also keeps the distances.

    u minimises the latter without its last distance.
    """
    loss, geometry, fixed = run.learner.loss, run.learner.geometry, run.learner.rate.is_constant()
    paid, slope = each_loss(loss, t.z, t.y), each_slope(loss, t.z, t.y)
    unit, name = unit_and_name(run.learner)
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


# ---------------------------------------------------------------- implicit steps


INEXACT = 1e-6  # how far a slope may be from that of the loss, relative to the largest


def implicit_descent(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """L <= L_u + D(u, w_1)/eta + Sigma pi, and the form that keeps the distances met, the only one for changing rates.

    u minimises that form without its last distance. Squared errors are given without the scale of the loss.
    """
    loss, eta = run.learner.loss, t.eta
    unit, name = unit_and_name(run.learner)
    game = seek(run, data, t, loss, 1.0, t.c, u, tol)
    z = game.z
    after, width, moved = landing(run, t)
    off, near = slope_error(loss, -t.step / eta, t.c, after, t.y, width)
    paid, own, reached = (t.c * each_loss(loss, at, t.y) for at in (t.z, z, after))
    stray = off * np.abs(z - after) + near
    price = theorems.proximal_price(paid, reached, moved, eta) + stray
    price = np.where((t.step == 0.0) & (off > 0.0), np.minimum(price, paid), price)  # no step: the round is paid for
    differences = size_of_losses(loss, t, z, after)
    right, first = unit * (own + price), unit * game.divergence / float(eta[0])
    allowed = lemma(run, t, z, eta * (own - reached + stray), eta * (np.abs(own) + np.abs(reached)) + differences)
    case = game.case(
        theorems.PROXIMAL,
        name,
        unit * paid,
        unit * own,
        np.cumsum(right) + first,
        (_implicit(loss, t, off, z, after),),
        game.lemma(1.0, allowed, eta * own, eta * reached, moved, eta * stray, differences),
        unit,
        (f"the price met: {unit * price.sum():.6g}",),
        share=first,
    )
    case = game.also(case, theorems.PROXIMAL_MET, game.met(case, right, eta, unit))
    return case if run.learner.rate.is_constant() or case.met is None else case.met


def _implicit(loss: Any, t: Rounds, off: np.ndarray, z: np.ndarray, after: np.ndarray) -> Assumption:
    """The assumptions that the loss is convex and that each step has the slope at its end, where the loss has one."""
    taken = np.abs(t.step / t.eta)
    far = np.where(t.step == 0.0, 0.0, off)
    if (far > INEXACT * taken.max()).any():
        k = int(far.argmax())
        text = f"steps must be implicit: the slope taken in round {k + 1} is off by {far[k]:.3g}"
        return Assumption(text, False)
    text = "the loss is convex and steps are implicit; nothing is asked of the data"
    return convexity(loss, t.y, text, t.z, z, after)


def lemma(run: Run, t: Rounds, z: np.ndarray, promised: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The lemma of an implicit step: how much it may add to D(u, w). `promised` bounds its first part, of size `size`.

    The change is step (z'' - u.x) - D(w', w), and the first part is at most `promised`. In the Euclidean geometry
    D(w', w) is known from the step. In the others it is the remainder, which must be at least 0.
    """
    if not run.learner.geometry.multiplicative:
        return promised - 0.5 * t.step**2 * t.q
    along = t.step * (t.after - z)
    over = along - promised
    beyond = over > 1e-12 * (size + np.abs(t.step) * (np.abs(t.after) + np.abs(z)))
    return np.where(beyond, divergence_change(t, z) - over, along)


def landing(run: Run, t: Rounds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The margin of each row after its step, the error of that margin, and a lower bound on D(w', w)."""
    geometry = run.learner.geometry
    if not geometry.multiplicative:
        after = t.z + t.step * t.q
        width = 8.0 * EPS * (np.abs(t.z) + np.abs(t.step * t.q) + np.abs(t.y))
        return after, width, 0.5 * t.step**2 * t.q
    reach = 2.0 * geometry.radius * t.top * (t.rounding + EPS * (8.0 + 2.0 * run.width))
    far = t.step * t.after - t.change - rounding(run, t, geometry.radius)
    return t.after, reach + 8.0 * EPS * np.abs(t.y), np.maximum(0.0, far)
