"""Runs: a learner's state as it moves along a stream, played block by block.

`play` is the only way to learn. Several runs over the same rows (one-vs-rest, several rates) process each block while
it is in cache. A call either plays every row or changes nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import online as loop
from ..kernels import state as states
from ..kernels.compiler import for_parts
from ..kernels.facts import FACTS, NAMES, empty_facts
from ..kernels.geometries import begin
from ..kernels.online import NO_NOTES, PROGRESS, begin_progress
from ..kernels.rows import backwards
from ..rows.matrices import checked, explain, in_order, plain_vector, rows_of
from ..storage.fields import check_record, is_vector
from ..storage.registry import storable, want
from ..validation import check_targets, check_weights
from .facts import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .learners import Learner

BLOCK = 16384  # rows, so many that a call of the kernel costs next to nothing; what it notes of them stays in the cache
SHARED = 1 << 19  # bytes of a block that several runs read in turn
PASSED = 1 << 23  # and of one that the members of a panel read piece by piece, on several processors


class Coordinates:
    """The coordinates of a learner's weights: features, and an intercept of the value `bias` unless that is 0."""

    first: np.ndarray
    bias: float

    @property
    def width(self) -> int:
        """Number of weights, the intercept's included."""
        return int(self.first.size)

    @property
    def intercept(self) -> bool:
        """Whether there is an intercept coordinate."""
        return bool(self.bias)

    @property
    def features(self) -> int:
        """Number of features that there is room for, without the intercept."""
        return self.width - self.intercept


def of_width(w: np.ndarray, width: int, intercept: bool) -> np.ndarray:
    """Weights padded with 0 for more features, or cut to the first ones; the intercept's stays the last."""
    if w.size == width:
        return w
    kept, out = min(w.size, width) - intercept, np.zeros(width)
    out[:kept], out[width - intercept :] = w[:kept], w[w.size - intercept :]
    return out


