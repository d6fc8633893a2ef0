"""Isotonic fits of many outcome vectors drawn for the same sorted forecasts.

64 vectors are drawn at once, one bit each: U < p is decided digit by digit, for 64 U's in one word, which takes about
eight words of random bits. Transposed, a word holds 64 outcomes of one vector. The fit of zeros and ones can rise only
where a 0 is followed by a 1 (or, with ties, at the edge of a tie), so only those positions are visited.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.compiler import inlined, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ZERO, ONE = np.uint64(0), np.uint64(1)
B1, B2, B4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
BYTES = np.uint64(0x0101010101010101)
S27, S30, S31, S56, S63 = (np.uint64(k) for k in (27, 30, 31, 56, 63))
TWO, FOUR = np.uint64(2), np.uint64(4)


@inlined
def mixed(x):  # type: ignore[no-untyped-def]
    """64 random bits from a counter that increases by the golden ratio (splitmix64)."""
    x = (x ^ (x >> S30)) * MIX_1
    x = (x ^ (x >> S27)) * MIX_2
    return x ^ (x >> S31)


@inlined
def ones(x):  # type: ignore[no-untyped-def]
    """The number of set bits."""
    x = x - ((x >> ONE) & B1)
    x = (x & B2) + ((x >> TWO) & B2)
    x = (x + (x >> FOUR)) & B4
    return np.int64((x * BYTES) >> S56)


@inlined
def draw(digits, state):  # type: ignore[no-untyped-def]
    """64 outcomes that are 1 with a probability of these binary digits (all ones mean 1), and the new counter."""
    if digits == ALL:
        return ALL, state
    open_, drawn = ALL, ZERO
    while open_ != ZERO and digits != ZERO:
        digit = ZERO - (digits >> S63)  # all ones or all zeros, without a branch
        state += GOLDEN
        bits = mixed(state)
        drawn |= open_ & ~bits & digit
        open_ &= ~(bits ^ digit)
        digits <<= ONE
    return drawn, state


@inlined
def transpose(a, half, masks):  # type: ignore[no-untyped-def]
    """Transpose 64 words of 64 bits in place."""
    for level in range(6):
        j = half[level]
        shift, mask = np.uint64(j), masks[level]
        k = 0
        while k < 64:
            for i in range(k, k + j):
                t = ((a[i] >> shift) ^ a[i + j]) & mask
                a[i] ^= t << shift
                a[i + j] ^= t
            k += 2 * j


@kernel
def draw_all(digits, state, half, masks, square, drawn):  # type: ignore[no-untyped-def]
    """Fill drawn[r, b] with the outcomes of rows 64 b to 64 b + 63 in vector r, the first in the lowest bit."""
    m, counter = digits.size, state[0]
    for b in range(drawn.shape[1]):
        for i in range(64):
            square[i] = ZERO
            if 64 * b + i < m:
                square[i], counter = draw(digits[64 * b + i], counter)
        transpose(square, half, masks)
        for r in range(64):
            drawn[r, b] = square[r]
    state[0] = counter


@kernel
def fit_all(drawn, starts, sure, total, weight, at, place, sums, masses, out):  # type: ignore[no-untyped-def]
    """The isotonic fits of the first vectors, one per row of `out`."""
    for r in range(out.shape[0]):
        fit(drawn, r, starts, sure, total, weight, at, place, sums, masses, out)


@kernel
def fit(drawn, r, starts, sure, total, weight, at, place, sums, masses, out):  # type: ignore[no-untyped-def]
    """The isotonic fit of vector r at the rows `at`, which ascend.

    `starts` marks the first rows of ties (a single row is a tie of one), and `sure` the rows where a rise is possible
    for any outcomes. `total` is Sigma c before each row and at the end, and `weight` is c, or empty if every c is 1.
    `place`, `sums` and `masses` are workspace for the pools.
    """
    m, top, before = total.size - 1, 0, ZERO
    place[0], sums[0], masses[0] = 0, -1.0, 0.0  # below every pool
    begin, s = 0, 0.0  # the segment that is open, and its sum of c y
    for b in range(starts.size + 1):
        word = drawn[r, b] if b < starts.size else ZERO
        if b < starts.size:
            rises = starts[b] & (sure[b] | (word & ~((word << ONE) | before)))
            if b == 0:
                rises &= ~ONE
            before = word >> S63
        else:
            rises = ONE  # the end closes the last segment
        rest = word
        while rises != ZERO:
            low = rises & (~rises + ONE)
            rises ^= low
            part = rest & (low - ONE)
            rest ^= part
            s += count(part, weight, b)
            end = min(m, 64 * b + ones(low - ONE))
            mass = total[end] - total[begin]
            while sums[top] * mass >= s * masses[top]:
                s, mass, begin = s + sums[top], mass + masses[top], place[top]
                top -= 1
            top += 1
            place[top], sums[top], masses[top] = begin, s, mass
            begin, s = end, 0.0
        s += count(rest, weight, b)
    k = 1
    for j in range(at.size):
        while k < top and place[k + 1] <= at[j]:
            k += 1
        out[r, j] = sums[k] / masses[k]


@inlined
def count(part, weight, b):  # type: ignore[no-untyped-def]
    """Sigma c over the rows of word b whose bits are set."""
    if weight.size == 0:
        return float(ones(part))
    s = 0.0
    while part != ZERO:
        low = part & (~part + ONE)
        s += weight[64 * b + ones(low - ONE)]
        part ^= low
    return s


def resampled(z: np.ndarray, p: np.ndarray, c: np.ndarray, at: np.ndarray, times: int, seed: int) -> np.ndarray:
    """Isotonic fits of `times` outcome vectors drawn with probabilities p, at the rows `at`.

    Parameters
    ----------
    z : ndarray of shape (n_rows,)
        The forecasts, ascending; equal ones are one point.
    p : ndarray of shape (n_rows,)
        Probability of the outcome 1 in each row.
    c : ndarray of shape (n_rows,)
        Weights above 0.
    at : ndarray of int
        Rows at which the fits are evaluated, ascending.
    times : int
        Number of outcome vectors.
    seed : int
        Seed of the draws.

    Returns
    -------
    ndarray of shape (times, len(at))
        One row per fit.
    """
    m = z.size
    blocks = -(-m // 64)
    start = np.append(True, z[1:] > z[:-1])
    alone = start & np.append(start[1:], True)  # a tie of one
    sure = start & ~(alone & np.append(False, alone[:-1]))
    half = np.array([32, 16, 8, 4, 2, 1])
    masks = np.array([ALL // (ONE + (ONE << np.uint64(h))) for h in half], np.uint64)
    digits = np.where(p >= 1.0, ALL, np.minimum(np.ldexp(p, 64), 2.0**64 - 2048).astype(np.uint64))
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    unit = bool((c == 1.0).all())
    total = np.append(0.0, np.cumsum(c))
    drawn, square = np.empty((64, blocks), np.uint64), np.empty(64, np.uint64)
    fixed = packed(start), packed(sure), total, np.empty(0) if unit else c, at
    room = np.empty(m + 1, np.int64), np.empty(m + 1), np.empty(m + 1)
    fits = np.empty((times, at.size))
    for first in range(0, times, 64):
        draw_all(digits, state, half, masks, square, drawn)
        fit_all(drawn, *fixed, *room, fits[first : first + 64])
    return fits


def packed(marks: np.ndarray) -> Any:
    """Boolean marks packed into 64-bit words, the first in the lowest bit."""
    padded = np.zeros(-(-marks.size // 64) * 64, bool)
    padded[: marks.size] = marks
    return np.packbits(padded, bitorder="little").view(np.uint64)
