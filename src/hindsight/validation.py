"""Checks of parameters, targets and weights: what is right passes, what is not is one clear error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .errors import RowError


def refuse_masked(values: Any, what: str, error: type[ValueError] = ValueError) -> None:
    """Refuse masked values, which would be read as what is under the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        at = ", ".join(map(str, np.argwhere(np.ma.getmaskarray(values))[0].tolist()))
        raise error(f"{what}[{at}] is masked: fill masked values, or leave such rows out")


def check_numbers(values: Any, what: str) -> None:
    """Refuse what numpy would turn into other numbers: masked values, dates and times, complex numbers."""
    refuse_masked(values, what)
    if not hasattr(values, "dtype"):
        values = np.asarray(values)
    kind = getattr(values.dtype, "kind", None)
    if kind == "c":
        raise ValueError(f"Complex data not supported: {what} holds {values.dtype}, not real numbers")
    if kind in ("M", "m"):
        raise ValueError(f"{what} holds {values.dtype}, not numbers: convert it to numbers of a unit first")


def check_target(targets: str, y: float) -> bool:
    """Whether the learner takes this target."""
    if targets == "sign":
        return y in (1.0, -1.0)
    if targets == "count":
        return 0.0 <= y < np.inf
    return 0.0 <= y <= 1.0 if targets == "unit" else -np.inf < y < np.inf


def check_targets(targets: str, y: np.ndarray) -> None:
    """Refuse targets that the learner does not take, naming the row."""
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
    """Refuse weights that are negative, not finite, or (unless that may be) all zero."""
    good = (c >= 0.0) & (c < np.inf)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise RowError(row, f": weight {float(c[row])!r} must be a finite number, at least 0")
    if c.size and not idle and not c.any():
        raise ValueError("all weights are zero: there is nothing to learn")


def number(name: str, value: Any, above: float = -math.inf, below: float = math.inf) -> float:
    """`value` as a float if it is a finite number above `above` and below `below`; otherwise one clear error."""
    known = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if known and above < value < below:
        return float(value)
    ends = [f"above {above:g}"] * (above > -math.inf) + [f"below {below:g}"] * (below < math.inf)
    raise ValueError(f"{name} must be a number{' ' if ends else ''}{' and '.join(ends)}, got {value!r}")


def at_least_0(name: str, value: Any) -> float:
    """`value` as a float if it is a finite number, at least 0."""
    if number(name, value) < 0.0:
        raise ValueError(f"{name} must be at least 0, got {value!r}")
    return float(value)


def whole(name: str, value: Any, least: int = 1, other: str = "") -> int:
    """`value` as an int if it is a whole number, at least `least`; `other` is what else it may be, for the error."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be {other}a whole number, at least {least}; got {value!r}")
    return int(value)


def choice(name: str, value: Any, options: Any) -> Any:
    """`value` if it is one of the options; otherwise one clear error."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}; got {value!r}")
    return value
