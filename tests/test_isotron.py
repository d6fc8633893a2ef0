"""Isotron and GLM-tron over epochs: against loops written from the notes, their theorems, noise, and bad input."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit, ndtr
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from conftest import many
from hindsight.batch import isotonic as module
from hindsight.batch.isotonic import isotonic
from hindsight.batch.isotron import GivenLink, LearntLink, SingleIndexProblem, run_rounds
from hindsight.batch.links import LINK_FUNCTIONS
from hindsight.certificates.families.isotron import certify_rounds
from hindsight.certificates.theorems import Verdict
from hindsight.errors import MismatchError
from hindsight.estimators.isotron import GLMtronBatchRegressor, IsotronClassifier, IsotronRegressor
from hindsight.kernels import side_by_side
from hindsight.rows import stripes

PLAIN = LearntLink(math.inf, 1.0)
PIECES = {  # nondecreasing, 1-Lipschitz, into [0, 1]
    "logistic": expit,
    "probit": ndtr,
    "clipped": lambda z: np.clip(z, 0.0, 1.0),
    "steps": lambda z: np.clip(0.5 + 0.5 * np.floor(z) + 0.5 * np.minimum(1.0, 2.0 * (z - np.floor(z))), 0.0, 1.0),
    "constant": lambda z: np.full_like(z, 0.3),
    "tanh": lambda z: 0.5 + 0.5 * np.tanh(z),
}


def naive_rounds(X, y, fit, eta, rounds, weight=None):
    """Algorithm 2 as the notes print it, with weights and a step: losses and all w."""
    p = np.ones(len(y)) / len(y) if weight is None else weight / weight.sum()
    w, losses = np.zeros(X.shape[1]), []
    path = [w]
    for _ in range(rounds):
        z = [sum(a * b for a, b in zip(row, w, strict=True)) for row in X]
        yhat = fit(np.array(z))
        losses.append(sum(c * (a - b) ** 2 for c, a, b in zip(p, y, yhat, strict=True)))
        w = w + eta * sum(c * (a - b) * row for c, a, b, row in zip(p, y, yhat, X, strict=True))
        path.append(w)
    return np.array(losses), np.array(path)


def rows(rng, m, n, radius=1.0):
    X = rng.standard_normal((m, n))
    X /= max(1e-300, np.linalg.norm(X, axis=1).max()) / radius
    return X


# ---------------------------------------------------------------- the rounds


@pytest.mark.parametrize("constant", [None, 0.7])
@pytest.mark.parametrize("weighted", [False, True])
def test_isotron_is_the_notes_loop(constant, weighted):
    rng = np.random.default_rng(0)
    for _ in range(10):
        X, y = rows(rng, 12, 3, 2.0), rng.random(12)
        weight = rng.choice([0.0, 0.5, 1.0, 3.0], 12) + np.eye(12)[0] if weighted else None
        model = IsotronRegressor(constant, rounds=6).fit(X, y, weight)
        keep = np.ones(12) if weight is None else weight
        x2 = np.linalg.norm(X[keep > 0], axis=1).max()
        eta = 1.0 / ((constant or 1.0) * x2**2)
        losses, path = naive_rounds(
            X, y, lambda z, y=y, weight=weight: isotonic(z, y, weight, lipschitz=constant).fit, eta, 6, weight
        )
        np.testing.assert_allclose(model.losses_, losses, rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose(model.histories_[0].last, path[-1], rtol=1e-9, atol=1e-14)
        assert model.eta_ == pytest.approx(eta, rel=1e-14)
        best = losses.argmin()
        assert model.best_round_ == best + 1
        np.testing.assert_allclose(model.coef_, path[best], rtol=1e-9, atol=1e-14)
        fit = isotonic(X @ path[best], y, weight, lipschitz=constant).fit
        np.testing.assert_allclose(model.predict(X), fit, atol=1e-12)


@pytest.mark.parametrize("link", LINK_FUNCTIONS)
def test_glm_tron_over_epochs_is_the_loop(link):
    rng = np.random.default_rng(1)
    X, y, weight = rows(rng, 15, 3, 2.0), rng.random(15), rng.random(15)
    model = GLMtronBatchRegressor(link, rounds=5, fit_intercept=True).fit(X, y, weight)
    ones = np.hstack([X, np.ones((15, 1))])
    eta = 1.0 / (LINK_FUNCTIONS[link].lipschitz * (np.linalg.norm(ones, axis=1) ** 2).max())
    losses, path = naive_rounds(ones, y, LINK_FUNCTIONS[link].u, eta, 5, weight)
    np.testing.assert_allclose(model.losses_, losses, rtol=1e-12)
    best = losses.argmin()
    np.testing.assert_allclose(np.r_[model.coef_, model.intercept_], path[best], rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(model.predict(X), LINK_FUNCTIONS[link].u(ones @ path[best]), rtol=1e-12)


def test_links_rise_by_at_most_their_constant_and_integrate():
    z = np.linspace(-6.0, 6.0, 120_001)
    for link in LINK_FUNCTIONS.values():
        u = link.u(z)
        slope = np.diff(u) / np.diff(z)
        assert slope.min() >= 0.0
        assert link.lipschitz * (1 - 1e-6) <= slope.max() <= link.lipschitz * (1 + 1e-9)
        np.testing.assert_allclose(np.diff(link.integral(z)), 0.5 * (u[1:] + u[:-1]) * np.diff(z), atol=1e-9)


def test_the_first_link_is_the_mean():
    rng = np.random.default_rng(2)
    X, y, weight = rng.standard_normal((50, 4)), rng.random(50), rng.random(50)
    for constant in (None, 1.0):
        model = IsotronRegressor(constant, rounds=1).fit(X, y, weight)
        np.testing.assert_allclose(model.predict(X), np.average(y, weights=weight), rtol=1e-14)
        np.testing.assert_array_equal(model.coef_, 0.0)


@pytest.mark.parametrize(("m", "n"), [(5, 10), (300, 10), (1000, 33), (64, 257)])
def test_identical_rows_tie(m, n):
    rng = np.random.default_rng(m)
    X = rng.standard_normal((m, n))
    X = np.repeat(X, 3, axis=0)[rng.permutation(3 * m)]
    w = rng.standard_normal(n)
    for storage in (X, X.astype(np.float32), np.asfortranarray(X), sp.csr_matrix(X)):
        problem = SingleIndexProblem(storage, rng.random(3 * m), None, PLAIN)
        z = problem.margins(w)
        assert np.unique(z).size <= m
    y = rng.random(3 * m)
    model = IsotronRegressor(rounds=4).fit(X, y)
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    got = model.predict(X)
    np.testing.assert_array_equal(got, got[first][group.ravel()])


@pytest.mark.parametrize("link", [PLAIN, GivenLink(LINK_FUNCTIONS["logistic"], 1.0)], ids=["learnt", "given"])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix, np.asfortranarray])
def test_two_halves_and_two_threads_change_no_bit(monkeypatch, store, link):
    rng = np.random.default_rng(3)
    X, y, weight = store(rows(rng, 101, 5)), rng.random(101), rng.random(101)
    whole = run_rounds(SingleIndexProblem(X, y, weight, link), 5)
    monkeypatch.setattr(module, "LARGE", 10)
    monkeypatch.setattr(stripes, "MANY", 10)
    fits = []
    for threads in (1, 2):
        monkeypatch.setattr(module, "_threads", lambda threads=threads: threads)
        monkeypatch.setattr(side_by_side, "PROCESSORS", threads)
        fits.append(run_rounds(SingleIndexProblem(X, y, weight, link), 5))
    for name in ("last", "loss", "match"):
        np.testing.assert_array_equal(*(getattr(fit, name) for fit in fits))
        np.testing.assert_allclose(getattr(fits[0], name), getattr(whole, name), rtol=1e-12)


# ---------------------------------------------------------------- the theorems


def planted_streams(rng, count):
    """(X, w*, u, name) with |x| <= X2 and u nondecreasing and 1-Lipschitz."""
    for k in range(count):
        m, n = rng.integers(2, 9), rng.integers(1, 4)
        X = rows(rng, m, n, 10.0 ** rng.uniform(-1, 1))
        if k % 3 == 0:
            X = np.round(X, 1)  # ties in the margins
        name = list(PIECES)[k % len(PIECES)]
        if k % 50 == 0:  # two points that attain Isotron's bound
            r = 10.0 ** rng.uniform(-1, 1)
            yield np.array([[r], [-r]]), np.array([rng.uniform(0.1, 0.5) / r]), lambda z: np.clip(z + 0.5, 0, 1), "two"
            continue
        yield X, rng.standard_normal(n) * 10.0 ** rng.uniform(-1, 1), PIECES[name], name


def test_the_losses_of_isotron_add_up_to_at_most_the_bound_on_ten_thousand_planted_streams():
    rng = np.random.default_rng(0)
    ratio = 0.0
    for k, (X, w, u, _) in enumerate(planted_streams(rng, many(1_000, 10_000))):
        y = u(X @ w)
        problem = SingleIndexProblem(X, y, None, LearntLink(1.0, 1.0) if k % 4 == 0 else PLAIN)
        bound = problem.x2**2 * float(w @ w)
        total = float(run_rounds(problem, 3).loss.sum())
        assert total <= bound + 1e-12 * (1.0 + bound)
        ratio = max(ratio, total / bound) if bound > 0 else ratio
    assert ratio > 0.999  # some streams attain it


def test_the_losses_of_glm_tron_add_up_to_at_most_the_bound_on_ten_thousand_planted_streams():
    rng = np.random.default_rng(1)
    links, ratio = list(LINK_FUNCTIONS.values()), 0.0
    for k, (X, w, _, _) in enumerate(planted_streams(rng, many(1_000, 10_000))):
        link = links[k % len(links)]
        y = link.u(X @ w)
        problem = SingleIndexProblem(X, y, None, GivenLink(link, link.lipschitz))
        bound = (link.lipschitz * problem.x2) ** 2 * float(w @ w)
        total = float(run_rounds(problem, 3).loss.sum())
        assert total <= bound + 1e-12 * (1.0 + bound)
        ratio = max(ratio, total / bound) if bound > 0 else ratio
    assert ratio > 0.5


def test_certificates_hold_on_planted_data_of_every_kind():
    rng = np.random.default_rng(2)
    for k, (X, w, u, _) in enumerate(planted_streams(rng, 120)):
        weight = rng.choice([0.0, 1.0, 2.5], len(X)) + np.eye(len(X))[0]
        y = u(X @ w)
        constant = 1.0 if k % 2 else None
        model = IsotronRegressor(constant, rounds=7, scale_x=k % 4 < 2).fit(X, y, weight)
        found = model.certify(X, y, weight, planted=w)
        assert found.verdict is Verdict.HOLDS, str(found)
        assert found.measured == pytest.approx(model.losses_.sum(), rel=1e-12)
        x2 = np.linalg.norm(X[weight > 0], axis=1).max()
        assert found.bound == pytest.approx(x2**2 * float(w @ w), rel=1e-9)
        assert found.path[-1].potential >= -1e-9 * (1.0 + found.path[0].potential)
        potentials = [c.potential for c in found.path]
        assert all(a >= b - 1e-9 * (1.0 + a) for a, b in pairwise(potentials))
        link = list(LINK_FUNCTIONS)[k % len(LINK_FUNCTIONS)]
        y = LINK_FUNCTIONS[link].u(X @ w)
        glm = GLMtronBatchRegressor(link, rounds=7, fit_intercept=False).fit(X, y, weight)
        assert glm.certify(X, y, weight, planted=w).verdict is Verdict.HOLDS


def test_two_points_attain_the_bound():
    X, y = np.array([[1.0], [-1.0]]), [0.9, 0.1]
    found = IsotronRegressor(rounds=30).fit(X, y, certify=False).certify(X, y, planted=[0.4])
    assert found.verdict is Verdict.HOLDS and found.equality
    assert found.bound == pytest.approx(0.16, rel=1e-12)


def test_what_is_not_planted_is_void_and_what_is_not_declared_uncheckable():
    rng = np.random.default_rng(3)
    X, w = rows(rng, 60, 3), np.array([1.0, -2.0, 0.5])
    y = expit(X @ w)
    model = IsotronRegressor(rounds=5).fit(X, y)
    assert model.certify(X, y).verdict is Verdict.UNCHECKABLE
    assert "the best of 5 iterates" in str(model.certify(X, y))
    assert math.isnan(model.certify(X, y).bound)
    assert model.certify(X, y, planted=w).verdict is Verdict.HOLDS
    wrong = model.certify(X, y, planted=-w)  # y falls along it
    assert wrong.verdict is Verdict.VOID and math.isnan(wrong.bound)
    assert any(need.met is False and "falls" in need.text for need in wrong.assumptions)
    steep = model.certify(X, y, planted=0.1 * w)
    assert steep.verdict is Verdict.VOID
    assert any(need.met is False and "Lipschitz" in need.text for need in steep.assumptions)
    noisy, order = y.copy(), np.argsort(X @ w)
    noisy[order[7]] = noisy[order[8]] + 1e-11
    found = IsotronRegressor(rounds=5).fit(X, noisy).certify(X, noisy, planted=w)
    assert found.verdict is Verdict.VOID
    noisy[order[7]] = noisy[order[8]] + 1e-14  # within what rounding of y may do
    assert IsotronRegressor(rounds=5).fit(X, noisy).certify(X, noisy, planted=2 * w).verdict is Verdict.HOLDS


def test_targets_outside_the_unit_interval_void_the_theorem_and_scaling_them_mends_it():
    rng = np.random.default_rng(4)
    X, w = rows(rng, 80, 3), np.array([1.0, 1.0, 0.0])
    y = 10.0 + 3.0 * np.tanh(X @ w)
    model = IsotronRegressor(rounds=5).fit(X, y)
    found = model.certify(X, y, planted=3.0 * w)
    assert found.verdict is Verdict.VOID
    assert any(need.met is False and "[0, 1]" in need.text for need in found.assumptions)
    scaled = IsotronRegressor(rounds=400, scale_y=True, scale_x=True).fit(X, y)
    assert scaled.y_offset_ == y.min() and scaled.y_scale_ == y.max() - y.min()
    assert scaled.x_scale_ == pytest.approx(np.linalg.norm(X, axis=1).max())
    assert scaled.certify(X, y, planted=3.0 * w / scaled.y_scale_).verdict is Verdict.HOLDS
    assert np.abs(scaled.predict(X) - y).max() < 0.1
    assert scaled.link_.mean.min() == pytest.approx(y.min(), abs=0.2)
    plain = IsotronRegressor(rounds=400, scale_y=True).fit(X, y)
    np.testing.assert_allclose(scaled.coef_, plain.coef_, rtol=1e-6)


def test_a_step_that_is_too_long_is_void():
    X, y = np.array([[1.0], [-1.0]]), np.array([0.9, 0.1])
    found = IsotronRegressor(rounds=3, eta=2.0).fit(X, y).certify(X, y, planted=[0.4])
    assert found.verdict is Verdict.VOID and "ηλX₂² = 2" in str(found)


def test_glm_tron_on_any_data_is_certified_in_its_matching_loss():
    rng = np.random.default_rng(5)
    for link in LINK_FUNCTIONS:
        X, y, weight = rng.standard_normal((40, 3)), rng.random(40), rng.random(40)
        model = GLMtronBatchRegressor(link, rounds=30).fit(X, y, weight)
        found = model.certify(X, y, weight)
        assert found.verdict is Verdict.HOLDS, str(found)
        assert found.comparator.found == "the smallest"
        given = model.certify(X, y, weight, u=rng.standard_normal(4))
        assert given.verdict is Verdict.HOLDS and given.bound >= found.bound * (1 - 1e-6)
        assert model.facts_.loss == pytest.approx(found.measured, rel=1e-9)
        assert model.certify(X, y, weight, planted=rng.standard_normal(4)).verdict is Verdict.VOID


def test_a_certificate_is_of_the_rows_it_was_trained_on():
    rng = np.random.default_rng(6)
    X, y = rows(rng, 30, 2), rng.random(30)
    model = IsotronRegressor(rounds=4).fit(X, y)
    with pytest.raises(MismatchError, match="not trained on these rows"):
        model.certify(X[:29], y[:29])
    with pytest.raises(ValueError, match="features"):
        model.certify(X[:, :1], y)


def test_facts_of_the_rounds():
    rng = np.random.default_rng(7)
    X, y = rows(rng, 30, 2, 3.0), rng.random(30)
    model = IsotronRegressor(rounds=9).fit(X, y)
    facts = model.facts_
    assert facts.rounds == 9 and facts.square == pytest.approx(model.losses_.sum())
    assert facts.x2 == pytest.approx(3.0) and facts.rate_max == facts.rate_min == model.eta_
    assert (facts + facts).rounds == 18


# ---------------------------------------------------------------- noise, and other learners


def single_index(m, seed, u):
    """Rows on the sphere, labels that are 1 with probability u(w*.x), and those probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    p = u(X @ np.array([2.5, -2.0, 1.0, 0.0]))
    return X, (rng.random(m) < p).astype(float), p


