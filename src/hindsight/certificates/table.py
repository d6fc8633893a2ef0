"""Several certificates as one table, with one line and the main figures per row of data for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .headline import PARTS_RIGHT, constant_of, figure_of, title_of
from .theorems import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .certificate import Certificate

HEADS = ("", "verdict", "best constant", "best fixed", "guaranteed")


def table(named: Sequence[tuple[str, Certificate]]) -> list[str]:
    """The certificates as lines of text, followed by an explanation for each bound that does not hold.

    A best fixed predictor that is not shown to be the best has ≤ before its loss, or ≥ before its accuracy.

    Parameters
    ----------
    named : sequence of (str, Certificate)
        The certificates with their names.
    """
    units = {certificate.unit for _, certificate in named}
    rows = [(name, *cells(certificate, len(units) > 1)) for name, certificate in named]
    heads = [*HEADS[:2], title_of(units.pop()) if len(units) == 1 else "this run", *HEADS[2:]]
    wide = [max(len(row[k]) for row in (heads, *rows)) for k in range(len(heads))]

    def line(row: Sequence[str]) -> str:
        left = f"{row[0]:<{wide[0]}}  {row[1]:<{wide[1]}}"
        return f"{left}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row[2:], wide[2:], strict=True))

    return [line(heads).rstrip(), *map(line, rows), *faults(named)]


def cells(certificate: Certificate, titled: bool) -> tuple[str, ...]:
    """The cells of one certificate; with the name of its figure if `titled`."""
    worth = f", {certificate.worth}" if certificate.worth else ""
    shown = {k: figure_of(certificate.unit, v) for k, v in certificate.means.items()}
    sign = "≥" if certificate.unit in PARTS_RIGHT else "≤"
    best = shown["best"] if certificate.best_is_shown or shown["best"] == "–" else f"{sign}{shown['best']}"
    own = f"{title_of(certificate.unit)} {shown['loss']}" if titled else shown["loss"]
    return f"{certificate.verdict.value}{worth}", own, shown["constant"], best, shown["guaranteed"]


def faults(named: Sequence[tuple[str, Certificate]]) -> list[str]:
    """Lines about runs that a constant would have beaten, with advice, and about bounds that do not hold."""
    out = []
    for name, certificate in named:
        if certificate.advice:
            out.append(f"{name} lost more than {constant_of(certificate.unit)} would have: {certificate.advice}")
        if certificate.verdict is not Verdict.HOLDS:
            why = [need.text for need in certificate.assumptions if need.met is not True] + list(certificate.notes)
            out.append(f"{name}: {certificate.verdict.value}: {certificate.theorem.name}; {'; '.join(why[:2])}")
    return out
