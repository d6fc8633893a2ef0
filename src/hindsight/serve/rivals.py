"""The best fixed predictor in hindsight where the beginning of the log is gone: from sums, or over the rows there are.

For the square loss the sums of c x x', c x y and c y^2 over all rows tell what every fixed u loses on them, however
many there were. For other losses the newest rows are learnt again from the older snapshot, which tells what the service
lost on them; the best u for these rows is sought in hindsight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.best import best_fixed
from ..kernels.losses import Square
from ..rows.data import Data
from ..sources.base import Chunk
from ..training.prepare import Preparation, joined, stacked
from .folder import read_snapshots
from .live import LiveModel, losses_of
from .log import read_log, segments
from .mappings import csr_of
from .parts import ANY, unpack

if TYPE_CHECKING:
    from ..training.plan import Plan
    from ..training.state import TrainingState
    from .folder import Folder
    from .gram import Gram

WINDOW = 200_000  # rows at most that are learnt again


def best_of_sums(gram: Gram) -> tuple[float, float]:
    """The least squared error of a fixed predictor on all rows that were summed, and by how much it may be less."""
    values, vectors = np.linalg.eigh(gram.sums)
    rows = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # as many rows as sums that lose what all rows lose
    data = Data(np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1]), None, 0.0)
    found = best_fixed(data, Square(2.0), np.ones(len(rows)))
    rounding = len(rows) * np.finfo(float).eps * float(np.abs(gram.sums).max(initial=0.0))
    return found.loss, found.gap + rounding


def comparable(state: TrainingState) -> bool:
    """Whether what the service loses is a loss of the margins of its runs: then a fixed predictor can be compared."""
    return bool(state.in_logs) if state.labels is not None else bool(state.runs[0][0].learner.loss.quadratic)


def over_window(folder: Folder, plan: Plan, commit: int) -> dict[str, Any] | None:
    """What the newest rows up to a commit cost the service and the best fixed predictor for them; None without any."""
    first = segments(folder.log)
    starts = [
        state
        for _, state in read_snapshots(folder.snapshots)
        if first and first[0][0] <= int(state["commit"]) + 1 and int(state["commit"]) < commit and state["model"]
    ]
    if not starts:
        return None
    live = LiveModel(plan, ANY)
    live.restore(starts[0]["model"])
    state = live.state
    assert state is not None
    before, rows, chunks = state.losses()[0], 0, []
    for frame in read_log(folder.log, int(starts[0]["commit"])):
        if frame.commit > commit or rows >= WINDOW:
            break
        parts = [part for part in unpack(frame.payload)[1] if part.do != "keep"]
        rows += sum(part.rows for part in parts)
        pieces, _ = live.encode(parts)
        live.play(pieces)
        chunks += [Chunk(csr_of(p.X), p.y, p.weight, 0, {}, 0, str, str) for p in pieces]
    own = state.losses()[0] - before
    return {"rows": rows, "from": int(starts[0]["sequence"]) + 1, "loss": own, "best": best_over(state, chunks)}


def best_over(state: TrainingState, chunks: list[Chunk]) -> float:
    """What the best fixed predictors for rows, one per run, lose on them together."""
    runs, preparation = state.runs[0], Preparation(state.plan, state.labels, None, None)
    width = max(chunk.X.shape[1] for chunk in chunks)
    for chunk in chunks:
        chunk.X.resize((chunk.X.shape[0], width))
    prepared = [preparation.prepare(chunk, [runs]) for chunk in chunks]
    X, weight = stacked([each.X for each in prepared]), joined([each.weight for each in prepared])
    factors = np.ones(X.shape[0]) if weight is None else weight
    margins = []
    for k, run in enumerate(runs):
        data = Data(X, np.concatenate([each.targets[k] for each in prepared]), weight, run.bias)
        margins.append(data.margins(best_fixed(data, run.learner.loss, factors).u))
    losses = losses_of(state, np.column_stack(margins), np.concatenate([chunk.y for chunk in chunks]))
    return float(losses @ factors)
