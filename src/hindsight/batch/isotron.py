"""Isotron and GLM-tron over epochs: each round is one pass over all rows of a single-index model y = u(w . x).

    z = X w_t    yhat = u_t(z)    w_{t+1} = w_t + eta Sigma_i p_i (y_i - yhat_i) x_i,    p the weights, summing to 1

GLM-tron is given its link u. Isotron takes u_t from the isotonic regression of y on z, and L-Isotron from the Lipschitz
isotonic regression, which makes it work on noisy data. Each margin is computed from its row alone, so that identical
rows have identical margins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..kernels import isotonic as kernels
from ..kernels.floats import Floats
from ..online.facts import Facts
from ..rows.data import Data
from ..rows.matrices import checked
from ..rows.table import Table
from ..storage.fields import is_finite
from ..storage.registry import storable, want
from .isotonic import Pools, check_size, fit_pools, in_halves, interpolate
from .links import LinkFunction, check_link

SERIES = ("loss", "match", "gradient", "along")  # what a history has of each round


class Curve(NamedTuple):
    """A learnt link for plotting: knots z in ascending order and the mean at each; linear between, constant beyond."""

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
        """Return the predictions of the link; nothing is learnt."""
        mean = self.function.u(z)
        if self.integral is None:
            check_link(self.function, z, mean)
        return mean, None

    def at(self, learnt: Any, z: Floats) -> Floats:
        """Return the predictions of the link at other margins."""
        return self.function.u(z)


@dataclass(frozen=True)
class LearntLink:
    """The link of Isotron: the nondecreasing least-squares fit, with a Lipschitz constant unless that is infinite."""

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
    """A round at weights w: mean squared error, mean matching loss (NaN if unknown), g, and the learnt link."""

    loss: float
    match: float
    gradient: Floats
    link: Any


def round_sums(data: Data, v: Floats, total: float, link: Any) -> Floats:
    """Return the squared error of rows under a link, their matching loss (NaN if unknown), and Sigma p (y - mean) x.

    All are divided by `total`, which is the total weight of the rows if means are wanted. The error is NaN if a margin
    is not finite.
    """
    z, factors = data.kept_margins(v), data.factors(total)
    residual = np.empty(z.size)

    def part(a: int, b: int) -> tuple[float, float]:
        z_, y, own, match = z[a:b], data.y[a:b], factors[a:b], math.nan
        with np.errstate(over="ignore", invalid="ignore"):  # the sums are looked at
            mean = link.fit(z_, y, None)[0] if np.isfinite(z_).all() else np.full(b - a, math.nan)
            if link.integral is not None:
                match = float(kernels.weighted_sum(own, link.integral(z_) - y * z_))
        return kernels.residuals(y, mean, own, residual[a:b]), match

    return np.concatenate((np.sum(in_halves(part, z.size), axis=0), data.combine(residual)))


def target_sums(data: Data, mean: float) -> Floats:
    """Return the sums of c (y - mean), and of c (y - mean)^2."""
    off = data.y - mean
    return np.array([data.c @ off, data.c @ off**2])


class IndexProblem:
    """The sums over a table that rounds need, under a known link, and the step.

    Parameters
    ----------
    table : Table
        The rows with their targets and weights.
    link : GivenLink or LearntLink
        The link.
    eta : float, default None
        The step; None is 1/(lambda X2^2), with X2 the largest norm of a row that has weight.
    unit : bool, default False
        Whether to divide the rows by X2.
    names : sequence, default None
        Names of the columns, for errors.
    """

    def __init__(
        self, table: Table, link: Any, eta: float | None = None, *, unit: bool = False, names: Any = None
    ) -> None:
        self.table, self.link, self.width = table, link, table.width
        self.measured = measured = table.measured("real", names)
        check_size(measured.weight, measured.largest)
        size = math.sqrt(measured.x2)
        self.scale = size if unit and size > 0.0 else 1.0
        self.x2, self.xinf = size / self.scale, measured.xinf / self.scale
        self.eta = eta if eta is not None else 1.0 / (link.lipschitz * (self.x2**2 or 1.0))

    def round(self, w: Floats, t: int) -> RoundSums:
        """Return the sums of round t (from 1) at w; a ValueError if a margin is not finite."""
        sums = self.table.sum(round_sums, w / self.scale, self.measured.weight, self.link)
        return self.checked_sums(sums, t, None)

    def checked_sums(self, sums: Floats, t: int, link: Any) -> RoundSums:
        """Return the sums of round t with the learnt link, or refuse margins that are not finite."""
        check_margins(math.inf if math.isnan(sums[0]) else 0.0, t, self.eta)
        return RoundSums(float(sums[0]), float(sums[1]), sums[2:] / self.scale, link)

    def learnt(self, link: Any) -> Any:
        """Return what the link learnt in a round, for the history."""
        return link

    def matching_loss(self, u: Floats) -> tuple[float, Floats]:
        """Return the mean matching loss at u, and its gradient; the link's integral must be known."""
        sums = self.round(u, 1)
        return sums.match, -sums.gradient

    def check(self, u: Any) -> Floats:
        """Return weights as float64, or raise a ValueError if their number is not the width."""
        return self.table.check(u)

    def target_variance(self) -> float:
        """Return the mean of (y - mean of y)^2."""
        total = self.table.sum(target_sums, 0.0)[0]
        return float(self.table.sum(target_sums, total / self.measured.weight)[1]) / self.measured.weight

    def squared_targets(self) -> float:
        """Return the mean of y^2."""
        return self.measured.squares / self.measured.weight


