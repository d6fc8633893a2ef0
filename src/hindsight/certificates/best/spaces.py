"""The set of comparators of each geometry, and their divergence from the start.

With v = Sigma_t alpha_t x_t the dual of the comparator's problem needs, in closed form,

    conjugate(v, kappa) = min_u [ v . u + kappa D(u, w_1) ]    and its minimiser    point(v, kappa)

| geometry | D(u, w_1) | conjugate |
|---|---|---|
| Euclidean | 1/2 |u - w_1|^2 | v . w_1 - |v|^2 / (2 kappa) |
| simplex, radius r | RE(u/r || w_1/r) | -kappa ln Sigma_i p_i e^(-r v_i / kappa), p = w_1/r |
| balanced, radius U | RE on the 2N doubled coordinates | the same over (p+, -) with (v, -v) |

The balanced geometry is the simplex on U (x, -x), with u = U (q+ - q-). Of all q with that u, the one nearest to the
start has the same q+_i q-_i for every i, as the start does. This makes D a function of u; see `doubled`.
"""

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...kernels.euclidean import Euclidean
from ...kernels.floats import EPS, Floats
from ...rows.data import Data
from .objective import sum_rounding

Geometry = Any  # one of the geometries of `kernels`
LEAST = 1e-290  # a probability that still has all its digits
SUM = 1e-9  # how far a given u's sum may be from the radius, relative to it: rounding in a user's own sums


class Space(Protocol):
    """What the solvers need to know of a geometry; `quadratic` where D is a squared distance."""

    geometry: Geometry
    start: Floats
    quadratic: bool

    def check(self, u: Floats) -> Floats:
        """Return u, or raise a ValueError that says by how much it is outside the set."""

    def divergence(self, u: Floats) -> float:
        """Return D(u, w_1)."""

    def conjugate(self, v: Floats, kappa: float) -> float:
        """Return the minimum of v . u + kappa D(u, w_1) over the set."""

    def size(self, v: Floats, kappa: float) -> float:
        """Return the magnitude of the terms of the minimum, which its rounding error is relative to."""

    def point(self, v: Floats, kappa: float) -> tuple[Floats, float]:
        """Return the u that attains it, and D(u, w_1)."""

    def theta(self, v: Floats, kappa: float) -> Floats:
        """Return the same point in the dual coordinates of the geometry's state."""

    def around(self, v: Floats) -> "Space":
        """Return the space with its start at the point of v for kappa = 1, stored as logarithms if it has them."""

    def curvature(self, data: Data) -> Floats:
        """Return q_t, the squared dual norm: a change d of alpha_t changes u . x_t by at most q_t |d| / kappa."""


class Flat:
    """All of R^n with 1/2 |u - w_1|^2."""

    quadratic = True

    def __init__(self, geometry: Geometry, width: int, start: Floats | None) -> None:
        self.geometry = Euclidean(1.0)  # also for a geometry that is not in the table
        self.start = np.zeros(width) if start is None else start

    def check(self, u: Floats) -> Floats:
        return u

    def divergence(self, u: Floats) -> float:
        d = u - self.start
        return 0.5 * float(d @ d)

    def conjugate(self, v: Floats, kappa: float) -> float:
        return float(v @ self.start) - float(v @ v) / (2.0 * kappa)

    def size(self, v: Floats, kappa: float) -> float:
        return float(np.abs(v) @ np.abs(self.start)) + float(v @ v) / kappa

    def point(self, v: Floats, kappa: float) -> tuple[Floats, float]:
        u = self.theta(v, kappa)
        return u, self.divergence(u)

    def theta(self, v: Floats, kappa: float) -> Floats:
        return self.start - v / kappa

    def around(self, v: Floats) -> "Flat":
        return Flat(self.geometry, v.size, self.start - v)

    def curvature(self, data: Data) -> Floats:
        return data.row_norms2()


