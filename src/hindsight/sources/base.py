"""What every source gives: chunks of rows, with where each row stands and how to go on from there."""

from __future__ import annotations

import difflib
import math
import queue
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
from ..errors import SourceError

CHUNK = 1 << 20  # bytes of text, or of the values of a table, that make a chunk
MISSING = ("error", "zero", "skip")
Position = dict[str, Any]


class Reject(NamedTuple):
    """A bad row that was passed over: where it stands, which column, why, and its raw text."""

    file: str
    line: int
    column: str
    reason: str
    raw: str


@dataclass(frozen=True)
class Options:
    """How to read; every field is a parameter of `open_source`."""

    target: str | None = None
    weight: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    format: str | None = None
    header: bool = True
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


@dataclass
class Chunk:
    """Some rows in the order of the source.

    `X` is a C-contiguous float array or a scipy CSR matrix with ascending, unique indices; `y` is float64, or text
    where not every target is a number; `weight` is float64 or None; `first` is the number of the first row, from 0,
    bad rows not counted; `position` is where reading goes on after this chunk; `read` is how many bytes that took.
    """

    X: Any
    y: np.ndarray | None
    weight: np.ndarray | None
    first: int
    position: Position
    read: int
    place: Callable[[int], str]
    raw: Callable[[int], str]
    rejects: list[Reject] = field(default_factory=list)

    def __len__(self) -> int:
        return int(self.X.shape[0])


class Source:
    """Rows to be read chunk by chunk. A format says how, in `_chunks`."""

    kind = "dense"
    reread = True
    size: int | None = None

    def __init__(self, where: str, options: Options) -> None:
        self.where, self.options = where, options
        self.rejected = 0
        self.digest: str | None = None

    @property
    def names(self) -> Sequence[str]:
        """Names of the features, up to the last chunk given: fixed for a table, in order of first sight elsewhere."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """What maps names to columns, up to the last chunk given; plain values for JSON."""
        return {"names": list(self.names)}

    def restore(self, state: dict[str, Any]) -> None:
        """Map names to columns as the source did that gave this state."""
        raise NotImplementedError

    def chunks(self, start: Position | None = None) -> Iterator[Chunk]:
        """The rows after `start` (the `position` of a chunk, None for all); a changed prefix is refused there.

        The next chunk is read in a thread while this one is used.
        """
        if start is not None and not self.reread:
            raise SourceError(f"{self.where} cannot be read again from where it stopped")
        chunks = self._chunks(start)
        self.rejected = (start or {}).get("rejected", 0)
        for chunk in ahead(chunks) if self.options.ahead else chunks:
            self.rejected += len(chunk.rejects)
            digest = chunk.position.get("digest")
            if callable(digest):  # it was reckoned in a thread meanwhile
                digest = chunk.position["digest"] = digest()
            self.digest = digest
            self._given(chunk)
            yield chunk

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        raise NotImplementedError

    def _given(self, chunk: Chunk) -> None:
        """Note that the chunk has been given out."""


class Pool:
    """Arrays to be filled again once nobody holds any part of them: fresh memory costs a third of reading."""

    def __init__(self) -> None:
        self.held: dict[str, list[np.ndarray]] = {}

    def take(self, name: str, shape: int | tuple[int, ...], kind: Any = np.float64) -> np.ndarray:
        """An array of any content. Views of it, and theirs, keep it from being taken again."""
        size = shape if isinstance(shape, int) else math.prod(shape)
        held = self.held.setdefault(name, [])
        free = [k for k in range(len(held)) if sys.getrefcount(held[k]) == 2]  # the list's and the call's own
        for k in free:
            if size <= held[k].size:
                return held[k][:size].reshape(shape)
        for k in reversed(free):
            del held[k]
        held.append(np.empty(size, kind))
        return held[-1][:size].reshape(shape)


def ahead(items: Iterator[Any]) -> Iterator[Any]:
    """The same items, each made in a thread while the one before is used."""
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


def nearest(name: str, names: Sequence[str]) -> str:
    """A hint at what may have been meant."""
    near = difflib.get_close_matches(name, names, 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    shown = [known if known.isprintable() else repr(known) for known in names[:20]]
    return f" (columns: {', '.join(shown)}{', ...' if len(names) > 20 else ''})"


def label_text(y: np.ndarray) -> np.ndarray:
    """Targets as text; numbers the shortest way, whole ones without a point."""
    if y.dtype.kind not in "fiub":
        return y.astype(str)
    values, back = np.unique(y, return_inverse=True)
    texts = [str(int(v)) if float(v).is_integer() and abs(v) < 1e16 else repr(float(v)) for v in values]
    return np.array(texts or [""])[back] if len(values) else np.array([], "<U1")
