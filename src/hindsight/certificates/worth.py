"""What a promise is worth."""

from __future__ import annotations

import math

from .theorems import Verdict

TIGHT, LOOSE, VACUOUS = "tight", "loose", "vacuous"


def worth_of(verdict: Verdict, measured: float, bound: float, trivial: float) -> str | None:
    """How much a promise says: tight (at most twice what was measured), vacuous (above `trivial`), or loose.

    Parameters
    ----------
    verdict : Verdict
        None is returned unless it is HOLDS.
    measured, bound : float
        What was measured and what was promised.
    trivial : float
        What the best constant loses: a promise above it is one that anybody can make; NaN where it is not known.

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
