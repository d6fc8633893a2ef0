"""Comparisons: intervals that cover what they estimate, at one time and at every time, and what is said of them.

Coverage is simulated with nature and forecasters that drift and react to the past. A test of coverage fails by chance
with probability at most `CHANCE` where the intervals miss exactly as often as they may.
"""

import json
import math
import re

import numpy as np
import pytest
from numba import njit
from scipy.integrate import quad
from scipy.stats import binom

from hindsight.forecast import Finding, Scores, compare, comparison, sequences

ALPHA, CHANCE = 0.05, 1e-6


def allowed(pairs):
    """So many of the intervals may miss."""
    return int(binom.ppf(1.0 - CHANCE, pairs, ALPHA))


# ---------------------------------------------------------------- coverage


@njit(cache=True)
def world(kind, t, past, mean, gap):
    """p, a and b of round t, from the past: the last outcome, a moving mean of outcomes, Sigma (d - E d) so far."""
    u, v = np.random.random(), np.random.random()
    if kind == 0:  # each day by itself, two noisy forecasters
        p = np.random.random()
        return p, min(1.0, max(0.0, p + 0.3 * (u - 0.5))), min(1.0, max(0.0, p + 0.5 * (v - 0.5)))
    if kind == 1:  # seasons; one forecaster follows the outcomes, the other does not
        return 0.5 + 0.45 * math.sin(0.002 * t), mean, 0.5
    if kind == 2:  # rare events
        return 0.02 + 0.01 * u, 0.02, 0.06
    if kind == 3:  # a break, and forecasters who take turns in being right
        return (0.9 if t > 3000 else 0.3), (0.9 if past > 0.5 else 0.1), 0.5
    if kind == 4:  # the largest differences there are
        return 0.5, 1.0, 0.0
    # nature stops all chance once the difference has gone far, so that it stays where it is
    far = abs(gap) > 1.5 * math.sqrt(t + 1.0)
    return (1.0 if far else 0.5), 0.9, 0.4


@njit(cache=True)
def simulate(kind, rounds, seed, table, step, naive):
    """One pair: Sigma d, Sigma d^2, Sigma E d at the end, and whether the bounds were left on the way."""
    np.random.seed(seed)
    s, v, m, past, mean, missed, peeked = 0.0, 0.0, 0.0, 0.0, 0.5, False, False
    for t in range(rounds):
        p, a, b = world(kind, t, past, mean, s - m)
        y = 1.0 if np.random.random() < p else 0.0
        d = (a - y) ** 2 - (b - y) ** 2
        s, v, m = s + d, v + d * d, m + (a - b) * (a + b - 2.0 * p)
        past, mean = y, 0.95 * mean + 0.05 * y
        missed |= abs(s - m) > table[int(math.sqrt(v) / step)]  # the bound at a smaller v: never wider than it may be
        peeked |= t >= 20 and abs(s - m) > naive * math.sqrt(v)
    return s, v, m, missed, peeked


KINDS = range(6)


@pytest.mark.parametrize("kind", KINDS)
def test_at_a_fixed_time_intervals_miss_at_most_alpha(kind):
    pairs, rounds = 5000, 150
    table = np.full(10**4, np.inf)
    found = np.array([simulate(kind, rounds, 7 * k + 1, table, 1.0, 9.9)[:3] for k in range(pairs)])
    gap, v = np.abs(found[:, 0] - found[:, 2]), found[:, 1]
    hoeffding = sequences.hoeffding(ALPHA, rounds)
    bernstein = sequences.bernstein(ALPHA, v, 1.0, rounds)
    assert (gap > hoeffding).sum() <= allowed(pairs)
    assert (gap > bernstein).sum() <= allowed(pairs)
    if kind in (0, 3, 4):  # the test can fail: intervals a third as wide miss more
        assert (gap > bernstein / 3.0).sum() > allowed(pairs)
    if kind == 4:  # and so would one of six tenths of Hoeffding's
        assert (gap > 0.6 * hoeffding).sum() > allowed(pairs)


