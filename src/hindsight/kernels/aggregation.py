"""Aggregation: one prediction from those of several members, weighted by what each has lost.

A mixture is a NamedTuple of the number of members and further parameters, with a class attribute ``State``. The weight
v_k of member k is proportional to e^(-eta L_k), where L_k is its cumulative loss as used; for numeric targets its
predictions are clipped to the range of the targets seen. The rate eta never increases, and is fixed before the target
of the round is known.
With mix = -(1/eta) ln sum v_k e^(-eta l_k), the loss of the mixture is at most

    min_k [L_k + ln(K)/eta] + sum (l - mix)

for any predictions; the last sum is the price, `gap`. `weigh_members` returns the rate at which the current weights,
not yet divided by their sum, are valid for the next round, which then uses them unchanged; or `ANEW`.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from .compiler import inlined, kernel, part
from .online import read_sums, tally, tally_constant, write_sums
from .simd import larger, smaller, wide
from .state import scalar, vector

FOLD = 32  # rounds after which the chances of a mixture are folded into its logarithms
SMALL = 1e-200  # or when one of them is smaller than this
NEAR = 1e-8  # of their sizes, by which two predictions must differ
ANEW = -1.0  # no rate: weights are not known at any, and are computed anew


class LogState(NamedTuple):
    """Log weights as of the last fold, the weights then, the product of each member's likelihoods since, and the price.

    `ones` and `nones` are the members' probabilities of 1 and 0 for the current row; `worth` is the factor by which its
    label multiplies the likelihood of each member.
    """

    logs: Annotated[np.ndarray, vector()]
    share: Annotated[np.ndarray, vector(1.0)]
    chance: Annotated[np.ndarray, vector(1.0)]
    since: Annotated[np.ndarray, scalar()]
    rate: Annotated[np.ndarray, scalar(np.inf)]
    gap: Annotated[np.ndarray, scalar()]
    ones: Annotated[np.ndarray, vector(scratch=True)]
    nones: Annotated[np.ndarray, vector(scratch=True)]
    worth: Annotated[np.ndarray, vector(scratch=True)]


@inlined
def chances(z):
    """The probabilities of 1 and of 0, both accurate for large |z|."""
    e = math.exp(-abs(z))
    big, small = 1.0 / (1.0 + e), e / (1.0 + e)
    return (big, small) if z >= 0.0 else (small, big)


@inlined
def log_chance(z, y):
    """-ln of the probability of a target in [0, 1]: its log loss."""
    return larger(z, 0.0) - y * z + math.log1p(math.exp(-abs(z)))


@inlined
def mixed_in_logs(logs, z):
    """The margin of the mean probability, from the logarithms of the weights; used if the probability underflows."""
    top, bottom = -np.inf, -np.inf
    for k in range(z.size):
        top, bottom = larger(top, logs[k] - log_chance(z[k], 1.0)), larger(bottom, logs[k] - log_chance(z[k], 0.0))
    one, none = 0.0, 0.0
    for k in range(z.size):
        one += math.exp(logs[k] - log_chance(z[k], 1.0) - top)
        none += math.exp(logs[k] - log_chance(z[k], 0.0) - bottom)
    return top - bottom + math.log(one) - math.log(none)


@inlined
def fold(state):
    """Add the losses since the last fold to the log weights, and shift these so that the largest is 0."""
    top = -np.inf
    for k in range(state.logs.size):
        state.logs[k] += math.log(state.chance[k])
        state.chance[k] = 1.0
        top = larger(top, state.logs[k])
    for k in range(state.logs.size):
        state.logs[k] -= top
        state.share[k] = math.exp(state.logs[k])
    state.since[0] = 0.0


@inlined
def log_of_ratio(state, z, y, power, before):
    """ln(before / sum of v worth) where that sum underflows."""
    least, mixed = np.inf, 0.0
    for k in range(z.size):
        least = smaller(least, power * log_chance(z[k], y) - state.logs[k] - math.log(state.chance[k]))
    for k in range(z.size):
        mixed += math.exp(least + state.logs[k] + math.log(state.chance[k]) - power * log_chance(z[k], y))
    return math.log(before) + least - math.log(mixed)


@inlined
def change_rate(state, rate):
    """Rescale the log weights to a smaller rate, for the same losses."""
    fold(state)
    for k in range(state.logs.size):
        state.logs[k] *= rate / state.rate[0]
        state.share[k] = math.exp(state.logs[k])
    state.rate[0] = rate


@part
class LogMixture(NamedTuple):
    """For the log loss: the mean of the members' probabilities, at the rate 1/(the largest weight of a row so far)."""

    members: int
    State = LogState

    def mixed_margin(self, loss, state, z):
        one, none = 0.0, 0.0
        for k in range(z.size):
            p, r = chances(z[k])
            state.ones[k], state.nones[k] = p, r
            v = state.share[k] * state.chance[k]
            one += v * p
            none += v * r
        if one > 1e-290 and none > 1e-290:
            return math.log(one / none)
        for k in range(z.size):
            state.worth[k] = state.logs[k] + math.log(state.chance[k])
        return mixed_in_logs(state.worth, z)

    def set_rate(self, loss, state, c, weighed):
        if c > 0.0 and not state.rate[0] * c <= 1.0:
            if state.rate[0] < np.inf:
                change_rate(state, 1.0 / c)
            state.rate[0] = 1.0 / c

    def starts_with(self, state, bias, y):
        return False

    def as_used(self, state, z):
        return z

    def weigh_members(self, loss, state, z, out, y, c):
        power, mixed, before = state.rate[0] * c, 0.0, 0.0
        plain = power == 1.0 and (y == 0.0 or y == 1.0)  # then the worth of a label is its probability
        for k in range(z.size):
            if plain:
                state.worth[k] = state.ones[k] if y == 1.0 else state.nones[k]
            else:
                state.worth[k] = math.exp(-power * log_chance(z[k], y))
            v = state.share[k] * state.chance[k]
            before += v
            mixed += v * state.worth[k]
        mix = math.log(before / mixed) if mixed >= 1e-290 else log_of_ratio(state, z, y, power, before)
        state.gap[0] += c * loss.value(out, y) - mix / state.rate[0]
        due = False
        for k in range(z.size):
            chance = state.chance[k] * state.worth[k]
            if chance < SMALL:
                state.logs[k] -= power * log_chance(z[k], y)
                due = True
            else:
                state.chance[k] = chance
        state.since[0] += 1.0
        if due or state.since[0] >= FOLD:
            fold(state)
        return ANEW

    def shares(self, state):
        """The weights of the members, in Python."""
        logs = state.logs + np.log(state.chance)
        v = np.exp(logs - logs.max())
        return v / v.sum()


