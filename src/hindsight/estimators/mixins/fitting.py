"""Fitting that either succeeds or changes nothing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


def all_rows(source: Any) -> tuple[Any, Any, Any]:
    """The rows, targets and weights of a source."""
    chunks = [chunk for chunk in source.chunks() if len(chunk)]
    if not chunks or chunks[0].y is None:
        raise ValueError(f"{source.where}: there is no row" if not chunks else f"{source.where}: open it with a target")
    X = [chunk.X for chunk in chunks]
    targets = np.concatenate([chunk.y for chunk in chunks])
    weights = [np.ones(len(chunk)) if chunk.weight is None else chunk.weight for chunk in chunks]
    weight = None if all(chunk.weight is None for chunk in chunks) else np.concatenate(weights)
    if isinstance(X[0], np.ndarray):
        return np.concatenate(X), targets, weight
    from scipy.sparse import vstack

    for rows in X:  # features may have joined
        rows.resize((rows.shape[0], X[-1].shape[1]))
    return vstack(X, format="csr"), targets, weight


class AllOrNothingMixin:
    """Attributes that are put back when something fails."""

    _private_state: tuple[str, ...] = ()  # attributes of a fit whose names do not end in an underscore

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put every attribute back if an exception leaves the block; objects that they refer to must not change."""
        kept = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(kept)
            raise

    def _forget_fit(self) -> None:
        """Remove what an earlier fit left."""
        for name in [k for k in vars(self) if k.endswith("_") or k in self._private_state]:
            delattr(self, name)


class FitMixin(AllOrNothingMixin):
    """`fit` as a fresh start: either it succeeds, or the estimator is as it was.

    An estimator writes `_fit`, which learns from nothing, and `certify`.
    """

    certificate_: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, certify: bool = False) -> Self:
        """Learn from these rows, forgetting any earlier ones; on an error the estimator is as before the call.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features), or source
            Rows, in the order in which they are learnt; what `hindsight.open_source` opened is read into memory.
        y : array-like of shape (n_rows,), default=None
            Targets or labels; None with a source that has them.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, which multiplies its loss; None is 1.
        certify : bool, default=False
            Whether to also make the certificate, as ``certificate_``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if y is None and callable(getattr(X, "chunks", None)):
            X, y, sample_weight = all_rows(X)
        with self._all_or_nothing():
            self._forget_fit()
            self._fit(X, y, sample_weight)
            if certify:
                self.certificate_ = self.certify(X, y, sample_weight)
        return self

    def _drop_certificate(self) -> None:
        """Forget a certificate that does not speak of all rounds any more."""
        self.__dict__.pop("certificate_", None)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        raise NotImplementedError

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        raise NotImplementedError
