"""Isotonic regression: against its definition, scipy, quadratic programming, exact arithmetic and its own laws."""

import pickle
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression, lsq_linear
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.estimator_checks import check_estimator

from commands import python
from conftest import many, nightly
from hindsight.batch.isotonic import argsort, isotonic
from hindsight.estimators.isotonic import IsotonicRegressor

module = sys.modules["hindsight.batch.isotonic"]

# ---------------------------------------------------------------- slow versions, straight from the definitions


def pooled(z, y, w):
    """The points of different z, with their means and weights."""
    at = sorted(set(z))
    mass = [sum(c for a, c in zip(z, w, strict=True) if a == b) for b in at]
    mean = [sum(c * v for a, v, c in zip(z, y, w, strict=True) if a == b) / m for b, m in zip(at, mass, strict=True)]
    return at, mean, mass


def naive_isotonic(z, y, w):
    """f_i = max over a <= i of min over b >= i of the mean of a..b, in exact arithmetic; in the order given."""
    z, y, w = ([Fraction(float(v)) for v in a] for a in (z, y, w))
    at, mean, mass = pooled(z, y, w)
    m = len(at)

    def level(a, b):
        return sum(c * v for c, v in zip(mass[a:b], mean[a:b], strict=True)) / sum(mass[a:b])

    fit = {at[i]: max(min(level(a, b) for b in range(i + 1, m + 1)) for a in range(i + 1)) for i in range(m)}
    return np.array([float(fit[a]) for a in z])


def naive_lipschitz(z, y, w, constant):
    """The dynamic programme on the corners of the derivative, in exact arithmetic; z ascends and differs."""
    z, y, w = ([Fraction(float(v)) for v in a] for a in (z, y, w))
    corners, total, zeros, gaps = [], w[0], [y[0]], []  # corners: (place, derivative)
    for i in range(1, len(z)):
        g, d = zeros[-1], Fraction(float(constant)) * (z[i] - z[i - 1])
        left, right = [c for c in corners if c[1] < 0], [c for c in corners if c[1] >= 0]
        corners = [*left, (g, Fraction(0)), *((p + d, D) for p, D in [(g, Fraction(0)), *right])]
        corners = [(p, D + w[i] * (p - y[i])) for p, D in corners]
        total += w[i]
        below, above = [c for c in corners if c[1] < 0], [c for c in corners if c[1] >= 0]
        if not above:
            p, D = below[-1]
            zeros.append(p - D / total)
        elif not below:
            p, D = above[0]
            zeros.append(p - D / total)
        else:
            (p, D), (q, E) = below[-1], above[0]
            zeros.append(p - D * (q - p) / (E - D))
        gaps.append(d)
    fit = [zeros[-1]]
    for g, d in zip(reversed(zeros[:-1]), reversed(gaps), strict=True):
        fit.append(min(fit[-1], max(g, fit[-1] - d)))
    return np.array([float(f) for f in reversed(fit)])


def programme(z, y, w, constant):
    """The same by a solver of bounded least squares in the increments."""
    m, root = len(z), np.sqrt(w)
    A = np.tril(np.ones((m, m)))
    low, high = np.r_[-np.inf, np.zeros(m - 1)], np.r_[np.inf, constant * np.diff(z)]
    return A @ lsq_linear(A * root[:, None], y * root, (low, high), "bvls", tol=1e-15, max_iter=1000).x


def slackness(z, y, w, f, constant):
    """By how much a fit at ascending, different z breaks the conditions that only the least cost fulfils."""
    push = np.cumsum((w * (f - y))[::-1])[::-1]  # the derivative of half the cost by each increment
    rise, top = np.diff(f), constant * np.diff(z)
    room = 1e-12 * (1.0 + np.abs(f).max())
    slack = np.where(rise <= room, np.minimum(push[1:], 0.0), 0.0)
    slack = np.where((rise > room) & (rise >= top - room), np.maximum(push[1:], 0.0), slack)
    slack = np.where((rise > room) & (rise < top - room), push[1:], slack)
    slack = np.where((rise <= room) & (rise >= top - room), 0.0, slack)  # a gap too small to tell
    return max(abs(push[0]), np.abs(slack).max(initial=0.0)) / np.sum(w * (np.abs(y) + np.abs(f)))


