"""Online regressors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from .. import kernels
from ..online.learners import Learner, descent, eg, glm_tron, widrow_hoff
from .base import FLOATS, FitMixin, OnlineEstimator


class OnlineRegressor(FitMixin, RegressorMixin, OnlineEstimator):  # type: ignore[misc]
    """Base of the regressors."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one pass at a default rate promises regret, not a score
        return tags

    def _targets(self, X: Any, y: Any) -> list[np.ndarray]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if not (isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype in FLOATS):  # those need no check
            y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False), warn=True)
        check_consistent_length(X, y)
        return [np.ascontiguousarray(y, np.float64)]

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        return self._targets(X, y)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        passes = self._passes()
        X = self._matrix(X, reset=True)
        targets = self._targets(X, y)
        self._begin(X.shape[1], 1)
        self._play(X, targets, sample_weight, passes)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning from these rows, once over; on an error everything is as before the call."""
        if not self.__sklearn_is_fitted__():
            return self._first(X, y, sample_weight)
        X = self._matrix(X, reset=False)
        self._play(X, self._targets(X, y), sample_weight, 1)
        return self

    def _first(self, X: Any, y: Any, sample_weight: Any) -> Self:
        kept = self._kept()
        try:
            X = self._matrix(X, reset=True)
            targets = self._targets(X, y)
            self._begin(X.shape[1], 1)
            self._play(X, targets, sample_weight, 1)
        except BaseException:
            self._restore(kept)
            raise
        return self

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features."""
        return self._coef()[0, : self.n_features_in_]

    @property
    def intercept_(self) -> float:
        """The weight of the constant coordinate; 0 without one."""
        return float(self._weights()[0, -1]) if self.fit_intercept else 0.0

    def predict(self, X: Any) -> np.ndarray:
        """What the model predicts for each row: its margin, through the link where there is one."""
        z = np.ascontiguousarray(self._margins(X)[:, 0], np.float64)
        out = np.empty_like(z)
        kernels.means(self.runs_[0].learner.loss, z, out)
        return out

    def learn_one(self, x: Any, y: float, weight: float = 1.0) -> Self:
        """Play one row, a dict of names to values or a 1-D array; on an error everything is as before it."""
        if not self.__sklearn_is_fitted__():
            kept = self._kept()
            try:
                self._first_row(x, 1)
                self._learn_one(x, [float(y)], weight)
            except BaseException:
                self._restore(kept)
                raise
        else:
            self._learn_one(x, [float(y)], weight)
        return self

    def predict_one(self, x: Any) -> float:
        """What the model predicts for one row; a name never seen has weight 0."""
        z = self._margins_one(x)[0]
        mean: float = self.runs_[0].learner.loss.mean(z)
        return mean


COMMON = """
    power : rates fall as eta t^-power.
    rates : rates given one a round, instead of eta.
    average : None predicts with the last weights; "before" with the mean of w_1..w_T (N0's online-to-batch),
        "after" with the mean of w_2..w_{T+1} (N2's).
    fit_intercept : a constant coordinate 1, which counts in the norms.
    passes : times `fit` goes through the rows, in the order given.
    start : w_1, the intercept's weight last; None is the table's.
    keep_margins : keep the margin of each row before its update, as `margins_`.
"""


class WidrowHoffRegressor(OnlineRegressor):
    """Widrow-Hoff (N1 1.3): w -= eta (w.x - y) x, or its implicit form with the new w inside.

    The explicit rule promises L <= L_u/(1 - eta X2^2) + |u|^2/eta for every u while eta X2^2 < 1; the implicit one
    Sigma l_t^2/(1 + eta |x_t|^2) <= L_u + |u|^2/eta at any eta. The notes drop the 2 of the gradient here:
    ``WidrowHoffRegressor(eta)`` takes the steps of ``DescentRegressor("square", eta=eta/2)``.

    Parameters
    ----------
    eta : rate, above 0.
    update : "implicit" or "explicit".

    Examples
    --------
    >>> import numpy as np
    >>> model = WidrowHoffRegressor(eta=0.5, fit_intercept=False).fit(np.eye(2), [1.0, 2.0])
    >>> model.coef_
    array([0.33333333, 0.66666667])
    """

    def __init__(
        self,
        eta: float = 0.1,
        update: str = "implicit",
        *,
        power: float = 0.0,
        rates: Any = None,
        average: str | None = None,
        fit_intercept: bool = True,
        passes: int = 1,
        start: Any = None,
        keep_margins: bool = False,
    ) -> None:
        self.eta = eta
        self.update = update
        self.power = power
        self.rates = rates
        self.average = average
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.start = start
        self.keep_margins = keep_margins

    def _learner(self) -> Learner:
        return widrow_hoff(self.eta, self.update, self.power)


