"""The loops of the batch perceptron."""

from __future__ import annotations

import numpy as np

from .compiler import kernel
from .rows import add, inner

# What the scan keeps: its place, rows right since the last update (in this call), updates, rows scanned, the pocket's
# errors, rows read to count errors, whether every hypothesis was counted, and updates at a margin of 0.
AT, RIGHT, UPDATES, VISITS, ERRORS, READ, EVERY, ZEROS, COUNTERS = range(9)
LOSS, NORM = range(2)  # sums over updates: -y (w.x), and |x|^2

SORT = 8, 50_000  # rows are put in order after so many times, and at least so many, were read to count errors


@kernel
def count(rows, y, v, order, limit, most):  # type: ignore[no-untyped-def]
    """Errors of v, and rows read: it stops at `limit` errors, or after `most` rows."""
    wrong = 0
    for k in range(most):
        i = order[k]
        if not y[i] * inner(v[0], rows, i)[0] > 0.0:
            wrong += 1
            if wrong >= limit:
                return wrong, k + 1
    return wrong, most


@kernel
def glance(rows, y, v, mixed, limit):  # type: ignore[no-untyped-def]
    """The same over rows in random order, given up early where errors come faster than the pocket's `limit`."""
    wrong, look, rate = 0, 32, limit / y.size
    for k in range(y.size):
        i = mixed[k]
        if not y[i] * inner(v[0], rows, i)[0] > 0.0:
            wrong += 1
            if wrong >= limit:
                return wrong, k + 1
        if k + 1 == look:
            if wrong > rate * look:
                return limit, k + 1
            look *= 2
    return wrong, y.size


@kernel
def keep(v, pocket, s, errors):  # type: ignore[no-untyped-def]
    for j in range(v.shape[1]):
        pocket[0, j] = v[0, j]
    s[ERRORS] = errors


@kernel
def judge(rows, y, v, pocket, order, mixed, s, spare):  # type: ignore[no-untyped-def]
    """Put v in the pocket if it has fewer errors, as far as `spare` rows may be read to find out."""
    m = y.size
    if s[UPDATES] == 0:  # the first hypothesis is the pocket already
        return
    if s[EVERY] == 1:
        wrong, read = count(rows, y, v, order, s[ERRORS], m if spare >= m else max(0, int(spare)))
        if wrong < s[ERRORS] and read < m:
            s[EVERY] = 0
    elif spare >= m:
        wrong, read = glance(rows, y, v, mixed, s[ERRORS])
    else:
        return
    s[READ] += read
    if wrong < s[ERRORS] and read == m:
        keep(v, pocket, s, wrong)


@kernel
def scan(rows, y, q, v, pocket, order, mixed, s, f, enough, visits, updates, reads, spare, effort):  # type: ignore[no-untyped-def]
    """Scan until `enough` rows were right, or to these totals; a row whose margin is not finite, or -1."""
    m = y.size
    at, right = s[AT], s[RIGHT]
    seen = s[VISITS]
    while right < enough and seen < visits and s[UPDATES] < updates:
        z = inner(v[0], rows, at)[0]
        if not abs(z) < np.inf:
            return at
        i = at
        at = at + 1 if at + 1 < m else 0
        seen += 1
        if y[i] * z > 0.0:
            right += 1
            continue
        judge(rows, y, v, pocket, order, mixed, s, spare + effort * seen - s[READ])
        add(v[0], rows, i, y[i])
        s[UPDATES] += 1
        right = 0
        f[LOSS] += abs(z)
        f[NORM] += q[i]
        if z == 0.0:
            s[ZEROS] += 1
        if s[READ] >= reads:
            break
    s[AT], s[RIGHT], s[VISITS] = at, right, seen
    return -1
