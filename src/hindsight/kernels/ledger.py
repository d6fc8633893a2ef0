"""The sums of a ledger and the losses of comparators, accumulated over rounds and stored after some of them.

Sums are taken in the order of the rounds, so that they do not depend on chunks. `sums` is updated, and after the rounds
at the ascending positions `places` its values are written to a row of `kept`. See `hindsight.certificates.ledger`.
"""

import math

from .compiler import inlined, kernel
from .floats import EPS
from .rows import inner, size_of_margin
from .simd import larger, wide

PAID, SIZE, PRICE, SPENT, OFF, STRAY = range(6)  # the sums of a ledger
FIELDS = 6
ROOT = 1e-12  # relative error of the roots that second order takes


@inlined
def running_price(paid, paid_after, s, apart, q):
    """The price of a lazy step: cℓ(z) − cℓ(z″) − s(z − z″) + ½ q s², where s is the slope at z″."""
    return paid - paid_after - s * apart + 0.5 * q * s * s


@inlined
def ridge_price(paid, z, y, c, q):
    """The loss of a round minus the rise of the smallest value of the ridge objective, c(y − z)²/(1 + cq)."""
    return paid - c * (y - z) ** 2 / (1.0 + c * q)


@inlined
def newton_price(q, G, C, d):
    """The price of a Newton step: ½(qG² − 2Gd − Cd²)/(1 + Cq) with d = w̃.x − z."""
    return 0.5 * (q * G * G - 2.0 * G * d - C * d * d) / (1.0 + C * q)


@inlined
def keep(i, m, places, sums, kept):
    """Store the sums after round i if it is the m-th of the places; return the number of rows stored."""
    if m < places.size and places[m] == i:
        for f in range(sums.size):
            kept[m, f] = sums[f]
        return m + 1
    return m


@inlined
def add_paid(loss, z, y, c, sums):
    """Add the loss of a round, and how much rounding in the margin may change it, in units of that rounding."""
    paid = c * loss.value(z, y)
    sums[PAID] += paid
    sums[SIZE] += c * abs(loss.slope(z, y)) * (abs(z) + abs(y))
    return paid


@kernel
def add_lazy(z, q, step, y, c, loss, eta, ahead, base, places, sums, kept):
    """Add lazy steps at the rate eta with slopes at z − ahead q s; `ahead` is 1 for implicit steps, otherwise 0.

    If a step's slope differs from that of the loss by more than rounding explains, the difference times the distance
    from that point to the margin of u is added. The loss of a round in which a necessary step was not made is added.
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
        off = larger(0.0, larger(low - s, s - high))
        if s == 0.0 and off > 0.0:
            price, off = paid, 0.0
        else:
            near = 2.0 * width * larger(abs(s), larger(abs(low), abs(high)))
            price = running_price(paid, c[i] * loss.value(after, y[i]), s, z[i] - after, size) + near
        sums[PRICE] += price
        sums[SPENT] += -s * (z[i] - base) + 0.5 * size * s * s
        sums[OFF] += off
        sums[STRAY] += off * abs(after)
        m = keep(i, m, places, sums, kept)


@kernel
def add_square(z, fitted, q, y, c, loss, places, sums, kept):
    """Add rounds with any predictions z, given the margins `fitted` of ridge regression."""
    wide()
    m = 0
    for i in range(z.size):
        paid = add_paid(loss, z[i], y[i], c[i], sums)
        sums[PRICE] += ridge_price(paid, fitted[i], y[i], c[i], q[i])
        m = keep(i, m, places, sums, kept)


@kernel
def add_newton(z, q, step, y, c, loss, kappa, places, sums, kept):
    """Add rounds with quadratics of curvature kappa p (1 - p) for the log losses; the root z is accurate to `ROOT`."""
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
    """Add the losses of the comparator u on rows, and write its margins to z.

    `sums` are its losses, how much rounding in the margins may change them, and its largest |margin|.
    """
    wide()
    m = 0
    for i in range(z.size):
        z[i] = inner(u, rows, i)[0]
        sums[LOST] += c[i] * loss.value(z[i], y[i])
        sums[LENGTHS] += c[i] * abs(loss.slope(z[i], y[i])) * (size_of_margin(u, rows, i) + abs(y[i]))
        sums[LARGEST] = larger(sums[LARGEST], abs(z[i]))
        m = keep(i, m, places, sums, kept)
