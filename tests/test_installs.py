"""Installs of every kind: without a cache, without UTF-8, without permissions, with a Python that is too old."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import hindsight
from commands import python
from conftest import nightly

PACKAGE, ROOT = Path(hindsight.__file__).parent, Path(__file__).parents[1]
LEARN = ("learn", "sample:diabetes", "--learner", "widrow-hoff", "--eta", "0.1")


def command(*words, python=(), prefix=(), **environment) -> subprocess.CompletedProcess:
    """What the command does, with its output as bytes."""
    line = [*prefix, sys.executable, *python, "-m", "hindsight", *map(str, words)]
    return subprocess.run(line, capture_output=True, env={**os.environ, **environment}, timeout=300)


# ---- compiled code without a cache


@pytest.fixture
def sealed(tmp_path) -> dict[str, str]:
    """A copy of the package in which nobody can cache anything, not even root."""
    copy = tmp_path / "site" / "hindsight"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()  # a file where a folder is wanted
    nowhere = "/dev/null/nowhere"
    return {"PYTHONPATH": str(copy.parent), "HOME": nowhere, "XDG_CACHE_HOME": nowhere, "NUMBA_CACHE_DIR": ""}


def test_without_a_cache_the_command_runs_and_says_so_once(sealed):
    done = command(*LEARN, **sealed)
    assert done.returncode == 0, done.stderr.decode()
    assert b"442 rows" in done.stdout
    told = [line for line in done.stderr.decode().splitlines() if "compiled" in line]
    assert len(told) == 1
    assert told[0].startswith("warning: no folder can be written for compiled code")
    assert "warn(" not in done.stderr.decode()


def test_without_a_cache_estimators_import_with_one_warning(sealed):
    code = (
        "import hindsight, warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    hindsight.WidrowHoffRegressor, hindsight.open_source, hindsight.density\n"
        "print(hindsight.__file__, [str(w.category.__name__) for w in seen])"
    )
    out = python(code, **sealed)
    assert sealed["PYTHONPATH"] in out and out.rstrip().endswith("['RuntimeWarning']")


# ---- output that is not UTF-8

NARROW = [
    {"PYTHONIOENCODING": "cp1252"},
    {"PYTHONIOENCODING": "ascii:strict"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@nightly(but=["ascii"])
@pytest.mark.parametrize("environment", NARROW, ids=["cp1252", "ascii", "C locale"])
def test_output_that_cannot_show_a_character_replaces_it(tmp_path, environment):
    for words in (("learn", "--help"), (*LEARN, "--certify", "--details")):
        done = command(*words, **environment)
        assert done.returncode == 0, done.stderr.decode("latin-1")
        assert b"?" in done.stdout and b"Error" not in done.stderr


def test_a_report_has_all_characters_whatever_the_output_can_show(tmp_path):
    report = tmp_path / "report.html"
    done = command(*LEARN, "--report", report, **NARROW[0])
    assert done.returncode == 0, done.stderr.decode("latin-1")
    assert "×" in report.read_text(encoding="utf-8")


@nightly(but=["C locale"])
@pytest.mark.parametrize("environment", NARROW, ids=["cp1252", "ascii", "C locale"])
def test_errors_and_files_of_other_alphabets_are_told_in_one_line(tmp_path, environment):
    file = tmp_path / "列.csv"
    file.write_text("α,y\n1,2\nж,3\n", encoding="utf-8")
    done = command("learn", file, "--target", "y", "--learner", "widrow-hoff", "--strict", **environment)
    told = done.stderr.decode("latin-1").splitlines()
    assert done.returncode == 2
    assert told[-1].startswith("error: ") and "Traceback" not in done.stderr.decode("latin-1")


def test_a_file_name_that_is_no_text_is_told_in_one_line(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff.csv"
    with open(name, "wb") as file:
        file.write(b"a,y\n1,x\n2,3\n")
    done = command("learn", os.fsdecode(name), "--target", "y", "--learner", "widrow-hoff")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1 and done.stderr.startswith(b"error: ")


# ---- files without permission


def without_privileges() -> list[str]:
    """What makes permissions bind a command, also for root; the test is skipped where nothing does."""
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    if shutil.which("setpriv") and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
        return prefix
    pytest.skip("root reads every file, and setpriv is not there to give the privilege up")


@nightly(but=["csv", "parquet", "npy"])
@pytest.mark.parametrize("end", ["csv", "csv.gz", "jsonl", "svmlight", "vw", "parquet", "arrow", "npy"])
def test_a_file_without_permission_is_told_in_one_line(tmp_path, end):
    file = tmp_path / f"secret.{end}"
    file.write_bytes(b"a,y\n1,2\n")
    file.chmod(0)
    done = command("learn", file, "--target", "y", "--learner", "widrow-hoff", prefix=without_privileges())
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert done.returncode == 2
    assert done.stderr.decode() == f"error: {file}: Permission denied\n"


# ---- Python itself


@pytest.mark.skipif(not (ROOT / "Makefile").is_file() or not shutil.which("make"), reason="there is nothing to make")
@pytest.mark.parametrize("version", ["2.7.18", "3.9.18", "3.10.13"])
def test_make_says_which_python_it_needs(tmp_path, version):
    (tmp_path / "requirements").mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements/dev.txt", "requirements/run.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    old = tmp_path / "old-python"
    major = tuple(map(int, version.split(".")))
    lie = f'import sys; sys.version_info, sys.version = {major}, "{version} (old)"'
    venv = 'sys.argv[1:] == ["-m", "venv", ".venv"] and sys.exit("made an environment")'
    old.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{lie}; {venv}; exec(sys.argv[2])' \"$@\"\n")
    old.chmod(0o755)
    done = subprocess.run(["make", f"PYTHON={old}", "run"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert f"Python 3.11 or later is needed, and {old} is {version}" in done.stderr
    assert "made an environment" not in done.stderr and not (tmp_path / ".venv").exists()
