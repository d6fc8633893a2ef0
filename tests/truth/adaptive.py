"""The truth of learners without a rate: random and adversarial streams through theorems R, V, N and G.

Each stream is played by the package and by `naive_adaptive`; margins must agree, and the bound, written out from the
theory with the naive player's numbers, must hold for comparators of all kinds; then the package certifies the run, and
its bound must be the theory's at its comparator, and HOLD.
"""

import copy
import math
from contextlib import nullcontext
from dataclasses import replace
from unittest import mock

import numpy as np
import scipy.sparse as sp

import naive_adaptive as naive
import naive_cells
from hindsight.certificates.certificate import Best
from hindsight.certificates.certify import certify_run
from hindsight.certificates.families import adaptive
from hindsight.certificates.families.panel import account_of, aggregation_price
from hindsight.certificates.ledger import Ledger
from hindsight.certificates.outcome import Known
from hindsight.certificates.theorems import QUARTER, Verdict, verdict
from hindsight.online import learners as L
from hindsight.online.panel import Panel, PanelRun, auto
from hindsight.online.run import Run, play
from hindsight.rows.data import Data
from truth import streams
from truth.outcome import EQUAL


def draw(rng, real, most=40, far=1e3):
    """Rows of many kinds: heavy tails, columns of all scales, collinear, sparse, late; targets and weights too."""
    m, n = int(rng.integers(1, most)), int(rng.integers(1, 6))
    X = rng.normal(size=(m, n))
    kind = rng.integers(0, 6)
    if kind == 0:
        X = rng.standard_cauchy((m, n))
    elif kind == 1:
        X *= 10.0 ** rng.integers(-6, 7, n)
    elif kind == 2 and n > 1:
        X[:, -1] = X[:, 0] * (1.0 + 1e-4 * rng.normal(size=m))
    elif kind == 3:
        X *= rng.random((m, n)) < 0.3
    elif kind == 4:
        X *= np.arange(m)[:, None] >= rng.integers(0, m, n)
    elif kind == 5:
        X *= np.where(np.arange(m) > rng.integers(0, m), 10.0 ** rng.integers(-6, 7), 1.0)[:, None]
    u = rng.normal(size=n) / np.maximum(np.abs(X).max(axis=0), 1e-300)
    z = X @ u
    if real:
        y = z + rng.normal(size=m) * 10.0 ** rng.integers(-4, 2)
        kind = rng.integers(0, 6)
        if kind == 0:
            y[:] = y[0]
        elif kind == 1:
            y = rng.standard_cauchy(m) * 10.0 ** rng.integers(-6, 7)
        elif kind == 2:
            y = y + far
        elif kind == 3:
            y = np.cumsum(np.abs(y))  # every target is a record
    else:
        y = (z + rng.logistic(size=m) * rng.choice([0.0, 1.0]) > 0).astype(float)
        if rng.random() < 0.15:
            y[:] = rng.integers(0, 2)
    c = np.ones(m)
    kind = rng.integers(0, 4)
    if kind == 0:
        c = rng.choice([0.0, 0.5, 1.0, 3.0], m)
    elif kind == 1:
        c = 10.0 ** rng.uniform(-3, 3, m)
    if not c.any():
        c[0] = 1.0
    return X, y, c, bool(rng.integers(0, 2))


def with_one(X, intercept):
    return np.c_[X, np.ones(len(X))].tolist() if intercept else X.tolist()


def played(run, X, y, c, rng):
    """Margins of the package, dense or sparse, in chunks of random sizes; a ledger follows a panel."""
    if isinstance(run, PanelRun) and all(m.learner.theorem is None or adaptive.in_ledger(m) for m in run.members):
        run.watcher = Ledger(run, adaptive.add_terms)
    rows, z, a = (sp.csr_matrix(X) if rng.random() < 0.5 and streams.SPARSE else X), np.empty((len(y), 1)), 0
    while a < len(y):
        b = min(len(y), a + int(rng.integers(1, 20)))
        play([run], rows[a:b], [y[a:b]], c[a:b], z[a:b], idle=True)
        a = b
    return z[:, 0]


def both_ways(run, data, wrong):
    """The certificate of a panel that is played again; that which came with the run must be the same."""
    found = certify_run(run, copy.copy(data))  # a search begins where the last one over these rows ended
    ledger = run.watcher
    if ledger is not None and ledger.rounds == run.rounds:
        came = certify_run(run, copy.copy(data), ledger=ledger)
        for name in ("measured", "bound", "lost", "constant", "weight"):
            a, b = getattr(found, name), getattr(came, name)
            room = 2e-9 if name == "bound" else 1e-12  # that to which a comparator is sought: it may begin elsewhere
            if not (a == b or math.isclose(a, b, rel_tol=room) or (math.isnan(a) and math.isnan(b))):
                wrong.append(f"{name}: {b!r} came with the run, played again it is {a!r}")
        if came.verdict is not found.verdict or [m.rounds for m in came.path] != [m.rounds for m in found.path]:
            wrong.append(f"{came.verdict.value} came with the run, played again it is {found.verdict.value}")
    return found


def comparators(rng, start, found):
    """Comparators of all kinds: the start, the one found, near it, and far away."""
    yield found
    yield start
    for _ in range(3):
        yield start + (found - start) * rng.uniform(-1, 3) + rng.normal(size=len(start)) * 10.0 ** rng.integers(-6, 3)


def apart(a, b, scale):
    return abs(a - b) > EQUAL * (abs(a) + abs(b)) + 1e-12 * scale