# ---------------------------------------------------------------- other convex losses


class MeanState(NamedTuple):
    """The loss of each member as used, the range of the targets, and the price met."""

    lost: Annotated[np.ndarray, vector()]
    v: Annotated[np.ndarray, vector(1.0, scratch=True)]
    mass: Annotated[np.ndarray, scalar(scratch=True)]
    low: Annotated[np.ndarray, scalar()]
    high: Annotated[np.ndarray, scalar()]
    begun: Annotated[np.ndarray, scalar()]
    heaviest: Annotated[np.ndarray, scalar()]
    rate: Annotated[np.ndarray, scalar(np.inf)]
    gap: Annotated[np.ndarray, scalar()]
    positive: Annotated[np.ndarray, scalar()]


@inlined
def weigh(state):
    """The weights of the members at the rate, and their sum; at an infinite rate those with the least loss have 1."""
    least, total = np.inf, 0.0
    for k in range(state.lost.size):
        least = smaller(least, state.lost[k])
    for k in range(state.lost.size):
        behind = state.lost[k] - least
        state.v[k] = math.exp(-state.rate[0] * behind) if state.rate[0] < np.inf else (1.0 if behind == 0.0 else 0.0)
        total += state.v[k]
    state.mass[0] = total


@inlined
def within_range(clips, state, z):
    """A margin clipped to the range of the targets seen, unless `clips` is 0."""
    return smaller(larger(z, state.low[0]), state.high[0]) if clips != 0.0 else z


@inlined
def start_of_range(state, y, starts):
    """Whether this is the first row and only sets the members' start; the range of the targets then begins there."""
    first = state.begun[0] == 0.0 and starts
    state.begun[0] = 1.0
    if first:
        state.low[0] = state.high[0] = y
    return first


