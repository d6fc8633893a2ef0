"""Comparisons: intervals that cover what they estimate, at one time and at every time, and what is said of them.

Coverage is simulated with nature and forecasters that drift and react to the past. A test of coverage fails by chance
with probability at most `CHANCE` where the intervals miss exactly as often as they may.
"""

import itertools
import json
import math
import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

import naive_forecast
from conftest import many, nightly
from hindsight.forecast import Finding, Intervals, Scores, compare, comparison, mixtures, stream
from hindsight.forecast.evidence import closed
from hindsight.forecast.intervals import Promise, normal, stacked, tuned
from hindsight.forecast.stream import LaggedScores

ALPHA, CHANCE = 0.05, 1e-6
THIN = 6  # sequences are looked at in every so many points of a path


def allowed(pairs):
    """So many of the intervals may miss."""
    return int(binom.ppf(1.0 - CHANCE, pairs, ALPHA))


# ---------------------------------------------------------------- coverage


def played(kind, rounds, seed, loss="square"):
    """A stream: its scores, Sigma E[d | past] at the points of the path, and its differences."""
    p, a, b, y = naive_forecast.stream(kind, rounds, seed)
    if loss == "log":
        a, b = np.clip(a, 0.01, 0.99), np.clip(b, 0.01, 0.99)
    scores = Scores("AB", loss).update(y, {"A": a, "B": b})
    if loss == "square":
        expected = (a - b) * (a + b - 2.0 * p)
    else:
        expected = p * np.log(b / a) + (1.0 - p) * np.log((1.0 - b) / (1.0 - a))
    points = scores.path()[::-THIN][::-1]
    return scores, np.cumsum(expected)[[point.rounds - 1 for point in points]], points


def misses(kind, rounds, seed, loss="square"):
    """Whether each kind of interval misses at the end, and each kind of sequence anywhere; and one peeked at."""
    _, truth, points = played(kind, rounds, seed, loss)
    at, end = stacked(points), stacked(points[-1:])
    out = []
    for by in Intervals._fields:
        low, high = Promise(ALPHA, 1000, False).ends(end, by)
        out.append(not low[0, 0] - 1e-12 <= truth[-1] / rounds <= high[0, 0] + 1e-12)
        low, high = Promise(ALPHA, 1000, True).ends(at, by)
        mean = truth / at.weight
        out.append(bool(((mean < low[:, 0] - 1e-12) | (mean > high[:, 0] + 1e-12)).any()))
    gap, v = np.abs(at.differences[:, 0] - truth), at.first[:, 0] ** 2 * at.pairs[:, 0, stream.MOMENT]
    out.append(bool((gap > 1.96 * np.sqrt(v))[4:].any()))
    return np.array(out)


@nightly(but=["square-iid", "log-react*"])
@pytest.mark.parametrize("kind", range(len(naive_forecast.KINDS)), ids=naive_forecast.KINDS)
@pytest.mark.parametrize("loss", ["square", "log"])
def test_intervals_and_sequences_miss_at_most_alpha(kind, loss):
    streams, rounds = 100, 1000
    missed = sum(misses(kind, rounds, 13 * k + 5, loss) for k in range(streams))
    assert (missed[:-1] <= allowed(streams)).all(), missed
    if kind in (0, 4, 6):  # the test can fail: looking again and again at a fixed-time interval misses
        assert missed[-1] > allowed(streams)


@nightly
def test_forecasts_that_react_break_hoeffding_and_nothing_else():
    """Forecasters who agree once their difference has gone far: the sum of squared ranges is then no constant."""
    streams, rounds = 400, 4000
    missed = sum(misses(8, rounds, 17 * k + 3) for k in range(streams))
    at = {(by, anytime): missed[2 * k + anytime] for k, by in enumerate(Intervals._fields) for anytime in (0, 1)}
    assert at.pop(("ranges", 0)) > allowed(streams)
    assert max(at.values()) <= allowed(streams)
    needs = compare([1, 0], [[0.5, 0.5], [0.1, 0.2]], by="ranges").assumptions
    assert any("did not react to earlier outcomes" in need.text for need in needs)


