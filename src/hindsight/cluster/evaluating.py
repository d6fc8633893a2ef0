"""Evaluation over files that workers read: each adds up the figures of its rows, and the sums are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import NoRowsError
from ..sources.opening import list_files
from ..training.evaluation import ModelRows, figures_from, learnt, tallied
from ..training.tallies import Slices

if TYPE_CHECKING:
    from ..training.figures import Evaluation
    from ..training.model import Model
    from .engine import Engine


def evaluate(
    model: Model, data: Any, *, client: Any = None, engine: Engine | None = None, target: str | None = None,
    weight: Any = None, format: str | None = None,
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
    engine : Engine, default None
        Where to work instead of a Dask cluster.
    target, weight, format
        As in `hindsight.evaluate`.

    Returns
    -------
    Evaluation
        The figures that need no single row: without AUC, decomposition and calibration.
    """
    if engine is None:
        from .dask_engine import Dask

        engine = Dask(client)
    works = [(tally_of, (model, path, target, weight, format)) for path in list_files(data, format)]
    found = [tally for tally in engine.gather(engine.map(works)) if tally is not None]
    if not found:
        raise ValueError("there is no row with a weight above 0")
    for other in found[1:]:
        found[0].join(other)
    return figures_from(found[0], learnt(model), None, Slices())


def tally_of(model: Model, path: str, target: str | None, weight: Any, form: str | None) -> Any:
    """Return the sums over the rows of a file; None where it has none."""
    try:
        return tallied(ModelRows(model, path, None, target, weight, form), None, True, learnt(model), Slices())
    except NoRowsError:
        return None
