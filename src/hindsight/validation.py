"""Checks of parameters, targets and weights, which raise a clear error for invalid values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .errors import RowError


def refuse_masked(values: Any, what: str, error: type[ValueError] = ValueError) -> None:
    """Refuse masked values, since the data under the mask would be read."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = ", ".join(map(str, np.argwhere(np.ma.getmaskarray(values))[0].tolist()))
        raise error(f"{what}[{at}] is masked: fill masked values, or leave such rows out")


def check_numbers(values: Any, what: str) -> None:
    """Refuse values that numpy would convert silently: masked values, dates and times, complex numbers."""
    refuse_masked(values, what)
    if not hasattr(values, "dtype"):
        values = np.asarray(values)
    kind = getattr(values.dtype, "kind", None)
    if kind == "c":
        raise ValueError(f"Complex data not supported: {what} holds {values.dtype}, not real numbers")
    if kind in ("M", "m"):
        raise ValueError(f"{what} holds {values.dtype}, not numbers: convert it to numbers of a unit first")


def check_target(targets: str, y: float) -> bool:
    """Whether this target is valid for the learner."""
    if targets == "sign":
        return y in (1.0, -1.0)
    if targets == "count":
        return 0.0 <= y < np.inf
    return 0.0 <= y <= 1.0 if targets == "unit" else -np.inf < y < np.inf


def check_targets(targets: str, y: np.ndarray) -> None:
    """Refuse targets that are invalid for the learner, naming the row."""
    if targets == "real":
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(y.sum()):  # one read of them; a sum that overflows is looked into
                return
    if targets == "sign":
        good, want = np.abs(y) == 1.0, "-1 or 1"
    elif targets == "unit":
        good, want = (y >= 0.0) & (y <= 1.0), "between 0 and 1"
    elif targets == "count":
        good, want = (y >= 0.0) & (y < np.inf), "a finite number, at least 0"
    else:
        good, want = np.isfinite(y), "finite"
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise RowError(row, f": target {float(y[row])!r} must be {want}")


def check_weights(c: np.ndarray, idle: bool = False) -> None:
    """Refuse weights that are negative, not finite, or all zero; with `idle`, all may be zero."""
    good = (c >= 0.0) & (c < np.inf)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise RowError(row, f": weight {float(c[row])!r} must be a finite number, at least 0")
    if c.size and not idle and not c.any():
        raise ValueError("all weights are zero: there is nothing to learn")


def number(name: str, value: Any, above: float = -math.inf, below: float = math.inf) -> float:
    """`value` as a float, if it is a finite number above `above` and below `below`; raise an error otherwise."""
    known = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if known and above < value < below:
        return float(value)
    ends = [f"above {above:g}"] * (above > -math.inf) + [f"below {below:g}"] * (below < math.inf)
    raise ValueError(f"{name} must be a number{' ' if ends else ''}{' and '.join(ends)}, got {value!r}")


def at_least_0(name: str, value: Any) -> float:
    """`value` as a float, if it is a finite number of at least 0; raise an error otherwise."""
    if number(name, value) < 0.0:
        raise ValueError(f"{name} must be at least 0, got {value!r}")
    return float(value)


def whole(name: str, value: Any, least: int = 1, other: str = "") -> int:
    """`value` as an int, if it is an integer of at least `least`; `other` names alternatives in the error."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be {other}a whole number, at least {least}; got {value!r}")
    return int(value)


def choice(name: str, value: Any, options: Any) -> Any:
    """`value`, if it is one of the options; raise an error otherwise."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}; got {value!r}")
    return value
