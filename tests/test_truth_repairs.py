"""What an independent check of thousands of certificates found false, each with the rows that showed it."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import nightly
from hindsight import GLMtronBatchRegressor
from hindsight.certificates import theorems
from hindsight.certificates.best import comparator
from hindsight.certificates.best.newton import Inverse
from hindsight.certificates.certificate import Certificates
from hindsight.certificates.certify import certify_run
from hindsight.certificates.theorems import Verdict
from hindsight.errors import MismatchError
from hindsight.kernels.compiler import part
from hindsight.kernels.losses import Absolute, Square, logit_slope, loss_part
from hindsight.online import learners as L
from hindsight.online.panel import Panel, PanelRun
from hindsight.online.parts import LOSSES, UPDATES
from hindsight.online.run import Run, play
from hindsight.rows.data import Data

EPS = float(np.finfo(np.float64).eps)


def trained(learner, X, y, weight=None, intercept=False, passes=1):
    run = Run(learner, X.shape[1], intercept=intercept)
    for _ in range(passes):
        play([run], X, [y], weight)
    return run, Data(X, y, weight, bias=float(intercept))


def certificate(learner, X, y, weight=None, intercept=False, passes=1, **options):
    return certify_run(*trained(learner, X, y, weight, intercept, passes), **options)


# --- the per-round lemma and rounding ---------------------------------------------------------------------------------


def outlier(seed, size=1e6):
    """Rows that one weight explains, one of the first of them far longer than the others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3))
    X[rng.integers(3), 0] *= size
    return X, X[:, 0] + rng.choice([0.0, 1e-6, 1e-3]) * rng.normal(size=200)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("radius", [1.0, None])
def test_an_outlier_does_not_break_the_lemma_of_exponentiated_gradient(seed, radius):
    X, y = outlier(seed)
    c = certificate(L.eg(1e-3, radius, power=0.5), X, y, intercept=True)
    assert c.verdict is Verdict.HOLDS, c.notes
    assert c.measured < c.bound


@nightly(but=["0.49"])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.49])
def test_the_refresh_of_the_mass_does_not_break_the_lemma(share):
    """Each step moves the mass of 200,000 weights by less than half a rounding, and the refresh by all of them."""
    n = 200_000
    rows = n // 2 + 10
    X = sp.csr_matrix((np.ones(rows), np.arange(rows), np.arange(rows + 1)), shape=(rows, n))
    y = np.full(rows, 1.0 / n + 1e3 * share * np.spacing(float(n)))
    c = certificate(L.eg(1e-3, None), X, y, u=np.full(n, 1.0 / n))
    assert c.verdict is Verdict.HOLDS, c.notes
    assert any("which rounding explains" in note for note in c.notes)


def test_the_lemma_is_no_note_where_it_holds():
    X, y = outlier(0, size=1.0)
    c = certificate(L.eg(1e-3, 1.0, power=0.5), X, y, intercept=True)
    assert c.verdict is Verdict.HOLDS
    assert not any("lemma" in note for note in c.notes)


