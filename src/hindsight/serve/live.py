"""The model of a service: it chooses the loss from the first rows, learns commit by commit, and provides readers."""

from __future__ import annotations

import contextlib
import copy
import math
import threading
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError, NewLabelError, SourceError
from ..kernels.facts import FACTS, NAMES
from ..kernels.state import fields_of
from ..online.margins import each_mean
from ..online.run import Run, play_rows
from ..rows.labels import label_number, number_text
from ..sources.base import ReadOptions
from ..training.evaluation import probabilities
from ..training.model import Model
from ..training.plan import Plan, leaves_loss, with_loss
from ..training.prepare import check_labels, check_preparation, in_order, labels_in
from ..training.session import play_chunk
from ..training.state import TrainingState, plan_after, state_after
from .mapping_rows import MappingRows, RequestRows, csr_of
from .requests import ANY, ServiceError
from .table_rows import TableRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .requests import Limits, Part

RowReader = MappingRows | TableRows


NOTHING_YET = "nothing was learnt yet: send rows with their targets to /learn first"
CALM, MODERATE = 1e100, 1e30  # below these, numbers of a model and of rows cannot overflow
SUMMED, TOGETHER = 256, 4096  # features up to which sums are kept, and rows that are added while they are in the cache
FINITE = np.array([name in NAMES and name != "rate_min" for name in FACTS.names or ()])  # which is infinite at first


@dataclass(eq=False)
class PlayedRows:
    """The results for the rows of a piece: margins before learning, targets, codes of labels, losses, predictions."""

    model: Model
    z: np.ndarray
    y: np.ndarray
    codes: np.ndarray | None
    losses: np.ndarray
    half: np.ndarray | None

    @cached_property
    def said(self) -> dict[str, list[Any]]:
        """Predictions, and probabilities and intervals if any, of all rows."""
        return answers(self.model, self.z, self.half)


def answers(model: Model, z: np.ndarray, half: float | np.ndarray | None) -> dict[str, Any]:
    """Predictions from margins, with probabilities and intervals if any, as plain values.

    Infinite ends of intervals are None.
    """
    found = {"predictions": model.predictions(z).tolist()}
    chances = None if model.labels is None else probabilities(model, z)
    found |= {} if chances is None else {"probabilities": chances.tolist()}
    if half is None:
        return found
    from ..online.coverage import sets_of

    if model.labels is not None:
        return found | {"sets": sets_of(model.learner.loss, z, half, model.labels)}
    middle = np.array(found["predictions"])
    ends = {"low": (middle - half).tolist(), "high": (middle + half).tolist()}
    return found | {name: [v if math.isfinite(v) else None for v in each] for name, each in ends.items()}


@dataclass
class PlayedRequest:
    """The results for one request: rows a to b of a piece."""

    piece: PlayedRows
    a: int
    b: int

    @property
    def loss(self) -> float:
        """The loss of the rows."""
        return float(self.piece.losses[self.a : self.b].sum())

    def answers(self) -> dict[str, list[Any]]:
        """The predictions."""
        return {name: each[self.a : self.b] for name, each in self.piece.said.items()}


