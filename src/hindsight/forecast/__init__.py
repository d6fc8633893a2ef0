"""Score, compare and calibrate forecasts without knowing the true probabilities."""

from .auc import Auc, auc
from .calibration import Band, Reliability, reliability
from .comparison import Choice, Comparison, Finding, Interval, Pair, compare, comparison
from .identity import Identity, identity
from .progressive import compare_learners, progressive
from .scores import Score, log_loss, losses, mean_loss, quadratic_loss, square_loss
from .stream import Scores

__all__ = [
    "Auc",
    "Band",
    "Choice",
    "Comparison",
    "Finding",
    "Identity",
    "Interval",
    "Pair",
    "Reliability",
    "Score",
    "Scores",
    "auc",
    "compare",
    "compare_learners",
    "comparison",
    "identity",
    "log_loss",
    "losses",
    "mean_loss",
    "progressive",
    "quadratic_loss",
    "reliability",
    "square_loss",
]
