"""Gradient descent on all rows and on drawn ones: against a naive loop, and against the theorem."""

import copy
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import naive
from conftest import many, nightly
from hindsight.batch.gradient_descent import Descent
from hindsight.certificates.families.descent import certify_descent
from hindsight.certificates.theorems import Verdict
from hindsight.errors import MismatchError
from hindsight.estimators.gradient_descent import GradientDescentClassifier, GradientDescentRegressor
from hindsight.kernels.descent import descend
from hindsight.online.learners import descent
from hindsight.online.parts import LOSSES
from hindsight.rows.data import Data

RULES = ("square", "absolute", "logistic", "hinge", "perceptron")
SPARSE = ("square", "hinge")  # the rules that are played on CSR rows too: each pair takes seconds to compile


# --- the slow version -------------------------------------------------------------------------------------------------


def naive_f(rule, rows, y, c, l2, w):
    total = math.fsum(c)
    return math.fsum(
        ci * naive.loss(rule, naive.dot(w, x), yi) for x, yi, ci in zip(rows, y, c, strict=True)
    ) / total + 0.5 * l2 * naive.square(w)


def naive_gradient(rule, rows, y, factors, l2, w):
    """Sigma factor slope x + l2 w."""
    pulls = [a * naive.slope(rule, naive.dot(w, x), float(yi)) for x, yi, a in zip(rows, y, factors, strict=True)]
    return [math.fsum(p * x[j] for p, x in zip(pulls, rows, strict=True)) + l2 * w[j] for j in range(len(w))]


def naive_sweep(rule, X, y, c, bias, l2, rates, start, draws=None):
    """The iterates w_s, ... and the vectors met, as defined; `draws` holds the rows of each round, or None."""
    rows, y, c = [naive.row(x, bias) for x in X], [float(v) for v in y], [float(v) for v in c]
    on = [i for i in range(len(y)) if c[i] > 0]
    w, iterates, met, paid = list(start), [list(start)], [], []
    for t, eta in enumerate(rates):
        if draws is None:
            index, factors = on, [c[i] / math.fsum(c) for i in on]
            paid.append(naive_f(rule, rows, y, c, l2, w))
        else:
            index = [on[k] for k in draws[t]]
            factors = [c[i] * len(on) / math.fsum(c) / len(index) for i in index]
            each = [a * naive.loss(rule, naive.dot(w, rows[i]), y[i]) for i, a in zip(index, factors, strict=True)]
            paid.append(math.fsum(each) + 0.5 * l2 * naive.square(w))
        v = naive_gradient(rule, [rows[i] for i in index], [y[i] for i in index], factors, l2, w)
        w = [wj - eta * vj for wj, vj in zip(w, v, strict=True)]
        iterates.append(list(w))
        met.append(v)
    return np.array(iterates), np.array(met), np.array(paid)


def naive_mean(iterates, rates):
    return np.average(iterates[:-1], axis=0, weights=rates)


def naive_bound(rule, rows, y, c, l2, met, rates, start, u):
    """The bound of gradient descent, in the form for changing rates."""
    distance = naive.square([a - b for a, b in zip(u, start, strict=True)])
    gradients = math.fsum(eta * eta * naive.square(v) for eta, v in zip(rates, met, strict=True))
    return naive_f(rule, rows, y, c, l2, u) + (distance + gradients) / (2.0 * math.fsum(rates))


# --- streams ----------------------------------------------------------------------------------------------------------


def targets(rule, z, rng):
    if rule in ("square", "absolute"):
        return z + rng.normal(size=z.size)
    if rule == "logistic":
        return rng.random(z.size) if rng.random() < 0.5 else (z + rng.normal(size=z.size) > 0).astype(float)
    return np.where(z + 0.3 * rng.normal(size=z.size) > 0, 1.0, -1.0)


