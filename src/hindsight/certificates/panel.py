"""The certificate of a panel: what one of its members promises, plus the price of aggregation.

Every member with a theorem is certified on the rows; the one whose promise is smallest signs. Members are judged by
their losses as the mixture used them, clipped to the range of the targets seen.
"""

from __future__ import annotations

import math
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
from .band import band
from .certificate import Assumption, Certificate, Comparator, Member, Milestone
from .constant import best_constant
from .outcome import Outcome, of_loss
from .regret import even_rounds, regret_curve
from .replay import replay_members
from .rivals.predictor import NEAR
from .theorems import Verdict

if TYPE_CHECKING:
    from ..online.panel import PanelRun
    from ..rows.data import Data
    from .applied import AppliedTheorem
    from .band import Band
    from .certificate import Best, RegretCurve
    from .replay import Rounds


def certify_panel(
    run: PanelRun, data: Data, families: dict[str, Any], u: Any, tol: float, label: str | None
) -> Certificate:
    """The certificate of a panel over its rows; `families` apply the theorems of its members."""
    rounds = replay_members(run, data)
    t, on = rounds[0], in_play(run.members[0], rounds[0])
    loss = run.learner.loss
    marks = {min(t.row.size, 2**k) for k in range(t.row.size.bit_length() + 1)}
    margins, course = mixture_course(run, rounds, sorted(marks.union(even_rounds(t.row.size))))
    measured = float(run.facts.loss)
    price = aggregation_price(run)
    cases: dict[int, AppliedTheorem] = {}
    bands: dict[int, Band] = {}
    broken: list[str] = []
    promised = np.full(len(run.members), math.inf)
    lost, every = np.empty(len(run.members)), np.empty((t.row.size, len(run.members)))
    for k, member in enumerate(run.members):
        used = t.c * on * each_loss(loss, used_margins(run, rounds[k], on), t.y)
        lost[k], every[:, k] = float(used.sum()), used
        if member.learner.theorem is None:
            continue
        case = families[member.learner.theorem](member, data, rounds[k], u, tol)
        bands[k] = band(member, data, rounds[k], case)
        verdict = verdict_of(case, bands[k])
        if verdict is Verdict.BROKEN:
            broken.append(member_name(member.learner))
        elif verdict is Verdict.HOLDS:
            cases[k] = case
            promised[k] = float(case.bound[-1]) - float((case.measured - used).sum())
    shares = run.shares
    table = tuple(
        Member(
            member_name(m.learner),
            float(shares[k]),
            float(lost[k]),
            float(promised[k]),
            tuple(float(mark.shares[k]) for mark in course if mark.rounds in marks),
        )
        for k, m in enumerate(run.members)
    )
    if broken:
        return broken_member(run, measured, broken[0], table, label)
    at_hand = {"the weights of the run": run.weights}
    if cases:
        at_hand["the comparator"] = cases[int(np.argmin(promised))].comparator.u
    outcome = outcome_of(run, data, t, on, measured, tol, at_hand)
    if not cases:
        curve = curve_along(run, data, t, on, margins, outcome, ())
        return nothing_signed(run, measured, table, label, outcome._replace(curve=curve))
    signer = int(np.argmin(promised))
    case = cases[signer]
    bound = float(promised[signer]) + price
    found, equality = theorems.verdict(measured, bound, *bands[signer])
    followed: tuple[str, ...] = ()
    if run.learner.drift and not run.left:
        most, words = tracking(run, every[on > 0.0])
        found = Verdict.BROKEN if theorems.verdict(measured, most, *bands[signer])[0] is Verdict.BROKEN else found
        followed = (words,)
    met = float(case.bound[-1]) - float(case.rival.sum()) - case.share  # of the signer's bound, the price met
    paid = (met - float(case.measured.sum() - lost[signer]) + price) / bound if bound > 0 else math.nan
    used = t.c * on * each_loss(loss, used_margins(run, rounds[signer], on), t.y)
    along = course_of_bound(run, case, used, course)
    path = tuple(mark for mark in along if mark.rounds in marks)
    outcome = outcome._replace(curve=curve_along(run, data, t, on, margins, outcome, along))
    kind = "accounting: most of the bound is price that the run itself met" if paid > 0.5 else "promise"
    notes = (
        f"signed by {table[signer].name}, which promises {promised[signer]:.6g}; aggregation costs {price:.6g}",
        f"paid share {100 * paid:.3g} %: {kind}",
        *followed,
        *(("the run lost less than every fixed predictor",) if below_all(measured, outcome.best) else ()),
        *((f"left for too many features: {', '.join(run.left)}",) if run.left else ()),
    )
    comparator = Comparator(
        case.comparator.u, case.comparator.loss, case.comparator.norm, case.comparator.gap, case.comparator.found
    )
    theorem = adaptive_theorems.DRIFT if run.learner.drift else adaptive_theorems.AGGREGATION
    return Certificate(
        found, theorem, case.quantity, measured, bound, comparator,
        (*case.assumptions, Assumption("members were weighed by what they had lost before", True)),
        run.rounds, math.nan, equality, path, notes, label, table, *outcome,
    )  # fmt: skip


