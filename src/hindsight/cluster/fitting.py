"""Fitting an estimator to rows in partitions: the model that one machine would fit."""

from __future__ import annotations

from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.gradient_descent import Descent
from ..batch.isotron import History
from ..batch.least_squares import Factor
from ..errors import ModelError
from ..estimators.gradient_descent_base import GradientDescent
from ..estimators.least_squares import LeastSquares
from ..estimators.rounds import RoundsMixin
from ..rows.checksum import RowChecksum
from ..rows.labels import run_count
from ..validation import number
from .blocks import Targets
from .rounds import ClusterProblem
from .rows import RunTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from .blocks import Block
    from .rows import ClusterRows


class Checkpoints:
    """The newest states of a fit in a folder, or none.

    Parameters
    ----------
    folder : str or None
        The folder; None keeps nothing.
    every : int
        Rounds between two checkpoints.
    settings : dict
        What the fit is of: a checkpoint of another one is refused.
    resume : bool
        Whether the newest one is where the fit goes on.
    """

    def __init__(self, folder: Any, every: int, settings: dict[str, Any], resume: bool) -> None:
        self.folder, self.every, self.settings, self.resume = folder, every, settings, resume

    def latest(self, kind: type) -> list[Any]:
        """Return the runs of the newest checkpoint; an empty list without one."""
        if self.folder is None or not self.resume:
            return []
        from ..storage import checkpoint

        state = checkpoint.latest(self.folder)
        if state is None:
            return []
        if state.get("settings") != self.settings or not all(isinstance(run, kind) for run in state["runs"]):
            raise ModelError(f"{self.folder}: the checkpoints are of another fit: other rows, or other parameters")
        return list(state["runs"])

    def write(self, runs: list[Any]) -> None:
        """Add a checkpoint."""
        from ..storage import checkpoint

        checkpoint.write(self.folder, {"settings": self.settings, "runs": runs})


def fit(
    model: Any, rows: ClusterRows, *, notify: Callable[[int, float], None] | None = None, checkpoint: Any = None,
    every: int = 10, resume: bool = True,
) -> Any:  # fmt: skip
    """Fit an estimator that learns from all rows at once to rows in partitions.

    The result is that of one machine: the same bits for any number of workers, and within 1e-12 or so of
    ``model.fit(X, y)``, whose sums are taken in another order. (Isotron's link jumps where two margins change places;
    margins of different rows that differ by rounding alone may.)

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

    Examples
    --------
    >>> from hindsight import LeastSquares
    >>> from hindsight.cluster import read
    >>> from hindsight.cluster.engine import Engine
    >>> parts = [(np.array([[0.0], [1.0]]), np.array([1.0, 3.0])), (np.array([[2.0]]), np.array([5.0]))]
    >>> fit(LeastSquares(), read(parts, "y", engine=Engine())).coef_.round(12)
    array([2.])
    """
    if every < 1:
        raise ValueError(f"every must be at least 1, got {every!r}")
    work = work_for(model)
    settings: dict[str, Any] = {}
    if checkpoint is not None:
        plain = (bool, int, float, str, type(None))
        settings = {k: v if isinstance(v, plain) else repr(v) for k, v in params(model)}
        settings |= {"model": type(model).__name__, "checksums": rows.engine.each(checksum_of)}
    kept = Checkpoints(checkpoint, every, settings, resume)
    with model._all_or_nothing():
        for name in [name for name in vars(model) if name.endswith("_")]:
            delattr(model, name)
        model.n_features_in_ = rows.features
        if rows.named:
            model.feature_names_in_ = np.array(rows.names, object)
        work(model, rows, notify, kept)
    return model


def work_for(model: Any) -> Callable[..., None]:
    """Return the function that fits an estimator, or refuse it."""
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


def checksum_of(block: Block) -> list[int]:
    """Return the checksum of the rows of a block as they were read."""
    read = RowChecksum()
    block.over(read.add)
    return read.counts


def params(model: Any) -> list[tuple[str, Any]]:
    """Return the parameters of an estimator that decide the result of one fit."""
    return [(k, v) for k, v in model.get_params().items() if k not in ("verbose", "warm_start")]


