"""Comparators against general solvers on small problems, and the promise of the gap on random ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

from conftest import many, nightly
from hindsight.certificates.best import best_fixed, comparator
from hindsight.certificates.best.ascent import Ascent, solve
from hindsight.certificates.best.comparator import best, best_in_metric, fixed
from hindsight.certificates.best.spaces import doubled, relative_entropy, space
from hindsight.kernels.entropic import Balanced, Simplex
from hindsight.kernels.euclidean import Euclidean
from hindsight.kernels.losses import Absolute, Clipped, Hinge, Logistic, Probit, Square, Tanh
from hindsight.online.margins import each_loss
from hindsight.rows.data import Data, divided

RULES = [Square(2.0), Absolute(1.0), Logistic(1.0), Hinge(1.0), Hinge(0.0), Clipped(1.5), Probit(1.0), Tanh(1.0)]
GEOMETRIES = [Euclidean(1.0), Simplex(1.5), Balanced(2.0)]
PAIRS = [(rule, geometry) for rule in RULES for geometry in GEOMETRIES]
CHOSEN = [pair for pair in PAIRS if not isinstance(pair[0], (Clipped, Probit, Tanh)) or isinstance(pair[1], Euclidean)]
PIECES = {  # the rules that are a maximum of lines: (slope, height) pairs for a label
    Absolute: lambda rule, y: [(rule.scale, -rule.scale * y), (-rule.scale, rule.scale * y)],
    Hinge: lambda rule, y: [(0.0, 0.0), (-y, rule.margin)],
}


def problem(seed, rule, m=12, n=3, bias=1.0):
    """Rows, labels the rule allows, weights (one of them 0), a start inside each set."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(m, n)) * r.choice([0.3, 1.0, 2.0])
    y = np.sign(r.normal(size=m)) if isinstance(rule, Hinge) else r.uniform(size=m)
    c = r.uniform(0.2, 3.0, size=m)
    c[r.integers(m)] = 0.0
    return X, y, c, bias


def start_in(geometry, n, seed):
    w = np.random.default_rng(seed + 99).uniform(0.2, 1.0, size=n)
    if isinstance(geometry, Simplex):
        return geometry.radius * w / w.sum()
    return 0.5 * (w - 0.6) * (geometry.radius / n if isinstance(geometry, Balanced) else 1.0)


def full(X, bias):
    return np.hstack((X, np.full((len(X), 1), bias))) if bias else X


def reference(X, y, a, rule, geometry, kappa, w1):
    """The optimum of F by SLSQP, over u, or over the (doubled) distribution q that the multiplicative rules keep."""
    m, n = X.shape
    if isinstance(geometry, Euclidean):
        back, base = np.eye(n), w1
    else:
        back = geometry.radius * (np.eye(n) if isinstance(geometry, Simplex) else np.hstack((np.eye(n), -np.eye(n))))
        if isinstance(geometry, Simplex):
            base = w1 / geometry.radius
        else:
            theta = geometry.dual(w1)
            base = np.exp(np.concatenate((theta, -theta)))
            base /= base.sum()
    k, rows = base.size, X @ back
    flat = isinstance(geometry, Euclidean)

    def distance(q):
        return 0.5 * ((q - base) ** 2).sum() if flat else (q * np.log(q / base)).sum()

    def pull(q):
        return q - base if flat else np.log(q / base) + 1.0

    bounds = [(None, None)] * k if flat else [(1e-13, 1.0)] * k
    sums = (
        []
        if flat
        else [
            {"type": "eq", "fun": lambda q: q[:k].sum() - 1.0, "jac": lambda q: np.r_[np.ones(k), np.zeros(q.size - k)]}
        ]
    )
    if type(rule) in PIECES:
        on = np.flatnonzero(a)
        cut = [(t, s, h) for t in on for s, h in PIECES[type(rule)](rule, y[t])]
        place = {t: i for i, t in enumerate(on)}
        A = np.array([np.r_[-s * rows[t], np.eye(on.size)[place[t]]] for t, s, h in cut])
        h = np.array([h for *_, h in cut])
        x0 = np.r_[base, np.array([rule.value(rows[t] @ base, y[t]) for t in on]) + 0.1]
        result = optimize.minimize(
            lambda x: a[on] @ x[k:] + kappa * distance(x[:k]), x0, method="SLSQP",
            jac=lambda x: np.r_[kappa * pull(x[:k]), a[on]], bounds=bounds + [(None, None)] * on.size,
            constraints=[*sums, {"type": "ineq", "fun": lambda x: A @ x - h, "jac": lambda x: A}],
            options={"ftol": 1e-14, "maxiter": 3000},
        )  # fmt: skip
        q = result.x[:k]
    else:
        result = optimize.minimize(
            lambda q: sum(a[t] * rule.value(rows[t] @ q, y[t]) for t in range(m)) + kappa * distance(q), base,
            jac=lambda q: sum(a[t] * rule.slope(rows[t] @ q, y[t]) * rows[t] for t in range(m)) + kappa * pull(q),
            method="SLSQP", bounds=bounds, constraints=sums, options={"ftol": 1e-15, "maxiter": 3000},
        )  # fmt: skip
        q = result.x
    if not flat:
        q = np.maximum(q, 1e-13) / np.maximum(q, 1e-13).sum()
    return sum(a[t] * rule.value(rows[t] @ q, y[t]) for t in range(m)) + kappa * distance(q)


