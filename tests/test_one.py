"""Rows one at a time: bit-equal to many in the same storage; names and classes may come late."""

import copy
import pickle
from collections import ChainMap, Counter, OrderedDict, UserDict
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import close, nightly, one_by_one, same, same_state
from discovery import classifiers, online, regressors
from hindsight import (
    DescentClassifier,
    DescentRegressor,
    EGRegressor,
    PerceptronClassifier,
    WidrowHoffRegressor,
)

M, N = 60, 5
NAMES = ["a", "b", "c", "d", "e"]
VARIANTS = {
    "WidrowHoffRegressor": [{"average": "before"}, {"update": "explicit", "power": 0.5, "fit_intercept": False}],
    "EGRegressor": [{"eta": 0.03, "radius": 4.0, "average": "after"}, {"radius": None, "fit_intercept": False}],
    "DescentRegressor": [{"loss": "absolute", "geometry": "balanced", "radius": 4.0, "update": "implicit"}],
    "GLMtronRegressor": [{"rates": np.linspace(1.0, 0.5, M)}],
    "PerceptronClassifier": [{"average": "after"}],
    "DescentClassifier": [{"loss": "hinge", "update": "implicit"}, {"average": "before"}],
}
MODELS = online(VARIANTS, NAMES)
each_regressor = pytest.mark.parametrize("model", regressors(MODELS), ids=lambda m: repr(m).replace("\n", "")[:60])
each_classifier = pytest.mark.parametrize("model", classifiers(MODELS), ids=lambda m: repr(m).replace("\n", "")[:60])


