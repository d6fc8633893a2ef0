"""A run played again over its rows: that shows that they are its rows, and gives what happened in every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MismatchError
from ..online.facts import same_sums
from ..online.run import BLOCK, Run
from ..online.together import Single, together

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..online.panel import PanelRun
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
    return _replay([run], data, lambda again: [Single(again[0], 0)])[0]


def replay_members(run: PanelRun, data: Data) -> list[Rounds]:
    """The same for the members of a panel, as they play; where some play together no `change` or `after` is noted."""
    return _replay(run.members, data, together)


def _replay(runs: list[Run], data: Data, parties_of: Callable[[list[Run]], list[Any]]) -> list[Rounds]:
    """Play runs over the same rows again, in the parties that play a block each, and check that each is the same."""
    run, counted = runs[0], int(np.count_nonzero(data.c))
    passes, rest = divmod(run.rounds, counted) if counted else (0, 0)
    if data.width != run.width:
        raise MismatchError(f"the model has {run.width} coordinates, these rows have {data.width}")
    if passes == 0 or rest:
        raise MismatchError(
            f"the model was trained on {run.rounds:,} rounds, which is not a whole number of passes over these "
            f"{counted:,} rows: certify it on the rows it was trained on"
        )
    again = [Run(each.learner, each.features, intercept=each.intercept, start=each.start) for each in runs]
    parties = parties_of(again)
    out = np.zeros((len(runs), 7, passes, data.rounds))
    for p in range(passes):
        for first, rows, count in data.blocks():
            for a in range(0, count, BLOCK):
                b = min(count, a + BLOCK)
                part = slice(first + a, first + b)
                played = min(
                    party.replay(rows, a, b, data.y[part], data.c[part], out[:, :, p, part]) for party in parties
                )
                if played < b - a:
                    row = first + a + played
                    raise MismatchError(f"row {row} cannot be played: these are not the rows of the run")
    for old, new, noted in zip(runs, again, out, strict=True):
        _check_same(old, new, float(noted[-1].sum()))
    if counted == data.rounds and passes == 1:  # nothing to pick or repeat, so nothing to copy
        row, y, c = np.arange(counted), data.y, data.c
        return [Rounds(row, y, c, each.learner.rate.of_rounds(counted), *out[k, :, 0]) for k, each in enumerate(runs)]
    keep = data.c > 0.0
    row = np.tile(np.flatnonzero(keep), passes)
    y, c = data.y[row], data.c[row]
    return [
        Rounds(row, y, c, each.learner.rate.of_rounds(row.size), *(v[:, keep].ravel() for v in out[k]))
        for k, each in enumerate(runs)
    ]


def _check_same(run: Run, again: Run, rounding: float) -> None:
    """Refuse a replay that ends with other weights or other facts."""
    far = float(np.abs(run.weights - again.weights).max())
    if not same_sums(run.tally, again.tally) or not far <= _weights_may_differ(run, rounding):
        raise MismatchError(
            "the model was not trained on these rows in this order: "
            f"its loss was {run.facts.loss:.9g}, here it is {again.facts.loss:.9g}, and weights differ by {far:.3g}"
        )
