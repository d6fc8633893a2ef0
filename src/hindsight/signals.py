"""The signals that end a command in an orderly way, with exit status 128 + n."""

from __future__ import annotations

import signal

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def heeded() -> list[signal.Signals]:
    """Those that whoever started the process did not tell it to ignore, as nohup does."""
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
