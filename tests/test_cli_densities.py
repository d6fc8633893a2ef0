"""`hindsight density` and `hindsight duel`, as a user types them."""

import csv
import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest

import hindsight.cli.densities  # registers the verbs
from commands import run
from hindsight.density import Categorical, Exponential, FullGaussian, Gaussian, Histogram, Keyed, NGram, Product
from hindsight.density.spec import parse
from hindsight.estimators.duel import duel, scaled, stations


@pytest.fixture
def calls(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "calls.csv"
    with path.open("w") as file:
        file.write("customer,hour,minutes,place\n")
        for _ in range(300):
            place = rng.choice(["home", "abroad"])
            file.write(f"c{rng.integers(0, 9)},{rng.integers(0, 24)},{rng.exponential(3.0):.3f},{place}\n")
    return path


def columns(path):
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def test_density_prints_model_loss_bits_and_certificate(calls):
    code, out, err = run("density", calls, "--columns", "hour:categorical(24), minutes:exponential")
    assert (code, err) == (0, "")
    product = Product({"hour": Categorical(24), "minutes": Exponential()}).update(columns(calls))
    assert f"log loss {product.loss:.6g} nats, {product.bits_per_row:.6g} bits per row" in out
    assert "hour: HOLDS: add-½ (KT) over k declared symbols" in out
    assert "minutes: UNCHECKABLE" in out
    assert "all columns: UNCHECKABLE" in out
    assert f"minutes: exponential {product.densities['minutes'].describe()}" in out
    for line in str(product.certificate()).splitlines():
        assert line in out


def test_declared_symbols_hold_and_growing_ones_are_void(calls):
    assert "place: HOLDS" in run("density", calls, "--columns", "place:categorical(home|abroad)")[1]
    code, out, _ = run("density", calls, "--columns", "place:categorical")
    assert code == 0
    assert "place: VOID" in out
    assert "the alphabet grew to 2 symbols" in out
    code, out, _ = run("density", calls, "--columns", "place:categorical(home|abroad)", "--forget", "0.9")
    assert "forget = 0.9, which must be 1" in out


def test_score_adds_a_column_of_log_densities(calls, tmp_path):
    out = tmp_path / "scored.csv"
    code, told, _ = run("density", calls, "--columns", "hour:categorical(24),minutes:exponential", "--score", out)
    assert code == 0
    assert f"scores: {out}" in told
    before, after = columns(calls), columns(out)
    assert list(after) == [*before, "log_density"]
    for name, values in before.items():
        assert after[name].tolist() == values.tolist()
    product = Product({"hour": Categorical(24), "minutes": Exponential()})
    assert [float(v) for v in after["log_density"]] == product.progressive(before).tolist()
    code, _, err = run("density", calls, "--columns", "hour:poisson", "--score", calls)
    assert code == 2
    assert f"--score {calls} would be overwritten" in err
    assert run("density", calls, "--columns", "hour:poisson", "--score", tmp_path / "no" / "x.csv")[0] == 2


def test_a_density_a_key(calls):
    code, out, _ = run("density", calls, "--columns", "minutes:exponential", "--key", "customer")
    assert code == 0
    keyed = Keyed(Product({"minutes": Exponential()}), "customer").update(
        {k: v for k, v in columns(calls).items() if k in ("customer", "minutes")}
    )
    assert f"log loss {keyed.loss:.6g} nats" in out
    assert "9 keys" in out
    code, out, _ = run("density", calls, "--columns", "minutes:exponential", "--key", "customer", "--forget", "0.9")
    assert code == 0
    assert "VOID" in out
    assert "cannot be modelled too" in run("density", calls, "--columns", "hour:poisson", "--key", "hour")[2]


@pytest.mark.parametrize(
    "more", [[], ["--key", "customer"], ["--forget", "0.9"], ["--key", "customer", "--forget", "0.9"]]
)
def test_a_density_is_kept_and_goes_on(calls, tmp_path, more):
    whole, first, second = calls.read_text().splitlines(keepends=True), tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("".join(whole[:201]))
    second.write_text("".join([whole[0], *whole[201:]]))
    kept, scores = tmp_path / "kept", [tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"]
    grown = "" if "--key" in more else ",place:categorical"
    spec = ["--columns", f"hour:categorical(24),minutes:exponential{grown}"]
    code, out, err = run("density", first, *spec, *more, "--save", kept, "--score", scores[0])
    assert (code, err) == (0, "") and f"density: {kept}" in out
    code, out, err = run("density", second, "--from", kept, "--save", kept, "--score", scores[1])
    assert (code, err) == (0, "")
    once = run("density", calls, *spec, *more, "--score", scores[2])[1]
    assert out.splitlines()[1:-2] == once.splitlines()[1:-1]  # but for the title and what was written
    parts = [value for path in scores[:2] for value in columns(path)["log_density"].tolist()]
    assert parts == columns(scores[2])["log_density"].tolist()
    code, shown, err = run("inspect", kept)
    assert (code, err) == (0, "") and shown.splitlines()[1:] == once.splitlines()[1:-1]
    plain, told = (json.loads(run(*a, "--json")[1]) for a in (["inspect", kept], ["density", calls, *spec, *more]))
    assert plain["loss"] == pytest.approx(told["loss"], rel=1e-12) and plain.keys() == told.keys()


def test_what_a_density_cannot_go_on_from_is_one_line(calls, tmp_path):
    kept, lone = tmp_path / "kept", tmp_path / "lone"
    assert run("density", calls, "--columns", "hour:poisson", "--save", kept)[0] == 0
    Gaussian().update([1.0, 2.0]).save(lone)
    Product({"hour": Categorical([*range(24)])}).save(tmp_path / "numbers")
    assert run("density", calls, "--from", tmp_path / "numbers")[0] == 0
    for arguments, message in (
        (["density", calls], "--columns is missing: say which density each column has, or --from MODEL"),
        (["density", calls, "--from", kept, "--columns", "hour:poisson"], "--columns cannot be given with --from"),
        (["density", calls, "--from", kept, "--key", "customer"], "--key cannot be given with --from"),
        (["density", calls, "--from", kept, "--forget", 1], "--forget cannot be given with --from"),
        (["density", calls, "--from", lone], "lone: holds <gaussian, 2 rows>, where a density over named columns"),
        (["density", calls, "--from", calls], "calls.csv: not a complete model file"),
        (["density", calls, "--columns", "hour:poisson", "--save", calls], "would be overwritten"),
        (["density", calls, "--from", kept, "--score", kept], "would be overwritten"),
        (["density", calls, "--columns", "hour:poisson", "--save", tmp_path / "no" / "where"], "cannot be written"),
        (["inspect", tmp_path / "numbers"], "there is nothing to show yet"),
        (["predict", kept, calls], "holds a Product without runs: open it with hindsight.load"),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "") and message in err and err.count("\n") == 1, (arguments, err)


def test_json_is_json(calls):
    code, out, _ = run("density", calls, "--columns", "hour:categorical(24)", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["certificate"]["verdict"] == "HOLDS"
    assert told["loss"] == pytest.approx(told["certificate"]["nats"]["measured"])
    assert told["certificate"]["bits"]["bound"] == pytest.approx(told["certificate"]["nats"]["bound"] / math.log(2))


def test_samples_and_several_columns_at_once():
    code, out, _ = run("density", "sample:diabetes", "--columns", "bmi+bp:gaussian,age:gaussian")
    assert code == 0
    assert "bmi + bp: full gaussian" in out
    assert "correlations" in out
    assert "there is no column 'mass'" in run("density", "sample:diabetes", "--columns", "mass:gaussian")[2]


def test_codes_of_many_digits_stay_apart(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("code\n1234567\n1234568\n1234567\n")
    code, out, err = run("density", path, "--columns", "code:categorical(1234567|1234568)")
    assert (code, err) == (0, "") and "code: categorical 1234567 0.625, 1234568 0.375" in out
    assert "the alphabet grew to 2 symbols" in run("density", path, "--columns", "code:categorical")[1]


def test_sentences(tmp_path):
    path = tmp_path / "text.csv"
    path.write_text("text\nI sat on a chair\nthe cat sat\n")
    code, out, _ = run("density", path, "--columns", "text:ngram(2)")
    assert code == 0
    assert f"log loss {NGram(2).update(['I sat on a chair', 'the cat sat']).loss:.6g} nats" in out


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "name at least one column"),
        ("hour", "cannot read 'hour'"),
        ("hour:student", "there is no family 'student'"),
        ("hour:poisson,hour:poisson", "column 'hour' appears twice"),
        ("hour:poisson(3)", "poisson takes 0 numbers in brackets, got 1"),
        ("hour:histogram", "histogram takes 2 or 3 numbers in brackets, got 0"),
        ("hour:gamma(x)", "numbers are needed there"),
        ("hour+minutes:poisson", "several columns at once take gaussian alone"),
        ("hours:poisson", "did you mean 'hour'?"),
        ("hour:histogram(5|1)", "finite low < high"),
    ],
)
def test_bad_specifications_are_one_line(calls, spec, message):
    code, out, err = run("density", calls, "--columns", spec)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_specifications():
    product = parse("a:gaussian, b+c:gaussian,d:histogram(0|10|4),e:gamma(3),f:ngram,g:categorical(x|y)", 1.0)
    kinds = [type(d).__name__ for d in product.densities.values()]
    assert kinds == ["Gaussian", "FullGaussian", "Histogram", "Gamma", "NGram", "Categorical"]
    assert isinstance(product.densities[("b", "c")], FullGaussian)
    assert isinstance(product.densities["d"], Histogram)
    assert isinstance(parse("a:gaussian", 0.5).densities["a"], Gaussian)
    with pytest.raises(ValueError, match="n-grams do not fade"):
        parse("a:ngram", 0.5)


def test_bad_values_name_file_line_column_and_value(calls):
    lines = calls.read_text().splitlines()
    lines[6] = "c1,7,-2.5,home"
    lines.insert(3, "")
    calls.write_text("\n".join(lines) + "\n")
    code, _, err = run("density", calls, "--columns", "minutes:exponential")
    assert code == 2
    assert f"{calls}, line 8, column 'minutes': value -2.5 is not a duration (a finite number, at least 0)" in err
    calls.write_text(calls.read_text().replace("-2.5", "long"))
    assert (
        "line 8, column 'minutes': value 'long' is not a number"
        in run("density", calls, "--columns", "minutes:poisson")[2]
    )
    assert "'home' is not one of" in run("density", calls, "--columns", "place:categorical(abroad)")[2]


def test_a_broken_bound_exits_with_1(calls, monkeypatch):
    import hindsight.density.certificate as certificate
    from hindsight import Verdict

    monkeypatch.setattr(certificate, "verdict", lambda *_: (Verdict.BROKEN, False))
    code, out, _ = run("density", calls, "--columns", "hour:categorical(24)")
    assert code == 1
    assert "BROKEN" in out


@pytest.mark.parametrize("name", ["heights", "calling_card", "sentences"])
def test_the_examples_draw_what_they_tell(name, tmp_path, capsys):
    file = Path(__file__).parents[1] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, file)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.SIZES, example.DRAWS, example.CALLS = [10, 100], 3, 4000
    example.main(str(tmp_path / "picture.svg"))
    assert (tmp_path / "picture.svg").read_text().startswith("<svg")
    told = capsys.readouterr().out
    assert {"heights": "male above", "calling_card": "area under the ROC", "sentences": "'I sat on a chair' rather"}[
        name
    ] in told


