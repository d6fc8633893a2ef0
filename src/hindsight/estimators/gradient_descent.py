"""Gradient descent on all rows at once, and stochastic gradient descent on rows drawn at random."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..batch.gradient_descent import Descent
from ..certificates.certificate import combined
from ..certificates.families.descent import AFTER, certify_descent
from ..certificates.theorems import gradient_descent_planned
from ..online.learners import descent
from ..rows.data import Data
from ..storage.registry import want
from ..validation import at_least_0, check_targets, choice, number, whole
from .mixins.linear import LinearRegressorMixin, LogisticProbabilityMixin
from .mixins.rows import read_weights
from .mixins.runs import RunsMixin, check_runs, one_or_all, starts_of
from .progress import progress_bar

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate
    from ..online.learners import Learner


class GradientDescent(RunsMixin):
    """Base of the two estimators; subclasses implement `_targets_for`."""

    _bounds_loss = True
    runs_: list[Descent]
    rho_: float  # of eta="theory"
    _setting: tuple[Any, ...]

    def __init__(
        self, loss: str = "square", eta: float | str = 0.1, rounds: int = 100, batch: str | int = "full",
        output: str = "mean", l2: float = 0.0, random_state: Any = None, *, B: float | None = None,
        power: float = 0.0, rates: Any = None, fit_intercept: bool = True, start: Any = None,
        tol: float | None = None, warm_start: bool = False, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _matrix(self, X: Any, reset: bool) -> Any:
        X = super()._matrix(X, reset)
        return np.ascontiguousarray(X) if self.batch != "full" and isinstance(X, np.ndarray) else X

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        check_runs(fields, Descent)
        for run in fields.get("runs_", []):
            want(run.features == fields["n_features_in_"], f"a run has {run.features} features")

    # ---- what was learnt

    def _weights(self) -> np.ndarray:
        check_is_fitted(self)
        return np.array([run.output(self.output) for run in self.runs_])

    @property
    def rounds_(self) -> int:
        """Rounds played so far."""
        check_is_fitted(self)
        return self.runs_[0].rounds

    @property
    def eta_(self) -> float:
        """The learning rate."""
        check_is_fitted(self)
        return self.runs_[0].learner.rate.eta

    @property
    def objectives_(self) -> Any:
        """f at each iterate of a full batch, the initial weights included; for one-vs-rest a list, as in
        ``classes_``."""
        check_is_fitted(self)
        if self.runs_[0].batch is not None:
            raise AttributeError("f along the way is known for batch='full' alone: drawn rows show only a part of it")
        return one_or_all([np.array(run.values) for run in self.runs_])

    # ---- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, certify: bool = False) -> Self:  # type: ignore[override]
        """Play `rounds` rounds; with `warm_start`, continue from the previous fit.

        If it raises, the estimator is unchanged.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Targets or labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, which multiplies its loss; None is 1.
        certify : bool, default=False
            Whether to also compute the certificate and store it as ``certificate_``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return super().fit(X, y, sample_weight, certify=certify)

    def _resumes(self) -> bool:
        return bool(self.warm_start) and self.__sklearn_is_fitted__()

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        runs = copy.deepcopy(self.__dict__.get("runs_"))
        self._check()
        if runs and self._settings() != self._setting:
            raise ValueError(
                "warm_start goes on with the same descent: loss, eta, batch, l2, B, power, rates, fit_intercept "
                "and whether output is 'best' must be as they were"
            )
        rows = self._matrix(X, reset=not runs)
        targets = self._targets_for(rows, y, fresh=not runs)
        weight = read_weights(sample_weight, rows)
        for target in targets:
            check_targets("real", target)
        data = [Data(rows, target, weight, float(bool(self.fit_intercept))) for target in targets]
        runs = runs or self._begin(data)
        with progress_bar(self.verbose, "rounds", self.rounds * len(runs)) as update:
            for run, part in zip(runs, data, strict=True):
                names, notify = self._feature_names, lambda rounds: update(advance=rounds)
                run.play(part, self.rounds, stop=self.tol or 0.0, notify=notify, names=names)
        self.runs_ = runs

    def _begin(self, data: list[Any]) -> list[Descent]:
        """New runs, one for the targets of each table."""
        learner, starts, seed = self._learner_for(data[0]), starts_of(self.start, len(data)), self._seed()
        self._setting = self._settings()
        return [self._new_run(learner, self.n_features_in_, start, seed) for start in starts]

    def _targets_for(self, X: Any, y: Any, fresh: bool) -> list[np.ndarray]:
        """The targets of each run; a fresh fit also records the classes found in y."""
        raise NotImplementedError

    def _settings(self) -> tuple[Any, ...]:
        rates = None if self.rates is None else tuple(np.ravel(self.rates).tolist())
        return (
            self.loss, self.eta, self.batch, self.l2, self.B, self.power, rates, self.fit_intercept,
            self.output == "best",
        )  # fmt: skip

    def _check(self) -> None:
        whole("rounds", self.rounds)
        if self.batch != "full":
            whole("batch", self.batch, other="'full' or ")
        choice("output", self.output, ("mean", AFTER, "last", "best"))
        if self.output == AFTER and (self.rates is not None or self.power != 0.0):
            raise ValueError("output='mean-after' is for a constant rate: give neither rates nor power with it")
        at_least_0("l2", self.l2)
        if self.tol is not None:
            number("tol", self.tol, 0)
            if self.batch != "full":
                raise ValueError("tol stops at a small gradient of f, which drawn rows do not show: take batch='full'")
        if self.eta == "theory":
            if self._lipschitz() is None:
                raise ValueError(f"eta='theory' needs a loss that is Lipschitz, which {self.loss!r} is not: give eta")
            if self.l2 > 0.0:
                raise ValueError(f"eta='theory' is for l2 = 0 (|w|^2 is not Lipschitz), got l2={self.l2!r}: give eta")
            if self.rates is not None or self.power != 0.0:
                raise ValueError("eta='theory' is a constant rate: give neither rates nor power with it")
            if self.B is None:
                raise ValueError("eta='theory' needs B, the norm of the predictors to compete with")
        elif isinstance(self.eta, str):
            raise ValueError(f"eta must be a number above 0 or 'theory', got {self.eta!r}")
        elif self.B is not None:
            raise ValueError(f"B is for eta='theory', but eta={self.eta!r}")
        if self.B is not None:
            number("B", self.B, 0)

    def _plain(self) -> Learner:
        """The learner at a rate of 1, to read the properties of its parts."""
        return descent(self.loss)

    def _lipschitz(self) -> float | None:
        """The largest slope of the loss; None if there is none."""
        constant: float | None = getattr(self._plain().loss, "lipschitz", None)
        return constant

    def _learner_for(self, data: Any) -> Learner:
        eta = self.eta
        if eta == "theory":
            if self.batch == "full":
                norm = float(data.measured(self._plain().targets, self._feature_names).x2 ** 0.5)
            else:  # a row that is drawn has the factor of its weight
                factor = data.c / data.c.sum() * np.count_nonzero(data.c)
                norm = float((factor * np.sqrt(data.finite_norms2(self._feature_names))).max())
            lipschitz = self._lipschitz()
            assert self.B is not None
            assert lipschitz is not None
            self.rho_ = lipschitz * norm
            if self.rho_ == 0.0:
                raise ValueError("eta='theory' needs a row that is not zero: max |x|_2 = 0")
            eta = float(self.B) / (self.rho_ * self.rounds**0.5)
        learner = descent(self.loss, "euclidean", eta, "explicit", 1.0, self.power)
        return learner if self.rates is None else learner.with_rates(self.rates)

    def _new_run(self, learner: Learner, features: int, start: Any, seed: int) -> Descent:
        return Descent(
            learner, features, batch=None if self.batch == "full" else int(self.batch), l2=float(self.l2),
            intercept=bool(self.fit_intercept), start=start, seed=seed, best=self.output == "best",
        )  # fmt: skip

    def _seed(self) -> int:
        """An integer seed from random_state; the generator seeded with it draws all rows."""
        given = self.random_state
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            if given < 0:
                raise ValueError(f"random_state must be at least 0, got {given!r}")
            return int(given)
        if isinstance(given, np.random.Generator):
            return int(given.integers(2**63))
        return int(check_random_state(given).randint(2**31))

    # ---- certificates

    def certify(self, X: Any, y: Any = None, sample_weight: Any = None, *, u: Any = None, tol: float = 0.01) -> Any:
        """Return the certificate of the predicting weights: their f, the f of the comparator, and the bound.

        For a full batch the bound is certain for output "mean", "mean-after" and "best"; for "last" there is no
        theorem. For drawn rows the bound on a mean iterate holds only in expectation over the draws: the verdict is
        UNCHECKABLE, and the certificate shows both values.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features), or callable
            The rows the model was trained on; for a full batch also a callable that returns a fresh iterator of
            (X, y, sample_weight or None) at each call.
        y : array-like of shape (n_rows,), default=None
            Targets as in training; None with a callable.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights as in training; None with a callable.
        u : array-like of shape (n_features,) or (n_features + 1,), default=None
            A comparator to use instead of the best in hindsight, the intercept's weight last.
        tol : float, default=0.01
            Relative accuracy to which the comparator is computed.

        Returns
        -------
        Certificate or Certificates
            One certificate; for one-vs-rest `Certificates` with one per class.
        """
        check_is_fitted(self)
        if callable(X) and self.batch != "full":
            raise ValueError("rows drawn at random are looked up in memory: give an array or a CSR matrix")
        certificates = []
        for k, (run, label) in enumerate(zip(self.runs_, self._run_labels(), strict=True)):
            data = self._data(k, X, y, sample_weight)
            certificates.append(self._promise(certify_descent(run, data, self.output, u=u, tol=tol, label=label), run))
        return combined(certificates)

    def _promise(self, certificate: Certificate, run: Descent) -> Certificate:
        """With eta="theory" from w_s = 0, the bound known in advance: B^2/(2 eta T) + eta rho^2/2, B rho/sqrt(T)."""
        if (
            self.eta != "theory"
            or self.B is None
            or self.output == AFTER
            or run.first.any()
            or not np.isfinite(certificate.bound)
        ):
            return certificate
        eta = run.learner.rate.eta
        promise = gradient_descent_planned(self.B, self.rho_, eta, run.rounds)
        where = f"for all |u| ≤ B = {self.B:g} (ρ = {self.rho_:.6g})"
        planned = "as planned" if run.batch is None else "as planned, in expectation"
        note = f"{planned}: f − f(u) ≤ B²/(2ηT) + ηρ²/2 = {promise:.6g} {where}"
        return replace(certificate, notes=(*certificate.notes, note))


