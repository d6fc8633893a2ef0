"""What certificates may not say of weighted mistakes, separability, the pocket and risk; and what must not crash."""

import math
import re

import numpy as np
import pytest
from sklearn.base import clone

import hindsight as h
from conftest import many, nightly
from hindsight.batch import perceptron as pockets
from hindsight.batch.separability import UNDECIDED, fewest_mistakes, separate
from hindsight.certificates.best.separator import hard_margin
from hindsight.certificates.theorems import Verdict
from hindsight.rows.data import Data

RNG = np.random.default_rng(3)


# --- weighted mistakes ------------------------------------------------------------------------------------------------


def test_the_union_of_weighted_certificates_speaks_of_weights():
    X = RNG.normal(size=(300, 3))
    y = RNG.integers(0, 3, 300)
    weight = np.full(300, 0.01)
    model = h.PerceptronClassifier(keep_margins=True).fit(X, y, weight)
    wrong = int((model.margins_.argmax(axis=1) != y).sum())
    found = model.certify(X, y, weight)
    last = str(found).splitlines()[-1]
    assert wrong > 2 * found.bound
    assert " times" not in last
    assert "weighted mistakes" in last
    assert 0.01 * wrong <= found.bound
    plain = h.PerceptronClassifier().fit(X, y).certify(X, y)
    assert str(plain).splitlines()[-1].endswith(" times")


@pytest.mark.parametrize("weight", [3.0, 0.2])
def test_a_weighted_perceptron_promises_nothing_that_its_mistakes_exceed(weight):
    rows = np.array([[1.0, 0.3], [1.0, -0.3], [0.9, 0.3], [0.9, -0.3]])
    y, c = np.array([1, 0, 1, 0]), np.full(4, weight)
    found = h.PerceptronClassifier(fit_intercept=False, passes=20).fit(rows, y, c).certify(rows, y, c)
    text = str(found)
    assert "steps of size 1 " not in text
    assert "(X₂B)²" not in text
    (line,) = [line for line in found.notes if line.startswith("separable")]
    assert float(re.search(r"B² = (\S+)", line)[1]) >= found.measured > 0.0
    assert found.quantity == "weighted mistakes"


def test_a_perceptron_from_a_start_promises_nothing_for_the_start_0():
    rows, y = np.array([[1.0, 0.3], [1.0, -0.3]]), np.array([1, 0])
    model = h.PerceptronClassifier(fit_intercept=False, start=[50.0, 0.0], passes=400).fit(rows, y)
    found = model.certify(rows, y)
    assert found.verdict is Verdict.HOLDS
    (line,) = [line for line in found.notes if line.startswith("separable")]
    assert found.measured > (model.facts_.x2 * float(re.search(r"B = (\S+)", line)[1])) ** 2
    assert "(X₂B)²" not in line


def test_a_perceptron_compared_with_nothing_promises_nothing():
    """At u = 0 the hinge losses of the mistakes are the mistakes: M <= M is no promise, and no bound that was met."""
    X, y = RNG.normal(size=(60, 3)), RNG.choice([-1.0, 1.0], 60)
    found = h.PerceptronClassifier(fit_intercept=False).fit(X, y).certify(X, y, u=np.zeros(3))
    assert found.bound == found.measured
    assert found.says_nothing
    assert "  at u = 0 the theorem reads M ≤ M: it promises nothing here" in found.lines()
    assert "promises at most" not in str(found)
    assert "met with equality" not in str(found)
    found = h.PerceptronClassifier(fit_intercept=False).fit(X, y).certify(X, y, u=np.array([1e-3, 0.0, 0.0]))
    assert not found.says_nothing
    assert "promises at most" in str(found)


@pytest.mark.parametrize("kind", [h.PerceptronClassifier, h.WinnowClassifier])
def test_weighted_mistakes_say_what_the_letters_mean(kind):
    X, y = RNG.uniform(-1.0, 1.0, (60, 3)), RNG.choice([-1.0, 1.0], 60)
    weight = RNG.choice([0.25, 2.0], 60)
    model = kind().fit(X, y, weight)
    found = model.certify(X, y, weight)
    assert found.quantity == "weighted mistakes"
    assert any(note.startswith("with weights c: M is Σ c over the mistakes, ") for note in found.notes)
    plain = kind().fit(X, y).certify(X, y)
    assert "weighted" not in str(plain) and "with weights" not in str(plain)


