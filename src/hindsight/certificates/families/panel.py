"""The certificate of a panel: the bound of one of its members, plus the price of aggregation.

Every member that has a theorem is certified on the rows, and the member with the smallest bound is the signer. Members
are judged by their losses as the mixture used them, clipped to the range of the targets seen.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...kernels.drift import best_sequence
from ...kernels.ledger import PAID
from ...online.panel import member_name
from ...online.run import of_width
from .. import theorems
from ..applied import Band, measured_name, measured_unit
from ..audit import replay_all
from ..best.constant import fewest_of_constant
from ..best.fewest import fewest
from ..best.predictor import NEAR
from ..certificate import (
    ACCOUNTING,
    MISTAKES,
    WEIGHTED,
    Account,
    Assumption,
    Best,
    Certificate,
    Comparator,
    Member,
    Milestone,
)
from ..course import regret_curve, summed
from ..judge import judge, verdict_on
from ..ledger import Opponent, mark_of, price_of_two, ranges_before, starts_with_target
from ..outcome import Known, Outcome, cure, followed
from ..theorems import Verdict
from .adaptive import BAND, in_ledger

if TYPE_CHECKING:
    from ...online.panel import PanelRun
    from ...rows.data import Data
    from ..applied import AppliedTheorem, Judged
    from ..audit import Rounds
    from ..certificate import RegretCurve
    from ..ledger import Ledger, Mark

COUNTED = (MISTAKES, WEIGHTED)


def certify_panel(
    run: PanelRun, data: Data, u: Any, tol: float, label: str | None, ledger: Ledger | None = None
) -> Certificate:
    """The certificate of a panel over its rows; `ledger` has the sums accumulated while they were learnt.

    If the theorem of some member needs every round, the rounds of all members are kept while they are played again.
    """
    rounds: list[Rounds] = []
    if not all(m.learner.theorem is None or in_ledger(m) for m in run.members):
        rounds, ledger = replay_all(run.members, data), None
    ledger, known = followed(run, data, ledger, u, tol)
    judged = {k: verdict_on(run.members[k], case) for k, case in known.applied.items()}
    sums, measure = sums_of(run, ledger), loss_measure(run)
    for k, t in enumerate(rounds):
        if k not in judged and run.members[k].learner.theorem is not None:
            member = run.members[k]
            given = None if u is None else of_width(data.check(u), member.width, member.intercept)
            judged[k] = judge(member, data.leading(member.width), t, given, tol)
    if not factors_of(judged, measure, run) and any(one.case.quantity in COUNTED for one in judged.values()):
        measure, sums, known = in_mistakes(run, data, rounds, sums)
    return signed(run, data, judged, measure, sums, known, label, ledger)


class Sums(NamedTuple):
    """A panel at its marks: the cumulative weight, the loss of each member as used, and the mixture.

    The mixture is empty if a member was removed during the run.
    """

    marks: np.ndarray
    mass: np.ndarray
    used: np.ndarray
    mixture: list[Mark]


def signed(
    run: PanelRun,
    data: Data,
    judged: dict[int, Judged],
    measure: Quantity,
    sums: Sums,
    known: Known,
    label: str | None,
    ledger: Ledger,
) -> Certificate:
    """The certificate of a panel, given the verdicts on its members."""
    used = measure.unit * sums.used
    factors = factors_of(judged, measure, run)
    promised = np.full(len(run.members), math.inf)
    for k, factor in factors.items():
        promised[k] = factor * (judged[k].bound - judged[k].case.measured) + float(used[-1, k])
    powers = [mark for mark in sums.mixture if is_power(mark.rounds) or mark.rounds == run.rounds]
    table = tuple(
        Member(
            member_name(m.learner),
            float(run.shares[k]),
            float(used[-1, k]),
            float(promised[k]),
            tuple(float(mark.shares[k]) for mark in powers),
        )
        for k, m in enumerate(run.members)
    )
    broken = [k for k, one in judged.items() if one.verdict is Verdict.BROKEN]
    if broken:
        notes: tuple[str, ...] = (f"the bound of {table[broken[0]].name} is broken",)
        return unsigned(run, measure, Verdict.BROKEN, theorems.AGGREGATION, (), notes, label, table)
    signer = int(promised.argmin()) if factors else -1
    if factors:
        case = judged[signer].case
        narrow = run.members[signer].width < run.width
        u = of_width(case.comparator.u, run.width, run.intercept)
        known.tried["the comparator"] = Opponent(u, lost=case.course.rival / known.unit)
    best, course = known.best_of(("the weights of the run", "the comparator", "the best constant"))
    advice = cure(run, data, math.nan) if measure.total > known.constant * (1.0 + NEAR) else ""
    outcome = Outcome(best, known.constant, measure.total, float(sums.mass[-1]), advice)
    if not factors or measure.counted:
        why = {table[k].name: one.why_not for k, one in judged.items() if one.verdict is not Verdict.HOLDS}
        notes = tuple(f"{name} promises nothing: {reason}" for name, reason in why.items())
        none = "no member of the panel has a theorem that applies"
        need = Assumption(
            "members bound their mistakes, of which aggregation says nothing" if measure.counted else none, None
        )
        outcome = outcome._replace(curve=curve_along(sums, measure, course, ()))
        return unsigned(run, measure, Verdict.UNCHECKABLE, theorems.NONE, (need,), notes, label, table, outcome)
    unit, price = factors[signer], measure.unit * aggregation_price(run)
    bound = float(promised[signer]) + price
    assert case.band is not None
    sizes = Band(*(unit * size for size in case.band))
    found, equality = theorems.verdict(measure.total, bound, *sizes)
    tracked: tuple[str, ...] = ()
    if run.learner.drift and not run.left:
        most, words = tracking(run, measure.unit * np.concatenate(ledger.each), measure.unit)
        found = Verdict.BROKEN if theorems.verdict(measure.total, most, *sizes)[0] is Verdict.BROKEN else found
        tracked = (words,)
    account = account_of(run if run.left else ledger.run, measure.unit)
    if account is not None and theorems.verdict(measure.total, account.bound, *sizes)[0] is Verdict.BROKEN:
        found = Verdict.BROKEN
    along = course_of_bound(run, case, unit, used[:, signer], measure.unit, sums)
    path = tuple(mark for mark in along if is_power(mark.rounds) or mark.rounds == run.rounds)
    outcome = outcome._replace(curve=curve_along(sums, measure, course, along))
    notes = (
        f"signed by {table[signer].name}, which promises {promised[signer]:.6g}; aggregation costs {price:.6g}",
        *((f"it promises that of predictors from the first {run.members[signer].features:,} features",) * narrow),
        *paid_share(case, unit, bound),
        *tracked,
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
    rival = replace(case.comparator, u=u, loss=unit * case.comparator.loss, gap=unit * case.comparator.gap)
    weighed = () if run.left else (Assumption("members were weighed by what they had lost before", True),)
    theorem = theorems.DRIFT if run.learner.drift else theorems.AGGREGATION
    if run.stack is not None:
        theorem = replace(theorem, statement=theorem.statement + theorems.STACKED)
    return Certificate(
        found, theorem, case.quantity if unit == 1.0 else measure.name, measure.total, bound, rival,
        (*judged[signer].assumptions, *weighed), run.rounds, math.nan, equality, path, notes, label, table, *outcome,
        account=account,
    )  # fmt: skip


def account_of(run: PanelRun, unit: float) -> Account | None:
    """A panel compared with the best fixed combination of its members; None without a stack, or if digits were lost.

    The smallest value of the objective is what the second-order theorem gives for the best combination. For the square
    loss it is computed twice, along the run and from its normal equations.
    """
    if run.stack is None:
        return None
    second, state = run.stack.run, run.stack.state
    objective, drops, price = float(second.state.objective[0]), float(second.state.drop[0]), price_of_two(run)
    lost, reach = float(second.facts.loss), theorems.QUARTER
    if run.learner.in_logs:
        drops *= 0.5
    else:
        lost, reach = unit * float(state.lost[-1]), math.inf
        found = unit * float(state.lost[0]) - float(second.state.right @ second.state.right)
        if not abs(found - objective) <= BAND * max(abs(found), objective):
            return None
    if second.facts.rounds != run.facts.rounds or not math.isfinite(objective):
        return None
    bound, u = theorems.with_drops(lost, drops) + unit * price, second.weights[run.stack.places]
    return Account(max(0.0, objective), bound, tuple(u.tolist()), reach)


def in_mistakes(run: PanelRun, data: Data, rounds: list[Rounds], sums: Sums) -> tuple[Quantity, Sums, Known]:
    """The same sums with mistakes in place of losses. Members may bound mistakes; the aggregation bound does not."""
    t = rounds[0]
    c = t.c * (np.arange(t.z.size) > 0) if starts_with_target(run) else t.c
    name = MISTAKES if t.c.min() == t.c.max() == 1.0 else WEIGHTED
    made = [summed(np.where(t.y * used_margins(run, each) <= 0.0, c, 0.0), sums.marks) for each in rounds]
    factors = t.by_row(c)
    points = (of_width(each.weights, run.width, run.intercept) for each in (run, *run.members))
    best = fewest(data, factors, run.learner.geometry, tuple(points))
    measure = Quantity(name, float(run.facts.mistake_weight), 1.0)
    return measure, sums._replace(used=np.stack(made, axis=1)), Known({}, best, fewest_of_constant(t.y, c), {}, 1.0)


def is_power(rounds: int) -> bool:
    """Whether a number is a power of 2."""
    return rounds & (rounds - 1) == 0


class Quantity(NamedTuple):
    """The quantity that is measured for a panel, its members and their comparators.

    Attributes
    ----------
    name : its name.
    total : its total for the mixture.
    unit : the factor from the loss that the mixture uses to what is measured, if a loss is measured.
    """

    name: str
    total: float
    unit: float

    @property
    def counted(self) -> bool:
        """Whether mistakes are counted."""
        return self.name in COUNTED


def loss_measure(run: PanelRun) -> Quantity:
    """The measure for the loss by which the mixture weights its members."""
    loss, unit = run.learner.loss, measured_unit(run.learner.loss)
    return Quantity(measured_name(loss), unit * float(run.facts.loss), unit)


def factors_of(judged: dict[int, Judged], measure: Quantity, run: PanelRun) -> dict[int, float]:
    """The factors from the bounds that hold to bounds on what is measured, by member; others are left out."""
    found: dict[int, float] = {}
    for k, one in judged.items():
        if one.verdict is Verdict.HOLDS and (one.case.quantity in COUNTED) is measure.counted:
            facts = run.members[k].facts
            own = facts.mistake_weight if measure.counted else measure.unit * facts.loss
            fits = [f for f in (measure.unit, 1.0) if math.isclose(f * one.case.measured, own, rel_tol=1e-9)]
            found.update((k, f) for f in fits)
    return found


def paid_share(case: AppliedTheorem, factor: float, bound: float) -> tuple[str, ...]:
    """A note on the part of the bound that is price the run met; empty if the signer's theorem does not say.

    The price is the bound minus the comparator's loss and the cost of its distance from the start.
    """
    paid = 1.0 - factor * (float(case.course.rival[-1]) + case.share) / bound if bound > 0.0 else math.nan
    if math.isnan(paid):
        return ()
    said = f"{100 * paid:.3g} % of the promise is price that the run itself met"
    if paid <= 0.5:
        return (said,)
    return (f"{ACCOUNTING}{said}: it says where the loss came from, and promised little of it beforehand",)


def below_all(measured: float, best: Best | None) -> bool:
    """Whether it is shown that every fixed predictor loses more."""
    return best is not None and best.reach == math.inf and measured < best.lower * (1.0 - NEAR)


def curve_along(sums: Sums, measure: Quantity, best: np.ndarray, along: tuple[Milestone, ...]) -> RegretCurve | None:
    """The curves of the mixture and the best fixed predictor, with the bound where it is known."""
    if not sums.mixture or not best.size or measure.counted:
        return None
    lost = measure.unit * np.array([mark.loss for mark in sums.mixture])
    bound = np.array([mark.bound for mark in along]) if along else None
    return regret_curve(sums.marks, sums.mass, lost, best, bound)


def unsigned(
    run: PanelRun, measure: Quantity, verdict: Verdict, theorem: theorems.Theorem, needs: tuple[Assumption, ...],
    notes: tuple[str, ...], label: str | None, table: tuple[Member, ...], known: Outcome | None = None,
) -> Certificate:  # fmt: skip
    """The certificate of a panel without a signer."""
    nobody = Comparator(np.zeros(run.width), math.nan, 0.0, math.inf, "not sought")
    return Certificate(
        verdict, theorem, measure.name, measure.total, math.nan, nobody, needs, run.rounds, notes=notes, label=label,
        members=table, **({} if known is None else known._asdict()),
    )  # fmt: skip


def aggregation_price(run: PanelRun) -> float:
    """The most that a panel loses beyond its best member: ln(K)/η + Σδ. With a drift, the cost of staying with that
    member is added; with a stack, the price of choosing between the mixture and its correction."""
    mixture = at_rate(run, float(run.state.rate[0]), rounds_shared(run)) + float(run.state.gap[0])
    return mixture + price_of_two(run)


def at_rate(run: PanelRun, rate: float, rounds: float) -> float:
    """(ln K + the cost of staying with one member for `rounds` rounds)/η."""
    return (math.log(run.mixture.members) + max(0.0, rounds - 1.0) * staying(run)) / rate


def rounds_shared(run: PanelRun) -> float:
    """The number of rounds after which weight was shared."""
    return float(run.state.shared[0]) if run.learner.drift else 0.0


def staying(run: PanelRun) -> float:
    """−ln of the weight that passes from a member to itself in a round, 1 − α + α/K."""
    alpha = run.learner.drift
    return -math.log1p(alpha / run.mixture.members - alpha) if alpha else 0.0


def tracking(run: PanelRun, used: np.ndarray, unit: float) -> tuple[float, str]:
    """The bound relative to the best sequence of members in hindsight, and a note that states it.

    `used` has the losses of the members, one row per round; `unit` is the factor from the mixture's loss to these. A
    sequence with B switches costs ln K + B ln(K/α), plus −ln(1 − α + α/K) for each round without a switch, all divided
    by η.
    """
    rate, members = float(run.state.rate[0]) / unit, run.mixture.members
    if not rate < math.inf:
        return math.inf, "the range of the targets is 0: nothing was weighed"
    switch = math.log(members / run.learner.drift) / rate
    room = np.empty((3, used.shape[1]))
    cost, lost, switches = best_sequence(np.ascontiguousarray(used), staying(run) / rate, switch, *room)
    bound = cost + math.log(members) / rate + unit * (float(run.state.gap[0]) + price_of_two(run))
    return bound, (
        f"against the best sequence of members, which switches {switches:,.0f} times and loses {lost:.6g}: "
        f"at most {bound:.6g}"
    )


def used_margins(run: PanelRun, t: Rounds) -> np.ndarray:
    """The margins of a member as the mixture used them."""
    if getattr(run.mixture, "clips", 0.0) == 0.0:
        return t.z
    first = float(t.y[0]) if run.intercept else 0.0
    low, high = ranges_before(t.y, first, first)
    return np.clip(t.z, low[:-1], high[:-1])


def sums_of(run: PanelRun, ledger: Ledger) -> Sums:
    """A panel at its marks. If members are used clipped, their losses are taken from the mixture."""
    marks, mass, sums = ledger.sums_at()
    course = mixture_course(run, ledger)
    used = sums[:, :, PAID].T
    if hasattr(run.state, "lost"):
        last = mark_of(run, run.rounds)
        used = np.array([mark.used for mark in course or [last] * marks.size])
    else:
        used[-1] = [member.facts.loss for member in run.members]
    return Sums(marks, mass, used, course)


def mixture_course(run: PanelRun, ledger: Ledger) -> list[Mark]:
    """The mixture at each mark; empty if a member was removed during the run."""
    if run.left:
        return []
    last = mark_of(run, run.rounds)
    return ledger.course if ledger.course and ledger.course[-1].rounds == last.rounds else [*ledger.course, last]


def course_of_bound(
    run: PanelRun, case: AppliedTheorem, factor: float, used: np.ndarray, unit: float, sums: Sums
) -> tuple[Milestone, ...]:
    """The run at each mark, with the bound from the signer and the mixture."""
    rival, bound = factor * case.course.rival, factor * (case.course.bound - case.course.measured) + used
    return tuple(
        Milestone(
            mark.rounds,
            unit * mark.loss,
            float(rival[at]),
            float(bound[at]) + unit * (at_rate(run, mark.rate, mark.shared) + mark.gap + mark.corrected),
            math.nan,
        )
        for at, mark in enumerate(sums.mixture)
    )
