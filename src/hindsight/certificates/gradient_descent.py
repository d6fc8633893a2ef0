"""Certificates of gradient descent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MismatchError
from ..kernels.losses import Hinge
from ..online.facts import Facts
from . import rivals, theorems
from .certificate import Assumption, Certificate, Comparator, Milestone
from .certify import LOSS_NAMES, closeness
from .theorems import Theorem, Verdict

if TYPE_CHECKING:
    from ..rows.data import Data
from ..batch.gradient_descent import Sweep

# ---------------------------------------------------------------- the theorem

GRADIENT_DESCENT = Theorem("gradient descent", "N2", "f(w̄) ≤ f(u) + (|u − wₛ|² + Σ ηₜ²|∇f(wₜ)|²)/(2 Σ ηₜ)")
STOCHASTIC = Theorem(
    "stochastic gradient descent", "N2", "E f(w̄) ≤ f(u) + (|u − wₛ|² + E Σ ηₜ²|vₜ|²)/(2 Σ ηₜ), over the draws"
)


def gradient_descent(value: float, distance: float, rate: float, rate_gradient: float) -> float:
    """f(u) + (|u - w_s|^2 + Sigma eta^2 |grad|^2)/(2 Sigma eta), for the mean of iterates weighted by their rates."""
    return value + (distance + rate_gradient) / (2.0 * rate)


def certify_sweep(
    sweep: Sweep, data: Data, output: str, *, u: Any = None, tol: float = 0.01, label: str | None = None
) -> Certificate:
    """The certificate of a sweep's output over its rows.

    The sweep is played again, which shows that these are its rows and gives the gradients met. The rival minimises
    f(u) + |u - w_s|^2 / (2 Sigma eta); with l2 that is once more a loss and a squared distance, from a shorter start.

    Parameters
    ----------
    sweep : the sweep.
    data : the rows it was played on, with targets as it saw them and the same intercept.
    output : "mean", "last" or "best".
    u : a comparator to take instead.
    tol : relative gap to which the rival is sought.
    label : the class this sweep stands for.
    """
    if sweep.rounds == 0:
        raise MismatchError("the model has played no round yet")
    facts, marks = _replay(sweep, data)
    learner, start = sweep.learner, sweep.first
    kappa = 1.0 / facts.rate
    factors, pull = data.c / data.c.sum(), sweep.l2 + kappa
    middle = start * (kappa / pull)
    if u is None:
        found = rivals.best(data, learner.loss, learner.geometry, pull, factors, middle, tol)
        u, gap, how, notes = found.u, found.gap, closeness(found.gap, found.objective), found.notes
    else:
        u, gap, how, notes = data.check(u), math.inf, "given", ()
    own, distance = sweep.objective(data, u), float((u - start) @ (u - start))
    measured = sweep.objective(data, sweep.output(output))
    bound = gradient_descent(own, distance, facts.rate, facts.rate_gradient)
    scale = float(factors @ data.y**2)
    theorem = GRADIENT_DESCENT
    found_verdict, equality = theorems.verdict(measured, bound, scale)
    needs: tuple[Assumption, ...] = (
        Assumption(
            f"f is convex and every gradient was met; wₛ first, {sweep.rounds:,} rounds, Σ η = {facts.rate:.6g}", True
        ),
    )
    if output == "last" or (output == "best" and sweep.batch is not None):
        what = "the last iterate" if output == "last" else "the best of some iterates of drawn rows"
        theorem, bound, found_verdict, equality = theorems.NONE, math.nan, Verdict.UNCHECKABLE, False
        needs = (Assumption(f"for {what} there is no theorem here: take output='mean'", None),)
    elif sweep.batch is not None:
        theorem, equality = STOCHASTIC, False
        found_verdict = Verdict.UNCHECKABLE if math.isfinite(bound) else Verdict.VOID
        needs = (
            Assumption("rows drawn uniformly with replacement: a bound on the mean over all draws, not on one", None),
        )
        notes = (*notes, f"in expectation, with the |vₜ|² of these draws: f ≤ {bound:.6g}; measured {measured:.6g}")
    fixed = facts.rate_max == facts.rate_min
    best_eta = math.nan
    if fixed and math.isfinite(bound) and facts.gradient > 0.0:
        best_eta = math.sqrt(distance / facts.gradient)
    opponent = Comparator(u, own, float(np.linalg.norm(u)), gap, how)
    path: tuple[Milestone, ...] = ()
    if found_verdict in (Verdict.HOLDS, Verdict.BROKEN):
        path = tuple(_milestone(sweep, data, mark, output, u, own, distance) for mark in marks)
        if any(theorems.verdict(c.measured, c.bound, scale)[0] is Verdict.BROKEN for c in path):
            found_verdict, notes = Verdict.BROKEN, (*notes, "the bound is broken on the way")
    name = "perceptron" if learner.loss == Hinge(0.0) else LOSS_NAMES[type(learner.loss)]
    quantity = f"f, the mean {name} loss{' with l2' if sweep.l2 else ''}, of the {output} iterate"
    return Certificate(
        found_verdict, theorem, quantity, measured, bound, opponent, needs, sweep.rounds, best_eta, equality, path,
        notes, label,
    )  # fmt: skip


class Mark:
    """A full-batch sweep after some rounds."""

    def __init__(self, sweep: Sweep) -> None:
        self.rounds, self.mean, self.weights = sweep.rounds, sweep.mean, sweep.weights
        self.rate, self.rate_gradient, self.best = float(sweep.f[9]), float(sweep.f[11]), min(sweep.values)


def _replay(sweep: Sweep, data: Data) -> tuple[Facts, list[Mark]]:
    """Play the sweep again and check that it is the same; its facts, and for full batches marks at 1, 2, 4, ..."""
    if data.width != sweep.v.shape[1]:
        raise MismatchError(f"the model has {sweep.v.shape[1]} coordinates, these rows have {data.width}")
    again, marks = sweep.fresh(), []

    def tell(_: int) -> None:
        t = again.rounds
        if sweep.batch is None and (t & (t - 1) == 0 or t == sweep.rounds):
            marks.append(Mark(again))

    try:
        again.play(data, sweep.rounds, tell=tell)
    except ValueError as error:
        raise MismatchError(f"{error}: these are not the rows of the run") from error
    far = max(float(np.abs(a - b).max()) for a, b in ((sweep.weights, again.weights), (sweep.mean, again.mean)))
    size = max(np.abs(sweep.weights).max(), np.abs(sweep.mean).max(), np.abs(sweep.first).max())
    if not np.allclose(again.f, sweep.f, rtol=1e-9, atol=1e-12) or not far <= 1e-9 * size:
        raise MismatchError(
            "the model was not trained on these rows: the sum of f along its iterates was "
            f"{sweep.facts.loss:.9g}, here it is {again.facts.loss:.9g}, and weights differ by {far:.3g}"
        )
    return again.facts, marks


def _milestone(
    sweep: Sweep, data: Data, mark: Mark, output: str, u: np.ndarray, own: float, distance: float
) -> Milestone:
    measured = mark.best if output == "best" else sweep.objective(data, mark.mean)
    bound = gradient_descent(own, distance, mark.rate, mark.rate_gradient)
    apart = mark.weights - u
    return Milestone(mark.rounds, measured, own, bound, float(apart @ apart))
