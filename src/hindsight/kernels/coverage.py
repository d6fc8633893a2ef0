"""Interval widths with guaranteed coverage: a tracked threshold on top of a mixture of trackers, on any scores.

A score s >= 0 says how far a prediction was off; a round is a miss if s is above the half-width q of its interval. The
base width a is the mean of the members' widths w_k, weighted by what each has lost in the pinball loss
rho(s, q) = (1 - alpha)(s - q)+ + alpha(q - s)+. Member k steps in units of its own width, w <- w e^(eta (e - alpha)),
so that no scale has to be known. A tracker on top of them gives the guarantee: with a level B,

    q = a B/(1 - B), which is infinite for B >= 1            B <- max(0, B + gamma (e - alpha))

B rises only in a miss, in which q is finite and so B < 1. Therefore it stays in [0, 1 + gamma (1 - alpha)] on any rows,
which bounds the number of misses. Weights are taken relative to the largest so far.
"""

import math

import numpy as np

from .compiler import helper, inlined, kernel

FLOOR = 2.0**-30  # of the largest score so far: no member is narrower
PATIENCE = 0.8  # the rate of the mixture changes when it would fall below this part of itself
OCTAVES, PARTS = 64, 16  # of scores, by which losses of fixed widths are known

# Of a member: the width w, the steps (eta times the largest weight), whether these fall, the sums of the rises of
# 1/eta times ln w and times w, that of w (e^(-eta g) - 1 + eta g)/eta, what it has lost, its chance in the mixture, and
# the factors of w after a miss and after none, each with what it adds to the price per unit of w.
MEMBER = np.dtype([
    (name, np.float64)
    for name in ("width", "pace", "fades", "logs", "starts", "price", "behind", "chance", "up", "dear", "down", "cheap")
])  # fmt: skip
# Of the mixture: the sum of the chances, the rate, the sum of the gaps and of those above 0, the largest score and the
# first above 0, rounds, and when steps fall next. Of the guarantee: the level, what of it was there when weights grew,
# the largest weight. Sums: rounds, weight, misses, what was not taken at width 0, rounds without a finite width,
# widths, pinball losses, that of the first score, what the level adds to the pinball loss; then of the misses beyond
# those asked for the least and the most so far, and how much they rose and fell over the worst stretch.
COVERAGE = np.dtype([
    (name, np.float64)
    for name in (
        "pool", "hedge", "excess", "grown", "top", "first_score", "steps", "due", "level", "carried", "most", "rounds",
        "weight", "missed", "spared", "boundless", "widths", "pinball", "opening", "raised", "lowest", "highest",
        "rise", "fall",
    )
])  # fmt: skip


@inlined
def pinball(alpha, s, q):
    """rho(s, q), whose mean is smallest at the quantile 1 - alpha of s."""
    return (1.0 - alpha) * (s - q) if s > q else alpha * (q - s)


@helper
def prepare_steps(members, at, alpha):
    """The factors by which widths change, and their prices, at the largest weight."""
    for k in range(members.size):
        m = members[k]
        up, down = m.pace * (1.0 - alpha), -m.pace * alpha
        m.up, m.down = math.exp(up), math.exp(down)
        m.dear, m.cheap = at.most / m.pace * (m.up - 1.0 - up), at.most / m.pace * (m.down - 1.0 - down)


@helper
def raise_inverse(members, at, by):
    """Raise the inverse rates of members: by `by` if weights grow; with 0, those that halve their steps now."""
    for k in range(members.size):
        m = members[k]
        rise = by / m.pace if by > 0.0 else m.fades * at.most / m.pace
        m.logs += rise * math.log(m.width)
        m.starts += rise * m.width
        if by == 0.0 and m.fades != 0.0:
            m.pace /= 2.0


