"""Intervals that cover: the laws of the tracker, of estimators, of training and of the service."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import hindsight
from conftest import many
from hindsight.certificates.coverage import certify_coverage
from hindsight.certificates.theorems import Verdict
from hindsight.online import learners
from hindsight.online.coverage import Coverage, cover, sets_of
from hindsight.online.run import Run, play
from hindsight.training.evaluation import evaluate
from hindsight.training.options import ResultOptions
from hindsight.training.plan import Plan
from hindsight.training.session import Session

FIELDS = ("members", "sums", "bins")


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


def rows(count=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    return X, X @ [1.0, -2.0, 0.5] + rng.normal(size=count) * (1.0 + (np.arange(count) > count / 2))


def followed(X, y, c=None, cuts=(), learner=None):
    run = Run(learner or learners.widrow_hoff(0.1), X.shape[1])
    cover([run], 0.9)
    for a, b in zip([0, *cuts], [*cuts, len(y)], strict=True):
        play([run], X[a:b], [y[a:b]], None if c is None else c[a:b])
    return run.coverage


def test_chunks_storage_and_rows_of_weight_0_change_no_bit():
    X, y = rows()
    whole = followed(X, y)
    assert same(whole, followed(X, y, cuts=(1, 2, 77)))
    sparse = followed(sp.csr_matrix(X), y)  # margins agree to 1e-12
    assert np.allclose(whole.half, sparse.half, rtol=1e-9)
    wide, more = np.insert(X, [5, 200], 9.0, axis=0), np.insert(y, [5, 200], 1e6)
    assert same(whole, followed(wide, more, np.insert(np.ones(len(y)), [5, 200], 0.0)))


@pytest.mark.parametrize("power", [-30, 20])
def test_units_change_only_the_unit(power):
    s, c = np.abs(np.random.default_rng(1).normal(size=200)), np.ones(200)
    plain, scaled = Coverage(0.9), Coverage(0.9)
    half = plain.add(s, c)
    assert np.allclose(scaled.add(s * 2.0**power, c), half * 2.0**power, rtol=1e-9)
    assert certify_coverage(plain).covered == certify_coverage(scaled).covered
    heavy = Coverage(0.9)
    assert np.array_equal(heavy.add(s, c * 2.0**power), half)  # weights in other units


def test_one_tracker_asks_and_the_other_answers():
    tracker = followed(*rows())
    assert tracker.half == tracker.half  # to ask changes nothing
    kept = tracker.snapshot()
    before = tracker.half
    tracker.add(np.array([1e9]), np.ones(1))
    assert tracker.half != before
    tracker.restore(kept)
    assert tracker.half == before


def test_an_adversary_gets_infinite_intervals_and_the_coverage_holds():
    tracker, told = Coverage(0.9), []
    for _ in range(2000):
        told.append(tracker.half)
        tracker.add(np.array([min(2.0 * told[-1] + 1.0, 1e100)]), np.ones(1))
    found = certify_coverage(tracker)
    assert found.verdict is Verdict.HOLDS
    assert found.boundless > 0
    assert found.loss_verdict is Verdict.VOID
    assert found.low <= found.covered <= found.high
    assert "no finite interval" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_constant_is_met_at_width_0():
    found = certify_coverage(followed(np.ones((500, 1)), np.zeros(500)))
    assert found.verdict is Verdict.HOLDS
    assert (found.covered, found.width) == (1.0, 0.0)
    assert found.exact == pytest.approx(50.0)


ESTIMATORS = {
    "auto": lambda: hindsight.AutoRegressor(interval=0.9),
    "widrow-hoff": lambda: hindsight.WidrowHoffRegressor(0.1, interval=0.9),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_by_one_saved_and_resumed_as_in_one_go(name, tmp_path):
    make, (X, y) = ESTIMATORS[name], rows()
    model = make().fit(X, y)
    tracker = model.runs_[0].coverage
    single = make()
    for x, target in zip(X, y, strict=True):
        single.learn_one(x, target)
    assert same(tracker, single.runs_[0].coverage)
    make().fit(X[:100], y[:100]).save(tmp_path / "model")
    resumed = hindsight.load(tmp_path / "model").partial_fit(X[100:], y[100:])
    assert same(tracker, resumed.runs_[0].coverage)
    assert resumed.coverage_ == model.coverage_
    low, high = model.predict_interval(X[:1])[0]
    assert model.predict_interval_one(X[0]) == pytest.approx((low, high))
    assert high - low == 2.0 * tracker.half
    passes = make().set_params(passes=2).fit(X, y).coverage_
    assert passes.rounds == 2 * model.coverage_.rounds + (name == "auto")


def test_a_call_that_fails_leaves_the_intervals_as_they_were():
    X, y = rows()
    model = hindsight.WidrowHoffRegressor(0.1, interval=0.9).fit(X, y)
    before = model.runs_[0].coverage.snapshot()
    bad = X.copy()
    bad[250] = np.inf
    with pytest.raises(ValueError, match="finite"):
        model.partial_fit(bad, y)
    with pytest.raises(ValueError, match="finite"):
        model.learn_one(bad[250], 1.0)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.runs_[0].coverage.snapshot(), strict=True))


def test_what_intervals_are_not_for():
    X, y = rows(20)
    for wrong in (0.0, 1.0, 90, "yes"):
        with pytest.raises(ValueError, match="interval"):
            hindsight.AutoRegressor(interval=wrong).fit(X, y)
    with pytest.raises(ValueError, match="average"):
        hindsight.WidrowHoffRegressor(0.1, average="after", interval=0.9).fit(X, y)
    with pytest.raises(ValueError, match="probabilities"):
        hindsight.AutoClassifier("hinge", interval=0.9).fit(X, y > 0)
    with pytest.raises(AttributeError, match="were not asked for"):
        hindsight.AutoRegressor().fit(X, y).predict_interval(X)
    assert hindsight.AutoRegressor().fit(X, y).runs_[0].coverage is None


def test_sets_hold_the_labels_whose_score_is_covered():
    X, y = rows(many(200, 600))
    kinds = np.digitize(y, [-1.0, 1.0])
    for labels in (kinds > 0, kinds):
        model = hindsight.AutoClassifier(interval=0.8).fit(X, labels)
        found, tracker = model.coverage_, model.runs_[0].coverage
        assert found.verdict is Verdict.HOLDS
        assert found.low <= found.covered <= found.high
        p = model.predict_proba(X[:50])
        by_hand = [tuple(k for k, v in zip(model.classes_, row, strict=True) if 1.0 - v <= tracker.half) for row in p]
        assert model.predict_set(X[:50]) == by_hand
        assert model.predict_set_one(X[0]) == by_hand[0]
    assert sets_of(model.runs_[0].learner.loss, np.zeros((1, 3)), np.inf, "abc") == [("a", "b", "c")]


def test_a_class_that_joins_keeps_the_tracker():
    X, y = rows(60)
    model = hindsight.AutoClassifier(interval=0.9)
    for x, label in zip(X, np.digitize(y, [-1.0, 1.0]), strict=True):
        model.learn_one(x, int(label))
    assert model.coverage_.rounds == 60


def test_training_writes_resumes_goes_on_and_evaluates(tmp_path):
    X, y = rows()
    table = tmp_path / "rows.csv"
    np.savetxt(table, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="")
    path, options = tmp_path / "said.csv", {"data": str(table), "target": "y", "interval": 0.9}
    session = Session(Plan.of_one_learner(options), ResultOptions(predictions=str(path), progress="none"))
    state = session.run()
    model = state.to_model()
    said = np.genfromtxt(path, delimiter=",", names=True)
    inside = (said["low"] <= said["target"]) & (said["target"] <= said["high"])
    assert model.coverage.covered == pytest.approx(inside[1:].mean())  # the first row is no round
    half = hindsight.learn((X[:100], y[:100]), interval=0.9).partial_fit(X[100:], y[100:])
    assert same(half.runs[0].coverage, hindsight.learn((X, y), interval=0.9).runs[0].coverage)
    model.save(tmp_path / "model")
    again = hindsight.load(tmp_path / "model")
    assert again.coverage == model.coverage
    found = evaluate(again, str(table))
    low, high = again.predict_interval(X).T
    assert found["coverage"] == pytest.approx(np.mean((low <= y) & (y <= high)))
    outside = np.maximum(0.0, np.maximum(low - y, y - high))
    assert found["interval_score"] == pytest.approx(np.mean(high - low + 20.0 * outside))
    ends = np.quantile(y, [0.05, 0.95], method="inverted_cdf")
    assert found.figures["width"].constant == pytest.approx(ends[1] - ends[0])
    off = np.abs(said["prediction"] - said["target"])[1:]
    halves = (said["high"] - said["low"])[1:] / 2.0
    assert model.coverage.score == pytest.approx(np.mean(2.0 * halves + 20.0 * np.maximum(0.0, off - halves)))


def test_without_an_interval_settings_and_models_are_what_they_were():
    X, y = rows(30)
    model = hindsight.learn((X, y))
    assert "interval" not in model.settings
    assert "coverage" not in vars(model.runs[0])
    assert Plan.from_settings(model.settings, None).interval is None


def test_a_service_answers_with_intervals_and_has_them_after_a_restart(tmp_path):
    pytest.importorskip("starlette")
    from hindsight.serve.planning import service_plan
    from hindsight.serve.requests import Part
    from hindsight.serve.service import Service

    def part(values):
        return Part("learn", "json", json.dumps(values).encode(), len(values))

    X, y = rows(40)
    given = [{"a": a, "b": b, "y": t} for (a, b, _), t in zip(X.tolist(), y.tolist(), strict=True)]
    service = Service(str(tmp_path), service_plan("y", interval=0.9))
    told = service.commit([part(given[:20])])[0]
    assert np.subtract(told["high"], told["low"])[1:].min() >= 0.0
    service.commit([part(given[20:])])
    service.publish(now=True)
    z = service.reader.margins(given[:2])
    said = service.reader.answers(z)
    assert said["high"][0] - said["low"][0] == pytest.approx(2.0 * service.reader.half)
    covered = service.summary()["coverage"]
    service.close()
    again = Service(str(tmp_path))
    assert again.summary()["coverage"] == covered
    assert covered["rounds"] == 39
    again.close()


@pytest.mark.parametrize("data", ["sample:diabetes", "sample:breast-cancer"])
def test_a_report_draws_the_coverage_and_the_last_intervals(data, tmp_path):
    pytest.importorskip("altair")
    page, model = tmp_path / "page.html", hindsight.learn(data, interval=0.9)
    model.report(page, data)
    text = page.read_text(encoding="utf-8")
    assert "Coverage along the run" in text
    assert ("Intervals of the last rows" in text) is (model.labels is None)
    assert f"{100 * model.coverage.covered:.4g} % of {model.coverage.rounds:,} rows" in text