def test_margins_that_cancel_do_not_break_the_lemma():
    """The weights are large and nearly orthogonal to the rows, whose margins are rounding alone."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        w = 1e7 * rng.normal(size=4)
        X = rng.normal(size=(20, 4))
        X -= np.outer(X @ w, w) / (w @ w)
        run = Run(L.descent("absolute", eta=1e-3), 4, intercept=False, start=w)
        y = 0.1 * rng.normal(size=20)
        play([run], X, [y])
        c = certify_run(run, Data(X, y), u=w)
        assert c.verdict is Verdict.HOLDS, c.notes


@part
class Heavier(NamedTuple):
    """Explicit steps of so many times the size they should have."""

    scale: float
    name = "heavier"

    def effective_slope(self, loss, geometry, state, rows, t, z, q, y, a):
        return self.scale * loss.slope(z, y)


@nightly(only=["balanced-*"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("times", [0.5, 0.99, 1.01, 1.5])
@pytest.mark.parametrize("geometry", ["euclidean", "simplex", "balanced"])
def test_steps_that_are_not_the_theorems_never_hold_and_are_broken_only_above_the_bound(geometry, times, scale):
    """A hundredth too long or too short, at every scale: the lemma is checked relative to its own terms."""
    rng = np.random.default_rng(1)
    X = np.hstack([rng.uniform(0.6, 1.0, (50, 1)), rng.uniform(0.1, 0.4, (50, 2))])
    y = np.full(50, 2.0 * scale)  # out of reach, so that every slope is -1
    eta = 1e-3 * scale if geometry == "euclidean" else 1e-3 / scale
    where = L.space(geometry, 1.0 if geometry == "euclidean" else scale)
    better, worse = scale * np.eye(3)[0], scale * (np.eye(3)[1] if geometry == "simplex" else -np.eye(3)[0])
    for update, u in (
        (Heavier(times), better if times < 1.0 else worse),
        (Heavier(1.0), better),
        (Heavier(1.0), worse),
    ):
        learner = L.Learner("liar", Absolute(1.0), update, where, L.constant(eta), theorem="convex-descent")
        run, data = trained(learner, X, y)
        c = certify_run(run, data, u=u)
        if update.scale == 1.0:
            assert c.verdict is Verdict.HOLDS
            continue
        assert c.verdict is Verdict.UNCHECKABLE, c
        assert any("that step is not the theorem's" in note for note in c.notes)
        assert math.isnan(c.bound)


@pytest.mark.parametrize("far", [0.0, 3e7])
def test_a_run_above_its_bound_is_broken(far):
    X, y = np.ones((30, 1)), far + np.tile([1.0, -1.0], 15)
    learner = L.Learner(
        "liar", Absolute(1.0), Heavier(40.0), L.space("euclidean", 1.0), L.constant(0.1), theorem="convex-descent"
    )
    run = Run(learner, 1, intercept=False, start=np.array([far]))
    play([run], X, [y])
    c = certify_run(run, Data(X, y))
    assert c.measured > c.bound
    assert c.verdict is Verdict.BROKEN


# --- digits of the exponents ------------------------------------------------------------------------------------------


def after_a_first_row(size, eta=0.1, rows=90):
    """(with the row, without it): a common shift of the exponents leaves weights on the simplex as they are."""
    X = np.vstack([[size, size], np.tile([0.7, -0.7], (rows, 1))])
    y = np.r_[0.0, np.full(rows, 5.0)]
    learner = L.descent("absolute", "simplex", eta)
    return trained(learner, X, y), trained(learner, X[1:], y[1:])


@pytest.mark.parametrize("size", [1e4, 1e8, 1e12, -1e12, 1e14, -1e14])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_a_common_shift_of_the_exponents_costs_no_digits(size, storage):
    X = np.vstack([[size, size], np.tile([0.7, -0.7], (90, 1))])
    y = np.r_[0.0, np.full(90, 5.0)]
    learner = L.descent("absolute", "simplex", 0.1)
    run, _ = trained(learner, storage(X), y)
    want, _ = trained(learner, storage(X[1:]), y[1:])
    np.testing.assert_allclose(run.weights, want.weights, rtol=1e-12)
    assert np.abs(run.state.theta).max() < 1e3
    averaged, alone = (Run(learner, 2, intercept=False, average=True) for _ in range(2))
    play([averaged], storage(X), [y])
    play([alone], storage(X[1:]), [y[1:]])
    total = averaged.mean("before") * averaged.rounds - averaged.first
    np.testing.assert_allclose(total / alone.rounds, alone.mean("before"), rtol=1e-9)


def test_a_certificate_says_when_rounding_may_have_reached_the_weights_and_is_void_when_it_has():
    (run, data), _ = after_a_first_row(1e8)
    c = certify_run(run, data, u=run.first)
    assert c.verdict is Verdict.HOLDS
    assert not any("rounding" in need.text for need in c.assumptions)
    (run, data), _ = after_a_first_row(1e12)
    c = certify_run(run, data, u=run.first)
    assert c.verdict is Verdict.HOLDS
    assert [need.met for need in c.assumptions if "rounding" in need.text] == [True]
    (run, data), _ = after_a_first_row(1e14)
    c = certify_run(run, data, u=run.first)
    assert c.verdict is Verdict.VOID
    assert [need.met for need in c.assumptions if "rounding" in need.text] == [False]


@pytest.mark.parametrize("geometry", ["simplex", "balanced"])
def test_what_rounding_is_said_to_have_done_is_at_least_what_it_did(geometry):
    """Exponents in rational arithmetic, with the steps that were taken, against those of the run."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        n = int(rng.integers(2, 5))
        X = rng.normal(size=(40, n)) * 10.0 ** rng.uniform(-3, 9, (40, 1))
        y = rng.choice([-1.0, 1.0], 40)
        run, data = trained(L.descent("hinge", geometry, 0.1), X, y)
        found = certify_run(run, data, u=run.first).assumptions
        said = [float(need.text.split("more than ")[1].split(",")[0]) for need in found if "rounding" in need.text]
        theta = [Fraction(0)] * n
        again = Run(run.learner, n, intercept=False)
        for t in range(40):
            z = np.empty((1, 1))
            play([again], X[t : t + 1], [y[t : t + 1]], None, z)
            if y[t] * z[0, 0] <= 1.0:
                theta = [a + Fraction(0.1 * y[t]) * Fraction(x) for a, x in zip(theta, X[t], strict=True)]
        off = [Fraction(a) - b for a, b in zip(run.state.theta, theta, strict=True)]
        middle = off[0] if geometry == "simplex" else 0
        far = max(abs(float(a - middle)) for a in off)
        assert far <= 2.02 * (said[0] if said else 1e-6)  # two exponents may be off in opposite directions


