"""Losses of a margin z against a target y.

A loss is a NamedTuple, registered with `loss_part`, with these methods (those in brackets may be left out)::

    value(self, z, y)               the loss
    slope(self, z, y)               its derivative in z
    curvature(self, z)              its second derivative, where it is smooth
    implicit(self, z, y, a)         [smooth] the slope g = slope(z - a g), by Newton's method if left out
    implicit_each(self, like, z, y, c, q, g)    [one by one] the same of arrays z and a = c q into g
    mean(self, z)                   [z] what a margin predicts
    error(self, z, y)               [mean(z) - y]
    wrong(self, z, y)               [y z <= 0, or (y - 1/2) z <= 0 for targets in [0, 1]] whether it is a mistake
    rounded_step(self, w, d, x)     [as below] w + d x
    moves(self, d)                  [as below] whether a step d must be taken: one of 0 need not
    steepness(self, span)           [as below] how steep the loss is where targets and margins lie within a range

Smooth losses round a step once. Losses with a kink round it twice, so that a step d from 0 followed by -d leads back to
0 exactly, and tied margins stay tied. Their steps are often 0, so it pays to check for that; for smooth losses the
check costs more than the step. Plain class attributes declare the rest: ``name``; ``targets``, "real", "sign" (-1 or
1), "unit" (in [0, 1]) or "count" (at least 0); ``link``, the name of the link that maps a margin to a prediction, and
``link_lipschitz``, its Lipschitz constant; ``lipschitz``, a bound on the slope or None; ``convex``; ``quadratic``, for
scale/2 (z - y)^2; and ``ranges``, the open intervals of fields that may not take all values: ("delta", 0, inf).
"""

import math
from typing import NamedTuple

from .compiler import helper, inlined, part
from .exponentials import exponentials
from .simd import alike, any_less, fuse, larger, load, minus, over, plus, rough_log, store, times, where_less

NEAR = 2.0  # from the margin itself a root is found as soon where the step is at most this
ROOT_HALF, BELL = 0.7071067811865476, 0.3989422804014327  # 1/sqrt(2) and 1/sqrt(2 pi)


# ---------------------------------------------------------------- what a loss need not write


def step_rounded_once(self, w, d, x):
    return fuse(d, x, w)


def step_rounded_twice(self, w, d, x):
    return plus(w, times(d, x))


def always(self, d):
    return True


def unless_zero(self, d):
    return d != 0.0


def identity(self, z):
    return z


def difference(self, z, y):
    return z - y


def difference_of_mean(self, z, y):
    return self.mean(z) - y


def wrong_side_of_zero(self, z, y):
    return y * z <= 0.0


def wrong_side_of_half(self, z, y):
    return (y - 0.5) * z <= 0.0


def steep_as_its_range(self, span):
    return span


def steep_as_one(self, span):
    return 1.0


def implicit_one_by_one(self, like, z, y, c, q, g):
    for k in range(g.size):
        g[k] = self.implicit(z[k], y, c * q[k])


def implicit_by_newton(self, z, y, a):
    return implicit_smooth(self, z, y, a)


def fill_in_loss(kind):
    """Add the defaults that a loss does not define."""
    smooth = hasattr(kind, "curvature")
    attributes = {"name": kind.__name__.lower(), "targets": "real", "convex": False, "quadratic": False}
    attributes |= {"link": "identity", "link_lipschitz": None, "lipschitz": None}
    error = difference_of_mean if hasattr(kind, "mean") else difference
    attributes |= {"mean": identity, "error": error, "ranges": (), "implicit_each": implicit_one_by_one}
    attributes["wrong"] = wrong_side_of_half if getattr(kind, "targets", "") == "unit" else wrong_side_of_zero
    attributes["rounded_step"] = step_rounded_once if smooth else step_rounded_twice
    attributes["moves"] = always if smooth else unless_zero
    attributes["steepness"] = steep_as_its_range if getattr(kind, "lipschitz", None) is None else steep_as_one
    if smooth:
        attributes["implicit"] = implicit_by_newton
    for name, value in attributes.items():
        if not hasattr(kind, name):
            setattr(kind, name, value)
    return kind


def loss_part(kind):
    """Register a loss: add defaults for what it does not define, and let compiled code call its methods."""
    return part(fill_in_loss(kind))


@part
class PlainSum(NamedTuple):
    """A stand-in for a loss in sums of rows, which rounds a step twice."""

    none: float
    rounded_step = step_rounded_twice


PLAIN_SUM = PlainSum(0.0)


# ---------------------------------------------------------------- losses


