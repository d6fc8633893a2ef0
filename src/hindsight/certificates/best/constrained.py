"""The best fixed predictor in the set of a multiplicative geometry, with few coordinates.

Newton's method, each step of which minimises a quadratic model over the whole set. The set is the convex hull of its
corners: r e_i on the simplex, and +-r e_i (and 0, between them) in the L1 ball. For a convex L every point u shows

    min over the set of L  >=  L(u) + min over the corners w of g . (w - u),      g the gradient at u.

Losses with a kink are replaced by envelopes of smaller and smaller width, as in `kinked`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.floats import EPS
from ...online.margins import each_curvature, each_loss, each_slope
from . import clock
from .kinked import KINKS, PROGRAM, slopes_beside
from .predictor import FixedPredictor, percent, rounding_of, target_size

if TYPE_CHECKING:
    from ...kernels.floats import Floats
    from ...rows.data import Data

STEPS, STAGES = 40, 14
ENOUGH = 1e-7  # relative gap at which the search ends


class Corners:
    """The corners of a geometry's set."""

    def __init__(self, geometry: Any, width: int) -> None:
        self.radius, self.signed, self.width = float(geometry.radius), geometry.name != "simplex", width

    def start(self) -> Floats:
        """A point in the middle of the set."""
        return np.zeros(self.width) if self.signed else np.full(self.width, self.radius / self.width)

    def least(self, g: Floats) -> float:
        """The least of g . w over the set."""
        return -self.radius * float(np.abs(g).max()) if self.signed else self.radius * float(g.min())

    def lowest(self, g: Floats) -> Floats:
        """The corner where g . w is least."""
        k = int(np.abs(g).argmax() if self.signed else g.argmin())
        corner = np.zeros(self.width)
        corner[k] = -math.copysign(self.radius, g[k]) if self.signed else self.radius
        return corner

    def columns(self, R: Floats) -> Floats:
        """R times each corner."""
        return self.radius * (np.hstack((R, -R)) if self.signed else R)

    def mixed(self, p: Floats) -> Floats:
        """The mean of the corners with weights p."""
        n = self.width
        return self.radius * (p[:n] - p[n:] if self.signed else p)

    def words(self) -> str:
        """The set in words."""
        return f"|u|₁ {'≤' if self.signed else '='} {self.radius:g}"


def minimiser(corners: Corners, H: Floats, g: Floats, u: Floats) -> Floats | None:
    """The w in the set that minimises g . w + 1/2 (w - u) . H (w - u), or None if the solver gives up.

    Where H is too small to be divided by, that of g . w alone. With R^T R = H it is the point of the hull of R corners
    that is nearest to b = R u - R^-T g. As for the hard margin, the nearest point to 0 of the hull of C's columns is
    p/Sigma p for the p >= 0 nearest to solving C p = 0, s Sigma p = s.
    """
    from scipy.optimize import nnls

    size = np.sqrt(np.maximum(np.diagonal(H), 0.0)).max(initial=0.0)
    if not size > 0.0:
        return corners.lowest(g)
    values, V = np.linalg.eigh(H / size**2)
    values = np.maximum(values, 1e-13)
    root = np.sqrt(values)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        R, b = root[:, None] * V.T, (root * (V.T @ u)) - (V.T @ g) / size**2 / root
        C = corners.columns(R) - b[:, None]
        scale = float(np.linalg.norm(C, axis=0).mean()) or 1.0
    if not (math.isfinite(scale) and np.isfinite(C).all()):  # a curvature next to nothing beside the slopes
        return corners.lowest(g)
    target = np.zeros(C.shape[0] + 1)
    target[-1] = 1.0
    try:
        p, _ = nnls(np.vstack((C / scale, np.ones(C.shape[1]))), target, maxiter=20 * C.shape[1] + 100)
    except RuntimeError:
        return None
    total = float(p.sum())
    return corners.mixed(p / total) if total > 0.0 and math.isfinite(total) else None


class Search:
    """The best u and the best lower bound so far."""

    def __init__(self, data: Data, loss: Any, a: Floats, corners: Corners) -> None:
        self.data, self.loss, self.a, self.corners = data, loss, a, corners
        self.u, self.least, self.lower = corners.start(), math.inf, -math.inf

    def at(self, u: Floats) -> tuple[Floats, Floats]:
        """Margins and losses at u, which is kept if it is the best."""
        z = self.data.margins(u)
        each = each_loss(self.loss, z, self.data.y)
        value = float(self.a @ each)
        if value < self.least:
            self.u, self.least = u, value
        return z, each

    def below(self, value: float, rounding: float, g: Floats) -> None:
        """Keep a lower bound, value + the least of g . w."""
        size = 16.0 * EPS * self.corners.radius * float(np.abs(g).sum())
        self.lower = max(self.lower, value + self.corners.least(g) - rounding - size)

    @property
    def gap(self) -> float:
        return max(0.0, self.least - self.lower)

    @property
    def done(self) -> bool:
        return self.gap <= ENOUGH * abs(self.least) or clock.late()


