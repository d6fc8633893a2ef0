"""The application to which the subcommands are added, and its global options."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import sys
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..errors import OptionError
from ..training.options import spelling
from .text import as_options, new_console, print_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

VARIABLE = "HINDSIGHT_EXTEND"
STATUSES = (
    "Exit status: 0 done; 1 a bound is BROKEN; 2 bad input, or a file that cannot be read or written; 70 a bug of "
    "hindsight, with a traceback; 128 + n ended by signal n: 130 interrupted, 143 terminated, 141 the reader of a pipe "
    "has left."
)
ORDER = ("look", "learn", "evaluate", "predict", "certify", "inspect", "export", "learners", "compare", "calibrate")


class InOrder(TyperGroup):
    """Subcommands in the order of a typical workflow."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in `ORDER`, then the others."""
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
    with one_line_errors():
        load_extensions(extend or [])


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a ValueError (bad input) into one line on standard error and exit status 2."""
    try:
        yield
    except (ValueError, MemoryError) as error:
        dashes = "--" if isinstance(error, OptionError) else ""
        what = "there is not enough memory" if isinstance(error, MemoryError) else str(error)
        print_lines([f"error: {dashes}{as_options(what)}"], "red", new_console(error=True))
        raise typer.Exit(2) from None


# ---------------------------------------------------------------- verbs


class Some(NamedTuple):
    """Marks a mapping parameter as the given ones among these options of a record."""

    kind: Any
    names: tuple[str, ...]


class NamesInHelp(TyperCommand):
    """A command whose help includes the names that are registered at the time it is printed.

    In the help of a parameter, {learners}, {losses} and so on are replaced by the registered names, and {takers} by the
    learners that have this option.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fill in the names and print the help."""
        from ..online import learners, parts
        from ..rows.scaling import SCALES
        from ..sources.base import MISSING_RULES
        from ..sources.opening import FORMATS
        from ..training.options import BATCH_LEARNERS
        from ..training.plan import options_of as options_of_learner
        from .progress import SHOWS

        tables: dict[str, Collection[str]]
        tables = {"learners": learners.LEARNERS, "losses": parts.LOSSES, "updates": parts.UPDATES}
        tables |= {"geometries": parts.GEOMETRIES, "links": parts.LINKS, "batch": BATCH_LEARNERS}
        tables |= {"scales": SCALES, "formats": FORMATS, "missing": MISSING_RULES, "shows": SHOWS}
        names = {table: ", ".join(entries) for table, entries in tables.items()}
        for parameter in self.params:
            if "{" not in (getattr(parameter, "help", None) or ""):
                continue
            names["takers"] = ", ".join(
                name for name in learners.LEARNERS if parameter.name in options_of_learner(name)
            )
            parameter.help = parameter.help.format(**names)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def verb(**more: Any) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Add a function to the application as a subcommand of the same name.

    A parameter that is a record of options (`hindsight.training.options`) becomes one option per field; a parameter
    marked by `Some` becomes only those options. Input errors are printed in one line. The function returns the exit
    status, or a function to be called outside this error handling, where a ValueError is not an input error any more.
    """

    def add(do: Callable[..., Any]) -> Callable[..., None]:
        hints = get_type_hints(do, include_extras=True)
        records = {name: Some(hint, ()) for name, hint in hints.items() if is_dataclass(hint)}
        marks = ((name, getattr(hint, "__metadata__", (None,))[0]) for name, hint in hints.items())
        records |= {name: mark for name, mark in marks if isinstance(mark, Some)}
        parameters = []
        for name, parameter in inspect.signature(do).parameters.items():
            own = parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            parameters += parameters_of(*records[name]) if name in records else [own]

        @functools.wraps(do)
        def run(**given: Any) -> None:
            with one_line_errors():
                for name, (kind, some) in records.items():
                    own = {f.name: given.pop(f.name) for f in declared(kind, some)}
                    given[name] = options_of(kind, own) if some else kind(**options_of(kind, own))
                status = do(**given)
            if callable(status):
                status()
            elif status:
                raise typer.Exit(status)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {}
        app.command(cls=NamesInHelp, help=reflowed(do.__doc__ or ""), **more)(run)
        return run

    return add


def reflowed(text: str) -> str:
    """A docstring with one line per paragraph, so that the help is wrapped at the width of the terminal."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def declared(kind: Any, some: tuple[str, ...] = ()) -> list[Any]:
    """The fields of a record that are options of the command, or only those that are named."""
    return [field for field in fields(kind) if "spelling" in field.metadata and (not some or field.name in some)]


def parameters_of(kind: Any, some: tuple[str, ...] = ()) -> list[inspect.Parameter]:
    """The options of a record, as typer reads them; if only some are selected, their default is None."""
    hints, out = get_type_hints(kind), []
    for field in declared(kind, some):
        how = spelling(field)
        hint = str if how.argument else hints[field.name] | None if some else hints[field.name]
        if how.read is not None:
            hint = list[str] | None if how.several else str | None
        title = getattr(kind, "title", None)
        spelt: Any = typer.Option(*how.names, help=how.help, rich_help_panel=title, **how.more)
        if how.argument:
            spelt = typer.Argument(help=how.help, **how.more)
        required = how.argument or field.default is ...
        default = None if how.read is not None or some else field.default
        default = inspect.Parameter.empty if required else default
        only = inspect.Parameter.KEYWORD_ONLY
        out.append(inspect.Parameter(field.name, only, default=default, annotation=Annotated[hint, spelt]))
    return out


def options_of(kind: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The options of a record given on the command line, parsed if they are text."""
    found = {name: value for name, value in given.items() if value is not None}
    read = {field.name: spelling(field).read for field in declared(kind)}
    return {name: value if (make := read[name]) is None else make(value) for name, value in found.items()}


# ---------------------------------------------------------------- extensions


def load_extensions(given: list[str]) -> None:
    """Import the extensions named by the environment variable, then the given ones."""
    known = [where for where in os.environ.get(VARIABLE, "").split(os.pathsep) if where]
    for where in dict.fromkeys([*known, *given]):
        try:
            load_extension(where)
        except Exception as error:  # whatever the user's code raises
            message = " ".join(f"{error}".split())
            kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
            raise ValueError(f"--extend {where}: cannot be imported: {kind}{message}") from None


def load_extension(where: str) -> None:
    """Import a Python file as a module named after its stem, or a module by its name; once per process."""
    path = Path(where)
    if not (path.suffix == ".py" or os.sep in where or path.exists()):
        importlib.import_module(where)
        return
    if not path.is_file():
        raise ValueError("Is a directory" if path.is_dir() else "No such file or directory")
    name, path = path.stem, path.resolve()
    if name in sys.modules:
        known = getattr(sys.modules[name], "__file__", None)
        if known is not None and Path(known).resolve() == path:
            return
    if name in sys.modules or name in sys.stdlib_module_names:
        raise ValueError(f"there is another module {name!r}: rename the file")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError("not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
