"""Exponentials of a number or of SIMD lanes."""

from .compiler import inlined
from .simd import ROUND, alike, doubled, fuse, halved, minus, plus, times

LN2_HI = 0.693147180369123816490  # 33 significant bits, so that k * LN2_HI is exact
LN2_LO = 1.90821492927058770002e-10
LOG2_E = 1.4426950408889634


@inlined
def horner(a, x, c):
    """a x + c for a constant c."""
    return fuse(a, x, alike(a, c))


@inlined
def exponentials(theta, shift):
    """e^theta / 2^shift and e^-theta / 2^shift, of a number or of lanes: 0 far below 1, infinity far above.

    theta = k ln 2 + r; with e^r = even(r^2) + r odd(r^2), both signs share one polynomial.
    """
    k = minus(horner(theta, alike(theta, LOG2_E), ROUND), alike(theta, ROUND))
    r = fuse(k, alike(theta, -LN2_LO), fuse(k, alike(theta, -LN2_HI), theta))
    x = times(r, r)
    even = horner(alike(theta, 1 / 479001600), x, 1 / 3628800)
    even = horner(even, x, 1 / 40320)
    even = horner(even, x, 1 / 720)
    even = horner(even, x, 1 / 24)
    even = horner(even, x, 0.5)
    even = horner(even, x, 1.0)
    odd = horner(alike(theta, 1 / 6227020800), x, 1 / 39916800)
    odd = horner(odd, x, 1 / 362880)
    odd = horner(odd, x, 1 / 5040)
    odd = horner(odd, x, 1 / 120)
    odd = horner(odd, x, 1 / 6)
    odd = fuse(times(odd, x), r, r)
    return doubled(plus(even, odd), k, float(shift)), halved(minus(even, odd), k, float(shift))
