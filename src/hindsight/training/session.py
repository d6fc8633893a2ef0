"""Learning from a source chunk by chunk, with several learners at once; each row is predicted before it is learnt.

The result depends neither on the sizes of chunks nor on where a run was interrupted and resumed. The exception is
learners with a matrix when new features appear along the way: their last digits may differ, because sums are then taken
in another order.
"""

from __future__ import annotations

import inspect
import itertools
import time
import warnings
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AssumptionWarning, DisprovedError, NewLabelError, OptionError, RowError
from ..online.run import play_rows
from ..rows.labels import count_mistakes
from ..rows.order import add_labels, add_numbers
from ..rows.scaling import spread
from ..sources import Reject, SourceError
from .options import LearnerOptions, ResultOptions, RowOptions
from .outputs import Outputs, check_files, newest_checkpoint
from .plan import Plan, choose_loss, describe_learner, short_names, with_loss
from .prepare import labelled, number, targets_of
from .recording import ColumnSpread, LearnerScores, Recording
from .state import TrainingState, same_plain, start, state_after

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from ..sources import Chunk, Source
    from .certify import Followed
    from .model import Model


IN_THIS_ORDER = "what was lost along the way says nothing about rows that come in another order;"


# ---------------------------------------------------------------- one run with its files


class Session:
    """One run of a plan, with the files it writes: it starts or resumes, learns, and can be stopped.

    Parameters
    ----------
    plan : Plan
        What to learn.
    results : ResultOptions
        The files to write, and whether learners are compared and certificates will be asked for.
    notify : callable, default does nothing
        Called with a line of text when learning restarts.
    model : Model or None, default None
        A model to continue with these rows; see `hindsight.training.state.plan_after`.

    Attributes
    ----------
    notes : list of str
        What was done before learning.
    checkpoint : dict or None
        The checkpoint that the session resumes from.
    stopped : bool
        Whether `stop` was called.
    seconds : float
        How long learning took.
    curves : Recording or None
        The recording of the run, if a report is written.
    spread : ColumnSpread
        The standard deviations of the columns of the rows learnt.

    Raises
    ------
    OptionError
        If the files to write do not fit the plan.
    ValueError
        If a file cannot be written, or there is no checkpoint to resume from.
    """

    def __init__(
        self,
        plan: Plan,
        results: ResultOptions | None = None,
        notify: Callable[[str], None] = lambda _: None,
        model: Model | None = None,
    ) -> None:
        self.results, self.notify = results or ResultOptions(), notify
        if self.results.bounds is not None and not self.results.compare:
            raise OptionError("bounds", "is for --compare")
        if self.results.checkpoint is not None and not plan.reread:
            raise OptionError("checkpoint", "needs rows that can be read again, not standard input: read from a file")
        if self.results.save is not None and len(plan.learners) > 1:
            raise OptionError("save", "takes one learner at one rate")
        check_files(self.results, plan.data)
        if self.results.compare and self.results.checkpoint is not None:
            raise OptionError("compare", "begins with the first row, so it cannot be resumed: leave --checkpoint out")
        self.asked, self.model = plan, model
        self.scores: LearnerScores | None = None
        self.curves: Recording | None = None
        self.followed: Followed | None = None
        self.spread = ColumnSpread()
        self.plan, self.notes, self.opened = choose_loss(plan)
        self.checkpoint = newest_checkpoint(self.results)
        if self.checkpoint is not None or model is not None:
            self.opened = None
        if self.checkpoint is not None and self._began_as(with_loss(plan, "square")):
            self.plan = with_loss(plan, "square")
        self.stopped, self.seconds = False, 0.0

    @property
    def titles(self) -> list[str]:
        """A one-line description of each learner."""
        return [describe_learner(learner) for learner in self.plan.make()]

    @property
    def names(self) -> list[str]:
        """A short, numbered name of each learner."""
        return short_names(self.plan.make())

    def _began_as(self, plan: Plan) -> bool:
        """Whether the checkpoint was written under this plan."""
        state = self.checkpoint["state"] if self.checkpoint else None
        before = state.get("settings") if isinstance(state, dict) else None
        return isinstance(before, dict) and same_plain(before.get("learners"), plan.settings()["learners"])

    def stop(self) -> None:
        """Stop after the current chunk; a checkpoint is written if there is a folder for it."""
        self.stopped = True

    def run(self) -> TrainingState:
        """Learn to the end, or until `stop`; returns the state then."""
        return deque(self.steps(), maxlen=1)[0]

    def steps(self, next_stop: Callable[[int], int | None] = lambda _: None) -> Generator[TrainingState]:
        """Learn chunk by chunk to the end, or until `stop`.

        Two labels in the first chunk are assumed to be all labels; if a third one appears, learning restarts with all
        of them. If a row contradicts the column types inferred from the first rows of a table, learning restarts with
        types inferred from all rows.

        Parameters
        ----------
        next_stop : callable, default never
            Maps the number of rows played to the number at which a chunk must end; None if there is no such number.

        Yields
        ------
        TrainingState
            The state before the first row, and after each chunk; another one where learning has restarted.
        """
        began = time.perf_counter()
        all_labels = look_at_all = again = False
        while True:
            opened, self.opened = self.opened, None
            takes_labels, notes = opened is not None and not self.plan.classify(), [*self.notes]
            try:
                if self.checkpoint is not None:
                    state = TrainingState.resumed(self.plan, self.checkpoint["state"])
                elif self.model is not None:
                    state = state_after(self.model, self.plan)
                else:
                    state = start(self.plan, self.notes.append, all_labels, look_at_all, opened)
                    if again:
                        self._forget_checkpoints(state)
                if self.model is not None and self.model.labels is not None:
                    state.label_type = self.model.preparation.get("labels", "text")
                began = time.perf_counter()
                yield from self._learn(state, next_stop)
                break
            except NewLabelError as error:
                if self.plan.labels is not None or not self.plan.reread or all_labels or self.model is not None:
                    raise
                if self.plan != self.asked and number(error.label):
                    self.notify(f"{error}: starting again with targets that are numbers (--loss logistic: labels)")
                    self.plan = with_loss(self.asked, "square")
                else:
                    self.notify(f"{error}: starting again with all labels")
                    all_labels = True
            except DisprovedError as error:
                if takes_labels:  # a source that does not may accept the row, or have a better message
                    self.notes, again = notes, True
                    continue
                if not self.plan.reread or look_at_all or self.model is not None:
                    raise
                self.notify(f"{error}; starting again, having looked at all rows")
                look_at_all = True
            self.checkpoint, self.notes, again = None, [], True
        self.seconds = time.perf_counter() - began

    def _forget_checkpoints(self, state: TrainingState) -> None:
        """Write a checkpoint of the restart and remove all others, since the files they refer to are overwritten."""
        if self.results.checkpoint is not None:
            from ..storage import checkpoint

            checkpoint.write(self.results.checkpoint, {"files": {}, "state": state.to_checkpoint()}, kept=1)

    def _learn(self, state: TrainingState, next_stop: Callable[[int], int | None]) -> Iterator[TrainingState]:
        """Learn from a state on, with all that is computed and written on the way."""
        kept = {} if self.checkpoint is None else self.checkpoint["files"]
        results = self.results
        if results.compare:
            self.scores = LearnerScores(state, self.names, results.bounds)
        if results.report is not None:
            self.curves = Recording.of(state, results.bounds)
        self.spread = ColumnSpread() if self.curves is None else self.curves.spread
        if results.certifies and state.rows_done == 0 and not state.before and self.plan.passes == 1:
            from .certify import Followed

            self.followed = Followed(state.runs)
        with closing(Outputs(results, state, kept)) as outputs:
            yield state
            due = state.rows_done + results.every
            for chunk in learn_chunks(state, next_stop, self.followed):
                outputs.add(chunk)
                if self.scores is not None:
                    self.scores.add(chunk)
                if self.curves is not None:
                    self.curves.add(chunk)
                else:
                    self.spread.add(chunk.X)
                yield state
                if chunk.complete and (self.stopped or state.rows_done >= due):
                    outputs.write_checkpoint(state)
                    due = state.rows_done + results.every
                    if self.stopped:
                        break
            outputs.flush()