def case(rng, m, ties=True, signs=True):
    """Points with ties, weights and repeated values."""
    z = rng.integers(0, m + 1, m) * 0.5 if ties else np.cumsum(rng.random(m) + 0.01)
    y = rng.standard_normal(m) if rng.random() < 0.5 else rng.integers(0, 3, m) * 1.0
    w = rng.choice([0.25, 1.0, 2.0, 3.7], m) if rng.random() < 0.7 else np.ones(m)
    return z - m / 4 * signs, y, w


# ---------------------------------------------------------------- the fit


def test_the_fit_is_the_one_of_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(200):
        z, y, w = case(rng, rng.integers(1, 11))
        np.testing.assert_allclose(isotonic(z, y, w).fit, naive_isotonic(z, y, w), rtol=0, atol=1e-14)
        down = isotonic(z, y, w, increasing=False)
        np.testing.assert_allclose(down.fit, -naive_isotonic(z, -y, w), rtol=0, atol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["random", "nearly monotone", "decreasing", "few values", "large"])
def test_a_million_points_as_scipy_fits_them(kind, weighted):
    m = many(50_000, 500_000)
    rng = np.random.default_rng(1)
    z = np.round(rng.standard_normal(m), 5)  # about three points a z
    y = {
        "random": rng.standard_normal(m),
        "nearly monotone": z + 0.1 * rng.standard_normal(m),
        "decreasing": -z,
        "few values": rng.integers(0, 2, m) * 1.0,
        "large": 1e6 + rng.standard_normal(m),
    }[kind]
    w = rng.random(m) + 0.1 if weighted else None
    mass = np.ones(m) if w is None else w
    _, group = np.unique(z, return_inverse=True)
    total = np.bincount(group, mass)
    want = isotonic_regression(np.bincount(group, mass * y) / total, weights=total).x[group]
    got = isotonic(z, y, w)
    assert np.abs(got.fit - want).max() <= 1e-12 * np.abs(y).max()
    # Calibration: over every pool the weighted residuals cancel.
    level = np.searchsorted(got.pools.left, z, side="right") - 1
    off = np.bincount(level, mass * (y - got.fit))
    assert np.abs(off).max() <= 1e-12 * np.sum(mass * np.abs(y))
    np.testing.assert_array_equal(np.bincount(level), got.pools.count)
    np.testing.assert_allclose(np.bincount(level, mass), got.pools.weight, rtol=1e-12)
    np.testing.assert_array_equal(got.pools.value[level], got.fit)
    assert np.all(np.diff(got.pools.value) > 0) and np.all(got.pools.right[:-1] < got.pools.left[1:])


def test_sorted_points_in_float32_or_lists_give_the_same():
    z, y = [0, 1, 2, 3], np.array([3.0, 1.0, 2.0, 9.0], np.float32)
    np.testing.assert_array_equal(isotonic(z, y).fit, [2.0, 2.0, 2.0, 9.0])
    np.testing.assert_array_equal(isotonic(np.array(z, np.int8)[::-1], y[::-1]).fit, [9.0, 2.0, 2.0, 2.0])


# ---------------------------------------------------------------- laws


@given(st.integers(0, 10_000))
def test_a_fit_is_its_own_fit(seed):
    rng = np.random.default_rng(seed)
    z, y, w = case(rng, rng.integers(1, 60))
    y = y * 10.0 ** rng.integers(-3, 4)
    once = isotonic(z, y, w)
    np.testing.assert_array_equal(isotonic(z, once.fit, w).fit, once.fit)
    again = isotonic(z, isotonic(z, y, w, lipschitz=0.5).fit, w, lipschitz=0.5).fit
    np.testing.assert_allclose(again, isotonic(z, y, w, lipschitz=0.5).fit, atol=1e-14 * np.abs(y).max())


