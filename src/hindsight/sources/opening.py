"""Choose a source by the name of a file, the given format, or the type of an object in memory."""

from __future__ import annotations

import codecs
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import SourceError
from .base import CHUNK, FIRST_ROWS, MISSING_RULES, ReadOptions, Source, suggestion
from .streams import PACKED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .parquet_arrow import Part

FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl", "svmlight", "vw", "npy", "npz")
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".npy": "npy",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".vw": "vw",
}


def open_source(
    data: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    format: str | None = None,
    header: bool | None = True,
    separator: str | None = None,
    categorical: Sequence[str] | str = (),
    missing: str = "error",
    labels: bool | None = None,
    zero_based: bool = False,
    hash_bits: int | None = None,
    rejects: bool = False,
    chunk: int = CHUNK,
    ahead: bool = True,
    digest: bool = False,
    strict: bool = True,
    types: Mapping[str, str] | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    na: Sequence[str] = (),
    scan: int = FIRST_ROWS,
    cross: Sequence[Sequence[str]] = (),
    state: Mapping[str, Any] | None = None,
) -> Source:
    """Open data to be read chunk by chunk.

    Parameters
    ----------
    data : str, PathLike, list of these, or object in memory
        A path, "-" for standard input, several paths, or a folder of files of one format. In memory: a 2-D array, a
        scipy sparse matrix, a data frame, an iterable of dicts, or a tuple (rows, targets) or (rows, targets, weights).
    target : str, default None
        The column to predict; None reads rows without targets (`chunk.y` is None). svmlight and Vowpal Wabbit text have
        their own place for it: any name but None asks for it there.
    weight : str, default None
        The column with the importance of each row. Vowpal Wabbit text has its own place for it.
    features : sequence of str, default None
        The features to read, in this order; None reads all but target, weight and `ignore`. Of Vowpal Wabbit text,
        ``|a b`` is named "a^b", ``| b`` is "b" and ``| a^b`` is "^a^b".
    ignore : sequence of str, default ()
        Columns (or sparse features) to leave out.
    format : {"csv", "tsv", "parquet", "arrow", "jsonl", "svmlight", "vw", "npy", "npz"}, default None
        The format of the files; None goes by the name of the first.
    header : bool or None, default True
        Whether the first record of CSV or TSV names the columns; otherwise they are "1", "2", ... None infers it.
    separator : str, default None
        The separator of CSV, one character; None is a comma (a tab for TSV).
    categorical : sequence of str or "auto", default ()
        Columns whose values become indicator features "column=value" (the rows are then sparse); "auto" takes those
        that hold text in the first row. A number has the same name in a column of any type.
    missing : {"error", "zero", "skip", "indicator", "mean"}, default "error"
        What to do with a missing value: raise an error, use 0, or skip the row; for tables that are not read strictly
        also use 0 and set a feature "x is missing", or use the mean of the values so far.
    labels : bool, default None
        True returns every target as text and False every target as a number (a row with a text is bad). None returns
        numbers if all targets of a chunk are numbers. As text, numbers have their shortest form: "+1" and "1.0" are
        "1". Strings that only Python accepts as numbers ("1_0") and whole numbers that float64 cannot represent (2^53 +
        1) count as text.
    zero_based : bool, default False
        Whether the indices of svmlight start at 0. Available memory limits the largest index (64 bytes per column); use
        `hash_bits` for larger ones.
    hash_bits : int, default None
        Map names to 2^hash_bits columns by a hash instead of a dictionary; between 1 and 31.
    rejects : bool, default False
        Skip bad rows and list them in `chunk.rejects`; otherwise a bad row is an error.
    chunk : int, default 2**22
        Bytes of text, or of the values of a table, in a chunk. Results do not depend on it.
    ahead : bool, default True
        Read the next chunk in a thread while the current one is used.
    digest : bool, default False
        Keep the SHA-256 of what was consumed, so that a changed prefix is refused on resuming.
    strict : bool, default True
        False infers the format, encoding, separator and header of a text from its first bytes, and the type of each
        column (number, category, date, ...) from its first rows. Rows without a target then have weight 0. A later row
        that contradicts an inferred type raises a `DisprovedError`.
    types : mapping of str to str, default None
        The types of columns that are not to be inferred: "number", "category", "boolean", "date" (or "date(%d/%m/%Y)"),
        "text" (or "text(2)", with pairs of words), "ignore".
    encoding : str, default None
        The encoding of text; None infers it.
    decimal : {".", ","}, default None
        The decimal sign; None infers it for each column.
    na : sequence of str, default ()
        Further words for a missing value.
    scan : int, default 10_000
        The number of rows from which the types of columns are inferred; 0 uses all rows.
    cross : sequence of pairs of str, default ()
        Pairs of columns whose products are added as features; only for tables that are not read strictly.
    state : mapping, default None
        What `state` of another source of the same table returned; the types of its columns are taken from it.

    Returns
    -------
    Source
        Rows to be read by its method `chunks`.

    Raises
    ------
    SourceError
        If a parameter is out of its domain, the format is unknown, a file cannot be read, or a column is missing.

    Examples
    --------
    >>> rows = [{"height": 1.5, "y": 1}, {"height": 2.0, "width": 3.0, "y": -1}]
    >>> source = open_source(rows, target="y")
    >>> for chunk in source.chunks():
    ...     print(chunk.X.toarray(), chunk.y, source.names)
    [[1.5 0. ]
     [2.  3. ]] [ 1. -1.] ['height', 'width']
    """
    if missing not in MISSING_RULES:
        raise SourceError(f"missing must be one of {', '.join(MISSING_RULES)}; got {missing!r}")
    if hash_bits is not None and not 1 <= hash_bits <= 31:
        raise SourceError(f"hash_bits must be between 1 and 31; got {hash_bits!r}")
    if format is not None and format not in FORMATS:
        raise SourceError(f"there is no format {format!r}{suggestion(format, FORMATS)}")
    if chunk < 1:
        raise SourceError(f"chunk must be at least 1 byte; got {chunk!r}")
    if decimal not in (None, ".", ","):
        raise SourceError(f"decimal must be '.' or ','; got {decimal!r}")
    if encoding is not None:
        try:
            encoding = codecs.lookup(encoding).name
        except LookupError:
            raise SourceError(f"there is no encoding {encoding!r}") from None
    if strict and missing in ("indicator", "mean"):
        raise SourceError(f"missing {missing!r} is for tables that are not read strictly (strict=False)")
    if strict and cross:
        raise SourceError("cross is for tables that are not read strictly (strict=False)")
    header = True if header is None and strict else header
    options = ReadOptions(
        target, weight, features, tuple(ignore), format, header, separator, categorical, missing, labels, zero_based,
        hash_bits, rejects, chunk, ahead, digest, strict, types or {}, encoding, decimal, tuple(na), scan,
        tuple(map(tuple, cross)), state,
    )  # fmt: skip
    source = _open_files(data, options) if _is_path(data) else _open_object(data, options)
    if state is not None:
        source.restore(dict(state))
    return source


