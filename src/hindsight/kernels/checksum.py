"""A sum of words, each times a number of its own position: whatever is changed or moved changes the sum."""

import numpy as np

from .compiler import inlined, kernel

U = np.uint64
SPREAD, HALF, ONE = U(0x9E3779B97F4A7C15), U(32), U(1)  # 2^64 divided by the golden ratio


@inlined
def factor(position):  # type: ignore[no-untyped-def]
    """An odd number that looks random."""
    k = U(position) * SPREAD
    return (k ^ (k >> HALF)) | ONE


@kernel
def checksum(words, first, step):  # type: ignore[no-untyped-def]
    """The sum over a 2-D array of unsigned integers, whose row r begins at position first + r step."""
    total = U(0)
    for r in range(words.shape[0]):
        for j in range(words.shape[1]):
            word = U(words[r, j])
            total += (word ^ (word >> HALF)) * factor(first + r * step + j)  # a sign must not stay the highest bit
    return total
