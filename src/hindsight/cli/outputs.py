"""Files that grow with a run: predictions and rejected rows. A resumed run goes on where its checkpoint left them."""

from __future__ import annotations

import csv
import io
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from ..training.session import Course, Piece


class Growing:
    """Lines added to a file, whose length at a checkpoint is known."""

    def __init__(self, path: str, header: list[str], length: int | None) -> None:
        self.path = path
        try:
            self.file = open(path, "r+b" if length else "wb")  # noqa: SIM115  # closed by `close`
            if length:
                if os.fstat(self.file.fileno()).st_size < length:
                    raise ValueError(f"{path}: shorter than when the checkpoint was written: it cannot be gone on with")
                self.file.truncate(length)
                self.file.seek(length)
            else:
                self.add([header])
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from None

    def add(self, records: Iterable[Iterable[Any]]) -> None:
        """Append records of CSV."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(records)
        try:
            self.file.write(out.getvalue().encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise ValueError(f"{self.path}: {error.strerror}") from None

    def safe(self) -> int:
        """How long the file is, once all of it is on disk."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise ValueError(f"{self.path}: {error.strerror}") from None
        return self.file.tell()

    def close(self) -> None:
        """Leave the file."""
        self.file.close()


REJECTS = ["file", "line", "column", "reason", "raw"]


class Outputs:
    """The files a run writes as it goes."""

    def __init__(
        self, course: Course, titles: list[str], predictions: str | None, rejects: str | None, kept: Any
    ) -> None:
        lengths = kept or {}
        one = ["prediction"] if len(titles) == 1 else titles
        self.predictions = Growing(predictions, one, lengths.get("predictions")) if predictions else None
        self.rejects = Growing(rejects, REJECTS, lengths.get("rejects")) if rejects else None
        self.course = course

    def add(self, piece: Piece) -> None:
        """What some rows gave."""
        if self.rejects is not None and piece.rejects:
            self.rejects.add(piece.rejects)
        if self.predictions is not None and len(piece.y):
            self.predictions.add(zip(*predicted(self.course, piece.margins), strict=True))

    def safe(self) -> dict[str, int]:
        """How long each is, once on disk."""
        both = (("predictions", self.predictions), ("rejects", self.rejects))
        return {name: file.safe() for name, file in both if file is not None}

    def close(self) -> None:
        """Leave them."""
        for file in (self.predictions, self.rejects):
            if file is not None:
                file.close()


def predicted(course: Course, z: np.ndarray) -> list[list[Any]]:
    """For each learner what it predicted: numbers through the link, or labels."""
    from ..training.model import means

    each, out = len(course.runs[0]), []
    for k, runs in enumerate(course.runs):
        mine = z[:, k * each : (k + 1) * each]
        if course.labels is None:
            out.append([repr(v) for v in means(runs[0].learner.loss, mine[:, 0]).tolist()])
        else:
            codes = (mine[:, 0] > 0).astype(int) if each == 1 else mine.argmax(axis=1)
            out.append([course.labels[c] for c in codes.tolist()])
    return out