def test_weighted_intervals_cover_the_weighted_mean():
    rng = np.random.default_rng(0)
    missed = np.zeros(6, int)
    streams = many(100, 400)
    for k in range(streams):
        m = 40
        p, a, b, c = rng.random(m), rng.random(m), rng.random(m), rng.choice([0.2, 1.0, 5.0], m)
        if k % 2:
            p = np.where(np.arange(m) < 20, 0.1, 0.9)
        y = rng.random(m) < p
        pair = compare(y, {"a": a, "b": b}, c, alpha=ALPHA).pairs[0]
        truth = float(c @ ((a - p) ** 2 - (b - p) ** 2) / c.sum())
        missed += [not i.low <= truth <= i.high for i in (*pair.fixed, *pair.anytime)]
    assert (missed <= allowed(streams)).all()


@pytest.mark.parametrize(("by", "theirs"), [("mixture", "empirical Bernstein"), ("ranges", "Hoeffding")])
def test_sequences_are_sharper_than_those_of_choe_and_ramdas(by, theirs):
    """Never more than 1.05 times as wide; in the median over times and the plain streams, 1.3 times narrower.

    The default is compared with their default, and what rests on ranges alone with theirs, tuned alike for 10 rounds.
    """
    plain, all_of_them = [], []
    for kind, name in enumerate(naive_forecast.KINDS):
        _, a, b, y = naive_forecast.stream(kind, 10_000, 1)
        path = compare(y, {"A": a, "B": b}, anytime=True, by=by, horizon=10 if by == "ranges" else None).path()
        keep = np.searchsorted(path.rounds, np.geomspace(10, 10_000, 7).astype(int))
        if theirs == "Hoeffding":
            sums = naive_forecast.choe_ramdas_hoeffding(path.rounds[keep], ALPHA)
        else:
            sums = naive_forecast.choe_ramdas((a - y) ** 2 - (b - y) ** 2, ALPHA)(path.rounds[keep])
        half = np.minimum(sums / path.rounds[keep], 1.0)  # no mean difference is beyond 1
        ratios = ((path.high - path.low)[keep] / 2.0 / half).tolist()
        all_of_them += ratios
        plain += ratios if name in ("iid", "drifting", "rare", "near", "adversary") else []
    assert max(all_of_them) <= 1.05
    assert np.median(plain) <= 1 / 1.3


@nightly(but=["30"])
@pytest.mark.parametrize("horizon", [None, 30, 10**5])
def test_an_interval_at_one_time_is_never_wider_than_the_sequence(horizon):
    sharper = 0
    for kind in range(len(naive_forecast.KINDS)):
        for rounds in (1, 2, 5, 20, 92, 300, 2000):
            _, a, b, y = naive_forecast.stream(kind, rounds, rounds)
            for alpha in (0.5, 0.05, 1e-6):
                pair = compare(y, {"A": a, "B": b}, alpha=alpha, horizon=horizon).pairs[0]
                for fixed, always in zip(pair.fixed, pair.anytime, strict=True):
                    assert always.low <= fixed.low + 1e-12 and fixed.high <= always.high + 1e-12
                    sharper += fixed.high - fixed.low < 0.9 * (always.high - always.low)
    assert sharper > 50


# ---------------------------------------------------------------- evidence


def when_stopped(log_e, rng):
    """ln e when it first reaches a level, or at the latest at a time drawn beforehand."""
    last, level = rng.integers(log_e.size), math.log(rng.choice([1.5, 3.0, 20.0]))
    reached = np.flatnonzero(log_e[: last + 1] >= level)
    return float(log_e[reached[0] if reached.size else last])


