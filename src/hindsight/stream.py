"""Learning from a source chunk by chunk, each row predicted before it is learnt: several learners at once, resumable.

`Plan` is what was asked for, plain values only, so that a resumed run can be checked against the one it goes on from.
`Course` is how far it has got. The result does not depend on the sizes of chunks, nor on where a run was interrupted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .kernels import Euclidean
from .learners import BY_NAME, Learner
from .run import RowError, Run, play
from .scaling import SCALES, Measure, scaled, spread
from .sources import Chunk, Reject, Source, SourceError, ending, label_text, open_source, sample
from .sources.base import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANY = 100  # labels at most
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
            return Sample(self.data, self.target, labels)
        target = self.target
        if target is None:
            paths = self.data if isinstance(self.data, (list, tuple)) else [self.data]
            if (self.reading.get("format") or ending(str(paths[0]))) not in ("svmlight", "vw"):
                raise SourceError(f"{self.data}: say which column to predict: --target COLUMN")
            target = "label"  # such rows have a place of their own for it
        return open_source(self.data, target, labels=labels, digest=self.digest, **self.reading)

    def chunks(self, source: Source, start: dict[str, Any] | None = None) -> Iterator[Chunk]:
        """The rows of the source that are to be taken."""
        return source.chunks(start) if self.sample is None else sampled(source.chunks(start), self.sample, self.seed)


class Sample(Source):
    """Real data that scikit-learn ships, as one chunk."""

    def __init__(self, where: str, target: str | None, labels: bool | None) -> None:
        super().__init__(where, Options(target=target, ahead=False))
        self.table = sample(where.removeprefix("sample:"), target)
        self.numbers = labels is False
        self.done_to_it = self.table.about.split("features, ")[1]

    @property
    def names(self) -> list[str]:
        return self.table.names

    def restore(self, state: dict[str, Any]) -> None:
        """The columns of a sample are always the same."""

    def _chunks(self, start: dict[str, Any] | None) -> Iterator[Chunk]:
        X, raw, places = self.table.X, self.table.y, self.table.places
        if self.numbers and not all(map(number, raw.tolist())):
            bad = next(v for v in raw.tolist() if not number(v))
            raise SourceError(f"{self.where}: target {bad!r} is not a number: take a learner of labels, as perceptron")
        y = raw.astype(np.float64) if self.numbers else raw
        first = start["row"] if start else 0
        here = {"row": len(y), "rejected": 0}
        if first < len(y):
            yield Chunk(X[first:], y[first:], None, first, here, 0, lambda i: places[first + i], lambda i: "")


class NewLabelError(ValueError):
    """A label that was not among the two of the first chunk."""


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


def targets_of(chunk: Chunk) -> np.ndarray:
    """The targets of a chunk, which has them as a target was named."""
    assert chunk.y is not None
    return chunk.y


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


def labels_in(y: np.ndarray) -> set[str]:
    """The labels, as text."""
    found = np.unique(y)
    return set((label_text(found) if found.dtype.kind == "f" else found).tolist())


def in_order(labels: set[str]) -> list[str]:
    """Labels by number where they are numbers, then by name."""
    return sorted(labels, key=lambda v: (not number(v), float(v) if number(v) else 0.0, v))


def number(text: str) -> bool:
    """Whether the text is a number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def check_labels(labels: list[str]) -> None:
    """Refuse fewer than two labels, and so many that they must be numbers."""
    if len(labels) < 2:
        raise ValueError(f"the target has one value only: {labels[0]!r}" if labels else "there is no row to learn from")
    if len(labels) > MANY:
        raise ValueError(f"the target has more than {MANY} values: for numbers take --learner widrow-hoff")


def sampled(chunks: Iterator[Chunk], part: float, seed: int) -> Iterator[Chunk]:
    """Chunks with each row taken with probability `part`. What is drawn for a row depends on its number alone.

    So the sizes of chunks, another pass or going on from a checkpoint change nothing.
    """
    for chunk in chunks:
        skip = chunk.first % 4  # of the four numbers that the generator makes at a time
        draws = np.random.Generator(np.random.Philox(key=seed).advance(chunk.first // 4)).random(skip + len(chunk))
        taken = np.flatnonzero(draws[skip:] < part)
        chunk.X = chunk.X[taken]
        chunk.y = None if chunk.y is None else chunk.y[taken]
        chunk.weight = None if chunk.weight is None else chunk.weight[taken]
        chunk.place, chunk.raw = renumbered(chunk.place, taken), renumbered(chunk.raw, taken)
        yield chunk


def renumbered(tell: Callable[[int], str], rows: np.ndarray) -> Callable[[int], str]:
    """The same of row rows[i]."""
    return lambda i: tell(int(rows[i]))


def limited(chunks: Iterator[Chunk], limit: int | None, row: int) -> Iterator[Chunk]:
    """Chunks up to so many rows in all, `row` of which have been."""
    for chunk in chunks:
        if limit is not None and row + len(chunk) >= limit:
            m = limit - row
            chunk.X = chunk.X[:m]
            chunk.y = None if chunk.y is None else chunk.y[:m]
            chunk.weight = None if chunk.weight is None else chunk.weight[:m]
            yield chunk
            return
        row += len(chunk)
        yield chunk


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


def coded(labels: list[str], chunk: Chunk, raw: np.ndarray) -> np.ndarray:
    """Which of the labels each row has."""
    codes = np.full(len(raw), -1)
    for k, label in enumerate(labels):
        if raw.dtype.kind != "f":
            np.copyto(codes, k, where=raw == label)
        elif number(label):
            np.copyto(codes, k, where=raw == float(label))
    if len(codes) and codes.min() < 0:
        row = int(codes.argmin())
        text = next(iter(labels_in(raw[row : row + 1])))
        raise NewLabelError(f"{chunk.place(row)}: label {text!r} is not one of {', '.join(labels)}")
    return codes


def targets_for(labels: list[str] | None, run: Run, raw: np.ndarray, codes: np.ndarray | None) -> list[np.ndarray]:
    """For each run of a learner, its targets: numbers, or labels as the rule takes them."""
    if labels is None or codes is None:
        return [raw]
    low = 0.0 if run.learner.targets == "unit" else -1.0
    return [(1.0 - low) * (codes == k) + low for k in (range(1, 2) if len(labels) == 2 else range(len(labels)))]


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
