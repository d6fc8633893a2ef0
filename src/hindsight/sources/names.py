"""The names of features and the columns they are mapped to: by a dictionary, by a hash, or by their index.

Each kind has `lookup`, the form that compiled parsers use; `names(count)`, the names of the first columns; `state` and
`restore`; and `len`, the number of columns so far.
"""

from __future__ import annotations

import base64
import threading
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .parsers.lookups import HashLookup, IndexLookup, NameLookup, column_of_name, rehash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class NameDictionary:
    """Names numbered in order of first appearance; compiled parsers add new ones to `lookup`.

    A name in a namespace (of Vowpal Wabbit, or of a categorical column) is written as namespace, `link`, name. With
    `unique`, different names are never written alike: links and backslashes in a namespace are escaped by a backslash,
    and a name without a namespace that contains the link is preceded by one, so `|a b` is "a^b" and `| a^b` is "^a^b".
    """

    def __init__(
        self, names: Iterable[str] = (), spaces: Iterable[str] = (), link: str = "^", unique: bool = False
    ) -> None:
        self.link, self.unique, self.lock = link, unique, threading.Lock()
        self._clear(spaces)
        for name in names:
            self.add(name)

    def _clear(self, spaces: Iterable[str]) -> None:
        """Forget all names and set the namespaces."""
        self.known: list[str] = []
        self.lookup = _allocate(1024, 1 << 14, 64, 1 << 10)
        for space in ("", *spaces):
            self.add_space(space)

    def grow(self) -> None:
        """Double the capacity. A thread that reads names meanwhile sees the old or the new arrays, both complete."""
        old = self.lookup
        new = _allocate(2 * old.hashes.size, 2 * old.text.size, 2 * old.space_ends.size, 2 * old.space_text.size)
        for was, now in zip(old[1:], new[1:], strict=True):
            now[: was.size] = was
        rehash(new)
        self.lookup = new

    def add_space(self, name: str) -> int:
        """Add a namespace, which may have an empty name as a column may, and return its number."""
        data = np.frombuffer(name.encode("utf-8", "surrogateescape"), np.uint8)
        n = int(self.lookup.used[1])
        begin = int(self.lookup.space_ends[n])
        while n + 1 >= self.lookup.space_ends.size or begin + data.size > self.lookup.space_text.size:
            self.grow()
        self.lookup.space_text[begin : begin + data.size] = data
        self.lookup.space_ends[n + 1], self.lookup.used[1] = begin + data.size, n + 1
        return n

    def _stem(self, space: str) -> str:
        """What is written before a name in a namespace."""
        if self.unique:
            space = space.replace("\\", "\\\\").replace(self.link, "\\" + self.link)
        return space + self.link

    def add(self, name: str, space: int = 0) -> int:
        """The column of a name, added if it is new."""
        while (k := _column_of(self.lookup, space, name)) < 0:
            self.grow()
        return k

    def __len__(self) -> int:
        return int(self.lookup.used[0])

    def names(self, count: int) -> Sequence[str]:
        """The first `count` names."""
        with self.lock:
            first, lookup = len(self.known), self.lookup
            if count > first:
                ends, text = lookup.ends, lookup.text
                stems = ["" if k == 0 else self._stem(space) for k, space in enumerate(_spaces(lookup))]
                for k, space in enumerate(_space_of(lookup, count)[first:].tolist(), first):
                    name = _decode(text, ends[k], ends[k + 1])
                    bare = space == 0 and self.unique and self.link in name
                    self.known.append((self.link if bare else stems[space]) + name)
            return self.known[:count]

    def state(self, count: int) -> dict[str, Any]:
        """The first `count` names, for `restore`."""
        names, lookup = self.names(count), self.lookup
        return {"names": names, "spaces": _spaces(lookup)[1:], "space": _space_of(lookup, count).tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        """Replace the names by those of a state."""
        self._clear(state["spaces"])
        for space, name in self.parts(state):
            self.add(name, space)

    def parts(self, state: dict[str, Any]) -> Iterator[tuple[int, str]]:
        """The namespace of each name of a state, and the name in it."""
        stems = ["", *map(self._stem, state["spaces"])]
        for name, k in zip(state["names"], state["space"], strict=True):
            bare = k == 0 and self.unique and name.startswith(self.link)
            yield k, name[len(self.link if bare else stems[k]) :]


def _allocate(count: int, size: int, spaces: int, space_size: int) -> NameLookup:
    """Allocate arrays for `count` names and `spaces` namespaces, and for their bytes."""
    return NameLookup(
        slots=np.zeros((2 * count, 2), np.uint64),
        hashes=np.zeros(count, np.uint64),
        marks=np.zeros(count, np.uint64),
        ends=np.zeros(count + 1, np.int64),
        text=np.zeros(size + 8, np.uint8),
        space_ends=np.zeros(spaces + 1, np.int64),
        space_text=np.zeros(space_size, np.uint8),
        used=np.zeros(2, np.int64),
    )


def _column_of(lookup: Any, space: int, name: str) -> int:
    data = name.encode("utf-8", "surrogateescape")
    padded = np.frombuffer(data + b"\0" * 8, np.uint8)
    return int(column_of_name(lookup, space, padded, len(data)))


def _spaces(lookup: NameLookup) -> list[str]:
    ends, text = lookup.space_ends, lookup.space_text
    return [_decode(text, ends[k], ends[k + 1]) for k in range(int(lookup.used[1]))]


def _space_of(lookup: NameLookup, count: int) -> np.ndarray:
    return (lookup.marks[:count] >> np.uint64(40)).astype(np.int64)


def _decode(data: np.ndarray, a: int, b: int) -> str:
    return data[a:b].tobytes().decode("utf-8", "surrogateescape")


class NumberedNames(Sequence[str]):
    """A sequence of consecutive numbers as names, made on demand.

    Examples
    --------
    >>> list(NumberedNames(1, 3))
    ['1', '2', '3']
    """

    def __init__(self, first: int, count: int, form: str = "{}") -> None:
        self.first, self.size, self.form = first, count, form

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[str]:
        return map(self.form.format, range(self.first, self.first + self.size))

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> list[str]: ...
    def __getitem__(self, k: int | slice) -> str | list[str]:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(self.size))]
        if not -self.size <= k < self.size:
            raise IndexError(k)
        return self.form.format(self.first + k % self.size)


