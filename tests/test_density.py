"""Densities against slow versions of their predictives, scipy's, and the laws they all keep."""

import itertools
import json
import math

import numpy as np
import pytest
import scipy.stats as st
from hypothesis import given
from hypothesis import strategies as hs
from scipy.special import gammaln

import hindsight
from hindsight import density
from hindsight.certificates.theorems import KT, Verdict, add_half, add_one
from hindsight.density import (
    Bernoulli,
    Categorical,
    Exponential,
    FullGaussian,
    Gamma,
    Gaussian,
    Histogram,
    Keyed,
    NGram,
    Poisson,
    Product,
)
from hindsight.density.certificate import judge
from hindsight.density.ngram import END, UNKNOWN
from hindsight.density.online import OnlineDensity
from hindsight.errors import ModelError, RowError


def rng(seed=0):
    return np.random.default_rng(seed)


# ---------------------------------------------------------------- slow versions, from the predictives' definitions


def naive_dirichlet(symbols, alpha, keep=1.0):
    """Log probabilities of (n_i + a_i)/(n + sum a), each before its symbol is counted; counts fade by keep."""
    counts, out = np.zeros(len(alpha)), []
    for x in symbols:
        out.append(math.log((counts[x] + alpha[x]) / (counts.sum() + sum(alpha))))
        counts *= keep
        counts[x] += 1
    return np.array(out)


def naive_restaurant(symbols, theta):
    counts, out = {}, []
    for x in symbols:
        out.append(math.log(counts.get(x, theta) / (sum(counts.values()) + theta)))
        counts[x] = counts.get(x, 0) + 1
    return np.array(out)


def naive_poisson(xs, a, b, keep=1.0):
    out, total, n = [], 0.0, 0.0
    for x in xs:
        out.append(st.nbinom.logpmf(x, a + total, (b + n) / (b + n + 1)))
        total, n = keep * total + x, keep * n + 1
    return np.array(out)


def naive_gamma(xs, shape, a, b, keep=1.0):
    out, total, n = [], 0.0, 0.0
    for x in xs:
        out.append(st.betaprime.logpdf(x, shape, a + shape * n, scale=b + total))
        total, n = keep * total + x, keep * n + 1
    return np.array(out)


def naive_gaussian(xs, mean, scale, strength, dof, keep=1.0):
    """The Normal-Gamma posterior from weighted rows (weights fade by keep), and its Student t."""
    out = []
    for t in range(len(xs)):
        w = keep ** np.arange(t - 1, -1, -1.0)
        n = w.sum()
        average = (w * xs[:t]).sum() / n if t else 0.0
        squares = (w * (xs[:t] - average) ** 2).sum()
        k, a = strength + n, 0.5 * (dof + n)
        b = 0.5 * dof * scale**2 + 0.5 * squares + 0.5 * strength * n / k * (average - mean) ** 2
        m = (strength * mean + n * average) / k
        out.append(st.t.logpdf(xs[t], 2 * a, m, math.sqrt(b * (k + 1) / (a * k))))
    return np.array(out)


def naive_full(X, mean, scale, strength, dof, keep=1.0):
    out, d = [], X.shape[1]
    for t in range(len(X)):
        w = keep ** np.arange(t - 1, -1, -1.0)
        n = w.sum()
        average = (w[:, None] * X[:t]).sum(axis=0) / n if t else np.full(d, mean, float)
        scatter = (X[:t] - average).T @ (w[:, None] * (X[:t] - average))
        k, nu = strength + n, d - 1 + dof + n
        off = (average - mean)[:, None]
        psi = dof * scale**2 * np.eye(d) + scatter + strength * n / k * (off @ off.T)
        m, df = (strength * mean + n * average) / k, nu - d + 1
        out.append(st.multivariate_t.logpdf(X[t], m, psi * (k + 1) / (k * df), df))
    return np.array(out)


CASES = {
    "kt": (lambda **o: Categorical(4, **o), lambda r, m: r.integers(0, 4, m)),
    "laplace": (lambda **o: Categorical(3, 1.0, **o), lambda r, m: r.integers(0, 3, m)),
    "dirichlet": (lambda **o: Categorical(list("abc"), [0.2, 1.0, 3.0], **o), lambda r, m: r.choice(list("abc"), m)),
    "growing": (lambda **o: Categorical(alpha=1.5, **o), lambda r, m: r.zipf(1.5, m).astype(str)),
    "bernoulli": (lambda **o: Bernoulli(0.7, 2.0, **o), lambda r, m: r.integers(0, 2, m)),
    "poisson": (lambda **o: Poisson(2.0, 0.5, **o), lambda r, m: r.poisson(6.0, m)),
    "exponential": (lambda **o: Exponential(1.5, 2.0, **o), lambda r, m: r.exponential(3.0, m)),
    "gamma": (lambda **o: Gamma(2.5, 1.5, 2.0, **o), lambda r, m: r.gamma(2.5, 3.0, m)),
    "gaussian": (lambda **o: Gaussian(1.0, 2.0, 0.5, 3.0, **o), lambda r, m: r.normal(5.0, 2.0, m)),
    "columns": (lambda **o: Gaussian(columns=3, **o), lambda r, m: r.normal(5.0, 2.0, (m, 3))),
    "histogram": (lambda **o: Histogram(0.0, 10.0, 7, **o), lambda r, m: r.uniform(0.0, 10.0, m)),
    "full": (lambda **o: FullGaussian(3, 1.0, 2.0, 0.5, 3.0, **o), lambda r, m: r.normal(5.0, 2.0, (m, 3))),
}
each = pytest.mark.parametrize("name", CASES)


@pytest.mark.parametrize("keep", [1.0, 0.9])
def test_progressive_predictions_are_the_definitions(keep):
    r = rng(1)
    x = r.integers(0, 4, 60)
    got = Categorical(4, [0.5, 1.0, 2.0, 0.1], forget=keep).progressive(x)
    np.testing.assert_allclose(got, naive_dirichlet(x, [0.5, 1.0, 2.0, 0.1], keep), rtol=1e-12)
    x = r.poisson(4.0, 60)
    np.testing.assert_allclose(Poisson(2, 3, forget=keep).progressive(x), naive_poisson(x, 2, 3, keep), rtol=1e-10)
    x = r.exponential(2.0, 60)
    got = Exponential(2, 3, forget=keep).progressive(x)
    np.testing.assert_allclose(got, naive_gamma(x, 1.0, 2, 3, keep), rtol=1e-10, atol=1e-10)
    got = Gamma(2.5, 2, 3, forget=keep).progressive(x)
    np.testing.assert_allclose(got, naive_gamma(x, 2.5, 2, 3, keep), rtol=1e-10, atol=1e-10)
    x = r.normal(7.0, 2.0, 60)
    got = Gaussian(1, 2, 3, 4, forget=keep).progressive(x)
    np.testing.assert_allclose(got, naive_gaussian(x, 1, 2, 3, 4, keep), rtol=1e-10, atol=1e-10)
    X = r.normal(2.0, 1.0, (40, 3)) @ r.normal(0.0, 1.0, (3, 3))
    got = FullGaussian(3, 1, 2, 3, 4, forget=keep).progressive(X)
    np.testing.assert_allclose(got, naive_full(X, 1, 2, 3, 4, keep), rtol=1e-9, atol=1e-10)


