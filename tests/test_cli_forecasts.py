"""`hindsight compare` and `hindsight calibrate`, as a user types them."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import hindsight.cli.forecasts
from hindsight.cli import app
from hindsight.forecast import compare, reliability


def run(*args):
    result = CliRunner().invoke(app, [str(a) for a in args], env={"COLUMNS": "200", "NO_COLOR": "1"})
    return result.exit_code, result.stdout, result.stderr


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
        row = [name, *(f"{v:.6g}" for v in parts), str(one.pools.value.size)]
        assert any(line.split() == row for line in out.splitlines())
    assert "MCB, miscalibration: what isotonic recalibration would save." in out
    code, out, _ = run("calibrate", file, "--outcome", "rain", "--forecast", "ada", "--weight", "w", "--json")
    assert code == 0
    want = reliability(data["rain"], data["ada"], data["w"]).to_dict()
    assert json.loads(out) == {"file": str(file), "forecasts": {"ada": want}}


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
        ({}, ("--loss", "brier"), "loss must be one of 'square', 'log', 'quadratic'; got 'brier'"),
        ({}, ("--alpha", "2"), "alpha must lie between 0 and 1, got 2.0"),
        ({}, ("--chart", "out.pdf"), "a chart must end in .png, .svg, .html; got .pdf"),
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
    assert hindsight.cli.forecasts.compare.__doc__.startswith("Which forecaster is closer to the truth")
