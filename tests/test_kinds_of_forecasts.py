"""Forecasts of classes, quantiles, intervals and counts; and outcomes that are missing or come late."""

import math

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance

from conftest import nightly
from hindsight.forecast import Finding, LaggedScores, Score, Scores, compare, comparison, losses, mean_loss
from test_comparison import ALPHA, allowed

RNG = np.random.default_rng


def probabilities(m, k, rng):
    """Rows of K probabilities."""
    return rng.dirichlet(np.ones(k), m)


def drawn(p, rng):
    """An outcome of each row of probabilities, as an index."""
    return (rng.random(len(p))[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


# ---------------------------------------------------------------- losses


def test_losses_of_classes_are_those_of_the_textbook():
    rng = RNG(0)
    h = probabilities(50, 3, rng)
    labels = np.array(["home", "draw", "away"])
    at = drawn(h, rng)
    one = np.eye(3)[at]
    np.testing.assert_allclose(losses(labels[at], h, classes=labels), np.square(h - one).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(losses(labels[at], h, "log", classes=labels), -np.log(h[np.arange(50), at]), rtol=1e-14)
    two = np.stack([1 - h[:, 0], h[:, 0]], axis=1)  # of two classes it is twice the Brier score of one of them
    y = (at == 0).astype(float)
    np.testing.assert_allclose(losses(y, two, classes=[0, 1]), 2 * losses(y, h[:, 0]), atol=1e-15)


def test_losses_of_numbers_are_those_of_the_textbook_and_of_scikit_learn():
    rng = RNG(1)
    y, a, b = rng.poisson(3.0, 80) * 1.0, rng.random(80) + 2.0, rng.random(80) + 4.0
    assert mean_loss(y, a, loss="poisson") == pytest.approx(mean_poisson_deviance(y, a), rel=1e-12)
    assert mean_loss(y, a, loss="pinball", quantile=0.3) == pytest.approx(mean_pinball_loss(y, a, alpha=0.3), rel=1e-12)
    ours = losses(y, np.stack([a, b], axis=1), "winkler", coverage=0.8)
    want = (b - a) + 2.0 / 0.2 * (np.maximum(a - y, 0.0) + np.maximum(y - b, 0.0))
    np.testing.assert_allclose(ours, want, rtol=1e-12)


KINDS = {
    "square": {"classes": ["a", "b", "c"]},
    "log": {"classes": ["a", "b", "c"]},
    "quadratic": {"bounds": (0, 12)},
    "poisson": {"bounds": (0, 12)},
    "pinball": {"quantile": 0.8},
    "pinball within": {"quantile": 0.8, "bounds": (0, 12)},
    "winkler": {"coverage": 0.8},
    "winkler within": {"coverage": 0.8, "bounds": (0, 12)},
}


def made(kind, rng, m):
    """p, the outcomes and the forecasts of three forecasters; outcomes of p are 0, 1, ..., 12, or the classes."""
    loss = kind.split()[0]
    labels = np.array(["a", "b", "c"]) if "classes" in KINDS[kind] else np.arange(13.0)
    p = probabilities(m, labels.size, rng)
    y = labels[drawn(p, rng)]
    if "classes" in KINDS[kind]:
        forecasts = [0.8 * probabilities(m, 3, rng) + 0.2 / 3 for _ in range(3)]
    elif loss == "winkler":
        forecasts = [np.sort(14.0 * rng.random((m, 2)) - 1.0, axis=1) for _ in range(3)]
    else:
        forecasts = [0.1 + 13.0 * rng.random(m) for _ in range(3)]
    return loss, labels, p, y, dict(zip("ABC", forecasts, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_corners_hold_the_extremes_of_every_difference(kind):
    rng = RNG(2)
    loss, labels, _, _, h = made(kind, rng, 200)
    score = Score(loss, **KINDS[kind])
    stacked = np.stack(list(h.values()), axis=1)
    corners = score.corners(stacked)
    ends = (-50.0, 80.0) if score.bounds is None else score.bounds
    grid = np.arange(3.0) if score.classes else np.union1d(np.linspace(*ends, 2601), labels)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        d = np.stack([score.rounds(np.full((200, 1), v), stacked) for v in grid], axis=-1)
        d = d[:, i] - d[:, j]
        known = corners[:, i] - corners[:, j]
        assert (d <= known.max(axis=1)[:, None] + 1e-9).all() and (d >= known.min(axis=1)[:, None] - 1e-9).all()
        off = np.maximum(known.max(axis=1) - d.max(axis=1), d.min(axis=1) - known.min(axis=1))
        assert off.max() <= 0.6  # and no wider than the grid shows: a step of it is 0.05, and a slope 10 at most


@nightly
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_every_kind_miss_at_most_alpha(kind):
    streams, m = 150, 60
    missed = np.zeros(6, int)
    for k in range(streams):
        rng = RNG(k)
        loss, labels, p, y, h = made(kind, rng, m)
        two = {name: h[name] for name in "AB"}
        pair = compare(y, two, loss=loss, **KINDS[kind]).pairs[0]
        score = Score(loss, **KINDS[kind])
        stacked = np.stack(list(two.values()), axis=1)
        every = np.arange(3.0) if score.classes else labels
        each = np.stack([score.rounds(np.full((m, 1), v), stacked) for v in every], axis=-1)
        truth = float(((each[:, 0] - each[:, 1]) * p).sum(axis=1).mean())
        missed += [not i.low <= truth <= i.high for i in (*pair.fixed, *pair.anytime)]
    assert (missed <= allowed(streams)).all(), missed


@pytest.mark.parametrize("kind", KINDS)
def test_a_better_forecaster_is_found_with_weights_and_lags(kind):
    rng = RNG(3)
    loss, _, p, y, h = made(kind, rng, 3000)
    truth = p.cumsum(axis=1)
    good = {
        "square": p,
        "log": p,
        "quadratic": p @ np.arange(p.shape[1]),
        "poisson": p @ np.arange(p.shape[1]),
        "pinball": (truth < 0.8).sum(axis=1) * 1.0,
        "winkler": np.stack([(truth < q).sum(axis=1) * 1.0 for q in (0.1, 0.9)], axis=1),
    }[loss]
    c = rng.choice([0.5, 1.0, 2.0], 3000)
    found = compare(y, {"good": good, "bad": h["A"]}, c, loss=loss, **KINDS[kind])
    assert found.pairs[0].finding is Finding.CLOSER and found.choice.best == "good"
    assert found.pairs[0].first_better.words == "decisive"
    lagged = compare(y, {"good": good, "bad": h["A"]}, c, loss=loss, lag=2, **KINDS[kind])
    assert lagged.pairs[0].difference == pytest.approx(found.pairs[0].difference, rel=1e-12)
    assert lagged.pairs[0].fixed.ranges.high > found.pairs[0].fixed.ranges.high


def test_two_classes_are_the_binary_comparison_twice_as_large():
    rng = RNG(4)
    p, a = rng.random(300), rng.random(300)
    y = (rng.random(300) < p).astype(float)
    one = compare(y, {"A": p, "B": a}).pairs[0]
    both = {name: np.stack([1 - h, h], axis=1) for name, h in (("A", p), ("B", a))}
    two = compare(y, both, classes=[0, 1]).pairs[0]
    for mine, other in zip((*two.fixed, *two.anytime), (*one.fixed, *one.anytime), strict=True):
        assert mine == pytest.approx([2.0 * v for v in other], rel=1e-9)
    assert two.first_better.log_e == pytest.approx(one.first_better.log_e, rel=1e-9)


def test_differences_of_pinball_losses_need_no_bounds():
    rng = RNG(5)
    y = rng.standard_cauchy(400)  # no mean and no bound
    pair = compare(y, {"A": np.zeros(400), "B": np.full(400, 3.0)}, loss="pinball", quantile=0.5).pairs[0]
    assert pair.finding is Finding.CLOSER
    half = math.sqrt(2 * math.log(2 / ALPHA) * 400 * 9.0 / 4.0) / 400
    assert pair.fixed.ranges == pytest.approx((pair.difference - half, pair.difference + half), rel=1e-12)


def test_forecasts_of_several_numbers_come_in_any_form():
    rng = RNG(6)
    a, b = probabilities(40, 3, rng), probabilities(40, 3, rng)
    y = drawn(a, rng)
    want = compare(y, {"A": a, "B": b}, classes=[0, 1, 2])
    flat = {f"{name}:{k}": h[:, k] for name, h in (("A", a), ("B", b)) for k in (2, 0, 1)}
    assert compare(y, flat, classes=[0, 1, 2]).pairs == want.pairs
    import pandas as pd
    import polars as pl

    assert compare(y, pd.DataFrame(flat), classes=[0, 1, 2]).pairs == want.pairs
    assert compare(y, pl.DataFrame(flat), classes=[0, 1, 2]).pairs == want.pairs
    block = compare(y, np.stack([a, b], axis=1), classes=["0", "1", "2"])
    assert [p.difference for p in block.pairs] == [p.difference for p in want.pairs]
    assert [str(v) for v in block.names] == ["forecast 0", "forecast 1"]


XY = {"classes": ["x", "y"]}


@pytest.mark.parametrize(
    ("options", "y", "a", "message"),
    [
        (
            {"classes": ["x", "y"]},
            ["x", "z"],
            [[0.5, 0.5]] * 2,
            "row 1, column 'outcome': 'z' is not one of the classes x, y",
        ),
        (
            {"classes": ["x", "y"]},
            ["x", "y"],
            [[0.5, 0.5], [0.5, 0.4]],
            "row 1, column 'A': 0.9 is the sum of the prob",
        ),
        (
            {"classes": ["x", "y"]},
            ["x", "y"],
            [[0.5, 0.5], [1.5, -0.5]],
            "row 1, column 'A:x': 1.5 is not a probability",
        ),
        (XY, ["x", "y"], [0.5, 0.5], r"must have 2 numbers in each row \(x, y\)"),
        ({"classes": ["x", "x"]}, [], [], "classes must be at least two, and all different"),
        ({**XY, "loss": "poisson"}, [], [], "classes belong to loss='square' and 'log'"),
        (
            {"loss": "winkler", "coverage": 0.9},
            [1, 2],
            [[0, 1], [3, 2]],
            "row 1, column 'A:low': 3.0 is above",
        ),
        ({"loss": "winkler"}, [], [], "loss='winkler' needs coverage"),
        ({"loss": "pinball"}, [], [], "loss='pinball' needs quantile"),
        ({"quantile": 0.5}, [], [], "loss='square' takes no quantile"),
        ({"loss": "pinball", "quantile": 1.0}, [], [], "quantile must lie between 0 and 1"),
        ({"loss": "poisson", "bounds": (-1, 5)}, [], [], "outcomes from 0 on"),
        ({"loss": "poisson"}, [1, -1], [1, 1], "row 1, column 'outcome': -1.0 must be at least 0"),
        ({"loss": "poisson"}, [1, 1], [1, -2], "row 1, column 'A': -2.0 is not the mean of counts"),
    ],
)
def test_bad_input_is_named(options, y, a, message):
    with pytest.raises(ValueError, match=message):
        Scores(["A"], **options).update(y, {"A": a})


def test_an_infinite_loss_has_no_range_and_is_told():
    void = compare([1, 2], {"A": [0.0, 1.0], "B": [1.0, 1.0]}, loss="poisson", bounds=(0, 5))
    assert (
        void.pairs[0].finding is Finding.VOID and "exactly 0 can have an infinite Poisson loss" in void.pairs[0].words
    )
    void = compare([1, 2], {"A": [2.0, 1.0], "B": [1.0, 1.0]}, loss="poisson")
    assert "declare bounds" in void.pairs[0].words
    h = {"A": [[1.0, 0.0]], "B": [[0.5, 0.5]]}
    assert compare(["x"], h, loss="log", classes=["x", "y"]).pairs[0].finding is Finding.VOID
    assert compare(["x"], h, classes=["x", "y"]).pairs[0].finding is Finding.UNDECIDED
    h = {"A": [[0.7, 0.3, 0.0]] * 50, "B": [[0.2, 0.8, 0.0]] * 50}  # infinite for both: a difference of 0
    pair = compare(["x"] * 50, h, loss="log", classes=["x", "y", "z"]).pairs[0]
    assert pair.finding is Finding.CLOSER and pair.fixed.mixture.high - pair.fixed.mixture.low > 0.1


def test_a_range_that_is_rounding_alone_is_no_range():
    """Quantiles beyond the bounds on the same side differ by a constant, up to the last digit."""
    a, b = np.append(12.7, RNG(0).random(300)), np.append(12.3, 0.5 + 0 * RNG(0).random(300))
    y = RNG(1).random(301)
    pair = compare(y, {"A": a, "B": b}, loss="pinball", quantile=0.8, bounds=(0, 12)).pairs[0]
    later = compare(y[1:], {"A": a[1:], "B": b[1:]}, loss="pinball", quantile=0.8, bounds=(0, 12)).pairs[0]
    width = pair.fixed.mixture.high - pair.fixed.mixture.low
    assert width == pytest.approx((later.fixed.mixture.high - later.fixed.mixture.low) * 300 / 301, rel=1e-3)


# ---------------------------------------------------------------- missing and late outcomes


def stream(m=400, seed=0):
    rng = RNG(seed)
    p, a = rng.random(m), rng.random(m)
    return (rng.random(m) < p).astype(float), p, a


@pytest.mark.parametrize("lag", [1, 3])
def test_a_missing_outcome_is_counted_said_and_not_scored(lag):
    y, a, b = stream()
    gone = RNG(1).random(400) < 0.2
    found = compare(np.where(gone, np.nan, y), {"A": a, "B": b}, lag=lag)
    assert found.waiting == gone.sum() and found.rounds == 400 - gone.sum()
    assert f"{gone.sum()} rows have no outcome yet: forecast, counted and not scored" in str(found)
    assert any("which outcomes are missing" in need.text for need in found.assumptions)
    assert found.to_dict()["waiting"] == gone.sum()
    d = (a - y) ** 2 - (b - y) ** 2
    assert found.pairs[0].difference == pytest.approx(d[~gone].mean(), rel=1e-12)
    if lag == 1:
        assert found.pairs == compare(y[~gone], {"A": a[~gone], "B": b[~gone]}).pairs
    missing = compare([1, None, 0], {"A": [0.5, 0.2, 0.1], "B": [0.4, 0.4, 0.4]})
    assert missing.waiting == 1 and "1 row has no outcome yet:" in str(missing)
    labels = compare(["x", "", "y"], {"A": [[0.5, 0.5]] * 3, "B": [[0.4, 0.6]] * 3}, classes=["x", "y"])
    assert labels.waiting == 1


def test_late_outcomes_are_rounds_when_they_come():
    y, a, b = stream()
    names = np.array([f"day {k}" for k in range(400)])
    late = np.flatnonzero(RNG(1).random(400) < 0.3)
    given = y.copy()
    given[late] = np.nan
    scores = Scores("AB").update(given, {"A": a, "B": b}, ids=names)
    order = RNG(2).permutation(late)
    scores.bring(names[order[:50]], y[order[:50]]).bring(names[order[50:]], y[order[50:]])
    rows = np.concatenate([np.flatnonzero(~np.isnan(given)), order])
    want = Scores("AB").update(y[rows], {"A": a[rows], "B": b[rows]})
    assert scores.sums.tobytes() == want.sums.tobytes() and not scores.waiting
    assert (scores.rows, scores.rounds) == (400, 400)
    assert comparison(scores).pairs == comparison(want).pairs


def test_late_outcomes_are_guessed_at_from_their_own_stream():
    y, a, b = stream()
    given = y.copy()
    given[[7, 9]] = np.nan
    scores = LaggedScores("AB", lag=3).update(given, {"A": a, "B": b}).bring([9, 7], y[[9, 7]])
    whole = LaggedScores("AB", lag=3).update(y, {"A": a, "B": b})
    np.testing.assert_allclose(scores.totals().losses, whole.totals().losses, rtol=1e-13)
    before = LaggedScores("AB", lag=3).update(given, {"A": a, "B": b})
    np.testing.assert_array_equal(scores.known[2], before.known[2])  # rows 7 and 9 belong to streams 1 and 0
    assert scores.known[0, 0] == 399.0 and scores.known[1, 0] == 400.0
    assert comparison(scores).pairs[0].difference == pytest.approx(comparison(whole).pairs[0].difference, rel=1e-12)


def test_a_bad_late_outcome_is_named_and_changes_nothing():
    scores = Scores("AB").update([1, math.nan, math.nan], [[0.5, 0.5, 0.5], [0.4, 0.4, 0.3]])
    before = scores.sums.tobytes()
    for ids, y, message in (
        ([5], [1], "no row with the id 5 waits"),
        ([1, 1], [1, 1], "id 1 was given twice"),
        ([1], [1, 0], "1 ids were given, but there are 2 outcomes"),
        ([1], [0.5], "row 0, column 'outcome': 0.5 must be 0 or 1"),
        ([1], [math.nan], "nan must be 0 or 1"),
    ):
        with pytest.raises(ValueError, match=message):
            scores.bring(ids, y)
    assert scores.sums.tobytes() == before and len(scores.waiting) == 2
    with pytest.raises(ValueError, match="two rows with missing outcomes have the id 'x'"):
        Scores("AB").update([math.nan] * 2, [[0.5] * 2] * 2, ids=["x", "x"])
    both = Scores("AB").update([1, 0], [[0.5] * 2] * 2) + scores
    assert sorted(both.waiting) == [3, 4] and both.bring([4], [1]).rounds == 4


def test_misses_stay_below_alpha_where_outcomes_come_late():
    streams, m = 150, 80
    missed = np.zeros(6, int)
    for k in range(streams):
        y, p, b = stream(m, k)
        late = RNG(k).random(m) < 0.4
        scores = Scores("AB").update(np.where(late, np.nan, y), {"A": p, "B": b})
        scores.bring(np.flatnonzero(late), y[late])
        pair = comparison(scores).pairs[0]
        truth = float(-np.square(b - p).mean())
        missed += [not i.low <= truth <= i.high for i in (*pair.fixed, *pair.anytime)]
    assert (missed <= binom.ppf(1 - 1e-6, streams, ALPHA)).all()
