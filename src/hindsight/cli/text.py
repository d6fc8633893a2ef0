"""Helpers shared by several subcommands: printed lines, and the position of a row in a file."""

from __future__ import annotations

import csv
import itertools
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.text import Text

LABELS = 20  # that are named without --details
CONTROL = {k: f"\\x{k:02x}" for k in (*range(32), *range(127, 160))}


def as_options(text: str) -> str:
    """A message with options instead of arguments: ``update='implicit'`` becomes ``--update implicit``.

    Examples
    --------
    >>> as_options("take a smaller eta, or use update='implicit'")
    'take a smaller --eta, or use --update implicit'
    """
    text = re.sub(r"\b([a-z_]+)='([\w-]+)'", lambda found: f"--{found[1].replace('_', '-')} {found[2]}", text)
    return re.sub(r"\b(smaller|larger|raise|lower) (eta|radius|power|drift)\b", r"\1 --\2", text)


def as_is(text: str, style: str = "") -> Text:
    """Text that comes from data, with markup and control characters escaped."""
    from rich.text import Text

    return Text(text.translate(CONTROL), style)


def lines_of_csv(records: Iterable[Iterable[Any]]) -> Iterator[str]:
    """Records as CSV text, many at a time."""
    from ..training.outputs import as_csv

    rest = iter(records)
    while block := list(itertools.islice(rest, 4096)):
        yield as_csv(block)


def print_lines(lines: Iterable[str], style: str = "", console: Console | None = None) -> None:
    """Print lines without markup or wrapping, to standard output unless another console is given."""
    console = console or new_console()
    for line in lines:
        console.print(as_is(line, style), soft_wrap=True)


def print_title(name: str, rest: str) -> None:
    """Print the name of a file and a short description of its content."""
    new_console().print(as_is(name, "bold").append(f"  {rest}", "not bold"), soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: Collection[str] = ()) -> None:
    """Print a table with the first column, and those in `left`, aligned to the left, and the others to the right."""
    from rich.table import Table

    table = Table(columns[0], box=None)
    for column in columns[1:]:
        table.add_column(column, justify="left" if column in left else "right")
    for first, *cells in rows:
        table.add_row(as_is(first), *cells)
    new_console().print(table)


def print_json(values: Mapping[str, Any]) -> None:
    """Print values as JSON for people."""
    print(json.dumps(values, indent=2, ensure_ascii=False))


def new_console(error: bool = False) -> Console:
    """Where lines are printed: standard output, or standard error."""
    from rich.console import Console

    return Console(stderr=error)


def print_error_line(line: str) -> None:
    """Print a line that is not a result, to standard error."""
    print(line, file=sys.stderr, flush=True)


def label_lines(labels: list[str] | None, details: bool = True) -> list[str]:
    """The meaning of the labels, if there are any."""
    if labels is None:
        return []
    if len(labels) == 2:
        return [f"labels: {labels[0]} is −1, {labels[1]} is +1"]
    some = labels if details or len(labels) <= LABELS else [*labels[:LABELS], "…"]
    return [f"labels: {len(labels)} classes, each against the rest: {', '.join(some)}"]


def norms_of(learner: Any, facts: Any) -> str:
    """The largest norms of the rows, and the sum of the squared gradients."""
    euclidean = f"max |x|₂ = {facts.x2:.6g}, " if learner.geometry.linear else ""  # others measure otherwise
    return f"{euclidean}max |x|∞ = {facts.xinf:.6g}, Σ|g|² = {facts.gradient:.6g}"


def written(**paths: str | None) -> list[str]:
    """A description of the files that were written."""
    return [f"{what}: {path}" for what, path in paths.items() if path is not None]


def check_chart(chart: str | None, *inputs: Any) -> None:
    """Refuse, before any work is done, a chart that cannot be drawn or would overwrite an input."""
    from ..training.outputs import check_outputs

    check_outputs({"chart": chart}, *inputs)
    if chart is not None:
        from .. import charts

        charts.check(chart)


def status_of(*certificates: Any) -> int:
    """The exit status: 1 if the bound of a certificate is BROKEN; certificates that were not computed are None."""
    from ..certificates.theorems import Verdict

    return int(any(each is not None and each.verdict is Verdict.BROKEN for each in certificates))


def place_in_file(source: str, row: int) -> str:
    """The position of a row: its line in a text file, otherwise its number."""
    if Path(source).suffix.lower() in (".csv", ".tsv", ".txt"):
        try:
            with Path(source).open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file)
                seen = -1  # the header
                for record in reader:
                    if record and (seen := seen + 1) > row:
                        return f"{source}, line {reader.line_num}"
        except (OSError, UnicodeDecodeError, csv.Error):
            pass
    return f"{source}, row {row}"