def judge(run, X, y, c, margins, want, intercept, bound_at, start, scale, rng, wrong):
    """Compare margins, then the theorem at many comparators, then the certificate."""
    size = np.abs(want).max(initial=0.0) + np.abs(y).max(initial=0.0) + 1e-300
    if np.abs(margins - want).max(initial=0.0) > 1e-7 * size:
        wrong.append(f"margins differ by {np.abs(margins - want).max() / size:.3g}")
        return
    if run.rounds == 0:
        return
    if not run.facts.rounds:
        return
    found = certify_run(run, Data(X, y, c, 1.0 if intercept else 0.0))
    if found.verdict is not Verdict.HOLDS:
        wrong.append(f"{found.verdict.value}: {found.measured:.9g} {found.bound:.9g} {found.notes}")
        return
    if apart(found.weight, run.facts.weight, 0.0) or apart(found.lost, found.measured, scale):
        wrong.append(f"weight {found.weight!r}, in play {run.facts.weight!r}; lost {found.lost!r} {found.measured!r}")
    above = found.bound + 3.0 * EQUAL * (abs(found.bound) + scale)
    if verdict(above, found.bound, scale) != (Verdict.BROKEN, False):
        wrong.append(f"{above!r} does not break {found.bound!r}")
    measured, bound = bound_at(found.comparator.u)
    if apart(found.measured, measured, scale):
        wrong.append(f"measured {found.measured:.12g}, naive {measured:.12g}")
    if abs(found.bound - bound) > 1e-6 * abs(bound) + 1e-9 * scale:
        wrong.append(f"bound {found.bound:.12g}, naive {bound:.12g}")
    for u in comparators(rng, start, found.comparator.u):
        measured, bound = bound_at(u)
        if measured > bound * (1 + EQUAL) + 1e-9 * scale:
            wrong.append(f"the theorem is broken: {measured:.12g} > {bound:.12g}")


def running(rng, loss):
    real, wrong = loss in ("square", "absolute"), []
    X, y, c, intercept = draw(rng, real, far=10.0 ** rng.integers(3, 6))
    if loss == "hinge":
        y = 2.0 * y - 1.0
    eta = float(2.0 ** rng.integers(-5, 6))
    rows = with_one(X, intercept)
    want, a, base, rounds = naive.running(rows, y.tolist(), c.tolist(), loss, eta, intercept)
    run = Run(L.running(loss, eta), X.shape[1], intercept=intercept)
    z = played(run, X, y, c, rng)
    start = np.zeros(len(rows[0]))
    if intercept:
        start[-1] = base
    scale = float((c * (np.abs(y) if loss == "absolute" else y**2)).sum()) + 1e-300

    def bound_at(u):
        return naive.running_bound(rows, y, c, loss, a, base, rounds, u, intercept)

    judge(run, X, y, c, z, np.array(want), intercept, bound_at, start, scale, rng, wrong)
    if real and run.facts.rounds:
        found = certify_run(run, Data(X, y, c, 1.0 if intercept else 0.0), seek_best=False)
        far = np.abs(y - start[-1] if intercept else y) ** (2 if loss == "square" else 1)
        slopes = np.abs(want - y) + np.abs(y - X @ found.comparator.u[: X.shape[1]]) + 1.0
        hidden = 1e-13 * float((c * slopes * (np.abs(y) + np.abs(X) @ np.abs(found.comparator.u[: X.shape[1]]))).sum())
        if found.equality and found.slack > 3.0 * EQUAL * (found.bound + float((c * far).sum())) + hidden:
            wrong.append(f"equality is claimed at a slack of {found.slack:.3g} of {found.bound:.3g}")
    return wrong


def below_all(rng, loss):
    """That every fixed predictor loses more is said where it is shown, by a best one and its gap, and nowhere else."""
    wrong = []
    X, y, c, intercept = draw(rng, loss == "square", 12)
    run = PanelRun(Panel((L.running(loss, 1.0), L.running(loss, 8.0))), X.shape[1], intercept=intercept)
    played(run, X, y, c, rng)
    lost = float(run.facts.loss)
    if not lost > 0.0:
        return wrong
    for times, gap, reach in ((1.02, 0.0, math.inf), (1.02, 0.0, 1e6), (1.02, 0.03, math.inf), (0.995, 0.0, math.inf)):
        best = Best(np.zeros(run.width), times * lost, gap * lost, "drawn", reach)
        with mock.patch.object(Known, "best_of", lambda *_, best=best: (best, np.empty(0))):
            found = both_ways(run, Data(X, y, c, 1.0 if intercept else 0.0), wrong)
        said = "the run lost less than every fixed predictor" in found.notes
        if said != (times - gap > 1.0 and reach == math.inf):
            wrong.append(f"{'said' if said else 'not said'} to lose less: best {times}, gap {gap}, reach {reach}")
    return wrong


def after_names(rng, X):
    """The rows with columns of names before theirs, of which each row has one: most of the triangle stays 0."""
    names = np.zeros((len(X), int(rng.integers(9, 30))))
    names[np.arange(len(X)), rng.integers(0, names.shape[1], len(X))] = 1.0
    return np.hstack([names, X])