@pytest.mark.parametrize("geometry", ["simplex", "balanced"])
def test_a_mass_that_rises_and_falls_keeps_its_digits(geometry):
    """One weight of many goes up a thousandfold and down again: the mass is a difference of larger ones each time."""
    n, m = 1000, 300
    values = np.tile([1.0, -2.0, 1.0], m // 3)
    X = sp.csr_matrix((values, np.zeros(m, int), np.arange(m + 1)), shape=(m, n))
    start = np.full(n, 1e-9) if geometry == "simplex" else np.zeros(n)
    start[0] = 1.0 - start[1:].sum() - 1e-6 * (geometry == "balanced")
    run = Run(L.descent("hinge", geometry, 6.5), n, intercept=False, start=start)
    for t in range(m):
        play([run], X[t], [np.ones(1)])
        theta, shift = run.state.theta, run.state.shift[0] * math.log(2.0)
        parts = np.exp(theta - shift) + (np.exp(-theta - shift) if geometry == "balanced" else 0.0)
        assert abs(run.state.mass[0] / math.fsum(parts) - 1.0) <= 4.0 * EPS * n


# --- theorems of other learners, alone and in panels ------------------------------------------------------------------


def liar(theorem, loss, update="explicit", geometry="euclidean", eta=0.1):
    """A learner that declares a theorem of others."""
    update = UPDATES.get(update, update)
    return L.Learner("liar", loss, update, L.space(geometry, 1.0), L.constant(eta), theorem=theorem)


def liars():
    return {
        "half-length steps": liar("convex-descent", LOSSES["absolute"], Heavier(0.5), eta=1.0),
        "explicit steps": liar("implicit-widrow-hoff", Square(1.0)),
        "hinge as the perceptron": liar("perceptron", LOSSES["hinge"], eta=1.0),
        "hinge as the scale-free one": liar("scale-free-perceptron", LOSSES["hinge"], geometry="scale-free", eta=1.0),
        "explicit steps as implicit descent": liar("implicit-descent", LOSSES["absolute"]),
        "not convex, running": replace(L.running("square", 2.0), loss=Welsch(1.0)),
        "not convex, scale-free": liar("scale-free", Welsch(1.0), geometry="scale-free"),
        "not convex": liar("convex-descent", Welsch(1.0)),
        "not convex, implicit": liar("implicit-descent", Welsch(1.0), "implicit"),
        "not declared convex": replace(L.running("square", 2.0), loss=Undeclared(2.0)),
    }


@loss_part
class Welsch(NamedTuple):
    """1 - e^(-(z - y)^2/2), which says that it is convex and is not."""

    scale: float
    name, convex, lipschitz = "welsch", True, 1.0

    def slope(self, z, y):
        return self.scale * (z - y) * math.exp(-0.5 * (z - y) * (z - y))

    def value(self, z, y):
        return self.scale * (1.0 - math.exp(-0.5 * (z - y) * (z - y)))

    def implicit(self, z, y, a):
        return self.slope(z, y) / (1.0 + a)


@loss_part
class Undeclared(NamedTuple):
    """The square loss, which does not say that it is convex."""

    scale: float
    name = "undeclared"

    def slope(self, z, y):
        return self.scale * (z - y)

    def value(self, z, y):
        return 0.5 * self.scale * (z - y) * (z - y)

    def implicit(self, z, y, a):
        return self.scale * (z - y) / (1.0 + self.scale * a)


@nightly(only=["not convex, *", "half-length steps"])
@pytest.mark.parametrize("name", liars())
def test_a_theorem_of_another_learner_holds_neither_alone_nor_in_a_panel(name):
    learner = liars()[name]
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 3)) / 3.0
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=80)
    y = np.where(y > 0.0, 1.0, -1.0) if learner.targets == "sign" else 3.0 * y
    alone, panel = Run(learner, 3), PanelRun(Panel((learner, learner)), 3)
    for run in (alone, panel):
        play([run], X, [y])
        found = certify_run(run, Data(X, y, None, 1.0))
        assert found.verdict in (Verdict.UNCHECKABLE, Verdict.VOID), found
        untrue = {"not": "is convex", "hinge": "on a mistake only", "explicit": "are implicit"}.get(
            name.split()[0], "?"
        )
        assert not any(need.met and untrue in need.text for need in found.assumptions)
        assert not any(math.isfinite(member.bound) for member in found.members)


