"""The estimators under test, found among the public names: a new one is tested without being listed."""

import inspect

from sklearn.base import BaseEstimator, is_classifier

import hindsight

PUBLIC = [
    kind
    for kind in (getattr(hindsight, name) for name in hindsight.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseEstimator)
]
ONLINE = [kind for kind in PUBLIC if hasattr(kind, "learn_one")]


def online(variants, features):
    """Each online estimator with each of its options in `variants` (by its name; the defaults if it has none).

    Where it can be told the names of its features, it is.
    """
    made = []
    for kind in ONLINE:
        parameter = inspect.signature(kind).parameters.get("features")
        named = {} if parameter is None or parameter.default is not None else {"features": features}
        made += [kind(**named | options) for options in variants.get(kind.__name__, [{}])]
    assert set(variants) <= {kind.__name__ for kind in ONLINE}
    return made


def regressors(models):
    return [model for model in models if not is_classifier(model)]


def classifiers(models):
    return [model for model in models if is_classifier(model)]