class Reach(NamedTuple):
    """All u with |D u|_2 <= radius, the part of R^n where a bound survives rounding; `shrink` is 1/D."""

    shrink: Floats
    radius: float

    def least(self, v: Floats) -> float:
        """Return the least of v . u."""
        return -self.radius * float(np.linalg.norm(self.shrink * v)) if self.radius > 0.0 else 0.0

    def rounding(self, v: Floats, a: Floats, r: Floats) -> float:
        """Return a bound on the rounding error of `least` if v is Sigma a r x."""
        return self.radius * sum_rounding(a, r, v.size)


class Mixtures:
    """The simplex u >= 0, Sigma u = radius, or the ball |u|_1 <= radius, with RE over their corners.

    The corners are radius e_i, and -radius e_i where u is signed: `sides` are 1, or 1 and -1. A distribution q over
    them, with one row per side, has u = radius sides . q.
    """

    quadratic = False

    def __init__(self, geometry: Geometry, width: int, start: Floats | None) -> None:
        self.geometry, self.radius, self.signed = geometry, float(geometry.radius), geometry.name != "simplex"
        self.sides = np.array([1.0, -1.0] if self.signed else [1.0])
        middle = np.zeros(width) if self.signed else np.full(width, self.radius / width)
        self.start = middle if start is None else start
        self.p = self._corners_of(self.check(self.start))
        with np.errstate(divide="ignore"):
            self.log_p = np.log(self.p)

    def check(self, u: Floats) -> Floats:
        if self.signed:
            if np.abs(u).sum() > self.radius * (1.0 + SUM):
                raise ValueError(f"|u|_1 must be at most the radius {self.radius}, got {np.abs(u).sum()}")
            return u
        if u.min() < 0.0:
            raise ValueError(f"u must be at least 0 on the simplex, got {u.min()} at coordinate {int(u.argmin())}")
        if abs(u.sum() - self.radius) > SUM * self.radius:
            raise ValueError(f"u must sum to {self.radius} on the simplex, got {u.sum()}")
        return u

    def _corners_of(self, u: Floats) -> Floats:
        """Return the q of u."""
        return doubled(u, self.radius) if self.signed else u[None, :] / self.radius

    def divergence(self, u: Floats) -> float:
        return relative_entropy(self._corners_of(u).ravel(), self.p.ravel(), self.log_p.ravel())

    def conjugate(self, v: Floats, kappa: float) -> float:
        return -kappa * log_sum_exp(self._logs(v, kappa).ravel())

    def size(self, v: Floats, kappa: float) -> float:
        return kappa * mean_size(self.log_p.ravel(), self._logs(v, kappa).ravel())

    def point(self, v: Floats, kappa: float) -> tuple[Floats, float]:
        logs = self._logs(v, kappa)
        q = np.exp(logs - logs.max())
        q /= q.sum()
        return self.mixed(q), relative_entropy(q.ravel(), self.p.ravel(), self.log_p.ravel())

    def theta(self, v: Floats, kappa: float) -> Floats:
        logs = self._logs(v, kappa)
        half: Floats = 0.5 * (logs[0] - logs[1]) if self.signed else logs[0]
        return half

    def around(self, v: Floats) -> "Mixtures":
        moved = copy(self)
        moved.log_p = normalised(self._logs(v, 1.0))
        moved.p = np.exp(moved.log_p)
        moved.start = self.mixed(moved.p)
        return moved

    def _logs(self, v: Floats, kappa: float) -> Floats:
        logs: Floats = self.log_p - self.sides[:, None] * ((self.radius / kappa) * v)
        return logs

    def curvature(self, data: Data) -> Floats:
        return (self.radius * data.row_norms_inf()) ** 2

    def mixed(self, q: Floats) -> Floats:
        """Return the mean of the corners with weights q, which has one row per side or is flat."""
        u: Floats = self.radius * (self.sides @ q.reshape(self.sides.size, -1))
        return u

    def at_corners(self, R: Floats) -> Floats:
        """Return R times each corner."""
        return self.radius * np.hstack([side * R for side in self.sides])

    def least(self, v: Floats) -> float:
        """Return the least of v . u over the set, which a corner attains."""
        return self.radius * float((self.sides[:, None] * v).min())

    def lowest(self, v: Floats) -> Floats:
        """Return the corner that attains the least."""
        q = np.zeros(self.sides.size * v.size)
        q[int((self.sides[:, None] * v).argmin())] = 1.0
        return self.mixed(q)

    def rounding(self, v: Floats, a: Floats, r: Floats) -> float:
        """Return a bound on the rounding error of `least`, if v is Sigma a r x."""
        return 16.0 * EPS * self.radius * float(np.abs(v).sum())

    def words(self) -> str:
        """The set in words."""
        return f"|u|₁ {'≤' if self.signed else '='} {self.radius:g}"


