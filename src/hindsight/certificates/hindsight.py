"""The other side of a run: the comparators of its theorems, the best fixed predictor and the best constant.

All of them are sought first, and then meet the rows together.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .adaptive import APPLIED, Beside, in_ledger, lost_by_start, opponent_of, sought
from .applied import measured_loss, measured_unit
from .best import clock
from .best.constant import best_constant, constant_point
from .best.fixed import best_fixed
from .certificate import Best
from .ledger import Opponent, against, factors_of_rows, opens
from .replay import members_of, passes_over, play_again

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..online.run import Run
    from ..rows.data import Data
    from .applied import AppliedTheorem
    from .ledger import Ledger


class OtherRowsError(Exception):
    """The rows are not those which a ledger followed, to the last bit."""


class Known(NamedTuple):
    """What is known of a run in hindsight.

    Attributes
    ----------
    applied : dict
        By the number of a member, its theorem applied.
    best, constant : Best or None, and float
        The best fixed predictor and what the best constant loses; None and NaN where they were not sought.
    tried : dict
        By name, predictors that may lose less than what the search found: "best", that one, is among them.
    unit : float
        What losses are multiplied by to be measured.
    """

    applied: dict[int, AppliedTheorem]
    best: Best | None
    constant: float
    tried: dict[str, Opponent]
    unit: float

    def best_of(self, names: Sequence[str]) -> tuple[Best | None, np.ndarray]:
        """The best fixed predictor, or one of these where it loses less; and what it has lost at each mark."""
        best, course = self.best, self.tried["best"].lost if "best" in self.tried else np.empty(0)
        for name in names:
            if best is not None and name in self.tried:
                one = self.tried[name]
                found = best.or_else(name, one.u, self.unit * float(one.lost[-1]))
                best, course = found, course if found is best else one.lost
        return best, self.unit * course


def followed(
    run: Run, data: Data, ledger: Ledger | None, u: Any, tol: float, geometry: Any = None, seek_best: bool = True
) -> tuple[Ledger, Known]:
    """The ledger of a run, played again unless one is given that followed these rows, and what is known beside it."""
    more = u, tol, geometry, seek_best
    if ledger is not None:
        with suppress(OtherRowsError):
            return ledger, in_hindsight(run, data, ledger, *more)
    ledger = play_again(run, data)
    return ledger, in_hindsight(run, data, ledger, *more)


def in_hindsight(
    run: Run, data: Data, ledger: Ledger, u: Any, tol: float, geometry: Any = None, seek_best: bool = True
) -> Known:
    """What the ledger of a run, or of the members of a panel, says beside their comparators and the best predictor.

    Parameters
    ----------
    run, data, ledger : Run, Data and Ledger
        The run, its rows and its ledger.
    u : array of float or None
        A comparator for all members; None seeks one for each.
    tol : float
        Relative gap to which they, and the best fixed predictor, are sought.
    geometry : a geometry of `kernels` or None, default None
        It determines the set of the best fixed predictor.
    seek_best : bool, default True
        Whether that and the best constant are sought.

    Raises
    ------
    OtherRowsError
        If the ledger followed other rows.
    """
    passes, members = passes_over(run, data), {k: m for k, m in enumerate(members_of(run)) if in_ledger(m)}
    loss, unit = run.learner.loss, measured_unit(run.learner.loss)
    kinds = {ledger.opens, *map(opens, members.values())}
    weights = {opening: factors_of_rows(data, passes, opening) for opening in kinds}
    with clock.timed(0.5 * clock.left()):  # the other half is for the best fixed predictor
        found = {k: sought(member, data, weights[opens(member)], u, tol) for k, member in members.items()}
    facing = {k: opponent_of(member, found[k][0]) for k, member in members.items()}
    best, constant, tried = None, math.nan, {}
    if seek_best:
        factors, whole = weights[ledger.opens], measured_loss(loss)
        best, constant = Best(*best_fixed(data, whole, factors, geometry, tol)), best_constant(whole, data.y, factors)
        points = {"best": best.u, "the weights of the run": run.weights}
        points |= constant_point(data, whole, factors, geometry)
        tried = {name: Opponent(at, ledger.opens) for name, at in points.items() if np.isfinite(at).all()}
    sketch = against(data, loss, [*facing.values(), *tried.values()], run.rounds)
    if ledger.rows_seen and sketch != ledger.sketch:
        raise OtherRowsError
    marks, _, sums = ledger.sums_at()
    applied = {}
    for k, member in members.items():
        _, half, gap, how, notes = found[k]
        factors = weights[opens(member)]
        scale = lost_by_start(member, data, factors)
        beside = Beside(marks, sums[k], facing[k], half, gap, how, notes, scale, data, factors)
        applied[k] = APPLIED[member.learner.theorem](member, beside)
    return Known(applied, best, constant, tried, unit)
