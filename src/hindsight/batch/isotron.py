"""Isotron, and GLM-tron over epochs: a round is one pass over all rows of a single-index model y = u(w . x).

    z = X w_t    yhat = u_t(z)    w_{t+1} = w_t + eta Sigma_i p_i (y_i - yhat_i) x_i,    p the weights, summing to 1

GLM-tron is given its link u; Isotron takes u_t from the isotonic regression of y on z, and L-Isotron from the Lipschitz
isotonic regression, which makes it work on noisy data. Each margin is a sum over its row alone, so that identical rows
tie. The rows are summed in the same two halves whatever the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import RowError
from ..kernels import isotonic as kernels
from ..kernels.floats import Floats
from ..online.facts import Facts
from ..rows.checksum import add_played, begin_played, joined
from ..rows.data import Data
from ..rows.matrices import checked
from ..storage.fields import is_finite
from ..storage.registry import storable, want
from .isotonic import LARGE, Pools, check_size, fit_pools, in_two, interpolate, total_weight
from .links import LinkFunction, check_link

SERIES = ("loss", "match", "gradient", "along")  # what a history has of each round


class Curve(NamedTuple):
    """A learnt link to plot: knots z in ascending order and the mean at each; linear between, constant beyond."""

    z: Floats
    mean: Floats


@dataclass(frozen=True)
class GivenLink:
    """The link of GLM-tron, which is known."""

    function: LinkFunction
    lipschitz: float
    known: ClassVar[bool] = True

    @property
    def integral(self) -> Callable[[Floats], Floats] | None:
        """The link's integral; None if unknown."""
        return self.function.integral

    def fit(self, z: Floats, y: Floats, weight: Floats | None) -> tuple[Floats, Any]:
        """Return what the link predicts; nothing is learnt."""
        mean = self.function.u(z)
        if self.integral is None:
            check_link(self.function, z, mean)
        return mean, None

    def at(self, learnt: Any, z: Floats) -> Floats:
        """Return the link at other margins."""
        return self.function.u(z)


@dataclass(frozen=True)
class LearntLink:
    """The link of Isotron: nondecreasing, of least squares, and with a Lipschitz constant unless that is infinite."""

    constant: float
    lipschitz: float
    known: ClassVar[bool] = False
    integral: ClassVar[None] = None

    def fit(self, z: Floats, y: Floats, weight: Floats | None) -> tuple[Floats, Any]:
        """Return the fit at the margins, and its pools."""
        return fit_pools(z, y, weight, 1.0, self.constant)

    def at(self, pools: Any, z: Floats) -> Floats:
        """Return the learnt link at other margins."""
        at, value = pools.knots()
        return interpolate(at, value, z)


class RoundSums(NamedTuple):
    """A round at weights w: mean squared error, mean matching loss (NaN if unknown), g, and what the link learnt."""

    loss: float
    match: float
    gradient: Floats
    link: Any


