"""The best fixed predictor in hindsight where the first rows are gone: from sums, or over the rows there are.

For the square loss the sums of c x x', c x y and c y^2 over all rows tell what every fixed u loses on them, however
many there were. The newest rows are learnt again from the older snapshot, which tells what the service lost on them;
the best u for these rows is sought in hindsight. Steps at a constant rate depend on nothing but the weights, so that
their theorem holds for these rows by themselves, begun at the weights of the snapshot: that is a certificate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.best import best_fixed
from ..certificates.certify import certify_run
from ..kernels.floats import EPS
from ..kernels.losses import Square
from ..online.run import Run, play
from ..rows.data import Data
from ..training.certify import combined
from .live import LiveModel, losses_of
from .parts import ANY
from .replay import as_played, data_of, joined_rows
from .store import Store

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate, Certificates
    from ..training.plan import Plan
    from ..training.prepare import PreparedChunk
    from ..training.state import TrainingState
    from .gram import Gram
    from .mappings import Piece

STRETCHES = ("widrow-hoff", "implicit-widrow-hoff", "convex-descent", "implicit-descent")  # theorems
WINDOW = 200_000  # rows at most that are learnt again


def best_of_sums(gram: Gram, rows: int) -> tuple[float, float]:
    """The least squared error of a fixed predictor on so many rows that were summed, and how far off that may be.

    Sums of so many terms are off by as many roundings, and the least is a difference of sums that may be far larger.
    """
    values, vectors = np.linalg.eigh(gram.sums)
    few = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # as many rows as sums that lose what all rows lose
    data = Data(np.ascontiguousarray(few[:, :-1]), np.ascontiguousarray(few[:, -1]), None, 0.0)
    found = best_fixed(data, Square(2.0), np.ones(len(few)))
    sizes = np.abs(np.append(found.u, 1.0))
    rounding = (rows + len(few)) * EPS * float(sizes @ np.abs(gram.sums) @ sizes)
    return found.loss, found.gap + rounding


def comparable(state: TrainingState) -> bool:
    """Whether what the service loses is a loss of the margins of its runs: then a fixed predictor can be compared."""
    return bool(state.in_logs) if state.labels is not None else bool(state.runs[0][0].learner.loss.quadratic)


def over_window(path: str, plan: Plan, newest: int) -> dict[str, Any] | None:
    """What the newest rows up to a commit cost the service and the best fixed predictor for them; None without any."""
    store = Store(path)
    try:
        first = store.first_commit()
        starts = [each for each in store.snapshots() if first is not None and first - 1 <= each[0] < newest]
        kept = store.snapshot(starts[0][0])["model"] if starts else None
        if kept is None:
            return None
        live = LiveModel(plan, ANY)
        live.restore(kept)
        state = live.state
        assert state is not None
        before, rows = state.compared_losses()[0], 0
        pieces: list[Piece] = []
        begun = [run.weights.copy() for run in state.runs[0]]
        for commit in store.commits(starts[0][0]):
            if commit.number > newest or rows >= WINDOW:
                break
            rows += commit.rows
            live.learn(commit.parts)
            pieces += live.played
    finally:
        store.close()
    if not pieces:
        return None
    told: dict[str, Any] = {"rows": rows, "from": starts[0][1] + 1, "loss": state.compared_losses()[0] - before}
    stretch = joined_rows(list(as_played(pieces, state.runs[0], state.labels, state.plan)))
    if comparable(state):
        told["best"] = best_over(state, stretch)
    if all(begins_anywhere(run.learner) for run in state.runs[0]):
        told["certificate"] = certify_stretch(state, stretch, begun)
    return told


def best_over(state: TrainingState, stretch: PreparedChunk) -> float:
    """What the best fixed predictors for rows, one per run, lose on them together."""
    factors = np.ones(stretch.y.size) if stretch.weight is None else stretch.weight
    margins = []
    for k, run in enumerate(state.runs[0]):
        data = data_of(stretch, k, run)
        margins.append(data.margins(best_fixed(data, run.learner.loss, factors).u))
    return float(losses_of(state, np.column_stack(margins), stretch.y) @ factors)


def begins_anywhere(learner: Any) -> bool:
    """Whether a step depends on nothing but weights and row: then its theorem holds for every stretch of rows."""
    if learner.theorem not in STRETCHES or learner.geometry.multiplicative:
        return False
    return bool(learner.rate.is_constant())


def certify_stretch(
    state: TrainingState, stretch: PreparedChunk, begun: list[np.ndarray]
) -> Certificate | Certificates | None:
    """The certificates of the newest rows by themselves, begun at given weights; None if they end elsewhere."""
    found = []
    for k, run in enumerate(state.runs[0]):
        start = np.zeros(run.width)  # features that joined since had no weight
        features = len(begun[k]) - int(run.intercept)
        start[:features], start[run.features :] = begun[k][:features], begun[k][features:]
        again = Run(run.learner, run.features, intercept=bool(run.intercept), start=start)
        play([again], stretch.X, [stretch.targets[k]], stretch.weight)
        if not np.allclose(again.weights, run.weights, rtol=1e-9, atol=1e-12):
            return None
        label = state.labels[k] if state.labels is not None and len(state.runs[0]) > 1 else None
        found.append(certify_run(again, data_of(stretch, k, again), label=label))
    return combined(found)