def ridge(rng, forecaster):
    wrong = []
    X, y, c, intercept = draw(rng, True)
    X = after_names(rng, X) if rng.random() < 0.2 else X
    kappa = float(10.0 ** rng.integers(-3, 2))
    rows = with_one(X, intercept)
    want, rounds, lam, base = naive.ridge(rows, y, c, kappa, intercept, forecaster)
    run = Run(L.vaw(kappa) if forecaster else L.ridge(kappa), X.shape[1], intercept=intercept)
    z = played(run, X, y, c, rng)
    start = np.zeros(len(rows[0]))
    if intercept:
        start[-1] = base
    rows = np.array(rows)
    scale = float((c * (y - base) ** 2).sum()) + 1e-300

    def bound_at(u):
        measured = sum(c[t] * (y[t] - p) ** 2 for t, p, _, _ in rounds)
        bound = sum(c[t] * (y[t] - rows[t] @ u) ** 2 for t, *_ in rounds) + float(lam @ (u - start) ** 2)
        bound += sum(c[t] * ((y[t] - p) ** 2 - (y[t] - v) ** 2 / (1 + c[t] * q)) for t, p, v, q in rounds)
        return measured, bound

    judge(run, X, y, c, z, np.array(want), intercept, bound_at, start, scale, rng, wrong)
    if run.facts.rounds:
        weights, targets = np.array([c[t] for t, *_ in rounds]), np.array([y[t] for t, *_ in rounds])
        constant = float(weights @ (targets - weights @ targets / weights.sum()) ** 2)
        found = certify_run(run, Data(X, y, c, 1.0 if intercept else 0.0))
        if apart(found.constant, constant, scale):
            wrong.append(f"the best constant loses {found.constant:.12g}, naive {constant:.12g}")
    kept = run.state.objective
    if run.facts.rounds and kept[0] > 1e-6 * scale:
        kept[0] *= 1.0 + 1e-5
        found = certify_run(run, Data(X, y, c, 1.0 if intercept else 0.0), seek_best=False)
        if found.verdict is not Verdict.VOID:
            wrong.append(f"an objective that is off by 1e-5 is {found.verdict.value}")
    return wrong


def windowed_ridge(rng):
    """What the windows lose by each window's own minimum, beside the identity, any sequence of u and any one u."""
    wrong = []
    X, y, c, intercept = draw(rng, True, int(rng.choice([12, 40, 80])))
    kappa, window = float(10.0 ** rng.integers(-3, 2)), int(rng.choice([2, 3, 5, 16, 100]))
    rows = with_one(X, intercept)
    want, rounds, drops, given, base = naive.windowed_ridge(rows, y, c, kappa, window, intercept)
    run = Run(L.ridge(kappa, window), X.shape[1], intercept=intercept)
    z = played(run, X, y, c, rng)
    start = np.zeros(len(rows[0]))
    if intercept:
        start[-1] = base
    rows, gamma = np.array(rows), 1.0 - 1.0 / window
    scale = float((c * (y - base) ** 2).sum()) + 1e-300
    if not rounds:
        return wrong
    measured = sum(c[t] * (y[t] - p) ** 2 for t, p, *_ in rounds)
    kept = sum(c[t] * (y[t] - p) ** 2 / (1.0 + c[t] * q) for t, p, q, _ in rounds)
    windows = rounds[-1][3] + (1.0 - gamma) * sum(m for *_, m in rounds[:-1])
    if abs(kept + drops - windows) > 1e-7 * windows + 1e-9 * scale:
        wrong.append(f"the identity is broken: {kept:.12g} + {drops:.12g} is not {windows:.12g}")
    judge(
        run, X, y, c, z, np.array(want), intercept, lambda u: (measured, windows + measured - kept), start, scale, rng,
        wrong,
    )  # fmt: skip
    found = certify_run(run, Data(X, y, c, 1.0 if intercept else 0.0), seek_best=False)
    for u in comparators(rng, start, found.comparator.u):
        least = sum(c[t] * (y[t] - rows[t] @ u) ** 2 for t, *_ in rounds) + float(given @ (u - start) ** 2)
        if windows > least * (1 + EQUAL) + 1e-9 * scale:
            wrong.append(f"one u for all rounds loses less than the windows: {least:.12g} < {windows:.12g}")
        fixed = certify_run(run, Data(X, y, c, 1.0 if intercept else 0.0), u=u, seek_best=False)
        if fixed.verdict is not Verdict.HOLDS or apart(fixed.bound, found.bound, scale):
            wrong.append(f"beside a given u: {fixed}")
    lost = float(found.comparator.loss) + float(given @ (found.comparator.u - start) ** 2)
    for field, off in ((run.state.objective, 1e-5 * run.state.objective[0]), (run.state.drop, 1.01 * lost)):
        if off > 1e-11 * scale:
            field[0] += off
            spoilt = certify_run(run, Data(X, y, c, 1.0 if intercept else 0.0), seek_best=False)
            field[0] -= off
            if spoilt.verdict is not Verdict.VOID:
                wrong.append(f"a state that is off by {off:.3g} is {spoilt.verdict.value}")
    return wrong


def newton(rng):
    wrong = []
    X, y, c, intercept = draw(rng, False)
    prior, kappa = float(10.0 ** rng.integers(-2, 1)), float(rng.choice([0.5, 0.25, 0.125]))
    rows = with_one(X, intercept)
    want, rounds, lam = naive.newton(rows, y, c, prior, kappa)
    run = Run(L.newton(kappa, prior), X.shape[1], intercept=intercept)
    z = played(run, X, y, c, rng)
    rows = np.array(rows)
    scale = float(c.sum())

    def bound_at(u):
        measured = bound = gap = 0.0
        for t, v, q, G, C, d in rounds:
            uz = float(rows[t] @ u)
            paid, other = c[t] * naive.value("logistic", v, y[t]), c[t] * naive.value("logistic", uz, y[t])
            measured += paid
            bound += other + 0.5 * (q * G * G - 2 * G * d - C * d * d) / (1 + C * q)
            gap += paid + G * (uz - v) + 0.5 * C * (uz - v) ** 2 - other
        return measured, bound + 0.5 * float(lam @ u**2) + max(0.0, gap)

    judge(run, X, y, c, z, np.array(want), intercept, bound_at, np.zeros(run.width), scale, rng, wrong)
    return wrong


