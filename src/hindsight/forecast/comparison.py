"""Which forecaster is closer to the truth: differences of mean losses, with confidence intervals.

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
from ..validation import choice, number
from .evidence import Evidence, against_each, closed, evidence, log_e_values
from .intervals import HORIZON, Interval, Intervals, Promise, stacked
from .mixtures import KINDS
from .scores import Score, columns, open_unit, waiting_words
from .stream import Scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .stream import Totals


class Finding(enum.Enum):
    """The conclusion about two forecasters."""

    CLOSER = "CLOSER"  # the interval excludes 0
    UNDECIDED = "UNDECIDED"  # the interval contains 0
    IDENTICAL = "IDENTICAL"  # the forecasts never differed
    VOID = "VOID"  # no interval: a range was not declared, or a value lies outside it


class Path(NamedTuple):
    """The comparison of a pair along the stream: the mean difference so far, its confidence sequence, and the evidence.

    Attributes
    ----------
    rounds : ndarray of int
        Numbers of rounds.
    difference : ndarray
        Mean difference after these rounds.
    low, high : ndarray
        The confidence sequence after these rounds; NaN if there is none.
    log_first, log_second : ndarray
        ln of the e-values for "the first is better" and for "the second is better"; NaN if there are none.
    """

    rounds: np.ndarray
    difference: np.ndarray
    low: np.ndarray
    high: np.ndarray
    log_first: np.ndarray
    log_second: np.ndarray


@dataclass(frozen=True)
class Pair:
    """Two forecasters compared.

    Each kind of interval holds for all pairs simultaneously with probability 1 - alpha; `finding` uses the kind chosen
    in advance. The intervals are None if a difference has no known range.

    Attributes
    ----------
    first, second : str
        Names of the forecasters.
    difference : float
        Mean loss of the first minus that of the second.
    fixed : Intervals or None
        The intervals at a number of rounds fixed in advance.
    anytime : Intervals or None
        The confidence sequences, which are valid at every time.
    finding : Finding
        CLOSER, UNDECIDED, IDENTICAL or VOID.
    words : str
        The finding as a sentence.
    first_better, second_better : Evidence or None
        The evidence that one is better than the other, without adjustment for other pairs.
    """

    first: str
    second: str
    difference: float
    fixed: Intervals | None
    anytime: Intervals | None
    finding: Finding
    words: str
    first_better: Evidence | None
    second_better: Evidence | None

    @property
    def evidence(self) -> str:
        """The evidence for the forecaster with the smaller mean loss, as a sentence; empty if there is none."""
        if self.first_better is None or self.second_better is None or self.finding is Finding.IDENTICAL:
            return ""
        ahead = self.difference <= 0.0
        found = self.first_better if ahead else self.second_better
        better, other = (self.first, self.second) if ahead else (self.second, self.first)
        return f"evidence that {better} is better than {other}: {found.words} ({found.size})"


@dataclass(frozen=True)
class Choice:
    """The forecaster with the smallest mean loss among K, and how far it may be from the best.

    Attributes
    ----------
    best : str
        Name of the forecaster.
    within : float
        With probability 1 - alpha its expected mean loss exceeds that of the best of the K by at most this, according
        to the intervals used for the findings; NaN if one of them is missing.
    words : str
        The same as a sentence.
    """

    best: str
    within: float
    words: str


class BestSet(NamedTuple):
    """Which forecasters may be the best.

    Attributes
    ----------
    by_intervals : tuple of str
        Forecasters for which no other was found to be closer to the truth.
    by_evidence : tuple of str
        The sequential model confidence set: forecasters whose e-value against being among the best, after closure, has
        never reached 1/alpha. With probability 1 - alpha no forecaster that is among the best at every time is ever
        excluded.
    log_e : dict of str to float
        ln of the current values of these e-values.
    """

    by_intervals: tuple[str, ...]
    by_evidence: tuple[str, ...]
    log_e: dict[str, float]


@dataclass(frozen=True)
class Comparison:
    """Forecasters compared on one stream.

    Attributes
    ----------
    names : tuple of str
        Names of the forecasters.
    loss : str
        The loss, as in `Score`.
    rounds : int
        Number of rows with an outcome and a weight above 0.
    waiting : int
        Number of rows that were forecast but have no outcome yet.
    weight : float
        The sum of the weights of the rounds.
    alpha : float
        All intervals of one kind hold simultaneously with probability 1 - alpha.
    by : str
        The kind of interval used for the findings: "mixture", "ranges" or "bernstein".
    anytime : bool
        Whether the findings use a confidence sequence.
    horizon : float
        The number of rounds that intervals, confidence sequences and e-processes are tuned for.
    means : dict of str to float
        Mean loss of each forecaster.
    pairs : tuple of Pair
        All pairs.
    choice : Choice
        The forecaster with the smallest mean loss.
    best : BestSet or None
        Which forecasters may be the best; None if a difference has no known range.
    assumptions : tuple of Assumption
        The assumptions of the intervals, and whether they were met.
    sequence : Promise
        The error probability, horizon and lag of the confidence sequences.
    points : tuple of Totals
        The sums along the stream.
    """

    names: tuple[str, ...]
    loss: str
    rounds: int
    waiting: int
    weight: float
    alpha: float
    by: str
    anytime: bool
    horizon: float
    means: dict[str, float]
    pairs: tuple[Pair, ...]
    choice: Choice
    best: BestSet | None
    assumptions: tuple[Assumption, ...]
    sequence: Promise
    points: tuple[Totals, ...]

    def path(self, pair: int = 0) -> Path:
        """The running difference of a pair, its confidence sequence and its e-values.

        Parameters
        ----------
        pair : int, default 0
            Index of the pair in `pairs`.

        Returns
        -------
        Path
            The path after 1, 2, 3, ... rounds, with increasing steps later.
        """
        at = stacked(self.points)
        one = at._replace(pairs=at.pairs[..., pair, None, :], reach=at.reach[..., pair, None, :])
        one = one._replace(first=at.first[..., pair, None])
        difference = one.differences[:, 0] / at.weight
        ends = [np.full(difference.size, math.nan)] * 4
        if self.pairs[pair].anytime is not None:
            values = log_e_values(one, self.horizon, self.sequence.lag)
            ends = [end[:, 0] for end in (*self.sequence.ends(one, self.by), *values)]
        return Path(np.asarray(at.rounds), difference, *ends)

    def lines(self) -> list[str]:
        """The comparison as lines of text."""
        lines = [pair.words for pair in self.pairs]
        lines += [pair.evidence for pair in self.pairs if pair.evidence]
        lines.append(self.choice.words)
        if self.best is not None and len(self.names) > 2:
            lines.append(f"among the best, by the evidence: {', '.join(self.best.by_evidence) or 'none'}")
        if self.waiting:
            lines.append(f"{waiting_words(self.waiting)} forecast, counted and not scored")
        return lines + [f"  {MARK[need.met]} {need.text}" for need in self.assumptions]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """Everything except the paths as plain numbers, strings, lists and None (undefined or infinite), for JSON."""

        def plain(found: Any) -> Any:
            return None if found is None else found._asdict()

        pairs = [
            {k: getattr(p, k) for k in ("first", "second", "difference")}
            | {k: plain(getattr(p, k)) for k in ("fixed", "anytime", "first_better", "second_better")}
            | {"finding": p.finding.value, "words": p.words}
            for p in self.pairs
        ]
        out = {
            **{k: getattr(self, k) for k in ("loss", "rounds", "waiting", "weight", "alpha", "anytime", "horizon")},
            "verdict_by": self.by,
            "estimand": ESTIMAND,
            "mean_losses": self.means,
            "pairs": pairs,
            "choice": {k: getattr(self.choice, k) for k in ("best", "within", "words")},
            "best": plain(self.best),
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
    bounds: tuple[float, float] | None = None,
    quantile: float | None = None,
    coverage: float | None = None,
    classes: Sequence[Any] | None = None,
    alpha: float = 0.05,
    anytime: bool = False,
    by: str = "mixture",
    horizon: float | None = None,
    lag: int = 1,
) -> Comparison:
    """Compare forecasters by their distance to the unknown truth.

    Parameters
    ----------
    outcomes : array-like of shape (n_rounds,)
        The outcomes: 0 and 1, the labels of `classes`, or numbers, depending on the loss. Rows with a missing outcome
        (NaN) are counted but not scored.
    forecasts : mapping, dataframe, array-like of shape (n_rounds, n_forecasters) or list of columns
        At least two forecasters, one column each. Each forecast was fixed before its outcome. With `classes`, or for
        intervals, a forecast is a row of numbers: a 2-D array under its name, or columns ``A:rain``, ``A:sun``, or
        ``A:low``, ``A:high``.
    weight : array-like of shape (n_rounds,) or None, default None
        Weight of each row, fixed before its outcome; None is 1.
    loss : {"square", "log", "quadratic", "poisson", "pinball", "winkler"}, default "square"
        As in `Score`.
    bounds : (float, float) or None, default None
        Bounds on all outcomes, if they are numbers. Without bounds the finding is VOID for the quadratic and Poisson
        losses.
    quantile, coverage : float or None, default None
        The quantile that is forecast (pinball), and the nominal coverage of the forecast intervals (Winkler).
    classes : sequence or None, default None
        The labels of the classes (square and log losses).
    alpha : float, default 0.05
        All intervals of one kind hold simultaneously with probability 1 - alpha.
    anytime : bool, default False
        Whether the findings use the confidence sequence, which is valid at every time and under any stopping rule.
        Otherwise they use the interval at the current number of rounds, which is valid if that number was fixed in
        advance.
    by : {"mixture", "ranges", "bernstein"}, default "mixture"
        The kind of interval used for the findings, chosen in advance; see `Intervals`.
    horizon : float or None, default None
        The number of rounds for which intervals, confidence sequences and e-processes are tuned, chosen in advance.
        They are valid at every number of rounds, but wider at numbers far from this one. None is 1,000.
    lag : int, default 1
        How many rounds ahead forecasts were made. The `lag` interleaved streams are combined into one test of the mean
        losses over all rounds.

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
    A is closer to the truth than B: difference 0.08675 in [0.06961, 0.1027], valid at every time
    """
    declared = {"bounds": bounds, "quantile": quantile, "coverage": coverage, "classes": classes}
    given = columns(forecasts, parts=Score(loss, **declared).parts)  # type: ignore[arg-type]  # checked by it
    scores = Scores(list(given), loss, lag=lag, **declared).update(outcomes, given, weight)
    return comparison(scores, alpha=alpha, anytime=anytime, by=by, horizon=horizon)


def comparison(
    scores: Scores, *, alpha: float = 0.05, anytime: bool = False, by: str = "mixture", horizon: float | None = None
) -> Comparison:
    """Compare forecasters by their scores so far.

    Parameters
    ----------
    scores : Scores
        The scores of at least two forecasters.
    alpha, anytime, by, horizon
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
    choice("by", by, KINDS)
    ahead = HORIZON if horizon is None else number("horizon", horizon, 0)
    if len(scores.names) < 2:
        raise ValueError(f"a comparison needs at least two forecasters, got {len(scores.names)}")
    means, points = scores.means, tuple(scores.path())
    share = alpha / len(scores.pairs)
    now, sequence = points[-1], Promise(share, ahead, True, scores.lag)
    at_one_time, at_every_time = sequence._replace(anytime=False).intervals(now), sequence.intervals(now)
    paths = log_e_values(stacked(points), ahead, scores.lag)  # times, pairs
    when = "valid at every time" if anytime else f"at {scores.rounds:,} rounds fixed in advance"
    void = scores.score.missing or scores.broken
    pairs = []
    for k, (i, j) in enumerate(scores.pairs):
        first, second, identical = scores.names[i], scores.names[j], bool(scores.identical[k])
        difference = float(now.differences[k]) / now.weight
        if scores.infinite[i] or scores.infinite[j]:
            difference = 0.0 if identical else means[first] - means[second]
        lost = "" if identical else void or (scores.score.unbounded if scores.unbounded[k] else "")
        fixed, always = (None, None) if lost else (at_one_time[k], at_every_time[k])
        interval = getattr(always if anytime else fixed, by, None)
        finding, words = finding_of(first, second, difference, interval, identical, lost, when)
        found = (None, None) if lost else tuple(evidence(path[..., k]) for path in paths)
        pairs.append(Pair(first, second, difference, fixed, always, finding, words, *found))
    return Comparison(
        tuple(scores.names),
        scores.score.loss,
        scores.rounds,
        len(scores.waiting),
        now.weight,
        alpha,
        by,
        anytime,
        ahead,
        means,
        tuple(pairs),
        least_loss(means, pairs, anytime, by, alpha),
        best_set(scores, pairs, paths, alpha),
        assumptions(scores, pairs, void, anytime, by),
        sequence,
        points,
    )


