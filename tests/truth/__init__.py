"""The truth suite: random and adversarial streams through every theorem, judged by `naive.py` and `scipy`.

    python tests/truth --streams 10000 [--family NAME] [--seed 0] [--jobs 2]

runs that many streams of each family and prints the table (`make truth`); a few of each run in `test_truth.py`. A
family draws the stream of a seed, plays it, compares it with the slow player, certifies it, and tells what is wrong:
nothing, if the package tells the truth.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from hindsight.certificates.theorems import Verdict
from truth import adaptive, best, coverage, streams
from truth.check import check
from truth.outcome import Complaint, Outcome
from truth.streams import Stream, draw, tight

__all__ = ["FAMILIES", "HAND_MADE", "Stream", "check", "draw", "judge", "survey", "tight"]


def _told(family: str, words: Callable[[int], list[str]], seed: int) -> Outcome:
    return Outcome([Complaint(family, said) for said in words(seed)])


FAMILIES: dict[str, Callable[[int], Outcome]] = {  # what is wrong with the stream of a seed
    **{family: partial(lambda family, seed: check(*draw(family, seed)), family) for family in streams.FAMILIES},
    **{family: partial(_told, family, partial(adaptive.wrong, family)) for family in adaptive.FAMILIES},
    **{family: partial(_told, family, words) for family, words in (best.FAMILIES | coverage.FAMILIES).items()},
}
HAND_MADE = {family: [s for s in tight() if s.family == family] for family in streams.FAMILIES}
CRASHES = (ArithmeticError, ValueError, np.linalg.LinAlgError)


def judge(family: str, seed: int) -> Outcome:
    """What is wrong with the stream of a seed; of a negative one, with a stream of the family made by hand."""
    try:
        return FAMILIES[family](seed) if seed >= 0 else check(HAND_MADE[family][seed], np.random.default_rng(0))
    except CRASHES as error:
        return Outcome([Complaint("crashed", f"{type(error).__name__}: {error}")])


class Tally(NamedTuple):
    """A family's line of the table."""

    family: str
    streams: int
    void: int
    violations: list[tuple[int, Complaint]]
    ratio: float  # 1 for a family without a stream made to meet its bound
    seconds: float


def survey(family: str, streams: int, seed: int = 0) -> Tally:
    """Check that many streams of a family, and its worst cases made by hand."""
    begun, violations, void, hand_made = time.perf_counter(), [], 0, HAND_MADE.get(family, [])
    ratio = 0.0 if hand_made else 1.0
    for k in [*range(seed, seed + streams), *range(-len(hand_made), 0)]:
        outcome = judge(family, k)
        violations += [(k, complaint) for complaint in outcome.complaints]
        ratio = max(ratio, outcome.ratio)
        void += Verdict.VOID in outcome.verdicts
    return Tally(family, streams + len(hand_made), void, violations, ratio, time.perf_counter() - begun)
