"""The batch perceptron with a pocket (N2; THEORY.md 8), and a family of rows that is exponentially hard for it.

Rows are scanned in their order, over and over; each violated one, y (w.x) <= 0, is added: w += y x. The scan ends when
every row has been right since the last update. With u such that y (u.x) >= 1 on all rows that takes at most (R|u|)^2
updates, R = max |x|; on rows that no w separates it never ends by itself.

**The pocket** keeps the hypothesis with the fewest training errors, counted over all rows. A hypothesis is counted when
it meets the row that ends it, those rows first that were most wrong lately, and only until it has as many errors as the
pocket. That takes at least as many rows as the pocket has errors, for every update: cheap where rows are nearly
separable, hundreds of scans a scan where they are noisy. The rows read to count are therefore kept within `effort` for
each row scanned (and FREE beside). While that lasts the pocket is the best of *all* hypotheses. Once it does not,
`every` is False, and from then on a hypothesis is counted as often as `effort` allows, over rows in a random order (of
a fixed seed), given up as soon as its errors come faster than the pocket's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MismatchError
from ..online.facts import Facts
from ..rows.data import Data
from ..rows.matrices import explain
from ..storage.registry import storable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
from ..kernels.perceptron import (
    AT,
    COUNTERS,
    ERRORS,
    EVERY,
    LOSS,
    NORM,
    READ,
    RIGHT,
    SORT,
    UPDATES,
    VISITS,
    ZEROS,
    count,
    keep,
    scan,
)

Floats = NDArray[np.float64]

FREE = 3e7  # numbers that counting may read in any case: some hundredths of a second
SLICE = 1 << 27  # numbers that are read between two looks at the clock


@storable
@dataclass
class Halfspace:
    """A batch perceptron at work on labels -1 and 1: its weights, its pocket and its counters.

    Attributes
    ----------
    v, pocket : the weights now and those with the fewest errors, of shape (1, width), the intercept's last.
    converged : whether the weights now are right on every row.
    """

    v: Floats
    pocket: Floats
    s: NDArray[np.int64]
    f: Floats = field(default_factory=lambda: np.zeros(2))
    converged: bool = False
    reach: tuple[float, float] = (0.0, 0.0)  # largest |x|_2^2 and |x|_inf

    @classmethod
    def fresh(cls, width: int) -> Halfspace:
        """From w = 0."""
        return cls(np.zeros((1, width)), np.zeros((1, width)), np.zeros(COUNTERS, np.int64))

    @property
    def updates(self) -> int:
        """Updates so far."""
        return int(self.s[UPDATES])

    @property
    def visits(self) -> int:
        """Rows scanned so far."""
        return int(self.s[VISITS])

    @property
    def errors(self) -> int:
        """Training errors of the pocket, counted over all rows; a zero margin is one."""
        return int(self.s[ERRORS])

    @property
    def every(self) -> bool:
        """Whether every hypothesis of the last call was counted: then none of them has fewer errors than the pocket."""
        return bool(self.s[EVERY])

    @property
    def facts(self) -> Facts:
        """The facts of the same rounds played online; norms are those of all rows."""
        t, m, norm, loss = float(self.visits), self.updates, float(self.f[NORM]), float(self.f[LOSS])
        q, top = self.reach
        square = 4.0 * (m - int(self.s[ZEROS])) + float(self.s[ZEROS])
        return Facts(
            self.visits, t, loss, square, m, float(m), norm, t, norm, t, loss, norm,
            math.sqrt(q), top, q, top * top, 1.0, q, top * top, 1.0, 1.0, 1.0,
        )  # fmt: skip

    def copy(self) -> Halfspace:
        """The same, apart."""
        return Halfspace(self.v.copy(), self.pocket.copy(), self.s.copy(), self.f.copy(), self.converged, self.reach)

    def train(
        self,
        data: Data,
        X: Any,
        *,
        passes: int | None = 100,
        updates: int | None = None,
        effort: float = 1.0,
        tell: Callable[[Halfspace], None] | None = None,
        names: Sequence[Any] | None = None,
    ) -> None:
        """Scan the rows until all are right, at most `passes` times and for at most `updates` more updates.

        `tell` is called now and then; `X` and `names` are what an error speaks of. An error leaves the state half-way:
        train a copy.
        """
        rows, q = sound(data, X, names)
        m, s = data.rounds, self.s
        order, mixed = np.arange(m), np.random.default_rng(0).permutation(m)
        if s[AT] >= m:
            s[AT] = 0
        s[RIGHT], s[EVERY] = 0, 1
        s[ERRORS] = count(rows, data.y, self.pocket, order, m + 1, m)[0]
        self.reach = float(q.max()), float(data.row_norms_inf().max())
        last = s[VISITS] + passes * m if passes is not None else np.iinfo(np.int64).max
        most = s[UPDATES] + updates if updates is not None else np.iinfo(np.int64).max
        spare = math.inf if math.isinf(effort) else FREE / data.width + float(s[READ]) - effort * float(s[VISITS])
        step = max(m, SLICE // data.width)
        gain = 0.0 if math.isinf(effort) else effort
        often = max(SORT[0] * m, SORT[1])
        again = s[READ] + often
        while True:
            part = min(int(last), int(s[VISITS]) + step)
            row = scan(
                rows, data.y, q, self.v, self.pocket, order, mixed, s, self.f, m, part, most, again, spare, gain
            )  # fmt: skip
            if row >= 0:
                raise ValueError(f"row {row}: the margin w.x overflows (|x|^2 = {q[row]:g}); scale the features")
            if s[RIGHT] >= m or s[VISITS] >= last or s[UPDATES] >= most:
                break
            if s[READ] >= again:
                if self.every and spare + gain * s[VISITS] - s[READ] >= m:
                    order[:] = self._worst_first(data, q)
                    s[READ] += m
                again = s[READ] + often
            if tell is not None:
                tell(self)
        self.converged = bool(s[RIGHT] >= m)
        wrong, _ = count(rows, data.y, self.v, order, s[ERRORS], m)
        if wrong < s[ERRORS]:
            keep(self.v, self.pocket, s, wrong)
        if tell is not None:
            tell(self)

    def _worst_first(self, data: Data, q: Floats) -> NDArray[np.int64]:
        """The rows by their margins under the weights now, roughly: as many as the pocket errs on, twice that, ..."""
        margins = data.y * data.margins(self.v[0]) / np.sqrt(np.maximum(q, np.finfo(np.float64).tiny))
        marks = [k for k in (self.errors << np.arange(4)).tolist() if k < data.rounds]
        return np.argpartition(margins, marks) if marks else np.arange(data.rounds)

    def replay(self, data: Data) -> None:
        """Go through as many rows again, from 0: an error where that does not give these weights and updates."""
        again = Halfspace.fresh(self.v.shape[1])
        if data.width != self.v.shape[1]:
            raise MismatchError(f"the model has {self.v.shape[1]} coordinates, these rows have {data.width}")
        rows, q = sound(data, None, None)
        order, most = np.arange(data.rounds), np.iinfo(np.int64).max
        scan(
            rows, data.y, q, again.v, again.pocket, order, order, again.s, again.f, most, self.visits, most, most,
            -math.inf, 0.0,
        )  # fmt: skip
        far = float(np.abs(again.v - self.v).max())
        if again.updates != self.updates or not far <= 1e-9 * float(np.abs(self.v).max(initial=0.0)):
            raise MismatchError(
                "the model was not trained on these rows in this order: it took "
                f"{self.updates:,} updates in {self.visits:,} rows, here they are {again.updates:,}; "
                f"weights differ by {far:.3g}"
            )


def sound(data: Data, X: Any, names: Sequence[Any] | None) -> tuple[Any, Floats]:
    """The rows in one piece as the loop reads them, and |x|^2 of each, all finite."""
    pieces = list(data.blocks())
    if len(pieces) != 1:
        raise ValueError("the batch perceptron goes through its rows many times: give them in one contiguous piece")
    q = data.row_norms2()
    if not np.isfinite(q).all():
        row = int(np.flatnonzero(~np.isfinite(q))[0])
        if X is None:
            raise MismatchError(f"row {row} is not finite: these are not the rows of the run")
        explain(X, row, float(data.y[row]), 0.0, float(q[row]), X.shape[1], names)
    return pieces[0][1], q


def hard_halfspace(d: int) -> tuple[Floats, Floats]:
    """2d separable rows in d dimensions on which the perceptron needs at least (4^d - 1)/3 updates, in any order.

    Row k is e_k - e_1 - ... - e_(k-1) with label 1, and its negative with label -1: an intercept is of no use. Whole
    numbers w with w_k > w_1 + ... + w_(k-1) have w_k >= 2^(k-1); and with n_k updates on row k or its negative
    n_1 + ... + n_d = Sigma_k 2^(k-1) w_k >= Sigma_k 4^(k-1). The linear program needs a moment.

    Examples
    --------
    >>> X, y = hard_halfspace(3)
    >>> X[:3]
    array([[ 1.,  0.,  0.],
           [-1.,  1.,  0.],
           [-1., -1.,  1.]])
    """
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or not 1 <= d <= 40:
        raise ValueError(f"d must be a whole number between 1 and 40 (weights grow as 2^d), got {d!r}")
    rows = np.eye(d) - np.tri(d, k=-1)
    return np.vstack((rows, -rows)), np.repeat((1.0, -1.0), d)
