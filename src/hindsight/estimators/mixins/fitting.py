"""Fitting that either succeeds or changes nothing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator


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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, certify: bool = False) -> Self:
        """Learn from these rows, forgetting any earlier ones; on an error the estimator is as before the call.

        Parameters
        ----------
        X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features)
            Rows, in the order in which they are learnt.
        y : array-like of shape (n_rows,)
            Targets or labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row, which multiplies its loss; None is 1.
        certify : bool, default=False
            Whether to also make the certificate, as ``certificate_``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
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
