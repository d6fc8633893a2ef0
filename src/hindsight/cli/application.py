"""The application that the verbs add themselves to, and its global options."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import OptionError
from .text import as_options, print_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

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
