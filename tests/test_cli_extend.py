"""`hindsight --extend`: user code that is imported before the verb runs."""

import os
import re
import subprocess
import sys

import pytest

from hindsight.online import learners, parts
from test_cli import CSV, run

NOTHING = "import hindsight\nhindsight.extension = __name__\n"
LEARNER = """
from dataclasses import replace
from hindsight.online import learners

def doubled(eta: float = 0.1):
    return replace(learners.widrow_hoff(2 * eta, "explicit"), name="doubled")

learners.LEARNERS["doubled"] = learners.LEARNERS["widrow-hoff"]._replace(name="doubled", make=doubled)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder for extensions; what they leave is removed afterwards."""
    monkeypatch.setattr("hindsight.extension", None, raising=False)
    known = dict(learners.LEARNERS)
    monkeypatch.delenv("HINDSIGHT_EXTEND", raising=False)
    (tmp_path / "data.csv").write_text(CSV)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    learners.LEARNERS.clear()
    learners.LEARNERS.update(known)


def test_a_file_is_a_module_named_after_its_stem(place):
    import hindsight

    (place / "tiny_part.py").write_text(NOTHING)
    assert run("--extend", place / "tiny_part.py", "learners")[0] == 0
    assert hindsight.extension == "tiny_part"
    hindsight.extension = None
    assert run("--extend", place / "tiny_part.py", "learners")[0] == 0
    assert hindsight.extension is None  # imported once only


def test_a_module_is_imported_by_its_name(place, monkeypatch):
    import hindsight

    (place / "tiny_module.py").write_text(NOTHING)
    monkeypatch.syspath_prepend(place)
    assert run("--extend", "tiny_module", "learners")[0] == 0
    assert hindsight.extension == "tiny_module"


def test_several_and_the_environment(place, monkeypatch):
    import hindsight

    for name in "abc":
        (place / f"part_{name}.py").write_text(
            f"import hindsight\nhindsight.extension = hindsight.extension + {name!r}"
        )
    hindsight.extension = ""
    monkeypatch.setenv("HINDSIGHT_EXTEND", f"{place / 'part_c.py'}{os.pathsep}{os.pathsep}{place / 'part_a.py'}")
    assert run("--extend", place / "part_a.py", "--extend", place / "part_b.py", "learners")[0] == 0
    assert hindsight.extension == "cab"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.py", None, "No such file or directory"),
        ("no_such_module", None, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("folder.py", "folder", "Is a directory"),
        ("wrong.py", "def\n", "SyntaxError: invalid syntax (wrong.py, line 1)"),
        ("raises.py", "raise KeyError('two\\nlines')", "KeyError: 'two\\nlines'"),
        ("value.py", "raise ValueError('two\\nlines')", "two lines"),
        ("json.py", "", "there is another module 'json': rename the file"),
        ("this.py", "", "there is another module 'this': rename the file"),
        ("part.txt", "", "not a Python file: its name must end in .py"),
    ],
)
def test_what_cannot_be_imported_is_one_line(place, name, text, message):
    path = name if "." not in name else place / name
    if text == "folder":
        path.mkdir()
    elif text is not None:
        path.write_text(text)
    code, out, err = run("--extend", path, "learn", place / "data.csv", "--target", "y")
    assert (code, out) == (2, "")
    assert err == f"error: --extend {path}: cannot be imported: {message}\n"
    assert name.removesuffix(".py") not in sys.modules or name == "json.py"


def test_a_learner_defined_elsewhere_goes_through_every_verb(place):
    (place / "my_learner.py").write_text(LEARNER)
    extended, model = ("--extend", place / "my_learner.py"), place / "model"
    rows = (place / "data.csv", "--target", "y")
    assert "doubled" in run(*extended, "learn", "--help")[1]
    assert "doubled" in run(*extended, "learners")[1]
    code, out, err = run(*extended, "learn", *rows, "--learner", "doubled", "--eta", "0.2", "--save", model)
    assert code == 0 and "doubled, explicit step, η = 0.4" in err
    code, plain, _ = run("learn", *rows, "--learner", "widrow-hoff", "--eta", "0.4", "--update", "explicit")
    assert out.splitlines()[:3] == plain.splitlines()[:3]
    code, _, err = run(*extended, "learn", *rows, "--learner", "doubled", "--radius", "2")
    assert code == 2 and err == "error: --radius is not an option of doubled (it takes: eta)\n"
    assert "doubled, explicit step, η = 0.4" in run(*extended, "inspect", model)[1]
    assert run(*extended, "predict", model, place / "data.csv")[0] == 0
    assert '"learner": "doubled"' in run(*extended, "export", model)[1]
    assert run(*extended, "certify", model, place / "data.csv")[0] == 0


def test_the_command_of_a_process(place):
    (place / "my_learner.py").write_text(LEARNER)
    args = ["learn", place / "data.csv", "--target", "y", "--learner", "doubled", "--json", "--progress", "none"]
    for before, more in (
        (["--extend", place / "my_learner.py"], {}),
        ([], {"HINDSIGHT_EXTEND": str(place / "my_learner.py")}),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "hindsight", *before, *args],
            capture_output=True, text=True, env=os.environ | more,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert '"learner": "doubled, explicit step' in done.stdout


def test_help_names_what_is_registered():
    code, out, _ = run("learn", "--help")
    assert code == 0
    text = " ".join(out.replace("│", " ").split())
    for table in (learners.LEARNERS, parts.LOSSES, parts.UPDATES, parts.GEOMETRIES, parts.LINKS):
        assert ", ".join(table) in text
    assert not re.search(r"\{[a-z]+\}", text)
    assert "eg, descent: L1 norm of signed weights" in text
