"""Learning again from the log of a service: the same rows in the same commits, hence the same bits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.certify import certify_run
from ..errors import SourceError
from ..rows.data import Data
from ..sources.base import Chunk
from ..training.plan import Plan
from ..training.prepare import Preparation, joined, stacked
from .folder import read_settings, read_snapshots
from .live import LiveModel, mapping_rows
from .log import read_log, segments
from .mappings import csr_of
from .parts import ANY, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..certificates.certificate import Certificate
    from ..online.run import Run

IN_MEMORY = 500_000  # rows that are certified without reading them again for each pass over them


def replay(path: str) -> LiveModel:
    """Learn all rows in the log of a folder again, as its service learnt them.

    Parameters
    ----------
    path : str
        The folder of a service; it may be running.

    Raises
    ------
    SourceError
        If the log does not have all rows.
    """
    log = os.path.join(path, "log")
    found = segments(log)
    if not found:
        raise SourceError(f"{path}: its log is empty")
    if found[0][0] != 1:
        raise SourceError(
            f"{path}: its log begins with commit {found[0][0]:,}: older ones went when a snapshot covered them "
            "(hindsight serve --keep-log keeps all)"
        )
    plan = Plan.from_settings((read_settings(path) or {}).get("plan", {}), None)
    for _, state in read_snapshots(os.path.join(path, "snapshots")):
        kept = LiveModel(plan, ANY)
        kept.restore(state["model"])
        if kept.state is not None and kept.state.before:
            raise SourceError(f"{path}: it began with a model, and what that had learnt from is not in the folder")
    live = LiveModel(plan, ANY)
    for frame in read_log(log):
        live.learn_again(unpack(frame.payload)[1])
    if live.state is None:
        raise SourceError(f"{path}: there is no row to learn from in its log")
    return live


def certify_log(
    log: str, commit: int | None, runs: Sequence[Run], labels: list[str] | None, plan: Plan
) -> list[Certificate]:
    """The certificates of runs over the rows of a log up to a commit (None: to its end), which are read again."""

    def prepared() -> Iterator[Any]:
        return prepared_rows(log, commit, runs, labels, plan)

    each = []
    few = runs[0].rounds <= IN_MEMORY
    chunks = list(prepared()) if few else []
    for k, run in enumerate(runs):
        if few:
            y = np.concatenate([chunk.targets[k] for chunk in chunks])
            data = Data(stacked([chunk.X for chunk in chunks]), y, joined([chunk.weight for chunk in chunks]), run.bias)
        else:
            data = Data.from_chunks(
                lambda k=k: ((chunk.X, chunk.targets[k], chunk.weight) for chunk in prepared()),  # type: ignore[misc]
                run.bias,
            )
        label = labels[k] if labels is not None and len(runs) > 1 else None
        each.append(certify_run(run, data, label=label))
    return each


def prepared_rows(
    log: str, commit: int | None, runs: Sequence[Run], labels: list[str] | None, plan: Plan
) -> Iterator[Any]:
    """The rows of a log as they were played, piece by piece."""
    rows, preparation = mapping_rows(plan, ANY), Preparation(plan, labels, None, None)
    for frame in read_log(log):
        if commit is not None and frame.commit > commit:
            return
        pieces, _ = rows.encode([part for part in unpack(frame.payload)[1] if part.do != "keep"])
        for piece in pieces:
            X = csr_of(piece.X)
            X.resize((X.shape[0], runs[0].features))
            chunk = Chunk(X, piece.y, piece.weight, 0, {}, 0, lambda i: f"row {i}", str)
            yield preparation.prepare(chunk, [runs])
