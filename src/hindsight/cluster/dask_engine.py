"""Dask's distributed scheduler as an engine.

Blocks are futures, so Dask makes one again from its partition when its worker is lost. A round submits a fixed number
of tasks, which refer to the blocks and to nothing of an earlier round: the graph does not grow.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DisprovedError, SourceError
from .engine import ClusterError, Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MISSING = "a cluster needs dask.distributed: pip install hindsight-learn[dask]"
FITS, TOGETHER = 0.4, 0.1  # of a slot's memory: blocks that stay in it, and blocks that share it with others on disk
CHECKED = 5.0  # seconds between two looks at where the blocks are
PATIENCE = 60.0  # seconds without any worker after which a fit gives up


def distributed() -> Any:
    """Return the module `distributed`, or say in one line that it is missing."""
    try:
        import distributed
    except ImportError:
        raise ClusterError(MISSING) from None
    return distributed


@contextmanager
def start(workers: int, **options: Any) -> Iterator[Any]:
    """Start workers on this machine, one thread each, and stop them at the end.

    Parameters
    ----------
    workers : int
        How many processes.
    **options
        Further parameters of `distributed.LocalCluster`, as ``memory_limit="2GB"``.

    Yields
    ------
    distributed.Client
    """
    engine = distributed()
    import dask

    if not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers must be a whole number, at least 1; got {workers!r}")
    quiet: dict[str, Any] = {"silence_logs": logging.CRITICAL, "dashboard_address": "localhost:0"}
    quiet |= {"threads_per_worker": 1, "processes": True}
    one = {f"distributed.nanny.pre-spawn-environ.{name}": 1 for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    # A worker that is started again is given up after 15 s unless told otherwise: too few on a busy machine.
    patience = {"distributed.comm.timeouts.connect": "60s", "distributed.deploy.lost-worker-timeout": "10 minutes"}
    with (
        dask.config.set(one | patience),
        engine.LocalCluster(n_workers=workers, **quiet | options) as cluster,
        engine.Client(cluster) as client,
    ):
        yield client


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect to the scheduler at an address such as "tcp://host:8786"."""
    engine = distributed()
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)  # what is lost is said in one line
    try:
        try:
            client = engine.Client(address, timeout=10)
        except (OSError, ValueError) as error:
            raise ClusterError(f"there is no scheduler at {address}: {type(error).__name__}") from None
        with client:
            yield client
    finally:
        log.setLevel(before)


