"""`hindsight.evaluate` and `hindsight evaluate`: every figure against scikit-learn, and what may be wrong with rows."""

import csv
import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from sklearn import metrics

import hindsight
from hindsight.forecast import auc
from hindsight.online import learners
from hindsight.online.run import Run, play
from hindsight.training import evaluation
from hindsight.training.model import Model
from test_cli import run

pytestmark = pytest.mark.filterwarnings("ignore::hindsight.AssumptionWarning")
NAMES = ["a", "b", "c"]


def rows(count=300, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 3))


def model_of(labels, learner, X, y, **options):
    """A model of the command, as `learn --save` makes one with target "y"."""
    count = 1 if labels is None or len(labels) == 2 else len(labels)
    runs = [Run(learner, 3) for _ in range(count)]
    low = 0.0 if learner.targets == "unit" else -1.0
    if labels is None:
        targets = [np.asarray(y, float)]
    else:
        kept = labels[1:] if count == 1 else labels
        targets = [np.where(np.asarray(y) == label, 1.0, low) for label in kept]
    play(runs, X, targets)
    return Model(runs, NAMES, labels, settings={"target": "y", **options})


def binary(weights=False, ties=False, learner=None, seed=0):
    X = rows(seed=seed)
    if ties:
        X = np.round(X)
    rng = np.random.default_rng(seed + 1)
    y = np.where(X @ [1.0, -2.0, 0.5] + rng.normal(size=len(X)) > 0.3, "yes", "no")
    model = model_of(["no", "yes"], learner or learners.descent("logistic", eta=0.3), X[:50], y[:50])
    return model, X, y, np.round(rng.uniform(0, 3, len(X)), 2) * (rng.random(len(X)) < 0.9) if weights else None


def several(weights=False, seed=0, learner=None):
    X = rows(seed=seed)
    rng = np.random.default_rng(seed + 1)
    y = np.array(["u", "v", "w"])[np.argmax(X + rng.normal(size=X.shape), axis=1)]
    model = model_of(["u", "v", "w"], learner or learners.descent("logistic", eta=0.3), X[:80], y[:80])
    return model, X, y, rng.uniform(0, 2, len(X)) if weights else None


def probabilities(model, X):
    return evaluation.probabilities(model, model.margins(X))


def close(a, b, tol=1e-12):
    assert a == pytest.approx(b, rel=tol, abs=tol), (a, b)


# ---------------------------------------------------------------- figures against scikit-learn


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_two_labels(weights, ties):
    model, X, y, w = binary(weights, ties)
    found = model.evaluate(X, y, weight=w)
    said, p = model.predict(X), probabilities(model, X)[:, 1]
    close(found["accuracy"], metrics.accuracy_score(y, said, sample_weight=w))
    close(found["log_loss"], metrics.log_loss(y == "yes", p, sample_weight=w))
    close(found["brier_score"], metrics.brier_score_loss(y == "yes", p, sample_weight=w))
    close(found["auc"], metrics.roc_auc_score(y == "yes", p, sample_weight=w))
    np.testing.assert_allclose(found.confusion[:2], metrics.confusion_matrix(y, said, sample_weight=w), rtol=1e-12)
    assert not found.confusion[2].any() and not found.unknown and not found.infinite
    want = metrics.precision_recall_fscore_support(y, said, sample_weight=w)
    for k, each in enumerate(found.classes):
        for value, wanted in zip(each[1:5], want, strict=True):
            close(value, wanted[k])
    parts = found.decomposition
    close(parts.miscalibration - parts.discrimination + parts.uncertainty, found["brier_score"])
    want = hindsight.forecast.reliability((y == "yes").astype(float), p, w)
    for name in ("miscalibration", "discrimination", "uncertainty"):
        close(getattr(parts, name), getattr(want, name))
    close(found.figures["brier_score"].constant, parts.uncertainty)
    c = np.ones(len(y)) if w is None else w
    share = float(c @ (y == "yes") / c.sum())
    close(found.figures["log_loss"].constant, metrics.log_loss(y == "yes", np.full(len(y), share), sample_weight=w))
    close(found.figures["accuracy"].constant, max(share, 1 - share))
    assert found.rows == np.count_nonzero(c)
    close(found.weight, c.sum())