@nightly(but=["Absolute*", "Logistic*", "Hinge*", "Square*", "*-Euclidean"])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: type(g).__name__)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_best_equals_a_general_solver(rule, geometry):
    for seed in range(many(2, 4)):
        X, y, c, bias = problem(seed, rule)
        a, kappa = c * 1.7, [0.3, 1.0, 4.0, 20.0][seed]
        w1 = None if seed % 2 else start_in(geometry, 4, seed)
        found = best(Data(X, y, c, bias), rule, geometry, kappa, a=a, start=w1, tol=1e-11, max_passes=200_000)
        first = space(geometry, 4, w1).start
        true = reference(full(X, bias), y, a, rule, geometry, kappa, first)
        scale = 1.0 + abs(true)
        assert abs(found.objective - true) <= 1e-8 * scale
        assert found.objective - found.gap <= true + 1e-9 * scale
        assert found.gap <= 1e-9 * scale
        assert not any("stopped" in note for note in found.notes)


def test_square_in_the_euclidean_geometry_by_ascent_equals_ridge():
    X, y, c, bias = problem(3, Square(2.0), m=40, n=5)
    data, rule, flat = Data(X, y, c, bias), Square(2.0), Euclidean(1.0)
    H = 2.0 * full(X, bias).T @ (c[:, None] * full(X, bias)) + 3.0 * np.eye(6)
    u = np.linalg.solve(H, 2.0 * full(X, bias).T @ (c * y))
    np.testing.assert_allclose(best(data, rule, flat, 3.0).u, u, rtol=1e-12, atol=1e-13)
    found = solve(data, rule, space(flat, 6), c, 3.0, 1e-13, 10_000)
    np.testing.assert_allclose(found.u, u, rtol=1e-6, atol=1e-7)
    value = c @ (full(X, bias) @ u - y) ** 2 + 1.5 * u @ u
    assert best(data, rule, flat, 3.0).objective == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("spread", [1.0, 1.19, 1.3])
def test_many_rows_with_nearly_equal_factors_take_the_moments_of_their_weights(spread, monkeypatch):
    """The comparator is the same, its gap is true, and rows are summed once for it and the best fixed predictor."""
    monkeypatch.setattr(comparator, "MANY", 1)
    summed, rule = [], Square(2.0)
    add_up = Data._sum_moments
    monkeypatch.setattr(Data, "_sum_moments", lambda self, a, b: summed.append(1) or add_up(self, a, b))
    for seed in range(many(20, 200)):
        X, y, c, bias = problem(seed, rule, m=40)
        r = np.random.default_rng(seed)
        a, kappa, start = c * r.choice([1.0, spread], c.size), 10.0 ** r.uniform(-9, 2), 3.0 * r.normal(size=4)
        data = Data(X, y, c, bias)
        found = best(data, rule, Euclidean(1.0), kappa, a, start if seed % 2 else None)
        first = start if seed % 2 else np.zeros(4)
        best_fixed(data, rule, c)
        Z = full(X, bias)
        u = np.linalg.solve(2.0 * Z.T @ (a[:, None] * Z) + kappa * np.eye(4), 2.0 * Z.T @ (a * y) + kappa * first)
        true = float(a @ (Z @ u - y) ** 2) + 0.5 * kappa * float((u - first) @ (u - first))
        assert -1e-12 * true <= found.objective - true <= found.gap <= 1e-7 * true
        assert found.how == "the smallest"
    assert len(summed) == (1 if spread <= 1.2 else 2) * many(20, 200)


