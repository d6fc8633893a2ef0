"""Whole commands, as a user types them."""

import contextlib
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import hindsight
from commands import python, run
from conftest import nightly

CSV = "x1,x2,y\n1,0,1.0\n0,1,-1.0\n0.5,0.5,0.25\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    return path


def test_details_are_every_setting_and_all_sums(file):
    given = ("learn", file, "--target", "y", "--learner", "widrow-hoff", "--eta", "0.5", "--no-intercept")
    code, out, err = run(*given, "--details")
    assert code == 0
    assert "widrow-hoff, implicit step, η = 0.5, loss square(1), geometry euclidean" in err
    assert "intercept no, 1 pass" in err
    table = [line.split() for line in err.splitlines() if line.strip()[:1].isdigit()]
    model = hindsight.WidrowHoffRegressor(0.5, fit_intercept=False, keep_margins=True)
    model.fit([[1, 0], [0, 1], [0.5, 0.5]], [1.0, -1.0, 0.25])
    losses = (model.margins_ - [1.0, -1.0, 0.25]) ** 2
    assert [row[:3] for row in table] == [["3", *[f"{np.sqrt(losses.mean()):#.3g}"] * 2]]
    assert "\n3 rows × 2 features; " in out
    assert f"squared error {losses.sum():.6g}, mean {losses.mean():.6g}" in out
    *_, last = run(*given, "--progress", "json")[2].splitlines()
    assert json.loads(last)["mean_loss"] == pytest.approx([losses.mean()])
    assert json.loads(last)["since_last"] == pytest.approx([losses[2]])


def test_what_learn_prints_fits_on_a_screen():
    code, out, err = run("learn", "sample:diabetes", "--certify")
    assert code == 0 and len((err + out).splitlines()) <= 24
    first, second, verdict, worth, *rest = out.splitlines()
    assert first.startswith("off by 57.5 on average (root mean square; R² 0.44")
    assert first.endswith("; always predicting the mean would be off by 77.1")
    assert second.startswith(
        "the best fixed weights, known only now, would be off by 53.5; the theorem guarantees at most 57.8"
    )
    assert verdict.startswith("HOLDS, tight: ") and worth.strip().startswith("the promise is tight: ")
    assert rest[0].startswith("what moves predictions most (6 of 10)") and "Σ" not in out and "\n  member" not in out
    whole = run("learn", "sample:diabetes", "--certify", "--details")[1]
    assert "\n  member " in whole and "Σ" in whole and first in whole and verdict in whole


@pytest.mark.parametrize("loss", ["absolute", "poisson"])
def test_the_run_and_the_best_constant_are_in_one_unit(tmp_path, loss):
    rng = np.random.default_rng(0)
    y = rng.poisson(2.0, 64).astype(float)
    path = tmp_path / "counts.csv"
    path.write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(rng.normal(size=64), y, strict=True)))
    asked = ("learn", path, "--target", "y", "--learner", "descent", "--loss", loss, "--details")
    code, out, err = run(*asked, "--predictions", tmp_path / "p.csv")
    assert code == 0, err
    said = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1, usecols=1)
    square, constant = float(np.mean((said - y) ** 2)), float(np.var(y))
    assert f"; squared error {64 * square:.6g}, mean {square:.6g}\n" in out and f"\n{loss} loss " in out
    assert f"the best constant: squared error {64 * constant:.6g}, mean {constant:.6g}\n" in out
    *_, head, last = [line.split() for line in err.splitlines() if line.split()[:1] in (["rows"], ["64"])]
    assert head[1:2] == ["RMSE"] and head[4:5] == ["constant"]
    assert [float(last[1]), float(last[3])] == pytest.approx(np.sqrt([square, constant]), rel=5e-3)
    _, out, err = run(*asked, "--json", "--progress", "json")
    found, shown = json.loads(out), json.loads(err.splitlines()[-1])
    assert found["compared_by"] == shown["of"] == "squared error"
    assert found["learners"][0]["compared_loss"] == pytest.approx(64 * square)
    assert [*shown["mean_loss"], shown["best_constant"]] == pytest.approx([square, constant])


def test_learners_lists_the_table():
    code, out, _ = run("learners")
    assert code == 0
    for name in ("perceptron", "winnow", "widrow-hoff", "eg", "descent", "glm-tron"):
        assert name in out


