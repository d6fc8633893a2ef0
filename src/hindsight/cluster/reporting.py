"""The report of a run on shards: the page that one machine writes, from sums and a sample that the workers send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.facts import NAMES
from ..online.run import Run
from ..reports.writing import write_report
from ..rows.labels import encode_labels
from ..sources import label_text
from ..training.recording import SAMPLE, Recording
from ..training.session import PlayedChunk
from ..training.state import TrainingState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.certificate import Certificate
    from ..kernels.floats import Floats
    from ..online.facts import Facts
    from ..training.plan import Plan
    from .blocks import Block
    from .rows import ClusterRows
    from .shards import Epochs


class EpochCourse:
    """The course of a run whose sums are known after each epoch.

    Parameters
    ----------
    rounds, weights : ndarray of shape (n_epochs,)
        Rounds and their weight, up to the end of each epoch.
    totals : ndarray of shape (n_epochs, n_series)
        The sums of each series.
    """

    def __init__(self, rounds: np.ndarray, weights: np.ndarray, totals: np.ndarray) -> None:
        self.at, self.mass, self.total = rounds, weights, totals
        self.rounds, self.weight, self.sums = int(rounds[-1]), float(weights[-1]), totals[-1]

    def so_far(self, series: int) -> tuple[np.ndarray, np.ndarray]:
        """The mean of a series up to the end of each epoch."""
        return self.at, self.total[:, series] / self.mass

    def window(self, series: int) -> tuple[int, np.ndarray, np.ndarray]:
        """The mean of a series in each epoch, and the length of an epoch."""
        own, mass = np.diff(self.total[:, series], prepend=0.0), np.diff(self.mass, prepend=0.0)
        return int(self.at[0]), self.at, own / mass


def report_shards(
    path: str, plan: Plan, rows: ClusterRows, runs: list[Epochs], labels: list[str] | None,
    certificates: Sequence[Certificate], seconds: float,
) -> None:  # fmt: skip
    """Write the report of what was learnt on shards.

    Parameters
    ----------
    path : str
        The file to write.
    plan : Plan
        What was asked for.
    rows : ClusterRows
        The rows.
    runs : list of Epochs
        One, or one per label.
    labels : list of str or None
        The labels; None where targets are numbers.
    certificates : sequence of Certificate
        Those of the runs.
    seconds : float
        How long learning took.
    """
    played = [mixed_run(run, rows.features) for run in runs]
    w = np.array([run.weights for run in played])
    counts, samples = zip(*rows.engine.each(said_of, w, runs[0].bias, labels, per_block(rows)), strict=True)
    confusion = None if labels is None else np.sum(counts, axis=0)
    wrong = 0 if confusion is None else int(confusion.sum() - np.trace(confusion)) * len(runs[0].starts)
    state = TrainingState(plan, [played], labels, rows.scale, rows.state(), [wrong], constant_of(rows, labels, runs))
    curves = Recording.of(state)
    for z, y, codes, weight in samples:
        curves.add(PlayedChunk(z, y, codes, weight, [], True, np.zeros(len(y), bool)))
    if curves.sample is not None:
        curves.sample.seen = rows.rows
    curves.confusion = None if confusion is None else confusion[None]
    curves.course = course_of(runs, curves.series)  # type: ignore[assignment]
    state.rows_done = curves.course.rounds
    state.source = None if rows.table is None else rows.table.source
    shards, epochs = len(rows.shapes), len(runs[0].starts)
    notes = [
        f"{shards:,} partitions were learnt at the same time, each by a run of its own, in {epochs:,} epochs, each of "
        "which starts at the mean of all weights. The curves are sums over all of them.",
        "Weights, confusions, calibration and predictions are those of the mean of all weights in the end.",
    ]
    write_report(path, state, curves, [list(certificates)] if certificates else [], seconds=seconds, notes=notes)


def mixed_run(run: Epochs, features: int) -> Run:
    """Return a run at the mixed weights with the facts of all shards."""
    out = Run(run.learner, features, intercept=bool(run.bias), start=run.mixed)
    facts = sum(run.facts[1:], run.facts[0])
    for name in NAMES:
        out.tally[0][name] = getattr(facts, name)
    return out


def course_of(runs: list[Epochs], series: Sequence[str]) -> EpochCourse:
    """Return the course of the runs of one learner together."""
    names = {"loss": "loss", "square": "square", "mistakes": "mistake_weight", "errors": "mistake_weight"}

    def total(epoch: Sequence[Facts], name: str) -> float:
        return float(sum(getattr(facts, names[name]) for facts in epoch))

    epochs = list(zip(*(run.epochs for run in runs), strict=True))
    sums = np.array([[total(epoch, name) for name in series] for epoch in epochs])
    rounds, mass = np.array([f.rounds for f in runs[0].epochs]), np.array([f.weight for f in runs[0].epochs])
    return EpochCourse(np.cumsum(rounds), np.cumsum(mass), np.cumsum(sums, axis=0))


def constant_of(rows: ClusterRows, labels: list[str] | None, runs: list[Epochs]) -> Floats:
    """Return the sums for the loss of the best constant: those of numbers, or the weight of each label."""
    if labels is not None:
        return np.asarray(np.sum(rows.engine.each(weight_of_labels, labels), axis=0) * len(runs[0].starts))
    from ..certificates.best.constant import best_constant
    from ..kernels.losses import Square
    from .blocks import Targets
    from .rows import RunTable

    weight = sum(facts.weight for facts in runs[0].epochs)
    table: Any = RunTable(rows, Targets("real"), runs[0].bias)
    squares = best_constant(Square(2.0), table.y, len(runs[0].starts) * table.c)
    return np.array([weight, 0.0, squares])


def per_block(rows: ClusterRows) -> int:
    """Return how many rows of a partition are drawn."""
    return max(1, SAMPLE // len(rows.shapes))


# ---------------------------------------------------------------- in the workers


def codes_of(y: np.ndarray, labels: list[str]) -> np.ndarray:
    """Return the number of each label."""
    return encode_labels(label_text(y) if y.dtype.kind == "f" else y, labels).astype(np.int64)


def weight_of_labels(block: Block, labels: list[str]) -> Floats:
    """Return the weight of each label in a block."""
    weight = np.ones(len(block)) if block.weight is None else block.weight
    return np.asarray(np.bincount(codes_of(block.y, labels), weight, len(labels)))


def said_of(block: Block, w: Floats, bias: float, labels: list[str] | None, count: int) -> tuple[Any, tuple[Any, ...]]:
    """Return the confusions of weights on a block, and margins, targets, labels and weights of some of its rows."""
    margins = list[Any]()
    n = w.shape[1] - int(bool(bias))
    block.over(lambda X, y, weight: margins.append(np.asarray(X @ w[:, :n].T) + (bias * w[:, -1] if bias else 0.0)))
    z = np.concatenate(margins) if margins else np.zeros((0, len(w)))
    codes, table = None if labels is None else codes_of(block.y, labels), None
    if labels is not None and codes is not None:
        chosen = (z[:, 0] > 0.0).astype(np.int64) if len(w) == 1 else z.argmax(axis=1)
        on = slice(None) if block.weight is None else block.weight > 0.0
        cells = np.bincount((codes * len(labels) + chosen)[on], minlength=len(labels) ** 2)
        table = cells.reshape(len(labels), len(labels))
    some = np.unique(np.linspace(0, len(block) - 1, min(len(block), count)).astype(np.int64))
    taken = (None if values is None else values[some] for values in (codes, block.weight))
    return table, (z[some], block.y[some], *taken)
