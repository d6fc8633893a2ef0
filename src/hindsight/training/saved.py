"""Saved models: opened from any file of ours, described, and as plain values for use elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formatting import _plain
from .plan import describe_learner

if TYPE_CHECKING:
    from .model import Model


def open_model(path: str) -> Model:
    """The model of a file, or the one inside a saved estimator.

    Parameters
    ----------
    path : str
        A file that `Model.save`, or `save` of an estimator, wrote.

    Returns
    -------
    Model

    Raises
    ------
    ModelError
        If the file does not hold a model.
    ValueError
        If it holds an estimator that has no runs.
    """
    from ..storage.model import opened

    return model_of(path, *opened(path))


def model_of(path: str, found: Any, versions: dict[str, str]) -> Model:
    """What a file holds as a model; see `open_model`."""
    from .model import Model

    if isinstance(found, Model):
        return found
    runs = getattr(found, "runs_", None)
    if not runs:
        raise ValueError(f"{path}: holds a {type(found).__name__} without runs: open it with hindsight.load in Python")
    features = found.n_features_in_
    for run in runs:  # rows given as dicts may have left room for names to come
        if run.features > features:
            run.resize(features)
    names = getattr(found, "feature_names_in_", None)
    if names is None:
        names = vars(found).get("_column")
    classes = getattr(found, "classes_", None)
    settings = {"estimator": type(found).__name__} | found.get_params(deep=False)
    return Model(
        runs,
        None if names is None else [str(name) for name in names],
        None if classes is None else [str(label) for label in classes],
        found.average,
        settings,
        certificate=getattr(found, "certificate_", None),
        versions=versions,
    )


def describe_model(model: Model) -> str:
    """The learner of a model, and which weights predict, in one line."""
    mean = "" if model.average is None else f", mean of the weights {model.average} each step"
    return describe_learner(model.learner) + mean


def link_of(model: Model) -> str:
    """The name of the link through which the loss of a model predicts; "identity" where it says nothing."""
    return getattr(model.learner.loss, "link", None) or "identity"


def has_probability(model: Model) -> bool:
    """Whether a margin gives, through the link, the probability of the second of two labels."""
    return has_probabilities(model) and len(model.runs) == 1


def has_probabilities(model: Model) -> bool:
    """Whether margins give, through the link, probabilities of the labels; those of several are scaled to sum to 1."""
    return model.labels is not None and model.learner.targets == "unit" and link_of(model) != "identity"


def feature_name(model: Model, j: int) -> str:
    """The name of feature j."""
    return f"column {j}" if model.names is None else model.names[j]


def to_portable(model: Model) -> dict[str, Any]:
    """A model as plain values: prediction = link(weights . x + intercept), or the label that the margins give.

    Parameters
    ----------
    model : Model
        The model.

    Returns
    -------
    dict
        Numbers, text, lists and dicts, ready for JSON. Under "outputs" there is one entry per run with its weights by
        name, those that are 0 left out; "decide" says whether the prediction is a "value", the "sign" of the margin, or
        the "argmax" over the labels.
    """
    decide = "value"
    if model.labels is not None:
        decide = "sign" if len(model.runs) == 1 else "argmax"
    outputs = []
    for k, w in enumerate(model.weights.tolist()):
        outputs.append(
            {
                "label": None if model.labels is None else model.labels[k if len(model.runs) > 1 else 1],
                "intercept": w.pop() if model.intercept else 0.0,
                "weights": {feature_name(model, j): value for j, value in enumerate(w) if value != 0.0},
            }
        )
    found = {
        "format": "hindsight linear model",
        "version": 1,
        "learner": model.learner.name,
        "features": model.features,
        "link": link_of(model),
        "decide": decide,
        "labels": model.labels,
        "outputs": outputs,
        "preparation": model.preparation,
    }
    return dict(_plain(found))
