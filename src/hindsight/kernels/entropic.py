"""The multiplicative geometries: weights on a simplex, plain or doubled for signed weights, in the log domain.

Numerators and their mass are stored with the exponents theta, so that a sparse step costs O(nnz). For averages each
coordinate has a running sum of its weights and the clock at which it was last updated; the clock is the sum of 1/mass
over the rounds.

Weights on the simplex do not change if a constant is added to every exponent, and exponents far from 0 have few digits
after the decimal point. A common shift is therefore subtracted before the next step.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from .compiler import inlined, kernel
from .exponentials import LN2_HI, LN2_LO, LOG2_E, exponentials
from .floats import EPS
from .geometries import fill_in, geometry_part
from .rows import inner
from .simd import minus, plus
from .state import scalar, vector

CANCELLED = 2.0**-10  # share of the mass below which it is not taken as a difference
HALVINGS = 2300  # twice as many as lead from 1 to the smallest number and through its digits
FAR = 1024.0  # a common shift of the exponents that is taken out, in units of ln 2


class EntropicState(NamedTuple):
    """Exponents, and numerators and their mass over 2^shift.

    `base` is the mass when it was last recomputed, and `touched` bounds its relative error since then, in units of a
    rounding: the number of coordinates touched, and more where the mass fell.
    """

    theta: Annotated[np.ndarray, vector(odd=True)]
    numerator: Annotated[np.ndarray, vector(odd=True)]
    total: Annotated[np.ndarray, vector(odd=True, averaging=True)]
    summed: Annotated[np.ndarray, vector(averaging=True)]
    mass: Annotated[np.ndarray, scalar()]
    base: Annotated[np.ndarray, scalar()]
    touched: Annotated[np.ndarray, scalar()]
    clock: Annotated[np.ndarray, scalar()]
    shift: Annotated[np.ndarray, scalar()]


# ---------------------------------------------------------------- the state


@inlined
def catch_up(state, j):
    """Bring one coordinate's running sum of weights up to the clock."""
    clock = state.clock[0]
    if clock != state.summed[j]:  # a numerator just moved may be infinite until the mass is recomputed
        state.total[j] += state.numerator[j] * (clock - state.summed[j])
        state.summed[j] = clock


@kernel
def refresh(geometry, state):
    """Shift to the largest exponent and recompute mass and numerators; running sums are brought up to date."""
    theta = state.theta
    for j in range(state.summed.size):
        catch_up(state, j)
        state.summed[j] = 0.0
    top = -np.inf
    for j in range(theta.size):
        top = max(top, geometry.height(theta[j]))
    shift = math.ceil(top * LOG2_E)
    mass, lost = 0.0, 0.0  # a compensated sum: a million equal roundings would add up
    for j in range(theta.size):
        state.numerator[j], m = geometry.numerator_and_mass(theta[j], shift)
        part = m - lost
        total = mass + part
        lost = (total - mass) - part
        mass = total
    state.mass[0], state.base[0], state.touched[0], state.clock[0], state.shift[0] = mass, mass, 0.0, 0.0, shift


@inlined
def shifted(theta, shift):
    """theta - shift ln 2: the products with LN2_HI, of the parts of a shift up to 2^40, are exact."""
    coarse = math.copysign(math.floor(abs(shift) * 2.0**-20) * 2.0**20, shift)
    return ((theta - coarse * LN2_HI) - (shift - coarse) * LN2_HI) - shift * LN2_LO


@kernel
def centre(state):
    """Subtract the shift from every exponent; numerators and mass, which are relative to 2^shift, do not change."""
    for j in range(state.theta.size):
        state.theta[j] = shifted(state.theta[j], state.shift[0])
    state.shift[0] = 0.0


@kernel
def mass_beside(geometry, state, rows, t):
    """The mass of the coordinates that row t does not touch, over 2^shift, and that shift.

    It is the difference between the whole mass and that of the row. If the difference is so small that it has few
    digits, it is summed over the coordinates between those of the row, since a step may make it dominant.
    """
    theta, shift = state.theta, state.shift[0]
    a, b = rows.span(t)
    end = theta.size - 1 if rows.bias != 0.0 else theta.size
    if b - a == end:
        return 0.0, shift
    held = geometry.numerator_and_mass(theta[end], shift)[1] if rows.bias != 0.0 else 0.0
    for k in range(a, b):
        held += geometry.numerator_and_mass(theta[rows.index(k)], shift)[1]
    rest = state.mass[0] - held
    if rest > CANCELLED * state.mass[0]:
        return rest, shift
    top, first = -np.inf, 0
    for k in range(a, b + 1):
        stop = rows.index(k) if k < b else end
        for j in range(first, stop):
            top = max(top, geometry.height(theta[j]))
        first = stop + 1
    if top == -np.inf:  # weights of 0 stay 0
        return 0.0, shift
    rest, shift, first = 0.0, float(math.ceil(top * LOG2_E)), 0
    for k in range(a, b + 1):
        stop = rows.index(k) if k < b else end
        for j in range(first, stop):
            rest += geometry.numerator_and_mass(theta[j], shift)[1]
        first = stop + 1
    return rest, shift