def kinked(z):
    """A link far from logistic, 0.45-Lipschitz: two ramps and a terrace."""
    return 0.1 + 0.35 * np.clip(z + 2.5, 0.0, 1.0) + 0.45 * np.clip(z - 1.0, 0.0, 1.0)


def test_with_noise_the_lipschitz_link_comes_within_ten_per_cent_of_the_true_one():
    X, y, _ = single_index(100_000, 0, kinked)
    T, t, p = single_index(50_000, 1, kinked)
    model = IsotronRegressor(1.0, rounds=40).fit(X, y)
    truth = np.mean((t - p) ** 2)
    assert np.mean((t - model.predict(T)) ** 2) <= 1.1 * truth
    # Most of that error is the noise. What is left of the difference to the true link is small as well:
    assert np.mean((p - model.predict(T)) ** 2) <= 0.06 * np.var(p)


def test_against_logistic_regression():
    for u, wins in ((kinked, True), (expit, False)):
        X, y, _ = single_index(20_000, 2, u)
        T, _, p = single_index(20_000, 3, u)
        ours = IsotronClassifier(1.0, rounds=80).fit(X, y).predict_proba(T)[:, 1]
        theirs = LogisticRegression(C=1e6).fit(X, y).predict_proba(T)[:, 1]
        off, rival = np.mean((ours - p) ** 2) / np.var(p), np.mean((theirs - p) ** 2) / np.var(p)
        if wins:
            assert off < 0.25 * rival
        else:
            assert off < 0.01  # on its own ground the other is better, and ours close


