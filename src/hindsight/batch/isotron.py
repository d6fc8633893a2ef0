"""Sweeps: GLM-tron over epochs (N4 §1) and Isotron (N4 §3, Algorithm 2). A round is a pass over all rows.

    z = X w_t    yhat = u_t(z)    w_{t+1} = w_t + eta Sigma_i p_i (y_i - yhat_i) x_i,    p the weights, summing to 1

GLM-tron knows its link u; Isotron takes u_t from isotonic regression of y on z (L-Isotron from Lipschitz isotonic
regression, which is what makes it work on data with noise). Margins come from a sum over the row alone, so that
identical rows tie. The rows are summed in the same two halves whatever the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import isotonic as pooling
from ..online.facts import Facts
from ..rows.matrices import Data, explain
from ..storage.registry import storable
from .isotonic import LARGE, check_size, fit_pools, in_two, read, total
from .links import Link, check_link

Floats = NDArray[np.float64]


class Curve(NamedTuple):
    """A learnt link, ready to plot: knots z ascending and the mean at each; straight between, level beyond."""

    z: Floats
    mean: Floats


class Known(NamedTuple):
    """GLM-tron's part: a link that is given."""

    link: Link
    lipschitz: float

    def fit(self, z: Floats, y: Floats, weight: Floats | None) -> tuple[Floats, Any]:
        """What the link predicts; nothing is learnt."""
        mean = self.link.u(z)
        if self.link.integral is None:
            check_link(self.link, z, mean)
        return mean, None

    def at(self, learnt: Any, z: Floats) -> Floats:
        """The link at other margins."""
        return self.link.u(z)


class Learnt(NamedTuple):
    """Isotron's part: the nondecreasing link of least squares, by pools or (`constant` finite) Lipschitz."""

    constant: float
    lipschitz: float

    def fit(self, z: Floats, y: Floats, weight: Floats | None) -> tuple[Floats, Any]:
        """The fit at the margins, and its pools."""
        return fit_pools(z, y, weight, 1.0, self.constant)

    def at(self, pools: Any, z: Floats) -> Floats:
        """The learnt link at other margins."""
        at, value = pools.knots()
        return read(at, value, z)


class Sweep:
    """Rows, targets and weights as played, the link's part, and the step.

    Parameters
    ----------
    X : float rows, a 2-D array or CSR matrix.
    y, weight : targets, and the importance of each row (None: 1).
    part : `Known` or `Learnt`.
    eta : step; None is 1/(lambda X2^2).
    bias : the value of an intercept coordinate, 0 for none.
    unit : divide the rows by X2, the largest norm.
    names : of the columns, for errors.
    """

    def __init__(
        self,
        X: Any,
        y: Floats,
        weight: Floats | None,
        part: Any,
        eta: float | None = None,
        *,
        bias: float = 0.0,
        unit: bool = False,
        names: Any = None,
    ) -> None:
        m = X.shape[0]
        cut = m // 2 if m >= LARGE else m
        whole = np.ones(m) if weight is None else weight
        spans = [(0, cut), (cut, m)] if cut < m else [(0, m)]
        self.parts = [Data(X[a:b], y[a:b], whole[a:b], bias) for a, b in spans]
        self.part, self.y, self.c, self.weight = part, y, whole, weight
        heavy = total(whole)
        check_size(heavy, float(pooling.largest(y)))
        self.share = whole / heavy
        self.width = self.parts[0].width
        norms, tops = (np.concatenate([f(d) for d in self.parts]) for f in (Data.row_norms2, Data.row_tops))
        if not pooling.largest(norms) < math.inf:
            row = int((~np.isfinite(norms)).argmax())
            explain(X, row, float(y[row]), 0.0, float(norms[row]), X.shape[1], names)
        counted = whole > 0.0
        largest = float(norms[counted].max())
        self.scale = math.sqrt(largest) if unit and largest > 0.0 else 1.0
        self.x2, self.xinf = math.sqrt(largest) / self.scale, float(tops[counted].max()) / self.scale
        self.eta = eta if eta is not None else 1.0 / (part.lipschitz * (self.x2**2 or 1.0))

    def margins(self, w: Floats) -> Floats:
        """w . x for every row, from the row alone."""
        out = np.empty(self.y.size)
        v = w / self.scale

        def work(k: int) -> None:
            first = k * self.parts[0].rounds
            out[first : first + self.parts[k].rounds] = self.parts[k].margins(v)

        in_two(work, len(self.parts))
        return out

    def mean(self, values: Floats) -> float:
        """The mean over the rows, by their weights."""
        return float(pooling.weighted(self.share, values))

    def combine(self, r: Floats) -> Floats:
        """Sigma r x."""
        sums = np.zeros((len(self.parts), self.width))

        def work(k: int) -> None:
            first = k * self.parts[0].rounds
            sums[k] = self.parts[k].combine(r[first : first + self.parts[k].rounds])

        in_two(work, len(self.parts))
        out: Floats = sums.sum(axis=0) / self.scale
        return out


