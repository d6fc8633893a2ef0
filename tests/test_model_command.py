"""`hindsight predict`, `inspect` and `export`, as a user types them."""

import csv
import io
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import hindsight
from hindsight.formatting import brief
from hindsight.online import learners
from hindsight.online.run import Run, play
from hindsight.rows.scaling import scaled
from hindsight.storage.model import load, save_estimator
from hindsight.training.model import Model, open_model
from hindsight.training.prepare import columns_by_name
from test_cli import run

pytestmark = pytest.mark.filterwarnings("ignore::hindsight.AssumptionWarning")
COLUMNS = ["height", "width", "age"]


def data(rows=30):
    rng = np.random.default_rng(0)
    return np.round(rng.uniform(-1, 1, (rows, 3)), 3)


def regression(tmp_path, **options):
    X = data()
    made = Run(learners.widrow_hoff(eta=0.25, update="explicit"), 3)
    play([made], X, [X @ [1.0, -2.0, 0.5] + 0.25])
    model = Model([made], COLUMNS, settings={"eta": 0.25, "passes": 1, "limit": None}, digest="sha256:12ab", **options)
    model.versions = {"hindsight": "0.1.0"}
    model.save(tmp_path / "model")
    return model, X


def classification(tmp_path, labels, learner=None):
    X = data()
    runs = [Run(learner or learners.perceptron(), 3) for _ in range(1 if len(labels) == 2 else len(labels))]
    low = 0.0 if runs[0].learner.targets == "unit" else -1.0
    which = (X @ [1.0, -2.0, 0.5] > 0).astype(int) + (len(labels) > 2) * (X[:, 0] > 0)
    if len(labels) == 2:
        play(runs, X, [np.where(which == 1, 1.0, low)])
    else:
        play(runs, X, [np.where(which == k, 1.0, low) for k in range(len(labels))])
    model = Model(runs, COLUMNS, labels)
    model.save(tmp_path / "model")
    return model, X


def table(path, X, names, extra=None):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "note"] if extra else names)
        writer.writerows([*map(repr, row), extra] if extra else map(repr, row) for row in X.tolist())
    return path


def test_predictions_are_those_of_the_model_bit_for_bit(tmp_path):
    model, X = regression(tmp_path)
    file = table(tmp_path / "rows.csv", X[:, [2, 0, 1]], ["age", "height", "width"], "other columns do not matter")
    code, out, err = run("predict", tmp_path / "model", file)
    assert (code, err) == (0, "")
    head, *lines = out.splitlines()
    assert head == "prediction"
    assert [float(v).hex() for v in lines] == [v.hex() for v in model.predict(X).tolist()]


def test_predictions_into_a_file(tmp_path):
    _, X = regression(tmp_path)
    file = table(tmp_path / "rows.csv", X, COLUMNS)
    plain = run("predict", tmp_path / "model", file, "--margins")[1]
    assert run("predict", tmp_path / "model", file, "--margins", "--output", tmp_path / "out.csv") == (0, "", "")
    assert (tmp_path / "out.csv").read_text() == plain
    assert plain.startswith("prediction,margin\n") and plain.splitlines()[1].count(",") == 1
    file.write_text(file.read_text() + "1,2,three\n")
    code, out, err = run("predict", tmp_path / "model", file, "--output", tmp_path / "out.csv")
    assert code == 2 and out == "" and "line 32" in err and "three" in err and len(err.splitlines()) == 1
    assert (tmp_path / "out.csv").read_text() == plain
    assert sorted(os.listdir(tmp_path)) == ["model", "out.csv", "rows.csv"]


