"""One thread for products of narrow blocks: where others are at work, threads that wait for each other spin."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_here = threading.local()  # whether this thread has set the limit already: to set it takes 0.7 ms
WIDE = 512  # columns from which two threads gain more on an idle machine than they lose on a busy one


@contextmanager
def one_thread(width: int) -> Iterator[None]:
    """Let BLAS use one thread meanwhile, unless the matrices have many columns."""
    if width >= WIDE or getattr(_here, "limited", False):
        yield
        return
    from threadpoolctl import ThreadpoolController  # it looks for the libraries that are loaded by now

    with ThreadpoolController().limit(limits=1, user_api="blas"):
        _here.limited = True
        try:
            yield
        finally:
            _here.limited = False
