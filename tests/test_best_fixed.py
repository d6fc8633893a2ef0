"""The best fixed predictor in hindsight, against solvers that know nothing of ours."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from hindsight import AutoRegressor
from hindsight.certificates.best import best_fixed
from hindsight.kernels.losses import Logistic, Square
from hindsight.rows.data import Data


def drawn(seed, labels):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(3, 80)), int(rng.integers(1, 6))
    X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-6, 6, n)
    if seed % 3 == 0 and n > 1:
        X[:, -1] = X[:, 0] * 1e3  # collinear
    if seed % 4 == 0:
        X *= rng.random((m, n)) < 0.5
    z = X @ (rng.normal(size=n) / np.maximum(np.abs(X).max(axis=0), 1e-300)) + rng.normal(size=m)
    y = (z > 0).astype(float) if labels else z
    if labels:
        y[rng.random(m) < 0.2] = 0.5 if seed % 5 == 0 else 1.0
    c = rng.choice([0.0, 0.5, 1.0, 3.0], m)
    c[0] = 1.0
    return X, y, c


@pytest.mark.parametrize("seed", range(60))
def test_least_squares(seed):
    X, y, c = drawn(seed, labels=False)
    data = Data(sp.csr_matrix(X) if seed % 2 else X, y, None, 1.0)
    found = best_fixed(data, Square(2.0), c)
    root = np.sqrt(c)[:, None]
    A, b = np.c_[X, np.ones(len(y))] * root, y * root[:, 0]
    size = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    u = np.linalg.lstsq(A / size, b, rcond=1e-12)[0]
    least = float(((A / size @ u - b) ** 2).sum())
    scale = float(b @ b)
    assert abs(found.loss - least) <= 1e-9 * scale
    assert found.loss - found.gap <= least + 1e-9 * scale


@pytest.mark.parametrize("seed", range(60))
def test_logistic(seed):
    X, y, c = drawn(seed, labels=True)
    data = Data(sp.csr_matrix(X) if seed % 2 else X, y, None, 1.0)
    found = best_fixed(data, Logistic(1.0), c)
    A = np.c_[X / np.maximum(np.abs(X).max(axis=0), 1e-300), np.ones(len(y))]

    def loss(u):
        z = A @ u
        value = float(c @ (np.logaddexp(0.0, z) - y * z))
        return value, A.T @ (c * (1.0 / (1.0 + np.exp(-np.clip(z, -700, 700))) - y))

    least = minimize(loss, np.zeros(A.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000}).fun
    assert found.loss <= least * (1.0 + 1e-6) + 1e-9
    assert found.loss - found.gap <= least + 1e-9 * c.sum()
    if found.found.startswith("the best"):
        assert found.gap <= 1e-6 * found.loss


def test_separable_rows_are_said_to_be():
    data = Data(np.array([[1.0], [2.0], [-1.0]]), [1.0, 1.0, 0.0], None, 1.0)
    found = best_fixed(data, Logistic(1.0), np.ones(3))
    assert found.found.startswith("the rows are separable: 0 is approached, not attained; ")
    assert 0.0 < found.loss < 1e-3 and found.gap == found.loss and f"{found.loss:.3g} was reached" in found.found


def test_nothing_is_hidden_by_columns_that_are_nearly_collinear():
    rng = np.random.default_rng(0)
    x, far = rng.normal(size=50), rng.normal(size=50)
    X = np.c_[x, x + 1e-6 * far]  # their difference predicts y
    found = best_fixed(Data(X, far), Square(2.0), np.ones(50))
    assert found.found.startswith("least squares, rank 2 of 2") and found.reach == np.inf and found.loss < 1e-15
    assert best_fixed(Data(np.c_[x, far], far), Square(2.0), np.ones(50)).gap < 1e-9


def test_the_shortest_of_many_least_squares_solutions_with_its_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X = np.c_[X, X[:, 0] - 2.0 * X[:, 1], np.zeros(40)]
    y = rng.normal(size=40)
    found = best_fixed(Data(X, y), Square(2.0), np.ones(40))
    u = np.linalg.pinv(X) @ y
    np.testing.assert_allclose(found.u, u, atol=1e-9)
    assert found.loss == pytest.approx(float(((X @ u - y) ** 2).sum()))
    assert found.found.startswith("least squares, of minimum norm, rank 3 of 5; sought up to |u| = ")
    assert np.isfinite(found.reach) and found.gap < 1e-6 * found.loss


def test_of_a_loss_that_is_not_convex_nothing_is_claimed():
    data = Data(np.eye(2), [1.0, 2.0])
    found = best_fixed(data, Logistic(1.0), np.ones(2))  # its matching loss falls without end where y > 1
    assert found.gap == np.inf and "outside [0, 1]" in found.found


def test_a_run_below_every_fixed_predictor_says_so_only_where_that_is_shown():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 1))
    turns = np.where(np.arange(600) < 300, 3.0, -3.0)  # no fixed weight does well
    told = []
    for columns in (X, np.c_[X, X]):
        model = AutoRegressor().fit(columns, turns * X[:, 0])
        notes = model.certify(columns, turns * X[:, 0]).notes
        told.append("the run lost less than every fixed predictor" in notes)
    assert told == [True, False]