def aggregation(rng, loss):
    """A panel of random members: the mixture against the naive one, and its bound against every member."""
    wrong = []
    real = loss in ("square", "absolute")
    X, y, c, intercept = draw(rng, real)
    if loss == "hinge":
        y = 2.0 * y - 1.0
    whole = rng.random() < 0.5 and loss in ("square", "logistic")
    etas = 2.0 ** rng.integers(-5, 6, int(rng.integers(1, 6)))
    panel = Panel(tuple(L.running(loss, float(eta)) for eta in etas))
    if whole:  # often with members that learn the first features alone
        panel = replace(auto(loss, limit=int(rng.integers(2, 8))), stack=False)
    run = PanelRun(panel, X.shape[1], intercept=intercept)
    z = played(run, X, y, c, rng)
    alone = [Run(m, panel.features_of(m, X.shape[1], intercept), intercept=intercept) for m in panel.members]
    Z = [played(each, X[:, : each.features], y, c, np.random.default_rng(0)) for each in alone]
    Z = np.stack(Z, axis=1)
    if loss == "logistic":
        out, lost, total, price, _ = naive.log_mixture(Z, y, c)
    else:
        out, lost, total, price, _ = naive.mean_mixture(Z, y, c, loss, intercept)
    size = np.abs(out).max(initial=0.0) + np.abs(y).max(initial=0.0) + 1e-300
    if np.abs(out - z).max() > 1e-6 * size:
        wrong.append(f"mixtures differ by {np.abs(out - z).max() / size:.3g}")
    scale = float((c * y**2).sum()) + 1e-300
    if total > lost.min() + price + EQUAL * (total + lost.min() + scale):
        wrong.append(f"aggregation is broken: {total:.12g} > {lost.min():.12g} + {price:.12g}")
    if apart(run.facts.loss, total, scale):
        wrong.append(f"loss {run.facts.loss:.12g}, naive {total:.12g}")
    if run.facts.rounds:
        found = both_ways(run, Data(X, y, c, 1.0 if intercept else 0.0), wrong)
        if found.verdict is not Verdict.HOLDS:
            wrong.append(f"{found.verdict.value}: {found.measured:.9g} {found.bound:.9g} {found.notes}")
    return wrong


def mixture(rng, loss):
    """Margins that no learner made: members that are as bad as can be, and take turns in being right."""
    wrong, T, K = [], int(rng.integers(1, 120)), int(rng.integers(2, 5))
    real = loss in ("square", "absolute")
    Z = rng.choice([-1.0, 1.0], (T, K)) * 10.0 ** rng.integers(-1, 2) + 0.1 * rng.normal(size=(T, K))
    if real:
        y = rng.choice([-1.0, 1.0], T) * (1.0 if rng.random() < 0.5 else rng.random(T))
    else:
        y = rng.integers(0, 2, T).astype(float)
    c = np.ones(T) if rng.random() < 0.5 else rng.choice([0.0, 0.5, 1.0, 3.0], T)
    intercept, panel = bool(rng.integers(0, 2)), Panel(tuple(L.running(loss, 2.0**k) for k in range(K)))
    run, work = PanelRun(panel, 1, intercept=intercept), np.ones((3, T))
    run.aggregate(np.ascontiguousarray(Z), y, c, work)
    if loss == "logistic":
        out, lost, total, price, _ = naive.log_mixture(Z, y, c)
    else:
        out, lost, total, price, _ = naive.mean_mixture(Z, y, c, loss, intercept)
    if np.abs(out - work[0]).max() > 1e-7 * (1.0 + np.abs(out).max()):
        wrong.append(f"mixtures differ by {np.abs(out - work[0]).max():.3g}")
    if apart(float(run.tally[0].loss), total, 1.0):
        wrong.append(f"loss {run.tally[0].loss:.12g}, naive {total:.12g}")
    if total > lost.min() + price + EQUAL * (1.0 + total):
        wrong.append(f"aggregation is broken: {total:.12g} > {lost.min():.12g} + {price:.12g}")
    found = aggregation_price(run) if c.any() else price
    if abs(found - price) > 1e-7 * (1.0 + abs(price)):
        wrong.append(f"price {found:.12g}, naive {price:.12g}")
    return wrong