class LiveModel:
    """A model that learns from requests.

    Parameters
    ----------
    plan : Plan
        What to learn; the loss and the labels may be determined by the first rows.

    Attributes
    ----------
    state : TrainingState or None
        The state of training; None before the first rows.
    rows : MappingRows, TableRows or None
        The reader of rows.
    model : Model
        The runs and the labels.
    sums : ndarray or None
        For the square loss with few features, the sums of c z z' over all rows z = (x, 1, y), with the 1 only if there
        is an intercept. They give the loss of every fixed predictor.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.limits = plan, ANY
        self.state: TrainingState | None = None
        self.rows: RowReader | None = None
        self.shells: Shells | None = None
        self.kept: list[Any] | None = None  # snapshots of the runs as they are now, where a reader has them
        self.sums: np.ndarray | None = None
        self.calm = False  # whether all numbers of the model are known to be moderate

    @classmethod
    def after(cls, model: Model) -> LiveModel:
        """A model that continues a saved one; a ModelError if that is impossible."""
        plan = plan_after(model, None)
        live = cls(plan)
        live._take(state_after(model, plan), rows_like(model, plan, ANY))
        return live

    def _take(self, state: TrainingState, rows: RowReader) -> None:
        state.source = rows  # type: ignore[assignment]
        squares = state.labels is None and state.runs[0][0].learner.loss.quadratic
        fresh, size = not state.before and state.rows_done == 0, 1 + state.plan.intercept
        self.sums = np.zeros((size, size)) if squares and fresh else None
        self.model = Model(state.runs[0], labels=state.labels)
        self.state, self.rows, self.plan, self.kept = state, rows, state.plan, None

    def settled(self) -> tuple[TrainingState, RowReader]:
        """The state and the reader of rows; a ServiceError before the first rows."""
        if self.state is None or self.rows is None:
            raise ServiceError(409, NOTHING_YET)
        return self.state, self.rows

    # ------------------------------------------------------------ the first rows

    def settle(self, part: Part) -> None:
        """Choose the loss and the labels from the first rows."""
        plan = self.plan
        assert plan.target is not None
        targets = [{plan.target: row.get(plan.target)} for row in part.mappings()]
        (found,) = MappingRows(ReadOptions(target=plan.target), self.limits).encode([replace(part, parsed=targets)])
        plan = with_loss_for(plan, found.y)
        labels = None
        if plan.classify():
            met = set(plan.labels) if plan.labels is not None else labels_in(found.y)
            if len(met) < 2:
                raise SourceError(
                    f"the first rows have one label only, {next(iter(met))!r}: send some with others, or begin with "
                    "--labels A,B"
                )
            labels = in_order(met)
            check_labels(labels)
        reader = rows_of_plan(plan, self.limits)
        count = 1 if labels is None or len(labels) == 2 else len(labels)
        learners = plan.make()
        if not all(learner.geometry.can_grow for learner in learners):
            raise SourceError(
                "features may join at any time, which this geometry does not allow: begin with --from MODEL"
            )
        runs = plan.begin(1, count)
        constant = np.zeros(3 if labels is None else len(labels))
        self._take(TrainingState(plan, runs, labels, None, None, [0] * len(runs), constant), reader)

    # ------------------------------------------------------------ learning

    def learn(self, parts: Sequence[Part]) -> tuple[list[PlayedRequest], Callable[[], None]]:
        """Learn from the requests of a commit together, as a restart does from the stored ones.

        Parameters
        ----------
        parts : sequence of Part
            The requests.

        Returns
        -------
        played : list of PlayedRequest
            The results of each request.
        undo : callable
            Undoes the commit, as long as nothing else was learnt.

        Raises
        ------
        ValueError
            If a row cannot be learnt; nothing is learnt then.
        """
        with contextlib.ExitStack() as undo:
            undo.callback(vars(self).update, dict(vars(self)))
            if self.rows is not None:
                mark: Any = self.rows.mark()
                undo.callback(self.rows.undo, mark)
            if self.state is None:
                self.settle(parts[0])
            pieces = self.settled()[1].encode(parts)
            undo.callback(self._restorer(pieces))
            self.kept = None
            found: dict[int, PlayedRequest] = {}
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite then is refused
                for piece in pieces:
                    found |= self._play(piece)
            self._check_finite(pieces)
            return [found[k] for k in range(len(parts))], undo.pop_all().close

    def _restorer(self, pieces: Sequence[RequestRows]) -> Callable[[], None]:
        """A function that takes back what playing the rows is about to change."""
        state, _ = self.settled()
        runs = state.runs[0]
        kept = self.kept or [run.snapshot(touched(run, pieces)) for run in runs]
        each = [one for run in runs for one in (run, *getattr(run, "members", ()))]
        fields = [(one, dict(vars(one))) for one in (state, *each)]
        numbers = state.constant.copy(), state.order.copy(), list(state.mistakes)

        def restore() -> None:
            for one, own in fields:
                vars(one).clear()
                vars(one).update(own)
            for run, old in zip(runs, kept, strict=True):
                run.restore(old)
            state.constant, state.order, state.mistakes = numbers

        return restore

    def _check_finite(self, pieces: Sequence[RequestRows]) -> None:
        """Raise an error if played rows made a number infinite or NaN, after which nothing could be learnt.

        Moderate rows cannot do so if all numbers were moderate before, so the check is skipped then.
        """
        if self.calm and all(is_moderate(piece) for piece in pieces):
            return
        state, _ = self.settled()
        facts = [np.array(run.tally[0].item())[FINITE] for run in state.runs[0]]
        totals = [state.constant, state.order, *([] if self.sums is None else [self.sums])]
        met = [values for run in state.runs[0] for values in state_values(run)]
        sizes = np.array([np.abs(values).max(initial=0.0) for values in (*facts, *totals, *met)])
        if np.isfinite(sizes).all():
            self.calm = bool((sizes < CALM).all())
            return
        y = np.concatenate([np.abs(p.y) if p.y.dtype.kind == "f" else np.zeros(len(p.y)) for p in pieces])
        t = int(np.argmax(y))
        raise SourceError(f"row {t} (target {y[t]:g}): numbers so large cannot be learnt, sums would not be finite")

    def _play(self, piece: RequestRows) -> dict[int, PlayedRequest]:
        state, _ = self.settled()
        piece.X, piece.first = dense_if_full(piece.X, state.features), state.rows_done
        rounds = state.runs[0][0].tally[0].rounds
        try:
            played = next(iter(play_chunk(state, piece)))  # `learn` goes back
        except NewLabelError as error:
            raise NewLabelError(f"{error}: begin anew with --labels", error.label) from None
        z, y = played.margins, piece.y
        losses = row_losses(state, z, y, played.codes)
        if piece.weight is not None:
            losses = losses * piece.weight
        real, c = np.ones(len(y), bool) if piece.weight is None else piece.weight > 0.0, piece.weight
        if real.sum() > state.runs[0][0].tally[0].rounds - rounds:  # the first row of a panel initialises its members
            first, c = np.argmax(real), np.where(real, 1.0 if c is None else c, 0.0)
            losses[first] = c[first] = 0.0
        if self.sums is not None:
            self.sums = with_rows(self.sums, piece.X, np.asarray(y, float), c, state.plan.intercept)
        whole = PlayedRows(self.model, z, y, played.codes, losses, played.half)
        return {k: PlayedRequest(whole, a, b) for k, a, b in piece.spans}

    def limit(self, limits: Limits) -> None:
        """Apply limits from now on."""
        self.limits = limits
        if self.rows is not None:
            self.rows.limits = limits

    @property
    def features(self) -> int:
        """The number of named features."""
        return 0 if self.rows is None else self.rows.width

    # ------------------------------------------------------------ readers and files

    def reader(self, sequence: int) -> Reader:
        """A reader that predicts as the model does now, unaffected by later learning."""
        state, rows = self.settled()
        runs, shells = state.runs[0], self.shells
        if shells is None or not shells.fit(runs):
            shells = self.shells = Shells(runs, state.labels)
        self.kept = [run.snapshot() for run in runs]
        half = None if state.tracker is None else state.tracker.half
        return Reader(shells, self.kept, rows, rows.width, sequence, half)

    def to_model(self, certificate: Any = None) -> Model:
        """The model in the form used by `hindsight.load` and the command, with its certificate if there is one."""
        state, rows = self.settled()
        runs = [[copy.deepcopy(run) for run in each] for each in state.runs]
        for run in runs[0]:
            if run.features > max(1, rows.width):
                run.resize(max(1, rows.width))
        held = replace(state, runs=runs, source_state=rows.state())
        return held.to_model(certificate)

    def to_snapshot(self) -> dict[str, Any] | None:
        """The state as plain values, arrays and runs."""
        if self.state is None:
            return None
        return self.state.to_checkpoint() | {"position": None, "gram": self.sums}

    def restore(self, kept: dict[str, Any] | None) -> None:
        """Restore the state of a snapshot."""
        if kept is None:
            return
        kept = dict(kept)
        sums, settings = kept.pop("gram", None), kept.get("settings")
        if not isinstance(settings, dict):
            raise ModelError("a snapshot must say what is learnt")
        plan = Plan.from_settings(settings, None)
        state = TrainingState.resumed(plan, kept)
        rows = rows_of_state(plan, state.source_state, self.limits, state.labels)
        self._take(state, rows)
        self.sums = None if sums is None else np.array(sums, np.float64)


def is_moderate(piece: RequestRows) -> bool:
    """Whether products of the values of rows, and sums of these, stay far below the limit of float64."""
    values = np.abs(piece.X.data if hasattr(piece.X, "tocsr") else np.asarray(piece.X))
    given = [values[values > 0.0], *(() if piece.y.dtype.kind != "f" else (np.abs(piece.y) + 1.0,))]
    given += [] if piece.weight is None else [piece.weight[piece.weight > 0.0]]
    return all(not each.size or (each.max() < MODERATE and each.min() > 1.0 / MODERATE) for each in given)


def touched(run: Run, pieces: Sequence[RequestRows]) -> np.ndarray | None:
    """The coordinates in which rows have entries, and the intercept's; None if they may be all."""
    met = np.zeros(run.width, np.bool_)
    met[-1] = True
    for piece in pieces:
        if not hasattr(piece.X, "tocsr"):
            return None
        met[piece.X.indices[piece.X.indices < run.features]] = True
    return np.flatnonzero(met)


