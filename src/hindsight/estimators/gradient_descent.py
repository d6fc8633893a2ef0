"""Gradient descent on all rows at once, and stochastic gradient descent on rows drawn at random (N2)."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from ..batch.gradient_descent import Descent
from ..certificates.batch_theorems import gradient_descent_planned
from ..certificates.gradient_descent import certify_descent
from ..errors import RowError
from ..online.learners import descent
from ..rows.data import Data
from ..validation import check_targets, choice, number
from .base import OnlineEstimator, SaveMixin
from .classify import DescentClassifier, OnlineClassifier
from .least_squares import LeastSquares, at_least_0, check_indices, progress, weights_of
from .regress import OnlineRegressor

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate
    from ..online.learners import Learner


__all__ = ["GradientDescentClassifier", "GradientDescentRegressor", "LeastSquares"]

LIPSCHITZ = ("absolute", "logistic", "hinge", "perceptron")  # losses whose slope is at most 1


class GradientDescent(SaveMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the two descents; see `sweep` for what is played. What is read and shown is as for online estimators."""

    runs_: list[Descent]
    n_features_in_: int
    rho_: float  # of eta="theory"
    _setting: tuple[Any, ...]

    _read, _kept, _restore = OnlineEstimator._read, OnlineEstimator._kept, OnlineEstimator._restore
    _data, _coef, _margins, _run_labels = (
        OnlineEstimator._data,
        OnlineEstimator._coef,
        OnlineEstimator._margins,
        OnlineEstimator._run_labels,
    )
    facts_, intercept_ = OnlineEstimator.facts_, OnlineEstimator.intercept_
    __sklearn_is_fitted__ = OnlineEstimator.__sklearn_is_fitted__

    def __init__(
        self,
        loss: str = "square",
        eta: float | str = 0.1,
        rounds: int = 100,
        batch: str | int = "full",
        output: str = "mean",
        l2: float = 0.0,
        random_state: Any = None,
        *,
        B: float | None = None,
        power: float = 0.0,
        rates: Any = None,
        fit_intercept: bool = True,
        start: Any = None,
        tol: float | None = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.eta = eta
        self.rounds = rounds
        self.batch = batch
        self.output = output
        self.l2 = l2
        self.random_state = random_state
        self.B = B
        self.power = power
        self.rates = rates
        self.fit_intercept = fit_intercept
        self.start = start
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _matrix(self, X: Any, reset: bool) -> Any:
        X = OnlineEstimator._matrix(self, X, reset)
        check_indices(X)
        return np.ascontiguousarray(X) if self.batch != "full" and isinstance(X, np.ndarray) else X

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
        """The rate that eta stands for."""
        check_is_fitted(self)
        return self.runs_[0].learner.rate.eta

    @property
    def objectives_(self) -> Any:
        """F at each iterate of a full batch, the start first; for one-vs-rest a list, in the order of `classes_`."""
        check_is_fitted(self)
        if self.runs_[0].batch is not None:
            raise AttributeError("f along the way is known for batch='full' alone: drawn rows show only a part of it")
        each = [np.array(run.values) for run in self.runs_]
        return each[0] if len(each) == 1 else each

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, certify: bool = False) -> Self:
        """Play `rounds` rounds from the start; after an earlier fit with `warm_start`, so many more.

        On an error everything is as before the call.

        Parameters
        ----------
        X : rows: array, CSR matrix or dataframe.
        y : targets.
        sample_weight : importance of each row; it multiplies the loss.
        certify : also make the certificate, as `certificate_`.
        """
        kept = self._kept()
        resume = self.warm_start and self.__sklearn_is_fitted__()
        runs = copy.deepcopy(self.runs_) if resume else None
        for name in [k for k in vars(self) if k.endswith("_") and not (resume and k != "certificate_")]:
            delattr(self, name)
        try:
            self._check()
            rows = self._matrix(X, reset=not resume)
            targets = self._begin_or_resume(rows, y, runs)
            weight = weights_of(sample_weight, rows)
            for target in targets:
                check_targets("real", target)
            data = [Data(rows, target, weight, float(bool(self.fit_intercept))) for target in targets]
            if runs is None:
                learner, count = self._learner_for(data[0]), len(data)
                starts = [None] * count if self.start is None else list(np.atleast_2d(np.asarray(self.start, float)))
                if len(starts) != count:
                    raise ValueError(f"start must have one row for each of the {count} learners, got {len(starts)}")
                seed = self._seed()
                runs = [self._sweep(learner, rows.shape[1], start, seed) for start in starts]
                self._setting = self._settings()
            with progress(self.verbose, "rounds", self.rounds * len(runs)) as tell:
                for run, part in zip(runs, data, strict=True):
                    names = getattr(self, "feature_names_in_", None)
                    run.play(part, self.rounds, stop=self.tol or 0.0, notify=tell, names=names)
            self.runs_ = runs
            if certify:
                self.certificate_ = self.certify(X, y, sample_weight)
        except BaseException:
            self._restore(kept)
            raise
        return self

    def _begin_or_resume(self, X: Any, y: Any, runs: list[Descent] | None) -> list[np.ndarray]:
        """Targets for each run, as it sees them."""
        if runs is not None and self._settings() != self._setting:
            raise ValueError(
                "warm_start goes on with the same descent: loss, eta, batch, l2, B, power, rates, fit_intercept and "
                "whether output is 'best' must be as they were"
            )
        return self._targets_for(X, y, runs is None)

    def _targets_for(self, X: Any, y: Any, fresh: bool) -> list[np.ndarray]:
        raise TypeError(f"{type(self).__name__} must say what its targets are")

    def _settings(self) -> tuple[Any, ...]:
        rates = None if self.rates is None else tuple(np.ravel(self.rates).tolist())
        return (
            self.loss, self.eta, self.batch, self.l2, self.B, self.power, rates, self.fit_intercept,
            self.output == "best",
        )  # fmt: skip

    def _whole(self, name: str) -> int:
        value = getattr(self, name)
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            more = "'full' or " if name == "batch" else ""
            raise ValueError(f"{name} must be {more}a whole number, at least 1; got {value!r}")
        return int(value)

    def _check(self) -> None:
        self._whole("rounds")
        if self.batch != "full":
            self._whole("batch")
        choice("output", self.output, ("mean", "last", "best"))
        at_least_0("l2", self.l2)
        if self.tol is not None:
            number("tol", self.tol, 0)
            if self.batch != "full":
                raise ValueError("tol stops at a small gradient of f, which drawn rows do not show: take batch='full'")
        if self.eta == "theory":
            if self.loss not in LIPSCHITZ:
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

    def _learner_for(self, data: Data) -> Learner:
        eta = self.eta
        if eta == "theory":
            assert self.B is not None
            factor = data.c / data.c.sum() * np.count_nonzero(data.c) if self.batch != "full" else data.c > 0.0
            norms2 = data.finite_norms2(getattr(self, "feature_names_in_", None))
            self.rho_ = float((factor * np.sqrt(norms2)).max())
            if self.rho_ == 0.0:
                raise ValueError("eta='theory' needs a row that is not zero: max |x|_2 = 0")
            eta = float(self.B) / (self.rho_ * self.rounds**0.5)
        learner = descent(self.loss, "euclidean", eta, "explicit", 1.0, self.power)  # type: ignore[arg-type]
        return learner if self.rates is None else learner.with_rates(self.rates)

    def _sweep(self, learner: Learner, features: int, start: Any, seed: int) -> Descent:
        return Descent(
            learner, features, batch=None if self.batch == "full" else self._whole("batch"), l2=float(self.l2),
            intercept=bool(self.fit_intercept), start=start, seed=seed, best=self.output == "best",
        )  # fmt: skip

    def _seed(self) -> int:
        """A number that stands for random_state; the generator that it seeds draws all rows."""
        given = self.random_state
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            if given < 0:
                raise ValueError(f"random_state must be at least 0, got {given!r}")
            return int(given)
        if isinstance(given, np.random.Generator):
            return int(given.integers(2**63))
        return int(check_random_state(given).randint(2**31))

    def certify(self, X: Any, y: Any = None, sample_weight: Any = None, *, u: Any = None, tol: float = 0.01) -> Any:
        """The certificate of the weights that predict: f there, f of the rival in hindsight, and the bound.

        For a full batch the bound is certain for output "mean" and "best"; for "last" there is no theorem. For drawn
        rows the bound on the mean holds in expectation over the draws: UNCHECKABLE, with both figures.

        Parameters
        ----------
        X : the rows the model was trained on; for a full batch also a callable that returns a fresh iterator of
            (X, y, sample_weight or None) at each call.
        y, sample_weight : as in training; not with a callable.
        u : a comparator to take instead of the best in hindsight (the intercept's weight last).
        tol : relative gap to which the rival is sought.

        Returns
        -------
        Certificate, or Certificates with one a class for one-vs-rest.
        """
        from ..certificates.certificate import Certificates

        check_is_fitted(self)
        if callable(X) and self.batch != "full":
            raise ValueError("rows drawn at random are looked up in memory: give an array or a CSR matrix")
        labels = self._run_labels()
        each = tuple(
            self._promise(
                certify_descent(run, self._data(k, X, y, sample_weight), self.output, u=u, tol=tol, label=labels[k]),
                run,
            )
            for k, run in enumerate(self.runs_)
        )
        return each[0] if len(each) == 1 else Certificates(each)

    def _promise(self, certificate: Certificate, run: Descent) -> Certificate:
        """With eta="theory" from w_s = 0, what was promised beforehand: B^2/(2 eta T) + eta rho^2/2, B rho/sqrt(T)."""
        if self.eta != "theory" or self.B is None or run.first.any() or not np.isfinite(certificate.bound):
            return certificate
        eta = run.learner.rate.eta
        promise = gradient_descent_planned(self.B, self.rho_, eta, run.rounds)
        where = f"for all |u| ≤ B = {self.B:g} (ρ = {self.rho_:.6g})"
        planned = "as planned" if run.batch is None else "as planned, in expectation"
        note = f"{planned}: f − f(u) ≤ B²/(2ηT) + ηρ²/2 = {promise:.6g} {where}"
        return replace(certificate, notes=(*certificate.notes, note))


