"""Gradient descent on all rows at once, and stochastic gradient descent on rows drawn with replacement.

Both descend f(w) = Sigma c_i loss(w . x_i, y_i) / Sigma c_i + (l2/2) |w|^2, the intercept a constant coordinate like
any other. In each round t a vector v_t is computed at w_t, and w_{t+1} = w_t - eta_t v_t:

- batch None, all rows: v_t = grad f(w_t), one read of the rows per round;
- batch k: k rows drawn uniformly with replacement, v_t the mean of c_i m / Sigma c times the gradient of their losses,
  plus l2 w_t; so E[v_t | w_t] = grad f(w_t). They are fetched ahead and played in the order drawn.

The mean of the iterates is that of the w_t *at which gradients were taken* (the start included, the last w not),
weighted by their rates; the theorem is about this mean. At a constant rate the mean *after* the steps is known too (the
last w included, the start not): it is the mean of a descent that starts after the first step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..kernels.compiler import for_parts
from ..kernels.descent import DescentState, add_gradient, add_losses, begin_descent, descend
from ..kernels.facts import empty_facts
from ..kernels.state import restore, snapshot
from ..online.facts import Facts
from ..online.learners import Learner
from ..online.run import Coordinates, check_rounds, check_start, checked_tally
from ..rows.table import joined
from ..storage.fields import conforms, is_count, is_number, is_vector
from ..storage.registry import storable, want

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..kernels.floats import Floats
    from ..online.learners import Learner
    from ..rows.data import Data
    from ..rows.table import Measured, Table


DRAWS = 1 << 16  # rows drawn at a time
ADVICE = "take a smaller eta, or scale the features"


def loss_gradient(data: Data, loss: Any, w: Floats, total: float) -> Floats:
    """Return the losses of rows at w, divided by the weight of all rows, followed by their gradient."""
    g, value = np.zeros(w.size), 0.0
    factors, loop = data.factors(total), for_parts(add_gradient, loss)
    with np.errstate(over="ignore", invalid="ignore"):  # the sums are checked, and refused
        for first, rows, count in data.blocks():
            part = slice(first, first + count)
            value = loop(rows, data.y[part], factors[part], loss, w, g, value)
    return np.concatenate(([value], g))


def mean_loss(data: Data, loss: Any, w: Floats, total: float) -> float:
    """Return the losses of rows at w, divided by the weight of all rows."""
    factors, loop, value = data.factors(total), for_parts(add_losses, loss), 0.0
    for first, rows, count in data.blocks():
        part = slice(first, first + count)
        value = loop(rows, data.y[part], factors[part], loss, w, value)
    return value


class MeanLoss(NamedTuple):
    """The losses of all rows, divided by `total`; with the total weight this is their mean."""

    table: Table
    loss: Any
    total: float

    def at(self, w: Floats) -> tuple[float, Floats]:
        """Return the value at w and its gradient, from one sum."""
        sums = self.table.sum(loss_gradient, self.loss, w, self.total)
        return float(sums[0]), sums[1:]


class Descent(Coordinates):
    """A descent on f.

    Parameters
    ----------
    learner : Learner
        The loss and the rate; its geometry is Euclidean and its update explicit.
    features : int
        Number of features, without the intercept.
    batch : int, default None
        Rows drawn per round; None takes all of them.
    l2 : float, default 0.0
        The factor of |w|^2 / 2 in f, at least 0.
    intercept : bool, default True
        Whether every row has a constant coordinate 1.
    start : array_like, default None
        w_s, the intercept's weight last; None is 0.
    seed : int, default 0
        Seed of the generator that draws the rows.
    best : bool, default False
        Whether to keep the iterate of smallest f: of all of them for a full batch, otherwise of the start, of one after
        each m rows drawn, and of the last.

    Attributes
    ----------
    state : DescentState
        The weights, as the loops keep them.
    tally : record
        The facts so far, as the loops add them up; `facts` reads them.
    first : ndarray
        The start w_s.
    values : list of float
        f at each iterate of a full batch.
    known_by : tuple of float
        The sums that identify the rows (see `Measured.known_by`); empty in files of earlier versions.
    """

    known_by: tuple[float, ...] = ()

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
        self.state = begin_descent(width, self.start)
        self.tally = empty_facts()
        self.first = self.state.theta.copy()
        self.generator = np.random.default_rng(seed)
        self.keeps_best = best
        self.best, self.best_value, self.last_value = self.first.copy(), math.inf, math.inf
        self.values: list[float] = []

    @property
    def ordered(self) -> bool:
        """Whether the order of the rows matters, as it does if rows are drawn, but not for a full batch."""
        return self.batch is not None

    @property
    def rounds(self) -> int:
        """Rounds played so far."""
        return int(self.state.rounds[0])

    @property
    def facts(self) -> Facts:
        """Facts of the rounds so far; the loss is f at w_t, on the rows drawn, and the gradient is v_t."""
        return Facts.of(self.tally)

    @property
    def weights(self) -> np.ndarray:
        """The last weights."""
        return self.state.scale[0] * self.state.theta

    @property
    def mean(self) -> np.ndarray:
        """The mean of the iterates at which gradients were taken, weighted by their rates."""
        if not self.rounds:
            return self.first.copy()
        return (self.state.rate_sum[0] * self.state.theta - self.state.moment) / self.tally[0].rate

    def output(self, which: str) -> np.ndarray:
        """Return the "mean", "mean-after", "last" or "best" weights."""
        if which == "mean":
            return self.mean
        if which == "mean-after":
            if not self.learner.rate.is_constant():
                raise ValueError("output 'mean-after' is for a constant rate, and this descent had others")
            return self.mean + (self.weights - self.first) / max(1, self.rounds)
        if which == "last":
            return self.weights
        if which != "best" or not self.keeps_best:
            raise ValueError(f"output {which!r} was not kept: fit with it")
        return self.best.copy() if self.best_value <= self.last_value else self.weights

    def restarted(self) -> Descent:
        """Return the same descent before its first round."""
        return self._begun(self.start)

    def begun_here(self) -> Descent:
        """Return a descent that starts at the current weights and draws the rows that this one would draw next."""
        new = self._begun(self.weights)
        new.generator.bit_generator.state = self.generator.bit_generator.state
        return new

    def _begun(self, start: np.ndarray | None) -> Descent:
        return Descent(
            self.learner, self.features, batch=self.batch, l2=self.l2, intercept=bool(self.bias), start=start,
            seed=self.seed, best=self.keeps_best,
        )  # fmt: skip

    def objective(self, table: Table, w: np.ndarray) -> float:
        """Return f(w) over the rows; one pass."""
        w = np.ascontiguousarray(w)
        total = float(table.sum(mean_loss, self.learner.loss, w, table.weight))
        return total + 0.5 * self.l2 * float(w @ w)

    def play(
        self,
        table: Table,
        rounds: int,
        *,
        stop: float = 0.0,
        notify: Callable[[int], None] = lambda rounds: None,
        names: Sequence[Any] | None = None,
    ) -> None:
        """Play more rounds, or raise and change nothing.

        Parameters
        ----------
        table : Table
            The rows; if batches are drawn, they must be in memory, as `Data`.
        rounds : int
            The number of rounds.
        stop : float, default 0.0
            A full batch stops after the first round whose gradient has at most this norm; 0 never stops early.
        notify : callable, optional
            Called with the number of rounds played since the last call.
        names : sequence, default None
            Names of the columns, for errors.
        """
        if table.width != self.width:
            raise ValueError(f"the descent has {self.width} coordinates, these rows have {table.width}")
        measured = table.measured(self.learner.targets, names)
        given = self.learner.rate.rates.size
        if given and self.rounds + rounds > given:
            raise ValueError(f"{given} rates were given, but there are more rounds than that")
        state, tally = snapshot(self.state), self.tally.copy()
        kept = len(self.values), self.best, self.best_value, self.last_value
        drawn = self.generator.bit_generator.state
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # checked below, and refused
                if self.batch is None:
                    self._play_full(table, rounds, stop, notify)
                else:
                    self._play_drawn(cast("Data", table), rounds, stop, notify)
                if self.keeps_best:
                    self.last_value = self.objective(table, self.weights)
        except BaseException:
            restore(self.state, state)
            self.tally[:] = tally
            del self.values[kept[0] :]
            self.best, self.best_value, self.last_value = kept[1:]
            self.generator.bit_generator.state = drawn
            raise
        self.known_by = joined(self.known_by, measured.known_by(self.ordered))
        self._add_facts(measured)

    def _add_facts(self, measured: Measured) -> None:
        """Add the facts of rounds not counted yet that do not depend on the margins."""
        f, rate = self.tally[0], self.learner.rate
        rounds = self.rounds - int(f.rounds)
        f.rounds += rounds
        f.weight += rounds
        f.target += rounds * (measured.squares / measured.weight)
        f.x2, f.xinf = max(f.x2, measured.x2), max(f.xinf, measured.xinf)
        f.weight_max, f.target_max = 1.0, max(f.target_max, measured.largest)
        ends = rate.rates[self.rounds - rounds : self.rounds] if rate.rates.size else np.zeros(0)
        if not ends.size:
            ends = [rate.at(float(t)) for t in (self.rounds - rounds + 1, self.rounds)]
        f.rate_max, f.rate_min = max(f.rate_max, max(ends)), min(f.rate_min, min(ends))

    def _keep_if_best(self, value: float) -> None:
        if value < self.best_value:
            self.best, self.best_value = self.weights, value

    def _play_full(self, table: Table, rounds: int, stop: float, notify: Callable[[int], None]) -> None:
        mean = MeanLoss(table, self.learner.loss, table.weight)
        for _ in range(rounds):
            total, self.state.gradient[:] = mean.at(self.state.theta)
            square = self._step_full(total)
            notify(1)
            if square <= stop * stop and stop > 0.0:
                break
        self.check_finite(f"round {self.rounds}: a weight is not finite")

    def _step_full(self, total: float) -> float:
        """Take the step of a full batch, and return |grad f|^2.

        Parameters
        ----------
        total : float
            The mean loss at the weights; its gradient is in `state.gradient`.
        """
        state, f, w, g = self.state, self.tally[0], self.state.theta, self.state.gradient
        value = total + 0.5 * self.l2 * float(w @ w)
        if self.l2:
            g += self.l2 * w
        square, eta = float(g @ g), self.learner.rate.at(state.rounds[0] + 1.0)
        if not math.isfinite(value + eta * eta * square):
            raise ValueError(
                f"round {self.rounds + 1}: f = {value:g} and |gradient|² = {square:g} have overflowed: {ADVICE}"
            )
        if self.keeps_best:
            self._keep_if_best(value)
        self.values.append(value)
        f.loss += value
        f.gradient += square
        f.rate += eta
        f.rate_loss += eta * value
        f.rate_gradient += eta * eta * square
        state.moment[:] -= eta * w  # rate_sum stays 0: the moment alone is minus the sum of the iterates
        w -= eta * g
        state.rounds[0] += 1.0
        return square

    def _play_drawn(self, data: Data, rounds: int, stop: float, notify: Callable[[int], None]) -> None:
        batch, loss = self.batch or 1, self.learner.loss
        _, rows, count = next(iter(data.blocks()))
        if count < data.rounds:
            raise ValueError("rows are drawn at random: give them in memory, in one C-contiguous array or CSR matrix")
        on = np.flatnonzero(data.c)
        pairs, slopes = np.stack((data.y, data.c * (on.size / data.c.sum())), axis=1), np.empty(batch)
        all_on, epoch = on.size == data.rounds, -(-on.size // batch)  # f is evaluated once per epoch of m rows
        loop, left = for_parts(descend, loss), rounds
        while left > 0:
            if self.keeps_best and self.rounds % epoch == 0:
                self._keep_if_best(self.objective(data, self.weights))
            size = min(left, max(1, DRAWS // batch), epoch - self.rounds % epoch if self.keeps_best else left)
            order = self.generator.integers(0, on.size, size * batch)
            order = order if all_on else on[order]
            played = loop(rows, order, pairs, batch, loss, self.learner.rate, self.l2, self.state, self.tally, slopes)
            if played < size:
                raise ValueError(f"round {self.rounds + 1} or before: the step overflows: {ADVICE}")
            self.check_finite(f"round {self.rounds + 1} or before: the step overflows")
            left -= size
            notify(size)

    def check_finite(self, what: str) -> None:
        """Raise a ValueError if a number of the state is not finite."""
        if not all(np.isfinite(values).all() for values in (self.state.theta, self.state.gradient, self.state.moment)):
            raise ValueError(f"{what}: {ADVICE}")


def check_descent(fields: dict[str, Any]) -> None:
    """Refuse the fields of a saved descent that do not have the sizes that the compiled loop relies on."""
    state, bias, first, tally = (fields[name] for name in ("state", "bias", "first", "tally"))
    want(isinstance(fields["learner"], Learner), "the descent's `learner` must be a learner")
    want(type(bias) is float and bias in (0.0, 1.0), "the descent's `bias` must be 0 or 1")
    want(is_vector(first) and first.size > bias, "the descent's `first` must be a vector, one number per coordinate")
    want(type(state) is DescentState, "the descent's `state` must be a DescentState")
    sizes = {"theta": first.size, "gradient": first.size, "moment": first.size}
    for name, values in state._asdict().items():
        size = sizes.get(name, 1)
        want(is_vector(values, size), f"the state's `{name}` must be a vector of {size} numbers")
        want(bool(np.isfinite(values).all()), f"the state's `{name}` must be finite")
    rounds = float(state.rounds[0])
    want(0 <= rounds < 2.0**53 and rounds.is_integer(), f"the number of rounds is {rounds!r}")
    check_rounds(fields["learner"], rounds)
    want(is_vector(fields["best"], first.size), f"the descent's `best` must be a vector of {first.size} numbers")
    start, batch, l2 = fields["start"], fields["batch"], fields["l2"]
    want(start is None or is_vector(start, first.size), "the descent's `start` must be a vector like the first weights")
    want(batch is None or (is_count(batch) and batch > 0), "the descent's `batch` must be a count above 0")
    want(is_number(l2) and l2 >= 0.0, "the descent's `l2` must be at least 0")
    want(type(fields["seed"]) is int and fields["seed"] >= 0, "the descent's `seed` must be at least 0")
    want(isinstance(fields["generator"], np.random.Generator), "the descent's `generator` must be a generator")
    want(type(fields["keeps_best"]) is bool, "the descent's `keeps_best` must be true or false")
    for name in ("best_value", "last_value"):
        want(isinstance(fields[name], float), f"the descent's `{name}` must be a number")
    values = fields["values"]
    want(isinstance(values, list) and all(map(is_number, values)), "the descent's `values` must be numbers")
    fields.pop("checksum", None)  # of earlier versions
    known = fields.get("known_by", ())
    want(conforms(known, tuple[float, ...]) and len(known) in (0, 3), "the descent's `known_by` must be three numbers")
    fields["tally"] = checked_tally(tally)


storable(DescentState, where=__name__)
storable(Descent, check=check_descent)