def state_values(run: Run) -> Iterator[np.ndarray]:
    """The numbers of a state, without those that are infinite initially."""
    for state in run.states():
        for name, field in fields_of(type(state)).items():
            values = getattr(state, name)
            if not (field.scratch or not values.size or (math.isinf(field.start) and values.max() == field.start)):
                yield values


class Shells:
    """Reusable copies of runs, into which the numbers of a reader are copied; this is faster than copying the runs."""

    def __init__(self, runs: list[Run], labels: list[str] | None) -> None:
        self.of, self.shape = runs, run_shapes(runs)
        self.model = Model([run.frozen() for run in runs], labels=labels)
        self.lock = threading.Lock()
        self.holds: Reader | None = None

    def fit(self, runs: list[Run]) -> bool:
        """Whether the copies match these runs in features and members."""
        return runs is self.of and run_shapes(runs) == self.shape

    def margins(self, reader: Reader, X: Any) -> np.ndarray:
        """The margins of rows under a reader's numbers; they are played with weight 0, which changes nothing."""
        nothing, runs = np.zeros(X.shape[0]), self.model.runs
        z, y = np.empty((X.shape[0], len(runs))), nothing if self.model.learner.targets != "sign" else nothing + 1.0
        with self.lock:
            if self.holds is not reader:
                for run, kept in zip(runs, reader.kept, strict=True):
                    run.restore(kept)
                self.holds = reader
            play_rows(runs, X, [y] * len(runs), nothing, z, idle=True)
        return z


