"""Densities of counts: symbols, booleans, event counts, and bins of a histogram."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import gammaln, xlogy

from ..certificates import theorems
from ..certificates.certificate import Assumption
from ..errors import RowError
from ..kernels import densities as kernels
from ..storage.fields import check_places, is_finite, is_vector
from ..storage.registry import want
from .base import Density, check_statistics, finite, positive, prior_above_0
from .online import storable_density

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.theorems import Theorem

COUNT = "a count (0, 1, 2, ...)"


@storable_density
class Categorical(Density):
    """Symbols with Dirichlet pseudo-counts: p(i) = (n_i + alpha_i)/(n + Σ alpha).

    With alpha = ½ (Krichevsky-Trofimov) the regret against the best fixed distribution is at most (k−1)/2·ln T + ln k
    nats; with alpha = 1 (Laplace) at most ln C(T+k−1, k−1): docs/theory.md#density. A declared symbol that was not seen
    yet has only its pseudo-count; undeclared symbols are an error.

    Without declared symbols the alphabet grows: p(i) = n_i/(n + alpha) for symbols already seen, and alpha/(n + alpha)
    for all new symbols together, so that the probabilities sum to 1. The loss does not include the identity of a new
    symbol, and samples contain None for one. For a growing alphabet there is no bound.

    Parameters
    ----------
    symbols : sequence, int or None, default None
        The declared symbols, or their number k (then they are 0..k−1), or None for a growing alphabet.
    alpha : float or array-like of shape (k,), default 0.5
        Pseudo-count above 0, for all symbols or one per symbol.
    columns : int, default 1
        Number of independent columns over the same symbols; rows are an array of shape (n_rows,) or (n_rows, columns).
    forget : float, default 1.0
        Forgetting factor in (0, 1] that multiplies the statistics of earlier rows at each row; 1 forgets nothing.

    Attributes
    ----------
    symbols : list
        The symbols, declared or seen.
    rows : int
        Number of rows learnt.
    loss : float
        Cumulative log loss in nats of predicting each row before learning it.

    References
    ----------
    Krichevsky and Trofimov (1981); Blackwell and MacQueen (1973) for growing alphabets. See docs/bibliography.md.

    Examples
    --------
    >>> p = Categorical(["sun", "rain"]).update(["sun", "sun", "rain"])
    >>> np.exp(p.logpmf(["sun", "rain"]))
    array([0.625, 0.375])
    >>> p.certificate().verdict.value
    'HOLDS'
    """

    name = "categorical"

    def __init__(
        self, symbols: int | Sequence[Any] | None = None, alpha: Any = 0.5, *, columns: int = 1, forget: float = 1.0
    ) -> None:
        self._place: dict[Any, int] | None = None
        self.grows = symbols is None
        if symbols is None:
            if columns != 1 or np.ndim(alpha):
                raise ValueError("a growing alphabet takes one column and one alpha: declare the symbols")
            self._place = {}
            super().__init__(kernels.Restaurant(positive("alpha", alpha).reshape(1, 1)), 0, forget)
            return
        if not isinstance(symbols, (int, np.integer)):
            self._place = {symbol: i for i, symbol in enumerate(np.asarray(symbols).tolist())}
            if len(self._place) < len(symbols):
                raise ValueError(f"the symbols must differ, got {list(symbols)!r}")
        k = len(self._place) if self._place is not None else int(symbols)  # type: ignore[arg-type]
        if k < 1:
            raise ValueError(f"there must be at least one symbol, got {symbols!r}")
        each = np.asarray(alpha, np.float64)
        if each.shape not in ((), (k,), (k, columns)) or not (np.isfinite(each) & (each > 0.0)).all():
            raise ValueError(f"alpha must be above 0, one number or one for each of the {k} symbols; got {alpha!r}")
        prior = np.empty((k + 1, columns))
        prior[:k] = each if each.ndim == 2 else each.reshape(-1, 1)
        prior[k] = prior[:k].sum(axis=0)
        self.unit = f"one of the {k} symbols 0..{k - 1}"
        super().__init__(kernels.Dirichlet(prior), k, forget)

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        grows, place, state = fields["grows"], fields["_place"], fields["state"]
        want(isinstance(state, np.ndarray) and state.ndim == 3, "`state` must be an array with three axes")
        symbols = state.shape[1]
        want(type(grows) is bool and (symbols > 0 or grows), "there must be at least one symbol")
        if grows:
            check_statistics(fields, kernels.Restaurant, 1, symbols)
        else:
            check_statistics(fields, kernels.Dirichlet, symbols + 1, symbols)
        counted = np.allclose(state.sum(axis=1), fields["n"][:, None], rtol=1e-9, atol=1e-9)
        want(counted, "the counts in `state` must sum to `n`")
        want(not grows or (place is not None and fields["columns"] == fields["n"].size == 1), "one column must grow")
        if place is not None:
            check_places("_place", place, symbols)
        want(isinstance(fields.get("unit", ""), str), "`unit` must be a string")

    @property
    def symbols(self) -> list[Any]:
        """The symbols, declared or seen."""
        return list(range(self.state.shape[1])) if self._place is None else list(self._place)

    @property
    def takes_text(self) -> bool:
        """Whether all symbols so far are strings; True before the first symbol of a growing alphabet."""
        return self._place is not None and all(isinstance(symbol, str) for symbol in self._place)

    def _numbers(self, x: Any, grow: bool = False) -> np.ndarray:
        if self._place is None:
            return super()._numbers(x, grow)
        x = np.asarray(x)
        place, values = self._place, x.reshape(-1).tolist()
        if x.dtype.kind in "fO":
            for k, value in enumerate(values):
                if value is None or value != value:
                    raise RowError(k // self.columns, f": value {'NaN' if value is not None else None} is not a symbol")
        try:
            codes = [place[v] for v in values]
        except KeyError:
            if not self.grows:
                k, value = next((k, v) for k, v in enumerate(values) if v not in place)
                row = k // self.columns
                known = ", ".join(map(repr, self.symbols[:10])) + (", ..." if len(place) > 10 else "")
                raise RowError(row, f": {value!r} is not one of the declared symbols {known}") from None
            missing = len(place)  # stands for anything new
            if grow:
                place = self._place = {v: k for k, v in enumerate(dict.fromkeys([*place, *values]))}
                wider = np.zeros((1, len(place), 1))
                wider[:, :missing] = self.state
                self.state = wider
            codes = [place.get(v, missing) for v in values]
        return self._shaped(np.array(codes, np.float64).reshape(x.shape))

    def _values(self, X: np.ndarray) -> np.ndarray:
        if self._place is None:
            return X.astype(np.int64)
        symbols = np.array([*self.symbols, None], object) if self.grows else np.array(self.symbols)
        return np.asarray(symbols[X.astype(np.int64)])

    logpmf = Density.logp

    def _marginal(self) -> float:
        counts, n, alpha = self.state, self.n[:, None], self.part.prior
        paid = float((gammaln(n + alpha[-1]) - gammaln(alpha[-1])).sum())
        seen = counts > 0.0
        if self.grows:
            return paid - float(seen.sum() * math.log(alpha[0, 0]) + gammaln(counts[seen]).sum())
        alpha = np.broadcast_to(alpha[:-1], counts.shape)[seen]
        return paid - float((gammaln(counts[seen] + alpha) - gammaln(alpha)).sum())

    def _best(self) -> float:
        return float(-xlogy(self.state, self.state / np.maximum(self.n, 1.0)[:, None, None]).sum())

    def _theorem(self) -> tuple[Theorem, float, tuple[Assumption, ...]]:
        if self.grows:
            grew = (
                f"the alphabet grew to {len(self.symbols)} symbols (the name of a new one is not charged): declare them"
            )
            return theorems.KT, math.nan, (Assumption(grew, False),)
        k, alpha = self.state.shape[1], self.part.prior[:-1]
        declared = (Assumption(f"{k} symbols were declared", True),)
        rows = self.n[self.n > 0.0]
        if (alpha == 0.5).all():
            return theorems.KT, self.columns * float(theorems.add_half(k, rows).sum()), declared
        if (alpha == 1.0).all():
            return theorems.LAPLACE, self.columns * float(theorems.add_one(k, rows).sum()), declared
        return theorems.PREDICTIVE, math.nan, ()

    def _alike(self, other: Self) -> bool:
        return super()._alike(other) and (self.grows == other.grows and (self.grows or self._place == other._place))

    def _merged(self, other: Self, keep: float) -> None:
        if self.grows:
            mine = self._place or {}
            self._place = {s: k for k, s in enumerate(dict.fromkeys([*mine, *(other._place or {})]))}
            counts = np.zeros((1, len(self._place), 1))
            counts[0, : len(mine), 0] = keep * self.state[0, :, 0]
            counts[0, [self._place[s] for s in other._place or {}], 0] += other.state[0, :, 0]
            self.state = counts
        else:
            super()._merged(other, keep)

    def copy(self) -> Self:
        new = super().copy()
        new._place = None if self._place is None else dict(self._place)
        return new

    def fresh(self) -> Self:
        new = super().fresh()
        if new.grows:
            new._place, new.state = {}, np.zeros((1, 0, 1))
        return new

    def probabilities(self) -> np.ndarray:
        """The predictive probability of each symbol for the next row.

        Returns
        -------
        ndarray of shape (k, columns)
            One row per symbol; a growing alphabet has an additional row for all new symbols together.
        """
        if self.grows:
            mass = np.append(self.state[0, :, 0], self.part.prior[0, 0])
            return mass.reshape(-1, 1) / mass.sum()
        return (self.state[0] + self.part.prior[:-1]) / (self.n[0] + self.part.prior[-1])

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        sums = np.cumsum(self.probabilities(), axis=0)
        u = rng.random((size, self.columns)) * sums[-1]
        return np.stack([np.searchsorted(sums[:, j], u[:, j], "right") for j in range(self.columns)], axis=1)

    def describe(self) -> str:
        p = self.probabilities()[:, 0]
        order = np.argsort(-p[: len(self.symbols)], kind="stable")[:5]
        text = ", ".join(f"{self.symbols[i]} {p[i]:.4g}" for i in order)
        text += f", ... ({len(self.symbols)} symbols)" if len(self.symbols) > 5 else ""
        return text + (f", anything new {p[-1]:.4g}" if self.grows else "")


@storable_density
class Bernoulli(Categorical):
    """Booleans (0 or 1, False or True) with a Beta prior: p(1) = (n_1 + b)/(n + a + b).

    With a = b = ½ (Krichevsky and Trofimov, 1981) the regret is at most ½ ln T + ln 2 nats: docs/theory.md#density.

    Parameters
    ----------
    a, b : float, default 0.5
        Pseudo-counts of 0 and of 1, above 0.
    columns, forget
        As in `Categorical`.

    Examples
    --------
    >>> Bernoulli().update([1, 1, 0, 1]).describe()
    'p(1) = 0.7'
    """

    name = "bernoulli"

    def __init__(self, a: float = 0.5, b: float = 0.5, *, columns: int = 1, forget: float = 1.0) -> None:
        super().__init__(2, [a, b], columns=columns, forget=forget)
        self.unit = "0 or 1"

    def describe(self) -> str:
        return "p(1) = " + ", ".join(f"{p:.4g}" for p in self.probabilities()[1, :5])


@storable_density
class Poisson(Density):
    """Event counts with a Gamma(a, b) prior for the rate; the predictive is negative binomial.

    The prior is conjugate (Bernardo and Smith, 1994, docs/bibliography.md).

    Parameters
    ----------
    a : float or array-like of shape (columns,), default 0.5
        Number of pseudo-events of the prior, above 0.
    b : float or array-like of shape (columns,), default 0.01
        Number of pseudo-rows of the prior, above 0.
    columns, forget
        As in `Categorical`.

    Examples
    --------
    >>> Poisson(a=1, b=1).update([2, 0, 3]).describe()
    'rate 1.5'
    """

    name, unit = "poisson", COUNT

    def __init__(self, a: Any = 0.5, b: Any = 0.01, *, columns: int = 1, forget: float = 1.0) -> None:
        super().__init__(kernels.Rate(prior_above_0(columns, a=a, b=b)), 2, forget)

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        check_statistics(fields, kernels.Rate, 2, 2)

    logpmf = Density.logp

    def _marginal(self) -> float:
        (a, b), total, factorials, n = self.part.prior, self.state[:, 0], self.state[:, 1], self.n[:, None]
        # (a+S) ln(b+n) - a ln b, without its cancellation
        grown = total * np.log(b + n) + a * np.log1p(n / b)
        return float((factorials + grown - (gammaln(a + total) - gammaln(a))).sum())

    def _best(self) -> float:
        total, factorials = self.state[:, 0], self.state[:, 1]
        return float((total - xlogy(total, total / np.maximum(self.n, 1.0)[:, None]) + factorials).sum())

    def _rate(self) -> np.ndarray:
        a, b = self.part.prior
        return np.asarray((a + self.state[0, 0]) / (b + self.n[0]))

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        (a, b), total = self.part.prior, self.state[0, 0]
        return rng.poisson(rng.gamma(a + total, 1.0 / (b + self.n[0]), (size, self.columns))).astype(np.float64)

    def _values(self, X: np.ndarray) -> np.ndarray:
        return X.astype(np.int64)

    def describe(self) -> str:
        return "rate " + ", ".join(f"{rate:.4g}" for rate in self._rate()[:5])


@storable_density
class Histogram(Categorical):
    """Histogram over [low, high] with Dirichlet pseudo-counts and a uniform density within each bin.

    In the regret against the best histogram over the same bins the bin widths cancel, so the bounds of `Categorical`
    hold. A value outside the range is an error in `update` and has density 0.

    Parameters
    ----------
    low, high : float or None
        The range, declared in advance; None if `bins` contains the edges.
    bins : int or sequence of float, default 20
        The number of bins of equal width, or their edges in ascending order.
    alpha : float or array-like, default 0.5
        Pseudo-count above 0, for all bins or one per bin.
    forget : float, default 1.0
        As in `Categorical`.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        The edges of the bins.

    Examples
    --------
    >>> Histogram(0, 10, 5).update([1.0, 1.5, 9.0]).logpdf([0.0]).round(3)
    array([-1.482])
    """

    name = "histogram"

    def __init__(
        self,
        low: float | None,
        high: float | None,
        bins: int | Sequence[float] = 20,
        alpha: Any = 0.5,
        *,
        forget: float = 1.0,
    ) -> None:
        if isinstance(bins, (int, np.integer)):
            if low is None or high is None or not -math.inf < low < high < math.inf or bins < 1:
                raise ValueError(f"a histogram needs finite low < high and bins >= 1, got {low!r}, {high!r}, {bins!r}")
            self.edges = np.linspace(low, high, int(bins) + 1)
        else:
            self.edges = finite("bins", bins)
            if self.edges.size < 2 or not (np.diff(self.edges) > 0.0).all():
                raise ValueError(f"the edges of the bins must ascend, got {bins!r}")
        super().__init__(self.edges.size - 1, alpha, forget=forget)
        self.unit = f"a number from {self.edges[0]:g} to {self.edges[-1]:g}"

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        edges, bins = fields["edges"], fields["state"].shape[1]
        ascend = is_vector(edges, bins + 1) and is_finite(edges) and bool((np.diff(edges) > 0.0).all())
        want(ascend, f"`edges` must be {bins + 1} numbers that ascend")
        want(fields["columns"] == 1 and fields["_place"] is None, "a histogram has one column, and bins by number")

    logpdf = Density.logp

    def _numbers(self, x: Any, grow: bool = False) -> np.ndarray:
        X = np.asarray(super()._numbers(x), np.float64)
        low, high = self.edges[[0, -1]].tolist()
        inside = np.greater_equal(X, low) & np.less_equal(X, high)
        if grow and not inside.all():
            row = int(np.flatnonzero(~inside[:, 0])[0])
            raise RowError(row, self._wrong(0, X[row, 0]))
        bins = np.searchsorted(self.edges, X, "right") - 1.0
        bins[np.equal(X, high)] -= 1.0  # the last bin holds its upper edge
        return np.where(np.isnan(X), np.nan, np.where(inside, bins, -1.0))

    def _widths(self, bins: np.ndarray) -> np.ndarray:
        return np.log(np.diff(self.edges))[np.maximum(bins, 0.0).astype(np.int64)]

    def terms(self, x: Any) -> np.ndarray:
        return super().terms(x) - self._widths(np.nan_to_num(self._numbers(x)))

    def progressive(self, x: Any) -> np.ndarray:
        widths = self._widths(self._numbers(x, grow=True))[:, 0]
        out = super().progressive(x) - widths
        self._paid += float(widths.sum())
        return out

    def _spread(self) -> float:
        return float((self.state[0, :, 0] * np.log(np.diff(self.edges))).sum())

    def _marginal(self) -> float:
        return super()._marginal() + self._spread()

    def _best(self) -> float:
        return super()._best() + self._spread()

    def _alike(self, other: Self) -> bool:
        return super()._alike(other) and np.array_equal(self.edges, other.edges)

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        bins = super()._draw(size, rng)
        return np.asarray(self.edges[bins] + rng.random(bins.shape) * np.diff(self.edges)[bins])

    def _values(self, X: np.ndarray) -> np.ndarray:
        return X

    def describe(self) -> str:
        p = self.probabilities()[:, 0]
        top = int(p.argmax())
        return f"{p.size} bins, most in {self.edges[top]:.4g} to {self.edges[top + 1]:.4g} ({p[top]:.4g})"
