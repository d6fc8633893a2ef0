"""Gradient descent on all rows at once, and stochastic gradient descent on rows drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from .gradient_descent_base import GradientDescent
from .mixins import (
    BoundNotScoreMixin,
    LabelsMixin,
    LinearRegressorMixin,
    LogisticProbabilityMixin,
    MarginClassifierMixin,
    TargetsMixin,
)


class GradientDescentRegressor(
    BoundNotScoreMixin,
    TargetsMixin,
    LinearRegressorMixin,
    RegressorMixin,  # type: ignore[misc]
    GradientDescent,
):
    """Regression by gradient descent or stochastic gradient descent on a loss of targets.

    Both descend f(w) = sum_i c_i loss(w.x_i, y_i) / sum_i c_i + (l2/2) |w|^2, where c are the weights of the rows: in
    each round w -= eta v, where v is the gradient of f, or its estimate from the rows drawn [1]_.

    With a full batch, f of the mean iterate after T rounds is at most f(u) + |u - w_s|^2/(2 eta T) + (eta/(2T)) sum
    |grad f(w_t)|^2 for every u [2]_, [3]_: `certify` shows it with the gradients that were met. With drawn rows it
    holds in expectation over the draws.

    Parameters
    ----------
    loss : {"square", "absolute", "logistic"}, default="square"
        The loss; "logistic" takes targets in [0, 1] and predicts through the logistic link.
    eta : float or "theory", default=0.1
        Learning rate, above 0; "theory" is B / (rho sqrt(rounds)), where rho is the Lipschitz constant of f (for drawn
        rows, of its terms): the largest slope of the loss times the largest |x|, while all weights are 1. It is for
        Lipschitz losses without `l2`, and is kept on a warm start.
    rounds : int, default=100
        Rounds that a `fit` plays, at least 1.
    batch : "full" or int, default="full"
        All rows in each round, or how many rows are drawn for it, uniformly and with replacement.
    output : {"mean", "mean-after", "last", "best"}, default="mean"
        What predicts: "mean" the mean of the iterates at which gradients were taken (the start is one, the last weights
        are not), weighted by their rates where those change; "mean-after" the mean of the iterates after each step (the
        last weights are one, the start is not), for a constant rate; "last" the last weights; "best" the
        iterate of least f: of all iterates, or for drawn rows of the start, one after each n_rows draws, and the last.
    l2 : float, default=0.0
        Factor of |w|^2/2 in f, at least 0; the intercept's weight counts in |w|^2.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws.
    B : float or None, default=None
        Norm of the predictors to compete with, for ``eta="theory"``.
    power : float, default=0.0
        Exponent of the rates ``eta * t**-power`` in round t; 0 keeps them constant.
    rates : array-like of shape (n_rounds,), default=None
        Rates given one per round, instead of `eta` and `power`.
    fit_intercept : bool, default=True
        Whether a constant coordinate 1 joins every row; it counts in the norms.
    start : array-like of shape (n_weights,), default=None
        The weights w_s at the start, the intercept's last; None is 0.
    tol : float or None, default=None
        Stop after the first round whose gradient has at most this norm; None never stops early. For a full batch only.
    warm_start : bool, default=False
        Whether a further `fit` continues where the last one ended, the count of rounds and the draws too.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Weights of the features.
    intercept_ : float
        Weight of the constant coordinate; 0 without one.
    rounds_ : int
        Rounds played so far.
    eta_ : float
        The rate that `eta` stands for.
    objectives_ : ndarray of shape (rounds_ + 1,)
        f at each iterate of a full batch, the start first.
    rho_ : float
        The Lipschitz constant that ``eta="theory"`` took.
    facts_ : Facts
        What was counted and summed over the rounds so far.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the rows had names.

    References
    ----------
    .. [1] H. Robbins and S. Monro, "A stochastic approximation method", Annals of Mathematical Statistics 22(3), 1951.
    .. [2] M. Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent", ICML 2003.
    .. [3] S. Shalev-Shwartz and S. Ben-David, "Understanding Machine Learning: From Theory to Algorithms", Cambridge
       University Press, 2014, chapter 14.

    Examples
    --------
    >>> from hindsight import GradientDescentRegressor
    >>> model = GradientDescentRegressor("square", eta=0.25, rounds=2, fit_intercept=False, output="last")
    >>> model.fit([[1.0], [1.0]], [1.0, 3.0]).coef_  # f(w) = w^2 - 4w + 5: from 0 to 1 to 1.5
    array([1.5])
    """

    def _targets_for(self, X: Any, y: Any, fresh: bool) -> list[np.ndarray]:
        if self._plain().targets == "sign":
            raise ValueError(f"loss {self.loss!r} is for labels: use GradientDescentClassifier")
        return self._seen(X, y)


class GradientDescentClassifier(
    BoundNotScoreMixin,
    LogisticProbabilityMixin,
    LabelsMixin,
    MarginClassifierMixin,
    ClassifierMixin,  # type: ignore[misc]
    GradientDescent,
):
    """Classification by gradient descent or stochastic gradient descent on a loss of labels.

    Both descend f(w) = sum_i c_i loss(w.x_i, y_i) / sum_i c_i + (l2/2) |w|^2, where c are the weights of the rows: in
    each round w -= eta v, where v is the gradient of f, or its estimate from the rows drawn [1]_.

    With a full batch, f of the mean iterate after T rounds is at most f(u) + |u - w_s|^2/(2 eta T) + (eta/(2T)) sum
    |grad f(w_t)|^2 for every u [2]_, [3]_: `certify` shows it with the gradients that were met. With drawn rows it
    holds in expectation over the draws.

    Two classes share one run, in which ``classes_[1]`` is 1 and ``classes_[0]`` is -1 (0 for the logistic loss); of
    more classes each has a run against the rest, on the same draws.

    Parameters
    ----------
    loss : {"logistic", "hinge", "perceptron", "square", "absolute"}, default="logistic"
        The loss; "logistic" also gives probabilities.
    eta : float or "theory", default=0.1
        Learning rate, above 0; "theory" is B / (rho sqrt(rounds)), where rho is the Lipschitz constant of f (for drawn
        rows, of its terms): the largest slope of the loss times the largest |x|, while all weights are 1. It is for
        Lipschitz losses without `l2`, and is kept on a warm start.
    rounds : int, default=100
        Rounds that a `fit` plays, at least 1.
    batch : "full" or int, default="full"
        All rows in each round, or how many rows are drawn for it, uniformly and with replacement.
    output : {"mean", "mean-after", "last", "best"}, default="mean"
        What predicts: "mean" the mean of the iterates at which gradients were taken (the start is one, the last weights
        are not), weighted by their rates where those change; "mean-after" the mean of the iterates after each step (the
        last weights are one, the start is not), for a constant rate; "last" the last weights; "best" the
        iterate of least f: of all iterates, or for drawn rows of the start, one after each n_rows draws, and the last.
    l2 : float, default=0.0
        Factor of |w|^2/2 in f, at least 0; the intercept's weight counts in |w|^2.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws.
    B : float or None, default=None
        Norm of the predictors to compete with, for ``eta="theory"``.
    power : float, default=0.0
        Exponent of the rates ``eta * t**-power`` in round t; 0 keeps them constant.
    rates : array-like of shape (n_rounds,), default=None
        Rates given one per round, instead of `eta` and `power`.
    fit_intercept : bool, default=True
        Whether a constant coordinate 1 joins every row; it counts in the norms.
    start : array-like of shape (n_weights,) or (n_runs, n_weights), default=None
        The weights w_s at the start, the intercept's last; None is 0.
    tol : float or None, default=None
        Stop after the first round whose gradient has at most this norm; None never stops early. For a full batch only.
    warm_start : bool, default=False
        Whether a further `fit` continues where the last one ended, the count of rounds and the draws too.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_runs, n_features_in_)
        Weights of the features: one row for two classes, otherwise one row per class.
    intercept_ : ndarray of shape (n_runs,)
        Weight of the constant coordinate; 0 without one.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    rounds_ : int
        Rounds played so far.
    eta_ : float
        The rate that `eta` stands for.
    objectives_ : ndarray of shape (rounds_ + 1,) or list of ndarray
        f at each iterate of a full batch, the start first.
    rho_ : float
        The Lipschitz constant that ``eta="theory"`` took.
    facts_ : Facts or list of Facts
        What was counted and summed over the rounds so far.
    certificate_ : Certificate or Certificates
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the rows had names.

    References
    ----------
    .. [1] H. Robbins and S. Monro, "A stochastic approximation method", Annals of Mathematical Statistics 22(3), 1951.
    .. [2] M. Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent", ICML 2003.
    .. [3] S. Shalev-Shwartz and S. Ben-David, "Understanding Machine Learning: From Theory to Algorithms", Cambridge
       University Press, 2014, chapter 14.

    Examples
    --------
    >>> from hindsight import GradientDescentClassifier
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, 1, 0, 0]
    >>> model = GradientDescentClassifier("hinge", eta="theory", B=2.0, rounds=100).fit(X, y)
    >>> print(model.certify(X, y).verdict.value, round(model.eta_, 6))
    HOLDS 0.141421
    """

    def __init__(
        self, loss: str = "logistic", eta: float | str = 0.1, rounds: int = 100, batch: str | int = "full",
        output: str = "mean", l2: float = 0.0, random_state: Any = None, *, B: float | None = None,
        power: float = 0.0, rates: Any = None, fit_intercept: bool = True, start: Any = None,
        tol: float | None = None, warm_start: bool = False, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _targets_for(self, X: Any, y: Any, fresh: bool) -> list[np.ndarray]:
        y = self._labels(X, y)
        if fresh:
            self._set_classes(y)
        return self._run_targets(y, self._plain().targets)

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        return self._targets_for(X, y, fresh=False)
