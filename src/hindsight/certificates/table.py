"""Several certificates as one table: a line for each, with the figures per row that people ask for first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .theorems import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .certificate import Certificate

HEADS = ("", "verdict", "best constant", "best fixed", "guaranteed")


def table(named: Sequence[tuple[str, Certificate]]) -> list[str]:
    """The certificates as lines of text, then what is wrong where a promise does not hold.

    Parameters
    ----------
    named : sequence of (str, Certificate)
        Each with its name. A best fixed predictor that is not shown to be the best has ≤ before its loss.
    """
    rows = [(name, *cells(certificate)) for name, certificate in named]
    counted = all("mistakes" in certificate.quantity for _, certificate in named)
    heads = [*HEADS[:2], "mistakes per row" if counted else "mean loss", *HEADS[2:]]
    wide = [max(len(row[k]) for row in (heads, *rows)) for k in range(len(heads))]

    def line(row: Sequence[str]) -> str:
        left = f"{row[0]:<{wide[0]}}  {row[1]:<{wide[1]}}"
        return f"{left}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row[2:], wide[2:], strict=True))

    return [line(heads).rstrip(), *map(line, rows), *faults(named)]


def cells(certificate: Certificate) -> tuple[str, ...]:
    """What the table shows of one certificate."""
    from .certificate import mean_text

    worth = f", {certificate.worth}" if certificate.worth else ""
    means = certificate.means
    shown = {k: mean_text(v) if math.isfinite(v) else "–" for k, v in means.items()}
    best = shown["best"] if certificate.best_is_shown or shown["best"] == "–" else f"≤{shown['best']}"
    return f"{certificate.verdict.value}{worth}", shown["loss"], shown["constant"], best, shown["guaranteed"]


def faults(named: Sequence[tuple[str, Certificate]]) -> list[str]:
    """Runs that a constant would have beaten, with the cure, and why a promise does not hold."""
    out = []
    for name, certificate in named:
        if certificate.advice:
            out.append(f"{name} lost more than the best constant would have: {certificate.advice}")
        if certificate.verdict is not Verdict.HOLDS:
            why = [need.text for need in certificate.assumptions if need.met is not True] + list(certificate.notes)
            out.append(f"{name}: {certificate.verdict.value}: {certificate.theorem.name}; {'; '.join(why[:2])}")
    return out