def test_probabilities_are_calibrated_on_the_training_rows():
    X, y, _ = single_index(3000, 4, kinked)
    model = IsotronClassifier(rounds=10).fit(X, np.where(y > 0, "yes", "no"))
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.classes_.tolist() == ["no", "yes"]
    for level in np.unique(p[:, 1]):
        at = p[:, 1] == level
        assert np.mean(y[at]) == pytest.approx(level, abs=1e-12)
    z, mean = model.link_
    assert np.all(np.diff(z) > 0) and np.all(np.diff(mean) >= 0)


# ---------------------------------------------------------------- the estimators


def test_storages_agree():
    rng = np.random.default_rng(8)
    X = (rng.standard_normal((60, 6)) * (rng.random((60, 6)) < 0.5)).astype(np.float32)
    y = rng.random(60)
    want = IsotronRegressor(1.0, rounds=8).fit(X.astype(np.float64), y)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for other in (X, sp.csr_matrix(X), np.asfortranarray(X), frame):
        model = IsotronRegressor(1.0, rounds=8).fit(other, y)
        np.testing.assert_allclose(model.coef_, want.coef_, rtol=1e-10)
        np.testing.assert_allclose(model.predict(other), want.predict(X.astype(np.float64)), rtol=1e-10)
    assert model.feature_names_in_.tolist() == list("abcdef")


