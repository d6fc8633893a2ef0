"""The loops behind the densities: each row goes to a slot (one density each), each column has one family.

A **part** is a family with its prior: a NamedTuple whose methods numba dispatches by type. `S[slot, :, column]` holds
its sufficient statistics and `n[slot]` the number of rows they stand for (fewer where old rows fade). A part must
implement `learn` (add a value to the statistics; `c` rows with it), `logp` (the log density of a value before it is
learnt: the Bayes predictive), `fade` (discount the statistics), `takes` (whether the family allows a value) and
`inherit` (set its prior to the prior `base` and the statistics of a slot, worth a number of rows).
"""

import math
from typing import NamedTuple

import numpy as np

from .compiler import inlined, kernel, part

LN_PI = math.log(math.pi)


@inlined
def tail(z):
    """The remainder of Stirling's formula: ln Gamma(z) - ((z - 1/2) ln z - z + ln(2 pi)/2), for z >= 16."""
    r = 1.0 / (z * z)
    return (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0)))) / z


@inlined
def rise(a, x):
    """ln Gamma(a + x) - ln Gamma(a) for a > 0, x >= 0, without the cancellation of two large numbers."""
    if a < 16.0:
        return math.lgamma(a + x) - math.lgamma(a)
    return (a - 0.5) * math.log1p(x / a) + x * math.log(a + x) - x + tail(a + x) - tail(a)


# ---------------------------------------------------------------- parts; a prior has one column per column of the data


@part
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


@part
class Restaurant(NamedTuple):
    """An unbounded alphabet (Dirichlet process). Prior: the mass theta of all new symbols. Statistics: counts."""

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


@part
class Rate(NamedTuple):
    """Poisson counts. Prior: a, b of the rate's Gamma. Statistics: sums of x and ln x!. Predicts negative binomial."""

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


@part
class Waiting(NamedTuple):
    """Gamma durations of known shape. Prior: a, b of the rate's Gamma, shape. Statistics: sums of x and ln x.

    The predictive is a beta prime scaled by b; for shape 1 (exponential) a Lomax, where 0 is allowed and ln x unused.
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


@part
class Normal(NamedTuple):
    """Gaussian. Prior (Normal-Gamma): mean, kappa, alpha, beta. Predictive: Student t.

    Statistics: the first value, the mean minus the first value, and the sum of squares about the mean. Differences
    from a value of the column are exact where the mean itself, far from 0, would be rounded by more than the values
    differ.
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


@inlined
def learn_row(part, S, s, n, X, t):
    """Add row t to slot s."""
    c = n[s] + 1.0
    n[s] = c
    for j in range(X.shape[1]):
        part.learn(S, s, j, c, X[t, j])


@inlined
def row_logp(part, S, s, n, X, t):
    """The log density of row t under slot s."""
    p = 0.0
    for j in range(X.shape[1]):
        p += part.logp(S, s, j, n[s], X[t, j])
    return p


@kernel
def absorb(part, slots, X, n, S):
    """Learn rows."""
    for t in range(X.shape[0]):  # written out: as a function of the row this loop is half as fast
        s = slots[t]
        c = n[s] + 1.0
        n[s] = c
        for j in range(X.shape[1]):
            part.learn(S, s, j, c, X[t, j])


@kernel
def play(part, slots, X, n, S, keep, out):
    """Add the log density of each row before it is learnt to `out`; then fade by `keep` and learn it."""
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
    """Set the prior of every column to the base and the statistics of slot s; to the base alone where n is 0."""
    for j in range(base.shape[1]):
        if n > 0.0:
            part.inherit(base, S, s, j, n, worth)
        else:
            for i in range(base.shape[0]):
                part.prior[i, j] = base[i, j]


@kernel
def contest(part, base, worth, slots, X, n, S, out):
    """The log density of each row under every slot but the last, before its own slot and the last one learn it.

    The last slot is the crowd: each row is predicted with a prior of the crowd's statistics, worth that many rows.
    While the crowd has seen fewer than two rows, which say nothing of spread, all slots get log density 0.
    """
    crowd = n.size - 1
    for t in range(X.shape[0]):
        if worth > 0.0:
            inherit(part, base, S, crowd, n[crowd], worth)
        for s in range(crowd):
            out[t, s] = row_logp(part, S, s, n, X, t) if worth == 0.0 or n[crowd] >= 2.0 else 0.0
        learn_row(part, S, crowd, n, X, t)
        learn_row(part, S, int(slots[t]), n, X, t)


@kernel
def tie(part, prior, S, s, n):
    """Set the prior of a Gaussian to `prior`, with the squares of all slots but s and the last added to its own.

    The posterior of slot s is then that of a model in which all slots share one variance per column.
    """
    for j in range(prior.shape[1]):
        m, k, a, b = prior[0, j], prior[1, j], prior[2, j], prior[3, j]
        part.prior[0, j], part.prior[1, j] = m, k
        for c in range(n.size - 1):
            if c != s and n[c] > 0.0:
                apart = S[c, 0, j] - m + S[c, 1, j]
                a += 0.5 * n[c]
                b += 0.5 * (S[c, 2, j] + k * n[c] / (k + n[c]) * apart * apart)
        part.prior[2, j], part.prior[3, j] = a, b


@kernel
def contest_tied(part, shared, base, worth, slots, X, n, S, out):
    """As `contest`, for Gaussians whose slots share one variance per column; `shared` takes the crowd's prior."""
    crowd = n.size - 1
    for t in range(X.shape[0]):
        inherit(shared, base, S, crowd, n[crowd] if worth > 0.0 else 0.0, worth)
        for s in range(crowd):
            tie(part, shared.prior, S, s, n)
            out[t, s] = row_logp(part, S, s, n, X, t) if worth == 0.0 or n[crowd] >= 2.0 else 0.0
        learn_row(part, S, crowd, n, X, t)
        learn_row(part, S, int(slots[t]), n, X, t)


@kernel
def terms(part, slots, X, n, S, out):
    """The log density of each value under its slot, -inf where the family does not take the value."""
    for t in range(X.shape[0]):
        s = slots[t]
        for j in range(X.shape[1]):
            x = X[t, j]
            out[t, j] = part.logp(S, s, j, n[s], x) if part.takes(j, x) else -math.inf


@kernel
def refused(part, X):
    """The flat index (row times columns plus column) of the first value that the family does not take, or -1."""
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            if not part.takes(j, X[t, j]):
                return t * X.shape[1] + j
    return -1


# ---------------------------------------------------------------- a Gaussian with full covariance


@kernel
def cholesky(A, L):
    """Fill the lower triangular L with L L' = A; False where A is not positive definite."""
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
    """The log density of a multivariate t at offset v from its location, given the Cholesky factor of the scatter."""
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
    """As `play`, for the Normal-Wishart prior; n is an array of one number.

    Returns the first row whose log density is not finite, or -1. Without fading the factor takes one rank-one update
    per row; with fading it is computed anew for each.
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
    """Overwrite L with the factor of L L' + weight v v'; v is overwritten too."""
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
