"""Charts, drawn with altair and saved as PNG, SVG or a self-contained HTML page."""

from .density import learning_curves
from .drawing import COLOURS, FONT, altair, check, save, styled
from .echo import echo
from .evidence import watched
from .forecast import diagram, diagrams, difference, differences, together

__all__ = [
    "COLOURS",
    "FONT",
    "altair",
    "check",
    "diagram",
    "diagrams",
    "difference",
    "differences",
    "echo",
    "learning_curves",
    "save",
    "styled",
    "together",
    "watched",
]
