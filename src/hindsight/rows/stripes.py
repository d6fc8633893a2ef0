"""Stripes: ranges of consecutive rows that several processors work on in parallel.

Their number does not depend on the number of processors, and the sums over stripes are added in their order, so that
results are bit for bit the same on every machine.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from operator import call
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import side_by_side
from ..kernels.rows import CSR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STRIPES = 4
MANY = 1 << 20  # numbers in the rows from which they are cut into stripes


@cache
def workers() -> ThreadPoolExecutor:
    """The threads that work on stripes, one per processor."""
    return ThreadPoolExecutor(min(side_by_side.PROCESSORS, STRIPES), "hindsight-stripes")


if hasattr(os, "register_at_fork"):  # see `online.relay`
    os.register_at_fork(after_in_child=workers.cache_clear)


def do_all(tasks: Sequence[Callable[[], None]]) -> None:
    """Call all tasks, in parallel if there are several processors."""
    if side_by_side.PROCESSORS == 1 or len(tasks) == 1:
        for task in tasks:
            task()
    else:
        list(workers().map(call, tasks))


def part_of(rows: Any, a: int, b: int) -> Any:
    """Rows a..b of dense or CSR rows; nothing is copied."""
    if isinstance(rows, CSR):
        return rows._replace(indptr=rows.indptr[a : b + 1])
    return rows._replace(values=rows.values[a:b])


def add_up(work: Callable[..., None], first: int, rows: Any, count: int, *sums: np.ndarray) -> None:
    """Let work(part, rows, *sums) add the contribution of rows to the sums; `part` is the slice of their positions.

    Parameters
    ----------
    work : callable
        Releases the interpreter's lock while it works; may also write to the entries of its rows in other arrays.
    first, rows, count : int, rows as the loops read them, and int
        The position of the first row, the rows, and their number.
    *sums : ndarray
        The sums to add to.
    """
    numbers = rows.indices.size if isinstance(rows, CSR) else rows.values.size
    if numbers < MANY:
        work(slice(first, first + count), rows, *sums)
        return
    ends = [count * k // STRIPES for k in range(STRIPES + 1)]
    each = [tuple(np.zeros_like(total) for total in sums) for _ in range(STRIPES)]

    def do(k: int) -> None:
        a, b = ends[k], ends[k + 1]
        work(slice(first + a, first + b), part_of(rows, a, b), *each[k])

    do_all([partial(do, k) for k in range(STRIPES)])
    for own in each:
        for total, more in zip(sums, own, strict=True):
            total += more
