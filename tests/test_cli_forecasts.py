"""`hindsight compare` and `hindsight calibrate`, as a user types them."""

import json
import sys

import numpy as np
import pytest

import hindsight.cli.forecasts
from commands import run
from hindsight.cli import app
from hindsight.forecast import Scores, calibration_test, compare, comparison, reliability


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    p = rng.random(400).round(3)
    y = (rng.random(400) < p).astype(int)
    return {"rain": y, "ada": p, "bert": np.full(400, 0.5), "copy": p, "w": rng.integers(1, 4, 400), "mm": 10 * p} | {
        "cara": np.clip(p, 0.001, 0.999)
    }


@pytest.fixture(scope="module")
def file(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "weather.csv"
    lines = [",".join(data), *(",".join(str(v) for v in row) for row in zip(*data.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_compare_prints_every_setting_the_tables_and_the_verdict(file, data):
    code, out, _ = run("compare", file, "--outcome", "rain", "--forecasts", "ada,bert")
    assert code == 0
    found = compare(data["rain"], {k: data[k] for k in ("ada", "bert")})
    assert "400 rounds" in out
    assert "outcome 'rain', weight none, square loss, α = 0.05" in out
    assert "verdict by the interval 'mixture', at this number of rounds" in out
    for name, mean in found.means.items():
        assert any(line.split()[:2] == [name, f"{mean:.6g}"] for line in out.splitlines() if line)
    assert [line.split()[-1] for line in out.splitlines() if line.startswith((" ada  ", " bert  "))] == ["yes", "no"]
    for line in str(found).splitlines():
        assert line in out
    half = found.pairs[0].fixed.ranges.high - found.pairs[0].difference
    assert f"± {half:.4g}" in out
    assert found.pairs[0].words.startswith("ada is closer to the truth than bert")


def test_anytime_weights_and_identical_forecasters(file, data):
    code, out, _ = run("compare", file, "--outcome", "rain", "--forecasts", "ada, bert, copy", "--anytime")
    assert code == 0
    assert (
        "verdict by the interval 'mixture', at every time, tuned for 1,000 rounds" in out
        and "valid at every time" in out
    )
    assert "ada and copy gave the same forecasts: the difference is exactly 0" in out
    code, out, _ = run("compare", file, "--outcome", "rain", "--forecasts", "ada,bert", "--weight", "w", "--json")
    assert code == 0
    names = {k: data[k] for k in ("ada", "bert")}
    want = compare(data["rain"], names, data["w"]).to_dict()
    assert json.loads(out) == {"file": str(file), **want}


def test_log_losses_need_no_bound_and_quadratic_ones_those_of_the_outcomes(file):
    given = ("compare", file, "--outcome", "rain", "--forecasts", "cara,bert", "--loss", "log")
    code, out, _ = run(*given)
    assert code == 0 and "VOID" not in out and "cara is closer to the truth than bert" in out
    given = ("compare", file, "--outcome", "mm", "--forecasts", "ada,bert", "--loss", "quadratic")
    code, out, _ = run(*given)
    assert code == 0 and "VOID: quadratic losses are unbounded" in out
    code, out, _ = run(*given, "--bounds", "0,10")
    assert code == 0 and "VOID" not in out and "bounds 0,10" in out


def test_the_interval_and_the_horizon_are_chosen_in_advance(file, data):
    names = {k: data[k] for k in ("ada", "bert")}
    given = ("compare", file, "--outcome", "rain", "--forecasts", "ada,bert", "--json")
    code, out, _ = run(*given, "--by", "bernstein", "--anytime", "--horizon", "400")
    want = compare(data["rain"], names, by="bernstein", anytime=True, horizon=400).to_dict()
    assert code == 0 and json.loads(out) == {"file": str(file), **want}
    code, out, _ = run(*given, "--lag", "3")
    assert code == 0 and json.loads(out) == {"file": str(file), **compare(data["rain"], names, lag=3).to_dict()}
    code, _, err = run(*given, "--by", "luck")
    assert code == 2 and "by must be one of 'mixture', 'ranges', 'bernstein'; got 'luck'" in err


def test_half_points(tmp_path):
    path = tmp_path / "games.csv"
    path.write_text("won,a,b\n1,0.6,0.5\n0.5,0.4,0.5\n0,0.3,0.5\n")
    given = ("compare", path, "--outcome", "won", "--forecasts", "a,b")
    code, _, err = run(*given)
    assert code == 2
    assert f"{path}, line 3, column 'won': 0.5 must be 0 or 1; numbers want --loss quadratic --bounds LOW,HIGH" in err
    code, out, _ = run(*given, "--loss", "quadratic", "--bounds", "0,1")
    assert code == 0 and "VOID" not in out


def test_calibrate_prints_the_decomposition(file, data):
    code, out, _ = run("calibrate", file, "--outcome", "rain", "--forecast", "ada,bert")
    assert code == 0
    for name in ("ada", "bert"):
        one = reliability(data["rain"], data[name])
        parts = (one.score, one.miscalibration, one.discrimination, one.uncertainty)
        test = calibration_test(data["rain"], data[name])
        row = [name, *(f"{v:.6g}" for v in parts), str(one.pools.value.size)]
        assert any(line.split() == row for line in out.splitlines())
        assert f"{name}: {test.words}" in out
    assert "bets on isotonic recalibration learnt from earlier rows" in out
    assert "MCB, miscalibration: what isotonic recalibration would save." in out
    code, out, _ = run("calibrate", file, "--outcome", "rain", "--forecast", "ada", "--weight", "w", "--json")
    assert code == 0
    want = reliability(data["rain"], data["ada"], data["w"]).to_dict()
    want["test"] = calibration_test(data["rain"], data["ada"], data["w"]).to_dict()
    assert json.loads(out) == {"file": str(file), "forecasts": {"ada": want}}


# ---------------------------------------------------------------- classes, quantiles, intervals, counts


def write(path, columns):
    rows = zip(*(np.asarray(v).tolist() for v in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def games(m=300):
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(3), m).round(4), rng.dirichlet(np.ones(3), m).round(4)
    return np.array(list("HDA"))[(rng.random(m)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)], p, q


def test_classes_are_columns_with_a_colon_or_where_the_star_stands(tmp_path):
    y, p, q = games()
    colon = {"won": y} | {f"{n}:{k}": h[:, j] for n, h in (("Ada", p), ("Bo", q)) for j, k in enumerate("HDA")}
    star = {"won": y} | {f"{n}_{k}%": h[:, j] for n, h in (("Ada", p), ("Bo", q)) for j, k in enumerate("HDA")}
    for loss in ("square", "log"):
        want = compare(y, {"Ada": p, "Bo": q}, classes=list("HDA"), loss=loss).to_dict()
        for columns, names in ((colon, "Ada,Bo"), (star, "Ada_*%,Bo_*%")):
            path = write(tmp_path / "games.csv", columns)
            given = ("compare", path, "--outcome", "won", "--forecasts", names, "--classes", "H,D,A", "--loss", loss)
            code, out, err = run(*given, "--json")
            assert code == 0, err
            found = json.loads(out)
            assert found["pairs"][0]["difference"] == want["pairs"][0]["difference"]
    code, out, _ = run("compare", path, "--outcome", "won", "--forecasts", "Ada_*%,Bo_*%", "--classes", "H,D,A")
    assert code == 0 and "square loss, classes H, D, A, α = 0.05" in out
    star["Bo_D%"][4] = 3.0
    write(path, star)
    code, _, err = run(*given)
    assert code == 2 and f"{path}, line 6, column 'Bo_D%': 3.0 is not a probability" in err
    star["Bo_D%"][4], star["won"][2] = 0.0, "X"
    code, _, err = run("compare", write(path, star), *given[2:])
    assert code == 2 and "line 4, column 'won': 'X' is not one of the classes H, D, A" in err


def test_quantiles_intervals_and_counts(tmp_path):
    rng = np.random.default_rng(2)
    mean = rng.gamma(3.0, 2.0, 400).round(3)
    y, other = rng.poisson(mean), np.full(400, 6.0)
    low, high = np.maximum(mean - 4, 0).round(3), (mean + 4).round(3)
    columns = {"n": y, "A": mean, "B": other, "A:low": low, "A:high": high, "B:low": other - 6, "B:high": other + 6}
    path = write(tmp_path / "counts.csv", columns)
    base = ("compare", path, "--outcome", "n", "--forecasts", "A,B", "--json")
    both = {"A": np.stack([low, high], axis=1), "B": np.stack([other - 6, other + 6], axis=1)}
    for given, forecasts, options in (
        (("--loss", "poisson", "--bounds", "0,60"), {"A": mean, "B": other}, {"loss": "poisson", "bounds": (0, 60)}),
        (("--loss", "pinball", "--quantile", "0.5"), {"A": mean, "B": other}, {"loss": "pinball", "quantile": 0.5}),
        (("--loss", "winkler", "--coverage", "0.9"), both, {"loss": "winkler", "coverage": 0.9}),
    ):
        code, out, err = run(*base, *given)
        assert code == 0, err
        assert json.loads(out) == {"file": str(path), **compare(y, forecasts, **options).to_dict()}
    given = ("calibrate", path, "--outcome", "n", "--forecast", "A,B", "--loss", "pinball", "--quantile", "0.5")
    code, out, err = run(*given, "--chart", tmp_path / "out.svg")
    assert code == 0 and "pinball loss, quantile 0.5" in out and "quantile of the outcomes" in out, err
    assert "Evidence against calibration" in (tmp_path / "out.svg").read_text()
    code, out, err = run("calibrate", path, "--outcome", "n", "--forecast", "A,B", "--loss", "poisson")
    assert code == 0 and "Not tested for calibration: that needs --bounds LOW,HIGH" in out, err
    given = ("calibrate", path, "--outcome", "n", "--forecast", "A", "--loss", "poisson", "--bounds", "0,60")
    code, out, err = run(*given)
    assert code == 0 and calibration_test(y, mean, loss="poisson", bounds=(0, 60)).words in out, err
    code, _, err = run("calibrate", path, "--outcome", "n", "--forecast", "A", "--loss", "winkler")
    assert code == 2 and "--loss winkler needs --coverage" in err


def test_calibrate_classes_and_forecasts_made_ahead(tmp_path):
    y, p, q = games()
    columns = {"won": y} | {f"{n}:{k}": h[:, j] for n, h in (("Ada", p), ("Bo", q)) for j, k in enumerate("HDA")}
    path = write(tmp_path / "games.csv", columns)
    given = ("calibrate", path, "--outcome", "won", "--forecast", "Ada,Bo", "--classes", "H,D,A", "--lag", "2")
    code, out, err = run(*given, "--chart", tmp_path / "out.svg", "--band", "none")
    assert code == 0, err
    assert "square loss, classes H, D, A, forecasts 2 rounds ahead" in out
    total = 0.0
    for k, label in enumerate("HDA"):
        one = reliability(y == label, p[:, k])
        parts = (one.score, one.miscalibration, one.discrimination, one.uncertainty)
        row = [f"Ada:{label}", *(f"{v:.6g}" for v in parts), str(one.pools.value.size)]
        assert any(line.split() == row for line in out.splitlines())
        total += one.score
    assert total == pytest.approx(compare(y, {"Ada": p, "Bo": q}, classes=list("HDA")).means["Ada"], rel=1e-12)
    tests = {n: calibration_test(y, h, classes=list("HDA"), lag=2) for n, h in (("Ada", p), ("Bo", q))}
    for name, test in tests.items():
        assert f"{name}: {test.words}" in out
    assert "Bo:D" in (tmp_path / "out.svg").read_text()
    code, out, _ = run(*given, "--json")
    found = json.loads(out)["forecasts"]
    assert code == 0 and found["Bo"]["test"] == tests["Bo"].to_dict()
    assert found["Bo"]["classes"]["D"] == reliability(y == "D", q[:, 1]).to_dict()
    code, _, err = run(*given[:-1], "0")
    assert code == 2 and "lag must be a whole number, at least 1; got 0" in err


# ---------------------------------------------------------------- missing and late outcomes


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_missing_and_late_outcomes(tmp_path, data, form):
    import pyarrow as pa
    import pyarrow.parquet as pq

    y = data["rain"].astype(object)
    y[[3, 7, 9]] = None
    columns = {"day": [f"d{k}" for k in range(400)], "rain": y.tolist(), "a": data["ada"].tolist(), "b": [0.5] * 400}
    path = tmp_path / f"weather.{form}"
    if form == "parquet":
        pq.write_table(pa.table(columns), path)
    elif form == "jsonl":
        rows = zip(*columns.values(), strict=True)
        path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
    else:
        write(path, columns | {"rain": ["NA" if v is None else v for v in y]})
    base = ("compare", path, "--outcome", "rain", "--forecasts", "a,b")
    code, out, err = run(*base)
    assert code == 0, err
    assert "397 rounds" in out and "3 rows have no outcome yet: forecast, counted and not scored" in out
    code, out, err = run("calibrate", path, "--outcome", "rain", "--forecast", "a,b")
    assert code == 0 and "3 rows have no outcome yet: not scored." in out, err
    h = {"a": data["ada"], "b": np.full(400, 0.5)}
    scores = Scores("ab").update(y.astype(float), h).bring([9, 3], [1, 0])
    late = write(tmp_path / "late.csv", {"day": ["d9", "d3"], "row": [10, 4], "rain": [1, 0]})
    for options in (("--id", "day"), ()):
        code, out, err = run(*base, "--late", late, *options, "--json")
        assert code == 0, err
        assert json.loads(out) == {"file": str(path), **comparison(scores).to_dict()}
    for row in (11, 10):
        late.write_text(f"row,rain\n10,1\n{row},0\n")
        code, _, err = run(*base, "--late", late)
        want = f"{late}, line 3, column 'row': '{row}' is no row of {path} that waits for its outcome"
        assert code == 2 and want in err


def test_charts(file, tmp_path):
    path = tmp_path / "out.svg"
    code, _, err = run("compare", file, "--outcome", "rain", "--forecasts", "ada,bert", "--chart", path)
    assert code == 0, err
    text = path.read_text()
    assert (
        "loss of ada" in text
        and "Evidence: ada and bert" in text
        and "consistency band, 1,000 resamples, seed 0" in text
    )
    given = ("calibrate", file, "--outcome", "rain", "--forecast", "ada", "--chart", path, "--band", "confidence")
    code, out, err = run(*given, "--resamples", "50", "--seed", "7")
    assert code == 0, err
    assert "band confidence, level 0.9, 50 resamples, seed 7" in out
    assert "confidence band, 50 resamples, seed 7" in path.read_text()


@pytest.mark.parametrize(
    ("change", "args", "message"),
    [
        ({(2, "ada"): "1.25"}, (), "line 4, column 'ada': 1.25 is not a probability: it must lie in [0, 1]"),
        ({(0, "ada"): ""}, (), "line 2, column 'ada'"),
        ({(1, "rain"): "wet"}, (), "line 3, column 'rain'"),
        ({(1, "rain"): "2"}, (), "line 3, column 'rain': 2.0 must be 0 or 1"),
        ({(3, "w"): "-1"}, ("--weight", "w"), "line 5: weight -1.0 must be"),
        ({}, ("--weight", "wet"), "there is no column 'wet'"),
        (
            {},
            ("--loss", "brier"),
            "'poisson', 'pinball', 'winkler'; got 'brier'",
        ),
        ({}, ("--alpha", "2"), "alpha must lie between 0 and 1, got 2.0"),
        ({}, ("--chart", "out.pdf"), "a chart must end in .png, .svg, .html; got .pdf"),
        ({}, ("--loss", "pinball"), "--loss pinball needs --quantile"),
        ({}, ("--coverage", "0.9"), "--loss square takes no --coverage"),
        ({}, ("--classes", "0,1"), "there is no column 'ada:0'"),
        ({}, ("--loss", "quadratic", "--bounds", "1"), "--bounds must be LOW,HIGH, two numbers; got '1'"),
    ],
)
def test_errors_are_one_line_with_the_place(data, tmp_path, change, args, message):
    path = tmp_path / "bad.csv"
    columns = {k: [str(x) for x in v[:5]] for k, v in data.items()}
    for (row, name), value in change.items():
        columns[name][row] = value
    path.write_text("\n".join([",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]))
    code, out, err = run("compare", path, "--outcome", "rain", "--forecasts", "ada,bert", *args)
    assert code == 2 and out == ""
    assert err.startswith("error: ") and err.count("\n") == 1
    assert message in err
    if "line" in message:
        assert f"{path}, line" in err


def test_blank_lines_do_not_shift_the_place(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text('y,a,b\n\n1,0.5,0.5\n\n0,"0.5",7\n')
    code, _, err = run("compare", path, "--outcome", "y", "--forecasts", "a,b")
    assert code == 2 and f"{path}, line 5, column 'b': 7.0" in err


def test_one_forecaster_a_missing_extra_and_no_file(file, monkeypatch):
    code, _, err = run("compare", file, "--outcome", "rain", "--forecasts", "ada")
    assert code == 2 and "at least two forecasters, got 1" in err
    code, _, err = run("compare", "none.csv", "--outcome", "rain", "--forecasts", "ada,bert")
    assert code == 2 and "none.csv" in err
    code, _, err = run("calibrate", file, "--outcome", "rain", "--forecast", "ada", "--band", "wide")
    assert code == 2 and "--band must be one of" in err
    monkeypatch.setitem(sys.modules, "altair", None)
    code, _, err = run("calibrate", file, "--outcome", "rain", "--forecast", "ada", "--chart", "out.png")
    assert code == 2 and err == "error: charts need altair and vl-convert: pip install hindsight-learn[charts]\n"


def test_the_module_names_its_verbs():
    assert {"compare", "calibrate"} <= {command.callback.__name__ for command in app.registered_commands}
    assert hindsight.cli.forecasts.compare.__doc__.startswith("Compare forecasters")
