"""An engine in this process that works as so many workers would, and counts what they would send."""

import math
from collections import Counter

import numpy as np

from hindsight.cluster.engine import Engine


class Handle:
    """A value, and the slot that holds it."""

    def __init__(self, value, slot):
        self.value, self.slot = value, slot


class InProcess(Engine):
    """An engine that works here, as `slots` workers would, and counts messages.

    Attributes
    ----------
    messages, sent : int
        Tasks that the driver sent and values that went from one place to another, and the bytes of numbers in both.
    to_driver : int
        The bytes among them that the driver received.

    Examples
    --------
    >>> engine = InProcess(3)
    >>> engine.blocks = [None] * 7
    >>> engine.place([8] * 7)
    >>> engine.groups, engine.used
    ([[0, 1, 2], [3, 4], [5, 6]], 3)
    """

    DRIVER = -1

    def __init__(self, slots=1):
        self.blocks, self.groups, self.sizes, self.where, self.used = [], [], [], [], 0
        self.slots, self.threads, self.memory, self.checked = slots, {"here": slots}, math.inf, math.inf
        self.messages = self.sent = self.to_driver = 0

    def _where(self):
        return ["here"] * len(self.blocks)

    def map(self, works):
        self.groups = [[k] for k in range(len(works))]
        return [self._work(k * self.slots // len(works), work, args) for k, (work, args) in enumerate(works)]

    def submit(self, work, *args):
        held = Counter()
        for handle in (one for arg in args for one in (arg if isinstance(arg, list) else [arg])):
            if isinstance(handle, Handle):
                held[handle.slot] += size_of(handle.value)
        return self._work(max(held, key=held.get), work, args)  # as Dask: where most of what it needs is

    def _work(self, slot, work, args):
        self._count(sum(size_of(arg) for arg in args if not holds_handles(arg)), slot)
        return Handle(work(*[self._bring(arg, slot) for arg in args]), slot)

    def gather(self, handles):
        return [self._bring(handle, self.DRIVER) for handle in handles]

    def _bring(self, arg, to):
        """Return an argument with the values of handles, counted where they come from another place."""
        if isinstance(arg, Handle):
            if arg.slot != to:
                self._count(size_of(arg.value), to)
            return arg.value
        return [self._bring(one, to) for one in arg] if holds_handles(arg) else arg

    def _count(self, size, to):
        self.messages, self.sent = self.messages + 1, self.sent + size
        self.to_driver += size if to == self.DRIVER else 0


def holds_handles(arg):
    """Return whether an argument is a handle, or a list with some."""
    return isinstance(arg, Handle) or (isinstance(arg, list) and any(isinstance(one, Handle) for one in arg))


def size_of(value):
    """Return the bytes of the arrays and numbers in a value; functions and names count nothing."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (float, np.generic)):
        return 8
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(size_of, value))
    return sum(map(size_of, vars(value).values())) if hasattr(value, "__dict__") and not callable(value) else 0