class EGRegressor(OnlineRegressor):
    """Exponentiated gradient (N0): w_i *= e^(-eta (w.x - y) x_i), normalised; EG+- with a radius.

    While eta (U Xinf)^2 < 1 it promises L <= L_u/(1 - eta (U Xinf)^2) + 2 RE(u||w_1)/eta for every u of L1 norm U
    (on the simplex U = 1 and u >= 0): good where many features are beside the point.

    Parameters
    ----------
    eta : rate, above 0.
    radius : L1 norm U of signed weights; None keeps them on the simplex.
    features : names of the features, needed before dicts are learnt one at a time.

    Examples
    --------
    >>> import numpy as np
    >>> EGRegressor(eta=0.5, radius=None, fit_intercept=False).fit(np.eye(2), [1.0, 0.0]).coef_.round(3)
    array([0.615, 0.385])
    """

    def __init__(
        self,
        eta: float = 0.1,
        radius: float | None = 1.0,
        *,
        update: str = "explicit",
        features: Any = None,
        power: float = 0.0,
        rates: Any = None,
        average: str | None = None,
        fit_intercept: bool = True,
        passes: int = 1,
        start: Any = None,
        keep_margins: bool = False,
    ) -> None:
        self.eta = eta
        self.radius = radius
        self.update = update
        self.features = features
        self.power = power
        self.rates = rates
        self.average = average
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.start = start
        self.keep_margins = keep_margins

    def _learner(self) -> Learner:
        return eg(self.eta, self.radius, self.update, self.power)


class DescentRegressor(OnlineRegressor):
    """Online gradient descent or exponentiated gradient on a general loss (N0): theta -= eta loss'(w.x, y) x.

    The explicit step promises Sigma loss(w_t) - Sigma loss(u) <= D(u, w_1)/eta + (eta/2) Sigma |g_t|*^2 for every u,
    with the gradients really met.

    Parameters
    ----------
    loss : "square", "absolute", or "logistic" (targets in [0, 1]).
    geometry : "euclidean", "simplex" or "balanced" (signed weights of L1 norm `radius`).
    eta : rate, above 0.
    update : "explicit" or "implicit".
    radius : of the multiplicative geometries.
    features : names of the features, needed before dicts are learnt one at a time in a multiplicative geometry.

    Examples
    --------
    >>> import numpy as np
    >>> DescentRegressor("absolute", eta=1.0, fit_intercept=False).fit(np.eye(2), [3.0, -2.0]).coef_
    array([ 1., -1.])
    """

    def __init__(
        self,
        loss: str = "square",
        geometry: str = "euclidean",
        eta: float = 0.1,
        update: str = "explicit",
        *,
        radius: float = 1.0,
        features: Any = None,
        power: float = 0.0,
        rates: Any = None,
        average: str | None = None,
        fit_intercept: bool = True,
        passes: int = 1,
        start: Any = None,
        keep_margins: bool = False,
    ) -> None:
        self.loss = loss
        self.geometry = geometry
        self.eta = eta
        self.update = update
        self.radius = radius
        self.features = features
        self.power = power
        self.rates = rates
        self.average = average
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.start = start
        self.keep_margins = keep_margins

    def _learner(self) -> Learner:
        if self.loss in ("hinge", "perceptron"):
            raise ValueError(f"loss {self.loss!r} is for labels: use DescentClassifier")
        return descent(self.loss, self.geometry, self.eta, self.update, self.radius, self.power)


class GLMtronRegressor(OnlineRegressor):
    """GLM-tron (N4 Theorem 1.1): w -= eta (u(w.x) - y) x for a known nondecreasing, lambda-Lipschitz link u.

    If y_t = u(w*.x_t) throughout and eta lambda X2^2 < 2, then
    Sigma (y_t - yhat_t)^2 <= |w*|^2/(eta (2/lambda - eta X2^2)).

    Parameters
    ----------
    link : "identity", "logistic", "clipped" (linear, clipped to [0, 1]), "probit", or "tanh" ((1 + tanh z)/2).
    eta : rate; None is 1/lambda, the notes' choice for |x|_2 <= 1 (lambda = 1, 1/4 and 1).

    Examples
    --------
    >>> GLMtronRegressor(eta=4.0, fit_intercept=False).fit([[1.0]], [1.0]).predict([[1.0]]).round(3)
    array([0.881])
    """

    def __init__(
        self,
        link: str = "logistic",
        eta: float | None = None,
        *,
        power: float = 0.0,
        rates: Any = None,
        average: str | None = None,
        fit_intercept: bool = True,
        passes: int = 1,
        start: Any = None,
        keep_margins: bool = False,
    ) -> None:
        self.link = link
        self.eta = eta
        self.power = power
        self.rates = rates
        self.average = average
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.start = start
        self.keep_margins = keep_margins

    def _learner(self) -> Learner:
        return glm_tron(self.link, self.eta, self.power)


for _class in (WidrowHoffRegressor, EGRegressor, DescentRegressor, GLMtronRegressor):
    _head, _examples = str(_class.__doc__).split("\n\n    Examples\n")
    _class.__doc__ = _head + COMMON.rstrip() + "\n\n    Examples\n" + _examples
