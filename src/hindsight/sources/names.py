"""The dictionary of feature names, in order of first sight."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import parsers

if TYPE_CHECKING:
    from collections.abc import Iterable


def fnv1a(data: bytes) -> int:
    """FNV-1a, 64 bits."""
    h = int(parsers.FNV_START)
    for byte in data:
        h = (h ^ byte) * int(parsers.FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return h


class Dictionary:
    """Names numbered in order of first sight; compiled parsers look names up and enter new ones in `keys`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._room(1024, 1 << 14)
        self.known: list[str] = []
        for name in names:
            self.add(name)

    def _room(self, count: int, size: int) -> None:
        self.keys = parsers.Names(
            np.zeros(2 * count, np.int64),
            np.zeros(count, np.uint64),
            np.zeros(count + 1, np.int64),
            np.zeros(size, np.uint8),
            np.zeros(1, np.int64),
        )

    def grow(self) -> None:
        """Twice the room."""
        old, n = self.keys, int(self.keys.used[0])
        self._room(2 * old.hashes.size, 2 * old.text.size)
        new = self.keys
        new.hashes[:n], new.ends[: n + 1], new.text[: old.text.size] = old.hashes[:n], old.ends[: n + 1], old.text
        new.used[0] = n
        parsers.rehash(new)

    def add(self, name: str) -> int:
        """The number of a name, entered if it is new."""
        data = np.frombuffer(name.encode("utf-8", "surrogateescape"), np.uint8)
        while True:
            k = parsers.enter(self.keys, np.uint64(fnv1a(data.tobytes())), data)
            if k >= 0:
                return int(k)
            self.grow()

    def __len__(self) -> int:
        return int(self.keys.used[0])

    def state(self, count: int) -> dict[str, Any]:
        """The first so many names, for `restore`."""
        return {"names": self.names(count)}

    def restore(self, state: dict[str, Any]) -> None:
        """The names of a state."""
        self.__init__(state["names"])  # type: ignore[misc]

    def names(self, count: int) -> Sequence[str]:
        """The first so many names."""
        ends, text = self.keys.ends, self.keys.text
        for k in range(len(self.known), count):
            self.known.append(text[ends[k] : ends[k + 1]].tobytes().decode("utf-8", "surrogateescape"))
        return self.known[:count]


class Spelled(Sequence[str]):
    """Names that are numbers: "1", "2", ... from a first one on."""

    def __init__(self, first: int, count: int, form: str = "{}") -> None:
        self.first, self.count, self.form = first, count, form

    def __len__(self) -> int:
        return self.count

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> list[str]: ...
    def __getitem__(self, k: int | slice) -> str | list[str]:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(self.count))]
        if not -self.count <= k < self.count:
            raise IndexError(k)
        return self.form.format(self.first + k % self.count)


class Numbers:
    """Columns by index; their names are the indices as they stand in the file."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.keys = parsers.Indices(base, np.zeros(1, np.int64))

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
        self.keys = parsers.Hashed(np.zeros(1 << bits, np.uint16), np.array([1 << bits, 0, 0]))

    def add(self, name: str) -> int:
        """The column of a name."""
        data = np.frombuffer(name.encode("utf-8", "surrogateescape"), np.uint8)
        return int(parsers.enter(self.keys, np.uint64(fnv1a(data.tobytes())), data))

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
        prints = base64.b64encode(zlib.compress(self.keys.prints.tobytes(), 1)).decode()
        return {"bits": self.bits, "used": self.keys.used.tolist(), "prints": prints}

    def restore(self, state: dict[str, Any]) -> None:
        """What a state saw of each column."""
        self.keys.prints[:] = np.frombuffer(zlib.decompress(base64.b64decode(state["prints"])), np.uint16)
        self.keys.used[:] = state["used"]