# --- links of the user's own ------------------------------------------------------------------------------------------


def kinked(z):
    """Nondecreasing and 1-Lipschitz on either side of 1, where it falls."""
    return np.where(z < 1.0, 0.5 * z, 0.5 * z - 0.4)


def test_a_link_that_falls_between_the_margins_of_two_rounds_never_holds():
    X = np.ones((1, 1))
    y = kinked(np.array([2.0]))
    model = GLMtronBatchRegressor(kinked, rounds=5, lipschitz=1.0, eta=0.9, fit_intercept=False).fit(X, y)
    assert (np.diff(model.losses_) != 0.0).any()
    found = model.certify(X, y, planted=np.array([2.0]))
    assert found.verdict is Verdict.UNCHECKABLE
    assert any(need.met is None and "it falls: u(" in need.text for need in found.assumptions)


def test_a_link_that_rises_too_fast_between_rounds_never_holds():
    def jump(z):
        return np.where(z < 0.5, 0.1 * z, 0.1 * z + 0.45)

    X, y = np.ones((1, 1)), jump(np.array([1.0]))
    model = GLMtronBatchRegressor(jump, rounds=3, lipschitz=0.2, eta=0.5, fit_intercept=False).fit(X, y)
    found = model.certify(X, y, planted=np.array([1.0]))
    assert found.verdict is Verdict.UNCHECKABLE
    assert any("rises faster" in need.text for need in found.assumptions)


@pytest.mark.parametrize(("kept", "large"), [(10, 1 << 17), (16, 2)])
def test_margins_too_many_to_compare_are_uncheckable(monkeypatch, kept, large):
    """Also where some of each round are kept, since rows are taken in two halves: as often as there are rounds."""
    monkeypatch.setattr("hindsight.certificates.families.isotron.KEPT", kept)
    monkeypatch.setattr("hindsight.batch.isotonic.LARGE", large)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 2))
    y = np.tanh(X @ [0.5, 0.2])
    model = GLMtronBatchRegressor(np.tanh, rounds=5, lipschitz=1.0, fit_intercept=False).fit(X, y)
    found = model.certify(X, y, planted=np.array([0.5, 0.2]))
    assert found.verdict is Verdict.UNCHECKABLE
    assert any(need.met is None and "too many" in need.text for need in found.assumptions)


@loss_part
class Dipping(NamedTuple):
    """The matching loss of a link that falls by 0.2 at 1; its integral is not needed."""

    scale: float
    name, link, link_lipschitz, convex = "dipping", "dipping", 1.0, False

    def slope(self, z, y):
        return self.mean(z) - y

    def value(self, z, y):
        return 0.25 * z * z - y * z

    def curvature(self, z):
        return 0.5

    def mean(self, z):
        return 0.5 * z if z < 1.0 else 0.5 * z - 0.2


def test_an_online_link_that_falls_beyond_a_rounds_own_margins_never_holds():
    learner = L.Learner(
        "own",
        Dipping(1.0),
        UPDATES["explicit"],
        L.space("euclidean", 1.0),
        L.constant(0.5),
        "real",
        "square",
        "glm-tron",
    )
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    w = np.array([1.05, 0.95])
    y = np.array([Dipping(1.0).mean(float(z)) for z in X @ w])
    found = certificate(learner, X, y, planted=w)
    assert found.verdict is Verdict.UNCHECKABLE
    assert any(need.met is None and "falls" in need.text for need in found.assumptions)
    w = np.array([0.9, 0.5])
    found = certificate(learner, X, 0.5 * (X @ w), planted=w)
    assert found.verdict is Verdict.HOLDS
    assert any(need.met and "margins of the run and of w*" in need.text for need in found.assumptions)


