"""Isotonic regression as an estimator."""

from __future__ import annotations

from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from ..batch.isotonic import Pools, check_increasing, check_knots, check_lipschitz, check_points, fit_pools, interpolate
from ..validation import check_numbers, choice
from .mixins.estimator import Estimator


class IsotonicRegressor(Estimator, RegressorMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Exact isotonic regression: the monotone function of one variable with the least weighted squared error.

    Adjacent points that violate the order are pooled and take their mean [1]_, so every level is calibrated: the mean
    of y over the points with fitted value c is c. With a Lipschitz constant the slope of the fit is bounded as well
    [2]_.

    Parameters
    ----------
    increasing : bool or "auto", default=True
        Whether the fit is nondecreasing or nonincreasing; "auto" decides by the sign of the rank correlation.
    lipschitz : float or None, default=None
        A constant L above 0, so that |f(a) - f(b)| <= L |a - b|; None requires only monotonicity.
    interpolation : {"linear", "step"}, default="linear"
        How to interpolate between pools: linearly (which keeps the Lipschitz property) or by the value of the pool
        before.
    outside : {"clip", "nan", "error"}, default="clip"
        How to predict outside the range of z in training: by the first or last value ("clip"), as NaN, or with an
        error.

    Attributes
    ----------
    pools_ : Pools
        Left and right z, value, weight and count of every pool.
    knots_ : tuple of two ndarray
        z and value of the points of the fit, ready to plot.
    increasing_ : bool
        Whether the fit is nondecreasing.

    References
    ----------
    .. [1] M. Ayer, H. D. Brunk, G. M. Ewing, W. T. Reid and E. Silverman, "An empirical distribution function for
       sampling with incomplete information", Annals of Mathematical Statistics 26(4), 1955.
    .. [2] S. Kakade, A. Kalai, V. Kanade and O. Shamir, "Efficient learning of generalized linear and single index
       models with isotonic regression", NIPS 2011.

    Examples
    --------
    >>> from hindsight import IsotonicRegressor
    >>> model = IsotonicRegressor().fit([1, 2, 3, 4], [1.0, 3.0, 2.0, 4.0])
    >>> model.predict([1.5, 2.5, 9.0])
    array([1.75, 2.5 , 4.  ])
    """

    pools_: Annotated[Pools, "pools"]
    increasing_: Annotated[bool, "true or false"]

    def __init__(
        self,
        *,
        increasing: bool | str = True,
        lipschitz: float | None = None,
        interpolation: str = "linear",
        outside: str = "clip",
    ) -> None:
        self._take_parameters(locals())

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        if {"knots_", "pools_", "increasing_"} & set(fields):
            check_knots(fields["knots_"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to points (z, y).

        Parameters
        ----------
        X : array-like of shape (n_points,) or (n_points, 1)
            The values z.
        y : array-like of shape (n_points,)
            Targets.
        sample_weight : float or array-like of shape (n_points,), default=None
            Weights; None is 1. A point of weight 0 is ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._choices()
        z = self._column(X)
        check_numbers(y, "y")
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="y")
        check_consistent_length(z, y)
        if sample_weight is not None and np.ndim(sample_weight) == 0:
            sample_weight = np.full(z.size, sample_weight)
        z, y, w = check_points(z, y, sample_weight)
        constant = check_lipschitz(self.lipschitz)
        rising = check_increasing(self.increasing, z, y, w)
        _, self.pools_ = fit_pools(z, y, w, 1.0 if rising else -1.0, constant, values=False)
        self.increasing_, self.knots_ = rising, self.pools_.knots()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the fit at each z.

        Parameters
        ----------
        X : array-like of shape (n_points,) or (n_points, 1)
            The values z.

        Returns
        -------
        values : ndarray of shape (n_points,)
        """
        check_is_fitted(self)
        self._choices()
        z = self._column(X)
        if not np.isfinite(z).all():
            bad = int((~np.isfinite(z)).argmax())
            raise ValueError(f"z[{bad}] = {float(z[bad])!r} is not finite")
        at, value = self.knots_
        beyond = (z < at[0]) | (z > at[-1])
        if self.outside == "error" and beyond.any():
            bad = int(beyond.argmax())
            raise ValueError(f"z[{bad}] = {float(z[bad])!r} lies outside {float(at[0])!r}..{float(at[-1])!r}")
        if self.interpolation == "step":
            out = value[np.maximum(np.searchsorted(at, z, side="right") - 1, 0)]
        else:
            out = interpolate(at, value, z)
        if self.outside == "nan":
            out[beyond] = np.nan
        return out

    def transform(self, X: Any) -> np.ndarray:
        """Return the fit at each z, as `predict` does.

        Parameters
        ----------
        X : array-like of shape (n_points,) or (n_points, 1)
            The values z.

        Returns
        -------
        values : ndarray of shape (n_points,)
        """
        return self.predict(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the name of the only column of the output.

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        names : ndarray of shape (1,)
        """
        return np.array([f"{type(self).__name__.lower()}0"], dtype=object)

    def _choices(self) -> None:
        choice("interpolation", self.interpolation, ("linear", "step"))
        choice("outside", self.outside, ("clip", "nan", "error"))

    def _column(self, X: Any) -> np.ndarray:
        check_numbers(X, "X")
        z = check_array(X, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="X")
        if z.ndim == 2 and z.shape[1] == 1:
            z = z[:, 0]
        if z.ndim != 1:
            raise ValueError(f"z must be one-dimensional, or one column; got shape {z.shape}")
        return np.ascontiguousarray(z)
