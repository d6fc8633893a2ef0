"""What sources of ordinary tables share: decisions about columns, how they are stored and corrected."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...errors import DisprovedError
from ..base import BadRow, EncodedRows, ReadOptions, Reject, check_known
from ..columns import TableSource
from .decisions import ColumnDecision, check_given, column_decimal, decide, identity, parse_types, table_decimal
from .evidence import ColumnEvidence
from .layout import TableLayout

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ..base import Chunk, Position
    from ..columns import Layout
    from .cells import Cells


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
        from ..labels import reads_as_number

        e = self.evidence[name]
        return bool(e.odd or not all(map(reads_as_number, e.words)))

    def layout(self, options: ReadOptions, where: str, grows: bool) -> TableLayout:
        """The encoders."""
        names = list(self.columns)
        check_known((*(options.features or ()), *options.ignore, options.target, options.weight), names, where)
        return TableLayout(names, self.columns, options, where, grows)


class DecidedTable(TableSource):
    """A mixin of table sources that makes, stores and restores decisions.

    A source has `_take`, which applies decisions, `_take_plain`, for tables that the strict reader can read, and
    `_may_be_plain`, which says whether the options permit that reader.
    """

    asked: ReadOptions
    header: list[str] | None
    decisions: Decisions | None = None
    table: TableLayout | None = None
    sums: Sequence[str] = ()
    renamed: Sequence[str] = ()
    unnamed: Collection[str] = ()  # columns for which the header has no name
    follows = False
    reported = (*TableSource.reported, "sums")

    def _take(self, decisions: Decisions) -> None:
        """Apply decisions: set the layout and the columns that are read."""
        self.decisions = decisions
        self.table = decisions.layout(self.asked, self.where, self._grows)
        self.kind, self.width = self.table.kind, len(self.table.fixed)

    def _take_plain(self) -> None:
        raise NotImplementedError

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
            self._take_plain()
        else:
            self._take(self.decisions)

    def _nothing_seen(self) -> dict[str, ColumnEvidence]:
        """Empty statistics for each column."""
        assert self.header is not None
        return {name: ColumnEvidence(name, tuple(self.asked.na), name != self.asked.target) for name in self.header}

    def _encode_cells(self, n: int, cells: dict[str, Cells], at: Position) -> EncodedRows:
        """Rows from the cells of the columns."""
        assert self.table is not None
        found = self.table.encode(n, cells)
        at["unlabelled"] = at.get("unlabelled", 0) + found.unlabelled
        at["skipped"] = at.get("skipped", 0) + found.skipped
        at |= {"width": self.table.width, "sums": self.table.write_sums()}
        return found

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
        if self.table is not None:
            row = row._replace(reason=with_help(row.reason, row.column, self.asked))
        return super()._reject(where, unit, row)

    def _disproves(self, column: str, reason: str) -> bool:
        """Whether a fault shows that a decision, rather than the row, is wrong."""
        assert self.decisions is not None
        if self.table is None:
            of_columns = column not in ("", self.options.weight) or "but there are" in reason
            return of_columns and not self.decisions.complete
        if "for the first time" in reason:
            return True
        of_row = self.decisions.complete or not column or "missing" in reason or wants_number(column, self.asked)
        return not of_row

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        if self.table is not None and not self.table.frozen:
            self.table.read_sums((start or {}).get("sums") or (self.sums if self.follows else ()))
        return super()._chunks(start)

    @property
    def encoding(self) -> Layout:
        return self.layout if self.table is None else self.table

    def state(self) -> dict[str, Any]:
        if self.table is None:
            return super().state()
        assert self.decisions is not None
        return super().state() | {"table": self.decisions.to_state(), "sums": list(self.sums)}

    def restore(self, state: dict[str, Any]) -> None:
        if "table" in state:
            self._take(Decisions.from_state(state["table"]))
        else:
            self._take_plain()
        super().restore(state)
        self.sums = state.get("sums", self.sums)

    def follow(self, state: dict[str, Any]) -> None:
        self.restore(state)
        self.follows = True

    def freeze(self) -> None:
        if self.table is not None:
            self.table.frozen = True
            if self.sums:
                self.table.read_sums(self.sums)


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
    return replace(options, missing=missing, categorical=())
