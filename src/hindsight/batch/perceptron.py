"""The batch perceptron with a pocket, and a family of rows that is exponentially hard for it.

Rows are scanned in their order, over and over; each violated row, y (w . x) <= 0, is added: w += y x. The scan ends
when every row has been classified correctly since the last update. If y (u . x) >= 1 on all rows for some u, then from
w = 0 this takes at most (R|u|)^2 updates, R = max |x|. If no w separates the rows, the scan never ends by itself.

**The pocket** keeps the hypothesis with the fewest training errors, counted over all rows. The errors of a hypothesis
are counted when the next violated row replaces it. Rows that were most wrong recently are read first, and counting
stops when the hypothesis has as many errors as the pocket. For every update, this reads at least as many rows as the
pocket has errors, which is cheap if the rows are nearly separable, but costs hundreds of scans per scan if they are
noisy. The rows read for counting are therefore limited to `reads_per_visit` for each row scanned, plus FREE_READS.
Until that limit is reached, the pocket is the best of *all* hypotheses, including those of earlier calls on the same
rows. After that `all_counted` is False. Hypotheses are then counted as often as the limit allows, over rows in a random
order (with a fixed seed), and given up as soon as their errors come faster than those of the pocket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MismatchError, RowError
from ..kernels.floats import Floats
from ..kernels.perceptron import PROGRESS, begin_progress, count_errors, fill_pocket, scan
from ..online.facts import Facts
from ..rows.data import Data
from ..rows.table import check_known, joined
from ..storage.fields import check_record, is_finite, is_vector
from ..storage.registry import storable, want

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FREE_READS = 3e7  # numbers that may be read to count errors in any case: some hundredths of a second
SLICE = 1 << 27  # numbers that are read between two notifications
SORT_PASSES, SORT_ROWS = 8, 50_000  # rows are sorted again after so many passes, and so many rows, of counting
UNLIMITED = np.iinfo(np.int64).max


@storable
@dataclass
class BatchPerceptron:
    """The state of a batch perceptron for labels -1 and 1.

    Attributes
    ----------
    weights : ndarray of shape (width,)
        The current weights, the intercept's last.
    pocket : ndarray of shape (width,)
        The weights with the fewest training errors.
    progress : record
        The counters of the scan (see `kernels.perceptron.PROGRESS`).
    converged : bool
        Whether the current weights classify every row correctly.
    largest_norms : tuple of float
        The largest |x|_2^2 and |x|_inf.
    known_by : tuple of float
        The sums that identify the rows (see `Measured.known_by`); empty in files of earlier versions.
    first : ndarray of shape (width,) or None
        The weights it started from; None is 0.
    """

    weights: Floats
    pocket: Floats
    progress: np.ndarray = field(default_factory=begin_progress)
    converged: bool = False
    largest_norms: tuple[float, float] = (0.0, 0.0)
    known_by: tuple[float, ...] = ()
    first: Floats | None = None

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        """Refuse weights and a pocket of different sizes, and negative counters, one of which is a row to scan next."""
        size = fields["weights"].size
        for name in ("weights", "pocket", *(["first"] if fields.get("first") is not None else [])):
            fits = is_vector(fields[name], size) and is_finite(fields[name])
            want(fits, f"`{name}` must be a vector of {size} finite numbers")
        counts = tuple(name for name in PROGRESS.names or () if PROGRESS[name].kind == "i")
        check_record("progress", fields["progress"], PROGRESS, counts)
        want(min(fields["largest_norms"]) >= 0.0, "`largest_norms` must be at least 0")
        fields.pop("checksum", None)  # of earlier versions
        want(len(fields.get("known_by", ())) in (0, 3), "`known_by` must be three numbers")

    @classmethod
    def begun(cls, width: int, start: Floats | None = None) -> BatchPerceptron:
        """Return a perceptron of `width` weights with the given start; None is 0."""
        first = np.zeros(width) if start is None else start
        return cls(first.copy(), first.copy(), first=start)

    @property
    def updates(self) -> int:
        """The number of updates so far."""
        return int(self.progress[0].updates)

    @property
    def visits(self) -> int:
        """The number of rows scanned so far."""
        return int(self.progress[0].visits)

    @property
    def errors(self) -> int:
        """Training errors of the pocket, counted over all rows; a zero margin is an error."""
        return int(self.progress[0].errors)

    @property
    def all_counted(self) -> bool:
        """Whether the errors of every hypothesis so far were counted, so that none has fewer errors than the pocket."""
        return bool(self.progress[0].all_counted)

    @property
    def facts(self) -> Facts:
        """The facts of the same rounds played online; norms are those of all rows."""
        t, m, p = float(self.visits), self.updates, self.progress[0]
        x2, xinf = self.largest_norms
        zeros = int(p.zero_margins)
        return Facts(
            rounds=self.visits, weight=t, loss=float(p.loss), square=4.0 * (m - zeros) + float(zeros), mistakes=m,
            mistake_weight=float(m), mistake_norm=float(p.norm), target=t, gradient=float(p.norm), rate=t,
            rate_loss=float(p.loss), rate_gradient=float(p.norm), x2=math.sqrt(x2), xinf=xinf, weight_x2=x2,
            weight_xinf=xinf * xinf, weight_max=1.0, rate_x2=x2, rate_xinf=xinf * xinf, target_max=1.0, rate_max=1.0,
            rate_min=1.0,
        )  # fmt: skip

    def copy(self) -> BatchPerceptron:
        """Return an independent copy."""
        arrays = self.weights.copy(), self.pocket.copy(), self.progress.copy()
        return BatchPerceptron(*arrays, self.converged, self.largest_norms, self.known_by, self.first)

    def train(
        self,
        data: Data,
        *,
        passes: int | None = 100,
        updates: int | None = None,
        reads_per_visit: float = 1.0,
        notify: Callable[[BatchPerceptron], None] | None = None,
        names: Sequence[Any] | None = None,
    ) -> None:
        """Scan the rows until all are classified correctly or a limit is reached.

        An exception leaves the state half-way, so train a copy.

        Parameters
        ----------
        data : Data
            The rows, in one contiguous block, with labels -1 and 1.
        passes, updates : int or None
            Limits on the passes over the rows and on the updates of this call; None is no limit.
        reads_per_visit : float, default 1.0
            How many rows may be read to count errors per row scanned; infinity counts the errors of every hypothesis.
        notify : callable, default None
            Called with the perceptron from time to time.
        names : sequence, default None
            Names of the columns, for errors.
        """
        rows, measured, q = _one_block(data), data.measured("sign", names), data.finite_norms2()
        m, p = data.rounds, self.progress[0]
        order, shuffled = np.arange(m), np.random.default_rng(0).permutation(m)
        if p.position >= m:
            p.position = 0
        known, self.known_by = self.known_by, joined(self.known_by if self.visits else (), measured.known_by())
        p.right, p.all_counted = 0, int(not self.visits or (self.all_counted and self.known_by == known))
        p.errors = count_errors(rows, data.y, self.pocket, order, m + 1, m)[0]
        self.largest_norms = measured.x2, measured.xinf
        last = p.visits + passes * m if passes is not None else UNLIMITED
        most = p.updates + updates if updates is not None else UNLIMITED
        gain, budget = 0.0, math.inf
        if not math.isinf(reads_per_visit):
            gain = reads_per_visit
            budget = FREE_READS / data.width + float(p.reads) - reads_per_visit * float(p.visits)
        step = max(m, SLICE // data.width)
        sort_every = max(SORT_PASSES * m, SORT_ROWS)
        sort_at = p.reads + sort_every
        while True:
            until = min(int(last), int(p.visits) + step)
            row = scan(
                rows, data.y, q, self.weights, self.pocket, order, shuffled, self.progress, m, until, most, sort_at,
                budget, gain,
            )  # fmt: skip
            if row >= 0:
                raise ValueError(f"row {row}: the margin w.x overflows (|x|^2 = {q[row]:g}); scale the features")
            if p.right >= m or p.visits >= last or p.updates >= most:
                break
            if p.reads >= sort_at:
                if self.all_counted and budget + gain * p.visits - p.reads >= m:
                    order[:] = self._worst_first(data, q)
                    p.reads += m
                sort_at = p.reads + sort_every
            if notify is not None:
                notify(self)
        self.converged = bool(p.right >= m)
        wrong, _ = count_errors(rows, data.y, self.weights, order, p.errors, m)
        if wrong < p.errors:
            fill_pocket(self.weights, self.pocket, self.progress, wrong)
        if notify is not None:
            notify(self)

    def _worst_first(self, data: Data, q: Floats) -> NDArray[np.int64]:
        """Return the rows, roughly sorted by margin: groups as large as the pocket's errors, twice that, and so on."""
        margins = data.y * data.margins(self.weights) / np.sqrt(np.maximum(q, np.finfo(np.float64).tiny))
        marks = [k for k in (self.errors << np.arange(4)).tolist() if k < data.rounds]
        return np.argpartition(margins, marks) if marks else np.arange(data.rounds)

    def replay(self, data: Data) -> None:
        """Scan the same number of rows again from the start; raise a MismatchError if rows or results differ."""
        again = BatchPerceptron.begun(self.weights.size, self.first)
        if data.width != self.weights.size:
            raise MismatchError(f"the model has {self.weights.size} coordinates, these rows have {data.width}")
        rows = _one_block(data)
        try:
            q = data.finite_norms2()
        except RowError as error:
            raise MismatchError(f"row {error.row} is not finite: these are not the rows of the run") from None
        check_known(self.known_by, data.measured("sign").known_by())
        order, step = np.arange(data.rounds), max(data.rounds, SLICE // data.width)
        while again.visits < self.visits and again.updates <= self.updates:  # in slices, so that it can be interrupted
            row = scan(
                rows, data.y, q, again.weights, again.pocket, order, order, again.progress, UNLIMITED,
                min(self.visits, again.visits + step), UNLIMITED, UNLIMITED, -math.inf, 0.0,
            )  # fmt: skip
            if row >= 0:
                break
        far = float(np.abs(again.weights - self.weights).max())
        if again.updates != self.updates or not far <= 1e-9 * float(np.abs(self.weights).max(initial=0.0)):
            raise MismatchError(
                "the model was not trained on these rows in this order: it took "
                f"{self.updates:,} updates in {self.visits:,} rows, here they are {again.updates:,}; "
                f"weights differ by {far:.3g}"
            )


def _one_block(data: Data) -> Any:
    """Return the rows as one contiguous block, as the loop reads them."""
    blocks = list(data.blocks())
    if len(blocks) != 1:
        raise ValueError("the batch perceptron goes through its rows many times: give them in one contiguous piece")
    return blocks[0][1]


def hard_halfspace(d: int) -> tuple[Floats, Floats]:
    """Return 2d separable rows in d dimensions on which the perceptron needs at least (4^d - 1)/3 updates.

    The bound holds in any order of the rows. Row k is e_k - e_1 - ... - e_(k-1) with label 1, and its negative with
    label -1, so that an intercept does not help. Integer weights with w_k > w_1 + ... + w_(k-1) have w_k >= 2^(k-1);
    and with n_k updates on row k or its negative n_1 + ... + n_d = Sigma_k 2^(k-1) w_k >= Sigma_k 4^(k-1). A linear
    program (`separate`) solves the same problem at once.

    Parameters
    ----------
    d : int
        Number of dimensions, between 1 and 40.

    Returns
    -------
    X : ndarray of shape (2d, d)
        The rows.
    y : ndarray of shape (2d,)
        Their labels, -1 and 1.

    Examples
    --------
    >>> X, y = hard_halfspace(3)
    >>> X[:3]
    array([[ 1.,  0.,  0.],
           [-1.,  1.,  0.],
           [-1., -1.,  1.]])
    """
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or not 1 <= d <= 40:
        raise ValueError(f"d must be an integer between 1 and 40 (weights grow as 2^d), got {d!r}")
    rows = np.eye(d) - np.tri(d, k=-1)
    return np.vstack((rows, -rows)), np.repeat((1.0, -1.0), d)
