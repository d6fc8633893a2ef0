"""The cells of a column, plain numbers as floats and others as text; parsing of formatted numbers and dates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from ...errors import SourceError
from ...rows.labels import MAX_WHOLE
from ..arrow_types import is_number, is_plain_number
from ..base import SHOWN_RAW
from ..parsers.csv import CATEGORY, FEATURE, IGNORE, TARGET, TEXT, WEIGHT
from ..text import text_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..csv import Records

HARD_WORDS = ("", "NA", "N/A", "na", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?")
SOFT_WORDS = (
    *("-", "--", "---", ".", "#N/A", "#N/A N/A", "#NA", "#VALUE!", "#DIV/0!", "#REF!", "#NULL!", "<NA>", "NaT", "nil"),
    *("(null)", "\\N", "none", "NONE", "N.A.", "n.a.", "unknown", "Unknown", "UNKNOWN", "missing", "Missing"),
    *("MISSING", "not available", "Not Available", "Null"),
)  # words that may also be a category
SWAP = str.maketrans("'\"", "\"'")
TRUE_WORDS = ("true", "yes", "y", "t", "on", "wahr", "ja", "vrai", "oui")
FALSE_WORDS = ("false", "no", "n", "f", "off", "falsch", "nein", "faux", "non")
MONEY_AND_PERCENT = "$€£¥%"
_DIGITS = r"(\d{{1,3}}({}\d{{3}})+|\d{{1,3}}([ '\x{{A0}}\x{{202F}}’]\d{{3}})+|\d+)"
NUMBER = {
    point: rf"^[+-]?({_DIGITS.format(thousands)}({re.escape(point)}\d*)?|{re.escape(point)}\d+)([eE][+-]?\d+)?$"
    for point, thousands in ((".", ","), (",", r"\."))
}

ISO, ISO_TIME = "iso", "iso time"
DAY_FORMATS = (
    *("%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y"),
    *("%b %d %Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y", "%Y.%m.%d", "%a, %d %b %Y", "%d/%b/%Y"),
)
TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
DATE_FORMATS = (ISO, ISO_TIME, *(day + time for day in DAY_FORMATS for time in TIME_FORMATS))
ISO_DAY = r"\d{4}-\d{1,2}-\d{1,2}"
ISO_FORM = {
    ISO: f"^{ISO_DAY}$",
    ISO_TIME: rf"^{ISO_DAY}([ T]\d{{1,2}}:\d{{2}}(:\d{{2}}([.,]\d+)?)?( ?(Z|UTC|[+-]\d{{2}}:?\d{{2}}))?)?$",
}
YEAR = 365.2425 * 86400.0  # seconds
EPOCH = 30.0  # years from 1970 to 2000


class Cells(NamedTuple):
    """The cells of a column.

    Attributes
    ----------
    numbers : ndarray of float64
        The value of each row; meaningless in the rows that hold text.
    rows : ndarray of int64
        The indices of the rows that hold text, ascending.
    texts : pyarrow.StringArray
        The text of those rows, stripped of spaces; "" is a missing value. None if the compiled parser left none.
    ids : ndarray of int or None
        The number of the feature that the category of each row is, where the compiled parser numbered them.
    """

    numbers: np.ndarray
    rows: np.ndarray
    texts: Any
    ids: np.ndarray | None = None


def text_cells(
    buf: np.ndarray, found: Records, n: int, names: Sequence[str], roles: np.ndarray, dest: np.ndarray,
    swapped: bool = False, strict: bool = False,
) -> dict[str, Cells]:  # fmt: skip
    """The cells of the columns that have a role, in the first n records; numbers are views of what was found.

    In `swapped` text ' and " are exchanged. With `strict`, bytes that are not UTF-8 become escapes, and columns of
    features that are all plain numbers are left out.
    """
    deferred = found.deferred if n == len(found.rows) else found.deferred[found.deferred[:, 0] < n]
    deferred = deferred[np.argsort(deferred[:, 1], kind="stable")]
    ends = np.searchsorted(deferred[:, 1], np.arange(len(roles) + 1))
    out = {}
    for c, role in enumerate(roles.tolist()):
        if role == IGNORE or (strict and role == FEATURE and ends[c] == ends[c + 1]):
            continue
        mine, texts, ids = deferred[ends[c] : ends[c + 1]], None, None
        if role == FEATURE:
            numbers = found.X[:n, dest[c]]
        elif role in (TARGET, WEIGHT):
            numbers = (found.y if role == TARGET else found.weight)[:n]
        else:
            numbers = np.zeros(n)
        if role == CATEGORY:
            ids = found.ids[:n, dest[c]]
        elif len(mine) or role == TEXT:
            texts = text_array(buf, mine[:, 2], mine[:, 3], strict)
            texts = exchange_quotes(texts) if swapped else texts
        out[names[c]] = Cells(numbers, mine[:, 0], texts, ids)
    return out


def refuse_bytes(buf: np.ndarray, rows: np.ndarray, where: str) -> NoReturn:
    """Raise an error that names the first row that is not UTF-8."""
    for begin, end, line in rows.tolist():
        try:
            buf[begin:end].tobytes().decode("utf-8")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            reason = f"byte 0x{byte:02x} is not UTF-8: say what the file is with --encoding, as cp1252"
            shown = text_at(buf, begin, end)[:SHOWN_RAW]
            raise SourceError(f"{where}, line {line}: {reason} (row: {shown!r})") from None
    raise AssertionError("text that Arrow refuses and Python does not")


def exchange_quotes(texts: Any) -> Any:
    """Texts with ' and " exchanged."""
    import pyarrow.compute as pc

    if not pc.any(pc.match_substring_regex(texts, "['\"]")).as_py():
        return texts
    return type(texts).from_pandas([text.translate(SWAP) for text in texts.to_pylist()])


