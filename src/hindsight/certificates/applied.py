"""A theorem applied to a run: what is measured in each round, what the comparator loses, and the bound."""

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
    from .audit import Rounds
    from .course import Course
    from .outcome import Outcome
    from .theorems import Theorem, Verdict


class Lemma(NamedTuple):
    """How the steps of a run changed the potential of a theorem, and what its lemma allows; one number per round.

    Attributes
    ----------
    change, allowed : what the step added to the potential, and the most that the lemma allows it to add.
    potential : the potential at the start; NaN where it is not tracked.
    size : the magnitude of the terms of `change` and `allowed`; their rounding errors are relative to it.
    """

    change: np.ndarray
    allowed: np.ndarray
    potential: float
    size: Callable[[], np.ndarray]


class Band(NamedTuple):
    """The tolerances that `theorems.verdict` needs in addition to the two sides of a theorem."""

    scale: float
    rounding: float


@dataclass(frozen=True)
class AppliedTheorem:
    """A theorem applied to a run.

    Attributes
    ----------
    theorem, quantity : the theorem, and the name of what is measured.
    course : what was measured, what the comparator loses, and the bound.
    comparator, assumptions : as in the certificate.
    lemma : what the theorem says about every step, if it has such a lemma.
    best_eta : as in the certificate.
    sharper : a sharper form of the theorem as (left side, right side, formula); None if there is none.
    notes : further remarks.
    share : the part of the bound due to the comparator's distance to the start, if known.
    met : the same run and comparator under a data-dependent form of the theorem, if there is one.
    band : how far rounding may lift what was measured above the bound, if the theorem says so itself.
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
        """What was measured, over all rounds."""
        return float(self.course.measured[-1])

    @property
    def bound(self) -> float:
        """The bound after all rounds."""
        return float(self.course.bound[-1])

    @property
    def applies(self) -> bool:
        """Whether there is a bound and no assumption fails."""
        return all(need.met is not False for need in self.assumptions) and math.isfinite(self.bound)


class Judged(NamedTuple):
    """The verdict on a theorem applied to a run, with its bound; NaN if nothing is promised."""

    case: AppliedTheorem
    verdict: Verdict
    bound: float
    equality: bool
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]

    @property
    def why_not(self) -> str:
        """Why nothing is promised: the first assumption that is not met, or else the last note."""
        return next((need.text for need in self.assumptions if not need.met), "".join(self.notes[-1:]))

    def certificate(self, rounds: int, label: str | None, known: Outcome | None) -> Certificate:
        """The certificate of a run of `rounds` rounds, with what is known in hindsight."""
        case, potential = self.case, None
        if case.lemma is not None:
            potential = case.lemma.potential + summed(case.lemma.change, case.course.rounds)
        return Certificate(
            self.verdict, case.theorem, case.quantity, case.measured, self.bound, case.comparator, self.assumptions,
            rounds, case.best_eta, self.equality, milestones(case.course, potential, self.verdict), self.notes, label,
            **({} if known is None else known._asdict()),
        )  # fmt: skip


def measured_loss(loss: Any) -> Any:
    """The loss as certificates measure it: the squared error has factor 1, whatever scale the learner gives it."""
    return Square(2.0) if loss.quadratic else loss


def measured_unit(loss: Any) -> float:
    """The factor from a loss to what certificates measure."""
    return 2.0 / float(loss.scale) if loss.quadratic else 1.0


def measured_name(loss: Any) -> str:
    """The name of what is measured."""
    return "squared error" if loss.quadratic else f"{loss.name} loss"


def unit_and_name(learner: Learner) -> tuple[float, str]:
    """The factor from a learner's loss to what is measured, and its name; 1 for GLM-tron's matching loss."""
    if learner.theorem == "glm-tron":
        return 1.0, "matching loss"
    return measured_unit(learner.loss), measured_name(learner.loss)


def loss_as_measured(learner: Learner) -> Any:
    """The loss of a learner as it is measured."""
    return learner.loss if learner.theorem == "glm-tron" else measured_loss(learner.loss)


PACKAGE = Square.__module__.rpartition(".")[0]  # of the losses whose convexity tests show
GRID, TARGETS = 33, 9  # margins and targets at which slopes are compared


def convexity(loss: Any, y: np.ndarray, text: str, *margins: np.ndarray) -> Assumption:
    """The assumption `text`: the loss is declared convex, and is convex at the margins of each round."""
    return convex_as_met(loss, text, convexity_faults(loss, y, *margins) if loss.convex else ())


def convex_as_met(loss: Any, text: str, faults: Sequence[str]) -> Assumption:
    """The assumption `text`: the loss is declared convex, and no violation was seen."""
    if not loss.convex:
        return Assumption(f"the {loss.name} loss must be convex, and does not say that it is", None)
    return Assumption(f"the {loss.name} loss must be convex: {faults[0]}" if faults else text, not faults)


def ours(loss: Any) -> bool:
    """Whether a loss belongs to this package, whose tests establish its convexity."""
    return type(loss).__module__.startswith(f"{PACKAGE}.")


def convexity_faults(loss: Any, y: np.ndarray, *margins: np.ndarray) -> tuple[str, ...]:
    """Describe where a loss is not convex at the margins of some rounds; empty for a loss of this package.

    Two consequences of convexity are checked. At the margins of each round the loss lies above its tangents, which is
    what the proofs use. Over the range of all margins its slope never decreases.
    """
    if ours(loss):
        return ()
    with np.errstate(all="ignore"):  # what overflows is void by itself
        fault = _below_tangent(loss, y, margins) or _falling_slope(loss, y, margins)
    return (fault,) if fault else ()


def _below_tangent(loss: Any, y: np.ndarray, margins: tuple[np.ndarray, ...]) -> str:
    """Describe where the loss lies below its tangent at another margin of the round; empty if it never does."""
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
    """Describe where the slope decreases within the range of the margins; empty if it does not."""
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
    """An upper bound on the error of each round's change of potential."""
    far = rounding(run, t, float(np.linalg.norm(case.comparator.u)))
    assert case.lemma is not None
    return far + 8.0 * EPS * case.lemma.size()


