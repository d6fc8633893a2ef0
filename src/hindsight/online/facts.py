"""Facts of a run: the sums and maxima that the theorems need."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ..kernels.facts import NAMES, ORDER
from ..storage.registry import storable

if TYPE_CHECKING:
    import numpy as np


@storable
@dataclass(frozen=True, repr=False)
class Facts:
    """Sums and maxima over the rounds played; rows of weight 0 are not rounds.

    Facts form a commutative monoid: ``a + b`` are the facts of the rounds of both, so chunks, shards and resumed
    runs add up. Norms are those of the rows as played, the intercept coordinate included. Below c is the weight of a
    round, z its margin before the update, eta its rate and g = c slope(z, y) x the gradient met there.

    Attributes
    ----------
    rounds : number of rounds.
    weight : sum of c.
    loss : sum of c loss(z, y), the loss whose derivative is the slope.
    square : sum of c (mean(z) - y)^2, with what z predicts through the learner's link.
    mistakes, mistake_weight, mistake_norm : rounds on the wrong side (y z <= 0 for labels -1 and 1; for targets in
        [0, 1], on the other side of 1/2), their c, and their c^2 |x|_2^2.
    target : sum of c y^2.
    gradient : sum of |g|*^2, in the dual norm of the learner's geometry.
    rate, rate_loss, rate_gradient : sums of eta, eta c loss and eta^2 |g|*^2.
    x2, xinf : largest |x|_2 and |x|_inf.
    weight_x2, weight_xinf, weight_max : largest c |x|_2^2, c |x|_inf^2 and c.
    rate_x2, rate_xinf : largest eta c |x|_2^2 and eta c |x|_inf^2.
    target_max : largest |y|.
    rate_max, rate_min : largest and smallest rate.
    """

    rounds: int = 0
    weight: float = 0.0
    loss: float = 0.0
    square: float = 0.0
    mistakes: int = 0
    mistake_weight: float = 0.0
    mistake_norm: float = 0.0
    target: float = 0.0
    gradient: float = 0.0
    rate: float = 0.0
    rate_loss: float = 0.0
    rate_gradient: float = 0.0
    x2: float = field(default=0.0, metadata={"join": max})
    xinf: float = field(default=0.0, metadata={"join": max})
    weight_x2: float = field(default=0.0, metadata={"join": max})
    weight_xinf: float = field(default=0.0, metadata={"join": max})
    weight_max: float = field(default=0.0, metadata={"join": max})
    rate_x2: float = field(default=0.0, metadata={"join": max})
    rate_xinf: float = field(default=0.0, metadata={"join": max})
    target_max: float = field(default=0.0, metadata={"join": max})
    rate_max: float = field(default=0.0, metadata={"join": max})
    rate_min: float = field(default=math.inf, metadata={"join": min})

    @classmethod
    def of(cls, facts: np.ndarray) -> Facts:
        """Return the facts in the record that the loops fill (`kernels.facts.empty_facts`)."""
        values: dict[str, Any] = dict(zip(NAMES, facts[0].item(), strict=False))  # what is said of the order comes last
        whole = {name: int(values[name]) for name in ("rounds", "mistakes")}
        return cls(**values | whole | {"x2": math.sqrt(values["x2"])})

    def __add__(self, other: Facts) -> Facts:
        joined: dict[str, Any] = {
            f.name: f.metadata.get("join", operator.add)(getattr(self, f.name), getattr(other, f.name))
            for f in fields(self)
        }
        return Facts(**joined)

    def __repr__(self) -> str:
        wrong = f", {self.mistakes:,} mistakes" if self.mistakes else ""
        return f"Facts({self.rounds:,} rounds, loss {self.loss:,.6g}, mean {self.mean_loss:.6g}{wrong})"

    def __str__(self) -> str:
        lines = [
            f"{self.rounds:,} rounds, weight {self.weight:,.6g}",
            f"loss {self.loss:,.6g}, mean {self.mean_loss:.6g}; squared error {self.square:,.6g}",
            f"mistakes {self.mistakes:,}" + ("" if self.weight_max == 1.0 else f" (weight {self.mistake_weight:,.6g})"),
            f"max |x|₂ = {self.x2:.6g}, max |x|∞ = {self.xinf:.6g}, max |y| = {self.target_max:.6g}, "
            f"Σ|g|² = {self.gradient:.6g}",
        ]
        return "\n".join(lines)

    @property
    def mean_loss(self) -> float:
        """Loss per unit of weight."""
        return self.loss / self.weight if self.weight else math.nan


def same_sums(known: np.ndarray, found: np.ndarray) -> bool:
    """Whether two runs have the same sums, to nine digits; files of earlier versions lack sums that depend on order."""
    names = NAMES + ORDER if known[0].order_norm >= 0.0 else NAMES
    return all(math.isclose(known[0][k], found[0][k], rel_tol=1e-9, abs_tol=1e-12) for k in names)