def stack(rng, loss):
    """A mixture with its correction, of members that learn or of margins that no learner made, beside the naive one.

    The correction is held against combinations of the members of all kinds, also beyond the margins for which its
    quadratics are below the losses; then the certificate, whose account must be the theory's.
    """
    wrong, real = [], loss == "square"
    X, y, c, intercept = draw(rng, real, far=10.0 ** rng.integers(3, 6))
    made = rng.random() < 0.5
    panel = Panel(
        tuple(L.running(loss, 2.0 ** float(k)) for k in rng.integers(-5, 6, int(rng.integers(1, 5)))), stack=True
    )
    run = PanelRun(panel, X.shape[1], intercept=intercept)
    if made:
        size = np.abs(y).max() if real else 1.0
        Z = rng.choice([-1.0, 1.0], (len(y), len(run.members))) * size * 10.0 ** rng.integers(-1, 2)
        Z = Z + size * rng.normal(size=Z.shape) + np.where(rng.random() < 0.3, y[:, None], 0.0)
        work, a = np.ones((3, len(y))), 0
        while a < len(y):
            b = min(len(y), a + int(rng.integers(1, 20)))
            run.aggregate(np.ascontiguousarray(Z[a:b]), y[a:b], c[a:b], work[:, a:b])
            a = b
        z = work[0]
    else:
        z = played(run, X, y, c, rng)
        alone = [Run(m, X.shape[1], intercept=intercept) for m in panel.members]
        Z = np.stack([played(each, X, y, c, np.random.default_rng(0)) for each in alone], axis=1)
    out, total, prices, lost, D, m, rounds, lam = naive.stacked(Z, y, c, loss, intercept)
    size = np.abs(out).max() + np.abs(y).max() + 1e-300

    def rounded():
        """Margins where the members' and the ends of the range that they are clipped to are rounded in another way."""
        near = Z + 1e-14 * (1.0 + np.abs(Z) + np.abs(y).max()) * rng.uniform(-1.0, 1.0, Z.shape)
        ends = y * (1.0 + 1e-14 * rng.uniform(-1.0, 1.0, len(y))) if real else y
        return naive.stacked(near, ends, c, loss, intercept)[0]

    if any(np.abs(rounded() - out).max() > 1e-9 * size for _ in range(4)):
        if not made and run.facts.rounds:  # rounding decides who leads: nothing can be compared
            found = both_ways(run, Data(X, y, c, 1.0 if intercept else 0.0), wrong)
            wrong += [] if found.verdict is Verdict.HOLDS else [f"{found.verdict.value}: {found.notes}"]
        return wrong
    if np.abs(out - z).max() > 1e-6 * size:
        wrong.append(f"margins differ by {np.abs(out - z).max() / size:.3g}")
    scale = float((c * y**2).sum()) + 1e-300
    if apart(float(run.tally[0].loss), total, scale):
        wrong.append(f"loss {run.tally[0].loss:.12g}, naive {total:.12g}")
    if not rounds:
        return wrong
    if total > lost.min() + prices[0] + prices[1] + EQUAL * (total + lost.min() + scale):
        wrong.append(f"aggregation is broken: {total:.12g} > {lost.min():.12g} + {prices[0] + prices[1]:.12g}")
    half = 1.0 if real else 0.5
    own = sum(c[t] * naive.value(loss, s, y[t]) for t, s, *_ in rounds)
    price = sum(
        c[t] * ((y[t] - s) ** 2 - (y[t] - v) ** 2 / (1.0 + c[t] * q))
        if real
        else 0.5 * (q * G * G - 2 * G * d - C * d * d) / (1 + C * q)
        for t, s, v, q, G, C, d in rounds
    )

    def at(u):
        """What a combination loses, what the quadratics in place of its losses do, and its largest margin."""
        margins = {t: m[t] + float(D[t] @ u) for t, *_ in rounds}
        paid = {t: c[t] * naive.value(loss, margins[t], y[t]) for t in margins}
        if real:
            return sum(paid.values()), sum(paid.values()), 0.0
        quadratics = sum(
            c[t] * naive.value(loss, v, y[t]) + G * (margins[t] - v) + 0.5 * C * (margins[t] - v) ** 2
            for t, _, v, _, G, C, _ in rounds
        )
        return sum(paid.values()), quadratics, max(abs(v) for v in margins.values())

    A, b = np.diag(lam), np.zeros(len(lam))
    for t, _, v, _, G, C, _ in rounds:
        weight, target = (c[t], y[t] - m[t]) if real else (C, 0.0)
        A = A + weight * np.outer(D[t], D[t])
        b = b + (weight * target if real else C * (v - m[t]) - G) * D[t]
    u = naive.solve(A, b)
    least = at(u)[1] + half * float(lam @ u**2)
    if own > least + price + EQUAL * (own + abs(least) + abs(price) + scale):
        wrong.append(f"the correction is broken: {own:.12g} > {least:.12g} + {price:.12g}")
    for w in comparators(rng, np.zeros(len(u)), u):
        paid, quadratics, far = at(w)
        distance = half * float(lam @ w**2)
        if quadratics + distance < least - EQUAL * abs(least) - 1e-9 * scale:
            wrong.append(f"{quadratics + distance:.12g} is below the least, {least:.12g}")
        if far <= QUARTER and paid + distance < least - EQUAL * abs(least) - 1e-9 * scale:
            wrong.append(f"a combination loses {paid + distance:.12g}, less than the best: {least:.12g}")
    told = account_of(run, 1.0)
    if told is None:
        wrong.append("no account")
    elif abs(told.best - max(0.0, least)) > 1e-6 * (abs(least) + 1e-3 * scale):
        wrong.append(f"the best combination {told.best:.12g}, naive {least:.12g}")
    elif abs(told.bound - least - price - prices[1]) > 1e-6 * (abs(told.bound) + 1e-3 * scale):
        wrong.append(f"account {told.bound:.12g}, naive {least + price + prices[1]:.12g}")
    elif total > told.bound + EQUAL * (total + scale):
        wrong.append(f"the account is broken: {total:.12g} > {told.bound:.12g}")
    if made:
        return wrong
    found = both_ways(run, Data(X, y, c, 1.0 if intercept else 0.0), wrong)
    if found.verdict is not Verdict.HOLDS or found.account is None:
        wrong.append(f"{found.verdict.value}: {found.measured:.9g} {found.bound:.9g} {found.notes}")
    elif abs(found.bound - min(k.bound for k in found.members) - prices[0] - prices[1]) > 1e-6 * (found.bound + scale):
        wrong.append(f"bound {found.bound:.9g}, prices {prices}")
    return wrong


