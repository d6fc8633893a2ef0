"""Who is closer to the truth: differences of mean losses, with intervals that hold for what they estimate.

The estimand after t rounds is (1/t) Sigma E[difference_i | past], weighted (1/Sigma c) Sigma c_i E[difference_i | past]
(N1, N3). For the square loss that is exactly the difference of the mean squared distances to the unknown p, for the
quadratic loss to the unknown mean, for the log loss that of the relative entropies.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..certificates.certificate import MARK, Assumption
from ..validation import number
from . import sequences
from .scores import columns
from .stream import Scores

if TYPE_CHECKING:
    from .stream import Totals


class Finding(enum.Enum):
    """What the data says of two forecasters."""

    CLOSER = "CLOSER"  # the interval leaves out 0
    UNDECIDED = "UNDECIDED"  # it does not
    IDENTICAL = "IDENTICAL"  # the forecasts never differed
    VOID = "VOID"  # nothing is promised, as something was not declared, or not as declared


class Interval(NamedTuple):
    """Where the estimand lies."""

    low: float
    high: float


class Path(NamedTuple):
    """One pair along the stream: the mean difference so far, and its confidence sequence."""

    rounds: np.ndarray
    difference: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Pair:
    """Two forecasters. `difference` is the mean loss of the first less that of the second.

    The three intervals are three statements, each of which holds for all pairs at once with probability 1 - alpha;
    `finding` rests on the one that was asked for in advance. They are None where nothing is promised.
    """

    first: str
    second: str
    difference: float
    hoeffding: Interval | None
    bernstein: Interval | None
    anytime: Interval | None
    finding: Finding
    words: str


@dataclass(frozen=True)
class Choice:
    """The forecaster of least mean loss among K, and what that promises.

    With probability 1 - alpha every mean loss is within `half_width` of its estimand (Chernoff and union), so the
    chosen one is within twice that of the best of the K.
    """

    best: str
    half_width: float
    words: str


@dataclass(frozen=True)
class Comparison:
    """Forecasters compared on one stream."""

    names: tuple[str, ...]
    loss: str
    rounds: int
    weight: float
    alpha: float
    by: str
    means: dict[str, float]
    pairs: tuple[Pair, ...]
    choice: Choice
    assumptions: tuple[Assumption, ...]
    promise: Promise
    points: tuple[Totals, ...]

    def path(self, pair: int = 0) -> Path:
        """The running difference of a pair (by its place) and its confidence sequence."""
        return self.promise.path(self.points, pair, self.pairs[pair].finding is Finding.IDENTICAL)

    def lines(self) -> list[str]:
        """The comparison to be read aloud."""
        lines = [pair.words for pair in self.pairs]
        lines.append(self.choice.words)
        return lines + [f"  {MARK[need.met]} {need.text}" for need in self.assumptions]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """Everything but the paths as plain numbers, strings, lists and None (undefined, or infinite), for JSON."""
        pairs = [
            {
                "first": p.first,
                "second": p.second,
                "difference": _finite(p.difference),
                **{k: None if (i := getattr(p, k)) is None else list(i) for k in ("hoeffding", "bernstein", "anytime")},
                "finding": p.finding.value,
                "words": p.words,
            }
            for p in self.pairs
        ]
        half = _finite(self.choice.half_width)
        return {
            "loss": self.loss,
            "rounds": self.rounds,
            "weight": self.weight,
            "alpha": self.alpha,
            "verdict_by": self.by,
            "estimand": ESTIMAND,
            "mean_losses": {name: _finite(mean) for name, mean in self.means.items()},
            "pairs": pairs,
            "choice": {"best": self.choice.best, "half_width": half, "words": self.choice.words},
            "assumptions": [{"text": a.text, "met": a.met} for a in self.assumptions],
        }


ESTIMAND = "the mean over the rounds of E[difference | past], forecasts fixed before their outcomes"


def compare(
    outcomes: Any,
    forecasts: Any,
    weight: Any = None,
    *,
    loss: str = "square",
    epsilon: float | None = None,
    bounds: tuple[float, float] | None = None,
    alpha: float = 0.05,
    anytime: bool = False,
    max_weight: float | None = None,
) -> Comparison:
    """Which of the forecasters is closest to the truth that nobody sees.

    Parameters
    ----------
    outcomes : 0 and 1; for the quadratic loss any numbers.
    forecasts : a mapping of names or a dataframe with a column a forecaster, a 2-D array, or a list of columns: at
        least two. Each forecast was fixed before its outcome.
    weight : importance of each row, fixed before its outcome; None is 1.
    loss : "square", "log" or "quadratic".
    epsilon : log loss: all forecasts lie in [epsilon, 1 - epsilon]; without it the verdict is VOID.
    bounds : quadratic loss: all outcomes and forecasts lie between these; without them the verdict is VOID.
    alpha : all intervals of one kind hold at once with probability 1 - alpha.
    anytime : let the verdict rest on the confidence sequence, valid at every time and so under any stopping; otherwise
        on the empirical-Bernstein interval, valid at this number of rounds fixed in advance.
    max_weight : the largest weight there can be, declared in advance; None takes the largest given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> print(compare(y, {"A": p, "B": 0.5 + 0 * p}, anytime=True).pairs[0].words)
    A is closer to the truth than B: difference 0.08675 in [0.06893, 0.1046], valid at every time
    """
    given = columns(forecasts)
    scores = Scores(list(given), loss, epsilon=epsilon, bounds=bounds).update(outcomes, given, weight)
    return comparison(scores, alpha=alpha, anytime=anytime, max_weight=max_weight)


def comparison(
    scores: Scores, *, alpha: float = 0.05, anytime: bool = False, max_weight: float | None = None
) -> Comparison:
    """The comparison of scores so far; the parameters are those of `compare`."""
    if not number("alpha", alpha, 0) < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}")
    if len(scores.names) < 2:
        raise ValueError(f"a comparison wants at least two forecasters, got {len(scores.names)}")
    most = scores.max_weight if max_weight is None else number("max_weight", max_weight, 0)
    means, now = scores.means, scores.totals()
    void = scores.score.missing or scores.broken
    if not void and most < scores.max_weight:
        void = f"a weight of {scores.max_weight:g} was seen, above the declared {most:g}"
    promise = Promise(math.nan if void else scores.score.span, most, alpha / len(scores.pairs))
    by = "anytime" if anytime else "bernstein"
    when = "valid at every time" if anytime else f"at {now.rounds:,} rounds fixed in advance"
    found = promise.intervals(now)
    pairs = []
    for k, (i, j) in enumerate(scores.pairs):
        first, second, identical = scores.names[i], scores.names[j], bool(scores.identical[k])
        difference = float(now.differences[k]) / now.weight
        if scores.infinite[i] or scores.infinite[j]:
            difference = 0.0 if identical else means[first] - means[second]
        mine = {kind: Interval(0.0, 0.0) if identical else each[k] for kind, each in found.items()}
        finding, words = verdict(first, second, difference, mine.get(by), identical, void, when)
        kinds = (mine.get("hoeffding"), mine.get("bernstein"), mine.get("anytime"))
        pairs.append(Pair(first, second, difference, *kinds, finding, words))
    return Comparison(
        tuple(scores.names),
        scores.score.loss,
        now.rounds,
        now.weight,
        alpha,
        by,
        means,
        tuple(pairs),
        choice(means, now, promise.span, alpha),
        assumptions(scores, void, max_weight, anytime),
        promise,
        tuple(scores.path()),
    )


class Promise(NamedTuple):
    """What intervals rest on: the largest difference there can be (NaN: unknown), the largest weight, and the level."""

    span: float
    most: float
    alpha: float

    def intervals(self, now: Totals) -> dict[str, list[Interval]]:
        """The intervals of every pair; a mean difference never lies outside [-span, span], so neither do they."""
        if math.isnan(self.span):
            return {}
        scale = self.span * self.most
        rounds = now.weight_squares / self.most**2  # so many of the largest weight
        widths: dict[str, Any] = {
            "hoeffding": self.span * sequences.hoeffding(self.alpha, now.weight_squares),
            "bernstein": sequences.bernstein(self.alpha, now.squares, scale, rounds),
            "anytime": sequences.anytime(self.alpha, now.squares, scale),
        }
        return {kind: self._around(now.differences, width, now.weight) for kind, width in widths.items()}

    def _around(self, sums: np.ndarray, width: Any, weight: float) -> list[Interval]:
        low = np.maximum(-self.span, (sums - width) / weight)
        high = np.minimum(self.span, (sums + width) / weight)
        return [Interval(*both) for both in zip(low.tolist(), high.tolist(), strict=True)]

    def path(self, points: tuple[Totals, ...], pair: int, identical: bool) -> Path:
        """The confidence sequence of one pair along the stream; NaN limits where nothing is promised."""
        rounds, weight = np.array([p.rounds for p in points]), np.array([p.weight for p in points])
        middle = np.array([p.differences[pair] for p in points]) / weight
        width = np.zeros_like(middle)
        if math.isnan(self.span):
            width += math.nan
        elif not identical:
            width = sequences.anytime(self.alpha, [p.squares[pair] for p in points], self.span * self.most) / weight
        return Path(rounds, middle, np.maximum(-self.span, middle - width), np.minimum(self.span, middle + width))


def verdict(
    first: str, second: str, difference: float, interval: Interval | None, identical: bool, void: str, when: str
) -> tuple[Finding, str]:
    """What to say of a pair, the better one first, with the difference as what the other one loses more."""
    if identical:
        return Finding.IDENTICAL, f"{first} and {second} gave the same forecasts: the difference is exactly 0"
    if interval is None:
        seen = "is undefined, as both losses are infinite" if math.isnan(difference) else f"was {difference:.4g}"
        return Finding.VOID, f"VOID: {void} (the difference of {first} and {second} {seen}; nothing is promised)"
    if difference > 0.0:
        better, other, (low, high) = second, first, interval
    else:
        better, other, low, high = first, second, 0.0 - interval.high, 0.0 - interval.low
    shown = f"difference {abs(difference):.4g} in [{low:.4g}, {high:.4g}], {when}"
    if low > 0.0:
        return Finding.CLOSER, f"{better} is closer to the truth than {other}: {shown}"
    return Finding.UNDECIDED, f"{better} and {other} cannot be told apart: {shown}"


def choice(means: dict[str, float], now: Totals, span: float, alpha: float) -> Choice:
    """The least mean loss (the first where several are), with its uniform-convergence bound."""
    best = min(means, key=means.__getitem__)
    half = span * sequences.uniform(alpha, len(means), now.weight_squares) / now.weight
    words = f"{best} has the least mean loss, {means[best]:.4g}"
    if not math.isnan(half):
        words += f"; with probability {1.0 - alpha:g} it is within {2.0 * half:.4g} of the best of {len(means)}"
    return Choice(best, half, words)


def assumptions(scores: Scores, void: str, max_weight: float | None, anytime: bool) -> tuple[Assumption, ...]:
    """What the intervals need, and whether it was seen to be so."""
    needs = [Assumption("each forecast was fixed before its outcome was seen", None)]
    if not anytime:
        needs.append(Assumption("the number of rounds was fixed in advance", None))
    if void:
        needs.append(Assumption(void, False))
    elif scores.score.loss == "square":
        needs.append(Assumption("outcomes are 0 or 1 and forecasts in [0, 1], so differences lie in [-1, 1]", True))
    else:
        needs.append(Assumption(f"all values seen lie in {scores.score.declared}, as those to come must", None))
    if scores.weighted:
        if max_weight is None:
            text = f"all weights were fixed in advance (the largest is {scores.max_weight:g})"
        else:
            text = f"each weight was fixed before its outcome, and none is above the declared {max_weight:g}"
        needs.append(Assumption(text, None))
    return tuple(needs)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