def test_the_confidence_sequence_misses_anywhere_along_ten_thousand_rounds_at_most_alpha():
    pairs, rounds, step = 5040, 10_000, 0.01
    table = sequences.anytime(ALPHA, (np.arange(10_100) * step) ** 2, 1.0)
    missed, peeked = np.zeros(6, int), np.zeros(6, int)
    for k in range(pairs):
        found = simulate(k % 6, rounds, 13 * k + 5, table, step, 1.96)
        missed[k % 6] += found[3]
        peeked[k % 6] += found[4]
    assert missed.sum() <= allowed(pairs)
    assert (missed <= allowed(pairs // 6)).all()
    assert (peeked > allowed(pairs // 6)).all()  # looking again and again at a fixed-time interval does not


def test_weighted_intervals_cover_the_weighted_mean():
    rng = np.random.default_rng(0)
    missed = np.zeros(3, int)
    for k in range(400):
        m = 40
        p, a, b, c = rng.random(m), rng.random(m), rng.random(m), rng.choice([0.2, 1.0, 5.0], m)
        if k % 2:
            p = np.where(np.arange(m) < 20, 0.1, 0.9)
        y = rng.random(m) < p
        pair = compare(y, {"a": a, "b": b}, c, alpha=ALPHA).pairs[0]
        truth = float(c @ ((a - p) ** 2 - (b - p) ** 2) / c.sum())
        missed += [not i.low <= truth <= i.high for i in (pair.hoeffding, pair.bernstein, pair.anytime)]
    assert (missed <= allowed(400)).all()


# ---------------------------------------------------------------- formulas


@pytest.mark.parametrize("v", [0.0, 0.3, 10.0, 400.0])
@pytest.mark.parametrize("tunes", [(10.0,), (10.0, 1000.0)])
def test_the_boundary_solves_the_mixture(v, tunes):
    alpha = 0.02
    s, total = float(sequences.boundary(v, alpha, tunes)), 0.0
    for tune in tunes:
        level = 2 * math.log(1 / alpha)
        r = tune / (level + math.log1p(level))
        scale = quad(lambda x, r=r: (1 - x) ** (r - 1) * math.exp(r * x - r), 0, 1)[0]
        total += (
            quad(
                lambda x, r=r: (1 - x) ** (r - 1 + v) * math.exp(r * x - r + x * (s + v)), 0, 1, limit=500, epsabs=0.0
            )[0]
            / scale
        )
    assert total / len(tunes) == pytest.approx(1.0 / alpha, rel=1e-7)


def test_the_inequality_behind_it_holds():
    x = np.linspace(-1, 1, 401)[:, None]
    rate = np.linspace(0, 0.999, 200)[None]
    psi = -np.log1p(-rate) - rate
    assert (np.exp(rate * x - psi * x * x) <= 1 + rate * x + 1e-15).all()


def test_boundaries_increase_and_are_finite_for_any_size():
    v = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, 200)])
    for tunes in ((1e-3,), (10.0,), (10.0, 1e3, 1e5, 1e7)):
        u = sequences.boundary(v, 1e-6, tunes)
        assert np.isfinite(u).all() and (np.diff(u) >= 0).all() and u[0] > 0


def test_intervals_are_the_formulas_and_share_alpha_among_pairs():
    rng = np.random.default_rng(0)
    m = 500
    y, c = (rng.random(m) < 0.4).astype(float), rng.choice([0.5, 1.0, 2.0], m)
    h = {k: rng.random(m) for k in "ABC"}
    found = compare(y, h, c, alpha=0.1)
    assert len(found.pairs) == 3
    for pair in found.pairs:
        d = (h[pair.first] - y) ** 2 - (h[pair.second] - y) ** 2
        mean = c @ d / c.sum()
        assert pair.difference == pytest.approx(mean, abs=1e-15)
        share = 0.1 / 3
        half = math.sqrt(2 * math.log(2 / share) * (c @ c)) / c.sum()
        assert pair.hoeffding == pytest.approx((mean - half, mean + half), rel=1e-12)
        wide = 2.0 * sequences.boundary(((c * d) ** 2).sum() / 4.0, share / 2) / c.sum()
        assert pair.anytime == pytest.approx((mean - wide, mean + wide), rel=1e-12)
        assert pair.bernstein == pair.anytime  # fewer rounds than a second tune needs
    half = math.sqrt(math.log(2 * 3 / 0.1) * (c @ c) / 2) / c.sum()
    assert found.choice.half_width == pytest.approx(half, rel=1e-12)
    assert found.choice.best == min(found.means, key=found.means.get)


def test_uniform_convergence_as_the_theory_has_it():
    rng = np.random.default_rng(3)
    y, h = rng.random(1000) < 0.5, rng.random((1000, 20))
    assert compare(y, h).choice.half_width == pytest.approx(math.sqrt(math.log(2 * 20 / 0.05) / 2000), rel=1e-13)


def test_log_and_quadratic_spans():
    y, a, b = [1, 0, 1, 1], [0.7, 0.2, 0.6, 0.8], [0.5, 0.5, 0.5, 0.5]
    pair = compare(y, [a, b], loss="log", epsilon=0.1).pairs[0]
    span = math.log(0.9 / 0.1)
    assert pair.hoeffding.low == max(-span, pair.difference - span * math.sqrt(2 * math.log(40) / 4))
    d = np.log(np.where(y, b, np.subtract(1, b))) - np.log(np.where(y, a, np.subtract(1, a)))
    assert pair.difference == pytest.approx(d.mean(), abs=1e-15)
    pair = compare([3.0, 4.0] * 500, [[3.1, 3.9] * 500, [3.5] * 1000], loss="quadratic", bounds=(2, 5)).pairs[0]
    assert pair.hoeffding.high == pytest.approx(pair.difference + 9 * math.sqrt(2 * math.log(40) / 1000), rel=1e-12)
    assert pair.finding is Finding.CLOSER


def test_a_declared_largest_weight():
    rng = np.random.default_rng(0)
    y, h, c = rng.random(300) < 0.5, rng.random((300, 2)), rng.choice([1.0, 2.0], 300)
    narrow, wide = compare(y, h, c).pairs[0].anytime, compare(y, h, c, max_weight=8.0).pairs[0].anytime
    assert wide.low < narrow.low and narrow.high < wide.high
    void = compare(y, h, c, max_weight=1.5).pairs[0]
    assert void.finding is Finding.VOID and "a weight of 2 was seen, above the declared 1.5" in void.words


# ---------------------------------------------------------------- what is said


def weather(m=4000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(m)
    return (rng.random(m) < p).astype(float), p, np.full(m, 0.5)


def test_the_better_one_is_named_with_a_positive_difference():
    y, a, b = weather()
    for forecasts in ({"A": a, "B": b}, {"B": b, "A": a}):
        found = compare(y, forecasts, anytime=True)
        pair = found.pairs[0]
        assert pair.finding is Finding.CLOSER
        assert pair.words.startswith("A is closer to the truth than B: difference 0.0")
        assert pair.words.endswith("], valid at every time")
        low, high = (abs(v) for v in pair.anytime)
        assert f"in [{min(low, high):.4g}, {max(low, high):.4g}]" in pair.words
        assert found.choice.best == "A"
        assert "fixed in advance" in compare(y, forecasts).pairs[0].words


def test_the_verdict_is_the_interval_asked_for():
    y, a, _ = weather(60)
    for anytime, kind in ((False, "bernstein"), (True, "anytime")):
        for seed in range(40):
            other = np.clip(a + np.random.default_rng(seed).normal(size=60) * seed / 40, 0, 1)
            pair = compare(y, {"A": a, "B": other}, anytime=anytime).pairs[0]
            low, high = getattr(pair, kind)
            if seed:
                assert (pair.finding is Finding.CLOSER) == (low > 0 or high < 0)
                assert (pair.finding is Finding.UNDECIDED) == (low <= 0 <= high)


def test_identical_forecasters_differ_by_exactly_0():
    y, a, b = weather(500)
    found = compare(y, {"A": a, "copy": a.copy(), "B": b})
    pair = found.pairs[0]
    assert pair.difference == 0.0 and pair.finding is Finding.IDENTICAL
    assert pair.words == "A and copy gave the same forecasts: the difference is exactly 0"
    assert pair.hoeffding == pair.bernstein == pair.anytime == (0.0, 0.0)
    assert (found.path(0).low == 0).all() and (found.path(0).high == 0).all()
    assert found.pairs[1].difference == found.pairs[2].difference
    assert compare(y, {"A": 1.0 * y, "B": 1.0 * y}, loss="log").pairs[0].difference == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "log"}, "declare an epsilon"),
        ({"loss": "log", "epsilon": 0.2}, r"row 1, column 'A': 0.1 lies outside the declared \[0.2, 0.8\]"),
        ({"loss": "quadratic"}, "declare bounds"),
        ({"loss": "quadratic", "bounds": (0.05, 2)}, r"row 0, column 'outcome': 0.0 lies outside the declared"),
        ({"loss": "quadratic", "bounds": (-1, 0.95)}, r"row 1, column 'outcome': 1.0 lies outside the declared"),
    ],
)
def test_void_without_a_bound_or_outside_it(options, words):
    y, forecasts = [0, 1, 1], {"A": [0.5, 0.1, 0.5], "B": [0.25, 0.5, 0.75]}
    found = compare(y, forecasts, **options)
    pair = found.pairs[0]
    assert pair.finding is Finding.VOID
    assert (pair.hoeffding, pair.bernstein, pair.anytime) == (None, None, None)
    assert pair.words.startswith("VOID: ")
    assert re.search(words, pair.words)
    assert math.isnan(found.choice.half_width) and "within" not in found.choice.words
    assert np.isnan(found.path().low).all()
    assert any(need.met is False for need in found.assumptions)