class IndexNames:
    """Columns by index, named after the indices in the file."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.lookup = IndexLookup(base, np.zeros(1, np.int64))

    def __len__(self) -> int:
        return int(self.lookup.used[0])

    def names(self, count: int) -> Sequence[str]:
        """The first `count` names."""
        return NumberedNames(self.base, count)

    def state(self, count: int) -> dict[str, Any]:
        """The number of columns, for `restore`."""
        return {"columns": count}

    def widen(self, count: int) -> int:
        """Extend to at least `count` columns; returns their number."""
        self.lookup.used[0] = max(len(self), count)
        return len(self)

    def restore(self, state: dict[str, Any]) -> None:
        """Set the number of columns from a state."""
        self.lookup.used[0] = state["columns"]


class HashedNames:
    """Columns by hash. Collisions are counted, except that about one pair of names in 2^14 is not noticed."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.lookup = HashLookup(np.zeros(1 << bits, np.uint16), np.array([1 << bits, 0, 0]))

    def __len__(self) -> int:
        return 1 << self.bits

    def add(self, name: str) -> int:
        """The column of a name."""
        return _column_of(self.lookup, 0, name)

    def names(self, count: int) -> Sequence[str]:
        """The numbers of the columns as their names, because the names of features are not kept."""
        return NumberedNames(0, 1 << self.bits, "#{}")

    @property
    def collisions(self) -> int:
        """Columns that several names are mapped to."""
        return int(self.lookup.used[2])

    def state(self, count: int) -> dict[str, Any]:
        """The fingerprints of the columns, for `restore`."""
        prints = base64.b64encode(zlib.compress(self.lookup.fingerprints.tobytes(), 1)).decode()
        return {"bits": self.bits, "used": self.lookup.used.tolist(), "prints": prints}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the fingerprints of the columns from a state."""
        size = self.lookup.fingerprints.nbytes
        prints = zlib.decompressobj().decompress(base64.b64decode(state["prints"]), size)  # however much it expands to
        self.lookup.fingerprints[:] = np.frombuffer(prints, np.uint16)
        self.lookup.used[1:] = state["used"][1:]
