"""The quantile, Huber and Poisson losses: steps, settings, predictions and certificates.

The law tests play them against naive.py at their defaults; here are their numbers, and scipy's minima.
"""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import hindsight as h
from commands import run
from conftest import close, feed, many, nightly, registered_meanwhile, same_state
from hindsight.certificates.applied import ours
from hindsight.certificates.certify import certify_run
from hindsight.certificates.theorems import Verdict
from hindsight.errors import ModelError, RowError
from hindsight.online import learners
from hindsight.online.margins import each_loss, each_slope
from hindsight.online.parts import LINKS, LOSSES, loss_of
from hindsight.online.run import Run
from hindsight.rows.data import Data
from hindsight.storage.codec import decode, encode

NEW = {"quantile": {"quantile": 0.9}, "huber": {"delta": 0.4}, "poisson": {}}
every = pytest.mark.parametrize("name", NEW)
both = pytest.mark.parametrize("update", ["explicit", "implicit"])


def target(name: str, rng: np.random.Generator) -> float:
    return float(rng.poisson(10.0 ** rng.uniform(-2, 4))) if name == "poisson" else 3.0 * rng.normal()


def rows(name: str, m: int = 200, n: int = 4, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.7)
    z = X @ rng.normal(size=n) * 0.5 + 0.3 * rng.normal(size=m)
    return X, rng.poisson(np.exp(np.clip(z, -3, 2))).astype(float) if name == "poisson" else z


# ---------------------------------------------------------------- the formulas


def test_the_pinball_loss_is_its_definition():
    loss = loss_of("quantile", quantile=0.9)
    for z, y in ((0.0, 1.0), (1.0, 0.0), (2.0, 2.0), (-3.0, 4.0)):
        close(loss.value(z, y), 0.9 * max(y - z, 0.0) + 0.1 * max(z - y, 0.0), 1e-15, 1.0)
    assert (loss.slope(0.0, 1.0), loss.slope(1.0, 0.0), loss.slope(1.0, 1.0)) == (-0.9, 1.0 - 0.9, 0.0)


def test_the_poisson_loss_is_half_the_deviance():
    from sklearn.metrics import mean_poisson_deviance

    loss, rng = LOSSES["poisson"], np.random.default_rng(1)
    for _ in range(200):
        z, y = rng.normal(), float(rng.poisson(2.0))
        close(2.0 * loss.value(z, y), mean_poisson_deviance([y], [math.exp(z)]), 1e-12, 1.0)
    assert loss.mean(1000.0) == math.inf and loss.value(0.0, 1.0) == 0.0


@every
def test_slopes_are_those_of_the_value(name):
    loss, rng = loss_of(name, **NEW[name]), np.random.default_rng(2)
    for _ in range(500):
        z, y, step = 2.0 * rng.normal(), float(rng.poisson(1.0)) if name == "poisson" else rng.normal(), 1e-6
        across = (loss.value(z + step, y) - loss.value(z - step, y)) / (2.0 * step)
        assert abs(across - loss.slope(z, y)) < 1e-5 * (1.0 + math.exp(z))


@every
def test_the_implicit_slope_is_that_at_the_point_it_leads_to(name):
    """Thousands of draws over many sizes: v = z - a g has g among its slopes, which makes it the proximal point."""
    loss, rng = loss_of(name, **NEW[name]), np.random.default_rng(3)
    for _ in range(3000):
        z, y, a = rng.normal() * 10.0 ** rng.uniform(-2, 2.5), target(name, rng), 10.0 ** rng.uniform(-8, 6)
        v = z - a * (g := loss.implicit(z, y, a))
        near = 1e-12 * (1.0 + abs(z) + abs(v))
        low, high = loss.slope(v - near, y), loss.slope(v + near, y)
        assert low - 1e-9 * abs(low) <= g <= high + 1e-9 * abs(high), (z, y, a)
    assert loss.implicit(0.5, 1.0, 0.0) == loss.slope(0.5, 1.0)


@every
def test_the_implicit_step_is_scipys_proximal_point(name):
    loss, rng = loss_of(name, **NEW[name]), np.random.default_rng(4)
    for _ in range(300):
        z, y, a = 2.0 * rng.normal(), float(rng.poisson(2.0)) if name == "poisson" else rng.normal(), rng.exponential()
        best = minimize_scalar(
            lambda v, z=z, y=y, a=a: a * loss.value(v, y) + 0.5 * (v - z) ** 2, (z - 3.0 * a - 1.0, z + 3.0 * a + 1.0),
            tol=1e-12,
        )  # fmt: skip
        assert abs(z - a * loss.implicit(z, y, a) - best.x) < 1e-6


