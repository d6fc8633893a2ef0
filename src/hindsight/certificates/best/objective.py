"""The objective: the losses of rows plus half a squared distance with a factor for every coordinate.

    F(u) = L(u) + 1/2 Sigma_i m_i (u_i - w_i)^2,      L(u) = Sigma_t a_t phi(u . x_t, y_t)

For slopes r_t of phi at any margins, with v = Sigma_t a_t r_t x_t and phi* the conjugate,

    L(u) >= -Sigma_t a_t phi*(r_t) + v . u        for every u,

so with the minimum of v . u over the set of u it is a lower bound. On all of R^n there is one only if v = 0, which
rounding rarely allows. If nothing better is known, the bound is therefore over the u with |D u|_2 <= reach, where D are
the root mean squares of the columns, and the reach is reported.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...kernels.floats import EPS
from ...kernels.losses import Absolute, Hinge
from ...online.margins import each_curvature, each_loss, each_slope

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

FAR = 1e6  # the reach, in units of the targets, where rounding hides what lies beyond
KINKS: dict[type, Any] = {  # where a row's loss has its kink
    Absolute: lambda loss, y: y,
    Hinge: lambda loss, y: loss.margin * y,
}


# ---------------------------------------------------------------- the losses of margins


class Smooth(NamedTuple):
    """A loss with a second derivative, with the targets of the rows."""

    loss: Any
    y: Floats

    def value(self, z: Floats) -> Floats:
        """phi of each margin."""
        return each_loss(self.loss, z, self.y)

    def slope(self, z: Floats) -> Floats:
        """phi' of each margin."""
        return each_slope(self.loss, z, self.y)

    def curvature(self, z: Floats) -> Floats:
        """phi'' of each margin."""
        return np.full_like(z, float(self.loss.scale)) if self.loss.quadratic else each_curvature(self.loss, z)

    def dual(self, z: Floats, r: Floats) -> tuple[Floats, Floats]:
        """-phi*(r) = phi(z) - r z for the slopes r at z, and the magnitude of these terms."""
        each = self.value(z)
        return each - r * z, np.abs(each) + np.abs(r * z)


class Envelope(NamedTuple):
    """The Moreau envelope of a loss with one kink: phi(z) = max(low (z - k), high (z - k)).

    At a width d its slope is r = (z - k)/d, clipped to [low, high]; the slopes are a dual point of phi itself.
    """

    kink: Floats
    low: Floats
    high: Floats
    width: float = 1.0

    def slope(self, z: Floats) -> Floats:
        """Its slope at each margin."""
        return np.clip((z - self.kink) / self.width, self.low, self.high)

    def value(self, z: Floats) -> Floats:
        """Its value at each margin."""
        r = self.slope(z)
        return r * (z - self.kink) - 0.5 * self.width * r * r

    def curvature(self, z: Floats) -> Floats:
        """Its second derivative at each margin."""
        inner = (z - self.kink) / self.width
        return np.where((inner > self.low) & (inner < self.high), 1.0 / self.width, 0.0)

    def dual(self, z: Floats, r: Floats) -> tuple[Floats, Floats]:
        """-phi*(r) = -r k, and its magnitude."""
        return -r * self.kink, np.abs(r * self.kink)


def envelope_of(loss: Any, y: Floats) -> Envelope:
    """The envelope of a loss in `KINKS`, with its slopes beside each kink, whatever the kink's size."""
    kink = KINKS[type(loss)](loss, y)
    low, high = (each_slope(loss, np.nextafter(kink, end), y) for end in (-np.inf, np.inf))
    return Envelope(kink, low, high)


def conjugate_of(loss: Any) -> Any:
    """The function phi*(r) of r and y, infinite if r is not a slope; None if it is not implemented for the loss."""
    if loss.quadratic:
        return lambda r, y: r * r / (2.0 * loss.scale) + r * y
    if loss.link == "logistic" and loss.targets == "unit":
        from scipy.special import xlogy

        def conjugate(r: Floats, y: Floats) -> Any:
            p, q = y + r / loss.scale, (1.0 - y) - r / loss.scale  # both to all digits where they are small
            inside = (p >= 0.0) & (q >= 0.0)
            p, q = np.clip(p, 0.0, 1.0), np.clip(q, 0.0, 1.0)
            near, far = np.minimum(p, q), np.maximum(p, q)
            return np.where(inside, loss.scale * (xlogy(near, near) + far * np.log1p(-near)), math.inf)

        return conjugate
    return None


