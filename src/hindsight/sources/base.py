"""What every source provides: chunks of rows, the place of each row in the data, and a position to resume from."""

from __future__ import annotations

import difflib
import heapq
import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import NoRowsError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

CHUNK = 1 << 22  # bytes of text, or of the values of a table, in a chunk
MISSING_RULES = ("indicator", "zero", "mean", "skip", "error")
FIRST_ROWS = 10_000  # rows from which the types of columns are inferred
SHOWN_RAW = 120  # characters of a raw row shown in an error
Position = dict[str, Any]


class Reject(NamedTuple):
    """A bad row that was skipped.

    Attributes
    ----------
    file : str
        The file, or "data" for rows in memory.
    line : int
        Its line, from 1, in text; otherwise its row, from 0.
    column : str
        The column at fault, or "".
    reason : str
        What is wrong.
    raw : str
        The raw text of the row.
    """

    file: str
    line: int
    column: str
    reason: str
    raw: str


class BadRow(NamedTuple):
    """A row that cannot be used: its line or number, the column at fault, what is wrong, and its raw text."""

    number: int
    column: str
    reason: str
    raw: str


class EncodedRows(NamedTuple):
    """Rows in the form that a chunk has, and the faults found in them.

    Attributes
    ----------
    X, y, weight : array, or None
        The rows, without those that are bad or skipped.
    keep : ndarray of bool
        Which of the rows that were read these are.
    faults : dict of int to (str, str)
        The column at fault and the reason, by the index of the bad row.
    """

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    keep: np.ndarray
    faults: dict[int, tuple[str, str]]


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading; each field is a parameter of `open_source`."""

    target: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    format: str | None = None
    header: bool | None = True
    separator: str | None = None
    categorical: Sequence[str] | str = ()
    missing: str = "error"
    labels: bool | None = None
    zero_based: bool = False
    hash_bits: int | None = None
    rejects: bool = False
    chunk: int = CHUNK
    ahead: bool = True
    digest: bool = False
    strict: bool = True
    types: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    decimal: str | None = None
    na: Sequence[str] = ()
    scan: int = FIRST_ROWS
    cross: Sequence[Sequence[str]] = ()
    state: Mapping[str, Any] | None = None


@dataclass
class Chunk:
    """Some consecutive rows of a source.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features) or scipy.sparse.csr_matrix
        The rows: a C-contiguous float array, or a CSR matrix whose indices are ascending and unique.
    y : ndarray of shape (n_rows,) or None
        The targets: float64, or text where not every target is a number. None if no target was asked for.
    weight : ndarray of shape (n_rows,) or None
        The importance of each row.
    first : int
        The number of the first row in the source, from 0, bad rows not counted.
    position : dict
        The position from which to resume after this chunk (see `Source.chunks`); plain values for JSON.
    read : int
        How many bytes of the source have been read.
    place : callable
        `place(i)` is the place of row i of the chunk for error messages, such as "data.csv, line 17".
    raw : callable
        `raw(i)` is the raw text of row i.
    rejects : list of Reject
        The bad rows that were skipped before or among these rows.
    batch : tuple of (pyarrow.RecordBatch, int), or None
        For a table of typed columns, the batch that the rows were made from and the number of its first row.

    Examples
    --------
    >>> from hindsight import open_source
    >>> source = open_source((np.eye(2), [1.0, -1.0]), "y")
    >>> chunk = next(source.chunks())
    >>> len(chunk), chunk.y.tolist(), chunk.place(1)
    (2, [1.0, -1.0], 'data, row 1')
    """

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    first: int = 0
    position: Position = field(default_factory=dict)
    read: int = 0
    place: Callable[[int], str] = "row {}".format
    raw: Callable[[int], str] = str
    rejects: list[Reject] = field(default_factory=list)
    batch: tuple[Any, int] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])


class Source:
    """Rows to be read chunk by chunk; `open_source` makes one.

    A format is a subclass that has `_chunks`, `names` and `restore`.

    Attributes
    ----------
    where : str
        The name of the source in messages.
    kind : {"dense", "sparse"}
        Whether the rows of a chunk are a 2-D array or a CSR matrix.
    names : sequence of str
        Names of the features, up to the last chunk given.
    reread : bool
        Whether the rows can be read more than once; False for standard input.
    size : int or None
        Bytes in all, if known.
    rejected : int
        Bad rows skipped so far.
    digest : str or None
        SHA-256 of the data up to the last chunk, if `digest` is set.
    width : int
        The number of columns up to the last chunk given.
    label_type : {"boolean", "integer", "float", "text"} or None
        The type of the targets, up to the last chunk; None if they were read as text, as in CSV.
    decided : bool
        Whether the types of the columns of a table were inferred, and are part of its state.
    preparation : str
        A short description of what was done to the rows beforehand; "" for nothing.

    Examples
    --------
    Stop after a chunk and resume there with another source:

    >>> from hindsight import open_source
    >>> data = np.arange(12.0).reshape(6, 2)
    >>> first = open_source(data, "2", chunk=32)
    >>> chunk = next(first.chunks())
    >>> second = open_source(data, "2", chunk=32)
    >>> second.restore(first.state())
    >>> [chunk.first for chunk in second.chunks(start=chunk.position)]
    [2, 4]
    """

    kind = "dense"
    reread = True
    size: int | None = None
    width = 0
    label_type: str | None = None
    preparation = ""
    decided = False
    reported: tuple[str, ...] = ("width", "label_type")  # fields of the source that the position after a chunk records

    def __init__(self, where: str, options: ReadOptions) -> None:
        self.where, self.options = where, options
        self.rejected = 0
        self.digest: str | None = None

    @property
    def names(self) -> Sequence[str]:
        """Names of the features, up to the last chunk given: fixed for a table, otherwise in order of appearance."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """How names are mapped to columns, up to the last chunk given.

        Returns
        -------
        dict
            Plain values for JSON, to be given to `restore`.
        """
        return {"names": list(self.names)}

    def restore(self, state: dict[str, Any]) -> None:
        """Map names to columns as another source did, from its state.

        Parameters
        ----------
        state : dict
            What `state` returned.

        Raises
        ------
        SourceError
            If this source has other features.
        """
        raise NotImplementedError

    def follow(self, state: dict[str, Any]) -> None:
        """Map names to columns as in a state, and treat the next rows as the continuation of the rows it describes.

        Parameters
        ----------
        state : dict
            What `state` of another source returned after all its rows were read.
        """
        self.restore(state)

    def freeze(self) -> None:
        """Stop learning names and statistics from further rows, because they will be predicted, not learnt."""

    def resolved_options(self) -> dict[str, Any]:
        """Return parameters of `open_source` as resolved for this data, to read other files in the same way.

        Returns
        -------
        dict
            The features and categorical columns of a table; empty for other data.
        """
        return {}

    def chunks(self, start: Position | None = None) -> Iterator[Chunk]:
        """Read the rows chunk by chunk; the next chunk is read in a thread while one is used.

        Parameters
        ----------
        start : dict, default None
            The `position` of a chunk, to resume after it; None reads all rows.

        Yields
        ------
        Chunk
            The next rows.

        Raises
        ------
        SourceError
            If the data cannot be read, a row is bad, or, with `digest`, the data before `start` has changed.
        """
        if start is not None and not self.reread:
            raise SourceError(f"{self.where} cannot be read again from where it stopped")
        chunks = self._chunks(start)
        self.rejected, empty = (start or {}).get("rejected", 0), start is None
        for chunk in read_ahead(chunks) if self.options.ahead else chunks:
            self.rejected += len(chunk.rejects)
            empty = empty and not len(chunk) and not chunk.rejects
            digest = chunk.position.get("digest")
            if callable(digest):  # it was computed in a thread meanwhile
                digest = chunk.position["digest"] = digest()
            self.digest = digest
            for name in self.reported:
                setattr(self, name, chunk.position.get(name, getattr(self, name)))
            yield chunk
        if empty:
            raise NoRowsError(f"{self.where}: there is no row")

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        raise NotImplementedError

    def _as_chunk(
        self, rows: EncodedRows, numbers: np.ndarray, raw: Callable[[int], str], at: Position, read: int, where: str,
        unit: str = "row", bad: Sequence[BadRow] = (),
    ) -> Chunk:  # fmt: skip
        """Return rows as a chunk with the bad ones as rejects, or raise a SourceError; `at` is moved past them.

        `numbers` holds the lines or numbers of all rows, `raw` returns their raw text, and `bad` lists further bad
        rows.
        """
        faults = (BadRow(int(numbers[t]), *why, raw(t)) for t, why in sorted(rows.faults.items()))
        rejects = [self._reject(where, unit, row) for row in heapq.merge(faults, bad)]
        if not rows.keep.all():
            index, of_all = np.flatnonzero(rows.keep), raw
            numbers, raw = numbers[index], lambda i: of_all(int(index[i]))
        first, place = at["row"], lambda i: f"{where}, {unit} {numbers[i]}"
        at |= {"row": first + len(numbers), "rejected": at["rejected"] + len(rejects)}
        return Chunk(*rows[:3], first, dict(at), read, place, raw, rejects)

    def _refuse_changed(self, start: Position | None, digest: Callable[[], str], what: str = "") -> None:
        """Raise a SourceError if the data before a position has changed; `digest` is its digest now."""
        if start is not None and start["digest"] is not None and digest() != start["digest"]:
            raise SourceError(f"{self.where}: has changed since it was read{what}")

    def _reject(self, where: str, unit: str, row: BadRow) -> Reject:
        """Return a bad row to be skipped, or raise a SourceError if bad rows are errors; `unit` is "line" or "row"."""
        if self.options.rejects:
            return Reject(where, *row)
        number, column, reason, raw = row
        at_column = f", column {column!r}" if column else ""
        shown = raw if len(raw) <= SHOWN_RAW else raw[:SHOWN_RAW] + "..."
        raise SourceError(f"{where}, {unit} {number}{at_column}: {reason} (row: {shown!r})") from None


def read_ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Yield the same items, each computed in a thread while the previous one is in use."""
    ready: queue.Queue[Any] = queue.Queue(1)
    stop = threading.Event()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
            put((None, None))
        except BaseException as error:
            put((None, error))

    thread = threading.Thread(target=work, name="source", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        stop.set()


def check_known(names: Iterable[str | None], known: Sequence[str], where: str, what: str = "column") -> None:
    """Raise an error for a name that is not known; None is ignored."""
    there = frozenset(known)
    for name in names:
        if name is not None and name not in there:
            raise SourceError(f"{where}: there is no {what} {name!r}{suggestion(name, known)}")


def suggestion(name: str, names: Sequence[str]) -> str:
    """The end of an error message about an unknown name: the nearest known name, or a list of them."""
    near = difflib.get_close_matches(name, names, 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f" (columns: {shown_names(names)})"


def shown_names(names: Sequence[str]) -> str:
    """At most 20 names in one line; names with unprintable characters are quoted."""
    shown = [name if name.isprintable() else repr(name) for name in names[:20]]
    return ", ".join(shown) + (", ..." if len(names) > 20 else "")


def select_rows(keep: np.ndarray, *parts: Any) -> tuple[Any, ...]:
    """Select rows from arrays of rows, targets, weights and so on; None stays None."""
    return parts if keep.all() else tuple(None if part is None else part[keep] for part in parts)


def without_faults(
    X: Any, y: np.ndarray | None, weight: np.ndarray | None, faults: dict[int, tuple[str, str]],
    left_out: Collection[int] = (),
) -> EncodedRows:  # fmt: skip
    """Drop the rows that have a fault and those in `left_out`; the faults of the latter are not reported."""
    keep = np.ones(X.shape[0], bool)
    keep[[*faults, *left_out]] = False
    X, y, weight = select_rows(keep, X, y, weight)
    return EncodedRows(X, y, weight, keep, {t: why for t, why in faults.items() if t not in left_out})


def first_position(start: Position | None, **more: Any) -> Position:
    """A copy of `start`, or the position before the first row; `more` are fields that a format adds to it."""
    return {"offset": 0, "row": 0, "rejected": 0, "width": 0, "digest": None} | more | (start or {})
