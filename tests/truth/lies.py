"""What a certificate must not believe: steps that are too long, other rows, other runs, points outside the set."""

import math
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from hindsight.certificates import certify as certifying
from hindsight.certificates import judge as judging
from hindsight.certificates.applied import AppliedTheorem
from hindsight.certificates.audit import Rounds
from hindsight.certificates.best import comparator
from hindsight.certificates.best.newton import Inverse
from hindsight.certificates.certify import certify_run
from hindsight.certificates.judge import band
from hindsight.certificates.theorems import Verdict
from hindsight.errors import MismatchError
from hindsight.kernels import Euclidean, Square
from hindsight.online import learners as L
from hindsight.online.run import Run, play
from hindsight.rows.data import Data
from truth.audit import REPLAY, THEOREM_OF
from truth.outcome import EQUAL, Outcome
from truth.seen import Seen
from truth.streams import Stream


def lies(seen: Seen, run: Run, u: np.ndarray, rng: np.random.Generator, out: Outcome) -> None:
    """A step that adds more to the potential than the lemma lets it is noticed, however little more."""
    s, told = seen.stream, []

    def lie(run: Run, data: Data) -> Rounds:
        rounds = REPLAY(run, data)
        case = THEOREM_OF(run, s.planted)(run, data, rounds, None if s.planted is not None else u, 0.01)
        k = int(rng.integers(rounds.z.size))
        lemma = case.lemma
        more = (
            float(lemma.allowed[k] - lemma.change[k]) + 1e-6 * float(lemma.size()[k]) + 8.0 * float(rounds.rounding[k])
        )
        if s.geometry != "euclidean":
            more += 1e-6
        told.append(more)
        change = rounds.change.copy()
        change[k] += more
        return replace(rounds, change=change)

    with mock.patch.object(certifying, "replay", lie):
        c = certify_run(run, s.data(), u=None if s.planted is not None else u, planted=s.planted)
    if c.verdict is Verdict.HOLDS and told[0] > 0.0:
        out.say("lie believed", f"{told[0]!r} more in one round: {c.notes}")


def above(seen: Seen, run: Run, u: np.ndarray, out: Outcome) -> None:
    """What is measured above the bound, by more than rounding, breaks it, however little more."""
    s = seen.stream

    def applied(run: Run, w: Any = None) -> Any:
        def apply(run: Run, data: Data, rounds: Rounds, *more: Any) -> AppliedTheorem:
            case = judging.smallest(THEOREM_OF(run, w)(run, data, rounds, *more))
            scale, rounding = band(run, data, rounds, case)
            more = case.bound - case.measured + 3.0 * EQUAL * (abs(case.bound) + scale) + 2.0 * rounding
            grown = case.course.measured + more * case.course.rounds / case.course.rounds[-1]
            return replace(case, course=case.course._replace(measured=grown), met=None)

        return apply

    with mock.patch.object(certifying, "applied_theorem", applied):
        c = certify_run(run, s.data(), u=None if s.planted is not None else u, planted=s.planted, seek_best=False)
    if c.verdict is not Verdict.BROKEN and c.measured > c.bound:
        out.say("lie believed", f"{c.verdict.value}: {c.measured!r} above {c.bound!r}")


