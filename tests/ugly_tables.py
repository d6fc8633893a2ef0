"""Small tables as they are found in the wild: the name of each says what is ugly about it."""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import zipfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 120
CITIES = ("Zürich", "Genève", "Bern", "Köln")


@dataclass(frozen=True)
class UglyTable:
    """A table: the name of its file, its target, how its bytes are made, and whether it can be learnt from.

    `columns` are those that are learnt from, where the table is about them.
    """

    file: str
    target: str | None
    make: Callable[[random.Random], bytes]
    learns: bool = True
    says: str = ""  # part of the one line, where it cannot
    columns: str | None = None


TABLES: list[UglyTable] = []


def ugly(file: str, target: str | None = "y", learns: bool = True, says: str = "", columns: str | None = None):
    """Add the table that a function makes."""

    def add(make):
        TABLES.append(UglyTable(file, target, make, learns, says, columns))
        return make

    return add


def numbers(rng: random.Random, n: int = ROWS) -> list[tuple[float, float, float]]:
    """Rows of two numbers and a target that is linear in them."""
    out = []
    for _ in range(n):
        a, b = rng.uniform(-2, 2), rng.uniform(0, 10)
        out.append((a, b, 3 * a - b + rng.gauss(0, 0.1)))
    return out


def csv(header, rows, sep=",", end="\n") -> str:
    return end.join(sep.join(map(str, row)) for row in ([header] if header else []) + list(rows)) + end


def pretty(value: float, decimal: str = ",", places: int = 3) -> str:
    return f"{value:.{places}f}".replace(".", decimal)


@ugly("plain.csv")
def _(rng):
    return csv("aby", numbers(rng)).encode()


@ugly("semicolon.csv")
def _(rng):
    return csv("aby", numbers(rng), ";").encode()


@ugly("decimal_comma.csv")
def _(rng):
    return csv("aby", [map(pretty, row) for row in numbers(rng)], ";").encode()


@ugly("decimal_comma_thousands.csv")
def _(rng):
    rows = [
        (f"{rng.randint(1, 9)}.{rng.randint(100, 999)},{rng.randint(10, 99)}", pretty(a), pretty(y))
        for a, _, y in numbers(rng)
    ]
    return csv("aby", rows, ";").encode()


@ugly("latin1.csv", "größe")
def _(rng):
    return csv(
        ["stadt", "alter", "größe"], [(rng.choice(CITIES), pretty(a, "."), y) for a, _, y in numbers(rng)]
    ).encode("latin-1")


@ugly("cp1252.csv")
def _(rng):
    return csv("aby", [(a, rng.choice(("€5", "“quoted”", "naïve")), y) for a, _, y in numbers(rng)]).encode("cp1252")


@ugly("bom.csv")
def _(rng):
    return csv("yab", [(y, a, b) for a, b, y in numbers(rng)]).encode("utf-8-sig")


@ugly("crlf.csv")
def _(rng):
    return csv("aby", numbers(rng), end="\r\n").encode()


@ugly("cr.csv")
def _(rng):
    return csv("aby", [(a, rng.choice("uvw"), y) for a, _, y in numbers(rng)], end="\r").encode()


@ugly("utf16.csv")
def _(rng):
    return csv("aby", [(a, rng.choice(CITIES), y) for a, _, y in numbers(rng)], "\t").encode("utf-16")


@ugly("blank_headers.csv")
def _(rng):
    return csv(["", "a", "", "y"], [(k, a, b, y) for k, (a, b, y) in enumerate(numbers(rng))]).encode()


@ugly("duplicate_headers.csv")
def _(rng):
    return csv("aay", numbers(rng)).encode()


@ugly("quoted_newlines.csv")
def _(rng):
    rows = [(a, f'"first line\nsecond ""{rng.choice("pq")}"", and more"', y) for a, _, y in numbers(rng)]
    return csv(["a", "note", "y"], rows).encode()


@ugly("unknown.csv")
def _(rng):
    words = ("Unknown", "NA", "?", "-", "")
    rows = [
        (a if rng.random() < 0.8 else rng.choice(words), b if rng.random() < 0.8 else "N/A", y)
        for a, b, y in numbers(rng)
    ]
    return csv("aby", rows).encode()


@ugly("own_word_for_missing.csv")
def _(rng):
    return csv("aby", [(a if rng.random() < 0.8 else "not measured", b, y) for a, b, y in numbers(rng)]).encode()


