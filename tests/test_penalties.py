"""Penalties: proximal steps against a naive loop, lazily shrunk weights, what is reported, and the certificate."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import hindsight as h
from commands import run
from conftest import close, feed, many, nightly, same, same_state
from hindsight.certificates.certify import certify_run
from hindsight.certificates.theorems import Verdict
from hindsight.kernels.euclidean import Euclidean
from hindsight.online import learners
from hindsight.online.learners import Learner, constant
from hindsight.online.parts import LOSSES, UPDATES
from hindsight.online.run import Run
from hindsight.rows.data import Data

CASES = [("square", "explicit"), ("square", "implicit"), ("logistic", "explicit"), ("logistic", "implicit"),
         ("hinge", "implicit"), ("poisson", "implicit")]  # fmt: skip
cases = pytest.mark.parametrize(("name", "update"), CASES)
CHOSEN = ["square-explicit", "logistic-implicit"]  # whose loops `make test` compiles


def rows(name: str, m: int = 60, n: int = 8, density: float = 0.3, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < density)
    z = X @ rng.normal(size=n) + 0.1 * rng.normal(size=m)
    y = {"logistic": (z > 0) * 1.0, "hinge": np.where(z > 0, 1.0, -1.0)}.get(name, z)
    return X, rng.poisson(np.exp(np.clip(z, -3, 2))) * 1.0 if name == "poisson" else y


def naive_steps(loss, update, X, y, c, rates, l1, l2, start=None):
    """(margins, all weights) of a loop that shrinks every weight in every round; the intercept last, unpenalised."""
    rows_, on = np.c_[X, np.ones(len(X))], np.r_[np.ones(X.shape[1]), 0.0]
    w = np.zeros(rows_.shape[1]) if start is None else start.copy()
    rates, margins, path = iter(rates), [], [w]
    for x, target, weight in zip(rows_, y, c, strict=True):
        margins.append(x @ w)
        if weight == 0.0:
            continue
        eta = next(rates)

        def shrunk(s, w=w, x=x, a=eta * weight, eta=eta):
            v = w - a * s * x
            return np.sign(v) * np.maximum(np.abs(v) - eta * l1 * on, 0.0) / (1.0 + eta * l2 * on)

        s = loss.slope(x @ w, target)
        if update == "implicit":
            low, high = -1e4, 1e4
            for _ in range(120):
                s = 0.5 * (low + high)
                if s < loss.slope(x @ shrunk(s), target):
                    low = s
                else:
                    high = s
        w = shrunk(s)
        path.append(w)
    return np.array(margins), np.array(path)


def penalty(w, l1, l2):
    return l1 * np.abs(w[..., :-1]).sum(-1) + 0.5 * l2 * (w[..., :-1] ** 2).sum(-1)


# ---------------------------------------------------------------- steps


@nightly(but=CHOSEN)
@cases
def test_equals_the_naive_loop_in_every_storage(name, update):
    rng = np.random.default_rng(1)
    for l1, l2, power in ((0.1, 0.0, 0.0), (0.0, 0.5, 0.5), (0.05, 0.2, 0.5), (0.3, 0.01, 0.0)):
        X, y = rows(name, seed=int(100 * l1 + 1))
        c, start = rng.choice([0.0, 0.5, 1.0, 2.0], len(y)), 0.3 * rng.normal(size=9)
        rates = 0.1 * np.arange(1.0, len(y) + 1.0) ** -power
        learner = learners.descent(name, eta=0.1, update=update, power=power, l1=l1, l2=l2)
        margins, path = naive_steps(learner.loss, update, X, y, c, rates, l1, l2, start)
        for stored in (X,) if name != "square" and many(True, False) else (X, sp.csr_matrix(X)):
            run = Run(learner, 8, start=start)
            close(feed(run, stored, y, c), margins, scale=10.0)
            close(run.weights, path[-1], scale=1.0)
            assert np.count_nonzero(run.weights) == np.count_nonzero(path[-1])


@nightly(but=CHOSEN)
@cases
def test_a_step_is_the_minimum_of_loss_and_penalty(name, update):
    """A thousand random steps: the subgradients of the objective at the new weights contain 0."""
    rng = np.random.default_rng(2)
    learner = Run(learners.descent(name, update=update, l1=0.1), 1).learner
    for k in range(1000):
        n, l1, l2, eta = int(rng.integers(1, 6)), rng.exponential(0.3), rng.exponential(0.3), rng.exponential(1.0)
        X, y = rows(name, 1, n, 0.8, seed=k)
        c, start, scale = float(rng.exponential()) + 1e-3, rng.normal(size=n + 1), 10.0 ** rng.uniform(-1, 1)
        x = np.r_[scale * X[0], 1.0]
        learner = learners.descent(name, eta=eta, update=update, l1=l1, l2=l2)
        run = Run(learner, n, start=start)
        feed(run, x[None, :-1].copy(), y, np.array([c]))
        w, loss = run.weights, learner.loss
        at = (x @ start) if update == "explicit" else x @ w
        near = 1e-11 * (1.0 + np.abs(x) @ (np.abs(w) + np.abs(start)))
        low, high = ((c * loss.slope(at + d, y[0]) for d in (-near, near)) if update == "implicit"
                     else [c * loss.slope(at, y[0])] * 2)  # fmt: skip
        rest = (start - w) / eta - l2 * np.r_[w[:-1], 0.0]  # = s x + l1 sign(w)
        # the coordinates that are not 0, and the intercept, tell s; it is a slope; and the others are within l1
        s = rest[-1]
        size = 1e-8 * (1.0 + abs(s) + np.abs(rest).max())
        assert low - size <= s <= high + size
        over = rest[:-1] - s * x[:-1]
        moved = w[:-1] != 0.0
        assert (np.abs(over - l1 * np.sign(w[:-1]))[moved] <= size * (1.0 + np.abs(x[:-1]))[moved]).all()
        assert (np.abs(over)[~moved] <= l1 + (size * (1.0 + np.abs(x[:-1])))[~moved]).all()


def test_the_implicit_step_is_scipys_minimum():
    rng, eta, l1, l2 = np.random.default_rng(3), 0.7, 0.4, 0.3
    for k in range(60):
        X, y = rows("logistic", 1, 4, 0.8, seed=k)
        start = rng.normal(size=5)
        learner = learners.descent("logistic", eta=eta, update="implicit", l1=l1, l2=l2)
        run = Run(learner, 4, start=start)
        feed(run, X, y)
        x = np.r_[X[0], 1.0]

        def goal(parts, x=x, y=y, start=start, learner=learner):  # w = p - m with p, m >= 0 but for the intercept
            w = parts[:5] - np.r_[parts[5:], 0.0]
            smooth = eta * (learner.loss.value(x @ w, y[0]) + 0.5 * l2 * w[:-1] @ w[:-1]) + 0.5 * (w - start) @ (
                w - start
            )
            return smooth + eta * l1 * (parts[:4].sum() + parts[5:].sum())

        bounds = [(0, None)] * 4 + [(None, None)] + [(0, None)] * 4
        first = np.r_[np.maximum(start[:4], 0), start[4], np.maximum(-start[:4], 0)]
        found = minimize(goal, first, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}).x
        np.testing.assert_allclose(run.weights, found[:5] - np.r_[found[5:], 0.0], atol=2e-5)


def test_without_a_penalty_the_loop_is_the_old_one():
    assert isinstance(learners.descent("square", l1=0.0, l2=0).geometry, Euclidean)


def test_a_round_touches_what_its_row_has():
    X = sp.random(200, 1000, 0.005, "csr", random_state=1)
    y = np.asarray(X.sum(axis=1)).ravel()
    run = Run(learners.descent("square", l1=0.01, l2=0.1), 1000)
    feed(run, X[:199], y[:199])
    before, weights = [field.copy() for field in run.state], run.weights
    feed(run, X[199:], y[199:])
    away = np.ones(1001, bool)
    away[X[199:].indices], away[-1] = False, False
    for name in ("theta", "decays", "cuts"):
        same(getattr(run.state, name)[away], before[run.state._fields.index(name)][away])
    kept = away & (weights != 0.0)
    assert kept.sum() > 100 and (np.abs(run.weights[kept]) < np.abs(weights[kept])).all()


def test_a_weight_that_rests_for_long_has_its_digits():
    rng = np.random.default_rng(4)
    X = np.zeros((20000, 2))
    X[:, 0], X[::5000, 1] = rng.normal(size=20000), 1.0
    y = X @ [1.0, 5.0]
    rates, learner = np.full(20000, 0.1), learners.descent("square", eta=0.1, l1=1e-4, l2=1e-5)
    run = Run(learner, 2)
    feed(run, sp.csr_matrix(X), y)
    close(run.weights, naive_steps(learner.loss, "explicit", X, y, np.ones(20000), rates, 1e-4, 1e-5)[1][-1], 1e-11)


# ---------------------------------------------------------------- laws


@nightly(but=["implicit"])
@pytest.mark.parametrize("update", ["explicit", "implicit"])
def test_chunks_readers_and_rows_of_weight_0_change_no_bit(update):
    X, y = rows("logistic", 90)
    c = np.random.default_rng(5).choice([0.0, 1.0, 2.0], len(y))
    learner = learners.descent("logistic", update=update, power=0.5, l1=0.02, l2=0.01)
    for stored in (X, sp.csr_matrix(X)):
        whole, pieces, fewer = Run(learner, 8), Run(learner, 8), Run(learner, 8)
        z = feed(whole, stored, y, c)
        same(z, feed(pieces, stored, y, c, sizes=(1, 7, 3)))
        same_state(whole, pieces)
        feed(fewer, stored[np.flatnonzero(c)], y[c > 0], c[c > 0])
        same_state(whole, fewer)
    flipped = Run(learner, 8)
    feed(flipped, X, 1.0 - y, c)
    dense = Run(learner, 8)
    feed(dense, X, y, c)
    close(dense.mirrored().weights, flipped.weights)


@nightly(but=["logistic"])
@pytest.mark.parametrize("name", ["square", "logistic"])
def test_one_row_at_a_time_and_from_a_file_it_is_the_same(name, tmp_path):
    X, y = rows(name)
    kind = h.DescentClassifier if name == "logistic" else h.DescentRegressor
    make = lambda: kind(name, l1=0.15, l2=0.02)  # noqa: E731
    whole, one = make().fit(X, y), make()
    for x, goal in zip(X, y, strict=True):  # names come as they are met
        one.learn_one({str(j): v for j, v in enumerate(x) if v or j == 0}, goal)
        one.predict_one({"0": 1.0})
    by_name = dict(zip(one._column, one.coef_.ravel(), strict=True))
    close([by_name.get(str(j), 0.0) for j in range(8)], whole.coef_.ravel(), 1e-12, 1.0)
    assert 0 < np.count_nonzero(whole.coef_) < 8
    part = make().fit(X[:40], y[:40])
    part.save(tmp_path / "model")
    found = h.load(tmp_path / "model").partial_fit(X[40:], y[40:])
    same_state(found.runs_[0], whole.runs_[0])
    same(found.predict(X), whole.predict(X))


def test_what_cannot_be_is_said():
    X, y = rows("square")
    with pytest.raises(ValueError, match="l1 must be at least 0, got -1"):
        h.DescentRegressor(l1=-1).fit(X, y)
    with pytest.raises(ValueError, match="l2 must be a number, got 'much'"):
        h.DescentRegressor(l2="much").fit(X, y)
    with pytest.raises(ValueError, match="l1 and l2 are for the euclidean geometry, not for 'balanced'"):
        h.DescentRegressor(geometry="balanced", l2=0.1).fit(X, y)
    with pytest.raises(ValueError, match="the penalised geometry keeps no average of its weights"):
        h.DescentRegressor(l1=0.1, average="before").fit(X, y)


# ---------------------------------------------------------------- the command


def test_the_command_says_how_many_weights_are_not_0(tmp_path):
    X, y = rows("square", 100)
    names = "abcdefgh"
    lines = [
        ",".join((*names, "y")),
        *(",".join(map(repr, [*x, t])) for x, t in zip(X.tolist(), y.tolist(), strict=True)),
    ]
    path, model = tmp_path / "rows.csv", tmp_path / "model"
    path.write_text("\n".join(lines) + "\n")
    words = ["learn", path, "--target", "y", "--learner", "descent", "--l1", "0.2", "--l2", "0.01"]
    want = h.DescentRegressor(update="explicit", l1=0.2, l2=0.01).fit(X, y)
    count = np.count_nonzero(want.coef_)
    assert 0 < count < 8
    code, out, err = run(*words, "--certify", "--save", model)
    assert code == 0, err
    assert f"{count} of 8 weights are not 0" in out and ": penalised descent" in out
    assert "geometry penalised, l1 = 0.2, l2 = 0.01" in err
    assert json.loads(run(*words, "--json", "--progress", "none")[1])["learners"][0]["nonzero"] == [count]
    assert f"weights: {count} that are not 0" in run("inspect", model)[1]
    export = json.loads(run("export", model)[1])["outputs"][0]["weights"]
    assert len(export) == count
    close(h.load(model).predict(X), want.predict(X))
    assert "HOLDS" in run("certify", model, path)[1]


# ---------------------------------------------------------------- the certificate


@nightly(but=["0.0-square-explicit", "0.5-logistic-implicit"])
@cases
@pytest.mark.parametrize("power", [0.0, 0.5])
def test_the_bound_covers_loss_and_penalty_of_the_run(name, update, power):
    """The theorem itself, with the penalties of the naive loop's weights, for many streams and comparators."""
    rng, eta = np.random.default_rng(6), 0.05
    for k in range(12):
        l1, l2 = rng.choice([0.0, 0.02, 0.2]), rng.choice([0.0, 0.02, 0.2])
        if l1 + l2 == 0.0:
            l1 = 0.1
        X, y = rows(name, 50, 5, seed=k)
        c, start = rng.choice([0.0, 0.5, 1.0, 2.0], len(y)), 0.2 * rng.normal(size=6)
        learner = learners.descent(name, eta=eta, update=update, power=power, l1=l1, l2=l2)
        run, data = Run(learner, 5, start=start), Data(X, y, c, 1.0)
        feed(run, X, y, c)
        rates = eta * np.arange(1.0, 51.0) ** -power
        _, path = naive_steps(learner.loss, update, X, y, c, rates, l1, l2, start)
        unit = eta if power == 0.0 else 1.0
        own = float(rates[: run.rounds] @ penalty(path[1:], l1, l2)) / unit
        best = certify_run(run, data)
        assert best.verdict is Verdict.HOLDS and best.slack >= own - 1e-9
        for _ in range(4):
            given = certify_run(run, data, u=best.comparator.u + 0.2 * rng.normal(size=6))
            assert given.verdict is Verdict.HOLDS and given.slack >= own - 1e-9
            assert given.bound >= best.bound - best.comparator.gap - 1e-9
        assert best.comparator.gap <= 0.3 * best.bound