@kernel
def margin_after(geometry, state, rows, t, d, rest, least):
    """The margin of row t after a step d on it, without taking the step; rest over 2^least is the mass beside it."""
    d *= geometry.radius
    theta = state.theta
    a, b = rows.span(t)
    last = theta.size - 1
    top = -np.inf
    for k in range(a, b):
        top = max(top, geometry.height(theta[rows.index(k)] + d * rows.entry(t, k)))
    if rows.bias != 0.0:
        top = max(top, geometry.height(theta[last] + d * rows.bias))
    shift = math.ceil(top * LOG2_E)
    if rest > 0.0:  # otherwise all exponents may have fallen far below it
        shift = max(least, shift)
        rest *= 2.0 ** (least - shift)
    new, dot = 0.0, 0.0
    for k in range(a, b):
        x = rows.entry(t, k)
        e, mass = geometry.numerator_and_mass(theta[rows.index(k)] + d * x, shift)
        new += mass
        dot += e * x
    if rows.bias != 0.0:
        e, mass = geometry.numerator_and_mass(theta[last] + d * rows.bias, shift)
        new += mass
        dot += e * rows.bias
    return geometry.radius * dot / (rest + new)


@kernel
def numerators_and_masses(geometry, theta, shift, out):
    """Numerator and mass of every coordinate."""
    for j in range(theta.size):
        out[0, j], out[1, j] = geometry.numerator_and_mass(theta[j], shift)


# ---------------------------------------------------------------- what both geometries share


class Entropic:
    """What both geometries share."""

    State = EntropicState
    multiplicative, can_grow, averages = True, False, True

    def dot(self, state, rows, t):
        dot, q, top = inner(state.numerator, rows, t)
        return self.radius * dot / state.mass[0], q, top

    def tick(self, state):
        state.clock[0] += 1.0 / state.mass[0]

    def step(self, loss, state, rows, t, z, y, c, d):
        """One multiplicative step in O(nnz).

        The mass is updated by differences. It is recomputed when as many coordinates have been touched as there are,
        sooner if its relative error grew because it fell, and when it has changed by a factor of 2^10 (differences of
        the clock would cancel). All this depends only on the state, so the sizes of chunks do not matter.
        """
        if d == 0.0:
            return
        if self.is_far(state):
            centre(state)
        a, b = rows.span(t)
        theta, numerator, shift = state.theta, state.numerator, state.shift[0]
        last = theta.size - 1
        if state.summed.size > 0:
            for k in range(a, b):
                catch_up(state, rows.index(k))
            if rows.bias != 0.0:
                catch_up(state, last)
        d *= self.radius
        rest, new = rows.step_exponents(loss, self, theta, numerator, t, d, state.mass[0], shift)
        if rows.bias != 0.0:
            if rest != 0.0:
                rest -= self.numerator_and_mass(theta[last], shift)[1]
            theta[last] = loss.rounded_step(theta[last], d, rows.bias)
            numerator[last], mass = self.numerator_and_mass(theta[last], shift)
            new += mass
        if rest != 0.0:  # each sum is rounded in units of the larger of both masses
            fell = state.mass[0] / (rest + new)
            state.touched[0] = state.touched[0] * fell + 0.5 * (1.0 + fell) * (b - a + 1)
        state.mass[0] = rest + new
        base = state.base[0]
        if state.touched[0] > theta.size or not base * 2.0**-10 < state.mass[0] < base * 2.0**10:
            refresh(self, state)

    def solve(self, loss, state, rows, t, z, q, y, a):
        """The slope g = slope(margin after the step -a g): margins fall as g grows, so g lies between 0 and slope(z).

        False position and bisection alternate; bisection handles a jump of the slope (hinge, absolute). They end when
        no floating-point number lies between the two ends, after at most 2 log2(slope(z)/g) + 106 iterations.
        """
        if self.is_far(state):
            centre(state)
        g = loss.slope(z, y)
        rest, least = mass_beside(self, state, rows, t)
        near, far = 0.0, g
        f_near, f_far = -g, g - loss.slope(margin_after(self, state, rows, t, -a * g, rest, least), y)
        for i in range(HALVINGS):
            if f_far == 0.0 or abs(far - near) <= 2e-16 * abs(far):
                break
            g = near - f_near * (far - near) / (f_far - f_near) if i % 2 == 0 else 0.5 * (near + far)
            if i % 2 == 1 and (g == near or g == far):
                break
            f = g - loss.slope(margin_after(self, state, rows, t, -a * g, rest, least), y)
            if f * f_near > 0.0:
                near, f_near = g, f
            else:
                far, f_far = g, f
        return far

    def dual_norm(self, q, top):
        return (self.radius * top) ** 2

    def reach(self, state):
        return self.radius

    def largest(self, state):
        """The largest exponent, after a large shift has been subtracted."""
        shift = state.shift[0] if self.is_far(state) else 0.0
        found = 0.0
        for j in range(state.theta.size):
            if np.isfinite(state.theta[j]):  # a start may have a weight of 0
                found = max(found, abs(shifted(state.theta[j], shift)))
        return found

    def rounding(self, state, rows, t, d):
        """A bound on the rounding error of an exponent in the step d on row t, including that of removing the shift."""
        far = abs(d) * self.radius
        found = 0.0
        a, b = rows.span(t)
        for k in range(a, b):
            here = abs(state.theta[rows.index(k)])
            if here < np.inf:
                found = max(found, here + far * abs(rows.entry(t, k)))
        here = abs(state.theta[state.theta.size - 1])
        if rows.bias != 0.0 and here < np.inf:
            found = max(found, here + far * rows.bias)
        if self.is_far(state):
            found += self.largest(state)
        return EPS * found if d != 0.0 else 0.0

    def limit(self):
        return 2.0**48  # beyond it theta, and so e^theta, has lost its digits

    def mark(self, state):
        return state.mass[0], 0.0 if self.is_far(state) else state.shift[0]  # as the next step finds it

    def conjugate_change(self, state, mark, d, z, after):
        """The change of ln Sigma e^theta."""
        if d == 0.0:
            return 0.0
        return math.log(state.mass[0] / mark[0]) + (state.shift[0] - mark[1]) * (LN2_HI + LN2_LO)

    def place(self, state: EntropicState, start: np.ndarray | None) -> None:
        """Put the state at the start; without one all exponents are 0."""
        if start is not None:
            state.theta[:] = self.dual(start)
        refresh(self, state)

    def place_dual(self, state: EntropicState, theta: np.ndarray) -> None:
        """Put the exponents at a point."""
        state.theta[:] = theta
        refresh(self, state)

    def weights(self, state: EntropicState) -> np.ndarray:
        """The weights, with a recomputed mass."""
        out = np.empty((2, state.theta.size))
        numerators_and_masses(self, state.theta, state.shift[0], out)
        return self.radius * out[0] / out[1].sum()

    def iterate_sum(self, state: EntropicState) -> np.ndarray:
        """The sum of w_t over the rounds played, w_1 included and w_{T+1} not."""
        return self.radius * (state.total + state.numerator * (state.clock[0] - state.summed))


