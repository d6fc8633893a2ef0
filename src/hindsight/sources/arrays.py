"""Arrays: numpy and scipy in memory, .npy and .npz files. Columns without names are "1", "2", ..."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from ..rows.labels import MAX_WHOLE, label_type
from ..rows.matrices import checked
from ..validation import refuse_masked
from .base import Chunk, Position, ReadOptions, Source, first_position, shown_names, suggestion, without_faults
from .labels import label_fault, label_text
from .names import NumberedNames
from .sparse import max_columns
from .streams import FREE, RATIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class ArrayFile:
    """A C-contiguous array in a file, starting at byte `offset`; rows are read when they are needed.

    They are read, not memory-mapped, because a mapped file that shrinks would crash the process.
    """

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize

    def __getitem__(self, rows: slice) -> np.ndarray:
        a, b, _ = rows.indices(self.shape[0])
        each = int(np.prod(self.shape[1:], dtype=object))
        with open(self.path, "rb", buffering=0) as file:
            values = np.fromfile(file, self.dtype, each * (b - a), offset=self.offset + a * each * self.dtype.itemsize)
        if values.size < each * (b - a):
            raise SourceError(f"{self.path}: is shorter than it was: row {a + values.size // max(1, each)} is missing")
        return values.reshape(b - a, *self.shape[1:])


class ArraySource(Source):
    """Rows of a 2-D array or CSR matrix, with targets and weights given separately or as columns."""

    def __init__(
        self, X: Any, y: Any, weight: Any, options: ReadOptions, where: str = "data", names: Sequence[str] | None = None
    ) -> None:
        super().__init__(where, options)
        if options.hash_bits is not None or options.categorical:
            raise SourceError(f"{where}: hash_bits and categorical are for names and text; this is an array")
        self.sparse = not isinstance(X, (np.ndarray, ArrayFile))
        if self.sparse:
            self.kind = "sparse"
            X = _csr(X, where)
        refuse_masked(X, f"{where}: X", SourceError)
        if X.ndim != 2:
            raise SourceError(f"{where}: rows must be a 2-D array, got shape {X.shape}")
        if X.dtype.kind not in "fiub":
            raise SourceError(f"{where}: the values are {X.dtype}, not numbers")
        self.X, self.count = X, X.shape[0]
        self.columns: Sequence[str] = NumberedNames(1, X.shape[1]) if names is None else list(names)
        beside = y is not None
        self.y = _vector(y, self.count, "targets", where)
        self.weight = _vector(weight, self.count, "weights", where)
        inside = [] if beside or options.target is None else [options.target]
        if weight is None and options.weight is not None:
            inside.append(options.weight)
        wanted = [*inside, *(options.features or ()), *options.ignore]
        place = {name: j for j, name in enumerate(self.columns)} if wanted else {}
        for name in wanted:
            if name not in place:
                raise SourceError(f"{where}: there is no column {name!r}{suggestion(name, list(self.columns[:100]))}")
        self.target_column = place[options.target] if not beside and options.target is not None else None
        found = np.zeros(0, X.dtype) if self.y is None else self.y
        self.label_type = label_type(set(map(type, found.tolist())) if found.dtype.kind == "O" else [found.dtype.type])
        self.weight_column = place[options.weight] if weight is None and options.weight is not None else None
        self.kept: np.ndarray | None = None
        if wanted:
            chosen = self.columns if options.features is None else options.features
            out = {*options.ignore, *inside}
            kept = [name for name in chosen if name not in out]
            if not kept:
                raise SourceError(f"{where}: there is no column besides the target {options.target!r}")
            self.kept = np.array([place[name] for name in kept])
            self.columns = kept
        self.size = int(X.data.nbytes if self.sparse else X.nbytes)

    @property
    def names(self) -> Sequence[str]:
        return self.columns

    def state(self) -> dict[str, Any]:
        return {"columns": len(self.columns)}

    def restore(self, state: dict[str, Any]) -> None:
        if state["columns"] != len(self.columns):
            raise SourceError(f"{self.where}: has {len(self.columns)} features, not {state['columns']} as before")

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        at = first_position(start, width=len(self.columns))
        hasher = hashlib.sha256() if self.options.digest else None
        each = (self.X.nnz * 12 + self.count * 8) // max(1, self.count) if self.sparse else 8 * self.X.shape[1]
        size = max(1, self.options.chunk // max(1, each))
        if hasher is not None and start is not None:
            for a in range(0, start["offset"], size):
                self._hash(hasher, a, min(a + size, start["offset"]))
            self._refuse_changed(start, hasher.hexdigest)
        for a in range(at["offset"], self.count, size):
            b = min(self.count, a + size)
            if hasher is not None:
                self._hash(hasher, a, b)
            yield self._chunk(a, b, at, hasher)

    def _hash(self, hasher: Any, a: int, b: int) -> None:
        rows = self.X[a:b]
        for part in (rows.data, rows.indices, np.diff(rows.indptr)) if self.sparse else (rows,):
            hasher.update(np.ascontiguousarray(part))
        for vector in (self.y, self.weight):
            if vector is not None:
                hasher.update(np.ascontiguousarray(vector[a:b]))

    def _chunk(self, a: int, b: int, at: Position, hasher: Any) -> Chunk:
        options, rows = self.options, self.X[a:b]
        y = None if self.y is None or options.target is None else self.y[a:b]
        weight = None if self.weight is None else self.weight[a:b]
        y = _column(rows, self.target_column) if self.target_column is not None else y
        weight = _column(rows, self.weight_column) if self.weight_column is not None else weight
        X = rows if self.kept is None else rows[:, self.kept]
        if self.sparse:
            X.sort_indices()
            values = X.data
        else:
            X = np.ascontiguousarray(X, X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
            values = X
        faults: dict[int, tuple[str, str]] = {}
        if not np.isfinite(values).all():
            X = X.copy()  # it may be the caller's array
            faults = self._faults(X, a)
        if y is not None and y.dtype.kind in "fiub":
            whole, y = y, y.astype(np.float64)
            for t in np.flatnonzero(~np.isfinite(y)).tolist():
                faults.setdefault(t, (options.target or "y", f"the target {float(y[t])!r} is not finite"))
            if options.labels is not False and whole.dtype.kind in "iu" and (np.abs(y) >= MAX_WHOLE).any():
                y = label_text(whole)
            y = label_text(y) if options.labels else y
        elif y is not None and options.labels is False:
            raise SourceError(f"{self.where}: the targets are {y.dtype}, not numbers")
        elif y is not None:
            for t, label in enumerate(y.tolist() if y.dtype.kind == "O" else ()):
                if fault := label_fault(str(label)):
                    faults.setdefault(t, (options.target or "y", fault))
            y = y.astype(str)
        if weight is not None:
            weight = weight.astype(np.float64)
            for t in np.flatnonzero(~((weight >= 0.0) & (weight < np.inf))).tolist():
                faults.setdefault(t, (options.weight or "weight", f"weight {float(weight[t])!r} must be at least 0"))
        skipped = {t for t, (_, why) in faults.items() if options.missing == "skip" and why == "the value is missing"}
        at |= {"offset": b, "digest": hasher.hexdigest() if hasher else None}
        found, read = without_faults(X, y, weight, faults, skipped), (self.size or 0) * b // self.count
        return self._as_chunk(found, np.arange(a, b), lambda t: self._raw(a + t), at, read, self.where)

    def _faults(self, X: Any, a: int) -> dict[int, tuple[str, str]]:
        """The column and reason of each row with a value that is not finite; sets missing values to 0 if asked."""
        faults: dict[int, tuple[str, str]] = {}
        values = X.data if self.sparse else X
        if self.options.missing == "zero" and np.isnan(values).any():
            values[np.isnan(values)] = 0.0
        if self.sparse:
            bad = np.flatnonzero(~np.isfinite(values))
            cells = zip(np.searchsorted(X.indptr, bad, "right") - 1, X.indices[bad], values[bad], strict=True)
        else:
            t, j = np.nonzero(~np.isfinite(values))
            cells = zip(t, j, values[t, j], strict=True)
        for t, j, v in cells:
            faults.setdefault(
                int(t), (self.columns[int(j)], "the value is missing" if np.isnan(v) else f"'{v}' is not finite")
            )
        return faults

    def _raw(self, t: int) -> str:
        row = self.X[t : t + 1]
        if not self.sparse:
            return ",".join(str(v) for v in row[0].tolist())
        return " ".join(f"{j + 1}:{v}" for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True))


def _column(rows: Any, j: int) -> np.ndarray:
    column = rows[:, j]
    return np.asarray(column.toarray()[:, 0] if hasattr(column, "toarray") else column)


def _csr(X: Any, where: str) -> Any:
    from scipy import sparse

    if not sparse.issparse(X):
        raise SourceError(f"{where}: rows cannot be read from {type(X).__name__}")
    try:
        return sparse.csr_matrix(checked(X))
    except ValueError as error:
        raise SourceError(f"{where}: this is not a CSR matrix: {error}") from None


def _vector(values: Any, m: int, what: str, where: str) -> np.ndarray | None:
    if values is None:
        return None
    refuse_masked(values, f"{where}: {what}", SourceError)
    values = np.asarray(values)
    if values.shape != (m,):
        raise SourceError(f"{where}: there are {m} rows, but the {what} have shape {values.shape}")
    return values


def open_array(path: str) -> np.ndarray | ArrayFile:
    """The array in a .npy file, read lazily, or at once if it is not in row-major order or has named fields.

    Raises
    ------
    ValueError, OSError, EOFError
        If it is not a .npy file, is too short, or holds Python objects.
    """
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        offset, size = file.tell(), os.fstat(file.fileno()).st_size
    array = ArrayFile(path, offset, shape, dtype)
    if not dtype.hasobject and array.nbytes > size - offset:
        raise ValueError(
            f"it is cut short: {array.nbytes:,} bytes of values are announced, {size - offset:,} are there"
        )
    if dtype.hasobject or dtype.names is not None or array.ndim != 2 or (fortran and 1 not in shape):
        return np.asarray(np.load(path, allow_pickle=False))
    return array


def open_npy(path: str, options: ReadOptions) -> Source:
    """The rows of a .npy file; the fields of a structured array name the columns."""
    try:
        X = open_array(path)
    except Exception as error:  # a damaged header can make numpy raise anything
        raise SourceError(f"{path}: {getattr(error, 'strerror', None) or _reason(error)}") from None
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        import pyarrow as pa

        from .parquet_arrow import ColumnarSource, Frame, damage_in

        with damage_in(path):
            table = pa.table({name: np.ascontiguousarray(X[name]) for name in X.dtype.names})
        return ColumnarSource([Frame(table, path)], options)
    return ArraySource(X, None, None, options, path)


def open_npz(path: str, options: ReadOptions) -> Source:
    """Open an .npz file: the array X or a matrix saved by scipy, and the arrays named by `target` and `weight`."""
    try:
        with zipfile.ZipFile(path) as archive:
            held = sum(info.file_size for info in archive.infolist())
            packed = sum(info.compress_size for info in archive.infolist())
        if held > max(FREE, RATIO * packed):
            raise SourceError(f"{path}: expands to more than {RATIO} times its size (beyond {FREE >> 20} MiB)")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except SourceError:
        raise
    except Exception as error:  # as above
        raise SourceError(f"{path}: {getattr(error, 'strerror', None) or _reason(error)}") from None
    if {"data", "indices", "indptr", "shape"} <= arrays.keys():
        from scipy.sparse import csr_matrix

        if "format" in arrays and arrays["format"].ravel().tolist() not in ([b"csr"], ["csr"]):
            raise SourceError(f"{path}: the matrix is not saved as CSR")
        try:
            X: Any = csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        except (ValueError, TypeError) as error:
            raise SourceError(f"{path}: this is not a CSR matrix: {_reason(error)}") from None
        if X.shape[1] > max_columns():
            raise SourceError(f"{path}: {X.shape[1]:,} columns, but memory has room for {max_columns():,}")
    elif "X" in arrays:
        X = arrays["X"]
    else:
        raise SourceError(f"{path}: there is no array 'X' (arrays: {shown_names(list(arrays))})")
    beside: list[np.ndarray | None] = []
    for name in (options.target, options.weight):
        if name is not None and name not in arrays:
            raise SourceError(f"{path}: there is no array {name!r}{suggestion(name, list(arrays))}")
        beside.append(None if name is None else arrays[name])
    return ArraySource(X, beside[0], beside[1], options, path)


def _reason(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else "cannot be read"
    return "it holds Python objects, which are never unpickled" if "allow_pickle" in text else text
