"""Exponentiated gradient regression."""

from __future__ import annotations

from typing import Any

from ..online.learners import Learner, eg
from .online_regressor import OnlineRegressor


class EGRegressor(OnlineRegressor):
    """Linear regression by exponentiated gradient (EG), or by EG+- with signed weights.

    In each round every weight is multiplied by e^(-eta (w.x - y) x_i), and the weights are normalised. On the simplex
    they are positive and sum to 1. With a radius U the same is done with the doubled row U (x, -x), which gives signed
    weights of L1 norm below U [1]_.

    If eta (U Xinf)^2 < 1, where Xinf is the largest |x_i|, the cumulative square loss is at most L_u/(1 - eta (U
    Xinf)^2) + 2 RE(u||w_1)/eta for every u of L1 norm U (on the simplex U = 1 and u >= 0). L_u is the loss of u and RE
    the relative entropy, which is at most ln N for N features, so irrelevant features cost little.

    Parameters
    ----------
    eta : float, default=0.1
        Learning rate, above 0.
    radius : float or None, default=1.0
        L1 norm U of signed weights; None keeps the weights on the simplex.
    update : {"explicit", "implicit"}, default="explicit"
        Whether the residual is evaluated at the old weights ("explicit") or at the new ones ("implicit").
    features : sequence of hashable, default=None
        Names of the features; required for learning dicts one at a time.
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
        The weights w_1, the intercept's last; None is equal weights (0 for signed ones).
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
    .. [1] J. Kivinen and M. K. Warmuth, "Exponentiated gradient versus gradient descent for linear predictors",
       Information and Computation 132(1), 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight import EGRegressor
    >>> model = EGRegressor(eta=0.5, radius=None, fit_intercept=False).fit(np.eye(2), [1.0, 0.0])
    >>> model.coef_.round(3)
    array([0.615, 0.385])
    """

    def __init__(
        self, eta: float = 0.1, radius: float | None = 1.0, *, update: str = "explicit", features: Any = None,
        power: float = 0.0, rates: Any = None,
        average: str | None = None, fit_intercept: bool = True, passes: int = 1, start: Any = None,
        keep_margins: bool = False, interval: float | None = None,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _learner(self) -> Learner:
        return eg(self.eta, self.radius, self.update, self.power)