def draw(seed):
    """A random problem: rows with holes, targets, weights with zeros, and the settings of a run."""
    rng = np.random.default_rng(seed)
    rule = RULES[seed % 5]
    m, n = int(rng.integers(1, 25)), int(rng.integers(1, 6))
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.8) * 10.0 ** rng.uniform(-1, 1)
    y = targets(rule, X @ rng.normal(size=n), rng)
    c = np.ones(m) if rng.random() < 0.5 else rng.choice([0.0, 0.5, 1.0, 3.0], m)
    c[int(rng.integers(m))] = 1.0
    bias = float(rng.random() < 0.5)
    l2 = 0.0 if rng.random() < 0.5 else float(10.0 ** rng.uniform(-3, 0))
    rounds = int(rng.integers(1, 30))
    size = float((X**2).sum(axis=1).max() + bias)
    eta = float(10.0 ** rng.uniform(-2, 0.5) / (2.0 * size + l2 if rule == "square" else math.sqrt(size + 1e-9)))
    power = float(rng.choice([0.0, 0.0, 0.5, 1.0]))
    rates = eta * rng.uniform(0.2, 2.0, rounds) if rng.random() < 0.2 else None
    start = rng.normal(size=n + int(bias)) if rng.random() < 0.3 else None
    return rng, rule, X, y, c, bias, l2, rounds, eta, power, rates, start


def played(problem, batch=None, sparse=False, best=True, seed=0):
    _, rule, X, y, c, bias, l2, rounds, eta, power, rates, start = problem
    learner = descent(rule, eta=eta, power=power)
    learner = learner if rates is None else learner.with_rates(rates)
    run = Descent(learner, X.shape[1], batch=batch, l2=l2, intercept=bool(bias), start=start, seed=seed, best=best)
    data = Data(sp.csr_matrix(X) if sparse else X, y, c, bias)
    run.play(data, rounds)
    return run, data


def rates_of(problem):
    rounds, eta, power, rates = problem[7:11]
    return rates if rates is not None else eta * np.arange(1.0, rounds + 1.0) ** -power


def start_of(problem):
    X, bias, start = problem[2], problem[5], problem[11]
    return np.zeros(X.shape[1] + int(bias)) if start is None else start


def near(a, b, size, tolerance=1e-10):
    assert np.abs(np.asarray(a) - np.asarray(b)).max() <= tolerance * max(size, 1e-300)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("batch", [None, 1, 4])
