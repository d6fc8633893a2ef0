"""The best fixed predictor of a loss with one kink, such as the absolute and the hinge loss, with few coordinates.

    phi(z) = max(low (z - k), high (z - k)),     k the kink of the row, low <= high its slopes

Its Moreau envelope of width d has the slope r = (z - k)/d, clipped to [low, high]. Newton's method minimises the sum of
envelopes, which are quadratic in pieces, for smaller and smaller d. The slopes r are a dual point: -phi*(r) = -r k.
With few rows a linear program gives the end of that path.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.floats import EPS
from ...kernels.losses import Absolute, Hinge
from ...online.margins import each_loss, each_slope
from . import clock
from .predictor import FAR, NEAR, FixedPredictor, beyond, column_sizes, inverse, percent, sum_rounding, target_size
from .unpenalised import bounded_below, solved

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

KINKS: dict[type, Any] = {  # where a row's loss has its kink
    Absolute: lambda loss, y: y,
    Hinge: lambda loss, y: loss.margin * y,
}
PROGRAM = 40_000  # numbers in the rows up to which the linear program is solved
STAGES, STEPS = 12, 40  # envelopes, and Newton's steps for each
ENOUGH = 1e-6  # relative gap at which the search ends
DAMP = 1e-10  # of the curvature, added where few rows are near their kink


def slopes_beside(loss: Any, kink: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The slopes below and above each kink, whatever its size."""
    low, high = (each_slope(loss, np.nextafter(kink, end), y) for end in (-np.inf, np.inf))
    return low, high


class Path:
    """The best u and lower bound so far, over the reach."""

    def __init__(self, data: Data, loss: Any, a: Floats) -> None:
        self.data, self.loss, self.a = data, loss, a
        self.kink = KINKS[type(loss)](loss, data.y)
        self.low, self.high = slopes_beside(loss, self.kink, data.y)
        self.shrink = inverse(column_sizes(data, a))
        self.reach = FAR * target_size(data, a, loss)
        self.u, self.least, self.lower = np.zeros(data.width), math.inf, -math.inf

    def at(self, u: Floats) -> Floats:
        """The margins of u, which is kept if it is the best."""
        z = self.data.margins(u)
        value = float(self.a @ each_loss(self.loss, z, self.data.y))
        if value < self.least:
            self.u, self.least = u, value
        return z

    def below(self, r: Floats) -> Floats:
        """The sum of slopes r times rows; the lower bound that they show is kept if it is the best."""
        g = self.data.combine(self.a * r)
        size = float(np.linalg.norm(self.shrink * g)) + sum_rounding(self.data, self.a, r)
        dual = self.a * r * self.kink
        found = -float(dual.sum()) - 8.0 * EPS * float(np.abs(dual).sum()) - size * self.reach
        self.lower = max(self.lower, found)
        return g

    @property
    def gap(self) -> float:
        return max(0.0, self.least - self.lower)


def kinked(data: Data, loss: Any, a: Floats) -> FixedPredictor:
    """The u that minimises Sigma a phi(u . x, y), up to a gap."""
    path = Path(data, loss, a)
    path.at(path.u)
    path.below(np.where((path.low <= 0.0) & (path.high >= 0.0), 0.0, path.low))  # u = 0 and nothing known
    if data.rounds * data.width <= PROGRAM:
        by_program(path)
    if path.gap > ENOUGH * path.least:
        by_envelopes(path)
    reach = math.inf if farthest(path) <= path.reach else path.reach
    found = FixedPredictor(path.u, path.least, path.gap, "", reach)
    found = bounded_below(loss, found)
    return found._replace(how=f"{percent(found.gap, found.loss)}{beyond(found.reach)}")


