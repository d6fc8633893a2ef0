"""The form of a text file from its first bytes: format, encoding, separator, header."""

from __future__ import annotations

import codecs
import csv
import re
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..labels import reads_as_number
from .cells import HARD_WORDS, SOFT_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

HEAD = 1 << 18  # bytes that are looked at
DIALECT = 1 << 15  # characters that show separator, quote and header
RECORDS = 200  # records that are looked at
WHITE = " "  # stands for any run of blanks
SEPARATORS = ("\t", ";", "|", ",", WHITE)  # in order of preference
SVMLIGHT = re.compile(r"^[+-]?[\w.+-]+(\s+\d+:[+-]?[\d.][\d.eE+-]*)+\s*(#.*)?$")
VOWPAL_WABBIT = re.compile(r"^\s*([+-]?[\d.]+([eE][+-]?\d+)?\s+)*('\S+\s*)?\|\S*(\s+\S+)*\s*$")


@dataclass(frozen=True)
class Dialect:
    """How a text table is written.

    Attributes
    ----------
    encoding : str
        The name of the encoding, as Python knows it.
    separator : str
        The separator of fields; a space means any run of blanks.
    quote : str
        The quote character around fields that contain a separator.
    header : bool
        Whether the first record names the columns.
    comments : bool
        Whether lines that begin with # precede the table.
    """

    encoding: str = "utf-8"
    separator: str = ","
    quote: str = '"'
    header: bool = True
    comments: bool = False


def sniff_format(head: bytes) -> str:
    """The format of a file whose name does not show it.

    Examples
    --------
    >>> sniff_format(b"-1 3:1 11:1\\n"), sniff_format(b'[{"a": 1}]'), sniff_format(b"1 | a:2\\n"), sniff_format(b"a;b")
    ('svmlight', 'jsonl', 'vw', 'csv')
    """
    if head[:4] == b"PAR1":
        return "parquet"
    if head[:6] == b"ARROW1":
        return "arrow"
    if head[:6] == b"\x93NUMPY":
        return "npy"
    if head[:4] == b"PK\x03\x04":
        return "npz"
    text = decoded(head, sniff_encoding(head))
    lines = [line for line in text.splitlines()[:RECORDS] if line.strip()]
    if not lines:
        return "csv"
    if re.match(r"\s*(\[\s*)?\{", text):
        return "jsonl"
    whole = lines[:-1] or lines  # the last may be cut off
    if all(SVMLIGHT.match(line) for line in whole):
        return "svmlight"
    if all("|" in line and VOWPAL_WABBIT.match(line) for line in whole):
        return "vw"
    return "csv"


def sniff_encoding(head: bytes) -> str:
    """The encoding: UTF-8 if valid, UTF-16 if there is a mark or every other byte is zero, else cp1252 or Latin-1.

    Examples
    --------
    >>> sniff_encoding("é".encode()), sniff_encoding("aé".encode("latin-1")), sniff_encoding("é1".encode("utf-16"))
    ('utf-8', 'cp1252', 'utf-16')
    """
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    if head[:3] == codecs.BOM_UTF8:
        return "utf-8"
    some = head[:4096]
    if len(some) >= 4 and some.count(0) > len(some) // 4:
        return "utf-16-le" if some[1::2].count(0) > some[::2].count(0) else "utf-16-be"
    for name in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(name)().decode(head, final=len(head) < HEAD)
        except UnicodeDecodeError:
            continue
        return name
    return "latin-1"


def decoded(head: bytes, encoding: str) -> str:
    """The bytes as text; a last character that is cut off is ignored."""
    return codecs.getincrementaldecoder(encoding)("replace").decode(head).removeprefix("\ufeff")


