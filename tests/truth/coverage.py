"""Streams of scores for intervals that cover: jumps, drifts, constants, ties, and adversaries that see the interval."""

import math

import numpy as np

import naive_coverage as slow
from hindsight.certificates.coverage import certify_coverage, rivals_of
from hindsight.certificates.theorems import Verdict
from hindsight.online.coverage import GAMMA, Coverage


def scores(rng, rounds):
    """Scores of one of the kinds that trouble trackers."""
    s = np.abs(rng.normal(size=rounds)) * 10.0 ** rng.choice([0.0, 0.0, rng.uniform(-6, 6)])
    match rng.integers(8):
        case 1:  # jumps by 1e6, up and down
            s *= 1e6 ** rng.integers(-1, 2, size=3).repeat(-(-rounds // 3))[:rounds]
        case 2:  # a drift
            s *= np.exp(np.linspace(0.0, rng.uniform(-20.0, 20.0), rounds))
        case 3:  # all the same
            s[:] = rng.choice([0.0, 1.0])
        case 4:  # many ties, some of them at 0
            s = np.round(2.0 * s / s.max()) / 2.0 if s.max() > 0.0 else s
        case 5:  # exact for long, then not
            s[: rounds // 2] = 0.0
        case 6:  # now and then an outlier
            s[rng.random(rounds) < 0.02] *= 1e6
        case 7:  # heavy tails
            s = np.abs(rng.standard_cauchy(rounds))
    return s


def weights(rng, rounds):
    """Weights of one of four kinds."""
    kinds = (np.ones(rounds), rng.random(rounds), 10.0 ** rng.uniform(-3, 3, rounds), rng.integers(0, 3, rounds) * 1.0)
    return kinds[rng.choice(4, p=(0.55, 0.15, 0.15, 0.15))]


REACTIONS = (
    lambda q, t, rng: q * 1.0001 + 1e-9,  # always a miss, if there is a number to miss by
    lambda q, t, rng: q,  # met with equality
    lambda q, t, rng: 0.0 if rng.random() < 0.5 else 2.0 * q + 1.0,
    lambda q, t, rng: q * (0.5 if t % 120 < 60 else 1.5) + 1.0,
    lambda q, t, rng: 1e-12 * q + 1e-12 if t < 100 else q * 1.5 + 1.0,  # the deepest fall, then the highest rise
)


def wrong(seed):
    """What is wrong with a stream."""
    rng = np.random.default_rng(seed)
    rounds, alpha = (
        int(rng.integers(1, 40) if rng.random() < 0.3 else rng.integers(40, 400)),
        rng.choice([0.1, 0.1, 0.5, 0.02]),
    )
    asked = 1.0 - alpha
    s, c = scores(rng, rounds), weights(rng, rounds)
    tracker, ours = Coverage(asked), slow.Tracker(1.0 - asked)
    react = REACTIONS[rng.integers(len(REACTIONS))] if rng.random() < 0.4 else None
    told = []
    if react is None:
        whole = Coverage(asked).add(s, c)
        cuts = np.sort(rng.integers(0, rounds + 1, size=2))
        told = np.concatenate([tracker.add(a, b) for a, b in zip(np.split(s, cuts), np.split(c, cuts), strict=True)])
        if not np.array_equal(whole, told):
            return ["chunks change the widths"]
    else:
        for t in range(rounds):
            q = tracker.half
            s[t] = min(react(q, t, rng), 1e100) if q < math.inf else 1e100
            told.append(tracker.add(s[t : t + 1], c[t : t + 1])[0])
            if told[-1] != q:
                return ["a width that was told is not the one that counts"]
    out, again = [], Coverage(asked)
    for t in range(rounds):
        slowly, q = ours.half, float(told[t])
        if slowly != q and abs(slowly - q) > 1e-6 * q and min(slowly, q) < 1e12 * (ours.top + 1.0):
            out.append(f"round {t}: half-width {q!r}, {slowly!r} slowly")
            break
        if c[t] > 0.0:
            ours.add(float(s[t]), float(c[t]), q, again.members.width.tolist())
            again.add(s[t : t + 1], c[t : t + 1])
    return out or judged(tracker, ours)


def judged(tracker, ours):
    """What is wrong with the certificate, by the slow tracker."""
    found, out = certify_coverage(tracker), []
    total = sum(c for _, c, _ in ours.rounds)
    if not total:
        return [] if found.verdict is Verdict.VOID else ["a certificate of nothing"]
    alpha, near = ours.alpha, 1e-7 * (total + ours.heaviest / GAMMA)
    if found.verdict is not Verdict.HOLDS:
        out.append(f"{found.verdict}: {found}")
    missed = sum(c for s, c, q in ours.rounds if s > q)
    if abs((1.0 - found.covered) * total - missed) > near:
        out.append(f"misses {missed}, said to be {(1.0 - found.covered) * total}")
    if abs(found.exact - ours.spared) > near:
        out.append(f"spared {ours.spared}, said to be {found.exact}")
    # the theorem, anew: the level stays in [0, 1 + gamma (1 - alpha)], and all weights are at most the largest
    most = ours.heaviest * (1.0 / GAMMA + 1.0 - alpha)
    high, low = most - ours.carried / GAMMA, -ours.carried / GAMMA - ours.spared
    net = ours.misses
    if not low - near <= net[-1] <= high + near:
        out.append(f"misses {net[-1]} beyond those asked for, not within {low} and {high}")
    if (
        not abs(found.low - max(0.0, 1.0 - alpha - high / total))
        + abs(found.high - min(1.0, 1.0 - alpha - low / total))
        < near / total
    ):
        out.append(
            f"guaranteed {found.low} to {found.high}, by hand {1.0 - alpha - high / total}, {1.0 - alpha - low / total}"
        )
    rise = max(b - min([0.0, *net[: t + 1]]) for t, b in enumerate(net))
    if rise > found.worst + near or found.worst > most + near or found.stretch > most + near:
        out.append(f"over a stretch {rise}; told {found.worst}, at most {found.stretch}; by hand {most}")
    if found.boundless or (not rivals_of(tracker)[0].size and ours.top):
        return out + (["a promise beside infinite widths"] if found.loss_verdict is not Verdict.VOID else [])
    if found.loss_verdict is not Verdict.HOLDS:
        out.append(f"pinball: {found.loss_verdict}: {found}")
    own = sum(c * slow.rho(alpha, s, q) for s, c, q in ours.rounds)
    scale = own + sum(c * s for s, c, _ in ours.rounds)
    if abs(own - found.loss) > 1e-9 * scale:
        out.append(f"pinball loss {own}, said to be {found.loss}")
    return out + compared(tracker, ours, own, found)


def compared(tracker, ours, own, found):
    """What is wrong with the bound on the pinball loss, for many fixed widths."""
    if not ours.top:
        return []
    out, (u, lost, bound, _) = [], rivals_of(tracker)
    fits = u >= slow.FLOOR * ours.top
    for k in np.flatnonzero(fits)[:: max(1, fits.sum() // 12)]:
        slowly, most = ours.loss(float(u[k])), ours.bound(float(u[k]))
        if abs(lost[k] - slowly) > 1e-7 * slowly:
            out.append(f"a width of {u[k]} loses {slowly}, said to be {lost[k]}")
        if abs(bound[k] - most) > 1e-7 * abs(most) + 1e-9 * ours.loss(0.0):
            out.append(f"against {u[k]} at most {most}, said to be {bound[k]}")
        if own > most + 1e-7 * (most + own):
            out.append(f"lost {own}, but against {u[k]} at most {most}")
    return out[:3]


FAMILIES = {"coverage": wrong}
