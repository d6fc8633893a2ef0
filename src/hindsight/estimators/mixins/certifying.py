"""Several runs of one estimator: their facts, the rows as each saw them, and their certificates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from ...rows.data import Data
from .rows import RowsMixin

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from ...certificates.certificate import Certificate, Certificates


def one_or_all(values: Sequence[Any]) -> Any:
    """The value of the only run, or the values of all."""
    return values[0] if len(values) == 1 else values


def join_certificates(each: Sequence[Certificate]) -> Certificate | Certificates:
    """The certificate of the only run, or those of all as one."""
    from ...certificates.certificate import Certificates

    return each[0] if len(each) == 1 else Certificates(tuple(each))


class RunsMixin(RowsMixin):
    """What an estimator shows of its runs; it writes `_seen`, and a classifier `_run_labels`."""

    runs_: list[Any]
    fit_intercept: bool

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "runs_")

    @property
    def facts_(self) -> Any:
        """Facts of the run so far; for one-vs-rest a list, in the order of ``classes_``.

        Their loss is what the learner is judged by: for Widrow-Hoff and its kin the squared error.
        """
        check_is_fitted(self)
        return one_or_all([self._judged(run) for run in self.runs_])

    @property
    def total_facts_(self) -> Any:
        """Facts of all runs together."""
        check_is_fitted(self)
        first, *rest = (self._judged(run) for run in self.runs_)
        return sum(rest, first)

    def _judged(self, run: Any) -> Any:
        facts = run.facts
        return replace(facts, loss=facts.square) if getattr(run.learner, "score", "loss") == "square" else facts

    def _run_labels(self) -> list[str | None]:
        """What each run is called in certificates."""
        return [None]

    def _seen(self, X: Any, y: Any) -> list[np.ndarray]:
        """For each run, the targets as it sees them."""
        raise NotImplementedError

    def _data(self, k: int, X: Any, y: Any, sample_weight: Any) -> Data:
        """The rows as run k saw them; `X` may be a callable that gives a fresh iterator of chunks at each call."""
        bias = self.runs_[k].bias
        if callable(X):

            def chunks() -> Any:
                for rows, target, weight in X():
                    rows = self._matrix(rows, reset=False)
                    yield rows, self._seen(rows, target)[k], weight

            return Data.from_chunks(chunks, bias)
        X = self._matrix(X, reset=False)
        return Data(X, self._seen(X, y)[k], sample_weight, bias)
