"""Scores and densities over partitions, from figures, pools and sufficient statistics that add up."""

from __future__ import annotations

import copy
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.gradient_descent import mean_loss
from ..batch.isotron import LearntLink, target_sums
from ..errors import NoRowsError
from ..kernels.losses import Square
from ..rows.labels import encode_labels
from ..sources.opening import list_files
from ..training.evaluation import ModelRows, figures_from, tallied
from ..training.evaluation import learnt as learnt_by
from ..training.tallies import Slices
from .blocks import Block, View
from .engine import Engine
from .isotron import ClusterProblem
from .rows import ClusterRows

if TYPE_CHECKING:
    from ..batch.isotonic import Pools
    from ..training.figures import Evaluation
    from ..training.model import Model


@dataclass(frozen=True)
class Corp:
    """The decomposition of a mean squared error: score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    rounds : int
        Rows with weight.
    score, miscalibration, discrimination, uncertainty, mean : float
        As in `hindsight.forecast.reliability`; `mean` is the mean outcome.
    pools : Pools
        The levels of the recalibrated forecast.
    """

    rounds: int
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    mean: float
    pools: Pools


def corp(model: Any, rows: ClusterRows) -> Corp:
    """Return the CORP decomposition of the predictions of a model for rows in partitions.

    Parameters
    ----------
    model : estimator
        A fitted regressor, or a classifier of two classes with `predict_proba`.
    rows : ClusterRows
        The rows.

    Returns
    -------
    Corp
    """
    engine = copy.copy(rows.engine)
    engine.change(forecasts_of, [model] * len(engine.blocks))
    forecasts = ClusterRows(engine)
    as_they_are = np.ones(1)
    problem = ClusterProblem(forecasts, View(), LearntLink(math.inf, 1.0), 1.0, False)
    again, measured = problem.round(as_they_are, 1), problem.measured
    score = float(problem.table.sum(mean_loss, Square(2.0), as_they_are, measured.weight))
    mean = float(problem.table.sum(target_sums, 0.0)[0]) / measured.weight
    spread = problem.target_variance()
    link = problem.learnt(again.link)
    return Corp(measured.counted, score, score - again.loss, spread - again.loss, spread, mean, link)


def forecasts_of(block: Block, model: Any) -> Block:
    """Return the forecasts of a block as its only feature, with its outcomes and weights."""
    made = list[Any]()
    if hasattr(model, "classes_"):
        if len(model.classes_) != 2:
            raise ValueError(f"the decomposition is for two classes, the model has {len(model.classes_)}")
        block.over(lambda X, y, weight: made.append(model.predict_proba(X)[:, 1]))
        y = encode_labels(block.y, model.classes_).astype(np.float64)
    else:
        block.over(lambda X, y, weight: made.append(model.predict(X)))
        y = block.y.astype(np.float64)
    p = np.concatenate(made).astype(np.float64)[:, None]
    return Block(block.origin, p, y, block.weight, ["forecast"])


def density(family: Any, rows: ClusterRows) -> Any:
    """Fit a density to the features of all rows, by adding up the sufficient statistics of partitions.

    Parameters
    ----------
    family : Density
        An unfitted density of `hindsight.density` with one column per feature.
    rows : ClusterRows
        Dense rows, without weights.

    Returns
    -------
    Density
    """
    if rows.sparse or rows.weighted:
        raise ValueError("densities are learnt from dense rows without weights")
    return rows.engine.reduce(learn_density, family, add=operator.add)


def learn_density(block: Block, family: Any) -> Any:
    """Return the density fitted to the rows of a block."""
    out = family.fresh()
    block.over(lambda X, y, weight: out.update(X))
    return out


def evaluate(
    model: Model, data: Any, *, client: Any = None, target: str | None = None, weight: Any = None,
    format: str | None = None,
) -> Evaluation:  # fmt: skip
    """Score the predictions of a model on files that have targets, as `hindsight.evaluate` with ``light=True`` does.

    Parameters
    ----------
    model : Model
        What `hindsight.load` returned.
    data : str or list of str
        A folder of files, or files; every file is read by one worker.
    client : distributed.Client, default None
        The cluster; None takes the current client.
    target, weight, format
        As in `hindsight.evaluate`.

    Returns
    -------
    Evaluation
        The figures that can be computed from sums: without AUC, decomposition and calibration.
    """
    engine = Engine.of(client)
    works = [(tally_of, (model, path, target, weight, format)) for path in list_files(data, format)]
    found = [tally for tally in engine.gather(engine.map(works)) if tally is not None]
    if not found:
        raise ValueError("there is no row with a weight above 0")
    for other in found[1:]:
        found[0].join(other)
    return figures_from(found[0], learnt_by(model), None, Slices())


def tally_of(model: Model, path: str, target: str | None, weight: Any, form: str | None) -> Any:
    """Return the sums over the rows of a file; None if it has no rows."""
    try:
        return tallied(ModelRows(model, path, None, target, weight, form), None, True, learnt_by(model), Slices())
    except NoRowsError:
        return None