class Run(Coordinates):
    """One learner on one stream.

    Parameters
    ----------
    learner : Learner
        The loss, update, geometry and rate.
    features : int
        Number of features, without the intercept.
    intercept : bool, default True
        Whether a constant coordinate 1 is appended to every row; it counts in the norms.
    average : bool, default False
        Whether to keep the sum of the iterates.
    start : array of float or None, default None
        w_1 (with the intercept's weight last), inside the geometry's set; None uses the default of the geometry.
    backwards : bool, default False
        Whether the state has the last feature first (see `kernels.rows.backwards`), and the rows may have more of them.

    Attributes
    ----------
    state : NamedTuple of arrays
        The geometry's state.
    progress : record
        Rounds played, and a bound on the numbers of the state.
    tally : record
        The facts so far, as the loop adds them up; `facts` reads them.
    first : array of float
        The weights w_1.
    coverage : Coverage or None
        The tracker of prediction intervals, on the first run of a learner; None if no intervals are requested.
    """

    coverage: Any = None
    backwards = False

    def __init__(
        self,
        learner: Learner,
        features: int,
        *,
        intercept: bool = True,
        average: bool = False,
        start: np.ndarray | None = None,
        backwards: bool = False,
    ) -> None:
        geometry, width = learner.geometry, features + intercept
        if average and not geometry.averages:
            raise ValueError(f"the {geometry.name} geometry keeps no average of its weights")
        self.learner = learner
        self.bias = 1.0 if intercept else 0.0
        self.averaging, self.backwards = average, backwards
        self.start = None if start is None else check_start(geometry, start, width)
        self.state = begin(geometry, width, self.start, average)
        self.first = geometry.weights(self.state)
        reach = 0.0 if start is None else for_parts(loop.largest, geometry)(geometry, self.state)
        self.progress = begin_progress(reach)
        self.tally = empty_facts()

    @property
    def rounds(self) -> int:
        """Rounds played so far; rows of weight 0 do not count."""
        return int(self.progress[0].rounds)

    @property
    def facts(self) -> Facts:
        """Facts of all rounds so far."""
        return Facts.of(self.tally)

    @property
    def weights(self) -> np.ndarray:
        """The weights w_{T+1}, the intercept's last."""
        return self.by_feature(self.learner.geometry.weights(self.state))

    def by_feature(self, values: np.ndarray) -> np.ndarray:
        """A vector of the state in the order of the features."""
        if not self.backwards:
            return values
        return np.concatenate((values[: self.features][::-1], values[self.features :]))

    def fresh(self, average: bool = False) -> Run:
        """The same run before its first round."""
        how: dict[str, Any] = {"intercept": self.intercept, "start": self.start, "backwards": self.backwards}
        return Run(self.learner, self.features, average=average, **how)

    def mean(self, convention: str) -> np.ndarray:
        """The mean of the iterates: "before" of w_1..w_T, "after" of w_2..w_{T+1}; w_1 before any round."""
        if self.rounds == 0:
            return self.first.copy()
        total = self.learner.geometry.iterate_sum(self.state)
        if convention == "after":
            total += self.weights - self.first
        return total / self.rounds

    def parts(self) -> tuple[Any, ...]:
        """The arguments of the loop: the parts of the learner, the state and the progress."""
        learner = self.learner
        return learner.loss, learner.update, learner.geometry, learner.rate, self.state, self.progress

    def states(self) -> list[Any]:
        """All states that rows change: those of the run and, for a panel, of its members and its correction."""
        return [self.state]

    def play_block(self, rows: Any, a: int, b: int, y: np.ndarray, c: np.ndarray, work: np.ndarray) -> int:
        """Play rows a..b, write their margins and norms into `work`, and return how many could be played."""
        play = for_parts(loop.play, *self.parts()[:3])
        return int(play(self.own(rows), a, b, y, c, *self.parts(), *work, self.tally, NO_NOTES))

    def own(self, rows: Any) -> Any:
        """The rows as this run plays them."""
        return backwards(rows, self.features) if self.backwards else rows

    def reader(self) -> Run:
        """A run that predicts as this one does, with its own scratch arrays, so that it can work in parallel."""
        other: Run = object.__new__(Run)
        other.__dict__.update(self.__dict__)
        other.state, other.coverage = states.reader(self.state), None
        other.progress, other.tally = self.progress.copy(), self.tally.copy()
        return other

    def frozen(self) -> Run:
        """A run that predicts as this one does now; later learning does not change it, since it copies all arrays."""
        other = self.reader()
        other.state = states.copied(self.state)
        return other

    def bind(self, runs: Any, which: int, row: Any, old: Any) -> Any:
        """This run, number `which` among `runs`, bound to single rows that are laid out in `row`."""
        from .single_row import One

        return One(runs, which, row, old)

    def snapshot(self, touched: np.ndarray | None = None) -> tuple[Any, ...]:
        """A copy of the state for `restore`; a panel copies only the `touched` coordinates if they are given."""
        return states.snapshot(self.state), self.progress.copy(), self.tally.copy(), self.covered()

    def restore(self, kept: tuple[Any, ...]) -> None:
        """Go back to a snapshot."""
        states.restore(self.state, kept[0])
        self.progress[:], self.tally[:] = kept[1:3]
        self.cover_as(kept[3])

    def covered(self) -> Any:
        """A copy of the tracker of intervals for `cover_as`; None if there is none."""
        return None if self.coverage is None else self.coverage.snapshot()

    def cover_as(self, kept: Any) -> None:
        """Restore the tracker of intervals from a copy."""
        if self.coverage is not None:
            self.coverage.restore(kept)

    def mirrored(self) -> Run:
        """The run for negated labels: the same numbers with the opposite sign, if weights have one."""
        if not self.learner.geometry.signed:
            raise ValueError("weights on the simplex have no sign to change: declare all classes before learning")
        other: Run = object.__new__(Run)
        other.__dict__.update(self.__dict__)
        other.state, other.first = states.mirrored(self.state), -self.first
        other.progress, other.tally = self.progress.copy(), self.tally.copy()
        if self.learner.targets == "unit":  # labels 0 and 1 change places, also in the sum of c y^2
            other.tally[0].target = self.tally[0].weight - self.tally[0].target
        return other

    def resize(self, features: int) -> None:
        """Make room for this number of features, new ones with weight 0; the weights must not depend on the number."""
        self.state = states.resized(self.state, self.features, features, self.intercept, self.backwards)
        self.first = of_width(self.first, features + self.intercept, self.intercept)


def check_run(fields: dict[str, Any]) -> None:
    """Refuse the fields of a saved run that do not have the sizes that the compiled loop relies on."""
    from .learners import Learner

    learner, bias, first = fields["learner"], fields["bias"], fields["first"]
    want(isinstance(learner, Learner), "the run's `learner` must be a learner")
    want(type(bias) is float and bias in (0.0, 1.0), "the run's `bias` must be 0 or 1")
    for name in ("averaging", "backwards"):
        want(type(fields.get(name, False)) is bool, f"the run's `{name}` must be true or false")
    want(is_vector(first) and first.size > bias, "the first weights must be a vector, one number per coordinate")
    wrong = states.fault(learner.geometry.State, fields["state"], first.size, fields["averaging"])
    want(wrong is None, f"{wrong}")
    want(not np.isnan(first).any(), "the first weights must be numbers")
    check_record("progress", fields["progress"], PROGRESS, ("rounds",))
    fields["tally"] = checked_tally(fields["tally"])
    check_rounds(learner, float(fields["progress"][0].rounds))
    start = fields["start"]
    want(start is None or is_vector(start, first.size), "the run's `start` must be a vector like the first weights")
    check_covered(fields)
    fields.pop("checksum", None)  # of earlier versions


