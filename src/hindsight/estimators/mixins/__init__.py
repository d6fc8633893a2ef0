"""Parts that estimators share, one idea per module; an estimator inherits those that it needs."""

from .card import CardMixin
from .certifying import RunsMixin
from .class_weights import ClassWeightMixin
from .fitting import AllOrNothingMixin, FitMixin
from .intervals import IntervalsMixin, SetsMixin
from .labels import LabelsMixin
from .linear import LinearClassifierMixin, LinearMixin, LinearRegressorMixin, MarginClassifierMixin
from .prediction import LogisticProbabilityMixin, MeanPredictionMixin
from .reporting import ReportMixin
from .rows import RowsMixin
from .saving import SaveMixin
from .scoring import BoundNotScoreMixin
from .single_rows import SingleRowMixin
from .targets import TargetsMixin

__all__ = [
    "AllOrNothingMixin",
    "BoundNotScoreMixin",
    "CardMixin",
    "ClassWeightMixin",
    "FitMixin",
    "IntervalsMixin",
    "LabelsMixin",
    "LinearClassifierMixin",
    "LinearMixin",
    "LinearRegressorMixin",
    "LogisticProbabilityMixin",
    "MarginClassifierMixin",
    "MeanPredictionMixin",
    "ReportMixin",
    "RowsMixin",
    "RunsMixin",
    "SaveMixin",
    "SetsMixin",
    "SingleRowMixin",
    "TargetsMixin",
]