def test_e_values_are_at_most_1_in_the_mean_at_any_stopping_time_under_the_null():
    streams, rounds = many(80, 300), 150
    rng = np.random.default_rng(0)
    stopped, tops = [], []
    for k in range(streams):
        a, b = rng.random(rounds), rng.random(rounds)
        y = rng.random(rounds) < (a + b) / 2.0  # both are as far from the truth: the edge of the null
        path = compare(y, {"A": a, "B": b}).path()
        log_e = path.log_first if k % 2 else path.log_second
        stopped.append(math.exp(when_stopped(log_e, rng)))
        tops.append(math.exp(log_e.max()))
    assert np.mean(stopped) <= 1.0 + 5.0 * np.std(stopped) / math.sqrt(streams)
    for level in (2.0, 5.0, 20.0):
        assert (np.array(tops) >= level).sum() <= binom.ppf(1.0 - CHANCE, streams, 1.0 / level)


def test_evidence_and_confidence_sequence_say_the_same():
    y, a, b = weather(600)
    found = compare(y, {"A": a, "B": b}, alpha=0.02, anytime=True)
    path, level = found.path(), math.log(2.0 / 0.02)
    for log_e, out in ((path.log_first, path.high < 0.0), (path.log_second, path.low > 0.0)):
        clear = np.abs(log_e - level) > 1e-6
        assert ((log_e >= level) == out)[clear].all()
    pair = found.pairs[0]
    assert pair.first_better.log_e == pytest.approx(path.log_first[-1], rel=1e-12)
    assert pair.first_better.p == pytest.approx(math.exp(-path.log_first.max()), rel=1e-9)
    assert pair.second_better.p == 1.0 and pair.second_better.words == "no more than weak"
    assert pair.evidence.startswith("evidence that A is better than B: decisive (e = ")


# ---------------------------------------------------------------- forecasts made several rounds ahead


