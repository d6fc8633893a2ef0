"""Two threads besides the event loop, one for learning and one for predicting; waiting requests are batched."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .live import NOTHING_YET
from .requests import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .requests import Part
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
        while True:
            first = self.jobs.get()
            if first is None:
                return
            group, last = self.gather(first)
            try:
                found = self.answer([job.what for job in group])
            except BaseException as error:  # a bug, which must neither end the thread nor leave a client waiting
                found = [error] * len(group)
            waiting: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
            for job, each in zip(group, found, strict=True):
                waiting.setdefault(job.waiter.get_loop(), []).append((job.waiter, each))
            for loop, answers in waiting.items():
                with contextlib.suppress(RuntimeError):  # the loop has ended, and no client waits any more
                    loop.call_soon_threadsafe(deliver, answers)
            if last:
                return

    def gather(self, first: Job) -> tuple[list[Job], bool]:
        """Collect jobs to process together; returns them, and whether they are the last."""
        group = [first]
        while not self.jobs.empty():
            job = self.jobs.get()
            if job is None:
                return group, True
            group.append(job)
        return group, False

    def answer(self, whats: Sequence[Any]) -> list[Any]:
        """The result of each job, or an exception."""
        raise NotImplementedError


def deliver(found: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    """Set the results or exceptions of the futures."""
    for waiter, each in found:
        if waiter.done():  # it was cancelled
            continue
        if isinstance(each, BaseException):
            waiter.set_exception(each)
        else:
            waiter.set_result(each)


class Learning(Worker):
    """The only thread that writes: it commits waiting requests, and calls functions between commits."""

    def __init__(self, service: Service) -> None:
        super().__init__("learn", service.limits.queue)
        self.service = service
        self.usual = 1  # requests that lately came together

    def gather(self, first: Job) -> tuple[list[Job], bool]:
        """Collect requests up to a size; waits briefly for clients just answered, so that one sync serves them all."""
        group, size, pause = [first], body_size(first), max(PATIENCE[0], self.service.sync_seconds / 4)
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

    def answer(self, whats: Sequence[Part | Callable[[], Any]]) -> list[Any]:
        """Commit parts together, and call functions in between."""
        out: list[Any] = []
        group: list[Part] = []

        def flush() -> None:
            if group:
                out.extend(self.service.commit(group))
                group.clear()

        for what in whats:
            if callable(what):
                flush()
                try:
                    out.append(what())
                except ValueError as error:
                    out.append(error)
            else:
                group.append(what)
        flush()
        if self.service.unpublished and self.jobs.empty():
            self.service.publish(now=True)
        return out


def body_size(job: Job) -> int:
    """The number of bytes in the body of a job."""
    return len(getattr(job.what, "body", b""))


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
