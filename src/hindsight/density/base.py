"""What densities over independent columns share: learning rows as sufficient statistics, and predicting."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import RowError
from ..kernels import densities as kernels
from ..storage.fields import is_array, is_count, is_finite, is_vector
from ..storage.registry import storable, want
from ..validation import refuse_masked
from .online import Forgetting, forget_factor

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 1 << 16
FIRST = np.zeros(BLOCK, np.int32)  # the slots of rows that all go to slot 0

for _part in (kernels.Dirichlet, kernels.Restaurant, kernels.Rate, kernels.Waiting, kernels.Normal):
    storable(_part, where=__name__)


class Density(Forgetting):
    """A density over one column, or over several independent ones of the same family.

    `n` and `state` have one slot per set of statistics: usually a single one, or one per class or key if densities
    share arrays. `update` learns rows in their order; `progressive` also returns the log density of each row *before*
    it was learnt. The negative sum of these is the log loss. For a Bayes predictive it equals the negative log marginal
    likelihood, which the sufficient statistics give in closed form, independent of the order of the rows: `loss` costs
    nothing, and for merged shards it is the loss of one run over all their rows. With forgetting (`forget` below 1) the
    order matters: `loss` is summed row by row, and ``a + b``, which stands for the rows of b after those of a, has the
    sum of the losses of both.
    """

    name: str
    part: Any
    unit = "value"  # what the family takes, for errors

    def __init__(self, part: Any, width: int, forget: float) -> None:
        self.part, self.forget = part, forget_factor(forget)
        self.columns = part.prior.shape[1]
        self.n = np.zeros(1)
        self.state = np.zeros((1, width, self.columns))
        self.rows = 0
        self.shards = 1
        self._paid = 0.0
        self._whole: Any = None

    # ---- each family implements these, `_marginal` and `_best`

    def _merged(self, other: Self, keep: float) -> None:
        """Add the statistics of other, after multiplying these by `keep`."""
        if keep < 1.0:
            for j in range(self.columns):
                self.part.fade(self.state, 0, j, keep)
        self.state += other.state

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draws from the predictive, one per row."""
        raise NotImplementedError

    # ---- reading

    def _numbers(self, x: Any, grow: bool = False) -> np.ndarray:
        """The values as the numbers that kernels read, one row each; `grow` adds new symbols to the alphabet."""
        refuse_masked(x, "x")
        x = np.asarray(x)
        if x.dtype.kind in "OUS":
            x = parsed(x)
        elif x.dtype.kind not in "fiub":
            raise ValueError(f"{self.name} takes numbers, got {x.dtype}")
        return self._shaped(x)

    def _shaped(self, x: np.ndarray) -> np.ndarray:
        if x.ndim < 2 and self.columns == 1:
            x = x.reshape(-1, 1)
        if x.ndim != 2 or x.shape[1] != self.columns:
            raise ValueError(f"{self.name} over {self.columns} columns got an array of shape {x.shape}")
        return np.ascontiguousarray(x, x.dtype if x.dtype in (np.float32, np.float64) else np.float64)

    def _values(self, X: np.ndarray) -> np.ndarray:
        """The values that the kernels' numbers stand for."""
        return X

    def _refuse(self, X: np.ndarray) -> None:
        """Raise an error for the first value outside the support of the family."""
        place = int(kernels.refused(self.part, X))
        if place >= 0:
            row, column = divmod(place, self.columns)
            raise RowError(row, self._wrong(column, X[row, column]))

    def _wrong(self, column: int, value: Any) -> str:
        where = f", column {column}" if self.columns > 1 else ""
        number = "NaN" if np.isnan(value) else repr(float(value))
        return f"{where}: value {number} is not {self.unit}"

    # ---- learning

    def update(self, x: Any) -> Self:
        if self.forget < 1.0:
            return super().update(x)
        X = self._numbers(x, grow=True)
        learn(self, None, X)
        self.rows += len(X)
        return self

    def progressive(self, x: Any) -> np.ndarray:
        X = self._numbers(x, grow=True)
        self._refuse(X)
        self._remember(x)
        out = np.zeros(len(X))
        for at, slots in in_blocks(len(X)):
            kernels.play(self.part, slots, X[at], self.n, self.state, self.forget, out[at])
        self.rows += len(X)
        self._paid -= float(out.sum())
        return out

    def __add__(self, other: Self) -> Self:
        """Merge two densities, as if the rows of other had come after the rows of this one."""
        if type(other) is not type(self) or not self._alike(other):
            raise ValueError(f"only densities of one family and prior add up: {self!r} and {other!r} do not")
        both = self.copy()
        keep = both.forget**other.rows
        both._merged(other, keep)
        both.n = keep * both.n + other.n
        both._append(other)
        return both

    def _alike(self, other: Self) -> bool:
        return self.forget == other.forget and np.array_equal(self.part.prior, other.part.prior)

    def copy(self) -> Self:
        new = copy.copy(self)
        new.n, new.state = self.n.copy(), self.state.copy()
        new._whole = None if self._whole is None else self._whole.copy()
        return new

    def fresh(self) -> Self:
        new = self.copy()
        new.n[:], new.state[:] = 0.0, 0.0
        new.rows, new._paid, new._whole, new.shards = 0, 0.0, None, 1
        return new

    def as_prior(self, rows: float) -> Self:
        """A density without rows whose prior is what this one has learnt.

        Parameters
        ----------
        rows : float
            The weight of the learnt rows in the new prior, in rows and in addition to the old prior; above 0.

        Returns
        -------
        Density
            A density of the same family.

        Raises
        ------
        ValueError
            If the alphabet grows.
        """
        if getattr(self, "grows", False):
            raise ValueError("a growing alphabet makes no prior: declare the symbols")
        new = self.fresh()
        new.part = type(self.part)(self.part.prior.copy())
        weight = float(positive("rows", rows)[0])
        kernels.inherit(new.part, self.part.prior, self.state, 0, float(self.n[0]), weight)
        return new

    def given(self, prior: Self) -> Self:
        """A copy with the same rows but the prior of another density."""
        new = self.copy()
        new.part = prior.part
        return new

    def pooled(self) -> Self:
        """All slots merged into one."""
        one = Density.slot(self, 0)
        for s in range(1, self.n.size):
            other = Density.slot(self, s)
            one._merged(other, 1.0)
            one.n = one.n + other.n
        return one

    def slot(self, s: int) -> Self:
        """A copy of one slot that learns independently."""
        new = copy.copy(self)
        new.n, new.state = self.n[s : s + 1].copy(), self.state[s : s + 1].copy()
        new.rows = int(new.n[0])
        return new

    # ---- predicting

    def contest(self, X: np.ndarray, slots: np.ndarray, prior_rows: float) -> np.ndarray:
        """Predict each row under every slot, then learn it in its own slot; on an error nothing is learnt.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            The rows.
        slots : ndarray of shape (n_rows,)
            The slot of each row.
        prior_rows : float
            The weight, in rows, of the statistics of all slots together in the prior of each slot.

        Returns
        -------
        ndarray of shape (n_rows, n_slots)
            The log densities.
        """
        rows = self._numbers(X)
        self._refuse(rows)
        pooled, out = self.pooled(), np.empty((len(rows), self.n.size))
        n, state = np.append(self.n, pooled.n), np.concatenate([self.state, pooled.state])
        self._contest(prior_rows, slots, rows, n, state, out)
        self.n, self.state = n[:-1], state[:-1]
        return out

    def _contest(self, weight: float, slots: np.ndarray, X: np.ndarray, n: Any, state: Any, out: np.ndarray) -> None:
        part = type(self.part)(self.part.prior.copy())
        kernels.contest(part, self.part.prior, weight, slots, X, n, state, out)

    def terms(self, x: Any) -> np.ndarray:
        """The log density of each value under the predictive of the next row.

        Parameters
        ----------
        x : array-like of shape (n_rows,) or (n_rows, n_columns)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            In nats; -inf for values outside the support of the family.
        """
        X = self._numbers(x)
        if np.isnan(X).any():
            self._refuse(X)
        out = np.empty(X.shape)
        for at, slots in in_blocks(len(X)):
            kernels.terms(self.part, slots, X[at], self.n, self.state, out[at])
        return out

    def logp(self, x: Any) -> np.ndarray:
        refuse_masked(x, "x")
        x = np.asarray(x)
        step = max(1, BLOCK * 16 // self.columns)  # so that not all rows of many columns are held at once
        if x.ndim < 2 or len(x) <= step:
            return self.terms(x).sum(axis=1)
        out = np.empty(len(x))
        for a in range(0, len(x), step):
            try:
                out[a : a + step] = self.terms(x[a : a + step]).sum(axis=1)
            except RowError as error:
                raise RowError(a + error.row, error.message) from None
        return out

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        X = self._draw(size, rng)
        return self._values(X[:, 0] if self.columns == 1 else X)

    def __repr__(self) -> str:
        return f"<{self.name}, {self.rows:,} rows>"


def in_blocks(rows: int) -> Iterator[tuple[slice, np.ndarray]]:
    """The blocks of so many rows, each with the slots of rows that all go to slot 0."""
    for a in range(0, rows, BLOCK):
        b = min(rows, a + BLOCK)
        yield slice(a, b), FIRST[: b - a]


def learn(density: Density, slots: np.ndarray | None, X: np.ndarray) -> None:
    """Learn rows, each in its slot (None: all in slot 0); on an error nothing is learnt.

    A value that is not finite makes the sums of squares of a Gaussian not finite, so its rows need not be read twice.
    """
    if not isinstance(density.part, kernels.Normal):
        density._refuse(X)
    n, state = density.n, density.state
    kept = n.copy(), state.copy()
    for at, first in in_blocks(len(X)):
        kernels.absorb(density.part, first if slots is None else slots[at], X[at], n, state)
    if not np.isfinite(state).all():
        n[:], state[:] = kept
        density._refuse(X)
        raise ValueError(f"{density.name}: the sums of values up to {np.abs(X).max():g} overflow")


def check_statistics(fields: dict[str, Any], family: type, rows: int, width: int, sums: slice = slice(None)) -> None:
    """Refuse a loaded density with which the loops over rows could access memory out of bounds.

    Parameters
    ----------
    fields : dict
        The fields of the density.
    family : type
        The class of the family.
    rows : int
        Rows of the prior.
    width : int
        Number of statistics per column.
    sums : slice, default all
        Which statistics are sums of numbers that are at least 0.
    """
    part, n, state, columns = (fields[name] for name in ("part", "n", "state", "columns"))
    want(type(part) is family, f"`part` must be a {family.__name__}")
    prior = part.prior
    want(is_count(columns) and columns > 0, "`columns` must be a count above 0")
    want(is_array(prior, 2) and prior.shape == (rows, columns), f"the prior must be an array of shape {rows, columns}")
    above = prior[1:] if family is kernels.Normal else prior  # all but a mean
    want(is_finite(prior) and bool((above > 0.0).all()), "the prior must be finite numbers above 0")
    want(is_vector(n) and n.size > 0 and is_finite(n) and bool((n >= 0.0).all()), "`n` must be a vector of counts")
    shape = (n.size, width, columns)
    want(is_array(state, 3) and state.shape == shape, f"`state` must be an array of shape {shape}")
    want(is_finite(state) and bool((state[:, sums] >= 0.0).all()), "`state` must be finite, and sums at least 0")


def parsed(x: np.ndarray) -> np.ndarray:
    """Strings parsed as numbers; an error names the first row that is not a number."""
    try:
        return x.astype(np.float64)
    except (ValueError, TypeError):
        for row, value in enumerate(x.reshape(len(x), -1).tolist() if x.ndim else [[x.item()]]):
            for field in value:
                try:
                    float(field)
                except (ValueError, TypeError):
                    raise RowError(row, f": value {field!r} is not a number") from None
        raise


def positive(name: str, value: Any, columns: int | None = None) -> np.ndarray:
    """A hyperparameter above 0, one for all columns or one per column."""
    return finite(name, value, columns, low=0.0)


def prior_above_0(columns: int, **given: Any) -> np.ndarray:
    """A prior of hyperparameters above 0: one row for each of them, one column for each column."""
    return np.array([np.broadcast_to(positive(name, value, columns), columns) for name, value in given.items()])


def finite(name: str, value: Any, columns: int | None = None, low: float = -math.inf) -> np.ndarray:
    """A finite hyperparameter, one for all columns or one per column."""
    array = np.atleast_1d(np.asarray(value, np.float64))
    if array.ndim != 1 or not np.isfinite(array).all() or not (array > low).all():
        above = f" above {low:g}" if low > -math.inf else ""
        raise ValueError(f"{name} must be a finite number{above} (or one per column), got {value!r}")
    if columns is not None and array.size not in (1, columns):
        raise ValueError(f"{name} must be one number or {columns}, one per column; got {array.size}")
    return array