def typed_cells(
    column: Any, where: str, name: str, strict: bool = False, exact: bool = False, finite: bool = False
) -> Cells:
    """The cells of a typed column: numbers as they are, dates and other values as text.

    With `strict`, booleans are numbers, and decimals text. With `exact`, whole numbers that float64 may not represent
    become text too, and with `finite` infinite ones.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    n, kind = len(column), column.type
    if pa.types.is_dictionary(kind):
        values = column.dictionary if is_number(kind.value_type) else column.dictionary.cast(pa.string())
        column = pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()
        kind = column.type
    if pa.types.is_boolean(kind) and not strict:
        column = pc.if_else(column, "true", "false")
        kind = column.type
    if is_plain_number(kind) if strict else is_number(kind):
        numbers = column if kind == pa.float64() else column.cast(pa.float64(), safe=False)
        values = as_floats(numbers) if column.null_count else np.from_dlpack(numbers)
        large = exact and pa.types.is_integer(kind)
        if not large and np.isfinite(values).all():
            return Cells(values, np.zeros(0, np.int64), pa.array([], pa.string()))
        gone = np.isnan(values)
        apart = gone | np.isinf(values) if finite else gone
        if large:
            apart = apart | (np.abs(values) >= MAX_WHOLE)
        rows = np.flatnonzero(apart)
        texts = pc.fill_null(column.take(rows).cast(pa.string()), "")
        return Cells(np.where(apart, 0.0, values), rows, pc.if_else(pa.array(gone[rows]), "", texts))
    try:
        if pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("s"), safe=False)
        texts = pc.fill_null(column.cast(pa.string()), "")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise SourceError(
            f"{where}: column {name!r} holds {kind}, not numbers, text or dates: --ignore {name}"
        ) from None
    return Cells(np.zeros(n), np.arange(n), pc.utf8_trim_whitespace(texts))


def text_array(buf: np.ndarray, begin: np.ndarray, end: np.ndarray, lenient: bool = False) -> Any:
    """Slices of a buffer as an array of text, doubled quotes undoubled; a ValueError if one is not UTF-8."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = end - begin
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    where = np.repeat(begin - ends[:-1], sizes) + np.arange(ends[-1])
    data = buf[where]
    texts = pa.LargeStringArray.from_buffers(len(sizes), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(data)))
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        if not lenient:
            raise
        slices = zip(begin.tolist(), end.tolist(), strict=True)
        texts = pa.array([text_at(buf, a, b) for a, b in slices], pa.large_string())
    if (data == 34).any():  # a quote
        quoted = pa.array(buf[np.maximum(begin - 1, 0)] == 34)
        texts = pc.if_else(quoted, pc.replace_substring(texts, '""', '"'), texts)
    return pc.utf8_trim_whitespace(texts.cast(pa.string()))


