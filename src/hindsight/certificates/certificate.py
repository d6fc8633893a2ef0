"""Certificates: what was measured, what was promised, against whom, and whether the promise applied."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..formatting import _n, _plain
from ..storage.registry import storable
from .theorems import PERCEPTRON_NOISY, Theorem, Verdict


@storable
@dataclass(frozen=True)
class Assumption:
    """Something a theorem needs: a sentence with the number seen, and whether it is met (None: no data can show it)."""

    text: str
    met: bool | None


@storable
@dataclass(frozen=True)
class Comparator:
    """The fixed predictor u in hindsight.

    `loss` is its own, in the units of what was measured. `gap` is at least how far its objective is from the smallest:
    for loss bounds how much a better u could lower the bound; for mistake bounds that of the bound over all rows, on
    which it was sought (over the mistakes alone u = 0 promises M <= M, which says nothing). `found` says it in words.
    """

    u: np.ndarray
    loss: float
    norm: float
    gap: float
    found: str


@storable
@dataclass(frozen=True)
class Milestone:
    """The run after some rounds: its loss, the rival's, the bound there, and the potential (how far w is from u)."""

    rounds: int
    measured: float
    rival: float
    bound: float
    potential: float


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
        What it lost, as the mixture used it.
    bound : float
        What it promises to lose at most; infinity where it has no theorem.
    course : tuple of float
        Its weight after the rounds of each milestone of the certificate.
    """

    name: str
    share: float
    loss: float
    bound: float
    course: tuple[float, ...] = ()


@storable
@dataclass(frozen=True)
class Certificate:
    """A statement about the progressive predictions of one run on its rows as played.

    Attributes
    ----------
    verdict : HOLDS, VOID, UNCHECKABLE or BROKEN.
    theorem : name, source and statement.
    quantity : what was measured, in words.
    measured, bound, slack : slack is bound - measured; bound and slack are NaN where nothing is promised.
    regret : measured minus the rival's own loss.
    rival : the comparator u in hindsight.
    assumptions : each with the value seen.
    rounds : how many.
    best_eta : the rate that makes the bound smallest for this rival, with the gradients or mistakes of this run where
        they are part of it (NaN where that is not defined, 0 where the rival is the start).
    equality : whether the bound was met within rounding.
    path : the run at 1, 2, 4, ... rounds.
    notes : what else there is to say.
    label : the class, one-vs-rest.
    members : of a panel, each with its weight, its loss and what it promises.
    """

    verdict: Verdict
    theorem: Theorem
    quantity: str
    measured: float
    bound: float
    rival: Comparator
    assumptions: tuple[Assumption, ...]
    rounds: int
    best_eta: float = math.nan
    equality: bool = False
    path: tuple[Milestone, ...] = ()
    notes: tuple[str, ...] = ()
    label: str | None = field(default=None)
    members: tuple[Member, ...] = ()

    @property
    def slack(self) -> float:
        """What the bound leaves over."""
        return self.bound - self.measured

    @property
    def regret(self) -> float:
        """Measured minus the rival's own loss."""
        return self.measured - self.rival.loss

    @property
    def says_nothing(self) -> bool:
        """Whether the bound is the number of mistakes itself, whatever that is: the perceptron's at u = 0."""
        return self.theorem == PERCEPTRON_NOISY and self.rival.norm == 0.0

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and None (for NaN), ready for JSON."""
        out = asdict(self)
        out |= {"verdict": self.verdict.value, "slack": self.slack, "regret": self.regret}
        return dict(_plain(out))

    def lines(self) -> list[str]:
        """The certificate to be read aloud."""
        head = f"{self.verdict.value}: {self.theorem.name}" + (
            f" ({self.theorem.source})" if self.theorem.source else ""
        )
        if self.label is not None:
            head = f"{self.label}: {head}"
        lines = [head, f"  this run: {self.quantity} {_n(self.measured)} over {self.rounds:,} rounds"]
        lines.append(
            f"  the rival in hindsight: {_n(self.rival.loss)} (|u| = {_n(self.rival.norm)}; {self.rival.found})"
        )
        lines.append(f"  regret: {_n(self.regret)}")
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
            lines.append(f"  for this rival{kept} η = {_n(self.best_eta)} would have made the bound smallest")
        return lines + [f"  {note}" for note in self.notes] + self.member_lines()

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
        head, *rest = self.lines()
        rest = rest[: len(rest) - len(self.member_lines())]
        rows = "".join(
            f"<tr><td>{c.rounds:,}</td><td>{_n(c.measured)}</td><td>{_n(c.rival)}</td><td>{_n(c.bound)}</td></tr>"
            for c in self.path
        )
        table = (
            "<table><tr><th>rounds</th><th>measured</th><th>rival</th><th>bound</th></tr>" + rows + "</table>"
            if rows
            else ""
        )
        if self.members:
            cells = "".join(
                f'<tr><td style="text-align:left">{html.escape(m.name)}</td><td>{m.share:.4f}</td><td>{_n(m.loss)}</td>'
                f"<td>{_n(m.bound) if math.isfinite(m.bound) else 'nothing'}</td></tr>"
                for m in self.members
            )
            heads = "<th>weight</th><th>lost</th><th>promises</th>"
            table = f'<table><tr><th style="text-align:left">member</th>{heads}</tr>{cells}</table><br>{table}'
        body = "".join(f"<li>{html.escape(line.strip())}</li>" for line in rest)
        colour = COLOURS[self.verdict]
        return (
            f'<div style="border-left:4px solid {colour};padding-left:1em;font-family:sans-serif">'
            f'<b style="color:{colour}">{html.escape(head)}</b><ul>{body}</ul>{table}</div>'
        )


MARK = {True: "✓", False: "✗", None: "?"}
COLOURS = {
    Verdict.HOLDS: "#1a7f37",
    Verdict.VOID: "#9a6700",
    Verdict.UNCHECKABLE: "#57606a",
    Verdict.BROKEN: "#cf222e",
}
MISTAKES, WEIGHTED = "mistakes", "weighted mistakes"  # what is counted; a weighted mistake counts its row's weight
WORST_FIRST = (Verdict.BROKEN, Verdict.VOID, Verdict.UNCHECKABLE, Verdict.HOLDS)


@storable
@dataclass(frozen=True)
class Certificates:
    """One certificate a class of a one-vs-rest run, and what follows for all of them together."""

    each: tuple[Certificate, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of them: BROKEN, VOID, UNCHECKABLE, HOLDS."""
        return next(v for v in WORST_FIRST if any(c.verdict is v for c in self.each))

    @property
    def bound(self) -> float:
        """The sum of the bounds: for mistakes, the largest margin errs at most so often; for weighted ones, the rows
        on which it errs weigh at most so much together."""
        return math.fsum(c.bound for c in self.each)

    def lines(self) -> list[str]:
        """All of them, and the union."""
        lines = [line for c in self.each for line in c.lines()]
        head, bound = f"all classes: {self.verdict.value}", f"Σ_k M_k ≤ {_n(self.bound)}"
        counted = {c.quantity for c in self.each} if math.isfinite(self.bound) else set()
        if counted == {MISTAKES}:
            head += f": the largest margin errs at most {bound} times"
        elif counted and counted <= {MISTAKES, WEIGHTED}:
            head += f": the rows on which the largest margin errs weigh at most {bound} together (weighted mistakes)"
        return [*lines, head]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """All of them, and the union."""
        each = [c.to_dict() for c in self.each]
        return dict(_plain({"verdict": self.verdict.value, "bound": self.bound, "each": each}))

    def _repr_html_(self) -> str:
        return "".join(c._repr_html_() for c in self.each)