def late(rounds, lag, rng):
    """Nature repeats itself for `lag` rounds, which nobody who forecasts so far ahead can know."""
    a, b = 0.5 + 0.4 * rng.random(rounds), 0.5 - 0.4 * rng.random(rounds)
    y = np.repeat(rng.random(-(-rounds // lag)) < 0.5, lag)[:rounds].astype(float)
    return y, a, b, (a - b) * (a + b - 1.0)


@nightly
def test_lagged_intervals_cover_where_plain_ones_do_not():
    rng, lag, rounds, streams = np.random.default_rng(0), 8, 400, 60
    missed, plain = np.zeros(6, int), 0
    for _ in range(streams):
        y, a, b, expected = late(rounds, lag, rng)
        pair = compare(y, {"A": a, "B": b}, lag=lag).pairs[0]
        truth = float(expected.mean())
        missed += [not i.low <= truth <= i.high for i in (*pair.fixed, *pair.anytime)]
        other = compare(y, {"A": a, "B": b}).pairs[0].fixed.ranges
        plain += not other.low <= truth <= other.high
    assert (missed <= allowed(streams)).all()
    assert plain > allowed(streams)


def worse_in_one_class(rounds, lag, rng, fresh):
    """A is as good as B after every `lag` rounds and better in between, but worse in the last of them (on Sundays).

    Outcomes are drawn for every round, or for `lag` rounds at once: when round t is forecast, neither is known.
    """
    last = np.arange(rounds) % lag == lag - 1
    y = (rng.random(rounds) < 0.5) * 1.0 if fresh else late(rounds, lag, rng)[0]
    return y, {"A": np.where(last, 0.95, 0.5), "B": np.where(last, 0.5, 0.5 - 0.45 / math.sqrt(lag - 1))}


@pytest.mark.parametrize("lag", [2, 7])
def test_a_forecaster_that_is_worse_in_one_residue_class_alone_stays_among_the_best(lag):
    rng, streams, left_out, reached = np.random.default_rng(lag), many(20, 200), 0, 0
    for k in range(streams):
        found = compare(*worse_in_one_class(140 * lag, lag, rng, k % 2), lag=lag)
        left_out += "A" not in found.best.by_evidence
        reached += found.pairs[0].second_better.p <= ALPHA
        assert found.pairs[0].finding is not Finding.UNDECIDED or "decisive" not in found.pairs[0].evidence
    assert left_out <= allowed(streams) and reached <= allowed(streams)


@pytest.mark.parametrize("lag", [2, 7])
def test_evidence_of_interleaved_streams_is_the_naive_one_and_below_their_mean(lag):
    rng = np.random.default_rng(lag)
    m = 60
    y, a, b, c = (rng.random(m) < 0.3) * 1.0, rng.random(m), rng.random(m), rng.choice([0.5, 1.0, 2.0], m)
    c[[5, 23]], y[[9, 40]] = 0.0, np.nan
    found = compare(y, {"A": a, "B": b}, c, lag=lag, horizon=500)
    log_e, streams = naive_forecast.lagged(y, a, b, c, lag, 500)
    assert found.pairs[0].second_better.log_e == pytest.approx(log_e, rel=1e-9)
    assert log_e <= np.logaddexp.reduce(streams) - 2.0 * math.log(lag)
    path, alpha = found.path(), 0.02
    for anytime, level in ((False, 2.0 / (alpha * lag)), (True, 2.0 / alpha)):  # e is divided by lag
        inside = np.array([p.low < 0.0 for p in at_points(found, Promise(alpha, 500, anytime, lag))])
        assert ((path.log_second < math.log(level)) == inside)[np.abs(path.log_second - math.log(level)) > 1e-6].all()


def at_points(found, promise):
    return [promise.intervals(point)[0].mixture for point in found.points]


def test_no_smaller_factor_than_the_number_of_streams_is_free():
    """Two streams, outcomes of the second known from those of the first: the mean of two fair games goes too far.

    In each of four turns the first game wins or loses a quarter, and the second the opposite right after it.
    """
    reached = 0
    for signs in itertools.product((1, -1), repeat=4):
        one = 1.0 + 0.25 * np.cumsum(signs)
        two = 2.0 - one
        between = (one + np.append(1.0, two[:-1])) / 2.0
        assert (one >= 0).all() and (two >= 0).all()
        reached += max(between.max(), 1.0) >= 1.125
    assert reached / 16 > 1 / 1.125


def test_lagged_scores_do_not_depend_on_chunks_and_add_up():
    y, a, b = weather(500)
    whole = LaggedScores("AB", lag=3).update(y, {"A": a, "B": b})
    parts, joined = LaggedScores("AB", lag=3), LaggedScores("AB", lag=3)
    for start in range(0, 500, 70):
        rows = slice(start, start + 70)
        parts.update(y[rows], {"A": a[rows], "B": b[rows]})
        joined = joined + LaggedScores("AB", lag=3).update(y[rows], {"A": a[rows], "B": b[rows]})
    assert parts.sums.tobytes() == whole.sums.tobytes()
    assert comparison(parts).pairs == comparison(whole).pairs
    assert joined.rounds == joined.rows == 500
    more, want = (comparison(each.update([1.0], [[0.7], [0.2]])).pairs[0] for each in (joined, whole))
    assert more.difference == pytest.approx(want.difference, rel=1e-12)
    assert more.anytime.ranges == pytest.approx(want.anytime.ranges, rel=1e-12)
    assert more.anytime.mixture == pytest.approx(want.anytime.mixture, abs=2e-3)  # guesses begin anew
    np.testing.assert_allclose(joined.known, whole.known, rtol=1e-12)
    with pytest.raises(ValueError, match="with the same lag"):
        whole + LaggedScores("AB", lag=2)
    with pytest.raises(ValueError, match="with the same lag"):
        Scores("AB") + whole
    found = comparison(LaggedScores("AB", lag=3).update(y, {"A": a, "B": b}))
    mean = float(np.mean((a - y) ** 2 - (b - y) ** 2))
    assert found.rounds == 500 and found.pairs[0].difference == pytest.approx(mean)
    assert any("the 3 rounds up to its own" in need.text for need in found.assumptions)
    with pytest.raises(ValueError, match="lag must be a whole number"):
        compare(y, {"A": a, "B": b}, lag=0)


# ---------------------------------------------------------------- the best


def closed_by_hand(e, i):
    others = [k for k in range(len(e)) if k != i]
    sets = [[i, *some] for n in range(len(e)) for some in itertools.combinations(others, n)]
    return min(sum(e[k] for k in one) / len(one) for one in sets)


def test_closure_is_that_over_all_intersections():
    rng = np.random.default_rng(0)
    for _ in range(50):
        e = np.exp(3.0 * rng.normal(size=5))
        np.testing.assert_allclose(np.exp(closed(np.log(e))), [closed_by_hand(e, i) for i in range(5)], rtol=1e-12)


def test_the_best_forecasters_stay_in_the_set_and_worse_ones_leave():
    rng = np.random.default_rng(0)
    left = 0
    draws = many(25, 100)
    for _ in range(draws):
        p = rng.random(200)
        y = rng.random(200) < p
        h = {"A": p, "B": 1.0 * p + 1e-9, "C": np.clip(p + 0.4, 0, 1), "D": 1.0 - p}
        found = compare(y, h, alpha=0.1)
        left += "A" not in found.best.by_evidence
    assert left <= binom.ppf(1.0 - CHANCE, draws, 0.1)
    assert "D" not in found.best.by_evidence and "D" not in found.best.by_intervals
    assert f"among the best, by the evidence: {', '.join(found.best.by_evidence)}" in str(found)
    assert found.best.log_e["D"] >= math.log(10)


# ---------------------------------------------------------------- formulas


@pytest.mark.parametrize("kind", mixtures.KINDS)
def test_mixtures_are_the_naive_ones(kind):
    rng = np.random.default_rng(1)
    m = 60
    y, a, b, c = (rng.random(m) < 0.3) * 1.0, rng.random(m), rng.random(m), rng.choice([0.5, 1.0, 2.0], m)
    x, ends = c * ((a - y) ** 2 - (b - y) ** 2), c * np.array([a**2 - b**2, (1 - a) ** 2 - (1 - b) ** 2])
    low, high = ends.min(axis=0), ends.max(axis=0)
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]]) / np.concatenate([[1.0], np.cumsum(c)[:-1]])
    guess = np.clip(c * before, low, high)
    now = Scores("AB").update(y, {"A": a, "B": b}, c).totals()
    unit = float(now.first[0])
    assert unit == high[0] - low[0]
    for s in (-1.0, 0.0, 3.0, 40.0):
        want = naive_forecast.log_mixture(s, x, low, high, guess, 500, kind)
        assert mixtures.log_mixture(s / unit, now.side(True), 500, kind)[0] == pytest.approx(want, rel=1e-9)
        want = naive_forecast.log_mixture(s, -x, -high, -low, -guess, 500, kind)
        assert mixtures.log_mixture(s / unit, now.side(False), 500, kind)[0] == pytest.approx(want, rel=1e-9)
    for alpha in (0.3, 0.05, 1e-9):
        u = mixtures.boundary(alpha, now.side(True), 500, kind)
        assert mixtures.log_mixture(u, now.side(True), 500, kind)[0] == pytest.approx(-math.log(alpha), abs=1e-9)


