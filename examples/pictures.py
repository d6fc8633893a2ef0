"""What the examples share: the folder they write to, and how a picture is saved."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hindsight import charts


def folder() -> Path:
    """The folder named on the command line, made where it is missing; a temporary one if there is none."""
    if len(sys.argv) < 2:
        return Path(tempfile.mkdtemp(prefix="hindsight-"))
    where = Path(sys.argv[1])
    where.mkdir(parents=True, exist_ok=True)
    return where


def save(chart: Any, path: Path, text: str = "") -> None:
    """Save a chart and say where; say so where the library that draws is missing."""
    try:
        charts.save(chart, str(path), text)
    except ValueError as error:
        print(f"no chart: {error}")
    else:
        print(f"chart: {path}")