def is_word(texts: Any, words: Any) -> np.ndarray:
    """A mask of the texts that are one of the words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return as_mask(pc.is_in(texts, pa.array(list(words), pa.string())))


def parse_numbers(texts: Any, decimal: str = ".") -> np.ndarray:
    """Parse formatted numbers (with a currency sign, thousands separators, or (1) for -1); NaN for other text.

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
    bare = pc.replace_substring_regex(bare, rf"^([+-]?)\s*[{MONEY_AND_PERCENT}]\s*", r"\1")
    bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(bare, rf"\s*[{MONEY_AND_PERCENT}]$", ""))
    fits = pc.match_substring_regex(bare, NUMBER[decimal])
    bare = pc.replace_substring_regex(bare, "[ '\\x{A0}\\x{202F}’" + ("." if decimal == "," else ",") + "]", "")
    if decimal == ",":
        bare = pc.replace_substring(bare, ",", ".")
    values = pc.if_else(fits, bare, pa.scalar(None, pa.string())).cast(pa.float64())
    return as_floats(values)


def as_floats(values: Any) -> np.ndarray:
    """An Arrow array of float64 as numpy, with NaN for null."""
    import pyarrow.compute as pc

    out: np.ndarray = np.from_dlpack(pc.fill_null(values, float("nan")))
    return out


def as_mask(values: Any) -> np.ndarray:
    """An Arrow array of booleans as numpy, with False for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.from_dlpack(pc.fill_null(values, False).cast(pa.uint8())).astype(bool)


def parse_dates(texts: Any, form: str) -> Any:
    """Parse texts as Arrow timestamps in seconds, null if one does not have this form; time zones are ignored.

    Examples
    --------
    >>> import pyarrow as pa
    >>> parse_dates(pa.array(["2024-01-31T13:45:00Z", "2024-01-31", "31.1.2024"]), "iso time").to_pylist()
    [datetime.datetime(2024, 1, 31, 13, 45), datetime.datetime(2024, 1, 31, 0, 0), None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if form in ISO_FORM:
        texts = pc.if_else(pc.match_substring_regex(texts, ISO_FORM[form]), texts, pa.scalar(None, pa.string()))
        texts = pc.replace_substring_regex(texts, r"[ T](\d{1,2}:\d{2})", r" \1")
        texts = pc.replace_substring_regex(texts, r"([.,]\d+)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?$", "")
        texts = pc.replace_substring_regex(texts, r"^(\d+-\d+-\d+)$", r"\1 00:00:00")
        texts = pc.replace_substring_regex(texts, r" (\d+:\d+)$", r" \1:00")
        found = pc.strptime(texts, format="%Y-%m-%d %H:%M:%S", unit="s", error_is_null=True)
    else:
        found = pc.strptime(texts, format=form, unit="s", error_is_null=True)
    year, day = pc.year(found), written_day(texts, form)
    sane = pc.and_(pc.greater_equal(year, 1000), pc.less(year, 3000))
    sane = pc.and_(sane, pc.equal(pc.day(found), day))  # 31 February is no day of March
    return pc.if_else(sane, found, pa.scalar(None, found.type))


def written_day(texts: Any, form: str) -> Any:
    """The day of the month as written; null if the text does not have this form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pattern = re.escape("%Y-%m-%d" if form in ISO_FORM else form.partition(" %H")[0].partition(" %I")[0])
    for part, digits in (("%Y", r"\d{4}"), ("%y", r"\d{2}"), ("%m", r"\d{1,2}"), ("%d", r"(?P<day>\d{1,2})")):
        pattern = pattern.replace(part, digits)
    pattern = pattern.replace("%b", r"\pL+").replace("%a", r"\pL+").replace(r"\ ", r"\s*")
    found = pc.extract_regex(texts, rf"^\s*{pattern}")
    return pc.struct_field(found, 0).cast(pa.int64())


def fitting_forms(texts: Any, forms: Any) -> list[str]:
    """The forms that fit all of the texts."""
    import pyarrow.compute as pc

    if not len(texts) or not pc.all(pc.match_substring_regex(texts, r"\d.*\d")).as_py():
        return []  # every form has digits in two places
    return [form for form in forms if first_fits(texts, form) and parse_dates(texts, form).null_count == 0]


def first_fits(texts: Any, form: str) -> bool:
    """Whether a form could fit the first text; this rules out most forms in a tenth of the time."""
    import pyarrow.compute as pc

    return form in ISO_FORM or pc.strptime(texts[:1], format=form, unit="s", error_is_null=True).null_count == 0


def years(stamps: Any) -> np.ndarray:
    """Years since the beginning of 2000; NaN for null."""
    import pyarrow as pa

    return as_floats(stamps.cast(pa.int64()).cast(pa.float64())) / YEAR - EPOCH
