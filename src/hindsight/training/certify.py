"""Certificates of trained models, over rows that are read again or were kept during learning."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.best.clock import left, timed
from ..certificates.certificate import combined
from ..certificates.certify import certify_run
from ..certificates.families.adaptive import add_terms, in_ledger
from ..certificates.ledger import Ledger
from ..errors import ModelError
from ..online.panel import PanelRun
from ..rows.data import Data
from .plan import Plan
from .prepare import SMALL, Preparation, bytes_of, check_preparation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..certificates.certificate import Certificate, Certificates
    from ..online.run import Run
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
        Time limit in seconds for searches in hindsight, which then return the best u so far and its gap; None sets no
        limit. Reading the rows and replaying the run takes additional time.
    notify : callable, default None
        Called regularly with the name of the search and its relative gap so far.

    Returns
    -------
    Certificate or Certificates
        One certificate, or one per label if there are more than two labels.

    Raises
    ------
    ModelError
        If the model does not record how its rows were read.
    MismatchError
        If these are not the rows it was trained on.

    Examples
    --------
    >>> from hindsight.training.plan import choose_learners
    >>> from hindsight.training.session import learn_chunks
    >>> from hindsight.training.state import start
    >>> state = start(Plan("sample:diabetes", None, choose_learners(["widrow-hoff"], [0.1])))
    >>> for _ in learn_chunks(state):
    ...     pass
    >>> certify_model(state.to_model(), "sample:diabetes").verdict.value
    'HOLDS'
    """
    preparation = preparation_of(model, data)
    with timed(within, notify):
        return combined(certify_runs(preparation, model.runs))


def preparation_of(model: Model, data: Any) -> Preparation:
    """The preparation of a saved model, applied to these rows; a ModelError if the model does not record it."""
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
    """The certificates of each learner's runs, after all rows were learnt.

    All rows, including those of earlier parts, are read again unless they were kept; runs are replayed unless
    `followed` has their ledgers.
    """
    preparation = state.preparation
    if state.before:
        preparation = Preparation(all_rows_of(state), state.labels, state.scale, state.source_state)
    with timed(None, notify):
        return [certify_runs(preparation, runs, followed) for runs in state.runs]


def certify_runs(preparation: Preparation, runs: Sequence[Run], followed: Followed | None = None) -> list[Certificate]:
    """The certificates of one learner's runs, each with its label if there is one run per label."""
    labels = preparation.labels if preparation.labels is not None and len(runs) > 1 else [None] * len(runs)
    found: list[Certificate] = []
    kept = None if followed is None else followed.data(runs)
    for run, rows, label in zip(runs, preparation.data(runs) if kept is None else kept, labels, strict=True):
        with timed(left() / (len(runs) - len(found))):  # an equal share of the time that is left
            found.append(certify_run(run, rows, label=label, ledger=None if followed is None else ledger_of(run)))
        if isinstance(run, PanelRun):
            run.watcher = None  # later rows are not certified with these
    return found


def all_rows_of(state: TrainingState) -> Plan:
    """The plan for the rows of all parts, in order.

    Raises
    ------
    ValueError
        If a part was not read from a file.
    """
    parts = [*(part["data"] for part in state.before), state.plan.data]
    whole: list[str] = []
    for data in parts:
        paths = data if isinstance(data, (list, tuple)) else [data]
        if not all(isinstance(path, str) and path != "-" and not path.startswith("sample:") for path in paths):
            raise ValueError(f"{data!s:.80}: a certificate needs the rows of all parts again, from files")
        whole += paths
    if state.plan.shuffle or state.plan.sample is not None or state.plan.limit is not None:
        raise ValueError("a certificate of several parts needs all their rows in the order of the files")
    return Plan.from_settings(state.plan.settings() | {"data": None}, whole)


# ---------------------------------------------------------------- kept while it learns


class Followed:
    """What certificates need from a session: its rows if they are few, and ledgers of the runs that support one.

    Parameters
    ----------
    runs : sequence of sequence of Run
        The runs of each learner, before their first round.
    """

    def __init__(self, runs: Sequence[Sequence[Run]]) -> None:
        self.runs = list(itertools.chain(*runs))
        self.chunks: list[tuple[Any, list[np.ndarray], np.ndarray | None]] | None = []
        self.size = 0
        for run in self.runs:
            if isinstance(run, PanelRun) and all(m.learner.theorem is None or in_ledger(m) for m in run.members):
                run.watcher = Ledger(run, add_terms)

    def add(self, X: Any, targets: list[np.ndarray], weight: np.ndarray | None) -> None:
        """Keep rows that are about to be learnt; if there are too many, none are kept."""
        self.size += bytes_of(X)
        if self.size > SMALL:
            self.chunks = None
        if self.chunks is not None and X.shape[0]:
            self.chunks.append((X, targets, weight))

    def data(self, runs: Sequence[Run]) -> list[Data] | None:
        """The rows as played by these runs; None if they were not kept, or if dense rows gained columns."""
        width = max((X.shape[1] for X, _, _ in self.chunks or ()), default=0)
        for X, _, _ in self.chunks or ():
            if X.shape[1] < max(width, runs[0].features):
                if isinstance(X, np.ndarray):
                    return None
                X.resize((X.shape[0], max(width, runs[0].features)))
        if not self.chunks:
            return None
        at = [next(k for k, run in enumerate(self.runs) if run is mine) for mine in runs]
        return [
            Data.of_parts([(X, targets[k], weight) for X, targets, weight in self.chunks], run.bias)
            for k, run in zip(at, runs, strict=True)
        ]


def ledger_of(run: Run) -> Ledger | None:
    """The sums accumulated while a run learnt; None if they do not cover all of its rounds."""
    found = getattr(run, "watcher", None)
    return found if found is not None and found.rounds == run.rounds else None