@given(st.integers(0, 10_000), st.sampled_from([None, 0.3]))
def test_the_order_of_the_points_changes_no_bit(seed, constant):
    rng = np.random.default_rng(seed)
    m = rng.integers(3, 80)
    z, y, w = case(rng, m)
    z = np.round(z / 3)  # many ties of many points
    y, w = y * 10.0 ** rng.integers(-9, 9, m), w * 10.0 ** rng.integers(-6, 6, m)
    want = isotonic(z, y, w, lipschitz=constant)
    for _ in range(3):
        p = rng.permutation(m)
        got = isotonic(z[p], y[p], w[p], lipschitz=constant)
        np.testing.assert_array_equal(got.fit, want.fit[p])
        for name in ("left", "right", "value", "weight", "count"):
            np.testing.assert_array_equal(getattr(got.pools, name), getattr(want.pools, name))


@given(st.integers(0, 10_000), st.sampled_from([None, 0.3]))
def test_weight_two_is_the_point_twice_and_weight_zero_none(seed, constant):
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 40)
    z, y, _ = case(rng, m)
    times = rng.integers(0, 4, m)
    times[0] = 2
    got = isotonic(z, y, times * 1.0, lipschitz=constant)
    many = isotonic(np.repeat(z, times), np.repeat(y, times), lipschitz=constant)
    keep = times > 0
    first = np.cumsum(times) - times
    np.testing.assert_allclose(got.fit[keep], many.fit[first[keep]], rtol=0, atol=1e-14)
    np.testing.assert_allclose(got.pools.weight, many.pools.count, rtol=1e-14)
    assert got.pools.count.sum() == keep.sum()
    at, value = got.pools.knots()  # a point of weight 0 is read off the others' fit
    np.testing.assert_allclose(got.fit[~keep], np.interp(z[~keep], at, value), atol=1e-14)


def test_scaling_by_powers_of_two_and_turning_the_axes():
    rng = np.random.default_rng(3)
    z, y, w = case(rng, 200)
    want = isotonic(z, y, w).fit
    np.testing.assert_array_equal(isotonic(4 * z, 8 * y, 2 * w).fit, 8 * want)
    np.testing.assert_array_equal(isotonic(z, -y, w, increasing=False).fit, -want)
    np.testing.assert_allclose(isotonic(-z, -y, w).fit, -want, rtol=1e-14)  # pools grow from the other end


def test_zeros_of_both_signs_tie():
    np.testing.assert_array_equal(isotonic([0.0, -0.0, 1.0], [5.0, 1.0, 9.0]).fit, [3.0, 3.0, 9.0])
    np.testing.assert_array_equal(isotonic([1.0, 0.0, -0.0, -1.0], [9.0, 1.0, 5.0, 0.0]).fit, [9.0, 3.0, 3.0, 0.0])


# ---------------------------------------------------------------- the order


def spreads(m, rng):
    tiny = 1.0 + np.arange(m) * np.spacing(1.0)
    yield "uniform", rng.random(m)
    yield "both signs", rng.standard_normal(m)
    yield "all sizes", rng.standard_normal(m) * 10.0 ** rng.uniform(-300, 300, m)
    yield "ties", rng.integers(0, 5, m) * 1.0
    yield "equal", np.full(m, 7.0)
    yield "subnormal", rng.integers(-3, 4, m) * 5e-324
    for size in sorted(
        {min(7, m), min(20, m), m - 2}
    ):  # the same leading bits, put in order by z itself, one by one or by another sort
        z = rng.permutation(tiny)
        z[size:] = rng.standard_normal(m - size) * 1e300
        yield f"{size} within rounding", rng.permutation(z)


@pytest.mark.parametrize("m", [2, 3, 33, 1000])
def test_the_order_is_the_stable_one(m):
    rng = np.random.default_rng(m)
    for name, z in spreads(m, rng):
        np.testing.assert_array_equal(argsort(z), np.argsort(z, kind="stable"), err_msg=name)


