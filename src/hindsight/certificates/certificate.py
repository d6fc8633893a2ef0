"""Certificates: what was measured, what was promised, the comparator, and whether the theorem applied."""

from __future__ import annotations

import html
import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formatting import _n, _plain
from ..storage.fields import is_vector
from ..storage.registry import storable, want
from .theorems import NONE, PERCEPTRON_NOISY, Theorem, Verdict
from .wording import PARTS_RIGHT, TONES, card, constant_of, faults, folded, in_words, table, unit_of, worth_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .wording import Scores


@storable
@dataclass(frozen=True)
class Assumption:
    """An assumption of a theorem: a sentence with the value seen, and whether it is met (None: no data can show it)."""

    text: str
    met: bool | None


@storable
@dataclass(frozen=True)
class Best:
    """The best fixed predictor in hindsight: the u of least total loss, over all u of the geometry's set.

    Attributes
    ----------
    u : ndarray
        Its weights, the intercept's last.
    loss : float
        Its total loss.
    gap : float
        No u loses less than loss - gap; for mistakes, no u is known to lose less.
    found : str
        How it was found, in words.
    reach : float
        The gap holds for all u with |D u| <= reach, where D are the root mean squares of the columns. It is finite
        where rounding makes it impossible to bound the loss of longer u.
    """

    u: np.ndarray
    loss: float
    gap: float
    found: str
    reach: float = math.inf

    @property
    def norm(self) -> float:
        """|u|_2."""
        return float(np.linalg.norm(self.u))

    @property
    def lower(self) -> float:
        """A lower bound on the loss of every u within the reach."""
        return self.loss - self.gap

    def or_else(self, name: str, u: np.ndarray, loss: float) -> Best:
        """This predictor, or the given u if that loses less; its name is told if it does so by more than rounding."""
        less = self.loss - loss
        if not less > 0.0:
            return self
        found = self.found if less <= ROUNDING * abs(self.loss) else f"found: {name}"
        return replace(self, u=u, loss=loss, gap=max(0.0, self.gap - less), found=found)


@storable
@dataclass(frozen=True)
class Comparator:
    """The fixed predictor u that makes the bound smallest, or the one that was given.

    Attributes
    ----------
    u : ndarray
        Its weights, the intercept's last.
    loss : float
        Its loss, in the units of what was measured.
    norm : float
        |u|_2.
    gap : float
        An upper bound on how much another u could lower what was minimised. That is the bound before the distance of u
        from the last weights is subtracted; for mistake bounds it is the bound over all rows, since over the mistakes
        alone u = 0 promises M <= M, which says nothing. This gap is about the bound, not the loss: how far a predictor
        is from the least loss is the gap of `best`. Infinite for a u that was given.
    found : str
        The gap in words.
    """

    u: np.ndarray
    loss: float
    norm: float
    gap: float
    found: str


@storable
@dataclass(frozen=True)
class Milestone:
    """The run after some rounds: its loss, the comparator's, the bound, and the potential (distance from w to u)."""

    rounds: int
    measured: float
    comparator: float
    bound: float
    potential: float


@storable
@dataclass(frozen=True)
class RegretCurve:
    """The running mean losses of a run and of the best fixed predictor of all its rounds.

    Attributes
    ----------
    rounds : ndarray of int
        The numbers of rounds after which the means are given.
    lost, best : ndarray
        The losses of the run and of the best fixed predictor up to then, per unit of weight.
    bound : ndarray
        The bound on the loss of the run, in the same units; NaN where there is none or it was not kept.
    """

    rounds: np.ndarray
    lost: np.ndarray
    best: np.ndarray
    bound: np.ndarray

    @property
    def regret(self) -> np.ndarray:
        """The regret per round."""
        return self.lost - self.best

    @staticmethod
    def _check_saved(given: dict[str, Any]) -> None:
        size = given["rounds"].size
        want(given["rounds"].dtype == np.int64 and given["rounds"].ndim == 1, "`rounds` must be a vector of integers")
        for name in ("lost", "best", "bound"):
            want(is_vector(given[name], size), f"`{name}` must have one number for each of the rounds")


