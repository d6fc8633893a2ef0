"""Certificate 14: what a density paid in log loss, what the best fixed distribution would have, and the bound."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from ..certificates.certificate import COLOURS, GRAVITY, MARK, Assumption
from ..certificates.theorems import Theorem, Verdict, verdict
from ..formatting import _n, _plain
from ..storage.registry import storable

KT = Theorem("add-½ (KT) over k declared symbols", "N0, log loss", "regret ≤ (k−1)/2·ln T + ln k nats")
LAPLACE = Theorem(
    "add-1 (Laplace) over k declared symbols",
    "a multinomial probability is at most 1",
    "regret ≤ ln C(T+k−1, k−1) nats",
)
NONE = Theorem("Bayes predictive", "", "no bound is known here: the regret is exact, and only measured")
LN2 = math.log(2.0)


def kt_bound(symbols: int, rows: Any) -> np.ndarray:
    """(k-1)/2 ln T + ln k."""
    return np.asarray(0.5 * (symbols - 1) * np.log(rows) + math.log(symbols))


def laplace_bound(symbols: int, rows: Any) -> np.ndarray:
    """ln C(T+k-1, k-1)."""
    return np.asarray(gammaln(np.add(rows, symbols)) - gammaln(symbols) - gammaln(np.add(rows, 1.0)))


@storable
@dataclass(frozen=True)
class DensityCertificate:
    """A statement about the progressive log loss of a density on the rows it learnt, in nats.

    Attributes
    ----------
    verdict : HOLDS, VOID, UNCHECKABLE or BROKEN.
    measured : -Σ ln p(x_t), each predicted before it was learnt.
    rival : the same of the best fixed distribution of the family in hindsight (maximum likelihood); -inf where the
        likelihood has no maximum (a Gaussian without variance).
    bound : on the regret; NaN where nothing is promised.
    rows : how many.
    parts : of a product, one a column; all its figures are their sums.
    """

    verdict: Verdict
    theorem: Theorem
    measured: float
    rival: float
    bound: float
    rows: int
    assumptions: tuple[Assumption, ...] = ()
    notes: tuple[str, ...] = ()
    label: str | None = None
    parts: tuple[DensityCertificate, ...] = ()
    equality: bool = False

    @property
    def regret(self) -> float:
        """Measured minus the rival's, in nats."""
        return self.measured - self.rival

    @property
    def slack(self) -> float:
        """What the bound leaves over, in nats."""
        return self.bound - self.regret

    @property
    def regret_bits(self) -> float:
        """The regret in bits."""
        return self.regret / LN2

    @property
    def bound_bits(self) -> float:
        """The bound in bits."""
        return self.bound / LN2

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and None (for NaN and infinities), ready for JSON."""
        out: dict[str, Any] = {
            "verdict": self.verdict.value,
            "theorem": {k: getattr(self.theorem, k) for k in ("name", "source", "statement")},
            "label": self.label,
            "rows": self.rows,
            "nats": {k: getattr(self, k) for k in ("measured", "rival", "regret", "bound", "slack")},
        }
        out["bits"] = {k: v / LN2 for k, v in out["nats"].items()}
        out["assumptions"] = [{"text": a.text, "met": a.met} for a in self.assumptions]
        out["notes"] = list(self.notes)
        out["parts"] = [part.to_dict() for part in self.parts]
        return dict(_plain(out))

    def lines(self) -> list[str]:
        """The certificate to be read aloud."""
        lines = [line for part in self.parts for line in part.lines()]
        head = f"{self.verdict.value}: {self.theorem.name}"
        head += f" ({self.theorem.source})" if self.theorem.source else ""
        lines.append(head if self.label is None else f"{self.label}: {head}")
        lines.append(f"  this run: {_units(self.measured)} over {self.rows:,} rows")
        if math.isfinite(self.rival):
            lines.append(f"  the best fixed distribution in hindsight: {_units(self.rival)}")
            lines.append(f"  regret: {_units(self.regret)}")
        else:
            lines.append("  the best fixed distribution in hindsight has no bounded density: the regret is infinite")
        if self.verdict in (Verdict.HOLDS, Verdict.BROKEN):
            met = "met with equality" if self.equality else f"slack {_n(self.slack)}"
            lines.append(f"  the theorem promises at most {_units(self.bound)}; {met}")
        lines.append(f"  {self.theorem.statement}")
        lines += [f"  {MARK[need.met]} {need.text}" for need in self.assumptions]
        return lines + [f"  {note}" for note in self.notes]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        head, *rest = self.lines()
        body = "".join(f"<li>{html.escape(line.strip())}</li>" for line in rest)
        colour = COLOURS[self.verdict]
        return (
            f'<div style="border-left:4px solid {colour};padding-left:1em;font-family:sans-serif">'
            f'<b style="color:{colour}">{html.escape(head)}</b><ul>{body}</ul></div>'
        )


def judge(
    theorem: Theorem,
    measured: float,
    rival: float,
    bound: float,
    rows: int,
    needs: tuple[Assumption, ...],
    notes: tuple[str, ...] = (),
) -> DensityCertificate:
    """The certificate: VOID where a need is not met, UNCHECKABLE without a bound, else what the figures say."""
    if rows == 0:
        raise ValueError("there is no row yet, so nothing to certify")
    equality = False
    if any(need.met is False for need in needs):
        found, bound = Verdict.VOID, math.nan
    elif math.isnan(bound):
        found = Verdict.UNCHECKABLE
    else:  # the band covers the rounding of log-gammas, which are of the size T ln T
        found, equality = verdict(measured - rival, bound, 1e-6 * rows * math.log(rows + 1.0))
    return DensityCertificate(found, theorem, measured, rival, bound, rows, needs, notes, equality=equality)


def merged(shards: int, in_closed_form: bool) -> tuple[str, ...]:
    """What the loss of merged shards stands for."""
    if shards < 2:
        return ()
    if in_closed_form:
        return (
            f"merged from {shards} shards: the loss is what one run over all their rows, in any order, would have paid",
        )
    return (f"merged from {shards} shards: the loss is the sum of what each paid by itself",)


def together(name: str, rows: int, parts: dict[str, DensityCertificate]) -> DensityCertificate:
    """Of independent columns: losses, rivals and bounds add, and the gravest verdict stands."""
    from dataclasses import replace

    each = tuple(replace(part, label=label) for label, part in parts.items())
    theorem = Theorem(name, "", "log losses of independent columns add, and so do regrets and bounds")
    found = next(v for v in GRAVITY if any(part.verdict is v for part in each))
    measured, rival, bound = (sum(getattr(part, what) for part in each) for what in ("measured", "rival", "bound"))
    equality = all(part.equality for part in each)
    return DensityCertificate(
        found, theorem, measured, rival, bound, rows, parts=each, label="all columns", equality=equality
    )


def _units(nats: float) -> str:
    return f"{_n(nats)} nats = {_n(nats / LN2)} bits"
