"""Builds rows, targets and weights from the cells of all columns; new features may appear at any time."""

from __future__ import annotations

import itertools
import re
import zlib
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import SourceError
from ...rows.labels import MAX_WHOLE, label_number, number_text
from ..base import SHOWN, EncodedRows, check_known, select_rows
from ..columns import Layout, new_names
from ..labels import label_fault, label_text, read_target, reads_as_number
from ..names import NameDictionary
from ..parsers.csv import FEATURE, IGNORE, TARGET, TEXT
from ..parsers.records import SHORT
from ..text import text_at
from .cells import Cells, text_cells, typed_cells
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
INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)


class TableLayout(Layout):
    """The encoders of the columns of a table and the numbering of their features.

    Parameters
    ----------
    decisions : Decisions
        The columns of the table, and what each of them holds.
    options : ReadOptions
        How to read.
    where : str
        The table, for messages.
    grows : bool
        Whether rows are always sparse so that features may be added, as for a stream, which is read once.
    swapped : bool, default False
        Whether ' and " are exchanged in the text that is read.
    """

    decided = True

    def __init__(
        self, decisions: Decisions, options: ReadOptions, where: str, grows: bool = False, swapped: bool = False
    ) -> None:
        self.decisions, self.options, self.where, self.swapped = decisions, options, where, swapped
        self.columns, decided, na = list(decisions.columns), decisions.columns, tuple(options.na)
        check_known((*(options.features or ()), *options.ignore, options.target, options.weight), self.columns, where)
        chosen = self.columns if options.features is None else list(options.features)
        out = {options.target, options.weight, *options.ignore}
        self.encoders: dict[str, Encoder] = {
            name: ENCODERS[decided[name].type](decided[name], na)
            for name in chosen
            if name not in out and decided[name].type not in LEFT_OUT
        }
        if not self.encoders:
            raise SourceError(
                f"{where}: there is no column to learn from besides the target {options.target!r}: every other one is "
                "constant, an identifier or left out (--features NAME brings one back)"
            )
        self.target = self._target(na)
        self.weight: Encoder | None = None
        if options.weight is not None:
            sign = decided[options.weight].decimal if options.weight in decided else "."
            self.weight = NumberEncoder(ColumnDecision(options.weight, "number", decimal=sign), na)
        gone = [GONE.format(name) for name in self.encoders if decided[name].indicator]
        self.used = [name for name in self.columns if self.encoder(name) is not None]
        check_pairs(options.cross, self.encoders)
        self.products = [tuple(pair) for pair in options.cross]
        self.fixed = [name for name, encoder in self.encoders.items() if encoder.numeric]
        numeric = [all(self.encoders[name].numeric for name in pair) for pair in self.products]
        self.fixed += [
            product_name(pair) for pair, reads_as_number in zip(self.products, numeric, strict=True) if reads_as_number
        ]
        self.fixed += gone if options.missing == "indicator" else []
        twice = {name for name in self.fixed if self.fixed.count(name) > 1} if len(self.fixed) < 1000 else set()
        if twice:
            raise SourceError(f"{where}: two features would be named {twice.pop()!r}: rename a column, or --ignore it")
        self.place = {name: j for j, name in enumerate(self.fixed)}
        self.spaces = [space for encoder in self.encoders.values() for space in encoder.spaces]
        self.spaces += [product_name(pair) for pair in self.products if product_name(pair) not in self.fixed]
        self.kind = "sparse" if self.spaces or grows else "dense"
        self.dictionary = NameDictionary(self.fixed, self.spaces, "=", unique=True)
        self.number = {space: k for k, space in enumerate(["", *self.spaces])}
        self.known: dict[tuple[int, str], int] = {}
        self.sums = {name: (0.0, 0) for name, encoder in self.encoders.items() if encoder.numeric}

    def _target(self, na: tuple[str, ...]) -> Encoder | None:
        target = self.options.target
        if target is None:
            return None
        decided = self.decisions.columns[target]
        kind = NumberEncoder if decided.type == "number" else CategoryEncoder
        return kind(decided, na)

    def encoder(self, name: str) -> Encoder | None:
        """The encoder of a column; None if it is not used."""
        if name == self.options.target:
            return self.target
        return self.weight if name == self.options.weight else self.encoders.get(name)

    def is_exact(self, name: str) -> bool:
        """Whether a column, being a label or a category, must distinguish whole numbers that float64 cannot."""
        encoder = self.encoder(name)
        return encoder is not None and (encoder is self.target or not encoder.numeric)

    def find_columns(self, header: Sequence[str]) -> None:
        """Find the columns that are used in the header of a text table."""
        check_known(self.used, header, self.where)
        self.header, roles = header, []
        for name in header:
            encoder = self.encoder(name)
            plain = TARGET if encoder is self.target else FEATURE
            roles.append(IGNORE if encoder is None else TEXT if encoder.as_text else plain)
        self.roles = np.array(roles, np.int64)
        self.dest = np.cumsum(self.roles == FEATURE) - 1

    def encode_records(self, buf: np.ndarray, found: Records, at: Position, where: str) -> EncodedRows:
        n = len(found.rows)
        try:
            cells = text_cells(buf, found, n, self.header, self.roles, self.swapped)
        except ValueError:
            refuse_bytes(buf, found.rows, where)
        if found.counts[SHORT]:
            at["short"] = at.get("short", 0) + int(found.counts[SHORT])
        return self._count(self.encode(n, cells), at)

    def encode_batch(self, batch: Any, at: Position, where: str) -> EncodedRows:
        cells = {name: typed_cells(batch.column(name), where, name, self.is_exact(name)) for name in self.used}
        return self._count(self.encode(batch.num_rows, cells), at)

    def _count(self, rows: EncodedRows, at: Position) -> EncodedRows:
        """The same rows, counted in a position."""
        at["unlabelled"] = at.get("unlabelled", 0) + rows.unlabelled
        at["skipped"] = at.get("skipped", 0) + rows.skipped
        at |= {"width": self.width, "sums": self.write_sums()}
        return rows

    def encode(self, n: int, cells: dict[str, Cells]) -> EncodedRows:
        """Rows, targets and weights from the cells of the columns."""
        self.faults: dict[int, tuple[str, str]] = {}
        gone = np.zeros(n, bool)
        found: list[tuple[str, Encoded]] = []
        for name, encoder in self.encoders.items():
            out = encoder.encode(cells[name])
            self._add_faults(name, out)
            if len(out.missing):
                if self.options.missing == "skip":
                    gone[out.missing] = True
                elif self.options.missing == "error":
                    for t in out.missing.tolist():
                        self.faults.setdefault(t, (name, "the value is missing"))
            found.append((name, out))
        encoded = dict(found)
        found += [(product_name((a, b)), product_of((a, b), encoded[a], encoded[b])) for a, b in self.products]
        y, unlabelled = self._targets(n, cells)
        weight = self._weights(n, cells)
        if unlabelled.any():
            weight = np.ones(n) if weight is None else weight
            weight[unlabelled] = 0.0
        keep = ~gone
        keep[list(self.faults)] = False
        skipped = int((gone & ~np.isin(np.arange(n), list(self.faults))).sum())
        X, y, weight = select_rows(keep, self._matrix(n, found), y, weight)
        return EncodedRows(X, y, weight, keep, self.faults, int((unlabelled & keep).sum()), skipped)

    def _add_faults(self, name: str, out: Encoded) -> None:
        for t, text in itertools.zip_longest(out.faults.tolist(), out.texts):
            value = "a number" if text is None else repr(text)[:60]
            reason = "is not finite" if text is not None and INFINITE.fullmatch(text) else out.reason
            self.faults.setdefault(t, (name, f"{value} {reason}"))

    def _weights(self, n: int, cells: dict[str, Cells]) -> np.ndarray | None:
        if self.weight is None:
            return None
        name = self.weight.decided.name
        out = self.weight.encode(cells[name])
        assert out.values is not None
        self._add_faults(name, out)
        for t in out.missing.tolist():
            self.faults.setdefault(t, (name, "the weight is missing"))
        for t in np.flatnonzero(out.values < 0.0).tolist():
            self.faults.setdefault(t, (name, f"weight {float(out.values[t])!r} must be at least 0"))
        return np.nan_to_num(out.values)

    def _targets(self, n: int, cells: dict[str, Cells]) -> tuple[np.ndarray | None, np.ndarray]:
        """The targets, NaN or "" if missing, and the mask of the missing ones."""
        import pyarrow as pa

        unlabelled = np.zeros(n, bool)
        if self.target is None:
            return None, unlabelled
        name = self.target.decided.name
        out = self.target.encode(cells[name])
        if out.values is not None and self.options.labels is not False:
            large = np.abs(out.values[cells[name].rows]) >= MAX_WHOLE
            if large.any() and any(map(is_inexact, cells[name].texts.filter(pa.array(large)).to_pylist())):
                out = CategoryEncoder(self.target.decided, tuple(self.options.na)).encode(cells[name])
        unlabelled[out.missing] = True
        self._add_faults(name, out)
        if out.values is not None:
            y = out.values
            if self.options.labels:
                y = np.where(unlabelled, "", label_text(np.nan_to_num(y)))
            return y, unlabelled
        y = np.full(n, "", object)
        for named in out.named:
            texts = [canonical(text) for text in named.texts]
            y[named.rows] = np.array(texts, object)[named.codes]
            reasons = {k: fault for k, text in enumerate(texts) if (fault := label_fault(text))}
            if self.options.labels is False:
                reasons = {k: f"{text!r} is not a number: choose a classifier" for k, text in enumerate(texts)}
            for k, why in reasons.items():
                for t in named.rows[named.codes == k].tolist():
                    self.faults.setdefault(t, (name, why))
        return y.astype(str) if n else np.zeros(0, "<U1"), unlabelled

    def _matrix(self, n: int, found: list[tuple[str, Encoded]]) -> Any:
        X = np.zeros((n, len(self.fixed)))
        named: list[Indicators] = []
        late: list[Indicators] = []
        for name, out in found:
            if out.values is not None:
                X[:, self.place[name]] = self._filled(name, out) if name in self.sums else out.values
            if len(out.missing) and self.options.missing == "indicator":
                column = self.place.get(GONE.format(name))
                if column is not None:
                    X[out.missing, column] = 1.0
                elif self.kind == "sparse":
                    late.append(Indicators("", out.missing, np.zeros(len(out.missing), np.int64), [GONE.format(name)]))
                elif not self.frozen:
                    self.faults.setdefault(int(out.missing[0]), (name, "a value is missing for the first time"))
            named += out.named
        if self.kind == "dense":
            return X
        return self._sparse(X, [*sorted(late, key=lambda each: each.texts), *named])

    def _filled(self, name: str, out: Encoded) -> np.ndarray:
        """The values of a column, with missing ones filled in."""
        values = out.values
        assert values is not None
        if self.options.missing != "mean":
            return np.nan_to_num(values, copy=False)
        total, count = self.sums[name]
        if self.frozen:
            return np.where(np.isnan(values), total / max(1, count), values)
        given = ~np.isnan(values)
        totals = np.cumsum(np.concatenate([[total], np.where(given, values, 0.0)]))
        counts = count + np.concatenate([[0], np.cumsum(given)])
        self.sums[name] = float(totals[-1]), int(counts[-1])
        return np.where(given, values, totals[:-1] / np.maximum(counts[:-1], 1))

    def _sparse(self, X: np.ndarray, named: list[Indicators]) -> Any:
        """Numbers and named as sparse rows."""
        from scipy.sparse import csr_matrix

        keys = [[(self.number[each.space], text) for text in each.texts] for each in named]
        found = ((each.rows, each.codes, names) for each, names in zip(named, keys, strict=True))
        for space, text in new_names(found, self.known):
            self._add(space, text)
        rows, columns = np.nonzero(X)
        parts = [(rows, columns, X[rows, columns])]
        for each, names in zip(named, keys, strict=True):
            ids = np.full(len(names), -1, np.int64)
            for k in np.unique(each.codes).tolist():
                ids[k] = self.known[names[k]] if names[k] in self.known else self._bucket(*names[k])
            values = np.ones(len(each.rows)) if each.values is None else each.values
            parts.append((each.rows, ids[each.codes], values))
        rows, columns, values = (np.concatenate([part[k] for part in parts]) for k in range(3))
        out = csr_matrix((values, (rows, columns)), shape=(len(X), self.width))
        out.sort_indices()
        return out

    def _add(self, space: int, text: str) -> None:
        if len(self.dictionary) < LIMIT or space == 0:
            self.known[space, text] = self.dictionary.add(text, space)
        else:
            self._bucket(space, text)

    def _bucket(self, space: int, text: str) -> int:
        """The shared feature of a name that appeared after the table had reached its largest number of features."""
        name = f"#{zlib.crc32(text.encode()) % BUCKETS}"
        if (space, name) not in self.known:
            self.known[space, name] = self.dictionary.add(name, space)
        return self.known[space, name]

    def state(self, width: int, sums: Sequence[str]) -> dict[str, Any]:
        return super().state(width, sums) | {"table": self.decisions.to_state(), "sums": list(sums)}

    def restore(self, state: dict[str, Any]) -> int:
        width = super().restore(state)
        keys = enumerate(self.dictionary.parts(state))
        self.known = {key: j for j, key in keys if j >= len(self.fixed)}
        return width

    def resolved_options(self) -> dict[str, Any]:
        return {"features": list(self.encoders), "ignore": [], "categorical": [], "types": {}}

    def write_sums(self) -> list[str]:
        """The sums behind the running means, written exactly."""
        return [f"{total.hex()} {count}" for total, count in self.sums.values()]

    def read_sums(self, texts: Sequence[str]) -> None:
        """Restore the running means from `write_sums`, or reset them if there are no texts."""
        for name, text in zip(self.sums, texts or ["0x0p+0 0"] * len(self.sums), strict=True):
            total, count = text.split()
            self.sums[name] = float.fromhex(total), int(count)


def is_inexact(text: str) -> bool:
    """Whether the text is a whole number that float64 cannot represent."""
    return reads_as_number(text) and read_target(text, None)[1] is not None


def canonical(text: str) -> str:
    """A label; a number in its shortest form."""
    value = label_number(text)
    return text if value != value else number_text(value)


def refuse_bytes(buf: np.ndarray, rows: np.ndarray, where: str) -> NoReturn:
    """Raise an error that names the first row that is not UTF-8."""
    for begin, end, line in rows.tolist():
        try:
            buf[begin:end].tobytes().decode("utf-8")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            reason = f"byte 0x{byte:02x} is not UTF-8: say what the file is with --encoding, as cp1252"
            shown = text_at(buf, begin, end)[:SHOWN]
            raise SourceError(f"{where}, line {line}: {reason} (row: {shown!r})") from None
    raise AssertionError("text that Arrow refuses and Python does not")
