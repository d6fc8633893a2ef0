"""Mistake bounds: the perceptron, also in the scale-free geometry, and Winnow, on any data."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...rows.data import divided
from .. import theorems
from ..applied import AppliedTheorem, Game, rounding
from ..best import mistakes as best_u
from ..best.mistakes import TRIVIAL, largest_norm
from ..best.predictor import closeness
from ..best.separator import HardMargin, hard_margin
from ..best.spaces import space
from ..certificate import MISTAKES, WEIGHTED, Assumption
from .convex import no_theorem

if TYPE_CHECKING:
    from ...online.run import Run
    from ...rows.data import Data
    from ..audit import Rounds

NO_MARGIN = 1e-9  # margins up to which a search has ended at u = 0
SMALL = 4_000_000  # numbers in the rows up to which the hard margin is sought


def _labels(t: Rounds) -> Assumption:
    return Assumption("labels are −1 and 1", bool((np.abs(t.y) == 1.0).all()))


def _weighted(t: Rounds) -> bool:
    return not t.c.min() == t.c.max() == 1.0


def steps_on_mistakes(t: Rounds, norm: str) -> Assumption:
    """The assumption that the steps are the perceptron's, c y x on each mistake; other steps do not have its bound."""
    due = np.where(t.y * t.z <= 0.0, t.c * t.y, 0.0)
    size = "the size of the row's weight" if _weighted(t) else "size 1"
    text, other = f"steps of {size} on a mistake only, a zero margin being one", np.flatnonzero(t.step != due)
    if other.size == 0:
        return Assumption(f"{text}; {norm}", True)
    k = int(other[0])
    return Assumption(f"{text}: in round {k + 1} the step is {t.step[k]:.6g}, not {due[k]:.6g}", False)


def _mistakes(t: Rounds) -> str:
    return WEIGHTED if _weighted(t) else MISTAKES


def _weighting(t: Rounds, then: str) -> tuple[str, ...]:
    """A note on the meaning of the theorem's symbols if rows have weights c."""
    return (f"with weights c: M is Σ c over the mistakes, {then}",) if _weighted(t) else ()


def _at_most_all(bound: np.ndarray, t: Rounds) -> tuple[np.ndarray, tuple[str, ...]]:
    """The smaller of a bound on mistakes and the number of rounds, and a note if the latter is smaller at the end."""
    rounds = np.cumsum(t.c)
    return np.minimum(bound, rounds), (TRIVIAL,) if bound[-1] >= rounds[-1] else ()


def _all_rounds(data: Data, t: Rounds) -> Data:
    """The rows with their weights multiplied by the number of passes."""
    passes = t.z.size // np.count_nonzero(data.c)
    if passes == 1:
        return data
    every = copy(data)
    every.c = passes * data.c
    return every


