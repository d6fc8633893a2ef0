"""Where work on partitions is done: what an engine offers, and one in this process that counts messages.

An engine holds the blocks of rows in groups of consecutive partitions, one group per slot (a worker's thread), or
several where a slot has no memory for all of its blocks at once. Work is a plain function of a module. `Dask` runs it
in other processes; `InProcess` runs it here, as so many slots would, and counts what would be sent between them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .reduction import collapse, root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .blocks import Block
    from .reduction import Nodes


class ClusterError(ValueError):
    """Workers or a scheduler that were lost, or ran out of memory: which, and what to do."""


class Engine:
    """Blocks of rows on slots, and work on them.

    Attributes
    ----------
    blocks : list
        A handle of each block, in the order of the partitions.
    groups : list of range
        Consecutive partitions that are worked on together, in one slot.
    slots : int
        How many groups are worked on at the same time.
    """

    slots = 1

    def __init__(self) -> None:
        self.blocks: list[Any] = []
        self.groups: list[range] = []

    def slot_of(self, group: int) -> int:
        """Return the slot of a group: that of its partitions, of which each slot has about as many as the others."""
        return self.groups[group].start * min(self.slots, self.count) // self.count

    def place(self, sizes: Sequence[int]) -> None:
        """Form groups of the blocks of these sizes: one per slot, or smaller ones where a slot has too little room."""
        single = [range(k, k + 1) for k in range(self.count)]
        self.groups = single
        slots = [self.slot_of(k) for k in range(self.count)]
        held = [sum(size for size, slot in zip(sizes, slots, strict=True) if slot == own) for own in range(self.slots)]
        groups, size = [single[0]], sizes[0]
        for k in range(1, self.count):
            full = slots[k] != slots[k - 1] or size + sizes[k] > self.room(held[slots[k]])
            if full:
                groups.append(single[k])
            else:
                groups[-1] = range(groups[-1].start, k + 1)
            size = sizes[k] + (0 if full else size)
        self.groups = groups

    def room(self, size: int) -> float:
        """Return how many bytes of blocks may be worked on together in a slot that has so many."""
        return math.inf

    def leaders(self) -> list[int]:
        """Return the first group of every slot that has one."""
        slots = [self.slot_of(j) for j in range(len(self.groups))]
        return [j for j, slot in enumerate(slots) if slot not in slots[:j]]

    @property
    def count(self) -> int:
        """The number of partitions."""
        return self.groups[-1].stop

    def submit(self, work: Callable[..., Any], *args: Any, group: int) -> Any:
        """Return a handle of what `work` gives in the slot of a group; arguments may hold handles, in lists too."""
        raise NotImplementedError

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the values of handles, or raise the error of the first partition that has one."""
        raise NotImplementedError

    def load(self, works: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> None:
        """Make the blocks: what each of these functions gives for its arguments, a partition each."""
        self.groups = [range(k, k + 1) for k in range(len(works))]  # until their sizes are known
        self.blocks = [
            self.submit(work, *args, group=j)
            for j, group in enumerate(self.groups)
            for work, args in (works[k] for k in group)
        ]

    def held(self, group: int) -> list[Any]:
        """Return the handles of the blocks of a group."""
        return [self.blocks[k] for k in self.groups[group]]

    def each(self, work: Callable[..., Any], *shared: Any) -> list[Any]:
        """Return work(block, *shared) for every block, in order."""
        parts = [self.submit(on_each, work, self.held(j), *shared, group=j) for j in range(len(self.groups))]
        return [value for part in self.gather(parts) for value in part]

    def reduce(self, work: Callable[..., Any], *shared: Any, add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return the sum of work(block, *shared) over all blocks, in the fixed order of `reduction`."""
        count = len(self.blocks)
        parts = [
            self.submit(on_group, work, self.groups[j].start, count, add, self.held(j), *shared, group=j)
            for j in range(len(self.groups))
        ]
        return self.finish(self.gather(parts), add)

    def finish(self, parts: Sequence[Nodes], add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return the sum of all partitions from what the groups had left of theirs."""
        nodes = {key: value for part in parts for key, value in part.items()}
        return root(nodes, len(self.blocks), add)

    def change(self, work: Callable[..., Block], *each: Sequence[Any]) -> None:
        """Replace every block by work(block, ...), with further arguments of its own."""
        self.blocks = [
            self.submit(work, block, *(values[k] for values in each), group=j)
            for j, group in enumerate(self.groups)
            for k, block in ((k, self.blocks[k]) for k in group)
        ]


def on_each(work: Callable[..., Any], blocks: Sequence[Block], *shared: Any) -> list[Any]:
    """Return work(block, *shared) for the blocks of a group."""
    out = []
    for block in blocks:
        with block.explained():
            out.append(work(block, *shared))
    return out


def on_group(
    work: Callable[..., Any], first: int, count: int, add: Callable[[Any, Any], Any], blocks: Sequence[Block],
    *shared: Any,
) -> Nodes:  # fmt: skip
    """Return what is left of work(block, *shared) of a group after adding all that can be added there."""
    values = on_each(work, blocks, *shared)
    return collapse({(0, first + k): value for k, value in enumerate(values)}, count, add)


# ---------------------------------------------------------------- in this process


class Handle:
    """A value, and the slot that holds it."""

    def __init__(self, value: Any, slot: int) -> None:
        self.value, self.slot = value, slot


class InProcess(Engine):
    """An engine that works here, as `slots` workers would, and counts messages.

    Attributes
    ----------
    messages, sent : int
        Values that went from one place to another, and their bytes; the driver is a place as well.
    to_driver : int
        The bytes among them that the driver received.

    Examples
    --------
    >>> engine = InProcess(3)
    >>> engine.groups = [range(7)]
    >>> engine.place([8] * 7)
    >>> engine.groups, engine.leaders()
    ([range(0, 3), range(3, 5), range(5, 7)], [0, 1, 2])
    """

    DRIVER = -1

    def __init__(self, slots: int = 1) -> None:
        super().__init__()
        self.slots = slots
        self.messages = self.sent = self.to_driver = 0

    def submit(self, work: Callable[..., Any], *args: Any, group: int) -> Handle:
        slot = self.slot_of(group)
        return Handle(work(*[self._bring(arg, slot) for arg in args]), slot)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        return [self._bring(handle, self.DRIVER) for handle in handles]

    def _bring(self, arg: Any, to: int) -> Any:
        """Return the value of an argument, counted where it comes from another place."""
        if isinstance(arg, (list, tuple)) and any(isinstance(one, Handle) for one in arg):
            return [self._bring(one, to) for one in arg]
        held = arg if isinstance(arg, Handle) else Handle(arg, self.DRIVER)
        size = size_of(held.value) if held.slot != to else 0
        if size:
            self.messages, self.sent = self.messages + 1, self.sent + size
            self.to_driver += size if to == self.DRIVER else 0
        return held.value


def size_of(value: Any) -> int:
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