# ---------------------------------------------------------------- the objective


class Point:
    """F at u, from one pass over the rows, and its derivatives, from a second pass on first use."""

    def __init__(self, objective: Objective, u: Floats) -> None:
        self.objective, self.u = objective, u
        data, loss = objective.data, objective.quadratic
        self.half = None
        if loss is None:
            self.z = data.margins(u)
        else:
            self.z, self.half = data.residual_gradient(u, objective.a)
        self.each = objective.phi.value(self.z)
        self.loss = float(objective.a @ self.each)
        self.divergence = 0.5 * float(objective.metric @ (u - objective.start) ** 2)
        self.value = self.loss + self.divergence

    @cached_property
    def slope(self) -> Floats:
        """The slope of phi at each margin."""
        return self.objective.phi.slope(self.z)

    @cached_property
    def curvature(self) -> Floats:
        """The second derivative of phi at each margin."""
        return self.objective.phi.curvature(self.z)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        return self.objective.data.moments(self.objective.a * self.curvature, self.objective.a * self.slope)

    @property
    def gram(self) -> Floats:
        """The second derivatives of L; for a square loss they are the same for every u."""
        if self.half is None:
            return self._moments[0]
        data, a = self.objective.data, self.objective.a
        return float(self.objective.quadratic.scale) * data.moments(a, a * data.y)[0]

    @property
    def slopes(self) -> Floats:
        """The gradient of L: v for the slopes at u."""
        return self._moments[1] if self.half is None else float(self.objective.quadratic.scale) * self.half

    @property
    def gradient(self) -> Floats:
        """The gradient of F."""
        return self.slopes + self.objective.metric * (self.u - self.objective.start)


class Objective:
    """F over rows that are read once or twice for each u.

    Parameters
    ----------
    data : Data
        The rows.
    phi : Smooth or Envelope
        The loss of margins.
    a : ndarray
        The weight of each row.
    metric, start : ndarray, default None
        m and w; None is 0.
    """

    def __init__(
        self, data: Data, phi: Any, a: Floats, metric: Floats | None = None, start: Floats | None = None
    ) -> None:
        self.data, self.phi, self.a = data, phi, a
        self.quadratic: Any = phi.loss if isinstance(phi, Smooth) and phi.loss.quadratic else None
        self.metric = np.zeros(data.width) if metric is None else metric
        self.start = np.zeros(data.width) if start is None else start

    def at(self, u: Floats) -> Point:
        """F at u."""
        return Point(self, u)


# ---------------------------------------------------------------- units and rounding


def column_sizes(data: Data, a: Floats) -> Floats:
    """D: the root mean square of every column, with weights a; one pass."""
    return np.sqrt(data.column_squares(a) / max(float(a.sum()), 1e-300))


def inverse(sizes: Floats) -> Floats:
    """1/D, and 0 for columns of zeros."""
    with np.errstate(divide="ignore", over="ignore"):
        found = np.where(sizes > 0.0, 1.0 / sizes, 0.0)
    return np.where(np.isfinite(found), found, 0.0)


def target_size(data: Data, a: Floats, loss: Any) -> float:
    """The unit of margins: the root mean square of real targets, or 1 for labels."""
    if loss.targets != "real":
        return 1.0
    return math.sqrt(float(a @ data.y**2) / max(float(a.sum()), 1e-300))


def sum_rounding(a: Floats, slope: Floats, width: int) -> float:
    """A bound on the rounding error of |D^-1 Sigma a r x|_2, for any order of summation."""
    size = math.sqrt(float(a @ slope**2) * float(a.sum()))
    return 16.0 * EPS * math.sqrt(width) * size