def test_three_classes_are_one_against_the_rest():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((600, 2))
    y = np.array(["a", "b", "c"])[np.argmax(X @ rng.standard_normal((2, 3)) + 0.1 * rng.standard_normal((600, 3)), 1)]
    model = IsotronClassifier(rounds=40).fit(X, y)
    assert model.score(X, y) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.coef_.shape == (3, 2) and len(model.link_) == 3 and len(model.facts_) == 3
    found = model.certify(X, y)
    assert [c.label for c in found.each] == ["a", "b", "c"] and found.verdict is Verdict.UNCHECKABLE


def test_a_held_out_part_picks_the_iterate():
    X, y, _ = single_index(2000, 5, kinked)
    model = IsotronRegressor(rounds=15, held_out=0.25, random_state=0).fit(X, y)
    history = model.histories_[0]
    assert history.held.shape == (15,) and model.best_round_ == history.held.argmin() + 1
    train, held = model._rows
    assert np.union1d(train, held).tolist() == list(range(2000)) and len(held) == 500
    miss = np.mean((y[held] - model.predict(X[held])) ** 2)
    assert miss == pytest.approx(history.held.min(), rel=1e-10)
    assert model.certify(X, y).verdict is Verdict.UNCHECKABLE
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_a_warm_start_goes_on():
    X, y, _ = single_index(500, 6, kinked)
    whole = IsotronRegressor(1.0, rounds=10).fit(X, y)
    parts = IsotronRegressor(1.0, rounds=5, warm_start=True, scale_x=True).fit(X, y)
    parts.fit(X, y)
    np.testing.assert_allclose(parts.losses_, whole.losses_[5:], rtol=1e-9)
    cold = IsotronRegressor(1.0, rounds=5).fit(X, y).fit(X, y)
    np.testing.assert_allclose(cold.losses_, whole.losses_[:5], rtol=1e-12)


