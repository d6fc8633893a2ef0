"""The default learners: no rate to set, no scaling to do."""

from __future__ import annotations

from typing import Any

from ..online.panel import Panel, PanelRun, auto, shares_of
from ..online.run import Run
from ..validation import choice
from .mixins.runs import RunsMixin, SetsMixin
from .online_classifier import OnlineClassifier
from .online_regressor import OnlineRegressor


class PanelMixin(RunsMixin):
    """Runs of a panel instead of runs of one learner."""

    _declared = None  # `features` says what members see

    def _panel(self, **settings: Any) -> Panel:
        """The given panel, or the default one."""
        panel: Panel | None = self.panel
        if panel is not None:
            return panel
        cells = choice("features", self.features, ("columns", "cells")) == "cells"
        return auto(self.loss, self.second_order, drift=float(self.drift), cells=cells, **settings)

    def _new_run(self, learner: Any, features: int, start: Any = None) -> Run:
        return PanelRun(learner, features, intercept=self.fit_intercept)

    @property
    def shares_(self) -> dict[str, float]:
        """The weight of each member in the mixture, by name; the mean over the runs if there are several."""
        return shares_of(self.runs_)

    @property
    def cells_(self) -> list[Any]:
        """Bin edges and weights of each column and pair of columns that the members see as cells."""
        if getattr(self, "runs_", [None])[0] is None or self.runs_[0].cells is None:
            raise AttributeError("there are no cells: they are for features='cells', and after fit")
        names = self._feature_names
        names = list(self.__dict__.get("_column", ())) or None if names is None else names
        tables = [run.cell_tables(names) for run in self.runs_]
        return tables if len(tables) > 1 else tables[0]


class AutoRegressor(PanelMixin, OnlineRegressor):
    """Linear regression that needs no rate and no scaling: a panel of learners, aggregated.

    The members are lazy implicit steps in the running geometry at five rates, three diagonal Newton learners and, on
    the first 255 features, online ridge regression. Each member predicts every row before learning it. The prediction
    of the panel is the mean of the members' predictions, with weights that depend on their losses so far [1]_, [2]_,
    [3]_. For the square loss this mean is corrected by a ridge regression on the members' deviations from it. The units
    of the columns and of the target do not matter.

    The loss of the run is at most the bound of any member that has a theorem, plus a cost of aggregation, which is
    measured: `certify` finds the smallest such bound on the rows of the run.

    Parameters
    ----------
    loss : {"square", "absolute", "quantile", "huber"}, default="square"
        The loss.
    quantile : float, default=None
        For the loss "quantile": which quantile to predict, between 0 and 1; None is 0.5.
    delta : float, default=None
        For the loss "huber": the size of the error above which the loss is linear, above 0; None is 1.
    second_order : {"auto", "yes", "no"}, default="auto"
        Whether to include members that keep a matrix: "auto" includes them on the first 256 coordinates, "yes" on all
        coordinates, "no" leaves them out.
    drift : float, default=0.0
        Fraction of the mixture weight that is redistributed equally over the members after each round, for streams that
        change over time.
    features : {"columns", "cells"}, default="columns"
        "cells" adds eight members that see the numeric columns binned at their running quantiles, and pairs of binned
        columns, for targets that are not linear in the columns.
    panel : Panel, default=None
        Learners to aggregate instead of the default ones; `loss`, `second_order`, `drift` and `features` are then
        ignored and the panel's own settings apply.
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
        The mean of the members' weights, weighted by their shares and corrected; with cells, the part of the model that
        is linear in the columns.
    cells_ : list of CellTable
        With ``features="cells"``, the rest of the model: bin edges and weights of each column and pair of columns,
        those with the largest effect on predictions first.
    intercept_ : float
        Weight of the constant coordinate; 0 without one.
    shares_ : dict of str to float
        The weight of each member in the mixture.
    facts_ : Facts
        Counts and sums over the rounds so far.
    margins_ : ndarray of shape (n_rows,)
        Predictions of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

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


class AutoClassifier(SetsMixin, PanelMixin, OnlineClassifier):
    """Classification that needs no rate and no scaling: a panel of learners, aggregated.

    The members are lazy implicit steps in the running geometry at five rates, three diagonal Newton learners and, on
    the first 255 features, two second-order learners. For the logistic loss the prediction is the mean of the members'
    probabilities, with weights that depend on their losses so far [1]_, [2]_, [3]_; a second-order learner on the
    members' deviations from this mean corrects it. The units of the columns do not matter.

    Two classes share one panel, in which ``classes_[1]`` is positive; with more classes, each has a one-vs-rest panel,
    and the probabilities are normalised to sum to 1.

    Parameters
    ----------
    loss : {"logistic", "hinge"}, default="logistic"
        The loss; "logistic" gives probabilities.
    class_weight : {"balanced"} or dict, default=None
        Weights of the classes, which multiply the weights of their rows. "balanced" gives class k the weight n/(K n_k),
        where K is the number of classes and n_k of n rows belong to class k: `fit` counts all its rows, `partial_fit`
        and `learn_one` those up to and including the row at hand. A dict maps classes to weights; classes that are not
        in it have weight 1.
    second_order : {"auto", "yes", "no"}, default="auto"
        Whether to include members that keep a matrix: "auto" includes them on the first 256 coordinates, "yes" on all
        coordinates, "no" leaves them out.
    drift : float, default=0.0
        Fraction of the mixture weight that is redistributed equally over the members after each round, for streams that
        change over time.
    features : {"columns", "cells"}, default="columns"
        "cells" adds eight members that see the numeric columns binned at their running quantiles, and pairs of binned
        columns, for targets that are not linear in the columns.
    panel : Panel, default=None
        Learners to aggregate instead of the default ones; `loss`, `second_order`, `drift` and `features` are then
        ignored and the panel's own settings apply.
    fit_intercept : bool, default=True
        Whether to append a constant coordinate 1 to every row.
    passes : int, default=1
        Number of passes over the rows in `fit`, in the order given.
    keep_margins : bool, default=False
        Whether to keep the margin of each row before its update, as ``margins_``: for the logistic loss the logit of
        the mixture's probability.
    interval : float, default=None
        Fraction of the rows whose label `predict_set` has to contain, between 0 and 1; only for the logistic loss. None
        makes no sets.

    Attributes
    ----------
    coef_ : ndarray of shape (n_runs, n_features_in_)
        The mean of the members' weights, weighted by their shares. For the logistic loss, predictions and certificates
        use the mean of the members' probabilities instead.
    cells_ : list of CellTable, or list of such lists
        With ``features="cells"``, the bin edges and weights of each column and pair of columns, those with the largest
        effect on margins first; one list per run if there are several.
    intercept_ : ndarray of shape (n_runs,)
        Weight of the constant coordinate; 0 without one.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    shares_ : dict of str to float
        The weight of each member in the mixture; the mean over the runs if there are several.
    facts_ : Facts or list of Facts
        Counts and sums over the rounds so far.
    margins_ : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Margins of the rows of the last call, each before its update; only with ``keep_margins=True``.
    certificate_ : Certificate or Certificates
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

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
