"""Online to batch: the risk certificate against a plain loop, its verdicts, and how often its figure fails."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import hindsight as h
from hindsight.certificates.risk import RiskCertificate, risk_certificate
from hindsight.certificates.theorems import online_to_batch
from hindsight.errors import MismatchError
from hindsight.online.learners import widrow_hoff
from hindsight.online.run import Run, play

pytestmark = pytest.mark.filterwarnings("ignore::hindsight.AssumptionWarning")
VOID, UNCHECKABLE = h.Verdict.VOID, h.Verdict.UNCHECKABLE


def naive(X, y, eta, update):
    """Widrow-Hoff as its rule says: v = mean of w_1..w_m, the losses paid, in plain Python."""
    w, total, losses = np.zeros(X.shape[1]), np.zeros(X.shape[1]), []
    for x, target in zip(X, y, strict=True):
        total += w
        error = float(sum(a * b for a, b in zip(w, x, strict=True))) - target
        losses.append(error**2)
        shrink = 1.0 if update == "explicit" else 1.0 + eta * float(x @ x)
        w = w - eta * error / shrink * x
    return total / len(y), losses


def rows(seed, m=80, n=4):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(m, n))
    return X, X @ rng.normal(size=n) + 0.2 * rng.uniform(-1, 1, m)


@pytest.mark.parametrize("update", ["explicit", "implicit"])
@pytest.mark.parametrize("average", [None, "before", "after"])
@pytest.mark.parametrize("intercept", [False, True])
def test_figures_are_those_of_a_plain_loop(update, average, intercept):
    for seed in range(5):
        X, y = rows(seed)
        eta, c, delta, X2 = 0.3, 9.0, 0.1, 1.6
        model = h.WidrowHoffRegressor(eta, update, average=average, fit_intercept=intercept).fit(X, y)
        found = risk_certificate(model, X, y, bound=c, delta=delta, support=X2)
        full = np.hstack((X, np.ones((len(X), 1)))) if intercept else X
        v, losses = naive(full, y, eta, update)
        m = len(y)
        np.testing.assert_allclose(found.predictor, v, rtol=1e-10, atol=1e-12)
        assert found.measured == pytest.approx(sum(losses) / m, rel=1e-12)
        assert found.bound == pytest.approx(sum(losses) / m + c * math.sqrt(math.log(1 / delta) / (2 * m)), rel=1e-12)
        assert found.verdict is UNCHECKABLE
        # min_u L_u/(1 - eta X^2) + |u|^2/eta is ridge regression; implicit: (1 + eta X^2)(L_u + |u|^2/eta)
        a, grow = (1 / (1 - eta * X2**2), 1.0) if update == "explicit" else (1.0, 1 + eta * X2**2)
        u = np.linalg.solve(a * full.T @ full + np.eye(full.shape[1]) / eta, a * full.T @ y)
        want = grow * (a * ((full @ u - y) ** 2).sum() + u @ u / eta) / m
        assert found.expectation == pytest.approx(want, rel=1e-6)
        assert found.expectation >= found.measured
        assert found.to_dict()["predictor"] == pytest.approx(list(v))


def test_the_predictor_is_the_models_own_where_it_averages():
    X, y = rows(1)
    before = h.WidrowHoffRegressor(average="before").fit(X, y)
    found = risk_certificate(before, X, y, bound=9.0)
    np.testing.assert_array_equal(found.predictor, [*before.coef_, before.intercept_])
    assert "predicts with" in found.notes[1] and "not those" not in found.notes[1]
    last = risk_certificate(h.WidrowHoffRegressor().fit(X, y), X, y, bound=9.0)
    np.testing.assert_array_equal(last.predictor, found.predictor)
    assert "not those" in last.notes[1]


@pytest.mark.parametrize(
    "model",
    [
        h.EGRegressor(0.2, radius=3.0),
        h.EGRegressor(0.2, radius=None, fit_intercept=False),
        h.DescentRegressor("absolute", eta=0.1),
        h.DescentRegressor("square", "balanced", eta=0.05, radius=2.0),
        h.DescentRegressor("absolute", "simplex", eta=0.1, update="implicit"),
        h.WidrowHoffRegressor(0.3, power=0.5),
        h.GLMtronRegressor("identity", eta=0.1),
    ],
    ids=repr,
)
def test_the_loss_of_v_is_below_the_mean_loss_of_the_iterates(model):
    """Jensen, on rows never seen: it needs the loss to be convex and v to be the mean of the w_t that predicted."""
    X, y = rows(3)
    fresh, targets = rows(4, m=10)
    found = risk_certificate(model.fit(X, y), X, y, bound=100.0)
    assert isinstance(found, RiskCertificate)

    def loss(z, target):
        if getattr(model, "loss", "") == "absolute":
            return np.abs(z - target)
        return (z - target) ** 2 * (0.5 if isinstance(model, h.GLMtronRegressor) else 1.0)

    def full(X):
        return np.hstack((X, np.ones((len(X), 1)))) if model.fit_intercept else X

    run = Run(model._learner(), X.shape[1], intercept=model.fit_intercept)
    total, paid = np.zeros(len(fresh)), 0.0
    for t in range(len(y)):
        total += loss(full(fresh) @ run.weights, targets)
        paid += float(loss(full(X[t : t + 1]) @ run.weights, y[t])[0])
        play([run], X[t : t + 1], [y[t : t + 1]])
    assert (loss(full(fresh) @ found.predictor, targets) <= total / len(y) + 1e-12).all()
    assert found.measured == pytest.approx(paid / len(y), rel=1e-9)


def test_void_where_the_rows_speak_against_it():
    X, y = rows(2)
    once = h.WidrowHoffRegressor().fit(X, y)
    worst = max(naive(np.hstack((X, np.ones((len(X), 1)))), y, 0.1, "implicit")[1])
    assert risk_certificate(once, X, y, bound=worst * 1.001).verdict is UNCHECKABLE
    over = risk_certificate(once, X, y, bound=worst * 0.999)
    assert over.verdict is VOID and math.isnan(over.bound) and math.isnan(over.expectation)
    assert f"{worst:.6g}" in str(over)
    twice = risk_certificate(h.WidrowHoffRegressor(passes=2).fit(X, y), X, y, bound=9.0)
    assert twice.verdict is VOID and "160 rounds over 80 rows" in str(twice)
    weight = np.ones(len(y))
    assert risk_certificate(once, X, y, weight, bound=9.0).verdict is UNCHECKABLE
    weight[3] = 2.0
    heavy = h.WidrowHoffRegressor().fit(X, y, weight)
    assert risk_certificate(heavy, X, y, weight, bound=9.0).verdict is VOID
    weight[3] = 0.0
    light = h.WidrowHoffRegressor().fit(X, y, weight)
    assert risk_certificate(light, X, y, weight, bound=9.0).verdict is VOID
    assert risk_certificate(once, X, y, bound=9.0, support=1.0).verdict is VOID  # with the intercept |x| > 1
    assert risk_certificate(once, X, y, bound=9.0, target=0.01).verdict is VOID


def test_other_rows_are_refused():
    X, y = rows(2)
    model = h.WidrowHoffRegressor().fit(X, y)
    with pytest.raises(MismatchError):
        risk_certificate(model, X[::-1], y[::-1], bound=9.0)
    with pytest.raises(MismatchError):
        risk_certificate(model, X[:-1], y[:-1], bound=9.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bound": 0.0}, "bound must be a number above 0, got 0.0"),
        ({"bound": -1.0}, "bound must be a number above 0, got -1.0"),
        ({"bound": math.nan}, "bound must be a number above 0, got nan"),
        ({"bound": math.inf}, "bound must be a number above 0, got inf"),
        ({"bound": True}, "bound must be"),
        ({"bound": "1"}, "bound must be"),
        ({"bound": 1.0, "delta": 0.0}, "delta must lie above 0 and below 1, got 0.0"),
        ({"bound": 1.0, "delta": 1.0}, "delta must lie above 0 and below 1, got 1.0"),
        ({"bound": 1.0, "delta": -0.1}, "delta must lie above 0 and below 1"),
        ({"bound": 1.0, "delta": math.nan}, "delta must be a number"),
        ({"bound": 1.0, "support": 0.0}, "support must be a number above 0"),
        ({}, "declare bound"),
    ],
)
def test_bad_declarations(options, words):
    X, y = rows(0)
    model = h.WidrowHoffRegressor().fit(X, y)
    with pytest.raises(ValueError, match=words):
        risk_certificate(model, X, y, **options)


def test_learners_without_a_convex_loss_are_refused():
    X, y = rows(0)
    with pytest.raises(ValueError, match="perceptron counts mistakes"):
        risk_certificate(h.PerceptronClassifier().fit(X, y > 0), X, y > 0, bound=1.0)
    with pytest.raises(ValueError, match="online learners that were trained"):
        risk_certificate(h.WidrowHoffRegressor(), X, y, bound=1.0)
    for model in (h.AutoRegressor(), h.RidgeRegressor(), h.DescentRegressor(geometry="scale-free")):
        with pytest.raises(ValueError, match="depend on the row that is predicted: take a learner such as Descent"):
            risk_certificate(model.fit(X, y), X, y, bound=1.0)


@pytest.mark.parametrize("loss", ["square", "absolute", "logistic", "hinge"])
def test_a_bound_that_follows_from_declarations_is_never_exceeded(loss):
    rng = np.random.default_rng(5)
    for seed in range(10):
        X = rng.choice([-1.0, 0.3, 1.0], size=(40, 3))
        if loss in ("square", "absolute"):
            y = rng.choice([-2.0, 2.0], 40)
            model = h.DescentRegressor(loss, "balanced", eta=1.5, radius=2.0).fit(X, y)
        else:
            y = rng.integers(0, 2, 40)
            model = h.DescentClassifier(loss, "balanced", eta=1.5, radius=2.0).fit(X, y)
        found = risk_certificate(model, X, y, support=1.0, target=2.0 if loss in ("square", "absolute") else None)
        want = {"square": 16.0, "absolute": 4.0, "logistic": math.log1p(math.exp(2.0)), "hinge": 3.0}[loss]
        assert found.verdict is UNCHECKABLE, seed
        assert found.bound - found.measured == pytest.approx(want * math.sqrt(math.log(20) / 80), rel=1e-9)
    with pytest.raises(ValueError, match="support and target"):
        risk_certificate(h.EGRegressor().fit(X, y), X, y, support=1.0)


def test_one_vs_rest_shares_delta():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = (X / np.abs(X).max())[order], y[order]
    model = h.DescentClassifier("logistic", eta=0.5).fit(X, y)
    found = risk_certificate(model, X, y, bound=5.0, delta=0.06)
    assert [c.label for c in found.each] == ["0", "1", "2"]
    assert all(c.delta == pytest.approx(0.02) for c in found.each)
    assert found.verdict is UNCHECKABLE


# --- how often the figure fails ---------------------------------------------------------------------------------------

DRAWS, M, DELTA = 2000, 200, 0.05
ERROR = 1e-6  # the probability that a test here fails although the theorem holds: a binomial tail


def misses(columns, eta=0.5):
    """Draws of one-hot rows and fair labels in {0, 1}: (R_v > figure, R_v > figure with c/2, R_v, estimate) of each.

    eta |x|^2 <= 1 keeps every weight in [0, 1], so c = 1 holds by design; R_v is known exactly. With many columns the
    losses are nearly fair coins, the widest spread that [0, c] allows, which makes this the hardest case.
    """
    rng = np.random.default_rng(11)
    learner = widrow_hoff(eta, "explicit")
    over, half, risks, means = [], [], [], []
    for _ in range(DRAWS):
        at, y = rng.integers(0, columns, M), rng.integers(0, 2, M).astype(float)
        X = sp.csr_matrix((np.ones(M), at, np.arange(M + 1)), shape=(M, columns))
        run = Run(learner, columns, intercept=False, average=True)
        play([run], X, [y])
        v, mean = run.mean("before"), run.facts.square / M
        risk = 0.5 * float((v**2 + (1 - v) ** 2).mean())
        over.append(risk > online_to_batch(mean, M, 1.0, DELTA))
        half.append(risk > online_to_batch(mean, M, 0.5, DELTA))
        risks.append(risk)
        means.append(mean)
    return np.array(over), np.array(half), np.array(risks), np.array(means)


@pytest.mark.parametrize("columns", [20, 5000])
def test_the_figure_fails_no_more_often_than_delta(columns):
    over, half, risks, means = misses(columns)
    limit = binom.ppf(1 - ERROR, DRAWS, DELTA)
    assert over.sum() <= limit
    if columns == 5000:  # the test can tell: with half the c it would not pass
        assert half.sum() > limit
    # E[R_v] <= E[L_A]/m, within six standard errors of the mean of their difference
    gap = means - risks
    assert gap.mean() >= -6 * gap.std() / math.sqrt(DRAWS)


def test_the_certificate_gives_that_very_figure_and_the_bound_in_expectation():
    """E[R_v] <= E[estimate] <= min_u R_u/(1 - eta X^2) + |u|^2/(eta m), the last two within six standard errors."""
    rng = np.random.default_rng(12)
    eta, m, n, draws = 0.25, 60, 3, 120
    atoms = rng.choice([-0.5, 0.5], size=(12, n))
    targets = atoms @ [0.6, -0.3, 0.2] + rng.choice([-0.1, 0.1], 12)
    x2 = n * 0.25
    risks, estimates = [], []
    for _ in range(draws):
        pick = rng.integers(0, 12, m)
        X, y = atoms[pick], targets[pick]
        model = h.WidrowHoffRegressor(eta, "explicit", average="before", fit_intercept=False).fit(X, y)
        found = risk_certificate(model, X, y, bound=4.0, delta=DELTA, support=math.sqrt(x2))
        assert found.bound == online_to_batch(found.measured, m, 4.0, DELTA)
        assert found.measured == pytest.approx(model.facts_.square / m, rel=1e-12)
        risks.append(float(((atoms @ model.coef_ - targets) ** 2).mean()))
        estimates.append(found.expectation)
    a = 1 / (1 - eta * x2)
    u = np.linalg.solve(a * atoms.T @ atoms / 12 + np.eye(n) / (eta * m), a * atoms.T @ targets / 12)
    best = a * float(((atoms @ u - targets) ** 2).mean()) + float(u @ u) / (eta * m)
    error = 6 * np.std(estimates) / math.sqrt(draws)
    assert np.mean(risks) <= np.mean(estimates) + error
    assert np.mean(estimates) <= best + error


def test_it_covers_a_held_out_loss_on_real_data():
    X, y = load_diabetes(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1).max()
    y = (y - 25) / (346 - 25)  # the disease score runs from 25 to 346: y in [0, 1]
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:300], order[300:]
        model = h.WidrowHoffRegressor(0.3, average="before").fit(X[train], y[train])
        found = risk_certificate(model, X[train], y[train], bound=1.0)
        assert found.verdict is UNCHECKABLE
        assert ((model.predict(X[test]) - y[test]) ** 2).mean() <= found.bound
    X, y = load_breast_cancer(return_X_y=True)
    X = X / np.abs(X).max(axis=0)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:400], order[400:]
    model = h.DescentClassifier("hinge", "balanced", eta=0.3, radius=5.0, average="before").fit(X[train], y[train])
    found = risk_certificate(model, X[train], y[train], support=1.0)
    margins = np.where(y[test] == 1, 1, -1) * model.decision_function(X[test])
    assert np.maximum(0, 1 - margins).mean() <= found.bound
