"""The dictionary of feature names, in order of first sight."""

from __future__ import annotations

import base64
import threading
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import parsers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def padded(data: bytes) -> np.ndarray:
    """Bytes, and zeros after them, as the parsers want them."""
    return np.frombuffer(data + b"\0" * 8, np.uint8)


class Dictionary:
    """Names numbered in order of first sight; compiled parsers look names up and enter new ones in `keys`.

    A name in a space (of Vowpal Wabbit, or a column with categories) is written space, `link`, name.
    """

    def __init__(self, names: Iterable[str] = (), spaces: Iterable[str] = (), link: str = "^") -> None:
        self.link, self.lock = link, threading.Lock()
        self.known: list[str] = []
        self.keys = _room(1024, 1 << 14, 64, 1 << 10)
        for space in ("", *spaces):
            self._space(space)
        for name in names:
            self.add(name)

    def grow(self) -> None:
        """Twice the room. Another thread may be reading names already given out: it finds the old room or the new."""
        old = self.keys
        new = _room(2 * old.hashes.size, 2 * old.text.size, 2 * old.space_ends.size, 2 * old.space_text.size)
        for was, now in zip(old[1:], new[1:], strict=True):
            now[: was.size] = was
        parsers.rehash(new)
        self.keys = new

    def _space(self, name: str) -> None:
        """Enter a space, whatever its name: a column may have none."""
        data = np.frombuffer(name.encode("utf-8", "surrogateescape"), np.uint8)
        n = int(self.keys.used[1])
        begin = int(self.keys.space_ends[n])
        while n + 1 >= self.keys.space_ends.size or begin + data.size > self.keys.space_text.size:
            self.grow()
        self.keys.space_text[begin : begin + data.size] = data
        self.keys.space_ends[n + 1], self.keys.used[1] = begin + data.size, n + 1

    def add(self, name: str, space: int = 0) -> int:
        """The number of a name, entered if it is new."""
        data = name.encode("utf-8", "surrogateescape")
        while True:
            k = parsers.column_of_name(self.keys, space, padded(data), len(data))
            if k >= 0:
                return int(k)
            self.grow()

    def __len__(self) -> int:
        return int(self.keys.used[0])

    def names(self, count: int) -> Sequence[str]:
        """The first so many names."""
        with self.lock:
            first, keys = len(self.known), self.keys
            if count > first:
                ends, text = keys.ends, keys.text
                stems = ["" if k == 0 else space + self.link for k, space in enumerate(_spaces(keys))]
                spaces = _space_of(keys, count)
                self.known += [stems[spaces[k]] + _text(text, ends[k], ends[k + 1]) for k in range(first, count)]
            return self.known[:count]

    def state(self, count: int) -> dict[str, Any]:
        """The first so many names, for `restore`."""
        names, keys = self.names(count), self.keys
        return {"names": names, "spaces": _spaces(keys)[1:], "space": _space_of(keys, count).tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        """The names of a state."""
        spaces = state["spaces"]
        self.__init__((), spaces, self.link)  # type: ignore[misc]
        for name, k in zip(state["names"], state["space"], strict=True):
            self.add(name[len(spaces[k - 1]) + len(self.link) :] if k else name, k)


def _room(count: int, size: int, spaces: int, space_size: int) -> parsers.NameLookup:
    return parsers.NameLookup(
        np.zeros((2 * count, 2), np.uint64),
        np.zeros(count, np.uint64),
        np.zeros(count, np.uint64),
        np.zeros(count + 1, np.int64),
        np.zeros(size + 8, np.uint8),
        np.zeros(spaces + 1, np.int64),
        np.zeros(space_size, np.uint8),
        np.zeros(2, np.int64),
    )


def _spaces(keys: parsers.NameLookup) -> list[str]:
    ends, text = keys.space_ends, keys.space_text
    return [_text(text, ends[k], ends[k + 1]) for k in range(int(keys.used[1]))]


def _space_of(keys: parsers.NameLookup, count: int) -> np.ndarray:
    return (keys.marks[:count] >> np.uint64(40)).astype(np.int64)


def _text(data: np.ndarray, a: int, b: int) -> str:
    return data[a:b].tobytes().decode("utf-8", "surrogateescape")


class Spelled(Sequence[str]):
    """Names that are numbers: "1", "2", ... from a first one on."""

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


class Numbers:
    """Columns by index; their names are the indices as they stand in the file."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.keys = parsers.IndexLookup(base, np.zeros(1, np.int64))

    def names(self, count: int) -> Sequence[str]:
        """The first so many names."""
        return Spelled(self.base, count)

    def state(self, count: int) -> dict[str, Any]:
        """The number of columns, for `restore`."""
        return {"columns": count}

    def restore(self, state: dict[str, Any]) -> None:
        """The number of columns of a state."""
        self.keys.used[0] = state["columns"]


class Buckets:
    """Columns by hash. Columns that more than one name is mapped to are counted (but for one pair in 2^14)."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.keys = parsers.HashLookup(np.zeros(1 << bits, np.uint16), np.array([1 << bits, 0, 0]))

    def add(self, name: str) -> int:
        """The column of a name."""
        data = name.encode("utf-8", "surrogateescape")
        return int(parsers.column_of_name(self.keys, 0, padded(data), len(data)))

    def names(self, count: int) -> Sequence[str]:
        """Names of the columns, by number: the names of the features are not kept."""
        return Spelled(0, 1 << self.bits, "#{}")

    @property
    def used(self) -> int:
        """Columns that some name is mapped to."""
        return int(self.keys.used[1])

    @property
    def collisions(self) -> int:
        """Columns that more than one name is mapped to."""
        return int(self.keys.used[2])

    def state(self, count: int) -> dict[str, Any]:
        """What was seen of each column, for `restore`."""
        prints = base64.b64encode(zlib.compress(self.keys.fingerprints.tobytes(), 1)).decode()
        return {"bits": self.bits, "used": self.keys.used.tolist(), "prints": prints}

    def restore(self, state: dict[str, Any]) -> None:
        """What a state saw of each column."""
        self.keys.fingerprints[:] = np.frombuffer(zlib.decompress(base64.b64decode(state["prints"])), np.uint16)
        self.keys.used[:] = state["used"]
