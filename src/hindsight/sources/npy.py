"""Arrays in .npy files, read a few rows at a time.

They are read, not mapped: a mapped file that shrinks meanwhile would end the process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import SourceError


@dataclass(frozen=True)
class ArrayFile:
    """A C-contiguous array in a file, whose rows from `offset` on are read when they are asked for."""

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


def open_array(path: str) -> np.ndarray | ArrayFile:
    """The array of a .npy file: read when it is asked for, or at once if it is not by rows or has named fields.

    Raises
    ------
    ValueError, OSError, EOFError
        If this is not such a file, is too short, or holds Python objects.
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