@pytest.mark.parametrize("weights", [False, True])
def test_several_labels(weights):
    model, X, y, w = several(weights)
    found = model.evaluate(X, y, weight=w)
    said, p = model.predict(X), probabilities(model, X)
    close(found["accuracy"], metrics.accuracy_score(y, said, sample_weight=w))
    close(found["log_loss"], metrics.log_loss(y, p, sample_weight=w))
    close(found["brier_score"], metrics.brier_score_loss(y, p, sample_weight=w, labels=model.labels))
    each = [metrics.roc_auc_score(y == label, p[:, k], sample_weight=w) for k, label in enumerate(model.labels)]
    close(found["auc"], np.mean(each))
    for one, want in zip(found.classes, each, strict=True):
        close(one.auc.value, want)
        assert one.auc.low < want < one.auc.high
    assert found.auc.low < found.auc.value < found.auc.high
    assert found.auc.high - found.auc.low < np.mean([one.auc.high - one.auc.low for one in found.classes])
    want = metrics.precision_recall_fscore_support(y, said, sample_weight=w)
    np.testing.assert_allclose([one[1:5] for one in found.classes], np.array(want).T, rtol=1e-12)
    parts = found.decomposition
    close(parts.miscalibration - parts.discrimination + parts.uncertainty, found["brier_score"])
    assert list(found.calibration) == ["u", "v", "w"]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_numbers(weights, seed):
    X, rng = rows(seed=seed), np.random.default_rng(seed + 9)
    y = X @ [1.0, -2.0, 0.5] + 1e3 + rng.normal(size=len(X))  # a mean far away from 0
    w = np.round(rng.uniform(0, 3, len(X)), 1) if weights else None
    model = model_of(None, learners.widrow_hoff(eta=0.2), X[:100], y[:100])
    found, said = model.evaluate(X, y, weight=w), model.predict(X)
    close(found["r2"], metrics.r2_score(y, said, sample_weight=w), 1e-9)
    close(found["mse"], metrics.mean_squared_error(y, said, sample_weight=w))
    close(found["rmse"], metrics.root_mean_squared_error(y, said, sample_weight=w))
    close(found["mae"], metrics.mean_absolute_error(y, said, sample_weight=w))
    c = np.ones(len(y)) if w is None else w
    mean = c @ y / c.sum()
    close(found.figures["mse"].constant, c @ (y - mean) ** 2 / c.sum(), 1e-9)
    tries = [c @ np.abs(y - v) / c.sum() for v in y]
    close(found.figures["mae"].constant, min(tries))
    close(found.figures["mse"].learning, model.facts[0].square / model.facts[0].weight)
    assert found.figures["r2"].constant == 0.0


def test_figures_of_the_training_are_those_of_the_progressive_run():
    model, X, y, _ = binary()
    found = model.evaluate(X, y)
    z, facts = [], model.facts[0]
    one = Run(learners.descent("logistic", eta=0.3), 3)
    for x, label in zip(X[:50], y[:50], strict=True):
        out = np.empty((1, 1))
        play([one], x[None], [np.array([float(label == "yes")])], None, out)
        z.append(out[0, 0])
    p, t = 1 / (1 + np.exp(-np.array(z))), y[:50] == "yes"
    close(found.figures["log_loss"].learning, metrics.log_loss(t, p), 1e-9)
    close(found.figures["brier_score"].learning, metrics.brier_score_loss(t, p), 1e-9)
    close(found.figures["accuracy"].learning, 1 - facts.mistakes / 50)


def test_a_learner_without_probabilities():
    model, X, y, _ = binary(learner=learners.perceptron())
    found = model.evaluate(X, y)
    assert set(found.figures) == {"accuracy", "auc", "own_loss"} and found.decomposition is None
    close(found["auc"], metrics.roc_auc_score(y == "yes", model.margins(X)[:, 0]))
    z = model.margins(X)[:, 0] * np.where(y == "yes", 1.0, -1.0)
    close(found["own_loss"], np.maximum(0.0, -z).mean())
    close(found.figures["own_loss"].learning, model.facts[0].loss / model.facts[0].weight)
    assert "no probabilities" in str(found)


@pytest.mark.parametrize("make", [binary, several])
def test_zero_weight_is_absent(make):
    model, X, y, _ = make()
    w = (np.arange(len(y)) % 3 > 0).astype(float)
    assert str(model.evaluate(X, y, weight=w)) == str(model.evaluate(X[w > 0], y[w > 0]))


