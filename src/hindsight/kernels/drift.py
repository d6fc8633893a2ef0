"""Mixtures for streams that change: after each round every member gets a fixed share of the weight.

With weights v that sum to 1 and a drift alpha, a round takes

    v_k <- (1 - alpha) v_k e^(-eta l_k) / sum_j v_j e^(-eta l_j) + alpha/K

so that a member that was bad for a long time but is good now regains its weight within a few rounds. For the interface
of a mixture see `aggregation`.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from .aggregation import ANEW, LogMixture, chances, log_chance, mixed_in_logs, start_of_range, within_range
from .compiler import inlined, kernel, part
from .simd import larger, smaller
from .state import scalar, vector


class DriftState(NamedTuple):
    """Weights (with sum 1 once the rate is set), the loss of each member, the range of the targets, and the price."""

    v: Annotated[np.ndarray, vector(1.0)]
    lost: Annotated[np.ndarray, vector()]
    low: Annotated[np.ndarray, scalar()]
    high: Annotated[np.ndarray, scalar()]
    begun: Annotated[np.ndarray, scalar()]
    heaviest: Annotated[np.ndarray, scalar()]
    rate: Annotated[np.ndarray, scalar(np.inf)]
    gap: Annotated[np.ndarray, scalar()]
    shared: Annotated[np.ndarray, scalar()]
    paid: Annotated[np.ndarray, vector(scratch=True)]


@inlined
def lower_rate(state, rate):
    """Rescale the weights to a rate that may be smaller, for the same losses, with sum 1."""
    power = rate / state.rate[0] if state.rate[0] < np.inf else 1.0
    total = 0.0
    for k in range(state.v.size):
        if power < 1.0:
            state.v[k] = state.v[k] ** power
        total += state.v[k]
    for k in range(state.v.size):
        state.v[k] /= total
    state.rate[0] = rate


@inlined
def share(state, c, drift):
    """Update the weights after a round in which member k lost c paid[k], and return the mix loss of the round."""
    least, mass, rate, paid = np.inf, 0.0, state.rate[0], state.paid
    for k in range(paid.size):
        least = smaller(least, paid[k])
        state.lost[k] += c * paid[k]
    for k in range(paid.size):
        state.v[k] *= math.exp(-rate * c * (paid[k] - least))
        mass += state.v[k]
    for k in range(paid.size):
        state.v[k] = (1.0 - drift) * (state.v[k] / mass) + drift / paid.size
    state.shared[0] += 1.0
    return c * least - math.log(mass) / rate


@part
class LogDrift(NamedTuple):
    """For the log loss: the mean of the members' probabilities, at the rate 1/(the largest weight of a row so far)."""

    members: int
    drift: float
    State = DriftState

    def mixed_margin(self, loss, state, z):
        one, none, total = 0.0, 0.0, 0.0
        for k in range(z.size):
            p, r = chances(z[k])
            one += state.v[k] * p
            none += state.v[k] * r
            total += state.v[k]
        if one > 1e-290 and none > 1e-290:
            return math.log(one / none)
        for k in range(z.size):
            state.paid[k] = math.log(state.v[k] / total)
        return mixed_in_logs(state.paid, z)

    def set_rate(self, loss, state, c, weighed):
        state.heaviest[0] = larger(state.heaviest[0], c)
        if state.heaviest[0] > 0.0:
            lower_rate(state, 1.0 / state.heaviest[0])

    starts_with, as_used = LogMixture.starts_with, LogMixture.as_used

    def weigh_members(self, loss, state, z, out, y, c):
        for k in range(z.size):
            state.paid[k] = log_chance(z[k], y)
        state.gap[0] += c * loss.value(out, y) - share(state, c, self.drift)
        return ANEW

    def shares(self, state):
        """The weights of the members, in Python."""
        return state.v / state.v.sum()


@part
class MeanDrift(NamedTuple):
    """For the square loss: the weighted mean of the members, each clipped to the range of the targets seen.

    The rate is 1/(floor h R^2): `floor` is the second derivative of the loss, h the largest weight of a row, R the
    range. While that is 0 all members predict the same and weights stay as they are.
    """

    members: int
    floor: float
    drift: float
    State = DriftState
    clips = 1.0

    def mixed_margin(self, loss, state, z):
        mean, total = 0.0, 0.0
        for k in range(z.size):
            mean += state.v[k] * within_range(1.0, state, z[k])
            total += state.v[k]
        return within_range(1.0, state, mean / total)  # rounding may leave the range

    def set_rate(self, loss, state, c, weighed):
        state.heaviest[0] = larger(state.heaviest[0], c)
        span = state.high[0] - state.low[0]
        if span > 0.0 and state.heaviest[0] > 0.0:
            lower_rate(state, smaller(state.rate[0], 1.0 / (self.floor * state.heaviest[0] * span * span)))

    def starts_with(self, state, bias, y):
        return start_of_range(state, y, bias != 0.0)

    def as_used(self, state, z):
        return within_range(1.0, state, z)

    def weigh_members(self, loss, state, z, out, y, c):
        if state.rate[0] < np.inf:
            for k in range(z.size):
                state.paid[k] = loss.value(within_range(1.0, state, z[k]), y)
            state.gap[0] += c * loss.value(out, y) - share(state, c, self.drift)
        else:
            for k in range(z.size):
                state.lost[k] += c * loss.value(out, y)
        state.low[0], state.high[0] = smaller(state.low[0], y), larger(state.high[0], y)
        return ANEW

    shares = LogDrift.shares


@kernel
def best_sequence(paid, stay, switch, cost, lost, switches):
    """The cost, loss and number of switches of the sequence of members with the least cost.

    The cost of a sequence is its losses, given by `paid` with one row per round, plus `stay` for each round with the
    same member as the round before, plus `switch` for each other round.
    """
    members = paid.shape[1]
    for k in range(members):
        cost[k], lost[k], switches[k] = paid[0, k], paid[0, k], 0.0
    for t in range(1, paid.shape[0]):
        best = 0
        for k in range(1, members):
            if cost[k] < cost[best]:
                best = k
        from_cost, from_lost, from_switches = cost[best] + switch, lost[best], switches[best] + 1.0
        for k in range(members):
            if from_cost < cost[k] + stay:
                cost[k], lost[k], switches[k] = from_cost, from_lost, from_switches
            else:
                cost[k] += stay
            cost[k] += paid[t, k]
            lost[k] += paid[t, k]
    best = 0
    for k in range(1, members):
        if cost[k] < cost[best]:
            best = k
    return cost[best], lost[best], switches[best]
