"""Gaussian densities: independent columns (Normal-Gamma prior), or full covariance (Normal-Wishart prior)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from scipy.special import gammaln, multigammaln

from ..errors import RowError
from ..kernels import densities as kernels
from ..storage.fields import is_array, is_count, is_finite, is_number, is_vector
from ..storage.registry import storable, want
from .base import Density, check_statistics, finite, positive
from .online import Forgetting, forget_factor, storable_density

LN_2PI = math.log(2.0 * math.pi)


@storable_density
class Gaussian(Density):
    """Independent Gaussian columns of unknown mean and variance.

    The predictive is a Student t. The Normal-Gamma prior acts like `dof` squared deviations of size scale² and
    `strength` rows at `mean`: the first predictive is a t with `dof` degrees of freedom around `mean`, with a scale of
    about scale/√strength. The default prior is weak: it is negligible as soon as two values differ by much more than
    `scale`, and hardly shrinks means of up to 1,000 standard deviations. Constant columns are allowed, because the
    scale of the prior remains.

    Parameters
    ----------
    mean : float or array-like of shape (columns,), default 0.0
        Mean of the prior.
    scale : float or array-like of shape (columns,), default 1e-3
        Scale of the prior, above 0.
    strength : float or array-like of shape (columns,), default 1e-6
        Number of pseudo-rows of the prior mean, above 0.
    dof : float or array-like of shape (columns,), default 1.0
        Degrees of freedom of the prior, above 0.
    columns : int, default 1
        Number of independent columns; rows are an array of shape (n_rows,) or (n_rows, columns).
    forget : float, default 1.0
        Forgetting factor in (0, 1] that multiplies the statistics of earlier rows at each row; 1 forgets nothing.

    Attributes
    ----------
    mean : ndarray of shape (columns,)
        Mean of the rows.
    variance : ndarray of shape (columns,)
        Variance of the rows (the sum of squared deviations divided by n).
    rows : int
        Number of rows learnt.
    loss : float
        Cumulative log loss in nats.

    References
    ----------
    Bernardo and Smith (1994), docs/bibliography.md.

    Examples
    --------
    >>> p = Gaussian(mean=170, scale=10, strength=1).update([160.0, 165.0, 186.0])
    >>> p.logpdf([170.0]).round(3)
    array([-3.487])
    """

    name, unit = "gaussian", "a finite number (below 1e150)"

    def __init__(
        self,
        mean: Any = 0.0,
        scale: Any = 1e-3,
        strength: Any = 1e-6,
        dof: Any = 1.0,
        *,
        columns: int = 1,
        forget: float = 1.0,
    ) -> None:
        m = finite("mean", mean, columns)
        s, k, v = (positive(name, x, columns) for name, x in (("scale", scale), ("strength", strength), ("dof", dof)))
        prior = np.array([np.broadcast_to(x, columns) for x in (m, k, 0.5 * v, 0.5 * v * s * s)])
        super().__init__(kernels.Normal(prior), 3, forget)

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        check_statistics(fields, kernels.Normal, 4, 3, slice(2, 3))

    logpdf = Density.logp

    def posterior(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Parameters of the Normal-Gamma posterior.

        Returns
        -------
        mean, kappa, alpha, beta : ndarray of shape (columns,)
            The mean, its number of pseudo-rows, and the shape and rate of the gamma distribution of the precision.
        """
        m, k, a, b = self._posterior()
        return m[0], k[0], a[0], b[0]

    def _posterior(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        (m, k, a, b), n = self.part.prior, self.n[:, None]
        first, off, squares = np.moveaxis(self.state, 1, 0)
        apart = np.where(n > 0.0, first - m + off, 0.0)
        return m + apart * (n / (k + n)), k + n, a + 0.5 * n, b + 0.5 * (squares + k * n / (k + n) * apart**2)

    def _marginal(self) -> float:
        _, k, a, b = self.part.prior
        _, kn, an, bn = self._posterior()
        paid = an * np.log(bn) - a * np.log(b) - (gammaln(an) - gammaln(a)) + 0.5 * np.log(kn / k)
        return float(paid.sum() + 0.5 * self.columns * self.n.sum() * LN_2PI)

    def _best(self) -> float:
        seen = self.n > 0.0
        squares, n = self.state[seen, 2], self.n[seen, None]
        if (squares == 0.0).any():
            return -math.inf
        return float((0.5 * n * (LN_2PI + 1.0 + np.log(squares / n))).sum())

    def _merged(self, other: Self, keep: float) -> None:
        n, m = keep * self.n[:, None], other.n[:, None]
        share = np.divide(m, n + m, out=np.zeros_like(m), where=n + m > 0.0)
        self.state[:, 0] = np.where(n > 0.0, self.state[:, 0], other.state[:, 0])
        apart = np.where(m > 0.0, other.state[:, 0] - self.state[:, 0] + other.state[:, 1] - self.state[:, 1], 0.0)
        self.state[:, 2] = keep * self.state[:, 2] + other.state[:, 2] + apart * apart * (n * share)
        self.state[:, 1] += apart * share

    @property
    def mean(self) -> np.ndarray:
        """Mean of the rows, one per column."""
        return np.asarray(self.state[0, 0] + self.state[0, 1])

    @property
    def variance(self) -> np.ndarray:
        """Variance of the rows (over n), one per column."""
        return np.asarray(self.state[0, 2] / max(self.n[0], 1e-300))

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        m, k, a, b = self.posterior()
        return np.asarray(m + rng.standard_t(2.0 * a, (size, self.columns)) * np.sqrt(b * (k + 1.0) / (a * k)))

    def describe(self) -> str:
        pairs = zip(self.mean[:5], np.sqrt(self.variance[:5]), strict=True)
        more = f", ... ({self.columns} columns)" if self.columns > 5 else ""
        return ", ".join(f"mean {m:.6g} sd {s:.4g}" for m, s in pairs) + more


@storable
class TiedGaussian(Gaussian):
    """Gaussian columns of several classes (one slot each), of unknown means and one unknown variance per column shared
    by all.

    The prior of every class is that of `Gaussian`. The variance is estimated from the rows of all classes, so fewer
    rows are needed; the model is wrong if the variances differ.
    """

    name = "tied gaussian"

    def slot(self, s: int) -> Self:
        """A copy of one slot that learns independently; its prior includes the variance learnt from other slots."""
        new = super().slot(s)
        new.part = kernels.Normal(self.part.prior.copy())
        kernels.tie(new.part, self.part.prior, self.state, s, np.append(self.n, 0.0))
        return new

    def _contest(self, weight: float, slots: np.ndarray, X: np.ndarray, n: Any, state: Any, out: np.ndarray) -> None:
        parts = (kernels.Normal(self.part.prior.copy()) for _ in range(2))
        kernels.contest_tied(*parts, self.part.prior, weight, slots, X, n, state, out)


@storable_density
class FullGaussian(Forgetting):
    """A Gaussian of unknown mean and covariance over several columns.

    The predictive is a multivariate t. The prior is Normal-Wishart with Psi = dof·scale²·I and d − 1 + dof degrees of
    freedom; for one column it is that of `Gaussian`. Each row costs O(d²), or O(d³) with forgetting. Constant or
    linearly dependent columns are allowed, because the scale of the prior remains.

    Parameters
    ----------
    columns : int
        Number d of columns; rows are an array of shape (n_rows, d).
    mean : float or array-like of shape (columns,), default 0.0
        Mean of the prior.
    scale, strength, dof : float, default 1e-3, 1e-6 and 1.0
        As in `Gaussian`; one number for all columns.
    forget : float, default 1.0
        Forgetting factor in (0, 1] that multiplies the statistics of earlier rows at each row; 1 forgets nothing.

    Attributes
    ----------
    covariance : ndarray of shape (columns, columns)
        Covariance of the rows (over n).
    mean, rows, loss
        As in `Gaussian`.

    References
    ----------
    Bernardo and Smith (1994), docs/bibliography.md.

    Examples
    --------
    >>> p = FullGaussian(2, scale=1, strength=1).update([[0.0, 0.1], [1.0, 1.2], [2.0, 1.9]])
    >>> p.logpdf([[3.0, 3.0], [3.0, 0.0]]).round(1)
    array([-4.1, -6.2])
    """

    name = "full gaussian"

    def __init__(
        self,
        columns: int,
        mean: Any = 0.0,
        scale: float = 1e-3,
        strength: float = 1e-6,
        dof: float = 1.0,
        *,
        forget: float = 1.0,
    ) -> None:
        if columns < 1:
            raise ValueError(f"columns must be at least 1, got {columns!r}")
        self.columns, self.forget = int(columns), forget_factor(forget)
        self._prior_mean = np.broadcast_to(finite("mean", mean, columns), columns).copy()
        s, k, v = (float(positive(n, x, 1)[0]) for n, x in (("scale", scale), ("strength", strength), ("dof", dof)))
        self._kappa, self._nu, self._psi = k, columns - 1.0 + v, np.eye(columns) * (v * s * s)
        self._empty()

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        d = fields["columns"]
        want(is_count(d) and d > 0, "`columns` must be a count above 0")
        sizes = {"n": 1, "_prior_mean": d, "_first": d, "_mean": d}
        for name, size in sizes.items():
            fits = is_vector(fields[name], size) and is_finite(fields[name])
            want(fits, f"`{name}` must be a vector of {size} finite numbers")
        for name in ("_psi", "_scatter", "_factor"):
            fits = is_array(fields[name], 2) and fields[name].shape == (d, d) and is_finite(fields[name])
            want(fits, f"`{name}` must be a matrix of {d} columns of finite numbers")
        kappa, nu = fields["_kappa"], fields["_nu"]
        want(is_number(kappa) and kappa > 0.0 and is_number(nu) and nu > d - 1.0, "`_kappa` and `_nu` are too small")
        want(fields["n"][0] >= 0.0, "`n` must be a count")
        want(bool((np.diag(fields["_factor"]) > 0.0).all()), "the diagonal of `_factor` must be above 0")

    def _empty(self) -> None:
        d = self.columns
        # the mean is kept relative to the first row: rows may differ by little far from 0
        self._first = self._prior_mean.copy()
        self.n, self._mean, self._scatter = np.zeros(1), np.zeros(d), np.zeros((d, d))
        self.rows, self._paid, self.shards = 0, 0.0, 1
        self._whole: Any = None
        self._refactor()

    def _refactor(self) -> None:
        self._factor = np.zeros((self.columns, self.columns))
        work = np.empty_like(self._factor)
        sound = kernels.scatter_factor(
            self._prior_mean - self._first,
            self._kappa,
            self._psi,
            self.n[0],
            self._mean,
            self._scatter,
            work,
            self._factor,
        )
        if not sound:
            raise ValueError(
                "full gaussian: a column is a sum of others, or constant, at double precision: leave it out, "
                f"or give FullGaussian({self.columns}, scale=...) a larger scale"
            )

    def _numbers(self, x: Any) -> np.ndarray:
        X = np.ascontiguousarray(x, np.float64)
        if X.ndim != 2 or X.shape[1] != self.columns:
            raise ValueError(f"{self.name} over {self.columns} columns got an array of shape {X.shape}")
        sound = np.abs(X) < 1e150
        if not sound.all():
            row, column = np.argwhere(~sound)[0].tolist()
            value = "NaN" if np.isnan(X[row, column]) else repr(float(X[row, column]))
            raise RowError(row, f", column {column}: value {value} is not {Gaussian.unit}")
        return X

    def progressive(self, x: Any) -> np.ndarray:
        X, out = self._numbers(x), np.empty(len(x))
        kept = self.n.copy(), self._mean.copy(), self._scatter.copy(), self._factor.copy()
        work, v = np.empty_like(self._factor), np.empty(self.columns)
        first = X[0] if self.n[0] == 0.0 and len(X) else self._first
        prior = (self._prior_mean - first, self._kappa, self._nu, self._psi)
        stats = (self.n, self._mean, self._scatter, self._factor)
        row = kernels.play_full(*prior, self.forget, X - first, *stats, work, v, out)
        if row >= 0:
            self.n, self._mean, self._scatter, self._factor = kept
            raise RowError(row, f": with {X[row].tolist()} the scatter is singular at double precision")
        self._first = first.copy()
        self._remember(X)
        self.rows += len(X)
        self._paid -= float(out.sum())
        return out

    def logp(self, x: Any) -> np.ndarray:
        X = self._numbers(x)
        out, v = np.empty(len(X)), np.empty(self.columns)
        mean0, X = self._prior_mean - self._first, X - self._first
        kernels.logp_full(mean0, self._kappa, self._nu, X, self.n[0], self._mean, self._factor, v, out)
        return out

    logpdf = logp

    def __add__(self, other: Self) -> Self:
        """Merge two densities, as if the rows of other had come after these."""
        if type(other) is not type(self) or not all(map(np.array_equal, self._settings(), other._settings())):
            raise ValueError(f"only densities of one family and prior add up: {self!r} and {other!r} do not")
        both = self.copy()
        keep = self.forget**other.rows
        n, m = keep * self.n[0], other.n[0]
        both._first = self._first.copy() if n > 0.0 else other._first.copy()
        apart = (other._first - both._first + other._mean - self._mean) * (m > 0.0)
        share = m / (n + m) if n + m > 0.0 else 0.0
        both._scatter = keep * self._scatter + other._scatter + np.outer(apart, apart) * (n * share)
        both._mean = self._mean + apart * share
        both.n[0] = n + m
        both._append(other)
        both._refactor()
        return both

    def as_prior(self, rows: float) -> Self:
        """As `Density.as_prior`: a density without rows whose prior is what this one has learnt."""
        new, weight, n = self.fresh(), float(positive("rows", rows)[0]), self.n[0]
        if n > 0.0:
            kappa = self._kappa + weight
            apart = self._first - self._prior_mean + self._mean
            new._prior_mean = self._prior_mean + apart * (weight / kappa)
            new._psi = self._psi + weight * (self.covariance + self._kappa / kappa * np.outer(apart, apart))
            new._kappa, new._nu = kappa, self._nu + weight
            new._empty()
        return new

    def given(self, prior: Self) -> Self:
        """A copy with the same rows and the prior of another density."""
        new = self.copy()
        new._prior_mean, new._psi, new._kappa, new._nu = prior._prior_mean, prior._psi, prior._kappa, prior._nu
        new._refactor()
        return new

    def _settings(self) -> tuple[Any, ...]:
        return self._prior_mean, self._psi, self._kappa, self._nu, self.forget

    def fresh(self) -> Self:
        new = self.copy()
        new._empty()
        return new

    @property
    def mean(self) -> np.ndarray:
        """Mean of the rows."""
        return np.asarray(self._first + self._mean)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the rows (over n)."""
        lower = np.tril(self._scatter) / max(self.n[0], 1e-300)
        return np.asarray(lower + np.tril(lower, -1).T)

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        kappa, dof = self._kappa + self.n[0], self._nu + self.n[0] - self.columns + 1.0
        z = rng.standard_normal((size, self.columns)) @ self._factor.T
        z *= np.sqrt((kappa + 1.0) / (kappa * rng.chisquare(dof, (size, 1))))
        off = self._mean + self._first - self._prior_mean
        return np.asarray(self._prior_mean + off * (self.n[0] / kappa) + z)

    def _marginal(self) -> float:
        d, n = self.columns, self.n[0]
        kappa, nu = self._kappa + n, self._nu + n
        half = float(np.log(np.diag(self._factor)).sum())
        prior_half = 0.5 * float(np.linalg.slogdet(self._psi)[1])
        gained = multigammaln(0.5 * nu, d) - multigammaln(0.5 * self._nu, d) + self._nu * prior_half - nu * half
        return float(0.5 * d * (n * math.log(math.pi) + math.log(kappa / self._kappa)) - gained)

    def _best(self) -> float:
        d, n = self.columns, self.n[0]
        spread = np.sqrt(np.diag(self.covariance))
        if self.rows <= d or (spread == 0.0).any():
            return -math.inf
        correlations = self.covariance / np.outer(spread, spread)
        if np.linalg.matrix_rank(correlations, hermitian=True) < d:
            return -math.inf
        log_det = float(np.linalg.slogdet(correlations)[1] + 2.0 * np.log(spread).sum())
        return 0.5 * n * (d * (LN_2PI + 1.0) + log_det)

    def describe(self) -> str:
        spread = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        pairs = ", ".join(f"mean {m:.6g} sd {s:.4g}" for m, s in zip(self.mean[:5], spread[:5], strict=True))
        if not 1 < self.columns <= 5:
            return pairs
        r = (self.covariance / np.outer(spread, spread))[np.triu_indices(self.columns, 1)]
        return f"{pairs}; correlations {', '.join(f'{c:.3f}' for c in r)}"

    def __repr__(self) -> str:
        return f"<{self.name} over {self.columns} columns, {self.rows:,} rows>"
