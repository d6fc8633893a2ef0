"""Budgets of a small command: how much it loads. What is counted does not depend on the machine; nothing is timed."""

import json
import os
import subprocess
import sys

import pytest

from commands import python
from hindsight.cli import VERBS, app, load_app

SMALL = ("learn", "sample:diabetes", "--progress", "none")
NEVER = ("hindsight.forecast", "hindsight.density", "scipy.optimize", "scipy.special", "sklearn")

# The last thing on standard error is what was loaded since Python had started, once the command is done.
COUNTED = """
import atexit, json, sys
before = set(sys.modules)
atexit.register(lambda: print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr))
from hindsight.__main__ import main
main()
"""


def modules_after(*args):
    """The modules that a command loads once its kernels are compiled."""
    command = [sys.executable, "-c", COUNTED, *map(str, args)]
    env = {k: v for k, v in os.environ.items() if k != "HINDSIGHT_PLAIN"}  # whose paths set the compiler up
    for _ in range(2):  # the first may compile, which loads more
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
        assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def loaded(modules, names):
    """Those of the names that were loaded, or a part of them."""
    return [name for name in names if any(m == name or m.startswith(f"{name}.") for m in modules)]


# ---------------------------------------------------------------- modules


@pytest.mark.parametrize(
    ("more", "never", "own", "every"),
    # Limits, 5 % above what was counted in Python 3.11 with requirements/dev.txt: our modules, and all of them. Python
    # itself has loaded about 60 by then, which do not count.
    [
        ([], [*NEVER, "altair", "narwhals", "pyarrow", "rich", "scipy.linalg", "scipy.sparse"], 87, 607),
        (["--certify"], [*NEVER, "altair", "narwhals", "pyarrow", "rich", "scipy.sparse"], 138, 794),
        (["--report", "page.html"], [*NEVER, "pyarrow", "rich", "scipy.sparse"], 154, 1015),
    ],
    ids=["learn", "certify", "report"],
)
def test_learning_from_a_few_rows_loads_what_it_needs(tmp_path, monkeypatch, more, never, own, every):
    monkeypatch.chdir(tmp_path)
    found = modules_after(*SMALL, *more)
    assert loaded(found, never) == []
    assert len(found) <= every
    assert sum(m.partition(".")[0] == "hindsight" for m in found) <= own


def test_the_modules_of_verbs_are_those_that_define_them():
    where = {
        (info.name or info.callback.__name__): info.callback.__module__.rpartition(".")[2]
        for info in app.registered_commands
    }
    assert where == {verb: module for module, verbs in VERBS.items() for verb in verbs}
    assert load_app("learn") is app and load_app("no such verb") is app


def test_one_verb_is_loaded_without_the_others():
    code = "from hindsight.cli import load_app\n"
    code += "print(*(command.callback.__name__ for command in load_app('look').registered_commands))"
    assert python(code) == "look\n"


def test_workers_of_a_cluster_load_neither_estimators_nor_certificates():
    pytest.importorskip("distributed")
    code = "import sys, hindsight.cluster.rows, hindsight.cluster.isotron\nprint(*sys.modules)"
    heavy = {"sklearn", "scipy.stats", "pandas", "hindsight.estimators", "hindsight.certificates.certify"}
    assert not heavy & set(python(code).split())