def gaps(seen: Seen, run: Run, rng: np.random.Generator, out: Outcome) -> None:
    """Gaps of the square loss against the minimum that another solver finds."""
    s = seen.stream
    X, y, c = np.tile(s.full, (s.passes, 1)), np.tile(s.y, s.passes), np.tile(s.c, s.passes)
    kappa, first = 2.0 / seen.at_scale().rates[0], np.array(seen.played.start)
    if not np.isfinite(kappa) or s.family == "1'":
        kappa = 2.0
    best, least, objective, A, b = ridge(X, y, c, kappa, first)
    u = best + rng.normal(size=s.width) * (np.abs(best).max() + float(np.abs(b).max()) / float(np.abs(A).max()))
    g = 2.0 * A.T @ (A @ u - b)
    hessian = Inverse(2.0 / kappa * (X.T * c) @ X + np.eye(s.width))
    said = comparator.gap_above(g / np.sqrt(kappa), hessian, True)
    if not objective(u) - least <= said * (1.0 + 1e-6) + EQUAL * least:
        out.say("wrong gap", f"ridge: {objective(u) - least!r} is missing, {said!r} is said")
    a = s.c * rng.choice([1.0, 1.19], len(s.c))
    with mock.patch.multiple(comparator, MANY=1, REFINED=1):
        near = comparator.best(s.data(), Square(2.0), Euclidean(1.0), kappa, a, first)
    _, missing, objective, *_ = ridge(s.full, s.y, a, kappa, first)
    if not objective(near.u) - missing <= near.gap * (1.0 + 1e-6) + EQUAL * missing:
        out.say("wrong gap", f"moments of other weights: {objective(near.u) - missing!r} is missing, {near.gap!r} said")
    if s.family == "2":
        with mock.patch.object(comparator, "GRAM", 0):
            found = certify_run(run, s.data(), tol=0.5)
        grow = 1.0 + 2.0 / kappa * float((s.c * s.dual_squares()).max())
        if not found.bound - grow * least <= found.comparator.gap + EQUAL * (found.bound + seen.size):
            out.say(
                "wrong gap", f"implicit: {found.bound - grow * least!r} is missing, {found.comparator.gap!r} is said"
            )


def ridge(X: np.ndarray, y: np.ndarray, c: np.ndarray, kappa: float, first: np.ndarray) -> tuple[Any, ...]:
    """The u of the least Sigma c (u.x - y)^2 + kappa/2 |u - w|^2, that, a function that gives it, and what u solves."""
    root = np.sqrt(np.concatenate([c, np.full(first.size, 0.5 * kappa)]))
    A, b = np.vstack([X, np.eye(first.size)]) * root[:, None], np.concatenate([y, first]) * root

    def objective(u: np.ndarray) -> float:
        return float(((A @ u - b) ** 2).sum())

    best = np.linalg.lstsq(A, b, rcond=None)[0]
    return best, objective(best), objective, A, b


def refusals(seen: Seen, run: Run, rng: np.random.Generator, out: Outcome) -> None:
    """Other rows, a run that ended elsewhere, and a comparator outside the set are refused."""
    s = seen.stream
    kept = run.snapshot()
    for what in ("weights", "loss"):
        w, loss, reach = run.weights, float(run.tally[0].loss), float(run.progress[0].reach)
        if what == "weights":
            size = max(reach, float(np.abs(w).max())) if s.geometry == "euclidean" else 1.0
            run.state.theta[0] += 1e-6 * size
            size = size if s.geometry == "euclidean" else s.radius * (1.0 + 1e9 * seen.moved)
            told = float(np.abs(run.weights - w).max()) > 1e-8 * size
        else:
            run.tally[0].loss *= 1.0 + 1e-6
            told = abs(loss) > 1e-5
        try:
            certify_run(run, s.data(), u=seen.played.start if s.planted is None else None, planted=s.planted)
        except MismatchError:
            pass
        else:
            if told:
                out.say("other run taken", f"{what} off by a millionth were not noticed")
        run.restore(kept)
    for what, other in other_rows(s, rng):
        try:
            certify_run(run, other.data(), u=seen.played.start, planted=s.planted)
        except MismatchError:
            continue
        (mine, weights), (theirs, elsewhere) = trace(s, run), trace(other, run)
        size = max(float(run.progress[0].reach), float(np.abs(weights).max()), s.radius * (1.0 + 1e9 * seen.moved))
        apart = float(np.abs(weights - elsewhere).max()) > 1e-7 * size
        if apart or not np.allclose(mine, theirs, rtol=1e-7, atol=1e-10):
            out.say("other rows taken", f"{what} was not noticed")
    if s.family.startswith("5"):
        idle_rows(out)
    if s.geometry != "euclidean":
        far = np.zeros(s.width)
        far[0] = 1.001 * s.radius
        for u in (far, -far):
            try:
                certify_run(run, s.data(), u=u)
            except MismatchError as error:
                out.say("replay mismatch", str(error))
            except ValueError:
                continue
            else:
                out.say("false HOLDS", f"u = {u} lies outside the {s.geometry} set of radius {s.radius}")