def test_infinite_log_losses_are_told():
    found = compare([1, 1], {"A": [0.0, 0.5], "B": [0.5, 0.5], "C": [0.5, 0.0]}, loss="log")
    assert found.means["A"] == found.means["C"] == math.inf and found.means["B"] == math.log(2)
    ab, ac, bc = found.pairs
    assert ab.difference == math.inf and bc.difference == -math.inf and math.isnan(ac.difference)
    assert "both losses are infinite" in ac.words
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["mean_losses"]["A"] is None


def test_one_row_and_a_constant_forecast():
    found = compare([1], {"A": [0.9], "B": [0.2]})
    assert found.pairs[0].finding is Finding.UNDECIDED
    assert found.pairs[0].anytime == (-1.0, 1.0)  # no further than a difference can be
    y, a, b = weather()
    assert compare(y, {"A": a, "constant": b}).pairs[0].finding is Finding.CLOSER


def test_no_comparison_of_one_or_none():
    with pytest.raises(ValueError, match="at least two forecasters, got 1"):
        compare([1, 0], {"A": [0.5, 0.5]})
    with pytest.raises(ValueError, match="no row"):
        compare([], {"A": [], "B": []})
    with pytest.raises(ValueError, match="no row"):
        compare([1], {"A": [0.1], "B": [0.2]}, [0.0])
    for alpha in (0.0, 1.0, math.nan, "x"):
        with pytest.raises(ValueError, match="alpha must"):
            compare([1, 0], {"A": [0.5, 0.5], "B": [0.1, 0.1]}, alpha=alpha)