def cells(rng, loss):
    """A member on cells beside a naive one over the naive cells, theorem R over these, and the panel's certificate."""
    wrong, real = [], loss == "square"
    X, y, c, intercept = draw(rng, real, 170, far=10.0 ** rng.integers(3, 6))
    eta, other = (float(2.0**k) for k in rng.integers(-5, 6, 2))
    run = PanelRun(Panel((L.running(loss, other), L.running(loss, eta)), cells=1), X.shape[1], intercept=intercept)
    z = played(run, X, y, c, rng)
    wide = np.array(naive_cells.columns_of(naive_cells.expand(X.tolist(), c.tolist())))
    plain = naive.running(with_one(X, intercept), y.tolist(), c.tolist(), loss, other, intercept)[0]
    rows = with_one(wide.reshape(len(y), -1), intercept)
    want, a, base, rounds = naive.running(rows, y.tolist(), c.tolist(), loss, eta, intercept)

    def mixed(Z):
        return naive.log_mixture(Z, y, c) if loss == "logistic" else naive.mean_mixture(Z, y, c, loss, intercept)

    Z = np.column_stack((plain, want))
    out, lost, total, price, _ = mixed(Z)
    size = np.abs(out).max() + np.abs(y).max() + 1e-300
    near = Z + 1e-13 * (1.0 + np.abs(Z) + np.abs(y).max()) * rng.uniform(-1.0, 1.0, Z.shape)
    if np.abs(mixed(near)[0] - out).max() <= 1e-9 * size and np.abs(out - z).max() > 1e-6 * size:
        wrong.append(f"margins differ by {np.abs(out - z).max() / size:.3g}")
    if not run.facts.rounds:
        return wrong
    scale = float((c * y**2).sum()) + 1e-300
    if total > lost.min() + price + EQUAL * (total + lost.min() + scale):
        wrong.append(f"aggregation is broken: {total:.12g} > {lost.min():.12g} + {price:.12g}")
    start = np.zeros(len(rows[0]))
    if intercept:
        start[-1] = base
    for u in comparators(rng, start, np.linalg.lstsq(np.array(rows), y, 1e-9)[0]):
        measured, bound = naive.running_bound(rows, y, c, loss, a, base, rounds, u, intercept)
        if apart(measured, float(run.members[1].facts.loss), scale):
            wrong.append(f"the member on cells lost {run.members[1].facts.loss:.12g}, naive {measured:.12g}")
        if measured > bound * (1 + EQUAL) + 1e-9 * scale:
            wrong.append(f"the theorem is broken over cells: {measured:.12g} > {bound:.12g}")
    found = both_ways(run, Data(X, y, c, 1.0 if intercept else 0.0), wrong)
    promises = [member.bound for member in found.members]
    if found.verdict is not Verdict.HOLDS or not math.isinf(promises[1]):
        wrong.append(f"{found.verdict.value}: {found.measured:.9g} {found.bound:.9g} {promises} {found.notes}")
    return wrong


def lazy(rng, loss, geometry):
    """Lazy steps in the scale-free geometry, or Euclidean implicit ones."""
    wrong = []
    real = loss in ("square", "absolute")
    X, y, c, intercept = draw(rng, real)
    if loss in ("hinge", "perceptron"):
        y = 2.0 * y - 1.0
    fixed = geometry == "euclidean"
    update = "implicit" if fixed or (loss != "perceptron" and rng.random() < 0.5) else "explicit"
    if fixed:  # Euclidean margins of columns of all scales lose digits that these tests ask for
        X = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    eta = float(10.0 ** rng.integers(-2, 2)) if update == "implicit" else 0.3 / X.shape[1] / c.max()
    rows = with_one(X, intercept)
    if loss == "perceptron":
        eta = 1.0
        learner = L.perceptron(geometry)
    else:
        learner = L.descent(loss, geometry, eta, update)
    want, a, rounds = naive.scale_free(rows, y.tolist(), c.tolist(), loss, eta, update, fixed)
    run = Run(learner, X.shape[1], intercept=intercept)
    z = played(run, X, y, c, rng)
    scale = float((c * (np.abs(y) if loss == "absolute" else y**2)).sum()) + 1e-300
    near = min((abs(y[t] * v) for t, v, *_ in rounds), default=1.0)
    if loss == "perceptron" and near < 1e-9 and any(abs(v) > 0.0 for t, v, *_ in rounds if abs(y[t] * v) < 1e-9):
        return wrong  # a margin so near 0 that rounding decides whether it is a mistake

    def bound_at(u):
        if loss == "perceptron":
            mistakes, bound = naive.perceptron_bound(rows, y, c, a, rounds, u)
            return mistakes, min(bound, float(c.sum()))
        measured, bound = naive.lazy_bound(rows, y, c, loss, a, rounds, u)
        last = 0.5 * float(((np.array(u) - run.weights) ** 2).sum()) / eta if fixed else 0.0
        return measured, bound - last

    judge(run, X, y, c, z, np.array(want), intercept, bound_at, np.zeros(run.width), scale, rng, wrong)
    return wrong


def drift(rng, loss):
    """A panel with a fixed share: against the naive one, and its bound against sequences of members."""
    wrong = []
    X, y, c, intercept = draw(rng, loss == "square")
    alpha = float(rng.choice([1e-4, 1e-2, 0.3]))
    etas = 2.0 ** rng.integers(-5, 6, int(rng.integers(2, 6)))
    panel = Panel(tuple(L.running(loss, float(eta)) for eta in etas), drift=alpha)
    run = PanelRun(panel, X.shape[1], intercept=intercept)
    z = played(run, X, y, c, rng)
    alone = [Run(m, X.shape[1], intercept=intercept) for m in panel.members]
    Z = np.stack([played(each, X, y, c, np.random.default_rng(0)) for each in alone], axis=1)
    out, every, total, eta, gap, weighed = naive.shared_mixture(Z, y, c, loss, intercept, alpha)
    size = np.abs(out).max(initial=0.0) + np.abs(y).max(initial=0.0) + 1e-300
    if np.abs(out - z).max() > 1e-6 * size:
        wrong.append(f"mixtures differ by {np.abs(out - z).max() / size:.3g}")
    scale = float((c * y**2).sum()) + 1e-300
    if apart(run.facts.loss, total, scale):
        wrong.append(f"loss {run.facts.loss:.12g}, naive {total:.12g}")
    T, K = every.shape
    if eta < math.inf and T:
        stay, switch = -math.log(1.0 - alpha + alpha / K), math.log(K / alpha)
        least = math.inf
        for _ in range(5):
            path = rng.integers(0, K, T) if rng.random() < 0.3 else np.sort(rng.integers(0, K, T))
            switches = int((np.diff(path) != 0).sum())
            cost = math.log(K) + switches * switch + (T - 1 - switches) * stay
            least = min(least, float(every[np.arange(T), path].sum()) + cost / eta)
        best = every[0].copy()
        for each in every[1:]:
            best = np.minimum(best + stay / eta, best.min() + switch / eta) + each
        promised = best.min() + math.log(K) / eta + gap
        if best.min() + math.log(K) / eta > least + EQUAL * (abs(least) + scale):
            wrong.append("the best sequence is not the best")
        if total > promised + EQUAL * (total + abs(promised) + scale):
            wrong.append(f"tracking is broken: {total:.12g} > {promised:.12g}")
        one = every.sum(axis=0).min() + (math.log(K) + max(0, weighed - 1) * stay) / eta + gap
        if total > one + EQUAL * (total + abs(one) + scale):
            wrong.append(f"one member is broken: {total:.12g} > {one:.12g}")
    if run.facts.rounds:
        found = both_ways(run, Data(X, y, c, 1.0 if intercept else 0.0), wrong)
        if found.verdict is not Verdict.HOLDS:
            wrong.append(f"{found.verdict.value}: {found.measured:.9g} {found.bound:.9g} {found.notes}")
        elif eta < math.inf:
            said = next(float(n.rpartition(" ")[2]) for n in found.notes if "best sequence" in n)
            if abs(said - promised) > 1e-5 * (abs(promised) + 1e-4 * scale):
                wrong.append(f"tracking {said:.9g}, naive {promised:.9g}")
            price = (math.log(K) + max(0, weighed - 1) * stay) / eta + gap
            signed = min(m.bound for m in found.members)
            if abs(found.bound - signed - price) > 1e-6 * (abs(found.bound) + scale):
                wrong.append(f"bound {found.bound:.9g}, member and price {signed + price:.9g}")
    return wrong


