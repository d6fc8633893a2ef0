"""Dates and times in the forms people write them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

ISO, ISO_TIME = "iso", "iso time"
DAYS = (
    *("%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y"),
    *("%b %d %Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y", "%Y.%m.%d", "%a, %d %b %Y", "%d/%b/%Y"),
)
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMATS = (ISO, ISO_TIME, *(day + time for day in DAYS for time in TIMES))
ISO_DAY = r"\d{4}-\d{1,2}-\d{1,2}"
ISO_FORM = {
    ISO: f"^{ISO_DAY}$",
    ISO_TIME: rf"^{ISO_DAY}([ T]\d{{1,2}}:\d{{2}}(:\d{{2}}([.,]\d+)?)?( ?(Z|UTC|[+-]\d{{2}}:?\d{{2}}))?)?$",
}
YEAR = 365.2425 * 86400.0  # seconds
EPOCH = 30.0  # years from 1970 to 2000


def parse_dates(texts: Any, form: str) -> Any:
    """Texts as Arrow timestamps in seconds, null where one is not of this form; a zone is left out.

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
    """The day of the month as it is written; null where the text is not of the form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pattern = re.escape("%Y-%m-%d" if form in ISO_FORM else form.partition(" %H")[0].partition(" %I")[0])
    for part, digits in (("%Y", r"\d{4}"), ("%y", r"\d{2}"), ("%m", r"\d{1,2}"), ("%d", r"(?P<day>\d{1,2})")):
        pattern = pattern.replace(part, digits)
    pattern = pattern.replace("%b", r"\pL+").replace("%a", r"\pL+").replace(r"\ ", r"\s*")
    found = pc.extract_regex(texts, rf"^\s*{pattern}")
    return pc.struct_field(found, 0).cast(pa.int64())


def fitting_forms(texts: Any, forms: Any) -> list[str]:
    """Those of the forms that all of the texts have."""
    import pyarrow.compute as pc

    if not len(texts) or not pc.all(pc.match_substring_regex(texts, r"\d.*\d")).as_py():
        return []  # every form has digits in two places
    return [form for form in forms if first_fits(texts, form) and parse_dates(texts, form).null_count == 0]


def first_fits(texts: Any, form: str) -> bool:
    """Whether the first text may be of a form: most forms are ruled out by it alone, in a tenth of the time."""
    import pyarrow.compute as pc

    return form in ISO_FORM or pc.strptime(texts[:1], format=form, unit="s", error_is_null=True).null_count == 0


def years(stamps: Any) -> np.ndarray:
    """Years since the beginning of 2000; NaN where there is no time."""
    import pyarrow as pa

    from .cells import as_floats

    return as_floats(stamps.cast(pa.int64()).cast(pa.float64())) / YEAR - EPOCH
