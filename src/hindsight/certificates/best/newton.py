"""Newton's method for few coordinates: one damped loop for all smooth objectives, over R^n or over a set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.floats import EPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...kernels.floats import Floats
    from .spaces import Mixtures

TRIES = 60  # points at most
FALL = 1e-4  # of what the slope along a step promises that a step must bring
ROUNDING = 4.0 * EPS  # of the value, that it may rise by nevertheless: near its end only the gradient still falls
NOTHING = 1e-28  # of the value: a promise beyond rounding, of the gradient too
CONDITION = 1e-9  # reciprocal condition number from which a Cholesky factor is trusted
SAFE = 0.1  # of an estimated reciprocal condition, which may be too large


def newton(
    at: Callable[[Floats], Any], u: Floats, direction: Callable[[Any], Floats], tries: int = TRIES, halve: bool = True
) -> Iterator[tuple[Any, Floats]]:
    """Yield the points of Newton's method from u on, with the step from each; their values decrease.

    Parameters
    ----------
    at : callable
        Evaluates the objective at a u; returns an object with `u`, `value` and `gradient`.
    u : ndarray
        The initial point.
    direction : callable
        Returns the step from such an object. The iteration ends if the value does not decrease along it.
    tries : int, default 60
        The largest number of evaluations.
    halve : bool, default True
        Whether a step is halved until the value decreases. Otherwise the iteration ends if a full step does not
        decrease it.
    """
    point, tried = at(u), 1
    while True:
        step, length = direction(point), 1.0
        yield point, step
        fall = -float(point.gradient @ step)
        while True:
            u = point.u + length * step
            if tried >= tries or not fall > NOTHING * abs(point.value) or np.array_equal(u, point.u):
                return
            new, tried = at(u), tried + 1
            if new.value <= point.value - FALL * length * fall + ROUNDING * abs(point.value):
                break
            length *= 0.5 if halve else 0.0
        point = new


class Inverse:
    """The inverse of a symmetric H >= 0, by its Cholesky factor if it is well conditioned, otherwise by eigenvectors.

    Attributes
    ----------
    rank : int
        The number of eigenvalues that are nonzero up to rounding.
    condition : float
        An estimate of the reciprocal condition number; 0 without a Cholesky factor.
    least : float
        A lower bound on the nonzero eigenvalues.
    """

    def __init__(self, H: Floats, trusted: float = CONDITION, noise: float = 8.0 * EPS) -> None:
        from scipy import linalg
        from scipy.linalg import lapack

        n, self.condition = H.shape[0], 0.0
        try:
            self._factor = linalg.cho_factor(H, lower=True)
            norm = float(np.abs(H).sum(axis=0).max(initial=0.0))
            self.condition = float(lapack.dpocon(self._factor[0], norm, uplo="L")[0])
            self.rank, self.least = n, SAFE * self.condition * norm
        except (linalg.LinAlgError, ValueError):
            pass
        self.trusted = self.condition >= trusted
        if not self.trusted:
            values, vectors = np.linalg.eigh(H)
            self.keep(values, vectors, values > noise * n * max(float(values.max(initial=0.0)), 0.0))

    def keep(self, values: Floats, vectors: Floats, kept: Any) -> None:
        """Use the selected eigenvalues and eigenvectors."""
        self.trusted, self.values, self.vectors = False, values[kept], vectors[:, kept]
        self.rank, self.least = int(self.values.size), float(self.values.min(initial=math.inf))

    def solve(self, b: Floats) -> Floats:
        """The solution v of H v = b, of minimum norm if H is singular."""
        if self.trusted:
            from scipy.linalg import cho_solve

            solved: Floats = cho_solve(self._factor, b)
            return solved
        shortest: Floats = self.vectors @ ((self.vectors.T @ b) / self.values)
        return shortest


class ScaledStep:
    """Newton's step on scaled columns, and the rank of the second derivatives.

    Parameters
    ----------
    shrink : ndarray
        The factor of each column.
    damp : float, default 0.0
        A multiple of the identity to add to the second derivatives on scaled columns.
    gram : ndarray, default None
        The second derivatives, if they are the same for every u; None uses those of each point.
    trusted, noise : float
        As for `Inverse`.
    """

    def __init__(
        self, shrink: Floats, damp: float = 0.0, gram: Floats | None = None, trusted: float = CONDITION,
        noise: float = 8.0 * EPS,
    ) -> None:  # fmt: skip
        self.shrink, self.damp, self.gram, self.limits = shrink, damp, gram, (trusted, noise)
        if gram is not None:
            self.factor(gram)

    def factor(self, gram: Floats) -> None:
        """Factor the given second derivatives."""
        self.H = gram * np.outer(self.shrink, self.shrink)
        self.H[np.diag_indices(self.shrink.size)] += self.damp
        self.inverse = Inverse(self.H, *self.limits)

    def solve(self, g: Floats) -> Floats:
        """H^-1 g, in units of the columns."""
        return self.shrink * self.inverse.solve(self.shrink * g)

    def __call__(self, point: Any) -> Floats:
        if self.gram is None:
            self.factor(point.gram)
        return -self.solve(point.gradient)


class StepInSet:
    """The step to the minimiser of the quadratic model over a set; 0 if the solver fails."""

    def __init__(self, where: Mixtures, damp: float = 0.0) -> None:
        self.where, self.damp = where, damp

    def __call__(self, point: Any) -> Floats:
        H, g = point.gram.copy(), point.gradient
        if self.damp:
            H[np.diag_indices(g.size)] += self.damp * (float(np.diagonal(H).max()) or 1.0)
        w = minimiser(self.where, H, g, point.u)
        return np.zeros(g.size) if w is None else w - point.u


def minimiser(where: Mixtures, H: Floats, g: Floats, u: Floats) -> Floats | None:
    """The w in the set that minimises g . w + 1/2 (w - u) . H (w - u), or None if the solver fails.

    If H is too small to divide by, g . w alone is minimised. With R^T R = H, R w is the point nearest to
    b = R u - R^-T g in the convex hull of R times the corners. As for the hard margin, the weights of the point nearest
    to 0 in the convex hull of the columns of C are p/Sigma p, where p >= 0 is the least-squares solution of C p = 0,
    s Sigma p = s.
    """
    from scipy.optimize import nnls

    size = np.sqrt(np.maximum(np.diagonal(H), 0.0)).max(initial=0.0)
    if not size > 0.0:
        return where.lowest(g)
    values, V = np.linalg.eigh(H / size**2)
    values = np.maximum(values, 1e-13)
    root = np.sqrt(values)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        R, b = root[:, None] * V.T, (root * (V.T @ u)) - (V.T @ g) / size**2 / root
        C = where.at_corners(R) - b[:, None]
        scale = float(np.linalg.norm(C, axis=0).mean()) or 1.0
    if not (math.isfinite(scale) and np.isfinite(C).all()):  # a curvature next to nothing beside the slopes
        return where.lowest(g)
    target = np.zeros(C.shape[0] + 1)
    target[-1] = 1.0
    try:
        p, _ = nnls(np.vstack((C / scale, np.ones(C.shape[1]))), target, maxiter=20 * C.shape[1] + 100)
    except RuntimeError:
        return None
    total = float(p.sum())
    return where.mixed(p / total) if total > 0.0 and math.isfinite(total) else None
