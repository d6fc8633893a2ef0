"""Where work on partitions is done: here, or on workers.

An engine holds the blocks of rows in groups of partitions, one group per slot (a worker's thread), or several where a
slot has no memory for all of its blocks at once. Work is a plain function of a module, which `Engine` runs in this
process and `Dask` in others.
"""

from __future__ import annotations

import math
import operator
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
    """Blocks of rows on slots, and work on them: one slot, in this process.

    Attributes
    ----------
    blocks : list
        A handle of each block, in the order of the partitions.
    groups : list of list of int
        Partitions that are worked on together, in one slot; ascending.
    homes : list of int
        The slot of each group.
    slots : int
        How many groups are worked on at the same time.
    """

    slots = 1

    def __init__(self) -> None:
        self.blocks: list[Any] = []
        self.groups: list[list[int]] = []
        self.homes: list[int] = []
        self.sizes: list[int] = []

    def slots_of_blocks(self) -> list[int]:
        """Return the slot of each block."""
        return [0] * len(self.blocks)

    def place(self, sizes: Sequence[int]) -> None:
        """Form groups of the blocks of these sizes: one per slot, or smaller ones where a slot has too little room."""
        self.sizes, self.groups, self.homes = list(sizes), [], []
        slots = self.slots_of_blocks()
        for slot in range(self.slots):
            mine = [k for k, own in enumerate(slots) if own == slot]
            room = self.room(sum(sizes[k] for k in mine))
            held = 0.0
            for k in mine:
                if k == mine[0] or held + sizes[k] > room:
                    self.groups.append([])
                    self.homes.append(slot)
                    held = 0.0
                self.groups[-1].append(k)
                held += sizes[k]

    def room(self, size: int) -> float:
        """Return how many bytes of blocks may be worked on together in a slot that has so many."""
        return math.inf

    def refresh(self) -> None:
        """Form the groups anew where blocks have moved meanwhile."""

    def leaders(self) -> list[int]:
        """Return the first group of every slot that has one."""
        return [j for j, slot in enumerate(self.homes) if slot not in self.homes[:j]]

    def submit(self, work: Callable[..., Any], *args: Any, group: int) -> Any:
        """Return a handle of what `work` gives in the slot of a group; arguments may hold handles, in lists too."""
        return work(*args)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the values of handles, or raise the error of the first partition that has one."""
        return list(handles)

    def map(self, works: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> list[Any]:
        """Return handles of what each of these functions gives for its arguments, a partition each."""
        count = len(works)
        self.groups, self.homes = [[k] for k in range(count)], [k * self.slots // count for k in range(count)]
        return [self.submit(work, *args, group=k) for k, (work, args) in enumerate(works)]

    def load(self, works: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> None:
        """Make the blocks: what each of these functions gives for its arguments, a partition each."""
        self.blocks = self.map(works)

    def capacity(self) -> tuple[float, float]:
        """Return how many bytes of blocks all slots hold together, and how many one of them holds."""
        return math.inf, math.inf

    def held(self, group: int) -> list[Any]:
        """Return the handles of the blocks of a group."""
        return [self.blocks[k] for k in self.groups[group]]

    def each(self, work: Callable[..., Any], *shared: Any) -> list[Any]:
        """Return work(block, *shared) for every block, in order."""
        every: list[Any] = self.reduce(listed, work, *shared, add=operator.add)
        return every

    def reduce(self, work: Callable[..., Any], *shared: Any, add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return the sum of work(block, *shared) over all blocks, in the fixed order of `reduction`."""
        self.refresh()
        count = len(self.blocks)
        parts = [
            self.submit(on_group, work, group, count, add, self.held(j), *shared, group=j)
            for j, group in enumerate(self.groups)
        ]
        return self.finish(self.gather(parts), add)

    def finish(self, parts: Sequence[Nodes], add: Callable[[Any, Any], Any] = np.add) -> Any:
        """Return the sum of all partitions from what the groups had left of theirs."""
        nodes = {key: value for part in parts for key, value in part.items()}
        return root(nodes, len(self.blocks), add)

    def change(self, work: Callable[..., Block], *each: Sequence[Any]) -> None:
        """Replace every block by work(block, ...), with further arguments of its own."""
        home = {k: j for j, group in enumerate(self.groups) for k in group}
        self.blocks = [
            self.submit(work, block, *(values[k] for values in each), group=home[k])
            for k, block in enumerate(self.blocks)
        ]


def listed(block: Block, work: Callable[..., Any], *shared: Any) -> list[Any]:
    """Return what work gives for a block, as a list."""
    return [work(block, *shared)]


def on_group(
    work: Callable[..., Any], places: Sequence[int], count: int, add: Callable[[Any, Any], Any],
    blocks: Sequence[Block], *shared: Any,
) -> Nodes:  # fmt: skip
    """Return what is left of work(block, *shared) of a group after adding all that can be added there."""
    nodes: Nodes = {}
    for place, block in zip(places, blocks, strict=True):
        with block.explained():
            nodes[0, place] = work(block, *shared)
    return collapse(nodes, count, add)