def test_progress_is_told_on_stderr_when_asked(capfd):
    X, y, _ = single_index(50, 7, kinked)
    IsotronRegressor(rounds=3).fit(X, y)
    assert capfd.readouterr() == ("", "")
    IsotronRegressor(rounds=3, verbose=True).fit(X, y)
    out, err = capfd.readouterr()
    assert out == "" and "round 3" in err


def test_a_link_of_ones_own():
    rng = np.random.default_rng(10)
    X, w = rows(rng, 40, 3), np.array([1.0, 2.0, -1.0])

    def cubic(z):
        return 0.5 + 0.1 * z + 0.01 * z**3

    def one_number(z):
        return 0.5 + math.atan(z) / math.pi if z > -3.0 else 0.0

    for link, constant in ((cubic, 0.5), (one_number, 0.4)):
        y = np.array([link(float(v)) for v in X @ w])
        model = GLMtronBatchRegressor(link, rounds=20, lipschitz=constant, fit_intercept=False).fit(X, y)
        assert model.losses_[-1] < model.losses_[0]
        found = model.certify(X, y, planted=w)
        assert found.verdict is Verdict.HOLDS and "margins of the run and of w*" in str(found)
        assert model.certify(X, y).verdict is Verdict.UNCHECKABLE
        assert model.predict(X).shape == (40,)