def sniff_dialect(
    head: bytes,
    named: Collection[str] = (),
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    believed: str = ",",
) -> Dialect:
    """Infer the dialect of a text table; what is given is kept.

    Parameters
    ----------
    head : bytes
        The first bytes of the file.
    named : collection of str, default ()
        Columns that must exist; finding them in the first record shows a header.
    encoding, separator, header : default None
        Values that are known already.
    believed : str, default ","
        The separator implied by the name of the file, used if there is one column.

    Returns
    -------
    Dialect

    Examples
    --------
    >>> sniff_dialect(b"name;size\\nA;1,5\\nB;2,5\\n")
    Dialect(encoding='utf-8', separator=';', quote='"', header=True, comments=False)
    >>> sniff_dialect(b"1,2,3\\n4,5,6\\n").header
    False
    """
    encoding = encoding or sniff_encoding(head)
    text = decoded(head, encoding)
    text = text if "\n" not in text[:DIALECT] else text[:DIALECT]
    table = re.sub(r"\A(?:#[^\r\n]*(?:\r\n|\r|\n))+", "", text)
    if table and table != text:
        separator = separator or sniff_separator(table, believed)
        above, first = text[: len(text) - len(table)].splitlines()[-1], table.splitlines()[0]
        if above.count(separator) == first.count(separator):  # it names the columns
            table = text
    comments = table != text
    text = table
    separator = separator or sniff_separator(text, believed)
    quote = sniff_quote(text, separator)
    if header is None:
        header = sniff_header(first_records(text, separator, quote), named)
    return Dialect(encoding, separator, quote, header, comments)


def sniff_quote(text: str, separator: str) -> str:
    """An apostrophe if fields begin and end with it and none with a double quote; otherwise a double quote."""
    sep = re.escape(separator)
    begin, end = rf"(?:^|{sep})[ ]?", rf"[ ]?(?={sep}|\r|\n|$)"
    if re.search(rf'{begin}"', text[:65536], re.MULTILINE):
        return '"'
    found = re.findall(rf"{begin}'[^'\r\n]*'{end}", text[:65536], re.MULTILINE)
    return "'" if len(found) >= 2 else '"'


def first_records(text: str, separator: str, quote: str = '"') -> list[list[str]]:
    """The first records; the last, which may be cut off, is left out where there are others."""
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    if separator == WHITE:
        lines = [re.sub(r"[ \t]+", " ", line.strip()) for line in lines]
    out: list[list[str]] = []
    try:
        for row in csv.reader(lines, delimiter=separator, quotechar=quote, skipinitialspace=True):
            if row:
                out.append([cell.strip() for cell in row])
            if len(out) > RECORDS:
                break
    except csv.Error:
        pass
    return out[:-1] if len(out) > 2 and text[-1:] not in "\r\n" else out


def sniff_separator(text: str, believed: str) -> str:
    """The separator that gives all records the same number of fields, at least two."""
    best, score = believed, 0.0
    for separator in SEPARATORS:
        rows = first_records(text, separator)
        sizes = [len(row) for row in rows]
        if not sizes or statistics.mode(sizes) < 2:
            continue
        alike = sizes.count(statistics.mode(sizes)) / len(sizes)
        alike *= 1.0 if len(rows[0]) == statistics.mode(sizes) else 0.9
        alike *= 0.9 if separator == WHITE else 1.0
        if alike > score + 0.02:
            best, score = separator, alike
    return WHITE if best == "\t" and _aligned(text) else best


def _aligned(text: str) -> bool:
    """Whether all records are numbers separated by blanks of any kind, with more fields than tabs alone give."""
    rows = first_records(text, WHITE)
    alike = len({len(row) for row in rows}) == 1 and all(reads_as_number(cell) for row in rows for cell in row)
    return alike and len(rows[0]) > len(first_records(text, "\t")[0])


def sniff_header(rows: Sequence[Sequence[str]], named: Collection[str]) -> bool:
    """Whether the first record names the columns: a column asked for is in it, or its cells are unlike those below."""
    if not rows:
        return True
    first, rest = rows[0], rows[1:]
    numbered = bool(named) and all(re.fullmatch(r"[1-9]\d*", name) and int(name) <= len(first) for name in named)
    if not numbered and any(name in first for name in named):
        return True
    votes = 0
    for j, cell in enumerate(first):
        below = [row[j] for row in rest if j < len(row) and row[j] not in HARD_WORDS and row[j] not in SOFT_WORDS]
        if below and sum(map(looks_numeric, below)) > 0.8 * len(below):
            votes += 1 if cell and not looks_numeric(cell) else -1
    if numbered:  # in that case a number in the first row is rarely a name
        counted = any(first == [str(k + start) for k in range(len(first))] for start in (0, 1))
        return (counted or votes > 0) and all(name in first for name in named)
    if votes:
        return votes > 0
    return not any(looks_numeric(cell) for cell in first)


def looks_numeric(text: str) -> bool:
    """Whether a cell could be a number, with a decimal point or comma."""
    return reads_as_number(text.replace(".", "").replace(",", ".").strip("$€£% ")) or reads_as_number(text)
