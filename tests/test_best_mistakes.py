"""The comparators of mistake bounds against general solvers, and that none beats its lower bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

from hindsight.certificates import theorems
from hindsight.certificates.best import separator
from hindsight.certificates.best.mistakes import largest_norm, perceptron, plain_bound, winnow
from hindsight.certificates.best.separator import _many, hard_margin
from hindsight.certificates.best.spaces import doubled, relative_entropy
from hindsight.certificates.theorems import ln_cosh
from hindsight.kernels.entropic import Balanced, Simplex
from hindsight.rows.data import Data


def labelled(seed, m=30, n=4, noise=0.0, weights=True):
    r = np.random.default_rng(seed)
    X = r.normal(size=(m, n))
    w = r.normal(size=n)
    y = np.sign(X @ w + noise * r.normal(size=m))
    return X, y, r.uniform(0.3, 2.0, size=m) if weights else np.ones(m)


def play_perceptron(X, y, c):
    w, made = np.zeros(X.shape[1]), np.zeros(len(y), dtype=bool)
    for t in range(len(y)):
        if y[t] * (w @ X[t]) <= 0.0:
            made[t] = True
            w += c[t] * y[t] * X[t]
    return made


def perceptron_reference(X, y, c, R, found):
    """sqrt of the least bound: min H + s R |u| as a smooth program in (u, h), s moved to the root of its value."""
    m, n = X.shape
    A = np.hstack((y[:, None] * X, np.eye(m)))
    s, x = found.bound**0.5, np.r_[found.u + 0.1, np.full(m, 3.0)]

    def solve(k, x):
        return optimize.minimize(
            lambda x: c @ x[n:] + k * np.sqrt(x[:n] @ x[:n]),
            x,
            jac=lambda x: np.r_[k * x[:n] / np.sqrt(x[:n] @ x[:n]), c],
            bounds=[(None, None)] * n + [(0, None)] * m,
            constraints={"type": "ineq", "fun": lambda x: A @ x - 1, "jac": lambda x: A},
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        ).x

    for _ in range(3):
        x = solve(s * R, x)
        s = plain_bound(c @ np.maximum(0, 1 - y * (X @ x[:n])), R * np.linalg.norm(x[:n])) ** 0.5
    return s


def hard_margin_reference(rows, first):
    return optimize.minimize(
        lambda u: 0.5 * u @ u,
        first,
        jac=lambda u: u,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
        constraints={"type": "ineq", "fun": lambda u: rows @ u - 1, "jac": lambda u: rows},
    ).x


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5])
def test_perceptron_rival_equals_a_general_solver(noise):
    for seed in range(4):
        X, y, c = labelled(seed, m=60, noise=noise)
        data = Data(X, y, c)
        found = perceptron(data, tol=1e-9, max_passes=10**5)
        R = largest_norm(data)
        assert pytest.approx(np.sqrt((c * (X**2).sum(axis=1)).max())) == R
        norm = np.linalg.norm(found.u)
        assert found.bound == pytest.approx(plain_bound(c @ np.maximum(0, 1 - y * (X @ found.u)), R * norm), rel=1e-12)
        assert norm > 0.1  # away from 0, where the general solver would stumble over |u|
        s = perceptron_reference(X, y, c, R, found)
        assert found.bound <= s**2 * (1 + 1e-8)
        assert found.lower <= s**2 * (1 + 1e-9)
        assert found.gap <= 1e-8 * found.bound


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 10.0]), st.sampled_from([1, 5, 40]), st.booleans())
def test_perceptron_bound_is_true_and_no_u_is_below_its_lower(seed, noise, passes, as_csr):
    X, y, c = labelled(seed, noise=noise)
    data = Data(sparse.csr_matrix(X) if as_csr else X, y, c)
    found = perceptron(data, max_passes=passes)
    made = play_perceptron(X, y, c)
    part, M, r = data.subset(made), c[made].sum(), np.random.default_rng(seed)
    H = float(part.c @ np.maximum(0.0, 1.0 - part.y * part.margins(found.u)))
    norm = float(np.linalg.norm(found.u))
    sharp = theorems.perceptron(H, norm, float(part.c**2 @ part.row_norms2()))
    assert sharp * (1 + 1e-12) >= M
    assert sharp <= plain_bound(H, largest_norm(data) * norm) * (1 + 1e-9)
    assert found.bound * (1 + 1e-12) >= M
    assert found.bound >= plain_bound(H, largest_norm(data) * norm) * (1 - 1e-9)
    assert found.lower <= found.bound * (1 + 1e-12)
    for _ in range(30):
        u = found.u * r.uniform(0.3, 2) + r.normal(size=4) * r.choice([1e-3, 0.1, 1.0])
        value = plain_bound(c @ np.maximum(0, 1 - y * (X @ u)), largest_norm(data) * np.linalg.norm(u))
        assert value >= found.lower * (1 - 1e-12)


def test_over_the_mistakes_alone_the_bound_says_nothing():
    """u = 0 gives M <= M there, and nothing is smaller: why the rival is sought over all rows."""
    for seed in range(5):
        X, y, c = labelled(seed, noise=2.0)
        made = play_perceptron(X, y, c)
        found = perceptron(Data(X, y, c).subset(made))
        assert found.bound == pytest.approx(c[made].sum())
        assert found.lower == pytest.approx(c[made].sum())


def test_hard_margin_equals_a_general_solver_and_is_feasible():
    for seed in range(6):
        X, y, c = labelled(seed, m=60)
        c[7] = 0.0
        y[7] = -y[7]  # weight 0: the wrong label must not matter
        on = c > 0
        found = hard_margin(Data(X, y, c), tol=1e-10)
        B = np.linalg.norm(hard_margin_reference((y[:, None] * X)[on], 2 * found.u))
        assert found.separable
        assert (y * (X @ found.u))[on].min() >= 1.0
        assert found.norm == pytest.approx(B, rel=1e-8)
        assert found.lower <= B * (1 + 1e-9)
        assert found.norm - found.lower <= 1e-8 * found.norm
        large = _many(Data(X[on], y[on]), 1e-4, 10**5, 0)
        assert large.separable
        assert (y * (X @ large.u))[on].min() >= 1.0
        assert large.lower <= found.norm * (1 + 1e-9)
        assert large.norm == pytest.approx(found.norm, rel=2e-4)


def test_hard_margin_grows_its_working_set():
    X, y, _ = labelled(3, m=5000, n=3)
    found, all_rows = (
        hard_margin(Data(X, y), tol=1e-9),
        hard_margin(Data(X, y, np.ones(5000)).subset(np.ones(5000, dtype=bool))),
    )
    assert found.separable
    assert (y * (X @ found.u)).min() >= 1.0
    assert found.norm - found.lower <= 1e-8 * found.norm
    assert all_rows.norm == pytest.approx(found.norm, rel=2e-3)


def wrong(E, target, maxiter):
    """An answer of sum 1 that leaves a residual, as nnls of older scipy gives."""
    return np.full(E.shape[1], 1.0 / E.shape[1]), 0.0


def capped(E, target, maxiter):
    raise RuntimeError("Maximum number of iterations reached.")


@pytest.mark.parametrize("nnls", [wrong, capped])
def test_a_wrong_answer_of_nnls_proves_nothing(monkeypatch, nnls):
    X, y, _ = labelled(3, m=60)
    want = hard_margin(Data(X, y))
    monkeypatch.setattr(optimize, "nnls", nnls)
    found = hard_margin(Data(X, y), max_passes=10**4)
    assert want.separable and found.separable
    assert (y * (X @ found.u)).min() >= 1.0
    assert found.norm == pytest.approx(want.norm, rel=2e-3)


def test_rows_separable_by_a_hair_are_not_called_inseparable():
    X = np.array([[1.0, 1e-9], [-1.0, 1e-9]])  # u = (0, 1) is right on both
    found = hard_margin(Data(X, [1.0, 1.0]))
    assert found.separable is True
    assert (X @ found.u).min() >= 1.0
    assert 1e9 <= found.norm <= 1e9 * (1.0 + 1e-5)  # scaled up by what rounding may take from the margins
    wide = np.hstack([X, np.zeros((2, 40))])  # too wide to ask a linear program
    found = hard_margin(Data(wide, [1.0, 1.0]))
    assert found.separable is None
    assert found.notes[0].startswith("not decided at this precision")
    assert found.lower == pytest.approx(1e9, rel=1e-3)


def test_hard_margin_says_when_there_is_none(monkeypatch):
    X, y, _ = labelled(1, m=200, noise=3.0)
    found = hard_margin(Data(X, y))
    assert found.separable is False
    assert found.u is None
    assert found.notes[0].startswith("not separable: Σ α y x = 0 over")
    wide = np.random.default_rng(1).normal(size=(300, 40))
    found = hard_margin(Data(wide, np.where(np.arange(300) % 2, 1.0, -1.0)))
    assert found.separable is None and found.notes[0].startswith("not decided at this precision")
    assert hard_margin(Data(np.array([[0.0], [1.0]]), [1.0, 1.0])).separable is False
    monkeypatch.setattr(separator, "NNLS", 0)
    data = Data(X, y)
    found = hard_margin(data, max_passes=50)
    assert found.separable is None
    assert "not shown separable" in found.notes[0]
    assert data.passes <= 50


def value(X, y, c, geometry, eta, u, delta):
    """Winnow's bound for any data, written out."""
    r, cm = geometry.radius, c.max()
    n = X.shape[1]
    if isinstance(geometry, Balanced):
        entropy = relative_entropy(doubled(u, r).ravel(), np.full(2 * n, 0.5 / n))
    else:
        entropy = relative_entropy(u / r, np.full(n, 1 / n))
    H = c @ np.maximum(0, delta - y * (X @ u))
    return (entropy + eta * H) / (eta * delta - np.log(np.cosh(eta * cm * r * np.abs(X).max())) / cm)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from([0.0, 1.0]), st.sampled_from([Simplex(1.0), Balanced(2.0)]),
    st.sampled_from([0.02, 0.1, 0.5]), st.sampled_from([50, 3000]),
)  # fmt: skip
def test_winnow_bound_and_its_lower(seed, noise, geometry, eta, passes):
    X, y, c = labelled(seed, m=80, noise=noise)
    if isinstance(geometry, Simplex):
        X = np.abs(X) * y[:, None] * np.random.default_rng(seed).choice([1, 1, 1, -1 if noise else 1], size=X.shape)
    found = winnow(Data(X, y, c), geometry, eta, tol=0.01, max_passes=passes)
    r = np.random.default_rng(seed)
    if np.isfinite(found.margin):
        assert found.bound == pytest.approx(value(X, y, c, geometry, eta, found.u, found.margin), rel=1e-7)
    assert found.lower <= found.bound * (1 + 1e-12)
    assert found.bound <= c.sum() * (1 + 1e-12)
    if passes > 50:
        assert found.gap <= 0.01 * found.bound or found.notes
    floor = np.log(np.cosh(eta * c.max() * geometry.radius * np.abs(X).max())) / c.max() / eta
    for _ in range(30):
        q = r.dirichlet(np.ones(4)) * geometry.radius
        other = q if isinstance(geometry, Simplex) else q * r.choice([-1, 1], size=4) * r.uniform()
        u = other + (found.u - other) * r.choice([0.0, 0.9, 0.99])
        delta = floor + (found.margin if np.isfinite(found.margin) else 1.0) * r.uniform(0.01, 3)
        assert value(X, y, c, geometry, eta, u, delta) >= found.lower * (1 - 1e-9)


