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
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from . import pooling
from .facts import Facts
from .monotone import LARGE, argsort, check_size, fit_pools, in_two, read, taken, total
from .rivals import Data
from .run import explain

Floats = NDArray[np.float64]


class Link(NamedTuple):
    """A known nondecreasing link: u over an array, its Lipschitz constant, and its integral (None: not known)."""

    name: str
    u: Callable[[Floats], Floats]
    lipschitz: float
    integral: Callable[[Floats], Floats] | None


ROOT = math.sqrt(2.0 * math.pi)


def _clip(z: Floats) -> Floats:
    return np.clip(z, 0.0, 1.0)


LINKS = {
    link.name: link
    for link in (
        Link("identity", lambda z: z, 1.0, lambda z: 0.5 * z * z),
        Link("logistic", expit, 0.25, lambda z: np.logaddexp(0.0, z)),
        Link("probit", ndtr, 1.0 / ROOT, lambda z: z * ndtr(z) + np.exp(-0.5 * z * z) / ROOT),
        Link("clipped", _clip, 1.0, lambda z: _clip(z) * (z - 0.5 * _clip(z))),
        Link("tanh", lambda z: expit(2.0 * z), 0.5, lambda z: 0.5 * np.logaddexp(0.0, 2.0 * z)),
    )
}


def own_link(function: Callable[..., Any], lipschitz: Any) -> Link:
    """A user's link: a function of an array, or one of a number that numba can compile."""
    known = isinstance(lipschitz, (int, float, np.integer, np.floating)) and not isinstance(lipschitz, bool)
    if not known or not 0.0 < lipschitz < math.inf:
        raise ValueError(f"a link of your own needs its Lipschitz constant, lipschitz > 0; got {lipschitz!r}")
    whole = _over_arrays(function)

    def u(z: Floats) -> Floats:
        return np.asarray(whole(z.copy()), np.float64)

    return Link(getattr(function, "__name__", "own"), u, float(lipschitz), None)


@lru_cache(maxsize=64)
def _over_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself if it takes arrays, otherwise compiled to do so."""
    probe = np.array([-1.0, 0.0, 1.0])
    try:
        if np.shape(function(probe.copy())) == probe.shape:
            return function
    except (TypeError, ValueError):
        pass
    import numba

    try:
        whole: Callable[..., Any] = numba.vectorize(function)  # type: ignore[no-untyped-call]
        whole(probe)
    except Exception as error:
        raise ValueError(f"the link takes neither an array nor what numba can compile: {error}") from error
    return whole


def check_link(link: Link, z: Floats, mean: Floats) -> None:
    """Refuse a user's link that falls, rises faster than declared, or is not finite at the margins seen."""
    if mean.shape != z.shape or not np.isfinite(mean).all():
        bad = int((~np.isfinite(mean)).argmax()) if mean.shape == z.shape else 0
        seen = float(mean.flat[bad])
        raise ValueError(f"link {link.name!r} gives {seen!r} at z = {float(z[bad])!r}, which is not finite")
    order = argsort(z)
    z, mean = taken(z, order), taken(mean, order)
    rise, run = np.diff(mean), np.diff(z)
    room = 1e-12 * max(1.0, float(np.abs(mean).max()))
    for wrong, what in ((rise < -room, "falls"), (rise > link.lipschitz * run + room, "rises faster than lipschitz")):
        if wrong.any():
            k = int(wrong.argmax())
            raise ValueError(
                f"link {link.name!r} {what}: u({float(z[k])!r}) = {float(mean[k])!r}, "
                f"u({float(z[k + 1])!r}) = {float(mean[k + 1])!r} (lipschitz = {link.lipschitz:g})"
            )


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
