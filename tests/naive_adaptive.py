"""The slow, obvious versions of the learners without a rate, of their bounds and of aggregation.

Nothing here knows the package. A row is a list of numbers with the intercept's 1 last where there is one. Weights c
multiply losses; a row of weight 0 is predicted and otherwise absent. Where targets are numbers and there is an
intercept, the first row of positive weight gives the start w_1 = (0, ..., 0, y) and is no round.
"""

import math

import numpy as np


def value(loss, z, y):
    if loss == "square":
        return (z - y) ** 2
    if loss == "logistic":
        return max(z, 0.0) - y * z + math.log1p(math.exp(-abs(z)))
    if loss == "absolute":
        return abs(z - y)
    return max(0.0, (0.0 if loss == "perceptron" else 1.0) - y * z)


def slopes(loss, z, y):
    """The smallest and the largest slope at z."""
    if loss == "square":
        return 2.0 * (z - y), 2.0 * (z - y)
    if loss == "logistic":
        g = (1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))) - y
        return g, g
    if loss == "absolute":
        return (1.0 if z > y else -1.0), (-1.0 if z < y else 1.0)
    m = y * z
    both = (-y if m <= 1.0 else 0.0), (-y if m < 1.0 else 0.0)
    return min(both), max(both)


def implicit(loss, z, q, y):
    """A slope s at the point z - q s, by bisection: z - q s falls with s, and the slope rises with the point."""
    lo, hi = min(0.0, slopes(loss, z, y)[0]), max(0.0, slopes(loss, z, y)[1])
    for _ in range(300):
        mid = 0.5 * (lo + hi)
        low, high = slopes(loss, z - q * mid, y)
        if low <= mid <= high:
            return mid
        if mid > high:
            hi = mid
        else:
            lo = mid
    return 0.5 * (lo + hi)


def running(rows, y, c, loss, eta, intercept):
    """Margins of all rows, and what theorem R needs: metric, start, and per round (row, z, q, s, idle)."""
    n = len(rows[0])
    real = loss in ("square", "absolute")
    theta, a, S, M, Q, K = ([0.0] * n for _ in range(6))
    base, low, high, heavy, begun = 0.0, 0.0, 0.0, 0.0, False
    margins, rounds = [], []
    for t, x in enumerate(rows):
        span = high - low if real else 1.0
        steep = span if loss == "square" else 1.0
        new, z, q = list(a), base, 0.0
        for i, v in enumerate(x):
            if v * v == 0.0 or span == 0.0:
                continue
            top, mean = max(M[i], abs(v)), (Q[i] + v * v) / (K[i] + 1)
            root = math.sqrt(mean) * math.sqrt(S[i] + ((heavy or 1.0) * steep * top) ** 2)
            new[i] = max(a[i], root / (eta * span))
            z += theta[i] / new[i] * v
            q += v * v / new[i]
        margins.append(z)
        if c[t] == 0.0:
            continue
        heavy = max(heavy, c[t])
        if real and intercept and not begun:
            begun, base, low, high = True, y[t], y[t], y[t]
            continue
        begun = True
        s = c[t] * implicit(loss, z, c[t] * q, y[t]) if span > 0.0 else 0.0
        rounds.append((t, z, q, s, span == 0.0))
        for i, v in enumerate(x):
            if v * v == 0.0:
                continue
            a[i], M[i], Q[i], K[i] = new[i], max(M[i], abs(v)), Q[i] + v * v, K[i] + 1
            theta[i] -= s * v
            S[i] += (s * v) ** 2
        low, high = min(low, y[t]), max(high, y[t])
    return margins, a, base, rounds


def running_bound(rows, y, c, loss, a, base, rounds, u, intercept):
    """(measured, bound) of theorem R at u."""
    start = [0.0] * len(a)
    if intercept:
        start[-1] = base
    measured = bound = 0.0
    for t, z, q, s, idle in rounds:
        paid, uz = c[t] * value(loss, z, y[t]), float(np.dot(u, rows[t]))
        measured += paid
        bound += c[t] * value(loss, uz, y[t])
        bound += paid if idle else paid - c[t] * value(loss, z - q * s, y[t]) - 0.5 * q * s * s
    return measured, bound + 0.5 * sum(m * (p - w) ** 2 for m, p, w in zip(a, u, start, strict=True))


def priors(rows, c, kappa, intercept, real):
    """The prior before each row is predicted, and that at the end."""
    lam, heavy, begun, out = np.zeros(len(rows[0])), 0.0, False, []
    for t, x in enumerate(rows):
        new = np.maximum(lam, kappa * (heavy or 1.0) * np.array([v * v for v in x]))
        out.append(new)
        if c[t] > 0.0:
            heavy = max(heavy, c[t])
            if begun or not (real and intercept):
                lam = new
            begun = True
    return out, lam


