"""The state of a learner."""

import numpy as np

from .rows import LINE

# Scalars of a learner's state. `v` holds its vectors, a row each (the intercept in the last column):
# theta (+ moments of it for averaging), and for the multiplicative geometries the numerators of w
# (+ their running sum and the clock at which each was last brought up to date).
ROUNDS, REACH, MASS, BASE, TOUCHED, CLOCK, SHIFT, SCALARS = range(8)


# ---------------------------------------------------------------- geometries


def aligned(rows: int, width: int) -> np.ndarray:
    """Zeros that begin at a cache line, so that eight of them are never spread over two."""
    room = np.zeros(rows * width + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    return room[first : first + rows * width].reshape(rows, width)
