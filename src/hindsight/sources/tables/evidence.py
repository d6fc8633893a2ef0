"""Statistics of a column in bounded memory, from which its type is inferred and which describe it."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np

from .cells import (
    DATE_FORMATS,
    FALSE_WORDS,
    HARD_WORDS,
    SOFT_WORDS,
    TRUE_WORDS,
    Cells,
    fitting_forms,
    is_word,
    parse_numbers,
)
from .encoders import codes_of

COUNTS = (
    *("rows", "missing", "soft", "plain", "dotted", "commaed", "texts", "strictly_dotted", "strictly_commaed"),
    *("booleans", "spaces", "zeros", "changes"),
)
KEPT = 50_000  # distinct values that are counted; beyond that, "many"


class NumbersSeen:
    """Statistics of the numbers of a column, read with one decimal sign.

    Attributes
    ----------
    different : set of float
        Distinct numbers, up to `KEPT`; beyond that, `many` is set.
    low, high : float
        Their range.
    whole, rising, falling : bool
        Whether all are whole, and whether they are sorted up or down.
    first, last : float
        The first and the last of them.
    """

    def __init__(self) -> None:
        self.different: set[float] = set()
        self.low, self.high, self.whole, self.many = np.inf, -np.inf, True, False
        self.rising = self.falling = True
        self.first = self.last = np.nan

    def add(self, values: np.ndarray) -> None:
        """Count more numbers."""
        if not len(values):
            return
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        self.whole = self.whole and bool((values == np.floor(values)).all())
        if len(self.different) < KEPT:
            self.different.update(np.unique(values).tolist())
        else:
            self.many = True
        self.first = float(values[0]) if np.isnan(self.first) else self.first
        steps = np.diff(values, prepend=values[0] if np.isnan(self.last) else self.last)
        self.rising, self.falling = self.rising and bool((steps >= 0).all()), self.falling and bool((steps <= 0).all())
        self.last = float(values[-1])

    def join(self, after: NumbersSeen) -> None:
        """Merge the statistics of the rows that follow."""
        self.many = self.many or after.many or (len(self.different) >= KEPT and bool(after.different))
        if len(self.different) < KEPT:
            self.different |= after.different
        self.low, self.high = min(self.low, after.low), max(self.high, after.high)
        self.whole = self.whole and after.whole
        self.rising = self.rising and after.rising and not self.last > after.first
        self.falling = self.falling and after.falling and not self.last < after.first
        self.first, self.last = (
            after.first if np.isnan(self.first) else self.first,
            self.last if np.isnan(after.last) else after.last,
        )


class ColumnEvidence:
    """Counts of what the cells of a column could be.

    Attributes
    ----------
    rows, missing, soft : int
        The number of cells, of missing ones, and of those marked by a word that could also be a category.
    plain : int
        Plain numbers.
    dotted, commaed : int
        Texts that are numbers with a decimal point, or with a decimal comma.
    texts : int
        Texts that are not missing.
    words : Counter
        The counts of texts, of up to `KEPT` different ones.
    decimal : {".", ","}
        The decimal sign of the numbers, once it is decided.
    """

    def __init__(self, name: str, na: tuple[str, ...] = (), soft: bool = True) -> None:
        self.name, self.hard = name, (*HARD_WORDS, *na)
        self.soft_words = tuple(word for word in SOFT_WORDS if word not in na) if soft else ()
        self.rows = self.missing = self.soft = self.plain = self.dotted = self.commaed = self.texts = 0
        self.strictly_dotted = self.strictly_commaed = self.booleans = self.spaces = self.zeros = 0
        self.words: Counter[str] = Counter()
        self.soft_counts: Counter[str] = Counter()
        self.odd: Counter[str] = Counter()  # texts that are not numbers
        self.read = dict.fromkeys((".", ","), NumbersSeen())  # by decimal sign: one for both while they are the same
        self.decimal = "."
        self.many_words = False
        self.changes = 0  # from one text to another
        self.first_text: str | None = None
        self.last_text: str | None = None
        self.dates: list[str] | None = None

    def add(self, cells: Cells) -> None:
        """Count the cells of more rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        n = len(cells.numbers)
        self.rows += n
        hard, soft = is_word(cells.texts, self.hard), is_word(cells.texts, self.soft_words)
        self.missing += int(hard.sum() + soft.sum())
        self.soft += int(soft.sum())
        if soft.any():
            self._count(self.soft_counts, cells.texts.filter(pa.array(soft)))
        given = ~(hard | soft)
        texts = cells.texts.filter(pa.array(given)) if not given.all() else cells.texts
        plain = np.ones(n, bool)
        plain[cells.rows] = False
        values = cells.numbers[plain]
        self.plain += len(values)
        if not len(texts):
            self._add_numbers(values, values)
            return
        self._add_texts(texts, pc)
        dotted, commaed = parse_numbers(texts), parse_numbers(texts, ",")
        self.dotted += int(np.isfinite(dotted).sum())
        self.commaed += int(np.isfinite(commaed).sum())
        self.strictly_dotted += int((np.isfinite(dotted) & ~np.isfinite(commaed)).sum())
        self.strictly_commaed += int((np.isfinite(commaed) & ~np.isfinite(dotted)).sum())
        no_number = ~np.isfinite(dotted) & ~np.isfinite(commaed)
        if no_number.any():
            self._count(self.odd, texts.filter(pa.array(no_number)))
        read = []
        for found in (dotted, commaed):
            whole = np.where(plain, cells.numbers, np.nan)
            whole[cells.rows[given]] = found
            read.append(whole[np.isfinite(whole)])
        self._add_numbers(*read)

    def _add_numbers(self, dotted: np.ndarray, commaed: np.ndarray) -> None:
        """Count the numbers as read with a point and with a comma."""
        if dotted is not commaed and not np.array_equal(dotted, commaed):
            self._tell_apart()
        self.read["."].add(dotted)
        if self.read[","] is not self.read["."]:
            self.read[","].add(commaed)

    def _tell_apart(self) -> None:
        """Keep separate statistics for the two decimal signs from now on; they agreed so far."""
        if self.read[","] is self.read["."]:
            self.read[","] = copy.deepcopy(self.read["."])

    def _add_texts(self, texts: Any, pc: Any) -> None:
        self.texts += len(texts)
        lower = pc.utf8_lower(texts)
        self.booleans += int(is_word(lower, (*TRUE_WORDS, *FALSE_WORDS)).sum())
        self.spaces += int(pc.sum(pc.count_substring(texts, " ")).as_py())
        self.zeros += int(pc.sum(pc.match_substring_regex(texts, r"^0\d+$")).as_py())
        self._count(self.words, texts)
        if self.dates is None:
            self.dates = fitting_forms(texts.slice(0, 20), DATE_FORMATS)
        self.dates = fitting_forms(texts, self.dates)
        encoded = codes_of(texts.dictionary_encode())
        self.changes += int((np.diff(encoded) != 0).sum()) + (self.last_text not in (None, texts[0].as_py()))
        self.first_text = texts[0].as_py() if self.first_text is None else self.first_text
        self.last_text = texts[-1].as_py()

    def _count(self, into: Counter[str], texts: Any) -> None:
        import pyarrow.compute as pc

        found = pc.value_counts(texts)
        pairs = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
        if len(into) < KEPT:
            into.update(dict(pairs))
        else:
            self.many_words = True
            into.update({text: count for text, count in pairs if text in into})

    def join(self, after: ColumnEvidence) -> None:
        """Merge the statistics of the same column over the rows that follow."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(after, name))
        for name in ("words", "soft_counts", "odd"):
            into, more = getattr(self, name), getattr(after, name)
            self.many_words = self.many_words or after.many_words or (len(into) >= KEPT and bool(more))
            into.update(more if len(into) < KEPT else {text: n for text, n in more.items() if text in into})
        if after.read[","] is not after.read["."]:
            self._tell_apart()
        self.read["."].join(after.read["."])
        if self.read[","] is not self.read["."]:
            self.read[","].join(after.read[","])
        self.changes += None not in (self.last_text, after.first_text) and self.last_text != after.first_text
        self.first_text, self.last_text = self.first_text or after.first_text, after.last_text or self.last_text
        if after.dates is not None:
            self.dates = after.dates if self.dates is None else [form for form in self.dates if form in after.dates]

    @property
    def numbers(self) -> NumbersSeen:
        """The statistics of the numbers."""
        return self.read[self.decimal]

    @property
    def many(self) -> bool:
        """Whether there are more distinct values than are counted."""
        return self.many_words or self.numbers.many

    @property
    def counts_rows(self) -> bool:
        """Whether its values are 0, 1, 2, ... or 1, 2, 3, ... in the order of the rows."""
        v = self.numbers
        upwards = v.whole and v.rising and v.first in (0.0, 1.0) and v.last - v.first == self.rows - 1
        return upwards and self.missing == 0 and (v.many or len(v.different) == self.rows)

    @property
    def given(self) -> int:
        """Cells that have a value."""
        return self.rows - self.missing

    @property
    def distinct(self) -> int:
        """The number of distinct values, up to the most that are counted."""
        words = len(self.words) if self.odd or not (self.dotted or self.commaed) else 0
        return words + (len(self.numbers.different) if not self.odd or self.plain else 0)
