"""Time limits and progress reports of searches.

Every u is a valid comparator, and a fixed predictor is reported with its gap, so a search may be stopped at any time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Clock(NamedTuple):
    """The `time.monotonic` time at which searches end, and the callback for (what is sought, relative gap)."""

    end: float
    notify: Callable[[str, float], None] | None


NO_LIMIT = Clock(math.inf, None)
_clock: ContextVar[Clock] = ContextVar("clock", default=NO_LIMIT)


@contextmanager
def timed(within: float | None = None, notify: Callable[[str, float], None] | None = None) -> Iterator[None]:
    """Limit all searches in the context to `within` seconds, and report their progress to `notify`.

    Parameters
    ----------
    within : float, default None
        The limit in seconds, at least 0; None sets no limit.
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
    """Whether the time limit has passed."""
    end = _clock.get().end
    return end < math.inf and time.monotonic() >= end


def left() -> float:
    """Seconds left."""
    end = _clock.get().end
    return end if end == math.inf else max(0.0, end - time.monotonic())


def notify(what: str, gap: float) -> None:
    """Report what is sought and its relative gap so far."""
    called = _clock.get().notify
    if called is not None:
        called(what, gap)