def test_the_inequalities_behind_them_hold():
    x = np.linspace(-1, 1, 401)[:, None]
    rate = np.linspace(0, mixtures.REACH, 200)[None]
    psi = -np.log1p(-rate) - rate
    assert (np.exp(rate * x - psi * x * x) <= 1 + rate * x + 1e-15).all()
    bound = sum(q * rate ** (j + 2) for j, q in enumerate(mixtures.COEFFICIENTS))
    assert (bound >= psi - 1e-15).all() and (bound <= 1.05 * psi + 1e-15)[rate <= 0.5].all()


def test_the_normal_mixture_is_the_integral():
    v, rho, alpha = 3.0, 0.7, 0.05
    s = float(normal(alpha, v, rho))
    density = norm(scale=rho**-0.5).pdf
    assert quad(lambda r: density(r) * math.exp(r * s - r * r * v / 2), -40, 40)[0] == pytest.approx(
        1 / alpha, rel=1e-7
    )


def test_boundaries_are_finite_for_any_size():
    for scale in (1e-150, 1e-6, 1.0, 1e9):
        y = np.tile([1.0, 0.0], 500)
        h = [scale * np.linspace(-1, 1, 1000), np.zeros(1000)]
        pair = compare(scale * y, h, loss="quadratic", bounds=(0, scale)).pairs[0]
        for interval in (*pair.fixed, *pair.anytime):
            assert math.isfinite(interval.low) and interval.low <= pair.difference <= interval.high


