"""Figures of runs that learn side by side, and recordings of runs for reports.

A recording has curves of mean losses, a sample of predictions, and a confusion matrix. Its memory does not grow with
the number of rows, and it does not depend on the sizes of chunks.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..certificates.wording import MISTAKES, SQUARES, Scores
from ..errors import OptionError
from ..online.margins import each_loss, each_mean
from ..rows.labels import chosen_codes, targets_of_runs
from .plan import short_names
from .state import in_squares, judged_in_logs, log_loss_of_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..forecast.comparison import Comparison
    from ..online.coverage import Coverage
    from ..online.run import Run
    from ..sources import Reject
    from .session import PlayedChunk
    from .state import TrainingState

PIECES = 512  # pieces of a curve at most; each has its last, lowest and highest mean
STEPS = 8  # rounds per power of 2 at which a mean is kept in addition
SAMPLE = 10_000  # rows whose predictions are kept, at most
KEPT = 2_000_000  # numbers of them, where a row has many
FEWEST = 500  # rows, however many numbers they have
COMPARED = 8  # learners that are compared two by two, at most
REJECTS = 20  # bad rows that are kept
WHOLE = 1024  # rows that are all used for the spread; afterwards about 500 of each doubling
LAST = 60  # rows that are shown with their intervals


# ---------------------------------------------------------------- figures in the same units


def scores_of(state: TrainingState, k: int) -> Scores:
    """The figures of a learner for its type of target, and those of the best constant."""
    return scores_of_runs(state.runs[k], state.labels, state.mistakes[k], state.constant)


def scores_of_runs(runs: list[Run], labels: list[str] | None, mistakes: int, constant: np.ndarray | None) -> Scores:
    """Like `scores_of`, from one learner's runs, its mistakes and the sums that give the best constant."""
    facts = runs[0].facts
    weight = facts.weight or 1.0
    if labels is None:
        other = math.nan if constant is None or not constant[0] else float(constant[2] / constant[0])
        return Scores(square=facts.square / weight, square_of_constant=other)
    right = 1.0 - (facts.mistake_weight / weight if len(runs) == 1 else mistakes / (facts.rounds or 1))
    if constant is None:
        return Scores(right=right)
    top = int(np.argmax(constant))
    return Scores(right=right, right_of_constant=float(constant[top] / (constant.sum() or 1.0)), label=labels[top])


def losses_of(state: TrainingState, k: int) -> tuple[str, dict[str, float]]:
    """The unit of a learner's loss, and the mean losses of the learner and of the best constant, if known."""
    runs, unknown = state.runs[k], {"best": math.nan, "guaranteed": math.nan}
    learner = runs[0].learner
    own, constant = state.losses()[k] / (runs[0].facts.weight or 1.0), math.nan
    if state.labels is None:
        unit = SQUARES if in_squares(learner) else f"{learner.loss.name} loss"
        constant = state.mean_of_constant() if unit == SQUARES else math.nan
    elif judged_in_logs(learner):
        constant = log_loss_of_constant(state.constant) / state.weight
        unit = "log loss" if len(runs) == 1 else f"log loss (summed over the {len(runs)} labels)"
    else:
        unit, own = MISTAKES, 1.0 - scores_of(state, k).right
    return unit, {"loss": own, "constant": constant} | unknown


def figures(state: TrainingState) -> list[dict[str, float]]:
    """The comparable figures of each learner and, last, of the best constant; NaN if undefined.

    For labels: accuracy, and the log loss if margins give probabilities (with several labels, the sum of the losses of
    each against the rest). For numbers: RMSE and R².
    """
    out = list[dict[str, float]]()
    each = [scores_of(state, k) for k in range(len(state.runs))]
    if state.labels is None:
        out = [{"RMSE": math.sqrt(found.square), "R²": found.r2} for found in each]
        return [*out, {"RMSE": math.sqrt(each[0].square_of_constant), "R²": 0.0}]
    for found, runs in zip(each, state.runs, strict=True):
        logs = judged_in_logs(runs[0].learner)
        loss = sum(run.facts.loss for run in runs) / state.weight if logs else math.nan
        out.append({"accuracy": found.right, "log loss": loss})
    beside = log_loss_of_constant(state.constant) / state.weight
    return [*out, {"accuracy": each[0].right_of_constant, "log loss": beside}]


# ---------------------------------------------------------------- over the rounds


