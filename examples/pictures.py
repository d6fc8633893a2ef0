"""Where the examples write their pictures, and how those of the documentation are made small.

``python examples/pictures.py FROM TO`` writes the PNG files of a folder to another one with few colours and at most 900
pixels wide, as they stand in docs/pictures.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

WIDEST, COLOURS = 900, 64


def folder() -> Path:
    """The folder named on the command line, made where it is missing; a temporary one if none is named."""
    if len(sys.argv) < 2:
        return Path(tempfile.mkdtemp(prefix="hindsight-"))
    where = Path(sys.argv[1])
    where.mkdir(parents=True, exist_ok=True)
    return where


def shrink(source: Path, target: Path) -> None:
    """Write a picture smaller."""
    from PIL import Image

    picture = Image.open(source).convert("RGB")
    if picture.width > WIDEST:
        picture = picture.resize((WIDEST, round(picture.height * WIDEST / picture.width)), Image.Resampling.LANCZOS)
    few = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    for found in sorted(folder().glob("*.png")):
        small = Path(sys.argv[2]) / found.name
        small.parent.mkdir(parents=True, exist_ok=True)
        shrink(found, small)
        print(f"{small}: {small.stat().st_size:,} bytes")