# ---------------------------------------------------------------- settings


def test_settings_are_fields_of_the_loss():
    assert learners.descent("quantile", quantile=0.25).loss == (0.25,)
    assert learners.descent("huber", delta=3).loss == (3.0,)
    assert learners.descent("quantile").loss == (0.5,)
    with pytest.raises(ValueError, match="quantile is not a setting of the loss 'huber'"):
        learners.descent("huber", quantile=0.5)
    with pytest.raises(ValueError, match="quantile must be a number above 0 and below 1, got 1"):
        learners.descent("quantile", quantile=1)
    with pytest.raises(ValueError, match="delta must be a number above 0, got 0"):
        learners.descent("huber", delta=0)


def test_a_file_with_a_setting_out_of_range_is_refused():
    document, tensors = encode([loss_of("quantile", quantile=0.5)])
    assert decode(document, tensors) == [loss_of("quantile", quantile=0.5)]
    with pytest.raises(ModelError, match=r"`Quantile.quantile` must be above 0 and below 1"):
        decode(document.replace("0x1.0000000000000p-1", "0x1.0000000000000p+1"), tensors)


def test_losses_of_others_have_settings_too():
    from typing import NamedTuple

    class Cube(NamedTuple):
        delta: float
        name = "cube"

        def value(self, z, y):
            return self.delta * abs(z - y) ** 3 / 3.0

        def slope(self, z, y):
            return self.delta * (z - y) * abs(z - y)

        def curvature(self, z):
            return 0.0

    with registered_meanwhile():
        h.register(Cube(1.0))
        assert learners.descent("cube", delta=2.0).loss == Cube(2.0)


# ---------------------------------------------------------------- targets and predictions


def test_counts_below_zero_are_refused_by_name():
    with pytest.raises(RowError, match=r"row 1: target -1\.0 must be a finite number, at least 0"):
        h.DescentRegressor("poisson").fit([[1.0], [2.0]], [1.0, -1.0])
    one = h.DescentRegressor("poisson").learn_one({"a": 1.0}, 2.0)
    with pytest.raises(RowError, match=r"target -1\.0 must be a finite number, at least 0"):
        one.learn_one({"a": 1.0}, -1.0)
    with pytest.raises(ValueError, match="loss 'poisson' is for counts: use DescentRegressor"):
        h.DescentClassifier("poisson").fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(ValueError, match="the loss 'poisson' is for the learner descent"):
        h.AutoRegressor("poisson").fit([[1.0], [2.0]], [0.0, 1.0])


def test_poisson_predicts_means():
    X, y = rows("poisson", 3000)
    model = h.DescentRegressor("poisson", eta=0.02).fit(X, y)
    close(model.predict(X), np.exp(X @ model.coef_ + model.intercept_), 1e-12)
    close(model.predict_one(X[0]), model.predict(X[:1])[0], 1e-12)
    assert abs(model.predict(X).mean() / y.mean() - 1.0) < 0.1


def test_the_quantile_loss_predicts_the_quantile():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20000, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=20000)
    for quantile in (0.1, 0.5, 0.9):
        model = h.DescentRegressor("quantile", eta=0.3, power=0.5, quantile=quantile).fit(X, y)
        assert abs((y < model.predict(X)).mean() - quantile) < 0.03


def test_a_step_too_far_is_one_clear_error():
    with pytest.raises(RowError, match="take a smaller eta, update='implicit'"):
        h.DescentRegressor("poisson", update="explicit", eta=10.0).fit(np.full((50, 1), 30.0), np.arange(50.0) % 7)
    model = h.DescentRegressor("poisson", eta=10.0).fit(np.full((50, 1), 30.0), np.arange(50.0) % 7)
    assert np.isfinite(model.coef_).all()


# ---------------------------------------------------------------- one row at a time, and files


@nightly(but=["implicit-poisson"])
@every
@both
def test_one_row_at_a_time_and_from_a_file_it_is_the_same(name, update, tmp_path):
    X, y = rows(name, 60)
    make = lambda: h.DescentRegressor(name, eta=0.05, update=update, **NEW[name])  # noqa: E731
    whole, one = make().fit(X, y), make()
    for x, goal in zip(X, y, strict=True):
        one.learn_one({str(j): v for j, v in enumerate(x)}, goal)
    close(one.coef_, whole.coef_)
    part = make().fit(X[:40], y[:40])
    part.save(tmp_path / "model")
    found = h.load(tmp_path / "model").partial_fit(X[40:], y[40:])
    same_state(found.runs_[0], whole.runs_[0])


# ---------------------------------------------------------------- certificates