def below_all(measured: float, best: Best | None) -> bool:
    """Whether it is shown that every fixed predictor loses more."""
    return best is not None and best.reach == math.inf and measured < best.lower * (1.0 - NEAR)


def outcome_of(
    run: PanelRun, data: Data, t: Rounds, on: np.ndarray, measured: float, tol: float, at_hand: dict[str, np.ndarray]
) -> Outcome:
    """What the panel lost beside the best constant and the best fixed predictor, over the rounds in play."""
    loss, c = run.learner.loss, t.c * on
    best = of_loss(data, loss, np.bincount(t.row, c, data.rounds), None, tol, at_hand)
    constant = best_constant(loss, t.y, c)
    advice = cure(run, data, t, math.nan) if measured > constant * (1.0 + NEAR) else ""
    return Outcome(best, constant, measured, float(c.sum()), advice)


def curve_along(
    run: PanelRun,
    data: Data,
    t: Rounds,
    on: np.ndarray,
    margins: np.ndarray,
    outcome: Outcome,
    along: tuple[Milestone, ...],
) -> RegretCurve | None:
    """The mixture beside the best fixed predictor, with what was promised where that is known."""
    if not margins.size or outcome.best is None:
        return None
    loss, c, bound = run.learner.loss, t.c * on, np.full(t.row.size, math.nan)
    for mark in along:
        bound[mark.rounds - 1] = mark.bound
    with np.errstate(over="ignore", invalid="ignore"):
        best = c * each_loss(loss, data.margins(outcome.best.u), data.y)[t.row]
        return regret_curve(c, c * each_loss(loss, margins, t.y), best, bound)


def nothing_signed(
    run: PanelRun, measured: float, table: tuple[Member, ...], label: str | None, outcome: Outcome
) -> Certificate:
    """No member promises anything."""
    nobody = Comparator(np.zeros(run.width), math.nan, 0.0, math.inf, "not sought")
    needs = (Assumption("no member of the panel has a theorem that applies", None),)
    return Certificate(
        Verdict.UNCHECKABLE, theorems.NONE, f"{run.learner.loss.name} loss", measured, math.nan, nobody, needs,
        run.rounds, label=label, members=table, **outcome._asdict(),
    )  # fmt: skip


def broken_member(
    run: PanelRun, measured: float, name: str, table: tuple[Member, ...], label: str | None
) -> Certificate:
    """A member lost more than its theorem promises, which is a fault of the theorem or of the program."""
    nobody = Comparator(np.zeros(run.width), math.nan, 0.0, math.inf, "not sought")
    return Certificate(
        Verdict.BROKEN, adaptive_theorems.AGGREGATION, f"{run.learner.loss.name} loss", measured, math.nan, nobody, (),
        run.rounds, notes=(f"the bound of {name} is broken",), label=label, members=table,
    )  # fmt: skip


def verdict_of(case: AppliedTheorem, sizes: Band) -> Verdict:
    """The verdict on a member by its own loss; VOID where its theorem does not apply, or its steps are not shown."""
    if any(need.met is False for need in case.assumptions):
        return Verdict.VOID
    found = theorems.verdict(float(case.measured.sum()), float(case.bound[-1]), *sizes)[0]
    if found is Verdict.HOLDS and case.sharper is not None:
        return found if theorems.verdict(*case.sharper[:2], *sizes)[0] is Verdict.HOLDS else Verdict.VOID
    return found


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


def tracking(run: PanelRun, used: np.ndarray) -> tuple[float, str]:
    """What is promised against the best sequence of members in hindsight, and how to say it.

    `used` has what each member lost, a row per round. A sequence with B switches costs ln K + B ln(K/α) and, for each
    round without one, −ln(1 − α + α/K), all over η.
    """
    rate, members = float(run.state.rate[0]), run.mixture.members
    if not rate < math.inf:
        return math.inf, "the range of the targets is 0: nothing was weighed"
    switch = math.log(members / run.learner.drift) / rate
    room = np.empty((3, used.shape[1]))
    cost, lost, switches = best_sequence(np.ascontiguousarray(used), staying(run) / rate, switch, *room)
    bound = cost + math.log(members) / rate + float(run.state.gap[0])
    return bound, (
        f"against the best sequence of members, which switches {switches:,.0f} times and loses {lost:.6g}: "
        f"at most {bound:.6g}"
    )


def used_margins(run: PanelRun, t: Rounds, on: np.ndarray) -> np.ndarray:
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


def course_of_bound(run: PanelRun, case: AppliedTheorem, used: np.ndarray, course: list[Mark]) -> tuple[Milestone, ...]:
    """The run at each mark, with what the signer and the mixture promised there."""
    rival, bound = np.cumsum(case.rival), case.bound - np.cumsum(case.measured - used)
    return tuple(
        Milestone(
            mark.rounds,
            mark.loss,
            float(rival[mark.rounds - 1]),
            float(bound[mark.rounds - 1]) + at_rate(run, mark.rate, mark.shared) + mark.gap,
            math.nan,
        )
        for mark in course
    )
