"""Plots of certificates and models: what they show is what the certificate and the model say."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import hindsight
from hindsight.charts.drawing import thinned


@pytest.fixture(scope="module")
def learnt():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(300)
    model = hindsight.WidrowHoffRegressor(0.05).fit(X, y)
    return X, y, model, model.certify(X, y)


def layers(chart):
    return chart.to_dict()["layer"]


def test_regret_is_that_of_the_certificate(learnt, tmp_path):
    certificate = learnt[3]
    chart = hindsight.plot_regret(certificate)
    area, lines = layers(chart)
    names = ("this run", "the best fixed predictor", "guaranteed at most")
    drawn = {name: [v["value"] for v in lines["data"]["values"] if v["line"] == name] for name in names}
    curve = certificate.curve
    assert drawn == dict(zip(names, (curve.lost.tolist(), curve.best.tolist(), curve.bound.tolist()), strict=True))
    assert len(area["data"]["values"]) == len(curve.rounds)
    title = chart.to_dict()["title"]
    assert title["text"].startswith("HOLDS") and "regret" in title["subtitle"][1]
    chart.save(str(tmp_path / "regret.png"))
    chart.save(str(tmp_path / "regret.svg"))
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")


def test_a_void_certificate_is_drawn_without_a_guarantee(learnt):
    X, y, *_ = learnt
    with pytest.warns(hindsight.AssumptionWarning):
        model = hindsight.WidrowHoffRegressor(0.1, "explicit").fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.verdict.value == "VOID"
    lines = layers(hindsight.plot_regret(certificate))[1]["data"]["values"]
    assert {v["line"] for v in lines} == {"this run", "the best fixed predictor"}


def test_a_certificate_without_a_curve_is_drawn_at_its_milestones(learnt):
    kept = replace(learnt[3], curve=None)
    lines = layers(hindsight.plot_regret(kept))[1]["data"]["values"]
    path = kept.path
    assert [v["value"] for v in lines if v["line"] == "the comparator"] == [s.comparator / s.rounds for s in path]
    assert [v["value"] for v in lines if v["line"] == "guaranteed at most"] == [s.bound / s.rounds for s in path]


def test_one_panel_per_class(learnt):
    X = learnt[0]
    labels = np.argmax(X, axis=1)
    found = hindsight.PerceptronClassifier().fit(X, labels).certify(X, labels)
    for plot in (hindsight.plot_regret, hindsight.plot_potential):
        drawn = plot(found).to_dict()["concat"]
        assert [panel["title"]["text"].split(":")[0] for panel in drawn] == ["0", "1", "2"]


def test_losses_that_are_means_already_are_not_divided(learnt):
    X, y, *_ = learnt
    model = hindsight.GradientDescentRegressor(rounds=8).fit(X, y)
    certificate = model.certify(X, y)
    lines = layers(hindsight.plot_regret(certificate))[1]["data"]["values"]
    assert [v["value"] for v in lines if v["line"] == "this run"] == [s.measured for s in certificate.path]


def test_potential_falls_to_that_of_the_certificate(learnt):
    line = layers(hindsight.plot_potential(learnt[3]))[0]
    assert [v["potential"] for v in line["data"]["values"]] == [s.potential for s in learnt[3].path]


def test_a_certificate_without_a_course_is_refused(learnt):
    bare = replace(learnt[3], path=(), curve=None)
    with pytest.raises(ValueError, match=r"\(implicit Widrow-Hoff, as met\) keeps no course of the run"):
        hindsight.plot_regret(bare)
    lost = replace(learnt[3], path=tuple(replace(s, potential=math.nan) for s in learnt[3].path))
    with pytest.raises(ValueError, match="follows no potential"):
        hindsight.plot_potential(lost)


def test_weights_are_sorted_with_the_rival_beside_them(learnt):
    _, _, model, certificate = learnt
    bars, ticks = layers(hindsight.plot_weights(model, names=["a", "b", "c"], certificate=certificate))[1:]
    rows = bars["data"]["values"]
    assert [row["feature"] for row in rows] == ["b", "a", "c"]
    assert [row["weight"] for row in rows] == [model.coef_[j] for j in (1, 0, 2)]
    assert [row["best"] for row in ticks["data"]["values"]] == [certificate.comparator.u[j] for j in (1, 0, 2)]
    assert len(layers(hindsight.plot_weights(model, top=2))[1]["data"]["values"]) == 2
    with pytest.raises(ValueError, match="one name for each of the 3 features, got 1"):
        hindsight.plot_weights(model, names=["a"])


def test_names_of_features_are_text_and_nothing_else(learnt):
    hostile = ["</script><script>alert(1)</script>", "'] + alert(1) + ['", 'same"name']
    spec = hindsight.plot_weights(learnt[2], names=hostile).to_dict()
    expression = spec["layer"][1]["encoding"]["y"]["axis"]["labelExpr"]
    assert expression.endswith("[datum.value]")
    assert set(json.loads(expression.removesuffix("[datum.value]"))) == {
        "</script><script>alert(1)</sc…", "'] + alert(1) + ['", 'same"name'
    }  # fmt: skip
    X, labels = learnt[0], np.argmax(learnt[0], axis=1)
    with pytest.raises(ValueError, match="3 weights for each feature"):
        hindsight.plot_weights(hindsight.PerceptronClassifier().fit(X, labels))


def test_the_link_is_that_of_the_model(learnt):
    X = learnt[0]
    y = (X[:, 0] > 0).astype(int)
    model = hindsight.IsotronClassifier(rounds=5).fit(X, y)
    dots, line = layers(hindsight.plot_link(model, X, y))
    assert [v["mean"] for v in line["data"]["values"]] == model.link_.mean.tolist()
    groups = dots["data"]["values"]
    assert sum(g["rows"] for g in groups) == 300
    assert np.mean([g["mean"] for g in groups]) == pytest.approx(y.mean())
    assert groups[0]["mean"] < 0.2 and groups[-1]["mean"] > 0.8
    many = hindsight.IsotronClassifier(rounds=2).fit(X, np.argmax(X, axis=1))
    assert len(hindsight.plot_link(many, X, np.argmax(X, axis=1)).to_dict()["concat"]) == 3
    number = hindsight.IsotronRegressor(rounds=2).fit(X, y)
    assert len(layers(hindsight.plot_link(number, X, y))) == 2
    with pytest.raises(ValueError, match="WidrowHoffRegressor has learnt no link"):
        hindsight.plot_link(learnt[2])


def test_reliability_takes_one_forecast_or_several():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    one = hindsight.plot_reliability(y, p).to_dict()["concat"]
    assert len(one) == 1 and "consistency band" in one[0]["vconcat"][0]["title"]["subtitle"][-1]
    assert len(hindsight.plot_reliability(y, {"a": p, "b": 1 - p}, band="none").to_dict()["concat"]) == 2
    assert hindsight.plot_reliability(p, p, loss="quadratic").to_dict()["concat"]
    with pytest.raises(ValueError, match="band must be one of"):
        hindsight.plot_reliability(y, p, band="wide")


def test_long_curves_are_thinned_and_keep_their_extremes():
    x = np.arange(1e6)
    y = np.random.default_rng(0).standard_normal(x.size)
    y[123_456], y[654_321], y[5] = 99.0, -99.0, np.nan
    kept = list(thinned(x, y))
    assert len(kept) <= 2000 and (123_456.0, 99.0) in kept and (654_321.0, -99.0) in kept
    assert [k[0] for k in kept] == sorted(k[0] for k in kept) and kept[0][0] == 0.0 and kept[-1][0] == 1e6 - 1
    assert list(thinned(x[:5], y[:5])) == list(zip(x[:5].tolist(), y[:5].tolist(), strict=True))