def test_a_link_that_falls_or_is_too_steep_on_the_margins_seen_is_refused():
    rng = np.random.default_rng(11)
    X, y = rows(rng, 40, 3), rng.random(40)
    with pytest.raises(ValueError, match=r"link '<lambda>' falls: u\("):
        GLMtronBatchRegressor(lambda z: -z, rounds=5, lipschitz=1.0).fit(X, y)
    with pytest.raises(ValueError, match="rises faster than lipschitz"):
        GLMtronBatchRegressor(lambda z: 3.0 * z, rounds=5, lipschitz=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"gives nan at z = 0\.0, which is not finite"):
        GLMtronBatchRegressor(lambda z: np.full_like(z, np.nan), rounds=2, lipschitz=1.0).fit(X, y)
    with pytest.raises(ValueError, match="needs its Lipschitz constant"):
        GLMtronBatchRegressor(lambda z: z).fit(X, y)
    with pytest.raises(ValueError, match="lipschitz is for a link of your own"):
        GLMtronBatchRegressor("logistic", lipschitz=1.0).fit(X, y)


BAD = {
    r"row 3, column 1: value NaN is not finite": lambda X, y: (X.__setitem__((3, 1), np.nan), {})[1],
    r"row 2, column 0: value inf is not finite": lambda X, y: (X.__setitem__((2, 0), np.inf), {})[1],
    r"row 5: target nan must be finite": lambda X, y: (y.__setitem__(5, np.nan), {})[1],
    r"row 1: weight -1.0 must be a finite number": lambda X, y: {"sample_weight": np.r_[1.0, -1.0, np.ones(8)]},
    "all weights are zero": lambda X, y: {"sample_weight": np.zeros(10)},
}