def test_scaling_all_weights_changes_no_mean():
    model, X, y, w = several(True)
    one, four = model.evaluate(X, y, weight=w), model.evaluate(X, y, weight=4 * w)
    assert {k: v.value for k, v in one.figures.items()} == {k: v.value for k, v in four.figures.items()}
    assert one.auc == four.auc


def test_one_label_only():
    model, X, y, _ = binary()
    X, y = X[y == "yes"], y[y == "yes"]
    found = model.evaluate(X, y)
    assert math.isnan(found["auc"]) and "not defined" in str(found)
    close(found["accuracy"], metrics.accuracy_score(y, model.predict(X)))
    assert found.figures["log_loss"].constant == 0.0 and found.figures["accuracy"].constant == 1.0
    no = found.classes[0]
    assert no.support == 0 and math.isnan(no.recall) and no.precision == 0.0


def test_constant_predictions():
    model = Model([Run(learners.descent("logistic"), 3)], NAMES, ["no", "yes"])
    X, y = rows(), np.where(np.arange(300) % 3 == 0, "yes", "no")
    found = model.evaluate(X, y)
    assert found["auc"] == 0.5 and found.auc.low < 0.5 < found.auc.high
    assert found["accuracy"] == pytest.approx(2 / 3) and found["log_loss"] == pytest.approx(math.log(2))
    assert found["brier_score"] == 0.25 and found.decomposition.discrimination == 0.0
    assert math.isnan(found.classes[1].precision) and "–" in str(found)


def test_constant_targets_have_no_r2():
    X = rows()
    model = model_of(None, learners.widrow_hoff(), X, X[:, 0])
    found = model.evaluate(X, np.full(300, 2.5))
    assert math.isnan(found["r2"]) and found.figures["mse"].constant == 0.0
    assert json.loads(json.dumps(found.to_dict()))["figures"]["r2"]["value"] is None


def test_a_margin_that_is_certain_has_a_finite_log_loss():
    one = Run(learners.descent("logistic"), 3, start=np.array([1.0, 0, 0, 0]))
    model = Model([one], NAMES, ["no", "yes"])
    found = model.evaluate(np.array([[50.0, 0, 0], [-50.0, 0, 0]]), ["no", "no"])
    close(found["log_loss"], 25.0)
    assert found.infinite == 0


def test_probability_zero_is_infinite_and_said():
    one = Run(learners.descent("logistic"), 3, start=np.array([1.0, 0, 0, 0]))
    model = Model([one], NAMES, ["no", "yes"])
    found = model.evaluate(np.array([[800.0, 0, 0], [0.0, 0, 0]]), ["no", "no"])
    assert found["log_loss"] == math.inf and found.infinite == 1
    close(found.finite_log_loss, math.log(2))
    assert "infinite in 1 row" in str(found) and found.to_dict()["figures"]["log_loss"]["value"] is None


@pytest.mark.parametrize("make", [binary, several])
def test_labels_that_the_model_does_not_know(make):
    model, X, y, _ = make()
    y = y.astype("<U9")
    strange = np.arange(len(y)) % 10 == 0
    y[strange] = "maybe"
    y[0] = "perhaps"
    found = model.evaluate(X, y)
    said, p = model.predict(X), probabilities(model, X)
    assert found.unknown == {"maybe": 29, "perhaps": 1} and found.infinite == 30
    close(found["accuracy"], (said == y).mean())
    assert found["log_loss"] == math.inf
    close(found.finite_log_loss, metrics.log_loss(y[~strange], p[~strange], labels=model.labels))
    wide = np.column_stack([p, np.zeros(len(y))])
    truth = np.column_stack([y == label for label in model.labels] + [strange]).astype(float)
    close(found["brier_score"], np.square(wide - truth).sum(axis=1).mean() * (0.5 if len(model.labels) == 2 else 1.0))
    parts = found.decomposition
    close(parts.miscalibration - parts.discrimination + parts.uncertainty, found["brier_score"])
    close(found.figures["brier_score"].constant, parts.uncertainty)
    assert found.confusion[-1].sum() == 30
    text = str(found)
    assert "30 rows with a label that the model does not know" in text and "'maybe' (29)" in text
    known = model.evaluate(X[~strange], y[~strange])
    assert found.auc == known.auc


def test_only_unknown_labels():
    model, X, _, _ = binary()
    found = model.evaluate(X, ["other"] * len(X))
    assert found["accuracy"] == 0.0 and math.isnan(found["auc"]) and math.isnan(found.finite_log_loss)
    assert "300 rows" in str(found) and json.dumps(found.to_dict())