@pytest.mark.parametrize("m", [100, 1001])
def test_two_threads_give_the_same_bits_as_one(m, monkeypatch):
    rng = np.random.default_rng(m)
    monkeypatch.setattr(module, "LARGE", 10)
    for name, z in spreads(m, rng):
        y, w = rng.standard_normal(m), rng.random(m)
        fits = []
        for threads in (1, 2):
            monkeypatch.setattr(module, "_threads", lambda threads=threads: threads)
            np.testing.assert_array_equal(argsort(z), np.argsort(z, kind="stable"), err_msg=name)
            fits.append(isotonic(z, y, w).fit)
        np.testing.assert_array_equal(*fits, err_msg=name)


# ---------------------------------------------------------------- Lipschitz


def as_the_solver(cases, seed):
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        m = rng.integers(2, 40)
        z, y, w = case(rng, m, ties=False)
        constant = rng.choice([0.05, 1.0, 20.0])
        got, want = isotonic(z, y, w, lipschitz=constant).fit, programme(z, y, w, constant)
        if np.isnan(want).any():  # the solver gave up
            want = naive_lipschitz(z, y, w, constant)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
        down = isotonic(z, y, w, increasing=False, lipschitz=constant).fit
        np.testing.assert_array_equal(down, -isotonic(z, -y, w, lipschitz=constant).fit)


def as_exact_arithmetic(cases, seed):
    rng = np.random.default_rng(seed)
    for k in range(cases):
        m = rng.integers(2, 14)
        z = np.cumsum(10.0 ** rng.uniform(-18, 2, m)) if k % 2 else np.cumsum(rng.random(m) + 1e-3)
        z = np.unique(z)
        y, w = rng.standard_normal(z.size), 10.0 ** rng.uniform(-12, 12, z.size)
        constant = 10.0 ** rng.uniform(-3, 3)
        got = isotonic(z, y, w, lipschitz=constant).fit
        np.testing.assert_allclose(got, naive_lipschitz(z, y, w, constant), rtol=0, atol=1e-12)
        assert np.diff(got).min(initial=0.0) >= 0.0
        assert (np.diff(got) - constant * np.diff(z)).max(initial=0.0) <= 4e-15 * np.abs(y).max()


def test_the_lipschitz_fit_is_the_solvers():
    as_the_solver(300, seed=0)


def test_the_lipschitz_fit_in_exact_arithmetic_at_extreme_weights_and_gaps():
    as_exact_arithmetic(300, seed=0)


@pytest.mark.parametrize("kind", ["bernoulli", "normal", "decreasing", "alternating", "growing weights"])
def test_a_large_lipschitz_fit_fulfils_the_conditions_of_the_least_cost(kind):
    m = 60_000
    rng = np.random.default_rng(2)
    z = np.unique(rng.random(m))
    m, w = z.size, np.ones(z.size)
    y = (rng.random(m) < z) * 1.0
    if kind == "normal":
        y, w = z + rng.standard_normal(m), rng.random(m) + 0.1
    elif kind == "decreasing":
        y = -z
    elif kind == "alternating":
        y = np.arange(m) % 2 * 1.0
    elif kind == "growing weights":
        y, w = np.arange(m) % 2 * 1.0, 1.001 ** (np.arange(m) % 30_000)
    for constant in (0.1, 1.0, 50.0):
        f = isotonic(z, y, w, lipschitz=constant).fit
        assert np.diff(f).min() >= 0.0
        assert (np.diff(f) - constant * np.diff(z)).max() <= 1e-15
        assert slackness(z, y, w, f, constant) <= 1e-11


