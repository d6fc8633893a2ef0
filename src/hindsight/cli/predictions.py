"""The output of `hindsight predict`: predictions, and columns of the rows, as CSV, JSON lines or Parquet."""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError, RowError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..training.model import Model

GROUP = 1 << 16  # rows of a row group of Parquet, at least
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
Columns = dict[str, Any]  # columns by name: lists, arrays of numpy, or of pyarrow


def output_form(path: str | None) -> str:
    """The output format by the suffix of a name: "csv" without a suffix; an OptionError for unknown ones."""
    from ..sources import file_format
    from ..sources.streams import PACKED

    form = "csv" if path is None else file_format(path) or "csv"
    if form not in WRITERS or (path is not None and path.lower().endswith((*PACKED, *WORKBOOKS))):
        raise OptionError("output", f"{path}: predictions are written as .csv, .jsonl or .parquet")
    return form


def tables(
    model: Model, data: str, form: str | None, keep: list[str], margins: bool, probabilities: bool
) -> Iterator[Columns]:
    """The columns of each chunk: those to keep, the prediction, then margins or probabilities."""
    from ..sources.extra_columns import extra_columns
    from ..training.prepare import open_for_model, rows_of_model

    for name in names_of(model, margins, probabilities):
        if name in keep:
            raise OptionError("keep", f"{name}: the predictions have a column of that name")
    source = open_for_model(model, data, form, keep)
    beside = extra_columns(source, keep) if keep else None
    for X, chunk in rows_of_model(model, source):
        kept = [] if beside is None else beside(chunk)
        try:
            z = model.margins(X)
        except RowError as error:
            raise ValueError(f"{chunk.place(error.row)}{error.message}") from None
        yield dict(zip(keep, kept, strict=True)) | columns_of(model, z, margins, probabilities)


def names_of(model: Model, margins: bool, each: bool) -> list[str]:
    """The names of the columns of predictions."""
    return list(columns_of(model, np.zeros((0, len(model.runs))), margins, each))


def columns_of(model: Model, z: np.ndarray, margins: bool, each: bool) -> Columns:
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


def csv_lines(names: list[str], parts: Iterator[Columns]) -> Iterator[str]:
    """Lines of CSV, the header first."""
    from ..training.outputs import as_csv, listed

    head = [names]
    for table in parts:
        yield as_csv([*head, *zip(*map(listed, table.values()), strict=True)])
        head = []
    yield as_csv(head)


def json_lines(names: list[str], parts: Iterator[Columns]) -> Iterator[str]:
    """One JSON object per row; values that JSON cannot represent become text, and numbers that are not finite null."""
    from ..training.outputs import as_lines, listed

    for table in parts:
        yield as_lines(names, zip(*map(listed, table.values()), strict=True))


def as_parquet(names: list[str], parts: Iterator[Columns]) -> Iterator[bytes]:
    """A Parquet file in pieces; kept columns have the type of the rows, or text if they have none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink, writer, held, size = Pieces(), None, [], 0
    for table in parts:
        held.append(pa.table([arrow_column(column) for column in table.values()], names=names))
        size += held[-1].num_rows
        if size >= GROUP:
            writer = writer or pq.ParquetWriter(sink, held[0].schema)
            writer.write_table(pa.concat_tables(held))
            held, size = [], 0
            yield sink.taken()
    if held:
        writer = writer or pq.ParquetWriter(sink, held[0].schema)
        writer.write_table(pa.concat_tables(held))
    if writer is not None:
        writer.close()
    yield sink.taken()


def arrow_column(column: Any) -> Any:
    """A column for Parquet: numbers and Arrow types are unchanged, other values become text."""
    import pyarrow as pa

    if not isinstance(column, list):
        typed = pa.array(column) if not isinstance(column, pa.Array) else column
        return typed.dictionary_decode() if pa.types.is_dictionary(typed.type) else typed
    texts = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False, default=str) for v in column]
    return pa.array(texts, pa.string())


class Pieces(io.RawIOBase):
    """A file object whose content is taken while it is written."""

    def __init__(self) -> None:
        self.held, self.position = bytearray(), 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def write(self, data: Any) -> int:
        self.held += data
        self.position += len(data)
        return len(data)

    def taken(self) -> bytes:
        """The bytes written since the last call."""
        piece, self.held = bytes(self.held), bytearray()
        return piece


WRITERS: dict[str, Any] = {"csv": csv_lines, "jsonl": json_lines, "parquet": as_parquet}


def is_plain_file(data: str) -> bool:
    """Whether the rows can be read twice: a sample, a regular file or a folder."""
    return data.startswith("sample:") or os.path.isfile(data) or os.path.isdir(data)
