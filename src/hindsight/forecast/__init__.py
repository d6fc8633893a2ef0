"""Score, compare and calibrate forecasts without knowing the true probabilities."""

from .auc import Auc, auc
from .calibrated import CalibrationTest, calibration_test
from .calibration import Band, Reliability, reliability
from .comparison import BestSet, Choice, Comparison, Finding, Pair, compare, comparison
from .evidence import Evidence
from .identity import Identity, identity
from .intervals import Interval, Intervals
from .progressive import compare_learners, progressive
from .scores import Score, log_loss, losses, mean_loss, quadratic_loss, square_loss
from .stream import LaggedScores, Scores

__all__ = [
    "Auc",
    "Band",
    "BestSet",
    "CalibrationTest",
    "Choice",
    "Comparison",
    "Evidence",
    "Finding",
    "Identity",
    "Interval",
    "Intervals",
    "LaggedScores",
    "Pair",
    "Reliability",
    "Score",
    "Scores",
    "auc",
    "calibration_test",
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
