"""Ridge regression from the Gram matrix: the rival of Widrow-Hoff (THEORY.md 1 and 2).

    F(u) = scale/2 Sigma_t a_t (u . x_t - y_t)^2 + kappa/2 |u - w_1|^2,     Hessian H = scale X^T A X + kappa I

F is quadratic, so F(u) - min F = 1/2 g . H^-1 g <= |g|^2 / (2 kappa) with g its gradient at u: the gap.
"""

from typing import NamedTuple

import numpy as np

from ...rows.matrices import Data, Floats

EPS = float(np.finfo(np.float64).eps)
SPECTRUM = 500  # widths up to which the eigenvalues are computed to tell rank and condition


class Moments(NamedTuple):
    """What the square loss needs to know of the rows, accumulated while learning (a commutative monoid under +).

    Attributes
    ----------
    gram : ndarray (n, n), Sigma a_t x_t x_t^T
    cross : ndarray (n,), Sigma a_t y_t x_t
    square : float, Sigma a_t y_t^2
    rounds : int
    """

    gram: Floats
    cross: Floats
    square: float
    rounds: int

    def rounding(self, u: Floats) -> float:
        """The usual error of Sigma a (u.x - y)^2 from moments, which cancel: eps sqrt(T) times their size."""
        length = np.abs(u)
        size = self.square + 2.0 * float(np.abs(self.cross) @ length) + float(length @ np.abs(self.gram) @ length)
        return 4.0 * EPS * float(np.sqrt(max(1, self.rounds))) * size

    def loss(self, u: Floats) -> float:
        """Sigma a_t (u . x_t - y_t)^2, up to `rounding`; never below 0."""
        return max(0.0, self.square - 2.0 * float(self.cross @ u) + float(u @ self.gram @ u))


class Hessian:
    """H = scale G + kappa I, solved by Cholesky, or in its eigenvectors (with minimum norm) where it is singular."""

    def __init__(self, gram: Floats, scale: float, kappa: float) -> None:
        from scipy import linalg
        from scipy.linalg import lapack

        n = gram.shape[0]
        H = scale * gram
        H[np.diag_indices(n)] += kappa
        self.notes: tuple[str, ...] = ()
        self.singular = False
        values = linalg.eigvalsh(gram) if n <= SPECTRUM else None
        try:
            self._factor = linalg.cho_factor(H, lower=True)
            inverse = float(lapack.dpocon(self._factor[0], np.abs(H).sum(axis=0).max(), uplo="L")[0])
            self.singular = inverse < n * EPS
        except linalg.LinAlgError:
            self.singular, inverse = True, 0.0
        if self.singular:
            values, self._vectors = linalg.eigh(H)
            self._on = values > n * EPS * max(float(values[-1]), 0.0)
            self._values = values
            kept = values[self._on]
            ratio = float(kept[-1] / kept[0]) if kept.size else 1.0
            self.notes = (f"rank {kept.size} of {n}: the minimum-norm solution", f"condition {ratio:.3g} on its range")
        else:
            if values is not None:
                rank = int((values > n * EPS * max(float(values[-1]), 0.0)).sum())
                self.notes = (f"rank {rank} of {n}",)
            self.notes += (f"condition about {1.0 / inverse:.3g} with the penalty",)

    def solve(self, b: Floats) -> Floats:
        from scipy import linalg

        if not self.singular:
            out: Floats = linalg.cho_solve(self._factor, b)
            return out
        w = self._vectors.T @ b
        w[~self._on] = 0.0
        w[self._on] /= self._values[self._on]
        shortest: Floats = self._vectors @ w
        return shortest

    def gap(self, g: Floats, kappa: float) -> float:
        """1/2 g . H^-1 g with a margin for the rounding of H, or |g|^2/(2 kappa) where that is smaller."""
        sharp = 0.505 * max(0.0, float(g @ self.solve(g)))
        return sharp if kappa == 0.0 else min(sharp, float(g @ g) / (2.0 * kappa))


class Fit(NamedTuple):
    """A ridge solution with its margins."""

    u: Floats
    z: Floats
    objective: float
    gap: float
    notes: tuple[str, ...]


def ridge(data: Data, a: Floats, scale: float, kappa: float, start: Floats, tol: float) -> Fit:
    """Minimise F: one pass for the Gram matrix, one for residuals and gradient (one more for each refinement)."""
    gram, cross = data.moments(a, a * data.y)
    hessian = Hessian(gram, scale, kappa)
    u = start + hessian.solve(scale * (cross - gram @ start))
    best: Fit | None = None
    for _ in range(4):
        z, pull = data.misses(u, a)
        miss = z - data.y
        d = u - start
        paid = 0.5 * scale * float((a * miss) @ miss)
        objective = paid + 0.5 * kappa * float(d @ d)
        g = scale * pull + kappa * d
        gap = hessian.gap(g, kappa) + 4.0 * EPS * objective
        if best is None or gap < best.gap:
            best = Fit(u, z, objective, gap, hessian.notes)
        if gap <= max(tol * objective, 8.0 * EPS * objective):
            break
        u = u - hessian.solve(g)
    assert best is not None
    return best


def ridge_from_moments(
    moments: Moments, scale: float, kappa: float, start: Floats
) -> tuple[Floats, float, float, float, tuple[str, ...]]:
    """(u, Sigma a (u.x - y)^2, objective, gap, notes) with no pass over rows; the gap counts the cancellation error."""
    gram, cross = moments.gram, moments.cross
    hessian = Hessian(gram, scale, kappa)
    u = start + hessian.solve(scale * (cross - gram @ start))
    u = u - hessian.solve(scale * (gram @ u - cross) + kappa * (u - start))
    d = u - start
    loss, error = moments.loss(u), 0.5 * scale * moments.rounding(u)
    objective = 0.5 * scale * loss + 0.5 * kappa * float(d @ d)
    gap = hessian.gap(scale * (gram @ u - cross) + kappa * d, kappa) + 2.0 * error
    note = f"from moments: cancellation error up to {error:.3g} in the loss"
    return u, loss, objective, gap, (*hessian.notes, note)
