"""The command. `--version` is answered before anything heavy is imported."""

from __future__ import annotations

import gc
import importlib
import signal
import sys
import warnings
from typing import Any


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["version"]):
        from . import __version__

        print(f"hindsight {__version__}")
        return
    _prepare_streams()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    gc.disable()  # what is imported stays: collecting garbage in it, now and at exit, takes 0.15 s
    from .cli import app

    if {"learn", "predict", "certify"} & set(sys.argv) and "--help" not in sys.argv:
        _load_numba()
    gc.freeze()
    gc.enable()
    try:
        app(prog_name="hindsight")
    finally:
        gc.freeze()


def _prepare_streams() -> None:
    """Show "?" for what the encoding of the output has no character for, and each warning in one line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    warnings.formatwarning = lambda message, *where, **line: f"warning: {message}\n"


def _leave(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


def _load_numba() -> None:
    """Load numba for kernels that are compiled already, which takes 0.2 s less than preparing to compile.

    Before it loads a kernel from its cache numba sets up every type and function it knows. Running the kernel needs
    none of them, and they are still set up where a kernel must be compiled.
    """
    from numba.core import caching
    from numba.core.runtime.nrt import rtsys

    from .kernels.private import numba_known

    def load_overload(self: Any, signature: Any, context: Any) -> Any:
        rtsys.initialize(context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, context)

    if numba_known():
        caching.Cache.load_overload = load_overload  # type: ignore[method-assign]
    for name in ("training.session", "sources.parsers"):  # and what they import, while the collector is off
        importlib.import_module(f".{name}", __package__)


if __name__ == "__main__":
    main()
