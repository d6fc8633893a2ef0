"""What the estimators that learn in rounds over all rows share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..batch.isotron import History, IndexProblem, SingleIndexProblem, run_rounds
from ..errors import RowError
from ..online.facts import Facts
from ..rows.data import Data
from ..storage.fields import Positive, Vector, is_count, is_number
from ..storage.registry import want
from ..validation import check_targets, check_weights, number, whole
from .mixins.linear import LinearEstimator, LinearRegressorMixin
from .mixins.rows import read_weights
from .mixins.runs import one_or_all
from .progress import progress_bar

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate, Certificates


class RoundsMixin(LinearEstimator):
    """Learning in rounds over all rows; subclasses implement a constructor, `_part` and `_targets_for`."""

    _bounds_loss = True

    rounds: int
    eta: float | None
    held_out: float
    random_state: Any
    warm_start: bool
    verbose: bool
    histories_: Annotated[list[History], "a list of histories"]
    eta_: Positive
    x_scale_: Positive
    _facts: Annotated[list[Facts], "facts"]
    _last: Annotated[list[Vector], "vectors"]
    _rows: Annotated[tuple[np.ndarray, np.ndarray] | None, "two arrays of rows"]

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        if "histories_" not in fields:
            return
        histories, features, classes = fields["histories_"], fields.get("n_features_in_"), fields.get("classes_")
        count = 1 if classes is None or classes.size == 2 else classes.size
        want(len(histories) == len(fields["_facts"]) == count, f"`histories_` must have {count} entries")
        for h in histories:
            fits = is_count(features) and h.w.size == histories[0].w.size and h.w.size - features in (0, 1)
            want(fits, f"{h.w.size} weights for {features!r:.40} features")
            want((h.link is None) == (histories[0].link is None), "a link is missing")

    def _part(self) -> Any:
        """The link: known, or learnt in every round."""
        raise NotImplementedError

    def _targets_for(self, X: Any, y: Any, weight: np.ndarray | None) -> list[np.ndarray]:
        """The targets of each run; the first call of a fit records the classes, or the range of y."""
        raise NotImplementedError

    # ---- learning

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        whole("rounds", self.rounds)
        X = self._matrix(X, reset=True)
        weight = read_weights(sample_weight, X)
        targets = self._targets_for(X, y, weight)
        self._rows = self._split(X.shape[0])
        last = self.__dict__.get("_last") if self.warm_start else None
        self.histories_, self._facts = [], []
        for target in targets:
            sweep = self._sweep(X, target, weight, 0)
            held = self._sweep(X, target, weight, 1) if self._rows is not None else None
            start, k = None, len(self.histories_)
            if last is not None and len(last) == len(targets) and last[k].size == sweep.width:
                start = last[k] * sweep.scale
            with progress_bar(self.verbose, "round 0", self.rounds) as update:

                def notify(t: int, loss: float) -> None:
                    update(completed=t, description=f"round {t}: loss {loss:.6g}")

                self._play(sweep, start=start, held=held, notify=notify)

    def _play(self, problem: IndexProblem, **options: Any) -> None:
        """Run the rounds of the next run."""
        history = run_rounds(problem, int(self.rounds), **options)
        self.histories_.append(history)
        self._facts.append(history.facts(problem))
        self.eta_, self.x_scale_ = problem.eta, problem.scale
        self._last = [h.last / self.x_scale_ for h in self.histories_]
        self.n_iter_ = int(self.rounds)

    def _split(self, m: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Training and held-out rows, or None for all."""
        part = self.held_out
        if isinstance(part, bool) or not isinstance(part, (int, float, np.floating)) or not 0.0 <= part < 1.0:
            raise ValueError(f"held_out must be a share of the rows, 0 <= held_out < 1; got {part!r}")
        if part == 0.0:
            return None
        order = check_random_state(self.random_state).permutation(m)
        held = max(1, round(part * m))
        if held >= m:
            raise ValueError(f"held_out = {part:g} of {m} rows leaves none to learn from")
        return np.sort(order[held:]), np.sort(order[:held])

    def _sweep(self, X: Any, y: np.ndarray, weight: np.ndarray | None, which: int) -> SingleIndexProblem:
        """The training rows (0) or the held-out rows (1) as they were used."""
        rows = None if self._rows is None else self._rows[which]
        if rows is not None:
            X, y, weight = X[rows], y[rows], None if weight is None else weight[rows]
            if weight is not None:
                check_weights(weight)
        eta = None if self.eta is None else number("eta", self.eta, 0)
        options: dict[str, Any] = {"unit": bool(getattr(self, "scale_x", False)), "names": self._feature_names}
        try:
            return SingleIndexProblem(X, y, weight, self._part(), eta, bias=float(self._intercept), **options)
        except RowError as error:
            row = error.row if rows is None else int(rows[error.row])
            raise RowError(row, error.message) from None

    # ---- what was learnt

    @property
    def facts_(self) -> Any:
        """Counts and sums over the rounds; for one-vs-rest a list, in the order of ``classes_``."""
        check_is_fitted(self)
        return one_or_all(self._facts)

    @property
    def losses_(self) -> np.ndarray:
        """Mean squared error of the training rows in every round; for one-vs-rest one row per class."""
        check_is_fitted(self)
        losses = np.array([h.loss for h in self.histories_])
        return losses[0] if len(losses) == 1 else losses

    @property
    def best_round_(self) -> Any:
        """The round, counted from 1, whose iterate is used to predict."""
        check_is_fitted(self)
        return one_or_all([h.best + 1 for h in self.histories_])

    def _weights(self) -> np.ndarray:
        check_is_fitted(self)
        return np.array([h.w for h in self.histories_]) / self.x_scale_

    def _means(self, X: Any) -> np.ndarray:
        """The predictions of each run, one column per run."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        data = Data(X, np.zeros(X.shape[0]), None, float(self._intercept))
        part = self._part()
        columns = [part.at(h.link, data.margins(w)) for h, w in zip(self.histories_, self._weights(), strict=True)]
        return np.stack(columns, axis=1)

    def certify(
        self, X: Any, y: Any, sample_weight: Any = None, *, planted: Any = None, u: Any = None
    ) -> Certificate | Certificates:
        """Return the certificate of the rounds: their losses, the bound of the theorem, and whether it applies.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows as in `fit`.
        y : array-like of shape (n_rows,)
            Targets or labels as in `fit`.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights as in `fit`.
        planted : array-like of shape (n_weights,), default=None
            The w* with y = u(w*.x), the intercept's weight last; it is checked on the rows. Without it, the verdict for
            Isotron is UNCHECKABLE, and GLM-tron is certified in its matching loss.
        u : array-like of shape (n_weights,), default=None
            For GLM-tron, a comparator to use instead of the best in hindsight.

        Returns
        -------
        Certificate or Certificates
            One certificate; for one-vs-rest `Certificates` with one per class.
        """
        from ..certificates.certificate import combined
        from ..certificates.families.isotron import certify_rounds

        check_is_fitted(self)
        X = self._matrix(X, reset=False)
        weight = read_weights(sample_weight, X)
        runs = zip(self._targets_for(X, y, weight), self.histories_, self._run_labels(), strict=True)
        return combined([
            certify_rounds(self._sweep(X, target, weight, 0), history, planted=planted, u=u, label=label)
            for target, history, label in runs
        ])  # fmt: skip


class RoundsRegressorMixin(RoundsMixin, LinearRegressorMixin):
    """Rounds on targets that are numbers."""

    y_offset_: Annotated[float, is_number, "a number"]
    y_scale_: Annotated[float, is_number, "a number"]

    def _targets_for(self, X: Any, y: Any, weight: np.ndarray | None) -> list[np.ndarray]:
        target = self._target(X, y)
        check_targets("real", target)
        if not hasattr(self, "y_offset_"):
            self.y_offset_, self.y_scale_ = 0.0, 1.0
            if getattr(self, "scale_y", False):
                counted = target if weight is None else target[weight > 0.0]
                self.y_offset_ = float(counted.min())
                self.y_scale_ = float(counted.max() - counted.min()) or 1.0
        return [(target - self.y_offset_) / self.y_scale_]

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions of the best iterate, through its link.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        predictions : ndarray of shape (n_rows,)
        """
        means = self._means(X)[:, 0]
        return self.y_offset_ + self.y_scale_ * means
