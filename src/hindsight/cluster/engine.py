"""Running work on a Dask cluster, and sums over partitions in a fixed order that does not depend on the workers.

An engine holds the blocks of rows in groups of partitions: one group per slot (a worker's thread), or several if the
slot does not have the memory for all of its blocks at once. Blocks are futures, so Dask recomputes a block from its
partition if its worker is lost. A round submits a fixed number of tasks, which depend on the blocks but not on earlier
rounds, so the task graph does not grow.

Partitions are the leaves of a tree in which every node sums up to FAN children, from left to right. The tree depends
only on the number of partitions. A worker that holds all children of a node sends their sum instead, and the driver
adds up the remaining nodes. The bits of a sum therefore depend neither on the number of workers nor on which worker
holds which block.
"""

from __future__ import annotations

import logging
import math
import operator
import time
import uuid
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DisprovedError, SourceError
from ..validation import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .blocks import Block

MISSING = "a cluster needs dask.distributed: pip install hindsight-learn[dask]"
FAN = 16  # children of a node
FITS, TOGETHER = 0.4, 0.1  # of a slot's memory: blocks that stay in it, and blocks that share it with others on disk
CHECKED = 5.0  # seconds between two checks of where the blocks are
PATIENCE = 60.0  # seconds without any worker after which a fit gives up

Nodes = dict[tuple[int, int], Any]  # by level and place


class ClusterError(ValueError):
    """Workers or a scheduler were lost or ran out of memory; the message says which, and what to do."""


