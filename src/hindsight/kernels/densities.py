"""The loops behind the densities: rows go to slots (one density each), columns have one family.

A **part** is a family with its prior: a NamedTuple whose methods numba dispatches by type. `S[slot, :, column]` holds
its sufficient statistics and `n[slot]` how many rows they stand for (fewer where old rows fade). A part can `learn` a
value (`c` rows with it), give its `logp` before it was learnt (the Bayes predictive), `fade` what it knows, tell which
values it `takes`, and `inherit`: take for its prior the prior `base` and what a slot knows, worth so many rows. Parts
and loops share this file: a part elsewhere would leave a stale cache behind.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.core.types import BaseNamedTuple
from numba.extending import overload_method

BARE = {"error_model": "numpy", "_nrt": False}
INLINE = {**BARE, "forceinline": True}
kernel = njit(cache=True, nogil=True, **BARE)
inlined = njit(cache=True, **INLINE)
LN_PI = math.log(math.pi)

METHODS = {
    "learn": "self, S, s, j, c, x",
    "logp": "self, S, s, j, n, x",
    "fade": "self, S, s, j, keep",
    "takes": "self, j, x",
    "inherit": "self, base, S, s, j, n, worth",
}
for _name, _args in METHODS.items():
    overload_method(BaseNamedTuple, _name, jit_options=INLINE)(eval(f"lambda {_args}: self.instance_class.{_name}"))


@inlined
def tail(z):
    """What Stirling's formula leaves out: ln Gamma(z) - ((z - 1/2) ln z - z + ln(2 pi)/2), for z >= 16."""
    r = 1.0 / (z * z)
    return (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0)))) / z


@inlined
def rise(a, x):
    """ln Gamma(a + x) - ln Gamma(a) for a > 0, x >= 0: their own sizes would drown it once a is large."""
    if a < 16.0:
        return math.lgamma(a + x) - math.lgamma(a)
    return (a - 0.5) * math.log1p(x / a) + x * math.log(a + x) - x + tail(a + x) - tail(a)


# ---------------------------------------------------------------- parts; a prior has a column for each of theirs


class Dirichlet(NamedTuple):
    """Symbols 0..k-1. Prior: k rows of pseudo-counts and their sum. Statistics: k counts."""

    prior: np.ndarray

    def takes(self, j, x):
        return x >= 0.0 and x < self.prior.shape[0] - 1 and x == math.floor(x)

    def learn(self, S, s, j, c, x):
        S[s, int(x), j] += 1.0

    def logp(self, S, s, j, n, x):
        i = int(x)
        return math.log((S[s, i, j] + self.prior[i, j]) / (n + self.prior[self.prior.shape[0] - 1, j]))

    def fade(self, S, s, j, keep):
        for i in range(S.shape[1]):
            S[s, i, j] *= keep

    def inherit(self, base, S, s, j, n, worth):
        k = S.shape[1]
        for i in range(k):
            self.prior[i, j] = base[i, j] + S[s, i, j] * (worth / n)
        self.prior[k, j] = base[k, j] + worth


class Restaurant(NamedTuple):
    """Symbols without end (a Dirichlet process). Prior: the mass theta of all that is new. Statistics: counts."""

    prior: np.ndarray

    def takes(self, j, x):
        return x >= 0.0 and x == math.floor(x)

    def learn(self, S, s, j, c, x):
        S[s, int(x), j] += 1.0

    def logp(self, S, s, j, n, x):
        i = int(x)
        seen = S[s, i, j] if i < S.shape[1] else 0.0
        return math.log((seen if seen > 0.0 else self.prior[0, j]) / (n + self.prior[0, j]))

    def fade(self, S, s, j, keep):
        for i in range(S.shape[1]):
            S[s, i, j] *= keep

    def inherit(self, base, S, s, j, n, worth):
        self.prior[0, j] = base[0, j]


class Rate(NamedTuple):
    """Poisson counts. Prior: a, b of the rate's Gamma. Statistics: sums of x, ln x!. Predictive: negative binomial."""

    prior: np.ndarray

    def takes(self, j, x):
        return x >= 0.0 and x < 9007199254740992.0 and x == math.floor(x)

    def learn(self, S, s, j, c, x):
        S[s, 0, j] += x
        S[s, 1, j] += math.lgamma(x + 1.0)

    def logp(self, S, s, j, n, x):
        a, b = self.prior[0, j] + S[s, 0, j], self.prior[1, j] + n
        return rise(a, x) - math.lgamma(x + 1.0) - a * math.log1p(1.0 / b) - x * math.log(b + 1.0)

    def fade(self, S, s, j, keep):
        S[s, 0, j] *= keep
        S[s, 1, j] *= keep

    def inherit(self, base, S, s, j, n, worth):
        self.prior[0, j] = base[0, j] + S[s, 0, j] * (worth / n)
        self.prior[1, j] = base[1, j] + worth


