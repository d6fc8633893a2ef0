"""Two threads besides the event loop, one for learning and one for predicting; waiting requests are batched."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .live import NOTHING_YET, result_of
from .requests import ServiceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .service import Service

GROUP_BYTES = 32 << 20  # of the bodies that are committed together
PATIENCE = 0.0005, 0.005  # seconds that a commit waits for the next request, and for all requests


@dataclass
class Job:
    """A task and the future of its result."""

    what: Any
    waiter: asyncio.Future[Any]


class Worker(threading.Thread):
    """A thread that processes jobs in groups.

    Parameters
    ----------
    name : str
        The name of the thread.
    most : int
        The maximum number of waiting jobs; further ones are refused.
    """

    def __init__(self, name: str, most: int) -> None:
        super().__init__(name=name, daemon=True)
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.most = most
        self.usual = 1  # jobs that lately came together

    async def do(self, what: Any) -> Any:
        """Submit a task, and return its result or raise its error."""
        if self.jobs.qsize() >= self.most:
            raise ServiceError(429, f"{self.most:,} requests wait already: try again soon")
        job = Job(what, asyncio.get_running_loop().create_future())
        self.jobs.put(job)
        return await job.waiter

    def stop(self) -> None:
        """End the thread after all jobs submitted so far."""
        self.jobs.put(None)
        self.join()

    def run(self) -> None:
        """Process jobs until `stop`."""
        last = False
        while not last and (first := self.jobs.get()) is not None:
            group, last = self.gather(first)
            try:
                found = self.answer([job.what for job in group])
            except BaseException as error:  # a bug, which must neither end the thread nor leave a client waiting
                found = [error] * len(group)
            with contextlib.suppress(RuntimeError):  # the loop has ended, and no client waits any more
                first.waiter.get_loop().call_soon_threadsafe(deliver, group, found)

    def gather(self, first: Job) -> tuple[list[Job], bool]:
        """Collect jobs to process together, up to a size; returns them, and whether they are the last."""
        group, size, pause = [first], body_size(first), self.patience()
        last = time.perf_counter() + PATIENCE[1]
        while size < GROUP_BYTES:
            left = min(pause, last - time.perf_counter())
            try:
                waits = len(group) < self.usual and left > 0.0
                job = self.jobs.get(timeout=left) if waits else self.jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return group, True
            group.append(job)
            size += body_size(job)
        self.usual = max(len(group), (3 * self.usual) // 4)
        return group, False

    def patience(self) -> float:
        """Seconds to wait for each further job, if more usually come together."""
        return 0.0

    def answer(self, whats: Sequence[Any]) -> list[Any]:
        """The result of each job, or an exception."""
        raise NotImplementedError


def body_size(job: Job) -> int:
    """The number of bytes in the body of a job."""
    return len(getattr(job.what, "body", b""))


def deliver(jobs: Sequence[Job], found: Sequence[Any]) -> None:
    """Set the result or the exception of each job."""
    for job, each in zip(jobs, found, strict=True):
        if job.waiter.done():  # it was cancelled
            continue
        if isinstance(each, BaseException):
            job.waiter.set_exception(each)
        else:
            job.waiter.set_result(each)


class Learning(Worker):
    """The only thread that writes: it commits waiting requests, and calls functions between commits."""

    def __init__(self, service: Service) -> None:
        super().__init__("learn", service.limits.queue)
        self.service = service

    def patience(self) -> float:
        """Long enough for clients just answered to ask again, so that one sync serves them all."""
        return max(PATIENCE[0], self.service.store.sync_seconds / 4)

    def answer(self, whats: Sequence[Any]) -> list[Any]:
        """Commit parts together, and call functions in between."""
        out: list[Any] = []
        for calls, together in itertools.groupby(whats, callable):
            group = list(together)
            out += map(result_of, group) if calls else self.service.commit(group)
        if self.service.unpublished and self.jobs.empty():
            self.service.publish(now=True)
        return out


class Predicting(Worker):
    """The thread that predicts with the newest reader."""

    def __init__(self, service: Service) -> None:
        super().__init__("predict", 4 * service.limits.queue)
        self.service = service

    def answer(self, whats: Sequence[Any]) -> list[Any]:
        """Predict the rows of several requests at once."""
        reader = self.service.reader
        if reader is None:
            return [ServiceError(409, NOTHING_YET)] * len(whats)
        out = []
        for z in reader.margins_of(whats):
            out.append(z if isinstance(z, ValueError) else reader.answers(z) | {"sequence": reader.sequence})
        return out
