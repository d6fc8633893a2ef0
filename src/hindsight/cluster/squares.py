"""Least squares over partitions: every worker factors its rows, and the triangles are factored again.

Z^T Z = Sigma_k Z_k^T Z_k = Sigma_k R_k^T R_k, so a QR factorisation of the stacked triangles R_k gives the triangle of
all rows. Orthogonal steps keep the accuracy of one factorisation at any condition number; a sum of Gram matrices would
square it. A triangle is (n + 2)^2 numbers, whatever the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..batch.least_squares import Factor

if TYPE_CHECKING:
    from .blocks import Block
    from .rows import ClusterRows


def factor(block: Block, intercept: bool) -> Factor:
    """Return the factor of the rows of a block."""
    out = Factor(len(block.names), intercept)
    block.over(lambda X, y, weight: out.add(X, y, weight, block.names), block.y.astype(float, copy=False))
    out._R, out._pending = out.triangle(), []
    return out


def join(a: Factor, b: Factor) -> Factor:
    """Return the factor of the rows of both."""
    a.join(b)
    return a


def factor_all(rows: ClusterRows, intercept: bool) -> Factor:
    """Return the factor of all rows: one reduction."""
    total: Factor = rows.engine.reduce(factor, intercept, add=join)
    return total
