"""What was learnt, in one file: `Model` from the command, or an estimator; `load` gives back either.

Nothing in a file is run: estimators are looked up among our own public names, and everything else is numbers and text.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..errors import ModelError
from ..kernels.euclidean import Euclidean
from ..kernels.losses import Square
from ..kernels.rates import RateSchedule
from ..kernels.updates import Explicit
from ..online.learners import Learner
from ..online.run import BLOCK, Run
from ..rows.matrices import explain, rows_of
from . import container as files
from .codec import ROWS, decode, encode, estimator_kind

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from ..certificates.certificate import Certificate, Certificates
    from ..online.facts import Facts


def versions() -> dict[str, str]:
    """Of what computes: this package, Python, numpy and numba."""
    from importlib.metadata import version

    found = {"hindsight": sys.modules["hindsight"].__version__, "python": platform.python_version()}
    return found | {name: version(name) for name in ("numpy", "numba")}


@dataclass
class Model:
    """A trained model as the command saves it.

    Attributes
    ----------
    runs : one run, or one a label where there are more than two.
    names : of the features; None where they are numbered.
    labels : of a classifier, as text: labels[0] is -1 (or 0) and labels[1] is 1 for a single run.
    average : None predicts with the last weights, "before" and "after" with the means of `Run.mean`.
    settings : every setting of the run, as echoed.
    preparation : what was done to the rows before they were played, so that it can be done again: plain values,
        text, lists, dicts and arrays.
    digest : of the data it was trained on.
    certificate : if one was made.
    versions : of what it was made with.
    """

    runs: list[Run]
    names: list[str] | None = None
    labels: list[str] | None = None
    average: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    preparation: dict[str, Any] = field(default_factory=dict)
    digest: str | None = None
    certificate: Certificate | Certificates | None = None
    versions: dict[str, str] = field(default_factory=versions)

    def __post_init__(self) -> None:
        self.names, self.labels = (None if v is None else list(v) for v in (self.names, self.labels))
        runs, labels = self.runs, self.labels
        if not isinstance(runs, list) or not runs or not all(isinstance(run, Run) for run in runs):
            raise ValueError("a model has at least one run")
        shape = runs[0].v.shape
        if any(run.v.shape != shape or run.bias != runs[0].bias for run in runs):
            raise ValueError("the runs of a model have the same features")
        if self.names is not None and len(self.names) != self.features:
            raise ValueError(f"{len(self.names)} names for {self.features} features")
        if labels is None and len(runs) > 1:
            raise ValueError(f"{len(runs)} runs, but no labels")
        if labels is not None and len(runs) != (1 if len(labels) == 2 else len(labels)):
            raise ValueError(f"{len(runs)} runs for {len(labels)} labels")
        if self.average not in (None, "before", "after"):
            raise ValueError(f"average must be None, 'before' or 'after', got {self.average!r}")
        if self.average is not None and shape[0] != ROWS[type(self.learner.geometry)][1]:
            raise ValueError("the runs kept no average")

    @property
    def learner(self) -> Learner:
        return self.runs[0].learner

    @property
    def features(self) -> int:
        return int(self.runs[0].v.shape[1]) - self.intercept

    @property
    def intercept(self) -> bool:
        return bool(self.runs[0].bias)

    @property
    def facts(self) -> list[Facts]:
        """Of each run."""
        return [run.facts for run in self.runs]

    @property
    def weights(self) -> np.ndarray:
        """The weights that predict, a row a run, the intercept's last."""
        return np.array([run.weights if self.average is None else run.mean(self.average) for run in self.runs])

    def margins(self, X: Any) -> np.ndarray:
        """The margin of each row of an array or a CSR matrix, a column a run; a row's neighbours change nothing."""
        if not hasattr(X, "indptr"):
            X = np.asarray(X)
        if X.dtype not in (np.float64, np.float32):
            X = X.astype(np.float64)
        if X.ndim != 2 or X.shape[1] != self.features:
            raise ValueError(f"the model has {self.features} features, the rows have shape {X.shape}")
        return margins(self.weights, X, self.runs[0].bias, self.names)

    def predict(self, X: Any) -> np.ndarray:
        """The label of each row, or for a regression what its margin predicts through the link."""
        return self.predictions(self.margins(X))

    def predictions(self, z: np.ndarray) -> np.ndarray:
        """What margins predict."""
        if self.labels is None:
            return means(self.learner.loss, z[:, 0])
        return np.array(self.labels)[self.choices(z)]

    def choices(self, z: np.ndarray) -> np.ndarray:
        """Which label margins choose: the second of two where the margin is above 0, else that of the largest."""
        return (z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file; a reader finds the file that was there or the new one, never half of either."""
        save(path, "model", {f.name: getattr(self, f.name) for f in fields(self)})


def margins(weights: np.ndarray, X: Any, bias: float, names: Sequence[Any] | None = None) -> np.ndarray:
    """w.x of each row, a column a row of `weights`, summed as when learning; a row that is no row is a RowError."""
    m = X.shape[0]
    z, work, nothing = np.empty((m, len(weights))), np.empty((3, min(m, BLOCK))), np.zeros(min(m, BLOCK))
    rows = rows_of(X, bias)
    parts = Square(1.0), Explicit(1.0), Euclidean(1.0), RateSchedule(1.0, 0.0, np.zeros(0))
    facts = np.zeros(kernels.FACTS)
    for a in range(0, m, BLOCK):
        size = min(m - a, BLOCK)
        rest = nothing[:size]  # rows of weight 0: nothing is learnt
        for k, w in enumerate(weights):
            v, s, (mine, q, top) = w[None].copy(), np.zeros(kernels.SCALARS), work[:, :size]
            played = kernels.play(rows, a, a + size, rest, rest, *parts, v, s, mine, q, top, facts)
            if played < size:
                explain(X, a + played, 0.0, mine[played], q[played], w.size - bool(bias), names)
            z[a : a + size, k] = mine
    return z


def means(rule: Any, z: np.ndarray) -> np.ndarray:
    """What margins predict through the link of a rule."""
    z = np.ascontiguousarray(z, np.float64)
    out = np.empty_like(z)
    kernels.means(rule, z, out)
    return out


# ---------------------------------------------------------------- files


def save(path: str | os.PathLike[str], kind: str, state: Mapping[str, Any]) -> None:
    """Write a state of plain values, arrays and runs."""
    try:
        document, tensors = encode(dict(state))
    except TypeError as error:
        raise ModelError(f"{path}: cannot be saved: {error}") from None
    files.write(path, kind, document, tensors)


def save_estimator(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator of ours to one file; `load` gives an equal one, whose predictions are the same bits."""
    name = type(estimator).__name__
    if estimator_kind(name) is not type(estimator):
        raise ModelError(f"{path}: cannot be saved: {name} is no estimator of hindsight")
    save(path, "estimator", {"estimator": estimator, "versions": versions()})


def load(path: str | os.PathLike[str]) -> Any:
    """The model or the estimator of a file, as it was saved."""
    return opened(path)[0]


def opened(path: str | os.PathLike[str]) -> tuple[Any, dict[str, str]]:
    """What `load` gives, and the versions it was made with."""
    kind, document, tensors = files.read(path, ("model", "estimator"))
    try:
        found = decode(document, tensors)
        texts = [*found["versions"], *found["versions"].values()]
        if not all(type(text) is str for text in texts):
            raise ValueError("versions are no texts")
        if kind == "estimator":
            if estimator_kind(type(found["estimator"]).__name__) is None:
                raise ValueError("it holds no estimator")
            return found["estimator"], found["versions"]
        return _model(found), found["versions"]
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(f"{path}: does not describe a model: {error}") from None


def _model(found: dict[str, Any]) -> Model:
    from ..certificates.certificate import Certificate, Certificates

    def texts(values: Any) -> bool:
        return all(type(v) is str for v in values)

    for name in ("names", "labels"):
        if found[name] is not None and not (isinstance(found[name], list) and texts(found[name])):
            raise ValueError(f"{name} are no texts")
    for name in ("settings", "preparation"):
        if not isinstance(found[name], dict) or not texts(found[name]):
            raise ValueError(f"{name} are no named values")
    if found["digest"] is not None and not isinstance(found["digest"], str):
        raise ValueError("digest is no text")
    if not isinstance(found["certificate"], (Certificate, Certificates, type(None))):
        raise ValueError("certificate is none")
    return Model(**found)