COMMON = """
    eta : rate, above 0; or "theory", B / (rho sqrt(rounds)) with rho the Lipschitz constant of f (for one row a round,
        of its terms): max |x|_2 while all weights are 1. That is for the absolute, logistic, hinge and perceptron
        losses without l2; it is kept on a warm start.
    rounds : rounds a `fit` plays, at least 1.
    batch : "full", or how many rows are drawn a round, uniformly and with replacement.
    output : what predicts. "mean": the mean of the iterates at which gradients were taken, the start first and the last
        weights not, weighted by their rates where those change. (N2 writes the mean of w^(1..T), which leaves out the
        start and takes in the last: begin at w^(1) to have it.) "last". "best" by f: of all iterates, or with drawn
        rows of the start, one after each m rows drawn, and the last.
    l2 : f(w) = Sigma c_i loss(w.x_i, y_i) / Sigma c_i + (l2/2) |w|^2, the intercept's weight in |w|^2 too.
    random_state : seeds the draws.
    B : the norm of the predictors to compete with, for eta="theory".
    power : rates fall as eta t^-power.
    rates : rates given one a round, instead of eta.
    fit_intercept : a constant coordinate 1, which counts in the norms.
    start : w_s, the intercept's weight last; None is 0.
    tol : stop after the first round whose gradient has a norm of at most this; None never stops early.
    warm_start : a further `fit` goes on from where the last one ended, the count of rounds and the draws too.
    verbose : show a bar on the error stream.
"""