def farthest(path: Path) -> float:
    """How far away a better u can be, where both slopes of the loss cost something; infinite where that is not known.

    With s the flatter slope, s Sigma a |z - k| <= L gives Sigma a |z| <= L/s + Sigma a |k|; and Sigma a |z| is at least
    Sigma a z^2 / max |z| >= l W |D u| / sqrt(n W / min a), l the least eigenvalue of the scaled Gram matrix over W.
    """
    a, on = path.a, path.a > 0.0
    flat = float(np.minimum(-path.low, path.high)[on].min())
    if not (flat > 0.0 and path.shrink.all()):
        return math.inf
    weight = float(a.sum())
    gram, _ = path.data.moments(a, np.zeros(path.data.rounds))
    least = float(np.linalg.eigvalsh(gram * np.outer(path.shrink, path.shrink))[0]) / weight - 1e-12
    if not least > 0.0:
        return math.inf
    most = path.least / flat + float(a @ np.abs(path.kink))
    return most * math.sqrt(path.data.width * weight / float(a[on].min())) / (least * weight)


def by_program(path: Path) -> None:
    """Minimise Sigma a s over s >= low (z - k) and s >= high (z - k): as the dual, whose solution has both."""
    from scipy.optimize import linprog

    data, on = path.data, np.flatnonzero(path.a > 0.0)
    X = data.matrix()[on] * path.shrink
    a, low, high, kink = path.a[on], path.low[on], path.high[on], path.kink[on]
    top = float(np.abs(a).max(initial=0.0))
    if not top > 0.0:
        return
    a = a / top
    # max -Sigma alpha k with a low <= alpha <= a high and Sigma alpha x = 0; its multipliers are u
    size = float(np.abs(kink).max(initial=0.0)) or 1.0
    bounds = np.c_[a * low, a * high]
    found = linprog(kink / size, A_eq=X.T, b_eq=np.zeros(data.width), bounds=bounds, method="highs-ds")
    if found.status != 0:
        return
    r = np.zeros(data.rounds)
    r[on] = np.clip(found.x / a, low, high)
    path.below(r)
    for sign in (1.0, -1.0):
        u = sign * size * path.shrink * found.eqlin.marginals
        if np.isfinite(u).all():
            path.at(u)


def by_envelopes(path: Path) -> None:
    """Newton's method on envelopes of smaller and smaller width."""
    width = max(target_size(path.data, path.a, path.loss), 1e-300)
    u = path.u
    for _ in range(STAGES):
        u = minimised(path, u, width)
        clock.tell("the best fixed predictor", path.gap / path.least if path.least > 0.0 else 0.0)
        if path.gap <= max(ENOUGH, NEAR) * path.least or clock.late():
            return
        width *= 0.2


def minimised(path: Path, u: Floats, width: float) -> Floats:
    """The u that minimises the sum of envelopes of a width, by Newton's method with halved steps."""
    data, a, shrink = path.data, path.a, path.shrink

    def envelope(u: Floats) -> tuple[float, Floats, Floats]:
        off = path.at(u) - path.kink
        r = np.clip(off / width, path.low, path.high)
        return float(a @ (r * off - 0.5 * width * r * r)), r, off

    value, r, off = envelope(u)
    for _ in range(STEPS):
        g = path.below(r)
        inside = (off / width > path.low) & (off / width < path.high)
        gram, _ = data.moments(np.where(inside, a / width, 0.0), np.zeros(data.rounds))
        H = gram * np.outer(shrink, shrink)
        H[np.diag_indices(data.width)] += DAMP * float(a.sum()) / width
        step, _ = solved(H, shrink * g)
        fall = float(step @ (shrink * g))
        if fall <= 1e-10 * abs(value) or path.gap <= ENOUGH * path.least or clock.late():
            break
        length = 1.0
        while length > 1e-8:
            new = u - length * shrink * step
            now, r_new, off_new = envelope(new)
            if now < value - 1e-4 * length * fall:
                break
            length *= 0.5
        else:
            break
        u, value, r, off = new, now, r_new, off_new
    return u
