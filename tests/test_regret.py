"""The regret along a run, against sums that are taken row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsight
from hindsight.certificates.course import marks_between, marks_of


def naive(X, y, c, model, best):
    """What a run and a fixed predictor had lost after each row, per unit of weight, played row by row."""
    lost, rival, said = [], [], []
    for x, t, w in zip(X, y, c, strict=True):
        z = float(model.predict([x])[0]) if said else 0.0
        said.append(z)
        lost.append(w * (z - t) ** 2)
        rival.append(w * (float(x @ best[:-1] + best[-1]) - t) ** 2)
        model.partial_fit([x], [t], sample_weight=[w])
    return np.cumsum(lost) / np.cumsum(c), np.cumsum(rival) / np.cumsum(c)


def test_the_curve_is_that_of_sums_row_by_row():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y, c = X @ [1.0, -2.0, 0.5] + rng.normal(size=200), rng.choice([0.5, 1.0, 2.0], 200)
    found = hindsight.WidrowHoffRegressor(0.05).fit(X, y, sample_weight=c).certify(X, y, sample_weight=c)
    curve = found.curve
    lost, rival = naive(X, y, c, hindsight.WidrowHoffRegressor(0.05), found.best.u)
    at = curve.rounds - 1
    np.testing.assert_allclose(curve.lost, lost[at], rtol=1e-9)
    np.testing.assert_allclose(curve.best, rival[at], rtol=1e-9)
    assert curve.rounds[-1] == 200 and curve.regret[-1] == pytest.approx(found.means["regret"], rel=1e-9)
    assert (curve.bound >= curve.lost).all()
    assert curve.bound[-1] == pytest.approx(found.means["guaranteed"], rel=1e-12)
    path = {mark.rounds: mark for mark in found.path}
    for r, bound in zip(curve.rounds.tolist(), curve.bound.tolist(), strict=True):
        if r in path:
            assert bound == pytest.approx(path[r].bound / c[:r].sum(), rel=1e-12)
    assert "curve" not in found.to_dict()


def test_the_curve_of_mistakes_counts_those_of_the_best():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 2))
    y = np.where(X @ [1.0, 2.0] + rng.normal(size=150) > 0.0, 1, -1)
    found = hindsight.PerceptronClassifier().fit(X, y).certify(X, y)
    u, curve = found.best.u, found.curve
    wrong = np.cumsum(y * (X @ u[:-1] + u[-1]) <= 0.0)
    np.testing.assert_allclose(curve.best * curve.rounds, wrong[curve.rounds - 1], atol=1e-9)
    assert curve.lost[-1] * 150 == pytest.approx(found.measured) and wrong[-1] == found.best.loss


@pytest.mark.parametrize("model", [hindsight.AutoRegressor(), hindsight.RidgeRegressor()])
def test_a_round_that_only_sets_the_start_is_left_out(model):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 2))
    y = 50.0 + X @ [1.0, 3.0] + rng.normal(size=90)
    found = model.fit(X, y).certify(X, y)
    assert found.curve.rounds[0] == 2 and found.curve.rounds[-1] == 90
    assert found.curve.regret[-1] == pytest.approx(found.means["regret"], rel=1e-9)
    known = np.isfinite(found.curve.bound)
    assert known[-1] and found.curve.bound[-1] == pytest.approx(found.means["guaranteed"], rel=1e-9)
    assert (found.curve.bound[known] >= found.curve.lost[known]).all()


def test_a_promise_that_does_not_apply_is_not_drawn():
    X, y = 100.0 * np.eye(4), np.arange(4.0)
    with pytest.warns(hindsight.AssumptionWarning):
        model = hindsight.WidrowHoffRegressor(0.1, "explicit").fit(X, y)
    found = model.certify(X, y)
    assert found.verdict.value == "VOID" and np.isnan(found.curve.bound).all()


@given(st.integers(1, 3000), st.integers(1, 50_000))
def test_marks_are_the_same_whatever_the_chunks(chunk, rounds):
    parts = [marks_between(a, min(a + chunk, rounds)) for a in range(0, rounds, chunk)]
    marks = np.union1d(np.concatenate(parts), [rounds])
    np.testing.assert_array_equal(marks, marks_of(rounds))
    assert marks.size <= 64 + 32 * 10 + 1 and set(2 ** np.arange(rounds.bit_length())) <= set(marks.tolist())
    assert (np.diff(marks) <= np.maximum(1, marks[:-1] / 32)).all()  # none is far from the next