class GradientDescentRegressor(RegressorMixin, GradientDescent):  # type: ignore[misc]
    """Gradient descent and stochastic gradient descent on a loss of targets (N2): w -= eta grad f(w).

    With a full batch, f of the mean iterate is at most f(u) + |u - w_s|^2/(2 eta T) + (eta/2T) Sigma |grad f(w_t)|^2
    for every u: `certify` shows it on the run's own gradients. With drawn rows that holds in expectation.

    Parameters
    ----------
    loss : "square", "absolute", or "logistic" (targets in [0, 1]).

    Examples
    --------
    >>> model = GradientDescentRegressor("square", eta=0.25, rounds=2, fit_intercept=False, output="last")
    >>> model.fit([[1.0], [1.0]], [1.0, 3.0]).coef_  # f(w) = w^2 - 4w + 5: from 0 to 1 to 1.5
    array([1.5])
    """

    coef_, intercept_, predict = OnlineRegressor.coef_, OnlineRegressor.intercept_, OnlineRegressor.predict
    _targets, _seen = OnlineRegressor._targets, OnlineRegressor._seen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # rounds at a default rate promise a bound on f, not a score
        return tags

    def _targets_for(self, X: Any, y: Any, fresh: bool) -> list[np.ndarray]:
        if self.loss in ("hinge", "perceptron"):
            raise ValueError(f"loss {self.loss!r} is for labels: use GradientDescentClassifier")
        return self._targets(X, y)


