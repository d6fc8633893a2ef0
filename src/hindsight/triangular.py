"""Triangular systems. Small ones are solved without scipy.linalg, whose import of 0.1 s is a quarter of a small run."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALL = 64  # rows up to which a loop of Python takes less than 0.1 ms


def solve_triangular(
    upper: np.ndarray[Any, Any], right: np.ndarray[Any, Any], check_finite: bool = False
) -> np.ndarray[Any, Any]:
    """Solve U x = b, from the last row up: x_i = (b_i - sum of U_ij x_j over j > i) / U_ii.

    Parameters
    ----------
    upper : array of shape (n, n)
        U, with a nonzero diagonal; entries below the diagonal are not read.
    right : array of shape (n,)
        b.
    check_finite : bool, default False
        Passed to scipy, which solves systems of more than 64 rows.

    Returns
    -------
    array of shape (n,)
        The solution x.

    Examples
    --------
    >>> import numpy as np
    >>> solve_triangular(np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([4.0, 8.0]))
    array([1., 2.])
    """
    if right.size > SMALL:
        from scipy import linalg

        return linalg.solve_triangular(upper, right, check_finite=check_finite)
    x = np.array(right, np.float64)
    for i in range(x.size - 1, -1, -1):
        x[i] = (x[i] - upper[i, i + 1 :] @ x[i + 1 :]) / upper[i, i]
    return x
