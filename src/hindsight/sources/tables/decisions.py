"""The type of each column of a table, inferred from statistics of its cells and saved with the model."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ...errors import OptionError
from ..arrow_types import PANDAS_INDEX
from ..base import suggestion
from .cells import DATE_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .evidence import ColumnEvidence

TYPES = ("number", "category", "boolean", "date", "text", "identifier", "constant", "ignore")
LEFT_OUT = ("identifier", "constant", "ignore")
BACK = "(--features, or --types NAME:number, brings one back)"
FEW = 20  # fewer rows are no evidence
MANY_NUMBERS = 20  # distinct numbers from which a column with some words counts as numbers
NEARLY = 0.95  # of the cells
ID_NAME = re.compile(
    r"^((?i:id|index|idx|key|uuid|guid|row|row[_ .]?(id|no|num|number|name|names|index)|unnamed:? ?\d*"
    r"|.*[_ .-](id|uuid|guid)"
    r"|(user|customer|client|respondent|participant|person|patient|subject|passenger|member|student|employee|account"
    r"|household|order|invoice|transaction|session|product|item|record|case|sample|object|listing|ticket|loan)id)"
    r"|.*[a-z0-9](ID|Id))$"
)
COUNT_NAME = re.compile(
    r"^(X|V1|1|(?i:n|no|nr|num|number|#|s(r|l)?[. /]*no?\.?|serial|seq|sequence|obs|observation|case|sample|subject"
    r"|record|instance|instant|entry|item|line|rank|count|counter|pos|position))$"
)  # uninformative names of a first column that counts the rows; "1" if there is no header
SPEC = re.compile(r"^([a-z]+)(?:\((.*)\))?$")


@dataclass(frozen=True)
class ColumnDecision:
    """What a column holds.

    Attributes
    ----------
    name : str
        The column.
    type : str
        One of `TYPES`.
    form : str
        The format of a date; for text, the number of neighbouring words that form a feature.
    words : tuple of str
        Words that mean a missing value in this column alone.
    soft : bool
        Whether words such as "Unknown" and "-" mean a missing value, rather than a category.
    indicator : bool
        Whether a missing value was seen.
    why : str
        The reason, in a few words.
    decimal : {".", ","}
        The decimal sign of its numbers.
    """

    name: str
    type: str
    form: str = ""
    words: tuple[str, ...] = ()
    soft: bool = True
    indicator: bool = False
    why: str = ""
    decimal: str = "."

    def plain(self) -> dict[str, Any]:
        """The decision as plain values."""
        return asdict(self) | {"words": list(self.words)}


def parse_types(given: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Parse requested types such as ``{"when": "date(%d/%m/%Y)"}`` into types and forms.

    Examples
    --------
    >>> parse_types({"age": "number", "review": "text(2)"})
    {'age': ('number', ''), 'review': ('text', '2')}
    """
    out = {}
    for name, spec in given.items():
        found = SPEC.match(spec.strip())
        if found is None or found[1] not in TYPES:
            raise OptionError("types", f"of {name!r} must be one of {', '.join(TYPES)}; got {spec!r}")
        if found[1] == "text" and found[2] and found[2] not in ("1", "2", "3"):
            raise OptionError("types", f"of {name!r}: text takes 1, 2 or 3 neighbouring words; got {found[2]!r}")
        out[name] = (found[1], found[2] or "")
    return out


def check_given(given: Mapping[str, str], names: Sequence[str], where: str) -> None:
    """Raise an error for types of columns that do not exist."""
    for name in given:
        if name not in names:
            raise OptionError("types", f"{where}: there is no column {name!r}{suggestion(name, names)}")


def table_decimal(evidence: Sequence[ColumnEvidence]) -> str:
    """The decimal sign of a table: a comma if some column needs it to be numeric and no column needs a point."""
    commas = [e for e in evidence if e.strictly_commaed and e.commaed >= NEARLY * e.texts]
    points = [e for e in evidence if e.strictly_dotted and e.dotted >= NEARLY * e.texts]
    return "," if commas and not points else "."


def column_decimal(e: ColumnEvidence, table: str) -> str:
    """The decimal sign of a column: the one with which more cells are numbers, or that of the table in a tie."""
    if e.commaed != e.dotted:
        return "," if e.commaed > e.dotted else "."
    return table


def identity(e: ColumnEvidence, first: bool, unnamed: bool) -> str:
    """Why a column is an identifier of rows, judged by its name or position; "" if it is a feature.

    Parameters
    ----------
    e : ColumnEvidence
        What was seen of it, its decimal sign decided.
    first : bool
        Whether it is the first of the table.
    unnamed : bool
        Whether the header has no name for it.
    """
    if PANDAS_INDEX.match(e.name):
        return "the index of a data frame"
    if first and COUNT_NAME.match(e.name) and e.counts_rows and e.rows >= FEW:
        return "counts the rows"
    different = e.many or (e.given > 1 and e.distinct >= NEARLY * e.given)
    if not different or e.dates or not (e.odd or e.numbers.whole):
        return ""
    if first and unnamed:
        return "names the rows"
    return "nearly all different" if ID_NAME.match(e.name) and e.given >= FEW else ""


