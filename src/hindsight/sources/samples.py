"""Real data that comes with scikit-learn."""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import Chunk, Position, ReadOptions, Source
from .labels import reads_as_number

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = ("diabetes", "breast-cancer", "digits")
PREFIX = "sample:"
CELL = (
    *("radius", "texture", "perimeter", "area", "smoothness"),
    *("compactness", "concavity", "concave-points", "symmetry", "fractal"),
)


@dataclass(frozen=True)
class SampleData:
    """Unscaled rows, targets as text, and the names of the features and the target."""

    X: np.ndarray
    y: np.ndarray
    names: list[str]
    target: str


def load_sample(name: str, target: str | None) -> SampleData:
    """Load a data set that comes with scikit-learn from its files, without importing scikit-learn.

    Parameters
    ----------
    name : {"diabetes", "breast-cancer", "digits"}
        Which data.
    target : str or None
        The name of the target, to be checked.

    Returns
    -------
    SampleData
        All rows.

    Raises
    ------
    SourceError
        If there is no such sample, its target is another, or scikit-learn is not installed.
    """
    if name not in SAMPLES:
        raise SourceError(f"there is no sample {name!r}; there are {', '.join(PREFIX + s for s in SAMPLES)}")
    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise SourceError("the samples come with scikit-learn, which is not installed")
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / "data"
    if name == "diabetes":
        X = np.loadtxt(_text(folder / "diabetes_data_raw.csv.gz"))
        y = np.array([f"{v:g}" for v in np.loadtxt(_text(folder / "diabetes_target.csv.gz"))])
        names, column = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"], "progression"
    elif name == "breast-cancer":
        data = np.loadtxt(folder / "breast_cancer.csv", delimiter=",", skiprows=1)
        X, y, column = data[:, :-1], np.where(data[:, -1] == 0, "malignant", "benign"), "diagnosis"
        names = [f"{kind}-{part}" for kind in ("mean", "error", "worst") for part in CELL]
    else:
        data = np.loadtxt(_text(folder / "digits.csv.gz"), delimiter=",")
        X, y, column = data[:, :-1], np.array([f"{v:g}" for v in data[:, -1]]), "digit"
        names = [f"pixel-{j // 8}-{j % 8}" for j in range(64)]
    if target not in (None, column):
        raise SourceError(f"{PREFIX}{name}: the target is {column!r}, not {target!r}")
    return SampleData(np.ascontiguousarray(X), y, names, column)


def _text(path: Path) -> io.StringIO:
    with gzip.open(path, "rt", encoding="ascii") as file:
        return io.StringIO(file.read())


class SampleSource(Source):
    """A data set that comes with scikit-learn, as one chunk.

    Parameters
    ----------
    where : str
        "sample:" and the name of the data.
    target : str or None
        The name of the target, to be checked.
    labels : bool or None
        True gives targets as text, False as numbers, None as numbers if all of them are.
    """

    def __init__(self, where: str, target: str | None, labels: bool | None) -> None:
        super().__init__(where, ReadOptions(target=target, labels=labels, ahead=False))
        self.data = load_sample(where.removeprefix(PREFIX), target)

    @property
    def names(self) -> list[str]:
        return self.data.names

    def restore(self, state: dict[str, Any]) -> None:
        """Do nothing: the columns of a sample are always the same."""

    def _chunks(self, start: Position | None) -> Iterator[Chunk]:
        X, y = self.data.X, self.data.y
        if self.options.labels is not True:
            bad = next((text for text in y.tolist() if not reads_as_number(text)), None)
            if bad is not None and self.options.labels is False:
                raise SourceError(
                    f"{self.where}: target {bad!r} is not a number: choose a classifier such as perceptron"
                )
            y = y if bad is not None else y.astype(np.float64)
        first = start["row"] if start else 0
        end = {"row": len(y), "rejected": 0}
        if first < len(y):
            place = lambda i: f"{self.where}, row {first + i}"  # noqa: E731
            yield Chunk(X[first:], y[first:], None, first, end, 0, place, lambda i: "")