def test_the_condition_of_a_weighted_winnow_is_the_one_that_is_checked():
    X, weight = RNG.uniform(-1.0, 1.0, (40, 2)), np.full(40, 3.0)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    model = h.WinnowClassifier(0.1, balanced=True, fit_intercept=False).fit(X, y, weight)
    found = model.certify(X, y, weight, u=np.array([1.0, 0.0]))
    text = found.assumptions[1].text
    gain, delta = (float(re.search(p, text)[1]) for p in (r"ηδ − N = (\S+),", r"δ = (\S+),"))
    top = float(np.abs(X).max())
    classical = 0.1 * delta - math.log(math.cosh(0.1 * 3.0 * top)) / 3.0
    assert gain >= classical - 1e-4  # the mean of the normalisers met is at most their bound
    told = next(note for note in found.notes if note.startswith("the classical form"))
    assert float(re.search(r"at most (\S+) for", told)[1]) == pytest.approx(found.bound * gain / classical, rel=1e-3)


# --- separability -----------------------------------------------------------------------------------------------------


def timestamps(m=200, at=1.7e9):
    """A timestamp beside the label: separable by the second column, whatever the first is."""
    y = RNG.choice([-1.0, 1.0], m)
    return np.column_stack([at + 60.0 * np.arange(m), y]), y


@pytest.mark.parametrize("gap", [1e-8, 1e-12, 1e-100])
def test_rows_that_differ_little_are_not_called_inseparable(gap):
    X, y = np.array([[1.0, gap], [1.0, -gap]]), np.array([1.0, -1.0])
    found = separate(X, y, fit_intercept=False)
    assert found.separable is True
    assert (y * (X @ found.w) > 0.0).all()
    hard = hard_margin(Data(X, y))
    assert hard.separable is True
    assert hard.lower <= 1.0 / gap * (1.0 + 1e-9)
    if gap > 1e-15:
        assert (y * (X @ hard.u)).min() >= 1.0
        assert 1.0 / gap <= hard.norm * (1.0 + 1e-6)
    else:
        assert hard.u is None
        assert "beyond floating point" in hard.notes[0]
    online = h.PerceptronClassifier(fit_intercept=False).fit(X, y).certify(X, y)
    assert "not separable" not in str(online)


@pytest.mark.parametrize("at", [1.7e9, 1.7e12, 1e15])
def test_a_timestamp_beside_the_label_is_separable(at):
    X, y = timestamps(at=at)
    assert separate(X, y).separable is True
    assert hard_margin(Data(X, y, None, 1.0)).separable is not False
    assert fewest_mistakes(X[:40], y[:40]).errors == 0
    for model in (h.PerceptronClassifier(), h.BatchPerceptronClassifier(3)):
        found = model.fit(X, y).certify(X, y)
        assert "not separable" not in str(found)
        assert found.verdict is not Verdict.VOID


def test_what_is_too_wide_to_prove_is_not_decided():
    X, y = RNG.normal(size=(500, 80)), RNG.choice([-1.0, 1.0], 500)
    found = hard_margin(Data(X, y))
    assert found.separable is None
    assert found.notes[0].startswith(UNDECIDED)
    assert 0.0 < found.lower < math.inf


@nightly(but=["1e-150", "1e+20"])
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-20, 1.0, 1e20, 1e150])
def test_the_scale_of_a_column_decides_nothing(scale):
    rng = np.random.default_rng(5)
    for k in range(6):
        X = rng.integers(-3, 4, (20, 3)).astype(float)
        y = rng.choice([-1, 1], 20) if k % 2 else np.where(X @ [1.0, -2.0, 0.5] > 0.25, 1, -1)
        if len(set(y.tolist())) < 2:
            continue
        want, other = separate(X, y), separate(X * [1.0, scale, 1.0], y)
        assert want.separable is not None
        assert other.separable is want.separable
        least = fewest_mistakes(X * [1.0, scale, 1.0], y)
        assert least.errors == least.lower == fewest_mistakes(X, y).errors