def _squares(model: LeastSquares, rows: ClusterRows, notify: Any, kept: Checkpoints) -> None:
    if rows.text:
        raise ValueError("the targets are text, but LeastSquares takes numbers")
    model._factor, model._iterated = rows.engine.reduce(factor, bool(model.fit_intercept), add=Factor.join), None
    loss = model.loss_
    if notify is not None:
        notify(1, loss)


def factor(block: Block, intercept: bool) -> Factor:
    """Return the factor of the rows of a block."""
    out = Factor(len(block.names), intercept)
    block.over(lambda X, y, weight: out.add(X, y, weight, block.names), block.y.astype(float, copy=False))
    return out.settle()


def targets_of_model(model: Any, rows: ClusterRows, kind: str) -> list[Targets]:
    """Return the targets of each run; a classifier's classes are noted."""
    if not hasattr(model, "_set_classes"):
        if rows.text:
            raise ValueError(f"the targets are text, but {type(model).__name__} takes numbers")
        return [Targets("real" if kind == "sign" else kind)]
    from sklearn.utils.multiclass import check_classification_targets

    labels = rows.labels()
    check_classification_targets(labels)
    model._set_classes(labels)
    return [Targets(kind, model.classes_, k) for k in range(run_count(len(model.classes_)))]


def _descent(model: GradientDescent, rows: ClusterRows, notify: Any, kept: Checkpoints) -> None:
    model._check()
    if model.batch != "full":
        raise ValueError("rows are drawn at random within one machine: take batch='full' on a cluster")
    plain = model._plain()
    if plain.targets == "sign" and not hasattr(model, "_set_classes"):
        raise ValueError(f"loss {model.loss!r} is for labels: use GradientDescentClassifier")
    each = targets_of_model(model, rows, plain.targets)
    tables: list[Any] = [RunTable(rows, targets, float(bool(model.fit_intercept))) for targets in each]
    runs = kept.latest(Descent) or model._begin(tables)
    for run, table in zip(runs, tables, strict=True):
        left = int(model.rounds) - run.rounds
        if left > 0 or not run.checksum:
            told = partial(_told, run, runs, int(model.rounds), model.tol or 0.0, notify, kept)
            run.play(table, left, stop=model.tol or 0.0, notify=told)
    model.runs_, model._setting = runs, model._settings()


def _told(run: Descent, runs: list[Descent], rounds: int, stop: float, notify: Any, kept: Checkpoints, _: int) -> None:
    """Tell of a round of a descent, and keep all of them after every so many, unless it is the last round."""
    if notify is not None:
        notify(run.rounds, run.values[-1])
    square = float(run.state.gradient @ run.state.gradient)
    if kept.folder is not None and run.rounds % kept.every == 0 and run.rounds < rounds and square > stop * stop:
        run.check_finite(f"round {run.rounds}: a weight is not finite")
        kept.write(runs)


def _rounds(model: Any, rows: ClusterRows, notify: Any, kept: Checkpoints) -> None:
    if not isinstance(model.rounds, (int, np.integer)) or isinstance(model.rounds, bool) or model.rounds < 1:
        raise ValueError(f"rounds must be a whole number, at least 1; got {model.rounds!r}")
    if model.held_out:
        raise ValueError("held_out is not for a cluster: the training loss picks the best round")
    each = targets_of_model(model, rows, "unit" if hasattr(model, "_set_classes") else "real")
    if not hasattr(model, "_set_classes"):
        offset, scale = 0.0, 1.0
        if getattr(model, "scale_y", False):
            offset, most = rows.target_range()
            scale = (most - offset) or 1.0
        model.y_offset_, model.y_scale_ = offset, scale
        each = [Targets("real", None, 0, offset, scale)]
    model.histories_, model._facts, model._rows = [], [], None

    def keep(t: int, history: Callable[[], History]) -> None:
        if kept.folder is not None and t % kept.every == 0 and t < int(model.rounds):
            kept.write([*model.histories_, history()])

    for targets, known in zip_longest(each, kept.latest(History)):
        model._play(problem_of(model, rows, targets), notify=notify, known=known, keep=keep)


def problem_of(model: Any, rows: ClusterRows, targets: Targets) -> ClusterProblem:
    """Return the problem of one run of an estimator that learns in rounds."""
    eta = None if model.eta is None else number("eta", model.eta, 0)
    unit = bool(getattr(model, "scale_x", False))
    return ClusterProblem(rows, targets, model._part(), eta, float(model._intercept), unit)
