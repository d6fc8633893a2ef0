"""Checkpoints: two generations, the newest whole one is taken, whatever happened to the writer or the file."""

import errno
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from commands import in_a_fork
from conftest import many, nightly
from hindsight.errors import ModelError
from hindsight.online import learners
from hindsight.online.run import Run, play
from hindsight.storage import checkpoint
from hindsight.storage import container as files
from hindsight.storage.checkpoint import generations, latest, path_of, write
from test_files import Layer, killing
from test_model import equal


def test_the_newest_is_taken_and_two_are_kept(tmp_path):
    folder = tmp_path / "a" / "b"
    assert latest(folder) is None and generations(folder) == []
    for number in range(1, 6):
        write(folder, {"number": number, "w": np.full(3, number / 3)})
        assert generations(folder) == list(range(max(1, number - 1), number + 1))
        assert equal(latest(folder), {"number": number, "w": np.full(3, number / 3)})
    assert sorted(os.listdir(folder)) == ["0000000004.checkpoint", "0000000005.checkpoint"]


def test_other_files_are_let_alone(tmp_path):
    for name in ("notes.txt", "1.checkpoint", "0000000001.checkpoint.bak", "checkpoint"):
        (tmp_path / name).write_text("mine")
    for number in range(4):
        write(tmp_path, {"number": number})
    assert len(os.listdir(tmp_path)) == 6 and latest(tmp_path) == {"number": 3}


def test_a_damaged_newest_gives_way_to_the_older(tmp_path):
    for number in (1, 2):
        write(tmp_path, {"number": number})
    newest = Path(path_of(tmp_path, 2))
    whole = newest.read_bytes()
    for size in range(len(whole)):
        newest.write_bytes(whole[:size])
        assert latest(tmp_path) == {"number": 1}
    for place in range(0, len(whole), 7):
        newest.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        assert latest(tmp_path) == {"number": 1}
    write(tmp_path, {"number": 3})
    assert latest(tmp_path) == {"number": 3}


def test_none_whole_is_an_error_that_names_the_newest(tmp_path):
    for number in (1, 2):
        write(tmp_path, {"number": number})
        Path(path_of(tmp_path, number)).write_bytes(b"")
    with pytest.raises(ModelError, match=r"0000000002\.checkpoint: not a complete model file: it has 0 bytes"):
        latest(tmp_path)


def test_a_model_is_no_checkpoint_and_a_checkpoint_no_model(tmp_path):
    from hindsight.storage.model import load
    from hindsight.training.model import Model

    write(tmp_path, {"number": 1})
    with pytest.raises(ModelError, match="its kind is 'checkpoint'"):
        load(path_of(tmp_path, 1))
    Model([Run(learners.perceptron(), 2)]).save(path_of(tmp_path, 1))
    with pytest.raises(ModelError, match="its kind is 'model'"):
        latest(tmp_path)
    files.write(path_of(tmp_path, 1), "checkpoint", "[1]", {})
    with pytest.raises(ModelError, match="the state must be a mapping"):
        latest(tmp_path)


def test_a_folder_that_cannot_be_made_is_one_error(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(ModelError, match=f"{folder}: cannot be"):
            write(folder, {})
    with pytest.raises(ModelError, match="file: cannot be read: Not a directory"):
        latest(tmp_path / "file")


def through(monkeypatch, hook, folder, state):
    layer = Layer(hook)
    with monkeypatch.context() as patch:
        patch.setattr(files, "os", layer)
        patch.setattr(checkpoint, "os", layer)
        write(folder, state)
    return layer.log


@nightly(but=["1"])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_killed_after_any_call_the_last_or_the_new_state_is_there(tmp_path, monkeypatch, before):
    def start(name):
        for number in range(before):
            write(tmp_path / name, {"number": number})
        return tmp_path / name

    calls = through(monkeypatch, lambda k, name, real, args: real(), start("dry"), {"number": before})
    seen = []
    for last in range(1, len(calls) + 1):
        folder = start(str(last))
        attempt = partial(through, monkeypatch, killing(last), folder, {"number": before})
        assert in_a_fork(attempt) == -signal.SIGKILL
        found = latest(folder)
        assert found in ({"number": before - 1} if before else None, {"number": before})
        seen.append(found)
        write(folder, {"number": "next"})
        assert latest(folder) == {"number": "next"} and len(os.listdir(folder)) <= 2
    assert seen[0] != seen[-1] == {"number": before}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_an_error_of_any_call_leaves_a_state_to_go_on_from(tmp_path, monkeypatch, number):
    def start(name):
        for k in range(2):
            write(tmp_path / name, {"number": k})
        return tmp_path / name

    calls = through(monkeypatch, lambda k, name, real, args: real(), start("dry"), {"number": 2})
    for bad, call in enumerate(calls, 1):
        folder = start(str(bad))

        def hook(k, name, real, args, bad=bad):
            if k == bad:
                if name == "close":
                    real()
                raise OSError(number, os.strerror(number))
            return real()

        if bad > 1 and call in ("listdir", "unlink"):  # what is only tidying up may fail
            through(monkeypatch, hook, folder, {"number": 2})
            assert latest(folder) == {"number": 2}
        else:
            with pytest.raises(ModelError, match=f"cannot be (read|written): {os.strerror(number)}"):
                through(monkeypatch, hook, folder, {"number": 2})
            assert latest(folder) == {"number": 2 if bad > calls.index("replace") + 1 else 1}
        assert not any(name.endswith(".tmp") for name in os.listdir(folder))


def test_a_run_goes_on_from_its_checkpoint_bit_for_bit(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (90, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0]
    whole = Run(learners.eg(radius=8.0), 4, average=True)
    play([whole], X, [y])
    state = {"runs": [Run(learners.eg(radius=8.0), 4, average=True)], "row": 0, "rng": np.random.default_rng(1)}
    for a in range(0, 90, 15):
        play(state["runs"], X[a : a + 15], [y[a : a + 15]])
        state["row"] = a + 15
        write(tmp_path, state)
        state = latest(tmp_path)
    assert equal(vars(state["runs"][0]), vars(whole)) and state["row"] == 90
    assert state["rng"].random() == np.random.default_rng(1).random()


def test_a_few_kills_at_random():
    """The short form of `tests/torture.py`."""
    args = [sys.executable, Path(__file__).parent / "torture.py", "--bare", "--kills", str(many(5, 20))]
    done = subprocess.run(args, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
