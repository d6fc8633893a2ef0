"""What a command writes: never over what it reads, seen to be possible before learning, and whole or not at all."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from commands import forked, in_a_fork, stopped_after
from conftest import many, nightly
from hindsight.errors import OptionError
from hindsight.storage import checkpoint
from hindsight.training.options import ResultOptions
from hindsight.training.outputs import check_outputs
from hindsight.training.plan import Plan, choose_learners
from hindsight.training.session import Session

OUTPUTS = ("--save", "--report", "--predictions", "--rejects")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows = [",".join(map(str, row)) for row in rng.normal(size=(400, 4)).round(3).tolist()]
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,y\n" + "\n".join(rows) + "\n")
    return path


def hindsight_command(*args, **options):
    """The command, in a new process where something is asked of its pipes."""
    if not options:
        return forked(*args)
    options = {"capture_output": True, "text": True, "timeout": 300, "check": False} | options
    return subprocess.run([sys.executable, "-m", "hindsight", *map(str, args)], **options)


def learn(table, *args, **options):
    return hindsight_command("learn", table, "--target", "y", "--progress", "none", *args, **options)


def one_line(done, *parts):
    """The command ended with status 2 and one line that has these parts."""
    assert done.returncode == 2, (done.returncode, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    assert all(str(part) in lines[0] for part in parts), lines[0]


# ---------------------------------------------------------------- not over what is read


def names_of(path: Path, folder: Path) -> dict[str, Path]:
    """A file under all its names."""
    os.link(path, folder / "hard")
    os.symlink(path, folder / "soft")
    os.symlink(folder, folder / "folder")
    return {
        "itself": path,
        "another way": folder / "." / path.name,
        "hard link": folder / "hard",
        "link": folder / "soft",
        "through a folder": folder / "folder" / path.name,
    }


@pytest.mark.parametrize("option", OUTPUTS)
def test_the_rows_are_never_overwritten(table, option):
    before = table.read_bytes()
    for name in names_of(table, table.parent).values():
        with pytest.raises(OptionError, match=f"^{option[2:]} .* would be overwritten: .* is read"):
            Session(Plan(str(table), "y", choose_learners(["widrow-hoff"])), ResultOptions(**{option[2:]: str(name)}))
    assert table.read_bytes() == before


def test_the_command_refuses_in_one_line_before_anything_is_opened(table):
    before = table.read_bytes()
    for option in OUTPUTS[:: many(2, 1)]:
        one_line(learn(table, option, table, "--certify"), option, table, "would be overwritten")
    with table.open() as rows:
        done = hindsight_command("learn", "-", "--format", "csv", "--target", "y", "--predictions", table, stdin=rows)
    one_line(done, "--predictions", "- is read")
    assert table.read_bytes() == before


def test_no_file_is_written_twice(tmp_path, table):
    for link in (tmp_path / "out", tmp_path / "." / "out", tmp_path / "soft"):
        if link.name == "soft":
            os.symlink(tmp_path / "out", link)  # to a file that is not there yet
        with pytest.raises(OptionError, match="would be overwritten: --predictions writes the same file"):
            check_outputs({"predictions": str(tmp_path / "out"), "rejects": str(link)}, str(table))
    one_line(learn(table, "--predictions", tmp_path / "out", "--rejects", tmp_path / "out"), "--rejects", "same file")
    check_outputs({"predictions": "/dev/null", "rejects": "/dev/null"}, str(table))
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_among_the_rows_of_a_folder(tmp_path, table):
    folder = tmp_path / "rows"
    folder.mkdir()
    table.rename(folder / "rows.csv")
    one_line(learn(folder, "--predictions", folder / "p.csv"), "every file of this folder is read")
    one_line(learn(folder, "--save", folder / "rows.csv"), "is read")
    assert os.listdir(folder) == ["rows.csv"]


def test_a_checkpoint_is_not_overwritten(tmp_path, table):
    kept = tmp_path / "kept"
    kept.mkdir()
    one_line(learn(table, "--checkpoint", kept, "--save", kept / "0000000001.checkpoint"), "--save", "a checkpoint")


def test_other_commands_do_not_overwrite_what_they_read(tmp_path, table):
    model = tmp_path / "model"
    assert learn(table, "--save", model).returncode == 0
    before = table.read_bytes(), model.read_bytes()
    os.symlink(table, tmp_path / "soft.svg")
    for args in (
        ("predict", model, table, "-o", table),
        ("predict", model, table, "-o", model),
        ("export", model, "-o", model),
        ("density", table, "--columns", "a:gaussian", "--score", table),
        ("compare", table, "--outcome", "y", "--forecasts", "a,b", "--chart", tmp_path / "soft.svg"),
        ("calibrate", table, "--outcome", "y", "--forecast", "a", "--chart", tmp_path / "soft.svg"),
        ("duel", table, "--target", "y", "--chart", tmp_path / "soft.svg"),
    )[:: many(3, 1)]:
        one_line(hindsight_command(*args), "would be overwritten")
    assert (table.read_bytes(), model.read_bytes()) == before


# ---------------------------------------------------------------- seen before learning


def test_special_files(tmp_path, table):
    assert learn(table, "--predictions", "/dev/null", "--rejects", "/dev/null").returncode == 0
    for option in ("--save", "--report"):
        one_line(learn(table, option, "/dev/null"), "/dev/null", "not a regular file")
    one_line(learn(table, "--predictions", "/dev/null", "--checkpoint", tmp_path / "kept"), "--predictions", "continue")
    assert not (tmp_path / "kept").exists()


def test_predictions_through_a_pipe_are_all_there(tmp_path, table):
    """A pipe cannot be synced, which is no error."""
    assert learn(table, "--predictions", tmp_path / "file").returncode == 0
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    done = learn(table, "--predictions", tmp_path / "pipe")
    reader.join(60)
    assert done.returncode == 0 and found == [(tmp_path / "file").read_bytes()], done.stderr


@pytest.mark.parametrize("option", ["--predictions", "--rejects"])
def test_a_full_device_is_seen_before_the_first_row(table, option):
    done = learn(table, option, "/dev/full", "--json")
    one_line(done, "/dev/full: cannot be written: No space left on device")
    assert done.stdout == ""


def test_a_folder_for_checkpoints_that_cannot_be_made(tmp_path, table):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        one_line(learn(table, "--checkpoint", folder), folder, "cannot be written: Not a directory")


# ---------------------------------------------------------------- a disk that fills up


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("only root can mount a small file system")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_one_line(tmp_path, small_disk):
    rows = tmp_path / "many.csv"
    rows.write_text("a,y\n" + "1.25,0.5\n-0.75,0.25\n3.5,1.5\n" * 20_000)
    done = learn(rows, "--predictions", small_disk / "p.csv", "--json")
    one_line(done, small_disk / "p.csv", "cannot be written: No space left on device")
    (small_disk / "p.csv").unlink()
    rows.write_text("a,y\n" + "1.25,0.5\nx,y\n" * 20_000)
    one_line(
        learn(rows, "--strict", "--rejects", small_disk / "r.csv"), small_disk / "r.csv", "No space left on device"
    )
    (small_disk / "r.csv").unlink()
    rows.write_text("a,y\n" + "1.25,0.5\n-0.75,0.25\n3.5,1.5\n" * 20_000)
    model = tmp_path / "model"
    assert learn(rows, "--save", model).returncode == 0
    (small_disk / "p.csv").write_text("old")
    one_line(hindsight_command("predict", model, rows, "-o", small_disk / "p.csv"), "No space left on device")
    assert (small_disk / "p.csv").read_text() == "old" and os.listdir(small_disk) == ["p.csv"]


def test_a_report_is_written_whole_or_not_at_all(tmp_path, small_disk):
    (small_disk / "page.html").write_text("old")
    (small_disk / "filler").write_bytes(b"x" * (250 << 10))
    done = hindsight_command("learn", "sample:diabetes", "--report", small_disk / "page.html", "--progress", "none")
    one_line(done, "page.html: cannot be written: No space left on device")
    assert (small_disk / "page.html").read_text() == "old"


# ---------------------------------------------------------------- resumed, exactly


def run(plan, rows=10**9, **places):
    """Run a plan until so many rows were learnt; the state and the session."""
    session = Session(plan, ResultOptions(**{name: str(path) for name, path in places.items()} | {"every": 1}))
    return stopped_after(rows, session), session


def resumed(plan, **places):
    session = Session(plan, ResultOptions(**{k: str(v) for k, v in places.items()} | {"every": 1, "resume": True}))
    return session.run()


def rows_with_late_names(path, form):
    """Rows whose features and bad rows come late, so that a limit may cut them off within a chunk."""
    rng = np.random.default_rng(1)
    lines = []
    for t in range(300):
        if t % 7 == 3:
            lines.append("bad row")
        y = rng.choice([-1, 1])
        words = " ".join(f"{j}:{rng.normal():.3f}" for j in sorted({1 + t // 5, 2 + t // 9}))
        lines.append(f"{y} {words}" if form == "svm" else f"{y} | " + " ".join(f"n{w}" for w in words.split()))
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("form", ["svm", "vw"])
@pytest.mark.parametrize("passes", [1, 2])
def test_a_limit_is_exact_wherever_chunks_end_and_runs_are_stopped(tmp_path, form, passes):
    rows_with_late_names(tmp_path / f"rows.{form}", form)
    results = []
    for k, (size, stop) in enumerate([(1 << 20, 10**9), (500, 10**9), (500, 60), (300, 100), (500, 101), (700, 150)]):
        reading = {"rejects": True, "chunk": size}
        learners = choose_learners(["perceptron"])
        plan = Plan(str(tmp_path / f"rows.{form}"), None, learners, reading, passes=passes, limit=101, digest=True)
        places = {"predictions": tmp_path / f"p{k}", "rejects": tmp_path / f"r{k}", "checkpoint": tmp_path / f"c{k}"}
        state, session = run(plan, stop, **places)
        if session.stopped:
            state = resumed(plan, **places)
        model = state.to_model()
        model.settings, model.preparation["source"]["chunk"] = {}, 0
        model.save(tmp_path / "m")
        results.append(
            [(tmp_path / "m").read_bytes(), *((tmp_path / f"{name}{k}").read_bytes() for name in "pr"), state.rejected]
        )
        assert state.rows_done == 101 * passes
    assert results[0][3] == results[0][2].count(b"bad row") == len(range(3, 101, 7))  # those before the last row taken
    assert all(result == results[0] for result in results[1:])


def late_label(tmp_path, rows=200, at=150):
    path = tmp_path / "late.csv"
    rng = np.random.default_rng(2)
    labels = ["no", "yes"] * (rows // 2)
    labels[at] = "perhaps"
    numbers = rng.normal(size=(rows, 2)).round(3).tolist()
    path.write_text("a,b,y\n" + "".join(f"{a},{b},{y}\n" for (a, b), y in zip(numbers, labels, strict=True)))
    return Plan(str(path), "y", choose_learners(["perceptron"]), {"chunk": 256}, digest=True)


def test_a_restart_for_a_late_label_can_be_killed_at_any_checkpoint_and_resumed(tmp_path, monkeypatch):
    plan = late_label(tmp_path)
    whole, _ = run(plan, predictions=tmp_path / "whole", checkpoint=tmp_path / "kept")
    assert whole.labels == ["no", "perhaps", "yes"]
    count = len(os.listdir(tmp_path / "kept")) and max(checkpoint.generations(tmp_path / "kept"))
    real = checkpoint.write
    for last in range(1, count + 1, many(3, 1)):
        folder = tmp_path / str(last)
        folder.mkdir()
        places = {"predictions": folder / "p", "checkpoint": folder / "kept"}

        def write(*args, folder=folder, last=last, **options):  # killed before or after its last checkpoint
            number = max(checkpoint.generations(folder / "kept"), default=0) + 1
            if number == last and last % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            real(*args, **options)
            if number == last:
                os.kill(os.getpid(), signal.SIGKILL)

        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "write", write)
            assert in_a_fork(partial(run, plan, **places)) == -signal.SIGKILL
        again = resumed(plan, **places) if checkpoint.generations(folder / "kept") else run(plan, **places)[0]
        assert (folder / "p").read_bytes() == (tmp_path / "whole").read_bytes(), last
        assert again.labels == whole.labels and again.mistakes == whole.mistakes


def test_a_restart_killed_while_it_overwrites_the_predictions(tmp_path, monkeypatch):
    """Where the file of predictions is already cut, and no row of the new start was learnt yet."""
    from hindsight.training import outputs

    plan = late_label(tmp_path)
    run(plan, predictions=tmp_path / "whole")
    real, opened = outputs.ResumableFile.flush, []
    places = {"predictions": tmp_path / "p", "checkpoint": tmp_path / "kept"}

    def flush(self):
        opened.append(self)
        if len({id(file) for file in opened}) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(outputs.ResumableFile, "flush", flush)
        assert in_a_fork(partial(run, plan, **places)) == -signal.SIGKILL
    assert (tmp_path / "p").stat().st_size < (tmp_path / "whole").stat().st_size / 2
    resumed(plan, **places)
    assert (tmp_path / "p").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_column_of_parquet_without_a_value_in_some_row_groups_keeps_its_type(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    from hindsight.training import outputs

    monkeypatch.setattr(outputs, "GROUP", 2)
    path, parts = str(tmp_path / "p.parquet"), ([1.5, 2.5], [None, None], [None], [3.5], [None])
    file = outputs.ParquetFile(path, ["target"])
    for part in parts:
        file.add([part])
    file.close()
    assert pq.read_table(path).column("target").to_pylist() == [value for part in parts for value in part]


def test_new_predictions_cannot_join_a_resumed_run(tmp_path, table):
    plan = Plan(str(table), "y", choose_learners(["widrow-hoff"]), {"chunk": 2048}, digest=True)
    _, session = run(plan, 100, checkpoint=tmp_path / "kept")
    assert session.stopped
    with pytest.raises(OptionError, match=r"predictions was not given when the checkpoint was written after .* rows"):
        resumed(plan, checkpoint=tmp_path / "kept", predictions=tmp_path / "p")
    assert not (tmp_path / "p").exists()
    assert resumed(plan, checkpoint=tmp_path / "kept").rows_done == 400


def test_predictions_that_are_not_those_of_the_checkpoint_are_refused(tmp_path, table):
    plan = Plan(str(table), "y", choose_learners(["widrow-hoff"]), {"chunk": 2048}, digest=True)
    places = {"checkpoint": tmp_path / "kept", "predictions": tmp_path / "p"}
    run(plan, 100, **places)
    written = (tmp_path / "p").read_bytes()
    for other in (b"x" * len(written), written[:50]):
        (tmp_path / "p").write_bytes(other)
        with pytest.raises(ValueError, match="when the checkpoint was written: it cannot be continued"):
            resumed(plan, **places)
        assert (tmp_path / "p").read_bytes() == other
    (tmp_path / "p").write_bytes(written + b"and more")
    resumed(plan, **places)
    assert (tmp_path / "p").read_bytes().count(b"\n") == 401


# ---------------------------------------------------------------- exit statuses


def test_a_reader_that_leaves(table):
    script = f"{sys.executable} -m hindsight %s | true; exit ${{PIPESTATUS[0]}}"
    for args in (f"learn {table} --target y --json --progress none", "learners", f"learn {table} --target y"):
        done = subprocess.run(["bash", "-c", script % args], capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr.count("Traceback")) == (128 + signal.SIGPIPE, 0), done.stderr


def test_standard_output_that_is_full(table):
    for args in (("learn", table, "--target", "y", "--progress", "none"), ("learners",), ("--version",)):
        with open("/dev/full", "w") as full:
            done = hindsight_command(*args, capture_output=False, stdout=full, stderr=subprocess.PIPE)
        one_line(done, "standard output: No space left on device")


BUG = """
import sys, hindsight.training.plan as plan
def broken(*args):
    raise {error}
