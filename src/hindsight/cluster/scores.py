"""Forecasts and densities over partitions, from pools and sufficient statistics that add up."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.isotonic import interpolate
from ..rows.labels import encode_labels
from .pools import choose_cuts, split
from .rounds import merged, pool_ranges, shared_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..batch.isotonic import Pools
    from ..kernels.floats import Floats
    from .blocks import Block
    from .pools import Points
    from .rows import ClusterRows


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
    engine, leaders = rows.engine, rows.engine.leaders()
    ends = engine.each(forecast_sample, model, 512)
    cuts = choose_cuts(np.concatenate(ends), min(64, len(engine.blocks)))
    pools, groups = [], range(len(engine.groups))
    for i, mine in enumerate(shared_out(cuts.size + 1, len(leaders))):
        pieces = [engine.submit(forecasts_in, engine.held(j), model, cuts, mine, group=j) for j in groups]
        pools.append(engine.submit(pool_ranges, pieces, group=leaders[i]))
    link = merged(engine.gather(pools))
    count, weight, total, score, best = engine.reduce(forecast_sums, model, link.knots())
    mean = float(total / weight)
    spread = float(engine.reduce(outcome_spread, model, mean) / weight)
    score, best = float(score / weight), float(best / weight)
    return Corp(int(count), score, score - best, spread - best, spread, mean, link)


def outcomes(block: Block, model: Any) -> tuple[Floats, Floats, Floats]:
    """Return the forecasts of a block, its outcomes and its weights."""
    said = list[Any]()
    if hasattr(model, "classes_"):
        if len(model.classes_) != 2:
            raise ValueError(f"the decomposition is for two classes, the model has {len(model.classes_)}")
        block.over(lambda X, y, weight: said.append(model.predict_proba(X)[:, 1]))
        y = encode_labels(block.y, model.classes_).astype(np.float64)
    else:
        block.over(lambda X, y, weight: said.append(model.predict(X)))
        y = block.y.astype(np.float64)
    p = np.concatenate(said)
    c = np.ones(len(y)) if block.weight is None else block.weight
    return np.ascontiguousarray(p, np.float64), y, c


def kept_outcomes(block: Block, model: Any) -> tuple[Floats, Floats, Floats]:
    """Return `outcomes`, computed once for a model."""
    key = model.coef_.tobytes(), np.asarray(model.intercept_).tobytes()
    found: tuple[Floats, Floats, Floats] = block.keep("forecasts", key, lambda: outcomes(block, model))
    return found


def forecast_sample(block: Block, model: Any, count: int) -> Floats:
    """Return some forecasts."""
    p = kept_outcomes(block, model)[0]
    return p[np.unique(np.linspace(0, p.size - 1, min(p.size, count)).astype(np.int64))]


def forecasts_in(blocks: Sequence[Block], model: Any, cuts: Floats, ranges: range) -> list[list[Points]]:
    """Return forecasts, outcomes and weights of a group in some ranges: for each range, those of each block."""
    each = []
    for block in blocks:
        p, y, c = kept_outcomes(block, model)
        on = c > 0.0
        each.append(split((p[on], y[on], None if block.weight is None else c[on]), cuts))
    return [[points[r] for points in each] for r in ranges]


def forecast_sums(block: Block, model: Any, knots: tuple[Floats, Floats]) -> Floats:
    """Return the number of rows with weight, and sums of c, c y, c (p - y)^2 and c (recalibrated - y)^2."""
    p, y, c = kept_outcomes(block, model)
    again = interpolate(*knots, p)
    return np.array([np.count_nonzero(c), c.sum(), c @ y, c @ (p - y) ** 2, c @ (again - y) ** 2])


def outcome_spread(block: Block, model: Any, mean: float) -> Floats:
    """Return the sum of c (y - mean)^2."""
    _, y, c = kept_outcomes(block, model)
    return np.asarray(c @ (y - mean) ** 2)


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
