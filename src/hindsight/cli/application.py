"""The application that the verbs add themselves to, and its global options."""

from __future__ import annotations

import functools
import inspect
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import OptionError
from ..training.options import spelling
from .text import as_options, print_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STATUSES = (
    "Exit status: 0 done; 1 a bound is BROKEN; 2 bad input, or a file that cannot be read or written; 70 a bug of "
    "hindsight, with a traceback; 128 + n ended by signal n: 130 interrupted, 143 terminated, 141 the reader of a pipe "
    "has left."
)
ORDER = ("look", "learn", "evaluate", "predict", "certify", "inspect", "export", "learners", "compare", "calibrate")


class InOrder(TyperGroup):
    """Commands in the order in which people meet them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Those of `ORDER`, then the others."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


app = typer.Typer(
    cls=InOrder,
    help="Online linear learning that knows its regret.",
    epilog=STATUSES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(value: bool) -> None:
    if value:
        print(f"hindsight {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    extend: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE_OR_MODULE",
            help="Python code to import first, which registers losses, updates, geometries or learners; may be given "
            "several times. The environment variable HINDSIGHT_EXTEND names more, separated as in PATH.",
        ),
    ] = None,
) -> None:
    from .extend import load_extensions

    with one_line_errors():
        load_extensions(extend or [])


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a ValueError (bad input) into one line on standard error and exit status 2."""
    try:
        yield
    except (ValueError, MemoryError) as error:
        from rich.console import Console

        dashes = "--" if isinstance(error, OptionError) else ""
        what = "there is not enough memory" if isinstance(error, MemoryError) else str(error)
        print_lines(Console(stderr=True), [f"error: {dashes}{as_options(what)}"], "red")
        raise typer.Exit(2) from None


# ---------------------------------------------------------------- verbs


def verb(**more: Any) -> Callable[[Callable[..., int | None]], Callable[..., None]]:
    """Add a function to the application as a verb of its name.

    A parameter that is a record of options (`hindsight.training.options`) becomes one option for each of its fields. An
    error of the input is one line, and what the function returns is the exit status.
    """

    def add(do: Callable[..., int | None]) -> Callable[..., None]:
        hints = get_type_hints(do, include_extras=True)
        records = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
        parameters = []
        for name, parameter in inspect.signature(do).parameters.items():
            own = parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            parameters += parameters_of(records[name]) if name in records else [own]

        @functools.wraps(do)
        def run(**given: Any) -> None:
            with one_line_errors():
                for name, kind in records.items():
                    given[name] = record_of(kind, {f.name: given.pop(f.name) for f in declared(kind)})
                status = do(**given)
            if status:
                raise typer.Exit(status)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {}
        app.command(**more)(run)
        return run

    return add


def declared(kind: Any) -> list[Any]:
    """The fields of a record that are options of the command."""
    return [field for field in fields(kind) if "spelling" in field.metadata]


def parameters_of(kind: Any) -> list[inspect.Parameter]:
    """The options of a record, as typer reads them."""
    hints, out = get_type_hints(kind), []
    for field in declared(kind):
        how = spelling(field)
        hint = str if how.argument else hints[field.name]
        if how.read is not None:
            hint = list[str] | None if how.several else str | None
        title = getattr(kind, "title", None)
        spelt: Any = typer.Option(*how.names, help=how.help, rich_help_panel=title, **how.more)
        if how.argument:
            spelt = typer.Argument(help=how.help, **how.more)
        default = inspect.Parameter.empty if how.argument else None if how.read is not None else field.default
        only = inspect.Parameter.KEYWORD_ONLY
        out.append(inspect.Parameter(field.name, only, default=default, annotation=Annotated[hint, spelt]))
    return out


def record_of(kind: Any, given: dict[str, Any]) -> Any:
    """A record of what the command line gave; what is read from text and was not given has its default."""
    out = {}
    for field in declared(kind):
        value, read = given[field.name], spelling(field).read
        if read is None:
            out[field.name] = value
        elif value is not None:
            out[field.name] = read(value)
    return kind(**out)
