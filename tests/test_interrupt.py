"""Runs that are interrupted: they write a checkpoint, stop at once, and resume to the same bits."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import hindsight
from conftest import nightly, same_state

ROWS = 20_000


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(ROWS, 6)).round(3)
    y = (X @ np.arange(6.0) + rng.normal(size=ROWS)).round(3)
    path = tmp_path_factory.mktemp("interrupt") / "rows.csv"
    lines = [",".join(map(str, row)) for row in np.column_stack([X, y]).tolist()]
    path.write_text("a,b,c,d,e,f,y\n" + "\n".join(lines) + "\n")
    return path


def command(*args):
    return [sys.executable, "-m", "hindsight", "learn", *map(str, args), "--target", "y", "--progress", "json"]


@nightly(but=["2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_the_state_and_leaves_within_two_seconds(table, tmp_path, number):
    args = [
        table,
        "--passes",
        40,
        "--learner",
        "widrow-hoff",
        "--save",
        tmp_path / "model",
        "--predictions",
        tmp_path / "p.csv",
    ]
    kept = ["--checkpoint", tmp_path / "kept", "--every", 10**9]
    run = subprocess.Popen(command(*args, *kept), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        if '"rows": 65536' in line:
            break
    time.sleep(0.05)
    began = time.monotonic()
    run.send_signal(number)
    _, err = run.communicate(timeout=60)
    assert time.monotonic() - began < 2.0
    assert run.returncode == 128 + number
    assert "Traceback" not in err
    assert not (tmp_path / "model").exists()
    assert len(list((tmp_path / "kept").iterdir())) == 1
    again = subprocess.run(command(*args, *kept, "--resume"), capture_output=True, text=True, check=False)
    if number == signal.SIGINT:  # and the end is that of a run left in peace
        assert again.returncode == 0, again.stderr
        args[6], args[8] = tmp_path / "whole", tmp_path / "whole.csv"
        subprocess.run(command(*args), check=True, capture_output=True)
        a, b = hindsight.load(tmp_path / "model"), hindsight.load(tmp_path / "whole")
        same_state(a.runs[0], b.runs[0])
        assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_standard_input_that_gives_nothing_more_is_left_at_once():
    run = subprocess.Popen(
        command("-", "--format", "csv"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    run.stdin.write("x,y\n1,2\n")
    run.stdin.flush()
    time.sleep(2.0)
    began = time.monotonic()
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=60) == 130
    assert time.monotonic() - began < 2.0
    assert "Traceback" not in run.stderr.read()
    run.stdin.close()
    run.stdout.close()
    run.stderr.close()
