"""The dictionary of feature names, in order of first sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """Names numbered in order of first sight; compiled parsers look names up and enter new ones in `arrays`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._room(1024, 1 << 14)
        self.known: list[str] = []
        for name in names:
            self.add(name)

    def _room(self, count: int, size: int) -> None:
        self.arrays = parsers.Names(
            np.zeros(2 * count, np.int64),
            np.zeros(count, np.uint64),
            np.zeros(count + 1, np.int64),
            np.zeros(size, np.uint8),
            np.zeros(1, np.int64),
        )

    def grow(self) -> None:
        """Twice the room."""
        old, n = self.arrays, int(self.arrays.used[0])
        self._room(2 * old.hashes.size, 2 * old.text.size)
        new = self.arrays
        new.hashes[:n], new.ends[: n + 1], new.text[: old.text.size] = old.hashes[:n], old.ends[: n + 1], old.text
        new.used[0] = n
        parsers.rehash(new)

    def add(self, name: str) -> int:
        """The number of a name, entered if it is new."""
        data = np.frombuffer(name.encode("utf-8", "surrogateescape"), np.uint8)
        while True:
            k = parsers.enter(self.arrays, np.uint64(fnv1a(data.tobytes())), data)
            if k >= 0:
                return int(k)
            self.grow()

    def __len__(self) -> int:
        return int(self.arrays.used[0])

    def names(self, count: int) -> list[str]:
        """The first so many names."""
        ends, text = self.arrays.ends, self.arrays.text
        for k in range(len(self.known), count):
            self.known.append(text[ends[k] : ends[k + 1]].tobytes().decode("utf-8", "surrogateescape"))
        return self.known[:count]
