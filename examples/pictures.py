"""Where the examples write their pictures."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def folder() -> Path:
    """The folder named on the command line, made where it is missing; a temporary one if none is named."""
    if len(sys.argv) < 2:
        return Path(tempfile.mkdtemp(prefix="hindsight-"))
    where = Path(sys.argv[1])
    where.mkdir(parents=True, exist_ok=True)
    return where