def test_sweeps_are_the_naive_loop(batch, sparse):
    for seed in range(many(20, 60)):
        problem = draw(seed)
        _, rule, X, y, c, bias, l2, rounds = problem[:8]
        if sparse and rule not in SPARSE:
            continue
        rates, start = rates_of(problem), start_of(problem)
        run, data = played(problem, batch, sparse, seed=seed)
        draws = None
        if batch is not None:
            draws = np.random.default_rng(seed).integers(0, np.count_nonzero(c), rounds * batch).reshape(rounds, batch)
        iterates, met, paid = naive_sweep(rule, X, y, c, bias, l2, rates, start, draws)
        size = np.abs(iterates).max()
        near(run.weights, iterates[-1], size)
        near(run.mean, naive_mean(iterates, rates), size)
        if run.learner.rate.is_constant():
            near(run.output("mean-after"), np.mean(iterates[1:], axis=0), size)
        else:
            with pytest.raises(ValueError, match="'mean-after' is for a constant rate"):
                run.output("mean-after")
        squares = (met**2).sum(axis=1)
        facts = run.facts
        assert facts.rounds == rounds
        assert facts.loss == pytest.approx(paid.sum(), rel=1e-9, abs=1e-12)
        assert facts.gradient == pytest.approx(squares.sum(), rel=1e-9, abs=1e-12)
        assert facts.rate == pytest.approx(rates.sum(), rel=1e-12)
        assert facts.rate_loss == pytest.approx((rates * paid).sum(), rel=1e-9, abs=1e-12)
        assert facts.rate_gradient == pytest.approx((rates**2 * squares).sum(), rel=1e-9, abs=1e-12)
        assert (facts.rate_max, facts.rate_min) == pytest.approx((rates.max(), rates.min()))
        assert facts.x2 == pytest.approx(np.sqrt((X[c > 0] ** 2).sum(axis=1).max() + bias))
        rows = [naive.row(x, bias) for x in X]
        values = [naive_f(rule, rows, y, c, l2, w) for w in iterates]
        if batch is None:
            near(run.values, values[:-1], max(map(abs, values)))
            tried = range(rounds + 1)
        else:
            each = -(-np.count_nonzero(c) // batch)
            tried = [t for t in range(rounds) if t % each == 0] + [rounds]
        best = run.objective(data, run.output("best"))
        assert best == pytest.approx(min(values[t] for t in tried), rel=1e-9, abs=1e-12)


def test_decay_is_lazy_and_exact_over_many_rounds():
    """Weights that decay by 0 (eta l2 = 1), by a sign (eta l2 > 1) and a thousandfold stay those of the plain loop."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 30)) * (rng.random((20, 30)) < 0.2)
    y, c = np.where(rng.random(20) < 0.5, 1.0, -1.0), np.ones(20)
    for eta, l2 in ((1.0, 1.0), (0.5, 3.0), (0.3, 1.0), (1.0, 1e-9)):
        run = Descent(descent("hinge", eta=eta), 30, batch=1, l2=l2, intercept=False)
        run.play(Data(sp.csr_matrix(X), y), 400)
        draws = np.random.default_rng(0).integers(0, 20, 400).reshape(-1, 1)
        iterates, met, _ = naive_sweep("hinge", X, y, c, 0.0, l2, [eta] * 400, np.zeros(30), draws)
        near(run.weights, iterates[-1], np.abs(iterates).max(), 1e-12)
        near(run.mean, iterates[:-1].mean(axis=0), np.abs(iterates).max(), 1e-12)
        assert run.facts.gradient == pytest.approx((met**2).sum(), rel=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_one_draw_points_along_the_gradient_on_average(rule):
    """E[v | w] = grad f(w): the mean over every row that could be drawn, with weights and l2."""
    rng = np.random.default_rng(1)
    X, c, w = rng.normal(size=(9, 3)), rng.choice([0.5, 1.0, 2.0], 9), rng.normal(size=3)
    y, eta, l2 = targets(rule, X @ w, rng), 0.25, 0.3
    steps = []
    for i in range(9):
        run = Descent(descent(rule, eta=eta), 3, batch=1, l2=l2, intercept=False, start=w)
        _, rows, _ = next(iter(Data(X, y, c).blocks()))
        pairs, step = np.stack((y, c * 9 / c.sum()), axis=1), run.learner.rate
        descend(rows, np.array([i]), pairs, 1, LOSSES[rule], step, l2, run.state, run.tally, np.empty(1))
        steps.append((w - run.weights) / eta)
    want = naive_gradient(rule, X.tolist(), y, c / c.sum(), l2, w.tolist())
    near(np.mean(steps, axis=0), want, np.abs(want).max(), 1e-12)


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["mean", "mean-after", "last", "best"])
@pytest.mark.parametrize("batch", ["full", 1, 3])
def test_a_warm_start_gives_the_bits_of_the_whole(batch, output):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = X @ [1.0, -1.0, 2.0, 0.0] + rng.normal(size=50)
    for more in ({}, {"power": 0.0 if output == "mean-after" else 0.5, "l2": 0.1}):
        settings = dict(eta=0.05, batch=batch, output=output, random_state=3, **more)
        whole = GradientDescentRegressor(rounds=150, **settings).fit(X, y)
        part = GradientDescentRegressor(rounds=70, warm_start=True, **settings).fit(X, y)
        part = copy.deepcopy(part.set_params(rounds=1).fit(X, y)).set_params(rounds=79).fit(X, y)
        assert part.rounds_ == whole.rounds_ == 150
        np.testing.assert_array_equal(part.coef_, whole.coef_)
        assert part.intercept_ == whole.intercept_
        assert part.facts_.gradient == whole.facts_.gradient
        assert part.facts_.rate_min == whole.facts_.rate_min
        again = GradientDescentRegressor(rounds=150, **settings).fit(X, y)
        np.testing.assert_array_equal(again.coef_, whole.coef_)


@pytest.mark.parametrize("batch", [None, 1, 4])
def test_weight_0_is_absent(batch):
    for seed in range(10):
        problem = draw(seed)
        X, y, c = problem[2:5]
        on = c > 0
        left = (*problem[:2], X[on], y[on], c[on], *problem[5:])
        a, b = played(problem, batch)[0], played(left, batch)[0]
        np.testing.assert_array_equal(a.weights, b.weights)
        np.testing.assert_array_equal(a.mean, b.mean)


def test_a_full_batch_reads_chunks_and_strides_to_the_same_bits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    want = GradientDescentRegressor(rounds=20).fit(X, y)
    np.testing.assert_array_equal(GradientDescentRegressor(rounds=20).fit(np.asfortranarray(X), y).coef_, want.coef_)
    certificate = want.certify(lambda: iter([(X[:7], y[:7], None), (X[7:], y[7:], None)]))
    assert certificate.verdict is Verdict.HOLDS
    assert certificate.measured == want.certify(X, y).measured
    fitted = GradientDescentRegressor(rounds=20).fit(X, y, certify=True).certificate_
    assert fitted.bound == want.certify(X, y).bound == pytest.approx(certificate.bound, rel=1e-12)
    drawn = GradientDescentRegressor(rounds=20, batch=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="rows drawn at random are looked up in memory"):
        drawn.certify(lambda: iter([(X[:7], y[:7], None), (X[7:], y[7:], None)]))


def test_one_vs_rest_is_one_descent_a_class():
    X, y = load_iris(return_X_y=True)
    model = GradientDescentClassifier(batch=2, rounds=300, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 4)
    for k in range(3):
        one = GradientDescentClassifier(batch=2, rounds=300, random_state=0).fit(X, y == k)
        np.testing.assert_array_equal(model.coef_[k], one.coef_[0])
    assert GradientDescentClassifier(eta=2.0, rounds=3000).fit(X / 8, y).score(X / 8, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert not hasattr(GradientDescentClassifier("hinge"), "predict_proba")
    certificates = GradientDescentClassifier("hinge").fit(X, y).certify(X, y)
    assert [c.label for c in certificates.each] == ["0", "1", "2"]
    assert certificates.verdict is Verdict.HOLDS


# --- the theorem ------------------------------------------------------------------------------------------------------


def check_mean_after(problem, run, data, given, draws=None):
    """The mean of w^1 .. w^T: the theorem for the descent from w^1 on, with the gradients at w^1 .. w^T."""
    _, rule, X, y, c, bias, l2, rounds, eta = problem[:9]
    longer = np.full(rounds + 1, eta)
    iterates, met, _ = naive_sweep(rule, X, y, c, bias, l2, longer, start_of(problem), draws)
    rows = [naive.row(x, bias) for x in X]
    measured = naive_f(rule, rows, y, c, l2, np.mean(iterates[1 : rounds + 1], axis=0))
    for u in (None, given):
        found = certify_descent(run, data, "mean-after", u=u)
        want = naive_bound(rule, rows, y, c, l2, met[1:], longer[1:], iterates[1], found.comparator.u)
        assert found.measured == pytest.approx(measured, rel=1e-8, abs=1e-12)
        assert found.bound == pytest.approx(want, rel=1e-8, abs=1e-12)
        assert found.rounds == rounds
        if draws is None:
            assert found.verdict is Verdict.HOLDS and found.path[-1].rounds == rounds
            assert "where the first step led" in str(found)
        else:
            assert found.verdict is Verdict.UNCHECKABLE


def test_the_mean_after_the_steps_of_drawn_rows_has_the_next_draw_in_its_bound():
    for seed in range(12):
        problem = draw(seed)
        if problem[9] == 0.0 and problem[10] is None:
            c, rounds = problem[4], problem[7]
            run, data = played(problem, 4, seed=seed)
            drawn = np.random.default_rng(seed).integers(0, np.count_nonzero(c), (rounds + 1, 4))
            check_mean_after(problem, run, data, start_of(problem), drawn)


def test_no_stream_breaks_the_theorem():
    """Hundreds of problems: the naive bound is never broken for any u, and the certificate says what it says."""
    for seed in range(many(30, 300)):
        problem = draw(seed)
        rng, rule, X, y, c, bias, l2 = problem[:7]
        rates, start = rates_of(problem), start_of(problem)
        run, data = played(problem, sparse=rule in SPARSE and bool(seed % 2))
        iterates, met, _ = naive_sweep(rule, X, y, c, bias, l2, rates, start)
        rows = [naive.row(x, bias) for x in X]
        scale = float(c @ y**2 / c.sum())
        f = {"mean": naive_f(rule, rows, y, c, l2, naive_mean(iterates, rates))}
        f["best"] = min(naive_f(rule, rows, y, c, l2, w) for w in iterates)
        far = np.abs(iterates).max() + 1.0
        tries = [start, iterates[-1], naive_mean(iterates, rates), *(far * rng.normal(size=(3, start.size)))]
        for output, measured in f.items():
            given = tries[int(rng.integers(len(tries)))]
            for u in (None, given):
                certificate = certify_descent(run, data, output, u=u)
                want = naive_bound(rule, rows, y, c, l2, met, rates, start, certificate.comparator.u)
                assert certificate.verdict is Verdict.HOLDS, (seed, output)
                assert certificate.measured == pytest.approx(measured, rel=1e-8, abs=1e-12)
                assert certificate.bound == pytest.approx(want, rel=1e-8, abs=1e-12)
                assert measured <= want + 1e-9 * (want + scale)
                assert certificate.path[-1].rounds == run.rounds
            best = certify_descent(run, data, output, tol=1e-3)
            for u in tries:  # the rival is the one that makes the bound smallest
                bound = naive_bound(rule, rows, y, c, l2, met, rates, start, u)
                assert best.bound - best.comparator.gap <= bound + 1e-9 * (bound + scale)
        if run.learner.rate.is_constant():
            check_mean_after(problem, run, data, tries[int(rng.integers(len(tries)))])
        last = certify_descent(run, data, "last")
        assert last.verdict is Verdict.UNCHECKABLE
        assert math.isnan(last.bound)
        assert "no theorem" in str(last)


@pytest.mark.parametrize("rounds", [1, 2, 7])
@pytest.mark.parametrize("power", [0.0, 0.5])
def test_the_bound_is_met_where_f_is_linear(rounds, power):
    """Far from its targets the absolute loss is linear, and u = w_s - Sigma eta grad meets the bound: a wrong constant
    or index would show on one side or the other."""
    X, y = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([1e3, 1e3])
    for output in ("mean", "mean-after") if power == 0.0 else ("mean",):
        model = GradientDescentRegressor("absolute", eta=0.5, rounds=rounds, power=power, output=output).fit(X, y)
        certificate = model.certify(X, y, tol=1e-9)
        assert certificate.verdict is Verdict.HOLDS
        above = certificate.measured - certificate.comparator.loss
        assert above / (certificate.bound - certificate.comparator.loss) == pytest.approx(1.0, abs=1e-6)
        assert certificate.measured / certificate.bound > 0.9


@nightly
def test_the_mean_over_seeds_lies_inside_the_expectation_bound():
    """E f(w_mean) <= E bound, tested over 400 seeds with a margin of four standard errors: a false alarm is under
    1e-4 where equality held, and the mean seen must lie above f(u), so that the bound is not empty."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    c = rng.choice([0.5, 1.0, 2.0], 30)
    for rule, eta, l2, batch in (("absolute", 0.3, 0.0, 1), ("hinge", 0.3, 0.1, 1), ("square", 0.02, 0.0, 3)):
        y = targets(rule, X @ [1.0, -2.0, 0.5], rng)
        gaps, measured, rival = [], [], None
        for seed in range(400):
            run = Descent(descent(rule, eta=eta), 3, batch=batch, l2=l2, intercept=False, seed=seed)
            data = Data(X, y, c)
            run.play(data, 40)
            certificate = certify_descent(run, data, "mean", u=rival)
            rival = certificate.comparator.u
            assert certificate.verdict is Verdict.UNCHECKABLE
            assert f"{certificate.bound:.6g}" in str(certificate)
            gaps.append(certificate.measured - certificate.bound)
            measured.append(certificate.measured)
        assert np.mean(gaps) + 4.0 * np.std(gaps) / 20.0 < 0.0
        assert np.std(measured) > 0.0
        assert np.mean(measured) > certificate.comparator.loss


@pytest.mark.parametrize("loss", ["absolute", "logistic", "hinge", "perceptron"])
def test_the_rate_of_theory_keeps_its_promise(loss):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 3))
    y = targets(loss, X @ [2.0, 1.0, -1.0], rng)
    make = GradientDescentRegressor if loss == "absolute" else GradientDescentClassifier
    label = y if loss == "absolute" else y > 0.5
    B, T = 3.0, 64
    model = make(loss, eta="theory", B=B, rounds=T).fit(X, label)
    x2 = np.sqrt((X**2).sum(axis=1).max() + 1.0)
    assert model.eta_ == pytest.approx(B / (x2 * math.sqrt(T)), rel=1e-12)
    certificate = model.certify(X, label)
    assert certificate.verdict is Verdict.HOLDS
    assert f"= {B * x2 / math.sqrt(T):.6g} for all" in str(certificate)
    run = model.runs_[0]
    data = Data(X, model._seen(X, label)[0], None, 1.0)
    for _ in range(200):
        u = rng.normal(size=4)
        u *= B / np.linalg.norm(u)
        assert certificate.measured - run.objective(data, u) <= B * x2 / math.sqrt(T) + 1e-12
    # with weights the drawn rows' Lipschitz constant counts them
    c = np.full(80, 1.0)
    c[0] = 5.0
    drawn = make(loss, eta="theory", B=B, rounds=T, batch=1, random_state=0).fit(X, label, c)
    norms = np.sqrt((X**2).sum(axis=1) + 1.0)
    assert "as planned, in expectation: f − f(u) ≤" in str(drawn.certify(X, label, c))
    assert drawn.rho_ == pytest.approx((c * norms).max() * 80 / c.sum())