def best_set(scores: Scores, pairs: list[Pair], paths: tuple[np.ndarray, np.ndarray], alpha: float) -> BestSet | None:
    """Which forecasters may be the best, by the findings and by the evidence along the stream."""
    if any(pair.finding is Finding.VOID for pair in pairs):
        return None
    names, count = scores.names, len(scores.names)
    worse = set()
    for pair in pairs:
        if pair.finding is Finding.CLOSER:
            worse.add(pair.first if pair.difference > 0.0 else pair.second)
    each = closed(against_each(*paths, scores.pairs, count))
    out = each.max(axis=0) >= -math.log(alpha)
    return BestSet(
        tuple(name for name in names if name not in worse),
        tuple(name for name, gone in zip(names, out, strict=True) if not gone),
        dict(zip(names, each[-1].tolist(), strict=True)),
    )


def finding_of(
    first: str, second: str, difference: float, interval: Interval | None, identical: bool, void: str, when: str
) -> tuple[Finding, str]:
    """The finding of a pair, and a sentence that names the better forecaster first, with a positive difference."""
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
    return Finding.UNDECIDED, f"{better} and {other} cannot be distinguished: {shown}"


def least_loss(means: dict[str, float], pairs: list[Pair], anytime: bool, by: str, alpha: float) -> Choice:
    """The forecaster with the smallest mean loss (the first in case of ties), and how far it may be from the best."""
    best, within = min(means, key=means.__getitem__), 0.0
    for pair in pairs:
        if best in (pair.first, pair.second):
            interval = getattr(pair.anytime if anytime else pair.fixed, by, Interval(math.nan, math.nan))
            far = interval.high if best == pair.first else -interval.low
            within = math.nan if math.isnan(far) else max(within, far)
    words = f"{best} has the least mean loss, {means[best]:.4g}"
    if not math.isnan(within):
        words += f"; with probability {1.0 - alpha:g} it is within {within:.4g} of the best of {len(means)}"
    return Choice(best, within, words)


def assumptions(scores: Scores, pairs: list[Pair], void: str, anytime: bool, by: str) -> tuple[Assumption, ...]:
    """The assumptions of the intervals, and whether they were met."""
    lag = scores.lag
    ahead = "its outcome was seen" if lag == 1 else f"any outcome of the {lag} rounds up to its own was seen"
    needs = [Assumption(f"each forecast was fixed before {ahead}", None)]
    if not anytime:
        needs.append(Assumption("the number of rounds was fixed in advance", None))
        if by == "ranges":
            needs.append(Assumption("the forecasts did not react to earlier outcomes", None))
    if void:
        needs.append(Assumption(void, False))
    elif scores.score.bounds is not None:
        low, high = scores.score.bounds
        needs.append(Assumption(f"all outcomes lie in the declared [{low:g}, {high:g}]", True))
    elif any(pair.finding is Finding.VOID for pair in pairs):
        needs.append(Assumption(scores.score.unbounded, False))
    else:
        needs.append(Assumption(scores.score.ranges, True))
    if scores.waiting:
        needs.append(Assumption("which outcomes are missing does not depend on what they are", None))
    if scores.weighted:
        needs.append(Assumption("each weight was fixed before its outcome", None))
    return tuple(needs)