class Dask(Engine):
    """Work on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster; None takes the current client.
    retries : int, default 3
        How often a task that failed is tried again; rows that are bad are not.
    """

    def __init__(self, client: Any = None, retries: int = 3) -> None:
        super().__init__()
        engine = distributed()
        try:
            self.client = client or engine.get_client()
        except ValueError:
            raise ClusterError("there is no cluster: give client=distributed.Client(...)") from None
        self.retries = retries
        self.threads = self._threads()
        self.slots = sum(self.threads.values())
        self.memory, self.checked = self._memory(), -math.inf
        self.where: list[str] = []

    def _threads(self) -> dict[str, int]:
        """Return the number of threads of each worker, by its address."""
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except Exception as error:
            raise ClusterError(f"there is no worker after {PATIENCE:g} s: {type(error).__name__}") from None
        return dict(sorted(self.client.nthreads().items()))

    def slots_of_blocks(self) -> list[int]:
        """Return the slot of each block: those of one worker are shared out among its threads, in order."""
        self.where = self._where()
        first = dict(zip(self.threads, np.cumsum([0, *self.threads.values()]).tolist(), strict=False))
        count, seen, out = Counter(self.where), Counter[str](), []
        for address in self.where:
            out.append(first[address] + seen[address] * self.threads[address] // count[address])
            seen[address] += 1
        return out

    def _where(self) -> list[str]:
        """Return the address of the worker that holds each block; of one that is lost or moving, any."""
        held = self.client.who_has(self.blocks)
        self.threads = self._threads()
        self.slots, self.checked = sum(self.threads.values()), time.monotonic()
        each = [[a for a in held.get(block.key, ()) if a in self.threads] for block in self.blocks]
        anywhere = next(iter(self.threads))
        return [min(addresses, default=anywhere) for addresses in each]

    def refresh(self) -> None:
        if self.where and time.monotonic() - self.checked > CHECKED and self._where() != self.where:
            self.place(self.sizes)

    def _memory(self) -> float:
        """Return the memory of the slot that has least of it; infinity where none has a limit."""
        try:
            info = self.client.scheduler_info(n_workers=-1)
        except TypeError:  # earlier versions tell of all workers
            info = self.client.scheduler_info()
        limits = [each["memory_limit"] / each["nthreads"] for each in info["workers"].values() if each["memory_limit"]]
        return min(limits, default=math.inf)

    def capacity(self) -> tuple[float, float]:
        return FITS * self.memory * self.slots, FITS * self.memory / 2.0  # rows that are read are there twice at first

    def room(self, size: int) -> float:
        return math.inf if size <= FITS * self.memory else TOGETHER * self.memory

    def submit(self, work: Callable[..., Any], *args: Any, group: int) -> Any:
        # Not restricted to a worker: Dask works where the blocks are, and tasks that are bound to an address, however
        # loosely, wait for ever if all workers are gone at once and others come.
        return self.client.submit(attempt, work, *args, pure=False, retries=self.retries, key=self._key(work))

    def _key(self, work: Callable[..., Any]) -> str:
        """Return a name for a task: the dashboard groups tasks by its first part."""
        import uuid

        return f"{work.__name__.strip('_')}-{uuid.uuid4().hex}"

    def compute(self, delayed: Sequence[Any]) -> list[Any]:
        """Return futures of what Dask is to compute."""
        return list(self.client.compute(list(delayed)))

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        with self._one_line():
            self._wait(list(handles))
            return [opened(value) for value in self.client.gather(list(handles))]

    def _wait(self, handles: list[Any]) -> None:
        """Wait for work to be done, as long as there is a worker to do it."""
        from distributed import wait

        while True:
            try:
                wait(handles, timeout=PATIENCE)
                return
            except TimeoutError:
                if not self.client.nthreads():
                    raise ClusterError(f"there was no worker for {PATIENCE:g} s: start some, and resume") from None

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        """Say in one line what went wrong; of bad rows, those of the first partition that has some."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            died = getattr(error, "allowed_failures", None)
            times = "again and again" if died is None else f"{died + 1} times" if died else "once"
            raise ClusterError(
                f"workers died {times} at the same work, probably out of memory: give them more memory, more and "
                "smaller partitions (partition_rows), or have the rows read again for every pass (held=False)"
            ) from None
        except WorkerError as error:
            raise ClusterError(str(error)) from None
        except MemoryError:
            raise ClusterError(
                "a worker ran out of memory: give it more, or more and smaller partitions (partition_rows)"
            ) from None
        except (CancelledError, CommClosedError, TimeoutError, OSError) as error:
            raise ClusterError(
                f"the scheduler was lost ({type(error).__name__}): start it again, and resume from a checkpoint"
            ) from None


class WorkerError(Exception):
    """What went wrong on a worker, maybe not for good: it is tried again."""


class Refused:
    """A one-line error about data, as a value: Dask neither tries it again nor logs it."""

    def __init__(self, error: ValueError) -> None:
        kinds = (DisprovedError, SourceError, ValueError)
        self.kind = next(kind for kind in kinds if isinstance(error, kind))
        self.message = str(error)


def attempt(work: Callable[..., Any], *args: Any) -> Any:
    """Return work(*args), or what is wrong with the data; bad data that is passed on is the first among it."""
    refused = next(refusals(args), None)
    if refused is not None:
        return refused
    try:
        return work(*args)
    except ValueError as error:
        return Refused(error)
    except OSError as error:  # of a file or a disk, and not of the way to the scheduler
        raise WorkerError(f"{error.filename or 'a worker'}: {error.strerror or error}") from None


def refusals(args: Sequence[Any]) -> Iterator[Refused]:
    """Yield the refusals among arguments, in order."""
    for arg in args:
        if isinstance(arg, Refused):
            yield arg
        elif isinstance(arg, (list, tuple)):
            yield from (one for one in arg if isinstance(one, Refused))


def opened(value: Any) -> Any:
    """Return a value, or raise what is wrong with the data."""
    if isinstance(value, Refused):
        raise value.kind(value.message)
    return value
