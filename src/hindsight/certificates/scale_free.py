"""The perceptron in the scale-free geometry: the Euclidean statement, on rows divided by the sizes of their columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from ..kernels.rows import CSR
from ..rows.data import Data
from . import theorems
from .mistakes import perceptron, steps_on_mistakes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..online.run import Run
    from .applied import AppliedTheorem
    from .replay import Rounds


def scale_free_perceptron(run: Run, data: Data, t: Rounds, u: Any, tol: float) -> AppliedTheorem:
    """M ≤ H + |u|_M √(Σ over mistakes of qₜ), |u|_M² = Σ M² u² with the sizes M at the end, q with those of its round.

    Both are those of the Euclidean perceptron for u M and rows x/M, except that q is larger: what rows were measured by
    had not grown to M yet.
    """
    sizes = np.where(run.state.largest_x > 0.0, run.state.largest_x, 1.0)
    case = perceptron(run, divided(data, sizes), t, None if u is None else data.check(u) * sizes, tol)
    rival = replace(case.comparator, u=case.comparator.u / sizes)
    steps = steps_on_mistakes(t, f"max |x/M|₂ = {np.sqrt(t.q.max()):.6g}")
    potential = float(((run.state.theta / sizes) ** 2).sum())
    spent = float((np.where(t.y * t.z <= 0.0, t.c, 0.0) ** 2 * t.q).sum())
    return replace(
        case, theorem=theorems.PERCEPTRON_SCALE_FREE, comparator=rival,
        lemma=None,  # the metric moves, so that steps are not those of the Euclidean statement
        sharper=(potential, spent, "Σ θᵢ²/Mᵢ²"), assumptions=(case.assumptions[0], steps),
        notes=tuple(note for note in case.notes if not note.startswith("separable")),
    )  # fmt: skip


def divided(data: Data, sizes: np.ndarray) -> Data:
    """The rows with each column divided by its size, read again for every pass; the intercept has size 1."""

    def chunks() -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        for first, rows, count in data.blocks():
            part = slice(first, first + count)
            yield divided_rows(rows, sizes, data.width - (data.bias != 0.0)), data.y[part], data.c[part]

    return Data.from_chunks(chunks, data.bias)


def divided_rows(rows: Any, sizes: np.ndarray, columns: int) -> Any:
    """The rows of a block, each column divided by its size."""
    if isinstance(rows, CSR):
        values = rows.data / sizes[rows.indices]
        return csr_matrix((values, rows.indices, rows.indptr), (rows.indptr.size - 1, columns))
    return np.asarray(rows.values, np.float64) / sizes[:columns]
