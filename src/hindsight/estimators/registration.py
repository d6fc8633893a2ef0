"""Estimators as files know them: by their public names, with parameters and runs that fit together."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..storage.registry import PACKAGE, storable, want

TEMPORARY = ("_lock", "_ones", "_row", "_swift", "_places")  # attributes that are made again when they are needed


def register_estimator(cls: type) -> None:
    """Let estimators of a class of this package be saved; a class of user code registers itself, with `storable`."""
    if cls.__module__.startswith(f"{PACKAGE}."):
        storable(cls, check=partial(check_estimator, cls), where=PACKAGE, omit=TEMPORARY, file="estimator")


def check_estimator(cls: Any, fields: dict[str, Any]) -> None:
    """Refuse the fields of a saved estimator that lack a parameter, or whose runs do not fit its features."""
    missing = [name for name in cls().get_params(deep=False) if name not in fields]
    want(not missing, f"the parameter `{missing[0] if missing else ''}` of {cls.__name__} is missing")
    runs, features = fields.get("runs_", []), fields.get("n_features_in_")
    known = isinstance(runs, list) and all(hasattr(run, "features") and hasattr(run, "bias") for run in runs)
    want(known, "`runs_` must be a list of runs")
    for run in runs:
        fits = type(features) is int and 0 < features <= run.features and run.bias == runs[0].bias
        want(fits, f"`n_features_in_` is {features!r:.40}, but a run has {run.features} features")