def test_a_growing_alphabet_is_the_restaurant():
    words = list("abracadabra")
    got = Categorical(alpha=0.7).progressive(words)
    np.testing.assert_allclose(got, naive_restaurant(words, 0.7), rtol=1e-12)


def test_predictives_are_scipys_to_1e_10_also_after_many_rows():
    r = rng(2)
    z = np.linspace(-4.0, 14.0, 25)
    for m in (0, 1, 5, 100_000):
        g = Gaussian(1.0, 2.0, 3.0, 4.0).update(r.normal(4.0, 2.0, m))
        mean, k, a, b = (float(v[0]) for v in g.posterior())
        want = st.t.logpdf(z, 2 * a, mean, math.sqrt(b * (k + 1) / (a * k)))
        np.testing.assert_allclose(g.logpdf(z), want, rtol=0, atol=1e-10)
        x = r.poisson(3.0, m)
        p = Poisson(2.0, 3.0).update(x)
        want = st.nbinom.logpmf(np.arange(40), 2.0 + x.sum(), (3.0 + m) / (4.0 + m))
        # scipy's own log-gammas of 1e5 are off by 1e-11 or so each
        np.testing.assert_allclose(p.logpmf(np.arange(40)), want, rtol=1e-10, atol=1e-9 if m > 5 else 1e-12)
        x = r.exponential(2.0, m)
        want = st.lomax.logpdf(np.abs(z), 2.0 + m, scale=3.0 + x.sum())
        np.testing.assert_allclose(Exponential(2.0, 3.0).update(x).logpdf(np.abs(z)), want, rtol=1e-10, atol=1e-10)


def test_log_gamma_differences_stay_exact_where_log_gammas_drown():
    from hindsight.kernels.densities import rise

    for a in (0.01, 1.0, 7.3, 15.9, 16.0, 16.1, 1e3, 1e6, 1e9, 1e14):
        for x in (1, 2, 7, 100):  # ln of a (a + 1) ... (a + x - 1)
            want = math.fsum(math.log(a + i) for i in range(x))
            assert rise(a, float(x)) == pytest.approx(want, rel=1e-13, abs=1e-12)
        assert rise(a, 0.5) + rise(a + 0.5, 0.5) == pytest.approx(math.log(a), rel=1e-13, abs=1e-12)
        assert rise(a, 0.0) == 0.0


# ---------------------------------------------------------------- laws


@each
def test_loss_is_what_the_predictions_paid(name):
    make, draw = CASES[name]
    x = draw(rng(3), 200)
    by_rows, by_batch = make(), make()
    paid = -by_rows.progressive(x).sum()
    assert by_batch.update(x).loss == pytest.approx(paid, rel=1e-11)
    assert by_rows.loss == pytest.approx(paid, rel=1e-11)
    one, total = make(), 0.0
    for t in range(40):
        total -= one.logp(x[t : t + 1])[0]
        one.update(x[t : t + 1])
    assert one.loss == pytest.approx(total, rel=1e-11)
    assert by_batch.bits_per_row == pytest.approx(paid / 200 / math.log(2), rel=1e-11)


@each
@pytest.mark.parametrize("forget", [1.0, 0.95])
def test_chunks_give_the_same_bits(name, forget):
    make, draw = CASES[name]
    x = draw(rng(4), 150)
    whole, parts = make(forget=forget).update(x), make(forget=forget)
    for a, b in itertools.pairwise([0, 1, 2, 30, 31, 150]):
        parts.update(x[a:b])
    test = draw(rng(5), 20)
    if name == "growing":  # only what was seen has the same place
        test = x[:20]
    np.testing.assert_array_equal(whole.logp(test), parts.logp(test))
    assert whole.rows == parts.rows == 150
    assert parts.loss == pytest.approx(whole.loss, rel=1e-13)


@each
@pytest.mark.parametrize("forget", [1.0, 0.95])
@pytest.mark.parametrize("cut", [0, 1, 70, 150])
def test_merging_is_learning_one_after_the_other(name, forget, cut):
    make, draw = CASES[name]
    x = draw(rng(6), 150)
    whole = make(forget=forget).update(x)
    a, b = make(forget=forget).update(x[:cut]), make(forget=forget).update(x[cut:])
    before = a.logp(x[:20])
    both = a + b
    np.testing.assert_array_equal(a.logp(x[:20]), before)
    np.testing.assert_allclose(both.logp(x[:20]), whole.logp(x[:20]), rtol=1e-9)
    assert both.rows == 150
    if forget == 1.0:
        assert both.loss == pytest.approx(whole.loss, rel=1e-11)
    else:  # what each shard paid by itself
        assert both.loss == pytest.approx(a.loss + b.loss, rel=1e-13)
    assert both.certificate().rival == pytest.approx(whole.certificate().rival, rel=1e-10)


def test_certificates_of_merged_shards_say_what_the_loss_stands_for():
    shards = [Categorical(3).update([0, 1]), Categorical(3).update([2]), Categorical(3)]
    one, both = shards[0] + shards[2], shards[0] + shards[1] + shards[2]
    assert "merged" not in str(one.certificate())
    assert both.shards == 2
    assert "merged from 2 shards: the loss is what one run over all their rows, in any order" in str(both.certificate())
    assert both.loss != pytest.approx(shards[0].loss + shards[1].loss)
    faded = Categorical(3, forget=0.5).update([0]) + Categorical(3, forget=0.5).update([1])
    assert "merged from 2 shards: the loss is the sum of what each paid by itself" in str(faded.certificate())
    words = NGram(2).update(["a b"]) + NGram(2).update(["b a"])
    assert "merged from 2 shards: the loss is the sum" in str(words.certificate())
    full = FullGaussian(2).update(np.eye(2)) + FullGaussian(2).update([[3.0, 1.0], [2.0, 5.0]])
    assert "merged from 2 shards: the loss is what one run" in str(full.certificate())
    keyed = Keyed(card(), "customer").update(calls(5)) + Keyed(card(), "customer").update(calls(7))
    assert "merged from 2 shards" in str(keyed.certificate())