# ---------------------------------------------------------------- duel


def test_duel_tells_who_leads_and_draws(tmp_path):
    for suffix in ("png", "html"):
        chart = tmp_path / f"duel.{suffix}"
        code, out, err = run("duel", "sample:breast-cancer", "--shuffle", "1", "--chart", chart)
        assert (code, err) == (0, "")
        assert chart.stat().st_size > 10_000
    rows = [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]
    assert [row[0] for row in rows] == ["10", "100", "569"]
    assert {row[5] for row in rows} <= {"generative", "discriminative", "even"}
    text = (tmp_path / "duel.html").read_text()
    assert "<script src=" not in text  # the page carries all it needs


def test_duel_agrees_with_the_curves(tmp_path):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 2)) + y[:, None]
    path = tmp_path / "data.csv"
    rows = [f"{a!r},{b!r},k{c}" for (a, b), c in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(["a,b,label", *rows]) + "\n")
    code, out, _ = run("duel", path, "--target", "label")
    assert code == 0
    first, second = duel(X, y)
    last = next(line for line in out.splitlines() if line.strip().startswith("150 ")).split()
    want = [f"{first.mean(150):.4f}", str(first.errors(150)), f"{second.mean(150):.4f}", str(second.errors(150))]
    assert last[1:5] == want


