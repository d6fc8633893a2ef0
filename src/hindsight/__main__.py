"""The command. `--version` is answered before anything heavy is imported."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import warnings
from typing import Any

from .signals import heeded

BAD_INPUT, BUG = 2, 70  # exit statuses, beside 0, 1 where a bound is BROKEN, and 128 + n for signal n


def main() -> None:
    """Run the command line."""
    try:
        status = _run()
    except SystemExit as end:
        status = _pipe() if _lost_reader(end.__context__) else end.code
    except OSError as error:
        status = _pipe() if _lost_reader(error) else _unwritten(error)
    except Exception:
        import traceback

        traceback.print_exc()
        print("this is a bug of hindsight: please report it with the lines above", file=sys.stderr)
        status = BUG
    finally:
        gc.freeze()
    try:
        sys.stdout.flush()
    except OSError as error:
        status = _pipe() if _lost_reader(error) else _unwritten(error)
    sys.exit(status)


def _run() -> Any:
    """Run the command; its exit status, where it returns one."""
    if sys.argv[1:] in (["--version"], ["version"]):
        from . import __version__

        print(f"hindsight {__version__}")
        return 0
    _prepare_streams()
    for number in heeded():
        signal.signal(number, _leave)
    gc.disable()  # what is imported stays: collecting garbage in it, now and at exit, takes 0.15 s
    from .cli import load_app

    app = load_app(sys.argv[1] if len(sys.argv) > 1 else None)
    if {"learn", "predict", "certify", "evaluate", "serve"} & set(sys.argv) and "--help" not in sys.argv:
        _load_numba()
    gc.freeze()
    gc.enable()
    return app(prog_name="hindsight")


def _prepare_streams() -> None:
    """Show "?" for what the encoding of the output has no character for, and each warning in one line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    warnings.formatwarning = lambda message, *where, **line: f"warning: {message}\n"


def _leave(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


def _lost_reader(error: BaseException | None) -> bool:
    """Whether the reader of a pipe has left; typer ends with status 1 then, which means something else here."""
    return isinstance(error, BrokenPipeError)


def _pipe() -> int:
    """The status of a process that lost its reader; nothing more is written to it."""
    _drop_output()
    return 128 + getattr(signal, "SIGPIPE", 13)


def _unwritten(error: OSError) -> int:
    """Say in one line which file, or else standard output, could not be written."""
    _drop_output()
    print(f"error: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
    return BAD_INPUT


def _drop_output() -> None:
    """Send what is still to be printed nowhere: it could not be flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _load_numba() -> None:
    """Load numba for kernels that are compiled already, which takes 0.2 s less than preparing to compile.

    Before it loads a kernel from its cache numba sets up every type and function it knows. Running the kernel needs
    none of them, nor what counts references, which ours do without; and all of it is still set up where a kernel must
    be compiled.
    """
    from numba.core import caching
    from numba.core.runtime.nrt import rtsys

    from .kernels.private import numba_known

    def load_overload(self: Any, signature: Any, context: Any) -> Any:
        if not self._py_func.__module__.startswith(f"{__package__}."):
            rtsys.initialize(context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, context)

    if numba_known():
        caching.Cache.load_overload = load_overload  # type: ignore[method-assign]
    importlib.import_module(".training.session", __package__)  # and what it imports, while the collector is off
    from .sources.samples import PREFIX

    if not any(word.startswith(PREFIX) for word in sys.argv):  # samples are not parsed by compiled code
        importlib.import_module(".sources.csv", __package__)


if __name__ == "__main__":
    main()
