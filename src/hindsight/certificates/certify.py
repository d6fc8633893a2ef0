"""From a run and its rows to a certificate.

The rows are read again: the run is replayed, which shows that these are the rows it was trained on and gives the
margins of every round; then the rival in hindsight is sought, and its losses are taken from residuals over the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..kernels.geometries import Euclidean, Simplex
from ..kernels.losses import Clipped, Hinge, Logistic, Probit, Square, Tanh
from ..kernels.updates import Explicit
from ..online.learners import LINKS
from ..online.run import Run
from . import rivals, theorems
from .certificate import Assumption, Certificate, Comparator, Milestone
from .theorems import Theorem, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows.data import Data
from ..errors import MismatchError
from .replay import Rounds, replay

PLANTED = 1e-12  # how far y may be from u(w*.x) and still count as planted
SMALL = 4_000_000  # numbers in the rows up to which the hard margin is sought


@dataclass(frozen=True)
class Case:
    """A theorem applied to a run: what is measured each round, against what, and the bound after each."""

    theorem: Theorem
    quantity: str
    measured: np.ndarray  # a round
    rival: np.ndarray  # a round: the rival's own loss
    bound: np.ndarray  # after each round
    opponent: Comparator
    assumptions: tuple[Assumption, ...]
    change: np.ndarray  # of the potential, a round
    allowed: np.ndarray  # by the lemma
    potential: float  # at the start
    size: Callable[[], np.ndarray]  # of the terms of change and allowed: what they may be off by, in units of rounding
    best_eta: float = math.nan
    notes: tuple[str, ...] = ()


def certify_run(
    run: Run, data: Data, *, u: Any = None, planted: Any = None, tol: float = 0.01, label: str | None = None
) -> Certificate:
    """The certificate of a run over its rows.

    Parameters
    ----------
    run : the run.
    data : the rows it was trained on, with targets as it saw them and the same intercept.
    u : a comparator to take instead of the best in hindsight.
    planted : for GLM-tron, the w* with y = u(w*.x); without one the regret in the matching loss is certified.
    tol : relative gap to which the rival is sought.
    label : the class this run stands for.
    """
    if run.rounds == 0:
        raise MismatchError("the model has played no round yet")
    rounds = replay(run, data)
    case = _case(run, data, rounds, u, planted, tol)
    measured, bound = float(case.measured.sum()), float(case.bound[-1])
    found, equality = theorems.verdict(measured, bound, float((rounds.c * rounds.y**2).sum()))
    notes = case.notes
    if case.theorem is theorems.NONE:
        found, equality = Verdict.UNCHECKABLE, False
    elif any(need.met is False for need in case.assumptions) or found is Verdict.VOID:
        found, equality, bound = Verdict.VOID, False, math.nan
        if not math.isfinite(measured):
            notes = (*notes, f"the measured quantity is {measured}: it overflowed")
    elif found is Verdict.HOLDS:
        broken = _lemma_breaks(case)
        if broken is not None:
            found = Verdict.BROKEN
            notes = (*notes, f"the per-round lemma is broken in round {broken + 1}")
    return Certificate(
        found, case.theorem, case.quantity, measured, bound, case.opponent, case.assumptions, run.rounds,
        case.best_eta, equality, _path(case, found), notes, label,
    )  # fmt: skip


def _lemma_breaks(case: Case) -> int | None:
    """The first round in which the potential fell by less than the lemma says, beyond rounding."""
    if not (case.change > case.allowed).any():  # then the size of the terms need not be known
        return None
    bad = np.flatnonzero(case.change > case.allowed + 1e-12 * case.size())
    return int(bad[0]) if bad.size else None


def _size(step: np.ndarray, q: np.ndarray, z: np.ndarray, rival: np.ndarray, *terms: np.ndarray) -> np.ndarray:
    """The size of the terms that a change of potential and its bound are sums of (1 for logarithms of masses)."""
    size: np.ndarray = 1.0 + step**2 * q + 2.0 * np.abs(step) * (np.abs(z) + np.abs(rival))
    for term in terms:
        size += np.abs(term)
    return size


def _path(case: Case, verdict: Verdict) -> tuple[Milestone, ...]:
    total = len(case.measured)
    marks = sorted({min(total, 2**k) for k in range(total.bit_length() + 1)})
    measured, rival = np.cumsum(case.measured), np.cumsum(case.rival)
    potential = case.potential + np.cumsum(case.change)
    bound = case.bound if verdict in (Verdict.HOLDS, Verdict.BROKEN) else np.full(total, math.nan)
    return tuple(
        Milestone(k, float(measured[k - 1]), float(rival[k - 1]), float(bound[k - 1]), float(potential[k - 1]))
        for k in marks
    )


def _case(run: Run, data: Data, t: Rounds, u: Any, planted: Any, tol: float) -> Case:
    """Which theorem covers the run."""
    learner = run.learner
    explicit = isinstance(learner.update, Explicit)
    fixed = not learner.rate.rates.size and learner.rate.power == 0.0
    if planted is not None:
        if learner.name != "glm-tron":
            raise ValueError(f"a planted w* is for glm-tron, not for {learner.name}")
        return _planted(run, data, t, planted, fixed)
    if learner.name == "perceptron":
        return _perceptron(run, data, t, u, tol)
    if learner.name == "winnow" and fixed:
        return _winnow(run, data, t, u, tol)
    if isinstance(learner.loss, Square) and learner.name != "glm-tron":
        if isinstance(learner.geometry, Euclidean):
            if explicit or fixed:
                return _square(run, data, t, u, tol, explicit, fixed)
        elif explicit and fixed:
            return _square(run, data, t, u, tol, explicit, fixed)
    return _convex(run, data, t, u, tol, explicit and learner.name != "winnow", fixed)


def _sum_by_row(t: Rounds, values: np.ndarray, rows: int) -> np.ndarray:
    """A value a round, summed over the passes of each row: the factor a_t of the rival's loss there."""
    return np.bincount(t.row, values, rows)


