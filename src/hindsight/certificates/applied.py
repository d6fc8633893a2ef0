"""A theorem applied to a run: what is measured in each round, against what, and the bound after each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kernels.floats import EPS
from ..kernels.losses import Square
from ..online.margins import each_loss, each_slope
from . import theorems
from .best import comparator
from .best.spaces import space
from .certificate import Assumption, Certificate, Comparator
from .course import milestones, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..online.learners import Learner
    from ..online.run import Run
    from ..rows.data import Data
    from .course import Course
    from .hindsight import Outcome
    from .replay import Rounds
    from .theorems import Theorem, Verdict


class Lemma(NamedTuple):
    """What the steps of a run did to the potential of a theorem, and what its lemma allows; one number per round.

    Attributes
    ----------
    change, allowed : what the step taken added to the potential, and at most what the lemma says.
    potential : at the start; NaN where it is not followed.
    size : of the terms of change and allowed, which they may be off by in units of rounding.
    """

    change: np.ndarray
    allowed: np.ndarray
    potential: float
    size: Callable[[], np.ndarray]


class Band(NamedTuple):
    """What `theorems.verdict` asks for beside the two sides of a theorem."""

    scale: float
    rounding: float


@dataclass(frozen=True)
class AppliedTheorem:
    """A theorem applied to a run.

    Attributes
    ----------
    theorem, quantity : the theorem, and what is measured in words.
    course : what was measured, what the comparator loses, and the bound.
    comparator, assumptions : as in the certificate.
    lemma : what the theorem says of every step, where it does.
    best_eta : as in the certificate.
    sharper : a sharper form: its left side, its right side and how it is written; None where there is none.
    notes : what else there is to say.
    share : the part of the bound that the comparator's distance to the start costs, where it is known.
    met : the same run and comparator under a form of the theorem that keeps what the run met, where there is one.
    band : how far rounding may put what was measured above the bound, where the theorem itself says.
    """

    theorem: Theorem
    quantity: str
    course: Course
    comparator: Comparator
    assumptions: tuple[Assumption, ...]
    lemma: Lemma | None = None
    best_eta: float = math.nan
    sharper: tuple[float, float, str] | None = None
    notes: tuple[str, ...] = ()
    share: float = math.nan
    met: AppliedTheorem | None = None
    band: Band | None = None

    @property
    def measured(self) -> float:
        """What was measured of all rounds."""
        return float(self.course.measured[-1])

    @property
    def bound(self) -> float:
        """The bound after all rounds."""
        return float(self.course.bound[-1])

    @property
    def applies(self) -> bool:
        """Whether no assumption fails and there is a bound."""
        return all(need.met is not False for need in self.assumptions) and math.isfinite(self.bound)


class Judged(NamedTuple):
    """The verdict on a theorem applied to a run, with its bound, NaN where nothing is promised."""

    case: AppliedTheorem
    verdict: Verdict
    bound: float
    equality: bool
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]

    @property
    def why_not(self) -> str:
        """Why nothing is promised: the first assumption that is not met, or what was noted last."""
        return next((need.text for need in self.assumptions if not need.met), "".join(self.notes[-1:]))

    def certificate(self, rounds: int, label: str | None, known: Outcome | None) -> Certificate:
        """The certificate of a run of so many rounds, with what is known of it in hindsight."""
        case, potential = self.case, None
        if case.lemma is not None:
            potential = case.lemma.potential + summed(case.lemma.change, case.course.rounds)
        return Certificate(
            self.verdict, case.theorem, case.quantity, case.measured, self.bound, case.comparator, self.assumptions,
            rounds, case.best_eta, self.equality, milestones(case.course, potential, self.verdict), self.notes, label,
            **({} if known is None else known._asdict()),
        )  # fmt: skip


def measured_loss(loss: Any) -> Any:
    """The loss as certificates measure it: squared errors count whole, whatever factor their slope has in steps."""
    return Square(2.0) if loss.quadratic else loss


def measured_unit(loss: Any) -> float:
    """What a loss is multiplied by to be measured."""
    return 2.0 / float(loss.scale) if loss.quadratic else 1.0


def measured_name(loss: Any) -> str:
    """What is measured, in words."""
    return "squared error" if loss.quadratic else f"{loss.name} loss"


def unit_of(learner: Learner) -> tuple[float, str]:
    """What a learner's loss is multiplied by to be measured, and in words; GLM-tron's matching loss stays as it is."""
    if learner.theorem == "glm-tron":
        return 1.0, "matching loss"
    return measured_unit(learner.loss), measured_name(learner.loss)


def loss_of(learner: Learner) -> Any:
    """The loss of a learner as it is measured."""
    return learner.loss if learner.theorem == "glm-tron" else measured_loss(learner.loss)


PACKAGE = Square.__module__.rpartition(".")[0]  # of the losses whose convexity tests show
GRID, TARGETS = 33, 9  # margins and targets at which slopes are compared


def convexity(loss: Any, y: np.ndarray, text: str, *margins: np.ndarray) -> Assumption:
    """The text, if the loss declares that it is convex, and is so at the margins of each round."""
    return convex_as_met(loss, text, convexity_faults(loss, y, *margins) if loss.convex else ())


def convex_as_met(loss: Any, text: str, faults: Sequence[str]) -> Assumption:
    """The text, if the loss declares that it is convex, and no fault was met."""
    if not loss.convex:
        return Assumption(f"the {loss.name} loss must be convex, and does not say that it is", None)
    return Assumption(f"the {loss.name} loss must be convex: {faults[0]}" if faults else text, not faults)


def ours(loss: Any) -> bool:
    """Whether a loss is one of this package's, whose tests show its convexity once and for all."""
    return type(loss).__module__.startswith(f"{PACKAGE}.")


