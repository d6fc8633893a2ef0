"""Rows of a source made ready to be played: which are taken, and targets as the runs see them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..errors import NewLabelError
from ..sources import label_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..online.run import Run
    from ..sources import Chunk


def targets_of(chunk: Chunk) -> np.ndarray:
    """The targets of a chunk, which has them as a target was named."""
    assert chunk.y is not None
    return chunk.y


def labels_in(y: np.ndarray) -> set[str]:
    """The labels, as text."""
    found = np.unique(y)
    return set((label_text(found) if found.dtype.kind == "f" else found).tolist())


def in_order(labels: set[str]) -> list[str]:
    """Labels by number where they are numbers, then by name."""
    return sorted(labels, key=lambda v: (not number(v), float(v) if number(v) else 0.0, v))


def number(text: str) -> bool:
    """Whether the text is a number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def check_labels(labels: list[str]) -> None:
    """Refuse fewer than two labels, and so many that they must be numbers."""
    if len(labels) < 2:
        raise ValueError(f"the target has one value only: {labels[0]!r}" if labels else "there is no row to learn from")
    if len(labels) > MANY:
        raise ValueError(f"the target has more than {MANY} values: for numbers take --learner widrow-hoff")


def sampled(chunks: Iterator[Chunk], part: float, seed: int) -> Iterator[Chunk]:
    """Chunks with each row taken with probability `part`. What is drawn for a row depends on its number alone.

    So the sizes of chunks, another pass or going on from a checkpoint change nothing.
    """
    for chunk in chunks:
        skip = chunk.first % 4  # of the four numbers that the generator makes at a time
        draws = np.random.Generator(np.random.Philox(key=seed).advance(chunk.first // 4)).random(skip + len(chunk))
        taken = np.flatnonzero(draws[skip:] < part)
        chunk.X = chunk.X[taken]
        chunk.y = None if chunk.y is None else chunk.y[taken]
        chunk.weight = None if chunk.weight is None else chunk.weight[taken]
        chunk.place, chunk.raw = renumbered(chunk.place, taken), renumbered(chunk.raw, taken)
        yield chunk


def renumbered(tell: Callable[[int], str], rows: np.ndarray) -> Callable[[int], str]:
    """The same of row rows[i]."""
    return lambda i: tell(int(rows[i]))


def limited(chunks: Iterator[Chunk], limit: int | None, row: int) -> Iterator[Chunk]:
    """Chunks up to so many rows in all, `row` of which have been."""
    for chunk in chunks:
        if limit is not None and row + len(chunk) >= limit:
            m = limit - row
            chunk.X = chunk.X[:m]
            chunk.y = None if chunk.y is None else chunk.y[:m]
            chunk.weight = None if chunk.weight is None else chunk.weight[:m]
            yield chunk
            return
        row += len(chunk)
        yield chunk


def coded(labels: list[str], chunk: Chunk, raw: np.ndarray) -> np.ndarray:
    """Which of the labels each row has."""
    codes = np.full(len(raw), -1)
    for k, label in enumerate(labels):
        if raw.dtype.kind != "f":
            np.copyto(codes, k, where=raw == label)
        elif number(label):
            np.copyto(codes, k, where=raw == float(label))
    if len(codes) and codes.min() < 0:
        row = int(codes.argmin())
        text = next(iter(labels_in(raw[row : row + 1])))
        raise NewLabelError(f"{chunk.place(row)}: label {text!r} is not one of {', '.join(labels)}")
    return codes


def targets_for(labels: list[str] | None, run: Run, raw: np.ndarray, codes: np.ndarray | None) -> list[np.ndarray]:
    """For each run of a learner, its targets: numbers, or labels as the rule takes them."""
    if labels is None or codes is None:
        return [raw]
    low = 0.0 if run.learner.targets == "unit" else -1.0
    return [(1.0 - low) * (codes == k) + low for k in (range(1, 2) if len(labels) == 2 else range(len(labels)))]


MANY = 100  # labels at most