def _is_path(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(item, (str, os.PathLike)) for item in data)
    return isinstance(data, (str, os.PathLike))


def list_files(data: Any, form: str | None) -> list[str]:
    """The paths in `data`: one path, a list of paths, or the sorted data files of a folder."""
    paths = [os.fspath(item) for item in (data if isinstance(data, (list, tuple)) else [data])]
    if len(paths) == 1 and os.path.isdir(paths[0]):
        folder = paths[0]
        paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name[0] not in "._"]
        paths = [path for path in paths if os.path.isfile(path)]
        if form is None:
            formats = {file_format(path) for path in paths} - {None}
            if len(formats) > 1:
                raise SourceError(f"{folder}: a folder of several formats ({', '.join(sorted(map(str, formats)))})")
            paths = [path for path in paths if file_format(path) is not None]
        if not paths:
            raise SourceError(f"{folder}: a folder without data files")
    for path in paths:
        if path != "-" and not os.path.exists(path):
            raise SourceError(f"{path}: No such file or directory")
        if os.path.isdir(path):
            raise SourceError(f"{path}: a folder in a list of files")
    return paths


def _open_files(data: Any, options: ReadOptions) -> Source:
    paths = list_files(data, options.format)
    form = options.format or file_format(paths[0])
    if form is None and not options.strict:
        form = found_format(paths[0])
    if not options.strict:
        options = _for_format(options, form)
    if form is None:
        known = "choose one of " + ", ".join(FORMATS)
        if paths[0] == "-":
            raise SourceError(f"standard input has no name to show its format; {known}")
        raise SourceError(f"{paths[0]}: the name does not show the format; {known}")
    if form in ("npy", "npz"):
        from . import arrays

        if len(paths) > 1 or paths[0] == "-":
            raise SourceError(f"{form}: one file at a time, and no standard input")
        return (arrays.open_npy if form == "npy" else arrays.open_npz)(paths[0], options)
    if form in ("csv", "tsv"):
        if not options.strict:
            from .tables.text_table import TextTable

            return TextTable(paths, options, "\t" if form == "tsv" else ",")
        from .csv import CsvSource

        return CsvSource(paths, options, "\t" if form == "tsv" else ",")
    if form in ("svmlight", "vw"):
        from .sparse_text import SvmlightSource, VowpalWabbitSource

        return SvmlightSource(paths, options) if form == "svmlight" else VowpalWabbitSource(paths, options)
    if form == "jsonl":
        from .json_rows import JsonLinesSource

        return JsonLinesSource(paths, options)
    from .parquet_arrow import ArrowPart, ParquetPart

    return _open_typed([ParquetPart(path) if form == "parquet" else ArrowPart(path) for path in paths], options)


