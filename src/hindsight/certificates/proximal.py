"""Implicit steps on any convex loss, at any rates, in any geometry that reports what its steps do to the potential."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.floats import EPS
from ..online.margins import each_loss
from . import theorems
from .adaptive import slope_error
from .applied import convexity, divergence_change, rounding, seek, size_of_losses, unit_of
from .certificate import Assumption

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .applied import AppliedTheorem
    from .replay import Rounds


INEXACT = 1e-6  # how far a slope may be from that of the loss, relative to the largest


def implicit_descent(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """L <= L_u + D(u, w_1)/eta + Sigma pi, and the form that keeps the distances met, the only one for changing rates.

    u minimises that form without its last distance. Squared errors are given without the scale of the loss.
    """
    loss, eta = run.learner.loss, t.eta
    unit, name = unit_of(run.learner)
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