@loss_part
class Square(NamedTuple):
    """scale/2 (z - y)^2. Scale 2 is the square loss; scale 1 drops the gradient's 2 as Widrow-Hoff and EG do."""

    scale: float
    convex = quadratic = True
    link_lipschitz = 1.0

    def slope(self, z, y):
        return self.scale * (z - y)

    def value(self, z, y):
        return 0.5 * self.scale * (z - y) * (z - y)

    def implicit(self, z, y, a):
        return self.scale * (z - y) / (1.0 + self.scale * a)

    def curvature(self, z):
        return self.scale


@loss_part
class Absolute(NamedTuple):
    """scale |z - y|, with slope 0 at z = y."""

    scale: float
    convex, lipschitz = True, 1.0

    def slope(self, z, y):
        return self.scale if z > y else (-self.scale if z < y else 0.0)

    def value(self, z, y):
        return self.scale * abs(z - y)

    def implicit(self, z, y, a):
        return self.slope(z, y) if abs(z - y) >= self.scale * a else (z - y) / a


@loss_part
class Logistic(NamedTuple):
    """scale (ln(1 + e^z) - y z) for y in [0, 1]: the logistic loss, and the matching loss of the logistic link."""

    scale: float
    targets, link, convex, lipschitz = "unit", "logistic", True, 1.0
    link_lipschitz = 0.25

    def slope(self, z, y):
        return self.scale * logit_slope(z, y)

    def value(self, z, y):
        return self.scale * (max(z, 0.0) - y * z + math.log1p(math.exp(-abs(z))))

    def mean(self, z):
        return sigmoid(z)

    def error(self, z, y):
        return logit_slope(z, y)

    def curvature(self, z):
        return self.scale * sigmoid(z) * sigmoid(-z)

    def implicit(self, z, y, a):
        if y == 0.0 or y == 1.0:
            return self.scale * logistic_root(z, y, self.scale * a)
        return implicit_smooth(self, z, y, a)

    def implicit_each(self, like, z, y, c, q, g):
        if y == 0.0 or y == 1.0:
            logistic_roots(like, z, y, c, q, self.scale, g)
        else:
            for k in range(g.size):
                g[k] = implicit_smooth(self, z[k], y, c * q[k])


@loss_part
class Tanh(NamedTuple):
    """The matching loss of the link u(z) = (1 + tanh z)/2, the logistic one twice as steep, for y in [0, 1]."""

    scale: float
    targets, link, convex, lipschitz = "unit", "tanh", True, 1.0
    link_lipschitz = 0.5

    def slope(self, z, y):
        return self.scale * logit_slope(2.0 * z, y)

    def value(self, z, y):
        return self.scale * (max(z, 0.0) - y * z + 0.5 * math.log1p(math.exp(-2.0 * abs(z))))

    def mean(self, z):
        return sigmoid(2.0 * z)

    def error(self, z, y):
        return logit_slope(2.0 * z, y)

    def curvature(self, z):
        return self.scale * 2.0 * sigmoid(2.0 * z) * sigmoid(-2.0 * z)


@loss_part
class Probit(NamedTuple):
    """The matching loss of the link u(z) = Phi(z), the normal distribution function, for y in [0, 1]."""

    scale: float
    targets, link, convex, lipschitz = "unit", "probit", True, 1.0
    link_lipschitz = BELL

    def slope(self, z, y):
        return self.scale * ((1.0 - y) * normal(z) - y * normal(-z))

    def value(self, z, y):
        return self.scale * (max(z, 0.0) - y * z + bell(z) - abs(z) * normal(-abs(z)))

    def mean(self, z):
        return normal(z)

    def error(self, z, y):
        return (1.0 - y) * normal(z) - y * normal(-z)

    def curvature(self, z):
        return self.scale * bell(z)


@loss_part
class Hinge(NamedTuple):
    """max(0, margin - y z) for y = -1 or 1. Margin 0 is the perceptron's loss, whose slope at z = 0 is -y."""

    margin: float
    targets, convex, lipschitz = "sign", True, 1.0

    @property
    def name(self):
        return "perceptron" if self.margin == 0.0 else "hinge"

    def slope(self, z, y):
        return -y if y * z <= self.margin else 0.0

    def value(self, z, y):
        return max(0.0, self.margin - y * z)

    def mean(self, z):
        return 1.0 if z > 0.0 else (-1.0 if z < 0.0 else 0.0)

    def implicit(self, z, y, a):
        short = self.margin - y * z
        return 0.0 if short < 0.0 else (-y if short >= a else -y * short / a)