def test_labels_are_quoted_and_logistic_margins_have_probabilities(tmp_path):
    learner = learners.descent("logistic", eta=0.5)
    model, X = classification(tmp_path, ['no, "never"', "yes"], learner)
    code, out, _ = run("predict", tmp_path / "model", table(tmp_path / "rows.csv", X, COLUMNS), "--margins")
    head, *rows = csv.reader(io.StringIO(out))
    assert code == 0 and head == ["prediction", "probability", "margin"]
    assert [row[0] for row in rows] == model.predict(X).tolist() and {row[0] for row in rows} == set(model.labels)
    for _, p, z in rows:
        assert math.isclose(float(p), 1 / (1 + math.exp(-float(z))), rel_tol=1e-12)
        assert (float(p) > 0.5) == (float(z) > 0)


def test_one_margin_a_class(tmp_path):
    model, X = classification(tmp_path, ["a", "b", "c,d"])
    out = run("predict", tmp_path / "model", table(tmp_path / "rows.csv", X, COLUMNS), "--margins")[1]
    head, *rows = csv.reader(io.StringIO(out))
    assert head == ["prediction", "margin a", "margin b", "margin c,d"]
    z = np.array([[float(v) for v in row[1:]] for row in rows])
    assert z.tobytes() == model.margins(X).tobytes()
    assert [row[0] for row in rows] == model.predict(X).tolist()


def test_bad_models_and_rows_are_one_line(tmp_path):
    regression(tmp_path)
    file = table(tmp_path / "rows.csv", data(3)[:, :2], COLUMNS[:2])
    (tmp_path / "pickle").write_bytes(b"\x80\x04\x95" + bytes(100))
    for args, message in (
        (("predict", tmp_path / "none", file), "none: cannot be read: No such file or directory"),
        (
            ("predict", tmp_path / "pickle", file),
            "not a complete model file: it does not start with the size of a header",
        ),
        (("predict", file, tmp_path / "model"), "rows.csv: not a complete model file"),
        (("predict", tmp_path / "model", file), "there is no column 'age'"),
        (("predict", tmp_path / "model", tmp_path / "nothing.csv"), "nothing.csv"),
        (("inspect", tmp_path), "Is a directory"),
        (("export", tmp_path / "pickle"), "not a complete model file"),
        (("export", tmp_path / "model", "--output", tmp_path / "no" / "where"), "No such file or directory"),
    ):
        code, out, err = run(*args)
        assert (code, out) == (2, "") and err.startswith("error: ") and message in err
        assert len(err.splitlines()) == 1


def test_a_card(tmp_path):
    regression(tmp_path)
    code, out, _ = run("inspect", tmp_path / "model", "--top", "2")
    assert code == 0
    model = open_model(str(tmp_path / "model"))
    facts, w = model.facts[0], dict(zip([*COLUMNS, "intercept"], model.weights[0], strict=True))
    assert out.splitlines() == [
        f"{tmp_path / 'model'}",
        "  learner         widrow-hoff, explicit step, η = 0.25, loss square(1), geometry euclidean",
        "  features        3 (named), with an intercept",
        f"  while learning  off by {brief(math.sqrt(facts.square / 30))} on average (root mean square)",
        "  learnt from     rows of SHA-256 sha256:12ab",
        "  settings        eta 0.25, passes 1",
        "facts",
        f"  30 rounds, squared error {facts.square:.6g}, mean {facts.square / 30:.6g}",
        f"  max |x|₂ = {facts.x2:.6g}, max |x|∞ = {facts.xinf:.6g}, Σ|g|² = {facts.gradient:.6g}",
        "weights: 3 that are not 0, the largest:",
        f"  width     {brief(w['width']):>14}",
        f"  height    {brief(w['height']):>14}",
        f"  intercept {brief(w['intercept']):>14}",
        "certificate: none was made",
        "versions: hindsight 0.1.0",
    ]