def perceptron(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """The perceptron's bound for the u found over all rows or the separator of largest margin, whichever is smaller."""
    wrong = t.y * t.z <= 0.0
    w1 = run.first
    separable: str | None = None
    candidates: list[tuple[np.ndarray, float, str, tuple[str, ...]]] = []
    if u is not None:
        candidates.append((data.check(u), math.inf, "given", ()))
    else:
        noisy = best_u.perceptron(_all_rounds(data, t), top := largest_norm(data), tol)
        zero = top * float(np.linalg.norm(noisy.u)) <= NO_MARGIN
        u = np.zeros_like(noisy.u) if zero else noisy.u
        candidates.append((u, noisy.gap, closeness(noisy.gap, noisy.bound, " over all rows"), noisy.notes))
        if data.rounds * data.width <= SMALL:
            hard = hard_margin(data)
            if hard.u is not None:
                gap = run.facts.weight_x2 * (hard.norm**2 - hard.lower**2)
                candidates.append((hard.u, gap, hard.found, hard.notes))
            separable = _separability(run, t, hard)
    cases = [_perceptron_case(run, data, t, wrong, w1, *c) for c in candidates]
    case = min(cases, key=lambda c: c.bound)
    return case if separable is None else replace(case, notes=(*case.notes, separable))


def _separability(run: Run, t: Rounds, hard: HardMargin) -> str:
    """Whether the rows are separable and, if w_1 = 0, what follows: M <= max c |x|_2^2 B^2, with M weighted by c."""
    if hard.u is None:
        return hard.notes[0] if hard.notes else "not shown separable"
    promise = ""
    if not run.first.any():
        symbol = "weighted M ≤ max c|x|₂²·B²" if _weighted(t) else "(X₂B)²"
        promise = f", {symbol} = {run.facts.weight_x2 * hard.norm**2:.6g}"
    return f"separable: B = {hard.norm:.6g}{promise}"


def _perceptron_case(
    run: Run, data: Data, t: Rounds, wrong: np.ndarray, w1: np.ndarray, u: np.ndarray, gap: float, how: str, notes: Any
) -> AppliedTheorem:
    game = Game.beside(run, data, t, u, 0.5 * float((u - w1) @ (u - w1)), gap, how, notes)
    right = t.y * game.z
    hinge = t.c * np.maximum(0.0, 1.0 - right)
    norm, start, along = float(np.linalg.norm(u)), float(w1 @ w1), float(u @ w1)
    counted, short = np.where(wrong, t.c, 0.0), np.where(wrong, hinge, 0.0)
    bound = theorems.perceptron(np.cumsum(short), norm, np.cumsum(counted**2 * t.q), start, along)
    bound, trivial = _at_most_all(bound, t)
    return game.case(
        theorems.PERCEPTRON_NOISY,
        _mistakes(t),
        counted,
        t.c * (right <= 0.0),
        bound,
        (_labels(t), steps_on_mistakes(t, f"max |x|₂ = {run.facts.x2:.6g}")),
        game.lemma(2.0, counted**2 * t.q - 2.0 * (counted - short), counted, counted * hinge),
        notes=(*trivial, *_weighting(t, "H is Σ c max(0, 1 − y u·x) over them, and |x|² is c²|x|²")),
    )


def scale_free_perceptron(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """M ≤ H + |u|_M √(Σ over mistakes of qₜ) in the scale-free geometry, |u|_M² = Σ M² u².

    The norm uses the column scales M at the end of the run, and qₜ those of round t. This is the bound of the Euclidean
    perceptron for u M and rows x/M, except that qₜ is larger, since the scales had not grown to M yet.
    """
    sizes = np.where(run.state.largest_x > 0.0, run.state.largest_x, 1.0)
    case = perceptron(run, divided(data, sizes, data.y), t, None if u is None else data.check(u) * sizes, tol)
    rival = replace(case.comparator, u=case.comparator.u / sizes)
    steps = steps_on_mistakes(t, f"max |x/M|₂ = {np.sqrt(t.q.max()):.6g}")
    potential = float(((run.state.theta / sizes) ** 2).sum())
    spent = float((np.where(t.y * t.z <= 0.0, t.c, 0.0) ** 2 * t.q).sum())
    return replace(
        case, theorem=theorems.PERCEPTRON_SCALE_FREE, comparator=rival,
        lemma=None,  # the metric moves, so that steps are not those of the Euclidean statement
        sharper=(potential, spent, "Σ θᵢ²/Mᵢ²"), assumptions=(case.assumptions[0], steps),
        notes=tuple(note for note in case.notes if not note.startswith("separable")),
    )  # fmt: skip


def winnow(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """Winnow, plain or balanced, on any data, at a constant rate."""
    if not run.learner.rate.is_constant():
        return no_theorem(run, data, t, u, tol)
    learner = run.learner
    geometry, eta = learner.geometry, float(t.eta[0])
    wrong = t.y * t.z <= 0.0
    top, heaviest = geometry.radius * float(t.top.max()), float(t.c.max())
    where = space(geometry, data.width, run.first)
    if u is None:
        found = best_u.winnow(_all_rounds(data, t), geometry, eta, run.first, float(t.top.max()), heaviest, tol)
        delta, how = found.margin, closeness(found.gap, found.bound, " over all rows")
        game = Game.beside(run, data, t, found.u, max(0.0, where.divergence(found.u)), found.gap, how, found.notes)
    else:
        delta, u = 0.0, where.check(data.check(u))
        game = Game.beside(run, data, t, u, max(0.0, where.divergence(u)), math.inf, "given")
    right, entropy, notes, short = t.y * game.z, game.divergence, tuple[str, ...](), np.zeros(0)
    if delta <= 0.0 and top > 0.0:
        delta = _best_delta(eta, top, heaviest, entropy, t.c[wrong], right[wrong])
    if math.isfinite(delta):
        short = np.where(wrong, t.c * np.maximum(0.0, delta - right), 0.0)
        best_eta = _best_winnow_rate(top, heaviest, entropy, delta, float(short.sum()))
        bound, notes = _at_most_all(theorems.winnow(eta, top, heaviest, entropy, delta, np.cumsum(short)), t)
    else:  # the limit of the bound over all rows
        bound, best_eta = np.cumsum(t.c), math.nan
    counted = np.where(wrong, t.c, 0.0)
    far = eta * t.c * geometry.radius * t.top
    allowed = np.where(wrong, theorems.each_ln_cosh(far), 0.0) - eta * counted * right
    case = game.case(
        theorems.WINNOW,
        _mistakes(t),
        counted,
        t.c * (right <= 0.0),
        bound,
        (_labels(t), _gains(eta, top, heaviest, delta, geometry.norm)),
        game.lemma(1.0, allowed, far, q=t.top**2),
        notes=(*notes, *_weighting(t, "and H_δ is Σ c max(0, δ − y u·x) over them")),
        best_eta=best_eta,
    )
    case = replace(case, comparator=replace(case.comparator, norm=float(np.abs(game.u).sum())))
    if not (wrong.any() and math.isfinite(delta)):
        return case
    return _normalisers_met(game, case, wrong, delta, short)


def _normalisers_met(
    game: Game, case: AppliedTheorem, wrong: np.ndarray, delta: float, short: np.ndarray
) -> AppliedTheorem:
    """Winnow's bound, and that with the normalisers that its mistakes met, for the same u and delta."""
    run, t = game.run, game.t
    geometry, eta = run.learner.geometry, float(t.eta[0])
    most = theorems.each_ln_cosh(eta * t.c * geometry.radius * t.top)
    normaliser = np.minimum(t.change + rounding(run, t, geometry.radius), most)
    grown, made = np.cumsum(np.where(wrong, normaliser, 0.0)), np.cumsum(np.where(wrong, t.c, 0.0))
    bound = theorems.winnow_met(eta, delta, game.divergence, np.cumsum(short), grown, made)
    bound, trivial = _at_most_all(bound, t)
    gain = eta * delta - grown[-1] / made[-1]
    text = f"ηδ − N = {gain:.6g}, which must be above 0 (δ = {delta:.4g}, N from the normalisers met)"
    notes = (*(note for note in case.notes if note != TRIVIAL), *trivial)
    needs = case.assumptions[0], Assumption(text, bool(gain > 0.0))
    return game.also(case, theorems.WINNOW_MET, bound, assumptions=needs, notes=notes)


def _gains(eta: float, top: float, heaviest: float, delta: float, norm: str) -> Assumption:
    """The assumption that a mistake lowers the potential, with the margin delta."""
    if not math.isfinite(delta):
        return Assumption(f"δ → ∞, which asks nothing of η (max {norm} = {top:.6g})", True)
    gain = theorems.winnow_gain(eta, top, heaviest, delta)
    cost = f"ln cosh(η·{norm})" if heaviest == 1.0 else f"ln cosh(ηc·{norm})/c"
    most = f"max {norm} = {top:.6g}" + ("" if heaviest == 1.0 else f", c = {heaviest:.6g} the largest weight")
    text = f"ηδ − {cost} = {gain:.6g}, which must be above 0 (δ = {delta:.4g}, {most})"
    return Assumption(text, gain > 0.0)


def _best_winnow_rate(top: float, heaviest: float, entropy: float, delta: float, hinge: float) -> float:
    """The rate that makes Winnow's bound smallest for this u and delta; unique, as the bound is convex over concave."""
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
    """The margin that makes Winnow's bound smallest for a u, by trying all kinks: it is quasiconvex between them."""
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