def idle_rows(out: Outcome) -> None:
    """Rows on which the perceptron takes no step: of all that is compared, one sum alone tells them apart."""
    near, turned, long = (1.0, 1.0, 0.0), (1.2, math.sqrt(2.0 - 1.2**2), 0.0), (2.0, 0.0, 0.5)
    X = np.array([(1.0, 0.0, 0.0), (2.0, 0.0, 0.0), near, turned, long, (3.0, 0.0, 1.0)])
    run, y = Run(L.perceptron(), 3, intercept=False), np.ones(len(X))
    play([run], X, [y])
    for what, t, row in (
        ("a margin", 2, turned),
        ("a norm", 1, long),
        ("the order of margins", [2, 3], X[[3, 2]]),
        ("the order of norms", [1, 4], X[[4, 1]]),
    ):
        other = X.copy()
        other[t] = row
        try:
            certify_run(run, Data(other, y, None, 0.0))
        except MismatchError:
            continue
        out.say("other rows taken", f"{what} was not noticed")


def trace(s: Stream, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """What a run over a stream must be known by: its margins, norms, targets and weights, each round by its number."""
    again, sums, t = Run(run.learner, run.features, intercept=run.intercept, start=run.start), np.zeros(4), 1.0
    for _ in range(s.passes):
        z = np.empty((len(s.y), 1))
        play([again], s.stored, [s.y], s.weight, z)
        on = s.c > 0.0
        ts, x = t + np.arange(on.sum()), s.X[on]
        sums += ts @ z[on, 0] ** 2, ts @ ((x * x).sum(axis=1) + s.bias**2), s.c[on] @ s.y[on] ** 2, s.c[on].sum()
        t += on.sum()
    return sums, again.weights


def other_rows(s: Stream, rng: np.random.Generator) -> list[tuple[str, Stream]]:
    """The stream with something changed that its weights may not show: a value, two signs, the order."""
    on = np.flatnonzero(s.c > 0.0)
    t, j = int(rng.choice(on)), int(rng.integers(s.X.shape[1]))
    X, y, weight = s.X.copy(), s.y.copy(), s.c.copy()
    X[t, j] *= 1.01
    y[t] = -y[t] if set(np.unique(s.y)) <= {-1.0, 1.0} else 0.99 * y[t]
    weight[t] *= 1.01
    found = [
        (f"a value of row {t}", replace(s, X=X)),
        (f"the target of row {t}", replace(s, y=y)),
        (f"the weight of row {t}", replace(s, weight=weight)),
    ]
    unmet = np.argwhere((np.cumsum(s.X != 0.0, axis=0) == 0) & (s.c > 0.0)[:, None])  # no step has touched them yet
    if len(unmet):
        X, (k, i) = s.X.copy(), unmet[int(rng.integers(len(unmet)))]
        X[k, i] = np.abs(s.X).max()
        found.append((f"a value of row {k} in a column that no row before had", replace(s, X=X)))
    if np.count_nonzero(s.X[t]) > 1:
        X, two = s.X.copy(), np.flatnonzero(s.X[t])[:2]
        X[t, two] *= -1.0
        found.append((f"two signs of row {t}", replace(s, X=X)))
    k = int(rng.choice(on))
    if (s.X[t] != s.X[k]).any():
        order = np.arange(len(s.X))
        order[[t, k]] = k, t
        found.append((f"the exchange of rows {t} and {k}", replace(s, X=s.X[order], y=s.y[order], weight=s.c[order])))
    return found
