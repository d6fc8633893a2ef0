"""Gaussian densities: independent columns (Normal-Gamma prior), or all covariances (Normal-Wishart prior)."""

from __future__ import annotations

import copy
import math
from typing import Any, Self

import numpy as np
from scipy.special import gammaln, multigammaln

from ..certificates.certificate import Assumption
from ..errors import RowError
from ..kernels import densities as kernels
from ..storage.registry import storable
from .base import Density, finite, positive
from .certificate import LN2, NONE, DensityCertificate, judge, merged

LN_2PI = math.log(2.0 * math.pi)


@storable
class Gaussian(Density):
    """Gaussian columns of unknown mean and variance, each by itself; the prediction is a Student t.

    The prior counts as `dof` squares of size scale² and `strength` rows at `mean`; the first prediction is a t with
    `dof` degrees of freedom, spread about scale/√strength wide around `mean`. The defaults are weak: they fade as soon
    as two values differ by much more than `scale`, and shrink means of up to 1,000 standard deviations hardly at all.
    Values that stand still (no variance) are no trouble: the prior's scale remains.

    Parameters
    ----------
    mean : one for all columns or one each.
    scale, strength, dof : above 0, one for all columns or one each.
    columns : how many.
    forget : factor in (0, 1] by which what was learnt fades at each row.

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
        prior = np.stack([np.broadcast_to(x, columns) for x in (m, k, 0.5 * v, 0.5 * v * s * s)])
        super().__init__(kernels.Normal(np.ascontiguousarray(prior)), 3, forget)

    logpdf = Density.logp

    def posterior(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Mean, kappa, alpha and beta of the Normal-Gamma, one a column each."""
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
        """The mean of the rows, one a column."""
        return np.asarray(self.state[0, 0] + self.state[0, 1])

    @property
    def variance(self) -> np.ndarray:
        """The variance of the rows (over n), one a column."""
        return np.asarray(self.state[0, 2] / max(self.n[0], 1e-300))

    def _draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        m, k, a, b = self.posterior()
        return np.asarray(m + rng.standard_t(2.0 * a, (size, self.columns)) * np.sqrt(b * (k + 1.0) / (a * k)))

    def describe(self) -> str:
        pairs = zip(self.mean[:5], np.sqrt(self.variance[:5]), strict=True)
        more = f", ... ({self.columns} columns)" if self.columns > 5 else ""
        return ", ".join(f"mean {m:.6g} sd {s:.4g}" for m, s in pairs) + more