def test_a_declared_symbol_that_was_not_seen_has_its_pseudo_count():
    p = Categorical(["a", "b", "z"]).update(["a", "b"])
    assert p.logpmf(["z"])[0] == pytest.approx(math.log(0.5 / 3.5))
    assert np.exp(p.logpmf(["a", "b", "z"])).sum() == pytest.approx(1.0)
    grown = Categorical(alpha=0.5).update(["a", "b"])
    assert grown.logpmf(["never seen"])[0] == pytest.approx(math.log(0.5 / 2.5))
    assert np.exp(grown.logpmf(["a", "b", "new"])).sum() == pytest.approx(1.0)


@given(hs.integers(0, 10**6), hs.lists(hs.integers(1, 40), min_size=2, max_size=6))
def test_any_shards_of_gaussians_add_up(seed, sizes):
    r = rng(seed)
    x = r.normal(r.normal(0, 1e3), 10 ** r.uniform(-3, 3), sum(sizes))
    ends = np.cumsum([0, *sizes])
    shards = [Gaussian(scale=1.0, strength=1.0).update(x[a:b]) for a, b in itertools.pairwise(ends)]
    r.shuffle(shards)
    both = shards[0]
    for shard in shards[1:]:
        both = both + shard
    whole = Gaussian(scale=1.0, strength=1.0).update(x)
    np.testing.assert_allclose(both.variance, whole.variance, rtol=1e-9)
    assert both.loss == pytest.approx(whole.loss, rel=1e-10, abs=1e-10)


@each
def test_densities_of_other_priors_do_not_add_up(name):
    make, _ = CASES[name]
    with pytest.raises(ValueError, match="one family and prior"):
        _ = make() + make(forget=0.5)
    if name not in ("bernoulli", "histogram"):
        with pytest.raises(ValueError, match="one family and prior"):
            _ = make() + Bernoulli()


@each
def test_samples_follow_the_prediction(name):
    make, draw = CASES[name]
    p = make().update(draw(rng(7), 400))
    x = p.sample(20_000, rng(8))
    assert len(x) == 20_000
    if name in ("growing",):
        share = np.mean([v is None for v in x])
        assert share == pytest.approx(1.5 / 401.5, abs=0.003)
        return
    # E[-ln p(x)] over its own draws is the entropy: two halves must agree within their errors, and with p's of a redraw
    scores, again = p.logp(x), p.logp(p.sample(20_000, rng(9)))
    error = math.hypot(scores.std(), again.std()) / math.sqrt(20_000)
    assert abs(scores.mean() - again.mean()) < 5 * error + 1e-12
    if name in ("kt", "laplace", "bernoulli"):
        share = np.bincount(x, minlength=p.state.shape[1]) / x.size
        np.testing.assert_allclose(share, p.probabilities()[:, 0], atol=0.02)
    if name == "poisson":
        np.testing.assert_allclose(np.mean(x == 6), math.exp(p.logpmf(6)[0]), atol=0.015)
    if name in ("exponential", "gamma", "gaussian", "histogram"):
        grid = np.linspace(*np.quantile(x, [0.001, 0.9]), 4001)
        mass = np.trapezoid(np.exp(p.logpdf(grid)), grid)
        assert mass == pytest.approx(np.mean((x >= grid[0]) & (x <= grid[-1])), abs=0.015)


@each
def test_what_was_learnt_can_be_a_prior(name):
    make, draw = CASES[name]
    x = draw(rng(10), 50)
    if name in ("growing", "full"):
        return
    learnt = make().update(x)
    # worth as many rows as it saw, it predicts as it did
    np.testing.assert_allclose(learnt.as_prior(50).logp(x[:9]), learnt.logp(x[:9]), rtol=1e-10)
    weak = learnt.as_prior(1e-15)
    np.testing.assert_allclose(weak.logp(x[:9]), make().logp(x[:9]), rtol=1e-5)


def test_copies_are_apart_and_repr_says_what():
    p = Categorical(list("ab")).update(list("aab"))
    q = p.copy().update(list("bbbb"))
    assert (p.rows, q.rows, p.fresh().rows) == (3, 7, 0)
    assert repr(p) == "<categorical, 3 rows>"
    assert p.describe() == "a 0.625, b 0.375"
    assert "anything new" in Categorical().update(["a"]).describe()
    assert FullGaussian(2).update(np.eye(2)).describe().startswith("mean 0.5 sd 0.5, mean 0.5 sd 0.5; correlations -1")


# ---------------------------------------------------------------- numerics


@pytest.mark.parametrize(("place", "spread"), [(1e9, 1e-3), (1e9, 1e-6), (1e12, 1.0), (-1e15, 1.0)])
def test_far_from_zero_nothing_is_lost_that_the_values_still_have(place, spread):
    x = place + spread * rng(11).standard_normal(20_000)
    near = x - place  # exact: they are within a factor of two
    want = math.fsum((near - near.mean()) ** 2) / near.size
    halves = [Gaussian(place, spread).update(part) for part in (x[:7000], x[7000:])]
    for p in (Gaussian(place, spread).update(x), halves[0] + halves[1]):
        assert p.variance[0] == pytest.approx(want, rel=1e-12)
        assert p.loss == pytest.approx(Gaussian(0.0, spread).update(near).loss, rel=1e-12)
    p = FullGaussian(1, place, spread).update(x[:, None])
    assert p.covariance[0, 0] == pytest.approx(want, rel=1e-12)
    assert p.loss == pytest.approx(Gaussian(0.0, spread).update(near).loss, rel=1e-10)


def test_full_and_diagonal_agree_in_one_column():
    x = rng(12).normal(3.0, 2.0, 100)
    a, b = Gaussian(1, 2, 3, 4).update(x), FullGaussian(1, 1, 2, 3, 4).update(x[:, None])
    np.testing.assert_allclose(a.logpdf(x), b.logpdf(x[:, None]), rtol=1e-11)


def test_columns_that_stand_still_or_repeat_are_no_trouble():
    X = np.stack([np.full(500, 7.0), rng(13).standard_normal(500)], axis=1)
    p = Gaussian(columns=2).update(X)
    assert np.isfinite(p.logpdf(X)).all()
    assert p.certificate().rival == -math.inf
    assert "has no bounded density" in str(p.certificate())
    twice = np.stack([X[:, 1], X[:, 1], 2 * X[:, 1]], axis=1)
    q = FullGaussian(3).update(twice)
    assert np.isfinite(q.logpdf(twice)).all()
    assert q.certificate().rival == -math.inf
    assert json.loads(json.dumps(q.certificate().to_dict()))["nats"]["rival"] is None


