"""Learning again from the folder of a service: the same rows in the same commits, hence the same bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.certify import certify_run
from ..errors import SourceError
from ..rows.data import Data
from ..sources.base import Chunk
from ..training.plan import Plan
from ..training.prepare import Preparation, PreparedChunk, joined, stacked
from .live import LiveModel, mapping_rows
from .mappings import csr_of
from .parts import ANY
from .store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..certificates.certificate import Certificate
    from ..online.run import Run
    from .mappings import Piece

IN_MEMORY = 500_000  # rows that are certified without reading them again for each pass over them


def replay(path: str) -> LiveModel:
    """Learn all rows in the folder of a service again, as it learnt them.

    Parameters
    ----------
    path : str
        The folder of a service; it may be running.

    Raises
    ------
    SourceError
        If not all rows are there.
    """
    store = Store(path)
    try:
        first = store.first_commit()
        if first is None:
            raise SourceError(f"{path}: there is no row to learn from")
        if first != 1:
            raise SourceError(
                f"{path}: its rows begin with commit {first:,}: older ones went when a snapshot covered them "
                "(hindsight serve --keep-log keeps all)"
            )
        settings = store.settings() or {}
        if settings.get("model"):
            raise SourceError(f"{path}: it began with a model, and what that had learnt from is not in the folder")
        live = LiveModel(Plan.from_settings(settings.get("plan", {}), None), ANY)
        for each in store.commits():
            live.learn(each.parts)
        return live
    finally:
        store.close()


def certify_log(
    path: str, commit: int | None, runs: Sequence[Run], labels: list[str] | None, plan: Plan
) -> list[Certificate]:
    """The certificates of runs over the rows of a folder up to a commit (None: all), which are read again."""

    def prepared() -> Iterator[Any]:
        return prepared_rows(path, commit, runs, labels, plan)

    few = runs[0].rounds <= IN_MEMORY
    whole = joined_rows(list(prepared())) if few else None
    each = []
    for k, run in enumerate(runs):
        chunks: Any = lambda k=k: ((chunk.X, chunk.targets[k], chunk.weight) for chunk in prepared())  # noqa: E731
        data = Data.from_chunks(chunks, run.bias) if whole is None else data_of(whole, k, run)
        label = labels[k] if labels is not None and len(runs) > 1 else None
        each.append(certify_run(run, data, label=label))
    return each


def prepared_rows(
    path: str, commit: int | None, runs: Sequence[Run], labels: list[str] | None, plan: Plan
) -> Iterator[PreparedChunk]:
    """The rows of a folder as they were played, piece by piece."""
    rows, store = mapping_rows(plan, ANY), Store(path)
    try:
        for each in store.commits():
            if commit is not None and each.number > commit:
                return
            yield from as_played(rows.encode(each.parts), runs, labels, plan)
    finally:
        store.close()


def as_played(
    pieces: Sequence[Piece], runs: Sequence[Run], labels: list[str] | None, plan: Plan
) -> Iterator[PreparedChunk]:
    """Rows as runs played them, with room for the features that these have now."""
    preparation = Preparation(plan, labels, None, None)
    for piece in pieces:
        X = csr_of(piece.X)
        X.resize((X.shape[0], runs[0].features))
        chunk = Chunk(X, piece.y, piece.weight, 0, {}, 0, lambda i: f"row {i}", str)
        yield preparation.prepare(chunk, [list(runs)])


def joined_rows(chunks: list[PreparedChunk]) -> PreparedChunk:
    """Chunks as one."""
    targets = [np.concatenate(each) for each in zip(*(chunk.targets for chunk in chunks), strict=True)]
    y = np.concatenate([chunk.y for chunk in chunks])
    return PreparedChunk(stacked([chunk.X for chunk in chunks]), y, None, targets, joined([c.weight for c in chunks]))


def data_of(rows: PreparedChunk, k: int, run: Run) -> Data:
    """Rows as the run of this number played them."""
    return Data(rows.X, rows.targets[k], rows.weight, run.bias)
