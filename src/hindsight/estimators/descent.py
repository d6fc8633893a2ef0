"""Online gradient descent and exponentiated gradient on any loss of the table."""

from __future__ import annotations

from typing import Any

from ..online.learners import Learner, descent
from .mixins import LogisticProbabilityMixin, SetsMixin
from .online_classifier import OnlineClassifier
from .online_regressor import OnlineRegressor


class DescentRegressor(OnlineRegressor):
    """Regression by online gradient descent, or by exponentiated gradient, on a general loss.

    A dual vector steps against the slope of the loss, theta -= eta loss'(w.x, y) x, and the geometry gives the
    weights: w = theta, or w_i proportional to e^theta_i. The slope is that at the new weights, so that no rate
    overshoots; at a constant rate in the Euclidean geometry the total loss is then at most that of any u plus
    |u - w_1|^2/(2 eta) and a price that is measured. The explicit step, with the slope at the old weights, promises for
    every u and with the gradients g_t that were met a total loss of at most that of u plus D(u, w_1)/eta + (eta/2) sum
    |g_t|*^2, where D is the divergence of the geometry and |.|* its dual norm [1]_, [2]_.

    Parameters
    ----------
    loss : {"square", "absolute", "quantile", "huber", "logistic", "poisson"}, default="square"
        The loss; "logistic" takes targets in [0, 1] and predicts through the logistic link, "poisson" takes counts (at
        least 0) and predicts their mean, e^(w.x).
    geometry : {"euclidean", "simplex", "balanced", "scale-free"}, default="euclidean"
        Where the weights live: anywhere, with additive steps; or, with multiplicative steps, on the simplex or signed
        with L1 norm below `radius`. In "scale-free" each feature is measured by its largest size so far.
    eta : float, default=0.1
        Learning rate, above 0.
    update : {"explicit", "implicit"}, default="implicit"
        Whether the slope of the loss is taken at the old weights or at the new ones.
    radius : float, default=1.0
        Sum of the weights on the simplex, or L1 norm of the signed ones.
    l1 : float, default=0.0
        The penalty l1 |w|_1 of each round, in the Euclidean geometry: steps are then proximal, on loss and penalty, and
        make weights exactly 0. The intercept is not penalised.
    l2 : float, default=0.0
        The penalty l2/2 |w|^2 of each round, likewise.
    quantile : float, default=None
        Of the loss "quantile" which to predict, between 0 and 1; None is 0.5.
    delta : float, default=None
        Of the loss "huber" from where on an error counts linearly, above 0; None is 1.
    features : sequence of hashable, default=None
        Names of the features, needed before dicts are learnt one at a time in a multiplicative
        geometry.
    power : float, default=0.0
        Exponent of the rates ``eta * t**-power`` in round t; 0 keeps them constant.
    rates : array-like of shape (n_rounds,), default=None
        Rates given one per round, instead of `eta` and `power`.
    average : {"before", "after"} or None, default=None
        What predicts: None the last weights, "before" the mean of w_1, ..., w_T, "after" that of w_2, ..., w_(T+1).
    fit_intercept : bool, default=True
        Whether a constant coordinate 1 joins every row; it counts in the norms.
    passes : int, default=1
        How many times `fit` goes through the rows, in the order given.
    start : array-like of shape (n_weights,), default=None
        The weights w_1, the intercept's last; None is 0, or equal weights on the simplex.
    keep_margins : bool, default=False
        Whether to keep the margin of each row before its update, as ``margins_``.
    interval : float, default=None
        The part of rows that `predict_interval` is to cover, between 0 and 1; None makes no intervals.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Weights of the features.
    intercept_ : float
        Weight of the constant coordinate; 0 without one.
    facts_ : Facts
        What was counted and summed over the rounds so far.
    margins_ : ndarray of shape (n_rows,)
        Margins of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``; dropped when more rows are learnt.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the rows had names.

    References
    ----------
    .. [1] M. Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent", ICML 2003.
    .. [2] J. Kivinen and M. K. Warmuth, "Exponentiated gradient versus gradient descent for linear predictors",
       Information and Computation 132(1), 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight import DescentRegressor
    >>> DescentRegressor("absolute", eta=1.0, fit_intercept=False).fit(np.eye(2), [3.0, -2.0]).coef_
    array([ 1., -1.])
    """

    def __init__(
        self, loss: str = "square", geometry: str = "euclidean", eta: float = 0.1, update: str = "implicit", *,
        radius: float = 1.0, l1: float = 0.0, l2: float = 0.0, quantile: float | None = None,
        delta: float | None = None, features: Any = None,
        power: float = 0.0, rates: Any = None,
        average: str | None = None, fit_intercept: bool = True, passes: int = 1, start: Any = None,
        keep_margins: bool = False, interval: float | None = None,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _learner(self) -> Learner:
        learner = descent(
            self.loss, self.geometry, self.eta, self.update, self.radius, self.power, self.l1, self.l2, self.quantile,
            self.delta,
        )  # fmt: skip
        if learner.targets == "sign":
            raise ValueError(f"loss {self.loss!r} is for labels: use DescentClassifier")
        return learner


class DescentClassifier(SetsMixin, LogisticProbabilityMixin, OnlineClassifier):
    """Classification by online gradient descent, or by exponentiated gradient, on a general loss.

    A dual vector steps against the slope of the loss, theta -= eta loss'(w.x, y) x, and the geometry gives the
    weights: w = theta, or w_i proportional to e^theta_i. The slope is that at the new weights, so that no rate
    overshoots; at a constant rate in the Euclidean geometry the total loss is then at most that of any u plus
    |u - w_1|^2/(2 eta) and a price that is measured. The explicit step, with the slope at the old weights, promises for
    every u and with the gradients g_t that were met a total loss of at most that of u plus D(u, w_1)/eta + (eta/2) sum
    |g_t|*^2, where D is the divergence of the geometry and |.|* its dual norm [1]_, [2]_.

    Two classes share one run, in which ``classes_[1]`` is positive; of more classes each has a run against the rest.
    The loss of the perceptron with ``eta=1`` takes the steps of `PerceptronClassifier`.

    Parameters
    ----------
    loss : {"logistic", "hinge", "perceptron", "square", "absolute"}, default="logistic"
        The loss; "logistic" also gives probabilities.
    geometry : {"euclidean", "simplex", "balanced", "scale-free"}, default="euclidean"
        Where the weights live: anywhere, with additive steps; or, with multiplicative steps, on the simplex or signed
        with L1 norm below `radius`. In "scale-free" each feature is measured by its largest size so far.
    eta : float, default=0.1
        Learning rate, above 0.
    update : {"explicit", "implicit"}, default="implicit"
        Whether the slope of the loss is taken at the old weights or at the new ones.
    radius : float, default=1.0
        Sum of the weights on the simplex, or L1 norm of the signed ones.
    l1 : float, default=0.0
        The penalty l1 |w|_1 of each round, in the Euclidean geometry: steps are then proximal, on loss and penalty, and
        make weights exactly 0. The intercept is not penalised.
    l2 : float, default=0.0
        The penalty l2/2 |w|^2 of each round, likewise.
    class_weight : {"balanced"} or dict, default=None
        Weights of classes, which multiply those of their rows: "balanced" for n/(K n_k), of all rows in `fit`, and of
        the rows so far where they come later or one by one; or a dict, 1 for classes that it has not.
    features : sequence of hashable, default=None
        Names of the features, needed before dicts are learnt one at a time in a multiplicative
        geometry.
    power : float, default=0.0
        Exponent of the rates ``eta * t**-power`` in round t; 0 keeps them constant.
    rates : array-like of shape (n_rounds,), default=None
        Rates given one per round, instead of `eta` and `power`.
    average : {"before", "after"} or None, default=None
        What predicts: None the last weights, "before" the mean of w_1, ..., w_T, "after" that of w_2, ..., w_(T+1).
    fit_intercept : bool, default=True
        Whether a constant coordinate 1 joins every row; it counts in the norms.
    passes : int, default=1
        How many times `fit` goes through the rows, in the order given.
    start : array-like of shape (n_weights,) or (n_runs, n_weights), default=None
        The weights w_1, the intercept's last; None is 0, or equal weights on the simplex.
    keep_margins : bool, default=False
        Whether to keep the margin of each row before its update, as ``margins_``.
    interval : float, default=None
        The part of rows whose label `predict_set` is to contain, between 0 and 1, for the logistic loss; None makes no
        sets.

    Attributes
    ----------
    coef_ : ndarray of shape (n_runs, n_features_in_)
        Weights of the features: one row for two classes, otherwise one row per class.
    intercept_ : ndarray of shape (n_runs,)
        Weight of the constant coordinate; 0 without one.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    facts_ : Facts or list of Facts
        What was counted and summed over the rounds so far.
    margins_ : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Margins of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate or Certificates
        Made by ``fit(..., certify=True)``; dropped when more rows are learnt.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the rows had names.

    References
    ----------
    .. [1] M. Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent", ICML 2003.
    .. [2] J. Kivinen and M. K. Warmuth, "Exponentiated gradient versus gradient descent for linear predictors",
       Information and Computation 132(1), 1997.

    Examples
    --------
    >>> from hindsight import DescentClassifier
    >>> model = DescentClassifier(eta=1.0, fit_intercept=False).fit([[1.0], [-1.0]], [1, 0])
    >>> model.predict_proba([[0.0]])
    array([[0.5, 0.5]])
    """

    def __init__(
        self, loss: str = "logistic", geometry: str = "euclidean", eta: float = 0.1, update: str = "implicit", *,
        radius: float = 1.0, l1: float = 0.0, l2: float = 0.0, class_weight: Any = None, features: Any = None,
        power: float = 0.0, rates: Any = None,
        average: str | None = None, fit_intercept: bool = True, passes: int = 1, start: Any = None,
        keep_margins: bool = False, interval: float | None = None,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _learner(self) -> Learner:
        if self.loss == "perceptron" and self.update == "implicit" and self.start is None:
            raise ValueError(
                "the implicit step on the perceptron's loss never leaves w = 0: "
                "take update='explicit', loss='hinge', or give a start"
            )
        learner = descent(self.loss, self.geometry, self.eta, self.update, self.radius, self.power, self.l1, self.l2)
        if learner.targets == "count":
            raise ValueError(f"loss {self.loss!r} is for counts: use DescentRegressor")
        return learner