def test_the_generative_way_leads_early_where_its_assumption_is_right():
    """Two spheres of unequal spread: the notes' claim, over twenty streams."""
    ahead = {30: 0, 100: 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 100)
        X = rng.normal(size=(100, 5)) * np.where(y == 1, 2.0, 1.0)[:, None] + 0.5 * y[:, None]
        first, second = duel(X, y)
        for rows in ahead:
            ahead[rows] += first.errors(rows) < second.errors(rows)
    assert ahead[30] >= 13
    assert ahead[100] >= 17


def test_tied_variances_lead_early_where_classes_spread_alike():
    """Two spheres of one spread in 20 columns: with a variance for each class the lead is lost."""
    wrong = {"gaussian": 0.0, "tied": 0.0, "discriminative": 0.0}
    for seed in range(400):
        rng = np.random.default_rng(seed)
        y = np.append([0, 1], rng.integers(0, 2, 18))
        X = rng.normal(size=(20, 20)) + 0.4 * y[:, None]
        for name in ("gaussian", "tied"):
            first, second = duel(X, y, name)
            wrong[name] += first.mistakes[10:].mean()
        wrong["discriminative"] += second.mistakes[10:].mean()
    assert 1.03 * wrong["tied"] < wrong["discriminative"] < wrong["gaussian"]


