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

from . import rivals, theorems
from .certificate import Assumption, Certificate, Checkpoint, Opponent
from .certification import LOSS_NAMES, MismatchError, closeness
from .facts import Facts
from .kernels import FACTS, Hinge
from .run import RowError, check_start, check_targets, check_weights, explain
from .sweep_kernels import ROUNDS, SCALARS, SCALE, SQUARE, SUM, descend, gather, value
from .theorems import Theorem, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .learners import Learner
    from .rivals import Data

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
            total = value(rows, data.y[part], factors[part], self.learner.rule, v, total)
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
        given = self.learner.step.rates.size
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
        f, step, share = self.f, self.learner.step, data.c / data.c.sum()
        f[0] += rounds
        f[1] += rounds
        f[7] += rounds * float(share @ data.y**2)
        on = data.c > 0.0
        f[12] = max(f[12], data.row_norms2()[on].max())
        f[13] = max(f[13], data.row_tops()[on].max())
        f[16], f[19] = 1.0, max(f[19], np.abs(data.y[on]).max())
        rates = step.rates[self.rounds - rounds : self.rounds] if step.rates.size else np.zeros(0)
        rate: Callable[[float], float] = step.rate
        ends = rates if rates.size else [rate(float(t)) for t in (self.rounds - rounds + 1, self.rounds)]
        f[20], f[21] = max(f[20], max(ends)), max(f[21], -min(ends))

    def _consider(self, value: float) -> None:
        if value < self.best_value:
            self.best, self.best_value = self.weights, value

    def _full(self, data: Data, rounds: int, stop: float, tell: Callable[[int], None]) -> None:
        v, f, s, rule = self.v, self.f, self.s, self.learner.rule
        rate: Callable[[float], float] = self.learner.step.rate
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
                rows, order, pairs, batch, self.learner.rule, self.learner.step, self.l2,
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


# ---------------------------------------------------------------- the theorem

GRADIENT_DESCENT = Theorem("gradient descent", "N2", "f(w̄) ≤ f(u) + (|u − wₛ|² + Σ ηₜ²|∇f(wₜ)|²)/(2 Σ ηₜ)")
STOCHASTIC = Theorem(
    "stochastic gradient descent", "N2", "E f(w̄) ≤ f(u) + (|u − wₛ|² + E Σ ηₜ²|vₜ|²)/(2 Σ ηₜ), over the draws"
)


def gradient_descent(value: float, distance: float, rate: float, rate_gradient: float) -> float:
    """f(u) + (|u - w_s|^2 + Sigma eta^2 |grad|^2)/(2 Sigma eta), for the mean of iterates weighted by their rates."""
    return value + (distance + rate_gradient) / (2.0 * rate)


