"""Which forecaster is closer to the truth: differences of mean losses, with intervals for their estimand.

The estimand after t rounds is (1/t) Sigma E[difference_i | past], or with weights c the weighted mean of the same. For
the square loss that is exactly the difference of the mean squared distances to the unknown p, for the quadratic loss to
the unknown mean, and for the log loss the difference of the relative entropies (docs/theory.md#scoring).
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..certificates.certificate import MARK, Assumption
from ..formatting import _plain
from ..validation import number
from . import sequences
from .scores import columns, open_unit
from .stream import Scores

if TYPE_CHECKING:
    from .stream import Totals


class Finding(enum.Enum):
    """What the data says about two forecasters."""

    CLOSER = "CLOSER"  # the interval excludes 0
    UNDECIDED = "UNDECIDED"  # the interval contains 0
    IDENTICAL = "IDENTICAL"  # the forecasts never differed
    VOID = "VOID"  # no interval: a range was not declared, or a value lies outside it


class Interval(NamedTuple):
    """An interval for the estimand.

    Attributes
    ----------
    low, high : float
        Its ends.
    """

    low: float
    high: float


class Path(NamedTuple):
    """One pair along the stream: the mean difference so far, and its confidence sequence.

    Attributes
    ----------
    rounds : ndarray of int
        Numbers of rounds.
    difference : ndarray
        Mean difference after so many rounds.
    low, high : ndarray
        The confidence sequence there; NaN where there is none.
    """

    rounds: np.ndarray
    difference: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Pair:
    """Two forecasters compared.

    The three intervals are three statements, each of which holds for all pairs at once with probability 1 - alpha;
    `finding` rests on the one that was asked for in advance. They are None where the loss is not bounded.

    Attributes
    ----------
    first, second : str
        Names of the forecasters.
    difference : float
        Mean loss of the first minus that of the second.
    hoeffding, bernstein, anytime : Interval or None
        Hoeffding's interval and the empirical-Bernstein one, at a number of rounds fixed in advance, and the confidence
        sequence.
    finding : Finding
        CLOSER, UNDECIDED, IDENTICAL or VOID.
    words : str
        The finding as a sentence.
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
    """The forecaster with the least mean loss among K, and how far it may be from the best.

    With probability 1 - alpha every mean loss is within `half_width` of its estimand (Hoeffding and a union bound), so
    the chosen forecaster is within twice that of the best of the K.

    Attributes
    ----------
    best : str
        Name of the forecaster.
    half_width : float
        NaN where the loss is not bounded.
    words : str
        The same as a sentence.
    """

    best: str
    half_width: float
    words: str