@storable
@dataclass(frozen=True)
class Member:
    """A member of a panel.

    Attributes
    ----------
    name : str
    share : float
        Its weight at the end.
    loss : float
        Its loss as the mixture used it.
    bound : float
        The bound of its theorem on that loss; infinity if it has none.
    course : tuple of float
        Its weight at each milestone of the certificate.
    """

    name: str
    share: float
    loss: float
    bound: float
    course: tuple[float, ...] = ()


@storable
@dataclass(frozen=True)
class Account:
    """A panel compared with the best fixed combination of its members, which is known only in hindsight.

    Attributes
    ----------
    best : float
        The loss of that combination, plus the cost of its distance from the mixture.
    bound : float
        The bound on the loss of the run: `best` plus the price of learning the combination.
    combination : tuple of float
        The coefficient of each member; the combination adds it, times the member's difference from the mixture.
    reach : float
        Combinations with larger margins are not covered.
    """

    best: float
    bound: float
    combination: tuple[float, ...]
    reach: float = math.inf

    def lines(self) -> list[str]:
        """The account in words."""
        within = "" if self.reach == math.inf else f" (with margins up to {self.reach:.3g})"
        return [
            f"account: the best fixed combination of the members in hindsight{within} loses {_n(self.best)}, its "
            "distance from the mixture counted",
            f"  beside it the run loses at most {_n(self.bound)}; nobody had that combination, so this is no promise",
        ]