def decide(
    e: ColumnEvidence, given: tuple[str, str] | None, complete: bool, target: bool = False, identity: str = ""
) -> ColumnDecision:
    """What a column holds.

    Parameters
    ----------
    e : ColumnEvidence
        What was seen of it, its decimal sign decided.
    given : tuple of str or None
        The type and form asked for.
    complete : bool
        Whether all rows were seen.
    target : bool, default False
        Whether it is to be predicted: then it is a number or a category.
    identity : str, default ""
        Why the column is an identifier, as `identity` returns it; "" if it is not.

    Returns
    -------
    ColumnDecision
    """
    indicator = e.missing > 0
    if given is not None:
        return _as_asked(e, given, indicator)
    d = ColumnDecision(e.name, "identifier", why=identity) if identity and e.given else _found(e, complete)
    d = replace(d, indicator=indicator or bool(d.words), soft=not target, decimal=e.decimal)
    if target and d.type not in ("number", "category"):
        kind = "number" if not e.texts else "category"
        d = ColumnDecision(e.name, kind, soft=False, why=d.why, decimal=e.decimal)
    few = len(e.words) + len(e.numbers.different) < 2
    if d.type in ("category", "constant", "boolean") and e.soft and (target or few):
        d = ColumnDecision(e.name, "category", soft=False, indicator=e.missing > e.soft, decimal=e.decimal)
    return d


def _as_asked(e: ColumnEvidence, given: tuple[str, str], indicator: bool) -> ColumnDecision:
    kind, form = given
    if kind == "date" and not form:
        forms = e.dates or []
        form = forms[0] if forms else DATE_FORMATS[0]
    many = len(e.numbers.different) > MANY_NUMBERS
    words = tuple(e.odd) if kind == "number" and len(e.odd) <= 3 and many else ()
    return ColumnDecision(e.name, kind, form, words, True, indicator or bool(words), "as asked", e.decimal)


def _found(e: ColumnEvidence, complete: bool) -> ColumnDecision:
    name, given = e.name, e.given
    if given == 0:
        return ColumnDecision(name, "constant", why="no value at all")
    numbers = e.plain + (e.commaed if e.decimal == "," else e.dotted)
    if numbers == given and not _codes(e):
        return _of_numbers(e, complete)
    if e.texts == given and e.booleans == given and len({word.lower() for word in e.words}) <= 2:
        return ColumnDecision(name, "boolean", why="/".join(sorted(e.words)[:4]))
    if e.texts == given and e.dates:
        return _of_dates(e)
    some = sum(e.odd.values())
    if len(e.numbers.different) > MANY_NUMBERS and numbers + some == given and not _codes(e):
        no_digits = not any(c.isdigit() for word in e.odd for c in word)
        if len(e.odd) <= 3 and no_digits and numbers >= (0.5 if len(e.odd) == 1 else 0.8) * given:
            words = tuple(e.odd)
            return ColumnDecision(name, "number", "", words, why="missing: " + ", ".join(map(repr, words)))
        if numbers >= NEARLY * given:
            return ColumnDecision(name, "number", why=f"but {next(iter(e.odd))!r}")
    distinct = len(e.words) + len(e.numbers.different if e.plain else ())
    if distinct == 1 and e.missing == 0 and not (e.many or e.rows < 2):
        return ColumnDecision(name, "constant", why=f"always {next(iter(e.words))!r:.30}")
    if e.texts and e.spaces >= 2.5 * e.texts and distinct > min(FEW, 0.5 * given):
        return ColumnDecision(name, "text", "1", why=f"about {1 + e.spaces // e.texts} words each")
    if given >= FEW and (e.many or distinct > NEARLY * given):
        if e.spaces >= e.texts and not ID_NAME.match(name):
            return ColumnDecision(name, "text", "1", why="nearly all different, of several words")
        return ColumnDecision(name, "identifier", why="nearly all different")
    return ColumnDecision(name, "category", why="")


def _codes(e: ColumnEvidence) -> bool:
    """Whether numbers are codes, because some begin with a zero, as 01234 does."""
    return e.zeros > 0 and e.numbers.whole


def _of_numbers(e: ColumnEvidence, complete: bool) -> ColumnDecision:
    seen = e.numbers
    if len(seen.different) == 1 and e.missing == 0 and complete and e.rows > 1:
        return ColumnDecision(e.name, "constant", why=f"always {seen.low:g}")
    return ColumnDecision(e.name, "number", why=f"{seen.low:g} to {seen.high:g}")


def _of_dates(e: ColumnEvidence) -> ColumnDecision:
    assert e.dates
    other = [form for form in e.dates if sorted(form) == sorted(e.dates[0]) and form != e.dates[0]]
    doubt = f"; or {other[0]}?" if other else ""
    return ColumnDecision(e.name, "date", e.dates[0], why=e.dates[0] + doubt)