def test_scaled_rows_know_only_the_rows_before():
    X = np.random.default_rng(2).normal(5.0, 3.0, (50, 2))
    Z = scaled(X)
    for t in range(2, 50):
        np.testing.assert_allclose(Z[t], (X[t] - X[:t].mean(axis=0)) / X[:t].std(axis=0), rtol=1e-9)
    assert (Z[:2] == 0.0).all()
    assert (scaled(np.full((5, 1), 7.0)) == 0.0).all()
    assert stations(5) == [5]
    assert stations(1000) == [10, 100, 1000]


def test_bad_duels_are_one_line(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n1,a\n2,a\n")
    for args, message in [
        (("--target", "y"), "two classes at least"),
        (("--target", "z"), "there is no column 'z'"),
        (("--target", "y", "--density", "student"), "density"),
        (("--target", "y", "--chart", "curve.pdf"), "a chart must end in .png, .svg, .html; got .pdf"),
    ]:
        code, _, err = run("duel", path, *args)
        assert code == 2
        assert message in err
    path.write_text("x,y\n1,a\n-2,b\n")
    code, _, err = run("duel", path, "--target", "y", "--density", "poisson")
    assert code == 2
    assert f"{path}, line 3: value -2.0 is not a count" in err
    path.write_text("x,y\n" + "".join(f"{k},{k}\n" for k in range(200)))
    assert "a duel needs labels" in run("duel", path, "--target", "y")[2]
    assert hindsight.cli.densities.leads(1, 1) == "even"