# --- planted rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-20, 1e-15, 1e-13, 1e-12])
def test_rows_that_are_planted_to_a_trillionth_are_not_broken_at_tiny_scales(scale):
    """|y - u(w*.x)| is at most 1e-12, which is as much as y itself."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.normal(size=(30, 2))
        y = np.clip(scale * rng.normal(size=30), -1e-12, 1e-12)
        found = certificate(L.glm_tron("identity", 0.1 / float((X**2).sum(axis=1).max())), X, y, planted=np.zeros(2))
        assert found.verdict is Verdict.HOLDS, found
        assert found.bound > found.measured > 0.0


def test_exactly_planted_rows_keep_their_bound():
    X, w = np.random.default_rng(0).normal(size=(30, 2)), np.array([0.5, -0.25])
    found = certificate(L.glm_tron("identity", 0.05), X, X @ w, planted=w)
    assert found.verdict is Verdict.HOLDS
    x2 = float((X**2).sum(axis=1).max())
    assert found.bound == pytest.approx(theorems.glm_tron(0.05, x2, 1.0, float(w @ w)), rel=1e-12)


# --- mistake bounds on noisy rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("weight", [None, 0.5])
@pytest.mark.parametrize(("eta", "balanced"), [(0.1, True), (1.0, True), (3.0, True), (0.1, False), (1.0, False)])
def test_winnows_bound_and_gap_are_those_of_one_rival(eta, balanced, weight, passes):
    """On noise alone no margin promises less than one mistake per round."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 5))
    X /= np.abs(X).max()
    y = rng.choice([-1.0, 1.0], 200)
    c = None if weight is None else np.full(200, weight)
    found = certificate(L.winnow(eta, balanced=balanced), X, y, c, intercept=True, passes=passes)
    total = 200.0 * passes * (weight or 1.0)
    assert found.verdict is Verdict.HOLDS
    assert found.bound <= total
    assert found.bound - found.comparator.gap <= total
    if found.bound == total:
        assert any("trivial" in note for note in found.notes)
        assert math.isnan(found.best_eta)
        assert found.path[-1].bound == total
    share = found.comparator.gap / total
    assert ("the smallest" in found.comparator.found) == (
        share < 1e-6
    ) or f"{100 * share:.2g} %" in found.comparator.found


@pytest.mark.parametrize(("learner", "u"), [(L.perceptron(), [1e3, 1e3]), (L.winnow(5.0), [0.01, 0.0])])
def test_a_bound_on_mistakes_is_at_most_the_number_of_rounds(learner, u):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    found = certificate(learner, X, rng.choice([-1.0, 1.0], 40), u=np.array(u))
    assert found.verdict is Verdict.HOLDS
    trivial = learner.name == "perceptron"  # Winnow keeps the normalisers met, and promises less
    assert (found.bound == 40.0) == trivial and found.bound <= 40.0
    assert any("trivial" in note for note in found.notes) == trivial
    assert all(p.bound <= p.rounds for p in found.path)


# --- what certificates say --------------------------------------------------------------------------------------------


def test_the_best_rate_is_said_with_what_this_rate_brought():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [0.5, -0.2, 0.1] + 0.1 * rng.normal(size=60)
    sign = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    assert "for this u with these norms at their largest η = " in str(
        certificate(L.widrow_hoff(0.01, "explicit"), X, y)
    )
    assert "for this u with these gradients η = " in str(certificate(L.descent("absolute"), X, y))
    assert "for this u with these mistakes η = " in str(certificate(L.winnow(0.1), X / 4.0, sign))


def test_a_rate_of_zero_is_never_said():
    X, y = np.ones((5, 1)), np.ones(5)
    for learner in (L.widrow_hoff(0.1, "explicit"), L.widrow_hoff(0.1, "implicit"), L.descent("absolute")):
        found = certificate(learner, X, y, u=np.zeros(1))
        assert found.best_eta == 0.0
        assert "η = 0 " not in str(found)
        assert "would have made" not in str(found)


def test_the_slope_of_a_logit_is_right_at_the_labels_and_mirrored():
    for z in (-800.0, -40.0, -3.0, 0.0, 5.0, 40.0, 800.0):
        assert logit_slope(z, 0.0) == -logit_slope(-z, 1.0)
        want = math.exp(-abs(z)) / (1.0 + math.exp(-abs(z)))
        assert logit_slope(-abs(z), 0.0) == want
        assert logit_slope(z, 0.25) == -logit_slope(-z, 0.75)


