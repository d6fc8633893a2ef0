"""The cells of one column: numbers where they are plain numbers, text elsewhere; and what text can be read as."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

HARD_WORDS = ("", "NA", "N/A", "na", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?")
SOFT_WORDS = (
    *("-", "--", "---", ".", "#N/A", "#N/A N/A", "#NA", "#VALUE!", "#DIV/0!", "#REF!", "#NULL!", "<NA>", "NaT", "nil"),
    *("(null)", "\\N", "none", "NONE", "N.A.", "n.a.", "unknown", "Unknown", "UNKNOWN", "missing", "Missing"),
    *("MISSING", "not available", "Not Available", "Null"),
)  # words that may also be a category
TRUE_WORDS = ("true", "yes", "y", "t", "on", "wahr", "ja", "vrai", "oui")
FALSE_WORDS = ("false", "no", "n", "f", "off", "falsch", "nein", "faux", "non")
SIGNS = "$€£¥%"
_DIGITS = r"(\d{{1,3}}({}\d{{3}})+|\d{{1,3}}([ '\x{{A0}}\x{{202F}}’]\d{{3}})+|\d+)"
NUMBER = {
    point: rf"^[+-]?({_DIGITS.format(thousands)}({re.escape(point)}\d*)?|{re.escape(point)}\d+)([eE][+-]?\d+)?$"
    for point, thousands in ((".", ","), (",", r"\."))
}


class Cells(NamedTuple):
    """The cells of a column.

    Attributes
    ----------
    numbers : ndarray of float64
        The value of each row; of no meaning in the rows that hold text.
    rows : ndarray of int64
        The rows that hold text, ascending; "" is a cell without a value.
    texts : pyarrow.StringArray
        The text of those rows, without spaces around it.
    """

    numbers: np.ndarray
    rows: np.ndarray
    texts: Any


def text_array(buf: np.ndarray, begin: np.ndarray, end: np.ndarray) -> Any:
    """Parts of a buffer as an array of text; a ValueError where one is not UTF-8. Doubled quotes become one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = end - begin
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    where = np.repeat(begin - ends[:-1], sizes) + np.arange(ends[-1])
    data = buf[where]
    texts = pa.LargeStringArray.from_buffers(len(sizes), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(data)))
    texts.validate(full=True)
    if (data == 34).any():  # a quote
        quoted = pa.array(buf[np.maximum(begin - 1, 0)] == 34)
        texts = pc.if_else(quoted, pc.replace_substring(texts, '""', '"'), texts)
    return pc.utf8_trim_whitespace(texts.cast(pa.string()))


def is_word(texts: Any, words: Any) -> np.ndarray:
    """Which of the texts are one of the words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return as_mask(pc.is_in(texts, pa.array(list(words), pa.string())))


def parse_numbers(texts: Any, decimal: str = ".") -> np.ndarray:
    """Numbers as people write them (signs of currencies, thousands separated, -1 as (1)); NaN for other text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> parse_numbers(pa.array(["$84,835.00", "(12)", "5 %", "1 000", "1,5", "abc", "E17", ""])).tolist()
    [84835.0, -12.0, 5.0, 1000.0, nan, nan, nan, nan]
    >>> parse_numbers(pa.array(["1.234,5", "€ 7"]), ",").tolist()
    [1234.5, 7.0]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    bare = pc.replace_substring_regex(texts, r"^\((.*)\)$", r"-\1")
    bare = pc.replace_substring_regex(bare, rf"^([+-]?)\s*[{SIGNS}]\s*", r"\1")
    bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(bare, rf"\s*[{SIGNS}]$", ""))
    fits = pc.match_substring_regex(bare, NUMBER[decimal])
    bare = pc.replace_substring_regex(bare, "[ '\\x{A0}\\x{202F}’" + ("." if decimal == "," else ",") + "]", "")
    if decimal == ",":
        bare = pc.replace_substring(bare, ",", ".")
    values = pc.if_else(fits, bare, pa.scalar(None, pa.string())).cast(pa.float64())
    return as_floats(values)


def as_floats(values: Any) -> np.ndarray:
    """An Arrow array of float64 as numpy, NaN where it has no value."""
    import pyarrow.compute as pc

    out: np.ndarray = np.from_dlpack(pc.fill_null(values, float("nan")))
    return out


def as_mask(values: Any) -> np.ndarray:
    """An Arrow array of booleans as numpy, False where it has no value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.from_dlpack(pc.fill_null(values, False).cast(pa.uint8())).astype(bool)
