"""Every number of a certificate against the oracle."""

import math
import sys
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np

import naive
from hindsight.certificates import certify as certifying
from hindsight.certificates import theorems
from hindsight.certificates.applied import AppliedTheorem
from hindsight.certificates.best import fewest
from hindsight.certificates.best import mistakes as mistake_comparators
from hindsight.certificates.certificate import MISTAKES, WEIGHTED, Certificate
from hindsight.certificates.certify import certify_run
from hindsight.certificates.theorems import Verdict
from hindsight.errors import MismatchError
from hindsight.kernels.losses import Square
from hindsight.online.margins import each_loss, each_mean
from hindsight.online.run import Run
from truth.oracle import MET, ONCE, PROXIMAL, ROUGH, allowed, entropy_to, expected, kinks, loss_noise, roughly
from truth.outcome import EPS, EQUAL, Outcome
from truth.seen import Seen, at_the_edge
from truth.streams import LIPSCHITZ


def audit(seen: Seen, run: Run, u: np.ndarray | None, out: Outcome) -> Certificate | None:
    """Certify the run, at the comparator found (u None) or a given one, and look at every number of the certificate."""
    s = seen.stream
    found: list[Any] = []
    cases: list[AppliedTheorem] = []

    def spy(*args: Any, **options: Any) -> Any:
        found.append(WINNOW_COMPARATOR(*args, **options))
        return found[-1]

    def applied(run: Run, w: Any = None) -> Any:
        def apply(*args: Any) -> AppliedTheorem:
            cases.append(THEOREM_OF(run, w)(*args))
            return cases[-1]

        return apply

    try:
        with (
            mock.patch.object(mistake_comparators, "winnow", spy),
            mock.patch.object(certifying, "applied_theorem", applied),
            mock.patch.multiple(fewest, EXACT=12, EPOCHS=3),  # long searches are for the family "best-fixed"
        ):
            c = certify_run(run, s.data(), u=u, planted=s.planted)
    except MismatchError as error:
        out.say("replay mismatch", str(error))
        return None
    except ValueError as error:
        out.say("refused", str(error))
        return None
    except (ArithmeticError, RuntimeWarning) as error:
        out.say("crashed", repr(error))
        return None
    out.verdicts.append(c.verdict)
    delta, case = found[0].margin if found else None, cases[0]
    noise = seen.noise(c.comparator.u) + (seen.drift(c.comparator.u) / EQUAL if c.theorem in (*MET, *PROXIMAL) else 0.0)
    if c.theorem in PROXIMAL:
        noise += kinks(seen, c.comparator.u) / EQUAL
    try:
        measured, bound = expected(seen, c.theorem, c.comparator.u, delta)
        if case.met is not None and case.applies:
            other = expected(seen, case.theorem, c.comparator.u, delta)
            out.near("wrong measure", f"{case.theorem.name}, measured", case.measured, other[0], seen.size)
            if not at_the_edge(seen, 5e-7):
                size = noise if case.theorem in PROXIMAL else seen.noise(c.comparator.u)
                out.near("wrong bound", case.theorem.name, case.bound, other[1], size)
            if c.verdict is Verdict.HOLDS and c.quantity == case.quantity and not c.bound <= case.bound:
                out.say("not the smallest", f"{c.theorem.name}: {c.bound!r}, {case.theorem.name}: {case.bound!r}")
    except ValueError as error:
        out.say("outside its set", f"comparator {c.comparator.u}: {error}")
        return None
    out.near("wrong measure", f"{c.theorem.name}, measured", c.measured, measured, seen.size)
    if c.verdict is Verdict.BROKEN:
        what = "lemma broken" if c.measured <= c.bound else "BROKEN"
        out.say(what, f"{c.theorem.name}: {c.measured!r}, {c.bound!r}; {c.notes}")
    elif c.verdict is Verdict.HOLDS:
        if math.isinf(bound) and not at_the_edge(seen):
            out.say("false HOLDS", f"{c.theorem.name}: {c.measured!r} <= {c.bound!r}, but no bound holds")
        else:
            if not at_the_edge(seen, 5e-7):
                if c.theorem in ROUGH:  # normalisers are only known to a rounding
                    bound = min(c.bound, max(bound, roughly(seen, c.theorem, c.comparator.u, delta)))
                out.near("wrong bound", c.theorem.name, c.bound, bound, noise)
            out.under(c.theorem.name, c.measured, c.bound, seen.size)
        out.near("wrong slack", "slack", c.slack, c.bound - c.measured)
        if not all(need.met for need in c.assumptions):
            out.say("false HOLDS", f"{c.assumptions}")
    elif c.verdict is Verdict.VOID:
        lost = [need for need in c.assumptions if need.met is False and "rounding" in need.text]
        if math.isfinite(bound) and not at_the_edge(seen) and not (lost and seen.moved > 2e-4):
            out.say("false VOID", f"{c.theorem.name}: naive promises {bound!r}; {c.assumptions}")
        if not math.isnan(c.bound):
            out.say("VOID with a bound", f"{c.bound!r}")
    else:
        out.say("no theorem", f"{c.verdict} for {s.family}")
    if c.verdict is Verdict.HOLDS:
        per_round(seen, c, case, out)
    if u is not None and not np.array_equal(c.comparator.u, u):
        out.say("other rival", f"{c.comparator.u} instead of {u}")
    if case.theorem in (theorems.WIDROW_HOFF, theorems.EG) and c.best_eta > 0.0 and case.applies:
        best_rate(seen, c, case.bound, out)
    path(seen, run, c, out)
    in_hindsight(seen, run, c, out)
    separable(seen, c, out)
    return c