# ---------------------------------------------------------------- the command as a function


def learn(
    data: Any,
    target: str | None = None,
    *,
    certify: bool = False,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> Model:
    """Learn from rows in one pass, as the command ``hindsight learn`` does.

    Parameters
    ----------
    data : object
        A path or several, a data frame (with categories, text, dates and missing values), dicts, or a tuple of arrays
        (rows, targets): anything that `hindsight.open_source` reads.
    target : str or None, default None
        The column to predict; None where targets come with the rows.
    learner : str, default "auto"
        A name that ``hindsight learners`` lists.
    eta : float or None, default None
        The rate; None is the learner's default.
    weight, features, ignore, types, categorical, missing, na, cross
        Roles and types of columns, as for `hindsight.open_source`.
    format, header, separator, encoding, decimal, strict, hash_bits
        How a file is read, as for `hindsight.open_source`.
    labels : sequence of str or None, default None
        The labels; None takes those found in the data.
    intercept : bool, default True
        Whether to append a constant 1 to every row.
    passes : int, default 1
        The number of passes over the rows.
    scale : str, default "none"
        How rows are scaled: "none", "row-unit", "global-unit", "max-abs", "standard".
    limit, sample : default None
        The maximum number of rows; the probability with which each row is taken.
    shuffle : bool, default False
        Whether to learn from the rows in a random order.
    seed : int, default 0
        Seed of `sample` and `shuffle`.
    certify : bool, default False
        Whether to certify the model, from sums of the run and, if needed, by reading the rows again.
    reading : mapping or None, default None
        Further parameters of `hindsight.open_source`, such as ``{"zero_based": True}``.
    **options
        Options of the learner: ``loss``, ``update``, ``geometry``, ...

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        If an option is unknown or a row cannot be learnt from.

    Warns
    -----
    AssumptionWarning
        If the targets come sorted or in blocks.

    Examples
    --------
    >>> import hindsight
    >>> rows = [{"sky": s, "rain": r} for s, r in [("grey", "yes"), ("blue", "no")] * 10]
    >>> model = hindsight.learn(rows, "rain")
    >>> model.predict([{"sky": "blue"}, {"sky": "grey"}]).tolist()
    ['no', 'yes']
    """
    if target is not None and np.ndim(target) > 0:
        raise ValueError("target is the name of a column: give rows and their targets as a pair, learn((X, y))")
    plan = Plan.of_one_learner(options | {"data": data, "target": target})
    session = Session(replace(plan, reading=plan.reading | dict(reading or {})), ResultOptions(certify=certify))
    state = session.run()
    if what := state.order_warning():
        warnings.warn(f"{what}: {IN_THIS_ORDER} shuffle=True learns in a random order", AssumptionWarning, stacklevel=2)
    certificate = None
    if certify:
        from ..certificates.certificate import combined
        from .certify import certify_state

        certificate = combined(certify_state(state, followed=session.followed)[0])
    return state.to_model(certificate)


def signature() -> inspect.Signature:
    """The signature of `learn`, including the options that it shares with the command."""
    own = list(inspect.signature(learn).parameters.values())
    only = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(f.name, only, default=f.default, annotation=f.type)
        for kind in (RowOptions, LearnerOptions)
        for f in fields(kind)
        if f.name not in ("data", "target", "rounds", "lipschitz", "more")
    ]
    return inspect.Signature([*own[:2], *shared, *own[2:]], return_annotation="Model")


