"""Widrow-Hoff regression, explicit and implicit."""

from __future__ import annotations

from typing import Any

from ..online.learners import Learner, widrow_hoff
from .online_regressor import OnlineRegressor


class WidrowHoffRegressor(OnlineRegressor):
    """Linear regression by the Widrow-Hoff rule, also known as least mean squares.

    In each round w -= eta (w.x - y) x [1]_. The implicit form evaluates the residual w.x - y at the new weights
    instead, which multiplies the step by 1/(1 + eta |x|^2) and makes it stable at any rate [3]_.

    The cumulative square loss L of the explicit rule is at most L_u/(1 - eta X2^2) + |u|^2/eta for every u if eta X2^2
    < 1, where L_u is the loss of u and X2 the largest |x| [2]_. For the implicit rule the sum of the squared residuals,
    each divided by 1 + eta |x|^2, is at most L_u + |u|^2/eta at any rate. `certify` checks this on the rows of a run.

    The factor 2 in the gradient of (w.x - y)^2 is absorbed into the rate: ``WidrowHoffRegressor(eta)`` takes the steps
    of ``DescentRegressor("square", eta=eta / 2, update=update)``.

    Parameters
    ----------
    eta : float, default=0.1
        Learning rate, above 0.
    update : {"implicit", "explicit"}, default="implicit"
        Whether the residual is evaluated at the new weights ("implicit") or at the old ones ("explicit").
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
        The weights w_1, the intercept's last; None is 0.
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
    .. [1] B. Widrow and M. E. Hoff, "Adaptive switching circuits", IRE WESCON Convention Record, 1960.
    .. [2] N. Cesa-Bianchi, P. M. Long and M. K. Warmuth, "Worst-case quadratic loss bounds for prediction using linear
       functions and gradient descent", IEEE Transactions on Neural Networks 7(3), 1996.
    .. [3] J. Kivinen, M. K. Warmuth and B. Hassibi, "The p-norm generalization of the LMS algorithm for adaptive
       filtering", IEEE Transactions on Signal Processing 54(5), 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight import WidrowHoffRegressor
    >>> model = WidrowHoffRegressor(eta=0.5, fit_intercept=False).fit(np.eye(2), [1.0, 2.0])
    >>> model.coef_
    array([0.33333333, 0.66666667])
    >>> model.certify(np.eye(2), [1.0, 2.0]).verdict.value
    'HOLDS'
    """

    def __init__(
        self, eta: float = 0.1, update: str = "implicit", *,
        power: float = 0.0, rates: Any = None,
        average: str | None = None, fit_intercept: bool = True, passes: int = 1, start: Any = None,
        keep_margins: bool = False, interval: float | None = None,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _learner(self) -> Learner:
        return widrow_hoff(self.eta, self.update, self.power)
