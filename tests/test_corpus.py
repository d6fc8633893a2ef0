"""What is printed, certified and saved today stays so: `tests/corpus` holds it, `frozen.py` says what it is.

Words and verdicts are compared exactly, numbers to nine digits; on machines other than the one of
`tests/corpus/machine.json` searches have a tolerance of their own (`frozen.ELSEWHERE`). After a change that is meant,
write it anew; what has changed is printed, and belongs into the commit:

    CORPUS=write .venv/bin/python -m pytest -s tests/test_corpus.py
"""

import json
import os
import shlex
import shutil

import pytest
from typer.testing import CliRunner

import frozen
from conftest import many
from hindsight.cli import app
from hindsight.sources import open_source
from hindsight.storage import checkpoint

WRITE = os.environ.get("CORPUS") == "write"


@pytest.mark.parametrize("family", frozen.FAMILIES)
def test_what_is_certified(family):
    entries = [entry for entry in frozen.ENTRIES if entry.family == family]
    if not WRITE:
        assert sorted(frozen.stored(family)) == sorted(entry.name for entry in entries), "write the corpus anew"
        entries = [entry for entry in entries if many(entry.quick, True)]
    changed, made = [], {}
    for entry in entries:
        made[entry.name] = frozen.record(entry.make)
        changed += [f"{entry.name}: {line}" for line in frozen.differences(frozen.known(entry), made[entry.name])]
    if WRITE:
        frozen.write(family, made)
        frozen.write_machine()
        print("", *changed, sep="\n")
    else:
        assert not changed, "\n".join([f"{len(changed)} values differ:", *changed[:40]])


# --- files of today -------------------------------------------------------------------------------------------------

FILES, TOLD = frozen.FOLDER / "files", frozen.FOLDER / "files.json"


def told(name, made):
    """Compare what a file leads to with what it led to when it was written; note it instead when writing.

    The bits are the same with the same compiler for the same processor, and nine digits with any.
    """
    known = json.loads(TOLD.read_text()) if TOLD.exists() else {}
    if WRITE:
        known[name] = made
        TOLD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    elif frozen.at_home():
        assert made == known[name]
    else:
        assert frozen.differences(known[name], made) == []


@pytest.mark.parametrize("name", frozen.MODELS)
def test_a_file_predicts_and_learns_on_to_the_same_bits(name):
    path = FILES / name
    if WRITE:
        FILES.mkdir(exist_ok=True)
        frozen.MODELS[name]().save(path)
    told(name, frozen.told_by(name, path))


def test_no_file_is_left_over():
    wanted = {*frozen.MODELS, *(f"checkpoint-{name}" for name in frozen.CHECKPOINTS)}
    assert WRITE or {path.name for path in FILES.iterdir()} == wanted


def command(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "120", "NO_COLOR": "1"})
    assert done.exit_code == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", frozen.CHECKPOINTS)
def test_a_checkpoint_is_resumed_to_the_same_bits(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(frozen.table())
    learn = ("learn", "rows.csv", *shlex.split(frozen.CHECKPOINTS[name]), "--every", 20, "--json", "--progress", "none")
    if WRITE:
        with monkeypatch.context() as patch:
            patch.setitem(open_source.__kwdefaults__, "chunk", 700)  # so that there is one in the middle
            command(*learn, "--checkpoint", "kept")
        oldest = checkpoint.path_of("kept", checkpoint.generations("kept")[0])
        shutil.copy(oldest, FILES / f"checkpoint-{name}")
    (tmp_path / "resumed").mkdir()
    shutil.copy(FILES / f"checkpoint-{name}", checkpoint.path_of("resumed", 1))
    resumed, whole = command(*learn, "--checkpoint", "resumed", "--resume"), command(*learn)
    for each in (resumed, whole):
        for key in ("seconds", "rows_per_second"):
            each.pop(key, None)
    told(f"checkpoint-{name}", resumed)
    assert (resumed == whole) is (name not in frozen.BEFORE)
