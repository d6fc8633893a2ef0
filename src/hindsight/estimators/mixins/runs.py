"""The runs of one estimator: their facts, the rows as each run saw them, and prediction intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ...rows.data import Data
from ...storage.registry import want
from .linear import LinearEstimator, LogisticProbabilityMixin, loss_gives_probabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...certificates.coverage import CoverageCertificate


def one_or_all(values: Sequence[Any]) -> Any:
    """The value itself if there is one run, otherwise the list of values."""
    return values[0] if len(values) == 1 else values


def starts_of(start: Any, count: int, what: str = "learners") -> list[np.ndarray | None]:
    """The initial weights of each of `count` runs; None for those of the geometry."""
    starts = [None] * count if start is None else list(np.atleast_2d(np.asarray(start, np.float64)))
    if len(starts) != count:
        raise ValueError(f"start must have one row for each of the {count} {what}, got {len(starts)}")
    return starts


def check_runs(fields: dict[str, Any], kind: type) -> None:
    """Refuse runs unless all are of this class and alike, with room for the features."""
    if "runs_" not in fields:
        return
    runs, features = fields["runs_"], fields.get("n_features_in_")
    known = isinstance(runs, list) and len(runs) > 0 and all(isinstance(run, kind) for run in runs)
    want(known, "`runs_` must be a list of runs")
    for run in runs:
        alike = (run.width, run.bias) == (runs[0].width, runs[0].bias)
        fits = type(features) is int and 0 < features <= run.features and alike
        want(fits, f"`n_features_in_` is {features!r:.40}, but a run has {run.features} features")
    classes = fields.get("classes_")
    counts = (1,) if classes is None else (1, classes.size) if classes.size <= 2 else (classes.size,)
    want(len(runs) in counts, f"`runs_` must have {counts[-1]} runs")


class RunsMixin(LinearEstimator):
    """The public attributes of the runs of an estimator."""

    runs_: list[Any]
    fit_intercept: bool

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "runs_")

    @property
    def facts_(self) -> Any:
        """Counts and sums over the rounds so far; for one-vs-rest a list, in the order of ``classes_``.

        Their loss is the one in the learner's certificate: the squared error for Widrow-Hoff and similar learners.
        """
        check_is_fitted(self)
        return one_or_all([self._judged(run) for run in self.runs_])

    @property
    def total_facts_(self) -> Any:
        """Counts and sums over all runs together."""
        check_is_fitted(self)
        first, *rest = (self._judged(run) for run in self.runs_)
        return sum(rest, first)

    def _judged(self, run: Any) -> Any:
        facts = run.facts
        return replace(facts, loss=facts.square) if getattr(run.learner, "score", "loss") == "square" else facts

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        """The targets of each run, as it sees them; numbers are those of a single run."""
        return [self._target(X, y)]

    def _data(self, k: int, X: Any, y: Any, sample_weight: Any) -> Data:
        """The rows as run k saw them; `X` may be a callable that returns a fresh iterator of chunks at each call."""
        bias = self.runs_[k].bias
        if callable(X):

            def chunks() -> Any:
                for rows, target, weight in X():
                    rows = self._matrix(rows, reset=False)
                    yield rows, self._seen(rows, target)[k], weight

            return Data.from_chunks(chunks, bias)
        X = self._matrix(X, reset=False)
        return Data(X, self._seen(X, y)[k], sample_weight, bias)


class CoverageMixin(RunsMixin):
    """What regressors and classifiers share: a coverage tracker, attached to the first run if `interval` is given."""

    interval: float | None = None

    def _cover(self) -> None:
        """Attach a coverage tracker to new runs if `interval` is given."""
        if self.interval is not None:
            from ...online.coverage import cover

            if self.average is not None:
                raise ValueError("interval follows what the last weights predict: leave average out")
            cover(self.runs_, self.interval)

    @property
    def _tracker(self) -> Any:
        check_is_fitted(self)
        if self.runs_[0].coverage is None:
            raise AttributeError("intervals were not asked for: begin with interval=0.9, say")
        return self.runs_[0].coverage

    @property
    def coverage_(self) -> CoverageCertificate:
        """The `hindsight.CoverageCertificate` of the intervals so far, each made before its row was learnt."""
        from ...certificates.coverage import certify_coverage

        return certify_coverage(self._tracker, hasattr(self, "classes_"))


class SetsMixin(LogisticProbabilityMixin, CoverageMixin):
    """Prediction sets and probabilities of single rows, for classifiers whose loss gives probabilities."""

    def predict_set(self, X: Any) -> list[tuple[Any, ...]]:
        """Return a prediction set, as a tuple of labels, for each row.

        About the fraction `interval` of the rows has its label in its set, whatever the rows, if each one is learnt
        after it was predicted.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        sets : list of tuple
            The labels, in the order of ``classes_``; a set may be empty.
        """
        half = self._tracker.half
        return self._sets(np.atleast_2d(self.decision_function(X).T).T, half)

    def predict_set_one(self, x: Any) -> tuple[Any, ...]:
        """Return a prediction set, as a tuple of labels, for one row.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row. Names that were never learnt are ignored.

        Returns
        -------
        labels : tuple
            In the order of ``classes_``; may be empty.
        """
        half = self._tracker.half
        return self._sets(np.array([self._alone(self._margins_one, x)]), half)[0]

    @available_if(loss_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Return the probability of each class for one row.

        The probabilities of one-vs-rest runs are normalised to sum to 1. Only with ``loss="logistic"``.

        Parameters
        ----------
        x : mapping or array-like of shape (n_features,)
            The row. Names that were never learnt are ignored.

        Returns
        -------
        probabilities : dict of object to float
            The probability of each class, in the order of ``classes_``.
        """
        z, classes = self._margins_and_classes(x)
        if len(classes) == 1:
            return {classes.item(0): 1.0}
        mean = self.runs_[0].learner.loss.mean
        if len(z) == 1:
            p = mean(z[0])
            return {classes.item(0): 1.0 - p, classes.item(1): p}
        each = [mean(margin) for margin in z]
        total = sum(each)
        each = [p / total for p in each] if total > 0.0 else [1.0 / len(each)] * len(each)
        return dict(zip(classes.tolist(), each, strict=True))

    def _sets(self, z: np.ndarray, half: float) -> list[tuple[Any, ...]]:
        from ...online.coverage import sets_of

        return sets_of(self.runs_[0].learner.loss, z, half, self.classes_.tolist())