@loss_part
class Clipped(NamedTuple):
    """The matching loss of the clipped linear link u(z) = min(1, max(0, z)): its slope is u(z) - y."""

    scale: float
    targets, link, convex, lipschitz = "unit", "clipped", True, 1.0
    link_lipschitz = 1.0

    def slope(self, z, y):
        return self.scale * (min(1.0, max(0.0, z)) - y)

    def value(self, z, y):
        u = min(1.0, max(0.0, z))
        return self.scale * (u * (z - 0.5 * u) - y * z)

    def mean(self, z):
        return min(1.0, max(0.0, z))

    def wrong(self, z, y):
        return (y - 0.5) * (z - 0.5) <= 0.0

    def implicit(self, z, y, a):
        b = self.scale * a
        if z + b * y <= 0.0:  # it lands where the link is 0
            return -self.scale * y
        if z + b * (y - 1.0) >= 1.0:  # or where it is 1
            return self.scale * (1.0 - y)
        return self.scale * (z - y) / (1.0 + b)


@loss_part
class Quantile(NamedTuple):
    """The pinball loss: targets above the prediction have the factor `quantile`, those below 1 - `quantile`."""

    quantile: float
    convex, lipschitz = True, 1.0
    ranges = (("quantile", 0.0, 1.0),)

    def slope(self, z, y):
        return 1.0 - self.quantile if z > y else (-self.quantile if z < y else 0.0)

    def value(self, z, y):
        return (1.0 - self.quantile) * (z - y) if z > y else self.quantile * (y - z)

    def implicit(self, z, y, a):
        if z - y >= (1.0 - self.quantile) * a or y - z >= self.quantile * a:
            return self.slope(z, y)
        return (z - y) / a


@loss_part
class Huber(NamedTuple):
    """(z - y)^2/2 if |z - y| is at most delta, continued by its tangents."""

    delta: float
    convex = True
    ranges = (("delta", 0.0, math.inf),)

    @property
    def lipschitz(self):
        return self.delta

    def slope(self, z, y):
        return min(self.delta, max(-self.delta, z - y))

    def value(self, z, y):
        far = abs(z - y)
        return 0.5 * far * far if far <= self.delta else self.delta * (far - 0.5 * self.delta)

    def implicit(self, z, y, a):
        return min(self.delta, max(-self.delta, (z - y) / (1.0 + a)))

    def steepness(self, span):
        return min(self.delta, span)


@loss_part
class Poisson(NamedTuple):
    """scale (e^z - y - y (z - ln y)) for y >= 0, half the deviance of a count with the mean e^z."""

    scale: float
    targets, link, convex = "count", "exponential", True

    def slope(self, z, y):
        return self.scale * (exponential(z) - y)

    def value(self, z, y):
        if y == 0.0:
            return self.scale * exponential(z)
        far = z - math.log(y)
        return self.scale * y * (exponential_beyond(far))

    def mean(self, z):
        return exponential(z)

    def curvature(self, z):
        return self.scale * exponential(z)

    def implicit(self, z, y, a):
        if a == 0.0:
            return self.slope(z, y)
        v, moved = poisson_root(z, y, self.scale * a)
        return (z - v) / a if moved > 1.0 else self.slope(v, y)


# ---------------------------------------------------------------- functions they share


@inlined
def exponential(z):
    """e^z, compiled: infinite where it overflows."""
    return math.exp(z)


@inlined
def exponential_beyond(z):
    """e^z - 1 - z."""
    return math.expm1(z) - z


@inlined
def sigmoid(z):
    e = math.exp(-abs(z))
    return 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)


@inlined
def logit_slope(z, y):
    """sigmoid(z) - y, and the negative of itself at (-z, 1 - y).

    For y = 0 and 1 all digits are correct; in between, the two terms cancel if sigmoid(z) is near y.
    """
    e = math.exp(-abs(z))
    near, far = 1.0 / (1.0 + e), e / (1.0 + e)
    return (1.0 - y) * near - y * far if z >= 0.0 else (1.0 - y) * far - y * near


@inlined
def size_of(v):
    """|v|."""
    return larger(v, minus(alike(v, 0.0), v))


@inlined
def start_of_root(margin, a):
    """Near the root v of v = margin + a sigmoid(-v), where `a` is large."""
    one, none = alike(a, 1.0), alike(a, 0.0)
    above = larger(margin, none)
    # Above 0, sigmoid(-v) is nearly e^-v and the root the product logarithm, nearly. Below, 1/2 - v/4 leads to it.
    end = plus(a, plus(margin, margin))
    ratio = where_less(
        margin, none, over(larger(end, none), minus(one, margin)), times(a, exponentials(minus(none, above), 0.0)[0])
    )
    size = rough_log(plus(one, ratio))
    bent = times(size, minus(one, over(rough_log(plus(one, size)), plus(alike(a, 2.0), size))))
    below = plus(margin, a)
    return where_less(end, none, where_less(below, none, below, none), plus(above, bent))