def test_a_certificate_over_other_rows_is_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    model = GradientDescentRegressor().fit(X, y)
    for other in (X + 1e-3, X[:, ::-1], X[:29]):
        with pytest.raises(MismatchError):
            model.certify(other, y[: len(other)])
    with pytest.raises(MismatchError, match="not trained on these rows"):
        model.certify(X, y, np.arange(30.0))
    assert model.certify(X[::-1], y[::-1]).verdict is Verdict.HOLDS  # f does not know the order
    drawn = GradientDescentRegressor(batch=1, random_state=0).fit(X, y)
    with pytest.raises(MismatchError, match="not trained on these rows"):
        drawn.certify(X[::-1], y[::-1])
    with pytest.raises(MismatchError, match="these are not the rows of the run"):  # on which it would have diverged
        model.certify(1e5 * X, y)
    for part in (slice(0, 15), slice(15, 30)):
        model.set_params(warm_start=True).fit(X[part], y[part])
    with pytest.raises(MismatchError):
        model.certify(X, y)


# --- rules, bars and bad input ----------------------------------------------------------------------------------------


def test_early_stop_is_by_the_gradient_alone_and_off_by_default():
    X, y = np.array([[1.0], [2.0]]), np.array([1.0, 2.0])
    assert GradientDescentRegressor(eta=0.1, rounds=2000, fit_intercept=False).fit(X, y).rounds_ == 2000
    model = GradientDescentRegressor(eta=0.1, rounds=2000, fit_intercept=False, tol=1e-6).fit(X, y)
    assert model.rounds_ < 200
    # f(w) = 5/2 (w - 1)^2: each round halves the distance to 1, and the gradient 5 (w - 1) is known before the step
    before, after = (5.0 * abs(2.0**-t) for t in (model.rounds_ - 2, model.rounds_ - 1))
    assert after <= 1e-6 < before
    assert model.certify(X, y).verdict is Verdict.HOLDS


