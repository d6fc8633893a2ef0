"""What checks of a stream found."""

import math
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

from hindsight.certificates.theorems import Verdict

EPS = sys.float_info.epsilon


EQUAL = 1e-9  # relative; what the bounds of two programs may differ by, and the band of a verdict


class Complaint(NamedTuple):
    """Something false: the check that found it, and the numbers."""

    kind: str
    text: str


@dataclass
class Outcome:
    """What `check` found, and the largest measured/bound."""

    complaints: list[Complaint] = field(default_factory=list)
    ratio: float = 0.0
    verdicts: list[Verdict] = field(default_factory=list)

    def say(self, kind: str, text: str) -> None:
        self.complaints.append(Complaint(kind, text))

    def near(self, kind: str, name: str, a: float, b: float, size: float = 0.0) -> None:
        """Complain unless a and b agree to `EQUAL`, relative to them and to the sums they come from."""
        if not abs(a - b) <= EQUAL * max(abs(a), abs(b), size):
            self.say(kind, f"{name}: {a!r} is not {b!r}")

    def under(self, name: str, measured: float, bound: float, size: float) -> None:
        """Complain if measured is above the bound by more than a verdict's band."""
        if math.isinf(bound):
            return
        if not measured <= bound + EQUAL * (abs(bound) + size):
            self.say("bound violated", f"{name}: {measured!r} > {bound!r}")
        if bound > 1e-9 * size and bound > 0.0:
            self.ratio = max(self.ratio, measured / bound)
