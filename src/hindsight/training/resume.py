"""A model that goes on learning, exactly as if all rows had come in one stream."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ..errors import ModelError
from ..storage.fields import Count, FiniteVector, check_value
from ..storage.registry import want
from .plan import Plan
from .prepare import check_preparation
from .state import LearntPart, OrderSums, TrainingState

if TYPE_CHECKING:
    from .model import Model


class ModelProgress(TypedDict):
    """How far a model has got."""

    mistakes: Count
    constant: FiniteVector
    order: OrderSums
    rows: Count
    rejected: Count
    parts: list[LearntPart]


# The settings that are of the rows, not of the model.
OF_ROWS: dict[str, Any] = {"limit": None, "sample": None, "shuffle": False, "seed": 0, "passes": 1}


def plan_after(model: Model, data: Any, **rows: Any) -> Plan:
    """The plan of a model over further rows.

    Parameters
    ----------
    model : Model
        A model that `hindsight learn --save` or `hindsight.learn` made.
    data : object
        The rows: anything that `hindsight.open_source` reads.
    **rows
        Which of them to take: `limit`, `sample`, `shuffle` and `seed` of a `Plan`; and `format` and `rejects` of
        `hindsight.open_source`.

    Returns
    -------
    Plan

    Raises
    ------
    ModelError
        If the model was made in another way, or does not say how far it has got.
    """
    settings = getattr(model, "settings", {})
    if "learners" not in settings:
        raise ModelError("was not made by `hindsight learn`: an estimator goes on by its own partial_fit, in Python")
    check_progress(model)
    reading = {"format": rows.pop("format", None), "rejects": rows.pop("rejects", False)}
    return Plan.from_settings(
        settings | OF_ROWS | rows | {"data": None, "reading": dict(settings["reading"]) | reading}, data
    )


def check_progress(model: Model) -> dict[str, Any]:
    """How far a model has got; a ModelError where that is not told as it must be."""
    made: Any = model.progress
    check_value("what the model says of how far it has got", made, ModelProgress)
    want(
        made["constant"].size == (3 if model.labels is None else len(model.labels)), "there must be sums of each label"
    )
    return dict(made)


def state_after(model: Model, plan: Plan) -> TrainingState:
    """The state of training after the rows that a model learnt from, before those of a plan.

    Parameters
    ----------
    model : Model
        The model, which stays as it is.
    plan : Plan
        What `plan_after` returned.

    Returns
    -------
    TrainingState
    """
    prepared, made = check_preparation(model), check_progress(model)
    return TrainingState(
        plan,
        [copy.deepcopy(model.runs)],
        model.labels,
        prepared["scale"],
        prepared["state"],
        [made["mistakes"]],
        np.array(made["constant"]),
        rows_done=made["rows"],
        rejected=made["rejected"],
        order=np.array(made["order"]),
        before=list(made["parts"]),
    )


def all_rows_of(state: TrainingState) -> Plan:
    """The plan over the rows of all parts, in their order.

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