def test_growing_weights_on_alternating_values_cost_no_more_than_others():
    m = 50_000
    z = np.arange(m) / m
    alternating, random = np.arange(m) % 2 * 1.0, np.random.default_rng(0).random(m)

    def seconds(y, w):
        best = np.inf
        for _ in range(3):
            began = time.process_time()
            isotonic(z, y, w, lipschitz=1.0)
            best = min(best, time.process_time() - began)
        return best

    usual = seconds(random, None)
    for ratio in (1.0001, 1.01, 1.3):
        growth = ratio ** (np.arange(m) % int(600 / np.log(ratio)))
        assert seconds(alternating, growth) < 20 * usual  # two stacks take thousands of times as long


def test_the_constant_goes_from_the_mean_to_plain_isotonic_regression():
    rng = np.random.default_rng(5)
    z, y, w = case(rng, 300)
    plain = isotonic(z, y, w)
    np.testing.assert_allclose(isotonic(z, y, w, lipschitz=1e9).fit, plain.fit, atol=1e-12)
    np.testing.assert_array_equal(isotonic(z, y, w, lipschitz=np.inf).fit, plain.fit)
    np.testing.assert_allclose(isotonic(z, y, w, lipschitz=1e-12).fit, np.average(y, weights=w), atol=1e-9)


# ---------------------------------------------------------------- the estimator


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract():
    check_estimator(IsotonicRegressor())  # it runs few checks on what takes one column, as for its own
    model = clone(IsotonicRegressor(lipschitz=1.0, increasing="auto"))
    with pytest.raises(NotFittedError):
        model.predict([1.0])
    assert model.fit([[0.0], [1.0]], [1.0, 0.0]) is model and not model.increasing_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict([0.5]), [0.5])
    with pytest.raises(ValueError, match="one column; got shape"):
        model.fit(np.ones((3, 2)), [1.0, 2.0, 3.0])


def test_predictions_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for k in range(100):
        z, y, w = case(rng, rng.integers(1, 30))
        w = np.where(rng.random(w.size) < 0.2, 0.0, w)
        w[0] = 1.0
        theirs = IsotonicRegression(increasing=bool(k % 2), out_of_bounds="clip").fit(z, y, w)
        ours = IsotonicRegressor(increasing=bool(k % 2)).fit(z, y, w)
        x = rng.uniform(z.min() - 1, z.max() + 1, 50)
        np.testing.assert_allclose(ours.predict(x), theirs.predict(x), atol=1e-12)
        np.testing.assert_array_equal(ours.predict(z[:, None]), ours.transform(z))


def test_steps_and_what_lies_outside():
    z, y = [1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 1.0, 5.0]
    step = IsotonicRegressor(interpolation="step").fit(z, y)
    np.testing.assert_array_equal(
        step.predict([0.0, 1.0, 1.9, 2.0, 2.5, 3.9, 4.0, 9.0]), [0, 0, 0, 1.5, 1.5, 1.5, 5, 5]
    )
    np.testing.assert_array_equal(
        IsotonicRegressor(outside="nan").fit(z, y).predict([0.5, 1.5, 4.5]), [np.nan, 0.75, np.nan]
    )
    with pytest.raises(ValueError, match=r"z\[1\] = 4.5 lies outside 1.0..4.0"):
        IsotonicRegressor(outside="error").fit(z, y).predict([4.0, 4.5])
    at, value = step.knots_
    np.testing.assert_array_equal(at, [1, 2, 3, 4])
    np.testing.assert_array_equal(value, [0, 1.5, 1.5, 5])


def test_a_lipschitz_fit_stays_lipschitz_between_its_knots():
    rng = np.random.default_rng(0)
    z, y, w = case(rng, 100, ties=False)
    x = np.sort(rng.uniform(z.min() - 1, z.max() + 1, 5000))
    f = IsotonicRegressor(lipschitz=0.2).fit(z, y, w).predict(x)
    assert np.diff(f).min() >= -1e-15 and (np.diff(f) - 0.2 * np.diff(x)).max() <= 1e-15


def test_the_direction_goes_by_the_rank_correlation():
    rng = np.random.default_rng(0)
    for _ in range(50):
        z, y, _ = case(rng, 20)
        rank = np.corrcoef(*([np.mean([(b < a) + 0.5 * (b == a) for b in v]) for a in v] for v in (z, y)))[0, 1]
        assert isotonic(z, y, increasing="auto").increasing == (rank >= 0)


