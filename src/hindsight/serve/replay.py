"""Replay of the rows in a folder, in the same commits and therefore to the same bits."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import SourceError
from ..training.plan import Plan
from ..training.prepare import Preparation, PreparedChunk
from .live import LiveModel, rows_of_plan, rows_of_state
from .mapping_rows import csr_of
from .requests import ANY
from .store import ADVICE, Store, StoreError, read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..online.run import Run
    from .live import PlayedRequest
    from .store import Commit


class Replay:
    """A model that learns the commits of a store again, as a service does when it starts.

    Parameters
    ----------
    store : Store
        The store.
    live : LiveModel
        The model after some commit; it is advanced.
    commit, row : int, default 0
        The number of that commit, and of its last row; they advance with the model.
    """

    def __init__(self, store: Store, live: LiveModel, commit: int = 0, row: int = 0) -> None:
        self.store, self.live, self.commit, self.row = store, live, commit, row

    @classmethod
    def begin(cls, store: Store, snapshot: int | None = None) -> Replay:
        """A replay from the snapshot of a commit, or from the first row."""
        live = LiveModel(Plan.from_settings((read_settings(store.path) or {}).get("plan", {}), None))
        if snapshot is None:
            return cls(store, live)
        live.restore(store.snapshot(snapshot)["model"])
        return cls(store, live, snapshot, dict(store.snapshots())[snapshot])

    def commits(self, last: float = math.inf) -> Iterator[tuple[Commit, list[PlayedRequest]]]:
        """Learn the next commits up to `last`; yields each with the results of its requests.

        Raises
        ------
        StoreError
            If a commit is damaged, missing, or cannot be learnt.
        """
        for commit in self.store.commits(self.commit):
            if commit.number > last:
                return
            try:
                if commit.first != self.row + 1:
                    raise StoreError(f"row {self.row + 1:,} should come next")
                played, _ = self.live.learn(commit.parts)
            except ValueError as error:
                rows = f"rows {commit.first:,} to {commit.first + commit.rows - 1:,}"
                what = f"commit {commit.number:,} ({rows}) cannot be learnt again: {error}"
                raise StoreError(f"{self.store.file}: {what}: {ADVICE}") from None
            self.commit, self.row = commit.number, self.row + commit.rows
            yield commit, played


def replay(path: str) -> LiveModel:
    """Learn all rows in the folder of a service again, in the same commits.

    Parameters
    ----------
    path : str
        The folder of a service; it may be running.

    Raises
    ------
    SourceError
        If the folder does not have all rows.
    """
    with closing(Store(path)) as store:
        first = store.first_commit()
        if first is None:
            raise SourceError(f"{path}: there is no row to learn from")
        if first != 1:
            raise SourceError(
                f"{path}: its rows begin with commit {first:,}: older ones went when a snapshot covered them "
                "(hindsight serve --keep-log keeps all)"
            )
        if (read_settings(store.path) or {}).get("model"):
            raise SourceError(f"{path}: it began with a model, and what that had learnt from is not in the folder")
        again = Replay.begin(store)
        for _ in again.commits():
            pass
        return again.live


@dataclass(frozen=True)
class StoredRows(Preparation):
    """The rows in a folder as played by runs.

    Parameters
    ----------
    path : str
        The folder; the service may be running.
    after : int, default 0
        The commit before the first row; `source_state` is the numbering of features at that point.
    last : int, default all
        The commit of the last row.
    """

    path: str = ""
    after: int = 0
    last: float = math.inf

    def replay(self, runs: Sequence[Run]) -> Iterator[PreparedChunk]:
        """One pass over the rows, as wide as the runs' current features."""
        begins = self.source_state is None
        rows = rows_of_plan(self.plan, ANY) if begins else rows_of_state(self.plan, self.source_state, ANY, self.labels)
        with closing(Store(self.path)) as store:
            for commit in store.commits(self.after):
                if commit.number > self.last:
                    return
                for piece in rows.encode(commit.parts):
                    piece.X = csr_of(piece.X)
                    piece.X.resize((len(piece), runs[0].features))
                    yield self.prepare(piece, [runs])
