"""Losses of the margin."""

import math
from typing import NamedTuple

from .compiler import inlined, kernel
from .simd import (
    fuse,
    plus,
    times,
)

ROOT_HALF, BELL = 0.7071067811865476, 0.3989422804014327  # 1/sqrt(2) and 1/sqrt(2 pi)


# ---------------------------------------------------------------- rules


# Smooth rules round a step once. Those with a kink round it twice: from 0, -d then takes d back to 0, so that the
# ties there are stay ties.


class Twice(NamedTuple):
    """What a sum of rows takes for a rule."""

    none: float

    def moved(self, w, d, x):
        return plus(w, times(d, x))


TWICE = Twice(0.0)


class Square(NamedTuple):
    """scale/2 (z - y)^2. Scale 2 is the square loss; scale 1 drops the gradient's 2 as Widrow-Hoff and EG do."""

    scale: float
    lipschitz = None  # no slope is the largest

    def slope(self, z, y):
        return self.scale * (z - y)

    def loss(self, z, y):
        return 0.5 * self.scale * (z - y) * (z - y)

    def mean(self, z):
        return z

    def error(self, z, y):
        return z - y

    def wrong(self, z, y):
        return y * z <= 0.0

    def implicit(self, z, y, a):
        return self.scale * (z - y) / (1.0 + self.scale * a)

    def moved(self, w, d, x):
        return fuse(d, x, w)


class Absolute(NamedTuple):
    """scale |z - y|, with slope 0 at z = y."""

    scale: float
    lipschitz = 1.0  # the largest slope, at scale 1

    def slope(self, z, y):
        return self.scale if z > y else (-self.scale if z < y else 0.0)

    def loss(self, z, y):
        return self.scale * abs(z - y)

    def mean(self, z):
        return z

    def error(self, z, y):
        return z - y

    def wrong(self, z, y):
        return y * z <= 0.0

    def implicit(self, z, y, a):
        return self.slope(z, y) if abs(z - y) >= self.scale * a else (z - y) / a

    def moved(self, w, d, x):
        return plus(w, times(d, x))


class Logistic(NamedTuple):
    """scale (ln(1 + e^z) - y z) for y in [0, 1]: the logistic loss, and the matching loss of the logistic link."""

    scale: float
    lipschitz = 1.0

    def slope(self, z, y):
        return self.scale * logit_slope(z, y)

    def loss(self, z, y):
        return self.scale * (max(z, 0.0) - y * z + math.log1p(math.exp(-abs(z))))

    def mean(self, z):
        return sigmoid(z)

    def error(self, z, y):
        return logit_slope(z, y)

    def wrong(self, z, y):
        return (y - 0.5) * z <= 0.0

    def bend(self, z):
        return self.scale * sigmoid(z) * sigmoid(-z)

    def implicit(self, z, y, a):
        return implicit_smooth(self, z, y, a)

    def moved(self, w, d, x):
        return fuse(d, x, w)


class Tanh(NamedTuple):
    """The matching loss of the link u(z) = (1 + tanh z)/2, the logistic one twice as steep, for y in [0, 1]."""

    scale: float

    def slope(self, z, y):
        return self.scale * logit_slope(2.0 * z, y)

    def loss(self, z, y):
        return self.scale * (max(z, 0.0) - y * z + 0.5 * math.log1p(math.exp(-2.0 * abs(z))))

    def mean(self, z):
        return sigmoid(2.0 * z)

    def error(self, z, y):
        return logit_slope(2.0 * z, y)

    def wrong(self, z, y):
        return (y - 0.5) * z <= 0.0

    def bend(self, z):
        return self.scale * 2.0 * sigmoid(2.0 * z) * sigmoid(-2.0 * z)

    def implicit(self, z, y, a):
        return implicit_smooth(self, z, y, a)

    def moved(self, w, d, x):
        return fuse(d, x, w)


