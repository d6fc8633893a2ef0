"""The test of calibration that can be watched: fair bets under the null, and evidence where there is something."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binom, poisson

from hindsight import charts
from hindsight.batch.isotonic import isotonic
from hindsight.forecast import calibrated, calibration_test
from hindsight.forecast.evidence import grade
from test_comparison import when_stopped

CHANCE = 1e-6
RNG = np.random.default_rng


def binary(rng, m):
    """Probabilities that react to the past, and outcomes drawn with them."""
    h, y, mean = np.empty(m), np.empty(m), 0.5
    for t in range(m):
        h[t] = rng.choice([0.02, 0.5, mean, rng.random(), 0.99])
        y[t] = rng.random() < h[t]
        mean = 0.9 * mean + 0.1 * y[t]
    return y, h, {}


def bounded(rng, m):
    """Means of numbers in [-1, 3] whose distributions differ from row to row."""
    a, b = 4.0 * rng.random(m) - 1.0, 4.0 * rng.random(m) - 1.0
    p = rng.random(m)
    return np.where(rng.random(m) < p, a, b), p * a + (1 - p) * b, {"loss": "quadratic", "bounds": (-1, 3)}


def counts(rng, m):
    """Means of counts up to 20."""
    h = 5.0 * rng.random(m)
    top = np.arange(21)
    p = poisson.pmf(top, h[:, None])
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(m)[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return y * 1.0, p @ top, {"loss": "poisson", "bounds": (0, 20)}


def quantiles(rng, m):
    """Quantiles of continuous outcomes."""
    scale = rng.random(m)
    return scale * rng.normal(size=m), scale * 0.8416212335729143, {"loss": "pinball", "quantile": 0.8}


def atoms(rng, m):
    """Quantiles of outcomes 0, 1, 2, which are reached with probability far from the level."""
    y = rng.choice([0.0, 1.0, 2.0], m, p=[0.3, 0.5, 0.2])
    return y, np.ones(m), {"loss": "pinball", "quantile": 0.6}


NULLS = {"binary": binary, "bounded": bounded, "counts": counts, "quantiles": quantiles, "atoms": atoms}


@pytest.mark.parametrize("kind", NULLS)
def test_the_e_value_of_a_calibrated_forecaster_is_at_most_1_in_the_mean_at_any_stopping_time(kind):
    streams, rounds, rng = 400, 120, RNG(0)
    stopped, tops = [], []
    for _ in range(streams):
        y, h, options = NULLS[kind](rng, rounds)
        found = calibration_test(y, h, **options)
        stopped.append(math.exp(when_stopped(found.log_e, rng)))
        tops.append(math.exp(found.evidence.log_sup))
    assert np.mean(stopped) <= 1.0 + 5.0 * np.std(stopped) / math.sqrt(streams)
    for level in (2.0, 5.0, 20.0):
        assert (np.array(tops) >= level).sum() <= binom.ppf(1.0 - CHANCE, streams, 1.0 / level)


def test_recalibration_learnt_with_hindsight_breaks_the_same_limits(monkeypatch):
    """The simulation can fail: here the bets rest on all rows, and not on earlier ones alone."""
    monkeypatch.setattr(calibrated, "recalibrated", lambda y, h, *rest: isotonic(h, y).fit)
    rng, streams = RNG(0), 100
    tops = [calibration_test(*binary(rng, 120)[:2]).evidence.log_sup for _ in range(streams)]
    assert (np.array(tops) >= math.log(20.0)).sum() > binom.ppf(1.0 - CHANCE, streams, 1.0 / 20.0)


def test_the_e_value_is_the_weighted_mean_of_the_products():
    rng = RNG(1)
    y, h, _ = binary(rng, 90)
    found = calibration_test(y, h)
    want = np.log(stake(y, h, np.arange(90), range(90)))
    np.testing.assert_allclose(found.log_e, want, rtol=1e-9, atol=1e-12)
    assert found.evidence.log_e == found.log_e[-1]
    assert found.evidence.p == pytest.approx(math.exp(-max(0.0, want.max())))


def stake(y, h, known, rows):
    """What a stake of 1 has become after each of some rows, by bets that knew so many rows."""
    by_fit, up, down, slope, prior = calibrated.bets(calibrated.Score(), y, h, np.ones(y.size), known)
    assert prior.sum() == pytest.approx(1.0)
    each = [1 + f * by_fit for f in calibrated.FRACTIONS]
    for gain in (up, -down, slope * up, -slope * up):
        each += [1 + s * gain for s in calibrated.STAKES]
    return prior @ np.cumprod(np.array(each)[:, rows], axis=1)


@pytest.mark.parametrize("lag", [1, 3])
def test_bets_look_at_known_rows_alone(lag):
    y, h, _ = binary(RNG(2), 200)
    known = np.maximum(0, np.arange(200) - lag + 1)
    one = calibrated.recalibrated(y, h, np.ones(200), known, h, True)
    for t in (8, 60, 150):
        other = y.copy()
        other[t:] = 1 - other[t:]
        two = calibrated.recalibrated(other, h, np.ones(200), known, h, True)
        np.testing.assert_array_equal(one[: t + lag], two[: t + lag])
    assert not np.array_equal(one, two)


def test_the_e_value_of_forecasts_made_ahead_is_the_largest_of_the_streams_over_their_number():
    y, h, _ = binary(RNG(1), 90)
    c = np.ones(90)
    c[[4, 30, 31]] = 0.0
    found, rows = calibration_test(y, h, c, lag=3), np.flatnonzero(c)
    known = np.array([(rows <= row - 3).sum() for row in rows])
    so_far = np.ones((3, rows.size))
    for r in range(3):
        mine = np.flatnonzero(rows % 3 == r)
        made = stake(y[rows], h[rows], known, mine)
        for t, e in zip(mine, made, strict=True):
            so_far[r, t:] = e
    np.testing.assert_allclose(found.log_e, np.log(so_far.max(axis=0) / 3.0), rtol=1e-9, atol=1e-12)
    assert any("any outcome of the 3 rows up to its own" in need.text for need in found.assumptions)
    with pytest.raises(ValueError, match="lag must be a whole number, at least 1; got 0"):
        calibration_test(y, h, lag=0)


def test_forecasts_made_ahead_are_not_refuted_by_what_they_could_not_know():
    """Outcomes are the same for three rows, which nobody can know three rows ahead: a plain test refutes this."""
    rng, streams, reached = RNG(8), 60, np.zeros(2, int)
    for _ in range(streams):
        y = np.repeat(rng.random(60) < 0.3, 3) * 1.0
        h = np.full(180, 0.3)
        reached += [calibration_test(y, h, lag=lag).evidence.p <= 0.05 for lag in (3, 1)]
    assert reached[0] <= binom.ppf(1.0 - CHANCE, streams, 0.05) < reached[1]
    y = np.repeat(rng.random(700) < 0.3, 3)
    assert calibration_test(y, np.full(2100, 0.5), lag=3).evidence.words == "decisive"


def test_classes_are_tested_by_the_mean_over_the_classes():
    rng = RNG(9)
    p = rng.dirichlet(np.ones(3), 400)
    index = (rng.random(400)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    y = np.array(["sun", "rain", "snow"])[index].astype(object)
    y[7] = None
    found = calibration_test(y, p, classes=["sun", "rain", "snow"])
    keep = np.arange(400) != 7
    each = [calibration_test(index[keep] == k, p[keep, k]).evidence.log_e for k in range(3)]
    assert found.evidence.log_e == pytest.approx(np.logaddexp.reduce(each) - math.log(3.0), abs=1e-12)
    assert found.rounds[-1] == 399 and found.evidence.words == "no more than weak"
    wrong = calibration_test(y, p[:, [1, 0, 2]], loss="log", classes=["sun", "rain", "snow"], lag=2)
    assert wrong.evidence.words == "decisive"
    with pytest.raises(ValueError, match="'hail' is not one of the classes"):
        calibration_test(["hail"], [[0.5, 0.5]], classes=["sun", "rain"])


def test_words_and_picture_are_from_the_largest_e_value():
    """The largest e-value is 20 or more and is long gone: the line of 1/20 is crossed, and the words say so."""
    rng = RNG(10)
    h = np.full(1000, 0.5)
    y = np.append(rng.random(190) < 0.7, rng.random(810) < 0.46) * 1.0
    found = calibration_test(y, h)
    now, most = math.exp(found.evidence.log_e), math.exp(found.evidence.log_sup)
    assert now < math.sqrt(10.0) and most > 20.0 and found.evidence.p == pytest.approx(1.0 / most)
    assert found.log_e.max() == found.evidence.log_sup  # the path, and so the picture, has the largest
    assert found.evidence.words == grade(found.evidence.log_sup) != "no more than weak"
    assert f"(e = {now:.3g}, {most:.3g} at its largest, p = {found.evidence.p:.3g} at every time)" in str(found)
    drawn = json.dumps(charts.watched({"A": found}).to_dict())
    assert str(found.evidence.log_sup / math.log(10.0)) in drawn


@pytest.mark.parametrize("bend", [lambda h: h**2, lambda h: np.sqrt(h), lambda h: 0.3 + 0.4 * h, lambda h: h * 0 + 0.5])
def test_miscalibration_is_found(bend):
    rng = RNG(3)
    h = rng.random(2000)
    found = calibration_test(rng.random(2000) < bend(h), h)
    assert found.evidence.words == "decisive" and found.evidence.p < 0.01
    assert found.words.startswith("evidence against calibration: decisive (e = ")
    assert "isotonic recalibration learnt from earlier rows" in str(found)


def test_miscalibrated_means_and_quantiles_are_found():
    rng = RNG(4)
    y, h, options = bounded(rng, 3000)
    assert calibration_test(y, np.clip(h + 0.4, -1, 3), **options).evidence.words == "decisive"
    y, h, options = counts(rng, 3000)
    assert calibration_test(y, 1.5 * h, **options).evidence.words == "decisive"
    for q in (lambda h: h + 0.2, lambda h: h - 0.2, lambda h: 0.4 + 0 * h):
        y, h, options = quantiles(rng, 3000)
        assert calibration_test(y, q(h), **options).evidence.words == "decisive"


def test_an_impossible_outcome_refutes_for_good():
    found = calibration_test([0, 1, 0, 1], [0.5, 0.0, 0.5, 0.5])
    assert np.isinf(found.log_e[1:]).all() and found.evidence.p == 0.0 and "e = infinite" in found.words
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["log_e"] is None
    assert math.isfinite(calibration_test([0, 1, 0, 1], [0.0, 1.0, 0.5, 0.5]).evidence.log_e)
    # a mean outside the bounds cannot be one
    assert calibration_test([1.0], [7.0], loss="quadratic", bounds=(0, 5)).evidence.log_e == math.inf


def test_missing_outcomes_and_weight_0_are_left_out():
    y, h, _ = binary(RNG(5), 300)
    c = RNG(6).choice([0.0, 1.0], 300)
    want = calibration_test(y[c > 0], h[c > 0])
    assert calibration_test(y, h, c).evidence == want.evidence
    found = calibration_test(np.where(c > 0, y, np.nan), h)
    assert found.evidence == want.evidence
    assert any("which outcomes are missing" in need.text for need in found.assumptions)
    assert want.rounds[0] == 1 and want.rounds[-1] == (c > 0).sum()


def test_long_streams_neither_overflow_nor_underflow():
    rng = RNG(7)
    h = rng.random(20_000)
    assert 1000 < calibration_test(rng.random(20_000) < h**2, h).evidence.log_e < math.inf
    quiet = calibration_test(rng.random(20_000) < h, h)
    assert -10 < quiet.evidence.log_e < 5 and quiet.evidence.words == "no more than weak"


def test_bad_input_is_named():
    for args, options, message in (
        (([1.0], [0.5]), {"loss": "quadratic"}, "needs the bounds"),
        (([1.0], [[0.5, 1.0]]), {"loss": "winkler"}, "end by end"),
        (([9.0], [0.5]), {"loss": "quadratic", "bounds": (0, 1)}, "9.0 lies outside the declared"),
        (([1, 2], [0.5, 0.5]), {}, "row 1, column 'outcome': 2.0 must be 0 or 1"),
        (([1], [1.5]), {}, "row 0, column 'forecast': 1.5 is not a probability"),
        (([math.nan], [0.5]), {}, "no row"),
        (([1], [0.5]), {"loss": "pinball"}, "needs quantile"),
    ):
        with pytest.raises(ValueError, match=message):
            calibration_test(*args, **options)