plan.choose_learners = broken
from hindsight.__main__ import main
sys.argv = ["hindsight", "learn", "sample:diabetes"]
main()
"""


def test_a_bug_has_a_traceback_and_a_status_of_its_own():
    for error, status in (("KeyError('x')", 70), ("AssertionError", 70), ("MemoryError", 2), ("ValueError('bad')", 2))[
        :: many(3, 1)
    ]:
        script = BUG.format(error=error)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == status, done.stderr
        assert ("Traceback" in done.stderr) == (status == 70)
        assert done.stderr.splitlines()[-1].startswith("this is a bug" if status == 70 else "error: ")


@nightly(but=["1"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(number):
    args = [sys.executable, "-m", "hindsight", "learn", "-", "--format", "csv", "--target", "y"]
    heeded = lambda: signal.signal(number, signal.SIG_DFL)  # noqa: E731, who runs the tests may ignore it
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    child = subprocess.Popen(args, text=True, preexec_fn=heeded, **pipes)
    child.stdin.write("x,y\n1,2\n")
    child.stdin.flush()
    time.sleep(2.5)
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 128 + number and "Traceback" not in err


def test_signals_that_are_ignored_stay_so(table):
    script = "import signal, os, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    args = ["-m", "hindsight", "learn", table, "--target", "y", "--passes", "300", "--progress", "none"]
    child = subprocess.Popen([sys.executable, "-c", script, sys.executable, *map(str, args)], stdout=subprocess.PIPE)
    time.sleep(1.5)
    child.send_signal(signal.SIGHUP)
    child.communicate(timeout=300)
    assert child.returncode == 0


def test_the_help_says_what_a_status_means():
    text = " ".join(hindsight_command("--help").stdout.split())
    for part in ("Exit status: 0 done; 1 a bound is BROKEN; 2 bad input", "70 a bug", "128 + n ended by signal n"):
        assert part in text
