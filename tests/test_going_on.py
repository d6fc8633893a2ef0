"""Models that go on: exactly as if all rows had come in one stream, in Python and by the command, and certified."""

import json
import re

import numpy as np
import pandas as pd
import polars
import pytest

import hindsight
from commands import run
from hindsight.formatting import percent


def frame(n=900, seed=0, target="label"):
    """A table with missing numbers, categories, dates and words for true."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(3)
    colour = rng.choice(["red", "green", "blue"], n)
    table = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "colour": pd.Categorical(colour),
            "when": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
            "member": rng.choice(["yes", "no"], n),
        }
    )
    score = x + (colour == "red") + rng.normal(size=n)
    if target == "label":
        table["y"] = np.where(score > 0.5, "buys", "leaves")
    elif target == "class":
        table["y"] = np.select([score > 1, score > 0], ["high", "middle"], "low")
    else:
        table["y"] = score.round(3)
    return table


def equal(a, b):
    """Whether two models are the same in every bit that learning made."""
    state = ("names", "spaces", "space", "sums")
    return (
        np.array_equal(a.weights, b.weights)
        and a.facts == b.facts
        and a.names == b.names
        and all(np.array_equal(a.progress[k], b.progress[k]) for k in ("mistakes", "constant", "order", "rows"))
        and all(a.preparation["state"].get(k) == b.preparation["state"].get(k) for k in state)
    )


@pytest.mark.parametrize("missing", ["indicator", "zero", "mean", "skip"])
@pytest.mark.parametrize(("target", "options"), [
    ("label", {"learner": "descent", "loss": "logistic"}),
    ("class", {"learner": "perceptron"}),
    ("number", {"learner": "widrow-hoff"}),
])  # fmt: skip
def test_parts_are_learnt_as_one_stream(tmp_path, missing, target, options):
    table = frame(target=target)
    options |= {"missing": missing, "labels": ["high", "low", "middle"] if target == "class" else None}
    whole = hindsight.learn(table, "y", **options)
    for cuts in ((450,), (60, 61), (300, 310, 800)):
        first, *rest = np.split(np.arange(len(table)), cuts)
        model = hindsight.learn(table.iloc[first], "y", **options)
        for k, part in enumerate(rest):
            if k == 1:
                model.save(tmp_path / "model")
                model = hindsight.load(tmp_path / "model")
            assert model.partial_fit(table.iloc[part]) is model
        assert equal(model, whole), cuts
        assert [part["rows"] for part in model.progress["parts"]][-1] <= len(rest[-1])


def test_the_default_learner_goes_on_too():
    table = frame()
    whole = hindsight.learn(table, "y")
    model = hindsight.learn(table.iloc[:700], "y").partial_fit(table.iloc[700:])
    assert model.names == whole.names
    assert np.allclose(model.weights, whole.weights, rtol=1e-9, atol=1e-12)  # features that join change the last digits


def test_by_the_command(tmp_path):
    table = frame()
    paths = [tmp_path / name for name in ("all.csv", "a.csv", "b.csv", "c.csv")]
    for path, part in zip(paths, (slice(None), slice(400), slice(400, 401), slice(401, None)), strict=True):
        table.iloc[part].to_csv(path, index=False)
    model = [tmp_path / name for name in ("all.model", "a.model", "b.model", "c.model")]
    given = ("--target", "y", "--learner", "descent", "--loss", "logistic", "--missing", "mean")
    assert run("learn", paths[0], *given, "--save", model[0])[0] == 0
    assert run("learn", paths[1], *given, "--save", model[1])[0] == 0
    assert run("learn", paths[2], "--from", model[1], "--save", model[2])[0] == 0
    code, out, err = run("learn", paths[3], "--from", model[2], "--save", model[3], "--certify", "--target", "y")
    assert code == 0 and "going on after 401 rows" in err and "BROKEN" not in out, (out, err)
    assert "900 rows" in out
    whole, last = hindsight.load(model[0]), hindsight.load(model[3])
    assert equal(whole, last) and len(last.progress["parts"]) == 3
    code, out, _ = run("certify", model[3], *paths[1:])
    assert code == 0 and "over 900 rounds" in out
    assert run("certify", model[3], paths[1], paths[3])[0] == 2  # a part is missing
    assert str(last.certify([str(path) for path in paths[1:]])) == str(whole.certify(str(paths[0])))
    assert run("evaluate", model[3], paths[0])[0] == 0


@pytest.mark.parametrize(("options", "message"), [
    (("--learner", "perceptron"), "--learner cannot be given with --from"),
    (("--target", "x"), "--target cannot be given with --from"),
    (("--passes", 2), "--passes cannot be given with --from"),
])  # fmt: skip
def test_what_is_settled_cannot_be_said_again(tmp_path, options, message):
    frame().to_csv(tmp_path / "a.csv", index=False)
    assert run("learn", tmp_path / "a.csv", "--target", "y", "--save", tmp_path / "m")[0] == 0
    code, _, err = run("learn", tmp_path / "a.csv", "--from", tmp_path / "m", *options)
    assert code == 2 and message in err and len(err.splitlines()) == 1


def test_a_row_that_cannot_be_learnt_leaves_the_model_as_it_was(tmp_path):
    table = frame()
    model = hindsight.learn(table, "y", learner="descent", loss="logistic")
    before = model.weights.copy()
    with pytest.raises(ValueError, match=re.escape("label 'stays' is not one of buys, leaves")):
        model.partial_fit(table.assign(y=["buys", *["stays"] * 899]))
    with pytest.raises(ValueError, match="column 'x'"):
        model.partial_fit(table.assign(x="far"))
    assert np.array_equal(model.weights, before) and model.progress["rows"] == 900
    estimator = hindsight.PerceptronClassifier().fit([[1.0], [-1.0]], [1, -1])
    estimator.save(tmp_path / "estimator")
    table.to_csv(tmp_path / "a.csv", index=False)
    code, _, err = run("learn", tmp_path / "a.csv", "--from", tmp_path / "estimator")
    assert code == 2 and "partial_fit" in err and len(err.splitlines()) == 1


def test_new_categories_join_and_new_rows_are_predicted_from_their_columns():
    table = frame()
    model = hindsight.learn(table, "y", learner="descent", loss="logistic")
    later = table.assign(colour="violet")
    model.partial_fit(later)
    assert "colour=violet" in model.names and model.weights.shape[1] == len(model.names) + 1
    p = model.predict_proba(later.drop(columns="y").iloc[::-1])
    assert p.shape == (900, 2) and np.allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(model.predict(later), np.where(p[::-1, 1] > 0.5, "leaves", "buys"))


LABELS = {
    "booleans": [False, True],
    "integers": [-1, 3],
    "floats": [0.5, 1.0],
    "text": ["a", "b"],
    "digits as text": ["0", "1"],
    "more than two": [1, 2, 3],
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_in_the_type_they_came_in(tmp_path, kind):
    values = np.array(LABELS[kind])
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = values[np.digitize(X[:, 0], [-0.5, 0.5][: len(values) - 1])]
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    table.to_parquet(tmp_path / "t.parquet")
    table.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    table.to_csv(tmp_path / "t.csv", index=False)
    came = {
        "frame": table, "polars": polars.from_pandas(table), "parquet": tmp_path / "t.parquet",
        "json": tmp_path / "t.jsonl", "csv": tmp_path / "t.csv", "dicts": table.to_dict("records"),
        "array": (X, y), "objects": (X, np.array(y.tolist(), object)),
    }  # fmt: skip
    for name, data in came.items():
        arrays = name in ("array", "objects")
        model = hindsight.learn(data, **({} if arrays else {"target": "y"}), learner="perceptron")
        rows = X if arrays else table.drop(columns="y")
        found = model.predict(rows)
        wanted = values if name != "csv" or kind != "digits as text" else values.astype(int)
        assert found.dtype.kind == wanted.dtype.kind and set(found.tolist()) <= set(wanted.tolist()), name
        model.save(tmp_path / "model")
        again = hindsight.load(tmp_path / "model").predict(rows)
        assert again.dtype == found.dtype and np.array_equal(again, found)
        model.partial_fit(data)
        if not arrays and kind != "booleans":  # which CSV spells out
            model.partial_fit(tmp_path / "t.csv")
        assert model.predict(rows).dtype == found.dtype  # that of the first rows
    shown = run("predict", tmp_path / "model", tmp_path / "t.csv")[1].splitlines()[1:]
    assert set(shown) <= set(model.labels)


def test_a_model_that_does_not_say_of_what_type_its_labels_are_gives_text(tmp_path):
    model = hindsight.learn(pd.DataFrame({"x": [1.0, -1.0] * 9, "y": [1, 0] * 9}), "y", learner="perceptron")
    assert model.preparation.pop("labels") == "integer"
    model.save(tmp_path / "old")
    assert hindsight.load(tmp_path / "old").predict(pd.DataFrame({"x": [2.0, -2.0]})).tolist() == ["1", "0"]
    for lie in ("boolean", "number", 1):
        model.preparation["labels"], model.labels = lie, ["1", "2"]
        model.save(tmp_path / "lies")
        with pytest.raises(hindsight.ModelError):
            hindsight.load(tmp_path / "lies")


def test_frames_of_any_kind_files_and_arrays_are_the_same_rows(tmp_path):
    table = frame().drop(columns="when")  # whose hour is not written in CSV
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    options = {"learner": "descent", "loss": "logistic"}
    models = [hindsight.learn(data, "y", **options) for data in
              (table, polars.from_pandas(table), tmp_path / "a.parquet", str(tmp_path / "a.csv"))]  # fmt: skip
    for model in models[1:]:
        assert np.array_equal(model.weights, models[0].weights) and model.names == models[0].names
        assert np.array_equal(model.predict(table), models[0].predict(tmp_path / "a.parquet"))
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50.0) % 7
    model = hindsight.learn((X, y), scale="standard", learner="widrow-hoff", certify=True)
    assert model.certificate.verdict.value in ("HOLDS", "VOID") and model.predict(X).shape == (50,)
    assert np.array_equal(
        model.predict(X), model.predictions(model.margins((X - X.mean(0)) / X.std(0)))
    ) or np.allclose(model.predict(X), model.predictions(model.margins((X - X.mean(0)) / X.std(0))))


def test_an_estimator_fits_an_open_source(tmp_path):
    table = frame(target="class")
    table.to_csv(tmp_path / "a.csv", index=False)
    source = hindsight.open_source(tmp_path / "a.csv", "y", strict=False, missing="indicator", chunk=4000)
    assert sum(len(chunk) for chunk in source) == 900
    model = hindsight.PerceptronClassifier().fit(source)
    chunks = list(source)
    again = hindsight.PerceptronClassifier()
    for chunk in chunks:
        chunk.X.resize((len(chunk), len(source.names)))
        again.partial_fit(chunk.X, chunk.y, classes=["high", "low", "middle"])
    assert np.array_equal(model.coef_, again.coef_) and len(model.facts_) == 3
    assert model.total_facts_.mistakes == sum(facts.mistakes for facts in model.facts_)
    with pytest.raises(ValueError, match="open it with a target"):
        hindsight.PerceptronClassifier().fit(hindsight.open_source(tmp_path / "a.csv", strict=False, missing="zero"))


def test_facts_have_the_loss_that_the_command_prints(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40.0) % 5 / 4
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_csv(tmp_path / "a.csv", index=False)
    for name, learner in (("widrow-hoff", hindsight.WidrowHoffRegressor()), ("eg", hindsight.EGRegressor())):
        facts = learner.fit(X, y).facts_
        out = run("learn", tmp_path / "a.csv", "--target", "y", "--learner", name, "--details")[1]
        assert f"squared error {facts.loss:.6g}" in out and repr(facts).startswith("Facts(40 rounds, loss ")


def test_learners_are_shown_and_compared_in_the_same_units(tmp_path):
    from hindsight.forecast import compare

    table = frame(400).drop(columns="when")
    table.to_csv(tmp_path / "a.csv", index=False)
    given = ("learn", tmp_path / "a.csv", "--target", "y", "--learner", "perceptron,descent", "--eta", "0.01,0.1")
    code, out, err = run(*given, "--compare", "--predictions", tmp_path / "p.csv")
    assert code == 0 and "log loss" in out and "accuracy" in out, (out, err)
    rows = {line[:18].strip(): line for line in out.partition("comparison")[0].splitlines()}
    y, constant = table.y == "leaves", (table.y == "leaves").mean()
    entropy = -constant * np.log(constant) - (1 - constant) * np.log(1 - constant)
    assert rows["the best constant"].split()[-1] == f"{entropy:#.3g}" and percent(max(constant, 1 - constant)) in out
    models = [hindsight.learn(table, "y", learner="descent", loss="logistic", eta=eta) for eta in (0.01, 0.1)]
    for model, name in zip(models, ("[2] descent η = 0.", "[3] descent η = 0."), strict=True):
        assert f"{model.facts[0].mean_loss:#.3g}" in rows[name]
    found = json.loads(run(*given, "--compare", "--json")[1])["comparison"]
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert predicted.target.tolist() == table.y.tolist()
    named = {"[1] perceptron": (predicted["[1] perceptron"] == "leaves").astype(float)}
    named |= {name: predicted[f"{name} probability"] for name in ("[2] descent η = 0.01", "[3] descent η = 0.1")}
    naive = compare(y.astype(float), named, anytime=True)
    assert naive.to_dict()["pairs"] == found["pairs"]
    for path in (tmp_path / "p.jsonl", tmp_path / "p.parquet"):
        assert run(*given, "--predictions", path)[0] == 0
        same = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_json(path, lines=True)
        pd.testing.assert_frame_equal(same, predicted, check_dtype=False)
    code, _, err = run("learn", tmp_path / "a.csv", "--target", "y", "--learner", "perceptron", "--compare")
    assert code == 2 and "--compare needs at least two learners" in err


def test_numbers_are_compared_with_bounds(tmp_path):
    table = frame(400, target="number")
    table.to_csv(tmp_path / "a.csv", index=False)
    given = ("learn", tmp_path / "a.csv", "--target", "y", "--learner", "widrow-hoff,ridge", "--compare")
    code, out, _ = run(*given, "--bounds", "-10,10")
    assert code == 0 and "RMSE" in out and "declared [-10, 10]" in out
    assert "VOID" in run(*given)[1] and run(*given, "--checkpoint", tmp_path / "c")[0] == 2


def test_messages_are_in_the_words_of_the_command(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "9,5\n-8,2\n" * 20)
    out = run("learn", tmp_path / "a.csv", "--target", "y", "--learner", "widrow-hoff", "--update", "explicit")[1]
    assert "use --update implicit" in out and "update='" not in out


def test_rows_of_a_pipe_are_shown_as_they_come():
    import subprocess
    import sys
    import time

    process = subprocess.Popen(
        [sys.executable, "-m", "hindsight", "learn", "-", "--target", "y", "--learner", "widrow-hoff"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdin.write("x,y\n" + "".join(f"{k},{k * 0.5}\n" for k in range(120)))
    process.stdin.flush()
    seen = ""
    while " 100 " not in seen:  # while the pipe is open
        line = process.stderr.readline()
        assert line, seen
        seen += line
    time.sleep(0.1)
    process.stdin.write("120,60.0\n")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "\n121 rows" in out


def test_who_waits_for_a_pipe_can_be_told_to_end():
    import signal
    import subprocess
    import sys

    with subprocess.Popen(
        [sys.executable, "-m", "hindsight", "learn", "-", "--target", "y", "--learner", "widrow-hoff"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        process.stdin.write("x,y\n" + "".join(f"{k},{k * 0.5}\n" for k in range(120)))
        process.stdin.flush()
        while " 100 " not in (line := process.stderr.readline()):
            assert line
        process.send_signal(signal.SIGTERM)
        assert "Fatal" not in process.stderr.read()
    assert process.returncode == 128 + signal.SIGTERM
