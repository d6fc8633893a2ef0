"""Decimal text to the nearest float64, bit for bit what Python's `float` gives.

Numbers of up to 19 significant digits are rounded by one product with a tabulated power of five, after D. Lemire,
"Number parsing at a gigabyte per second", Software: Practice and Experience 51 (2021), 1700-1727. The few that this
does not decide, and text that is not a plain number, are left to Python.
"""

import numpy as np

from ...kernels.compiler import inlined, kernel
from .bits import (
    ALL,
    B16,
    B32,
    B63,
    DOT,
    EIGHT,
    HIGH,
    MINUS,
    NONE,
    ONE,
    PLUS,
    TEN,
    THREE,
    ZERO,
    E,
    U,
    byte,
    float_from_bits,
    high_product,
    leading_zeros,
    trailing_zeros,
    word,
)

ZEROS, CARRY = U(0x3030303030303030), U(0x7676767676767676)  # the digit 0 in each byte; carries where a byte is above 9
PAIRS, HUNDREDS, TENS = U(0x000000FF000000FF), U(0x000F424000000064), U(0x0000271000000001)
ROUNDING = U(0x1FF)  # bits of the product that decide the rounding
HIDDEN, MAX_EXACT = U(1 << 52), U(1 << 53)
MAX_WHOLE = float(1 << 53)  # targets from here on are left to Python: as labels they may be text

FLOAT_POWERS = 10.0 ** np.arange(23)  # exact
UNSIGNED_POWERS = np.array([10**k for k in range(20)], np.uint64)
SIGNED_POWERS = 10 ** np.arange(9)
MIN_POWER, MAX_POWER = -342, 308


def _powers_of_five() -> np.ndarray:
    """The first 128 bits of 5^q, q = MIN_POWER..MAX_POWER: truncated, but rounded up where q < 0."""
    table = np.empty((MAX_POWER - MIN_POWER + 1, 2), np.uint64)
    for q in range(MIN_POWER, MAX_POWER + 1):
        if q >= 0:
            five = 5**q
            shift = 128 - five.bit_length()
            bits = five << shift if shift >= 0 else five >> -shift
        else:
            five = 5**-q
            bits = (1 << (five.bit_length() + 127)) // five + 1
        table[q - MIN_POWER] = bits >> 64, bits & 0xFFFFFFFFFFFFFFFF
    return table


POWERS_OF_FIVE = _powers_of_five()


@inlined
def count_digits(t):
    """How many of eight bytes, already xor-ed with '0', are digits before the first other byte."""
    other = ((t + CARRY) | t) & HIGH
    return trailing_zeros(other) >> 3


@inlined
def join_digits(t, n):
    """The number that the first n of eight digits make."""
    if n == 0:
        return NONE
    t = t << U((64 - 8 * n) & 63)
    t = t * TEN + (t >> EIGHT)
    return ((t & PAIRS) * HUNDREDS + ((t >> B16) & PAIRS) * TENS) >> B32


@kernel
def nearest_float(m, q):
    """The bits of the float nearest to m 10^q and 1, or 0 and 0 if this method cannot decide it."""
    if q < MIN_POWER or q > MAX_POWER:
        return NONE, 0
    shift = leading_zeros(m)
    m = m << U(shift)
    k = q - MIN_POWER
    upper, lower = high_product(m, POWERS_OF_FIVE[k, 0]), m * POWERS_OF_FIVE[k, 0]
    if upper & ROUNDING == ROUNDING:
        more = high_product(m, POWERS_OF_FIVE[k, 1])
        lower = lower + more
        if more > lower:
            upper = upper + ONE
    if lower == ALL and (q < -27 or q > 55):
        return NONE, 0
    top = upper >> B63
    drop = top + U(9)
    mantissa = upper >> drop
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - shift + 1023
    if exponent <= 0:
        return NONE, 0
    if lower <= ONE and -4 <= q <= 23 and mantissa & THREE == ONE and mantissa << drop == upper:
        mantissa = mantissa - ONE  # halfway, and the even neighbour is below
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    if mantissa >= MAX_EXACT:
        mantissa, exponent = HIDDEN, exponent + 1
    if exponent >= 2047:
        return NONE, 0
    return (mantissa - HIDDEN) | (U(exponent) << U(52)), 1


@kernel
def count_significant(buf, a, b):
    """Digits from the first that is not zero on."""
    n = 0
    for i in range(a, b):
        if buf[i] != DOT and (n or buf[i] != ZERO):
            n += 1
    return n


@kernel
def parse_any_number(buf, i):
    """The same as `parse_number`, for numbers of any form."""
    negative = byte(buf, i) == MINUS
    if negative or byte(buf, i) == PLUS:
        i += 1
    start = i
    t = word(buf, i) ^ ZEROS
    n = count_digits(t)
    m, digits = join_digits(t, n), n
    i += n
    while n == 8:
        t = word(buf, i) ^ ZEROS
        n = count_digits(t)
        m, digits = m * UNSIGNED_POWERS[n] + join_digits(t, n), digits + n
        i += n
    q = 0
    if byte(buf, i) == DOT:
        i += 1
        n = 8
        while n == 8:
            t = word(buf, i) ^ ZEROS
            n = count_digits(t)
            m, digits, q = m * UNSIGNED_POWERS[n] + join_digits(t, n), digits + n, q - n
            i += n
    good = 0 < digits <= 19 or (digits > 19 and count_significant(buf, start, i) <= 19)
    if good and byte(buf, i) | 32 == E:
        i += 1
        below = byte(buf, i) == MINUS
        if below or byte(buf, i) == PLUS:
            i += 1
        t = word(buf, i) ^ ZEROS
        n = count_digits(t)
        power = np.int64(join_digits(t, n))
        i += n
        good = 0 < n < 8
        q = q - power if below else q + power
    v = 0.0
    if good:
        if m <= MAX_EXACT and -22 <= q <= 22:
            v = float(m) * FLOAT_POWERS[q] if q >= 0 else float(m) / FLOAT_POWERS[-q]
        elif m != NONE:
            bits, decided = nearest_float(m, q)
            v, good = float_from_bits(bits), decided == 1
    return -v if negative else v, i, 1 if good else 0


@inlined
def parse_number(buf, i):
    """The number that starts at i, the position after it, and 1, or 0 in place of 1 if it must be left to Python."""
    negative = byte(buf, i) == MINUS
    j = i + 1 if negative else i
    if byte(buf, j + 1) == DOT:  # most numbers are d.ddd
        d = byte(buf, j) ^ ZERO
        j += 2
        t = word(buf, j) ^ ZEROS
        n = count_digits(t)
        if d < 10 and 0 < n < 8 and byte(buf, j + n) | 32 != E:
            v = float(d * SIGNED_POWERS[n] + np.int64(join_digits(t, n))) / FLOAT_POWERS[n]
            return -v if negative else v, j + n, 1
    return parse_any_number(buf, i)
