"""A sum of words, each times a number of its own position, so that what is changed or moved by accident changes it.

There are two: of words as they lie in memory, and of the rows of a batch method, in which zeros count for nothing. The
second is the same for dense and sparse rows, and for float32 and float64. The highest bit of a word is lost in pairs:
where an even number of values differ in that bit alone (bit 31 of a double), the sum stays the same.
"""

import numpy as np

from .compiler import inlined, kernel
from .simd import bits, wide

U = np.uint64
SPREAD, HALF, ONE = U(0x9E3779B97F4A7C15), U(32), U(1)  # 2^64 divided by the golden ratio
WEIGHT = U(0xD6E8FEB86659FD93)  # the factor of a row's weight
LOG, LAST = U(6), U(63)  # rounds come in groups of 64, whose factors are those of the first group times another
GROUPS = U(1 << 40)  # positions of the factors of groups
ROUNDS, ROWS, TARGETS = range(3)  # what the sums of rounds are of


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


# ---------------------------------------------------------------- the rows of a batch method


@inlined
def word(x):  # type: ignore[no-untyped-def]
    """The same word for equal numbers, 0 for 0 and -0; its highest bit, which a factor of 2 loses, is not the sign."""
    b = bits(x + 0.0)
    return (b << HALF) | (b >> HALF)


@inlined
def odd_word(x):  # type: ignore[no-untyped-def]
    """A word for a number that changes its sign with it."""
    return U(0) - word(-x) if x < 0.0 else word(x)


@inlined
def weight_word(c):  # type: ignore[no-untyped-def]
    """A word for a weight, 0 for 1."""
    return (word(c) - word(1.0)) * WEIGHT


@inlined
def round_factor(t):  # type: ignore[no-untyped-def]
    """The factor of round t."""
    return factor((t >> LOG) + GROUPS) * factor(t & LAST)


def factors(positions):  # type: ignore[no-untyped-def]
    """The factors of an array of positions."""
    k = positions * SPREAD
    return (k ^ (k >> HALF)) | ONE


@kernel
def dense_words(values, factors, first, last, out):  # type: ignore[no-untyped-def]
    """The word of each row of an array: a sum over its columns."""
    wide()
    for t in range(first, last):
        total = U(0)
        for j in range(values.shape[1]):
            total += word(values[t, j]) * factors[j]
        out[t - first] = total


@kernel
def sparse_words(data, indices, indptr, first, last, out):  # type: ignore[no-untyped-def]
    """The same for sparse rows."""
    for t in range(first, last):
        total = U(0)
        for k in range(indptr[t], indptr[t + 1]):
            total += word(data[k]) * factor(indices[k])
        out[t - first] = total


@kernel
def add_rounds(words, y, c, sums):  # type: ignore[no-untyped-def]
    """Add rounds to the sums: the words of their rows, their targets and weights.

    A weight of 0 is no round.
    """
    t, rows, targets = sums[ROUNDS], sums[ROWS], sums[TARGETS]
    for i in range(c.size):
        if c[i] > 0.0:
            here = round_factor(t)
            rows += (words[i] + weight_word(c[i])) * here
            targets += odd_word(y[i]) * here
            t += ONE
    sums[ROUNDS], sums[ROWS], sums[TARGETS] = t, rows, targets


@kernel
def add_unordered(words, y, c, sums):  # type: ignore[no-untyped-def]
    """Add rows to sums that do not depend on their order."""
    for i in range(y.size):
        if c[i] > 0.0:
            x = words[i] + weight_word(c[i]) + odd_word(y[i]) * SPREAD
            x = (x ^ (x >> HALF)) * WEIGHT
            sums[ROWS] += x ^ (x >> HALF)
            sums[TARGETS] += odd_word(y[i])
            sums[ROUNDS] += ONE