def members_of(rng, kind, most):
    """Learners of one loss, of all sorts that take it; `most` is the largest c |x|^2."""
    eta, small = float(10.0 ** rng.integers(-2, 2)), 0.3 / most
    if kind == "mistakes":
        return "perceptron", (L.perceptron(), L.perceptron("scale-free"))
    if kind == "mixed-mistakes":
        return "perceptron", (L.perceptron(), L.running("perceptron", eta), L.descent("perceptron", eta=eta))
    if kind == "widrow-hoff":
        explicit = L.widrow_hoff(small, "explicit")
        steep = L.widrow_hoff(4.0 / most, "explicit")  # its condition may fail, and it then promises nothing
        scaled = L.widrow_hoff(eta, geometry="scale-free")
        return "square", (L.widrow_hoff(eta), L.widrow_hoff(0.1 * eta), explicit, steep, scaled)
    if kind == "square":
        return "square", (L.descent("square", eta=0.5 * small), L.running("square", eta), L.ridge(), L.vaw())
    scaled = L.descent(kind, "scale-free", eta, "implicit")
    falling = L.descent(kind, eta=eta, power=0.5)
    return kind, (
        L.descent(kind, eta=eta),
        L.descent(kind, eta=eta, update="implicit"),
        falling,
        scaled,
        L.running(kind, eta),
    )


def panel(rng, kind):
    """Panels of learners with theorems of all kinds: what is measured, and who may sign."""
    wrong = []
    real = kind in ("widrow-hoff", "square", "absolute")
    X, y, c, intercept = draw(rng, real)
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    if kind in ("mistakes", "mixed-mistakes", "hinge"):
        y = 2.0 * y - 1.0
    loss, able = members_of(rng, kind, max(1e-3, float((c * ((X**2).sum(axis=1) + intercept)).max())))
    able = [able[k] for k in rng.permutation(len(able))[: int(rng.integers(1, len(able) + 1))]]
    run = PanelRun(Panel(tuple(able)), X.shape[1], intercept=intercept)
    z, data = played(run, X, y, c, rng), Data(X, y, c, 1.0 if intercept else 0.0)
    alone = [Run(m, X.shape[1], intercept=intercept) for m in able]
    Z = np.stack([played(each, X, y, c, np.random.default_rng(0)) for each in alone], axis=1)

    def mixed(Z):
        return naive.log_mixture(Z, y, c) if loss == "logistic" else naive.mean_mixture(Z, y, c, loss, intercept)

    out, lost, total, price, _ = mixed(Z)
    size = 1e-6 * (np.abs(out).max() + np.abs(y).max() + 1e-300)
    near = Z + 1e-14 * (1.0 + np.abs(Z) + np.abs(y).max()) * rng.uniform(-1.0, 1.0, Z.shape)
    steady = np.abs(mixed(near)[0] - out).max() <= 1e-3 * size  # or rounding decides who leads, and by how much
    if steady and np.abs(out - z).max() > size:
        wrong.append(f"mixtures differ by {np.abs(out - z).max():.3g}")
    if not run.facts.rounds:
        return wrong
    scale = float((c * y**2).sum()) + 1e-300
    if not steady:
        opening = int(np.flatnonzero(c)[0]) if real and intercept else -1
        price = aggregation_price(run) * (2.0 / run.learner.loss.scale if loss == "square" else 1.0)
        total = sum(c[t] * naive.value(loss, z[t], y[t]) for t in range(len(y)) if t != opening)
    found, own = certify_run(run, data), [certify_run(each, data, seek_best=False) for each in alone]
    counts = not any(o.verdict is Verdict.HOLDS and "mistakes" not in o.quantity for o in own)
    counts = counts and any("mistakes" in o.quantity for o in own)
    if counts:
        total, lost = float(c[y * z <= 0.0].sum()), (c[:, None] * (y[:, None] * Z <= 0.0)).sum(axis=0)
    signed = [o.verdict is Verdict.HOLDS and counts == ("mistakes" in o.quantity) for o in own]
    want = Verdict.HOLDS if any(signed) and not counts else Verdict.UNCHECKABLE
    if found.verdict is not want:
        wrong.append(f"{found.verdict.value}, not {want.value}: {found.measured:.9g} {found.bound:.9g} {found.notes}")
    if apart(found.measured, total, scale) or apart(found.lost, total, scale):
        wrong.append(f"measured {found.measured:.12g}, lost {found.lost:.12g}, naive {total:.12g}")
    for k, member in enumerate(found.members):
        if apart(member.loss, lost[k], scale):
            wrong.append(f"member {k} lost {member.loss:.12g}, naive {lost[k]:.12g}")
        promise = own[k].bound - own[k].measured + lost[k] if signed[k] else math.inf
        if math.isfinite(promise) != math.isfinite(member.bound) or (signed[k] and apart(member.bound, promise, scale)):
            wrong.append(f"member {k} promises {member.bound:.12g}, by itself {promise:.12g}")
    if found.verdict is Verdict.HOLDS:
        promise = min(o.bound - o.measured + lost[k] for k, o in enumerate(own) if signed[k]) + price
        if abs(found.bound - promise) > 1e-7 * (abs(promise) + scale):
            wrong.append(f"bound {found.bound:.12g}, naive {promise:.12g}")
        if total > promise * (1.0 + EQUAL) + EQUAL * scale:
            wrong.append(f"false: {total:.12g} > {promise:.12g}")
        k = min((k for k in range(len(own)) if signed[k]), key=lambda k: found.members[k].bound)
        wrong += paid_share(found, own[k])
    return wrong


