"""The application that the commands add themselves to, and what they share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from .. import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

app = typer.Typer(
    help="Online linear learning that knows its regret.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(value: bool) -> None:
    if value:
        print(f"hindsight {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn a ValueError (bad input) into one line on stderr and exit status 2."""
    try:
        yield
    except ValueError as error:
        Console(stderr=True).print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