def solve(A, b):
    """A^-1 b over the coordinates with a positive diagonal."""
    on = np.diagonal(A) > 0
    w = np.zeros(len(b))
    root = np.sqrt(np.diagonal(A)[on])
    w[on] = np.linalg.solve(A[np.ix_(on, on)] / np.outer(root, root), b[on] / root) / root
    return w


def ridge(rows, y, c, kappa, intercept, forecaster):
    """Margins; per round (row, p, z, q); the last prior; the start."""
    n = len(rows[0])
    lams, lam = priors(rows, c, kappa, intercept, True)
    G, b, base, low, high, begun = np.zeros((n, n)), np.zeros(n), 0.0, 0.0, 0.0, False
    margins, rounds = [], []
    for t, x in enumerate(np.asarray(rows, float)):
        A = G + np.diag(lams[t])
        z, q = base + float(x @ solve(A, b)), float(x @ solve(A, x))
        r = 0.5 * (low + high)
        p = r + (z - r) / (1.0 + q) if forecaster else z
        margins.append(p)
        if c[t] == 0.0:
            continue
        if intercept and not begun:
            begun, base, low, high = True, y[t], y[t], y[t]
            continue
        begun = True
        rounds.append((t, p, z, q))
        G += c[t] * np.outer(x, x)
        b += c[t] * (y[t] - base) * x
        low, high = min(low, y[t]), max(high, y[t])
    return margins, rounds, lam, base


def windowed_ridge(rows, y, c, kappa, window, intercept):
    """Margins; per round (row, z, q, m), m the least value of the objective after it; the drops; all r; the start.

    The objective of round t is a list of what it is a sum of: (weight, row, target) with the weights of all rounds
    before times gamma, and the prior, which is put back to kappa h x_i^2 where it has faded below half of that.
    """
    n, gamma = len(rows[0]), 1.0 - 1.0 / window
    past, lam, given, heavy = [], np.zeros(n), np.zeros(n), 0.0
    base, begun, least, drops, margins, rounds = 0.0, False, 0.0, 0.0, [], []

    def minimum(prior):
        A = np.diag(prior) + sum((w * np.outer(x, x) for w, x, _ in past), np.zeros((n, n)))
        u = solve(A, sum((w * v * x for w, x, v in past), np.zeros(n)))
        return A, u, sum(w * (v - x @ u) ** 2 for w, x, v in past) + float(prior @ u**2)

    for t, x in enumerate(np.asarray(rows, float)):
        need = kappa * (heavy or 1.0) * x * x
        new = np.where(need > 2.0 * lam, need, lam)
        A, u, raised = minimum(new)
        z, q = base + float(x @ u), float(x @ solve(A, x))
        margins.append(z)
        if c[t] == 0.0:
            continue
        heavy = max(heavy, c[t])
        if intercept and not begun:
            begun, base = True, y[t]
            continue
        begun = True
        drops += raised - gamma * least
        given += new - lam
        past.append((c[t], x, y[t] - base))
        least = minimum(new)[2]
        rounds.append((t, z, q, least))
        past = [(gamma * w, x, v) for w, x, v in past]
        lam = gamma * new
    return margins, rounds, drops, given, base


def newton(rows, y, c, prior, kappa, offset=None):
    """Margins, which begin at the offset of the row; per round (row, z, q, G, C, d); the last prior."""
    n = len(rows[0])
    lams, lam = priors(rows, c, prior, False, False)
    H, b = np.zeros((n, n)), np.zeros(n)
    margins, rounds = [], []
    for t, x in enumerate(np.asarray(rows, float)):
        A = H + np.diag(lams[t])
        begin = 0.0 if offset is None else offset[t]
        along, q = begin + float(x @ solve(A, b)), float(x @ solve(A, x))
        lo, hi = min(0.0, along), max(0.0, along)
        for _ in range(200):
            z = 0.5 * (lo + hi)
            lo, hi = (lo, z) if z + q * math.tanh(0.5 * z) > along else (z, hi)
        margins.append(z)
        if c[t] == 0.0:
            continue
        p = 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))
        G, C = c[t] * (p - y[t]), c[t] * kappa * p * (1.0 - p)
        rounds.append((t, z, q, G, C, along - z))
        H += C * np.outer(x, x)
        b += (C * (z - begin) - G) * x
    return margins, rounds, lam


