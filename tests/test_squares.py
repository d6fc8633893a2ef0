"""Least squares against numpy and scipy: random, rank-deficient and ill-conditioned rows, streams, weights, ridge."""

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, Ridge

from hindsight.batch import least_squares as squares
from hindsight.estimators.least_squares import LeastSquares
from hindsight.rows.data import Data

LONG = np.longdouble  # residuals of a w of size 1e9 are themselves lost to rounding in float64


def residual(X, y, w, b=0.0, c=None):
    r = X.astype(LONG) @ np.asarray(w, LONG) + LONG(b) - y
    return float(np.sqrt((r * r * (1 if c is None else c)).sum()))


def system(rng, m, n, condition=10.0, rank=None):
    """Rows with these singular values, the rest 0."""
    k = min(m, n) if rank is None else rank
    U, V = np.linalg.qr(rng.normal(size=(m, k)))[0], np.linalg.qr(rng.normal(size=(n, k)))[0]
    X = (U * np.geomspace(1.0, 1.0 / condition, k)) @ V.T * np.sqrt(m)
    return X, X @ rng.normal(size=n) + rng.normal(size=m) * 10.0 ** rng.uniform(-3, 0)


def factored(X, y, weight=None, intercept=False):
    factor = squares.Factor(X.shape[1], intercept)
    factor.add(X, y, weight)
    return factor


