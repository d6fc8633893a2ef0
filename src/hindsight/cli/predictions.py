"""The output of `hindsight predict`: predictions, and columns of the rows, as CSV, JSON lines or Parquet."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..training.model import Model

FORMS = ("csv", "jsonl", "parquet")
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
Columns = dict[str, Any]  # columns by name: lists, arrays of numpy, or of pyarrow


def output_form(path: str | None) -> str:
    """The output format by the suffix of a name: "csv" without a suffix; an OptionError for unknown ones."""
    from ..sources import file_format
    from ..sources.streams import PACKED

    form = "csv" if path is None else file_format(path) or "csv"
    if form not in FORMS or (path is not None and path.lower().endswith((*PACKED, *WORKBOOKS))):
        raise OptionError("output", f"{path}: predictions are written as .csv, .jsonl or .parquet")
    return form


def tables(
    model: Model, data: str, form: str | None, keep: list[str], margins: bool, probabilities: bool
) -> Iterator[Columns]:
    """The columns of each chunk: those to keep, the prediction, then margins or probabilities."""
    from ..sources.extra_columns import extra_columns
    from ..training.prepare import margins_of, open_for_model, rows_of_model

    for name in names_of(model, margins, probabilities):
        if name in keep:
            raise OptionError("keep", f"{name}: the predictions have a column of that name")
    source = open_for_model(model, data, form, keep)
    beside = extra_columns(source, keep) if keep else None
    for X, chunk in rows_of_model(model, source):
        kept, z = [] if beside is None else beside(chunk), margins_of(model, X, chunk)
        yield dict(zip(keep, kept, strict=True)) | predicted_columns(model, z, margins, probabilities)


def names_of(model: Model, margins: bool, each: bool) -> list[str]:
    """The names of the columns of predictions."""
    return list(predicted_columns(model, np.zeros((0, len(model.runs))), margins, each))


def predicted_columns(model: Model, z: np.ndarray, margins: bool, each: bool) -> Columns:
    """The predictions from these margins, with the margins or the probability of `each` label if requested."""
    from ..training.evaluation import probabilities
    from ..training.model import has_probability
    from ..training.outputs import predictions

    half, labels = None if model.runs[0].coverage is None else model.half, model.labels or []
    out = predictions(model.learner.loss, model.labels, z, half, odds=not each and has_probability(model))
    more: Columns = {}
    if each:
        p = probabilities(model, z)
        assert p is not None
        more |= {f"probability {label}": p[:, k] for k, label in enumerate(labels)}
    if margins:
        names = ["margin"] if len(model.runs) == 1 else [f"margin {label}" for label in labels]
        more |= dict(zip(names, z.T, strict=True))
    first = [name for name in ("prediction", "probability") if name in out]
    return {name: out.pop(name) for name in first} | more | out


# ---------------------------------------------------------------- formats


def as_text(form: str, names: list[str], parts: Iterator[Columns]) -> Iterator[str]:
    """The rows as CSV with a header, or as JSON lines.

    In JSON, values that it cannot represent become text, and numbers that are not finite null.
    """
    from ..training.outputs import as_csv, as_lines, listed

    head = [names] if form == "csv" else []
    for table in parts:
        records = zip(*map(listed, table.values()), strict=True)
        yield as_csv([*head, *records]) if form == "csv" else as_lines(names, records)
        head = []
    yield as_csv(head)


def write_parquet(path: str, names: list[str], parts: Iterator[Columns]) -> None:
    """Write a Parquet file; kept columns have the type of the rows, or text if they have none."""
    from ..storage.container import replacing
    from ..training.outputs import ParquetFile

    with replacing(path) as file, open(file, "wb", closefd=False) as into:
        out = ParquetFile(path, names, into)
        for table in parts:
            out.add(map(arrow_column, table.values()))
        out.close()


def arrow_column(column: Any) -> Any:
    """A column for Parquet: numbers and Arrow types are unchanged, other values become text."""
    import pyarrow as pa

    if not isinstance(column, list):
        typed = pa.array(column) if not isinstance(column, pa.Array) else column
        return typed.dictionary_decode() if pa.types.is_dictionary(typed.type) else typed
    texts = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False, default=str) for v in column]
    return pa.array(texts, pa.string())


def is_plain_file(data: str) -> bool:
    """Whether the rows can be read twice: a sample, a regular file or a folder."""
    return data.startswith("sample:") or os.path.isfile(data) or os.path.isdir(data)
