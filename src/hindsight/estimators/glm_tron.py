"""GLM-tron on a stream of rows."""

from __future__ import annotations

from typing import Any

from ..online.learners import Learner, glm_tron
from .online_regressor import OnlineRegressor


class GLMtronRegressor(OnlineRegressor):
    """Regression through a known link u by GLM-tron: the mean of y is u(w.x).

    In each round w -= eta (u(w.x) - y) x, for a link u that is nondecreasing and lambda-Lipschitz. This is online
    gradient descent on the matching loss of the link.

    If y = u(w*.x) on every row and eta lambda X2^2 < 2, where X2 is the largest |x|, then the squared errors of all
    rounds add up to at most |w*|^2/(eta (2/lambda - eta X2^2)) [1]_. Declare w* as ``certify(..., planted=w)``; without
    it, the certificate is that of gradient descent on the matching loss.

    Parameters
    ----------
    link : {"identity", "logistic", "clipped", "probit", "tanh"}, default="logistic"
        The link: "clipped" is linear, clipped to [0, 1]; "tanh" is (1 + tanh z)/2.
    eta : float or None, default=None
        Learning rate, above 0; None is 1/lambda, which suits rows with |x| <= 1.
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
    .. [1] S. Kakade, A. Kalai, V. Kanade and O. Shamir, "Efficient learning of generalized linear and single index
       models with isotonic regression", NIPS 2011.

    Examples
    --------
    >>> from hindsight import GLMtronRegressor
    >>> model = GLMtronRegressor(eta=4.0, fit_intercept=False).fit([[1.0]], [1.0])
    >>> model.predict([[1.0]]).round(3)
    array([0.881])
    """

    def __init__(
        self, link: str = "logistic", eta: float | None = None, *,
        power: float = 0.0, rates: Any = None,
        average: str | None = None, fit_intercept: bool = True, passes: int = 1, start: Any = None,
        keep_margins: bool = False, interval: float | None = None,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _learner(self) -> Learner:
        return glm_tron(self.link, self.eta, self.power)
