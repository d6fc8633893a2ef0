"""Chains of work on several processors. Each chain takes its pieces in order, and the last chain follows the others."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from ..kernels.side_by_side import PROCESSORS

if TYPE_CHECKING:
    from collections.abc import Callable

_pool: list[ThreadPoolExecutor] = []

if hasattr(os, "register_at_fork"):  # a forked process has the pool without its threads, and would wait for ever
    os.register_at_fork(after_in_child=_pool.clear)


def relay(do: Callable[[int, int], bool], chains: int, pieces: int) -> None:
    """Call ``do(chain, piece)`` for every chain and every piece, with the chains in parallel.

    A chain takes its pieces in order; the last chain takes a piece once all others have finished it. If `do` returns
    False, no chain takes a later piece.

    Parameters
    ----------
    do : callable
        Work that releases the interpreter's lock.
    chains, pieces : int
        The numbers of chains and pieces.
    """
    if pieces == 1 or PROCESSORS == 1:
        for piece in range(pieces):
            fine = [do(chain, piece) for chain in range(chains)]
            if not all(fine):
                return
        return
    if not _pool:
        _pool.append(ThreadPoolExecutor(min(PROCESSORS, 8) - 1, "hindsight"))
    shared = Relay(do, chains, pieces)
    helpers = [_pool[0].submit(shared.work) for _ in range(min(_pool[0]._max_workers, chains - 1))]
    try:
        shared.work()
    finally:  # nobody works on when this returns; who has not begun need not
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()


class Relay:
    """What the threads of one relay share."""

    def __init__(self, do: Callable[[int, int], bool], chains: int, pieces: int) -> None:
        self.do, self.done, self.busy, self.end = do, [0] * chains, [False] * chains, pieces
        self.changed = threading.Condition(threading.Lock())

    def _next(self) -> int | None:
        """The chain with the least progress of those that can continue; None if none can at present."""
        done, last = self.done, len(self.done) - 1
        if not self.busy[last] and done[last] < min(self.end, *done[:last]):
            return last
        free = [k for k in range(last) if not self.busy[k] and done[k] < self.end]
        return min(free, key=done.__getitem__, default=None)

    def work(self) -> None:
        """Process pieces of any chain until all are done."""
        with self.changed:
            while min(self.done) < self.end:
                chain = self._next()
                if chain is None:
                    self.changed.wait()
                    continue
                self._take(chain)

    def _take(self, chain: int) -> None:
        """Process the next piece of a chain, releasing the lock meanwhile."""
        piece, fine = self.done[chain], False
        self.busy[chain] = True
        self.changed.release()
        try:
            fine = self.do(chain, piece)
        except BaseException:
            self.end = -1  # nobody goes on
            raise
        finally:
            self.changed.acquire()
            self.busy[chain] = False
            self.done[chain] += 1
            if not fine:
                self.end = min(self.end, piece + 1)
            self.changed.notify_all()