def convexity_faults(loss: Any, y: np.ndarray, *margins: np.ndarray) -> tuple[str, ...]:
    """Where a loss is not convex at the margins of some rounds, in words; none for a loss of this package.

    There a loss lies above its tangents, which is what the proofs take from convexity; over the range of all of them
    its slope never falls.
    """
    if ours(loss):
        return ()
    with np.errstate(all="ignore"):  # what overflows is void by itself
        fault = _below_tangent(loss, y, margins) or _falling_slope(loss, y, margins)
    return (fault,) if fault else ()


def _below_tangent(loss: Any, y: np.ndarray, margins: tuple[np.ndarray, ...]) -> str:
    """Where the loss lies below its tangent at another margin of the round, in words; empty if it never does."""
    known = [(z, each_loss(loss, z, y), each_slope(loss, z, y)) for z in margins]
    for at, value, slope in known:
        for z, other, _ in known:
            rise = slope * (z - at)
            room = 1e-9 * (np.abs(other) + np.abs(value) + np.abs(rise))
            if loss.link != "identity":  # margins are not in the units of targets: sums of both cancel
                room += 64.0 * EPS * (1.0 + np.abs(y)) * (1.0 + np.abs(z) + np.abs(at))
            below = value + rise - other - room
            if (below > 0.0).any():
                k = int(np.nanargmax(below))
                return f"at {z[k]:.6g} it is {other[k]:.6g}, below its tangent at {at[k]:.6g} (y = {y[k]:.6g})"
    return ""


def _falling_slope(loss: Any, y: np.ndarray, margins: tuple[np.ndarray, ...]) -> str:
    """Where the slope falls within the range of the margins, in words; empty if it does not."""
    low, high = min(float(z.min()) for z in margins), max(float(z.max()) for z in margins)
    if not math.isfinite(high - low):
        return ""
    grid = np.linspace(low, high, GRID)
    for target in np.unique(np.quantile(y, np.linspace(0.0, 1.0, TARGETS), method="nearest")):
        slopes = each_slope(loss, grid, np.full(GRID, target))
        falls = slopes[:-1] - slopes[1:] - 1e-9 * np.abs(slopes).max()
        if (falls > 0.0).any():
            k = int(np.nanargmax(falls))
            from_to = f"from {slopes[k]:.6g} at {grid[k]:.6g} to {slopes[k + 1]:.6g} at {grid[k + 1]:.6g}"
            return f"its slope falls {from_to} (y = {target:.6g})"
    return ""


