"""What a session keeps while it learns, so that a certificate need not play the run again, nor read few rows twice."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.adaptive import add_terms, in_ledger
from ..certificates.ledger import Ledger
from ..online.panel import PanelRun
from ..rows.data import Data
from .prepare import SMALL, bytes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..online.run import Run


class Followed:
    """The rows of a session, if they are few, and ledgers of the runs that can have one.

    Parameters
    ----------
    runs : sequence of sequence of Run
        The runs of each learner, before their first round.
    """

    def __init__(self, runs: Sequence[Sequence[Run]]) -> None:
        self.runs = list(itertools.chain(*runs))
        self.chunks: list[tuple[Any, list[np.ndarray], np.ndarray | None]] | None = []
        self.size = 0
        for run in self.runs:
            if isinstance(run, PanelRun) and all(m.learner.theorem is None or in_ledger(m) for m in run.members):
                run.watcher = Ledger(run, add_terms)

    def add(self, X: Any, targets: list[np.ndarray], weight: np.ndarray | None) -> None:
        """Keep rows that are about to be learnt; too many are not kept."""
        self.size += bytes_of(X)
        if self.size > SMALL:
            self.chunks = None
        if self.chunks is not None and X.shape[0]:
            self.chunks.append((X, targets, weight))

    def data(self, runs: Sequence[Run]) -> list[Data] | None:
        """The rows as these runs played them; None where they were not kept, or are dense and became wider."""
        width = max((X.shape[1] for X, _, _ in self.chunks or ()), default=0)
        for X, _, _ in self.chunks or ():
            if X.shape[1] < max(width, runs[0].features):
                if isinstance(X, np.ndarray):
                    return None
                X.resize((X.shape[0], max(width, runs[0].features)))
        if not self.chunks:
            return None
        at = [next(k for k, run in enumerate(self.runs) if run is mine) for mine in runs]
        return [
            Data.of_parts([(X, targets[k], weight) for X, targets, weight in self.chunks], run.bias)
            for k, run in zip(at, runs, strict=True)
        ]


def ledger_of(run: Run) -> Ledger | None:
    """What was added up while a run learnt; None where not all of its rounds were."""
    found = getattr(run, "watcher", None)
    return found if found is not None and found.rounds == run.rounds else None