@nightly(but=["explicit-poisson", "explicit-huber", "implicit-quantile"])
@every
@both
def test_certificates_hold_and_their_rival_is_near_the_best(name, update):
    X, y = rows(name)
    weight = np.random.default_rng(6).choice([0.0, 0.5, 1.0, 2.0], len(y))
    run = Run(learners.descent(name, eta=0.05, update=update, **NEW[name]), X.shape[1])
    feed(run, X, y, weight)
    found = certify_run(run, Data(X, y, weight, 1.0))
    assert found.verdict is Verdict.HOLDS
    assert (
        found.theorem.name == ("implicit descent" if update == "implicit" else "descent on a convex loss") + ", as met"
    )
    close(found.measured, run.facts.loss, 1e-12)
    assert found.comparator.gap < 0.02 * (found.comparator.loss + found.comparator.norm**2 / 0.1)
    rng = np.random.default_rng(7)

    def without_last(c):
        return c.bound + c.path[-1].potential / 0.05

    for _ in range(many(5, 20)):  # no u promises less, but for its last distance
        given = certify_run(run, Data(X, y, weight, 1.0), u=found.comparator.u + 0.1 * rng.normal(size=5))
        assert given.verdict is Verdict.HOLDS
        assert without_last(given) >= without_last(found) - found.comparator.gap - 1e-9


@nightly
@pytest.mark.parametrize(("name", "geometry"), [("poisson", "balanced"), ("quantile", "scale-free")])
def test_in_other_geometries_certificates_hold_too(name, geometry):
    X, y = rows(name, 100)
    X /= 5.0
    run = Run(learners.descent(name, geometry, 0.05, radius=2.0, **NEW[name]), X.shape[1])
    feed(run, X, y)
    assert certify_run(run, Data(X, y, None, 1.0)).verdict is Verdict.HOLDS


@nightly
def test_a_panel_takes_them():
    X, y = rows("quantile", 3000)
    model = h.AutoRegressor("quantile", quantile=0.8).fit(X, y, certify=True)
    assert model.certificate_.verdict is Verdict.HOLDS and model.runs_[0].learner.loss == (0.8,)
    assert abs((y < model.predict(X)).mean() - 0.8) < 0.1


# ---------------------------------------------------------------- the command


@nightly(but=["huber"])
@every
def test_the_command_takes_loss_and_setting(name, tmp_path):
    X, y = rows(name, 60)
    lines = ["a,b,c,d,y", *(",".join(map(repr, [*x, t])) for x, t in zip(X.tolist(), y.tolist(), strict=True))]
    path, model = tmp_path / "rows.csv", tmp_path / "model"
    path.write_text("\n".join(lines) + "\n")
    options = [word for key, value in NEW[name].items() for word in (f"--{key}", str(value))]
    words = ["learn", str(path), "--target", "y", "--learner", "descent", "--loss", name, "--eta", "0.05", *options]
    code, out, err = run(*words, "--certify", "--save", model)
    assert code == 0 and ": descent on a convex loss, as met" in out, err
    want = h.DescentRegressor(name, eta=0.05, update="explicit", **NEW[name]).fit(X, y)
    close(h.load(model).predict(X), want.predict(X))
    code, _, err = run("learn", path, "--target", "y", "--learner", "descent", "--quantile", "0.5")
    assert code == 2 and "quantile is not a setting of the loss 'square'" in err


@pytest.mark.parametrize(
    "loss", {type(loss): loss for loss in (*LOSSES.values(), *LINKS.values())}.values(), ids=lambda loss: loss.name
)
def test_losses_of_this_package_that_say_so_are_convex(loss):
    """Certificates take it from here, and look in every round at the losses of others alone."""
    assert ours(loss)
    if not loss.convex:
        return
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(size=400) * 10.0 ** rng.integers(-6, 3, 400), [0.0, 1.0, -1.0, 0.5]])
    targets = {"real": [-3.0, 0.0, 0.5, 40.0], "sign": [-1.0, 1.0], "count": [0.0, 1.0, 7.0]}
    if loss.link == "exponential":
        z = np.clip(z, -300.0, 300.0)
    for y in targets.get(loss.targets, [0.0, 0.3, 1.0]):
        at = np.full(z.size, y)
        value, slope = each_loss(loss, z, at), each_slope(loss, z, at)
        order = np.argsort(z)
        assert (np.diff(slope[order]) >= -1e-12 * np.abs(slope).max()).all(), y
        tangents = value[:, None] + slope[:, None] * (z[None] - z[:, None])
        room = 1e-9 * (np.abs(value)[:, None] + np.abs(value)[None] + np.abs(slope[:, None] * (z[None] - z[:, None])))
        assert (tangents <= value[None] + room + 1e-12).all(), y
