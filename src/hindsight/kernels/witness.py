"""What a replay notes of each round."""

from typing import NamedTuple

import numpy as np

from .compiler import part
from .online import Steps


@part
class Witness(NamedTuple):
    """Notes the steps, and what rounding may have added to the conjugate of the potential in each."""

    steps: Steps
    rounded: np.ndarray

    def before(self, geometry, state):
        return self.steps.before(geometry, state)

    def after(self, geometry, state, rows, t, i, mark, z, d):
        self.steps.after(geometry, state, rows, t, i, mark, z, d)
        self.rounded[i] = geometry.rounding(state, rows, t, d)
