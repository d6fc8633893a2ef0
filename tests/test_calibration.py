"""Calibration: the decomposition, ties, bands, and the estimator, against slow versions and other packages."""

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

from hindsight import DescentClassifier
from hindsight.estimators.calibrator import Calibrator
from hindsight.forecast import mean_loss, reliability
from hindsight.forecast.resample import resampled


def scoring():
    """The peer's decomposition; it loads a library of charts, which takes seconds."""
    return pytest.importorskip("model_diagnostics.scoring")


def naive_pav(z, y, c):
    """The isotonic fit by its formula: max over starts a <= k of min over ends b > k of the mean of points a..b-1."""
    points, place = np.unique(z, return_inverse=True)
    w, s = (np.append(0.0, np.cumsum(np.bincount(place, each))) for each in (c, c * y))
    with np.errstate(invalid="ignore"):
        mean = (s[None, :] - s[:, None]) / (w[None, :] - w[:, None])
    fit = [mean[: k + 1, k + 1 :].min(axis=1).max() for k in range(points.size)]
    return np.array(fit)[place]


@st.composite
def rows(draw):
    """Outcomes, forecasts with many ties, weights with zeros."""
    m = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    grid = draw(st.sampled_from([2, 5, 11, 10**6]))
    y = (rng.random(m) < 0.5).astype(float)
    h = rng.integers(0, grid, m) / (grid - 1)
    c = rng.choice([0.0, 0.5, 1.0, 2.0, 1e-3], m)
    c[rng.integers(m)] = 1.0
    return y, h, c


# ---------------------------------------------------------------- the decomposition


@given(rows(), st.booleans(), st.sampled_from(["square", "log", "quadratic"]))
def test_the_decomposition_is_exact_with_ties_and_weights(given, weighted, loss):
    y, h, c = given
    found = reliability(y, h, c if weighted else None, loss=loss)
    c = c if weighted else np.ones(y.size)
    want = naive_pav(h[c > 0], y[c > 0], c[c > 0])
    np.testing.assert_allclose(found.recalibrated[c > 0], want, atol=1e-13)
    if math.isinf(found.score):
        assert math.isinf(found.miscalibration)
    else:
        total = found.miscalibration - found.discrimination + found.uncertainty
        assert abs(found.score - total) <= 1e-12
        assert found.score == pytest.approx(mean_loss(y, h, c, loss), abs=1e-13)
        assert found.miscalibration >= -1e-14
    best = mean_loss(y, np.clip(found.recalibrated, 0, 1), c, loss)
    assert found.uncertainty - found.discrimination == pytest.approx(best, abs=1e-12)
    assert found.discrimination >= -1e-14
    if loss != "log":  # each level is the mean of its outcomes
        mean = c @ y / c.sum()
        assert found.discrimination == pytest.approx(float(c @ (found.recalibrated - mean) ** 2 / c.sum()), abs=1e-12)
        assert found.uncertainty == pytest.approx(mean * (1 - mean), abs=1e-13)


