"""Charts, drawn with altair and saved as PNG, SVG or a self-contained HTML page."""

from .density import learning_curves
from .drawing import COLOURS, FONT, altair, check, save, styled
from .echo import echo
from .evidence import best, e_values, evidence, pair_evidence, watched
from .forecast import diagram, diagrams, difference, differences, together
from .plots import plot_link, plot_potential, plot_regret, plot_reliability, plot_weights

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
    "echo",
    "evidence",
    "learning_curves",
    "pair_evidence",
    "plot_link",
    "plot_potential",
    "plot_regret",
    "plot_reliability",
    "plot_weights",
    "save",
    "styled",
    "together",
    "watched",
]
