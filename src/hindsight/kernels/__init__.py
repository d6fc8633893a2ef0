"""Compiled code only, from arrays to numbers, without input, output or messages.

Every online learner is one rule: keep a dual vector theta, read the weights through the geometry, step on the loss::

    w_t = weights(theta_t)    z_t = w_t . x_t    theta_{t+1} = theta_t - eta_t * c_t * slope(z_t, y_t) * x_t

`online.play` is that loop. Losses, updates, geometries, rates and rows are the parts it is made of: NamedTuples whose
methods numba dispatches by type, so that each combination compiles to one tight loop, is cached across processes, and
also runs as plain Python (`play.py_func`).
"""

from .entropic import Balanced, Simplex
from .euclidean import Euclidean
from .losses import Absolute, Clipped, Hinge, Huber, Logistic, Poisson, Probit, Quantile, Square, Tanh
from .online import play
from .rates import RateSchedule
from .rows import CSR, Dense, Spaced, Strided
from .updates import Explicit, Implicit

__all__ = [
    "CSR",
    "Absolute",
    "Balanced",
    "Clipped",
    "Dense",
    "Euclidean",
    "Explicit",
    "Hinge",
    "Huber",
    "Implicit",
    "Logistic",
    "Poisson",
    "Probit",
    "Quantile",
    "RateSchedule",
    "Simplex",
    "Spaced",
    "Square",
    "Strided",
    "Tanh",
    "play",
]