def test_tiny_rows_are_not_zero():
    X, y = np.array([[1e-200, 2e-200], [1e-200, -2e-200]]), np.array([1.0, -1.0])
    assert hard_margin(Data(X, y)).separable is not False
    assert separate(X, y, fit_intercept=False).separable is True
    assert hard_margin(Data(np.vstack([X, [[0.0, 0.0]]]), np.array([1.0, -1.0, 1.0]))).separable is False


def test_a_solver_that_fails_is_named(monkeypatch):
    """Its failure is neither rounding of ours nor a limit of time."""
    from scipy import optimize

    failed = optimize.OptimizeResult(x=None, status=4, message="out of luck", mip_dual_bound=None)
    X, y = RNG.normal(size=(20, 2)), RNG.choice([-1.0, 1.0], 20)
    with monkeypatch.context() as patch:
        patch.setattr(optimize, "linprog", lambda *_, **__: failed)
        assert separate(X, y).notes == (UNDECIDED, *["the solver stopped: out of luck"] * 2)
    monkeypatch.setattr(optimize, "milp", lambda *_, **__: failed)
    found = fewest_mistakes(X, y)
    assert found.gap > 0
    assert found.notes == ("the solver stopped: out of luck",)


# --- the pocket -------------------------------------------------------------------------------------------------------


def halfspaces_visited(rows, y, updates):
    """Every hypothesis of cyclic scans, up to so many updates."""
    found, i = [np.zeros(rows.shape[1])], 0
    while len(found) <= updates:
        if y[i % len(y)] * float(rows[i % len(y)] @ found[-1]) <= 0.0:
            found.append(found[-1] + y[i % len(y)] * rows[i % len(y)])
        i += 1
    return found


def test_a_warm_start_does_not_forget_what_was_not_counted(monkeypatch):
    """The best hypothesis of the first call was not counted: the certificate may not claim it was."""
    monkeypatch.setattr(pockets, "FREE_READS", 0.0)
    rng = np.random.default_rng(0)
    said = set()
    for seed in range(many(10, 40)):
        X = rng.normal(size=(30, 2))
        y = np.where(X[:, 0] + rng.normal(size=30) > 0.0, 1, -1)
        effort = 0.0 if seed % 2 else math.inf
        model = h.BatchPerceptronClassifier(3, effort=effort, warm_start=True).fit(X, y)
        model.set_params(effort=math.inf, max_updates=2).fit(X, y)
        rows = np.column_stack([X, np.ones(30)])
        visited = halfspaces_visited(rows, y, model.n_updates_)
        least = min(int((y * (rows @ w) <= 0.0).sum()) for w in visited)
        claims = "the fewest of all hypotheses visited" in str(model.certify(X, y))
        assert claims == model.pocket_exact_
        assert not claims or model.training_errors_ == least
        assert claims or effort == 0.0
        said.add((claims, model.training_errors_ == least))
    assert (False, False) in said
    assert (True, True) in said


# --- risk -------------------------------------------------------------------------------------------------------------


def test_a_risk_certificate_says_that_the_start_and_the_rate_must_be_fixed_before():
    X = RNG.choice([-0.5, 0.5], size=(400, 2))
    y = X[:, 0] + RNG.choice([-0.3, 0.3], 400)
    found = h.risk_certificate(h.WidrowHoffRegressor(0.1).fit(X, y), X, y, bound=2.0)
    (need,) = [need for need in found.assumptions if "fixed before" in need.text]
    assert need.met is None
    assert found.verdict is Verdict.UNCHECKABLE
    start = np.append(np.linalg.lstsq(X, y, rcond=None)[0], 0.0)
    model = h.WidrowHoffRegressor(0.1, start=start).fit(X, y)
    void = h.risk_certificate(model, X, y, bound=2.0)
    (need,) = [need for need in void.assumptions if "fixed before" in need.text]
    assert need.met is False
    assert "independent_start" in need.text
    assert void.verdict is Verdict.VOID
    assert math.isnan(void.bound)
    assert math.isnan(void.expectation)
    declared = h.risk_certificate(model, X, y, bound=2.0, independent_start=True)
    assert declared.verdict is Verdict.UNCHECKABLE
    assert math.isfinite(declared.bound)