def run_shapes(runs: list[Run]) -> list[tuple[int, int]]:
    """The features and members of each run."""
    return [(run.features, len(getattr(run, "members", ()))) for run in runs]


@dataclass(frozen=True, eq=False)
class Reader:
    """A predictor from an immutable copy of the runs' numbers and the lookup of features."""

    shells: Shells
    kept: list[Any]
    rows: RowReader
    width: int
    sequence: int
    half: float | None = None

    def margins(self, parsed: Any) -> np.ndarray:
        """The margins of parsed rows; a ValueError if one cannot be predicted."""
        X = self.rows.look_up(parsed, self.width)
        if hasattr(X, "tocsr"):
            X = dense_if_full(X, self.shells.model.features)
        if hasattr(X, "tocsr"):
            X.resize((X.shape[0], self.shells.model.features))
        return self.shells.margins(self, X)

    def answers(self, z: np.ndarray) -> dict[str, Any]:
        """The predictions from margins."""
        return answers(self.shells.model, z, self.half)

    def margins_of(self, requests: Sequence[Any]) -> list[np.ndarray | ValueError]:
        """The margins of several requests, computed together; for a bad request, the error."""
        together = [k for k, parsed in enumerate(requests) if isinstance(parsed, list)]
        found: dict[int, np.ndarray] = {}
        if len(together) > 1:
            with contextlib.suppress(ValueError):  # of one of them, which is then refused by itself
                z = self.margins([row for k in together for row in requests[k]])
                ends = np.cumsum([len(requests[k]) for k in together])
                found = dict(zip(together, np.split(z, ends[:-1]), strict=True))
        return [found[k] if k in found else result_of(self.margins, parsed) for k, parsed in enumerate(requests)]


def result_of(work: Callable[..., Any], *given: Any) -> Any:
    """What a function returns, or the ValueError that it raises."""
    try:
        return work(*given)
    except ValueError as error:
        return error


def dense_if_full(X: Any, features: int) -> Any:
    """Rows as an array if they all have every feature, which is faster and gives the same bits; otherwise as sparse."""
    n, width = X.shape
    room = features if width <= features else max(width, 2 * features)  # as it will be when they are played
    if room != width:
        return csr_of(X)
    return X.data.reshape(n, width) if hasattr(X, "tocsr") and X.nnz == n * width else X