class SingleIndexProblem:
    """All rows of a fit with their targets and weights, the link, and the step.

    Parameters
    ----------
    X : ndarray or CSR matrix
        The rows.
    y : ndarray
        Targets.
    weight : ndarray or None
        Weights of the rows; None is 1.
    link : GivenLink or LearntLink
        The link, given or learnt.
    eta : float, default None
        The step; None is 1/(lambda X2^2), with X2 the largest norm of a row that has weight.
    bias : float, default 0.0
        The value of an intercept coordinate, 0 for none.
    unit : bool, default False
        Whether to divide the rows by X2.
    names : sequence, default None
        Names of the columns, for errors.
    """

    def __init__(
        self,
        X: Any,
        y: Floats,
        weight: Floats | None,
        link: Any,
        eta: float | None = None,
        *,
        bias: float = 0.0,
        unit: bool = False,
        names: Any = None,
    ) -> None:
        X = checked(X)
        m = X.shape[0]
        cut = m // 2 if m >= LARGE else m
        c = np.ones(m) if weight is None else weight
        spans = [(0, cut), (cut, m)] if cut < m else [(0, m)]
        self.data = Data(X, y, c, bias)
        self.halves = [Data(X[a:b], y[a:b], c[a:b], bias) for a, b in spans] if len(spans) > 1 else [self.data]
        self.link, self.y, self.c, self.weight = link, y, c, weight
        total = total_weight(c)
        check_size(total, float(kernels.largest(y)))
        self.proportion, self._residual = c / total, np.empty(m)
        self.width = self.halves[0].width
        norms2 = np.concatenate([self._norms2(k, names) for k in range(len(spans))])
        norms_inf = np.concatenate([half.row_norms_inf() for half in self.halves])
        counted = c > 0.0
        largest = float(norms2[counted].max())
        self.scale = math.sqrt(largest) if unit and largest > 0.0 else 1.0
        self.x2, self.xinf = math.sqrt(largest) / self.scale, float(norms_inf[counted].max()) / self.scale
        self.eta = eta if eta is not None else 1.0 / (link.lipschitz * (self.x2**2 or 1.0))

    def _norms2(self, k: int, names: Any) -> Floats:
        try:
            return self.halves[k].finite_norms2(names)
        except RowError as error:
            raise RowError(k * self.halves[0].rounds + error.row, error.message) from None

    def checksum(self) -> tuple[int, ...]:
        """Return the checksum of the rows, targets and weights."""
        sums = begin_played()
        for half in self.halves:
            for first, rows, count in half.blocks():
                part = slice(first, first + count)
                add_played(sums, rows, count, half.y[part], half.c[part])
        return joined((), sums)

    def margins(self, w: Floats) -> Floats:
        """Return w . x of every row, computed from the row alone."""
        out = np.empty(self.y.size)
        v = w / self.scale

        def work(k: int) -> None:
            first = k * self.halves[0].rounds
            out[first : first + self.halves[k].rounds] = self.halves[k].margins(v)

        in_two(work, len(self.halves))
        return out

    def mean(self, values: Floats) -> float:
        """Return the weighted mean over the rows."""
        return float(kernels.weighted_sum(self.proportion, values))

    def round(self, w: Floats, t: int) -> RoundSums:
        """Return the sums of round t (from 1) at w; a ValueError if a margin is not finite."""
        z = self.margins(w)
        check_margins(kernels.largest(z), t, self.eta)
        mean, link = self.link.fit(z, self.y, self.weight)
        loss, integral = kernels.residuals(self.y, mean, self.proportion, self._residual), self.link.integral
        match = math.nan if integral is None else self.mean(integral(z) - self.y * z)
        return RoundSums(float(loss), match, self.combine(self._residual), link)

    def matching_loss(self, u: Floats) -> tuple[float, Floats]:
        """Return the mean matching loss at u, and its gradient; the link's integral must be known."""
        z = self.margins(u)
        value = self.mean(self.link.integral(z) - self.y * z)
        return value, self.combine(self.proportion * (self.link.at(None, z) - self.y))

    def check(self, u: Any) -> Floats:
        """Return weights as float64, or raise a ValueError if their number is not the width."""
        return self.halves[0].check(u)

    def target_variance(self) -> float:
        """Return the mean of (y - mean of y)^2."""
        return self.mean((self.y - self.mean(self.y)) ** 2)

    def squared_targets(self) -> float:
        """Return the mean of y^2."""
        return self.mean(self.y**2)

    def largest_target(self) -> float:
        """Return the largest |y| of the rows with weight."""
        return float(np.abs(self.y[self.c > 0.0]).max())

    def combine(self, r: Floats) -> Floats:
        """Return Sigma r x."""
        sums = np.zeros((len(self.halves), self.width))

        def work(k: int) -> None:
            first = k * self.halves[0].rounds
            sums[k] = self.halves[k].combine(r[first : first + self.halves[k].rounds])

        in_two(work, len(self.halves))
        out: Floats = sums.sum(axis=0) / self.scale
        return out


