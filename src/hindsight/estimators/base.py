"""What all online estimators share: input as scikit-learn takes it, runs, and rows one at a time."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import TYPE_CHECKING, Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, validate_data

from .. import kernels
from ..online.run import Run, assumption_warnings, play
from ..online.single_row import Arrays, Dicts, One
from ..validation import check_target, check_targets, check_weights, choice

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..online.facts import Facts
    from ..online.learners import Learner
    from ..rows.data import Data
from ..errors import AssumptionWarning

FLOATS = [np.float64, np.float32]


class SaveMixin:
    """Saving to one file."""

    def save(self, path: Any) -> None:
        """Write the estimator to one file; `hindsight.load` gives back an equal one."""
        from ..storage.model import save_estimator

        save_estimator(self, path)


class OnlineEstimator(SaveMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Base of the estimators; a concrete one has a constructor and `_learner`."""

    runs_: list[Run]
    n_features_in_: int
    _ones: dict[int, One]  # each run bound to that row
    _swift: One | None  # the only one there is, if rows are dicts
    _row: Any  # where single rows are laid out
    _column: dict[Hashable, int]  # of each name that dicts have used

    def _learner(self) -> Learner:
        raise TypeError(f"{type(self).__name__} must say which learner it is")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "runs_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k not in ("_ones", "_row", "_swift")}

    # ---- what was learnt

    @property
    def facts_(self) -> Any:
        """Facts of the run so far; for one-vs-rest a list, in the order of `classes_`."""
        check_is_fitted(self)
        facts: list[Facts] = [run.facts for run in self.runs_]
        return facts[0] if len(facts) == 1 else facts

    def _weights(self) -> np.ndarray:
        """The weights that predict, a row a run, the intercept's last."""
        check_is_fitted(self)
        if self.average is None:
            return np.array([run.weights for run in self.runs_])
        return np.array([run.mean(self.average) for run in self.runs_])

    def _coef(self) -> np.ndarray:
        w = self._weights()
        return w[:, :-1] if self.fit_intercept else w

    @property
    def intercept_(self) -> Any:
        """The weight of the constant coordinate; 0 without one."""
        w = self._weights()
        return w[:, -1] if self.fit_intercept else np.zeros(len(w))

    # ---- learning

    def _matrix(self, X: Any, reset: bool) -> Any:
        """X as rows the kernel reads, without a copy where it is one already, and its names noted or checked."""
        # The kernel finds NaN and infinity while it reads the rows; another read would double the time.
        return self._read(X, reset, ensure_all_finite=False)

    def _read(self, X: Any, reset: bool, **checks: Any) -> Any:
        checks |= {"accept_sparse": "csr", "dtype": FLOATS}
        frame = X if isinstance(X, np.ndarray) else nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return validate_data(self, X, reset=reset, **checks)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return check_array(frame.to_numpy(), **checks)

    def _begin(self, features: int, count: int) -> None:
        learner = self._learner()
        rates = getattr(self, "rates", None)
        if rates is not None:
            learner = learner.with_rates(rates)
        if self.average is not None:
            choice("average", self.average, ("before", "after"))
        starts = [None] * count if self.start is None else list(np.atleast_2d(np.asarray(self.start, np.float64)))
        if len(starts) != count:
            raise ValueError(f"start must have one row for each of the {count} one-vs-rest learners, got {len(starts)}")
        self.runs_ = [self._fresh(learner, features, start) for start in starts]

    def _fresh(self, learner: Learner, features: int, start: np.ndarray | None = None) -> Run:
        return Run(learner, features, intercept=self.fit_intercept, average=self.average is not None, start=start)

    def _play(self, X: Any, targets: list[np.ndarray], sample_weight: Any, passes: int) -> None:
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=False)
        names = getattr(self, "feature_names_in_", None)
        margins = np.empty((X.shape[0], len(self.runs_))) if self.keep_margins else None
        before = [run.snapshot() for run in self.runs_]
        try:
            for _ in range(passes):
                play(self.runs_, X, targets, weight, margins, names)
            for warning in assumption_warnings(self.runs_[0]):
                warnings.warn(warning, AssumptionWarning, stacklevel=4)
        except BaseException:
            for run, state in zip(self.runs_, before, strict=True):
                run.restore(state)
            raise
        if margins is not None:
            self.margins_ = margins[:, 0] if margins.shape[1] == 1 else margins

    def _passes(self) -> int:
        if not isinstance(self.passes, (int, np.integer)) or isinstance(self.passes, bool) or self.passes < 1:
            raise ValueError(f"passes must be a whole number, at least 1; got {self.passes!r}")
        return int(self.passes)

    def _kept(self) -> dict[str, Any]:
        """What a failed `fit` must put back."""
        return dict(self.__dict__)

    def _restore(self, kept: dict[str, Any]) -> None:
        self.__dict__.clear()
        self.__dict__.update(kept)

    def _margins(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = self._read(X, reset=False)
        w = self._weights()
        z = X @ w[:, : self.n_features_in_].T
        return np.asarray(z + w[:, -1] if self.fit_intercept else z)

    # ---- certificates

    def certify(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, u: Any = None, planted: Any = None, tol: float = 0.01
    ) -> Any:
        """The certificate of the run so far: its loss, the rival's in hindsight, the bound, and whether it applies.

        Parameters
        ----------
        X : the rows the model was trained on, in that order (all `partial_fit` calls together); or a callable that
            returns a fresh iterator of (X, y, sample_weight or None) at each call, for rows that do not fit in memory.
        y, sample_weight : as in training; not with a callable.
        u : a comparator to take instead of the best in hindsight (the intercept's weight last).
        planted : for GLM-tron, the w* with y = u(w*.x).
        tol : relative gap to which the rival is sought.

        Returns
        -------
        Certificate, or Certificates with one a class for one-vs-rest.
        """
        from ..certificates.certificate import Certificates
        from ..certificates.certify import certify_run

        check_is_fitted(self)
        labels = self._run_labels()
        for run in self.runs_:  # dicts may have left room for names to come
            if run.v.shape[1] > self.n_features_in_ + self.fit_intercept:
                run.resize(self.n_features_in_)
        each = [
            certify_run(run, self._data(k, X, y, sample_weight), u=u, planted=planted, tol=tol, label=labels[k])
            for k, run in enumerate(self.runs_)
        ]
        return each[0] if len(each) == 1 else Certificates(tuple(each))

    def _data(self, k: int, X: Any, y: Any, sample_weight: Any) -> Data:
        """The rows as run k saw them."""
        from ..rows.data import Data

        bias = self.runs_[k].bias
        if callable(X):

            def chunks() -> Any:
                for rows, target, weight in X():
                    rows = self._matrix(rows, reset=False)
                    yield rows, self._seen(rows, target)[k], weight

            return Data.from_chunks(chunks, bias)
        X = self._matrix(X, reset=False)
        return Data(X, self._seen(X, y)[k], sample_weight, bias)

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        """For each run, the targets as it saw them."""
        raise TypeError(f"{type(self).__name__} must say what its runs see")

    def _run_labels(self) -> list[str | None]:
        return [None]

    # ---- one row at a time

    def _put(self, x: Any, grow: bool) -> None:
        """Lay the row where the kernel reads it; with `grow`, new names get a column."""
        row = self.__dict__.get("_row")
        if isinstance(x, dict):
            if type(row) is not Dicts:
                if "_column" not in self.__dict__:
                    names = getattr(self, "feature_names_in_", None)
                    self._column = {k: j for j, k in enumerate(range(self.n_features_in_) if names is None else names)}
                row = self._row = Dicts(self._column, self.runs_[0].bias)
            row.put(x, grow)
            if len(row.column) > self.n_features_in_:
                self._meet()
        else:
            if type(row) is not Arrays:
                row = self._row = Arrays(self.n_features_in_, self.runs_[0].bias)
            row.put(x)

    def _meet(self) -> None:
        """Make room for names that just got a column, where the geometry allows it."""
        if not isinstance(self.runs_[0].learner.geometry, kernels.Euclidean):
            raise ValueError(
                f"feature {self._newest()!r} is new: multiplicative weights depend on how many features there are, "
                "so declare them all (features=[...])"
            )
        if self.start is not None:
            raise ValueError(
                f"feature {self._newest()!r} is new, but start gives the weights of {self.n_features_in_} features"
            )
        self.n_features_in_ = len(self._column)
        if self.n_features_in_ > self.runs_[0].v.shape[1] - self.fit_intercept:
            for run in self.runs_:
                run.resize(2 * self.n_features_in_)
        if hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.array(list(self._column), dtype=object)

    def _newest(self) -> Hashable:
        return next(itertools.islice(self._column, self.n_features_in_, None))

    def _forget(self, known: int, room: int) -> None:
        """Take back the names met since there were `known`, and the room made for them."""
        if self.runs_[0].v.shape[1] > room + self.fit_intercept:
            for run in self.runs_:
                run.resize(room)
        for name in list(self._column)[known:]:
            del self._column[name]
        self.n_features_in_ = known
        if hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = self.feature_names_in_[:known]
        self._row.forget()

    def _ready(self, k: int) -> One:
        """Run k bound to the row that was put."""
        ones = self.__dict__.setdefault("_ones", {})
        one: One | None = ones.get(k)
        if one is None or one.run is not self.runs_[k] or one.row is not self._row or one.stale():
            one = ones[k] = One(self.runs_, k, self._row, one)
            self._swift = one if one.swift() else None
        return one

    def _first_row(self, x: Any, count: int) -> None:
        """Start runs for a first row that came by itself."""
        features = getattr(self, "features", None)
        if isinstance(x, dict):
            if features is None and not isinstance(self._learner().geometry, kernels.Euclidean):
                raise ValueError("declare the features (features=[...]) before dicts: multiplicative weights need N")
            self._column = {k: j for j, k in enumerate(x if features is None else features)}
            self.n_features_in_ = len(self._column)
        else:
            self.n_features_in_ = np.asarray(x).shape[0] if np.ndim(x) == 1 else 0
        if self.n_features_in_ == 0:
            raise ValueError(f"x must be a dict or a 1-D array with at least one feature, got {x!r}")
        self._begin(self.n_features_in_, count)

    def _learn_one(self, x: Any, targets: list[float], weight: float) -> None:
        """Play one row with every run; on an error each is as it was, and so are the names."""
        runs = self.runs_
        one, laid = self.__dict__.get("_swift"), False
        if (
            one is not None
            and weight == 1.0
            and check_target(one.targets, targets[0])
            and one.lay(runs, self._row, x, True)
        ):
            if len(self._column) == self.n_features_in_:  # the common case, at least cost
                one.learn(targets[0], 1.0)
                return
            laid = True
        if not 0.0 < weight < math.inf:
            check_weights(np.array([weight, 1.0], np.float64))
        learner = runs[0].learner  # they differ in nothing that matters here
        for y in targets:
            if not check_target(learner.targets, y):
                check_targets(learner.targets, np.array([y], np.float64))
        rates = learner.rate.rates.size
        if rates and weight > 0.0 and runs[0].rounds >= rates:
            raise ValueError(f"{rates} rates were given, but there are more rounds than that")
        known, room = self.n_features_in_, runs[0].v.shape[1] - self.fit_intercept
        before: list[Any] = []
        try:
            if laid:
                self._meet()
            else:
                self._put(x, True)
            for k, y in enumerate(targets):
                if k > 0:
                    before.append(runs[k - 1].snapshot())
                self._ready(k).learn(y, weight)
        except ValueError:
            for run, state in zip(runs, before, strict=False):
                run.restore(state)
            if "_column" in self.__dict__ and len(self._column) > known:
                self._forget(known, room)
            raise

    def _margins_one(self, x: Any) -> list[float]:
        """The margin of one row for every run."""
        if "runs_" not in self.__dict__:
            check_is_fitted(self)
        one = self.__dict__.get("_swift")
        if one is not None and self.average is None and one.lay(self.runs_, self._row, x, False):
            return [one.margin()]
        self._put(x, False)
        if self.average is None:
            if len(self.runs_) == 1:
                return [self._ready(0).margin()]
            return [self._ready(k).margin() for k in range(len(self.runs_))]
        w = self._weights()[:, : self.n_features_in_]
        margins: np.ndarray = np.asarray(self._row.matrix() @ w.T)[0] + self.intercept_
        if not np.isfinite(margins).all():
            raise ValueError(f"the margin is {margins[0]}: a value of x is not finite, or too large")
        return margins.tolist()


class FitMixin:
    """`fit` as a fresh start: either it succeeds, or the estimator is as it was."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, certify: bool = False) -> Self:
        """Learn from the rows in the order given, `passes` times over, from w_1 = start.

        Parameters
        ----------
        X : rows: array, CSR matrix or dataframe.
        y : targets.
        sample_weight : importance of each row; it multiplies the loss.
        certify : also make the certificate, as `certificate_`.
        """
        kept = self._kept()  # type: ignore[attr-defined]
        for name in [k for k in vars(self) if k.endswith("_") or k in ("_ones", "_row", "_swift", "_column")]:
            delattr(self, name)
        try:
            self._fit(X, y, sample_weight)  # type: ignore[attr-defined]
            if certify:
                self.certificate_ = self.certify(X, y, sample_weight)  # type: ignore[attr-defined]
        except BaseException:
            self._restore(kept)  # type: ignore[attr-defined]
            raise
        return self
