"""The durable core: commits go to the log, then to the model; a restart is the newest snapshot and the log after it."""

from __future__ import annotations

import errno
import json
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError, SourceError
from ..online.run import assumption_warnings
from ..training.plan import Plan, describe_learner
from .folder import Folder
from .history import History
from .live import LiveModel, Reader
from .log import Frame, Log, LogError, read_log, segments
from .parts import Limits, Part, as_rows, pack, unpack
from .rivals import begins_anywhere, best_of_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..training.model import Model
    from .live import Played

SNAPSHOT_ROWS, SNAPSHOT_BYTES = 500_000, 256 << 20  # learnt or logged since the last snapshot, when the next is due
BEST_WIDTH = 130  # coordinates up to which the best in hindsight is sought whenever someone looks
SHOWN_WIDTH = 100_000  # features up to which the largest weights are looked for
KEPT_ANSWER = 1024  # bytes of an answer that is remembered as it was; of a longer one the predictions are left out


class ServiceError(ValueError):
    """A request that is refused: the status of HTTP, and one line."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Kept:
    """A row that waits for its outcome: when it came, and what it is, as JSON."""

    time: float
    row: str


class Service:
    """A learner with a folder.

    Parameters
    ----------
    path : str
        The folder; all that there is stays in it.
    plan : Plan or None, default None
        What to learn; None takes what the folder says.
    model : Model or None, default None
        A model to go on with, for a folder that is new.
    limits : Limits, default `Limits()`
        The most that it takes.
    keep_log : bool or None, default None
        Whether old segments of the log stay when a snapshot covers them; None is as the folder says, at first False.
    notify : callable, default does nothing
        Called with a line of text on what was found at the start.

    Attributes
    ----------
    sequence : int
        Rows learnt, the number of the newest.
    reader : Reader or None
        What predicts; None before the first row.

    Raises
    ------
    LogError
        If the log is damaged before its end.
    OptionError
        If the folder is one of another plan.
    SourceError
        If another process has the folder.
    """

    def __init__(
        self,
        path: str,
        plan: Plan | None = None,
        model: Model | None = None,
        limits: Limits | None = None,
        keep_log: bool | None = None,
        notify: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.limits, self.notify, self.clock = limits or Limits(), notify, clock
        self.folder = Folder(path)
        try:
            self._open(plan, model, keep_log)
        except BaseException:
            self.folder.close()
            raise

    def _open(self, plan: Plan | None, model: Model | None, keep_log: bool | None) -> None:
        self.sequence = self.commit_done = self.next_id = 0
        self.pending: OrderedDict[int, Kept] = OrderedDict()
        self.keys: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()
        self.sources: dict[str, int] = {}  # of each stream the rows that were taken
        self.history = History()
        self.refused_rows = 0
        self.reader: Reader | None = None
        self.unpublished, self.publish_cost, self.published_at = False, 0.0, 0.0
        self.sync_seconds = 0.0
        self.broken: str | None = None
        self.covered: list[int] = []  # the newest commit of each snapshot that is kept
        self.pool = ThreadPoolExecutor(1, "sync")
        snapshots = self.folder.read_snapshots()
        self.live = self._begin(plan, model)
        told = self.folder.settings() or {}
        self.keep_log = bool(told.get("keep_log", False)) if keep_log is None else keep_log
        wanted = {"plan": self.folder_plan.settings(), "keep_log": self.keep_log}
        if told != wanted:
            self.folder.write_settings(wanted)
        if snapshots:
            self._restore(snapshots[-1][1])
            self.covered = [int(state["commit"]) for _, state in snapshots]
        self.began = self.live.state is not None and bool(self.live.state.before)
        before = self.commit_done
        self._check_first(before)
        for frame in read_log(self.folder.log, before):
            self._replay(frame)
        self.log = Log(self.folder.log, self.commit_done)
        if self.log.cut:
            self.notify(self.log.cut)
        self.replayed = self.commit_done - before
        self.snapshot_rows, self.snapshot_bytes = self.sequence, 0
        if model is not None and not snapshots:
            self.snapshot()
        elif self.replayed:
            self._snapshot_or_say()
        self.publish()

    def _begin(self, plan: Plan | None, model: Model | None) -> LiveModel:
        """The model before anything was restored."""
        settings = self.folder.settings()
        if model is not None:
            if settings is not None:
                raise OptionError("from", f"{self.folder.path} has a model already: leave it out to go on with that")
            live = LiveModel.after(model, self.limits)
            self.folder_plan = live.plan
            return live
        if settings is None:
            if plan is None or plan.target is None:
                raise OptionError("target", f"names the column to predict: {self.folder.path} is new (or --from MODEL)")
            self.folder_plan = plan
            return LiveModel(plan, self.limits)
        kept = self.folder_plan = Plan.from_settings(settings.get("plan", {}), None)
        if plan is not None and plan.settings() != kept.settings():
            now, was = plan.settings(), kept.settings()
            name = next(name for name in now if now[name] != was.get(name))
            raise OptionError(
                name, f"is {now[name]!r:.100}, but {self.folder.path} was begun with {was.get(name)!r:.100}"
            )
        return LiveModel(kept, self.limits)

    def _check_first(self, before: int) -> None:
        """Refuse a log that begins after what the snapshot covers."""
        found = segments(self.folder.log)
        if found and found[0][0] > before + 1:
            raise LogError(
                f"{found[0][1]}: commits {before + 1} to {found[0][0] - 1} are in no snapshot and not in the log"
            )

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> None:
        """Write a snapshot, and let go of what it covers of the log."""
        state = {
            "commit": self.commit_done,
            "sequence": self.sequence,
            "next_id": self.next_id,
            "refused_rows": self.refused_rows,
            "sources": packed(self.sources),
            "model": self.live.to_snapshot(),
            "pending": packed([[k, kept.time, kept.row] for k, kept in self.pending.items()]),
            "keys": packed([[key, *told] for key, told in self.keys.items()]),
            "history": packed(self.history.to_plain()),
        }
        self.folder.write_snapshot(state, 2)
        self.covered = [*self.covered, self.commit_done][-2:]
        self.snapshot_rows, self.snapshot_bytes = self.sequence, self.log.bytes
        self.log.close()  # the next commit begins a segment
        if not self.keep_log:
            self.log.drop(self.covered[0])

    def _restore(self, state: dict[str, Any]) -> None:
        self.commit_done, self.sequence = int(state["commit"]), int(state["sequence"])
        self.next_id, self.refused_rows = int(state["next_id"]), int(state["refused_rows"])
        self.sources = dict(unpacked(state["sources"]))
        self.live.restore(state["model"])
        self.pending.update((k, Kept(at, row)) for k, at, row in unpacked(state["pending"]))
        self.keys.update((key, (digest, answer)) for key, digest, answer in unpacked(state["keys"]))
        self.history = History.from_plain(unpacked(state["history"]))

    def close(self) -> None:
        """Write a snapshot of what is new, and let go of the folder."""
        if self.commit_done > (self.covered[-1] if self.covered else 0) and not self.broken:
            self._snapshot_or_say()
        self.log.close()
        self.pool.shutdown()
        self.folder.close()

    # ------------------------------------------------------------ commits

    def commit(self, parts: Sequence[Part]) -> list[dict[str, Any] | ValueError]:
        """Write requests to the log in one commit, learn from them, and answer each.

        Parameters
        ----------
        parts : sequence of Part
            To be learnt, kept, or (``do="outcome"``) learnt with rows that were kept.

        Returns
        -------
        list of dict or ValueError
            For each the answer, or why it is refused: then nothing of it was taken.
        """
        out: list[dict[str, Any] | ValueError | None] = [None] * len(parts)
        same: dict[int, int] = {}  # repetitions within the group
        taken: dict[str, int] = {}
        outcomes: set[int] = set()
        sources = dict(self.sources)
        ready: list[int] = []
        for k, part in enumerate(parts):
            try:
                if self.broken:
                    raise ServiceError(503, self.broken)
                if part.key is not None and part.key in taken:
                    same[k] = taken[part.key]
                    continue
                told = self._repeated(part)
                if told is not None:
                    out[k] = told
                    continue
                if part.source is not None:
                    told = self._placed(part, sources)
                    if told is not None:
                        out[k] = told
                        continue
                if part.do == "outcome":
                    self._join(part, outcomes)
                elif part.do == "keep":
                    self._number(part)
                ready.append(k)
                if part.key is not None:
                    taken[part.key] = k
            except ValueError as error:
                out[k] = error
        try:
            self._commit(parts, ready, out)
        except BaseException as error:  # a bug: what is in memory may not be what is in the log
            self.broken = f"learning stopped at {type(error).__name__}, a bug of hindsight: start the service again"
            raise
        for k, first in same.items():
            other = parts[first].digest == parts[k].digest
            out[k] = out[first] if other else ServiceError(422, KEY_OF_OTHER)
        return [each if each is not None else ServiceError(500, "no answer was made") for each in out]

    def _commit(self, parts: Sequence[Part], ready: list[int], out: list[Any]) -> None:
        fresh = self.live.state is None
        if fresh:
            self._settle(parts, ready, out)
        mark = None if self.live.rows is None else self.live.rows.mark()
        learnt = [k for k in ready if parts[k].do != "keep" and out[k] is None]
        pieces, refused = self.live.encode([parts[k] for k in learnt]) if learnt else ([], {})
        for j, error in refused.items():
            out[learnt[j]] = error
            self.refused_rows += parts[learnt[j]].rows
        good = [k for k in ready if out[k] is None]
        if not good:
            return
        chosen = [parts[k] for k in good]
        head = {"first": self.sequence + 1, "time": self.clock()}
        try:
            self.log.write(*pack(head, chosen))
        except (OSError, LogError) as error:
            self._take_back(mark, fresh, parts, good)
            for k in good:
                out[k] = unwritten(error)
            return
        began = time.perf_counter()
        synced: Future[None] = self.pool.submit(self.log.sync)
        places = {j: good.index(k) for j, k in enumerate(learnt) if k in good}
        played = {places[j]: each for j, each in self.live.play(pieces).items()}
        told = self._learnt(chosen, played, head)
        reader = self._reader()
        try:
            synced.result()
        except LogError as error:
            self.broken = str(error)
            for k in good:
                out[k] = ServiceError(503, self.broken)
            return
        self.sync_seconds = time.perf_counter() - began
        for k, answer in zip(good, told, strict=True):
            out[k] = answer
        self.reader = reader or self.reader
        if (
            self.sequence - self.snapshot_rows >= SNAPSHOT_ROWS
            or self.log.bytes - self.snapshot_bytes >= SNAPSHOT_BYTES
        ):
            self._snapshot_or_say()

    def _snapshot_or_say(self) -> None:
        """A snapshot that fails, as when the disk is full, loses nothing: the log has it all."""
        try:
            self.snapshot()
        except ValueError as error:
            self.notify(f"no snapshot could be written: {error}")
            self.snapshot_rows, self.snapshot_bytes = self.sequence, self.log.bytes

    def _settle(self, parts: Sequence[Part], ready: list[int], out: list[Any]) -> None:
        """Decide from the first request that can be learnt what is learnt."""
        for k in ready:
            if parts[k].do == "keep":
                out[k] = ServiceError(409, NOTHING_YET)
                continue
            if self.live.state is not None:
                continue
            try:
                self.live.settle(parts[k])
                _, refused = self.live.encode([parts[k]])
                if refused:
                    self.live.state = self.live.rows = None
                    out[k] = refused[0]
                else:
                    assert self.live.rows is not None
                    self.live.rows.undo((0, 0, 0, 0, 0))  # type: ignore[arg-type]
            except ValueError as error:
                out[k] = error

    def _take_back(self, mark: Any, fresh: bool, parts: Sequence[Part], good: list[int]) -> None:
        """Forget what was prepared for a commit that could not be written."""
        for k in good:
            if parts[k].do == "keep":
                self.next_id -= len(parts[k].ids)
        if fresh:
            self.live.state = self.live.rows = None
        elif self.live.rows is not None and mark is not None:
            self.live.rows.undo(mark)

    def _repeated(self, part: Part) -> dict[str, Any] | None:
        """The answer to a request that was answered before; None where it was not."""
        if part.key is None or part.key not in self.keys:
            return None
        digest, answer = self.keys[part.key]
        if digest != part.digest:
            raise ServiceError(422, KEY_OF_OTHER)
        return answer | {"repeated": True}

    def _placed(self, part: Part, sources: dict[str, int]) -> dict[str, Any] | None:
        """Check that rows of a stream are the next ones of it; the answer where they were taken before."""
        assert part.source is not None
        part.parse(self.limits)
        done = sources.get(part.source, 0)
        if part.start + part.rows <= done:
            return {"rows": 0, "position": done, "repeated": True}
        if part.start != done:
            raise ServiceError(409, f"{done:,} rows of {part.source!r} were taken: send those from there on")
        if part.source not in sources and len(sources) >= self.limits.sources:
            raise ServiceError(429, f"{self.limits.sources:,} streams are known already")
        sources[part.source] = done + part.rows
        return None

    def _join(self, part: Part, taken: set[int]) -> None:
        """Make rows to learn of kept ones and their outcomes."""
        self.expire()
        given = part.parsed
        ids, lines = [], []
        for number, target in given:
            if number in taken or number in ids or number not in self.pending:
                known = isinstance(number, int) and 0 < number <= self.next_id
                why = "was learnt already, or has expired" if known else "was never given out"
                raise ServiceError(410 if known else 404, f"id {number!r:.40} {why}")
            row = json.loads(self.pending[number].row)
            lines.append(json.dumps(row | {self.live.plan.target: target}))
            ids.append(number)
        taken.update(ids)
        part.do, part.form, part.body, part.ids, part.parsed = "learn", "lines", "\n".join(lines).encode(), ids, None
        part.rows = len(ids)

    def _number(self, part: Part) -> None:
        """Give kept rows their numbers."""
        self.expire()
        part.parse(self.limits)
        if len(self.pending) + part.rows > self.limits.pending:
            raise ServiceError(429, f"{self.limits.pending:,} rows wait for their outcome already: no more are kept")
        part.ids = list(range(self.next_id + 1, self.next_id + part.rows + 1))
        self.next_id += part.rows

    def expire(self) -> None:
        """Forget kept rows whose outcome has not come in time."""
        oldest = self.clock() - self.limits.expire
        while self.pending and next(iter(self.pending.values())).time < oldest:
            self.pending.popitem(last=False)

    def _learnt(self, parts: Sequence[Part], played: dict[int, Played], head: dict[str, Any]) -> list[Any]:
        """Take note of a commit that is in the log and was played; the answer to each part."""
        self.commit_done += 1
        out: list[dict[str, Any] | ValueError] = []
        for k, part in enumerate(parts):
            answer: dict[str, Any] | ValueError
            if part.do == "keep":
                for number, row in zip(part.ids, as_rows(part.parse(self.limits)), strict=True):
                    self.pending[number] = Kept(head["time"], json.dumps(row, ensure_ascii=False))
                answer = {"ids": part.ids}
            else:
                answer = self._answer(part, played[k])
            if part.key is not None and isinstance(answer, dict):
                short = answer if len(json.dumps(answer)) <= KEPT_ANSWER else without_predictions(answer)
                self.keys[part.key] = part.digest, short
                while len(self.keys) > self.limits.keys:
                    self.keys.popitem(last=False)
            out.append(answer)
        if self.live.state is not None:
            self.history.add(self.live.state, self.sequence, head["time"])
        return out

    def _answer(self, part: Part, played: Played) -> dict[str, Any] | ValueError:
        first = self.sequence + 1
        self.sequence += part.rows
        if part.source is not None:
            self.sources[part.source] = part.start + part.rows
        for number in part.ids:
            self.pending.pop(number, None)
        if played.fault is not None:
            self.refused_rows += part.rows
            return ServiceError(422, played.fault)
        state = self.live.state
        assert state is not None
        self.history.add_mistakes(state, first, played)
        told: dict[str, Any] = {"sequence": first, "rows": part.rows, "loss": played.loss}
        told["of"] = state.constant_quantity
        return told if part.quiet else told | played.answers()

    def _replay(self, frame: Frame) -> None:
        """Do a commit of the log again."""
        try:
            head, parts = unpack(frame.payload)
            played = self.live.learn_again(parts)
            for part in parts:
                if part.do == "keep":
                    self.next_id = max(self.next_id, *part.ids)
            self._learnt(parts, played, head)
        except (ValueError, KeyError, TypeError) as error:
            what = f"{frame.path}, byte {frame.begin}: commit {frame.commit} cannot be learnt again: {error}"
            raise LogError(what) from None

    # ------------------------------------------------------------ readers

    def publish(self, now: bool = False) -> None:
        """Let readers see what was learnt."""
        self.reader = self._reader(now) or self.reader

    def _reader(self, now: bool = False) -> Reader | None:
        """A reader of what was learnt; None where there is nothing, or copying a large model took long just before."""
        if self.live.state is None:
            return None
        began = time.perf_counter()
        if not now and began - self.published_at < 5.0 * self.publish_cost:
            self.unpublished = True
            return None
        reader = self.live.reader(self.sequence)
        self.published_at = time.perf_counter()
        self.publish_cost = self.published_at - began
        self.unpublished = False
        return reader

    def summary(self) -> dict[str, Any]:
        """Where learning stands, in plain values: what the page and the metrics show."""
        state = self.live.state
        told: dict[str, Any] = {
            "sequence": self.sequence, "commit": self.commit_done, "pending": len(self.pending),
            "features": self.live.features, "refused": self.refused_rows, "sync": self.sync_seconds,
            "log_bytes": self.log.bytes, "broken": self.broken,
        }  # fmt: skip
        if state is None:
            return told | {"settled": False}
        weight = state.weight
        return told | {
            "settled": True,
            "of": state.constant_quantity,
            "loss": state.compared_losses()[0],
            "mean_loss": state.compared_losses()[0] / weight,
            "constant": state.best_constant(),
            "mean_constant": state.mean_of_constant(),
            "weight": weight,
            "mistakes": state.mistakes[0] if state.labels is not None else None,
            "points": list(self.history.points),
            "newest_mistakes": list(self.history.mistakes)[::-1],
            "order": state.order_warning(),
            "warnings": [line for run in state.runs[0] for line in assumption_warnings(run)],
            "drift": drift_of(state.runs[0][0].learner),
            "top": self.top_weights(),
            "best": self.best(),
        }

    def best(self) -> float | None:
        """What the best fixed linear predictor in hindsight loses on all rows; None where no sums tell it closely."""
        gram, state = self.live.gram, self.live.state
        if gram is None or state is None or len(gram.sums) > BEST_WIDTH:
            return None
        best, gap = best_of_sums(gram, self.sequence)
        return best if gap <= 1e-3 * state.compared_losses()[0] else None

    def top_weights(self, most: int = 12) -> list[dict[str, Any]]:
        """The largest weights, each with its feature and, of several labels, the label."""
        state, rows = self.live.state, self.live.rows
        if state is None or rows is None or rows.width > SHOWN_WIDTH:
            return []
        names, out = rows.names, []
        for k, run in enumerate(state.runs[0]):
            weights = run.weights[: rows.width]
            label = state.labels[k] if state.labels is not None and len(state.runs[0]) > 1 else None
            for j in np.argsort(-np.abs(weights), kind="stable")[:most].tolist():
                out.append({"feature": names[j], "label": label, "weight": float(weights[j])})
        return sorted(out, key=lambda each: -abs(each["weight"]))[:most]

    def facts(self) -> dict[str, Any]:
        """The facts of each run."""
        state = self.live.state
        if state is None:
            raise ServiceError(409, NOTHING_YET)
        named = [None] if len(state.runs[0]) == 1 else list(state.labels or ())
        each = [asdict(run.facts) for run in state.runs[0]]
        return {"sequence": self.sequence, "runs": [{"label": k} | v for k, v in zip(named, each, strict=True)]}

    def about(self) -> dict[str, Any]:
        """The model in plain values."""
        state = self.live.state
        told: dict[str, Any] = {
            "target": self.live.plan.target, "sequence": self.sequence, "commit": self.commit_done,
            "pending": len(self.pending), "learner": next(describe_learner(each) for each in self.live.plan.make()),
            "labels": None if state is None else state.labels, "features": self.live.features,
            "limits": asdict(self.limits), "settled": state is not None, "sources": dict(self.sources),
        }  # fmt: skip
        return told


KEY_OF_OTHER = "this Idempotency-Key was used for another request"
NOTHING_YET = "nothing was learnt yet: send rows with their targets to /learn first"


def drift_of(learner: Any) -> dict[str, Any]:
    """What is done about streams that change, and what is claimed for it."""
    rate = float(getattr(learner, "drift", 0.0))
    if begins_anywhere(learner):
        claim = (
            "a constant rate: the bound holds for every stretch of rows by itself, against the best predictor for it"
        )
        return {"rate": 0.0, "claim": f"{claim}, at the price of the distance from the weights at its beginning"}
    if not rate:
        return {"rate": 0.0, "claim": "none: the bound is against one predictor for all rows"}
    return {
        "rate": rate,
        "claim": f"fixed share {rate:g}: the bound is against members of the panel that may change along the way, at a "
        "price for each change",
    }


def without_predictions(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without what is long in it."""
    return {name: value for name, value in answer.items() if name not in ("predictions", "probabilities")}


def unwritten(error: Exception) -> ServiceError:
    """Why a commit could not be written."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ServiceError(507, "the disk is full: nothing of this request was taken; predictions go on")
    what = error.strerror if isinstance(error, OSError) else str(error)
    return ServiceError(503, f"the log cannot be written: {what}; nothing of this request was taken")


def packed(value: Any) -> np.ndarray:
    """Plain values as an array of bytes: a snapshot takes long texts so."""
    return np.frombuffer(json.dumps(value, separators=(",", ":")).encode(), np.uint8).copy()


def unpacked(data: Any) -> Any:
    """What `packed` packed; a SourceError where it is none."""
    try:
        return json.loads(np.asarray(data, np.uint8).tobytes())
    except (TypeError, ValueError) as error:
        raise SourceError(f"a snapshot is damaged: {error}") from None
