"""Bounds that keep what the run met: smaller than the classical ones, true, and said beside them."""

import math
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import naive
from conftest import nightly
from hindsight.certificates import certify as certifying
from hindsight.certificates import theorems
from hindsight.certificates.best import comparator
from hindsight.certificates.certify import certify_run
from hindsight.certificates.theorems import Verdict
from hindsight.kernels import Square
from hindsight.online import learners as L
from hindsight.online.run import Run, play
from hindsight.rows.data import Data


def played(learner, X, y, weight=None):
    run = Run(learner, X.shape[1], intercept=False)
    play([run], X, [y], weight)
    return run, Data(X, y, weight)


def rows_of_many_lengths(seed, geometry="euclidean"):
    """Short rows, and one that is a hundred times as long: the rate is right for it, and small for the others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 5)) * 10.0 ** rng.uniform(-2.0, -1.0, (400, 1))
    X[200] = 1.0
    u = rng.dirichlet(np.ones(5)) if geometry == "simplex" else 0.3 * rng.normal(size=5)
    return X, X @ u + 0.1 * rng.normal(size=400)


@nightly(only=["balanced-*"])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("geometry", ["euclidean", "simplex", "balanced"])
def test_rows_of_many_lengths_have_a_bound_three_times_smaller(geometry, seed):
    """Against the classical form at its own best u, not at the one that is best for the form as met."""
    X, y = rows_of_many_lengths(seed, geometry)
    top = (X**2).sum(axis=1).max() if geometry == "euclidean" else np.abs(X).max() ** 2
    eta = 0.95 / top
    learner = {"euclidean": L.widrow_hoff(eta, "explicit"), "simplex": L.eg(eta, None), "balanced": L.eg(eta, 1.0)}
    run, data = played(learner[geometry], X, y)
    c = certify_run(run, data)
    assert c.verdict is Verdict.HOLDS and c.theorem in (theorems.WIDROW_HOFF_MET, theorems.EG_MET)
    shrink = 1.0 - eta * top
    best = comparator.best(
        data, Square(2.0), learner[geometry].geometry, 2.0 / eta, np.full(400, 1.0 / shrink), tol=1e-4
    )
    assert 3.0 * c.bound < best.objective - best.gap
    assert any("the classical form, L ≤ L_u/(1 − η" in note and "for this u" in note for note in c.notes)


def test_normalisers_certify_a_rate_that_the_largest_norm_forbids():
    """A column that little weight is on has the largest number: the classical condition fails, the run does not."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (200, 4))
    X[150, 3] = 3.0
    y = X[:, 0] + 0.01 * rng.normal(size=200)
    run, data = played(L.eg(0.5, None), X, y)
    c = certify_run(run, data)
    assert c.verdict is Verdict.HOLDS and c.theorem is theorems.EG_MET
    assert any("the classical form" in note and "does not apply: max η" in note for note in c.notes)
    far = certify_run(*played(L.eg(300.0, None), X, y))
    assert far.verdict is Verdict.VOID and math.isnan(far.bound)


def test_winnow_gains_by_the_normalisers_its_mistakes_met():
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.3, 0.3, (300, 6))
    X[:, 0] = rng.choice([-1.0, 1.0], 300)
    run, data = played(L.winnow(0.2), X, X[:, 0].copy())
    c = certify_run(run, data)
    assert c.verdict is Verdict.HOLDS and c.theorem is theorems.WINNOW_MET
    said = next(note for note in c.notes if note.startswith("the classical form"))
    classical = float(said.split("at most ")[1].split()[0])
    assert c.measured <= c.bound < classical


@nightly(but=["explicit-euclidean", "implicit-simplex", "explicit-balanced"])
@pytest.mark.parametrize("geometry", ["euclidean", "simplex", "balanced"])
@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_falling_rates_bound_the_plain_loss(geometry, update):
    X, y = rows_of_many_lengths(3)
    run, data = played(L.descent("absolute", geometry, 0.5, update, power=0.5), X, y)
    c = certify_run(run, data)
    assert c.verdict is Verdict.HOLDS and c.quantity == "absolute loss"
    assert c.measured == pytest.approx(run.facts.loss, rel=1e-9)
    if update == "explicit":
        assert any(note.startswith("absolute loss times its rate: ") for note in c.notes)
    for u in (run.first, run.weights, c.comparator.u):
        assert certify_run(run, data, u=u).verdict is Verdict.HOLDS


def test_the_comparator_at_falling_rates_is_sought_around_the_distances_met():
    """No u of many has a smaller bound, its last distance left out."""
    rng = np.random.default_rng(4)
    X, y = rows_of_many_lengths(5)
    run, data = played(L.descent("logistic", eta=1.0, power=0.5), X, (y > 0).astype(float))
    c = certify_run(run, data, tol=1e-4)
    slow = naive.play(X, data.y, rule="logistic", eta=1.0, power=0.5)

    def without_last(u):
        bound = naive.convex_met(X, data.y, slow, u.tolist(), rule="logistic")[1]
        return bound + 0.5 * float(((u - run.weights) ** 2).sum()) / slow.rates[-1]

    least = without_last(c.comparator.u)
    tries = [c.comparator.u + 0.1 * rng.normal(size=5) * np.abs(c.comparator.u) for _ in range(5)]
    for u in [run.first, run.weights, *tries]:
        assert without_last(u) >= least - c.comparator.gap - 1e-9 * least


def test_an_implicit_step_that_moves_every_exponent_far_down_is_taken():
    run = Run(L.descent("logistic", "simplex", 0.1, "implicit", 30.0), 1, intercept=False)
    play([run], np.ones((3, 1)), [np.zeros(3)], np.full(3, 904.0))
    assert run.rounds == 3
    assert run.weights == pytest.approx([30.0])


def test_a_step_that_is_not_the_theorems_falls_back_on_the_classical_form():
    """What the steps took off the potential is not shown then, so nothing is promised with it."""
    X, y = rows_of_many_lengths(6)
    run, data = played(L.widrow_hoff(0.1, "explicit"), X, y)
    replay = certifying.replay

    def more(run, data):
        rounds = replay(run, data)
        change = rounds.change.copy()
        change[7] += 1.0
        return replace(rounds, change=change)

    with mock.patch.object(certifying, "replay", more):
        c = certify_run(run, data)
    assert c.verdict is Verdict.UNCHECKABLE and c.theorem is theorems.WIDROW_HOFF
