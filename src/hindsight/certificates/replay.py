"""A run played again over its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import kernels
from ..kernels.geometries import Euclidean
from ..kernels.state import REACH
from ..online.run import Run

if TYPE_CHECKING:
    from ..rows.data import Data
from ..errors import MismatchError


@dataclass(frozen=True)
class Rounds:
    """The rounds of a run (rows of weight 0 left out, passes one after another), an array each.

    row, label y, weight c, rate eta, margin z before the update, q = |x|_2^2, top = |x|_inf, and for multiplicative
    weights drift, the change of ln Sigma e^theta.
    """

    row: np.ndarray
    y: np.ndarray
    c: np.ndarray
    eta: np.ndarray
    z: np.ndarray
    q: np.ndarray
    top: np.ndarray
    drift: np.ndarray


def replay(run: Run, data: Data) -> Rounds:
    """Play the run again from its start over the rows, as many passes as it took, and check that it is the same run."""
    counted = int(np.count_nonzero(data.c))
    passes, rest = divmod(run.rounds, counted) if counted else (0, 0)
    if data.width != run.v.shape[1]:
        raise MismatchError(f"the model has {run.v.shape[1]} coordinates, these rows have {data.width}")
    if passes == 0 or rest:
        raise MismatchError(
            f"the model was trained on {run.rounds:,} rounds, which is no whole number of passes over these "
            f"{counted:,} rows: certify it on the rows it was trained on"
        )
    learner = run.learner
    again = Run(learner, data.width - bool(run.bias), intercept=bool(run.bias), start=run.start)
    parts = (learner.loss, learner.update, learner.geometry, learner.rate)
    multiplicative = not isinstance(learner.geometry, Euclidean)
    out = np.zeros((4, passes, data.rounds))
    for p in range(passes):
        for first, rows, count in data.blocks():
            y, c = data.y[first : first + count], data.c[first : first + count]
            z, q, top, drift = out[:, p, first : first + count]
            args = (rows, 0, count, y, c, *parts, again.v, again.s, z, q, top, again.f)
            played = kernels.trace(*args, drift) if multiplicative else kernels.play(*args)
            if played < count:
                raise MismatchError(f"row {first + played} cannot be played: these are not the rows of the run")
    mine, theirs = run.weights, again.weights
    far = float(np.abs(mine - theirs).max())
    if not np.allclose(again.f, run.f, rtol=1e-9, atol=1e-12) or not far <= 1e-9 * max(
        run.s[REACH], np.abs(mine).max()
    ):
        raise MismatchError(
            "the model was not trained on these rows in this order: "
            f"its loss was {run.facts.loss:.9g}, here it is {again.facts.loss:.9g}, and weights differ by {far:.3g}"
        )
    if counted == data.rounds and passes == 1:  # nothing to pick or repeat, so nothing to copy
        return Rounds(np.arange(counted), data.y, data.c, _rates(learner.rate, counted), *out[:, 0])
    keep = data.c > 0.0
    row = np.tile(np.flatnonzero(keep), passes)
    z, q, top, drift = (a[:, keep].ravel() for a in out)
    return Rounds(row, data.y[row], data.c[row], _rates(learner.rate, row.size), z, q, top, drift)


def _rates(step: kernels.RateSchedule, rounds: int) -> np.ndarray:
    if step.rates.size:
        return step.rates[:rounds]
    if step.power == 0.0:
        return np.full(rounds, step.eta)
    return step.eta * np.arange(1.0, rounds + 1.0) ** -step.power