def log_mixture(Z, y, c):
    """Margins of the Bayes mixture of probabilities, losses of the members, its own, the price and the last rate."""
    T, K = Z.shape
    L, out, heavy, loss, gap, eta = np.zeros(K), np.zeros(T), 0.0, 0.0, 0.0, math.inf
    for t in range(T):
        if c[t] > 0.0:
            heavy = max(heavy, c[t])
        eta = 1.0 / (heavy or 1.0)
        lv = -eta * (L - L.min())
        lv -= np.logaddexp.reduce(lv)
        ones = np.logaddexp.reduce(lv - np.logaddexp(0.0, -Z[t]))
        nones = np.logaddexp.reduce(lv - np.logaddexp(0.0, Z[t]))
        out[t] = ones - nones
        if c[t] == 0.0:
            continue
        each = c[t] * np.array([value("logistic", z, y[t]) for z in Z[t]])
        paid = c[t] * value("logistic", out[t], y[t])
        loss += paid
        gap += paid + np.logaddexp.reduce(lv - eta * each) / eta
        L += each
    return out, L, loss, math.log(K) / eta + gap, eta


def mean_mixture(Z, y, c, loss, intercept):
    """The same for the weighted mean of members, clipped to the targets seen where these are numbers."""
    T, K = Z.shape
    real = loss in ("square", "absolute")
    L, out, low, high, heavy, positive = np.zeros(K), np.zeros(T), 0.0, 0.0, 0.0, 0.0
    total, gap, eta, begun = 0.0, 0.0, math.inf, False
    for t in range(T):
        if c[t] > 0.0:
            heavy = max(heavy, c[t])
        rate = math.log(K) / positive if positive > 0.0 and K > 1 else math.inf
        if loss == "square" and high > low and K > 1:
            rate = max(rate, 1.0 / (2.0 * heavy * (high - low) ** 2))
        eta = min(eta, rate)
        v = np.exp(-eta * (L - L.min())) if eta < math.inf else (L.min() == L).astype(float)
        v /= v.sum()
        p = np.clip(Z[t], low, high) if real else Z[t]
        out[t] = float(v @ p)
        if c[t] == 0.0:
            continue
        if real and intercept and not begun:
            begun, low, high = True, y[t], y[t]
            continue
        begun = True
        each = c[t] * np.array([value(loss, z, y[t]) for z in p])
        if eta < math.inf:
            mixed = (np.logaddexp.reduce(-eta * (L - L.min())) - np.logaddexp.reduce(-eta * (L + each - L.min()))) / eta
        else:
            mixed = (L + each).min() - L.min()
        paid = c[t] * value(loss, out[t], y[t])
        total, gap, positive = total + paid, gap + paid - mixed, positive + max(0.0, paid - mixed)
        L += each
        low, high = min(low, y[t]), max(high, y[t])
    return out, L, total, (math.log(K) / eta if eta < math.inf else 0.0) + gap, eta


def scale_free(rows, y, c, loss, eta, update, fixed):
    """Margins of lazy steps in the metric M^2/eta (1/eta if fixed); the metric; per round (row, z, z'', q, s)."""
    n = len(rows[0])
    theta, M, margins, rounds = [0.0] * n, [0.0] * n, [], []
    for t, x in enumerate(rows):
        new = [1.0 if fixed else max(m, abs(v)) if v * v > 0.0 else m for m, v in zip(M, x, strict=True)]
        on = [(i, v) for i, v in enumerate(x) if v * v > 0.0]
        z = math.fsum(eta * theta[i] / new[i] / new[i] * v for i, v in on)
        q = math.fsum(eta * (v / new[i]) ** 2 for i, v in on)
        margins.append(z)
        if c[t] == 0.0:
            continue
        M = new
        if update == "implicit":
            s = c[t] * implicit(loss, z, c[t] * q, y[t])
        elif loss == "perceptron":
            s = -c[t] * y[t] if y[t] * z <= 0.0 else 0.0
        else:
            low, high = slopes(loss, z, y[t])
            s = c[t] * (0.0 if loss == "absolute" and z == y[t] else high if loss == "absolute" else low)
        rounds.append((t, z, z - q * s if update == "implicit" else z, q, s))
        for i, v in on:
            theta[i] -= s * v
    return margins, [m * m / eta for m in M], rounds


def lazy_bound(rows, y, c, loss, a, rounds, u):
    """(measured, bound) of theorem R at u from the start 0."""
    measured, bound = 0.0, 0.5 * sum(m * p * p for m, p in zip(a, u, strict=True))
    for t, z, after, q, s in rounds:
        paid = c[t] * value(loss, z, y[t])
        measured += paid
        bound += c[t] * value(loss, float(np.dot(u, rows[t])), y[t])
        bound += paid - c[t] * value(loss, after, y[t]) - s * (z - after) + 0.5 * q * s * s
    return measured, bound