def paid_share(found, signer):
    """The paid share is what is left of the bound without the comparator's loss and its distance."""
    told = [note for note in signer.notes if "'s share of the bound: " in note]
    notes = [note.removeprefix("accounting: ") for note in found.notes]
    said = [note for note in notes if " % of the promise is price that the run itself met" in note]
    if not told or not found.bound > 0.0:
        return []
    share = float(told[0].partition("share of the bound: ")[2].partition(";")[0])
    paid = 100.0 * (1.0 - (signer.comparator.loss + share) / found.bound)
    if len(said) != 1 or abs(float(said[0].split()[0]) - paid) > 1e-2 * (abs(paid) + 1.0):
        return [f"{said}, not {paid:.6g} %"]
    return []


def verdicts(rng):
    """A panel whose parts are broken in a way that must not be passed over."""
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    own, kind = adaptive.APPLIED["running"], str(rng.choice(["whole", "sharper", "member", "sequence"]))
    wanted = {"whole": Verdict.HOLDS, "sharper": Verdict.UNCHECKABLE}.get(kind, Verdict.BROKEN)
    run = PanelRun(Panel((L.running("square", 2.0), L.running("square", 8.0)), drift=0.1), 2)
    play([run], X, [y])

    def changed(*args):
        case = own(*args)
        if kind == "sharper":
            return replace(case, sharper=(2.0 * abs(case.sharper[1]) + 1e3, *case.sharper[1:]))
        return (
            replace(case, course=case.course._replace(bound=0.5 * case.course.measured)) if kind == "member" else case
        )

    best = mock.patch("hindsight.certificates.families.panel.best_sequence", return_value=(-1e6, 0.0, 0))
    with mock.patch.dict(adaptive.APPLIED, running=changed), best if kind == "sequence" else nullcontext():
        found = certify_run(run, Data(X, y, None, 1.0))
    return [] if found.verdict is wanted else [f"{kind}: {found.verdict.value}, not {wanted.value}"]


FAMILIES = {
    "running-square": lambda rng: running(rng, "square"),
    "running-logistic": lambda rng: running(rng, "logistic"),
    "running-absolute": lambda rng: running(rng, "absolute"),
    "running-hinge": lambda rng: running(rng, "hinge"),
    "below-all-square": lambda rng: below_all(rng, "square"),
    "below-all-log": lambda rng: below_all(rng, "logistic"),
    "ridge": lambda rng: ridge(rng, False),
    "vaw": lambda rng: ridge(rng, True),
    "windowed-ridge": windowed_ridge,
    "newton": newton,
    "aggregation-log": lambda rng: aggregation(rng, "logistic"),
    "aggregation-square": lambda rng: aggregation(rng, "square"),
    "aggregation-absolute": lambda rng: aggregation(rng, "absolute"),
    "aggregation-hinge": lambda rng: aggregation(rng, "hinge"),
    "mixture-log": lambda rng: mixture(rng, "logistic"),
    "mixture-square": lambda rng: mixture(rng, "square"),
    "mixture-absolute": lambda rng: mixture(rng, "absolute"),
    "stack-log": lambda rng: stack(rng, "logistic"),
    "stack-square": lambda rng: stack(rng, "square"),
    "cells-log": lambda rng: cells(rng, "logistic"),
    "cells-square": lambda rng: cells(rng, "square"),
    "scale-free-square": lambda rng: lazy(rng, "square", "scale-free"),
    "scale-free-logistic": lambda rng: lazy(rng, "logistic", "scale-free"),
    "scale-free-absolute": lambda rng: lazy(rng, "absolute", "scale-free"),
    "scale-free-hinge": lambda rng: lazy(rng, "hinge", "scale-free"),
    "scale-free-perceptron": lambda rng: lazy(rng, "perceptron", "scale-free"),
    "implicit-logistic": lambda rng: lazy(rng, "logistic", "euclidean"),
    "implicit-absolute": lambda rng: lazy(rng, "absolute", "euclidean"),
    "implicit-hinge": lambda rng: lazy(rng, "hinge", "euclidean"),
    "drift-log": lambda rng: drift(rng, "logistic"),
    "drift-square": lambda rng: drift(rng, "square"),
    "panel-mistakes": lambda rng: panel(rng, "mistakes"),
    "panel-mixed-mistakes": lambda rng: panel(rng, "mixed-mistakes"),
    "panel-widrow-hoff": lambda rng: panel(rng, "widrow-hoff"),
    "panel-square": lambda rng: panel(rng, "square"),
    "panel-absolute": lambda rng: panel(rng, "absolute"),
    "panel-log": lambda rng: panel(rng, "logistic"),
    "panel-hinge": lambda rng: panel(rng, "hinge"),
    "panel-verdicts": verdicts,
}


def wrong(family, seed):
    """What is wrong with the stream of a seed, in words."""
    return FAMILIES[family](np.random.default_rng([seed, sum(map(ord, family))]))