def slack(run: Run, t: Rounds, case: AppliedTheorem) -> np.ndarray:
    """What the change of potential of each round may be off by, at most."""
    far = rounding(run, t, float(np.linalg.norm(case.comparator.u)))
    assert case.lemma is not None
    return far + 8.0 * EPS * case.lemma.size()


def size_of_terms(step: np.ndarray, q: np.ndarray, z: np.ndarray, rival: np.ndarray, *terms: np.ndarray) -> np.ndarray:
    """The size of the terms that a change of potential and its bound are sums of."""
    size: np.ndarray = step**2 * q + 2.0 * np.abs(step) * (np.abs(z) + np.abs(rival))
    for term in terms:
        size += np.abs(term)
    return size


def size_of_losses(loss: Any, t: Rounds, *margins: np.ndarray) -> np.ndarray:
    """The size of the terms that losses of bounded slope at these margins are differences of, times rate and weight.

    Those are margins and targets, and behind a link the margins times the targets.
    """
    behind, beside = (np.abs(t.y), 0.0) if loss.link != "identity" else (0.0, np.abs(t.y))
    size = sum((np.abs(z) for z in margins), np.zeros(t.z.size))
    found: np.ndarray = (loss.lipschitz or 0.0) * t.eta * t.c * ((1.0 + behind) * size + beside)
    return found


def divergence_change(t: Rounds, z: np.ndarray) -> np.ndarray:
    """How much the step taken in each round changed D(u, w), with z the margins of u."""
    return t.change - t.step * z


def rounding(run: Run, t: Rounds, norm: float) -> np.ndarray:
    """What rounding may have added to the change of potential in each round, beyond the size of its terms.

    A margin is a sum in eight lanes, whose error is in units of |w| |x|: that of u, whose norm is given, and that of
    the run, whose |w|^2/2 is known from its changes. Multiplicative weights have |w|_1 <= U instead, rounded steps, and
    the change of the logarithm of a mass, which is a sum of as many numbers as there are coordinates. Some potentials
    are 2 D.
    """
    geometry, first = run.learner.geometry, run.first
    lanes = EPS * (8.0 + 0.125 * run.width) * np.abs(t.step)
    margins = np.sqrt(t.q) * norm
    if geometry.multiplicative:
        margins += geometry.radius * t.top
        return 2.0 * (t.rounding + lanes * margins) + EPS * (8.0 * run.width + 64.0)
    square = np.concatenate(([0.0], 2.0 * np.cumsum(t.change))) + float(first @ first)
    margins += np.sqrt(t.q * np.maximum(0.0, np.maximum(square[:-1], square[1:])))
    return 2.0 * (t.rounding + lanes * margins)


