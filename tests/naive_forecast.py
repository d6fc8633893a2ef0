"""Slow and obvious versions of what intervals and e-processes rest on, and streams to try them on."""

import math

import numpy as np
from numba import njit

from hindsight.forecast import mixtures


def log_mixture(s, terms, low, high, guess, horizon, kind="mixture"):
    """ln of the mean over rates and kinds of exp(l s - price), every factor written out; the terms are x_1, x_2, ..."""
    first = next(float(r) for r in high - low if r > 0)
    return np.logaddexp.reduce(components(s, terms, low, high, guess, horizon, kind, first))


def components(s, terms, low, high, guess, horizon, kind, first):
    """ln(weight) + l s - price of each rate and kind, in units of `first`."""
    k = np.arange(-mixtures.HALF, mixtures.HALF + 1)
    prior = 1 / (1 + (k / mixtures.SPREAD) ** 2)
    out = []
    for weight, rate in zip(prior / prior.sum(), mixtures.MIDDLE / (first * math.sqrt(horizon)) * 2.0**k, strict=True):
        each = []
        if kind != "bernstein":
            each.append(rate * s - sum(rate**2 * (b - a) ** 2 / 8 for a, b in zip(low, high, strict=True)))
        if kind != "ranges":
            price, alive = 0.0, True
            for x, a, g in zip(terms, low, guess, strict=True):
                reach = rate * (g - a)
                alive &= reach <= mixtures.REACH
                q = sum(c * reach**j for j, c in enumerate(mixtures.COEFFICIENTS))
                price += rate**2 * q * (x - g) ** 2
            each.append(rate * s - price if alive else -math.inf)
        out += [math.log(weight / len(each)) + e for e in each]
    return np.array(out)


def lagged(y, a, b, c, lag, horizon):
    """ln e for "B is better" of forecasts made `lag` rounds ahead, and ln of the mixture of each interleaved stream.

    For each rate the streams' supermartingales are multiplied and the root of order `lag` is taken: the geometric mean,
    which is at most their mean. The mixture of these over the rates, divided by `lag`, is e. NaN is no outcome.
    """
    x, ends = c * ((a - y) ** 2 - (b - y) ** 2), c * np.array([a**2 - b**2, (1 - a) ** 2 - (1 - b) ** 2])
    low, high = ends.min(axis=0), ends.max(axis=0)
    rounds = [t for t in range(len(y)) if c[t] > 0 and not math.isnan(y[t])]
    guess = np.zeros(len(y))
    for t in rounds:
        last = max((i for i in rounds if i < t and i % lag == t % lag), default=-1)
        known = [i for i in rounds if i <= last]
        mean = x[known].sum() / c[known].sum() if known else 0.0
        guess[t] = np.clip(c[t] * mean, low[t], high[t])
    first = (high - low)[rounds[0]]
    streams = [[t for t in rounds if t % lag == r] for r in range(lag)]
    each = [
        components(x[r].sum(), x[r], low[r], high[r], guess[r], max(1.0, horizon / lag), "mixture", first)
        for r in streams
    ]
    return np.logaddexp.reduce(np.mean(each, axis=0)) - math.log(lag), np.logaddexp.reduce(each, axis=1)


def choe_ramdas(differences, alpha, most=1.0, tune=10.0):
    """Half-widths of the sums by Choe and Ramdas (2023), Theorem 2: empirical Bernstein for |d| <= most.

    V_t = Sigma (d_i - mean of the earlier d)^2, and the gamma-exponential mixture boundary of Howard et al. (2021) with
    the scale 2 `most`, tightest at V = `tune` for terms of that scale.
    """
    from scipy.optimize import brentq
    from scipy.special import gammainc, gammaln

    d, scale = np.asarray(differences) / (2.0 * most), 2.0 * most
    earlier = np.concatenate([[0.0], np.cumsum(d)[:-1] / np.arange(1, d.size)])
    level = 2.0 * math.log(2.0 / alpha)
    r = tune / (level + math.log1p(level))

    def excess(s, v):
        known = r * math.log(r) - gammaln(r) - math.log(gammainc(r, r)) + gammaln(v + r)
        at = s + v + r
        return known + s + v + math.log(gammainc(v + r, at)) - (v + r) * math.log(at) + math.log(alpha / 2.0)

    def boundary(v):
        return brentq(excess, 0.0, 100.0 + 20.0 * math.sqrt(v + 1.0) + v, args=(v,), xtol=1e-9)

    return lambda rounds: [scale * boundary(float(np.square(d[:m] - earlier[:m]).sum())) for m in rounds]


def choe_ramdas_hoeffding(rounds, alpha, most=1.0, tune=10.0):
    """Half-widths of the sums by Choe and Ramdas (2023), Theorem 1: |d| <= most alone, by a two-sided normal mixture.

    V_t = t in units of `most`, tightest at V = `tune`: the boundary of Robbins (1970) as in Howard et al. (2021).
    """
    level = 2.0 * math.log(1.0 / alpha)
    rho = tune / (level + math.log1p(level))
    v = np.asarray(rounds, float)
    return most * np.sqrt((v + rho) * np.log((v + rho) / (rho * alpha**2)))


KINDS = ("iid", "drifting", "rare", "reacting", "extreme", "stopping chance", "near", "adversary")


@njit(cache=True)
def stream(kind, rounds, seed):
    """p, a, b and y of every round, for nature and forecasters that may react to the past."""
    np.random.seed(seed)
    out = np.empty((4, rounds))
    past, mean, gap, spread = 0.0, 0.5, 0.0, 0.0
    for t in range(rounds):
        u, v = np.random.random(), np.random.random()
        if kind == 0:  # each round by itself, two noisy forecasters
            p = np.random.random()
            a, b = min(1.0, max(0.0, p + 0.3 * (u - 0.5))), min(1.0, max(0.0, p + 0.5 * (v - 0.5)))
        elif kind == 1:  # seasons; one forecaster follows the outcomes, the other does not
            p, a, b = 0.5 + 0.45 * math.sin(0.002 * t), 0.05 + 0.9 * mean, 0.5
        elif kind == 2:
            p, a, b = 0.02 + 0.01 * u, 0.02, 0.06
        elif kind == 3:  # a break, and forecasters who take turns in being right
            p, a, b = (0.9 if t > 3000 else 0.3), (0.9 if past > 0.5 else 0.1), 0.5
        elif kind == 4:  # the largest differences there are
            p, a, b = 0.5, 0.999, 0.001
        elif kind == 5:  # nature stops all chance once the difference has gone far, so that it stays where it is
            p, a, b = (1.0 if abs(gap) > 2.0 * math.sqrt(spread + 1e-9) else 0.5), 0.9, 0.4
        elif kind == 6:
            p = 0.05 + 0.9 * u
            a, b = p, p + 0.01 * (v - 0.5)
        elif kind == 7:  # the outcome is chosen, with the forecasts in sight, to pull the difference one way
            a, b = u, v
            p = 0.9 if (a > b) == (gap > 0.0) else 0.1
        else:  # the forecasters agree from the moment on at which the difference has gone far
            p, a, b = 0.5, 0.9, 0.1
            if abs(gap) > 2.72 * math.sqrt(spread + 1e-9):
                a = b
        y = 1.0 if np.random.random() < p else 0.0
        gap += 2.0 * (b - a) * (y - p)
        spread += (b - a) ** 2
        past, mean = y, 0.95 * mean + 0.05 * y
        out[0, t], out[1, t], out[2, t], out[3, t] = p, a, b, y
    return out
