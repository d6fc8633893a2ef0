"""Whole commands and all they print, word for word.

`tests/golden.txt` holds them. After a change that is meant, write it anew and read the difference:

    GOLDEN=write .venv/bin/python -m pytest tests/test_golden.py
"""

import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hindsight.cli import app

BOOK = Path(__file__).parent / "golden.txt"
COMMANDS = """
learners
learn table.csv --target y --features x1,x2
learn table.csv --target label --features x1,x2 --certify
learn table.csv --target colour --features x1,x2
learn table.csv --target y --features x1,x2 --drift 0.01 --certify --details
learn table.csv --target label --features x1,x2 --learner perceptron --geometry scale-free --certify --details
learn table.csv --target label --features x1,x2 --learner descent --loss perceptron --update implicit
learn table.csv --target y --features x1,x2 --eta 0.5 --update explicit --learner widrow-hoff
learn table.csv --target y --features x1,x2 --eta 0.5 --power 0.5 --no-intercept --learner widrow-hoff
learn table.csv --target y --features x1,x2 --eta 0.01,0.1 --learner widrow-hoff,eg
learn table.csv --target y --features x1,x2 --learner eg --radius 2
learn table.csv --target y --features x1,x2 --learner descent --loss absolute
learn table.csv --target y --features x1,x2 --learner descent --loss square --geometry balanced --radius 3
learn table.csv --target p --features x1,x2 --learner glm-tron
learn table.csv --target p --features x1,x2 --learner glm-tron --link probit --certify --details
learn table.csv --target label --features x1,x2 --learner perceptron
learn table.csv --target label --features x1,x2 --learner perceptron --certify
learn table.csv --target label --features x1,x2 --learner winnow --margin 0.2 --certify --details
learn table.csv --target label --features x1,x2 --learner descent --loss hinge
learn table.csv --target label --features x1,x2 --learner descent --loss logistic --passes 3
learn table.csv --target colour --features x1,x2 --learner perceptron
learn table.csv --target colour --features x1,x2 --learner perceptron --certify --details
learn table.csv --target y --features x1,x2,colour --categorical colour --learner widrow-hoff
learn table.csv --target y --ignore label,p,w --categorical auto --learner widrow-hoff
learn table.csv --target y --features x1,x2 --weight w --learner widrow-hoff
learn table.csv --target y --features x1,x2 --weight w --certify --details
learn table.csv --target y --features x1,x2 --eta 0.1 --update explicit --certify --learner widrow-hoff
learn table.csv --target y --features x1,x2 --eta 2 --update explicit --certify --learner widrow-hoff
learn table.csv --target y --features x1,x2 --limit 5 --learner widrow-hoff
learn table.csv --target y --features x1,x2 --sample 0.5 --seed 3 --certify --learner widrow-hoff
learn table.csv --target y --features x1,x2 --sample 2 --learner widrow-hoff
learn table.csv --target y --features x1,x2 --seed 4 --learner widrow-hoff
learn table.csv --target y --features x1,x2 --scale row-unit --learner widrow-hoff
learn table.csv --target y --features x1,x2 --scale global-unit --certify --learner widrow-hoff
learn table.csv --target y --features x1,x2 --scale max-abs --learner widrow-hoff
learn table.csv --target y --features x1,x2 --scale standard --learner widrow-hoff
learn table.csv --target y --features x1,x2 --json --progress none --learner widrow-hoff
learn table.csv --target y --features x1,x2 --progress json --learner widrow-hoff
learn table.csv --target y --features x1,x2 --progress none --predictions predictions.csv --learner widrow-hoff
learn table.csv --target y --features x1,x2 --progress none --save y.model --learner widrow-hoff
inspect y.model
inspect y.model --json
predict y.model table.csv
predict y.model table.csv --keep colour,y --no-score
evaluate y.model table.csv --by colour
evaluate y.model table.csv --json --light
evaluate y.model table.csv --target colour
export y.model
certify y.model table.csv
certify y.model other.csv
learn table.csv --target label --features x1,x2,colour --categorical colour --learner perceptron --save label.model
inspect label.model
predict label.model table.csv --margins
evaluate label.model table.csv
evaluate label.model table.csv --target colour
export label.model
certify label.model table.csv --json
learn table.csv --target p --features x1,x2 --learner isotron --rounds 5 --certify
learn table.csv --target label --features x1,x2 --learner isotron --rounds 5 --lipschitz 1
learn table.csv --target p --features x1,x2 --learner isotron --passes 2
learn rows.svm --learner perceptron
learn rows.svm --learner winnow --certify
learn rows.svm --learner perceptron --hash 4
learn rows.vw --learner perceptron --save vw.model
inspect vw.model
predict vw.model rows.vw
learn bad.csv --target y --progress none --learner widrow-hoff
learn bad.csv --target y --progress none --rejects rejects.csv --learner widrow-hoff
learn gaps.csv --target y --progress none --learner widrow-hoff
learn gaps.csv --target y --progress none --missing zero --learner widrow-hoff
learn gaps.csv --target y --progress none --missing skip --learner widrow-hoff
learn table.csv --target z
learn table.csv
learn table.csv --target y --learner widrow-hoff
learn table.csv --target y --features x1,x3 --learner widrow-hoff
learn table.csv --target y --features x1 --learner widrow
learn table.csv --target y --features x1 --eta 0 --learner widrow-hoff
learn table.csv --target y --features x1 --eta much --learner widrow-hoff
learn table.csv --target y --features x1 --margin 0.1
learn table.csv --target y --features x1 --scale unit --learner widrow-hoff
learn table.csv --target y --features x1 --progress loud
learn table.csv --target y --features x1 --resume --learner widrow-hoff
learn table.csv --target y --features x1 --learner widrow-hoff,perceptron
learn table.csv --target y --features x1 --learner widrow-hoff,eg --save two.model
learn none.csv --target y
learn empty.csv --target y
learn header.csv --target y
learn twice.csv --target y --learner widrow-hoff
learn short.csv --target y --learner widrow-hoff
learn - --target y --format csv --checkpoint kept
learn - --target y --format csv --certify
predict none.model table.csv
predict table.csv table.csv
inspect table.csv
certify table.csv table.csv
certify vw.model rows.vw
certify label.model other.csv
compare table.csv --outcome happened --forecasts p,q
compare table.csv --outcome happened --forecasts p,q --anytime
compare table.csv --outcome happened --forecasts p,q --loss log
compare table.csv --outcome happened --forecasts p,y
compare table.csv --outcome y --forecasts p,q
calibrate table.csv --outcome happened --forecast p
calibrate table.csv --outcome happened --forecast p,q --json
density table.csv --columns x1:gaussian,colour:categorical
density table.csv --columns colour:categorical(blue|green|red)
density table.csv --columns x1:poisson
duel table.csv --target label
duel sample:breast-cancer
learn table.csv --target y --features x1,x2 --progress none --certify --save auto.model
inspect auto.model
certify auto.model table.csv
predict auto.model table.csv
evaluate auto.model table.csv
learn table.csv --target label --features x1,x2 --progress none --certify --save auto-label.model
certify auto-label.model table.csv --json
evaluate auto-label.model table.csv
learn table.csv --target y --features x1,x2 --progress none --from auto.model --certify --save more.model
certify more.model table.csv table.csv
learn table.csv --target y --features x1,x2 --progress none --learner widrow-hoff,ridge --compare --bounds -3,3
learn table.csv --target label --features x1,x2 --progress none --learner perceptron,descent --loss hinge --compare
learn table.csv --target colour --features x1,x2 --progress none --certify
learn table.csv --target y --features x1,x2 --progress none --learner ridge --certify --passes 2 --details
learn table.csv --target y --features x1,x2 --progress none --learner ridge --window 4 --certify --passes 2 --details
learn table.csv --target y --features x1,x2 --progress none --learner vaw --certify --details
learn table.csv --target y --features x1,x2 --progress none --learner running --certify --details
learn table.csv --target label --features x1,x2 --progress none --learner newton --certify --details
learn table.csv --target label --features x1,x2 --progress none --learner descent --loss logistic --certify --details
learn table.csv --target y --features x1,x2 --progress none --learner widrow-hoff --shuffle --seed 2 --certify
learn table.csv --target y --features x1,x2 --progress none --learner widrow-hoff --scale standard --certify
learn table.csv --target label --features x1,x2 --progress none --learner isotron --rounds 5 --certify --save b.model
predict b.model table.csv
evaluate b.model table.csv
density table.csv --columns x1:gaussian,colour:categorical(blue|green|red),w:poisson --json
""".strip().splitlines()