@storable
@dataclass(frozen=True)
class Certificate:
    """A statement about the progressive predictions of one run, on its rows in the order they were played.

    Attributes
    ----------
    verdict : HOLDS, VOID, UNCHECKABLE or BROKEN.
    theorem : name, source and statement.
    quantity : what was measured, in words.
    measured, bound, slack : slack is bound - measured; bound and slack are NaN where nothing is promised.
    comparator : the u that makes the bound smallest, or the one that was given.
    best : the best fixed predictor in hindsight; None where it was not sought, or is not known.
    constant : the loss of the best constant prediction in hindsight.
    lost : the loss of the run, in the units of `best` and `constant`. It is `measured`, unless that is weighted by
        rates or counts updates; where updates are counted, it is the number of training errors.
    weight : the sum of the weights of the rounds, which means are divided by; 1 if what was measured is a mean.
    regret : lost minus what the best fixed predictor loses.
    worth : "tight", "loose" or "vacuous" if the bound holds; None otherwise.
    advice : what to do about a run that lost more than the best constant; empty otherwise.
    assumptions : the assumptions of the theorem, each with the value seen.
    rounds : the number of rounds.
    best_eta : the rate that makes the bound smallest for this u, given the gradients or mistakes of this run if they
        are part of it; NaN where it is not defined, 0 where u is the start.
    equality : whether measured and bound are equal within rounding.
    path : the run after 1, 2, 4, ... rounds.
    notes : further remarks.
    label : the class, in one-vs-rest.
    members : for a panel, its members with weights, losses and bounds.
    account : for a panel with a stack, the comparison with the best fixed combination of its members; None otherwise.
    curve : the running means of the run and the best fixed predictor, for charts; not part of `to_dict`, and None if
        unknown.
    """

    verdict: Verdict
    theorem: Theorem
    quantity: str
    measured: float
    bound: float
    comparator: Comparator
    assumptions: tuple[Assumption, ...]
    rounds: int
    best_eta: float = math.nan
    equality: bool = False
    path: tuple[Milestone, ...] = ()
    notes: tuple[str, ...] = ()
    label: str | None = field(default=None)
    members: tuple[Member, ...] = ()
    best: Best | None = None
    constant: float = math.nan
    lost: float = math.nan
    weight: float = math.nan
    advice: str = ""
    curve: RegretCurve | None = field(default=None, repr=False)
    account: Account | None = None

    @property
    def slack(self) -> float:
        """The bound minus what was measured."""
        return self.bound - self.measured

    @property
    def regret(self) -> float:
        """The loss of the run minus that of the best fixed predictor, or of the comparator if no best one was sought.

        NaN if there is no fixed predictor to compare with.
        """
        if self.best is not None:
            return self.lost - self.best.loss
        return self.measured - self.comparator.loss if math.isnan(self.lost) else math.nan

    @property
    def lost_is_measured(self) -> bool:
        """Whether the bound is a bound on `lost`."""
        return self.lost == self.measured and self.quantity != UPDATES

    @property
    def guaranteed(self) -> float:
        """The bound on the loss of the run, in units of `lost`; NaN if nothing is promised."""
        applies = self.verdict in (Verdict.HOLDS, Verdict.BROKEN) and self.lost_is_measured
        return self.bound if applies and not self.says_nothing else math.nan

    @property
    def worth(self) -> str | None:
        """What the bound is worth: "tight", "loose" or "vacuous"; None if there is none."""
        if self.says_nothing and self.verdict is Verdict.HOLDS:
            return VACUOUS
        trivial = self.constant if self.lost_is_measured else math.nan
        return worth_of(self.verdict, self.measured, self.bound, trivial)

    def near_zero(self, loss: float) -> float:
        """The loss, or 0 if it is only rounding error compared with the loss of the best constant."""
        return 0.0 if abs(loss) <= 1e-12 * abs(self.constant) else loss

    @property
    def means(self) -> dict[str, float]:
        """The losses of the run, the best constant and the best fixed predictor, per row or per unit of weight.

        NaN if no round counts; the first round may only set the start.
        """
        totals = {
            "loss": self.lost,
            "constant": self.constant,
            "best": math.nan if self.best is None else self.near_zero(self.best.loss),
            "guaranteed": self.guaranteed,
            "regret": self.regret if self.best is not None else math.nan,
        }
        return {name: total / self.weight if self.weight else math.nan for name, total in totals.items()}

    @property
    def says_nothing(self) -> bool:
        """Whether the bound is the number of mistakes itself, as the perceptron's bound is at u = 0."""
        return self.theorem == PERCEPTRON_NOISY and self.comparator.norm == 0.0

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and None (for NaN), ready for JSON."""
        out = asdict(self)
        del out["curve"]
        out |= {"verdict": self.verdict.value, "slack": self.slack, "regret": self.regret}
        out |= {"worth": self.worth, "guaranteed": self.guaranteed, "means": self.means}
        return dict(_plain(out))

    @property
    def unit(self) -> str:
        """The unit of the losses, as `headline` names it."""
        return unit_of(self.quantity)

    def headline(self, scores: Scores | None = None) -> list[str]:
        """The main figures as sentences; empty if they are not known.

        Parameters
        ----------
        scores : Scores or None, default None
            The figures in terms of the targets, if known.
        """
        return in_words(self.unit, self.means, self.best_is_shown, scores)

    @property
    def best_is_shown(self) -> bool:
        """Whether the loss of the best fixed predictor is shown to be the least, to within one percent.

        By convexity, a u at k times the reach loses less by at most k gaps. With a finite reach, the gap must be small
        enough for this to be one percent at `BEYOND` times the reach.
        """
        best = self.best
        if best is None or not math.isfinite(best.gap):
            return False
        gap = best.gap if best.reach == math.inf else BEYOND * best.gap
        return gap <= max(1.1e-2 * abs(best.loss), 1e-6 * abs(self.constant))

    @property
    def _named_best(self) -> str:
        return "best fixed predictor" if self.best_is_shown else "best found"

    def opening(self, scores: Scores | None = None) -> list[str]:
        """What precedes the verdict: a warning if a constant would have lost less, and the main figures."""
        lines = [f"this run lost more than {constant_of(self.unit)} would have: {self.advice}"] if self.advice else []
        return [*lines, *self.headline(scores)]

    def judgement(self) -> list[str]:
        """The verdict with its theorem, and what it means for this run."""
        worth = f", {self.worth}" if self.worth else ""
        source = f" ({self.theorem.source})" if self.theorem.source else ""
        lines = [f"{self.verdict.value}{worth}: {self.theorem.name}{source}"]
        silent = self.verdict is Verdict.HOLDS and not self.worth
        return lines if silent else [*lines, f"  {self.meaning}"]

    @property
    def meaning(self) -> str:
        """What the verdict means for this run, or what the bound is worth, as a sentence."""
        if self.worth and self.says_nothing:
            return "the promise is vacuous: it says nothing here but that mistakes are at most the mistakes"
        if self.worth:
            return worth_in_words(self.worth, self.unit)
        rests = self.verdict is Verdict.UNCHECKABLE and self.theorem != NONE
        return RESTS if rests else MEANINGS[self.verdict]

    def brief(self, scores: Scores | None = None) -> list[str]:
        """The certificate in a few lines: the figures, the verdict, and the reason if nothing is promised.

        Parameters
        ----------
        scores : Scores or None, default None
            The figures in terms of the targets, if known.
        """
        label = "" if self.label is None else f"{self.label}: "
        why = [f"  {MARK[need.met]} {need.text}" for need in self.assumptions if need.met is not True]
        why += [f"  {note}" for note in self.notes if note.startswith(ACCOUNTING)]
        lines = [*self.opening(scores), *self.judgement(), *why[:3]]
        return [f"{label}{lines[0]}", *lines[1:]]

    def lines(self, scores: Scores | None = None) -> list[str]:
        """The whole certificate as lines of text; `scores` are the figures in terms of the targets, if known."""
        label = "" if self.label is None else f"{self.label}: "
        blocks = [block for block in (self.opening(scores), self.judgement()) if block]
        lines = [line if k else f"{label}{line}" for block in blocks for k, line in enumerate(block)]
        lines.append(f"  this run: {self.quantity} {_n(self.measured)} over {self.rounds:,} rounds")
        if self.best is not None:
            if self.quantity == UPDATES:
                told = "updates are no loss, and no fixed predictor makes any"
                lines.append(f"  its pocket errs on {_n(self.lost)} rows: {told}")
            elif self.lost != self.measured:
                lines.append(f"  without the rates: {_n(self.lost)}")
            found = f"{_n(self.near_zero(self.best.loss))} (|u| = {_n(self.best.norm)}; {self.best.found})"
            lines.append(f"  the {self._named_best}: {found}")
            lines.append(f"  regret against it: {_n(self.regret)}")
        near, own = self.comparator.found, self.comparator.loss
        smallest = math.isfinite(self.bound) and near not in ("given", "planted", FOR_ALL_ROUNDS)
        told = "the promise is smallest for" if smallest else "the comparator has"
        if near != "not sought":
            lines.append(f"  {told} |u| = {_n(self.comparator.norm)}, which loses {_n(own)} ({near})")
        if self.best is None and not math.isnan(self.regret):
            lines.append(f"  regret against it: {_n(self.regret)}")
        if self.says_nothing:
            lines.append("  at u = 0 the theorem reads M ≤ M: it promises nothing here")
        elif self.verdict in (Verdict.HOLDS, Verdict.BROKEN):
            met = "; met with equality" if self.equality else f"; slack {_n(self.slack)}"
            lines.append(f"  the theorem promises at most {_n(self.bound)}{met}")
        elif math.isfinite(self.bound):
            lines.append(f"  if its assumptions hold, the theorem promises at most {_n(self.bound)}")
        lines.append(f"  {self.theorem.statement}")
        for need in self.assumptions:
            lines.append(f"  {MARK[need.met]} {need.text}")
        if 0.0 < self.best_eta < math.inf:
            kept = f" with these {self.theorem.own}" if self.theorem.own else ""
            lines.append(f"  for this u{kept} η = {_n(self.best_eta)} would have made the bound smallest")
        account = [] if self.account is None else self.account.lines()
        return lines + [f"  {note}" for note in (*self.notes, *account)] + self.member_lines()

    def member_lines(self) -> list[str]:
        """A table of the members of a panel."""
        if not self.members:
            return []
        wide = max(len(member.name) for member in self.members)
        lines = [f"  {'member':<{wide}} {'weight':>8} {'lost':>12} {'promises':>12}"]
        for member in self.members:
            promise = _n(member.bound) if math.isfinite(member.bound) else "nothing"
            lines.append(f"  {member.name:<{wide}} {member.share:>8.4f} {_n(member.loss):>12} {promise:>12}")
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        before = len(self.opening())
        lines = self.lines()
        figures, head, rest = lines[:before], lines[before], lines[before + 1 : len(lines) - len(self.member_lines())]
        more = ""
        if self.members:
            cells = [
                (m.name, f"{m.share:.4f}", _n(m.loss), _n(m.bound) if math.isfinite(m.bound) else "nothing")
                for m in self.members
            ]
            more += folded("members", html_table(("member", "weight", "lost", "promises"), cells))
        if self.path:
            marks = [(f"{c.rounds:,}", _n(c.measured), _n(c.comparator), _n(c.bound)) for c in self.path]
            more += folded("along the run", html_table(("rounds", "measured", "comparator", "bound"), marks))
        return card(head, figures, TONES[self.verdict], more, [line.strip() for line in rest])


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in HTML; the first column is text if its heading is a name."""
    side = ["left" if k == 0 and heads[0] == "member" else "right" for k in range(len(heads))]

    def line(cells: Sequence[str], tag: str) -> str:
        style = 'style="text-align:{};padding:.1em .8em .1em 0"'
        each = (f"<{tag} {style.format(s)}>{html.escape(c)}</{tag}>" for s, c in zip(side, cells, strict=True))
        return f"<tr>{''.join(each)}</tr>"

    return f"<table>{line(heads, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def worth_of(verdict: Verdict, measured: float, bound: float, trivial: float) -> str | None:
    """What a bound is worth: tight (at most twice what was measured), vacuous (above `trivial`), or loose.

    Parameters
    ----------
    verdict : Verdict
        The verdict; the result is None unless it is HOLDS.
    measured, bound : float
        What was measured, and the bound.
    trivial : float
        The loss of the best constant, which a useful bound does not exceed; NaN if unknown.

    Examples
    --------
    >>> worth_of(Verdict.HOLDS, 3.0, 5.0, 10.0), worth_of(Verdict.HOLDS, 3.0, 50.0, 10.0)
    ('tight', 'vacuous')
    """
    if verdict is not Verdict.HOLDS or not math.isfinite(bound):
        return None
    if bound > trivial * (1.0 + 1e-9):
        return VACUOUS
    return TIGHT if bound <= 2.0 * measured else LOOSE