def _opponent(
    run: Run, data: Data, t: Rounds, rule: Any, kappa: float, a: np.ndarray, u: Any, tol: float
) -> tuple[np.ndarray, float, float, str, tuple[str, ...]]:
    """u, D(u, w_1), the gap, how it was found, notes."""
    factors = _sum_by_row(t, a, data.rounds)
    geometry = run.learner.geometry
    if u is None:
        best = rivals.best(data, rule, geometry, kappa, factors, run.first, tol)
        how = closeness(best.gap, best.objective)
        return best.u, best.divergence, best.gap, how, best.notes
    given = rivals.fixed(data, rule, geometry, u, kappa, factors, run.first)
    return given.u, given.divergence, math.inf, "given", ()


def closeness(gap: float, objective: float, where: str = "") -> str:
    """How near a rival's objective is to the smallest."""
    share = gap / abs(objective) if objective else 0.0
    return f"the best{where}" if share < 1e-6 else f"within {100 * share:.2g} % of the best{where}"


def _square(run: Run, data: Data, t: Rounds, u: Any, tol: float, explicit: bool, fixed: bool) -> Case:
    """Theorems 1, 2, 3 and 1': the square loss. A rule of scale s at rate eta takes Widrow-Hoff's steps at s eta."""
    learner = run.learner
    eta = t.eta * learner.loss.scale
    euclidean = isinstance(learner.geometry, Euclidean)
    q = t.q if euclidean else (learner.geometry.radius * t.top) ** 2
    x2, rate, largest = float((t.c * q).max()), float(eta[0]), float((eta * t.c * q).max())
    error = t.z - t.y
    step = eta * t.c * error
    norm = "|x|₂²" if euclidean else ("(U|x|∞)²" if not isinstance(learner.geometry, Simplex) else "|x|∞²")
    seen = f"max η{'ₜ' if not fixed else ''}·{norm} = {largest:.6g}" + (
        " (weights included)" if t.c.max() != 1.0 else ""
    )
    needs: tuple[Assumption, ...] = (Assumption(f"{seen}, which must be below 1", largest < 1.0),)
    if not explicit:
        needs = (Assumption(f"η = {rate:g} > 0 is all it needs; max |x|₂ = {run.facts.x2:.6g}", True),)
    shrink = np.ones(t.z.size)
    if explicit and largest < 1.0:
        shrink = (1.0 - eta * t.c * q) if not fixed else np.full(t.z.size, 1.0 - largest)
    a = t.c * (eta if not fixed else 1.0) / shrink
    kappa = 2.0 / rate if fixed else 2.0
    u, divergence, gap, how, notes = _opponent(run, data, t, Square(2.0), kappa, a, u, tol)
    theirs = data.margins(u)[t.row]
    miss = theirs - t.y
    own, distance = t.c * miss**2, 2.0 * divergence
    measured = t.c * error**2 * (eta if not fixed else 1.0)
    start = distance / rate if fixed else distance
    grow = 1.0 + rate * x2 if not explicit else 1.0
    bound = grow * (np.cumsum(a * miss**2) + start)
    rival = own * (eta if not fixed else 1.0)
    lemma = theorems.lemma_widrow_hoff if explicit else theorems.lemma_implicit
    if euclidean:
        potential = distance
        if explicit and not largest < 1.0:  # the lemma asks for less than 1, the closed form of the change does not
            change, allowed = step**2 * q - 2.0 * step * (error - miss), np.full(t.z.size, math.nan)
        else:
            change, allowed = lemma(eta, t.c, q, error, miss)
    else:
        potential = divergence
        change = t.drift + step * theirs
        allowed = -step * (error - miss) + 0.5 * step**2 * q
    if explicit:
        theorem = (theorems.WIDROW_HOFF if fixed else theorems.WIDROW_HOFF_RATES) if euclidean else theorems.EG
        best_eta = theorems.best_rate(x2, float(own.sum()), distance) if fixed else math.nan
    else:
        theorem = theorems.IMPLICIT
        total = float(own.sum())
        best_eta = math.sqrt(distance / (total * x2)) if total * x2 > 0.0 else math.nan
        damped = float((t.c * error**2 / (1.0 + eta * t.c * q)).sum())
        notes = (*notes, f"sharper: Σ ℓ²/(1 + η|x|²) = {damped:.6g} ≤ {bound[-1] / grow:.6g}")
    quantity = "squared error" if fixed else "squared error times its rate"
    opponent = Comparator(u, float(rival.sum()), float(np.linalg.norm(u)), gap * grow, how)
    return Case(
        theorem, quantity, measured, rival, bound, opponent, needs, change, allowed, potential,
        lambda: _size(step, q, t.z, theirs, step * error, allowed, step * t.y),
        best_eta / learner.loss.scale, notes,
    )  # fmt: skip


