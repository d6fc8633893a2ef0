"""The set a rival lives in, and its divergence from the start, for each geometry of `kernels`.

With v = Sigma_t alpha_t x_t the dual of the rival's problem needs, in closed form,

    conjugate(v, kappa) = min_u [ v . u + kappa D(u, w_1) ]    and its minimiser    point(v, kappa)

| geometry | D(u, w_1) | conjugate |
|---|---|---|
| Euclidean | 1/2 |u - w_1|^2 | v . w_1 - |v|^2 / (2 kappa) |
| simplex, radius r | RE(u/r || w_1/r) | -kappa ln Sigma_i p_i e^(-r v_i / kappa), p = w_1/r |
| balanced, radius U | RE on the 2N doubled coordinates | the same over (p+, -) with (v, -v) |

The balanced geometry plays the simplex on U (x, -x): u = U (q+ - q-). Of all q with that u, the one nearest to the
start has q+_i q-_i the same for every i (the start has it too), which makes D a function of u: `doubled`.
"""

from typing import Protocol

import numpy as np

from ...kernels.geometries import Balanced, Euclidean, Simplex
from ...rows.matrices import Data, Floats

Geometry = Euclidean | Simplex | Balanced
SUM = 1e-9  # how far a given u's sum may be from the radius, relative to it (rounding of a user's own sums)


class Space(Protocol):
    """What the solvers ask of a geometry."""

    start: Floats

    def check(self, u: Floats) -> Floats:
        """U itself, or a ValueError that says by how much it lies outside the set."""

    def divergence(self, u: Floats) -> float:
        """D(u, w_1)."""

    def conjugate(self, v: Floats, kappa: float) -> float:
        """The least v . u + kappa D(u, w_1) over the set."""

    def point(self, v: Floats, kappa: float) -> tuple[Floats, float]:
        """The u that attains it, and D(u, w_1)."""

    def theta(self, v: Floats, kappa: float) -> Floats:
        """The same point in the dual coordinates that `kernels` keeps."""

    def curvature(self, data: Data) -> Floats:
        """q_t such that a change d of alpha_t changes u . x_t by at most q_t |d| / kappa: the dual norm's square."""


class Flat:
    """All of R^n with 1/2 |u - w_1|^2."""

    def __init__(self, start: Floats) -> None:
        self.start = start

    def check(self, u: Floats) -> Floats:
        return u

    def divergence(self, u: Floats) -> float:
        d = u - self.start
        return 0.5 * float(d @ d)

    def conjugate(self, v: Floats, kappa: float) -> float:
        return float(v @ self.start) - float(v @ v) / (2.0 * kappa)

    def point(self, v: Floats, kappa: float) -> tuple[Floats, float]:
        u = self.theta(v, kappa)
        return u, self.divergence(u)

    def theta(self, v: Floats, kappa: float) -> Floats:
        return self.start - v / kappa

    def curvature(self, data: Data) -> Floats:
        return data.row_norms2()


class Mixtures:
    """The simplex u >= 0, Sigma u = radius, with RE(u/radius || w_1/radius)."""

    def __init__(self, radius: float, start: Floats) -> None:
        self.radius, self.start = radius, start
        self.p = self.check(start) / radius
        with np.errstate(divide="ignore"):
            self.log_p = np.log(self.p)

    def check(self, u: Floats) -> Floats:
        if u.min() < 0.0:
            raise ValueError(f"u must be >= 0 on the simplex, got {u.min()} at coordinate {int(u.argmin())}")
        if abs(u.sum() - self.radius) > SUM * self.radius:
            raise ValueError(f"u must sum to {self.radius} on the simplex, got {u.sum()}")
        return u

    def divergence(self, u: Floats) -> float:
        return relative_entropy(u / self.radius, self.p)

    def conjugate(self, v: Floats, kappa: float) -> float:
        return -kappa * log_sum_exp(self.theta(v, kappa))

    def point(self, v: Floats, kappa: float) -> tuple[Floats, float]:
        theta = self.theta(v, kappa)
        q = np.exp(theta - theta.max())
        q /= q.sum()
        return self.radius * q, relative_entropy(q, self.p)

    def theta(self, v: Floats, kappa: float) -> Floats:
        return self.log_p - (self.radius / kappa) * v

    def curvature(self, data: Data) -> Floats:
        return (self.radius * data.row_tops()) ** 2


