"""Everything that must be true of a stream."""

import math

import numpy as np

import naive
from hindsight.certificates import theorems
from hindsight.certificates.theorems import Verdict
from hindsight.online.run import Run, play
from hindsight.serve.certificate import begins_anywhere
from truth.audit import audit
from truth.lies import above, gaps, lies, refusals
from truth.oracle import MET, bounds, open_form
from truth.outcome import EQUAL, Outcome
from truth.seen import Seen, at_the_edge, compare
from truth.streams import LIPSCHITZ, Stream, draw_set


def check(s: Stream, rng: np.random.Generator, certify: bool = True) -> Outcome:
    """Everything that must be true of a stream."""
    out = Outcome()
    run, margins = s.run(), []
    for _ in range(s.passes):
        z = np.empty((len(s.y), 1))
        play([run], s.stored, [s.y], s.weight, z)
        margins.append(z[:, 0])
    seen = compare(s, run, np.concatenate(margins), out)
    start = np.array(seen.played.start)
    us = [start, 0.5 * (start + run.weights), draw_set(rng, s.width, s.geometry, s.radius), *s.hints]
    if s.planted is not None:
        us = [s.planted]
    for u in us:
        try:
            forms = bounds(seen, u)
            for name, measured, bound in forms:
                noise = seen.drift(u) / EQUAL if "met" in name else 0.0
                out.under(name, measured, bound, seen.size + noise)
            if s.family.split()[0] != "implicit":
                pure(seen, run, u, forms[-1][1:], out)
        except ValueError as error:
            out.say("outside its set", str(error))
    if certify:
        if rng.random() < 0.25:
            refusals(seen, run, rng, out)
        if s.family.split()[0] in ("1", "2", "1'") and rng.random() < 0.25:
            gaps(seen, run, rng, out)
        c = audit(seen, run, None, out)
        if c is not None and c.verdict is Verdict.HOLDS and rng.random() < 0.25:
            lies(seen, run, c.comparator.u, rng, out)
            above(seen, run, c.comparator.u, out)
        if not run.learner.rate.is_constant() and begins_anywhere(run.learner):
            out.say("false stretch", "at changing rates a stretch of rows has a bound of its own")
        if c is not None and c.theorem in MET and c.verdict is Verdict.HOLDS and not at_the_edge(seen, 5e-7):
            mine = open_form(seen, c.theorem, c.comparator.u, least=True)
            for u in us:
                other = open_form(seen, c.theorem, u)
                if not other >= mine - c.comparator.gap - EQUAL * (abs(mine) + seen.size) - seen.drift(u):
                    out.say("wrong gap", f"{other!r} is below {mine!r} by more than the gap {c.comparator.gap!r}")
        if s.planted is None:
            audit(seen, run, us[rng.integers(len(us))], out)
    return out


def pure(seen: Seen, run: Run, u: np.ndarray, want: tuple[float, float], out: Outcome) -> None:
    """The theorems' own functions, fed with the facts of the run, against the measured and the bound of `naive`."""
    s, facts = seen.stream, run.facts
    z = np.tile(s.full @ u, s.passes)
    y, c = np.tile(s.y, s.passes), np.tile(s.c, s.passes)
    divergence = naive.divergence(u.tolist(), seen.played.start, **s.space)
    eta = seen.at_scale().rates[0]
    own = float((c * (z - y) ** 2).sum())
    x2 = facts.weight_x2 if s.geometry == "euclidean" else s.radius**2 * facts.weight_xinf
    wrong = y * np.array(seen.played.margins) <= 0.0
    match s.family.split()[0]:
        case "1" | "3":
            pair = facts.square, theorems.widrow_hoff(eta, x2, own, 2.0 * divergence)
        case "2":
            pair = facts.square, theorems.implicit(eta, x2, own, 2.0 * divergence)
        case "4":
            rate = seen.played.rates[0]
            loss = math.fsum(w * naive.loss(s.rule, a, b) for w, a, b in zip(c, z, y, strict=True))
            pair = facts.loss, theorems.convex(rate, loss, divergence, facts.gradient)
        case "5":
            hinge = float((c * np.maximum(0.0, 1.0 - y * z))[wrong].sum())
            start = np.array(seen.played.start)
            bound = theorems.perceptron(
                hinge, float(np.linalg.norm(u)), facts.mistake_norm, float(start @ start), float(u @ start)
            )
            pair = facts.mistake_weight, bound
        case "6":
            top = s.radius * facts.xinf
            hinge = float((c * np.maximum(0.0, top - y * z))[wrong].sum())
            pair = facts.mistake_weight, theorems.winnow(eta, top, facts.weight_max, divergence, top, hinge)
        case "11" if s.planted is not None:
            lipschitz = LIPSCHITZ.get(s.rule, 1.0)
            margins = np.array(seen.played.margins)
            error = np.array([naive.mean(s.rule, a) for a in margins]) - y
            off = np.abs(np.array([naive.mean(s.rule, a) for a in z]) - y)
            added = theorems.not_planted(eta, c, lipschitz, error, margins - z, off).sum()
            pair = facts.square, theorems.glm_tron(eta, x2, lipschitz, 2.0 * divergence + float(added))
            if any(abs(naive.mean(s.rule, a) - b) > 1e-12 for a, b, w in zip(z, y, c, strict=True) if w > 0.0):
                pair = facts.square, math.inf
        case "11":
            loss = math.fsum(w * naive.loss(s.rule, a, b) for w, a, b in zip(c, z, y, strict=True))
            pair = facts.loss, theorems.convex(eta, loss, divergence, facts.gradient)
        case "1'":  # the facts hold half the square loss at the rate, or all of it at half the rate
            pair = 2.0 * facts.rate_loss, want[1]
        case "4'":
            pair = facts.rate_loss, want[1]
    out.near("facts", "measured", pair[0], want[0], seen.size)
    if math.isfinite(want[1]) and want[1] > 0.0:
        beyond = theorems.verdict(want[1] * (1 + 1e-6) + 1e-6 * seen.size, want[1], seen.size)
        if beyond != (Verdict.BROKEN, False):
            out.say("verdict", f"{want[1] * (1 + 1e-6)!r} > {want[1]!r} is {beyond}")
    if math.isfinite(want[1]) and math.isfinite(pair[1]):
        if not at_the_edge(seen, 5e-7):
            out.near("wrong bound", "theorem", pair[1], want[1], seen.noise(u))
    elif math.isfinite(want[1]) != math.isfinite(pair[1]) and not at_the_edge(seen):
        out.say("wrong bound", f"theorem gives {pair[1]!r}, naive {want[1]!r}")
