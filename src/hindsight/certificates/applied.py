"""A theorem applied to a run: what is measured in each round, against what, and the bound after each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import rivals

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..online.run import Run
    from ..rows.data import Data
    from .certificate import Assumption, Comparator
    from .replay import Rounds
    from .theorems import Theorem


@dataclass(frozen=True)
class AppliedTheorem:
    """A theorem applied to a run; arrays hold one number per round.

    Attributes
    ----------
    theorem, quantity : the theorem, and what is measured in words.
    measured, rival : the run's own loss, and the comparator's.
    bound : after each round.
    comparator, assumptions : as in the certificate.
    change, allowed : what the step taken added to the potential, and what the theorem's lemma allows.
    potential : at the start; NaN where it is not followed.
    share : the part of the bound that the comparator's distance to the start costs, where it is known.
    size : of the terms of change and allowed, which they may be off by in units of rounding.
    best_eta : as in the certificate.
    sharper : a sharper form: its left side, its right side and how it is written; None where there is none.
    notes : what else there is to say.
    """

    theorem: Theorem
    quantity: str
    measured: np.ndarray
    rival: np.ndarray
    bound: np.ndarray
    comparator: Comparator
    assumptions: tuple[Assumption, ...]
    change: np.ndarray
    allowed: np.ndarray
    potential: float
    size: Callable[[], np.ndarray]
    best_eta: float = math.nan
    sharper: tuple[float, float, str] | None = None
    notes: tuple[str, ...] = ()
    share: float = math.nan


def size_of_terms(step: np.ndarray, q: np.ndarray, z: np.ndarray, rival: np.ndarray, *terms: np.ndarray) -> np.ndarray:
    """The size of the terms that a change of potential and its bound are sums of."""
    size: np.ndarray = step**2 * q + 2.0 * np.abs(step) * (np.abs(z) + np.abs(rival))
    for term in terms:
        size += np.abs(term)
    return size


def divergence_change(t: Rounds, z: np.ndarray) -> np.ndarray:
    """How much the step taken in each round changed D(u, w), with z the margins of u."""
    return t.change - t.step * z


def seek(
    run: Run, data: Data, t: Rounds, loss: Any, kappa: float, a: np.ndarray, u: Any, tol: float
) -> tuple[np.ndarray, float, float, str, tuple[str, ...]]:
    """The u that minimises Sigma a loss(u . x, y) + kappa D(u, w_1): u, D(u, w_1), the gap, how it was found, notes."""
    factors = np.bincount(t.row, a, data.rounds)  # summed over the passes of each row
    geometry = run.learner.geometry
    if u is None:
        best = rivals.best(data, loss, geometry, kappa, factors, run.first, tol)
        how = closeness(best.gap, best.objective) if loss.convex else "found"
        return best.u, best.divergence, best.gap, how, best.notes
    given = rivals.fixed(data, loss, geometry, u, kappa, factors, run.first)
    return given.u, given.divergence, math.inf, "given", ()


def closeness(gap: float, objective: float, where: str = "") -> str:
    """How near a comparator's objective is to the smallest."""
    share = gap / abs(objective) if objective else 0.0
    return f"the smallest{where}" if share < 1e-6 else f"within {100 * share:.2g} % of the smallest{where}"
