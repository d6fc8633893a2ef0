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

    app(prog_name="hindsight")


def _leave(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
