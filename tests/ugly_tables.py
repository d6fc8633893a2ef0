"""Forty small tables as they are found in the wild: the name of each says what is ugly about it."""

from __future__ import annotations

import gzip
import json
import math
import random
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
    """A table: the name of its file, its target, how its bytes are made, and whether it can be learnt from."""

    file: str
    target: str | None
    make: Callable[[random.Random], bytes]
    learns: bool = True
    says: str = ""  # part of the one line, where it cannot


TABLES: list[UglyTable] = []


def ugly(file: str, target: str | None = "y", learns: bool = True, says: str = ""):
    """Add the table that a function makes."""

    def add(make):
        TABLES.append(UglyTable(file, target, make, learns, says))
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


def write_all(folder: Path) -> list[UglyTable]:
    """Write all tables into a folder; each depends on its own seed alone."""
    for k, table in enumerate(TABLES):
        (folder / table.file).write_bytes(table.make(random.Random(k)))
    return TABLES