def test_numbers_as_labels_match_however_they_are_written(tmp_path):
    X = rows(20)
    y = np.where(X[:, 0] > 0, "1", "0")
    model = model_of(["0", "1"], learners.perceptron(), X, y)
    want = model.evaluate(X, y)["accuracy"]
    assert model.evaluate(X, y.astype(float))["accuracy"] == want == model.evaluate(X, y.astype(int))["accuracy"]
    table(tmp_path / "rows.csv", X, np.char.add(y, ".0"))
    assert model.evaluate(str(tmp_path / "rows.csv"))["accuracy"] == want


def test_estimators_and_models_agree():
    _, X, y, w = several(True)
    made = hindsight.DescentClassifier("logistic", eta=0.3).fit(X[:80], y[:80])
    model = Model(made.runs_, None, ["u", "v", "w"])
    one, two = hindsight.evaluate(made, X, y, weight=w), model.evaluate(X, y, weight=w)
    for name, figure in one.figures.items():
        close(figure.value, two[name])
        assert math.isnan(figure.learning)
    np.testing.assert_allclose(one.confusion, two.confusion)
    close(hindsight.evaluate(made, sp.csr_matrix(X), y, weight=w)["auc"], one["auc"])
    close(model.evaluate(sp.csr_matrix(X), y, weight=w)["auc"], one["auc"])
    regression = hindsight.LeastSquares().fit(X, X[:, 0] + 1)
    assert repr(hindsight.evaluate(regression, X, X[:, 1])).startswith("Evaluation(300 rows: R² ")


# ---------------------------------------------------------------- the AUC


@pytest.mark.parametrize("seed", range(5))
def test_auc_with_ties_and_weights(seed):
    rng = np.random.default_rng(seed)
    y, s, w = rng.integers(0, 2, 200), np.round(rng.normal(size=200), 1), rng.uniform(0, 2, 200)
    close(auc(y, s, w).value, metrics.roc_auc_score(y, s, sample_weight=w))
    close(auc(y, s).value, metrics.roc_auc_score(y, s))
    close(auc(y, -s).value, 1 - auc(y, s).value)
    assert auc(y, np.exp(s)) == auc(y, s)
    mirrored = auc(1 - y, -s, w)
    close(mirrored.value, auc(y, s, w).value)
    close(mirrored.low, auc(y, s, w).low, 1e-9)


