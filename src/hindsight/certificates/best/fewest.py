"""The fixed predictor with the fewest mistakes: 0 if a separator exists, otherwise the fewest that were found.

Finding the minimum is NP-hard in general; for few rows an integer program proves it. A margin of 0 is a mistake.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...batch.separability import fewest_mistakes
from ...kernels.floats import EPS
from ...kernels.losses import Logistic, Square
from ..certificate import Best
from . import clock
from .fixed import nonnegative_separator, smooth
from .least_squares import least_squares
from .objective import column_sizes, inverse
from .separator import hard_margin
from .spaces import SPACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...kernels.floats import Floats
    from ...rows.data import Data

SMALL = 4_000_000  # numbers in the rows up to which a separator is sought
PROGRAM = 40_000  # the same on the simplex, where a linear program seeks it
EXACT, COLUMNS, SECONDS = 40, 6, 2.0  # rows and columns up to which the integer program is solved, and its time
FEW = 50  # coordinates up to which each is tried alone, on the simplex
EPOCHS, READS = 100, 3e7  # readings of the rows by the pocket search, and numbers read by it, at most
STALE = 10  # readings without a better predictor after which it goes on from the best
FITS = 2e10  # multiplications up to which fits of other losses are tried
SEPARATES, PROVED, FOUND = "0: a separator exists", "the fewest, proved", "the fewest found"


def fewest(data: Data, a: Floats, geometry: Any, at_hand: Iterable[Floats]) -> Best:
    """The u with the smallest total weight of mistakes that was found, and its gap.

    Parameters
    ----------
    data : Data
        The rows, with labels -1 and 1.
    a : ndarray
        The weight of each row.
    geometry : a geometry of `kernels`
        It determines the set of u; mistakes do not change with the length of u.
    at_hand : iterable of ndarray
        Predictors to try.
    """
    signed = geometry.name != "simplex"
    separator, separable = _separator(data, signed)
    if separator is not None and _separates(data, a, separator):
        return Best(_inside(separator, geometry), 0.0, 0.0, SEPARATES)
    best = np.zeros(data.width) if signed else np.full(data.width, geometry.radius / data.width)
    least = _weight_wrong(data, a, best)
    for u in (*at_hand, *(_fits(data, a) if signed else _corners(data))):
        for tried in (u, _shifted(data, a, u)) if signed and data.bias != 0.0 else (u,):
            wrong = _weight_wrong(data, a, tried)
            if wrong < least:
                best, least = tried, wrong
    lower = max(float(a[data.row_norms_inf() == 0.0].sum()), _least_weight(a) if separable is False else 0.0)
    if signed and least > lower:
        best, least, lower = _exact(data, a, best, least, lower)
    if signed and least > lower:
        best, least = _pocket(data, a, best, least)
    how = PROVED if least <= lower else FOUND
    if least == 0.0:
        how = SEPARATES if _separates(data, a, best) else FOUND
    return Best(_inside(best, geometry), least, max(0.0, least - lower), how)


def _weight_wrong(data: Data, a: Floats, u: Floats) -> float:
    """The total weight of the rows that u misclassifies."""
    return float(a[data.y * data.margins(u) <= 0.0].sum())


def _separates(data: Data, a: Floats, u: Floats) -> bool:
    """Whether u classifies all rows correctly, by more than rounding."""
    slack = (data.width + 8) * EPS * float(np.linalg.norm(u)) * np.sqrt(data.row_norms2())
    return bool((data.y * data.margins(u) > slack)[a > 0.0].all())


def _least_weight(a: Floats) -> float:
    return float(a[a > 0.0].min(initial=math.inf)) if a.any() else 0.0


def _separator(data: Data, signed: bool) -> tuple[Floats | None, bool | None]:
    """A u that classifies all rows correctly, and whether one exists (None if unknown)."""
    size = data.rounds * data.width
    if signed:
        if size > SMALL or clock.late():
            return None, None
        found = hard_margin(data)
        return found.u, found.separable
    if size > PROGRAM:
        return None, None
    on = data.c > 0.0
    return nonnegative_separator(data.matrix()[on] * data.y[on][:, None])


def _fits(data: Data, a: Floats) -> Iterator[Floats]:
    """The best fixed predictors of the square and of the logistic loss, if they are cheap to compute."""
    work = float(data.rounds) * data.width**2
    if work <= FITS and data.width <= 600 and not clock.late():
        yield least_squares(data, Square(2.0), a).u
        if 20.0 * work <= FITS:
            yield smooth(_unit(data), Logistic(1.0), a).u


def _corners(data: Data) -> Iterator[Floats]:
    """The unit vectors, if there are few columns."""
    if data.width <= FEW:
        yield from np.eye(data.width)


def _unit(data: Data) -> Data:
    """The same rows with labels 0 and 1."""
    from copy import copy

    other = copy(data)
    other.y = 0.5 * (data.y + 1.0)
    return other


def _shifted(data: Data, a: Floats, u: Floats) -> Floats:
    """The same u with the intercept that makes the fewest mistakes."""
    z = data.margins(u)
    order = np.argsort(z)
    side = (a * data.y)[order]
    # with the threshold before the k-th margin, negatives from there on and positives below it are wrong
    wrong = float(a[data.y < 0.0].sum()) + np.concatenate(([0.0], np.cumsum(side)))
    ends = np.concatenate(([True], np.diff(z[order]) > 0.0, [True]))
    k = int(np.argmin(np.where(ends, wrong, np.inf)))
    sorted_z = z[order]
    span = float(np.abs(z).max(initial=0.0)) or 1.0
    low = sorted_z[k - 1] if k > 0 else sorted_z[0] - span
    high = sorted_z[k] if k < z.size else sorted_z[-1] + span
    out = u.copy()
    out[-1] -= 0.5 * (low + high) / data.bias
    return out


def _exact(data: Data, a: Floats, best: Floats, least: float, lower: float) -> tuple[Floats, float, float]:
    """The same by an integer program, for few rows of equal weight."""
    on = a > 0.0
    few = on.sum() <= EXACT and data.width <= COLUMNS and a[on].min() == a[on].max()
    if not few or np.unique(data.y[on]).size < 2 or clock.late():
        return best, least, lower
    each = float(a[on][0])
    found = fewest_mistakes(
        data.matrix()[on], data.y[on], fit_intercept=False, time_limit=max(0.01, min(SECONDS, clock.left()))
    )
    wrong = _weight_wrong(data, a, found.w)
    if wrong < least:
        best, least = found.w, wrong
    return best, least, max(lower, each * found.lower)


def _pocket(data: Data, a: Floats, best: Floats, least: float) -> tuple[Floats, float]:
    """The best u of a pocket search that starts from the best so far; deterministic.

    Each step is a perceptron step on a random sample of the misclassified rows, of random length, on scaled columns.
    """
    unit = inverse(column_sizes(data, a))
    rng, v, stale = np.random.default_rng(0), best, 0
    for _ in range(int(min(EPOCHS, READS // max(1, data.rounds * data.width)))):
        if clock.late():
            break
        wrong = np.flatnonzero((data.y * data.margins(v) <= 0.0) & (a > 0.0))
        drawn = np.zeros(data.rounds)
        drawn[wrong[rng.random(wrong.size) < rng.random()]] = 1.0
        step = unit * data.combine(a * data.y * drawn)
        size = float(np.linalg.norm(step))
        length = float(np.linalg.norm(v * inverse(unit))) or 1.0
        v = v + unit * step * (rng.random() * length / size if size > 0.0 else 0.0)
        v = _shifted(data, a, v) if data.bias != 0.0 else v
        found = _weight_wrong(data, a, v)
        stale += 1
        if found < least:
            best, least, stale = v, found, 0
        elif stale >= STALE:
            v, stale = best, 0
    return best, least


def _inside(u: Floats, geometry: Any) -> Floats:
    """The u of the same direction in the set of the geometry; 0 stays 0."""
    if geometry.name not in SPACES:
        return u
    size = float(np.abs(u).sum())
    return u * (geometry.radius / size) if size > 0.0 else u