@inlined
def roots(margin, a):
    """The root v of v = margin + a sigmoid(-v), of a number or of lanes: Halley's steps in a bracket, two or three."""
    one, none = alike(a, 1.0), alike(a, 0.0)
    low, high, v, active = margin, plus(margin, a), margin, one
    if any_less(alike(a, NEAR), a):
        start = start_of_root(margin, a)
        start = where_less(start, low, low, where_less(high, start, high, start))
        v = where_less(alike(a, NEAR), a, start, margin)
    for _ in range(100):
        e = exponentials(minus(none, size_of(v)), 0.0)[0]
        near = over(one, plus(one, e))
        far = times(e, near)
        chance = where_less(v, none, near, far)  # sigmoid(-v)
        f = minus(minus(v, margin), times(a, chance))
        low, high = where_less(none, f, low, v), where_less(none, f, v, high)
        curvature = times(times(a, near), far)
        step = over(f, plus(one, curvature))
        turn = over(times(times(step, curvature), minus(chance, alike(a, 0.5))), plus(one, curvature))
        bend = minus(one, turn)
        new = minus(v, where_less(alike(a, 0.3), bend, over(step, bend), step))
        middle = times(alike(a, 0.5), plus(low, high))
        new = where_less(new, low, where_less(low, v, low, middle), new)
        new = where_less(high, new, where_less(v, high, high, middle), new)
        moved = size_of(minus(new, v))
        v = where_less(none, active, new, v)  # a lane that is done stays as it is
        active = where_less(times(alike(a, 1e-5), plus(alike(a, 1e-3), size_of(new))), moved, active, none)
        if not any_less(none, active):  # the next error is the third power of this
            break
    return v


@inlined
def chance_against(v, sign):
    """The slope at the root v of the margin."""
    e = math.exp(-abs(v))
    return -sign * (e / (1.0 + e) if v >= 0.0 else 1.0 / (1.0 + e))


@helper
def logistic_root(z, y, a):
    """The slope g = sigmoid(z - a g) - y for y = 0 or 1."""
    sign = 1.0 if y == 1.0 else -1.0
    return chance_against(roots(sign * z, a), sign)


@helper
def logistic_roots(like, z, y, c, q, scale, g):
    """The same for as many margins of z as `like` has lanes, with a = c q, times the scale into g."""
    sign = 1.0 if y == 1.0 else -1.0
    a = times(alike(like, scale), times(alike(like, c), load(like, q, 0)))
    store(g, 0, roots(times(alike(like, sign), load(like, z, 0)), a))
    for k in range(g.size):
        g[k] = scale * chance_against(g[k], sign)


@helper
def poisson_root(z, y, a):
    """The v with v = z - a (e^v - y), and a e^v, by Newton steps from above, which never overshoot."""
    end = z + a * y
    size = end + math.log(a)  # a e^v plus its logarithm
    v = end if size <= 1.0 else math.log(size) - math.log(a)
    for _ in range(50):
        moved = a * math.exp(v)
        step = (v + moved - end) / (1.0 + moved)
        v -= step
        if not step > 1e-15 * abs(v):
            break
    return v, a * math.exp(v)


@inlined
def normal(z):
    """The normal distribution function, accurate in both tails."""
    return 0.5 * math.erfc(-z * ROOT_HALF)


@inlined
def bell(z):
    """The normal density."""
    return BELL * math.exp(-0.5 * z * z)


@helper
def implicit_smooth(loss, z, y, a):
    """The slope g = slope(z - a g), by Newton steps, or bisection if they do not halve the bracket."""
    g = loss.slope(z, y)
    lo, hi = min(g, 0.0), max(g, 0.0)
    width = hi - lo
    for _ in range(200):
        f = g - loss.slope(z - a * g, y)
        if f > 0.0:
            hi = g
        else:
            lo = g
        new = g - f / (1.0 + a * loss.curvature(z - a * g))
        if not lo < new < hi or hi - lo > 0.5 * width:
            new = 0.5 * (lo + hi)
        width = hi - lo
        if f == 0.0 or abs(new - g) <= 2e-16 * abs(g):
            return new if f != 0.0 else g
        g = new
    return g