@pytest.mark.parametrize(
    "args",
    [
        ("sample:diabetes",),
        ("sample:breast-cancer", "--learner", "perceptron"),
        ("sample:breast-cancer", "--learner", "winnow", "--margin", "0.1"),
        ("sample:digits", "--learner", "descent", "--loss", "logistic", "--passes", "2"),
    ],
)
def test_samples(args):
    code, out, err = run("learn", *args)
    assert code == 0
    assert f"{args[0]}: predicting" in err
    assert "; always predicting " in out and " features; " in out


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("", (), "the file is empty"),
        ("x,y\n", (), "bad.csv: there is no row"),
        ("x,y\n1,2\nred,3\n", (), "line 3, column 'x': 'red' is not a number"),
        ("x,y\n1\n", (), "line 2: 1 field, but there are 2 columns (row: '1')"),
        ("x,x,y\n1,2,3\n", (), "column 'x' appears twice in the header"),
        ("y\n1\n", (), "there is no column besides the target 'y'"),
        ("x,Y\n1,2\n", (), "there is no column 'y'"),
        ("x,y\n1,2\n", ("--learner", "widrow"), "--learner must be one of"),
        (
            "x,y\n1,2\n",
            ("--margin", "0.5"),
            "--margin is not an option of auto (it takes: loss, second-order, drift, quantile, delta, cells)",
        ),
        ("x,y\n1,2\n", ("--learner", "eg", "--eta", "0"), "eta must be a number above 0, got 0.0"),
        ("x,y\n1,no\n", ("--learner", "eg"), "line 2, column 'y': 'no' is not a number"),
        ("x,y\n1,no\n", (), "the target has one value only: 'no'"),
        ("x,y\n1,no\n2,no\n", ("--learner", "perceptron"), "the target has one value only: 'no'"),
        ("x,y\n1,2\nnan,3\n", (), "bad.csv, line 3, column 'x': the value is missing (row: 'nan,3')"),
        ("x,y\n1,2\n1,inf\n", (), "bad.csv, line 3, column 'y': 'inf' is not finite (row: '1,inf')"),
    ],
)
def test_bad_input_is_one_line(tmp_path, text, args, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    code, _, err = run("learn", path, "--target", "y", "--strict", *args)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


LMS = ("--target", "y", "--learner", "widrow-hoff")


def test_certify_prints_the_certificate_and_report_writes_a_page(file, tmp_path):
    page = tmp_path / "page.html"
    code, out, _ = run("learn", file, *LMS, "--eta", "0.1", "--update", "explicit", "--report", page, "--details")
    assert code == 0
    assert ": Widrow-Hoff, as met (Cesa-Bianchi, Long, Warmuth 1996)" in out
    assert "which must be below 1" in out
    text = re.sub(r"<script>.*?</script>", "", page.read_text(), flags=re.DOTALL)  # of the library that draws
    assert 'id="c-loss0"' in text
    assert "HOLDS" in text
    assert "://" not in text
    code, out, _ = run("learn", file, *LMS, "--eta", "2", "--update", "explicit", "--certify")
    assert code == 0
    assert "VOID: Widrow-Hoff" in out
    assert "max η·|x|₂² = 4, which must be below 1" in out


def test_certify_of_several_classes_states_the_union():
    code, out, _ = run("learn", "sample:digits", "--learner", "perceptron", "--certify", "--details")
    assert code == 0
    assert out.count("HOLDS, ") == 10
    assert "all classes: HOLDS (9 tight, 1 vacuous): the largest margin errs at most" in out


def test_a_broken_bound_exits_with_1(file, monkeypatch):
    import hindsight.certificates.theorems

    monkeypatch.setattr(hindsight.certificates.theorems, "verdict", lambda *_: (hindsight.Verdict.BROKEN, False))
    code, out, _ = run("learn", file, "--target", "y", "--certify")
    assert code == 1
    assert "BROKEN" in out


@contextlib.contextmanager
def unprivileged(folder):
    """As a user to whom permissions apply, and who can reach the folder."""
    before, above = os.geteuid(), [folder, *(p for p in folder.parents if "pytest" in p.name or "popen" in p.name)]
    modes = [path.stat().st_mode for path in above]
    if before == 0:
        for path, mode in zip(above, modes, strict=True):
            path.chmod(mode | 0o055)
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)
        for path, mode in zip(above, modes, strict=True):
            path.chmod(mode)