TIGHT, LOOSE, VACUOUS = "tight", "loose", "vacuous"
MARK = {True: "✓", False: "✗", None: "?"}
COLOURS = {
    Verdict.HOLDS: "#1a7f37",
    Verdict.VOID: "#9a6700",
    Verdict.UNCHECKABLE: "#57606a",
    Verdict.BROKEN: "#cf222e",
}
MEANINGS = {
    Verdict.HOLDS: "the assumptions of the theorem are met, and the run lost no more than it promises",
    Verdict.VOID: "an assumption of the theorem is not met on these rows (marked ✗): nothing is promised",
    Verdict.UNCHECKABLE: "no theorem covers this run: what was measured is given all the same",
    Verdict.BROKEN: "the run lost more than was promised, which must not happen: this is a fault of the program",
}
RESTS = "its theorem rests on what no data can show (marked ?)"
ACCOUNTING = "accounting: "  # a note on a promise most of which is price that the run met
MISTAKES, WEIGHTED = "mistakes", "weighted mistakes"  # what is counted; a weighted mistake counts its row's weight
FOR_ALL_ROUNDS = "one for all rounds"  # the comparator beside a promise that is not of fixed predictors
UPDATES = "updates"  # of the batch perceptron
ROUNDING = 1e-12  # relative difference of two losses that says nothing about which is smaller
FAULTS = 3  # of several certificates that are shown in brief
BEYOND = 1e6  # times the reach: no double holds the margins of a predictor that is longer
WORST_FIRST = (Verdict.BROKEN, Verdict.VOID, Verdict.UNCHECKABLE, Verdict.HOLDS)


