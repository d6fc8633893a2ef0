"""Reports: what is collected while learning, what the page says, and what a browser makes of it."""

import html
import json
import math
import re
import time

import altair
import jsonschema
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import hindsight
from browser import faults, needs_browser, started
from commands import run, stopped_after
from conftest import nightly, one_by_one
from hindsight.charts.runs import PROMISE
from hindsight.errors import MismatchError
from hindsight.reports.writing import write_report
from hindsight.training.options import ResultOptions
from hindsight.training.plan import Plan, choose_learners
from hindsight.training.recording import PIECES, ColumnSpread, Course, Sample, early_rounds
from hindsight.training.session import Session

LIMIT = 2_000_000  # bytes of a page


def content_of(path):
    """The JSON of a page, once its size was checked."""
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) <= LIMIT
    return json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.S)[1])


def words_of(path):
    """The text of a page, without scripts and styles."""
    text = re.sub(r"<(script|style).*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


def learn(page, *words):
    """What a page holds, after a command that learns and writes it."""
    code, _, err = run("learn", *words, "--report", page)
    assert code == 0, err
    return content_of(page)


# ---------------------------------------------------------------- what is collected


def course(weights, values, cuts=(), before=(0, 0.0, 0.0)):
    rounds, weight, total = before
    found = Course(rounds, weight, np.array([total]))
    for part in np.split(np.arange(len(weights)), sorted(cuts)):
        found.add(weights[part], values[part][:, None])
    return found


@given(st.integers(0, 2**32), st.integers(1, 3000), st.lists(st.integers(0, 3000), max_size=6))
@settings(deadline=None, max_examples=25)
def test_a_course_does_not_depend_on_chunks_and_keeps_the_extremes(seed, m, cuts):
    rng = np.random.default_rng(seed)
    c, v = rng.choice([1.0, 0.1, 3.7], m), rng.exponential(size=m) ** 3
    one, many = course(c, v), course(c, v, [cut for cut in cuts if cut < m])
    means = np.cumsum(c * v) / np.cumsum(c)
    for found in (one, many):
        rounds, values = found.so_far(0)
        assert len(rounds) <= 2000 and rounds[-1] == m and (np.diff(rounds) > 0).all()
        np.testing.assert_allclose(values, means[rounds - 1], rtol=1e-12)
        assert values.max() == pytest.approx(means.max(), rel=1e-12)
        assert values.min() == pytest.approx(means.min(), rel=1e-12)
    for a, b in zip(one.so_far(0), many.so_far(0), strict=True):
        assert a.tobytes() == b.tobytes()
    for a, b in zip(one.window(0), many.window(0), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_a_window_is_the_mean_of_its_rounds():
    rng = np.random.default_rng(1)
    c, v = rng.choice([1.0, 2.0], 5000), rng.normal(size=5000)
    found = course(c, v)
    length, rounds, values = found.window(0)
    assert length >= 5000 / 25 and len(rounds) > PIECES // 3
    naive = [(c[r - length : r] @ v[r - length : r]) / c[r - length : r].sum() for r in rounds]
    np.testing.assert_allclose(values, naive, rtol=0, atol=1e-9)


def test_a_course_of_ten_million_rounds_is_small():
    found = Course(0, 0.0, np.zeros(1))
    ones = np.ones(1 << 20)
    for k in range(10):
        values = np.zeros((1 << 20, 1))
        values[7] = 1e6 * (k == 3)
        found.add(ones, values)
    rounds, values = found.so_far(0)
    assert found.rounds == 10 << 20 and len(rounds) <= 2000
    assert values.max() == 1e6 / (3 * (1 << 20) + 8) and (3 * (1 << 20) + 8) in rounds


def test_a_course_that_is_resumed_goes_on_from_its_sums():
    v = np.arange(1.0, 101.0)
    found = course(np.ones(50), v[50:], before=(50, 50.0, v[:50].sum()))
    rounds, values = found.so_far(0)
    assert rounds[0] == 51 and values[-1] == v.mean()


def test_early_rounds_hold_all_powers_of_two():
    found = early_rounds(0, 10**7)
    assert {2**k for k in range(24)} <= set(found) and len(found) < 200
    assert early_rounds(0, 999) + early_rounds(999, 5000) == early_rounds(0, 5000)


def test_a_sample_is_of_all_rounds_and_does_not_depend_on_chunks():
    values = np.arange(5000.0)[:, None]
    one, many = Sample(1, 300), Sample(1, 300)
    one.add(1, values)
    for first in range(0, 5000, 617):
        many.add(1 + first, values[first : first + 617])
    assert one.drawn().tobytes() == many.drawn().tobytes() and len(one.drawn()) == 300 and one.seen == 5000
    assert abs(one.drawn().mean() - 2500) < 3 * 5000 / np.sqrt(12 * 300)
    few = Sample(1, 300)
    few.add(1, values[:100])
    assert sorted(few.drawn()[:, 0].tolist()) == list(range(100))


def test_the_spread_of_columns_does_not_depend_on_chunks():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(9000, 3)) * [1.0, 1e-3, 0.0] + [0.0, 1e6, 5.0]
    one, many = ColumnSpread(), ColumnSpread()
    one.add(X)
    for first in range(0, 9000, 617):
        many.add(X[first : first + 617])
    np.testing.assert_allclose(one.deviations, many.deviations, rtol=1e-9)
    np.testing.assert_allclose(one.deviations, [1.0, 1e-3, 0.0], rtol=0.1)
    sparse = ColumnSpread()
    sparse.add(sp.csr_matrix(X[:600, :1]))
    sparse.add(sp.csr_matrix(X[600:1000] * [1.0, 0.0, 0.0]))  # two columns are new
    np.testing.assert_allclose(sparse.deviations, [X[:1000, 0].std(), 0.0, 0.0], rtol=1e-9)


@pytest.mark.parametrize(("learner", "data"), [("widrow-hoff", "sample:diabetes"), ("perceptron", "sample:digits")])
def test_curves_end_where_the_run_does(tmp_path, learner, data):
    plan = Plan(data, None, choose_learners([learner]))
    session = Session(plan, ResultOptions(report=str(tmp_path / "page.html")))
    state = session.run()
    curves, facts = session.curves, [run.facts for run in state.runs[0]]
    total = dict(zip(curves.series, curves.course.sums, strict=True))
    assert curves.course.rounds == facts[0].rounds
    assert total["loss"] == pytest.approx(sum(f.loss for f in facts), rel=1e-9)
    if state.labels is None:
        assert total["square"] == pytest.approx(facts[0].square, rel=1e-9)
    else:
        assert total["mistakes"] == sum(f.mistakes for f in facts) and total["errors"] == state.mistakes[0]
        assert curves.confusion.sum() == facts[0].rounds
        assert curves.confusion[0].trace() == facts[0].rounds - state.mistakes[0]
    assert Session(plan).curves is None


# ---------------------------------------------------------------- what the page says


def table(path, rows=300, names=("a", "b"), labels=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, len(names))).round(3)
    z = X @ np.arange(1, len(names) + 1) + 0.5 * rng.normal(size=rows)
    y = np.where(z > 0, "yes", "no") if labels else z.round(3).astype(str)
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    lines = [",".join([*quoted, "y"])] + [",".join([*map(str, x), t]) for x, t in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_report_opens_with_the_certificate_and_holds_its_numbers(tmp_path):
    page = tmp_path / "page.html"
    file = table(tmp_path / "rows.csv")
    code, out, err = run("learn", file, "--target", "y", "--learner", "widrow-hoff", "--report", page)
    assert code == 0, err
    found, words = content_of(page), words_of(page)
    (learner,) = found["learners"]
    (certificate,) = learner["certificates"]
    assert learner["verdict"] == "HOLDS" and learner["worth"] in words
    shown = out.splitlines()[0].split(";") + out.splitlines()[1].split(";")
    assert len(shown) == 5 and all(part.strip() in words for part in shown[1:])
    assert learner["means"]["loss"] == certificate["means"]["loss"]
    so_far = [row for row in found["datasets"]["loss0"] if row["line"] == "this run so far"]
    assert so_far[-1]["rounds"] == 300
    assert so_far[-1]["value"] == pytest.approx(math.sqrt(learner["means"]["loss"]), rel=1e-6)
    bound = [row for row in found["datasets"]["loss0"] if row["line"] == "guaranteed at most"]
    assert bound[-1]["value"] == pytest.approx(math.sqrt(learner["means"]["guaranteed"]), rel=1e-6)
    regret = [row for row in found["datasets"]["regret0"] if row["line"] == "regret"]
    assert len(regret) > 100  # not at the milestones alone
    assert regret[-1]["value"] == pytest.approx(learner["means"]["regret"], rel=1e-6)
    assert [row["feature"] for row in found["datasets"]["weights0"]] == ["b", "a"]
    assert all("best" in row for row in found["datasets"]["weights0"])
    assert len(found["datasets"]["predicted0"]) == 300
    assert found["settings"]["target"] == "y" and found["versions"]["hindsight"] == hindsight.__version__
    assert [c["name"] for c in found["columns"]["shown"]] == ["a", "b", "y"]
    assert "u" not in certificate["best"] and "u" not in certificate["comparator"]


def test_labels_have_confusions_thresholds_and_calibration(tmp_path):
    page = tmp_path / "page.html"
    file = table(tmp_path / "rows.csv", labels=True)
    found = learn(page, file, "--target", "y", "--learner", "running")
    (learner,) = found["learners"]
    counts = np.array(learner["confusion"]["counts"])
    assert learner["confusion"]["labels"] == ["no", "yes"] and counts.sum() == 300
    zero = file.read_text().splitlines()[1].endswith("no")  # at first the margin is 0: the first label, and a mistake
    assert counts.sum() - counts.trace() + zero == learner["mistakes"]
    (terms,) = learner["calibration"]
    assert terms["score"] == pytest.approx(
        terms["miscalibration"] - terms["discrimination"] + terms["uncertainty"], abs=1e-12
    )
    pav = [row["observed"] for row in found["datasets"]["calibration0"]]
    assert pav == sorted(pav)
    recall = [row["value"] for row in found["datasets"]["threshold0"] if row["line"] == "recall"]
    assert recall == sorted(recall) and recall[-1] == 1.0
    assert "If rows are called yes where the probability" in words_of(page)


def test_each_of_several_labels_has_thresholds_and_calibration_against_the_rest(tmp_path):
    page, rng = tmp_path / "page.html", np.random.default_rng(3)
    X, names = rng.normal(size=(800, 2)).round(3), [f"<b>{k}" for k in range(8)]
    y = (np.arctan2(X[:, 1], X[:, 0]) / np.pi * 4 + 4).astype(int) % 8
    y[rng.random(800) < 0.3] = 5
    file = tmp_path / "rows.csv"
    file.write_text("a,b,y\n" + "".join(f"{a},{b},{names[k]}\n" for (a, b), k in zip(X.tolist(), y, strict=True)))
    found = learn(page, file, "--target", "y", "--learner", "running")
    (learner,) = found["learners"]
    common = sorted(np.argsort(-np.bincount(y, minlength=8), kind="stable")[:6].tolist())
    assert learner["chosen"] == [names[k] for k in common] and learner["labels"] == 8
    assert "the most frequent 6 of 8 labels" in words_of(page)
    for j, label in enumerate(common):
        lines = found["datasets"][f"threshold0/{j}"]
        recall = [row["value"] for row in lines if row["line"] == "recall"]
        assert recall == sorted(recall) and recall[-1] == 1.0
        lowest = min(lines, key=lambda row: row["threshold"])["threshold"]  # there every row is called the label
        (wrong,) = [row["value"] for row in lines if row["threshold"] == lowest and row["line"] == "error rate"]
        assert wrong == pytest.approx(1.0 - (y == label).mean(), rel=1e-6)
        pav = [row["observed"] for row in found["datasets"][f"calibration0/{j}"]]
        assert pav == sorted(pav) and len(found["datasets"][f"band0/{j}"]) > 10
        assert sum(row["rows"] for row in found["datasets"][f"histogram0/{j}"]) == 800
        terms = learner["calibration"][j]
        assert terms["frequency"] == pytest.approx((y == label).mean())
        whole = terms["miscalibration"] - terms["discrimination"] + terms["uncertainty"]
        assert terms["score"] == pytest.approx(whole, abs=1e-12)
    file.write_text("a,b,y\n" + "".join(f"{a},{b},{int(k == 5)}\n" for (a, b), k in zip(X.tolist(), y, strict=True)))
    (alone,) = learn(page, file, "--target", "y", "--learner", "running")["learners"][0]["calibration"]
    assert learner["calibration"][common.index(5)]["score"] == pytest.approx(alone["score"], rel=1e-9)


def test_several_learners_are_overlaid_with_valid_intervals(tmp_path):
    page = tmp_path / "page.html"
    file = table(tmp_path / "rows.csv", labels=True)
    code, out, err = run("learn", file, "--target", "y", "--learner", "perceptron,running", "--report", page)
    assert code == 0, err
    assert "difference" not in out  # not asked for
    found = content_of(page)
    assert {row["line"] for row in found["datasets"]["overlay"]} == {"[1] perceptron", "[2] running"}
    (pair,) = found["datasets"]["pairs"]
    assert pair["low"] <= pair["difference"] <= pair["high"]
    code, out, err = run("learn", file, "--target", "y", "--learner", "perceptron,running", "--compare", "--json")
    (other,) = json.loads(out)["comparison"]["pairs"]
    assert pair["difference"] == pytest.approx(other["difference"], rel=1e-6)
    assert pair["low"] == pytest.approx(other["anytime"]["mixture"][0], rel=1e-6)


@nightly(but=["*diabetes-more0", "*breast-cancer-more3"])
@pytest.mark.parametrize(
    ("data", "more"),
    [
        ("sample:diabetes", []),
        ("sample:diabetes", ["--learner", "isotron", "--rounds", 3]),
        ("sample:breast-cancer", []),
        ("sample:breast-cancer", ["--learner", "perceptron,running"]),
        ("sample:digits", ["--limit", 300, "--learner", "perceptron"]),
    ],
)
def test_the_charts_of_a_page_follow_the_schema(tmp_path, data, more):
    page = tmp_path / "page.html"
    assert run("learn", data, *more, "--report", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    drawn = json.loads(re.search(r'<script type="application/json" id="charts">(.*?)</script>', text, re.S)[1])
    assert drawn
    for chart in drawn.values():
        for spec in (chart["linear"], chart.get("log")):
            assert spec is None or altair.Chart.from_dict(spec).to_dict()["width"] == "container"  # validated
    with pytest.raises(jsonschema.ValidationError):
        altair.Chart.from_dict(chart["linear"] | {"height": "high"})


def test_many_learners_keep_the_page_small(tmp_path):
    page = tmp_path / "page.html"
    etas = ",".join(f"{0.001 * 1.5**k:.5f}" for k in range(12))
    found = learn(page, "sample:diabetes", "--learner", "widrow-hoff", "--eta", etas)
    assert len(found["learners"]) == 6 and len({row["line"] for row in found["datasets"]["overlay"]}) == 12


def test_a_hundred_thousand_features_keep_the_page_small(tmp_path):
    page, file = tmp_path / "page.html", tmp_path / "rows.svm"
    rng = np.random.default_rng(0)
    lines = [
        f"{k % 2} " + " ".join(f"{j}:1" for j in sorted(rng.choice(100_000, 800, replace=False) + 1))
        for k in range(130)
    ]
    file.write_text("\n".join([*lines, "1 100000:1"]) + "\n")
    found = learn(page, file, "--learner", "perceptron")
    assert found["features"] > 60_000 and len(found["datasets"]["weights0"]) == 20
    assert len(found["columns"]["shown"]) <= 200


def test_a_run_that_cannot_be_certified_has_a_report_that_says_so(tmp_path):
    page = tmp_path / "page.html"
    text = table(tmp_path / "rows.csv").read_text()
    code, _, err = run("learn", "-", "--target", "y", "--learner", "widrow-hoff", "--report", page, stdin=text)
    assert code == 0, err
    (learner,) = content_of(page)["learners"]
    assert learner["verdict"] is None and learner["means"]["loss"] > 0.0 and learner["certificates"] == []
    words = words_of(page)
    assert "NO CERTIFICATE" in words and "standard input" in words
    code, _, err = run("learn", "-", "--target", "y", "--certify", "--report", page, stdin=text)
    assert code == 2 and "standard input does not allow" in err


def test_a_learner_without_a_theorem_is_uncheckable(tmp_path):
    page = tmp_path / "page.html"
    file = table(tmp_path / "rows.csv")
    (learner,) = learn(page, file, "--target", "y", "--learner", "diagonal-newton")["learners"]
    assert learner["verdict"] == "UNCHECKABLE" and learner["means"]["guaranteed"] is None
    assert "UNCHECKABLE" in words_of(page)


@pytest.mark.parametrize("learner", ["auto", "widrow-hoff"])
@pytest.mark.parametrize("rows", [1, 2])
def test_a_run_of_one_or_two_rows_has_a_report(tmp_path, rows, learner):
    """Where the first target only sets the start, no round of a single row counts."""
    page = tmp_path / "page.html"
    learn(page, "sample:diabetes", "--limit", rows, "--learner", learner)
    assert content_of(page)["rows"] == rows


def test_rejected_rows_are_listed(tmp_path):
    page, file = tmp_path / "page.html", table(tmp_path / "rows.csv")
    lines = file.read_text().splitlines()
    lines[5] = "1,oops,<b>2"
    file.write_text("\n".join(lines) + "\n")
    found = learn(
        page, file, "--target", "y", "--learner", "widrow-hoff", "--strict", "--rejects", tmp_path / "bad.csv"
    )
    assert found["rejected"] == 1 and found["rejects"][0]["line"] == 6
    assert "1 rows were rejected" in words_of(page)


def test_a_resumed_run_says_where_its_curves_begin(tmp_path):
    file, page = table(tmp_path / "rows.csv", rows=2000), tmp_path / "page.html"
    plan = Plan(str(file), "y", choose_learners(["widrow-hoff"]), {"chunk": 10_000})
    folder = str(tmp_path / "checkpoints")
    first = Session(plan, ResultOptions(checkpoint=folder, report=str(page)))
    begun = stopped_after(1, first).rows_done
    assert 0 < begun < 2000
    later = Session(plan, ResultOptions(checkpoint=folder, resume=True, report=str(page)))
    state = later.run()
    write_report(str(page), state, later.curves, [])
    whole = Session(plan, ResultOptions(report=str(page)))
    whole.run()
    assert later.curves.course.rounds == 2000
    np.testing.assert_allclose(later.curves.course.sums, whole.curves.course.sums, rtol=1e-9)
    assert f"The curves begin after row {begun:,}" in words_of(page)
    (learner,) = content_of(page)["learners"]
    assert learner["sample"] == 2000 - begun
    rounds = [row["rounds"] for row in content_of(page)["datasets"]["loss0"] if row["line"] == "this run so far"]
    assert rounds[0] == begun + 1


def test_a_report_of_several_labels_says_what_is_promised_in_all(tmp_path):
    page = tmp_path / "page.html"
    found = learn(page, "sample:digits", "--learner", "perceptron")
    (learner,) = found["learners"]
    means = learner["means"]
    assert means["loss"] == pytest.approx(sum(c["lost"] for c in learner["certificates"]) / 1797, rel=1e-12)
    assert means["loss"] < means["guaranteed"] < means["constant"] and learner["worth"] == "tight"
    assert np.array(learner["confusion"]["counts"]).shape == (10, 10)
    ends = {row["line"]: row for row in found["datasets"]["regret0"]}
    assert ends["regret"]["value"] == pytest.approx(means["regret"], rel=1e-6) and ends["regret"]["rounds"] == 1797
    assert ends[PROMISE]["value"] == pytest.approx(means["guaranteed"] - means["best"], rel=1e-6)


def test_a_model_writes_its_report_from_its_rows(tmp_path):
    from_command, from_model = tmp_path / "command.html", tmp_path / "model.html"
    file = table(tmp_path / "rows.csv", labels=True)
    model = hindsight.learn(str(file), "y", learner="running")
    model.report(from_model, str(file))
    code, _, err = run("learn", file, "--target", "y", "--learner", "running", "--report", from_command)
    assert code == 0, err
    one, two = content_of(from_command), content_of(from_model)
    assert one["datasets"] == two["datasets"] and one["learners"] == two["learners"]
    assert model.certificate is not None
    with pytest.raises(MismatchError):
        model.report(tmp_path / "other.html", str(table(tmp_path / "others.csv", labels=True, seed=9)))
    assert not (tmp_path / "other.html").exists()


def drawn_rows(labels, seed=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(240, 3)).round(3)
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=240)
    return X, (np.digitize(y, np.linspace(-2, 2, labels - 1)).astype(str) if labels else y)


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (hindsight.WidrowHoffRegressor(0.05, passes=2), 0),
        (hindsight.AutoRegressor(), 0),
        (hindsight.AutoClassifier(class_weight="balanced"), 2),
        (hindsight.PerceptronClassifier(), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_estimator_writes_its_report(tmp_path, model, labels):
    X, y = drawn_rows(labels)
    weight = np.linspace(0.0, 2.0, len(y))
    page = tmp_path / "page.html"
    model.fit(X, y, sample_weight=weight).report(page, X, y, weight)
    found = content_of(page)
    (learner,) = found["learners"]
    each = getattr(model.certificate_, "each", [model.certificate_])
    assert learner["means"]["loss"] == pytest.approx(sum(c.means["loss"] for c in each), rel=1e-9)
    so_far = [row for row in found["datasets"]["loss0"] if row["line"] == "this run so far"]
    opening = isinstance(model, hindsight.AutoRegressor)  # its first row sets the start, and is no round
    assert so_far[-1]["rounds"] == 239 * getattr(model, "passes", 1) - opening  # one row weighs nothing
    if labels < 3:
        mean = model.facts_.loss / model.facts_.weight
        assert so_far[-1]["value"] == pytest.approx(mean if labels else math.sqrt(mean), rel=1e-5)
        assert labels or learner["figures"]["rmse"] == pytest.approx(
            math.sqrt(model.facts_.square / model.facts_.weight)
        )
    else:
        assert np.array(learner["confusion"]["counts"]).sum() == 239
        assert {"threshold0/0", "threshold0/2"} <= set(found["datasets"])
    assert {row["feature"] for row in found["datasets"]["weights0"]} == {"x0", "x1", "x2"}
    assert type(model).__name__ in words_of(page) and found["versions"]["hindsight"] == hindsight.__version__
    with pytest.raises(MismatchError):
        model.report(tmp_path / "other.html", X[::-1], y[::-1], weight)
    assert not (tmp_path / "other.html").exists()


def test_the_report_of_rows_that_came_one_by_one_has_their_names(tmp_path):
    X, y = drawn_rows(0)
    model, page = hindsight.WidrowHoffRegressor(), tmp_path / "page.html"
    one_by_one(model, [dict(zip(("p", "q", "r"), x, strict=True)) for x in X.tolist()], y.tolist())
    model.report(page, X, y)
    assert {row["feature"] for row in content_of(page)["datasets"]["weights0"]} == {"p", "q", "r"}


def test_a_single_class_has_no_report(tmp_path):
    model = hindsight.PerceptronClassifier().learn_one([1.0], "only")
    with pytest.raises(ValueError, match="a report needs two classes, and the model has met only 'only'"):
        model.report(tmp_path / "page.html", [[1.0]], ["only"])


@pytest.mark.parametrize(
    ("model", "labels", "how"),
    [
        (hindsight.GradientDescentRegressor(rounds=5), 0, "all rows were read in each of 5 rounds"),
        (hindsight.BatchPerceptronClassifier(max_passes=3), 2, "rows were scanned in their order, over and over"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_estimator_of_all_rows_writes_its_report(tmp_path, model, labels, how):
    X, y = drawn_rows(labels)
    page = tmp_path / "page.html"
    model.fit(X, y).report(page, X, y)
    (learner,) = content_of(page)["learners"]
    assert learner["verdict"] == model.certificate_.verdict.value and how in words_of(page)


@pytest.mark.parametrize("labels", [0, 2, 8])
def test_isotron_reports_its_link_and_its_errors(tmp_path, labels):
    X, y = drawn_rows(labels)
    page, file = tmp_path / "page.html", tmp_path / "rows.csv"
    word = "k" if labels else ""
    file.write_text(
        "a,b,c,y\n" + "".join(f"{p},{q},{r},{word}{t}\n" for (p, q, r), t in zip(X.tolist(), y, strict=True))
    )
    code, out, err = run("learn", file, "--target", "y", "--learner", "isotron", "--rounds", 9, "--report", page)
    assert code == 0 and f"report: {page}" in out, err
    found, words = content_of(page), words_of(page)
    (learner,) = found["learners"]
    model = (hindsight.IsotronClassifier if labels else hindsight.IsotronRegressor)(rounds=9)
    model.fit(X, [word + str(t) for t in y] if labels else y)
    best = np.array([h.loss[h.best] for h in model.histories_])
    assert learner["means"]["loss"] == pytest.approx(best.sum(), rel=1e-9)
    assert learner["verdict"] == "UNCHECKABLE" and "UNCHECKABLE" in words and "no regret" in words
    links = model.link_ if labels > 2 else [model.link_]
    for j in range(min(6, len(links))):
        kept = found["datasets"][f"link0/{j}" if labels > 2 else "link0"]
        k = [f"k{i}" for i in range(8)].index(learner["chosen"][j]) if labels > 2 else 0
        np.testing.assert_allclose([row["mean"] for row in kept], links[k].mean, atol=1e-6)
    lines = {row["line"] for row in found["datasets"]["rounds0"]}
    assert len(lines) == min(6, len(links)) and len(found["datasets"]["weights0"]) == min(20, 3 * len(links))
    assert [c["name"] for c in found["columns"]["shown"]] == ["a", "b", "c", "y"] and found["settings"]["rounds"] == "9"
    if labels:
        assert np.array(learner["confusion"]["counts"]).sum() == 240 and "calibration" in learner
    else:
        constant = float(np.var(y))
        assert learner["means"]["constant"] == pytest.approx(constant, rel=1e-9)
        assert len(found["datasets"]["predicted0"]) == 240
    other = tmp_path / "model.html"
    model.report(other, X, [word + str(t) for t in y] if labels else y)
    assert content_of(other)["datasets"]["rounds0"] == found["datasets"]["rounds0"]


def test_without_the_library_that_draws_the_page_has_its_numbers(tmp_path, monkeypatch):
    from hindsight.reports import page as module

    def missing():
        raise ValueError("charts need altair")

    monkeypatch.setattr(module, "altair", missing)
    page = tmp_path / "page.html"
    learn(page, "sample:diabetes", "--learner", "widrow-hoff")
    assert "pip install" in words_of(page) and content_of(page)["rows"] == 442
    assert page.stat().st_size < 300_000


# ---------------------------------------------------------------- in notebooks


def test_estimators_and_certificates_show_themselves():
    X, y = np.array([[1.0], [-1.0], [2.0], [-3.0]]), ["<b>yes</b>", "no", "<b>yes</b>", "no"]
    model = hindsight.PerceptronClassifier()
    assert "HOLDS" not in model._repr_html_()
    model.fit(X, y, certify=True)
    for text in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "HOLDS" in text and "&lt;b&gt;yes&lt;/b&gt;" in text and "4 rounds" in text
        assert "right on 50.0 % of the rows" in text
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    assert "color:inherit" in model.certificate_._repr_html_()


# ---------------------------------------------------------------- in a browser

DRAWN = "document.body.dataset.drawn === 'yes'"
HOSTILE = ["<script>document.title='RUN'</script>", "=cmd|' /C calc'!A0", '"><img src=x onerror=document.title=1>']


@needs_browser
def test_a_browser_draws_the_report_and_shows_values(tmp_path):
    page = tmp_path / "page.html"
    file = table(tmp_path / "rows.csv", names=[*HOSTILE, "plain"], labels=True)
    content = learn(page, file, "--target", "y", "--learner", "perceptron,running")
    with started(tmp_path / "profile") as browser:
        browser.show(page.as_uri(), DRAWN)
        empty = "[...document.querySelectorAll('.chart')].filter(e => e.querySelectorAll('svg path').length < 3).length"
        assert browser.value("document.querySelectorAll('.chart').length") >= 10 and browser.value(empty) == 0
        assert browser.value("document.title").startswith("Hindsight")
        assert browser.value("document.querySelectorAll('img, iframe, object').length") == 0
        drawn = browser.value("document.getElementById('c-weights0').textContent")
        for name in HOSTILE:
            assert name[:12] in drawn

        def hover(chart, part=0.5):
            place = f"document.querySelector('#{chart} svg .background').getBoundingClientRect().toJSON()"
            browser.value(f"document.getElementById('{chart}').scrollIntoView({{block: 'center'}})")
            at = browser.value(place)
            for x in (at["x"] + part * at["width"] - 9, at["x"] + part * at["width"]):
                browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=at["y"] + 0.4 * at["height"])
            browser.wait("document.querySelector('#vg-tooltip-element.visible') !== null")
            return browser.value("document.getElementById('vg-tooltip-element').innerText")

        told = hover("c-loss0")
        assert "this run so far" in told and "best constant" in told
        rounds = int(re.search(r"round\s+([\d,]+)", told)[1].replace(",", ""))
        row = next(r for r in content["datasets"]["hover0"] if r["rounds"] == rounds)
        assert float(re.search(r"this run so far\s+([\d.]+)", told)[1]) == pytest.approx(row["so far"], rel=1e-4)
        browser.value("document.querySelector('button[data-chart=c-loss0]').click()")
        browser.wait("document.querySelector('button[data-chart=c-loss0]').dataset.scale === 'log'")
        time.sleep(0.5)
        assert "this run so far" in hover("c-loss0", 0.8)
        for width, dark in ((390, "dark"), (1000, "light")):
            browser.look(width, dark, mobile=width < 500)
            assert browser.value("document.documentElement.scrollWidth") <= width
            ground = browser.value("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(13, 17, 23)") == (dark == "dark")
        browser.look(760, "dark", media="print")
        assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert browser.value("document.documentElement.scrollWidth") <= 760
        assert faults(browser.events) == []


@needs_browser
def test_a_browser_shows_the_label_that_is_chosen(tmp_path):
    page = tmp_path / "page.html"
    learn(page, "sample:digits", "--loss", "logistic", "--learner", "running")
    with started(tmp_path / "profile") as browser:
        browser.show(page.as_uri(), DRAWN)
        shape = "[...document.querySelectorAll('#c-calibration0 svg .mark-line path')].at(-1).getAttribute('d')"
        first = browser.value(shape)
        pick = "(select => { select.value = '2'; select.dispatchEvent(new Event('change')) })"
        browser.value(f"{pick}(document.querySelector('select[data-charts]'))")
        browser.wait(f"{shape} !== {json.dumps(first)}")
        assert browser.value("document.querySelector('select[data-charts]').options.length") == 6
        assert faults(browser.events) == []
