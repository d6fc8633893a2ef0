"""Independent densities over named columns, such as hour, duration and destination of a call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np

from ..errors import RowError
from ..storage.fields import is_count
from ..storage.registry import want
from .base import parsed
from .certificate import DensityCertificate, of_columns
from .online import OnlineDensity, storable_density


@storable_density
class Product(OnlineDensity):
    """A density over rows of named columns, each with its own density, independent of the others.

    Rows are a mapping of names to arrays, a dataframe, or a 2-D array with the columns in the order of `densities`.
    Samples are a mapping.

    Parameters
    ----------
    densities : mapping of str to density
        The density of each column; a density over several columns has a tuple of names as its key.

    Attributes
    ----------
    densities : dict
        The densities by name.
    rows : int
        Number of rows learnt.
    loss : float
        Cumulative log loss in nats: the sum over the columns.

    Examples
    --------
    >>> from hindsight.density import Categorical, Exponential
    >>> calls = Product({"hour": Categorical(24), "minutes": Exponential()})
    >>> calls.update({"hour": [9, 9, 10], "minutes": [1.0, 3.0, 2.0]}).rows
    3
    """

    name = "product"

    def __init__(self, densities: Mapping[Any, Any]) -> None:
        if not densities:
            raise ValueError("a product needs at least one column")
        self.densities = dict(densities)
        self.rows = 0

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        densities = fields["densities"]
        want(isinstance(densities, dict) and len(densities) > 0, "a product needs at least one column")
        want(all(isinstance(d, OnlineDensity) for d in densities.values()), "`densities` must be densities")
        for key, density in densities.items():
            names = len(key) if isinstance(key, tuple) else 1
            want(names == density.columns, f"{names} names for {density.columns} columns")
        want(is_count(fields["rows"]), "`rows` must be a count")

    @property
    def names(self) -> list[str]:
        """Names of the columns; those of one density over several columns are joined with +."""
        return [" + ".join(map(str, k)) if isinstance(k, tuple) else str(k) for k in self.densities]

    @property
    def columns(self) -> int:
        """Number of columns of a row."""
        return sum(d.columns for d in self.densities.values())

    def split(self, x: Any) -> list[Any]:
        """Split rows into the values of each density.

        Parameters
        ----------
        x : mapping, dataframe or array-like of shape (n_rows, columns)
            The rows.

        Returns
        -------
        list of ndarray
            One per density, all of the same length.
        """
        frame = columns_of(x)
        if frame is None:
            X = np.asarray(x)
            if X.ndim != 2 or X.shape[1] != self.columns:
                raise ValueError(f"a product over {self.columns} columns got an array of shape {X.shape}")
            ends = np.cumsum([d.columns for d in self.densities.values()]).tolist()
            return [X[:, a] if b == a + 1 else X[:, a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        out, length = [], None
        for key in self.densities:
            names = key if isinstance(key, tuple) else (key,)
            for name in names:
                if name not in frame:
                    raise ValueError(f"there is no column {name!r} (columns: {', '.join(map(str, frame))})")
                count = len(frame[name])
                if length is not None and count != length:
                    raise ValueError(f"column {name!r} has {count} rows, the others have {length}")
                length = count
            values = [frame[name] for name in names]
            out.append(values[0] if len(values) == 1 else np.stack([number_column(v) for v in values], axis=1))
        return out

    def _each(self, x: Any, what: str) -> tuple[dict[Any, Any], list[Any]]:
        """Call a method of each density, on a copy if it learns; return the densities and the results."""
        done, answers = {}, []
        for key, name, values in zip(self.densities, self.names, self.split(x), strict=True):
            density = self.densities[key]
            done[key] = density.copy() if what in ("update", "progressive") else density
            try:
                answers.append(getattr(done[key], what)(values))
            except RowError as error:
                raise RowError(error.row, f", column {name!r}{error.message}") from None
        return done, answers

    def update(self, x: Any) -> Self:
        self.densities, _ = self._each(x, "update")
        self.rows = next(iter(self.densities.values())).rows
        return self

    def progressive(self, x: Any) -> np.ndarray:
        self.densities, paid = self._each(x, "progressive")
        self.rows = next(iter(self.densities.values())).rows
        return np.asarray(sum(paid))

    def terms(self, x: Any) -> np.ndarray:
        """The log density of each row by density, in nats: an array of shape (n_rows, n_densities)."""
        return np.stack(self._each(x, "logp")[1], axis=1)

    def logp(self, x: Any) -> np.ndarray:
        return np.asarray(self.terms(x).sum(axis=1))

    logpdf = logp

    def sample(self, size: int, rng: np.random.Generator) -> dict[Any, np.ndarray]:
        out: dict[Any, np.ndarray] = {}
        for key, density in self.densities.items():
            drawn = density.sample(size, rng)
            if isinstance(key, tuple):
                out |= {name: drawn[:, j] for j, name in enumerate(key)}
            else:
                out[key] = drawn
        return out

    def __add__(self, other: Self) -> Self:
        """Merge two products, as if the rows of other had come after the rows of this one."""
        if list(self.densities) != list(other.densities):
            raise ValueError(f"only products over the same columns add up: {self.names} and {other.names} do not")
        both = self.copy()
        both.densities = {key: density + other.densities[key] for key, density in self.densities.items()}
        both.rows = self.rows + other.rows
        return both

    def copy(self) -> Self:
        new = type(self)({key: density.copy() for key, density in self.densities.items()})
        new.rows = self.rows
        return new

    def fresh(self) -> Self:
        return type(self)({key: density.fresh() for key, density in self.densities.items()})

    def as_prior(self, rows: float) -> Product:
        """A product without rows whose priors are what this one has learnt, weighted as that many rows."""
        return Product({key: density.as_prior(rows) for key, density in self.densities.items()})

    @property
    def loss(self) -> float:
        """Cumulative log loss in nats: the sum over the columns."""
        return math.fsum(density.loss for density in self.densities.values())

    def certificate(self) -> DensityCertificate:
        """Certify each density and their sum; see `DensityCertificate.parts`."""
        parts = {name: d.certificate() for name, d in zip(self.names, self.densities.values(), strict=True)}
        return of_columns("product of independent columns", self.rows, parts)

    def describe(self) -> str:
        return "; ".join(
            f"{name}: {d.name} {d.describe()}" for name, d in zip(self.names, self.densities.values(), strict=True)
        )

    def __repr__(self) -> str:
        return f"<product over {', '.join(self.names)}, {self.rows:,} rows>"


def columns_of(x: Any) -> Mapping[Any, Any] | None:
    """The columns by name, from a mapping or a dataframe; None for anything else."""
    if isinstance(x, Mapping):
        return x
    frame = nw.from_native(x, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return {name: frame[name].to_numpy() for name in frame.columns}
    return None


def number_column(x: Any) -> np.ndarray:
    """A column of numbers; strings are parsed."""
    x = np.asarray(x)
    return parsed(x) if x.dtype.kind in "OUS" else x.astype(np.float64)
