"""The certificate of a panel: what one of its members promises, plus the price of aggregation.

Every member with a theorem is certified on the rows; the one whose promise is smallest signs. Members are judged by
their losses as the mixture used them, clipped to the range of the targets seen.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import MismatchError
from ..kernels import state as states
from ..kernels.aggregation import mix
from ..kernels.compiler import for_parts
from ..kernels.drift import best_sequence
from ..kernels.facts import empty_facts
from ..online.margins import each_loss
from ..online.panel import member_name
from . import adaptive_theorems, theorems
from .adaptive import in_play
from .advice import cure
from .applied import measured_loss, measured_name, measured_unit
from .band import Band, band
from .best.constant import best_constant, fewest_of_constant
from .best.fewest import fewest
from .best.predictor import NEAR
from .certificate import MISTAKES, WEIGHTED, Assumption, Best, Certificate, Comparator, Member, Milestone
from .outcome import Outcome, of_loss
from .regret import even_rounds, regret_curve
from .replay import replay_members
from .theorems import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..online.panel import PanelRun
    from ..rows.data import Data
    from .applied import AppliedTheorem, Judged
    from .certificate import RegretCurve
    from .replay import Rounds

COUNTED = (MISTAKES, WEIGHTED)


def certify_panel(
    run: PanelRun, data: Data, judge: Callable[..., Judged], u: Any, tol: float, label: str | None
) -> Certificate:
    """The certificate of a panel over its rows; `judge` judges a run over its rounds."""
    rounds = replay_members(run, data)
    t, on = rounds[0], in_play(run.members[0], rounds[0])
    marks = {min(t.row.size, 2**k) for k in range(t.row.size.bit_length() + 1)}
    margins, course = mixture_course(run, rounds, sorted(marks.union(even_rounds(t.row.size))))
    judged = {
        k: judge(member, data, rounds[k], u, tol)
        for k, member in enumerate(run.members)
        if member.learner.theorem is not None
    }
    measure = loss_measure(run, t, on)
    factors = factors_of(judged, measure, rounds)
    if not factors and any(one.case.quantity in COUNTED for one in judged.values()):
        measure = mistake_measure(run, t, on)
        factors = factors_of(judged, measure, rounds)
    used = np.stack([measure.of(used_margins(run, each)) for each in rounds], axis=1)
    promised = np.full(len(run.members), math.inf)
    for k, factor in factors.items():
        promised[k] = factor * (judged[k].bound - float(judged[k].case.measured.sum())) + float(used[:, k].sum())
    shares = run.shares
    table = tuple(
        Member(
            member_name(m.learner),
            float(shares[k]),
            float(used[:, k].sum()),
            float(promised[k]),
            tuple(float(mark.shares[k]) for mark in course if mark.rounds in marks),
        )
        for k, m in enumerate(run.members)
    )
    broken = [k for k, one in judged.items() if one.verdict is Verdict.BROKEN]
    if broken:
        return broken_member(run, measure, table[broken[0]].name, table, label)
    at_hand = {"the weights of the run": run.weights}
    if factors:
        at_hand["the comparator"] = judged[int(promised.argmin())].case.comparator.u
    outcome = outcome_of(run, data, t, measure, tol, at_hand)
    if not factors or measure.loss is None:
        curve = curve_along(data, t, measure, margins, outcome, ())
        why = {table[k].name: one.why_not for k, one in judged.items() if one.verdict is not Verdict.HOLDS}
        return nothing_signed(run, measure, table, why, label, outcome._replace(curve=curve))
    signer = int(promised.argmin())
    case, unit, price = judged[signer].case, factors[signer], measure.unit * aggregation_price(run)
    bound = float(promised[signer]) + price
    sizes = Band(*(unit * size for size in band(run.members[signer], data, rounds[signer], case)))
    found, equality = theorems.verdict(measure.total, bound, *sizes)
    followed: tuple[str, ...] = ()
    if run.learner.drift and not run.left:
        most, words = tracking(run, used[on > 0.0], measure.unit)
        found = Verdict.BROKEN if theorems.verdict(measure.total, most, *sizes)[0] is Verdict.BROKEN else found
        followed = (words,)
    along = course_of_bound(run, case, unit, used[:, signer], measure.unit, course)
    path = tuple(mark for mark in along if mark.rounds in marks)
    outcome = outcome._replace(curve=curve_along(data, t, measure, margins, outcome, along))
    notes = (
        f"signed by {table[signer].name}, which promises {promised[signer]:.6g}; aggregation costs {price:.6g}",
        *paid_share(case, unit, bound),
        *followed,
        *(("the run lost less than every fixed predictor",) if below_all(measure.total, outcome.best) else ()),
        *(
            (
                f"left for too many features: {', '.join(run.left)}; the mixture was not played again, its loss and "
                "price are those that the model kept",
            )
            if run.left
            else ()
        ),
    )
    rival = replace(case.comparator, loss=unit * case.comparator.loss, gap=unit * case.comparator.gap)
    weighed = () if run.left else (Assumption("members were weighed by what they had lost before", True),)
    theorem = adaptive_theorems.DRIFT if run.learner.drift else adaptive_theorems.AGGREGATION
    return Certificate(
        found, theorem, case.quantity if unit == 1.0 else measure.name, measure.total, bound, rival,
        (*judged[signer].assumptions, *weighed), run.rounds, math.nan, equality, path, notes, label, table, *outcome,
    )  # fmt: skip


class Measure(NamedTuple):
    """What is measured of a panel, its members and their rivals, and nothing else.

    Attributes
    ----------
    name : in words.
    total : of the mixture.
    unit : what the loss that the mixture weighs is multiplied by, where it is what is measured.
    loss : the loss; None where mistakes are counted.
    y, c : targets, and weights that are 0 for a row that only gives the start.
    """

    name: str
    total: float
    unit: float
    loss: Any
    y: np.ndarray
    c: np.ndarray

    def of(self, z: np.ndarray) -> np.ndarray:
        """What margins cost in each round."""
        if self.loss is None:
            return np.where(self.y * z <= 0.0, self.c, 0.0)
        return np.asarray(self.c * each_loss(self.loss, z, self.y))


def loss_measure(run: PanelRun, t: Rounds, on: np.ndarray) -> Measure:
    """The loss that the mixture weighs."""
    loss, unit = run.learner.loss, measured_unit(run.learner.loss)
    return Measure(measured_name(loss), unit * float(run.facts.loss), unit, measured_loss(loss), t.y, t.c * on)


def mistake_measure(run: PanelRun, t: Rounds, on: np.ndarray) -> Measure:
    """Mistakes, which members may bound; aggregation says nothing of them."""
    name = MISTAKES if t.c.min() == t.c.max() == 1.0 else WEIGHTED
    return Measure(name, float(run.facts.mistake_weight), 1.0, None, t.y, t.c * on)


def factors_of(judged: dict[int, Judged], measure: Measure, rounds: list[Rounds]) -> dict[int, float]:
    """What bounds that hold are multiplied by to bound what is measured, by member; without those of anything else."""
    found: dict[int, float] = {}
    for k, one in judged.items():
        if one.verdict is Verdict.HOLDS and (one.case.quantity in COUNTED) is (measure.loss is None):
            own, told = measure.of(rounds[k].z), np.where(measure.c > 0.0, one.case.measured, 0.0)
            fits = [f for f in (measure.unit, 1.0) if np.allclose(f * told, own, rtol=1e-9, atol=0.0)]
            found.update((k, f) for f in fits)
    return found


def paid_share(case: AppliedTheorem, factor: float, bound: float) -> tuple[str, ...]:
    """How much of the bound is price that the run met, in words; empty where the signer's theorem does not say.

    It is all but what the comparator loses and what its distance from the start costs.
    """
    paid = 1.0 - factor * (float(case.rival.sum()) + case.share) / bound if bound > 0.0 else math.nan
    if math.isnan(paid):
        return ()
    kind = "accounting: most of the bound is price that the run itself met" if paid > 0.5 else "promise"
    return (f"paid share {100 * paid:.3g} %: {kind}",)


def below_all(measured: float, best: Best | None) -> bool:
    """Whether it is shown that every fixed predictor loses more."""
    return best is not None and best.reach == math.inf and measured < best.lower * (1.0 - NEAR)


def outcome_of(
    run: PanelRun, data: Data, t: Rounds, measure: Measure, tol: float, at_hand: dict[str, np.ndarray]
) -> Outcome:
    """What the panel lost beside the best constant and the best fixed predictor, over the rounds in play."""
    c, factors = measure.c, np.bincount(t.row, measure.c, data.rounds)
    if measure.loss is None:
        best = Best(*fewest(data, factors, run.learner.geometry, (run.weights, *(m.weights for m in run.members))))
        constant = fewest_of_constant(t.y, c)
    else:
        best, constant = of_loss(data, measure.loss, factors, None, tol, at_hand), best_constant(measure.loss, t.y, c)
    advice = cure(run, data, t, math.nan) if measure.total > constant * (1.0 + NEAR) else ""
    return Outcome(best, constant, measure.total, float(c.sum()), advice)


def curve_along(
    data: Data, t: Rounds, measure: Measure, margins: np.ndarray, outcome: Outcome, along: tuple[Milestone, ...]
) -> RegretCurve | None:
    """The mixture beside the best fixed predictor, with what was promised where that is known."""
    if not margins.size or outcome.best is None:
        return None
    bound = np.full(t.row.size, math.nan)
    for mark in along:
        bound[mark.rounds - 1] = mark.bound
    with np.errstate(over="ignore", invalid="ignore"):
        best = measure.of(data.margins(outcome.best.u)[t.row])
        return regret_curve(measure.c, measure.of(margins), best, bound)


def nothing_signed(
    run: PanelRun, measure: Measure, table: tuple[Member, ...], why: dict[str, str], label: str | None, outcome: Outcome
) -> Certificate:
    """No member promises anything of what the mixture weighs."""
    nobody = Comparator(np.zeros(run.width), math.nan, 0.0, math.inf, "not sought")
    none = "no member of the panel has a theorem that applies"
    text = none if measure.loss is not None else "members bound their mistakes, of which aggregation says nothing"
    notes = tuple(f"{name} promises nothing: {reason}" for name, reason in why.items())
    return Certificate(
        Verdict.UNCHECKABLE, theorems.NONE, measure.name, measure.total, math.nan, nobody, (Assumption(text, None),),
        run.rounds, notes=notes, label=label, members=table, **outcome._asdict(),
    )  # fmt: skip


def broken_member(
    run: PanelRun, measure: Measure, name: str, table: tuple[Member, ...], label: str | None
) -> Certificate:
    """A member lost more than its theorem promises, which is a fault of the theorem or of the program."""
    nobody = Comparator(np.zeros(run.width), math.nan, 0.0, math.inf, "not sought")
    return Certificate(
        Verdict.BROKEN, adaptive_theorems.AGGREGATION, measure.name, measure.total, math.nan, nobody, (),
        run.rounds, notes=(f"the bound of {name} is broken",), label=label, members=table,
    )  # fmt: skip


def aggregation_price(run: PanelRun) -> float:
    """What a mixture may lose beyond its best member: ln(K)/η + Σδ, and with a drift what staying with it costs."""
    return at_rate(run, float(run.state.rate[0]), rounds_shared(run)) + float(run.state.gap[0])


def at_rate(run: PanelRun, rate: float, rounds: float) -> float:
    """(ln K + the cost of as many rounds with one member)/η."""
    return (math.log(run.mixture.members) + max(0.0, rounds - 1.0) * staying(run)) / rate


def rounds_shared(run: PanelRun) -> float:
    """Rounds after which weight was shared."""
    return float(run.state.shared[0]) if run.learner.drift else 0.0


def staying(run: PanelRun) -> float:
    """−ln of the weight that passes from a member to itself in a round, 1 − α + α/K."""
    alpha = run.learner.drift
    return -math.log1p(alpha / run.mixture.members - alpha) if alpha else 0.0


def tracking(run: PanelRun, used: np.ndarray, unit: float) -> tuple[float, str]:
    """What is promised against the best sequence of members in hindsight, and how to say it.

    `used` has what each member lost, a row per round, in so many units of the loss that is weighed. A sequence with B
    switches costs ln K + B ln(K/α) and, for each round without one, −ln(1 − α + α/K), all over η.
    """
    rate, members = float(run.state.rate[0]) / unit, run.mixture.members
    if not rate < math.inf:
        return math.inf, "the range of the targets is 0: nothing was weighed"
    switch = math.log(members / run.learner.drift) / rate
    room = np.empty((3, used.shape[1]))
    cost, lost, switches = best_sequence(np.ascontiguousarray(used), staying(run) / rate, switch, *room)
    bound = cost + math.log(members) / rate + unit * float(run.state.gap[0])
    return bound, (
        f"against the best sequence of members, which switches {switches:,.0f} times and loses {lost:.6g}: "
        f"at most {bound:.6g}"
    )


def used_margins(run: PanelRun, t: Rounds) -> np.ndarray:
    """The margins of a member as the mixture used them."""
    if getattr(run.mixture, "clips", 0.0) == 0.0:
        return t.z
    first = t.y[0] if run.intercept else 0.0
    low = np.minimum.accumulate(np.r_[first, t.y])[:-1]
    high = np.maximum.accumulate(np.r_[first, t.y])[:-1]
    if not run.intercept:
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    return np.clip(t.z, low, high)


class Mark(NamedTuple):
    """A mixture after so many rounds: loss, rate, price met, rounds after which weight was shared, and all weights."""

    rounds: int
    loss: float
    rate: float
    gap: float
    shared: float
    shares: np.ndarray


def mixture_course(run: PanelRun, rounds: list[Rounds], marks: list[int]) -> tuple[np.ndarray, list[Mark]]:
    """The margins of the mixture and its state at each mark, played again; empty where a member has left on the way."""
    if run.left:
        return np.empty(0), []
    margins = np.stack([t.z for t in rounds], axis=1)
    state, tally = states.empty(run.mixture.State, len(rounds), False), empty_facts()
    geometry, loss, t = run.members[0].learner.geometry, run.learner.loss, rounds[0]
    out, found, first = np.empty(t.row.size), [], 0
    for mark in marks:
        part = slice(first, mark)
        for_parts(mix, loss, geometry)(
            margins[part], t.y[part], t.c[part], run.bias, loss, run.mixture, geometry, state, t.q[part], t.top[part],
            tally, out[part],
        )  # fmt: skip
        shared = float(state.shared[0]) if run.learner.drift else 0.0
        sums = float(tally[0].loss), float(state.rate[0]), float(state.gap[0])
        found.append(Mark(mark, *sums, shared, run.mixture.shares(state)))
        first = mark
    if not np.isclose(tally[0].loss, run.tally[0].loss, rtol=1e-9, atol=1e-12):
        raise MismatchError(
            "the model was not trained on these rows in this order: "
            f"its loss was {run.facts.loss:.9g}, here it is {tally[0].loss:.9g}"
        )
    return out, found


def course_of_bound(
    run: PanelRun, case: AppliedTheorem, factor: float, used: np.ndarray, unit: float, course: list[Mark]
) -> tuple[Milestone, ...]:
    """The run at each mark, with what the signer and the mixture promised there."""
    rival, bound = factor * np.cumsum(case.rival), factor * (case.bound - np.cumsum(case.measured)) + np.cumsum(used)
    return tuple(
        Milestone(
            mark.rounds,
            unit * mark.loss,
            float(rival[mark.rounds - 1]),
            float(bound[mark.rounds - 1]) + unit * (at_rate(run, mark.rate, mark.shared) + mark.gap),
            math.nan,
        )
        for mark in course
    )
