"""What is known of a run in hindsight: its comparators, the best fixed predictor and the best constant.

All of them are computed first; their losses on the rows are then taken in one common pass. There is advice for a run
that lost more than the best constant.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kernels.euclidean import Euclidean
from ..kernels.losses import Square
from ..online.margins import each_loss, each_mean
from ..online.panel import PanelRun
from ..online.parts import LINKS
from ..online.run import of_width
from . import theorems
from .applied import loss_as_measured, measured_loss, measured_unit
from .audit import members_of, passes_over, play_again
from .best import clock, comparator
from .best.constant import best_constant, constant_point, fewest_of_constant
from .best.fewest import SEPARATES, fewest
from .best.fixed import best_fixed
from .best.objective import column_sizes
from .best.predictor import percent
from .certificate import MISTAKES, WEIGHTED, Best
from .course import regret_curve, summed
from .families.adaptive import APPLIED, Beside, in_ledger, lost_by_start, opponent_of, sought
from .ledger import Opponent, Terms, against, factors_of_rows, opens
from .theorems import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..batch.gradient_descent import Descent
    from ..batch.isotron import SingleIndexProblem
    from ..batch.perceptron import BatchPerceptron
    from ..kernels.floats import Floats
    from ..online.run import Run
    from ..rows.data import Data
    from .applied import AppliedTheorem, Judged
    from .audit import Rounds
    from .certificate import Comparator, RegretCurve
    from .ledger import Ledger

SAME = 1e-9  # relative difference up to which what a theorem measures is the loss itself
NOT_CONVEX = "squared errors behind a link are not convex: which fixed predictor loses least is not known"


class OtherRowsError(Exception):
    """The rows are not, bit for bit, those that a ledger followed."""


class Known(NamedTuple):
    """What is known of a run in hindsight.

    Attributes
    ----------
    applied : dict
        The applied theorem of each member, by its number.
    best, constant : Best or None, and float
        The best fixed predictor and the loss of the best constant; None and NaN if they were not sought.
    tried : dict
        Predictors by name that may lose less than the one that the search found, which is among them as "best".
    unit : float
        The factor from a loss to what certificates measure.
    """

    applied: dict[int, AppliedTheorem]
    best: Best | None
    constant: float
    tried: dict[str, Opponent]
    unit: float

    def best_of(self, names: Sequence[str]) -> tuple[Best | None, np.ndarray]:
        """The best fixed predictor, or the named one that loses less, with its cumulative loss at each mark."""
        best, course = self.best, self.tried["best"].lost if "best" in self.tried else np.empty(0)
        for name in names:
            if best is not None and name in self.tried:
                one = self.tried[name]
                found = best.or_else(name, one.u, self.unit * float(one.lost[-1]))
                best, course = found, course if found is best else one.lost
        return best, self.unit * course


def followed(
    run: Run, data: Data, ledger: Ledger | None, u: Any, tol: float, geometry: Any = None, seek_best: bool = True
) -> tuple[Ledger, Known]:
    """The ledger of a run and what is known in hindsight; plays the run again unless `ledger` followed these rows."""
    more = u, tol, geometry, seek_best
    if ledger is not None:
        with suppress(OtherRowsError):
            return ledger, in_hindsight(run, data, ledger, *more)
    ledger = play_again(run, data)
    return ledger, in_hindsight(run, data, ledger, *more)


def in_hindsight(
    run: Run, data: Data, ledger: Ledger, u: Any, tol: float, geometry: Any = None, seek_best: bool = True
) -> Known:
    """Apply the theorems of a run, or of the members of a panel, to its ledger, and find the best fixed predictor.

    Parameters
    ----------
    run, data, ledger : Run, Data and Ledger
        The run, its rows and its ledger.
    u : array of float or None
        A comparator for all members; None computes one for each.
    tol : float
        Relative gap to which comparators and the best fixed predictor are computed.
    geometry : a geometry of `kernels` or None, default None
        It determines the set of the best fixed predictor.
    seek_best : bool, default True
        Whether the best fixed predictor and the best constant are computed.

    Raises
    ------
    OtherRowsError
        If the ledger followed other rows.
    """
    passes, members = passes_over(run, data), {k: m for k, m in enumerate(members_of(run)) if in_ledger(m)}
    loss, unit = run.learner.loss, measured_unit(run.learner.loss)
    kinds = {ledger.opens, *map(opens, members.values())}
    weights = {opening: factors_of_rows(data, passes, opening) for opening in kinds}
    given, found = None if u is None else data.check(u), {}
    with clock.timed(0.5 * clock.left()):  # the other half is for the best fixed predictor
        for k, m in members.items():
            at = None if given is None else of_width(given, m.width, m.intercept)
            found[k] = sought(m, data.leading(m.width), weights[opens(m)], at, tol)
    facing = {k: opponent_of(m, of_width(found[k][0], data.width, m.intercept)) for k, m in members.items()}
    best, constant, tried = None, math.nan, {}
    if seek_best:
        factors, whole = weights[ledger.opens], measured_loss(loss)
        near = next((one.u for one in reversed(facing.values())), None)
        best = best_fixed(data, whole, factors, geometry, tol, near)
        constant = best_constant(whole, data.y, factors)
        points = {"best": best.u, "the weights of the run": run.weights}
        points |= constant_point(data, whole, factors, geometry)
        tried = {name: Opponent(at, ledger.opens) for name, at in points.items() if np.isfinite(at).all()}
    sketch = against(data, loss, [*facing.values(), *tried.values()], run.rounds)
    if ledger.rows_seen and sketch != ledger.sketch:
        raise OtherRowsError
    marks, _, sums = ledger.sums_at()
    applied = {}
    for k, member in members.items():
        _, half, gap, how, notes = found[k]
        factors, own = weights[opens(member)], data.leading(member.width)
        scale = lost_by_start(member, own, factors)
        beside = Beside(marks, sums[k], facing[k], half, gap, how, notes, scale, own, factors)
        applied[k] = APPLIED[member.learner.theorem](member, beside)
    return Known(applied, best, constant, tried, unit)


# ---------------------------------------------------------------- what a run lost


class Outcome(NamedTuple):
    """What is known of a run in hindsight, independent of its theorem."""

    best: Best | None
    constant: float
    lost: float
    weight: float
    advice: str = ""
    curve: RegretCurve | None = None


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what overflows is shown as that
def outcome(run: Run, data: Data, t: Rounds, case: AppliedTheorem, tol: float, promised: bool) -> Outcome:
    """The outcome of a run.

    Parameters
    ----------
    run, data, t : Run, Data and Rounds
        The run, its rows and its rounds.
    case : AppliedTheorem
        Its theorem, applied; what it measures determines whether mistakes are counted.
    tol : float
        Relative gap to which the best fixed predictor is computed where it has no exact solution.
    promised : bool
        Whether the bound of the theorem applies to this run.
    """
    c = t.c
    factors = t.by_row(c)
    measured = case.measured
    at_hand = {"the comparator": case.comparator.u, "the weights of the run": run.weights}
    if case.quantity in (MISTAKES, WEIGHTED):
        best = fewest(data, factors, run.learner.geometry, at_hand.values())
        constant, lost, course = fewest_of_constant(t.y, c), measured, case.course.measured
        rival = c * t.of(data.y * data.margins(best.u) <= 0.0)
    elif case.theorem is theorems.GLM_TRON:  # squares of errors behind a link: not convex, and at least 0
        best = Best(case.comparator.u, case.comparator.loss, case.comparator.loss, case.comparator.found)
        constant, lost, course = best_constant(Square(2.0), t.y, c), measured, case.course.measured
        rival = c * (each_mean(run.learner.loss, t.of(data.margins(best.u))) - t.y) ** 2
    else:
        loss = loss_as_measured(run.learner)
        each = c * each_loss(loss, t.z, t.y)
        lost = float(each.sum())
        lost = measured if abs(lost - measured) <= SAME * abs(measured) else lost
        course = summed(each, t.marks)
        known = {"the comparator": case.comparator.loss} if lost == measured else {}
        best = of_loss(data, loss, factors, run.learner.geometry, tol, at_hand, known)
        constant = best_constant(loss, t.y, c)
        rival = c * t.of(each_loss(loss, data.margins(best.u), data.y))
    sums = t.marks, summed(c, t.marks), course, summed(rival, t.marks)
    return told(run, data, case, promised and lost == measured, best, constant, lost, *sums)


def told(
    run: Run, data: Data, case: AppliedTheorem, promised: bool, best: Best | None, constant: float, lost: float,
    marks: np.ndarray, mass: np.ndarray, course: np.ndarray, rival: np.ndarray,
) -> Outcome:  # fmt: skip
    """The outcome with its curve, and with advice if the run lost more than the best constant."""
    advice = cure(run, data, case.best_eta) if lost > constant * (1.0 + SAME) else ""
    curve = regret_curve(marks, mass, course, rival, case.course.bound if promised else None)
    return Outcome(best, constant, lost, float(mass[-1]), advice, curve)


def outcome_of_ledger(run: Run, data: Data, ledger: Ledger, known: Known, found: Judged) -> Outcome:
    """The outcome of a run that a ledger followed."""
    case, (marks, mass, sums) = found.case, ledger.sums_at()
    known.tried["the comparator"] = Opponent(case.comparator.u, lost=case.course.rival / known.unit)
    best, rival = known.best_of(("the comparator", "the weights of the run", "the best constant"))
    own, promised = known.unit * Terms(*sums[0].T).paid, found.verdict in (Verdict.HOLDS, Verdict.BROKEN)
    return told(run, data, case, promised, best, known.constant, case.measured, marks, mass, own, rival)


def of_loss(
    data: Data, loss: Any, factors: np.ndarray, geometry: Any, tol: float,
    at_hand: dict[str, np.ndarray] | None = None, known: dict[str, float] | None = None,
) -> Best:  # fmt: skip
    """The best fixed predictor of a loss: that of the search, or another one that is known and loses less.

    `at_hand` has such predictors by name, to which the best constant is added; `known` has losses computed before.
    """
    best = best_fixed(data, loss, factors, geometry, tol)
    tried = (at_hand or {}) | constant_point(data, loss, factors, geometry)
    for name, u in tried.items():
        if known is not None and name in known:
            best = best.or_else(name, u, known[name])
        elif np.isfinite(u).all():
            best = best.or_else(name, u, float(factors @ each_loss(loss, data.margins(u), data.y)))
    return best


# ---------------------------------------------------------------- what methods over epochs lost


def of_descent(descent: Descent, data: Data, measured: float, tol: float) -> Outcome:
    """The outcome of descent on f, which is a mean: the least f of any u, and the mean loss of the best constant.

    A constant has no weights, so it has no penalty.
    """
    loss, geometry, l2 = descent.learner.loss, descent.learner.geometry, float(descent.l2)
    weight = float(data.c.sum())
    factors = data.c / weight
    if l2 == 0.0:
        best = of_loss(data, loss, factors, geometry, tol, {"the last weights": descent.weights})
    else:
        found = comparator.best(data, loss, geometry, l2, factors, np.zeros(data.width), tol)
        best = Best(found.u, found.objective, found.gap, percent(found.gap, found.objective))
    constant = best_constant(loss, data.y, data.c) / weight
    advice = ""
    if measured > constant * (1.0 + SAME):
        rose = len(descent.values) > 1 and descent.values[-1] > descent.values[0]
        advice = "take a smaller rate" if rose else "play more rounds, or take a larger rate"
    return Outcome(best, constant, measured, 1.0, advice)


def of_pocket(model: BatchPerceptron, data: Data, separator: Floats | None) -> Outcome:
    """The outcome of a pocket: its training errors, and the fewest of any fixed predictor."""
    if separator is None:
        best = fewest(data, data.c, Euclidean(1.0), (model.pocket, model.weights))
    else:
        best = Best(separator, 0.0, 0.0, SEPARATES)
    return Outcome(best, fewest_of_constant(data.y, data.c), float(model.errors), float(data.rounds))


def of_matching_loss(problem: SingleIndexProblem, rounds: int, total: float, tol: float = 0.01) -> Outcome | None:
    """The outcome of rounds on a matching loss; None if the link is not a built-in one."""
    loss: Any = LINKS.get(problem.link.function.name)
    if loss is None:
        return None
    factors = rounds * problem.proportion
    best = of_loss(problem.data, loss, factors, None, tol)
    return Outcome(best, best_constant(loss, problem.y, factors), total, float(rounds))


def of_squares(problem: SingleIndexProblem, rounds: int, total: float, planted: Comparator | None) -> Outcome:
    """The outcome of rounds on squared errors behind a link; the best predictor is known only if it is planted."""
    best = None if planted is None else Best(planted.u, planted.loss, planted.loss, planted.found)
    return Outcome(best, rounds * problem.target_variance(), total, float(rounds))


# ---------------------------------------------------------------- advice


SPREAD = 100.0  # ratio of the sizes of columns from which scaling them is advised
SORTED = 0.1  # label changes, as a share of those of shuffled rows, below which rows count as sorted


def cure(run: Run, data: Data, best_eta: float) -> str:
    """Advice for a run that lost more than the best constant would have, from the facts of the run.

    Parameters
    ----------
    run, data : Run and Data
        The run and its rows.
    best_eta : float
        The rate that would have made the bound smallest; NaN if unknown.
    """
    advice: list[str] = []
    if run.learner.geometry.linear and spread(data) >= SPREAD:
        advice.append("scale the features (--scale standard)")
    eta = float(run.learner.rate.of_rounds(1)[0])
    if 0.0 < best_eta < 0.5 * eta and run.learner.rate.is_constant() and run.learner.theorem is not None:
        advice.append(f"take a smaller rate (--eta {best_eta:.2g})")
    if _is_sorted(data.y[data.c > 0.0]):
        advice.append("shuffle the rows: they are sorted by label")
    if not advice:
        panel = isinstance(run, PanelRun)
        advice.append("it may need more rows" if panel else "try --learner auto, which needs no rate and no scaling")
    return "; ".join(advice)


def spread(data: Data) -> float:
    """The ratio of the largest to the smallest root mean square of a column."""
    sizes = column_sizes(data, data.c)
    sizes = sizes[: data.width - (1 if data.bias != 0.0 else 0)]
    sizes = sizes[sizes > 0.0]
    return float(sizes.max() / sizes.min()) if sizes.size > 1 else float(max(sizes.max(initial=1.0), 1.0))


def _is_sorted(y: np.ndarray) -> bool:
    """Whether labels change far less often than they would in shuffled rows; False for numeric targets."""
    high, low = float(y.max()), float(y.min())
    if y.size < 20 or not ((y == high) | (y == low)).all() or high == low:
        return False
    share = float((y == high).mean())
    return float(np.mean(y[1:] != y[:-1])) < SORTED * 2.0 * share * (1.0 - share)
