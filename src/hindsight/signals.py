"""The signals that end a command in an orderly way, with exit status 128 + n."""

from __future__ import annotations

import signal

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def heeded() -> list[signal.Signals]:
    """The signals that the parent process did not set to be ignored, as nohup does."""
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