def distributed() -> Any:
    """Return the module `distributed`; a one-line error if it is missing."""
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
        The number of processes.
    **options
        Further parameters of `distributed.LocalCluster`, such as ``memory_limit="2GB"``.

    Yields
    ------
    distributed.Client
    """
    engine = distributed()
    import dask

    whole("workers", workers)
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
    log.setLevel(logging.CRITICAL)  # losses are reported in one line
    try:
        try:
            client = engine.Client(address, timeout=10)
        except (OSError, ValueError) as error:
            raise ClusterError(f"there is no scheduler at {address}: {type(error).__name__}") from None
        with client:
            yield client
    finally:
        log.setLevel(before)


class Engine:
    """Blocks of rows on the workers of a Dask cluster, to which module-level functions are applied.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster; None takes the current client.
    retries : int, default 3
        How often a failed task is retried; errors about bad rows are not.

    Attributes
    ----------
    blocks : list
        The future of each block, in the order of the partitions.
    groups : list of list of int
        Partitions that are processed together in one slot, ascending.
    slots : int
        The number of groups that are processed at the same time.
    used : int
        The number of slots that have groups.
    """

    def __init__(self, client: Any = None, retries: int = 3) -> None:
        self.blocks: list[Any] = []
        self.groups: list[list[int]] = []
        self.used = 0
        self.sizes: list[int] = []
        self.where: list[str] = []  # the worker of each block
        engine = distributed()
        try:
            self.client = client or engine.get_client()
        except ValueError:
            raise ClusterError("there is no cluster: give client=distributed.Client(...)") from None
        self.retries = retries
        self.threads = self._threads()
        self.slots = sum(self.threads.values())
        self.memory, self.checked = self._memory(), -math.inf

    @classmethod
    def of(cls, client: Any, retries: int = 3) -> Engine:
        """Return the engine of a client; an engine is returned unchanged."""
        return client if isinstance(client, cls) else cls(client, retries)

    # ------------------------------------------------------------ where the blocks are

    def _threads(self) -> dict[str, int]:
        """Return the number of threads of each worker, by its address."""
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except Exception as error:
            raise ClusterError(f"there is no worker after {PATIENCE:g} s: {type(error).__name__}") from None
        return dict(sorted(self.client.nthreads().items()))

    def _where(self) -> list[str]:
        """Return the address of the worker that holds each block; any worker for a block that is lost or moving."""
        held = self.client.who_has(self.blocks)
        self.threads = self._threads()
        self.slots, self.checked = sum(self.threads.values()), time.monotonic()
        each = [[a for a in held.get(block.key, ()) if a in self.threads] for block in self.blocks]
        return [min(addresses, default=next(iter(self.threads))) for addresses in each]

    def _memory(self) -> float:
        """Return the memory of the slot with the least memory; infinity if there are no limits."""
        try:
            info = self.client.scheduler_info(n_workers=-1)
        except TypeError:  # earlier versions return all workers
            info = self.client.scheduler_info()
        limits = [each["memory_limit"] / each["nthreads"] for each in info["workers"].values() if each["memory_limit"]]
        return min(limits, default=math.inf)

    def blocks_of_slots(self) -> Iterator[list[int]]:
        """Yield the blocks of each slot; those of a worker are distributed over its threads in order."""
        self.where = self._where()
        for address, threads in self.threads.items():
            own = [k for k, holder in enumerate(self.where) if holder == address]
            for j in range(threads):
                yield [k for i, k in enumerate(own) if i * threads // len(own) == j]

    def place(self, sizes: Sequence[int]) -> None:
        """Form groups of blocks with these sizes: one per slot, or several if a slot has too little memory."""
        self.sizes, self.groups, self.used = list(sizes), [], 0
        for mine in self.blocks_of_slots():
            self.used += bool(mine)
            room = self.room(sum(sizes[k] for k in mine))
            held = 0.0
            for k in mine:
                if k == mine[0] or held + sizes[k] > room:
                    self.groups.append([])
                    held = 0.0
                self.groups[-1].append(k)
                held += sizes[k]

    def room(self, size: int) -> float:
        """Return how many bytes of blocks may be processed together in a slot that holds `size` bytes."""
        return math.inf if size <= FITS * self.memory else TOGETHER * self.memory

    def capacity(self) -> tuple[float, float]:
        """Return how many bytes of blocks all slots can hold, and how many a single slot can hold."""
        return FITS * self.memory * self.slots, FITS * self.memory / 2.0  # rows are in memory twice while they are read

    def refresh(self) -> None:
        """Form the groups again if blocks have moved."""
        if self.where and time.monotonic() - self.checked > CHECKED and self._where() != self.where:
            self.place(self.sizes)

    def held(self) -> list[list[Any]]:
        """Return the futures of the blocks of each group."""
        return [[self.blocks[k] for k in group] for group in self.groups]

    # ------------------------------------------------------------ work

    def submit(self, work: Callable[..., Any], *args: Any) -> Any:
        """Return the future of `work`; arguments may be futures, or lists of them."""
        # Not restricted to a worker: Dask works where the blocks are, and tasks that are bound to an address, however
        # loosely, wait for ever if all workers are gone at once and others come.
        key = f"{work.__name__.strip('_')}-{uuid.uuid4().hex}"  # the dashboard groups tasks by its first part
        return self.client.submit(attempt, work, *args, pure=False, retries=self.retries, key=key)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the values of futures, or raise the error of the first partition that failed."""
        with one_line():
            self._wait(list(handles))
            values = self.client.gather(list(handles))
        for value in values:
            if isinstance(value, Refused):
                raise value.error
        return list(values)

    def _wait(self, handles: list[Any]) -> None:
        """Wait for work to finish, as long as there are workers."""
        while True:
            try:
                distributed().wait(handles, timeout=PATIENCE)
                return
            except TimeoutError:
                if not self.client.nthreads():
                    raise ClusterError(f"there was no worker for {PATIENCE:g} s: start some, and resume") from None

    def map(self, works: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> list[Any]:
        """Return futures of these functions applied to their arguments, one per partition."""
        self.groups = [[k] for k in range(len(works))]
        return [self.submit(work, *args) for work, args in works]

    def each(self, work: Callable[..., Any], *shared: Any) -> list[Any]:
        """Return work(block, *shared) for every block, in order."""
        every: list[Any] = self.reduce(listed, work, *shared, add=operator.add)
        return every

    def reduce(self, work: Callable[..., Any], *shared: Any, add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return the sum of work(block, *shared) over all blocks, in the fixed order of the tree."""
        self.refresh()
        return self.over_groups(on_group, add, work, *shared)

    def over_groups(self, on_group: Callable[..., Nodes], add: Callable[[Any, Any], Any], *shared: Any) -> Any:
        """Return the sum over all partitions of the nodes that ``on_group(places, count, add, blocks, *shared)`` gives.

        `count` is the number of all partitions, and `places` are those of the blocks of a group.
        """
        count, groups = len(self.blocks), zip(self.groups, self.held(), strict=True)
        parts = [self.submit(on_group, places, count, add, blocks, *shared) for places, blocks in groups]
        nodes = {key: value for part in self.gather(parts) for key, value in part.items()}
        return root(nodes, count, add)

    def change(self, work: Callable[..., Block], *each: Sequence[Any]) -> None:
        """Replace every block by work(block, ...), with separate further arguments for each block."""
        self.blocks = [self.submit(work, *args) for args in zip(self.blocks, *each, strict=True)]


@contextmanager
def one_line() -> Iterator[None]:
    """Turn errors of workers and of the scheduler into one-line errors."""
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


# ---------------------------------------------------------------- in the workers


class WorkerError(Exception):
    """A possibly temporary error on a worker, which is retried."""


@dataclass(frozen=True)
class Refused:
    """A one-line error about data, returned as a value so that Dask neither retries nor logs it."""

    error: ValueError


def attempt(work: Callable[..., Any], *args: Any) -> Any:
    """Return work(*args), or the error in the data; if arguments are such errors, return the first of them."""
    for arg in args:
        for one in arg if isinstance(arg, list) else [arg]:
            if isinstance(one, Refused):
                return one
    try:
        return work(*args)
    except ValueError as error:
        kind = next(kind for kind in (DisprovedError, SourceError, ValueError) if isinstance(error, kind))
        return Refused(kind(str(error)))
    except OSError as error:  # of a file or a disk, not of the connection to the scheduler
        raise WorkerError(f"{error.filename or 'a worker'}: {error.strerror or error}") from None


def listed(block: Block, work: Callable[..., Any], *shared: Any) -> list[Any]:
    """Return the result of work for a block, as a list."""
    return [work(block, *shared)]


def on_group(
    places: Sequence[int], count: int, add: Callable[[Any, Any], Any], blocks: Sequence[Block],
    work: Callable[..., Any], *shared: Any,
) -> Nodes:  # fmt: skip
    """Return the nodes that remain after summing work(block, *shared) over a group as far as possible."""
    nodes: Nodes = {}
    for place, block in zip(places, blocks, strict=True):
        with block.explained():
            nodes[0, place] = work(block, *shared)
    return collapse(nodes, count, add)


def collapse(nodes: Nodes, leaves: int, add: Callable[[Any, Any], Any]) -> Nodes:
    """Replace children by their sum wherever all of them are present.

    Parameters
    ----------
    nodes : dict
        Values by (level, place); the leaves are at level 0.
    leaves : int
        The number of leaves of the whole tree.
    add : callable
        Adds two values.

    Returns
    -------
    dict
        The remaining nodes; only the root if every leaf was present.

    Examples
    --------
    >>> from operator import add
    >>> collapse({(0, 0): 1, (0, 1): 2}, 2, add)
    {(1, 0): 3}
    >>> collapse({(0, k): "abcdefghijklmnopqr"[k] for k in range(17)}, 18, add)
    {(0, 16): 'q', (1, 0): 'abcdefghijklmnop'}
    """
    level, size, done = 0, leaves, dict(nodes)
    while size > 1 or level == 0:
        for place in range(-(-size // FAN)):
            children = [(level, k) for k in range(place * FAN, min(size, (place + 1) * FAN))]
            if all(child in done for child in children):
                total = done.pop(children[0])
                for child in children[1:]:
                    total = add(total, done.pop(child))
                done[level + 1, place] = total
        level, size = level + 1, -(-size // FAN)
    return done


def root(nodes: Nodes, leaves: int, add: Callable[[Any, Any], Any]) -> Any:
    """Return the sum of all leaves."""
    (total,) = collapse(nodes, leaves, add).values()
    return total
