"""Where the slope is taken."""

from typing import NamedTuple

# ---------------------------------------------------------------- updates


class Explicit(NamedTuple):
    """The slope at the weights that predicted."""

    scale: float

    def pull(self, rule, geometry, v, s, rows, t, z, q, y, a):
        return rule.slope(z, y)


class Implicit(NamedTuple):
    """The slope at the weights after the step (the notes' updates before their approximation)."""

    scale: float

    def pull(self, rule, geometry, v, s, rows, t, z, q, y, a):
        return geometry.solve(rule, v, s, rows, t, z, q, y, a)
