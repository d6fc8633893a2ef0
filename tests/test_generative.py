"""The generative classifier: scikit-learn's contract, its peers in the limit, priors, keys, and bad input."""

import math
import pickle
import tempfile

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats as st
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

import hindsight
from hindsight.density import Categorical, Exponential, FullGaussian, Gaussian, Keyed, Poisson, Product
from hindsight.errors import RowError
from hindsight.estimators.generative import GenerativeClassifier


def blobs(m, seed=0, equal=False):
    """Two classes of correlated columns; with `equal`, of the same covariance."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, m)
    a, b = (
        np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.2, 0.3, 0.6]]),
        np.array([[2.0, 0, 0], [-1.0, 1, 0], [0, 0, 1]]),
    )
    z = rng.standard_normal((m, 3))
    X = np.where(y[:, None] == 1, z @ (a if equal else b).T + [1.0, 0.5, -0.5], z @ a.T)
    return X, y


def apart(ours, theirs, X):
    return np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max()


def test_gaussian_nb_in_the_limit():
    previous = math.inf
    for m in (100, 3_000, 100_000):
        X, y = blobs(m)
        gap = apart(GenerativeClassifier().fit(X, y), GaussianNB().fit(X, y), blobs(500, 1)[0])
        assert gap < previous
        previous = gap
    assert previous < 1e-3


def test_qda_in_the_limit_and_lda_where_covariances_are_equal():
    test = blobs(500, 1)[0]
    for equal, peer in ((False, QuadraticDiscriminantAnalysis()), (True, LinearDiscriminantAnalysis())):
        gaps = []
        for m in (200, 5_000, 200_000):
            X, y = blobs(m, 2, equal)
            gaps.append(apart(GenerativeClassifier("full").fit(X, y), peer.fit(X, y), test))
        assert gaps[0] > gaps[1] > gaps[2]
        assert gaps[2] < 0.02


def test_on_real_data_it_is_as_good_as_its_peers():
    X, y = load_breast_cancer(return_X_y=True)
    ours, theirs = GenerativeClassifier().fit(X[::2], y[::2]), GaussianNB().fit(X[::2], y[::2])
    assert ours.score(X[1::2], y[1::2]) >= theirs.score(X[1::2], y[1::2]) - 0.01
    X, y = load_iris(return_X_y=True)
    peer = QuadraticDiscriminantAnalysis().fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    assert GenerativeClassifier("full").fit(X[::2], y[::2]).score(X[1::2], y[1::2]) >= peer - 0.02


@pytest.mark.parametrize("density", ["gaussian", "full", "exponential", Gaussian(columns=3, forget=0.99)])
def test_chunks_are_the_whole(density):
    X, y = blobs(300)
    X = np.abs(X)
    whole, parts = GenerativeClassifier(density).fit(X, y), GenerativeClassifier(density)
    for a in range(0, 300, 37):
        parts.partial_fit(X[a : a + 37], y[a : a + 37], classes=[0, 1])
    np.testing.assert_array_equal(whole.predict_log_proba(X), parts.predict_log_proba(X))
    np.testing.assert_array_equal(parts.class_count_, np.bincount(y))


def test_bayes_rule_by_hand():
    X, y = blobs(200)
    model = GenerativeClassifier(crowd=0).fit(X, y)
    joint = []
    for k in (0, 1):
        p = Gaussian(columns=3).update(X[y == k])
        joint.append(p.logp(X) + math.log(((y == k).sum() + 0.5) / 201))
    joint = np.stack(joint, axis=1)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), joint, rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(X), joint - logsumexp(joint, axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), joint[:, 1] - joint[:, 0], rtol=1e-9, atol=1e-12)
    for ours, k in zip(model.densities_, (0, 1), strict=True):
        assert ours.rows == (y == k).sum()
        assert ours.loss == pytest.approx(Gaussian(columns=3).update(X[y == k]).loss, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "make"), [("gaussian", lambda: Gaussian(columns=3)), ("full", lambda: FullGaussian(3))]
)
def test_each_class_starts_from_the_crowd(name, make):
    X, y = blobs(60)
    model = GenerativeClassifier(name, crowd=3.0).fit(X, y)
    prior = make().update(X).as_prior(3.0)
    for k, density in enumerate(model.densities_):
        np.testing.assert_allclose(density.logp(X), prior.fresh().update(X[y == k]).logp(X), rtol=1e-9)
        assert density.rows == (y == k).sum()
    scaled = GenerativeClassifier(name).fit(X * 1e6 + 1e7, y)
    plain = GenerativeClassifier(name).fit(X, y)
    np.testing.assert_allclose(scaled.predict_proba(X * 1e6 + 1e7), plain.predict_proba(X), atol=1e-4)
    with pytest.raises(ValueError, match="crowd must be a finite number of rows"):
        GenerativeClassifier(crowd=-1.0).fit(X, y)


@pytest.mark.parametrize(
    "density", ["gaussian", "tied", "full", "poisson", "bernoulli", "exponential", Gaussian(columns=2)]
)
@pytest.mark.parametrize("priors", [None, [0.2, 0.8]])
def test_progressive_predictions_are_those_of_a_model_of_the_rows_before(density, priors):
    rng = np.random.default_rng(10)
    y = rng.integers(0, 2, 40)
    X = rng.integers(0, 2, (40, 2)) * (1.0 + (density not in ("bernoulli",)) * y[:, None])
    model = GenerativeClassifier(density, priors=priors)
    log_p = np.concatenate([model.progressive(X[a : a + 13], y[a : a + 13], classes=[0, 1]) for a in range(0, 40, 13)])
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0, rtol=1e-12)
    for t in range(1, 40):
        before = GenerativeClassifier(density, priors=priors).partial_fit(X[:t], y[:t], classes=[0, 1])
        np.testing.assert_allclose(log_p[t], before.predict_log_proba(X[t : t + 1])[0], rtol=1e-7, atol=1e-9)
    whole = GenerativeClassifier(density, priors=priors).fit(X, y)
    np.testing.assert_array_equal(model.predict_log_proba(X), whole.predict_log_proba(X))


def test_tied_variances_are_those_of_one_model_of_all_classes():
    """The Student t of a shared Normal-Gamma posterior, from its definition; in the limit, linear discriminants."""
    rng = np.random.default_rng(11)
    y = rng.integers(0, 3, 50)
    X = 1e3 + rng.normal(size=(50, 2)) * [1.0, 5.0] + y[:, None]
    model = GenerativeClassifier("tied", crowd=0.0).fit(X, y)
    prior = Gaussian(columns=2)
    m0, k0, a, b = prior.part.prior
    for c in range(3):
        rows = X[y == c]
        kappa = k0 + len(rows)
        a = a + 0.5 * len(rows)
        b = b + 0.5 * ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
        b = b + 0.5 * k0 * len(rows) / kappa * (rows.mean(axis=0) - m0) ** 2
    for c, density in enumerate(model.densities_):
        rows = X[y == c]
        kappa = k0 + len(rows)
        centre = (k0 * m0 + rows.sum(axis=0)) / kappa
        want = st.t.logpdf(X, 2.0 * a, centre, np.sqrt(b * (kappa + 1.0) / (a * kappa))).sum(axis=1)
        np.testing.assert_allclose(density.logp(X), want, rtol=1e-9)
    X, y = blobs(100_000)
    X = np.random.default_rng(0).normal(size=X.shape) * [1.0, 2.0, 0.5] + 0.7 * y[:, None]
    peer = LinearDiscriminantAnalysis().fit(X, y)
    assert apart(GenerativeClassifier("tied").fit(X, y), peer, X[:500]) < 0.02


def test_given_priors_are_kept():
    X, y = blobs(200)
    even, odd = (GenerativeClassifier(priors=p).fit(X, y).decision_function(X) for p in ([0.5, 0.5], [0.9, 0.1]))
    np.testing.assert_allclose(odd - even, math.log(0.1 / 0.9), rtol=1e-9)
    for priors in ([0.5], [0.5, 0.6], [0.0, 1.0], [math.nan, 0.5]):
        with pytest.raises(ValueError, match="priors must be 2 numbers above 0 that sum to 1"):
            GenerativeClassifier(priors=priors).fit(X, y)


def test_a_density_for_each_class():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.exponential(1.0, (500, 1)), rng.normal(5.0, 0.5, (500, 1))])
    y = np.repeat(["noise", "signal"], 500)
    model = GenerativeClassifier({"noise": Exponential(), "signal": "gaussian"}).fit(X, y)
    assert model.predict([[0.1], [5.0], [20.0]]).tolist() == ["noise", "signal", "noise"]
    assert model.predict([[-1.0]]).tolist() == ["signal"]  # no exponential is below 0
    with pytest.raises(ValueError, match="no entry for class 'signal'"):
        GenerativeClassifier({"noise": Exponential()}).fit(X, y)
    with pytest.raises(ValueError, match="density"):
        GenerativeClassifier("student").fit(X, y)
    with pytest.raises(ValueError, match="a density or a mapping"):
        GenerativeClassifier(3).fit(X, y)
    with pytest.raises(ValueError, match="over 2 columns, but the rows have 1"):
        GenerativeClassifier(Gaussian(columns=2)).fit(X, y)


def test_a_class_never_seen_has_the_prior_of_its_density():
    X, y = blobs(100)
    model = GenerativeClassifier().partial_fit(X, y, classes=[0, 1, 2])
    joint = model.predict_joint_log_proba(X)
    assert np.isfinite(joint).all()
    crowd = Gaussian(columns=3).update(X).as_prior(2.0)
    np.testing.assert_allclose(joint[:, 2], crowd.logp(X) + math.log(0.5 / 101.5), rtol=1e-12)
    assert not (model.predict(X) == 2).any()
    before = model.predict_proba(X)
    with pytest.raises(RowError, match=r"row 1: class 7 was not declared \(classes=\[0, 1, 2\]\)"):
        model.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match="not the same as declared before"):
        model.partial_fit(X[:2], [0, 1], classes=[0, 1])
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_hundred_thousand_columns_and_a_constant_one():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 100_000))
    y = np.arange(40) % 2
    X[y == 1] += 0.05
    X[:, 0] = 3.0
    model = GenerativeClassifier().fit(X, y)
    log_p = model.predict_log_proba(X)
    assert np.isfinite(log_p).all()
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0, rtol=1e-12)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("density", ["gaussian", "full"])
def test_a_value_that_is_not_finite_is_named_and_changes_nothing(density):
    X, y = blobs(50)
    model = GenerativeClassifier(density).fit(X, y)
    before = model.predict_proba(X)
    bad = X.copy()
    bad[7, 1] = math.nan
    for do in (model.partial_fit, model.fit):
        with pytest.raises(RowError, match=r"row 7, column 1: value NaN"):
            do(bad, y)
        np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(RowError, match=r"row 7, column 1: value NaN"):
        model.predict(bad)
    with pytest.raises(RowError, match=r"row 3: value|row 3, column 0: value -0.5 is not a count"):
        GenerativeClassifier("poisson").fit(np.where(np.arange(50)[:, None] == 3, -0.5, np.ones((50, 2))), y)
    with pytest.raises(RowError, match="row 0 has density 0 under every class"):
        GenerativeClassifier("poisson").fit(np.ones((50, 3)), y).predict([[-1.0, 1.0, 1.0]])


def test_other_families_and_float32():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 2000)
    B = rng.random((2000, 5)) < np.where(y[:, None] == 1, 0.7, 0.3)
    P = rng.poisson(np.where(y[:, None] == 1, 5.0, 2.0), (2000, 5))
    assert GenerativeClassifier("bernoulli").fit(B, y).score(B, y) > 0.75
    assert GenerativeClassifier("poisson").fit(P, y).score(P, y) > 0.9
    X, y = blobs(300)
    a, b = GenerativeClassifier().fit(X.astype(np.float32), y), GenerativeClassifier().fit(X, y)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-4)


def test_pickled_and_cloned():
    X, y = blobs(100)
    model = GenerativeClassifier().fit(X, y)
    again = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.partial_fit(X, y).predict_proba(X))
    assert clone(GenerativeClassifier(FullGaussian(3))).fit(X, y).score(X, y) > 0.5


# ---------------------------------------------------------------- named columns and keys


def phone(m, seed=6, customers=20):
    """Customers call at their own hour; fraudsters at night, long, from anywhere."""
    rng = np.random.default_rng(seed)
    customer = rng.integers(0, customers, m)
    fraud = rng.random(m) < 0.2
    return {
        "customer": np.array([f"c{c}" for c in customer]),
        "hour": np.where(fraud, rng.integers(0, 24, m), (customer + rng.integers(0, 2, m)) % 24),
        "minutes": np.where(fraud, rng.exponential(20.0, m), rng.exponential(3.0, m)),
        "place": np.where(fraud, rng.choice(["home", "abroad"], m), rng.choice(["home", "abroad"], m, p=[0.95, 0.05])),
    }, np.where(fraud, "fraud", "fine")


def card():
    return Product({"hour": Categorical(24), "minutes": Exponential(), "place": Categorical(["home", "abroad"])})


def test_one_density_a_customer_finds_fraud_better_than_one_for_all():
    X, y = phone(4000)
    test, truth = phone(2000, seed=7)
    keyed = GenerativeClassifier({"fine": Keyed(card(), "customer"), "fraud": card()}).fit(X, y)
    shared = GenerativeClassifier(card()).fit(X, y)
    assert keyed.score(test, truth) > shared.score(test, truth) + 0.02
    assert len(keyed.densities_[0].keys) == 20
    proba = keyed.predict_proba({k: np.append(v[:3], v[:1]) for k, v in test.items()})
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)


def test_frames_and_chunks_of_named_columns():
    X, y = phone(500)
    whole = GenerativeClassifier({"fine": Keyed(card(), "customer"), "fraud": card()}).fit(X, y)
    for frame in (pd.DataFrame(X), pl.DataFrame(X)):
        parts = GenerativeClassifier({"fine": Keyed(card(), "customer"), "fraud": card()})
        for a in range(0, 500, 99):
            parts.partial_fit(frame[a : a + 99], y[a : a + 99], classes=["fine", "fraud"])
        np.testing.assert_array_equal(parts.predict_log_proba(frame), whole.predict_log_proba(X))
        with pytest.raises(ValueError, match="X has 3 features, but the model is expecting 4"):
            parts.predict(frame[["hour", "minutes", "place"]])


def test_log_odds_are_explained_by_column():
    X, y = phone(500)
    model = GenerativeClassifier({"fine": Keyed(card(), "customer"), "fraud": card()}).fit(X, y)
    parts = model.explain(X)
    assert list(parts) == ["prior", "hour", "minutes", "place"]
    np.testing.assert_allclose(sum(parts.values()), model.decision_function(X), rtol=1e-9, atol=1e-9)
    flipped = model.explain(X, "fine", "fraud")
    np.testing.assert_allclose(flipped["hour"], -parts["hour"])
    with pytest.raises(ValueError, match="there is no class 'theft'"):
        model.explain(X, "theft")
    rows, labels = blobs(60)
    for density, names in (("gaussian", ["prior", "0", "1", "2"]), ("full", ["prior", "all columns"])):
        plain = GenerativeClassifier(density).fit(rows, labels)
        assert list(plain.explain(rows)) == names
        np.testing.assert_allclose(sum(plain.explain(rows).values()), plain.decision_function(rows), atol=1e-9)


def test_bad_named_rows_change_nothing():
    X, y = phone(300)
    make = {"fine": Keyed(card(), "customer", capacity=20), "fraud": card()}
    model = GenerativeClassifier(make).fit(X, y)
    before = model.predict_log_proba(X)
    for column, value, message in [
        ("minutes", -1.0, r"row 4, column 'minutes': value -1.0 is not a duration"),
        ("place", "moon", r"row 4, column 'place': 'moon' is not one of the declared symbols"),
    ]:
        for label in ("fine", "fraud"):
            bad = {k: v[:10].astype(object) if k == column else v[:10] for k, v in X.items()}
            bad[column][4] = value
            with pytest.raises(RowError, match=message):
                model.partial_fit(bad, np.where(np.arange(10) == 4, label, y[:10]))
            np.testing.assert_array_equal(model.predict_log_proba(X), before)
    crowd, labels = phone(300, seed=8, customers=40)
    with pytest.raises(RowError, match="capacity = 20 keys"):
        model.partial_fit(crowd, labels)
    np.testing.assert_array_equal(model.predict_log_proba(X), before)
    with pytest.raises(ValueError, match="a file of its own"):
        GenerativeClassifier(Keyed(card(), "customer", spill="x.sqlite")).fit(X, y)


def test_named_columns_need_densities_that_know_names():
    X, y = phone(50)
    with pytest.raises(ValueError, match="need a Product or Keyed for every class, not <gaussian"):
        GenerativeClassifier({"fine": card(), "fraud": Gaussian(columns=4)}).fit(X, y)
    with pytest.raises(ValueError, match="takes one column beside the key, got hour, minutes, place"):
        GenerativeClassifier(Keyed(Poisson(), "customer")).fit(X, y)


def test_columns_that_repeat_are_named_as_the_trouble():
    X, y = blobs(200)
    twice = np.hstack([X, X[:, :1]]) * 1e6
    with pytest.raises(ValueError, match="a column is a sum of others, or constant, at double precision"):
        GenerativeClassifier("full").fit(twice, y).predict(twice)
    steady = GenerativeClassifier(FullGaussian(4, scale=1e3)).fit(twice, y)
    assert np.isfinite(steady.predict_log_proba(twice)).all()


def clone_of(model):
    """The model from its file."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        return hindsight.load(f"{folder}/model")


