"""What all online estimators share: starting runs, playing rows and certifying."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..errors import AssumptionWarning
from ..online.run import Run, assumption_warnings, play_rows
from ..storage.registry import want
from ..validation import choice
from .mixins.rows import read_weights
from .mixins.runs import check_runs, starts_of
from .mixins.single_rows import SingleRowMixin

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 1 << 15  # rows that are played again at once


class OnlineEstimator(SingleRowMixin):
    """Base of the online estimators; subclasses implement a constructor and `_learner`."""

    _bounds_loss = True
    runs_: list[Run]
    _private_state: tuple[str, ...] = ("_ones", "_row", "_swift", "_column")

    def __init__(
        self, *, average: str | None = None, fit_intercept: bool = True, passes: int = 1, start: Any = None,
        keep_margins: bool = False,
    ) -> None:  # fmt: skip
        self._take_parameters(locals())

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        check_runs(fields, Run)
        average, runs = fields.get("average"), fields.get("runs_", [])  # a panel has no average
        want(average in (None, "before", "after"), "`average` must be None, 'before' or 'after'")
        want(average is None or all(run.averaging for run in runs), "the runs kept no average")

    def _weights(self) -> np.ndarray:
        """The weights used to predict, one row per run, the intercept's last."""
        check_is_fitted(self)
        if self.average is None:
            return np.array([run.weights for run in self.runs_])
        return np.array([run.mean(self.average) for run in self.runs_])

    # ---- learning

    def _begin(self, features: int, count: int) -> None:
        """Start `count` runs."""
        learner = self._learner()
        rates = getattr(self, "rates", None)
        if rates is not None:
            learner = learner.with_rates(rates)
        if self.average is not None:
            choice("average", self.average, ("before", "after"))
        starts = starts_of(self.start, count, "one-vs-rest learners")
        self.runs_ = [self._new_run(learner, features, start) for start in starts]
        self._cover()

    def _cover(self) -> None:
        """Make new runs track intervals; overridden by estimators that support them."""

    def _new_run(self, learner: Any, features: int, start: np.ndarray | None = None) -> Run:
        return Run(learner, features, intercept=self.fit_intercept, average=self.average is not None, start=start)

    def _play(self, X: Any, targets: list[np.ndarray], sample_weight: Any, passes: int) -> None:
        """Play the rows; the caller has to restore the state if this raises."""
        weight = read_weights(sample_weight, X)
        margins = np.empty((X.shape[0], len(self.runs_))) if self.keep_margins else None
        for _ in range(passes):
            play_rows(self.runs_, X, targets, weight, margins, self._feature_names)
        for warning in assumption_warnings(self.runs_[0]):
            warnings.warn(warning, AssumptionWarning, stacklevel=4)
        if margins is not None:
            self.margins_ = margins[:, 0] if margins.shape[1] == 1 else margins

    def _replayed(self, X: Any, y: Any, sample_weight: Any) -> tuple[list[Run], np.ndarray, np.ndarray, int, Any]:
        """The rows of the run played again from its start: new runs, the targets (or the place of each label) and the
        weight of each row, how many passes there were, and parts of the rows with their margins as they are played."""
        X = self._matrix(X, reset=False)
        targets = self._seen(X, y)
        told = np.asarray(self._codes(self._labels(X, y))) if hasattr(self, "classes_") else targets[0]
        c = self._data(0, X, y, read_weights(sample_weight, X)).c
        passes = self.runs_[0].rounds // int(np.count_nonzero(c))
        runs = [self._new_run(run.learner, X.shape[1], getattr(run, "start", None)) for run in self.runs_]

        def blocks() -> Iterator[tuple[slice, np.ndarray]]:
            for a in [*range(0, X.shape[0], BLOCK)] * passes:
                part = slice(a, a + BLOCK)
                z = np.empty((len(c[part]), len(runs)))
                play_rows(runs, X[part], [each[part] for each in targets], c[part], z, self._feature_names)
                yield part, z

        return runs, told, c, passes, blocks()

    # ---- certificates

    def certify(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        u: Any = None,
        planted: Any = None,
        tol: float = 0.01,
        within: float | None = None,
    ) -> Any:
        """Return the certificate of the run so far: its loss, the losses of the best constant and the best fixed
        predictor in hindsight, the bound, and the verdict.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features), or callable
            The rows the model was trained on, in that order (all `partial_fit` calls together); or a callable that
            returns a fresh iterator of (X, y, sample_weight or None) at each call, for rows that do not fit in memory.
        y : array-like of shape (n_rows,), default=None
            Targets as in training; None with a callable.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights as in training; None with a callable.
        u : array-like of shape (n_features,) or (n_features + 1,), default=None
            A comparator to use instead of the one that minimises the bound, the intercept's weight last.
        planted : array-like of shape (n_features,) or (n_features + 1,), default=None
            For GLM-tron, the w* with y = u(w*.x), where u is the link.
        tol : float, default=0.01
            Relative accuracy to which the comparator, and the best fixed predictor unless it is found exactly, are
            computed.
        within : float, default=None
            Time limit in seconds for these computations, which then return the best u so far and its gap; None sets no
            limit.

        Returns
        -------
        Certificate or Certificates
            One certificate; for one-vs-rest `Certificates` with one per class.

        Raises
        ------
        MismatchError
            If these are not the rows of the run.
        """
        from ..certificates.best.clock import left, timed
        from ..certificates.certificate import combined
        from ..certificates.certify import certify_run

        check_is_fitted(self)
        labels = self._run_labels()
        for run in self.runs_:  # dicts may have left room for names to come
            if run.features > self.n_features_in_:
                run.resize(self.n_features_in_)
        found = []
        with timed(within):
            for k, run in enumerate(self.runs_):
                data = self._data(k, X, y, sample_weight)
                with timed(left() / (len(self.runs_) - k)):  # an equal share of the time that is left
                    found.append(certify_run(run, data, u=u, planted=planted, tol=tol, label=labels[k]))
        return combined(found)