def _convex(run: Run, data: Data, t: Rounds, u: Any, tol: float, explicit: bool, fixed: bool) -> Case:
    """Theorems 4 and 4': any convex loss in any geometry, explicit steps; otherwise only the regret is measured."""
    learner = run.learner
    rule, geometry = learner.loss, learner.geometry
    loss, other, slope = np.empty(t.z.size), np.empty(t.z.size), np.empty(t.z.size)
    kernels.losses(rule, t.z, t.y, loss)
    kernels.slopes(rule, t.z, t.y, slope)
    weighing = np.ones(t.z.size) if fixed else t.eta
    rate = float(t.eta[0]) if fixed else 1.0
    u, divergence, gap, how, notes = _opponent(run, data, t, rule, 1.0 / rate, t.c * weighing, u, tol)
    z = data.margins(u)[t.row]
    kernels.losses(rule, z, t.y, other)
    norm = t.q if isinstance(geometry, Euclidean) else (geometry.radius * t.top) ** 2
    gradient = (t.c * slope) ** 2 * norm
    measured, rival = t.c * weighing * loss, t.c * weighing * other
    half = 0.5 * t.eta**2 * gradient
    bound = np.cumsum(rival + half / rate) + divergence / rate
    step = t.eta * t.c * slope
    change = 0.5 * step**2 * t.q - step * (t.z - z) if isinstance(geometry, Euclidean) else t.drift + step * z
    allowed = -t.eta * t.c * (loss - other) + half
    best_eta = math.sqrt(2.0 * divergence / gradient.sum()) if fixed and gradient.sum() > 0.0 else math.nan
    name = "matching loss" if learner.name == "glm-tron" else f"{LOSS_NAMES[type(rule)]} loss"
    needs = (Assumption("the loss is convex and every gradient was met; nothing is asked of the data", True),)
    theorem = theorems.CONVEX if fixed else theorems.CONVEX_RATES
    if not explicit:
        which = "implicit steps" if not isinstance(learner.update, Explicit) else "Winnow at changing rates"
        covered = "the square loss in the Euclidean geometry at a constant rate"
        text = f"{which} are covered by no theorem here" + ("" if "Winnow" in which else f" beyond {covered}")
        theorem, needs, bound = theorems.NONE, (Assumption(text, None),), np.full(t.z.size, math.nan)
        change, best_eta = np.full(t.z.size, math.nan), math.nan
    opponent = Comparator(u, float(rival.sum()), float(np.linalg.norm(u)), gap, how)
    quantity = name if fixed else f"{name} times its rate"
    return Case(
        theorem, quantity, measured, rival, bound, opponent, needs, change, allowed, divergence,
        lambda: _size(step, norm, t.z, z, t.eta * t.c * loss, t.eta * t.c * other), best_eta, notes,
    )  # fmt: skip