def test_winnow_rival_reaches_its_lower_bound():
    X, y, _ = labelled(4, m=400, n=5, noise=0.1, weights=False)
    for geometry in (Simplex(1.0), Balanced(3.0)):
        rows = np.abs(X) * y[:, None] + 0.3 * X if isinstance(geometry, Simplex) else X
        found = winnow(Data(rows, y), geometry, 0.01, tol=1e-4, max_passes=10**5)
        assert np.isfinite(found.margin)
        assert found.gap <= 1e-4 * found.bound
        assert found.bound < 390


def test_ln_cosh():
    for x in (1e-9, 1e-3, 0.999, 1.0, 3.0):
        exact = float(np.log1p(np.expm1(x) ** 2 * np.exp(-x) / 2)) if x < 1 else np.log(np.cosh(x))
        assert ln_cosh(x) == pytest.approx(exact, rel=1e-12)
    assert ln_cosh(1e5) == pytest.approx(1e5 - np.log(2))
    assert ln_cosh(1e-9) == pytest.approx(5e-19)


def test_labels_other_than_signs_are_refused():
    data = Data(np.ones((2, 2)), [1.0, 0.0])
    for ask in (perceptron, hard_margin, lambda d: winnow(d, Simplex(1.0), 0.1)):
        with pytest.raises(ValueError, match=r"labels must be -1 or 1 .* got 0.0 in row 1"):
            ask(data)
