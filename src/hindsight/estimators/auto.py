"""The default learners: no rate to set, no scaling to do."""

from __future__ import annotations

from typing import Any

from ..online.panel import Panel, PanelRun, auto, shares_of
from ..online.run import Run
from ..validation import choice
from .mixins import LogisticProbabilityMixin, SetsMixin
from .online_classifier import OnlineClassifier
from .online_regressor import OnlineRegressor


class PanelMixin:
    """Runs of a panel instead of runs of one learner."""

    runs_: list[Any]
    loss: str
    second_order: str
    drift: float
    features: str
    panel: Panel | None
    fit_intercept: bool
    _declared = None  # `features` says what members see

    def _panel(self, **settings: Any) -> Panel:
        """The panel that is given, or the default one."""
        if self.panel is not None:
            return self.panel
        cells = choice("features", self.features, ("columns", "cells")) == "cells"
        return auto(self.loss, self.second_order, drift=float(self.drift), cells=cells, **settings)

    def _begin(self, features: int, count: int) -> None:
        """Start so many runs."""
        panel = self._learner()  # type: ignore[attr-defined]
        self.runs_ = [self._new_run(panel, features) for _ in range(count)]
        self._cover()  # type: ignore[attr-defined]

    def _new_run(self, learner: Any, features: int, start: Any = None) -> Run:
        return PanelRun(learner, features, intercept=self.fit_intercept)

    @property
    def shares_(self) -> dict[str, float]:
        """The weight of each member in the mixture by name; of several runs the mean over them."""
        return shares_of(self.runs_)

    @property
    def cells_(self) -> list[Any]:
        """Cuts and weights of each column and pair of columns on which members see cells."""
        if getattr(self, "runs_", [None])[0] is None or self.runs_[0].cells is None:
            raise AttributeError("there are no cells: they are for features='cells', and after fit")
        names = self._feature_names  # type: ignore[attr-defined]
        names = list(self.__dict__.get("_column", ())) or None if names is None else names
        tables = [run.cell_tables(names) for run in self.runs_]
        return tables if len(tables) > 1 else tables[0]


