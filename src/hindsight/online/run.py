"""Runs: a learner's state as it moves along a stream, played block by block.

`play` is the only way to learn. Several runs over the same rows (one-vs-rest, several rates) share each block while it
is in cache. A call either plays every row or changes nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..kernels.online import FACTS
from ..kernels.state import ROUNDS
from .facts import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .learners import Learner
from ..rows.matrices import explain, rows_of
from ..validation import check_targets, check_weights

BLOCK = 65536  # rows, so many that a call of the kernel costs next to nothing
SHARED = 1 << 19  # bytes of a block that several runs read in turn


class Run:
    """One learner on one stream.

    Parameters
    ----------
    learner : the rule, update, geometry and step.
    features : number of features, without the intercept.
    intercept : whether a constant coordinate 1 joins every row (it counts in the norms).
    average : whether to keep the sum of the iterates.
    start : w_1 (with the intercept's weight last), inside the geometry's set; None is the table's.
    """

    def __init__(
        self,
        learner: Learner,
        features: int,
        *,
        intercept: bool = True,
        average: bool = False,
        start: np.ndarray | None = None,
    ) -> None:
        self.learner = learner
        self.bias = 1.0 if intercept else 0.0
        width = features + intercept
        self.start = None if start is None else check_start(learner.geometry, start, width)
        self.v, self.s = learner.geometry.begin(width, self.start, average)
        self.first = learner.geometry.weights(self.v, self.s)
        self.f = np.zeros(FACTS)
        self.f[-1] = -np.inf

    @property
    def width(self) -> int:
        """Coordinates of the weights, the intercept's included."""
        return int(self.v.shape[1])

    @property
    def intercept(self) -> bool:
        """Whether there is an intercept coordinate."""
        return bool(self.bias)

    @property
    def features(self) -> int:
        """Features there is room for, the intercept left out."""
        return self.width - self.intercept

    @property
    def rounds(self) -> int:
        """Rounds played so far; rows of weight 0 are none."""
        return int(self.s[ROUNDS])

    @property
    def facts(self) -> Facts:
        """Facts of all rounds so far."""
        return Facts.of(self.f)

    @property
    def weights(self) -> np.ndarray:
        """The weights w_{T+1}, the intercept's last."""
        return self.learner.geometry.weights(self.v, self.s)

    def mean(self, convention: str) -> np.ndarray:
        """The mean of the iterates: "before" is N0's w_1..w_T, "after" is N2's w_2..w_{T+1}; w_1 before any round."""
        if self.rounds == 0:
            return self.first.copy()
        total = self.learner.geometry.total(self.v, self.s)
        if convention == "after":
            total += self.weights - self.first
        return total / self.rounds

    def snapshot(self) -> tuple[np.ndarray, ...]:
        """A copy of the state, for `restore`."""
        return self.v.copy(), self.s.copy(), self.f.copy()

    def restore(self, state: tuple[np.ndarray, ...]) -> None:
        """Go back to a snapshot."""
        self.v[:], self.s[:], self.f[:] = state

    def mirrored(self) -> Run:
        """The run of the opposite labels: the same numbers with the other sign, for every rule and signed weights."""
        if isinstance(self.learner.geometry, kernels.Simplex):
            raise ValueError("weights on the simplex have no sign to turn: declare all classes before learning")
        other: Run = object.__new__(Run)
        other.__dict__.update(self.__dict__)
        other.v, other.s, other.f, other.first = -self.v, self.s.copy(), self.f.copy(), -self.first
        if isinstance(self.learner.geometry, kernels.Balanced) and len(self.v) > 2:
            other.v[3] = self.v[3]  # clocks have no sign
        if self.learner.targets == "unit":
            other.f[7] = self.f[1] - self.f[7]  # labels 0 and 1 change places in Sigma c y^2
        return other

    def resize(self, features: int) -> None:
        """Room for so many features, new ones at weight 0: only where weights do not depend on how many there are."""
        end = self.v.shape[1] - bool(self.bias)
        old = min(end, features)
        v, first = np.zeros((len(self.v), features + bool(self.bias))), np.zeros(features + bool(self.bias))
        for new, was in ((v, self.v), (first[None], self.first[None])):
            new[:, :old] = was[:, :old]
            new[:, features:] = was[:, end:]
        self.v, self.first = v, first


def check_start(geometry: Any, start: Any, width: int) -> np.ndarray:
    """`start` as a vector inside the geometry's set, or one clear error."""
    w: np.ndarray = np.asarray(start, np.float64)
    if w.shape != (width,):
        raise ValueError(f"start must have {width} numbers (the intercept's last), got shape {w.shape}")
    if not np.isfinite(w).all():
        bad = int(np.flatnonzero(~np.isfinite(w))[0])
        raise ValueError(f"start[{bad}] = {w[bad]} is not finite")
    radius = geometry.radius
    if isinstance(geometry, kernels.Simplex) and not (w.min() >= 0 and abs(w.sum() - radius) <= 1e-9 * radius):
        raise ValueError(f"start must lie on the simplex: least weight {w.min():g}, sum {w.sum():g} (want {radius:g})")
    if isinstance(geometry, kernels.Balanced) and not np.abs(w).sum() < radius:
        raise ValueError(f"start must have |w|_1 below the radius {radius:g}, got {np.abs(w).sum():g}")
    return w


@contextmanager
def unchanged_on_error(runs: Sequence[Run]) -> Iterator[None]:
    """Restore the runs to what they were at the start of the block if an exception leaves it."""
    before = [run.snapshot() for run in runs]
    try:
        yield
    except BaseException:
        for run, state in zip(runs, before, strict=True):
            run.restore(state)
        raise


def play(runs: Sequence[Run], *rows: Any, **options: Any) -> None:
    """Play all rows with every run as `play_rows` does, or raise and leave every run as it was."""
    with unchanged_on_error(runs):
        play_rows(runs, *rows, **options)


def play_rows(
    runs: Sequence[Run],
    X: Any,
    targets: Sequence[np.ndarray],
    weight: np.ndarray | None = None,
    margins: np.ndarray | None = None,
    names: Sequence[Any] | None = None,
    idle: bool = False,
) -> None:
    """Play all rows of X with every run, in order; after an error the runs stand at the row that caused it.

    Parameters
    ----------
    X : float32 or float64 rows, 2-D array or CSR.
    targets : for each run, the float64 targets.
    weight : importance of each row; None is 1.
    margins : filled, if given, with the margin of every row before its update, a column a run.
    names : of the columns, for errors.
    idle : whether all weights may be zero: then nothing is learnt, and the margins are still those of the rows.
    """
    m = X.shape[0]
    for run, y in zip(runs, targets, strict=True):
        check_targets(run.learner.targets, y)
        rates = run.learner.rate.rates.size
        if rates and run.rounds + (m if weight is None else np.count_nonzero(weight)) > rates:
            raise ValueError(f"{rates} rates were given, but there are more rounds than that")
    if weight is not None:
        check_weights(weight, idle)
    block = BLOCK
    if len(runs) > 1:
        block = max(1, min(BLOCK, SHARED * m // max(1, X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes)))
    block = max(1, min(block, m))
    work, ones = np.empty((3, block)), np.ones(block)
    rows = rows_of(X, runs[0].bias) if runs else None
    for a in range(0, m, block):
        b = min(m, a + block)
        c = ones[: b - a] if weight is None else weight[a:b]
        for k, run in enumerate(runs):
            _block(run, rows, a, b, targets[k][a:b], c, work[:, : b - a], X, names)
            if margins is not None:
                margins[a:b, k] = work[0, : b - a]


def _block(
    run: Run, rows: Any, a: int, b: int, y: np.ndarray, c: np.ndarray, work: np.ndarray, X: Any, names: Any
) -> None:
    rule, update, geometry, step = run.learner.loss, run.learner.update, run.learner.geometry, run.learner.rate
    z, q, top = work
    played = kernels.play(rows, a, b, y, c, rule, update, geometry, step, run.v, run.s, z, q, top, run.f)
    if played < b - a:
        explain(X, a + played, y[played], z[played], q[played], run.v.shape[1] - bool(run.bias), names)


def doubts(run: Run) -> list[str]:
    """What in the data seen so far breaks an assumption, with the numbers."""
    facts, learner = run.facts, run.learner
    rule, geometry = learner.loss, learner.geometry
    found = []
    multiplicative = not isinstance(geometry, kernels.Euclidean)
    if isinstance(rule, kernels.Square) and isinstance(learner.update, kernels.Explicit):
        seen = rule.scale * (facts.rate_xinf * geometry.radius**2 if multiplicative else facts.rate_x2)
        if seen >= 1.0:
            norm = "U^2 |x|_inf^2" if multiplicative else "|x|_2^2"
            found.append(
                f"eta {norm} reached {seen:.4g} (at least 1): the loss bound of this explicit step is void; "
                "take a smaller eta, scale the rows, or use update='implicit'"
            )
    reach = geometry.radius * facts.xinf
    regress = learner.targets == "real" and isinstance(rule, (kernels.Square, kernels.Absolute))
    if multiplicative and regress and facts.target_max > reach * (1 + 1e-12):
        found.append(
            f"max |y| = {facts.target_max:.4g} is out of reach: |w.x| <= U |x|_inf = {reach:.4g}; raise radius"
        )
    if learner.name == "winnow" and facts.xinf > 1.0:
        found.append(f"max |x|_inf = {facts.xinf:.4g} is above the 1 that N3 assumes: scale the features")
    return found