def test_intervals_are_the_formulas_and_share_alpha_among_pairs():
    rng = np.random.default_rng(0)
    m = 500
    y, c = (rng.random(m) < 0.4).astype(float), rng.choice([0.5, 1.0, 2.0], m)
    h = {k: rng.random(m) for k in "ABC"}
    found = compare(y, h, c, alpha=0.1)
    assert len(found.pairs) == 3
    share = 0.1 / 3
    for pair in found.pairs:
        one, two = h[pair.first], h[pair.second]
        d = (one - y) ** 2 - (two - y) ** 2
        mean = c @ d / c.sum()
        assert pair.difference == pytest.approx(mean, abs=1e-15)
        proxy = float(np.square(c * (one - two)).sum())  # the ranges are 2 c |a - b|
        half = math.sqrt(math.log(2 / share) * 4.0 * proxy / 2.0) / c.sum()
        assert pair.fixed.ranges == pytest.approx((mean - half, mean + half), rel=1e-12)
        first = 2.0 * c[0] * abs(one[0] - two[0])
        rho = tuned(share, 1000 * first**2 / 4)
        half = math.sqrt((proxy + rho) * math.log((proxy + rho) / (rho * share**2))) / c.sum()
        assert pair.anytime.ranges == pytest.approx((mean - half, mean + half), rel=1e-12)
    best = found.choice.best
    assert best == min(found.means, key=found.means.get)
    mine = [p for p in found.pairs if best in (p.first, p.second)]
    ends = [p.fixed.mixture.high if p.first == best else -p.fixed.mixture.low for p in mine]
    assert found.choice.within == max(0.0, *ends)


def test_log_and_quadratic_ranges():
    y, a, b = [1, 0, 1, 1], np.array([0.7, 0.2, 0.6, 0.8]), np.full(4, 0.5)
    pair = compare(y, [a, b], loss="log").pairs[0]
    s = np.log(b / (1 - b)) - np.log(a / (1 - a))
    half = math.sqrt(math.log(40) * (s @ s) / 2) / 4
    ends = np.array([np.log(b / a), np.log((1 - b) / (1 - a))])
    cut = ends.min(axis=0).mean(), ends.max(axis=0).mean()
    want = max(cut[0], pair.difference - half), min(cut[1], pair.difference + half)
    assert pair.fixed.ranges == pytest.approx(want, rel=1e-12)
    a, b = np.tile([3.1, 3.9], 500), np.full(1000, 3.5)
    pair = compare([3.0, 4.0] * 500, [a, b], loss="quadratic", bounds=(2, 5)).pairs[0]
    half = math.sqrt(math.log(40) * np.square(2 * 3 * (a - b)).sum() / 2) / 1000
    assert pair.fixed.ranges.high == pytest.approx(pair.difference + half, rel=1e-12)
    assert pair.finding is Finding.CLOSER


def test_half_points_are_numbers_between_0_and_1():
    y, h = [0.5, 1.0, 0.0, 0.5], {"A": [0.5, 0.9, 0.1, 0.6], "B": [0.6, 0.7, 0.2, 0.4]}
    pair = compare(y, h, loss="quadratic", bounds=(0, 1)).pairs[0]
    assert pair.finding is Finding.UNDECIDED and pair.fixed is not None


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
        low, high = (abs(v) for v in pair.anytime.mixture)
        assert f"in [{min(low, high):.4g}, {max(low, high):.4g}]" in pair.words
        assert found.choice.best == "A"
        assert "fixed in advance" in compare(y, forecasts).pairs[0].words


