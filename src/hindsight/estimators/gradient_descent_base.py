"""What the two gradient descents share: rounds on all rows at once, or on rows drawn at random."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..batch.gradient_descent import Descent
from ..certificates.certificate import combined
from ..certificates.gradient_descent import AFTER, certify_descent
from ..certificates.theorems import gradient_descent_planned
from ..online.learners import descent
from ..rows.data import Data
from ..storage.registry import want
from ..validation import at_least_0, check_targets, choice, number, whole
from .mixins import LinearMixin, RunsMixin
from .mixins.rows import read_weights
from .mixins.runs import one_or_all, starts_of
from .progress import progress_bar
from .registration import check_runs

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate
    from ..online.learners import Learner


class GradientDescent(RunsMixin, LinearMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the two descents; a concrete one writes `_targets_for`."""

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
        """The rate that eta stands for."""
        check_is_fitted(self)
        return self.runs_[0].learner.rate.eta

    @property
    def objectives_(self) -> Any:
        """f at each iterate of a full batch, the start first; for one-vs-rest a list, in the order of ``classes_``."""
        check_is_fitted(self)
        if self.runs_[0].batch is not None:
            raise AttributeError("f along the way is known for batch='full' alone: drawn rows show only a part of it")
        return one_or_all([np.array(run.values) for run in self.runs_])

    # ---- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, certify: bool = False) -> Self:
        """Play `rounds` rounds; after an earlier fit with `warm_start`, so many more.

        On an error the estimator is as before the call.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Targets or labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, which multiplies its loss; None is 1.
        certify : bool, default=False
            Whether to also make the certificate, as ``certificate_``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        resume = self.warm_start and self.__sklearn_is_fitted__()
        with self._all_or_nothing():
            runs = copy.deepcopy(self.runs_) if resume else None
            if resume:
                self.__dict__.pop("certificate_", None)
            else:
                self._forget_fit()
            self._check()
            if resume and self._settings() != self._setting:
                raise ValueError(
                    "warm_start goes on with the same descent: loss, eta, batch, l2, B, power, rates, fit_intercept "
                    "and whether output is 'best' must be as they were"
                )
            rows = self._matrix(X, reset=not resume)
            targets = self._targets_for(rows, y, fresh=not resume)
            weight = read_weights(sample_weight, rows)
            for target in targets:
                check_targets("real", target)
            data = [Data(rows, target, weight, float(bool(self.fit_intercept))) for target in targets]
            self.runs_ = self._played(runs or self._begin(data), data)
            if certify:
                self.certificate_ = self.certify(X, y, sample_weight)
        return self

    def _begin(self, data: list[Any]) -> list[Descent]:
        """New runs, one for the targets of each table."""
        learner, starts, seed = self._learner_for(data[0]), starts_of(self.start, len(data)), self._seed()
        self._setting = self._settings()
        return [self._new_run(learner, self.n_features_in_, start, seed) for start in starts]

    def _played(self, runs: list[Descent], data: list[Data]) -> list[Descent]:
        """The runs after `rounds` more rounds."""
        with progress_bar(self.verbose, "rounds", self.rounds * len(runs)) as update:

            def notify(rounds: int) -> None:
                if update is not None:
                    update(advance=rounds)

            for run, part in zip(runs, data, strict=True):
                run.play(part, self.rounds, stop=self.tol or 0.0, notify=notify, names=self._feature_names)
        return runs

    def _targets_for(self, X: Any, y: Any, fresh: bool) -> list[np.ndarray]:
        """For each run, its targets; a fresh fit may declare what it finds in y."""
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
        """The learner at a rate of 1, for what its parts say of themselves."""
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
        """A number that stands for random_state; the generator that it seeds draws all rows."""
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
        """Return the certificate of the weights that predict: f there, f of the comparator, and the bound.

        For a full batch the bound is certain for output "mean", "mean-after" and "best"; for "last" there is no
        theorem. For drawn rows the bound on a mean holds in expectation over the draws: UNCHECKABLE, with both figures.

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
            A comparator to take instead of the best in hindsight, the intercept's weight last.
        tol : float, default=0.01
            Relative gap to which the comparator is sought.

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
        """With eta="theory" from w_s = 0, what was promised beforehand: B^2/(2 eta T) + eta rho^2/2, B rho/sqrt(T)."""
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