class GradientDescentRegressor(LinearRegressorMixin, GradientDescent, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression by gradient descent or stochastic gradient descent on a loss of targets.

    Both minimise f(w) = sum_i c_i loss(w.x_i, y_i) / sum_i c_i + (l2/2) |w|^2, where c are the weights of the rows: in
    each round w -= eta v, where v is the gradient of f, or an estimate of it from the rows drawn [1]_.

    With a full batch, f of the mean iterate after T rounds is at most f(u) + |u - w_s|^2/(2 eta T) + (eta/(2T)) sum
    |grad f(w_t)|^2 for every u [2]_, [3]_: `certify` computes this bound with the gradients of the run. With drawn rows
    it holds in expectation over the draws.

    Parameters
    ----------
    loss : {"square", "absolute", "logistic"}, default="square"
        The loss; "logistic" takes targets in [0, 1] and predicts through the logistic link.
    eta : float or "theory", default=0.1
        Learning rate, above 0; "theory" is B / (rho sqrt(rounds)), where rho is the Lipschitz constant of f (for drawn
        rows, of its terms): the largest slope of the loss times the largest |x|, while all weights are 1. It requires a
        Lipschitz loss and ``l2=0``, and stays the same on a warm start.
    rounds : int, default=100
        Number of rounds of each `fit`, at least 1.
    batch : "full" or int, default="full"
        "full" uses all rows in each round; a number is how many rows to draw for each round, uniformly and with
        replacement.
    output : {"mean", "mean-after", "last", "best"}, default="mean"
        The weights used to predict. "mean" is the mean of the iterates at which gradients were taken (which includes
        the start but not the last weights), weighted by the rates if these vary. "mean-after" is the mean of the
        iterates after each step (which includes the last weights but not the start), for a constant rate. "last" is the
        last weights. "best" is the iterate with the smallest f: among all iterates, or, for drawn rows, among the
        start, one iterate after every n_rows draws, and the last.
    l2 : float, default=0.0
        Factor of |w|^2/2 in f, at least 0; |w|^2 includes the intercept's weight.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws.
    B : float or None, default=None
        Largest norm of the comparators u, for ``eta="theory"``.
    power : float, default=0.0
        Exponent of the rates ``eta * t**-power`` in round t; 0 keeps them constant.
    rates : array-like of shape (n_rounds,), default=None
        Learning rates, one per round, instead of `eta` and `power`.
    fit_intercept : bool, default=True
        Whether to append a constant coordinate 1 to every row; it counts in the norms.
    start : array-like of shape (n_weights,), default=None
        The weights w_s at the start, the intercept's last; None is 0.
    tol : float or None, default=None
        Stop after the first round whose gradient has at most this norm; None never stops early. For a full batch only.
    warm_start : bool, default=False
        Whether another `fit` continues where the previous one ended, including the number of rounds and the random
        draws.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Weights of the features.
    intercept_ : float
        Weight of the constant coordinate; 0 without one.
    rounds_ : int
        Rounds played so far.
    eta_ : float
        The learning rate.
    objectives_ : ndarray of shape (rounds_ + 1,)
        f at each iterate, starting with the initial weights; only for a full batch.
    rho_ : float
        The Lipschitz constant used by ``eta="theory"``.
    facts_ : Facts
        Counts and sums over the rounds so far.
    certificate_ : Certificate
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

    References
    ----------
    .. [1] H. Robbins and S. Monro, "A stochastic approximation method", Annals of Mathematical Statistics 22(3), 1951.
    .. [2] M. Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent", ICML 2003.
    .. [3] S. Shalev-Shwartz and S. Ben-David, "Understanding Machine Learning: From Theory to Algorithms", Cambridge
       University Press, 2014, chapter 14.

    Examples
    --------
    >>> from hindsight import GradientDescentRegressor
    >>> model = GradientDescentRegressor("square", eta=0.25, rounds=2, fit_intercept=False, output="last")
    >>> model.fit([[1.0], [1.0]], [1.0, 3.0]).coef_  # f(w) = w^2 - 4w + 5: from 0 to 1 to 1.5
    array([1.5])
    """

    def _targets_for(self, X: Any, y: Any, fresh: bool) -> list[np.ndarray]:
        if self._plain().targets == "sign":
            raise ValueError(f"loss {self.loss!r} is for labels: use GradientDescentClassifier")
        return self._seen(X, y)


class GradientDescentClassifier(LogisticProbabilityMixin, GradientDescent, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classification by gradient descent or stochastic gradient descent on a loss of labels.

    Both minimise f(w) = sum_i c_i loss(w.x_i, y_i) / sum_i c_i + (l2/2) |w|^2, where c are the weights of the rows: in
    each round w -= eta v, where v is the gradient of f, or an estimate of it from the rows drawn [1]_.

    With a full batch, f of the mean iterate after T rounds is at most f(u) + |u - w_s|^2/(2 eta T) + (eta/(2T)) sum
    |grad f(w_t)|^2 for every u [2]_, [3]_: `certify` computes this bound with the gradients of the run. With drawn rows
    it holds in expectation over the draws.

    Two classes share one run, in which ``classes_[1]`` is 1 and ``classes_[0]`` is -1 (0 for the logistic loss); with
    more classes, each has a one-vs-rest run, and all runs use the same draws.

    Parameters
    ----------
    loss : {"logistic", "hinge", "perceptron", "square", "absolute"}, default="logistic"
        The loss; "logistic" also gives probabilities.
    eta : float or "theory", default=0.1
        Learning rate, above 0; "theory" is B / (rho sqrt(rounds)), where rho is the Lipschitz constant of f (for drawn
        rows, of its terms): the largest slope of the loss times the largest |x|, while all weights are 1. It requires a
        Lipschitz loss and ``l2=0``, and stays the same on a warm start.
    rounds : int, default=100
        Number of rounds of each `fit`, at least 1.
    batch : "full" or int, default="full"
        "full" uses all rows in each round; a number is how many rows to draw for each round, uniformly and with
        replacement.
    output : {"mean", "mean-after", "last", "best"}, default="mean"
        The weights used to predict. "mean" is the mean of the iterates at which gradients were taken (which includes
        the start but not the last weights), weighted by the rates if these vary. "mean-after" is the mean of the
        iterates after each step (which includes the last weights but not the start), for a constant rate. "last" is the
        last weights. "best" is the iterate with the smallest f: among all iterates, or, for drawn rows, among the
        start, one iterate after every n_rows draws, and the last.
    l2 : float, default=0.0
        Factor of |w|^2/2 in f, at least 0; |w|^2 includes the intercept's weight.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws.
    B : float or None, default=None
        Largest norm of the comparators u, for ``eta="theory"``.
    power : float, default=0.0
        Exponent of the rates ``eta * t**-power`` in round t; 0 keeps them constant.
    rates : array-like of shape (n_rounds,), default=None
        Learning rates, one per round, instead of `eta` and `power`.
    fit_intercept : bool, default=True
        Whether to append a constant coordinate 1 to every row; it counts in the norms.
    start : array-like of shape (n_weights,) or (n_runs, n_weights), default=None
        The weights w_s at the start, the intercept's last; None is 0.
    tol : float or None, default=None
        Stop after the first round whose gradient has at most this norm; None never stops early. For a full batch only.
    warm_start : bool, default=False
        Whether another `fit` continues where the previous one ended, including the number of rounds and the random
        draws.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_runs, n_features_in_)
        Weights of the features: one row for two classes, otherwise one row per class.
    intercept_ : ndarray of shape (n_runs,)
        Weight of the constant coordinate; 0 without one.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    rounds_ : int
        Rounds played so far.
    eta_ : float
        The learning rate.
    objectives_ : ndarray of shape (rounds_ + 1,) or list of ndarray
        f at each iterate, starting with the initial weights; only for a full batch.
    rho_ : float
        The Lipschitz constant used by ``eta="theory"``.
    facts_ : Facts or list of Facts
        Counts and sums over the rounds so far.
    certificate_ : Certificate or Certificates
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

    References
    ----------
    .. [1] H. Robbins and S. Monro, "A stochastic approximation method", Annals of Mathematical Statistics 22(3), 1951.
    .. [2] M. Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent", ICML 2003.
    .. [3] S. Shalev-Shwartz and S. Ben-David, "Understanding Machine Learning: From Theory to Algorithms", Cambridge
       University Press, 2014, chapter 14.

    Examples
    --------
    >>> from hindsight import GradientDescentClassifier
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, 1, 0, 0]
    >>> model = GradientDescentClassifier("hinge", eta="theory", B=2.0, rounds=100).fit(X, y)
    >>> print(model.certify(X, y).verdict.value, round(model.eta_, 6))
    HOLDS 0.141421
    """

    def __init__(
        self, loss: str = "logistic", eta: float | str = 0.1, rounds: int = 100, batch: str | int = "full",
        output: str = "mean", l2: float = 0.0, random_state: Any = None, *, B: float | None = None,
        power: float = 0.0, rates: Any = None, fit_intercept: bool = True, start: Any = None,
        tol: float | None = None, warm_start: bool = False, verbose: bool = False,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    def _targets_for(self, X: Any, y: Any, fresh: bool) -> list[np.ndarray]:
        y = self._labels(X, y)
        if fresh:
            self._set_classes(y)
        return self._run_targets(y, self._plain().targets)

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        return self._targets_for(X, y, fresh=False)