def certify_sweep(
    sweep: Sweep, data: Data, output: str, *, u: Any = None, tol: float = 0.01, label: str | None = None
) -> Certificate:
    """The certificate of a sweep's output over its rows.

    The sweep is played again, which shows that these are its rows and gives the gradients met. The rival minimises
    f(u) + |u - w_s|^2 / (2 Sigma eta); with l2 that is once more a loss and a squared distance, from a shorter start.

    Parameters
    ----------
    sweep : the sweep.
    data : the rows it was played on, with targets as it saw them and the same intercept.
    output : "mean", "last" or "best".
    u : a comparator to take instead.
    tol : relative gap to which the rival is sought.
    label : the class this sweep stands for.
    """
    if sweep.rounds == 0:
        raise MismatchError("the model has played no round yet")
    facts, marks = _replay(sweep, data)
    learner, start = sweep.learner, sweep.first
    kappa = 1.0 / facts.rate
    factors, pull = data.c / data.c.sum(), sweep.l2 + kappa
    middle = start * (kappa / pull)
    if u is None:
        found = rivals.best(data, learner.rule, learner.geometry, pull, factors, middle, tol)
        u, gap, how, notes = found.u, found.gap, closeness(found.gap, found.objective), found.notes
    else:
        u, gap, how, notes = data.check(u), math.inf, "given", ()
    own, distance = sweep.objective(data, u), float((u - start) @ (u - start))
    measured = sweep.objective(data, sweep.output(output))
    bound = gradient_descent(own, distance, facts.rate, facts.rate_gradient)
    scale = float(factors @ data.y**2)
    theorem = GRADIENT_DESCENT
    found_verdict, equality = theorems.verdict(measured, bound, scale)
    needs: tuple[Assumption, ...] = (
        Assumption(
            f"f is convex and every gradient was met; wₛ first, {sweep.rounds:,} rounds, Σ η = {facts.rate:.6g}", True
        ),
    )
    if output == "last" or (output == "best" and sweep.batch is not None):
        what = "the last iterate" if output == "last" else "the best of some iterates of drawn rows"
        theorem, bound, found_verdict, equality = theorems.NONE, math.nan, Verdict.UNCHECKABLE, False
        needs = (Assumption(f"for {what} there is no theorem here: take output='mean'", None),)
    elif sweep.batch is not None:
        theorem, equality = STOCHASTIC, False
        found_verdict = Verdict.UNCHECKABLE if math.isfinite(bound) else Verdict.VOID
        needs = (
            Assumption("rows drawn uniformly with replacement: a bound on the mean over all draws, not on one", None),
        )
        notes = (*notes, f"in expectation, with the |vₜ|² of these draws: f ≤ {bound:.6g}; measured {measured:.6g}")
    fixed = facts.rate_max == facts.rate_min
    best_eta = math.nan
    if fixed and math.isfinite(bound) and facts.gradient > 0.0:
        best_eta = math.sqrt(distance / facts.gradient)
    opponent = Opponent(u, own, float(np.linalg.norm(u)), gap, how)
    path: tuple[Checkpoint, ...] = ()
    if found_verdict in (Verdict.HOLDS, Verdict.BROKEN):
        path = tuple(_checkpoint(sweep, data, mark, output, u, own, distance) for mark in marks)
        if any(theorems.verdict(c.measured, c.bound, scale)[0] is Verdict.BROKEN for c in path):
            found_verdict, notes = Verdict.BROKEN, (*notes, "the bound is broken on the way")
    name = "perceptron" if learner.rule == Hinge(0.0) else LOSS_NAMES[type(learner.rule)]
    quantity = f"f, the mean {name} loss{' with l2' if sweep.l2 else ''}, of the {output} iterate"
    return Certificate(
        found_verdict, theorem, quantity, measured, bound, opponent, needs, sweep.rounds, best_eta, equality, path,
        notes, label,
    )  # fmt: skip


class Mark:
    """A full-batch sweep after some rounds."""

    def __init__(self, sweep: Sweep) -> None:
        self.rounds, self.mean, self.weights = sweep.rounds, sweep.mean, sweep.weights
        self.rate, self.rate_gradient, self.best = float(sweep.f[9]), float(sweep.f[11]), min(sweep.values)


def _replay(sweep: Sweep, data: Data) -> tuple[Facts, list[Mark]]:
    """Play the sweep again and check that it is the same; its facts, and for full batches marks at 1, 2, 4, ..."""
    if data.width != sweep.v.shape[1]:
        raise MismatchError(f"the model has {sweep.v.shape[1]} coordinates, these rows have {data.width}")
    again, marks = sweep.fresh(), []

    def tell(_: int) -> None:
        t = again.rounds
        if sweep.batch is None and (t & (t - 1) == 0 or t == sweep.rounds):
            marks.append(Mark(again))

    try:
        again.play(data, sweep.rounds, tell=tell)
    except ValueError as error:
        raise MismatchError(f"{error}: these are not the rows of the run") from error
    far = max(float(np.abs(a - b).max()) for a, b in ((sweep.weights, again.weights), (sweep.mean, again.mean)))
    size = max(np.abs(sweep.weights).max(), np.abs(sweep.mean).max(), np.abs(sweep.first).max())
    if not np.allclose(again.f, sweep.f, rtol=1e-9, atol=1e-12) or not far <= 1e-9 * size:
        raise MismatchError(
            "the model was not trained on these rows: the sum of f along its iterates was "
            f"{sweep.facts.loss:.9g}, here it is {again.facts.loss:.9g}, and weights differ by {far:.3g}"
        )
    return again.facts, marks


def _checkpoint(
    sweep: Sweep, data: Data, mark: Mark, output: str, u: np.ndarray, own: float, distance: float
) -> Checkpoint:
    measured = mark.best if output == "best" else sweep.objective(data, mark.mean)
    bound = gradient_descent(own, distance, mark.rate, mark.rate_gradient)
    apart = mark.weights - u
    return Checkpoint(mark.rounds, measured, own, bound, float(apart @ apart))
