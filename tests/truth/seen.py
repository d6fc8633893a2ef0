"""A run of the package beside that of the slow player, and how far rounding may take them apart."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

import naive
from hindsight.online.run import Run
from truth.outcome import EPS, EQUAL, Outcome
from truth.streams import LIPSCHITZ, Stream


def _remembered(double: Callable[..., list[float]]) -> Callable[..., list[float]]:
    """`naive.double` with a memory: its bisection is slow, and the same few u come again and again."""
    known = lru_cache(maxsize=64)(lambda w, radius: double(w, radius))
    return lambda w, radius: list(known(tuple(w), radius))


naive.double = _remembered(naive.double)


@dataclass(frozen=True)
class Seen:
    """A run in the words of `naive`: rows of all passes, and margins with the rates and slopes that belong to them."""

    stream: Stream
    X: list[list[float]]
    y: list[float]
    weight: list[float] | None
    played: naive.Played
    weights: list[list[float]]  # of the slow player, w_1 .. w_{T+1}; empty where a tie ended the comparison
    size: float  # of the sums: Sigma c y^2, and for links Sigma c |y z|
    moved: float  # by how much rounding may have moved the logarithm of a multiplicative weight, in either player
    apart: float  # the same, with what the steps after it made of that

    @property
    def data(self) -> dict[str, Any]:
        return {"weight": self.weight, "bias": self.stream.bias}

    def noise(self, u: np.ndarray) -> float:
        """`size`, and what a bound is off by since RE(u || w_1) is only known to eps sqrt(RE)."""
        s = self.stream
        if s.planted is not None:
            return self.size + self.hidden(u) / EQUAL
        if s.geometry == "euclidean":
            return self.size
        divergence = naive.divergence(u.tolist(), self.played.start, **s.space)
        return self.size + 2e-15 * (math.sqrt(max(0.0, divergence)) + 1e-16) / min(1.0, *self.at_scale().rates) / EQUAL

    def drift(self, u: np.ndarray) -> float:
        """What a bound with distances met is off by: each step is rounded, in units of the weights or exponents.

        It is a sum over the rounds, in each of which 8 eps of the terms of its lemma are added so that rounding cannot
        make it too small; a term is at most twice what is rounded in it.
        """
        s, rates = self.stream, self.at_scale().rates
        rounds = naive.rounds(self.X, self.y, self.played, **self.data)
        added = 16.0 * EPS * math.fsum(size_of_round(s, r, u.tolist()) / r.eta for r in rounds)
        if s.geometry == "euclidean":
            far = max(math.sqrt(naive.square(w)) for w in self.duals) + math.sqrt(naive.square(u))
            return added + 128.0 * EPS * (len(rates) + s.width) * far**2 / min(rates)
        each = 32.0 * EPS * (s.width + 8.0)
        return added + (8.0 * self.moved + len(rates) * each) / min(rates)

    @cached_property
    def duals(self) -> list[list[float]]:
        """theta_1 .. theta_{T+1}, by the slopes of the run."""
        return naive.duals(self.X, self.y, self.played, **self.data, **self.stream.space)

    def hidden(self, u: np.ndarray) -> float:
        """What a bound for planted rows is off by, since u(w*.x) is only known to a rounding."""
        s = self.stream
        rounds = list(naive.rounds(self.X, self.y, self.played, **self.data))
        eta, lip = rounds[0].eta, LIPSCHITZ.get(s.rule, 1.0)
        below = eta * (2.0 / lip - eta * max(r.c * naive.square(r.x) for r in rounds))
        added = 0.0
        for r in rounds:
            z = naive.dot(u, r.x)
            off = 1e-14 * (abs(naive.mean(s.rule, z)) + lip * math.sqrt(naive.square(u) * naive.square(r.x)))
            added += 2.0 * eta * r.c * off * (abs(r.z - z) + (2.0 * abs(naive.mean(s.rule, r.z) - r.y) + 1e-12) / lip)
        return added / below if below > 0.0 else 0.0

    def at_scale(self) -> naive.Played:
        """The rates at which Widrow-Hoff or EG takes the same steps: the square loss with its 2 counts double."""
        if self.stream.rule != "square":
            return self.played
        rates, slopes = [2.0 * eta for eta in self.played.rates], [0.5 * g for g in self.played.slopes]
        return replace(self.played, rates=rates, slopes=slopes)


def compare(s: Stream, run: Run, z: np.ndarray, out: Outcome) -> Seen:
    """The run against the slow player, round by round; a kink that only rounding decides ends the comparison."""
    X, y = s.X.tolist() * s.passes, s.y.tolist() * s.passes
    weight = None if s.weight is None else s.weight.tolist() * s.passes
    step = s.learner.rate
    rates = step.rates.tolist() if step.rates.size else None
    words = {"rule": s.rule, "update": s.update, "eta": step.eta, "power": step.power, "rates": rates, **s.space}
    want = naive.play(X, y, weight=weight, start=s.start, bias=s.bias, **words)
    longest = math.sqrt(float((s.full**2).sum(axis=1).max()))
    reach = max(math.sqrt(naive.square(w)) for w in want.weights) * longest
    lost = unit = 0.0
    if s.rule in LIPSCHITZ:  # what a link predicts is rounded in units of 1, and so are its steps
        c = np.tile(s.c, s.passes)[np.tile(s.c > 0.0, s.passes)]
        norms = np.tile(s.dual_squares(), s.passes)[np.tile(s.c > 0.0, s.passes)]
        unit = 4.0 * EPS / EQUAL * float((np.array(want.rates) * c * np.sqrt(norms)).sum())
        reach += unit * longest
    apart = amplified(s, X, y, want)
    if s.geometry != "euclidean":
        reach = s.radius * float(np.abs(s.full).max())
        lost = rounding(s, want)
        theta, shift = run.state.theta, run.state.shift[0] * math.log(2.0)
        signs = (1.0, -1.0) if s.geometry == "balanced" else (1.0,)
        mass = math.fsum(math.fsum(np.exp(sign * theta - shift)) for sign in signs)
        if not abs(run.state.mass[0] - mass) <= (8.0 * EPS * (s.width + 4.0) + EPS * float(np.abs(shift))) * mass:
            out.say("wrong mass", f"{run.state.mass[0]!r} is not {mass!r}")
        if not run.state.touched[0] <= s.width:
            out.say("no refresh", f"{run.state.touched[0]} of {s.width} coordinates since the mass was recomputed")
    tied = False
    for t, (a, b) in enumerate(zip(z.tolist(), want.margins, strict=True)):
        if not abs(a - b) <= (EQUAL + 4.0 * apart) * max(reach, abs(b)):
            out.say("differs from naive", f"margin {t}: {a!r} is not {b!r}")
            break
        if s.rule in ("absolute", "hinge", "perceptron") and naive.slope(s.rule, a, y[t]) != naive.slope(
            s.rule, b, y[t]
        ):
            tied = True
            break
    else:
        size = max(max(map(abs, w)) for w in want.weights)
        size = size + unit if s.geometry == "euclidean" else s.radius
        if not np.abs(run.weights - want.final).max() <= (EQUAL + 4.0 * apart) * size:
            out.say("differs from naive", f"final weights {run.weights} are not {want.final}")
    if not tied and run.rounds != len(want.rates):
        out.say("differs from naive", f"{run.rounds} rounds, not {len(want.rates)}")
    margins = z.tolist()
    slopes = [naive.slope(s.rule, a, b) for a, b in zip(margins, y, strict=True)]
    if weight is not None:
        slopes = [g for g, c in zip(slopes, weight, strict=True) if c > 0.0]
    if s.update == "implicit":
        slopes = want.slopes
    final = run.weights.tolist()
    played = naive.Played(margins, [], want.start, final, want.start, want.start, want.rates, slopes)
    c, t = np.tile(s.c, s.passes), np.tile(s.y, s.passes)
    size = float((c * t**2).sum())
    if s.family == "11 matching":
        size += float((c * np.abs(t * z)).sum())
    return Seen(s, X, y, weight, played, [] if tied else want.weights, size, lost, apart)


def rounding(s: Stream, played: naive.Played) -> float:
    """At most how far rounding moved an exponent: each is its start and a sum of steps, rounded once a round.

    The slope behind a link is rounded in units of 1, and wrong by as much as its margin is.
    """
    c = np.tile(s.c, s.passes)[np.tile(s.c > 0.0, s.passes)]
    tops = np.tile(np.sqrt(s.dual_squares()), s.passes)[np.tile(s.c > 0.0, s.passes)]
    steps = np.array(played.rates) * c * tops
    behind = float((steps * (1.0 + tops)).sum()) if s.rule in LIPSCHITZ else 0.0
    begun = np.array(naive.first(s.width, s.geometry, s.radius, s.start))
    first = steps.size * float(np.abs(begun[np.isfinite(begun)]).max(initial=0.0))
    return float(EPS * (first + np.cumsum(steps * np.abs(played.slopes)).sum() + behind))


def amplified(s: Stream, X: list[list[float]], y: list[float], played: naive.Played) -> float:
    """At most how far rounding moved an exponent, to first order, where later steps carry on what earlier ones lost.

    An error e of the exponents moves the margin by dz.e and so the step by eta c slope'(z) dz.e: beyond the limit of a
    theorem that may grow from round to round. Each round's errors, one for every coordinate, are followed by that
    linear map, and added up as if all had the worst sign. Implicit steps and slopes that are constant carry on nothing
    more, and the few rounds of very wide rows are left at that. In the Euclidean geometry the weights themselves take
    the place of exponents, and the answer is relative to the largest of them.
    """
    flat = s.geometry == "euclidean"
    lost = 0.0 if flat else rounding(s, played)
    steep = {
        "widrow-hoff": lambda z: 1.0,
        "square": lambda z: 2.0,
        "logistic": lambda z: naive.sigmoid(z) * naive.sigmoid(-z),
    }
    if s.update == "implicit" or s.rule not in steep or s.width > 64:
        return lost
    weight = None if s.weight is None else s.weight.tolist() * s.passes
    thetas = naive.duals(X, y, played, weight=weight, bias=s.bias, **s.space)
    errors, worst, size = np.zeros((s.width, 0)), lost, float(np.abs(np.array(thetas)[np.isfinite(thetas)]).max())
    for r, theta in zip(naive.rounds(X, y, played, weight, s.bias), thetas, strict=False):
        x, step = np.array(r.x), r.eta * r.c * np.array(r.x)
        if flat:
            by, off = x, 1.0 + steep[s.rule](r.z) * float(np.abs(x) @ np.abs(theta))
        else:
            x, step = s.radius * x, s.radius * step
            p = np.array(naive.read(theta, s.geometry)).reshape(-1, s.width)
            total, signed = p.sum(axis=0), p[0] - p[1:].sum(axis=0)  # of the halves of the balanced geometry; else p
            by, off = total * x - r.z * signed, float(np.abs(x).max())
        top = float(np.abs(step).max())
        fresh = EPS * (size + top * abs(r.slope) + (s.width + 8.0) * top * off)
        errors -= steep[s.rule](r.z) * np.outer(step, by @ errors)
        errors = np.hstack([errors, fresh * np.eye(s.width)])
        worst = max(worst, float(np.abs(errors).sum(axis=1).max()))
    return worst / size if flat and size > 0.0 else worst


def at_the_edge(seen: Seen, width: float = 1e-12) -> bool:
    """Whether eta X^2 is so near to its limit that rounding alone decides (or blows up 1/(1 - eta X^2))."""
    s = seen.stream
    norms = np.tile(s.c * s.dual_squares(), s.passes)[np.tile(s.c > 0.0, s.passes)]
    reach = float((np.array(seen.at_scale().rates) * norms).max())
    if s.planted is not None:
        reach *= 0.5 * LIPSCHITZ.get(s.rule, 1.0)
    return abs(reach - 1.0) < width


def size_of_losses(s: Stream, r: naive.Round, z: float) -> float:
    """What the losses of a round at its margin and at z are rounded in, times rate and weight."""
    if s.rule in ("square", "widrow-hoff"):
        return r.eta * r.c * (abs(r.y) + abs(r.z) + abs(z)) ** 2
    at = abs(r.y) if s.rule == "absolute" else 1.0 + abs(r.y) * (abs(r.z) + abs(z))
    return r.eta * r.c * (at + abs(r.z) + abs(z))


def size_of_round(s: Stream, r: naive.Round, u: list[float]) -> float:
    """What the change of potential of a round, and what its lemma allows, are sums of."""
    z, step = naive.dot(u, r.x), abs(r.eta * r.c * r.slope)
    moved = step**2 * naive.dual_square(r.x, s.geometry, s.radius) + 2.0 * step * (abs(r.z) + abs(z))
    return moved + size_of_losses(s, r, z)