SPACES: dict[str, Callable[[Geometry, int, Floats | None], Space]] = {"simplex": Mixtures, "balanced": Mixtures}


def space(geometry: Geometry, width: int, start: Floats | None = None) -> Space:
    """Return the space of a geometry by its name; Euclidean if it is not in the table.

    Parameters
    ----------
    geometry : a geometry of `kernels`
    width : int
        Number of coordinates.
    start : ndarray, default None
        w_1; None is the uniform distribution on the simplex, 0 elsewhere.
    """
    if start is not None:
        start = np.array(start, dtype=np.float64)
        if start.shape != (width,):
            raise ValueError(f"start must have {width} coordinates, got shape {start.shape}")
    return SPACES.get(geometry.name, Flat)(geometry, width, start)


def relative_entropy(q: Floats, p: Floats, log_p: Floats | None = None) -> float:
    """Return Sigma q ln(q/p), with 0 ln 0 = 0; infinite if q > 0 = p. At least 0, since q and p have the same mass.

    If p underflows, its logarithm `log_p` is used if it is given.
    """
    on = q > 0.0
    rest = float(p[~on].sum())
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # in what is not taken
        log_p = (np.log(p) if log_p is None else log_p)[on]
        q, p = q[on], p[on]
        # q ln(q/p) - q + p is at least 0 for each coordinate, so nothing cancels when q is close to p.
        ratio = q / p
        log = np.where(p > LEAST, np.log(ratio), np.log(q) - log_p)
        terms = np.where(np.abs(ratio - 1.0) < 1e-4, _near(ratio - 1.0) * p, q * log - (q - p))
    return max(0.0, float(terms.sum()) + rest)


def _near(x: Floats) -> Floats:
    """Return (1 + x) ln(1 + x) - x for small x."""
    return x * x * (0.5 - x * (1 / 6 - x * (1 / 12 - x / 20)))


def normalised(logs: Floats) -> Floats:
    """Return the logarithms less that of their sum."""
    out: Floats = logs - log_sum_exp(logs.ravel())
    return out


def log_sum_exp(x: Floats) -> float:
    """Return ln Sigma e^x_i."""
    top = float(x.max())
    return top + float(np.log(np.exp(x - top).sum()))


def mean_size(before: Floats, after: Floats) -> float:
    """Return the mean of |before| + |after - before| + |after| under e^after, the rounding unit of ln Sigma e^after.

    The derivative of ln Sigma e^after with respect to a logarithm is its probability, which weights its rounding error.
    """
    q = np.exp(after - after.max())
    on = q > 0.0
    q, before, after = q[on], before[on], after[on]
    return float(q @ (np.abs(before) + np.abs(after - before) + np.abs(after)) / q.sum())


def doubled(u: Floats, radius: float) -> Floats:
    """Return (q+, q-) of shape (2, n) with sum 1, radius (q+ - q-) = u, and q+_i q-_i = rho^2 for every i.

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