def test_a_card_of_an_estimator_with_a_certificate(tmp_path):
    X = data()
    made = hindsight.WinnowClassifier(average="after").fit(
        X, np.array(["u", "v", "w"])[np.arange(30) % 3], certify=True
    )
    save_estimator(made, tmp_path / "model")
    code, out, _ = run("inspect", tmp_path / "model")
    assert code == 0 and "winnow, explicit step, η = 0.1" in out and "mean of the weights after each step" in out
    assert "settings  estimator WinnowClassifier, average after, balanced True, eta 0.1" in out
    assert "3 classes, each against the rest: u, v, w" in out and "column 0" in out
    for line in made.certificate_.lines():
        assert f"  {line}" in out
    found = json.loads(run("inspect", tmp_path / "model", "--json")[1])
    assert found["facts"][0]["rounds"] == 30 and found["certificate"]["verdict"] == made.certificate_.verdict.value
    assert [entry["weight"] for entry in found["largest"]] == sorted(
        np.atleast_2d(made.coef_).ravel().tolist(), key=lambda v: -abs(v)
    )[:10]


def test_a_name_that_no_terminal_can_show(tmp_path):
    run_ = Run(learners.perceptron(), 1, start=np.array([1.0, 0.0]))
    Model([run_], ["caf\udce9\n"], ["a", "b"]).save(tmp_path / "model")
    code, out, _ = run("inspect", tmp_path / "model")
    assert code == 0 and "caf" in out
    assert json.loads(run("export", tmp_path / "model")[1])["outputs"][0]["weights"] == {"caf\udce9\n": 1.0}


def by_hand(exported, row):
    z = [math.fsum(o["weights"].get(k, 0.0) * v for k, v in row.items()) + o["intercept"] for o in exported["outputs"]]
    if exported["decide"] == "value":
        return {"identity": z[0], "logistic": 1 / (1 + math.exp(-z[0])), "clipped": min(1.0, max(0.0, z[0]))}[
            exported["link"]
        ]
    if exported["decide"] == "sign":
        return exported["labels"][z[0] > 0]
    return exported["labels"][z.index(max(z))]


@pytest.mark.parametrize("labels", [None, ["no", "yes"], ["a", "b", "c"]])
def test_an_exported_model_predicts_the_same_elsewhere(tmp_path, labels):
    model, X = regression(tmp_path) if labels is None else classification(tmp_path, labels)
    assert run("export", tmp_path / "model", "--json", "--output", tmp_path / "out.json") == (0, "", "")
    found = json.loads((tmp_path / "out.json").read_text())
    assert json.loads(run("export", tmp_path / "model")[1]) == found
    for k, output in enumerate(found["outputs"]):
        assert output["intercept"].hex() == model.weights[k, -1].item().hex()
        assert {n: w.hex() for n, w in output["weights"].items()} == {
            n: w.hex() for n, w in zip(COLUMNS, model.weights[k].tolist(), strict=False) if w
        }
    wanted = model.predict(X).tolist()
    for row, want in zip(X.tolist(), wanted, strict=True):
        got = by_hand(found, dict(zip(COLUMNS, row, strict=True)))
        assert got == want or abs(got - want) < 1e-12


def test_features_are_found_by_name():
    X = sp.csr_matrix(np.array([[1.0, 0, 2, 7], [0, 0, 0, 5], [0, 3, 0, 0]]))
    found = columns_by_name(X, ["c", "a", "b", "new"], {"a": 0, "b": 1, "c": 2, "d": 3}, 4)
    assert found.toarray().tolist() == [[0, 2, 1, 0], [0, 0, 0, 0], [3, 0, 0, 0]]
    assert found.indices.tolist() == [1, 2, 0] and found.indptr.tolist() == [0, 2, 2, 3]
    none = columns_by_name(sp.csr_matrix((2, 0)), [], {"a": 0}, 1)
    assert none.shape == (2, 1) and none.nnz == 0