def data(classes=0, kind=np.float64, seed=60):
    """Rows with holes, the first one full so that names come in order; targets or classes; weights."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.6, 0.6, (M, N)) * (rng.random((M, N)) < 0.6)
    X[0] = 0.5
    X = X.astype(np.float32).astype(kind)
    y = rng.uniform(0.0, 0.5, M)
    if classes:
        y = np.array(["no", "yes", "maybe"])[:classes][rng.integers(0, classes, M)]
        y[:classes] = ["no", "yes", "maybe"][:classes]
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], M, p=[0.1, 0.2, 0.5, 0.2])


def as_dict(x, rng, names=NAMES):
    """A row as a dict of its non-zero entries, in any order."""
    filled = np.flatnonzero(x)
    return {names[j]: float(x[j]) for j in rng.permutation(filled)}


class OwnMapping(Mapping):
    """A mapping with the least that one needs."""

    def __init__(self, values):
        self.values_of = values

    def __getitem__(self, name):
        return self.values_of[name]

    def __iter__(self):
        return iter(self.values_of)

    def __len__(self):
        return len(self.values_of)


def same_models(a, b):
    assert len(a.runs_) == len(b.runs_)
    for p, q in zip(a.runs_, b.runs_, strict=True):
        same_state(p, q)
    same(a.coef_, b.coef_)
    assert a.facts_ == b.facts_


# --- one is many ----------------------------------------------------------------------------------------------------


@nightly(only=["AutoRegressor()-*float32*"])
@pytest.mark.parametrize(
    ("model", "kind"),
    [(model, np.float64) for model in regressors(MODELS)] + [(model, np.float32) for model in regressors(MODELS)[::6]],
    ids=str,
)
def test_arrays_one_by_one_are_a_dense_matrix(model, kind):
    X, y, weight = data(kind=kind)
    weight[0] = 1.0
    many, one = copy.deepcopy(model).partial_fit(X, y, sample_weight=weight), copy.deepcopy(model)
    for x, target, c in zip(X, y, weight, strict=True):
        assert one.learn_one(x, target, c) is one
    same_models(one, many)


@each_regressor
def test_dicts_one_by_one_are_a_csr_matrix(model):
    X, y, weight = data()
    rng = np.random.default_rng(61)
    many, one = copy.deepcopy(model).partial_fit(sp.csr_matrix(X), y, sample_weight=weight), copy.deepcopy(model)
    one.learn_one(dict(zip(NAMES, X[0].tolist(), strict=True)), y[0], weight[0])
    one_by_one(one, [as_dict(x, rng) for x in X[1:]], y[1:], weight[1:])
    same_models(one, many)


@each_classifier
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_one_by_one_is_many_for_classes(model, classes, storage):
    X, y, weight = data(classes)
    weight[0] = 1.0
    rng = np.random.default_rng(62)
    rows = X if storage == "dense" else sp.csr_matrix(X)
    labels = np.unique(y)
    many = copy.deepcopy(model).partial_fit(rows, y, classes=labels, sample_weight=weight)
    one = copy.deepcopy(model).partial_fit(rows[:7], y[:7], classes=labels, sample_weight=weight[:7])
    one_by_one(one, [x if storage == "dense" else as_dict(x, rng, range(N)) for x in X[7:]], y[7:], weight[7:])
    same(one.classes_, many.classes_)
    same_models(one, many)


def test_rows_one_by_one_and_many_may_alternate():
    X, y, _ = data()
    many, mixed = WidrowHoffRegressor().partial_fit(X, y), WidrowHoffRegressor()
    mixed.learn_one(X[0], y[0])
    mixed.partial_fit(X[1:20], y[1:20])
    for t in range(20, 30):
        mixed.learn_one(X[t].tolist(), y[t])
    mixed.partial_fit(X[30:], y[30:])
    same_models(mixed, many)


def test_dicts_and_arrays_may_alternate():
    X, y, _ = data()
    rng = np.random.default_rng(63)
    many, mixed = WidrowHoffRegressor().partial_fit(X, y), WidrowHoffRegressor()
    mixed.learn_one(dict(zip(NAMES, X[0].tolist(), strict=True)), y[0])
    for t in range(1, M):
        mixed.learn_one(X[t] if t % 3 else as_dict(X[t], rng), y[t])
    close(mixed.coef_, many.coef_)
    assert mixed.facts_.rounds == M


def test_names_of_a_frame_are_the_names_of_dicts():
    pd = pytest.importorskip("pandas")
    X, y, _ = data()
    rng = np.random.default_rng(64)
    model = WidrowHoffRegressor().partial_fit(pd.DataFrame(X[:30], columns=NAMES), y[:30])
    for t in range(30, M):
        model.learn_one(as_dict(X[t], rng), y[t])
    close(model.coef_, WidrowHoffRegressor().partial_fit(X, y).coef_)
    assert list(model.feature_names_in_) == NAMES
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


@pytest.mark.parametrize("through", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["copy", "pickle"])
def test_interrupted_dicts_are_uninterrupted(through):
    X, y, _ = data()
    rng = np.random.default_rng(65)
    rows = [as_dict(x, rng) for x in X]
    whole = one_by_one(WidrowHoffRegressor(), rows, y)
    part = one_by_one(WidrowHoffRegressor(), rows[:20], y[:20])
    again = one_by_one(through(part), rows[20:], y[20:])
    same_models(again, whole)
    assert part.facts_.rounds == 20


# --- predicting -----------------------------------------------------------------------------------------------------


@each_regressor
def test_predict_one_is_predict(model):
    X, y, weight = data()
    rng = np.random.default_rng(66)
    fitted = copy.deepcopy(model).fit(X, y, sample_weight=weight)
    before = copy.deepcopy(fitted)
    want = fitted.predict(X)
    close([fitted.predict_one(x) for x in X], want)
    close([fitted.predict_one(as_dict(x, rng, range(N))) for x in X], want)
    same_models(fitted, before)


@each_classifier
@pytest.mark.parametrize("classes", [2, 3])
def test_predict_one_is_predict_for_classes(model, classes):
    X, y, weight = data(classes)
    weight[0] = 1.0
    fitted = copy.deepcopy(model).fit(X, y, sample_weight=weight)
    assert [fitted.predict_one(x) for x in X] == fitted.predict(X).tolist()


@pytest.mark.parametrize("classes", [2, 4])
def test_the_probabilities_of_one_row_are_those_of_many(classes, monkeypatch):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 3)), rng.integers(classes, size=60)
    model = DescentClassifier(loss="logistic").fit(X, y)
    for x in (X[0], X[1], 1e6 * X[2], -1e6 * X[2]):
        found = model.predict_proba_one(x)
        assert list(found) == list(range(classes))
        np.testing.assert_allclose(list(found.values()), model.predict_proba([x])[0], rtol=1e-12, atol=1e-300)
    if classes == 2:  # one compiled call, as for the label: nothing is done alone
        model.learn_one(X[0], 1).predict_proba_one(X[0])
        monkeypatch.setattr(model, "_alone", None)
        assert sum(model.predict_proba_one(X[0]).values()) == 1.0


def test_a_name_never_seen_has_weight_zero():
    model = WidrowHoffRegressor().learn_one({"a": 1.0, "b": 2.0}, 1.0)
    before = copy.deepcopy(model)
    assert model.predict_one({"a": 1.0, "new": 5.0}) == model.predict_one({"a": 1.0})
    same_models(model, before)
    assert model.n_features_in_ == 2


# --- names that come late -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("average", [None, "before", "after"])
def test_names_may_come_at_any_time(fit_intercept, average):
    """As if every name had been there from the start, in the order of first sight."""
    rng = np.random.default_rng(67)
    n, m = 40, 120
    X = np.zeros((m, n))
    for t in range(m):
        X[t, rng.choice(1 + n * t // m, 3)] = rng.uniform(-0.5, 0.5, 3)
    seen = []
    for t in range(m):
        seen += [j for j in np.flatnonzero(X[t]).tolist() if j not in seen]
    X = X[:, seen]
    y = rng.normal(size=m)
    model = WidrowHoffRegressor(0.3, fit_intercept=fit_intercept, average=average)
    for t in range(m):
        model.learn_one({f"f{j}": float(X[t, j]) for j in np.flatnonzero(X[t])}, y[t])
    want = WidrowHoffRegressor(0.3, fit_intercept=fit_intercept, average=average).fit(sp.csr_matrix(X), y)
    assert model.n_features_in_ == len(seen)
    same(model.coef_, want.coef_)
    assert model.intercept_ == want.intercept_
    assert model.facts_ == want.facts_
    row = {f"f{j}": 1.0 for j in range(len(seen))}
    close(model.predict_one(row), want.predict(np.ones((1, len(seen))))[0])
    close(model.predict(X), want.predict(X))  # its rows may have room for more names than there are
    model.partial_fit(sp.csr_matrix(X), y)
    want.partial_fit(sp.csr_matrix(X), y)
    same(model.coef_, want.coef_)


@pytest.mark.parametrize(
    "model", [EGRegressor(features=["a", "b"]), DescentRegressor(geometry="simplex", features=["a", "b"])], ids=repr
)
def test_a_new_name_is_an_error_where_weights_depend_on_how_many(model):
    model = copy.deepcopy(model).learn_one({"b": 0.5}, 0.2)
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match="feature 'c' is new"):
        model.learn_one({"a": 0.1, "c": 1.0}, 0.1)
    same_models(model, before)
    same_models(model.learn_one({"a": 0.1}, 0.1), before.learn_one({"a": 0.1}, 0.1))


def test_multiplicative_dicts_need_declared_names():
    with pytest.raises(ValueError, match="declare the features"):
        EGRegressor().learn_one({"a": 1.0}, 0.5)


def test_names_may_be_anything_hashable():
    model = WidrowHoffRegressor()
    model.learn_one({("x", 1): 1.0, 7: 2.0, "seven": 0.5}, 1.0)
    model.learn_one({7: 2.0}, 1.0)
    assert model.n_features_in_ == 3
    model.learn_one({}, 1.0)  # nothing but the intercept
    assert model.facts_.rounds == 3


@pytest.mark.parametrize(
    "kind", [MappingProxyType, UserDict, ChainMap, OrderedDict, Counter, OwnMapping], ids=lambda kind: kind.__name__
)
def test_any_mapping_is_a_row_of_names(kind):
    X, y, _ = data()
    rng = np.random.default_rng(69)
    plain, other = WidrowHoffRegressor(), WidrowHoffRegressor()
    for x, target in zip(X, y, strict=True):
        row = as_dict(x, rng)
        assert other.learn_one(kind(row), target) is other
        plain.learn_one(row, target)
        assert other.predict_one(kind(row)) == plain.predict_one(row)
    same_models(other, plain)
    with pytest.raises(ValueError, match="declare the features"):
        EGRegressor().learn_one(kind({"a": 1.0}), 0.5)


CACHES = {"_lock", "_ones", "_row", "_swift", "_places"}  # what only saves time


class Failing:
    """A number that cannot be had."""

    def __float__(self):
        raise RuntimeError("no number")


@pytest.mark.parametrize("model", [WidrowHoffRegressor(), PerceptronClassifier()], ids=repr)
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize(
    "x", [{"new": 1.0, "odd": Failing()}, {"a": Failing()}, {"new": 1.0, "odd": "text"}], ids=["new", "known", "text"]
)
def test_a_value_that_raises_leaves_nothing_behind(model, fitted, x):
    model = copy.deepcopy(model)
    if fitted:
        model.learn_one({"a": 1.0, "b": 2.0}, 1).learn_one({"b": 2.0}, 0)
    before = copy.deepcopy(model)
    for label in (1, 5):  # a class that is known, and a new one
        with pytest.raises((RuntimeError, ValueError), match=r"no number|not a number"):
            model.learn_one(x, label)
        assert vars(model).keys() - CACHES == vars(before).keys() - CACHES
    if fitted:
        same_models(model, before)
        assert list(model._column) == ["a", "b"] and model.n_features_in_ == 2
        with pytest.raises((RuntimeError, ValueError), match=r"no number|not a number"):
            model.predict_one(dict.fromkeys("ab", Failing()))
    row = {"b": 1.0, "c": 0.5}
    same_models(model.learn_one(row, 1), before.learn_one(row, 1))


def test_a_row_that_one_run_refuses_is_learnt_by_none():
    start = np.zeros((3, 4))
    start[1] = 1e280
    model = DescentClassifier("hinge", eta=1.0, start=start).partial_fit(np.eye(3), ["a", "b", "c"])
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match="non-finite"):
        model.learn_one(np.array([1e150, 0.0, 0.0]), "b")  # run 0 can take it, run 1 cannot
    same_models(model, before)


# --- classes that come late -----------------------------------------------------------------------------------------


def test_a_new_class_starts_a_learner_of_its_own():
    X, y, _ = data(2)
    Z, z, _ = data(3, seed=68)
    model = PerceptronClassifier(average="before").fit(X, y)
    pair = copy.deepcopy(model)
    model.learn_one(Z[0], "maybe")
    one_by_one(model, Z[1:], z[1:])
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    labels = np.concatenate([["maybe"], z[1:]])
    fresh = PerceptronClassifier(average="before").partial_fit(Z, labels == "maybe")
    same_state(model.runs_[0], fresh.runs_[0])
    for k, label in ((1, "no"), (2, "yes")):  # the two that shared a run go on from it, one mirrored
        own = PerceptronClassifier(average="before").partial_fit(X, y == label).partial_fit(Z, labels == label)
        same(model.runs_[k].weights, own.runs_[0].weights)
        same(model.runs_[k].mean("before"), own.runs_[0].mean("before"))
    assert pair.classes_.tolist() == ["no", "yes"]
    assert model.predict(Z).shape == (M,)


def test_classes_may_come_one_by_one_from_nothing():
    X, y, _ = data(3)
    model = one_by_one(PerceptronClassifier(), X, y)
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    assert len(model.runs_) == 3
    assert [model.predict_one(x) for x in X] == model.predict(X).tolist()


def test_the_facts_of_a_mirrored_run_are_those_of_its_own_labels():
    X, y, _ = data(2)
    for model in (PerceptronClassifier(), DescentClassifier(), DescentClassifier("hinge", "balanced")):
        model.fit(X, y)
        mirror = copy.deepcopy(model.runs_[0]).mirrored()
        other = copy.deepcopy(model).fit(X, np.where(y == "yes", "no", "yes"))
        same_state(mirror, other.runs_[0])
        assert mirror.facts == other.facts_


def test_rates_run_out_for_the_run_that_played_most():
    """A class that joins later has played fewer rounds, and may come first among the classes."""
    model = DescentClassifier(loss="hinge", geometry="simplex", rates=[0.1] * 4)
    for label in ("c", "b", "c", "a"):
        model.learn_one([0.5, 0.25], label)
    assert [run.rounds for run in model.runs_] == [1, 3, 4]
    with pytest.raises(ValueError, match="4 rates were given, but there are more rounds than that"):
        model.learn_one([0.5, 0.25], "a")