class GradientDescentClassifier(ClassifierMixin, GradientDescent):  # type: ignore[misc]
    """Gradient descent and stochastic gradient descent on a loss of labels (N2): w -= eta grad f(w).

    classes_[0] is -1 (for the logistic loss 0) and classes_[1] is 1; more classes are each 1 against the rest, on the
    same draws. The bound of `GradientDescentRegressor` holds for each.

    Parameters
    ----------
    loss : "logistic", "hinge", "perceptron", "square" or "absolute".

    Examples
    --------
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, 1, 0, 0]
    >>> model = GradientDescentClassifier("hinge", eta="theory", B=2.0, rounds=100).fit(X, y)
    >>> print(model.certify(X, y).verdict.value, round(model.eta_, 6))
    HOLDS 0.141421
    """

    def __init__(
        self,
        loss: str = "logistic",
        eta: float | str = 0.1,
        rounds: int = 100,
        batch: str | int = "full",
        output: str = "mean",
        l2: float = 0.0,
        random_state: Any = None,
        *,
        B: float | None = None,
        power: float = 0.0,
        rates: Any = None,
        fit_intercept: bool = True,
        start: Any = None,
        tol: float | None = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            loss, eta, rounds, batch, output, l2, random_state, B=B, power=power, rates=rates,
            fit_intercept=fit_intercept, start=start, tol=tol, warm_start=warm_start, verbose=verbose,
        )  # fmt: skip

    coef_, predict = OnlineClassifier.coef_, OnlineClassifier.predict
    decision_function = OnlineClassifier.decision_function
    predict_proba = DescentClassifier.__dict__["predict_proba"]
    _labels, _run_labels = OnlineClassifier._labels, OnlineClassifier._run_labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # rounds at a default rate promise a bound on f, not a score
        return tags

    def _targets_for(self, X: Any, y: Any, fresh: bool) -> list[np.ndarray]:
        y = self._labels(X, y)
        if fresh:
            self.classes_ = unique_labels(y)
            if len(self.classes_) < 2:
                raise ValueError(f"there must be at least two classes, got one class: {self.classes_.item(0)!r}")
        known = np.isin(y, self.classes_)
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            raise RowError(row, f": class {y[row].item()!r} is not one of those before: {self.classes_.tolist()}")
        low = 0.0 if self.loss == "logistic" else -1.0
        ours = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return [np.where(y == label, 1.0, low) for label in ours]

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        return self._targets_for(X, y, fresh=False)


for _class in (GradientDescentRegressor, GradientDescentClassifier):
    _head, _examples = str(_class.__doc__).split("\n\n    Examples\n")
    _class.__doc__ = _head + COMMON.rstrip() + "\n\n    Examples\n" + _examples
