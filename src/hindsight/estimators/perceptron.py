"""The batch perceptron as a scikit-learn classifier."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from ..batch.perceptron import BatchPerceptron
from ..certificates.batch_perceptron import certify_batch_perceptron
from ..errors import RowError
from ..rows.data import Data
from .base import OnlineEstimator, SaveMixin
from .classify import OnlineClassifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class BatchPerceptronClassifier(SaveMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The batch perceptron (N2): w += y x for a row with y (w.x) <= 0 until there is none; the pocket keeps the best.

    Rows are scanned in their order, over and over, and each violated one is taken as it is met: `passes` scans take the
    steps of ``PerceptronClassifier(passes=...)``. On separable rows it stops by itself after at most (RB)^2 updates,
    R = max |x| and B the least |u| with y (u.x) >= 1 on all rows; on others never, and the caps end it. It predicts
    with the pocket: the weights with the fewest training errors, counted over all rows.

    Parameters
    ----------
    max_passes : scans of the rows in a call of `fit`, at most; None for no cap.
    max_updates : updates in a call of `fit`, at most, for each class; None for no cap. One of the two is needed.
    effort : rows that may be read to count errors for each row scanned (beside a first few hundredths of a second).
        While that lasts every hypothesis is counted; then as many as it allows, the rest being passed over.
        ``math.inf`` counts every hypothesis, whatever that costs.
    fit_intercept : a constant coordinate 1, which counts in the norms.
    warm_start : go on from the weights, the pocket and the counters of the last `fit`.
    verbose : a progress bar on stderr.

    Attributes
    ----------
    classes_, n_features_in_, coef_, intercept_ : as in scikit-learn; classes_[1] is 1, or each is 1 against the rest.
    n_updates_, n_visits_ : updates, and rows scanned, in all calls since the last fresh start.
    converged_ : whether it stopped by itself: every row is right, so the rows are separable.
    training_errors_ : of the pocket; a zero margin is an error.
    pocket_exact_ : whether every hypothesis of the last `fit` was counted: then none had fewer errors than the pocket.
    facts_ : facts of the same rounds played online.

    With more than two classes the last six hold one value a class, in the order of `classes_`.

    Examples
    --------
    >>> model = BatchPerceptronClassifier().fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.5], [3.5]]).tolist(), model.converged_, model.training_errors_
    (['low', 'high'], True, 0)
    """

    halfspaces_: list[BatchPerceptron]
    n_features_in_: int

    def __init__(
        self,
        max_passes: int | None = 100,
        *,
        max_updates: int | None = None,
        effort: float = 1.0,
        fit_intercept: bool = True,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.max_passes = max_passes
        self.max_updates = max_updates
        self.effort = effort
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.verbose = verbose

    _read = OnlineEstimator._read
    _labels = OnlineClassifier._labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "halfspaces_")

    # ---- learning

    def fit(self, X: Any, y: Any, *, certify: bool = False) -> Self:
        """Scan the rows until all are right or a cap is met; on an error everything is as before the call.

        Parameters
        ----------
        X : rows: array, CSR matrix or dataframe.
        y : labels of two classes or more.
        certify : also make the certificate, as `certificate_`.
        """
        caps = {"passes": _cap("max_passes", self.max_passes), "updates": _cap("max_updates", self.max_updates)}
        if caps["passes"] is None and caps["updates"] is None:
            raise ValueError("give max_passes or max_updates: on rows that are not separable it never stops by itself")
        known = isinstance(self.effort, (int, float, np.integer, np.floating)) and not isinstance(self.effort, bool)
        if not known or not self.effort >= 0.0:
            raise ValueError(f"effort must be a number, at least 0; got {self.effort!r}")
        kept = dict(self.__dict__)
        try:
            going = self.warm_start and self.__sklearn_is_fitted__()
            given, (X, targets) = X, self._rows(X, y, reset=not going)
            old = (
                self.halfspaces_ if going else [BatchPerceptron.at_zero(X.shape[1] + self.fit_intercept)] * len(targets)
            )
            if old[0].weights.size != X.shape[1] + self.fit_intercept:
                raise ValueError("fit_intercept must stay as it was for a warm start")
            new = [half.copy() for half in old]
            names = getattr(self, "feature_names_in_", None)
            for k, half in enumerate(new):
                with _progress(self.verbose, self._labels_of(len(new))[k], caps, half, X.shape[0]) as tell:
                    half.train(
                        self._data(X, targets[k]), reads_per_visit=float(self.effort), notify=tell, names=names, **caps
                    )  # fmt: skip
            self.halfspaces_ = new
            self.__dict__.pop("certificate_", None)
            if certify:
                self.certificate_ = self.certify(given, y)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(kept)
            raise
        return self

    def _rows(self, X: Any, y: Any, reset: bool) -> tuple[Any, list[np.ndarray]]:
        """The rows in one piece, and the labels -1 and 1 of each halfspace."""
        X = self._read(X, reset, ensure_all_finite=False, order="C")
        y = self._labels(X, y)
        if reset:
            self.classes_ = unique_labels(y)
            if len(self.classes_) < 2:
                raise ValueError(f"there must be at least two classes, got one class: {self.classes_.item(0)!r}")
        elif not np.isin(y, self.classes_).all():
            row = int(np.flatnonzero(~np.isin(y, self.classes_))[0])
            raise RowError(row, f": class {y[row].item()!r} was not there before (classes={self.classes_.tolist()})")
        ours = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return X, [np.where(y == label, 1.0, -1.0) for label in ours]

    def _data(self, X: Any, target: np.ndarray) -> Data:
        return Data(X, target, None, 1.0 if self.fit_intercept else 0.0)

    def _labels_of(self, count: int) -> list[str | None]:
        return [None] if count == 1 else [str(label) for label in self.classes_]

    # ---- what was learnt

    def _each(self, values: list[Any]) -> Any:
        check_is_fitted(self)
        return values[0] if len(values) == 1 else np.array(values)

    @property
    def coef_(self) -> np.ndarray:
        """The weights of the features in the pocket, a row a class (one row for two classes)."""
        check_is_fitted(self)
        return np.vstack([half.pocket[: self.n_features_in_] for half in self.halfspaces_])

    @property
    def intercept_(self) -> np.ndarray:
        """The weight of the constant coordinate; 0 without one."""
        check_is_fitted(self)
        return np.array([half.pocket[-1] if self.fit_intercept else 0.0 for half in self.halfspaces_])

    @property
    def n_updates_(self) -> Any:
        """Updates so far."""
        return self._each([half.updates for half in self.halfspaces_])

    @property
    def n_visits_(self) -> Any:
        """Rows scanned so far."""
        return self._each([half.visits for half in self.halfspaces_])

    @property
    def converged_(self) -> Any:
        """Whether it stopped by itself."""
        return self._each([half.converged for half in self.halfspaces_])

    @property
    def training_errors_(self) -> Any:
        """Errors of the pocket."""
        return self._each([half.errors for half in self.halfspaces_])

    @property
    def pocket_exact_(self) -> Any:
        """Whether every hypothesis was counted."""
        return self._each([half.all_counted for half in self.halfspaces_])

    @property
    def facts_(self) -> Any:
        """Facts of the same rounds played online; a list for more than two classes."""
        check_is_fitted(self)
        facts = [half.facts for half in self.halfspaces_]
        return facts[0] if len(facts) == 1 else facts

    def decision_function(self, X: Any) -> np.ndarray:
        """Margins: for two classes one a row (above 0 is classes_[1]), otherwise one a class."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        z = np.asarray(X @ self.coef_.T) + self.intercept_
        return z[:, 0] if z.shape[1] == 1 else z

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        z = self.decision_function(X)
        return np.asarray(self.classes_[(z > 0).astype(int) if z.ndim == 1 else z.argmax(axis=1)])

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Certificate 8 over the rows it was trained on: its updates against (R|u|)^2, u of largest margin.

        VOID, with a proof, where no u separates them. One certificate a class for more than two.
        """
        from ..certificates.certificate import Certificates

        check_is_fitted(self)
        if sample_weight is not None:
            raise ValueError("the batch perceptron knows no weights: leave sample_weight out")
        X, targets = self._rows(X, y, reset=False)
        labels = self._labels_of(len(targets))
        each = [
            certify_batch_perceptron(half, self._data(X, target), label)
            for half, target, label in zip(self.halfspaces_, targets, labels, strict=True)
        ]
        return each[0] if len(each) == 1 else Certificates(tuple(each))


def _cap(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number, at least 1, or None; got {value!r}")
    return int(value)


@contextmanager
def _progress(
    verbose: bool, label: str | None, caps: dict[str, int | None], half: BatchPerceptron, rows: int
) -> Iterator[Callable[[BatchPerceptron], None] | None]:
    """A bar that fills up to the nearer cap, with updates and errors beside it."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    began = half.visits, half.updates
    parts = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=1.0)

        def tell(now: BatchPerceptron) -> None:
            shares = [
                done / cap
                for done, cap in (
                    ((now.visits - began[0]) / rows, caps["passes"] or math.inf),
                    (now.updates - began[1], caps["updates"] or math.inf),
                )
            ]
            who = "" if label is None else f"{label}: "
            what = f"{who}{now.updates:,} updates, {now.errors:,} of {rows:,} wrong" + (
                ": separated" if now.converged else ""
            )
            bar.update(task, completed=1.0 if now.converged else max(shares), description=what)

        yield tell
