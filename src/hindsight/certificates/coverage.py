"""The certificate of prediction intervals: their coverage with bounds that hold on any rows, and their widths."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formatting import _n, _plain, brief
from ..kernels.coverage import FLOOR, OCTAVES, PARTS
from ..online.coverage import GAMMA
from . import theorems
from .theorems import Verdict
from .wording import TONES, card

if TYPE_CHECKING:
    from ..online.coverage import Coverage


@dataclass(frozen=True)
class CoverageCertificate:
    """A statement about the intervals of the progressive predictions of a run; it assumes nothing about the rows.

    Attributes
    ----------
    verdict : Verdict
        The verdict on the coverage: HOLDS, BROKEN, or VOID if nothing was learnt or a sum is not finite.
    asked, covered : float
        The nominal coverage, and the weighted fraction of the rows that were covered.
    low, high : float
        The bounds on `covered`.
    rounds : int
        The number of rows.
    weight : float
        Their total weight.
    exact : float
        The weight of the misses that did not occur because rows were predicted exactly, at width 0.
    boundless : int
        The number of rows whose interval was not finite.
    stretch : float
        The bound on how far the weight of the misses may be from its nominal value, over any consecutive rows.
    worst : float
        How far it was, over the worst stretch of consecutive rows.
    width : float
        The mean width of the intervals; for sets of labels, twice the mean threshold. Infinite with `boundless` rows.
    fixed : float
        The width of the best fixed interval in hindsight, approximately.
    loss, fixed_loss : float
        The summed pinball losses of the intervals and of the best fixed interval.
    bound : float
        The bound on `loss`; NaN if nothing is promised.
    loss_verdict : Verdict
        Whether `loss` is within `bound`; VOID with `boundless` rows.
    score : float
        The mean interval score: the width, plus 2/(1 - asked) times the distance of a target outside the interval.
    sets : bool
        Whether these are sets of labels. A set contains the labels whose probability is at least 1 - width/2.
    """

    verdict: Verdict
    asked: float
    covered: float
    low: float
    high: float
    rounds: int
    weight: float
    exact: float
    boundless: int
    stretch: float
    worst: float
    width: float
    fixed: float
    loss: float
    fixed_loss: float
    bound: float
    loss_verdict: Verdict
    score: float
    sets: bool = False

    @property
    def means(self) -> dict[str, float]:
        """The mean width of the intervals, and the mean of their scores."""
        return {"width": self.width, "interval_score": self.score}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and None (for NaN), ready for JSON."""
        return dict(_plain(asdict(self) | {"verdict": self.verdict.value, "loss_verdict": self.loss_verdict.value}))

    def brief(self) -> list[str]:
        """The same in two lines."""
        head, covered, *_ = self.lines()
        return [head, covered if self.sets else f"{covered}; mean width {brief(self.width)}"]

    def lines(self) -> list[str]:
        """The whole certificate as lines of text."""
        per = 1.0 / self.weight if self.weight else math.nan
        part = f"{100 * self.covered:.4g} % of {self.rounds:,} rows, asked {100 * self.asked:.4g} %"
        what = "sets of labels" if self.sets else "intervals"
        lines = [
            f"{self.verdict.value}: {what} cover ({theorems.COVERAGE.source})",
            f"  covered {part}; guaranteed between {100 * self.low:.4g} and {100 * self.high:.4g} % on any rows",
            f"  over any stretch misses differ from those asked for by at most {_n(self.stretch)}, "
            f"over the worst one by {_n(self.worst)}",
        ]
        if self.exact:
            lines.append(f"  rows met exactly, at width 0, owe {_n(self.exact)} misses: no interval is shorter")
        if self.sets:
            least = brief(1.0 - 0.5 * self.width), brief(1.0 - 0.5 * self.fixed)
            lines.append(
                f"  a set has every label of probability {least[0]} or more, on average over the rows; the best fixed "
                f"threshold in hindsight is {least[1]}"
            )
        else:
            lines.append(f"  mean width {_n(self.width)}, of the best fixed interval in hindsight {_n(self.fixed)}")
        if self.boundless:
            lines.append(f"  {self.boundless:,} rows had no finite interval: of the pinball loss nothing is promised")
        else:
            lines.append(
                f"  {self.loss_verdict.value}: pinball loss {_n(self.loss * per)} per row, best fixed "
                f"{_n(self.fixed_loss * per)}, guaranteed at most {_n(self.bound * per)}"
            )
        return [*lines, f"  {theorems.COVERAGE.statement}"]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        head, *rest = self.lines()
        return card(html.unescape(head), [], TONES[self.verdict], rest=rest)