class SignedMixtures:
    """The ball |u|_1 <= radius, with RE on the doubled coordinates."""

    def __init__(self, radius: float, start: Floats) -> None:
        self.radius, self.start = radius, start
        self.p = doubled(self.check(start), radius)
        with np.errstate(divide="ignore"):
            self.log_p = np.log(self.p)

    def check(self, u: Floats) -> Floats:
        if np.abs(u).sum() > self.radius * (1.0 + SUM):
            raise ValueError(f"|u|_1 must be at most the radius {self.radius}, got {np.abs(u).sum()}")
        return u

    def divergence(self, u: Floats) -> float:
        return relative_entropy(doubled(u, self.radius).ravel(), self.p.ravel())

    def conjugate(self, v: Floats, kappa: float) -> float:
        return -kappa * log_sum_exp(self._logs(v, kappa).ravel())

    def point(self, v: Floats, kappa: float) -> tuple[Floats, float]:
        logs = self._logs(v, kappa)
        q = np.exp(logs - logs.max())
        q /= q.sum()
        return self.radius * (q[0] - q[1]), relative_entropy(q.ravel(), self.p.ravel())

    def theta(self, v: Floats, kappa: float) -> Floats:
        logs = self._logs(v, kappa)
        half: Floats = 0.5 * (logs[0] - logs[1])
        return half

    def _logs(self, v: Floats, kappa: float) -> Floats:
        d = (self.radius / kappa) * v
        logs: Floats = self.log_p + np.stack((-d, d))
        return logs

    def curvature(self, data: Data) -> Floats:
        return (self.radius * data.row_tops()) ** 2


def space(geometry: Geometry, width: int, start: Floats | None = None) -> Space:
    """The space of a geometry, from w_1 = 0, uniform or 0 unless a start is given."""
    if start is not None:
        start = np.array(start, dtype=np.float64)
        if start.shape != (width,):
            raise ValueError(f"the start must have {width} coordinates, got shape {start.shape}")
    if isinstance(geometry, Simplex):
        uniform = np.full(width, geometry.radius / width)
        return Mixtures(geometry.radius, uniform if start is None else start)
    zero = np.zeros(width) if start is None else start
    return SignedMixtures(geometry.radius, zero) if isinstance(geometry, Balanced) else Flat(zero)


def relative_entropy(q: Floats, p: Floats) -> float:
    """Sigma q ln(q/p), with 0 ln 0 = 0; infinite where q > 0 = p. Never below 0: the mass of q is that of p."""
    on = q > 0.0
    rest = float(p[~on].sum())
    q, p = q[on], p[on]
    with np.errstate(divide="ignore"):
        # q ln(q/p) - q + p per coordinate is >= 0, so that nothing cancels when q is near p.
        ratio = q / p
        terms = np.where(np.abs(ratio - 1.0) < 1e-4, _near(ratio - 1.0) * p, q * np.log(ratio) - (q - p))
    return max(0.0, float(terms.sum()) + rest)


def _near(x: Floats) -> Floats:
    """(1 + x) ln(1 + x) - x for small x."""
    return x * x * (0.5 - x * (1 / 6 - x * (1 / 12 - x / 20)))


def log_sum_exp(x: Floats) -> float:
    """Ln Sigma e^x_i."""
    top = float(x.max())
    return top + float(np.log(np.exp(x - top).sum()))


def doubled(u: Floats, radius: float) -> Floats:
    """(q+, q-) of shape (2, n): sums to 1, radius (q+ - q-) = u, and q+_i q-_i = rho^2 for every i.

    q+_i + q-_i = sqrt(p_i^2 + 4 rho^2) with p = u/radius; rho is found by bisection (0 where |u|_1 = radius).
    """
    p = u / radius
    lo, hi = 0.0, 0.5 / u.size
    for _ in range(200):
        mid = 0.5 * (lo + hi)
        if mid <= lo or mid >= hi:
            break
        if np.hypot(p, 2.0 * mid).sum() < 1.0:
            lo = mid
        else:
            hi = mid
    total = np.hypot(p, 2.0 * lo)
    large = 0.5 * (total + np.abs(p))
    with np.errstate(invalid="ignore", divide="ignore"):
        small = np.where(large > 0.0, lo * (lo / large), 0.0)
    q: Floats = np.where(p >= 0.0, (large, small), (small, large))
    q /= q.sum()
    return q