def test_over_several_passes_it_holds_too():
    X, y = rows("square")
    model = h.DescentRegressor(update="explicit", l1=0.02, l2=0.01, passes=3).fit(X, y, certify=True)
    assert model.certificate_.verdict is Verdict.HOLDS and model.certificate_.rounds == 180


def test_the_rival_of_an_l2_penalty_is_ridge_regression():
    X, y = rows("square", 80)
    learner = learners.descent("square", eta=0.02, l2=0.3)
    run = Run(learner, 8)
    feed(run, X, y)
    rows_ = np.c_[X, np.ones(80)]
    ridge = np.linalg.solve(2.0 * rows_.T @ rows_ + np.diag(np.r_[[80 * 0.3] * 8, 0.0] + 50.0), 2.0 * rows_.T @ y)
    close(certify_run(run, Data(X, y, None, 1.0)).comparator.u, ridge, 1e-4)


def test_another_update_or_geometry_never_holds():
    X, y = rows("square", 200, density=0.9)
    part = learners.descent("square", l1=0.1).geometry

    class Doubled(type(UPDATES["explicit"])):
        """Twice the slope."""

        def effective_slope(self, loss, geometry, state, rows, t, z, q, y, a):
            return 2.0 * loss.slope(z, y)

    from hindsight.kernels.compiler import part as compiled

    liar = Learner("liar", LOSSES["square"], compiled(Doubled)(1.0), part, constant(0.02), theorem="penalised-descent")
    run = Run(liar, 8)
    feed(run, X, y)
    assert certify_run(run, Data(X, y, None, 1.0)).verdict is not Verdict.HOLDS
    liar = Learner(
        "liar", LOSSES["square"], UPDATES["explicit"], Euclidean(1.0), constant(0.02), theorem="penalised-descent"
    )
    run = Run(liar, 8)
    feed(run, X, y)
    with pytest.raises(ValueError, match="the theorem penalised descent is for the penalised geometry"):
        certify_run(run, Data(X, y, None, 1.0))