class SingleIndexProblem(IndexProblem):
    """The rows of a fit in memory, under a link that is known or learnt.

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
    unit, names : bool and sequence
        As for `IndexProblem`.
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
        c = np.ones(X.shape[0]) if weight is None else weight
        self.data, self.y, self.c, self.weight = Data(X, y, c, bias), y, c, weight
        super().__init__(self.data, link, eta, unit=unit, names=names)
        self.proportion = c / self.measured.weight

    def margins(self, w: Floats) -> Floats:
        """Return w . x of every row, computed from the row alone."""
        return self.data.margins(w / self.scale)

    def mean(self, values: Floats) -> float:
        """Return the weighted mean over the rows."""
        return float(kernels.weighted_sum(self.proportion, values))

    def round(self, w: Floats, t: int) -> RoundSums:
        """Return the sums of round t (from 1) at w; a ValueError if a margin is not finite."""
        if self.link.known:
            return super().round(w, t)
        z, residual = self.margins(w), np.empty(self.y.size)
        check_margins(kernels.largest(z), t, self.eta)
        mean, link = self.link.fit(z, self.y, self.weight)
        loss = kernels.residuals(self.y, mean, self.proportion, residual)
        return RoundSums(float(loss), math.nan, self.data.combine(residual) / self.scale, link)


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
    known_by : tuple of float
        The sums that identify the rows (see `Measured.known_by`); empty in files of earlier versions.
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
    known_by: tuple[float, ...] = ()

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        """Refuse weights of different sizes, entries for different numbers of rounds, and a link that is not one."""
        for size, names in ((fields["w"].shape, ("w", "start", "last")), (fields["loss"].shape, SERIES)):
            for name in names:
                fits = fields[name].shape == size and len(size) == 1
                want(fits, f"`{name}` has the shape {fields[name].shape}, {size} expected")
        want(is_finite(fields["w"]) and is_finite(fields["last"]), "`w` and `last` must be finite")
        held = fields["held"]
        want(held is None or held.shape == fields["loss"].shape, "`held` must have one number per round")
        want(0 <= fields["best"] < fields["loss"].size, "`best` must be one of the rounds")
        want(fields["link"] is None or isinstance(fields["link"], Pools), "`link` must be pools")
        fields.pop("checksum", None)  # of earlier versions
        want(len(fields.get("known_by", ())) in (0, 3), "`known_by` must be three numbers")

    def facts(self, problem: IndexProblem) -> Facts:
        """Return the facts of the rounds; the loss of a round is a mean over the rows: matching loss, or square."""
        rounds, eta, total = len(self.loss), problem.eta, float(self.loss.sum())
        loss = float(self.match.sum()) if np.isfinite(self.match).all() else total
        target, largest = problem.squared_targets(), problem.measured.largest
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
    problem: IndexProblem,
    rounds: int,
    start: Floats | None = None,
    *,
    held: SingleIndexProblem | None = None,
    comparator: Floats | None = None,
    notify: Callable[[int, float], None] | None = None,
    known: History | None = None,
    keep: Callable[[int, Callable[[], History]], None] | None = None,
) -> History:
    """Run `rounds` rounds from w_1 = start.

    Parameters
    ----------
    problem : IndexProblem
        The rows, the link and the step.
    rounds : int
        The number of rounds.
    start : ndarray, default None
        w_1; None is 0.
    held : SingleIndexProblem, default None
        Held-out rows that determine the best round; None uses the training rows.
    comparator : ndarray, default None
        The u of `History.along`.
    notify : callable, default None
        Called after each round with its number, from 1, and its loss.
    known : History, default None
        The history of the first of these rounds, which are not run again.
    keep : callable, default None
        Called after each round with its number and with a function that returns the history so far.
    """
    w = np.zeros(problem.width) if start is None else start.astype(np.float64)
    first, done, series = w.copy(), 0, np.full((len(SERIES), rounds), math.nan)
    other = None if held is None else np.empty(rounds)
    best, best_w, best_link = -1, w, None
    if known is not None:
        first, w, done = known.start, known.last, len(known.loss)
        series[:, :done] = [getattr(known, name) for name in SERIES]
        best, best_w, best_link = known.best, known.w, known.link
    loss, match, gradient, along = series

    def history() -> History:
        return History(
            loss[:done], None if other is None else other[:done], match[:done], gradient[:done], along[:done], first, w,
            best, best_w, problem.learnt(best_link), problem.measured.known_by(),
        )  # fmt: skip

    for t in range(done, rounds):
        sums = problem.round(w, t + 1)
        loss[t], match[t], g = sums.loss, sums.match, sums.gradient
        with np.errstate(over="ignore"):  # looked at below
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
        w, done = w + problem.eta * g, t + 1
        if notify is not None:
            notify(done, float(by[t]))
        if keep is not None:
            keep(done, history)
    return history()
