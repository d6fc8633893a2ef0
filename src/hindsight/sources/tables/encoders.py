"""One encoder per type of column, which turns cells into numbers and indicator features; products of columns.

The product of two numbers is a number; of two categories, an indicator of the pair; of a number and a category, the
number as the value of the category's feature.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import OptionError
from ...rows.labels import number_text
from ..parsers.csv import FEATURE, TEXT
from .cells import FALSE_WORDS, HARD_WORDS, SOFT_WORDS, TRUE_WORDS, Cells, is_word, parse_dates, parse_numbers, years

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .decisions import ColumnDecision

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)


@dataclass
class Indicators:
    """Sparse features: each of `rows` has the feature `texts[codes]` in a namespace, with value 1 or `values`.

    Without texts, the codes are the numbers of the features.
    """

    space: str
    rows: np.ndarray
    codes: np.ndarray
    texts: list[str] | None
    values: np.ndarray | None = None  # other than 1, of a product


@dataclass
class Encoded:
    """The result of encoding the cells of a column.

    Attributes
    ----------
    values : ndarray or None
        The number in each row, NaN if missing; None for a column without numbers.
    missing : ndarray of int
        The rows without a value.
    named : list of Indicators
        Sparse features.
    faults : dict of int to str
        By row: why its cell does not have the type of the column.
    """

    values: np.ndarray | None
    missing: np.ndarray
    named: list[Indicators] = field(default_factory=list)
    faults: dict[int, str] = field(default_factory=dict)


class Encoder:
    """The encoder of a column; `decided` says what it holds."""

    numeric = True  # whether it gives a number
    role = FEATURE  # what the compiled parser of text does with the column
    spaces: tuple[str, ...] = ()

    def __init__(self, decided: ColumnDecision, na: tuple[str, ...] = ()) -> None:
        self.decided = decided
        soft = SOFT_WORDS if decided.soft else ()
        self.na = tuple(dict.fromkeys((*HARD_WORDS, *na, *decided.words, *soft)))

    def encode(self, cells: Cells) -> Encoded:
        """Numbers, names and faults of the cells."""
        raise NotImplementedError

    def _given(self, cells: Cells) -> tuple[np.ndarray, np.ndarray, Any]:
        """The rows with a missing value; the rows with text, and their text."""
        import pyarrow as pa

        gone = is_word(cells.texts, self.na)
        if not gone.any():
            return cells.rows[:0], cells.rows, cells.texts
        return cells.rows[gone], cells.rows[~gone], cells.texts.filter(pa.array(~gone))


class NumericEncoder(Encoder):
    """Plain numbers as they are, and texts that mean a number; a subclass has `parse`."""

    fault = "{!r:.60} is not a number"

    def parse(self, texts: Any) -> np.ndarray:
        """The number of each text; NaN for other texts."""
        raise NotImplementedError

    def encode(self, cells: Cells) -> Encoded:
        if not len(cells.rows):
            return Encoded(cells.numbers, cells.rows)
        missing, rows, texts = self._given(cells)
        cells.numbers[missing] = np.nan
        if not len(rows):
            return Encoded(cells.numbers, missing)
        found = self.parse(texts)
        cells.numbers[rows] = np.where(np.isfinite(found), found, np.nan)
        return Encoded(cells.numbers, missing, [], self._faults(found, rows, texts))

    def _faults(self, found: np.ndarray, rows: np.ndarray, texts: Any) -> dict[int, str]:
        """Why texts are no numbers of this column, by row."""
        bad = np.flatnonzero(~np.isfinite(found))
        if not len(bad):
            return {}
        return dict(zip(rows[bad].tolist(), map(self.reason, texts.take(bad).to_pylist()), strict=True))

    def reason(self, text: str) -> str:
        """Why a text is no number of this column."""
        return f"{text!r:.60} is not finite" if INFINITE.fullmatch(text) else self.fault.format(text)


class NumberEncoder(NumericEncoder):
    """Plain and formatted numbers."""

    def __init__(self, decided: ColumnDecision, na: tuple[str, ...] = ()) -> None:
        super().__init__(decided, na)
        self.role = TEXT if decided.decimal == "," else FEATURE

    def parse(self, texts: Any) -> np.ndarray:
        return parse_numbers(texts, self.decided.decimal)


class BooleanEncoder(NumericEncoder):
    """1 for words that mean true, 0 for those that mean false."""

    fault = "{!r:.60} is neither true nor false"

    def parse(self, texts: Any) -> np.ndarray:
        import pyarrow.compute as pc

        lower = pc.utf8_lower(texts)
        true, false = is_word(lower, TRUE_WORDS), is_word(lower, FALSE_WORDS)
        return np.where(true, 1.0, np.where(false, 0.0, np.nan))


class CategoryEncoder(Encoder):
    """An indicator "column=value" for every value, added when it first appears."""

    numeric, role = False, TEXT

    def __init__(self, decided: ColumnDecision, na: tuple[str, ...] = ()) -> None:
        super().__init__(decided, na)
        self.spaces = (decided.name,)

    def encode(self, cells: Cells) -> Encoded:
        missing, rows, texts = self._given(cells)
        named = []
        if len(rows):
            coded = texts.dictionary_encode()
            named.append(Indicators(self.spaces[0], rows, codes_of(coded), coded.dictionary.to_pylist()))
        plain = np.ones(len(cells.numbers), bool)
        plain[cells.rows] = False
        if plain.any():  # of a table with typed columns
            met, codes = np.unique(cells.numbers[plain], return_inverse=True)
            texts = [number_text(v) for v in met.tolist()]
            named.append(Indicators(self.spaces[0], np.flatnonzero(plain), codes, texts))
        return Encoded(None, missing, named)


class DateEncoder(NumericEncoder):
    """The years since 2000, and indicators for month, weekday and, if there is a time, hour."""

    role = TEXT

    def __init__(self, decided: ColumnDecision, na: tuple[str, ...] = ()) -> None:
        super().__init__(decided, na)
        self.fault = f"{{!r:.60}} is not a date like {decided.form}"
        self.spaces = tuple(f"{decided.name} {part}" for part in ("month", "weekday", "hour"))

    def encode(self, cells: Cells) -> Encoded:
        import pyarrow as pa
        import pyarrow.compute as pc

        missing, rows, texts = self._given(cells)
        values = np.full(len(cells.numbers), np.nan)
        stamps = parse_dates(texts, self.decided.form)
        found = values[rows] = years(stamps)
        out = Encoded(values, missing, [], self._faults(found, rows, texts))
        numbers = np.setdiff1d(np.arange(len(values)), cells.rows)
        out.faults |= dict.fromkeys(numbers.tolist(), f"a number is not a date like {self.decided.form}")
        good = np.isfinite(found)
        if not good.any():
            return out
        rows, stamps = rows[good], stamps.filter(pa.array(good))
        month, day = whole_numbers(pc.month(stamps)), whole_numbers(pc.day_of_week(stamps))
        parts = [(month - 1, list(MONTHS)), (day, list(WEEKDAYS))]
        if any(part in self.decided.form for part in ("%H", "%I", "time")):
            parts.append((whole_numbers(pc.hour(stamps)), [str(h) for h in range(24)]))
        out.named = [Indicators(space, rows, *part) for space, part in zip(self.spaces, parts, strict=False)]
        return out


class TextEncoder(Encoder):
    """An indicator "column=word" for every lower-case word, and for neighbouring words if asked for."""

    numeric, role = False, TEXT

    def __init__(self, decided: ColumnDecision, na: tuple[str, ...] = ()) -> None:
        super().__init__(decided, na)
        self.spaces, self.together = (decided.name,), int(decided.form or 1)

    def encode(self, cells: Cells) -> Encoded:
        import pyarrow as pa
        import pyarrow.compute as pc

        missing, rows, texts = self._given(cells)
        if not len(rows):
            return Encoded(None, missing)
        lists = pc.split_pattern_regex(pc.utf8_lower(texts), r"[^\pL\pN']+")
        words, of = lists.flatten(), whole_numbers(pc.list_parent_indices(lists))
        real = pc.greater(pc.binary_length(words), 0)
        words, of = words.filter(real), of[np.from_dlpack(real.cast(pa.uint8())).astype(bool)]
        named, joined = [], words
        for k in range(self.together):
            if k:
                if len(words) <= k:
                    break
                joined = pc.binary_join_element_wise(joined.slice(0, len(words) - k), words.slice(k), " ")
                same = of[: len(of) - k] == of[k:]
                some, whose = joined.filter(pa.array(same)), of[: len(of) - k][same]
            else:
                some, whose = words, of
            coded = some.dictionary_encode()
            pairs = np.unique(np.column_stack([whose, codes_of(coded)]), axis=0)
            named.append(Indicators(self.spaces[0], rows[pairs[:, 0]], pairs[:, 1], coded.dictionary.to_pylist()))
        return Encoded(None, missing, named)


def codes_of(coded: Any) -> np.ndarray:
    """The codes of a dictionary-encoded array."""
    return whole_numbers(coded.indices)


def whole_numbers(values: Any) -> np.ndarray:
    """An Arrow array of whole numbers, none missing, as int64."""
    import pyarrow as pa

    out: np.ndarray = np.from_dlpack(values.cast(pa.int64()))
    return out


ENCODERS: dict[str, type[Encoder]] = {
    "number": NumberEncoder,
    "boolean": BooleanEncoder,
    "category": CategoryEncoder,
    "date": DateEncoder,
    "text": TextEncoder,
}


# ---------------------------------------------------------------- products of columns

SIGN = " × "


def product_name(pair: Sequence[str]) -> str:
    """The name of the product of two columns."""
    return SIGN.join(pair)


def check_pairs(pairs: Sequence[Sequence[str]], encoders: Mapping[str, Encoder]) -> None:
    """Raise an error for products of columns that are not used, or that hold text or dates."""
    for pair in pairs:
        if len(pair) != 2:
            raise OptionError("cross", f"takes two columns, as a,b; got {','.join(pair)!r}")
        for name in pair:
            if name not in encoders:
                raise OptionError("cross", f"{name!r} is not a column that is learnt from")
            kind = encoders[name].decided.type
            if kind not in ("number", "boolean", "category"):
                raise OptionError("cross", f"takes numbers and categories; {name!r} is a column of type {kind}")


def product_of(pair: Sequence[str], a: Encoded, b: Encoded) -> Encoded:
    """The product of two encoded columns; 0, or no feature, if either value is missing."""
    nothing = np.zeros(0, np.int64)
    if a.values is not None and b.values is not None:
        values = a.values * b.values
        return Encoded(np.where(np.isfinite(values), values, 0.0), nothing)
    name = product_name(pair)
    if a.values is None and b.values is None:
        return Encoded(None, nothing, category_pairs(name, a.named, b.named))
    numbers, named = (a.values, b.named) if b.values is None else (b.values, a.named)
    assert numbers is not None
    numbers = np.where(np.isfinite(numbers), numbers, 0.0)
    return Encoded(None, nothing, [Indicators(name, m.rows, m.codes, m.texts, numbers[m.rows]) for m in named])


def category_pairs(name: str, one: Sequence[Indicators], other: Sequence[Indicators]) -> list[Indicators]:
    """The pairs of categories; each row has at most one of each."""
    out = []
    for a in one:
        for b in other:
            rows, i, j = np.intersect1d(a.rows, b.rows, assume_unique=True, return_indices=True)
            if len(rows):
                met, codes = np.unique(np.column_stack([a.codes[i], b.codes[j]]), axis=0, return_inverse=True)
                assert a.texts is not None
                assert b.texts is not None
                texts = [f"{a.texts[x]}{SIGN}{b.texts[y]}" for x, y in met.tolist()]
                out.append(Indicators(name, rows, codes.ravel(), texts))
    return out
