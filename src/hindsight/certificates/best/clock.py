"""How long a search may take, and whom it tells how far it is.

Any u is a true comparator, and a fixed predictor is shown with its gap, so a search may end whenever it must.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Clock(NamedTuple):
    """When the search ends, as `time.monotonic` counts, and what is called with (what is sought, relative gap)."""

    end: float
    notify: Callable[[str, float], None] | None


NO_LIMIT = Clock(math.inf, None)
_clock: ContextVar[Clock] = ContextVar("clock", default=NO_LIMIT)


@contextmanager
def timed(within: float | None = None, notify: Callable[[str, float], None] | None = None) -> Iterator[None]:
    """Let all searches inside end after `within` seconds, and tell `notify` how far they are.

    Parameters
    ----------
    within : float, default None
        Seconds, at least 0; None sets no limit.
    notify : callable, default None
        Called with what is sought and its relative gap so far.

    Raises
    ------
    ValueError
        If `within` is below 0.
    """
    if within is not None and (isinstance(within, bool) or not within >= 0.0):
        raise ValueError(f"within must be at least 0 seconds, got {within!r}")
    before = _clock.get()
    end = before.end if within is None else min(before.end, time.monotonic() + within)
    token = _clock.set(Clock(end, notify if notify is not None else before.notify))
    try:
        yield
    finally:
        _clock.reset(token)


def late() -> bool:
    """Whether the time is over."""
    end = _clock.get().end
    return end < math.inf and time.monotonic() >= end


def left() -> float:
    """Seconds left."""
    end = _clock.get().end
    return end if end == math.inf else max(0.0, end - time.monotonic())


def notify(what: str, gap: float) -> None:
    """Say what is sought and the relative gap so far."""
    called = _clock.get().notify
    if called is not None:
        called(what, gap)
