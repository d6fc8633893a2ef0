"""Sums over partitions in one fixed order, whoever adds.

Partitions are the leaves of a tree in which every node adds up to FAN children, from left to right. The tree depends on
the number of partitions alone. A worker that holds all children of a node sends their sum instead of them, and the
driver adds what is left; so the bits of a sum depend neither on the number of workers nor on which one held what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FAN = 16  # children of a node
Nodes = dict[tuple[int, int], Any]  # by level and place


def collapse(nodes: Nodes, leaves: int, add: Callable[[Any, Any], Any]) -> Nodes:
    """Replace children by their sum wherever all of them are there.

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
        The nodes left; the root alone if every leaf was there.

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