def test_keys_that_spill_predict_the_same(tmp_path):
    X, y = phone(400)
    small = Keyed(card(), "customer", capacity=3, spill=str(tmp_path / "keys.sqlite"))
    spilling = GenerativeClassifier({"fine": small, "fraud": card()}).fit(X, y)
    roomy = GenerativeClassifier({"fine": Keyed(card(), "customer"), "fraud": card()}).fit(X, y)
    np.testing.assert_array_equal(spilling.predict_log_proba(X), roomy.predict_log_proba(X))
    spilling.save(tmp_path / "fraud")
    spilling.densities_[0].close()
    for model in (hindsight.load(tmp_path / "fraud"), pickle.loads(pickle.dumps(roomy))):
        np.testing.assert_array_equal(model.predict_log_proba(X), roomy.predict_log_proba(X))
        np.testing.assert_array_equal(model.progressive(X, y), clone_of(roomy).progressive(X, y))


def test_a_matrix_with_a_key_in_it():
    rng = np.random.default_rng(9)
    X = np.stack([rng.integers(0, 5, 200), rng.poisson(3.0, 200)], axis=1).astype(float)
    y = rng.integers(0, 2, 200)
    model = GenerativeClassifier(Keyed(Product({"calls": Poisson()}), 0)).fit(X, y)
    assert model.predict_proba(X).shape == (200, 2)
    assert model.n_features_in_ == 2