def best_rate(seen: Seen, c: Certificate, classical: float, out: Outcome) -> None:
    """No rate makes the classical bound of this rival smaller than the one the certificate names (or its limit)."""
    s, u = seen.stream, c.comparator.u.tolist()
    scale = 2.0 if s.rule == "square" else 1.0
    x2 = float((s.c * s.dual_squares()).max())
    distance = 2.0 * naive.divergence(u, seen.played.start, **s.space)

    def bound(times: float) -> float:
        eta = times * scale * c.best_eta
        return c.comparator.loss / (1.0 - eta * x2) + distance / eta if eta * x2 < 1.0 else math.inf

    least, band = bound(1.0 - 1e-10), EQUAL * (classical + seen.size)
    if any(least > bound(times) + band for times in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0)) or least > classical + band:
        out.say("best eta", f"{c.best_eta!r} gives {least!r}, eta itself {classical!r}")


def per_round(seen: Seen, c: Certificate, case: AppliedTheorem, out: Outcome) -> None:
    """The lemma's right side against the proofs, and its left side against the weights of the slow player."""
    s, u = seen.stream, c.comparator.u.tolist()
    assert case.lemma is not None
    sizes, rounds = case.lemma.size(), list(naive.rounds(seen.X, seen.y, seen.played, **seen.data))
    if not at_the_edge(seen, 5e-7):
        near = kinks(seen, c.comparator.u) if case.theorem in PROXIMAL else 0.0
        for t, (a, b, r) in enumerate(
            zip(case.lemma.allowed.tolist(), allowed(seen, c, case.theorem), rounds, strict=True)
        ):
            noise = loss_noise(s, r, u) + r.eta * near
            out.near("wrong lemma", f"allowed in round {t}", a, b, float(sizes[t]) + noise / EQUAL)
    if not seen.weights or s.geometry == "balanced":  # near its surface the ball tells little of the exponents
        return
    factor = 1.0 if s.geometry == "simplex" or case.theorem in ONCE else 2.0
    far = [factor * naive.divergence(u, w, **s.space) for w in seen.weights]
    last = 4.0 * (EPS + seen.apart) * math.sqrt(max(naive.square(w) for w in seen.weights))  # their last digit
    for t, (a, b) in enumerate(pairwise(far)):
        tiny = s.geometry == "simplex" and min(*seen.weights[t], *seen.weights[t + 1]) < sys.float_info.min
        if math.isfinite(a) and math.isfinite(b) and not tiny:  # such weights have few digits
            noise = 1e-14 + 4.0 * seen.apart if s.geometry == "simplex" else last * (last + math.sqrt(max(a, b)))
            if s.rule in LIPSCHITZ:  # slopes are rounded in units of 1
                r = rounds[t]
                noise += 64.0 * EPS * r.eta * r.c * (abs(r.z) + abs(naive.dot(u, r.x)))
            size = max(a, b, float(sizes[t])) + noise / EQUAL
            out.near("wrong change", f"of the potential in round {t}", float(case.lemma.change[t]), b - a, size)


THEOREM_OF, REPLAY = certifying.applied_theorem, certifying.replay


WINNOW_COMPARATOR = mistake_comparators.winnow


