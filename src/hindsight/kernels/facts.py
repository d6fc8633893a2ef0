"""The record into which the loops add the facts of a run, one named field each.

`ORDER` are the sums of z^2 and of |x|_2^2 with each round multiplied by its number. They change if rows are reordered,
or if other margins lead to the same weights. They are not facts, since they are not additive.
"""

import numpy as np

NAMES = (
    "rounds",
    "weight",
    "loss",
    "square",
    "mistakes",
    "mistake_weight",
    "mistake_norm",
    "target",
    "gradient",
    "rate",
    "rate_loss",
    "rate_gradient",
    "x2",
    "xinf",
    "weight_x2",
    "weight_xinf",
    "weight_max",
    "rate_x2",
    "rate_xinf",
    "target_max",
    "rate_max",
    "rate_min",
)
ORDER = ("order_margin", "order_norm")
FACTS = np.dtype([(name, np.float64) for name in NAMES + ORDER], align=True)


def empty_facts() -> np.ndarray:
    """Return the facts of no rounds: an array of one record, read and written as ``facts[0].loss``.

    While a run is under way ``x2`` holds the largest squared norm, so that loops take no square roots, and
    ``rate_min`` is infinite before the first round.
    """
    facts = np.zeros(1, FACTS).view(np.recarray)
    facts[0].rate_min = np.inf
    return facts