def test_rows_are_scaled_as_for_learning():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    unit = np.array([[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]])
    assert scaled(X, None) is X and scaled(X, {"kind": "none"}) is X
    for rows in (X, sp.csr_matrix(X), X.astype(np.float32)):
        kinds = {"row-unit": None, "global-unit": 5.0, "max-abs": np.array([3.0, 4.0])}
        found = {kind: scaled(rows, {"kind": kind, "by": by}) for kind, by in kinds.items()}
        dense = {k: v.toarray() if sp.issparse(v) else v for k, v in found.items()}
        assert np.array_equal(dense["row-unit"], unit)
        assert np.array_equal(dense["global-unit"], X / 5.0) and np.array_equal(dense["max-abs"], X / [3.0, 4.0])
    standard = {"kind": "standard", "shift": np.array([1.0, 1.0]), "by": np.array([2.0, 2.0])}
    assert np.array_equal(scaled(X, standard), (X - 1) / 2)
    with pytest.raises(ValueError, match="a shift would fill them"):
        scaled(sp.csr_matrix(X), standard)


# ---------------------------------------------------------------- from `learn --save` to predictions


def learnt(tmp_path, file, *options):
    code, _, err = run("learn", file, "--save", tmp_path / "model", "--progress", "none", *options)
    assert code == 0, err
    return load(tmp_path / "model")


def told(tmp_path, file, *options):
    code, out, err = run("predict", tmp_path / "model", file, "--margins", *options)
    assert code == 0, err
    return [[float(v) if k else v for k, v in enumerate(row)] for row in list(csv.reader(io.StringIO(out)))[1:]]


@pytest.mark.parametrize("scale", ["none", "row-unit", "global-unit", "max-abs", "standard"])
def test_rows_of_a_table_are_prepared_again(tmp_path, scale):
    X = data()
    y = X @ [1.0, -2.0, 0.5]
    file = table(tmp_path / "rows.csv", np.column_stack([y, X]), ["y", *COLUMNS])
    model = learnt(tmp_path, file, "--target", "y", "--learner", "widrow-hoff", "--scale", scale)
    other = table(tmp_path / "other.csv", X[:, ::-1], COLUMNS[::-1])
    played = {
        "none": X,
        "row-unit": X / np.sqrt((X * X).sum(axis=1))[:, None],
        "global-unit": X / np.sqrt((X * X).sum(axis=1)).max(),
        "max-abs": X / np.abs(X).max(axis=0),
        "standard": (X - X.mean(axis=0)) / X.std(axis=0),
    }[scale]
    z = [row[1] for row in told(tmp_path, other)]
    assert z == [row[1] for row in told(tmp_path, file)]
    np.testing.assert_allclose(z, played @ model.weights[0, :3] + model.weights[0, 3], rtol=1e-12, atol=1e-12)


