"""Whether targets come sorted or in blocks; if so, the progressive loss says little about rows in another order."""

from __future__ import annotations

import math

import numpy as np

FIELDS = 8  # rows, last, first, changes; for numbers: sums of d, d², t·d and of squared steps, d = y − first
ENOUGH = 20  # rows below which nothing is said
SURE = 4.0  # standard deviations
FEWER = 4.0  # times fewer label changes than in a random order
TREND = 0.6  # correlation with the number of the row
ALIKE = 0.1  # squared steps from row to row, beside those of a random order


def add_labels(sums: np.ndarray, codes: np.ndarray) -> None:
    """Count the rows whose label differs from that of the previous row."""
    if not len(codes):
        return
    if sums[0]:
        sums[3] += codes[0] != sums[1]
    sums[3] += np.count_nonzero(codes[1:] != codes[:-1])
    sums[0] += len(codes)
    sums[1] = codes[-1]


def add_numbers(sums: np.ndarray, y: np.ndarray) -> None:
    """Add targets one after another, so that the result does not depend on the sizes of chunks."""
    if not len(y):
        return
    if not sums[0]:
        sums[1] = sums[2] = y[0]
    with np.errstate(over="ignore", invalid="ignore"):
        d, t = y - sums[2], sums[0] + np.arange(1.0, len(y) + 1)
        step = np.diff(y, prepend=sums[1])
        for k, terms in ((4, d), (5, d * d), (6, t * d), (7, step * step)):
            sums[k] = np.cumsum(np.concatenate([sums[k : k + 1], terms]))[-1]
    sums[0] += len(y)
    sums[1] = y[-1]


def label_order(sums: np.ndarray, counts: np.ndarray) -> str | None:
    """A warning about the order of labels, given the number of rows of each; None if the order looks random.

    In a random order, neighbours differ with the same probability as two rows drawn at random.

    Examples
    --------
    >>> sums = np.zeros(FIELDS)
    >>> add_labels(sums, np.repeat([0, 1], 50))
    >>> label_order(sums, np.array([50, 50]))
    'the labels come sorted or in blocks (1 change from row to row, about 50 in a random order)'
    """
    n, changes = float(sums[0]), float(sums[3])
    if n < ENOUGH:
        return None
    expected = (n - 1.0) * (1.0 - float((counts * (counts - 1.0)).sum()) / (n * (n - 1.0)))
    if changes >= expected / FEWER or expected - changes < SURE * math.sqrt(expected):
        return None
    each = f"{changes:,.0f} change{'s' if changes != 1 else ''} from row to row"
    return f"the labels come sorted or in blocks ({each}, about {expected:,.0f} in a random order)"


def number_order(sums: np.ndarray) -> str | None:
    """A warning about the order of numeric targets; None if the order looks random.

    Examples
    --------
    >>> sums = np.zeros(FIELDS)
    >>> add_numbers(sums, np.arange(100.0))
    >>> number_order(sums)
    'the target rises with the number of the row (correlation 1.00)'
    """
    n, total, squares, product, steps = (float(sums[k]) for k in (0, 4, 5, 6, 7))
    if n < ENOUGH or not math.isfinite(squares + product + steps):
        return None
    spread = squares - total * total / n
    if spread <= 1e-12 * squares:
        return None
    trend = (product - (n + 1.0) / 2.0 * total) / math.sqrt(spread * n * (n * n - 1.0) / 12.0)
    if abs(trend) > TREND and abs(trend) * math.sqrt(n) > SURE:
        way = "rises" if trend > 0 else "falls"
        return f"the target {way} with the number of the row (correlation {trend:.2f})"
    alike = steps / (2.0 * spread)
    if alike < ALIKE and (1.0 - alike) * math.sqrt(n) > SURE:
        part = math.sqrt(alike)
        return f"the targets come in blocks (steps from row to row are {part:.2f} times those in a random order)"
    return None
