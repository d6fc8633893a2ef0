"""The scikit-learn skins: the contract, dataframes, one-vs-rest, warnings and starting over."""

import inspect
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import hindsight as h
from conftest import nightly, one_by_one
from discovery import ONLINE, PUBLIC
from hindsight.online.run import Run

EQUIVALENCE = tuple(f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))
# GLM-tron passes by chance: the predictions that are compared are where its sigmoid is flat.
ROUNDS_COUNT = {kind.__name__: EQUIVALENCE for kind in ONLINE if kind is not h.GLMtronRegressor}
EXPECTED_FAILURES = {
    "a row of weight 2 is one round with twice the loss, not two rounds with an update in between": ROUNDS_COUNT,
    "at the default rate the square loss diverges on rows with squared norms in the thousands, and an error says so": {
        "GradientDescentRegressor": ("check_fit_idempotent", "check_fit_check_is_fitted", "check_n_features_in")
    },
    "the cross-validation folds depend on the number of rows": {"Calibrator": EQUIVALENCE[:1]},
}


def expected_failures(estimator):
    kind = type(estimator).__name__
    return {check: why for why, kinds in EXPECTED_FAILURES.items() for check in kinds.get(kind, ())}


def test_the_checks_that_are_expected_to_fail_are_listed_in_the_docs():
    page = (Path(__file__).parents[1] / "docs" / "learners" / "index.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `check_")]
    listed = {
        why: dict.fromkeys(re.findall(r"`(\w+)`", kinds), tuple(re.findall(r"`(\w+)`", checks)))
        for checks, kinds, why in rows
    }
    assert listed == EXPECTED_FAILURES


# scikit-learn has no checks for those that take one column.
TABULAR = [kind() for kind in PUBLIC if get_tags(kind()).input_tags.two_d_array]
TABULAR += [
    h.GenerativeClassifier("full"),
    h.IsotronClassifier(1.0, rounds=20),
    h.IsotronRegressor(1.0, rounds=20, scale_x=True, scale_y=True),
    h.LeastSquares(l2=0.5),
]
# Each of these compiles all loops of an estimator for another storage of rows; the others stand for those named here.
STORAGES = ("sparse", "f_contiguous", "dtypes", "memmap")
COSTLY = ("Auto", "BatchPerceptron", "Descent", "EG", "GLMtronRegressor", "GradientDescentRegressor", "Ridge", "Winnow")