# --- gaps against an independent solver -------------------------------------------------------------------------------


def exact_minimum(X, y, a, kappa):
    """The least of Sigma a (u.x - y)^2 + kappa/2 |u|^2 in rational arithmetic, by Gauss' elimination."""
    n = X.shape[1]
    rows = [[Fraction(v) for v in x] for x in X]
    A = [[2 * sum(Fraction(c) * r[i] * r[j] for c, r in zip(a, rows, strict=True)) for j in range(n)] for i in range(n)]
    b = [2 * sum(Fraction(c) * r[i] * Fraction(t) for c, r, t in zip(a, rows, y, strict=True)) for i in range(n)]
    for i in range(n):
        A[i][i] += Fraction(kappa)
    for i in range(n):
        for j in range(i + 1, n):
            f = A[j][i] / A[i][i]
            A[j] = [p - f * q for p, q in zip(A[j], A[i], strict=True)]
            b[j] -= f * b[i]
    u = [Fraction(0)] * n
    for i in reversed(range(n)):
        u[i] = (b[i] - sum(A[i][j] * u[j] for j in range(i + 1, n))) / A[i][i]
    return objective(X, y, a, kappa, u)


def objective(X, y, a, kappa, u):
    u = [Fraction(v) for v in u]
    loss = sum(
        Fraction(c) * (sum(p * Fraction(q) for p, q in zip(u, x, strict=True)) - Fraction(t)) ** 2
        for c, x, t in zip(a, X, y, strict=True)
    )
    return loss + Fraction(kappa) / 2 * sum(v * v for v in u)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_of_ridge_regression_is_what_is_missing(seed):
    rng = np.random.default_rng(seed)
    X, y, a, kappa = rng.normal(size=(12, 3)), rng.normal(size=12), rng.uniform(0.1, 2.0, 12), 0.5
    hessian = Inverse(2.0 / kappa * (X.T * a) @ X + np.eye(3))
    least = exact_minimum(X, y, a, kappa)
    for _ in range(5):
        u = rng.normal(size=3)
        g = 2.0 * (X.T * a) @ (X @ u - y) + kappa * u
        missing = float(objective(X, y, a, kappa, u) - least)
        assert missing <= comparator.gap_above(g / np.sqrt(kappa), hessian, True) <= 1.02 * missing
    found = comparator.best(Data(X, y), Square(2.0), L.space("euclidean", 1.0), kappa, a)
    missing = float(objective(X, y, a, kappa, found.u) - least)
    assert missing <= found.gap <= 1e-12 * found.objective


@pytest.mark.parametrize("eta", [0.5, 10.0, 100.0])
def test_the_gap_of_an_implicit_certificate_counts_its_factor(monkeypatch, eta):
    """An ascent that stops early leaves a gap, which the bound's factor 1 + eta X^2 multiplies."""
    monkeypatch.setattr("hindsight.certificates.best.comparator.GRAM", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=40)
    run, data = trained(L.widrow_hoff(eta, "implicit"), X, y)
    found = certify_run(run, data, tol=0.5)
    grow = 1.0 + eta * float((X**2).sum(axis=1).max())
    least = grow * float(exact_minimum(X, y, np.ones(40), 2.0 / eta))
    assert found.bound - least <= found.comparator.gap * (1.0 + 1e-9)
    assert found.comparator.gap > (found.bound - least) / 2.0 or found.comparator.gap <= found.bound
    assert found.bound - least > found.comparator.gap / grow


# --- replay -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [1e-4, 1e-6, 1e-8])
def test_a_run_that_differs_in_the_seventh_digit_is_another(by):
    X, y = outlier(0, size=1.0)
    for learner in (L.widrow_hoff(0.01, "explicit"), L.eg(0.01, 1.0)):
        run, data = trained(learner, X, y)
        run.state.theta[0] *= 1.0 + by
        with pytest.raises(MismatchError, match="not trained on these rows"):
            certify_run(run, data)
        run, data = trained(learner, X, y)
        run.tally[0].loss *= 1.0 + by
        with pytest.raises(MismatchError, match="not trained on these rows"):
            certify_run(run, data)


def test_the_union_of_trivial_bounds_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.choice([-1.0, 1.0], 40)
    each = tuple(certificate(L.perceptron(), X, s * y, u=np.array([1e3, 1e3])) for s in (1.0, -1.0))
    assert Certificates(each).bound == 80.0
