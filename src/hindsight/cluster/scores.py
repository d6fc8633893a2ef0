"""Forecasts and densities over partitions, from pools and sufficient statistics that add up."""

from __future__ import annotations

import copy
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.gradient_descent import mean_loss
from ..batch.isotron import LearntLink, target_sums
from ..kernels.losses import Square
from ..rows.labels import encode_labels
from .blocks import Block, Targets
from .rounds import ClusterProblem
from .rows import ClusterRows

if TYPE_CHECKING:
    from ..batch.isotonic import Pools


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
    """Return the CORP decomposition of what a model predicts for rows in partitions.

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
    problem = ClusterProblem(forecasts, Targets(), LearntLink(math.inf, 1.0), 1.0, 0.0, False)
    again, measured = problem.round(as_they_are, 1), problem.measured
    score = float(problem.table.sum(mean_loss, Square(2.0), as_they_are, measured.weight))
    mean = float(problem.table.sum(target_sums, 0.0)[0]) / measured.weight
    spread = problem.target_variance()
    link = problem.learnt(again.link)
    return Corp(measured.counted, score, score - again.loss, spread - again.loss, spread, mean, link)


def forecasts_of(block: Block, model: Any) -> Block:
    """Return the forecasts of a block as its only feature, with its outcomes and weights."""
    said = list[Any]()
    if hasattr(model, "classes_"):
        if len(model.classes_) != 2:
            raise ValueError(f"the decomposition is for two classes, the model has {len(model.classes_)}")
        block.over(lambda X, y, weight: said.append(model.predict_proba(X)[:, 1]))
        y = encode_labels(block.y, model.classes_).astype(np.float64)
    else:
        block.over(lambda X, y, weight: said.append(model.predict(X)))
        y = block.y.astype(np.float64)
    p = np.concatenate(said).astype(np.float64)[:, None]
    return Block(block.origin, p, y, block.weight, ["forecast"])


def density(family: Any, rows: ClusterRows) -> Any:
    """Return a density that has learnt the features of all rows: the statistics of partitions add up.

    Parameters
    ----------
    family : Density
        A density of `hindsight.density` with one column per feature, before any row.
    rows : ClusterRows
        Dense rows, without weights.

    Returns
    -------
    Density
    """
    if rows.sparse or rows.weighted:
        raise ValueError("densities are learnt from dense rows without weights")
    return rows.engine.reduce(learnt, family, add=operator.add)


def learnt(block: Block, family: Any) -> Any:
    """Return the density of the rows of a block."""
    out = family.fresh()
    block.over(lambda X, y, weight: out.update(X))
    return out
