"""Updates: where the slope of a step is taken.

An update has one method, ``effective_slope(self, loss, geometry, state, rows, t, z, q, y, a)``: the slope s of the step
theta -= a s x on row t, where z is the margin before it, q = |x|_2^2, y the target and a the rate times the weight.
"""

from typing import NamedTuple

from .compiler import part


@part
class Explicit(NamedTuple):
    """The slope at the weights that predicted."""

    scale: float
    name = "explicit"

    def effective_slope(self, loss, geometry, state, rows, t, z, q, y, a):
        return loss.slope(z, y)


@part
class Implicit(NamedTuple):
    """The slope at the weights after the step: w_{t+1} minimises a loss(w . x, y) + D(w, w_t)."""

    scale: float
    name = "implicit"
    needs = ("solve",)  # of the geometry

    def effective_slope(self, loss, geometry, state, rows, t, z, q, y, a):
        return geometry.solve(loss, state, rows, t, z, q, y, a)