def covered_so_far(tracker: Coverage) -> tuple[float, float, float]:
    """The fraction of the rows so far that intervals covered, NaN before the first row, and the bounds on it."""
    at = tracker.sums[0]
    per = 1.0 / float(at.weight) if at.weight else math.nan
    low, high = theorems.coverage(GAMMA, tracker.alpha, float(at.most), float(at.carried))
    most = min(1.0, tracker.asked + (float(at.spared) - low) * per)
    return 1.0 - float(at.missed) * per, max(0.0, tracker.asked - high * per), most


def certify_coverage(tracker: Coverage, sets: bool = False) -> CoverageCertificate:
    """The certificate of a tracker over the rows that it has followed; the tracker holds all sums that are needed."""
    at, alpha = tracker.sums[0], tracker.alpha
    weight, net = float(at.weight), float(at.missed - alpha * at.weight + at.spared)
    low, high = theorems.coverage(GAMMA, alpha, float(at.most), float(at.carried))
    stretch, worst = theorems.coverage_of_stretch(GAMMA, alpha, float(at.most)), float(max(at.rise, at.fall))
    moved = float(at.most * at.level - at.carried) / GAMMA
    checks = ((net, high), (-net, -low), (worst, stretch), (abs(net - moved), 0.0))
    verdict = worst_of([theorems.verdict(each, most, weight + stretch)[0] for each, most in checks])
    fixed, rival, bound = 0.0, 0.0, float(at.pinball)
    if at.first_score:  # otherwise all scores were 0
        u, lost, bounds, below = rivals_of(tracker)
        fixed = float(np.interp(tracker.asked * weight, below, u, left=0.0)) if u.size else math.nan
        rival, bound = (float(each.min(initial=math.inf)) for each in (lost, bounds))
    total = float(tracker.bins[1].sum())
    finite = at.boundless == 0.0 and math.isfinite(bound)
    per = 1.0 / weight if weight else math.nan
    return CoverageCertificate(
        verdict if weight else Verdict.VOID,
        tracker.asked,
        *covered_so_far(tracker),
        int(at.rounds),
        weight,
        float(at.spared),
        int(at.boundless),
        stretch,
        worst,
        float(at.widths) * per if at.boundless == 0.0 else math.inf,
        2.0 * fixed,
        float(at.pinball) if at.boundless == 0.0 else math.inf,
        rival,
        bound if finite else math.nan,
        theorems.verdict(float(at.pinball), bound, total)[0] if finite else Verdict.VOID,
        2.0 * per * (float(at.pinball) / alpha + total) if at.boundless == 0.0 else math.inf,
        sets,
    )


def worst_of(verdicts: list[Verdict]) -> Verdict:
    """BROKEN if any verdict is, otherwise VOID if any is, otherwise HOLDS."""
    return next((each for each in (Verdict.BROKEN, Verdict.VOID) if each in verdicts), Verdict.HOLDS)


def rivals_of(tracker: Coverage) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Fixed half-widths some 4 % apart, their losses, the bounds they give for the run, and the weight of scores below.

    The half-widths are edges of the bins of scores. All scores of a bin lie on one side of an edge, so the losses are
    exact. No member is narrower than a fixed fraction of the largest score, so narrower widths are left out; the result
    may be empty.
    """
    at, alpha = tracker.sums[0], tracker.alpha
    c, sums = tracker.bins
    place = np.arange(1, c.size)
    with np.errstate(over="ignore", under="ignore"):
        power = math.frexp(at.first_score)[1] - OCTAVES // 2 + place // PARTS
        u = np.ldexp(0.5 + place % PARTS / (2.0 * PARTS), power.astype(np.int64))
    fits = (u >= FLOOR * at.top) & np.isfinite(u) & (u > 0.0)
    u, below, under = u[fits], np.cumsum(c)[:-1][fits], np.cumsum(sums)[:-1][fits]
    lost = (1.0 - alpha) * (sums.sum() - under - u * (c.sum() - below)) + alpha * (u * below - under)
    each = ((at.most / m.pace, m.logs, m.starts, m.price) for m in tracker.members)
    apart = np.min([theorems.tracked_width(u, *taken) for taken in each], axis=0)
    met = float(at.raised + at.opening)
    bound = theorems.mixed_widths(lost, apart, len(tracker.members), float(at.hedge), float(at.excess), met)
    return u, lost, bound, below
