"""The table of online learners: each is a rule, an update, a geometry and a step.

`TABLE` is the one of the notes. A new learner is a function that returns a `Learner` and a row there; it gains dense
and sparse rows, the command, facts and the law tests with no other edit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..kernels.geometries import Balanced, Euclidean, Simplex
from ..kernels.losses import BELL, Absolute, Clipped, Hinge, Logistic, Probit, Square, Tanh
from ..kernels.rates import RateSchedule
from ..kernels.updates import Explicit, Implicit
from ..validation import choice, number

LOSSES: dict[str, Any] = {
    "square": Square(2.0),
    "absolute": Absolute(1.0),
    "logistic": Logistic(1.0),
    "hinge": Hinge(1.0),
    "perceptron": Hinge(0.0),
}


class Link(NamedTuple):
    """A known nondecreasing link u, by its matching loss, and its Lipschitz constant."""

    rule: Any
    lipschitz: float


LINKS = {
    "identity": Link(Square(1.0), 1.0),
    "logistic": Link(Logistic(1.0), 0.25),
    "clipped": Link(Clipped(1.0), 1.0),
    "probit": Link(Probit(1.0), BELL),
    "tanh": Link(Tanh(1.0), 0.5),
}
UPDATES = {"explicit": Explicit(1.0), "implicit": Implicit(1.0)}
GEOMETRIES = ("euclidean", "simplex", "balanced")


@dataclass(frozen=True)
class Learner:
    """One online learner: how it scores, where it takes the slope, how it steps.

    ``targets`` tells what y must be: "real", "sign" (-1 or 1) or "unit" (in [0, 1]); ``score`` which of the facts it
    is judged by: "square", the squared error of what it predicts, or "loss", the loss it descends.
    """

    name: str
    loss: Any
    update: Any
    geometry: Any
    rate: RateSchedule
    targets: str
    score: str = "loss"

    def with_rates(self, rates: Any) -> Learner:
        """The same learner with these rates, one a round."""
        rates = np.array(rates, np.float64, ndmin=1)
        bad = np.flatnonzero(~((rates > 0) & (rates < np.inf)))
        if rates.ndim != 1 or bad.size:
            where = f"rates[{bad[0]}] = {float(rates[bad[0]])!r}" if bad.size else f"{rates.ndim} dimensions"
            raise ValueError(f"rates must be a sequence of numbers above 0, one a round; got {where}")
        return replace(self, rate=RateSchedule(self.rate.eta, self.rate.power, rates))


def constant(eta: float, power: float = 0.0) -> RateSchedule:
    """The step eta t^-power."""
    return RateSchedule(number("eta", eta, 0), number("power", power), np.zeros(0))


def space(geometry: str, radius: float) -> Any:
    """A geometry by name."""
    radius = number("radius", radius, 0)
    choice("geometry", geometry, GEOMETRIES)
    if geometry == "euclidean":
        return Euclidean(1.0)
    return Simplex(radius) if geometry == "simplex" else Balanced(radius)


def perceptron() -> Learner:
    """w += y x on a mistake (N2)."""
    return Learner("perceptron", LOSSES["perceptron"], UPDATES["explicit"], Euclidean(1.0), constant(1.0), "sign")


def winnow(eta: float = 0.1, margin: float | None = None, balanced: bool = True, power: float = 0.0) -> Learner:
    """Multiply by e^(eta y x) on a mistake (N3); a margin sets N3's eta = ln((1 + margin)/(1 - margin)) / 2."""
    if margin is not None:
        if number("margin", margin, 0) >= 1:
            raise ValueError(f"margin must lie between 0 and 1 (N3 takes |x|_inf <= 1), got {margin!r}")
        eta = math.atanh(margin)
    geometry = space("balanced" if balanced else "simplex", 1.0)
    return Learner("winnow", LOSSES["perceptron"], UPDATES["explicit"], geometry, constant(eta, power), "sign")


def widrow_hoff(eta: float = 0.1, update: str = "implicit", power: float = 0.0) -> Learner:
    """w -= eta (w.x - y) x (N1); `WidrowHoff(eta)` is `GD(square, eta/2)`, as the notes drop the 2 here."""
    choice("update", update, UPDATES)
    return Learner("widrow-hoff", Square(1.0), UPDATES[update], Euclidean(1.0), constant(eta, power), "real", "square")


def eg(eta: float = 0.1, radius: float | None = 1.0, update: str = "explicit", power: float = 0.0) -> Learner:
    """Multiply by e^(-eta (w.x - y) x) (N0); a radius gives signed weights of that L1 norm, None the simplex."""
    choice("update", update, UPDATES)
    geometry = space("simplex", 1.0) if radius is None else space("balanced", radius)
    return Learner("eg", Square(1.0), UPDATES[update], geometry, constant(eta, power), "real", "square")


def descent(
    loss: str = "square",
    geometry: str = "euclidean",
    eta: float = 0.1,
    update: str = "explicit",
    radius: float = 1.0,
    power: float = 0.0,
    targets: str = "real",
) -> Learner:
    """w -= eta loss'(w.x, y) x in any geometry, for any loss of the table (N0's GD and EG)."""
    choice("loss", loss, LOSSES)
    choice("update", update, UPDATES)
    if loss == "logistic":
        targets = "unit"
    elif loss in ("hinge", "perceptron"):
        targets = "sign"
    return Learner("descent", LOSSES[loss], UPDATES[update], space(geometry, radius), constant(eta, power), targets)


def glm_tron(link: str = "logistic", eta: float | None = None, power: float = 0.0) -> Learner:
    """w -= eta (u(w.x) - y) x for a known link u (N4); eta None is 1/lambda, right for |x|_2 <= 1."""
    choice("link", link, LINKS)
    rule, lipschitz = LINKS[link]
    eta = 1.0 / lipschitz if eta is None else eta
    return Learner("glm-tron", rule, UPDATES["explicit"], Euclidean(1.0), constant(eta, power), "real", "square")


class Row(NamedTuple):
    """A line of the table of learners."""

    name: str
    make: Any
    task: str
    geometry: str
    slope: str
    when: str
    source: str


TABLE = (
    Row("perceptron", perceptron, "classify", "Euclidean", "-y", "only if y(w.x) <= 0", "N2"),
    Row("winnow", winnow, "classify", "balanced or simplex", "-y", "only if y(w.x) <= 0", "N3 Theorem 1.1"),
    Row("widrow-hoff", widrow_hoff, "regress", "Euclidean", "w.x - y, or /(1 + eta|x|^2)", "always", "N1 Theorem 1.3"),
    Row("eg", eg, "regress", "balanced or simplex", "w.x - y", "always", "N0"),
    Row("descent", descent, "either", "any", "d loss / d(w.x)", "always", "N0, N2"),
    Row("glm-tron", glm_tron, "regress", "Euclidean", "u(w.x) - y", "always", "N4 Theorem 1.1"),
)
BY_NAME = {row.name: row for row in TABLE}
