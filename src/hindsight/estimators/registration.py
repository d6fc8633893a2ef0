"""Estimators as files know them: by their public names, with parameters and features that are all there."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..storage.fields import conforms, is_count
from ..storage.registry import PACKAGE, storable, want

LATER = ("interval", "window", "features")  # parameters that files of earlier versions do not have
TEMPORARY = ("_lock", "_ones", "_row", "_swift", "_places")  # attributes that are made again when they are needed


def register_estimator(cls: type) -> None:
    """Let estimators of a class of this package be saved; a class of user code registers itself, with `storable`.

    What a fit leaves is checked by the ``_check_saved`` of the mixins that bring it.
    """
    if cls.__module__.startswith(f"{PACKAGE}."):
        storable(cls, check=partial(check_estimator, cls), where=PACKAGE, omit=TEMPORARY, file="estimator")


def check_estimator(cls: Any, fields: dict[str, Any]) -> None:
    """Refuse the fields of a saved estimator that lack a parameter, or whose features are not counted or not named."""
    parameters = cls().get_params(deep=False)
    for name in LATER:
        if name in parameters:
            fields.setdefault(name, parameters[name])
    missing = [name for name in parameters if name not in fields]
    want(not missing, f"the parameter `{missing[0] if missing else ''}` of {cls.__name__} is missing")
    features, names = fields.get("n_features_in_"), fields.get("feature_names_in_")
    counted = features is None or (is_count(features) and features > 0)
    want(counted, f"`n_features_in_` is {features!r:.40}, but must be a count above 0")
    if names is not None:
        known = isinstance(names, np.ndarray) and names.shape == (features,) and names.dtype.kind in "OU"
        want(known, "`feature_names_in_` must have one name per feature")
    want(conforms(fields.get("fit_intercept", True), bool | int), "`fit_intercept` must be true or false")
    if "certificate_" in fields:
        from ..certificates.certificate import Certificate, Certificates

        known = isinstance(fields["certificate_"], (Certificate, Certificates))
        want(known, "`certificate_` must be a certificate")


def check_runs(fields: dict[str, Any], kind: type) -> None:
    """Refuse runs that are not all of this class and alike, or that have no room for the features."""
    if "runs_" not in fields:
        return
    runs, features = fields["runs_"], fields.get("n_features_in_")
    known = isinstance(runs, list) and len(runs) > 0 and all(isinstance(run, kind) for run in runs)
    want(known, "`runs_` must be a list of runs")
    for run in runs:
        alike = (run.width, run.bias) == (runs[0].width, runs[0].bias)
        fits = type(features) is int and 0 < features <= run.features and alike
        want(fits, f"`n_features_in_` is {features!r:.40}, but a run has {run.features} features")
    classes = fields.get("classes_")
    counts = (1,) if classes is None else (1, classes.size) if classes.size <= 2 else (classes.size,)
    want(len(runs) in counts, f"`runs_` must have {counts[-1]} runs")