@pytest.mark.parametrize("by", mixtures.KINDS)
def test_the_verdict_is_the_interval_asked_for(by):
    y, a, _ = weather(60)
    for anytime, kind in ((False, "fixed"), (True, "anytime")):
        for seed in range(40):
            other = np.clip(a + np.random.default_rng(seed).normal(size=60) * seed / 40, 0, 1)
            pair = compare(y, {"A": a, "B": other}, anytime=anytime, by=by).pairs[0]
            low, high = getattr(getattr(pair, kind), by)
            if seed:
                assert (pair.finding is Finding.CLOSER) == (low > 0 or high < 0)
                assert (pair.finding is Finding.UNDECIDED) == (low <= 0 <= high)
    with pytest.raises(ValueError, match="by must be one of"):
        compare(y, {"A": a, "B": a}, by="luck")
    with pytest.raises(ValueError, match="horizon"):
        compare(y, {"A": a, "B": a}, horizon=0)


def test_identical_forecasters_differ_by_exactly_0():
    y, a, b = weather(500)
    found = compare(y, {"A": a, "copy": a.copy(), "B": b})
    pair = found.pairs[0]
    assert pair.difference == 0.0 and pair.finding is Finding.IDENTICAL
    assert pair.words == "A and copy gave the same forecasts: the difference is exactly 0"
    assert pair.fixed == pair.anytime == ((0.0, 0.0),) * 3
    assert pair.evidence == "" and pair.first_better.log_e == 0.0
    assert (found.path(0).low == 0).all() and (found.path(0).high == 0).all()
    assert found.pairs[1].difference == found.pairs[2].difference
    assert compare(y, {"A": 1.0 * y, "B": 1.0 * y}, loss="log").pairs[0].difference == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "log"}, "a forecast of exactly 0 or 1 can have an infinite log loss"),
        ({"loss": "quadratic"}, "declare bounds"),
        ({"loss": "quadratic", "bounds": (0.05, 2)}, r"row 0, column 'outcome': 0.0 lies outside the declared"),
        ({"loss": "quadratic", "bounds": (-1, 0.95)}, r"row 1, column 'outcome': 1.0 lies outside the declared"),
    ],
)
def test_void_without_a_bound_or_outside_it(options, words):
    y, forecasts = [0, 1, 1], {"A": [0.5, 1.0, 0.5], "B": [0.25, 0.5, 0.75]}
    found = compare(y, forecasts, **options)
    pair = found.pairs[0]
    assert pair.finding is Finding.VOID
    assert (pair.fixed, pair.anytime, pair.first_better, pair.second_better) == (None,) * 4
    assert pair.words.startswith("VOID: ")
    assert re.search(words, pair.words)
    assert found.best is None and math.isnan(found.choice.within) and "within" not in found.choice.words
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
    # no further than this difference can be: 0.1^2 - 0.8^2 or 0.9^2 - 0.2^2
    assert found.pairs[0].anytime.mixture == pytest.approx((-0.63, 0.77), rel=1e-15)
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
    for mine, other in zip((*one.fixed, *one.anytime), (*two.fixed, *two.anytime), strict=True):
        assert mine == tuple(-v for v in reversed(other))
    assert (one.first_better, one.second_better) == (two.second_better, two.first_better)
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
    assert joined.difference == pytest.approx(whole.pairs[0].difference, rel=1e-12)
    assert joined.anytime.ranges == pytest.approx(whole.pairs[0].anytime.ranges, rel=1e-12)
    assert joined.anytime.mixture == pytest.approx(whole.pairs[0].anytime.mixture, rel=0.01)  # guesses begin anew
    assert joined.finding is whole.pairs[0].finding


def test_everything_is_said_and_ready_for_json():
    y, a, b = weather(300)
    found = compare(y, {"A": a, "B": b}, np.linspace(1, 2, 300))
    text = str(found)
    for words in ("fixed before its outcome", "number of rounds was fixed", "each weight was fixed before", "within"):
        assert words in text
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["pairs"][0]["anytime"]["mixture"] == list(found.pairs[0].anytime.mixture)
    assert plain["estimand"].startswith("the mean over the rounds of E[difference | past]")