LOSS_NAMES = {
    Square: "square",
    kernels.Absolute: "absolute",
    Logistic: "logistic",
    Hinge: "hinge",
    Clipped: "matching",
    Probit: "matching",
    Tanh: "matching",
}


def _perceptron(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> Case:
    """Theorem 5 for any data, and the separable form where it is the smaller one."""
    wrong = t.y * t.z <= 0.0
    w1 = run.first
    separable: str | None = None
    candidates: list[tuple[np.ndarray, float, str, tuple[str, ...]]] = []
    if u is not None:
        candidates.append((data.check(u), math.inf, "given", ()))
    else:
        noisy = rivals.perceptron(data, tol=tol)
        candidates.append((noisy.u, noisy.gap, closeness(noisy.gap, noisy.bound, " over all rows"), noisy.notes))
        if data.rounds * data.width <= SMALL:
            hard = rivals.hard_margin(data)
            if hard.u is not None:
                separable = f"separable: B = {hard.norm:.6g}, (X₂B)² = {(run.facts.x2 * hard.norm) ** 2:.6g}"
                gap = (run.facts.x2 * hard.norm) ** 2 - (run.facts.x2 * hard.lower) ** 2
                candidates.append((hard.u, gap, "of largest margin", hard.notes))
            else:
                separable = hard.notes[0] if hard.notes else "not shown separable"
    cases = [_perceptron_case(run, data, t, wrong, w1, *c) for c in candidates]
    case = min(cases, key=lambda c: float(c.bound[-1]))
    return case if separable is None else replace(case, notes=(*case.notes, separable))


def _perceptron_case(
    run: Run, data: Data, t: Rounds, wrong: np.ndarray, w1: np.ndarray, u: np.ndarray, gap: float, how: str, notes: Any
) -> Case:
    z = data.margins(u)[t.row]
    hinge = t.c * np.maximum(0.0, 1.0 - t.y * z)
    norm, start, along = float(np.linalg.norm(u)), float(w1 @ w1), float(u @ w1)
    moved = np.where(wrong, t.c, 0.0)
    over = np.cumsum(np.where(wrong, hinge, 0.0))
    bound = over + norm * np.sqrt(start + np.cumsum(moved**2 * t.q)) - along
    theorem = theorems.PERCEPTRON_NOISY
    clean = bool((t.y * z >= 1.0).all()) and start == 0.0
    if clean:
        # With H = 0 every mistake gains at least c, so M <= R^2 |u|^2, R^2 = max c|x|^2: the notes' form.
        plain = float((t.c * t.q).max()) * norm**2
        if plain < bound[-1]:
            theorem, bound = theorems.PERCEPTRON, np.full(t.z.size, plain)
    needs: tuple[Assumption, ...] = (
        Assumption("labels are −1 and 1", bool((np.abs(t.y) == 1.0).all())),
        Assumption(f"steps of size 1 on a mistake only, a zero margin being one; max |x|₂ = {run.facts.x2:.6g}", True),
    )
    if theorem is theorems.PERCEPTRON:
        needs = (*needs, Assumption(f"least y(u·x) = {float((t.y * z).min()):.9g}, which must be at least 1", clean))
    rival = t.c * (t.y * z <= 0.0)
    change = moved**2 * t.q + 2.0 * moved * t.y * (t.z - z)
    allowed = moved**2 * t.q - 2.0 * (moved - np.where(wrong, hinge, 0.0))
    distance = float((u - w1) @ (u - w1))
    quantity = "mistakes" if t.c.min() == t.c.max() == 1.0 else "weighted mistakes"
    opponent = Comparator(u, float(rival.sum()), norm, gap, how)
    return Case(
        theorem, quantity, moved, rival, bound, opponent, needs, change, allowed, distance,
        lambda: _size(moved, t.q, t.z, z, moved, moved * hinge), math.nan, notes,
    )  # fmt: skip


def _winnow(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> Case:
    """Theorem 6: Winnow, plain or balanced, on any data."""
    learner = run.learner
    geometry, eta = learner.geometry, float(t.eta[0])
    wrong = t.y * t.z <= 0.0
    top, heaviest = geometry.radius * float(t.top.max()), float(t.c.max())
    space = rivals.spaces.space(geometry, data.width, run.first)
    if u is None:
        found = rivals.winnow(data, geometry, eta, run.first, float(t.top.max()), heaviest, tol)
        u, delta, gap, notes = found.u, found.margin, found.gap, found.notes
        how = closeness(gap, found.bound, " over all rows")
        if not math.isfinite(delta):
            delta = top
    else:
        u, gap, how, notes = space.check(data.check(u)), math.inf, "given", ()
        delta = 0.0
    z = data.margins(u)[t.row]
    entropy = max(0.0, space.divergence(u))
    if delta <= 0.0 and top > 0.0:
        delta = _best_delta(eta, top, heaviest, entropy, t.c[wrong], t.y[wrong] * z[wrong])
    hinge = np.where(wrong, t.c * np.maximum(0.0, delta - t.y * z), 0.0)
    gain = eta * delta - theorems.ln_cosh(eta * heaviest * top) / heaviest
    bound = (entropy + eta * np.cumsum(hinge)) / gain if gain > 0.0 else np.full(t.z.size, math.nan)
    norm = "|x|∞" if isinstance(geometry, Simplex) else "U|x|∞"
    needs = (
        Assumption("labels are −1 and 1", bool((np.abs(t.y) == 1.0).all())),
        Assumption(
            f"ηδ − ln cosh(η·{norm}) = {gain:.6g}, which must be above 0 (δ = {delta:.4g}, max {norm} = {top:.6g})",
            gain > 0.0,
        ),
    )
    moved = np.where(wrong, t.c, 0.0)
    rival = t.c * (t.y * z <= 0.0)
    change = t.drift - eta * moved * t.y * z
    far = eta * t.c * geometry.radius * t.top
    allowed = np.where(wrong, np.logaddexp(far, -far) - math.log(2.0), 0.0)
    allowed -= eta * moved * t.y * z
    quantity = "mistakes" if t.c.min() == t.c.max() == 1.0 else "weighted mistakes"
    opponent = Comparator(u, float(rival.sum()), float(np.abs(u).sum()), gap, how)
    best_eta = _best_winnow_rate(top, heaviest, entropy, delta, float(hinge.sum()))
    return Case(
        theorems.WINNOW, quantity, moved, rival, bound, opponent, needs, change, allowed, entropy,
        lambda: _size(eta * moved, t.top**2, t.z, z, far), best_eta, notes,
    )  # fmt: skip


def _best_winnow_rate(top: float, heaviest: float, entropy: float, delta: float, hinge: float) -> float:
    """The rate that makes Winnow's bound smallest for this u and delta: convex over concave, so one minimum."""
    if not (top > 0.0 and entropy > 0.0 and delta > 0.0):
        return math.nan
    from scipy.optimize import minimize_scalar

    def value(log_eta: float) -> float:
        bound = theorems.winnow(math.exp(log_eta), top, heaviest, entropy, delta, hinge)
        return bound if math.isfinite(bound) else 1e300

    # ln cosh x <= x^2/2, so the gain is positive below 2 delta / (c X^2).
    middle = math.log(delta) - math.log(heaviest) - 2.0 * math.log(top)
    found = minimize_scalar(value, bounds=(middle - 30.0, middle + 30.0), method="bounded", options={"xatol": 1e-12})
    inside = minimize_scalar(value, bracket=(middle - 1.0, middle), options={"xtol": 1e-12})
    return math.exp(min((found.x, inside.x), key=value))


def _best_delta(eta: float, top: float, heaviest: float, entropy: float, c: np.ndarray, margins: np.ndarray) -> float:
    """The margin that makes Winnow's bound smallest for a given u: quasiconvex between its kinks, so try them all."""
    floor = theorems.ln_cosh(eta * heaviest * top) / (heaviest * eta)
    tries = np.unique(np.concatenate([margins[margins > floor], np.linspace(floor, top, 66)[1:]]))
    if tries.size > 4096:
        tries = np.unique(np.quantile(tries, np.linspace(0.0, 1.0, 4096)))
    order = np.argsort(margins)
    m, weight = margins[order], c[order]
    below = np.searchsorted(m, tries)
    mass = np.concatenate([[0.0], np.cumsum(weight)])[below]
    first = np.concatenate([[0.0], np.cumsum(weight * m)])[below]
    values = (entropy + eta * (tries * mass - first)) / (eta * (tries - floor))
    return float(tries[np.nanargmin(values)])


def _planted(run: Run, data: Data, t: Rounds, planted: Any, fixed: bool) -> Case:
    """Theorem 11: GLM-tron on data with y = u(w*.x)."""
    rule = run.learner.loss
    w = data.check(planted)
    z = data.margins(w)[t.row]
    want, mean = np.empty(t.z.size), np.empty(t.z.size)
    kernels.means(rule, z, want)
    kernels.means(rule, t.z, mean)
    far = float(np.abs(want - t.y).max())
    lipschitz = rule.scale * next(link.lipschitz for link in LINKS.values() if type(link.rule) is type(rule))
    eta, x2 = float(t.eta[0]), float((t.c * t.q).max())
    distance = float((w - run.first) @ (w - run.first))
    bound = theorems.glm_tron(eta, x2, lipschitz, distance)
    needs = (
        Assumption(f"y = u(w*·x): largest difference {far:.3g}, at most {PLANTED:g} allowed", far <= PLANTED),
        Assumption(
            f"ηλX² = {eta * lipschitz * x2:.6g}, which must be below 2 (λ = {lipschitz:g})", eta * lipschitz * x2 < 2.0
        ),
        Assumption("the rate is constant", fixed),
    )
    measured = t.c * (mean - t.y) ** 2
    rival = t.c * (want - t.y) ** 2
    step = t.eta * t.c * (mean - t.y)
    change = step**2 * t.q - 2.0 * step * (t.z - z)
    allowed = -t.eta * measured * (2.0 / lipschitz - t.eta * t.c * t.q)
    opponent = Comparator(w, float(rival.sum()), float(np.linalg.norm(w)), 0.0, "planted")
    best_eta = 1.0 / (lipschitz * x2) if x2 > 0.0 else math.nan
    return Case(
        theorems.GLM_TRON, "squared error", measured, rival, np.full(t.z.size, bound), opponent, needs, change, allowed,
        distance, lambda: _size(step, t.q, t.z, z, step * t.y, allowed), best_eta,
    )  # fmt: skip