@helper
def weigh_widths(members, at, least):
    """The weights of the members at the rate of the mixture; at an infinite rate those with the least loss have 1."""
    rate, total = at.hedge, 0.0
    for k in range(members.size):
        late = members[k].behind - least
        members[k].chance = math.exp(-rate * late) if rate < np.inf else (1.0 if late == 0.0 else 0.0)
        total += members[k].chance
    at.pool = total


@kernel
def track(scores, c, alpha, gamma, members, sums, bins, half):
    """The half-width of each row, from the rows before it; then learn from its score, if its weight is not 0."""
    at = sums[0]
    prepare_steps(members, at, alpha)
    for i in range(scores.size):
        s, weight, level, a = scores[i], c[i], at.level, 0.0
        for k in range(members.size):
            a += members[k].chance * members[k].width
        a /= at.pool
        q = a * level / (1.0 - level) if level < 1.0 else np.inf
        half[i] = q
        if weight == 0.0:
            continue
        if weight > at.most:
            at.carried += level * (weight - at.most)
            if at.top > 0.0:
                raise_inverse(members, at, weight - at.most)
            at.most = weight
            prepare_steps(members, at, alpha)
        part, lost, miss = weight / at.most, pinball(alpha, s, q), s > q
        at.rounds += 1.0
        at.weight += weight
        if q < np.inf:
            at.widths += weight * 2.0 * q
            at.pinball += weight * lost
        else:
            at.boundless += 1.0
        if miss:
            at.missed += weight
            at.level = level + gamma * part * (1.0 - alpha)
        else:
            down = gamma * part * alpha
            taken = min(down, level) if q > 0.0 else 0.0
            at.level = level - taken
            if taken < down:
                at.spared += at.most * (down - taken) / gamma
        net = at.missed - alpha * at.weight + at.spared
        at.lowest, at.highest = min(at.lowest, net), max(at.highest, net)
        at.rise, at.fall = max(at.rise, net - at.lowest), max(at.fall, at.highest - net)
        if at.top > 0.0:
            loss = pinball(alpha, s, a)
            if q < np.inf:
                at.raised += weight * (lost - loss)
            before, after = np.inf, np.inf
            at.top = max(at.top, s)
            for k in range(members.size):
                m = members[k]
                w = m.width
                before = min(before, m.behind)
                m.behind += weight * pinball(alpha, s, w)
                after = min(after, m.behind)
                factor, cost = (m.up, m.dear) if s > w else (m.down, m.cheap)
                if part < 1.0:
                    x = m.pace * part * ((1.0 if s > w else 0.0) - alpha)
                    factor = math.exp(x)
                    cost = at.most / m.pace * (factor - 1.0 - x)
                m.price += w * cost
                m.width = max(w * factor, FLOOR * at.top)
            mix, pool = after - before, at.pool
            weigh_widths(members, at, after)
            if at.hedge < np.inf:
                mix -= math.log(at.pool / pool) / at.hedge
            gap = weight * loss - mix
            at.excess += gap
            at.grown += max(gap, 0.0)
            if at.grown * PATIENCE * at.hedge > math.log(members.size):
                at.hedge = math.log(members.size) / at.grown
                weigh_widths(members, at, after)
            at.steps += 1.0
            if at.steps == at.due:  # after 4, 16, 64, ... rounds
                at.due *= 4.0
                raise_inverse(members, at, 0.0)
                prepare_steps(members, at, alpha)
        elif s > 0.0:  # the first score above 0 is where the members start
            at.opening = weight * lost
            at.top = at.first_score = s
            for k in range(members.size):
                members[k].width = s
            raise_inverse(members, at, at.most)
        place = 0
        if s > 0.0:
            (size, power), (_, middle) = math.frexp(s), math.frexp(at.first_score)
            place = (power - middle + OCTAVES // 2) * PARTS + int((size - 0.5) * 2 * PARTS)
            place = min(max(place, 0), bins.shape[1] - 1)
        bins[0, place] += weight
        bins[1, place] += weight * s
