"""The one online loop, and the parts it is made of.

Every online learner of the notes is one rule: keep a dual vector theta, read the weights through
the geometry, step on the loss::

    w_t = weights(theta_t)    z_t = w_t . x_t    theta_{t+1} = theta_t - eta_t * c_t * slope(z_t, y_t) * x_t

A learner is four parts. A **rule** is a loss in z, its slope, its implicit slope, the mean it predicts and how its
steps are rounded. An **update** says where the slope is taken (at the old or at the new weights). A **geometry** turns
theta into weights and takes the step. A **step** gives the rate of round t. Rows come as a fifth part. Parts are
NamedTuples whose methods numba dispatches by type, so each combination compiles to one tight loop, is cached across
processes, and also runs as plain Python (`play.py_func`). Parts and loop share this file: a part elsewhere would leave
a stale cache behind (`lanes`, the vector operations they are written in, hardly ever changes: save this file after it).
"""

import math

import numpy as np
from numba.core.types import BaseNamedTuple
from numba.extending import overload_method

from .compiler import INLINE, METHODS, inlined, kernel
from .geometries import LN2_HI, LN2_LO
from .simd import (
    fuse,
    wide,
)
from .state import MASS, REACH, ROUNDS, SHIFT

for _name, _args in METHODS.items():
    overload_method(BaseNamedTuple, _name, jit_options=INLINE)(eval(f"lambda {_args}: self.instance_class.{_name}"))


# ---------------------------------------------------------------- the loop


@kernel
def largest(v):
    """The largest number of theta, and of its moment."""
    found = 0.0
    for i in range(min(2, v.shape[0])):
        for j in range(v.shape[1]):
            if np.isfinite(v[i, j]):
                found = max(found, abs(v[i, j]))
    return found


FACTS = 22  # the size of the array of facts; `facts.Facts` names its places


@kernel
def play(rows, first, last, y, c, rule, update, geometry, step, v, s, z, q, top, f):
    """Play rows first..last: for each, margin and norms into z, q = |x|_2^2 and top = |x|_inf, then the step.

    Returns how many were played: fewer than asked where a row or its step is not finite, or where its indices do
    not ascend within the width; the state is then as it was before that row. The facts of the rounds are added to f:
    plain sums in the order played, so that the sizes of chunks change nothing, and held in local names meanwhile.
    """
    wide()
    constant = step.power == 0.0 and step.rates.size == 0
    sums = (f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[12], f[13], f[14], f[15], f[16], f[19])
    played = last - first
    for i in range(last - first):
        t = first + i
        rows.ready(t)
        zi, qi, ti = geometry.dot(v, s, rows, t)
        z[i], q[i], top[i] = zi, qi, ti
        if not abs(zi) + qi < np.inf:
            played = i
            break
        if c[i] == 0.0:
            continue
        eta = step.rate(s[ROUNDS] + 1.0)
        a = eta * c[i]
        d = -a * update.pull(rule, geometry, v, s, rows, t, zi, qi, y[i], a)
        if d != 0.0:
            # REACH bounds the numbers of the state from above; it is made exact before a step is refused.
            far, reach = abs(d) * ti * geometry.reach(v, s), s[REACH]
            if not reach + far < geometry.limit():
                reach = largest(v)
                if not reach + far < geometry.limit():
                    played = i
                    break
            s[REACH] = reach + far
        s[ROUNDS] += 1.0
        geometry.tick(s)
        if d != 0.0:
            geometry.step(rule, v, s, rows, t, d)
        sums = tally(rule, geometry, zi, qi, ti, y[i], c[i], sums)
        if not constant:
            tally_rate(rule, geometry, zi, qi, ti, y[i], c[i], eta, f)
    f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[12], f[13], f[14], f[15], f[16], f[19] = sums
    if constant and f[0] > 0.0:
        eta = step.eta
        f[9], f[10], f[11], f[17], f[18] = eta * f[0], eta * f[2], eta * eta * f[8], eta * f[14], eta * f[15]
        f[20], f[21] = eta, -eta
    return played


@inlined
def tally(rule, geometry, zi, qi, ti, yi, ci, sums):
    """The sums and maxima of the facts with one more round."""
    rounds, weight, total, square, wrong, wrong_c, wrong_q, target, gradients = sums[:9]
    x2, xinf, cx2, cxinf, cmax, ymax = sums[9:]
    slope, error = ci * rule.slope(zi, yi), rule.error(zi, yi)
    miss = 1.0 if rule.wrong(zi, yi) else 0.0  # no branch: it could not be foreseen
    return (
        rounds + 1.0,
        weight + ci,
        fuse(ci, rule.loss(zi, yi), total),
        fuse(ci * error, error, square),
        wrong + miss,
        fuse(miss, ci, wrong_c),
        fuse(miss * ci, ci * qi, wrong_q),
        fuse(ci * yi, yi, target),
        fuse(slope * slope, geometry.norm(qi, ti), gradients),
        max(x2, qi),
        max(xinf, ti),
        max(cx2, ci * qi),
        max(cxinf, ci * ti * ti),
        max(cmax, ci),
        max(ymax, abs(yi)),
    )


@inlined
def tally_rate(rule, geometry, zi, qi, ti, yi, ci, eta, f):
    """The facts in which the rate stands, where it changes from round to round."""
    slope = ci * rule.slope(zi, yi)
    f[9] += eta
    f[10] += eta * (ci * rule.loss(zi, yi))
    f[11] += eta * eta * (slope * slope * geometry.norm(qi, ti))
    f[17], f[18] = max(f[17], eta * (ci * qi)), max(f[18], eta * (ci * ti * ti))
    f[20], f[21] = max(f[20], eta), max(f[21], -eta)


@kernel
def trace(rows, first, last, y, c, rule, update, geometry, step, v, s, z, q, top, f, drift):
    """`play`, noting how much each round changed ln Sigma_i e^theta_i, the normaliser of multiplicative weights."""
    for i in range(last - first):
        mass, shift, j, k = s[MASS], s[SHIFT], i + 1, first + i
        done = play(rows, k, k + 1, y[i:j], c[i:j], rule, update, geometry, step, v, s, z[i:j], q[i:j], top[i:j], f)
        if done == 0:
            return i
        drift[i] = math.log(s[MASS] / mass) + (s[SHIFT] - shift) * (LN2_HI + LN2_LO)
    return last - first


@kernel
def look(rows, geometry, v, s):
    """The margin of the one row of `rows`."""
    rows.ready(0)
    return geometry.dot(v, s, rows, 0)[0]


@kernel
def losses(rule, z, y, out):
    """The rule's loss of each round."""
    for t in range(z.size):
        out[t] = rule.loss(z[t], y[t])


@kernel
def slopes(rule, z, y, out):
    """The rule's slope in z of each round."""
    for t in range(z.size):
        out[t] = rule.slope(z[t], y[t])


@kernel
def means(rule, z, out):
    """What each margin predicts."""
    for t in range(z.size):
        out[t] = rule.mean(z[t])
