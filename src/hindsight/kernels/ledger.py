"""What the rounds of a run add to its ledger, and what comparators lose on the rows: sums, kept at some of the rounds.

Sums are taken in the order of the rounds, so that chunks change nothing. `places` are those of the rounds at which
`kept` gets a row of the sums so far, in ascending order; `sums` is advanced. See `hindsight.certificates.ledger`.
"""

import math

from .compiler import inlined, kernel
from .floats import EPS
from .rows import inner, size_of_margin
from .simd import wide

PAID, SIZE, PRICE, SPENT, OFF, STRAY = range(6)  # the sums of a ledger
FIELDS = 6
ROOT = 1e-12  # relative error of the roots that second order takes


@inlined
def running_price(paid, paid_after, s, apart, q):
    """What a lazy step costs beyond the comparator: cℓ(z) − cℓ(z″) − s(z − z″) + ½ q s², s the slope at z″."""
    return paid - paid_after - s * apart + 0.5 * q * s * s


@inlined
def ridge_price(paid, z, y, c, q):
    """What a round cost beyond the rise of the ridge objective's smallest value, c(y − z)²/(1 + cq)."""
    return paid - c * (y - z) ** 2 / (1.0 + c * q)


@inlined
def newton_price(q, G, C, d):
    """½(qG² − 2Gd − Cd²)/(1 + Cq) with d = w̃.x − z."""
    return 0.5 * (q * G * G - 2.0 * G * d - C * d * d) / (1.0 + C * q)


@inlined
def keep(i, m, places, sums, kept):
    """Keep the sums after round i if it is the m-th of the places; the number of those kept."""
    if m < places.size and places[m] == i:
        for f in range(sums.size):
            kept[m, f] = sums[f]
        return m + 1
    return m


@inlined
def add_paid(loss, z, y, c, sums):
    """The loss of a round, and its size: what rounding in the margin may change it by, in units of that rounding."""
    paid = c * loss.value(z, y)
    sums[PAID] += paid
    sums[SIZE] += c * abs(loss.slope(z, y)) * (abs(z) + abs(y))
    return paid


@kernel
def add_lazy(z, q, step, y, c, loss, eta, ahead, base, places, sums, kept):
    """Lazy steps at the rate eta, whose slopes were taken at z − ahead q s: ahead is 1 for implicit ones, else 0.

    Where a slope is not that of the loss, even within rounding of where it was taken, by how much it is off counts
    times the distance of u's margin from there. A round without a step that ought to have had one is paid for.
    """
    wide()
    m = 0
    for i in range(z.size):
        paid = add_paid(loss, z[i], y[i], c[i], sums)
        s = -step[i] / eta if c[i] > 0.0 else 0.0
        size = eta * q[i]
        after = z[i] - ahead * (size * s)
        width = 8.0 * EPS * (abs(z[i]) + abs(size * s) + abs(y[i]))
        low, high = c[i] * loss.slope(after - width, y[i]), c[i] * loss.slope(after + width, y[i])
        off = max(0.0, max(low - s, s - high))
        if s == 0.0 and off > 0.0:
            price, off = paid, 0.0
        else:
            near = 2.0 * width * max(abs(s), max(abs(low), abs(high)))
            price = running_price(paid, c[i] * loss.value(after, y[i]), s, z[i] - after, size) + near
        sums[PRICE] += price
        sums[SPENT] += -s * (z[i] - base) + 0.5 * size * s * s
        sums[OFF] += off
        sums[STRAY] += off * abs(after)
        m = keep(i, m, places, sums, kept)


@kernel
def add_square(z, fitted, q, y, c, loss, places, sums, kept):
    """Predictions z of any kind beside the margins of ridge regression, which are `fitted`."""
    wide()
    m = 0
    for i in range(z.size):
        paid = add_paid(loss, z[i], y[i], c[i], sums)
        sums[PRICE] += ridge_price(paid, fitted[i], y[i], c[i], q[i])
        m = keep(i, m, places, sums, kept)


@kernel
def add_newton(z, q, step, y, c, loss, kappa, places, sums, kept):
    """Quadratics of curvature kappa p (1 - p) in place of the log losses; the root z was taken to `ROOT`."""
    wide()
    m = 0
    for i in range(z.size):
        add_paid(loss, z[i], y[i], c[i], sums)
        p = loss.mean(z[i])
        G, d = -step[i], q[i] * math.tanh(0.5 * z[i])
        sums[PRICE] += newton_price(q[i], G, c[i] * kappa * p * (1.0 - p), d) + abs(G) * ROOT * (abs(z[i]) + abs(d))
        m = keep(i, m, places, sums, kept)


LOST, LENGTHS, LARGEST = range(3)  # the sums of a comparator


@kernel
def meet(rows, y, c, loss, u, places, sums, kept, z):
    """What the comparator u loses on rows, with its margins into z.

    `sums` are its losses, what rounding in the margins may change them by, and its largest |margin|.
    """
    wide()
    m = 0
    for i in range(z.size):
        z[i] = inner(u, rows, i)[0]
        sums[LOST] += c[i] * loss.value(z[i], y[i])
        sums[LENGTHS] += c[i] * abs(loss.slope(z[i], y[i])) * (size_of_margin(u, rows, i) + abs(y[i]))
        sums[LARGEST] = max(sums[LARGEST], abs(z[i]))
        m = keep(i, m, places, sums, kept)
