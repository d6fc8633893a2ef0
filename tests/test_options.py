"""Options are declared once: the command, the library and the service take the same, with the same defaults."""

import inspect
import json
from dataclasses import fields

import pytest
import typer

import hindsight
from commands import forked
from hindsight.cli import load_app
from hindsight.errors import OptionError
from hindsight.serve.planning import ROWS, service_plan
from hindsight.training.options import ClusterOptions, LearnerOptions, ResultOptions, RowOptions, spelling
from hindsight.training.plan import Plan, choose_learners

RECORDS = (RowOptions, LearnerOptions, ResultOptions, ClusterOptions)
SHARED = {f.name: f for kind in RECORDS[:2] for f in fields(kind)}
COMMAND_ALONE = {"rounds", "lipschitz", "more"}


def command_options(verb):
    """The parameters of a verb, by name."""
    commands = typer.main.get_command(load_app()).commands
    return {parameter.name: parameter for parameter in commands[verb].params}


def test_the_command_has_every_option_that_is_declared():
    found = command_options("learn")
    declared = {f.name: (kind, f) for kind in RECORDS for f in fields(kind) if f.name != "more"}
    assert set(found) == {*declared, "origin"}
    for name, (kind, field) in declared.items():
        how, parameter = spelling(field), found[name]
        if how.argument:
            assert parameter.param_type_name == "argument" and parameter.required
            continue
        assert parameter.rich_help_panel == kind.title and parameter.help == how.help
        if how.read is None:
            assert parameter.default == field.default
        if how.names:
            assert "/".join([*parameter.opts, *parameter.secondary_opts]) == "/".join(how.names)
        else:
            assert parameter.opts == [f"--{name.replace('_', '-')}"]


def test_the_library_takes_the_options_of_rows_and_learners():
    found = inspect.signature(hindsight.learn).parameters
    for name, field in SHARED.items():
        if name not in COMMAND_ALONE | {"data"}:
            assert found[name].default == field.default, name
    own = {name for name, p in found.items() if p.kind is not p.VAR_KEYWORD} - set(SHARED)
    assert own == {"certify", "reading"}
    for name in COMMAND_ALONE - {"more"}:
        with pytest.raises(OptionError, match="is an option of isotron"):
            hindsight.learn([{"a": 1.0, "y": 2.0}], "y", **{name: 3})
    for name in found:  # and its docstring names them all
        assert name in LearnerOptions.__annotations__ or name in hindsight.learn.__doc__, name


def test_the_service_takes_some_of_them():
    assert set(ROWS) <= set(SHARED)
    found = command_options("serve")
    of_learning = {name for name in found if name in SHARED}
    assert of_learning == {*ROWS, "learner", "loss", "eta", "drift", "interval"}
    assert all(found[name].default is None for name in of_learning)  # then the declared default holds
    with pytest.raises(OptionError, match=r"encoding:? is not an option"):
        service_plan("y", encoding="latin-1")


def test_all_three_give_the_same_plan(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b,w,y\n" + "".join(f"{k % 5},{k % 3},1,{k % 7}\n" for k in range(40)))
    words = ["--target", "y", "--learner", "widrow-hoff", "--eta", "0.25", "--weight", "w", "--ignore", "b", "--json"]
    done = forked("learn", table, *words, "--progress", "none")
    given = {"learner": "widrow-hoff", "eta": 0.25, "weight": "w", "ignore": ["b"]}
    by_command = json.loads(done.stdout)["settings"]
    assert by_command == hindsight.learn(str(table), "y", **given).settings
    assert by_command | {"data": None} == service_plan("y", **given).settings()


def test_what_is_not_given_has_the_declared_default():
    plan = Plan.from_options(RowOptions("rows.csv", "y"), LearnerOptions("widrow-hoff"))
    assert plan == Plan("rows.csv", "y", choose_learners(["widrow-hoff"]), RowOptions().reading())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--types", "age"], "error: --types must be as age:number,zip:category; got 'age'"),
        (["--eta", "fast"], "error: --eta must be a number above 0, or several: 0.01,0.1; got 'fast'"),
        (["--compare", "--bounds", "1"], "error: --bounds must be LOW,HIGH, two numbers; got '1'"),
        (["--bounds", "0,1"], "error: --bounds is for --compare"),
        (["--resume"], "error: --resume needs the folder of the checkpoints: --checkpoint DIR"),
        (["--rounds", "3"], "error: --rounds is an option of isotron"),
    ],
)
def test_text_that_cannot_be_read_is_refused_in_one_line(words, message):
    done = forked("learn", "sample:diabetes", *words)
    assert done.returncode == 2 and done.stderr.strip() == message
