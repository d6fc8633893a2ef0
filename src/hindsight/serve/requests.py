"""The content of requests: rows as JSON, JSON lines or an Arrow stream, parsed within limits."""

from __future__ import annotations

import io
import itertools
import json
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import SourceError
from ..sources.arrow_types import validated
from ..sources.json_rows import unique_names
from ..sources.mappings import FieldError

BULK = 256  # lines from which on they are parsed as columns
LINE = re.compile(rb"[^\s][^\r\n]*")  # that is not blank


class ServiceError(ValueError):
    """A refused request: the HTTP status and a one-line reason."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Limits:
    """The limits of a request and of the service.

    Parameters
    ----------
    body : int, default 64 MiB
        Bytes of a request.
    rows : int, default 1,000,000
        Rows of a request.
    values : int, default 5,000,000
        Values of a request whose rows do not all have the same names, or that is not JSON lines or Arrow.
    row_features : int, default 10,000
        Features of a row.
    features : int, default 1,000,000
        Features in all.
    pending : int, default 100,000
        Rows waiting for their outcome.
    queue : int, default 1,024
        Requests waiting to be learnt.
    expire : float, default 7 days
        Seconds after which a row that waits for its outcome is forgotten.
    keys : int, default 10,000
        The number of newest idempotency keys to remember.
    sources : int, default 1,000
        The number of streams whose positions are remembered.
    """

    body: int = 64 << 20
    rows: int = 1_000_000
    values: int = 5_000_000
    row_features: int = 10_000
    features: int = 1_000_000
    pending: int = 100_000
    queue: int = 1024
    expire: float = 7 * 86400.0
    keys: int = 10_000
    sources: int = 1000


# Committed requests were within the limits of their time.
ANY = Limits(body=1 << 40, rows=1 << 40, values=1 << 40, row_features=1 << 40, features=1 << 40)


@dataclass
class Part:
    """The rows of one request.

    Attributes
    ----------
    do : {"learn", "keep", "outcome"}
        Whether the rows are learnt, are kept until their outcome is known, or are outcomes of kept rows.
    form : {"json", "lines", "arrow"}
        The format of `body`.
    body : bytes
        The rows.
    rows : int
        The number of rows.
    key : str or None
        The idempotency key.
    digest : str
        A digest of the request, which distinguishes a repetition from another use of the key.
    quiet : bool
        Whether the answer leaves out predictions.
    source : str or None
        The name of the stream that the rows come from.
    start : int
        The number of rows of the stream before these, so that a stream can be resumed.
    parsed : list of dict, or Arrow table, or None
        The rows, once parsed.
    """

    do: str
    form: str
    body: bytes
    rows: int = 0
    key: str | None = None
    digest: str = ""
    quiet: bool = False
    source: str | None = None
    start: int = 0
    parsed: Any = None

    def parse(self, limits: Limits = ANY) -> Any:
        """Parse the rows to a list of mappings or an Arrow table; a SourceError if they cannot be parsed."""
        if self.parsed is None:
            self.parsed = parse(self.form, self.body, limits)
            self.rows = len(self.parsed) if isinstance(self.parsed, list) else self.parsed.num_rows
        return self.parsed

    def mappings(self) -> list[dict[str, Any]]:
        """The rows as mappings."""
        parsed = self.parse()
        return parsed if isinstance(parsed, list) else parsed.to_pylist()

    def contents(self) -> list[str]:
        """Each row as JSON, to be kept; a SourceError if a value is neither a number nor text."""
        return [row_as_json(t, row) for t, row in enumerate(self.mappings())]


def row_as_json(t: int, row: dict[str, Any]) -> str:
    """A row as JSON; NaN, which only Arrow allows, becomes a missing value."""
    out = {}
    for name, value in row.items():
        try:
            out[name] = None if isinstance(value, float) and math.isnan(value) else value
            json.dumps({name: out[name]}, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError):
            reason = f"{type(value).__name__} {str(value)[:40]!r} is neither a finite number nor text"
            raise SourceError(f"row {t}, column {name!r}: {reason}") from None
    return json.dumps(out)


# ---------------------------------------------------------------- parsing


def parse(form: str, body: bytes, limits: Limits) -> Any:
    """The rows of a body: a list of mappings, or an Arrow table."""
    if form == "arrow":
        return parse_arrow(body, limits)
    bulk = form == "lines" and (body.count(b"\n", 0, 1 << 17) >= BULK or body.count(b"\n") >= BULK)
    table = columns_of_numbers(body, limits) if bulk else None
    if table is None and form == "lines" and body.count(b"\n") + body.count(b"\r") >= limits.rows:
        check_count(
            sum(1 for _ in itertools.islice(LINE.finditer(body), limits.rows + 1)), limits
        )  # that are not blank
    if table is None and bulk:
        table = columns_of_lines(body, limits)
    if table is not None:
        check_count(table.num_rows, limits)
        return table
    if body.count(b",") >= limits.values:
        raise SourceError(f"more than {limits.values:,} values: send fewer rows at a time")
    if form == "lines":
        rows = [parse_json(line, f"line {k}") for k, line in enumerate(body.splitlines(), 1) if line.strip()]
    else:
        found = parse_json(body, "the body")
        rows = found if isinstance(found, list) else [found]
    check_count(len(rows), limits)
    for k, row in enumerate(rows):
        if not isinstance(row, dict):
            raise SourceError(f"row {k}: this is not a JSON object")
        if len(row) > limits.row_features:
            raise SourceError(f"row {k}: {len(row):,} features, at most {limits.row_features:,} are taken")
    return rows


def check_count(rows: int, limits: Limits) -> None:
    """Raise an error if there are no rows or too many."""
    if rows == 0:
        raise SourceError("there is no row")
    if rows > limits.rows:
        raise SourceError(f"{rows:,} rows, at most {limits.rows:,} are taken at a time")


def parse_json(text: bytes, what: str) -> Any:
    """A JSON value; NaN, infinities and repeated names are refused."""
    try:
        return DECODER.decode(text.decode(json.detect_encoding(text), "surrogatepass"))  # as json.loads does
    except FieldError as error:
        raise SourceError(f"{what}: {error.reason}") from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is one
        raise SourceError(f"{what}: this is not JSON: {str(error)[:200]}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number: write null for a missing value")


# One for all: json.loads would make another for each text.
DECODER = json.JSONDecoder(object_pairs_hook=unique_names, parse_constant=_no_constant)


def columns_of_numbers(body: bytes, limits: Limits) -> Any:
    """JSON lines as an Arrow table, if all values are numbers with the same names in the same order; otherwise None."""
    import pyarrow as pa

    from ..sources.parsers.bits import PAD
    from ..sources.parsers.json_lines import parse_number_lines

    start = LINE.search(body)
    first = parse_json(start[0], "line 1") if start is not None else None
    if not isinstance(first, dict) or not 0 < len(first) <= limits.row_features or not plain_names(first):
        return None
    names = [name.encode() for name in first]
    text, ends = np.frombuffer(b"".join(names), np.uint8), np.cumsum([len(name) for name in names])
    held = np.zeros(len(body) + PAD, np.uint8)
    held[: len(body)] = np.frombuffer(body, np.uint8)
    least = 1 + sum(len(name) + 5 for name in names)  # bytes of the shortest row
    out = np.empty((len(names), len(body) // least + 1))
    rows, stop = parse_number_lines(held, len(body), text, ends, out)
    if stop < len(body):
        return None
    return pa.table({name: out[j, :rows] for j, name in enumerate(first)})


def plain_names(row: dict[str, Any]) -> bool:
    """Whether all values are numbers, and no name is escaped in JSON."""
    if not all(type(value) in (int, float) for value in row.values()):
        return False
    return all(name.isascii() and name.isprintable() and not {'"', "\\"} & set(name) for name in row)


def columns_of_lines(body: bytes, limits: Limits) -> Any:
    """JSON lines as an Arrow table, if all rows have the same names and plain values; otherwise None."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    start = LINE.search(body)
    first = parse_json(start[0], "line 1") if start is not None else None
    if not isinstance(first, dict) or not first:
        return None
    if len(first) > limits.row_features:
        raise SourceError(f"row 0: {len(first):,} features, at most {limits.row_features:,} are taken")
    size = min(max(1 << 20, len(body) // 8), 1 << 30)
    for whole in (pa.int64(), pa.float64()):
        kinds = {bool: pa.bool_(), int: whole, float: pa.float64(), str: pa.string()}
        if not kinds.keys() >= {type(value) for value in first.values()}:
            return None  # null and absent are not the same
        # Other names are an error, not columns of their own: there might be one for each row.
        schema = pa.schema([(name, kinds[type(value)]) for name, value in first.items()])
        form = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
        try:
            table = arrow_json.read_json(io.BytesIO(body), arrow_json.ReadOptions(block_size=size), form)
        except (pa.ArrowException, UnicodeDecodeError):
            continue
        return None if any(column.null_count for column in table.columns) else table
    return None


def parse_arrow(body: bytes, limits: Limits) -> Any:
    """Read the table of an Arrow stream, validating every buffer."""
    import pyarrow as pa

    batches, rows, size = [], 0, 0
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            schema = stream.schema
            for batch in stream:
                batches.append(validated(batch))
                schema = batches[-1].schema
                rows, size = rows + batch.num_rows, size + batch.nbytes
                if size > 4 * limits.body:
                    raise SourceError(f"the rows take more than {4 * limits.body:,} bytes")
                check_count(max(1, rows), limits)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"this is not an Arrow stream: {str(error).splitlines()[0][:200]}") from None
    check_count(rows, limits)
    if len(set(schema.names)) < len(schema.names):
        raise SourceError("the Arrow stream has two columns of the same name")
    if len(schema.names) > limits.row_features:
        raise SourceError(f"{len(schema.names):,} columns, at most {limits.row_features:,} are taken")
    return pa.Table.from_batches(batches, schema)
