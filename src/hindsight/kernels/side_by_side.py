"""Parallel compilation of kernels: another process compiles some of them into the cache, while this one does the rest.

Compiling holds the interpreter's lock, so threads would not help. If no process can be forked, or nothing is cached,
the kernels are compiled here, one after another.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

from numba import config, typeof
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
PATIENCE = 120.0  # seconds after which the other process is not waited for
FREE, TAKEN, DONE = range(3)  # what has become of a kernel

observers: list[Callable[[int, int], None]] = []  # told how many kernels are compiled, and of how many


class Helper(event.Listener):
    """Another process that compiles kernels, starting with the last; it is forked when the first compilation begins."""

    def __init__(self, tasks: Sequence[tuple[Any, tuple[Any, ...]]]) -> None:
        self.tasks, self.process, self.started = tasks, 0, False
        self.marks = mmap.mmap(-1, len(tasks))  # shared by both processes

    def on_start(self, event: Any) -> None:
        """Fork the other process when a kernel that is not cached is about to be compiled."""
        if self.started:
            return
        self.started = True
        self.tell()
        if FREE in self.marks[:] and can_fork([kernel for kernel, _ in self.tasks]):
            self.fork()

    def on_end(self, event: Any) -> None:
        """Do nothing."""

    def tell(self) -> None:
        """Report the progress to observers."""
        for observer in observers:
            observer(self.marks[:].count(DONE), len(self.tasks))

    def work(self, order: Iterable[int]) -> None:
        """Compile the kernels in this order, or load them from the cache; skip those that the other process takes."""
        for k in order:
            if self.marks[k] == FREE:
                self.marks[k] = TAKEN
                kernel, kinds = self.tasks[k]
                kernel.compile(kinds)
                self.marks[k] = DONE
                if self.started:
                    self.tell()

    def fork(self) -> None:
        """Start the other process, a copy of this one."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no other thread compiles now, and the copy does nothing else
            self.process = os.fork()
        if self.process:
            return
        status = 1
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            observers.clear()
            self.work(reversed(range(len(self.tasks))))
            status = 0
        finally:
            os._exit(status)

    def wait(self) -> None:
        """Wait for the other process, up to a time limit."""
        end = time.monotonic() + PATIENCE
        while self.process and os.waitpid(self.process, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(self.process, signal.SIGKILL)
                os.waitpid(self.process, 0)
                break
            time.sleep(0.02)


def can_fork(kernels: Sequence[Any]) -> bool:
    """Whether a forked process may compile: this is the main thread, and there is a shared cache."""
    if sys.platform != "linux" or PROCESSORS < 2 or threading.current_thread() is not threading.main_thread():
        return False
    return all(kernel.stats.cache_path for kernel in kernels)


def compile_all(calls: Sequence[tuple[Any, tuple[Any, ...]]]) -> None:
    """Compile each kernel for the types of its arguments, or load it from the cache.

    Parameters
    ----------
    calls : sequence of (kernel, arguments)
        The kernels, sorted by compile time, longest first.
    """
    if config.DISABLE_JIT:
        return
    tasks = dict.fromkeys((kernel, tuple(typeof(a) for a in args)) for kernel, args in calls)
    missing = [(kernel, kinds) for kernel, kinds in tasks if kinds not in kernel.overloads]
    if not missing:
        return
    with global_compiler_lock:
        helper = Helper(missing)
        event.register("numba:compile", helper)
        try:
            helper.work(range(len(missing)))
        finally:
            event.unregister("numba:compile", helper)
            helper.wait()
        for kernel, kinds in missing:  # what the other process compiled is in the cache now
            kernel.compile(kinds)
    if helper.started:
        helper.marks[:] = bytes([DONE]) * len(missing)
        helper.tell()