def test_ridge_of_singular_rows_has_least_norm_and_says_its_rank():
    r = np.random.default_rng(5)
    X = r.normal(size=(30, 2)) @ r.normal(size=(2, 6))
    y = r.normal(size=30)
    found = best(Data(X, y), Square(2.0), Euclidean(1.0), 0.0)
    np.testing.assert_allclose(found.u, np.linalg.lstsq(X, y, rcond=1e-10)[0], rtol=1e-9, atol=1e-11)
    assert found.notes[0].startswith("rank 2 of 6") and found.gap == np.inf  # what the rank leaves out is not seen
    penalised = best(Data(X, y), Square(2.0), Euclidean(1.0), 0.5)
    assert penalised.notes[0] == "rank 2 of 6"
    np.testing.assert_allclose(penalised.u, np.linalg.solve(2 * X.T @ X + 0.5 * np.eye(6), 2 * X.T @ y), rtol=1e-10)


@pytest.mark.parametrize("rule", [Square(2.0), Logistic(1.0), Probit(1.0)], ids=str)
def test_one_metric_after_another_is_each_alone(rule, monkeypatch):
    """Moments are shared and searches begin at the last u, which changes nothing but the time."""
    X, y, c, bias = problem(4, rule, m=60, n=3)
    summed, r, data = [], np.random.default_rng(4), Data(X, y, c, bias)
    add_up = Data._sum_moments
    monkeypatch.setattr(Data, "_sum_moments", lambda self, a, b: summed.append(1) or add_up(self, a, b))
    start, metrics = r.normal(size=4), 10.0 ** r.uniform(-2, 2, (5, 4))
    found = [best_in_metric(data, rule, metric, c, start, 0.01) for metric in metrics]
    assert len(summed) == 1 or not rule.quadratic
    for one, metric in zip(found, metrics, strict=True):
        alone = best_in_metric(Data(X, y, c, bias), rule, metric, c, start, 0.01)
        np.testing.assert_allclose(one.u, alone.u, rtol=1e-4, atol=1e-6)
        assert one.objective == pytest.approx(alone.objective, rel=2e-9)
        lower = min(one.objective - one.gap, alone.objective - alone.gap)
        assert max(one.objective, alone.objective) - lower <= 3e-9 * one.objective
        for u in (start, alone.u + 0.01 * r.normal(size=4)):
            value = float(c @ each_loss(rule, data.margins(u), y)) + 0.5 * float(metric @ (u - start) ** 2)
            assert value >= one.objective - one.gap


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: type(g).__name__)
def test_storage_chunks_and_weight_zero_change_nothing(geometry):
    rule = Absolute(1.0)
    X, y, c, bias = problem(11, rule, m=60, n=4)
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.5] = 0.0
    kappa, tol = 2.0, 1e-11

    def chunks():
        return iter([(X[:7], y[:7], c[:7]), (sparse.csr_matrix(X[7:8]), y[7:8], c[7:8]), (X[8:], y[8:], c[8:])])

    whole = best(Data(X, y, c, bias), rule, geometry, kappa, tol=tol, max_passes=10**5)
    forms = [
        Data(sparse.csr_matrix(X), y, c, bias), Data(np.asfortranarray(X), y, c, bias), Data.from_chunks(chunks, bias),
        Data(X[c > 0], y[c > 0], c[c > 0], bias), Data(X, y, c, bias).subset(c > 0),
        Data.from_chunks(chunks, bias).subset(c > 0),
        Data(np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(c, 2) / 2, bias),
    ]  # fmt: skip
    for data in forms:
        other = best(data, rule, geometry, kappa, tol=tol, max_passes=10**5)
        assert other.objective == pytest.approx(whole.objective, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_operator_is_the_matrix(dtype, bias):
    r = np.random.default_rng(2)
    X = r.normal(size=(50, 6)).astype(dtype)
    X[r.uniform(size=X.shape) < 0.4] = 0.0
    A, a, y = full(X.astype(np.float64), bias), r.uniform(size=50), r.normal(size=50)
    wide = np.zeros((100, 12), dtype=dtype)
    wide[::2, ::2] = X
    chunked = Data.from_chunks(lambda: iter([(X[:20], y[:20], None), (X[20:], y[20:], None)]), bias)
    sources = [
        Data(X, y, None, bias),
        Data(wide[::2, ::2], y, None, bias),
        Data(sparse.csr_matrix(X), y, None, bias),
        chunked,
    ]
    for data in sources:
        u = r.normal(size=data.width)
        np.testing.assert_allclose(data.margins(u), A @ u, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(data.combine(y), A.T @ y, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(data.moments(a, a)[0], A.T @ (a[:, None] * A), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(data.moments(np.full(50, 2.0), y)[0], 2 * A.T @ A, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(data.moments(a, y)[1], A.T @ y, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(data.row_norms2(), (A**2).sum(axis=1), rtol=1e-13)
        np.testing.assert_allclose(data.row_norms_inf(), np.abs(A).max(axis=1))
        np.testing.assert_array_equal(data.matrix(), A)
        z, g = data.residual_gradient(u, a)
        np.testing.assert_allclose(z, A @ u, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(g, A.T @ (a * (A @ u - y)), rtol=1e-12, atol=1e-13)
        sizes, columns = 1.0 + np.arange(data.width), np.r_[:3, 6 : data.width]
        changed = (divided(data, sizes, y), A / sizes), (data.leading(columns.size), A[:, columns])
        for rows, expected in changed:
            np.testing.assert_array_equal(rows.matrix(), expected)
            np.testing.assert_array_equal(rows.subset(y > 0.0).matrix(), expected[y > 0.0])


def test_csr_with_repeated_and_unsorted_indices():
    X = sparse.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    data = Data(X, [1.0])
    np.testing.assert_array_equal(data.moments(np.ones(1), np.ones(1))[0], np.outer([2, 0, 5], [2, 0, 5]))
    assert data.row_norms_inf() == [5.0]
    assert data.row_norms2() == [29.0]
    assert not X.has_canonical_format  # the caller's matrix is left as it was


class TestBadInput:
    def test_a_source_that_cannot_be_read_twice(self):
        once = iter([(np.ones((3, 2)), np.ones(3), None)])
        data = Data.from_chunks(lambda: once)
        with pytest.raises(ValueError, match=r"0 rows on a second reading and 3 on the first.*new iterator"):
            data.margins(np.ones(2))

    def test_a_source_that_shuffles(self):
        r = np.random.default_rng(0)
        data = Data.from_chunks(lambda: iter([(np.ones((3, 2)), r.normal(size=3), None)]))
        with pytest.raises(ValueError, match="other rows on a second reading"):
            data.margins(np.ones(2))

    @pytest.mark.parametrize(
        ("geometry", "u", "message"),
        [
            (Euclidean(1.0), [1.0], "u must have 2 coordinates, got shape \\(1,\\)"),
            (Euclidean(1.0), [1.0, np.nan], "finite, got nan at coordinate 1"),
            (Simplex(1.0), [1.5, -0.5], "at least 0 on the simplex, got -0.5 at coordinate 1"),
            (Simplex(1.0), [0.5, 0.6], "must sum to 1.0 on the simplex, got 1.1"),
            (Balanced(1.0), [0.5, -0.6], "at most the radius 1.0, got 1.1"),
        ],
    )
    def test_a_comparator_outside_its_set(self, geometry, u, message):
        with pytest.raises(ValueError, match=message):
            fixed(Data(np.ones((3, 2)), np.ones(3)), Square(2.0), geometry, u, 1.0)

    def test_numbers_out_of_domain(self):
        X = np.ones((2, 2))
        with pytest.raises(ValueError, match=r"weights must be at least 0, got -1.0 in row 1"):
            Data(X, [1.0, 1.0], [1.0, -1.0])
        with pytest.raises(ValueError, match="y must be finite, got inf in row 0"):
            Data(X, [np.inf, 1.0])
        with pytest.raises(ValueError, match="2 rows, got shape \\(3,\\)"):
            Data(X, np.ones(3))
        with pytest.raises(ValueError, match=r"kappa.*above 0, got 0.0"):
            best(Data(X, [1.0, 1.0]), Absolute(1.0), Euclidean(1.0), 0.0)
        with pytest.raises(ValueError, match=r"a must be finite and at least 0, got -2.0 in row 1"):
            best(Data(X, [1.0, 1.0]), Square(2.0), Euclidean(1.0), 1.0, a=[1.0, -2.0])


def inside(geometry, n, r):
    """A random point of the set."""
    if isinstance(geometry, Euclidean):
        return r.normal(size=n) * r.choice([0.1, 1.0, 5.0])
    q = r.dirichlet(np.full(n, r.choice([0.1, 1.0])))
    return (
        geometry.radius
        * q
        * (r.uniform(0, 1) * r.choice([-1.0, 1.0], size=n) if isinstance(geometry, Balanced) else 1.0)
    )


@settings(max_examples=many(15, 150), deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(many(CHOSEN, PAIRS)), st.sampled_from([0.05, 1.0, 30.0]),
    st.sampled_from([1, 5, 60]), st.sampled_from([0.5, 1e-2, 1e-6]),
)  # fmt: skip
def test_no_u_beats_the_objective_less_the_gap(seed, pair, kappa, passes, tol):
    rule, geometry = pair
    X, y, c, bias = problem(seed, rule, m=25, n=4)
    data, r = Data(X, y, c, bias), np.random.default_rng(seed)
    w1 = start_in(geometry, 5, seed) if seed % 2 else None
    found = best(data, rule, geometry, kappa, start=w1, tol=tol, max_passes=passes)
    if isinstance(geometry, Simplex):
        assert found.u.min() >= 0.0
        assert abs(found.u.sum() - geometry.radius) <= 1e-12
    if isinstance(geometry, Balanced):
        assert np.abs(found.u).sum() <= geometry.radius * (1 + 1e-15)
    scale = 1e-12 * (1.0 + abs(found.objective))
    again = fixed(data, rule, geometry, found.u, kappa, start=w1)
    assert again.objective == pytest.approx(found.objective, rel=1e-10, abs=1e-10)
    better = best(data, rule, geometry, kappa, start=w1, tol=1e-9, max_passes=3000)
    assert found.objective - found.gap <= better.objective + scale
    for _ in range(20):
        u = inside(geometry, 5, r)
        assert fixed(data, rule, geometry, u, kappa, start=w1).objective >= found.objective - found.gap - scale
        near = 0.9 * better.u + 0.1 * u
        assert fixed(data, rule, geometry, near, kappa, start=w1).objective >= found.objective - found.gap - scale


def test_the_gap_would_fail_were_the_dual_wrong():
    """At the optimum the dual has no room: leaving out its start or its quadratic term puts it on the wrong side."""
    rule, flat = Hinge(1.0), Euclidean(1.0)
    X, y, c, bias = problem(1, rule, m=25, n=4)
    w1 = start_in(flat, 5, 1)
    ascent = Ascent(Data(X, y, c, bias), rule, space(flat, 5, w1), c, 1.0)
    for _ in range(2000):
        ascent.run_passes()
    seen = ascent.evaluate()
    assert seen.lower <= seen.objective + 1e-12
    assert seen.gap <= 1e-9
    tilt, bend, rest = ascent.v @ w1, ascent.v @ ascent.v / 2, float(ascent.conjugates.sum())
    assert rest + tilt - bend == pytest.approx(seen.lower, rel=1e-12)
    assert bend > 1e-3
    assert abs(tilt) > 1e-3
    assert max(rest + tilt, rest + tilt - bend / 2, rest - tilt - bend, rest - bend) > seen.objective + 1e-3


def test_a_perfect_fit_ends():
    """The optimum is 0 and attained: a relative gap alone would never be met."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    for geometry in GEOMETRIES:
        w1 = space(geometry, 3).start
        for rule in (Square(2.0), Absolute(1.0), Hinge(0.0)):
            found = best(
                Data(X, X @ w1 if not isinstance(rule, Hinge) else np.ones(20)), rule, geometry, 1.0, max_passes=5000
            )
            assert found.gap <= 0.01 * abs(found.objective) + 1e-9


def test_a_cap_on_passes_is_kept_and_told():
    X, y, c, bias = problem(0, Hinge(1.0), m=200, n=5)
    data = Data(X, y, c, bias)
    found = best(data, Hinge(1.0), Euclidean(1.0), 1e-3, tol=1e-12, max_passes=20)
    assert data.passes <= 20
    assert "stopped at" in found.notes[0]
    assert found.gap > 0.0


def test_doubling_keeps_u_and_lies_nearest_to_the_start():
    for seed in range(20):
        r = np.random.default_rng(seed)
        u = inside(Balanced(2.0), 5, r)
        q = doubled(u, 2.0)
        np.testing.assert_allclose(2.0 * (q[0] - q[1]), u, atol=1e-14)
        assert q.min() >= 0.0
        assert q.sum() == pytest.approx(1.0, abs=1e-14)
        p = np.full((2, 5), 0.1)
        for _ in range(20):  # adding the same to both halves and taking it from others keeps u and the sum
            d = r.normal(size=5)
            d -= d.mean()
            other = q + 0.3 * d * q.min() / np.abs(d).max()
            assert relative_entropy(other.ravel(), p.ravel()) >= relative_entropy(q.ravel(), p.ravel()) - 1e-14
    edge = doubled(np.array([0.0, -2.0, 0.0]), 2.0)
    np.testing.assert_allclose(edge, [[0, 0, 0], [0, 1, 0]], atol=1e-12)


def test_kernels_start_is_the_doubled_start():
    geometry = Balanced(2.0)
    w1 = np.array([0.3, -0.9, 0.0])
    theta = geometry.dual(w1)
    p = np.exp(np.stack((theta, -theta)))
    np.testing.assert_allclose(doubled(w1, 2.0), p / p.sum(), rtol=1e-9)
    assert each_loss(Square(2.0), np.array([3.0]), np.array([1.0])) == [4.0]
