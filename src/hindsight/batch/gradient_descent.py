"""Sweeps: gradient descent on all rows at once, and stochastic gradient descent on rows drawn with replacement (N2).

Both descend f(w) = Sigma c_i loss(w . x_i, y_i) / Sigma c_i + (l2/2) |w|^2, the intercept a constant coordinate like
any other. In each round t a vector v_t is met at w_t, and w_{t+1} = w_t - eta_t v_t:

- batch "full": v_t = grad f(w_t), one read of the rows a round;
- batch k: k rows drawn uniformly with replacement, v_t the mean of c_i m / Sigma c times the gradient of their losses,
  plus l2 w_t; so E[v_t | w_t] = grad f(w_t). They are fetched ahead and played in the order drawn.

The mean of the iterates is that of the w_t *at which gradients were taken* (the start first, the last w not), weighted
by their rates: the one that the theorem speaks of.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RowError
from ..kernels.descent import ROUNDS, SCALARS, SCALE, SQUARE, SUM, descend, gather, value
from ..kernels.online import FACTS
from ..online.facts import Facts
from ..online.run import check_start
from ..rows.matrices import explain
from ..storage.registry import is_vector, storable, want
from ..validation import check_targets, check_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..online.learners import Learner
    from ..rows.data import Data


DRAWS = 1 << 16  # rows drawn at a time


class Sweep:
    """One descent on f.

    Parameters
    ----------
    learner : the loss and the step, Euclidean and explicit.
    features : number of features, without the intercept.
    batch : rows drawn a round; None takes all of them.
    l2 : factor of |w|^2 / 2 in f, at least 0.
    intercept : whether a constant coordinate 1 joins every row.
    start : w_s, the intercept's weight last; None is 0.
    seed : of the generator that draws.
    best : whether to look for the iterate of least f: every one for a full batch, otherwise the start and one after
        each m rows drawn; and the last.
    """

    def __init__(
        self,
        learner: Learner,
        features: int,
        *,
        batch: int | None = None,
        l2: float = 0.0,
        intercept: bool = True,
        start: np.ndarray | None = None,
        seed: int = 0,
        best: bool = False,
    ) -> None:
        self.learner, self.batch, self.l2, self.seed = learner, batch, l2, seed
        self.bias = 1.0 if intercept else 0.0
        width = features + intercept
        self.start = None if start is None else check_start(learner.geometry, start, width)
        self.v, self.s, self.f = np.zeros((3, width)), np.zeros(SCALARS), np.zeros(FACTS)
        if self.start is not None:
            self.v[0] = self.start
        self.first = self.v[0].copy()
        self.s[SCALE], self.s[SQUARE] = 1.0, self.first @ self.first
        self.f[-1] = -np.inf
        self.generator = np.random.default_rng(seed)
        self.keeps_best = best
        self.best, self.best_value, self.last_value = self.first.copy(), math.inf, math.inf
        self.values: list[float] = []  # f at each iterate of a full batch

    @property
    def features(self) -> int:
        """Number of features, without the intercept."""
        return int(self.first.size - self.bias)

    @property
    def rounds(self) -> int:
        """Rounds played so far."""
        return int(self.s[ROUNDS])

    @property
    def facts(self) -> Facts:
        """Of the rounds so far: loss that of f at w_t (on the rows drawn), gradient that of v_t; norms of all rows."""
        return Facts.of(self.f)

    @property
    def weights(self) -> np.ndarray:
        """The last weights."""
        return self.s[SCALE] * self.v[0]

    @property
    def mean(self) -> np.ndarray:
        """The mean of the iterates at which gradients were taken, weighted by their rates."""
        return (self.s[SUM] * self.v[0] - self.v[2]) / self.f[9] if self.rounds else self.first.copy()

    def output(self, which: str) -> np.ndarray:
        """The "mean", "last" or "best" weights."""
        if which == "mean":
            return self.mean
        if which == "last":
            return self.weights
        if which != "best" or not self.keeps_best:
            raise ValueError(f"output {which!r} was not kept: fit with it")
        return self.best.copy() if self.best_value <= self.last_value else self.weights

    def fresh(self) -> Sweep:
        """The same sweep before its first round."""
        features = self.v.shape[1] - bool(self.bias)
        return Sweep(
            self.learner, features, batch=self.batch, l2=self.l2, intercept=bool(self.bias), start=self.start,
            seed=self.seed, best=self.keeps_best,
        )  # fmt: skip

    def objective(self, data: Data, w: np.ndarray) -> float:
        """f(w) over the rows; one pass."""
        factors, v, total = data.c / data.c.sum(), np.ascontiguousarray(w)[None], 0.0
        for first, rows, count in data.blocks():
            part = slice(first, first + count)
            total = value(rows, data.y[part], factors[part], self.learner.loss, v, total)
        return total + 0.5 * self.l2 * float(w @ w)

    def play(
        self,
        data: Data,
        rounds: int,
        *,
        stop: float = 0.0,
        tell: Callable[[int], None] = lambda rounds: None,
        names: Sequence[Any] | None = None,
    ) -> None:
        """Play so many rounds more, or raise and change nothing.

        Parameters
        ----------
        data : the rows.
        rounds : how many.
        stop : a full batch stops after the first round whose gradient's norm is at most this (above 0).
        tell : called with the number of rounds played since it was last called.
        names : of the columns, for errors.
        """
        check_targets(self.learner.targets, data.y)
        check_weights(data.c)
        survey(data, names)
        given = self.learner.rate.rates.size
        if given and self.rounds + rounds > given:
            raise ValueError(f"{given} rates were given, but there are more rounds than that")
        kept = self.v.copy(), self.s.copy(), self.f.copy(), len(self.values), self.best, self.best_value
        drawn, last = self.generator.bit_generator.state, self.last_value
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # looked for, and refused
                (self._full if self.batch is None else self._drawn)(data, rounds, stop, tell)
                if self.keeps_best:
                    self.last_value = self.objective(data, self.weights)
        except BaseException:
            self.v[:], self.s[:], self.f[:] = kept[:3]
            del self.values[kept[3] :]
            self.best, self.best_value, self.last_value = kept[4], kept[5], last
            self.generator.bit_generator.state = drawn
            raise
        self._note(data, self.rounds - int(kept[1][ROUNDS]))

    def _note(self, data: Data, rounds: int) -> None:
        """The facts that do not need the margins."""
        f, step, share = self.f, self.learner.rate, data.c / data.c.sum()
        f[0] += rounds
        f[1] += rounds
        f[7] += rounds * float(share @ data.y**2)
        on = data.c > 0.0
        f[12] = max(f[12], data.row_norms2()[on].max())
        f[13] = max(f[13], data.row_norms_inf()[on].max())
        f[16], f[19] = 1.0, max(f[19], np.abs(data.y[on]).max())
        rates = step.rates[self.rounds - rounds : self.rounds] if step.rates.size else np.zeros(0)
        rate: Callable[[float], float] = step.rate
        ends = rates if rates.size else [rate(float(t)) for t in (self.rounds - rounds + 1, self.rounds)]
        f[20], f[21] = max(f[20], max(ends)), max(f[21], -min(ends))

    def _consider(self, value: float) -> None:
        if value < self.best_value:
            self.best, self.best_value = self.weights, value

    def _full(self, data: Data, rounds: int, stop: float, tell: Callable[[int], None]) -> None:
        v, f, s, rule = self.v, self.f, self.s, self.learner.loss
        rate: Callable[[float], float] = self.learner.rate.rate
        factors, w, g = data.c / data.c.sum(), self.v[0], self.v[1]
        for _ in range(rounds):
            v[1], loss = 0.0, 0.0
            for first, rows, count in data.blocks():
                part = slice(first, first + count)
                loss = gather(rows, data.y[part], factors[part], rule, v, loss)
            here = loss + 0.5 * self.l2 * float(w @ w)
            if self.l2:
                g += self.l2 * w
            square, eta = float(g @ g), rate(s[ROUNDS] + 1.0)
            if not math.isfinite(here + eta * eta * square):
                raise ValueError(
                    f"round {self.rounds + 1}: f = {here:g} and |gradient|² = {square:g} have overflowed: "
                    "take a smaller eta, or scale the features"
                )
            if self.keeps_best:
                self._consider(here)
            self.values.append(here)
            f[2] += here
            f[8] += square
            f[9] += eta
            f[10] += eta * here
            f[11] += eta * eta * square
            v[2] -= eta * w  # SUM stays 0: the sum of iterates stands in the moment alone
            w -= eta * g
            s[ROUNDS] += 1.0
            tell(1)
            if square <= stop * stop and stop > 0.0:
                break
        if not np.isfinite(v).all():
            raise ValueError(f"round {self.rounds}: a weight is not finite: take a smaller eta, or scale the features")

    def _drawn(self, data: Data, rounds: int, stop: float, tell: Callable[[int], None]) -> None:
        batch = self.batch or 1
        _, rows, count = next(iter(data.blocks()))
        if count < data.rounds:
            raise ValueError("rows are drawn at random: give them in memory, in one C-contiguous array or CSR matrix")
        on = np.flatnonzero(data.c)
        pairs, room = np.stack((data.y, data.c * (on.size / data.c.sum())), axis=1), np.empty(batch)
        everything, look = on.size == data.rounds, -(-on.size // batch)
        left = rounds
        while left > 0:
            if self.keeps_best and self.rounds % look == 0:
                self._consider(self.objective(data, self.weights))
            size = min(left, max(1, DRAWS // batch), look - self.rounds % look if self.keeps_best else left)
            order = self.generator.integers(0, on.size, size * batch)
            order = order if everything else on[order]
            played = descend(
                rows, order, pairs, batch, self.learner.loss, self.learner.rate, self.l2,
                self.v, self.s, self.f, room,
            )  # fmt: skip
            if played < size or not np.isfinite(self.v).all():
                raise ValueError(
                    f"round {self.rounds + 1} or before: the step overflows: take a smaller eta, or scale the features"
                )
            left -= size
            tell(size)


def survey(data: Data, names: Sequence[Any] | None = None) -> None:
    """Refuse rows that hold a number that is not finite, or whose norm is not; the norms are kept with the rows."""
    q = data.row_norms2()
    if np.isfinite(q).all():
        return
    row = int(np.flatnonzero(~np.isfinite(q))[0])
    if data._X is not None:
        explain(data._X, row, float(data.y[row]), 0.0, float(q[row]), data.width, names)
    raise RowError(row, ": a value is not finite, or its square overflows")


def check_sweep(fields: dict[str, Any]) -> None:
    """Refuse the fields of a saved sweep that do not have the sizes that the compiled loop relies on."""
    from ..online.learners import Learner

    v, bias = fields["v"], fields["bias"]
    want(isinstance(fields["learner"], Learner), "the sweep's `learner` must be a learner")
    want(type(bias) is float and bias in (0.0, 1.0), "the sweep's `bias` must be 0 or 1")
    known = isinstance(v, np.ndarray) and v.dtype == np.float64 and v.ndim == 2 and v.flags.c_contiguous
    want(known, "the weights must be an array of float64 with one row per vector")
    want(len(v) == 3 and v.shape[1] > bias, f"the array of weights has the shape {v.shape}, 3 rows expected")
    sizes = {"s": SCALARS, "f": FACTS, "first": v.shape[1], "best": v.shape[1]}
    for name, size in sizes.items():
        want(is_vector(fields[name], size), f"the sweep's `{name}` must be a vector of {size} numbers")


storable(Sweep, check=check_sweep)