learn.__signature__ = signature()  # type: ignore[attr-defined]


# ---------------------------------------------------------------- learning


@dataclass
class PlayedChunk:
    """Rows that were just learnt.

    Attributes
    ----------
    margins : ndarray
        The margin of each row before it was learnt, one column per run.
    y : ndarray
        The targets as they were read.
    codes : ndarray or None
        The index of each row's label; None if targets are numbers.
    weight : ndarray or None
        The importance of each row; None is 1.
    rejects : list of Reject
        Bad rows that were left out before these.
    complete : bool
        Whether the chunk of the source was played to its end, so that a checkpoint can be written.
    unlabelled : ndarray of bool
        Which rows have no target.
    half : ndarray or None
        Half the width of the interval of each row before it was learnt; None without intervals.
    X : ndarray or CSR matrix or None
        The rows as learnt.
    """

    margins: np.ndarray
    y: np.ndarray
    codes: np.ndarray | None
    weight: np.ndarray | None
    rejects: list[Reject]
    complete: bool
    unlabelled: np.ndarray
    half: np.ndarray | None = None
    X: Any = None


def learn_chunks(
    state: TrainingState,
    next_stop: Callable[[int], int | None] = lambda _: None,
    followed: Followed | None = None,
) -> Iterator[PlayedChunk]:
    """Learn the rows from the current state on, chunk by chunk.

    Parameters
    ----------
    state : TrainingState
        Where to start; it is advanced.
    next_stop : callable, default never
        Maps the number of rows played to the number at which a chunk must end; None if there is no such number.
    followed : Followed, default None
        Collects what certificates need.

    Yields
    ------
    PlayedChunk

    Examples
    --------
    >>> from hindsight.training.plan import Plan, choose_learners
    >>> state = start(Plan("sample:diabetes", None, choose_learners(["widrow-hoff"], [0.1])))
    >>> sum(len(chunk.y) for chunk in learn_chunks(state))
    442
    >>> state.losses()[0] < 2 * state.best_constant()
    True
    """
    plan = state.plan
    while state.passes_done < plan.passes:
        chunks, state.pending = state.pending, None
        if chunks is None:
            state.source = state.preparation.open()
            chunks = chunks_after(plan, state.source, state.position, state.pass_rows)
        for chunk in chunks:
            yield from play_chunk(state, chunk, next_stop, followed)  # an error ends the run, so nothing is undone
        if state.own_rows == 0:
            raise SourceError(
                f"{plan.data}: there is no row to learn from"
                + (": all were rejected" if state.rejected else "" if plan.sample is None else ": none was drawn")
            )
        if state.runs[0][0].rounds == 0:
            raise SourceError(f"{plan.data}: all weights are zero: there is nothing to learn")
        assert state.source is not None
        state.check_pass()
        state.source_state = state.source.state()
        state.passes_done, state.pass_rows = state.passes_done + 1, 0
        if state.passes_done < plan.passes:
            state.position = None
    for run in itertools.chain(*state.runs):  # there was spare room for new features
        if state.names is not None and run.features > max(1, len(state.names)):
            run.resize(max(1, len(state.names)))