def test_auc_interval_is_delongs():
    """The variance of placements, straight from the paper."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 120)
    s = np.round(rng.normal(size=120) + y, 1)
    ones, zeros = s[y == 1], s[y == 0]
    wins = (ones[:, None] > zeros) + 0.5 * (ones[:, None] == zeros)
    area = wins.mean()
    variance = wins.mean(axis=1).var(ddof=1) / len(ones) + wins.mean(axis=0).var(ddof=1) / len(zeros)
    reach = norm.ppf(0.975) * math.sqrt(variance) / (area * (1 - area))
    found = auc(y, s)
    close(math.log(found.high / (1 - found.high)), math.log(area / (1 - area)) + reach, 1e-9)
    close(math.log(found.low / (1 - found.low)), math.log(area / (1 - area)) - reach, 1e-9)


@pytest.mark.parametrize(("ones", "zeros", "shift"), [(40, 40, 1.5), (8, 60, 1.5), (20, 20, 3.0), (100, 40, 0.5)])
def test_auc_intervals_cover(ones, zeros, shift):
    rng, truth, trials = np.random.default_rng(0), norm.cdf(shift / math.sqrt(2)), 1000
    y = np.repeat([1, 0], [ones, zeros])
    inside = 0
    for _ in range(trials):
        found = auc(y, rng.normal(size=y.size) + shift * y)
        inside += found.low <= truth <= found.high
    assert 0.925 <= inside / trials <= 0.985  # 0.95 ± three standard errors is 0.93 to 0.97


def test_auc_at_its_ends():
    perfect = auc([0, 0, 0, 1, 1, 1], [1, 2, 3, 4, 5, 6])
    assert perfect.value == 1.0 and 0.3 < perfect.low < 0.9 and perfect.high == 1.0
    wrong = auc([1, 1, 1, 0, 0, 0], [1, 2, 3, 4, 5, 6])
    close(wrong.high, 1 - perfect.low, 1e-9)
    assert wrong.value == 0.0 == wrong.low
    wider = auc(np.repeat([0, 1], 100), np.arange(200))
    assert perfect.low < wider.low < 1.0 == wider.high
    assert math.isnan(auc([1, 1], [0.5, 0.25]).value)
    for bad in ({"scores": [0.5, math.nan]}, {"level": 1.5}, {"weight": [1.0, -1.0]}, {"outcomes": [0, 2]}):
        given = {"outcomes": [0, 1], "scores": [0.5, 0.25]} | bad
        with pytest.raises(ValueError, match=r"finite|level|weight|0 or 1"):
            auc(**given)


# ---------------------------------------------------------------- files


def table(path, X, y, **more):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*NAMES, "y", *more])
        for row in zip(X.tolist(), y, *more.values(), strict=True):
            writer.writerow([*map(repr, row[0]), *row[1:]])
    return str(path)


def as_text(found):
    return json.dumps(found.to_dict())


@pytest.mark.parametrize("make", [binary, several])
def test_chunks_change_nothing(tmp_path, make, monkeypatch):
    model, X, y, w = make(True)
    monkeypatch.setattr(evaluation, "BLOCK", 64)
    site = np.where(np.arange(len(y)) % 4 == 0, "east", "west")
    path = table(tmp_path / "rows.csv", X, y, w=w, site=site)
    model.settings["reading"] = {"weight": "w"}
    want = as_text(model.evaluate(path, by="site"))
    opened = evaluation.open_for_model
    for chunk in (100, 777, 5000):
        monkeypatch.setattr(evaluation, "open_for_model", lambda *a, c=chunk, **k: opened(*a, chunk=c, **k))
        assert as_text(model.evaluate(path, by="site")) == want
        assert as_text(model.evaluate(X, y, weight=w, by=site)).replace('"value", "slices"', '"site", "slices"') == want


def test_formats_agree(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    model, X, y, _ = binary()
    site = np.array(["n", "s", "e"])[np.arange(len(y)) % 3].tolist()
    path = table(tmp_path / "rows.csv", X, y, site=site)
    frame = pa.table({**dict(zip(NAMES, X.T, strict=True)), "y": y, "site": site})
    pq.write_table(frame, tmp_path / "rows.parquet", row_group_size=37)
    records = frame.to_pylist()
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    want = as_text(model.evaluate(path, by="site"))
    assert as_text(model.evaluate(str(tmp_path / "rows.parquet"), by="site")) == want
    assert as_text(model.evaluate(frame, by="site")) == want
    for data in (str(tmp_path / "rows.jsonl"), records):  # sparse rows are summed in another order
        found = json.loads(as_text(model.evaluate(data, by="site")))
        assert found["confusion"] == json.loads(want)["confusion"]
        assert [s["value"] for s in found["slices"]] == [s["value"] for s in json.loads(want)["slices"]]


def test_rows_left_out_for_learning_are_left_out(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    model, X, y, _ = binary()
    model.preparation = {"kind": "dense", "source": {"missing": "skip"}}
    site = [f"s{k % 3}" for k in range(len(y))]
    gaps = [None if k % 7 == 0 else v for k, v in enumerate(X[:, 0].tolist())]
    whole = [k for k in range(len(y)) if k % 7]
    frame = pa.table({"a": gaps, "b": X[:, 1], "c": X[:, 2], "y": y, "site": site})
    pq.write_table(frame, tmp_path / "rows.parquet", row_group_size=50)
    want = as_text(model.evaluate(X[whole], y[whole], by=[site[k] for k in whole])).replace(
        '"value", "sl', '"site", "sl'
    )
    assert as_text(model.evaluate(str(tmp_path / "rows.parquet"), by="site")) == want


def test_slices(tmp_path):
    model, X, y, w = binary(True)
    site = [f"s{k}" for k in np.random.default_rng(5).integers(0, 4, len(y)).tolist()]
    found = model.evaluate(table(tmp_path / "rows.csv", X, y, w=w, site=site), weight="w", by="site")
    assert [s.weight for s in found.slices] == sorted((s.weight for s in found.slices), reverse=True)
    assert sum(s.rows for s in found.slices) == found.rows
    for part in found.slices:
        mine = np.array(site) == part.value
        alone = model.evaluate(X[mine], y[mine], weight=w[mine])
        assert part.rows == alone.rows
        for name in ("accuracy", "log_loss", "brier_score"):
            close(part.figures[name], alone[name])
        close(part.figures["accuracy_of_constant"], alone.figures["accuracy"].constant)


def test_many_slices_are_cut(tmp_path):
    X = rows(1000)
    y = X @ [1.0, 2.0, 3.0] + np.arange(1000) % 7
    model = model_of(None, learners.widrow_hoff(), X[:50], y[:50])
    site = np.minimum(np.arange(1000) % 97, 80)  # 81 values, the last one the largest
    found = model.evaluate(table(tmp_path / "rows.csv", X, y.tolist(), site=site.tolist()), by="site")
    assert len(found.slices) == 51 and found.slices[0].value == "80" and found.slices[-1].value == "(the rest)"
    shown = [int(s.value) for s in found.slices[:-1]]
    rest = ~np.isin(site, shown)
    alone = model.evaluate(X[rest], y[rest])
    assert found.slices[-1].rows == alone.rows == rest.sum()
    for name in ("r2", "rmse", "mae"):
        close(found.slices[-1].figures[name], alone[name], 1e-9)
    close(found.slices[-1].figures["rmse_of_constant"], alone.figures["rmse"].constant, 1e-9)


def test_light_keeps_the_rest(tmp_path):
    model, X, y, w = several(True)
    full, light = model.evaluate(X, y, weight=w), model.evaluate(X, y, weight=w, light=True)
    assert light.auc is None and light.decomposition is None and not light.calibration
    assert {k: v for k, v in full.figures.items() if k != "auc"} == light.figures
    number = model_of(None, learners.widrow_hoff(), X, X[:, 0])
    assert math.isnan(number.evaluate(X, X[:, 1], light=True).figures["mae"].constant)


# ---------------------------------------------------------------- the command


def saved(tmp_path, model):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_the_command(tmp_path):
    model, X, y, w = binary(True)
    path, file = saved(tmp_path, model), table(tmp_path / "rows.csv", X, y, w=w, site=["x"] * len(y))
    code, out, err = run("evaluate", path, file, "--by", "site", "--weight", "w", "--chart", tmp_path / "c.svg")
    assert (code, err) == (0, "")
    found = model.evaluate(file, by="site", weight="w")
    assert out.splitlines()[1:-1] == str(found).splitlines()
    assert out.splitlines()[0].startswith(f"{file}  {found.rows} rows, weight ")
    assert (tmp_path / "c.svg").read_text().startswith("<svg")
    code, out, _ = run("evaluate", path, file, "--json", "--by", "site", "--weight", "w")
    assert code == 0 and json.loads(out) == {"model": str(path), "data": file, **found.to_dict()}
    plain = json.loads(run("evaluate", path, file, "--json", "--unweighted")[1])
    assert plain["weight"] == plain["rows"] == 300


@pytest.mark.parametrize("kind", ["several", "numbers"])
def test_charts(tmp_path, kind):
    model, X, y, _ = several()
    if kind == "numbers":
        y = X[:, 0]
        model = model_of(None, learners.widrow_hoff(), X, y)
    file = table(tmp_path / "rows.csv", X, y)
    code, out, err = run("evaluate", saved(tmp_path, model), file, "--chart", tmp_path / "c.html")
    assert (code, err) == (0, "") and out.endswith(f"chart: {tmp_path / 'c.html'}\n")
    assert "vegaEmbed" in (tmp_path / "c.html").read_text()


def test_from_learn_to_evaluate(tmp_path):
    from hindsight.sources import load_sample

    sample = load_sample("breast-cancer", None)
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", *sample.names, "diagnosis"])
        writer.writerows([f"p{k}", *x, t] for k, (x, t) in enumerate(zip(sample.X.tolist(), sample.y, strict=True)))
    learn = ("learn", "sample:breast-cancer", "--learner", "descent", "--loss", "logistic", "--scale", "standard")
    assert run(*learn, "--save", tmp_path / "model", "--progress", "none")[0] == 0
    code, out, err = run("evaluate", tmp_path / "model", tmp_path / "rows.csv")  # it knows the name of the target
    assert (code, err) == (0, "")
    other = run("evaluate", tmp_path / "model", "sample:breast-cancer")
    assert other[0] == 0 and other[1].splitlines()[1:] == out.splitlines()[1:]
    assert "while learning" in out


def test_bad_input_is_one_line(tmp_path):
    model, X, y, _ = binary()
    path = saved(tmp_path, model)
    good = table(tmp_path / "rows.csv", X, y)
    (tmp_path / "none.csv").write_text("a,b,c,z\n1,2,3,yes\n")
    (tmp_path / "empty.csv").write_text("a,b,c,y\n")
    (tmp_path / "gap.csv").write_text("a,b,c,y\n1,2,3,yes\n1,2,3,\n")
    (tmp_path / "zero.csv").write_text("a,b,c,y,w\n1,2,3,yes,0\n")
    (tmp_path / "large.csv").write_text("a,b,c,y\n1e308,-1e308,1e308,yes\n")
    model.settings = {}
    model.save(tmp_path / "mute")
    number = model_of(None, learners.widrow_hoff(), X, X[:, 0])
    number.save(tmp_path / "number")
    perceptron = binary(learner=learners.perceptron())[0]
    perceptron.save(tmp_path / "perceptron")
    for args, message in (
        ((path, tmp_path / "none.csv"), "none.csv: there is no column 'y'"),
        ((path, good, "--target", "z"), "there is no column 'z'"),
        ((path, tmp_path / "empty.csv"), "there is no row"),
        ((path, tmp_path / "gap.csv"), "gap.csv, line 3, column 'y': the target is missing"),
        ((path, tmp_path / "zero.csv", "--weight", "w"), "there is no row with a weight above 0"),
        ((path, good, "--weight", "w"), "there is no column 'w'"),
        ((path, good, "--target", "b"), "the model predicts from column 'b': it cannot be the target"),
        ((path, good, "--weight", "b"), "the model predicts from column 'b': it cannot be the weight"),
        ((path, good, "--by", "site"), "there is no column 'site'"),
        ((path, good, "--weight", "a", "--unweighted"), "--unweighted and --weight"),
        ((path, tmp_path / "nothing.csv"), "nothing.csv"),
        ((tmp_path / "mute", good), "rows.csv: the model does not say which column it learnt: --target COLUMN"),
        ((tmp_path / "number", good), "rows.csv, line 2, column 'y': 'yes' is not a number"),
        ((tmp_path / "perceptron", good, "--chart", tmp_path / "c.svg"), "no probabilities"),
        ((path, good, "--chart", tmp_path / "c.svg", "--light"), "--chart and --light"),
        ((path, good, "--chart", tmp_path / "c.pdf"), "a chart must end in"),
        ((path, good, "--chart", path), "would be overwritten"),
        ((path, good, "--chart", tmp_path / "no" / "c.svg"), "cannot be written: No such file or directory"),
        ((good, path), "not a complete model file"),
    ):
        code, out, err = run("evaluate", *args)
        assert (code, out) == (2, ""), (args, err)
        assert err.startswith("error: ") and message in err and len(err.splitlines()) == 1, err


def test_bad_input_in_python():
    model, X, y, _ = binary()
    made = hindsight.DescentClassifier("logistic").fit(X, y)
    for call, message in (
        (lambda: model.evaluate(X, y, by=["a"] * 3), "by has 3 values"),
        (lambda: model.evaluate(X, y[:5]), "targets"),
        (lambda: model.evaluate(X[:, :2], y), "there is no column 'a'"),
        (lambda: model.evaluate(X, y, weight=np.full(300, -1.0)), "weight"),
        (lambda: model.evaluate(X, y, by="site"), "there is no column 'site'"),
        (lambda: hindsight.evaluate(made, X), "needs the targets"),
        (lambda: hindsight.evaluate(made, X, y, target="y"), "target is for a model"),
        (lambda: hindsight.evaluate(made, X, y, by="site"), "by must have the value of each row"),
        (lambda: hindsight.evaluate(made, X, y, weight=np.ones(3)), "one weight per row"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_sparse_text_has_a_place_for_the_target(tmp_path):
    X = rows(40)
    lines = "".join(f"{1 if x[0] > 0 else -1} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) + "\n" for x in X)
    (tmp_path / "rows.svm").write_text(lines)
    learn = ("learn", tmp_path / "rows.svm", "--learner", "perceptron", "--save", tmp_path / "model")
    assert run(*learn, "--progress", "none")[0] == 0
    code, out, err = run("evaluate", tmp_path / "model", tmp_path / "rows.svm")
    assert (code, err) == (0, "") and "accuracy" in out
    code, _, err = run("evaluate", tmp_path / "model", tmp_path / "rows.svm", "--by", "1")
    assert code == 2 and "not those of a table" in err
