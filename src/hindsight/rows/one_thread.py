"""One BLAS thread for products of narrow blocks; on a busy machine, waiting BLAS threads would spin."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_here = threading.local()  # whether this thread has set the limit already
WIDE = 512  # columns from which two threads gain more on an idle machine than they lose on a busy one


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """The thread controllers of the loaded libraries, cached by the number of modules, as the search takes 1 ms."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread(width: int) -> Iterator[None]:
    """Let BLAS use one thread within the context, unless the matrices have many columns."""
    if width >= WIDE or getattr(_here, "limited", False):
        yield
        return
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        _here.limited = True
        try:
            yield
        finally:
            _here.limited = False
