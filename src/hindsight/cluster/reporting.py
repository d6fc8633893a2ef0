"""The report of a run on shards: the same page as on one machine, from sums and a sample sent by the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.best.constant import best_constant
from ..kernels.facts import NAMES
from ..kernels.losses import Square
from ..reports.writing import write_report
from ..rows.labels import chosen_codes, encode_labels
from ..sources import label_text
from ..training.recording import SAMPLE, Recording
from ..training.state import TrainingState
from .rows import RunTable, evenly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.certificate import Certificate
    from ..kernels.floats import Floats
    from ..online.run import Run
    from ..training.plan import Plan
    from .blocks import Block
    from .rows import ClusterRows
    from .shards import Epochs

SERIES = {"loss": "loss", "square": "square", "mistakes": "mistake_weight", "errors": "mistake_weight"}  # as facts


class EpochCourse:
    """The curves of a run whose sums are known after each epoch.

    Parameters
    ----------
    rounds, weights : ndarray of shape (n_epochs,)
        The number of rounds and their weight up to the end of each epoch.
    totals : ndarray of shape (n_epochs, n_series)
        The sums of each series.
    """

    def __init__(self, rounds: np.ndarray, weights: np.ndarray, totals: np.ndarray) -> None:
        self.at, self.mass, self.total = rounds, weights, totals
        self.rounds, self.weight, self.sums = int(rounds[-1]), float(weights[-1]), totals[-1]

    @classmethod
    def of(cls, runs: list[Epochs], series: Sequence[str]) -> EpochCourse:
        """Return the combined curves of the runs of one learner."""
        epochs = zip(*(run.epochs for run in runs), strict=True)
        sums = [[float(sum(getattr(facts, SERIES[name]) for facts in each)) for name in series] for each in epochs]
        rounds, mass = [f.rounds for f in runs[0].epochs], [f.weight for f in runs[0].epochs]
        return cls(np.cumsum(rounds), np.cumsum(mass), np.cumsum(sums, axis=0))

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
        The plan.
    rows : ClusterRows
        The rows.
    runs : list of Epochs
        One, or one per label.
    labels : list of str or None
        The labels; None where targets are numbers.
    certificates : sequence of Certificate
        The certificates of the runs.
    seconds : float
        How long learning took.
    """
    shards, epochs = len(rows.shapes), len(runs[0].starts)
    w, count = np.array([run.mixed for run in runs]), max(1, SAMPLE // shards)
    tables, masses, samples = zip(*rows.engine.each(predictions_of, w, runs[0].view.bias, labels, count), strict=True)
    confusion = None if labels is None else np.sum(tables, axis=0)
    wrong = 0 if confusion is None else int(confusion.sum() - np.trace(confusion)) * epochs
    if labels is None:
        table: Any = RunTable(rows, runs[0].view)
        squares = best_constant(Square(2.0), table.y, epochs * table.c)
        constant = np.array([sum(facts.weight for facts in runs[0].epochs), 0.0, squares])
    else:
        constant = np.asarray(np.sum(masses, axis=0) * epochs)
    played = [mixed_run(run) for run in runs]
    state = TrainingState(plan, [played], labels, rows.scale, rows.state(), [wrong], constant)
    curves = Recording.of(state)
    for sample in samples:
        curves.add_rows(*sample)
    curves.sample.seen = rows.rows
    curves.confusion = None if confusion is None else confusion[None]
    course: Any = EpochCourse.of(runs, curves.series)
    curves.course, state.rows_done = course, course.rounds
    state.source = None if rows.table is None else rows.table.source
    notes = [
        f"{shards:,} partitions were learnt at the same time, each by a run of its own, in {epochs:,} epochs, each of "
        "which starts at the mean of all weights. The curves are sums over all of them.",
        "Weights, confusions, calibration and predictions are those of the mean of all weights in the end.",
    ]
    write_report(path, state, curves, [list(certificates)] if certificates else [], seconds=seconds, notes=notes)


def mixed_run(run: Epochs) -> Run:
    """Return a run at the mixed weights with the facts of all shards."""
    out, facts = run.at_mixed(), run.total
    for name in NAMES:
        out.tally[0][name] = getattr(facts, name)
    return out


def predictions_of(block: Block, w: Floats, bias: float, labels: list[str] | None, count: int) -> tuple[Any, Any, Any]:
    """Return the confusion matrix of weights on a block, the weight of each label, and a few rows.

    Each of these rows has its margins, target (or index of the label) and weight.
    """
    margins, n = list[Any](), w.shape[1] - int(bool(bias))
    block.over(lambda X, y, weight: margins.append(np.asarray(X @ w[:, :n].T) + (bias * w[:, -1] if bias else 0.0)))
    z, y, table, mass = np.concatenate(margins), block.y, None, None
    weight = np.ones(len(block)) if block.weight is None else block.weight
    if labels is not None:
        y = encode_labels(label_text(y) if y.dtype.kind == "f" else y, labels).astype(np.int64)
        cells, on = y * len(labels) + chosen_codes(z), weight > 0.0
        table = np.bincount(cells[on], minlength=len(labels) ** 2).reshape(len(labels), len(labels))
        mass = np.bincount(y, weight, len(labels))
    some = evenly(len(block), count)
    return table, mass, (z[some], y[some], weight[some])