def _open_typed(parts: Sequence[Part], options: ReadOptions) -> Source:
    """Open a table with typed columns."""
    if options.strict:
        from .parquet_arrow import ColumnarSource

        return ColumnarSource(parts, options)
    from .tables.typed_table import TypedTable

    return TypedTable(parts, options)


def _for_format(options: ReadOptions, form: str | None) -> ReadOptions:
    """The options for data other than tables, which have no columns whose types could be inferred."""
    if form in ("csv", "tsv", "parquet", "arrow"):
        return options
    if options.cross:
        raise SourceError("cross is for tables: CSV, Parquet, Arrow and data frames")
    if form == "jsonl":
        return replace(options, categorical=options.categorical or "auto", header=True)
    rule = options.missing if options.missing in ("error", "zero", "skip") else "error"
    return replace(options, missing=rule, header=True)


def found_format(path: str) -> str:
    """The format inferred from the content of a file."""
    from .tables.sniff import sniff_format
    from .tables.text_table import read_head

    return sniff_format(read_head(path))


def file_format(path: str) -> str | None:
    """The format implied by the name of a file, ignoring .gz, .zst and .zip; None if unknown."""
    stem, end = os.path.splitext(path)
    if end.lower() in PACKED:
        stem, end = os.path.splitext(stem)
    return ENDINGS.get(end.lower())


def _open_object(data: Any, options: ReadOptions) -> Source:
    """Rows in memory: an array, a CSR matrix, a data frame, dicts; or (rows, targets[, weights])."""
    import numpy as np

    from .arrays import ArraySource

    X, y, weight = (*data, None)[:3] if isinstance(data, tuple) else (data, None, None)
    frame = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__")
    if not options.strict and not frame:
        array = isinstance(X, np.ndarray) or hasattr(X, "tocsr")
        options = _for_format(options, None if array else "jsonl")
    if isinstance(X, np.ndarray) or hasattr(X, "tocsr"):
        return ArraySource(X, y, weight, options)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__"):
        from .parquet_arrow import Frame, to_arrow

        return _open_typed([Frame(to_arrow(X, y, weight, options))], options)
    if hasattr(X, "__iter__"):
        from .json_rows import DictSource

        return DictSource(X, y, weight, options)
    raise SourceError(f"data: rows cannot be read from {type(X).__name__}")