def entropic(kind):
    """Register a multiplicative geometry: it has what both share, and its own numerators and masses."""
    return geometry_part(fill_in(kind, Entropic))


# ---------------------------------------------------------------- the two geometries


@entropic
class Simplex(NamedTuple):
    """w_i = radius e^theta_i / Sigma e^theta_j, with the relative entropy as divergence."""

    radius: float
    signed, norm = False, "|x|∞"

    def numerator_and_mass(self, theta, shift):
        up, down = exponentials(theta, shift)
        return up, up

    def height(self, theta):
        return theta

    def is_far(self, state):
        return abs(state.shift[0]) > FAR

    def dual(self, w: np.ndarray) -> np.ndarray:
        """The exponents of weights."""
        with np.errstate(divide="ignore"):
            return np.log(w / self.radius)

    def check_start(self, start: np.ndarray) -> None:
        """Refuse weights that do not lie on the simplex."""
        least, total = start.min(), start.sum()
        if not (least >= 0 and abs(total - self.radius) <= 1e-9 * self.radius):
            raise ValueError(
                f"start must lie on the simplex: least weight {least:g}, sum {total:g} (want {self.radius:g})"
            )


@entropic
class Balanced(NamedTuple):
    """w_i = radius sinh theta_i / Sigma cosh theta_j: the simplex rule on radius (x, -x), one theta for both halves."""

    radius: float
    norm = "U|x|∞"

    def numerator_and_mass(self, theta, shift):
        up, down = exponentials(theta, shift)
        return minus(up, down), plus(up, down)

    def height(self, theta):
        return abs(theta)

    def is_far(self, state):
        return False  # weights depend on the exponents themselves

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

    def check_start(self, start: np.ndarray) -> None:
        """Refuse weights whose L1 norm is not below the radius."""
        if not np.abs(start).sum() < self.radius:
            raise ValueError(f"start must have |w|_1 below the radius {self.radius:g}, got {np.abs(start).sum():g}")
