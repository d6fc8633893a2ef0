"""Weights of classes: against sample weights, scikit-learn's numbers and a naive count; in files and certificates."""

from collections import Counter

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

import hindsight as h
from conftest import close, one_by_one, same_state
from hindsight.certificates.theorems import Verdict
from hindsight.errors import RowError

KINDS = {"descent": h.DescentClassifier, "auto": h.AutoClassifier}
kinds = pytest.mark.parametrize("kind", KINDS)


def rows(classes: int = 2, m: int = 120, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4))
    z = X[:, 0] + 0.5 * rng.normal(size=m)
    y = np.digitize(z, [1.0] if classes == 2 else [0.0, 1.0])
    return X, np.array(["rare" if k == 1 else "often" if k == 0 else "third" for k in y])


def naive_running(y, weight=None):
    """n/(K n_k) of the rows so far, each with itself counted."""
    counts, out = Counter(), []
    for k, label in enumerate(y.tolist()):
        if weight is not None and weight[k] == 0.0:
            out.append(0.0)
            continue
        counts[label] += 1
        out.append(counts.total() / (len(counts) * counts[label]))
    return np.array(out)


@kinds
@pytest.mark.parametrize("classes", [2, 3])
def test_weights_of_classes_are_weights_of_their_rows(kind, classes):
    X, y = rows(classes)
    names = np.unique(y)
    own = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y))
    balanced = dict(zip(names, compute_class_weight("balanced", classes=names, y=y), strict=True))
    for given, each in (("balanced", balanced), ({"rare": 5.0}, {"rare": 5.0}), ({"often": 0.0}, {"often": 0.0})):
        for sample_weight in (None, own):
            factor = np.array([each.get(label, 1.0) for label in y]) * (1.0 if sample_weight is None else own)
            found = KINDS[kind](class_weight=given).fit(X, y, sample_weight)
            want = KINDS[kind]().fit(X, y, factor)
            close(found.coef_, want.coef_, 1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_that_come_later_count_by_the_rows_so_far(classes):
    X, y = rows(classes)
    weight = np.random.default_rng(2).choice([0.0, 1.0, 2.0], len(y))
    names = np.unique(y)
    want = h.DescentClassifier().partial_fit(X, y, names, naive_running(y, weight) * weight)
    found = h.DescentClassifier(class_weight="balanced")
    for part in np.array_split(np.arange(len(y)), 5):
        found.partial_fit(X[part], y[part], names, weight[part])
    close(found.coef_, want.coef_)
    assert found.class_counts_.tolist() == [np.count_nonzero((y == name) & (weight > 0)) for name in names]


def test_one_by_one_it_is_the_same_also_where_classes_join():
    X, y = rows(2)
    assert y[0] != y[np.argmax(y != y[0])]
    many = h.DescentClassifier(class_weight="balanced").partial_fit(X, y)
    one = one_by_one(h.DescentClassifier(class_weight="balanced"), [{str(j): v for j, v in enumerate(x)} for x in X], y)
    close(one.coef_, many.coef_)
    assert one.certify(X, y).verdict is Verdict.HOLDS
    X, y = rows(3)
    one = one_by_one(h.DescentClassifier(class_weight="balanced"), X, y)
    assert dict(zip(one.classes_, one.class_counts_, strict=True)) == Counter(y.tolist())


def test_after_a_fit_counts_go_on():
    X, y = rows(2)
    model = h.DescentClassifier(class_weight="balanced").fit(X[:80], y[:80]).partial_fit(X[80:100], y[80:100])
    one_by_one(model, X[100:], y[100:])
    names = np.unique(y)
    each = dict(zip(names, compute_class_weight("balanced", classes=names, y=y[:80]), strict=True))
    first = np.array([each[label] for label in y[:80]])
    want = h.DescentClassifier().fit(X, y, np.concatenate((first, naive_running(y)[80:])))
    close(model.coef_, want.coef_)
    assert model.certify(X, y).verdict is Verdict.HOLDS

    def chunks():
        for part in np.array_split(np.arange(len(y)), 7):
            yield X[part], y[part], None

    assert model.certify(chunks).verdict is Verdict.HOLDS


@kinds
def test_certificates_speak_of_the_weighted_loss(kind):
    X, y = rows(2)
    model = KINDS[kind](class_weight="balanced", passes=2).fit(X, y, certify=True)
    assert model.certificate_.verdict is Verdict.HOLDS
    close(model.certificate_.measured, model.facts_.loss, 1e-9)
    assert (KINDS[kind](class_weight={"rare": 3.0}).fit(X, y, certify=True)).certificate_.verdict is Verdict.HOLDS


@pytest.mark.parametrize("given", ["balanced", {"rare": 3.0, "often": 0.5}])
def test_saved_and_loaded_it_goes_on(given, tmp_path):
    X, y = rows(2)
    model = h.DescentClassifier(class_weight=given).fit(X[:80], y[:80])
    model.save(tmp_path / "model")
    found = h.load(tmp_path / "model")
    assert found.class_weight == given
    for each in (model, found):
        each.partial_fit(X[80:], y[80:])
    same_state(found.runs_[0], model.runs_[0])


def test_the_rare_class_is_found_more_often():
    X, y = rows(2, 4000)
    plain, balanced = (h.DescentClassifier(class_weight=given).fit(X, y) for given in (None, "balanced"))
    rare = y == "rare"
    assert (balanced.predict(X)[rare] == "rare").mean() > (plain.predict(X)[rare] == "rare").mean() + 0.1


def test_what_cannot_be_is_said():
    X, y = rows(2)
    with pytest.raises(
        ValueError, match="class_weight must be None, 'balanced' or a dict of weights by class; got 'x'"
    ):
        h.DescentClassifier(class_weight="x").fit(X, y)
    with pytest.raises(ValueError, match=r"class_weight has the class 'rarely', not one of \['often', 'rare'\]"):
        h.DescentClassifier(class_weight={"rarely": 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="the weight of class 'rare' must be at least 0, got -1"):
        h.DescentClassifier(class_weight={"rare": -1}).fit(X, y)
    model = h.DescentClassifier(class_weight="balanced").fit(X, y)
    before = model.class_counts_.copy()
    with pytest.raises(RowError, match=r"weight -1\.0 must be a finite number, at least 0"):
        model.learn_one(X[0], "rare", -1.0)
    with pytest.raises(RowError):
        model.partial_fit(np.full((1, 4), np.nan), ["rare"])
    assert (model.class_counts_ == before).all()