@ugly("currency.csv", "price")
def _(rng):
    rows = [(a, b, f'"${84835 + 1000 * y:,.2f} "') for a, b, y in numbers(rng)]
    return csv(["a", "b", "price"], rows).encode()


@ugly("percent_and_brackets.csv")
def _(rng):
    return csv("aby", [(f"({-a:.2f})" if a < 0 else f"{a:.2f}", f"{b:.1f}%", y) for a, b, y in numbers(rng)]).encode()


def dated(form: str, sep: str = ","):
    def make(rng):
        start = datetime(2011, 1, 1)
        rows = []
        for k in range(ROWS):
            when = start + timedelta(hours=37 * k)
            text = when.isoformat() if form == "iso" else when.strftime(form)
            rows.append(
                (
                    f'"{text}"' if "," in text else text,
                    k % 7,
                    when.month + 3 * math.sin(when.weekday()) + rng.gauss(0, 0.1),
                )
            )
        return csv(["when", "k", "y"], rows, sep).encode()

    return make


for _name, _form in (("iso", "iso"), ("german", "%d.%m.%Y"), ("american", "%m/%d/%Y %H:%M"), ("words", "%b %d, %Y"),
                     ("british", "%d %B %Y")):  # fmt: skip
    ugly(f"date_{_name}.csv")(dated(_form))


@ugly("booleans.csv")
def _(rng):
    return csv(
        "abcy", [(rng.choice(("yes", "no")), rng.choice(("TRUE", "FALSE")), a, y) for a, _, y in numbers(rng)]
    ).encode()


@ugly("ids_and_constants.csv")
def _(rng):
    rows = [(f"{rng.getrandbits(64):016x}", "EUR", 7, "", a, y) for a, _, y in numbers(rng)]
    return csv(["uuid", "currency", "version", "empty", "a", "y"], rows).encode()


@ugly("late_category.csv")
def _(rng):
    return csv("aby", [(a, "old" if k < 100 else "new", y) for k, (a, _, y) in enumerate(numbers(rng))]).encode()


@ugly("late_text.csv")
def _(rng):
    rows = [(a, k % 50 if k < 11_000 else f"code {k % 9}", y) for k, (a, _, y) in enumerate(numbers(rng, 12_500))]
    return csv("aby", rows).encode()


@ugly("late_missing.csv")
def _(rng):
    return csv("aby", [(a, b if k < 11_000 else "", y) for k, (a, b, y) in enumerate(numbers(rng, 12_000))]).encode()


@ugly("scales.csv")
def _(rng):
    return csv("aby", [(1e6 * a, 1e-6 * b, y) for a, b, y in numbers(rng)]).encode()


@ugly("sorted_target.csv")
def _(rng):
    return csv("aby", sorted(numbers(rng), key=lambda row: row[2])).encode()


@ugly("string_labels.csv", "kind")
def _(rng):
    return csv(["a", "b", "kind"], [(a, b, "high" if y > -5 else "low") for a, b, y in numbers(rng)]).encode()


@ugly("plus_minus.data", "3")
def _(rng):
    return csv(
        None, [(pretty(a, "."), rng.choice("?uvw"), "+" if y > -5 else "-") for a, _, y in numbers(rng)]
    ).encode()


@ugly("twelve_classes.csv", "month")
def _(rng):
    names = [datetime(2000, m, 1).strftime("%B") for m in range(1, 13)]
    return csv(["a", "month"], [(k % 12 + rng.gauss(0, 0.1), names[k % 12]) for k in range(ROWS)]).encode()


@ugly("missing_targets.csv")
def _(rng):
    return csv("aby", [(a, b, y if rng.random() < 0.9 else "NA") for a, b, y in numbers(rng)]).encode()


@ugly("reviews.csv", "stars")
def _(rng):
    good, bad, rest = (
        ("great", "lovely", "fine"),
        ("awful", "poor", "broken"),
        ("the", "room", "was", "and", "very", "food"),
    )
    rows = []
    for _ in range(ROWS):
        liked = rng.random() < 0.5
        words = [*rng.choices(rest, k=5), rng.choice(good if liked else bad), *rng.choices(rest, k=3)]
        rows.append((" ".join(words).capitalize() + ".", 5 if liked else 1))
    return csv(["review", "stars"], rows).encode()