@storable
class FullGaussian:
    """A Gaussian of unknown mean and covariance over several columns; the prediction is a multivariate t.

    The prior counts as in `Gaussian` (for one column they are the same): Normal-Wishart with Psi = dof·scale²·I and
    d − 1 + dof degrees of freedom. Each row costs O(d²); where old rows fade, O(d³). A column that is constant, or a
    sum of others, is no trouble: the prior's scale remains.

    Parameters
    ----------
    columns : d.
    mean : one for all columns or one each.
    scale, strength, dof : above 0.
    forget : factor in (0, 1] by which what was learnt fades at each row.

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
        if not 0.0 < forget <= 1.0:
            raise ValueError(f"forget must lie in (0, 1], got {forget!r}")
        self.columns, self.forget = int(columns), float(forget)
        self._prior_mean = np.broadcast_to(finite("mean", mean, columns), columns).copy()
        s, k, v = (float(positive(n, x, 1)[0]) for n, x in (("scale", scale), ("strength", strength), ("dof", dof)))
        self._kappa, self._nu, self._psi = k, columns - 1.0 + v, np.eye(columns) * (v * s * s)
        self._empty()

    def _empty(self) -> None:
        d = self.columns
        # the mean is less the first row, so that it is not rounded where rows differ by little far from 0
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

    def update(self, x: Any) -> Self:
        """Learn rows in their order; on an error nothing has changed."""
        self.progressive(x)
        return self

    def progressive(self, x: Any) -> np.ndarray:
        """The log density of each row before it is learnt; then it is learnt."""
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
        if self.forget < 1.0:
            if self._whole is None:
                self._whole = self.fresh()
                self._whole.forget = 1.0
            self._whole.update(X)
        self.rows += len(X)
        self._paid -= float(out.sum())
        return out

    def logp(self, x: Any) -> np.ndarray:
        """The log density of each row, as the next row is predicted."""
        X = self._numbers(x)
        out, v = np.empty(len(X)), np.empty(self.columns)
        mean0, X = self._prior_mean - self._first, X - self._first
        kernels.logp_full(mean0, self._kappa, self._nu, X, self.n[0], self._mean, self._factor, v, out)
        return out

    logpdf = logp

    def __add__(self, other: Self) -> Self:
        """One density of both, as if other's rows had come after ours."""
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
        both.shards = max(1, self.shards * (self.rows > 0) + other.shards * (other.rows > 0))
        both.rows, both._paid = self.rows + other.rows, self._paid + other._paid
        if both._whole is not None and other._whole is not None:
            both._whole = both._whole + other._whole
        elif other._whole is not None:
            both._whole = other._whole.copy()
        both._refactor()
        return both

    def as_prior(self, rows: float) -> Self:
        """The same family with what was learnt here for its prior, worth that many rows (beside the prior it has)."""
        new, worth, n = self.fresh(), float(positive("rows", rows)[0]), self.n[0]
        if n > 0.0:
            kappa = self._kappa + worth
            apart = self._first - self._prior_mean + self._mean
            new._prior_mean = self._prior_mean + apart * (worth / kappa)
            new._psi = self._psi + worth * (self.covariance + self._kappa / kappa * np.outer(apart, apart))
            new._kappa, new._nu = kappa, self._nu + worth
            new._empty()
        return new

    def given(self, prior: Self) -> Self:
        """The same rows, with another's prior."""
        new = self.copy()
        new._prior_mean, new._psi, new._kappa, new._nu = prior._prior_mean, prior._psi, prior._kappa, prior._nu
        new._refactor()
        return new

    def _settings(self) -> tuple[Any, ...]:
        return self._prior_mean, self._psi, self._kappa, self._nu, self.forget

    def copy(self) -> Self:
        """One that learns on its own."""
        return copy.deepcopy(self)

    def fresh(self) -> Self:
        """The same prior, no rows."""
        new = self.copy()
        new._empty()
        return new

    @property
    def mean(self) -> np.ndarray:
        """The mean of the rows."""
        return np.asarray(self._first + self._mean)

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of the rows (over n)."""
        lower = np.tril(self._scatter) / max(self.n[0], 1e-300)
        return np.asarray(lower + np.tril(lower, -1).T)

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from what is predicted next, each from the same predictive."""
        kappa, dof = self._kappa + self.n[0], self._nu + self.n[0] - self.columns + 1.0
        z = rng.standard_normal((size, self.columns)) @ self._factor.T
        z *= np.sqrt((kappa + 1.0) / (kappa * rng.chisquare(dof, (size, 1))))
        off = self._mean + self._first - self._prior_mean
        return np.asarray(self._prior_mean + off * (self.n[0] / kappa) + z)

    @property
    def loss(self) -> float:
        """Cumulative log loss in nats of predicting each row before learning it."""
        if self.forget < 1.0:
            return self._paid
        d, n = self.columns, self.n[0]
        kappa, nu = self._kappa + n, self._nu + n
        half = float(np.log(np.diag(self._factor)).sum())
        prior_half = 0.5 * float(np.linalg.slogdet(self._psi)[1])
        gained = multigammaln(0.5 * nu, d) - multigammaln(0.5 * self._nu, d) + self._nu * prior_half - nu * half
        return float(0.5 * d * (n * math.log(math.pi) + math.log(kappa / self._kappa)) - gained)

    @property
    def bits_per_row(self) -> float:
        """The loss in bits a row."""
        return self.loss / LN2 / self.rows if self.rows else math.nan

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

    def certificate(self) -> DensityCertificate:
        """The exact regret against the maximum-likelihood Gaussian; no bound is known."""
        if self.forget == 1.0:
            return judge(NONE, self.loss, self._best(), math.nan, self.rows, (), merged(self.shards, True))
        faded = Assumption(f"old rows fade: forget = {self.forget:g}, which must be 1", False)
        best = self._whole._best() if self._whole is not None else 0.0
        return judge(NONE, self.loss, best, math.nan, self.rows, (faded,), merged(self.shards, False))

    def describe(self) -> str:
        """What was learnt, in words."""
        spread = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        pairs = ", ".join(f"mean {m:.6g} sd {s:.4g}" for m, s in zip(self.mean[:5], spread[:5], strict=True))
        if not 1 < self.columns <= 5:
            return pairs
        r = (self.covariance / np.outer(spread, spread))[np.triu_indices(self.columns, 1)]
        return f"{pairs}; correlations {', '.join(f'{c:.3f}' for c in r)}"

    def __repr__(self) -> str:
        return f"<{self.name} over {self.columns} columns, {self.rows:,} rows>"
