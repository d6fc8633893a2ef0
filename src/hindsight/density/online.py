"""The interface of all densities, and the log loss and certificate of densities that may forget."""

from __future__ import annotations

import copy
import math
from typing import Any, Self, TypeVar

import numpy as np

from ..certificates.certificate import Assumption
from ..certificates.theorems import PREDICTIVE, Theorem
from ..storage.fields import is_count
from ..storage.registry import storable, want
from .certificate import LN2, DensityCertificate, judge, note_of_shards

Class = TypeVar("Class", bound=type)


def storable_density(cls: Class) -> Class:
    """Register a density class whose objects can be saved, by themselves or within others."""
    return storable(cls, file="density")


class OnlineDensity:
    """A density that predicts each row before it learns it."""

    def update(self, x: Any) -> Self:
        """Learn rows in their order.

        Parameters
        ----------
        x : rows
            Rows in one of the forms described by the class.

        Returns
        -------
        self

        Raises
        ------
        RowError
            If a value is outside the support of the density. Then nothing is learnt.
        """
        self.progressive(x)
        return self

    def progressive(self, x: Any) -> np.ndarray:
        """Predict each row, then learn it.

        Parameters
        ----------
        x : rows
            As for `update`.

        Returns
        -------
        ndarray of shape (n_rows,)
            The log density (or log probability) of each row before it was learnt, in nats.
        """
        raise NotImplementedError

    def logp(self, x: Any) -> np.ndarray:
        """The log density (or log probability) of each row under the predictive of the next row.

        Parameters
        ----------
        x : rows
            Rows in the form that `update` takes. They are not learnt.

        Returns
        -------
        ndarray of shape (n_rows,)
            In nats.
        """
        raise NotImplementedError

    def sample(self, size: int, rng: np.random.Generator) -> Any:
        """Draw rows from the predictive distribution of the next row.

        Parameters
        ----------
        size : int
            Number of rows, each drawn from the same predictive.
        rng : numpy.random.Generator
            The source of randomness.

        Returns
        -------
        rows
            In the form that `update` takes.
        """
        raise NotImplementedError

    def copy(self) -> Self:
        """A copy that learns independently."""
        return copy.deepcopy(self)

    def fresh(self) -> Self:
        """A density with the same settings and prior, and no rows."""
        raise NotImplementedError

    def describe(self) -> str:
        """Describe what was learnt in a short text."""
        raise NotImplementedError

    def save(self, path: Any) -> None:
        """Write the density to one file.

        Parameters
        ----------
        path : str or os.PathLike
            Where to write it. `hindsight.load` reads it back as an equal density that can continue learning.

        Raises
        ------
        ModelError
            If a part of it cannot be saved, or the file cannot be written.
        """
        from ..storage.model import save_content

        save_content("density", self, path)

    @property
    def bits_per_row(self: Any) -> float:
        """The mean log loss per row in bits; NaN before the first row."""
        return self.loss / LN2 / self.rows if self.rows else math.nan


class Forgetting(OnlineDensity):
    """A density that may forget earlier rows: its loss, its rival in hindsight, and its certificate.

    With ``forget = 1`` the loss is the negative log marginal likelihood, in closed form. With ``forget`` below 1 it is
    summed row by row in `_paid`, and `_whole` learns the same rows without forgetting, to compute the rival.
    """

    forget: float
    rows: int
    shards: int
    _paid: float
    _whole: Any

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        forget, whole = fields["forget"], fields["_whole"]
        want(isinstance(forget, float) and 0.0 < forget <= 1.0, "`forget` must lie in (0, 1]")
        want(is_count(fields["rows"]) and is_count(fields["shards"]), "`rows` and `shards` must be counts")
        want(isinstance(fields["_paid"], float), "`_paid` must be a number")
        want(whole is None or isinstance(whole, Forgetting), "`_whole` must be a density")

    def _marginal(self) -> float:
        """-ln of the marginal likelihood of all rows."""
        raise NotImplementedError

    def _best(self) -> float:
        """-ln of the maximum likelihood."""
        raise NotImplementedError

    def _theorem(self) -> tuple[Theorem, float, tuple[Assumption, ...]]:
        """The theorem, its bound on the regret (NaN if there is none), and its assumptions."""
        return PREDICTIVE, math.nan, ()

    def _remember(self, x: Any) -> None:
        """With forgetting, also learn these rows without forgetting."""
        if self.forget < 1.0:
            if self._whole is None:
                self._whole = self.fresh()
                self._whole.forget = 1.0
            self._whole.update(x)

    def _append(self, other: Self) -> None:
        """Add the rows and the loss of other."""
        self.shards = total_shards(self, other)
        self.rows += other.rows
        self._paid += other._paid
        if self._whole is not None and other._whole is not None:
            self._whole = self._whole + other._whole
        elif other._whole is not None:
            self._whole = other._whole.copy()

    @property
    def loss(self) -> float:
        """Cumulative log loss in nats of predicting each row before learning it."""
        return self._paid if self.forget < 1.0 else self._marginal()

    def certificate(self) -> DensityCertificate:
        """Certify the regret against the best fixed distribution of the family in hindsight.

        Returns
        -------
        DensityCertificate
            The regret, and a bound on it if there is a theorem (docs/theory.md#density).

        Raises
        ------
        ValueError
            If no row has been learnt.
        """
        theorem, bound, needs = self._theorem()
        if self.forget == 1.0:
            return judge(theorem, self.loss, self._best(), bound, self.rows, needs, note_of_shards(self.shards, True))
        faded = Assumption(f"old rows fade: forget = {self.forget:g}, which must be 1", False)
        best = self._whole._best() if self._whole is not None else 0.0
        return judge(theorem, self.loss, best, math.nan, self.rows, (*needs, faded), note_of_shards(self.shards, False))


def forget_factor(forget: float) -> float:
    """The forgetting factor, checked to lie in (0, 1]."""
    if not 0.0 < forget <= 1.0:
        raise ValueError(f"forget must lie in (0, 1], got {forget!r}")
    return float(forget)


def total_shards(a: Any, b: Any) -> int:
    """The number of separate runs behind two merged densities; those without rows do not count."""
    return max(1, int(a.shards * (a.rows > 0) + b.shards * (b.rows > 0)))
