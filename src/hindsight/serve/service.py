"""The durable core: requests are checked, learnt, committed, then answered; a restart learns the commits again."""

from __future__ import annotations

import contextlib
import errno
import json
import sqlite3
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError
from ..online.run import assumption_warnings
from ..training.plan import Plan, describe_learner
from .certificate import begins_anywhere, best_of_sums
from .convert import convert
from .history import ServiceHistory
from .live import LiveModel, Reader
from .replay import Replay
from .requests import Limits, Part, ServiceError
from .store import ADVICE, Store, StoreError, packed_json, read_settings, unpacked_json, write_settings
from .table_rows import TableRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..training.model import Model
    from .live import PlayedRequest

SNAPSHOT_ROWS, SNAPSHOT_BYTES = 500_000, 256 << 20  # learnt or committed since the last snapshot, when one is due
BEST_WIDTH = 130  # coordinates up to which every summary computes the best in hindsight
SHOWN_WIDTH = 100_000  # features up to which the largest weights are looked for
KEPT_ROWS = 20  # whose predictions are remembered with a key


class Service:
    """A learner with a folder.

    Parameters
    ----------
    path : str
        The folder, which holds all data of the service.
    plan : Plan or None, default None
        What to learn; None takes the settings of the folder.
    model : Model or None, default None
        A model to continue from, for a new folder.
    limits : Limits, default `Limits()`
        The limits on requests and rows.
    keep_log : bool or None, default None
        Whether to keep old requests that a snapshot covers; None takes the setting of the folder, initially False.
    notify : callable, default does nothing
        Called with a line of text about what was found at the start.

    Attributes
    ----------
    sequence : int
        The number of rows learnt.
    reader : Reader or None
        The current predictor; None before the first row.

    Raises
    ------
    StoreError
        If the database is damaged.
    OptionError
        If the folder belongs to another plan.
    SourceError
        If another process uses the folder.
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
        convert(path, notify)
        self.store = Store(path, write=True)
        try:
            self._open(plan, model, keep_log)
        except BaseException as error:
            self.store.close()
            if isinstance(error, sqlite3.Error):
                raise self.store.damaged(error) from None
            raise

    def _open(self, plan: Plan | None, model: Model | None, keep_log: bool | None) -> None:
        self.sequence = self.commit_done = 0
        self.history = ServiceHistory()
        self.refused_rows = 0
        self.reader: Reader | None = None
        self.unpublished, self.publish_cost, self.published_at = False, 0.0, 0.0
        self.broken: str | None = None
        self.live = self._begin(plan, model)
        written = read_settings(self.store.path) or {}
        self.keep_log = bool(written.get("keep_log", False)) if keep_log is None else keep_log
        began = model is not None or bool(written.get("model", False))
        wanted = {"plan": self.live.plan.settings(), "keep_log": self.keep_log, "model": began}
        if written != wanted:
            write_settings(self.store.path, wanted)
        self._restore()
        self.began = self.live.state is not None and bool(self.live.state.before)
        before, first = self.commit_done, self.store.first_commit()
        if first is not None and first > before + 1:
            raise StoreError(
                f"{self.store.file}: commits {before + 1:,} to {first - 1:,} are in no snapshot that can be read, and "
                f"their requests are gone: {ADVICE}"
            )
        again = Replay(self.store, self.live, before, self.sequence)
        for commit, played in again.commits():
            self.history.add(self.live.settled()[0], commit.first, played, commit.time)
        self.commit_done, self.sequence = again.commit, again.row
        self.live.limit(self.limits)  # from now on: committed requests were within the limits of their time
        self.store.remove_bodies()
        self.store.note_newest(self.commit_done)
        self.waiting = self.store.waiting()
        self.replayed = self.commit_done - before
        self.snapshot_rows, self.snapshot_bytes = self.sequence, 0
        if model is not None:
            self.snapshot()
        elif self.replayed:
            self._snapshot_or_say()
        self.publish()

    def _begin(self, plan: Plan | None, model: Model | None) -> LiveModel:
        """The model before anything is restored."""
        settings = read_settings(self.store.path)
        if model is not None:
            if settings is not None:
                raise OptionError("from", f"{self.store.path} has a model already: leave it out to go on with that")
            return LiveModel.after(model)
        if settings is None:
            if plan is None or plan.target is None:
                raise OptionError("target", f"names the column to predict: {self.store.path} is new (or --from MODEL)")
            return LiveModel(plan)
        kept = Plan.from_settings(settings.get("plan", {}), None)
        if plan is not None and plan.settings() != kept.settings():
            now, was = plan.settings(), kept.settings()
            name = next(name for name in now if now[name] != was.get(name))
            raise OptionError(
                name, f"is {now[name]!r:.100}, but {self.store.path} was begun with {was.get(name)!r:.100}"
            )
        return LiveModel(kept)

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> None:
        """Write a snapshot and delete the requests that it covers."""
        state = {"model": self.live.to_snapshot(), "history": packed_json(self.history.to_plain())}
        self.store.add_snapshot(self.commit_done, self.sequence, state, self.keep_log)
        self.snapshot_rows, self.snapshot_bytes = self.sequence, self.store.bytes

    def _snapshot_or_say(self) -> None:
        """Try to write a snapshot; a failure, such as a full disk, loses nothing because all requests are stored."""
        try:
            self.snapshot()
        except (ValueError, OSError, sqlite3.Error) as error:
            self.notify(f"no snapshot could be written: {error}")
            self.snapshot_rows, self.snapshot_bytes = self.sequence, self.store.bytes

    def _restore(self) -> None:
        """Restore the newest readable snapshot."""
        for commit, sequence in reversed(self.store.snapshots()):
            try:
                state = self.store.snapshot(commit)
                history = ServiceHistory.from_plain(unpacked_json(state["history"]))
                self.live.restore(state["model"])
            except (ValueError, KeyError, TypeError) as error:
                self.notify(f"a snapshot is left out: {error}")
                continue
            self.commit_done, self.sequence, self.history = commit, sequence, history
            return

    def close(self) -> None:
        """Write a snapshot if anything is new, and close the folder."""
        with contextlib.suppress(sqlite3.Error):
            if not self.broken and self.commit_done > max((commit for commit, _ in self.store.snapshots()), default=0):
                self._snapshot_or_say()
        self.store.close()

    # ------------------------------------------------------------ commits

    def commit(self, parts: Sequence[Part]) -> list[dict[str, Any] | Exception]:
        """Learn from requests, or keep their rows, in one transaction; returns the answers once it is durable.

        Requests are decoded, checked and played in a step that can be undone, and then committed. They are played
        together, or one by one if one of them is refused.

        Parameters
        ----------
        parts : sequence of Part
            Requests to be learnt, kept, or (``do="outcome"``) learnt with rows that were kept.

        Returns
        -------
        list of dict or Exception
            For each request the answer, or the error if it is refused, in which case none of its rows is learnt.
        """
        if self.broken:
            return [ServiceError(503, self.broken)] * len(parts)
        self.steps: list[tuple[int, list[PlayedRequest], float]] = []  # first row, results and time of each
        self.undo = contextlib.ExitStack()
        before = self.sequence, self.commit_done, self.waiting, self.refused_rows
        try:
            with self.store.transaction():
                out = self._take(parts)
                reader = self._reader() if self.steps else None
        except BaseException as error:
            self._take_back(error)
            self.sequence, self.commit_done, self.waiting, self.refused_rows = before
            if not isinstance(error, (sqlite3.Error, OSError)):
                raise
            return [self._unwritten(error)] * len(parts)
        if not self.steps:
            return out
        for step in self.steps:
            self.history.add(self.live.settled()[0], *step)
        self.store.note_newest(self.commit_done)
        self.reader = reader or self.reader
        if (
            self.sequence - self.snapshot_rows >= SNAPSHOT_ROWS
            or self.store.bytes - self.snapshot_bytes >= SNAPSHOT_BYTES
        ):
            self._snapshot_or_say()
        return out

    def _take_back(self, error: BaseException) -> None:
        """Undo in memory what a transaction learnt that was rolled back."""
        if self.store.db.in_transaction:  # it could not be
            self.broken = f"learning stopped: {error}: start the service again"
        try:
            self.undo.close()
        except BaseException as second:
            self.broken = f"learning stopped: {error or second}: start the service again"
            raise

    def _unwritten(self, error: Exception) -> ServiceError:
        """The error for a commit that could not be written."""
        code = getattr(error, "sqlite_errorcode", None)
        if code in (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_CORRUPT):
            # What is on the disk is then unknown.
            self.broken = f"{self.store.file}: could not be written ({error}): start the service again"
            return ServiceError(503, self.broken)
        full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_TRUNCATE)
        if full or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return ServiceError(507, "the disk is full: nothing of this request was taken; predictions go on")
        return ServiceError(503, f"{self.store.file} cannot be written: {error}; nothing of this request was taken")

    def _take(self, parts: Sequence[Part]) -> list[dict[str, Any] | Exception]:
        """Play and store requests: together, or one by one if one of them is refused."""
        keys = [part.key for part in parts if part.key is not None]
        if len(parts) > 1 and len(set(keys)) == len(keys):  # of two with one key, the first must be answered
            found = self._step(parts)
            if not isinstance(found, Exception):
                return found
        out: list[dict[str, Any] | Exception] = []
        for part in parts:
            found = self._step([part])
            if isinstance(found, Exception):
                self.refused_rows += part.rows
            out += [found] if isinstance(found, Exception) else found
        return out

    def _step(self, parts: Sequence[Part]) -> list[dict[str, Any] | Exception] | Exception:
        """Check requests, play them together and store them; returns the answers, or an error if nothing is changed."""
        out: list[Any] = []
        ready: list[tuple[int, Part]] = []
        now, first, waiting = self.clock(), self.sequence + 1, self.waiting
        try:
            with self.store.all_or_nothing(), contextlib.ExitStack() as undo:
                at = first
                for k, part in enumerate(parts):
                    found: dict[str, Any] | Part | ValueError
                    try:
                        found = self._admit(part, at, now)
                    except ValueError as error:
                        found = error
                    if isinstance(found, Part):
                        ready.append((k, found))
                        at += found.rows
                    out.append(found)
                if ready:
                    learnt = [part for _, part in ready]
                    played, take_back = self.live.learn(learnt)
                    undo.callback(take_back)
                    self.store.add_requests(self.commit_done + 1, now, first, learnt)
                    at = first
                    for (k, part), each in zip(ready, played, strict=True):
                        out[k] = self._answer(part, at, each)
                        at += part.rows
                    self.steps.append((first, played, now))
                self.undo.push(undo.pop_all())
        except (sqlite3.Error, OSError):
            raise
        except Exception as error:
            self.waiting = waiting
            return error
        if ready:
            self.sequence, self.commit_done = at - 1, self.commit_done + 1
        return out

    def _admit(self, part: Part, at: int, now: float) -> dict[str, Any] | Part:
        """Check a request; returns its answer if it was processed before or keeps rows, otherwise what to learn.

        Nothing is stored before all was checked.
        """
        if part.key is not None and (known := self.store.answer_to(part.key)) is not None:
            if known[0] != part.digest:
                raise ServiceError(422, "this Idempotency-Key was used for another request")
            return known[1] | {"repeated": True}
        joined: list[int] = []
        if part.do == "outcome":
            part, joined = self._join(part, now)
        part.parse(self.limits)
        if part.do == "keep":
            return self._keep(part, at - 1, now)
        if part.source is not None:
            done = self.store.place_in(part.source)
            if part.start + part.rows <= (done or 0):
                return {"rows": 0, "position": done, "repeated": True}
            if part.start != (done or 0):
                raise ServiceError(409, f"{done or 0:,} rows of {part.source!r} were taken: send those from there on")
            if done is None and len(self.store.places()) >= self.limits.sources:
                raise ServiceError(429, f"{self.limits.sources:,} streams are known already")
            self.store.add_place(part.source, part.start, part.rows, at)
        for row, number in enumerate(joined, at):
            self.store.learnt(number, row)
        self.waiting -= len(joined)
        return part

    def _keep(self, part: Part, row: int, now: float) -> dict[str, Any]:
        """Keep rows until their outcome is known, if they are valid."""
        state, rows = self.live.settled()
        contents = part.contents()
        outcome = {self.live.plan.target: 0.0 if state.labels is None else state.labels[0]}
        trial = [json.loads(content) | outcome for content in contents]
        mark: Any = rows.mark()
        try:
            rows.encode([Part("learn", "json", b"", len(trial), parsed=trial)])
        finally:
            rows.undo(mark)
        self.expire(now)
        if self.waiting + part.rows > self.limits.pending:
            raise ServiceError(429, f"{self.limits.pending:,} rows wait for their outcome already: no more are kept")
        answer = {"ids": self.store.keep(contents, now, row)}
        self.waiting += part.rows
        self._remember(part, row, answer)
        return answer

    def _join(self, part: Part, now: float) -> tuple[Part, list[int]]:
        """Join kept rows with their outcomes, to be learnt; returns their ids as well."""
        self.expire(now)
        lines: dict[int, str] = {}
        for number, target in part.parsed:
            row = self.store.kept(number) if 0 < number < 1 << 63 and number not in lines else None
            if row is None:
                known = self.store.was_kept(number)
                why = "was learnt already, or has expired" if known else "was never given out"
                raise ServiceError(410 if known else 404, f"id {number!r:.40} {why}")
            lines[number] = json.dumps(json.loads(row) | {self.live.plan.target: target})
        body = "\n".join(lines.values()).encode()
        return replace(part, do="learn", form="lines", body=body, parsed=None), list(lines)

    def expire(self, now: float) -> None:
        """Forget kept rows whose outcome is overdue."""
        self.waiting -= self.store.expire(now - self.limits.expire)

    def _answer(self, part: Part, first: int, played: PlayedRequest) -> dict[str, Any]:
        """The answer to a request that was learnt."""
        of = self.live.settled()[0].constant_quantity
        answer: dict[str, Any] = {"sequence": first, "rows": part.rows, "loss": played.loss, "of": of}
        if not part.quiet:
            answer |= played.answers()
        self._remember(part, first + part.rows - 1, answer)
        return answer

    def _remember(self, part: Part, row: int, answer: dict[str, Any]) -> None:
        """Remember the answer to a request with a key."""
        if part.key is not None:
            short = answer if part.rows <= KEPT_ROWS else without_predictions(answer)
            self.store.add_key(part.key, part.digest, row, short, self.limits.keys)

    def warm_up(self) -> None:
        """Compile, or load from the cache, all that the first requests need; may take a minute."""
        state, plan = self.live.state, self.live.plan
        if isinstance(self.live.rows, TableRows):
            return
        kinds: list[list[Any]] = [[0.5, 1.5, 2.5], ["0", "1", "0"]]
        if state is not None:
            kinds = [kinds[0]] if state.labels is None else [[*state.labels, state.labels[0]]]
        fixed = {name: 1.0 for name in [plan.reading.get("weight")] if name}
        for targets in kinds:
            live = LiveModel(plan)
            full = [{"a": 0.5, "b": 1.0 + k, plan.target: y} | fixed for k, y in enumerate(targets)]
            for rows in (full, full[:1], [{"a": 0.5, plan.target: targets[0]} | fixed]):
                with contextlib.suppress(ValueError):  # targets that this learner does not accept
                    live.learn([Part("learn", "json", b"", len(rows), parsed=rows)])
                    live.reader(0).margins([{"a": 0.5, "b": 1.0}, {"b": 1.0}])

    # ------------------------------------------------------------ readers

    def publish(self, now: bool = False) -> None:
        """Publish a reader of what was learnt."""
        self.reader = self._reader(now) or self.reader

    def _reader(self, now: bool = False) -> Reader | None:
        """A reader of the current model; None if there is none, or if copying a large model recently took long."""
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
        """The progress of learning in plain values, for the page and the metrics."""
        state = self.live.state
        out: dict[str, Any] = {
            "sequence": self.sequence, "commit": self.commit_done, "pending": self.waiting,
            "features": self.live.features, "refused": self.refused_rows, "sync": self.store.sync_seconds,
            "log_bytes": self.store.bytes, "broken": self.broken,
        }  # fmt: skip
        if state is None:
            return out | {"settled": False}
        loss, weight = state.compared_losses()[0], state.weight
        out |= {
            "settled": True,
            "of": state.constant_quantity,
            "loss": loss,
            "mean_loss": loss / weight,
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
        if state.coverage is not None:
            out |= {"coverage": state.coverage.to_dict(), "ranges": list(self.history.ranges)}
        return out

    def best(self) -> float | None:
        """The loss of the best fixed linear predictor in hindsight on all rows; None if no sums give it accurately."""
        sums = self.live.sums
        if sums is None or len(sums) > BEST_WIDTH:
            return None
        best, gap = best_of_sums(sums, self.sequence)
        return best if gap <= 1e-3 * self.live.settled()[0].compared_losses()[0] else None

    def top_weights(self, most: int = 12) -> list[dict[str, Any]]:
        """The largest weights, each with its feature and, with several labels, the label."""
        state, rows = self.live.settled()
        if rows.width > SHOWN_WIDTH:
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
        state, _ = self.live.settled()
        named = [None] if len(state.runs[0]) == 1 else list(state.labels or ())
        each = [asdict(run.facts) for run in state.runs[0]]
        return {"sequence": self.sequence, "runs": [{"label": k} | v for k, v in zip(named, each, strict=True)]}

    def about(self) -> dict[str, Any]:
        """A description of the model in plain values."""
        state = self.live.state
        return {
            "target": self.live.plan.target, "sequence": self.sequence, "commit": self.commit_done,
            "pending": self.waiting, "learner": describe_learner(self.live.plan.make()[0]),
            "labels": None if state is None else state.labels, "features": self.live.features,
            "limits": asdict(self.limits), "settled": state is not None, "sources": self.store.places(),
        }  # fmt: skip


def drift_of(learner: Any) -> dict[str, Any]:
    """How the learner adapts to changing streams, and which bound holds."""
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


LONG = ("predictions", "probabilities", "low", "high", "sets")


def without_predictions(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without its long parts."""
    return {name: value for name, value in answer.items() if name not in LONG}