@ugly("spaces.data", "3")
def _(rng):
    return "\n".join(f"  {a:8.3f}   {b:8.3f}\t{y:9.3f}" for a, b, y in numbers(rng)).encode()


@ugly("a9a", None)
def _(rng):
    return "".join(f"{'+1' if y > -5 else '-1'} 1:{a:.4f} 2:{b:.4f}\n" for a, b, y in numbers(rng)).encode()


@ugly("tabs.txt.gz")
def _(rng):
    return gzip.compress(csv("aby", [(a, rng.choice(("1st", "2nd")), y) for a, _, y in numbers(rng)], "\t").encode())


@ugly("rows.jsonl")
def _(rng):
    rows = [
        {"a": a, "b": None if rng.random() < 0.1 else b, "c": rng.choice("uvw"), "y": y} for a, b, y in numbers(rng)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@ugly("one_value.csv", learns=False, says="the target has one value only")
def _(rng):
    return csv("aby", [(a, b, "same") for a, b, _ in numbers(rng)]).encode()


@ugly("ragged.csv", learns=False, says="line 50")
def _(rng):
    rows = [row if k != 48 else (*row, 1, 2) for k, row in enumerate(numbers(rng))]
    return csv("aby", rows).encode()


# ---------------------------------------------------------------- codes that are no numbers


def coded(codes, sep=","):
    return lambda rng: csv(
        ["a", "code", "y"], [(f"{a:.3f}", rng.choice(codes), f"{y:.3f}") for a, _, y in numbers(rng)], sep
    ).encode()


ugly("cabins.csv", columns="a code")(coded(("E17", "E85", "C22", "B5", "")))
ugly("airports.tsv", columns="a code")(coded(("E-6", "E04", "O28"), "\t"))
ugly("aircraft.csv", columns="a code")(coded(("e5", "E+7", "E.2"), ";"))


@ugly("cabins.parquet", columns="a code")
def _(rng):
    rows = numbers(rng)
    return parquet({"a": [a for a, _, _ in rows], "code": [rng.choice(("E17", "E85")) for _ in rows], "y": ys(rows)})


# ---------------------------------------------------------------- no header


@ugly("whole_numbers.data", "4", columns="1 2 3")  # cells of the first row are names of columns too
def _(rng):
    return csv(None, [(4, 1, 3, 2), *((k % 5, k % 4, rng.randint(0, 9), k % 3) for k in range(ROWS))]).encode()


@ugly("credit.data", "4", columns="1 2 3")
def _(rng):
    return "".join(f"A1{k % 4 + 1} {rng.randint(4, 72)} A3{k % 5} {1 + k % 2}\n" for k in range(ROWS)).encode()


@ugly("headerless.tsv", "3", columns="1 2")
def _(rng):
    return csv(None, [(f"{a:.2f}", rng.choice("uvw"), f"{y:.2f}") for a, _, y in numbers(rng)], "\t").encode()


@ugly("headerless_index.data", "4", columns="2 3")
def _(rng):
    return csv(None, [(k + 1, a, b, y) for k, (a, b, y) in enumerate(numbers(rng))]).encode()


@ugly("headerless_comma.csv", "3", columns="1 2")
def _(rng):
    return csv(None, [map(pretty, row) for row in numbers(rng)], ";").encode()


@ugly("numbered_header.csv", "2", columns="0 1")  # as pandas writes columns without names
def _(rng):
    return csv([0, 1, 2], numbers(rng)).encode()


# ---------------------------------------------------------------- indices and identifiers


def identified(header, value):
    """A table whose first column is of one value of each row."""
    rest = ["a", "b", "y"]

    def make(rng):
        order = rng.sample(range(ROWS), ROWS)
        return csv([header, *rest], [(value(k, order[k]), *row) for k, row in enumerate(numbers(rng))]).encode()

    return make


for _name, _header, _value in (
    ("to_csv.csv", "", lambda k, other: k),
    ("to_csv_after_a_split.csv", "", lambda k, other: other),
    ("unnamed.csv", "Unnamed: 0", lambda k, other: other),
    ("rdatasets.csv", "rownames", lambda k, other: k + 1),
    ("row_names.csv", "", lambda k, other: f'"Mazda RX{k}, {other}"'),
    ("customers.csv", "CustomerID", lambda k, other: 10_000 + 7 * other),
    ("survey.csv", "RespondentID", lambda k, other: 3_000_000_000 + other),
    ("passengers.csv", "passengerid", lambda k, other: other),
    ("orders.csv", "order_id", lambda k, other: f"CA-2016-{152156 + other}"),
    ("r_index.csv", "X", lambda k, other: k + 1),
    ("counted.csv", "No", lambda k, other: k + 1),
):
    ugly(_name, columns="a b")(identified(_header, _value))
ugly("years.csv", columns="year a b")(identified("year", lambda k, other: 1900 + k))
ugly("hours.csv", columns="hour a b")(identified("hour", lambda k, other: k))
ugly("stores.csv", columns="store_id a b")(identified("store_id", lambda k, other: other % 9))
ugly("prepaid.csv", columns="paid a b")(identified("paid", lambda k, other: 5 * other))


@ugly("index_level.parquet", columns="a b")
def _(rng):
    rows = numbers(rng)
    a, b, y = zip(*rows, strict=True)
    return parquet({"a": a, "b": b, "y": y, "__index_level_0__": rng.sample(range(ROWS), ROWS)})


def parquet(columns) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), sink)
    return sink.getvalue()