# --- against numpy and scipy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_random_systems(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 200)), int(rng.integers(1, 30))
    X, y = system(rng, m, n, 10.0 ** rng.uniform(0, 4))
    want = np.linalg.lstsq(X, y)[0]
    for model in (LeastSquares(fit_intercept=False).fit(X, y), LeastSquares(fit_intercept=False).partial_fit(X, y)):
        np.testing.assert_allclose(model.coef_, want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
        assert model.rank_ == np.linalg.matrix_rank(X)
        values = sl.svdvals(X)
        assert model.condition_ == pytest.approx(values[0] / values[-1], rel=1e-6)
        assert residual(X, y, model.coef_) <= residual(X, y, want) * (1 + 1e-10) + 1e-13 * np.linalg.norm(y)
        assert np.sqrt(model.loss_) == pytest.approx(residual(X, y, want), rel=1e-8, abs=1e-12 * np.linalg.norm(y))
    X = X + 5.0 * rng.normal(size=n)
    theirs = LinearRegression().fit(X, y)
    for model in (LeastSquares().fit(X, y), LeastSquares().partial_fit(X, y)):
        np.testing.assert_allclose(model.predict(X), theirs.predict(X), rtol=1e-8, atol=1e-8 * np.abs(y).max())
        np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-7, atol=1e-8 * np.abs(theirs.coef_).max())


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_condition_1e12_is_within_1e_8_of_the_best(seed, intercept):
    rng = np.random.default_rng(seed)
    m = 300 if seed else 9000  # which are three blocks
    X, y = system(rng, m, 12, 1e12)
    Z = np.hstack([np.ones((m, 1)), X]) if intercept else X
    peers = [np.linalg.lstsq(Z, y, rcond=0)[0]]
    peers += [sl.lstsq(Z, y, cond=0, lapack_driver=driver)[0] for driver in ("gelsd", "gelsy")]
    best = min(residual(Z, y, w) for w in peers)
    for model in (
        LeastSquares(fit_intercept=intercept).fit(X, y),
        LeastSquares(fit_intercept=intercept).partial_fit(X[:7], y[:7]).partial_fit(X[7:], y[7:]),
    ):
        assert model.method_ == "qr"
        assert model.rank_ == 12
        assert residual(X, y, model.coef_, model.intercept_) <= best * (1 + 1e-8)
        if not intercept:
            assert model.condition_ == pytest.approx(1e12, rel=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_rank_deficient_rows_give_the_shortest_solution(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(5, 60)), int(rng.integers(4, 30))
    rank = int(rng.integers(1, min(m, n)))
    X, y = system(rng, m, n, 1e3, rank)
    want = np.linalg.lstsq(X, y)[0]
    model = LeastSquares(fit_intercept=False).fit(X, y)
    assert model.rank_ == rank == np.linalg.matrix_rank(X)
    assert model.condition_ == pytest.approx(1e3 if rank > 1 else 1.0, rel=1e-6)
    np.testing.assert_allclose(model.coef_, want, rtol=1e-8, atol=1e-9 * np.abs(want).max())
    Z = np.hstack([X, X[:, :1], np.zeros((m, 1)), np.full((m, 1), 1e6)])
    model = LeastSquares().fit(Z, y)
    centred = Z[:, :-2] - Z[:, :-2].mean(axis=0)
    theirs = np.linalg.pinv(centred, rcond=1e-12) @ (y - y.mean())  # by default it counts rounding of 2e-15 as rank
    np.testing.assert_allclose(model.coef_[:-2], theirs, rtol=1e-7, atol=1e-9 * np.abs(theirs).max())
    assert abs(model.coef_[-2:]).max() <= 1e-12  # a column of zeros, and one that the intercept has already


def test_columns_of_other_lengths_have_full_rank():
    """Units of 1e-12 and 1e12 in one table: numpy would call that rank 1."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    want, scale = np.linalg.lstsq(X, y)[0], np.array([1e-12, 1.0, 1e12])
    model = LeastSquares(fit_intercept=False).fit(X * scale, y)
    assert model.rank_ == 3
    np.testing.assert_allclose(model.coef_ * scale, want, rtol=1e-10)
    assert LeastSquares(fit_intercept=False, rcond=1e-6).fit(X * scale, y).rank_ == 1


def test_large_means_leave_the_digits_to_the_intercept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 4)), rng.normal(size=400)
    shift = np.array([1e7, -1e5, 0.0, 3e6])
    Z = X + shift
    X = Z - shift  # as rounded
    want = LinearRegression().fit(X, y)
    best = residual(X, y, want.coef_, want.intercept_)
    for model in (LeastSquares().fit(Z, y), LeastSquares().partial_fit(Z, y)):
        assert model.method_ == "qr"
        np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-7)
        assert residual(Z, y, model.coef_, model.intercept_) <= best * (1 + 1e-8)


def test_the_gram_matrix_is_used_only_where_it_is_sound():
    rng = np.random.default_rng(0)
    for condition, method in ((1.0, "cholesky"), (1e3, "cholesky"), (1e6, "qr"), (1e12, "qr")):
        X, y = system(rng, 500, 10, condition)
        model = LeastSquares(fit_intercept=False).fit(X, y)
        assert model.method_ == method
        best = residual(X, y, sl.lstsq(X, y, cond=0)[0])
        assert residual(X, y, model.coef_) <= best * (1 + 1e-10)
        if method == "qr":
            assert squares.normal_equations(Data(X, y)) is None
    y = X @ np.ones(10)  # consistent: nothing is left to the residual
    for condition in (1.0, 1e3):
        X = system(rng, 500, 10, condition)[0]
        model = LeastSquares().fit(X, X @ np.ones(10))
        assert np.sqrt(model.loss_) <= 1e-13 * np.linalg.norm(X)
        np.testing.assert_allclose(model.coef_, 1.0, rtol=1e-10)


# --- weights and the penalty ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("condition", [10.0, 1e7])
def test_weights_are_repetitions(condition, intercept):
    rng = np.random.default_rng(1)
    X, y = system(rng, 80, 5, condition)
    c = rng.integers(0, 4, 80).astype(float)
    for rows in (X, sp.csr_matrix(X)):
        model = LeastSquares(fit_intercept=intercept).fit(rows, y, c)
        often = LeastSquares(fit_intercept=intercept).fit(
            np.repeat(X, c.astype(int), axis=0), np.repeat(y, c.astype(int))
        )
        np.testing.assert_allclose(model.coef_, often.coef_, rtol=1e-9 * condition, atol=1e-12 * condition)
        assert model.loss_ == pytest.approx(often.loss_, rel=1e-9)
        assert model.loss_ == pytest.approx(residual(X, y, model.coef_, model.intercept_, c) ** 2, rel=1e-8)
        without = LeastSquares(fit_intercept=intercept).fit(X[c > 0], y[c > 0], c[c > 0])
        np.testing.assert_allclose(model.coef_, without.coef_, rtol=1e-9 * condition, atol=1e-12 * condition)


@pytest.mark.parametrize("l2", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(80, 5), (10, 30)])
def test_ridge(shape, l2):
    rng = np.random.default_rng(2)
    X, y = system(rng, *shape, 1e4)
    c = rng.choice([0.5, 1.0, 2.0], shape[0])
    X = X + 2.0
    theirs = Ridge(l2, solver="svd").fit(X, y, c)
    model = LeastSquares(l2).fit(X, y, c)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-7, atol=1e-9 * np.abs(theirs.coef_).max())
    assert model.intercept_ == pytest.approx(theirs.intercept_, rel=1e-7)
    values = sl.svdvals(np.sqrt(c)[:, None] * (X - np.average(X, axis=0, weights=c)))
    least = values[-1] if shape[0] > shape[1] else 0.0
    assert model.condition_ == pytest.approx(np.sqrt((values[0] ** 2 + l2) / (least**2 + l2)), rel=1e-6)
    plain = LeastSquares().fit(X, y, c).set_params(l2=l2)  # the rows are known: another penalty needs no other fit
    np.testing.assert_allclose(plain.coef_, theirs.coef_, rtol=1e-7, atol=1e-9 * np.abs(theirs.coef_).max())


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
def test_chunks_give_the_bits_of_the_whole(intercept):
    rng = np.random.default_rng(3)
    X, y = system(rng, 10_000, 6, 1e5)
    c = rng.choice([0.0, 1.0, 2.0], 10_000)
    whole = LeastSquares(fit_intercept=intercept).partial_fit(X, y, c)
    for sizes in ([1000], [1, 4095, 4097], [9999]):
        parts, a, turn = [], 0, 0
        while a < 10_000:
            b = min(10_000, a + sizes[turn % len(sizes)])
            while not c[a:b].any():  # a chunk without any weight is an error
                b += 1
            parts.append((X[a:b], y[a:b], c[a:b]))
            a, turn = b, turn + 1
        model = LeastSquares(fit_intercept=intercept)
        for part in parts:
            model.partial_fit(*part)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        assert (model.intercept_, model.loss_) == (whole.intercept_, whole.loss_)
        read = LeastSquares(fit_intercept=intercept).fit(lambda parts=parts: iter(parts))
        np.testing.assert_array_equal(read.coef_, whole.coef_)
    fitted = LeastSquares(fit_intercept=intercept).fit(X, y, c)
    assert fitted.loss_ == pytest.approx(whole.loss_, rel=1e-10)
    np.testing.assert_allclose(fitted.coef_, whole.coef_, rtol=1e-8)


def test_rows_go_on_after_a_fit_of_either_kind():
    rng = np.random.default_rng(4)
    for condition in (10.0, 1e8):
        X, y = system(rng, 300, 5, condition)
        want = LeastSquares().fit(X, y)
        model = LeastSquares().fit(X[:200], y[:200])
        assert model.method_ == ("cholesky" if condition == 10.0 else "qr")
        model.partial_fit(X[200:], y[200:])
        assert model.loss_ == pytest.approx(want.loss_, rel=1e-9)
        np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-9 * condition)


def test_a_stream_of_fewer_rows_than_columns_keeps_only_its_rows():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(20, 3000)), rng.normal(size=20)
    model = LeastSquares(fit_intercept=False).partial_fit(X[:12], y[:12]).partial_fit(X[12:], y[12:])
    assert model._factor.triangle().shape == (20, 3001)
    np.testing.assert_allclose(model.coef_, np.linalg.lstsq(X, y)[0], rtol=1e-8, atol=1e-12)
    assert model.rank_ == 20
    big = squares.Factor(40_000, False)
    big.rows = 20_000
    with pytest.raises(ValueError, match=r"need a triangle of \d+ GB"):
        big.add(sp.csr_matrix((1, 40_000)), np.zeros(1))


# --- sparse rows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(1500, 600), (400, 600)])
def test_wide_sparse_rows_are_solved_by_iteration(shape, intercept):
    rng = np.random.default_rng(6)
    X = sp.random(*shape, density=0.02, format="csr", random_state=0)
    y, c = rng.normal(size=shape[0]), rng.choice([0.0, 1.0, 3.0], shape[0])
    dense = X.toarray()
    for l2 in (0.0, 0.5):
        model = LeastSquares(l2, fit_intercept=intercept).fit(X, y, c)
        assert model.method_ == "lsmr"
        assert model.rank_ is None
        want = LeastSquares(l2, fit_intercept=intercept).fit(dense, y, c)
        np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-6, atol=1e-7 * np.abs(want.coef_).max())
        objective = [m.loss_ + l2 * m.coef_ @ m.coef_ for m in (model, want)]
        assert objective[0] <= objective[1] * (1 + 1e-8) + 1e-12
        assert model.loss_ == pytest.approx(residual(dense, y, model.coef_, model.intercept_, c) ** 2, rel=1e-8)
    with pytest.raises(ValueError, match="keeps no factor of its rows"):
        model.partial_fit(X, y)


def test_narrow_sparse_rows_are_those_of_the_dense():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 12)) * (rng.random((200, 12)) < 0.3)
    y = rng.normal(size=200)
    for rows in (sp.csr_matrix(X), sp.csc_matrix(X), X.astype(np.float32), np.asfortranarray(X)):
        model = LeastSquares().fit(rows, y)
        np.testing.assert_allclose(
            model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-5 if rows.dtype == "f4" else 1e-9
        )
        assert model.rank_ == 12


# --- bad input --------------------------------------------------------------------------------------------------------


def test_odd_shapes_have_an_answer_without_a_nan():
    one = LeastSquares().fit([[1.0, 2.0]], [3.0])
    assert (one.rank_, one.condition_, one.intercept_, one.loss_) == (0, 1.0, 3.0, 0.0)
    np.testing.assert_array_equal(one.coef_, 0.0)
    zero = LeastSquares().fit(np.zeros((4, 2)), np.arange(4.0))
    assert (zero.rank_, zero.intercept_) == (0, pytest.approx(1.5))
    np.testing.assert_array_equal(zero.coef_, 0.0)
    rng = np.random.default_rng(0)
    flat = LeastSquares().fit(rng.normal(size=(30, 3)), np.full(30, 7.0))
    assert abs(flat.coef_).max() <= 1e-14
    assert flat.intercept_ == pytest.approx(7.0, rel=1e-14)
    more = LeastSquares(fit_intercept=False).fit(X := rng.normal(size=(3, 8)), y := rng.normal(size=3))
    np.testing.assert_allclose(more.coef_, np.linalg.pinv(X) @ y, rtol=1e-10)
    huge = LeastSquares(fit_intercept=False).fit(1e160 * np.eye(3), 1e160 * np.ones(3))  # whose squares overflow
    np.testing.assert_allclose(huge.coef_, 1.0)


@pytest.mark.parametrize("columns", [3, 600])
def test_bad_rows_are_named_and_leave_the_model_as_it_was(columns):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, columns)), rng.normal(size=9)
    sparse = columns > 500
    model = LeastSquares().fit(sp.csr_matrix(X) if sparse else X, y)
    before = model.coef_
    for value, text in ((np.nan, "NaN"), (-np.inf, "-inf")):
        bad = X.copy()
        bad[5, 1] = value
        rows = sp.csr_matrix(bad) if sparse else bad
        for call in (model.fit, LeastSquares().fit, LeastSquares().partial_fit):
            with pytest.raises(ValueError, match=f"row 5, column 1: value {text} is not finite"):
                call(rows, y)
    with pytest.raises(ValueError, match="row 2: target inf must be finite"):
        model.fit(X, np.where(np.arange(9) == 2, np.inf, y))
    with pytest.raises(ValueError, match=r"row 1: weight nan"):
        model.fit(X, y, np.where(np.arange(9) == 1, np.nan, 1.0))
    with pytest.raises(ValueError, match="all weights are zero"):
        model.fit(X, y, np.zeros(9))
    with pytest.raises(ValueError, match="the source gave no chunk"):
        model.fit(lambda: iter([]))
    wild = sp.csr_matrix(X)
    wild.indices[4] = columns
    with pytest.raises(ValueError, match=f"row {4 // columns}: column index {columns} lies outside 0..{columns - 1}"):
        model.fit(wild, y)
    np.testing.assert_array_equal(model.coef_, before)
    for settings, message in (
        ({"l2": -1.0}, "l2 must be at least 0, got -1.0"),
        ({"l2": np.nan}, "l2 must be a number"),
        ({"rcond": -1.0}, "rcond must be at least 0"),
        ({"tol": 0.0}, "tol must be a number above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            LeastSquares(**settings).fit(X, y)


def test_a_failed_chunk_leaves_the_stream_as_it_was():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 3)), rng.normal(size=5000)
    model = LeastSquares().partial_fit(X[:10], y[:10])
    before = model.coef_
    bad = X.copy()
    bad[4990, 2] = np.nan  # after a whole block was factored
    with pytest.raises(ValueError, match="row 4990, column 2: value NaN"):
        model.partial_fit(bad, y)
    np.testing.assert_array_equal(model.coef_, before)
    want = LeastSquares().partial_fit(X[:10], y[:10]).partial_fit(X, y)
    np.testing.assert_array_equal(model.partial_fit(X, y).coef_, want.coef_)
    with pytest.raises(ValueError, match="taken in with fit_intercept=True"):
        model.set_params(fit_intercept=False).partial_fit(X, y)


def test_a_bar_only_when_asked(capsys):
    def chunks():
        return iter([(np.eye(3), np.ones(3), None)])

    LeastSquares().fit(chunks)
    assert capsys.readouterr() == ("", "")
    LeastSquares(verbose=True).fit(chunks)
    out, err = capsys.readouterr()
    assert out == ""
    assert "rows" in err