def check_covered(fields: dict[str, Any]) -> None:
    """Refuse a saved run whose `coverage` is not a tracker of intervals."""
    if fields.get("coverage") is not None:
        from .coverage import Coverage

        want(isinstance(fields["coverage"], Coverage), "the run's `coverage` must make intervals")


def check_rounds(learner: Learner, rounds: float) -> None:
    """Refuse more rounds than there are rates, since a loop that plays them again would read past the last rate."""
    given = learner.rate.rates.size
    want(not given or rounds <= given, f"{given} rates were given, but the number of rounds is {rounds:.0f}")


def checked_tally(tally: Any) -> np.ndarray:
    """The facts of a file, refused if no run could have them; earlier versions lack the sums that depend on order."""
    if isinstance(tally, np.recarray) and tally.dtype.names == NAMES and tally.shape == (1,):
        known, tally = tally[0], empty_facts()
        for name in NAMES:
            tally[0][name] = known[name]
        tally[0].order_margin = tally[0].order_norm = -np.inf
    check_record("tally", tally, FACTS, ("rounds", "mistakes"))
    want(tally[0].x2 >= 0.0, f"`tally.x2`, a square, is {tally[0].x2!r}")
    return tally


storable(Run, check=check_run)


def check_start(geometry: Any, start: Any, width: int) -> np.ndarray:
    """`start` as a vector inside the geometry's set; raise an error otherwise."""
    w: np.ndarray = np.asarray(start, np.float64)
    if w.shape != (width,):
        raise ValueError(f"start must have {width} numbers (the intercept's last), got shape {w.shape}")
    if not np.isfinite(w).all():
        bad = int(np.flatnonzero(~np.isfinite(w))[0])
        raise ValueError(f"start[{bad}] = {w[bad]} is not finite")
    geometry.check_start(w)
    return w


@contextmanager
def unchanged_on_error(runs: Sequence[Run], X: Any = None) -> Iterator[None]:
    """Restore the runs if an exception leaves the with-block, in which only the rows X may be played."""
    before = [run.snapshot(touched_by(X, run)) for run in runs]
    try:
        yield
    except BaseException:
        for run, state in zip(runs, before, strict=True):
            run.restore(state)
        raise


def touched_by(X: Any, run: Run) -> np.ndarray | None:
    """The coordinates in which sparse rows have entries, and the intercept's; None if these may be all coordinates."""
    if getattr(X, "format", None) != "csr" or run.learner.geometry.name != "panel":
        return None
    indices = X.indices
    if indices.size == 0 or indices.min() < 0 or indices.max() >= run.width:  # these rows will be refused
        return None
    met = np.zeros(run.width, np.bool_)
    met[indices] = met[-1] = True
    return np.flatnonzero(met)


def play(runs: Sequence[Run], X: Any, *rows: Any, **options: Any) -> None:
    """Play all rows with every run as `play_rows` does, or raise and leave every run as it was."""
    with unchanged_on_error(runs, X):
        play_rows(runs, X, *rows, **options)


