"""The command. `--version` is answered before anything heavy is imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["version"]):
        from . import __version__

        print(f"hindsight {__version__}")
        return
    from .cli import app

    app(prog_name="hindsight")


if __name__ == "__main__":
    main()
