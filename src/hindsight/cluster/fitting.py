"""Fitting an estimator to rows in partitions, with the same result as on one machine, and its certificate."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.gradient_descent import Descent
from ..batch.isotron import History
from ..batch.least_squares import Factor
from ..certificates.certificate import combined
from ..certificates.families.descent import certify_descent
from ..certificates.families.isotron import certify_rounds
from ..errors import MismatchError, ModelError
from ..estimators.gradient_descent import GradientDescent
from ..estimators.least_squares import LeastSquares
from ..estimators.rounds import RoundsMixin
from ..rows.labels import run_count
from ..storage import checkpoint
from ..validation import number, whole
from .blocks import View, checksum_of, factor
from .isotron import ClusterProblem
from .rows import RunTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..certificates.certificate import Certificate, Certificates
    from .rows import ClusterRows


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a fit in a folder, if one is given.

    Parameters
    ----------
    folder : str or None
        The folder; None keeps nothing.
    every : int
        Rounds between two checkpoints.
    settings : dict
        The settings of the fit; a checkpoint with other settings is refused.
    resume : bool
        Whether to resume from the newest checkpoint.
    """

    folder: Any
    every: int
    settings: dict[str, Any]
    resume: bool

    def latest(self, kind: type) -> list[Any]:
        """Return the runs of the newest checkpoint; an empty list without one."""
        state = checkpoint.latest(self.folder) if self.folder is not None and self.resume else None
        if state is None:
            return []
        if state.get("settings") != self.settings or not all(isinstance(run, kind) for run in state["runs"]):
            raise ModelError(f"{self.folder}: the checkpoints are of another fit: other rows, or other parameters")
        return list(state["runs"])

    def write(self, done: int, rounds: int, runs: Callable[[], list[Any]]) -> None:
        """Add a checkpoint after `done` of `rounds` rounds, if one is due."""
        if self.folder is not None and done % self.every == 0 and done < rounds:
            checkpoint.write(self.folder, {"settings": self.settings, "runs": runs()})


def fit(
    model: Any, rows: ClusterRows, *, notify: Callable[[int, float], None] | None = None, checkpoint: Any = None,
    every: int = 10, resume: bool = True,
) -> Any:  # fmt: skip
    """Fit an estimator that learns from all rows at once to rows in partitions.

    The result has the same bits for any number of workers, and is within about 1e-12 of ``model.fit(X, y)`` on one
    machine, which sums in another order. (Isotron's link jumps where two margins change places, which may happen if
    margins of different rows differ only by rounding.)

    Parameters
    ----------
    model : estimator
        GradientDescentRegressor or GradientDescentClassifier with ``batch="full"``, GLMtronBatchRegressor,
        IsotronRegressor or IsotronClassifier without `lipschitz` and `held_out`, or LeastSquares.
    rows : ClusterRows
        What `read` returned.
    notify : callable, default None
        Called after each round with its number, from 1, and its loss.
    checkpoint : path-like, default None
        A folder for checkpoints.
    every : int, default 10
        Rounds between two checkpoints.
    resume : bool, default True
        Whether to resume from the newest checkpoint in that folder, if there is one.

    Returns
    -------
    estimator
        The same object, fitted.
    """
    if every < 1:
        raise ValueError(f"every must be at least 1, got {every!r}")
    work = work_for(model)
    settings: dict[str, Any] = {}
    if checkpoint is not None:
        plain = (bool, int, float, str, type(None))
        given = {k: v for k, v in model.get_params().items() if k not in ("verbose", "warm_start")}
        settings = {k: v if isinstance(v, plain) else repr(v) for k, v in given.items()}
        settings |= {"model": type(model).__name__, "checksums": rows.engine.each(checksum_of)}
    kept = Checkpoints(checkpoint, every, settings, resume)
    with begun(model, rows):
        work(model, rows, notify or (lambda t, loss: None), kept)
    return model


@contextmanager
def begun(model: Any, rows: ClusterRows) -> Iterator[None]:
    """Begin a fit of an estimator to these rows; if the fit fails, the estimator is unchanged."""
    with model._all_or_nothing():
        model._forget_fit()
        model.n_features_in_ = rows.features
        if rows.named:
            model.feature_names_in_ = np.array(rows.names, object)
        yield


def work_for(model: Any) -> Callable[..., None]:
    """Return the function that fits an estimator; an error if it cannot be fitted on a cluster."""
    if isinstance(model, LeastSquares):
        return _squares
    if isinstance(model, GradientDescent):
        return _descent
    if isinstance(model, RoundsMixin):
        return _rounds
    raise ValueError(
        f"{type(model).__name__} learns row by row: cluster.mix averages such learners over shards; cluster.fit is for "
        "LeastSquares, gradient descent, GLM-tron in batches, and Isotron"
    )


