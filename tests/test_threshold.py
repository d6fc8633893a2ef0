"""The threshold classifier: brute force, ties, and its bound."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as hs

from hindsight.errors import RowError
from hindsight.estimators.threshold import ThresholdClassifier, least


def brute_force(X, y):
    """Every feature, either side, every threshold that tells rows apart, in the order ties are settled."""
    best = None
    for j, above in itertools.product(range(X.shape[1]), (1, 0)):
        values = np.unique(X[:, j])
        for low in [-math.inf, *values]:  # a threshold in [low, next)
            wrong = int(((X[:, j] > low).astype(int) != (y if above else 1 - y)).sum())
            if best is None or wrong < best[0]:
                best = wrong, j, above, low
    return best


small = hs.integers(-3, 3)


@given(hs.integers(1, 3).flatmap(lambda n: hs.lists(hs.tuples(hs.booleans(), *[small] * n), min_size=2, max_size=25)))
def test_it_is_brute_force(rows):
    y = np.array([row[0] for row in rows]).astype(int)
    X = np.array([row[1:] for row in rows], float)
    if len(set(y.tolist())) < 2:
        return
    model = ThresholdClassifier().fit(X, y)
    wrong, j, above, low = brute_force(X, y)
    assert (model.errors_, model.feature_, model.above_) == (wrong, j, above)
    assert (model.predict(X) != y).sum() == wrong
    values = np.unique(X[:, j])
    high = values[values > low].min(initial=math.inf)
    if low == -math.inf:
        assert model.threshold_ == -math.inf
    elif high == math.inf:
        assert model.threshold_ == math.inf
    else:
        assert model.threshold_ == (low + high) / 2


def test_many_random_rows_against_brute_force():
    rng = np.random.default_rng(0)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 3)).round(rng.integers(0, 3))
        y = (X[:, seed % 3] + rng.normal(size=40) > 0).astype(int)
        if 0 < y.sum() < 40:
            model = ThresholdClassifier().fit(X, y)
            assert (model.errors_, model.feature_, model.above_) == brute_force(X, y)[:3]


def test_neighbouring_and_huge_values():
    a = 1.0
    b = np.nextafter(a, 2.0)
    errors, threshold = least(np.array([a, b]), np.array([False, True]))
    assert errors == 0
    assert a <= threshold < b
    errors, threshold = least(np.array([-1.7e308, 1.7e308]), np.array([False, True]))
    assert (errors, threshold) == (0, 0.0)


def test_one_feature_by_place_or_name_and_the_bound():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=100), "b": rng.normal(size=100)})
    y = np.where(frame["b"] > 0.3, "yes", "no")
    best = ThresholdClassifier(delta=0.1).fit(frame, y)
    assert (best.feature_, best.above_, best.errors_, best.risk_) == (1, "yes", 0, 0.0)
    assert best.bound_ == pytest.approx(math.sqrt(2 * math.log(4 * 2 / 0.1) / 100))
    for feature in (0, "a"):
        one = ThresholdClassifier(feature, delta=0.1).fit(frame, y)
        assert one.feature_ == 0
        assert one.bound_ == pytest.approx(one.errors_ / 100 + math.sqrt(2 * math.log(4 / 0.1) / 100))
    for feature in (2, -1, "c", 0.5):
        with pytest.raises(ValueError, match="feature"):
            ThresholdClassifier(feature).fit(frame, y)


def test_the_bound_is_kept_over_all_thresholds_more_often_than_promised():
    """sup over thresholds, sides and features of |R - R^| against the width, where R is known exactly."""
    m, delta, missed, width_of = 200, 0.3, 0, math.sqrt(2 * math.log(4 * 2 / 0.3) / 200)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X = rng.random((m, 2))
        y = rng.random(m) < 0.2 + 0.6 * (X[:, 0] > 0.5)
        worst = 0.0
        for j in (0, 1):
            grid = np.sort(X[:, j])
            for t in grid[::5]:
                risk = float(np.mean((X[:, j] > t) != y))
                true = integral(t) if j == 0 else 0.5  # the other feature says nothing: y is 1 half of the time
                worst = max(worst, abs(risk - true))
        missed += worst > width_of
    assert missed <= delta * 300


def integral(t):
    """P(1[x > t] != y) for x uniform and P(y = 1 | x) = 0.2 or, above a half, 0.8."""

    def ones(a, b):  # P(a < x < b, y = 1)
        return 0.2 * max(min(b, 0.5) - a, 0) + 0.8 * max(b - max(a, 0.5), 0)

    return ones(0, t) + (1 - t) - ones(t, 1)


def test_bad_input():
    X, y = np.arange(4.0)[:, None], [0, 0, 1, 1]
    model = ThresholdClassifier().fit(X, y)
    for delta in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
            ThresholdClassifier(delta=delta).fit(X, y)
    with pytest.raises(RowError, match="row 2, column 0: value NaN is not finite"):
        model.fit([[1.0], [2.0], [math.nan]], [0, 1, 0])
    assert model.threshold_ == 1.5
    with pytest.raises(RowError, match="row 0, column 0: value inf is not finite"):
        model.predict([[math.inf]])
    with pytest.raises(ValueError, match="Only binary classification"):
        model.fit(np.arange(3.0)[:, None], [0, 1, 2])
    one = ThresholdClassifier().fit(X, [5, 5, 5, 5])
    assert one.predict(X).tolist() == [5, 5, 5, 5]
    assert one.errors_ == 0