class Waiting(NamedTuple):
    """Gamma durations of known shape. Prior: a, b of the rate's Gamma, shape. Statistics: sum of x, of ln x.

    The predictive is a beta prime scaled by b, for shape 1 (exponential) a Lomax; then 0 is allowed and ln x unused.
    """

    prior: np.ndarray

    def takes(self, j, x):
        return x < math.inf and (x > 0.0 or (x == 0.0 and self.prior[2, j] == 1.0))

    def learn(self, S, s, j, c, x):
        S[s, 0, j] += x
        if self.prior[2, j] != 1.0:
            S[s, 1, j] += math.log(x)

    def logp(self, S, s, j, n, x):
        shape = self.prior[2, j]
        a, b = self.prior[0, j] + shape * n, self.prior[1, j] + S[s, 0, j]
        if shape == 1.0:
            return math.log(a / b) - (a + 1.0) * math.log1p(x / b)
        p = rise(a, shape) - math.lgamma(shape) - (a + shape) * math.log1p(x / b)
        return p + (shape - 1.0) * math.log(x) - shape * math.log(b)

    def fade(self, S, s, j, keep):
        S[s, 0, j] *= keep
        S[s, 1, j] *= keep

    def inherit(self, base, S, s, j, n, worth):
        self.prior[0, j] = base[0, j] + worth * base[2, j]
        self.prior[1, j] = base[1, j] + S[s, 0, j] * (worth / n)
        self.prior[2, j] = base[2, j]


class Normal(NamedTuple):
    """Gaussian. Prior (Normal-Gamma): mean, kappa, alpha, beta. Predictive: Student t.

    Statistics: the first value, the mean less that, and the squares about the mean. Differences from a value of the
    column are exact where the mean itself, far from 0, would be rounded by more than the values differ.
    """

    prior: np.ndarray

    def takes(self, j, x):
        return abs(x) < 1e150

    def learn(self, S, s, j, c, x):
        if c == 1.0:
            S[s, 0, j] = x
        here = x - S[s, 0, j]
        apart = here - S[s, 1, j]
        S[s, 1, j] += apart / c
        S[s, 2, j] += apart * (here - S[s, 1, j])

    def logp(self, S, s, j, n, x):
        k, a = self.prior[1, j], self.prior[2, j] + 0.5 * n
        kn = k + n
        apart = S[s, 0, j] - self.prior[0, j] + S[s, 1, j] if n > 0.0 else 0.0
        b = self.prior[3, j] + 0.5 * (S[s, 2, j] + k * n / kn * apart * apart)
        off = x - S[s, 0, j] - S[s, 1, j] + apart * (k / kn) if n > 0.0 else x - self.prior[0, j]
        two = 2.0 * b * (kn + 1.0) / kn  # nu times the squared scale
        return rise(a, 0.5) - 0.5 * (LN_PI + math.log(two)) - (a + 0.5) * math.log1p(off * off / two)

    def fade(self, S, s, j, keep):
        S[s, 2, j] *= keep

    def inherit(self, base, S, s, j, n, worth):
        k = base[1, j]
        apart = S[s, 0, j] - base[0, j] + S[s, 1, j]
        self.prior[0, j] = base[0, j] + apart * (worth / (k + worth))
        self.prior[1, j] = k + worth
        self.prior[2, j] = base[2, j] + 0.5 * worth
        self.prior[3, j] = base[3, j] + 0.5 * worth * (S[s, 2, j] / n + k / (k + worth) * apart * apart)


# ---------------------------------------------------------------- loops


@kernel
def absorb(part, slots, X, n, S):
    """Learn rows."""
    for t in range(X.shape[0]):
        s = slots[t]
        c = n[s] + 1.0
        n[s] = c
        for j in range(X.shape[1]):
            part.learn(S, s, j, c, X[t, j])


@kernel
def play(part, slots, X, n, S, keep, out):
    """Add each row's log density before it is learnt to `out`; then fade by `keep` and learn it."""
    for t in range(X.shape[0]):
        s = slots[t]
        p = 0.0
        for j in range(X.shape[1]):
            p += part.logp(S, s, j, n[s], X[t, j])
        out[t] += p
        if keep < 1.0:
            n[s] *= keep
            for j in range(X.shape[1]):
                part.fade(S, s, j, keep)
        c = n[s] + 1.0
        n[s] = c
        for j in range(X.shape[1]):
            part.learn(S, s, j, c, X[t, j])


@kernel
def inherit(part, base, S, s, n, worth):
    """Give every column the prior of what slot s knows; the base alone where that is nothing."""
    for j in range(base.shape[1]):
        if n > 0.0:
            part.inherit(base, S, s, j, n, worth)
        else:
            for i in range(base.shape[0]):
                part.prior[i, j] = base[i, j]


@kernel
def contest(part, base, worth, slots, X, n, S, out):
    """The log density of each row under every slot but the last, before it is learnt by its own and by the last.

    That last slot is the crowd: each row is predicted with a prior of what it knows, worth so many rows; while it has
    seen fewer than two, which say nothing of spread, all slots are alike.
    """
    crowd = n.size - 1
    for t in range(X.shape[0]):
        if worth > 0.0:
            inherit(part, base, S, crowd, n[crowd], worth)
        for s in range(crowd):
            p = 0.0
            if worth == 0.0 or n[crowd] >= 2.0:
                for j in range(X.shape[1]):
                    p += part.logp(S, s, j, n[s], X[t, j])
            out[t, s] = p
        for own in range(2):
            s = crowd if own == 0 else int(slots[t])
            c = n[s] + 1.0
            n[s] = c
            for j in range(X.shape[1]):
                part.learn(S, s, j, c, X[t, j])


