"""The command in a fork of this process, which has imported it already: all but the start is that of a new process."""

import os
import subprocess
import sys
import tempfile
import textwrap
import traceback
import warnings

from typer.testing import CliRunner

from hindsight.cli import app


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns where there are threads
        return os.fork()


def run(*words, stdin=None) -> tuple[int, str, str]:
    """The exit status of a command in this process, its output and its messages."""
    done = CliRunner().invoke(app, [str(word) for word in words], input=stdin, env={"COLUMNS": "400", "NO_COLOR": "1"})
    return done.exit_code, done.stdout, done.stderr


def stopped_after(rows: int, session):
    """The state of a session that was stopped once so many rows were learnt."""
    for state in session.steps():
        if state.rows_done >= rows:
            session.stop()
    return state


def python(code: str, *words, **environment) -> str:
    """What a new Python prints that runs this code, to its end."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_a_fork(work) -> int:
    """How a copy of this process ends that does this: with 0, 1 if it raised, or minus the signal that ended it."""
    child = fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forked(*words) -> subprocess.CompletedProcess:
    """Run `hindsight` with these words; its exit status, and what it prints."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = fork()
        if child == 0:
            _run([str(word) for word in words], out.fileno(), err.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(words, status, out.read(), err.read())


def _run(words: list[str], out: int, err: int) -> None:
    """Be the command; it never returns."""
    status = 1
    try:
        for number, given in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
            os.dup2(given, number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.argv = ["hindsight", *words]
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        from hindsight.__main__ import main

        main()
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