FILES = {
    "bad.csv": "x,y\n1,2\nred,3\n2,4\n3\n4,inf\n5,1\n",
    "gaps.csv": "x,y\n1,2\n,3\n3,1\n",
    "other.csv": "x1,x2,y\n1,2,3\n",
    "empty.csv": "",
    "header.csv": "x,y\n",
    "twice.csv": "x,x,y\n1,2,3\n",
    "short.csv": "y\n1\n",
    "rows.svm": "1 1:0.5 3:1\n-1 2:1 3:0.25\n1 1:1 2:-0.5\n-1 2:0.75\n",
    "rows.vw": (
        "1 2 tag|words red:0.5 big |size 1:1\n-1 |words blue big:0.25\n1 |words red |size 2:-0.5\n-1 |words blue:2\n"
    ),
}


def table():
    """A small table whose numbers are exact in few digits."""
    lines = ["x1,x2,colour,label,w,y,p,q,happened"]
    for t in range(12):
        a, b = (t * 7 % 11 - 5) / 4, (t * 5 % 13 - 6) / 8
        y, p = a - 2 * b, (1 + t * 3 % 8) / 10
        colour, label = ("red", "green", "blue")[t * 4 % 7 % 3], "yes" if y > 0.2 else "no"
        lines.append(f"{a},{b},{colour},{label},{t % 3},{y},{p},{(2 + t * 5 % 7) / 10},{int(y > 0)}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("golden")
    (home / "table.csv").write_text(table())
    for name, text in FILES.items():
        (home / name).write_text(text)
    before = Path.cwd()
    os.chdir(home)
    yield home
    os.chdir(before)


def told(command):
    """What a command prints, without what changes: times, speeds, versions, and digits that rounding decides."""
    arguments = shlex.split(command)
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"})
    out = done.stdout + "".join(f"! {line}\n" for line in done.stderr.splitlines())
    if "--predictions" in arguments:
        out += Path("predictions.csv").read_text()
    if "--rejects" in arguments:
        out += Path("rejects.csv").read_text()
    out = re.sub(r"(?m)^(! +[\d,]+(?: +[-\d,.e]+(?: %)?){3,4}) +[\d,]+$", r"\1", out)  # rows per second
    out = re.sub(r"(?m); \d+\.\d\d s(, most of it to compile .*)?$", "; (time)", out)
    out = re.sub(r'"(seconds|rows_per_second)": [\d.e-]+', r'"\1": 0', out)
    out = re.sub(r"(?m)^versions: .*$", "versions: (versions)", out)
    out = re.sub(r'"(hindsight|python|numpy|numba)": "[\d.]+"', r'"\1": "(version)"', out)
    out = re.sub(
        r"\d+\.\d{12,}(?:e-?\d+)?", lambda found: f"{float(found[0]):.12g}", out
    )  # with or without fused steps
    assert done.exception is None or isinstance(done.exception, SystemExit), (command, done.exception)
    return f"$ hindsight {command}\n{out}exit {done.exit_code}\n"


def book():
    parts = re.split(r"(?m)^(?=\$ hindsight )", BOOK.read_text()) if BOOK.exists() else []
    return {
        part.splitlines()[0].removeprefix("$ hindsight "): part.rstrip("\n") + "\n" for part in parts if part.strip()
    }


WRITE = os.environ.get("GOLDEN") == "write"


def test_there_are_enough_and_none_is_left_over():
    assert len(COMMANDS) >= 60
    assert WRITE or list(book()) == COMMANDS


def test_whole_commands(folder):
    """In order, as later ones read what earlier ones wrote."""
    made = {command: told(command) for command in COMMANDS}
    if WRITE:
        BOOK.write_text("\n".join(made.values()))
    known = book()
    for command in COMMANDS:
        assert made[command] == known[command]
        assert "Traceback" not in made[command]
