"""How far rounding may put what was measured above its bound: the band of a verdict.

It is 1e-9 of the bound and of what the start of the run would have lost, which is Sigma c (y - base)^2 for squared
errors and Sigma c |y - base| for losses that grow linearly, and what rounding in margins, steps and sums may come to:
of targets far from 0 many digits are lost in a difference, however small the losses are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.floats import EPS
from ..online.margins import each_loss, each_mean, each_slope
from . import theorems
from .adaptive import margins_of_start
from .applied import Band, divergence_change, loss_of, rounding
from .certificate import MISTAKES, WEIGHTED

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .applied import AppliedTheorem
    from .replay import Rounds


def band(run: Run, data: Data, t: Rounds, case: AppliedTheorem) -> Band:
    """The band of a theorem that was applied to a run."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows makes a certificate void
        times = t.c * t.eta if case.quantity.endswith("times its rate") else t.c
        sums = 2.0 * EPS * t.row.size * float(np.abs(case.course.bound).max())
        lost = float((times * _lost_by_start(run, data, t, case)).sum())
        off = float((times * _margins(run, data, t, case)).sum())
        if run.learner.geometry.linear:
            loss, raw = run.learner.loss, run.learner.theorem == "glm-tron" or case.quantity.endswith("times its rate")
            share = 1.0 / float(loss.scale) if loss.quadratic and not raw else 1.0
            off += share * float(np.nansum(times / (t.c * t.eta) * _steps(run, data, t, case)))  # NaN never holds
        return Band(lost, sums + off)


def _lost_by_start(run: Run, data: Data, t: Rounds, case: AppliedTheorem) -> np.ndarray:
    """What the start would have lost in each round, for weights 1."""
    if case.quantity in (MISTAKES, WEIGHTED):
        return np.ones(t.row.size)
    z = margins_of_start(run, data)[t.row]
    if case.theorem is theorems.GLM_TRON:
        return (each_mean(run.learner.loss, z) - t.y) ** 2
    return np.abs(each_loss(loss_of(run.learner), z, t.y))


def _margins(run: Run, data: Data, t: Rounds, case: AppliedTheorem) -> np.ndarray:
    """What rounding in the margins of the comparator and of the run may change a loss by, for weights 1."""
    u = case.comparator.u
    lanes = EPS * (8.0 + 0.125 * run.width)
    sizes = data.margin_sizes(u)[t.row]
    if case.quantity in (MISTAKES, WEIGHTED):
        return lanes * sizes
    loss = loss_of(run.learner)
    other = np.abs(each_slope(loss, data.margins(u)[t.row], t.y)) * (sizes + np.abs(t.y))
    return lanes * (other + np.abs(each_slope(loss, t.z, t.y)) * (np.abs(t.z) + np.abs(t.y)))


def _steps(run: Run, data: Data, t: Rounds, case: AppliedTheorem) -> np.ndarray:
    """What rounding in each step may add to the potential 2 D(u, w)."""
    u, first = case.comparator.u, run.first
    off = rounding(run, t, float(np.linalg.norm(u)))
    if run.learner.geometry.multiplicative:
        return off
    far = float((u - first) @ (u - first)) + 2.0 * np.cumsum(divergence_change(t, data.margins(u)[t.row]))
    size = float(first @ first) + 2.0 * np.cumsum(t.change)
    return off + EPS * np.sqrt(np.maximum(0.0, size) * np.maximum(0.0, far))
