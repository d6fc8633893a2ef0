"""One thread for products of narrow blocks: where others are at work, threads that wait for each other spin."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDE = 512  # columns from which two threads gain more on an idle machine than they lose on a busy one


@contextmanager
def one_thread(width: int) -> Iterator[None]:
    """Let BLAS use one thread meanwhile, unless the matrices have many columns."""
    if width >= WIDE:
        yield
        return
    from threadpoolctl import ThreadpoolController  # it looks for the libraries that are loaded by now, in 0.7 ms

    with ThreadpoolController().limit(limits=1, user_api="blas"):
        yield
