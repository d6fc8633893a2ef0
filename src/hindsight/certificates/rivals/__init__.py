"""Rivals: the comparator u that makes a bound smallest in hindsight, with how far from smallest it may be.

Every bound of the notes holds for every u, so an inexact rival loosens a certificate and never falsifies it.
`Data` is the rows as played; `best` solves the problem of the loss bounds for any rule and geometry, `fixed` takes the
user's u; `perceptron`, `hard_margin`, `winnow` and `max_margin` serve the mistake bounds.
"""

from ...rows.matrices import Data
from .loss import Rival, best, best_from_moments, fixed
from .mistakes import HardMargin, MistakeRival, hard_margin, perceptron, plain_bound, sharp_bound
from .ridge import Moments
from .winnow import MaxMargin, max_margin, winnow

__all__ = [
    "Data",
    "HardMargin",
    "MaxMargin",
    "MistakeRival",
    "Moments",
    "Rival",
    "best",
    "best_from_moments",
    "fixed",
    "hard_margin",
    "max_margin",
    "perceptron",
    "plain_bound",
    "sharp_bound",
    "winnow",
]
