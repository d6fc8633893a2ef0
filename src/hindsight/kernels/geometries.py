"""Geometries: how the dual state is mapped to weights, and how a step is taken.

A geometry is a NamedTuple, registered with `geometry_part`, with a class attribute ``State`` (see `state`) and these
methods (those in brackets may be left out; z is a margin, q = |x|_2^2, top = |x|_inf, d the step along the row)::

    dot(self, state, rows, t)                       (z, q, top) of row t
    step(self, loss, state, rows, t, z, y, c, d)    move the state; called in every round, also where d = 0
    weights(self, state)                            the weights, in Python
    [solve(self, loss, state, rows, t, z, q, y, a)] the implicit slope; without it there are no implicit steps
    [keep_pace(self, state, eta)]                   told the rate of the round before the slope; writes to scratch only
    [tick(self, state)]                             what changes with the clock, before the step
    [place(self, state, start)]                     put the state at the weights `start` (None: the default), in Python
    [check_start(self, start)]                      refuse weights outside the geometry's set, in Python
    [iterate_sum(self, state)]                      the sum of w_1..w_T, where ``averages``, in Python
    [opens(self, state, rows)]                      whether the next row only gives the weights their start: no round
    [dual_norm(self, q, top)]                       the squared dual norm of a row
    [reach(self, state), largest(self, state), limit(self)]   how far a step of size 1 moves a number of the state, the
                                                    largest number there is, and how large one may become
    [mark(self, state), conjugate_change(self, state, mark, d, z, after)]   what a step added to the conjugate of the
                                                    potential, from the state before and after; NaN where not known
    [rounding(self, state, rows, t, d)]             what rounding may have added to that in the step d on row t

Plain class attributes declare the rest: ``name``; ``multiplicative``, whether weights depend on the number of features;
``signed``, whether negating the labels negates the weights; ``can_grow``, whether features may be added later;
``averages``, whether it keeps the sum of its iterates; ``linear``, whether a row is predicted by w . x with weights
that do not depend on the row; ``norm``, how its dual norm is written.
"""

import numpy as np

from .compiler import part
from .state import empty


class Defaults:
    """The defaults of the optional methods and attributes of a geometry."""

    multiplicative, averages, signed, can_grow, linear = False, False, True, True, True
    radius, norm = 1.0, "|x|₂"

    def tick(self, state):
        pass

    def keep_pace(self, state, eta):
        pass

    def place(self, state, start):
        if start is not None:
            raise ValueError(f"start: the {self.name} geometry has no other start than its own")

    def check_start(self, start):
        pass

    def opens(self, state, rows):
        return False

    def dual_norm(self, q, top):
        return q

    def reach(self, state):
        return 1.0

    def largest(self, state):
        return 0.0

    def limit(self):
        return np.inf

    def mark(self, state):
        return 0.0, 0.0

    def conjugate_change(self, state, mark, d, z, after):
        return np.nan

    def rounding(self, state, rows, t, d):
        return 0.0


def fill_in(kind, defaults):
    """Copy to a class the methods and attributes of another one that it does not define."""
    for name, value in vars(defaults).items():
        if not name.startswith("__") and not hasattr(kind, name):
            setattr(kind, name, value)
    return kind


def fill_in_geometry(kind):
    """Add the defaults that a geometry does not define."""
    kind.name = getattr(kind, "name", kind.__name__.lower())
    return fill_in(kind, Defaults)


def geometry_part(kind):
    """Register a geometry: add defaults for what it does not define, and let compiled code call its methods."""
    return part(fill_in_geometry(kind))


def begin(geometry, width: int, start: np.ndarray | None, averaging: bool):
    """The state of a geometry with `width` coordinates, at its start."""
    state = empty(geometry.State, width, averaging)
    geometry.place(state, start)
    return state
