"""A run played again over its rows: that shows that they are its rows, and gives what happened in every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import MismatchError
from ..kernels.checksum import add_rounds
from ..kernels.compiler import for_parts
from ..kernels.online import play
from ..kernels.witness import Witness
from ..online.run import Run
from ..rows.checksum import begin_played, check_played, word_of_each

if TYPE_CHECKING:
    from ..rows.data import Data


@dataclass(frozen=True)
class Rounds:
    """The rounds of a run (rows of weight 0 left out, passes one after another), one array each.

    Attributes
    ----------
    row : which row was played.
    y, c, eta : label, weight and rate.
    z : margin before the update.
    q, top : |x|_2^2 and |x|_inf.
    step : the step d that was taken, theta += d x.
    change : what the state says the step added to the conjugate of the potential, so that D(u, w) rose by
        change - step (u . x); NaN for geometries that do not say.
    after : margin after the update.
    rounding : what rounding in the step may have added to that; in the multiplicative geometries it is how far it may
        have moved the logarithm of a weight.
    """

    row: np.ndarray
    y: np.ndarray
    c: np.ndarray
    eta: np.ndarray
    z: np.ndarray
    q: np.ndarray
    top: np.ndarray
    step: np.ndarray
    change: np.ndarray
    after: np.ndarray
    rounding: np.ndarray


def _weights_may_differ(run: Run, rounding: float) -> float:
    """By how much weights may differ between storages; additive ones may be what is left of larger ones."""
    if run.learner.geometry.multiplicative:
        return float(run.learner.geometry.radius * (1e-9 + 4.0 * rounding))
    return float(1e-9 * max(run.progress[0].reach, np.abs(run.weights).max()))


def replay(run: Run, data: Data) -> Rounds:
    """Play the run again from its start over the rows, as many passes as it took, and check that it is the same run."""
    counted = int(np.count_nonzero(data.c))
    passes, rest = divmod(run.rounds, counted) if counted else (0, 0)
    if data.width != run.width:
        raise MismatchError(f"the model has {run.width} coordinates, these rows have {data.width}")
    if passes == 0 or rest:
        raise MismatchError(
            f"the model was trained on {run.rounds:,} rounds, which is not a whole number of passes over these "
            f"{counted:,} rows: certify it on the rows it was trained on"
        )
    again = Run(run.learner, run.features, intercept=run.intercept, start=run.start)
    loop = for_parts(play, *again.parts()[:3])
    out = np.zeros((7, passes, data.rounds))
    words, sums = np.empty(data.rounds, np.uint64), begin_played()
    for p in range(passes):
        for first, rows, count in data.blocks():
            if p == 0:
                word_of_each(rows, 0, count, words[first : first + count])
            y, c = data.y[first : first + count], data.c[first : first + count]
            z, q, top, *noted = out[:, p, first : first + count]
            watch = Witness(*noted)
            played = loop(rows, 0, count, y, c, *again.parts(), z, q, top, again.tally, watch)
            if played < count:
                raise MismatchError(f"row {first + played} cannot be played: these are not the rows of the run")
        add_rounds(words, data.y, data.c, sums)
    if run.knows_rows:
        check_played(run.checksum, sums)
    mine, theirs = run.weights, again.weights
    far = float(np.abs(mine - theirs).max())
    same = np.allclose(again.tally[0].tolist(), run.tally[0].tolist(), rtol=1e-9, atol=1e-12)
    if not same or not far <= _weights_may_differ(run, float(out[-1].sum())):
        raise MismatchError(
            "the model was not trained on these rows in this order: "
            f"its loss was {run.facts.loss:.9g}, here it is {again.facts.loss:.9g}, and weights differ by {far:.3g}"
        )
    if counted == data.rounds and passes == 1:  # nothing to pick or repeat, so nothing to copy
        return Rounds(np.arange(counted), data.y, data.c, run.learner.rate.of_rounds(counted), *out[:, 0])
    keep = data.c > 0.0
    row = np.tile(np.flatnonzero(keep), passes)
    played_rounds = (a[:, keep].ravel() for a in out)
    return Rounds(row, data.y[row], data.c[row], run.learner.rate.of_rounds(row.size), *played_rounds)