@kernel
def terms(part, slots, X, n, S, out):
    """The log density of each value under its slot, 0 (log of it: -inf) where the family does not take it."""
    for t in range(X.shape[0]):
        s = slots[t]
        for j in range(X.shape[1]):
            x = X[t, j]
            out[t, j] = part.logp(S, s, j, n[s], x) if part.takes(j, x) else -math.inf


@kernel
def refused(part, X):
    """The place (row times columns plus column) of the first value that the family does not take, or -1."""
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            if not part.takes(j, X[t, j]):
                return t * X.shape[1] + j
    return -1


# ---------------------------------------------------------------- a Gaussian with all covariances


@kernel
def cholesky(A, L):
    """L with L L' = A, lower; False where A is not positive definite."""
    d = A.shape[0]
    for j in range(d):
        total = A[j, j]
        for k in range(j):
            total -= L[j, k] * L[j, k]
        if not total > 0.0:
            return False
        L[j, j] = math.sqrt(total)
        for i in range(j + 1, d):
            total = A[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
    return True


@inlined
def distance(L, v):
    """|L^-1 v|^2; v is overwritten with L^-1 v."""
    total = 0.0
    for i in range(v.size):
        z = v[i]
        for k in range(i):
            z -= L[i, k] * v[k]
        v[i] = z / L[i, i]
        total += v[i] * v[i]
    return total


@inlined
def student(L, v, kappa, nu):
    """The log density of a t at distance v from its place, given the Cholesky factor of the scatter."""
    d = v.size
    room = (kappa + 1.0) / kappa
    log_det = 0.0
    for i in range(d):
        log_det += math.log(L[i, i])
    q = distance(L, v) / room
    a = 0.5 * (nu - d + 1.0)
    return rise(a, 0.5 * d) - 0.5 * d * (LN_PI + math.log(room)) - log_det - (a + 0.5 * d) * math.log1p(q)


@kernel
def scatter_factor(mean0, kappa0, psi, n, mean, S, A, L):
    """The factor of Psi_0 + S + kappa_0 n/(kappa_0 + n) (mean - mean_0)(mean - mean_0)'; A is a workspace."""
    r = kappa0 * n / (kappa0 + n)
    for i in range(mean.size):
        for k in range(i + 1):
            A[i, k] = psi[i, k] + S[i, k] + r * (mean[i] - mean0[i]) * (mean[k] - mean0[k])
    return cholesky(A, L)


@kernel
def play_full(prior_mean, kappa0, nu0, psi, keep, X, n, mean, S, L, A, v, out):
    """As `play`, for the Normal-Wishart prior; n is an array of one. Where to stop: the row that was not finite, or -1.

    Without fading the factor takes one rank-one update a row; with it, it is made anew.
    """
    d = mean.size
    for t in range(X.shape[0]):
        kappa, nu = kappa0 + n[0], nu0 + n[0]
        for i in range(d):
            v[i] = X[t, i] - mean[i] + (mean[i] - prior_mean[i]) * (kappa0 / kappa)
        p = student(L, v, kappa, nu)
        if not abs(p) < math.inf:
            return t
        out[t] = p
        if keep == 1.0:
            for i in range(d):
                v[i] = X[t, i] - mean[i] + (mean[i] - prior_mean[i]) * (kappa0 / kappa)
            rank_one(L, v, kappa / (kappa + 1.0))
        else:
            n[0] *= keep
            for i in range(d):
                for k in range(i + 1):
                    S[i, k] *= keep
        n[0] += 1.0
        for i in range(d):
            v[i] = X[t, i] - mean[i]
            mean[i] += v[i] / n[0]
        for i in range(d):
            for k in range(i + 1):
                S[i, k] += v[i] * (X[t, k] - mean[k])
        if keep != 1.0 and not scatter_factor(prior_mean, kappa0, psi, n[0], mean, S, A, L):
            return t
    return -1


@inlined
def rank_one(L, v, weight):
    """L becomes the factor of L L' + weight v v'; v is overwritten."""
    d = v.size
    root = math.sqrt(weight)
    for i in range(d):
        v[i] *= root
    for k in range(d):
        r = math.hypot(L[k, k], v[k])
        c, s = r / L[k, k], v[k] / L[k, k]
        L[k, k] = r
        for i in range(k + 1, d):
            L[i, k] = (L[i, k] + s * v[i]) / c
            v[i] = c * v[i] - s * L[i, k]


@kernel
def logp_full(prior_mean, kappa0, nu0, X, n, mean, L, v, out):
    """The log density of each row."""
    kappa = kappa0 + n
    for t in range(X.shape[0]):
        for i in range(mean.size):
            v[i] = X[t, i] - mean[i] + (mean[i] - prior_mean[i]) * (kappa0 / kappa)
        out[t] = student(L, v, kappa, nu0 + n)
