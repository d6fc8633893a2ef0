"""Certificates through the estimators: each of them, several classes, chunks, and rows that are not the model's."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

import hindsight as h
from conftest import nightly, one_by_one
from discovery import ONLINE


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, (200, 3))
    return X, 0.4 * X[:, 0] - 0.2 * X[:, 1] + 0.05 * rng.standard_normal(200), (X[:, 0] > 0).astype(int)


REGRESSORS = [
    (h.WidrowHoffRegressor(0.2), "implicit Widrow-Hoff, as met"),
    (h.WidrowHoffRegressor(0.2, "explicit"), "Widrow-Hoff, as met"),
    (h.WidrowHoffRegressor(0.2, "explicit", power=0.5), "Widrow-Hoff, changing rates, as met"),
    (h.EGRegressor(0.2), "exponentiated gradient, as met"),
    (h.EGRegressor(0.2, radius=None), "exponentiated gradient, as met"),
    (h.DescentRegressor("square", eta=0.1), "implicit Widrow-Hoff, as met"),
    (h.DescentRegressor("square", eta=0.1, update="explicit"), "Widrow-Hoff, as met"),
    (h.DescentRegressor("absolute"), "implicit descent, as met"),
    (h.DescentRegressor("square", "scale-free"), "running geometry"),
    (h.DescentRegressor("absolute", "balanced", update="explicit", radius=2.0), "descent on a convex loss, as met"),
    (h.DescentRegressor("absolute", update="explicit", power=0.5), "descent, changing rates, as met"),
    (h.RidgeRegressor(), "online ridge regression"),
    (h.RidgeRegressor(window=8), "online ridge regression that forgets"),
    (h.RidgeRegressor(forecaster=True), "Vovk-Azoury-Warmuth"),
    (h.AutoRegressor(), "aggregation"),
    (h.AutoRegressor(drift=0.01), "aggregation with drift"),
    (h.GLMtronRegressor("clipped"), "descent on a convex loss, as met"),
]
CLASSIFIERS = [
    (h.PerceptronClassifier(), None),
    (h.WinnowClassifier(), "Winnow, as met"),
    (h.WinnowClassifier(balanced=False, passes=2), "Winnow, as met"),
    (h.DescentClassifier(), "implicit descent, as met"),
    (h.DescentClassifier(update="explicit"), "descent on a convex loss, as met"),
    (h.DescentClassifier("hinge", "simplex", update="explicit", average="before"), "descent on a convex loss"),
    (h.AutoClassifier(), "aggregation"),
    (h.AutoClassifier(drift=0.01), "aggregation with drift"),
]


def test_every_online_estimator_is_among_them():
    assert {type(model) for model, _ in REGRESSORS + CLASSIFIERS} == set(ONLINE)


@nightly(but=["dense-*", "csr-WidrowHoff*", "csr-EG*", "csr-Auto*"])
@pytest.mark.parametrize(("model", "theorem"), REGRESSORS, ids=lambda v: str(v))
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_regressors(model, theorem, sparse, rows):
    X, y, _ = rows
    X = sp.csr_matrix(X) if sparse else X
    weight = np.tile([1.0, 0.0, 0.5, 2.0], 50)
    certificate = model.fit(X, y, weight, certify=True).certificate_
    assert certificate.verdict is h.Verdict.HOLDS, str(certificate)
    assert certificate.theorem.name == theorem
    assert certificate.measured <= certificate.bound
    assert certificate.rounds == 150


@pytest.mark.parametrize(("model", "theorem"), CLASSIFIERS, ids=lambda v: str(v))
def test_classifiers(model, theorem, rows):
    X, _, label = rows
    certificate = h.certify(model.fit(X, label), X, label)
    assert certificate.verdict is h.Verdict.HOLDS, str(certificate)
    assert theorem is None or certificate.theorem.name == theorem
    if isinstance(model, (h.PerceptronClassifier, h.WinnowClassifier)):
        assert certificate.measured == model.facts_.mistakes


def test_one_certificate_a_class_and_their_union():
    X, y = load_digits(return_X_y=True)
    X = X[:500] / 80
    certificates = h.PerceptronClassifier().fit(X, y[:500], certify=True).certificate_
    assert [c.label for c in certificates.each] == [str(k) for k in range(10)]
    assert certificates.verdict is h.Verdict.HOLDS
    assert certificates.bound == pytest.approx(sum(c.bound for c in certificates.each))
    json.dumps(certificates.to_dict())


def test_chunks_give_the_same_certificate_as_the_whole(rows):
    X, y, _ = rows
    model = h.WidrowHoffRegressor(0.2, "explicit").fit(X, y)
    whole = model.certify(X, y)
    chunked = model.certify(lambda: ((X[a : a + 30], y[a : a + 30], None) for a in range(0, 200, 30)))
    assert chunked.measured == pytest.approx(whole.measured, rel=1e-12)
    assert chunked.bound == pytest.approx(whole.bound, rel=1e-9)
    once = iter([(X, y, None)])
    with pytest.raises(ValueError, match="new iterator"):
        model.certify(lambda: once)


def test_other_rows_or_another_order_are_refused(rows):
    X, y, _ = rows
    model = h.WidrowHoffRegressor(0.2).fit(X, y)
    for other in (X[:-1], X[::-1], X * 1.01, -X):
        with pytest.raises(h.MismatchError, match="trained on"):
            model.certify(other, y[: len(other)])
    assert model.partial_fit(X, y).certify(X, y).rounds == 400


def test_a_rival_of_ones_own(rows):
    X, y, _ = rows
    model = h.WidrowHoffRegressor(0.2, "explicit").fit(X, y)
    best = model.certify(X, y)
    mine = model.certify(X, y, u=[0.4, -0.2, 0.0, 0.0])
    assert mine.verdict is h.Verdict.HOLDS
    assert mine.bound >= best.bound
    with pytest.raises(ValueError, match="u must have 4 coordinates"):
        model.certify(X, y, u=[1.0])
    with pytest.raises(ValueError, match="simplex"):
        h.EGRegressor(0.2, radius=None).fit(X, y).certify(X, y, u=[2.0, 0.0, 0.0, 0.0])


def test_a_planted_weight_vector(rows):
    X, _, _ = rows
    w = np.array([1.0, -2.0, 0.5, 0.3])
    y = 1 / (1 + np.exp(-(X @ w[:3] + w[3])))
    model = h.GLMtronRegressor(eta=1.0).fit(X, y)
    certificate = model.certify(X, y, planted=w)
    assert certificate.verdict is h.Verdict.HOLDS
    assert certificate.theorem.name == "GLM-tron"
    void = model.certify(X, y, planted=w + 1e-3)
    assert void.verdict is h.Verdict.VOID
    assert np.isnan(void.bound)


def test_rows_learnt_one_at_a_time_are_certified_too(rows):
    X, y, _ = rows
    model = one_by_one(h.WidrowHoffRegressor(0.2), [{"a": x[0], "b": x[1], "c": x[2]} for x in X], y)
    assert model.certify(X, y).verdict is h.Verdict.HOLDS