def in_hindsight(seen: Seen, run: Run, c: Certificate, out: Outcome) -> None:
    """The best fixed predictor loses what is said, and neither the comparator nor the run's weights lose less."""
    s, best = seen.stream, c.best
    assert best is not None
    data = s.data()
    X, y, weight = data.matrix(), data.y, s.passes * data.c

    def own(u: np.ndarray) -> float:
        z = X @ u
        if c.quantity in (MISTAKES, WEIGHTED):
            return float(weight[y * z <= 0.0].sum())
        if c.theorem is theorems.GLM_TRON:
            return float(weight @ (each_mean(run.learner.loss, z) - y) ** 2)
        loss = Square(2.0) if c.quantity.startswith("squared error") else run.learner.loss
        return float(weight @ each_loss(loss, z, y))

    counts = c.quantity in (MISTAKES, WEIGHTED)
    noise = EQUAL * (seen.size + float(weight.sum())) + EQUAL * float(weight @ (np.abs(X) @ np.abs(best.u)))
    if not counts and not abs(own(best.u) - best.loss) <= noise + 1e-9 * abs(best.loss):
        out.say("wrong best", f"it loses {own(best.u)!r}, not {best.loss!r}")
    inside = [c.comparator.u] if c.theorem is not theorems.GLM_TRON else []
    for u in [*inside, run.weights]:
        reach = math.inf if best.reach == math.inf else best.reach / (1.0 + float(np.abs(X).max()))
        if np.isfinite(u).all() and float(np.linalg.norm(u)) <= reach and own(u) < best.lower - noise:
            out.say("not the best", f"{own(u)!r} is below {best.loss!r} - {best.gap!r} ({best.found})")
    if math.isfinite(c.lost) and math.isfinite(best.loss):
        out.near("wrong regret", "regret", c.regret, c.lost - best.loss, seen.size)
    if (c.worth is None) != (c.verdict is not Verdict.HOLDS):
        out.say("worth", f"{c.worth} of {c.verdict}")


def path(seen: Seen, run: Run, c: Certificate, out: Outcome) -> None:
    """Checkpoints grow, end in the totals, and their potential ends in the distance of the comparator from w_{T+1}."""
    s, last = seen.stream, c.path[-1]
    if any(a.rounds >= b.rounds for a, b in pairwise(c.path)) or last.rounds != c.rounds or c.rounds != run.rounds:
        out.say("path", f"rounds {[p.rounds for p in c.path]} of {run.rounds}")
    if s.family != "11 matching":
        for a, b in pairwise(c.path):
            falls = ((getattr(a, k), getattr(b, k)) for k in ("measured", "comparator", "bound"))
            if any(p > q + EQUAL * (abs(q) + seen.size) for p, q in falls):
                out.say("path", f"{a} then {b}")
    out.near("path", "last measured", last.measured, c.measured, seen.size)
    out.near("path", "last of the comparator", last.comparator, c.comparator.loss, seen.size)
    if c.verdict is Verdict.HOLDS:
        out.near("path", "last bound", last.bound, c.bound, seen.size)
        for k, p in enumerate(c.path):
            if not p.measured <= p.bound + EQUAL * (abs(p.bound) + seen.size):
                out.say("bound violated", f"at checkpoint {k}: {p}")
    w, first = run.weights, run.first
    c_t = np.tile(s.c, s.passes)[np.tile(s.c > 0.0, s.passes)]
    tops = np.tile(np.sqrt(s.dual_squares()), s.passes)[np.tile(s.c > 0.0, s.passes)]
    moves = np.array(seen.played.rates) * c_t * np.abs(seen.played.slopes) * tops
    if s.geometry == "euclidean":
        distance, size = (
            float(((c.comparator.u - w) ** 2).sum()),
            float(first @ first + w @ w + c.comparator.u @ c.comparator.u),
        )
        size = max(size, 1e-6 * moves.size * float((moves**2).sum()))  # w may have been far away, and back
        if c.theorem in ONCE:
            distance *= 0.5
    else:
        # The changes add up to the difference of two logarithms of masses, each tracked through as many roundings as
        # there are coordinates before it is summed anew, of exponentials with an error of four.
        distance, size = entropy_to(c.comparator.u, run, s), 1e-6 * moves.size * (1.0 + float(moves.sum()))
        size += 2.0 * EPS * (s.width + 4.0) / EQUAL
    if math.isfinite(distance) or math.isfinite(last.potential):
        size = max(size, *(abs(p.potential) for p in c.path))
        out.near("potential", f"potential at the end ({c.verdict.value})", last.potential, distance, size)


def separable(seen: Seen, c: Certificate, out: Outcome) -> None:
    """What the hard margin promises is max c |x|^2 B^2, and at least the weight of the mistakes."""
    s = seen.stream
    for note in c.notes:
        if note.startswith("separable: B = ") and "²" in note:
            norm, most = float(note.split()[3].rstrip(",")), float(note.rpartition(" ")[2])
            largest = float((s.c * np.square(s.full).sum(axis=1)).max())
            if not abs(most - largest * norm**2) <= 3e-5 * most:
                out.say("wrong bound", f"{note}: max c|x|² = {largest!r}")
            if not c.measured <= most * (1.0 + 1e-5):
                out.say("bound violated", f"{note}: {c.measured!r}")
