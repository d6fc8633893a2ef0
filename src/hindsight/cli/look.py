"""`hindsight look`: the content of a table, and how `learn` would read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..training.options import RowOptions
from .application import Some, verb
from .text import print_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


OF_TABLES = ("data", "target", "types", "ignore", "format", "header", "separator", "encoding", "decimal", "na")


@verb()
def look(
    given: Annotated[dict[str, Any], Some(RowOptions, OF_TABLES)],
    *,
    scan: Annotated[int, typer.Option("--rows", min=0, help="How many rows to look at; 0 is all.")] = 0,
) -> None:
    """Look at a table: types, missing and different values, ranges, the target, and what `learn` would do."""
    from ..sources import open_source

    rows = RowOptions(**given)
    source = open_source(rows.data, rows.target, scan=scan, **rows.reading())
    print_lines(table_lines(rows.data, source, rows.target))


def table_lines(data: str, source: Any, target: str | None) -> Iterator[str]:
    """The lines about the content of the table, and about what `learn` would do."""
    from ..sources.tables.describe import describe_columns, dialect_lines, order_warnings, target_lines

    decisions = getattr(source, "decisions", None)
    if decisions is None:
        yield f"{data}: {source.kind} rows of named features: there are no columns to decide on"
        return
    if not decisions.evidence:  # it was read as plain at once, or there is no row: which reading says
        next(source.chunks(), None)
        source.decide(*source.look())
        decisions = source.decisions
    seen = max(e.rows for e in decisions.evidence.values())
    yield f"{data}: {seen:,} {'rows' if decisions.complete else 'first rows'}, {len(decisions.columns):,} columns"
    yield from dialect_lines(source, decisions.decimal)
    yield from describe_columns(source)
    if target is not None:
        e = decisions.evidence[target]
        yield f"target {target!r}: {e.given:,} values" + (f", {e.missing:,} missing" if e.missing else "")
        yield from target_lines(e)
        yield from (f"warning: {line}" for line in order_warnings(e))
    yield from what_learn_does(source, target)


def what_learn_does(source: Any, target: str | None) -> Iterator[str]:
    """What `learn` would do with the table."""
    from ..sources.base import shown_names
    from ..sources.tables.decisions import BACK, LEFT_OUT
    from ..sources.tables.describe import columns_by_type, used_columns

    decisions = source.decisions
    out = [name for name, decided in decisions.columns.items() if decided.type in LEFT_OUT]
    used = columns_by_type(used_columns(source, decisions))
    yield f"learn would {'read it as plain numbers' if not source.decided else f'take {used}'}"
    if out:
        yield f"learn would leave out: {shown_names(out)} {BACK}"
    if target is None:
        yield "say which column to predict: --target COLUMN"
    elif target in decisions.columns:
        e = decisions.evidence[target]
        labels = decisions.columns[target].type != "number" or len(e.numbers.different) == 2
        many = len(e.words) if e.odd else len(e.numbers.different)
        yield f"learn would predict {f'labels ({many:,})' if labels else 'a number'}: --loss says otherwise"