class Game(NamedTuple):
    """A run beside the comparator of its theorem, round by round.

    Attributes
    ----------
    run, data, t : Run, Data and Rounds
        The run, its rows and its rounds.
    u, z : ndarray
        The comparator, and its margin in each round.
    divergence : float
        D(u, w_1).
    gap, how, notes : float, str and tuple of str
        How near it is to the one that makes the bound smallest, and how it was found.
    """

    run: Run
    data: Data
    t: Rounds
    u: np.ndarray
    z: np.ndarray
    divergence: float
    gap: float
    how: str
    notes: tuple[str, ...] = ()

    @classmethod
    def beside(cls, run: Run, data: Data, t: Rounds, u: np.ndarray, *more: Any) -> Game:
        """The game against u, with its margins."""
        return cls(run, data, t, u, data.margins(u)[t.row], *more)

    def lemma(
        self, factor: float, allowed: np.ndarray, *terms: np.ndarray, step: np.ndarray | None = None,
        q: np.ndarray | None = None,
    ) -> Lemma:  # fmt: skip
        """What the steps did to the potential `factor` D(u, w); its sums are of these terms, beside those of margins.

        Steps are those taken, and the size of a row is |x|_2^2, unless `step` and `q` say otherwise.
        """
        t, z = self.t, self.z
        taken, square = t.step if step is None else step, t.q if q is None else q
        change, potential = factor * divergence_change(t, z), factor * self.divergence
        return Lemma(change, allowed, potential, lambda: size_of_terms(taken, square, t.z, z, *terms))

    def case(
        self, theorem: Theorem, quantity: str, measured: np.ndarray, own: np.ndarray, bound: np.ndarray,
        needs: tuple[Assumption, ...], lemma: Lemma | None = None, unit: float = 1.0, notes: tuple[str, ...] = (),
        **more: Any,
    ) -> AppliedTheorem:  # fmt: skip
        """The theorem applied: what is measured in each round, what u loses there, and the bound after it.

        The gap is told in so many units; `more` are further attributes of an `AppliedTheorem`.
        """
        rival = Comparator(self.u, float(own.sum()), float(np.linalg.norm(self.u)), unit * self.gap, self.how)
        course = self.t.course(measured, own, bound)
        return AppliedTheorem(theorem, quantity, course, rival, needs, lemma, notes=(*self.notes, *notes), **more)

    def met(self, case: AppliedTheorem, right: np.ndarray, eta: np.ndarray, times: float = 1.0) -> np.ndarray:
        """The bound of what each round promises, less what its step took off so many times the lemma's potential."""
        assert case.lemma is not None
        return theorems.met(right, times * case.lemma.change, times * slack(self.run, self.t, case), eta)

    def also(
        self, case: AppliedTheorem, theorem: Theorem, bound: np.ndarray,
        sums: tuple[np.ndarray, np.ndarray] | None = None, **more: Any,
    ) -> AppliedTheorem:  # fmt: skip
        """The case with another form of its theorem for the same u, which may measure something else."""
        course, rival = case.course._replace(bound=self.t.bounded(bound)), case.comparator
        if sums is not None:
            course, rival = self.t.course(*sums, bound), replace(rival, loss=float(sums[1].sum()))
        return replace(case, met=replace(case, theorem=theorem, course=course, comparator=rival, **more))


def seek(run: Run, data: Data, t: Rounds, loss: Any, factor: float, a: np.ndarray, u: Any, tol: float) -> Game:
    """The game against the u of the least Sigma a loss(u . x, y) + factor Sigma D(u, w_t) (1/eta_t - 1/eta_{t-1}).

    1/eta_0 is 0, so that at a constant rate the sum is D(u, w_1)/eta. As D(u, w) is psi(u) - u . theta and a term
    without u, it is D(u, w')/eta_T for the w' whose theta is theta_1 and each step times 1 - eta_T/eta_t.
    """
    factors = np.bincount(t.row, a, data.rounds)  # summed over the passes of each row
    geometry = run.learner.geometry
    kappa = factor / float(t.eta[-1])
    if u is None:
        around, fixed = None, run.learner.rate.is_constant()
        if not fixed:
            around = -data.combine(np.bincount(t.row, t.step * (1.0 - t.eta[-1] / t.eta), data.rounds))
        best = comparator.best(data, loss, geometry, kappa, factors, run.first, tol, around=around)
        how = best.how if loss.convex else "found"
        divergence = best.divergence if fixed else space(geometry, data.width, run.first).divergence(best.u)
        return Game.beside(run, data, t, best.u, divergence, best.gap, how, best.notes)
    given = comparator.fixed(data, loss, geometry, u, kappa, factors, run.first)
    return Game.beside(run, data, t, given.u, given.divergence, given.gap, given.how)