def in_set(data: Data, loss: Any, a: Floats, geometry: Any) -> FixedPredictor:
    """The u that minimises Sigma a phi(u . x, y) over the set of a geometry, for a smooth loss or one with a kink."""
    search = Search(data, loss, a, Corners(geometry, data.width))
    if type(loss) in KINKS:
        _by_envelopes(search)
    else:
        _by_newton(search)
    gap = search.gap
    how = f"{percent(gap, search.least)}, {search.corners.words()}"
    return FixedPredictor(search.u, search.least, gap, how)


def _by_newton(search: Search) -> None:
    data, a, loss = search.data, search.a, search.loss
    u = search.u
    for _ in range(STEPS):
        z, each = search.at(u)
        slope, value = each_slope(loss, z, data.y), float(a @ each)
        gram, g = data.moments(a * each_curvature(loss, z), a * slope)
        search.below(value - float(g @ u), rounding_of(a, each, slope, z), g)
        clock.tell("the best fixed predictor", search.gap / search.least if search.least > 0.0 else 0.0)
        if search.done:
            return
        w = minimiser(search.corners, gram, g, u)
        new = None if w is None else _shorter(lambda v: float(a @ search.at(v)[1]), value, u, w, float(g @ (w - u)))
        if new is None:
            return
        u = new


def _shorter(value_at: Any, value: float, u: Floats, w: Floats, slope: float) -> Floats | None:
    """A point between u and w, w first, where the value has fallen enough; None if there is none."""
    length = 1.0
    while slope < 0.0 and length > 1e-10:
        v = u + length * (w - u)
        if value_at(v) <= value + 1e-4 * length * slope:
            return v
        length *= 0.5
    return None


def _by_program(search: Search, kink: Floats, low: Floats, high: Floats) -> None:
    """Minimise Sigma a s over s >= low (z - k) and s >= high (z - k), z = u . x, u a mean of corners."""
    from scipy.optimize import linprog
    from scipy.sparse import block_array, csr_array, diags_array

    on = np.flatnonzero(search.a > 0.0)
    a, low, high, k = search.a[on], low[on], high[on], kink[on]
    Z = search.corners.columns(search.data.matrix()[on])  # the margins of each corner
    n, m = Z.shape[1], on.size
    rows = [[csr_array(side[:, None] * Z), -diags_array(np.ones(m))] for side in (low, high)]
    whole = csr_array(np.r_[np.ones(n), np.zeros(m)][None, :])
    found = linprog(
        np.r_[np.zeros(n), a / a.max()], A_ub=block_array(rows, format="csc"), b_ub=np.r_[low * k, high * k],
        A_eq=whole, b_eq=[1.0], bounds=[(0.0, None)] * n + [(None, None)] * m, method="highs-ds",
    )  # fmt: skip
    if found.status != 0 or not found.x[:n].sum() > 0.0:
        return
    p = np.maximum(found.x[:n], 0.0)
    search.at(search.corners.mixed(p / p.sum()))
    less, more = -found.ineqlin.marginals[:m], -found.ineqlin.marginals[m:]
    share = np.clip(less / np.maximum(less + more, 1e-300), 0.0, 1.0)
    r = np.zeros(search.data.rounds)
    r[on] = np.clip(share * low + (1.0 - share) * high, low, high)
    dual = search.a * r * kink
    g = search.data.combine(search.a * r)
    search.below(-float(dual.sum()), 8.0 * EPS * float(np.abs(dual).sum()), g)


def _by_envelopes(search: Search) -> None:
    data, a, loss = search.data, search.a, search.loss
    kink = KINKS[type(loss)](loss, data.y)
    low, high = slopes_beside(loss, kink, data.y)
    if data.rounds * data.width <= PROGRAM:
        _by_program(search, kink, low, high)
        if search.done:
            return
    width, u = max(target_size(data, a, loss), 1e-300), search.u

    def envelope(u: Floats) -> tuple[float, Floats, Floats]:
        off = search.at(u)[0] - kink
        r = np.clip(off / width, low, high)
        return float(a @ (r * off - 0.5 * width * r * r)), r, off

    for _ in range(STAGES):
        for _ in range(STEPS):
            value, r, off = envelope(u)
            inside = (off / width > low) & (off / width < high)
            gram, g = data.moments(np.where(inside, a / width, 0.0), a * r)
            dual = a * r * kink
            search.below(-float(dual.sum()), 8.0 * EPS * float(np.abs(dual).sum()), g)
            if search.done:
                return
            gram[np.diag_indices(data.width)] += 1e-9 * (float(np.diagonal(gram).max()) or 1.0)
            w = minimiser(search.corners, gram, g, u)
            if w is None or not float(g @ (w - u)) < -1e-12 * abs(value):
                break
            new = _shorter(lambda v: envelope(v)[0], value, u, w, float(g @ (w - u)))
            if new is None:
                break
            u = new
        clock.tell("the best fixed predictor", search.gap / search.least if search.least > 0.0 else 0.0)
        width *= 0.2