def test_a_hundred_thousand_columns_do_not_underflow():
    X = rng(14).standard_normal((20, 100_000))
    p = Gaussian(columns=100_000).update(X)
    scores = p.logpdf(X)
    assert np.isfinite(scores).all() and (scores < -1e4).all()
    assert math.isfinite(p.loss)


# ---------------------------------------------------------------- certificates


def regrets(counts, alpha):
    """The exact regret of the add-alpha estimator from counts, many sequences at once."""
    n, k = counts.sum(axis=1), counts.shape[1]
    paid = gammaln(n + k * alpha) - gammaln(k * alpha) - (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)
    share = np.where(counts > 0, counts / n[:, None], 1.0)
    return paid + (counts * np.log(share)).sum(axis=1)


def test_kt_bound_over_twelve_thousand_sequences_and_worst_cases():
    r = rng(15)
    worst, at_one, total = 0.0, 0.0, 0
    for k in (1, 2, 3, 5, 10, 30, 100, 300, 1000):
        rows = []
        for _ in range(1300):
            T = int(10 ** r.uniform(0, 6))
            p = r.dirichlet(np.full(k, 10 ** r.uniform(-3, 1))) if k > 1 else np.ones(1)
            rows.append(r.multinomial(T, p / p.sum()))
        for T in (1, 2, 3, 10, 100, 10**4, 10**6, 10**9):  # one symbol throughout; a few, even; all, even
            for used in {1, 2, max(1, k // 2), k}:
                even = np.zeros(k, np.int64)
                even[:used] = T // used
                even[0] += T - even.sum()
                rows.append(even)
        counts = np.array(rows)
        ratio = regrets(counts, 0.5) / np.maximum(add_half(k, counts.sum(axis=1)), 1e-300) if k > 1 else np.zeros(1)
        worst, total = max(worst, ratio.max()), total + len(rows)
        at_one = max(at_one, ratio[counts.sum(axis=1) == 1].max(initial=0.0)) if k > 1 else at_one
    assert total > 10_000
    assert worst <= 1.0 + 1e-9
    assert at_one == pytest.approx(1.0, abs=1e-12)  # T = 1: ln k is paid, and promised


def test_regrets_from_counts_are_those_of_the_loop_and_of_the_density():
    r = rng(16)
    for _ in range(300):
        k, T = int(r.integers(1, 40)), int(r.integers(1, 120))
        x = r.choice(k, T, p=r.dirichlet(np.full(k, 0.3)))
        counts = np.bincount(x, minlength=k)[None]
        loop = -naive_dirichlet(x, [0.5] * k).sum() + (counts[counts > 0] * np.log(counts[counts > 0] / T)).sum()
        certificate = Categorical(k).update(x).certificate()
        assert certificate.regret == pytest.approx(loop, rel=1e-10, abs=1e-10)
        assert regrets(counts, 0.5)[0] == pytest.approx(loop, rel=1e-10, abs=1e-10)
        assert certificate.verdict is Verdict.HOLDS
        assert certificate.bound == pytest.approx((k - 1) / 2 * math.log(T) + math.log(k), abs=1e-12)


@pytest.mark.parametrize(("alpha", "bound"), [(0.5, add_half), (1.0, add_one)])
def test_bounds_over_every_sequence_of_a_small_alphabet(alpha, bound):
    for k, T in [(2, 1), (2, 12), (3, 7), (4, 6), (5, 5)]:
        counts = [np.bincount(s, minlength=k) for s in itertools.combinations_with_replacement(range(k), T)]
        worst = regrets(np.array(counts), alpha).max()
        assert worst <= bound(k, T) + 1e-12
        if alpha == 1.0:  # attained by one symbol throughout
            assert worst == pytest.approx(bound(k, T), rel=1e-12)


def test_equality_is_said_and_a_broken_bound_would_be():
    certificate = Categorical(7).update([3]).certificate()
    assert certificate.equality
    assert certificate.verdict is Verdict.HOLDS
    assert "met with equality" in str(certificate)
    assert judge(KT, 10.0, 1.0, 5.0, 3, ()).verdict is Verdict.BROKEN


def test_verdicts():
    x = rng(17).integers(0, 3, 100)
    assert Categorical(3).update(x).certificate().verdict is Verdict.HOLDS
    assert Categorical(3, 1.0).update(x).certificate().verdict is Verdict.HOLDS
    assert Categorical(3, 0.3).update(x).certificate().verdict is Verdict.UNCHECKABLE
    assert Bernoulli().update(x > 0).certificate().bound == pytest.approx(0.5 * math.log(100) + math.log(2))
    assert Histogram(0, 3, 6).update(x).certificate().verdict is Verdict.HOLDS
    grown = Categorical().update(x).certificate()
    assert grown.verdict is Verdict.VOID
    assert "✗ the alphabet grew to 3 symbols" in str(grown)
    assert "is not charged" in str(grown)
    assert math.isnan(grown.bound)
    faded = Categorical(3, forget=0.9).update(x).certificate()
    assert faded.verdict is Verdict.VOID
    assert "forget = 0.9, which must be 1" in str(faded)
    assert faded.rival == pytest.approx(Categorical(3).update(x).certificate().rival)
    for p in (Gaussian(), Poisson(), Exponential()):
        assert p.update(x + 1).certificate().verdict is Verdict.UNCHECKABLE
    two = Categorical(3, columns=2).update(np.stack([x, x], axis=1)).certificate()
    assert two.bound == pytest.approx(2 * Categorical(3).update(x).certificate().bound)
    assert two.regret_bits == pytest.approx(two.regret / math.log(2))
    assert two.bound_bits == pytest.approx(two.bound / math.log(2))
    with pytest.raises(ValueError, match="there is no row yet"):
        Categorical(3).certificate()


@each
def test_no_fixed_parameter_does_better_than_the_rival(name):
    """The rival is the maximum-likelihood one: no parameter of a search loses less."""
    make, draw = CASES[name]
    x = draw(rng(18), 80)
    p = make().update(x)
    rival = p.certificate().rival
    assert p.loss >= rival or name == "growing"  # there, which new symbol it is goes unpaid
    r = rng(19)
    if name in ("kt", "laplace", "bernoulli"):
        k = p.state.shape[1]
        for q in r.dirichlet(np.bincount(x, minlength=k) + 1.0, 300):
            assert -np.log(q[x]).sum() >= rival - 1e-9
        q = np.bincount(x, minlength=k) / 80
        assert -np.log(q[x]).sum() == pytest.approx(rival, rel=1e-12)
    elif name == "poisson":
        for rate in x.mean() * np.append(r.uniform(0.5, 2.0, 100), 1.0):
            assert -st.poisson.logpmf(x, rate).sum() >= rival - 1e-9
        assert -st.poisson.logpmf(x, x.mean()).sum() == pytest.approx(rival, rel=1e-12)
    elif name in ("exponential", "gamma"):
        shape = 1.0 if name == "exponential" else 2.5
        for scale in x.mean() / shape * np.append(r.uniform(0.5, 2.0, 100), 1.0):
            assert -st.gamma.logpdf(x, shape, scale=scale).sum() >= rival - 1e-9
        assert -st.gamma.logpdf(x, shape, scale=x.mean() / shape).sum() == pytest.approx(rival, rel=1e-12)
    elif name == "gaussian":
        assert -st.norm.logpdf(x, x.mean(), x.std()).sum() == pytest.approx(rival, rel=1e-12)
    elif name == "full":
        want = -st.multivariate_normal.logpdf(x, x.mean(axis=0), np.cov(x.T, bias=True)).sum()
        assert want == pytest.approx(rival, rel=1e-11)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "x", "message"),
    [
        (Gaussian, [1.0, math.nan], "row 1: value NaN is not a finite number"),
        (lambda: Gaussian(columns=2), [[1, 2], [3, math.inf]], "row 1, column 1: value inf is not a finite number"),
        (Gaussian, [1.0, 1e200], "row 1: value 1e+200 is not a finite number (below 1e150)"),
        (lambda: FullGaussian(2), [[1.0, 2.0], [3.0, math.nan]], "row 1, column 1: value NaN is not a finite number"),
        (Poisson, [3, -1], "row 1: value -1.0 is not a count (0, 1, 2, ...)"),
        (Poisson, [3.5], "row 0: value 3.5 is not a count"),
        (Poisson, [3, math.nan], "row 1: value NaN is not a count"),
        (Exponential, [0.0, -2.0], "row 1: value -2.0 is not a duration (a finite number, at least 0)"),
        (Gamma, [1.0, 0.0], "row 1: value 0.0 is not a duration (a finite number above 0)"),
        (lambda: Categorical(3), [0, 3], "row 1: value 3.0 is not one of the 3 symbols 0..2"),
        (lambda: Categorical(list("ab")), list("abz"), "row 2: 'z' is not one of the declared symbols 'a', 'b'"),
        (Categorical, [1.0, math.nan], "row 1: value NaN is not a symbol"),
        (Categorical, np.array(["a", None], object), "row 1: value None is not a symbol"),
        (Bernoulli, [0, 2], "row 1: value 2.0 is not 0 or 1"),
        (lambda: Histogram(0, 5, 5), [1.0, 7.0], "row 1: value 7.0 is not a number from 0 to 5"),
        (lambda: Histogram(0, 5, 5), [math.nan], "row 0: value NaN is not a number from 0 to 5"),
        (Gaussian, ["1.5", "x"], "row 1: value 'x' is not a number"),
        (NGram, ["a b", 3], "row 1: 3 is not a sentence"),
    ],
)
@pytest.mark.parametrize("how", ["update", "progressive"])
def test_a_value_that_does_not_fit_is_named_and_changes_nothing(make, x, message, how):
    density = make()
    with pytest.raises(RowError) as caught:
        getattr(density, how)(x)
    assert message in str(caught.value)
    assert density.rows == 0
    assert density.loss == 0.0


