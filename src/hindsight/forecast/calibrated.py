"""A sequential test of calibration: an e-process against "this forecaster is calibrated".

Calibrated means E[y | past] = h in every round, or for a quantile P(y < h | past) <= quantile <= P(y <= h | past). If
the forecaster is calibrated, each of the following bets is fair or unfavourable, and so is betting a stake on them
repeatedly:

    by recalibration     1 + f (q - h)(y - h)/((high - h)(h - low)),  f = 1, 1/2, 1/4, 1/16
    all too low or high  1 + s (y - h)/(high - low),  s = 1, 1/2, 1/4, 1/8, 1/16 and their negatives
    not extreme enough   the same times (2 h - low - high)/(high - low)

where q is the isotonic recalibration of h, learnt only from earlier rows, and the outcomes lie in [low, high]; for
outcomes 0 and 1 and f = 1 the first is the ratio of the probabilities that q and h gave to the outcome. The e-value is
a weighted mean of the products. For a quantile the outcome is whether y lies below h, and its probability the quantile.
For classes the e-value is the mean over the classes, each against the rest; for forecasts made several rounds ahead it
is the largest one of the interleaved streams, divided by their number. Proofs are in docs/theory.md#scoring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.isotonic import check_increasing, fit_pools, interpolate
from ..certificates.certificate import MARK, Assumption
from ..formatting import _plain
from ..kernels.compiler import kernel
from ..validation import whole
from .calibration import scored_rows
from .evidence import Evidence, grade
from .scores import NUMERIC, Score
from .stream import next_point

if TYPE_CHECKING:
    from collections.abc import Sequence

ALPHA = 0.05  # calibration is refuted, in words and in the chart, once the e-value has reached 1 / ALPHA
FIRST = 8  # rows before the first recalibration
GROWTH = 1.5  # of the number of rows from one recalibration to the next
SHRINK = 8.0  # a recalibrated forecast counts as its level's rows, against so many for the forecast itself
FRACTIONS = np.array([1.0, 0.5, 0.25, 0.0625])
STAKES = np.array([1.0, 0.5, 0.25, 0.125, 0.0625])
LARGE, LEAST = 1e100, 1e-250  # of the mean, which is then scaled to 1; and of a stake, which is then given up
ALTERNATIVE = (
    "bets on isotonic recalibration learnt from earlier rows, and on forecasts that are",
    "all too low, all too high, too extreme or not extreme enough",
)


@dataclass(frozen=True)
class CalibrationTest:
    """An e-process against "this forecaster is calibrated".

    Attributes
    ----------
    rounds : ndarray of int
        Numbers of rounds: 1, 2, 3, ..., with increasing steps later, the round with the largest e-value, and the last
        round.
    log_e : ndarray
        ln of the e-value after these rounds.
    evidence : Evidence
        The e-value now, the largest so far over all rounds, and the p-value that holds at every time. Once the e-value
        has reached 1/0.05, the dashed line of the chart, calibration is rejected for good and the words describe the
        largest e-value; until then they describe the current one.
    alternative : str
        The alternative that the test bets on, in words.
    assumptions : tuple of Assumption
        The assumptions of the test, and whether they were met.
    """

    rounds: np.ndarray
    log_e: np.ndarray
    evidence: Evidence
    alternative: str
    assumptions: tuple[Assumption, ...]

    @property
    def words(self) -> str:
        """The evidence as a sentence."""
        return f"evidence against calibration: {self.evidence.words} ({self.evidence.size})"

    def lines(self) -> list[str]:
        """The test as lines of text."""
        needs = [f"  {MARK[need.met]} {need.text}" for need in self.assumptions]
        return [self.words, *(f"  {line}" for line in ALTERNATIVE), *needs]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """Everything except the path as plain numbers and strings, for JSON; infinite values are None."""
        needs = [{"text": need.text, "met": need.met} for need in self.assumptions]
        out = {**self.evidence._asdict(), "alternative": self.alternative, "assumptions": needs}
        return dict(_plain(out))


def calibration_test(
    outcomes: Any,
    forecast: Any,
    weight: Any = None,
    *,
    loss: str = "square",
    bounds: tuple[float, float] | None = None,
    quantile: float | None = None,
    classes: Sequence[Any] | None = None,
    lag: int = 1,
) -> CalibrationTest:
    """Test whether a forecaster is calibrated, with a result that is valid at every time.

    Parameters
    ----------
    outcomes : array-like of shape (n_rows,)
        The outcomes in temporal order: 0 and 1, the labels of `classes`, or numbers for the quadratic, Poisson and
        pinball losses. Rows with a missing outcome (NaN) are left out.
    forecast : array-like of shape (n_rows,), or (n_rows, n_classes) with `classes`
        The forecasts: probabilities, means, or quantiles. Each one was fixed before its outcome and after the outcomes
        of earlier rows were known.
    weight : array-like of shape (n_rows,) or None, default None
        Weight of each row in the recalibration, fixed before its outcome; None is 1. All bets count equally, but rows
        of weight 0 are left out.
    loss : {"square", "log", "quadratic", "poisson", "pinball"}, default "square"
        The loss, which determines what is forecast: a probability (square, log), a mean (quadratic, poisson) or a
        quantile (pinball).
    bounds : (float, float) or None, default None
        The range of all outcomes; required for means.
    quantile : float or None, default None
        For the pinball loss: the quantile that is forecast, between 0 and 1.
    classes : sequence or None, default None
        The labels of the classes (square and log losses), in the order of the columns of `forecast`.
    lag : int, default 1
        How many rounds ahead forecasts were made: row t was forecast with the outcomes of the rows up to t - `lag`
        known.

    Returns
    -------
    CalibrationTest
        The e-values along the stream, and the result in words.

    References
    ----------
    Arnold, Henzi and Ziegel (2023); Henzi and Ziegel (2022). See docs/bibliography.md.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> h = rng.random(2000)
    >>> print(calibration_test(rng.random(2000) < h, h).evidence.words)
    no more than weak
    >>> print(calibration_test(rng.random(2000) < h**2, h).evidence.words)
    decisive
    """
    if loss == "winkler":
        raise ValueError("an interval is tested end by end: take loss='pinball' and the quantile that each end is")
    score = Score(loss, bounds, quantile, classes=None if classes is None else tuple(classes))
    if score.missing:
        raise ValueError("a test of means needs the bounds (low, high) of the outcomes")
    lag = whole("lag", lag)
    y, h, c, waiting = scored_rows(score, outcomes, forecast, weight)
    c = np.ones(y.size) if c is None else c
    rows = np.flatnonzero(c)
    y, h, c = y[rows], h[rows], c[rows]
    outside = score.outside(y)
    if outside.any():
        low, high = score.bounds or (math.nan, math.nan)
        value = float(y[outside.argmax()])
        raise ValueError(f"column 'outcome': {value!r} lies outside the declared [{low:g}, {high:g}]")
    log_e = e_process(score, y, h, c, rows, lag)
    marks = np.union1d(_marks(y.size), int(log_e.argmax()) + 1)
    top = max(-math.log(lag), float(log_e.max()))
    now, refuted = float(log_e[-1]), top >= -math.log(ALPHA)
    found = Evidence(now, top, math.exp(min(0.0, -top)), grade(top if refuted else now))
    return CalibrationTest(marks, log_e[marks - 1], found, " ".join(ALTERNATIVE), needed(score, waiting, lag))


def e_process(score: Score, y: np.ndarray, h: np.ndarray, c: np.ndarray, rows: np.ndarray, lag: int) -> np.ndarray:
    """ln e after each round: the mean over classes, and the largest of the interleaved streams over their number."""
    cases = [(score, y, h)]
    if score.classes is not None:
        cases = [(Score(), (y == k) * 1.0, h[:, k].copy()) for k in range(h.shape[1])]
    # how many outcomes were known when a row was forecast
    known = np.arange(rows.size) if lag == 1 else np.searchsorted(rows, rows - lag, side="right")
    made = [bets(*case, c, known) for case in cases]
    if lag == 1:
        return mean_stake(made, slice(None))
    most = np.full(y.size, -math.inf)
    for r in range(lag):
        mine = rows % lag == r
        most = np.maximum(most, np.append(0.0, mean_stake(made, mine))[np.cumsum(mine)])
    return most - math.log(lag)


def mean_stake(made: list[tuple[np.ndarray, ...]], rows: Any) -> np.ndarray:
    """ln of what a stake of 1, divided equally among the classes, has become after each of some rows."""
    each = []
    for *gains, prior in made:
        mine = [gain[rows] for gain in gains]
        each.append(np.empty(mine[0].size))
        play_bets(*mine, prior.copy(), each[-1])
    return reduce(np.logaddexp, each) - math.log(len(made))


def needed(score: Score, waiting: int, lag: int) -> tuple[Assumption, ...]:
    """The assumptions of the test."""
    before = "its outcome, and knew those of earlier rows"
    if lag > 1:
        before = f"any outcome of the {lag} rows up to its own, and knew all earlier ones"
    needs = [Assumption(f"each forecast was fixed before {before}", None)]
    if score.bounds is not None:
        needs.append(Assumption(f"all outcomes lie in the declared [{score.bounds[0]:g}, {score.bounds[1]:g}]", True))
    if waiting:
        needs.append(Assumption("which outcomes are missing does not depend on what they are", None))
    return tuple(needs)


def bets(score: Score, y: np.ndarray, h: np.ndarray, c: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, ...]:
    """The gain or loss of a unit stake on each alternative in every round, and the weights of the products.

    Returns
    -------
    by_fit, up, down, slope : ndarray of shape (n_rounds,)
        The gains of a unit stake on recalibration, on "too low" and on "too high" (none is below -1), and the factor of
        the stakes for "not extreme enough". An infinite gain rejects calibration.
    prior : ndarray of shape (4 + 4 * 5,)
        The weights.
    """
    prior = np.concatenate([np.full(FRACTIONS.size, 0.5 / FRACTIONS.size), np.zeros(4 * STAKES.size)])
    if score.quantile is not None:
        below, upto, level = (y < h).astype(np.float64), (y <= h).astype(np.float64), score.quantile
        q = recalibrated(upto, h, c, known, np.full(h.size, level), "auto")
        # A bet that outcomes lie below too often counts those strictly below; one that they do too rarely, all up to h.
        by_fit = (q - level) * (np.where(q > level, below, upto) - level) / (level * (1.0 - level))
        most = max(level, 1.0 - level)
        prior[FRACTIONS.size : FRACTIONS.size + 2 * STAKES.size] = 0.25 / STAKES.size
        # Too low a quantile has too few outcomes below it.
        return by_fit, (level - upto) / most, (level - below) / most, np.zeros(h.size), prior
    low, high = (0.0, 1.0) if score.loss not in NUMERIC else score.bounds or (math.nan, math.nan)
    inside = (h > low) & (h < high)
    room = np.where(inside, (high - h) * (h - low), 1.0)
    q = np.clip(recalibrated(y, h, c, known, h, True), low, high)
    by_fit = np.where(inside, (q - h) * (y - h) / room, np.where(y == h, 0.0, math.inf))
    unit = (y - h) / (high - low)
    prior[FRACTIONS.size :] = 0.125 / STAKES.size
    return by_fit, unit, unit, np.clip((2.0 * h - low - high) / (high - low), -1.0, 1.0), prior


def recalibrated(
    y: np.ndarray, h: np.ndarray, c: np.ndarray, known: np.ndarray, toward: np.ndarray, increasing: bool | str
) -> np.ndarray:
    """Each forecast after isotonic recalibration, which is refitted from time to time on the rows with known outcomes.

    The result is shrunk towards the forecast; the shrinkage is stronger the fewer rows the level of the fit is based
    on.
    """
    out, a, plain = toward.copy(), FIRST, bool((c == 1.0).all())
    while a < y.size:
        b = min(y.size, max(a + FIRST, int(a * GROWTH)))
        if (n := int(known[a])) < FIRST:
            a = b
            continue
        past = (h[:n], y[:n], None if plain else c[:n])
        rising = check_increasing(increasing, *past)
        pools = fit_pools(*past, 1.0 if rising else -1.0, math.inf, values=False)[1]
        at, level = pools.knots()
        counts = np.repeat(pools.count, 1 + (pools.left < pools.right)).astype(np.float64)
        fit, rows = interpolate(at, level, h[a:b]), interpolate(at, counts, h[a:b])
        out[a:b] = (rows * fit + SHRINK * toward[a:b]) / (rows + SHRINK)
        a = b
    return out


@kernel
def play_bets(by_fit, up, down, slope, prior, log_e):  # type: ignore[no-untyped-def]
    """Write ln of the weighted mean of the products of all bets after each round; `prior` is overwritten.

    A negligible stake is set to 0: smaller numbers are slow to compute with, and giving up a stake is never a gain.
    """
    fractions, stakes = FRACTIONS.size, STAKES.size
    offset, over = 0.0, False
    for t in range(log_e.size):
        over |= by_fit[t] == math.inf
        if over:
            log_e[t] = math.inf
            continue
        total = 0.0
        for k in range(fractions):
            stake = prior[k] * (1.0 + FRACTIONS[k] * by_fit[t])
            prior[k] = stake if stake > LEAST else 0.0
            total += prior[k]
        for k in range(stakes):
            rise, fall = STAKES[k] * up[t], STAKES[k] * down[t]
            factors = (1.0 + rise, 1.0 - fall, 1.0 + slope[t] * rise, 1.0 - slope[t] * rise)
            for j in range(4):
                at = fractions + j * stakes + k
                stake = prior[at] * factors[j]
                prior[at] = stake if stake > LEAST else 0.0
                total += prior[at]
        log_e[t] = math.log(total) + offset
        if not 1.0 / LARGE < total < LARGE:
            for k in range(prior.size):
                prior[k] /= total
            offset += math.log(total)


def _marks(count: int) -> np.ndarray:
    """1, 2, 3, ..., with increasing steps later, and the last."""
    marks = [min(count, 1)]
    while marks[-1] < count:
        marks.append(min(count, next_point(marks[-1])))
    return np.array(marks)