class Probit(NamedTuple):
    """The matching loss of the link u(z) = Phi(z), the normal distribution function, for y in [0, 1]."""

    scale: float

    def slope(self, z, y):
        return self.scale * ((1.0 - y) * normal(z) - y * normal(-z))

    def loss(self, z, y):
        return self.scale * (max(z, 0.0) - y * z + bell(z) - abs(z) * normal(-abs(z)))

    def mean(self, z):
        return normal(z)

    def error(self, z, y):
        return (1.0 - y) * normal(z) - y * normal(-z)

    def wrong(self, z, y):
        return (y - 0.5) * z <= 0.0

    def bend(self, z):
        return self.scale * bell(z)

    def implicit(self, z, y, a):
        return implicit_smooth(self, z, y, a)

    def moved(self, w, d, x):
        return fuse(d, x, w)


class Hinge(NamedTuple):
    """max(0, margin - y z) for y = -1 or 1. Margin 0 is the perceptron's loss, whose slope at z = 0 is -y."""

    margin: float
    lipschitz = 1.0

    def slope(self, z, y):
        return -y if y * z <= self.margin else 0.0

    def loss(self, z, y):
        return max(0.0, self.margin - y * z)

    def mean(self, z):
        return 1.0 if z > 0.0 else (-1.0 if z < 0.0 else 0.0)

    def error(self, z, y):
        return self.mean(z) - y

    def wrong(self, z, y):
        return y * z <= 0.0

    def implicit(self, z, y, a):
        short = self.margin - y * z
        return 0.0 if short < 0.0 else (-y if short >= a else -y * short / a)

    def moved(self, w, d, x):
        return plus(w, times(d, x))


class Clipped(NamedTuple):
    """The matching loss of the clipped linear link u(z) = min(1, max(0, z)): its slope is u(z) - y."""

    scale: float

    def slope(self, z, y):
        return self.scale * (min(1.0, max(0.0, z)) - y)

    def loss(self, z, y):
        u = min(1.0, max(0.0, z))
        return self.scale * (u * (z - 0.5 * u) - y * z)

    def mean(self, z):
        return min(1.0, max(0.0, z))

    def error(self, z, y):
        return self.mean(z) - y

    def wrong(self, z, y):
        return (y - 0.5) * (z - 0.5) <= 0.0

    def implicit(self, z, y, a):
        b = self.scale * a
        if z + b * y <= 0.0:  # it lands where the link is 0
            return -self.scale * y
        if z + b * (y - 1.0) >= 1.0:  # or where it is 1
            return self.scale * (1.0 - y)
        return self.scale * (z - y) / (1.0 + b)

    def moved(self, w, d, x):
        return plus(w, times(d, x))


@inlined
def sigmoid(z):
    e = math.exp(-abs(z))
    return 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)


@inlined
def logit_slope(z, y):
    """sigmoid(z) - y without cancellation, and exactly the negative of itself at (-z, 1 - y)."""
    return (1.0 - y) * sigmoid(z) - y * sigmoid(-z)


@inlined
def normal(z):
    """The normal distribution function, exact far out on either side."""
    return 0.5 * math.erfc(-z * ROOT_HALF)


@inlined
def bell(z):
    """The normal density."""
    return BELL * math.exp(-0.5 * z * z)


@kernel
def implicit_smooth(rule, z, y, a):
    """The slope g = slope(z - a g): Newton's steps, or bisection where they do not halve the bracket."""
    g = rule.slope(z, y)
    lo, hi = min(g, 0.0), max(g, 0.0)
    width = hi - lo
    for _ in range(200):
        f = g - rule.slope(z - a * g, y)
        if f > 0.0:
            hi = g
        else:
            lo = g
        new = g - f / (1.0 + a * rule.bend(z - a * g))
        if not lo < new < hi or hi - lo > 0.5 * width:
            new = 0.5 * (lo + hi)
        width = hi - lo
        if f == 0.0 or abs(new - g) <= 2e-16 * abs(g):
            return new if f != 0.0 else g
        g = new
    return g
