"""Comparison of learners as forecasters, by their progressive predictions, each made before its row was learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..online.margins import each_mean
from .comparison import Comparison, compare

if TYPE_CHECKING:
    from collections.abc import Mapping


def progressive(model: Any, X: Any, y: Any, weight: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Predict each row before learning it, in one pass.

    A regressor predicts its mean. A binary classifier predicts the probability of ``classes_[1]`` if its loss gives one
    (logistic), otherwise 1 or 0 by the sign of its margin; the square loss then counts mistakes.

    Parameters
    ----------
    model : estimator
        An online learner of this package; a copy of it learns.
    X : array-like of shape (n_rows, n_features)
        The rows in order.
    y : array-like of shape (n_rows,)
        Their targets.
    weight : array-like of shape (n_rows,) or None, default None
        Importance of each row; None is 1.

    Returns
    -------
    forecasts, outcomes : ndarray of shape (n_rows,)
        The predictions, and the targets as numbers.

    Raises
    ------
    ValueError
        If the model makes several passes, does not keep margins, or has more than two classes.

    Examples
    --------
    >>> from hindsight import WidrowHoffRegressor
    >>> made, seen = progressive(WidrowHoffRegressor(0.5, fit_intercept=False), [[1.0], [1.0]], [1.0, 1.0])
    >>> made.round(3), seen
    (array([0.   , 0.333]), array([1., 1.]))
    """
    from sklearn.base import clone, is_classifier

    if getattr(model, "passes", 1) != 1:
        raise ValueError(f"passes must be 1, not {model.passes}: a later pass predicts rows that it has learnt")
    if "keep_margins" not in model.get_params(deep=False):
        raise ValueError(f"{type(model).__name__} keeps no margins, so its progressive predictions are not known")
    model = clone(model).set_params(keep_margins=True).fit(X, y, sample_weight=weight)
    if model.margins_.ndim != 1:
        raise ValueError(f"a comparison needs two classes, got {len(model.classes_)}")
    loss = model.runs_[0].learner.loss
    made = each_mean(loss, model.margins_)
    if not is_classifier(model):
        return made, np.asarray(y, np.float64)
    if loss.link != "logistic":
        made = (model.margins_ > 0.0).astype(np.float64)
    return made, (np.asarray(y) == model.classes_[1]).astype(np.float64)


def compare_learners(models: Mapping[str, Any], X: Any, y: Any, weight: Any = None, **options: Any) -> Comparison:
    """Compare learners on one stream by their predictions of each row before they learn it.

    These predictions are fixed before their outcomes, so the intervals of `compare` are valid for them.

    Parameters
    ----------
    models : mapping of str to estimator
        Online learners of this package by name, all classifiers or all regressors; copies of them learn, in one pass.
    X, y, weight
        As in `progressive`.
    **options
        Options of `compare`. Regressors use the quadratic loss and need `bounds` for a finding.

    Returns
    -------
    Comparison
        The comparison of the progressive predictions.

    Examples
    --------
    >>> from hindsight import DescentClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 5))
    >>> y = rng.random(3000) < 1 / (1 + np.exp(-X @ np.ones(5)))
    >>> models = {"slow": DescentClassifier(eta=0.001), "quick": DescentClassifier(eta=0.1)}
    >>> print(compare_learners(models, X, y, anytime=True).pairs[0].words)
    quick is closer to the truth than slow: difference 0.0575 in [0.04516, 0.06927], valid at every time
    """
    from sklearn.base import is_classifier

    kinds = {bool(is_classifier(model)) for model in models.values()}
    if len(kinds) != 1:
        raise ValueError("models must be at least two, all classifiers or all regressors")
    options.setdefault("loss", "square" if kinds == {True} else "quadratic")
    forecasts, outcomes = {}, None
    for name, model in models.items():
        forecasts[name], outcomes = progressive(model, X, y, weight)
    return compare(outcomes, forecasts, weight, **options)