def perceptron_bound(rows, y, c, a, rounds, u):
    """(mistakes, bound) of the scale-free perceptron at u."""
    mistakes = short = spent = 0.0
    for t, z, _, q, _ in rounds:
        if y[t] * z <= 0.0:
            mistakes += c[t]
            short += c[t] * max(0.0, 1.0 - y[t] * float(np.dot(u, rows[t])))
            spent += c[t] ** 2 * q
    return mistakes, short + math.sqrt(sum(m * p * p for m, p in zip(a, u, strict=True)) * spent)


def shared_mixture(Z, y, c, loss, intercept, alpha):
    """Fixed share: margins; losses of members, a row per round; the loss; the last rate; the gaps; rounds weighed."""
    T, K = Z.shape
    real = loss == "square"
    out, low, high, heavy, begun = np.zeros(T), 0.0, 0.0, 0.0, False
    v, eta, total, gap, every, weighed = np.full(K, 1.0 / K), math.inf, 0.0, 0.0, [], 0
    for t in range(T):
        heavy = max(heavy, c[t])
        rate = math.inf
        if not real and heavy > 0.0:
            rate = 1.0 / heavy
        elif real and high > low and heavy > 0.0:
            rate = min(eta, 1.0 / (2.0 * heavy * (high - low) ** 2))
        if rate < eta < math.inf:
            v = v ** (rate / eta)
            v /= v.sum()
        eta = min(eta, rate)
        p = np.clip(Z[t], low, high) if real else Z[t]
        if real:
            out[t] = float(v @ p)
        else:
            out[t] = np.logaddexp.reduce(np.log(v) - np.logaddexp(0.0, -p)) - np.logaddexp.reduce(
                np.log(v) - np.logaddexp(0.0, p)
            )
        if c[t] == 0.0:
            continue
        if real and intercept and not begun:
            begun, low, high = True, y[t], y[t]
            continue
        begun = True
        each = c[t] * np.array([value(loss, z, y[t]) for z in p])
        paid = c[t] * value(loss, out[t], y[t])
        total += paid
        every.append(each)
        if eta < math.inf:
            lw = np.log(v) - eta * each
            mixed = -np.logaddexp.reduce(lw) / eta
            gap += paid - mixed
            v = (1.0 - alpha) * np.exp(lw + eta * mixed) + alpha / K
            weighed += 1
        low, high = min(low, y[t]), max(high, y[t])
    return out, np.array(every).reshape(-1, K), total, eta, gap, weighed


def distances(p, m):
    """How far predictions are from the mixture, and 0 where rounding could be most of that."""
    D = p - m[:, None]
    return np.where(np.abs(D) > 1e-8 * (np.abs(p) + np.abs(m)[:, None]), D, 0.0)


def stacked(Z, y, c, loss, intercept):
    """The mixture corrected by second order on its members, and both aggregated.

    Returns margins; the loss; the prices of the mixture's aggregation and of that of both; what the members lost; the
    rows D; the mixture; per round of the correction (row, prediction, z, q, G, C, d); its last prior.
    """
    real = loss == "square"

    def mixed(Z):
        return mean_mixture(Z, y, c, loss, intercept) if real else log_mixture(Z, y, c)

    m, lost, _, price, _ = mixed(Z)
    seen, ranges, counted = [0.0, 0.0], [], np.array(c, float)
    for t in range(len(y)):
        ranges.append((min(seen), max(seen)))
        if real and intercept and c[t] > 0.0 and not any(c[:t]):
            seen, counted[t] = [y[t]], 0.0
        elif c[t] > 0.0:
            seen.append(y[t])
    low, high = np.array(ranges).T
    if real:
        D = distances(np.clip(Z, low[:, None], high[:, None]), m)
        beyond, rounds, lam, _ = ridge(D.tolist(), y - m, counted, 0.1, False, False)
        s = np.clip(m + np.array(beyond), low, high)
        rounds = [(t, s[t], m[t] + z, q, 0.0, c[t], 0.0) for t, _, z, q in rounds]
    else:
        D = np.c_[distances(Z, m), np.ones(len(y))]
        s, rounds, lam = newton(D.tolist(), y, c, 0.1, 0.25, m)
        rounds = [(t, z, z, *rest) for t, z, *rest in rounds]
    out, _, total, of_two, _ = mixed(np.column_stack([m, s]))
    return out, total, (price, of_two), lost, D, m, rounds, lam