def chunks_after(plan: Plan, source: Source, position: dict[str, Any] | None, done: int) -> Iterator[Chunk]:
    """The rows of a source after a position and `done` rows; a SourceError if the source has no such position."""
    chunks = plan.chunks(source, position, done)
    if position is None:
        yield from chunks
        return
    try:
        first = next(chunks, None)
    except (KeyError, IndexError, TypeError, OverflowError) as error:
        what = f"{type(error).__name__}: {error}"
        raise SourceError(f"{plan.data}: the checkpoint stands at a place that is not there ({what})") from None
    if first is not None:
        yield first
        yield from chunks


class FeatureNames(Sequence[Any]):
    """The names of the features, looked up only where an error needs one."""

    def __init__(self, state: TrainingState) -> None:
        self.state = state

    def __len__(self) -> int:
        return len(self.state.names or ())

    def __getitem__(self, j: Any) -> Any:
        names = self.state.names
        return j if names is None else names[j]


def play_chunk(
    state: TrainingState,
    chunk: Chunk,
    next_stop: Callable[[int], int | None] = lambda _: None,
    followed: Followed | None = None,
) -> Iterator[PlayedChunk]:
    """Play a chunk in parts that end at each stop; an error leaves the runs in the middle of it."""
    X, y, codes, targets, weights = state.preparation.prepare(chunk, state.runs)
    if followed is not None:
        followed.add(X, targets, weights)
    state.add_checksum(chunk.X, y if codes is None else codes, weights)
    runs, m = list(itertools.chain(*state.runs)), len(chunk)
    room = state.features
    if X.shape[1] > room:  # new names in this chunk
        for run in runs:
            run.resize(max(X.shape[1], 2 * room))
    z, gone = np.empty((m, len(runs))), ~labelled(targets_of(chunk))
    names, half = FeatureNames(state), None if state.tracker is None else np.empty(m)
    rejects = chunk.rejects if state.passes_done == 0 else []
    state.rejected += len(rejects)
    a = 0
    while True:
        stop = next_stop(state.rows_done)
        b = m if stop is None else min(m, a + stop - state.rows_done)
        weight = None if weights is None else weights[a:b]
        rows = X if b - a == m else X[a:b]  # scipy would copy them
        if b > a:
            try:
                more = {} if half is None else {"half": half[a:b]}
                play_rows(runs, rows, [each[a:b] for each in targets], weight, z[a:b], names, idle=True, **more)
            except RowError as error:
                raise ValueError(f"{chunk.place(a + error.row)}{error.message}") from None
        code = None if codes is None else codes[a:b]
        add_played(state, z[a:b], y[a:b], code, weight)
        state.rows_done, state.pass_rows = state.rows_done + b - a, state.pass_rows + b - a
        if b == m:
            state.position, state.bytes_read = chunk.position, chunk.read
        widths = None if half is None else half[a:b]
        yield PlayedChunk(z[a:b], y[a:b], code, weight, rejects, b == m, gone[a:b], widths, rows)
        a, rejects = b, []
        if a == m:
            return


def add_played(
    state: TrainingState, z: np.ndarray, y: np.ndarray, codes: np.ndarray | None, weight: np.ndarray | None
) -> None:
    """Update the mistakes and the sums for the best constant, over rows of positive weight."""
    if weight is not None and not weight.all():
        played = weight > 0.0
        z, y, weight, codes = z[played], y[played], weight[played], None if codes is None else codes[played]
    c = np.ones(len(y)) if weight is None else weight
    if state.passes_done == 0:
        if codes is None:
            add_numbers(state.order, np.asarray(y, float))
        else:
            add_labels(state.order, codes)
    if codes is None:
        first = opening_rows(state, len(y))
        spread(np.ascontiguousarray(y)[first:, None], c[first:], state.constant[:, None])
        return
    np.add.at(state.constant, codes, c)  # one after another, so that the sizes of chunks change nothing
    each = len(state.runs[0])
    for k in range(len(state.runs)):
        state.mistakes[k] += count_mistakes(z[:, k * each : (k + 1) * each], codes)


def opening_rows(state: TrainingState, count: int) -> int:
    """1 if the first of `count` rows with positive weight only initialised the first learner, otherwise 0."""
    run = state.runs[0][0]
    return int(run.rounds == count > run.facts.rounds)
