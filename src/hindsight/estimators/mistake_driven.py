"""Online classifiers that update on mistakes only: the perceptron and Winnow."""

from __future__ import annotations

from typing import Any

from ..online.learners import Learner, perceptron, winnow
from .online_classifier import OnlineClassifier


class PerceptronClassifier(OnlineClassifier):
    """Linear classifier that learns by the perceptron rule.

    With labels -1 and 1, w += y x whenever y (w.x) <= 0 [1]_: a margin of 0 is a mistake. Two classes share one run, in
    which ``classes_[1]`` is 1; with more classes, each has a one-vs-rest run.

    If y (u.x) >= 1 on every row for some u, the number M of mistakes is at most (X2 |u|)^2, where X2 is the largest |x|
    [2]_. For every u, M <= ((a + sqrt(a^2 + 4H))/2)^2 with a = X2 |u| and H the hinge loss of u over the mistakes [3]_.
    With sample weights c the step is w += c y x, M and H are sums of weights instead of counts, and X2 is the largest
    sqrt(c) |x|.

    Parameters
    ----------
    average : {"before", "after"} or None, default=None
        The weights used to predict: None for the last ones, "before" for the mean of w_1, ..., w_T, "after" for the
        mean of w_2, ..., w_(T+1).
    fit_intercept : bool, default=True
        Whether to append a constant coordinate 1 to every row; it counts in the norms.
    passes : int, default=1
        Number of passes over the rows in `fit`, in the order given.
    start : array-like of shape (n_weights,) or (n_runs, n_weights), default=None
        The weights w_1, the intercept's last; None is 0.
    keep_margins : bool, default=False
        Whether to keep the margin of each row before its update, as ``margins_``.

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
    .. [1] F. Rosenblatt, "The perceptron: a probabilistic model for information storage and organization in the
       brain", Psychological Review 65(6), 1958.
    .. [2] A. B. J. Novikoff, "On convergence proofs on perceptrons", Symposium on the Mathematical Theory of Automata,
       1962.
    .. [3] Y. Freund and R. E. Schapire, "Large margin classification using the perceptron algorithm", Machine Learning
       37(3), 1999.

    Examples
    --------
    >>> from hindsight import PerceptronClassifier
    >>> model = PerceptronClassifier(fit_intercept=False).fit([[1.0, 0.0], [0.0, 1.0]], ["yes", "no"])
    >>> model.predict([[2.0, 1.0]])
    array(['yes'], dtype='<U3')
    """

    def _learner(self) -> Learner:
        return perceptron()


class WinnowClassifier(OnlineClassifier):
    """Linear classifier that learns by Winnow: multiplicative updates on mistakes.

    With labels -1 and 1, each weight is multiplied by e^(eta y x_i) on a mistake, y (w.x) <= 0, and the weights are
    normalised. Balanced Winnow does the same with the doubled row (x, -x), which gives signed weights. Two classes
    share one run, in which ``classes_[1]`` is 1; with more classes, each has a one-vs-rest run.

    If |x_i| <= 1 and some u in the simplex has y (u.x) >= delta on every row, it makes at most RE(u||w_1)/(eta delta -
    ln cosh eta) mistakes, where RE is the relative entropy. With the rate that `margin` sets this is at most 2 ln
    N/delta^2 for N features (2N if balanced), so irrelevant features cost little [1]_, [2]_. With sample weights the
    certificate bounds the sum of the weights of the mistakes, not their number.

    Parameters
    ----------
    eta : float, default=0.1
        Learning rate, above 0.
    margin : float or None, default=None
        A margin delta between 0 and 1, which sets eta = ln((1 + delta)/(1 - delta))/2 in place of `eta`.
    balanced : bool, default=True
        Whether the weights are signed; if False they lie on the simplex.
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
    start : array-like of shape (n_weights,) or (n_runs, n_weights), default=None
        The weights w_1, the intercept's last; None is equal weights (0 for signed ones).
    keep_margins : bool, default=False
        Whether to keep the margin of each row before its update, as ``margins_``.

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
    .. [1] N. Littlestone, "Learning quickly when irrelevant attributes abound: a new linear-threshold algorithm",
       Machine Learning 2(4), 1988.
    .. [2] J. Kivinen and M. K. Warmuth, "Exponentiated gradient versus gradient descent for linear predictors",
       Information and Computation 132(1), 1997.

    Examples
    --------
    >>> from hindsight import WinnowClassifier
    >>> model = WinnowClassifier(margin=0.5, fit_intercept=False).fit([[1, -1], [-1, 1]], [1, 0])
    >>> model.coef_.round(3)
    array([[ 0.25, -0.25]])
    """

    def __init__(
        self, eta: float = 0.1, margin: float | None = None, balanced: bool = True, *, features: Any = None,
        power: float = 0.0, rates: Any = None,
        average: str | None = None, fit_intercept: bool = True, passes: int = 1, start: Any = None,
        keep_margins: bool = False,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _learner(self) -> Learner:
        return winnow(self.eta, self.margin, self.balanced, self.power)
