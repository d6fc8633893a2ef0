"""Geometries."""

import math
from typing import NamedTuple

import numpy as np

from .compiler import inlined, kernel
from .rows import inner, stride
from .simd import (
    ROUND,
    alike,
    doubled,
    fuse,
    halved,
    minus,
    plus,
    times,
)
from .state import BASE, CLOCK, MASS, REACH, ROUNDS, SCALARS, SHIFT, TOUCHED, aligned

LN2_HI = 0.693147180369123816490  # 33 significant bits, so that k * LN2_HI is exact
LN2_LO = 1.90821492927058770002e-10
LOG2_E = 1.4426950408889634


class Euclidean(NamedTuple):
    """w = theta. For averages the second row of v sums (round * step), so that Sigma w_t = T w_{T+1} - v[1]."""

    radius: float
    name = "euclidean"
    multiplicative = False  # whether weights are products, so that they depend on how many features there are
    signed = True  # whether weights of the opposite labels are the opposite weights
    can_grow = True  # whether a feature may join later, at weight 0

    def dot(self, v, s, rows, t):
        return inner(v, 0, rows, t)

    def tick(self, s):
        pass

    def step(self, rule, v, s, rows, t, d):
        stride(rule, v, 0, rows, t, d)
        if v.shape[0] > 1:
            stride(rule, v, 1, rows, t, d * s[ROUNDS])

    def solve(self, rule, v, s, rows, t, z, q, y, a):
        return rule.implicit(z, y, a * q)

    def norm(self, q, top):
        return q

    def reach(self, v, s):
        return 1.0 if v.shape[0] == 1 else s[ROUNDS] + 1.0  # the moment moves round times as far

    def limit(self):
        return np.inf

    def begin(self, width: int, start: np.ndarray | None, average: bool) -> tuple[np.ndarray, np.ndarray]:
        v, s = aligned(2 if average else 1, width), np.zeros(SCALARS)
        if start is not None:
            v[0] = start
        s[REACH] = np.abs(v[0]).max()
        return v, s

    def weights(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
        return v[0].copy()

    def total(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Sigma_t w_t over the rounds played, w_1 included and w_{T+1} not."""
        return s[ROUNDS] * v[0] - v[1]


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


@inlined
def catch_up(v, j, clock):
    """Bring one coordinate's running sum of weights up to the clock (the sum of 1/mass over the rounds)."""
    if clock != v[3, j]:  # a numerator just moved may be infinite until the mass is recomputed
        v[2, j] += v[1, j] * (clock - v[3, j])
        v[3, j] = clock


@kernel
def refresh(geometry, v, s):
    """Shift to the largest exponent and recompute mass and numerators; running sums are brought up to date."""
    if v.shape[0] > 2:
        for j in range(v.shape[1]):
            catch_up(v, j, s[CLOCK])
            v[3, j] = 0.0
    top = -np.inf
    for j in range(v.shape[1]):
        top = max(top, geometry.height(v[0, j]))
    shift = math.ceil(top * LOG2_E)
    mass, lost = 0.0, 0.0  # a compensated sum: a million equal roundings would add up
    for j in range(v.shape[1]):
        v[1, j], m = geometry.share(v[0, j], shift)
        part = m - lost
        total = mass + part
        lost = (total - mass) - part
        mass = total
    s[MASS], s[BASE], s[TOUCHED], s[CLOCK], s[SHIFT] = mass, mass, 0.0, 0.0, shift


def entropic_dot(self, v, s, rows, t):
    dot, q, top = inner(v, 1, rows, t)
    return self.radius * dot / s[MASS], q, top


def entropic_tick(self, s):
    s[CLOCK] += 1.0 / s[MASS]


def entropic_step(self, rule, v, s, rows, t, d):
    """One multiplicative step in O(nnz).

    The mass is tracked by differences. It is recomputed after as many touched coordinates as there are, and
    when it has moved 2^10-fold (differences of it, and of the clock, would cancel): both are told by the state
    alone, so the sizes of chunks change nothing.
    """
    a, b = rows.span(t)
    last = v.shape[1] - 1
    if v.shape[0] > 2:
        for k in range(a, b):
            catch_up(v, rows.index(k), s[CLOCK])
        if rows.bias != 0.0:
            catch_up(v, last, s[CLOCK])
    d *= self.radius
    rest, new = rows.move(rule, self, v, t, d, s[MASS], s[SHIFT])
    if rows.bias != 0.0:
        if rest != 0.0:
            rest -= self.share(v[0, last], s[SHIFT])[1]
        v[0, last] = rule.moved(v[0, last], d, rows.bias)
        v[1, last], mass = self.share(v[0, last], s[SHIFT])
        new += mass
    s[MASS] = rest + new
    if rest != 0.0:
        s[TOUCHED] += b - a + 1
    if s[TOUCHED] > v.shape[1] or not s[BASE] * 2.0**-10 < s[MASS] < s[BASE] * 2.0**10:
        refresh(self, v, s)


@kernel
def entropic_after(geometry, v, s, rows, t, d):
    """The margin of row t after a step d on it, without taking the step."""
    d *= geometry.radius
    a, b = rows.span(t)
    last = v.shape[1] - 1
    top = geometry.height(v[0, last] + d * rows.bias)
    for k in range(a, b):
        top = max(top, geometry.height(v[0, rows.index(k)] + d * rows.value(t, k)))
    shift = max(s[SHIFT], math.ceil(top * LOG2_E))
    old, new, dot = 0.0, 0.0, 0.0
    for k in range(a, b):
        theta, x = v[0, rows.index(k)], rows.value(t, k)
        old += geometry.share(theta, s[SHIFT])[1]
        e, mass = geometry.share(theta + d * x, shift)
        new += mass
        dot += e * x
    if rows.bias != 0.0:
        old += geometry.share(v[0, last], s[SHIFT])[1]
        e, mass = geometry.share(v[0, last] + d * rows.bias, shift)
        new += mass
        dot += e * rows.bias
    full = b - a == (last if rows.bias != 0.0 else last + 1)
    rest = 0.0 if full else s[MASS] - old
    return geometry.radius * dot / (rest * 2.0 ** (s[SHIFT] - shift) + new)


def entropic_solve(self, rule, v, s, rows, t, z, q, y, a):
    """The slope g = slope(margin after the step -a g): margins fall as g grows, so g lies between 0 and slope(z).

    False position and bisection take turns; a jump of the slope (hinge, absolute) is met by bisection.
    """
    g = rule.slope(z, y)
    near, far = 0.0, g
    f_near, f_far = -g, g - rule.slope(entropic_after(self, v, s, rows, t, -a * g), y)
    for i in range(120):
        if f_far == 0.0 or abs(far - near) <= 2e-16 * abs(far):
            break
        g = near - f_near * (far - near) / (f_far - f_near) if i % 2 == 0 else 0.5 * (near + far)
        f = g - rule.slope(entropic_after(self, v, s, rows, t, -a * g), y)
        if f * f_near > 0.0:
            near, f_near = g, f
        else:
            far, f_far = g, f
    return far


@kernel
def shares(geometry, theta, shift, out):
    """Numerator and mass of every coordinate."""
    for j in range(theta.size):
        out[0, j], out[1, j] = geometry.share(theta[j], shift)


def entropic_norm(self, q, top):
    return (self.radius * top) ** 2


def entropic_reach(self, v, s):
    return self.radius


def entropic_limit(self):
    return 2.0**48  # beyond it theta, and so e^theta, has lost its digits


def entropic_begin(self, width: int, start: np.ndarray | None, average: bool) -> tuple[np.ndarray, np.ndarray]:
    v, s = aligned(4 if average else 2, width), np.zeros(SCALARS)
    if start is not None:
        v[0] = self.dual(start)
    s[REACH] = np.abs(v[0][np.isfinite(v[0])]).max()
    refresh(self, v, s)
    return v, s


def entropic_weights(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
    out = np.empty((2, v.shape[1]))
    shares(self, v[0], s[SHIFT], out)
    return self.radius * out[0] / out[1].sum()


def entropic_total(self, v: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Sigma_t w_t over the rounds played, w_1 included and w_{T+1} not."""
    return self.radius * (v[2] + v[1] * (s[CLOCK] - v[3]))


class Simplex(NamedTuple):
    """w_i = radius e^theta_i / Sigma e^theta_j, in the log domain."""

    radius: float
    name = "simplex"
    multiplicative, signed, can_grow = True, False, False

    def share(self, theta, shift):
        up, down = exponentials(theta, shift)
        return up, up

    def height(self, theta):
        return theta

    def dual(self, w: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(w / self.radius)

    dot, tick, step, solve, norm = entropic_dot, entropic_tick, entropic_step, entropic_solve, entropic_norm
    begin, weights, total = entropic_begin, entropic_weights, entropic_total
    reach, limit = entropic_reach, entropic_limit


class Balanced(NamedTuple):
    """w_i = radius sinh theta_i / Sigma cosh theta_j: the simplex rule on radius (x, -x), one theta for both halves."""

    radius: float
    name = "balanced"
    multiplicative, signed, can_grow = True, True, False

    def share(self, theta, shift):
        up, down = exponentials(theta, shift)
        return minus(up, down), plus(up, down)

    def height(self, theta):
        return abs(theta)

    def dual(self, w: np.ndarray) -> np.ndarray:
        """theta with sinh theta_i = w_i S / radius and S = Sigma cosh theta_j, S found by bisection."""
        p = w / self.radius
        lo, hi = float(w.size), w.size / (1.0 - np.abs(p).sum())
        for _ in range(200):
            mid = 0.5 * (lo + hi)
            if np.sqrt(1.0 + (p * mid) ** 2).sum() > mid:
                lo = mid
            else:
                hi = mid
        return np.arcsinh(p * 0.5 * (lo + hi))

    dot, tick, step, solve, norm = entropic_dot, entropic_tick, entropic_step, entropic_solve, entropic_norm
    begin, weights, total = entropic_begin, entropic_weights, entropic_total
    reach, limit = entropic_reach, entropic_limit
