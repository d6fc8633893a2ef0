"""What a replay notes of each round."""

from typing import NamedTuple

import numpy as np

from .compiler import part


@part
class Witness(NamedTuple):
    """Notes each step d, what the state says it added to the conjugate of the potential, and the margin after it.

    `rounded` is what rounding may have added to that change.
    """

    taken: np.ndarray
    added: np.ndarray
    margin: np.ndarray
    rounded: np.ndarray

    def before(self, geometry, state):
        return geometry.mark(state)

    def after(self, geometry, state, rows, t, i, mark, z, d):
        self.taken[i] = d
        self.margin[i] = geometry.dot(state, rows, t)[0]
        self.added[i] = geometry.conjugate_change(state, mark, d, z, self.margin[i])
        self.rounded[i] = geometry.rounding(state, rows, t, d)