def test_values_outside_the_support_have_density_zero():
    assert Poisson().logpmf([-1, 0.5]).tolist() == [-math.inf, -math.inf]
    assert Exponential().logpdf([-1.0])[0] == -math.inf
    assert Histogram(0, 5, 5).logpdf([6.0, -1.0]).tolist() == [-math.inf, -math.inf]
    with pytest.raises(RowError, match="NaN"):
        Gaussian().logpdf([math.nan])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Categorical(0), "at least one symbol"),
        (lambda: Categorical(["a", "a"]), "the symbols must differ"),
        (lambda: Categorical(3, 0.0), "alpha must be above 0"),
        (lambda: Categorical(3, [1.0, 2.0]), "one for each of the 3 symbols"),
        (lambda: Categorical(columns=2), "declare the symbols"),
        (lambda: Gaussian(scale=0.0), "scale must be a finite number above 0"),
        (lambda: Gaussian(mean=[1.0, 2.0], columns=3), "mean must be one number or 3"),
        (lambda: Gaussian(forget=0.0), r"forget must lie in \(0, 1\]"),
        (lambda: FullGaussian(2, forget=1.5), r"forget must lie in \(0, 1\]"),
        (lambda: FullGaussian(0), "columns must be at least 1"),
        (lambda: Poisson(a=-1), "a must be a finite number above 0"),
        (lambda: Histogram(5, 0, 3), "finite low < high"),
        (lambda: Histogram(None, None, [1.0, 1.0]), "must ascend"),
        (lambda: NGram(0), "order must be a whole number"),
        (lambda: NGram(discount=1.0), "discount must lie between 0 and 1"),
        (lambda: NGram(smoothing="none"), "smoothing"),
        (lambda: Product({}), "at least one column"),
        (lambda: Keyed(Categorical(), "key"), "declared symbols"),
        (lambda: Keyed(NGram(), "key"), "cannot be"),
        (lambda: Keyed(Gaussian(), "key", capacity=0), "capacity must be at least 1"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_shapes():
    with pytest.raises(ValueError, match=r"over 2 columns got an array of shape \(3,\)"):
        Gaussian(columns=2).update([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="shape"):
        FullGaussian(2).update([[1.0]])
    with pytest.raises(ValueError, match="takes numbers"):
        Gaussian().update(np.array(["2020-01-01"], "M8[D]"))
    assert Gaussian().update(3.0).rows == 1
    assert Gaussian().update([]).rows == 0


def test_no_rows_are_no_trouble():
    for make, draw in CASES.values():
        x = draw(rng(23), 5)
        p = make().update(x)
        before = p.loss
        assert p.update(x[:0]).loss == before
        assert p.progressive(x[:0]).shape == p.logp(x[:0]).shape == (0,)
    keyed = Keyed(card(), "customer").update(calls(5))
    none = {k: v[:0] for k, v in calls(5).items()}
    assert keyed.progressive(none).shape == keyed.logp(none).shape == (0,)
    assert keyed.rows == 5


def test_many_rows_are_scored_as_few():
    X = rng(24).standard_normal((700, 3000))
    p = Gaussian(columns=3000).update(X[:20])
    np.testing.assert_array_equal(p.logp(X), np.concatenate([p.logp(X[:1]), p.logp(X[1:300]), p.logp(X[300:])]))
    X[650, 7] = math.nan
    with pytest.raises(RowError, match="row 650, column 7: value NaN"):
        p.logp(X)


def test_text_numbers_are_read_as_numbers():
    assert Poisson().update(np.array(["3", "4"])).loss == Poisson().update([3, 4]).loss
    assert Categorical(24).update(["3", "4"]).loss == Categorical(24).update([3, 4]).loss


# ---------------------------------------------------------------- n-grams

TEXT = ["I sat on a chair", "the fat cat sat on a mat", "a fat man sat on the chair", "I see a cat", ""]


@pytest.mark.parametrize("smoothing", ["interpolate", "back-off"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("vocabulary", [None, ["sat", "cat", "on", "a"]])
def test_probabilities_of_an_n_gram_sum_to_1(order, smoothing, vocabulary):
    model = NGram(order, vocabulary, smoothing)
    histories = [(), ("sat",), ("sat", "on"), ("on", "a"), ("never", "seen"), ("<s>", "<s>")]
    for text in [None, *TEXT]:
        if text is not None:
            model.update([text])
        for history in histories:
            total = math.fsum(model.probability(w, history) for w in model.vocabulary)
            assert total == pytest.approx(1.0, abs=1e-12)
    assert {UNKNOWN, END} <= set(model.vocabulary)
    assert model.probability("zebra") == model.probability(UNKNOWN) > 0.0


def test_back_off_survives_a_history_after_which_every_word_was_seen():
    model = NGram(2, ["a"], "back-off")
    model.update(["a a", "a <unk> a"])
    assert set(model._after[("a",)]) == {"a", END, UNKNOWN}
    assert math.fsum(model.probability(w, ("a",)) for w in model.vocabulary) == pytest.approx(1.0, abs=1e-12)


def test_interpolation_is_its_formula():
    model = NGram(2, discount=0.5).update(["a b", "a c", "a b"])
    unigram = {w: (c - 0.5 + 0.5 * 4 / 5) / 9 for w, c in {"a": 3, "b": 2, "c": 1, END: 3}.items()}
    unigram[UNKNOWN] = 0.5 * 4 / 5 / 9
    for word, p in unigram.items():
        assert model.probability(word) == pytest.approx(p, rel=1e-12)
        count = {"b": 2, "c": 1}.get(word, 0)
        want = (max(count - 0.5, 0) + 0.5 * 2 * p) / 3
        assert model.probability(word, ("a",)) == pytest.approx(want, rel=1e-12)


def test_sentences_are_told_apart_and_explained():
    model = NGram(2).update(TEXT)
    sat, fat = model.logpmf(["I sat on a chair", "I fat on a chair"])
    assert sat > fat
    assert model.logpmf([["I", "sat", "on", "a", "chair"]])[0] == sat
    parts = model.explain("I sat on a chair")
    assert [w for w, _ in parts] == ["I", "sat", "on", "a", "chair", END]
    assert math.fsum(p for _, p in parts) == pytest.approx(sat, rel=1e-12)


def test_n_grams_predict_before_they_learn_and_add_up():
    model, total = NGram(3), 0.0
    for text in TEXT:
        copy = model.copy()  # words within a sentence are learnt as they come
        paid = model.progressive([text])[0]
        assert copy.loss <= model.loss
        total -= paid
    assert model.loss == pytest.approx(total, rel=1e-12)
    both = NGram(3).update(TEXT[:2]) + NGram(3).update(TEXT[2:])
    np.testing.assert_allclose(both.logpmf(TEXT), model.logpmf(TEXT), rtol=1e-12)
    assert both.certificate().verdict is Verdict.VOID
    certificate = NGram(2, ["a", "b"]).update(["a b"]).certificate()
    assert str(certificate).startswith("UNCHECKABLE: 2-gram with absolute discounting (interpolate)\n")
    assert "Bayes predictive" not in str(NGram(3, smoothing="back-off").update(["a b"]).certificate())
    with pytest.raises(ValueError, match="add up"):
        _ = NGram(3) + NGram(2)
    with pytest.raises(ValueError, match="come in a list"):
        model.update("a text")


def test_sampled_sentences_are_likely():
    model = NGram(2).update(TEXT * 3)
    drawn = model.sample(200, rng(20))
    assert len(drawn) == 200
    assert model.logpmf(drawn).mean() > model.logpmf(["chair the on fat I"])[0]


# ---------------------------------------------------------------- products and keys


def calls(m, seed=21, customers=30):
    r = rng(seed)
    return {
        "customer": r.integers(0, customers, m),
        "hour": r.integers(0, 24, m),
        "minutes": r.exponential(3.0, m),
        "calls": r.poisson(2.0, m),
    }


def card():
    return Product({"hour": Categorical(24), "minutes": Exponential(), "calls": Poisson()})


def test_a_product_is_its_columns():
    x = calls(300)
    product = card()
    scores = product.progressive(x)
    parts = [Categorical(24).progressive(x["hour"]), Exponential().progressive(x["minutes"])]
    parts.append(Poisson().progressive(x["calls"]))
    np.testing.assert_allclose(scores, sum(parts), rtol=1e-12)
    assert product.loss == pytest.approx(-scores.sum(), rel=1e-11)
    matrix = np.stack([x["hour"], x["minutes"], x["calls"]], axis=1)
    np.testing.assert_array_equal(card().progressive(matrix), scores)
    np.testing.assert_allclose(product.terms(x).sum(axis=1), product.logp(x), rtol=1e-12)
    certificate = product.certificate()
    assert certificate.verdict is Verdict.UNCHECKABLE
    assert certificate.parts[0].verdict is Verdict.HOLDS
    assert certificate.measured == pytest.approx(product.loss)
    halves = [card().update({k: v[a:b] for k, v in x.items()}) for a, b in ((0, 100), (100, 300))]
    assert (halves[0] + halves[1]).loss == pytest.approx(product.loss, rel=1e-11)
    drawn = product.sample(5, rng(0))
    assert set(drawn) == {"hour", "minutes", "calls"}


def test_products_take_frames_and_several_columns_at_once():
    import pandas as pd
    import polars as pl

    x = calls(50)
    pair = Product({("minutes", "calls"): FullGaussian(2), "hour": Categorical(24)})
    want = pair.fresh().update(x).loss
    for frame in (pd.DataFrame(x), pl.DataFrame(x)):
        assert pair.fresh().update(frame).loss == want
    assert pair.names == ["minutes + calls", "hour"]
    assert all_holds(Product({"hour": Categorical(24), "calls": Categorical(20)}).update(x).certificate())


def all_holds(certificate):
    total = sum(part.bound for part in certificate.parts)
    return certificate.verdict is Verdict.HOLDS and certificate.bound == pytest.approx(total)


def test_a_product_that_fails_names_the_column_and_changes_nothing():
    x = calls(20)
    product = card().update(x)
    before = product.loss
    x["calls"] = np.append(x["calls"][:-1], -1)
    with pytest.raises(RowError, match=r"row 19, column 'calls': value -1.0 is not a count"):
        product.update(x)
    assert product.loss == before
    assert product.rows == 20
    with pytest.raises(ValueError, match="there is no column 'minutes'"):
        product.update({"hour": [1]})
    with pytest.raises(ValueError, match="column 'minutes' has 1 rows, the others have 2"):
        product.update({"hour": [1, 2], "minutes": [1.0], "calls": [1, 2]})


@pytest.mark.parametrize("capacity", [None, 1, 2, 7, 29, 30])
def test_keys_have_densities_of_their_own_whatever_spills(tmp_path, capacity):
    x = calls(600)
    options = {} if capacity is None else {"capacity": capacity, "spill": str(tmp_path / "keys.sqlite")}
    keyed = Keyed(card(), "customer", **options)
    scores = np.concatenate([keyed.progressive({k: v[a : a + 150] for k, v in x.items()}) for a in range(0, 600, 150)])
    naive = {c: card() for c in range(30)}
    want = []
    for t in range(600):
        row = {k: v[t : t + 1] for k, v in x.items()}
        want.append(naive[int(row["customer"][0])].progressive(row)[0])
    np.testing.assert_array_equal(scores, want)
    assert keyed.rows == 600
    assert sorted(keyed.keys) == sorted(set(x["customer"].tolist()))
    assert len(keyed._slot) <= (capacity or 30)
    np.testing.assert_allclose(keyed.loss, -scores.sum(), rtol=1e-11)
    certificate = keyed.certificate()
    hours = [naive[c].densities["hour"].certificate() for c in keyed.keys]
    assert certificate.parts[0].verdict is Verdict.HOLDS
    assert certificate.parts[0].bound == pytest.approx(sum(h.bound for h in hours))
    assert certificate.parts[0].regret == pytest.approx(sum(h.regret for h in hours))
    test = calls(90, seed=22, customers=40)
    prior = card()
    want = [
        naive.get(int(c), prior).logp({k: v[t : t + 1] for k, v in test.items()})[0]
        for t, c in enumerate(test["customer"])
    ]
    np.testing.assert_array_equal(keyed.logp(test), want)
    assert keyed.of(3).loss == pytest.approx(naive[3].loss, rel=1e-12)
    assert keyed.of("nobody").rows == 0
    keyed.close()


def test_the_key_least_recently_seen_spills(tmp_path):
    keyed = Keyed(Poisson(), "who", capacity=2, spill=str(tmp_path / "keys.sqlite"))
    for who in "abac":
        keyed.update({"who": [who], "calls": [1]})
    assert (list(keyed._slot), list(keyed._away)) == (["a", "c"], ["b"])
    keyed.update({"who": list("cab"), "calls": [1, 1, 1]})
    assert (list(keyed._slot), list(keyed._away)) == (["a", "b"], ["c"])
    assert [keyed.of(who).rows for who in "abc"] == [3, 2, 2]
    keyed.close()


def test_batches_of_keys_are_rows_of_keys():
    x = calls(500)
    whole, parts = Keyed(card(), "customer").update(x), Keyed(card(), "customer")
    for t in range(0, 500, 7):
        parts.update({k: v[t : t + 7] for k, v in x.items()})
    np.testing.assert_array_equal(whole.logp(x), parts.logp(x))
    matrix = np.stack(list(x.values()), axis=1)
    np.testing.assert_array_equal(Keyed(card(), 0).update(matrix).logp(matrix), whole.logp(x))
    one = Keyed(Poisson(), "customer").update({"customer": x["customer"], "calls": x["calls"]})
    assert one.loss == pytest.approx(-sum(whole.of(c).densities["calls"].loss for c in whole.keys) * -1, rel=1e-12)


def test_keys_of_shards_add_up():
    x = calls(400)
    halves = [Keyed(card(), "customer").update({k: v[a:b] for k, v in x.items()}) for a, b in ((0, 150), (150, 400))]
    both, whole = halves[0] + halves[1], Keyed(card(), "customer").update(x)
    np.testing.assert_allclose(both.logp(x), whole.logp(x), rtol=1e-11)
    assert both.loss == pytest.approx(whole.loss, rel=1e-11)
    gaussians = [Keyed(Product({"minutes": Gaussian()}), "customer") for _ in range(3)]
    gaussians[0].update({k: v[:150] for k, v in x.items()})
    gaussians[1].update({k: v[150:] for k, v in x.items()})
    gaussians[2].update(x)
    assert (gaussians[0] + gaussians[1]).loss == pytest.approx(gaussians[2].loss, rel=1e-9)
    with pytest.raises(ValueError, match="add up"):
        _ = halves[0] + gaussians[0]


def test_keys_of_any_kind():
    rows = {"customer": np.array(["ann", "bob", "ann"]), "hour": [1, 2, 3], "minutes": [1.0, 2, 3], "calls": [1, 2, 3]}
    texts = Keyed(card(), "customer").update(rows)
    assert texts.keys == ["ann", "bob"]
    mixed = dict(rows, customer=np.array(["ann", 7, "ann"], object))
    assert Keyed(card(), "customer").update(mixed).keys == ["ann", 7]
    faded = Keyed(Product({"calls": Poisson(forget=0.5)}), "customer").update(rows)
    one = Poisson(forget=0.5)
    paid = one.progressive([1, 3]).sum() + Poisson(forget=0.5).progressive([2]).sum()
    assert faded.loss == pytest.approx(-paid)


@pytest.mark.parametrize("capacity", [None, 1, 2])
@pytest.mark.parametrize(
    "keys", [np.array([0.0, 5.0, -0.0, 7.0]), np.array([1, "a", 1.0, "b"], object), np.array([True, 3, 1, 4], object)]
)
def test_keys_that_are_equal_are_one_key(tmp_path, keys, capacity):
    spill = {} if capacity is None else {"capacity": capacity, "spill": str(tmp_path / "keys.db")}
    keyed = Keyed(Poisson(), "who", **spill).update({"who": keys, "calls": [1, 2, 3, 4]})
    keyed.update({"who": keys[3:], "calls": [9]})
    assert len(keyed.keys) == 3 and [keyed.of(who).rows for who in keys] == [2, 1, 2, 2]
    keyed.close()


def test_too_many_keys_are_one_error_and_change_nothing():
    x = calls(100)
    keyed = Keyed(card(), "customer", capacity=10).update({k: v[:5] for k, v in x.items()})
    before, loss = keyed.keys, keyed.loss
    with pytest.raises(RowError, match=r"would be one more than capacity = 10 keys; raise the capacity or give a file"):
        keyed.update(x)
    assert keyed.keys == before
    assert keyed.loss == loss
    with pytest.raises(RowError, match="capacity"):
        keyed.check(x)
    with pytest.raises(RowError, match=r"row 2, column 'customer': value nan is not a key"):
        keyed.update({**{k: v[:3] for k, v in x.items()}, "customer": [1.0, 2.0, math.nan]})
    for missing in (None, math.nan):
        with pytest.raises(RowError, match=rf"row 1, column 'customer': value {missing} is not a key"):
            keyed.update({**{k: v[:2] for k, v in x.items()}, "customer": np.array(["ann", missing], object)})
    with pytest.raises(RowError, match=r"row 1, column 'calls': value -3.0 is not a count"):
        keyed.update({**{k: v[:2] for k, v in x.items()}, "calls": [1, -3]})
    with pytest.raises(ValueError, match="no column 'customer'"):
        keyed.update({"hour": [1]})
    bad = Keyed(card(), "customer", capacity=2, spill="/nowhere/at/all.sqlite")
    with pytest.raises(ValueError, match=r"/nowhere/at/all.sqlite"):
        bad.update(x)


def test_a_shared_prior_starts_every_key():
    crowd = card().update(calls(1000))
    keyed = Keyed(crowd.as_prior(20), "customer").update(calls(5))
    test = calls(1, customers=31)
    np.testing.assert_allclose(keyed.of("new").logp(test), crowd.logp(test), rtol=0.05)


# ---------------------------------------------------------------- files


def sentences(r, m):
    return [" ".join(r.choice(list("abcdefgh"), r.integers(1, 6))) for _ in range(m)]


def named_rows(r, m):
    who = r.choice(["ann", "bob", "cy", "dee"], m)
    return {"who": who, "calls": r.poisson(3.0, m), "place": r.choice(list("xyz"), m)}


def inner():
    return Product({"calls": Poisson(), "place": Categorical(list("xyz"))})


KEPT = CASES | {
    "3-gram": (lambda: NGram(3), sentences),
    "1-gram": (lambda: NGram(1, smoothing="back-off"), sentences),
    "declared words": (lambda: NGram(2, ["a", "b", "<s>"], "back-off", 0.5), sentences),
    "product": (inner, named_rows),
    "pair": (
        lambda: Product({("a", "b"): FullGaussian(2), 3: NGram(2)}),
        lambda r, m: {"a": r.normal(size=m), "b": r.normal(size=m), 3: sentences(r, m)},
    ),
    "keyed": (lambda: Keyed(inner(), "who"), named_rows),
    "keyed numbers": (
        lambda: Keyed(Gaussian(columns=2), 0),
        lambda r, m: np.column_stack((r.integers(0, 5, m), r.normal(size=(m, 2)))),
    ),
}


def part_of(x, a, b):
    return {name: values[a:b] for name, values in x.items()} if isinstance(x, dict) else x[a:b]


def same(a, b):
    """Whether two densities say and cost the same, to the bit."""
    return (a.loss, a.rows, a.describe(), repr(a)) == (b.loss, b.rows, b.describe(), repr(b))


def test_every_density_is_kept_below():
    kinds = {kind for kind in vars(density).values() if isinstance(kind, type) and issubclass(kind, OnlineDensity)}
    assert {type(make()) for make, _ in KEPT.values()} == kinds


@pytest.mark.parametrize("name", KEPT)
def test_a_density_goes_on_from_its_file(tmp_path, name):
    make, draw = KEPT[name]
    x = draw(rng(3), 60)
    for before in (0, 40):
        kept = make().update(part_of(x, 0, before)) if before else make()
        kept.save(tmp_path / "density")
        found = hindsight.load(tmp_path / "density")
        assert type(found) is type(kept) and same(found, kept)
        if before:
            assert found.certificate().to_dict() == kept.certificate().to_dict()
            both = found + make().update(part_of(x, 40, 60))
            assert same(both, kept + make().update(part_of(x, 40, 60)))
        rest = part_of(x, before, 60)
        assert found.logp(rest).tolist() == kept.logp(rest).tolist()
        assert found.progressive(rest).tolist() == kept.progressive(rest).tolist()
        assert same(found, kept) and same(found.copy(), kept) and same(found.fresh(), kept.fresh())


@pytest.mark.parametrize("name", ["dirichlet", "growing", "columns", "full"])
def test_a_density_that_fades_goes_on_from_its_file(tmp_path, name):
    make, draw = CASES[name]
    x = draw(rng(3), 60)
    kept = make(forget=0.9).update(x[:40])
    kept.save(tmp_path / "density")
    found = hindsight.load(tmp_path / "density")
    assert found.progressive(x[40:]).tolist() == kept.progressive(x[40:]).tolist()
    assert same(found, kept) and found.certificate().to_dict() == kept.certificate().to_dict()


def test_keys_that_spilled_are_kept_without_the_file_they_spilled_to(tmp_path):
    x = named_rows(rng(4), 200)
    whole, spilt = Keyed(inner(), "who"), Keyed(inner(), "who", capacity=2, spill=str(tmp_path / "keys.db"))
    for density_ in (whole, spilt):
        density_.update(x)
    spilt.save(tmp_path / "density")
    spilt.close()
    (tmp_path / "keys.db").unlink()
    found = hindsight.load(tmp_path / "density")
    assert (found.spill, found.capacity, sorted(found.keys, key=str)) == (None, 4, sorted(whole.keys, key=str))
    assert found.loss == pytest.approx(whole.loss, rel=1e-12)
    assert found.logp(x).tolist() == whole.logp(x).tolist()
    assert b"keys.db" not in (tmp_path / "density").read_bytes()


def test_what_is_not_a_density_of_ours_is_not_saved(tmp_path):
    class Poisson(density.Poisson):
        pass

    with pytest.raises(ModelError, match="cannot be saved: Poisson is not a density of hindsight"):
        Poisson().save(tmp_path / "density")
    days = Keyed(inner(), "who").update(named_rows(rng(), 5) | {"who": np.array(["2020-01-01"] * 5, "M8[D]")})
    with pytest.raises(ModelError, match=r"cannot be saved: .*_keys.* is of type date, which cannot be saved"):
        days.save(tmp_path / "density")
    assert not (tmp_path / "density").exists()


def test_rows_as_an_array_need_the_index_of_the_key():
    for key, keyed in (("who", Keyed(Poisson(), "who")), (2, Keyed(Poisson(), 2))):
        with pytest.raises(ValueError, match=rf"the key is {key!r}, which is not an index"):
            keyed.update(np.array([[1, 2], [3, 4]]))