class CoursePiece(NamedTuple):
    """The sums at the end of a piece of a course, and the lowest and highest mean of each series with their rounds."""

    at: int
    mass: float
    total: np.ndarray
    low: np.ndarray
    low_at: np.ndarray
    high: np.ndarray
    high_at: np.ndarray

    def joined(self, later: CoursePiece) -> CoursePiece:
        """This piece and the next as one."""
        lower, higher = later.low < self.low, later.high > self.high
        low = np.where(lower, later.low, self.low), np.where(lower, later.low_at, self.low_at)
        high = np.where(higher, later.high, self.high), np.where(higher, later.high_at, self.high_at)
        return CoursePiece(later.at, later.mass, later.total, *low, *high)


class Course:
    """Running weighted means of several series over the rounds.

    The rounds are divided into pieces of equal length, which doubles whenever there are more than `PIECES`. Each piece
    keeps the sums at its end, and the rounds at which the running mean was lowest and highest.

    Parameters
    ----------
    rounds : int
        The number of rounds before the first one recorded.
    weight : float
        Their weight.
    sums : ndarray of shape (n_series,)
        The sums of each series over those rounds.
    """

    def __init__(self, rounds: int, weight: float, sums: np.ndarray) -> None:
        self.first, self.rounds, self.weight, self.sums = rounds, rounds, weight, np.asarray(sums, np.float64)
        self.pieces: list[CoursePiece] = []
        self.length, self.filled = 1, 1  # rounds of a piece, and of the last one so far
        self.early: list[tuple[int, float, np.ndarray]] = []

    def add(self, weight: np.ndarray, values: np.ndarray) -> None:
        """Add rounds: their weights, all above 0, and the values of each series, one column per series."""
        m = len(weight)
        if m == 0:
            return
        # One after another from the sums so far, so that the sizes of chunks change nothing.
        mass = np.cumsum(np.concatenate([[self.weight], weight]))[1:]
        sums = np.cumsum(np.concatenate([self.sums[None], values * weight[:, None]]), axis=0)[1:]
        means = sums / mass[:, None]
        first = [self.rounds + 1] if self.rounds == self.first else []
        for r in sorted({*first, *early_rounds(self.rounds, self.rounds + m)}):
            k = r - self.rounds - 1
            self.early.append((r, float(mass[k]), sums[k].copy()))
        a, series = 0, np.arange(self.sums.size)
        while a < m:
            if self.filled == self.length and len(self.pieces) == PIECES:
                self.pieces = [one.joined(two) for one, two in zip(self.pieces[::2], self.pieces[1::2], strict=True)]
                self.length, self.filled = 2 * self.length, 2 * self.length
            self.filled %= self.length
            b = min(m, a + self.length - self.filled)
            low, high = means[a:b].argmin(axis=0), means[a:b].argmax(axis=0)
            ends = self.rounds + b, float(mass[b - 1]), sums[b - 1].copy()
            extremes = ((means[a + each, series], self.rounds + a + 1 + each) for each in (low, high))
            piece = CoursePiece(*ends, *itertools.chain(*extremes))
            self.pieces.append(self.pieces.pop().joined(piece) if self.filled else piece)
            self.filled += b - a
            a = b
        self.rounds, self.weight, self.sums = self.rounds + m, float(mass[-1]), sums[-1].copy()

    def so_far(self, series: int) -> tuple[np.ndarray, np.ndarray]:
        """The running mean of a series by round, with its lowest and highest values; at most 2,000 points."""
        points = {r: float(s[series]) / w for r, w, s in self.early}
        points |= {int(piece.low_at[series]): float(piece.low[series]) for piece in self.pieces}
        points |= {int(piece.high_at[series]): float(piece.high[series]) for piece in self.pieces}
        points |= {piece.at: float(piece.total[series]) / piece.mass for piece in self.pieces}
        rounds = np.array(sorted(points), np.int64)
        return rounds, np.array([points[r] for r in rounds.tolist()])

    def window(self, series: int) -> tuple[int, np.ndarray, np.ndarray]:
        """The mean over a sliding window of at least a twentieth of the rounds; returns its length and the curve."""
        n = len(self.pieces)
        k = max(1, min(-(-n // 20), n - 1), -(-20 // self.length))
        if n <= k:
            return 0, np.zeros(0, np.int64), np.zeros(0)
        sums = ((piece.at, piece.mass, piece.total[series]) for piece in self.pieces)
        at, mass, total = map(np.array, zip(*sums, strict=True))
        whole = at - self.first == self.length * np.arange(1, n + 1)  # the last piece may be shorter
        later = np.flatnonzero(whole)[k:]
        return k * self.length, at[later], (total[later] - total[later - k]) / (mass[later] - mass[later - k])


def early_rounds(after: int, last: int) -> list[int]:
    """Numbers of rounds, `STEPS` from each power of 2 to the next, in (after, last].

    Examples
    --------
    >>> early_rounds(0, 20)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20]
    """
    powers = [2**k for k in range(max(0, after.bit_length() - 1), last.bit_length())]
    return [r for p in powers for r in range(p, 2 * p, max(1, p // STEPS)) if after < r <= last]


class Sample:
    """A simple random sample of the rounds so far, determined by their numbers and independent of chunks.

    Parameters
    ----------
    columns : int
        The number of values kept per round.
    limit : int, default SAMPLE
        The number of rounds kept.
    """

    def __init__(self, columns: int, limit: int = SAMPLE) -> None:
        self.limit, self.seen = limit, 0
        self.order, self.values = np.zeros(0, np.uint64), np.zeros((0, columns))

    def add(self, first: int, values: np.ndarray) -> None:
        """Add the rounds from number `first` on."""
        self.seen += len(values)
        drawn = scrambled(np.arange(first, first + len(values), dtype=np.uint64))
        if self.order.size >= self.limit:
            keep = drawn < self.order.max()
            drawn, values = drawn[keep], values[keep]
        order, all_values = np.concatenate([self.order, drawn]), np.concatenate([self.values, values])
        if order.size > self.limit:
            keep = np.argpartition(order, self.limit - 1)[: self.limit]
            order, all_values = order[keep], all_values[keep]
        self.order, self.values = order, all_values

    def drawn(self) -> np.ndarray:
        """The values, one row per round, in random order, so that the first few are a sample as well."""
        return self.values[np.argsort(self.order)]


def scrambled(numbers: np.ndarray) -> np.ndarray:
    """A pseudorandom number for each number (SplitMix64, Steele, Lea and Flood 2014)."""
    z = numbers * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class ColumnSpread:
    """The standard deviation of each column, from a fixed subset of the rows that does not depend on chunks.

    A weight times this deviation is the feature's typical effect on the prediction, by which weights are compared.

    From row 1024 on every third row is used, from row 2048 on every fifth, then every ninth, and so on. Each is
    weighted for the rows that it represents.
    """

    def __init__(self) -> None:
        self.rows, self.weight = 0, 0.0
        self.sums, self.squares, self.origin = np.zeros(0), np.zeros(0), np.zeros(0)

    def add(self, X: Any) -> None:
        """Add the rows of an array or a CSR matrix."""
        first = self.rows
        last = first + X.shape[0]
        while self.rows < last:
            level = max(0, (self.rows // WHOLE).bit_length())
            end, step = min(last, WHOLE << level), (1 << level) + (level > 0)
            start = -(-self.rows // step) * step
            if start < end:
                self._add(X[start - first : end - first : step], float(step))
            self.rows = end

    def _add(self, X: Any, stands_for: float) -> None:
        sparse = hasattr(X, "tocsr")
        if not sparse:
            X = np.asarray(X, np.float64)
        grown = X.shape[1] - self.sums.size
        if grown > 0:
            self.sums, self.squares, self.origin = (
                np.concatenate([each, np.zeros(grown)]) for each in (self.sums, self.squares, self.origin)
            )
            if not sparse and self.weight == 0.0:
                self.origin = X[0].copy()  # only differences matter, for example of dates
        if sparse:
            X, n = X.tocsr(), X.shape[1]
            values = X.data.astype(np.float64)
            total, squares = (np.bincount(X.indices, each, n) for each in (values, values**2))
        else:
            off = X - self.origin[: X.shape[1]]
            total, squares = off.sum(axis=0), np.einsum("ij,ij->j", off, off)
        self.sums[: total.size] += stands_for * total
        self.squares[: total.size] += stands_for * squares
        self.weight += stands_for * X.shape[0]

    @property
    def deviations(self) -> np.ndarray:
        """The standard deviation of each column."""
        mean = self.sums / (self.weight or 1.0)
        return np.sqrt(np.maximum(self.squares / (self.weight or 1.0) - mean**2, 0.0))


class CoverageRecording:
    """The coverage of a run's intervals over time, and the last rows with their intervals.

    Parameters
    ----------
    tracker : Coverage
        The tracker that makes the intervals, before the first recorded row.

    Attributes
    ----------
    course : Course
        The curve of one series, which is 1 for each covered row.
    last : ndarray of shape (n_rows, 4)
        For numbers only: the round, target, prediction and half width of the last rows.
    """

    def __init__(self, tracker: Coverage) -> None:
        at = tracker.sums[0]
        self.tracker, self.last = tracker, np.empty((0, 4))
        self.course = Course(int(at.rounds), float(at.weight), np.array([at.weight - at.missed]))

    def add(
        self, loss: Any, z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, half: np.ndarray, labels: bool
    ) -> None:
        """Add rows that the tracker has just followed."""
        from ..online.coverage import other_chances

        c = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
        on = np.flatnonzero(c > 0.0)
        on = on[on.size - int(self.tracker.sums[0].rounds - self.course.rounds) :]  # the first row may not be a round
        z, y, c, half = z[on], y[on], c[on], half[on]
        if not on.size:
            return
        if labels:
            off = other_chances(loss, z)[np.arange(y.size), y]
        else:
            said = each_mean(loss, z[:, 0])
            off = np.abs(said - y)
            rows = np.column_stack([self.course.rounds + 1 + np.arange(y.size), y, said, half])
            self.last = np.concatenate([self.last, rows[-LAST:]])[-LAST:]
        self.course.add(c, (off <= half)[:, None].astype(np.float64))


class LearnerScores:
    """Row-by-row scores of the learners of a session as forecasters.

    The forecast for two labels is the probability of the second if the loss gives one, otherwise 1 or 0. Numbers are
    forecast by the prediction of the margin and scored by the squared error, whose intervals need bounds on the
    targets.

    Parameters
    ----------
    state : TrainingState
        Where training starts.
    names : sequence of str
        A name for each learner.
    bounds : (float, float) or None, default None
        Bounds on the targets if they are numbers.

    Raises
    ------
    OptionError
        If there is nothing to compare, or more than two labels.
    """

    def __init__(self, state: TrainingState, names: list[str], bounds: tuple[float, float] | None = None) -> None:
        if len(names) < 2:
            raise OptionError("compare", "needs at least two learners or rates: --learner A,B or --eta 0.01,0.1")
        if state.plan.passes > 1:
            raise OptionError("compare", "takes one pass: a later one predicts rows that it has learnt")
        if state.labels is not None and len(state.labels) > 2:
            raise OptionError("compare", f"takes two labels or numbers; there are {len(state.labels)} labels")
        from ..forecast.stream import Scores  # few runs need it, and importing takes a quarter of a second

        self.losses = [runs[0].learner.loss for runs in state.runs]
        self.labels, self.names = state.labels, names
        self.scores = Scores(names, "square" if self.labels else "quadratic", bounds=None if self.labels else bounds)

    def add(self, chunk: PlayedChunk) -> None:
        """Score the rows of a chunk."""
        z = chunk.margins
        made = {name: self._forecast(k, np.ascontiguousarray(z[:, k])) for k, name in enumerate(self.names)}
        y = np.asarray(chunk.y if chunk.codes is None else chunk.codes, np.float64)
        self.scores = self.scores.update(y, made, chunk.weight)

    def _forecast(self, k: int, z: np.ndarray) -> np.ndarray:
        loss: Any = self.losses[k]
        if self.labels is not None and loss.link != "logistic":
            return (z > 0.0).astype(np.float64)
        return each_mean(loss, z)

    def comparison(self) -> Comparison:
        """The comparison of every pair, valid at all times."""
        from ..forecast.comparison import comparison

        return comparison(self.scores, anytime=True)


class Recording:
    """A recording of runs for their report, learner by learner.

    Parameters
    ----------
    runs : list of list of Run
        The runs of each learner before the first recorded row; means continue from their sums.
    labels : list of str or None
        The labels; None where targets are numbers.
    mistakes : sequence of int, default=()
        The mistakes of each learner before the first recorded row; zero if empty.
    first_row : int, default=0
        The number of rows learnt before the first recorded row.

    Attributes
    ----------
    course : Course
        The curves of `series` for each learner.
    sample : Sample
        The margins of each run, learner by learner, the target and the weight.
    confusion : ndarray of shape (n_learners, n_labels, n_labels) or None
        The number of rows by true label (second axis) and predicted label (third axis); None if targets are numbers.
    spread : ColumnSpread
        The standard deviations of the columns.
    rejects : list of Reject
        The first bad rows.
    scores : LearnerScores or None
        Scores of several learners as forecasters, if they can be compared.
    coverage : CoverageRecording or None
        The coverage of intervals, if there are any.
    opening : int
        The number of rows left out because they only initialise a learner: 1 or 0.
    """

    def __init__(
        self, runs: list[list[Run]], labels: list[str] | None, mistakes: Sequence[int] = (), first_row: int = 0
    ) -> None:
        self.labels, self.learners, self.first_row = labels, [each[0].learner for each in runs], first_row
        self.runs, self.opening = [each[0] for each in runs], 0
        self.each = len(runs[0])  # runs of a learner
        self.series = ("loss", "square") if labels is None else ("loss", "mistakes", "errors")
        facts = [[run.facts for run in each] for each in runs]
        names = {"loss": "loss", "square": "square", "mistakes": "mistake_weight"}
        before = [{name: sum(getattr(f, of) for f in mine) for name, of in names.items()} for mine in facts]
        wrong = mistakes or [0] * len(runs)
        sums = [(known | {"errors": w})[name] for known, w in zip(before, wrong, strict=True) for name in self.series]
        self.course = Course(facts[0][0].rounds, facts[0][0].weight, np.array(sums))
        columns = len(self.learners) * self.each + 2
        self.sample = Sample(columns, min(SAMPLE, max(FEWEST, KEPT // columns)))
        count = len(labels or ())
        self.confusion = np.zeros((len(self.learners), count, count), np.int64) if count else None
        self.spread = ColumnSpread()
        self.rejects: list[Reject] = []
        self.scores: LearnerScores | None = None
        tracker = runs[0][0].coverage
        self.coverage = None if tracker is None else CoverageRecording(tracker)

    @classmethod
    def of(cls, state: TrainingState, bounds: tuple[float, float] | None = None) -> Self:
        """Start a recording at a state of training.

        Parameters
        ----------
        state : TrainingState
            The current state.
        bounds : (float, float) or None, default=None
            Bounds on numeric targets, which intervals for the differences of learners need.
        """
        out = cls(state.runs, state.labels, state.mistakes, state.rows_done)
        two = state.labels is None or len(state.labels) == 2
        if 1 < len(state.runs) <= COMPARED and two and state.plan.passes == 1 and state.own_rows == 0:
            out.scores = LearnerScores(state, short_names(out.learners), bounds)
        return out

    def index(self, learner: int, name: str) -> int:
        """The index of a series of a learner."""
        return learner * len(self.series) + self.series.index(name)

    def add(self, chunk: PlayedChunk) -> None:
        """Add rows that were just learnt."""
        if self.scores is not None and len(chunk.y):
            self.scores.add(chunk)
        self.rejects += chunk.rejects[: REJECTS - len(self.rejects)]
        y = chunk.y if chunk.codes is None else chunk.codes
        self.spread.add(chunk.X)
        self.add_rows(chunk.margins, y, chunk.weight)
        if self.coverage is not None and chunk.half is not None:
            self.coverage.add(
                self.learners[0].loss, chunk.margins, y, chunk.weight, chunk.half, chunk.codes is not None
            )

    def add_rows(self, z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Add rows that were just learnt: margins before learning, targets (or indices of labels) and weights."""
        c = np.ones(len(z)) if weight is None else np.asarray(weight, np.float64)
        if not c.all():
            on = c > 0.0
            z, y, c = z[on], y[on], c[on]
        if len(c) and not (self.course.rounds or self.opening):  # the first row is no round of a learner that opens
            self.opening = len(c) - min(run.facts.rounds for run in self.runs)
            z, y, c = z[self.opening :], y[self.opening :], c[self.opening :]
        if not len(c):
            return
        columns = [self._values(k, z[:, k * self.each : (k + 1) * self.each], y) for k in range(len(self.learners))]
        self.sample.add(self.course.rounds + 1, np.column_stack([z, np.asarray(y, np.float64), c]))
        self.course.add(c, np.column_stack(columns))

    def _values(self, k: int, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The values of a learner's series, one column each."""
        learner: Any = self.learners[k]
        if self.labels is None:
            y, margins = np.asarray(y, np.float64), np.ascontiguousarray(z[:, 0])
            with np.errstate(over="ignore"):
                squares = (each_mean(learner.loss, margins) - y) ** 2
                return np.column_stack([each_loss(learner.loss, margins, y), squares])
        assert self.confusion is not None
        targets = targets_of_runs(y, len(self.labels), learner.targets, self.each)
        lost = [each_loss(learner.loss, np.ascontiguousarray(z[:, r]), t) for r, t in enumerate(targets)]
        wrong = [np.where(t == 1.0, z[:, r] <= 0.0, z[:, r] >= 0.0) for r, t in enumerate(targets)]
        chosen = chosen_codes(z)
        np.add.at(self.confusion[k], (y.astype(np.int64), chosen), 1)
        missed = wrong[0] if self.each == 1 else chosen != y
        return np.column_stack([np.sum(lost, axis=0), np.sum(wrong, axis=0), missed]).astype(np.float64)