@dataclass(frozen=True)
class Comparison:
    """Forecasters compared on one stream.

    Attributes
    ----------
    names : tuple of str
        Names of the forecasters.
    loss : str
        The loss: "square", "log" or "quadratic".
    rounds : int
        Number of rows with a weight above 0.
    weight : float
        The sum of their weights.
    alpha : float
        All intervals of one kind hold at once with probability 1 - alpha.
    by : str
        The kind of interval that findings rest on: "bernstein" or "anytime".
    means : dict of str to float
        Mean loss of each forecaster.
    pairs : tuple of Pair
        All pairs.
    choice : Choice
        The forecaster with the least mean loss.
    assumptions : tuple of Assumption
        What the intervals need, and whether it was met.
    promise : Promise
        What the intervals rest on.
    points : tuple of Totals
        The sums along the stream.
    """

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
        """The running difference of a pair and its confidence sequence.

        Parameters
        ----------
        pair : int, default 0
            Index of the pair in `pairs`.

        Returns
        -------
        Path
            After 1, 2, 3, ... rounds, later at ever longer steps.
        """
        return self.promise.path(self.points, pair, self.pairs[pair].finding is Finding.IDENTICAL)

    def lines(self) -> list[str]:
        """The comparison as lines of text."""
        lines = [pair.words for pair in self.pairs]
        lines.append(self.choice.words)
        return lines + [f"  {MARK[need.met]} {need.text}" for need in self.assumptions]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """All but the paths as plain numbers, strings, lists and None (undefined, or infinite), for JSON."""
        pairs = [
            {k: getattr(p, k) for k in ("first", "second", "difference", "hoeffding", "bernstein", "anytime")}
            | {"finding": p.finding.value, "words": p.words}
            for p in self.pairs
        ]
        out = {
            "loss": self.loss,
            "rounds": self.rounds,
            "weight": self.weight,
            "alpha": self.alpha,
            "verdict_by": self.by,
            "estimand": ESTIMAND,
            "mean_losses": self.means,
            "pairs": pairs,
            "choice": {k: getattr(self.choice, k) for k in ("best", "half_width", "words")},
            "assumptions": [{"text": a.text, "met": a.met} for a in self.assumptions],
        }
        return dict(_plain(out))


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
    """Compare forecasters by their distance to the unknown truth.

    Parameters
    ----------
    outcomes : array-like of shape (n_rounds,)
        0 and 1; for the quadratic loss any numbers.
    forecasts : mapping, dataframe, array-like of shape (n_rounds, n_forecasters) or list of columns
        At least two forecasters, one column each. Each forecast was fixed before its outcome.
    weight : array-like of shape (n_rounds,) or None, default None
        Importance of each row, fixed before its outcome; None is 1.
    loss : {"square", "log", "quadratic"}, default "square"
        As in `Score`.
    epsilon : float or None, default None
        Log loss: all forecasts lie in [epsilon, 1 - epsilon]. Without it the finding is VOID.
    bounds : (float, float) or None, default None
        Quadratic loss: all outcomes and forecasts lie between these. Without them the finding is VOID.
    alpha : float, default 0.05
        All intervals of one kind hold at once with probability 1 - alpha.
    anytime : bool, default False
        Let findings rest on the confidence sequence, valid at every time and so under any stopping rule; otherwise on
        the empirical-Bernstein interval, valid at this number of rounds if it was fixed in advance.
    max_weight : float or None, default None
        The largest weight there can be, declared in advance; None takes the largest given.

    Returns
    -------
    Comparison
        Mean losses, and one finding per pair.

    References
    ----------
    Howard, Ramdas, McAuliffe and Sekhon (2021); Choe and Ramdas (2023). See docs/bibliography.md and
    docs/theory.md#scoring.

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
    """Compare forecasters by their scores so far.

    Parameters
    ----------
    scores : Scores
        The scores of at least two forecasters.
    alpha : float, default 0.05
        As in `compare`.
    anytime : bool, default False
        As in `compare`.
    max_weight : float or None, default None
        As in `compare`.

    Returns
    -------
    Comparison
        Mean losses, and one finding per pair.

    Examples
    --------
    >>> scores = Scores(["A", "B"]).update([1, 0], {"A": [0.8, 0.5], "B": [0.5, 0.5]})
    >>> comparison(scores).pairs[0].finding.value
    'UNDECIDED'
    """
    open_unit("alpha", alpha)
    if len(scores.names) < 2:
        raise ValueError(f"a comparison needs at least two forecasters, got {len(scores.names)}")
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
    """What intervals rest on.

    Attributes
    ----------
    span : float
        Largest difference of two losses; NaN if it is not known.
    most : float
        Largest weight.
    alpha : float
        The probability of an error for one pair.
    """

    span: float
    most: float
    alpha: float

    def intervals(self, now: Totals) -> dict[str, list[Interval]]:
        """The intervals of every pair by kind, cut to [-span, span], where every mean difference lies."""
        if math.isnan(self.span):
            return {}
        scale = self.span * self.most
        rounds = now.weight_squares / self.most**2  # the number of rounds of the largest weight that they are worth
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
        """The confidence sequence of one pair along the stream; its limits are NaN where the span is not known."""
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
    """The finding of a pair, and a sentence that names the better one first, with a positive difference."""
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
    """The forecaster with the least mean loss (the first of several), with its uniform-convergence bound."""
    best = min(means, key=means.__getitem__)
    half = span * sequences.uniform(alpha, len(means), now.weight_squares) / now.weight
    words = f"{best} has the least mean loss, {means[best]:.4g}"
    if not math.isnan(half):
        words += f"; with probability {1.0 - alpha:g} it is within {2.0 * half:.4g} of the best of {len(means)}"
    return Choice(best, half, words)


def assumptions(scores: Scores, void: str, max_weight: float | None, anytime: bool) -> tuple[Assumption, ...]:
    """The assumptions of the intervals, and whether they were met."""
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
