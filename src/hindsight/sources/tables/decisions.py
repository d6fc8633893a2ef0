"""What each column of a table holds: decided from what was seen of it, said, and kept with the model."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ...errors import OptionError
from ..base import suggestion
from .dates import FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .evidence import ColumnEvidence

TYPES = ("number", "category", "boolean", "date", "text", "identifier", "constant", "ignore")
LEFT_OUT = ("identifier", "constant", "ignore")
FEW = 20  # so many rows say little
MANY_NUMBERS = 20  # different numbers, from which on a column with some words is one of numbers
NEARLY = 0.95  # of the cells
ID_NAME = re.compile(
    r"(?i)^(id|index|idx|row|rowid|row_?(number|no|id|index)|uuid|guid|key|unnamed:? ?\d*|.*[_ .-]id)$"
)
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
        Of a date its form; of text the number of neighbouring words that are taken together.
    words : tuple of str
        Words that mean a missing value in this column alone.
    soft : bool
        Whether words such as "Unknown" and "-" mean a missing value, rather than a category.
    indicator : bool
        Whether a missing value was met.
    why : str
        The reason, in a few words.
    """

    name: str
    type: str
    form: str = ""
    words: tuple[str, ...] = ()
    soft: bool = True
    indicator: bool = False
    why: str = ""

    def plain(self) -> dict[str, Any]:
        """The decision as plain values."""
        return asdict(self) | {"words": list(self.words)}


def parse_types(given: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Types as they are asked for, ``{"when": "date(%d/%m/%Y)"}``, as names and forms.

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
    """Refuse types of columns that are not there."""
    for name in given:
        if name not in names:
            raise OptionError("types", f"{where}: there is no column {name!r}{suggestion(name, names)}")


def table_decimal(evidence: Sequence[ColumnEvidence]) -> str:
    """The decimal sign of a table: a comma where a column is of numbers only with it, and none only with a point."""
    commas = [e for e in evidence if e.strictly_commaed and e.commaed >= NEARLY * e.texts]
    points = [e for e in evidence if e.strictly_dotted and e.dotted >= NEARLY * e.texts]
    return "," if commas and not points else "."


def decide(
    e: ColumnEvidence, decimal: str, given: tuple[str, str] | None, complete: bool, target: bool = False
) -> ColumnDecision:
    """What a column holds.

    Parameters
    ----------
    e : ColumnEvidence
        What was seen of it.
    decimal : {".", ","}
        The decimal sign of the table.
    given : tuple of str or None
        The type and form asked for.
    complete : bool
        Whether all rows were seen.
    target : bool, default False
        Whether it is to be predicted: then it is a number or a category.

    Returns
    -------
    ColumnDecision
    """
    indicator = e.missing > 0
    if given is not None:
        return _as_asked(e, decimal, given, indicator)
    d = _found(e, decimal, complete)
    d = replace(d, indicator=indicator or bool(d.words), soft=not target)
    if target and d.type not in ("number", "category"):
        d = ColumnDecision(e.name, "number" if not e.texts else "category", soft=False, why=d.why)
    if d.type in ("category", "constant", "boolean") and e.soft and (target or len(e.words) + len(e.numbers) < 2):
        d = ColumnDecision(e.name, "category", soft=False, indicator=e.missing > e.soft, why="")
    return d


def _as_asked(e: ColumnEvidence, decimal: str, given: tuple[str, str], indicator: bool) -> ColumnDecision:
    kind, form = given
    if kind == "date" and not form:
        forms = e.dates or []
        form = forms[0] if forms else FORMATS[0]
    words = tuple(e.odd) if kind == "number" and len(e.odd) <= 3 and len(e.numbers) > MANY_NUMBERS else ()
    return ColumnDecision(e.name, kind, form, words, True, indicator or bool(words), "as asked")


def _found(e: ColumnEvidence, decimal: str, complete: bool) -> ColumnDecision:
    name, given = e.name, e.given
    if given == 0:
        return ColumnDecision(name, "constant", why="no value at all")
    numbers = e.plain + (e.commaed if decimal == "," else e.dotted)
    if numbers == given and not _codes(e):
        return _of_numbers(e, complete)
    if e.texts == given and e.booleans == given and len({word.lower() for word in e.words}) <= 2:
        return ColumnDecision(name, "boolean", why="/".join(sorted(e.words)[:4]))
    if e.texts == given and e.dates:
        return _of_dates(e)
    some = sum(e.odd.values())
    if len(e.numbers) > MANY_NUMBERS and numbers + some == given and not _codes(e):
        no_digits = not any(c.isdigit() for word in e.odd for c in word)
        if len(e.odd) <= 3 and no_digits and numbers >= (0.5 if len(e.odd) == 1 else 0.8) * given:
            words = tuple(e.odd)
            return ColumnDecision(name, "number", "", words, why="missing: " + ", ".join(map(repr, words)))
        if numbers >= NEARLY * given:
            return ColumnDecision(name, "number", why=f"but {next(iter(e.odd))!r}")
    distinct = len(e.words) + len(e.numbers if e.plain else ())
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
    """Whether numbers are codes: some begin with a zero, as 01234."""
    return e.zeros > 0 and e.whole


def _of_numbers(e: ColumnEvidence, complete: bool) -> ColumnDecision:
    if len(e.numbers) == 1 and e.missing == 0 and complete and e.rows > 1:
        return ColumnDecision(e.name, "constant", why=f"always {e.low:g}")
    if ID_NAME.match(e.name) and e.whole and e.given >= FEW and (e.many or len(e.numbers) == e.given):
        return ColumnDecision(e.name, "identifier", why="all different")
    return ColumnDecision(e.name, "number", why=f"{e.low:g} to {e.high:g}")


def _of_dates(e: ColumnEvidence) -> ColumnDecision:
    assert e.dates
    other = [form for form in e.dates if sorted(form) == sorted(e.dates[0]) and form != e.dates[0]]
    doubt = f"; or {other[0]}?" if other else ""
    return ColumnDecision(e.name, "date", e.dates[0], why=e.dates[0] + doubt)