@storable
@dataclass(frozen=True)
class Certificates:
    """The certificates of a one-vs-rest run, one per class, and what follows for all of them together."""

    each: tuple[Certificate, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict, in the order BROKEN, VOID, UNCHECKABLE, HOLDS."""
        return next(v for v in WORST_FIRST if any(c.verdict is v for c in self.each))

    @property
    def bound(self) -> float:
        """The sum of the bounds. For mistakes it bounds how often the class of largest margin is wrong; with weights,
        it bounds the total weight of the rows on which it is wrong."""
        return math.fsum(c.bound for c in self.each)

    @property
    def unit(self) -> str:
        """The unit of the summed losses."""
        return self.each[0].unit

    @property
    def means(self) -> dict[str, float]:
        """The losses per row, summed over all classes."""
        each = [c.means for c in self.each]
        return {name: math.fsum(means[name] for means in each) for name in each[0]}

    def headline(self, scores: Scores | None = None) -> list[str]:
        """The main figures as sentences; only `scores` if mistakes are counted, whose sum over labels says little."""
        shown, unit = all(c.best_is_shown for c in self.each), self.unit
        if unit in PARTS_RIGHT:
            return [] if scores is None else [scores.sentence()]
        return in_words(f"{unit} (summed over the {len(self.each)} labels)", self.means, shown, scores)

    def judgement(self) -> list[str]:
        """The verdict, how many bounds are tight, loose or vacuous, and what follows for all labels together."""
        found = Counter(c.worth or c.verdict.value for c in self.each)
        counts = ", ".join(f"{count} {word}" for word, count in found.items())
        head, bound = f"all classes: {self.verdict.value} ({counts})", f"Σ_k M_k ≤ {_n(self.bound)}"
        counted = {c.quantity for c in self.each} if math.isfinite(self.bound) else set()
        if counted == {MISTAKES}:
            head += f": the largest margin errs at most {bound} times"
        elif counted and counted <= {MISTAKES, WEIGHTED}:
            head += f": the rows on which the largest margin errs weigh at most {bound} together (weighted mistakes)"
        return [head]

    def brief(self, scores: Scores | None = None) -> list[str]:
        """All certificates in a few lines; `scores` are the figures in terms of the targets, if known."""
        said = faults([(str(c.label), c) for c in self.each])
        more = [f"… and {len(said) - FAULTS:,} more (--details)"] if len(said) > FAULTS else []
        return [*self.headline(scores), *self.judgement(), *said[:FAULTS], *more]

    def lines(self, scores: Scores | None = None) -> list[str]:
        """All certificates in one table, and their sum; `each` has the details."""
        first = [] if scores is None else self.headline(scores)
        return [*first, *table([(str(c.label), c) for c in self.each]), *self.judgement()]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """All certificates, and their sum, ready for JSON."""
        each = [c.to_dict() for c in self.each]
        return dict(_plain({"verdict": self.verdict.value, "bound": self.bound, "each": each}))

    def _repr_html_(self) -> str:
        return card(self.lines()[-1], [], TONES[self.verdict]) + "".join(c._repr_html_() for c in self.each)


def combined(certificates: Sequence[Certificate]) -> Certificate | Certificates:
    """A single certificate unchanged, or several as `Certificates`."""
    return certificates[0] if len(certificates) == 1 else Certificates(tuple(certificates))