def views_of(model: Any, rows: ClusterRows, kind: str, fresh: bool = True) -> list[View]:
    """Return the view of the rows for each run; a fresh fit records the classes or range of y, others must match."""
    in_rounds, bias = isinstance(model, RoundsMixin), float(model._intercept)
    if not hasattr(model, "_set_classes"):
        if rows.text:
            raise ValueError(f"the targets are text, but {type(model).__name__} takes numbers")
        if not in_rounds:
            return [View("real" if kind == "sign" else kind, bias=bias)]
        if fresh:
            model.y_offset_, model.y_scale_ = 0.0, 1.0
            if getattr(model, "scale_y", False):
                model.y_offset_, most = rows.target_range()
                model.y_scale_ = (most - model.y_offset_) or 1.0
        return [View("real", None, 0, model.y_offset_, model.y_scale_, bias)]
    labels = rows.labels()
    if fresh:
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(labels)
        model._set_classes(labels)
    elif not np.array_equal(model.classes_, labels):
        raise MismatchError(f"the model has other classes than these rows: {model.classes_.tolist()}")
    classes = tuple(model.classes_.tolist())
    return [View(kind, classes, k, bias=bias) for k in range(run_count(len(classes)))]


def kind_of(model: Any) -> str:
    """Return the kind of targets of an estimator that learns in rounds."""
    return str(model._plain().targets) if isinstance(model, GradientDescent) else "unit"


def _squares(model: LeastSquares, rows: ClusterRows, notify: Callable[[int, float], None], kept: Checkpoints) -> None:
    if rows.text:
        raise ValueError("the targets are text, but LeastSquares takes numbers")
    model._factor, model._iterated = rows.engine.reduce(factor, bool(model.fit_intercept), add=Factor.join), None
    notify(1, model.loss_)


def _descent(
    model: GradientDescent, rows: ClusterRows, notify: Callable[[int, float], None], kept: Checkpoints
) -> None:
    model._check()
    if model.batch != "full":
        raise ValueError("rows are drawn at random within one machine: take batch='full' on a cluster")
    if kind_of(model) == "sign" and not hasattr(model, "_set_classes"):
        raise ValueError(f"loss {model.loss!r} is for labels: use GradientDescentClassifier")
    rounds, stop = int(model.rounds), model.tol or 0.0
    tables: list[Any] = [RunTable(rows, view) for view in views_of(model, rows, kind_of(model))]
    runs = kept.latest(Descent) or model._begin(tables)

    def note(run: Descent, _: int) -> None:
        def finite() -> list[Descent]:
            run.check_finite(f"round {run.rounds}: a weight is not finite")
            return runs

        notify(run.rounds, run.values[-1])
        if run.state.gradient @ run.state.gradient > stop * stop:
            kept.write(run.rounds, rounds, finite)

    for run, table in zip(runs, tables, strict=True):
        left = rounds - run.rounds
        if left > 0 or not run.known_by:
            run.play(table, left, stop=stop, notify=partial(note, run))
    model.runs_, model._setting = runs, model._settings()


def _rounds(model: Any, rows: ClusterRows, notify: Callable[[int, float], None], kept: Checkpoints) -> None:
    rounds = whole("rounds", model.rounds)
    if model.held_out:
        raise ValueError("held_out is not for a cluster: the training loss picks the best round")
    views = views_of(model, rows, kind_of(model))
    model.histories_, model._facts, model._rows = [], [], None

    def keep(t: int, history: Callable[[], History]) -> None:
        kept.write(t, rounds, lambda: [*model.histories_, history()])

    for view, known in zip_longest(views, kept.latest(History)):
        model._play(problem_of(model, rows, view), notify=notify, known=known, keep=keep)


def problem_of(model: Any, rows: ClusterRows, view: View) -> Any:
    """Return the problem of one run of an estimator that learns in rounds."""
    eta = None if model.eta is None else number("eta", model.eta, 0)
    unit = bool(getattr(model, "scale_x", False))
    return ClusterProblem(rows, view, model._part(), eta, unit)


def certify(model: Any, rows: ClusterRows, *, u: Any = None) -> Certificate | Certificates:
    """Return the certificate of a model that `fit` has fitted to these rows.

    Parameters
    ----------
    model : estimator
        Gradient descent, GLM-tron in batches, or Isotron.
    rows : ClusterRows
        The rows it was fitted to.
    u : array_like, default None
        A comparator to use instead of the best in hindsight, with the intercept's weight last.

    Returns
    -------
    Certificate or Certificates
        One certificate; for one-vs-rest one per class.

    Raises
    ------
    MismatchError
        If these are not the rows of the model.
    """
    if not isinstance(model, (GradientDescent, RoundsMixin)):
        raise ValueError(f"{type(model).__name__} has no certificate over partitions")

    def of_run(k: int, view: View, label: str | None) -> Certificate:
        if isinstance(model, GradientDescent):
            table: Any = RunTable(rows, replace(view, bias=model.runs_[k].bias))
            return certify_descent(model.runs_[k], table, model.output, u=u, label=label)
        return certify_rounds(problem_of(model, rows, view), model.histories_[k], u=u, label=label)

    views = views_of(model, rows, kind_of(model), fresh=False)
    return combined([of_run(k, *one) for k, one in enumerate(zip(views, model._run_labels(), strict=True))])