@part
class MeanMixture(NamedTuple):
    """The weighted mean of the members, at the rate max(1/(floor h R^2), ln K / sum of the gaps above 0).

    `floor` is the second derivative of a quadratic loss and 0 for others, h the largest weight of a row, R the range
    of the targets; members are clipped to it where targets are numbers (`clips` is 1, otherwise 0).
    """

    members: int
    floor: float
    clips: float
    State = MeanState

    def mixed_margin(self, loss, state, z):
        mean = 0.0
        for k in range(z.size):
            mean += state.v[k] * within_range(self.clips, state, z[k])
        return within_range(self.clips, state, mean)  # rounding may leave the range

    def set_rate(self, loss, state, c, weighed):
        state.heaviest[0] = larger(state.heaviest[0], c)
        span = state.high[0] - state.low[0]
        several = self.members > 1
        rate = math.log(self.members) / state.positive[0] if several and state.positive[0] > 0.0 else np.inf
        if several and self.floor > 0.0 and span > 0.0:
            rate = larger(rate, 1.0 / (self.floor * state.heaviest[0] * span * span))
        state.rate[0] = smaller(state.rate[0], rate)
        if state.rate[0] != weighed:
            weigh(state)
        for k in range(state.v.size):
            state.v[k] /= state.mass[0]

    def starts_with(self, state, bias, y):
        return start_of_range(state, y, self.clips != 0.0 and bias != 0.0)

    def as_used(self, state, z):
        return within_range(self.clips, state, z)

    def weigh_members(self, loss, state, z, out, y, c):
        before, after = np.inf, np.inf
        for k in range(z.size):
            before = smaller(before, state.lost[k])
            state.lost[k] += c * loss.value(within_range(self.clips, state, z[k]), y)
            after = smaller(after, state.lost[k])
        mix = after - before
        if state.rate[0] < np.inf:
            mass = 0.0  # at least 1: that of the member that lost least
            for k in range(z.size):
                state.v[k] = math.exp(-state.rate[0] * (state.lost[k] - after))
                mass += state.v[k]
            mix -= math.log(mass / state.mass[0]) / state.rate[0]
            state.mass[0] = mass
        gap = c * loss.value(out, y) - mix
        state.gap[0] += gap
        state.positive[0] += larger(gap, 0.0)
        state.low[0], state.high[0] = smaller(state.low[0], y), larger(state.high[0], y)
        return state.rate[0] if state.rate[0] < np.inf else ANEW

    def shares(self, state):
        """The weights of the members, in Python."""
        least = state.lost.min()
        if not np.isfinite(state.rate[0]):
            v = (state.lost == least).astype(np.float64)
        else:
            v = np.exp(-state.rate[0] * (state.lost - least))
        return v / v.sum()


@inlined
def distance(p, m):
    """p - m, or 0 if most of it could be rounding."""
    return p - m if abs(p - m) > NEAR * (abs(p) + abs(m)) else 0.0


@kernel
def mix(margins, y, c, bias, loss, mixture, geometry, state, q, top, facts, out, places, apart, counted):
    """Predict each row from the margins of the members, then update their weights; the facts are those of the mixture.

    A row that only sets the members' start is not a round. If `apart` has rows, they receive the differences between
    the members, as used, and the mixture, each at its place, and `counted` receives the weights of the rounds.
    """
    wide()
    sums, weighed = read_sums(facts), ANEW
    for i in range(out.size):
        z = margins[i]
        mixture.set_rate(loss, state, c[i] if c[i] > 0.0 else 0.0, weighed)
        weighed = ANEW
        out[i] = mixture.mixed_margin(loss, state, z)
        if apart.shape[0] != 0:
            for k in range(z.size):
                apart[i, places[k]] = distance(mixture.as_used(state, z[k]), out[i])
            counted[i] = 0.0
        if c[i] == 0.0:
            continue
        if mixture.starts_with(state, bias, y[i]):
            continue
        if apart.shape[0] != 0:
            counted[i] = c[i]
        weighed = mixture.weigh_members(loss, state, z, out[i], y[i], c[i])
        sums = tally(loss, geometry, out[i], q[i], top[i], y[i], c[i], sums)
    write_sums(facts, sums)
    tally_constant(1.0, facts)