def with_rows(sums: np.ndarray, X: Any, y: np.ndarray, c: np.ndarray | None, intercept: bool) -> np.ndarray | None:
    """Add rows z = (x, 1, y) to the sums of c z z'; None if there are too many features."""
    n, width = X.shape
    if width > SUMMED:
        return None
    ends = 1 + intercept
    old, size = len(sums), max(len(sums), width + ends)
    out = np.zeros((size, size))
    place = np.r_[: old - ends, size - ends : size]
    out[np.ix_(place, place)] = sums
    place = np.r_[:width, size - ends : size]
    for a in range(0, n, TOGETHER):
        rows = X[a : a + TOGETHER]
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        z = np.column_stack([rows, *[np.ones(len(rows))] * intercept, y[a : a + TOGETHER]])
        out[np.ix_(place, place)] += z.T @ (z if c is None else z * c[a : a + TOGETHER, None])
    return out


# ---------------------------------------------------------------- how rows are read


def rows_of_plan(plan: Plan, limits: Limits) -> MappingRows:
    """The reader of rows for a service that started without a model, or with one that learnt from JSON lines."""
    reading = plan.reading
    options = ReadOptions(
        target=plan.target,
        weight=reading.get("weight"),
        ignore=tuple(reading.get("ignore") or ()),
        categorical="auto",
        missing=reading.get("missing", "indicator"),
        labels=None if plan.classify() else False,
        strict=False,
    )
    return MappingRows(options, limits)


def rows_like(model: Model, plan: Plan, limits: Limits) -> RowReader:
    """The reader of rows for a model that is continued."""
    made = check_preparation(model)
    if made["scale"] is not None:
        raise ModelError("was learnt from scaled rows: a service learns from rows as they come")
    state = made["state"]
    if made["kind"] == "dense" and "table" not in (state or {}):  # a table of numbers alone
        state = {"names": list(model.names or ())}
    reading = {k: v for k, v in made["source"].items() if k in ("weight", "ignore", "missing", "features")}
    return rows_of_state(replace(plan, reading=plan.reading | reading), state, limits, model.labels)


def rows_of_state(plan: Plan, state: dict[str, Any] | None, limits: Limits, labels: list[str] | None) -> RowReader:
    """The reader of rows whose features are numbered as in a state."""
    if plan.target is None:
        raise ModelError("does not say which column it predicts: learn from a table or from JSON lines")
    if not state or not state.get("names") or plan.reading.get("hash_bits") is not None:
        raise ModelError("does not name its features: learn from a table or from JSON lines")
    if "space" in state and "table" not in state:
        rows = rows_of_plan(plan, limits)
        rows.restore(state)
        return rows
    return TableRows(plan, state, limits, labels)


def with_loss_for(plan: Plan, y: np.ndarray) -> Plan:
    """The plan, with losses that are "auto" chosen by the first targets."""
    if not any(leaves_loss(name, options) for name, options in plan.learners):
        return plan
    return with_loss(plan, "logistic" if plan.labels is not None or labels_or_numbers(y) else "square")


def labels_or_numbers(y: np.ndarray) -> bool:
    """Whether the first targets are labels rather than numbers; a SourceError if that is ambiguous."""
    found = np.unique(y)
    numbers = [label_number(str(v)) for v in found[:1000]] if found.dtype.kind != "f" else found.tolist()
    if any(np.isnan(v) for v in numbers) or set(numbers) in LABELS:
        return True
    if len(numbers) > 2 or any(v != int(v) for v in numbers):
        return False
    both = " and ".join(map(number_text, numbers))
    raise SourceError(
        f"the first rows have the targets {both} only, which may be labels or numbers: send some with others, or begin "
        "with --labels A,B or with --loss square"
    )


LABELS: tuple[set[float], ...] = ({0.0, 1.0}, {-1.0, 1.0}, {1.0, 2.0})  # numbers that count as labels


# ---------------------------------------------------------------- what margins say


def row_losses(state: TrainingState, z: np.ndarray, y: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    """The loss of each row: squared error, log loss (over all runs) or mistakes, as in `state.constant_quantity`."""
    if codes is None:
        return np.asarray((each_mean(state.runs[0][0].learner.loss, z[:, 0]) - y) ** 2)
    if state.in_logs:
        own = codes[:, None] == (np.arange(z.shape[1]) if z.shape[1] > 1 else 1)
        return np.asarray(np.logaddexp(0.0, np.where(own, -z, z)).sum(axis=1))
    wrong = (z.argmax(axis=1) != codes) if z.shape[1] > 1 else np.where(codes == 1, z[:, 0], -z[:, 0]) <= 0.0
    return np.asarray(wrong, float)