def test_a_start_fitted_on_the_same_rows_has_no_bound_that_fails():
    """With 40 rows and 30 columns a start fitted on them loses nothing there, and much on new rows."""
    rng, misses = np.random.default_rng(1), 0
    for _ in range(20):
        X, y = rng.choice([-0.1, 0.1], size=(40, 30)), rng.choice([-0.5, 0.5], 40)
        start = np.linalg.lstsq(X, y, rcond=None)[0]
        model = h.WidrowHoffRegressor(0.1, fit_intercept=False, start=start).fit(X, y)
        found = h.risk_certificate(model, X, y, bound=1.0, delta=0.05)
        risk = float(found.predictor @ found.predictor) * 0.01 + 0.25  # new labels are independent of their rows
        assert found.verdict is Verdict.VOID
        declared = h.risk_certificate(model, X, y, bound=1.0, delta=0.05, independent_start=True)
        misses += risk > declared.bound
    assert misses == 20


@pytest.mark.parametrize("model", [h.GradientDescentRegressor(rounds=3), h.GradientDescentRegressor(rounds=3, batch=1)])
def test_gradient_descent_has_no_risk_certificate(model):
    X = RNG.uniform(-1.0, 1.0, (30, 2))
    with pytest.raises(ValueError, match="one pass of an online learner; GradientDescentRegressor"):
        h.risk_certificate(model.fit(X, X[:, 0]), X, X[:, 0], bound=1.0)


# --- single rows ------------------------------------------------------------------------------------------------------

CLASSIFIERS = [h.PerceptronClassifier(), h.WinnowClassifier(features=["a", "b"]), h.DescentClassifier()]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_one_class_alone_can_be_learnt_certified_and_saved(model, tmp_path):
    model = clone(model).learn_one({"a": 1.0, "b": 0.5}, "x")
    assert model.certify([[1.0, 0.5]], ["x"]).rounds == 1
    model.partial_fit([[0.5, 1.0]], ["x"])
    rows = [[1.0, 0.5], [0.5, 1.0]]
    assert model.certify(rows, ["x", "x"]).rounds == 2
    assert model.predict(rows).tolist() == ["x", "x"]
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(rows).tolist() == [[1.0], [1.0]]
    model.save(tmp_path / "model")
    assert h.load(tmp_path / "model").certify(rows, ["x", "x"]).rounds == 2
    with pytest.raises(ValueError, match=r"row 1: class 'z' was not declared \(classes=\['x'\]\)"):
        model.partial_fit(rows, ["x", "z"])
    model.learn_one({"a": 0.5, "b": -0.5}, "z")
    assert model.certify([*rows, [0.5, -0.5]], ["x", "x", "z"]).rounds == 3


@pytest.mark.parametrize(
    ("label", "says"),
    [
        (0.5, "continuous"),
        (math.nan, "not finite"),
        (math.inf, "not finite"),
        (None, "label type"),
        ((1, 2), "1d array"),
    ],
)
def test_labels_that_fit_refuses_are_refused_one_at_a_time(label, says):
    model = h.PerceptronClassifier()
    with pytest.raises(ValueError, match=says):
        model.learn_one([1.0, 2.0], label)
    assert not hasattr(model, "classes_")
    model.learn_one([1.0, 2.0], 1.0)
    with pytest.raises(ValueError, match=says):
        model.learn_one([1.0, 2.0], label)
    assert model.classes_.tolist() == [1.0]


def test_text_beside_numbers_is_refused():
    for first, second in ((1, "a"), ("a", 1)):
        model = h.PerceptronClassifier().learn_one([1.0, 2.0], first)
        with pytest.raises(ValueError, match="Mix of label input types"):
            model.learn_one([1.0, 2.0], second)
        assert model.classes_.tolist() == [first]
