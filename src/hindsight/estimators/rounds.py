"""What the estimators that learn in rounds over all rows share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ..batch.isotron import History, SingleIndexProblem, run_rounds
from ..errors import RowError
from ..online.facts import Facts
from ..rows.data import Data
from ..validation import check_targets, check_weights, number
from .base import FitMixin, OnlineEstimator, SaveMixin
from .regress import OnlineRegressor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..certificates.certificate import Certificate, Certificates

ROUNDS = """
    rounds : how many, at least 1.
    eta : step; None is 1/(lambda X2^2), X2 the largest |x|_2 of the rows with weight.
    held_out : share of the rows, drawn by `random_state`, that picks the best iterate; 0 picks it by the training loss.
    random_state : of that draw.
    warm_start : whether `fit` goes on from the last weights of the fit before.
    verbose : whether to show the progress of the rounds, on stderr.

    Attributes
    ----------
    losses_ : mean squared error in every round. best_round_ : the round, from 1, whose iterate predicts.
    coef_, eta_, facts_ : the weights of that round, the step, the facts of all rounds.
"""


class SweepEstimator(SaveMixin, FitMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that learn in rounds over all rows; a concrete one has a constructor and `_part`."""

    rounds: int
    eta: float | None
    held_out: float
    random_state: Any
    warm_start: bool
    verbose: bool
    histories_: list[History]
    _facts: list[Facts]
    _rows: tuple[np.ndarray, np.ndarray] | None
    n_features_in_: int

    _read, _kept, _restore = OnlineEstimator._read, OnlineEstimator._kept, OnlineEstimator._restore

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _part(self) -> Any:
        raise TypeError(f"{type(self).__name__} must say which link it has")

    def _seen(self, X: Any, y: Any, weight: np.ndarray | None) -> list[np.ndarray]:
        raise TypeError(f"{type(self).__name__} must say what it learns")

    def _bias(self) -> float:
        return 1.0 if getattr(self, "fit_intercept", False) else 0.0

    # ---- learning

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        if not isinstance(self.rounds, (int, np.integer)) or isinstance(self.rounds, bool) or self.rounds < 1:
            raise ValueError(f"rounds must be a whole number, at least 1; got {self.rounds!r}")
        X = self._read(X, reset=True, ensure_all_finite=False)
        weight = self._weight(X, sample_weight)
        targets = self._seen(X, y, weight)
        self._rows = self._split(X.shape[0])
        last = self.__dict__.get("_last") if self.warm_start else None
        self.histories_, self._facts = [], []
        for k, target in enumerate(targets):
            sweep = self._sweep(X, target, weight, 0)
            held = self._sweep(X, target, weight, 1) if self._rows is not None else None
            start = None
            if last is not None and len(last) == len(targets) and last[k].size == sweep.width:
                start = last[k] * sweep.scale
            with _progress(self.rounds, self.verbose) as tell:
                history = run_rounds(sweep, int(self.rounds), start, held=held, notify=tell)
            self.histories_.append(history)
            self.eta_, self.x_scale_ = sweep.eta, sweep.scale
            self._facts.append(history.facts(sweep))
        self._last = [h.last / self.x_scale_ for h in self.histories_]
        self.n_iter_ = int(self.rounds)

    def _split(self, m: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Training and held-out rows, or None for all."""
        share = self.held_out
        if isinstance(share, bool) or not isinstance(share, (int, float, np.floating)) or not 0.0 <= share < 1.0:
            raise ValueError(f"held_out must be a share of the rows, 0 <= held_out < 1; got {share!r}")
        if share == 0.0:
            return None
        order = check_random_state(self.random_state).permutation(m)
        held = max(1, round(share * m))
        if held >= m:
            raise ValueError(f"held_out = {share:g} of {m} rows leaves none to learn from")
        return np.sort(order[held:]), np.sort(order[:held])

    def _weight(self, X: Any, sample_weight: Any) -> np.ndarray | None:
        if sample_weight is None:
            return None
        weight: np.ndarray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=False, allow_all_zero_weights=True
        )
        check_weights(weight)
        return weight

    def _sweep(self, X: Any, y: np.ndarray, weight: np.ndarray | None, which: int) -> SingleIndexProblem:
        """The training rows (0) or the held-out ones (1) as played."""
        rows = None if self._rows is None else self._rows[which]
        if rows is not None:
            X, y, weight = X[rows], y[rows], None if weight is None else weight[rows]
            if weight is not None:
                check_weights(weight)
        eta = None if self.eta is None else number("eta", self.eta, 0)
        unit = bool(getattr(self, "scale_x", False))
        names = getattr(self, "feature_names_in_", None)
        try:
            return SingleIndexProblem(X, y, weight, self._part(), eta, bias=self._bias(), unit=unit, names=names)
        except RowError as error:
            row = error.row if rows is None else int(rows[error.row])
            raise RowError(row, error.message) from None

    # ---- what was learnt

    @property
    def facts_(self) -> Any:
        """Facts of the rounds, a round being a pass; for one-vs-rest a list, in the order of `classes_`."""
        check_is_fitted(self)
        facts: list[Facts] = self._facts
        return facts[0] if len(facts) == 1 else facts

    @property
    def losses_(self) -> np.ndarray:
        """Mean squared error of the training rows in every round; for one-vs-rest a row a class."""
        check_is_fitted(self)
        losses = np.array([h.loss for h in self.histories_])
        return losses[0] if len(losses) == 1 else losses

    @property
    def best_round_(self) -> Any:
        """The round, from 1, whose iterate predicts."""
        check_is_fitted(self)
        best = [h.best + 1 for h in self.histories_]
        return best[0] if len(best) == 1 else best

    def _weights(self) -> np.ndarray:
        check_is_fitted(self)
        return np.array([h.w for h in self.histories_]) / self.x_scale_

    def _means(self, X: Any) -> np.ndarray:
        """What each run predicts, a column a run."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        data = Data(X, np.zeros(X.shape[0]), None, self._bias())
        part = self._part()
        columns = [part.at(h.link, data.margins(w)) for h, w in zip(self.histories_, self._weights(), strict=True)]
        return np.stack(columns, axis=1)

    def certify(
        self, X: Any, y: Any, sample_weight: Any = None, *, planted: Any = None, u: Any = None
    ) -> Certificate | Certificates:
        """The certificate of the rounds: their losses, what the theorem promises, and whether it applies.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`.
        planted : the w* with y = u(w*.x), to be checked on the rows (the intercept's weight last). Without one Isotron
            is UNCHECKABLE, and GLM-tron certified in its matching loss.
        u : for GLM-tron, a comparator to take instead of the best in hindsight.
        """
        from ..certificates.certificate import Certificates
        from ..certificates.isotron import certify_rounds

        check_is_fitted(self)
        X = self._read(X, reset=False, ensure_all_finite=False)
        weight = self._weight(X, sample_weight)
        labels = self._labels_of_runs()
        each = tuple(
            certify_rounds(self._sweep(X, target, weight, 0), history, planted=planted, u=u, label=label)
            for target, history, label in zip(self._seen(X, y, weight), self.histories_, labels, strict=True)
        )
        return each[0] if len(each) == 1 else Certificates(each)

    def _labels_of_runs(self) -> list[str | None]:
        return [None]


class SweepRegressor(RegressorMixin, SweepEstimator):  # type: ignore[misc]
    """Base of the regressors."""

    _targets = OnlineRegressor._targets
    y_offset_: float
    y_scale_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a fixed number of rounds promises a bound, not a score
        return tags

    def _seen(self, X: Any, y: Any, weight: np.ndarray | None) -> list[np.ndarray]:
        target = self._targets(X, y)[0]
        check_targets("real", target)
        if not hasattr(self, "y_offset_"):
            self.y_offset_, self.y_scale_ = 0.0, 1.0
            if getattr(self, "scale_y", False):
                counted = target if weight is None else target[weight > 0.0]
                self.y_offset_ = float(counted.min())
                self.y_scale_ = float(counted.max() - counted.min()) or 1.0
        return [(target - self.y_offset_) / self.y_scale_]

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features, of the best round; on the rows as given."""
        return self._weights()[0, : self.n_features_in_]

    @property
    def intercept_(self) -> float:
        """The weight of the constant coordinate; 0 without one."""
        return float(self._weights()[0, -1]) if self._bias() else 0.0

    def predict(self, X: Any) -> np.ndarray:
        """What the best iterate predicts for each row, through its link."""
        means = self._means(X)[:, 0]
        return self.y_offset_ + self.y_scale_ * means


@contextmanager
def _progress(rounds: int, verbose: bool) -> Iterator[Callable[[int, float], None] | None]:
    """What tells the progress of the rounds, if asked to."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("round 0", total=rounds)
        yield lambda t, loss: bar.update(task, completed=t, description=f"round {t}: loss {loss:.6g}")