def test_gaps_at_the_ends_of_the_number_line():
    model = IsotonicRegressor().fit([-1.7e308, 1.7e308, 0.0, 5e-324], [0.0, 1.0, 0.25, 0.5])
    got = model.predict([-0.85e308, 0.85e308, 0.0, 5e-324])
    np.testing.assert_allclose(got, [0.125, 0.75, 0.25, 0.5], rtol=1e-12)


# ---------------------------------------------------------------- bad and small input

BAD = {
    r"z\[1\] = nan is not finite": {"z": [0.0, np.nan, 1.0]},
    r"z\[2\] = inf": {"z": [0.0, 1.0, np.inf]},
    r"y\[0\] = -inf": {"y": [-np.inf, 1.0, 1.0]},
    r"weight\[1\] = -0.5 must be at least 0": {"weight": [1.0, -0.5, 1.0]},
    r"weight\[2\] = nan": {"weight": [1.0, 1.0, np.nan]},
    "all weights are zero": {"weight": [0.0, 0.0, 0.0]},
    "the same length, got 3 and 2": {"y": [1.0, 2.0]},
    "one number per point: 3 points, got 1": {"weight": [1.0]},
    "lipschitz must be a number above 0, or None; got 0": {"lipschitz": 0},
    "lipschitz must be a number above 0, or None; got -1": {"lipschitz": -1.0},
    "lipschitz must be a number above 0, or None; got nan": {"lipschitz": np.nan},
    "lipschitz must be a number above 0, or None; got True": {"lipschitz": True},
    "increasing must be True, False or 'auto'; got 'up'": {"increasing": "up"},
    "one-dimensional, got 2": {"z": [[0.0, 1.0, 2.0]]},
    "is empty": {"z": [], "y": []},
    "total weight 3e-300 is too small": {"weight": [1e-300, 1e-300, 1e-300]},
    "overflows": {"y": [1e300, 1.0, 1.0], "weight": [1e10, 1.0, 1.0]},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_clear_error(message):
    options = {"z": [0.0, 1.0, 2.0], "y": [1.0, 0.0, 2.0], **BAD[message]}
    with pytest.raises(ValueError, match=message):
        isotonic(**options)


def test_a_failed_fit_leaves_the_earlier_one():
    model = IsotonicRegressor().fit([0.0, 1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"y\[1\] = nan"):
        model.fit([0.0, 5.0], [0.0, np.nan])
    np.testing.assert_array_equal(model.predict([0.5]), [0.5])


@pytest.mark.parametrize("constant", [None, 1.0])
def test_one_point_and_all_z_equal(constant):
    one = isotonic([3.0], [2.0], lipschitz=constant)
    np.testing.assert_array_equal(one.fit, [2.0])
    np.testing.assert_array_equal(one.pools.count, [1])
    same = isotonic([3.0] * 4, [1.0, 2.0, 3.0, 6.0], lipschitz=constant)
    np.testing.assert_array_equal(same.fit, [3.0] * 4)
    assert len(same.pools.value) == 1 and same.pools.left[0] == same.pools.right[0] == 3.0
    assert same.pools.knots()[0].tolist() == [3.0]


@nightly
def test_the_name_in_the_package_can_be_called_whatever_was_imported_first():
    for first in ("hindsight.batch.isotonic", "hindsight.estimators.isotonic", "math"):
        code = f"import hindsight, {first}; print(hindsight.isotonic([0, 1], [1.0, 0.0]).fit)"
        assert python(code) == "[0.5 0.5]\n"


if __name__ == "__main__":  # thousands of cases: python tests/test_isotonic.py 5000
    count = int(sys.argv[1])
    as_the_solver(count, seed=1)
    as_exact_arithmetic(count, seed=1)
    print(f"{count} cases of each: as the solver of bounded least squares, and as exact arithmetic")
