"""Isotron and batch GLM-tron: every round is a pass over all rows with one averaged update."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..batch.isotonic import check_lipschitz
from ..batch.isotron import Curve, GivenLink, LearntLink
from ..batch.links import LINK_FUNCTIONS, own_link
from ..rows.labels import class_probabilities
from ..validation import choice
from .mixins.labels import LabelsMixin
from .mixins.runs import one_or_all
from .rounds import RoundsMixin, RoundsRegressorMixin


class IsotronRegressor(RoundsRegressorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression that learns both a direction w and a nondecreasing link u, such that the mean of y is u(w.x).

    In each round the link u_t is the isotonic regression of y on the margins w_t.x, and w_(t+1) = w_t + eta mean((y -
    u_t(w_t.x)) x), from w_1 = 0 [1]_. With `lipschitz` the link comes from Lipschitz isotonic regression [2]_.

    If y = u(w*.x) with a nondecreasing and lambda-Lipschitz u, the mean squared errors of all rounds add up to at most
    lambda^2 X2^2 |w*|^2. Declare w* as ``certify(..., planted=w)``.

    Parameters
    ----------
    lipschitz : float or None, default=None
        None learns the link by isotonic regression, with lambda = 1 in the step and in the theorem. A constant L learns
        it by L-Lipschitz isotonic regression (L-Isotron), with lambda = L, for noisy data.
    rounds : int, default=100
        Number of rounds, at least 1; each is a pass over all rows.
    eta : float or None, default=None
        Step size; None is 1/(lambda X2^2), where X2 is the largest |x| among the rows of positive weight.
    scale_x : bool, default=False
        Whether to divide the rows by X2 for training; ``coef_`` is for the rows as given, and ``x_scale_`` is the
        divisor.
    scale_y : bool, default=False
        Whether to map y to [0, 1] by its smallest and largest value for training; `predict` maps back.
    held_out : float, default=0.0
        Fraction of the rows to hold out, chosen at random, for selecting the best iterate; 0 selects it by the training
        loss.
    random_state : int, RandomState or None, default=None
        Seed of that random choice.
    warm_start : bool, default=False
        Whether `fit` continues from the last weights of the previous fit.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Weights of the features in the best round, for the rows as given.
    intercept_ : float
        Weight of the constant coordinate; 0 without one.
    link_ : Curve
        The learnt link, ready to plot: knots z and the values there, linear between knots and constant beyond them.
    losses_ : ndarray of shape (rounds,)
        Mean squared error of the training rows in every round.
    best_round_ : int
        The round, counted from 1, whose iterate is used to predict.
    eta_ : float
        The step size.
    x_scale_ : float
        The divisor of the rows.
    y_offset_, y_scale_ : float
        The targets were learnt as (y - y_offset_) / y_scale_.
    facts_ : Facts
        Counts and sums over the rounds.
    n_iter_ : int
        Number of rounds of the last `fit`.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

    References
    ----------
    .. [1] A. T. Kalai and R. Sastry, "The Isotron algorithm: high-dimensional isotonic regression", COLT 2009.
    .. [2] S. Kakade, A. Kalai, V. Kanade and O. Shamir, "Efficient learning of generalized linear and single index
       models with isotonic regression", NIPS 2011.

    Examples
    --------
    >>> from hindsight import IsotronRegressor
    >>> model = IsotronRegressor(rounds=3).fit([[1.0], [-1.0]], [0.9, 0.1])
    >>> model.predict([[1.0], [0.0], [-5.0]])
    array([0.9, 0.5, 0.1])
    >>> print(model.certify([[1.0], [-1.0]], [0.9, 0.1], planted=[0.4]).lines()[7].strip())
    the theorem promises at most 0.16; met with equality
    """

    def __init__(
        self, lipschitz: float | None = None, rounds: int = 100, eta: float | None = None, *, scale_x: bool = False,
        scale_y: bool = False, held_out: float = 0.0, random_state: Any = None, warm_start: bool = False,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _part(self) -> LearntLink:
        return _learnt(self.lipschitz)

    @property
    def link_(self) -> Curve:
        """The learnt link in the units of y."""
        check_is_fitted(self)
        z, mean = self.histories_[0].link.knots()
        return Curve(z, self.y_offset_ + self.y_scale_ * mean)


class IsotronClassifier(LabelsMixin, RoundsMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier that learns both a direction and the link from margins to probabilities.

    Isotron on targets 0 and 1: in each round the link u_t is the isotonic regression of the targets on the margins
    w_t.x, and w_(t+1) = w_t + eta mean((y - u_t(w_t.x)) x), from w_1 = 0 [1]_, [2]_. The link is calibrated on the
    training rows: among rows with predicted probability p, the mean of the targets is p.

    Two classes share one run, in which ``classes_[1]`` is 1; with more classes, each has a one-vs-rest run, and the
    probabilities are normalised to sum to 1.

    Parameters
    ----------
    lipschitz : float or None, default=None
        None learns the link by isotonic regression, with lambda = 1 in the step and in the theorem. A constant L learns
        it by L-Lipschitz isotonic regression (L-Isotron), with lambda = L, for noisy data.
    rounds : int, default=100
        Number of rounds, at least 1; each is a pass over all rows.
    eta : float or None, default=None
        Step size; None is 1/(lambda X2^2), where X2 is the largest |x| among the rows of positive weight.
    scale_x : bool, default=False
        Whether to divide the rows by X2 for training; ``coef_`` is for the rows as given, and ``x_scale_`` is the
        divisor.
    held_out : float, default=0.0
        Fraction of the rows to hold out, chosen at random, for selecting the best iterate; 0 selects it by the training
        loss.
    random_state : int, RandomState or None, default=None
        Seed of that random choice.
    warm_start : bool, default=False
        Whether `fit` continues from the last weights of the previous fit.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_runs, n_features_in_)
        Weights of the features in the best round, for the rows as given.
    intercept_ : ndarray of shape (n_runs,)
        Weight of the constant coordinate; 0 without one.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    link_ : Curve or list of Curve
        The learnt link, ready to plot: knots z and the values there; for more than two classes one per class.
    losses_ : ndarray of shape (rounds,) or (n_classes, rounds)
        Mean squared error of the training rows in every round.
    best_round_ : int or list of int
        The round, counted from 1, whose iterate is used to predict.
    eta_ : float
        The step size.
    x_scale_ : float
        The divisor of the rows.
    facts_ : Facts or list of Facts
        Counts and sums over the rounds.
    n_iter_ : int
        Number of rounds of the last `fit`.
    certificate_ : Certificate or Certificates
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

    References
    ----------
    .. [1] A. T. Kalai and R. Sastry, "The Isotron algorithm: high-dimensional isotonic regression", COLT 2009.
    .. [2] S. Kakade, A. Kalai, V. Kanade and O. Shamir, "Efficient learning of generalized linear and single index
       models with isotonic regression", NIPS 2011.

    Examples
    --------
    >>> from hindsight import IsotronClassifier
    >>> model = IsotronClassifier(rounds=5).fit([[-2.0], [-1.0], [1.0], [2.0]], ["no", "no", "yes", "yes"])
    >>> model.predict_proba([[-1.0], [0.0], [1.0]])
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """

    def __init__(
        self, lipschitz: float | None = None, rounds: int = 100, eta: float | None = None, *, scale_x: bool = False,
        held_out: float = 0.0, random_state: Any = None, warm_start: bool = False, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _part(self) -> LearntLink:
        return _learnt(self.lipschitz)

    def _targets_for(self, X: Any, y: Any, weight: np.ndarray | None) -> list[np.ndarray]:
        y = self._labels(X, y)
        if not hasattr(self, "classes_"):
            self._set_classes(y)
        return self._run_targets(y, "unit")

    @property
    def link_(self) -> Any:
        """The learnt link; for one-vs-rest a list, in the order of ``classes_``."""
        check_is_fitted(self)
        return one_or_all([Curve(*h.link.knots()) for h in self.histories_])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class, in the order of ``classes_``.
        """
        return class_probabilities(self._means(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row, the first one in case of ties.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
        """
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])


class GLMtronBatchRegressor(RoundsRegressorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression through a known link u by GLM-tron, with one averaged update per pass over the rows.

    In each round w_(t+1) = w_t + eta mean((y - u(w_t.x)) x), for a link u that is nondecreasing and lambda-Lipschitz.
    This is gradient descent on the mean of the matching loss of the link.

    If y = u(w*.x) on every row and eta lambda X2^2 < 2, the mean squared errors of all rounds add up to at most
    |w*|^2/(eta (2/lambda - eta X2^2)) [1]_. Declare w* as ``certify(..., planted=w)``; without it, the certificate is
    about the matching loss.

    Parameters
    ----------
    link : {"identity", "logistic", "probit", "clipped", "tanh"} or callable, default="logistic"
        The link: "clipped" is linear, clipped to [0, 1]; "tanh" is (1 + tanh z)/2. A callable takes an array of
        margins, or one margin if numba can compile it; it is checked at all margins that occur.
    rounds : int, default=100
        Number of rounds, at least 1; each is a pass over all rows.
    eta : float or None, default=None
        Step size; None is 1/(lambda X2^2), where X2 is the largest |x| among the rows of positive weight.
    lipschitz : float or None, default=None
        The Lipschitz constant, if the link is a callable.
    fit_intercept : bool, default=True
        Whether to append a constant coordinate 1 to every row; it counts in the norms.
    held_out : float, default=0.0
        Fraction of the rows to hold out, chosen at random, for selecting the best iterate; 0 selects it by the training
        loss.
    random_state : int, RandomState or None, default=None
        Seed of that random choice.
    warm_start : bool, default=False
        Whether `fit` continues from the last weights of the previous fit.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Weights of the features in the best round, for the rows as given.
    intercept_ : float
        Weight of the constant coordinate; 0 without one.
    losses_ : ndarray of shape (rounds,)
        Mean squared error of the training rows in every round.
    best_round_ : int
        The round, counted from 1, whose iterate is used to predict.
    eta_ : float
        The step size.
    x_scale_ : float
        The divisor of the rows.
    facts_ : Facts
        Counts and sums over the rounds.
    n_iter_ : int
        Number of rounds of the last `fit`.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``.
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
    >>> from hindsight import GLMtronBatchRegressor
    >>> model = GLMtronBatchRegressor("identity", rounds=1, fit_intercept=False).fit([[1.0], [-1.0]], [0.5, -0.5])
    >>> float(model.certify([[1.0], [-1.0]], [0.5, -0.5], planted=[0.5]).bound)
    0.25
    """

    def __init__(
        self, link: Any = "logistic", rounds: int = 100, eta: float | None = None, *, lipschitz: float | None = None,
        fit_intercept: bool = True, held_out: float = 0.0, random_state: Any = None, warm_start: bool = False,
        verbose: bool = False,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _part(self) -> GivenLink:
        if callable(self.link):
            link = own_link(self.link, self.lipschitz)
        else:
            link = LINK_FUNCTIONS[choice("link", self.link, LINK_FUNCTIONS)]
            if self.lipschitz is not None:
                raise ValueError(f"lipschitz is for a link of your own; {self.link!r} has {link.lipschitz:g}")
        return GivenLink(link, link.lipschitz)


def _learnt(lipschitz: float | None) -> LearntLink:
    constant = check_lipschitz(lipschitz)
    return LearntLink(constant, constant if constant < math.inf else 1.0)
