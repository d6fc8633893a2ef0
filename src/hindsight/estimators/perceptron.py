"""The batch perceptron as a scikit-learn classifier."""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..batch.perceptron import BatchPerceptron
from ..certificates.certificate import combined
from ..certificates.families.batch_perceptron import certify_batch_perceptron
from ..kernels.euclidean import Euclidean
from ..online.run import check_start
from ..rows.data import Data
from ..storage.fields import is_count
from ..storage.registry import want
from ..validation import whole
from .mixins.linear import MarginClassifierMixin
from .mixins.runs import one_or_all, starts_of
from .progress import progress_bar


def of_each_halfspace(name: str, words: str) -> property:
    """An attribute of the halfspaces: a scalar if there is only one, otherwise an array."""

    def get(model: BatchPerceptronClassifier) -> Any:
        check_is_fitted(model)
        values = [getattr(half, name) for half in model.halfspaces_]
        return values[0] if len(values) == 1 else np.array(values)

    return property(get, doc=words)


class BatchPerceptronClassifier(MarginClassifierMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear classifier by the batch perceptron with a pocket.

    With labels -1 and 1, the rows are scanned repeatedly in their order, and w += y x for every row with y (w.x) <= 0
    [1]_. Training stops when no such row is left; `max_passes` scans take the same steps as
    ``PerceptronClassifier(passes=...)``. Predictions use the pocket: among all weight vectors met during training, the
    one with the fewest training errors [3]_.

    On separable rows training stops after at most (R |u|)^2 updates for every u with y (u.x) >= 1 on all rows, where R
    is the largest |x| [2]_ (docs/theory.md#batch-perceptron has the bound from a start other than 0). On rows that are
    not separable it runs until a cap is reached. Two classes share one halfspace, in which ``classes_[1]`` is 1; with
    more classes, each has a one-vs-rest halfspace.

    Parameters
    ----------
    max_passes : int or None, default=100
        Largest number of scans of the rows in a call of `fit`; None for no cap.
    max_updates : int or None, default=None
        Largest number of updates of each halfspace in a call of `fit`; None for no cap. At least one of the two caps is
        required.
    effort : float, default=1.0
        How many rows may be read to count training errors for each row scanned, in addition to an initial allowance of
        a few hundredths of a second. Errors are counted for every weight vector as long as this budget lasts, and then
        for as many as it allows. ``math.inf`` counts them for all weight vectors, at any cost.
    fit_intercept : bool, default=True
        Whether to append a constant coordinate 1 to every row; it counts in the norms.
    start : array-like of shape (n_weights,) or (n_runs, n_weights), default=None
        The initial weights, the intercept's last; None is 0.
    warm_start : bool, default=False
        Whether `fit` continues from the weights, the pocket and the counters of the previous fit.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_runs, n_features_in_)
        Weights of the features in the pocket: one row for two classes, otherwise one row per class.
    intercept_ : ndarray of shape (n_runs,)
        Weight of the constant coordinate; 0 without one.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    n_updates_ : int or ndarray of shape (n_classes,)
        Updates since the last fit from scratch. With more than two classes, this and the following attributes have one
        value per class.
    n_visits_ : int or ndarray of shape (n_classes,)
        Rows scanned since the last fit from scratch.
    converged_ : bool or ndarray of shape (n_classes,)
        Whether training stopped before a cap: every row is classified correctly, so the rows are separable.
    training_errors_ : int or ndarray of shape (n_classes,)
        Training errors of the pocket; a margin of 0 is an error.
    pocket_exact_ : bool or ndarray of shape (n_classes,)
        Whether the errors of all weight vectors since the last fit from scratch were counted, on the same rows. If
        True, none had fewer errors than the pocket.
    facts_ : Facts or list of Facts
        Counts and sums over the same rounds played online.
    certificate_ : Certificate or Certificates
        Made by ``fit(..., certify=True)``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the rows had names.

    References
    ----------
    .. [1] F. Rosenblatt, "The perceptron: a probabilistic model for information storage and organization in the
       brain", Psychological Review 65(6), 1958.
    .. [2] A. B. J. Novikoff, "On convergence proofs on perceptrons", Symposium on the Mathematical Theory of Automata,
       1962.
    .. [3] S. I. Gallant, "Perceptron-based learning algorithms", IEEE Transactions on Neural Networks 1(2), 1990.

    Examples
    --------
    >>> from hindsight import BatchPerceptronClassifier
    >>> model = BatchPerceptronClassifier().fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.5], [3.5]]).tolist(), model.converged_, model.training_errors_
    (['low', 'high'], True, 0)
    """

    halfspaces_: Annotated[list[BatchPerceptron], "one per class"]

    def __init__(
        self,
        max_passes: int | None = 100,
        *,
        max_updates: int | None = None,
        effort: float = 1.0,
        fit_intercept: bool = True,
        start: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self._take_parameters(locals())

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        if "halfspaces_" not in fields:
            return
        halves, features, classes = fields["halfspaces_"], fields.get("n_features_in_"), fields["classes_"]
        want(len(halves) == (1 if classes.size == 2 else classes.size), "`halfspaces_` must be one per class")
        for half in halves:
            fits = is_count(features) and half.pocket.size == halves[0].pocket.size
            want(fits and half.pocket.size - features in (0, 1), f"a halfspace has {half.pocket.size} weights")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "halfspaces_")

    # ---- learning

    def fit(self, X: Any, y: Any, *, certify: bool = False) -> Self:  # type: ignore[override]
        """Scan the rows until all are classified correctly or a cap is reached; if it raises, the estimator is
        unchanged.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Labels, of at least two classes.
        certify : bool, default=False
            Whether to also compute the certificate and store it as ``certificate_``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        caps = self._caps()
        with self._all_or_nothing():
            resume = self.warm_start and self.__sklearn_is_fitted__()
            rows, targets = self._rows(X, y, reset=not resume)
            width = rows.shape[1] + self.fit_intercept
            old = self.halfspaces_ if resume else self._begun(width, len(targets))
            if old[0].pocket.size != width:
                raise ValueError("fit_intercept must stay as it was for a warm start")
            new = [half.copy() for half in old]
            for half, target, label in zip(new, targets, self._run_labels(), strict=True):
                self._train(half, self._data(rows, target), label, caps)
            self.halfspaces_ = new
            self.__dict__.pop("certificate_", None)
            if certify:
                self.certificate_ = self.certify(X, y)
        return self

    def _train(self, half: BatchPerceptron, data: Data, label: str | None, caps: dict[str, int | None]) -> None:
        """Train a halfspace, with a progress bar towards the nearer cap that also shows updates and errors."""
        visits, updates, rows = half.visits, half.updates, data.rounds
        who = "" if label is None else f"{label}: "

        def notify(now: BatchPerceptron) -> None:
            done = (now.visits - visits) / rows / (caps["passes"] or math.inf)
            done = max(done, (now.updates - updates) / (caps["updates"] or math.inf))
            end = ": separated" if now.converged else ""
            words = f"{who}{now.updates:,} updates, {now.errors:,} of {rows:,} wrong{end}"
            update(completed=1.0 if now.converged else done, description=words)

        names = self._feature_names
        with progress_bar(self.verbose, "", 1.0, counted=False) as update:
            half.train(data, reads_per_visit=float(self.effort), notify=notify, names=names, **caps)

    def _begun(self, width: int, count: int) -> list[BatchPerceptron]:
        """`count` halfspaces with their initial weights."""
        starts = starts_of(self.start, count, "halfspaces")
        return [
            BatchPerceptron.begun(width, None if w is None else check_start(Euclidean(1.0), w.copy(), width))
            for w in starts
        ]

    def _caps(self) -> dict[str, int | None]:
        """The caps on passes and updates, checked; and `effort` with them."""
        given = {"passes": self.max_passes, "updates": self.max_updates}
        caps = {k: None if v is None else whole(f"max_{k}", v, other="None or ") for k, v in given.items()}
        if caps["passes"] is None and caps["updates"] is None:
            raise ValueError("give max_passes or max_updates: on rows that are not separable it never stops by itself")
        known = isinstance(self.effort, (int, float, np.integer, np.floating)) and not isinstance(self.effort, bool)
        if not known or not self.effort >= 0.0:
            raise ValueError(f"effort must be a number, at least 0; got {self.effort!r}")
        return caps

    def _rows(self, X: Any, y: Any, reset: bool) -> tuple[Any, list[np.ndarray]]:
        """The rows in one contiguous block, and the labels -1 and 1 of each halfspace."""
        X = self._read(X, reset, ensure_all_finite=False, order="C")
        y = self._labels(X, y)
        if reset:
            self._set_classes(y)
        return X, self._run_targets(y, "sign")

    def _data(self, X: Any, target: np.ndarray) -> Data:
        return Data(X, target, None, float(self._intercept))

    # ---- what was learnt

    def _weights(self) -> np.ndarray:
        check_is_fitted(self)
        return np.vstack([half.pocket for half in self.halfspaces_])

    n_updates_ = of_each_halfspace("updates", "Updates so far.")
    n_visits_ = of_each_halfspace("visits", "Rows scanned so far.")
    converged_ = of_each_halfspace("converged", "Whether training stopped before a cap.")
    training_errors_ = of_each_halfspace("errors", "Errors of the pocket.")
    pocket_exact_ = of_each_halfspace("all_counted", "Whether the errors of all weight vectors were counted.")

    @property
    def facts_(self) -> Any:
        """Counts and sums over the same rounds played online; a list for more than two classes."""
        check_is_fitted(self)
        return one_or_all([half.facts for half in self.halfspaces_])

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return the certificate of the training: its updates against (R |u|)^2, with u of the largest margin.

        The verdict is VOID, with a proof, if no u separates the rows.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows as in `fit`.
        y : array-like of shape (n_rows,)
            Labels as in `fit`.
        sample_weight : None, default=None
            Not supported.

        Returns
        -------
        Certificate or Certificates
            One certificate; for more than two classes `Certificates` with one per class.
        """
        check_is_fitted(self)
        if sample_weight is not None:
            raise ValueError("the batch perceptron knows no weights: leave sample_weight out")
        X, targets = self._rows(X, y, reset=False)
        return combined([
            certify_batch_perceptron(half, self._data(X, target), label)
            for half, target, label in zip(self.halfspaces_, targets, self._run_labels(), strict=True)
        ])  # fmt: skip
