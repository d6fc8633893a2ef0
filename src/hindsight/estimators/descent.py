"""Online gradient descent and exponentiated gradient on a choice of losses."""

from __future__ import annotations

from typing import Any

from ..online.learners import Learner, descent
from .mixins.runs import SetsMixin
from .online_classifier import OnlineClassifier
from .online_regressor import OnlineRegressor


class DescentRegressor(OnlineRegressor):
    """Regression by online gradient descent, or by exponentiated gradient, on a general loss.

    A dual vector takes gradient steps, theta -= eta loss'(w.x, y) x, and the geometry maps it to the weights: w =
    theta, or w_i proportional to e^theta_i. The implicit update evaluates the slope loss' at the new weights, so that
    no rate overshoots. At a constant rate in the Euclidean geometry its total loss is at most that of any u plus |u -
    w_1|^2/(2 eta) plus a term that is measured during the run. The explicit update evaluates the slope at the old
    weights. Its total loss is at most that of any u plus D(u, w_1)/eta + (eta/2) sum |g_t|*^2, where the g_t are the
    gradients of the run, D is the divergence of the geometry and |.|* its dual norm [1]_, [2]_.

    Parameters
    ----------
    loss : {"square", "absolute", "quantile", "huber", "logistic", "poisson"}, default="square"
        The loss; "logistic" takes targets in [0, 1] and predicts through the logistic link, "poisson" takes counts (at
        least 0) and predicts their mean, e^(w.x).
    geometry : {"euclidean", "simplex", "balanced", "scale-free"}, default="euclidean"
        The domain of the weights and the kind of steps. "euclidean" takes additive steps without constraints,
        "scale-free" does so with each feature in units of its largest absolute value so far. "simplex" and "balanced"
        take multiplicative steps, with weights on the simplex or signed weights of L1 norm below `radius`.
    eta : float, default=0.1
        Learning rate, above 0.
    update : {"explicit", "implicit"}, default="implicit"
        Whether the slope of the loss is evaluated at the old weights ("explicit") or at the new ones ("implicit").
    radius : float, default=1.0
        Sum of the weights on the simplex, or bound on the L1 norm of signed weights.
    l1 : float, default=0.0
        Factor of the penalty l1 |w|_1 in each round, at least 0, in the Euclidean geometry. Steps are then proximal, on
        loss plus penalty, and can make weights exactly 0. The intercept is not penalised.
    l2 : float, default=0.0
        Factor of the penalty (l2/2) |w|^2 in each round, at least 0, under the same conditions.
    quantile : float, default=None
        For the loss "quantile": which quantile to predict, between 0 and 1; None is 0.5.
    delta : float, default=None
        For the loss "huber": the size of the error above which the loss is linear, above 0; None is 1.
    features : sequence of hashable, default=None
        Names of the features; required for learning dicts one at a time in a multiplicative geometry.
    power : float, default=0.0
        Exponent of the rates ``eta * t**-power`` in round t; 0 keeps them constant.
    rates : array-like of shape (n_rounds,), default=None
        Learning rates, one per round, instead of `eta` and `power`.
    average : {"before", "after"} or None, default=None
        The weights used to predict: None for the last ones, "before" for the mean of w_1, ..., w_T, "after" for the
        mean of w_2, ..., w_(T+1).
    fit_intercept : bool, default=True
        Whether to append a constant coordinate 1 to every row; it counts in the norms.
    passes : int, default=1
        Number of passes over the rows in `fit`, in the order given.
    start : array-like of shape (n_weights,), default=None
        The weights w_1, the intercept's last; None is 0, or equal weights on the simplex.
    keep_margins : bool, default=False
        Whether to keep the margin of each row before its update, as ``margins_``.
    interval : float, default=None
        Fraction of the rows that `predict_interval` has to cover, between 0 and 1; None makes no intervals.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Weights of the features.
    intercept_ : float
        Weight of the constant coordinate; 0 without one.
    facts_ : Facts
        Counts and sums over the rounds so far.
    margins_ : ndarray of shape (n_rows,)
        Margins of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``; dropped when more rows are learnt.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

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


class DescentClassifier(SetsMixin, OnlineClassifier):
    """Classification by online gradient descent, or by exponentiated gradient, on a general loss.

    A dual vector takes gradient steps, theta -= eta loss'(w.x, y) x, and the geometry maps it to the weights: w =
    theta, or w_i proportional to e^theta_i. The implicit update evaluates the slope loss' at the new weights, so that
    no rate overshoots. At a constant rate in the Euclidean geometry its total loss is at most that of any u plus |u -
    w_1|^2/(2 eta) plus a term that is measured during the run. The explicit update evaluates the slope at the old
    weights. Its total loss is at most that of any u plus D(u, w_1)/eta + (eta/2) sum |g_t|*^2, where the g_t are the
    gradients of the run, D is the divergence of the geometry and |.|* its dual norm [1]_, [2]_.

    Two classes share one run, in which ``classes_[1]`` is positive; with more classes, each has a one-vs-rest run. With
    the loss "perceptron" and ``eta=1`` the steps are those of `PerceptronClassifier`.

    Parameters
    ----------
    loss : {"logistic", "hinge", "perceptron", "square", "absolute"}, default="logistic"
        The loss; "logistic" also gives probabilities.
    geometry : {"euclidean", "simplex", "balanced", "scale-free"}, default="euclidean"
        The domain of the weights and the kind of steps. "euclidean" takes additive steps without constraints,
        "scale-free" does so with each feature in units of its largest absolute value so far. "simplex" and "balanced"
        take multiplicative steps, with weights on the simplex or signed weights of L1 norm below `radius`.
    eta : float, default=0.1
        Learning rate, above 0.
    update : {"explicit", "implicit"}, default="implicit"
        Whether the slope of the loss is evaluated at the old weights ("explicit") or at the new ones ("implicit").
    radius : float, default=1.0
        Sum of the weights on the simplex, or bound on the L1 norm of signed weights.
    l1 : float, default=0.0
        Factor of the penalty l1 |w|_1 in each round, at least 0, in the Euclidean geometry. Steps are then proximal, on
        loss plus penalty, and can make weights exactly 0. The intercept is not penalised.
    l2 : float, default=0.0
        Factor of the penalty (l2/2) |w|^2 in each round, at least 0, under the same conditions.
    class_weight : {"balanced"} or dict, default=None
        Weights of the classes, which multiply the weights of their rows. "balanced" gives class k the weight n/(K n_k),
        where K is the number of classes and n_k of n rows belong to class k: `fit` counts all its rows, `partial_fit`
        and `learn_one` those up to and including the row at hand. A dict maps classes to weights; classes that are not
        in it have weight 1.
    features : sequence of hashable, default=None
        Names of the features; required for learning dicts one at a time in a multiplicative geometry.
    power : float, default=0.0
        Exponent of the rates ``eta * t**-power`` in round t; 0 keeps them constant.
    rates : array-like of shape (n_rounds,), default=None
        Learning rates, one per round, instead of `eta` and `power`.
    average : {"before", "after"} or None, default=None
        The weights used to predict: None for the last ones, "before" for the mean of w_1, ..., w_T, "after" for the
        mean of w_2, ..., w_(T+1).
    fit_intercept : bool, default=True
        Whether to append a constant coordinate 1 to every row; it counts in the norms.
    passes : int, default=1
        Number of passes over the rows in `fit`, in the order given.
    start : array-like of shape (n_weights,) or (n_runs, n_weights), default=None
        The weights w_1, the intercept's last; None is 0, or equal weights on the simplex.
    keep_margins : bool, default=False
        Whether to keep the margin of each row before its update, as ``margins_``.
    interval : float, default=None
        Fraction of the rows whose label `predict_set` has to contain, between 0 and 1; only for the logistic loss. None
        makes no sets.

    Attributes
    ----------
    coef_ : ndarray of shape (n_runs, n_features_in_)
        Weights of the features: one row for two classes, otherwise one row per class.
    intercept_ : ndarray of shape (n_runs,)
        Weight of the constant coordinate; 0 without one.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    facts_ : Facts or list of Facts
        Counts and sums over the rounds so far.
    margins_ : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Margins of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate or Certificates
        Made by ``fit(..., certify=True)``; dropped when more rows are learnt.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

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
