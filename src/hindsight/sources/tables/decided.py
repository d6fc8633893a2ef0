"""What sources of ordinary tables share: decisions about columns, how they are stored and corrected."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...errors import DisprovedError
from ..base import BadRow, ReadOptions, Reject
from ..columns import TableSource
from ..labels import reads_as_number
from .decisions import ColumnDecision, check_given, column_decimal, decide, identity, parse_types, table_decimal
from .evidence import ColumnEvidence
from .layout import TableLayout
from .plain_layout import PlainLayout

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ..base import Chunk, Position


@dataclass(eq=False)
class Decisions:
    """The decisions about a table: its columns, its decimal sign, and whether all of it was seen.

    Attributes
    ----------
    columns : dict of str to ColumnDecision
        By name, in the order of the table.
    decimal : {".", ","}
        The decimal sign of the table, for columns that do not show it themselves.
    complete : bool
        Whether all rows were seen; otherwise a later row may disprove a decision.
    evidence : dict of str to ColumnEvidence
        The statistics of each column; empty if the decisions come from a model.
    """

    columns: dict[str, ColumnDecision]
    decimal: str
    complete: bool
    evidence: dict[str, ColumnEvidence] = field(default_factory=dict)

    @classmethod
    def made(
        cls,
        evidence: dict[str, ColumnEvidence],
        options: ReadOptions,
        complete: bool,
        where: str,
        unnamed: Collection[str] = (),
    ) -> Decisions:
        """Decide from statistics of the columns and from options; the header has no name for `unnamed` columns."""
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
        """Whether every used column holds only plain numbers, with none missing or formatted otherwise."""
        return not options.cross and all(
            (decided.type == "number" and not decided.indicator and decided.decimal == "." and not self._written(name))
            or (name == options.target and decided.type == "category" and not decided.indicator)
            for name, decided in self.columns.items()
            if name not in options.ignore
        )

    def _written(self, name: str) -> bool:
        """Whether a column has formatted numbers, or words among its numbers."""
        e = self.evidence[name]
        return bool(e.odd or not all(map(reads_as_number, e.words)))


class DecidedTable(TableSource):
    """A mixin of table sources that makes, stores and restores decisions.

    A table that turns out to be plain numbers is read with the strict layout, at its speed; `_may_be_plain` says
    whether the options permit it.
    """

    asked: ReadOptions
    header: list[str]
    decisions: Decisions | None = None
    renamed: Sequence[str] = ()
    unnamed: Collection[str] = ()  # columns for which the header has no name
    swapped = False  # whether ' and " are exchanged in the text that is read
    follows = False
    reported = (*TableSource.reported, "sums")

    def _plain_layout(self) -> PlainLayout:
        return PlainLayout(self.header, self.options, self.where)

    def _take(self, decisions: Decisions) -> None:
        """Apply decisions."""
        self.decisions = decisions
        layout = TableLayout(decisions, self.asked, self.where, self._grows, self.swapped)
        layout.find_columns(self.header)
        self._use(layout)
        self.width = len(layout.fixed)

    @property
    def _grows(self) -> bool:
        """Whether new features may appear at any time."""
        return False

    @property
    def _may_be_plain(self) -> bool:
        return not (self.asked.types or self.asked.categorical or self.asked.na or self.asked.cross)

    def decide(self, evidence: dict[str, ColumnEvidence], complete: bool) -> None:
        """Make decisions from the rows seen, and apply them."""
        self.decisions = Decisions.made(evidence, self.asked, complete, self.where, self.unnamed)
        if self._may_be_plain and self.decisions.is_plain(self.asked):
            self._use(self._plain_layout())
        else:
            self._take(self.decisions)

    def _nothing_seen(self) -> dict[str, ColumnEvidence]:
        """Empty statistics for each column."""
        return {name: ColumnEvidence(name, tuple(self.asked.na), name != self.asked.target) for name in self.header}

    def _reject(self, where: str, unit: str, row: BadRow) -> Reject:
        """Return a bad row to be skipped or raise an error, a DisprovedError if the row contradicts a decision."""
        assert self.decisions is not None
        if self._disproves(row.column, row.reason):
            if not row.column:
                raise DisprovedError(f"{where}, {unit} {row.number}: {row.reason}, unlike all rows before")
            raise DisprovedError(
                f"{where}, {unit} {row.number}, column {row.column!r}: {row.reason}, unlike all rows before: say what "
                f"the column holds with --types {row.column}:category (or number, date, text, ignore)"
            )
        if self.decided:
            row = row._replace(reason=with_help(row.reason, row.column, self.asked))
        return super()._reject(where, unit, row)

    def _disproves(self, column: str, reason: str) -> bool:
        """Whether a fault shows that a decision, rather than the row, is wrong."""
        assert self.decisions is not None
        if not self.decided:
            of_columns = column not in ("", self.options.weight) or "but there are" in reason
            return of_columns and not self.decisions.complete
        if "for the first time" in reason:
            return True
        of_row = self.decisions.complete or not column or "missing" in reason or wants_number(column, self.asked)
        return not of_row

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        if not self.layout.frozen:
            self.layout.read_sums((start or {}).get("sums") or (self.sums if self.follows else ()))
        return super()._chunks(start)

    def restore(self, state: dict[str, Any]) -> None:
        if "table" in state:
            self._take(Decisions.from_state(state["table"]))
        elif self.decided:
            self._use(self._plain_layout())
        super().restore(state)
        self.sums = state.get("sums", ())

    def follow(self, state: dict[str, Any]) -> None:
        self.restore(state)
        self.follows = True

    def freeze(self) -> None:
        self.layout.frozen = True
        if self.sums:
            self.layout.read_sums(self.sums)


def wants_number(column: str, options: ReadOptions) -> bool:
    """Whether the column is the target of a learner that takes numbers."""
    return column == options.target and options.labels is False


def with_help(reason: str, column: str, options: ReadOptions) -> str:
    """The reason why a row is bad, with the option that helps."""
    if reason.endswith("is not a number"):
        if wants_number(column, options):
            return f"{reason}: choose a classifier"
        if column != options.target:
            return f"{reason}: --rejects FILE leaves such rows out, --na or --types {column}:category takes it"
    return reason


def strict_options(options: ReadOptions) -> ReadOptions:
    """The options for reading a plain table with the strict reader."""
    missing = options.missing if options.missing in ("error", "zero", "skip") else "error"
    return replace(options, missing=missing, categorical=(), cross=())
