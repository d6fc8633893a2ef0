"""Ridge regression played online, and Vovk, Azoury and Warmuth's forecaster."""

from __future__ import annotations

from ..online.learners import Learner, ridge, vaw
from .online_regressor import OnlineRegressor


class RidgeRegressor(OnlineRegressor):
    """Online ridge regression: each row is predicted by the least squares fit of the rows before it.

    The prior kappa M_i^2 (u_i - w_1,i)^2 grows with the largest size M_i of each feature, so that neither the units of
    a column nor those of the target matter. Rows join a triangle by rotations, in time and memory that are quadratic
    in the number of features. With ``forecaster=True`` the row at hand counts as well, with its target at mid-range
    [1]_, [2]_.

    With a window of N rounds whatever was learnt loses the part 1/N of its weight with each row: the fit is that of the
    last N rows or so, and follows a truth that drifts.

    The loss is exactly the smallest value over u of L_u plus the prior at u, plus a price that the rounds met;
    `certify` computes both. With a window it is what the best predictors of each window lose, plus the price.

    Parameters
    ----------
    kappa : float, default=0.01
        The prior, above 0.
    window : int or None, default=None
        Rounds after which a row counts 1/e of what it did, at least 2; None or 0 lets all rows count alike.
    forecaster : bool, default=False
        Whether to predict as Vovk, Azoury and Warmuth do; without a window.
    fit_intercept : bool, default=True
        Whether a constant coordinate 1 joins every row. With it the first target is where the weights start, and that
        row is no round.
    passes : int, default=1
        How many times `fit` goes through the rows, in the order given.
    keep_margins : bool, default=False
        Whether to keep the prediction of each row before its update, as ``margins_``.
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
        Predictions of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``; dropped when more rows are learnt.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the rows had names.

    References
    ----------
    .. [1] V. Vovk, "Competitive on-line statistics", International Statistical Review 69(2), 2001.
    .. [2] K. S. Azoury and M. K. Warmuth, "Relative loss bounds for on-line density estimation with the exponential
       family of distributions", Machine Learning 43(3), 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight import RidgeRegressor
    >>> x = np.arange(50.0)[:, None]
    >>> model = RidgeRegressor().fit(1e6 * x, 2.0 * x[:, 0] + 1.0)
    >>> round(float(model.predict([[60e6]])[0]))
    121
    """

    def __init__(
        self, kappa: float = 0.01, *, window: int | None = None, forecaster: bool = False, fit_intercept: bool = True,
        passes: int = 1, keep_margins: bool = False, interval: float | None = None,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    average = None
    start = None

    def _learner(self) -> Learner:
        if self.forecaster and self.window:
            raise ValueError(f"window={self.window!r} is for forecaster=False")
        return vaw(self.kappa) if self.forecaster else ridge(self.kappa, self.window)