def test_categories_and_unknown_ones(tmp_path):
    rng = np.random.default_rng(1)
    rows = [(rng.normal(), rng.choice(["red", "green"]).item(), rng.choice(["no", "yes"]).item()) for _ in range(40)]
    (tmp_path / "rows.csv").write_text("x,colour,label\n" + "".join(f"{x:.3f},{c},{y}\n" for x, c, y in rows))
    model = learnt(
        tmp_path, tmp_path / "rows.csv", "--target", "label", "--learner", "perceptron", "--categorical", "colour"
    )
    w = dict(zip([*model.names, "1"], model.weights[0].tolist(), strict=True))
    (tmp_path / "new.csv").write_text("colour,x\nred,0.5\nviolet,0.5\ngreen,-1\n")
    found = [row[1] for row in told(tmp_path, tmp_path / "new.csv")]
    want = [0.5 * w["x"] + w["colour=red"], 0.5 * w["x"], -w["x"] + w["colour=green"]]
    np.testing.assert_allclose(found, [v + w["1"] for v in want], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", ["svm", "vw"])
def test_sparse_rows_with_unknown_features(tmp_path, form):
    rng = np.random.default_rng(2)
    picks = [sorted(rng.choice(range(1, 9), 3, replace=False).tolist()) for _ in range(40)]
    rows = [([(j, round(rng.normal(), 2)) for j in pick], round(rng.normal(), 2)) for pick in picks]

    def text(rows):
        mark = " |" if form == "vw" else ""
        return "".join(f"{y}{mark} {' '.join(f'{j}:{v}' for j, v in pairs)}\n" for pairs, y in rows)

    file = tmp_path / f"rows.{'svmlight' if form == 'svm' else 'vw'}"
    file.write_text(text(rows))
    model = learnt(tmp_path, file, "--target", "y", "--learner", "widrow-hoff")
    w = dict(zip(model.names, model.weights[0].tolist(), strict=False))
    new = [([(1, 0.5), (99, 7.0)], 0), ([(8, 1.0)], 0), ([(3, 1.0), (5, 2.0)], 0)]
    file.write_text(text(new))
    found = [row[1] for row in told(tmp_path, file)]
    want = [sum(w.get(str(j), 0.0) * v for j, v in pairs) + model.weights[0, -1] for pairs, _ in new]
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


def test_predictions_of_a_pipe(tmp_path):
    _, X = regression(tmp_path)
    file = table(tmp_path / "rows.csv", X, COLUMNS)
    done = subprocess.run(
        [sys.executable, "-m", "hindsight", "predict", tmp_path / "model", "-", "--format", "csv"],
        input=file.read_bytes(), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == run("predict", tmp_path / "model", file)[1] and done.stderr == b""


# ---------------------------------------------------------------- columns, formats and a score


def scored_table(tmp_path, labels=("no", "yes"), learner=None):
    """A model that knows its target, and a table with it, an id and a note."""
    model, X = classification(tmp_path, list(labels), learner or learners.descent("logistic", eta=0.5))
    model.settings = {"target": "label"}
    model.save(tmp_path / "model")
    y = model.predict(X)
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *COLUMNS, "label", "note"])
        writer.writerows(
            [f"{k:03d}", *map(repr, x), t, 'a, "b"'] for k, (x, t) in enumerate(zip(X.tolist(), y, strict=True))
        )
    return model, X, y


def test_columns_can_be_kept_in_every_format(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    _, X, y = scored_table(tmp_path)
    keep = ("--keep", "id, note,label", "--no-score")
    code, out, err = run("predict", tmp_path / "model", tmp_path / "rows.csv", *keep)
    assert (code, err) == (0, "")
    head, *rows = csv.reader(io.StringIO(out))
    assert head == ["id", "note", "label", "prediction", "probability"]
    assert [row[0] for row in rows] == [f"{k:03d}" for k in range(len(X))] and rows[0][1] == 'a, "b"'
    assert [row[2] for row in rows] == y.tolist() == [row[3] for row in rows]
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        where = ("--output", tmp_path / name)
        assert run("predict", tmp_path / "model", tmp_path / "rows.csv", *keep, *where) == (0, "", "")
    assert (tmp_path / "out.csv").read_text() == out
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == written
    assert [[str(v) for v in row.values()] for row in written] == rows
    assert run("predict", tmp_path / "model", tmp_path / "rows.csv", *keep, "--output", "-")[1] == out
    frame = pa.table({**dict(zip(COLUMNS, X.T, strict=True)), "id": list(range(len(X))), "day": [None, 7] * 15})
    pq.write_table(frame, tmp_path / "typed.parquet", row_group_size=7)
    typed = ("predict", tmp_path / "model", tmp_path / "typed.parquet", "--keep", "day,id,height")
    assert run(*typed, "--output", tmp_path / "out.parquet") == (0, "", "")
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.select(["day", "id", "height"]) == frame.select(["day", "id", "height"])
    assert found.column("probability").to_pylist() == [row["probability"] for row in written]
    records = "".join(json.dumps(row) + "\n" for row in frame.to_pylist())
    (tmp_path / "typed.jsonl").write_text(records)
    assert run(*typed[:2], tmp_path / "typed.jsonl", *typed[3:], "--output", tmp_path / "out.jsonl") == (0, "", "")
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["day"] for row in written] == [None, 7] * 15 and [row["id"] for row in written] == list(range(30))