class AutoRegressor(PanelMixin, OnlineRegressor):
    """Linear regression that needs no rate and no scaling: a panel of learners, aggregated.

    The members are lazy implicit steps in the running geometry at five rates, three diagonal Newton learners and, on
    the first 255 features, online ridge regression. Each predicts every row before it is learnt; the prediction is
    their mean, weighted by what each has lost [1]_, [2]_, [3]_. For the square loss ridge regression on how far the
    members are from that mean corrects it. Neither the units of a column nor those of the target matter.

    The loss of the run is at most the promise of any member that has a theorem, plus a price for aggregation that is
    measured: `certify` finds the smallest such promise on the rows of the run.

    Parameters
    ----------
    loss : {"square", "absolute", "quantile", "huber"}, default="square"
        The loss.
    quantile : float, default=None
        Of the loss "quantile" which to predict, between 0 and 1; None is 0.5.
    delta : float, default=None
        Of the loss "huber" from where on an error counts linearly, above 0; None is 1.
    second_order : {"auto", "yes", "no"}, default="auto"
        Whether members that keep a matrix take part: "auto" on the first 256 coordinates, "yes" on all.
    drift : float, default=0.0
        The part of the weight that all members share again after each round, for streams that change.
    features : {"columns", "cells"}, default="columns"
        What members see: "cells" lets eight more see numeric columns cut at their running quantiles, and pairs of
        these, for truths that are not linear.
    panel : Panel, default=None
        Learners to aggregate in place of these; `loss`, `second_order`, `drift` and `features` are then the panel's
        own.
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
        The mean of the members' weights by their shares, corrected; with cells the part that is linear in the columns.
    cells_ : list of CellTable
        With cells, what is added to that: cuts and weights of each column and pair of columns, those that move
        predictions most first.
    intercept_ : float
        Weight of the constant coordinate; 0 without one.
    shares_ : dict of str to float
        The weight of each member in the mixture.
    facts_ : Facts
        What was counted and summed over the rounds so far.
    margins_ : ndarray of shape (n_rows,)
        Predictions of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the rows had names.

    References
    ----------
    .. [1] V. Vovk, "Aggregating strategies", COLT 1990.
    .. [2] J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and stochastic
       optimization", Journal of Machine Learning Research 12, 2011.
    .. [3] V. Vovk, "Competitive on-line statistics", International Statistical Review 69(2), 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight import AutoRegressor
    >>> x = np.arange(50.0)[:, None]
    >>> model = AutoRegressor().fit(1e6 * x, 2.0 * x[:, 0] + 1.0)
    >>> round(float(model.predict([[1e6 * 60.0]])[0]))
    99
    """

    def __init__(
        self, loss: str = "square", *, quantile: float | None = None, delta: float | None = None,
        second_order: str = "auto", drift: float = 0.0, features: str = "columns", panel: Panel | None = None,
        fit_intercept: bool = True, passes: int = 1, keep_margins: bool = False,
        interval: float | None = None,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    average = None
    start = None

    def _learner(self) -> Any:
        panel = self._panel(quantile=self.quantile, delta=self.delta)
        if panel.targets != "real":
            raise ValueError(f"loss {panel.loss.name!r} is for labels: use AutoClassifier")
        return panel


class AutoClassifier(SetsMixin, PanelMixin, LogisticProbabilityMixin, OnlineClassifier):
    """Classification that needs no rate and no scaling: a panel of learners, aggregated.

    The members are lazy implicit steps in the running geometry at five rates, three diagonal Newton learners and, where
    on the first 255 features, two of second order. For the logistic loss the prediction is the mean of the members'
    probabilities, weighted by what each has lost [1]_, [2]_, [3]_, which second order on how far the members are from
    it corrects. The units of columns do not matter.

    Two classes share one panel, in which ``classes_[1]`` is positive; of more classes each has a panel against the
    rest, and their probabilities are scaled to sum to 1.

    Parameters
    ----------
    loss : {"logistic", "hinge"}, default="logistic"
        The loss; "logistic" gives probabilities.
    class_weight : {"balanced"} or dict, default=None
        Weights of classes, which multiply those of their rows: "balanced" for n/(K n_k), of all rows in `fit`, and of
        the rows so far where they come later or one by one; or a dict, 1 for classes that it has not.
    second_order : {"auto", "yes", "no"}, default="auto"
        Whether members that keep a matrix take part: "auto" on the first 256 coordinates, "yes" on all.
    drift : float, default=0.0
        The part of the weight that all members share again after each round, for streams that change.
    features : {"columns", "cells"}, default="columns"
        What members see: "cells" lets eight more see numeric columns cut at their running quantiles, and pairs of
        these, for truths that are not linear.
    panel : Panel, default=None
        Learners to aggregate in place of these; `loss`, `second_order`, `drift` and `features` are then the panel's
        own.
    fit_intercept : bool, default=True
        Whether a constant coordinate 1 joins every row.
    passes : int, default=1
        How many times `fit` goes through the rows, in the order given.
    keep_margins : bool, default=False
        Whether to keep the margin of each row before its update, as ``margins_``: for the logistic loss the logit of
        the mixture's probability.
    interval : float, default=None
        The part of rows whose label `predict_set` is to contain, between 0 and 1, for the logistic loss; None makes no
        sets.

    Attributes
    ----------
    coef_ : ndarray of shape (n_runs, n_features_in_)
        The mean of the members' weights by their shares. For the logistic loss what predicts, and is certified, is the
        mean of their probabilities instead.
    cells_ : list of CellTable, or list of such lists
        With cells, the weights of these: cuts and weights of each column and pair of columns, those that move margins
        most first; of several runs one list each.
    intercept_ : ndarray of shape (n_runs,)
        Weight of the constant coordinate; 0 without one.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    shares_ : dict of str to float
        The weight of each member in the mixture; of several runs the mean over them.
    facts_ : Facts or list of Facts
        What was counted and summed over the rounds so far.
    margins_ : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Margins of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate or Certificates
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where the rows had names.

    References
    ----------
    .. [1] V. Vovk, "Aggregating strategies", COLT 1990.
    .. [2] J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and stochastic
       optimization", Journal of Machine Learning Research 12, 2011.
    .. [3] R. Jézéquel, P. Gaillard and A. Rudi, "Efficient improper learning for online logistic regression", COLT
       2020.

    Examples
    --------
    >>> from hindsight import AutoClassifier
    >>> model = AutoClassifier().fit([[1e6], [-1e6], [2e6], [-2e6]], ["up", "down", "up", "down"])
    >>> model.predict([[1.5e6]]).tolist()
    ['up']
    """

    def __init__(
        self, loss: str = "logistic", *, class_weight: Any = None, second_order: str = "auto", drift: float = 0.0,
        features: str = "columns", panel: Panel | None = None, fit_intercept: bool = True, passes: int = 1,
        keep_margins: bool = False, interval: float | None = None,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    average = None
    start = None

    def _learner(self) -> Any:
        panel = self._panel()
        if panel.targets == "real":
            raise ValueError(f"loss {panel.loss.name!r} is for numbers: use AutoRegressor")
        return panel