def ys(rows):
    return [y for _, _, y in rows]


# ---------------------------------------------------------------- decimal signs of columns


@ugly("superstore.tsv", "profit", columns="quantity discount sales")
def _(rng):
    rows = [
        (k % 9 + 1, f"0.{k % 8}", pretty(100 * b, places=2), pretty(y, places=2))
        for k, (_, b, y) in enumerate(numbers(rng))
    ]
    return csv(["quantity", "discount", "sales", "profit"], rows, "\t").encode()


@ugly("two_signs.csv", columns="a b")
def _(rng):
    return csv("aby", [(f"{a:.4f}", pretty(b), pretty(y, ".")) for a, b, y in numbers(rng)], ";").encode()


@ugly("comma_target.csv", columns="a b")
def _(rng):
    return csv("aby", [(f"{a:.4f}", f"$ {b:.2f}", f"{pretty(y)} €") for a, b, y in numbers(rng)], ";").encode()


# ---------------------------------------------------------------- other wrappings


@ugly("write_table.txt", columns="a b")
def _(rng):
    rows = [f'"row {k}" {a:.3f} {b:.3f} {y:.3f}' for k, (a, b, y) in enumerate(numbers(rng))]
    return "\n".join(['"a" "b" "y"', *rows, ""]).encode()


@ugly("write_table.csv", columns="a b")
def _(rng):
    return csv("aby", [(k + 1, *row) for k, row in enumerate(numbers(rng))]).encode()


@ugly("trailing_commas.csv", columns="a b")
def _(rng):
    return csv("aby", [(*row, "") for row in numbers(rng)]).encode()


def zipped(**members) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return sink.getvalue()


@ugly("table.zip", columns="a b")
def _(rng):
    return zipped(**{"folder/table.csv": csv("aby", numbers(rng)), "__MACOSX/folder/._table.csv": "x"})


@ugly("table.tsv.zip", columns="a b")
def _(rng):
    return zipped(**{"table.tsv": csv("aby", numbers(rng), "\t")})


@ugly("array.json")
def _(rng):
    return json.dumps([{"a": a, "c": rng.choice("uv"), "y": y} for a, _, y in numbers(rng)]).encode()


@ugly("pretty_array.json")
def _(rng):
    return json.dumps([{"a": a, "b": b, "y": y} for a, b, y in numbers(rng)], indent=4).encode()


@ugly("book.xlsx", learns=False, says="a workbook of Excel (.xlsx): save its sheet as CSV")
def _(rng):
    return zipped(**{"[Content_Types].xml": "<x/>", "xl/workbook.xml": "<x/>"})


@ugly("book.xls", learns=False, says="a workbook of Excel (.xls): save its sheet as CSV")
def _(rng):
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)


@ugly("several.zip", learns=False, says="a zip file of 2 files (a.csv, b.csv): unpack it")
def _(rng):
    return zipped(**{"a.csv": csv("aby", numbers(rng)), "b.csv": "x"})


def write_all(folder: Path) -> list[UglyTable]:
    """Write all tables into a folder; each depends on its own seed alone."""
    for k, table in enumerate(TABLES):
        (folder / table.file).write_bytes(table.make(random.Random(k)))
    return TABLES
