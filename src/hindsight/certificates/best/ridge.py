"""Ridge regression from the Gram matrix: the comparator of Widrow-Hoff's bounds.

    F(u) = scale/2 Sigma_t a_t (u . x_t - y_t)^2 + kappa/2 |u - w_1|^2,     Hessian H = scale X^T A X + kappa I

F is quadratic, so its gap at u is F(u) - min F = 1/2 g . H^-1 g <= |g|^2 / (2 kappa), with g its gradient there.
"""

from typing import NamedTuple

import numpy as np

from ...kernels.floats import EPS, Floats
from ...rows.data import Data

SPECTRUM = 500  # widths up to which the eigenvalues are computed, for the rank and the condition number


class Hessian:
    """H = scale G + kappa I, solved by its Cholesky factor, or with minimum norm in its eigenvectors if singular."""

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
        """Return H^-1 b, of minimum norm where H is singular."""
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
        """Return 1/2 g . H^-1 g with a margin for the rounding of H, or |g|^2/(2 kappa) if that is smaller."""
        sharp = 0.505 * max(0.0, float(g @ self.solve(g)))
        return sharp if kappa == 0.0 else min(sharp, float(g @ g) / (2.0 * kappa))


class RidgeSolution(NamedTuple):
    """A ridge solution with its margins."""

    u: Floats
    z: Floats
    objective: float
    gap: float
    notes: tuple[str, ...]


def ridge(data: Data, a: Floats, scale: float, kappa: float, start: Floats, tol: float) -> RidgeSolution:
    """Minimise F: one pass for the Gram matrix, and one for residuals and gradient per refinement."""
    gram, cross = data.moments(a, a * data.y)
    hessian = Hessian(gram, scale, kappa)
    u = start + hessian.solve(scale * (cross - gram @ start))
    best: RidgeSolution | None = None
    for _ in range(4):
        z, half_gradient = data.residual_gradient(u, a)
        residual = z - data.y
        d = u - start
        loss = 0.5 * scale * float((a * residual) @ residual)
        objective = loss + 0.5 * kappa * float(d @ d)
        g = scale * half_gradient + kappa * d
        gap = hessian.gap(g, kappa) + 4.0 * EPS * objective
        if best is None or gap < best.gap:
            best = RidgeSolution(u, z, objective, gap, hessian.notes)
        if gap <= max(tol * objective, 8.0 * EPS * objective):
            break
        u = u - hessian.solve(g)
    assert best is not None
    return best
