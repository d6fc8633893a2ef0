"""What `hindsight predict` writes: predictions, and columns of the rows themselves, as CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..training.model import Model

GROUP = 1 << 16  # rows of a row group of Parquet, at least
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
Table = dict[str, Any]  # columns by name: lists, arrays of numpy, or of pyarrow


def output_form(path: str | None) -> str:
    """The format that the name of an output shows: "csv" where it shows none; an OptionError for others."""
    from ..sources import file_format
    from ..sources.streams import PACKED

    form = "csv" if path is None else file_format(path) or "csv"
    if form not in WRITERS or (path is not None and path.lower().endswith((*PACKED, *WORKBOOKS))):
        raise OptionError("output", f"{path}: predictions are written as .csv, .jsonl or .parquet")
    return form


def tables(
    model: Model, data: str, form: str | None, keep: list[str], margins: bool, probabilities: bool
) -> Iterator[Table]:
    """The columns of each chunk: those to keep, the prediction, then what it is made from."""
    from ..sources.extra_columns import extra_columns
    from ..training.prepare import open_for_model, rows_of_model

    names = columns_of(model, margins, probabilities)
    for name in keep:
        if name in names:
            raise OptionError("keep", f"{name}: the predictions have a column of that name")
    source = open_for_model(model, data, form, keep)
    beside = extra_columns(source, keep) if keep else None
    for X, chunk in rows_of_model(model, source):
        kept = [] if beside is None else beside(chunk)
        yield dict(zip([*keep, *names], [*kept, *said(model, X, chunk.place, margins, probabilities)], strict=True))


def columns_of(model: Model, margins: bool, probabilities: bool) -> list[str]:
    """The names of the columns."""
    from ..training.saved import has_probability

    labels = model.labels or []
    from ..training.outputs import interval_columns

    names = ["prediction"]
    if probabilities:
        names += [f"probability {label}" for label in labels]
    elif has_probability(model):
        names.append("probability")
    if margins:
        names += ["margin"] if len(model.runs) == 1 else [f"margin {label}" for label in labels]
    return names + interval_columns(model.runs[0].coverage is not None, model.labels)


def said(model: Model, X: Any, place: Callable[[int], str], margins: bool, each: bool) -> Iterator[Any]:
    """The columns of one chunk."""
    from ..online.margins import each_mean
    from ..training.evaluation import probabilities
    from ..training.saved import has_probability

    try:
        z = model.margins(X)
    except RowError as error:
        raise ValueError(f"{place(error.row)}{error.message}") from None
    if model.labels is None:
        yield model.predictions(z)
    else:
        yield [model.labels[k] for k in model.choices(z).tolist()]
    if each:
        p = probabilities(model, z)
        assert p is not None
        yield from (p[:, k] for k in range(p.shape[1]))
    elif has_probability(model):
        yield each_mean(model.learner.loss, z[:, 0])
    if margins:
        yield from (z[:, k] for k in range(z.shape[1]))
    if model.runs[0].coverage is not None:
        from ..training.outputs import intervals

        yield from intervals(model.learner.loss, model.labels, z, model.half)


# ---------------------------------------------------------------- formats


def listed(column: Any) -> list[Any]:
    """A column as a list of Python's own values."""
    if isinstance(column, list):
        return column
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column.tolist())


def as_csv(names: list[str], parts: Iterator[Table]) -> Iterator[str]:
    """Lines of CSV, the header first."""
    head = [names]
    for table in parts:
        yield records([*head, *zip(*map(listed, table.values()), strict=True)])
        head = []
    yield records(head)


def records(rows: list[Any]) -> str:
    """Records of CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def as_json_lines(names: list[str], parts: Iterator[Table]) -> Iterator[str]:
    """One JSON object per row; what JSON has no form for is text, and a number that is not finite null."""
    from ..formatting import _plain

    for table in parts:
        rows = zip(*(_plain(listed(column)) for column in table.values()), strict=True)
        texts = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str) for row in rows)
        yield "".join(f"{text}\n" for text in texts)


def as_parquet(names: list[str], parts: Iterator[Table]) -> Iterator[bytes]:
    """A Parquet file in pieces; columns that are kept have their type, and are text where the rows have none."""
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
    """A column for Parquet: numbers and types as they are, other values as text."""
    import pyarrow as pa

    if not isinstance(column, list):
        typed = pa.array(column) if not isinstance(column, pa.Array) else column
        return typed.dictionary_decode() if pa.types.is_dictionary(typed.type) else typed
    texts = [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False, default=str) for v in column]
    return pa.array(texts, pa.string())


class Pieces(io.RawIOBase):
    """A file that is taken away while it is written."""

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
        """What was written since the last time."""
        piece, self.held = bytes(self.held), bytearray()
        return piece


WRITERS: dict[str, Any] = {"csv": as_csv, "jsonl": as_json_lines, "parquet": as_parquet}


def is_plain_file(data: str) -> bool:
    """Whether the rows can be read a second time: a sample, a regular file or a folder."""
    return data.startswith("sample:") or os.path.isfile(data) or os.path.isdir(data)
