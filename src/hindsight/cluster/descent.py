"""Gradient descent on all rows over partitions: one reduction of losses and gradients per round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.compiler import for_parts
from ..kernels.descent import add_gradient
from ..rows.checksum import joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..batch.gradient_descent import Descent
    from ..kernels.floats import Floats
    from .blocks import Block, Targets
    from .rows import ClusterRows, Measured


def loss_gradient(block: Block, targets: Targets, bias: float, loss: Any, w: Floats, total: float) -> Floats:
    """Return the losses of a block at w, divided by the weight of all rows, and then their gradient."""
    data, g, value = block.data(targets, bias), np.zeros(w.size), 0.0
    factors, loop = data.c / total, for_parts(add_gradient, loss)
    with np.errstate(over="ignore", invalid="ignore"):
        for first, rows, count in data.blocks():
            part = slice(first, first + count)
            value = loop(rows, data.y[part], factors[part], loss, w, g, value)
    return np.concatenate(([value], g))


class MeanLoss:
    """The mean loss over all rows of a run, and its gradient.

    Parameters
    ----------
    rows : ClusterRows
        The rows.
    targets : Targets
        The targets of the run.
    bias : float
        The value of the intercept coordinate, 0 for none.
    loss : object
        The loss.
    total : float
        What sums are divided by: the weight of all rows.
    """

    def __init__(self, rows: ClusterRows, targets: Targets, bias: float, loss: Any, total: float) -> None:
        self.rows, self.targets, self.bias, self.loss, self.total = rows, targets, bias, loss, total

    def at(self, w: Floats) -> tuple[float, Floats]:
        """Return the mean loss at w, and its gradient."""
        sums = self.rows.engine.reduce(loss_gradient, self.targets, self.bias, self.loss, w, self.total)
        return float(sums[0]), sums[1:]


def unordered_checksum(block: Block, targets: Targets, bias: float) -> Any:
    """Return the checksum of the rows of a block in any order."""
    return block.data(targets, bias).checksum(ordered=False)


def play_descent(
    run: Descent, mean: MeanLoss, measured: Measured, rounds: int, stop: float = 0.0,
    notify: Callable[[int, float], None] | None = None, every: int = 0, keep: Callable[[Descent], None] | None = None,
) -> None:  # fmt: skip
    """Play rounds of a descent on a full batch; `keep` is called after every so many."""
    before = run.rounds
    with np.errstate(over="ignore", invalid="ignore"):  # checked below, and refused
        for t in range(before + 1, before + rounds + 1):
            total, run.state.gradient[:] = mean.at(run.state.theta.copy())
            square = run.step_full(total)
            if notify is not None:
                notify(t, run.values[-1])
            if square <= stop * stop and stop > 0.0:
                break
            if keep is not None and every and t % every == 0 and t < before + rounds:
                run.check_finite(f"round {run.rounds}: a weight is not finite")
                keep(run)
        run.check_finite(f"round {run.rounds}: a weight is not finite")
        if run.keeps_best:
            run.last_value = mean.at(run.weights)[0] + 0.5 * run.l2 * float(run.weights @ run.weights)
    sums = mean.rows.engine.reduce(unordered_checksum, mean.targets, mean.bias)
    run.checksum = joined(run.checksum, sums)
    square = measured.squares / measured.weight
    run.add_row_facts(run.rounds - int(run.tally[0].rounds), square, measured.largest, measured.x2, measured.xinf)
