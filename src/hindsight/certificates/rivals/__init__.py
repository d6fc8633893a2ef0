"""Comparators: the u that makes a bound smallest in hindsight, with how far from smallest it may be.

The bounds hold for every u, so an inexact one loosens a certificate and never falsifies it. `best` finds that of a loss
bound for any loss and geometry, `fixed` takes a given u; `perceptron`, `hard_margin` and `winnow` serve the
mistake bounds. `Data` is the rows as played.
"""

from ...rows.data import Data
from .loss import Rival, best, fixed
from .mistakes import HardMargin, MistakeRival, hard_margin, perceptron, plain_bound
from .winnow import winnow

__all__ = [
    "Data",
    "HardMargin",
    "MistakeRival",
    "Rival",
    "best",
    "fixed",
    "hard_margin",
    "perceptron",
    "plain_bound",
    "winnow",
]