@nightly(
    only=[f"{kind}*-check_*{storage}*" for kind in COSTLY for storage in STORAGES]
    + ["Auto*-check_*dense_data"]
    + [f"Perceptron*{storage}*" for storage in ("dtypes", "float32", "f_contiguous")]
)
@parametrize_with_checks(TABULAR, expected_failed_checks=expected_failures, xfail_strict=True)
@pytest.mark.filterwarnings("ignore::hindsight.AssumptionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@nightly  # compiles the source of all that is imported
def test_every_public_name_is_there_without_docstrings():
    """`python -OO` strips them, and Python 3.13 changes their indentation: nothing may depend on them."""
    code = "import hindsight; print(len([getattr(hindsight, name) for name in hindsight.__all__]))"
    done = subprocess.run([sys.executable, "-OO", "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (str(len(h.__all__)), "")


@pytest.mark.parametrize("kind", PUBLIC)
def test_docstrings_describe_every_parameter_and_the_literature(kind):
    text = inspect.getdoc(kind)  # without indentation, as Python 3.13 keeps it
    sections = ["Parameters", "Attributes", "References", "Examples"]
    places = [text.index(f"\n{title}\n{'-' * len(title)}\n") for title in sections]
    assert places == sorted(places)
    described = text[places[0] : places[1]]
    for name in kind._get_param_names():
        assert f"\n{name} : " in described, name
        assert "default=" in described.split(f"\n{name} : ")[1].split("\n")[0], name


@pytest.fixture(scope="module")
def unit_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ [1.0, -2.0, 0.5, 0.0], (X[:, 0] > 0).astype(int)


def test_dataframes_give_what_arrays_give_and_keep_names(unit_rows):
    X, y, _ = unit_rows
    want = h.WidrowHoffRegressor().fit(X, y)
    names = ["a", "b", "c", "d"]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = h.WidrowHoffRegressor().fit(frame, y)
        np.testing.assert_array_equal(model.coef_, want.coef_)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_allclose(model.predict(frame), want.predict(X), rtol=1e-12, atol=1e-14)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["b", "a", "c", "d"]])


def test_an_error_names_the_column_of_a_dataframe(unit_rows):
    X, y, _ = unit_rows
    frame = pd.DataFrame(X.copy(), columns=["a", "b", "c", "d"])
    frame.iloc[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 7, column 2 \('c'\): value NaN is not finite"):
        h.WidrowHoffRegressor().fit(frame, y)


def test_a_failed_fit_leaves_the_earlier_model(unit_rows):
    X, y, _ = unit_rows
    model = h.WidrowHoffRegressor().fit(X, y)
    before = model.coef_
    bad = X.copy()
    bad[5, 1] = np.inf
    with pytest.raises(ValueError, match="row 5, column 1: value inf"):
        model.fit(bad, y)
    np.testing.assert_array_equal(model.coef_, before)
    assert model.facts_.rounds == len(X)


@pytest.mark.parametrize("kind", ONLINE)
def test_a_failed_fit_takes_no_snapshot_and_a_failed_partial_fit_one(kind, unit_rows, monkeypatch):
    X, y, label = unit_rows
    target = label if hasattr(kind, "decision_function") else np.abs(y) / 3
    taken = []
    snapshot = Run.snapshot
    monkeypatch.setattr(Run, "snapshot", lambda run, *touched: taken.append(run) or snapshot(run, *touched))
    model = kind(passes=3).fit(X, target)
    assert taken == []  # new runs are dropped on an error
    bad = X.copy()
    bad[5, 1] = np.inf
    before = model.coef_
    with pytest.raises(ValueError, match="row 5, column 1: value inf"):
        model.partial_fit(bad, target)
    panels = [run for run in model.runs_ if hasattr(run, "members")]  # members of a kind are copied together
    alone = [party.members[0] for run in panels for party in run.parties() if len(party.members) == 1]
    alone += [run.stack.run for run in panels]  # the correction is a run of its own
    assert taken == (alone if panels else model.runs_)
    np.testing.assert_array_equal(model.coef_, before)


def test_passes_are_one_sequence(unit_rows):
    X, y, _ = unit_rows
    twice = h.WidrowHoffRegressor(passes=2).fit(X, y)
    again = h.WidrowHoffRegressor().fit(X, y).partial_fit(X, y)
    np.testing.assert_array_equal(twice.coef_, again.coef_)
    assert twice.facts_ == again.facts_
    assert twice.facts_.rounds == 2 * len(X)


def test_classes_in_the_order_of_their_labels(unit_rows):
    X, _, label = unit_rows
    words = np.array(["no", "yes"])[label]
    model = h.PerceptronClassifier(passes=5).fit(X, words)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.predict(X), model.classes_[(model.decision_function(X) > 0).astype(int)])
    assert (model.predict(X) == words).mean() > 0.95


@pytest.mark.parametrize("sparse", [False, True])
def test_one_vs_rest_is_one_binary_run_a_class(sparse):
    X, y = load_digits(return_X_y=True)
    X = X / 80
    rows = sp.csr_matrix(X) if sparse else X
    model = h.PerceptronClassifier(keep_margins=True).fit(rows, y)
    assert model.coef_.shape == (10, 64)
    assert model.margins_.shape == (len(X), 10)
    for k in (0, 7):
        one = h.PerceptronClassifier(keep_margins=True).fit(rows, y == k)
        np.testing.assert_array_equal(model.coef_[k], one.coef_[0])
        np.testing.assert_array_equal(model.margins_[:, k], one.margins_)
        assert model.facts_[k] == one.facts_


def test_undeclared_class_is_refused_with_its_row(unit_rows):
    X, _, label = unit_rows
    model = h.PerceptronClassifier().partial_fit(X, label)
    before = model.coef_
    with pytest.raises(ValueError, match="row 3: class 2 was not declared"):
        model.partial_fit(X[:4], [0, 1, 0, 2])
    np.testing.assert_array_equal(model.coef_, before)


def test_learn_one_starts_a_learner_for_a_new_class():
    X, y = load_digits(return_X_y=True)
    X = X[:400] / 80
    model = one_by_one(h.PerceptronClassifier(), X, y[:400])
    assert model.classes_.tolist() == list(range(10))
    assert model.predict_one(X[0]) in range(10)
    assert model.predict(X).shape == (400,)


def test_a_third_class_after_two_declared_ones_mirrors_the_shared_run(unit_rows):
    X, _, label = unit_rows
    model = h.PerceptronClassifier().partial_fit(X, label)
    w = model.coef_[0]
    model.learn_one(X[0], 2)
    assert model.classes_.tolist() == [0, 1, 2]
    assert len(model.coef_) == 3
    swapped = h.PerceptronClassifier().partial_fit(X, 1 - label)
    z = float(X[0] @ w + 0)
    assert z != 0.0  # the row then moves both runs only if it was a mistake for them
    np.testing.assert_array_equal(swapped.coef_[0], -w)


def test_probabilities_only_with_the_logistic_loss(unit_rows):
    X, _, label = unit_rows
    p = h.DescentClassifier().fit(X, label).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert not hasattr(h.DescentClassifier("hinge"), "predict_proba")


@nightly(but=["PerceptronClassifier", "WidrowHoffRegressor", "EGRegressor", "RidgeRegressor"])
@pytest.mark.parametrize("kind", ONLINE)
def test_survives_a_copy_in_the_middle(kind, unit_rows):
    X, y, label = unit_rows
    estimator = kind()
    target = label if hasattr(estimator, "decision_function") else np.abs(y) / 3
    whole = clone(estimator).fit(X, target)
    half = clone(estimator)
    if hasattr(half, "decision_function"):
        half.partial_fit(X[:100], target[:100], classes=[0, 1])
    else:
        half.partial_fit(X[:100], target[:100])
    half.learn_one(X[100], target[100])
    resumed = pickle.loads(pickle.dumps(half))
    resumed.partial_fit(X[101:], target[101:])
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.facts_ == whole.facts_


def test_warnings_carry_the_number():
    X = np.array([[3.0, 0.0], [0.0, 2.0]])
    with pytest.warns(h.AssumptionWarning, match=r"eta \|x\|_2\^2 reached 1 \(at least 1\)"):
        h.WidrowHoffRegressor(0.1, "explicit").fit(X, [1.0, 0.0])
    with pytest.warns(h.AssumptionWarning, match=r"max \|y\| = 9 is out of reach: \|w.x\| <= U \|x\|_inf = 3"):
        h.EGRegressor(0.01).fit(X, [9.0, 0.0])
    with pytest.warns(h.AssumptionWarning, match=r"max \|x\|_inf = 3 is above 1"):
        h.WinnowClassifier().fit(X, [0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        h.WidrowHoffRegressor().fit(X, [1.0, 0.0])


def test_winnow_margin_sets_the_notes_rate():
    model = h.WinnowClassifier(margin=0.5).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    assert model.runs_[0].learner.rate.eta == pytest.approx(0.5 * np.log(1.5 / 0.5))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: h.WidrowHoffRegressor(eta=0), "eta must be a number above 0, got 0"),
        (lambda: h.WidrowHoffRegressor(update="fast"), "update must be one of 'explicit', 'implicit'; got 'fast'"),
        (lambda: h.WidrowHoffRegressor(average="mean"), "average must be one of 'before', 'after'; got 'mean'"),
        (lambda: h.WidrowHoffRegressor(passes=0), "passes must be a whole number, at least 1; got 0"),
        (lambda: h.EGRegressor(radius=-1.0), "radius must be a number above 0, got -1.0"),
        (lambda: h.DescentRegressor("hinge"), "loss 'hinge' is for labels: use DescentClassifier"),
        (
            lambda: h.GLMtronRegressor("cauchit"),
            "link must be one of 'identity', 'logistic', 'clipped', 'probit', 'tanh'; got",
        ),
        (lambda: h.WidrowHoffRegressor(start=[1.0]), r"start must have 3 numbers \(the intercept's last\)"),
        (lambda: h.EGRegressor(radius=None, start=[0.5, 0.4, 0.0]), "start must lie on the simplex"),
        (lambda: h.EGRegressor(start=[0.5, 0.5, 0.1]), r"start must have \|w\|_1 below the radius 1, got 1.1"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make().fit([[0.1, 0.2], [0.3, 0.1]], [0.1, 0.2])


def test_implicit_perceptron_would_never_move():
    with pytest.raises(ValueError, match="never leaves w = 0"):
        h.DescentClassifier("perceptron", update="implicit").fit([[1.0], [2.0]], [0, 1])


def test_average_of_iterates_predicts(unit_rows):
    X, y, _ = unit_rows
    iterates = [np.zeros(5)]
    model = h.WidrowHoffRegressor(0.5, average="before")
    last = h.WidrowHoffRegressor(0.5)
    for x, t in zip(X, y, strict=True):
        model.learn_one(x, t)
        last.learn_one(x, t)
        iterates.append(np.append(last.coef_, last.intercept_))
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), np.mean(iterates[:-1], axis=0), rtol=1e-12)
    assert model.predict_one(X[0]) == pytest.approx(model.predict(X[:1])[0])
    model.set_params(average="after")
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), np.mean(iterates[1:], axis=0), rtol=1e-12)


def test_real_data_is_learnt():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X /= np.linalg.norm(X, axis=1).max()
    assert h.PerceptronClassifier(passes=5).fit(X, y).score(X, y) > 0.9
    assert h.DescentClassifier(eta=5.0, passes=5).fit(X, y).score(X, y) > 0.9
