"""A sum of words, each times a number of its own position: whatever is changed or moved changes the sum.

There are two: of words as they lie in memory, and of the rounds of a run, in which zeros count for nothing. The second
is the same for dense and sparse rows, and for float32 and float64.
"""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from .compiler import inlined, kernel
from .simd import wide

U = np.uint64
SPREAD, HALF, ONE = U(0x9E3779B97F4A7C15), U(32), U(1)  # 2^64 divided by the golden ratio
WEIGHT = U(0xD6E8FEB86659FD93)  # the factor of a row's weight
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


# ---------------------------------------------------------------- the rounds of a run


@intrinsic  # type: ignore[untyped-decorator]
def bits(context, x):  # type: ignore[no-untyped-def]
    """The 64 bits of a number."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.float64), build


@inlined
def word(x):  # type: ignore[no-untyped-def]
    """The same word for equal numbers, 0 for 0 and for -0."""
    b = bits(x + 0.0)
    return b ^ (b >> HALF)


@inlined
def odd_word(x):  # type: ignore[no-untyped-def]
    """A word for a number that changes its sign with it."""
    return U(0) - word(-x) if x < 0.0 else word(x)


@inlined
def add_round(x, y, c, sums):  # type: ignore[no-untyped-def]
    """Add a round to the sums: the word of its row, its target and its weight; none where the weight is 0."""
    if c > 0.0:
        here = factor(sums[ROUNDS])
        x += word(c) * WEIGHT
        sums[ROWS] += (x ^ (x >> HALF)) * here
        sums[TARGETS] += odd_word(y) * here
        sums[ROUNDS] += ONE


@kernel
def column_factors(out):  # type: ignore[no-untyped-def]
    """The factor of each column."""
    for j in range(out.size):
        out[j] = factor(j)


@kernel
def dense_words(values, factors, first, last, out):  # type: ignore[no-untyped-def]
    """The word of each row of an array; that of a row of zeros is 0."""
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
    """Add rounds, from the words of their rows."""
    for i in range(y.size):
        add_round(words[i], y[i], c[i], sums)


@kernel
def add_single(rows, y, c, sums):  # type: ignore[no-untyped-def]
    """Add the round of the one row of `rows`."""
    total = U(0)
    a, b = rows.span(0)
    for k in range(a, b):
        total += word(rows.entry(0, k)) * factor(rows.index(k))
    add_round(total, y[0], c[0], sums)


@kernel
def add_opposites(rounds, sums):  # type: ignore[no-untyped-def]
    """Turn targets 0 and 1 into their opposites in the sums of so many rounds."""
    total = U(0)
    for t in range(rounds):
        total += factor(t)
    sums[TARGETS] = word(1.0) * total - sums[TARGETS]
