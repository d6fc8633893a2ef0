"""The best fixed predictor, the best constant and the worth of a promise for methods over epochs."""

import math

import numpy as np
import pytest

import hindsight
from hindsight.certificates.best.fewest import FOUND, PROVED, SEPARATES
from hindsight.certificates.theorems import Verdict

rng = np.random.default_rng(3)
X = rng.normal(size=(60, 2))
Y = X @ np.array([1.0, -2.0]) + 0.5 * rng.normal(size=60) + 0.3
SIGN = np.where(Y > 0.0, 1, -1)
ROWS = np.c_[X, np.ones(60)]


def test_batch_descent_is_measured_against_the_least_mean_loss():
    c = hindsight.GradientDescentRegressor(rounds=50).fit(X, Y).certify(X, Y)
    u, least, *_ = np.linalg.lstsq(ROWS, Y, rcond=None)
    np.testing.assert_allclose(c.best.u, u, rtol=1e-9)
    assert c.best.loss == pytest.approx(float(least[0]) / 60.0)
    assert c.regret == c.measured - c.best.loss and c.lost == c.measured and c.weight == 1.0
    assert c.constant == pytest.approx(float(Y.var()))
    assert c.means["best"] == c.best.loss and c.worth in ("tight", "loose")
    assert str(c).startswith("off by ")


def test_with_a_penalty_it_is_the_least_of_loss_and_penalty_together():
    c = hindsight.GradientDescentRegressor(rounds=50, l2=0.7).fit(X, Y).certify(X, Y)
    u = np.linalg.solve(2.0 * ROWS.T @ ROWS / 60.0 + 0.7 * np.eye(3), 2.0 * ROWS.T @ Y / 60.0)
    least = float(((ROWS @ u - Y) ** 2).mean()) + 0.35 * float(u @ u)
    assert c.best.loss == pytest.approx(least) and c.best.gap <= 0.01 * c.best.loss
    assert c.regret == c.measured - c.best.loss >= -1e-12
    assert str(c).startswith("square loss with l2 ")


def test_a_descent_that_lost_to_a_constant_says_so_first():
    c = hindsight.GradientDescentRegressor(rounds=1, eta=1e-6).fit(X, Y + 50.0).certify(X, Y + 50.0)
    assert c.lost > c.constant and c.advice == "play more rounds, or take a larger rate"
    assert str(c).startswith("this run lost more than always predicting the mean would have: ")


def test_the_batch_perceptron_compares_its_pocket_with_the_fewest_mistakes():
    flipped = SIGN.copy()
    flipped[::9] *= -1
    model = hindsight.BatchPerceptronClassifier(max_passes=5).fit(X, flipped)
    c = model.certify(X, flipped)
    errors = int((model.predict(X) != flipped).sum())
    assert c.verdict is Verdict.VOID and c.lost == errors and c.weight == 60.0
    assert c.best.found in (FOUND, PROVED) and c.best.loss <= errors and c.regret == errors - c.best.loss
    assert c.constant == min((flipped == 1).sum(), (flipped == -1).sum())
    assert math.isnan(c.guaranteed) and c.worth is None
    said = f"  its pocket errs on {errors} rows: updates are no loss, and no fixed predictor makes any"
    assert said in str(c).splitlines()
    assert str(c).splitlines()[0].startswith("right on ")


def test_separable_rows_have_a_best_of_0_errors():
    y = np.where(X @ [1.0, -2.0] > 0.0, 1, -1)
    c = hindsight.BatchPerceptronClassifier().fit(X, y).certify(X, y)
    assert (c.best.loss, c.best.gap, c.best.found) == (0.0, 0.0, SEPARATES)
    assert c.lost == 0.0 == c.regret and math.isnan(c.guaranteed)


def test_glm_tron_over_epochs_is_measured_against_the_least_matching_loss():
    y = (rng.random(60) < 1.0 / (1.0 + np.exp(-Y))).astype(int)
    c = hindsight.GLMtronBatchRegressor(rounds=20).fit(X, y).certify(X, y)
    z = ROWS @ c.best.u
    assert c.best.loss == pytest.approx(20.0 * float((np.logaddexp(0.0, z) - y * z).mean()))
    gradient = ROWS.T @ (1.0 / (1.0 + np.exp(-z)) - y) / 60.0
    assert np.abs(gradient).max() < 1e-4 and c.best.gap <= 1e-6 * c.best.loss
    assert c.regret == c.measured - c.best.loss > 0.0 and c.weight == 20.0
    p = y.mean()
    assert c.constant == pytest.approx(-20.0 * (p * math.log(p) + (1.0 - p) * math.log(1.0 - p)))


def test_isotron_without_a_planted_predictor_has_no_best_and_says_so():
    y = 1.0 / (1.0 + np.exp(-Y))
    c = hindsight.IsotronRegressor(rounds=10).fit(X, y).certify(X, y)
    assert c.best is None and math.isnan(c.regret) and c.lost == c.measured
    assert c.constant == pytest.approx(10.0 * float(y.var()))
    said = "squared errors behind a link are not convex: which fixed predictor loses least is not known"
    assert said in c.notes and "regret" not in str(c)
