"""Learning from a source chunk by chunk, each row predicted before it is learnt: several learners at once, resumable.

`Plan` is what was asked for, plain values only, so that a resumed run can be checked against the one it goes on from.
`Course` is how far it has got. The result does not depend on the sizes of chunks, nor on where a run was interrupted.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RowError
from ..kernels.euclidean import Euclidean
from ..online.run import Run, play
from ..rows.scaling import SCALES, Measure, scaled, spread
from ..sources import Chunk, Reject, Source, SourceError, label_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

from .plan import ONCE, Plan
from .prepare import MANY, check_labels, coded, in_order, labels_in, limited, targets_for, targets_of


@dataclass
class Course:
    """How far a run has got.

    `runs` holds for each learner one run, or one a label where there are more than two. `constant` are sums for the
    loss of the best constant: rows, mean and squared distances of numbers, or how often each label was seen.
    """

    plan: Plan
    runs: list[list[Run]]
    labels: list[str] | None
    scale: dict[str, Any] | None
    state: dict[str, Any] | None  # of the source: which feature has which column
    wrong: list[int]  # mistakes of each learner
    constant: np.ndarray
    position: dict[str, Any] | None = None
    turn: int = 0  # passes ended
    row: int = 0  # rows of this pass played
    done: int = 0  # rows played in all
    read: int = 0  # bytes of this pass
    rejected: int = 0
    source: Source | None = None  # the one being read
    waiting: Iterator[Chunk] | None = None  # chunks of a source that can be read once, the first already looked at

    def kept(self) -> dict[str, Any]:
        """The state as plain values, arrays and runs."""
        state = self.source.state() if self.source is not None else self.state
        own = {k: v for k, v in vars(self).items() if k not in ("plan", "source", "waiting")}
        return own | {"state": state, "settings": self.plan.settings()}

    @classmethod
    def going_on(cls, plan: Plan, kept: dict[str, Any]) -> Course:
        """The course of a checkpoint; settings that differ from it are refused."""
        kept = dict(kept)
        before, now = kept.pop("settings"), plan.settings()
        for name in now:
            if before.get(name) != now[name]:
                was = f"{name} was {before.get(name)!r} when the checkpoint was written"
                raise ValueError(f"{was} and is {now[name]!r} now: resume with the same settings")
        return cls(plan, **kept)

    @property
    def names(self) -> list[str] | None:
        """Of the features; None where they are hashed."""
        if self.source is None or (self.source.kind == "sparse" and self.plan.reading.get("hash_bits") is not None):
            return None
        return list(self.source.names)

    @property
    def digest(self) -> str | None:
        """SHA-256 of what was read."""
        return None if self.position is None else self.position.get("digest")

    def losses(self) -> list[float]:
        """For each learner the loss it is judged by, summed over its runs."""
        return [
            sum(run.facts.square if run.learner.score == "square" else run.facts.loss for run in runs)
            for runs in self.runs
        ]

    @property
    def weight(self) -> float:
        """Of the rows so far: how many they are, where weights are 1."""
        return self.runs[0][0].facts.weight or 1.0

    def best_constant(self) -> float:
        """What the best constant in hindsight loses on the rows so far: squared error, or (weighted) mistakes."""
        return float(self.constant[2] if self.labels is None else self.constant.sum() - self.constant.max())


# ---------------------------------------------------------------- before learning


def begin(plan: Plan, tell: Callable[[str], None] = lambda _: None, all_labels: bool = False) -> Course:
    """A course at its start; labels, scale and (for multiplicative weights) features are found by a pass if need be.

    Without `all_labels`, two labels in the first chunk are taken to be all there are: `learn` says if they were not.
    """
    source = plan.open()
    learners, classify = plan.make(), plan.classify()
    if plan.scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {plan.scale!r}")
    if plan.passes > 1 and not source.reread:
        raise SourceError(f"{ONCE}: take one pass")
    hashed = plan.reading.get("hash_bits") if source.kind == "sparse" else None
    labels = None if plan.labels is None or not classify else in_order(set(plan.labels))
    waiting: Iterator[Chunk] | None = None
    if classify and labels is None and not all_labels:
        chunks = plan.chunks(source)
        chunk = next((chunk for chunk in chunks if len(chunk)), None)
        found = set() if chunk is None else labels_in(targets_of(chunk)[: plan.limit])
        if len(found) == 2 or not source.reread:
            labels = in_order(found)
        if not source.reread and chunk is not None:
            waiting = itertools.chain([chunk], chunks)
    if not source.reread and waiting is None:
        waiting = plan.chunks(source)
    reasons = [f"scale {plan.scale!r}"] if SCALES[plan.scale] else []
    if classify and labels is None:
        reasons.append("finding the labels")
    curved = any(not isinstance(learner.geometry, Euclidean) for learner in learners)
    if curved and source.kind == "sparse" and hashed is None:
        reasons.append("counting the features, on which multiplicative weights depend")
    scale = {"kind": "row-unit"} if plan.scale == "row-unit" else None
    state = None
    if reasons:
        if not source.reread:
            raise SourceError(f"{ONCE}, but {' and '.join(reasons)} takes a pass of its own")
        tell(f"a first pass over the rows for {' and '.join(reasons)}")
        source = plan.open()
        everything, measure = survey(plan, source)
        labels = in_order(everything) if classify and labels is None else labels
        scale = measure.scale(plan.scale) if SCALES[plan.scale] else scale
        state = source.state()
    if labels is not None:
        check_labels(labels)
    width = len(source.names) if hashed is None else 1 << hashed
    count = 1 if labels is None or len(labels) == 2 else len(labels)
    runs = [[Run(learner, max(1, width), intercept=plan.intercept) for _ in range(count)] for learner in learners]
    constant = np.zeros(3 if labels is None else len(labels))
    course = Course(plan, runs, labels, scale, state, [0] * len(runs), constant)
    course.source, course.waiting = (source, waiting) if waiting is not None else (None, None)
    return course


def survey(plan: Plan, source: Source) -> tuple[set[str], Measure]:
    """Labels and the sizes of columns and rows, from a pass over the rows."""
    labels: set[str] = set()
    measure, classify = Measure(), plan.classify()
    for chunk in limited(plan.chunks(source), plan.limit, 0):
        if classify:
            labels |= labels_in(targets_of(chunk))
            if len(labels) > MANY:
                check_labels(sorted(labels))
        if SCALES[plan.scale]:
            measure.add(chunk.X, plan.scale)
    return labels, measure


# ---------------------------------------------------------------- learning


@dataclass
class Piece:
    """Rows that were played: margins before each was learnt, a column a run, targets as they stand, rows rejected.

    After a piece with `whole` the course can be kept and gone on from.
    """

    margins: np.ndarray
    y: np.ndarray
    rejects: list[Reject]
    whole: bool


def learn(course: Course, mark: Callable[[int], int | None] = lambda _: None) -> Iterator[Piece]:
    """Play the rows from where the course stands, and give them piece by piece.

    `mark` tells, from the rows played, at how many a piece must end, so that a table can be printed there.
    """
    plan = course.plan
    while course.turn < plan.passes:
        if course.waiting is not None:
            chunks, course.waiting = course.waiting, None
        else:
            course.source = plan.open()
            if course.state is not None:
                course.source.restore(course.state)
            chunks = plan.chunks(course.source, course.position)
        for chunk in limited(chunks, plan.limit, course.row):
            yield from pieces(course, chunk, mark)
        if course.done == 0:
            raise SourceError(
                f"{plan.data}: there is no row to learn from"
                + (": all were rejected" if course.rejected else "" if plan.sample is None else ": none was drawn")
            )
        if course.runs[0][0].rounds == 0:
            raise SourceError(f"{plan.data}: all weights are zero: there is nothing to learn")
        assert course.source is not None
        course.state = course.source.state()
        course.turn, course.row = course.turn + 1, 0
        if course.turn < plan.passes:
            course.position = None
    for run in itertools.chain(*course.runs):  # room was kept for features to come
        if course.names is not None and run.v.shape[1] - bool(run.bias) > max(1, len(course.names)):
            run.resize(max(1, len(course.names)))


class Called(Sequence[Any]):
    """The names of the features, spelled only where an error wants one."""

    def __init__(self, course: Course) -> None:
        self.course = course

    def __len__(self) -> int:
        return len(self.course.names or ())

    def __getitem__(self, j: Any) -> Any:
        names = self.course.names
        return j if names is None else names[j]


def pieces(course: Course, chunk: Chunk, mark: Callable[[int], int | None]) -> Iterator[Piece]:
    """A chunk, played up to each mark."""
    X, raw, m = scaled(chunk.X, course.scale), targets_of(chunk), len(chunk)
    runs = list(itertools.chain(*course.runs))
    room = runs[0].v.shape[1] - bool(runs[0].bias)
    if X.shape[1] > room:  # names met in this chunk
        for run in runs:
            run.resize(max(X.shape[1], 2 * room))
    codes = None if course.labels is None else coded(course.labels, chunk, raw)
    targets = [y for runs in course.runs for y in targets_for(course.labels, runs[0], raw, codes)]
    z = np.empty((m, len(runs)))
    called = Called(course)
    rejects = chunk.rejects if course.turn == 0 else []
    course.rejected += len(rejects)
    a = 0
    while True:
        end = mark(course.done)
        b = m if end is None else min(m, a + end - course.done)
        weight = None if chunk.weight is None else chunk.weight[a:b]
        if b > a:
            try:
                rows = X if b - a == m else X[a:b]  # scipy would copy them
                play(runs, rows, [y[a:b] for y in targets], weight, z[a:b], called, idle=True)
            except RowError as error:
                raise ValueError(f"{chunk.place(a + error.row)}{error.message}") from None
        count(course, z[a:b], raw[a:b], None if codes is None else codes[a:b], weight)
        course.done, course.row = course.done + b - a, course.row + b - a
        if b == m:
            course.position, course.read = chunk.position, chunk.read
        yield Piece(z[a:b], raw[a:b], rejects, b == m)
        a, rejects = b, []
        if a == m:
            return


def count(course: Course, z: np.ndarray, raw: np.ndarray, codes: np.ndarray | None, weight: np.ndarray | None) -> None:
    """Mistakes, and what the best constant is judged by; rows of weight 0 are none."""
    if weight is not None and not weight.all():
        played = weight > 0.0
        z, raw, weight, codes = z[played], raw[played], weight[played], None if codes is None else codes[played]
    c = np.ones(len(raw)) if weight is None else weight
    if codes is None:
        spread(np.ascontiguousarray(raw)[:, None], c, course.constant[:, None])
        return
    np.add.at(course.constant, codes, c)  # one after another, so that the sizes of chunks change nothing
    each = len(course.runs[0])
    for k in range(len(course.runs)):
        course.wrong[k] += mistakes(z[:, k * each : (k + 1) * each], codes)


def mistakes(z: np.ndarray, codes: np.ndarray) -> int:
    """Rows whose label the margins did not give before it was seen; with two labels a zero margin is a mistake."""
    if z.shape[1] == 1:
        return int((np.where(codes == 1, z[:, 0], -z[:, 0]) <= 0.0).sum())
    return int((z.argmax(axis=1) != codes).sum())


# ---------------------------------------------------------------- all rows at once


def everything(
    data: str, target: str | None, reading: dict[str, Any] | None = None, **some: Any
) -> tuple[Any, np.ndarray, np.ndarray | None, list[str], Callable[[int], str]]:
    """All rows, targets as they stand (numbers, or text if one is), weights, names, and where each row stands.

    `some` are `limit`, `sample` and `seed` of a plan.
    """
    plan = Plan(data, target, (("perceptron", {}),), reading or {}, **some)  # one that takes any target
    source = plan.open()
    chunks = [chunk for chunk in limited(plan.chunks(source), plan.limit, 0) if len(chunk)]
    if not chunks:
        raise SourceError(f"{data}: there is no row to learn from")
    rows, targets = [chunk.X for chunk in chunks], [targets_of(chunk) for chunk in chunks]
    if source.kind == "sparse":
        from scipy.sparse import vstack

        for X in rows:
            X.resize((X.shape[0], rows[-1].shape[1]))
        whole = vstack(rows, format="csr")
    else:
        whole = np.concatenate(rows)
    if any(y.dtype.kind == "U" for y in targets):
        targets = [label_text(y) if y.dtype.kind == "f" else y for y in targets]
    weights = [chunk.weight for chunk in chunks if chunk.weight is not None]
    firsts = np.cumsum([0, *map(len, chunks)])

    def place(row: int) -> str:
        k = int(np.searchsorted(firsts, row, "right")) - 1
        return chunks[k].place(row - int(firsts[k]))

    return whole, np.concatenate(targets), np.concatenate(weights) if weights else None, list(source.names), place
