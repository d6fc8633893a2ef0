"""Adaptive and discounted regret at a constant rate: the corollaries hold on random streams, for the worst u."""

from __future__ import annotations

import numpy as np
import pytest


def stream(rng):
    """Rows and targets whose best predictor changes on the way, some of them outliers."""
    n, d = int(rng.integers(1, 30)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 10.0], size=d)
    kinds = rng.normal(size=(3, d))[np.sort(rng.integers(0, 3, n))]
    y = np.einsum("ij,ij->i", X, kinds)
    y = np.where(np.arange(n) < rng.integers(0, n + 1), y, -2.0 * y) + rng.choice([0.0, 1.0, 50.0]) * rng.normal(size=n)
    return X, y


def played(X, y, eta, implicit):
    """The weights before each round and after the last, and the errors."""
    w, weights, errors = np.zeros(X.shape[1]), [], []
    for x, target in zip(X, y, strict=True):
        weights.append(w)
        errors.append(w @ x - target)
        w = w - eta * errors[-1] / (1.0 + eta * (x @ x) if implicit else 1.0) * x
    return np.array([*weights, w]), np.array(errors)


def least(X, y, factors, points, costs):
    """The least of sum factors (u.x - y)^2 + sum costs |u - point|^2 over u."""
    A = (X.T * factors) @ X + costs.sum() * np.eye(X.shape[1])
    u = np.linalg.solve(A, (X.T * factors) @ y + costs @ points)
    return float(factors @ (X @ u - y) ** 2 + costs @ ((u - points) ** 2).sum(axis=1))


@pytest.mark.parametrize("implicit", [False, True])
def test_every_stretch_keeps_its_bound(implicit):
    rng, tight = np.random.default_rng(5), 0.0
    for _ in range(1000):
        X, y = stream(rng)
        largest = (X**2).sum(axis=1).max()
        eta = rng.uniform(0.01, 3.0 if implicit else 0.99) / largest
        weights, errors = played(X, y, eta, implicit)
        s = int(rng.integers(0, len(y)))
        e = int(rng.integers(s + 1, len(y) + 1))
        ones, start, cost = np.ones(e - s), weights[s : s + 1], np.array([1.0 / eta])
        if implicit:
            measured = float((errors[s:e] ** 2 / (1.0 + eta * (X[s:e] ** 2).sum(axis=1))).sum())
            bound = least(X[s:e], y[s:e], ones, start, cost)
        else:
            measured = float((errors[s:e] ** 2).sum())
            bound = least(X[s:e], y[s:e], ones / (1.0 - eta * largest), start, cost)
        assert measured <= bound * (1.0 + 1e-9) + 1e-12
        tight = max(tight, measured / bound if bound else 0.0)
    assert tight > 0.9  # it says something


def test_discounted_regret_keeps_its_bound():
    rng, tight = np.random.default_rng(6), 0.0
    for _ in range(1000):
        X, y = stream(rng)
        largest, n = (X**2).sum(axis=1).max(), len(y)
        eta, gamma = rng.uniform(0.01, 0.99) / largest, float(rng.choice([0.5, 0.9, 0.99, 1.0]))
        weights, errors = played(X, y, eta, False)
        late = gamma ** np.arange(n - 1, -1, -1.0)
        costs = (1.0 - gamma) * late / eta
        costs[0] = late[0] / eta
        bound = least(X, y, late / (1.0 - eta * largest), weights[:n], costs)
        measured = float(late @ errors**2)
        assert measured <= bound * (1.0 + 1e-9) + 1e-12
        tight = max(tight, measured / bound if bound else 0.0)
    assert tight > 0.9
