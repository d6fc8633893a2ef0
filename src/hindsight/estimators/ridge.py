"""Online ridge regression, and the Vovk-Azoury-Warmuth forecaster."""

from __future__ import annotations

from ..online.learners import Learner, ridge, vaw
from .online_regressor import OnlineRegressor


class RidgeRegressor(OnlineRegressor):
    """Online ridge regression: each row is predicted by the least squares fit of the rows before it.

    The regulariser is the sum of kappa M_i^2 (u_i - w_1,i)^2 over the features, where M_i is the largest absolute value
    of feature i, so that the units of the columns and of the target do not matter. Rows are added to a triangular
    factor by rotations, in time and memory quadratic in the number of features. With ``forecaster=True`` the fit also
    includes the row to be predicted, with the middle of the range of the targets as its target [1]_, [2]_.

    With a window of N rounds the weight of all earlier rows is multiplied by 1 - 1/N at each row, so that the fit is
    about that of the last N rows and follows drift.

    The loss is exactly the minimum over u of L_u (the loss of u) plus the regulariser at u, plus a term that depends on
    the rounds; `certify` computes both. With a window it is the loss of the best predictors of each window, plus this
    term.

    Parameters
    ----------
    kappa : float, default=0.01
        Factor of the regulariser, above 0.
    window : int or None, default=None
        Number of rounds after which the weight of a row has fallen to about 1/e, at least 2; None or 0 gives all rows
        the same weight.
    forecaster : bool, default=False
        Whether to predict as the Vovk-Azoury-Warmuth forecaster does; not with a window.
    fit_intercept : bool, default=True
        Whether to append a constant coordinate 1 to every row. If True, the first row only initialises the intercept
        with its target and is not counted as a round.
    passes : int, default=1
        Number of passes over the rows in `fit`, in the order given.
    keep_margins : bool, default=False
        Whether to keep the prediction of each row before its update, as ``margins_``.
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
        Predictions of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``; dropped when more rows are learnt.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

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