def test_outputs_may_be_changed_after_the_fit_if_they_were_kept():
    X, y = np.eye(3), np.arange(3.0)
    model = GradientDescentRegressor(rounds=5).fit(X, y)
    last = GradientDescentRegressor(rounds=5, output="last").fit(X, y)
    np.testing.assert_array_equal(model.set_params(output="last").coef_, last.coef_)
    with pytest.raises(ValueError, match="output 'best' was not kept: fit with it"):
        model.set_params(output="best").predict(X)


def test_a_bar_only_when_asked(capsys):
    X, y = np.eye(3), np.arange(3.0)
    GradientDescentRegressor(rounds=5).fit(X, y)
    assert capsys.readouterr() == ("", "")
    GradientDescentRegressor(rounds=5, verbose=True).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "rounds" in err
    assert "5/5" in err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number, at least 1; got 0"),
        ({"rounds": 2.5}, "rounds must be a whole number, at least 1; got 2.5"),
        ({"batch": 0}, "batch must be 'full' or a whole number, at least 1; got 0"),
        ({"batch": "half"}, "batch must be 'full' or a whole number, at least 1; got 'half'"),
        ({"output": "median"}, "output must be one of 'mean', 'mean-after', 'last', 'best'; got 'median'"),
        ({"output": "mean-after", "power": 0.5}, "output='mean-after' is for a constant rate"),
        ({"output": "mean-after", "rates": [0.1] * 100}, "output='mean-after' is for a constant rate"),
        ({"l2": -1.0}, "l2 must be at least 0, got -1.0"),
        ({"eta": 0.0}, "eta must be a number above 0, got 0.0"),
        ({"eta": "fast"}, "eta must be a number above 0 or 'theory', got 'fast'"),
        ({"eta": "theory", "B": 1.0}, "eta='theory' needs a loss that is Lipschitz, which 'square' is not"),
        ({"loss": "absolute", "eta": "theory"}, "eta='theory' needs B"),
        ({"loss": "absolute", "eta": "theory", "B": 0.0}, "B must be a number above 0, got 0.0"),
        ({"loss": "absolute", "eta": "theory", "B": -2}, "B must be a number above 0, got -2"),
        ({"loss": "absolute", "eta": "theory", "B": 1.0, "l2": 0.1}, "eta='theory' is for l2 = 0"),
        ({"loss": "absolute", "eta": "theory", "B": 1.0, "power": 0.5}, "eta='theory' is a constant rate"),
        ({"B": 1.0}, "B is for eta='theory', but eta=0.1"),
        ({"loss": "hinge"}, "loss 'hinge' is for labels: use GradientDescentClassifier"),
        ({"loss": "cubic"}, "loss must be one of"),
        ({"tol": -1.0}, "tol must be a number above 0, got -1.0"),
        ({"tol": 0.1, "batch": 1}, "tol stops at a small gradient of f, which drawn rows do not show"),
        ({"rates": [0.1, 0.2]}, "2 rates were given, but there are more rounds than that"),
        ({"start": [1.0]}, r"start must have 3 numbers \(the intercept's last\)"),
        ({"random_state": -1}, "random_state must be at least 0, got -1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        GradientDescentRegressor(**settings).fit([[0.1, 0.2], [0.3, 0.1]], [0.1, 0.2])


@pytest.mark.parametrize("batch", ["full", 1])
def test_bad_rows_are_named_and_leave_the_model_as_it_was(batch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    model = GradientDescentRegressor(batch=batch, random_state=0, warm_start=True, rounds=7).fit(X, y)
    before, facts = model.coef_, model.facts_
    for value, text in ((np.nan, "NaN"), (np.inf, "inf")):
        bad = X.copy()
        bad[5, 1] = value
        for rows in (bad, sp.csr_matrix(bad)):
            with pytest.raises(ValueError, match=f"row 5, column 1: value {text} is not finite"):
                model.fit(rows, y)
    with pytest.raises(ValueError, match=r"row 2: target nan must be finite"):
        model.fit(X, np.where(np.arange(8) == 2, np.nan, y))
    with pytest.raises(ValueError, match=r"row 1: weight -1.0"):
        model.fit(X, y, np.where(np.arange(8) == 1, -1.0, 1.0))
    with pytest.raises(ValueError, match="all weights are zero"):
        model.fit(X, y, np.zeros(8))
    with pytest.raises(ValueError, match="warm_start goes on with the same descent"):
        model.set_params(eta=0.2).fit(X, y)
    model.set_params(eta=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="take a smaller eta, or scale the features"):
            model.set_params(rounds=2000).fit(1e3 * X, y)
    np.testing.assert_array_equal(model.coef_, before)
    assert model.facts_ == facts
    wild = sp.csr_matrix(X)
    wild.indices[3] = 7
    with pytest.raises(ValueError, match=r"row 1: column index 7 lies outside 0..1"):
        model.fit(wild, y)
    whole = GradientDescentRegressor(batch=batch, random_state=0, rounds=17).fit(X, y)
    np.testing.assert_array_equal(model.set_params(rounds=10).fit(X, y).coef_, whole.coef_)


def test_labels_of_one_class_and_new_classes_are_refused():
    with pytest.raises(ValueError, match="there must be at least two classes, got one class: 3"):
        GradientDescentClassifier().fit([[1.0], [2.0]], [3, 3])
    model = GradientDescentClassifier(warm_start=True).fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(ValueError, match=r"row 1: class 2 was not declared \(classes=\[0, 1\]\)"):
        model.fit([[1.0], [2.0]], [0, 2])
    with pytest.raises(ValueError, match="a row that is not zero"):
        GradientDescentClassifier("hinge", eta="theory", B=1.0, fit_intercept=False).fit([[0.0], [0.0]], [0, 1])


@pytest.mark.parametrize("batch", ["full", 1])
def test_odd_shapes_are_played_without_a_nan(batch):
    rng = np.random.default_rng(0)
    shapes = {
        "more unknowns than rows": (rng.normal(size=(3, 9)), rng.normal(size=3)),
        "zero columns": (np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([1.0, 2.0])),
        "constant targets": (rng.normal(size=(5, 2)), np.full(5, 4.0)),
        "one row": (np.array([[1.0, 2.0]]), np.array([1.0])),
    }
    for X, y in shapes.values():
        model = GradientDescentRegressor(eta=0.01, batch=batch, random_state=0).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert model.certify(X, y).verdict is (Verdict.HOLDS if batch == "full" else Verdict.UNCHECKABLE)
    assert GradientDescentRegressor(batch=batch).fit(*shapes["zero columns"]).coef_[0] == 0.0