def test_swapping_two_forecasters_mirrors_everything():
    y, a, b = weather(700)
    one, two = compare(y, {"A": a, "B": b}).pairs[0], compare(y, {"B": b, "A": a}).pairs[0]
    assert one.difference == -two.difference
    for kind in ("hoeffding", "bernstein", "anytime"):
        assert getattr(one, kind) == tuple(-v for v in reversed(getattr(two, kind)))
    assert one.words == two.words


def test_scaling_all_weights_changes_nothing():
    rng = np.random.default_rng(0)
    y, h, c = rng.random(200) < 0.5, rng.random((200, 2)), rng.random(200)
    assert compare(y, h, 8.0 * c).pairs == compare(y, h, c).pairs


def test_streams_and_shards_give_the_same_comparison():
    y, a, b = weather(900)
    whole = compare(y, {"A": a, "B": b})
    scores = [
        Scores("AB").update(y[k : k + 300], {"A": a[k : k + 300], "B": b[k : k + 300]}) for k in range(0, 900, 300)
    ]
    joined = comparison(scores[0] + scores[1] + scores[2]).pairs[0]
    assert joined.anytime == pytest.approx(whole.pairs[0].anytime, rel=1e-12)
    assert joined.finding is whole.pairs[0].finding


def test_everything_is_said_and_ready_for_json():
    y, a, b = weather(300)
    found = compare(y, {"A": a, "B": b}, np.linspace(1, 2, 300))
    text = str(found)
    for words in ("fixed before its outcome", "number of rounds was fixed", "weights were fixed in advance", "within"):
        assert words in text
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["pairs"][0]["anytime"] == list(found.pairs[0].anytime)
    assert plain["estimand"].startswith("the mean over the rounds of E[difference | past]")
