"""Certificates of densities: their log loss, that of the best fixed distribution in hindsight, and the bound.

The theorems are those of docs/theory.md#density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..certificates.certificate import MARK, WORST_FIRST, Assumption
from ..certificates.theorems import Theorem, Verdict, verdict
from ..certificates.wording import TONES, card
from ..formatting import _n, _plain
from ..storage.registry import storable

LN2 = math.log(2.0)


@storable
@dataclass(frozen=True)
class DensityCertificate:
    """The certificate of a density: its progressive log loss on the rows it learnt, against the best in hindsight.

    Attributes
    ----------
    verdict : Verdict
        HOLDS, VOID, UNCHECKABLE or BROKEN.
    theorem : Theorem
        Name, source and statement of the bound.
    measured : float
        -Σ ln p(x_t) in nats, where each row was predicted before it was learnt.
    rival : float
        The same for the best fixed distribution of the family in hindsight (maximum likelihood); -inf if the likelihood
        has no maximum (a Gaussian without variance).
    bound : float
        Upper bound on the regret in nats; NaN if there is none.
    rows : int
        Number of rows.
    assumptions : tuple of Assumption
        The assumptions of the theorem, and whether they were met.
    notes : tuple of str
        Remarks.
    label : str or None
        Name of the column, if there are several.
    parts : tuple of DensityCertificate
        For a product, one certificate per column; its own figures are their sums.
    equality : bool
        Whether the bound was met with equality, up to rounding.

    Examples
    --------
    >>> from hindsight.density import Bernoulli
    >>> found = Bernoulli().update([1, 1, 0, 1]).certificate()
    >>> found.verdict.value, round(found.regret, 3), round(found.bound, 3)
    ('HOLDS', 0.993, 1.386)
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
        """Measured loss minus that of the rival, in nats."""
        return self.measured - self.rival

    @property
    def slack(self) -> float:
        """Bound minus regret, in nats."""
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
        """All fields as numbers, strings, lists and None (for NaN and infinities), ready for JSON."""
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
        """The certificate as lines of text."""
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
        return card(head, [], TONES[self.verdict], rest=[line.strip() for line in rest])


def judge(
    theorem: Theorem,
    measured: float,
    rival: float,
    bound: float,
    rows: int,
    needs: tuple[Assumption, ...],
    notes: tuple[str, ...] = (),
) -> DensityCertificate:
    """Make the certificate: VOID if an assumption is not met, UNCHECKABLE without a bound, otherwise by the numbers."""
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


def note_of_shards(shards: int, in_closed_form: bool) -> tuple[str, ...]:
    """A note on the meaning of the loss of merged shards."""
    if shards < 2:
        return ()
    if in_closed_form:
        return (
            f"merged from {shards} shards: the loss is what one run over all their rows, in any order, would have paid",
        )
    return (f"merged from {shards} shards: the loss is the sum of what each paid by itself",)


def of_columns(name: str, rows: int, parts: dict[str, DensityCertificate]) -> DensityCertificate:
    """The certificate of independent columns: losses, rivals and bounds add, and the worst verdict counts."""
    from dataclasses import replace

    each = tuple(replace(part, label=label) for label, part in parts.items())
    theorem = Theorem(name, "", "log losses of independent columns add, and so do regrets and bounds")
    found = next(v for v in WORST_FIRST if any(part.verdict is v for part in each))
    measured, rival, bound = (sum(getattr(part, what) for part in each) for what in ("measured", "rival", "bound"))
    equality = all(part.equality for part in each)
    return DensityCertificate(
        found, theorem, measured, rival, bound, rows, parts=each, label="all columns", equality=equality
    )


def _units(nats: float) -> str:
    return f"{_n(nats)} nats = {_n(nats / LN2)} bits"