def test_probabilities_of_every_label(tmp_path):
    for labels in (("no", "yes"), ("u", "v", "w")):
        model, X, _ = scored_table(tmp_path, labels)
        out = run("predict", tmp_path / "model", tmp_path / "rows.csv", "--probabilities", "--no-score")[1]
        head, *rows = csv.reader(io.StringIO(out))
        assert head == ["prediction", *(f"probability {label}" for label in labels)]
        p = np.array([[float(v) for v in row[1:]] for row in rows])
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        assert [labels[k] for k in p.argmax(axis=1)] == [row[0] for row in rows] == model.predict(X).tolist()


def test_a_score_where_the_targets_are_there(tmp_path):
    _, X, y = scored_table(tmp_path)
    code, out, err = run("predict", tmp_path / "model", tmp_path / "rows.csv")
    share = max((y == "yes").mean(), (y == "no").mean())
    said = f"score: accuracy 100 % ({100 * share:.3g} %), log loss 0."
    assert code == 0 and err.startswith(said) and len(err.splitlines()) == 1
    assert out.startswith("prediction,probability\n") and len(out.splitlines()) == 31
    assert run("predict", tmp_path / "model", tmp_path / "rows.csv", "--no-score") == (0, out, "")
    text = (tmp_path / "rows.csv").read_text()
    (tmp_path / "rows.csv").write_text(text.replace(",yes,", ",odd,", 1))
    assert run("predict", tmp_path / "model", tmp_path / "rows.csv")[2].splitlines()[1].startswith("1 row with a label")
    (tmp_path / "rows.csv").write_text(text.replace(",yes,", ",,").replace(",no,", ",,"))  # to be filled in
    assert run("predict", tmp_path / "model", tmp_path / "rows.csv") == (0, out, "")
    (tmp_path / "rows.csv").write_text(text.replace("label", "other"))
    assert run("predict", tmp_path / "model", tmp_path / "rows.csv") == (0, out, "")
    (tmp_path / "rows.csv").write_text(text.replace(",yes,", ",a,").replace(",no,", ",b,"))
    assert run("predict", tmp_path / "model", tmp_path / "rows.csv")[2].startswith("not scored: no row has a label")
    model, X = regression(tmp_path)
    model.settings = {"target": "y"}
    model.save(tmp_path / "model")
    file = table(tmp_path / "numbers.csv", np.column_stack([X, model.predict(X) + 1.0]), [*COLUMNS, "y"])
    err = run("predict", tmp_path / "model", file)[2]
    assert err.startswith("score: R² ") and "RMSE 1.00 (" in err and "MAE 1.00 over 30 rows" in err


def test_outputs_that_cannot_be(tmp_path):
    scored_table(tmp_path, learner=learners.perceptron())
    for options, message in (
        (("--output", tmp_path / "out.arrow"), "predictions are written as .csv, .jsonl or .parquet"),
        (("--output", tmp_path / "out.csv.gz"), "predictions are written as .csv, .jsonl or .parquet"),
        (("--keep", "nothing"), "rows.csv: there is no column 'nothing'"),
        (("--keep", "prediction"), "--keep prediction: the predictions have a column of that name"),
        (("--probabilities",), "--probabilities perceptron gives none"),
    ):
        code, out, err = run("predict", tmp_path / "model", tmp_path / "rows.csv", *options)
        assert (code, out) == (2, "") and message in err and len(err.splitlines()) == 1
    assert sorted(os.listdir(tmp_path)) == ["model", "rows.csv"]
    (tmp_path / "rows.svm").write_text("1 1:2\n")
    code, _, err = run("predict", tmp_path / "model", tmp_path / "rows.svm", "--keep", "1")
    assert code == 2 and "not those of a table" in err
