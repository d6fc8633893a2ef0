"""What sources of ordinary tables share: decisions about columns, how they are said, kept, and corrected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import DisprovedError, SourceError
from ..base import ReadOptions, suggestion
from ..columns import TableSource
from .decisions import ColumnDecision, check_given, column_decimal, decide, identity, parse_types, table_decimal
from .layout import TableLayout

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ..base import Chunk, Position
    from .evidence import ColumnEvidence

HELP = {"the value is missing": "--missing indicator takes it", "a value is missing": "--missing zero takes it"}


class Decisions:
    """What was decided about a table: its columns, its decimal sign, and how much of it was seen.

    Attributes
    ----------
    columns : dict of str to ColumnDecision
        By name, in the order of the table.
    decimal : {".", ","}
        The decimal sign of the table, for columns that do not show it themselves.
    complete : bool
        Whether all rows were seen; otherwise a later row may disprove a decision.
    evidence : dict of str to ColumnEvidence
        What was seen; empty where decisions come from a model.
    """

    def __init__(
        self,
        columns: dict[str, ColumnDecision],
        decimal: str,
        complete: bool,
        evidence: dict[str, ColumnEvidence] | None = None,
    ) -> None:
        self.columns, self.decimal, self.complete, self.evidence = columns, decimal, complete, evidence or {}

    @classmethod
    def made(
        cls,
        evidence: dict[str, ColumnEvidence],
        options: ReadOptions,
        complete: bool,
        where: str,
        unnamed: Collection[str] = (),
    ) -> Decisions:
        """Decide from what was seen, and from what was asked for; the header has no name for the `unnamed` columns."""
        names = list(evidence)
        check_given(options.types, names, where)
        given = parse_types(options.types)
        chosen = options.categorical
        for name in () if isinstance(chosen, str) else chosen:
            given.setdefault(name, ("category", ""))
        decimal = options.decimal or table_decimal(list(evidence.values()))
        goal, wanted = options.target, (options.target, options.weight, *(options.features or ()))
        columns = {}
        for name, e in evidence.items():
            e.decimal = options.decimal or column_decimal(e, decimal)
            why = "" if name in wanted else identity(e, name == names[0], name in unnamed)
            columns[name] = decide(e, given.get(name), complete, name == goal, why)
            if name in wanted and columns[name].type == "identifier" and name not in given:
                columns[name] = replace(columns[name], type="category", why="")
        if goal is not None and wants_number(goal, options) and columns[goal].type != "number":
            columns[goal] = decide(evidence[goal], ("number", ""), complete)
        return cls(columns, decimal, complete, evidence)

    def to_state(self) -> dict[str, Any]:
        """The decisions as plain values."""
        columns = [decided.plain() for decided in self.columns.values()]
        return {"columns": columns, "decimal": self.decimal, "complete": self.complete}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Decisions:
        """The decisions that `to_state` wrote."""
        table = {"decimal": state["decimal"]}  # earlier versions had one sign for all columns
        columns = {
            each["name"]: ColumnDecision(**table | each | {"words": tuple(each["words"])}) for each in state["columns"]
        }
        return cls(columns, state["decimal"], state["complete"])

    def is_plain(self, options: ReadOptions) -> bool:
        """Whether every column that is used holds numbers, none of them missing or written in another way."""
        return not options.cross and all(
            (decided.type == "number" and not decided.indicator and decided.decimal == "." and not self._written(name))
            or (name == options.target and decided.type == "category" and not decided.indicator)
            for name, decided in self.columns.items()
            if name not in options.ignore
        )

    def _written(self, name: str) -> bool:
        """Whether numbers are written as only people write them, or there are words among them."""
        from ..labels import is_number

        e = self.evidence[name]
        return bool(e.odd or not all(map(is_number, e.words)))

    def layout(self, names: Sequence[str], options: ReadOptions, where: str, grows: bool) -> TableLayout:
        """The encoders, for a table with these columns."""
        for name in (*(options.features or ()), *options.ignore, options.target, options.weight):
            if name is not None and name not in names:
                raise SourceError(f"{where}: there is no column {name!r}{suggestion(name, names)}")
        return TableLayout(names, self.columns, options, where, grows)

    def settle(self, reason: str, column: str, options: ReadOptions) -> bool:
        """Whether a fault is one of the row, not one of the decisions."""
        if "for the first time" in reason:
            return False
        return self.complete or "missing" in reason or wants_number(column, options)

    def disproved(self, where: str, unit: str, number: int, column: str, reason: str) -> DisprovedError:
        """The error of a row that is not as the rows before it had shown."""
        if not column:
            return DisprovedError(f"{where}, {unit} {number}: {reason}, unlike all rows before")
        return DisprovedError(
            f"{where}, {unit} {number}, column {column!r}: {reason}, unlike all rows before: say what the column holds "
            f"with --types {column}:category (or number, date, text, ignore)"
        )


class DecidedTable(TableSource):
    """What sources of tables do with their decisions: keep them, take them up again, and go on from them.

    A source has `_take`, which takes up decisions, and `_take_plain`, for a table that the strict reader reads.
    """

    decisions: Decisions | None = None
    table: TableLayout | None = None
    sums: list[str]
    follows = False

    def _take(self, decisions: Decisions) -> None:
        raise NotImplementedError

    def _take_plain(self) -> None:
        raise NotImplementedError

    def chunks(self, start: Position | None = None) -> Iterator[Chunk]:
        for chunk in super().chunks(start):
            self.sums = chunk.position.get("sums", self.sums)
            yield chunk

    @property
    def names(self) -> Sequence[str]:
        return super().names if self.table is None else self.table.names(self.width)

    def state(self) -> dict[str, Any]:
        if self.table is None:
            return super().state()
        assert self.decisions is not None
        return self.table.numbering(self.width) | {"table": self.decisions.to_state(), "sums": self.sums}

    def restore(self, state: dict[str, Any]) -> None:
        if "table" not in state:
            self._take_plain()
            super().restore(state)
            return
        self._take(Decisions.from_state(state["table"]))
        assert self.table is not None
        self.width = self.table.restore(state)
        self.sums = state["sums"]

    def follow(self, state: dict[str, Any]) -> None:
        self.restore(state)
        self.follows = True

    def freeze(self) -> None:
        if self.table is not None:
            self.table.frozen = True
            if self.sums:
                self.table.read_sums(self.sums)

    def resolved_options(self) -> dict[str, Any]:
        if self.table is None:
            return super().resolved_options()
        return {"features": list(self.table.encoders), "ignore": [], "categorical": [], "types": {}}


def wants_number(column: str, options: ReadOptions) -> bool:
    """Whether it is the target of a learner that takes numbers, whatever the column holds."""
    return column == options.target and options.labels is False


def with_help(reason: str, column: str, options: ReadOptions) -> str:
    """What is wrong with a row, and which option helps."""
    if reason.endswith("is not a number"):
        if wants_number(column, options):
            return f"{reason}: choose a classifier"
        if column != options.target:
            return f"{reason}: --rejects FILE leaves such rows out, --na or --types {column}:category takes it"
    return reason


def first_sums(source: Any) -> list[str]:
    """The sums of running means before the first row: none, or those of the rows that it follows."""
    return source.sums if source.follows and source.sums else ["0x0p+0 0"] * len(source.table.sums)


def strict_options(options: ReadOptions) -> ReadOptions:
    """The options with which the strict reader reads a plain table."""
    missing = options.missing if options.missing in ("error", "zero", "skip") else "error"
    return replace(options, missing=missing, categorical=())
