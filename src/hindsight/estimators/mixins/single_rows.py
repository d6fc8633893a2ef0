"""Learning and predicting rows one at a time, as dicts or 1-D arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...online.single_row import Arrays, Dicts, One
from ...storage.fields import check_places
from ...validation import check_target, check_targets, check_weights
from .estimator import TEMPORARY
from .runs import RunsMixin

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


ARRAYS = (np.ndarray, list, tuple)


def has_names(x: Any) -> bool:
    """Whether a row is a mapping from names to values."""
    return isinstance(x, dict) or (not isinstance(x, ARRAYS) and isinstance(x, Mapping))


class LockOfEach:
    """A lock for each instance, made at first use."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        return instance.__dict__.setdefault("_lock", Lock())  # one for all threads, whichever comes first


class SingleRowMixin(RunsMixin):
    """Learning and predicting one row with every run; subclasses give `_learner`, and `_begin` runs of it.

    A name in a dict gets its column when it first appears, if the geometry of the learner can grow. Any thread may
    learn or predict a row: work that one compiled call cannot do (see `One`) is done under a lock, by `_alone`.
    """

    _lock = LockOfEach()

    _ones: dict[int, One]  # each run bound to the row that is laid out
    _swift: One | None  # the only run, where one call can lay a row out and learn or predict it
    _row: Any  # where single rows are laid out
    _column: dict[Hashable, int]  # of each name that dicts have used

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        if "_column" in fields:
            check_places("_column", fields["_column"], fields.get("n_features_in_", 0))

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k not in TEMPORARY}

    @property
    def _declared(self) -> Any:
        """The declared names of the features, or None."""
        return getattr(self, "features", None)

    def _first_row(self, x: Any, count: int) -> None:
        """Start the runs for a first row that is learnt by itself."""
        features = self._declared
        if has_names(x):
            if features is None and not self._learner().geometry.can_grow:
                raise ValueError("declare the features (features=[...]) before dicts: multiplicative weights need N")
            self._column = {k: j for j, k in enumerate(x if features is None else features)}
            self.n_features_in_ = len(self._column)
        else:
            self.n_features_in_ = np.asarray(x).shape[0] if np.ndim(x) == 1 else 0
        if self.n_features_in_ == 0:
            raise ValueError(f"x must be a mapping or a 1-D array with at least one feature, got {x!r}")
        self._begin(self.n_features_in_, count)

    def _alone(self, do: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function while no other thread learns or predicts a single row."""
        with self._lock:
            one = self.__dict__.get("_swift")
            if one is not None:
                one.alive[0] = 0
                self._count_names(one)
            try:
                return do(*arguments)
            finally:
                one = self.__dict__.get("_swift")
                if one is not None and one.row is self._row and not one.stale():
                    one.alive[0] = 1

    def _learn_one(self, x: Any, targets: list[float], weight: float) -> None:
        """Play one row with every run, under the lock; on an error the runs and the names are restored."""
        self._check_one(targets, weight)
        runs = self.runs_
        known, room = self.n_features_in_, runs[0].features
        before: list[Any] = []
        try:
            self._put(x, True)
            rounds = runs[0].tally[0].rounds
            for k, y in enumerate(targets):
                if k + 1 < len(targets):  # the last run is itself as before where it fails
                    before.append(runs[k].snapshot())
                self._ready(k).learn(y, weight)
            if runs[0].coverage is not None:
                z = np.array([[self._ready(k).z[0] for k in range(len(runs))]])
                runs[0].coverage.follow(runs, z, [np.array([y]) for y in targets], np.array([float(weight)]), rounds)
            self.__dict__.pop("certificate_", None)  # it does not speak of this row
        except BaseException:
            for run, state in zip(runs, before, strict=False):
                run.restore(state)
            if "_column" in self.__dict__ and len(self._column) > known:
                self._drop_features(known, room)
            raise

    def _check_one(self, targets: list[float], weight: float) -> None:
        """Refuse an invalid weight or target, and a round for which no rate was given."""
        if not 0.0 < weight < math.inf:
            check_weights(np.array([weight, 1.0], np.float64))
        learner = self.runs_[0].learner  # the runs differ in nothing that matters here
        for y in targets:
            if not check_target(learner.targets, y):
                check_targets(learner.targets, np.array([y], np.float64))
        for run in self.runs_:  # a class that joined later has played fewer rounds
            rates = run.learner.rate.rates.size
            if rates and weight > 0.0 and run.rounds >= rates:
                raise ValueError(f"{rates} rates were given, but there are more rounds than that")

    def _swift_margin(self, one: One | None, x: Any) -> float:
        """The margin of a row for the only run, in one compiled call; NaN if that is not possible."""
        if one is None or self.average is not None or not one.current(self.runs_, self._row):
            return math.nan
        return one.margin_whole(x)

    def _swiftly_learnt(self, one: One | None, x: Any, y: float, weight: float) -> bool:
        """Learn a row with the only run in one compiled call, if possible; return whether it was."""
        if (
            one is not None
            and weight == 1.0
            and check_target(one.targets, y)
            and one.current(self.runs_, self._row)
            and "certificate_" not in self.__dict__  # `_learn_one` drops it
            and one.learn_whole(x, y, one.room or self.n_features_in_)
        ):
            if one.named and len(self._column) > self.n_features_in_:
                self._count_names(one)
            return True
        return False

    def _count_names(self, one: One) -> None:
        """Keep the names that were added by rows learnt in one compiled call."""
        self.n_features_in_ = max(self.n_features_in_, one.names_learnt)

    def _margins_one(self, x: Any) -> list[float]:
        """The margin of one row for every run, under the lock."""
        if "runs_" not in self.__dict__:
            check_is_fitted(self)
        self._put(x, False)
        if self.average is None:
            if len(self.runs_) == 1:
                return [self._ready(0).margin()]
            return [self._ready(k).margin() for k in range(len(self.runs_))]
        w = np.array([run.mean(self.average) for run in self.runs_])
        intercept = w[:, -1] if self.runs_[0].intercept else 0.0
        margins: np.ndarray = np.asarray(self._row.matrix() @ w[:, : self.n_features_in_].T)[0] + intercept
        if not np.isfinite(margins).all():
            raise ValueError(f"the margin is {margins[0]}: a value of x is not finite, or too large")
        return margins.tolist()

    # ---- the row that is laid out

    def _put(self, x: Any, grow: bool) -> None:
        """Put the row where the kernel reads it; with `grow`, new names get a column."""
        row = self.__dict__.get("_row")
        if has_names(x):
            if type(row) is not Dicts:
                if "_column" not in self.__dict__:
                    names = getattr(self, "feature_names_in_", None)
                    self._column = {k: j for j, k in enumerate(range(self.n_features_in_) if names is None else names)}
                row = self._row = Dicts(self._column, self.runs_[0].bias)
            row.put(x, grow)
            if len(row.column) > self.n_features_in_:
                self._add_features()
        else:
            if type(row) is not Arrays:
                row = self._row = Arrays(self.n_features_in_, self.runs_[0].bias)
            row.put(x)

    def _ready(self, k: int) -> One:
        """Run k, bound to the current row."""
        ones = self.__dict__.setdefault("_ones", {})
        one: One | None = ones.get(k)
        if one is None or one.run is not self.runs_[k] or one.row is not self._row or one.stale():
            one = ones[k] = self.runs_[k].bind(self.runs_, k, self._row, one)
            self._swift = one if one.swift and self.runs_[0].coverage is None else None
            grows = one.swift and self.runs_[k].learner.geometry.can_grow and self.start is None
            one.room = one.run.features if grows and not hasattr(self, "feature_names_in_") else 0
        return one

    # ---- names that are new

    def _add_features(self) -> None:
        """Make room for names that just got a column, if the geometry allows it."""
        if not self.runs_[0].learner.geometry.can_grow:
            raise ValueError(
                f"feature {self._newest()!r} is new: multiplicative weights depend on how many features there are, "
                "so declare them all (features=[...])"
            )
        if self.start is not None:
            raise ValueError(
                f"feature {self._newest()!r} is new, but start gives the weights of {self.n_features_in_} features"
            )
        self.n_features_in_ = len(self._column)
        if self.n_features_in_ > self.runs_[0].features:
            for run in self.runs_:
                run.resize(2 * self.n_features_in_)
        if hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.array(list(self._column), dtype=object)

    def _newest(self) -> Hashable:
        return next(itertools.islice(self._column, self.n_features_in_, None))

    def _drop_features(self, known: int, room: int) -> None:
        """Remove the names added after the first `known` ones, and the room made for them."""
        if self.runs_[0].features > room:
            for run in self.runs_:
                run.resize(room)
        for name in list(self._column)[known:]:
            del self._column[name]
        self.n_features_in_ = known
        if hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = self.feature_names_in_[:known]
        self._row.forget()
