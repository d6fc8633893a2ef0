"""Data for the command: a CSV file with a header, or real data that scikit-learn ships."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True)
class Table:
    """Rows, raw targets, the names of the features, and where each row stands; `about` says what was done to them."""

    X: np.ndarray
    y: np.ndarray
    names: list[str]
    places: list[str]
    about: str


def columns(source: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Whole columns of a table by name, in the order of the rows: numbers where all values are, else text."""
    from . import ending, files_of

    found: dict[str, list[Any]] = {name: [] for name in names}
    for path in files_of(source, None):
        form = ending(path) or "csv"
        for name, values in (_typed if form in ("parquet", "arrow") else _texts)(path, form, names):
            found[name].append(values)
    whole = {name: np.concatenate(parts) for name, parts in found.items()}
    if any(len(values) == 0 for values in whole.values()):
        raise SourceError(f"{source}: there is a header but no row")
    return {name: _numbers(values) for name, values in whole.items()}


def _numbers(values: np.ndarray) -> np.ndarray:
    """Numbers where all are."""
    if values.dtype.kind == "U":
        try:
            return np.array([float(value) for value in values.tolist()])
        except ValueError:
            return values
    return values.astype(np.float64)


def _typed(path: str, form: str, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Columns of a Parquet or Arrow file."""
    from .base import Options
    from .parquet_arrow import Arrow, Parquet

    file = (Parquet if form == "parquet" else Arrow)([path], Options(), check=False)
    for name in names:
        _place(name, file.schema.names, path)
        file.used = [name]
        values: list[Any] = [v for batch in file._batches(0, 0, 1 << 16) for v in batch.column(0).to_pylist()]
        if None in values:
            raise SourceError(f"{path}, row {values.index(None)}, column {name!r}: the value is missing")
        yield name, np.array(values) if values else np.zeros(0)


def _texts(path: str, form: str, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Columns of a CSV, TSV or JSON lines file."""
    from .streams import Stream

    found: list[list[str]] = [[] for _ in names]
    try:
        with Stream(path) as stream, io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", newline="") as file:
            if form == "jsonl":
                _objects(file, path, names, found)
            else:
                _records(csv.reader(file, delimiter="\t" if form == "tsv" else ","), path, names, found)
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path}: {error}") from None
    except StopIteration:
        raise SourceError(f"{path}: the file is empty") from None
    yield from zip(names, map(np.array, found), strict=True)


def _records(reader: Iterator[list[str]], path: str, names: Sequence[str], found: list[list[str]]) -> None:
    lines = _lines(reader, path)
    _, header = next(lines)
    header = [name.strip() for name in header]
    places = [_place(name, header, path) for name in names]
    for line, record in lines:
        if len(record) != len(header):
            raise SourceError(f"{path}, line {line}: {len(record)} fields, but the header has {len(header)}")
        for column, j in zip(found, places, strict=True):
            column.append(record[j].strip())


def _objects(file: Iterable[str], path: str, names: Sequence[str], found: list[list[str]]) -> None:
    from .json_rows import Faulty, parse

    for line, text in enumerate(file, 1):
        if text.strip():
            try:
                row = parse(text.encode())
            except Faulty as fault:
                raise SourceError(f"{path}, line {line}: {fault.args[1]}") from None
            for column, name in zip(found, names, strict=True):
                if row.get(name) is None:
                    raise SourceError(f"{path}, line {line}: there is no value of {name!r}")
                column.append(str(row[name]))


def _place(name: str, names: list[str], where: str) -> int:
    """Where the column stands in the header; the nearest name where it does not."""
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f" (columns: {', '.join(names)})"
        raise SourceError(f"{where}: there is no column {name!r}{hint}")
    return names.index(name)


def _lines(reader: Iterator[list[str]], where: str) -> Iterator[tuple[int, list[str]]]:
    """Records with the number of the line each ends on; blank lines are passed over."""
    for record in reader:
        if record:
            yield reader.line_num, record  # type: ignore[attr-defined]


CELL = (
    *("radius", "texture", "perimeter", "area", "smoothness"),
    *("compactness", "concavity", "concave-points", "symmetry", "fractal"),
)
SAMPLES = ("diabetes", "breast-cancer", "digits")


def sample(name: str, target: str | None) -> Table:
    """Real data that comes with scikit-learn, read from its files without importing it.

    Features are standardised, then divided by the largest row norm, so that |x|_2 <= 1.
    """
    if name not in SAMPLES:
        raise SourceError(f"there is no sample {name!r}; there are {', '.join('sample:' + s for s in SAMPLES)}")
    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise SourceError("the samples come with scikit-learn, which is not installed")
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / "data"
    if name == "diabetes":
        X = np.loadtxt(_text(folder / "diabetes_data_raw.csv.gz"))
        y = np.array([f"{v:g}" for v in np.loadtxt(_text(folder / "diabetes_target.csv.gz"))])
        names, column = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"], "progression"
    elif name == "breast-cancer":
        data = np.loadtxt(folder / "breast_cancer.csv", delimiter=",", skiprows=1)
        X, y, column = data[:, :-1], np.where(data[:, -1] == 0, "malignant", "benign"), "diagnosis"
        names = [f"{kind}-{part}" for kind in ("mean", "error", "worst") for part in CELL]
    else:
        data = np.loadtxt(_text(folder / "digits.csv.gz"), delimiter=",")
        X, y, column = data[:, :-1], np.array([f"{v:g}" for v in data[:, -1]]), "digit"
        names = [f"pixel-{j // 8}-{j % 8}" for j in range(64)]
    if target not in (None, column):
        raise SourceError(f"sample:{name}: the target is {column!r}, not {target!r}")
    deviation = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    X /= np.sqrt((X * X).sum(axis=1).max())
    about = f"{len(X):,} rows × {X.shape[1]} features, standardised and scaled to |x|₂ ≤ 1; target {column!r}"
    places = [f"sample:{name}, row {t}" for t in range(len(X))]
    return Table(np.ascontiguousarray(X), y, names, places, about)


def _text(path: Path) -> io.StringIO:
    with gzip.open(path, "rt", encoding="ascii") as file:
        return io.StringIO(file.read())
