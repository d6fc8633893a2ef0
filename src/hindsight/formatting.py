"""Formatting of numbers for people and for JSON.

Main figures have three digits, sums and the quantities of theorems have six, and fractions are in per cent. This holds
on a terminal, in a report, on the web page of the service and in a notebook. JSON has all digits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def brief(value: float) -> str:
    """A figure with three significant digits.

    There are more if they are needed before the decimal point, or to distinguish the figure from 1. NaN is a dash.

    Examples
    --------
    >>> brief(57.4321), brief(0.0912345), brief(165800.0), brief(4.0), brief(2.3e10), brief(0.99994)
    ('57.4', '0.0912', '165,800', '4.00', '2.3e10', '0.99994')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0.0 else "−∞"
    if 1e3 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    if 1e-12 < 1.0 - abs(value) < 5e-4:
        return f"{value:.{-math.floor(math.log10(1.0 - abs(value)))}f}"
    if value == 0.0 or not 1e-3 <= abs(value) < 1e3:
        mantissa, e, power = f"{value:.3g}".partition("e")
        return f"{mantissa}e{int(power)}" if e else mantissa
    return f"{value:#.3g}".removesuffix(".")


def percent(part: float) -> str:
    """A fraction in per cent with one decimal, or more decimals if it is close to 0 or 1.

    Examples
    --------
    >>> percent(0.9576), percent(0.99964), percent(1.0), percent(float("nan"))
    ('95.8 %', '99.96 %', '100 %', '–')
    """
    if math.isnan(part):
        return "–"
    near = 100.0 * min(abs(part), abs(1.0 - part))
    if near < 1e-9:
        return f"{100.0 * part:.0f} %"
    return f"{100.0 * part:.{max(1, -math.floor(math.log10(near)))}f} %"


def _n(value: float) -> str:
    """A number with six significant digits, and thousands separators where they help."""
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{value:,.0f}"
    if 1e3 <= abs(value) < 1e9:
        return f"{value:,.{max(0, 5 - int(math.log10(abs(value))))}f}"
    return f"{value:.6g}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """The rows of a table as lines, with the first `left` columns left-aligned and the others right-aligned."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    signs = ["<" if j < left else ">" for j in range(len(wide))]
    lines = ("  ".join(f"{cell:{s}{w}}" for cell, s, w in zip(row, signs, wide, strict=True)) for row in rows)
    return [line.rstrip() for line in lines]
