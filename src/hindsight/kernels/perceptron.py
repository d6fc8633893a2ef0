"""The loops of the batch perceptron with a pocket."""

from __future__ import annotations

import numpy as np

from .compiler import helper, kernel
from .rows import add, inner

PROGRESS = np.dtype(
    [
        ("position", np.int64),  # the next row to scan
        ("right", np.int64),  # rows scanned since the last update, all right
        ("updates", np.int64),
        ("visits", np.int64),  # rows scanned
        ("errors", np.int64),  # training errors of the pocket
        ("reads", np.int64),  # rows read to count errors
        ("all_counted", np.int64),  # 1 while every hypothesis has been counted, otherwise 0
        ("zero_margins", np.int64),  # updates at a margin of 0
        ("loss", np.float64),  # sum over the updates of -y (w . x)
        ("norm", np.float64),  # sum over the updates of |x|^2
    ],
    align=True,
)
FIRST_TEST = 32  # rows after which the rate of errors is compared first; then after twice as many, and so on


def begin_progress() -> np.ndarray:
    """Return the progress before the first row: an array of one record, read and written as ``progress[0].updates``."""
    return np.zeros(1, PROGRESS).view(np.recarray)


@kernel
def count_errors(rows, y, w, order, limit, most):  # type: ignore[no-untyped-def]
    """The errors of w and the rows read; it stops at `limit` errors, or after `most` rows."""
    wrong = 0
    for k in range(most):
        i = order[k]
        if not y[i] * inner(w, rows, i)[0] > 0.0:
            wrong += 1
            if wrong >= limit:
                return wrong, k + 1
    return wrong, most


@helper
def count_errors_while_fewer(rows, y, w, shuffled, limit):  # type: ignore[no-untyped-def]
    """The same over shuffled rows; it stops early if errors come faster than the pocket's `limit` in all rows."""
    wrong, test, rate = 0, FIRST_TEST, limit / y.size
    for k in range(y.size):
        i = shuffled[k]
        if not y[i] * inner(w, rows, i)[0] > 0.0:
            wrong += 1
            if wrong >= limit:
                return wrong, k + 1
        if k + 1 == test:
            if wrong > rate * test:
                return limit, k + 1
            test *= 2
    return wrong, y.size


@kernel
def fill_pocket(w, pocket, progress, errors):  # type: ignore[no-untyped-def]
    """Put w, with its errors, in the pocket."""
    for j in range(w.size):
        pocket[j] = w[j]
    progress[0].errors = errors


@helper
def compare_to_pocket(rows, y, w, pocket, order, shuffled, progress, budget):  # type: ignore[no-untyped-def]
    """Put w in the pocket if it has fewer errors, reading at most `budget` rows to find out."""
    m, p = y.size, progress[0]
    if p.updates == 0:  # the first hypothesis is in the pocket already
        return
    if p.all_counted == 1:
        wrong, read = count_errors(rows, y, w, order, p.errors, m if budget >= m else max(0, int(budget)))
        if wrong < p.errors and read < m:
            p.all_counted = 0
    elif budget >= m:
        wrong, read = count_errors_while_fewer(rows, y, w, shuffled, p.errors)
    else:
        return
    p.reads += read
    if wrong < p.errors and read == m:
        fill_pocket(w, pocket, progress, wrong)


@kernel
def scan(rows, y, q, w, pocket, order, shuffled, progress, enough, visits, updates, reads, budget, reads_per_visit):  # type: ignore[no-untyped-def]
    """Scan until `enough` rows in turn were right or a total is reached; -1, or a row whose margin is not finite."""
    m, p = y.size, progress[0]
    position, right, seen = p.position, p.right, p.visits
    while right < enough and seen < visits and p.updates < updates:
        z = inner(w, rows, position)[0]
        if not abs(z) < np.inf:
            return position
        i = position
        position = position + 1 if position + 1 < m else 0
        seen += 1
        if y[i] * z > 0.0:
            right += 1
            continue
        compare_to_pocket(
            rows, y, w, pocket, order, shuffled, progress, budget + reads_per_visit * seen - p.reads
        )  # fmt: skip
        add(w, rows, i, y[i])
        p.updates += 1
        right = 0
        p.loss += abs(z)
        p.norm += q[i]
        if z == 0.0:
            p.zero_margins += 1
        if p.reads >= reads:
            break
    p.position, p.right, p.visits = position, right, seen
    return -1
