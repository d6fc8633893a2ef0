"""A sum of words, each times a number that depends on its position, to detect accidental changes and reordering."""

import numpy as np

from .compiler import kernel

U = np.uint64
SPREAD, HALF, ONE = U(0x9E3779B97F4A7C15), U(32), U(1)  # 2^64 divided by the golden ratio


@kernel
def checksum(words, first, step):  # type: ignore[no-untyped-def]
    """The sum over a 2-D array of unsigned integers, whose row r begins at position first + r step."""
    total = U(0)
    for r in range(words.shape[0]):
        for j in range(words.shape[1]):
            word, k = U(words[r, j]), U(first + r * step + j) * SPREAD
            factor = (k ^ (k >> HALF)) | ONE  # an odd number that looks random
            total += (word ^ (word >> HALF)) * factor  # a sign must not stay the highest bit
    return total
