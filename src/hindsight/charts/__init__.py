"""Charts, drawn with altair and saved as PNG, SVG or a self-contained HTML page."""

from .density import learning_curves
from .drawing import COLOURS, FONT, altair, check, save, styled
from .evidence import best, e_values, evidence, pair_evidence, watched
from .forecast import diagram, diagrams, difference, differences, together

__all__ = [
    "COLOURS",
    "FONT",
    "altair",
    "best",
    "check",
    "diagram",
    "diagrams",
    "difference",
    "differences",
    "e_values",
    "evidence",
    "learning_curves",
    "pair_evidence",
    "save",
    "styled",
    "together",
    "watched",
]
