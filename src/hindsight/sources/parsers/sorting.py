"""Rows of a CSR matrix in canonical form: columns ascending, none twice."""

import numpy as np

from ...kernels.compiler import kernel
from .bits import NONE, ONE, U, trailing_zeros

RUN = 12  # keys that are sorted by insertion before they are merged
POSITION = 0xFFFFFFFF  # the part of a key that holds the position
MAX_COLUMNS_PER_VALUE = 16  # above it marks are slower than sorting


@kernel
def sort_and_sum(data, indices, indptr, rows, value, key, bits, sums):
    """Sort each row by column and add up repeated columns, in place; returns the new number of values.

    Repeated values are added in their original order. In rows that are long compared with the number of columns, the
    columns are marked in `bits`, added up in `sums` and read off in order; in other rows keys are sorted, which hold
    the column in their upper bits and the position below. `value`, `key` (two rows), `bits` and `sums` are work space:
    `bits` is zeros, first one bit per column, then one bit per word of those; `sums` has one element per column, or
    none to sort always.
    """
    n, a, words = 0, indptr[0], -(-sums.size // 64)
    for r in range(rows):
        b = indptr[r + 1]
        in_order = True
        for k in range(a + 1, b):
            in_order &= indices[k - 1] < indices[k]
        size = b - a
        if in_order and n == a:  # already in place
            n = a = b
            indptr[r + 1] = n
            continue
        if not in_order and 0 < bits.size - words <= MAX_COLUMNS_PER_VALUE * size:
            for k in range(a, b):
                j = np.int64(indices[k])
                w, bit = j >> 6, ONE << U(j & 63)
                if bits[w] & bit != NONE:
                    sums[j] += data[k]
                else:
                    bits[w] |= bit
                    bits[words + (w >> 6)] |= ONE << U(w & 63)
                    sums[j] = data[k]
            for group in range(words, bits.size):
                touched = bits[group]
                bits[group] = NONE
                while touched != NONE:
                    w = 64 * (group - words) + trailing_zeros(touched)
                    touched &= touched - ONE
                    marked = bits[w]
                    bits[w] = NONE
                    while marked != NONE:
                        j = 64 * w + trailing_zeros(marked)
                        data[n], indices[n] = sums[j], j
                        n += 1
                        marked &= marked - ONE
            indptr[r + 1] = n
            a = b
            continue
        if not in_order:
            for k in range(size):
                value[k] = data[a + k]
                key[0, k] = (np.int64(indices[a + k]) << 32) | k
            for left in range(0, size, RUN):
                for k in range(left + 1, min(left + RUN, size)):
                    moved, j = key[0, k], k
                    while j > left and key[0, j - 1] > moved:
                        key[0, j] = key[0, j - 1]
                        j -= 1
                    key[0, j] = moved
            width, here = RUN, 0
            while width < size:
                for left in range(0, size, 2 * width):
                    middle, right = min(left + width, size), min(left + 2 * width, size)
                    j, k = left, middle
                    for m in range(left, right):
                        if j < middle and (k >= right or key[here, j] < key[here, k]):
                            key[1 - here, m] = key[here, j]
                            j += 1
                        else:
                            key[1 - here, m] = key[here, k]
                            k += 1
                width, here = 2 * width, 1 - here
            for k in range(size):
                data[a + k], indices[a + k] = value[key[here, k] & POSITION], key[here, k] >> 32
        start = n
        for k in range(a, b):
            if n > start and indices[n - 1] == indices[k]:
                data[n - 1] += data[k]
            else:
                data[n], indices[n] = data[k], indices[k]
                n += 1
        indptr[r + 1] = n
        a = b
    return n
