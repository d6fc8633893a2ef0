"""Whole columns of a table, by name."""

from __future__ import annotations

import csv
import io
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from ..rows.labels import MAX_WHOLE, label_number, number_text, parse_float
from .base import ReadOptions, suggestion
from .labels import label_text
from .opening import file_format, list_files
from .streams import ByteStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def read_columns(source: str, names: Sequence[str], missing: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Whole columns of a table, in the order of the rows.

    Parameters
    ----------
    source : str
        A file or a folder: Parquet, Arrow, JSON lines, TSV, or CSV.
    names : sequence of str
        The columns to read.
    missing : sequence of str, default ()
        The columns that may have missing values, which become "" in text and NaN in numbers.

    Returns
    -------
    dict of str to ndarray
        The columns by name: float64 if all values are numbers, otherwise text.

    Raises
    ------
    SourceError
        If a file cannot be read, lacks a column, or has no value in a row.
    """
    names = list(dict.fromkeys(names))
    found: dict[str, list[Any]] = {name: [] for name in names}
    for path in list_files(source, None):
        form = file_format(path) or "csv"
        read = _typed_columns if form in ("parquet", "arrow") else _text_columns
        for name, values in read(path, form, names, missing):
            found[name].append(values)
    whole = {name: _joined(parts) for name, parts in found.items()}
    if any(len(values) == 0 for values in whole.values()):
        raise SourceError(f"{source}: there is a header but no row")
    return {name: _numbers_if_all(values) for name, values in whole.items()}


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Join the values of all files; if some are text, numbers become text too, written alike for every type."""
    if any(part.dtype.kind == "U" for part in parts):
        parts = [label_text(part) for part in parts]
    return np.concatenate(parts)


def _numbers_if_all(values: np.ndarray) -> np.ndarray:
    """The values as float64 if all are numbers and no two different ones become equal."""
    if values.dtype.kind == "U":
        try:
            numbers = np.array([parse_float(value) for value in values.tolist()])
        except ValueError:
            return values
        large = values[np.isfinite(numbers) & (np.abs(numbers) >= MAX_WHOLE)].tolist()
        return values if any(map(math.isnan, map(label_number, large))) else numbers
    numbers = values.astype(np.float64)
    if values.dtype.kind in "iu" and (np.abs(numbers) >= MAX_WHOLE).any():
        return _numbers_if_all(label_text(values))
    return numbers


def _typed_columns(
    path: str, form: str, names: Sequence[str], missing: Sequence[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Columns of a Parquet or Arrow file."""
    from .parquet_arrow import ArrowPart, ColumnarSource, ParquetPart

    for name in names:
        part = ParquetPart(path) if form == "parquet" else ArrowPart(path)
        ColumnarSource([part], ReadOptions(features=[name]))  # it refuses columns that are missing or hold dates
        values = [value for batch in part.valid_batches(0, 1 << 16, [name]) for value in batch.column(name).to_pylist()]
        if name in missing:
            empty = "" if any(isinstance(v, str) for v in values) else math.nan
            values = [empty if v is None else v for v in values]
        if None in values:
            raise SourceError(f"{path}, row {values.index(None)}, column {name!r}: the value is missing")
        values = [float(v) if isinstance(v, Decimal) else v.strip() if isinstance(v, str) else v for v in values]
        yield name, _array(values, path, name) if values else np.zeros(0)


def _text_columns(
    path: str, form: str, names: Sequence[str], missing: Sequence[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Columns of a CSV, TSV or JSON lines file."""
    from .json_rows import open_json

    found: list[list[str]] = [[] for _ in names]
    try:
        opened = open_json(path) if form == "jsonl" else ByteStream(path)
        with opened as stream, io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", newline="") as file:
            if form == "jsonl":
                _read_objects(file, path, names, missing, found)
            else:
                _read_records(csv.reader(file, delimiter="\t" if form == "tsv" else ","), path, names, found)
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path}: {error}") from None
    except StopIteration:
        raise SourceError(f"{path}: the file is empty") from None
    yield from ((name, _array(values, path, name)) for name, values in zip(names, found, strict=True))


def _array(values: list[Any], path: str, name: str) -> np.ndarray:
    """The values as an array; text that ends with NUL is an error, because numpy would drop the NUL."""
    bad = next((t for t, value in enumerate(values) if isinstance(value, str) and value.endswith("\0")), None)
    if bad is not None:
        raise SourceError(f"{path}, row {bad}, column {name!r}: {values[bad]!r} ends with a NUL character")
    return np.array(values)


def _read_records(reader: Any, path: str, names: Sequence[str], found: list[list[str]]) -> None:
    records = (record for record in reader if record)  # without blank lines
    header = [name.strip() for name in next(records)]
    for name in names:
        if name not in header:
            raise SourceError(f"{path}: there is no column {name!r}{suggestion(name, header)}")
    places = [header.index(name) for name in names]
    for record in records:
        if len(record) != len(header):
            raise SourceError(f"{path}, line {reader.line_num}: {len(record)} fields, but the header has {len(header)}")
        for column, j in zip(found, places, strict=True):
            column.append(record[j].strip())


def _read_objects(
    file: Iterable[str], path: str, names: Sequence[str], missing: Sequence[str], found: list[list[str]]
) -> None:
    from .json_rows import parse_object
    from .mappings import FieldError

    for line, text in enumerate(file, 1):
        if text.strip():
            try:
                row = parse_object(text.encode())
            except FieldError as error:
                raise SourceError(f"{path}, line {line}: {error.reason}") from None
            for column, name in zip(found, names, strict=True):
                if row.get(name) is None and name in missing:
                    column.append("")
                    continue
                if row.get(name) is None:
                    raise SourceError(f"{path}, line {line}: there is no value for {name!r}")
                value = row[name]
                column.append(number_text(value) if isinstance(value, (int, float)) else str(value).strip())