def play_rows(
    runs: Sequence[Run],
    X: Any,
    targets: Sequence[np.ndarray],
    weight: np.ndarray | None = None,
    margins: np.ndarray | None = None,
    names: Sequence[Any] | None = None,
    idle: bool = False,
    half: np.ndarray | None = None,
) -> None:
    """Play all rows of X with every run, in order; after an error the runs stand at the row that caused it.

    Parameters
    ----------
    runs : sequence of Run
        The runs, all with or all without an intercept.
    X : array or sparse matrix
        The rows.
    targets : sequence of arrays of float64
        For each run, its targets.
    weight : array of float64, default None
        Importance of each row; None is 1.
    margins : array of shape (rows, runs), default None
        Filled, if given, with the margin of every row before its update, one column per run.
    names : sequence, default None
        Names of the columns, for errors.
    idle : bool, default False
        Whether all weights may be zero; then nothing is learnt, and the margins are still computed.
    half : array of shape (rows,), default None
        Filled, if given, with half the width of the interval of every row before its update, from the first run.

    Raises
    ------
    RowError
        If a row cannot be played; it names the row, the column and the value.
    """
    m, n = X.shape
    X = checked(X, ordered=any(n < run.features for run in runs))  # the loop compares indices with the room there is
    for run, y in zip(runs, targets, strict=True):
        if isinstance(X, np.ndarray) and n > run.features:  # indices of sparse rows are compared with the width instead
            raise ValueError(f"the rows have {n} columns, but the learner has {run.features} features")
        if y.shape != (m,):
            raise ValueError(f"there are {m} rows, but the targets have shape {y.shape}")
        check_targets(run.learner.targets, y)
        rates = run.learner.rate.rates.size
        if rates and run.rounds + (m if weight is None else np.count_nonzero(weight)) > rates:
            raise ValueError(f"{rates} rates were given, but there are more rounds than that")
    if weight is not None:
        check_weights(weight, idle)
    if not runs:
        return
    panel = any(run.learner.geometry.name == "panel" for run in runs)
    if panel:  # members must all stop at the same row, or none
        X = in_order(X)
    targets = [plain_vector(y) for y in targets]
    weight = None if weight is None else plain_vector(weight)
    room = PASSED if panel else SHARED if len(runs) > 1 else _bytes(X)
    most = 4 * BLOCK if panel else BLOCK
    block = max(1, min(most, room * m // max(1, _bytes(X)), m))
    work, ones = np.empty((3, block)), np.ones(block)
    rows, tracker = rows_of(X, runs[0].bias), runs[0].coverage
    margins = np.empty((m, len(runs))) if margins is None and tracker is not None else margins
    for a in range(0, m, block):
        b = min(m, a + block)
        c, before = ones[: b - a] if weight is None else weight[a:b], runs[0].tally[0].rounds
        for k, run in enumerate(runs):
            y = targets[k][a:b]
            played = run.play_block(rows, a, b, y, c, work[:, : b - a])
            if played < b - a and (ordered := in_order(X)) is not X:  # the rows before were in order: they stay
                X, rows = ordered, rows_of(ordered, run.bias)
                played += run.play_block(rows, a + played, b, y[played:], c[played:], work[:, played : b - a])
            if played < b - a:
                explain(X, a + played, y[played], work[0, played], work[1, played], run.features, names)
            if margins is not None:
                margins[a:b, k] = work[0, : b - a]
        if tracker is not None and margins is not None:
            widths = tracker.follow(runs, margins[a:b], [y[a:b] for y in targets], c, before)
            if half is not None:
                half[a:b] = widths


def _bytes(X: Any) -> int:
    return int(X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes)


def predicted(runs: Sequence[Run], X: Any, names: Sequence[Any] | None = None) -> np.ndarray:
    """Return the margin of each run for every row, one column per run, without learning."""
    nothing, z = np.zeros(X.shape[0]), np.empty((X.shape[0], len(runs)))
    y = nothing if runs[0].learner.targets != "sign" else nothing + 1.0
    play_rows([run.reader() for run in runs], X, [y] * len(runs), nothing, z, names, idle=True)
    return z


def assumption_warnings(run: Run) -> list[str]:
    """Warnings about the data so far that violate an assumption, with the values."""
    facts, learner = run.facts, run.learner
    loss, geometry = learner.loss, learner.geometry
    found = []
    if loss.quadratic and learner.theorem in ("widrow-hoff", "exponentiated-gradient"):
        multiplicative = geometry.multiplicative
        seen = loss.scale * (facts.rate_xinf * geometry.radius**2 if multiplicative else facts.rate_x2)
        if seen >= 1.0:
            norm = "U^2 |x|_inf^2" if multiplicative else "|x|_2^2"
            found.append(
                f"eta {norm} reached {seen:.4g} (at least 1): the loss bound of this explicit step is void; "
                "take a smaller eta, scale the rows, or use update='implicit'"
            )
    reach = geometry.radius * facts.xinf
    regress = learner.targets == "real" and loss.link == "identity"
    if geometry.multiplicative and regress and facts.target_max > reach * (1 + 1e-12):
        found.append(
            f"max |y| = {facts.target_max:.4g} is out of reach: |w.x| <= U |x|_inf = {reach:.4g}; raise radius"
        )
    if learner.theorem == "winnow" and facts.xinf > 1.0:
        found.append(f"max |x|_inf = {facts.xinf:.4g} is above 1, which the tuned rate assumes: scale the features")
    return found
