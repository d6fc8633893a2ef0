"""Descriptions of the decisions about a table, as lines of text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ..base import shown_names
from .decided import Decisions
from .decisions import BACK, LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .decisions import ColumnDecision
    from .evidence import ColumnEvidence

SHOWN_COLUMNS = 40  # columns
NAMES = {"\t": "tab", " ": "blanks"}
DECIMAL_SIGNS = {".": "point", ",": "comma"}


def decisions_of(source: Any, state: dict[str, Any] | None) -> Decisions | None:
    """The decisions in a state, or those of the source without one; None for a plain table."""
    if state is not None and "table" in state:
        found = Decisions.from_state(state["table"])
        found.evidence = source.decisions.evidence
        return found
    return source.decisions if source.decided else None


def describe_table(source: Any, decisions: Decisions | None) -> Iterator[str]:
    """Describe the dialect, and each column of a table that is not plain in a line."""
    yield from dialect_lines(source, "." if decisions is None else decisions.decimal)
    if decisions is None:
        return
    asked = source.asked
    roles, features = (asked.target, asked.weight), {each.name for each in used_columns(source, decisions)}
    names = [name for name in decisions.columns if name in roles or name in features]
    width = min(30, max(6, *map(len, names)))
    yield f"{'column':<{width}}  {'type':<10}  remark"
    for name in names[:SHOWN_COLUMNS]:
        decided = decisions.columns[name]
        kind, remarks = decided.type, [decided.why] if decided.why else []
        if name == asked.target:
            kind = "target"
            remarks = ["numbers" if decided.type == "number" else "labels", *remarks]
        elif name == asked.weight:
            kind, remarks = "weight", []
        elif kind in LEFT_OUT:
            remarks.append("left out")
        if kind == "number" and decided.decimal != decisions.decimal:
            remarks.append(f"decimal {DECIMAL_SIGNS[decided.decimal]}")
        e = decisions.evidence.get(name)
        if e is not None and e.missing:
            remarks.append(f"{100 * e.missing / max(1, e.rows):.3g} % missing")
        yield f"{one_line(name, width):<{width}}  {kind:<10}  {'; '.join(remarks)}"
    if len(names) > SHOWN_COLUMNS:
        yield f"... and {len(names) - SHOWN_COLUMNS:,} more columns (hindsight look shows all)"
    if count := len(decisions.columns) - len(names):
        yield f"{count:,} column{'s' if count > 1 else ''} left out, as asked"
    only = [name for name in names if decisions.columns[name].type == "identifier" and name not in roles]
    if only:
        yield f"left out, since they only tell rows apart: {shown_names(only)} {BACK}"
    yield from rows_seen(decisions)


def rows_seen(decisions: Decisions) -> Iterator[str]:
    """How many rows the decisions are based on."""
    seen = max((e.rows for e in decisions.evidence.values()), default=0)
    if seen:
        yield f"types from {'all' if decisions.complete else 'the first'} {seen:,} rows (--types says otherwise)"


def table_in_short(source: Any, decisions: Decisions | None) -> Iterator[str]:
    """Summarise the dialect, the number of columns of each type, and the columns left out."""
    yield from dialect_lines(source, "." if decisions is None else decisions.decimal)
    if decisions is None:
        return
    used = used_columns(source, decisions)
    gaps = sum(bool(e.missing) for e in (decisions.evidence.get(each.name) for each in used) if e is not None)
    missing = f"; values are missing in {gaps:,}" if gaps else ""
    yield f"{columns_by_type(used)}{missing}"
    yield from rows_seen(decisions)
    for kind, why in (("identifier", "since they only tell rows apart"), ("constant", "since they never change")):
        if only := [each.name for each in used if each.type == kind]:
            yield f"left out, {why}: {shown_names(only)} {BACK}"


def used_columns(source: Any, decisions: Decisions) -> list[ColumnDecision]:
    """The columns that may be features: neither target nor weight, nor left out by an option."""
    asked = source.asked
    unused = {asked.target, asked.weight, *asked.ignore}
    if asked.features is not None:
        unused |= set(decisions.columns) - set(asked.features)
    return [each for name, each in decisions.columns.items() if name not in unused]


def columns_by_type(used: Sequence[ColumnDecision]) -> str:
    """The number of columns to learn from, by type."""
    counts = Counter(each.type for each in used if each.type not in LEFT_OUT)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    return f"{sum(counts.values()):,} columns to learn from: {kinds}"


def dialect_lines(source: Any, decimal: str) -> Iterator[str]:
    """The dialect of a text table that is not plain CSV."""
    d = getattr(source, "dialect", None)
    if d is not None and (d.encoding, d.separator, d.quote, d.header, decimal) != ("utf-8", ",", '"', True, "."):
        separator, header = NAMES.get(d.separator, repr(d.separator)), "a header" if d.header else "no header"
        yield f"text: {d.encoding}, separator {separator}, quote {d.quote}, {header}, decimal {DECIMAL_SIGNS[decimal]}"
    yield from source.renamed


def describe_columns(source: Any) -> Iterator[str]:
    """Describe the values of each column: missing and distinct ones, the range or the most frequent ones."""
    decisions = source.decisions
    names = list(decisions.columns)
    width = min(30, max(6, *map(len, names)))
    yield f"{'column':<{width}}  {'type':<10}  {'missing':>9}  {'different':>9}  values"
    for name in names:
        e, decided = decisions.evidence[name], decisions.columns[name]
        kind = "target" if name == source.asked.target else decided.type
        different = f"{e.distinct:,}" + ("+" if e.many else "")
        yield f"{one_line(name, width):<{width}}  {kind:<10}  {e.missing:>9,}  {different:>9}  {values_of(e, decided)}"


def values_of(e: ColumnEvidence, decided: Any) -> str:
    """The range of numbers, or the most frequent texts."""
    if e.given == 0:
        return "none"
    if decided.type == "number" or (not e.odd and e.numbers.different):
        return f"{e.numbers.low:g} to {e.numbers.high:g}"
    common = e.words.most_common(3)
    more = ", ..." if len(e.words) > 3 else ""
    form = f"{decided.form}: " if decided.type == "date" else ""
    return form + ", ".join(f"{one_line(word, 24)} ({count:,})" for word, count in common) + more


def order_warnings(e: ColumnEvidence) -> Iterator[str]:
    """Warnings about the order of the targets, which matters to a learner of one pass."""
    seen, count = e.numbers, 0 if e.odd else len(e.numbers.different)
    if count > 2 and (seen.rising or seen.falling):
        yield f"the target {e.name!r} is sorted: --shuffle learns from the rows in a random order"
    elif count == 2 and (seen.rising or seen.falling):
        yield f"the target {e.name!r} comes in two blocks: --shuffle learns from the rows in a random order"
    elif 1 < len(e.words) <= 100 and e.odd and e.given > 4 * len(e.words) and e.changes < 2 * len(e.words):
        yield f"the target {e.name!r} comes in blocks of one label: --shuffle learns from the rows in a random order"


def target_lines(e: ColumnEvidence) -> Iterator[str]:
    """The distribution of the target."""
    seen = e.numbers
    if e.odd or len(seen.different) <= 20:
        counts: Sequence[tuple[str, int]] = e.words.most_common(20)
        for word, count in counts:
            yield f"  {one_line(word, 30):<30}  {count:>9,}  {100 * count / max(1, e.given):5.1f} %"
    else:
        yield f"  numbers from {seen.low:g} to {seen.high:g}, {len(seen.different):,}{'+' if e.many else ''} different"


def one_line(text: str, width: int) -> str:
    """Text in one line of at most this width."""
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= width else text[: width - 1] + "…"
