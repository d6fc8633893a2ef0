"""Sums over stripes of rows: those of all rows, to the same bits whatever the processors."""

import numpy as np
import pytest
import scipy.sparse as sp

from hindsight.kernels import side_by_side
from hindsight.rows.data import Data
from hindsight.rows.stripes import MANY


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_sums_are_those_of_all_rows_whatever_the_processors(sparse, monkeypatch):
    rng = np.random.default_rng(0)
    n = 8
    X = rng.normal(size=(MANY // n + 5, n))
    y, c, u = rng.normal(size=len(X)), rng.uniform(size=len(X)), rng.normal(size=n + 1)
    Z = np.column_stack([X, np.ones(len(X))])
    made = []
    for processors in (1, 2):
        monkeypatch.setattr(side_by_side, "PROCESSORS", processors)
        data = Data(sp.csr_matrix(X) if sparse else X, y, c, bias=1.0)
        made.append([data.combine(y), *data.residual_gradient(u, c), *data.moments(c, y), data.margins(2.0 * u)])
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)
    z = Z @ u
    wanted = [Z.T @ y, z, Z.T @ (c * (z - y)), Z.T @ (c[:, None] * Z), Z.T @ y, 2.0 * z]
    for one, want in zip(made[0], wanted, strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-11, atol=1e-11 * np.abs(want).max())
