"""Builds rows, targets and weights from the cells of all columns; new features may appear at any time."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SourceError
from ...rows.labels import MAX_WHOLE
from ..base import EncodedRows, check_known, select_rows
from ..columns import fill_columns, new_names
from ..labels import canonical, is_inexact, label_fault, label_text
from ..names import NameDictionary
from ..parsers.csv import FEATURE, IGNORE, TARGET, WEIGHT
from ..parsers.records import SHORT, WIDTH
from .cells import Cells, refuse_bytes, text_cells, typed_cells
from .decisions import LEFT_OUT, ColumnDecision
from .encoders import (
    ENCODERS,
    CategoryEncoder,
    Encoder,
    Indicators,
    NumberEncoder,
    check_pairs,
    product_name,
    product_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..base import Position, ReadOptions
    from ..csv import Records
    from .decided import Decisions
    from .encoders import Encoded

LIMIT = 1 << 18  # features; names that come later share BUCKETS features per column
BUCKETS = 1 << 10
GONE = "{} is missing"


class TableLayout:
    """Turns the columns of a table into rows, and numbers its features.

    The fixed features come first, then new ones in order of first appearance.

    Parameters
    ----------
    decisions : Decisions
        The columns of the table, and what each of them holds.
    options : ReadOptions
        How to read.
    where : str
        The table, for messages.
    grows : bool, default False
        Whether rows are always sparse so that features may be added, as for a stream, which is read once.
    swapped : bool, default False
        Whether ' and " are exchanged in the text that is read.

    Attributes
    ----------
    decided : bool
        Whether the types of the columns were inferred; otherwise they are read strictly (see `PlainLayout`). Then a row
        without a target is bad instead of having weight 0, one that is skipped for a missing value is never bad, and
        sparse rows also hold the zeros of numbers.
    frozen : bool
        Whether statistics of the rows stay as they are.
    used : list of str
        The columns that are read.
    roles, dest : ndarray of int
        What the compiled parser does with each column of a text table (see `parsers.csv.parse_table`).
    kind : {"dense", "sparse"}
        The form of the rows.
    fixed, spaces : list of str
        The names of the fixed features, and the namespaces of the others in `dictionary`.
    """

    decided = True
    frozen = False

    def __init__(
        self, decisions: Decisions, options: ReadOptions, where: str, grows: bool = False, swapped: bool = False
    ) -> None:
        columns, decided, na = list(decisions.columns), decisions.columns, tuple(options.na)
        self.decisions, self.swapped = decisions, swapped
        check_known((*(options.features or ()), *options.ignore, options.target, options.weight), columns, where)
        chosen = columns if options.features is None else list(options.features)
        out = {options.target, options.weight, *options.ignore}
        encoders: dict[str, Encoder] = {
            name: ENCODERS[decided[name].type](decided[name], na)
            for name in chosen
            if name not in out and decided[name].type not in LEFT_OUT
        }
        if not encoders:
            raise SourceError(
                f"{where}: there is no column to learn from besides the target {options.target!r}: every other one is "
                "constant, an identifier or left out (--features NAME brings one back)"
            )
        if options.target is not None:
            kind = NumberEncoder if decided[options.target].type == "number" else CategoryEncoder
            encoders[options.target] = kind(decided[options.target], na)
        if options.weight is not None:
            sign = decided[options.weight].decimal if options.weight in decided else "."
            encoders[options.weight] = NumberEncoder(ColumnDecision(options.weight, "number", decimal=sign), na)
        self._number(encoders, columns, options, where, grows)

    def _number(
        self, encoders: dict[str, Encoder], columns: Sequence[str], options: ReadOptions, where: str, grows: bool
    ) -> None:
        """Number the features that the encoders give, those of target and weight aside."""
        self.all_encoders, self.options, self.where = encoders, options, where
        self.encoders = {name: each for name, each in encoders.items() if name not in (options.target, options.weight)}
        self.used = [name for name in columns if name in encoders]
        check_pairs(options.cross, self.encoders)
        self.products = [tuple(pair) for pair in options.cross]
        self.fixed = [name for name, encoder in self.encoders.items() if encoder.numeric]
        self.sums = dict.fromkeys(self.fixed, (0.0, 0))
        self.fixed += [product_name(p) for p in self.products if all(self.encoders[name].numeric for name in p)]
        if options.missing == "indicator":
            self.fixed += [GONE.format(name) for name, each in self.encoders.items() if each.decided.indicator]
        twice = {name for name in self.fixed if self.fixed.count(name) > 1} if len(self.fixed) < 1000 else set()
        if twice:
            raise SourceError(f"{where}: two features would be named {twice.pop()!r}: rename a column, or --ignore it")
        self.place = {name: j for j, name in enumerate(self.fixed)}
        self.spaces = [space for encoder in self.encoders.values() for space in encoder.spaces]
        self.spaces += [product_name(pair) for pair in self.products if product_name(pair) not in self.fixed]
        self.kind = "sparse" if self.spaces or grows else "dense"
        self.dictionary = NameDictionary(self.fixed, self.spaces, "=", unique=self.decided)
        self.number = {space: k for k, space in enumerate(["", *self.spaces])}
        self.known: dict[tuple[int, str], int] = {}

    # ---------------------------------------------------------------- how features are numbered

    @property
    def width(self) -> int:
        """The number of features so far."""
        return max(len(self.dictionary), len(self.fixed))

    def names(self, width: int) -> Sequence[str]:
        """The features up to a width."""
        return self.dictionary.names(max(width, len(self.fixed)))

    def state(self, width: int, sums: Sequence[str]) -> dict[str, Any]:
        """The numbering of the features and the decisions, for `restore`; `sums` are those of `read_sums`."""
        state = self.dictionary.state(max(width, len(self.fixed)))
        return state | {"table": self.decisions.to_state(), "sums": list(sums)}

    def restore(self, state: dict[str, Any]) -> int:
        """Number the features as in a saved state; returns their number."""
        if state["names"][: len(self.fixed)] != list(self.names(0)) or state["spaces"] != self.spaces:
            raise SourceError(f"{self.where}: its features are not those that were read before")
        self.dictionary.restore(state)
        keys = enumerate(self.dictionary.parts(state))
        self.known = {key: j for j, key in keys if j >= len(self.fixed)}
        return len(state["names"])

    def resolved_options(self) -> dict[str, Any]:
        """Parameters of `open_source` to read other files in the same way."""
        return {"features": list(self.encoders), "ignore": [], "categorical": [], "types": {}}

    def write_sums(self) -> list[str]:
        """The sums behind the running means, written exactly."""
        return [f"{total.hex()} {count}" for total, count in self.sums.values()]

    def read_sums(self, texts: Sequence[str]) -> None:
        """Restore the running means from `write_sums`, or reset them if there are no texts."""
        for name, text in zip(self.sums, texts or ["0x0p+0 0"] * len(self.sums), strict=True):
            total, count = text.split()
            self.sums[name] = float.fromhex(total), int(count)

    # ---------------------------------------------------------------- from columns to cells

    def find_columns(self, header: Sequence[str]) -> None:
        """Find the columns that are used in the header of a text table."""
        check_known(self.used, header, self.where)
        self.header = header
        special = {self.options.target: TARGET, self.options.weight: WEIGHT}
        roles = [self.all_encoders[name].role if name in self.all_encoders else IGNORE for name in header]
        roles = [special.get(name, role) if role == FEATURE else role for name, role in zip(header, roles, strict=True)]
        dest = [self.place.get(name, self.number.get(name, 1) - 1) for name in header]
        self.roles, self.dest = np.array(roles, np.int64), np.array(dest, np.int64)
        self.others = np.setdiff1d(np.arange(len(self.fixed)), self.dest[self.roles == FEATURE])

    def check_schema(self, schema: Any, where: str) -> None:
        """Raise an error for typed columns that cannot be read."""
        known = frozenset(schema.names)
        for name in self.used:
            if name not in known:
                raise SourceError(f"{where}: there is no column {name!r}, but {self.where} has it")

    def is_exact(self, name: str) -> bool:
        """Whether a column, being a label or a category, must distinguish whole numbers that float64 cannot."""
        return name == self.options.target or not self.all_encoders[name].numeric

    def encode_records(self, buf: np.ndarray, found: Records, at: Position, where: str) -> EncodedRows:
        """Build the rows of records of text; counts are added to `at`."""
        n = len(found.rows)
        try:
            cells = text_cells(
                buf, found, n, self.header, self.roles, self.dest, swapped=self.swapped, strict=not self.decided
            )
        except ValueError:
            refuse_bytes(buf, found.rows, where)
        found.X[:, self.others] = 0.0
        rows = self.encode(n, cells, at, found.X, None if self.decided else int(found.counts[WIDTH]))
        if found.counts[SHORT]:
            at["short"] = at.get("short", 0) + int(found.counts[SHORT])
        return rows

    def encode_batch(self, batch: Any, at: Position, where: str) -> EncodedRows:
        """Build the rows of a batch of typed columns; counts are added to `at`."""
        cells = {
            name: typed_cells(
                self._column(batch, name), where, name, not self.decided, self.is_exact(name), finite=True
            )
            for name in sorted(self.used, key=self.spaces.__contains__)
        }
        return self.encode(batch.num_rows, cells, at)

    def _column(self, batch: Any, name: str) -> Any:
        """A column of a batch."""
        return batch.column(name)

    # ---------------------------------------------------------------- from cells to rows

    def encode(
        self, n: int, cells: dict[str, Cells], at: Position, X: np.ndarray | None = None, width: int | None = None
    ) -> EncodedRows:
        """Rows, targets and weights from the cells of the columns; counts are added to `at`.

        `X` has the fixed features of text as far as they are plain numbers, and then columns of plain numbers may have
        no cells; `width` is the number of features, if the parser counted them.
        """
        self.faults: dict[int, tuple[str, str]] = {}
        gone = np.zeros(n, bool)
        found: dict[str, Encoded] = {}
        for name in self.all_encoders if self.decided else cells:  # the first fault of a row is reported
            out = found[name] = self.all_encoders[name].encode(cells[name])
            for t, reason in out.faults.items():
                self.faults.setdefault(t, (name, reason))
            if len(out.missing):
                self._note_missing(name, out.missing, gone)
        features = {name: out for name, out in found.items() if name in self.encoders}
        features |= {product_name((a, b)): product_of((a, b), found[a], found[b]) for a, b in self.products}
        y, unlabelled = self._targets(n, cells, found)
        weight = self._weights(found)
        if unlabelled.any():
            weight = np.ones(n) if weight is None else weight
            weight[unlabelled] = 0.0
        rows = self._matrix(n, features, cells, X, width)
        if not self.decided:
            self.faults = {t: why for t, why in self.faults.items() if not gone[t]}
        bad = np.zeros(n, bool)
        bad[list(self.faults)] = True
        keep = ~(gone | bad)
        if self.decided:
            at["unlabelled"] = at.get("unlabelled", 0) + int((unlabelled & keep).sum())
            at["skipped"] = at.get("skipped", 0) + int((gone & ~bad).sum())
            at["sums"] = self.write_sums()
        at["width"] = rows.shape[1]
        rows, y, weight = select_rows(keep, rows, y, weight)
        return EncodedRows(rows, y, weight, keep, self.faults)

    def _note_missing(self, name: str, rows: np.ndarray, gone: np.ndarray) -> None:
        """Note the rows without a value in a column: rows to skip in `gone`, faults otherwise."""
        rule, feature = self.options.missing, name in self.encoders
        what = "value" if feature else "target" if name == self.options.target else "weight"
        if rule == "skip" and (feature or not self.decided):
            gone[rows] = True
        elif rule == "error" if feature else what == "weight" or not self.decided:
            self._add_faults(rows, name, f"the {what} is missing")

    def _add_faults(self, rows: np.ndarray, name: str, reason: str) -> None:
        for t in rows.tolist():
            self.faults.setdefault(t, (name, reason))

    def _weights(self, found: dict[str, Encoded]) -> np.ndarray | None:
        name = self.options.weight
        if name is None:
            return None
        values = found[name].values
        assert values is not None
        for t in np.flatnonzero(values < 0.0).tolist():
            self.faults.setdefault(t, (name, f"weight {float(values[t])!r} must be at least 0"))
        return np.nan_to_num(values)

    def _targets(
        self, n: int, cells: dict[str, Cells], found: dict[str, Encoded]
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """The targets, NaN or "" if missing, and the mask of the missing ones."""
        name, unlabelled = self.options.target, np.zeros(n, bool)
        if name is None:
            return None, unlabelled
        out = found[name]
        if out.values is not None and self.options.labels is not False:
            large = np.flatnonzero(np.abs(out.values[cells[name].rows]) >= MAX_WHOLE)
            if len(large) and any(map(is_inexact, cells[name].texts.take(large).to_pylist())):
                out = CategoryEncoder(self.all_encoders[name].decided, tuple(self.options.na)).encode(cells[name])
        unlabelled[out.missing] = True
        if out.values is not None:
            y = out.values
            if self.options.labels:
                y = np.where(unlabelled, "", label_text(np.nan_to_num(y)))
            return y, unlabelled
        y = np.full(n, "", object)
        for named in out.named:
            assert named.texts is not None
            texts = [canonical(text) for text in named.texts]
            y[named.rows] = np.array(texts, object)[named.codes]
            reasons = {k: fault for k, text in enumerate(texts) if (fault := label_fault(text))}
            if self.options.labels is False:
                reasons = {k: f"{text!r} is not a number: choose a classifier" for k, text in enumerate(texts)}
            for k, why in reasons.items():
                self._add_faults(named.rows[named.codes == k], name, why)
        return y.astype(str) if n else np.zeros(0, "<U1"), unlabelled

    def _matrix(
        self, n: int, features: dict[str, Encoded], cells: dict[str, Cells], X: np.ndarray | None, width: int | None
    ) -> Any:
        columns: list[tuple[int, np.ndarray]] = []
        named: list[Indicators] = []
        late: list[Indicators] = []
        marks: list[tuple[int, np.ndarray]] = []
        for name, out in features.items():
            if out.values is not None:
                values = self._filled(name, out) if name in self.sums else out.values
                if X is None or name not in cells or not np.may_share_memory(values, X):
                    columns.append((self.place[name], values))
            if len(out.missing) and self.options.missing == "indicator":
                column = self.place.get(GONE.format(name))
                if column is not None:
                    marks.append((column, out.missing))
                elif self.kind == "sparse":
                    late.append(Indicators("", out.missing, np.zeros(len(out.missing), np.int64), [GONE.format(name)]))
                elif not self.frozen:
                    self.faults.setdefault(int(out.missing[0]), (name, "a value is missing for the first time"))
            named += out.named
        X = np.zeros((n, len(self.fixed))) if X is None else X
        fill_columns(X, columns)
        for column, rows in marks:
            X[rows, column] = 1.0
        if self.kind == "dense":
            return X
        return self._sparse(X, [*sorted(late, key=lambda each: each.texts or []), *named], width)

    def _filled(self, name: str, out: Encoded) -> np.ndarray:
        """The values of a column, with missing ones filled in."""
        values = out.values
        assert values is not None
        if self.options.missing != "mean":
            if len(out.missing):
                values[out.missing] = 0.0
            return values
        total, count = self.sums[name]
        if self.frozen:
            return np.where(np.isnan(values), total / max(1, count), values)
        given = ~np.isnan(values)
        totals = np.cumsum(np.concatenate([[total], np.where(given, values, 0.0)]))
        counts = count + np.concatenate([[0], np.cumsum(given)])
        self.sums[name] = float(totals[-1]), int(counts[-1])
        return np.where(given, values, totals[:-1] / np.maximum(counts[:-1], 1))

    def _sparse(self, X: np.ndarray, named: list[Indicators], width: int | None) -> Any:
        """Numbers and named as sparse rows."""
        from scipy.sparse import csr_matrix

        keys = [[(self.number[each.space], text) for text in each.texts or ()] for each in named]
        found = [(each.rows, each.codes, names) for each, names in zip(named, keys, strict=True) if names]
        for space, text in new_names(found, self.known):
            self._add(space, text)
        if self.decided:
            rows, columns = np.nonzero(X)
            parts = [(rows, columns, X[rows, columns])]
        else:
            where = np.indices(X.shape).reshape(2, -1)
            parts = [(where[0], where[1], X.ravel())]
        for each, names in zip(named, keys, strict=True):
            ids = each.codes
            if names:
                of_text = np.full(len(names), -1, np.int64)
                for k in np.unique(each.codes).tolist():
                    of_text[k] = self.known[names[k]] if names[k] in self.known else self._bucket(*names[k])
                ids = of_text[each.codes]
            parts.append((each.rows, ids, np.ones(len(each.rows)) if each.values is None else each.values))
        rows, columns, values = (np.concatenate([part[k] for part in parts]) for k in range(3))
        out = csr_matrix((values, (rows, columns)), shape=(len(X), width or self.width))
        out.sort_indices()
        return out

    def _add(self, space: int, text: str) -> None:
        if len(self.dictionary) < LIMIT or space == 0 or not self.decided:
            self.known[space, text] = self.dictionary.add(text, space)
        else:
            self._bucket(space, text)

    def _bucket(self, space: int, text: str) -> int:
        """The shared feature of a name that appeared after the table had reached its largest number of features."""
        name = f"#{zlib.crc32(text.encode()) % BUCKETS}"
        if (space, name) not in self.known:
            self.known[space, name] = self.dictionary.add(name, space)
        return self.known[space, name]