@storable
@dataclass
class History:
    """What the rounds gave, an entry a round; `best` counts from 0.

    loss : mean squared error of the training rows.
    held : the same of the held-out rows (None without any).
    match : mean matching loss, where the link's integral is known.
    gradient : |g_t|^2, g_t = Sigma p (y - yhat) x.
    along : g_t . (u - w_t) for the u that was watched.
    start, last : w_1 and w_{T+1}. w, link : the weights of the best round, and the pools of its link (Isotron).
    """

    loss: Floats
    held: Floats | None
    match: Floats
    gradient: Floats
    along: Floats
    start: Floats
    last: Floats
    best: int
    w: Floats
    link: Any

    def facts(self, sweep: Sweep) -> Facts:
        """The facts: a round is a pass, its loss the mean over the rows (squared error, or the matching loss)."""
        rounds, eta, total = len(self.loss), sweep.eta, float(self.loss.sum())
        loss = float(self.match.sum()) if np.isfinite(self.match).all() else total
        target = sweep.mean(sweep.y**2)
        gradient, x2, xinf = float(self.gradient.sum()), sweep.x2, sweep.xinf
        return Facts(
            rounds=rounds, weight=float(rounds), loss=loss, square=total, target=rounds * target, gradient=gradient,
            rate=rounds * eta, rate_loss=eta * loss, rate_gradient=eta * eta * gradient, x2=x2, xinf=xinf,
            weight_x2=x2**2, weight_xinf=xinf**2, weight_max=1.0, rate_x2=eta * x2**2, rate_xinf=eta * xinf**2,
            target_max=float(np.abs(sweep.y[sweep.c > 0.0]).max()), rate_max=eta, rate_min=eta,
        )  # fmt: skip


def play_rounds(
    sweep: Sweep,
    rounds: int,
    start: Floats | None = None,
    *,
    held: Sweep | None = None,
    watch: Floats | None = None,
    tell: Callable[[int, float], None] | None = None,
) -> History:
    """The rounds from w_1 = start (0); the best iterate by the training rows, or by `held` where it is given."""
    w = np.zeros(sweep.width) if start is None else start.astype(np.float64)
    first = w.copy()
    loss, match, gradient, along = (np.full(rounds, math.nan) for _ in range(4))
    other = None if held is None else np.empty(rounds)
    best, best_w, best_link, residual = -1, w, None, np.empty(sweep.y.size)
    integral = sweep.part.link.integral if isinstance(sweep.part, Known) else None
    for t in range(rounds):
        z = sweep.margins(w)
        if not pooling.largest(z) < math.inf:
            raise ValueError(f"round {t + 1}: a margin is not finite (eta = {sweep.eta:g}); take a smaller eta")
        mean, link = sweep.part.fit(z, sweep.y, sweep.weight)
        loss[t] = pooling.residuals(sweep.y, mean, sweep.share, residual)
        if integral is not None:
            match[t] = sweep.mean(integral(z) - sweep.y * z)
        g = sweep.combine(residual)
        gradient[t] = float(g @ g)
        if watch is not None:
            along[t] = float(g @ (watch - w))
        if held is not None and other is not None:
            miss = held.y - sweep.part.at(link, held.margins(w * (held.scale / sweep.scale)))
            other[t] = held.mean(miss * miss)
        by = loss if other is None else other
        if best < 0 or by[t] < by[best]:
            best, best_w, best_link = t, w, link
        if not np.isfinite(gradient[t]):
            raise ValueError(f"round {t + 1}: the step is not finite (eta = {sweep.eta:g}); take a smaller eta")
        w = w + sweep.eta * g
        if tell is not None:
            tell(t + 1, float(by[t]))
    return History(loss, other, match, gradient, along, first, w, best, best_w, best_link)