@given(rows(), st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(given, seed):
    y, h, c = given
    turn = np.random.default_rng(seed).permutation(y.size)
    one, two = reliability(y, h, c), reliability(y[turn], h[turn], c[turn])
    np.testing.assert_array_equal(one.recalibrated[turn], two.recalibrated)
    for part in ("score", "miscalibration", "discrimination", "uncertainty"):
        assert getattr(one, part) == pytest.approx(getattr(two, part), abs=1e-15)


def test_ties_are_pooled_in_either_order():
    for y in ([0, 1], [1, 0]):
        assert reliability(y, [0.5, 0.5]).recalibrated.tolist() == [0.5, 0.5]
        assert reliability(y, [0.5, 0.5]).miscalibration == 0.0


@given(rows(), st.booleans())
def test_agreement_with_model_diagnostics(given, weighted):
    y, h, c = given
    if y.size == 1:
        return  # theirs fails on one row
    c = np.where(c > 0, c, 0.7) if weighted else np.ones(y.size)
    h = np.clip(h, 0.01, 0.99)
    for loss, theirs in (("square", scoring().SquaredError()), ("log", scoring().LogLoss())):
        found = reliability(y, h, c, loss=loss)
        if loss == "log" and not 0 < found.pools.value[0] <= found.pools.value[-1] < 1:
            continue  # theirs takes no forecast of 0 or 1, and pools levels that are
        want = scoring().decompose(y, h, c, scoring_function=theirs)
        for part in ("miscalibration", "discrimination", "uncertainty", "score"):
            assert getattr(found, part) == pytest.approx(want[part][0], abs=1e-12)


def test_a_constant_forecast_one_row_and_real_outcomes():
    found = reliability([1, 0, 0, 1, 1], np.full(5, 0.25))
    assert found.recalibrated.tolist() == [0.6] * 5
    assert found.discrimination == 0.0 and found.miscalibration == pytest.approx(0.35**2)
    one = reliability([1], [0.3])
    assert one.recalibrated.tolist() == [1.0] and one.uncertainty == 0.0
    real = reliability([3.0, 1.0, 5.0], [1.0, 2.0, 3.0], loss="quadratic")
    assert real.recalibrated.tolist() == [2.0, 2.0, 5.0]
    assert reliability([1, 1], [0.0, 0.5], loss="log").miscalibration == math.inf


def test_bad_input_is_named():
    for y, h, c, message in (
        ([0, 1], [0.1, 1.1], None, "row 1, column 'forecast': 1.1 is not a probability"),
        ([0, 3], [0.1, 0.1], None, "row 1, column 'outcome': 3.0 must be 0 or 1"),
        ([0, 1], [0.1], None, "column 'forecast' has 1 rows, but there are 2 outcomes"),
        ([0, 1], [0.1, math.nan], None, "row 1, column 'forecast': nan"),
        ([], [], None, "no row"),
        ([0, 1], [0.1, 0.2], [0, 0], "no row with a weight above 0"),
        ([0, 1], [0.1, 0.2], [0, -1], "row 1: weight -1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            reliability(y, h, c)


def test_everything_is_ready_for_json():
    found = reliability([1, 1, 0], [0.0, 0.5, 0.25], loss="log")
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["score"] is None and plain["pools"]["value"] == found.pools.value.tolist()
    assert "miscalibration inf" in str(found)


# ---------------------------------------------------------------- bands


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grid", [4, 60, 10**7])
def test_resampled_fits_are_isotonic_fits_of_drawn_outcomes(grid, weighted):
    rng = np.random.default_rng(grid)
    for m in (1, 2, 63, 64, 65, 130):
        z = np.sort(rng.integers(0, grid, m) / grid)
        c = rng.choice([0.5, 1.0, 3.0], m) if weighted else np.ones(m)
        p = rng.choice([0.0, 1.0], m)  # outcomes that are certain, so the fit is known
        fits = resampled(z, p, c, np.arange(m), 3, 0)
        want = naive_pav(z, p, c)
        for fit in fits:
            np.testing.assert_allclose(fit, want, atol=1e-13)


def test_resampled_fits_have_the_law_of_outcomes_drawn_one_by_one():
    rng = np.random.default_rng(1)
    z = np.sort(rng.random(40).round(1))
    p = rng.random(40)
    times = 4000
    ours = resampled(z, p, np.ones(40), np.arange(40), times, 5)
    slow = np.array([naive_pav(z, (rng.random(40) < p).astype(float), np.ones(40)) for _ in range(400)])
    error = np.sqrt(ours.var(axis=0) / times + slow.var(axis=0) / 400) + 1e-12
    assert (np.abs(ours.mean(axis=0) - slow.mean(axis=0)) < 6 * error).all()  # by chance below 1e-7
    alone = resampled(np.arange(3.0), np.array([0.3, 0.3, 0.3]), np.ones(3), np.array([0, 2]), 64_000, 1)
    assert alone[:, 0].min() == 0.0 and alone[:, 1].max() == 1.0
    # P(fit at the first of three is 0) = P(y1 = 0), exactly
    assert abs((alone[:, 0] == 0).mean() - 0.7) < 6 * math.sqrt(0.21 / 64_000)


def test_bands_are_seeded_and_as_wide_as_they_must_be():
    rng = np.random.default_rng(0)
    h = rng.random(2000)
    found = reliability(rng.random(2000) < h, h)
    band = found.band(seed=3)
    np.testing.assert_array_equal(band.low, found.band(seed=3).low)
    assert (band.low != found.band(seed=4).low).any()
    assert band.at.size == 512 and (np.diff(band.at) > 0).all()
    assert (band.low <= band.high).all() and (np.diff(band.low) >= 0).all()
    wider = found.band(level=0.99)
    assert (wider.high - wider.low).mean() > (band.high - band.low).mean()


def test_a_calibrated_forecaster_stays_in_the_consistency_band_and_another_does_not():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(60):
        h = rng.random(300).round(2)
        found = reliability(rng.random(300) < h, h)
        band = found.band(resamples=200, level=0.9)
        fit = np.interp(band.at, *found.pools.knots())
        inside.append(((fit >= band.low) & (fit <= band.high)).mean())
    assert 0.85 < np.mean(inside) < 0.97  # 0.9 pointwise, and a little more where the fit is level at 0 or 1
    h = rng.random(3000)
    found = reliability(rng.random(3000) < h**2, h)
    band = found.band()
    fit = np.interp(band.at, *found.pools.knots())
    assert ((fit >= band.low) & (fit <= band.high)).mean() < 0.4
    own = found.band("confidence")
    assert ((fit >= own.low) & (fit <= own.high)).mean() > 0.8
    # the true curve lies in the confidence band, mostly
    assert ((own.at**2 >= own.low) & (own.at**2 <= own.high)).mean() > 0.8


def test_weight_0_is_no_row_in_a_band():
    rng = np.random.default_rng(0)
    h, c = rng.random(200), rng.choice([0.0, 1.0, 2.0], 200)
    y = rng.random(200) < h
    one, two = reliability(y, h, c).band(), reliability(y[c > 0], h[c > 0], c[c > 0]).band()
    np.testing.assert_array_equal(one.low, two.low)


def test_bad_bands_are_refused():
    found = reliability([0, 1], [0.2, 0.7])
    for options, message in (
        ({"kind": "both"}, "kind must be one of"),
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"resamples": 0}, "resamples must be a whole number, at least 1"),
        ({"seed": -1}, "seed must be a whole number, at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            found.band(**options)
    with pytest.raises(ValueError, match="outcomes 0 and 1"):
        reliability([3.0], [2.0], loss="quadratic").band()


# ---------------------------------------------------------------- the estimator


def test_calibrator_is_the_recalibrated_forecast():
    rng = np.random.default_rng(0)
    h, c = rng.random(200).round(2), rng.choice([0.5, 1.0], 200)
    y = (rng.random(200) < h**2).astype(int)
    model = Calibrator()
    np.testing.assert_array_equal(model.fit_transform(h, y, c), reliability(y, h, c).recalibrated)
    np.testing.assert_array_equal(model.transform(h[:, None])[:, 0], model.transform(h))
    assert model.transform([-5.0, 7.0]).tolist() == [model.transform([h.min()])[0], model.transform([h.max()])[0]]
    assert (np.diff(model.transform(np.linspace(0, 1, 999))) >= 0).all()
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict")


def test_calibrator_refuses_bad_input_and_stays_as_it_was():
    model = Calibrator().fit([0.1, 0.9], [0, 1])
    before = model.transform([0.5])
    for h, y, c, message in (
        ([0.1, math.nan], [0, 1], None, "row 1, column 'forecast': nan must be finite"),
        ([0.1, 0.2], [0, 2], None, "row 1, column 'outcome': 2.0 must be 0 or 1"),
        ([0.1, 0.2], [0], None, "column 'forecast' has 2 rows, but there are 1 outcomes"),
        ([[0.1, 0.9], [0.2, 0.8]], [0, 1], None, r"one per row, not 2 columns: predict_proba\(X\)\[:, 1\]"),
        ([], [], None, "no row"),
        ([0.1, 0.2], None, None, "y is None"),
        ([0.1, 0.2], [0, 1], [0.0, 0.0], "no row with a weight above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(h, y, c)
    assert model.transform([0.5]) == before
    with pytest.raises(NotFittedError):
        Calibrator().transform([0.5])


def test_a_classifier_gets_calibrated_probabilities():
    X, y = make_classification(3000, 20, n_informative=3, n_redundant=15, random_state=0)
    train, test = slice(0, 1500), slice(1500, 3000)
    labels = np.where(y == 1, "yes", "no")
    plain = GaussianNB().fit(X[train], labels[train])
    ours = Calibrator(GaussianNB()).fit(X[train], labels[train])
    frozen = Calibrator(FrozenEstimator(GaussianNB().fit(X[:750], labels[:750]))).fit(X[750:1500], labels[750:1500])
    raw = mean_loss(y[test], plain.predict_proba(X[test])[:, 1])
    for model in (ours, frozen):
        p = model.predict_proba(X[test])
        assert p.shape == (1500, 2) and model.classes_.tolist() == ["no", "yes"]
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
        assert mean_loss(y[test], p[:, 1]) < 0.95 * raw
        np.testing.assert_array_equal(model.predict(X[test]), np.where(p[:, 1] > 0.5, "yes", "no"))
        assert model.score(X[test], labels[test]) == (model.predict(X[test]) == labels[test]).mean()
    theirs = CalibratedClassifierCV(GaussianNB(), method="isotonic", ensemble=False).fit(X[train], labels[train])
    np.testing.assert_allclose(ours.predict_proba(X[test]), theirs.predict_proba(X[test]), atol=1e-6)


def test_three_classes_sum_to_1_and_our_learners_can_be_wrapped():
    X, y = make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)
    for inner in (LogisticRegression(), DescentClassifier(eta=0.05)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = Calibrator(inner, folds=3).fit(X, y)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        assert model.score(X, y) > 0.5
    with pytest.raises(ValueError, match="folds must be a whole number, at least 2"):
        Calibrator(LogisticRegression(), folds=1).fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        Calibrator(LogisticRegression()).fit(X, np.zeros(300))


FOLDS = "which rows are held out together depends on how many there are"
EXPECTED = {"check_sample_weight_equivalence_on_dense_data": FOLDS}


@pytest.mark.parametrize("model", [Calibrator(), Calibrator(GaussianNB(), folds=2)], ids=["forecasts", "classifier"])
def test_scikit_learns_checks(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = check_estimator(model, expected_failed_checks=EXPECTED)
    assert [check["check_name"] for check in done if check["status"] == "failed"] == []
    if model.classifier is not None:
        assert {check["check_name"] for check in done if check["status"] == "xfail"} == set(EXPECTED)
        assert sum(check["status"] == "passed" for check in done) > 40


# ---------------------------------------------------------------- quantiles, counts and missing outcomes


def naive_quantile_pav(z, y, c, level):
    """The least and the largest isotonic fit of a quantile, by the formula max over starts of min over ends."""
    points = np.unique(z)

    def quantiles(upper):
        out = np.full((points.size, points.size + 1), np.nan)
        for a in range(points.size):
            for b in range(a + 1, points.size + 1):
                inside = (z >= points[a]) & (z <= points[b - 1])
                values = np.sort(y[inside])
                mass = np.array([c[inside][y[inside] <= v].sum() for v in values])
                share = mass - level * c[inside].sum()
                out[a, b] = values[(share > 1e-12) if upper else (share >= -1e-12)][0]
        return out

    found = []
    for upper in (False, True):
        q = quantiles(upper)
        found.append([np.nanmax([np.nanmin(q[a, k + 1 :]) for a in range(k + 1)]) for k in range(points.size)])
    return np.array(found)[:, np.searchsorted(points, z)]


@given(rows(), st.booleans(), st.sampled_from([0.5, 0.1, 0.75, 0.9]), st.integers(0, 1000))
def test_isotonic_quantiles_are_those_of_the_formula(given, weighted, level, seed):
    _, h, c = given
    y = np.random.default_rng(seed).integers(0, 6, h.size) * 1.0
    c = c if weighted else np.ones(y.size)
    found = reliability(y, h, c if weighted else None, loss="pinball", quantile=level)
    low, high = naive_quantile_pav(h[c > 0], y[c > 0], c[c > 0], level)
    np.testing.assert_allclose(found.recalibrated[c > 0], (low + high) / 2, atol=1e-12)
    total = found.miscalibration - found.discrimination + found.uncertainty
    assert found.score == pytest.approx(total, abs=1e-12)
    assert found.score == pytest.approx(mean_loss(y, h, c, "pinball", quantile=level), abs=1e-12)
    assert found.miscalibration >= -1e-12 and found.discrimination >= -1e-12
    assert found.pools.weight.sum() == pytest.approx(c.sum()) and found.pools.count.sum() == (c > 0).sum()


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_quantiles_agree_with_model_diagnostics(level):
    rng = np.random.default_rng(0)
    for m, grid in ((50, 7), (400, 10**6)):
        h = rng.integers(0, grid, m) / grid
        y = (h + rng.normal(size=m)).round(1)
        found = reliability(y, h, loss="pinball", quantile=level)
        want = scoring().decompose(y, h, scoring_function=scoring().PinballLoss(level=level))
        for part in ("miscalibration", "discrimination", "uncertainty", "score"):
            assert getattr(found, part) == pytest.approx(want[part][0], abs=1e-12)


def test_counts_agree_with_model_diagnostics_and_may_be_recalibrated_to_0():
    rng = np.random.default_rng(0)
    h = rng.gamma(2.0, 2.0, 500)
    y = rng.poisson(h * 0.8) * 1.0
    y[np.argmin(h)] = 1.0  # theirs takes no forecast of 0
    found = reliability(y, h, loss="poisson")
    want = scoring().decompose(y, h, scoring_function=scoring().PoissonDeviance())
    for part in ("miscalibration", "discrimination", "uncertainty", "score"):
        assert getattr(found, part) == pytest.approx(want[part][0], abs=1e-12)
    zero = reliability([0, 0, 3], [1.0, 2.0, 3.0], loss="poisson")
    assert zero.recalibrated.tolist() == [0.0, 0.0, 3.0] and zero.uncertainty == zero.discrimination > 0
    with pytest.raises(ValueError, match="outcomes 0 and 1"):
        zero.band()


def test_a_row_without_an_outcome_is_counted_and_not_scored():
    rng = np.random.default_rng(0)
    h = rng.random(200).round(2)
    y, c = (rng.random(200) < h).astype(float), rng.choice([0.0, 1.0, 2.0], 200)
    gone = rng.random(200) < 0.2
    for weight in (None, c):
        one = reliability(np.where(gone, np.nan, y), h, weight)
        two = reliability(y[~gone], h[~gone], None if weight is None else c[~gone])
        assert (one.rounds, one.score, one.miscalibration) == pytest.approx((two.rounds, two.score, two.miscalibration))
        assert one.waiting == (gone.sum() if weight is None else (gone & (c > 0)).sum())
        assert f"{one.waiting} rows have no outcome yet: not scored" in str(one)
    with pytest.raises(ValueError, match="no row"):
        reliability([np.nan], [0.5])
    with pytest.raises(ValueError, match="end by end"):
        reliability([1.0], [[0.5, 1.0]], loss="winkler")
