"""Compute the certificate of a run from its rows.

The sums that the theorem of a run needs are accumulated while it learns, or by playing it again over the rows, which
must end in the same weights and facts. Then the comparator that makes the bound smallest is sought, and its losses are
computed from the rows. The learner declares which theorem applies. The best fixed predictor in hindsight and the best
constant are added for comparison; no theorem needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import MismatchError
from ..online.panel import PanelRun
from ..rows.one_thread import one_thread
from .audit import replay
from .best import clock
from .families.adaptive import in_ledger
from .families.panel import certify_panel
from .judge import applied_theorem, judge, verdict_on
from .outcome import Outcome, followed, outcome, outcome_of_ledger
from .theorems import Verdict

if TYPE_CHECKING:
    from ..online.run import Run
    from ..rows.data import Data
    from .applied import Judged
    from .certificate import Certificate
    from .ledger import Ledger


def certify_run(
    run: Run,
    data: Data,
    *,
    u: Any = None,
    planted: Any = None,
    tol: float = 0.01,
    label: str | None = None,
    seek_best: bool = True,
    ledger: Ledger | None = None,
) -> Certificate:
    """Return the certificate of a run over its rows.

    Parameters
    ----------
    run : Run
        The run.
    data : Data
        The rows it was trained on, with targets as it saw them and the same intercept.
    u : array of float, default None
        A comparator to use instead of the one that makes the bound smallest.
    planted : array of float, default None
        For GLM-tron, the w* with y = u(w*.x); without it, the regret in the matching loss is certified.
    tol : float, default 0.01
        Relative gap to which the comparator is computed, and the best fixed predictor where it has no exact solution.
    label : str, default None
        The class of this run, in one-vs-rest.
    seek_best : bool, default True
        Whether the best fixed predictor and the best constant are sought too.
    ledger : Ledger, default None
        The sums accumulated while these rows were learnt; None plays the run again.

    Returns
    -------
    Certificate

    Raises
    ------
    MismatchError
        If these are not the rows of the run.
    """
    if run.rounds == 0:
        raise MismatchError("the model has played no round yet")
    with one_thread(data.width):
        if isinstance(run, PanelRun):
            return certify_panel(run, data, u, tol, label, ledger)
        if planted is None and in_ledger(run):
            found, known = _from_ledger(run, data, u, tol, seek_best, ledger)
        else:
            apply = applied_theorem(run, planted)
            rounds = replay(run, data)
            with clock.timed(0.5 * clock.left()):  # the other half is for the best fixed predictor
                found = judge(run, data, rounds, u, tol, apply)
            promised = found.verdict in (Verdict.HOLDS, Verdict.BROKEN)
            known = outcome(run, data, rounds, found.case, tol, promised) if seek_best else None
    return found.certificate(run.rounds, label, known)


def _from_ledger(
    run: Run, data: Data, u: Any, tol: float, seek_best: bool, ledger: Ledger | None
) -> tuple[Judged, Outcome | None]:
    """The verdict on a run that has a ledger, and what is known in hindsight."""
    ledger, known = followed(run, data, ledger, u, tol, run.learner.geometry, seek_best)
    found = verdict_on(run, known.applied[0])
    return found, outcome_of_ledger(run, data, ledger, known, found) if seek_best else None
