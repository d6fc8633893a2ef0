"""What to learn from what."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..online.learners import BY_NAME, Learner
from ..sources import Chunk, Source, SourceError, ending, open_source, sample
from ..sources.base import Options

if TYPE_CHECKING:
    from collections.abc import Iterator
from .prepare import number, sampled

ONCE = "rows from standard input can be read only once"


@dataclass(frozen=True)
class Plan:
    """What to learn from what. `learners` are (name, options) pairs; `reading` are parameters of `open_source`."""

    data: Any
    target: str | None
    learners: tuple[tuple[str, dict[str, Any]], ...]
    reading: dict[str, Any] = field(default_factory=dict)
    intercept: bool = True
    passes: int = 1
    scale: str = "none"
    labels: tuple[str, ...] | None = None
    limit: int | None = None
    sample: float | None = None
    seed: int = 0
    digest: bool = False

    def __post_init__(self) -> None:
        if self.sample is not None and not 0.0 < self.sample <= 1.0:
            raise ValueError(f"sample, the part of the rows to take, must be above 0 and at most 1; got {self.sample}")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"seed must be a whole number from 0 to 2^64 - 1; got {self.seed}")

    def settings(self) -> dict[str, Any]:
        """Everything that decides the result, as plain values."""
        out = asdict(self)
        del out["digest"]
        return {
            k: [list(e) if isinstance(e, tuple) else e for e in v] if isinstance(v, tuple) else v
            for k, v in out.items()
        }

    def make(self) -> list[Learner]:
        """The learners."""
        made: list[Learner] = [BY_NAME[name].make(**options) for name, options in self.learners]
        return made

    def classify(self) -> bool:
        """Whether targets are labels; a ValueError where some learners want labels and others numbers."""
        kinds = {
            BY_NAME[name].task == "classify" or learner.targets in ("sign", "unit")
            for (name, _), learner in zip(self.learners, self.make(), strict=True)
        }
        if len(kinds) > 1:
            raise ValueError("some of these learners predict labels and others numbers: run them apart")
        return kinds.pop()

    def open(self) -> Source:
        """The source, from its beginning."""
        labels = None if self.classify() else False
        if isinstance(self.data, str) and self.data.startswith("sample:"):
            return Sample(self.data, self.target, labels)
        target = self.target
        if target is None:
            paths = self.data if isinstance(self.data, (list, tuple)) else [self.data]
            if (self.reading.get("format") or ending(str(paths[0]))) not in ("svmlight", "vw"):
                raise SourceError(f"{self.data}: say which column to predict: --target COLUMN")
            target = "label"  # such rows have a place of their own for it
        return open_source(self.data, target, labels=labels, digest=self.digest, **self.reading)

    def chunks(self, source: Source, start: dict[str, Any] | None = None) -> Iterator[Chunk]:
        """The rows of the source that are to be taken."""
        return source.chunks(start) if self.sample is None else sampled(source.chunks(start), self.sample, self.seed)


class Sample(Source):
    """Real data that scikit-learn ships, as one chunk."""

    def __init__(self, where: str, target: str | None, labels: bool | None) -> None:
        super().__init__(where, Options(target=target, ahead=False))
        self.table = sample(where.removeprefix("sample:"), target)
        self.numbers = labels is False
        self.done_to_it = self.table.about.split("features, ")[1]

    @property
    def names(self) -> list[str]:
        return self.table.names

    def restore(self, state: dict[str, Any]) -> None:
        """The columns of a sample are always the same."""

    def _chunks(self, start: dict[str, Any] | None) -> Iterator[Chunk]:
        X, raw, places = self.table.X, self.table.y, self.table.places
        if self.numbers and not all(map(number, raw.tolist())):
            bad = next(v for v in raw.tolist() if not number(v))
            raise SourceError(f"{self.where}: target {bad!r} is not a number: take a learner of labels, as perceptron")
        y = raw.astype(np.float64) if self.numbers else raw
        first = start["row"] if start else 0
        here = {"row": len(y), "rejected": 0}
        if first < len(y):
            yield Chunk(X[first:], y[first:], None, first, here, 0, lambda i: places[first + i], lambda i: "")