def size_of_terms(step: np.ndarray, q: np.ndarray, z: np.ndarray, rival: np.ndarray, *terms: np.ndarray) -> np.ndarray:
    """The magnitude of the terms whose sums are a change of potential and its bound."""
    size: np.ndarray = step**2 * q + 2.0 * np.abs(step) * (np.abs(z) + np.abs(rival))
    for term in terms:
        size += np.abs(term)
    return size


def size_of_losses(loss: Any, t: Rounds, *margins: np.ndarray) -> np.ndarray:
    """The magnitude of the terms whose differences are losses of bounded slope at these margins, times rate and weight.

    These terms are margins and targets; with a link function, also margins times targets.
    """
    behind, beside = (np.abs(t.y), 0.0) if loss.link != "identity" else (0.0, np.abs(t.y))
    size = sum((np.abs(z) for z in margins), np.zeros(t.z.size))
    found: np.ndarray = (loss.lipschitz or 0.0) * t.eta * t.c * ((1.0 + behind) * size + beside)
    return found


def divergence_change(t: Rounds, z: np.ndarray) -> np.ndarray:
    """The change of D(u, w) by the step of each round; z holds the margins of u."""
    return t.change - t.step * z


def rounding(run: Run, t: Rounds, norm: float) -> np.ndarray:
    """The rounding error that the change of potential may have in each round, in addition to that of its terms.

    A margin is summed in eight lanes, with an error proportional to |w| |x|. For u the norm is given; for the run,
    |w|^2/2 is known from its changes. For multiplicative weights |w|_1 <= U takes its place, steps are rounded, and
    the change of a log mass is a sum over all coordinates. Some potentials are 2 D.
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
    """A run and the comparator of its theorem, round by round.

    Attributes
    ----------
    run, data, t : Run, Data and Rounds
        The run, its rows and its rounds.
    u, z : ndarray
        The comparator, and its margin in each round.
    divergence : float
        D(u, w_1).
    gap, how, notes : float, str and tuple of str
        How close it is to the comparator that makes the bound smallest, and how it was found.
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
        return cls(run, data, t, u, t.of(data.margins(u)), *more)

    def lemma(
        self, factor: float, allowed: np.ndarray, *terms: np.ndarray, step: np.ndarray | None = None,
        q: np.ndarray | None = None,
    ) -> Lemma:  # fmt: skip
        """How the steps changed the potential `factor` D(u, w); `terms` and the margins give the size of rounding.

        `step` defaults to the steps that were taken, and `q`, the size of each row, to |x|_2^2.
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
        """The applied theorem: what is measured in each round, what u loses in it, and the bound after it.

        `unit` is the factor in which the gap is reported; `more` sets further attributes of the `AppliedTheorem`.
        """
        rival = Comparator(self.u, float(own.sum()), float(np.linalg.norm(self.u)), unit * self.gap, self.how)
        course = self.t.course(measured, own, bound)
        return AppliedTheorem(theorem, quantity, course, rival, needs, lemma, notes=(*self.notes, *notes), **more)

    def met(self, case: AppliedTheorem, right: np.ndarray, eta: np.ndarray, times: float = 1.0) -> np.ndarray:
        """The sum of what each round promises, less what its step took off `times` the lemma's potential."""
        assert case.lemma is not None
        return theorems.met(right, times * case.lemma.change, times * slack(self.run, self.t, case), eta)

    def also(
        self, case: AppliedTheorem, theorem: Theorem, bound: np.ndarray,
        sums: tuple[np.ndarray, np.ndarray] | None = None, **more: Any,
    ) -> AppliedTheorem:  # fmt: skip
        """The case with a further form of its theorem for the same u, which may measure a different quantity."""
        course, rival = case.course._replace(bound=self.t.bounded(bound)), case.comparator
        if sums is not None:
            course, rival = self.t.course(*sums, bound), replace(rival, loss=float(sums[1].sum()))
        return replace(case, met=replace(case, theorem=theorem, course=course, comparator=rival, **more))


def seek(run: Run, data: Data, t: Rounds, loss: Any, factor: float, a: np.ndarray, u: Any, tol: float) -> Game:
    """The game against the u that minimises Sigma a loss(u . x, y) + factor Sigma D(u, w_t) (1/eta_t - 1/eta_{t-1}).

    1/eta_0 is 0, so at a constant rate the second sum is D(u, w_1)/eta. D(u, w) is psi(u) - u . theta plus a term
    without u, so the sum is D(u, w')/eta_T plus such a term; the theta of w' is theta_1 plus each step times
    1 - eta_T/eta_t.
    """
    factors = t.by_row(a)
    geometry = run.learner.geometry
    kappa = factor / float(t.eta[-1])
    if u is None:
        around, fixed = None, run.learner.rate.is_constant()
        if not fixed:
            around = -data.combine(t.by_row(t.step * (1.0 - t.eta[-1] / t.eta)))
        best = comparator.best(data, loss, geometry, kappa, factors, run.first, tol, around=around)
        how = best.how if loss.convex else "found"
        divergence = best.divergence if fixed else space(geometry, data.width, run.first).divergence(best.u)
        return Game.beside(run, data, t, best.u, divergence, best.gap, how, best.notes)
    given = comparator.fixed(data, loss, geometry, u, kappa, factors, run.first)
    return Game.beside(run, data, t, given.u, given.divergence, given.gap, given.how)