@pytest.mark.parametrize("message", BAD)
@pytest.mark.parametrize("model", [IsotronRegressor(rounds=2), GLMtronBatchRegressor(rounds=2)], ids=str)
def test_bad_rows_are_one_clear_error_and_change_nothing(message, model):
    rng = np.random.default_rng(0)
    X, y = rows(rng, 10, 2), rng.random(10)
    model = clone(model).fit(X, y)
    before = model.predict(X)
    A, b = X.copy(), y.copy()
    options = BAD[message](A, b)
    with pytest.raises(ValueError, match=message):
        model.fit(A, b, **options)
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_bad_row_is_named_by_its_place_in_the_call_though_some_are_held_out():
    rng = np.random.default_rng(0)
    X, y = rows(rng, 40, 2), rng.random(40)
    for row in (3, 17, 31):
        A = X.copy()
        A[row, 1] = np.inf
        with pytest.raises(ValueError, match=f"row {row}, column 1: value inf"):
            IsotronRegressor(rounds=2, held_out=0.4, random_state=0).fit(A, y)


def test_rows_of_weight_zero_are_absent_from_scales_and_norms():
    rng = np.random.default_rng(0)
    X, y, weight = rows(rng, 20, 2), rng.random(20), np.ones(20)
    X[4], y[4], weight[4] = 100.0, -7.0, 0.0
    keep = weight > 0
    got = IsotronRegressor(1.0, rounds=5, scale_x=True, scale_y=True).fit(X, y, weight)
    want = IsotronRegressor(1.0, rounds=5, scale_x=True, scale_y=True).fit(X[keep], y[keep])
    assert (got.x_scale_, got.y_offset_, got.y_scale_) == (want.x_scale_, want.y_offset_, want.y_scale_)
    np.testing.assert_allclose(got.predict(X), want.predict(X), rtol=1e-12)


def test_weights_beyond_the_range_of_numbers_are_refused():
    rng = np.random.default_rng(0)
    X, y = rows(rng, 5, 2), rng.random(5)
    with pytest.raises(ValueError, match="overflows: scale weight"):
        IsotronRegressor(rounds=2).fit(X, y, np.full(5, 1e305))
    with pytest.raises(ValueError, match="too small to divide by"):
        IsotronRegressor(rounds=2).fit(X, y, np.full(5, 1e-300))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number, at least 1; got 0"),
        ({"rounds": 2.5}, "rounds must be a whole number"),
        ({"eta": 0.0}, "eta must be a number above 0"),
        ({"lipschitz": 0.0}, "lipschitz must be a number above 0"),
        ({"held_out": 1.0}, "held_out must be a share"),
        ({"held_out": 0.99}, "leaves none to learn from"),
    ],
)
def test_bad_options(options, message):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        IsotronRegressor(**options).fit(rows(rng, 10, 2), rng.random(10))


def test_one_row_rows_of_zeros_and_a_constant_target():
    model = IsotronRegressor(rounds=3).fit([[2.0, 1.0]], [0.25])
    np.testing.assert_array_equal(model.predict([[0.0, 0.0], [5.0, 5.0]]), 0.25)
    model = IsotronRegressor(rounds=3).fit(np.zeros((4, 2)), [0.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(model.predict(np.ones((1, 2))), 0.5)
    model = IsotronRegressor(rounds=3, scale_y=True).fit(np.eye(3), [7.0, 7.0, 7.0])
    np.testing.assert_array_equal(model.predict(np.eye(3)), 7.0)
    with pytest.raises(ValueError, match="at least two classes"):
        IsotronClassifier().fit(np.eye(3), [1, 1, 1])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_diverging_step_is_stopped():
    with pytest.raises(ValueError, match=r"round \d+: the step is not finite"):
        GLMtronBatchRegressor("identity", rounds=2000, eta=1e4).fit([[3.0], [1.0]], [1.0, 0.0])


def test_certificate_from_a_sweep_names_its_class():
    rng = np.random.default_rng(1)
    problem = SingleIndexProblem(rows(rng, 9, 2), rng.random(9), None, PLAIN)
    first, second, *_ = certify_rounds(problem, run_rounds(problem, 2), label="x").lines()
    assert first.startswith("x: off by ") and second.startswith("x: UNCHECKABLE: Isotron")