@storable
@dataclass
class History:
    """The course of a fit, with one entry per round.

    Attributes
    ----------
    loss : ndarray
        Mean squared error of the training rows.
    held : ndarray or None
        The same of the held-out rows; None without any.
    match : ndarray
        Mean matching loss, if the link's integral is known; otherwise NaN.
    gradient : ndarray
        |g_t|^2, with g_t = Sigma p (y - yhat) x.
    along : ndarray
        g_t . (u - w_t), for the comparator u that was given; otherwise NaN.
    start, last : ndarray
        w_1 and w_{T+1}.
    best : int
        The best round, from 0.
    w : ndarray
        The weights of that round.
    link : Pools or None
        The pools of its link, if learnt.
    checksum : tuple of int
        That of the rows; empty if it was not kept.
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
    checksum: tuple[int, ...] = ()

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        """Refuse weights of different sizes, rounds of different numbers, and a link that is none."""
        for size, names in ((fields["w"].shape, ("w", "start", "last")), (fields["loss"].shape, SERIES)):
            for name in names:
                fits = fields[name].shape == size and len(size) == 1
                want(fits, f"`{name}` has the shape {fields[name].shape}, {size} expected")
        want(is_finite(fields["w"]) and is_finite(fields["last"]), "`w` and `last` must be finite")
        held = fields["held"]
        want(held is None or held.shape == fields["loss"].shape, "`held` must have one number per round")
        want(0 <= fields["best"] < fields["loss"].size, "`best` must be one of the rounds")
        want(fields["link"] is None or isinstance(fields["link"], Pools), "`link` must be pools")
        want(len(fields.get("checksum", ())) in (0, 3), "`checksum` must be three integers")

    def facts(self, problem: SingleIndexProblem) -> Facts:
        """Return the facts of the rounds; the loss of a round is a mean over the rows: matching loss, or square."""
        rounds, eta, total = len(self.loss), problem.eta, float(self.loss.sum())
        loss = float(self.match.sum()) if np.isfinite(self.match).all() else total
        target, largest = problem.squared_targets(), problem.largest_target()
        gradient, x2, xinf = float(self.gradient.sum()), problem.x2, problem.xinf
        return Facts(
            rounds=rounds, weight=float(rounds), loss=loss, square=total, target=rounds * target, gradient=gradient,
            rate=rounds * eta, rate_loss=eta * loss, rate_gradient=eta * eta * gradient, x2=x2, xinf=xinf,
            weight_x2=x2**2, weight_xinf=xinf**2, weight_max=1.0, rate_x2=eta * x2**2, rate_xinf=eta * xinf**2,
            target_max=largest, rate_max=eta, rate_min=eta,
        )  # fmt: skip


def check_margins(largest: float, t: int, eta: float) -> None:
    """Refuse margins that are not finite."""
    if not largest < math.inf:
        raise ValueError(f"round {t}: a margin is not finite (eta = {eta:g}); take a smaller eta")


def run_rounds(
    problem: SingleIndexProblem,
    rounds: int,
    start: Floats | None = None,
    *,
    held: SingleIndexProblem | None = None,
    comparator: Floats | None = None,
    notify: Callable[[int, float], None] | None = None,
) -> History:
    """Run so many rounds from w_1 = start.

    Parameters
    ----------
    problem : SingleIndexProblem
        The rows, the link and the step.
    rounds : int
        How many.
    start : ndarray, default None
        w_1; None is 0.
    held : SingleIndexProblem, default None
        Held-out rows that choose the best round; without them the training rows do.
    comparator : ndarray, default None
        The u of `History.along`.
    notify : callable, default None
        Called after each round with its number, from 1, and its loss.
    """
    w = np.zeros(problem.width) if start is None else start.astype(np.float64)
    first = w.copy()
    loss, match, gradient, along = (np.full(rounds, math.nan) for _ in range(4))
    other = None if held is None else np.empty(rounds)
    best, best_w, best_link = -1, w, None
    for t in range(rounds):
        sums = problem.round(w, t + 1)
        loss[t], match[t], g = sums.loss, sums.match, sums.gradient
        gradient[t] = float(g @ g)
        if comparator is not None:
            along[t] = float(g @ (comparator - w))
        if held is not None and other is not None:
            miss = held.y - problem.link.at(sums.link, held.margins(w * (held.scale / problem.scale)))
            other[t] = held.mean(miss * miss)
        by = loss if other is None else other
        if best < 0 or by[t] < by[best]:
            best, best_w, best_link = t, w, sums.link
        if not np.isfinite(gradient[t]):
            raise ValueError(f"round {t + 1}: the step is not finite (eta = {problem.eta:g}); take a smaller eta")
        w = w + problem.eta * g
        if notify is not None:
            notify(t + 1, float(by[t]))
    return History(loss, other, match, gradient, along, first, w, best, best_w, best_link, problem.checksum())
