"""Certificates of what was trained, over its rows read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..certificates.best.clock import left, timed
from ..certificates.certificate import combined
from ..certificates.certify import certify_run
from ..errors import ModelError
from ..online.panel import PanelRun
from .followed import ledger_of
from .plan import Plan
from .prepare import Preparation, check_preparation
from .resume import all_rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..certificates.certificate import Certificate, Certificates
    from ..online.run import Run
    from .followed import Followed
    from .model import Model
    from .state import TrainingState


def certify_model(
    model: Model, data: Any, *, within: float | None = None, notify: Callable[[str, float], None] | None = None
) -> Certificate | Certificates:
    """Certify a saved model over the rows it was trained on.

    Parameters
    ----------
    model : Model
        A model that `hindsight learn --save` wrote.
    data : object
        The rows it was trained on, in that order: anything that `hindsight.open_source` reads.
    within : float, default None
        Seconds after which searches in hindsight end with the best u so far and its gap; None sets no limit. Reading
        the rows and playing the run again comes on top.
    notify : callable, default None
        Called now and then with what is sought and its relative gap so far.

    Returns
    -------
    Certificate or Certificates
        One certificate per label where there are more than two.

    Raises
    ------
    ModelError
        If the model does not tell how its rows were read.
    MismatchError
        If these are not the rows it was trained on.

    Examples
    --------
    >>> from hindsight.training.plan import choose_learners
    >>> from hindsight.training.session import learn
    >>> from hindsight.training.state import start
    >>> state = start(Plan("sample:diabetes", None, choose_learners(["widrow-hoff"], [0.1])))
    >>> for _ in learn(state):
    ...     pass
    >>> certify_model(state.to_model(), "sample:diabetes").verdict.value
    'HOLDS'
    """
    preparation = preparation_of(model, data)
    with timed(within, notify):
        return combined(certify_runs(preparation, model.runs))


def preparation_of(model: Model, data: Any) -> Preparation:
    """How the rows of a saved model were prepared, over these; a ModelError where the model does not tell."""
    if not hasattr(model, "preparation"):
        raise ModelError("holds an estimator: certify it in Python, with its own certify(X, y)")
    if "learners" not in model.settings:
        raise ModelError("was not written by `learn --save`, so how its rows were read is not known")
    made = check_preparation(model)
    plan = Plan.from_settings(model.settings, data)
    if plan.classify() != (model.labels is not None):
        raise ModelError("has labels where its learner takes numbers, or none where it needs them")
    return Preparation(plan, model.labels, made["scale"], made["state"])


def certify_state(
    state: TrainingState, notify: Callable[[str, float], None] | None = None, followed: Followed | None = None
) -> list[list[Certificate]]:
    """For each learner the certificates of its runs, once all rows were learnt.

    Rows are read again, those before as well, unless they were kept; runs are played again unless they were followed.
    """
    preparation = state.preparation
    if state.before:
        preparation = Preparation(all_rows_of(state), state.labels, state.scale, state.source_state)
    with timed(None, notify):
        return [certify_runs(preparation, runs, followed) for runs in state.runs]


def certify_runs(preparation: Preparation, runs: Sequence[Run], followed: Followed | None = None) -> list[Certificate]:
    """The certificates of the runs of one learner, each with its label where there is one run per label."""
    labels = preparation.labels if preparation.labels is not None and len(runs) > 1 else [None] * len(runs)
    found: list[Certificate] = []
    kept = None if followed is None else followed.data(runs)
    for run, rows, label in zip(runs, preparation.data(runs) if kept is None else kept, labels, strict=True):
        with timed(left() / (len(runs) - len(found))):  # an equal share of the time that is left
            found.append(certify_run(run, rows, label=label, ledger=None if followed is None else ledger_of(run)))
        if isinstance(run, PanelRun):
            run.watcher = None  # later rows are not certified with these
    return found