@pytest.mark.parametrize("option", ["--save", "--report", "--predictions", "--rejects"])
@pytest.mark.parametrize("place", ["missing", "folder", "file as folder", "locked", "locked file"])
def test_a_bad_place_is_refused_before_learning(file, tmp_path, option, place):
    """The data is not even opened: it does not exist."""
    locked = tmp_path / "locked"
    locked.mkdir()
    (locked / "file").touch()
    (locked / "file").chmod(0o400)
    locked.chmod(0o500)
    path, reason = {
        "missing": (tmp_path / "none" / "out", "No such file or directory"),
        "folder": (tmp_path, "Is a directory"),
        "file as folder": (file / "out", "Not a directory"),
        "locked": (locked / "out", "Permission denied"),
        "locked file": (locked / "file", "Permission denied"),
    }[place]
    with unprivileged(tmp_path):
        code, out, err = run("learn", tmp_path / "rows.csv", "--target", "y", option, path)
    assert (code, out) == (2, "")
    assert err == f"error: {path}: cannot be written: {reason}\n"
    if option == "--save":
        with unprivileged(tmp_path):
            code, out, err = run("learn", tmp_path / "rows.csv", "--target", "y", "--learner", "isotron", option, path)
        assert (code, err) == (2, f"error: {path}: cannot be written: {reason}\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "locked"]


def test_a_good_place_is_left_alone_until_there_is_something_to_write(file, tmp_path):
    for name in ("new", "old"):
        (tmp_path / "old").write_text("before")
        for option in ("--save", "--report", "--predictions", "--rejects"):
            code, _, err = run("learn", tmp_path / "none.csv", "--target", "y", option, tmp_path / name)
            assert code == 2 and "none.csv: No such file or directory" in err
            assert (tmp_path / "old").read_text() == "before" and not (tmp_path / "new").exists()
    for option in ("--save", "--report", "--predictions", "--rejects"):
        code, _, err = run("learn", file, "--target", "y", option, tmp_path / "old")
        assert code == 0, err
        assert not (tmp_path / "old").read_bytes().startswith(b"before")


def test_missing_file_directory_and_bytes(tmp_path):
    assert "No such file" in run("learn", tmp_path / "none.csv", "--target", "y")[2]
    assert "a folder without data files" in run("learn", tmp_path, "--target", "y")[2]
    path = tmp_path / "bytes.csv"
    path.write_bytes(b"x,y\n\xff,1\n")
    assert "line 2, column 'x'" in run("learn", path, "--target", "y", "--strict")[2]
    assert "--target COLUMN" in run("learn", path)[2]
    assert "there is no sample 'iris'" in run("learn", "sample:iris")[2]


def test_byte_order_mark_and_crlf(tmp_path):
    path = tmp_path / "windows.csv"
    path.write_bytes(b"\xef\xbb\xbfx,y\r\n1,2\r\n3,4\r\n")
    assert run("learn", path, "--target", "y")[0] == 0


def test_version_needs_nothing_heavy():
    code = "import sys; sys.argv=['hindsight','--version']; from hindsight.__main__ import main; main(); "
    code += "assert not {'numpy', 'numba', 'sklearn', 'typer'} & set(sys.modules), sys.modules.keys()"
    assert python(code) == f"hindsight {hindsight.__version__}\n"


def test_a_csv_is_learnt_without_scikit_learn(file):
    code = f"import sys; sys.argv=['hindsight', 'learn', {str(file)!r}, '--target', 'y']\n"
    code += "from hindsight.__main__ import main\ntry: main()\nexcept SystemExit as e: assert not e.code\n"
    code += "assert 'sklearn' not in sys.modules and 'scipy.sparse' not in sys.modules"
    python(code)


@nightly(but=["csv-args1", "vw-args5"])
@pytest.mark.parametrize(
    ("form", "args"),
    [
        ("csv", ("--target", "y")),
        ("csv", ("--target", "y", "--scale", "row-unit", "--learner", "eg")),
        ("csv", ("--target", "label", "--ignore", "y", "--learner", "perceptron")),
        ("svmlight", ()),
        ("svmlight", ("--learner", "perceptron")),
        ("vw", ("--learner", "perceptron", "--hash", "6")),
    ],
)
def test_a_pipe_gives_what_the_file_gives(tmp_path, form, args):
    """Rows enough for many blocks; what is learnt, to the last bit, does not depend on the medium."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30_000, 3)).round(4)
    sign = np.where(X @ [1.0, -2.0, 0.5] > 0, 1, -1).tolist()
    path = tmp_path / {"csv": "rows.csv", "svmlight": "rows.svm", "vw": "rows.vw"}[form]
    with path.open("w") as file:
        if form == "csv":
            file.write("a,b,c,label,y\n")
        for x, s in zip(X.tolist(), sign, strict=True):
            if form == "csv":
                file.write(f"{x[0]},{x[1]},{x[2]},{s},{sum(x):.4f}\n")
            else:
                bar = "| " if form == "vw" else ""
                file.write(f"{s} {bar}" + " ".join(f"{j}:{v}" for j, v in enumerate(x, 1)) + "\n")
    args = [*args, "--format", form, "--json", "--progress", "none"]
    if form == "csv" and "label" not in args:
        args += ["--ignore", "label"]
    code, out, err = run("learn", path, *args)
    with path.open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "hindsight", "learn", "-", *args], stdin=file, capture_output=True, text=True
        )
    assert (code, done.returncode) == (0, 0), err + done.stderr
    whole, piped = json.loads(out), json.loads(done.stdout)
    for name in ("rows", "learners", "best_constant"):
        assert whole[name] == piped[name]
    assert whole["rows"] == 30_000
