"""What to learn from what."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..online.learners import BY_NAME, Learner
from ..sources import Chunk, SampleSource, Source, SourceError, file_format, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator
from .prepare import sampled

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
            return SampleSource(self.data, self.target, labels)
        target = self.target
        if target is None:
            paths = self.data if isinstance(self.data, (list, tuple)) else [self.data]
            if (self.reading.get("format") or file_format(str(paths[0]))) not in ("svmlight", "vw"):
                raise SourceError(f"{self.data}: say which column to predict: --target COLUMN")
            target = "label"  # such rows have a place of their own for it
        return open_source(self.data, target, labels=labels, digest=self.digest, **self.reading)

    def chunks(self, source: Source, start: dict[str, Any] | None = None) -> Iterator[Chunk]:
        """The rows of the source that are to be taken."""
        return source.chunks(start) if self.sample is None else sampled(source.chunks(start), self.sample, self.seed)
