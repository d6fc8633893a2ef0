"""The command. `--version` is answered before anything heavy is imported."""

from __future__ import annotations

import signal
import sys
from typing import Any


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["version"]):
        from . import __version__

        print(f"hindsight {__version__}")
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    from .cli import app

    if sys.argv[1:2] == ["learn"]:
        _load_numba()
    app(prog_name="hindsight")


def _leave(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


def _load_numba() -> None:
    """Load numba without the BLAS it looks for, by importing scipy.linalg, and that no kernel of ours calls: 0.2 s."""
    name = "scipy.linalg.cython_blas"
    if name in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment]  # importing it fails, which numba takes for an answer
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        del sys.modules[name]


if __name__ == "__main__":
    main()
